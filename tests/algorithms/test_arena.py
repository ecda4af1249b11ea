"""The arena's algorithms against slow twins: draw by draw, and in law."""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import NamedTuple

import arena_twins as twins
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.stats
from index_twins import ring
from test_index import AGENTS, SHARED, UNEQUAL, assert_is_the_twin, gaps_of, problem_of

import fmab_jax as fmab
from fmab_jax.algorithms.kl_ucb import maximize_mean
from fmab_jax.sampling import keys, laplace, normal

# Draw by draw. Every policy has talked by then, and LCC-UCB has begun its third epoch.
SLOTS, SEEDS = 130, 3
# Numbers of a draw that is rejected until it is right.
TRIES = 60
STAR, RING, COMPLETE = nx.star_graph(AGENTS - 1), ring(AGENTS), nx.complete_graph(AGENTS)
STREAMS = {
    "reward": keys.REWARD,
    "choose": keys.NOISE,
    "talk": keys.PARTICIPATION,
    "release": keys.ALONE,
    "lasting": keys.LASTING,
}


def both(name, means, *places, graph=None, **given):
    """A setting of which the package's algorithm and the twin take the same parameters."""
    own = {} if graph is None else {"graph": graph}
    return (
        getattr(fmab, name)(*places, **given),
        partial(getattr(twins, name), **own, **given),
        means,
    )


# name: (package's algorithm, twin, means)
SETTINGS = {
    "uniform play": both("uniform_play", SHARED),
    "thompson": both("thompson", UNEQUAL),
    "thompson, pooled": both("thompson", SHARED, pooled=True),
    "kl_ucb": both("kl_ucb", UNEQUAL),
    "kl_ucb, pooled": both("kl_ucb", SHARED, constant=3.0, pooled=True),
    "ldp_ucb": both("ldp_ucb", UNEQUAL, epsilon=5.0),
    "ldp_ucb, pooled": both("ldp_ucb", SHARED, epsilon=1.0, pooled=True),
    "ldp_ucb, bits": both("ldp_ucb", SHARED, epsilon=1.0, bits=True),
    "ldp_ucb, bits, pooled": both("ldp_ucb", UNEQUAL, epsilon=2.0, bits=True, pooled=True),
    "lazy_dp_ts": both("lazy_dp_ts", SHARED, epsilon=1.0),
    "lazy_dp_ts, hardly private": both("lazy_dp_ts", UNEQUAL, epsilon=50.0),
    "lcc_ucb": both("lcc_ucb", SHARED),
    "lcc_ucb, ring": both("lcc_ucb", SHARED, "ring", graph=RING),
    "lcc_ucb, star": both("lcc_ucb", SHARED, STAR, graph=STAR),
    "dducb": both("dducb", SHARED, graph=RING),
    "dducb, plain": both("dducb", SHARED, graph=RING, accelerated=False),
    "dducb, star": both("dducb", SHARED, STAR, graph=STAR, eta=1.5, sigma=0.7),
    "dducb, star, plain": both("dducb", SHARED, STAR, graph=STAR, accelerated=False),
    "dducb, complete": both("dducb", SHARED, "complete", graph=COMPLETE),
    "dec_ucb": both("dec_ucb", SHARED, graph=RING),
    "dec_ucb, star": both("dec_ucb", SHARED, STAR, graph=STAR),
}


def gossip(graph, means, *places, **given):
    """A setting of Gossip_UCB or, with an epsilon in the first place, of Fed_UCB."""
    private = {"epsilon": places[0]} if places and isinstance(places[0], float) else {}
    algorithm = (fmab.fed_ucb if private else fmab.gossip_ucb)(*places, **given)
    twin = partial(twins.gossip_ucb, graph=graph, scaled="radius" in given, **private)
    return algorithm, twin, means


SETTINGS |= {
    "gossip_ucb": gossip(COMPLETE, UNEQUAL, radius="scaled"),
    "gossip_ucb, theory": gossip(RING, SHARED, RING),
    "gossip_ucb, star": gossip(STAR, SHARED, STAR, radius="scaled"),
    "fed_ucb": gossip(RING, SHARED, 3000.0, "ring", radius="scaled"),
    "fed_ucb, theory": gossip(COMPLETE, UNEQUAL, 50.0),
    "fed_ucb, star": gossip(STAR, UNEQUAL, 400.0, STAR, radius="scaled"),
    "tree_ucb": both("tree_ucb", UNEQUAL, epsilon=50.0),
    "tree_ucb, split": both("tree_ucb", SHARED, epsilon=2000.0, split=True, failure=0.5),
}
# Gaussian rewards: fractions of whole sums, as agents mix them, tie but for their last digit.
SMOOTH = {name: 0.4 for name in SETTINGS if name.startswith(("dducb", "dec_ucb"))}


