"""DDP-MAB: agents send their means over a graph and wait (Algorithms 2 and 3)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from fmab_jax.algorithms.families.paper import PaperWaiting
from fmab_jax.core import exchanges
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.graphs import refuse_too_far
from fmab_jax.core.networks import graph_parameter, network
from fmab_jax.parameters import Choice, Real, parameter

PROTOCOLS = ("gis", "flooding", "gossip")


@dataclass(frozen=True)
class DDP(PaperWaiting):
    """Decentralised: agents send their means over a graph.

    Attributes:
        graph: A networkx graph, a name such as "ring", or a file; see `fmab_jax.core.graphs.make`.
        protocol: "gis", the paper's (Alg. 2); "flooding" without asking first, or "gossip" by pairs
            that average, which section V holds against it; see `fmab_jax.core.exchanges`. They
            differ in waits, links and what is sent. The aggregate is the mean with each of them.
        tolerance: How far an agent may be from the mean when gossip ends, as a part of the
            messages' range; in (0, 1). Other protocols are exact: it has no effect on them.

    Example:
        A ring of five has a diameter of 2 and 5 edges. A round costs 10 links, and waits a slot.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.ddp_mab(1.0, graph="ring"), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="bound")[:, -1] == 10 * data.rounds_made).all())
        True
        >>> bool((data.waiting_regret[:, -1] < 0.01 * data.regret[:, -1]).all())
        True
    """

    name: ClassVar[str] = "ddp"
    title: ClassVar[str] = "DDP-MAB"
    heard: ClassVar[str] = "agents flood a graph (GIS), or gossip, and wait"
    trusted: ClassVar[str] = (
        "nobody, up to the epsilon of a message; in un-noised waits, whoever sees actions"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "--graph ring star complete",
        "--graph regular-4 --agents 100 --horizon 1e6 --log-time",
        "--graph friends.graphml --agents 12 --spread 1",
        "--graph ring --protocol gis flooding gossip --agents 20",
    )

    graph: Any = graph_parameter("complete")
    protocol: str = parameter(
        Choice(options=PROTOCOLS),
        "How means travel: the paper's GIS, plain flooding, or gossip to a tolerance.",
        default="gis",
        remedy="'gis' is the paper's",
        symbol="protocol",
        label="protocol",
    )
    tolerance: float = parameter(
        Real(low=0.0, high=1.0, open_low=True, open_high=True),
        "How far gossip may end from the mean, of the messages' range; for gossip only.",
        default=1e-3,
        remedy="give a part of the messages' range, such as 0.001",
        symbol="tolerance",
        label="tolerance of gossip",
    )

    def settings(self) -> dict[str, str]:
        """Returns the words for what is not the default; without gossip there is no tolerance."""
        found = super().settings()
        if self.protocol != "gossip":
            found.pop("tolerance", None)
        return found

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of the protocol on the graph."""
        # What has no effect must not have a table of its own.
        tolerance = self.tolerance if self.protocol == "gossip" else 0.0
        return _table(self.graph, agents, self.protocol, tolerance)


@functools.lru_cache(maxsize=256)
def _table(graph: Any, agents: int, protocol: str, tolerance: float) -> Exchange:
    """Works out hop distances, or gossip, once for each graph, not for each epsilon."""
    if isinstance(graph, str):
        # A million agents of a graph that is refused afterwards are a gigabyte.
        refuse_too_far(agents, graph)
    over = network(graph, agents)
    if protocol == "gossip":
        return exchanges.gossip(over, tolerance)
    return exchanges.flooding(over) if protocol == "gis" else exchanges.plain_flooding(over)
