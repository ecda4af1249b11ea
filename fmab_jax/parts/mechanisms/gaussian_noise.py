"""Gaussian noise, with the analytic calibration."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.sampling import normal
from fmab_jax.sampling.keys import Words, uniform
from fmab_jax.sampling.shapes import Bits, Reals


@dataclass(frozen=True)
class GaussianNoise(Mechanism):
    """Normal noise, whose scale is its standard deviation.

    Source: Balle and Wang, "Improving the Gaussian mechanism" (ICML 2018), theorem 8; Dong, Roth
    and Su, "Gaussian differential privacy" (arXiv 1905.02383), theorem 2.7; Bun and Steinke (TCC
    2016), proposition 1.6.
    """

    name = "gaussian"
    title = "Gaussian"
    scales = True
    nested = True
    pure = False
    source = "Balle and Wang, ICML 2018, theorem 8"

    def sample(self, words: Words, lane: Bits, scale: Reals, draw: int | Bits = 0) -> Reals:
        """Samples by inversion."""
        return scale * normal.quantile(uniform(*words, lane, draw))

    def sample_sum(self, words: Words, lane: Bits, scale: Reals, count: Reals) -> Reals:
        """Samples the sum, which is normal."""
        return jnp.sqrt(count.astype(jnp.float64)) * self.sample(words, lane, scale)

    def log_mgf(self, tilt: Reals, scale: Reals) -> Reals:
        """Returns tilt^2 scale^2 / 2."""
        product = tilt * scale
        return 0.5 * product * product

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns the epsilon of the analytic Gaussian mechanism; infinity for delta = 0."""
        return gaussian_epsilon(self.gdp(scale, count), delta)

    def zcdp(self, scale: float, count: int) -> float:
        """Returns mu^2 / 2."""
        return 0.5 * self.gdp(scale, count) ** 2

    def gdp(self, scale: float, count: int) -> float:
        """Returns 1 / (scale sqrt(count))."""
        return 1.0 / (scale * math.sqrt(count))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Returns the delta of mu-GDP at an epsilon, which is exact for Gaussian noise.

    Source: Balle and Wang (ICML 2018), theorem 8; Dong et al., corollary 2.13.
    """
    from scipy.special import log_ndtr

    above = log_ndtr(0.5 * mu - epsilon / mu)
    below = epsilon + log_ndtr(-0.5 * mu - epsilon / mu)
    # The difference of two close numbers, without losing the digits of a small one.
    return float(-math.exp(above) * math.expm1(min(below - above, 0.0)))


@functools.lru_cache(maxsize=4096)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Returns the smallest epsilon of mu-GDP at delta; infinity for delta = 0."""
    from scipy.optimize import brentq

    if mu == 0.0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta == 0.0 or math.isinf(mu):
        return math.inf
    high = mu * (0.5 * mu + math.sqrt(-2.0 * math.log(delta)) + 1.0)
    # Where neighbouring epsilons are too far apart for delta, the upper end holds.
    if mu > 1e6 or not gaussian_delta(mu, high) < delta:
        return high
    return float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-13 * high))
