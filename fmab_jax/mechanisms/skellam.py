"""Skellam noise: whole numbers whose sums have the same law, for secure sums of integers."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fmab_jax.core.keys import Words
from fmab_jax.core.shapes import Bits, Reals, Scalar
from fmab_jax.mechanisms import lattice
from fmab_jax.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Skellam(Mechanism):
    """The difference of two Poisson variables; the scale is its standard deviation.

    For rewards that are whole numbers, such as Bernoulli ones. A sum of noises is Skellam again.

    Source: Agarwal, Kairouz and Liu (NeurIPS 2021) propose it; the (epsilon, delta) here is
    computed from the law itself.
    """

    name = "skellam"
    title = "Skellam"
    pure = False
    source = "own computation, from the law"
    step = 1.0

    def sample(self, words: Words, lane: Bits, scale: Scalar, draw: int | Bits = 0) -> Reals:
        """Samples two Poisson variables."""
        half, first = 0.5 * scale * scale, 2 * jnp.asarray(draw, jnp.uint32)
        up = lattice.poisson(words, lane, first, half)
        return up - lattice.poisson(words, lane, first + 1, half)

    def sample_sum(self, words: Words, lane: Bits, scale: Scalar, count: Reals) -> Reals:
        """Samples the sum, which is Skellam."""
        return self.sample(words, lane, scale * jnp.sqrt(count))

    def log_mgf(self, tilt: Reals, scale: Scalar) -> Reals:
        """Returns scale^2 (cosh(tilt) - 1)."""
        half = jnp.sinh(0.5 * tilt)
        return 2.0 * scale * scale * half * half

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns Bernstein's bound for jumps of size 1."""
        third = level / 3.0
        return third + jnp.sqrt(third * third + 2.0 * count * level * scale * scale)

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns the epsilon at delta, from the law of the sum; infinity for delta = 0."""
        return lattice.epsilon_of(_law(scale * math.sqrt(count)), 1, delta, math.inf)


@functools.lru_cache(maxsize=256)
def _law(deviation: float) -> np.ndarray:
    return lattice.law_of_sum(
        lambda frequency: np.exp(-2.0 * (deviation * np.sin(0.5 * frequency)) ** 2), deviation
    )
