"""What comes out of a run, and how an output is found.

An output is made, on the host, of what trials have recorded: fields of an `Outcome`, and gauges,
which the loops add up only where an output needs them. A file of this folder that defines an
`Output` adds it; one of the user's own is passed to `simulate` or `sweep` as it is.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from fmab_jax.core.outputs import DIMENSIONS, OF_RESULTS, Gauge, Output, Record
from fmab_jax.core.plugins import code_digest, forget_plugin, plugin_modules
from fmab_jax.errors import Refusal, Shown, did_you_mean, refuse, setting
from fmab_jax.run import schema
from fmab_jax.run.outputs.usual import USUAL

_NAME_WANTED = "a short plain name that no other variable has"
# What results, and tables of them, call something else.
_TAKEN = {
    *(*OF_RESULTS, "seeds", "means", "slot"),
    *("side", "priced", "counts", "algorithm", "problem", "undecided", "cost", "leak", "rounds"),
    *("leak_epsilon", "interval", "percent", "lost", "worse", "epsilon", "epsilon_message"),
    *("agents", "arms", "horizon", "reporting", "wait", "title", *schema.FIELDS),
}


def further() -> dict[str, Output]:
    """Returns the outputs that are made where they are asked for, by name.

    They are this folder's and those of plug-ins that are loaded.

    Raises:
        ValueError: If a plug-in takes the name of another output.
    """
    found = dict(_shipped())
    for module in plugin_modules():
        for each in _defined_in(module):
            if each.name in {*_shipped(), *(one.name for one in USUAL)}:
                forget_plugin(module)
                refuse("plugin", each.name, "the name of no other output", "rename it")
            found[each.name] = each
    return found


def _defined_in(module: ModuleType) -> list[Output]:
    """Returns the outputs that a module has and did not import from here."""
    own = [each for each in vars(module).values() if isinstance(each, Output)]
    return [each for each in own if each not in USUAL and each not in _shipped().values()]


@functools.cache
def _shipped() -> dict[str, Output]:
    found: dict[str, Output] = {}
    package = sys.modules[__name__]
    for file in pkgutil.iter_modules(package.__path__):
        if file.name == "usual":
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
    remedy = f"such as {setting(outputs=['pulls'])}; fmab outputs lists them"
    if isinstance(asked, str) or not isinstance(asked, (list, tuple)):
        refuse("outputs", asked, "a list of outputs", remedy)
    found: list[Output] = []
    taken = {each.name for each in USUAL} | _TAKEN
    for each in asked:
        if isinstance(each, str):
            if each not in further():
                known = ", ".join(further())
                remedy = did_you_mean(each, further(), f"choose from {known}")
                if each in {one.name for one in USUAL}:
                    remedy = "leave it out: every result has it"
                refuse("outputs", each, f"among {known}", remedy)
            each = further()[each]
        if each in found:
            refuse("outputs", each.name, "named once", "drop one of them")
        if not isinstance(each, Output):
            refuse("outputs", each, "names, or an fmab_jax.Output of one's own", remedy)
        _check(each, taken)
        taken.add(each.name)
        found.append(each)
    gauges = [each.name for each in gauges_of(found)]
    for name in gauges:
        if name in schema.FIELDS or gauges.count(name) > 1:
            refuse("Gauge.name", name, "a short plain name that nothing else has", "rename it")
    # In whatever order they are asked for, the study is the same.
    return tuple(sorted(found, key=lambda each: each.name))


def _check(output: Output, taken: set[str]) -> None:
    """Refuses an output that results could not hold."""
    name = output.name
    if name in taken:
        refuse("Output.name", name, _NAME_WANTED, "rename it")
    allowed = tuple(each for each in DIMENSIONS if each != "meter")
    if output.dims != tuple(each for each in allowed if each in output.dims):
        refuse("Output.dims", output.dims, f"some of {allowed} in this order", "reorder them")
    if np.dtype(output.dtype) != np.float64:
        refuse("Output.dtype", str(output.dtype), "float64", "leave it out")
    for gauge in output.gauges:
        if "agent" in gauge.dims[1:] or "time" in gauge.dims[:-1] or "meter" in gauge.dims:
            wanted = f"some of {allowed}, agent first and time last"
            refuse("Gauge.dims", gauge.dims, wanted, "reorder them")


def gauges_of(outputs: Sequence[Output]) -> tuple[Gauge, ...]:
    """Returns what has to be added up for some outputs, each gauge once."""
    return tuple(dict.fromkeys(gauge for each in outputs for gauge in each.gauges))


def gauging(trial: Any, outputs: Sequence[Output], title: str) -> Any:
    """Returns a trial that adds up what some outputs need.

    Raises:
        ValueError: If the algorithm's loop cannot.
    """
    gauges = gauges_of(outputs)
    if not gauges:
        return trial
    if not callable(getattr(trial, "gauging", None)):
        needy = next(each.name for each in outputs if each.gauges)
        refuse("outputs", needy, f"left out with {title}", "its loop adds nothing up for outputs")
    for each in outputs:
        try:
            trial.gauging(each.gauges)
        except Refusal as error:
            # What was asked for is the output, not what it needs.
            named = Refusal(error.field, each.name, *error.marked)
            raise (named if error.field == "outputs" else error) from None
    return trial.gauging(gauges)


def described(output: Output) -> str:
    """Returns what tells an output from others: its name, and its source if it is one's own."""
    if output is _shipped().get(output.name):
        return output.name
    functions = [output.of, *(x for each in output.gauges for x in each if callable(x))]
    about = output.name, output.label, output.units, output.dims
    gauges = [(each.name, each.dims) for each in output.gauges]
    return f"{output.name} {code_digest(repr((about, gauges)), *functions)}"


def stated(outputs: Sequence[Output]) -> dict[str, list[str]]:
    """Returns what a study says of them; nothing where none is asked for."""
    return {"outputs": [described(each) for each in outputs]} if outputs else {}


def of_study(said: Sequence[str]) -> tuple[Output, ...]:
    """Returns the outputs that a study states.

    Raises:
        ValueError: If one is of a plug-in that is not loaded, or says something else now.
    """
    known = {described(each): each for each in further().values()}
    for each in said:
        if each not in known:
            remedy = "load the plug-in that defines it, as it was"
            refuse("outputs", each.partition(" ")[0], "known here", remedy)
    return tuple(known[each] for each in said)


def made(
    output: Output,
    arrays: Callable[[str], np.ndarray],
    facts: Mapping[str, Any],
    size: Callable[[str], int],
) -> np.ndarray:
    """Returns an output of what is recorded.

    Args:
        output: Which.
        arrays: Returns what some seeds have recorded, by name.
        facts: The attributes of their `Record`.
        size: Returns the length of a dimension.

    Raises:
        ValueError: If it has another shape than it says, or asks for what is not recorded.
    """
    found = np.asarray(output.of(Record(arrays, facts, output.gauges)))
    wanted = tuple(map(size, output.dims))
    if found.ndim != 1 + len(wanted) or found.shape[1:] != wanted:
        allowed = f"[seed, {', '.join(map(str, wanted))}]" if wanted else "[seed]"
        refuse(f"{output.name}.of", Shown(f"an array {found.shape}"), allowed, "mend it")
    # Counts of one's own are kept as real numbers, which have a NaN.
    counts = found.dtype.kind in "biu" and output.dtype == np.float64
    return found.astype(np.float64) if counts else found
