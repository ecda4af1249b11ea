"""Draws the race of a plan: candidates and their mean regret against seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from fmab_jax.analysis.words import write_number, write_quantity
from fmab_jax.planning.question import FIRST_SEEDS
from fmab_jax.planning.runs import Look
from fmab_jax.plots import captions, style

_HEIGHTS = 0.8, 1.8
# Curves that one picture can tell apart.
_MOST_CURVES = 5


def plot_race(looks: Sequence[Look], answer: str, infeasible: Sequence[str] = ()) -> Figure:
    """Draws how many candidates have at least so many seeds, and mean regret against seeds.

    The mean regret is that of the answer and its nearest rivals.

    Args:
        looks: What the race saw, in its order.
        answer: Label of the answer.
        infeasible: Labels of candidates that exceed a budget; they are no rivals.
    """
    number, tracks = len({look.label for look in looks}), dict[str, list[Look]]()
    # A few seeds only show which candidates exceed a budget.
    for look in looks:
        if look.seeds >= FIRST_SEEDS:
            tracks.setdefault(look.label, []).append(look)
    sizes = np.array(sorted({look.seeds for track in tracks.values() for look in track}))
    most = np.array([track[-1].seeds for track in tracks.values()])
    figure, (above, below) = style.make_panels(_HEIGHTS)
    counts = (most[:, None] >= sizes).sum(axis=0)
    above.step(sizes, counts, where="pre", color="0.3", linewidth=1.1, marker="o", markersize=2.2)
    above.set_ylim(0.0, 1.12 * len(tracks))
    above.set_ylabel("candidates")
    style.scale_linear(above, "y")
    rivals = [label for label in tracks if label != answer and label not in infeasible]
    rivals.sort(key=lambda label: tracks[label][-1].mean)
    handles, drawn = [], list[float]()
    for index, label in enumerate([answer, *rivals][:_MOST_CURVES]):
        seeds, means, low, high = np.array([look[1:] for look in tracks[label]], float).T
        line = style.get_line_style(index) | {"label": label}
        mark: style.Style = {"marker": style.MARKERS[index], "markersize": 2.8}
        # Few candidates have the same seeds, so intervals would hide each other.
        bars: style.Style = {"elinewidth": 0.7, "capsize": 1.5} | mark | line
        below.errorbar((1 + 0.03 * index) * seeds, means, [means - low, high - means], **bars)
        handles.append(Line2D([], [], **mark, **line))
        drawn += means.tolist()
    below.set_ylabel("mean regret at T (rewards)")
    below.set_xlabel("seeds of a candidate")
    below.set_xscale("log")
    if len(sizes) == 1:
        below.set_xlim(0.5 * sizes[0], 2.0 * sizes[0])
    below.xaxis.set_major_locator(style.make_log_locator(float(sizes[0]), float(sizes[-1])))
    below.xaxis.set_minor_locator(NullLocator())
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write_number(value)))
    style.scale_values(below, "y", np.array(drawn))
    early = number - len(tracks)
    ends = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
    caption: list[captions.Sentence] = [
        f"Race of {write_quantity('', number, 'candidate')}, {ends} seeds",
        f"Not drawn, as over a budget in the first seeds: {early}" * (early > 0),
        ("Above: candidates with at least so many seeds", "Above: candidates left"),
        ("Bars: 95 % intervals of each mean (Student)", "Bars: 95 % intervals"),
        "Points lie side by side where candidates have the same seeds",
        "The race compares candidates on the seeds that they share",
    ]
    return style.lay_out(figure, handles, caption, height=sum(_HEIGHTS))
