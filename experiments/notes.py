"""Words beside points of a panel, which cover neither points, lines nor each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

SMALL = 6  # points, of words beside markers
# Where words are tried, the nearest first: so many lines further aside than beside their point, and
# so many above or below.
_PLACES = sorted(
    ((aside, step / 4) for aside in (0.0, 2.0, 4.0, 6.0, 9.0) for step in range(200)),
    key=lambda place: math.hypot(*place),
)


class Note(NamedTuple):
    """Words that belong to a point."""

    at: tuple[float, float]  # the point, in the units of the axes
    words: str  # what is written beside it
    color: Any  # of the words


def write_beside(
    axes: Axes,
    notes: Sequence[Note],
    lines: Sequence[Sequence[tuple[float, float]]] = (),
    crowded: bool = False,
) -> None:
    """Writes words beside points, each at the nearest free height; a line leads to a far one.

    Where many points are above each other and their words do not fit beside them, all these words
    stand apart, and a line leads to each.

    To be called from `Page.fit`: what is free depends on where the panel is.

    Args:
        axes: In which the points are.
        notes: Points and words; earlier words of the panel are taken away.
        lines: Points and lines through points, which no words may cover.
        crowded: Whether a line leads to words that are nearer to another point, too.
    """
    for text in list(axes.texts):
        text.remove()
    box, dots = axes.get_window_extent(), [axes.transData.transform(note.at) for note in notes]
    pixel = axes.figure.dpi / 72  # of a point of type
    line, gap, mark = 1.2 * SMALL * pixel, 4.5 * pixel, 2.5 * pixel
    covered = [*dots, *(at for each in lines for at in _along(axes.transData.transform(each)))]
    # Left, right, lower and upper edge of what is written, and of the markers.
    taken = [(x - mark, x + mark, y - mark, y + mark) for x, y in covered]
    wide = [style.measure_text(note.words)[0] * axes.figure.dpi * SMALL / FONT for note in notes]

    def free(left: float, height: float, width: float) -> bool:
        low, high = height - line / 2, height + line / 2
        if left < box.x0 + mark or left + width > box.x1 or low < box.y0 or high > box.y1:
            return False
        return not any(
            a < left + width and left < b and c < high and low < d for a, b, c, d in taken
        )

    led: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.6", "shrinkA": 0.0}
    columns = _columns(dots, line)
    wished = _stacked(dots, columns, line, (box.y0 + line / 2, box.y1 - line / 2))
    # Of words that stand apart, by how much: room for lines that can be followed.
    apart = dict.fromkeys(range(len(notes)), 0.0)
    for column in columns:
        moved = any(abs(wished[index] - dots[index][1]) > 0.6 * line for index in column)
        if len(column) > 2 and moved:
            apart |= dict.fromkeys(column, 2.5 * line)

    def choice(column: Sequence[int]) -> tuple[int, float]:
        return len(column), crowded * max(wide[index] for index in column)

    # Points that have many others above or below them have the least choice, then long words.
    order = [i for column in sorted(columns, key=choice, reverse=True) for i in column]
    for index in order:
        (x, y), note, width = dots[index], notes[index], wide[index]
        away = gap + apart[index]
        tried = (
            (side, wished[index] + sign * up * line)
            for aside, up in _PLACES
            for side in (
                x + away + aside * line,
                x - away - width - aside * line,
                *[x - width / 2] * (not apart[index] and not aside),
            )
            for sign in (-1, 1)
        )
        left, height = next((at for at in tried if free(*at, width)), (x + away, wished[index]))
        taken.append((left, left + width, height - line / 2, height + line / 2))
        start = min(max((x - left) / width, 0.0), 1.0)
        own, *others = (
            math.hypot(max(left - a, 0.0, a - left - width), max(abs(height - b) - line / 2, 0.0))
            for a, b in (dots[index], *(dot for at, dot in enumerate(dots) if at != index))
        )
        nearer = min(others, default=math.inf) < own
        far = abs(height - y) > (0.6 if crowded and nearer else 1.5) * line
        far = far or max(left - x, x - left - width) > gap + line
        axes.annotate(
            note.words,
            note.at,
            xytext=((left - x) / pixel, (height - y) / pixel),
            textcoords="offset points",
            fontsize=SMALL,
            va="center",
            color=note.color,
            arrowprops=led | {"relpos": (start, 0.5)} if far else None,
        )


def _columns(dots: Sequence[Any], line: float) -> list[list[int]]:
    """Returns which points are above each other, from the top."""
    columns: dict[int, list[int]] = {}
    for index in sorted(range(len(dots)), key=lambda i: -dots[i][1]):
        columns.setdefault(round(dots[index][0] / line), []).append(index)
    return list(columns.values())


def _stacked(
    dots: Sequence[Any], columns: Sequence[list[int]], line: float, room: tuple[float, float]
) -> list[float]:
    """Returns heights of words: those above each other are a line apart, near to their points."""
    heights = [float(y) for _, y in dots]
    for members in columns:
        # Neighbours that are too close share a block, whose middle is that of their points.
        blocks: list[list[float]] = []
        for place, index in enumerate(members):
            blocks.append([heights[index] + place * line])
            while len(blocks) > 1 and np.mean(blocks[-2]) < np.mean(blocks[-1]):
                blocks[-2:] = [blocks[-2] + blocks[-1]]
        spread = [float(np.mean(block)) for block in blocks for _ in block]
        last = len(members) - 1
        for place, index in enumerate(members):
            height = min(spread[place], room[1]) - place * line
            heights[index] = max(height, room[0] + (last - place) * line)
    return heights


def _along(corners: np.ndarray) -> list[tuple[float, float]]:
    """Returns points along a line through corners, in pixels."""
    found = [tuple(corners[0])]
    for start, end in zip(corners, corners[1:], strict=False):
        steps = max(1, math.ceil(math.dist(start, end) / 2))
        found += [tuple(start + (end - start) * k / steps) for k in range(1, steps + 1)]
    return found
