"""What a user would write in NumPy instead, with care; the laws are the same.

Each function simulates ``seeds`` trials and returns their final regret, [seed].
"""

from __future__ import annotations

import math

import numpy as np


def _pulls(active, r, before, reporting, arms, epsilon, horizon):
    """S_r, pulls of an active arm by the end of round r."""
    gap = 0.5**r
    reward = 8 * np.log(8 * active * r**2 * horizon) / (reporting * gap**2)
    privacy = 8 * r * np.sqrt(2 * np.log(8 * arms * r**2 * horizon))
    privacy = privacy / (reporting**1.5 * epsilon * gap)
    return np.maximum(np.ceil(np.maximum(reward, privacy)), before + 1)


def _radius(active, r, pulls, reporting, arms, epsilon, horizon):
    """C(r), the confidence radius."""
    reward = np.sqrt(np.log(8 * active * r**2 * horizon) / (2 * reporting * pulls))
    privacy = r * np.sqrt(8 * np.log(8 * arms * r**2 * horizon))
    return reward + privacy / (reporting**1.5 * epsilon * pulls)


def script(rng, seeds, agents, arms, epsilon, horizon, *, per_agent):
    """A plain script: one seed at a time, one epoch at a time, vectorised over arms and agents."""
    return np.array(
        [_one_trial(rng, agents, arms, epsilon, horizon, per_agent) for _ in range(seeds)]
    )


def _one_trial(rng, agents, arms, epsilon, horizon, per_agent):
    means = rng.random(arms)
    gap = means.max() - means
    active, total = np.arange(arms), np.zeros(arms)
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


def slots(rng, seeds, agents, arms, epsilon, horizon):
    """A loop over slots, vectorised over agents: what simulators of bandits do."""
    found = np.zeros(seeds)
    for seed in range(seeds):
        means = rng.random(arms)
        gap = means.max() - means
        active, total = np.arange(arms), np.zeros(arms)
        slot, pulls, r = 0, 0, 0
        while slot < horizon and len(active) > 1:
            r += 1
            upto = int(_pulls(len(active), r, pulls, agents, arms, epsilon, horizon))
            new, pulls = upto - pulls, upto
            won = np.zeros((agents, arms))
            done = True
            for arm in np.tile(active, new):
                if slot == horizon:
                    done = False
                    break
                won[:, arm] += rng.random(agents) < means[arm]
                found[seed] += agents * gap[arm]
                slot += 1
            if not done:
                break
            noise = rng.laplace(0.0, 1 / (agents * epsilon), size=(agents, len(active)))
            total[active] += won[:, active].sum(axis=0) + noise.sum(axis=0)
            mean = total[active] / (agents * pulls)
            radius = _radius(len(active), r, pulls, agents, arms, epsilon, horizon)
            active = active[mean.max() - mean < 2 * radius]
        found[seed] += agents * gap[active[0]] * (horizon - slot)
    return found


