"""Skellam noise: whole numbers whose sums have the same law, for secure sums of integers."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
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
from fmab_jax.sampling import samplers
from fmab_jax.sampling.binomials import binomials
from fmab_jax.sampling.keys import Words, uniform
from fmab_jax.sampling.rare import where_any
from fmab_jax.sampling.shapes import Bits, Reals, Scalar

# Trials of a binomial variable that is Poisson to a total variation of its mean over this.
_TRIALS = 2.0**50
# Largest Renyi order that is computed.
_MOST_ORDER = 400
# An order over the one before, and the number of parts in which they are computed.
_STEP, _PARTS = 1.01, 20
# Largest variance of which they are computed.
_MOST_VARIANCE = 1e7


@dataclass(frozen=True)
class Skellam(Mechanism):
    """The difference of two Poisson variables of mean mu; the scale is sqrt(2 mu), its deviation.

    Source: Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated
    learning" (NeurIPS 2021). Epsilon at delta is computed from the law, which is log-concave.
    """

    name = "skellam"
    title = "Skellam"
    pure = False
    source = "Agarwal et al., NeurIPS 2021; epsilon computed from the law"
    integers = True

    def sample(self, words: Words, lane: Bits, scale: Reals, draw: int | Bits = 0) -> Reals:
        """Samples from cumulants where these decide, else the signs of a Poisson number of jumps.

        Uses draws 3 ``draw`` to 3 ``draw`` + 2 of the lane.
        """
        variance = jnp.broadcast_to(scale * scale, jnp.broadcast_shapes(lane.shape, scale.shape))
        first, zero = 3 * jnp.asarray(draw, jnp.uint32), jnp.zeros_like(variance)
        cumulants = zero, variance, zero, variance, zero, variance
        smooth = is_smooth(cumulants)
        guess = samplers.lattice_quantile(uniform(*words, lane, first), cumulants)
        small_variance = jnp.where(smooth, 0.0, variance)
        guess = jnp.where(smooth, guess, 0.0)
        return where_any(
            small_variance > 0.0, _add_jumps, guess, *words, lane, first, small_variance
        )

    def sample_sum(self, words: Words, lane: Bits, scale: Reals, count: Reals) -> Reals:
        """Samples the sum, which is Skellam."""
        return self.sample(words, lane, scale * jnp.sqrt(count.astype(jnp.float64)))

    def log_mgf(self, tilt: Reals, scale: Reals) -> Reals:
        """Returns scale^2 (cosh(tilt) - 1)."""
        half = scale * jnp.sinh(0.5 * tilt)
        return 2.0 * half * half

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns Bernstein's bound: L / 3 + sqrt(L^2 / 9 + 2 count L scale^2), L the level."""
        third = level / 3.0
        return third + jnp.sqrt(third * third + 2.0 * count * level * scale * scale)

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns the epsilon at delta, from the law of the sum; infinity for delta = 0."""
        return math.inf if delta == 0.0 else _compute_epsilon(scale * scale * count, delta)

    def zcdp(self, scale: float, count: int) -> float:
        """Returns a bound of the Renyi divergence over its order, 1 % above what is computed.

        Orders above 400, and all orders of variances above 1e7, have the bound of Agarwal et al.
        It is about whole orders. A fractional order uses the bound of the next whole order; near
        order 1 this doubles it.
        """
        return _compute_zcdp(scale * scale * count)


def _add_jumps(k0: Array, k1: Array, lane: Bits, first: Bits, variance: Reals) -> Reals:
    """Returns the sum of a Poisson number of jumps by 1 or -1."""
    words = Words(k0, k1)
    jumps = binomials(words, lane, jnp.full_like(variance, _TRIALS), variance / _TRIALS, first + 1)
    return 2.0 * binomials(words, lane, jumps, jnp.full_like(jumps, 0.5), first + 2) - jumps


@functools.lru_cache(maxsize=4096)
def _compute_epsilon(variance: float, delta: float) -> float:
    """Returns the epsilon of Skellam noise at delta > 0."""
    from scipy.special import i0e

    # The divergence at 0 is the chance of 0.
    if i0e(variance) <= delta:
        return 0.0
    reach = find_reach(lambda value: 2.0 * math.asinh(math.sqrt(0.5 * value / variance)), delta)
    law = _recur(variance, reach) if reach <= MOST_RATIOS else _invert(variance)
    return find_epsilon(law, delta)


@functools.lru_cache(maxsize=4096)
def _compute_zcdp(variance: float) -> float:
    """Returns the largest divergence over its order; divergences rise with the order."""
    if variance > _MOST_VARIANCE:
        return (1.0 + 2.25 / variance) / variance
    # Ratios of neighbouring masses, by their recurrence.
    most = math.ceil(12.0 * math.sqrt(variance)) + 4 * _MOST_ORDER
    ratios = np.empty(most)
    # By the recurrence's own limit: from 0 it would oscillate where the variance is large.
    ratio = (math.hypot(most + 1, variance) - most - 1) / variance
    for k in range(most, 0, -1):
        ratio = variance / (2.0 * k + variance * ratio)
        ratios[k - 1] = ratio
    half = np.r_[0.0, np.cumsum(np.log(ratios))]
    half -= np.log(2.0 * np.exp(half).sum() - 1.0)
    mass = np.r_[half[:0:-1], half]
    next_log_mass, log_mass = mass[1:], mass[:-1]
    loss, weight = log_mass - next_log_mass, np.exp(log_mass)
    largest = float(weight @ loss)
    number = math.ceil(math.log(_MOST_ORDER) / math.log(_STEP))
    for orders in np.array_split(_STEP ** np.arange(1.0, number + 1.0), _PARTS):
        # The larger the order, the farther up are the terms that count.
        ends = log_mass + np.outer(orders[[0, -1]] - 1.0, loss)
        first, last = (np.flatnonzero(x > x.max() - DROP) for x in ends)
        part = slice(first[0], last[-1] + 1)
        terms = log_mass[part] + np.outer(orders - 1.0, loss[part])
        top = terms.max(axis=1)
        sums = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
        largest = max(largest, float((_STEP * sums / (orders - 1.0) / orders).max()))
    rounding = 1.0 + 1.0 / _MOST_ORDER  # of a whole order over an order
    extra = min((2.0 * rounding + 5.0 / _MOST_ORDER) / (2.0 * variance), 3.0 / _MOST_ORDER)
    return max(largest, (rounding + extra) / (2.0 * variance))


def _recur(variance: float, reach: int) -> Tails:
    """Returns the tails of noise that is not wide."""
    # By the recurrence of the Bessel functions I_t(variance), from its limit.
    t = np.arange(1.0, reach + 1.0)
    coupling = np.full_like(t, variance * variance)
    last = 1.0 / (reach + math.hypot(reach, variance))
    return recur(math.log(variance), np.ones_like(t), 2.0 * t, coupling, last)


def _invert(variance: float) -> Tails:
    """Returns the tails of wide noise."""
    return invert(
        lambda z: 2.0 * variance * np.sinh(0.5 * z) ** 2,
        lambda slope: math.asinh(slope / variance),
        lambda tilt: variance * math.cosh(tilt),
        lambda tilt: 0.5 * DROP / (variance * math.cosh(tilt)),
    )
