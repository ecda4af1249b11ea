"""DDP-MAB: agents flood their means over a graph with GIS and wait (Algorithms 2 and 3)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from fmab_jax.algorithms.families.paper import PaperWaiting
from fmab_jax.core import exchanges
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.networks import GraphOf, network
from fmab_jax.parameters import parameter


@dataclass(frozen=True)
class DDP(PaperWaiting):
    """Decentralised: agents flood their means over a graph.

    Attributes:
        graph: A networkx graph, a name such as "ring", or a file; see `fmab_jax.core.graphs.make`.
    """

    name: ClassVar[str] = "ddp"
    title: ClassVar[str] = "DDP-MAB"
    heard: ClassVar[str] = "agents flood a graph (GIS) and wait"
    trusted: ClassVar[str] = "nobody: every message is noisy"
    examples: ClassVar[tuple[str, ...]] = (
        "--graph ring star complete",
        "--graph regular-4 --agents 100 --horizon 1e6 --log-time",
        "--graph friends.graphml --agents 12 --spread 1",
    )

    graph: Any = parameter(
        GraphOf(),
        "complete, star, ring, path, grid, regular-D, random[-P], preferential[-m], or a file: "
        ".txt, .edgelist, .csv or .graphml.",
        default="complete",
        keyword=False,
        symbol="",
        label="graph",
    )

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of flooding the graph."""
        return _flooding(self.graph, agents)


@functools.lru_cache(maxsize=256)
def _flooding(graph: Any, agents: int) -> Exchange:
    """Works out hop distances once for each graph, not for each epsilon."""
    return exchanges.flooding(network(graph, agents))
