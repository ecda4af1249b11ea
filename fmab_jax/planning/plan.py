"""Answers what to run within budgets of leak and links, and how sure the answer is."""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.accountant import Leak
from fmab_jax.analysis.leaks import NOISE, at_leak, measure_leak
from fmab_jax.core import normal
from fmab_jax.core.problems import Problem
from fmab_jax.errors import Refusal, count, flag, format_quantity, real, refuse
from fmab_jax.files import check_folder, check_path
from fmab_jax.parameters import VIEWS, parameters_of
from fmab_jax.planning.candidates import Setting, check_setting, select_candidates, write_call
from fmab_jax.planning.pruning import prune
from fmab_jax.planning.race import Goal, Verdict, race
from fmab_jax.planning.runs import (
    FIRST_SEEDS,
    FRESH_LEVEL,
    FRESH_SEEDS,
    Look,
    Runs,
    Summary,
    summarise,
)
from fmab_jax.run.resources import MAX_SEEDS


class Plan(NamedTuple):
    """The answer of `plan`.

    Attributes:
        algorithm: The configuration to run.
        label: Its call; noise and network are in it only where another candidate has the same one.
        holds: Whether its mean regret is within ``within`` of the best candidate's, as asked.
        within: The x that is shown; larger than asked where seeds or time were spent before.
        confidence: Of this statement.
        candidates: Number of candidates, with those that theorems rule out before the race.
        survivors: Labels of candidates that are not surely worse, the answer first.
        infeasible: Labels of candidates whose runs exceed a budget.
        seeds: Trials of the race, of all candidates together.
        most_seeds: Seeds of the candidate with most.
        missing_seeds: More seeds that the goal would need, an estimate; 0 if it holds.
        regret: On fresh seeds, as the next four.
        links: Links that are priced.
        numbers: Numbers on all links.
        bits: Bits on all links.
        final_gap: Gap of what agents play at the horizon.
        leak: Epsilon of one reward by view; infinity for no bound, 0 where nothing is sent. Views
            that nobody has are left out.
        delta: Delta at which each of them holds; 0 for pure differential privacy.
        remark: What no theorem covers; "" for nothing.
        second: Label of the next best candidate, "" for none, and its mean regret in the race.
        front: Rows of a label, what it is for, and its mean regret.
        notes: What the budgets leave out.
        elapsed_s: Time of the plan.
        race: Rows of a label, seeds, mean regret and whether the candidate survives.
        looks: What each look of the race saw, in its order.
    """

    algorithm: Algorithm
    label: str
    holds: bool
    within: float
    confidence: float
    candidates: int
    survivors: tuple[str, ...]
    infeasible: tuple[str, ...]
    seeds: int
    most_seeds: int
    missing_seeds: int
    regret: Summary
    links: Summary
    numbers: Summary
    bits: Summary
    final_gap: float
    leak: dict[str, float]
    delta: dict[str, float]
    remark: str
    second: tuple[str, float]
    front: tuple[tuple[str, str, float], ...]
    notes: tuple[str, ...]
    elapsed_s: float
    race: tuple[tuple[str, int, float, bool], ...]
    looks: tuple[Look, ...]


