"""Lazy-DP-TS: private Thompson sampling on the last buffer of each arm; buffers double."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families import beta
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.families.slots import ArmPerRow, Own, Slot, first_best
from fmab_jax.core import laplace
from fmab_jax.core.shapes import PerRowArm


class Buffers(NamedTuple):
    """An agent's state, by arm, and what it holds back.

    Attributes:
        pulls: Of each arm, ever.
        released: O, rewards of the last buffer that was released: a power of two; 0 for none.
        mean: Noisy mean of these.
        held: Sum of the rewards since.
    """

    pulls: PerRowArm
    released: PerRowArm
    mean: PerRowArm
    held: PerRowArm


@dataclass(frozen=True)
class LazyDPTS(Private, IndexPolicy):
    """Lazy-DP-TS: the largest of draws from Beta(m O + 1, (1 - m) O + 1), anew in every slot.

    Every arm is pulled once. Its rewards are held back until there are twice as many as the last
    time, O = 1, 2, 4, ...; then their mean is released with Laplace noise of scale 1 / (epsilon O),
    and those before are forgotten. m = mean + 3 log(t) / (epsilon O), cut to [0, 1]. Every agent is
    alone.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.lazy_dp_ts(0.5), agents=5):
        ...     print(row.who, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "lazy_dp_ts"
    title = "Lazy-DP-TS"
    source = "Hu and Hegde, UAI 2022"
    heard = "nobody: each agent alone"
    trusted = "nobody: no message is sent"
    disjoint = "buffers are disjoint data, each with one noise; draws follow from their means"

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, own: Own) -> Buffers:
        """Returns the state of agents that know nothing."""
        return Buffers(*(jnp.zeros((rows, arms)),) * 4)

    @staticmethod
    def choose(state: Buffers, slot: Slot, own: Own) -> ArmPerRow:
        """Returns the arm of the largest draw; arms that were never pulled come first."""
        private = 3.0 * jnp.log(slot.time) / (own["epsilon"] * jnp.maximum(state.released, 1.0))
        mean = jnp.clip(state.mean + private, 0.0, 1.0)
        draw = beta.drawn(slot, mean * state.released, (1.0 - mean) * state.released)
        return first_best(jnp.where(state.released > 0.0, draw, jnp.inf))

    @staticmethod
    def update(
        state: Buffers, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, own: Own
    ) -> Buffers:
        """Holds the reward back; a buffer that is full is released, with noise."""
        size = jnp.maximum(2.0 * state.released, 1.0)
        # Buffers of 1, 2, ..., O rewards were pulled for before: 2 O - 1 of them.
        full = (pulls > 0.0) & (state.pulls + pulls == 2.0 * size - 1.0)
        held = state.held + rewards
        noise = laplace.quantile(slot.uniform(len(pulls))) / own["epsilon"]
        return Buffers(
            pulls=state.pulls + pulls,
            released=jnp.where(full, size, state.released),
            mean=jnp.where(full, (held + noise) / size, state.mean),
            held=jnp.where(full, 0.0, held),
        )
