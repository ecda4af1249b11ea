"""Bounds of CES: the printed formula by hand, the sharper form by brute force, and runs below."""

import math

import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.analysis import consensus

GAPS = [0.0, 0.05, 0.3, 0.4]
# Q / (1 - l) by hand: a ring of five has l = (1 + 2 cos 72 deg) / 3; a star of five mixes by 1/5,
# so that l = 4/5, and its degrees differ.
RING, STAR = 1.0 / (1.0 - (1.0 + 2.0 * math.cos(2.0 * math.pi / 5.0)) / 3.0), 5.0 * math.sqrt(5.0)
CASES = {"complete": (1.0, 1, 10), "ring": (RING, 2, 5), "star": (STAR, 2, 4)}


@pytest.mark.parametrize("graph", CASES)
def test_the_printed_bound_is_the_formula(graph):
    """Catches another constant, another Q or eigenvalue, and a delay of another diameter."""
    drift, diameter, edges = CASES[graph]
    worse, log = np.array(GAPS[1:]), math.log(10**6)
    each = 16 * log / (5 * worse) + (diameter + 1) * worse + 8 * drift
    found = consensus.closed_form(GAPS, fmab.ces(graph), 5, 10**6)
    assert found.regret == pytest.approx(5 * (each.sum() + 1))
    rounds = 16 * log / (5 * 0.05**2) + 8 * drift / 0.05 + diameter
    assert found.rounds == pytest.approx(rounds)
    assert found.links == {"peer": pytest.approx(edges * rounds)}


@pytest.mark.parametrize("graph", CASES)
def test_round_by_round_an_arm_leaves_as_soon_as_its_gap_is_four_radii(graph):
    """Catches a round too many or too few, by going through all of them."""
    drift, diameter, _ = CASES[graph]
    spread = math.sqrt(math.log(10**6) / 5)
    tau = np.arange(2, 10**5)
    width = spread / np.sqrt(tau) + drift / (tau + 1)
    pulls = [int(tau[np.argmax(4 * width <= gap)]) for gap in GAPS[1:]]
    found = consensus.bounds(GAPS, fmab.ces(graph), 5, 10**6)
    exploration = sum(gap * n for gap, n in zip(GAPS[1:], pulls, strict=True))
    assert found.regret_exploration == pytest.approx(5 * exploration)
    assert found.regret_waiting == pytest.approx(5 * diameter * sum(GAPS))
    assert found.rounds == max(pulls) - 1 + diameter
    assert found.regret <= consensus.closed_form(GAPS, fmab.ces(graph), 5, 10**6).regret


@pytest.mark.parametrize("bound", [consensus.bounds, consensus.closed_form])
def test_bounds_end_at_what_can_happen(bound):
    """Catches more regret than T slots of the worst arm, and more rounds than T has room for."""
    found = bound([0.0, 0.001], fmab.ces("star"), 5, 1000)
    assert found.regret == pytest.approx(5 * 1000 * 0.001)
    assert found.rounds == (1000 - 2) // 2
    # Two best arms are never told apart.
    assert bound([0.0, 0.0, 0.9], fmab.ces(), 5, 10**4).rounds == (10**4 - 3) // 2
    assert bound([0.0], fmab.ces(), 5, 10**4)[:5] == (0.0,) * 5


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("graph", CASES)
def test_runs_lose_less_than_the_bounds_say(graph, spread):
    """Catches a radius, delay or number of links in runs that is not that of the bounds."""
    problem = fmab.Problem([0.9, 0.6, 0.3], agents=5)
    if spread:
        shift = np.array([[-0.1], [-0.05], [0.0], [0.05], [0.1]])
        problem = fmab.Problem(np.array([0.9, 0.6, 0.3]) + shift * [1, -1, 1])
    data = fmab.simulate(fmab.ces(graph), problem, 10**4, 50, times=1)
    found = consensus.bounds([0.0, 0.3, 0.6], fmab.ces(graph), 5, 10**4)
    assert float(data.regret[:, -1].mean()) < found.regret
    assert int(data.rounds_made.max()) <= found.rounds
    assert int(data.links.sel(meter="peer").max()) <= found.links["peer"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GAPS, fmab.ces(width=2.0), 5, 10**4), "width=2.0: must be 1 for the theorem"),
        (([0.1, 0.2], fmab.ces(), 5, 10**4), "gaps=[0.1, 0.2]: must be in [0, 1]"),
        ((GAPS, fmab.ces(), 5, 1), "horizon=1: must be "),
    ],
)
def test_what_no_bound_is_about_is_refused(arguments, words):
    """Catches numbers without a theorem."""
    for bound in (consensus.bounds, consensus.closed_form):
        with pytest.raises(ValueError) as caught:
            bound(*arguments)
        assert str(caught.value).startswith(words)


def test_a_gap_of_almost_nothing_has_bounds():
    """Catches a search that never ends, where halves of a number are no longer told apart."""
    for gap in (1e-7, 1e-8, 1e-11):
        found = consensus.bounds([0.0, gap], fmab.ces("ring"), 5, 10**12)
        assert found.regret == pytest.approx(5 * 10**12 * gap)
    with pytest.raises(ValueError, match="algorithm="):
        consensus.bounds(GAPS, fmab.cdp_mab(1.0), 5, 10**4)
