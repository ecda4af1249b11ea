"""The random draws of an epoch: one class for each way to sum over agents.

* `AgentSum`: agents of one mean, which all report.
* `Groups`: groups of agents of one weight and noise, which all report; means may differ.
* `ByAgent`: a row for each agent, which acts on it while messages travel.
* `OnReport`: some agents report in a round; each is drawn when it reports.
* `SplitArms`: agents share the arms out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fmab_jax.draws.agent_sum import AgentSum as AgentSum
from fmab_jax.draws.base import Draws as Draws
from fmab_jax.draws.by_agent import ByAgent as ByAgent
from fmab_jax.draws.groups import Groups as Groups
from fmab_jax.draws.on_report import OnReport as OnReport
from fmab_jax.draws.split_arms import SplitArms as SplitArms
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.mechanisms.base import Mechanism
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.rare import Table, table


def choose(
    algorithm: Any,
    problem: Problem,
    exchange: Exchange,
    padded_agents: int,
    constant_scale: bool,
    sum_agents: bool,
) -> Draws:
    """Returns the fastest way to draw a problem's agents exactly.

    Args:
        algorithm: An `Elimination`, which defines the noise of messages.
        problem: The problem, which defines the rewards.
        exchange: The exchange, which defines weights and waits.
        padded_agents: Rows that agents are padded to if each has its own row.
        constant_scale: Whether the noise has one scale in all epochs of a run.
        sum_agents: Whether to draw totals over agents, if that is exact.
    """
    agents, weights = problem.agents, exchange.weights
    noisy = algorithm.noisy and math.isfinite(problem.rewards.sensitivity)
    cumulative, secure = algorithm.remembers, algorithm.sums_securely
    presence, trim = problem.presence, algorithm.trimmed_share
    fields: dict[str, Any] = {
        "law": problem.rewards.bind()[0],
        "mechanism": algorithm.noise,
        "noisy": noisy,
        "remembers": cumulative,
        "secure": secure,
        "arms": problem.arms,
        "segments": problem.segments,
        "agents": np.float64(1.0 if exchange.alone else agents),
        "reporting": np.float64(exchange.reporting),
    }
    if algorithm.shares_arms:
        # At least two arms are in play: at most so many agents pull one arm.
        numbers = [1] if secure else range(agents // 2 + 3)
        return SplitArms(**fields, counts=_tabulate(algorithm.noise, numbers))
    if exchange.alone:
        return AgentSum(**fields, counts=None)
    partial, waits = exchange.reporting < agents, exchange.wait > 0
    ratios = algorithm.noise_ratios(exchange) if noisy else None
    padded = None if ratios is None else np.pad(ratios, (0, padded_agents - agents))
    private_waits = algorithm.waits_privately
    real = np.arange(padded_agents) < agents
    # Absent agents and trimmed messages need a row for each agent.
    single = presence is not None or trim > 0.0
    if partial and not waits and not single and (constant_scale or not cumulative or not noisy):
        return OnReport(**fields | {"real": real, "ratios": padded})
    by_group = (
        ((sum_agents and not single) or secure) and not partial and not (waits and private_waits)
    )
    groups = _group_agents(weights, ratios) if by_group else []
    sizes = np.array([len(group) for group in groups], np.float64)
    group_weights = np.array([weights[group[0]] for group in groups] if len(groups) > 1 else [])
    counts = _tabulate_in_row(algorithm.noise, [1] if secure else sizes) if by_group else None
    if ratios is not None:
        first_ratios = ratios[[group[0] for group in groups]] if by_group else padded
        fields["ratios"] = first_ratios
    if waits or partial or single or not (sum_agents and by_group):
        uniform = partial or len(groups) == 1
        agent_weights = np.pad(weights, (0, padded_agents - agents))
        fields |= {"real": real, "weights": np.empty(0) if uniform else agent_weights}
        fields |= {"noise_weights": group_weights}
        if presence is not None:
            fields["presence"] = presence.bind(agents, problem.rewards)
        if trim > 0.0:
            fields["trim"] = np.float64(trim)
        return ByAgent(
            **fields,
            partial_participation=partial,
            noise_in_rewards=noisy
            and (private_waits if waits else (partial or single) and not secure),
            counts=counts,
        )
    if problem.homogeneous and len(groups) == 1:
        return AgentSum(**fields, counts=counts)
    fields |= {"sizes": sizes, "weights": group_weights, "counts": counts}
    return Groups(**fields, **_list_members(groups, padded_agents, problem.homogeneous))


def _list_members(groups: list[np.ndarray], padded_agents: int, alike: bool) -> dict[str, Any]:
    """Returns the first agent of each group, and its members if their means differ."""
    membership = np.zeros((len(groups), 0 if alike else padded_agents))
    for row, group in zip(membership, [] if alike else groups, strict=False):
        row[group] = 1.0
    first = np.array([group[0] for group in groups], np.int32)
    return {"heterogeneous": not alike, "membership": table(membership), "first": first}


def _group_agents(weights: np.ndarray, ratios: np.ndarray | None) -> list[np.ndarray]:
    """Returns the agents of each weight, or of each weight and scale of noise."""
    if ratios is None:
        return [np.flatnonzero(weights == x) for x in np.unique(weights)]
    pairs, group = np.unique(np.stack([weights, ratios]), axis=1, return_inverse=True)
    return [np.flatnonzero(group.reshape(-1) == n) for n in range(pairs.shape[1])]


def _tabulate(mechanism: Mechanism, numbers: Iterable[float]) -> Table:
    """Returns one row for each number of noises in a sum."""
    return table(np.stack([mechanism.tabulate(int(number)) for number in numbers]))


def _tabulate_in_row(mechanism: Mechanism, numbers: Iterable[float]) -> Table:
    """Returns all of them in one row."""
    counts = _tabulate(mechanism, numbers)
    return Table(counts.values.reshape(1, -1), counts.row)
