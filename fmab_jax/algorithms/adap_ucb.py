"""AdaP-UCB: one agent's private UCB in episodes that double, each released once with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fmab_jax.algorithms.base import Seen
from fmab_jax.algorithms.families.index import IndexPolicy, Own, Slot, at, first_best
from fmab_jax.algorithms.families.private import Private
from fmab_jax.core import laplace
from fmab_jax.core.exchanges import Exchange
from fmab_jax.parameters import Real, parameter


class Episodes(NamedTuple):
    """What an agent knows of each arm, and the episode that it is in.

    Attributes:
        pulls: Of each arm, ever.
        mean: Noisy mean of the arm's last episode that is over.
        length: Pulls of that episode; 0 for none.
        arm: That is pulled in this episode.
        left: Pulls of it still to come.
        total: Sum of its rewards.
    """

    pulls: Float[Array, "agent arm"]
    mean: Float[Array, "agent arm"]
    length: Float[Array, "agent arm"]
    arm: Int[Array, " agent"]
    left: Float[Array, " agent"]
    total: Float[Array, " agent"]


@dataclass(frozen=True)
class AdaPUCB(Private, IndexPolicy):
    """AdaP-UCB: the arm of the largest index is pulled until its pulls have doubled.

    Only the mean of the arm's last episode is known, plus Laplace noise of scale 1 / (epsilon
    length): episodes are disjoint, so one variable each is enough. With h the length of that
    episode, the index is mean + sqrt(alpha log(2 t) / (2 h)) + alpha log(t) / (epsilon h), t the
    first slot of the new episode. Every agent is alone.

    Attributes:
        epsilon: Privacy of an agent's actions, for one changed reward; None for no noise.
        alpha: Of the index; 3.1 is the authors'.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.adap_ucb(0.5), agents=5):
        ...     print(row.who, row.epsilon)
        anybody who sees actions 0.5
    """

    name: ClassVar[str] = "adap_ucb"
    title: ClassVar[str] = "AdaP-UCB"
    source: ClassVar[str] = "Azize and Basu, NeurIPS 2022, arXiv 2209.02570"
    heard: ClassVar[str] = "nobody: each agent alone"
    trusted: ClassVar[str] = "nobody: no message is sent"

    alpha: float = parameter(Real(low=0.0), "Of the index.", default=3.1)

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Covers actions: an episode's rewards are released once, and then forgotten."""
        why = "episodes are disjoint data, each with one noise"
        return (self.seen(why, over=1, source=self.source),)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns epsilon and alpha."""
        return {"epsilon": self.noise_level, "alpha": self.alpha}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, own: Own) -> Episodes:
        """Returns the state of agents that know nothing."""
        none, zero = jnp.zeros((rows, arms)), jnp.zeros(rows)
        return Episodes(none, none, none, zero.astype(jnp.int32), zero, zero)

    @staticmethod
    def choose(state: Episodes, slot: Slot, own: Own) -> Int[Array, " agent"]:
        """Returns the episode's arm; between episodes, the one of the largest index."""
        length = jnp.maximum(state.length, 1.0)
        width = jnp.sqrt(own["alpha"] * jnp.log(2.0 * slot.time) / (2.0 * length))
        private = own["alpha"] * jnp.log(slot.time) / (own["epsilon"] * length)
        index = jnp.where(state.length > 0.0, state.mean + width + private, jnp.inf)
        return jnp.where(state.left > 0.0, state.arm, first_best(index))

    @staticmethod
    def update(
        state: Episodes,
        pulls: Float[Array, "agent arm"],
        rewards: Float[Array, "agent arm"],
        slot: Slot,
        own: Own,
    ) -> Episodes:
        """Counts; an episode that is over is released, with noise."""
        new = state.left == 0.0
        arm = first_best(pulls)
        # The arm's pulls double: as many as there were, and one of an arm that had none.
        left = jnp.where(new, jnp.maximum(at(state.pulls, arm), 1.0), state.left) - 1.0
        total = jnp.where(new, 0.0, state.total) + jnp.sum(rewards, axis=1)
        length = jnp.maximum(0.5 * at(state.pulls + pulls, arm), 1.0)
        uniform = slot.uniform(len(arm))[:, 0]
        noise = laplace.quantile(uniform) / own["epsilon"]
        over = (left == 0.0)[:, None] & (pulls > 0.0)
        return Episodes(
            pulls=state.pulls + pulls,
            mean=jnp.where(over, ((total + noise) / length)[:, None], state.mean),
            length=jnp.where(over, length[:, None], state.length),
            arm=arm,
            left=left,
            total=total,
        )
