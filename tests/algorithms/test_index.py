"""Index policies against slow twins, draw by draw; bits; edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import index_twins as twins
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import quick
from test_equations import slot_of

import fmab_jax as fmab
from fmab_jax.algorithms.families import index
from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.gosine import GosineState
from fmab_jax.parts.exchanges import server
from fmab_jax.run import batches, compilation, configs
from fmab_jax.sampling import keys

ALPHA = 1e-6
SHARED = [[0.62, 0.31, 0.5, 0.83, 0.47, 0.12, 0.77, 0.29]]
# Agents whose own best arms differ.
UNEQUAL = np.random.default_rng(5).uniform(size=(5, 8)).round(2).tolist()
AGENTS, HORIZON = 5, 350
POOLED = partial(twins.ucb1, pooled=True)

# name: (package's algorithm, twin, whether it is told of neighbours, means)
SETTINGS = {
    "alone": (fmab.ucb1(), twins.ucb1, False, SHARED),
    "alone, narrow": (fmab.ucb1(alpha=0.3), partial(twins.ucb1, alpha=0.3), False, SHARED),
    "alone, unequal": (fmab.ucb1(), twins.ucb1, False, UNEQUAL),
    "pooled": (fmab.ucb1(pooled=True), POOLED, False, SHARED),
    "pooled, unequal": (fmab.ucb1(pooled=True), POOLED, False, UNEQUAL),
    "gosine, ring": (fmab.gosine(twins.ring(AGENTS)), twins.gosine, True, SHARED),
    "gosine, narrow": (
        fmab.gosine(twins.ring(AGENTS), alpha=0.5),
        partial(twins.gosine, alpha=0.5),
        True,
        SHARED,
    ),
}


def problem_of(means, agents=AGENTS):
    return fmab.Problem(means) if len(means) > 1 else fmab.Problem(means[0], agents)


def gaps_of(means):
    every = np.mean(means, axis=0)
    return every.max() - every


def uniforms(seed, horizon, agents, stream):
    with jax.enable_x64(True):
        key = keys.seed_key(jnp.uint32(0), jnp.uint32(seed))
        words = keys.stream_key(key, 0, stream)
        lane = jnp.arange(agents, dtype=jnp.uint32)[None, :]
        slot = jnp.arange(horizon + 1, dtype=jnp.uint32)[:, None]
        return np.asarray(keys.uniform(*words, lane, slot))


def same_draws(seed, horizon, agents, means, graph, twin, talks):
    """The twin's run with the very numbers that the package draws."""
    rewards = uniforms(seed, horizon, agents, keys.REWARD)
    picks = uniforms(seed, horizon, agents, keys.PARTICIPATION)
    reward, neighbour = twins.given_chance(means, graph, rewards, picks)
    arguments = (means, agents, horizon, reward, neighbour)
    return twin(*(arguments if talks else arguments[:-1]))


def assert_is_the_twin(data, i, run, gaps, horizon, exchange):
    """Everything that a run says of one seed, recomputed from what the twin did."""
    one = data.isel(seed=i)
    np.testing.assert_allclose(one.regret, twins.regret(run, gaps), rtol=1e-12, atol=1e-12)
    committed = [twins.lowest_best(pulls) for pulls in run.pulls]
    best = set(np.flatnonzero(gaps < 1e-12))
    assert one.rounds_made == len(run.talks)
    assert one.active_arms == max(map(len, run.playing))
    assert one.chosen_arm == np.bincount(committed).argmax()
    assert one.agents_lost == sum(not (best & mine) for mine in run.playing)
    assert one.agents_worse == sum(gaps[committed] > 0)
    assert one.final_gap == pytest.approx(np.mean(gaps[committed]), abs=1e-12)
    item = len(gaps) * exchange.vectors + exchange.numbers
    assert one.numbers_sent == item * len(run.talks)
    assert not one.waiting_regret.any()
    result = np.array([sum(talk <= t for talk in run.talks) for t in range(horizon + 1)])
    links = {meter.name: number for meter, number in exchange.links}
    assert not run.talks or links
    assert data.meter.values.tolist() == list(links)
    for meter, number in links.items():
        np.testing.assert_array_equal(one.links.sel(meter=meter), number * result)


