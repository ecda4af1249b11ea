"""The arena's algorithms against slow twins: draw by draw, and in law."""

from __future__ import annotations

import functools
import math

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
from fmab_jax.algorithms.kl_ucb import largest_mean
from fmab_jax.core import keys

ALPHA = 1e-6
HORIZON = 300
STAR = nx.star_graph(AGENTS - 1)
STREAMS = {
    "reward": keys.REWARD,
    "choose": keys.NOISE,
    "talk": keys.PARTICIPATION,
    "release": keys.ALONE,
    "lasting": keys.LASTING,
}

# name: (package's algorithm, twin, means)
SETTINGS = {
    "uniform play": (fmab.uniform_play(), twins.uniform_play, SHARED),
    "thompson": (fmab.thompson(), twins.thompson, UNEQUAL),
    "thompson, pooled": (
        fmab.thompson(pooled=True),
        functools.partial(twins.thompson, pooled=True),
        SHARED,
    ),
    "kl_ucb": (fmab.kl_ucb(), twins.kl_ucb, UNEQUAL),
    "kl_ucb, pooled": (
        fmab.kl_ucb(constant=3.0, pooled=True),
        functools.partial(twins.kl_ucb, constant=3.0, pooled=True),
        SHARED,
    ),
    "ldp_ucb": (fmab.ldp_ucb(5.0), functools.partial(twins.ldp_ucb, epsilon=5.0), UNEQUAL),
    "ldp_ucb, pooled": (
        fmab.ldp_ucb(1.0, pooled=True),
        functools.partial(twins.ldp_ucb, epsilon=1.0, pooled=True),
        SHARED,
    ),
    "ldp_ucb, bits": (
        fmab.ldp_ucb(1.0, bits=True),
        functools.partial(twins.ldp_ucb, epsilon=1.0, bits=True),
        SHARED,
    ),
    "ldp_ucb, bits, pooled": (
        fmab.ldp_ucb(2.0, bits=True, pooled=True),
        functools.partial(twins.ldp_ucb, epsilon=2.0, bits=True, pooled=True),
        UNEQUAL,
    ),
    "adap_ucb": (fmab.adap_ucb(1.0), functools.partial(twins.adap_ucb, epsilon=1.0), SHARED),
    "adap_ucb, hardly private": (
        fmab.adap_ucb(50.0, alpha=0.5),
        functools.partial(twins.adap_ucb, epsilon=50.0, alpha=0.5),
        UNEQUAL,
    ),
    "lcc_ucb": (fmab.lcc_ucb(), twins.lcc_ucb, SHARED),
    "lcc_ucb, ring": (
        fmab.lcc_ucb("ring"),
        functools.partial(twins.lcc_ucb, graph=ring(AGENTS)),
        SHARED,
    ),
    "lcc_ucb, star": (
        fmab.lcc_ucb(STAR),
        functools.partial(twins.lcc_ucb, graph=STAR),
        SHARED,
    ),
    "dducb": (fmab.dducb(), functools.partial(twins.dducb, graph=ring(AGENTS)), SHARED),
    "dducb, plain": (
        fmab.dducb(accelerated=False),
        functools.partial(twins.dducb, graph=ring(AGENTS), accelerated=False),
        SHARED,
    ),
    "dducb, star": (
        fmab.dducb(STAR, eta=1.5, sigma=0.7),
        functools.partial(twins.dducb, graph=STAR, eta=1.5, sigma=0.7),
        SHARED,
    ),
    "dducb, star, plain": (
        fmab.dducb(STAR, accelerated=False),
        functools.partial(twins.dducb, graph=STAR, accelerated=False),
        SHARED,
    ),
    "dducb, complete": (
        fmab.dducb("complete"),
        functools.partial(twins.dducb, graph=nx.complete_graph(AGENTS)),
        SHARED,
    ),
    "dec_ucb": (fmab.dec_ucb(), functools.partial(twins.dec_ucb, graph=ring(AGENTS)), SHARED),
    "dec_ucb, star": (
        fmab.dec_ucb(STAR),
        functools.partial(twins.dec_ucb, graph=STAR),
        SHARED,
    ),
}
SETTINGS |= {
    "gossip_ucb": (
        fmab.gossip_ucb(radius="scaled"),
        functools.partial(twins.gossip_ucb, graph=nx.complete_graph(AGENTS), scaled=True),
        UNEQUAL,
    ),
    "gossip_ucb, theory": (
        fmab.gossip_ucb(ring(AGENTS)),
        functools.partial(twins.gossip_ucb, graph=ring(AGENTS)),
        SHARED,
    ),
    "gossip_ucb, star": (
        fmab.gossip_ucb(STAR, radius="scaled"),
        functools.partial(twins.gossip_ucb, graph=STAR, scaled=True),
        SHARED,
    ),
    "fed_ucb": (
        fmab.fed_ucb(3000.0, "ring", radius="scaled"),
        functools.partial(
            twins.gossip_ucb, graph=nx.cycle_graph(AGENTS), scaled=True, epsilon=3000.0
        ),
        SHARED,
    ),
    "fed_ucb, theory": (
        fmab.fed_ucb(50.0),
        functools.partial(twins.gossip_ucb, graph=nx.complete_graph(AGENTS), epsilon=50.0),
        UNEQUAL,
    ),
    "fed_ucb, star": (
        fmab.fed_ucb(400.0, STAR, radius="scaled"),
        functools.partial(twins.gossip_ucb, graph=STAR, scaled=True, epsilon=400.0),
        UNEQUAL,
    ),
    "tree_ucb": (fmab.tree_ucb(50.0), functools.partial(twins.tree_ucb, epsilon=50.0), UNEQUAL),
    "tree_ucb, split": (
        fmab.tree_ucb(2000.0, split=True, failure=0.5),
        functools.partial(twins.tree_ucb, epsilon=2000.0, split=True, failure=0.5),
        SHARED,
    ),
}
# Gaussian rewards: fractions of whole sums, as agents mix them, tie but for their last digit.
SMOOTH = {name: 0.4 for name in SETTINGS if name.startswith("dducb")}
# Weights of a fifth give means that tie but for their last digit: these are compared in law alone.
TIES = ("dec_ucb, star",)
QUICK = (
    "thompson",
    "ldp_ucb, pooled",
    "adap_ucb",
    "dec_ucb",
    "lcc_ucb, ring",
    "dducb",
    "gossip_ucb",
    "fed_ucb",
    "tree_ucb",
)


