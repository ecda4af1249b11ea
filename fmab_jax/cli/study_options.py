"""Options of an algorithm and its study, for run, sweep and bounds."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import (
    Command,
    answer,
    choose,
    find_default,
    option,
    visible,
    wants_help,
    with_parameters,
)
from fmab_jax.errors import Refusal, refuse
from fmab_jax.parameters import LEAK, UNSET, VIEW, Choice, Parameter, Real, Whole, parameters_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.sampling.shapes import Record
    from fmab_jax.sweeps.study import Study

# Most letters of options in a file name.
_LONGEST = 120


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of every study, besides parameters of algorithm and problem."""

    horizon: tuple[float, ...] = option((), kind=Whole(), metavar="N", default_text="100000")
    """T, slots that every agent plays; such as 1e6."""
    means: tuple[str, ...] = option((), metavar="FILE", default_text="each seed draws its own")
    """Fixed means in [0, 1], .csv (a row per agent, a column per arm, below a line of names or
    not) or .npz; one row is shared by all agents, and --agents says how many."""
    means_error: float | None = option(None, kind=Real(low=0.0), default_text="the means are exact")
    """Standard error of the means in FILE: each seed draws normal means around them."""
    seeds: int = option(1000, kind=Whole(low=1, high=10**8))
    """How many trials of each configuration; with --until, how many at first."""
    root_seed: int = option(0, kind=Whole(high=2**32 - 1))
    """Selects all randomness."""
    times: tuple[float, ...] = option((), kind=Whole(), metavar="N", default_text="100")
    """How many slots to record; two or more numbers are the slots themselves."""
    log_time: bool = option(False)
    """Space the recorded slots evenly in log t."""
    outputs: tuple[str, ...] = option((), metavar="OUTPUT", default_text="the usual ones")
    """What comes out besides, such as regret_by_agent; fmab list shows them."""
    keep: str = option("curves", kind=Choice(options=("curves", "summary")))
    """Keep every seed's curve, or moments, a histogram and counts of very many seeds."""
    until: float | None = option(None, kind=Real(), metavar="RELATIVE", default_text="off")
    """Double the seeds of each configuration until its band's half-width is at most this share of
    the mean; needs --keep summary."""
    max_seeds: int | None = option(None, kind=Whole(), default_text="1000000")
    """Most seeds of a configuration, with --until."""
    leak: tuple[float, ...] = option((), kind=LEAK.kind, default_text="that of epsilon")
    """What one reward leaks in the view, the same for every algorithm; sets epsilon."""
    view: str | None = option(None, kind=VIEW.kind, default_text="messages")
    """Where the leak is counted: all messages, sums over agents alone, or actions alone."""


def build_command(
    name: str,
    words: Sequence[str],
    base: type,
    *,
    allow_lists: bool = True,
    alternatives: Iterable[str] = (),
    owners: Mapping[str, type[Algorithm]] | None = None,
    has_random_problem: bool = True,
    several: bool = False,
) -> Command:
    """Builds a command whose first word names an algorithm, with that algorithm's options.

    With ``several``, the first words name one algorithm each.

    Args:
        name: Such as "fmab run".
        words: The words after the command.
        base: Dataclass of its own options, in a module whose docstring is the command's help.
        allow_lists: Whether an option takes several values.
        alternatives: Other valid first words, for refusals.
        owners: Algorithms by name; all by default.
        has_random_problem: Whether there are options for a random problem.
        several: Whether more than one word may name an algorithm.
    """
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.sweeps.subjects import RandomProblem

    by_name = dict(sorted((ALGORITHMS.by_name() if owners is None else owners).items()))
    aliases = ALGORITHMS.with_aliases(by_name)
    first = words[0] if words else None
    if wants_help(words) and first in (None, "-h", "--help"):
        width = max(map(len, by_name))
        algorithm_list = "\n".join(
            f"  {label:<{width}} {_first_line(owner)}" for label, owner in by_name.items()
        )
        text = str(sys.modules[base.__module__].__doc__)
        answer(
            name, "ALGORITHM [options]", f"{text}\nAlgorithms, each with --help:\n{algorithm_list}"
        )
    if first is not None and first.startswith("-"):
        first = None  # an option, where the algorithm is missing
    hint = ", or load an algorithm of your own with --plugin" * bool(first)
    count = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    names: Sequence[str | None] = words[: max(1, count)] if several and first else [first]
    choices = [*by_name, *alternatives]
    chosen = [
        aliases.get(str(word)) or by_name[choose(word, choices, name, hint, "algorithm")]
        for word in names
    ]
    for word, owner in zip(names, chosen, strict=True):
        if chosen.count(owner) > 1:
            raise Refusal.line(f"{word}: must be named once; drop one")
    owner = chosen[0]
    name = f"{name} {' '.join(visible(str(word)) for word in names)}"
    bases = (*chosen, RandomProblem) if has_random_problem else (owner,)
    defaults = {"agents": owner.usual_agents}
    options = with_parameters(base, bases, defaults, allow_lists=allow_lists)
    examples = (owner.examples if allow_lists else ()) or (
        "--agents 5 --arms 10",
        "--horizon 1e6 --arms 10",
    )
    other = "--agents 5 --runs 1e6" if hasattr(base, "runs") else "--agents 5 --rewards 10"
    help_text = _describe_algorithm(
        owner, name, examples if has_random_problem else ("--agents 5", other)
    )
    return Command(name, options, help_text, [*words[len(names) :]], tuple(chosen))


