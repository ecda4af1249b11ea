"""Whether the statements of whole plans are true: small problems whose answer a million seeds tell.

Races on made-up laws (`race_coverage`) show the procedure; these plans are those of `fmab.plan`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.budgets import read_spending
from fmab_jax.planning.candidates import write_call
from fmab_jax.planning.question import OVER

# Seeds that tell the answer, and plans of each question, for each seed of other experiments.
TRUTH_PER_SEED, PLANS_PER_SEED = 1000, 0.112
CONFIDENCE, LEVEL = 0.95, 0.95
TRUTH_ROOT = 4_000_000_000
HORIZON = 1000  # of most questions
# Seeds that tell who exceeds a budget.
LINK_SEEDS = 100_000


class Question(NamedTuple):
    """What plans are asked.

    Attributes:
        name: For tables.
        problem: Agents, arms and means.
        horizon: T.
        leak: Epsilon of one reward.
        candidates: Configured algorithms.
        within: x.
        links: Most links of a run; None for no budget.
        view: Of the leak.
        secure: Whether there is a secure sum.
    """

    name: str
    problem: fmab.Problem
    horizon: int
    leak: float
    candidates: tuple[Algorithm, ...]
    within: float = 0.05
    links: int | None = None
    view: str = "messages"
    secure: bool = False


def _configure(
    owner: Any, leak: float, agents: int, name: str, values: Sequence[Any], **others: Any
) -> tuple[Algorithm, ...]:
    """Configures an algorithm at a leak, once for each value of a parameter."""
    return tuple(
        fmab.at_leak(owner, leak, agents=agents, **{name: value}, **others) for value in values
    )


def list_questions() -> list[Question]:
    """Returns the questions: 4 to 6 candidates each, some of them alike."""
    drawn, fixed = fmab.Problem(agents=3, arms=4), fmab.Problem([0.9, 0.6, 0.3, 0.1], agents=5)
    close = fmab.Problem([0.6, 0.55, 0.5], agents=4)
    unlike = fmab.Problem(agents=3, arms=4, spread=0.4)
    guess = fmab.Problem([0.7, 0.5, 0.4], agents=3, means_error=0.1)
    scales, rounds = (0.1, 0.15, 0.2, 0.3, 0.5), (1, 2, 3, None)
    cdp, kl_se = fmab.cdp_mab, fmab.kl_se
    return [
        Question("scales", drawn, 1000, 2, _configure(cdp, 2, 3, "scale", (*scales, 1.0)), 0.12),
        Question(
            "links",
            drawn,
            500,
            1,
            _configure(cdp, 1, 3, "rounds", (1, 2, 4), scale=0.2)
            + _configure(kl_se, 1, 3, "rounds", (1, 2, 4)),
            within=0.2,
            links=12,
        ),
        Question(
            "links of some runs",
            fixed,
            500,
            1,
            _configure(kl_se, 1, 5, "rounds", rounds) + _configure(cdp, 1, 5, "scale", scales[1:3]),
            within=0.13,
            links=20,
        ),
        Question("close means", close, 1000, 4, _configure(cdp, 4, 4, "scale", scales), 0.065),
        Question("agents differ", unlike, 1000, 2, _configure(cdp, 2, 3, "scale", scales), 0.15),
        Question(
            "means are estimates",
            guess,
            500,
            1,
            _configure(kl_se, 1, 3, "growth", (1.5, 2.0, 3.0))
            + _configure(cdp, 1, 3, "scale", (0.2, 0.3)),
            within=0.5,
        ),
        Question(
            "participation",
            drawn,
            1000,
            2,
            _configure(cdp, 2, 3, "participation", (0.4, 0.8, 1.0), scale=0.2)
            + _configure(cdp, 2, 3, "rounds", (2, 4), scale=0.2),
            within=0.14,
        ),
        Question(
            "arms split",
            fixed,
            1000,
            1,
            _configure(kl_se, 1, 5, "growth", (1.5, 3.0), split=True)
            + _configure(kl_se, 1, 5, "growth", (1.5, 3.0)),
            within=0.1,
        ),
        Question(
            "secure sums",
            fixed,
            1000,
            1,
            _configure(fmab.dist_dp_se, 1, 5, "base", (2.0, 3.0, 4.0), view="sum")
            + _configure(kl_se, 1, 5, "growth", (1.5, 2.0, 3.0), view="sum", secure=True),
            view="sum",
            secure=True,
        ),
    ]


def horizons(options: Sequence[int]) -> list[int]:
    """Returns one horizon: each question has its own."""
    return [HORIZON]


def _list_labels(question: Question) -> dict[str, Algorithm]:
    """Returns the candidates by their labels in a plan."""
    return {write_call(algorithm): algorithm for algorithm in question.candidates}


def sweep(horizon: int, seeds: int, store: Path | None = None) -> dict[str, xr.Dataset]:
    """Simulates all candidates, for the truth."""
    truth = {}
    for question in list_questions():
        name = question.name.replace(" ", "-")
        truth[question.name] = fmab.sweep(
            _list_labels(question),
            question.problem,
            horizon=question.horizon,
            seeds=TRUTH_PER_SEED * seeds,
            times=1,
            keep="summary",
            root_seed=TRUTH_ROOT,
            store=store and store.with_name(f"{store.name}-{name}"),
        )
        print(f"  {question.name}: the truth is known", flush=True)
    return truth


def draw(results: Mapping[int, Mapping[str, xr.Dataset]], folder: Path) -> list[Path]:
    """Runs all plans, and writes a table of their statements."""
    (truth,) = results.values()
    rows = [_judge(question, truth[question.name]) for question in list_questions()]
    return [common.save_rows(rows, folder / "plan_coverage.csv")]


def _judge(question: Question, truth: xr.Dataset) -> dict[str, Any]:
    """Returns the row of a question: how often the statement of a plan is true."""
    seeds = int(truth.seeds.min())
    means = dict(zip(truth.algorithm.values.tolist(), _find_means(truth).tolist(), strict=True))
    start = time.perf_counter()
    answers = [
        fmab.plan(
            question.problem,
            question.horizon,
            leak=question.leak,
            view=question.view,
            links=question.links,
            secure=question.secure,
            within=question.within,
            confidence=CONFIDENCE,
            candidates=list(question.candidates),
            root_seed=root,
        )
        for root in range(max(2, round(PLANS_PER_SEED * seeds / TRUTH_PER_SEED)))
    ]
    elapsed = time.perf_counter() - start
    # Whoever exceeds the budget in more runs than allowed is no answer.
    over = _find_over(question, truth)
    allowed = {label: mean for label, mean in means.items() if over[label] <= OVER}
    best = min(allowed.values())
    decided = [answer for answer in answers if answer.holds]
    wrong = sum(
        allowed.get(answer.label, np.inf) > (1.0 + question.within) * best for answer in decided
    )
    ordered = sorted(allowed.values())
    print(f"  {question.name}: {len(answers)} plans, {elapsed:.0f} s", flush=True)
    return {
        "question": question.name,
        "candidates": len(means),
        "within": question.within,
        "best": best,
        "second / best": ordered[1] / best if len(ordered) > 1 else np.nan,
        "near": sum(mean <= (1.0 + question.within) * best for mean in ordered),
        "plans": len(answers),
        "decided": len(decided),
        "wrong": wrong,
        "share wrong": (wrong / len(answers), *lost_interval(wrong, len(answers), LEVEL)),
        "trials": round(float(np.mean([answer.seeds for answer in answers]))),
        "seconds": elapsed / len(answers),
    }


def _find_means(truth: xr.Dataset) -> np.ndarray:
    return np.asarray(truth.regret_mean.isel(time=-1).values, np.float64)


def _find_over(question: Question, truth: xr.Dataset) -> dict[str, float]:
    """Returns the share of runs of each candidate that exceed the links, by label."""
    labels = truth.algorithm.values.tolist()
    if question.links is None:
        return dict.fromkeys(labels, 0.0)
    shares = {}
    for label, algorithm in _list_labels(question).items():
        few = fmab.simulate(
            algorithm,
            question.problem,
            question.horizon,
            LINK_SEEDS,
            times=1,
            root_seed=TRUTH_ROOT,
        )
        links = read_spending(few)["links"]
        shares[label] = float((links > question.links).mean())
    return shares
