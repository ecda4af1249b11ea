"""The share of races whose answer is right; the laws, the rivals and the tables about it."""

import csv
import math
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import fmab_jax as fmab
from experiments import common, plan_coverage, race_coverage, race_laws, race_tables
from experiments.race_rivals import allocate_uniformly, halve, select_kn
from experiments.race_tables import write_plans
from fmab_jax.planning.candidates import write_call
from fmab_jax.planning.race import PILOT, Goal, find_threshold

POOL = np.random.default_rng(0).gamma(4.0, [[25.0], [26.0], [30.0]], (3, 500))
CASES = {case.name: case for case in (*race_laws.list_cases(POOL), race_laws.many(60))}


@pytest.mark.parametrize(
    ("problem", "races"),
    [
        ("60 within 3 %", 20),
        ("rare catastrophes", 20),
        ("infeasible best", 40),
        ("rare luck", 40),
        ("rare event, 0.3 %", 60),
        ("rare event, 0.72 %", 60),
        ("rare event, 2 %", 60),
        ("losses of all sizes", 60),
        ("39 with rare events", 20),
    ],
)
def test_answers_are_right_as_often_as_promised(problem, races):
    """Would catch differences that are taken as normal, budgets that are not checked, and rare
    losses without a bound."""
    case = CASES[problem]
    outcomes = [race_coverage.run_race(race_laws.Draws(case, (7, index))) for index in range(races)]
    assert all(outcome.holds for outcome in outcomes)
    assert sum(outcome.is_right for outcome in outcomes) >= 0.95 * races
    assert all(outcome.is_true == outcome.is_right for outcome in outcomes)


def test_statements_of_races_that_stop_early_are_true():
    """Would catch an x of now that is smaller than what the seeds show."""
    case = CASES["60 within 3 %"]
    outcomes = [
        race_coverage.run_race(race_laws.Draws(case, (8, index)), most=400) for index in range(30)
    ]
    assert not any(outcome.holds for outcome in outcomes)
    assert sum(outcome.is_true for outcome in outcomes) >= 28
    assert not all(outcome.is_right for outcome in outcomes)


@pytest.mark.parametrize(("mistake", "races"), [("differences are taken as normal", 40),
                                                ("budgets are not checked", 10),
                                                ("rare losses are not checked", 20)])  # fmt: skip
def test_problems_tell_a_race_with_a_mistake(mistake, races):
    """Would catch a problem that every procedure solves, and a mutant that is the race."""
    mutant = race_coverage.MUTANTS[mistake]
    with mutant.change():
        outcomes = [
            race_coverage.run_race(race_laws.Draws(CASES[mutant.case], (9, index)))
            for index in range(races)
        ]
    assert sum(outcome.holds and not outcome.is_right for outcome in outcomes) > 0.2 * races


@pytest.mark.parametrize("mistake", ["no correction for candidates", "differences are not paired"])
def test_other_mistakes_change_the_seeds_of_a_race(mistake):
    """Would catch a mutant that is the race: these take fewer seeds, or more."""
    mutant = race_coverage.MUTANTS[mistake]
    draws = race_laws.Draws(CASES[mutant.case], (9, 0))
    due = race_coverage.run_race(draws).seeds
    with mutant.change():
        seeds = race_coverage.run_race(draws).seeds
    assert seeds < 0.9 * due if mistake.startswith("no") else seeds > 1.1 * due


# --- laws ---


@pytest.mark.parametrize("problem", [name for name in CASES if not name.startswith("100")])
def test_means_of_laws_are_exact(problem):
    """Would catch a mean without its rare losses, or without the cut of its tail."""
    case, seeds = CASES[problem], 2**16
    draws = race_laws.Draws(case, (3,))
    for candidate, mean in [*enumerate(case.means)][:5] + [*enumerate(case.means)][-3:]:
        regret = draws.read(candidate, seeds).regret
        assert abs(regret.mean() - mean) < 5 * max(regret.std(), 1e-9) / math.sqrt(seeds)
        assert 0.0 <= regret.min() and regret.max() <= case.limit


