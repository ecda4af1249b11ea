"""Figures of a sweep's final values: against one parameter as lines, against two as a map."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from fmab_jax.analysis.words import format_value, is_number, write_number, write_tick
from fmab_jax.errors import flag
from fmab_jax.plots import captions, style, tables
from fmab_jax.plots.style import FONT, measure_text, wrap_text

_HEIGHT = 1.9
# Units of the numbers in a map, by power of ten.
_UNITS = {0: "", 3: "in thousands", 6: "in millions", 9: "in billions (10⁹)", -3: "in thousandths"}


class _Ticks(NamedTuple):
    """Where the values of a parameter lie on an axis, and how they are written there."""

    order: list[int]  # places in the table, in the order of the axis
    places: np.ndarray  # position of each value in that order
    labels: list[str]  # text of each value in that order
    scale: str  # "linear", "log" or "categorical"
    broken: bool  # whether the last value is infinite and stands behind a break of the axis


def plot_parameter(
    finals: xr.Dataset,
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
        finals: Final values of each configuration of a sweep: a dimension per swept parameter.
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
        >>> figure = fmab.plot_parameter(fmab.final_table(data), "epsilon")
        >>> figure.axes[0].get_xlabel()
        'privacy parameter ε'
    """
    finals = tables.check_finals(finals, [metric], {"x": x, "hue": hue})
    flag("caption", caption)
    dims = [x, *([hue] if hue else [])]
    tables.refuse_other_parameters(finals, dims)
    ticks = _place_ticks(finals[x])
    mean, lower, upper = (
        array.reshape(finals.sizes[x], -1)[ticks.order]
        for array in tables.read_interval(finals, metric, dims)
    )

    figure, (axes,) = style.make_panels([_HEIGHT], style.check_width(width))
    handles = []
    lines = mean.shape[1]
    mark = 3.0 if len(ticks.labels) <= 20 else 1.5
    for index in range(lines):
        marker = style.MARKERS[index % len(style.MARKERS)]
        line_style = style.get_line_style(index) | {"marker": marker, "markersize": mark}
        places = ticks.places
        if ticks.scale == "categorical":
            line_style["linestyle"] = "none"  # nothing lies between two names
            places = places + (index - (lines - 1) / 2) * min(0.15, 0.7 / lines)
        colour = line_style["color"]
        axes.vlines(places, lower[:, index], upper[:, index], color=colour, linewidth=0.8)
        ends = np.concatenate([lower[:, index], upper[:, index]])
        axes.plot(np.tile(places, 2), ends, "_", markersize=1.5 * mark, color=colour)
        heights = np.array(mean[:, index])
        if ticks.broken:
            places, heights = (np.insert(values, -1, np.nan) for values in (places, heights))
        label = format_value(finals[hue], tables.read_values(finals[hue])[index]) if hue else "mean"
        handles += axes.plot(places, heights, label=label, **line_style)
    _scale_parameter(axes, ticks)
    style.scale_values(axes, "y", mean)
    if axes.get_yscale() == "linear":
        if mean.max() > 2 * mean.min():
            axes.set_ylim(bottom=min(0.0, float(lower.min())))
        if not upper.any():
            axes.set_ylim(-0.04, 1)
    axes.set_xlabel(captions.write_axis_label(finals[x]))
    axes.set_ylabel(tables.write_metric_label(finals, metric, _HEIGHT))
    sentences = tables.write_caption(
        finals, [captions.describe_points(finals)], paid=metric == "cost"
    )
    fit = functools.partial(_fit_horizontal, axes, ticks)
    place: style.Style = {"fit": fit, "height": _HEIGHT, "draws_caption": caption}
    return style.lay_out(figure, handles if hue else [], sentences, **place)