def tables(seed, agents, horizon, columns):
    """The very uniforms that the package draws."""
    found = {}
    with jax.enable_x64(True):
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(seed))
        slot = jnp.arange(horizon + 1, dtype=jnp.uint32)[:, None]
        for name, stream in STREAMS.items():
            words = keys.stream_key(key, 0, stream)
            for width in {1, columns if name in ("choose", "lasting") else 1}:
                lane = jnp.arange(agents * width, dtype=jnp.uint32)[None, :]
                found[name, width] = np.asarray(keys.uniform(*words, lane, slot))
    return found


@pytest.mark.parametrize(
    "name",
    [
        x if x in QUICK else pytest.param(x, marks=pytest.mark.slow)
        for x in SETTINGS
        if x not in TIES
    ],
)
def test_runs_are_those_of_the_slow_twin_draw_by_draw(name):
    """Would catch any decision, sum, noise or count of links that the pseudo-code does not make."""
    algorithm, twin, means = SETTINGS[name]
    times = np.arange(HORIZON + 1)
    data = fmab.simulate(algorithm, problem_named(name), HORIZON, 6, times=times)
    arms = len(means[0])
    edges = algorithm.exchange(AGENTS).links
    for seed in range(6):
        chance = twins.Given(means, tables(seed, AGENTS, HORIZON, arms), SMOOTH.get(name, 0.0))
        run = twin(chance, AGENTS, arms, HORIZON)
        assert_is_the_twin(data, seed, run, gaps_of(means), HORIZON, dict_of(edges))


def problem_named(name):
    """The problem of a setting."""
    means = SETTINGS[name][2]
    if name in SMOOTH:
        return fmab.Problem(means[0], AGENTS, rewards=fmab.Gaussian(SMOOTH[name]))
    return problem_of(means)


def dict_of(links):
    """[meter name] links of a round."""
    return {meter.name: number for meter, number in links}


