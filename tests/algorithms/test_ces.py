"""CES against its twin: slot by slot where rewards are certain, and in law where they are not."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import ces_twin as twin
import networkx as nx
import numpy as np
import pytest
import quick
import scipy.stats
from refusals import refuses

import fmab_jax as fmab

ALPHA = 1e-6
TREE = nx.Graph([(0, 1), (1, 2), (1, 3), (3, 4)])
# Rewards that are their means up to 1e-8: mixing and marks are those of any numbers.
CERTAIN = fmab.Gaussian(1e-9)
# The best arm on average is no agent's best, and agents mark unlike arms.
UNEQUAL = np.array(
    [
        [0.9, 0.1, 0.6, 0.4],
        [0.2, 0.8, 0.6, 0.3],
        [0.5, 0.1, 0.7, 0.9],
        [0.8, 0.2, 0.6, 0.1],
        [0.1, 0.9, 0.7, 0.2],
    ]
)
ALIKE = np.tile([0.8, 0.5, 0.35, 0.1], (5, 1))
# Arm 0 leaves first; then every agent marks all arms but its own.
OPPOSED = np.hstack([np.zeros((4, 1)), 0.5 + 0.5 * np.eye(4)])


def weigh(graph, weights):
    """Returns a copy of a graph with a weight on each edge."""
    weighted = nx.Graph(graph)
    for (i, j), weight in zip(graph.edges, weights, strict=True):
        weighted.edges[i, j]["weight"] = weight
    return weighted


class Setting(NamedTuple):
    """A network, the means of its agents, and parameters of the algorithm."""

    graph: nx.Graph
    means: np.ndarray
    weights: str = "metropolis"
    width: float = 1.0
    law: Any = None

    @property
    def algorithm(self):
        """The package's algorithm."""
        return fmab.ces(self.graph, weights=self.weights, width=self.width)

    @property
    def problem(self):
        """The package's problem."""
        return fmab.Problem(self.means, len(self.graph), rewards=self.law)

    def simulate(self, horizon, seeds, times):
        """Returns the package's results."""
        known = self.algorithm, self.problem, horizon, seeds
        return fmab.simulate(*known, times=times, outputs=["pulls"])

    def play(self, horizon):
        """Returns the twin's run with rewards that are their means."""
        known = self.graph, lambda _, i, k: self.means[i, k], self.means.shape[1]
        return twin.play(*known, horizon, self.weights, self.width)

    def play_many(self, horizon, seeds, seed=0):
        """Returns the twin's runs with random rewards of the law."""
        rng = np.random.default_rng(seed)

        def draw(_, rows):
            size = (len(rows), *self.means.shape)
            if self.law is None:
                return (rng.random(size) < self.means).astype(float)
            return self.means + self.law.sd * rng.standard_normal(size)

        known = self.graph, draw, seeds, self.means.shape[1]
        return twin.play_many(*known, horizon, self.weights, self.width)


RING = nx.cycle_graph(5)
WEIGHTED = weigh(TREE, np.float32([0.3, 0.2, 0.35, 0.5]))
# Of its eigenvalues, a negative one is the second largest.
NEAR_SWAP = weigh(RING, [0.45] * 5)
HARDLY_MIXED = weigh(nx.path_graph(4), [0.01] * 3)
# Zeros and ones, so that Bernoulli rewards are certain.
BITS = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
# More arms than the package's loops have places, in the end.
MANY = np.random.default_rng(2).uniform(size=(5, 17)).round(3)
EXACT = {
    "ring": Setting(RING, UNEQUAL, law=CERTAIN),
    "ring, narrow": Setting(RING, UNEQUAL, width=0.05, law=CERTAIN),
    "ring, bits": Setting(RING, BITS),
    "star": Setting(nx.star_graph(4), UNEQUAL, law=CERTAIN),
    "star, narrow": Setting(nx.star_graph(4), UNEQUAL, width=0.1, law=CERTAIN),
    "complete": Setting(nx.complete_graph(5), UNEQUAL, law=CERTAIN),
    "path, bits": Setting(nx.path_graph(5), BITS, width=0.2),
    "path, narrow": Setting(nx.path_graph(5), UNEQUAL, width=0.02, law=CERTAIN),
    "tree": Setting(TREE, UNEQUAL, law=CERTAIN),
    "tree, largest degree": Setting(TREE, UNEQUAL, "max_degree", law=CERTAIN),
    "tree, given weights": Setting(WEIGHTED, UNEQUAL, "given", law=CERTAIN),
    "ring, given weights": Setting(NEAR_SWAP, UNEQUAL, "given", law=CERTAIN),
    "everybody against everybody": Setting(HARDLY_MIXED, OPPOSED, "given", 0.01, CERTAIN),
    "alone": Setting(nx.empty_graph(1), UNEQUAL[:1], law=CERTAIN),
    "one arm": Setting(RING, UNEQUAL[:, :1], law=CERTAIN),
    "many arms": Setting(RING, MANY, width=0.3, law=CERTAIN),
    "tied arms": Setting(RING, BITS[:, [1, 1, 1, 1]]),
}


