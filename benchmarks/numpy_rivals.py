"""What a user would write in NumPy instead: CDP-MAB with p = 1, three ways, one law."""

from __future__ import annotations

import numpy as np


def _pulls(active, r, before, agents, arms, epsilon, horizon):
    gap = 0.5**r
    reward = 8 * np.log(8 * active * r**2 * horizon) / (agents * gap**2)
    privacy = 8 * r * np.sqrt(2 * np.log(8 * arms * r**2 * horizon))
    privacy = privacy / (agents**1.5 * epsilon * gap)
    return np.maximum(np.ceil(np.maximum(reward, privacy)), before + 1)


def _radius(active, r, pulls, agents, arms, epsilon, horizon):
    reward = np.sqrt(np.log(8 * active * r**2 * horizon) / (2 * agents * pulls))
    privacy = r * np.sqrt(8 * np.log(8 * arms * r**2 * horizon))
    return reward + privacy / (agents**1.5 * epsilon * pulls)


def one_trial(rng, agents, arms, epsilon, horizon, *, per_agent):
    """A plain script: one seed, one epoch at a time; returns the final regret."""
    means = rng.random(arms)
    gap = means.max() - means
    active = np.arange(arms)
    total = np.zeros(arms)
    slot, regret, pulls, r = 0, 0.0, 0, 0
    while slot < horizon and len(active) > 1:
        r += 1
        upto = int(_pulls(len(active), r, pulls, agents, arms, epsilon, horizon))
        new, pulls = upto - pulls, upto
        end = slot + len(active) * new
        spent = min(end, horizon) - slot
        regret += agents * gap[active].mean() * spent
        slot += spent
        if end > horizon:
            break
        scale = 1 / (agents * epsilon)
        if per_agent:
            rewards = rng.binomial(new, means[active], size=(agents, len(active)))
            noise = rng.laplace(0.0, scale, size=(agents, len(active)))
            total[active] += rewards.sum(axis=0) + noise.sum(axis=0)
        else:
            rewards = rng.binomial(agents * new, means[active])
            # The sum of M Laplaces is the difference of two Gamma(M).
            up, down = rng.standard_gamma(agents, size=(2, len(active)))
            total[active] += rewards + scale * (up - down)
        mean = total[active] / (agents * pulls)
        radius = _radius(len(active), r, pulls, agents, arms, epsilon, horizon)
        active = active[mean.max() - mean < 2 * radius]
    return regret + agents * gap[active[0]] * (horizon - slot)


def many_trials(rng, seeds, agents, arms, epsilon, horizon):
    """An expert's version: all seeds at once as one ragged list of active (seed, arm) pairs."""
    means = rng.random((seeds, arms))
    gaps = (means.max(axis=1, keepdims=True) - means).ravel()
    means = means.ravel()
    regret, slot, pulls = np.zeros(seeds), np.zeros(seeds), np.zeros(seeds)
    total = np.zeros(seeds * arms)
    pair = np.arange(seeds * arms)
    r = 0
    while len(pair):
        r += 1
        seed = pair // arms
        start = np.flatnonzero(np.r_[True, seed[1:] != seed[:-1]])
        who = seed[start]
        size = np.diff(np.r_[start, len(pair)])
        upto = _pulls(size, r, pulls[who], agents, arms, epsilon, horizon)
        new = upto - pulls[who]
        pulls[who] = upto
        end = slot[who] + size * new
        spent = np.minimum(end, horizon) - slot[who]
        regret[who] += agents * np.add.reduceat(gaps[pair], start) / size * spent
        slot[who] += spent
        fits = np.repeat(end <= horizon, size)
        pair, seed = pair[fits], seed[fits]
        who, size, new = who[end <= horizon], size[end <= horizon], new[end <= horizon]
        if not len(pair):
            break
        start = np.r_[0, np.cumsum(size)[:-1]]
        drawn = rng.binomial((agents * np.repeat(new, size)).astype(np.int64), means[pair])
        normal = rng.standard_normal(len(pair))
        noise = np.sqrt(2 * rng.standard_gamma(agents, len(pair))) * normal / (agents * epsilon)
        total[pair] += drawn + noise
        mean = total[pair] / (agents * pulls[seed])
        radius = _radius(size, r, pulls[who], agents, arms, epsilon, horizon)
        best = np.maximum.reduceat(mean, start)
        kept = np.repeat(best, size) - mean < 2 * np.repeat(radius, size)
        left = np.add.reduceat(kept.astype(int), start)
        alone = kept & np.repeat(left == 1, size)
        last = pair[alone]
        who = last // arms
        regret[who] += agents * gaps[last] * (horizon - slot[who])
        slot[who] = horizon
        pair = pair[kept & ~alone]
    return regret
