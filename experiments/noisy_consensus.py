"""CES with noise, in plain NumPy: estimates are exchanged once an epoch (not in the package).

In epoch e every agent pulls every active arm n_e times, adds Laplace noise of scale 1 / (epsilon
n_e) to the mean of these rewards, and mixes it into its estimate: y = (1 - s) z + s x, z = W y, s
being the epoch's share of all pulls so far. A reward is in one noisy mean, and all that follows is
a function of noisy means, so that a message leaks at most epsilon. Marks flood between epochs for
nothing, in favour of this algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

# Pulls of each active arm in an epoch.
SCHEDULES: Mapping[str, Callable[[int], int]] = {
    "doubling": lambda epoch: 2 ** (epoch - 1),
    "growing by 1": lambda epoch: epoch,
    "100 each": lambda epoch: 100,
}


def simulate(
    means: np.ndarray,
    mixing: np.ndarray,
    drift: float,
    horizon: int,
    epsilon: float,
    pulls_of: Callable[[int], int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns [seed] regret at the horizon, summed over agents.

    An arm leaves where an agent's estimate is 2 U below its largest. U adds to the radius of CES,
    for tau pulls in e epochs, Chernoff's bound of the mean of M e noises at 1 / T^2.

    Args:
        means: [seed, agent, arm] of Bernoulli rewards.
        mixing: W.
        drift: Q / (1 - l), counted in exchanges: the last epoch has been mixed once. 0 is a radius
            as if all estimates agreed. No theorem covers either.
        horizon: T.
        epsilon: Of a message.
        pulls_of: Maps the epoch, from 1, to its pulls of each active arm.
        rng: The generator.
    """
    seeds, agents, arms = means.shape
    gaps = means.mean(axis=1)
    gaps = gaps.max(axis=1, keepdims=True) - gaps
    active = np.ones((seeds, arms), bool)
    slot, regret = np.zeros(seeds), np.zeros(seeds)
    estimate, tau, epoch = np.zeros_like(means), 0, 0
    log = 2.0 * math.log(horizon)
    while (running := (active.sum(axis=1) > 1) & (slot < horizon)).any():
        epoch += 1
        pulls = pulls_of(epoch)
        count = active.sum(axis=1)
        length = np.minimum(pulls * count, horizon - slot)
        regret += np.where(running, agents * length * (gaps * active).sum(axis=1) / count, 0.0)
        is_whole = running & (slot + pulls * count <= horizon)
        slot = np.where(running, slot + length, slot)
        tau += pulls
        share = pulls / tau
        rewards = rng.binomial(pulls, means) / pulls
        rewards += rng.laplace(0.0, 1.0 / (epsilon * pulls), means.shape)
        mixed = np.einsum("ij,sjk->sik", mixing, (1.0 - share) * estimate + share * rewards)
        estimate = np.where(is_whole[:, None, None], mixed, estimate)
        # The largest share of an epoch stands in the place of 1 / tau.
        disagreement = min(1.0, drift * share)
        noises = agents * epoch
        tail = math.sqrt(8.0 * noises * log) if 2.0 * noises >= log else 4.0 * log
        radius = math.sqrt(log / (2.0 * agents * tau)) + disagreement
        radius += tail / (epsilon * agents * tau)
        largest = np.where(active[:, None], estimate, -np.inf).max(axis=2, keepdims=True)
        behind = (largest - estimate > 2.0 * radius).any(axis=1) & is_whole[:, None]
        stays = active & ~behind
        active = np.where(stays.any(axis=1)[:, None], stays, active)
    left = np.maximum(horizon - slot, 0.0)
    return regret + agents * left * (gaps * active).sum(axis=1) / active.sum(axis=1)
