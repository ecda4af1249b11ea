"""Index policies whose agents communicate through a server in every slot, or with neighbours."""

from __future__ import annotations

import jax.numpy as jnp

from fmab_jax.algorithms.base import noiseless_ledger
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.slots import Params, Slot, State
from fmab_jax.lazy_imports import nx
from fmab_jax.parameters import Flag, parameter
from fmab_jax.parts.exchanges import PEER, Exchange, alone, neighbours, pooled
from fmab_jax.parts.networks import network
from fmab_jax.sampling.shapes import Integer, Truth, TruthPerRowArm


def pooled_parameter(words: str = "A server pools all rewards in every slot.") -> bool:
    """Returns the parameter of a `Pooled` policy."""
    return parameter(Flag(), words, default=False)


class Pooled(IndexPolicy):
    """Each agent is alone; or, with the parameter ``pooled``, one row stands for all of them.

    Pooled, a server hears every reward, and sends all agents the arm to pull.
    """

    communication = "nobody, or pooled: a server hears all agents in every slot"
    trusted = "pooled: the server, with every reward"
    ledger = noiseless_ledger

    pooled: bool

    @property
    def shared(self) -> bool:
        """As `pooled` says."""
        return self.pooled

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a server that hears all agents, or of agents alone."""
        return pooled(agents) if self.pooled else alone(agents)

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the number of agents that report; each sends one message."""
        return exchange.reporting

    @staticmethod
    def due(state: State, slot: Slot, params: Params) -> Truth:
        """Tells whether there is a server, which hears every slot."""
        return jnp.asarray(params["pooled"]) > 0.0


class OnGraph(IndexPolicy):
    """Agents communicate with their neighbours on ``graph``; None stands for no graph."""

    ledger = noiseless_ledger
    graph: object

    def network(self, agents: int) -> nx.Graph | None:
        """Returns the graph, or None."""
        return None if self.graph is None else network(self.graph, agents)

    def edges(self, agents: int) -> int:
        """Returns the number of edges; without a graph, that of a complete graph."""
        graph = self.network(agents)
        return agents * (agents - 1) // 2 if graph is None else graph.number_of_edges()

    @staticmethod
    def due(state: State, slot: Slot, params: Params) -> Truth:
        """Tells whether every arm was pulled before this slot."""
        return slot.time > slot.arms


class Consensus(OnGraph):
    """Policies whose edges carry two vectors each way: sums or means, and counts."""

    communication = "all neighbours in every slot"
    homogeneous_only = True
    counts_edges = True

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of one two-way message on every edge."""
        edges = self.edges(agents)
        return neighbours("consensus", agents, ((PEER, edges),), vectors=4 * edges)

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the number of edges of the graph."""
        return exchange.on(PEER.name)


class Recommending(OnGraph):
    """Policies whose messages are names of arms."""

    homogeneous_only = True

    def number_bits(self, arms: int) -> int:
        """Returns the bits of an arm's name."""
        return max(1, (arms - 1).bit_length())


def share_out(rows: int, arms: int, count: Integer) -> TruthPerRowArm:
    """Returns a mask of each agent's ``count`` arms, which follow those of the agent before."""
    first = jnp.arange(rows, dtype=jnp.int32) * count
    return (jnp.arange(arms, dtype=jnp.int32)[None, :] - first[:, None]) % arms < count
