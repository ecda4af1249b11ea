"""Draws from Beta laws whose parameters are at least 1, by rejection: as many tries as it takes."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.slots import Slot
from fmab_jax.core import keys, normal
from fmab_jax.core.rare import anywhere
from fmab_jax.core.shapes import PerRowArm


def drawn(slot: Slot, ones: PerRowArm, zeros: PerRowArm) -> PerRowArm:
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
