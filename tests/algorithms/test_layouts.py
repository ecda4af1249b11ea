"""Every elimination in both layouts: the same bits in arrays of arms as in one list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import programs
import pytest
import quick
from altered import altered

import fmab_jax as fmab
from fmab_jax import draws
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.layouts import Dense, Ragged, ragged
from fmab_jax.run import compilation, configs
from fmab_jax.run.outputs import resolve
from fmab_jax.sampling.backend import trace_for
from fmab_jax.sampling.scope import package_settings

TRIALS, HORIZON = 24, 10**5
ALIKE, MANY = fmab.Problem.uniform(7, 6), fmab.Problem.uniform(7, 23)
DIFFER = fmab.Problem.heterogeneous(7, 6, 0.3)
LEVELS = np.random.default_rng(0).dirichlet(np.ones(4), 6)
RATINGS = fmab.Problem.ratings([1, 2, 3, 4], LEVELS, 7)
NORMAL = fmab.Problem.uniform(7, 6, rewards="gaussian:0.2")
LAST = fmab.Problem([0.1] * 21 + [0.85, 0.9], agents=7)
PATHS = "3:path+4:star"


@dataclass(frozen=True)
class Growing(fmab.cdp_mab):
    """Its noise is of another scale in each epoch."""

    name: ClassVar[str] = "growing"

    @staticmethod
    def noise_scale(epoch):
        """Returns sqrt(r) / (N epsilon)."""
        return jnp.sqrt(epoch.number) / (epoch.reporting * epoch.params["epsilon"])


@dataclass(frozen=True)
class Forgets(Growing):
    """The same, judged by the last epoch alone."""

    name: ClassVar[str] = "forgets"
    remembers: ClassVar[bool] = False


@dataclass(frozen=True)
class Compares(fmab.cdp_mab):
    """An arm leaves if most arms are better, too."""

    name: ClassVar[str] = "compares"

    @classmethod
    def worse(cls, aggregate, epoch):
        """Tells which arms are behind by a radius, and by more than the median."""
        behind = aggregate.best - aggregate.mean
        # Arms that have left are NaN, which a median does not look away from.
        return (behind >= aggregate.radius) & (behind > jnp.nanmedian(behind))


# Name: configurations of one program, whose trials share a batch.
CASES = {
    "alike": [
        (fmab.cdp_mab(1.0), MANY),
        (fmab.cdp_mab(None), MANY),
        # The noise of nine agents has another shape than that of seven, and decides who leaves.
        (fmab.cdp_mab(0.004, rounds=2), fmab.Problem.uniform(9, 23)),
        (fmab.cdp_mab(0.05, rounds=3, schedule_gap=0.5), MANY),
    ],
    "differ": [(fmab.cdp_mab(1.0), DIFFER), (fmab.cdp_mab(0.05, scale=0.5), DIFFER)],
    "integers": [
        (fmab.cdp_mab(epsilon_message=e, mechanism="discrete_laplace"), ALIKE) for e in (1.0, 0.02)
    ],
    "integers, some": [
        (fmab.kl_se(e, participation=0.4, mechanism="skellam"), DIFFER) for e in (1.0, 0.05)
    ],
    "normal, some": [
        (fmab.kl_se(e, participation=0.4, mechanism="gaussian"), DIFFER) for e in (1.0, 0.05)
    ],
    "ratings": [(fmab.cdp_mab(1.0), RATINGS), (fmab.cdp_mab(0.05, rounds=2), RATINGS)],
    "components": [
        (fmab.hdp_mab(e, "3:star+4:star", weights="components"), ALIKE) for e in (1.0, 0.05)
    ],
    "components, wait": [(fmab.kl_se_components(e, components=PATHS), DIFFER) for e in (1.0, 0.05)],
    "ring": [(fmab.ddp_mab(1.0, "ring"), MANY), (fmab.ddp_mab(0.05, "path", rounds=2), MANY)],
    "ring, private": [(fmab.kl_se_graph(e, graph="ring"), ALIKE) for e in (1.0, 0.1)],
    "some": [
        (fmab.cdp_mab(1.0, participation=0.4), MANY),
        (fmab.cdp_mab(0.01, participation=0.8), MANY),
        (fmab.cdp_mab(0.1, participation=0.1, rounds=9, schedule_gap=0.01), MANY),
    ],
    # The last arms are soon alone in short arrays.
    "some, last": [(fmab.cdp_mab(1.0, participation=0.4), LAST)],
    "some, differ": [(fmab.kl_se(e, participation=0.4), DIFFER) for e in (1.0, 0.1)],
    "some, forget": [(Forgets(e, participation=0.4), ALIKE) for e in (1.0, 0.1)],
    "some, growing": [(Growing(e, participation=0.4), ALIKE) for e in (1.0, 0.1)],
    "unlike": [
        (fmab.cdp_mab(epsilon_message=x), MANY) for x in ("1x3,9x4", "0.1x2,0.5x1,0.1x1,0.5x3")
    ],
    "unlike, differ": [(fmab.kl_se(x), DIFFER) for x in ("1x3,9x4", "9x3,0.1x4")],
    "unlike, some": [
        (fmab.cdp_mab(epsilon_message=x, participation=0.4), MANY) for x in ("1x3,9x4", "9x6,0.1x1")
    ],
    "unlike, wait": [
        (fmab.kl_se_graph(x, graph="ring"), ALIKE) for x in ("1x3,9x4", "0.1x2,0.5x1,0.1x1,0.5x3")
    ],
    "unlike, ring": [
        (fmab.ddp_mab(epsilon_message=x, graph="ring"), DIFFER) for x in ("1x3,9x4", "9x3,0.1x4")
    ],
    "secure": [(fmab.dist_dp_se(1.0), ALIKE), (fmab.dist_dp_se(0.1, base=4.0), ALIKE)],
    "split": [(fmab.kl_se(1.0, split=True), MANY), (fmab.kl_se(0.02, split=True), MANY)],
    "split, secure": [(fmab.kl_se(e, split=True, secure=True), MANY) for e in (1.0, 0.02)],
    "alone": [(fmab.single_mab(1.0), DIFFER), (fmab.single_mab(0.2, rounds=2), DIFFER)],
    "alone, forget": [(fmab.dp_se(1.0), ALIKE), (fmab.dp_se(0.3, failure=0.1), ALIKE)],
    # More epochs than a list notes at once.
    "no noise": [(fmab.fed1_ucb(pulls=pulls), NORMAL) for pulls in (40, 300)],
    "compares": [(Compares(1.0), MANY), (Compares(0.05), MANY)],
    "one arm": [(fmab.cdp_mab(1.0), fmab.Problem.uniform(3, 1))],
    "ties": [(fmab.cdp_mab(None), fmab.Problem([0.5, 0.5, 0.1, 0.5], agents=3))],
}

DEFAULT = (
    *("alike", "differ", "some", "some, last", "some, growing", "unlike, differ", "split"),
    *("alone", "compares"),
)
LAYOUTS = {"cpu": Ragged, "gpu": Dense}


def bound(name, **more):
    """Returns the configurations of a case, with outputs that accumulate."""
    outputs = resolve(["pulls"] if "split" in name else ["pulls", "regret_by_agent"])
    given = {"times": 10, "outputs": outputs} | more
    return [configs.bind(*item, HORIZON, **given) for item in CASES[name]]


def program(configs, platform, **options):
    """Returns a function of (which configuration, seed) of each trial, laid out for a platform."""
    assert len({config.program for config in configs}) == 1
    table = jax.tree.map(lambda *x: np.stack(x), *(config.arrays for config in configs))

    def arguments(which, seeds):
        own = jax.tree.map(lambda x: x[which], table)
        return *own, np.zeros(len(seeds), np.uint32), np.asarray(seeds, np.uint32)

    def many(*given):
        with trace_for(platform):
            return compilation.run_many_trials(*given)

    every = np.arange(TRIALS)
    with package_settings():
        lowered = jax.jit(many).lower(*arguments(every % len(configs), every))
        compiled = lowered.compile(compiler_options=compilation._OPTIONS["cpu"] | options)

    def outcomes(which, seeds):
        with package_settings():
            return jax.tree.map(np.asarray, compiled(*arguments(which, seeds)))

    return outcomes


def assert_same_bits(first, second):
    """Compares outcomes field by field, and accumulator by accumulator."""
    for (path, x), y in zip(
        jax.tree_util.tree_leaves_with_path(first), jax.tree.leaves(second), strict=True
    ):
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))


def twice(name, **options):
    """Returns a batch in both layouts; each is asked again for half of it, beside other seeds."""
    configs, actual = bound(name), []
    seeds = np.arange(TRIALS)
    which = seeds % len(configs)
    half = np.random.default_rng(0).permutation(TRIALS)[: TRIALS // 2]
    for platform in LAYOUTS:
        outcomes = program(configs, platform, **options)
        actual.append(outcomes(which, seeds))
        again = outcomes(np.tile(which[half], 2), np.concatenate([seeds[half], 1000 + half]))
        kept, expected = jax.tree.map(lambda x: x[: len(half)], again), actual[-1]
        assert_same_bits(kept, jax.tree.map(lambda x: x[half], expected))
    return actual


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    """Cuts the list of arms in the middle of trials, and several times in a batch."""
    monkeypatch.setattr(ragged, "_CHUNK", 64)


@pytest.mark.parametrize("name", quick.only(CASES, *DEFAULT))
def test_one_list_gives_the_bits_of_arrays_of_arms(name):
    """Would catch an arm lost, kept, doubled or mixed up in the list or where arrays are cut; an
    arm overwritten by a place that has none; a sum in another order; a value of one trial read by
    another; an equation that sees arms that have left, or as many as its neighbours leave it; a
    curve that misses an epoch; and pulls that are counted in one layout only."""
    listed, arrays = twice(name)
    assert_same_bits(listed, arrays)
    assert listed.accumulator_values["pulls"].shape == (TRIALS, CASES[name][0][1].arms)
    assert (listed.rounds.max() > 0) == (name != "one arm")
    assert name != "no noise" or listed.rounds.max() > ragged._EPOCHS
    # Trials differ: values of another one would show.
    alike = name in ("one arm", "ratings", "ties", "some, last")
    assert len(np.unique(listed.regret[:, -1])) > TRIALS // 2 or alike


@pytest.mark.parametrize("name", quick.only(["ring", "some", "differ", "alone"], "some"))
@pytest.mark.parametrize("platform", LAYOUTS)
def test_rows_that_no_agent_has_change_nothing(name, platform):
    """Would catch padding that is heard, or counted, in one of the layouts."""
    seeds = np.arange(TRIALS)
    few, more = (
        program([configs.bind(*CASES[name][0], HORIZON, times=10, padded_agents=room)], platform)
        for room in (8, 13)
    )
    assert_same_bits(few(0 * seeds, seeds), more(0 * seeds, seeds))


@pytest.mark.slow
@pytest.mark.as_users_have_it
@pytest.mark.parametrize("name", ["alike", "differ", "ring"])
def test_the_bits_are_the_same_as_users_have_them(name):
    """Would catch a product and a sum that one layout's program rounds once, the other's twice."""
    assert_same_bits(*twice(name, **programs.EMITTERS))


def test_outputs_change_nothing_in_either_layout():
    """Would catch an output that changes what is there without it, and a trial that is another one
    when it is alone in its batch."""
    (config, *_), (plain, *_) = bound("alike"), bound("alike", outputs=())
    seeds = np.arange(TRIALS)
    with_accumulators = program([config], "cpu")(0 * seeds, seeds)
    for platform in LAYOUTS:
        assert_same_bits(
            program([plain], platform)(0 * seeds, seeds),
            with_accumulators._replace(accumulator_values=None),
        )
    with package_settings():
        given = *plain.arrays, np.uint32(0), np.uint32(7)
        compiled = jax.jit(compilation.run_trial).lower(*given).compile(compilation._OPTIONS["cpu"])
        alone = jax.tree.map(np.asarray, compiled(*given))
    seventh = jax.tree.map(lambda x: x[7], with_accumulators._replace(accumulator_values=None))
    assert_same_bits(alone, seventh)


def test_every_elimination_and_way_of_drawing_is_compared():
    """Would catch an algorithm, or a way in which agents add up, that nobody ever ran in both."""
    eliminations = {
        item for item in ALGORITHMS.by_name().values() if issubclass(item, fmab.Elimination)
    }
    assert len(eliminations) == 10
    assert eliminations <= {type(algorithm) for case in CASES.values() for algorithm, _ in case}
    trials = {name: bound(name)[0].trial for name in CASES}
    ways = {name: type(trial.draws) for name, trial in trials.items()}
    assert set(ways.values()) == {
        *(draws.AgentSum, draws.Groups, draws.ByAgent, draws.OnReport, draws.SplitArms)
    }
    assert {trials[name].alone for name in DEFAULT} == {True, False}
    assert {ways[name] for name in DEFAULT} == set(ways.values())
    assert [name for name, trial in trials.items() if not trial.elementwise] == ["compares"]
    # Arrays are cut where most of so many arms have left.
    assert CASES["alike"][0][1].arms > 20 and CASES["ring"][0][1].arms > 20


def test_what_is_said_of_a_function_ends_where_it_is_restated():
    """Would catch a class that inherits its parent's word for a function of its own: arms that are
    compared one at a time, noise of the last epoch's scale for all of them, and NaN for T."""
    leaves = staticmethod(lambda behind, radius: behind >= radius)
    ranked = staticmethod(lambda behind, radius: behind >= jnp.sort(behind)[0] + radius)
    says = altered(Compares, elementwise=True, eliminates=leaves, worse=fmab.Elimination.worse)
    again = altered(says, eliminates=ranked)

    def trial(algorithm):
        return configs.bind(algorithm, ALIKE, 1000).trial

    assert [trial(item(1.0)).elementwise for item in (Compares, says, again, Growing)] == [
        *(False, True, False, True)
    ]
    some = (fmab.cdp_mab, Growing, Compares, Forgets)
    ways = [type(trial(item(1.0, participation=0.4)).draws) for item in some]
    # What is forgotten has the noise of one epoch alone.
    since, by_agent = draws.OnReport, draws.ByAgent
    assert ways == [since, by_agent, since, since]
    more = classmethod(
        lambda cls, epoch, radius: (fmab.kl_se.precompute(epoch, radius), epoch.horizon)
    )
    assert set(trial(fmab.kl_se(1.0)).precompute_fields) == {
        *("number", "pulls", "reporting"),
    }
    reads = set(trial(altered(fmab.kl_se, precompute=more)(1.0)).precompute_fields)
    assert {"horizon", "fresh", "radius"} & reads == {"horizon", "fresh"}
