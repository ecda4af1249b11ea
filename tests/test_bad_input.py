"""Corner cases with a pinned value, and bad input that needs a machine or a file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from refusals import refused

import fmab_jax as fmab
from fmab_jax.machine import Share
from fmab_jax.parts import graphs
from fmab_jax.run import compilation

NAN, INF = math.nan, math.inf

# ---------------------------------------------------------------------------------------------
# Values. Bernoulli means of 0 and 1 without noise leave nothing to chance: an outcome follows from
# the schedule by hand. 3 agents, 20 arms, T = 10^4, unless a case says otherwise; the numbers of
# all cases but those with T = 10^12 or 10^6 agents were also computed by tests/reference.py. Every
# case shares one compilation: only traced values differ.

ONE = [1.0] + 19 * [0.0]
LAST = 19 * [0.0] + [1.0]
TWO = [1.0, 1.0] + 18 * [0.0]

# name: (changes, (regret, rounds, active arms, chosen arm, server links)).
VALUES: dict[str, tuple[dict[str, Any], tuple[float, int, int, int, int]]] = {
    # S_1 = ceil(8 ln(8 x 20 x 10^4) / (3 / 4)) = 153 pulls of 19 arms that lose 1, by 3 agents.
    "plain": ({}, (8721.0, 1, 1, 0, 3)),
    "best arm last": ({"means": LAST}, (8721.0, 1, 1, 19, 3)),
    "M = 1": ({"agents": 1}, (8702.0, 1, 1, 0, 1)),
    "M = 10^6": ({"agents": 10**6, "horizon": 10**6}, (19e6, 1, 1, 0, 10**6)),
    # The first epoch is cut: all 20 arms are played equally, and nobody uploads.
    "T = 1": ({"horizon": 1}, (2.85, 0, 20, -1, 0)),
    "T < K": ({"horizon": 19}, (54.15, 0, 20, -1, 0)),
    "T = 10^12": ({"horizon": 10**12}, (19893.0, 1, 1, 0, 3)),
    # A budget aims at the instance's own gap, 1 here: S_1 = ceil(8 ln(1.6e6) / 3) = 39.
    "R = 1": ({"rounds": 1}, (2223.0, 1, 1, 0, 3)),
    "R > T": ({"rounds": 2000, "schedule_gap": 0.5, "horizon": 1000}, (1824.0, 1, 1, 0, 3)),
    "R = 10^5": ({"rounds": 10**5, "schedule_gap": 0.5}, (2223.0, 1, 1, 0, 3)),
    # S(2) is below S_1 = 36, and S(2) = S_1 = 35: an epoch of this schedule would have no pull.
    "n_r = 0, gap = .9, R = 5": (
        {"means": TWO, "rounds": 5, "schedule_gap": 0.9},
        (2160.0, 5, 2, 0, 15),
    ),
    "n_r = 0, one slot short": (
        {"means": TWO, "rounds": 20, "schedule_gap": 0.5, "horizon": 963},
        (1890.0, 19, 2, -1, 57),
    ),
    # Ties: nothing to lose, no end to exploring, and the lowest index once a budget is spent.
    "two best arms": ({"means": TWO}, (8262.0, 3, 2, -1, 9)),
    "two best arms, R = 3": (
        {"means": TWO, "rounds": 3, "schedule_gap": 0.25},
        (5184.0, 3, 2, 0, 9),
    ),
    "all means 0": ({"means": 20 * [0.0]}, (0.0, 1, 20, -1, 3)),
    "all means 1, R = 20": (
        {"means": 20 * [1.0], "rounds": 20, "schedule_gap": 0.5},
        (0.0, 20, 20, 0, 60),
    ),
    # Noise: without bound the first epoch never ends; with hardly any it is as without.
    "epsilon = 1e-300, T = 10^12": (
        {"epsilon": 1e-300, "horizon": 10**12},
        (2.85e12, 0, 20, -1, 0),
    ),
    "epsilon = 1e100": ({"epsilon": 1e100}, (8721.0, 1, 1, 0, 3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_corner_case_has_its_value(name):
    """Would catch overflow, NaN, an endless epoch, a wrong cut at T or a lost tied best arm."""
    changes, (regret, rounds, active, options, links) = VALUES[name]
    case = {"means": ONE, "agents": 3, "horizon": 10**4, "epsilon": None} | changes
    problem = fmab.Problem(case.pop("means"), agents=case.pop("agents"))
    horizon = case.pop("horizon")
    data = fmab.simulate(fmab.cdp_mab(**case), problem, horizon, seeds=2, times=1)
    # A rate is a sum of 20 gaps over 20 arms: rounding, but no more.
    np.testing.assert_allclose(data.regret.values, [[regret]] * 2, rtol=1e-14)
    for variable, expected in (
        (data.rounds_made, rounds),
        (data.active_arms, active),
        (data.chosen_arm, options),
        (data.links.sel(meter="server").isel(time=-1), links),
        (data.best_arm_lost, False),
    ):
        assert variable.values.tolist() == [expected] * 2


def test_one_arm_is_played_without_regret_or_round():
    """Would catch K = 1 exploring, uploading or leaving the arm unchosen."""
    data = fmab.simulate(fmab.cdp_mab(0.1), fmab.Problem([0.3], agents=3), 100, 2, times=1)
    for variable in (data.regret, data.rounds_made, data.chosen_arm, data.links):
        assert (variable.values == 0).all()
    assert (data.active_arms.values == 1).all() and not data.best_arm_lost.values.any()


def reporting(agents: int, share: float) -> int:
    return fmab.cdp_mab(1.0, participation=share).exchange(agents).reporting


def links(graph: Any, agents: int) -> tuple[int, int, int]:
    exchange = fmab.ddp_mab(1.0, graph=graph).exchange(agents)
    return exchange.wait, exchange.on("bound"), exchange.on("used")


def sink_links(components: str) -> tuple[int, int, int, int]:
    exchange = fmab.hdp_mab(1.0, components=components).exchange(3)
    return exchange.wait, *(exchange.on(meter) for meter in ("server", "edges", "sac"))


def edges(graph: Any, agents: int) -> list[tuple[int, int]]:
    return sorted((min(edge), max(edge)) for edge in graphs.make(graph, agents).edges)


def resolved_epsilon(message: float, agents: int, share: float) -> float:
    algorithm = fmab.cdp_mab(epsilon_message=message, participation=share)
    return algorithm.privacy(algorithm.exchange(agents))["epsilon"]


# name: (what is computed, its value).
COMPUTED: dict[str, tuple[Callable[[], Any], Any]] = {
    "p = 5e-324": (lambda: reporting(50, 5e-324), 1),
    "p M a whole number but for rounding": (lambda: reporting(100, 0.07), 7),
    "p just below 1": (lambda: reporting(50, 1 - 2**-53), 50),
    "p = 1, M = 1": (lambda: reporting(1, 1), 1),
    "epsilon from epsilon_message": (lambda: resolved_epsilon(10.0, 10, 0.5), 2.0),
    "epsilon_message = inf": (lambda: resolved_epsilon(INF, 10, 0.5), INF),
    "graph of one agent": (lambda: links("ring", 1), (0, 0, 0)),
    "ring of two agents": (lambda: links("ring", 2), (0, 1, 1)),
    "parallel edges are one": (
        lambda: links(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 1)]), 3),
        (1, 4, 4),
    ),
    "labels 5, 2, 9 in sorted order": (
        lambda: edges(nx.Graph([(5, 2), (2, 9)]), 3),
        [(0, 1), (0, 2)],
    ),
    "labels that are text": (
        lambda: edges(nx.Graph([("b", "c"), ("c", "a")]), 3),
        [(0, 2), (1, 2)],
    ),
    "labels that do not sort": (lambda: edges(nx.Graph([("b", 1), (1, "a")]), 3), [(0, 1), (1, 2)]),
    "components of one agent": (lambda: sink_links("1x3"), (0, 3, 0, 0)),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_corner_of_an_exchange_has_its_value(name):
    """Would catch ceil(p M) off by one, double-counted links and agents numbered another way."""
    compute, expected = COMPUTED[name]
    assert compute() == expected


def test_the_accepted_ends_of_the_seed_range_are_distinct_trials():
    """Would catch a seed that is cut to fewer bits and repeats another trial."""
    seeds = [0, 1, 2**31, 2**32 - 2, np.int64(2**32 - 1)]
    problem = fmab.Problem(ONE, agents=3)
    data = fmab.simulate(fmab.cdp_mab(1.0), problem, 100, seeds, times=1, batch=2)
    assert data.seed.values.tolist() == [0, 1, 2**31, 2**32 - 2, 2**32 - 1]
    draws = [fmab.Problem.uniform(3, 1).fixed(seed).means for seed in seeds]
    assert len({float(means[0, 0]) for means in draws}) == 5


# ---------------------------------------------------------------------------------------------
# Refusals that need a machine or a file; all others are rows of tests/refusals.json.


def run(**changes: Any) -> xr.Dataset:
    arguments = {"problem": fmab.Problem(ONE, 3), "horizon": 100, "seeds": 2} | changes
    return fmab.simulate(fmab.cdp_mab(1.0), **arguments)


def test_results_too_large_are_refused_before_anything_is_compiled(monkeypatch):
    """Would catch a run that starts and is killed, and an estimate that forgets results."""
    monkeypatch.setattr("fmab_jax.machine.memory", lambda: Share(10**9, "", 0))
    monkeypatch.setattr(compilation, "compile_program", None)
    line = refused(run, seeds=10**6, times=10**5, horizon=10**6)
    assert re.fullmatch(
        r"memory='[0-9.,]+ TB': must be at most 90 % of the 1.0 GB free; .*seeds.*", line
    )


def test_a_trial_too_large_is_refused_before_it_runs(monkeypatch):
    """Would catch a run that is killed, where not even the smallest batch fits."""
    monkeypatch.setattr("fmab_jax.machine.memory", lambda: Share(10**9, "", 0))
    line = refused(run, problem=fmab.Problem.heterogeneous(10**4, 10**4))
    assert re.fullmatch(
        r"memory='[0-9.]+ GB': must be at most 0.7 GB of the 1 GB available; "
        "use fewer agents or arms",
        line,
    )
