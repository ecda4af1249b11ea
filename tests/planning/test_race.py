"""The race: who wins, which seeds it takes, and that it is not misled."""

import math

import numpy as np
import pytest
from scipy import stats

from fmab_jax.planning.race import (
    LINKS,
    LOOKS,
    LUCK,
    RACE,
    RARE,
    Goal,
    Sample,
    _Bounds,
    _find_within,
    bound_mean,
    bound_share,
    find_threshold,
    race,
)


def play(sampler, count, goal, over=None, **options):
    """Races candidates whose regrets a function of candidate and seeds draws."""

    def observe(group, seeds):
        none = np.zeros(seeds, bool)
        return [
            Sample(sampler(i)[:seeds], none if over is None else over(i)[:seeds]) for i in group
        ]

    return race(count, observe, goal, **options)


def gamma(means, seed, most=2**16):
    """Returns a sampler of skewed regrets that share half of their randomness."""
    common = np.random.default_rng((seed, 0)).gamma(4.0, 0.25, most)

    def draw(i):
        own = np.random.default_rng((seed, 1, i)).gamma(4.0, 0.25, most)
        return means[i] * (0.5 * common + 0.5 * own)

    return draw


GOAL = Goal(within=0.05, confidence=0.95, worst=500.0, first=200, most=2**16)


def test_the_best_wins_with_few_seeds_of_the_others():
    """Would catch uniform allocation, and a winner that is not the best."""
    means = [100.0, 130.0, 160.0, 300.0, 1000.0]
    verdict = play(gamma(means, 1), 5, GOAL._replace(worst=5000.0))
    assert verdict.holds and verdict.winner == 0
    assert verdict.survivors == (0,)
    assert max(verdict.seeds[3:]) <= 800 and verdict.seeds[0] > 1000


def test_a_tie_ends_the_race():
    """Would catch a race that goes on until it tells equal candidates apart."""
    verdict = play(gamma([100.0, 100.0, 101.0], 2), 3, GOAL)
    assert verdict.holds and verdict.within <= 0.05
    assert set(verdict.survivors) == {0, 1, 2}


@pytest.mark.parametrize("strict", [False, True])
def test_a_confidence_near_1_is_reached(strict):
    """Would catch a chance of error that is lost beside 1: bounds are infinite, or NaN."""
    goal = GOAL._replace(confidence=math.nextafter(1, 0), strict=strict)
    verdict = play(gamma([100.0, 200.0], 3), 2, goal)
    assert verdict.holds and verdict.winner == 0
    equal = play(lambda i: np.full(2**16, 7.0), 2, goal._replace(worst=7.0))
    assert equal.holds and equal.within <= 0.05


def test_rare_losses_that_no_seed_shows_keep_a_rival_alive():
    """Would catch a rival that is out although losses of the leader may still cost more."""
    few = GOAL._replace(worst=500_000.0, most=400)
    verdict = play(gamma([100.0, 130.0], 1), 2, few)
    assert not verdict.holds and verdict.winner == 0 and verdict.survivors == (0, 1)
    verdict = play(gamma([100.0, 130.0], 1), 2, few._replace(worst=500.0, most=2**16))
    assert verdict.survivors == (0,)


def test_the_share_of_right_answers_is_as_stated():
    """Would catch bounds without a correction for looks and pairs: 19 candidates 7 % worse."""
    means = [100.0, *np.full(19, 107.0)]
    wins = 0
    for seed in range(100):
        verdict = play(gamma(means, 10 + seed, 2**14), 20, GOAL._replace(most=2**14))
        wins += verdict.winner == 0 if verdict.holds else 1
    assert stats.binomtest(wins, 100, 0.95, alternative="less").pvalue > 1e-6
    assert wins >= 95


def test_a_rare_catastrophe_is_paid_for():
    """Would catch a winner whose catastrophes no seed of the race has shown."""

    def draw(i):
        regret = gamma([100.0, 120.0], 3)(i)
        # The first loses 20,000 in one run of 500: its mean is 140.
        rare = np.random.default_rng(4).random(len(regret)) < (0.002 if i == 0 else 0.0)
        return np.where(rare, 20_000.0, regret)

    few = GOAL._replace(worst=20_000.0, most=400)
    verdict = play(draw, 2, few)
    assert not verdict.holds and verdict.missing > 0
    verdict = play(draw, 2, few._replace(within=0.1, most=2**16))
    assert verdict.winner == 1 and verdict.within < 0.1


def test_rare_losses_of_a_seed_in_a_hundred_mislead_nobody():
    """Would catch a threshold at the largest loss: one in 60 loses 1,000 or 3,000, mean 25."""
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng((20, seed))
        losses = rng.choice([1.0, 1001.0, 3001.0], 2**13, p=[0.984, 0.012, 0.004])
        draws = [losses, np.full(2**13, 23.79)]
        goal = GOAL._replace(worst=3001.0, most=2**13)
        verdict = play(lambda i, draws=draws: draws[i], 2, goal)
        wrong += verdict.holds and verdict.winner == 0
    assert wrong == 0


