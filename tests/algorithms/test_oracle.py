"""The two oracles of this suite against hand computation and against each other."""

import networkx as nx
import numpy as np
import oracle
import pytest
import reference
from scipy.stats import binom, binomtest, chisquare, kstest

# Rewards are certain: no randomness is left without noise. Global means .8, 1, 0; agent 4 alone
# sees that arm 0 is worse than arm 1. With T = 1000: S_1 = ceil(32 log(24000) / 5) = 65 and
# 2 C(1) = .2491 leaves arm 0 in, S_2 = ceil(128 log(64000) / 5) = 284 and 2 C(2) = .1248 does not.
CERTAIN = np.array([[1.0, 1.0, 0.0]] * 4 + [[0.0, 1.0, 0.0]])


def _certain(horizon, exchange, epsilon=None):
    rng = np.random.default_rng(1)
    return reference.run(rng, CERTAIN, horizon, epsilon, exchange=exchange)


def test_server_by_hand():
    """Catches a wrong S(r), C(r), n_r for S_r, gap, epoch length or link count in the reference."""
    result = _certain(1000, reference.server(5))
    assert result.knots.tolist() == [0, 195, 633, 1000]
    assert result.regret == pytest.approx([0, 390, 609, 609])
    assert not result.waiting_regret.any()
    assert [h.active for h in result.history] == [(0, 1, 2), (0, 1)]
    assert [(h.pulls_so_far, h.pulls) for h in result.history] == [(65, 65), (284, 219)]
    assert [2 * h.radius for h in result.history] == pytest.approx([0.249132, 0.124847], abs=1e-6)
    assert result.history[0].aggregate == pytest.approx((0.8, 1, 0))
    assert (result.rounds, result.link_slots, result.server_links) == (2, (195, 633), 10)
    assert (result.peer_links_bound, result.peer_links_used) == (0, 0)
    assert (result.active, result.chosen, result.best_arm_lost) == ((1,), 1, False)
    assert result.pulls.tolist() == [[284, 651, 65]] * 5


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_star_wait_by_hand(epsilon):
    """Catches a delay off by one, and a local best that is noised, global, or breaks ties upwards.

    One waiting slot per round; agents 0-3 tie and take arm 0 (gap .2), agent 4 takes arm 1.
    """
    result = _certain(1000, reference.flooding(nx.star_graph(4)), epsilon)
    assert result.knots.tolist() == [0, 195, 196, 634, 635, 1000]
    assert result.regret == pytest.approx([0, 390, 390.8, 609.8, 610.6, 610.6])
    assert result.waiting_regret == pytest.approx([0, 0, 0.8, 0.8, 1.6, 1.6])
    assert (result.rounds, result.link_slots, result.server_links) == (2, (196, 635), 0)
    assert (result.peer_links_bound, result.peer_links_used) == (16, 16)
    assert result.pulls.tolist() == [[286, 649, 65]] * 4 + [[284, 651, 65]]


def test_sinks_by_hand():
    """Catches a wrong sink, wait, meter or weight: a path of 4 agents and an agent by itself."""
    parts = [nx.path_graph(4), nx.empty_graph(1)]
    result = _certain(1000, reference.sinks(parts))
    assert result.knots.tolist() == [0, 195, 196, 634, 635, 1000]
    assert result.regret == pytest.approx([0, 390, 390.8, 609.8, 610.6, 610.6])
    assert result.server_links == 2 * 2
    assert (result.peer_links_bound, result.peer_links_used) == (2 * 3, 2 * 4)
    # Components of equal weight see arm 0 at .5, and drop it in the first round.
    result = _certain(1000, reference.sinks(parts, weights="components"))
    assert result.history[0].aggregate == pytest.approx((0.5, 1, 0))
    assert result.knots.tolist() == [0, 195, 196, 1000]
    assert result.regret == pytest.approx([0, 390, 390.8, 390.8])


def test_end_of_horizon_by_hand():
    """Catches an off-by-one at T: epoch 1 takes 159 slots for each of these horizons."""
    star, path = reference.flooding(nx.star_graph(4)), reference.flooding(nx.path_graph(5))
    # It does not fit: round robin, linear regret, nothing sent.
    result = _certain(158, reference.server(5))
    assert (result.rounds, result.server_links, result.chosen) == (0, 0, -1)
    assert result.knots.tolist() == [0, 158]
    assert result.regret == pytest.approx([0, 158 * 5 * 1.2 / 3])
    assert result.pulls.tolist() == [[53, 53, 52]] * 5
    # It ends exactly at T: the server hears, the star has no slot left to wait.
    result = _certain(159, reference.server(5))
    assert (result.rounds, result.link_slots, result.active) == (1, (159,), (0, 1))
    result = _certain(159, star)
    assert (result.rounds, result.peer_links_bound, result.active) == (0, 0, (0, 1, 2))
    # The wait ends exactly at T: completed. Two of a path's three slots: not completed.
    result = _certain(160, star)
    assert (result.rounds, result.link_slots, result.peer_links_used) == (1, (160,), 8)
    result = _certain(161, path)
    assert (result.rounds, result.peer_links_bound, result.active) == (0, 0, (0, 1, 2))
    assert result.knots.tolist() == [0, 159, 161]
    assert result.waiting_regret == pytest.approx([0, 0, 1.6])
    assert result.pulls.sum(axis=1).tolist() == [161] * 5


