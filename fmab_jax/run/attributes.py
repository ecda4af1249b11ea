"""What the attributes of a result must hold; a right digest says nothing about their content.

`fault` finds what a forged file has made of them. Whatever passes can be put into words, tables and
commands without surprises. The forms of a ledger and of a study serve a store's records as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec
import numpy as np
import xarray as xr
from msgspec import Meta

from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.run.resources import MAX_SEEDS

LONGEST = 1000
"""Letters of a heading."""

T = TypeVar("T")
Some = Annotated[list[T], Meta(min_length=1)]
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-1e308, le=1e308)]
Amount = Annotated[float, Meta(ge=0)]  # or infinity
Share = Annotated[float, Meta(gt=0, lt=1)]
Title = Annotated[str, Meta(max_length=LONGEST)]
_Swept: TypeAlias = T | Some[T]
_Table = str | list[Number | list[Number | list[Number]]]  # or the digest that stands for it


class Row(TypedDict):
    """A row of a privacy ledger."""

    who: str
    what: str
    why: str
    source: str
    leaks: Some[Annotated[list[Amount | None], Meta(min_length=2, max_length=5)]]
    title: NotRequired[str]
    where: NotRequired[str]
    law: NotRequired[str]
    fixed: NotRequired[bool | None]
    waits: NotRequired[bool]


class Until(TypedDict):
    """The precision until which seeds are added."""

    relative: Number
    level: Share
    max_seeds: Annotated[int, Meta(ge=1, le=MAX_SEEDS)]


class _Law(TypedDict):
    law: str


class _Problem(TypedDict):
    rewards: _Law
    agents: NotRequired[Count]
    arms: NotRequired[Count]
    spread: NotRequired[Number]
    instance_gap: NotRequired[Number | None]
    fixed_instance: NotRequired[Whole | None]
    means: NotRequired[_Table]
    probabilities: NotRequired[_Table]


class Study(TypedDict):
    """The description of a study; `unswept` checks that lists are what its axes have."""

    axes: list[str]
    algorithm: _Swept[str]
    problem: _Swept[str | _Problem]
    root_seed: Whole
    agents: NotRequired[_Swept[Count]]
    arms: NotRequired[_Swept[Count]]
    spread: NotRequired[_Swept[Number]]
    instance_gap: NotRequired[_Swept[Number | None]]
    fixed_instance: NotRequired[_Swept[Whole | None]]
    horizon: NotRequired[_Swept[Count]]
    rewards: NotRequired[_Swept[_Law]]
    times: NotRequired[_Swept[Number]]
    seeds: NotRequired[Count]
    spacing: NotRequired[str]
    sum_agents: NotRequired[bool]
    keep: NotRequired[str]
    until: NotRequired[Until | None]
    outputs: NotRequired[Some[str]]
    listed: NotRequired[str]


_FORMS: dict[str, Any] = {
    **dict.fromkeys(("agents", "arms", "horizon", "reporting"), Count),
    **dict.fromkeys(("wait", "root_seed", "looks"), Whole),
    **dict.fromkeys(("epsilon", "epsilon_message"), Amount),
    **dict.fromkeys(("look_level", "until_level"), Share),
    **dict.fromkeys(("algorithm", "title", "keep", "study_hash", "device"), Title),
}
_IN_JSON: dict[str, Any] = {
    "settings": dict[str, str],
    "settings_by": dict[str, dict[str, dict[str, str]]],
    "labels": dict[str, list[str | bool | Number | None]],
    "ledger": list[Row],
    "study": Study,
}
_SWEPT = {"agents", "arms", "spread", "instance_gap", "fixed_instance", "horizon", "rewards"}
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
        found = _PATH.findall(str(error).replace("[...]", ""))
        return ".".join(name or path for name, path in reversed(found))
    return None


def fits_ledger(ledger: Sequence[Mapping[str, Any]]) -> bool:
    """Tells whether rows of a ledger agree with each other, and leaks are of one of two forms.

    Rows of several algorithms all have a title, those of one none. A leak is an epsilon and a
    number of noises; or these, and the `Seen.shares` of a noise.
    """
    leaks = [leak for row in ledger for leak in row["leaks"]]
    return len({"title" in row for row in ledger}) <= 1 and all(map(_fits_leak, leaks))


def _fits_leak(leak: Sequence[Any]) -> bool:
    _, over, *shares = leak
    fits = isinstance(over, int) and 0 <= over <= AGENTS_MAX
    if not shares:
        return fits
    whole = [isinstance(each, int) for each in shares[1:]]
    return fits and whole == [True, True] and shares[0] is not None and 0 < shares[1] <= shares[2]


def holds(value: Any) -> bool:
    """Tells whether a file gives a value back: a text has no NUL, and UTF-8 spells it."""
    try:
        return not isinstance(value, str) or b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def unswept(study: Mapping[str, Any]) -> str | None:
    """Returns what is a list in a study and no axis, or an axis and no list, or None."""
    axes = {*study["axes"]}
    lists = {name for name, value in study.items() if isinstance(value, list)}
    wrong = (lists & _SWEPT - axes) | (axes & {*study} - lists)
    return min(wrong, default=None)


def _attributes(data: xr.Dataset) -> Iterator[tuple[str, Any, Any]]:
    """Gives the attributes of a result, and the words of its variables, each with its form."""
    for name, value in data.attrs.items():
        version = str(name).endswith("_version")
        yield str(name), value, _FORMS.get(str(name), Title if version else Any)
    for name, values in data.variables.items():
        yield from ((f"{name}.{word}", values.attrs.get(word, ""), Title) for word in _WORDS)


def are_words(attrs: Mapping[Any, Any]) -> bool:
    """Tells whether attributes are words alone, which leave numbers what they are."""
    texts = all(name in _WORDS and isinstance(text, str) for name, text in attrs.items())
    return texts and "since" not in attrs.get("units", "")


def lost_text(data: xr.Dataset) -> str | None:
    """Returns the name of a text that no file gives back, or None: a label, or a heading."""
    for name, values in data.coords.items():
        if values.dtype.kind in "UO" and not all(map(holds, values.values.flat)):
            return str(name)
    for path, value, form in _attributes(data):
        long = form is Title and isinstance(value, str) and len(value) > LONGEST
        if long or not holds(value):
            return path
    return None


def fault(data: xr.Dataset, *, longest: bool = True) -> str | None:
    """Returns the path of an attribute that no result of this package has like that, or None.

    Args:
        data: Results; attributes that the package does not know are not looked at.
        longest: Whether a text may be too long, as in a file that somebody else made.
    """
    said: dict[str, Any] = {"ledger": [], "study": {"axes": []}, "labels": {}}
    for name, value, form in _attributes(data):
        if form is Title and not longest:
            form = str
        if isinstance(value, np.generic):
            value = value.item()  # Files hold numbers as NumPy's.
        if name in _IN_JSON:
            form = _IN_JSON[name]
            try:
                value = said[name] = json.loads(value)
            except (TypeError, ValueError, RecursionError):
                return name
        if (path := misfit(value, form)) is not None:
            return f"{name}.{path}".replace(".[", "[").rstrip(".")
    study = said["study"]
    if not fits_ledger(said["ledger"]):
        return "ledger"
    if wrong := unswept(study):
        return f"study.{wrong}"
    for name, labels in said["labels"].items():
        # Each label stands for a value.
        if isinstance(study.get(name), list) and len(study[name]) != len(labels):
            return f"labels.{name}"
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
