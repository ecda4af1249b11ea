"""Figures of a parameter sweep at column width: one parameter, two parameters, regret against cost.

Drawn from the final values of each cell, in the look of `plots`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import LogNorm, Normalize, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from fmab_jax.errors import choice, refuse
from fmab_jax.plots.runs import (
    COLOURS,
    FONT,
    PAD,
    STROKES,
    WIDTH,
    caption_below,
    counted,
    legend_above,
    look,
    privacy,
    whole,
    wrapped,
)

# The metric "rounds" is not called so in the table: there the name belongs to the round budget.
_VARIABLES = {"regret": "regret", "cost": "cost", "rounds": "rounds_made"}
_AXES = {
    "epsilon": "privacy parameter ε",
    "epsilon_message": "privacy parameter of a message, Nε",
    "participation": "participation p",
    "rounds": "round budget R",
    "horizon": "horizon T (slots)",
    "agents": "agents M",
    "arms": "arms K",
}
_SYMBOLS = {
    "epsilon": "ε",
    "epsilon_message": "Nε",
    "participation": "p",
    "rounds": "R",
    "horizon": "T",
    "agents": "M",
    "arms": "K",
}
# Values of these speak for themselves.
_NAMED = ("algorithm", "components", "graph", "problem")
# Eight markers and seven colours have no common divisor either.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_HEIGHT, _GAP = 1.9, 0.07
_LABELLED = 8


class _Ticks(NamedTuple):
    """Where the values of a parameter lie on an axis, and how they are written there.

    Attributes:
        order: Places in the table, in the order of the axis.
        places: Position of each value in that order.
        labels: Text of each value in that order.
        scale: "linear", "log" or "categorical".
        broken: Whether the last value is infinite and stands behind a break of the axis.
    """

    order: list[int]
    places: np.ndarray
    labels: list[str]
    scale: str
    broken: bool


def plot_parameter(
    finals: xr.Dataset, x: str, hue: str | None = None, *, metric: str = "regret"
) -> Figure:
    """Draws a final value against one swept parameter, one line per value of another.

    Numbers stand in their true distances, on a logarithmic axis where they are positive and span
    more than a factor of 10; strings, and numbers among strings, stand evenly spaced in the order
    of the table. An infinite number stands at the end, behind a break of the axis. The vertical
    axis is logarithmic where the values span more than a factor of 20, and starts at 0 unless they
    span less than a factor of 2.

    Args:
        finals: Final values of each cell of a sweep: a dimension per swept parameter.
        x: The parameter on the horizontal axis.
        hue: The parameter told apart by colour, stroke and marker; up to 28 values.
        metric: "regret", "cost" or "rounds".

    Returns:
        A figure 3.4 inches wide, for ``save_figure``, with one pair of axes.

    Raises:
        ValueError: For a table that is not one, or where a parameter besides ``x`` and ``hue`` has
            several values.
    """
    _check(finals, [metric], {"x": x, "hue": hue})
    dims = [x, *([hue] if hue else [])]
    _refuse_other_parameters(finals, dims)
    ticks = _ticks(x, _values(finals, x))
    mean, lower, upper = (
        _cells(finals, name, dims).reshape(finals.sizes[x], -1)[ticks.order]
        for name in _triple(metric)
    )

    figure, axes = _figure()
    handles = []
    lines = mean.shape[1]
    mark = 3.0 if len(ticks.labels) <= 20 else 1.5
    for index in range(lines):
        style = look(index) | {"marker": _MARKERS[index % len(_MARKERS)], "markersize": mark}
        places = ticks.places
        if ticks.scale == "categorical":
            style["linestyle"] = "none"  # nothing lies between two names
            places = places + (index - (lines - 1) / 2) * min(0.15, 0.7 / lines)
        colour = style["color"]
        axes.vlines(places, lower[:, index], upper[:, index], color=colour, linewidth=0.8)
        for ends in (lower[:, index], upper[:, index]):
            axes.plot(
                places, ends, linestyle="none", marker="_", markersize=1.5 * mark, color=colour
            )
        drawn = np.array(mean[:, index])
        if ticks.broken:
            places, drawn = (np.insert(values, -1, np.nan) for values in (places, drawn))
        label = told(hue, _values(finals, hue)[index]) if hue else "mean"
        handles += axes.plot(places, drawn, label=label, **style)
    _scale_parameter(axes, ticks)
    _scale_values(axes, "y", mean)
    if axes.get_yscale() == "linear":
        if mean.max() > 2 * mean.min():
            axes.set_ylim(bottom=min(0.0, float(lower.min())))
        if not upper.any():
            axes.set_ylim(-0.04, 1)
    axes.set_xlabel(_axis_label(x), fontsize=FONT, labelpad=2)

    def fit(renderer: RendererAgg) -> None:
        _fit_horizontal(axes, renderer, ticks)
        _label_vertical(axes, renderer, finals, metric)

    band = finals.attrs["description"]
    caption = [_facts(finals), f"Points: means over the seeds; bars: {band}", _lost(finals)]
    _lay_out(
        figure,
        axes,
        _HEIGHT,
        handles if hue else [],
        fit=fit,
        caption=lambda renderer: caption,
    )
    return figure


def plot_heat(finals: xr.Dataset, x: str, y: str, *, metric: str = "regret") -> Figure:
    """Draws a final value over two swept parameters as colours, with numbers where they fit.

    Colours are logarithmic where the values span more than a factor of 20. Cells are evenly spaced;
    numbers increase rightwards and upwards, names follow the table. Numbers are written in maps of
    up to 12 columns.

    Args:
        finals: Final values of each cell of a sweep: a dimension per swept parameter.
        x: The parameter on the horizontal axis.
        y: The parameter on the vertical axis.
        metric: "regret", "cost" or "rounds".

    Returns:
        A figure 3.4 inches wide, for ``save_figure``; its axes are the map and the colour bar.

    Raises:
        ValueError: For a table that is not one, or where a parameter besides ``x`` and ``y`` has
            several values.
    """
    _check(finals, [metric], {"x": x, "y": y})
    _refuse_other_parameters(finals, [x, y])
    across, up = (_evenly(_ticks(name, _values(finals, name))) for name in (x, y))
    mean, lower, upper = (
        _cells(finals, name, [y, x])[np.ix_(up.order, across.order)] for name in _triple(metric)
    )
    rows, columns = mean.shape

    figure, axes = _figure()
    axes.grid(False)
    axes.spines[:].set_visible(False)
    edges = [np.arange(size + 1) - 0.5 for size in (columns, rows)]
    mesh = axes.pcolormesh(*edges, mean, cmap="cividis", norm=_norm(mean))
    axes.set_xlabel(_axis_label(x), fontsize=FONT, labelpad=2)
    axes.set_ylabel(_axis_label(y), fontsize=FONT, labelpad=2)
    bar = figure.add_axes((0.2, 0.85, 0.7, 0.05))
    figure.colorbar(mesh, cax=bar, orientation="horizontal", ticklocation="top")
    bar.tick_params(labelsize=FONT, width=0.6, length=2.5, pad=2)
    bar.set_xlabel("\n".join(_metric_label(finals, metric)), fontsize=FONT, labelpad=3)
    bar.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))
    if isinstance(mesh.norm, LogNorm):
        bar.xaxis.set_major_locator(_log_locator(mean.min(), mean.max()))
        bar.xaxis.set_minor_locator(NullLocator())
    elif not isinstance(mesh.norm, SymLogNorm):
        bar.xaxis.set_major_locator(MaxNLocator(4))
    height = min(max(0.26 * rows, 0.6), 3.2)

    def fit(renderer: RendererAgg) -> None:
        _fit_horizontal(axes, renderer, across)
        _fit_vertical(axes, renderer, up)

    def caption(renderer: RendererAgg) -> list[str]:
        sentences = [_facts(finals)]
        room = (axes.get_position().width * WIDTH / columns, height / rows)
        texts, power = _numbers(renderer, mean, room)
        if texts is None:
            sentences.append("Colours: means over the seeds")
        else:
            for (row, column), value in np.ndenumerate(mean):
                light = np.dot(mesh.cmap(mesh.norm(value))[:3], (0.299, 0.587, 0.114))
                axes.text(
                    column,
                    row,
                    texts[row][column],
                    ha="center",
                    va="center_baseline",
                    fontsize=FONT,
                    color="black" if light > 0.45 else "white",
                )
            unit = f", in units of {_written(10**power)}" if power else ""
            sentences.append(f"Colours and numbers: means over the seeds; numbers rounded{unit}")
        half = (upper - lower)[mean > 0] / (2 * mean[mean > 0])
        widest = f"{100 * half.max(initial=0.0):.2g} %"
        band = finals.attrs["description"]
        sentences.append(f"Band: {band}; its half-width is at most {widest} of the mean")
        return [*sentences, _lost(finals)]

    _lay_out(figure, axes, height, [], fit=fit, caption=caption, bar=bar)
    return figure


def plot_pareto(finals: xr.Dataset, hue: str | None = None) -> Figure:
    """Draws regret against communication cost, a point per cell, with the Pareto front.

    A cell is on the front (filled, on the step line) if no other cell has at most its cost and at
    most its regret, and less of one. Equal cells are on it together. Up to 8 of them, evenly along
    the front, are labelled with their values of the swept parameters (without the hue), where
    there is room.

    Args:
        finals: Final values of each cell of a sweep: a dimension per swept parameter.
        hue: The parameter told apart by colour and marker; up to 28 values.

    Returns:
        A figure 3.4 inches wide, for ``save_figure``, with one pair of axes.

    Raises:
        ValueError: For a table that is not one.
    """
    _check(finals, ["regret", "cost"], {"hue": hue})
    dims = [str(name) for name in finals.sizes]
    regret, regret_lower, regret_upper = (
        _cells(finals, name, dims).ravel() for name in _triple("regret")
    )
    cost, cost_lower, cost_upper = (_cells(finals, name, dims).ravel() for name in _triple("cost"))
    places = np.indices([finals.sizes[name] for name in dims]).reshape(len(dims), cost.size)
    colours = places[dims.index(hue)] if hue else np.zeros(cost.size, int)
    front = _front(cost, regret)

    figure, axes = _figure()
    axes.step(
        cost[front], regret[front], where="post", color="0.45", linewidth=0.9, label="Pareto front"
    )
    handles = []
    for index in range(int(colours.max()) + 1):
        colour, marker = COLOURS[index % len(COLOURS)], _MARKERS[index % len(_MARKERS)]
        mine = np.flatnonzero(colours == index)
        thin: dict[str, Any] = {"color": colour, "linewidth": 0.5, "alpha": 0.7}
        axes.vlines(cost[mine], regret_lower[mine], regret_upper[mine], **thin)
        axes.hlines(regret[mine], cost_lower[mine], cost_upper[mine], **thin)
        label = told(hue, _values(finals, hue)[index]) if hue else "mean"
        style: dict[str, Any] = {
            "linestyle": "none",
            "marker": marker,
            "color": colour,
            "markersize": 3.5,
            "markeredgewidth": 0.7,
        }
        for chosen, face in (
            (np.setdiff1d(mine, front), "white"),
            (np.intersect1d(mine, front), colour),
        ):
            axes.plot(cost[chosen], regret[chosen], mfc=face, label=label, **style)
        handles.append(Line2D([], [], label=label, **style))
    axes.margins(0.12)
    _scale_values(axes, "x", cost)
    _scale_values(axes, "y", regret)
    axes.set_xlabel("\n".join(_metric_label(finals, "cost")), fontsize=FONT, labelpad=2)
    if not cost_upper.any():
        axes.set_xlim(-0.04, 1)

    def caption(renderer: RendererAgg) -> list[str]:
        varied = [name for name in dims if finals.sizes[name] > 1]
        shown = [name for name in varied if name != hue] or varied
        texts = [
            _short_label(
                [(name, _values(finals, name)[places[dims.index(name), cell]]) for name in shown]
            )
            for cell in front
        ]
        number = 0
        if shown:
            number = _label_points(axes, renderer, np.stack([cost, regret]), front, texts)
        band = finals.attrs["description"]
        least = "no other cell has at most its cost and its regret, and less of one"
        return [
            _facts(finals),
            f"Points: means over the seeds; bars: {band}",
            f"Filled, on the line: the Pareto front ({least}), {len(front)} of "
            f"{counted('', cost.size, 'cell')}, {number} of them labelled",
            _lost(finals),
        ]

    _lay_out(
        figure,
        axes,
        2.3,
        handles if hue else [],
        fit=lambda renderer: _label_vertical(axes, renderer, finals, "regret"),
        caption=caption,
    )
    return figure


def _triple(metric: str) -> list[str]:
    """Returns the variables that hold a metric's mean and the ends of its band."""
    return [_VARIABLES[metric] + end for end in ("", "_lower", "_upper")]


