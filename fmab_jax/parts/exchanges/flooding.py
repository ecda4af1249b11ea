"""Agents flood a graph with GIS (Algorithms 2 and 3 of arXiv 2111.01570), or without asking."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from fmab_jax.lazy_imports import nx
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges.table import Exchange, MessageCounts, Meter, View, Viewer

Hops = Int[np.ndarray, "agent agent"]
BOUND = Meter("bound", "peer", True, "diameter x edges")
USED = Meter("used", "peer", False, "edges that carry data")


def flooding(graph: object) -> Exchange:
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
    network = graphs.validated(graph)
    hops = graphs.distances(network)
    used, requests = _count_data(network, hops)
    degrees = np.array([network.degree[agent] for agent in range(len(hops))])
    # Agent j advertises in slot n + 1 the data of slot n.
    advertised = int(degrees @ np.minimum(hops.max(axis=1) + 1, hops.max()))
    ledger = MessageCounts(adv=advertised, req=requests, data=requests)
    vectors = len(hops) * (len(hops) - 1)
    return _make_flooding("flooding", network, hops, used, vectors, ledger)


def plain_flooding(graph: object) -> Exchange:
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
    network = graphs.validated(graph)
    hops = graphs.distances(network)
    used, vectors = _count_copies(network, hops)
    return _make_flooding("plain flooding", network, hops, used, vectors)


def _make_flooding(
    name: str,
    graph: nx.Graph,
    hops: Hops,
    used: int,
    vectors: int,
    ledger: MessageCounts | None = None,
) -> Exchange:
    agents, slots = len(hops), int(hops.max())
    links = ((BOUND, slots * graph.number_of_edges()), (USED, used))
    return Exchange(
        name,
        agents,
        agents,
        wait=max(slots - 1, 0),
        links=links,
        diameter=slots,
        vectors=vectors,
        views=(View(Viewer.EVERY_AGENT, 1),),
        ledger=ledger,
    )


def _count_data(graph: nx.Graph, hops: Hops) -> tuple[int, int]:
    """Counts the (slot, edge) pairs that carry DATA, and the requests, of one GIS round.

    Agent j lacks i's observation until slot dist(i, j), when exactly the neighbours one hop nearer
    to i advertise it; j asks the lowest-numbered of them.
    """
    agents, requests = len(hops), 0
    carried = [np.empty(0, np.int64)]
    for j in range(agents):
        neighbours = np.array(sorted(graph[j]), np.int64)
        # In slot 1 every neighbour advertises its own observation.
        messages = agents + neighbours
        distant = np.flatnonzero(hops[j] > 1)
        if len(distant):
            slot = hops[j, distant].astype(np.int64)
            nearer = hops[np.ix_(neighbours, distant)] == slot - 1
            # argmax returns the first, hence lowest-numbered, neighbour one hop nearer.
            requests_by_slot = slot * agents + neighbours[nearer.argmax(axis=0)]
            messages = np.concatenate([messages, np.unique(requests_by_slot)])
        requests += len(messages)
        slot, neighbour = np.divmod(messages, agents)
        carried.append(
            (slot * agents + np.minimum(neighbour, j)) * agents + np.maximum(neighbour, j)
        )
    return len(np.unique(np.concatenate(carried))), requests


def _count_copies(graph: nx.Graph, hops: Hops) -> tuple[int, int]:
    """Counts the (slot, edge) pairs that carry DATA, and the copies of observations.

    Agent j obtains i's observation in slot dist(i, j), from all neighbours one hop nearer to i, and
    sends it to the others in the next slot, if there is one.
    """
    agents, slots = len(hops), int(hops.max())
    total = 0
    carried = [np.empty(0, np.int64)]
    for j in range(agents if slots else 0):
        neighbours = np.array(sorted(graph[j]), np.int64)
        order = np.argsort(hops[j], kind="stable")
        sources = order[hops[j, order] < slots]
        copies = hops[np.ix_(neighbours, sources)] >= hops[j, sources]
        total += int(copies.sum())
        # The first observation of each slot, in order of arrival.
        slot_starts = np.flatnonzero(np.diff(hops[j, sources], prepend=-1))
        receiver, slot = np.nonzero(np.logical_or.reduceat(copies, slot_starts, axis=1))
        low, high = np.minimum(neighbours[receiver], j), np.maximum(neighbours[receiver], j)
        carried.append((slot * agents + low) * agents + high)
    return len(np.unique(np.concatenate(carried))), total
