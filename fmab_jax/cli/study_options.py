"""Options of an algorithm and its study, for run, sweep and bounds."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fmab_jax.cli.options import (
    Command,
    answer,
    choose,
    find_default,
    visible,
    wants_help,
    with_parameters,
)
from fmab_jax.errors import Refusal, refuse
from fmab_jax.parameters import UNSET, Parameter, parameters_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.sampling.shapes import Record
    from fmab_jax.sweeps.api import Study

# Most letters of options in a file name.
_LONGEST = 120


def build_command(
    name: str,
    words: Sequence[str],
    base: type,
    *,
    allow_lists: bool = True,
    alternatives: Iterable[str] = (),
    owners: Mapping[str, type[Algorithm]] | None = None,
    fields: Collection[str] | None = None,
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
        fields: Fields of a study that become options besides the algorithms' parameters, such as
            "horizon"; all by default.
        several: Whether more than one word may name an algorithm.
    """
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.sweeps.fields import FIELDS

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
    tables = _list_options(chosen, fields)
    lists = {
        field
        for table, parameters in tables.items()
        for field, parameter in parameters.items()
        if parameter.kind.takes_list or (table != "until" and field not in (*FIELDS, "means_error"))
    }
    defaults = {"agents": owner.usual_agents}
    options = with_parameters(base, tables, defaults, lists if allow_lists else ())
    has_random_problem = "arms" in tables["problem"]
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


def _list_options(
    owners: Sequence[type[Algorithm]], names: Collection[str] | None = None
) -> dict[str, dict[str, Parameter]]:
    """Returns the parameters of a study's tables by option, those of the algorithms first."""
    from fmab_jax.sweeps.fields import UNTIL_OPTIONS, list_tables

    tables = list_tables(owners)
    del tables[""]["algorithm"]
    tables["until"] = {UNTIL_OPTIONS.get(name, name): p for name, p in tables["until"].items()}
    return {
        table: {n: p for n, p in tables[table].items() if table == "parameters" or n in names}
        if names is not None
        else tables[table]
        for table in ("parameters", "problem", "", "until")
    }


def build_document(
    options: object, owners: Sequence[type[Algorithm]], typed: Sequence[str]
) -> Record:
    """Builds the study file that is equivalent to options.

    Args:
        options: The fields of a study that are options, as attributes.
        owners: The algorithms' classes.
        typed: Names of the typed options; dimensions have their order.
    """
    from fmab_jax.sweeps.subjects import RandomProblem

    names, tables = [owner.name for owner in owners], _list_options(owners)
    document: Record = {"algorithm": names if len(names) > 1 else names[0]}
    values = {table: _collect(options, tables[table], typed) for table in tables}
    # Defaults are written out, so that a saved study does not depend on them.
    document |= values[""] | _list_defaults(tables[""], values[""])
    problem, parameters = values["problem"], values["parameters"]
    if "means" not in problem:
        usual = {"agents": owners[0].usual_agents}
        problem |= _list_defaults(parameters_of(RandomProblem), problem, usual)
    if "leak" not in document:
        complete = [add_suggestions(owner, parameters) for owner in owners]
        if len(owners) > 1 and any(x != parameters for x in complete):
            allowed = "given with several algorithms, which count epsilon in different ways"
            refuse("leak", UNSET, allowed, "add --leak 1")
        parameters = complete[0]
    document |= {"parameters": parameters, "problem": problem}
    until = {p.name: values["until"][n] for n, p in tables["until"].items() if n in values["until"]}
    return document | ({"until": until} if until else {})


def _collect(options: object, parameters: Mapping[str, Parameter], typed: Sequence[str]) -> Record:
    """Returns the values of options, typed ones first; one value is no list."""
    from fmab_jax.sweeps.fields import Names

    names = dict.fromkeys([*(name for name in typed if name in parameters), *parameters])
    values = {name: getattr(options, name, UNSET) for name in names}
    collected: Record = {}
    for name, value in values.items():
        if value is UNSET or value == ():
            continue
        if isinstance(value, tuple):
            is_one = len(value) == 1 and not isinstance(parameters[name].kind, Names)
            value = value[0] if is_one else [*value]
        collected[name] = value
    return collected


def _list_defaults(
    parameters: Mapping[str, Parameter], values: Record, usual: Mapping[str, object] | None = None
) -> Record:
    """Returns the defaults of the command line for what has no value."""
    defaults = {name: find_default(p, usual or {}) for name, p in parameters.items()}
    missing = (UNSET, None, ())
    return {n: x for n, x in defaults.items() if n not in values and x not in missing}


def add_suggestions(owner: type[Algorithm], parameters: Record) -> Record:
    """Adds the suggested values of parameters that an algorithm requires."""
    complete, known = dict(parameters), parameters_of(owner)
    # Other algorithms may have further parameters.
    values = {n: v[0] if isinstance(v, list) else v for n, v in parameters.items() if n in known}
    for name, parameter in known.items():
        if parameter.suggested is not UNSET and name not in complete:
            try:
                owner(**values)
            except Refusal as error:
                if error.field == name:
                    complete[name] = parameter.suggested
    return complete


def build_study(
    options: object, owners: Sequence[type[Algorithm]], typed: Sequence[str]
) -> tuple[Record, Study]:
    """Builds a document and its study; checks all combinations of values."""
    from fmab_jax.sweeps.api import Study

    document = build_document(options, owners, typed)
    study = Study.from_document(document)
    _ = study.points  # refuses inconsistent values
    return document, study


FIELD_OPTIONS = {"store": "out", "relative": "until", "level": "until_level"}
"""Options of fields that have another name in the package."""


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
