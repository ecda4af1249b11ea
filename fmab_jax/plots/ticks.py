"""Places the values of a swept parameter on an axis, with labels that fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from fmab_jax.analysis.words import is_number, write_tick
from fmab_jax.plots.frames import read_axis
from fmab_jax.plots.style import FONT, Style, measure_text, wrap_text


class Ticks(NamedTuple):
    """Where the values of a parameter lie on an axis, in its order, and how they are written."""

    values: list[str | float]
    places: np.ndarray
    labels: list[str]
    scale: str  # "linear", "log" or "categorical"
    is_broken: bool  # whether the last value is infinite and stands behind a break of the axis


def place_ticks(frame: pd.DataFrame, name: str) -> Ticks:
    """Places the values of a parameter: numbers by their size, names in the order of the table."""
    values, axis = frame[name].unique().tolist(), read_axis(frame, name)
    finite = [value for value in values if is_number(value) and math.isfinite(value)]
    if not finite or not all(is_number(value) and value > -math.inf for value in values):
        labels = [write_tick(axis, value) for value in values]
        return Ticks(values, np.arange(float(len(values))), labels, "categorical", False)
    values.sort()
    low, high = float(min(finite)), float(max(finite))
    scale = "log" if low > 0 and high > 10 * low else "linear"
    places = np.array(sorted(finite), float)
    if is_broken := len(finite) < len(values):
        # A fifth of the axis further on; a single number has no span of its own.
        beyond = high * (high / low) ** 0.2 if scale == "log" else high + ((high - low) or 1.0) / 5
        places = np.append(places, beyond)
    return Ticks(values, places, [write_tick(axis, value) for value in values], scale, is_broken)


def scale_axis(axes: Axes, ticks: Ticks) -> None:
    """Sets scale, limits and the break of the horizontal axis."""
    places = ticks.places
    if ticks.scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        room = float((places[-1] / places[0]) ** 0.05)
        axes.set_xlim(places[0] / room, places[-1] * room)
    else:
        span = float(places[-1] - places[0])
        spare = 0.5 if ticks.scale == "categorical" else 0.05 * (span or 1.0)
        axes.set_xlim(places[0] - spare, places[-1] + spare)
    if ticks.is_broken:
        last = places[-2:]
        middle = float(np.sqrt(last.prod()) if ticks.scale == "log" else last.mean())
        place: Style = {"xycoords": ("data", "axes fraction"), "ha": "center"}
        place |= {"va": "center", "bbox": {"color": "white", "pad": 0.2}}
        axes.annotate("//", (middle, 0), fontsize=FONT, **place)


def fit_labels(axes: Axes, ticks: Ticks, side: Literal["x", "y"] = "x") -> None:
    """Writes the values beside an axis, as many as there is room for; long names are turned."""
    points = np.zeros((len(ticks.places), 2))
    points[:, "xy".index(side)] = ticks.places
    pixels = getattr(axes, f"get_{side}axis_transform")().transform(points)
    places = pixels[:, "xy".index(side)] / axes.figure.dpi
    turn: Style = {}
    if side == "y":
        shown, labels = _choose_labels(places, ticks.labels, (0.9, 1.4), "tall")
    elif ticks.scale == "categorical":
        shown, labels = _choose_labels(places, ticks.labels, (1.3,), "wide")
        if len(shown) < len(labels):
            turn = {"rotation": 90}
            shown, labels = _choose_labels(places, ticks.labels, (1.4, 9.0), "tall")
    else:
        shown, labels = _choose_labels(places, ticks.labels, (1.3, 0.5), "wide")
    set_ticks = axes.set_xticks if side == "x" else axes.set_yticks
    set_ticks(ticks.places[shown], [labels[i] for i in shown], parse_math=False, **turn)


def _choose_labels(
    places: np.ndarray, labels: Sequence[str], limits: Sequence[float], along: str
) -> tuple[list[int], list[str]]:
    """Returns which labels fit without touching, from the last one backwards, and all in lines.

    The first of the ``limits`` of a line, in inches, with which all fit is taken, else the last.
    """
    for limit in limits:
        texts = [wrap_text(label, limit) for label in labels]
        sizes = [measure_text(text)[along == "tall"] + 0.06 * (along == "wide") for text in texts]
        shown: list[int] = []
        for i in range(len(sizes) - 1, -1, -1):
            if not shown or abs(places[shown[-1]] - places[i]) >= (sizes[i] + sizes[shown[-1]]) / 2:
                shown.append(i)
        if len(shown) == len(labels):
            break
    return shown[::-1], texts
