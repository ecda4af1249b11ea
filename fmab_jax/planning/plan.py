"""Answers what to run within budgets of leak and links, and how sure the answer is."""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.accountant import Leak
from fmab_jax.analysis.leaks import NOISE, at_leak, measure_leak
from fmab_jax.errors import Refusal, count, format_quantity, real, refuse
from fmab_jax.files import check_folder, check_path, error_stream, mark_write
from fmab_jax.parameters import VIEWS, parameters_of
from fmab_jax.planning.candidates import (
    Candidate,
    Setting,
    check_setting,
    select_candidates,
    write_call,
)
from fmab_jax.planning.race import OVER, End, Goal, Verdict, count_budget_seeds, race
from fmab_jax.planning.runs import (
    FIRST_SEEDS,
    FRESH_LEVEL,
    FRESH_SEEDS,
    Look,
    Runs,
    Summary,
    Trials,
    compare_means,
    summarise,
)
from fmab_jax.records.problem import Problem
from fmab_jax.run.resources import MAX_SEEDS

_BUDGETS = ("links", "numbers", "bits")
# Rivals that an answer has, and seeds of the answer at a smaller leak.
_MOST_RIVALS, _FEW_SEEDS = 8, 500
# Of these, those that exceed a budget.
_MOST_OVER = 3


class Rival(NamedTuple):
    """A candidate that ran and is not the answer.

    Attributes:
        label: The candidate.
        seeds: Its seeds in the race.
        mean: Mean regret over these.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
        more: How much more it loses than the answer on the same seeds, as a part of the answer's
            mean.
        more_low: Lower end of the 95 % interval of ``more``.
        more_high: Upper end.
        budget: The budget that its runs exceed; "" for none.
        most: Its most links, numbers or bits, where it exceeds that budget; else NaN.
    """

    label: str
    seeds: int
    mean: float
    low: float
    high: float
    more: float
    more_low: float
    more_high: float
    budget: str
    most: float


class Alternative(NamedTuple):
    """What another budget would cost.

    Attributes:
        label: The configuration.
        purpose: What it is for, such as "at most 150 links".
        mean: Mean regret.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
    """

    label: str
    purpose: str
    mean: float
    low: float
    high: float


class Times(NamedTuple):
    """Seconds of a plan.

    Attributes:
        elapsed_s: Of all.
        compile_s: Of compilers, in all threads together.
        run_s: Of simulation.
        missing_s: That the goal would still need, an estimate; 0 if it holds.
    """

    elapsed_s: float
    compile_s: float
    run_s: float
    missing_s: float


class Plan(NamedTuple):
    """The answer of `plan`.

    Attributes:
        algorithm: The configuration to run.
        label: Its call; noise and network are in it only where another candidate has the same one.
        holds: Whether its mean regret is within ``within`` of the best candidate's, as asked.
        within: The x that is shown; larger than asked where seeds or time were spent before. It is
            about the candidates that ran, or that need not run.
        goal: The x that was asked for.
        confidence: Of this statement.
        end: Why the race ended: "decided", "time", "seeds" or "stopped" (Ctrl-C).
        candidates: Number of candidates.
        survivors: Labels of candidates that are not surely worse, the answer first: a statement of
            its own, at the same confidence.
        undecided: Labels of candidates that ran and may be better by more than ``goal``.
        waiting: Labels of candidates that have not run, and may be better.
        outclassed: Labels of candidates that need not run: they surely lose more.
        infeasible: Labels of candidates whose runs exceed a budget.
        keeps: Whether the answer is shown to keep the budgets.
        seeds: Trials of the race, of all candidates together.
        most_seeds: Seeds of the candidate with most.
        rare: Bounds of what the answer's mean regret may have beyond its runs, at this confidence:
            that of its seeds, and what a theorem allows, which no seeds lower.
        limit: Largest regret that this bound counts, and the theorem of docs/theory.md that bounds
            what is beyond; "" for none, where no run can lose more.
        rare_trials: Trials of the answer beyond those of all others, where no theorem bounds its
            losses; they show that large losses are rare.
        missing_trials: More trials that the goal would need, an estimate; 0 if it holds.
        fresh_seeds: Seeds of the figures that follow, which the race did not use; 0 if they are
            those of the race.
        regret: At the horizon.
        links: Links that are priced.
        numbers: Numbers on all links.
        bits: Bits on all links.
        final_gap: Gap of what agents play at the horizon.
        leak: Epsilon of one reward by view; infinity for no bound, 0 where nothing is sent. Views
            that nobody has are left out.
        delta: Delta at which each of them holds; 0 for pure differential privacy.
        remark: What no theorem covers; "" for nothing.
        rivals: The best candidates that are not the answer, best first.
        front: The best within half of the links, and the answer at a tenth of the leak.
        notes: What the budgets leave out, and what was not tried.
        times: What took how long.
        race: Rows of a label, seeds, mean regret and whether the candidate survives.
        looks: What each look of the race saw, in its order.
    """

    algorithm: Algorithm
    label: str
    holds: bool
    within: float
    goal: float
    confidence: float
    end: str
    candidates: int
    survivors: tuple[str, ...]
    undecided: tuple[str, ...]
    waiting: tuple[str, ...]
    outclassed: tuple[str, ...]
    infeasible: tuple[str, ...]
    keeps: bool
    seeds: int
    most_seeds: int
    rare: tuple[float, float]
    limit: tuple[float, str]
    rare_trials: int
    missing_trials: int
    fresh_seeds: int
    regret: Summary
    links: Summary
    numbers: Summary
    bits: Summary
    final_gap: float
    leak: dict[str, float]
    delta: dict[str, float]
    remark: str
    rivals: tuple[Rival, ...]
    front: tuple[Alternative, ...]
    notes: tuple[str, ...]
    times: Times
    race: tuple[tuple[str, int, float, bool], ...]
    looks: tuple[Look, ...]


