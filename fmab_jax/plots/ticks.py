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
    """Writes the labels that fit beside an axis; names that do not fit side by side are turned.

    Args:
        axes: The axes, with their final limits.
        ticks: The values.
        side: "x" for the horizontal axis, "y" for the vertical one.
    """
    points = np.zeros((len(ticks.places), 2))
    points[:, "xy".index(side)] = ticks.places
    pixels = getattr(axes, f"get_{side}axis_transform")().transform(points)
    positions_in = pixels[:, "xy".index(side)] / axes.figure.dpi
    text_style: Style = {}
    if side == "y":
        label_indices, texts = _choose_labels(positions_in, ticks.labels, (0.9, 1.4), "height")
    elif ticks.scale == "categorical":
        label_indices, texts = _choose_labels(positions_in, ticks.labels, (1.3,), "width")
        if len(label_indices) < len(texts):
            text_style = {"rotation": 90}
            label_indices, texts = _choose_labels(positions_in, ticks.labels, (1.4, 9.0), "height")
    else:
        label_indices, texts = _choose_labels(positions_in, ticks.labels, (1.3, 0.5), "width")
    set_ticks = axes.set_xticks if side == "x" else axes.set_yticks
    chosen_texts = [texts[i] for i in label_indices]
    set_ticks(ticks.places[label_indices], chosen_texts, parse_math=False, **text_style)


def _choose_labels(
    positions_in: np.ndarray,
    labels: Sequence[str],
    wrap_widths_in: Sequence[float],
    along: Literal["width", "height"],
) -> tuple[list[int], list[str]]:
    """Returns the indices of labels that fit without touching, and the wrapped texts of all.

    The last label is always among them, and others follow from there.

    Args:
        positions_in: Position of each label on the axis, in inches.
        labels: The labels.
        wrap_widths_in: Widths of a line, in inches; the first with which all labels fit is taken,
            else the last.
        along: Whether the width or the height of a text lies along the axis.
    """
    for wrap_width in wrap_widths_in:
        texts = [wrap_text(label, wrap_width) for label in labels]
        if along == "width":
            # Words side by side need a gap.
            sizes = [measure_text(text)[0] + 0.06 for text in texts]
        else:
            sizes = [measure_text(text)[1] for text in texts]
        label_indices: list[int] = []
        for i in reversed(range(len(texts))):
            if label_indices:
                neighbour = label_indices[-1]
                distance = abs(positions_in[neighbour] - positions_in[i])
                if distance < (sizes[i] + sizes[neighbour]) / 2:
                    continue
            label_indices.append(i)
        if len(label_indices) == len(labels):
            break
    return label_indices[::-1], texts
