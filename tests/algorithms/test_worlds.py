"""Worlds: means that change, against slow twins that play slot by slot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import arena_twins
import index_twins
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import scipy.stats
import test_arena as arena
import test_index as index
import test_layouts as layouts

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax import Study
from fmab_jax.layouts import ragged
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.segments import find_segment, overlap

MEANS, AGENTS, HORIZON, ALPHA = np.array([0.7, 0.35, 0.3]), 4, 3000, 1e-6
SHRINK = 0.8


@dataclass(frozen=True)
class Turned(fmab.World):
    """Means shrink, and their order is reversed, after a share of the horizon."""

    name: ClassVar[str] = "turned"
    title: ClassVar[str] = "turned means"
    segments: ClassVar[int] = 2
    at: float = 0.5

    def ends(self, horizon):
        """Returns the share of the horizon, and the horizon."""
        return jnp.stack([(self.at * horizon.astype(jnp.float64)).astype(jnp.int64), horizon])

    def means(self, words, first):
        """Returns the means in both orders."""
        return jnp.stack([first, SHRINK * first[::-1]])


def instances(problem, horizon, seeds):
    """Returns the ends [segment] and the means [segment, agent, arm] of each seed."""
    bound = problem.bind()
    with package_settings():
        key = jax.vmap(lambda seed: keys.seed_key(jnp.uint32(0), seed))(
            jnp.arange(seeds, dtype=jnp.uint32)
        )
        drawn = jax.jit(jax.vmap(bound.draw, (0, None)))(key, jnp.int64(horizon))
        ends, means = (np.asarray(x) for x in (drawn.segments.ends, drawn.segments.parameters[0]))
    means = np.broadcast_to(
        means.swapaxes(1, 2), (seeds, means.shape[2], problem.agents, problem.arms)
    )
    return ends, means


def slow_elimination(rng, ends, means, horizon, epsilon, reporting, wait=0, split=True):
    """Algorithm 1 slot by slot; returns the regret of each slot, summed over agents."""
    agents, arms = means.shape[1:]
    average = means.mean(axis=1)
    gaps = average.max(axis=1, keepdims=True) - average
    segment = np.searchsorted(ends, np.arange(horizon + 1))  # of each slot, from 1 on
    regret, active, slot, pulls, number = np.zeros(horizon + 1), np.arange(arms), 0, 0, 0
    rewards, noisy = np.zeros((2, agents, arms))

    def pass_slots(slots, players):
        """Notes the regret of some slots, in which so many agents play each arm."""
        now = slice(slot + 1, min(slot + slots, horizon) + 1)
        regret[now] = gaps[segment[now]] @ players
        return min(slot + slots, horizon + 1)

    while len(active) > 1 and slot < horizon:
        number, many = number + 1, len(active)
        log_a, log_k = (math.log(8 * x * number**2 * horizon) for x in (many, arms))
        noise = number * math.sqrt(8 * log_k) / (reporting**1.5 * epsilon)
        goal = 0.5**number
        total = math.ceil(max(8 * log_a / (reporting * goal**2), 4 * noise / goal))
        fresh, start = total - pulls, slot
        slot = pass_slots(many * fresh, np.isin(np.arange(arms), active) * agents / many)
        if slot > horizon:
            break
        # A turn through the arms belongs to the segment of its last slot.
        last = start + many * np.arange(1, fresh + 1) if split else [start + 1] * fresh
        chance = means[segment[last]][:, :, active]
        added = (rng.random(chance.shape) < chance).sum(axis=0)
        rewards[:, active] += added
        noisy[:, active] += added + rng.laplace(scale=1 / (reporting * epsilon), size=added.shape)
        pulls = total
        best = active[rewards[:, active].argmax(axis=1)]
        slot = pass_slots(wait, np.bincount(best, minlength=arms))
        if slot > horizon:
            break
        reporters = rng.choice(agents, reporting, replace=False)
        mean = noisy[reporters].mean(axis=0)[active] / pulls
        radius = math.sqrt(log_a / (2 * reporting * pulls)) + noise / pulls
        active = active[mean.max() - mean < 2 * radius]
    pass_slots(horizon, agents * (np.arange(arms) == active[0]))
    return regret


TWO = fmab.Problem(MEANS, AGENTS, world=Turned(0.3))
THREE = fmab.Problem.uniform(AGENTS, 3, world="drifting:2,0.6")
DIFFER = fmab.Problem.heterogeneous(AGENTS, 3, 0.6, world=Turned(0.3))
EPSILON = 0.25
# Name: algorithm, problem, reporting agents, slots of a wait.
CASES = {
    "alike": (fmab.cdp_mab(EPSILON), TWO, 4, 0),
    "three segments": (fmab.cdp_mab(EPSILON), THREE, 4, 0),
    "differ, some report": (fmab.cdp_mab(EPSILON, participation=0.5), DIFFER, 2, 0),
    "early": (fmab.cdp_mab(EPSILON), fmab.Problem(MEANS, AGENTS, world=Turned(0.05)), 4, 0),
    "wait": (fmab.ddp_mab(EPSILON, graph="path"), DIFFER, 4, 2),
}
SLOTS = [300, 700, 1500, HORIZON]


def twin_regret(name, runs, at=None, split=True):
    """Returns the regret [run, slot] of the slow twin at some slots."""
    algorithm, problem, reporting, wait = CASES[name]
    if at is not None:
        problem = fmab.Problem(problem.means[0], problem.agents, world=Turned(at))
    ends, means = instances(problem, HORIZON, runs)
    rng = np.random.default_rng(0)
    every = [
        slow_elimination(rng, ends[i], means[i], HORIZON, EPSILON, reporting, wait, split)
        for i in range(runs)
    ]
    return np.cumsum(every, axis=1)[:, SLOTS]


def smallest_p(first, second):
    """Returns the smallest p-value of equal laws over columns."""
    columns = zip(first.T.round(6), second.T.round(6), strict=True)
    return min(scipy.stats.ks_2samp(x, y).pvalue for x, y in columns)


@pytest.mark.parametrize("name", CASES)
def test_elimination_has_the_law_of_the_slow_twin(name):
    """Would catch pulls of another segment, numbers drawn twice, or regret by other gaps."""
    algorithm, problem, *_ = CASES[name]
    data = fmab.simulate(algorithm, problem, HORIZON, 400, times=SLOTS)
    slow = twin_regret(name, 400)
    assert smallest_p(data.regret.values, slow) > ALPHA
    assert len(np.unique(slow[:, -1].round(6))) > 2 or name == "early"
    if name == "alike":
        assert smallest_p(data.regret.values, twin_regret(name, 400, at=0.35)) < ALPHA
    if name == "early":  # as if an epoch had the means of its first slot
        assert smallest_p(data.regret.values, twin_regret(name, 400, split=False)) < ALPHA


def test_agents_alone_have_the_law_of_runs_of_one_agent():
    """Would catch agents that share a key or a segment's numbers."""
    horizon, slots = 12_000, [2000, 6000, 12_000]
    problem = fmab.Problem([0.7, 0.5, 0.3], AGENTS, world=Turned(0.2))
    data = fmab.simulate(fmab.single_mab(EPSILON), problem, horizon, 400, times=slots)
    ends, means = instances(problem, horizon, 1)
    rng, one = np.random.default_rng(0), means[0][:, :1]
    runs = [slow_elimination(rng, ends[0], one, horizon, EPSILON, 1) for _ in range(800)]
    slow = np.cumsum(runs, axis=1)[:, slots].reshape(200, 4, -1).sum(axis=1)
    assert smallest_p(data.regret.values, slow) > ALPHA
    assert len(np.unique(slow[:, -1].round(6))) > 2


