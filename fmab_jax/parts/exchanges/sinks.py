"""Sinks of components collect with SAC and report to a server (Algorithms 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fmab_jax.errors import refuse
from fmab_jax.lazy_imports import nx
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges.table import SERVER, Exchange, MessageCounts, Meter, View, Viewer

EDGES = Meter("edges", "peer", True, "edges of the components")
SAC = Meter("sac", "peer", False, "hops to the sinks")


def sinks(components: object, weights: str = "agents") -> Exchange:
    """Returns the hybrid exchange, SAC to the sink of each component (Alg. 4 and 5, theorem 4).

    A sink is an agent of smallest eccentricity (ties: lowest number). The slowest component decides
    the wait, max_q max(ecc(sink_q) - 1, 0) slots; then Q sinks upload.

    Peer links are counted on two meters. ``edges`` is sum_q |E_q|, which alone fits the paper's
    figure 11; ``sac`` is sum_q sum_i dist(i, sink_q) (theorem 4).

    The ledger counts the uploads of the sinks with the DATA messages. Agents forward to the
    lowest-numbered neighbour one hop nearer to the sink, in one message all that arrived a slot
    before; to other neighbours, the number of messages may differ.

    Args:
        components: A list of connected undirected networkx graphs G_1..G_Q of at most 5,000 nodes
            each, the agents numbered consecutively; see ``graphs.components``.
        weights: ``"agents"``: w_i = 1/M. ``"components"``: w_i = 1/(Q M_q), the paper's line 15,
            which averages the components' means with equal weight.

    Raises:
        ValueError: If there is no component, a graph is refused, or ``weights`` is neither name.
    """
    if weights not in ("agents", "components"):
        refuse("weights", weights, "'agents' or 'components'", "'agents' keeps C(r) valid")
    if isinstance(components, (nx.Graph, str)) or not isinstance(components, Iterable):
        remedy = "make the list with graphs.components(spec, agents)"
        refuse("components", str(components), "a list of networkx graphs", remedy)
    if not (networks := list(components)):
        refuse("components", networks, "at least one component", "for example '20x5:star'")
    # Equal components are usually one object, such as a hundred single agents.
    by_identity: dict[int, _Component] = {}
    for q, graph in enumerate(networks):
        if id(graph) not in by_identity:
            by_identity[id(graph)] = _measure_component(graph, f"components[{q}]")
    parts = [by_identity[id(graph)] for graph in networks]
    sizes = np.array([part.size for part in parts])
    agents, forwards = int(sizes.sum()), sum(part.forwards for part in parts)
    first = np.cumsum(sizes) - sizes
    shares = np.repeat(1 / (len(parts) * sizes), sizes)
    return Exchange(
        "sinks",
        agents,
        agents,
        None if weights == "agents" else shares,
        wait=max(max(part.slots - 1, 0) for part in parts),
        links=((SERVER, len(parts)), (EDGES, sum(part.edges for part in parts)), (SAC, forwards)),
        diameter=max(part.diameter for part in parts),
        sizes=tuple(part.size for part in parts),
        sinks=tuple(int(i + part.sink) for i, part in zip(first, parts, strict=True)),
        ledger=MessageCounts(adv=0, req=0, data=len(parts) + sum(part.messages for part in parts)),
        vectors=len(parts) + forwards,
        views=(
            View(Viewer.SINKS, 1),
            View(Viewer.SERVER, min(part.size for part in parts)),
            View(Viewer.AGENTS, agents, is_member=True),
        ),
    )


class _Component(NamedTuple):
    size: int
    edges: int
    sink: int
    slots: int
    forwards: int
    messages: int
    diameter: int


def _measure_component(graph: object, field: str) -> _Component:
    network = graphs.validated(graph, field)
    hops = graphs.distances(network)
    eccentricity = hops.max(axis=1)
    sink = int(eccentricity.argmin())
    return _Component(
        size=len(hops),
        edges=network.number_of_edges(),
        sink=sink,
        slots=int(eccentricity[sink]),
        forwards=int(hops[sink].sum()),
        messages=_count_messages(hops, sink),
        diameter=int(eccentricity.max()),
    )


def _count_messages(hops: Int[np.ndarray, "agent agent"], sink: int) -> int:
    """Counts the DATA messages of a component: one per agent and slot in which it forwards.

    An agent sends its own observation in slot 1, and those of n hops deeper in slot n + 1.
    """
    distance = hops[sink]
    depth = np.zeros(len(hops), np.int64)
    # From the outermost agents inwards: the depth behind an agent is then complete.
    for agent in np.argsort(-distance, kind="stable")[:-1]:
        receiver = np.flatnonzero((hops[agent] == 1) & (distance == distance[agent] - 1))[0]
        depth[receiver] = max(depth[receiver], depth[agent] + 1)
    return int(depth.sum() - depth[sink]) + len(hops) - 1
