"""What rows of a ledger leak: arithmetic over their noises."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from fmab_jax.errors import count, real
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges.table import AGENTS_MAX
from fmab_jax.parts.mechanisms import DELTA as DELTA
from fmab_jax.parts.mechanisms.gaussian_noise import gaussian_epsilon
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.mechanisms.laplace_shares import find_share_epsilon
from fmab_jax.records.ledger import Disclosure, Noise

LEAST_DELTA = 1e-12
"""Smallest delta that double precision resolves."""


class Leak(NamedTuple):
    """What a view tells about one reward, over a whole run: (epsilon, delta)-privacy.

    Attributes:
        epsilon: Against whoever learns most; infinite for no bound.
        delta: Delta up to which epsilon holds; 0 for pure differential privacy.
        row: The row of whoever learns most; None where nobody sees anything.
    """

    epsilon: float
    delta: float
    row: Disclosure | None


class Terms(NamedTuple):
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
    return noise_epsilon((Noise(LAPLACE, scale, agents),), check_delta(delta))


def leak(rows: Iterable[Disclosure], view: ViewKind, delta: float = DELTA) -> Leak | None:
    """Returns what a view leaks about one reward, by the rows of a ledger.

    Args:
        rows: A ledger. Rows about one round alone do not count.
        view: MESSAGES: everybody who gets a message or a sum of them, pure epsilon where the noise
            has one. SUM: who sees only sums over agents. ACTIONS: who sees only the arms that
            agents pull. In the last two, sums of several noises count up to ``delta``, where they
            hide more than one of them.
        delta: In [1e-12, 1).

    Returns:
        Epsilon with the delta at which it holds against every viewer. With nothing sent it is 0 in
        MESSAGES. None where nobody has this view.
    """
    if view is ViewKind.MESSAGES:
        seen = [row for row in rows if row.view is not ViewKind.ACTIONS and not row.is_one_round]
    else:
        seen = [row for row in rows if row.view is view and not row.is_one_round]
    if not seen:
        return Leak(0.0, 0.0, None) if view is ViewKind.MESSAGES else None
    leaks = []
    for row in seen:
        is_pure = row.epsilon < math.inf and (view is ViewKind.MESSAGES or row.number == 1)
        at = 0.0 if is_pure or not row.noises else delta
        leaks.append(Leak(epsilon_at(row, at), at, row))
    worst = max(leaks, key=lambda leak: leak.epsilon)
    is_bounded = worst.epsilon < math.inf
    return worst._replace(delta=max(leak.delta for leak in leaks) if is_bounded else 0.0)


def epsilon_at(row: Disclosure, delta: float) -> float:
    """Returns the epsilon of a row at delta, which is 0 or in [1e-12, 1)."""
    if delta == 0.0 or not row.noises:
        return row.epsilon
    return min(row.epsilon, noise_epsilon(row.noises, delta))


def noise_epsilon(noises: tuple[Noise, ...], delta: float) -> float:
    """Returns the epsilon at which independent noises hide a reward up to delta > 0.

    It is the smallest of the bounds by noises of one scale.

    Example:
        One bit, and a sum of 50 bits. Then one half of a noise that two agents share: no epsilon
        holds without delta.

        >>> from fmab_jax.analysis.accountant import noise_epsilon
        >>> from fmab_jax.records.ledger import Noise
        >>> from fmab_jax.parts.mechanisms.bits import BITS
        >>> from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
        >>> [round(noise_epsilon((Noise(BITS, 1.0, n),), 1e-6), 3) for n in (1, 50)]
        [1.0, 0.749]
        >>> round(noise_epsilon((Noise(LAPLACE, 1.0, shares=(1, 2)),), 1e-3), 2)
        2.75
    """
    return min(_find_epsilon(noise, delta) for noise in _list_bounds(noises))


def _list_bounds(noises: tuple[Noise, ...]) -> list[Noise]:
    """Returns noises of one scale that hide no more than all of them together.

    Noise hides a reward whoever adds it. If the law is nested, noise of a larger scale counts as
    noise of a smaller one; if not, the largest noises alone count.
    """
    order = sorted(noises, key=lambda noise: -noise.scale)
    if not order[0].mechanism.nested:
        return order[:1]
    totals = itertools.accumulate(noise.number for noise in order)
    return [noise._replace(number=total) for noise, total in zip(order, totals, strict=True)]


@functools.lru_cache(maxsize=2**16)
def _find_epsilon(noise: Noise, delta: float) -> float:
    if noise.shares is not None:
        return find_share_epsilon(*noise.shares, 1.0 / noise.scale, delta)
    return noise.mechanism.epsilon(noise.scale, noise.number, delta)


def leak_terms(
    row: Disclosure, delta: float, *, rewards: int = 1, is_distinct: bool = False
) -> Terms:
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
        row: The row.
        delta: In [1e-12, 1).
        rewards: n >= 1.
        is_distinct: Whether the rewards are in n different messages.
    """

    def find_at(delta: float) -> float:
        return epsilon_at(row, delta)

    pure, noises = row.epsilon, row.noises
    rho, mu = 0.5 * pure * pure, 0.0 if pure == 0.0 else math.inf
    if noises and noises[0].shares is None:
        bounds = [(noise.mechanism, noise.scale, noise.number) for noise in _list_bounds(noises)]
        rho = min(rho, *(law.zcdp(scale, number) for law, scale, number in bounds))
        mu = min(mu, *(law.gdp(scale, number) for law, scale, number in bounds))
    if rewards == 1:
        return Terms(pure, find_at(delta), rho, mu)
    factor = 1 if is_distinct else rewards
    if is_distinct:
        has_digits = delta / rewards >= LEAST_DELTA
        by_delta = rewards * find_at(delta / rewards) if has_digits else math.inf
    else:
        by_delta = rewards * _solve_group(find_at, delta, rewards)
    pure, rho = rewards * pure, rewards * factor * rho
    mu *= math.sqrt(rewards * factor)
    by_rho = rho + 2.0 * math.sqrt(-rho * math.log(delta)) if rho < math.inf else math.inf
    return Terms(pure, min(pure, by_rho, gaussian_epsilon(mu, delta), by_delta), rho, mu)


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