def play_index(name, seed, means, ends, horizon, shift=0):
    """Returns the regret of UCB1 or GosInE, with the very numbers that the package draws."""
    tables = [index.uniforms(seed, horizon, AGENTS, x) for x in (keys.REWARD, keys.PARTICIPATION)]
    segment = np.searchsorted(ends, np.minimum(np.arange(horizon + 1) + shift, horizon))
    graph = index_twins.ring(AGENTS)
    _, neighbour = index_twins.given_chance([MEANS], graph, *tables)

    def reward(slot, agent, arm):
        return float(tables[0][slot, agent] > 1.0 - means[segment[slot], arm])

    talks = [neighbour] * (name == "gosine")
    run = getattr(index_twins, name)([MEANS], AGENTS, horizon, reward, *talks)
    gaps = means.max(axis=1, keepdims=True) - means
    slots = np.arange(1, horizon + 1)
    return np.cumsum(gaps[segment[slots][:, None], run.actions].sum(axis=1))


@pytest.mark.parametrize("name", ["ucb1", "gosine"])
def test_index_policies_are_the_slow_twin_draw_by_draw(name):
    """Would catch rewards or gaps of another segment in any slot, also at a change."""
    algorithm = fmab.ucb1() if name == "ucb1" else fmab.gosine(index_twins.ring(AGENTS))
    problem, horizon = fmab.Problem.uniform(AGENTS, 3, world=fmab.Drifting(3)), 203
    data = fmab.simulate(algorithm, problem, horizon, 5, times=range(1, horizon + 1))
    ends, means = instances(problem, horizon, 5)
    assert ends[0].tolist() == [50, 101, 152, 203]
    for seed in range(5):
        alone = means[seed][:, 0]
        slow = play_index(name, seed, alone, ends[seed], horizon)
        np.testing.assert_allclose(data.regret.values[seed], slow, rtol=1e-12, atol=1e-12)
        assert not np.allclose(slow, play_index(name, seed, alone, ends[seed], horizon, shift=1))


