"""Lazy-DP-TS: private Thompson sampling on the last buffer of each arm; buffers double."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.families.slots import Params, Slot, first_best
from fmab_jax.core import keys, laplace, normal
from fmab_jax.core.rare import anywhere
from fmab_jax.core.shapes import ArmPerRow, PerRowArm


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
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "lazy_dp_ts"
    title = "Lazy-DP-TS"
    source = "Hu and Hegde, UAI 2022"
    heard = "nobody: each agent alone"
    trusted = "nobody: no message is sent"
    disjoint = "buffers are disjoint data, each with one noise; draws follow from their means"

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> Buffers:
        """Returns the state of agents that know nothing."""
        return Buffers(*(jnp.zeros((rows, arms)),) * 4)

    @staticmethod
    def choose(state: Buffers, slot: Slot, params: Params) -> ArmPerRow:
        """Returns the arm of the largest draw; arms that were never pulled come first."""
        private = 3.0 * jnp.log(slot.time) / (params["epsilon"] * jnp.maximum(state.released, 1.0))
        mean = jnp.clip(state.mean + private, 0.0, 1.0)
        draw = draw_beta(slot, mean * state.released, (1.0 - mean) * state.released)
        return first_best(jnp.where(state.released > 0.0, draw, jnp.inf))

    @staticmethod
    def update(
        state: Buffers, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> Buffers:
        """Holds the reward back; a buffer that is full is released, with noise."""
        size = jnp.maximum(2.0 * state.released, 1.0)
        # Buffers of 1, 2, ..., O rewards were pulled for before: 2 O - 1 of them.
        full = (pulls > 0.0) & (state.pulls + pulls == 2.0 * size - 1.0)
        held = state.held + rewards
        noise = laplace.quantile(slot.uniform(len(pulls))) / params["epsilon"]
        return Buffers(
            pulls=state.pulls + pulls,
            released=jnp.where(full, size, state.released),
            mean=jnp.where(full, (held + noise) / size, state.mean),
            held=jnp.where(full, 0.0, held),
        )


def draw_beta(slot: Slot, ones: PerRowArm, zeros: PerRowArm) -> PerRowArm:
    """Returns draws from Beta(1 + ones, 1 + zeros): exact, and the same if asked twice in a slot.

    Cheng's algorithm BB (Communications of the ACM 21(4), 1978), of which two tries in three are
    kept at worst. Try n of a lane has its numbers 2 n and 2 n + 1, whoever else still tries.

    Args:
        slot: Whose random numbers are taken.
        ones: At least 0.
        zeros: At least 0.
    """
    rows, width = ones.shape
    lane = keys.lanes(rows, jnp.arange(width, dtype=jnp.uint32), width)
    words = slot.own_words()
    both = ones + zeros
    least, most = 1.0 + jnp.minimum(ones, zeros), 1.0 + jnp.maximum(ones, zeros)
    # The rate of a logistic variable whose tails are those of the log odds.
    rate = jnp.sqrt(1.0 + 2.0 * ones * zeros / jnp.maximum(both, 1e-300))

    def attempt(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, odds, kept = carry
        first = keys.uniform(*words, lane, 2 * number)
        second = keys.uniform(*words, lane, 2 * number + 1)
        logistic = (normal.log(first) - normal.log(1.0 - first)) / rate
        tried = least * jnp.exp(logistic)
        far = (2.0 + both) * normal.log((2.0 + both) / (most + tried))
        level = (least + rate) * logistic - math.log(4.0) + far
        good = level >= normal.log(first * first * second)
        return number + 1, jnp.where(good & ~kept, tried, odds), kept | good

    start = (jnp.uint32(0), jnp.zeros(ones.shape), jnp.zeros(ones.shape, bool))
    odds = lax.while_loop(lambda carry: anywhere(jnp.any(~carry[2])), attempt, start)[1]
    return jnp.where(ones <= zeros, odds, most) / (most + odds)