def test_round_budget_by_hand():
    """Catches a wrong ratio, default gap, smallest step of S, or choice after the last round."""
    rng = np.random.default_rng(1)
    means = np.array([[1.0, 1.0]] * 9 + [[0.0, 1.0]])  # gap .1
    ten = reference.server(10)
    result = reference.run(rng, means, 1000, None, exchange=ten, rounds=1, schedule_gap=0.5)
    assert result.knots.tolist() == [0, 62, 1000]
    assert result.regret == pytest.approx([0, 31, 31])
    assert (result.rounds, result.active, result.chosen) == (1, (0, 1), 1)
    result = reference.run(rng, means, 2000, None, exchange=ten, rounds=2)
    assert result.knots.tolist() == [0, 166, 1882, 2000]
    assert result.regret == pytest.approx([0, 83, 941, 941])
    assert (result.rounds, result.active, result.chosen) == (2, (1,), 1)
    # All arms tie: the gap is taken as 1, S grows by one at least, ties go to arm 0.
    fifty = reference.server(50)
    result = reference.run(rng, np.ones((50, 2)), 1000, None, exchange=fifty, rounds=3)
    assert [h.pulls_so_far for h in result.history] == [2, 3, 4]
    assert (result.active, result.chosen, result.regret[-1]) == ((0, 1), 0, 0)


def test_single_by_hand():
    """Catches local instead of global gaps, pooled data, or the wrong sum over lone agents."""
    means = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # global 2/3, 1/3
    result = reference.single(np.random.default_rng(1), means, 1000, None)
    assert result.knots.tolist() == [0, 620, 1000]  # S_1 = ceil(32 log(16000)) = 310
    assert result.regret == pytest.approx([0, 310, 310 + 380 / 3])
    assert [one.chosen for one in result.alone] == [0, 0, 1]
    assert [one.best_arm_lost for one in result.alone] == [False, False, True]
    assert result.pulls.tolist() == [[690, 310], [690, 310], [310, 690]]


def test_one_arm_is_played_from_the_start():
    """Catches an elimination loop that explores, or communicates, with nothing to eliminate."""
    rng = np.random.default_rng(1)
    result = reference.run(rng, np.full((3, 1), 0.4), 50, 1.0, exchange=reference.server(3))
    assert (result.rounds, result.server_links, result.chosen) == (0, 0, 0)
    assert result.knots.tolist() == [0, 50]
    assert result.regret.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("graph", "wait", "bound", "used"),
    [
        (nx.star_graph(49), 1, 98, 98),
        (nx.cycle_graph(50), 24, 1250, 1249),
        (nx.complete_graph(50), 0, 1225, 1225),
        (nx.path_graph(4), 2, 9, 8),  # 3 + 3 + 2 edges
        (nx.cycle_graph(4), 1, 8, 7),  # 4 + 3: nodes 0 and 1 ask each other
        (nx.Graph([(0, 1), (1, 3), (1, 4), (2, 3), (2, 4)]), 2, 15, 11),  # 5 + 4 + 2, not 5 + 5 + 2
        (nx.empty_graph(1), 0, 0, 0),
    ],
)
def test_flood_meters(graph, wait, bound, used):
    """Catches repeated requests, links counted per direction, and a wrong choice of advertiser."""
    found = reference.flooding(graph)
    assert (found.wait, found.peer_links_bound, found.peer_links_used) == (wait, bound, used)


def test_participation_is_drawn_anew():
    """Catches a fixed reporting agent, and ceil(p M) one too high from float products."""
    found = [reference.server(100, p).reporting for p in (0.07, 0.14, 0.28, 0.55, 0.071)]
    assert found == [7, 14, 28, 55, 8]
    # Each agent is sure of its own arm, one of the two is heard: it decides.
    rng = np.random.default_rng(2)
    half = reference.server(2, 0.5)
    chosen = [reference.run(rng, np.eye(2), 1000, None, exchange=half).chosen for _ in range(2000)]
    assert set(chosen) == {0, 1}
    assert binomtest(sum(chosen), 2000).pvalue > 1e-6


