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
from fmab_jax.sampling import keys, laplace, normal
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm


class Buffers(NamedTuple):
    """An agent's state, by arm, with the rewards that it has not released.

    Attributes:
        pulls: Pulls of each arm in the whole run.
        released: O, rewards of the last released buffer: a power of two; 0 before the first.
        mean: Noisy mean of that buffer.
        pending_sum: Sum of the rewards since that release.
    """

    pulls: PerRowArm
    released: PerRowArm
    mean: PerRowArm
    pending_sum: PerRowArm


@dataclass(frozen=True)
class LazyDPTS(Private, IndexPolicy):
    """Lazy-DP-TS: the largest of draws from Beta(m O + 1, (1 - m) O + 1), anew in every slot.

    Every arm is pulled once. A buffer collects its rewards until there are twice as many as in the
    last one, O = 1, 2, 4, ...; then the agent releases their mean with Laplace noise of scale 1 /
    (epsilon O), and forgets earlier buffers. m = mean + 3 log(t) / (epsilon O), cut to [0, 1].
    Every agent is alone.

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
    communication = "nobody: each agent alone"
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
        """Adds the reward to the buffer; releases a full buffer with noise."""
        size = jnp.maximum(2.0 * state.released, 1.0)
        # Earlier buffers had 1, 2, ..., O rewards: 2 O - 1 in all.
        full = (pulls > 0.0) & (state.pulls + pulls == 2.0 * size - 1.0)
        pending_sum = state.pending_sum + rewards
        noise = laplace.quantile(slot.uniform(len(pulls))) / params["epsilon"]
        return Buffers(
            pulls=state.pulls + pulls,
            released=jnp.where(full, size, state.released),
            mean=jnp.where(full, (pending_sum + noise) / size, state.mean),
            pending_sum=jnp.where(full, 0.0, pending_sum),
        )


def draw_beta(slot: Slot, ones: PerRowArm, zeros: PerRowArm) -> PerRowArm:
    """Returns draws from Beta(1 + ones, 1 + zeros): exact, and the same if asked twice in a slot.

    Cheng's algorithm BB (Communications of the ACM 21(4), 1978) accepts at least two tries in
    three. Try n of a lane uses its numbers 2 n and 2 n + 1, so lanes do not depend on each other.

    Args:
        slot: The slot, for its random numbers.
        ones: At least 0.
        zeros: At least 0.
    """
    rows, width = ones.shape
    lane = keys.lanes(rows, jnp.arange(width, dtype=jnp.uint32), width)
    words = slot.own_words()
    total = ones + zeros
    least, most = 1.0 + jnp.minimum(ones, zeros), 1.0 + jnp.maximum(ones, zeros)
    # A logistic variable of this rate has the tails of the log odds.
    rate = jnp.sqrt(1.0 + 2.0 * ones * zeros / jnp.maximum(total, 1e-300))

    def attempt(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, odds, accepted = carry
        first = keys.uniform(*words, lane, 2 * number)
        second = keys.uniform(*words, lane, 2 * number + 1)
        logistic = (normal.log(first) - normal.log(1.0 - first)) / rate
        candidate = least * jnp.exp(logistic)
        tail = (2.0 + total) * normal.log((2.0 + total) / (most + candidate))
        level = (least + rate) * logistic - math.log(4.0) + tail
        good = level >= normal.log(first * first * second)
        return number + 1, jnp.where(good & ~accepted, candidate, odds), accepted | good

    start = (jnp.uint32(0), jnp.zeros(ones.shape), jnp.zeros(ones.shape, bool))
    odds = lax.while_loop(lambda carry: anywhere(jnp.any(~carry[2])), attempt, start)[1]
    return jnp.where(ones <= zeros, odds, most) / (most + odds)
