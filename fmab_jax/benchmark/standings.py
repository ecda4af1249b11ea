"""What every shipped algorithm did on every suite: one file, against which anybody is ranked.

The file holds regret, links and bits at T of every seed, so that a rank is found by paired
differences and not by means that somebody wrote down. It belongs to the digest of its suites, and
is refused beside others.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax import __version__
from fmab_jax.analysis import theory
from fmab_jax.benchmark.contest import Group, Plan, Played, plan, play
from fmab_jax.benchmark.matching import at_value
from fmab_jax.benchmark.suites import COSTS, Contestant, Suite, Suites, cost_of
from fmab_jax.errors import refuse
from fmab_jax.run.netcdf import load, save

FILE = "standings.nc"
# Instances over which a lower bound is averaged: those of the first seeds.
_INSTANCES = 50
# Series that have one number for each seed, and their types in the file.
_SERIES = {"regret": "f8", "links": "f4", "bits": "f4", "lost": "?"}


class Standing(NamedTuple):
    """What one contestant did on one suite."""

    key: str  # digest of the configurations: another one is computed anew
    package: str  # version that ran it
    groups: dict[Group, Played]  # what came out, by group
    values: dict[Group, float]  # of the parameter that was matched, by group; NaN without one
    absent: dict[str, str]  # why it takes no part, by view; by "" where in none


@dataclass
class Standings:
    """All that is known of a version of the suites."""

    version: str  # of the suites
    digest: str  # of the suites
    # By suite and label of the contestant.
    found: dict[tuple[str, str], Standing] = field(default_factory=dict)
    # What must be lost in the end, by suite and leak: together, and every agent alone.
    lower: dict[tuple[str, float], tuple[float, float]] = field(default_factory=dict)

    def of(self, suite: str, group: Group) -> dict[str, Played]:
        """Returns who is in a group of a suite, by label."""
        return {
            label: each.groups[group]
            for (name, label), each in self.found.items()
            if name == suite and group in each.groups
        }

    def absent(self, suite: str, view: str) -> dict[str, list[str]]:
        """Returns who takes no part in a view of a suite, by the reason why.

        Who is left out of a whole suite is missed in the views that it has in other suites.
        """
        views: dict[str, set[str]] = {}
        for (_, label), each in self.found.items():
            views.setdefault(label, set()).update(group.view for group in each.groups)
        found: dict[str, list[str]] = {}
        for (name, label), each in self.found.items():
            why = each.absent.get("", "") if view in (views[label] or {view}) else ""
            why = why or each.absent.get(view, "")
            if name == suite and why:
                found.setdefault(why, []).append(label)
        return found


@functools.cache
def shipped(suites: str) -> Standings:
    """Returns the standings of this package; a ValueError if they belong to other suites."""
    with resources.as_file(resources.files(__package__).joinpath(FILE)) as path:
        return read(path, suites)


def read(path: str | os.PathLike[str], suites: str) -> Standings:
    """Reads standings of the suites with that digest; a ValueError if the file holds no such."""
    data = load(path)
    if "about" not in data or not set(_SERIES) <= set(data):
        refuse("standings", str(path), "standings of fmab benchmark", "it is some other result")
    about = json.loads(data.about.values.tobytes())
    if about["digest"] != suites:
        found, due = (f"of suites {digest[:12]}" for digest in (about["digest"], suites))
        refuse("standings", found, due, "run python -m benchmarks standings")
    made = Standings(about["version"], about["digest"])
    for suite, leak, *bounds in about["lower"]:
        made.lower[suite, float(leak)] = (bounds[0], bounds[1])
    for row in about["standings"]:
        groups, values = {}, {}
        for run in row["runs"]:
            part = slice(run["start"], run["start"] + run["seeds"])
            series = {name: data[name].values[part] for name in _SERIES}
            played = Played(**series, stand_ins=run["stand_ins"], trials_per_s=run["rate"])
            for view, leak, value in run["groups"]:
                group = Group(view, float(leak))
                groups[group] = played
                values[group] = math.nan if value is None else value
        made.found[row["suite"], row["label"]] = Standing(
            row["key"], row["package"], groups, values, row["absent"]
        )
    return made


def write(made: Standings, path: str | os.PathLike[str]) -> Path:
    """Writes standings, whole or not at all."""
    rows: list[dict[str, Any]] = []
    parts: list[Played] = []
    for (suite, label), each in made.found.items():
        runs: dict[int, dict[str, Any]] = {}
        for group, played in each.groups.items():
            if id(played) not in runs:
                runs[id(played)] = {
                    "start": sum(len(part.regret) for part in parts),
                    "seeds": len(played.regret),
                    "stand_ins": played.stand_ins,
                    "rate": round(played.trials_per_s, 3),
                    "groups": [],
                }
                parts.append(played)
            value = each.values[group]
            own = [group.view, repr(group.leak), None if math.isnan(value) else value]
            runs[id(played)]["groups"].append(own)
        row = {"suite": suite, "label": label, "key": each.key, "package": each.package}
        rows.append({**row, "absent": each.absent, "runs": [*runs.values()]})
    lower = [[suite, repr(leak), *bounds] for (suite, leak), bounds in made.lower.items()]
    about = {"version": made.version, "digest": made.digest, "lower": lower, "standings": rows}
    whole = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8)
    series = {}
    for name, kind in _SERIES.items():
        values = np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
        series[name] = ("trial", values.astype(kind))
    return save(xr.Dataset({"about": ("letter", whole), **series}), path, overwrite=True)


def completed(
    suites: Suites,
    contestants: tuple[Contestant, ...],
    known: Standings | None,
    seeds: Mapping[str, int] | None = None,
    only: Collection[str] = (),
) -> Iterator[tuple[Standings, str]]:
    """Computes what is missing; yields what there is after each contestant of a suite, in words.

    Known results of those who are not among the contestants are dropped. ``seeds`` are by suite, by
    default its own; ``only`` are the labels of those who are computed now, by default all.
    """
    wanted = [(suite, each) for each in contestants for suite in suites.suites.values()]
    # Cheap ones come first: a run that is stopped then has most of the results.
    wanted.sort(key=lambda pair: COSTS.index(cost_of(at_value(pair[1]))))
    made = Standings(suites.version, suites.digest)
    if known and known.digest == suites.digest:
        keys = [(suite.name, each.label) for suite, each in wanted]
        made.found = {key: known.found[key] for key in keys if key in known.found}
        made.lower = dict(known.lower)
    for suite in suites.suites.values():
        if not any(name == suite.name for name, _ in made.lower):
            made.lower |= {(suite.name, leak): both for leak, both in lower_bounds(suite).items()}
    for suite, each in wanted:
        if only and each.label not in only:
            continue
        planned = plan(each, suite, (seeds or {}).get(suite.name))
        key = _key(planned, suite)
        if (kept := made.found.get((suite.name, each.label))) is not None and kept.key == key:
            continue
        found = Standing(key, __version__, {}, planned.values, planned.absent)
        for groups, played in play(planned, suite):
            found.groups.update(dict.fromkeys(groups, played))
        made.found[suite.name, each.label] = found
        number = len({id(played) for played in found.groups.values()})
        yield made, f"{suite.name}: {each.label}, {number} runs of {planned.seeds} seeds"
    yield made, "all is there"


def _key(planned: Plan, suite: Suite) -> str:
    told = [
        [[group.view, repr(group.leak)], algorithm.describe()]
        for group, algorithm in planned.algorithms.items()
    ]
    whole = [told, planned.seeds, planned.absent, suite.name, suite.horizon, suite.root_seed]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def lower_bounds(suite: Suite) -> dict[float, tuple[float, float]]:
    """Returns lower bounds on final regret by leak: of agents together, and of each alone.

    Averaged over the instances of the first seeds. Infinite leak is no privacy. Empty where agents
    differ or rewards are no Bernoulli variables: no bound is stated there.
    """
    own: Any = suite.problem
    if not (own.drawn and own.homogeneous):
        return {}
    means = [np.asarray(own.fixed(seed, suite.root_seed).means)[0] for seed in range(_INSTANCES)]

    found, bound = {}, theory.private_lower_bound
    for leak in (*suite.leaks, math.inf):
        given = leak, suite.horizon, own.agents
        one, other = (np.mean([bound(m, *given, alone=a) for m in means]) for a in (False, True))
        found[leak] = float(one), float(other)
    return found
