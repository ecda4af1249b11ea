"""What a sum of Laplace noises hides of a reward, up to delta."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

# Sums of more variables are treated as sums of so many, which hide no more.
_MOST_TERMS = 10**6


def sum_epsilon(terms: int, shift: float, delta: float) -> float:
    """Returns the epsilon, up to delta, of a shift of the sum of standard Laplace variables."""
    return _compute_sum_epsilon(min(terms, _MOST_TERMS), shift, delta)


@functools.lru_cache(maxsize=4096)
def _compute_sum_epsilon(terms: int, shift: float, delta: float) -> float:
    """Returns the epsilon of a shift of the sum of standard Laplace variables."""
    from scipy.optimize import brentq

    density, tail = _build_log_laplace_sum(terms)

    # Where the density at x is e^epsilon times that at x + shift, everything above x is in A.
    def chance(x: float) -> float:
        log_mass = density(abs(x)) + tail(x + shift) - density(x + shift)
        if x < 0.0:
            return float(-math.expm1(tail(-x) + x) - math.exp(log_mass + x))
        log_tail = tail(x)
        return -math.exp(log_tail - x) * math.expm1(min(log_mass - log_tail, 0.0))

    middle = -0.5 * shift
    if chance(middle) <= delta:
        return 0.0
    low = max(middle, -1.0)
    while chance(low) < delta:
        low = max(middle, 2.0 * low)
    high = math.sqrt(2.0 * terms)
    while tail(high) - high > math.log(delta):
        high *= 2.0
    x = brentq(lambda x: chance(x) - delta, low, high, xtol=1e-14 * high, maxiter=500)
    epsilon = x + shift - abs(x) + density(abs(x)) - density(x + shift)
    return min(max(epsilon, 0.0), shift)


def _build_log_laplace_sum(terms: int) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Returns the logarithms of density and upper tail, x added to both, at x >= 0.

    The sum is the difference of two waiting times for the n-th event. With chance w_m the first is
    m events late, so that the law above 0 is a mixture of Gamma(m), m = 1..n; and a Gamma(m)
    variable exceeds x where a Poisson one of mean x is below m.
    """
    from scipy.special import gammaln, logsumexp, xlogy

    late = np.arange(1.0, terms + 1.0)
    weight = gammaln(2 * terms - late) - gammaln(terms - late + 1.0) - gammaln(terms)
    weight -= (2 * terms - late) * math.log(2.0)
    # Half of the law is above 0, exactly.
    weight -= logsumexp(weight) + math.log(2.0)
    events, density_weight = late - 1.0, weight - gammaln(late)
    tail_weight = np.logaddexp.accumulate(weight[::-1])[::-1] - gammaln(late)
    return (
        lambda x: float(logsumexp(density_weight + xlogy(events, x))),
        lambda x: float(logsumexp(tail_weight + xlogy(events, x))),
    )
