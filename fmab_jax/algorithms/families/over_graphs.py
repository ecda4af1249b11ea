"""Parameters and exchanges of algorithms over a graph, or over components with sinks."""

import functools
from dataclasses import dataclass

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.parameters import Choice, Real, parameter
from fmab_jax.parts import exchanges
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.graphs import refuse_too_far
from fmab_jax.parts.networks import ComponentsOf, graph_parameter, parts
from fmab_jax.parts.networks import network as build_network

PROTOCOLS = ("gis", "flooding", "gossip")


@dataclass(frozen=True)
class OverGraph(Algorithm):
    """Agents send messages over a graph, and wait.

    Attributes:
        graph: A networkx graph, a name such as "ring", or a file; see `fmab_jax.parts.graphs.make`.
        protocol: "gis", the paper's (Alg. 2); "flooding" without asking first, or "gossip" by pairs
            that average, which section V compares with it; see `fmab_jax.parts.exchanges`. They
            differ in waits, links and messages. The aggregate is the mean with each of them.
        tolerance: How far an agent may be from the mean when gossip ends, as a part of the
            messages' range; in (0, 1). Other protocols are exact: it has no effect on them.
    """

    communication = "agents flood a graph (GIS), or gossip, and wait"

    graph: object = graph_parameter("complete")
    protocol: str = parameter(
        Choice(options=PROTOCOLS),
        "How means travel: the paper's GIS, plain flooding, or gossip to a tolerance.",
        default="gis",
    )
    tolerance: float = parameter(
        Real(low=0.0, high=1.0, open_low=True, open_high=True),
        "How far gossip may end from the mean, of the messages' range; for gossip only.",
        default=1e-3,
        label="tolerance of gossip",
    )

    def settings(self) -> dict[str, str]:
        """Returns texts of values that are not the default; drops the tolerance without gossip."""
        words, gossips = super().settings(), self.protocol == "gossip"
        return {name: word for name, word in words.items() if name != "tolerance" or gossips}

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of the protocol on the graph."""
        # A tolerance without effect is 0, so that equal exchanges share a cache entry.
        tolerance = self.tolerance if self.protocol == "gossip" else 0.0
        return _build_exchange(self.graph, agents, self.protocol, tolerance)


@functools.lru_cache(maxsize=256)
def _build_exchange(graph: object, agents: int, protocol: str, tolerance: float) -> Exchange:
    """Builds the exchange once per graph, because hop distances and gossip take time."""
    if isinstance(graph, str):
        # Checked first, because a graph of too many agents takes gigabytes.
        refuse_too_far(agents, graph)
    over = build_network(graph, agents)
    if protocol == "gossip":
        return exchanges.gossip(over, tolerance)
    return exchanges.flooding(over) if protocol == "gis" else exchanges.plain_flooding(over)


@dataclass(frozen=True)
class OverComponents(Algorithm):
    """Components collect at a sink, sinks report to a server.

    Attributes:
        components: Such as "20x5:star" (five stars of 20); see `fmab_jax.parts.graphs.components`;
            None for five complete graphs of nearly equal sizes.
    """

    communication = "sinks of components report (SAC)"
    usual_agents = 100
    weights = "agents"

    components: object = parameter(
        ComponentsOf(none_label="five complete graphs"),
        "Parts SIZExCOUNT:GRAPH joined by +, such as 20x5:star; the sizes sum to the agents.",
        default=None,
        keyword=False,
        symbol="",
        default_text="five complete graphs, equally large",
    )

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of the sinks."""
        spec = split_equally(agents) if self.components is None else self.components
        return _build_sinks(spec, self.weights, agents)


@functools.lru_cache(maxsize=256)
def _build_sinks(spec: object, weights: str, agents: int) -> Exchange:
    """Builds the exchange once per specification, because hop distances take time."""
    return exchanges.sinks(parts(spec, agents), weights)


def split_equally(agents: int) -> str:
    """Returns the default components: five complete graphs of nearly equal sizes."""
    number = min(5, agents)
    sizes = (str(agents // number + (part < agents % number)) for part in range(number))
    return ",".join(sizes) + ":complete"
