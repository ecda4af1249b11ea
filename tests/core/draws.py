"""Laws that are compared without a draw, and draws that are compared with laws."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from fmab_jax.core import keys

ALPHA = 1e-6
LATTICE = 2**52  # uniforms are (i + 1/2) / 2^52
MILLION = 10**6


def words(seed=0, round_=1, stream=keys.REWARD):
    """Returns the key words of a stream of root seed 0."""
    return keys.stream_key(keys.seed_key(jnp.uint32(0), jnp.uint32(seed)), round_, stream)


def induced_cdf(at_most, size):
    """Returns P(X <= k) of the law that a quantile function induces, for so many k.

    The quantile is a monotone function of the lattice of uniforms, so the last lattice point whose
    quantile is at most k, found by bisection, is P(X <= k) exactly. `at_most` tells where it is.
    """
    low, high = np.full(size, -1), np.full(size, LATTICE)
    while (high - low > 1).any():
        middle = (low + high) // 2
        inside = np.asarray(at_most((np.clip(middle, 0, LATTICE - 1) + 0.5) / LATTICE))
        going = high - low > 1
        low, high = np.where(going & inside, middle, low), np.where(going & ~inside, middle, high)
    return (low + 1) / LATTICE


def two_sided(z):
    """Returns the p-value of a standard normal statistic."""
    return float(2 * stats.norm.sf(abs(z)))
