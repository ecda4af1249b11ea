"""Table I: communication cost and regret of DDP-MAB on typical graphs, measured.

The paper gives orders: cost 2 (M - 1), M^2 / 2, M (M - 1) / 2 links a round for star, ring and
complete graph, and regret beyond CDP-MAB's of order M d_G. Links are counted in two ways: diameter
times edges (the paper's), and edges that carry data, summed over slots. The d of its
d-regular graph is open: 4.
"""

from pathlib import Path

import fmab_jax as fmab
from experiments import common, differences
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs

AGENTS, ARMS = 50, 100
EPSILON = 1
GRAPHS = ["star", "ring", "complete", "regular-4"]
NAMES = {"regular-4": "4-regular"}  # where a graph is not called what it is made by
PEER_PRICE = 1

# Every graph, paired.
sweep = differences.make_sweep(
    fmab.ddp_mab,
    fmab.Problem(agents=AGENTS, arms=ARMS),
    epsilon=EPSILON,
    graph=GRAPHS,
    sum_agents=False,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Writes the table, a row per horizon and graph."""
    rows = []
    for horizon, data in results.items():
        last = data.isel(time=-1)
        for name in GRAPHS:
            graph = graphs.make(name, AGENTS)
            facts, cell = exchange.flooding(graph), last.sel(graph=name)
            rows.append(
                {
                    "T": horizon,
                    "graph": NAMES.get(name, name),
                    "edges": graph.number_of_edges(),
                    "diameter": facts.diameter,
                    "wait (slots)": facts.wait,
                    "links a round, diameter × edges": facts.on("bound"),
                    "links a round, edges that carry data": facts.on("used"),
                    "rounds": common.interval(cell.rounds_made),
                    "cost at T, diameter × edges": common.interval(
                        PEER_PRICE * cell.links.sel(meter="bound")
                    ),
                    "cost at T, edges that carry data": common.interval(
                        PEER_PRICE * cell.links.sel(meter="used")
                    ),
                }
                | differences.row_beside(
                    cell,
                    last.sel(graph="complete"),
                    "complete",
                    fmab.ddp_mab(EPSILON, graph=name),
                    AGENTS,
                )
            )
    notes = common.caption(
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, "
        f"c2 = {PEER_PRICE} per agent-agent link",
        results,
        "Regret is summed over agents; minus complete: paired difference, seed by seed, and in "
        "per cent of the regret on the complete graph. Leak: of one reward, to whoever sees the "
        "messages of its agent",
        bars="Numbers: means over the seeds; in brackets",
    )
    return common.save_table(rows, folder, "table1_graphs", notes)
