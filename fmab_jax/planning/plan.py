"""Answers what to run within budgets of leak and links, and how sure the answer is."""

from __future__ import annotations

import hashlib
import math
import os
import time as clock
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import student_quantile
from fmab_jax.analysis.budgets import find_tail, read_runs
from fmab_jax.analysis.leaks import NOISE, at_leak, find_leak
from fmab_jax.core.networks import ComponentsOf, GraphOf, network, parts
from fmab_jax.core.problems import Problem
from fmab_jax.errors import Refusal, choice, count, flag, real, refuse
from fmab_jax.files import check_path, error_stream
from fmab_jax.parameters import LEAK, VIEWS, parameters_of
from fmab_jax.planning.candidates import Candidate, Setting, check_candidates, list_candidates
from fmab_jax.planning.race import Goal, Sample, Verdict, race
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.runner import sweep

if TYPE_CHECKING:
    import xarray as xr

Trials = dict[str, np.ndarray]
"""Regret, links, numbers, bits and final gap of one configuration, [seed] each."""

# Seeds of the first look, and fresh seeds of the answer's figures.
_FIRST, _FRESH = 200, 2000
# On processors, so that one program serves all looks.
_BATCH = 200
# Fresh seeds are of a level that no look has.
_FRESH_LEVEL = 1000


class Summary(NamedTuple):
    """A quantity over fresh seeds.

    Attributes:
        mean: Mean.
        low: Lower end of the 95 % interval of the mean.
        high: Upper end.
        p95: What 95 % of the runs do not exceed.
        max: Largest.
    """

    mean: float
    low: float
    high: float
    p95: float
    max: float