def _check(finals: xr.Dataset, metrics: Sequence[str], chosen: dict[str, str | None]) -> None:
    """Refuses what is not a complete table of final values, and unknown names."""
    for metric in metrics:
        allowed = f"one of {', '.join(_VARIABLES)}"
        choice("metric", metric, _VARIABLES, "choose one of these", allowed)
    remedy = "pass the final values of a sweep unchanged"
    if not isinstance(finals, xr.Dataset):
        refuse("finals", finals, "a table of final values", remedy)
    lost = [f"best_arm_lost{end}" for end in ("", "_lower", "_upper")]
    needed = [name for metric in metrics for name in _triple(metric)] + ["seeds", *lost]
    facts = {"algorithm", "level", "description"}
    facts |= {"server_price", "peer_price"} if "cost" in metrics else set()
    missing = [name for name in needed if name not in finals] + sorted(facts - set(finals.attrs))
    missing += [f"coordinate {name}" for name in finals.sizes if name not in finals.coords]
    if missing:
        refuse("finals", f"without {', '.join(missing)}", "a table of final values", remedy)
    raw = {"seed", "time"} & set(finals.sizes)
    if raw:
        refuse("finals", tuple(finals.sizes), "without dimensions seed and time", remedy)
    empty = [name for name, size in finals.sizes.items() if size == 0]
    if empty:
        refuse("finals", f"no value of {empty[0]}", "at least one cell", "select less narrowly")
    for name in needed:
        bad = int((~np.isfinite(finals[name].values.astype(float))).sum())
        if bad:
            allowed = "finite in every cell"
            refuse(f"finals.{name}", f"{bad} not finite", allowed, "complete the sweep")
    names = [name for name in chosen.values() if name is not None]
    for field, parameter in chosen.items():
        if parameter is not None or field in ("x", "y"):
            allowed = f"one of {', '.join(map(str, finals.sizes)) or 'none'}"
            choice(field, parameter, map(str, finals.sizes), "choose a swept parameter", allowed)
    if len(set(names)) < len(names):
        refuse(" and ".join(chosen), names[0], "two parameters", "choose another one")
    hue = chosen.get("hue")
    if hue and finals.sizes[hue] > len(COLOURS) * len(STROKES):
        allowed = f"a parameter of at most {len(COLOURS) * len(STROKES)} values"
        refuse("hue", f"{hue} ({finals.sizes[hue]} values)", allowed, "select fewer of them")


