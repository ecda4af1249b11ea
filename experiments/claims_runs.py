"""What the paper's sentences are judged on besides sweeps: instances, Algorithm 1, and gossip."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from fmab_jax.core import keys, problems

AGENTS, ARMS = 50, 100


@functools.cache
def uniform(agents: int = AGENTS, arms: int = ARMS) -> problems.Problem:
    """Returns the paper's instance."""
    return fmab.Problem.uniform(agents, arms)


@functools.cache
def fixed() -> problems.Problem:
    """Returns one instance, small enough for horizons at which orders show."""
    return fmab.Problem.with_gap(50, 10, 0.1).fixed(0)


@functools.cache
def gaps_of(problem: problems.Problem, instances: int) -> np.ndarray:
    """Returns [seed, arm] gaps of the instances that the first seeds draw."""
    with jax.enable_x64(True):

        def one(seed: Any) -> Any:
            return bound.draw(keys.seed_key(jnp.uint32(0), seed)).gaps

        bound = problem.bind(problem.agents)
        return np.asarray(jax.vmap(one)(jnp.arange(instances, dtype=jnp.uint32)))


class Epochs(NamedTuple):
    """What Algorithm 1 did on some instances."""

    gone: np.ndarray  # [instance, arm] pulls of an agent when the arm left; 0 if it did not
    regret: np.ndarray  # [instance] at T, summed over agents
    # [instance] whether an aggregate was ever farther than C(r) from its arm's mean
    failed: np.ndarray


def epochs_of(
    means: np.ndarray, horizon: int, rng: np.random.Generator, epsilon: float = 1.0
) -> Epochs:
    """Runs Algorithm 1 on [instance, arm] means: a few lines of NumPy, all instances at once.

    It is for what results do not keep: pulls of single arms, and the event of the proofs.
    """
    count, M = len(means), AGENTS
    gaps = means.max(axis=1, keepdims=True) - means
    active = np.ones(means.shape, bool)
    total, gone = np.zeros(means.shape), np.zeros(means.shape)
    pulls, left = np.zeros(count), np.full(count, float(horizon))
    regret, failed, running = np.zeros(count), np.zeros(count, bool), np.ones(count, bool)
    for r in range(1, 64):
        arms = active.sum(axis=1)
        width = np.log(8 * arms * r * r * horizon)
        noisy = r * math.sqrt(2 * math.log(8 * ARMS * r * r * horizon))
        target = 2.0**-r
        need = np.maximum(8 * width / (M * target**2), 8 * noisy / (M**1.5 * epsilon * target))
        fresh = np.maximum(np.ceil(need), pulls + 1) - pulls
        running &= (arms * fresh <= left) & (arms > 1)
        if not running.any():
            break
        fresh = np.where(running, fresh, 0.0)
        left -= arms * fresh
        pulls += fresh
        regret += M * fresh * np.where(active, gaps, 0.0).sum(axis=1)
        i, k = np.nonzero(active & running[:, None])
        total[i, k] += rng.binomial((M * fresh[i]).astype(np.int64), means[i, k])
        # A sum of M Laplace draws is the difference of two gamma draws of shape M.
        total[i, k] += (rng.gamma(M, size=len(i)) - rng.gamma(M, size=len(i))) / (M * epsilon)
        each = np.where(active, total / (M * pulls[:, None]), -np.inf)
        radius = np.sqrt(width / (2 * M * pulls)) + 2 * noisy / (M**1.5 * epsilon * pulls)
        off = np.abs(np.where(active, each - means, 0.0)) > radius[:, None]
        failed |= off.any(axis=1) & running
        leaves = active & running[:, None] & (each <= (each.max(axis=1) - 2 * radius)[:, None])
        gone[leaves] = np.broadcast_to(pulls[:, None], gone.shape)[leaves]
        active &= ~leaves
    regret += M * left * np.where(active, gaps, 0.0).sum(axis=1) / active.sum(axis=1)
    return Epochs(gone, regret, failed)


def events_failed(horizon: int, seeds: int, seed: int = 0) -> int:
    """Returns in how many seeds E_R fails, each with its own means from U[0, 1]."""
    rng = np.random.default_rng(seed)
    failed = 0
    for start in range(0, seeds, 1000):
        means = rng.random((min(1000, seeds - start), ARMS))
        failed += int(epochs_of(means, horizon, rng).failed.sum())
    return failed


def pulls_of_arms(horizon: int, instances: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns pulls [instance, arm] of an agent when the arm left, 0 if it did not, and regret."""
    means = 1 - gaps_of(uniform(), instances)
    found = epochs_of(means, horizon, np.random.default_rng(seed))
    return found.gone, found.regret


def slots_to_tell_all(graph: Any, runs: int, whole: bool, seed: int = 0) -> np.ndarray:
    """Returns in how many slots everybody has heard of everybody, by the paper's gossiping.

    In each slot an agent sends to one neighbour, drawn anew: all that it has heard, or, as in the
    SPIN papers, each message goes on alone, from the agent that it reached last.

    Args:
        graph: Of the agents.
        runs: Independent repetitions.
        whole: All that was heard, rather than each message alone.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    agents = graph.number_of_nodes()
    near = [np.fromiter(graph[node], np.int64) for node in sorted(graph)]
    most = max(map(len, near))
    table = np.stack([np.resize(each, most) for each in near])
    degree = np.array([len(each) for each in near])
    slots_ = np.zeros(runs, np.int64)
    known = np.broadcast_to(np.eye(agents, dtype=bool), (runs, agents, agents)).copy()
    place = np.broadcast_to(np.arange(agents), (runs, agents)).copy()
    open_ = np.arange(runs)
    while len(open_):
        slots_[open_] += 1
        who = np.broadcast_to(np.arange(agents), (len(open_), agents)) if whole else place[open_]
        to = table[who, (rng.random(who.shape) * degree[who]).astype(np.int64)]
        if whole:  # [run, agent, message]
            sent = np.zeros((len(open_), agents, agents), np.float32)
            np.put_along_axis(sent, to[:, None, :], 1.0, axis=1)
            known[open_] |= (sent @ known[open_].astype(np.float32)) > 0
        else:
            place[open_] = to
            known[open_[:, None], to, np.arange(agents)] = True
        open_ = open_[~known[open_].all(axis=(1, 2))]
    return slots_