@pytest.mark.parametrize("name", SETTINGS)
def test_runs_are_those_of_the_slow_twin_draw_by_draw(name):
    """Would catch any decision, sum or count of links that the pseudo-code does not make.

    The grid is every slot from 0 on, so the curve must be the sum of the gaps of the twin's pulls.
    """
    algorithm, twin, talks, means = SETTINGS[name]
    times = np.arange(HORIZON + 1)
    data = fmab.simulate(algorithm, problem_of(means), HORIZON, 6, times=times)
    graph = twins.ring(AGENTS)
    for seed in range(6):
        run = same_draws(seed, HORIZON, AGENTS, means, graph, twin, talks)
        assert_is_the_twin(data, seed, run, gaps_of(means), HORIZON, algorithm.exchange(AGENTS))


EDGES = {
    "fewer slots than arms": (3, 6, 3),
    "one agent": (1, 4, 70),
    "one arm": (3, 1, 40),
    "one slot": (2, 3, 1),
    "more agents than arms": (7, 3, 65),
}


@pytest.mark.parametrize(
    ("name", "edge"),
    [pytest.param("gosine", edge, marks=pytest.mark.slow) for edge in EDGES]
    + [(name, edge) for name in ("alone", "pooled") for edge in list(EDGES)[:3]],
)
def test_edges_are_those_of_the_slow_twin(name, edge):
    """Would catch a block, a grid or a share of arms that assumes more than one of anything."""
    agents, arms, horizon = EDGES[edge]
    means = [[0.5, 0.9, 0.2, 0.7, 0.4, 0.6][:arms]]
    graph = nx.complete_graph(agents)
    algorithm, twin, talks = {
        "alone": (fmab.ucb1(), twins.ucb1, False),
        "pooled": (fmab.ucb1(pooled=True), POOLED, False),
        "gosine": (fmab.gosine(), twins.gosine, True),
    }[name]
    times = np.arange(horizon + 1)
    data = fmab.simulate(algorithm, problem_of(means, agents), horizon, 3, times=times)
    for seed in range(3):
        run = same_draws(seed, horizon, agents, means, graph, twin, talks)
        assert_is_the_twin(data, seed, run, gaps_of(means), horizon, algorithm.exchange(agents))


def outcomes(configs, seeds, batch):
    """[config] of every field, all configs in the same batches."""
    which = np.repeat(np.arange(len(configs)), len(seeds))
    work = batches.Trials(configs, which, np.tile(seeds, len(configs)), 0)
    actual = {}
    for start, outcome in batches.run_trials(work, batch, tuple(jax.local_devices())):
        for name, values in outcome._asdict().items():
            if values is not None:
                actual.setdefault(name, {})[start] = values
    joined = {n: np.concatenate([v[s] for s in sorted(v)]) for n, v in actual.items()}
    return [
        {n: v[i * len(seeds) : (i + 1) * len(seeds)] for n, v in joined.items()}
        for i in range(len(configs))
    ]


EACH = {"alone": fmab.ucb1(), "pooled": fmab.ucb1(pooled=True), "gosine": fmab.gosine("star")}
FIRST = quick.only(EACH, "pooled")


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.as_users_have_it
def test_bits_depend_on_neither_batch_nor_neighbours(name):
    """Would catch rounding that a batch decides, and a finished run that goes on learning.

    Runs of other horizons and other alphas share the batch; some end in the middle of a block.
    """
    problem, algorithm = fmab.Problem.uniform(6, 11), EACH[name]
    rows = [
        configs.bind(replace(algorithm, alpha=alpha), problem, horizon, times=25)
        for horizon, alpha in ((333, 2.0), (65, 0.7), (1000, 2.0))
    ]
    assert len({config.program for config in rows}) == 1
    seeds = np.array([3, 0, 11, 7, 2])
    for config, together in zip(rows, outcomes(rows, seeds, 16), strict=True):
        for batch, order in ((2, slice(None)), (8, slice(None, None, -1))):
            alone = outcomes([config], seeds[order], batch)[0]
            for field, values in alone.items():
                np.testing.assert_array_equal(values[order], together[field], err_msg=field)


