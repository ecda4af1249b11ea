"""Index policies slot by slot in plain Python, from the pseudo-code; slow, and nobody's loop.

Every function takes ``reward(slot, agent, arm)`` and, where agents talk, ``neighbour(slot, agent)``
in place of random numbers, so that a run can be compared draw by draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import networkx as nx
import numpy as np


class Run(NamedTuple):
    actions: np.ndarray
    """[slot, agent]"""
    talks: list[int]
    """Slots after which agents communicated."""
    pulls: list[list[int]]
    """[agent][arm], as each agent knows them."""
    playing: list[set[int]]
    """[agent] arms in play at the end."""


def lowest_best(values):
    return values.index(max(values))


def bound(pulls, total, width):
    return total / pulls + math.sqrt(width / pulls) if pulls else math.inf


def blank(horizon, agents, arms, rows=None):
    """Actions [slot, agent], and pulls and sums [row][arm] of nothing; agents have a row each."""
    pulls, sums = ([[none] * arms for _ in range(rows or agents)] for none in (0, 0.0))
    return np.empty((horizon, agents), int), pulls, sums


def looped(reward, agents, arms, horizon, choose, pooled=False):
    """Slot by slot: a row chooses an arm by its pulls and sums, of one agent or pooled of all."""
    rows = 1 if pooled else agents
    actions, pulls, sums = blank(horizon, agents, arms, rows)
    for t in range(1, horizon + 1):
        played = [choose(t, i, pulls[i], sums[i]) for i in range(rows)]
        for i in range(agents):
            row = 0 if pooled else i
            k = played[row]
            actions[t - 1, i] = k
            pulls[row][k] += 1
            sums[row][k] += reward(t, i, k)
    talks = list(range(1, horizon + 1)) if pooled else []
    return Run(actions, talks, pulls * (agents if pooled else 1), [set(range(arms))] * agents)


def ucb1(means, agents, horizon, reward, alpha=2.0, pooled=False):
    def choose(t, i, pulls, sums):
        width = alpha * math.log(agents * t if pooled else t)
        return lowest_best([bound(n, s, width) for n, s in zip(pulls, sums, strict=True)])

    return looped(reward, agents, len(means[0]), horizon, choose, pooled)


def gosine(means, agents, horizon, reward, neighbour, alpha=4.0):
    arms = len(means[0])
    share = -(-arms // agents)
    sticky = [{(i * share + m) % arms for m in range(share)} for i in range(agents)]
    upper = [(i * share + share) % arms for i in range(agents)]
    lower = [(i * share + share + 1) % arms for i in range(agents)]
    actions, pulls, sums = blank(horizon, agents, arms)
    lately = [[0] * arms for _ in range(agents)]
    talks, phase = [], 1
    for t in range(1, horizon + 1):
        for i in range(agents):
            width, mine = alpha * math.log(t), sticky[i] | {upper[i], lower[i]}
            index = [bound(pulls[i][k], sums[i][k], width) for k in range(arms)]
            k = lowest_best([index[k] if k in mine else -math.inf for k in range(arms)])
            pulls[i][k] += 1
            lately[i][k] += 1
            sums[i][k] += reward(t, i, k)
            actions[t - 1, i] = k
        if t == phase**3:
            output = [lowest_best(lately[i]) for i in range(agents)]
            for i in range(agents):
                mine = sticky[i] | {upper[i], lower[i]}
                if lately[i][upper[i]] < lately[i][lower[i]]:
                    upper[i], lower[i] = lower[i], upper[i]
                heard = output[neighbour(t, i)]
                if heard not in mine:
                    lower[i] = heard
            lately = [[0] * arms for _ in range(agents)]
            talks.append(t)
            phase += 1
    playing = [sticky[i] | {upper[i], lower[i]} for i in range(agents)]
    return Run(actions, talks, pulls, playing)


def given_chance(means, graph, rewards, neighbours):
    """Rewards and neighbours from tables of uniforms [slot, agent]."""
    beside = {i: sorted(graph[i]) for i in graph}

    def reward(slot, agent, arm):
        return float(rewards[slot, agent] > 1.0 - means[min(agent, len(means) - 1)][arm])

    def neighbour(slot, agent):
        some = beside[agent]
        return some[int(neighbours[slot, agent] * len(some))] if some else agent

    return reward, neighbour


def regret(run, gaps):
    """[slot 0..T]"""
    return np.concatenate([[0.0], np.cumsum(gaps[run.actions].sum(axis=1))])


def ring(agents):
    return nx.cycle_graph(agents) if agents > 2 else nx.path_graph(agents)
