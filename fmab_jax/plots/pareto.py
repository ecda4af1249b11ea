"""Draws regret against communication cost, with the Pareto front at equal trust and leak."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from fmab_jax.analysis.words import write_quantity, write_tick
from fmab_jax.errors import flag
from fmab_jax.plots import captions, frames, style

# Labels of the front.
_LABELLED = 8
_HEIGHT = 2.3
# Distances of a label from its point, in points of print, and directions: below left first.
_DISTANCES = (4, 9, 15, 22, 30, 40, 55)
_ANGLES = [math.pi * (step / 8 - 0.75) for step in (0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8)]


def plot_pareto(
    frame: pd.DataFrame,
    hue: str | None = None,
    *,
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws regret against communication cost, a point per configuration, with the Pareto front.

    A configuration is on the front (filled, on the step line) if no other one of the same trust has
    at most its cost, at most its regret and at most its leak, and less of one. Equal ones are on it
    together. Where trust or leaks differ there is no step line: what lies above others may leak
    less, and the caption says the leaks. Up to 8 of the front, evenly along it, are labelled with
    their values of the swept parameters (without the hue), where there is room.

    Args:
        frame: What `table` returned, or some of its rows.
        hue: The parameter told apart by colour and marker; up to 28 values.
        width: "column" (3.4 inches), "page" (7), or a number of inches in [2.5, 20].
        caption: Whether a part of the caption is drawn below the axes; `save_figure` writes it all.

    Returns:
        A figure for ``save_figure``, with one pair of axes.

    Raises:
        ValueError: For a table that is not one.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], rounds=[None, 3], horizon=10**4, seeds=20
        ... )
        >>> figure = fmab.plot_pareto(fmab.table(data), hue="epsilon")
        >>> len(figure.axes)
        1
    """
    frames.check_frame(frame, ["regret", "cost"], {"hue": hue})
    flag("caption", caption)
    inches = style.check_width(width)
    # What nobody states is no bound.
    leak = frame[["leak_messages", "leak_messages_delta"]]
    leak = leak.where(np.isfinite(frame.leak_messages), math.inf)
    points = np.column_stack([frame[["cost", "regret"]], leak]).astype(float)
    trust = pd.factorize(frame.trust)[0]
    front = _find_front(points, trust)
    differs = bool(trust.any()) or len(leak.drop_duplicates()) > 1

    figure, (axes,) = style.make_panels([_HEIGHT], inches)
    line: style.Style = {"color": "0.45", "linewidth": 0.9, "label": "Pareto front"}
    axes.step(*points[front[:0] if differs else front, :2].T, where="post", **line)
    is_best = np.isin(np.arange(len(frame)), front)
    groups = [*frame.assign(is_best=is_best).groupby(hue, sort=False)] if hue else []
    groups = groups or [(None, frame.assign(is_best=is_best))]
    handles = []
    for index, (value, rows) in enumerate(groups):
        label = write_tick(frames.read_axis(frame, hue), value) if hue else "mean"
        handles.append(_draw_points(axes, rows, index, label))
    axes.margins(0.12)
    style.scale_values(axes, "x", points[:, 0])
    style.scale_values(axes, "y", points[:, 1])
    axes.set_xlabel(frames.write_metric_label(frame, "cost", inches))
    axes.set_ylabel(frames.write_metric_label(frame, "regret", _HEIGHT))
    if not frame.cost_upper.any():
        axes.set_xlim(-0.04, 1)
    style.lay_out(
        figure,
        handles if hue else [],
        frames.write_caption(frame, _describe_front(frame, len(front), differs), paid=True),
        legend_title=frames.write_axis_label(frames.read_axis(frame, hue)) if hue else "",
        height=_HEIGHT,
        draws_caption=caption,
    )
    varied = frames.list_varied(frame)
    labels = frames.label_rows(frame, [name for name in varied if name != hue] or varied)
    # Equal points share a label.
    first = front[np.unique(points[front], axis=0, return_index=True)[1]] if varied else front[:0]
    even = np.linspace(0, len(first) - 1, min(_LABELLED, len(first))).round().astype(int)
    _label_points(axes, points[:, :2], first[even].tolist(), labels)
    return figure


