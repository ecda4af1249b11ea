"""Rivals of the race: uniform allocation, successive halving, and KN.

Sources: Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed bandits" (ICML 2013),
for halving; Kim and Nelson, "A fully sequential procedure for indifference-zone selection in
simulation" (ACM TOMACS 2001), for KN.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from experiments.race_laws import Draws
from fmab_jax.planning.question import OVER


class Choice(NamedTuple):
    """What a rival chooses, the seeds of all candidates together, and whether it came to an end."""

    winner: int
    seeds: int
    is_done: bool = True


def allocate_uniformly(draws: Draws, total: int) -> Choice:
    """Takes equally many seeds of all candidates, and the smallest mean within the budget."""
    count = len(draws.case.means)
    seeds = total // count
    return Choice(_rank(draws, list(range(count)), seeds)[0], seeds * count)


def halve(draws: Draws, total: int) -> Choice:
    """Drops half of the candidates in each round; rounds share the seeds equally."""
    group = list(range(len(draws.case.means)))
    rounds = math.ceil(math.log2(len(group)))
    seeds = spent = 0
    for _ in range(rounds):
        fresh = max(1, total // (rounds * len(group)))
        seeds, spent = seeds + fresh, spent + fresh * len(group)
        group = _rank(draws, group, seeds)[: math.ceil(len(group) / 2)]
    return Choice(group[0], spent)


def _rank(draws: Draws, group: list[int], seeds: int) -> list[int]:
    """Returns candidates by their means; those that exceed the budget too often are last."""
    samples = dict(zip(group, draws.observe(group, seeds), strict=True))

    def judge(i: int) -> tuple[float, float]:
        share = float(samples[i].is_over.mean())
        return (share if share > OVER else 0.0), float(samples[i].regret.mean())

    return sorted(group, key=judge)


def select_kn(draws: Draws, first: int, delta: float, error: float, most: int) -> Choice:
    """Selects the smallest mean by KN, among candidates that truly keep the budget.

    Args:
        draws: Runs of all candidates.
        first: Seeds before the first decision, from which variances are.
        delta: Width of the indifference zone.
        error: Chance of a wrong selection.
        most: Most seeds of a candidate.
    """
    group = np.array(draws.case.feasible)
    data = np.stack([draws.read(i, first).regret for i in group])
    covariance = np.atleast_2d(np.cov(data))
    variances = np.diag(covariance)
    eta = 0.5 * ((2.0 * error / max(1, len(group) - 1)) ** (-2.0 / (first - 1)) - 1.0)
    # S^2 h^2 / delta^2 with c = 1: seeds after which a pair is decided.
    ends = variances[:, None] + variances[None, :] - 2.0 * covariance
    ends *= 2.0 * eta * (first - 1) / delta**2
    sums, seeds, spent = data.sum(axis=1), first, 0
    block = np.zeros((len(group), 1))
    while True:
        times = seeds + np.arange(block.shape[1])
        paths = sums[:, None] + block
        is_out = _compare(paths, ends, times, delta)
        places = np.flatnonzero(is_out.any(axis=0))
        place = int(places[0]) if len(places) else block.shape[1] - 1
        stays = ~is_out[:, place]
        seeds, sums = int(times[place]), paths[stays, place]
        spent += seeds * int((~stays).sum())
        group, ends = group[stays], ends[np.ix_(stays, stays)]
        is_done = len(group) == 1 or bool(seeds >= ends.max())
        if is_done or seeds >= most:
            return Choice(int(group[np.argmin(sums)]), spent + seeds * len(group), is_done)
        size = min(max(1, min(4096, 200_000 // len(group) ** 2)), most - seeds)
        fresh = [draws.read(i, seeds + size).regret[seeds:] for i in group]
        block, seeds = np.cumsum(fresh, axis=1), seeds + 1


def _compare(
    paths: Float[np.ndarray, "candidate seed"],
    ends: Float[np.ndarray, "candidate candidate"],
    times: np.ndarray,
    delta: float,
) -> np.ndarray:
    """Returns [candidate, seed] which sums leave the region that goes on, of any pair."""
    width = np.maximum(0.0, 0.5 * delta * (ends[:, :, None] - times))
    is_out: np.ndarray = (paths[:, None, :] - paths[None, :, :] > width).any(axis=1)
    return is_out