def plan(
    problem: Problem,
    horizon: int,
    *,
    leak: float | None,
    view: str = "messages",
    means_error: float | None = None,
    links: float | None = None,
    numbers: float | None = None,
    bits: float | None = None,
    graph: object = None,
    components: object = None,
    server: bool = True,
    secure: bool = False,
    within: float = 0.05,
    confidence: float = 0.95,
    candidates: Sequence[Algorithm] | None = None,
    proven: bool = False,
    strict: bool = False,
    time: float | None = None,
    store: str | os.PathLike[str] | None = None,
    max_seeds: int = 10**6,
    root_seed: int = 0,
    client: Any = None,
    progress: bool = False,
) -> Plan:
    """Finds a configuration whose regret is within x of the best that keeps the budgets.

    Candidates race on common random numbers until one of them is, with the stated confidence, at
    most (1 + ``within``) times as large in mean regret as the best of all. The bounds hold at every
    look and for all pairs of candidates together: Student's, which are asymptotic, or with
    ``strict`` Bernstein's. Rare large regrets have a bound of their own (Chernoff), up to the
    largest regret that a run can have. A budget is for single runs: a
    candidate keeps it by its structure, or in at least 99 % of its runs, surely.

    Args:
        problem: Agents, arms and means.
        horizon: T.
        leak: Epsilon of one reward, exactly, in the view; None for no noise.
        view: "messages", "sum" or "actions"; see `find_leak`.
        means_error: Standard error of the problem's means, if they are estimates: each seed then
            draws means around them, the same for every candidate, as in `Problem`. Regret and its
            interval cover both sources of chance.
        links: Most links of a run; None for no budget.
        numbers: Most numbers on all links of a run.
        bits: Most bits on all links of a run.
        graph: Graph of the agents, for algorithms over a graph.
        components: Components of the agents, for algorithms over components.
        server: Whether there is a server.
        secure: Whether there is a secure sum over agents.
        within: x > 0.
        confidence: In (0, 1).
        candidates: Configured algorithms; by default every known one, over a grid of its own.
        proven: Whether to leave out values that the sources' theorems do not cover.
        strict: Whether bounds need no normality (Bernstein); they take more seeds.
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
        >>> problem = fmab.Problem.uniform(agents=5, arms=4)
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
        means_error=means_error,
        links=links,
        numbers=numbers,
        bits=bits,
        graph=graph,
        components=components,
        server=server,
        secure=secure,
        proven=proven,
    )
    goal = _check_goal(setting, within, confidence, max_seeds, strict)
    limit = math.inf if time is None else real("time", time, 0.0, math.inf, "give seconds")
    root = count("root_seed", root_seed, 0, 2**32 - 1, "give a seed")
    folder = None if store is None else _check_folder(store)
    selection, notes = select_candidates(candidates, setting)
    entrants, pruning_notes = prune(selection, setting)
    runs = Runs(setting, entrants, root, folder, client, progress)
    verdict = race(
        len(entrants),
        runs.observe,
        goal,
        is_sure=[candidate.is_sure for candidate in entrants],
        out_of_time=lambda: clock.perf_counter() - began > limit,
    )
    if verdict.winner < 0:
        _refuse_budget(setting, runs)
    answer = _answer(runs, verdict, goal, [*notes, *pruning_notes], clock.perf_counter() - began)
    return answer._replace(candidates=len(selection))


def _check_goal(
    setting: Setting, within: object, confidence: object, max_seeds: object, strict: object
) -> Goal:
    """Returns what the race has to show."""
    return Goal(
        real("within", within, 0.0, 10.0, "use 0.05 for 5 %", open_low=True),
        real("confidence", confidence, 0.0, 1.0, "use 0.95", open_low=True, open_high=True),
        setting.problem.agents * setting.horizon * find_largest_gap(setting.problem),
        FIRST_SEEDS,
        count("max_seeds", max_seeds, FIRST_SEEDS, MAX_SEEDS, "give the most seeds of a candidate"),
        flag("strict", strict),
    )


def _check_folder(store: object) -> Path:
    """Returns the folder of a plan's trials; refuses files, and the store of a sweep."""
    folder = check_path("store", store)
    if folder.exists() and not folder.is_dir():
        refuse("store", str(folder), "a folder, not a file", "name another one")
    if (folder / "run.json").exists():
        refuse("store", str(folder), "a folder of plans, not of a sweep", "name another one")
    check_folder("store", folder)
    return folder


def _refuse_budget(setting: Setting, runs: Runs) -> NoReturn:
    """Refuses a budget; every candidate exceeds one."""
    least = runs.find_least()
    budgets = {name: getattr(setting, name) for name in least}
    finite = [name for name, budget in budgets.items() if math.isfinite(budget)]
    for name in finite:
        if least[name] > budgets[name]:
            allowed = f"more: every candidate exceeds it, the least of a run is {least[name]:g}"
            refuse(name, budgets[name], allowed, "allow more")
    allowed = "more: every candidate exceeds a budget in more than one run in a hundred"
    refuse(finite[0], budgets[finite[0]], allowed, "allow more")