@functools.cache
def tables(seed, agents, horizon, columns):
    """The very uniforms that the package draws."""
    actual = {}
    with jax.enable_x64(True):
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(seed))
        slot = jnp.arange(horizon + 1, dtype=jnp.uint32)[:, None]
        for name, stream in STREAMS.items():
            words = keys.stream_key(key, 0, stream)
            for width in {1, columns if name in ("choose", "lasting") else 1}:
                lane = jnp.arange(agents * width, dtype=jnp.uint32)[None, :]
                actual[name, width] = np.asarray(keys.uniform(*words, lane, slot))
        words = keys.stream_key(key, 0, keys.NOISE)
        lane = jnp.arange(agents * columns, dtype=jnp.uint32)[:, None]
        number = jnp.arange(TRIES, dtype=jnp.uint32)[None, :]
        actual["tries"] = np.asarray(
            jax.vmap(lambda t: keys.uniform(*keys.fold_key(words, t), lane, number))(slot[:, 0])
        )
    return actual


@pytest.mark.parametrize("name", SETTINGS)
def test_runs_are_those_of_the_slow_twin_draw_by_draw(name):
    """Would catch any decision, sum, noise or count of links that the pseudo-code does not make."""
    algorithm, twin, means = SETTINGS[name]
    times = np.arange(SLOTS + 1)
    data = fmab.simulate(algorithm, problem_named(name), SLOTS, SEEDS, times=times)
    arms, exchange = len(means[0]), algorithm.exchange(AGENTS)
    for seed in range(SEEDS):
        chance = twins.Chance(means, tables(seed, AGENTS, SLOTS, arms), SMOOTH.get(name, 0.0))
        run = twin(chance, AGENTS, arms, SLOTS)
        assert_is_the_twin(data, seed, run, gaps_of(means), SLOTS, exchange)


def problem_named(name):
    """The problem of a setting."""
    means = SETTINGS[name][2]
    if name in SMOOTH:
        return fmab.Problem(means[0], AGENTS, rewards=fmab.Gaussian(SMOOTH[name]))
    return problem_of(means)


def test_the_kl_index_solves_its_equation():
    """Would catch a step of Newton's method too few, or a root on the wrong side."""
    mean = np.concatenate([[0.0, 1.0, 0.5], np.linspace(0.001, 0.999, 97)])[:, None]
    distance = 10.0 ** np.linspace(-7, 2, 28)[None, :]
    with jax.enable_x64(True):
        both = jnp.broadcast_arrays(jnp.asarray(mean), jnp.asarray(distance))
        actual = np.asarray(jax.jit(maximize_mean)(*both))
    for i, p in enumerate(mean[:, 0]):
        for j, d in enumerate(distance[0]):
            assert actual[i, j] == pytest.approx(twins.maximize_mean(p, d), abs=1e-8)


class Tables:
    """Sums of rewards and noise of an epoch, from [run, epoch, arm] uniforms and noise."""

    def __init__(self, uniforms, noise):
        self.uniforms, self.noises = uniforms, noise

    def total(self, run, epoch, active, count, means):
        return scipy.stats.binom.ppf(self.uniforms[run, epoch, active], count, means[active])

    def noise(self, run, epoch, active):
        return self.noises[run, epoch, active]


class Ended(NamedTuple):
    """What is left of a run."""

    regret: float
    rounds: int
    active: int
    chosen: int
    lost: int


def private_elimination(chance, name, means, agents, horizon, epsilon, failure=None):
    """DP-SE and Dist-DP-SE: how it ends for each agent, or for all together."""
    gaps, together = means.max() - means, name == "dist_dp_se"
    runs, size = (1, agents) if together else (agents, 1)
    failure, ended = failure or 1 / horizon, []
    for run in range(runs):
        active, slot, e, rounds, regret = np.arange(len(means)), 0, 0, 0, 0.0
        while slot < horizon and len(active) > 1:
            e += 1
            a = len(active)
            if together:
                pulls = math.ceil(2.0**e)
            else:
                data = 32 * math.log(8 * a * e**2 / failure) / 0.5 ** (2 * e)
                noise = 8 * math.log(4 * a * e**2 / failure) / (epsilon * 0.5**e)
                pulls = math.ceil(max(data, noise) + 1)
            slots = min(a * pulls, horizon - slot)
            regret += size * gaps[active].mean() * slots
            slot += slots
            if slots < pulls * a:
                break
            total = chance.total(run, e, active, size * pulls, means)
            mean = (total + chance.noise(run, e, active) / epsilon) / (size * pulls)
            if together:
                tail, count = math.log(2 * a * e**2 / failure), size * pulls
                radius = math.sqrt(math.log(4 * a * e**2 / failure) / (2 * count))
                radius += (math.sqrt(2 * tail) + tail) / (epsilon * count)
            else:
                radius = math.sqrt(math.log(8 * a * e**2 / failure) / (2 * pulls))
                radius += math.log(4 * a * e**2 / failure) / (pulls * epsilon)
            active, rounds = active[mean.max() - mean <= 2 * radius], e
        ended.append(finished(active, gaps, size, regret, rounds, horizon - slot))
    return ended


