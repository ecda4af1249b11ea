"""Whether the guarantee of a plan's race holds: races on problems whose answer is certain.

Rivals get the same seeds. Mutants of the procedure show that the problems can tell a wrong one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common
from experiments.race_laws import Case, Draws, list_cases
from experiments.race_rivals import allocate_uniformly, halve, select_kn
from experiments.race_tables import (
    EARLY,
    FRESH,
    HALVING,
    KN,
    LOOSE,
    MUTANT,
    RACE,
    SAME,
    UNIFORM,
)
from fmab_jax.analysis.bands import lost_interval, student_critical
from fmab_jax.planning import race as procedure
from fmab_jax.planning.tails import Tail

# Simulations that races draw seeds from; seeds of the pool and races for each seed of the others.
AGENTS, ARMS, HORIZON = 5, 10, 10**4
ALGORITHMS = {
    "CDP-MAB, ε = 1": fmab.cdp_mab(1.0),
    "CDP-MAB, ε = 0.5": fmab.cdp_mab(0.5),
    "KL-SE, ε = 0.1": fmab.kl_se(0.1),
    "KL-SE, ε = 0.15": fmab.kl_se(0.15),
    "Dist-DP-SE, ε = 10": fmab.dist_dp_se(10.0),
    "Dist-DP-SE, ε = 5": fmab.dist_dp_se(5.0),
}
POOL_PER_SEED, RACES_PER_SEED = 100, 0.5
FRESH_SEEDS, FEW_SEEDS = 2000, 800
LEVEL, LOOSE_CONFIDENCE = 0.95, 0.8


class Outcome(NamedTuple):
    """The answer of a procedure in one race.

    Attributes:
        is_right: Whether the answer keeps the budget and is within x of the best that does.
        seeds: Of all candidates together.
        holds: Whether the procedure says that its goal is reached.
        has_within: Whether it states an x, also where the race stops early.
        is_true: Whether this statement is true; a race that states no x says nothing false.
    """

    is_right: bool
    seeds: int
    holds: bool
    has_within: bool
    is_true: bool


class Report(NamedTuple):
    """The mean of the answer as it is stated.

    Attributes:
        ratio: Over its exact mean.
        is_covered: Whether its 95 % interval holds the exact mean.
    """

    ratio: float
    is_covered: bool


def horizons(options: Sequence[int]) -> list[int]:
    """Returns the one horizon of the simulations."""
    return [HORIZON]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Simulates the pool of regrets."""
    return fmab.sweep(
        ALGORITHMS,
        fmab.Problem(agents=AGENTS, arms=ARMS, spread=0.5),
        horizon=horizon,
        seeds=POOL_PER_SEED * seeds,
        times=[horizon],
        store=store,
    )


def draw(results: Mapping[int, xr.Dataset], folder: Path) -> list[Path]:
    """Runs all races, and writes a table of their answers."""
    (data,) = results.values()
    pool = np.asarray(data.regret.isel(time=-1).values, np.float64)
    races = max(2, round(RACES_PER_SEED * data.sizes["seed"] / POOL_PER_SEED))
    rows = list(run_all(list_cases(pool), races))
    folder.mkdir(parents=True, exist_ok=True)
    return [common.save_rows(rows, folder / "race_coverage.csv")]


def run_all(cases: Sequence[Case], races: int) -> Iterator[dict[str, Any]]:
    """Yields the rows of all procedures on all problems, and those of mutants."""
    by_name = {case.name: case for case in cases}
    for number, case in enumerate(cases):
        start = time.perf_counter()
        outcomes = [run_procedures(case, (number, index)) for index in range(races)]
        for name in outcomes[0]:
            yield make_row(case, name, [outcome[name] for outcome in outcomes])
        print(f"  {case.name}: {time.perf_counter() - start:.0f} s", flush=True)
    for name, mutant in MUTANTS.items():
        case = by_name[mutant.case]
        number = list(by_name).index(mutant.case)
        start = time.perf_counter()
        with mutant.change():
            answers = [run_race(Draws(case, (number, index))) for index in range(races)]
        yield make_row(case, f"{MUTANT}{name}", answers)
        print(f"  {name}: {time.perf_counter() - start:.0f} s", flush=True)
    yield from report_rows(cases[0], races)


def run_procedures(case: Case, stream: Sequence[int]) -> dict[str, Outcome]:
    """Returns the outcomes of the race and of its rivals on the same runs."""
    draws = Draws(case, stream)
    outcomes = {
        RACE: run_race(draws),
        LOOSE: run_race(draws, confidence=LOOSE_CONFIDENCE),
        EARLY: run_race(draws, most=FEW_SEEDS),
    }
    goal, total = case.goal, outcomes[RACE].seeds
    error = 1.0 - goal.confidence
    choices = {
        UNIFORM: allocate_uniformly(draws, total),
        HALVING: halve(draws, total),
        KN: select_kn(draws, goal.first, goal.within * case.best, error, goal.most),
    }
    for name, choice in choices.items():
        is_right = case.is_right(choice.winner, goal.within)
        outcomes[name] = Outcome(
            is_right, choice.seeds, choice.is_done, choice.is_done, is_right or not choice.is_done
        )
    return outcomes


