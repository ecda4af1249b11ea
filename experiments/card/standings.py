"""What every shipped algorithm did on every suite: one file, against which a card ranks.

The file holds regret, links and bits at T of every seed, so that ranks come from paired
differences. It belongs to the digest of its suites, and is refused beside others.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from experiments.card import suites
from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis import theory
from fmab_jax.errors import Refusal, refuse
from fmab_jax.run.configs import bind, build_exchange
from fmab_jax.run.netcdf import load, save
from fmab_jax.run.promises import check_statements
from fmab_jax.sweeps.api import simulate

FILE = suites.FOLDER / "standings.nc"
# Instances over which a lower bound is averaged: those of the first seeds.
_INSTANCES = 50
# Series that have one number for each seed, and their types in the file.
_SERIES = {"regret": "f8", "links": "f4", "bits": "f4", "lost": "?"}


class Run(NamedTuple):
    """What a contestant did on a suite at one value of its epsilon."""

    regret: np.ndarray  # [seed] at T, summed over all agents
    links: np.ndarray  # [seed] on the meters that have a price
    bits: np.ndarray  # [seed] of all numbers sent
    # [seed] whether an agent lost every best arm, or plays a worse one at T for good.
    lost: np.ndarray
    stand_ins: int  # agents that stood for all; 0 where all were simulated
    trials_per_s: float  # without compilation


class Plan(NamedTuple):
    """How a contestant takes part in a suite."""

    algorithms: dict[suites.Group, Algorithm]  # equal ones are run once
    values: dict[suites.Group, float]  # of the parameter that is matched; NaN without one
    absent: dict[str, str]  # why it takes no part, by view; by "" where in none
    seeds: int


def plan(
    contestant: suites.Contestant,
    suite: suites.Suite,
    seeds: int | None = None,
    most: int | None = None,
) -> Plan:
    """Returns how a contestant takes part in a suite, having checked that it can.

    It has ``seeds`` seeds, by default those of the suite, of which it takes at most ``most``.
    """
    try:
        usual = contestant.build()
        exchange = build_exchange(usual, suite.problem.agents)
    except Refusal as error:
        return _absent_plan(error)
    # A wrong statement is the algorithm's own fault, in every suite.
    check_statements(usual, exchange, suite.problem.arms)
    try:
        values, absent = suites.match_trust(contestant, suite.problem.agents, suite.leaks)
        algorithms = {group: contestant.build(value) for group, value in values.items()}
        if not algorithms:
            algorithms = {suites.UNBOUNDED: usual}
            values = {suites.UNBOUNDED: 1.0 if contestant.parameter else math.nan}
        first = next(iter(algorithms.values()))
        bind(first, suite.problem_for(first), suite.horizon, times=[suite.horizon])
    except Refusal as error:
        return _absent_plan(error)
    # A cost that takes too long here has no seeds in the suite.
    due = suite.seeds.get(suites.cost_of(first), 0)
    number = seeds if seeds is not None else min(due, most if most is not None else due)
    if not number:
        return Plan({}, {}, {"": "because simulating it takes too long here"}, 0)
    return Plan(algorithms, values, absent, number)


def _absent_plan(error: Refusal) -> Plan:
    """Returns the plan of a contestant that refuses a suite; one that fails is not left out."""
    if error.__cause__:
        raise error
    return Plan({}, {}, {"": f"because it does not fit ({error})"}, 0)


def play(planned: Plan, suite: suites.Suite) -> Iterator[tuple[list[suites.Group], Run]]:
    """Runs a plan; yields each run with the groups that it is for."""
    groups_of: dict[Algorithm, list[suites.Group]] = {}
    for group, algorithm in planned.algorithms.items():
        groups_of.setdefault(algorithm, []).append(group)
    for algorithm, groups in groups_of.items():
        problem = suite.problem_for(algorithm)
        how: dict[str, Any] = {"root_seed": suite.root_seed, "times": [suite.horizon]}
        data = simulate(algorithm, problem, suite.horizon, planned.seeds, progress=False, **how)
        yield groups, _run_of(data, algorithm, suite, problem.agents)


def _run_of(data: xr.Dataset, algorithm: Algorithm, suite: suites.Suite, agents: int) -> Run:
    times = suite.problem.agents / agents
    priced = data.priced.values | (data.side.values == "server")
    last = data.links.isel(time=-1, meter=np.flatnonzero(priced))
    seconds = max(data.attrs["elapsed_s"] - data.attrs["compile_s"], 1e-9)
    return Run(
        regret=times * data.regret.values[:, -1],
        links=last.sum("meter").values.astype(float),
        bits=data.numbers_sent.values * float(algorithm.number_bits(suite.problem.arms)),
        lost=data.best_arm_lost.values | data.worse_arm_played.values,
        stand_ins=agents if times > 1 else 0,
        trials_per_s=data.sizes["seed"] / seconds,
    )


class Standing(NamedTuple):
    """What one contestant did on one suite; ``values`` and ``absent`` as in `Plan`."""

    key: str  # digest of the configurations: another one is computed anew
    package: str  # version that ran it
    groups: dict[suites.Group, Run]
    values: dict[suites.Group, float]
    absent: dict[str, str]


@dataclass
class Standings:
    """All that is known of a version of the suites.

    ``table`` is by suite and label. ``lower`` is what must be lost in the end, by suite and leak:
    by agents together, and by agents that are all alone.
    """

    version: str
    digest: str
    table: dict[tuple[str, str], Standing] = field(default_factory=dict)
    lower: dict[tuple[str, float], tuple[float, float]] = field(default_factory=dict)

    def members(self, suite: str, group: suites.Group) -> dict[str, Run]:
        """Returns the runs of a group of a suite, by label."""
        return {
            label: standing.groups[group]
            for (name, label), standing in self.table.items()
            if name == suite and group in standing.groups
        }

    def absent(self, suite: str, view: str) -> dict[str, list[str]]:
        """Returns who takes no part in a view of a suite, by the reason why.

        A contestant that is left out of a whole suite is missed in its views of other suites.
        """
        views: dict[str, set[str]] = {}
        for (_, label), standing in self.table.items():
            views.setdefault(label, set()).update(group.view for group in standing.groups)
        labels: dict[str, list[str]] = {}
        for (name, label), standing in self.table.items():
            why = standing.absent.get("", "") if view in (views[label] or {view}) else ""
            why = why or standing.absent.get(view, "")
            if name == suite and why:
                labels.setdefault(why, []).append(label)
        return labels


@functools.cache
def shipped(digest: str) -> Standings:
    """Returns the standings of this folder; a ValueError if they belong to other suites."""
    return read(FILE, digest)


def read(path: str | os.PathLike[str], digest: str) -> Standings:
    """Reads standings of the suites with that digest; a ValueError if the file holds no such."""
    data = load(path)
    if "about" not in data or not set(_SERIES) <= set(data):
        refuse("standings", str(path), "standings of the suites", "it is some other result")
    about = json.loads(data.about.values.tobytes())
    if about["digest"] != digest:
        value, due = (f"of suites {text[:12]}" for text in (about["digest"], digest))
        refuse("standings", value, due, "run python -m benchmarks standings")
    standings = Standings(about["version"], about["digest"])
    for suite, leak, *bounds in about["lower"]:
        standings.lower[suite, float(leak)] = (bounds[0], bounds[1])
    for row in about["standings"]:
        groups, values = {}, {}
        for entry in row["runs"]:
            part = slice(entry["start"], entry["start"] + entry["seeds"])
            series = {name: data[name].values[part] for name in _SERIES}
            run = Run(**series, stand_ins=entry["stand_ins"], trials_per_s=entry["rate"])
            for view, leak, value in entry["groups"]:
                group = suites.Group(view, float(leak))
                groups[group] = run
                values[group] = math.nan if value is None else value
        standing = Standing(row["key"], row["package"], groups, values, row["absent"])
        standings.table[row["suite"], row["label"]] = standing
    return standings


def write(standings: Standings, path: str | os.PathLike[str]) -> Path:
    """Writes standings, whole or not at all."""
    rows: list[dict[str, Any]] = []
    parts: list[Run] = []
    for (suite, label), standing in standings.table.items():
        entries: dict[int, dict[str, Any]] = {}
        for group, run in standing.groups.items():
            if id(run) not in entries:
                entries[id(run)] = {
                    "start": sum(len(part.regret) for part in parts),
                    "seeds": len(run.regret),
                    "stand_ins": run.stand_ins,
                    "rate": round(run.trials_per_s, 3),
                    "groups": [],
                }
                parts.append(run)
            value = standing.values[group]
            listed = [group.view, repr(group.leak), None if math.isnan(value) else value]
            entries[id(run)]["groups"].append(listed)
        row = {"suite": suite, "label": label, "key": standing.key, "package": standing.package}
        rows.append({**row, "absent": standing.absent, "runs": [*entries.values()]})
    lower = [[suite, repr(leak), *bounds] for (suite, leak), bounds in standings.lower.items()]
    about = {"version": standings.version, "digest": standings.digest}
    text = json.dumps({**about, "lower": lower, "standings": rows}, ensure_ascii=False)
    series = {}
    for name, kind in _SERIES.items():
        values = np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
        series[name] = ("trial", values.astype(kind))
    letters = np.frombuffer(text.encode(), np.uint8)
    return save(xr.Dataset({"about": ("letter", letters), **series}), path, overwrite=True)


def complete(
    used: suites.Suites,
    contestants: tuple[suites.Contestant, ...],
    previous: Standings | None,
    seeds: Mapping[str, int] | None = None,
    only: Collection[str] = (),
) -> Iterator[tuple[Standings, str]]:
    """Computes what is missing; yields the standings after each step, with a line about it.

    Known results of others than the contestants are dropped. ``seeds`` are by suite, by default its
    own; ``only`` are the labels of those who are computed now, by default all.
    """
    pairs = [(suite, entrant) for entrant in contestants for suite in used.suites.values()]
    # Cheap ones come first: a run that is stopped then has most of the results.
    pairs.sort(key=lambda pair: suites.COSTS.index(suites.cost_of(pair[1].build())))
    standings = Standings(used.version, used.digest)
    if previous and previous.digest == used.digest:
        keys = [(suite.name, contestant.label) for suite, contestant in pairs]
        standings.table = {key: previous.table[key] for key in keys if key in previous.table}
        standings.lower = dict(previous.lower)
    for suite in used.suites.values():
        if not any(name == suite.name for name, _ in standings.lower):
            bounds = lower_bounds(suite)
            standings.lower |= {(suite.name, leak): pair for leak, pair in bounds.items()}
    for suite, contestant in pairs:
        if only and contestant.label not in only:
            continue
        planned = plan(contestant, suite, (seeds or {}).get(suite.name))
        key = _key(planned, suite)
        old = standings.table.get((suite.name, contestant.label))
        if old is not None and old.key == key:
            continue
        standing = Standing(key, __version__, {}, planned.values, planned.absent)
        for groups, run in play(planned, suite):
            standing.groups.update(dict.fromkeys(groups, run))
        standings.table[suite.name, contestant.label] = standing
        number = len({id(run) for run in standing.groups.values()})
        yield standings, f"{suite.name}: {contestant.label}, {number} runs of {planned.seeds} seeds"
    yield standings, "all is there"


def _key(planned: Plan, suite: suites.Suite) -> str:
    algorithms = [
        [[group.view, repr(group.leak)], algorithm.describe()]
        for group, algorithm in planned.algorithms.items()
    ]
    settings = [suite.name, suite.horizon, suite.root_seed]
    content = [algorithms, planned.seeds, planned.absent, *settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def lower_bounds(suite: suites.Suite) -> dict[float, tuple[float, float]]:
    """Returns lower bounds on final regret by leak: of agents together, and of each alone.

    Averaged over the instances of the first seeds. Infinite leak is no privacy. Empty where agents
    differ or rewards are not Bernoulli variables: no bound is stated there.
    """
    problem: Any = suite.problem
    if not (problem.drawn and problem.homogeneous):
        return {}
    seeds = range(_INSTANCES)
    means = [np.asarray(problem.fixed(seed, suite.root_seed).means)[0] for seed in seeds]
    bounds, bound = {}, theory.private_lower_bound
    for leak in (*suite.leaks, math.inf):
        args = leak, suite.horizon, problem.agents
        one, other = (np.mean([bound(m, *args, alone=a) for m in means]) for a in (False, True))
        bounds[leak] = float(one), float(other)
    return bounds
