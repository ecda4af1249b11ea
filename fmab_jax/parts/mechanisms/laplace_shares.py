"""What some shares of one Laplace noise hide of a reward, up to delta."""

from __future__ import annotations

import functools
import math

import numpy as np

from fmab_jax.parts.mechanisms.lattice_sums import solve_divergence

# Above this epsilon of the whole noise, the integral over a share loses its digits.
_MOST_WHOLE = 1e3
# Range of log |x| over which the law of a share is integrated, and the number of steps.
_CLOSEST, _FARTHEST, _STEPS = math.log(1e-300), math.log(750.0), 2**17


def find_share_epsilon(left: int, number: int, whole: float, delta: float) -> float:
    """Returns the epsilon of some shares of one noise, up to delta > 0; infinity for no bound.

    Args:
        left: How many of the equal shares hide the reward.
        number: How many the noise has.
        whole: Epsilon of the whole noise, > 0.
        delta: In [1e-12, 1).
    """
    return _compute_share_epsilon(left / number, whole, delta) if whole <= _MOST_WHOLE else math.inf


@functools.lru_cache(maxsize=256)
def _compute_share_epsilon(shape: float, shift: float, delta: float) -> float:
    """Returns the epsilon of a shift of a variance-gamma variable of shape at most 1.

    Its density has a pole at 0, or falls fastest there. So the integral is over log |x|.
    """
    from scipy.special import gammaln, kve

    order = shape - 0.5
    constant = 0.5 * math.log(math.pi) + float(gammaln(shape)) + order * math.log(2.0)

    def density(x: np.ndarray) -> np.ndarray:
        """Returns the logarithm of the density at x > 0."""
        log = np.maximum(np.log(x), _CLOSEST)
        return order * log + np.log(kve(abs(order), np.exp(log))) - x - constant

    log, step = np.linspace(_CLOSEST, _FARTHEST, _STEPS, retstep=True)
    x = np.exp(log)
    log_density = density(x)
    # The mass closer to 0 than float64 reaches must be less than delta.
    if log_density[0] + _CLOSEST - math.log(shape) > math.log(delta) - 10.0:
        return math.inf
    with np.errstate(divide="ignore"):
        gain = log_density - np.stack([density(np.abs(x - shift)), density(x + shift)])
    mass = np.exp(log_density + log) * step

    def divergence(epsilon: float) -> float:
        return float(np.sum(mass * -np.expm1(np.minimum(epsilon - gain, 0.0))))

    high = max(1.0, shift)
    while divergence(high) > delta:
        high *= 2.0
    return solve_divergence(divergence, delta, high)