class Plan(NamedTuple):
    """The answer of `plan`.

    Attributes:
        algorithm: The configuration to run.
        label: Its call, without the noise.
        holds: Whether its mean regret is within ``within`` of the best candidate's, as asked.
        within: The x that is shown; larger than asked where seeds or time were spent before.
        confidence: Of this statement.
        candidates: Number of candidates.
        survivors: Labels of candidates that may still be the best, the answer first.
        infeasible: Labels of candidates whose runs exceed a budget.
        seeds: Trials of the race, of all candidates together.
        most_seeds: Seeds of the candidate with most.
        missing_seeds: More seeds that the goal would need, an estimate; 0 if it holds.
        regret: On fresh seeds, as the next three.
        links: Links that are priced.
        numbers: Numbers on all links.
        final_gap: Gap of what agents play at the horizon.
        leak: Epsilon of one reward by view; infinity for no bound, NaN where nobody has the view.
        remark: What no theorem covers; "" for nothing.
        second: Label of the next best candidate, "" for none, and its mean regret in the race.
        front: Rows of a label, what it is for, and its mean regret.
        notes: What the budgets leave out.
        elapsed_s: Time of the plan.
        race: Rows of a label, seeds, mean regret and whether the candidate survives.
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
    final_gap: float
    leak: dict[str, float]
    remark: str
    second: tuple[str, float]
    front: tuple[tuple[str, str, float], ...]
    notes: tuple[str, ...]
    elapsed_s: float
    race: tuple[tuple[str, int, float, bool], ...]


def plan(
    problem: Problem,
    horizon: int,
    *,
    leak: float | None,
    view: str = "messages",
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
    largest regret that a run can have. Links are a maximum: a candidate keeps
    the budget by its structure, or in at least 99 % of its runs, surely.

    Args:
        problem: Agents, arms and means.
        horizon: T.
        leak: Epsilon of one reward, exactly, in the view; None for no noise.
        view: "messages", "sum" or "actions"; see `find_leak`.
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
    if not isinstance(problem, Problem):
        refuse("problem", problem, "a Problem", "such as fmab_jax.Problem.uniform(50, 100)")
    choice("view", view, VIEWS, "choose who is looked at")
    for name, value in {"server": server, "secure": secure, "proven": proven}.items():
        flag(name, value)
    flag("strict", strict)
    remedy = "give the most of a run, or leave it out"
    budgets = {
        name: math.inf if value is None else real(name, value, 0.0, math.inf, remedy)
        for name, value in {"links": links, "numbers": numbers, "bits": bits}.items()
    }
    seeds = count("max_seeds", max_seeds, _FIRST, MAX_SEEDS, "give the most seeds of a candidate")
    limit = math.inf if time is None else real("time", time, 0.0, math.inf, "give seconds")
    setting = Setting(
        problem,
        count("horizon", horizon, 1, 10**12, "give the number of slots T"),
        None if leak is None else real("leak", leak, 0.0, math.inf, LEAK.remedy, open_low=True),
        view,
        **budgets,
        graph=graph,
        components=components,
        server=server,
        secure=secure,
        proven=proven,
    )
    goal = Goal(
        real("within", within, 0.0, 10.0, "use 0.05 for 5 %", open_low=True),
        real("confidence", confidence, 0.0, 1.0, "use 0.95", open_low=True, open_high=True),
        problem.agents * setting.horizon * find_largest_gap(problem),
        _FIRST,
        seeds,
        strict,
    )
    # Candidates that do not fit are left out, so a wrong graph must be refused here.
    if graph is not None:
        network(GraphOf().check("graph", graph, ""), problem.agents)
    if components is not None:
        parts(ComponentsOf().check("components", components, ""), problem.agents)
    root = count("root_seed", root_seed, 0, 2**32 - 1, "give a seed")
    folder = None if store is None else Path(check_path("store", store))
    notes: list[str] = []
    if candidates is None:
        field, notes = list_candidates(setting)
    else:
        field = check_candidates(candidates, setting)
    runs = _Runs(setting, field, root, folder, client, progress)
    verdict = race(
        len(field),
        runs.observe,
        goal,
        is_sure=[candidate.is_sure for candidate in field],
        out_of_time=lambda: clock.perf_counter() - began > limit,
    )
    if verdict.winner < 0:
        least = runs.find_least()
        name = next(name for name, budget in budgets.items() if math.isfinite(budget))
        allowed = f"more: every candidate exceeds a budget, the least of a run is {least[name]:g}"
        refuse(name, budgets[name], allowed, "allow more")
    return _answer(setting, field, verdict, runs, goal, notes, clock.perf_counter() - began)


def find_largest_gap(problem: Problem) -> float:
    """Returns the largest gap of an arm that an instance can have."""
    if problem.means is None:
        return 1.0
    means = problem.means.mean(axis=0)
    return float(means.max() - means.min()) or 1e-9


class _Runs:
    """The trials of a plan: each doubling of the seeds has a root seed of its own."""

    def __init__(
        self,
        setting: Setting,
        field: Sequence[Candidate],
        root_seed: int,
        store: Path | None,
        client: Any,
        progress: bool,
    ) -> None:
        self.setting, self.field, self.root_seed = setting, field, root_seed
        self.store, self.client, self.progress = store, client, progress
        self.blocks: dict[tuple[int, int], Trials] = {}

    def observe(self, group: Sequence[int], seeds: int) -> list[Sample]:
        """Returns the samples of some candidates for the first so many seeds."""
        level, start = 0, 0
        pieces: dict[int, list[Trials]] = {i: [] for i in group}
        while start < seeds:
            whole = _FIRST if level == 0 else _FIRST * 2 ** (level - 1)
            block = self._run(group, level, min(whole, seeds - start))
            for i in group:
                pieces[i].append(block[i])
            start, level = start + whole, level + 1
        if self.progress:
            line = f"{len(group)} of {len(self.field)} candidates: {seeds:,} seeds"
            print(line, file=error_stream(), flush=True)
        return [self._judge(pieces[i]) for i in group]

    def _judge(self, pieces: list[Trials]) -> Sample:
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        setting = self.setting
        is_over = (
            (joined["links"] > setting.links)
            | (joined["numbers"] > setting.numbers)
            | (joined["bits"] > setting.bits)
        )
        return Sample(joined["regret"], is_over)

    def _run(self, group: Sequence[int], level: int, seeds: int) -> dict[int, Trials]:
        """Returns the trials of a level; computes those that are missing."""
        missing = [
            i for i in group if len(self.blocks.get((i, level), {"regret": ()})["regret"]) < seeds
        ]
        if missing:
            algorithms = {self.field[i].label: self.field[i].algorithm for i in missing}
            for i, trials in zip(missing, self.simulate(algorithms, level, seeds), strict=True):
                self.blocks[i, level] = trials
        return {
            i: {name: values[:seeds] for name, values in self.blocks[i, level].items()}
            for i in group
        }

    def simulate(self, algorithms: dict[str, Algorithm], level: int, seeds: int) -> list[Trials]:
        """Runs algorithms for the seeds of a level."""
        name = f"seeds-{self.root_seed}-{level}"
        root = hashlib.sha256(f"{self.root_seed} {level}".encode()).digest()[:4]
        store = None if self.store is None else self.store / name
        data = sweep(
            algorithms,
            self.setting.problem,
            horizon=self.setting.horizon,
            seeds=seeds,
            times=[self.setting.horizon],
            root_seed=int.from_bytes(root),
            store=store,
            allow_changes=("algorithm", "seeds") if store else (),
            client=self.client,
            batch=_BATCH if jax.default_backend() == "cpu" else None,
            progress=False,
        )
        return [extract_trials(data.isel(algorithm=place)) for place in range(len(algorithms))]

    def find_least(self) -> dict[str, float]:
        """Returns the fewest links, numbers and bits of a run."""
        return {
            name: float(min(trials[name].min() for trials in self.blocks.values()))
            for name in ("links", "numbers", "bits")
        }


def extract_trials(data: xr.Dataset) -> Trials:
    """Returns regret, priced links, numbers, bits and final gap of every seed, at the horizon."""
    return {
        "regret": np.asarray(data.regret.isel(time=-1).values, np.float64),
        "final_gap": np.asarray(data.final_gap.values, np.float64),
        **read_runs(data),
    }


def summarise(values: Float[np.ndarray, " seed"]) -> Summary:
    """Returns mean, its 95 % interval (Student), the 95 % quantile and the maximum."""
    mean, seeds = float(np.mean(values)), len(values)
    half = student_quantile(seeds - 1, 0.95) * float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Summary(mean, mean - half, mean + half, *find_tail(values))


def _answer(
    setting: Setting,
    field: Sequence[Candidate],
    verdict: Verdict,
    runs: _Runs,
    goal: Goal,
    notes: Sequence[str],
    elapsed: float,
) -> Plan:
    """Measures the winner on fresh seeds, and collects what the race shows."""
    winner = field[verdict.winner]
    ahead = [j for j in np.argsort(verdict.means) if j not in (verdict.winner, *verdict.infeasible)]
    second = (field[ahead[0]].label, verdict.means[ahead[0]]) if ahead else ("", math.nan)
    algorithms, front = {winner.label: winner.algorithm}, {}
    if math.isfinite(setting.links):
        half = setting.links / 2
        most = {
            i: max(x["links"].max() for (j, _), x in runs.blocks.items() if j == i)
            for i in [verdict.winner, *ahead]
        }
        fewer = next(
            (i for i in sorted(most, key=verdict.means.__getitem__) if most[i] <= half), -1
        )
        if fewer >= 0:
            front[f"at most {half:g} links"] = field[fewer].label
            algorithms[field[fewer].label] = field[fewer].algorithm
    if setting.leak is not None and (cautious := _lower_leak(winner.algorithm, setting)):
        label = f"{winner.label} at a leak of {setting.leak / 10:g}"
        front[f"a leak of {setting.leak / 10:g}"] = label
        algorithms[label] = cautious
    fresh = dict(zip(algorithms, runs.simulate(algorithms, _FRESH_LEVEL, _FRESH), strict=True))
    trials, agents = fresh[winner.label], setting.problem.agents
    if not verdict.keeps:
        notes = ["nothing shows yet that the answer keeps the budgets", *notes]
    return Plan(
        algorithm=winner.algorithm,
        label=winner.label,
        holds=verdict.holds,
        within=goal.within if verdict.holds else verdict.within,
        confidence=goal.confidence,
        candidates=len(field),
        survivors=tuple(field[i].label for i in verdict.survivors),
        infeasible=tuple(field[i].label for i in verdict.infeasible),
        seeds=sum(verdict.seeds),
        most_seeds=max(verdict.seeds),
        missing_seeds=verdict.missing,
        regret=summarise(trials["regret"]),
        links=summarise(trials["links"]),
        numbers=summarise(trials["numbers"]),
        final_gap=float(np.mean(trials["final_gap"])),
        leak={view: find_leak(winner.algorithm, agents, view) for view in VIEWS},
        remark=winner.remark,
        second=second,
        front=tuple(
            (label, purpose, float(np.mean(fresh[label]["regret"])))
            for purpose, label in front.items()
        ),
        notes=tuple(notes),
        elapsed_s=elapsed,
        race=tuple(
            (c.label, n, mean, i in verdict.survivors)
            for i, (c, n, mean) in enumerate(zip(field, verdict.seeds, verdict.means, strict=True))
        ),
    )


def _lower_leak(algorithm: Algorithm, setting: Setting) -> Algorithm | None:
    """Returns the same configuration with a tenth of the leak, or None if it has no leak."""
    assert setting.leak is not None
    names = parameters_of(type(algorithm))
    parameters = {name: getattr(algorithm, name) for name in names if name not in NOISE}
    goal, agents = setting.leak / 10, setting.problem.agents
    try:
        return at_leak(type(algorithm), goal, agents=agents, view=setting.view, **parameters)
    except Refusal:
        return None
