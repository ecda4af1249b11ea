"""Agents flood a graph without asking first (section V of arXiv 2111.01570)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from fmab_jax.core import graphs
from fmab_jax.core.exchanges.flooding import BOUND, USED
from fmab_jax.core.exchanges.table import Exchange, View
from fmab_jax.later import nx


def plain_flooding(graph: Any) -> Exchange:
    """Returns the exchange of plain flooding over a graph: GIS without ADV and REQ (section V).

    In each slot every agent sends what it obtained in the slot before (in the first slot: its own
    observation) to all neighbours except those that it obtained it from, as the paper words it, in
    one DATA message for each of them. What an agent already holds it discards. Observations arrive
    when they do with GIS, so the wait is d_G - 1 slots.

    The round ends with slot d_G, in which the last agent is complete, as it does with GIS: agents
    know d_G. If they did not, those who obtained something in that slot would send it once more.

    Links are counted on the meters of GIS: ``bound`` is d_G |E|, ``used`` counts, over the d_G
    slots, the edges that carry a DATA message.

    Args:
        graph: As for `flooding`.

    Raises:
        ValueError: If the graph is refused by ``graphs.validated`` or ``graphs.distances``.
    """
    graph = graphs.validated(graph)
    agents, edges = graph.number_of_nodes(), graph.number_of_edges()
    hops = graphs.distances(graph)
    slots = int(hops.max())
    used, sent = _copies(graph, hops)
    return Exchange(
        "plain flooding",
        agents,
        agents,
        wait=max(slots - 1, 0),
        links=((BOUND, slots * edges), (USED, used)),
        diameter=slots,
        vectors=sent,
        views=(View("every agent", 1),),
    )


def _copies(graph: nx.Graph, hops: Int[np.ndarray, "agent agent"]) -> tuple[int, int]:
    """Returns the (slot, edge) pairs that carry DATA, and the observations that are sent.

    Agent j obtains i's observation in slot dist(i, j), from all neighbours one hop nearer to i, and
    sends it to the others in the next slot, if there is one.
    """
    agents, slots = len(hops), int(hops.max())
    sent = 0
    carried = [np.empty(0, np.int64)]
    for j in range(agents if slots else 0):
        neighbours = np.array(sorted(graph[j]), np.int64)
        order = np.argsort(hops[j], kind="stable")
        held = order[hops[j, order] < slots]
        copies = hops[np.ix_(neighbours, held)] >= hops[j, held]
        sent += int(copies.sum())
        # The first observation of each slot, in order of arrival.
        since = np.flatnonzero(np.diff(hops[j, held], prepend=-1))
        to, slot = np.nonzero(np.logical_or.reduceat(copies, since, axis=1))
        low, high = np.minimum(neighbours[to], j), np.maximum(neighbours[to], j)
        carried.append((slot * agents + low) * agents + high)
    return len(np.unique(np.concatenate(carried))), sent