def _refuse_other_parameters(finals: xr.Dataset, dims: Sequence[str]) -> None:
    """Refuses several values of a parameter that the figure does not show."""
    others = {str(n): size for n, size in finals.sizes.items() if size > 1 and n not in dims}
    if others:
        value = ", ".join(f"{size} values of {name}" for name, size in others.items())
        name = next(iter(others))
        example = finals[name].values.tolist()[0]
        refuse(
            "finals",
            value,
            f"one value of every parameter except {', '.join(dims)}",
            f"select it with .sel({name}={example!r}) or --select {name}={example}",
        )


def _values(finals: xr.Dataset, name: str) -> list[Any]:
    """Returns the values of a parameter as plain Python objects; no limit is infinite."""
    unlimited = name.startswith("epsilon") or name == "rounds"
    values = finals[name].values.tolist()
    return [math.inf if unlimited and value == "none" else value for value in values]


def _cells(finals: xr.Dataset, name: str, dims: Sequence[str]) -> np.ndarray:
    """Returns a variable over these dimensions, and no others, as floats."""
    rest = {dim: 0 for dim in finals[name].dims if dim not in dims}
    shape = [finals.sizes[dim] for dim in dims]
    everywhere = xr.DataArray(np.zeros(shape), dims=dims)
    values, _ = xr.broadcast(finals[name].isel(rest), everywhere)
    return values.transpose(*dims).values.astype(float)


