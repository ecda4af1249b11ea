"""Options of an algorithm and its study, for run, sweep, bounds and ledger."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fmab_jax.cli.options import Command, answer, choose, find_default, visible, wants_help
from fmab_jax.errors import Refusal, refuse
from fmab_jax.parameters import UNSET, Parameter, parameters_of

if TYPE_CHECKING:
    from fmab_jax.algorithms.base import Algorithm
    from fmab_jax.sampling.shapes import Record
    from fmab_jax.sweeps.api import Study

# Most letters of options in a file name.
_LONGEST = 120
_EXAMPLES = ("--agents 5 --arms 10", "--horizon 1e6 --arms 10")
FIELD_OPTIONS = {"store": "out", "relative": "until", "level": "until_level"}
"""Options of fields that have another name in the package."""


def build_command(
    name: str,
    words: Sequence[str],
    options: type,
    text: str,
    *,
    allow_lists: bool = True,
    alternatives: Iterable[str] = (),
    owners: Mapping[str, type[Algorithm]] | None = None,
    fields: Collection[str] | None = None,
    several: bool = False,
    examples: Sequence[str] = (),
) -> Command:
    """Builds a command whose first word names an algorithm, with that algorithm's options.

    Args:
        name: Such as "fmab run".
        words: The words after the command.
        options: Dataclass of its own options. An option in its ``shared`` also sets the algorithm's
            parameter of that name.
        text: Help of the command without an algorithm.
        allow_lists: Whether an option takes several values.
        alternatives: Other valid first words, for refusals.
        owners: Algorithms by name; all by default.
        fields: Fields of a study that become options besides the algorithms' parameters, such as
            "horizon"; all by default.
        several: Whether the first words name one algorithm each.
        examples: Options of examples in help; by default those of the algorithm.
    """
    from fmab_jax.algorithms.base import ALGORITHMS
    from fmab_jax.sweeps.fields import FIELDS

    by_name = dict(sorted((ALGORITHMS.by_name() if owners is None else owners).items()))
    if words[:1] in ([], ["-h"], ["--help"]) and wants_help(words):
        _answer_algorithms(name, text, by_name)
    count = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    names = words[: count if several else min(count, 1)]
    classes = _choose_algorithms(name, names, by_name, alternatives)
    parameters: dict[str, Parameter] = {}
    lists: set[str] = set()
    own_names = {field.name for field in dataclasses.fields(options)}
    for table, members in _list_options(classes, fields).items():
        for option, parameter in members.items():
            if option in getattr(options, "shared", ()) and "mechanism" in members:
                continue
            if option in own_names | {*parameters}:
                line = f"{option}: must have a name of its own; rename the parameter"
                raise Refusal.line(line)
            parameters[option] = parameter
            is_swept = table != "until" and option not in (*FIELDS, "means", "means_error")
            if allow_lists and (is_swept or parameter.kind.takes_list):
                lists.add(option)
    name = f"{name} {' '.join(map(visible, names))}"
    text = "\n".join(map(_name_algorithm, classes))
    if len(classes) == 1:
        shown = examples or classes[0].examples or _EXAMPLES
        text = _describe_algorithm(classes[0], name, shown)
    defaults = {"agents": classes[0].usual_agents}
    rest = [*words[len(names) :]]
    return Command(name, options, text, rest, parameters, defaults, lists, tuple(classes))


def _answer_algorithms(name: str, text: str, by_name: Mapping[str, type[Algorithm]]) -> None:
    """Prints the help of a command without an algorithm."""
    width = max(map(len, by_name))
    lines = [f"  {label:<{width}} {_first_line(owner)}" for label, owner in by_name.items()]
    text = "\n".join([text, "Algorithms, each with --help:", *lines])
    answer(name, "ALGORITHM [options]", text)


def _choose_algorithms(
    name: str,
    words: Sequence[str],
    by_name: Mapping[str, type[Algorithm]],
    alternatives: Iterable[str],
) -> list[type[Algorithm]]:
    """Returns the algorithms that words name, each once."""
    from fmab_jax.algorithms.base import ALGORITHMS

    aliases, choices = ALGORITHMS.with_aliases(by_name), [*by_name, *alternatives]
    hint = ", or load an algorithm of your own with --plugin" * bool(words)
    if not words:
        choose(None, choices, name, hint, "algorithm")
    classes = [
        aliases.get(word) or by_name[choose(word, choices, name, hint, "algorithm")]
        for word in words
    ]
    for word, owner in zip(words, classes, strict=True):
        if classes.count(owner) > 1:
            raise Refusal.line(f"{word}: must be named once; drop one")
    return classes


def _first_line(owner: type) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _name_algorithm(owner: type[Algorithm]) -> str:
    """Returns the title of an algorithm, and what it is, in a line."""
    return f"{owner.title or owner.name}. {_first_line(owner)}"


def _describe_algorithm(owner: type[Algorithm], name: str, examples: Sequence[str]) -> str:
    """Returns the help of an algorithm, with examples."""
    from fmab_jax.algorithms.base import read_statement

    text = _name_algorithm(owner)
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
    order = ("parameters", "problem", "", "until")
    if names is None:
        return {table: tables[table] for table in order}
    return {
        table: {n: p for n, p in tables[table].items() if table == "parameters" or n in names}
        for table in order
    }


def build_document(values: Record, owners: Sequence[type[Algorithm]]) -> Record:
    """Builds the study file that is equivalent to options.

    Args:
        values: The values of a command's parameters; dimensions have their order.
        owners: The algorithms' classes.
    """
    from fmab_jax.sweeps.subjects import RandomProblem

    names, tables = [owner.name for owner in owners], _list_options(owners)
    document: Record = {"algorithm": names if len(names) > 1 else names[0]}
    by_table = {
        table: {n: _drop_list(x, members[n]) for n, x in values.items() if n in members}
        for table, members in tables.items()
    }
    # Defaults are written out, so that a saved study does not depend on them.
    document |= by_table[""] | _list_defaults(tables[""], by_table[""])
    problem, parameters = by_table["problem"], by_table["parameters"]
    if "means" not in problem:
        own_defaults = {"agents": owners[0].usual_agents}
        problem |= _list_defaults(parameters_of(RandomProblem), problem, own_defaults)
    if "leak" not in document:
        complete = [add_suggestions(owner, parameters) for owner in owners]
        if len(owners) > 1 and any(x != parameters for x in complete):
            allowed = "given with several algorithms, which count epsilon in different ways"
            remedy, noiseless = "add --leak 1", [x.name for x in owners if not _has_noise(x)]
            if noiseless:
                remedy = f"{noiseless[0]} has no noise: run it apart, or add --epsilon none"
            refuse("leak", UNSET, allowed, remedy)
        parameters = complete[0]
    document |= {"parameters": parameters, "problem": problem}
    until = {tables["until"][n].name: x for n, x in by_table["until"].items()}
    return document | ({"until": until} if until else {})


def _has_noise(owner: type[Algorithm]) -> bool:
    from fmab_jax.analysis.leaks import NOISE

    return any(name in parameters_of(owner) for name in NOISE)


def _drop_list(value: object, parameter: Parameter) -> object:
    """Returns the value of an option; one word is no list, except of names."""
    from fmab_jax.sweeps.fields import Names

    is_one = isinstance(value, list) and len(value) == 1
    return value[0] if is_one and not isinstance(parameter.kind, Names) else value  # type: ignore[index]


def _list_defaults(
    parameters: Mapping[str, Parameter], values: Record, changes: Mapping[str, object] | None = None
) -> Record:
    """Returns the defaults of the command line for what has no value."""
    defaults = {name: find_default(p, changes or {}) for name, p in parameters.items()}
    empty = (UNSET, None, ())
    return {n: x for n, x in defaults.items() if n not in values and x not in empty}


def add_suggestions(owner: type[Algorithm], parameters: Record) -> Record:
    """Adds the suggested values of parameters that an algorithm requires."""
    complete, declared = dict(parameters), parameters_of(owner)
    # Other algorithms may have further parameters.
    values = {n: v[0] if isinstance(v, list) else v for n, v in parameters.items() if n in declared}
    for name, parameter in declared.items():
        if parameter.suggested is not UNSET and name not in complete:
            try:
                owner(**values)
            except Refusal as error:
                if error.field == name:
                    complete[name] = parameter.suggested
    return complete


def build_study(values: Record, owners: Sequence[type[Algorithm]]) -> tuple[Record, Study]:
    """Builds a document and its study; checks all combinations of values."""
    from fmab_jax.sweeps.api import Study

    document = build_document(values, owners)
    study = Study.from_document(document)
    _ = study.points  # refuses inconsistent values
    return document, study


def choose_file_name(start: str, content: str, values: Mapping[str, object]) -> str:
    """Builds a file name from options: fmab-cdp-epsilon-0.5-1a2b3c4d.

    Args:
        start: Start of the name, and the whole name without options.
        content: Identity of the content; another content has another name.
        values: The options that change the file, by name.
    """
    words = [str(x) for name, value in values.items() for x in (name, value)]
    text = re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(words)).strip("-")[:_LONGEST]
    identity = hashlib.sha256(repr((content, values)).encode(errors="surrogatepass")).hexdigest()
    return f"{start}-{text}-{identity[:8]}" if words else start
