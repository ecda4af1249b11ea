"""Figure 8: CDP-MAB against agents alone, on alike and on different agents (5 agents, 10 arms).

The paper: CDP-MAB has about the same regret on both, a fifth of the single agents' where agents
are alike; where they differ, single agents settle on their local best arms and pay for ever.
"Differ" is not quantified there; here it is the widest zero-sum perturbation of the means
(spread = 1), and the caption says how many agents it misleads.
"""

from itertools import product
from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.plots import style

AGENTS, ARMS = 5, 10
EPSILON = 1
ALGORITHMS = {"Single": fmab.single_mab, "CDP": fmab.cdp_mab}
SPREADS = {"homogeneous": 0, "heterogeneous": 1}


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs both algorithms on both reward structures."""
    return fmab.sweep(
        ALGORITHMS,
        fmab.Problem.heterogeneous,
        agents=AGENTS,
        arms=ARMS,
        epsilon=EPSILON,
        spread=SPREADS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time."""
    figure, axes = common.panels(len(results), height=1.9)
    for panel, data in zip(axes[0], results.values(), strict=True):
        curves = {
            f"{algorithm}, {spread}": data.regret.sel(algorithm=algorithm, spread=spread)
            for algorithm, spread in product(ALGORITHMS, SPREADS)
        }
        handles = common.draw_bands(panel, common.regret_bands(curves))
        for line in handles[:: len(SPREADS)]:  # homogeneous: seen below the other where they meet
            line.set_linewidth(2.0)
        panel.set(xlim=0, ylim=0)
    common.title_horizons(axes, results)
    common.label_axes(axes, ["regret\n(reward, sum over agents)"])
    share = common.disagreement(AGENTS, ARMS, SPREADS["heterogeneous"])
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        f"Heterogeneous: spread 1; the local best arm of {100 * share:.0f} % of the agents is not "
        "the global best, and a single agent that settles on it has lost the global best",
    )
    name = "fig08_heterogeneous_central"
    return common.save(style.finish(figure, handles, caption), folder, name)
