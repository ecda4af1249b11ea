"""Leaves out candidates that theorems rule out, where the means are fixed.

A candidate's expected regret has a lower bound by its structure: the paper's elimination pulls all
arms in its first epoch, and uniform play in all slots. If this exceeds the proven upper bound of a
candidate that keeps the budgets, the race need not run it. Asymptotic lower bounds are of no use
here: less may be lost at a horizon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.algorithms.uniform_play import UniformPlay
from fmab_jax.analysis import theory
from fmab_jax.analysis.epochs import plan_epochs
from fmab_jax.core.instances import TIE
from fmab_jax.parameters import parameters_of
from fmab_jax.planning.candidates import Candidate, Setting
from fmab_jax.run.configs import build_exchange

# Parameters that the theorems cover; all others must be the default.
_COVERED = {"epsilon", "epsilon_message", "rounds", "schedule_gap", "participation"}
_COVERED |= {"graph", "components"}


def prune(candidates: Sequence[Candidate], setting: Setting) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates that may be the best, and a note on the others."""
    problem = setting.problem
    is_fixed = problem.means is not None and not problem.drawn
    # Theorems are about means that stay, and agents that are all present and honest.
    has_theory = is_fixed and problem.world is None and problem.presence is None
    if not has_theory or not 0.0 <= problem.rewards.low <= problem.rewards.high <= 1.0:
        return [*candidates], []
    bounds = [bound_regret(candidate.algorithm, setting) for candidate in candidates]
    best = min(
        (high for (_, high), x in zip(bounds, candidates, strict=True) if x.is_sure),
        default=math.inf,
    )
    losers = [x.label for (low, _), x in zip(bounds, candidates, strict=True) if low > best]
    if not losers:
        return [*candidates], []
    leader = next(
        x for (_, high), x in zip(bounds, candidates, strict=True) if high == best and x.is_sure
    )
    note = f"theorems rule out {', '.join(losers)}: each loses more in expectation than "
    note += f"{leader.label}, at most {best:,.0f}"
    return [x for x in candidates if x.label not in losers], [note]


def bound_regret(algorithm: Algorithm, setting: Setting) -> tuple[float, float]:
    """Returns bounds of expected regret at the horizon; 0 and infinity where there are none."""
    problem, horizon = setting.problem, setting.horizon
    means = np.asarray(problem.means).mean(axis=0)
    gaps = means.max() - means
    gaps[gaps < TIE] = 0.0
    if isinstance(algorithm, UniformPlay):
        exact = problem.agents * horizon * float(gaps.mean())
        return exact * (1.0 - 1e-9), exact * (1.0 + 1e-9)
    if not isinstance(algorithm, PaperElimination) or not algorithm.has_theorems():
        return 0.0, math.inf
    if isinstance(algorithm.epsilon_message, tuple):
        return 0.0, math.inf
    parameters = parameters_of(type(algorithm)).items()
    if any(getattr(algorithm, n) != p.default for n, p in parameters if n not in _COVERED):
        return 0.0, math.inf
    exchange = build_exchange(algorithm, problem.agents)
    epsilon = algorithm.privacy(exchange)["epsilon"]
    rounds, gap = algorithm.rounds, algorithm.schedule_gap if algorithm.rounds else None
    high = theory.bounds(
        gaps,
        exchange,
        horizon,
        epsilon,
        rounds=rounds,
        schedule_gap=gap,
        heterogeneous=not problem.homogeneous,
    ).regret
    schedule = plan_epochs(gaps, exchange.reporting, horizon, epsilon, rounds, gap)
    first = float(schedule.table.fewest_pulls[0])
    # If the horizon ends the first epoch, some arms may not have their turn.
    is_whole = len(gaps) * first <= horizon
    return problem.agents * first * float(gaps.sum()) if is_whole else 0.0, high
