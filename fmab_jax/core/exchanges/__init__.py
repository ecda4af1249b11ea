"""Exchanges: who is heard at a round's end, how long agents wait for it, and what it costs.

The paper's structures are one elimination loop with four exchanges. Each is a small table computed
once on the host from hop distances; the loop never looks inside a graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Float, Int

from fmab_jax.core import graphs
from fmab_jax.errors import count, real, refuse

AGENTS_MAX = 10_000_000
"""Most agents of an exchange without a graph."""


class Ledger(NamedTuple):
    """What GIS (Alg. 2) sends in one round, counted message by message.

    A communication slot has three stages. ADV: every agent that obtained observations in the
    previous slot (before the first slot: its own) names them to each neighbour. REQ: every agent
    asks for each observation that it lacks once, from the lowest-numbered neighbour naming it, in
    one REQ per (agent, neighbour) pair. DATA: one DATA answers each REQ. No stage runs after the
    slot d_G in which the last agent is complete.
    """

    adv: int
    """ADV messages."""

    req: int
    """REQ messages."""

    data: int
    """DATA messages, as many as REQ."""

    observations_advertised: int
    """Observations named in all ADV messages together."""

    observations_sent: int
    """Observations carried by all DATA messages together: M (M - 1), each arrives once."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """One exchange as a table; made by ``alone``, ``server``, ``gossip`` and ``sinks``.

    All link counts are per completed round. Two exchanges are equal only if they are one object.
    """

    kind: Literal["alone", "server", "gossip", "sinks"]
    """Which exchange."""

    agents: int
    """M."""

    reporting: int
    """N, the agents that enter a round's aggregate; S, C and the noise scale use it."""

    weights: Float[np.ndarray, " agent"]
    """Aggregation weights w_i, shape [agent], read-only, sum 1, as if everybody reported.

    A server that hears N < M agents puts 1/N on the drawn ones instead. Alone, nothing crosses
    agents: each puts 1 on itself.
    """

    wait: int = 0
    """t_delay, slots between an epoch's end and its elimination."""

    server_links: int = 0
    """Agent-server links."""

    peer_links_bound: int = 0
    """Agent-agent links on the first meter, ``meters[0]``."""

    peer_links_used: int = 0
    """Agent-agent links on the second meter, ``meters[1]``."""

    meters: tuple[str, str] = ("bound", "used")
    """What the two peer meters count.

    Gossip: ``bound`` = d_G |E| (theorem 3) and ``used`` = over the d_G slots, the edges that carry
    a DATA message. Sinks: ``edges`` = sum_q |E_q| (fits the paper's figure 11) and ``sac`` =
    sum_q sum_i dist(i, sink_q) (theorem 4).
    """

    diameter: int = 0
    """Largest diameter d_G of the graph or the components, hops."""

    sizes: tuple[int, ...] = ()
    """Component sizes M_q of sinks, in agent order."""

    sinks: tuple[int, ...] = ()
    """Sink agent of each component, as an agent in 0..M-1."""

    ledger: Ledger | None = None
    """GIS message counts, gossip only."""

    def __post_init__(self) -> None:
        """Makes the weights read-only, so that the table cannot change after it was made."""
        self.weights.setflags(write=False)

    @property
    def uniform(self) -> bool:
        """Whether every weight is 1/M."""
        return bool(np.all(self.weights == 1 / self.agents))


def alone(agents: int) -> Exchange:
    """Returns the exchange of agents that never communicate: N = 1, no links, no wait.

    Args:
        agents: M in [1, 1e7].

    Raises:
        ValueError: If ``agents`` is outside its range.
    """
    agents = _agents(agents)
    return Exchange("alone", agents, 1, _uniform(agents))


def server(agents: int, participation: float | np.floating[Any] = 1.0) -> Exchange:
    """Returns the centralised exchange (section IV-B): N = ceil(p M) uploads, no wait.

    Args:
        agents: M in [1, 1e7].
        participation: p in (0, 1].

    Raises:
        ValueError: If an argument is outside its range.
    """
    reporting = reporting_agents(agents, participation)
    agents = _agents(agents)
    return Exchange("server", agents, reporting, _uniform(agents), server_links=reporting)


def reporting_agents(agents: int, participation: float | np.floating[Any]) -> int:
    """Returns N = ceil(p M), the agents that upload in each round.

    p is a rounded number: 0.07 * 100 is 7.000000000000001 and 0.1 + 0.2 is 0.30000000000000004,
    so a p that exceeds a whole number of agents by less than one part in 1e12 means that number.

    Args:
        agents: M in [1, 1e7].
        participation: p in (0, 1].

    Raises:
        ValueError: If an argument is outside its range.
    """
    agents = _agents(agents)
    remedy = "choose the fraction of agents that upload in each round"
    share = real("participation", participation, 0, 1, remedy, open_low=True)
    return max(math.ceil(share * agents * (1 - 1e-12)), 1)