def plan(
    problem: Problem,
    horizon: int,
    *,
    leak: float | None,
    view: str = "messages",
    links: float | None = None,
    numbers: float | None = None,
    bits: float | None = None,
    over: float = OVER,
    graph: object = None,
    components: object = None,
    server: bool = True,
    secure: bool = False,
    within: float = 0.05,
    confidence: float = 0.95,
    candidates: Sequence[Algorithm] | None = None,
    proven: bool = False,
    time: float | None = None,
    store: str | os.PathLike[str] | None = None,
    max_seeds: int = 10**6,
    root_seed: int = 0,
    client: Any = None,
    progress: bool = False,
) -> Plan:
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
        problem: Agents, arms and means. With its ``means_error`` each seed draws means around the
            estimates, the same for every candidate; regret and its interval cover both sources of
            chance.
        horizon: T.
        leak: Epsilon of one reward, exactly, in the view; None for no noise.
        view: "messages", "sum" or "actions"; see `find_leak`.
        links: Most links of a run; None for no budget.
        numbers: Most numbers on all links of a run.
        bits: Most bits on all links of a run.
        over: Share of runs that may exceed a budget, in [0, 1): 0.5 limits the median, 0 asks for
            a structure that keeps it.
        graph: Graph of the agents, for algorithms over a graph.
        components: Components of the agents, for algorithms over components.
        server: Whether there is a server.
        secure: Whether there is a secure sum over agents.
        within: x > 0.
        confidence: In (0, 1).
        candidates: Configured algorithms; by default every known one, over a grid of its own.
        proven: Whether to leave out values that the sources' theorems do not cover.
        time: Seconds after which the race stops at its next look.
        store: Folder that keeps all trials: a plan that is killed goes on, and a later plan with
            other budgets uses them.
        max_seeds: Most seeds of a candidate.
        root_seed: Selects all randomness.
        client: A Dask client, as in `sweep`.
        progress: Whether to print a line for each look, on standard error.

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
    setting = check_setting(
        problem,
        horizon,
        leak=leak,
        view=view,
        links=links,
        numbers=numbers,
        bits=bits,
        graph=graph,
        components=components,
        server=server,
        secure=secure,
        proven=proven,
    )
    goal = Goal(
        real("within", within, 0.0, 10.0, "use 0.05 for 5 %", open_low=True),
        real("confidence", confidence, 0.0, 1.0, "use 0.95", open_low=True, open_high=True),
        FIRST_SEEDS,
        count("max_seeds", max_seeds, FIRST_SEEDS, MAX_SEEDS, "give the most seeds of a candidate"),
        real("over", over, 0.0, 1.0, "use 0.01 for one run in a hundred", open_high=True),
    )
    limit = math.inf if time is None else real("time", time, 0.0, math.inf, "give seconds")
    root = count("root_seed", root_seed, 0, 2**32 - 1, "give a seed")
    folder = None if store is None else _check_folder(store)
    selection, notes = select_candidates(candidates, setting)
    if count_budget_seeds(goal, len(selection)) > goal.most:
        selection = _keep_sure(selection, goal, notes)
    if over != OVER and math.isfinite(min(setting.links, setting.numbers, setting.bits)):
        notes = [*notes, f"a budget is for all but {100 * goal.over:g} % of the runs (--over)"]
    with ExitStack() as stack:
        runs = Runs(setting, selection, root, folder, client)
        stack.callback(runs.close)
        reporter = _Reporter(runs, began) if progress else None
        runs.on_wait = reporter.report_wait if reporter else lambda: None
        verdict = race(
            [candidate.is_sure for candidate in selection],
            runs.observe,
            runs.find_tail,
            goal,
            groups=runs.groups,
            find_least=runs.find_least,
            is_over_time=lambda: clock.perf_counter() - began > limit,
            report=lambda verdict: _report(verdict, runs, reporter),
        )
        if verdict.winner < 0:
            _refuse_budget(setting, runs, goal.over)
        if verdict.end == End.STOPPED:
            # Whoever watches signals waits for the answer.
            stack.enter_context(mark_write())
        return _answer(runs, verdict, goal, notes, began, stack)


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


