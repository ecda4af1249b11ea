"""What theorems say of a candidate's large losses before it runs.

`bound_tail` bounds how far above some limit the regret of a run can be expected, for every instance
that a problem can have: by Theorems 1 to 4 for the paper's elimination, and by Theorem 5 (c) for
KL-SE (docs/theory.md).
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm
from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.algorithms.families.noisy_messages import NoisyMessages
from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.analysis import theory
from fmab_jax.analysis.epochs import pair_failure, plan_epochs
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.planning.least import get_gaps
from fmab_jax.planning.theorem5 import bound_likelihood, find_supremum
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import Config
from fmab_jax.sampling import normal

# Parameters that the theorems cover; all others must be the default.
_NETWORK = {"graph", "components"}
_COVERED_PAPER = {"epsilon", "epsilon_message", "rounds", "schedule_gap", "participation"}
_COVERED_PAPER |= _NETWORK | {"private_waiting"}
_COVERED_KL = {"epsilon", "growth", "first", "rounds", "failure", "secure", "split"}
_COVERED_KL |= _NETWORK | {"participation", "protocol", "tolerance"}
# A theorem is of use if its limit and excess are at most these parts of the largest regret.
_USEFUL_LIMIT, _USEFUL_EXCESS = 0.5, 0.01


class Tail(NamedTuple):
    """A bound on the regret of a run, for every instance of a problem.

    Attributes:
        limit: Regret that a run seldom exceeds.
        excess: Bound on the expectation of max(0, regret - limit), given any instance.
        source: The theorem; "" where the limit is the largest regret that there can be.
        largest: Agents x horizon x the largest gap, which no run exceeds.
    """

    limit: float
    excess: float
    source: str
    largest: float

    def without_theorem(self) -> Tail:
        """Returns the bound that needs no theorem."""
        return Tail(self.largest, 0.0, "", self.largest)


def bound_tail(config: Config) -> Tail:
    """Bounds the regret of a run at the horizon, summed over agents, for every instance.

    Without a theorem, or where it is of no use, the limit is agents x horizon x the largest gap.

    Args:
        config: The candidate on its problem.
    """
    problem, algorithm = config.problem, config.algorithm
    gap = find_largest_gap(problem)
    largest = problem.agents * config.horizon * gap
    tail = None
    if problem.arms > 1 and gap > 0.0 and _has_plain_problem(problem):
        if _is_covered(algorithm, PaperElimination, _COVERED_PAPER):
            tail = _bound_paper(config, gap)
        elif _is_covered(algorithm, LikelihoodElimination, _COVERED_KL):
            found = bound_likelihood(config, gap)
            tail = found and Tail(*found, "Theorem 5", largest)
    if tail and tail.limit < _USEFUL_LIMIT * largest and tail.excess < _USEFUL_EXCESS * largest:
        return tail
    return Tail(largest, 0.0, "", largest)


def find_largest_gap(problem: Problem) -> float:
    """Returns a bound of the gaps that an instance can have."""
    if problem.means is None:
        return 1.0
    means, law = problem.means.mean(axis=0), problem.rewards
    if problem.world is not None:
        # `World.means` are in [0, 1], or between the first ones.
        means = np.append(means, (0.0, 1.0))
    gap = float(means.max() - means.min()) + 2.0 * normal.LARGEST * problem.means_error
    return min(gap, law.high - law.low)


def _has_plain_problem(problem: Problem) -> bool:
    """Tells whether theorems are about the problem: means that stay, and all agents present."""
    law = problem.rewards
    is_unit = 0.0 <= law.low <= law.high <= 1.0
    return problem.world is None and problem.presence is None and is_unit


def _is_covered(algorithm: Algorithm, family: type[Any], covered: set[str]) -> bool:
    """Tells whether the theorems of a family are about a configured algorithm."""
    owner = type(algorithm)
    # A class of one's own may restate values or exchanges, which no equation shows.
    if not isinstance(algorithm, family) or ALGORITHMS.shipped.get(owner.name) is not owner:
        return False
    equations = ("pulls_per_arm", "radius", "eliminates", "precompute", "worse", "noise_scale")
    for name in (*equations, "resolve_params", "budget"):
        if inspect.getattr_static(owner, name) is not inspect.getattr_static(family, name):
            return False
    epsilons = (getattr(algorithm, name, UNSET) for name in ("epsilon", "epsilon_message"))
    return (
        isinstance(algorithm, NoisyMessages)
        and algorithm.noise == LAPLACE
        and not any(isinstance(epsilon, tuple) for epsilon in epsilons)
        and all(
            name in covered or getattr(algorithm, name) == parameter.default
            for name, parameter in parameters_of(owner).items()
        )
    )


def _bound_paper(config: Config, gap: float) -> Tail | None:
    """Returns the bound of Theorems 1 to 4; None without one."""
    algorithm, problem, exchange = config.algorithm, config.problem, config.exchange
    assert isinstance(algorithm, PaperElimination)
    T, M, K = config.horizon, problem.agents, problem.arms
    epsilon, rounds = algorithm.privacy(exchange)["epsilon"], algorithm.rounds
    source, gaps = "Theorems 1 to 4", get_gaps(problem)
    differs = not problem.homogeneous
    if gaps is not None:
        schedule_gap = algorithm.schedule_gap if rounds else None
        found = theory.bounds(
            gaps,
            exchange,
            T,
            epsilon,
            rounds=rounds,
            schedule_gap=schedule_gap,
            heterogeneous=differs,
        )
        limit = found.regret_exploration + found.regret_waiting + found.regret_commitment
        return Tail(limit, found.regret_failure, source, M * T * gap)
    # With a budget, the schedule depends on the instance.
    is_trusted = exchange.uniform and not (differs and exchange.reporting < M)
    if rounds is not None or not is_trusted:
        return None
    # Of gaps that are 0, all arms stay in play: S_r is largest.
    blank = np.zeros(K)
    table = plan_epochs(blank, exchange.reporting, T, epsilon, None, None).table
    surely = theory.bounds(blank, exchange, T, epsilon).rounds_surely
    failure = 2 * (K - 1) * pair_failure(K, exchange.reporting, epsilon, T, int(surely))
    # An arm with a gap of at least this is gone after the epoch.
    reach = np.minimum.accumulate(4.0 * table.radius)
    highest = np.minimum(np.append(np.inf, reach), gap)
    pulls = M * np.minimum(np.append(table.most_pulls, T), T)
    waits = exchange.wait * M * float(highest[: int(surely) + 1].sum())
    limit = find_supremum(highest, pulls, K - 1, float(M * T)) + waits
    return Tail(limit, min(1.0, failure) * M * T * gap, source, M * T * gap)