def gossip(graph: Any) -> Exchange:
    """Returns the decentralised exchange, GIS over a graph (Alg. 2 and 3, theorem 3).

    Agent j holds agent i's observation after dist(i, j) slots, the first of which coincides with
    the epoch's end: the wait is d_G - 1 slots (0 for one agent).

    Args:
        graph: A connected undirected networkx graph of at most 5,000 nodes, the agents; see
            ``graphs.make`` for names and labels.

    Raises:
        ValueError: If the graph is refused by ``graphs.validated`` or ``graphs.distances``.
    """
    graph = graphs.validated(graph)
    agents, edges = graph.number_of_nodes(), graph.number_of_edges()
    hops = graphs.distances(graph)
    eccentricity = hops.max(axis=1)
    slots = int(eccentricity.max())
    used, requests = _data_messages(graph, hops)
    degree = np.fromiter((graph.degree[j] for j in range(agents)), np.int64, agents)
    # Agent j advertises in slot n + 1 what reached it in slot n, for as long as slots are run.
    advertising = np.minimum(eccentricity + 1, slots)
    advertised = (hops < slots).sum(axis=1)
    return Exchange(
        "gossip",
        agents,
        agents,
        _uniform(agents),
        wait=max(slots - 1, 0),
        peer_links_bound=slots * edges,
        peer_links_used=used,
        diameter=slots,
        ledger=Ledger(
            adv=int(degree @ advertising),
            req=requests,
            data=requests,
            observations_advertised=int(degree @ advertised),
            observations_sent=agents * (agents - 1),
        ),
    )


def sinks(components: Any, weights: str = "agents") -> Exchange:
    """Returns the hybrid exchange, SAC to the sink of each component (Alg. 4 and 5, theorem 4).

    A sink is an agent of smallest eccentricity (ties: lowest number). The slowest component decides
    the wait, max_q max(ecc(sink_q) - 1, 0) slots; then Q sinks upload.

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
    # Equal components usually are one object (a hundred single agents): look at each only once.
    seen: dict[int, _Component] = {}
    given = list(components)
    for q, graph in enumerate(given):
        if id(graph) not in seen:
            seen[id(graph)] = _component(graph, f"components[{q}]")
    parts = [seen[id(graph)] for graph in given]
    if not parts:
        refuse("components", given, "at least one component", "for example '20x5:star'")
    sizes = np.array([part.size for part in parts])
    agents = int(sizes.sum())
    first = np.cumsum(sizes) - sizes
    if weights == "agents":
        shares = _uniform(agents)
    else:
        shares = np.repeat(1 / (len(parts) * sizes), sizes)
    return Exchange(
        "sinks",
        agents,
        agents,
        shares,
        wait=max(max(part.slots - 1, 0) for part in parts),
        server_links=len(parts),
        peer_links_bound=sum(part.edges for part in parts),
        peer_links_used=sum(part.forwards for part in parts),
        meters=("edges", "sac"),
        diameter=max(part.diameter for part in parts),
        sizes=tuple(part.size for part in parts),
        sinks=tuple(int(start) + part.sink for start, part in zip(first, parts, strict=True)),
    )


class _Component(NamedTuple):
    size: int
    edges: int
    sink: int
    slots: int
    forwards: int
    diameter: int


def _component(graph: Any, field: str) -> _Component:
    graph = graphs.validated(graph, field)
    hops = graphs.distances(graph)
    eccentricity = hops.max(axis=1)
    sink = int(eccentricity.argmin())
    return _Component(
        size=len(hops),
        edges=graph.number_of_edges(),
        sink=sink,
        slots=int(eccentricity[sink]),
        forwards=int(hops[sink].sum()),
        diameter=int(eccentricity.max()),
    )


def _data_messages(graph: nx.Graph, hops: Int[np.ndarray, "agent agent"]) -> tuple[int, int]:
    """Returns the (slot, edge) pairs that carry DATA, and the REQ messages, of one GIS round.

    Agent j lacks i's observation until slot dist(i, j), when exactly the neighbours one hop nearer
    to i advertise it; j asks the lowest-numbered of them.
    """
    agents = len(hops)
    requests = 0
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


def _agents(agents: Any) -> int:
    return count("agents", agents, 1, AGENTS_MAX, "choose the number of agents")


def _uniform(agents: int) -> Float[np.ndarray, " agent"]:
    return np.full(agents, 1 / agents)