def _first_line(owner: type) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _describe_algorithm(owner: type[Algorithm], name: str, examples: Sequence[str]) -> str:
    """Returns the help of an algorithm, with examples."""
    from fmab_jax.algorithms.base import read_statement

    text = f"{owner.title or owner.name}. {_first_line(owner)}"
    for field in ("communication", "trusted"):
        text += f"\n{field.capitalize()}: {read_statement(owner, field)}."
    text += f"\nSource: {owner.source}." * bool(owner.source)
    return text + "\n\nExamples:\n" + "\n".join(f"  {name} {e}".rstrip() for e in examples)


def build_document(
    options: StudyOptions, owners: Sequence[type[Algorithm]], typed: Sequence[str]
) -> Record:
    """Builds the study file that is equivalent to options.

    Args:
        options: `StudyOptions` with the parameters of the algorithms and of a random problem.
        owners: The algorithms' classes.
        typed: Names of the typed options; dimensions have their order.
    """
    names = [owner.name for owner in owners]
    study: Record = {
        "algorithm": names if len(names) > 1 else names[0],
        "horizon": _unwrap_single(options.horizon) if options.horizon else 100_000,
        "seeds": options.seeds,
        "root_seed": options.root_seed,
        "keep": options.keep,
        "spacing": "log" if options.log_time else "linear",
    }
    if options.outputs:
        study["outputs"] = list(options.outputs)
    if options.times:
        study["times"] = _unwrap_single(options.times)
    if options.leak:
        study["leak"] = _unwrap_single(options.leak)
    if options.view is not None:
        study["view"] = options.view
    study |= build_tables(vars(options), owners, typed)
    until = {"relative": options.until, "max_seeds": options.max_seeds}
    if until := {name: value for name, value in until.items() if value is not None}:
        study["until"] = until
    return study


def build_tables(
    options: Mapping[str, object], owners: Sequence[type[Algorithm]], typed: Sequence[str]
) -> dict[str, Record]:
    """Builds [parameters] and [problem] of a document from options by name."""
    from fmab_jax.sweeps.subjects import RandomProblem

    def collect(parameters: Mapping[str, Parameter]) -> Record:
        names = dict.fromkeys([*(name for name in typed if name in parameters), *parameters])
        values = {name: options[name] for name in names}
        return {n: _unwrap_single(v) for n, v in values.items() if v is not UNSET and v != ()}

    random_parameters = parameters_of(RandomProblem)
    if options.get("means_error") is not None and not options["means"]:
        refuse("means_error", options["means_error"], "given with --means", "add --means FILE")
    problem = collect(random_parameters)
    if options["means"]:
        problem["means"] = _unwrap_single(options["means"])
        if options.get("means_error") is not None:
            problem["means_error"] = options["means_error"]
    else:
        # Defaults are written out, so that a saved study does not depend on them.
        plain = {
            n: find_default(p, {"agents": owners[0].usual_agents})
            for n, p in random_parameters.items()
        }
        problem |= {n: v for n, v in plain.items() if v is not None and n not in problem}
    parameters = collect({n: p for owner in owners for n, p in parameters_of(owner).items()})
    if not options.get("leak"):
        complete = [add_suggestions(owner, parameters) for owner in owners]
        if len(owners) > 1 and any(values != parameters for values in complete):
            allowed = "given with several algorithms, which count epsilon in different ways"
            refuse("leak", UNSET, allowed, "add --leak 1")
        parameters = complete[0]
    return {"parameters": parameters, "problem": problem}


def add_suggestions(owner: type[Algorithm], parameters: Record) -> Record:
    """Adds the suggested values of parameters that an algorithm requires."""
    complete = dict(parameters)
    for name, parameter in parameters_of(owner).items():
        if parameter.suggested is not UNSET and name not in complete:
            try:
                owner(**{n: v[0] if isinstance(v, list) else v for n, v in complete.items()})
            except Refusal as error:
                if error.field == name:
                    complete[name] = parameter.suggested
    return complete


def build_study(
    options: StudyOptions, owners: Sequence[type[Algorithm]], typed: Sequence[str]
) -> tuple[Record, Study]:
    """Builds a document and its study; checks all combinations of values."""
    from fmab_jax.sweeps import study_file

    content = build_document(options, owners, typed)
    study = study_file.build_study(content)
    _ = study.points  # refuses inconsistent values
    return content, study


FIELD_OPTIONS = {"store": "out", "relative": "until", "until.relative": "until"}
"""Options of fields that have another name in the package."""


def _unwrap_single(values: object) -> object:
    if not isinstance(values, tuple):
        return values
    return values[0] if len(values) == 1 else list(values)


def choose_file_name(
    start: str, content: str, options: DataclassInstance, skip: Iterable[str]
) -> str:
    """Builds a file name from options: fmab-cdp-epsilon-0.5-1a2b3c4d.

    Args:
        start: Start of the name, and the whole name without options.
        content: Identity of the content; another content has another name.
        options: Options of a command.
        skip: Options that do not change the results, or that ``start`` contains.
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
