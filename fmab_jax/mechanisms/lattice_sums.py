"""Integer noise: where cumulants give its law, its tails, and what it hides of a reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from fmab_jax.core.samplers import SMOOTH_VARIANCE
from fmab_jax.core.shapes import Truths

# Precision of tails: frequencies with less than e^-_DROP of the largest term are left out.
_DROP = 36.0
# Least number of points of the inversion, and points per deviation.
_POINTS, _POINTS_PER_DEVIATION = 256, 80.0
# Largest excess kurtosis at which six cumulants give a symmetric law to 1e-6.
_SMOOTH_KURTOSIS = 0.02


def is_smooth(cumulants: Sequence[Array]) -> Truths:
    """Tells where six cumulants give the law of noise: to 5e-7, says tests/core/test_mechanisms.py.

    Symmetric laws need less than `samplers.is_smooth` asks for.
    """
    second, fourth = cumulants[1], cumulants[3]
    return (second >= SMOOTH_VARIANCE) & (fourth <= _SMOOTH_KURTOSIS * second * second)


class Tails(NamedTuple):
    """A symmetric log-concave law of whole numbers, at whole numbers t >= 0.

    Attributes:
        point: Returns log P(noise = t).
        tail: Returns log P(noise >= t).
    """

    point: Callable[[int], float]
    tail: Callable[[int], float]


def find_epsilon(law: Tails, delta: float) -> float:
    """Returns the smallest epsilon at which noise hides a shift by 1 up to delta > 0.

    The privacy loss of a log-concave law is monotone, so the worst event is a tail:
    delta(epsilon) is the largest P(noise >= t) - e^epsilon P(noise >= t + 1) over t.
    """
    if law.point(0) <= math.log(delta):
        return 0.0

    def find_at(t: int) -> float:
        """Returns the epsilon that the event of noise >= t asks for."""
        log_tail, excess = law.tail(t + 1), math.exp(law.point(t)) - delta
        if excess > 0.0:
            # log(1 + excess / tail), also where the tail is 0 as a float.
            return float(np.logaddexp(0.0, math.log(excess) - log_tail))
        share = -excess * math.exp(-log_tail) if log_tail > -700.0 else math.inf
        return math.log1p(-share) if share < 1.0 else -math.inf

    high = 1
    while law.tail(high) > math.log(delta):
        high *= 2
    low, high = 0, high - 1
    # Epsilon rises with t up to the worst event, then falls.
    while high - low > 8:
        third = (high - low) // 3
        first, second = low + third, high - third
        at_first, at_second = find_at(first), find_at(second)
        if at_second == -math.inf or at_first > at_second:
            high = second
        else:
            low = first
    return max(0.0, max(find_at(t) for t in range(low, high + 1)))


def invert(
    log_mgf: Callable[[Any], Any],
    slope: Callable[[float], float],
    spread: Callable[[float], float],
    end: float,
) -> Tails:
    """Returns tails by Fourier inversion of the tilted law, which has its mean near t.

    Args:
        log_mgf: The cumulant-generating function K, of complex numbers.
        slope: K' of real tilts >= 0; rises from 0.
        spread: K'' of real tilts.
        end: Where K ends; may be infinite.
    """

    def find_tilt(t: float) -> float:
        low, high = 0.0, end if math.isfinite(end) else 1.0
        while math.isinf(end) and slope(high) < t:
            high *= 2.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) < t else (low, middle)
        return low

    def integrate(t: int, is_tail: bool) -> float:
        # The pole of a tail at tilt 0 must be far.
        tilt = find_tilt(max(float(t), math.sqrt(spread(0.0))))
        deviation, level = math.sqrt(spread(tilt)), float(log_mgf(tilt))
        points = math.ceil(_POINTS_PER_DEVIATION * deviation) + _POINTS
        step = 2.0 * math.pi / points
        last = points // 2

        def is_small(number: int) -> bool:
            size: float = np.real(log_mgf(complex(tilt, step * number)))
            return size - level < -_DROP

        if is_small(last):
            low, high = 0, last
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_small(middle) else (middle, high)
            last = high
        number = np.arange(last + 1)
        z = tilt + 1j * step * number
        terms = np.exp(log_mgf(z) - level - 1j * step * ((number * t) % points))
        if is_tail:
            terms = terms / -np.expm1(-z)
        # Frequencies beyond pi are the complex conjugates of those before.
        weight = np.where((number == 0) | (2 * number == points), 1.0, 2.0)
        return level - tilt * t + math.log(float(np.sum(weight * terms.real)) / points)

    return Tails(lambda t: integrate(t, False), lambda t: integrate(t, True))


def solve_divergence(divergence: Callable[[float], float], delta: float, high: float) -> float:
    """Returns the epsilon at which a decreasing divergence equals delta, at least 0."""
    from scipy.optimize import brentq

    if divergence(0.0) <= delta:
        return 0.0
    if divergence(high) >= delta:
        return high
    return float(brentq(lambda at: divergence(at) - delta, 0.0, high, xtol=1e-13))
