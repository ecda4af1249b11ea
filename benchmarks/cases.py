"""What is measured: cases, each with this package and its rivals side by side."""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

from fmab_jax import machine

# Rivals get as many processes as the package gets cores.
CORES = machine.cores()
AGENTS, ARMS, EPSILON = 50, 100, 1.0
# Runs of at most 5,000 trials are compiled sooner, and take up to 1.7 times as long to run.
MANY = 8192


class Contender(NamedTuple):
    """One way of doing a case's work.

    Attributes:
        name: In tables.
        given: What the worker is told.
        processes: How many do it at once, each its own seeds.
        unit: Work of one seed, in the case's unit.
    """

    name: str
    given: dict[str, Any]
    processes: int = 1
    unit: float = 1.0


class Case(NamedTuple):
    """One row of the table.

    Attributes:
        name: In tables.
        unit: What is counted.
        contenders: This package first, then rivals.
        quick: Whether ``--quick`` runs it.
        alike: Whether the mean regrets of all must agree: they have one law.
    """

    name: str
    unit: str
    contenders: tuple[Contender, ...]
    quick: bool = False
    alike: bool = True


def package(
    algorithm: str = "cdp_mab",
    seeds: int = 16_384,
    horizon: int = 10**6,
    *,
    agents: int = AGENTS,
    arms: int = ARMS,
    problem: tuple[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    name: str = "fmab_jax",
    unit: float = 1.0,
    **more: Any,
) -> Contender:
    """This package."""
    drawn = ("uniform", {"agents": agents, "arms": arms})
    return Contender(
        name,
        {
            "algorithm": algorithm,
            "options": {"epsilon": EPSILON} if options is None else options,
            "problem": problem or drawn,
            "horizon": horizon,
            "seeds": seeds,
            "more": more,
        },
        unit=unit,
    )


def rival(
    function: str,
    name: str,
    seeds: int,
    horizon: int = 10**6,
    *,
    agents: int = AGENTS,
    arms: int = ARMS,
    processes: int = 1,
    unit: float = 1.0,
    epsilon: float | None = EPSILON,
    **more: Any,
) -> Contender:
    """NumPy, or numba."""
    arguments = {"agents": agents, "arms": arms, "horizon": horizon} | more
    if epsilon is not None:
        arguments["epsilon"] = epsilon
    label = f"{name}, {processes} processes" if processes > 1 else f"{name}, 1 process"
    return Contender(
        label, {"rival": function, "seeds": seeds, "arguments": arguments}, processes, unit
    )


def expert(seeds: int, horizon: int = 10**6, processes: int = CORES, **more: Any) -> Contender:
    """The expert's ragged list, agents summed out."""
    return rival("ragged", "expert NumPy", seeds, horizon, processes=processes, **more)


def by_agent(seeds: int, horizon: int = 10**6, processes: int = CORES, **more: Any) -> Contender:
    """The expert's ragged list, a row of agents to each pair."""
    name = "expert NumPy per agent"
    return rival("ragged", name, seeds, horizon, processes=processes, per_agent=True, **more)


def plain(
    seeds: int, horizon: int = 10**6, processes: int = CORES, note: str = "", **more: Any
) -> Contender:
    """The plain script, reward sums agent by agent."""
    name = f"NumPy script per agent{note}"
    return rival("script", name, seeds, horizon, processes=processes, per_agent=True, **more)


def cases() -> list[Case]:
    """Returns all of them."""
    found = [
        Case(
            "paper's instance, T = 10^6",
            "trials/s",
            (
                package(),
                expert(8192),
                expert(8192, processes=1),
                rival("script", "NumPy script summed out", 1000, per_agent=False, processes=CORES),
                rival("script", "NumPy script summed out", 1000, per_agent=False),
                plain(400),
                plain(400, processes=1),
            ),
            quick=True,
        ),
        Case(
            "paper's instance, T = 10^4",
            "trials/s",
            (
                package(horizon=10**4),
                expert(8192, 10**4),
                plain(400, 10**4),
                rival("slots", "NumPy loop over slots", 1, 10**4, processes=CORES),
            ),
        ),
        Case("paper's instance, T = 10^5", "trials/s", (package(horizon=10**5),)),
        Case(
            "paper's instance, T = 10^9",
            "trials/s",
            (package(horizon=10**9), expert(8192, 10**9)),
        ),
        Case("paper's instance, 2 recorded slots", "trials/s", (package(times=[10**5, 10**6]),)),
    ]
    for agents in (1000, 10**5):
        both = package(agents=agents), expert(8192, agents=agents)
        found.append(Case(f"M = {agents:,}", "trials/s", both))
    for arms, seeds, theirs in ((10, 65_536, 32_768), (1000, MANY, 1024)):
        both = package(seeds=seeds, arms=arms), expert(theirs, arms=arms)
        found.append(Case(f"K = {arms:,}", "trials/s", both))
    for share in (0.1, 0.2, 0.4):
        ours = package(seeds=MANY, options={"epsilon": EPSILON, "participation": share})
        heard = round(share * AGENTS)
        theirs = by_agent(128, reporting=heard)
        more = (plain(400, note=", all report"),) if share == 0.4 else ()
        quick = share == 0.4
        case = Case(f"p = {share}", "trials/s", (ours, theirs, *more), quick, alike=not more)
        found.append(case)
    spread = ("heterogeneous", {"agents": AGENTS, "arms": ARMS})
    found += [
        Case(
            "agents differ, p = 1",
            "trials/s",
            (package(seeds=MANY, problem=spread), by_agent(128, spread=1.0)),
            quick=True,
        ),
        Case(
            "ring of 50",
            "trials/s",
            (
                package("ddp_mab", MANY, options={"epsilon": EPSILON, "graph": "ring"}),
                by_agent(128, wait=24),
                plain(400, note=", no waits"),
            ),
            quick=True,
            alike=False,
        ),
        Case(
            "ring of 1,000",
            "trials/s",
            (
                package("ddp_mab", 64, agents=1000, options={"epsilon": EPSILON, "graph": "ring"}),
                by_agent(16, agents=1000, wait=499),
            ),
        ),
        Case(
            "HDP-MAB, case 1: 5 complete components of 20",
            "trials/s",
            (
                package(
                    "hdp_mab",
                    agents=100,
                    options={"epsilon": EPSILON, "components": "20x5:complete"},
                ),
                expert(8192, agents=100),
            ),
        ),
        Case(
            "agents alone",
            "trials/s",
            (package("single_mab", MANY), plain(400, note=", all report to a server")),
            alike=False,
        ),
        Case(
            "agent by agent (sum_agents=False)",
            "trials/s",
            (package(seeds=MANY, sum_agents=False), by_agent(128)),
        ),
        Case(
            "ratings of five levels",
            "trials/s",
            (package(seeds=MANY, problem=("ratings", [AGENTS, ARMS, 5])),),
        ),
    ]
    compiled = importlib.util.find_spec("numba") is not None
    slots = {"horizon": 2000, "options": {}, "unit": 2000 * AGENTS}
    step = {"horizon": 2000, "epsilon": None, "unit": 2000 * AGENTS}
    found += [
        Case(
            "UCB1, K = 100, T = 2,000",
            "agent-slots/s",
            (
                package("ucb1", 256, **slots),
                rival("ucb1", "NumPy", 16, processes=CORES, **step),
                *([rival("ucb1_numba", "numba", 16, processes=CORES, **step)] if compiled else []),
            ),
        ),
        Case(
            "UCB1 pooled, K = 100, T = 2,000",
            "agent-slots/s",
            (
                package("ucb1", MANY, **(slots | {"options": {"pooled": True}})),
                rival("ucb1", "NumPy", 64, processes=CORES, pooled=True, **step),
            ),
        ),
        Case("GosInE, K = 100, T = 2,000", "agent-slots/s", (package("gosine", 256, **slots),)),
    ]
    return found


# Programs that are timed as a whole, each in a fresh process: (name, what it computes, its code).
COMMAND = (
    "from fmab_jax.__main__ import main; import sys; sys.argv = ['fmab', 'run', 'cdp', '--seeds', "
    "'100', '--horizon', '1e6', '--out', STORE]; main()"
)
WHOLE = [
    ("`fmab run cdp`, nothing compiled", COMMAND, "cold"),
    ("`fmab run cdp`, compiled before", COMMAND, "warm"),
    (
        "first result of CDP-MAB, nothing cached",
        "fmab.simulate(fmab.cdp_mab(1.0), fmab.Problem.uniform(50, 100), 10**6, 100)",
        "cold",
    ),
    (
        "first result on a ring, nothing cached",
        'fmab.simulate(fmab.ddp_mab(1.0, "ring"), fmab.Problem.uniform(50, 100), 10**6, 100)',
        "cold",
    ),
    (
        "first result of CDP-MAB, compiled before",
        "fmab.use_compilation_cache(); "
        "fmab.simulate(fmab.cdp_mab(1.0), fmab.Problem.uniform(50, 100), 10**6, 100)",
        "warm",
    ),
    (
        "first result on a ring, compiled before",
        "fmab.use_compilation_cache(); "
        'fmab.simulate(fmab.ddp_mab(1.0, "ring"), fmab.Problem.uniform(50, 100), 10**6, 100)',
        "warm",
    ),
    (
        "sweep of 100 configurations, 1,000 seeds each, T = 10^6",
        "fmab.sweep(fmab.cdp_mab, fmab.Problem.uniform(50, 100), epsilon=[.05, .1, .3, .5, 1], "
        "participation=[.2, .4, .6, .8, 1], rounds=[None, 2, 3, 4], horizon=10**6, seeds=1000, "
        "store=STORE, progress=False)",
        "long",
    ),
    (
        "10^6 seeds of one configuration, summarised, T = 10^6",
        "fmab.sweep(fmab.cdp_mab(1.0), fmab.Problem.uniform(50, 100), horizon=10**6, "
        'seeds=10**6, keep="summary", store=STORE, progress=False)',
        "long",
    ),
    (
        "6 numbers of agents x 3 graphs, 100 seeds each, T = 10^5",
        "fmab.sweep(fmab.ddp_mab, agents=[10, 20, 30, 40, 50, 60], arms=20, "
        'epsilon=1.0, graph=["ring", "star", "complete"], horizon=10**5, seeds=100, '
        "store=STORE, progress=False)",
        "long",
    ),
]
