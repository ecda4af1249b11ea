"""Figure 7: final regret of CDP-MAB against its communication cost, for all pairs (p, R).

The paper: a clear trade-off; R = 5, p = 1 costs about as much as no limit and has its regret. As
in figure 6, the gap that a budgeted schedule is built for is open: the instance's own, or 1/16.
Each has a picture of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, differences, figures, pictures
from fmab_jax.plots import style

SERVER_PRICE = 25
MARKERS = ("o", "s", "^", "D", "v")
COLOURS = (*style.COLOURS[:4], "black")
# Points that lie on each other are seen around each other: open, and smaller with every p.
SIZES = (7.0, 6.0, 5.2, 4.4, 3.4)
OPEN = {"markerfacecolor": "none", "markeredgewidth": 0.8}
LABELLED = 1  # the p whose budgets stand beside the markers
HEIGHT = 2.1
Rows = Sequence[Mapping[str, Any]]

# Every pair with both gaps.
sweep = differences.make_sweep(
    fmab.cdp_mab,
    figures.UNIFORM,
    epsilon=figures.EPSILON,
    schedule_gap=figures.GAPS,
    participation=figures.PARTICIPATIONS,
    rounds=figures.ROUNDS,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a picture for each gap."""
    return [path for gap in figures.GAPS for path in _draw(gap, results, folder)]


def _draw(gap: str, results: common.Results, folder: Path) -> list[Path]:
    """Draws a point for each pair, a line through the budgets of one p, and none to no budget."""
    results = {horizon: data.sel(schedule_gap=gap) for horizon, data in results.items()}
    rows = [row for T, data in results.items() for row in _rows(T, data)]
    names = {
        f"p = {p:g}": fmab.cdp_mab(figures.EPSILON, participation=p) for p in figures.PARTICIPATIONS
    }
    caption = common.caption(
        f"CDP-MAB, M = {figures.AGENTS} agents, K = {figures.ARMS} arms, ε = {figures.EPSILON:g}",
        results,
        "In a round N = ⌈pM⌉ agents report",
        "ε is the same for every p, what a message leaks is not. "
        + common.leaks(names, figures.AGENTS),
        "Open markers: budgets; lines join R = 2, 3, 4 and 5 of one p, in this order; R stands "
        f"beside the markers of p = {LABELLED}. Full markers, which no line reaches: no budget, of "
        "the p with that shape and colour. The larger p is, the smaller its markers, so that "
        "points on each other are seen around each other",
        figures.BUDGET[gap],
        bars="Points: means over the seeds; bars",
    )
    alt = (
        "Regret at T of CDP-MAB against its communication cost, for five p, each with budgets of 2 "
        "to 5 rounds and without a budget."
    )
    name = f"fig07_tradeoff{figures.FILES[gap]}"
    return pictures.publish(pictures.Picture(name, page(rows), caption, alt, rows), folder)


def _rows(horizon: int, data: xr.Dataset) -> list[dict[str, Any]]:
    """Returns cost, regret and leak of every pair."""
    frame = fmab.table(data, level=common.LEVEL, server_price=SERVER_PRICE)
    rows: list[dict[str, Any]] = []
    for p in figures.PARTICIPATIONS:
        leak = common.leak_of(fmab.cdp_mab(figures.EPSILON, participation=p), figures.AGENTS) or 0.0
        cells = frame[frame.participation == p].itertuples()
        for cell, rounds in zip(cells, figures.ROUNDS, strict=True):
            row = {
                "T": horizon,
                "p": p,
                "R": figures.name_rounds(rounds).removeprefix("R = "),
                "leak": leak,
            }
            for name in ("cost", "regret"):
                row[name] = tuple(getattr(cell, f"{name}{e}") for e in ("", "_lower", "_upper"))
            rows.append(row)
    return rows


def group_by_share(rows: Rows) -> dict[int, dict[float, list[Mapping[str, Any]]]]:
    """Returns rows by horizon and p."""
    groups: dict[int, dict[float, list[Mapping[str, Any]]]] = {row["T"]: {} for row in rows}
    for row in rows:
        groups[row["T"]].setdefault(row["p"], []).append(row)
    return groups


def page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws the points of the rows of the CSV, and a line for each p."""
    groups = group_by_share(rows)
    leaks = {row["p"]: common.leak_text(row["leak"]) for row in rows}
    looks = dict(zip(leaks, zip(COLOURS, MARKERS, SIZES, strict=True), strict=True))

    def draw(page: pictures.Page) -> None:
        x = f"cost at T, {SERVER_PRICE} per link"
        axes = page.panels(["regret at T, sum over agents"], common.titles(groups), x, HEIGHT)[0]
        for panel, lines in zip(axes, groups.values(), strict=True):
            for p, points in lines.items():
                _line(panel, points, *looks[p])
            panel.set_yscale("log")
            panel.margins(x=0.06, y=0.06)
            for row in lines[LABELLED][:-1]:
                at = row["cost"][0], row["regret"][0]
                offset: dict[str, Any] = {"xytext": (1.5, 4), "textcoords": "offset points"}
                panel.annotate(str(row["R"]), at, fontsize=6, **offset)
        page.handles = [
            [
                Line2D(
                    [], [], color=colour, marker=marker, ms=size, lw=0.7,
                    label=f"p = {p:g} ({leaks[p]})", **OPEN,
                )
                for p, (colour, marker, size) in looks.items()
            ],
            [Line2D([], [], color="0.3", ls="none", ms=3.6, label="no budget", marker="o")],
        ]  # fmt: skip

    return draw


def _line(panel: Axes, points: Rows, color: str, marker: str, ms: float) -> None:
    """Draws the points of one p with intervals both ways; a line joins those with a budget."""
    cost, regret = (np.array([row[name] for row in points]).T for name in ("cost", "regret"))
    panel.vlines(cost[0], *regret[1:], color=color, lw=0.7)
    panel.hlines(regret[0], *cost[1:], color=color, lw=0.7)
    panel.plot(cost[0, -1], regret[0, -1], color=color, marker=marker, ms=0.8 * ms, ls="none")
    panel.plot(cost[0, :-1], regret[0, :-1], color=color, marker=marker, ms=ms, lw=0.7, **OPEN)
