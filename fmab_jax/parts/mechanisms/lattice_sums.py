"""Integer noise: where cumulants give its law, its tails, and what it hides of a reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from fmab_jax.sampling.samplers import SMOOTH_VARIANCE
from fmab_jax.sampling.shapes import Truths

# Precision of tails: chances, and frequencies, of less than e^-DROP are left out.
DROP = 36.0
# Laws that reach farther than this are wide: their chances are not listed.
MOST_RATIOS = 10**4
# Events that are looked at together.
_EVENTS = 16
# Least number of points of the inversion, and points per deviation.
_POINTS, _POINTS_PER_DEVIATION = 256, 80.0
# Largest excess kurtosis at which six cumulants give a symmetric law to 1e-6.
_SMOOTH_KURTOSIS = 0.02


def is_smooth(cumulants: Sequence[Array]) -> Truths:
    """Tells where six cumulants give the law of noise: to 5e-7 (tests/parts/test_mechanisms.py).

    Symmetric laws need less than `samplers.is_smooth` asks for.
    """
    second, fourth = cumulants[1], cumulants[3]
    return (second >= SMOOTH_VARIANCE) & (fourth <= _SMOOTH_KURTOSIS * second * second)


class Tails(NamedTuple):
    """A symmetric log-concave law of whole numbers, at whole numbers t >= 0, or arrays of them.

    Attributes:
        point: Returns log P(noise = t).
        tail: Returns log P(noise >= t).
    """

    point: Callable[[Any], Any]
    tail: Callable[[Any], Any]


def find_epsilon(law: Tails, delta: float) -> float:
    """Returns the smallest epsilon at which noise hides a shift by 1 up to delta > 0.

    The privacy loss of a log-concave law is monotone, so the worst event is a tail:
    delta(epsilon) is the largest P(noise >= t) - e^epsilon P(noise >= t + 1) over t.
    """
    log_delta = math.log(delta)
    low, high = 0, 1
    while law.point(high) > log_delta:
        high *= 2
    while True:
        step = (high - low) // _EVENTS + 1
        t = np.arange(low, high + step, step)
        point = law.point(t)
        # Other events ask for no epsilon; P(noise = t) falls with t.
        point = point[point > log_delta]
        if not len(point):
            return 0.0
        t = t[: len(point)]
        excess = point + np.log(-np.expm1(log_delta - point))
        epsilon = np.logaddexp(0.0, excess - law.tail(t + 1))
        # Epsilon rises with t up to the worst event, then falls.
        worst = int(epsilon.argmax())
        if step == 1:
            return float(epsilon[worst])
        low, high = max(0, int(t[worst]) - step), int(t[worst]) + step


def find_reach(find_tilt: Callable[[float], float], delta: float) -> int:
    """Returns a number that noise reaches with a chance of at most delta e^-DROP.

    Args:
        find_tilt: Returns where the cumulant-generating function has a value, or less.
        delta: > 0.
    """
    nats = DROP - math.log(delta)
    # Chernoff's bound. A third is close to the best value for normal and for exponential tails.
    return math.ceil(nats / 0.75 / find_tilt(nats / 3.0))


def recur(
    log_unit: float, above: np.ndarray, below: np.ndarray, coupling: np.ndarray, last: float
) -> Tails:
    """Returns tails by the ratios of neighbouring chances, from the last ratio down to the first.

    P(t) / P(t - 1) is e^log_unit ratio(t), and ratio(t) is above / (below + coupling ratio(t + 1)),
    at t = 1, 2, ... So none is too small for a float, and errors of ``last`` shrink from t to t.
    """
    unit = math.exp(log_unit)
    ratio, rest = last, unit * last / (1.0 - unit * last)
    ratios, rests = [], []
    for x, y, z in zip(*(a[::-1].tolist() for a in (above, below, coupling)), strict=True):
        ratio = x / (y + z * ratio)
        # P(noise >= t) / P(noise = t - 1), without the unit.
        rests.append(ratio * (1.0 + rest))
        ratios.append(ratio)
        rest = unit * rests[-1]
    log_ratio, log_rest = (log_unit + np.log(x[::-1]) for x in (ratios, rests))
    point = np.r_[0.0, np.cumsum(log_ratio)] - math.log1p(2.0 * rest)
    tail = np.r_[math.log1p(rest) - math.log1p(2.0 * rest), point[:-1] + log_rest]
    return Tails(lambda t: point[np.minimum(t, len(point) - 1)], lambda t: tail[t])


def invert(
    log_mgf: Callable[[Any], Any],
    find_tilt: Callable[[float], float],
    spread: Callable[[float], float],
    find_square: Callable[[float], float],
) -> Tails:
    """Returns tails by Fourier inversion of the tilted law, which has its mean near t.

    Args:
        log_mgf: The cumulant-generating function K, of complex numbers.
        find_tilt: Returns where K' has a value >= 0.
        spread: K'' of real tilts.
        find_square: Returns, for a tilt, sin^2 of half of a frequency beyond which the size of the
            tilted characteristic function is below e^-DROP; 1 or more for none.
    """

    def integrate(t: int, is_tail: bool) -> float:
        # The pole of a tail at tilt 0 must be far.
        tilt = find_tilt(max(float(t), math.sqrt(spread(0.0))))
        deviation, level = math.sqrt(spread(tilt)), float(log_mgf(tilt))
        points = math.ceil(_POINTS_PER_DEVIATION * deviation) + _POINTS
        step = 2.0 * math.pi / points
        half = math.asin(math.sqrt(min(find_square(tilt), 1.0)))
        last = min(math.ceil(2.0 * half / step), points // 2)
        number = np.arange(last + 1)
        z = tilt + 1j * step * number
        terms = np.exp(log_mgf(z) - level - 1j * step * ((number * t) % points))
        if is_tail:
            terms = terms / -np.expm1(-z)
        # Frequencies beyond pi are the complex conjugates of those before.
        weight = np.where((number == 0) | (2 * number == points), 1.0, 2.0)
        return level - tilt * t + math.log(float(np.sum(weight * terms.real)) / points)

    def vectorize(is_tail: bool) -> Callable[[Any], Any]:
        return np.vectorize(lambda t: integrate(int(t), is_tail), otypes=[float])

    return Tails(vectorize(False), vectorize(True))


def solve_divergence(divergence: Callable[[float], float], delta: float, high: float) -> float:
    """Returns the epsilon at which a decreasing divergence equals delta, at least 0."""
    from scipy.optimize import brentq

    if divergence(0.0) <= delta:
        return 0.0
    if divergence(high) >= delta:
        return high
    return float(brentq(lambda at: divergence(at) - delta, 0.0, high, xtol=1e-13))
