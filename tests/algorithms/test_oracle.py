"""The two oracles of this suite against hand computation and against each other."""

import networkx as nx
import numpy as np
import oracle
import pytest
import reference
from scipy.stats import binom

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


def test_single_by_hand():
    """Catches local instead of global gaps, pooled data, or the wrong sum over lone agents."""
    means = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # global 2/3, 1/3
    result = reference.single(np.random.default_rng(1), means, 1000, None)
    assert result.knots.tolist() == [0, 620, 1000]  # S_1 = ceil(32 log(16000)) = 310
    assert result.regret == pytest.approx([0, 310, 310 + 380 / 3])
    assert [one.chosen for one in result.alone] == [0, 0, 1]
    assert [one.best_arm_lost for one in result.alone] == [False, False, True]
    assert result.pulls.tolist() == [[690, 310], [690, 310], [310, 690]]


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
