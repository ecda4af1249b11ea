"""Draws final values against one swept parameter, a line per value of another."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmab_jax.analysis.words import write_tick
from fmab_jax.errors import flag
from fmab_jax.plots import frames, style, ticks

_HEIGHT = 1.9


def plot_parameter(
    frame: pd.DataFrame,
    x: str,
    hue: str | None = None,
    *,
    metric: str = "regret",
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws a final value against one swept parameter, one line per value of another.

    Numbers of a parameter stand in their true distances, on a logarithmic axis where they
    are positive and span more than a factor of 10; strings, and numbers among strings, stand evenly
    spaced in the order of the table. An infinite number, or "none", stands at the end, behind a
    break of the axis. The vertical axis is logarithmic where the values span more than a factor of
    20, and starts at 0 unless they span less than a factor of 2.

    Args:
        frame: What `table` returned, or some of its rows.
        x: The parameter on the horizontal axis.
        hue: The parameter told apart by colour, stroke and marker; up to 28 values.
        metric: "regret", "cost" or "rounds".
        width: "column" (3.4 inches), "page" (7), or a number of inches in [2.5, 20].
        caption: Whether a part of the caption is drawn below the axes; `save_figure` writes it all.

    Returns:
        A figure for ``save_figure``, with one pair of axes.

    Raises:
        ValueError: For a table that is not one, or where a parameter besides ``x`` and ``hue`` has
            several values.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> figure = fmab.plot_parameter(fmab.table(data), "epsilon")
        >>> figure.axes[0].get_xlabel()
        'privacy parameter ε'
    """
    frames.check_frame(frame, [metric], {"x": x, "hue": hue})
    flag("caption", caption)
    frames.refuse_other_parameters(frame, [x, hue] if hue else [x])
    marks, column = ticks.place_ticks(frame, x), frames.METRICS[metric]
    figure, (axes,) = style.make_panels([_HEIGHT], style.check_width(width))
    groups = [*frame.groupby(hue, sort=False)] if hue else [(None, frame)]
    handles = []
    for index, (value, rows) in enumerate(groups):
        values = rows.set_index(x)[[column + end for end in frames.ENDS]].reindex(marks.values)
        shift = (index - (len(groups) - 1) / 2) * min(0.15, 0.7 / len(groups))
        label = write_tick(frames.read_axis(frame, hue), value) if hue else "mean"
        handles += _draw_line(axes, marks, values.to_numpy(float).T, index, shift, label)
    ticks.scale_axis(axes, marks)
    mean, lower, upper = (frame[column + end] for end in frames.ENDS)
    style.scale_values(axes, "y", mean.to_numpy(float))
    if axes.get_yscale() == "linear":
        if mean.max() > 2 * mean.min():
            axes.set_ylim(bottom=min(0.0, float(lower.min())))
        if not upper.any():
            axes.set_ylim(-0.04, 1)
    axes.set_xlabel(frames.write_axis_label(frames.read_axis(frame, x)))
    axes.set_ylabel(frames.write_metric_label(frame, metric, _HEIGHT))
    sentences = frames.write_caption(frame, [frames.describe_points(frame)], paid=metric == "cost")
    return style.lay_out(
        figure,
        handles if hue else [],
        sentences,
        legend_title=frames.write_axis_label(frames.read_axis(frame, hue)) if hue else "",
        fit=functools.partial(ticks.fit_labels, axes, marks),
        height=_HEIGHT,
        draws_caption=caption,
    )


def _draw_line(
    axes: Axes, marks: ticks.Ticks, values: np.ndarray, index: int, shift: float, label: str
) -> list[Line2D]:
    """Draws the line of a colour with its bars; ``values`` are mean, lower and upper ends."""
    mean, lower, upper = values
    size = 3.0 if len(marks.labels) <= 20 else 1.5
    marker = style.MARKERS[index % len(style.MARKERS)]
    line_style = style.get_line_style(index) | {"marker": marker, "markersize": size}
    places = marks.places
    if marks.scale == "categorical":
        line_style["linestyle"] = "none"  # nothing lies between two names
        places = places + shift
    colour = line_style["color"]
    axes.vlines(places, lower, upper, color=colour, linewidth=0.8)
    ends = np.concatenate([lower, upper])
    axes.plot(np.tile(places, 2), ends, "_", markersize=1.5 * size, color=colour)
    if marks.is_broken:
        places, mean = (np.insert(array, -1, np.nan) for array in (places, mean))
    return axes.plot(places, mean, label=label, **line_style)
