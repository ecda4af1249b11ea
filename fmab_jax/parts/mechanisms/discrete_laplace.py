"""Discrete Laplace noise: whole numbers, whose digits tell no rewards apart."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from fmab_jax.parts.mechanisms.lattice_sums import (
    DROP,
    MOST_RATIOS,
    Tails,
    find_epsilon,
    find_reach,
    invert,
    is_smooth,
    recur,
)
from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.sampling import normal, samplers
from fmab_jax.sampling.binomials import binomials
from fmab_jax.sampling.keys import Words, uniform
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.rare import where_any
from fmab_jax.sampling.shapes import Bits, Reals, Scalar

# Wide sums of up to so many noises have tails by a mixture of negative binomial laws.
_MOST_MIXED = 32
# Largest level whose hyperbolic sines are computed.
_MOST_LEVEL = 700.0


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Whole numbers k with probability proportional to e^(-|k| / scale); leaks 1 / scale.

    Source: Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms"
    (STOC 2009); Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy"
    (NeurIPS 2020). Sums: computed from their law, which is log-concave.
    """

    name = "discrete_laplace"
    title = "discrete Laplace"
    source = "Ghosh et al., STOC 2009"
    integers = True

    def sample(self, words: Words, lane: Bits, scale: Reals, draw: int | Bits = 0) -> Reals:
        """Samples by inversion: P(k >= n) = q^n / (1 + q), q = e^(-1 / scale)."""
        u = uniform(*words, lane, draw)
        tail = jnp.minimum(u, 1.0 - u)
        far = -scale * (normal.log(tail) + jnp.log1p(jnp.exp(-1.0 / scale)))
        size = jnp.maximum(jnp.floor(far), 0.0)
        return jnp.where(u < 0.5, -size, size)

    def sample_sum(self, words: Words, lane: Bits, scale: Reals, count: Reals) -> Reals:
        """Samples from cumulants where these decide, else the noises that are not 0."""
        shape = jnp.broadcast_shapes(lane.shape, count.shape)
        lane = jnp.broadcast_to(lane, shape)
        count = jnp.broadcast_to(count.astype(jnp.float64), shape)
        cumulants = [count * x for x in _get_cumulants(scale)]
        smooth = is_smooth(cumulants)
        guess = samplers.lattice_quantile(uniform(*words, lane), cumulants)
        small_count = jnp.where(smooth, 0.0, count)
        guess = jnp.where(smooth, guess, 0.0)
        return where_any(small_count > 0.0, _add_noises, guess, *words, lane, scale, small_count)

    def log_mgf(self, tilt: Reals, scale: Reals) -> Reals:
        """Returns -log(1 - sinh^2(tilt / 2) sinh^-2(1 / (2 scale)))."""
        level, size = 1.0 / scale, jnp.abs(tilt)
        # The ratio of hyperbolic sines, which may be infinite.
        ratio = jnp.exp(0.5 * (size - level)) * (jnp.expm1(-size) / jnp.expm1(-level))
        return -jnp.log1p(-ratio * ratio)

    def farthest_tilt(self, scale: Reals) -> Reals:
        """Returns 1 / scale."""
        return 1.0 / scale

    def variance(self, scale: Reals) -> Reals:
        """Returns 2 q / (1 - q)^2, q = e^(-1 / scale)."""
        return _get_cumulants(scale)[1]

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns scale (2 sqrt(count level) + level), a bound of Laplace noise as well.

        That noise has a moment-generating function that is nowhere smaller. The paper's deviation
        of Laplace noise, scale sqrt(8 count level), is another one.

        Source: Boucheron, Lugosi and Massart (2013), section 2.4, for sub-gamma variables.
        """
        return scale * (2.0 * jnp.sqrt(count * level) + level)

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns 1 / scale, or less up to delta."""
        level = 1.0 / scale
        return level if delta == 0.0 else min(level, _compute_epsilon(level, count, delta))

    def scale(self, epsilon: float, delta: float) -> float:
        """Returns 1 / epsilon."""
        return 1.0 / epsilon if epsilon < math.inf else 0.0


def _get_cumulants(scale: Scalar) -> tuple[Array, ...]:
    """Returns six cumulants of one noise."""
    q, success = jnp.exp(-1.0 / scale), -jnp.expm1(-1.0 / scale)
    second = 2.0 * q / (success * success)
    square = 1.0 / (success * success)
    zero = jnp.zeros_like(second)
    fourth = second * square * (1.0 + q * (4.0 + q))
    sixth = second * square * square * (1.0 + q * (26.0 + q * (66.0 + q * (26.0 + q))))
    return zero, second, zero, fourth, zero, sixth