class Changing(arena_twins.Chance):
    """Uniforms, and rewards of means that change."""

    def __init__(self, means, ends, tables):
        super().__init__(means[0][None], tables)
        self.every, self.ends = means, ends

    def reward(self, slot, agent, arm):
        """Returns a reward by the mean of the slot's segment."""
        mean = self.every[np.searchsorted(self.ends, slot), arm]
        return float(self.uniform("reward", slot, agent) > 1 - mean)


def thompson_regret(at, runs, slots=300):
    """Returns the regret of the slow twin of Thompson sampling."""
    means, ends = np.stack([MEANS, SHRINK * MEANS[::-1]]), np.array([int(at * slots), slots])
    gaps, regret = means.max(axis=1, keepdims=True) - means, []
    segment = np.searchsorted(ends, np.arange(1, slots + 1))[:, None]
    for run in range(runs):
        rng, shape = np.random.default_rng(run), (slots + 1, AGENTS)
        tables = {(n, w): rng.random((shape[0], AGENTS * w)) for n in arena.STREAMS for w in (1, 3)}
        played = arena_twins.thompson(Changing(means, ends, tables), AGENTS, 3, slots)
        regret.append(np.cumsum(gaps[segment, played.actions].sum(axis=1))[[99, 199, 299]])
    return np.array(regret)


def test_thompson_has_the_law_of_the_slow_twin():
    """Would catch rewards of another segment, and a comparison too weak to see one."""
    problem = fmab.Problem(MEANS, AGENTS, world=Turned(0.4))
    data = fmab.simulate(fmab.thompson(), problem, 300, 600, times=[100, 200, 300])
    assert smallest_p(data.regret.values, thompson_regret(0.4, 150)) > ALPHA
    assert smallest_p(data.regret.values, thompson_regret(0.55, 150)) < ALPHA


@dataclass(frozen=True)
class Doubling(fmab.Episodes):
    """Plays the best arm until its pulls have doubled."""

    name: ClassVar[str] = "doubling"

    @staticmethod
    def choose(state, episode, params):
        """Returns the arm, and its pulls."""
        arm = jnp.argmax(state.sums / state.pulls)
        return arm, state.pulls[arm]


@dataclass(frozen=True)
class Together(Doubling):
    """The same, all agents together."""

    name: ClassVar[str] = "together"
    shared: ClassVar[bool] = True

    @staticmethod
    def choose(state, episode, params):
        """Returns the arm, and its pulls by an agent."""
        arm = jnp.argmax(state.sums / state.pulls)
        return arm, state.pulls[arm] / episode.sharing


