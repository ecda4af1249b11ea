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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.errors import PlainText, abbreviate, did_you_mean, parse_number, refuse
from fmab_jax.files import check_path, read_input, whole_file
from fmab_jax.parameters import UNSET, Flag, Kind, Parameter
from fmab_jax.parts.rewards import LawOf
from fmab_jax.run.outputs import from_study
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.fields import UNTIL_OPTIONS, Names, list_tables
from fmab_jax.sweeps.study import Design
from fmab_jax.sweeps.subjects import RANDOM_PROBLEM

_MAX_BYTES = 1 << 16
_TABLES = ("problem", "parameters", "until")
_SAVE = "save the study as a .toml file"


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


def _list_keys(document: Record) -> dict[str, dict[str, Parameter]]:
    """Returns the keys of each table of a document, with their parameters."""
    names = document.get("algorithm", [])
    names = list(names.values()) if isinstance(names, Mapping) else names
    return list_tables(map(ALGORITHMS.find, names if isinstance(names, list) else [names]))


def build_study(document: Record) -> Design:
    """Builds the study of a document.

    Raises:
        ValueError: If a key is unknown or missing, or a value is refused.
    """
    return Design(**build_arguments(document))


def build_arguments(document: Record) -> Record:
    """Builds the arguments of a study from a document.

    Raises:
        ValueError: If a key is unknown or missing, or a table is none.
    """
    keys = _list_keys(document)
    _refuse_unknown({n: x for n, x in document.items() if n not in _TABLES}, "", keys)
    for name in ("algorithm", "horizon", "seeds"):
        if name not in document:
            refuse(name, UNSET, "given", f"add {name} = ... at the top of the study")
    values: Record = {"": {n: x for n, x in document.items() if n not in _TABLES}}
    for table in _TABLES:
        values[table] = document.get(table, {})
        if not isinstance(values[table], Mapping):
            refuse(table, values[table], "a table", f"write [{table}] and its keys below it")
        _refuse_unknown(values[table], table, keys)
    read = {
        table: {n: _parse_value(x, keys[table][n]) for n, x in content.items()}
        for table, content in values.items()
    }
    until = {"until": read["until"]} if "until" in document else {}
    return {**read[""], **until, **read["problem"], **read["parameters"]}


def _refuse_unknown(table: Mapping[str, object], table_name: str, keys: Record) -> None:
    """Refuses an unknown key; suggests the most similar key or the right table."""
    allowed_keys = [*keys[table_name], *_TABLES * (not table_name)]
    for name in [name for name in table if name not in allowed_keys]:
        remedy = did_you_mean(name, allowed_keys, f"choose from {', '.join(allowed_keys)}", str)
        if name in keys[""]:
            remedy = "it belongs at the top, above all tables"
        elif tables := [f"under [{title}]" for title in _TABLES if name in keys[title]]:
            remedy = f"it belongs {' or '.join(tables)}"
        key = name if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) else abbreviate(name)
        field = f"{table_name}.{key}" if table_name else key
        refuse(field, table[name], "left out: there is no such key", remedy)


def _parse_value(value: object, parameter: Parameter) -> object:
    """Reads a value as the command line does: "none" may be None, and 1e6 is a whole number."""
    if isinstance(value, Mapping):
        return {name: _parse_value(item, parameter) for name, item in value.items()}
    if isinstance(value, list):
        return [_parse_value(item, parameter) for item in value]
    # Larger floats have digits that their text does not show.
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        return int(value)
    return None if parameter.kind.none_label and str(value).lower() == "none" else value


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
    """Returns a value as TOML, in one line, with "none" for None."""
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
    """Builds the document of a study from its description, see `Design.describe`.

    A description has only a digest of fixed means, so ``means`` names a placeholder.

    Args:
        study: The description in results.
        seeds: The seeds of the results, for a study with a list of seeds.

    Raises:
        Exception: For a user's code, and for a text that is not a description.
    """
    keys = _list_keys(study)
    document = {name: study[name] for name in keys[""] if name in study}
    document |= {"problem": {}, "parameters": {}}
    if "listed" in study:
        document["seeds"] = [int(seed) for seed in seeds]
    if "outputs" in study:
        document["outputs"] = [output.name for output in from_study(study["outputs"])]
    if study["until"]:
        document["until"] = study["until"]
    tables = {name: keys[name] for name in ("problem", "parameters")}
    if study["problem"] != RANDOM_PROBLEM:
        _ = study["problem"]["means"]  # probabilities are in no file of means
        names = ("agents", "means_error", "world", "presence")
        stated = {name: study["problem"][name] for name in names if name in study["problem"]}
        document["problem"] = {"means": "FILE.npz", **stated}
        document["problem"]["rewards"] = _format_law(study["problem"]["rewards"])
        del tables["problem"]
    # The order of keys decides the order of dimensions.
    for name in dict.fromkeys([*study["axes"], *study]):
        for table in (table for table in tables if name in tables[table]):
            parameter, value = tables[table][name], study[name]
            is_swept = isinstance(value, list) and not parameter.kind.is_list_value(value)
            if is_swept and name not in study["axes"]:
                raise ValueError(f"{name} is a list that a file would sweep")
            # A problem's defaults are written out: a command line has others.
            if not _is_default(parameter, value) or (table == "problem" and value is not None):
                document[table][name] = write_plain(parameter, value)
    return document | _find_dims(document, study["axes"])


