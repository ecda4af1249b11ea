"""Studies as TOML: strict about keys and types, and written so that they run again the same.

A study file states what `fmab_jax.sweep` takes. Its keys are the parameters of the algorithms that
it names, and those of a problem whose means are drawn. Lists are swept, "none" is None where a
parameter says what that means. Algorithms are named, never loaded::

    algorithm = 'cdp'           # or a list of names; see fmab list
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

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.errors import PlainText, Refusal, abbreviate, did_you_mean, parse_number, refuse
from fmab_jax.files import check_path, read_input, whole_file
from fmab_jax.parameters import UNSET, Parameter, parameters_of
from fmab_jax.records.problem import Problem
from fmab_jax.run.outputs import from_study
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.precision import Precision, until_precise
from fmab_jax.sweeps.study import Study, state
from fmab_jax.sweeps.subjects import RANDOM_PROBLEM, SHARED, RandomProblem

_MAX_BYTES = 1 << 16
_TABLES = ("parameters", "problem", "until")
_TOP = (
    *("algorithm", "horizon", "seeds", "root_seed", "times", "spacing", "sum_agents", "keep"),
    *("leak", "view", "outputs", *_TABLES),
)


@contextmanager
def as_toml_errors(document: Record) -> Iterator[None]:
    """Adds the TOML table to a refusal: ``[parameters] epsilon=0: must be ...``.

    Args:
        document: Content of the file; empty while it is read.
    """
    try:
        yield
    except Refusal as error:
        table, _, name = re.sub(r"\[\d+\]$", "", error.field).rpartition(".")
        if not table and document and name not in document:
            table = next(
                (table for table, keys in _list_keys(document).items() if name in keys), ""
            )
        raise error.renamed(f"[{table}] {name}") if table in _TABLES else error from None


def read_study(path: str | os.PathLike[str]) -> Record:
    """Reads a study file into a document, for `build_study`.

    Raises:
        ValueError: If it is missing, too large or not TOML.
    """
    data = read_input(path, "study", _MAX_BYTES, "TOML file")
    try:
        return tomllib.loads(data.decode("utf-8-sig"), parse_float=_parse_float)
    except (ValueError, RecursionError) as error:
        refuse("study", os.fspath(path), "TOML", " ".join(str(error).split())[:100])


def _parse_float(text: str) -> float | PlainText:
    """Reads a number; one that no float can hold stays a text, which checks refuse."""
    return PlainText(text) if parse_number(text.replace("_", "")) is None else float(text)


def _list_values(value: object) -> list[object]:
    """Returns the values of one key."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _list_keys(document: Record) -> dict[str, Record]:
    """Returns the keys of each table, with their parameters or None."""
    owners = [ALGORITHMS.find(name) for name in _list_values(document.get("algorithm", []))]
    parameters = {name: p for owner in owners[::-1] for name, p in parameters_of(owner).items()}
    problem = {**parameters_of(RandomProblem), "means": None, "means_error": None}
    until = dict.fromkeys(Precision._fields)
    return {"parameters": parameters, "problem": problem, "until": until}


def build_study(document: Record) -> Study:
    """Builds the study of a document.

    Raises:
        ValueError: If a key is unknown or missing, or a value is refused.
    """
    keys = _list_keys(document)
    _refuse_unknown(document, "", keys)
    for name in ("algorithm", "horizon", "seeds"):
        if name not in document:
            refuse(name, UNSET, "given", f"add {name} = ... at the top of the study")
    tables: dict[str, Record] = {}
    for table in _TABLES:
        values = document.get(table, {})
        if not isinstance(values, Mapping):
            refuse(table, values, "a table", f"write [{table}] and its keys below it")
        _refuse_unknown(values, table, keys)
        tables[table] = {n: _parse_value(value, keys[table][n]) for n, value in values.items()}
    top: Record = {
        n: _parse_value(value, SHARED.get(n)) for n, value in document.items() if n not in _TABLES
    }
    until = None
    if "until" in document:
        if "relative" not in tables["until"]:
            refuse("until.relative", UNSET, "given", "such as 0.01")
        until = until_precise(**tables["until"])
    problem = tables["problem"]
    file_problems = read_problems(**problem) if "means" in problem else None
    if "means" not in problem and "means_error" in problem:
        remedy = "add means = 'means.csv'"
        refuse("problem.means_error", problem["means_error"], "given with means", remedy)
    random_settings = {} if "means" in problem else problem
    return state(
        problem=file_problems, until=until, **top, **random_settings, **tables["parameters"]
    )


def _refuse_unknown(table: Mapping[str, object], table_name: str, keys: Record) -> None:
    """Refuses an unknown key; suggests the most similar key or the right table."""
    allowed_keys = keys[table_name] if table_name else _TOP
    for name in [name for name in table if name not in allowed_keys]:
        remedy = did_you_mean(name, allowed_keys, f"choose from {', '.join(allowed_keys)}", str)
        if name in _TOP:
            remedy = "it belongs at the top, above all tables"
        elif tables := [f"under [{title}]" for title in _TABLES if name in keys[title]]:
            remedy = f"it belongs {' or '.join(tables)}"
        key = name if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) else abbreviate(name)
        field = f"{table_name}.{key}" if table_name else key
        refuse(field, table[name], "left out: there is no such key", remedy)


