"""Places labels beside points of a figure where there is room."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox

from fmab_jax.plots.style import FONT, Style, measure_text

# How far away from its point a label may stand, in points.
_DISTANCES = (4, 9, 15, 22, 30, 40, 55, 75, 100)
# Directions, as angles: below left first, then those next to it.
_TURNS = [
    math.pi * (step / 8 - 0.75) for step in (0, *(s * n for n in range(1, 8) for s in (1, -1)), 8)
]


def label_points(
    axes: Axes, points: np.ndarray, candidates: Sequence[int], texts: Sequence[str], most: int
) -> int:
    """Labels points where there is room, evenly among those that are chosen; returns how many.

    Every label tries places around its point and takes the nearest that covers least of the lines.
    A label that would cover a point or another label, or leave the axes, is left out.

    Args:
        axes: With the points and their lines.
        points: All points, [x or y, point].
        candidates: Which of them may get a label; the first ones have the choice of places.
        texts: Their labels.
        most: How many labels there may be.
    """
    point = axes.figure.dpi / 72
    frame = axes.get_window_extent().padded(-2 * point)
    pixels = axes.transData.transform(points.T)
    # Labels avoid lines, bars, and the leaders of other labels.
    strokes = [np.linspace(start, end, 30) for start, end in _iterate_strokes(axes)]
    covers = np.concatenate([np.empty((0, 2)), *strokes])
    boxes: list[Bbox] = []
    even = np.linspace(0, len(texts) - 1, min(most, len(texts)))
    for index in sorted({round(place) for place in even.tolist()}):
        at = pixels[candidates[index]]
        size = np.array(measure_text(texts[index])) * axes.figure.dpi + 2 * point
        places = []
        for distance, turn in itertools.product(_DISTANCES, _TURNS):
            middle = at + np.array([math.cos(turn), math.sin(turn)]) * (distance * point + size / 2)
            box = Bbox([middle - size / 2, middle + size / 2])
            leader = np.linspace(at, middle, 20)
            hidden = any(
                box.overlaps(box_before) or box_before.count_contains(leader)
                for box_before in boxes
            )
            # No label hides a point.
            hidden |= box.padded(2 * point).count_contains(pixels) > 0
            if not hidden and frame.contains(*box.min) and frame.contains(*box.max):
                places.append((5 * box.count_contains(covers) + distance, box, leader))
        if not places:
            continue
        _, box, leader = min(places, key=lambda place: place[0])
        boxes.append(box)
        covers = np.concatenate([covers, leader])
        x, y = points[:, candidates[index]].tolist()
        place: Style = {"xytext": tuple(((leader[-1] - at) / point).tolist())}
        place |= {"textcoords": "offset points", "ha": "center", "va": "center"}
        font: Style = {"fontsize": FONT, "linespacing": 1.05, "parse_math": False}
        arrow = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkB": 2}
        paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3}
        axes.annotate(texts[index], (x, y), arrowprops=arrow, bbox=paper, **place, **font)
    return len(boxes)


def _iterate_strokes(axes: Axes) -> Iterator[np.ndarray]:
    """Yields both ends of each piece of a line, in pixels."""
    for line in axes.lines:
        if line.get_linestyle() != "None":
            yield from itertools.pairwise(axes.transData.transform(line.get_path().vertices))
    for lines in axes.collections:
        if isinstance(lines, LineCollection):
            yield from map(axes.transData.transform, lines.get_segments())