def _find_dims(document: Record, axes: Sequence[str]) -> Record:
    """Returns the key that orders the swept parameters, {} where their places in a document do."""
    tables = *document["problem"], *document["parameters"]
    names = ("algorithm", "problem", "leak", "view", *tables, "horizon")
    swept = [name for name in names if name in axes]
    return {"dims": [*axes]} if swept != [*axes] and sorted(swept) == sorted(axes) else {}


def _is_default(parameter: Parameter, value: object) -> bool:
    default = parameter.default
    return default is not UNSET and value == parameter.kind.plain(parameter.check(default))


def write_plain(parameter: Parameter, value: object) -> object:
    """Returns a plain value, or a list of them, as a study file writes it: laws are texts."""
    if isinstance(parameter.kind, LawOf):
        return [*map(_format_law, value)] if isinstance(value, list) else _format_law(value)
    return value


def _format_law(description: Any) -> str:
    return ":".join(map(str, description.values()))


def write_words(document: Record) -> list[str]:
    """Writes a document as words of the command line, from the algorithms on.

    Raises:
        ValueError: If it has values that no words say.
    """
    keys = _list_keys(document)
    names = document["algorithm"]
    if isinstance(names, Mapping) or (isinstance(names, list) and len(names) == 1):
        refuse("algorithm", names, "a name, or several, in words", _SAVE)
    top = {name: x for name, x in document.items() if name not in ("algorithm", *_TABLES)}
    words = [names] if isinstance(names, str) else [*names]
    for table, values in {"": top, **{name: document.get(name, {}) for name in _TABLES}}.items():
        for name, value in values.items():
            option = UNTIL_OPTIONS.get(name, name) if table == "until" else name
            words += _write_option(option, value, keys[table][name].kind)
    return words


def _write_option(name: str, value: object, kind: Kind) -> list[str]:
    """Writes an option with its values."""
    is_list = isinstance(value, (list, tuple))
    values = value if isinstance(value, (list, tuple)) else [value]
    if isinstance(value, Mapping) or (is_list and len(values) < 2 and not isinstance(kind, Names)):
        refuse(name, value, "one value, or several without labels, in words", _SAVE)
    flag = name.replace("_", "-")
    if isinstance(kind, Flag):
        if is_list:
            refuse(name, value, "one truth value in words", _SAVE)
        return [f"--{flag}" if value else f"--no-{flag}"]
    texts = ["none" if item is None else str(item) for item in values]
    for text in texts:
        if not text or text.startswith("--"):
            refuse(name, text, "a word that is no option", _SAVE)
    return [f"--{flag}", *texts]


def write_study(document: Record, path: str | os.PathLike[str]) -> Path:
    """Writes a document as a study file, and returns its path.

    Args:
        document: What `build_study` takes.
        path: Where to write; a file there is replaced.

    Raises:
        ValueError: If the path does not end in .toml.
        OSError: If the file cannot be written.
    """
    path = Path(check_path("save_study", path))
    if path.suffix != ".toml":
        refuse("save_study", str(path), "a file name ending in .toml", "change the ending")
    with whole_file(path) as temporary:
        temporary.write_bytes(format_document(document).encode())
    return path
