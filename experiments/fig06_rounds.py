"""Figure 6: regret of CDP-MAB under a budget of R rounds.

The paper: regret decreases with R, and R = 4 and 5 are almost the same. A budgeted schedule shrinks
its target gap by Delta^(1/R) a round, and the paper does not say which Delta it used. Two are
shown: the instance's own smallest gap (an oracle: no agent knows it), and Delta = 1/16, with which
R = 4 makes the steps of the doubling schedule; and that schedule, without a budget.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
ROUNDS = [2, 3, 4, 5, None]
GAPS = {"Δ: smallest gap (oracle)": None, "Δ = 1/16": 1 / 16}


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every R with both gaps, at p = 1."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        schedule_gap=GAPS,
        rounds=ROUNDS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, a row for each gap."""
    figure, axes = common.panels(len(results), rows=len(GAPS))
    for column, data in zip(axes.T, results.values(), strict=True):
        for panel, gap in zip(column, GAPS, strict=True):
            curves = {
                "no budget (doubling)" if rounds is None else f"R = {rounds}": (
                    data.regret.sel(schedule_gap=gap).isel(rounds=i)
                )
                for i, rounds in enumerate(ROUNDS)
            }
            handles = common.draw_bands(panel, common.regret_bands(curves))
            panel.set(xlim=0, ylim=0)
    common.title_horizons(axes, results)
    common.label_axes(axes, [f"{gap}\nregret (reward, sum)" for gap in GAPS])
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, p = 1",
        results,
        "Regret is summed over agents. A budgeted schedule shrinks its target gap by "
        "Δ to the power of 1/R a round",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig06_rounds")
