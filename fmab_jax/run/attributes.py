"""What the attributes of a result hold: texts, numbers and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import xarray as xr

LONGEST = 1000
"""Letters of a heading."""

# Of coordinates and series.
_WORDS = ("long_name", "units", "symbol", "none")


def holds(value: Any) -> bool:
    """Tells whether a file gives a value back: a text has no NUL, and UTF-8 spells it."""
    try:
        return not isinstance(value, str) or b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _texts(data: xr.Dataset) -> Iterator[tuple[str, Any]]:
    """Yields the labels, words and attributes of a result, each with its path."""
    for name, values in data.variables.items():
        if values.dtype.kind in "UO":
            yield from ((str(name), label) for label in values.values.flat)
        yield from ((f"{name}.{word}", values.attrs.get(word)) for word in _WORDS)
    yield from ((str(name), value) for name, value in data.attrs.items())


def lost_text(data: xr.Dataset) -> str | None:
    """Returns the path of a text that no file gives back, or None: a label, or a heading."""
    for path, text in _texts(data):
        heading = isinstance(text, str) and (path.endswith(_WORDS) or path == "title")
        if not holds(text) or (heading and len(text) > LONGEST):
            return path
    return None


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