@pytest.mark.parametrize("cell", [oracle.CELLS[i] for i in (1, 3, 8, 11)], ids=str)
def test_reference_follows_exact_law(cell):
    """Catches a wrong noise scale, a lost history, or `>` on the wrong side in either oracle.

    6000 runs; detects a change of .03 in the probability that an epoch ends the exploration.
    """
    rng = np.random.default_rng(3)
    means = np.tile(cell.means, (cell.agents, 1))
    everyone = reference.server(cell.agents)
    ends = np.zeros(3)
    for _ in range(6000):
        result = reference.run(rng, means, cell.horizon, cell.epsilon, exchange=everyone)
        ends[min(result.rounds, 3) - 1 if result.chosen >= 0 else 2] += 1
        assert not result.best_arm_lost  # below 1e-6 per run in every cell
    stops = [stop for stop, _ in oracle.elimination_probabilities(*cell)]
    expected = 6000 * np.array([*stops, 1 - sum(stops)])
    likely = expected >= 5
    # Outcomes too rare for chi-square are compared as one.
    if (~likely).any():
        rare = int(ends[~likely].sum())
        chance = float(np.clip(expected[~likely].sum() / 6000, 0, 1))
        assert binomtest(rare, 6000, chance, alternative="greater").pvalue > 1e-6
    if likely.sum() > 1:
        share = expected[likely] * ends[likely].sum() / expected[likely].sum()
        assert chisquare(ends[likely], share).pvalue > 1e-6


def test_reference_noise_law():
    """Catches noise that is scaled by S_r for n_r or by M twice, reused over epochs, or forgotten.

    Rewards are certain, so 25 (S_r y_r - successes) is a sum of 5 r Laplace(1). Detects a scale
    that is off by an eighth.
    """
    rng = np.random.default_rng(4)
    everyone = reference.server(5)
    runs = [reference.run(rng, CERTAIN, 1000, 1.0, exchange=everyone) for _ in range(5000)]
    for r, successes in ((1, [0.8 * 65, 65, 0]), (2, [0.8 * 284, 284])):
        rounds = [result.history[r - 1] for result in runs]
        noise = [25 * (np.array(h.aggregate) * h.pulls_so_far - successes) for h in rounds]
        tail = oracle._laplace_sum(5 * r, 1.0)[1]
        assert kstest(np.ravel(noise), lambda x, tail=tail: 1 - tail(x)).pvalue > 1e-6


def test_exact_law_is_accurate():
    """Catches a quadrature too coarse for 1e-9, and cells in which nothing can be seen."""
    for cell in oracle.CELLS:
        coarse = np.array(oracle.elimination_probabilities(*cell, nodes=4))
        fine = np.array(oracle.elimination_probabilities(*cell))
        assert np.abs(coarse - fine).max() < 1e-9
        assert any(0.001 < stop < 0.999 for stop, _ in fine)
        assert np.all(fine[:, 1] <= fine[:, 0])


@pytest.mark.parametrize("count", [2, 4, 10])
def test_sum_of_laplaces(count):
    """Catches a wrong mixture weight: density against the characteristic function, tail by sum."""
    density, tail = oracle._laplace_sum(count, 0.7)
    x = np.linspace(-80, 80, 160_001)
    step = x[1] - x[0]
    for t in (0.0, 0.3, 1.0, 2.5):
        transform = float(density(x) @ np.cos(t * x)) * step
        assert transform == pytest.approx((1 + (0.7 * t) ** 2) ** -count, abs=1e-9)
    beyond = np.cumsum(density(x)[::-1])[::-1] * step - density(x) * step / 2
    assert np.abs(beyond - tail(x)).max() < 1e-6


def test_exact_law_of_one_epoch_by_hand():
    """Catches best and worst arm swapped, a wrong threshold, an epoch counted that does not fit.

    One agent, T = 1000, no noise: S_1 = ceil(32 log(16000)) = 310 pulls per arm, and an arm goes
    where the totals differ by 2 C(1) 310 = sqrt(620 log(16000)) = 77.47; epoch 2 needs 2834 slots.
    """
    assert oracle.elimination_probabilities((1.0, 0.0), 1, 1000, None) == [(1, 0), (0, 0)]
    assert oracle.elimination_probabilities((1.0, 0.0), 1, 580, None) == [(0, 0), (0, 0)]
    # 310 - Binomial(310, .76) >= 77.47
    (stop, lost), second = oracle.elimination_probabilities((0.76, 1.0), 1, 1000, None)
    assert stop == pytest.approx(binom.cdf(232, 310, 0.76), rel=1e-9)
    assert (lost, second) == (0, (0, 0))
    # The worse arm leads by 78 or more.
    wins = np.arange(311)
    lead = binom.pmf(wins, 310, 0.55) @ binom.sf(wins + 77, 310, 0.45)
    lost = oracle.elimination_probabilities((0.55, 0.45), 1, 1000, None, 1)[0][1]
    assert lost == pytest.approx(lead, rel=1e-3)
