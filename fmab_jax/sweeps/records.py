"""What a store's records must hold; a right checksum says nothing about their content.

`header_in` checks run.json, `fit` the facts of a chunk, `fault` its arrays. Whatever passes can be
labelled and read without surprises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.errors import refuse
from fmab_jax.run import schema
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.store import Entry, Store

FORMAT = 3
"""Version of run.json and of the chunks beside it."""

_Check = Callable[[Any], bool]
_KEEPS = ("curves", "summary")
_TAKEN = {"seed", "time", "time_2", "quantile", "bin", "made", "meter"}
# What is counted of the seeds of a summary.
_COUNTED = (
    "regret_bin",
    *(v.name for v in schema.VARIABLES if v.coordinate),
    "undecided",
    "rounds",
    "numbers_sent",
)
_FIRST = "run the sweep again into another folder, or use the package that made it"


def _whole(low: int, high: int = 2**63 - 1) -> _Check:
    return lambda value: type(value) is int and low <= value <= high


def _list(check: _Check, low: int = 0, high: int = 2**31) -> _Check:
    return lambda value: (
        isinstance(value, list) and low <= len(value) <= high and all(map(check, value))
    )


def _optional(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _share(value: Any) -> bool:
    return _number(value) and 0 < value < 1


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0 and all(map(_text, value.values()))


def _record(fields: Mapping[str, _Check]) -> _Check:
    return lambda value: isinstance(value, dict) and _missing(value, fields) is None


def _missing(value: Mapping[str, Any], fields: Mapping[str, _Check]) -> str | None:
    """Returns the first field that is not there or is something else."""
    return next((n for n, check in fields.items() if n not in value or not check(value[n])), None)


def _dimension(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3 or value[0] in [*_TAKEN]:
        return False
    label = lambda each: _text(each) or _number(each) or _flag(each)  # noqa: E731
    return _text(value[0]) and _list(label, 1)(value[1]) and _texts(value[2])


def _texts_of(value: str) -> bool:
    """Tells whether a text is a JSON object of texts."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and all(map(_text, found.values()))


