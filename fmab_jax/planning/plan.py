"""Answers what to run within budgets of leak and links, and how sure the answer is."""

from __future__ import annotations

import inspect
import math
import os
import time as clock
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import format_quantity, real, refuse
from fmab_jax.files import check_folder, check_path, mark_write
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.planning.answers import Answer, list_rivals
from fmab_jax.planning.candidates import Candidate, select_candidates
from fmab_jax.planning.figures import build_answer, build_frame
from fmab_jax.planning.question import OVER, Question
from fmab_jax.planning.race import End, Goal, Verdict, count_budget_seeds, race
from fmab_jax.planning.runs import Runs
from fmab_jax.planning.texts import write_seconds, write_within
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

    Ctrl-C ends the race and returns the answer so far, once a candidate has run. What runs at that
    moment goes on in its thread, and is not used.

    Args:
        problem: Agents, arms and means; means that are estimates have their error there.
        horizon: T.
        candidates: Configured algorithms; by default every known one, over a grid of its own.
        time: Seconds after which the race stops at its next look.
        store: Folder that keeps all trials: a plan that is killed goes on, and a later plan with
            other budgets uses them.
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
    goal, limit = (
        Goal(asked.within, asked.confidence, most=asked.max_seeds, over=asked.over),
        math.inf,
    )
    if time is not None:
        limit = real("time", time, 0.0, math.inf, "give seconds")
    folder = None if store is None else _check_folder(store)
    selection, notes = select_candidates(candidates, asked)
    if count_budget_seeds(goal, len(selection)) > goal.most:
        selection = _keep_sure(selection, goal, notes)
    if goal.over != OVER and math.isfinite(min(asked.budgets)):
        notes = [*notes, f"a budget is for all but {100 * goal.over:g} % of the runs (--over)"]
    with ExitStack() as stack:
        reporter = _Reporter(stack.enter_context(Progress(choose_medium(progress))), began)
        runs = Runs(asked, selection, folder, client)
        stack.callback(runs.close)
        reporter.start(runs)
        verdict = race(
            [candidate.is_sure for candidate in selection],
            runs.observe,
            runs.find_tail,
            goal,
            groups=runs.groups,
            find_least=runs.find_least,
            is_over_time=lambda: clock.perf_counter() - began > limit,
            report=reporter.report,
        )
        if verdict.winner < 0:
            _refuse_budget(runs)
        if verdict.end == End.STOPPED:
            # Whoever watches signals waits for the answer.
            stack.enter_context(mark_write())
        return build_answer(runs, verdict, notes, began, stack)


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


def _check_folder(store: object) -> Path:
    """Returns the folder of a plan's trials; refuses files, and the store of a sweep."""
    folder = check_path("store", store)
    if folder.exists() and not folder.is_dir():
        refuse("store", str(folder), "a folder, not a file", "name another one")
    if (folder / "run.json").exists():
        refuse("store", str(folder), "a folder of plans, not of a sweep", "name another one")
    check_folder("store", folder)
    return folder


def _refuse_budget(runs: Runs) -> NoReturn:
    """Refuses a budget; every candidate exceeds one."""
    least, budgets = runs.find_cheapest(), runs.question.budgets._asdict()
    finite = [name for name, budget in budgets.items() if math.isfinite(budget)]
    for name in finite:
        if least[name] > budgets[name]:
            allowed = f"more: every candidate exceeds it, the least of a run is {least[name]:g}"
            refuse(name, budgets[name], allowed, "allow more")
    share = f"{100 * runs.question.over:g} %"
    allowed = f"more: every candidate exceeds a budget in more than {share} of its runs"
    refuse(finite[0], budgets[finite[0]], allowed, "allow more, or more runs over it")


class _Reporter:
    """Shows how a race goes, a line a look, and compiles what comes next."""

    runs: Runs

    def __init__(self, progress: Progress, began: float) -> None:
        self._progress, self._began = progress, began

    def start(self, runs: Runs) -> None:
        """Shows how much there is to do."""
        self.runs, runs.on_wait = runs, self.report_wait
        self._total = format_quantity(len(runs.candidates), "candidate")
        self._programs = format_quantity(len(runs.groups), "program")
        seconds = write_seconds(runs.estimate_seconds(0, range(len(runs.candidates))))
        self._show(f"{self._total}, {self._programs}, about {seconds} to compile if none is kept")

    def report_wait(self) -> None:
        """Shows that a program is still being compiled, or runs."""
        trials = format_quantity(self.runs.trials, "trial")
        self._show(f"{self.runs.compiled} of {self._programs} compiled, {trials} done")

    def report(self, verdict: Verdict) -> None:
        """Shows what a look saw."""
        runs = self.runs
        runs.prepare(verdict.waiting)
        if not self._progress.is_shown:
            return
        ran = f"{sum(seeds > 0 for seeds in verdict.seeds)} of {self._total} ran"
        if verdict.winner < 0:
            self._show(f"{ran}, none keeps a budget")
            return
        frame = build_frame(runs, verdict)
        best, rivals = frame.iloc[0], list_rivals(frame)
        words = [f"so far {best.candidate}: regret {best.regret:,.0f}"]
        words[0] += f" [{best.regret_low:,.0f}, {best.regret_high:,.0f}]"
        for row in rivals[rivals.over == ""][:1].itertuples():
            words.append(f"next {row.candidate}, {100 * row.more:+,.1f} %")
        if verdict.waiting:
            words = [f"{ran}, {runs.compiled} of {self._programs} compiled", *words]
        elif not verdict.holds:
            if math.isfinite(verdict.within):
                words.append(f"within {write_within(verdict.within)} of the best")
            words.append(_describe_obstacles(verdict))
        seconds = runs.estimate_seconds(verdict.missing, verdict.waiting)
        words.append("decided" if verdict.holds else f"about {write_seconds(seconds)} more")
        self._show("; ".join(filter(None, words)))

    def _show(self, line: str) -> None:
        self._progress.show_line(f"{clock.perf_counter() - self._began:.0f} s: {line}")


def _describe_obstacles(verdict: Verdict) -> str:
    """Returns what keeps an answer from being decided, in words."""
    words = [format_quantity(len(verdict.near), "rival") + " in the way"] if verdict.near else []
    if len(verdict.near) < len(verdict.rivals):
        words.append(f"rare losses may add {verdict.rare:,.0f}")
    if not verdict.keeps:
        words.append("nothing shows yet that it keeps the budgets")
    return ", ".join(words)
