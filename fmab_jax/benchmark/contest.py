"""Who plays a suite, and what comes out: a contestant at every epsilon that its views ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import Algorithm, number_bits_of
from fmab_jax.benchmark.matching import NO_BOUND, at_value, matched, parameter_of
from fmab_jax.benchmark.suites import Contestant, Suite, cost_of
from fmab_jax.errors import Refusal
from fmab_jax.run.configs import bind, exchange_of
from fmab_jax.run.contract import check_statements
from fmab_jax.sweeps.simulate import simulate


class Group(NamedTuple):
    """Who is ranked together, within a suite."""

    view: str  # a key of `fmab_jax.benchmark.matching.VIEWS`, or `NO_BOUND`
    leak: float  # epsilon that all leak in that view; infinity for no bound


EVERYBODY = Group(NO_BOUND, math.inf)
"""The group of those that no epsilon covers."""


class Played(NamedTuple):
    """What a contestant did on a suite, at one value of its epsilon."""

    regret: np.ndarray  # [seed] at T, summed over all agents
    links: np.ndarray  # [seed] on the meters that have a price
    bits: np.ndarray  # [seed] of all numbers sent
    # [seed] whether some agent that was simulated lost every best arm, or plays a worse one at T
    # for good.
    lost: np.ndarray
    stand_ins: int  # agents that stood for all; 0 where all were simulated
    trials_per_s: float  # without compilation


class Plan(NamedTuple):
    """How a contestant takes part in a suite."""

    algorithms: dict[Group, Algorithm]  # by group; equal ones are run once
    values: dict[Group, float]  # of the parameter that was matched, by group; NaN without one
    absent: dict[str, str]  # why it takes no part, by view; by "" where in none
    seeds: int  # how many


def plan(
    contestant: Contestant, suite: Suite, seeds: int | None = None, most: int | None = None
) -> Plan:
    """Returns how a contestant takes part in a suite, having made sure that it can.

    It has ``seeds`` seeds, by default those of the suite, of which it takes at most ``most``.
    """
    name = parameter_of(contestant)
    try:
        usual = at_value(contestant)
        exchange = exchange_of(usual, suite.problem.agents)
    except Refusal as error:
        return _absent(error)
    # What it states wrongly is its own fault, in every suite.
    check_statements(usual, exchange, suite.problem.arms)
    try:
        found = matched(contestant, suite.problem.agents, suite.leaks)
        groups = {Group(*key): value for key, value in found.values.items()}
        made = {group: at_value(contestant, v) for group, v in groups.items()}
        if not made:
            # No view of it has a bound, whatever its epsilon is.
            made = {EVERYBODY: usual}
            groups = {EVERYBODY: 1.0 if name else math.nan}
        first = next(iter(made.values()))
        bind(first, suite.played(first), suite.horizon, times=[suite.horizon])
    except Refusal as error:
        return _absent(error)
    # What takes too long here has no seeds of its own.
    due = suite.seeds.get(cost_of(first), 0)
    number = seeds if seeds is not None else min(due, most if most is not None else due)
    if not number:
        return Plan({}, {}, {"": "because simulating it takes too long here"}, 0)
    return Plan(made, groups, found.absent, number)


def _absent(error: Refusal) -> Plan:
    """Returns the plan of a contestant that refuses a suite; one that fails is not left out."""
    if error.__cause__:
        raise error
    return Plan({}, {}, {"": f"because it does not fit ({error})"}, 0)


def play(made: Plan, suite: Suite) -> Iterator[tuple[list[Group], Played]]:
    """Runs a plan; yields what came out, and the groups that it is for."""
    same: dict[Algorithm, list[Group]] = {}
    for group, algorithm in made.algorithms.items():
        same.setdefault(algorithm, []).append(group)
    for algorithm, groups in same.items():
        problem = suite.played(algorithm)
        how: dict[str, Any] = {"root_seed": suite.root_seed, "times": [suite.horizon]}
        data = simulate(algorithm, problem, suite.horizon, made.seeds, progress=False, **how)
        yield groups, _played(data, algorithm, suite, problem.agents)


def _played(data: xr.Dataset, algorithm: Algorithm, suite: Suite, agents: int) -> Played:
    times = suite.problem.agents / agents
    priced = data.priced.values | (data.side.values == "server")
    last = data.links.isel(time=-1, meter=np.flatnonzero(priced))
    seconds = max(data.attrs["elapsed_s"] - data.attrs["compile_s"], 1e-9)
    return Played(
        regret=times * data.regret.values[:, -1],
        links=last.sum("meter").values.astype(float),
        bits=data.numbers_sent.values * float(number_bits_of(algorithm, suite.problem.arms)),
        lost=data.best_arm_lost.values | data.worse_arm_played.values,
        stand_ins=agents if times > 1 else 0,
        trials_per_s=data.sizes["seed"] / seconds,
    )
