"""The answer of a plan: a configuration, a frame of all candidates, and how sure it is."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.accountant import Leak
from fmab_jax.analysis.leaks import measure_leak
from fmab_jax.parameters import VIEWS
from fmab_jax.planning.candidates import write_call
from fmab_jax.planning.question import Question, Spending
from fmab_jax.planning.race import End, Verdict
from fmab_jax.planning.runs import (
    FRESH_LEVEL,
    FRESH_SEEDS,
    Look,
    Runs,
    Summary,
    compare_means,
    summarise,
)
from fmab_jax.planning.tails import Tail
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.api import Study

# Rivals that a text lists, and those of them that exceed a budget.
_MOST_RIVALS, _MOST_OVER = 8, 3


class Standing(enum.StrEnum):
    """What the race says of a candidate at its end."""

    ANSWER = "answer"
    SURVIVES = "not surely worse"
    WORSE = "surely worse"
    OVER = "exceeds a budget"
    UNSHOWN = "may exceed a budget"


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of `plan`; ``print(answer)`` shows it in words.

    Attributes:
        question: What was asked.
        algorithm: The configuration to run.
        frame: A row for each candidate, the answer first, then the others by regret. Columns:
            ``candidate``, its call, with noise and network only where another one has the same;
            ``state``, see `Standing`, a statement of its own at the same confidence;
            ``undecided``, whether it may be better by more than asked; ``seeds`` in the race;
            ``regret``, its mean, with the 95 % interval ``regret_low``, ``regret_high``; ``more``,
            how much more it loses than the answer on the same seeds, as a part of the answer's
            mean, with ``more_low`` and ``more_high`` (NaN where the answer loses nothing); the
            most of a run, ``links_max``, ``numbers_max``, ``bits_max``; ``over``, the budget that
            it exceeds.
        holds: Whether its mean regret is within ``within`` of the best candidate's, as asked.
        within: The x that is shown; larger than asked where seeds or time were spent before.
        end: Why the race ended: "decided", "time", "seeds" or "stopped" (Ctrl-C).
        keeps: Whether the answer is shown to keep the budgets.
        rare: Bound of what the answer's mean regret may have beyond its runs, at this confidence.
        tail: What bounds its larger losses: a theorem of docs/theory.md, or the largest regret.
        missing_trials: More trials that the goal would need, an estimate; 0 if it holds.
        fresh_seeds: Seeds of the figures that follow, which the race did not use; 0 if they are
            those of the race.
        regret: At the horizon.
        links: Links that the communication cost counts.
        numbers: Numbers on all links.
        bits: Bits on all links.
        final_gap: Gap of what agents play at the horizon.
        leaks: What one reward leaks, by view; views that nobody has are left out.
        remark: What no theorem covers; "" for nothing.
        notes: What the budgets leave out, and what was not tried.
        elapsed_s: Seconds of the plan.
        compile_s: Of them, those that trials waited for compilers.
        looks: What each look of the race saw, in its order.
    """

    question: Question
    algorithm: Algorithm
    frame: pd.DataFrame
    holds: bool
    within: float
    end: str
    keeps: bool
    rare: float
    tail: Tail
    missing_trials: int
    fresh_seeds: int
    regret: Summary
    links: Summary
    numbers: Summary
    bits: Summary
    final_gap: float
    leaks: dict[str, Leak]
    remark: str
    notes: tuple[str, ...]
    elapsed_s: float
    compile_s: float
    looks: tuple[Look, ...]

    @property
    def label(self) -> str:
        """The call of the answer, as in the frame."""
        return str(self.frame.candidate.iloc[0])

    @property
    def study(self) -> Study:
        """The study that runs the answer, on 1,000 seeds: run it, save it, or read its words."""
        problem, horizon = self.question.problem, self.question.horizon
        root_seed = self.question.root_seed
        return Study(self.algorithm, problem, horizon=horizon, seeds=1000, root_seed=root_seed)

    @property
    def candidates(self) -> int:
        """Number of candidates."""
        return len(self.frame)

    @property
    def seeds(self) -> int:
        """Trials of the race, of all candidates together."""
        return int(self.frame.seeds.sum())

    @property
    def leak(self) -> dict[str, float]:
        """Epsilon of one reward by view; infinity for no bound, 0 where nothing is sent."""
        return {view: leak.epsilon for view, leak in self.leaks.items()}

    @property
    def rivals(self) -> pd.DataFrame:
        """Rows of the best candidates that are not the answer, best first."""
        rows = self.frame.iloc[1:].sort_values("regret", kind="stable")
        # The same runs under another name.
        rows = rows[(rows.more != 0.0) | (rows.more_low != rows.more_high)]
        dropped = rows.index[rows.over != ""][_MOST_OVER:]
        return rows.drop(dropped)[:_MOST_RIVALS]

    def list_labels(self, state: Standing) -> list[str]:
        """Returns the labels of candidates in a state."""
        return list(self.frame.candidate[self.frame.state == state])

    def __str__(self) -> str:
        from fmab_jax.planning.texts import write_answer

        return "\n".join(write_answer(self, f"  {write_call(self.algorithm, is_whole=True)}"))

    def build_document(self) -> Record:
        """Returns the answer as JSON values: null for no bound, and for nothing to measure."""
        from fmab_jax.planning.texts import write_statement

        document = {
            "statement": write_statement(self),
            "label": self.label,
            **vars(self),
            "question": self.question.describe(),
            "leaks": {view: leak[:2] for view, leak in self.leaks.items()},
            "seeds": self.seeds,
            "candidates": self.frame.to_dict("records"),
        }
        absent = "algorithm", "frame"
        return {name: _make_plain(x) for name, x in document.items() if name not in absent}


