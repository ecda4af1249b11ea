"""Binomial samplers, elementwise and counter-based: by inversion, from one uniform.

The law is exact to a total variation distance below 1e-6 (tests/sampling/test_samplers.py computes
the induced law step by step).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.sampling import normal
from fmab_jax.sampling.arrays import pairwise_sum
from fmab_jax.sampling.backend import is_accelerated
from fmab_jax.sampling.keys import Words, uniform
from fmab_jax.sampling.loops import anywhere, repeat_steps, store_once
from fmab_jax.sampling.rare import rare, where_any
from fmab_jax.sampling.samplers import SMOOTH_VARIANCE, apply_sheppard, smooth_quantile
from fmab_jax.sampling.shapes import Bits, Integer, Lanes, Reals, Scalar, Truths

Rows = Float[Array, "... row"]
Row = Float[Array, "... 1"]

# Below this one, an expansion may be off by more than one step.
_SMALL_VARIANCE = 4.0
# Steps of a distribution function of variance below 4, and below 40: p is at most 1/2.
_FEW_STEPS, _MOST_STEPS = 64, 200
# One over 1, 2, ...
_OVER = 1.0 / np.arange(1.0, 2.0 * _MOST_STEPS)
# Steps that a row of uniforms is compared with at once.
_AT_ONCE = 8

# Frequencies at which a distribution function of variance < 64 is looked up, and the window of
# 2 * 80 + 1 values around the mean, ten deviations to each side, outside of which it has no mass.
_FREQUENCIES = 80

# The largest number of trials whose integers float64 holds exactly.
MAX_TRIALS = 2**53


def doubtful_step(u: Lanes, cumulants: Sequence[Array]) -> Lanes:
    """Returns k if `lattice_quantile` may confuse k and k + 1; else NaN.

    For sums of binomials; from a variance of 10 on the expansion errs by less than half a count,
    but for 1e-7 of the draws.
    """
    smooth = apply_sheppard(cumulants)
    z = normal.quantile(u)
    edge = smooth_quantile(u, smooth) - 0.5
    nearest = jnp.round(edge)
    # Twice the bound of `expand_quantile`; sums over different agents err by up to 1.6 of it.
    error = (0.04 + 0.006 * z * z * z * z * z * z) / (cumulants[1] * cumulants[1])
    return jnp.where(jnp.abs(edge - nearest) < error, nearest, jnp.nan)


def binomials_at_most(
    k: Lanes,
    trials: Lanes,
    membership: Float[Array, "row lane"],
    probability: Float[Array, "row lane"],
) -> Lanes:
    """Returns P(sum over rows of Binomial(trials, probability) <= k), for a variance below 64.

    By Fourier: the sum's characteristic function at equidistant frequencies gives its mass on as
    many neighbouring values. Exact up to rounding.

    Args:
        k: Whole numbers near the mean.
        trials: Number of trials of every row, >= 1.
        membership: 1 for rows of the sum, else 0.
        probability: Success probabilities in [0, 1].
    """
    window = 2 * _FREQUENCIES + 1
    frequency = 2.0 * np.pi / window * np.arange(1, _FREQUENCIES + 1)[:, None]
    back, out = 2.0 * np.sin(frequency / 2.0) ** 2, np.sin(frequency)

    def multiply(row: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        re, im, mean, sure = state
        p = lax.dynamic_index_in_dim(probability, row, keepdims=False)
        weight = lax.dynamic_index_in_dim(membership, row, keepdims=False)
        # Counting the rarer outcome keeps phases small, and exact.
        flip = p > 0.5
        rare = jnp.where(flip, 1.0 - p, p) * weight
        signed = jnp.where(flip, -rare, rare)
        x, y = -rare[None, :] * back, signed[None, :] * out
        # The difference of a product from 1 loses no digits.
        re, im = re + x + (re * x - im * y), im + y + (re * y + im * x)
        return re, im, mean + signed, sure + jnp.where(flip, weight, 0.0)

    zero = jnp.zeros(k.shape)
    wide = jnp.zeros((_FREQUENCIES, *k.shape))
    start_state = (wide, wide, zero, zero)
    re, im, mean, shift = lax.fori_loop(0, len(probability), multiply, start_state)
    power = trials[None, :]
    size = jnp.exp(0.5 * power * jnp.log1p(jnp.maximum(2.0 * re + re * re + im * im, -1.0)))
    turn = power * jnp.arctan2(im, 1.0 + re)
    # The mass from the window's start to k.
    start = jnp.round(trials * mean) - _FREQUENCIES
    end = k - trials * shift
    values = (end - start + 1.0)[None, :]
    wave = jnp.cos(turn - frequency * (start + end)[None, :] / 2.0)
    wave = wave * jnp.sin(frequency * values / 2.0) / np.sin(frequency / 2.0)
    return (values[0] + 2.0 * pairwise_sum(size * wave)) / window


def binomials(
    words: Words, lane: Bits, trials: Reals, probability: Reals, draw: int | Bits = 0
) -> Reals:
    """Samples Binomial(trials, probability), elementwise: the quantile of one uniform per lane.

    A fourth-order Cornish-Fisher expansion. From a variance of 40 on it stands alone (total
    variation distance of the induced law <= 1e-6). Below that it is believed only where it is
    further from a step of the distribution function than it can err; everything else is summed
    from zero, exact up to rounding. Non-decreasing in the uniform, so that runs which share it are
    as correlated as they can be.

    Args:
        words: Key of the stream.
        lane: Lanes of independent numbers.
        trials: Whole numbers in [0, 2^53]; anything else gives NaN. Of a shape that broadcasts to
            that of ``lane``; where the last axis is 1, a row of lanes shares one law.
        probability: In [0, 1]; anything else gives NaN. Shapes as for ``trials``.
        draw: Index of the uniform in a lane.
    """
    trials, probability = jnp.atleast_1d(trials), jnp.atleast_1d(probability)
    shape = jnp.broadcast_shapes(lane.shape, trials.shape, probability.shape)
    shared = len(shape) > 1 and shape[-1] > trials.shape[-1] == probability.shape[-1] == 1
    u = uniform(*words, lane, draw)
    if shared and not is_accelerated():
        return _by_row(u, trials, probability)
    # An accelerator draws doubtful uniforms again; a CPU, which would do so one by one, does not.
    source = (*words, lane, jnp.uint32(draw)) if is_accelerated() else store_once(u < 1.0, u)
    u = u if is_accelerated() else source[0]
    (z,) = store_once(u < 1.0, normal.quantile(u))
    k, small, near = expand_quantile(z, trials, probability)

    def search(steps: int) -> Callable[..., Array]:
        def exact(*operands: Array) -> Array:
            *source, trials, probability = operands
            u = uniform(*source) if is_accelerated() else source[0]
            return sum_mass(u, trials, probability, steps)

        return exact

    operands = (*source, trials, probability)
    if shared:
        # Most rows have small sums in early epochs.
        k = where_any(small, search(_FEW_STEPS), k, *operands)
        small = jnp.zeros_like(small)
    return rare(small | near, search(_MOST_STEPS), k, *operands)


def expand_quantile(z: Reals, trials: Reals, probability: Reals) -> tuple[Reals, Truths, Truths]:
    """Returns counts by expansion, and masks of counts too small for it, and of doubtful counts.

    Args:
        z: Normal quantiles of the uniforms.
        trials: As in `binomials`.
        probability: As in `binomials`.
    """
    n, p, flip, valid = _fold_probability(trials, probability)
    variance = n * p * (1.0 - p)
    z = jnp.where(flip, -z, z)
    (edge,) = store_once(z < 1e3, normal.horner(z, _powers(n, p)))
    k = jnp.clip(jnp.ceil(edge), 0.0, jnp.where(p == 0.0, 0.0, n))
    # Bounds the expansion's error, in counts, for every p and |z| < 7; the tests compute it.
    error = (0.02 + 0.003 * z * z * z * z * z * z) / (variance * variance)
    near = jnp.abs(edge - jnp.round(edge)) < error
    random = (n > 0.0) & (p > 0.0)
    small = random & (variance < _SMALL_VARIANCE)
    near = random & ~small & (variance < SMOOTH_VARIANCE) & near
    k = jnp.where(flip, trials - k, k)
    return jnp.where(valid, k, jnp.nan), jnp.broadcast_to(small, k.shape), near


def sum_mass(u: Reals, trials: Reals, probability: Reals, steps: int = _MOST_STEPS) -> Reals:
    """Sums the mass from zero, for a variance below 40; exact up to rounding."""
    n, p, flip, _ = _fold_probability(trials, probability)
    u = jnp.where(flip, 1.0 - u, u)
    odds = p / (1.0 - p)
    # Less than 2^-52 of the mass lies above, and u is no closer to 1: all lanes end.
    last = jnp.minimum(n, jnp.ceil(n * p + 10.0 * jnp.sqrt(n * p) + 25.0))
    first = jnp.exp(n * jnp.log1p(-p))

    # The part of the uniform above the sum so far; at the end, minus the number of steps.
    def climb(step: Integer | np.integer, state: tuple[Array, Array]) -> tuple[Array, Array]:
        mass, above = state
        number, over = step.astype(np.float64), _over(step)
        mass = mass * ((n - number) * odds) * over
        left = above - mass
        ended = jnp.where(left > 0.0, left, -1.0 - number)
        return mass, jnp.where(above > 0.0, ended, above)

    start = (first, jnp.maximum(u - first, 0.0))

    def unfinished(step: Array, state: tuple[Array, Array]) -> Array:
        return (state[1] > 0.0) & (step.astype(jnp.float64) < last)

    _, above = repeat_steps(climb, start, unfinished, steps)
    k = jnp.where(above > 0.0, last, jnp.minimum(-above, last))
    return jnp.where(flip, trials - k, k)


def _over(step: Integer | np.integer) -> Scalar | np.floating:
    """Returns 1 / (step + 1); XLA would launch a kernel for each quotient of scalars."""
    return _OVER[step] if isinstance(step, np.integer) else jnp.asarray(_OVER)[step]


def _by_row(u: Rows, trials: Row, probability: Row) -> Rows:
    """Returns counts for rows of uniforms that share a law, in the fastest way for CPUs.

    Below a variance of 40 it compares each uniform with every step of the distribution function,
    which it sums once per row.
    """
    n, p, _, valid = _fold_probability(trials, probability)
    small = valid & (n * p * (1.0 - p) < SMOOTH_VARIANCE)

    def large(u: Array, *params: Array) -> Array:
        return expand_quantile(normal.quantile(u), *params)[0]

    k = where_any(~small, large, jnp.zeros_like(u), u, trials, probability)
    return where_any(small, _compare_steps, k, u, jnp.where(small, trials, 0.0), probability)


def _compare_steps(u: Rows, trials: Row, probability: Row) -> Rows:
    n, p, flip, _ = _fold_probability(trials, probability)
    u = jnp.where(flip, 1.0 - u, u)
    odds = p / (1.0 - p)
    deviation = jnp.sqrt(n * p * (1.0 - p))
    # Less than 2^-60 of the mass lies outside.
    start = jnp.maximum(jnp.floor(n * p - 9.0 * deviation), 0.0)
    last = jnp.minimum(n, jnp.ceil(n * p + 10.0 * deviation + 25.0))

    def next_mass_of(step: Array, mass: Array) -> Array:
        return mass * ((n - step) * odds) * (1.0 / (step + 1.0))

    def skip(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, mass, below = state
        for _ in range(_AT_ONCE):
            on = step < start
            next_mass = next_mass_of(step, mass)
            step, mass = step + jnp.where(on, 1.0, 0.0), jnp.where(on, next_mass, mass)
            below = below + jnp.where(on, next_mass, 0.0)
        return step, mass, below

    def advance_steps(step: Array, mass: Array, below: Array) -> tuple[Array, ...]:
        steps = []
        for _ in range(_AT_ONCE):
            # Past the last step the bound is 2, which no uniform exceeds.
            steps.append(jnp.where(step < last, below, 2.0))
            mass = next_mass_of(step, mass)
            step, below = step + 1.0, below + mass
        return step, mass, below, jnp.concatenate(steps, axis=-1)

    def climb(state: tuple[Array, ...]) -> tuple[Array, ...]:
        *at, steps, k = state
        # Outside of the loop's state the compiler would sum the steps anew for every uniform.
        above = [jnp.where(u > steps[..., i, None], 1.0, 0.0) for i in range(_AT_ONCE)]
        return *advance_steps(*at), k + functools.reduce(jnp.add, above)

    first = jnp.exp(n * jnp.log1p(-p))
    at: tuple[Array, ...] = (jnp.zeros_like(n), first, first)
    at = lax.while_loop(lambda s: anywhere(jnp.any(s[0] < start)), skip, at)
    state: tuple[Array, ...] = (*advance_steps(*at), jnp.broadcast_to(start, u.shape))
    # No uniform lies above the largest one.
    most = jnp.max(u, axis=-1)
    k = lax.while_loop(lambda s: anywhere(jnp.any(most > s[-2][..., 0])), climb, state)[-1]
    return jnp.where(flip, trials - k, k)


def _fold_probability(trials: Array, probability: Array) -> tuple[Array, Array, Array, Array]:
    """Returns trials, the chance of the rarer outcome, whether that is a failure, and validity.

    Trials and chance are 0 where they are not valid.
    """
    n, p = trials, probability
    valid = (n >= 0) & (n <= MAX_TRIALS) & (jnp.floor(n) == n) & (p >= 0) & (p <= 1)
    # 1 - p is exact for p >= 1/2.
    flip = p > 0.5
    return jnp.where(valid, n, 0.0), jnp.where(valid, jnp.where(flip, 1.0 - p, p), 0.0), flip, valid


def _powers(n: Reals, p: Reals) -> tuple[Array, ...]:
    """Returns the coefficients of z^5, ..., z^0 in the expansion less a half.

    The fourth-order Cornish-Fisher quantile at a normal quantile z (Abramowitz and Stegun 26.2.49)
    of the smooth law whose rounding is the binomial: its even cumulants carry Sheppard's
    corrections -1/12, +1/120, -1/252.
    """
    q = 1.0 - p
    pq = p * q
    npq = n * pq
    # Lanes that do not use the expansion must stay finite. With AVX2, XLA does not vectorise loops
    # with a float64 `rsqrt`.
    smooth = jnp.maximum(npq - 1.0 / 12.0, 1.0)
    deviation = jnp.sqrt(smooth)
    scale = deviation / smooth
    square = scale * scale
    skewed = npq * (q - p) * scale * square
    g1 = skewed
    g2 = (npq * (1.0 - 6.0 * pq) + 1.0 / 120.0) * square * square
    g3 = skewed * (1.0 - 12.0 * pq) * square
    g4 = (npq * (1.0 - 30.0 * pq * (1.0 - 4.0 * pq)) - 1.0 / 252.0) * square * square * square
    second, cube = g1 * g1, g1 * g1 * g1
    fourth, mixed, skew_product, even = second * second, second * g2, g1 * g3, g2 * g2
    # Products with a reciprocal: a division takes as long as ten of them.
    powers = (
        g4 * (1.0 / 720.0)
        - even * (3.0 / 384.0)
        - skew_product * (2.0 / 180.0)
        + mixed * (14.0 / 288.0)
        - fourth * (252.0 / 7776.0),
        g3 * (1.0 / 120.0) - g1 * g2 * (1.0 / 24.0) + cube * (12.0 / 324.0),
        g2 * (1.0 / 24.0)
        - second * (2.0 / 36.0)
        - g4 * (10.0 / 720.0)
        + even * (24.0 / 384.0)
        + skew_product * (17.0 / 180.0)
        - mixed * (103.0 / 288.0)
        + fourth * (1688.0 / 7776.0),
        g1 * (1.0 / 6.0) - g3 * (6.0 / 120.0) + g1 * g2 * (5.0 / 24.0) - cube * (53.0 / 324.0),
        1.0
        - g2 * (3.0 / 24.0)
        + second * (5.0 / 36.0)
        + g4 * (15.0 / 720.0)
        - even * (29.0 / 384.0)
        - skew_product * (21.0 / 180.0)
        + mixed * (107.0 / 288.0)
        - fourth * (1511.0 / 7776.0),
        -g1 * (1.0 / 6.0) + g3 * (3.0 / 120.0) - g1 * g2 * (2.0 / 24.0) + cube * (17.0 / 324.0),
    )
    *leading, constant = (power * deviation for power in powers)
    return (*leading, constant + (n * p - 0.5))
