"""Presences: absent, late and corrupted agents, and links that come and go, against slow twins."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import arena_twins
import index_twins
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import test_arena as arena
import test_index as index
import test_layouts as layouts
from altered import altered
from refusals import refused, refuses
from test_worlds import smallest_p

import fmab_jax as fmab
from fmab_jax.layouts import ragged
from fmab_jax.planning.candidates import list_candidates
from fmab_jax.planning.question import Question
from fmab_jax.sampling import keys

MEANS, AGENTS, HORIZON, ALPHA = [0.7, 0.45, 0.4], 5, 4000, 1e-6
EPSILON, SLOTS = 0.5, [400, 900, 2000, HORIZON]


class Twin:
    """Algorithm 1 round by round, in NumPy, with agents that a round may miss.

    ``attend`` maps a round to the agents that are heard and to those that send; ``corrupted`` are
    the agents that report false rewards. ``mistake`` makes a run wrong on purpose.
    """

    def __init__(self, rng, attend, corrupted=(), means=MEANS, agents=AGENTS, mistake=""):
        self.rng, self.attend, self.mistake = rng, attend, mistake
        self.corrupted, self.means, self.agents = list(corrupted), np.array(means), agents

    def draw_rewards(self, fresh, active):
        """Returns the sums of rewards [agent, arm] of an epoch."""
        return self.rng.binomial(fresh, self.means[active], (self.agents, len(active)))

    def run(self, horizon, epsilon, reporting, trim=0.0):
        """Returns regret, messages and rounds by slot, and the numbers in all messages."""
        agents, gaps = self.agents, self.means.max() - self.means
        rate, messages, rounds = np.zeros((3, horizon + 1))
        active, slot, pulls, number, numbers = np.arange(len(gaps)), 0, 0, 0, 0
        sums = np.zeros((agents, len(gaps)))
        while len(active) > 1 and slot < horizon:
            number += 1
            log_a, log_k = (math.log(8 * x * number**2 * horizon) for x in (len(active), len(gaps)))
            # Deviation of the sum of N noises, each of which has the scale 1 / (N epsilon).
            scale = 1 / (reporting * epsilon)
            noise = number * math.sqrt(8 * log_k) * scale
            goal = 0.5**number
            reward_term = 8 * log_a / (reporting * goal**2)
            total = math.ceil(max(reward_term, 4 * noise / math.sqrt(reporting) / goal))
            total = max(total, pulls + 1)
            end = slot + len(active) * (total - pulls)
            rate[slot + 1 : end + 1] = agents * gaps[active].mean()
            if end > horizon:
                slot = horizon
                break
            fresh = self.draw_rewards(total - pulls, active)
            fresh[self.corrupted] = (total - pulls) - fresh[self.corrupted]
            sums[:, active] += fresh + self.rng.laplace(0.0, scale, fresh.shape)
            pulls, slot = total, end
            heard, sent = self.attend(number)
            reports = self.rng.permutation(agents) < reporting
            messages[slot] += (reports & sent).sum()
            numbers += (reports & sent).sum() * len(active)
            count = (reports & heard).sum()
            if not count:
                continue
            rounds[slot] += 1
            ordered = np.sort(sums[reports & heard][:, active], axis=0)
            cut = min(int(trim * count), (count - 1) // 2)
            mean = ordered[cut : count - cut].mean(axis=0) / pulls
            in_radius = reporting if self.mistake == "radius" else count
            radius = math.sqrt(log_a / (2 * in_radius * pulls))
            radius += noise / math.sqrt(in_radius) / pulls
            active = active[mean.max() - mean < 2 * radius]
        rate[slot + 1 :] = agents * gaps[active[0]]
        return *(np.cumsum(x) for x in (rate, messages, rounds)), numbers


def attend_by(rng, agents, absent, late=False):
    """Returns an ``attend`` of agents that miss a round with a probability."""

    def attend(number):
        heard = rng.random(agents) >= absent
        return heard, np.ones(agents, bool) if late else heard

    return attend


# Name: presence, participation, trim.
CASES = {
    "absent": ("absent:0.5", 1.0, 0.0),
    "late, some report": ("late:0.5", 0.5, 0.0),
    "corrupted": ("corrupted:0.2", 1.0, 0.0),
    "corrupted, trimmed": ("corrupted:0.2", 1.0, 0.2),
    "corrupted, median": ("corrupted:0.2", 1.0, 0.5),
    "absent, trimmed": ("absent:0.3", 1.0, 0.3),
    "trimmed": (None, 0.7, 0.3),
}


def run_twins(name, runs, change=0.0, mistake=""):
    """Returns regret and messages [run, slot] of the slow twin."""
    presence, participation, trim = CASES[name]
    kind, _, value = (presence or "absent:0").partition(":")
    chance, rng = float(value) + change, np.random.default_rng(0)
    results = []
    for _ in range(runs):
        absent = 0.0 if kind == "corrupted" else chance
        corrupted = np.flatnonzero(rng.random(AGENTS) < chance) if kind == "corrupted" else ()
        attend = attend_by(rng, AGENTS, absent, kind == "late")
        twin = Twin(rng, attend, corrupted, mistake=mistake)
        reporting = math.ceil(participation * AGENTS)
        regret, messages, *_ = twin.run(HORIZON, EPSILON, reporting, trim)
        results.append([regret[SLOTS], messages[SLOTS]])
    return np.moveaxis(results, 1, 0)


@pytest.mark.parametrize("name", CASES)
def test_elimination_has_the_law_of_the_slow_twin(name):
    """Would catch a mean, a radius or a count of others than those that are heard."""
    presence, participation, trim = CASES[name]
    problem = fmab.Problem(MEANS, AGENTS, presence=presence)
    algorithm = fmab.cdp_mab(EPSILON, participation=participation, trim=trim)
    data = fmab.simulate(algorithm, problem, HORIZON, 500, times=SLOTS)
    regret, messages = run_twins(name, 500)
    assert smallest_p(data.regret.values, regret) > ALPHA
    assert smallest_p(data.links.values[..., 0], messages) > ALPHA
    assert len(np.unique(regret[:, -1].round(6))) > 2
    if name == "absent":  # the comparison sees other chances, and a radius of all agents
        for wrong in ({"change": 0.2}, {"mistake": "radius"}):
            assert smallest_p(data.regret.values, run_twins(name, 500, **wrong)[0]) < ALPHA


class Certain(Twin):
    """Rewards are their means."""

    def draw_rewards(self, fresh, active):
        """Returns the means."""
        return np.tile(fresh * self.means[active], (self.agents, 1))


@pytest.mark.parametrize("presence", ["absent:0.6", "late:0.6"])
def test_elimination_is_the_slow_twin_round_by_round(presence):
    """Would catch another stream, a void round that counts, and late messages that are free."""
    agents, chance, late = 3, 0.6, presence.startswith("late")
    problem = fmab.Problem(MEANS, agents, rewards="gaussian:1e-9", presence=presence)
    times = np.arange(HORIZON + 1)
    data = fmab.simulate(fmab.cdp_mab(None), problem, HORIZON, 12, times=times)
    void = 0
    for seed in range(12):
        heard = index.uniforms(seed, 60, agents, keys.PRESENCE) >= chance

        def attend(number, heard=heard):
            return heard[number], heard[number] | late

        twin = Certain(np.random.default_rng(0), attend, means=MEANS, agents=agents)
        regret, messages, rounds, numbers = twin.run(HORIZON, math.inf, agents)
        one = data.isel(seed=seed)
        np.testing.assert_allclose(one.regret, regret, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(one.links[:, 0], messages)
        assert one.rounds_made == rounds[-1] and one.numbers_sent == numbers
        void += not heard[1].any()
    assert void


@dataclass(frozen=True)
class FirstOnes(fmab.Presence):
    """Only the first agents are heard."""

    name: ClassVar[str] = "first_ones"
    title: ClassVar[str] = "only the first agents are heard"
    number: int = 4

    def is_heard(self, occasion, agent):
        """Tells which agents are the first ones."""
        return agent < self.number


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian"}], ids=["laplace", "gaussian"])
def test_evidence_is_that_of_the_agents_that_are_heard(options):
    """Would catch evidence by rewards, or by noises, of agents that nobody heard."""
    algorithm = fmab.kl_se(0.3, first=60, **options)
    means, horizon = [0.6, 0.4, 0.35], 20_000
    results = [
        fmab.simulate(algorithm, fmab.Problem(means, agents, presence=presence), horizon, 600)
        for agents, presence in ((8, FirstOnes()), (4, None), (8, None))
    ]
    # Arms leave as they do where there are no other agents.
    regret = [data.regret.values[:, -1:] / data.attrs["agents"] for data in results]
    assert smallest_p(regret[0], regret[1]) > ALPHA
    assert smallest_p(regret[0], regret[2]) < ALPHA
    assert len(np.unique(regret[0].round(6))) > 3
    assert (results[0].links[:, -1, 0] == 4 * results[0].rounds_made).all()


def test_the_best_arm_is_lost_as_rarely_as_promised():
    """Would catch evidence by all agents, which is five times that of those that are heard."""
    problem = fmab.Problem([0.55, 0.5], 10, presence="absent:0.8")
    data = fmab.simulate(fmab.kl_se(None, first=20, failure=0.2), problem, 20_000, 1000)
    assert (data.chosen_arm >= 0).mean() > 0.95
    assert data.best_arm_lost.mean() < 0.02


def test_a_secure_sum_without_a_share_does_not_open():
    """Would catch a sum of the shares that arrived, and shares that are sent and not counted."""
    agents, horizon = 3, 300
    problem = fmab.Problem([1.0, 0.0], agents, presence="absent:0.4")
    algorithm = fmab.kl_se(1e3, first=4, secure=True)
    data = fmab.simulate(algorithm, problem, horizon, 40, times=[horizon])
    for seed in range(40):
        heard = index.uniforms(seed, 5, agents, keys.PRESENCE) >= 0.4
        # Epochs of 8, 8, 16, 32, 64 and 128 slots, for two arms.
        opens = [r for r in range(1, 6) if heard[r].all()]
        last = opens[0] if opens else 5
        one = data.isel(seed=seed)
        assert one.active_arms == (1 if opens else 2) or not opens
        if opens:
            assert one.rounds_made == 1 and one.links[-1, 0] == heard[1 : last + 1].sum()
            assert one.regret[-1] == agents * 4 * 2 ** (last - 1)
    assert 5 < (data.rounds_made == 1).sum() and (data.links[:, -1, 0] > agents).any()


def pooled_ucb1(reward, heard, means, horizon, alpha=2.0):
    """Returns the arm of each slot; the server learns the rewards of those that it hears."""
    agents, arms = heard.shape[1], len(means)
    pulls, sums, played = np.zeros(arms), np.zeros(arms), []
    for t in range(1, horizon + 1):
        width = alpha * math.log(agents * t)
        arm = index_twins.lowest_best(
            [index_twins.bound(n, s, width) for n, s in zip(pulls, sums, strict=True)]
        )
        played.append(arm)
        pulls[arm] += heard[t].sum()
        sums[arm] += sum(reward(t, i, arm) for i in np.flatnonzero(heard[t]))
    return np.array(played)


@pytest.mark.parametrize("presence", ["absent:0.6", "late:0.6"])
def test_a_server_learns_only_the_rewards_that_it_hears(presence):
    """Would catch pulls of all agents, rewards of others, and another stream."""
    horizon, gaps = 200, max(MEANS) - np.array(MEANS)
    problem = fmab.Problem(MEANS, 3, presence=presence)
    times = np.arange(1, horizon + 1)
    data = fmab.simulate(fmab.ucb1(pooled=True), problem, horizon, 4, times=times)
    for seed in range(4):
        heard = index.uniforms(seed, horizon, 3, keys.PRESENCE) >= 0.6
        rewards = index.uniforms(seed, horizon, 3, keys.REWARD)
        reward, _ = index_twins.given_chance([MEANS], index_twins.ring(3), rewards, rewards)
        played = pooled_ucb1(reward, heard, MEANS, horizon)
        one = data.isel(seed=seed)
        np.testing.assert_allclose(one.regret, np.cumsum(3 * gaps[played]), rtol=1e-12)
        sent = np.full(horizon, 3) if presence.startswith("late") else heard[1:].sum(axis=1)
        np.testing.assert_array_equal(one.links[:, 0], np.cumsum(sent))
        assert one.numbers_sent == sent.sum()  # one reward each
        assert one.rounds_made == horizon


def list_links(seed, horizon, agents, graph, presence):
    """Returns by slot the neighbours that each agent reaches, and those that it sends to."""
    kind, _, chance = presence.partition(":")
    present = np.ones((horizon + 1, agents), bool)
    linked = np.ones((horizon + 1, agents, agents), bool)
    if kind == "links":
        uniform = index.uniforms(seed, horizon, agents * agents, keys.PRESENCE)
        up = (uniform < float(chance)).reshape(-1, agents, agents)
        linked = np.triu(np.ones((agents, agents), bool), 1) & up
        linked |= linked.swapaxes(1, 2)
    else:
        present = index.uniforms(seed, horizon, agents, keys.PRESENCE) >= float(chance)

    def reach(slot, takes_part):
        return [
            [j for j in sorted(graph[i]) if linked[slot, i, j] and takes_part[i] and takes_part[j]]
            for i in range(agents)
        ]

    slots, everybody = range(horizon + 1), np.ones(agents, bool)
    heard = [reach(t, present[t]) for t in slots]
    return heard, [reach(t, everybody) for t in slots] if kind == "late" else heard


@pytest.mark.parametrize("presence", ["absent:0.4", "late:0.4", "links:0.4"])
def test_gosine_asks_the_neighbours_that_it_reaches(presence):
    """Would catch an absent neighbour that answers, and requests of agents that reach nobody."""
    agents, horizon = 5, 350
    graph, means = index_twins.ring(agents), index.SHARED
    problem, times = fmab.Problem(means[0], agents, presence=presence), np.arange(horizon + 1)
    algorithm = fmab.gosine(graph, alpha=0.5)
    data = fmab.simulate(algorithm, problem, horizon, 4, times=times)
    for seed in range(4):
        reach, sends = list_links(seed, horizon, agents, graph, presence)
        rewards, picks = (
            index.uniforms(seed, horizon, agents, x) for x in (keys.REWARD, keys.PARTICIPATION)
        )
        reward, _ = index_twins.given_chance(means, graph, rewards, picks)

        def neighbour(slot, agent, reach=reach, picks=picks):
            beside = reach[slot][agent]
            return beside[int(picks[slot, agent] * len(beside))] if beside else agent

        run = index_twins.gosine(means, agents, horizon, reward, neighbour, alpha=0.5)
        one = data.isel(seed=seed)
        regret = index_twins.regret(run, index.gaps_of(means))
        np.testing.assert_allclose(one.regret, regret, rtol=1e-12, atol=1e-12)
        sent = np.zeros(horizon + 1, int)
        for slot in run.talks:
            sent[slot] = sum(map(bool, sends[slot]))
        np.testing.assert_array_equal(one.links[:, 0], np.cumsum(sent))
        assert one.numbers_sent == sent.sum() and 0 < sent.sum()


@pytest.mark.parametrize("presence", ["links:0.5", "late:0.4"])
def test_dec_ucb_mixes_with_the_neighbours_that_it_reaches(presence):
    """Would catch links that are up one way, or in another slot, and edges counted twice."""
    agents, horizon, means = index.AGENTS, arena.SLOTS, index.SHARED
    graph = arena.COMPLETE
    problem = fmab.Problem(means[0], agents, rewards="gaussian:0.4", presence=presence)
    data = fmab.simulate(fmab.dec_ucb(graph), problem, horizon, 3, times=np.arange(horizon + 1))
    for seed in range(3):
        reach, sends = list_links(seed, horizon, agents, graph, presence)
        chance = arena_twins.Chance(means, arena.tables(seed, agents, horizon, len(means[0])), 0.4)
        run = arena_twins.dec_ucb(chance, agents, len(means[0]), horizon, graph, reach)
        one = data.isel(seed=seed)
        regret = index_twins.regret(run, index.gaps_of(means))
        np.testing.assert_allclose(one.regret, regret, rtol=1e-12, atol=1e-12)
        sent = [sum(map(len, sends[t])) // 2 if t in run.talks else 0 for t in range(horizon + 1)]
        np.testing.assert_array_equal(one.links[:, 0], np.cumsum(sent))
        assert one.numbers_sent == 4 * len(means[0]) * sum(sent)


def test_corrupted_agents_go_by_false_rewards():
    """Would catch an agent that is corrupted in some slots only, and a mirror at another place."""
    agents, horizon = 6, 200
    problem = fmab.Problem(MEANS, agents, presence="corrupted:0.5")
    data = fmab.simulate(fmab.ucb1(), problem, horizon, 4, times=np.arange(horizon + 1))
    for seed in range(4):
        rewards = index.uniforms(seed, horizon, agents, keys.REWARD)
        corrupted = index.uniforms(seed, 0, agents, keys.PRESENCE)[0] < 0.5
        honest, _ = index_twins.given_chance([MEANS], index_twins.ring(agents), rewards, rewards)

        def reward(slot, agent, arm, honest=honest, corrupted=corrupted):
            return 1.0 - honest(slot, agent, arm) if corrupted[agent] else honest(slot, agent, arm)

        run = index_twins.ucb1([MEANS], agents, horizon, reward)
        regret = index_twins.regret(run, index.gaps_of([MEANS]))
        np.testing.assert_allclose(data.regret[seed], regret, rtol=1e-12, atol=1e-12)
        assert 0 < corrupted.sum() < agents


SAME = {
    "ucb1": (fmab.ucb1(pooled=True), "absent:0"),
    "gosine": (fmab.gosine(index_twins.ring(AGENTS)), "late:0"),
    "dec_ucb": (fmab.dec_ucb("ring"), "links:1"),
    "dducb": (fmab.dducb("ring"), "absent:0"),
    "alone": (fmab.ucb1(), "corrupted:0"),
}


@pytest.mark.as_users_have_it
@pytest.mark.parametrize("name", SAME)
def test_a_presence_of_everybody_has_the_bits_of_none(name):
    """Would catch another key, order of sums or count of links."""
    algorithm, presence = SAME[name]
    plain, same = (
        fmab.simulate(algorithm, fmab.Problem.uniform(AGENTS, 4, presence=x), 500, 10)
        for x in (None, presence)
    )
    assert set(plain.variables) == set(same.variables)
    for variable in plain.data_vars:
        np.testing.assert_array_equal(same[variable], plain[variable])


@pytest.mark.parametrize("name", ["cdp", "ucb1"])
def test_links_of_a_sweep_are_those_of_its_runs(name):
    """Would catch rounds that stand for messages, or the reverse, where one axis has both."""
    given = {"presence": [None, "absent:0.3", "late:0.3"], "agents": 3, "arms": 3}
    given |= {"horizon": 2000 if name == "cdp" else 60, "seeds": 7, "times": 6, "progress": False}
    algorithm, settings = ("cdp", {"epsilon": 1.0}) if name == "cdp" else ("ucb1", {"pooled": True})
    curves, summary = (
        fmab.sweep(algorithm, **given, **settings, keep=x) for x in ("curves", "summary")
    )
    assert curves.presence.values.tolist() == ["none", "absent:0.3", "late:0.3"]
    links = curves.links
    np.testing.assert_allclose(summary.links_mean, links.mean("seed"), rtol=1e-12)
    np.testing.assert_allclose(summary.links_variance, links.var("seed", ddof=1), rtol=1e-9)
    np.testing.assert_allclose(summary.numbers_sent_mean, curves.numbers_sent.mean("seed"))
    assert (links.isel(presence=0, time=-1, meter=0) == 3 * curves.rounds_made[0]).all()
    last = links.isel(time=-1, meter=0).sum("seed").values
    assert last[1] < last[0]
    for place, text in enumerate(given["presence"]):
        problem = fmab.Problem.uniform(3, 3, presence=text)
        built = fmab.cdp_mab(1.0) if name == "cdp" else fmab.ucb1(pooled=True)
        one = fmab.simulate(built, problem, given["horizon"], 7, times=6)
        for variable in ("links", "regret", "numbers_sent"):
            np.testing.assert_array_equal(one[variable], curves[variable][place])


TWO = [fmab.Problem.heterogeneous(7, 6, 0.3, presence=f"absent:{x}") for x in (0.2, 0.7)]
LAYOUTS = {
    "absent": [(fmab.cdp_mab(1.0), x) for x in TWO],
    "absent, some": [(fmab.kl_se(1.0, participation=0.4), x) for x in TWO],
    "absent, secure": [
        (fmab.dist_dp_se(1.0), fmab.Problem.uniform(7, 6, presence=f"absent:{x}"))
        for x in (0.02, 0.1)
    ],
    "corrupted, trimmed": [
        (fmab.cdp_mab(1.0, trim=trim), fmab.Problem.uniform(7, 6, presence="corrupted:0.3"))
        for trim in (0.2, 0.5)
    ],
    "corrupted, wait": [
        (fmab.ddp_mab(x, "ring"), fmab.Problem.uniform(7, 6, presence="corrupted:0.3"))
        for x in (1.0, 0.1)
    ],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_both_layouts_have_the_same_bits(name, monkeypatch):
    """Would catch attendance, or messages, of another trial."""
    monkeypatch.setitem(layouts.CASES, name, LAYOUTS[name])
    monkeypatch.setattr(ragged, "_CHUNK", 64)
    listed, arrays = layouts.twice(name)
    layouts.assert_same_bits(listed, arrays)
    assert len(np.unique(listed.regret[:, -1])) == layouts.TRIALS
    assert (listed.messages_by is not None) == name.startswith("absent")


def test_absence_leaves_only_the_noise_of_the_agent_itself():
    """Would catch a sum over few agents that is said to hide as well as one over all."""
    algorithm = fmab.cdp_mab(epsilon_message=2.0)
    find = partial(fmab.find_leak, algorithm, 50, "sum")
    assert find() < 1.0 and find(presence="absent:0.1") == pytest.approx(2.0)
    assert find(presence="late:0.1") == pytest.approx(2.0)
    assert find(presence="corrupted:0.1") == find()
    noisy = fmab.at_leak("kl_se", 1.0, agents=50, view="sum", presence="absent:0.1")
    assert noisy.epsilon == pytest.approx(1.0)
    secure = fmab.kl_se(1.0, secure=True)
    plain, absent = (fmab.privacy_ledger(secure, 10, presence=x) for x in (None, "absent:0.1"))
    assert [x.epsilon for x in plain] == [x.epsilon for x in absent]
    assert any("a missing share" in row.why for row in absent)


def test_a_trimmed_mean_hides_a_reward_no_better_than_one_message():
    """Would catch a median that is said to hide as well as a sum, and unlike noises."""
    trimmed = fmab.cdp_mab(epsilon_message=1, trim=0.5)
    rows = fmab.privacy_ledger(trimmed, 50, colluding=2)
    assert {row.number for row in rows} == {1}
    assert rows[1].observation == rows[-1].observation == "trimmed means over 50 agents"
    for view in ("sum", "actions"):
        assert fmab.find_leak(trimmed, 50, view) == 1.0
    with pytest.raises(ValueError, match="one number where agents may be absent"):
        fmab.privacy_ledger(fmab.kl_se("1x40,10x10"), 50, presence="absent:0.1")


def test_default_candidates_of_a_plan_can_follow_the_presence():
    """Would catch a plan that is refused because one candidate hears every agent."""
    problem = fmab.Problem.uniform(3, 3, presence="absent:0.1")
    candidates, notes = list_candidates(Question(problem, 200, 1.0))
    assert not any(candidate.algorithm.exchange(3).alone for candidate in candidates)
    assert "left out, its agents are alone: LDP-UCB" in notes
    assert "kl_se" in {candidate.algorithm.name for candidate in candidates}


def test_links_are_up_independently_of_each_other_and_of_slots():
    """Would catch a link that is up one way only, or that all agents share."""
    agents = 40
    problem = fmab.Problem.uniform(agents, 2, presence="links:0.3")
    with jax.enable_x64(True):
        bound = problem.presence.bind(agents, problem.rewards)
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(3))
        first, second = (jnp.asarray(x, jnp.uint32) for x in np.triu_indices(agents, 1))
        up = np.array(
            [
                bound.presence.is_linked(bound.build_occasion(key, jnp.int64(t)), first, second)
                for t in range(1, 6)
            ]
        )
    assert scipy.stats.binomtest(int(up.sum()), up.size, 0.3).pvalue > ALPHA
    both = (up[0] & up[1]).sum()
    assert scipy.stats.binomtest(int(both), up[0].size, 0.09).pvalue > ALPHA


def restate(*methods):
    """Returns a presence that restates some methods by themselves."""
    fields = {name: getattr(fmab.Presence, name) for name in methods}
    restated = {
        name: lambda *given, method=method: method(*given) for name, method in fields.items()
    }
    kind = type("Restated", (fmab.Presence,), {"name": "restated", "title": "", **restated})
    return dataclass(frozen=True)(kind)()


def test_what_a_presence_restates_is_what_runs_ask_for():
    """Would catch messages that are not counted, or links or rewards that stay as they were."""
    methods = "is_heard", "is_sent", "is_linked", "distort"
    for size in range(5):
        for some in itertools.combinations(methods, size):
            presence = restate(*some)
            assert presence.loses_messages == bool({"is_heard", "is_sent"} & {*some})
            assert presence.cuts_links == ("is_linked" in some)
            assert presence.counts_messages == bool({*methods[:3]} & {*some})
            assert presence.corrupts == ("distort" in some)


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (1.0, 5.0), (-4.0, -1.0)])
def test_false_rewards_lie_as_far_from_the_other_end(low, high):
    """Would catch a mirror at half of the range, which is right only where rewards start at 0."""
    ends = {"low": low, "high": high, "__doc__": "Rewards of a range."}
    law = dataclass(frozen=True)(type("Ranged", (fmab.Bernoulli,), ends))()
    assert fmab.Corrupted(1.0).bind(3, fmab.Gaussian(1.0)).centre == 0.0
    with jax.enable_x64(True):
        pulls = jnp.array([4.0, 4.0, 0.0])
        sums = pulls * jnp.array([low, 0.5 * low + 0.5 * high, 0.0])
        agent, key = jnp.arange(3, dtype=jnp.uint32), keys.seed_key(jnp.uint32(0), jnp.uint32(3))
        for probability, wanted in ((1.0, (low + high) * pulls - sums), (0.0, sums)):
            bound = fmab.Corrupted(probability).bind(3, law)
            occasion = bound.build_occasion(key, jnp.int64(1))
            centre = jnp.asarray(bound.centre)
            false = bound.presence.distort(occasion, agent, sums, pulls, centre)
            np.testing.assert_allclose(false, wanted, rtol=1e-15)


@dataclass(frozen=True)
class Liars(fmab.Presence):
    """Some agents say that they got nothing, all others the mirror image of what they got."""

    name: ClassVar[str] = "liars"
    title: ClassVar[str] = "liars"
    number: int = 29

    def distort(self, occasion, agent, rewards, pulls, centre):
        """Returns false rewards."""
        return jnp.where(agent < self.number, 0.0, 2.0 * centre * pulls - rewards)


@pytest.mark.parametrize("agents, trim, liars", [(100, 0.29, 29), (100, 0.5, 29), (49, 1 / 49, 1)])
def test_trimmed_means_of_certain_rewards_by_hand(agents, trim, liars):
    """Would catch a median of an even number of agents that is over none, 28 of 29 messages that
    are dropped, none in place of one, and a corrupted agent that counts another pull than it made.
    """
    # The first arm always pays; some agents say that it pays nothing, and the others say so too.
    problem = fmab.Problem([1.0, 0.0], agents, presence=Liars(liars))
    owner = altered(
        fmab.cdp_mab, worse=staticmethod(lambda aggregate, epoch: aggregate.mean != 1.0)
    )
    data = fmab.simulate(owner(None, trim=trim), problem, HORIZON, 2, times=[HORIZON])
    assert data.active_arms.values.tolist() == data.chosen_arm.values.tolist() == [1, 1]


@pytest.mark.parametrize("heard", [1, 2, 3, 49, 100])
def test_a_share_that_drops_no_message_is_refused(heard):
    """Would catch a mean of all agents that costs what a trimmed mean leaks; and a limit that
    counts the agents that do not report, or that refuses one message of 49.
    """
    agents, least = 2 * heard, min(0.5, 1 / heard)
    trimmed, less = (fmab.cdp_mab(1.0, participation=0.5, trim=x * least) for x in (1.0, 0.99))
    ledger, few = fmab.privacy_ledger, "0 with fewer than 3 agents heard"
    if heard < 3:
        refuses(f"^trim=0.5: must be {few}", ledger, trimmed, agents)
    else:
        assert ledger(trimmed, agents)[1].observation.startswith("one round's trimmed mean")
        ledger(replace(trimmed, trim=float(refused(ledger, less, agents).split()[-5])), agents)
    allowed = few if heard < 3 else f"0, or at least 1/{heard} with {heard} agents heard"
    refuses(f"^trim={less.trim}: must be {allowed}", ledger, less, agents)


def test_every_door_refuses_a_share_that_drops_no_message(tmp_path):
    """Would catch a sweep that runs its first row, and a plan or a plug-in that asks nobody."""
    problem, store = fmab.Problem.uniform(5, 3, presence="absent:0.5"), tmp_path / "store"
    small, few = fmab.cdp_mab(1.0, trim=0.1), "^trim=0.1: must be 0, or at least 1/5 with 5 agents"
    plugin = altered(fmab.kl_se, trimmed_share=0.1)(1.0)
    for algorithm in (small, plugin):
        refuses(few, fmab.simulate, algorithm, problem, 50, 2)
        refuses(few, fmab.find_leak, algorithm, 5)
        refuses(few, fmab.plan, problem, 50, leak=9.0, candidates=[algorithm])
    shares = {"epsilon": 1, "trim": [0, 0.1, 0.2], "horizon": 50, "seeds": 2}
    refuses(few, fmab.sweep, "cdp", problem, **shares, store=store)
    refuses(few, fmab.at_leak, "cdp", 1.0, agents=5, trim=0.1)
    assert not store.exists()
    over_graph = altered(fmab.ddp_mab, trimmed_share=0.2)(1.0, "ring")
    for call in (partial(fmab.simulate, horizon=50, seeds=2), fmab.privacy_ledger):
        who = problem if isinstance(call, partial) else 5
        refuses("^trim=0.2: must be 0 but with a server", call, over_graph, who)


@dataclass(frozen=True)
class LateLiars(fmab.Presence):
    """Nobody is heard in the first rounds; then all report the mirror image of what they got."""

    name: ClassVar[str] = "late_liars"
    title: ClassVar[str] = "liars that are not heard in the first rounds"
    rounds: float = 1.0

    def is_heard(self, occasion, agent):
        """Tells that all agents are heard, later on."""
        number = occasion.number.astype(jnp.float64)
        return jnp.broadcast_to(number > self.rounds, agent.shape)

    def distort(self, occasion, agent, rewards, pulls, centre):
        """Returns false rewards."""
        return 2.0 * centre * pulls - rewards


def test_no_arm_leaves_in_a_round_that_hears_nobody():
    """Would catch arms that leave by a sum that was never opened, once another round is heard; and
    an arm that is worse, or lost, counted before anything is decided.
    """

    def leaves_first(aggregate, epoch):
        return (epoch.number == 1.0) & (aggregate.mean < aggregate.best)

    owner = altered(fmab.dist_dp_se, worse=staticmethod(leaves_first))
    due = {  # of the arm that pays nothing, which seems to be the better one
        1.0: {"active_arms": 2, "chosen_arm": -1, "final_gap": 0.5, "agents_worse": 0},
        0.0: {"active_arms": 1, "chosen_arm": 1, "final_gap": 1.0, "agents_worse": 3},
    }
    for rounds, values in due.items():
        problem = fmab.Problem([1.0, 0.0], 3, presence=LateLiars(rounds))
        data = fmab.simulate(owner(1e3), problem, HORIZON, 2, times=[HORIZON])
        assert {name: data[name].values.tolist() for name in values} == {
            name: [value] * 2 for name, value in values.items()
        }
        assert (data.best_arm_lost == (rounds == 0.0)).all() and (data.rounds_made > 0).all()
