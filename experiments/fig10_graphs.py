"""Figure 10: regret of DDP-MAB on four graphs of 50 agents.

The paper: star and complete graph have the least regret, the ring the most, for its delay. The
curves are hard to tell apart, so the second row shows the paired difference to the complete graph.
For it all runs draw agent by agent (sum_agents=False): one law of draws, the same uniforms. The
paper's random graph is not specified: connected Erdos-Renyi with edge probability 2 ln(M) / M, the
same in all runs.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
GRAPHS = ["complete", "star", "ring", "random"]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every graph, paired."""
    return fmab.sweep(
        fmab.ddp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        graph=GRAPHS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        sum_agents=False,
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and the difference to the complete graph."""
    figure, axes = common.panels(len(results), rows=2)
    for (top, bottom), data in zip(axes.T, results.values(), strict=True):
        curves = {graph: data.regret.sel(graph=graph) for graph in GRAPHS}
        handles = common.draw_bands(top, common.regret_bands(curves))
        common.draw_bands(bottom, common.difference_bands(curves, "complete"))
        top.set(xlim=0, ylim=0)
        bottom.set(xscale="log")
    common.title_horizons(axes, results)
    common.label_axes(
        axes, ["regret\n(reward, sum over agents)", "minus complete graph\n(paired difference)"]
    )
    tables = {name: exchange.flooding(graphs.make(name, AGENTS)) for name in GRAPHS}
    waits = ", ".join(f"{name} {table.wait}" for name, table in tables.items())
    caption = common.caption(
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "Below: regret minus regret on the complete graph, seed by seed (logarithmic time)",
        f"Slots of waiting a round: {waits}",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig10_graphs")