def plot_heat(
    finals: xr.Dataset,
    x: str,
    y: str,
    *,
    metric: str = "regret",
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws a final value over two swept parameters as colours, with numbers where they fit.

    Colours are logarithmic where the values span more than a factor of 20. Cells are evenly spaced;
    numbers increase rightwards and upwards, names follow the table. Numbers are written in maps of
    up to 12 columns.

    Args:
        finals: Final values of each configuration of a sweep: a dimension per swept parameter.
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
        >>> figure = fmab.plot_heat(fmab.final_table(data), "epsilon", "rounds")
        >>> figure.axes[0].get_xlabel()
        'privacy parameter ε'
    """
    finals = tables.check_finals(finals, [metric], {"x": x, "y": y})
    flag("caption", caption)
    tables.refuse_other_parameters(finals, [x, y])
    across, up = (
        ticks._replace(places=np.arange(float(len(ticks.labels))), broken=False)
        for ticks in (_place_ticks(finals[x]), _place_ticks(finals[y]))
    )
    mean, lower, upper = (
        values[np.ix_(up.order, across.order)]
        for values in tables.read_interval(finals, metric, [y, x])
    )
    inches = style.check_width(width)
    height = min(max(0.26 * len(mean), 0.9), 3.2)

    figure, (axes,) = style.make_panels([height], inches)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    edges = [np.arange(size + 1) - 0.5 for size in reversed(mean.shape)]
    mesh = axes.pcolormesh(*edges, mean, cmap="cividis", norm=_choose_norm(mean))
    axes.set_xlabel(captions.write_axis_label(finals[x]))
    axes.set_ylabel(captions.write_axis_label(finals[y]))
    bar = _draw_scale(axes, mesh, height)

    def numbers() -> tuple[list[list[str]] | None, int]:
        box = axes.get_window_extent()
        return _write_numbers(mean, box.width / figure.dpi, box.height / figure.dpi)

    def fit() -> None:
        _fit_horizontal(axes, across)
        _fit_vertical(axes, up)
        # The scale counts in the unit of the numbers in the map.
        power = numbers()[1]
        unit = 10.0**power
        bar.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write_number(value / unit)))
        name, *unit_lines = tables.write_metric_label(finals, metric, inches).split("\n")
        bar.set_xlabel("\n".join([name + f", {_UNITS[power]}" * bool(power), *unit_lines]))

    def write_sentences() -> list[captions.Sentence]:
        texts, _ = numbers()
        for (row, column), value in np.ndenumerate(mean if texts else mean[:0]):
            light = np.dot(mesh.cmap(mesh.norm(value))[:3], (0.299, 0.587, 0.114))
            font: style.Style = {"color": "black" if light > 0.45 else "white", "fontsize": FONT}
            font |= {"ha": "center", "va": "center_baseline"}
            axes.text(column, row, texts[row][column], **font)  # type: ignore[index]
        half = (upper - lower)[mean > 0] / (2 * mean[mean > 0])
        widest = f"{100 * half.max(initial=0.0):.2g} %"
        subject = "Colours and numbers" if texts else "Colours"
        means = (
            f"{subject}: means over the seeds{'; numbers rounded' * bool(texts)}. "
            f"Not drawn: the {finals.attrs['description']}, ± at most {widest} of the mean",
            f"Colours: means, ± at most {widest} ({captions.read_band_kind(finals)})",
        )
        return tables.write_caption(finals, [means], paid=metric == "cost")

    place: style.Style = {"fit": fit, "height": height, "draws_caption": caption}
    return style.lay_out(figure, [], write_sentences, **place)


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
    return bar


def _place_ticks(coordinate: xr.DataArray) -> _Ticks:
    """Places the values of a parameter on an axis."""
    values = tables.read_values(coordinate)
    labels = [write_tick(coordinate, value) for value in values]
    finite = [value for value in values if is_number(value) and math.isfinite(value)]
    infinite = [value for value in values if is_number(value) and value == math.inf]
    if len(finite) + len(infinite) < len(values) or len(infinite) > 1 or not finite:
        places = np.arange(float(len(values)))
        return _Ticks(list(range(len(values))), places, labels, "categorical", False)
    order = sorted(range(len(values)), key=values.__getitem__)
    low, high = float(min(finite)), float(max(finite))
    scale = "log" if low > 0 and high > 10 * low else "linear"
    places = np.array(sorted(finite), float)
    if infinite:
        # A fifth of the axis further on; a single number has no span of its own.
        beyond = high * (high / low) ** 0.2 if scale == "log" else high + ((high - low) or 1.0) / 5
        places = np.append(places, beyond)
    return _Ticks(order, places, [labels[i] for i in order], scale, bool(infinite))


def _choose_norm(values: np.ndarray) -> Normalize:
    """Returns the norm that maps values to colours."""
    low, high = float(values.min()), float(values.max())
    if not style.has_wide_range(values):
        return Normalize(low, high)
    if low > 0:
        return LogNorm(low, high)
    return SymLogNorm(float(values[values > 0].min()), linscale=0.5, vmin=low, vmax=high)


def _scale_parameter(axes: Axes, ticks: _Ticks) -> None:
    """Sets scale, limits and the break of the axis of a parameter."""
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
    if ticks.broken:
        last = places[-2:]
        middle = float(np.sqrt(last.prod()) if ticks.scale == "log" else last.mean())
        place: style.Style = {"xycoords": ("data", "axes fraction"), "ha": "center"}
        place |= {"va": "center", "bbox": {"color": "white", "pad": 0.2}}
        axes.annotate("//", (middle, 0), fontsize=FONT, **place)


def _thin_labels(places: np.ndarray, sizes: Sequence[float]) -> list[int]:
    """Returns the labels that fit without touching, chosen from the last one backwards."""
    places_left: list[int] = []
    for index in range(len(sizes) - 1, -1, -1):
        need = (sizes[index] + sizes[places_left[-1]]) / 2 if places_left else 0.0
        if not places_left or abs(places[places_left[-1]] - places[index]) >= need:
            places_left.append(index)
    return places_left[::-1]


def _fit_horizontal(axes: Axes, ticks: _Ticks) -> None:
    """Writes the values under the axis: turned where names are long, thinned where numbers are."""
    points = np.stack([ticks.places, np.zeros(len(ticks.places))], axis=1)
    places = axes.get_xaxis_transform().transform(points)[:, 0] / axes.figure.dpi
    labels = [wrap_text(label, 1.3) for label in ticks.labels]
    shown_places = _thin_labels(places, [measure_text(label)[0] + 0.06 for label in labels])
    if len(shown_places) < len(labels) and ticks.scale != "categorical":
        labels = [label.replace(" ", "\n") for label in ticks.labels]
        shown_places = _thin_labels(places, [measure_text(label)[0] + 0.06 for label in labels])
    turn: style.Style = {}
    if ticks.scale == "categorical" and len(shown_places) < len(labels):
        tall = max(measure_text(label)[1] for label in labels)
        if np.diff(places).min() >= tall / math.sin(math.radians(40)):
            turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor", "va": "center"}
            shown_places = list(range(len(labels)))
        else:
            turn = {"rotation": 90}
            labels = ticks.labels  # on one line each, so that most of them fit
            shown_places = _thin_labels(places, [measure_text(label)[1] for label in labels])
    axes.set_xticks(
        ticks.places[shown_places], [labels[i] for i in shown_places], parse_math=False, **turn
    )


def _fit_vertical(axes: Axes, ticks: _Ticks) -> None:
    """Writes the values beside the axis, as many as there is room for."""
    points = np.stack([np.zeros(len(ticks.places)), ticks.places], axis=1)
    places = axes.get_yaxis_transform().transform(points)[:, 1] / axes.figure.dpi
    for limit in (0.9, 1.4):  # longer lines only where names would be lost
        labels = [wrap_text(label, limit) for label in ticks.labels]
        shown_places = _thin_labels(places, [measure_text(label)[1] for label in labels])
        if len(shown_places) == len(labels):
            break
    axes.set_yticks(ticks.places[shown_places], [labels[i] for i in shown_places], parse_math=False)


def _write_numbers(
    values: np.ndarray, wide: float, tall: float
) -> tuple[list[list[str]] | None, int]:
    """Returns texts that fit the cells of a map of this size, in a power of ten, or None and 0."""
    rows, columns = values.shape
    power = 3 * math.floor(math.log10(max(values.max(), 1e-3)) / 3)
    power = min(power, max(_UNITS))
    exact = power == 0 and bool((values == np.round(values)).all())
    scaled = (values / 10.0**power).tolist()
    for digits, share in ((3, 0.85), (2, 0.92)):  # a third digit only where there is ample room
        texts = [[_write_rounded(value, 1 if exact else digits) for value in row] for row in scaled]
        widest, tallest = np.max([measure_text(text) for row in texts for text in row], axis=0)
        if columns <= 12 and widest <= share * wide / columns and tallest <= 1.05 * tall / rows:
            return texts, power
    return None, 0


def _write_rounded(value: float, digits: int) -> str:
    """Writes a number with so many digits, or all of its whole part."""
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{max(0, digits - 1 - size)}f}" if value else "0"
