"""Regret against communication cost: what no other configuration beats, the leak included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmab_jax.analysis.costs import exposure_of, shared_view
from fmab_jax.analysis.words import quantity, told
from fmab_jax.plots import captions, parameters, style
from fmab_jax.plots.labels import label_points
from fmab_jax.plots.parameters import values_of

# Labels of the front.
_LABELLED = 8
_HEIGHT = 2.3


def plot_pareto(finals: xr.Dataset, hue: str | None = None) -> Figure:
    """Draws regret against communication cost, a point per configuration, with the Pareto front.

    A configuration is on the front (filled, on the step line) if no other one of the same trust has
    at most its cost, at most its regret and at most its leak, and less of one. Equal ones are on it
    together. Where trust or leaks differ there is no step line: what lies above others may leak
    less, and labels say the leak. Up to 8 of the front, evenly along it, are labelled with
    their values of the swept parameters (without the hue), where there is room.

    Args:
        finals: Final values of each configuration of a sweep: a dimension per swept parameter.
        hue: The parameter told apart by colour and marker; up to 28 values.

    Returns:
        A figure 3.4 inches wide, for ``save_figure``, with one pair of axes.

    Raises:
        ValueError: For a table that is not one.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], rounds=[None, 3], horizon=10**4, seeds=20
        ... )
        >>> figure = fmab.plot_pareto(fmab.final_table(data), hue="epsilon")
        >>> len(figure.axes)
        1
    """
    parameters.check(finals, ["regret", "cost"], {"hue": hue})
    dims = captions.swept(finals)
    regret, regret_lower, regret_upper, cost, cost_lower, cost_upper = (
        each.ravel()
        for metric in ("regret", "cost")
        for each in parameters.triple(finals, metric, dims)
    )
    places = np.indices([finals.sizes[name] for name in dims]).reshape(len(dims), cost.size)
    colours = places[dims.index(hue)] if hue else np.zeros(cost.size, int)
    exposures = [exposure_of(cell) for cell in captions.cells_of(finals, dims)]
    told_leak, trusts = _leaks(finals, dims), [each.trust for each in exposures]
    # An unknown leak counts as infinite.
    leak = np.where(np.isnan(told_leak), np.inf, told_leak)
    trust = np.unique(trusts, return_inverse=True)[1]
    several = len(set(trusts)) > 1
    unlike = several or len(np.unique(told_leak)) > 1
    front = _front(cost, regret, leak, trust)

    figure, (axes,) = style.panels([_HEIGHT])
    line: dict[str, Any] = {"color": "0.45", "linewidth": 0.9, "label": "Pareto front"}
    steps = front[:0] if unlike else front
    axes.step(cost[steps], regret[steps], where="post", **line)
    handles = []
    for index in range(int(colours.max()) + 1):
        colour = style.COLOURS[index % len(style.COLOURS)]
        mine = np.flatnonzero(colours == index)
        thin: dict[str, Any] = {"color": colour, "linewidth": 0.5, "alpha": 0.7}
        axes.vlines(cost[mine], regret_lower[mine], regret_upper[mine], **thin)
        axes.hlines(regret[mine], cost_lower[mine], cost_upper[mine], **thin)
        mark: dict[str, Any] = {
            "linestyle": "none",
            "marker": style.MARKERS[index % len(style.MARKERS)],
            "color": colour,
            "markersize": 3.5,
            "markeredgewidth": 0.7,
            "label": told(finals[hue], values_of(finals[hue])[index]) if hue else "mean",
        }
        for chosen, face in (
            (np.setdiff1d(mine, front), "white"),
            (np.intersect1d(mine, front), colour),
        ):
            axes.plot(cost[chosen], regret[chosen], mfc=face, **mark)
        handles.append(Line2D([], [], **mark))
    axes.margins(0.12)
    style.scale_values(axes, "x", cost)
    style.scale_values(axes, "y", regret)
    axes.set_xlabel(parameters.metric_label(finals, "cost", style.WIDTH))
    axes.set_ylabel(parameters.metric_label(finals, "regret", _HEIGHT))
    if not cost_upper.any():
        axes.set_xlim(-0.04, 1)

    def caption() -> style.Caption:
        varied = [name for name in dims if finals.sizes[name] > 1]
        shown = [name for name in varied if name != hue] or varied
        texts = []
        # Equal points lie on one spot and share one label.
        stacked = np.stack([cost, regret, leak, trust])[:, front]
        _, first, equal = np.unique(stacked, axis=1, return_index=True, return_counts=True)
        for index, others in zip(first.tolist(), (equal - 1).tolist(), strict=True):
            cell = front[index]
            at = {name: places[dims.index(name), cell] for name in shown}
            words = [told(finals[n], values_of(finals[n])[place]) for n, place in at.items()]
            if unlike:
                known = exposures[cell]._replace(leak=told_leak[cell])
                words.append(captions.leak_label(known, shared_view(exposures)))
            lines = [", ".join(words[i : i + 2]) for i in range(0, len(words), 2)]
            texts.append("\n".join(lines) + f"\n(+ {others} equal)" * (others > 0))
        number = 0
        if shown or unlike:
            points = np.stack([cost, regret])
            number = label_points(axes, points, front[first].tolist(), texts, _LABELLED)
        labelled = "each labelled" if number == len(front) else f"{number} of them labelled"
        no_more, where = "no more cost and no more regret", " on the line"
        price = "where less cost has its price in regret"
        if unlike:
            no_more, where, price = "no more cost, regret and leak", "", "of cost, regret and leak"
        if several:
            no_more, price = f"the same trust, {no_more}", f"{price} at the same trust"
        beaten = f"Open points: another configuration has {no_more}, and less of one of them"
        short = [
            f"Points: means; bars: {captions.band_of(finals)}",
            "Filled: the Pareto front" + f", {price}" * unlike,
        ]
        long = [
            f"Points: means over the seeds; bars: {finals.attrs['description']}",
            f"Filled points{where}: the Pareto front, {price}; "
            f"{len(front)} of {quantity('', cost.size, 'configuration')}, {labelled}",
            *([beaten] if len(front) < cost.size else []),
        ]
        return parameters.caption_of(finals, short, long, paid=True)

    return style.finish(figure, handles if hue else [], caption, height=_HEIGHT)


def _leaks(finals: xr.Dataset, dims: Sequence[str]) -> np.ndarray:
    """Returns what each cell leaks, as the table says; infinite for no bound, NaN for unknown."""
    if "leak_epsilon" not in finals:
        return np.full(math.prod(finals.sizes[dim] for dim in dims), np.nan)
    return finals.leak_epsilon.transpose(*dims).values.ravel()


def _front(cost: np.ndarray, regret: np.ndarray, leak: np.ndarray, trust: np.ndarray) -> np.ndarray:
    """Returns the cells on the Pareto front, by increasing cost; equal cells all or none.

    A cell is beaten by cells of the same trust alone, which is a number for each kind.
    """
    points = np.stack([cost, regret, leak], axis=1)
    # Sorted by cost, regret and leak: whatever beats a point comes before it.
    order = np.lexsort(points.T[::-1])
    front: list[int] = []
    for index in order:
        kept = points[[each for each in front if trust[each] == trust[index]]]
        beaten = (kept <= points[index]).all(axis=1) & (kept < points[index]).any(axis=1)
        if not beaten.any():
            front.append(int(index))
    found = np.array(front, int)
    return found[np.lexsort([found, cost[found]])]
