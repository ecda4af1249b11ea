"""The figures of an answer: its frame of candidates, and its runs on fresh seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.leaks import NOISE, at_leak, measure_leak
from fmab_jax.errors import Refusal, format_quantity
from fmab_jax.files import mark_write
from fmab_jax.parameters import VIEWS, parameters_of
from fmab_jax.planning.answers import Alternative, Answer, State, Times
from fmab_jax.planning.candidates import Candidate, write_call
from fmab_jax.planning.question import FIRST_SEEDS, Question, Spending
from fmab_jax.planning.race import End, Verdict
from fmab_jax.planning.runs import (
    FRESH_LEVEL,
    FRESH_SEEDS,
    Runs,
    Trials,
    compare_means,
    summarise,
)
from fmab_jax.sampling.shapes import Record

if TYPE_CHECKING:
    import pandas as pd

# Seeds of the answer at a smaller leak.
_FEW_SEEDS = 500


def build_answer(
    runs: Runs, verdict: Verdict, notes: Sequence[str], began: float, stack: ExitStack
) -> Answer:
    """Measures the winner on fresh seeds, and collects what the race shows."""
    question, winner, tail = runs.question, runs.candidates[verdict.winner], verdict.tail
    assert tail is not None
    frame = build_frame(runs, verdict)
    front = _find_frugal(frame, question)
    trials, fresh_seeds, cautious = _measure(runs, verdict, stack)
    problem, algorithm = question.problem, winner.algorithm
    leaks = {
        x: measure_leak(algorithm, problem.agents, x, presence=problem.presence) for x in VIEWS
    }
    missing_s = 0.0
    if not verdict.holds:
        missing_s = runs.estimate_seconds(verdict.missing, verdict.waiting)
    elapsed = time.perf_counter() - began
    return Answer(
        question=question,
        algorithm=algorithm,
        frame=frame,
        holds=verdict.holds,
        within=question.within if verdict.holds else verdict.within,
        end=verdict.end.value,
        keeps=verdict.keeps,
        rare=verdict.rare,
        tail=tail,
        rare_trials=0 if tail.source or not winner.is_sure else _count_alone(verdict),
        missing_trials=verdict.missing,
        fresh_seeds=fresh_seeds,
        **{name: summarise(trials[name]) for name in ("regret", *Spending._fields)},
        final_gap=float(np.mean(trials["final_gap"])),
        leaks={view: leak for view, leak in leaks.items() if leak is not None},
        remark=winner.remark,
        front=(*front, *cautious),
        notes=tuple(notes),
        times=Times(elapsed, runs.compile_s, runs.run_s, missing_s),
        looks=tuple(runs.looks),
    )


def build_frame(runs: Runs, verdict: Verdict) -> pd.DataFrame:
    """Returns the frame of all candidates, see `Answer`."""
    import pandas as pd

    own = runs.collect(verdict.winner)["regret"]
    rows = []
    for i, candidate in enumerate(runs.candidates):
        row: Record = {
            "candidate": candidate.label,
            "state": _find_state(verdict, i).value,
            "undecided": i in verdict.near,
            "seeds": verdict.seeds[i],
            **dict.fromkeys(("regret", "regret_low", "regret_high"), math.nan),
            **dict.fromkeys(("more", "more_low", "more_high"), math.nan),
            **dict.fromkeys((f"{name}_max" for name in Spending._fields), math.nan),
            "over": "",
        }
        if verdict.seeds[i]:
            trials = runs.collect(i)
            row["regret"], row["regret_low"], row["regret_high"], *_ = summarise(trials["regret"])
            if i != verdict.winner:
                more = compare_means(trials["regret"], own)
                row["more"], row["more_low"], row["more_high"] = more
            most = {name: float(trials[name].max()) for name in Spending._fields}
            row |= {f"{name}_max": value for name, value in most.items()}
            if i in verdict.infeasible:
                budgets = runs.question.budgets._asdict()
                row["over"] = next(name for name in most if most[name] > budgets[name])
        rows.append(row)
    frame = pd.DataFrame(rows).sort_values("regret", kind="stable")
    return frame.loc[[verdict.winner, *frame.index.drop(verdict.winner)]].reset_index(drop=True)


def _find_state(verdict: Verdict, candidate: int) -> State:
    states = {
        State.ANSWER: (verdict.winner,),
        State.WAITING: verdict.waiting,
        State.OVER: verdict.infeasible,
        State.UNSHOWN: verdict.unshown,
        State.SURVIVES: verdict.survivors,
    }
    otherwise = State.OUTCLASSED if verdict.seeds[candidate] < FIRST_SEEDS else State.WORSE
    return next((state for state, members in states.items() if candidate in members), otherwise)


def _count_alone(verdict: Verdict) -> int:
    """Returns the seeds of the winner that no other candidate has."""
    others = [seeds for i, seeds in enumerate(verdict.seeds) if i != verdict.winner]
    return max(0, verdict.seeds[verdict.winner] - max([FIRST_SEEDS, *others]))


def _measure(
    runs: Runs, verdict: Verdict, stack: ExitStack
) -> tuple[Trials, int, list[Alternative]]:
    """Returns trials for the winner's figures, how many of them are fresh, and alternatives."""
    winner, own = runs.candidates[verdict.winner], runs.collect(verdict.winner)
    if verdict.end in (End.STOPPED, End.TIME):
        return own, 0, []
    seeds = FRESH_SEEDS if verdict.holds else min(FRESH_SEEDS, len(own["regret"]))
    try:
        cautious = _measure_cautious(runs, winner) if verdict.holds else []
        (trials,) = runs.simulate({winner.label: winner.algorithm}, FRESH_LEVEL, seeds)
    except KeyboardInterrupt:
        stack.enter_context(mark_write())
        return own, 0, []
    return trials, seeds, cautious


def _find_frugal(frame: pd.DataFrame, question: Question) -> list[Alternative]:
    """Returns the best candidate of the race within half of the links."""
    if question.links is None:
        return []
    half = math.floor(question.links / 2)
    ran = frame[(frame.seeds >= FIRST_SEEDS) & (frame.over == "") & (frame.links_max <= half)]
    purpose = f"at most {format_quantity(half, 'link')}"
    best = ran.sort_values("regret", kind="stable")[:1]
    return [
        Alternative(row.candidate, purpose, row.regret, row.regret_low, row.regret_high)
        for row in best.itertuples()
    ]


def _measure_cautious(runs: Runs, winner: Candidate) -> list[Alternative]:
    """Returns the winner's configuration with a tenth of the leak."""
    question = runs.question
    if question.leak is None:
        return []
    cautious = _lower_leak(winner.algorithm, question, question.leak / 10)
    if cautious is None:
        return []
    label, purpose = write_call(winner.algorithm), f"a leak of {question.leak / 10:g}"
    (trials,) = runs.simulate({label: cautious}, FRESH_LEVEL, _FEW_SEEDS)
    return [Alternative(label, purpose, *summarise(trials["regret"])[:3])]


def _lower_leak(algorithm: Algorithm, question: Question, leak: float) -> Algorithm | None:
    """Returns the same configuration with another leak, or None if it has no leak."""
    names = parameters_of(type(algorithm))
    parameters = {name: getattr(algorithm, name) for name in names if name not in NOISE}
    agents, presence = question.problem.agents, question.problem.presence
    shared: Record = {"agents": agents, "view": question.view, "presence": presence}
    try:
        return at_leak(type(algorithm), leak, **shared, **parameters)
    except Refusal:
        return None
