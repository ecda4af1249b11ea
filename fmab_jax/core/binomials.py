"""Binomial samplers, elementwise and counter-based: by inversion, from one uniform.

The law is exact to a total variation distance below 1e-6 (tests/core/test_samplers.py computes the
induced law step by step).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.core import normal
from fmab_jax.core.arrays import fill, pairwise_sum, varying_like
from fmab_jax.core.samplers import SMOOTH_VARIANCE, normal_to_skewed, smooth_quantile, smoothed

# Below this one, summing the mass function is cheaper than expanding and checking.
_SMALL_VARIANCE = 4.0

# Steps of a distribution function that a row of uniforms is compared with at once.
_STEPS = 8

# Frequencies at which a distribution function of variance < 64 is looked up, and the window of
# 2 * 80 + 1 values around the mean, ten deviations to each side, outside of which it has no mass.
_FREQUENCIES = 80

# The largest number of trials whose integers float64 holds exactly.
MAX_TRIALS = 2**53


def doubtful_step(u: Float[Array, " lane"], cumulants: Sequence[Array]) -> Float[Array, " lane"]:
    """Returns the k for which `lattice_quantile` may give k + 1 for k, or k for k + 1; else NaN.

    For sums of binomials; from a variance of 10 on the expansion errs by less than half a count,
    but for 1e-7 of the draws.
    """
    smooth = smoothed(cumulants)
    z = normal.quantile(u)
    edge = smooth_quantile(u, smooth) - 0.5
    nearest = jnp.round(edge)
    # Twice the bound of `binomial_quantile`; agents that differ err by up to 1.6 of it.
    error = (0.04 + 0.006 * z * z * z * z * z * z) / (cumulants[1] * cumulants[1])
    return jnp.where(jnp.abs(edge - nearest) < error, nearest, jnp.nan)


def binomials_at_most(
    k: Float[Array, " lane"],
    trials: Float[Array, " lane"],
    inside: Float[Array, "row lane"],
    probability: Float[Array, "row lane"],
) -> Float[Array, " lane"]:
    """Returns P(sum over rows of Binomial(trials, probability) <= k), for a variance below 64.

    By Fourier: the sum's characteristic function at equidistant frequencies gives its mass on as
    many neighbouring values. Exact up to rounding.

    Args:
        k: Whole numbers near the mean.
        trials: Of every row, >= 1.
        inside: 1 for rows that are counted, else 0.
        probability: In [0, 1].
    """
    window = 2 * _FREQUENCIES + 1
    frequency = 2.0 * np.pi / window * np.arange(1, _FREQUENCIES + 1)[:, None]
    back, out = 2.0 * np.sin(frequency / 2.0) ** 2, np.sin(frequency)

    def multiply(row: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        re, im, mean, sure = state
        p = lax.dynamic_index_in_dim(probability, row, keepdims=False)
        weight = lax.dynamic_index_in_dim(inside, row, keepdims=False)
        # Rarer outcomes are counted, downwards from a sure sum: phases stay small, and exact.
        flip = p > 0.5
        rare = jnp.where(flip, 1.0 - p, p) * weight
        signed = jnp.where(flip, -rare, rare)
        x, y = -rare[None, :] * back, signed[None, :] * out
        # Products are kept as their difference from 1, which loses no digits.
        re, im = re + x + (re * x - im * y), im + y + (re * y + im * x)
        return re, im, mean + signed, sure + jnp.where(flip, weight, 0.0)

    zero = jnp.zeros(k.shape)
    wide = jnp.zeros((_FREQUENCIES, *k.shape))
    start = varying_like((wide, wide, zero, zero), k, trials, inside, probability)
    re, im, mean, sure = lax.fori_loop(0, len(probability), multiply, start)
    power = trials[None, :]
    size = jnp.exp(0.5 * power * jnp.log1p(jnp.maximum(2.0 * re + re * re + im * im, -1.0)))
    turn = power * jnp.arctan2(im, 1.0 + re)
    # The mass from the window's start to k.
    start = jnp.round(trials * mean) - _FREQUENCIES
    end = k - trials * sure
    values = (end - start + 1.0)[None, :]
    wave = jnp.cos(turn - frequency * (start + end)[None, :] / 2.0)
    wave = wave * jnp.sin(frequency * values / 2.0) / np.sin(frequency / 2.0)
    return (values[0] + 2.0 * pairwise_sum(size * wave)) / window


def binomial_quantile(
    u: Float[Array, " lane"],
    trials: Float[Array, " lane"],
    probability: Float[Array, " lane"],
    *,
    few: bool = False,
) -> Float[Array, " lane"]:
    """Returns the smallest k with P(Binomial(trials, probability) <= k) >= u, elementwise.

    A fourth-order Cornish-Fisher expansion. From a variance of 40 on it stands alone (total
    variation distance of the induced law <= 1e-6). Below that it is believed only where it is
    further from a step of the distribution function than it can err; everything else is summed
    from zero, exact up to rounding. Non-decreasing in u, so that runs which share u are as
    correlated as they can be.

    Args:
        u: Uniforms in (0, 1).
        trials: Whole numbers in [0, 2^53]; anything else gives NaN.
        probability: In [0, 1]; anything else gives NaN.
        few: Whether all variances are expected to be small: then nothing is expanded where they
            are. The same numbers, sooner; not under ``vmap``.
    """
    n, p = trials, probability
    valid = (n >= 0) & (n <= MAX_TRIALS) & (jnp.floor(n) == n) & (p >= 0) & (p <= 1)
    # Count the rarer outcome: 1 - p is exact for p >= 1/2.
    flip = p > 0.5
    n = jnp.where(valid, n, 0.0)
    p = jnp.where(valid, jnp.where(flip, 1.0 - p, p), 0.0)
    u = jnp.where(flip, 1.0 - u, u)
    none = (n == 0.0) | (p == 0.0)
    variance = n * p * (1.0 - p)

    def expanded(u: Array, n: Array, p: Array) -> Array:
        z = normal.quantile(u)
        edge = _cornish_fisher(z, n, p) - 0.5
        guess = jnp.clip(jnp.ceil(edge), 0.0, jnp.where(none, 0.0, n))
        # Bounds the expansion's error, in counts, for every p and |z| < 7; the tests compute it.
        error = (0.02 + 0.003 * z * z * z * z * z * z) / (variance * variance)
        near = jnp.abs(edge - jnp.round(edge)) < error
        doubtful = (variance < _SMALL_VARIANCE) | ((variance < SMOOTH_VARIANCE) & near)
        need = doubtful & ~none
        # Under `vmap` lanes that need nothing are searched as well: with no trials, in no step.
        return fill(_search, need, guess, u, jnp.where(need, n, 0.0), p)

    if few:
        small = jnp.max(variance) < _SMALL_VARIANCE
        # A branch at run time is what accelerators wait for.
        k = lax.platform_dependent(
            *(small, u, n, p),
            cpu=lambda small, *own: lax.cond(small, _search, expanded, *own),
            default=lambda _, *own: expanded(*own),
        )
    else:
        k = expanded(u, n, p)
    return jnp.where(valid, jnp.where(flip, trials - k, k), jnp.nan)


def is_summed(trials: Float[Array, " lane"], probability: Float[Array, " lane"]) -> Array:
    """Tells which binomials have too small a variance for the expansion to stand alone."""
    return trials * probability * (1.0 - probability) < SMOOTH_VARIANCE


def summed_binomials(
    u: Float[Array, "row lane"], trials: Float[Array, " lane"], probability: Float[Array, " lane"]
) -> Float[Array, "row lane"]:
    """Returns what `binomial_quantile` does, for rows of uniforms that share a distribution.

    Exact up to rounding: each uniform is compared with every step of the distribution function,
    which is summed once a row. For variances below 40, as `is_summed` tells; arguments as there.
    """
    n, p, flip = _rarer(trials, probability)
    u = jnp.where(flip[None], 1.0 - u, u)
    odds = p / (1.0 - p)
    deviation = jnp.sqrt(n * p * (1.0 - p))
    # Less than 2^-60 of the mass lies outside.
    start = jnp.maximum(jnp.floor(n * p - 9.0 * deviation), 0.0)
    last = jnp.minimum(n, jnp.ceil(n * p + 10.0 * deviation + 25.0))

    def grown(step: Array, mass: Array) -> Array:
        return mass * ((n - step) * odds) * (1.0 / (step + 1.0))

    def skip(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, mass, below = state
        for _ in range(_STEPS):
            on = step < start
            more = grown(step, mass)
            step, mass = step + jnp.where(on, 1.0, 0.0), jnp.where(on, more, mass)
            below = below + jnp.where(on, more, 0.0)
        return step, mass, below

    def further(step: Array, mass: Array, below: Array) -> tuple[Array, ...]:
        steps = []
        for _ in range(_STEPS):
            # Past the last step the bound is 2, which no uniform exceeds.
            steps.append(jnp.where(step < last, below, 2.0))
            mass = grown(step, mass)
            step, below = step + 1.0, below + mass
        return step, mass, below, jnp.stack(steps)

    def climb(state: tuple[Array, ...]) -> tuple[Array, ...]:
        *at, steps, k = state
        # Steps are part of the loop's state: else the compiler sums them anew for every uniform.
        above = [jnp.where(u > each[None], 1.0, 0.0) for each in steps]
        return *further(*at), k + functools.reduce(jnp.add, above)

    first = jnp.exp(n * jnp.log1p(-p))
    at = varying_like((jnp.zeros_like(n), first, first), u, n, p)
    at = lax.while_loop(lambda s: jnp.any(s[0] < start), skip, at)
    state = (*further(*at), jnp.broadcast_to(start[None], u.shape))
    # Above the largest uniform there is nothing to count.
    most = jnp.max(u, axis=0)
    k = lax.while_loop(lambda s: jnp.any(most > s[-2][0]), climb, state)[-1]
    return jnp.where(flip[None], trials[None] - k, k)


def expanded_binomials(
    u: Float[Array, "row lane"], trials: Float[Array, " lane"], probability: Float[Array, " lane"]
) -> Float[Array, "row lane"]:
    """Returns what `binomial_quantile` does, for rows of uniforms that share a distribution.

    For variances from 40 on: the coefficients of the expansion, in powers of the normal quantile,
    are worked out once a row. Arguments as in `binomial_quantile`.
    """
    n, p, flip = _rarer(trials, probability)
    z = normal.quantile(u)
    z = jnp.where(flip[None], -z, z)
    edge = normal.horner(z, [power[None] for power in _powers(n, p)])
    k = jnp.clip(jnp.ceil(edge), 0.0, n[None])
    return jnp.where(flip[None], trials[None] - k, k)


def _rarer(trials: Array, probability: Array) -> tuple[Array, Array, Array]:
    """Returns trials, the chance of the rarer outcome, and whether that is a failure."""
    flip = probability > 0.5
    # 1 - p is exact for p >= 1/2.
    return trials, jnp.where(flip, 1.0 - probability, probability), flip


def _powers(n: Float[Array, " lane"], p: Float[Array, " lane"]) -> tuple[Array, ...]:
    """Returns the coefficients of z^5, ..., z^0 in `_cornish_fisher` less a half."""
    scale, *g = _skewness(n, p)
    g1, g2, g3, g4 = g
    square, cube = g1 * g1, g1 * g1 * g1
    fourth = square * square
    mixed, evened = square * g2, g1 * g3
    even = g2 * g2
    powers = (
        g4 / 720.0
        - 3.0 * even / 384.0
        - 2.0 * evened / 180.0
        + 14.0 * mixed / 288.0
        - 252.0 * fourth / 7776.0,
        g3 / 120.0 - g1 * g2 / 24.0 + 12.0 * cube / 324.0,
        g2 / 24.0
        - 2.0 * square / 36.0
        - 10.0 * g4 / 720.0
        + 24.0 * even / 384.0
        + 17.0 * evened / 180.0
        - 103.0 * mixed / 288.0
        + 1688.0 * fourth / 7776.0,
        g1 / 6.0 - 6.0 * g3 / 120.0 + 5.0 * g1 * g2 / 24.0 - 53.0 * cube / 324.0,
        1.0
        - 3.0 * g2 / 24.0
        + 5.0 * square / 36.0
        + 15.0 * g4 / 720.0
        - 29.0 * even / 384.0
        - 21.0 * evened / 180.0
        + 107.0 * mixed / 288.0
        - 1511.0 * fourth / 7776.0,
        -g1 / 6.0 + 3.0 * g3 / 120.0 - 2.0 * g1 * g2 / 24.0 + 17.0 * cube / 324.0,
    )
    *rest, constant = (power / scale for power in powers)
    return (*rest, constant + (n * p - 0.5))


def _cornish_fisher(
    z: Float[Array, " lane"], n: Float[Array, " lane"], p: Float[Array, " lane"]
) -> Float[Array, " lane"]:
    """Fourth-order Cornish-Fisher quantile at normal quantile z (Abramowitz and Stegun 26.2.49).

    The law expanded is the smooth one whose rounding is the binomial: its even cumulants carry
    Sheppard's corrections -1/12, +1/120, -1/252.
    """
    scale, *shape = _skewness(n, p)
    return n * p + normal_to_skewed(z, *shape) / scale


def _skewness(n: Float[Array, " lane"], p: Float[Array, " lane"]) -> tuple[Array, ...]:
    """Returns one over the deviation, and the standardised cumulants three to six."""
    q = 1.0 - p
    pq = p * q
    npq = n * pq
    # Lanes that are summed instead must stay finite.
    scale = lax.rsqrt(jnp.maximum(npq - 1.0 / 12.0, 1.0))
    square = scale * scale
    skewed = npq * (q - p) * scale * square
    g1 = skewed
    g2 = (npq * (1.0 - 6.0 * pq) + 1.0 / 120.0) * square * square
    g3 = skewed * (1.0 - 12.0 * pq) * square
    g4 = (npq * (1.0 - 30.0 * pq * (1.0 - 4.0 * pq)) - 1.0 / 252.0) * square * square * square
    return scale, g1, g2, g3, g4


def _search(
    u: Float[Array, " lane"], n: Float[Array, " lane"], p: Float[Array, " lane"]
) -> Float[Array, " lane"]:
    """Inverts the distribution function by summing the mass from zero, all lanes in step."""
    odds = p / (1.0 - p)
    # Less than 2^-52 of the mass lies above; u can be no closer to 1, so the search always ends.
    last = jnp.minimum(n, jnp.ceil(n * p + 10.0 * jnp.sqrt(n * p) + 25.0))
    first = jnp.exp(n * jnp.log1p(-p))

    def climb(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, mass, above, k = state
        for _ in range(8):
            k = k + jnp.where((above > 0.0) & (step < last), 1.0, 0.0)
            mass = mass * ((n - step) * odds) * (1.0 / (step + 1.0))
            above = above - mass
            step = step + 1.0
        return step, mass, above, k

    def unfinished(state: tuple[Array, ...]) -> Array:
        step, _, above, _ = state
        return jnp.any((above > 0.0) & (step < last))

    start = (jnp.float64(0.0), first, u - first, jnp.zeros(u.shape))
    return lax.while_loop(unfinished, climb, varying_like(start, u, n, p))[3]
