"""Active arms in one list: the same bits as in arrays of arms, and lists only where they may be."""

from __future__ import annotations

import math
import types
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick

import fmab_jax as fmab
from fmab_jax.algorithms.families import lists, rounds, tracing
from fmab_jax.core import arrays, keys, laplace
from fmab_jax.core.exchanges import server
from fmab_jax.core.instances import Instance
from fmab_jax.core.scope import own_settings
from fmab_jax.run import batches

UNIFORM, AGENTS_8 = fmab.Problem.uniform(7, 30), fmab.Problem.uniform(8, 30)
LEVELS = np.random.default_rng(0).dirichlet(np.ones(4), 12)


@dataclass(frozen=True)
class Forgets(fmab.single_mab):
    """Looks at the last epoch alone."""

    name: ClassVar[str] = "forgets"
    remembers: ClassVar[bool] = False


@dataclass(frozen=True)
class FewForget(fmab.cdp_mab):
    """Hears two agents of the last epoch alone, whose noise is of the epoch's scale."""

    name: ClassVar[str] = "few-forget"
    remembers: ClassVar[bool] = False

    def exchange(self, agents):
        return server(agents, 0.2)

    @staticmethod
    def noise_scale(epoch):
        return 1.0 / (epoch.own["epsilon"] * epoch.number)


# Name: configurations that share a batch, and their problems; horizon.
CASES = {
    "noise, budgets, epsilons, agents": (
        [
            (fmab.cdp_mab(1.0), UNIFORM),
            (fmab.cdp_mab(0.03), UNIFORM),
            # Noise of nine agents has another shape than that of seven, and decides who leaves.
            (fmab.cdp_mab(0.004, rounds=2), fmab.Problem.uniform(9, 30)),
            (fmab.cdp_mab(0.05, rounds=3, schedule_gap=0.5), UNIFORM),
        ],
        10**5,
    ),
    "heard now and then": (
        [
            (fmab.cdp_mab(1.0, participation=0.4), UNIFORM),
            (fmab.cdp_mab(0.01, participation=0.8), UNIFORM),
            (fmab.cdp_mab(0.1, participation=0.1, rounds=9, schedule_gap=0.01), UNIFORM),
        ],
        10**5,
    ),
}
SLOW = {
    "heard now and then, agents that differ": (
        [(fmab.cdp_mab(1.0, participation=0.4), fmab.Problem.heterogeneous(7, 30, 0.3))],
        10**5,
    ),
    "heard now and then, no noise": ([(fmab.cdp_mab(None, participation=0.4), UNIFORM)], 10**6),
    "heard now and then, forgetful": ([(FewForget(0.5), UNIFORM)], 10**5),
    "more epochs than are drawn at once": ([(fmab.fed1_ucb(pulls=40), UNIFORM)], 10**4),
    "agents alone that forget": (
        [(Forgets(1.0), fmab.Problem.uniform(3, 6)), (Forgets(0.2), fmab.Problem.uniform(3, 6))],
        10**5,
    ),
    "agents alone that differ": (
        [(fmab.single_mab(1.0), fmab.Problem.heterogeneous(5, 10, 0.2))],
        10**5,
    ),
    "no noise": ([(fmab.cdp_mab(None), UNIFORM)], 10**6),
    "agents alone": ([(fmab.single_mab(0.5), UNIFORM), (fmab.single_mab(2.0), UNIFORM)], 10**5),
    "no round": ([(fmab.cdp_mab(1.0), UNIFORM)], 100),
    "one slot": ([(fmab.cdp_mab(1.0), UNIFORM)], 1),
    "one arm": ([(fmab.cdp_mab(1.0), fmab.Problem.uniform(3, 1))], 100),
    "two arms": ([(fmab.cdp_mab(1.0), fmab.Problem.uniform(3, 2))], 10**4),
    "ratings": ([(fmab.cdp_mab(1.0), fmab.Problem.ratings([1, 2, 3, 4], LEVELS, 9))], 10**5),
    "components that weigh the same": ([(fmab.hdp_mab(1.0, "2x4:complete"), AGENTS_8)], 10**5),
    "arms that tie": ([(fmab.cdp_mab(None), fmab.Problem([0.5, 0.5, 0.1, 0.5], agents=3))], 10**5),
}
NO_ROUND = ("no round", "one slot", "one arm")