def slow_episodes(rng, means, ends, horizon, sharing):
    """Plays `Doubling` slot by slot; returns the regret of each slot."""
    arms, gaps = means.shape[1], means.max(axis=1, keepdims=True) - means
    pulls, sums, slot, regret = np.zeros(arms), np.zeros(arms), 0, []
    while slot < horizon:
        episodes = [(k, 1) for k in range(arms)]
        if slot:
            arm = int(np.argmax(sums / pulls))
            episodes = [(arm, int(pulls[arm]) // sharing)]
        for arm, slots in episodes:
            segment = np.searchsorted(ends, np.minimum(slot + 1 + np.arange(slots), horizon))
            sums[arm] += rng.binomial(sharing, means[segment, arm]).sum()
            regret += [*sharing * gaps[segment, arm]]
            slot += slots
            pulls[arm] += slots * sharing
    return np.array(regret[:horizon])


@pytest.mark.parametrize("algorithm", [Doubling(), Together()], ids=lambda x: x.name)
def test_episodes_have_the_law_of_the_slow_twin(algorithm):
    """Would catch an episode that a change does not split, in rewards or in regret."""
    problem, slots = fmab.Problem(MEANS, AGENTS, world=Turned(0.01)), [2, 5, 40, 150]
    data = fmab.simulate(algorithm, problem, 150, 1000, times=slots)
    rng, runs, sharing = np.random.default_rng(0), AGENTS, 1
    if algorithm.shared:
        runs, sharing = 1, AGENTS
    means = np.stack([MEANS, SHRINK * MEANS[::-1]])
    actual = data.regret.values

    def slow(ends):
        every = [
            sum(slow_episodes(rng, means, ends, 150, sharing) for _ in range(runs))
            for _ in range(600)
        ]
        return np.cumsum(every, axis=1)[:, np.array(slots) - 1]

    # A change in the first episode, in which every arm has one slot.
    assert smallest_p(actual, slow(np.array([1, 150]))) > ALPHA
    late = fmab.Problem(MEANS, AGENTS, world=Turned(0.3))
    actual = fmab.simulate(algorithm, late, 150, 1000, times=slots).regret.values
    assert smallest_p(actual, slow(np.array([45, 150]))) > ALPHA
    assert smallest_p(actual, slow(np.array([60, 150]))) < ALPHA


WORLDS = fmab.Drifting(3), fmab.Drifting(3, 0.5)
LAYOUTS = {
    "drifting": [(fmab.cdp_mab(1.0), fmab.Problem.uniform(7, 23, world=x)) for x in WORLDS],
    "drifting, differ": [
        (fmab.cdp_mab(0.3), fmab.Problem.heterogeneous(7, 6, 0.3, world=x)) for x in WORLDS
    ],
    "drifting, ring": [
        (fmab.ddp_mab(x, graph="ring"), fmab.Problem.heterogeneous(7, 6, 0.3, world=WORLDS[0]))
        for x in (0.3, 1.0)
    ],
    "drifting, some": [
        (fmab.cdp_mab(x, participation=0.5), fmab.Problem.heterogeneous(7, 6, 0.3, world=WORLDS[0]))
        for x in (0.3, 1.0)
    ],
    "drifting, alone": [
        (fmab.single_mab(0.3), fmab.Problem.uniform(7, 6, world=x)) for x in WORLDS
    ],
    "drifting, components": [
        (fmab.hdp_mab(x, components=layouts.PATHS), fmab.Problem.uniform(7, 6, world=WORLDS[0]))
        for x in (0.3, 1.0)
    ],
}


@pytest.mark.parametrize(
    "name", quick.only(LAYOUTS, "drifting", "drifting, some", "drifting, alone")
)
def test_both_layouts_and_all_batches_have_the_same_bits(name, monkeypatch):
    """Would catch a segment's value of another arm or trial, and pulls counted in one layout."""
    monkeypatch.setitem(layouts.CASES, name, LAYOUTS[name])
    monkeypatch.setattr(ragged, "_CHUNK", 64)
    listed, arrays = layouts.twice(name)
    layouts.assert_same_bits(listed, arrays)
    assert len(np.unique(listed.regret[:, -1])) == layouts.TRIALS and listed.agents_lost is None
    problem, pulls = LAYOUTS[name][0][1], listed.accumulator_values["pulls"].sum(axis=1)
    np.testing.assert_allclose(pulls, problem.agents * layouts.HORIZON, rtol=1e-9)
    each = listed.accumulator_values["regret_by_agent"][:, : problem.agents, -1]
    rows = 1 if each.shape[1] > 1 else problem.agents
    np.testing.assert_allclose(rows * each.sum(axis=1), listed.regret[:, -1], rtol=1e-9)


SAME = {
    "sums": fmab.cdp_mab(0.3),
    "some report": fmab.cdp_mab(0.3, participation=0.5),
    "wait": fmab.ddp_mab(0.3, graph="path"),
    "alone": fmab.single_mab(0.3),
    "kl_se": fmab.kl_se(1.0),
    "thompson": fmab.thompson(),
    "dp_klucb": fmab.dp_klucb(1.0),
}


@pytest.mark.as_users_have_it
@pytest.mark.parametrize("name", quick.only(SAME, "sums", "some report", "thompson", "dp_klucb"))
def test_one_segment_has_the_bits_of_no_world(name):
    """Would catch another key or order of sums in the first segment of a world."""
    horizon = 1000 if name == "thompson" else 20_000
    differs = name not in ("kl_se", "dp_klucb")
    spread = 0.4 if differs else 0.0
    options = {"agents": 4, "arms": 3, "spread": spread}
    plain, one = (
        fmab.simulate(SAME[name], fmab.Problem.heterogeneous(**options, world=x), horizon, 30)
        for x in (None, "drifting:0")
    )
    assert set(plain.variables) - set(one.variables) == {"agents_lost", "best_arm_lost"}
    for variable in one.data_vars:
        np.testing.assert_array_equal(one[variable], plain[variable])


def test_the_end_is_that_of_the_last_segment():
    """Would catch a final gap, or a worse arm, by the first means."""
    for algorithm in (fmab.cdp_mab(None), fmab.ucb1(), Doubling()):
        # The first arm is played at T: it was the best for nearly all slots.
        problem = fmab.Problem([1.0, 0.5, 0.0], AGENTS, world=Turned(0.999))
        data = fmab.simulate(algorithm, problem, 4000, 5)
        assert (data.chosen_arm == 0).all() and (data.agents_worse == AGENTS).all()
        np.testing.assert_allclose(data.final_gap, SHRINK)


def test_segments_by_hand():
    """Would catch a change that is a slot early or late."""
    with package_settings():
        ends = jnp.array([3, 3, 10])
        assert overlap(ends, jnp.int64(2), jnp.int64(7)).tolist() == [1, 0, 4]
        assert overlap(ends, jnp.int64(0), jnp.int64(12)).tolist() == [3, 0, 7]
        assert find_segment(ends, jnp.array([1, 3, 4, 10, 11])).tolist() == [0, 0, 2, 2, 2]


def test_segments_cover_the_horizon():
    """Would catch segments that are unlike by more than a slot, and slots after the last one."""
    with package_settings():
        words, first = keys.Words(jnp.uint32(1), jnp.uint32(7)), jnp.array([0.7, 0.2])
        for horizon in (1, 10, 11, 10**12 + 1):
            due = [horizon * part // 4 for part in range(1, 5)]
            ends, _ = fmab.Drifting(3).lay_out(jnp.int64(horizon), words, first)
            assert ends.tolist() == due


def test_a_share_of_the_arms_changes():
    """Would catch means that all change, or never, and changes that repeat each other."""
    problem = fmab.Problem.uniform(1, 200, world=fmab.Drifting(4, share=0.25))
    ends, means = instances(problem, 1000, 20)
    assert (ends == [200, 400, 600, 800, 1000]).all()
    changed = np.diff(means[:, :, 0], axis=1) != 0
    total = changed.size
    assert scipy.stats.binomtest(int(changed.sum()), total, 0.25).pvalue > ALPHA
    fresh = means[:, 1:, 0][changed]
    assert scipy.stats.kstest(fresh, "uniform").pvalue > ALPHA
    assert len(np.unique(fresh)) == len(fresh)
    kept = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(1, 3), 10, 3)
    same = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(1, 3, world="drifting:1"), 10, 3)
    np.testing.assert_array_equal(kept.regret[:, :5], same.regret[:, :5])


def test_agents_keep_their_differences():
    """Would catch means outside [0, 1], or global means that are not those of the world."""
    problem = fmab.Problem.heterogeneous(6, 5, 0.7, world=Turned())
    _, means = instances(problem, 100, 50)
    assert means.min() >= 0.0 and means.max() <= 1.0
    average = means.mean(axis=2)
    np.testing.assert_allclose(average[:, 1], SHRINK * average[:, 0, ::-1], atol=1e-12)
    assert np.ptp(means, axis=2).min() > 0.0


def make(owner, name, **members):
    """Returns a world without fields, of a class that has these members."""
    members = {"name": name.lower(), "title": f"{name} means"} | members
    return dataclass(frozen=True)(type(name, (owner,), members))()


def stated(last=(1000, 2000, 3000), change=lambda words, first: SHRINK * first, **members):
    """Returns a world of three segments: where they end, and the means of the second."""
    functions = {
        "ends": lambda self, horizon: jnp.array(last),
        "means": lambda self, words, first: jnp.stack([first, change(words, first), first]),
    }
    return make(fmab.World, "Stated", **{"segments": 3} | functions | members)


def seen(factor=1.0, **members):
    """Returns a world whose contexts are numbers in [0, 1], and greater after slot 100."""

    def contexts(self, words, slot, agents, arms):
        lane = keys.lanes(agents, jnp.arange(arms, dtype=jnp.uint32), arms)
        more = jnp.where(slot > 100, 0.1, 0.0)
        return (keys.uniform(*words, lane) + more).reshape(agents, arms, 1)

    functions = {"theta": lambda self, words: jnp.full(1, factor), "contexts": contexts}
    return make(fmab.ContextualWorld, "Seen", **{"dimension": 1} | functions | members)


def raise_some(words, first):
    """Raises the best mean by a third for every other seed."""
    return jnp.where(keys.uniform(*words, jnp.uint32(7)) < 0.5, first, first * 4.0 / 3.0)


def fail(words, first):
    """Fails, as the code of a user may."""
    raise KeyError("x")


SEGMENT = r"of arm 0, seed 0: must be in \[0, 1\]; mend it; jnp.clip cuts numbers, "
SEGMENT += "and keeps NaN$"
OUT_OF_RANGE = [
    (lambda: stated(change=lambda _, first: 2.0 * first), f"Stated.means=mean 1.8 {SEGMENT}"),
    (lambda: stated(change=lambda _, first: first - 1.0), r"Stated.means=mean -0.09999\d* of arm"),
    (lambda: stated(change=lambda _, first: first * jnp.nan), f"Stated.means=mean nan {SEGMENT}"),
    (
        lambda: stated(change=raise_some),
        r"Stated.means=mean 1.2 of arm 0, seed [1-9]:",
    ),
    (lambda: stated(change=fail), "stated.means: must return, not end in KeyError"),
    (lambda: stated((2000, 1000, 3000)), "Stated.ends=1000 after 2000, seed 0: must be last slots"),
    (
        lambda: stated((1000, 2000)),
        "stated.lay_out: must return, not end in TypeError: ends returns int64",
    ),
]


@pytest.mark.parametrize("case", range(len(OUT_OF_RANGE)))
def test_a_world_that_leaves_the_range_of_rewards_is_refused(case):
    """Would catch means above 1, in a later seed as well, and slots that are counted twice."""
    world, line = OUT_OF_RANGE[case]
    problem = fmab.Problem([0.9, 0.5, 0.1], AGENTS, world=world())
    with pytest.raises(ValueError, match=f"^{line}"):
        fmab.simulate(fmab.ucb1(), problem, HORIZON, 20)


def test_a_check_of_an_algorithm_looks_at_more_seeds():
    """Would catch a check that looks at the few seeds of a run alone."""

    def change(words, first):
        return jnp.where(keys.uniform(*words, jnp.uint32(7)) < 0.004, 2.0, 1.0) * first

    problem = fmab.Problem([0.9, 0.5, 0.1], AGENTS, world=stated(change=change))
    assert len(Study(fmab.ucb1(), problem, horizon=600, seeds=20).points) == 1
    with pytest.raises(ValueError, match=r"^Stated.means=mean 1.8 of arm 0, seed \d+:"):
        fmab.check_algorithm(fmab.ucb1(), problem)


def test_contexts_that_leave_the_range_of_rewards_are_refused():
    """Would catch a look at the first slots alone."""
    line = r"^Seen.contexts=mean 1\.0\d+ of arm \d, seed \d+: must be in \[0, 1\]; mend it"
    with pytest.raises(ValueError, match=line):
        fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(AGENTS, 3, world=seen()), 300, 20)
    for world, horizon in ((seen(), 100), (seen(0.9), 300)):
        problem = fmab.Problem.uniform(AGENTS, 3, world=world)
        assert len(Study(fmab.ucb1(), problem, horizon=horizon, seeds=8).points) == 1


