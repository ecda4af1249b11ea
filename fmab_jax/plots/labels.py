"""Texts beside points of a figure, where there is room for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox

from fmab_jax.plots.style import FONT, text_size

# How far away from its point a label may stand, in points.
_DISTANCES = (4, 9, 15, 22, 30, 40, 55, 75, 100)
BELOW_LEFT, ABOVE = -0.75 * math.pi, 0.5 * math.pi
"""Where a label stands by preference, as an angle."""


def label_points(
    axes: Axes,
    points: np.ndarray,
    chosen: Sequence[int],
    texts: Sequence[str],
    most: int,
    reach: float = math.inf,
    angle: float = BELOW_LEFT,
    colours: Sequence[Any] | None = None,
) -> int:
    """Labels points where there is room, evenly among those that are chosen; returns how many.

    Every label tries places around its point and takes the nearest that covers least of the lines.
    A label that would cover a point or another label, or leave the axes, is left out.

    Args:
        axes: With the points and their lines.
        points: All points, [x or y, point].
        chosen: Which of them may get a label; the first ones have the choice of places.
        texts: Their labels.
        most: How many labels there may be.
        reach: How far away from its point a label may stand, in points of type.
        angle: Where labels stand by preference.
        colours: Of the labels; black by default.
    """
    point = axes.figure.dpi / 72
    inside = axes.get_window_extent().padded(-2 * point)
    pixels = axes.transData.transform(points.T)
    # What a label had better not cover: lines, bars, and lines from other labels to their points.
    strokes = [np.linspace(start, end, 30) for start, end in _strokes(axes)]
    covers = np.concatenate([np.empty((0, 2)), *strokes])
    ways = [(math.cos(turn), math.sin(turn)) for turn in _turns(angle)]
    boxes: list[Bbox] = []
    colours = colours or ["black"] * len(texts)
    even = np.linspace(0, len(texts) - 1, min(most, len(texts)))
    for index in sorted({round(place) for place in even.tolist()}):
        cell, text = chosen[index], texts[index]
        at = pixels[cell]
        size = np.array(text_size(text)) * axes.figure.dpi + 2 * point
        best: tuple[float, Bbox, np.ndarray] | None = None
        for distance, way in itertools.product(_DISTANCES, ways):
            if distance > reach or (best is not None and best[0] <= distance):
                break  # nothing further away is better
            middle = at + way * (distance * point + size / 2)
            box = Bbox([middle - size / 2, middle + size / 2])
            leader = np.linspace(at, middle, 20)
            if not (inside.contains(*box.min) and inside.contains(*box.max)):
                continue
            if any(box.overlaps(other) or other.count_contains(leader) for other in boxes):
                continue
            if box.padded(2 * point).count_contains(pixels):
                continue  # no label hides a point
            loss = 5 * box.count_contains(covers) + distance
            if best is None or loss < best[0]:
                best = (loss, box, leader)
        if best is None:
            continue
        _, box, leader = best
        boxes.append(box)
        covers = np.concatenate([covers, leader])
        axes.annotate(
            text,
            (float(points[0, cell]), float(points[1, cell])),
            xytext=tuple(((leader[-1] - at) / point).tolist()),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT,
            color=colours[index],
            linespacing=1.05,
            parse_math=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkB": 2},
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3},
        )
    return len(boxes)


def _turns(angle: float) -> list[float]:
    """Returns 16 directions, those next to an angle first."""
    steps = [0, *(sign * step for step in range(1, 8) for sign in (1, -1)), 8]
    return [step * math.pi / 8 + angle for step in steps]


def _strokes(axes: Axes) -> Iterator[Any]:
    """Yields both ends of each piece of a line, in pixels."""
    for line in axes.lines:
        if line.get_linestyle() != "None":
            yield from itertools.pairwise(axes.transData.transform(line.get_path().vertices))
    for lines in axes.collections:
        if isinstance(lines, LineCollection):
            yield from map(axes.transData.transform, lines.get_segments())
