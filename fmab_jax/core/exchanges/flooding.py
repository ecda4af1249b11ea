"""Agents flood a graph with GIS (Algorithms 2 and 3 of arXiv 2111.01570)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from fmab_jax.core import graphs
from fmab_jax.core.exchanges.table import Exchange, Ledger, Meter, View
from fmab_jax.later import nx

BOUND = Meter("bound", "peer", True, "diameter x edges")
USED = Meter("used", "peer", False, "edges that carry data")


def flooding(graph: Any) -> Exchange:
    """Returns the decentralised exchange, GIS over a graph (Alg. 2 and 3, theorem 3).

    Agent j holds agent i's observation after dist(i, j) slots, the first of which coincides with
    the epoch's end: the wait is d_G - 1 slots (0 for one agent).

    Links are counted on two meters. ``bound`` is d_G |E| (theorem 3), the paper's; ``used`` counts,
    over the d_G slots, the edges that carry a DATA message.

    Args:
        graph: A connected undirected networkx graph of at most 5,000 nodes, the agents; see
            ``graphs.make`` for names and labels.

    Raises:
        ValueError: If the graph is refused by ``graphs.validated`` or ``graphs.distances``.
    """
    graph = graphs.validated(graph)
    agents, edges = graph.number_of_nodes(), graph.number_of_edges()
    hops = graphs.distances(graph)
    slots = int(hops.max())
    used, requests = _count_data(graph, hops)
    degrees = np.array([graph.degree[agent] for agent in range(agents)])
    # Agent j advertises in slot n + 1 what reached it in slot n, for as long as slots are run.
    advertised = int(degrees @ np.minimum(hops.max(axis=1) + 1, slots))
    return Exchange(
        "flooding",
        agents,
        agents,
        wait=max(slots - 1, 0),
        links=((BOUND, slots * edges), (USED, used)),
        diameter=slots,
        vectors=agents * (agents - 1),
        views=(View("every agent", 1),),
        ledger=Ledger(adv=advertised, req=requests, data=requests),
    )


def _count_data(graph: nx.Graph, hops: Int[np.ndarray, "agent agent"]) -> tuple[int, int]:
    """Returns the (slot, edge) pairs that carry DATA, and the requests, of one GIS round.

    Agent j lacks i's observation until slot dist(i, j), when exactly the neighbours one hop nearer
    to i advertise it; j asks the lowest-numbered of them.
    """
    agents, requests = len(hops), 0
    carried = [np.empty(0, np.int64)]
    for j in range(agents):
        neighbours = np.array(sorted(graph[j]), np.int64)
        # In slot 1 every neighbour offers its own observation and nobody else does.
        messages = agents + neighbours
        far = np.flatnonzero(hops[j] > 1)
        if len(far):
            slot = hops[j, far].astype(np.int64)
            nearer = hops[np.ix_(neighbours, far)] == slot - 1
            # argmax finds the first, hence lowest-numbered, of the neighbours one hop nearer.
            later = slot * agents + neighbours[nearer.argmax(axis=0)]
            messages = np.concatenate([messages, np.unique(later)])
        requests += len(messages)
        slot, asked = np.divmod(messages, agents)
        carried.append((slot * agents + np.minimum(asked, j)) * agents + np.maximum(asked, j))
    return len(np.unique(np.concatenate(carried))), requests
