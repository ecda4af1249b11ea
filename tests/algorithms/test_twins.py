"""Every algorithm and its slow twin in law: the twin has uniforms of NumPy's generator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import index_twins
import numpy as np
import pytest
import scipy.stats
import test_arena as arena
import test_demab as demab
import test_episodes as episodes
import test_index as index

import fmab_jax as fmab

ALPHA, SLOTS = 1e-6, 300


class Pair(NamedTuple):
    """An algorithm, and a twin that returns the regret of a run at some slots; maybe more.

    `means`: whether means are compared as well as distribution functions.
    """

    algorithm: Any
    problem: Any
    horizon: int
    twin: Callable[[int], np.ndarray]
    times: tuple[int, ...]
    runs: int
    seeds: int
    means: bool


def play_index(twin, talks, means, run):
    """Returns the regret of a twin of test_index.py at three slots."""
    graph = index_twins.ring(index.AGENTS)
    tables = np.random.default_rng(run).random((2, index.HORIZON + 1, index.AGENTS))
    reward, neighbour = index_twins.given_chance(means, graph, *tables)
    played = twin(means, index.AGENTS, index.HORIZON, reward, *[neighbour] * talks)
    return index_twins.regret(played, index.gaps_of(means))[[40, 150, index.HORIZON]]


def play_arena(name, run):
    """Returns the regret of a twin of test_arena.py at three slots."""
    (_, twin, means), rng = arena.SETTINGS[name], np.random.default_rng(run)
    shape, arms = (SLOTS + 1, arena.AGENTS), len(means[0])
    widths = [(stream, width) for stream in arena.STREAMS for width in (1, arms)]
    tables = {key: rng.random((shape[0], shape[1] * key[1])) for key in widths}
    tables["tries"] = rng.random((shape[0], shape[1] * arms, arena.TRIES))
    chance = arena.twins.Chance(means, tables, arena.SMOOTH.get(name, 0.0))
    played = twin(chance, arena.AGENTS, arms, SLOTS)
    return index_twins.regret(played, arena.gaps_of(means))[[40, 150, SLOTS]]


def play_epochs(name, horizon, params, run):
    """Returns the final regret of DP-SE, Dist-DP-SE or Fed1-UCB, four agents."""
    rng, means = np.random.default_rng(run), np.array([0.9, 0.75, 0.5, 0.2])
    tables = arena.Tables(rng.random((4, 1000, 4)), rng.laplace(size=(4, 1000, 4)))
    twin = arena.fed1_ucb if name == "fed1_ucb" else arena.private_elimination
    return np.array([sum(end.regret for end in twin(tables, name, means, 4, horizon, *params))])


def play_demab(setting, run):
    """Returns the final regret of DEMAB, and how many numbers it sent."""
    rng, size = np.random.default_rng(run), (demab.PHASES, len(setting.means))
    own, together = rng.random((2, setting.agents, *size)), rng.random((2, *size))
    played = demab.demab(demab.Tables([rng.random(size[1])], own, together), *setting)
    return np.array([played.regret[-1], played.sent])


def play_episodes(twin, secure, run):
    """Returns the final regret of DP-IMED or DP-KLUCB, three agents."""
    rng, means = np.random.default_rng(run), episodes.MEANS
    gaps, runs = means.max() - means, 1 if secure else 3
    tables = rng.random((runs, 2, episodes.EPISODES, len(means)))
    played = [episodes.play(twin, t, gaps, 700, 0.8, 1.7, 3 if secure else 1) for t in tables]
    return np.array([sum(regret[700] for regret, *_ in played)])


def play_adap(params, run):
    """Returns the final regret of AdaP-UCB, three agents."""
    rng, means = np.random.default_rng(run), episodes.MEANS
    tables = rng.random((3, 2, episodes.EPISODES, len(means)))
    runs = [episodes.double(t, means.max() - means, 300, **params) for t in tables]
    return np.array([sum(regret[300] for regret, *_ in runs)])


def play_kl_se(epsilon, rules, run):
    """Returns the final regret of KL-SE, four agents."""
    means = episodes.MEANS
    tables = np.random.default_rng(run).random((2, episodes.EPISODES, len(means)))
    gaps, rules = means.max() - means, {"secure": False, "split": False} | rules
    played = episodes.eliminate(tables, gaps, 4, 4000, epsilon, 2.0, 7, **rules)
    return np.array([played[0]])


def pairs():
    """Returns all pairs, by the name of the algorithm and of the setting."""
    every = {}

    def add(name, algorithm, problem, horizon, twin, times, runs, seeds, means):
        pair = Pair(algorithm, problem, horizon, twin, times, runs, seeds, means)
        every[f"{algorithm.name}: {name}"] = pair

    four = fmab.Problem([0.9, 0.75, 0.5, 0.2], agents=4)
    for name, algorithm, horizon, params in (
        ("dp_se", fmab.dp_se(0.4), 20_000, (0.4,)),
        ("dist_dp_se", fmab.dist_dp_se(0.05), 20_000, (0.05,)),
        ("dist_dp_se, hardly private", fmab.dist_dp_se(5.0), 10_000, (5.0,)),
        ("fed1_ucb", fmab.fed1_ucb(pulls=10), 10_000, (10,)),
    ):
        twin = partial(play_epochs, algorithm.name, horizon, params)
        add(name, algorithm, four, horizon, twin, (horizon,), 600, 20_000, False)
    for name, setting in demab.SETTINGS.items():
        twin, times = partial(play_demab, setting), (setting.horizon,)
        sizes = (600, 20_000, False)
        add(name, setting.algorithm, setting.problem, setting.horizon, twin, times, *sizes)
    for name, twin in (("dp_imed", episodes.dp_imed), ("dp_klucb", episodes.dp_klucb)):
        for secure in (False, True):
            algorithm = getattr(fmab, name)(0.8, growth=1.7, secure=secure)
            three, play = fmab.Problem(episodes.MEANS, 3), partial(play_episodes, twin, secure)
            setting = f"{name}{', secure sum' * secure}"
            add(setting, algorithm, three, 700, play, (700,), 100, 4000, True)
    for name, params in (
        ("adap_ucb", {"epsilon": 1.0}),
        ("adap_ucb, hardly private", {"epsilon": 50.0, "alpha": 0.5}),
        ("adap_ucb, kl", {"epsilon": 10.0, "alpha": 0.7, "kl": True}),
    ):
        algorithm, problem = fmab.adap_ucb(**params), fmab.Problem(episodes.MEANS, 3)
        play = partial(play_adap, {"alpha": 3.1, "kl": False} | params)
        add(name, algorithm, problem, 300, play, (300,), 300, 4000, True)
    for name, epsilon, rules in (
        ("kl_se", 2.0, {}),
        ("kl_se, secure sum", 0.6, {"secure": True}),
        ("kl_se, arms split", 2.0, {"split": True}),
    ):
        algorithm = fmab.kl_se(epsilon, growth=2.0, first=7, **rules)
        twin, problem = partial(play_kl_se, epsilon, rules), fmab.Problem(episodes.MEANS, 4)
        add(name, algorithm, problem, 4000, twin, (4000,), 100, 4000, True)
    for name, (algorithm, twin, talks, means) in index.SETTINGS.items():
        times, play = (40, 150, index.HORIZON), partial(play_index, twin, talks, means)
        problem = index.problem_of(means)
        add(name, algorithm, problem, index.HORIZON, play, times, 300, 300, True)
    for name, (algorithm, *_) in arena.SETTINGS.items():
        times, play = (40, 150, SLOTS), partial(play_arena, name)
        problem = arena.problem_named(name)
        add(name, algorithm, problem, SLOTS, play, times, 300, 300, True)
    return every


def p_values(pair, runs=None, seeds=None, first=0):
    """Returns p-values of equal distribution functions, and of equal means where they count."""
    runs, seeds = runs or pair.runs, seeds or pair.seeds
    chosen = range(first, first + seeds)
    data = fmab.simulate(pair.algorithm, pair.problem, pair.horizon, chosen, times=list(pair.times))
    slow = np.array([pair.twin(run) for run in range(first, first + runs)])
    fast = np.column_stack([data.regret.values, data.numbers_sent.values])[:, : slow.shape[1]]
    # The last digits are those of another order of sums.
    slow, fast = slow.round(6), fast.round(6)
    values = [scipy.stats.ks_2samp(x, y).pvalue for x, y in zip(fast.T, slow.T, strict=True)]
    if pair.means:
        spread = np.sqrt(fast.var(0, ddof=1) / seeds + slow.var(0, ddof=1) / runs)
        z = (fast.mean(0) - slow.mean(0)) / np.maximum(spread, 1e-12)
        values += [*2 * scipy.stats.norm.sf(abs(z))]
    return np.array(values)


@pytest.mark.slow
@pytest.mark.parametrize("name", pairs())
def test_the_law_is_that_of_the_slow_twin(name):
    """Would catch numbers that are used twice, of another law, or not independent of each other."""
    assert p_values(pairs()[name]).min() > ALPHA


def test_the_comparison_sees_another_alpha():
    """Would catch a comparison too weak to tell alpha = 2 from 1.5."""
    pair = pairs()["ucb1: alone"]
    assert p_values(pair._replace(algorithm=fmab.ucb1(alpha=1.5))).min() < ALPHA