def p_values(algorithm, name, runs):
    """Of regret at three slots, the package against the twin with Python's own numbers."""
    _, twin, means = SETTINGS[name]
    times = [40, 150, HORIZON]
    ours = fmab.simulate(algorithm, problem_named(name), HORIZON, runs, times=times).regret.values
    theirs = np.empty((runs, 3))
    for i in range(runs):
        run = twin(twins.Chance(means, i, SMOOTH.get(name, 0.0)), AGENTS, len(means[0]), HORIZON)
        theirs[i] = np.cumsum(gaps_of(means)[run.actions].sum(axis=1))[np.array(times) - 1]
    # The last digits are those of another order of sums.
    ours, theirs = ours.round(9), theirs.round(9)
    found = [scipy.stats.ks_2samp(ours[:, j], theirs[:, j]).pvalue for j in range(3)]
    spread = np.sqrt((ours.var(0, ddof=1) + theirs.var(0, ddof=1)) / runs)
    z = (ours.mean(0) - theirs.mean(0)) / np.maximum(spread, 1e-12)
    return np.array([*found, *2 * scipy.stats.norm.sf(abs(z))])


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_law_is_that_of_the_slow_twin(name):
    """Would catch numbers that are not independent, used twice, or of another law."""
    assert p_values(SETTINGS[name][0], name, 300).min() > ALPHA


@pytest.mark.slow
def test_the_comparison_sees_another_epsilon():
    """Would catch a comparison too weak to tell epsilon = 1 from 2."""
    assert p_values(fmab.adap_ucb(2.0), "adap_ucb", 300).min() < ALPHA


def test_the_kl_index_solves_its_equation():
    """Would catch a step of Newton's method too few, or a root on the wrong side."""
    mean = np.concatenate([[0.0, 1.0, 0.5], np.linspace(0.001, 0.999, 97)])[:, None]
    distance = 10.0 ** np.linspace(-7, 2, 28)[None, :]
    with jax.enable_x64(True):
        both = jnp.broadcast_arrays(jnp.asarray(mean), jnp.asarray(distance))
        found = np.asarray(jax.jit(largest_mean)(*both))
    for i, p in enumerate(mean[:, 0]):
        for j, d in enumerate(distance[0]):
            assert found[i, j] == pytest.approx(twins.largest_mean(p, d), abs=1e-8)


@pytest.mark.parametrize("bits", [False, True])
def test_what_is_released_has_the_law_that_privacy_asks_for(bits):
    """Would catch noise of another scale, a bit of another chance, or one number used twice: the
    likelihood ratio of rewards 0 and 1 must be e^epsilon at most, and reach it."""
    epsilon, uniforms = 0.7, (np.arange(200_000) + 0.5) / 200_000
    with jax.enable_x64(True):
        own = {"epsilon": jnp.float64(epsilon), "bits": jnp.float64(bits)}
        told = [
            np.asarray(fmab.ldp_ucb.release(jnp.full(len(uniforms), r), jnp.asarray(uniforms), own))
            for r in (0.0, 1.0)
        ]
    if bits:
        ones = [x.mean() for x in told]
        assert ones[1] / ones[0] == pytest.approx(math.exp(epsilon), rel=1e-4)
        assert ones[0] + ones[1] == pytest.approx(1.0, abs=1e-5)
    else:
        law = scipy.stats.laplace(scale=1 / epsilon)
        for reward, values in zip((0.0, 1.0), told, strict=True):
            np.testing.assert_allclose(law.cdf(np.sort(values) - reward), uniforms, atol=1e-9)


def private_elimination(rng, algorithm, means, agents, horizon, epsilon):
    """DP-SE and Dist-DP-SE pull by pull in NumPy: [agents that share a run] final regret."""
    gaps, together = means.max() - means, algorithm == "dist_dp_se"
    runs, size = (1, agents) if together else (agents, 1)
    regret = 0.0
    for _ in range(runs):
        active, slot, e = np.arange(len(means)), 0, 0
        while slot < horizon and len(active) > 1:
            e += 1
            a, failure = len(active), 1 / horizon
            if together:
                pulls = math.ceil(2.0**e)
            else:
                data = 32 * math.log(8 * a * e**2 / failure) / 0.5 ** (2 * e)
                noise = 8 * math.log(4 * a * e**2 / failure) / (epsilon * 0.5**e)
                pulls = math.ceil(max(data, noise) + 1)
            order = np.tile(active, pulls)[: horizon - slot]
            regret += size * gaps[order].sum()
            slot += len(order)
            if len(order) < pulls * a:
                break
            total = (rng.random((size, pulls, a)) < means[active]).sum(axis=(0, 1))
            mean = (total + rng.laplace(0, 1 / epsilon, a)) / (size * pulls)
            if together:
                tail, count = math.log(2 * a * e**2 / failure), size * pulls
                radius = math.sqrt(math.log(4 * a * e**2 / failure) / (2 * count))
                radius += (math.sqrt(2 * tail) + tail) / (epsilon * count)
            else:
                radius = math.sqrt(math.log(8 * a * e**2 / failure) / (2 * pulls))
                radius += math.log(4 * a * e**2 / failure) / (pulls * epsilon)
            active = active[mean.max() - mean <= 2 * radius]
        regret += size * gaps[active[0]] * (horizon - slot)
    return regret