def _is_number(value: Any) -> bool:
    """Tells whether a value is a number to be placed on an axis."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and not math.isnan(value)


def _ticks(name: str, values: list[Any]) -> _Ticks:
    """Decides where the values of a parameter stand on an axis."""
    labels = [_value_label(name, value) for value in values]
    finite = [value for value in values if _is_number(value) and math.isfinite(value)]
    infinite = [value for value in values if _is_number(value) and value == math.inf]
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


def _evenly(ticks: _Ticks) -> _Ticks:
    """Returns the same values in the same order, evenly spaced."""
    return ticks._replace(places=np.arange(float(len(ticks.labels))), broken=False)


def _value_label(name: str, value: Any) -> str:
    """Writes a value of a parameter as a tick label."""
    if _is_number(value):
        if value == math.inf:
            named = {"rounds": "none", "epsilon": "no noise", "epsilon_message": "no noise"}
            return named.get(name, "∞")
        return _written(value)
    return str(value)


def _axis_label(name: str) -> str:
    """Writes a parameter's name on an axis."""
    return _AXES.get(name, name.replace("_", " "))


def told(name: str, value: Any) -> str:
    """Writes a parameter with its value, such as "ε = 0.5"."""
    unlimited = name.startswith("epsilon") or name == "rounds"
    label = _value_label(name, math.inf if unlimited and value == "none" else value)
    if name == "rounds" and label == "none":
        return "no round budget"
    if label == "no noise" or (name in _NAMED and not _is_number(value)):
        return label
    return f"{_SYMBOLS.get(name, name.replace('_', ' '))} = {label}"


