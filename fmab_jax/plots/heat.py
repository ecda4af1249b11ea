"""Draws final values over two swept parameters as a map of colours."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, NullLocator

from fmab_jax.errors import flag
from fmab_jax.plots import captions, frames, style, ticks


def plot_heat(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    metric: str = "regret",
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws a final value over two swept parameters as colours, with numbers where they fit.

    Colours are logarithmic where the values span more than a factor of 20. Cells are evenly spaced;
    numbers increase rightwards and upwards, names follow the table. Numbers have up to three
    digits, and thousands are written as k, millions as M.

    Args:
        frame: What `table` returned, or some of its rows.
        x: The parameter on the horizontal axis.
        y: The parameter on the vertical axis.
        metric: "regret", "cost" or "rounds".
        width: "column" (3.4 inches), "page" (7), or a number of inches in [2.5, 20].
        caption: Whether a part of the caption is drawn below the axes; `save_figure` writes it all.

    Returns:
        A figure for ``save_figure``; its axes are the map and the colour bar.

    Raises:
        ValueError: For a table that is not one, or where a parameter besides ``x`` and ``y`` has
            several values.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], rounds=[None, 3], horizon=10**4, seeds=20
        ... )
        >>> figure = fmab.plot_heat(fmab.table(data), "epsilon", "rounds")
        >>> figure.axes[0].get_xlabel()
        'privacy parameter ε'
    """
    frames.check_frame(frame, [metric], {"x": x, "y": y})
    flag("caption", caption)
    frames.refuse_other_parameters(frame, [x, y])
    across, up = (
        marks._replace(places=np.arange(float(len(marks.values))), is_broken=False)
        for marks in (ticks.place_ticks(frame, x), ticks.place_ticks(frame, y))
    )
    inches, column = style.check_width(width), frames.METRICS[metric]
    mean = frame.pivot(index=y, columns=x, values=column).loc[up.values, across.values]
    values = np.ma.masked_invalid(mean.to_numpy(float))
    height = min(max(0.26 * len(values), 0.9), 3.2)

    figure, (axes,) = style.make_panels([height], inches)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    edges = [np.arange(size + 1) - 0.5 for size in reversed(values.shape)]
    mesh = axes.pcolormesh(*edges, values, cmap="cividis", norm=_choose_norm(values.compressed()))
    axes.set_xlabel(frames.write_axis_label(frames.read_axis(frame, x)))
    axes.set_ylabel(frames.write_axis_label(frames.read_axis(frame, y)))
    _draw_scale(axes, mesh, height).set_xlabel(frames.write_metric_label(frame, metric, inches))

    def fit() -> None:
        ticks.fit_labels(axes, across)
        ticks.fit_labels(axes, up, "y")

    means = _describe_colours(frame, column)
    sentences = frames.write_caption(frame, [means], paid=metric == "cost")
    style.lay_out(figure, [], sentences, fit=fit, height=height, draws_caption=caption)
    _draw_numbers(axes, mesh, values)
    return figure


def _choose_norm(values: np.ndarray) -> Normalize:
    """Returns the norm that maps values to colours."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-3 * abs(high):
        # Numbers that read the same get nearly the same colour.
        return Normalize(low - 0.01 * abs(low), high + 0.01 * abs(high))
    if not style.has_wide_range(values):
        return Normalize(low, high)
    if low > 0:
        return LogNorm(low, high)
    return SymLogNorm(float(values[values > 0].min()), linscale=0.5, vmin=low, vmax=high)


def _draw_scale(axes: Axes, mesh: QuadMesh, height: float) -> Axes:
    """Draws the colour bar above a map; returns its axes."""
    thin: style.Style = {"fraction": 0.13 / height, "aspect": 30, "pad": 0.06 / height}
    bar = axes.figure.colorbar(mesh, ax=axes, location="top", **thin).ax
    style.style_axes(bar)
    bar.grid(False)
    bar.xaxis.labelpad = 4
    if isinstance(mesh.norm, LogNorm):
        bar.xaxis.set_major_locator(style.make_log_locator(*mesh.get_clim()))
        bar.xaxis.set_minor_locator(NullLocator())
    elif not isinstance(mesh.norm, SymLogNorm):
        bar.xaxis.set_major_locator(MaxNLocator(4))
    bar.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _write_number(value)))
    return bar


def _describe_colours(frame: pd.DataFrame, column: str) -> captions.Sentence:
    """Describes the colours, and the intervals that are not drawn."""
    mean, lower, upper = (frame[column + end].to_numpy(float) for end in frames.ENDS)
    half = (upper - lower)[mean > 0] / (2 * mean[mean > 0])
    widest = f"± at most {100 * half.max(initial=0.0):.2g} %"
    interval = frame.attrs["interval"]
    return (
        f"Colours and numbers: means over the seeds. Not drawn: the {interval}, {widest} of the "
        "mean",
        f"Colours: means, {widest} ({captions.shorten_interval(interval)})",
    )


def _draw_numbers(axes: Axes, mesh: QuadMesh, values: np.ma.MaskedArray) -> None:
    """Writes numbers into the cells of a map that has its place, with as many digits as fit."""
    box, (rows, columns) = axes.get_window_extent(), values.shape
    wide, tall = box.width / columns / axes.figure.dpi, box.height / rows / axes.figure.dpi
    for digits in (3, 2):
        texts = [_write_number(value, digits) for value in values.compressed()]
        widest, tallest = np.max([style.measure_text(text) for text in texts], axis=0)
        if widest <= 0.9 * wide and tallest <= 1.05 * tall:
            break
    else:
        return
    places = np.argwhere(~np.ma.getmaskarray(values))
    for (row, column), value, text in zip(places, values.compressed(), texts, strict=True):
        light = np.dot(mesh.cmap(mesh.norm(value))[:3], (0.299, 0.587, 0.114))
        font: style.Style = {"color": "black" if light > 0.45 else "white", "fontsize": style.FONT}
        axes.text(column, row, text, ha="center", va="center_baseline", **font)


def _write_number(value: float, digits: int = 3) -> str:
    """Writes a number with so many digits: 0.25, 30.1k, 1.2M."""
    rounded = float(f"{value:.{digits}g}")
    return EngFormatter(sep="")(rounded) if abs(rounded) >= 1000 else f"{rounded:g}"