def finished(active, gaps, size, regret, rounds, left):
    """The end of a run: the arm that is left is played."""
    chosen = int(active[0]) if len(active) == 1 else -1
    regret += size * gaps[chosen] * left if chosen >= 0 else 0.0
    return Ended(regret, rounds, len(active), chosen, size * (gaps[active].min() > 0))


def fed1_ucb(chance, _, means, agents, horizon, pulls):
    """Fed1-UCB: how it ends; radius sqrt(log T / (M n)), sigma being 1/2."""
    gaps, active = means.max() - means, np.arange(len(means))
    slot, regret, n, sums, phase = 0, 0.0, 0, np.zeros(len(means)), 0
    while slot < horizon and len(active) > 1:
        slots = min(len(active) * pulls, horizon - slot)
        regret += agents * gaps[active].mean() * slots
        slot += slots
        if slots < pulls * len(active):
            break
        n, phase = n + pulls, phase + 1
        sums[active] += chance.total(0, phase, active, agents * pulls, means)
        mean, radius = sums[active] / (agents * n), math.sqrt(math.log(horizon) / (agents * n))
        active = active[mean + radius >= (mean - radius).max()]
    return [finished(active, gaps, agents, regret, phase, horizon - slot)]


# Gaps about as large as the distance at which an arm leaves, where noise decides.
CLOSE = np.array([0.9, 0.7, 0.68, 0.5])
# name: (algorithm, twin's name, horizon, what the twin takes)
DRAWS = {
    "dp_se": (fmab.dp_se(0.05, failure=1.0), "dp_se", 20_000, (0.05, 1.0)),
    "dist_dp_se": (fmab.dist_dp_se(0.5), "dist_dp_se", 3000, (0.5,)),
    "fed1_ucb": (fmab.fed1_ucb(pulls=10), "fed1_ucb", 3000, (10,)),
}


def drawn_by_epochs(seeds, runs, alone):
    """[seed, run, epoch, arm] uniforms of rewards, and noise of scale 1, that the package draws."""

    def drawn(seed, run, epoch):
        key = keys.seed_key(jnp.uint32(0), seed)
        key = keys.agent_key(key, run) if alone else key
        words = [keys.stream_key(key, epoch, stream) for stream in (keys.REWARD, keys.NOISE)]
        return [keys.uniform(*item, jnp.arange(4, dtype=jnp.uint32)) for item in words]

    def every(seed, run, epoch):
        rewards, noise = jax.vmap(
            jax.vmap(jax.vmap(drawn, (None, None, 0)), (None, 0, None)), (0, None, None)
        )(seed, run, epoch)
        # A sum of noise is a function of one normal variable.
        shape = jnp.asarray(laplace.laplace_sum_shape(1))
        output = (
            laplace.quantile(noise) if alone else laplace.laplace_sum(normal.quantile(noise), shape)
        )
        return rewards, output

    with jax.enable_x64(True):
        run, epoch = jnp.arange(runs, dtype=jnp.int32), jnp.arange(80, dtype=jnp.int32)
        return [
            np.asarray(x) for x in jax.jit(every)(jnp.arange(seeds, dtype=jnp.uint32), run, epoch)
        ]


@pytest.mark.parametrize("name", DRAWS)
def test_private_elimination_is_that_of_the_slow_twin_draw_by_draw(name):
    """Would catch noise of another scale, or old epochs remembered or forgotten."""
    algorithm, twin, horizon, own = DRAWS[name]
    data = fmab.simulate(algorithm, fmab.Problem(CLOSE, agents=4), horizon, 60, times=1)
    alone = name == "dp_se"
    play = fed1_ucb if name == "fed1_ucb" else private_elimination
    drawn = drawn_by_epochs(60, 4 if alone else 1, alone)
    ends = [
        play(Tables(*given), twin, CLOSE, 4, horizon, *own) for given in zip(*drawn, strict=True)
    ]
    regret = [sum(item.regret for item in end) for end in ends]
    np.testing.assert_allclose(data.regret.values[:, -1], regret, rtol=1e-12)
    for field, actual, over in (
        ("rounds_made", "rounds", max),
        ("active_arms", "active", max),
        ("agents_lost", "lost", sum),
    ):
        expected = [over(getattr(item, actual) for item in end) for end in ends]
        np.testing.assert_array_equal(data[field].values, expected, field)
    if not alone:
        np.testing.assert_array_equal(data.chosen_arm.values, [end[0].chosen for end in ends])
    assert len(np.unique(data.rounds_made)) > 1 and len(np.unique(data.regret[:, -1])) > 3
