"""Studies as TOML: strict about keys and types, and written so that they run again the same.

A study file states what `fmab_jax.sweep` takes. Its keys are the parameters of the algorithms that
it names, and those of a problem whose means are drawn. Lists are swept, "none" is None where a
parameter says what that means. Algorithms are named, never loaded::

    algorithm = 'cdp'           # or a list of names; see fmab algorithms
    horizon = 1e6
    seeds = 1000

    [problem]                   # or means = "means.csv"
    agents = 50
    arms = 100

    [parameters]
    epsilon = [0.1, 0.3, 0.5, 1]
    participation = [0.2, 1]
    rounds = ["none", 2, 3]
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import tomli_w

from fmab_jax.algorithms.base import named
from fmab_jax.core.laws import law_of
from fmab_jax.core.problems import Problem
from fmab_jax.errors import Refusal, Shown, did_you_mean, number_of, refuse, shown
from fmab_jax.files import checked_path, read_input, whole_file
from fmab_jax.parameters import UNSET, Parameter, parameters_of
from fmab_jax.run.outputs import of_study
from fmab_jax.sweeps.makers import Drawn
from fmab_jax.sweeps.precision import Precision, until_precise
from fmab_jax.sweeps.study import Study, state

_MAX_BYTES = 1 << 16
# A document, a table, labels, values, components, a pair.
_MAX_DEPTH = 8
# On one line, besides those of numbers.
_MAX_DOTS = 200
_NUMBER = re.compile(rb"(?<![\w.+-])[+-]?[0-9_]+\.[0-9_]+(e[+-]?[0-9_]+)?(?![\w.+-])", re.I)
_TOP = (
    *("algorithm", "horizon", "seeds", "root_seed", "times", "spacing", "sum_agents", "keep"),
    *("outputs", "parameters", "problem", "until"),
)
_TABLES = ("parameters", "problem", "until")


@contextmanager
def told(document: Mapping[str, Any]) -> Iterator[None]:
    """Has a refusal name what a study file states: ``[parameters] epsilon = 0: must be ...``.

    Args:
        document: What the file holds; empty where reading it is refused.
    """
    try:
        yield
    except Refusal as error:
        raise _told(error, document) from None


def _told(error: Refusal, document: Mapping[str, Any]) -> Refusal:
    table, _, name = re.sub(r"\[\d+\]$", "", error.field).rpartition(".")
    if not table and name not in _TOP and document:
        table = next((each for each, keys in _keys(document).items() if name in keys), "no table")
    if name in ("study", "") or table not in ("", *_TABLES):
        return error
    missing = error.allowed.startswith("given")
    key = f"[{table}] " * bool(table) + name + f" = {error.value}" * (not missing)
    return Refusal.line(f"{key}: must be {error.allowed}; {error.remedy}")


def read_study(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a study file into a document, for `study_of`.

    Raises:
        ValueError: If it is missing, too large, not TOML, or has unknown keys.
    """
    data = read_input(path, "study", _MAX_BYTES, "TOML file")
    for line in data.split(b"\n"):
        # A key of thousands of dots costs gigabytes to parse. Keys do not span lines.
        if not line.lstrip().startswith(b"#") and _NUMBER.sub(b"", line).count(b".") > _MAX_DOTS:
            _refuse_depth(path)
    try:
        document = tomllib.loads(data.decode("utf-8-sig"), parse_float=_float)
    except RecursionError:
        _refuse_depth(path)
    except ValueError as error:
        refuse("study", os.fspath(path), "TOML", " ".join(str(error).split())[:100])
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH):
        if any(isinstance(item, str) and "\0" in item for each in level for item in _parts(each)):
            remedy = "drop the \\u0000"
            refuse("study", os.fspath(path), "free of NUL characters", remedy)
        level = [item for each in level for item in _items(each)]
    if level:
        _refuse_depth(path)
    check_document(document)
    for name, value in document.items():
        for key, item in value.items() if name in _TABLES else [("", value)]:
            _refuse_unheld(f"{name}.{key}".rstrip("."), item)
    return document


def _float(text: str) -> float | Shown:
    """Reads a number, and leaves one that a float turns into infinity or into zero as it is."""
    return Shown(text) if number_of(text.replace("_", "")) is None else float(text)