def _make_plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(name): _make_plain(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_make_plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def build_answer(runs: Runs, verdict: Verdict, notes: Sequence[str], began: float) -> Answer:
    """Measures the winner on fresh seeds, and collects what the race shows."""
    question, winner, tail = runs.question, runs.candidates[verdict.winner], verdict.tail
    assert tail is not None
    trials, fresh_seeds = runs.collect(verdict.winner), 0
    if verdict.end in (End.DECIDED, End.SEEDS):
        seeds = FRESH_SEEDS if verdict.holds else min(FRESH_SEEDS, len(trials))
        with suppress(KeyboardInterrupt):
            (trials,) = runs.simulate({winner.label: winner.algorithm}, FRESH_LEVEL, seeds)
            fresh_seeds = seeds
    agents, presence = question.problem.agents, question.problem.presence
    leaks = {x: measure_leak(winner.algorithm, agents, x, presence=presence) for x in VIEWS}
    return Answer(
        question=question,
        algorithm=winner.algorithm,
        frame=build_frame(runs, verdict),
        holds=verdict.holds,
        within=question.within if verdict.holds else verdict.within,
        end=verdict.end.value,
        keeps=verdict.keeps,
        rare=verdict.rare,
        tail=tail,
        missing_trials=verdict.missing,
        fresh_seeds=fresh_seeds,
        **{name: summarise(trials[name]) for name in ("regret", *Spending._fields)},
        final_gap=float(np.mean(trials.final_gap)),
        leaks={view: leak for view, leak in leaks.items() if leak is not None},
        remark=winner.remark,
        notes=tuple(notes),
        elapsed_s=time.perf_counter() - began,
        compile_s=runs.compile_s,
        looks=tuple(runs.looks),
    )


def build_frame(runs: Runs, verdict: Verdict) -> pd.DataFrame:
    """Returns the frame of all candidates, see `Answer`."""
    winner, names = runs.collect(verdict.winner), list(Spending._fields)
    budgets, rows = runs.question.budgets._asdict(), []
    for i, candidate in enumerate(runs.candidates):
        trials = runs.collect(i)
        regret, most = summarise(trials.regret), trials[names].max()
        more = compare_means(trials.regret.to_numpy(), winner.regret.to_numpy())
        row: Record = {
            "candidate": candidate.label,
            "state": _find_state(verdict, i).value,
            "undecided": i in verdict.near,
            "seeds": verdict.seeds[i],
            "regret": regret.mean,
            "regret_low": regret.low,
            "regret_high": regret.high,
            "more": more[0],
            "more_low": more[1],
            "more_high": more[2],
            **{f"{name}_max": float(most[name]) for name in names},
            "over": "",
        }
        if i in verdict.infeasible:
            row["over"] = next(name for name in names if most[name] > budgets[name])
        rows.append(row)
    frame = pd.DataFrame(rows).sort_values("regret", kind="stable")
    return frame.loc[[verdict.winner, *frame.index.drop(verdict.winner)]].reset_index(drop=True)


def _find_state(verdict: Verdict, candidate: int) -> Standing:
    states = {
        Standing.ANSWER: (verdict.winner,),
        Standing.OVER: verdict.infeasible,
        Standing.UNSHOWN: verdict.unshown,
        Standing.SURVIVES: verdict.survivors,
    }
    matches = (state for state, members in states.items() if candidate in members)
    return next(matches, Standing.WORSE)
