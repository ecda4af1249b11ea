"""Roots of a continuous function between two points."""

from __future__ import annotations

import math
from collections.abc import Callable

# Relative tolerance of a root: four roundings.
_RELATIVE = 4.0 * 2.0**-52
_MOST_STEPS = 100


def find_root(
    function: Callable[[float], float], low: float, high: float, *, tolerance: float = 2e-12
) -> float:
    """Returns a root of a function whose signs differ at the two ends, by Brent's method.

    It takes the same steps as `scipy.optimize.brentq`, so that it returns the same number, but
    without the import of scipy.optimize, which takes longer than all of a command's roots.

    Args:
        function: Continuous on [low, high].
        low: One end.
        high: The other end.
        tolerance: Of the root, beside four roundings.

    Raises:
        ValueError: If the signs at the ends are equal.
        ArithmeticError: If a function that is not continuous, or not a number, gives no root.

    Source:
        R. P. Brent, Algorithms for Minimization Without Derivatives, 1973, chapter 4.
    """
    previous, current = float(low), float(high)
    value_before, value = float(function(previous)), float(function(current))
    if value_before == 0.0:
        return previous
    if value == 0.0:
        return current
    if math.copysign(1.0, value_before) == math.copysign(1.0, value):
        raise ValueError("the function has the same sign at both ends")
    # The root lies between the current point and the opposite one.
    opposite = value_opposite = step = step_before = 0.0
    for _ in range(_MOST_STEPS):
        if math.isnan(value):
            break
        if value_before != 0.0 and math.copysign(1.0, value_before) != math.copysign(1.0, value):
            opposite, value_opposite = previous, value_before
            step_before = step = current - previous
        if abs(value_opposite) < abs(value):
            previous, current, opposite = current, opposite, current
            value_before, value, value_opposite = value, value_opposite, value
        delta = (tolerance + _RELATIVE * abs(current)) / 2.0
        half = (opposite - current) / 2.0
        if value == 0.0 or abs(half) < delta:
            return current
        trial = math.inf
        if abs(step_before) > delta and abs(value) < abs(value_before):
            if previous == opposite:  # by a line
                trial = -value * (current - previous) / (value - value_before)
            else:  # by the inverse of a parabola
                slope = (value_before - value) / (previous - current)
                other = (value_opposite - value) / (opposite - current)
                change = value_opposite * other - value_before * slope
                bottom = other * slope * (value_opposite - value_before)
                trial = -value * change / bottom if bottom else math.inf
        if 2.0 * abs(trial) < min(abs(step_before), 3.0 * abs(half) - delta):
            step_before, step = step, trial
        else:  # halve
            step_before = step = half
        previous, value_before = current, value
        current += step if abs(step) > delta else math.copysign(delta, half)
        value = float(function(current))
    raise ArithmeticError("no root is found")