def assert_is_the_twin(setting, horizon, seeds, times):
    """Asserts that all seeds do what the twin does with certain rewards."""
    data = setting.simulate(horizon, seeds, times)
    run = setting.play(horizon)
    assert data.meter.values.tolist() == ["peer"]
    edges, one = setting.graph.number_of_edges(), data.isel(seed=0)
    regret, pulls = twin.average_over_rounds(run, setting.means)
    np.testing.assert_allclose(one.regret, regret[times], atol=1e-9)
    np.testing.assert_allclose(one.pulls, pulls, atol=1e-9)
    np.testing.assert_array_equal(one.links.sel(meter="peer"), edges * run.exchanges[times])
    assert one.rounds_made == run.exchanges[-1]
    assert one.numbers_sent == run.numbers
    assert one.active_arms == run.active.sum()
    assert one.chosen_arm == (run.active.argmax() if run.active.sum() == 1 else -1)
    for name in ("regret", "links", "rounds_made", "numbers_sent", "active_arms", "chosen_arm"):
        for seed in range(1, seeds):
            np.testing.assert_array_equal(data[name][seed], data[name][0], name)


@pytest.mark.parametrize("name", EXACT)
def test_certain_rewards_are_played_as_by_the_slow_twin(name):
    """Would catch marks by the estimates after an exchange, tau or s of another round, a diameter
    or Q that is forgotten, and links of another slot."""
    assert_is_the_twin(EXACT[name], 3000, 2, np.arange(3001))


# Slots of the first pulls, of whole and cut rounds of four and two arms, and of the last arm.
HORIZONS = (1, 3, 4, 5, 8, 11, 19, 20, 21, 22, 25)
CUTS = [("star, narrow", horizon) for horizon in HORIZONS]
CUTS += [("many arms", horizon) for horizon in (30, 100, 200, 400)]


@pytest.mark.parametrize(("name", "horizon"), CUTS)
def test_a_round_that_the_horizon_cuts_is_none(name, horizon):
    """Would catch an exchange, a mark or links of a round that is not complete."""
    assert_is_the_twin(EXACT[name], horizon, 1, [horizon - 1, horizon])


def test_settings_are_such_that_what_is_tested_occurs():
    """Would catch horizons that cut no round, and settings in which all arms stay, none would, or
    nothing is decided."""
    runs = {horizon: EXACT["star, narrow"].play(horizon) for horizon in HORIZONS}
    # Active arms, and slots since the last whole round.
    ends = set()
    for horizon, run in runs.items():
        whole = np.diff(run.exchanges, prepend=0).nonzero()[0].max(initial=4)
        ends.add((run.active.sum(), horizon - whole))
    assert ends >= {(4, -3), (4, 0), (4, 1), (4, 3), (2, 0), (2, 1), (1, 0), (1, 3)}
    assert [EXACT[name].play(T).active.sum() for name, T in CUTS[-4:]] == [17, 9, 6, 3]
    decided = {name: setting.play(3000).active for name, setting in EXACT.items()}
    assert {name for name, active in decided.items() if active.sum() > 1} == {"tied arms"}
    # None would stay, and arm 0 has left before.
    assert EXACT["everybody against everybody"].play(3000).active.argmax() == 1


LAWS = {
    "ring": Setting(RING, ALIKE),
    "ring, unequal": Setting(RING, UNEQUAL),
    "star": Setting(nx.star_graph(4), UNEQUAL, width=0.5),
    "complete": Setting(nx.complete_graph(5), ALIKE),
    "path": Setting(nx.path_graph(5), UNEQUAL, width=0.3),
    "tree": Setting(TREE, ALIKE, width=0.5),
    "tree, largest degree": Setting(TREE, UNEQUAL, "max_degree", width=0.3),
    "tree, given weights": Setting(WEIGHTED, UNEQUAL, "given", width=0.3),
    "alone": Setting(nx.empty_graph(1), ALIKE[:1]),
    "alone, narrow": Setting(nx.empty_graph(1), ALIKE[:1], width=0.1),
    "ring, normal": Setting(RING, ALIKE, law=fmab.Gaussian(0.4)),
    "star, normal": Setting(nx.star_graph(4), UNEQUAL, width=0.3, law=fmab.Gaussian(0.4)),
}