def test_a_bound_of_a_mean_is_that_of_chernoff():
    """Would catch a divergence whose arguments are swapped: of no events it is 1 - error^(1/n)."""
    assert bound_mean(0.0, 50, 0.01) == pytest.approx(1.0 - 0.01 ** (1 / 50), abs=1e-12)
    assert bound_mean(0.5, 0, 0.01) == 1.0 and bound_mean(1.0, 9, 0.01) == 1.0
    high = bound_mean(0.3, 200, 0.01)
    kl = 0.3 * math.log(0.3 / high) + 0.7 * math.log(0.7 / (1 - high))
    assert high > 0.3 and 200 * kl == pytest.approx(-math.log(0.01), rel=1e-9)


def test_budgets_are_kept_by_the_winner():
    """Would catch a winner that exceeds a budget, and a chance budget that nothing shows."""

    def over(i):
        return np.random.default_rng(5).random(2**16) < (1.0, 0.002, 0.0)[i]

    verdict = play(gamma([50.0, 100.0, 200.0], 6), 3, GOAL, over, is_sure=[False, False, True])
    assert verdict.infeasible == (0,) and verdict.seeds[0] == 8
    assert verdict.holds and verdict.winner == 1
    # With 200 seeds nothing shows that the second keeps the budget.
    verdict = play(
        gamma([50.0, 100.0, 200.0], 6),
        3,
        GOAL._replace(most=200),
        over,
        is_sure=[False, False, True],
    )
    assert not verdict.holds and math.isinf(verdict.within) and not verdict.keeps


def test_no_candidate_within_the_budgets_has_no_winner():
    """Would catch a winner although all exceed the budget."""
    verdict = play(
        gamma([50.0, 100.0], 7), 2, GOAL, lambda i: np.ones(2**16, bool), is_sure=[False, False]
    )
    assert verdict.winner == -1 and verdict.infeasible == (0, 1)


def test_strict_bounds_take_more_seeds():
    """Would catch a strict race that uses the normal quantile."""
    means = [100.0, 130.0]
    plain, strict = (
        play(gamma(means, 8), 2, GOAL._replace(strict=strict)) for strict in (False, True)
    )
    assert plain.holds and strict.holds and plain.winner == strict.winner == 0
    assert sum(strict.seeds) >= sum(plain.seeds)


def test_rare_luck_of_another_is_not_overlooked():
    """Would catch a race at an x of 0.5 % that ends before 1 run in 100 without regret is seen."""

    def draw(i):
        regret = np.full(2**13, (99.9, 100.0)[i])
        # The second has a mean of 99, but nothing shows it in its first 300 seeds.
        regret[300::100] = 0.0 if i else 99.9
        return regret

    verdict = play(draw, 2, GOAL._replace(within=0.005, worst=100.0, most=200))
    assert not verdict.holds and 0.01 < verdict.within < 0.1
    verdict = play(draw, 2, GOAL._replace(within=0.005, worst=100.0, most=2**13))
    assert not verdict.holds or verdict.winner == 1


def test_strict_races_count_rare_losses_of_the_others():
    """Would catch a strict race that goes on because another looks better without its losses."""

    def draw(i):
        regret = gamma([100.0, 120.0], 3)(i)
        rare = np.random.default_rng(4).random(len(regret)) < (0.01 if i == 0 else 0.0)
        return np.where(rare, 20_000.0, regret)

    goal = GOAL._replace(worst=20_000.0, most=2**16, strict=True)
    verdict = play(draw, 2, goal)
    assert verdict.holds and verdict.winner == 1


def test_the_x_of_now_is_the_largest_of_all_pairs():
    """Would catch a search that ends at the first pair."""
    means = [100.0, 103.0, 104.0, 130.0]
    bounds = _Bounds(
        GOAL, [Sample(gamma(means, 12)(i)[:200], np.zeros(200, bool)) for i in range(4)],
        [True] * 4, np.full(4, 500.0),
    )  # fmt: skip
    pairs = [bounds._compare(0, j) for j in (1, 2, 3)]
    for order in (pairs, pairs[::-1]):
        largest = max(pair.find_within(3.0) for pair in order)
        assert _find_within(order, 3.0) == largest
    assert len({pair.find_within(3.0) for pair in pairs}) == 3