def _leak(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    real = pair and (value[0] is None or _number(value[0]) and value[0] >= 0)
    return real and _whole(0, AGENTS_MAX)(value[1])


_SEEN = {name: _text for name in ("who", "what", "why", "source")} | {"leaks": _list(_leak, 1)}


def _ledger(value: Any) -> bool:
    """Tells whether a value is a privacy ledger in JSON."""
    try:
        found = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return _list(_record(_SEEN), 1)(found)


def _meter(value: Any) -> bool:
    shape = isinstance(value, list) and len(value) == 4
    return shape and _text(value[0]) and value[1] in ("server", "peer") and _flag(value[2])


_CELL = {
    "hash": _text,
    "algorithm": _text,
    "agents": _whole(1),
    "arms": _whole(1),
    "horizon": _whole(1),
    "epsilon": _optional(_number),
    "epsilon_message": _optional(_number),
    "reporting": _whole(1),
    "wait": _whole(0),
    "title": _text,
    "settings": lambda value: _text(value) and _texts_of(value),
    "ledger": _ledger,
    "links": lambda value: (
        isinstance(value, dict) and all(map(_text, value)) and all(map(_whole(0), value.values()))
    ),
    "vectors": _whole(0),
    "numbers": _whole(0),
    "grid": _whole(0),
    "slots": _whole(1),
}
_UNTIL = {"relative": _number, "level": _share, "max_seeds": _whole(1, MAX_SEEDS)}
_HEADER = {
    "hash": _text,
    "study": _record({"root_seed": _whole(0)}),
    "made_by": _texts,
    "dims": _list(_dimension),
    "meters": _list(_meter),
    "keep": lambda value: value in _KEEPS,
    "seeds": _whole(1, MAX_SEEDS),
    "until": _optional(_record(_UNTIL)),
    "look_level": _optional(_share),
    "cells": _list(_record(_CELL), 1),
    "grids": _list(_list(_whole(1), 1), 1),
}


def header_in(store: Store) -> dict[str, Any] | None:
    """Returns what a store's run.json says, or None if nobody wrote it yet.

    Raises:
        ValueError: If it is damaged, of another version, or lacks what a header has.
    """
    header = store.header()
    if header is None:
        return None
    found = header.get("format")
    if found != FORMAT:
        number = found if type(found) is int else 1
        version = f"of format {number}" if number > 1 else "of the first version"
        remedy = "use the newer package that made it" if number > FORMAT else _FIRST
        refuse("store", str(store.path), f"of format {FORMAT}", f"it is {version}: {remedy}")
    wrong = _missing(header, _HEADER) or _contradiction(header)
    if wrong is not None:
        reason = f"its run.json has no proper {wrong!r}: put a good copy back"
        refuse("store", str(store.path), "a store", reason)
    return header


def _contradiction(header: Mapping[str, Any]) -> str | None:
    """Returns a field that does not go with the others."""
    names = [name for name, _, _ in header["dims"]]
    if len(set(names)) < len(names):
        return "dims"
    grids, cells = header["grids"], header["cells"]
    if len(cells) != math.prod(len(labels) for _, labels, _ in header["dims"]):
        return "cells"
    for cell in cells:
        if not set(cell["links"]) <= {meter[0] for meter in header["meters"]}:
            return "links"
        if cell["grid"] >= len(grids) or cell["slots"] > len(grids[cell["grid"]]):
            return "grid"
    if header["until"] is not None and header["keep"] != "summary":
        return "until"
    return "look_level" if (header["look_level"] is None) != (header["until"] is None) else None


def fit(facts: Mapping[str, Any]) -> bool:
    """Returns whether these are the facts of a chunk: cells, seeds, what is kept, versions."""
    fields: dict[str, _Check] = {
        "cells": _list(_text, 1),
        "seeds": _list(_whole(0, MAX_SEEDS), 2, 2),
        "keep": lambda value: value in _KEEPS,
        "made_by": _texts,
    }
    return _missing(facts, fields) is None and facts["seeds"][0] < facts["seeds"][1]


def fault(entry: Entry, arrays: Mapping[str, np.ndarray], slots: Mapping[str, int]) -> str | None:
    """Returns what keeps arrays from being those of a chunk, or None.

    Args:
        entry: The chunk; its facts fit.
        arrays: What was read.
        slots: By each cell's hash, its recorded slots.
    """
    cells = len(entry.facts["cells"])
    seeds = entry.facts["seeds"][1] - entry.facts["seeds"][0]
    known = [slots[name] for name in entry.facts["cells"] if name in slots]
    first = arrays.get("regret", arrays.get("regret_anchor"))
    over = max(known) if known else first.shape[-1] if first is not None else 0
    shapes: dict[str, tuple[int, ...]] = {}
    optional: dict[str, tuple[int, ...]] = {}
    if entry.facts["keep"] == "curves":
        shapes = {name: (cells, seeds, over) for name in ("regret", "rounds_by")}
        for name in set(schema.DTYPES) - {"regret", "rounds_by", "waiting_regret"}:
            shapes[name] = (cells, seeds)
        optional = {"waiting_regret": (cells, seeds, over)}
    else:
        for name in ("regret", "rounds_by", "waiting_regret"):
            into = optional if name == "waiting_regret" else shapes
            into |= {f"{name}_{kind}": (cells, over) for kind in ("anchor", "offset", "scatter")}
        shapes["regret_scatter"] = (cells, over, over)
        for name in _COUNTED:
            size = arrays[f"{name}_row"].size if f"{name}_row" in arrays else 0
            shapes |= {f"{name}_{kind}": (size,) for kind in ("row", "value", "count")}
            for kind in ("row", "value", "count"):
                if f"{name}_{kind}" in arrays and arrays[f"{name}_{kind}"].dtype.kind not in "iu":
                    return f"{name}_{kind} holds no whole numbers"
    shapes |= {name: shape for name, shape in optional.items() if name in arrays}
    for name, shape in shapes.items():
        if name not in arrays:
            return f"no array {name}"
        if arrays[name].shape != shape:
            return f"{name} has shape {arrays[name].shape} instead of {shape}"
        if arrays[name].dtype.kind not in "biuf":
            return f"{name} holds no numbers"
    return None
