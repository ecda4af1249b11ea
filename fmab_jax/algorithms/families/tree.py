"""The binary mechanism: one noise for each dyadic block of a stream, in the sum that is released.

The sum of the first n numbers of a stream is that of the blocks of n's binary expansion: of 13, the
numbers 1-8, 9-12 and 13. Each block's sum has its own noise, drawn once: a number lies in few
blocks, and few of them make up a sum (Chan, Shi and Song, TISSEC 2011; Dwork et al., STOC 2010).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.slots import Slot
from fmab_jax.core import laplace
from fmab_jax.core.rare import anywhere
from fmab_jax.core.shapes import ArmPerRow, PerRow, Scalar


def levels(horizon: Scalar) -> Scalar:
    """Returns ceil(log2(T + 1)): how many blocks hold the first of T numbers, the most of any."""
    # By leading zeros: a logarithm of a power of two may be off by a rounding.
    return (32 - lax.clz(horizon.astype(jnp.int32))).astype(jnp.float64)


def noise(slot: Slot, arm: ArmPerRow, count: PerRow, arms: int) -> PerRow:
    """Returns the noise of the sum of each agent's first rewards from an arm of its own.

    A block's Laplace(0, 1) variable belongs to (agent, arm, last number of the block), which no
    other block of the arm shares. So it is drawn again whenever it is needed, and is the same.

    Args:
        slot: Of which only the lasting numbers are used.
        arm: Of each agent.
        count: n, how many of its rewards are summed, < 2^31.
        arms: K.
    """
    agent = jnp.arange(arm.shape[0], dtype=jnp.uint32)
    lane = agent * jnp.uint32(arms) + arm.astype(jnp.uint32)

    def add(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        last, total = carry
        variable = laplace.quantile(slot.lasting(lane, last))
        # The lowest bit is the length of the block; what is left ends where it begins.
        return last & (last - jnp.uint32(1)), total + jnp.where(last > 0, variable, 0.0)

    start = (count.astype(jnp.uint32), jnp.zeros(arm.shape))
    # The agent with most blocks decides how many rounds; they add nothing to the others.
    return lax.while_loop(lambda carry: anywhere(jnp.any(carry[0] > 0)), add, start)[1]