def fed1_ucb(rng, _, means, agents, horizon, pulls):
    """Fed1-UCB pull by pull: final regret; radius sqrt(log T / (M n)), sigma being 1/2."""
    gaps, active = means.max() - means, np.arange(len(means))
    slot, regret, n, sums = 0, 0.0, 0, np.zeros(len(means))
    while slot < horizon and len(active) > 1:
        order = np.tile(active, pulls)[: horizon - slot]
        regret += agents * gaps[order].sum()
        slot += len(order)
        if len(order) < pulls * len(active):
            break
        n += pulls
        sums[active] += (rng.random((agents * pulls, len(active))) < means[active]).sum(axis=0)
        mean, radius = sums[active] / (agents * n), math.sqrt(math.log(horizon) / (agents * n))
        active = active[mean + radius >= (mean - radius).max()]
    return regret + agents * gaps[active[0]] * (horizon - slot)


ELIMINATION_MEANS = np.array([0.9, 0.75, 0.5, 0.2])
ELIMINATION = {
    "dp_se": (fmab.dp_se(0.4), 20_000, 0.4),
    "dist_dp_se": (fmab.dist_dp_se(0.05), 20_000, 0.05),
    "dist_dp_se, hardly private": (fmab.dist_dp_se(5.0), 10_000, 5.0),
    "fed1_ucb": (fmab.fed1_ucb(pulls=10), 10_000, 10),
}


@pytest.mark.parametrize(
    "name",
    [
        "dist_dp_se",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ELIMINATION if n != "dist_dp_se"),
    ],
)
def test_private_elimination_has_the_law_of_the_slow_twin(name):
    """Would catch noise by every agent in place of one, old epochs remembered, another radius."""
    assert elimination_p_values(name, 600).min() > ALPHA


def elimination_p_values(name, runs):
    """Of regret at T: the package against the twin, and against agents drawn one by one."""
    algorithm, horizon, epsilon = ELIMINATION[name]
    means, rng = ELIMINATION_MEANS, np.random.default_rng(7)
    plain = name.split(",")[0]
    twin = fed1_ucb if plain == "fed1_ucb" else private_elimination
    slow = [twin(rng, plain, means, 4, horizon, epsilon) for _ in range(runs)]
    problem = fmab.Problem(means, agents=4)
    fast, apart = (
        fmab.simulate(
            algorithm, problem, horizon, 20_000, times=1, sum_agents=together
        ).regret.values[:, -1]
        for together in (True, False)
    )
    # The last digits are those of another order of sums.
    fast, apart, slow = (np.round(x, 6) for x in (fast, apart, slow))
    assert np.unique(fast).size > 1 and fast.std() > 0.01 * fast.mean()
    return np.array([scipy.stats.ks_2samp(fast, other).pvalue for other in (slow, apart)])


@pytest.mark.parametrize("algorithm", [fmab.ldp_ucb, fmab.adap_ucb, fmab.fed_ucb, fmab.tree_ucb])
def test_no_epsilon_is_claimed_for_rewards_without_a_range(algorithm):
    """Would catch noise for rewards in [0, 1] on rewards that one change can move further."""
    problem = fmab.Problem.uniform(3, 4, rewards="gaussian:0.5")
    with pytest.raises(ValueError, match=r"^epsilon=1.0: must be None with gaussian rewards"):
        fmab.simulate(algorithm(1.0), problem, 100, 2)
    data = fmab.simulate(algorithm(None), problem, 100, 2)
    assert math.isinf(data.attrs["epsilon"]) and np.isfinite(data.regret.values).all()
