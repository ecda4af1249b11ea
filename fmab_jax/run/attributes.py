"""What the attributes of a result hold: texts, numbers and JSON; and forms of a store's records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
import xarray as xr
from msgspec import Meta

LONGEST = 1000
"""Letters of a heading."""

T = TypeVar("T")
Some = Annotated[list[T], Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-1e308, le=1e308)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class Row(TypedDict):
    """A row of a privacy ledger."""

    who: str
    what: str
    why: str
    source: str
    leaks: Some[Some[float | None]]


class Until(TypedDict):
    """The precision until which seeds are added."""

    relative: Number
    level: Share
    max_seeds: Count


class Study(TypedDict):
    """The description of a study."""

    axes: list[str]


_IN_JSON: dict[str, Any] = {
    "settings": dict[str, str],
    "settings_by": dict[str, dict[str, dict[str, str]]],
    "labels": dict[str, list[Any]],
    "ledger": list[Row],
    "study": Study,
}
# Of coordinates and series.
_WORDS = ("long_name", "units", "symbol", "none")
_PATH = re.compile(r"missing required field `(\w+)`|`\$\.?(.*)`$")


def misfit(value: Any, form: Any) -> str | None:
    """Returns the path of the first field that is missing or something else, or None.

    Args:
        value: As JSON has it.
        form: Its type; fields that this does not have are not looked at.
    """
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        names = _PATH.findall(str(error).replace("[...]", ""))
        return ".".join(name or path for name, path in reversed(names))
    return None


def fits_ledger(ledger: Sequence[Mapping[str, Any]]) -> bool:
    """Tells whether rows agree: rows of several algorithms all have a title, those of one none."""
    return len({"title" in row for row in ledger}) <= 1


def unswept(study: Mapping[str, Any]) -> str | None:
    """Returns an axis of a study that is no list, or None."""
    return next((x for x in study["axes"] if not isinstance(study.get(x), list)), None)


def holds(value: Any) -> bool:
    """Tells whether a file gives a value back: a text has no NUL, and UTF-8 spells it."""
    try:
        return not isinstance(value, str) or b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def are_words(attrs: Mapping[Any, Any]) -> bool:
    """Tells whether attributes are words alone, which leave numbers what they are."""
    texts = all(name in _WORDS and isinstance(text, str) for name, text in attrs.items())
    return texts and "since" not in attrs.get("units", "")


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


def fault(data: xr.Dataset) -> str | None:
    """Returns the path of an attribute that no result of this package has like that, or None."""
    for name in _IN_JSON.keys() & data.attrs.keys():
        try:
            path = misfit(said(data, name), _IN_JSON[name])
        except (TypeError, ValueError):
            path = ""
        if path is not None:
            return f"{name}.{path}".replace(".[", "[").rstrip(".")
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
