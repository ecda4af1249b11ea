"""Figure 7: final regret of CDP-MAB against its communication cost, for all pairs (p, R).

The paper: a clear trade-off; R = 5, p = 1 costs about as much as no limit and has its regret. As
in figure 6, the gap that a budgeted schedule is built for is open: the instance's own, or 1/16.
"""

from pathlib import Path

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]
ROUNDS = [2, 3, 4, 5, None]
GAPS = {"Δ: smallest gap (oracle)": None, "Δ = 1/16": 1 / 16}
SERVER_PRICE = 25
MARKERS = ("o", "s", "^", "D", "P")


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every pair with both gaps."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        schedule_gap=GAPS,
        participation=PARTICIPATIONS,
        rounds=ROUNDS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a point for each pair, and a line through those of one p."""
    figure, axes = common.panels(len(results), rows=len(GAPS), height=1.9)
    for column, data in zip(axes.T, results.values(), strict=True):
        table = fmab.final_table(data, level=common.LEVEL, server_price=SERVER_PRICE)
        for panel, gap in zip(column, GAPS, strict=True):
            for p, colour in zip(PARTICIPATIONS, style.COLOURS, strict=False):
                _line(panel, table.sel(schedule_gap=gap, participation=p), colour)
            panel.set(xlim=0, yscale="log")
    common.title_horizons(axes, results)
    x = f"communication cost at T\n({SERVER_PRICE} per server link)"
    common.label_axes(axes, [f"{gap}\nregret at T (reward, sum)" for gap in GAPS], x)
    handles = [
        Line2D([], [], color=colour, lw=1.5, label=f"p = {p:g}")
        for p, colour in zip(PARTICIPATIONS, style.COLOURS, strict=False)
    ]
    handles += [
        Line2D([], [], color="0.3", ls="none", marker=marker, markersize=3.2, label=label)
        for marker, label in zip(
            MARKERS, ["no budget" if r is None else f"R = {r}" for r in ROUNDS], strict=True
        )
    ]
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "Regret is summed over agents. Budgeted schedules shrink their target gap by Δ to the "
        "power of 1/R a round",
        bars="Points: means over the seeds; bars",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig07_tradeoff")


def _line(panel: Axes, row: xr.Dataset, colour: str) -> None:
    """Draws the points of one p, a marker for each R, with intervals both ways."""
    panel.vlines(row.cost, row.regret_lower, row.regret_upper, color=colour, lw=0.7)
    panel.hlines(row.regret, row.cost_lower, row.cost_upper, color=colour, lw=0.7)
    panel.plot(row.cost, row.regret, color=colour, lw=0.6, alpha=0.6)
    for cost, regret, marker in zip(row.cost, row.regret, MARKERS, strict=True):
        panel.plot(cost, regret, marker, color=colour, markersize=3.2)
