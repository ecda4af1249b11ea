"""The epsilon, up to a delta, of a reward in [0, 1] behind noises that add up."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.core.ledgers import BITS, LAPLACE
from fmab_jax.errors import count, real
from fmab_jax.mechanisms import MECHANISMS
from fmab_jax.mechanisms.gaussian import gaussian_epsilon
from fmab_jax.mechanisms.laplace_sums import sum_epsilon

DELTA = 1e-6
"""Default delta of (epsilon, delta)-privacy."""

LEAST_DELTA = 1e-12
"""Smallest delta that double precision resolves."""

# Sums of more variables count as sums of this many: an upper bound on epsilon.
_MOST_BITS = 1000
# Above this epsilon of the whole noise, the integral over a share loses its digits.
_MOST_WHOLE = 1e3
# Above this epsilon, 1 / (1 + e^epsilon) is 0 in float64.
_SURE = 700.0
# Range of log |x| over which the law of a share is integrated, and the number of steps.
_CLOSEST, _FARTHEST, _STEPS = math.log(1e-300), math.log(750.0), 2**17


def check_delta(value: float) -> float:
    """Returns a delta in [1e-12, 1), or refuses it."""
    return real("delta", value, LEAST_DELTA, 1.0, "give a chance such as 1e-6", open_high=True)


def laplace_sum_epsilon(agents: int, scale: float, delta: float = DELTA) -> float:
    """Returns the epsilon of a number in [0, 1] plus independent Laplace variables, up to delta.

    That is the smallest epsilon >= 0 with P(Y in A) <= e^epsilon P(1 + Y in A) + delta for every A,
    Y the sum: delta is the hockey-stick divergence between the law and its shift. The law is
    log-concave, so A is a half-line, and both sides follow from density and tail of Y, which are
    positive mixtures of Gamma laws.

    Args:
        agents: Number of variables, in [1, 1e7]; more than 1e6 count as 1e6, which bounds epsilon
            from above.
        scale: Scale of each variable, > 0; 1 / scale is the epsilon of one variable at delta 0.
        delta: In [1e-12, 1).

    Raises:
        ValueError: If an argument is out of range.
    """
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of variables")
    scale = real("scale", scale, 0.0, 1e300, "give the scale of a variable", open_low=True)
    return epsilon_at(1.0 / scale, agents, check_delta(delta))


def epsilon_at(
    epsilon: float,
    over: int,
    delta: float,
    law: str = LAPLACE,
    shares: tuple[float, ...] | None = None,
) -> float:
    """Returns the epsilon at delta of a row of a ledger.

    Args:
        epsilon: Epsilon of one noise at delta 0; where it is infinite, ``shares`` may still hide
            the reward up to delta.
        over: Number of noises that add up; 0 for unknown, which returns ``epsilon``.
        delta: In [1e-12, 1).
        law: Of the noises: "Laplace", or "bits", each 1 with chance 1 / (1 + e^-epsilon) where a
            reward is 1, and with 1 / (1 + e^epsilon) where it is 0. More than 1,000 bits count as
            1,000.
        shares: Epsilon of one Laplace variable, how many of its equal shares hide the reward, and
            how many it has. Of another mechanism:
            the scale of each noise.

    Example:
        One bit, and a sum of 50 bits. Then one half of a noise that two agents share: no epsilon
        holds without delta.

        >>> import math
        >>> from fmab_jax.analysis.privacy import epsilon_at
        >>> [round(epsilon_at(1.0, n, 1e-6, "bits"), 3) for n in (1, 50)]
        [1.0, 0.749]
        >>> round(epsilon_at(math.inf, 0, 1e-3, shares=(1.0, 1, 2)), 2)
        2.75
    """
    if law not in (LAPLACE, BITS) and shares is not None:
        # A file may name a mechanism of a plug-in that is not loaded.
        known = law.partition(":")[0] in MECHANISMS.find()
        return (
            MECHANISMS.parse(law, "mechanism").epsilon(shares[0], over, delta)
            if known
            else math.inf
        )
    if math.isinf(epsilon) and shares is not None:
        whole, left, number = shares
        return (
            _compute_share_epsilon(left / number, whole, delta) if whole <= _MOST_WHOLE else epsilon
        )
    if math.isinf(epsilon) or epsilon == 0.0 or not over:
        return float(epsilon)
    if law == BITS:
        return _compute_bits_epsilon(min(over, _MOST_BITS), float(epsilon), delta)
    return sum_epsilon(over, float(epsilon), delta)


class Leak(NamedTuple):
    """What changed rewards of one agent leak, in four terms; infinite for no bound.

    Attributes:
        epsilon: Of pure differential privacy.
        epsilon_at_delta: Of (epsilon, delta)-privacy.
        rho: Of zero-concentrated differential privacy.
        mu: Of Gaussian differential privacy.
    """

    epsilon: float
    epsilon_at_delta: float
    rho: float
    mu: float


def leak_of(
    epsilon: float,
    over: int,
    delta: float,
    law: str = LAPLACE,
    shares: tuple[float, ...] | None = None,
    *,
    rewards: int = 1,
    distinct: bool = False,
) -> Leak:
    """Returns the leak of changed rewards of one agent, for a row of a ledger.

    Pure epsilon gives rho = epsilon^2 / 2 (Bun and Steinke, TCC 2016, proposition 1.4), if the
    mechanism states no other rho. Of n rewards, wherever they are, group privacy has n epsilon
    (Dwork and Roth 2014, theorem 2.2), n^2 rho (Bun and Steinke, proposition 1.9) and n mu (Dong,
    Roth and Su, arXiv 1905.02383, theorem 2.14); in n different messages they compose to n epsilon,
    n rho and sqrt(n) mu (Dwork and Roth, theorem 3.16; Bun and Steinke, lemma 1.7; Dong et al.,
    corollary 3.3). Epsilon at delta is then the smallest of n epsilon, what rho gives (Bun and
    Steinke, proposition 1.3), what mu gives (Balle and Wang, ICML 2018, theorem 8), and what
    (epsilon, delta) of one reward gives.

    Args:
        epsilon: As of `epsilon_at`, with the four arguments that follow.
        over: Number of noises.
        delta: In [1e-12, 1).
        law: Of the noises.
        shares: Of a noise, or its scale.
        rewards: n >= 1.
        distinct: Whether the rewards are in n different messages.
    """

    def find_at(delta: float) -> float:
        return epsilon_at(epsilon, over, delta, law, shares)

    rho, mu = 0.5 * epsilon * epsilon, 0.0 if epsilon == 0.0 else math.inf
    if law not in (LAPLACE, BITS) and shares and law.partition(":")[0] in MECHANISMS.find():
        mechanism, noises = MECHANISMS.parse(law, "mechanism"), max(over, 1)
        rho = mechanism.zcdp(shares[0], noises)
        mu = mechanism.gdp(shares[0], noises)
    if rewards == 1:
        return Leak(float(epsilon), find_at(delta), rho, mu)
    factor = 1 if distinct else rewards
    if distinct:
        has_digits = delta / rewards >= LEAST_DELTA
        by_delta = rewards * find_at(delta / rewards) if has_digits else math.inf
    else:
        by_delta = rewards * _solve_group(find_at, delta, rewards)
    pure, rho = rewards * epsilon, rewards * factor * rho
    mu *= math.sqrt(rewards * factor)
    by_rho = rho + 2.0 * math.sqrt(-rho * math.log(delta)) if rho < math.inf else math.inf
    return Leak(pure, min(pure, by_rho, gaussian_epsilon(mu, delta), by_delta), rho, mu)


def _solve_group(find_at: Callable[[float], float], delta: float, size: int) -> float:
    """Returns the smallest e at which one reward leaks (e, delta e^(-(size - 1) e) / size).

    Then ``size`` rewards leak (size e, delta).
    """
    from scipy.optimize import brentq

    most = math.log(delta / size / LEAST_DELTA) / (size - 1)
    if most <= 0.0 or find_at(LEAST_DELTA) > most:
        return math.inf

    def excess(epsilon: float) -> float:
        return find_at(max(delta * math.exp(-(size - 1) * epsilon) / size, LEAST_DELTA)) - epsilon

    return 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, most, xtol=1e-12)) + 1e-12


@functools.lru_cache(maxsize=4096)
def _compute_bits_epsilon(terms: int, epsilon: float, delta: float) -> float:
    """Returns the epsilon of one bit in the sum of ``terms`` bits.

    The hockey-stick divergence is jointly convex, so it is largest where all rewards are 0 or 1; it
    is the largest over the number of other bits that are 1.
    """
    from scipy.stats import binom

    if epsilon > _SURE:
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

    return min(_solve_divergence(divergence, delta, epsilon), epsilon)


def _solve_divergence(divergence: Callable[[float], float], delta: float, high: float) -> float:
    """Returns the epsilon at which a decreasing divergence equals delta, at least 0."""
    from scipy.optimize import brentq

    if divergence(0.0) <= delta:
        return 0.0
    if divergence(high) >= delta:
        return high
    return float(brentq(lambda at: divergence(at) - delta, 0.0, high, xtol=1e-13))


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
    return _solve_divergence(divergence, delta, high)