def in_arrays(configs, which, seeds):
    """Runs the trials in arrays of arms, as accelerators do."""
    table = jax.tree.map(lambda *x: np.stack(x)[which], *(config.arrays for config in configs))
    with own_settings():
        found = jax.jit(jax.vmap(batches.one_trial))(
            *table, np.zeros(len(seeds), np.uint32), np.asarray(seeds, np.uint32)
        )
        return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("name", quick.only(CASES | SLOW, *CASES))
@pytest.mark.as_users_have_it
def test_one_list_gives_the_bits_of_arrays_of_arms(name):
    """Would catch an arm lost, kept, doubled or mixed up in the list; another order of a sum; a
    value of one trial read by another; a curve that misses an epoch."""
    given, horizon = (CASES | SLOW)[name]
    configs = [batches.bound(*one, horizon, times=40) for one in given]
    assert all(config.trial.on("cpu").listed for config in configs)
    seeds = np.arange(256)
    which = seeds % len(configs)
    work = batches.Work(configs, which, seeds, 0)
    ((_, listed),) = batches.run_trials(work, len(seeds), (jax.devices("cpu")[0],))
    expected = in_arrays(configs, which, seeds)
    for field, value in listed._asdict().items():
        np.testing.assert_array_equal(value, getattr(expected, field), err_msg=field)
    rounds = expected.rounds
    most = int(rounds.max())
    assert (most > 0) == (name not in NO_ROUND)
    assert name != "more epochs than are drawn at once" or most > lists._EPOCHS


def test_noise_has_the_shape_of_its_own_trial():
    """Would catch all trials of a batch with the first one's number of agents: the law of the
    others' noise."""
    counts = (3, 11, 50)
    normal = np.linspace(-3, 3, 12)
    for owner in (np.arange(12) % 3, np.repeat([2, 1, 0], 4), np.zeros(12, int)):
        with jax.enable_x64(True):
            shapes = [jnp.asarray(laplace.laplace_sum_shape(count)) for count in counts]
            given = jnp.asarray(normal), jnp.stack(shapes), jnp.asarray(owner, jnp.int32)
            found = np.asarray(jax.jit(lists._laplace_sum)(*given))
            expected = [
                float(laplace.laplace_sum(given[0][i : i + 1], shapes[trial])[0])
                for i, trial in enumerate(owner)
            ]
            alike = np.asarray(
                jax.jit(lists._laplace_sum)(given[0], jnp.stack(shapes[:1] * 3), given[2])
            )
            same = np.asarray(laplace.laplace_sum(given[0], shapes[0]))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_allclose(alike, same, rtol=1e-12)


def test_arms_of_each_trial_are_judged_by_its_own_radius():
    """Would catch an arm compared with another trial's best or radius, ties that go to the last
    arm, a best arm lost by a trial that keeps it, or padding of the list that is an arm."""
    gaps = np.array([[0.25, 0.0, 0.5], [0.125, 0.0, 0.125], [0.5, 0.25, 0.0]])
    # (trial, arm, mean), in any order, in chunks of four; the last trial has no arm in play.
    listed = [(0, 0, 0.4), (0, 1, 0.1), (1, 2, 0.9), (1, 0, 0.4), (0, 2, 0.5), (1, 1, 0.9)]
    lanes = np.array([3 * trial + arm for trial, arm, _ in listed] + [0, 0], np.int32)
    means = np.array([mean for *_, mean in listed] + [9.0, 9.0])
    with jax.enable_x64(True):
        known = {"shared": False, "one_noise": False, "noisy": True}
        trial = types.SimpleNamespace(filling=fmab.cdp_mab, **known)
        own = jnp.asarray(1.0 - gaps[:, None])
        instance = Instance(own, jnp.asarray(gaps), jnp.full(3, 0.1), (own,))
        none = lists._List(jnp.int32(6), jnp.asarray(lanes), jnp.zeros(8), jnp.zeros(0))
        arms = lists._Arms(none, jnp.asarray(means), jnp.ones(8, bool), none, jnp.zeros(0))
        plan = lists._Plan(*[None] * len(lists._Plan._fields))
        plan = plan._replace(radius=jnp.asarray([0.2, 0.25, 0.1]), ready=())
        told = rounds.Epoch(*[jnp.ones(3)] * len(rounds.Epoch._fields))._replace(own={})
        plan = plan._replace(epoch=told)
        top = jnp.asarray([0.5, 0.9, -np.inf])
        scale = jnp.full(3, 0.5)
        judged = jax.jit(lambda a, t: lists._judged(trial, instance, plan, a, t, scale, 4))
        arms, left = judged(arms, top)
    # Arm 1 of trial 0 is behind by 0.4 = 2 x 0.2, and leaves; arm 0 of trial 1 by 0.5.
    assert arms.alive.tolist()[:6] == [True, False, True, False, True, True]
    assert left.active.tolist() == [2, 2, 0] and left.chosen.tolist() == [2, 1, 0]
    assert left.chosen_gap.tolist() == [0.5, 0.0, 0.5]
    assert left.lost.tolist() == [True, False, True] and left.gaps.tolist() == [0.75, 0.125, 0.0]