def find_largest_gap(problem: Problem) -> float:
    """Returns the largest gap of an arm that an instance can have."""
    if problem.means is None:
        return 1.0
    means, law = problem.means.mean(axis=0), problem.rewards
    if problem.world is not None:
        # `World.means` are in [0, 1], or between the first ones.
        means = np.append(means, (0.0, 1.0))
    gap = float(means.max() - means.min()) + 2.0 * normal.LARGEST * problem.means_error
    return min(gap, law.high - law.low)


def _answer(runs: Runs, verdict: Verdict, goal: Goal, notes: Sequence[str], elapsed: float) -> Plan:
    """Measures the winner on fresh seeds, and collects what the race shows."""
    setting, candidates = runs.setting, runs.candidates
    winner, means = candidates[verdict.winner], verdict.means
    excluded = {verdict.winner, *verdict.infeasible}
    rivals = [int(j) for j in np.argsort(means) if j not in excluded]
    front = _find_front(runs, verdict, rivals)
    algorithms = {winner.label: winner.algorithm}
    algorithms |= {label: algorithm for label, algorithm in front.values()}
    fresh = dict(zip(algorithms, runs.simulate(algorithms, FRESH_LEVEL, FRESH_SEEDS), strict=True))
    trials, leaks = fresh[winner.label], _measure_leaks(winner.algorithm, setting.problem)
    if not verdict.keeps:
        notes = ["nothing shows yet that the answer keeps the budgets", *notes]
    return Plan(
        algorithm=winner.algorithm,
        label=winner.label,
        holds=verdict.holds,
        within=goal.within if verdict.holds else verdict.within,
        confidence=goal.confidence,
        candidates=len(candidates),
        survivors=tuple(candidates[i].label for i in verdict.survivors),
        infeasible=tuple(candidates[i].label for i in verdict.infeasible),
        seeds=sum(verdict.seeds),
        most_seeds=max(verdict.seeds),
        missing_seeds=verdict.missing,
        regret=summarise(trials["regret"]),
        links=summarise(trials["links"]),
        numbers=summarise(trials["numbers"]),
        bits=summarise(trials["bits"]),
        final_gap=float(np.mean(trials["final_gap"])),
        leak={view: leak.epsilon for view, leak in leaks.items()},
        delta={view: leak.delta for view, leak in leaks.items()},
        remark=winner.remark,
        second=(candidates[rivals[0]].label, means[rivals[0]]) if rivals else ("", math.nan),
        front=tuple(
            (label, purpose, float(np.mean(fresh[label]["regret"])))
            for purpose, (label, _) in front.items()
        ),
        notes=tuple(notes),
        elapsed_s=elapsed,
        race=tuple(
            (candidate.label, verdict.seeds[i], means[i], i in verdict.survivors)
            for i, candidate in enumerate(candidates)
        ),
        looks=tuple(runs.looks),
    )


def _measure_leaks(algorithm: Algorithm, problem: Problem) -> dict[str, Leak]:
    """Returns the leaks of the views that somebody has."""
    leaks = {
        view: measure_leak(algorithm, problem.agents, view, presence=problem.presence)
        for view in VIEWS
    }
    return {view: leak for view, leak in leaks.items() if leak is not None}


def _find_front(
    runs: Runs, verdict: Verdict, rivals: Sequence[int]
) -> dict[str, tuple[str, Algorithm]]:
    """Returns labels and algorithms for half of the links and for a tenth of the leak."""
    setting, winner = runs.setting, runs.candidates[verdict.winner]
    front: dict[str, tuple[str, Algorithm]] = {}
    if math.isfinite(setting.links):
        half = math.floor(setting.links / 2)
        order = sorted([verdict.winner, *rivals], key=verdict.means.__getitem__)
        frugal = next((i for i in order if runs.find_most(i, "links") <= half), None)
        if frugal is not None:
            candidate = runs.candidates[frugal]
            front[f"at most {format_quantity(half, 'link')}"] = candidate.label, candidate.algorithm
    if setting.leak is not None and (cautious := _lower_leak(winner.algorithm, setting)):
        label = f"{write_call(winner.algorithm)} at a leak of {setting.leak / 10:g}"
        front[f"a leak of {setting.leak / 10:g}"] = label, cautious
    return front


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
