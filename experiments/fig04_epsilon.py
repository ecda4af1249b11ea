"""Figure 4: regret of CDP-MAB at four levels of privacy.

The paper: less epsilon, more regret; it calls epsilon = 1 "the non-private case". It is run with
its noise here, beside a run that has none. The second row is what privacy costs: the paired
difference to no noise.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILONS = [0.1, 0.3, 0.5, 1, None]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every epsilon at p = 1, without a round budget."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILONS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and the price of privacy over the logarithm of time."""
    figure, axes = common.panels(len(results), rows=2)
    for (top, bottom), data in zip(axes.T, results.values(), strict=True):
        curves = {
            "no noise" if epsilon is None else f"ε = {epsilon:g}": data.regret.isel(epsilon=i)
            for i, epsilon in enumerate(EPSILONS)
        }
        handles = common.draw_bands(top, common.regret_bands(curves))
        top.set(xlim=0, ylim=0)
        differences = common.difference_bands(curves, "no noise")
        common.draw_bands(bottom, differences)
        bottom.set(xscale="log", ylim=0)
    common.title_horizons(axes, results)
    common.label_axes(
        axes, ["regret\n(reward, sum over agents)", "price of privacy\n(paired difference)"]
    )
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, p = 1",
        results,
        "Below: regret minus regret without noise, seed by seed (logarithmic time)",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig04_epsilon")