def _refuse_unheld(field: str, value: Any) -> None:
    for item in _items(value):
        _refuse_unheld(field, item)
    if isinstance(value, Shown):
        remedy = "write a number of usual size, or the word inf"
        refuse(field, value, "a number that a float can hold", remedy)


def _parts(value: Any) -> Iterable[Any]:
    return (*value, *value.values()) if isinstance(value, Mapping) else _items(value)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse_depth(path: str | os.PathLike[str]) -> NoReturn:
    allowed = f"TOML of at most {_MAX_DEPTH} levels"
    refuse("study", os.fspath(path), allowed, "it is nested too deeply")


def check_document(document: Mapping[str, Any]) -> None:
    """Refuses unknown keys, naming the nearest, and tables that are none."""
    known = {"": _TOP, **{name: tuple(keys) for name, keys in _keys(document).items()}}
    _refuse_unknown(document, "", known)
    for name in _TABLES:
        table = document.get(name, {})
        if not isinstance(table, Mapping):
            refuse(name, table, "a table", f"write [{name}] and its keys below it")
        _refuse_unknown(table, name, known)
    for name in ("algorithm", "horizon", "seeds"):
        if name not in document:
            refuse(name, None, "given", f"add {name} = ... at the top of the study")


def _keys(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the keys of each table, with their parameters where they have one."""
    named_ = document.get("algorithm", [])
    own: dict[str, Any] = {}
    for name in _items(named_) if isinstance(named_, (list, Mapping)) else [named_]:
        own = {**parameters_of(named(name)), **own}
    problem = {**parameters_of(Drawn), "means": None}
    return {"parameters": own, "problem": problem, "until": dict.fromkeys(Precision._fields)}


def study_of(document: Mapping[str, Any]) -> Study:
    """Makes the study that a document states.

    Raises:
        ValueError: If a value is refused.
    """
    check_document(document)
    keys = _keys(document)
    given = {n: _read(None, value) for n, value in document.items() if n not in _TABLES}
    parameters, problem = (
        {n: _read(keys[table][n], value) for n, value in document.get(table, {}).items()}
        for table in ("parameters", "problem")
    )
    until = document.get("until")
    if until is not None:
        if "relative" not in until:
            refuse("until.relative", None, "given", "such as relative = 0.01 in [until]")
        until = until_precise(**until)
    made = _from_files(problem) if "means" in problem else None
    return state(given.pop("algorithm"), made, until=until, **given, **problem, **parameters)


def _from_files(problem: dict[str, Any]) -> Any:
    """Returns the problem, or problems by file, whose means are given; empties the table."""
    means, agents = problem.pop("means"), problem.pop("agents", None)
    law = problem.pop("rewards", None)
    for name in sorted(problem):
        allowed = f"left out with means={means!r}"
        refuse(f"problem.{name}", problem[name], allowed, "the file fixes it: drop one")
    paths = means if isinstance(means, list) else [means]
    for place, path in enumerate(paths):
        if not isinstance(path, str):
            refuse("means", path, "the name of a CSV or NPZ file", "write it in quotes")
        if path in paths[:place]:
            remedy = "a repeated value repeats its configurations"
            refuse("means", path, "distinct values", remedy)
    if not paths:
        refuse("means", means, "not empty", "give at least one file")
    made = {path: Problem.from_file(path, agents, law) for path in paths}
    for path, each in made.items():
        # One agent alone is no federation: whoever means one says so.
        if agents is None and each.agents == 1:
            allowed = f"given with {path}, whose one row all agents share"
            refuse("agents", UNSET, allowed, "such as agents=50")
    return made if isinstance(means, list) else made[means]


def text_of(document: Mapping[str, Any]) -> str:
    """Returns a document as TOML, which has no null: "none" is None."""
    return tomli_w.dumps(_each(lambda item: "none" if item is None else item, document))


def document_of(study: Mapping[str, Any], seeds: Iterable[Any] = ()) -> dict[str, Any]:
    """Returns the document of a study from its description, see `Study.describe`.

    A description has only a digest of fixed means, so that ``means`` names a file that is missing.

    Args:
        study: The description, as results hold it.
        seeds: The seeds of the results, for a study that lists them.

    Raises:
        Exception: For code of one's own, and for a text that describes no study.
    """
    owners = [named(name) for name in _one_or_more(study["algorithm"])]
    known = {name: each for owner in owners[::-1] for name, each in parameters_of(owner).items()}
    tables: dict[str, Any] = {"problem": parameters_of(Drawn), "parameters": known}
    document = {name: study[name] for name in _TOP if name in study and name not in _TABLES}
    document |= {"problem": {}, "parameters": {}}
    if "listed" in study:
        document["seeds"] = [int(seed) for seed in seeds]
    if "outputs" in study:
        document["outputs"] = [each.name for each in of_study(study["outputs"])]
    if study["until"]:
        document["until"] = study["until"]
    if study["problem"] != "Drawn":
        agents, law = study["problem"]["agents"], _law(study["problem"]["rewards"])
        _ = study["problem"]["means"]  # probabilities are in no file of means
        document["problem"] = {"means": "FILE.npz", "agents": agents, "rewards": law}
        del tables["problem"]
    # Dimensions have the order of the keys.
    for name in dict.fromkeys([*study["axes"], *study]):
        for table in (table for table, keys in tables.items() if name in keys):
            parameter, value = tables[table][name], study[name]
            several = isinstance(value, list) and not parameter.kind.lists(value)
            if several and name not in study["axes"]:
                raise ValueError(f"{name} is a list that a file would sweep")
            if not _is_default(parameter, value):
                laws = name == "rewards" and table == "problem"
                document[table][name] = _each_law(value) if laws else value
    return document


def _one_or_more(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_default(parameter: Parameter, value: Any) -> bool:
    default = parameter.default
    return default is not UNSET and value == parameter.kind.plain(parameter.check(default))


def _each_law(value: Any) -> Any:
    return [*map(_law, value)] if isinstance(value, list) else _law(value)


def _law(described: Mapping[str, Any]) -> str:
    """Returns the text of a reward law."""
    text = ":".join(map(str, described.values()))
    if law_of(text, "rewards").describe() != dict(described):
        raise ValueError("a law that no text states")
    return text


def write_study(document: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes a document as a study file, which states the same study.

    Raises:
        ValueError: If it does not end in .toml.
        OSError: If it cannot be written.
    """
    path = Path(path)
    if path.suffix != ".toml" or "\0" in str(path):
        refuse("save_study", str(path), "a file name ending in .toml", "change the ending")
    checked_path("save_study", path)
    try:
        data = text_of(document).encode()
    except UnicodeEncodeError as error:
        remedy = "rename the file that it names"
        refuse("save_study", error.object[error.start], "a study of Unicode characters", remedy)
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
    return path


def _refuse_unknown(
    table: Mapping[str, Any], where: str, known: Mapping[str, tuple[str, ...]]
) -> None:
    for name in table:
        if name in (keys := known[where]):
            continue
        remedy = did_you_mean(name, keys, f"choose from {', '.join(keys)}", str)
        if name in _TOP and name not in _TABLES:
            remedy = "it belongs at the top, above all tables"
        elif elsewhere := [f"under [{other}]" for other in _TABLES if name in known[other]]:
            remedy = f"it belongs {' or '.join(elsewhere)}"
        key = name if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) else shown(name)
        prefix = f"{where}." if where else ""
        refuse(f"{prefix}{key}", table[name], "left out: there is no such key", remedy)


def _read(parameter: Parameter | None, value: Any) -> Any:
    """Reads a value as the command line does: "none" may be None, and 1e6 is a whole number."""
    optional = parameter is not None and parameter.kind.none is not None

    def read(item: Any) -> Any:
        # Beyond that a float is written shorter than its digits.
        if isinstance(item, float) and item.is_integer() and abs(item) < 1e18:
            return int(item)
        word = item.lower() if isinstance(item, str) else item
        return None if optional and word == "none" else item

    return _each(read, value)


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """Changes what is in lists and tables, however deep."""
    if isinstance(value, Mapping):
        return {name: _each(change, item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(change, item) for item in value]
    return change(value)
