"""What comes out of a run, and how an output is found.

An output is made, on the host, of what trials have recorded: fields of an `Outcome`, and tallies,
which the loops add up only where an output needs them. A file of this folder that defines an
`Output` adds it; one of the user's own is passed to `simulate` or `sweep` as it is.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fmab_jax.algorithms.base import Tally
from fmab_jax.core.plugins import code_digest
from fmab_jax.errors import Shown, did_you_mean, refuse
from fmab_jax.run.outputs.base import DIMENSIONS, Output, Record
from fmab_jax.run.outputs.usual import USUAL

_NAME_WANTED = "a short plain name that no other variable has"


@functools.cache
def further() -> dict[str, Output]:
    """Returns the outputs that are made where they are asked for, by name."""
    found = {}
    package = sys.modules[__name__]
    for file in pkgutil.iter_modules(package.__path__):
        if file.name in ("base", "usual"):
            continue
        module = importlib.import_module(f"{package.__name__}.{file.name}")
        own = [each for each in vars(module).values() if isinstance(each, Output)]
        found |= {each.name: each for each in own if each not in USUAL}
    return dict(sorted(found.items()))


def chosen(asked: Any) -> tuple[Output, ...]:
    """Returns what is asked for besides the usual outputs, by name or as it is.

    Raises:
        ValueError: If a name is unknown or asked for twice, or an output is not made as it has to.
    """
    remedy = 'such as outputs=["pulls"]; fmab outputs lists them'
    if isinstance(asked, str) or not isinstance(asked, (list, tuple)):
        refuse("outputs", asked, "a list of outputs", remedy)
    found: list[Output] = []
    taken = {each.name for each in USUAL} | {"seeds", "seed", "means", *DIMENSIONS}
    for each in asked:
        if isinstance(each, str):
            if each not in further():
                known = ", ".join(further())
                remedy = did_you_mean(each, further(), f"choose from {known}")
                if each in {one.name for one in USUAL}:
                    remedy = "leave it out: every result has it"
                refuse("outputs", each, f"among {known}", remedy)
            each = further()[each]
        if not isinstance(each, Output):
            refuse("outputs", each, "names, or an fmab_jax.Output of one's own", remedy)
        _check(each, taken)
        taken.add(each.name)
        found.append(each)
    return tuple(found)


def _check(output: Output, taken: set[str]) -> None:
    """Refuses an output that results could not hold."""
    name = output.name
    if not isinstance(name, str) or not name.isidentifier() or name in taken:
        refuse("Output.name", name, _NAME_WANTED, "rename it, or ask for it once")
    ordered = tuple(each for each in DIMENSIONS if each in output.dims)
    if output.dims != ordered:
        refuse("Output.dims", output.dims, f"some of {DIMENSIONS} in this order", "reorder them")


def tallies_of(outputs: Sequence[Output]) -> tuple[Tally, ...]:
    """Returns what has to be added up for some outputs, each tally once."""
    return tuple(dict.fromkeys(tally for each in outputs for tally in each.tallies))


def tallying(trial: Any, outputs: Sequence[Output], title: str) -> Any:
    """Returns a trial that adds up what some outputs need.

    Raises:
        ValueError: If the algorithm's loop cannot.
    """
    tallies = tallies_of(outputs)
    if not tallies:
        return trial
    if not callable(getattr(trial, "tallying", None)):
        needy = next(each.name for each in outputs if each.tallies)
        refuse("outputs", needy, f"left out with {title}", "its loop adds nothing up for outputs")
    return trial.tallying(tallies)


def described(output: Output) -> str:
    """Returns what tells an output from others: its name, and its source if it is one's own."""
    if output is further().get(output.name):
        return output.name
    functions = [output.of, *(x for each in output.tallies for x in each if callable(x))]
    return f"{output.name} {code_digest(*functions)}"


def stated(outputs: Sequence[Output]) -> dict[str, list[str]]:
    """Returns what a study says of them; nothing where none is asked for."""
    return {"outputs": [described(each) for each in outputs]} if outputs else {}


def made(output: Output, record: Record, size: Callable[[str], int]) -> np.ndarray:
    """Returns an output of what is recorded.

    Args:
        output: Which.
        record: Of some seeds.
        size: Returns the length of a dimension.

    Raises:
        ValueError: If it has another shape than it says.
    """
    found = np.asarray(output.of(record))
    wanted = tuple(map(size, output.dims))
    if found.shape[1:] != wanted:
        allowed = f"[seed, {', '.join(map(str, wanted))}]" if wanted else "[seed]"
        refuse(f"{output.name}.of", Shown(f"an array {found.shape}"), allowed, "mend it")
    return found
