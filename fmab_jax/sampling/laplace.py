"""Laplace noise, and the sum of many such variables as one draw."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from fmab_jax.sampling import normal
from fmab_jax.sampling.keys import uniform
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import Bits, Reals

# Terms of the polynomial, and the largest normal quantile that a uniform can give.
SHAPE = 24
_FARTHEST = 8.25
# With more variables, the Cornish-Fisher expansion is exact enough at the nodes.
_EXPANSION_TERMS = 5000
# A table holds the quantiles of sums of up to so many variables, by cells of the level
# -log(2 tail). So many bits number the cells of 1 + level in [1, 2), as many in [2, 4), up to 64,
# the largest value that a uniform can give.
_TABLE_TERMS = 8
_CELL_BITS = 5
_CELLS = 6 << _CELL_BITS
# The shapes of sums of 1, 2, ... variables: ``np.stack([solve_shape(n) for n in range(1, 257)])``.
SHAPES = Path(__file__).with_name("laplace_sums.npy")


def laplace(k0: Bits, k1: Bits, lane: Bits) -> Reals:
    """Samples Laplace(0, 1) by inversion."""
    return quantile(uniform(k0, k1, lane))


def quantile(u: Reals) -> Reals:
    """Returns the quantile of Laplace(0, 1) at u in (0, 1)."""
    tail = jnp.minimum(u, 1.0 - u)
    return jnp.where(u < 0.5, 1.0, -1.0) * normal.log(2.0 * tail)


def sample_small_sums(k0: Bits, k1: Bits, lane: Bits, count: Int[Array, ...]) -> Reals:
    """Samples sums of ``count`` Laplace(0, 1) variables, elementwise.

    One draw per eight variables, to a total variation distance below 1.6e-7 from the exact law.
    """
    table = jnp.asarray(_build_table().reshape(-1))

    def draw_sum(draw: Array, left: Array) -> tuple[Array, Array]:
        terms = jnp.minimum(left, _TABLE_TERMS)
        u = uniform(k0, k1, lane, draw)
        level = -normal.log(2.0 * jnp.minimum(u, 1.0 - u))
        bits = lax.bitcast_convert_type(1.0 + level, jnp.uint64)
        cell = (bits >> (52 - _CELL_BITS)) - (1023 << _CELL_BITS)
        fraction = ((bits << _CELL_BITS) & ((1 << 52) - 1)) | (1023 << 52)
        offset = lax.bitcast_convert_type(fraction, jnp.float64) - 1.0
        first = (terms * _CELLS + cell.astype(jnp.int32)) * 4
        powers = [table.at[first + i].get(mode="promise_in_bounds") for i in range(4)]
        value = level * normal.horner(offset, powers)
        return jnp.where(u < 0.5, -value, value), left - terms

    def add_terms(state: tuple[Array, ...]) -> tuple[Array, ...]:
        draw, left, total = state
        value, left_after = draw_sum(draw, left)
        return draw + 1, left_after, total + value

    total, left = draw_sum(jnp.uint32(0), count)
    start: tuple[Array, ...] = (jnp.uint32(1), left, total)
    return lax.while_loop(lambda state: anywhere(jnp.any(state[1] > 0)), add_terms, start)[2]


@functools.lru_cache(maxsize=1)
def _build_table() -> np.ndarray:
    """Returns [count, cell, power]: cubics, highest power first, of the sum over -log(2 tail)."""
    octave, place = np.divmod(np.arange(_CELLS + 1), 1 << _CELL_BITS)
    ends = 2.0**octave * (1.0 + place / (1 << _CELL_BITS)) - 1.0
    table = np.zeros((_TABLE_TERMS + 1, _CELLS, 4))
    for count in range(1, _TABLE_TERMS + 1):
        ratio, slope = np.ones_like(ends), np.zeros_like(ends)
        if count > 1:
            x, density = _solve_quantile(
                -math.log(2.0) - ends[1:], math.sqrt(count) * ends[1:], count
            )
            ratio[1:] = x / ends[1:]
            slope[1:] = (0.5 * np.exp(-ends[1:]) / density - ratio[1:]) / ends[1:]
            # Half of the law is above 0, where its density is flat.
            at_zero = math.comb(2 * count - 2, count - 1) * 2.0 ** (1 - 2 * count)
            ratio[0], slope[0] = 0.5 / at_zero, -0.25 / at_zero
        rise, width = np.diff(ratio), np.diff(ends)
        before, after = slope[:-1] * width, slope[1:] * width
        cubic = (before + after - 2.0 * rise, 3.0 * rise - 2.0 * before - after, before, ratio[:-1])
        table[count] = np.stack(cubic, axis=1)
    table.setflags(write=False)
    return table


def share_epsilon(epsilon: float, left: int, shares: int) -> float:
    """Returns the epsilon of a reward in [0, 1] if some shares of its noise are known.

    A Laplace(1 / epsilon) variable is the sum of equal independent shares, differences of two
    Gamma(1 / shares) variables. Some of them sum up to such a difference of shape a = left /
    shares, whose density is proportional to |x|^v K_v(epsilon |x|), v = a - 1/2. It falls fastest
    next to 0: its ratio over a distance of 1 is largest there.

    Args:
        epsilon: Epsilon of the whole noise, > 0; may be infinite.
        left: Number of unknown shares, in [1, shares].
        shares: Number of shares of the whole noise.

    Returns:
        Epsilon of pure differential privacy; infinite if at most half of the shares are unknown.
    """
    if left == shares or math.isinf(epsilon):
        return float(epsilon)
    order = left / shares - 0.5
    if order <= 0.0:
        return math.inf
    from scipy.special import gammaln, kve

    at_zero = (order - 1.0) * math.log(2.0) + float(gammaln(order)) - order * math.log(epsilon)
    # SciPy's function loses its digits for a large epsilon.
    use_asymptote = epsilon > 1e8
    decay = (
        0.5 * math.log(math.pi / (2.0 * epsilon))
        if use_asymptote
        else math.log(kve(order, epsilon))
    )
    # 1e-13 is more than the rounding errors.
    return max(at_zero - decay + epsilon + 1e-13, epsilon)


def laplace_sum(z: Reals, shape: Float[Array, "24 ..."]) -> Reals:
    """Returns the sum of independent Laplace(0, 1) variables as a function of a normal one.

    Increasing and odd in z, to a total variation distance below 1e-6 from the exact law.

    Args:
        z: Standard normal.
        shape: Result of `laplace_sum_shape` for the number of variables.
    """
    return z * normal.horner((2.0 / _FARTHEST) * jnp.abs(z) - 1.0, tuple(shape))


@functools.lru_cache(maxsize=1024)
def laplace_sum_shape(terms: int) -> np.ndarray:
    """Returns the polynomial of `laplace_sum`, highest power first.

    With z the normal quantile, the sum's quantile over z is smooth on z >= 0, whatever the number.
    It is interpolated from its values at Chebyshev nodes.

    Args:
        terms: Number of variables in the sum, >= 0.
    """
    if terms == 0:
        return np.zeros(SHAPE)
    # SciPy takes longer to import than most runs, so a file holds the usual shapes.
    table = np.load(SHAPES)
    shape = table[terms - 1] if terms <= len(table) else solve_shape(terms)
    # Callers share the cached array, so it is read-only.
    shape.setflags(write=False)
    return shape


def solve_shape(terms: int) -> np.ndarray:
    """Computes the polynomial of `laplace_sum_shape`, for at least one variable."""
    nodes = np.cos((2.0 * np.arange(SHAPE) + 1.0) * np.pi / (2.0 * SHAPE))
    z = (nodes + 1.0) * _FARTHEST / 2.0
    ratio = _expand_ratio(z, terms) if terms > _EXPANSION_TERMS else _map_normal(z, terms) / z
    fitted = np.polynomial.chebyshev.chebfit(nodes, ratio, SHAPE - 1)
    return np.polynomial.chebyshev.cheb2poly(fitted)[::-1].copy()


def _expand_ratio(z: np.ndarray, terms: int) -> np.ndarray:
    """Returns x(z) / z by Cornish and Fisher, of cumulants 2 n, 12 n and 240 n."""
    s, fourth, sixth = z * z, 3.0 / terms, 30.0 / terms**2
    second = fourth * (s - 3.0) / 24.0
    third = sixth * ((s - 10.0) * s + 15.0) / 720.0
    third = third - fourth**2 * ((3.0 * s - 24.0) * s + 29.0) / 384.0
    return math.sqrt(2.0 * terms) * (1.0 + second + third)


def _map_normal(z: np.ndarray, terms: int) -> np.ndarray:
    """Returns the x for which P(sum > x) is the probability that a normal variable exceeds z."""
    from scipy.special import log_ndtr

    goal = log_ndtr(-z)
    start = (
        z * _expand_ratio(z, terms) if terms > 20 else math.sqrt(terms) * (-goal - math.log(2.0))
    )
    return _solve_quantile(goal, start, terms)[0]


def _solve_quantile(goal: np.ndarray, x: np.ndarray, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the x for which log P(sum > x) is the goal, from a first guess; and the density."""
    from scipy.special import gammaincc, gammaln, xlogy

    # The sum is the difference of two waiting times for the n-th event. It exceeds x where the
    # first process has j < n events by x, and n come from the second before n - j more of it.
    last = np.arange(1.0, terms + 1.0)
    failures = terms - last
    chance = gammaln(terms + failures) - gammaln(failures + 1.0) - gammaln(terms)
    weight = np.exp(chance - math.log(2.0) * (terms + failures))
    positive = weight > 0.0
    last, weight = last[positive, None], weight[positive, None]
    # Half of the law is above 0, exactly.
    weight = weight / (2.0 * weight.sum())
    for _ in range(50):
        above = np.sum(weight * gammaincc(last, x), axis=0)
        density = np.sum(weight * np.exp(xlogy(last - 1.0, x) - x - gammaln(last)), axis=0)
        # Newton's method on the logarithm, which is concave.
        step = (np.log(above) - goal) * above / density
        x = np.maximum(x + step, 0.3 * x)
        if np.max(np.abs(step) / x) < 1e-12:
            return x, density
    raise ArithmeticError(f"the quantiles of {terms} Laplace variables were not found")
