"""Figure 10: regret of DDP-MAB on four graphs of 50 agents.

The paper: star and complete graph have the least regret, the ring the most, for its delay. Their
curves coincide, so what is drawn is the paired difference to the complete graph.
For it all runs draw agent by agent (sum_agents=False): one law of draws, the same uniforms. The
paper's random graph is not specified: connected Erdos-Renyi with edge probability 2 ln(M) / M, the
same in all runs.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

AGENTS, ARMS = 50, 100
EPSILON = 1
COMPLETE = "complete"
GRAPHS = [COMPLETE, "star", "ring", "random"]


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
    """Draws the difference to the complete graph over the logarithm of time."""
    curves = {
        horizon: {name: data.regret.sel(graph=name) for name in GRAPHS}
        for horizon, data in results.items()
    }
    more = {T: common.difference_bands(each, COMPLETE) for T, each in curves.items()}
    references = {T: float(each[COMPLETE].isel(time=-1).mean()) for T, each in curves.items()}

    def page(page: pictures.Page) -> None:
        labels = ["regret minus that on the complete graph, paired"]
        axes = page.panels(labels, common.titles(results), height=1.9)[0]
        for panel, horizon in zip(axes, results, strict=True):
            page.handles = pictures.draw_difference(panel, more[horizon])
        page.percent(
            list(axes), references.values(), [pictures.ends(each) for each in more.values()]
        )

    tables = {name: exchange.flooding(graphs.make(name, AGENTS)) for name in GRAPHS}
    waits = ", ".join(f"{name} {table.wait}" for name, table in tables.items())
    caption = common.caption(
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "Differences are paired, seed by seed, and drawn over the logarithm of time"
        + pictures.in_percent(
            references.values(), more.values(), "the regret at T on the complete graph"
        ),
        common.level_at_end(
            "on the complete graph", {T: each[COMPLETE] for T, each in curves.items()}
        ),
        f"Slots of waiting a round: {waits}",
        common.leaks({name: fmab.ddp_mab(EPSILON, graph=name) for name in GRAPHS}, AGENTS),
    )
    last = max(results)
    found = {graph: pictures.end_of(band) for graph, band in more[last].items()}
    listed = ", ".join(
        f"{mean:+,.1f} ({seen.percent(mean, references[last])}) on the {graph}"
        for graph, (mean, _, _) in found.items()
    )
    at_end = {T: [pictures.end_of(band) for band in each.values()] for T, each in more.items()}
    every = [point for points in at_end.values() for point in points]
    shares = [(mean, references[T]) for T, points in at_end.items() for mean, _, _ in points]
    alt = (
        f"Regret beside the complete graph, at T = {common.whole(last)}: {listed} graph. "
        f"{seen.sides(every, 'differences at T')}. They are {seen.most(shares)} of the regret on "
        "the complete graph."
    )
    rows = pictures.curve_rows({"difference to the complete graph": more})
    return pictures.publish(pictures.Picture("fig10_graphs", page, caption, alt, rows), folder)