def _add_noises(k0: Array, k1: Array, lane: Bits, scale: Scalar, count: Reals) -> Reals:
    """Returns sums of ``count`` noises: a binomial number of them are not 0."""
    words, q = Words(k0, k1), jnp.exp(-1.0 / scale)
    left = binomials(words, lane, count, 2.0 * q / (1.0 + q), 1)

    def add(state: tuple[Array, Array]) -> tuple[Array, Array]:
        draw, total = state
        u = uniform(k0, k1, lane, draw + 2)
        size = 1.0 + jnp.floor(-scale * normal.log(2.0 * jnp.minimum(u, 1.0 - u)))
        noise = jnp.where(u < 0.5, -size, size)
        return draw + 1, total + jnp.where(draw.astype(jnp.float64) < left, noise, 0.0)

    def is_short(state: tuple[Array, Array]) -> Array:
        return anywhere(jnp.any(state[0].astype(jnp.float64) < left))

    return lax.while_loop(is_short, add, (jnp.uint32(0), jnp.zeros(left.shape)))[1]


@functools.lru_cache(maxsize=4096)
def _compute_epsilon(level: float, count: int, delta: float) -> float:
    """Returns the epsilon of a sum of noises of scale 1 / level, at delta > 0."""
    # The divergence at 0 is the chance of 0, which is largest of one noise.
    if math.tanh(0.5 * level) <= delta:
        return 0.0
    half = math.sinh(0.5 * min(level, _MOST_LEVEL))

    def find_tilt(value: float) -> float:
        return 2.0 * math.asinh(half * math.sqrt(-math.expm1(-value / count)))

    reach = find_reach(find_tilt, delta)
    if reach <= MOST_RATIOS:
        law = _recur(level, count, reach)
    else:
        law = mix(level, count) if count <= _MOST_MIXED else _invert(level, count)
    return find_epsilon(law, delta)


def _recur(level: float, count: int, reach: int) -> Tails:
    """Returns the tails of a sum that is not wide."""
    # By the differential equation of the generating function of `mix`.
    q, t = math.exp(-level), np.arange(1.0, reach + 1.0)
    return recur(-level, t + (count - 1.0), (1.0 + q * q) * t, q * q * (count - 1.0 - t), 1.0)


def mix(level: float, count: int) -> Tails:
    """Returns the tails of a sum of few noises, however wide.

    Above 0 the law is a mixture of negative binomial laws of 1, ..., count successes, by partial
    fractions of its generating function ((1 - q)^2 / (1 - q z) / (1 - q / z))^count. And one of m
    successes is t or more where there are fewer than m before failure t.
    """
    from scipy.special import gammaln, logsumexp

    success = math.log(-math.expm1(-level))
    square = math.log(-math.expm1(-2.0 * level))
    terms, powers = np.arange(1.0, count + 1.0), np.arange(count)

    def choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    # Coefficients of y^power in (1 + q^2 / (square - y))^count, y = 1 - q z.
    parts = choose(count, terms) - terms * (2.0 * level + square)
    late = choose(terms[:, None] + powers - 1.0, powers) - powers * square
    coefficients = logsumexp(parts[:, None] + late, axis=0)
    coefficients[0] = np.logaddexp(0.0, coefficients[0])
    # By successes less 1: of so many, and of so many or more.
    exact = coefficients[::-1] + 2.0 * count * success
    more = np.logaddexp.accumulate(coefficients + (count + powers) * success)[::-1]
    more += powers * success

    def add(t: Any, weight: np.ndarray) -> Any:
        """Returns log q^t sum_m weight_m choose(t + m, m)."""
        ways = np.log1p(np.asarray(t, np.float64)[..., None] / terms[:-1]).cumsum(axis=-1)
        ways = np.concatenate([np.zeros((*ways.shape[:-1], 1)), ways], axis=-1)
        return logsumexp(weight + ways, axis=-1) - level * t

    # By the differential equation of the generating function, at power 1.
    one, two = add(1, exact), add(2, exact)
    first = one + math.log1p(math.exp(-2.0 * level) + (count - 2.0) * math.exp(two - one - level))
    first += level - math.log(count)

    def point(t: Any) -> Any:
        return np.where(np.equal(t, 0), first, add(t, exact))

    def tail(t: Any) -> Any:
        late = np.maximum(t, 1) - 1
        half = math.log1p(math.exp(first)) - math.log(2.0)
        return np.where(np.equal(t, 0), half, add(late, more) - level)

    return Tails(point, tail)


def _invert(level: float, count: int) -> Tails:
    """Returns the tails of a wide sum of many noises."""
    half = math.sinh(0.5 * level)

    def log_mgf(z: Any) -> Any:
        return -count * np.log1p(-((np.sinh(0.5 * z) / half) ** 2))

    def find_tilt(slope: float) -> float:
        far = slope * math.sinh(level)
        near = far * far / (math.hypot(far, count) + count)
        return math.log1p((2.0 * slope * half * half + near) / (count + slope))

    def spread(tilt: float) -> float:
        up, down = -math.expm1(tilt - level), -math.expm1(-tilt - level)
        return count * ((1.0 - up) / up**2 + (1.0 - down) / down**2)

    def find_square(tilt: float) -> float:
        up = -math.expm1(tilt - level)
        return math.expm1(2.0 * DROP / count) * up * up / (4.0 * (1.0 - up))

    return invert(log_mgf, find_tilt, spread, find_square)
