"""DEMAB, a plug-in of the pages, against a slow twin, draw by draw."""

from __future__ import annotations

import functools
import inspect
import math
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import scipy.stats

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.cli.main import main
from fmab_jax.sampling import keys, laplace, normal

PHASES = 14


class Tables:
    """The very assignments, sums and noise that the package draws, by its uniforms."""

    def __init__(self, assigning, own, together):
        self.assigning, self.own, self.together = assigning, own, together

    def assigned(self, arm):
        return self.assigning[0][arm]

    def alone(self, agent, phase, arm, pulls, mean):
        return scipy.stats.binom.ppf(self.own[0][agent, phase, arm], pulls, mean)

    def noise_alone(self, agent, phase, arm):
        return scipy.stats.laplace.ppf(self.own[1][agent, phase, arm])

    def total(self, phase, arm, by_agent, mean):
        return scipy.stats.binom.ppf(self.together[0][phase, arm], sum(by_agent), mean)

    def noise(self, phase, arm, agents):
        z = scipy.stats.norm.ppf(self.together[1][phase, arm])
        if agents == 1:
            return scipy.stats.laplace.ppf(scipy.stats.norm.cdf(z))
        with jax.enable_x64(True):
            shape = jnp.asarray(laplace.laplace_sum_shape(agents))
            return float(laplace.laplace_sum(jnp.float64(z), shape))


SEEDS = 16


@functools.cache
def uniforms(agents, arms):
    """Of assignments [seed, arm]; of rewards and noise, [seed, agent, phase, arm] for agents alone,
    and [seed, phase, arm] for all together."""
    lane = jnp.arange(arms, dtype=jnp.uint32)

    def drawn(key, phase):
        words = [keys.stream_key(key, phase, s) for s in (keys.REWARD, keys.NOISE)]
        return [keys.uniform(*item, lane) for item in words]

    def of_seed(seed):
        key = keys.seed_key(jnp.uint32(0), seed)
        phases = jnp.arange(PHASES, dtype=jnp.int32)
        every = jax.vmap(drawn, (None, 0))
        own = jax.vmap(lambda i: every(keys.agent_key(key, i), phases))
        assigning = keys.uniform(*keys.stream_key(key, 0, keys.ASSIGNMENT), lane)
        return [assigning], own(jnp.arange(agents, dtype=jnp.int32)), every(key, phases)

    with jax.enable_x64(True):
        return jax.jit(jax.vmap(of_seed))(jnp.arange(SEEDS, dtype=jnp.uint32))


class Run(NamedTuple):
    """What a run comes to; ``regret`` of all agents at some slots."""

    regret: np.ndarray
    rounds: int
    sent: int
    active: int
    chosen: int
    lost: int


