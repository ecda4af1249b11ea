"""The random draws of an epoch: one class for each way to sum over agents.

* `AgentSum`: agents of one mean, which all report.
* `Groups`: groups of agents of one weight and noise, which all report; means may differ.
* `ByAgent`: a row for each agent, which acts on it while messages travel.
* `OnReport`: some agents report in a round; each is drawn when it reports.
* `SplitArms`: agents split the arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fmab_jax.draws.agent_sum import AgentSum as AgentSum
from fmab_jax.draws.base import Draws as Draws
from fmab_jax.draws.by_agent import ByAgent as ByAgent
from fmab_jax.draws.groups import Groups as Groups
from fmab_jax.draws.on_report import OnReport as OnReport
from fmab_jax.draws.split_arms import SplitArms as SplitArms
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.lookup import Table, table


def choose(
    algorithm: Any,
    problem: Problem,
    exchange: Exchange,
    padded_agents: int,
    constant_scale: bool,
    sum_agents: bool,
) -> Draws:
    """Returns the fastest way to draw a problem's agents exactly: the first case that holds.

    Args:
        algorithm: An `Elimination`, which defines the noise of messages.
        problem: The problem, which defines the rewards.
        exchange: The exchange, which defines weights and waits.
        padded_agents: Rows that agents are padded to if each has its own row.
        constant_scale: Whether the noise has one scale in all epochs of a run.
        sum_agents: Whether to draw totals over agents, if that is exact.
    """
    case = _Case(algorithm, problem, exchange, padded_agents, sum_agents)
    partial, waits, by_row = case.partial, case.waits, case.by_row
    # Noise that is drawn late, for several epochs, has one scale.
    late = constant_scale or not algorithm.remembers or not case.noisy
    cases: tuple[tuple[bool, Callable[[_Case], Draws]], ...] = (
        (algorithm.shares_arms, _split_arms),
        (exchange.alone, _draw_sum),
        (partial and late and not (waits or by_row), _draw_on_report),
        (partial or waits or by_row or not sum_agents, _draw_by_agent),
        (problem.homogeneous and len(case.groups) == 1, _draw_sum),
        (True, _draw_groups),
    )
    return next(build for holds, build in cases if holds)(case)


class _Case:
    """A configuration, as the draws see it.

    Attributes:
        noisy: Whether messages carry noise.
        partial: Whether only some agents report in a round.
        waits: Whether agents act while messages travel.
        by_row: Whether the aggregate needs a row for each agent: of absent agents, or trimmed.
        real: [row] whether a row is an agent.
        groups: Agents of each weight and scale of noise; none where noise is not drawn as sums.
        weights: [group] weight of an agent; [0] for at most one group.
        sizes: [group] number of agents.
        counts: Noise of each group, in one row; None without groups.
        fields: Fields of all draws.
    """

    def __init__(
        self,
        algorithm: Any,
        problem: Problem,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> None:
        self.algorithm, self.problem, self.exchange = algorithm, problem, exchange
        self.padded_agents, agents, secure = padded_agents, problem.agents, algorithm.sums_securely
        self.noisy = algorithm.noisy and math.isfinite(problem.rewards.sensitivity)
        self.partial, self.waits = exchange.reporting < agents, exchange.wait > 0
        self.by_row = problem.presence is not None or algorithm.trimmed_share > 0.0
        self.real: Any = np.arange(padded_agents) < agents
        self.fields: dict[str, Any] = {
            "law": problem.rewards.bind()[0],
            "mechanism": algorithm.noise,
            "noisy": self.noisy,
            "remembers": algorithm.remembers,
            "secure": secure,
            "arms": problem.arms,
            "segments": problem.segments,
            "agents": np.float64(1.0 if exchange.alone else agents),
            "reporting": np.float64(exchange.reporting),
        }
        ratios, self.groups = None, []
        if not (algorithm.shares_arms or exchange.alone):
            ratios = algorithm.noise_ratios(exchange) if self.noisy else None
            in_groups = (sum_agents and not self.by_row) or secure
            if in_groups and not (self.partial or (self.waits and algorithm.waits_privately)):
                self.groups = _group_agents(exchange.weights, ratios)
        first = [group[0] for group in self.groups]
        self.sizes: Any = np.array([len(group) for group in self.groups], np.float64)
        self.weights: Any = exchange.weights[first] if len(first) > 1 else np.empty(0)
        self.counts: Any = None
        if first:
            counts = self.tabulate([1] if secure else self.sizes)
            self.counts = Table(counts.values.reshape(1, -1), counts.row)
        if ratios is not None:
            self.fields["ratios"] = ratios[first] if first else self.pad(ratios)

    def pad(self, values: np.ndarray) -> Any:
        """Returns values of agents with zeros for padding."""
        return np.pad(values, (0, self.padded_agents - len(values)))

    def tabulate(self, numbers: Iterable[float]) -> Table:
        """Returns one row for each number of noises in a sum."""
        return table(np.stack([self.algorithm.noise.tabulate(int(x)) for x in numbers]))


def _split_arms(case: _Case) -> Draws:
    # At least two arms are in play: at most so many agents pull one arm.
    most = case.problem.agents // 2 + 2
    numbers = [1] if case.algorithm.sums_securely else range(most + 1)
    return SplitArms(**case.fields, counts=case.tabulate(numbers))


def _draw_on_report(case: _Case) -> Draws:
    return OnReport(**case.fields, real=case.real)


def _draw_by_agent(case: _Case) -> Draws:
    algorithm, problem, presence = case.algorithm, case.problem, case.problem.presence
    uniform = case.partial or len(case.groups) == 1
    single = (case.partial or case.by_row) and not algorithm.sums_securely
    in_rewards = algorithm.waits_privately if case.waits else single
    weights: Any = np.empty(0) if uniform else case.pad(case.exchange.weights)
    trim: Any = np.float64(algorithm.trimmed_share) if algorithm.trimmed_share > 0.0 else None
    return ByAgent(
        **case.fields,
        partial_participation=case.partial,
        noise_in_rewards=case.noisy and in_rewards,
        real=case.real,
        weights=weights,
        noise_weights=case.weights,
        counts=case.counts,
        presence=None if presence is None else presence.bind(problem.agents, problem.rewards),
        trim=trim,
    )


def _draw_sum(case: _Case) -> Draws:
    return AgentSum(**case.fields, counts=case.counts)


def _draw_groups(case: _Case) -> Draws:
    members = _list_members(case.groups, case.padded_agents, case.problem.homogeneous)
    fields = {"sizes": case.sizes, "weights": case.weights, "counts": case.counts}
    return Groups(**case.fields, **fields, **members)


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
