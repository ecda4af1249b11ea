"""The dimensions of a study: swept parameters, with the labels that stand for their values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.core.networks import FixedGraph
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Law
from fmab_jax.errors import length, refuse, shown
from fmab_jax.later import is_graph
from fmab_jax.parameters import Kind, Parameter
from fmab_jax.run.attributes import holds
from fmab_jax.run.outputs import RESULT_NAMES
from fmab_jax.sweeps.makers import Maker, name_of

MAX_CONFIGS = 100_000
# Fields of a study, which no axis may be called either.
_TAKEN = RESULT_NAMES | {"axes", "listed"}


class Axis(NamedTuple):
    """One swept parameter."""

    name: str  # the dimension's
    labels: tuple[Any, ...]  # numbers or texts, distinct
    values: tuple[Any, ...]  # what they stand for
    words: dict[str, str]  # ``long_name``, ``symbol`` and ``none``: how figures name it


def axis_of(name: str, value: Any, known: Parameter) -> Axis | None:
    """Returns the axis that a parameter spans, or None for a single value."""
    if not isinstance(value, Mapping) and known.kind.lists(value):
        return None
    swept = isinstance(value, (Mapping, list, tuple, range))
    if not swept and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return None
    if not length(value):
        refuse(name, value, "not empty", "give at least one value")
    if length(value) > MAX_CONFIGS:
        remedy = f"sweep fewer values of {name}"
        refuse("configurations", length(value), f"at most {MAX_CONFIGS:,}", remedy)
    if isinstance(value, Mapping):
        values, labels = list(value.values()), [str(label) for label in value]
    else:
        values = [_python_number(item) for item in value]
        labels = [_label(name, item, place, known) for place, item in enumerate(values)]
    seen = set()
    for label, item in zip(labels, values, strict=True):
        if label in seen:
            remedy = "a repeated value repeats its configurations"
            if not (item is None or isinstance(item, (str, int, float))):
                remedy = "label different ones: {'label': value}"
            refuse(name, label, "distinct values", remedy)
        seen.add(label)
        if not holds(label):
            refuse(name, label, "labels without a NUL, in Unicode", "rename it: no file holds it")
    if name in _TAKEN or name.startswith("links_"):
        refuse(name, value, "left out", "it is a name of results: rename the parameter")
    # Labels of one's own speak for themselves.
    symbol = "" if isinstance(value, Mapping) else known.symbol
    none = known.kind.none or "none"
    words = {"long_name": known.label or name, "symbol": symbol, "none": none}
    return Axis(name, tuple(labels), tuple(values), words)


def _python_number(value: Any) -> Any:
    """Returns a NumPy number as Python's; a float32 means the decimal number it prints."""
    if isinstance(value, np.floating):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def _label(name: str, value: Any, place: int, known: Parameter) -> Any:
    """Returns the number or the short text that stands for a value."""
    if type(known.kind) is not Kind:
        label = known.kind.label(known.check(value))
        return f"{name}-{place}" if label in (None, "") else label
    # An infinite epsilon is no noise, as None is; nothing else may be infinite.
    if value is None or (isinstance(value, float) and value == math.inf):
        return "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if is_graph(value) or isinstance(value, FixedGraph):
        return str(value.name or f"graph-{place}")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (Maker, Problem)):
        return getattr(value, "name", "") or f"{name}-{place}"
    if isinstance(value, Law):
        return value.label()
    if callable(value):
        return name_of(value)
    if isinstance(value, (list, tuple)) and len(value) <= MAX_CONFIGS:
        parts = [p if isinstance(p, (tuple, list)) else [p] for p in value]
        if any(isinstance(item, (list, tuple, dict)) for part in parts for item in part):
            return shown(value)
        return "+".join(":".join(map(str, part)) for part in parts)
    allowed = "numbers, texts, None, graphs or problems"
    refuse(name, value, allowed, "label it: {'label': value}")
