"""Draws an audit: the two distributions, and how well they can be distinguished."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fmab_jax.analysis.audit import Audit
from fmab_jax.analysis.words import write_count, write_number, write_quantity
from fmab_jax.errors import count, refuse
from fmab_jax.plots import style

_HEIGHTS = (1.5, 1.3)
# Runs in a bin below which its log ratio is not drawn.
_FEW = 50


def plot_audit(result: Audit, finding: int = 0) -> Figure:
    """Draws what is seen under both data sets, and the log ratio of the two, bin by bin.

    The lower panel holds the claim, and the lower bound of the event that was counted: a mechanism
    that keeps its claim stays between plus and minus the claim everywhere.

    Args:
        result: Of ``fmab_jax.audit``.
        finding: Which of its findings; the first by default.

    Returns:
        A figure 3.4 inches wide, for ``save_figure``, with two pairs of axes.

    Raises:
        ValueError: For what is no audit, or a finding that it does not have.

    Example:
        >>> import fmab_jax as fmab
        >>> result = fmab.audit(fmab.cdp_mab(0.2), agents=5, runs=10**5)
        >>> len(fmab.plot_audit(result).axes)
        2
    """
    if not isinstance(result, Audit):
        refuse("result", result, "an audit", "pass what fmab_jax.audit returned")
    last = len(result.findings) - 1
    finding_shown = result.findings[count("finding", finding, 0, last, "name one of its findings")]
    edges, *counts = finding_shown.histogram
    width, middles = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2
    figure, (above, below) = style.make_panels(_HEIGHTS)
    handles = []
    for index, (label, runs) in enumerate(zip(("reward 0", "reward 1"), counts, strict=True)):
        line_style = style.get_line_style(index) | {"label": label}
        density = runs / (result.runs * width)
        above.stairs(density, edges, color=line_style["color"], alpha=0.15, fill=True)
        above.stairs(
            density,
            edges,
            color=line_style["color"],
            ls=line_style["linestyle"],
            lw=line_style["linewidth"],
        )
        handles.append(Line2D([], [], **line_style))
    above.set_ylim(0.0)
    above.set_ylabel("density")
    bound_styles: list[tuple[float, style.Style]] = [
        (finding_shown.claim, {"color": style.COLOURS[2], "label": "claim"}),
        (
            finding_shown.lower,
            {"color": style.COLOURS[3], "ls": style.STROKES[1], "label": "lower bound"},
        ),
    ]
    bounds = [pair for pair in bound_styles if math.isfinite(pair[0])]
    is_drawn = np.minimum(*counts) >= _FEW
    log_ratio = np.log(counts[1][is_drawn] / counts[0][is_drawn])
    mark: style.Style = {"color": "black", "linestyle": "none", "marker": "o", "markersize": 2.2}
    handles += below.plot(middles[is_drawn], log_ratio, label="log ratio of a bin", **mark)
    for value, bound_style in bounds:
        handles.append(below.axhline(value, linewidth=1.0, zorder=1.5, **bound_style))
        below.axhline(-value, linewidth=1.0, zorder=1.5, **bound_style)
    for axes in (above, below):
        edge = axes.axvline(
            finding_shown.threshold, color="0.45", linewidth=0.8, linestyle=":", zorder=1.4
        )
    edge.set_label("threshold of the event")
    handles.append(edge)
    largest = max([1.0, *np.abs(log_ratio), *(value for value, _ in bounds)])
    below.set_ylim(-1.25 * largest, 1.25 * largest)
    below.set_ylabel("log ratio")
    below.set_xlabel("what is seen" + ", in rewards" * (finding_shown.view != "actions"))
    axis: Literal["x", "y"]
    for axis in ("x", "y"):
        style.scale_linear(below, axis)
    style.scale_linear(above, "y")
    algorithm = result.algorithm
    facts = [algorithm.title or algorithm.name, *algorithm.settings().values()]
    facts.append(write_quantity("M = ", result.agents, "agent"))
    at = f" up to delta = {write_number(result.delta)}" if result.delta else ""
    bound = f"epsilon{at} is at least {finding_shown.lower:.4g}"
    claim = (
        "none is claimed"
        if math.isinf(finding_shown.claim)
        else f"{write_number(finding_shown.claim)} is claimed"
    )
    number = f"{write_count(result.runs)} runs of each"
    caption: list[str | tuple[str, ...]] = [
        f"{', '.join(facts)}: {finding_shown.stream}",
        (f"{number} of two data sets that differ in one reward", number),
        (f"Event: {finding_shown.event}; {bound}, {claim}", f"{bound.capitalize()}, {claim}"),
        f"All bounds together are wrong with a chance of {write_number(result.level)} at most",
    ]
    return style.lay_out(figure, handles, caption, height=sum(_HEIGHTS))