def _report(verdict: Verdict, runs: Runs, reporter: _Reporter | None) -> None:
    """Compiles what comes next, and prints what a look shows."""
    runs.prepare(verdict.waiting)
    if reporter is not None:
        reporter.report(verdict)


def _check_folder(store: object) -> Path:
    """Returns the folder of a plan's trials; refuses files, and the store of a sweep."""
    folder = check_path("store", store)
    if folder.exists() and not folder.is_dir():
        refuse("store", str(folder), "a folder, not a file", "name another one")
    if (folder / "run.json").exists():
        refuse("store", str(folder), "a folder of plans, not of a sweep", "name another one")
    check_folder("store", folder)
    return folder


def _refuse_budget(setting: Setting, runs: Runs, over: float) -> NoReturn:
    """Refuses a budget; every candidate exceeds one."""
    least = runs.find_cheapest()
    budgets = {name: getattr(setting, name) for name in least}
    finite = [name for name, budget in budgets.items() if math.isfinite(budget)]
    for name in finite:
        if least[name] > budgets[name]:
            allowed = f"more: every candidate exceeds it, the least of a run is {least[name]:g}"
            refuse(name, budgets[name], allowed, "allow more")
    allowed = f"more: every candidate exceeds a budget in more than {100 * over:g} % of its runs"
    refuse(finite[0], budgets[finite[0]], allowed, "allow more, or more runs over it")


class _Reporter:
    """Prints how a race goes, a line a look."""

    def __init__(self, runs: Runs, began: float) -> None:
        self.began = began
        self.runs, programs = runs, format_quantity(len(runs.groups), "program")
        number = format_quantity(len(runs.candidates), "candidate")
        seconds = runs.estimate_seconds(0, range(len(runs.candidates)))
        self._print(
            f"{number}, {programs}, about {write_seconds(seconds)} to compile if none is kept"
        )

    def report_wait(self) -> None:
        """Prints that a program is still being compiled, or runs."""
        runs = self.runs
        programs = format_quantity(len(runs.groups), "program")
        trials = format_quantity(runs.trials, "trial")
        self._print(f"{runs.compiled} of {programs} compiled, {trials} done")

    def report(self, verdict: Verdict) -> None:
        """Prints what a look shows."""
        runs, total = self.runs, len(self.runs.candidates)
        ran = sum(seeds > 0 for seeds in verdict.seeds)
        if verdict.winner < 0:
            self._print(f"{ran} of {format_quantity(total, 'candidate')} ran, none keeps a budget")
            return
        candidate = runs.candidates[verdict.winner]
        regret = summarise(runs.collect(verdict.winner)["regret"])
        seconds = runs.estimate_seconds(verdict.missing, verdict.waiting)
        words = [f"so far {candidate.label}: regret {regret.mean:,.0f}"]
        words[0] += f" [{regret.low:,.0f}, {regret.high:,.0f}]"
        if rivals := _list_rivals(runs, verdict):
            nearest = next((rival for rival in rivals if not rival.budget), None)
            if nearest is not None:
                words.append(f"next {nearest.label}, {100 * nearest.more:+,.1f} %")
        if verdict.waiting:
            programs = f"{runs.compiled} of {format_quantity(len(runs.groups), 'program')} compiled"
            words = [f"{ran} of {format_quantity(total, 'candidate')} ran, {programs}", *words]
        elif not verdict.holds:
            if math.isfinite(verdict.within):
                words.append(f"within {write_within(verdict.within)} of the best")
            words.append(_describe_obstacles(verdict))
        if verdict.holds:
            words.append("decided")
        else:
            words.append(f"about {write_seconds(seconds)} more")
        self._print("; ".join(filter(None, words)))

    def _print(self, line: str) -> None:
        line = f"{clock.perf_counter() - self.began:.0f} s: {line}"
        print(line, file=error_stream(), flush=True)


