"""The binary mechanism: a released sum has one noise for each dyadic block of a stream.

The sum of the first n numbers of a stream is that of the blocks of n's binary expansion: of 13, the
numbers 1-8, 9-12 and 13. Each block's sum has its own noise, drawn once: a number lies in few
blocks, and few of them make up a sum (Chan, Shi and Song, TISSEC 2011; Dwork et al., STOC 2010).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.slots import Slot
from fmab_jax.sampling import laplace
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import ArmPerRow, PerRow, Scalar


def count_levels(horizon: Scalar) -> Scalar:
    """Returns ceil(log2(T + 1)), the largest number of blocks that contain one of T numbers."""
    # Counts leading zeros, because a logarithm of a power of two may be rounded.
    return (32 - lax.clz(horizon.astype(jnp.int32))).astype(jnp.float64)


def draw_noise(slot: Slot, arm: ArmPerRow, count: PerRow, arms: int) -> PerRow:
    """Returns the noise of each agent's sum of the first rewards of one arm.

    A block's Laplace(0, 1) variable depends on (agent, arm, last number of the block), which no
    other block of the arm shares. So every sum draws it again, with the same value.

    Args:
        slot: The slot, for its lasting numbers.
        arm: Arm of each agent.
        count: n, the number of rewards in the sum, < 2^31.
        arms: K.
    """
    agent = jnp.arange(arm.shape[0], dtype=jnp.uint32)
    lane = agent * jnp.uint32(arms) + arm.astype(jnp.uint32)

    def add(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        last, total = carry
        variable = laplace.quantile(slot.lasting(lane, last))
        # The lowest bit is the length of the block; the other bits are the end of the previous one.
        return last & (last - jnp.uint32(1)), total + jnp.where(last > 0, variable, 0.0)

    start = (count.astype(jnp.uint32), jnp.zeros(arm.shape))
    # The agent with most blocks sets the number of steps; other agents add 0.
    return lax.while_loop(lambda carry: anywhere(jnp.any(carry[0] > 0)), add, start)[1]
