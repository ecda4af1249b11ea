"""`numbers_sent` against counts made by hand, where rewards never vary."""

import math

import numpy as np
import pytest
import quick

import fmab_jax as fmab

AGENTS = 5
HORIZON = 20_000
LEVELS = [0, 10, 40, 80, 95, 100]
MEANS = [0.8, 1.0, 0.1, 0.95, 0.4]
# Every pull of an arm gives its mean, so without noise an epoch's outcome is known beforehand.
CERTAIN = fmab.Problem.ratings(LEVELS, [[np.eye(6)[LEVELS.index(100 * m)] for m in MEANS]] * AGENTS)


def arms_of_rounds(horizon, reporting, wait):
    """Returns the arms that each completed round began with (Algorithm 1, lines 3-17)."""
    gaps = [max(MEANS) - mean for mean in MEANS]
    pulls, slot, result = 0, 0, []
    while len(gaps) > 1:
        r, a = len(result) + 1, len(gaps)
        log = math.log(8 * a * r**2 * horizon)
        total = max(math.ceil(8 * log / (reporting * 0.25**r)), pulls + 1)
        slot += a * (total - pulls) + wait
        if slot > horizon:
            break
        result.append(a)
        radius = math.sqrt(log / (2 * reporting * total))
        pulls, gaps = total, [gap for gap in gaps if gap < 2 * radius]
    return result


# An algorithm, N, its wait, and the vectors of a round: uploads, M (M - 1) arrivals, or Q uploads
# and the hops to the sinks of a path of 3 and a pair.
ELIMINATIONS = {
    "cdp": (fmab.cdp_mab(None), 5, 0, 5),
    "cdp, p = 0.4": (fmab.cdp_mab(None, participation=0.4), 2, 0, 2),
    "cdp, agent by agent": (fmab.cdp_mab(None), 5, 0, 5),
    "ddp, ring": (fmab.ddp_mab(None, "ring"), 5, 1, 20),
    "hdp": (fmab.hdp_mab(None, "3:path+2:complete"), 5, 0, 2 + 2 + 1),
    "single": (fmab.single_mab(None), 1, 0, 0),
}


@pytest.mark.parametrize("name", quick.only(ELIMINATIONS, "cdp, p = 0.4"))
def test_eliminations_send_a_number_for_each_arm_that_a_round_begins_with(name):
    """Would catch the arms that a round leaves, a round cut at the horizon or agents not heard
    being counted, and numbers where nobody is heard."""
    algorithm, reporting, wait, vectors = ELIMINATIONS[name]
    by_hand = arms_of_rounds(HORIZON, reporting, wait)
    assert by_hand[:3] == [5, 3, 2] or reporting == 1
    apart = name.endswith("by agent")
    data = fmab.simulate(algorithm, CERTAIN, HORIZON, 3, times=5, sum_agents=not apart)
    assert data.rounds_made.values.tolist() == [len(by_hand)] * 3
    assert data.numbers_sent.values.tolist() == [sum(by_hand) * vectors] * 3
    assert data.numbers_sent.dtype == np.int64 and data.numbers_sent.dims == ("seed",)
    # Whoever is alone has rounds, but tells nobody.
    assert by_hand and (data.numbers_sent.values > 0).all() == (vectors > 0)


# Of 3 agents, 4 arms and 59 slots: rounds, and numbers of one by hand.
INDEX = {
    # Means and counts of 4 arms, both ways on 3 edges, after the first 4 slots.
    "dec_ucb": (fmab.dec_ucb(), 55, 2 * 2 * 3 * 4),
    # An arm for each agent, at slots 1, 8 and 27.
    "gosine": (fmab.gosine(), 3, 3),
    "ucb1": (fmab.ucb1(pooled=True), 59, 3),
}


@pytest.mark.parametrize("name", quick.only(INDEX, "gosine", "dec_ucb"))
def test_numbers_of_index_policies_are_those_of_their_exchange(name):
    """Would catch single numbers taken for vectors, rounds that are not multiplied by K, or a
    policy whose numbers are not those that its exchange says."""
    algorithm, rounds, numbers = INDEX[name]
    data = fmab.simulate(algorithm, fmab.Problem.uniform(3, 4), 59, 4, times=3)
    assert data.rounds_made.values.tolist() == [rounds] * 4
    assert data.numbers_sent.values.tolist() == [rounds * numbers] * 4