def decide(draws: Draws, **options: Any) -> procedure.Verdict:
    """Returns the verdict of a race, whose goal has some options."""
    case = draws.case
    goal = case.goal._replace(**options)
    is_sure, tail = case.is_sure or (True,) * len(case.means), Tail(case.limit, 0.0, "", case.limit)
    return procedure.race(is_sure, draws.observe, lambda candidate: tail, goal)


def run_race(draws: Draws, **options: Any) -> Outcome:
    """Returns the outcome of a race."""
    verdict, case = decide(draws, **options), draws.case
    within = case.goal.within if verdict.holds else verdict.within
    has_within = verdict.keeps and math.isfinite(within)
    return Outcome(
        case.is_right(verdict.winner, case.goal.within),
        sum(verdict.seeds),
        verdict.holds,
        has_within,
        not has_within or case.is_right(verdict.winner, within),
    )


def make_row(case: Case, name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns the row of a procedure on a problem."""
    races = len(outcomes)
    holds, right = (sum(getattr(o, field) for o in outcomes) for field in ("holds", "is_right"))
    false = sum(not outcome.is_true for outcome in outcomes)
    # What the confidence is about: statements that the goal is reached, and is not.
    wrong = sum(outcome.holds and not outcome.is_right for outcome in outcomes)
    return {
        "problem": case.name,
        "candidates": len(case.means),
        "within": case.goal.within,
        "procedure": name,
        "races": races,
        "end with the goal": holds,
        "stop at the most seeds": races - holds,
        "right": right,
        "share right": (right / races, *lost_interval(right, races, LEVEL)),
        "state an x": sum(outcome.has_within for outcome in outcomes),
        "false statements": false,
        "wrong at the goal": wrong,
        "share wrong": (wrong / races, *lost_interval(wrong, races, LEVEL)),
        "seeds": round(float(np.mean([outcome.seeds for outcome in outcomes]))),
    }


# --- mutants ------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """A mistake of the procedure, and the problem that shows it."""

    case: str
    change: Callable[[], AbstractContextManager[Any]]


def _forget_correction() -> AbstractContextManager[Any]:
    whole = property(lambda state: procedure.RACE * state.error)
    return patch.object(procedure._Judge, "pair_error", whole)


def _forget_budgets() -> AbstractContextManager[Any]:
    def judge(state: procedure._Judge) -> tuple[list[bool], list[bool]]:
        return [True] * len(state.samples), [False] * len(state.samples)

    return patch.object(procedure._Judge, "judge_budgets", judge)


@contextmanager
def _forget_pairs() -> Iterator[None]:
    compare = procedure._Judge.compare

    def mix(state: procedure._Judge, i: int, j: int) -> procedure._Pair:
        pair = compare(state, i, j)
        return pair._replace(other=np.random.default_rng(0).permutation(pair.other))

    with patch.object(procedure._Judge, "compare", mix):
        yield


def _forget_rare_losses() -> AbstractContextManager[Any]:
    return patch.object(procedure._Judge, "bound_rare", lambda state, candidate: 0.0)


def _take_as_normal() -> AbstractContextManager[Any]:
    def test(pair: procedure._Pair, within: float, rare: float, error: float) -> bool:
        values = pair.subtract(within, pair.threshold)
        seeds = len(values)
        # One side of Student's t, at one of many looks.
        critical = student_critical(seeds - 1, 2.0 * error / procedure.LOOKS)
        width = critical * float(values.std(ddof=1)) / math.sqrt(seeds)
        return float(values.mean()) + width <= -rare

    return patch.object(procedure._Pair, "is_within", test)


MUTANTS = {
    "no correction for candidates": Mutant("39 with rare events", _forget_correction),
    "budgets are not checked": Mutant("infeasible best", _forget_budgets),
    "differences are not paired": Mutant("heavy tails", _forget_pairs),
    "rare losses are not checked": Mutant("rare catastrophes", _forget_rare_losses),
    "differences are taken as normal": Mutant("rare event, 0.3 %", _take_as_normal),
}


def report_rows(case: Case, races: int) -> Iterator[dict[str, Any]]:
    """Yields how well the mean of the answer is stated: on fresh seeds, and on those that chose it.

    The second is a mutant.
    """
    reports: dict[str, list[Report]] = {FRESH: [], SAME: []}
    for index in range(races):
        draws = Draws(case, (0, index))
        verdict = decide(draws)
        mean = case.means[verdict.winner]
        fresh = Draws(case, (1000, index)).read(verdict.winner, FRESH_SEEDS)
        biased = draws.read(verdict.winner, verdict.seeds[verdict.winner])
        for name, sample in zip(reports, (fresh, biased), strict=True):
            stated, low, high = common.interval(sample.regret, LEVEL)
            reports[name].append(Report(stated / mean, low <= mean <= high))
    for name, group in reports.items():
        covered = sum(report.is_covered for report in group)
        yield {
            "problem": case.name,
            "candidates": len(case.means),
            "within": case.goal.within,
            "procedure": name,
            "races": races,
            "right": covered,
            "share right": (covered / races, *lost_interval(covered, races, LEVEL)),
            "stated mean / exact mean": common.interval([report.ratio for report in group]),
        }
