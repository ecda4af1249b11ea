"""Answers what to run within budgets of leak and links, and how sure the answer is."""

from __future__ import annotations

import inspect
import math
import os
import time as clock
from collections.abc import Sequence
from typing import Any, NoReturn

import pandas as pd

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import format_quantity, real, refuse
from fmab_jax.files import check_folder, check_path
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.planning.answers import Answer, build_answer
from fmab_jax.planning.candidates import Candidate, select_candidates
from fmab_jax.planning.question import OVER, Question
from fmab_jax.planning.race import Goal, Verdict, count_budget_seeds, race
from fmab_jax.planning.runs import Runs, summarise
from fmab_jax.planning.tails import bound_tail
from fmab_jax.planning.texts import write_look
from fmab_jax.records.problem import Problem
from fmab_jax.sweeps.progress import Progress, choose_medium


def plan(
    problem: Problem,
    horizon: int,
    *,
    candidates: Sequence[Algorithm] | None = None,
    time: float | None = None,
    store: str | os.PathLike[str] | None = None,
    client: Any = None,
    progress: bool | None = None,
    **question: Any,
) -> Answer:
    """Finds a configuration whose regret is within x of the best that keeps the budgets.

    Candidates race on common random numbers until one of them is, with the stated confidence, at
    most (1 + ``within``) times as large in mean regret as the best of all. The bounds hold for any
    law of regret, at every look and for all candidates together: they are bets whose money rarely
    grows if the statement is false. Rare large regrets are covered up to the largest regret that a
    run can have, or, where a theorem bounds the regret of an algorithm, up to that bound. A budget
    is for single runs: a candidate keeps it by its structure, or surely in all but a share ``over``
    of its runs.

    Ctrl-C ends the race, and returns the answer so far, once all candidates have run.

    Args:
        problem: Agents, arms and means; means that are estimates have their error there.
        horizon: T.
        candidates: Configured algorithms; by default every known one, over a grid of its own.
        time: Seconds after which the race stops at its next look; all candidates run first.
        store: Folder that keeps all trials: a plan that is killed goes on, and later plans use the
            trials of the same configurations.
        client: A Dask client, as in `sweep`.
        progress: Whether to show what each look sees; by default on a terminal.
        **question: ``leak``, which must be given, and ``view``, ``links``, ``numbers``, ``bits``,
            ``over``, ``graph``, ``components``, ``server``, ``secure``, ``within``,
            ``confidence``, ``proven``, ``max_seeds``, ``root_seed``: options of ``fmab plan``,
            whose help explains them. None is no budget, no noise, no network.

    Raises:
        ValueError: If a value is refused, or nothing can keep the budgets.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=4)
        >>> answer = fmab.plan(
        ...     problem, 1000, leak=1, within=0.5, candidates=[fmab.kl_se(1), fmab.cdp_mab(0.2)]
        ... )
        >>> answer.label, answer.candidates, answer.holds
        ('kl_se()', 2, True)
    """
    began = clock.perf_counter()
    asked = Question(problem, horizon, **question)
    goal = Goal(asked.within, asked.confidence, most=asked.max_seeds, over=asked.over)
    limit = math.inf if time is None else real("time", time, 0.0, math.inf, "give seconds")
    folder = None if store is None else check_path("store", store)
    if folder is not None:
        check_folder("store", folder)
    selection, notes = select_candidates(candidates, asked)
    if count_budget_seeds(goal, len(selection)) > goal.most:
        selection = _keep_sure(selection, goal, notes)
    if goal.over != OVER and math.isfinite(min(asked.budgets)):
        notes = [*notes, f"a budget is for all but {100 * goal.over:g} % of the runs (--over)"]
    with Progress(choose_medium(progress)) as shown:
        runs = Runs(asked, selection, folder, client, progress)

        def report(verdict: Verdict) -> None:
            if shown.is_shown and verdict.winner >= 0:
                regret = summarise(runs.collect(verdict.winner).regret)
                line = write_look(verdict, (selection[verdict.winner].label, regret))
                shown.show_line(f"{clock.perf_counter() - began:.0f} s: {line}")

        verdict = race(
            [candidate.is_sure for candidate in selection],
            runs.observe,
            lambda candidate: bound_tail(runs.configs[candidate]),
            goal,
            is_over_time=lambda: clock.perf_counter() - began > limit,
            report=report,
        )
        if verdict.winner < 0:
            _refuse_budget(runs)
        return build_answer(runs, verdict, notes, began)


def _sign(function: Any) -> None:
    """Names the fields of a question in a signature, for help and editors."""
    signature = inspect.signature(function)
    known = list(signature.parameters.values())[:-1]
    fields = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if x.default is UNSET else x.default,
        )
        for name, x in parameters_of(Question).items()
        if name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*known, *fields])


_sign(plan)


def _keep_sure(selection: Sequence[Candidate], goal: Goal, notes: list[str]) -> list[Candidate]:
    """Returns the candidates whose structure keeps all budgets; seeds cannot show it of others."""
    kept = [candidate for candidate in selection if candidate.is_sure]
    if number := len(selection) - len(kept):
        text = format_quantity(number, "candidate")
        notes.append(
            f"left out: {text} whose structure does not keep the budgets, as seeds cannot show "
            f"that at most {100 * goal.over:g} % of their runs exceed one"
        )
    if not kept:
        allowed = "larger: no candidate's structure keeps the budgets"
        refuse("over", goal.over, allowed, "such as 0.01, or allow more seeds")
    return kept


def _refuse_budget(runs: Runs) -> NoReturn:
    """Refuses a budget; every candidate exceeds one."""
    budgets = runs.question.budgets._asdict()
    least = pd.concat([runs.collect(i) for i in range(len(runs.candidates))]).min()
    finite = [name for name, budget in budgets.items() if math.isfinite(budget)]
    for name in finite:
        if least[name] > budgets[name]:
            allowed = f"more: every candidate exceeds it, the least of a run is {least[name]:g}"
            refuse(name, budgets[name], allowed, "allow more")
    share = f"{100 * runs.question.over:g} %"
    allowed = f"more: every candidate exceeds a budget in more than {share} of its runs"
    refuse(finite[0], budgets[finite[0]], allowed, "allow more, or more runs over it")
