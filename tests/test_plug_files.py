"""Two files of forty lines outside the package: elimination by variance, and UCB2 in episodes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import plugs_bernstein
import plugs_ucb2
import pytest

import fmab_jax as fmab
from fmab_jax import accounts, elimination
from fmab_jax.core import keys
from fmab_jax.core.scope import own_settings

HORIZON, FIRST, AGENTS = 15000, 16, 3
MEANS = np.array([0.12, 0.07, 0.03, 0.01, 0.01])
PROBLEM = fmab.Problem(MEANS, agents=AGENTS)


@jax.jit
def _means(trial, problem, seed):
    key = keys.seed_key(jnp.uint32(3), seed)
    instance = problem.draw(key)
    draws, gaps = trial.draws, instance.gaps
    arms = {"arm": jnp.arange(5, dtype=jnp.uint32), "alive": jnp.ones(5, bool)}
    arms |= draws.fixed(instance) | {name: jnp.zeros(5) for name in draws.sums}
    state = accounts.start_run(trial, gaps, jnp.zeros(1, jnp.int64), jnp.float64(1.0))

    def epoch(before, _):
        state, arms = before
        plan = elimination.plan_epoch(trial, state, key, trial.horizon)
        # Epochs that go on past the horizon are drawn, too.
        sums, mean = draws.hear(arms, plan.round._replace(fresh=plan.epoch.fresh))
        state = state._replace(number=plan.round.number, pulls=plan.round.pulls)
        return (state, arms | sums), mean

    return jax.lax.scan(epoch, (state, arms), length=11)[1]


@own_settings()
def told(trial, seed):
    """Returns the means [epoch, arm] over all rewards so far, were every arm to stay."""
    return np.asarray(_means(trial, PROBLEM.bind(None), jnp.uint32(seed)))


def test_bernstein_drops_what_numpy_drops_from_the_same_sums():
    """Catches other means, counts or epochs for `worse`; `rewards` of one agent in `Heard`."""
    algorithm, seeds = plugs_bernstein.Bernstein(first=FIRST), 24
    made = fmab.simulate(algorithm, PROBLEM, HORIZON, seeds, times=HORIZON, root_seed=3)
    trial = algorithm.bind(PROBLEM, HORIZON, exchange=algorithm.exchange(AGENTS))
    gaps, steps = MEANS.max() - MEANS, set()
    for seed in range(seeds):
        means = told(trial, seed)
        active, slot, before, curve = np.arange(5), 0, 0, []
        for number, pulls in enumerate(FIRST * 2 ** np.arange(11), start=1):
            slots = len(active) * (pulls - before)
            until = min(slot + slots, HORIZON)
            curve += [AGENTS * gaps[active].mean()] * (until - slot)
            if slot + slots > HORIZON:
                break
            slot, before, count = until, pulls, AGENTS * pulls
            log = math.log(6 * 5 * number**2 * HORIZON)
            mean = means[number - 1, active]
            half = np.sqrt(2 * mean * (1 - mean) * log / count) + 3 * log / count
            top = mean.argmax()
            active = active[mean[top] - mean < half + half[top]]
            steps.add((number, len(active)))
            if len(active) == 1:
                break
        played = active[0] if len(active) == 1 else None
        curve += [0.0 if played is None else AGENTS * gaps[played]] * (HORIZON - len(curve))
        assert made.active_arms.values[seed] == len(active)
        assert np.allclose(made.regret.values[seed], np.cumsum(curve), rtol=1e-9)
    # Arms left at different times.
    assert {left for _, left in steps} == {1, 2, 3, 4, 5} and len(steps) > 8


def tau(r, alpha):
    """Returns ceil((1 + alpha)^r)."""
    return math.ceil((1 + alpha) ** r)


def slow_ucb2(reward, arms, horizon, alpha=0.3):
    """UCB2 as it is written, pull by pull, with episodes of no slots; returns the arms pulled."""
    played = []
    sums, pulls, phase = np.zeros(arms), np.zeros(arms), np.zeros(arms, int)
    for arm in range(arms):
        sums[arm] += reward(arm)
        pulls[arm] += 1
        played.append(arm)
    while len(played) < horizon:
        lengths = np.array([tau(r, alpha) for r in phase])
        bonus = np.sqrt((1 + alpha) * np.log(math.e * len(played) / lengths) / (2 * lengths))
        arm = int(np.argmax(sums / pulls + bonus))
        for _ in range(tau(phase[arm] + 1, alpha) - tau(phase[arm], alpha)):
            sums[arm] += reward(arm)
            pulls[arm] += 1
            played.append(arm)
        phase[arm] += 1
    return np.array(played[:horizon])


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.9])
def test_episodes_of_ucb2_are_as_long_as_tau_says(alpha):
    """Catches `episode.time` without - 1 in the file, or `episodes._seen` without + 1."""
    means, horizon = np.array([0.7, 0.62, 0.3]), 3000
    problem = fmab.Problem(means, agents=1, rewards=fmab.Gaussian(1e-12))
    made = fmab.simulate(plugs_ucb2.UCB2(alpha=alpha), problem, horizon, 1, times=horizon)
    # Rewards are all but certain, and so is every pull.
    gaps = np.diff(made.regret.values[0], prepend=0.0)
    played = np.abs(gaps[:, None] - (0.7 - means)).argmin(axis=1)
    assert np.array_equal(played, slow_ucb2(lambda arm: means[arm], 3, horizon, alpha))
    # The worst arm is never played twice in a row: its stretches are its episodes.
    edges = np.flatnonzero(np.diff(played[3:] == 2, prepend=False, append=False))
    runs = edges[1::2] - edges[::2]
    taus = sorted({tau(r, alpha) for r in range(100)})
    assert np.array_equal(runs, np.diff(taus)[: len(runs)]) and len(runs) >= 3
