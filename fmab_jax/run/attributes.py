"""What the attributes of a result must hold; a right digest says nothing about their content.

`fault` finds what a forged file has made of them. Whatever passes can be put into words, tables and
commands without surprises. The checks that it is made of serve other records as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.core.exchanges.table import AGENTS_MAX

Check = Callable[[Any], bool]

LONGEST = 1000
"""Letters of a heading."""

_MOST = 2**63 - 1


def whole(low: int, high: int = _MOST) -> Check:
    """Returns what tells whether a value is a whole number in a range."""
    return lambda value: type(value) is int and low <= value <= high


def listed(check: Check, low: int = 0, high: int = 2**31) -> Check:
    """Returns what tells whether a value is a list, so long, of such items."""
    return lambda value: (
        isinstance(value, list) and low <= len(value) <= high and all(map(check, value))
    )


def optional(check: Check) -> Check:
    """Returns what lets None pass as well."""
    return lambda value: value is None or check(value)


def either(*checks: Check) -> Check:
    """Returns what tells whether one of several holds."""
    return lambda value: any(check(value) for check in checks)


def text(value: Any) -> bool:
    """Tells whether a value is a text."""
    return isinstance(value, str)


def title(value: Any) -> bool:
    """Tells whether a value is a text that fits into a heading."""
    return text(value) and len(value) <= LONGEST


def number(value: Any) -> bool:
    """Tells whether a value is a finite number that a float holds."""
    return type(value) in (int, float) and -1e308 <= value <= 1e308


def amount(value: Any) -> bool:
    """Tells whether a value is a number in [0, infinity]."""
    return type(value) in (int, float) and (0 <= value <= 1e308 or value == math.inf)


def share(value: Any) -> bool:
    """Tells whether a value is a number between 0 and 1."""
    return number(value) and 0 < value < 1


def flag(value: Any) -> bool:
    """Tells whether a value is a truth value."""
    return isinstance(value, bool)


def plain(value: Any) -> bool:
    """Tells whether a value is a text, a number, a truth value or None."""
    return value is None or text(value) or number(value) or flag(value)


def by_text(check: Check, low: int = 0) -> Check:
    """Returns what tells whether a value is an object of such values."""
    return lambda value: (
        isinstance(value, dict)
        and len(value) >= low
        and all(map(text, value))
        and all(map(check, value.values()))
    )


def record(fields: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """Returns what tells whether a value is an object with these fields, and perhaps others."""
    return lambda value: (
        isinstance(value, dict)
        and missing(value, fields) is None
        and all(check(value[name]) for name, check in (others or {}).items() if name in value)
    )


def missing(value: Mapping[str, Any], fields: Mapping[str, Check]) -> str | None:
    """Returns the first field that is not there or is something else."""
    return next((n for n, check in fields.items() if n not in value or not check(value[n])), None)


def in_json(check: Check) -> Check:
    """Returns what tells whether a text is JSON of something."""

    def holds(value: Any) -> bool:
        try:
            return text(value) and check(json.loads(value))
        except (ValueError, RecursionError):
            return False

    return holds


def _leak(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    return pair and optional(amount)(value[0]) and whole(0, AGENTS_MAX)(value[1])


_ROW = {name: text for name in ("who", "what", "why", "source")} | {"leaks": listed(_leak, 1)}
_ROW_MAY = {"title": text, "where": text, "law": text, "fixed": optional(flag), "waits": flag}


def ledger_rows(value: Any) -> bool:
    """Tells whether a value is the rows of a ledger; of several algorithms all have a title."""
    return listed(record(_ROW, _ROW_MAY), 1)(value) and len({"title" in row for row in value}) == 1


def _array(value: Any) -> bool:
    """Tells whether a value is an array of numbers, or the digest that stands for one."""
    if text(value):
        return True
    try:
        return isinstance(value, list) and np.asarray(value).dtype.kind in "iuf"
    except (ValueError, OverflowError):  # rows of different lengths
        return False


_SIZES = {"agents": whole(1), "arms": whole(1)}
_DRAWN = {"spread": number, "instance_gap": optional(number), "fixed_instance": optional(whole(0))}
_PROBLEM = record(
    {"rewards": record({"law": text})},
    {**_SIZES, **_DRAWN, "means": _array, "probabilities": _array},
)
_UNTIL = record({"relative": number, "level": share, "max_seeds": whole(1)})
_SHARED = {
    "axes": listed(text),
    "algorithm": either(text, listed(text, 1)),
    "problem": either(text, _PROBLEM, listed(either(text, _PROBLEM), 1)),
    "root_seed": whole(0),
}
# What may be swept is a list then.
_SWEPT = {**_SIZES, **_DRAWN, "horizon": whole(1), "rewards": record({"law": text})}
_OTHERS = {
    **{name: either(check, listed(check, 1)) for name, check in _SWEPT.items()},
    **{"seeds": whole(1), "spacing": text, "sum_agents": flag, "keep": text},
    **{"times": either(number, listed(number, 1)), "until": optional(_UNTIL)},
    **{"outputs": listed(text, 1), "listed": text},
}


def study(value: Any) -> bool:
    """Tells whether a value is the description of a study: lists are what its axes have."""
    if not record(_SHARED, _OTHERS)(value):
        return False
    axes = value["axes"]
    alone = {name for name in _SWEPT if isinstance(value.get(name), list)} <= {*axes}
    return alone and all(isinstance(value.get(name, []), list) for name in axes)


_ATTRIBUTES: dict[str, Check] = {
    **{name: whole(1) for name in ("agents", "arms", "horizon", "reporting")},
    **{name: whole(0) for name in ("wait", "root_seed", "looks")},
    **{name: amount for name in ("epsilon", "epsilon_message")},
    **{name: share for name in ("look_level", "until_level")},
    **{name: title for name in ("algorithm", "title")},
    **{name: title for name in ("keep", "study_hash", "device")},
    **{"settings": in_json(by_text(text)), "settings_by": in_json(by_text(by_text(by_text(text))))},
    **{
        "labels": in_json(by_text(listed(plain))),
        "ledger": in_json(either(ledger_rows, lambda value: value == [])),
    },
    **{"study": in_json(study)},
}
# Of coordinates and series.
_WORDS = ("long_name", "units", "symbol", "none")


def fault(data: xr.Dataset) -> str | None:
    """Returns the name of an attribute that no result of this package has like that, or None.

    Args:
        data: Read from a file; attributes that the package does not know are not looked at.
    """
    found = {str(name): _python(value) for name, value in data.attrs.items()}
    known = {name: check for name, check in _ATTRIBUTES.items() if name in found}
    known |= {name: title for name in found if name.endswith("_version")}
    if (name := missing(found, known)) is not None:
        return name
    for variable, values in data.variables.items():
        for name in _WORDS:
            if name in values.attrs and not title(values.attrs[name]):
                return f"{variable}.{name}"
    if {"labels", "study"} <= {*found}:
        stated = json.loads(found["study"])
        for name, labels in json.loads(found["labels"]).items():
            # Each label stands for a value.
            if isinstance(stated.get(name), list) and len(stated[name]) != len(labels):
                return "labels"
    return None


def _python(value: Any) -> Any:
    """Returns a number as Python's; files hold them as NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def said(data: xr.Dataset, name: str) -> Any:
    """Returns what an attribute in JSON says; {} where it is missing."""
    return json.loads(data.attrs.get(name) or "{}")


def study_at(data: xr.Dataset) -> dict[str, Any]:
    """Returns what the study of a result says, by name; {} where it has none.

    Of a parameter that was swept, it is the value at the result's coordinate, if that is one.
    """
    study, labels = said(data, "study"), said(data, "labels")
    for name in study.get("axes", ()):
        if name in data.coords and data[name].size == 1:
            label = data[name].values.reshape(-1).tolist()[0]
            # Labels of one's own stand for values that the study states.
            if label in labels.get(name, ()):
                study[name] = study[name][labels[name].index(label)]
            else:
                study[name] = None if label == "none" else label
    return study