def _written(number: float) -> str:
    """Writes a number in at most six digits, large and small ones with a power of ten."""
    text = f"{number:.6g}"
    mantissa, _, exponent = f"{number:.5e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    # "20000" is shorter as a power of ten, "12345" is not.
    if "e" not in text and (abs(number) < 1e4 or len(mantissa) > 3):
        return text
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if mantissa == "1" else f"{mantissa}×{power}"


def _metric_label(finals: xr.Dataset, metric: str) -> list[str]:
    """Returns name and unit of a metric."""
    if metric == "rounds":
        return ["rounds completed by T"]
    if metric == "regret":
        return ["cumulative regret at T", "(reward, summed over M agents)"]
    server, peer = (_written(finals.attrs[f"{kind}_price"]) for kind in ("server", "peer"))
    return ["communication cost at T", f"(price: {server} per server link, {peer} per peer link)"]


def _facts(finals: xr.Dataset) -> str:
    """Returns the caption's first sentence: what all cells share."""
    fixed = {
        str(name): values.values.reshape(-1).tolist()[0]
        for name, values in finals.coords.items()
        if values.size == 1
    }
    # The list of algorithms is worth repeating; other swept parameters stand in the figure.
    swept = {name for name, size in finals.sizes.items() if size > 1} - {"algorithm"}
    known = {name: value for name, value in finals.attrs.items() if name not in swept} | fixed
    facts = [str(known.pop("algorithm"))] if "algorithm" in known else []
    if _is_number(known.get("epsilon")):
        facts += privacy(known["epsilon"])
        fixed.pop("epsilon", None)
    for name, symbol, noun in (
        ("agents", "M = ", "agent"),
        ("arms", "K = ", "arm"),
        ("horizon", "T = ", "slot"),
    ):
        if _is_number(known.get(name)):
            facts.append(counted(symbol, known[name], noun))
            fixed.pop(name, None)
    fixed = {name: value for name, value in fixed.items() if name in known}
    facts += [told(name, value) for name, value in fixed.items()]
    cells = math.prod(finals.sizes.values())
    seeds = finals.seeds.values
    fewest, most = int(seeds.min()), int(seeds.max())
    number = counted("", most, "seed")
    if fewest < most:
        number = f"{whole(fewest)} to {number}"
    return ", ".join([*facts, number + (" per cell" if cells > 1 else "")])


def _lost(finals: xr.Dataset) -> str:
    """Says how many seeds lost the best arm, and in which cell most did."""
    dims = [str(name) for name in finals.sizes]
    lost, low, high, seeds = (
        _cells(finals, name, dims)
        for name in ("best_arm_lost", "best_arm_lost_lower", "best_arm_lost_upper", "seeds")
    )
    # Of cells that lost equally often, the one that is least sure.
    worst = max(np.ndindex(lost.shape), key=lambda at: (lost[at] / seeds[at], high[at]))
    interval = (
        f"{100 * float(finals.attrs['level']):.6g} % Clopper–Pearson interval "
        f"{100 * low[worst]:.3g}–{100 * high[worst]:.3g} %"
    )
    start = "Seeds that lost the best arm: "
    total = f"{whole(lost.sum())} of {whole(seeds.sum())}"
    if lost.size == 1:
        return f"{start}{total} ({interval})"
    if not lost.any():
        return f"{start}{total}, 0 in every cell ({interval} in a cell)"
    where = ", ".join(
        told(name, _values(finals, name)[at])
        for name, at in zip(dims, worst, strict=True)
        if finals.sizes[name] > 1
    )
    share = f"{whole(lost[worst])} of {whole(seeds[worst])}"
    return f"{start}{total}; most in a cell: {share} ({interval}) at {where}"