DEFAULT = ("ring, unequal", "tree", "alone, narrow", "star, normal")


def compare(setting, horizon, seeds, runs, **changes):
    """Returns z of means and p of distribution functions, of regret, rounds and numbers sent."""
    data = setting._replace(**changes).simulate(horizon, seeds, [horizon // 3, horizon])
    played = setting.play_many(horizon, runs)
    each = (twin.Run(*fields) for fields in zip(*played, strict=True))
    regret = np.array([twin.average_over_rounds(run, setting.means)[0] for run in each])
    slow = [regret[:, horizon // 3], regret[:, -1], played.exchanges[:, -1], played.numbers]
    fast = [*data.regret.values.T, data.rounds_made.values, data.numbers_sent.values]
    links = setting.graph.number_of_edges() * data.rounds_made.values
    np.testing.assert_array_equal(data.links.sel(meter="peer")[:, -1], links)
    # The last digits are those of another order of sums.
    pairs = [(x.round(6), y.round(6)) for x, y in zip(fast, slow, strict=True)]
    spread = [np.sqrt(x.var(ddof=1) / seeds + y.var(ddof=1) / runs) for x, y in pairs]
    z = [(x.mean() - y.mean()) / max(s, 1e-9) for (x, y), s in zip(pairs, spread, strict=True)]
    return np.array(z), np.array([scipy.stats.ks_2samp(x, y).pvalue for x, y in pairs])


@pytest.mark.parametrize("name", quick.only([*LAWS], *DEFAULT))
def test_random_rewards_have_the_law_of_the_twin(name):
    """Would catch rewards that are used twice, shared by agents, or of another variance."""
    z, p = compare(LAWS[name], 2000, 2000, 1000)
    assert p.min() > ALPHA and 2 * scipy.stats.norm.sf(abs(z).max()) > ALPHA


def test_the_comparison_sees_another_width():
    """Would catch a comparison too weak to tell the width 0.5 from 0.45."""
    z, p = compare(LAWS["tree"], 2000, 2000, 1000, width=0.45)
    assert p.min() < ALPHA and abs(z).max() > 5


def tabulate(graph, means, horizon, seeds, width):
    """Returns a table of rewards and the fast twin's runs with it."""
    rng = np.random.default_rng(horizon)
    table = (rng.random((horizon + 1, seeds, *means.shape)) < means).astype(float)
    known = graph, lambda number, rows: table[number][rows], seeds, means.shape[1]
    return table, twin.play_many(*known, horizon, width=width)


@pytest.mark.parametrize("graph", [RING, TREE, nx.empty_graph(1)])
def test_both_twins_make_the_same_runs(graph):
    """Would catch a fast twin that is another algorithm, or marks that are not flooded in time."""
    means = UNEQUAL[: len(graph)]
    for horizon, width in ((3, 1.0), (14, 0.1), (300, 0.3), (1500, 1.0)):
        table, many = tabulate(graph, means, horizon, 3, width)
        for seed in range(3):
            rewards = table[:, seed]
            one = twin.play(graph, lambda *at, t=rewards: t[at], 4, horizon, width=width)
            for name in one._fields:
                x, y = getattr(one, name), getattr(many, name)[seed]
                np.testing.assert_allclose(x, y, atol=1e-9, err_msg=name)


def test_estimates_are_the_average_reward_on_average():
    """Would catch a twin with s other than 1 / tau, which favours some rounds."""
    table, many = tabulate(TREE, UNEQUAL, 400, 5, 1.0)
    assert (many.active.sum(1) > 1).all()
    for seed in range(5):
        rounds, arm = many.exchanges[seed, -1] + 1, many.active[seed].argmax()
        mean = table[:rounds, seed, :, arm].mean()
        assert many.estimates[seed, :, arm].mean() == pytest.approx(mean, abs=1e-12)


NAMES = ("regret", "links", "rounds_made", "numbers_sent", "chosen_arm")


@functools.cache
def swept():
    """Returns a sweep over widths and horizons, in which agents differ."""
    axes = {"width": [0.3, 1.0], "horizon": [700, 1500]}
    options = {"seeds": 20, "times": 2, "progress": False, "outputs": ["pulls"]}
    return fmab.sweep(fmab.ces, fmab.Problem(UNEQUAL), graph="ring", **axes, **options)


@pytest.mark.parametrize(("width", "horizon"), [(0.3, 1500), (1.0, 700)])
def test_a_row_is_the_same_alone_and_in_a_sweep(width, horizon):
    """Would catch rewards or marks that depend on configurations or seeds beside."""
    row, options = swept().sel(width=width, horizon=horizon), {"times": 2, "outputs": ["pulls"]}
    known = fmab.ces("ring", width=width), fmab.Problem(UNEQUAL), horizon
    alone, few = (fmab.simulate(*known, seeds, **options) for seeds in (20, 10))
    for name in (*NAMES, "pulls"):
        np.testing.assert_array_equal(alone[name], row[name], name)
        np.testing.assert_array_equal(few[name], alone[name][:10], name)


def test_regret_is_pulls_times_gaps():
    """Would catch regret of arms that no agent pulls, and a decision for an arm that has left."""
    data, gaps = swept(), UNEQUAL.mean(0).max() - UNEQUAL.mean(0)
    pulls = data.pulls.transpose("width", "horizon", "seed", "arm").values
    regret = data.regret.transpose("width", "horizon", "seed", "time").values
    np.testing.assert_allclose(pulls @ gaps, regret[..., -1], rtol=1e-9)
    np.testing.assert_allclose(pulls.sum(-1), np.tile([[[3500], [7500]]], (2, 1, 20)))
    is_single, is_decided = data.active_arms == 1, data.chosen_arm >= 0
    assert (data.active_arms >= 1).all() and (is_single == is_decided).all()
    assert 0 < is_single.sum() < is_single.size


def test_rows_of_padding_change_no_bit():
    """Would catch padding that is heard, mixed, marks arms or counts in Q."""
    options = {"seeds": 8, "times": 2, "horizon": 900}
    drawn = {"arms": 4}
    data = fmab.sweep(
        fmab.ces, agents=[5, 8], graph="ring", width=0.1, progress=False, **drawn, **options
    )
    problem = fmab.Problem(agents=5, **drawn)
    alone = fmab.simulate(fmab.ces("ring", width=0.1), problem, **options)
    for name in NAMES:
        np.testing.assert_array_equal(alone[name], data[name].sel(agents=5), name)


@dataclass(frozen=True)
class ReadsWeights(fmab.ces):
    """CES whose code is not the package's."""

    name = "reads_weights"


def test_weights_of_edges_are_part_of_the_identity_only_if_they_are_read():
    """Would catch a study that runs anew for weights nobody reads, or not for others."""
    graphs = TREE, WEIGHTED, weigh(TREE, [0.1, 0.2, 0.3, 0.4])
    fields = {"agents": 5, "arms": 2, "horizon": 9, "seeds": 2}

    def count_hashes(*graphs, **options):
        return len({fmab.Study(fmab.ces(x, **options), **fields).hash for x in graphs})

    assert count_hashes(*graphs) == count_hashes(*graphs, weights="max_degree") == 1
    assert count_hashes(*graphs[1:], weights="given") == 2
    assert count_hashes(TREE, nx.path_graph(5)) == 2
    swept = fmab.Study(fmab.ces, graph=WEIGHTED, weights=["metropolis", "given"], **fields)
    assert len({point.hash for point in swept.points}) == 2
    # A class of a user may read them at any option.
    assert len({fmab.Study(ReadsWeights(x), **fields).hash for x in graphs}) == 3


def test_graphs_and_weights_that_do_not_average_are_refused():
    """Would catch estimates that never agree, grow, or drift from the average of rewards."""
    pieces = nx.Graph([(0, 1), (2, 3)])
    refuses("^graph=.*connected", fmab.ces, pieces)
    for width in (0, -1.0, float("nan")):
        refuses("^width=", fmab.ces, "ring", width=width)
    refuses("^weights='metropolitan'", fmab.ces, "ring", weights="metropolitan")
    for weights in ([0.6, 0.6, 0.1, 0.1], [0.3, -0.1, 0.3, 0.3], [0.3, float("nan"), 0.3, 0.3]):
        refuses("^weights=", Setting(weigh(TREE, weights), UNEQUAL, "given").simulate, 50, 1, [50])
    refuses("^weights='given'.*metropolis", Setting(TREE, UNEQUAL, "given").simulate, 50, 1, [50])
    # Neighbours swap their estimates for ever.
    swap = Setting(weigh(nx.cycle_graph(4), [0.5] * 4), UNEQUAL[:4], "given")
    refuses("^weights=", swap.simulate, 50, 1, [50])
