"""What a theorem says of a candidate's large losses before it runs.

`bound_tail` bounds how far above some limit the regret of a run can be expected, for every instance
that a problem can have: by Theorem 5 (c) for KL-SE (docs/theory.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm
from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.parameters import parameters_of
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.planning.theorem5 import bound_likelihood
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import Config
from fmab_jax.sampling import normal

# Parameters that the theorem covers; all others must be the default.
_COVERED = {"epsilon", "growth", "first", "rounds", "failure", "secure", "split", "participation"}
_COVERED |= {"graph", "components", "protocol", "tolerance"}
# The theorem is of use if its limit and excess are at most these parts of the largest regret.
_USEFUL_LIMIT, _USEFUL_EXCESS = 0.5, 0.01


class Tail(NamedTuple):
    """A bound on the regret of a run, for every instance of a problem.

    Attributes:
        limit: Regret that a run seldom exceeds.
        excess: Bound on the expectation of max(0, regret - limit), given any instance.
        source: "Theorem 5"; "" where the limit is the largest regret that there can be.
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

    Without the theorem, or where it is of no use, the limit is agents x horizon x the largest gap.

    Args:
        config: The candidate on its problem.
    """
    problem = config.problem
    gap = find_largest_gap(problem)
    largest = problem.agents * config.horizon * gap
    if gap > 0.0 and _has_plain_problem(problem) and _is_covered(config.algorithm):
        limit, excess = bound_likelihood(config, gap) or (largest, 0.0)
        if limit < _USEFUL_LIMIT * largest and excess < _USEFUL_EXCESS * largest:
            return Tail(limit, excess, "Theorem 5", largest)
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
    """Tells whether the theorem is about the problem: means that stay, and all agents present."""
    law = problem.rewards
    is_unit = 0.0 <= law.low <= law.high <= 1.0
    return problem.arms > 1 and problem.world is None and problem.presence is None and is_unit


def _is_covered(algorithm: Algorithm) -> bool:
    """Tells whether the theorem is about a configured algorithm."""
    # A class of one's own may restate equations, values or exchanges.
    owner = type(algorithm)
    if ALGORITHMS.shipped.get(owner.name) is not owner:
        return False
    return (
        isinstance(algorithm, LikelihoodElimination)
        and algorithm.noise == LAPLACE
        and not isinstance(algorithm.epsilon, tuple)
        and all(
            name in _COVERED or getattr(algorithm, name) == parameter.default
            for name, parameter in parameters_of(owner).items()
        )
    )
