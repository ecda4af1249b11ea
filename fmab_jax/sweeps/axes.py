"""The dimensions of a study: swept parameters, with the labels that stand for their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.errors import length, refuse
from fmab_jax.parameters import Parameter
from fmab_jax.run.outputs import RESULT_NAMES

MAX_CONFIGS = 100_000


class Axis(NamedTuple):
    """One swept parameter."""

    name: str  # the dimension's
    labels: tuple[Any, ...]  # numbers or texts, distinct
    values: tuple[Any, ...]  # what they stand for
    words: dict[str, str]  # ``long_name``, ``symbol`` and ``none``: how figures name it


def axis_of(name: str, value: Any, parameter: Parameter) -> Axis | None:
    """Returns the axis that a parameter spans, its values checked, or None for a single value."""
    kind, labelled = parameter.kind, isinstance(value, Mapping)
    vector = isinstance(value, np.ndarray) and value.ndim == 1
    if not (labelled or vector or isinstance(value, (list, tuple, range))):
        return None
    if not labelled and kind.lists(value):
        return None
    if not length(value):
        refuse(name, value, "not empty", "give at least one value")
    if length(value) > MAX_CONFIGS:
        remedy = f"sweep fewer values of {name}"
        refuse("configurations", length(value), f"at most {MAX_CONFIGS:,}", remedy)
    if name in RESULT_NAMES or name.startswith("links_"):
        refuse(name, value, "left out", "it is a name of results: rename the parameter")
    values = tuple(map(parameter.check, value.values() if labelled else value))
    labels = [*map(str, value)] if labelled else [kind.label(item) for item in values]
    labels = [f"{name}-{i}" if label in (None, "") else label for i, label in enumerate(labels)]
    seen: set[Any] = set()
    for label, item in zip(labels, values, strict=True):
        if label in seen:
            remedy = "a repeated value repeats its configurations"
            if not (item is None or isinstance(item, (str, int, float, type))):
                remedy = "label different ones: {'label': value}"
            refuse(name, label, "distinct values", remedy)
        seen.add(label)
    # Labels of one's own speak for themselves.
    symbol = "" if labelled else parameter.symbol
    words = {"long_name": parameter.label or name, "symbol": symbol, "none": kind.none or "none"}
    return Axis(name, tuple(labels), values, words)