def test_arms_are_listed_only_where_each_is_judged_by_itself():
    """Would catch arms judged in chunks by a rule that compares them: it would not see them all."""

    class Rules:
        own = staticmethod(fmab.Elimination.leaves)
        above = staticmethod(lambda behind, radius: jnp.where(behind > radius, True, False))
        half = staticmethod(lambda behind, radius: behind > jnp.median(behind))
        some = staticmethod(lambda behind, radius: behind > 0.5 * jnp.max(behind) + radius)
        next_ = staticmethod(lambda behind, radius: jnp.roll(behind, 1) > radius)
        rank = staticmethod(lambda behind, radius: jnp.cumsum(behind) > radius)
        jitted = staticmethod(jax.jit(lambda behind, radius: behind - behind.min() > radius))
        counted = staticmethod(lambda behind, radius: behind > radius * math.log(len(behind) + 1))
        placed = staticmethod(lambda behind, radius: behind > np.arange(len(behind)) * radius)
        sized = staticmethod(lambda b, radius: b > radius if len(b) > 2 else b > 2 * radius)
        clipped = staticmethod(jax.jit(lambda b, radius: jnp.clip(b, 0.0, 1.0) > radius))

    def told_by(rule):
        class Filling(fmab.Elimination):
            @classmethod
            def worse(cls, heard, epoch):
                return rule(heard.best - heard.aggregate, heard.radius)

        return Filling

    told = {
        name: tracing.by_arm(told_by(rule.__func__), ())
        for name, rule in vars(Rules).items()
        if name[0] != "_"
    }
    assert len(told) == 11
    assert {name for name, by_arm in told.items() if by_arm} == {"own", "above", "clipped"}


@dataclass(frozen=True)
class Growing(fmab.cdp_mab):
    """Its noise is of another scale in each epoch."""

    name: ClassVar[str] = "growing"

    @staticmethod
    def noise_scale(epoch):
        return jnp.sqrt(epoch.number) / (epoch.reporting * epoch.own["epsilon"])


class Lasting:
    """Noise of one scale, though all that differs between epochs is looked at."""

    @staticmethod
    def noise_scale(epoch):
        jax.jit(lambda x: 2.0 * x)(epoch.fresh)
        return jax.jit(lambda x: 1.0 / x)(epoch.own["epsilon"]) * epoch.horizon / epoch.arms


def test_arrays_of_all_branches_are_counted():
    """Would catch memory that is not counted because it is taken inside a branch or a loop."""

    def grown(radius):
        return jnp.linspace(0.0, radius, 1000).sum()

    def branched(epoch, radius):
        return jax.lax.cond(radius > 0.0, grown, jnp.sqrt, radius)

    def looped(epoch, radius):
        return jax.lax.fori_loop(0, 3, lambda _, x: x + grown(x), radius)

    for prepared in (lambda epoch, radius: grown(radius), branched, looped):
        filling = type("Told", (), {"prepared": staticmethod(prepared)})
        assert tracing.prepared_elements(filling, ()) == 1000


