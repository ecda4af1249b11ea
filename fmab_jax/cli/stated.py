"""What run, sweep and bounds share: an algorithm's options, the study they state, its file name."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fmab_jax.cli.options import (
    Command,
    answer,
    chosen,
    default_of,
    option,
    visible,
    wants_help,
    with_parameters,
)
from fmab_jax.errors import Refusal
from fmab_jax.parameters import UNSET, Choice, Parameter, Real, Whole, parameters_of

# Letters that options may take in the name of a file.
_LONGEST = 120


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What every study has, besides the parameters of its algorithm and problem."""

    horizon: tuple[Any, ...] = option((), kind=Whole(), metavar="N", shown="100000")
    """T, slots that every agent plays; such as 1e6."""
    means: tuple[str, ...] = option((), metavar="FILE", shown="each seed draws its own")
    """Fixed means in [0, 1], .csv (a row per agent, a column per arm, below a line of names or
    not) or .npz; one row is shared by all agents, and --agents says how many."""
    seeds: Any = option(1000, kind=Whole(low=1, high=10**8))
    """How many trials of each configuration; with --until, how many at first."""
    root_seed: Any = option(0, kind=Whole(high=2**32 - 1))
    """Selects all randomness."""
    times: tuple[Any, ...] = option((), kind=Whole(), metavar="N", shown="100")
    """How many slots to record; two or more numbers are the slots themselves."""
    log_time: bool = option(False)
    """Space the recorded slots evenly in log t."""
    outputs: tuple[str, ...] = option((), metavar="OUTPUT", shown="the usual ones")
    """What comes out besides, such as regret_by_agent; fmab outputs lists them."""
    keep: str = option("curves", kind=Choice(options=("curves", "summary")))
    """Keep every seed's curve, or moments, a histogram and counts of very many seeds."""
    until: Any = option(None, kind=Real(), metavar="RELATIVE", shown="off")
    """Double the seeds of each configuration until its band's half-width is at most this share of
    the mean; needs --keep summary."""
    max_seeds: Any = option(None, kind=Whole(), shown="1000000")
    """Most seeds of a configuration, with --until."""


def command_of(
    name: str,
    words: Sequence[str],
    base: type,
    *,
    several: bool = True,
    others: Iterable[str] = (),
    known: Mapping[str, type] | None = None,
    drawn: bool = True,
) -> Command:
    """Returns a command whose first word names an algorithm, with that algorithm's options.

    Args:
        name: Such as "fmab run".
        words: After the command.
        base: Dataclass of its own options, in a module whose docstring is the command's help.
        several: Whether an option takes several values.
        others: What may stand in place of an algorithm.
        known: Algorithms; all by default.
        drawn: Whether there are options for a drawn problem.
    """
    from fmab_jax.algorithms import base as algorithms
    from fmab_jax.sweeps.subjects import Drawn

    known = dict(sorted((algorithms.collect_algorithms() if known is None else known).items()))
    first = words[0] if words else None
    if wants_help(words) and first in (None, "-h", "--help"):
        width = max(map(len, known))
        listed = "\n".join(f"  {each:<{width}} {_summary(owner)}" for each, owner in known.items())
        text = str(sys.modules[base.__module__].__doc__)
        answer(name, "ALGORITHM [options]", f"{text}\nAlgorithms, each with --help:\n{listed}")
    more = ", or load an algorithm of your own with --plugin" * bool(first)
    owner: Any = known[chosen(first, [*known, *others], name, more)]
    name = f"{name} {visible(str(first))}"
    owners = (owner, Drawn) if drawn else (owner,)
    usual = {"agents": owner.usual_agents}
    options = with_parameters(base, owners, usual, several=several)
    own = (owner.examples if several else ()) or ("--agents 5 --arms 10", "--horizon 1e6 --arms 10")
    told = _help(owner, name, own if drawn else ("--agents 5", "--agents 5 --runs 1e6"))
    return Command(name, options, told, [*words[1:]], owner)