def margin_of(regrets, seeds, goal, x):
    """Returns by how much the first is within x of the second, from the words of docs/plan.md."""
    error = 1.0 - goal.confidence
    first = goal.first if goal.strict else 0
    limits = [find_threshold(r[: goal.first], goal.worst) for r in regrets]
    shared = min(seeds)

    def bound_excess(i, error, sign):
        """Returns an upper (1) or lower (-1) bound of the mean regret beyond the threshold."""
        later = regrets[i][goal.first : seeds[i]]
        share = np.maximum(later - limits[i], 0.0).mean() / (goal.worst - limits[i])
        high = bound_mean(share if sign > 0 else 1.0 - share, len(later), error)
        return (goal.worst - limits[i]) * (high if sign > 0 else 1.0 - high)

    leader = np.minimum(regrets[0], limits[0])[first:shared]
    other = regrets[1][:shared]
    if goal.strict:
        other, luck = np.minimum(other, limits[1])[first:], 0.0
        luck = -bound_excess(1, LUCK * error / (2 * LOOKS), -1)
    else:
        luck = other.min() * (1.0 - (LUCK * error / (2 * LOOKS)) ** (1.0 / shared))
    differences, pair_error = leader - (1.0 + x) * other, RACE * error / (2 * 2 * LOOKS)
    n, variance = len(differences), differences.var(ddof=1)
    if goal.strict:
        spread, log = limits[0] + (1.0 + x) * limits[1], math.log(2.0 / pair_error)
        width = math.sqrt(2.0 * variance * log / n) + 7.0 * spread * log / (3.0 * (n - 1))
    else:
        width = stats.t.isf(pair_error, n - 1) * math.sqrt(variance / n)
    rare = bound_excess(0, RARE * error / (2 * LOOKS), 1)
    return -differences.mean() - width - (1.0 + x) * luck - rare


@pytest.mark.parametrize("strict", [False, True])
def test_the_x_of_now_is_where_the_stated_bounds_end(strict):
    """Would catch a bound at another level, of more seeds than there are, or of those seeds that
    chose a threshold."""
    assert RACE + LINKS + RARE + LUCK == pytest.approx(1.0)
    rng = np.random.default_rng(30)
    regrets = [rng.uniform(90.0, 110.0, 1600), rng.uniform(100.0, 120.0, 1600)]
    # One loss stands among the seeds that choose the threshold.
    regrets[0][[100, 300, 700]] = regrets[1][[50, 500]] = 900.0
    goal = Goal(0.05, 0.95, worst=1000.0, first=200, most=1600, strict=strict)
    verdict = play(lambda i: regrets[i], 2, goal)
    assert verdict.winner == 0 and 0.01 < verdict.within < 1.0
    due = margin_of(regrets, verdict.seeds, goal, verdict.within)
    assert due == pytest.approx(0.0, abs=1e-9)


def test_a_few_lucky_seeds_make_no_leader():
    """Would catch a winner whose mean is the smallest only because it varies most."""
    rng = np.random.default_rng(31)
    regrets = [rng.normal(98.0, 60.0, 200), rng.normal(100.0, 1.0, 200)]
    assert regrets[0].mean() < regrets[1].mean()
    verdict = play(lambda i: regrets[i], 2, GOAL._replace(most=200))
    assert not verdict.holds and verdict.winner == 1


@pytest.mark.parametrize("strict", [False, True])
def test_a_confidence_next_to_1_has_bounds(strict):
    """Would catch a level that is rounded to 1, whose bounds are infinite, or no numbers."""
    goal = GOAL._replace(confidence=1.0 - 2.0**-53, most=2**14, strict=strict)
    verdict = play(gamma([100.0, 200.0], 15), 2, goal, is_sure=[False, True],
                   over=lambda i: np.zeros(2**16, bool))  # fmt: skip
    assert verdict.holds and verdict.keeps and verdict.within == 0.0
    assert bound_share(1, 100, 1e-18)[1] < 0.5


def test_seeds_that_chose_a_threshold_show_nothing_beyond_it():
    """Would catch a race that ends at the first look, whose seeds are below their threshold."""
    goal = GOAL._replace(worst=2000.0, most=200)
    verdict = play(gamma([100.0, 1000.0], 13), 2, goal)
    assert not verdict.holds and verdict.within > goal.within
    assert play(gamma([100.0, 1000.0], 13), 2, goal._replace(most=400)).holds


def test_a_budget_is_shown_to_be_kept_with_so_many_seeds():
    """Would catch a bound of one look, or of one candidate, for one of all."""
    error = LINKS * 0.05 / (2 * 2 * (LOOKS + 1))
    due = math.ceil(math.log(error) / math.log(0.99))
    for most in (due - 1, due):
        goal = GOAL._replace(most=most, within=5.0)
        verdict = play(gamma([100.0, 200.0], 14), 2, goal, is_sure=[False, True],
                       over=lambda i: np.zeros(2**16, bool))  # fmt: skip
        assert verdict.winner == 0 and verdict.seeds[0] == most
        assert verdict.keeps == verdict.holds == (most == due)


def test_time_ends_a_race_with_what_holds_now():
    """Would catch a bare winner after the time is spent."""
    verdict = play(gamma([100.0, 101.0], 9), 2, GOAL, out_of_time=lambda: True)
    assert not verdict.holds and verdict.looks == 1
    assert set(verdict.survivors) == {0, 1} and verdict.missing > 0


@pytest.mark.parametrize(("events", "trials"), [(0, 0), (0, 50), (3, 50), (50, 50)])
def test_bounds_of_a_share_are_those_of_clopper_and_pearson(events, trials):
    """Would catch an error that is split in two, or ends that are swapped."""
    low, high = bound_share(events, trials, 0.01)
    if not trials:
        assert (low, high) == (0.0, 1.0)
        return
    expected = stats.binomtest(events, trials).proportion_ci(0.98)
    assert low == pytest.approx(expected.low, abs=1e-12)
    assert high == pytest.approx(expected.high, abs=1e-12)