def test_agents_are_drawn_late_only_where_their_noise_is_of_one_scale():
    """Would catch noise of the last epoch's scale for all epochs; or agents that wait, or that all
    report, drawn as if nobody acted on what they know."""
    assert tracing.lasting(fmab.cdp_mab, ("epsilon",)) and tracing.lasting(Lasting, ("epsilon",))
    assert tracing.lasting(fmab.fed1_ucb, ()) and not tracing.lasting(Growing, ("epsilon",))
    for name in ("number", "active", "previous", "pulls", "fresh"):
        scale = staticmethod(lambda epoch, n=name: 2.0 * getattr(epoch, n))
        assert not tracing.lasting(type("Told", (), {"noise_scale": scale}), ())

    def lazy(algorithm):
        return batches.bound(algorithm, UNIFORM, 1000).trial.lazy

    few = (fmab.cdp_mab(1.0, participation=0.5), fmab.kl_se(1.0, participation=0.5), FewForget(1.0))
    assert all(lazy(each) for each in (*few, fmab.cdp_mab(None, participation=0.5)))
    others = (fmab.cdp_mab(1.0), Growing(1.0, participation=0.5), fmab.ddp_mab(1.0, "ring"))
    assert not any(lazy(each) for each in (*others, fmab.single_mab(1.0)))


def test_what_is_new_from_an_agent_is_all_since_it_was_heard():
    """Would catch an agent that reports the last epoch alone, or a report of it sent twice."""
    trial = types.SimpleNamespace(filling=types.SimpleNamespace(remembers=True), room=3, lazy=True)
    epoch = rounds.Epoch(*[jnp.ones(())] * len(rounds.Epoch._fields))
    epoch = epoch._replace(pulls=jnp.float32(70.0), fresh=jnp.float32(40.0), own={})
    before = rounds.LastHeard(jnp.array([0.0, 30.0, 10.0]), jnp.array([0, 3, 2], jnp.int32))
    heard = jnp.array([True, True, False])
    pulls, silent, now = rounds.since(trial, before, jnp.int32(4), epoch, heard)
    assert pulls.tolist() == [70.0, 40.0, 0.0] and silent.tolist() == [4, 1, 0]
    assert now.pulls.tolist() == [70.0, 70.0, 10.0] and now.epoch.tolist() == [4, 4, 2]
    trial.filling.remembers = False
    pulls, silent, _ = rounds.since(trial, before, jnp.int32(4), epoch, heard)
    assert pulls.tolist() == [40.0, 40.0, 0.0] and silent.tolist() == [1, 1, 0]


def test_accelerators_and_agents_that_are_apart_keep_arrays_of_arms():
    """Would catch lists where each step waits for the host, or where rows of agents are needed."""
    alike = batches.bound(fmab.cdp_mab(1.0), UNIFORM, 1000).trial
    assert alike.on("cpu").listed and not alike.on("gpu").listed and not alike.on("tpu").listed
    apart = fmab.Problem.heterogeneous(7, 30)
    for algorithm, problem in (
        (fmab.cdp_mab(1.0), apart),
        (Growing(1.0, participation=0.5), UNIFORM),
        (fmab.ddp_mab(1.0, "ring"), UNIFORM),
    ):
        assert not batches.bound(algorithm, problem, 1000).trial.on("cpu").listed


def test_keys_in_a_loop_are_the_keys():
    """Would catch a round of the cipher left out, or turned by the other group's distances."""
    key = jax.random.key(7)
    for number in (1, 2, 1000):
        found = keys.stream_keys(key, jnp.int32(number), keys.REWARD, keys.NOISE, keys.ALONE)
        for stream, words in zip((keys.REWARD, keys.NOISE, keys.ALONE), found, strict=True):
            assert [int(x) for x in words] == [int(x) for x in keys.stream_key(key, number, stream)]


@pytest.mark.parametrize("size", [1, 15, 16, 48, 4096, 5000])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_needed_elements_are_numbered_from_one_on(size, share):
    """Would catch a number given twice or left out: a sample would land in another's place."""
    need = np.random.default_rng(size).random(size) < share
    ranks = np.asarray(arrays.ranked(jnp.asarray(need)))
    np.testing.assert_array_equal(np.sort(ranks[need]), np.arange(1, need.sum() + 1))
    assert ranks[-1] == need.sum()
    place = np.asarray(arrays.places(jnp.asarray(need), jnp.asarray(ranks)))
    assert need[place[: need.sum()]].all() and len(set(place[: need.sum()])) == need.sum()