@pytest.mark.parametrize("number", [0, -1, 2.5, True, "2", None, 10**7])
def test_numbers_of_segments_and_entries_are_checked(number):
    """Would catch a number that ends in an error of shapes, or in arrays without entries."""
    with pytest.raises(ValueError, match="^Stated.segments=.*: must be a whole number in "):
        fmab.Problem.uniform(AGENTS, 3, world=stated(segments=number))
    if number != 10**7:
        with pytest.raises(ValueError, match="^Seen.dimension=.*: must be a whole number in "):
            fmab.Problem.uniform(AGENTS, 3, world=seen(dimension=number))


def test_means_lie_between_the_first_ones_or_in_the_unit_interval():
    """Would catch a range of [0, 1] where means of Gaussian rewards begin outside of it."""
    means, gaussian = [3.0, 4.0, 6.0], fmab.Gaussian(1.0)

    def check(change):
        problem = fmab.Problem(means, 2, rewards=gaussian, world=stated((9, 50, 60), change))
        return Study(fmab.ucb1(), problem, horizon=60, seeds=8).points

    assert len(check(lambda _, first: first[::-1] / 6.0)) == 1
    for factor in (1.01, -0.1):
        line = r"^Stated.means=mean .* of arm [02], seed 0: must be in \[0, 6\]; "
        with pytest.raises(ValueError, match=line):
            check(lambda _, first, factor=factor: factor * first)


