"""Corner cases and bad input, each with a pinned outcome: a value, or the line that refuses it."""

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
from fmab_jax.core import graphs
from fmab_jax.run import compilation
from fmab_jax.run import resources as run_resources

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
    "T = K": ({"horizon": 20}, (57.0, 0, 20, -1, 0)),
    "first epoch beyond T": ({"horizon": 2000}, (5700.0, 0, 20, -1, 0)),
    "T = 10^12": ({"horizon": 10**12}, (19893.0, 1, 1, 0, 3)),
    "T as a whole float": ({"horizon": 1e4}, (8721.0, 1, 1, 0, 3)),
    # A budget aims at the instance's own gap, 1 here: S_1 = ceil(8 ln(1.6e6) / 3) = 39.
    "R = 1": ({"rounds": 1}, (2223.0, 1, 1, 0, 3)),
    "R = 1, gap = 1/2": ({"rounds": 1, "schedule_gap": 0.5}, (8721.0, 1, 1, 0, 3)),
    "R > T": ({"rounds": 2000, "schedule_gap": 0.5, "horizon": 1000}, (1824.0, 1, 1, 0, 3)),
    "R = 10^5": ({"rounds": 10**5, "schedule_gap": 0.5}, (2223.0, 1, 1, 0, 3)),
    # S(2) is below S_1 = 36, and S(2) = S_1 = 35: an epoch of this schedule would have no pull.
    "n_r = 0, gap = .9, R = 5": (
        {"means": TWO, "rounds": 5, "schedule_gap": 0.9},
        (2160.0, 5, 2, 0, 15),
    ),
    "n_r = 0, gap = .5, R = 20": (
        {"means": TWO, "rounds": 20, "schedule_gap": 0.5, "horizon": 964},
        (1890.0, 20, 2, 0, 60),
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
    "duplicate means": ({"means": [1.0, 0.5, 0.5] + 17 * [0.0]}, (8262.0, 1, 1, 0, 3)),
    "all means 1": ({"means": 20 * [1.0]}, (0.0, 1, 20, -1, 3)),
    "all means 0": ({"means": 20 * [0.0]}, (0.0, 1, 20, -1, 3)),
    "all means 1/2, noise": ({"means": 20 * [0.5], "epsilon": 1.0}, (0.0, 1, 20, -1, 3)),
    "all means 1, R = 20": (
        {"means": 20 * [1.0], "rounds": 20, "schedule_gap": 0.5},
        (0.0, 20, 20, 0, 60),
    ),
    # Noise: without bound the first epoch never ends; with hardly any it is as without.
    "epsilon = 1e-300": ({"epsilon": 1e-300}, (28500.0, 0, 20, -1, 0)),
    "epsilon = 5e-324": ({"epsilon": 5e-324}, (28500.0, 0, 20, -1, 0)),
    "epsilon = 1e-300, T = 10^12": (
        {"epsilon": 1e-300, "horizon": 10**12},
        (2.85e12, 0, 20, -1, 0),
    ),
    "epsilon = 1e100": ({"epsilon": 1e100}, (8721.0, 1, 1, 0, 3)),
    "epsilon = inf": ({"epsilon": INF}, (8721.0, 1, 1, 0, 3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_corner_case_has_its_value(name):
    """Would catch overflow, NaN, an endless epoch, a wrong cut at T or a lost tied best arm."""
    changes, (regret, rounds, active, chosen, links) = VALUES[name]
    case = {"means": ONE, "agents": 3, "horizon": 10**4, "epsilon": None} | changes
    problem = fmab.Problem(case.pop("means"), agents=case.pop("agents"))
    horizon = case.pop("horizon")
    data = fmab.simulate(fmab.cdp_mab(**case), problem, horizon, seeds=2, times=1)
    # A rate is a sum of 20 gaps over 20 arms: rounding, but no more.
    np.testing.assert_allclose(data.regret.values, [[regret]] * 2, rtol=1e-14)
    for variable, expected in (
        (data.rounds_made, rounds),
        (data.active_arms, active),
        (data.chosen_arm, chosen),
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
    "p = 1e-300": (lambda: reporting(50, 1e-300), 1),
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
    drawn = [fmab.Problem.uniform(3, 1).fixed(seed).means for seed in seeds]
    assert len({float(means[0, 0]) for means in drawn}) == 5


# ---------------------------------------------------------------------------------------------
# Refusals through the Python interface.

PROBLEM = fmab.Problem([0.9, 0.5, 0.5, 0.1], agents=3)
LOOP = nx.Graph([(0, 1), (1, 1), (1, 2)])


def run(**changes: Any) -> xr.Dataset:
    arguments = {"problem": PROBLEM, "horizon": 100, "seeds": 2} | changes
    return fmab.simulate(fmab.cdp_mab(1.0), **arguments)


def gossip(graph: Any, agents: int = 3) -> Any:
    return fmab.ddp_mab(1.0, graph=graph).exchange(agents)


def sinks(components: Any) -> Any:
    return fmab.hdp_mab(1.0, components=components).exchange(6)


def band(value: float = 0.0, seeds: int = 2, **options: Any) -> xr.Dataset:
    values = xr.DataArray(np.full((seeds, 3), value), dims=("seed", "time"))
    return fmab.confidence_band(values, **options)


EPSILON = "must be a number in (0, 1e+100]; give a privacy parameter, or None for no noise"
ROUNDS = "must be a whole number in [1, 100,000]; give a round budget, or None for none"
SHARE = "must be a number in (0, 1]; give the share of agents that report in a round, such as 0.4"
GAP = "must be a number in (0, 1]; give the smallest gap to resolve, or None for the instance's own"
HORIZON = "must be a whole number in [1, 1,000,000,000,000]; give the number of slots T"
SEEDS = "must be a whole number in [1, 100,000,000]; give the number of seeds"
SEED = (
    "must be a whole number in [0, 4,294,967,295]; "
    "larger seeds would repeat the streams of smaller ones"
)
FLOAT_SEED = "must be a whole number in [0, 4,294,967,295]; pass an int, not a float"
TIMES = "must be a whole number in [1, 100,000]; give the number of recorded slots"
SLOTS = "must be whole slots in [0, 100]; give slots, such as [1, 10, 100]"
BATCH = "must be a whole number in [1, 100,000,000]; give the number of seeds per batch"
GRAPH = (
    "must be one of complete, star, ring, path, grid, regular-D, random, random-P, preferential, "
    "preferential-m, a networkx graph, or a .txt, .edgelist, .csv or .graphml file"
)
LISTED = "for example components='20x5:star'"
NETCDF = "must be a file name ending in .nc; change the ending"

# (what is tried, the line that refuses it).
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: fmab.cdp_mab(0), f"epsilon=0: {EPSILON}"),
    (lambda: fmab.cdp_mab(-1), f"epsilon=-1: {EPSILON}"),
    (lambda: fmab.ddp_mab(NAN), f"epsilon=nan: {EPSILON}"),
    (lambda: fmab.hdp_mab(-INF), f"epsilon=-inf: {EPSILON}"),
    (lambda: fmab.single_mab(True), f"epsilon=True: {EPSILON}"),
    (lambda: fmab.cdp_mab("x"), f"epsilon='x': {EPSILON}"),
    (lambda: fmab.cdp_mab(10**400), f"epsilon=1{76 * '0'}...: {EPSILON}"),
    (lambda: fmab.cdp_mab(1j), f"epsilon=1j: {EPSILON}"),
    (
        lambda: fmab.cdp_mab(),
        "epsilon=<not given>: must be given, or epsilon_message; "
        "pass epsilon=1, or epsilon=None for no noise",
    ),
    (
        lambda: fmab.cdp_mab(1.0, epsilon_message=50.0),
        "epsilon_message=50.0: must be given without epsilon; drop one",
    ),
    (lambda: fmab.cdp_mab(epsilon_message=0), f"epsilon_message=0: {EPSILON}"),
    (lambda: fmab.cdp_mab(1.0, rounds=0), f"rounds=0: {ROUNDS}"),
    (lambda: fmab.cdp_mab(1.0, rounds=2.5), f"rounds=2.5: {ROUNDS}"),
    (lambda: fmab.cdp_mab(1.0, rounds=NAN), f"rounds=nan: {ROUNDS}"),
    (lambda: fmab.cdp_mab(1.0, rounds=10**13), f"rounds=10000000000000: {ROUNDS}"),
    (lambda: fmab.cdp_mab(1.0, schedule_gap=0), f"schedule_gap=0: {GAP}"),
    (lambda: fmab.cdp_mab(1.0, schedule_gap=1.5), f"schedule_gap=1.5: {GAP}"),
    (lambda: fmab.cdp_mab(1.0, schedule_gap=INF), f"schedule_gap=inf: {GAP}"),
    (
        lambda: fmab.dp_se(1.0, failure=INF),
        "failure=inf: must be a number in (0, 1]; see help(fmab_jax.dp_se)",
    ),
    (lambda: fmab.cdp_mab(1.0, participation=0), f"participation=0: {SHARE}"),
    (lambda: fmab.cdp_mab(1.0, participation=1.1), f"participation=1.1: {SHARE}"),
    (lambda: fmab.cdp_mab(1.0, participation=NAN), f"participation=nan: {SHARE}"),
    (
        lambda: fmab.hdp_mab(1.0, weights="sinks"),
        "weights='sinks': must be 'agents' or 'components'; 'agents' is unbiased",
    ),
    (lambda: run(horizon=0), f"horizon=0: {HORIZON}"),
    (lambda: run(horizon=99.5), f"horizon=99.5: {HORIZON}"),
    (lambda: run(horizon=NAN), f"horizon=nan: {HORIZON}"),
    (lambda: run(horizon=INF), f"horizon=inf: {HORIZON}"),
    (lambda: run(horizon="100"), f"horizon='100': {HORIZON}"),
    (lambda: run(horizon=10**12 + 1), f"horizon=1000000000001: {HORIZON}"),
    (lambda: run(horizon=10**400), f"horizon=1{76 * '0'}...: {HORIZON}"),
    (
        lambda: run(horizon=10**12, problem=fmab.Problem([0.9, 0.1], agents=10**6)),
        "horizon=1000000000000: must be at most 9,007,199,254 with 1000000 agents; "
        "give the number of slots T",
    ),
    (lambda: run(seeds=0), f"seeds=0: {SEEDS}"),
    (lambda: run(seeds=-1), f"seeds=-1: {SEEDS}"),
    (lambda: run(seeds=1.5), f"seeds=1.5: {SEEDS}"),
    (lambda: run(seeds=True), f"seeds=True: {SEEDS}"),
    (lambda: run(seeds=10**8 + 1), f"seeds=100000001: {SEEDS}"),
    (lambda: run(seeds="10"), f"seeds='10': {SEEDS}"),
    (lambda: run(seeds=None), f"seeds=None: {SEEDS}"),
    (lambda: run(seeds=[]), "seeds=[]: must be not empty; give at least one seed"),
    (lambda: run(seeds=[-1]), f"seeds=-1: {SEED}"),
    (lambda: run(seeds=[2**32]), f"seeds=4294967296: {SEED}"),
    (lambda: run(seeds=[np.int64(2**32 + 1)]), f"seeds=np.int64(4294967297): {SEED}"),
    (lambda: run(seeds=range(2**32 - 1, 2**32 + 1)), f"seeds=4294967296: {SEED}"),
    (lambda: run(seeds=[1.0]), f"seeds=1.0: {FLOAT_SEED}"),
    # NumPy makes floats of whole numbers that it cannot hold.
    (lambda: run(seeds=np.array([2**63, -1])), f"seeds=np.float64(9.223372036854776e+18): {SEED}"),
    (lambda: run(root_seed=1e30), f"root_seed=1e+30: {SEED}"),
    (lambda: run(root_seed=NAN), f"root_seed=nan: {SEED}"),
    (lambda: run(seeds=[True]), f"seeds=True: {SEED}"),
    (lambda: run(seeds=["1"]), f"seeds='1': {SEED}"),
    (lambda: run(root_seed=-1), f"root_seed=-1: {SEED}"),
    (lambda: run(times=0), f"times=0: {TIMES}"),
    (lambda: run(times=[5, 101]), f"times=101: {SLOTS}"),
    (
        lambda: run(spacing="cubic"),
        "spacing='cubic': must be 'linear' or 'log'; choose one of them",
    ),
    (lambda: run(batch=0), f"batch=0: {BATCH}"),
    (lambda: run(batch=1.5), f"batch=1.5: {BATCH}"),
    (
        lambda: fmab.cdp_mab(epsilom=1),
        "epsilom=1: must be a parameter of cdp; did you mean 'epsilon'?",
    ),
    (
        lambda: fmab.ucb1(epsilon=1),
        "epsilon=1: must be a parameter of ucb1; choose from alpha, pooled",
    ),
    (lambda: gossip("rng"), f"graph='rng': {GRAPH}; did you mean 'ring'?"),
    (lambda: gossip(""), f"graph='': {GRAPH}; for example 'ring'"),
    (lambda: gossip(None), f"graph=None: {GRAPH}; for example graph='ring'"),
    (
        lambda: gossip(LOOP),
        "graph='Graph with 3 nodes and 3 edges': must be a graph without self-loops (it has 1); "
        "remove them first",
    ),
    (
        lambda: gossip(nx.path_graph(4)),
        "graph='Graph with 4 nodes and 3 edges': must be a graph of 3 nodes, one per agent "
        "(it has 4); match the number of agents to the graph",
    ),
    (
        lambda: sinks("2x2:ring"),
        "components='2x2:ring': must be sizes that sum to agents=6 (they sum to 4); "
        "change the sizes or the number of agents",
    ),
    (lambda: sinks("3x2:rng"), f"components[0]='rng': {GRAPH}; did you mean 'ring'?"),
    (
        lambda: sinks([]),
        f"components=[]: must be a text or a non-empty list of components; {LISTED}",
    ),
    (
        lambda: sinks([2.5, 3.5]),
        f"components[0]=2.5: must be a networkx graph, a size or a (size, graph) pair; {LISTED}",
    ),
    (lambda: band(level=95), "level=95: must be a number in (0, 1); use 0.95"),
    (lambda: band(level=NAN), "level=nan: must be a number in (0, 1); use 0.95"),
    (
        lambda: band(kind="bayes"),
        "kind='bayes': must be 'pointwise' or 'simultaneous' or 'quantile'; use \"simultaneous\"",
    ),
    (
        lambda: band(seeds=1),
        "seeds=1: must be a whole number in [2, 9,223,372,036,854,775,807]; "
        "a band needs at least 2 seeds",
    ),
    (lambda: band(NAN), "values=nan: must be finite; leave out the failed runs"),
    (lambda: fmab.save(xr.Dataset(), "x.csv"), f"path='x.csv': {NETCDF}"),
    (lambda: fmab.load("x.npz"), f"path='x.npz': {NETCDF}"),
    (
        lambda: fmab.load("nowhere.nc"),
        "path='nowhere.nc': must be an existing file; check the path or save one there first",
    ),
]


@pytest.mark.parametrize(("attempt", "line"), REFUSED, ids=[line[:40] for _, line in REFUSED])
def test_bad_input_is_refused_in_one_exact_line(attempt, line, tmp_path, monkeypatch):
    """Would catch a value let through, another exception, a line without its range or remedy, and
    one that comes after a program was compiled or read from a cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compilation, "compile_program", None)
    assert refused(attempt) == line
    assert list(tmp_path.iterdir()) == []


def test_results_too_large_are_refused_before_anything_is_compiled(monkeypatch):
    """Would catch a run that starts and is killed, and an estimate that forgets results."""
    monkeypatch.setattr(run_resources, "available_bytes", lambda: 10**9)
    monkeypatch.setattr(compilation, "compile_program", None)
    line = refused(run, seeds=10**6, times=10**5, horizon=10**6)
    assert re.fullmatch(
        r"memory='[0-9.]+ GB': must be at most 90% of the 1.0 GB available; "
        "record fewer times or seeds",
        line,
    )


def test_a_trial_too_large_is_refused_before_it_runs(monkeypatch):
    """Would catch a run that is killed, where not even the smallest batch fits."""
    monkeypatch.setattr(run_resources, "available_bytes", lambda: 10**9)
    line = refused(run, problem=fmab.Problem.heterogeneous(10**4, 10**4))
    assert re.fullmatch(
        r"memory='[0-9.]+ GB': must be at most 0.7 GB of the 1 GB available; "
        "use fewer agents or arms",
        line,
    )


@pytest.mark.parametrize("content", [b"", b"no netCDF", b"\x89HDF\r\n\x1a\n" + 200 * b"\0"])
def test_a_file_that_is_no_result_is_refused(content, tmp_path):
    """Would catch an empty, foreign or cut file that is read, or ends in a traceback of h5py."""
    path = tmp_path / "x.nc"
    path.write_bytes(content)
    line = refused(fmab.load, path)
    assert line.startswith("path='") and "\n" not in line
    assert ": must be a readable result; it is damaged or something else (" in line


def test_another_netcdf_file_is_refused(tmp_path):
    """Would catch somebody else's netCDF file taken for a result."""
    path = tmp_path / "x.nc"
    xr.Dataset({"regret": ("time", [1.0])}).to_netcdf(path, engine="h5netcdf")
    line = f"path={str(path)!r}: must be a result of fmab_jax.save; it is some other netCDF file"
    assert refused(fmab.load, path) in (line, _cut(line, str(path)))


def _cut(line: str, path: str) -> str:
    """Long paths are cut in messages."""
    return line.replace(repr(path), repr(path)[:77] + "...")


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (len, "algorithm=<built-in function len>: must be a maker with named parameters; wrap it"),
        (np.array([0.5, 0.4]), "problem=array([0.5, 0.4]): must be a Problem or a function that "),
        ({"a": None}, "problem=None: must be a Problem or a function that makes one; such as "),
        (lambda agents, arms: 3, "problem=3: must be a maker that returns an Problem; return "),
    ],
)
def test_a_problem_that_is_none_is_refused_by_name(problem, line):
    """Would catch a TypeError of somebody else's function, or the truth value of an array."""
    assert refused(
        fmab.sweep, "cdp", problem, epsilon=1.0, horizon=50, seeds=2, agents=3, arms=3
    ).startswith(line)