def demab(chance, means, agents, horizon, epsilon=None, slots=None):
    """One run, agent by agent, from the description of the algorithm."""
    arms, gaps = range(len(means)), means.max() - means
    log, alone = math.log(agents * len(means) * horizon), horizon // (agents * len(means))
    knots = [[(0, 0.0)] for _ in range(agents)]

    def pulls(phase, noises=1):
        expected = 4.0 ** (phase + 3) * log
        if epsilon is not None:
            b = 2 * log
            widest = math.sqrt(8) * max(math.sqrt(noises * b), b) / epsilon
            expected = max(expected, 8 * 2**phase * widest)
        return math.ceil(expected)

    def play(agent, own, time):
        slot, regret = knots[agent][-1]
        knots[agent].append((slot + time, regret + gaps[own].mean() * time))

    def near(mean, phase):
        return [arm for arm in mean if max(mean.values()) - mean[arm] <= 2.0**-phase]

    kept, completed = [], []
    for agent in range(agents):
        own, phase, slot = list(arms), 0, 0
        while len(own) > 1 and slot + len(own) * pulls(phase + 1) <= alone:
            phase += 1
            m, mean = pulls(phase), {}
            play(agent, own, len(own) * m)
            slot += len(own) * m
            for arm in own:
                total = chance.alone(agent, phase, arm, m, means[arm])
                if epsilon is not None:
                    total += chance.noise_alone(agent, phase, arm) / epsilon
                mean[arm] = total / m
            own = near(mean, phase)
        play(agent, own, alone - slot)
        kept.append(own)
        completed.append(phase)

    # Shared out.
    owner = {arm: int(chance.assigned(arm) * agents) for arm in arms}
    left = [arm for arm in arms if arm in kept[owner[arm]]] or list(arms)
    mine = [[arm for arm in left if owner[arm] == agent] for agent in range(agents)]
    phase, slot, names = min(completed), alone, None
    rounds = int(len(means) * pulls(1) <= alone)
    sent = rounds * (2 * agents + (1 + agents if len(left) == 1 else 0))

    while slot < horizon and len(left) > 1:
        phase += 1
        many, more = len(left) > agents, 0
        if many:
            loads = [len(own) for own in mine]
            if max(loads) > 2 * min(loads):
                dealt = [left[agent::agents] for agent in range(agents)]
                held = {arm: agent for agent in range(agents) for arm in mine[agent]}
                more = 2 * sum(held[arm] != i for i in range(agents) for arm in dealt[i])
                mine = dealt
            m = pulls(phase)
            time = m * max(len(own) for own in mine)
            by_each = {arm: [m] for arm in left}
        else:
            mine = [[left[agent % len(left)]] for agent in range(agents)]
            if names is None:
                more = agents + len(left)
            else:
                more = sum(own != old for own, old in zip(mine, names, strict=True))
            names = mine
            m = pulls(phase, -(-agents // len(left)))
            time = -(-m // (agents // len(left)))
            by_each = {arm: [] for arm in left}
            for (arm,) in mine:
                by_each[arm].append(time)
        sent += more if rounds else 0
        for agent in range(agents):
            play(agent, mine[agent], min(time, horizon - slot))
        slot += time
        if slot > horizon:
            break
        mean = {}
        for arm in left:
            count = sum(by_each[arm])
            assert count >= m
            total = chance.total(phase, arm, by_each[arm], means[arm])
            if epsilon is not None:
                total += chance.noise(phase, arm, len(by_each[arm])) / epsilon
            mean[arm] = total / count
        left = near(mean, phase)
        mine = [[arm for arm in own if arm in left] for own in mine]
        rounds += 1
        sent += (3 if many else 2) * agents
    chosen = left[0] if len(left) == 1 else -1
    for agent in range(agents):
        if chosen >= 0:
            play(agent, [chosen], horizon - knots[agent][-1][0])
    at = np.array([horizon] if slots is None else slots)
    regret = sum(np.interp(at, *zip(*line, strict=True)) for line in knots)
    lost = agents * (gaps[left].min() > 0)
    return Run(regret, rounds, sent, len(left), chosen, int(lost))


class Setting(NamedTuple):
    """Sizes at which one part of the algorithm is seen."""

    means: np.ndarray
    agents: int
    horizon: int
    epsilon: float | None = None

    @property
    def algorithm(self):
        return DEMAB(self.epsilon)

    @property
    def problem(self):
        return fmab.Problem(self.means, agents=self.agents)


# Gaps at which arms leave or stay by chance: 2^-l, in phase l.
THREE = 0.9 - np.array([0.25, 0.0, 0.5])
FOUR = 0.9 - np.array([0.125, 0.0, 0.125, 0.25])
EIGHT = 0.9 - np.array([0.5, 0.25, 0.0, 0.1251, 0.5, 0.24, 0.0625, 0.12])
SETTINGS = {
    # Of two arms the fourth phase fits before they are split, of three it does not.
    "phases alone": Setting(FOUR, 2, 8_700_000),
    "phases alone, many arms": Setting(EIGHT, 3, 2 * 10**7),
    "more arms than agents": Setting(EIGHT, 3, 4 * 10**5),
    "fewer arms than agents": Setting(THREE, 7, 10**5),
    "private, phases alone": Setting(THREE, 2, 10**7, 0.01),
    "private, more arms than agents": Setting(EIGHT, 3, 10**7, 0.01),
    "private, fewer arms than agents": Setting(THREE, 7, 5 * 10**5, 0.01),
    "private, many agents to an arm": Setting(THREE, 100, 10**5, 0.01),
}


QUICK = [name for name in SETTINGS if "more" in name or name.endswith("many arms")]
QUICK += ["private, fewer arms than agents"]


@pytest.mark.parametrize("name", quick.only(SETTINGS, *QUICK))
def test_runs_are_those_of_the_slow_twin_draw_by_draw(name):
    """Would catch phases of another length, means over all phases so far, noise of another scale or
    of one agent where several share an arm, loads balanced otherwise or never, arms kept that were
    dropped alone, another common phase, a phase that T cuts and that decides, and numbers that are
    counted twice or not at all."""
    means, agents, horizon, epsilon = setting = SETTINGS[name]
    slots = np.unique(np.geomspace(1, horizon, 60).astype(np.int64))
    data = fmab.simulate(setting.algorithm, setting.problem, horizon, SEEDS, times=slots)
    ended, output = set(), set()
    for seed in range(SEEDS):
        tables = ([np.asarray(x)[seed] for x in part] for part in uniforms(agents, len(means)))
        run = demab(Tables(*tables), means, agents, horizon, epsilon, slots)
        np.testing.assert_allclose(data.regret.values[seed], run.regret, rtol=1e-9, atol=1e-9)
        actual = {item: data[item].values[seed].item() for item in FOUND}
        assert actual == {key: getattr(run, FOUND[key]) for key in FOUND}, seed
        assert data.links.values[seed, -1].sum() == agents * run.rounds
        ended.add(round(run.regret[-1]))
        output.add(run.sent)
    assert len(ended) > 3 and len(output) > 1


FOUND = {
    "rounds_made": "rounds",
    "numbers_sent": "sent",
    "active_arms": "active",
    "chosen_arm": "chosen",
    "agents_lost": "lost",
}


def test_noise_is_as_small_as_the_length_of_a_phase_promises():
    """Would catch a constant with which the noise of few or of many agents is above 2^-l / 8 with a
    chance of more than 2 / (M K T)^2."""
    with jax.enable_x64(True):
        for noises in (1, 2, 5, 10, 30, 100, 1000):
            shape = jnp.asarray(laplace.laplace_sum_shape(noises))
            for log in (3.0, 6.0, 12.0, 16.0):
                z = normal.quantile(jnp.float64(math.exp(-2 * log)))
                reached = -float(laplace.laplace_sum(z, shape))
                assert reached <= math.sqrt(8) * max(math.sqrt(2 * noises * log), 2 * log)


def test_the_plug_in_is_run_by_its_name(tmp_path):
    """Would catch an example of the pages that the command does not take, or runs otherwise."""
    file = inspect.getfile(DEMAB)
    assert Path(file) == Path(__file__).parents[2] / "docs/examples/demab.py"
    words = f"run demab --plugin {file} --agents 4 --arms 3 --epsilon 0.5 --horizon 1e5 --seeds 4"
    assert main([*words.split(), "--out", str(tmp_path / "r")]) == 0
    data = fmab.simulate(DEMAB(0.5), fmab.Problem.uniform(4, 3), 10**5, 4)
    assert (fmab.load(tmp_path / "r.nc").regret == data.regret).all()


def test_an_only_arm_is_played_and_nothing_is_said():
    """Would catch a message about the only arm, and a phase that never ends."""
    data = fmab.simulate(DEMAB(), fmab.Problem([0.5], agents=3), 100, 2)
    assert (data.chosen_arm == 0).all() and (data.regret == 0).all()
    assert data.numbers_sent.values.tolist() == [0, 0]
