"""Random bits: each reward is released as one bit, which tells the truth with some chance."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from fmab_jax.parts.mechanisms.lattice_sums import solve_divergence

# Sums of more bits count as sums of this many: an upper bound on epsilon.
_MOST_BITS = 1000
# math.exp overflows above 709.78.
_MAX_EPSILON = 700.0


@dataclass(frozen=True)
class RandomBits:
    """Bits that are 1 with chance 1 / (1 + e^-epsilon) where a reward is 1.

    Where a reward is 0 the chance is 1 / (1 + e^epsilon), and mixed in between. The scale is
    1 / epsilon. No message adds this noise: it is a law for ledgers, and not a `Mechanism`.
    """

    nested = False

    def text(self) -> str:
        """Returns "bits"."""
        return "bits"

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns 1 / scale, or less up to delta; more than 1,000 bits count as 1,000."""
        pure = 1.0 / scale
        if delta == 0.0:
            return pure
        return _compute_bits_epsilon(min(count, _MOST_BITS), pure, delta)

    def zcdp(self, scale: float, count: int) -> float:
        """Returns epsilon^2 / 2 of one bit (Bun and Steinke, TCC 2016, proposition 1.4)."""
        return 0.5 / (scale * scale)

    def gdp(self, scale: float, count: int) -> float:
        """Returns infinity: nothing is known."""
        return math.inf


BITS = RandomBits()
"""The law of random bits."""


@functools.lru_cache(maxsize=4096)
def _compute_bits_epsilon(terms: int, epsilon: float, delta: float) -> float:
    """Returns the epsilon of one bit in the sum of ``terms`` bits.

    The hockey-stick divergence is jointly convex, so it is largest where all rewards are 0 or 1; it
    is the largest over the number of other bits that are 1.
    """
    from scipy.stats import binom

    if epsilon > _MAX_EPSILON:
        return epsilon
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    # 1 - truth would lose its digits where epsilon is large.
    lie = truth * math.exp(-epsilon)
    laws = []
    for ones in range(terms):
        zeros = terms - 1 - ones
        ones_law = binom.pmf(np.arange(ones + 1), ones, truth)
        remainder = np.convolve(ones_law, binom.pmf(np.arange(zeros + 1), zeros, lie))
        zero_law, one_law = np.append(remainder, 0.0), np.append(0.0, remainder)
        laws.append((lie * zero_law + truth * one_law, truth * zero_law + lie * one_law))
    # [ones, sum]; swapping zeros and ones gives the other direction.
    reward_one, reward_zero = (np.stack(side) for side in zip(*laws, strict=True))

    def divergence(level: float) -> float:
        return float(
            np.max(np.sum(np.maximum(reward_one - math.exp(level) * reward_zero, 0.0), axis=1))
        )

    return min(solve_divergence(divergence, delta, epsilon), epsilon)