def _parse_value(value: object, parameter: Parameter | None = None) -> object:
    """Reads a value as the command line does: "none" may be None, and 1e6 is a whole number."""
    if isinstance(value, Mapping):
        return {name: _parse_value(item, parameter) for name, item in value.items()}
    if isinstance(value, list):
        return [_parse_value(item, parameter) for item in value]
    # Larger floats have digits that their text does not show.
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        return int(value)
    optional = parameter is not None and parameter.kind.none_label is not None
    return None if optional and str(value).lower() == "none" else value


def read_problems(means: Any, **settings: Any) -> Problem | dict[str, Problem]:
    """Returns the problem of a file of means, or problems by file."""
    paths = means if isinstance(means, list) else [means]
    if not paths:
        refuse("means", means, "not empty", "give at least one file")
    for path in paths:
        if paths.count(path) > 1:
            refuse("means", path, "distinct values", "a repeated value repeats its configurations")
    for name, value in settings.items():
        if name == "fixed_instance":
            refuse(f"problem.{name}", value, "left out with means", "the file fixes them")
        if isinstance(value, list):
            refuse(f"problem.{name}", value, "one value with means", "give one study for each")
    problems = {path: Problem(check_path("means", path), **settings) for path in paths}
    for path, problem in problems.items():
        # One agent is no federation, so it must be explicit.
        if "agents" not in settings and problem.agents == 1:
            allowed = f"given with {path}, whose one row all agents share"
            refuse("agents", UNSET, allowed, "such as agents=50")
    return problems if isinstance(means, list) else problems[means]


def format_document(document: Record) -> str:
    """Formats a document as TOML; "none" stands for None, since TOML has no null."""
    tables = {name: value for name, value in document.items() if isinstance(value, Mapping)}
    top = {name: value for name, value in document.items() if name not in tables}
    lines = _format_pairs(top)
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_format_pairs(table)]
    return "\n".join([*lines, ""])


def _format_pairs(table: Mapping[str, object]) -> list[str]:
    keys = [
        key if re.fullmatch("[A-Za-z0-9_-]+", key) else _format_value(key)
        for key in map(str, table)
    ]
    return [
        f"{key} = {_format_value(value)}" for key, value in zip(keys, table.values(), strict=True)
    ]


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(_format_pairs(value))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    # JSON and TOML escape texts equally, except DEL.
    text = json.dumps("none" if value is None else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


def build_document(study: Record, seeds: Iterable[int] = ()) -> Record:
    """Builds the document of a study from its description, see `Study.describe`.

    A description has only a digest of fixed means, so ``means`` names a placeholder.

    Args:
        study: The description in results.
        seeds: The seeds of the results, for a study with a list of seeds.

    Raises:
        Exception: For a user's code, and for a text that is not a description.
    """
    document = {name: study[name] for name in _TOP if name in study and name not in _TABLES}
    document |= {"problem": {}, "parameters": {}}
    keys: Record = {"problem": parameters_of(RandomProblem), "parameters": {}}
    keys["parameters"] = _list_keys(document)["parameters"]
    if "listed" in study:
        document["seeds"] = [int(seed) for seed in seeds]
    if "outputs" in study:
        document["outputs"] = [output.name for output in from_study(study["outputs"])]
    if study["until"]:
        document["until"] = study["until"]
    if study["problem"] != RANDOM_PROBLEM:
        agents, law = study["problem"]["agents"], _format_law(study["problem"]["rewards"])
        _ = study["problem"]["means"]  # probabilities are in no file of means
        document["problem"] = {"means": "FILE.npz", "agents": agents, "rewards": law}
        for name in ("means_error", "world", "presence"):
            if name in study["problem"]:
                document["problem"][name] = study["problem"][name]
        del keys["problem"]
    # The order of keys decides the order of dimensions.
    for name in dict.fromkeys([*study["axes"], *study]):
        for table in (table for table in keys if name in keys[table]):
            parameter, value = keys[table][name], study[name]
            is_swept = isinstance(value, list) and not parameter.kind.is_list_value(value)
            if is_swept and name not in study["axes"]:
                raise ValueError(f"{name} is a list that a file would sweep")
            if not _is_default(parameter, value):
                laws = name == "rewards" and table == "problem"
                document[table][name] = _format_law(value) if laws else value
    return document


def _is_default(parameter: Parameter, value: object) -> bool:
    default = parameter.default
    return default is not UNSET and value == parameter.kind.plain(parameter.check(default))


def _format_law(description: Record | list[Record]) -> object:
    """Formats a reward law, or a list of them."""
    if isinstance(description, list):
        return [*map(_format_law, description)]
    return ":".join(map(str, description.values()))


def write_study(document: Record, path: str | os.PathLike[str]) -> Path:
    """Writes a document as a study file.

    Raises:
        ValueError: If it does not end in .toml.
        OSError: If it cannot be written.
    """
    path = Path(check_path("save_study", path))
    if path.suffix != ".toml":
        refuse("save_study", str(path), "a file name ending in .toml", "change the ending")
    with whole_file(path) as temporary:
        temporary.write_bytes(format_document(document).encode())
    return path