def test_the_last_segment_reaches_the_horizon():
    """Would catch slots after the last segment that cost nothing, or slots after the horizon."""
    for last, expected in (
        ((1000, 2000, 2001), [1000, 2000, 3000]),
        ((1000, 2000, 10**6), [1000, 2000, 3000]),
        ((1000, 5000, 10**6), [1000, 3000, 3000]),
        ((-5, 0, 0), [0, 0, 3000]),
    ):
        ends, _ = instances(fmab.Problem(MEANS, AGENTS, world=stated(last)), HORIZON, 2)
        assert (ends == expected).all()


REFUSED = {
    "demab": (lambda: DEMAB(), "world='drifting': must be left out with DEMAB"),
    "split": (lambda: fmab.kl_se(1.0, split=True), "split=True: must be for means"),
    "oracle": (lambda: fmab.cdp_mab(1.0, rounds=3), "schedule_gap=None: must be given"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_a_world_is_refused(name):
    """Would catch a loop that takes the last means for all slots."""
    algorithm, line = REFUSED[name]
    problem = fmab.Problem.uniform(AGENTS, 3, world="drifting")
    with pytest.raises(ValueError, match=f"^{line}"):
        fmab.simulate(algorithm(), problem, 1000, 2)


def test_worlds_are_refused_in_one_line():
    """Would catch a world that is ignored where it has no meaning."""
    for build, line in (
        (lambda: fmab.Problem.uniform(4, 3, world="sliding"), "world='sliding': must be a world"),
        (lambda: fmab.Problem.uniform(4, 3, world="drifting:x"), "world='drifting:x': must be"),
        (lambda: fmab.Drifting(-1), "changes=-1: must be"),
        (lambda: fmab.Problem([[0.1, 0.2], [0.3, 0.4]], world="drifting"), "means='2 rows'"),
        (lambda: fmab.Problem.uniform(4, 3, world="drifting").fixed(), "fixed_instance=0: must be"),
        (
            lambda: fmab.Problem.heterogeneous(4, 3, instance_gap=0.1, world="drifting"),
            "instance_gap=0.1: must be None",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{line}"):
            build()
