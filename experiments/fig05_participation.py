"""Figure 5: regret of CDP-MAB when only ceil(p M) agents report in a round.

The paper: the regret at T decreases as p increases. Its epsilon is "fixed" but not named; 1 here,
as in its figure 7.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every p, without a round budget."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        participation=PARTICIPATIONS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time."""
    figure, axes = common.panels(len(results))
    for panel, data in zip(axes[0], results.values(), strict=True):
        curves = {f"p = {p:g}": data.regret.sel(participation=p) for p in PARTICIPATIONS}
        handles = common.draw_bands(panel, common.regret_bands(curves))
        panel.set(xlim=0, ylim=0)
    common.title_horizons(axes, results)
    common.label_axes(axes, ["regret\n(reward, sum over agents)"])
    setting = f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}"
    caption = common.caption(setting, results)
    return common.save(style.finish(figure, handles, caption), folder, "fig05_participation")