@pytest.mark.parametrize("problem", [name for name in CASES if "rare event" in name])
def test_means_of_laws_of_rare_events_are_those_of_all_that_is_shared(problem):
    """Would catch a mean that is off by less than what a sample of rare events can tell."""
    case, seeds = CASES[problem], 10**6
    shared = (np.arange(seeds) + 0.5) / seeds
    for candidate in (0, len(case.means) - 2, len(case.means) - 1):
        regret = case.draw(candidate, shared, np.random.default_rng(0))
        assert regret.mean() == pytest.approx(case.means[candidate], rel=1e-4)
        assert regret.min() >= 0.0 and regret.max() <= case.limit


@pytest.mark.parametrize(("chance", "within", "ratio"), race_laws.RARE_EVENTS)
def test_rare_events_are_all_that_tells_two_candidates_apart(chance, within, ratio):
    """Would catch an event of another chance, and one beyond the threshold of most pilots, where
    a bound of rare losses sees it before any pair does."""
    case, seeds = race_laws.rare_event(chance, within, ratio), 2**17
    first, best = (race_laws.Draws(case, (5,)).read(i, seeds).regret for i in (0, 1))
    differs = first != best
    assert abs(differs.mean() - chance) < 5 * math.sqrt(chance / seeds)
    assert {*first[differs]} == {case.limit} and case.means[0] / case.best == pytest.approx(ratio)
    assert ratio > 1.0 + within and not case.is_right(0, within)
    pilots = first[: seeds // PILOT * PILOT].reshape(-1, PILOT)
    limits = [find_threshold(pilot, case.limit) for pilot in pilots]
    assert np.mean(np.isclose(limits, case.limit)) > (0.25 if chance == 0.001 else 0.99)


def test_draws_do_not_depend_on_the_order_of_reading():
    """Would catch other regrets for the same seeds, and candidates that share no luck."""
    case = CASES["infeasible best"]
    left, right = (race_laws.Draws(case, (1, 2)) for _ in range(2))
    whole = [left.read(i, 3000) for i in range(2)]
    for seeds in (8, 200, 700, 3000):
        for i in (1, 0):
            sample = right.read(i, seeds)
            np.testing.assert_array_equal(sample.regret, whole[i].regret[:seeds])
            np.testing.assert_array_equal(sample.is_over, whole[i].is_over[:seeds])
    assert len(np.unique(whole[0].regret)) == 3000
    assert 0.4 < np.corrcoef(whole[0].regret, whole[1].regret)[0, 1] < 0.6
    assert not (race_laws.Draws(case, (1, 3)).read(0, 9).regret == whole[0].regret[:9]).any()


def test_a_right_answer_keeps_the_budget_and_is_near_the_best_that_does():
    """Would catch the mean of an infeasible candidate as the best, and another x."""
    case = CASES["infeasible best"]
    assert case.best == 100.0
    assert [case.is_right(i, 0.05) for i in range(-1, 6)] == [False] * 3 + [True] * 2 + [False] * 2
    assert case.is_right(4, 0.07) and not case.is_right(5, 0.07)


# --- rivals ---


def constants(means, over=()):
    """Returns draws of a law without randomness."""
    return race_laws.Draws(
        race_laws.Case(
            "constants",
            means,
            lambda rng, seeds: np.zeros(seeds),
            lambda i, shared, rng: shared + means[i],
            Goal(0.05, 0.95),
            10.0,
            over,
        ),
        (0,),
    )


def test_rivals_spend_the_seeds_that_they_have():
    """Would catch rounds of halving that share seeds otherwise, and a winner over the budget."""
    draws = constants((3.0, 1.0, 2.0, 5.0, 4.0), over=(0.0, 1.0, 0.0, 0.0, 0.0))
    assert allocate_uniformly(draws, 1003) == (2, 1000, True)
    # Three rounds of 5, 3 and 2 candidates: 66, 111 and 166 seeds.
    assert halve(draws, 1000) == (2, 330 + 333 + 332, True)


def test_kn_stops_where_its_triangle_ends():
    """Would catch another constant of Kim and Nelson: with two, its end can be computed."""
    rng = np.random.default_rng(1)
    noise = rng.choice([-1.0, 1.0], (2, 10_000))
    case = race_laws.Case(
        "coins",
        (10.0, 10.0),
        lambda _, seeds: np.arange(seeds),
        lambda i, shared, _: 10.0 + noise[i][shared],
        Goal(0.05, 0.95),
        11.0,
    )

    class Whole(race_laws.Draws):
        def read(self, candidate, seeds):
            regret = case.draw(candidate, np.arange(seeds), None)
            return race_laws.Sample(regret, np.zeros(seeds, bool))

    first, delta, error = 20, 0.4, 0.05
    choice = select_kn(Whole(case, (0,)), first, delta, error, 10_000)
    differences = noise[0] - noise[1]
    # Two candidates: eta = ((2 error)^(-2 / (first - 1)) - 1) / 2, one step of S^2 h^2 / delta^2.
    eta = 0.5 * ((2 * error) ** (-2 / (first - 1)) - 1)
    scaled = 2 * eta * (first - 1) * differences[:first].var(ddof=1)
    sums = np.cumsum(differences)
    width = np.maximum(0.0, 0.5 * (scaled / delta - delta * np.arange(1, 10_001)))
    end = next(r for r in range(first, 10_001) if abs(sums[r - 1]) > width[r - 1])
    assert end > 2 * first
    assert choice == (int(sums[end - 1] > 0), 2 * end, True)


def test_kn_selects_the_best_as_often_as_it_promises():
    """Would catch a region that is too small: 9 of 10 are worse by exactly delta."""
    means = (100.0, *[105.0] * 9)
    case = race_laws.Case(
        "slippage",
        means,
        lambda rng, seeds: rng.normal(0.0, 20.0, seeds),
        lambda i, shared, rng: means[i] + shared + rng.normal(0.0, 20.0, len(shared)),
        Goal(0.05, 0.95),
        1000.0,
    )
    choices = [
        select_kn(race_laws.Draws(case, (4, index)), 30, 5.0, 0.05, 2**14) for index in range(60)
    ]
    assert sum(choice.winner == 0 for choice in choices) >= 57
    assert all(choice.is_done for choice in choices)
    # More than the first look, fewer than the two-stage procedure needs at least.
    assert 300 < np.mean([choice.seeds for choice in choices]) < 10 * 800


# --- rows and tables ---


def test_rows_count_the_outcomes():
    """Would catch a share of other races, and mutants that change the race for good."""
    hard = ("60", "100", "rare event, 0.1 %")
    cases = [case for case in CASES.values() if not case.name.startswith(hard)]
    rows = list(race_coverage.run_all(cases, 2))
    assert len(rows) == len(cases) * 6 + len(race_coverage.MUTANTS) + 2
    for row in rows:
        share, low, high = row["share right"]
        assert share == row["right"] / row["races"] and low <= share <= high
        assert row.get("end with the goal", 0) + row.get("stop at the most seeds", 2) == 2
    outcome = race_coverage.Outcome(True, 7, True, True, True)
    draws = race_laws.Draws(CASES["infeasible best"], (3, 0))
    assert race_coverage.run_race(draws).is_right
    row = race_coverage.make_row(
        CASES["rare luck"], "x", [outcome, outcome._replace(is_right=False, seeds=8, is_true=False)]
    )
    assert (row["right"], row["seeds"], row["false statements"], row["share right"][0]) == (
        1, 8, 1, 0.5,
    )  # fmt: skip
    assert row["wrong at the goal"] == 1 and row["share wrong"][0] == 0.5
    # A race that does not reach its goal says nothing wrong about it.
    early = outcome._replace(is_right=False, holds=False)
    row = race_coverage.make_row(CASES["rare luck"], "x", [early, outcome])
    assert row["wrong at the goal"] == row["false statements"] == 0 and row["right"] == 1


def test_the_page_says_what_the_rows_say(tmp_path):
    """Would catch columns of the page that are swapped, ends rounded inwards, and other counts."""
    heads = (
        race_tables.RACE, race_tables.LOOSE, race_tables.EARLY, race_tables.UNIFORM,
        race_tables.HALVING, race_tables.KN, f"{race_tables.MUTANT}slip",
    )  # fmt: skip
    rows = [
        {
            "problem": "hard", "within": 0.02, "procedure": head, "races": 50, "right": 50 - place,
            "end with the goal": 40 + place, "wrong at the goal": place,
            "share wrong": (0.0012 + place / 10, 0.0449, 0.9801),
            "state an x": 45 + place, "false statements": place, "seeds": 1000 + place,
            "stated mean / exact mean": "",
        }
        for place, head in enumerate(heads)
    ]  # fmt: skip
    rows += [
        {
            "problem": "hard", "procedure": name, "races": 50, "right": 40,
            "share right": (0.8, 0.7, 0.9), "stated mean / exact mean": (ratio, ratio, ratio),
        }
        for name, ratio in ((race_tables.FRESH, 1.0012), (race_tables.SAME, 0.99))
    ]  # fmt: skip
    path = common.save_rows(rows, tmp_path / "race_coverage.csv")
    with path.open(encoding="utf-8") as file:
        text = race_tables.write_coverage(list(csv.DictReader(file)))
    assert "| problem | x | race | at 80 % | uniform | halving | KN |" in text
    assert (
        "| hard | 2 % | 0.1 [4.4, 98.1] | 10.1 [4.4, 98.1] | 30.1 [4.4, 98.1] | 40.1 [4.4, 98.1] "
        "| 50.1 [4.4, 98.1] |" in text
    )
    assert "| hard | 2 % | 1,000 | 1,001 | 1,003 | 1,004 | 1,005 |" in text
    assert (
        "*Race at 80 %*: 41 of 50 end with the goal; 9 stop at the most seeds. 46 state an x"
        in text
    )
    assert "; 2 of these" in text and "uniform 3, halving 4, KN 5. The race" in text
    assert "takes 1.0 to 1.0 times" in text
    assert "| slip | hard | 60.1 [4.4, 98.1] | 1,006 | 0.1 [4.4, 98.1] | 1,000 |" in text
    assert "holds the exact mean in 80.0 [70.0, 90.0] % of the races" in text
    assert "is 1.0012 [1.0012, 1.0012] on average" in text
    assert "too small: the stated mean over the exact one is 0.9900 [" in text


def test_plans_are_judged_by_the_truth(monkeypatch):
    """Would catch a plan that is right although its answer is too far from the best, an answer that
    exceeds the budget, and one that is not decided counted as wrong."""
    candidates = (fmab.kl_se(1), fmab.kl_se(1, rounds=1), fmab.kl_se(1, rounds=2))
    labels = [write_call(candidate) for candidate in candidates]
    question = plan_coverage.Question(
        "q", fmab.Problem([0.9, 0.5], agents=5), 100, 1.0, candidates, within=0.1, links=20
    )
    truth = xr.Dataset(
        {"regret_mean": (("algorithm", "time"), [[9.0], [10.0], [11.2]]),
         "seeds": ("algorithm", [4000] * 3)},
        coords={"algorithm": labels},
    )  # fmt: skip
    monkeypatch.setattr(plan_coverage, "PLANS_PER_SEED", 1.0)
    shares = dict(zip(labels, (0.5, 0.0, 0.01), strict=True))
    monkeypatch.setattr(plan_coverage, "_find_over", lambda *_: shares)
    given = iter([(labels[0], True), (labels[1], True), (labels[2], True), (labels[2], False)])

    def answer(*_, **options):
        label, holds = next(given)
        return SimpleNamespace(label=label, holds=holds, seeds=100)

    monkeypatch.setattr(fmab, "plan", answer)
    row = plan_coverage._judge(question, truth)
    assert (row["plans"], row["decided"], row["wrong"], row["near"]) == (4, 3, 2, 1)
    assert row["best"] == 10.0 and row["second / best"] == pytest.approx(1.12)
    text = write_plans([{key: str(value) for key, value in flatten(row).items()}])
    assert "Of 4 plans 3 were decided, and 2 statements were wrong: 50.0 [" in text


def flatten(row):
    """Returns a row of CSV, where an interval has three cells."""
    ends = dict(zip(("", ", lower", ", upper"), row["share wrong"], strict=True))
    return row | {f"share wrong{end}": value for end, value in ends.items()}
