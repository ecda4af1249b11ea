"""Figure 13 (not in the paper): regret at T against how much agents differ.

Its axis is what the spread of the means does: the share of agents whose own best arm is not the
best on average. The setting is that of figure 12, with agents alone besides.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from experiments.fig12_heterogeneous_structures import (
    AGENTS,
    ARMS,
    COMPONENTS,
    EPSILON,
    GRAPH,
)
from fmab_jax.plots import style

ALGORITHMS = {
    "Single": fmab.single_mab,
    "CDP": fmab.cdp_mab,
    "DDP": fmab.ddp_mab,
    "HDP": fmab.hdp_mab,
}
SPREADS = [0, 0.25, 0.5, 0.75, 1]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every structure at every spread."""
    return fmab.sweep(
        ALGORITHMS,
        fmab.Problem.heterogeneous,
        agents=AGENTS,
        arms=ARMS,
        epsilon=EPSILON,
        graph=GRAPH,
        components=COMPONENTS,
        spread=SPREADS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        sum_agents=False,
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a line per structure, with the interval at each spread."""
    shares = [100 * common.disagreement(AGENTS, ARMS, spread) for spread in SPREADS]
    figure, axes = common.panels(len(results), rows=2)
    for (top, bottom), data in zip(axes.T, results.values(), strict=True):
        table = fmab.final_table(data, level=common.LEVEL)
        last, handles = data.regret.isel(time=-1).load(), []
        for index, name in enumerate(ALGORITHMS):
            row, own = table.sel(algorithm=name), style.look(index)
            top.vlines(shares, row.regret_lower, row.regret_upper, color=own["color"], lw=1)
            handles += top.plot(shares, row.regret, label=name, marker="o", ms=2.5, **own)
            if name not in ("Single", "CDP"):
                excess = last.sel(algorithm=name) - last.sel(algorithm="CDP")
                mean, lower, upper = zip(*map(common.interval, excess.values), strict=True)
                bottom.vlines(shares, lower, upper, color=own["color"], lw=1)
                bottom.plot(shares, mean, marker="o", ms=2.5, **own)
        top.set(yscale="log")
        bottom.set(ylim=0)
        for panel in (top, bottom):
            panel.margins(x=0.04)
    common.title_horizons(axes, results)
    x = "agents whose own best arm\nis not the global best (%)"
    labels = ["regret at T\n(reward, sum over agents)", "minus CDP, at T\n(paired difference)"]
    common.label_axes(axes, labels, x)
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, DDP on a {GRAPH}, HDP on "
        f"{COMPONENTS}",
        results,
        "Below: regret minus that of CDP-MAB on the same problem, seed by seed",
        f"From left to right: spread {', '.join(f'{spread:g}' for spread in SPREADS)}",
        bars="Points: means over the seeds; bars",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig13_heterogeneity")