def _summary(owner: type) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _help(owner: Any, name: str, examples: Sequence[str]) -> str:
    """Returns what an algorithm's class says of it, with examples."""
    from fmab_jax.algorithms.base import read_statement

    text = f"{owner.title or owner.name}. {_summary(owner)}"
    for what in ("communication", "trusted"):
        text += f"\n{what.capitalize()}: {read_statement(owner, what)}."
    text += f"\nSource: {owner.source}." * bool(owner.source)
    return text + "\n\nExamples:\n" + "\n".join(f"  {name} {e}".rstrip() for e in examples)


def document(options: Any, owner: Any, typed: Sequence[str]) -> dict[str, Any]:
    """Returns the study file that says the same as options.

    Args:
        options: A `Stated` with the parameters of the algorithm and of a drawn problem.
        owner: The algorithm's class.
        typed: Names of the options given; dimensions have their order.
    """
    study: dict[str, Any] = {
        "algorithm": owner.name,
        "horizon": _one_or_more(options.horizon) if options.horizon else 100_000,
        "seeds": options.seeds,
        "root_seed": options.root_seed,
        "keep": options.keep,
        "spacing": "log" if options.log_time else "linear",
    }
    if options.outputs:
        study["outputs"] = list(options.outputs)
    if options.times:
        study["times"] = _one_or_more(options.times)
    study |= tables_of(options, owner, typed)
    until = {"relative": options.until, "max_seeds": options.max_seeds}
    if until := {name: value for name, value in until.items() if value is not None}:
        study["until"] = until
    return study


def tables_of(options: Any, owner: Any, typed: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the tables of a document: [parameters] and [problem]; arguments as in `document`."""
    from fmab_jax.sweeps.subjects import Drawn

    def given(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
        names = dict.fromkeys([*(name for name in typed if name in parameters), *parameters])
        values = {name: getattr(options, name) for name in names}
        return {n: _one_or_more(v) for n, v in values.items() if v is not UNSET and v != ()}

    drawn = parameters_of(Drawn)
    problem = given(drawn)
    if options.means:
        problem["means"] = _one_or_more(options.means)
    else:
        # Written out, so that a saved study does not depend on defaults.
        plain = {n: default_of(p, {"agents": owner.usual_agents}) for n, p in drawn.items()}
        problem |= {n: v for n, v in plain.items() if v is not None and n not in problem}
    return {"parameters": suggested(owner, given(parameters_of(owner))), "problem": problem}


def suggested(owner: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters with what the command line takes for those that an algorithm asks for."""
    complete = dict(parameters)
    for name, parameter in parameters_of(owner).items():
        if parameter.suggested is not UNSET and name not in complete:
            try:
                owner(**{n: v[0] if isinstance(v, list) else v for n, v in complete.items()})
            except Refusal as error:
                if error.field == name:
                    complete[name] = parameter.suggested
    return complete


def study_of(options: Any, owner: Any, typed: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """Returns a document and its study, whose combinations of values are all checked."""
    from fmab_jax.sweeps import study_file

    stated = document(options, owner, typed)
    study = study_file.study_of(stated)
    _ = study.points  # refuses what does not go together
    return stated, study


RENAMED = {"store": "out", "relative": "until", "until.relative": "until"}
"""Options of what the package calls otherwise."""


def _one_or_more(values: Any) -> Any:
    if not isinstance(values, tuple):
        return values
    return values[0] if len(values) == 1 else list(values)


def file_name(start: str, content: str, options: Any, skip: Iterable[str]) -> str:
    """Returns a name that says the options given: fmab-cdp-epsilon-0.5-1a2b3c4d.

    Args:
        start: What it begins with, and all of it where no option is given.
        content: What the file holds: another one has another name.
        options: Of a command.
        skip: Options that change no result, or that ``start`` says.
    """
    fields = [field for field in dataclasses.fields(options) if field.name not in skip]
    values = {field.name: getattr(options, field.name) for field in fields}
    words: list[str] = []
    for field in fields:
        value = values[field.name]
        if value != field.default:
            words += [field.name, *map(str, value if isinstance(value, tuple) else [value])]
    text = re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(words))[:_LONGEST]
    identity = hashlib.sha256(repr((content, values)).encode(errors="surrogatepass")).hexdigest()
    return f"{start}-{text}-{identity[:8]}" if words else start
