"""Figure 12: the three structures, where agents are alike and where they differ.

The paper: CDP-MAB has the least regret; DDP-MAB and HDP-MAB pay for exploiting local estimates
while they wait, HDP-MAB less, since its graphs are smaller. M, K and graphs are not stated: the
section has 100 agents, the others 100 arms, and the remark on delays needs graphs that delay. So:
one ring of 100 against five rings of 20.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 100, 100
EPSILON = 1
ALGORITHMS = {"CDP": fmab.cdp_mab, "DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab}
GRAPH, COMPONENTS = "ring", "20x5:ring"
SPREADS = {"homogeneous": 0, "heterogeneous": 1}


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every structure on both reward structures, paired."""
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
    """Draws regret over time, and the difference to CDP-MAB on the same rewards."""
    figure, axes = common.panels(len(results), rows=2)
    for (top, bottom), data in zip(axes.T, results.values(), strict=True):
        handles = []
        for stroke, spread in zip(style.STROKES, SPREADS, strict=False):
            curves = {name: data.regret.sel(algorithm=name, spread=spread) for name in ALGORITHMS}
            regret = common.regret_bands(curves)
            difference = common.difference_bands(curves, "CDP")
            for colour, name in zip(style.COLOURS, ALGORITHMS, strict=False):
                own = {"color": colour, "linestyle": stroke}
                label = f"{name}, {spread}"
                handles += common.draw_bands(top, {label: regret[name]}, **own)
                common.draw_bands(bottom, {label: difference[name]}, **own)
        top.set(xlim=0, ylim=0)
        bottom.set(xscale="log")
    common.title_horizons(axes, results)
    common.label_axes(axes, ["regret\n(reward, sum over agents)", "minus CDP\n(paired difference)"])
    share = common.disagreement(AGENTS, ARMS, SPREADS["heterogeneous"])
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, DDP on a {GRAPH}, HDP on "
        f"{COMPONENTS}",
        results,
        "Below: regret minus that of CDP-MAB on the same problem, seed by seed (logarithmic "
        f"time). Heterogeneous: spread 1; the local best arm of {100 * share:.0f} % of the agents "
        "is not the global best",
    )
    name = "fig12_heterogeneous_structures"
    return common.save(style.finish(figure, handles, caption), folder, name)