def _figure() -> tuple[Figure, Axes]:
    """Makes a figure and its main axes in the common look."""
    figure = Figure(figsize=(WIDTH, 4.0))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.2, 0.3, 0.7, 0.5))
    axes.tick_params(labelsize=FONT, width=0.6, length=2.5, pad=2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set_fontsize(FONT)
    return figure, axes


def _wide(values: np.ndarray) -> bool:
    """Tells whether positive values span more than a factor of 20."""
    positive = values[values > 0]
    return positive.size > 0 and bool(positive.max() > 20 * positive.min())


def _norm(values: np.ndarray) -> Normalize:
    """Returns how values become colours."""
    low, high = float(values.min()), float(values.max())
    if not _wide(values):
        return Normalize(low, high)
    if low > 0:
        return LogNorm(low, high)
    return SymLogNorm(float(values[values > 0].min()), linscale=0.5, vmin=low, vmax=high)


def _log_locator(low: float, high: float) -> LogLocator:
    """Returns ticks at powers of ten, in between too where there are few."""
    return LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,), numticks=7)


def _scale_values(axes: Axes, which: Literal["x", "y"], mean: np.ndarray) -> None:
    """Makes an axis of a metric logarithmic where its means span more than a factor of 20."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    set_scale = axes.set_xscale if which == "x" else axes.set_yscale
    if not _wide(mean):
        axes.locator_params(axis=which, nbins=4)
        axes.ticklabel_format(axis=which, style="sci", scilimits=(-3, 4), useMathText=True)
        return
    if mean.min() > 0:
        set_scale("log")
        axis.set_major_locator(_log_locator(float(mean.min()), float(mean.max())))
    else:
        # A logarithm alone would hide what costs nothing.
        smallest = float(mean[mean > 0].min())
        set_scale("symlog", linthresh=smallest, linscale=0.5)
        # Room for the markers at both ends, and no ticks below 0.
        set_limits = axes.set_xlim if which == "x" else axes.set_ylim
        end = max(1.5 * float(mean.max()), float(axis.get_view_interval()[1]))
        set_limits(-0.7 * smallest, end)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _written(value)))


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
        middle = np.sqrt(last.prod()) if ticks.scale == "log" else last.mean()
        axes.annotate(
            "//",
            (float(middle), 0),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="center",
            fontsize=FONT,
            bbox={"color": "white", "pad": 0.2},
        )


def _size(renderer: RendererAgg, text: str) -> tuple[float, float]:
    """Returns width and height of a text of one or more lines, in inches."""
    font = FontProperties(size=FONT)
    lines = text.split("\n")
    wide = max(renderer.get_text_width_height_descent(line, font, False)[0] for line in lines)
    return float(wide) / renderer.dpi, len(lines) * 1.25 * FONT / 72


def _thinned(places: np.ndarray, sizes: Sequence[float]) -> list[int]:
    """Returns which labels stay, from the last one backwards, so that none touches another."""
    kept: list[int] = []
    for index in range(len(sizes) - 1, -1, -1):
        need = (sizes[index] + sizes[kept[-1]]) / 2 if kept else 0.0
        if not kept or abs(places[kept[-1]] - places[index]) >= need:
            kept.append(index)
    return kept[::-1]


def _fit_horizontal(axes: Axes, renderer: RendererAgg, ticks: _Ticks) -> None:
    """Writes the values under the axis: turned where names are long, thinned where numbers are."""
    points = np.stack([ticks.places, np.zeros(len(ticks.places))], axis=1)
    places = axes.get_xaxis_transform().transform(points)[:, 0] / renderer.dpi
    labels = [wrapped(renderer, label, 1.3) for label in ticks.labels]
    sizes = [_size(renderer, label) for label in labels]
    kept = _thinned(places, [wide + 0.06 for wide, _ in sizes])
    turn: dict[str, Any] = {}
    if ticks.scale == "categorical" and len(kept) < len(labels):
        tall = max(size[1] for size in sizes)
        if np.diff(places).min() >= tall / math.sin(math.radians(40)):
            turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor", "va": "center"}
            kept = list(range(len(labels)))
        else:
            turn = {"rotation": 90}
            labels = ticks.labels  # on one line each, so that most of them fit
            kept = _thinned(places, [_size(renderer, label)[1] for label in labels])
    axes.set_xticks(ticks.places[kept], [labels[i] for i in kept], parse_math=False, **turn)


def _fit_vertical(axes: Axes, renderer: RendererAgg, ticks: _Ticks) -> None:
    """Writes the values beside the axis, as many as there is room for."""
    points = np.stack([np.zeros(len(ticks.places)), ticks.places], axis=1)
    places = axes.get_yaxis_transform().transform(points)[:, 1] / renderer.dpi
    for limit in (0.9, 1.4):  # longer lines only where names would be lost
        labels = [wrapped(renderer, label, limit) for label in ticks.labels]
        kept = _thinned(places, [_size(renderer, label)[1] for label in labels])
        if len(kept) == len(labels):
            break
    axes.set_yticks(ticks.places[kept], [labels[i] for i in kept], parse_math=False)


def _label_vertical(axes: Axes, renderer: RendererAgg, finals: xr.Dataset, metric: str) -> None:
    """Writes a metric beside the axis, in lines no longer than the axis."""
    lines = []
    for line in _metric_label(finals, metric):
        fits = _size(renderer, line)[0] <= _HEIGHT
        parts = line if fits else line.replace(", ", ",\n")
        lines += [wrapped(renderer, part, _HEIGHT) for part in parts.split("\n")]
    axes.set_ylabel("\n".join(lines), fontsize=FONT, labelpad=2)


def _numbers(
    renderer: RendererAgg, values: np.ndarray, room: tuple[float, float]
) -> tuple[list[list[str]] | None, int]:
    """Returns texts that fit the cells of a map, in units of a power of ten, or None."""
    if values.shape[1] > 12:
        return None, 0

    def text(value: float, digits: int) -> str:
        if value == 0:
            return "0"
        size = int(f"{value:.{digits - 1}e}".partition("e")[2])
        return f"{value:.{max(0, digits - 1 - size)}f}"

    for digits, share in ((3, 0.85), (2, 0.92)):  # a third digit only where there is ample room
        fitting = []
        for power in (0, 3, 6, 9, -3):
            scaled = values / 10.0**power
            exact = power == 0 and bool((values == np.round(values)).all())
            texts = [[text(v, 1 if exact else digits) for v in row] for row in scaled.tolist()]
            sizes = [_size(renderer, cell) for row in texts for cell in row]
            wide, tall = (max(size[i] for size in sizes) for i in (0, 1))
            if wide <= share * room[0] and tall <= 1.05 * room[1]:
                fitting.append((wide, abs(power), texts, power))
        if fitting:
            _, _, texts, power = min(fitting, key=lambda choice: choice[:2])
            return texts, power
    return None, 0


def _front(cost: np.ndarray, regret: np.ndarray) -> np.ndarray:
    """Returns the cells on the Pareto front, by increasing cost; equal cells all or none."""
    costs, group = np.unique(cost, return_inverse=True)
    least = np.full(costs.size, np.inf)
    np.minimum.at(least, group, regret)
    cheaper = np.append(np.inf, np.minimum.accumulate(least)[:-1])
    front = np.flatnonzero((regret == least[group]) & (regret < cheaper[group]))
    return front[np.argsort(cost[front], kind="stable")]


def _short_label(parameters: list[tuple[str, Any]]) -> str:
    """Writes the parameters of a cell in a few short lines."""
    words = [told(name, value).replace(" = ", "=") for name, value in parameters]
    return "\n".join(", ".join(words[i : i + 2]) for i in range(0, len(words), 2))


def _label_points(
    axes: Axes, renderer: RendererAgg, points: np.ndarray, front: np.ndarray, texts: list[str]
) -> int:
    """Labels points of the front where there is room; returns how many.

    Every label tries places around its point and takes the nearest that covers least of the lines.
    A label that would cover a point or another label, or leave the axes, is left out.
    """
    point = renderer.dpi / 72
    inside = axes.get_window_extent(renderer).padded(-2 * point)
    pixels = axes.transData.transform(points.T)
    steps = axes.transData.transform(np.asarray(axes.lines[0].get_path().vertices))
    # What a label had better not cover: the step line, and lines from other labels to their points.
    drawn = [np.linspace(a, b, 30) for a, b in zip(steps[:-1], steps[1:], strict=True)]
    number = min(_LABELLED, len(front))
    chosen = sorted({round(i) for i in np.linspace(0, len(front) - 1, number).tolist()})
    # Towards lower cost and regret first: there is nothing beyond the front.
    turns = np.array([0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8])
    ways = np.stack(
        [np.cos(turns * np.pi / 8 - 0.75 * np.pi), np.sin(turns * np.pi / 8 - 0.75 * np.pi)]
    )
    boxes: list[Bbox] = []
    for index in chosen:
        at = pixels[front[index]]
        size = np.array(_size(renderer, texts[index])) * renderer.dpi + 2 * point
        best: tuple[float, Bbox, np.ndarray] | None = None
        for distance in (4, 9, 15, 22, 30, 40, 55, 75, 100):
            for way in ways.T:
                middle = at + way * (distance * point + size / 2)
                box = Bbox([middle - size / 2, middle + size / 2])
                leader = np.linspace(at, middle, 20)
                if not (inside.contains(*box.min) and inside.contains(*box.max)):
                    continue
                if any(box.overlaps(other) or other.count_contains(leader) for other in boxes):
                    continue
                if box.padded(2 * point).count_contains(pixels):
                    continue  # no label hides a cell
                covered = sum(box.count_contains(line) for line in drawn)
                if best is None or 5 * covered + distance < best[0]:
                    best = (5 * covered + distance, box, leader)
        if best is None:
            continue
        _, box, leader = best
        boxes.append(box)
        drawn.append(leader)
        shift_x, shift_y = ((leader[-1] - at) / point).tolist()
        axes.annotate(
            texts[index],
            (float(points[0, front[index]]), float(points[1, front[index]])),
            xytext=(shift_x, shift_y),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT,
            linespacing=1.05,
            parse_math=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "0.4", "shrinkB": 2},
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3},
        )
    return len(boxes)


def _lay_out(
    figure: Figure,
    axes: Axes,
    height: float,
    handles: list[Line2D],
    *,
    fit: Callable[[RendererAgg], None],
    caption: Callable[[RendererAgg], list[str]],
    bar: Axes | None = None,
) -> None:
    """Stacks legend, colour bar, axes and caption; the figure's height follows from their sizes.

    Args:
        figure: The figure.
        axes: The main axes.
        height: Their height in inches.
        handles: Entries of the legend; none for no legend.
        fit: Adapts labels to the axes; called whenever their width has changed.
        caption: Draws what needs the final size of the axes, and returns the caption's sentences.
        bar: Axes of the colour bar.
    """
    renderer = FigureCanvasAgg(figure).get_renderer()
    everything = [axes, *([bar] if bar else [])]
    total = 4.0
    # What stands out of the main axes on each side, in inches.
    left = right = below = above = 0.5
    bar_gap, bar_height = 0.06, 0.09

    def place() -> None:
        wide = (WIDTH - left - right) / WIDTH
        axes.set_position((left / WIDTH, below / total, wide, height / total))
        if bar:
            low = (below + height + bar_gap) / total
            bar.set_position((left / WIDTH, low, wide, bar_height / total))

    for _ in range(4):  # margins, width and labels depend on each other; they settle quickly
        total = below + height + above + 1
        figure.set_size_inches(WIDTH, total)
        place()
        fit(renderer)
        boxes = [box for one in everything if (box := one.get_tightbbox(renderer))]
        before = (left, right, below, above)
        left += PAD - min(box.x0 for box in boxes) / figure.dpi
        right += PAD + max(box.x1 for box in boxes) / figure.dpi - WIDTH
        above = max(box.y1 for box in boxes) / figure.dpi - below - height
        below -= min(box.y0 for box in boxes) / figure.dpi
        if np.allclose(before, (left, right, below, above), rtol=0, atol=0.005):
            break
    total = below + height + above + 1
    figure.set_size_inches(WIDTH, total)
    place()
    text = caption_below(figure, renderer, ". ".join(caption(renderer)) + ".")
    below_caption = text.get_window_extent(renderer).height / figure.dpi
    below += PAD + below_caption + _GAP
    legend = legend_above(figure, renderer, handles) if handles else None
    over = _GAP + legend.get_window_extent(renderer).height / figure.dpi if legend else 0.0
    total = below + height + above + over + PAD
    figure.set_size_inches(WIDTH, total)
    place()
    text.set_position((PAD / WIDTH, PAD / total))
    if legend:
        legend.set_bbox_to_anchor((0.5, 1 - PAD / total), transform=figure.transFigure)
