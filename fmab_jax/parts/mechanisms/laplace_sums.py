"""What a sum of Laplace noises hides of a reward, up to delta."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from fmab_jax.parts.mechanisms.lattice_sums import DROP

# Sums of more variables are treated as sums of so many, which hide no more.
_MOST_TERMS = 10**6
# Chances below count as this one, whose logarithm is finite.
_LEAST = 1e-300


def sum_epsilon(terms: int, shift: float, delta: float) -> float:
    """Returns the epsilon, up to delta, of a shift of the sum of standard Laplace variables."""
    if math.isinf(shift):
        return math.inf
    return _compute_sum_epsilon(min(terms, _MOST_TERMS), shift, delta)


@functools.lru_cache(maxsize=4096)
def _compute_sum_epsilon(terms: int, shift: float, delta: float) -> float:
    """Returns the epsilon of a shift of the sum of standard Laplace variables."""
    from scipy.optimize import brentq

    if terms == 1:
        return max(shift + 2.0 * math.log1p(-delta), 0.0)
    nats = -math.log(delta)
    # Chernoff's bound, where the cumulant-generating function is a third of its exponent.
    high = nats / 0.75 / math.sqrt(-math.expm1(-nats / (3.0 * terms)))
    law = _build_log_laplace_sum(terms, high + shift)

    # Where the density at x is e^epsilon times that at x + shift, everything above x is in A.
    def excess(x: float) -> float:
        """Returns the logarithm of the divergence of that event, over delta."""
        (density, tail), (later_density, later_tail) = law(abs(x)), law(x + shift)
        log_mass = density + later_tail - later_density
        if x < 0.0:
            chance = -math.expm1(tail + x) - math.exp(log_mass + x)
        else:
            chance = -math.exp(tail - x) * math.expm1(min(log_mass - tail, 0.0))
        return math.log(max(chance, _LEAST)) + nats

    middle = -0.5 * shift
    if excess(middle) <= 0.0:
        return 0.0
    low = max(middle, -1.0)
    while excess(low) < 0.0:
        low = max(middle, 2.0 * low)
    x = brentq(excess, low, high, xtol=1e-14 * high)
    epsilon = x + shift - abs(x) + law(abs(x))[0] - law(x + shift)[0]
    return min(max(epsilon, 0.0), shift)


def _build_log_laplace_sum(terms: int, most: float) -> Callable[[float], tuple[float, float]]:
    """Returns the logarithms of density and upper tail, x added to both, at x in [0, most].

    The sum is the difference of two waiting times for the n-th event. With chance w_m the first is
    m events late, so that the law above 0 is a mixture of Gamma(m), m = 1..n; and a Gamma(m)
    variable exceeds x where a Poisson one of mean x is below m.
    """
    from scipy.special import xlogy

    events, weights = _weigh(terms)
    weights = weights + events * math.log(most)
    # What is too small at the largest x is smaller before.
    end = np.flatnonzero((weights.T > weights.max(axis=1) - DROP).any(axis=1))[-1] + 1
    events, weights = events[:end], weights[:, :end]

    def law(x: float) -> tuple[float, float]:
        parts = weights + xlogy(events, x / most)
        top = parts.max(axis=1)
        density, tail = top + np.log(np.exp(parts - top[:, None]).sum(axis=1))
        return float(density), float(tail)

    return law


@functools.lru_cache(maxsize=4)
def _weigh(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns m - 1, and the logarithms of w_m and of their tails over (m - 1)!, at m = 1..n."""
    from scipy.special import gammaln

    events = np.arange(float(terms))
    # Ratios of neighbours: their sum keeps the digits that large logarithms of n! would lose.
    weight = np.r_[0.0, np.cumsum(np.log1p(-events[:-1] / (2.0 * terms - 2.0 - events[:-1])))]
    tail_weight = np.logaddexp.accumulate(weight[::-1])[::-1]
    # Half of the law is above 0, exactly.
    weights = np.stack([weight, tail_weight]) - tail_weight[0] - math.log(2.0)
    return events, weights - gammaln(events + 1.0)