def _find_front(points: np.ndarray, trust: np.ndarray) -> np.ndarray:
    """Returns the rows on the Pareto front, by increasing cost; equal rows all or none.

    A row is beaten by rows of the same trust alone, which is a number for each kind. ``points`` are
    cost, regret, epsilon and delta.
    """
    front: list[int] = []
    # Sorted by all columns: whatever beats a point comes before it.
    for row in np.lexsort(points.T[::-1]):
        rivals = points[[i for i in front if trust[i] == trust[row]]]
        beaten = (rivals <= points[row]).all(axis=1) & (rivals < points[row]).any(axis=1)
        if not beaten.any():
            front.append(int(row))
    rows = np.array(front, int)
    return rows[np.lexsort([rows, points[rows, 0]])]


def _describe_front(frame: pd.DataFrame, number: int, differs: bool) -> list[captions.Sentence]:
    """Describes what the points mean, and how many of them there are on the front."""
    meaning = "no more cost and no more regret"
    if differs:
        meaning = "the same trust, no more cost, no more regret and no more leak"
    counts = f"{number} of {write_quantity('', len(frame), 'configuration')}"
    front_of = "the Pareto front" + " of cost, regret and leak at the same trust" * differs
    return [
        frames.describe_points(frame),
        (f"Filled points: {front_of}; {counts}", f"Filled: {front_of}"),
        f"Open points: another configuration has {meaning}, and less of one of them"
        * (number < len(frame)),
    ]


def _draw_points(axes: Axes, rows: pd.DataFrame, index: int, label: str) -> Line2D:
    """Draws the rows of one colour, filled where they are on the front; returns their handle."""
    colour = style.COLOURS[index % len(style.COLOURS)]
    thin: style.Style = {"color": colour, "linewidth": 0.5, "alpha": 0.7}
    axes.vlines(rows.cost, rows.regret_lower, rows.regret_upper, **thin)
    axes.hlines(rows.regret, rows.cost_lower, rows.cost_upper, **thin)
    mark: style.Style = {"linestyle": "none", "color": colour, "label": label}
    mark |= {"marker": style.MARKERS[index % len(style.MARKERS)]}
    mark |= {"markersize": 3.5, "markeredgewidth": 0.7}
    for part, face in ((rows[~rows.is_best], "white"), (rows[rows.is_best], colour)):
        axes.plot(part.cost, part.regret, mfc=face, **mark)
    return Line2D([], [], **mark)


def _label_points(
    axes: Axes, points: np.ndarray, rows: Sequence[int], labels: Sequence[str]
) -> None:
    """Labels points of finished axes where a label covers no point and no other label.

    Args:
        axes: With the points.
        points: All points, [row, 2].
        rows: Those that may get a label; the first ones have the choice of places.
        labels: Of all rows.
    """
    point, frame = axes.figure.dpi / 72, axes.get_window_extent()
    pixels, boxes = axes.transData.transform(points), list[Bbox]()
    for row in rows:
        # Two values in a line.
        words = labels[row].split(", ")
        text = "\n".join(", ".join(words[i : i + 2]) for i in range(0, len(words), 2))
        size = np.array(style.measure_text(text)) * axes.figure.dpi + 2 * point
        for distance, angle in itertools.product(_DISTANCES, _ANGLES):
            turn = np.array([math.cos(angle), math.sin(angle)])
            offset = turn * (distance * point + size / 2)
            box = Bbox([pixels[row] + offset - size / 2, pixels[row] + offset + size / 2])
            is_hidden = box.padded(2 * point).count_contains(pixels) or box.count_overlaps(boxes)
            if not is_hidden and frame.contains(*box.min) and frame.contains(*box.max):
                boxes.append(box)
                _write_label(axes, text, points[row], offset / point)
                break


def _write_label(axes: Axes, text: str, point: np.ndarray, offset: np.ndarray) -> None:
    place: style.Style = {"xytext": tuple(offset), "textcoords": "offset points"}
    font: style.Style = {"fontsize": style.FONT, "linespacing": 1.05, "parse_math": False}
    arrow = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkB": 2}
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3}
    middle: style.Style = {"ha": "center", "va": "center"}
    axes.annotate(text, tuple(point), arrowprops=arrow, bbox=paper, **middle, **place, **font)
