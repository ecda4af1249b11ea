"""LCC-UCB: agents recommend their most played arm to each other after epochs that double."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.families.index import IndexPolicy, Own, Slot, first_best, upper_bound
from fmab_jax.core.exchanges import PEER, Exchange
from fmab_jax.core.exchanges.table import uniform_weights


class Known(NamedTuple):
    """What an agent knows in an epoch, and which arms it plays.

    Attributes:
        pulls: Of each arm, in this epoch.
        sums: Of the rewards.
        sticky: The agent's share of arms.
        recommended: Arms that the others told of last.
        began: Last slot of the epoch before.
    """

    pulls: Float[Array, "agent arm"]
    sums: Float[Array, "agent arm"]
    sticky: Bool[Array, "agent arm"]
    recommended: Bool[Array, "agent arm"]
    began: Float[Array, " agent"]


@dataclass(frozen=True)
class LCCUCB(IndexPolicy):
    """LCC-UCB: fresh UCB1 in each epoch, on ceil(K/M) arms of one's own and M - 1 recommended ones.

    With K' = ceil(K/M) + M - 1, epoch j = 0, 1, ... lasts K' (K' + 1) 2^j slots. Then every agent
    sends the arm that it pulled most to all others: M (M - 1) / 2 two-way links. It is made for
    many more arms than agents. Agents share their means.
    """

    name: ClassVar[str] = "lcc_ucb"
    title: ClassVar[str] = "LCC-UCB"
    source: ClassVar[str] = "Agarwal, Aggarwal and Azizzadenesheli, JMLR 2022, arXiv 2102.08462"
    heard: ClassVar[str] = "all others after each epoch"
    trusted: ClassVar[str] = "all agents, with the arm played most"
    homogeneous_only: ClassVar[bool] = True

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of one message between every two agents."""
        links = ((PEER, agents * (agents - 1) // 2),)
        return Exchange("recommendations", agents, agents, uniform_weights(agents), links=links)

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, own: Own) -> Known:
        """Deals out ceil(K/M) consecutive arms to each agent."""
        count = jnp.ceil(slot.arms / slot.agents).astype(jnp.int32)
        first = jnp.arange(rows, dtype=jnp.int32) * count
        from_first = (jnp.arange(arms, dtype=jnp.int32)[None, :] - first[:, None]) % arms
        none = jnp.zeros((rows, arms))
        return Known(none, none, from_first < count, none > 0.0, jnp.zeros(rows))

    @staticmethod
    def in_play(state: Known) -> Bool[Array, "agent arm"]:
        """Returns the agent's own arms and the recommended ones."""
        return state.sticky | state.recommended

    @staticmethod
    def choose(state: Known, slot: Slot, own: Own) -> Int[Array, " agent"]:
        """Returns argmax mean + sqrt(2 log t / n), all of them of this epoch."""
        index = upper_bound(
            state.pulls, state.sums, 2.0 * jnp.log(slot.time - state.began)[:, None]
        )
        return first_best(jnp.where(LCCUCB.in_play(state), index, -jnp.inf))

    @staticmethod
    def due(slot: Slot, own: Own) -> Bool[Array, ""]:
        """Tells whether an epoch is over: t / (K' (K' + 1)) + 1 is a power of two."""
        most = jnp.ceil(slot.arms / slot.agents) + slot.agents - 1.0
        epochs = slot.time / (most * (most + 1.0)) + 1.0
        fraction, _ = jnp.frexp(epochs)
        return (fraction == 0.5) & (epochs > 1.0)

    @staticmethod
    def communicate(state: Known, slot: Slot, own: Own) -> Known:
        """Every agent takes up the most played arms of all others, and forgets its rewards."""
        rows, arms = state.pulls.shape
        arm = jnp.arange(arms, dtype=jnp.int32)
        real = jnp.arange(rows, dtype=jnp.float64) < slot.agents
        told = (first_best(state.pulls)[:, None] == arm[None, :]) & real[:, None]
        # Of all others: without one's own voice.
        voices = jnp.sum(told, axis=0, dtype=jnp.int32)[None, :] - told.astype(jnp.int32)
        none = jnp.zeros_like(state.pulls)
        return Known(none, none, state.sticky, voices > 0, jnp.full_like(state.began, slot.time))
