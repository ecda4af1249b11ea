"""Draws regret against communication cost, with the Pareto front at equal trust and leak."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmab_jax.analysis.costs import read_exposure
from fmab_jax.analysis.words import format_value, write_quantity
from fmab_jax.errors import flag
from fmab_jax.plots import captions, style, tables
from fmab_jax.plots.labels import label_points
from fmab_jax.plots.tables import read_values

# Labels of the front.
_LABELLED = 8
_HEIGHT = 2.3


def plot_pareto(
    finals: xr.Dataset,
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
        finals: Final values of each configuration of a sweep: a dimension per swept parameter.
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
        >>> figure = fmab.plot_pareto(fmab.final_table(data), hue="epsilon")
        >>> len(figure.axes)
        1
    """
    finals = tables.check_finals(finals, ["regret", "cost"], {"hue": hue})
    flag("caption", caption)
    inches = style.check_width(width)
    dims = captions.list_swept(finals)
    # [mean, lower or upper end, cell]
    cost, regret = (
        np.reshape(tables.read_interval(finals, metric, dims), (3, -1))
        for metric in ("cost", "regret")
    )
    leak = _read_leaks(finals, dims)
    trusts = [read_exposure(cell).trust for cell in captions.list_cells(finals, dims)]
    trust = np.unique(trusts, return_inverse=True)[1]
    front = _find_front(cost[0], regret[0], leak, trust)
    differs = len(set(trusts)) > 1 or len(np.unique(leak, axis=0)) > 1

    figure, (axes,) = style.make_panels([_HEIGHT], inches)
    line: style.Style = {"color": "0.45", "linewidth": 0.9, "label": "Pareto front"}
    steps = front[:0] if differs else front
    axes.step(cost[0, steps], regret[0, steps], where="post", **line)
    places = np.indices([finals.sizes[name] for name in dims]).reshape(len(dims), -1)
    handles = []
    for index, value in enumerate(read_values(finals[hue]) if hue else [None]):
        members = np.flatnonzero(places[dims.index(hue)] == index) if hue else np.arange(len(leak))
        label = format_value(finals[hue], value) if hue else "mean"
        handles.append(_draw_points(axes, cost, regret, members, front, index, label))
    axes.margins(0.12)
    style.scale_values(axes, "x", cost[0])
    style.scale_values(axes, "y", regret[0])
    axes.set_xlabel(tables.write_metric_label(finals, "cost", inches))
    axes.set_ylabel(tables.write_metric_label(finals, "regret", _HEIGHT))
    if not cost[2].any():
        axes.set_xlim(-0.04, 1)

    varied = [name for name in dims if finals.sizes[name] > 1]
    label_names = [name for name in varied if name != hue] or varied
    values = np.stack([cost[0], regret[0], *leak.T, trust])

    def write_sentences() -> list[captions.Sentence]:
        first, texts = _write_labels(finals, values, front, label_names)
        number = label_points(axes, values[:2], first, texts, _LABELLED * bool(label_names))
        return tables.write_caption(
            finals, _describe_front(finals, len(front), len(leak), number, differs), paid=True
        )

    place: style.Style = {"height": _HEIGHT, "draws_caption": caption}
    return style.lay_out(figure, handles if hue else [], write_sentences, **place)


def _write_labels(
    finals: xr.Dataset, values: np.ndarray, front: np.ndarray, names: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Returns the cells of the front to label and their labels; equal points share one.

    Args:
        finals: From `final_table`.
        values: [value, cell] cost, regret, leaks and trust.
        front: Cells of the front.
        names: Parameters that a label states.
    """
    dims, texts = captions.list_swept(finals), []
    places = np.indices([finals.sizes[name] for name in dims]).reshape(len(dims), -1)
    _, first, equal = np.unique(values[:, front], axis=1, return_index=True, return_counts=True)
    for cell, duplicates in zip(front[first], equal - 1, strict=True):
        at = {name: read_values(finals[name])[places[dims.index(name), cell]] for name in names}
        words = [format_value(finals[name], value) for name, value in at.items()]
        lines = [", ".join(words[i : i + 2]) for i in range(0, len(words), 2)]
        texts.append("\n".join(lines) + f"\n(+ {duplicates} equal)" * int(duplicates > 0))
    return front[first].tolist(), texts


def _describe_front(
    finals: xr.Dataset, front: int, cells: int, labels: int, differs: bool
) -> list[captions.Sentence]:
    """Describes what the points mean, and how many of them there are."""
    meaning = "no more cost and no more regret"
    if differs:
        meaning = "the same trust, no more cost, no more regret and no more leak"
    counts = f"{front} of {write_quantity('', cells, 'configuration')}, {labels} labelled"
    front_of = "the Pareto front" + " of cost, regret and leak at the same trust" * differs
    return [
        captions.describe_points(finals),
        (f"Filled points: {front_of}; {counts}", f"Filled: {front_of}"),
        f"Open points: another configuration has {meaning}, and less of one of them"
        * (front < cells),
    ]


def _draw_points(
    axes: Axes,
    cost: np.ndarray,
    regret: np.ndarray,
    cells: np.ndarray,
    front: np.ndarray,
    index: int,
    label: str,
) -> Line2D:
    """Draws the cells of one colour, filled where they are on the front; returns their handle."""
    colour = style.COLOURS[index % len(style.COLOURS)]
    thin: style.Style = {"color": colour, "linewidth": 0.5, "alpha": 0.7}
    axes.vlines(cost[0, cells], *regret[1:, cells], **thin)
    axes.hlines(regret[0, cells], *cost[1:, cells], **thin)
    mark: style.Style = {"linestyle": "none", "color": colour, "label": label}
    mark |= {"marker": style.MARKERS[index % len(style.MARKERS)]}
    mark |= {"markersize": 3.5, "markeredgewidth": 0.7}
    beaten, best = np.setdiff1d(cells, front), np.intersect1d(cells, front)
    axes.plot(cost[0, beaten], regret[0, beaten], mfc="white", **mark)
    axes.plot(cost[0, best], regret[0, best], mfc=colour, **mark)
    return Line2D([], [], **mark)


def _read_leaks(finals: xr.Dataset, dims: Sequence[str]) -> np.ndarray:
    """Returns [cell, 2]: epsilon and delta of each cell; infinite for no bound, or unknown."""
    names = ("leak_messages", "leak_messages_delta")
    if not {*names} <= {*finals}:
        return np.full((math.prod(finals.sizes[dim] for dim in dims), 2), np.inf)
    pairs = np.stack([finals[name].transpose(*dims).values.ravel() for name in names], axis=1)
    return np.where(np.isfinite(pairs[:, :1]), pairs, np.inf)


def _find_front(
    cost: np.ndarray, regret: np.ndarray, leak: np.ndarray, trust: np.ndarray
) -> np.ndarray:
    """Returns the cells on the Pareto front, by increasing cost; equal cells all or none.

    A cell is beaten by cells of the same trust alone, which is a number for each kind.
    """
    points = np.column_stack([cost, regret, leak])
    # Sorted by cost, regret, epsilon and delta: whatever beats a point comes before it.
    order = np.lexsort(points.T[::-1])
    front: list[int] = []
    for index in order:
        rivals = points[[cell for cell in front if trust[cell] == trust[index]]]
        beaten = (rivals <= points[index]).all(axis=1) & (rivals < points[index]).any(axis=1)
        if not beaten.any():
            front.append(int(index))
    cells = np.array(front, int)
    return cells[np.lexsort([cells, cost[cells]])]
