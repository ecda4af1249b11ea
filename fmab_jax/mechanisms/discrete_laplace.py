"""Discrete Laplace noise: integers, so that a message has no digits that leak."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fmab_jax.core.keys import Words, uniform
from fmab_jax.core.shapes import Bits, Reals, Scalar
from fmab_jax.mechanisms import lattice
from fmab_jax.mechanisms.base import Mechanism


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Whole numbers k with probability proportional to e^(-|k| / scale).

    For rewards that are whole numbers, such as Bernoulli ones. A message leaks 1 / scale.

    Source: Ghosh, Roughgarden and Sundararajan (STOC 2009), section 2.
    """

    name = "discrete-laplace"
    title = "discrete Laplace"
    source = "Ghosh, Roughgarden and Sundararajan, STOC 2009, section 2"
    step = 1.0

    def sample(self, words: Words, lane: Bits, scale: Scalar, draw: int | Bits = 0) -> Reals:
        """Samples by inversion: P(|k| > n) falls geometrically."""
        u = uniform(*words, lane, draw)
        tail = jnp.minimum(u, 1.0 - u)
        # P(k >= n) = q^n / (1 + q), q = e^(-1 / scale).
        far = -scale * (jnp.log(tail) + jnp.log1p(jnp.exp(-1.0 / scale)))
        size = jnp.maximum(jnp.floor(far), 0.0)
        return jnp.where(u < 0.5, -size, size)

    def sample_sum(self, words: Words, lane: Bits, scale: Scalar, count: Reals) -> Reals:
        """Samples the sum as a difference of two negative binomial variables."""
        return self._difference(words, lane, scale, count)

    def _difference(self, words: Words, lane: Bits, scale: Scalar, count: Reals) -> Reals:
        # A negative binomial variable is Poisson, with a Gamma mean.
        odds = 1.0 / jnp.expm1(1.0 / scale)
        up, down = (
            lattice.poisson(
                words, lane, jnp.uint32(side), odds * self._mean(words, lane, side, count)
            )
            for side in (0, 1)
        )
        return up - down

    @staticmethod
    def _mean(words: Words, lane: Bits, side: int, count: Reals) -> Reals:
        positive = jnp.maximum(count, 1.0)
        mean = lattice.gamma(words, lane, jnp.uint32(2 + side), positive)
        return jnp.where(count > 0.0, mean, 0.0)

    def log_mgf(self, tilt: Reals, scale: Scalar) -> Reals:
        """Returns 2 log(1 - q) - log((1 - q e^tilt) (1 - q e^-tilt)), q = e^(-1 / scale)."""
        inverse = 1.0 / scale
        sides = jnp.log(-jnp.expm1(tilt - inverse)) + jnp.log(-jnp.expm1(-tilt - inverse))
        return 2.0 * jnp.log(-jnp.expm1(-inverse)) - sides

    def farthest_tilt(self, scale: Scalar) -> Scalar:
        """Returns 1 / scale."""
        return 1.0 / scale

    def variance(self, scale: Scalar) -> Scalar:
        """Returns 1 / (2 sinh^2(1 / (2 scale)))."""
        return 0.5 / jnp.sinh(0.5 / scale) ** 2

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns that of Laplace noise of this scale, which has heavier tails."""
        return scale * jnp.sqrt(8.0 * count * level)

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns 1 / scale, or less up to delta where noises add up."""
        pure = 1.0 / scale
        if delta == 0.0:
            return pure
        return lattice.epsilon_of(_law(scale, count), 1, delta, pure)

    def scale(self, epsilon: float, delta: float) -> float:
        """Returns 1 / epsilon."""
        return 1.0 / epsilon


@functools.lru_cache(maxsize=64)
def _law(scale: float, count: int) -> np.ndarray:
    q = math.exp(-1.0 / scale)
    deviation = math.sqrt(2.0 * q * count) / (1.0 - q)

    def characteristic(frequency: np.ndarray) -> np.ndarray:
        log = 2.0 * math.log1p(-q) - np.log1p(q * q - 2.0 * q * np.cos(frequency))
        return np.exp(count * log)

    return lattice.law_of_sum(characteristic, deviation)