def ragged(
    rng,
    seeds,
    agents,
    arms,
    epsilon,
    horizon,
    *,
    per_agent=False,
    reporting=None,
    wait=0,
    spread=None,
    tally=None,
):
    """An expert's version: all seeds at once, as one list of active (seed, arm) pairs.

    With ``per_agent`` each pair has a row of agents: for participation, waits, unequal means.
    ``tally`` is a list that gets the number of pairs drawn in each round.
    """
    heard = agents if reporting is None else reporting
    level = rng.random((seeds, arms))
    gaps = (level.max(axis=1, keepdims=True) - level).ravel()
    means = level.ravel()[:, None]
    if spread is not None:
        means = _spread_out(rng, level, agents, spread)
    regret, slot, pulls = np.zeros(seeds), np.zeros(seeds), np.zeros(seeds)
    # Where all are heard, nobody ever looks at one agent's noise.
    summed = not per_agent or heard == agents
    won = np.zeros((seeds * arms, agents if per_agent else 1))
    noise = np.zeros((seeds * arms, 1 if summed else agents))
    pair = np.arange(seeds * arms)
    r = 0
    while len(pair):
        r += 1
        seed = pair // arms
        start = np.flatnonzero(np.r_[True, seed[1:] != seed[:-1]])
        who, size = seed[start], np.diff(np.r_[start, len(pair)])
        upto = _pulls(size, r, pulls[who], heard, arms, epsilon, horizon)
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
        if tally is not None:
            tally.append(len(pair))
        start = np.r_[0, np.cumsum(size)[:-1]]
        count = np.repeat(new, size).astype(np.int64)
        if per_agent:
            chance = np.broadcast_to(means[pair], (len(pair), agents))
            won[pair] += rng.binomial(count[:, None], chance)
        else:
            won[pair] += rng.binomial(agents * count, means[pair, 0])[:, None]
        if not summed:
            noise[pair] += rng.laplace(0.0, 1 / (heard * epsilon), (len(pair), agents))
        else:
            normal = rng.standard_normal(len(pair))
            gamma = rng.standard_gamma(agents, len(pair))
            noise[pair] += (np.sqrt(2 * gamma) * normal / (agents * epsilon))[:, None]
        if wait:
            best = np.maximum.reduceat(won[pair], start, axis=0)
            place = np.arange(len(pair))[:, None]
            tied = np.where(won[pair] == np.repeat(best, size, axis=0), place, len(pair))
            played = np.minimum.reduceat(tied, start, axis=0)
            waited = np.minimum(wait, horizon - slot[who])
            regret[who] += gaps[pair][played].sum(axis=1) * waited
            slot[who] += waited
        if summed:
            told = won[pair].sum(axis=1, keepdims=True) + noise[pair]
        else:
            told = won[pair] + noise[pair]
        if heard < agents:
            drawn = rng.random((len(who), agents)).argsort(axis=1).argsort(axis=1) < heard
            told = np.where(np.repeat(drawn, size, axis=0), told, 0.0)
        shared = heard if per_agent else agents
        mean = told.sum(axis=1) / (shared * pulls[seed])
        radius = _radius(size, r, pulls[who], heard, arms, epsilon, horizon)
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


def _spread_out(rng, level, agents, spread):
    """Means [seed x arm, agent] around the levels, which they sum to over agents."""
    level = level.ravel()[:, None]
    offset = rng.random((len(level), agents))
    offset -= offset.mean(axis=1, keepdims=True)
    down = level / -offset.min(axis=1, keepdims=True)
    up = (1 - level) / offset.max(axis=1, keepdims=True)
    return np.clip(level + spread * np.minimum(down, up) * offset, 0.0, 1.0)


def ucb1(rng, seeds, agents, arms, horizon, *, pooled=False):
    """UCB1, a slot at a time, vectorised over seeds and agents."""
    means = rng.random((seeds, arms))
    rows = 1 if pooled else agents
    sharing = agents // rows
    pulls, sums = np.zeros((seeds * rows, arms)), np.zeros((seeds * rows, arms))
    mean = np.repeat(means, rows, axis=0)
    best = mean.max(axis=1)
    row, regret = np.arange(seeds * rows), np.zeros(seeds * rows)
    for t in range(1, horizon + 1):
        if t <= arms:
            arm = np.full(len(row), t - 1)
        else:
            width = 2 * np.log(sharing * t)
            arm = ((sums + np.sqrt(width * pulls)) / pulls).argmax(axis=1)
        played = mean[row, arm]
        pulls[row, arm] += sharing
        sums[row, arm] += (
            rng.random(len(row)) < played if rows > 1 else rng.binomial(sharing, played)
        )
        regret += sharing * (best - played)
    return regret.reshape(seeds, rows).sum(axis=1)


def ucb1_numba(rng, seeds, agents, arms, horizon):
    """UCB1 compiled by numba: one agent after the other, a slot at a time."""
    return _numba_ucb1()(int(rng.integers(2**31)), seeds, agents, arms, horizon)


def _numba_ucb1():
    if "found" not in _COMPILED:
        import numba

        @numba.njit(fastmath=False)
        def run(seed, seeds, agents, arms, horizon):
            np.random.seed(seed)
            regret = np.zeros(seeds)
            for s in range(seeds):
                means = np.random.random(arms)
                best = means.max()
                for _ in range(agents):
                    pulls, sums = np.zeros(arms), np.zeros(arms)
                    for t in range(1, horizon + 1):
                        arm = t - 1
                        if t > arms:
                            width, top, arm = 2 * math.log(t), -1.0, 0
                            for k in range(arms):
                                index = (sums[k] + math.sqrt(width * pulls[k])) / pulls[k]
                                if index > top:
                                    top, arm = index, k
                        pulls[arm] += 1
                        sums[arm] += np.random.random() < means[arm]
                        regret[s] += best - means[arm]
            return regret

        _COMPILED["found"] = run
    return _COMPILED["found"]


_COMPILED: dict = {}
