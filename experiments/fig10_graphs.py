"""Figure 10: regret of DDP-MAB on four graphs of 50 agents.

The paper: star and complete graph have the least regret, the ring the most, for its delay. Their
curves coincide, so what is drawn is the paired difference to the complete graph.
For it all runs draw agent by agent (sum_agents=False): one law of draws, the same uniforms. The
paper's random graph is not specified: connected Erdos-Renyi with edge probability 2 ln(M) / M, the
same in all runs.
"""

import functools
from pathlib import Path

import fmab_jax as fmab
from experiments import common, differences, pictures, seen
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

AGENTS, ARMS = 50, 100
EPSILON = 1
COMPLETE = "complete"
GRAPHS = [COMPLETE, "star", "ring", "random"]

MORE = "regret minus that on the complete graph, paired"
page = functools.partial(differences.write_page, label=MORE, height=1.9)

# Every graph, paired.
sweep = differences.swept(
    fmab.ddp_mab,
    fmab.Problem.uniform(AGENTS, ARMS),
    epsilon=EPSILON,
    graph=GRAPHS,
    sum_agents=False,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the difference to the complete graph over the logarithm of time."""
    found = differences.beside(
        results, COMPLETE, lambda data: {g: data.regret.sel(graph=g) for g in GRAPHS}, regret=False
    )
    tables = {name: exchange.flooding(graphs.make(name, AGENTS)) for name in GRAPHS}
    waits = ", ".join(f"{name} {table.wait}" for name, table in tables.items())
    caption = common.caption(
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "Differences are paired, seed by seed, and drawn over the logarithm of time"
        + found.in_percent("the regret at T on the complete graph"),
        common.level_at_end("on the complete graph", found.references),
        f"Slots of waiting a round: {waits}",
        common.leaks({name: fmab.ddp_mab(EPSILON, graph=name) for name in GRAPHS}, AGENTS),
    )
    listed = found.told("{mean:+,.1f} ({share}) on the {label}")
    shares = [
        (mean, found.references[T])
        for T, points in found.ends().items()
        for mean, _, _ in points.values()
    ]
    alt = (
        f"Regret beside the complete graph, at T = {common.write_count(found.last)}: {listed} "
        "graph. "
        f"{seen.sides(found.every(), 'differences at T')}. They are {seen.most(shares)} of the "
        "regret on the complete graph."
    )
    rows = found.rows("difference to the complete graph")
    picture = pictures.Picture("fig10_graphs", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)