def _describe_obstacles(verdict: Verdict) -> str:
    """Returns what keeps an answer from being decided, in words."""
    words = [format_quantity(len(verdict.near), "rival") + " in the way"] if verdict.near else []
    if len(verdict.near) < len(verdict.rivals):
        words.append(f"rare losses may add {verdict.rare:,.0f}")
    if not verdict.keeps:
        words.append("nothing shows yet that it keeps the budgets")
    return ", ".join(words)


def write_within(within: float) -> str:
    """Writes x: "5 %", "a factor of 13"."""
    return f"{100 * within:.3g} %" if within < 10.0 else f"a factor of {1.0 + within:,.0f}"


def write_seconds(seconds: float) -> str:
    """Writes a time to one digit or two: "40 s", "3 min"."""
    if seconds < 90.0:
        return f"{max(1, round(seconds, -1 if seconds >= 20 else 0)):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _answer(
    runs: Runs,
    verdict: Verdict,
    goal: Goal,
    notes: Sequence[str],
    began: float,
    stack: ExitStack,
) -> Plan:
    """Measures the winner on fresh seeds, and collects what the race shows."""
    setting, candidates = runs.setting, runs.candidates
    winner, means = candidates[verdict.winner], verdict.means
    tail = verdict.tail
    assert tail is not None
    trials, fresh_seeds, front = _measure(runs, verdict, stack)
    leaks = _measure_leaks(winner.algorithm, setting.problem)
    missing_s = runs.estimate_seconds(verdict.missing, verdict.waiting)
    elapsed = clock.perf_counter() - began
    settled = {verdict.winner, *verdict.waiting, *verdict.infeasible}
    return Plan(
        algorithm=winner.algorithm,
        label=winner.label,
        holds=verdict.holds,
        within=goal.within if verdict.holds else verdict.within,
        goal=goal.within,
        confidence=goal.confidence,
        end=verdict.end.value,
        candidates=len(candidates),
        survivors=tuple(candidates[i].label for i in verdict.survivors),
        undecided=tuple(candidates[i].label for i in verdict.near),
        waiting=tuple(candidates[i].label for i in verdict.waiting),
        outclassed=tuple(
            x.label
            for i, x in enumerate(candidates)
            if verdict.seeds[i] < FIRST_SEEDS and i not in settled
        ),
        infeasible=tuple(candidates[i].label for i in verdict.infeasible),
        keeps=verdict.keeps,
        seeds=sum(verdict.seeds),
        most_seeds=max(verdict.seeds),
        rare=(verdict.rare, tail.excess),
        limit=(tail.limit, tail.source),
        rare_trials=0 if tail.source or not winner.is_sure else _count_alone(verdict),
        missing_trials=verdict.missing,
        fresh_seeds=fresh_seeds,
        regret=summarise(trials["regret"]),
        links=summarise(trials["links"]),
        numbers=summarise(trials["numbers"]),
        bits=summarise(trials["bits"]),
        final_gap=float(np.mean(trials["final_gap"])),
        leak={view: leak.epsilon for view, leak in leaks.items()},
        delta={view: leak.delta for view, leak in leaks.items()},
        remark=winner.remark,
        rivals=tuple(_list_rivals(runs, verdict)),
        front=tuple(front),
        notes=tuple(notes),
        times=Times(elapsed, runs.compile_s, runs.run_s, 0.0 if verdict.holds else missing_s),
        race=tuple(
            (candidate.label, verdict.seeds[i], means[i], i in verdict.survivors)
            for i, candidate in enumerate(candidates)
            if verdict.seeds[i]
        ),
        looks=tuple(runs.looks),
    )


def _count_alone(verdict: Verdict) -> int:
    """Returns the seeds of the winner that no other candidate has."""
    others = [seeds for i, seeds in enumerate(verdict.seeds) if i != verdict.winner]
    return max(0, verdict.seeds[verdict.winner] - max([FIRST_SEEDS, *others]))


