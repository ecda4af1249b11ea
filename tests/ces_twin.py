"""CES in plain Python and NumPy, from the description of the algorithm alone.

`play` goes slot by slot, and an agent learns of marks from its neighbours alone. `play_many` knows
all marks at once and runs many seeds together, for comparisons in law. Agents pull alike, so a run
has one action per slot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import networkx as nx
import numpy as np


class Run(NamedTuple):
    """A run; those of `play_many` have an axis of seeds in front."""

    actions: np.ndarray
    """[slot] arm that every agent pulls."""
    exchanges: np.ndarray
    """[slot 0..T] exchanges so far."""
    numbers: int | np.ndarray
    """Numbers that all agents sent."""
    active: np.ndarray
    """[arm] whether the arm is active at the end."""
    estimates: np.ndarray
    """[agent, arm] at the end."""


class Constants(NamedTuple):
    """What the agents know before they start."""

    mixing: np.ndarray
    """[agent, agent] weights W."""
    diameter: int
    edges: int
    imbalance: float
    """Q."""
    spectral_gap: float
    """1 - l."""

    def radius(self, width, horizon, tau):
        """Returns U, half of the distance to the best estimate at which an arm is marked."""
        statistical = math.sqrt(math.log(horizon) / (len(self.mixing) * tau))
        return width * (statistical + self.imbalance / (self.spectral_gap * (tau + 1)))


def constants(graph, weights="metropolis"):
    """Returns the constants of a networkx graph of the agents 0..M-1."""
    agents, degree = len(graph), dict(graph.degree)
    mixing, largest = np.zeros((agents, agents)), max(degree.values())
    for i, j, weight in graph.edges(data="weight"):
        if weights == "metropolis":
            weight = 1 / (1 + max(degree[i], degree[j]))
        elif weights == "max_degree":
            weight = 1 / (1 + largest)
        mixing[i, j] = mixing[j, i] = weight
    mixing += np.diag(1 - mixing.sum(axis=1))
    # W is symmetric, and its largest eigenvalue belongs to the average, which is taken away.
    second = np.linalg.norm(mixing - 1 / agents, 2)
    imbalance = 1.0 if len(set(degree.values())) == 1 else math.sqrt(agents)
    return Constants(mixing, nx.diameter(graph), graph.number_of_edges(), imbalance, 1 - second)


def play(graph, reward, arms, horizon, weights="metropolis", width=1.0):
    """Returns a run by ``reward(round, agent, arm)``; the first pulls are round 0."""
    known, agents = constants(graph, weights), len(graph)
    estimates, rewards = np.full((2, agents, arms), np.nan)
    # By agent and arm, the round after which the arm leaves, as far as the agent has heard.
    heard = np.full((agents, arms), math.inf)
    active, turn, number, numbers = list(range(arms)), [], -1, 0
    actions, exchanges = [], [0]
    for _ in range(horizon):
        if not turn:
            turn, number = list(active), number + 1
        arm = turn.pop(0)
        actions.append(arm)
        rewards[:, arm] = [reward(number, i, arm) for i in range(agents)]
        exchanges.append(exchanges[-1])
        if turn or (number and len(active) == 1):
            continue
        if number == 0:
            estimates = rewards.copy()
            continue
        tau = number + 1
        radius = known.radius(width, horizon, tau)
        for i in range(agents):
            best = max(estimates[i, k] for k in active)
            for k in active:
                if estimates[i, k] < best - 2 * radius:
                    heard[i, k] = min(heard[i, k], number + known.diameter)
        before, sent = heard.copy(), estimates.copy()
        for i in range(agents):
            near = [i, *graph[i]]
            for k in active:
                mixed = sum(known.mixing[i, j] * sent[j, k] for j in near)
                estimates[i, k] = (1 - 1 / tau) * mixed + rewards[i, k] / tau
                heard[i, k] = min(before[j, k] for j in near)
        exchanges[-1] += 1
        numbers += 2 * known.edges * len(active)
        stays = [[k for k in active if heard[i, k] > number] for i in range(agents)]
        assert all(own == stays[0] for own in stays), "agents drop arms at different times"
        active = stays[0] or active[:1]
    mask = np.isin(np.arange(arms), active)
    return Run(np.array(actions), np.array(exchanges), numbers, mask, estimates)


def play_many(graph, draw, seeds, arms, horizon, weights="metropolis", width=1.0):
    """Returns runs by ``draw(round, seeds)``, which gives rewards [seed, agent, arm]."""
    known, agents = constants(graph, weights), len(graph)
    actions = np.tile(np.arange(arms)[:horizon], (seeds, 1))
    actions = np.pad(actions, [(0, 0), (0, max(0, horizon - arms))])
    exchanged, numbers = np.zeros((seeds, horizon + 1), int), np.zeros(seeds, int)
    active, leaves = np.ones((seeds, arms), bool), np.full((seeds, arms), math.inf)
    estimates, clock, number = np.full((seeds, agents, arms), np.nan), np.full(seeds, arms), 0
    running = np.arange(seeds if horizon >= arms else 0)
    estimates[running] = draw(0, running)
    while True:
        decided = active[running].sum(1) == 1
        for seed in running[decided]:
            actions[seed, clock[seed] :] = active[seed].argmax()
        running = running[~decided & (clock[running] < horizon)]
        if not running.size:
            break
        number += 1
        tau = number + 1
        row, arm = active[running].nonzero()
        place = active[running].cumsum(1)[row, arm] - 1
        slot = clock[running][row] + place
        within = slot < horizon
        actions[running[row[within]], slot[within]] = arm[within]
        clock[running] += active[running].sum(1)
        running = running[clock[running] <= horizon]
        is_active, old = active[running], estimates[running]
        radius = known.radius(width, horizon, tau)
        shown = np.where(is_active[:, None], old, -math.inf)
        marked = (shown < shown.max(2, keepdims=True) - 2 * radius).any(1)
        due = np.where(marked, number + known.diameter, math.inf)
        leaves[running] = np.minimum(leaves[running], due)
        new = (1 - 1 / tau) * (known.mixing @ old) + draw(number, running) / tau
        estimates[running] = np.where(is_active[:, None], new, old)
        exchanged[running, clock[running]] = 1
        numbers[running] += 2 * known.edges * is_active.sum(1)
        stays = is_active & (leaves[running] > number)
        # The lowest active arm stays if all others leave as well.
        none = ~stays.any(1)
        stays[none, is_active[none].argmax(1)] = True
        active[running] = stays
    return Run(actions, exchanged.cumsum(1), numbers, active, estimates)


def average_over_rounds(run, means):
    """Returns a run's regret [slot 0..T] and pulls [arm], over all agents.

    As in the package, those of a round are spread evenly over its slots; at the ends of rounds they
    are those of the arms that were pulled in turn. Means are [agent, arm].
    """
    (agents, arms), horizon = means.shape, len(run.actions)
    gaps = means.mean(0).max() - means.mean(0)
    ends = [0, *[arms] * (arms <= horizon), *np.flatnonzero(np.diff(run.exchanges)) + 1]
    pulls = np.bincount(run.actions[: ends[-1]], minlength=arms)
    regret = np.concatenate([[0.0], gaps[run.actions].cumsum()])[ends]
    # The horizon cuts a round, or one arm is left.
    rest = (horizon - ends[-1]) * run.active / run.active.sum()
    curve = np.interp(np.arange(horizon + 1), [*ends, horizon], [*regret, regret[-1] + rest @ gaps])
    return agents * curve, agents * (pulls + rest)
