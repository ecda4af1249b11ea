"""What an epoch draws: one class for each way in which agents add up.

* `Summed`: agents of one mean, all heard.
* `Groups`: groups of agents of one weight, all heard; means may differ.
* `ByAgent`: a row for each agent, which acts on it while messages travel.
* `SinceHeard`: some agents report in a round; each is drawn when it does.
* `SplitArms`: agents share the arms out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fmab_jax.core import laplace
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.problems import Problem
from fmab_jax.core.rare import Table, table
from fmab_jax.draws.base import Draws as Draws
from fmab_jax.draws.by_agent import ByAgent as ByAgent
from fmab_jax.draws.groups import Groups as Groups
from fmab_jax.draws.since_heard import SinceHeard as SinceHeard
from fmab_jax.draws.split_arms import SplitArms as SplitArms
from fmab_jax.draws.summed import Summed as Summed


def choose(
    algorithm: Any, problem: Problem, exchange: Exchange, room: int, lasting: bool, sum_agents: bool
) -> Draws:
    """Returns the fastest way to draw a problem's agents exactly.

    Args:
        algorithm: An `Elimination`, which says how messages carry noise.
        problem: Whose rewards.
        exchange: Who is heard, and how long agents wait.
        room: Rows that agents are padded to where they have one each.
        lasting: Whether noise has one scale in all epochs of a run.
        sum_agents: Draw totals over agents, where that is exact.
    """
    agents, weights = problem.agents, exchange.weights
    noisy = algorithm.noisy and math.isfinite(problem.rewards.sensitivity)
    remembers, secure = algorithm.remembers, algorithm.sums_securely
    given: dict[str, Any] = {
        "law": problem.rewards.bind()[0],
        "noisy": noisy,
        "remembers": remembers,
        "secure": secure,
        "arms": problem.arms,
        "agents": np.float64(1.0 if exchange.alone else agents),
        "reporting": np.float64(exchange.reporting),
    }
    if algorithm.shares_arms:
        # At least two arms are in play, so that no more agents pull one arm.
        numbers = [1] if secure else range(agents // 2 + 3)
        return SplitArms(**given, shapes=_shapes(numbers))
    if exchange.alone:
        return Summed(**given, shape=None)
    partial, waits = exchange.reporting < agents, exchange.wait > 0
    private_waits = algorithm.waits_privately
    real = np.arange(room) < agents
    if partial and not waits and (lasting or not remembers or not noisy):
        return SinceHeard(**given | {"real": real})
    by_group = (sum_agents or secure) and not partial and not (waits and private_waits)
    groups = [np.flatnonzero(weights == x) for x in np.unique(weights)] if by_group else []
    sizes = np.array([len(group) for group in groups], np.float64)
    of_groups: Any = np.array([weights[group[0]] for group in groups] if len(groups) > 1 else [])
    shapes = _row_of_shapes([1] if secure else sizes) if by_group else None
    if waits or partial or not (sum_agents and by_group):
        uniform = partial or len(groups) == 1
        of_agents = np.pad(weights, (0, room - agents))
        given |= {"real": real, "weights": np.empty(0) if uniform else of_agents}
        return ByAgent(
            **given,
            partial=partial,
            merged=noisy and (private_waits if waits else partial),
            noise_weights=of_groups,
            shapes=shapes,
        )
    if problem.homogeneous and len(groups) == 1:
        return Summed(**given, shape=shapes)
    differ = not problem.homogeneous
    member = np.zeros((len(groups), room if differ else 0))
    for row, group in zip(member, groups if differ else [], strict=False):
        row[group] = 1.0
    first = np.array([group[0] for group in groups], np.int32)
    given |= {"sizes": sizes, "weights": of_groups, "first": first, "shapes": shapes}
    return Groups(**given, differ=differ, member=table(member))


def _shapes(numbers: Any) -> Table:
    """Returns a row for the sum of so many Laplace variables."""
    rows = [laplace.laplace_sum_shape(int(number)) for number in numbers]
    return table(np.stack(rows))


def _row_of_shapes(numbers: Any) -> Table:
    """Returns one row of them all."""
    found = _shapes(numbers)
    return Table(found.values.reshape(1, -1), found.row)
