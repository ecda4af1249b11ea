"""Linear worlds against a slow twin in NumPy that plays slot by slot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import index_twins
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import test_index as index

import fmab_jax as fmab
from fmab_jax.cli.main import main
from fmab_jax.parts.plugins import imported
from fmab_jax.parts.worlds.contextual import draw_contexts
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings

AGENTS, ARMS, D, HORIZON, ALPHA = 3, 4, 3, 100, 1e-6
PROBLEM = fmab.Problem.uniform(AGENTS, ARMS, world=fmab.Linear(D))
PAGE = (Path(__file__).parents[2] / "docs/own_world.md").read_text("utf-8")
LINUCB = next(block for block in PAGE.split("```python\n") if "class LinUCB" in block)


class World(NamedTuple):
    """One seed: theta [entry], contexts [slot, agent, arm, entry], uniforms [slot, agent]."""

    theta: np.ndarray
    contexts: np.ndarray
    uniforms: np.ndarray


def same_draws(seed, horizon=HORIZON):
    """Returns the world with the very numbers that the package draws; slot 0 is not played."""
    with package_settings():
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(seed))
        theta, slots = (keys.stream_key(key, 0, x) for x in (keys.SEGMENT, keys.CONTEXT))
        theta = np.asarray(keys.uniform(*theta, jnp.arange(D, dtype=jnp.uint32)))
        lane = jnp.arange(AGENTS * ARMS * D, dtype=jnp.uint32)
        draw = jax.jit(jax.vmap(lambda t: keys.uniform(*keys.fold_key(slots, t), lane)))
        uniform = np.asarray(draw(jnp.arange(horizon + 1)))
    waits = -np.log(uniform).reshape(-1, AGENTS, ARMS, D)
    contexts = waits / waits.sum(axis=3, keepdims=True)
    return World(theta, contexts, index.uniforms(seed, horizon, AGENTS, keys.REWARD))


def free_draws(rng, horizon=HORIZON):
    """Returns a world with numbers of NumPy: contexts from its own Dirichlet law."""
    contexts = rng.dirichlet(np.ones(D), (horizon + 1, AGENTS, ARMS))
    return World(rng.random(D), contexts, rng.random((horizon + 1, AGENTS)))


def play(world, choose, learn, late=0, exact=False):
    """Plays slot by slot; returns the regret up to each slot, summed over agents.

    Rewards are 0 and 1, or exactly the mean.
    """
    horizon = HORIZON
    regret = np.zeros(horizon)
    for t in range(1, horizon + 1):
        seen = world.contexts[max(1, t - late)]
        arms = [choose(t, agent, seen[agent]) for agent in range(AGENTS)]
        for agent, arm in enumerate(arms):
            means = world.contexts[t, agent] @ world.theta
            reward = means[arm] if exact else float(world.uniforms[t, agent] > 1.0 - means[arm])
            learn(t, agent, arm, seen[agent, arm], reward)
            regret[t - 1] += means.max() - means[arm]
    return np.cumsum(regret)


def play_ucb1(world, exact=False):
    """UCB1, for which arms are fixed."""
    pulls, sums = np.zeros((2, AGENTS, ARMS))

    def choose(t, agent, contexts):
        width = 2.0 * np.log(t)
        pairs = zip(pulls[agent], sums[agent], strict=True)
        return index_twins.lowest_best([index_twins.bound(n, s, width) for n, s in pairs])

    def learn(t, agent, arm, context, reward):
        pulls[agent, arm] += 1
        sums[agent, arm] += reward

    return play(world, choose, learn, exact=exact)


def play_linucb(world, period=7, alpha=1.0, late=0):
    """LinUCB with the ridge estimate anew in each slot, from a list of all that an agent knows."""
    known: list[list[tuple[np.ndarray, float]]] = [[] for _ in range(AGENTS)]
    unsent: list[list[tuple[np.ndarray, float]]] = [[] for _ in range(AGENTS)]

    def choose(t, agent, contexts):
        if t > 1 and (t - 1) % period == 0 and agent == 0:
            for other in range(AGENTS):
                known[other] += [x for peer in range(AGENTS) if peer != other for x in unsent[peer]]
            for messages in unsent:
                messages.clear()
        x = np.array([context for context, _ in known[agent]]).reshape(-1, D)
        y = np.array([reward for _, reward in known[agent]])
        matrix = np.eye(D) + x.T @ x
        estimate = np.linalg.solve(matrix, x.T @ y)
        width = np.sqrt(np.einsum("kd,kd->k", contexts, np.linalg.solve(matrix, contexts.T).T))
        return int(np.argmax(contexts @ estimate + alpha * width))

    def learn(t, agent, arm, context, reward):
        known[agent].append((context, reward))
        unsent[agent].append((context, reward))

    return play(world, choose, learn, late=late)


@pytest.fixture(scope="module")
def linucb(tmp_path_factory):
    """The class of the page."""
    path = tmp_path_factory.mktemp("page") / "linucb.py"
    path.write_text(LINUCB.split("```")[0], "utf-8")
    return imported(path).LinUCB


TWINS = {"ucb1": play_ucb1, "linucb": play_linucb}


@pytest.fixture(scope="module")
def runs(linucb):
    """Results of both policies in every slot."""
    policies = {"ucb1": fmab.ucb1(), "linucb": linucb(period=7, dimension=D)}
    slots = range(1, HORIZON + 1)
    return {n: fmab.simulate(x, PROBLEM, HORIZON, 200, times=slots) for n, x in policies.items()}


@pytest.mark.parametrize("name", TWINS)
def test_policies_are_the_slow_twin_draw_by_draw(name, runs):
    """Would catch contexts, rewards or gaps of another slot or agent, and agents that share one."""
    for seed in range(3):
        world, actual = same_draws(seed), runs[name].regret.values[seed]
        np.testing.assert_allclose(actual, TWINS[name](world), rtol=1e-9, atol=1e-9)
    if name == "linucb":  # contexts of the slot before are seen
        assert not np.allclose(actual, play_linucb(world, late=1))


@pytest.mark.parametrize("name", TWINS)
def test_policies_have_the_law_of_the_slow_twin(name, runs):
    """Would catch contexts of another law than that of the simplex, and numbers drawn twice."""
    rng, slots = np.random.default_rng(0), [19, 49, HORIZON - 1]
    slow = np.array([TWINS[name](free_draws(rng)) for _ in range(120)])[:, slots]
    actual = runs[name].regret.values[:, slots]
    p = [scipy.stats.ks_2samp(x, y).pvalue for x, y in zip(actual.T, slow.T, strict=True)]
    assert min(p) > ALPHA
    if name == "linucb":  # another width is seen
        other = np.array([play_linucb(free_draws(rng), alpha=4.0) for _ in range(120)])[:, slots]
        assert scipy.stats.ks_2samp(actual[:, -1], other[:, -1]).pvalue < ALPHA


ABSENT = {
    *("active_arms", "chosen_arm", "agents_lost", "agents_worse", "final_gap"),
    *("best_arm_lost", "worse_arm_played"),
}


def test_what_is_said_of_an_arm_is_absent(runs):
    """Would catch a zero in place of an output without a meaning, in every form of results."""
    size = {"agents": AGENTS, "arms": ARMS, "horizon": 20, "seeds": 4}
    worlds = [None, f"linear:{D}"]
    plain = fmab.sweep("ucb1", **size)
    mixed = fmab.sweep("ucb1", **size, world=worlds, outputs=["pulls"])
    kept = fmab.sweep("ucb1", **size, world=worlds, keep="summary")
    assert set(plain.variables) >= ABSENT
    for data in (runs["ucb1"], mixed, kept):
        assert not ABSENT & {*data.variables, *fmab.table(data)}
    assert mixed.world.values.tolist() == ["none", f"linear:{D}"]
    assert (mixed.regret.values[0] == plain.regret.values).all()
    assert (mixed.pulls.sum("arm") == 20 * AGENTS).all()
    assert (fmab.table(mixed).undecided == 0).all()
    # Nobody sends, and no event is counted.
    fmab.plot_parameter(fmab.table(mixed), "world")
    assert "Clopper" not in str(fmab.overview(mixed))


def test_contexts_are_uniform_on_the_simplex_and_agents_have_their_own():
    """Would catch entries that sum to another number, and a context that two places share."""
    with package_settings():
        drawn = draw_contexts(fmab.Linear(D), keys.seed_key(jnp.uint32(0), jnp.uint32(1)), {}, {})
        contexts, means = jax.jit(jax.vmap(lambda t: drawn.draw(t, 4, 5)))(jnp.arange(300))
        fewer = drawn.draw(jnp.int64(7), 2, 5)[0]
    contexts, means = np.asarray(contexts), np.asarray(means)
    np.testing.assert_allclose(contexts.sum(axis=3), 1.0, rtol=1e-12)
    np.testing.assert_allclose(means, contexts @ np.asarray(drawn.theta), rtol=1e-12)
    assert (contexts >= 0.0).all() and len(np.unique(contexts[..., 0])) == means.size
    law = scipy.stats.beta(1, D - 1)  # of each entry
    assert all(
        scipy.stats.kstest(contexts[..., i].ravel(), law.cdf).pvalue > ALPHA for i in range(D)
    )
    np.testing.assert_array_equal(fewer, contexts[7, :2])


def test_rewards_have_the_law_of_the_problem():
    """Would catch Bernoulli rewards, or another deviation, whatever law was asked for."""
    problem = fmab.Problem.uniform(AGENTS, ARMS, rewards=fmab.Gaussian(1e-12), world=f"linear:{D}")
    data = fmab.simulate(fmab.ucb1(), problem, HORIZON, 3, times=range(1, HORIZON + 1))
    for seed in range(3):
        slow = play_ucb1(same_draws(seed), exact=True)
        np.testing.assert_allclose(data.regret.values[seed], slow, rtol=1e-9, atol=1e-9)


@pytest.mark.as_users_have_it
def test_the_policy_of_the_page_keeps_the_contract(linucb):
    """Would catch contexts whose bits depend on the batch or on padding rows."""
    lines = fmab.check_algorithm(linucb(period=7), PROBLEM, horizon=40, seeds=8)
    assert sum(line.startswith("kept") for line in lines) >= 10


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    """Would catch a page whose commands fail, or captions that do not name the world."""
    monkeypatch.chdir(tmp_path)
    Path("linucb.py").write_text(LINUCB.split("```")[0], "utf-8")
    assert len([line for line in LINUCB.split("```")[0].splitlines() if line]) <= 55
    sizes = "--agents 3 --arms 4 --horizon 100 --seeds 4"
    words = f"run linucb --plugin linucb.py --world linear:3 --period 10 100 {sizes} --out r"
    assert main(words.split()) == 0
    data = fmab.load("r.nc")
    assert "world linear:3" in Path("r.txt").read_text("utf-8")
    assert data.numbers_sent.values.tolist() == [[10 * 2 * 3 * 30] * 4, [2 * 3 * 30] * 4]
    assert json.loads(data.attrs["settings"])["world"] == "world linear:3"
    assert main(f"run cdp --epsilon 1 --world linear:3 {sizes} --no-figure".split()) == 2
    assert "only index policies act slot by slot" in capsys.readouterr().err