def _measure(
    runs: Runs, verdict: Verdict, stack: ExitStack
) -> tuple[Trials, int, list[Alternative]]:
    """Returns trials for the winner's figures, how many of them are fresh, and alternatives."""
    winner, front = runs.candidates[verdict.winner], _find_frugal(runs, verdict)
    own = runs.collect(verdict.winner)
    if verdict.end in (End.STOPPED, End.TIME):
        return own, 0, front
    seeds = FRESH_SEEDS if verdict.holds else min(FRESH_SEEDS, len(own["regret"]))
    try:
        if verdict.holds:
            front += _measure_cautious(runs, winner)
        (trials,) = runs.simulate({winner.label: winner.algorithm}, FRESH_LEVEL, seeds)
    except KeyboardInterrupt:
        stack.enter_context(mark_write())
        return own, 0, front
    return trials, seeds, front


def _list_rivals(runs: Runs, verdict: Verdict) -> list[Rival]:
    """Returns the best candidates that ran and are not the answer, best first."""
    own, rivals = runs.collect(verdict.winner)["regret"], []
    for i, candidate in enumerate(runs.candidates):
        if i == verdict.winner or not verdict.seeds[i]:
            continue
        regret = runs.collect(i)["regret"]
        shared = min(len(regret), len(own))
        if np.array_equal(regret[:shared], own[:shared]):
            continue  # the same runs under another name
        mean, low, high = summarise(regret)[:3]
        more = compare_means(regret, own)
        over = [
            (name, most)
            for name in _BUDGETS
            if i in verdict.infeasible
            and (most := runs.find_most(i, name)) > getattr(runs.setting, name)
        ]
        budget, most = over[0] if over else ("", math.nan)
        rivals.append(Rival(candidate.label, len(regret), mean, low, high, *more, budget, most))
    rivals.sort(key=lambda rival: rival.mean)
    dropped = [rival for rival in rivals if rival.budget][_MOST_OVER:]
    return [rival for rival in rivals if rival not in dropped][:_MOST_RIVALS]


def _measure_leaks(algorithm: Algorithm, problem: Problem) -> dict[str, Leak]:
    """Returns the leaks of the views that somebody has."""
    leaks = {
        view: measure_leak(algorithm, problem.agents, view, presence=problem.presence)
        for view in VIEWS
    }
    return {view: leak for view, leak in leaks.items() if leak is not None}


def _find_frugal(runs: Runs, verdict: Verdict) -> list[Alternative]:
    """Returns the best candidate of the race within half of the links."""
    setting = runs.setting
    if not math.isfinite(setting.links):
        return []
    half = math.floor(setting.links / 2)
    means = dict(enumerate(verdict.means))
    ran = [i for i in means if verdict.seeds[i] >= FIRST_SEEDS and i not in verdict.infeasible]
    for i in sorted(ran, key=means.__getitem__):
        if runs.find_most(i, "links") <= half:
            regret = summarise(runs.collect(i)["regret"])
            label = runs.candidates[i].label
            purpose = f"at most {format_quantity(half, 'link')}"
            return [Alternative(label, purpose, *regret[:3])]
    return []


def _measure_cautious(runs: Runs, winner: Candidate) -> list[Alternative]:
    """Returns the winner's configuration with a tenth of the leak."""
    setting = runs.setting
    if setting.leak is None:
        return []
    cautious = _lower_leak(winner.algorithm, setting)
    if cautious is None:
        return []
    label, purpose = write_call(winner.algorithm), f"a leak of {setting.leak / 10:g}"
    (trials,) = runs.simulate({label: cautious}, FRESH_LEVEL, _FEW_SEEDS)
    return [Alternative(label, purpose, *summarise(trials["regret"])[:3])]


def _lower_leak(algorithm: Algorithm, setting: Setting) -> Algorithm | None:
    """Returns the same configuration with a tenth of the leak, or None if it has no leak."""
    assert setting.leak is not None
    names = parameters_of(type(algorithm))
    parameters = {name: getattr(algorithm, name) for name in names if name not in NOISE}
    goal, agents = setting.leak / 10, setting.problem.agents
    try:
        return at_leak(
            type(algorithm),
            goal,
            agents=agents,
            view=setting.view,
            presence=setting.problem.presence,
            **parameters,
        )
    except Refusal:
        return None