def test_phases_of_gosine_end_at_cubes():
    """Would catch a cube root that is off by a rounding, for every phase that can be run."""
    cubes = np.arange(1, 465) ** 3
    slots = np.unique(np.concatenate([cubes, cubes + 1, cubes[1:] - 1]))
    with jax.enable_x64(True):
        none, slot = jnp.zeros((1, 1)), slot_of(1)
        state = GosineState(none, none, none, none > 0, none[0].astype(int), none[0].astype(int))

        def due(number):
            now = slot._replace(number=number, time=number.astype(float))
            return fmab.gosine.due(state, now, {})

        ended = np.asarray(jax.vmap(due)(jnp.asarray(slots)))
    np.testing.assert_array_equal(slots[ended], cubes)


class Counted(NamedTuple):
    pulls: jax.Array
    sums: jax.Array
    reported: jax.Array


@dataclass(frozen=True)
class Counts(IndexPolicy):
    """UCB1 alone; a server hears all agents once five more pulls of arm 1 were made."""

    name: ClassVar[str] = "counts"

    def exchange(self, agents):
        return server(agents)

    @staticmethod
    def init(rows, arms, slot, params):
        return Counted(*[jnp.zeros((rows, arms))] * 2, jnp.zeros((rows, 1)))

    @staticmethod
    def choose(state, slot, params):
        return fmab.ucb1.choose(index.Tally(state.pulls, state.sums), slot, {"alpha": 2.0})

    @staticmethod
    def due(state, slot, params):
        new = state.pulls[:, 1] - state.reported[:, 0]
        agents = jnp.arange(len(new), dtype=jnp.float64) < slot.agents
        return jnp.sum(jnp.where(agents, new, 0.0)) >= 5.0

    @staticmethod
    def communicate(state, slot, params):
        return state._replace(reported=state.pulls[:, 1:])


def test_rounds_that_depend_on_counts_are_charged_at_their_slots():
    """Would catch a `due` that is asked before the slot's pulls are counted."""
    problem = fmab.Problem([0.75, 0.25], agents=3)
    data = fmab.simulate(Counts(), problem, 400, 32, times=400)
    links = data.links.sel(meter="server").values
    # Every pull of arm 1, and nothing else, costs a half: regret gives the counts.
    expected = np.zeros_like(links)
    for seed, counts in enumerate(np.rint(data.regret.values / 0.5)):
        reported = rounds = 0
        for slot, count in enumerate(counts):
            if count - reported >= 5:
                reported, rounds = count, rounds + 1
            expected[seed, slot] = 3 * rounds
    np.testing.assert_array_equal(links, expected)
    # Data decided when: in most slots some seeds have had another number of rounds.
    assert (np.ptp(links, axis=0) > 0).mean() > 0.5


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.as_users_have_it
def test_nothing_is_scattered(name):
    """Would catch a program that crawls on accelerators."""
    config = configs.bind(EACH[name], fmab.Problem.uniform(50, 100), 5000)
    compiled = compilation.compile_program(config.program, 16, tuple(jax.local_devices()))
    assert "scatter(" not in compiled.as_text()


@pytest.mark.slow
def test_gosine_has_the_scale_of_an_independent_run():
    """Would catch a reading of GosInE that costs another order: about 13,400 and 1,050 links."""
    data = fmab.simulate(fmab.gosine(), fmab.Problem.uniform(50, 100), 10**4, 48)
    assert 0.85 < float(data.regret[:, -1].mean()) / 13_400 < 1.15
    np.testing.assert_array_equal(data.links[:, -1, 0], 1050)
