"""One configuration, checked and bound to arrays.

Sizes are padded to a few, so that runs of nearby sizes share a compiled program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.core.binomials import MAX_TRIALS
from fmab_jax.core.curves import time_grid
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import BoundProblem
from fmab_jax.core.outputs import Output
from fmab_jax.core.problems import MAX_AGENTS, Problem
from fmab_jax.core.trials import Trial
from fmab_jax.errors import check_frozen_class, count, flag, refuse
from fmab_jax.run import contract, resources, schema
from fmab_jax.run import outputs as record
from fmab_jax.run.resources import Estimate

MAX_HORIZON = 10**12
FEW_TRIALS = 5000
"""So many trials take less time than a program saves that compiles quickly."""
# (agent, arm) elements up to which a trial runs for less time than its program takes to compile.
_FEW_ELEMENTS = 10_000
# A TPU makes a float64 of two float32: larger whole numbers are not exact.
_TPU_COUNTS = 2**46
# Sizes that recorded slots and, where they shape an array, agents are padded to.
_POINTS = (2, 10, 25, 50, 100)
_ROOMS = 4


class Program(NamedTuple):
    """All that a compilation depends on, besides batch and devices.

    Attributes:
        structure: Of a config's arrays; holds the static parts.
        leaves: Shape and type of each array.
        soon: Compiled in two thirds of the time, to run in half as much again; the same bits.
    """

    structure: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]
    soon: bool = False


class Config(NamedTuple):
    """One configuration, checked and bound to arrays.

    Attributes:
        algorithm: What is run.
        problem: On what.
        exchange: Who is heard, and what a round costs.
        horizon: T.
        trial: The algorithm's arrays.
        bound: The problem's arrays.
        grid: [time] recorded slots, the last the horizon, which padding repeats.
        points: How many of them are meant.
        wanted: How many were asked for; small horizons have fewer.
        soon: As in `Program`.
        outputs: That were asked for besides the usual ones.
    """

    algorithm: Algorithm
    problem: Problem
    exchange: Exchange
    horizon: int
    trial: Trial
    bound: BoundProblem
    grid: np.ndarray
    points: int
    wanted: int
    soon: bool = False
    outputs: tuple[Output, ...] = ()

    @property
    def arrays(self) -> tuple[Trial, BoundProblem, np.ndarray]:
        """What the compiled program takes."""
        return self.trial, self.bound, self.grid

    @property
    def program(self) -> Program:
        """What configs must share to share a compilation."""
        leaves, structure = jax.tree.flatten(self.arrays)
        shapes = tuple((np.shape(x), np.asarray(x).dtype.str) for x in leaves)
        return Program(structure, shapes, self.soon)

    @property
    def elements(self) -> int:
        """(agent, arm) elements that the loop holds for one seed."""
        return self.trial.elements() * self.problem.arms

    @property
    def result_bytes(self) -> int:
        """Memory of one seed's results: series of regret, rounds, links, and a few numbers."""
        series = 8 + 4 + 8 * bool(getattr(self.trial, "waits", True))
        further = sum(self.bytes_of(each.dims) for each in self.outputs) + self.gauge_bytes
        return self.points * (series + 8 * len(self.exchange.links)) + 40 + further

    @property
    def curve_bytes(self) -> int:
        """Memory of what a sweep keeps of one seed."""
        waits = bool(getattr(self.trial, "waits", True))
        return self.wanted * (9 + 8 * waits) + 32 + self.gauge_bytes

    def size(self, dim: str) -> int:
        """Returns the length of a dimension that an output may have."""
        sizes = {"time": self.points, "agent": self.problem.agents, "arm": self.problem.arms}
        return sizes[dim] if dim in sizes else len(self.exchange.links)

    def bytes_of(self, dims: tuple[str, ...]) -> int:
        """Returns the memory of one seed's values over some dimensions."""
        return 8 * math.prod(map(self.size, dims))

    @property
    def gauge_bytes(self) -> int:
        """Memory of what the loops add up for one seed's outputs."""
        trial: Any = self.trial
        rows = getattr(trial, "gauge_rows", 1)
        sizes = {"agent": rows, "time": len(self.grid), "arm": self.problem.arms}
        gauges = record.gauges_of(self.outputs)
        return sum(8 * math.prod(sizes[dim] for dim in each.dims) for each in gauges)

    @property
    def facts(self) -> dict[str, Any]:
        """What outputs are made of besides what trials record."""
        return {
            "agents": self.problem.agents,
            "arms": self.problem.arms,
            **schema.costs_of(self.exchange),
            "links": np.array([number for _, number in self.exchange.links], np.int64),
            "number_bits": self.algorithm.number_bits(self.problem.arms),
        }

    def needs(
        self,
        trials: int,
        devices: Sequence[jax.Device],
        batch: int | None = None,
        lanes: int | None = None,
    ) -> Estimate:
        """Returns what so many trials will need; arguments as in `resources.estimate`."""
        trial: Any = self.trial
        # Each agent alone has curves beside its arms.
        alone = getattr(trial, "alone", False)
        curves = trial.padded_agents * len(self.grid) if alone else 0
        sizes = self.elements + curves, self.result_bytes
        return resources.estimate(*sizes, trials, devices, batch, lanes)


def bind(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    *,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    room: int | None = None,
    quick: bool = False,
    outputs: Sequence[Output] = (),
) -> Config:
    """Checks one configuration and binds it to arrays; arguments as in `simulate`.

    Args:
        algorithm: What to run.
        problem: On what.
        horizon: T.
        times: Recorded slots, or how many.
        spacing: Of them.
        sum_agents: Draw totals where that is exact.
        room: Rows that agents are padded to where they shape an array; by default a size that
            nearby numbers of agents share.
        quick: Prefer a program that compiles quickly to one that runs quickly, where the trial is
            ``brief``; their bits are equal.
        outputs: Outputs besides the usual ones.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_given(algorithm, problem)
    remedy = "give the number of slots T"
    horizon = count("horizon", horizon, 1, MAX_HORIZON, remedy)
    flag("sum_agents", sum_agents)
    if horizon * problem.agents > MAX_TRIALS:
        limit = MAX_TRIALS // problem.agents
        refuse("horizon", horizon, f"at most {limit:,} with {problem.agents} agents", remedy)
    grid = time_grid(horizon, times, spacing)
    exchange = exchange_of(algorithm, problem.agents)
    contract.check_statements(algorithm, exchange, problem.arms)
    room = _snug(problem.agents) if room is None else room
    # The largest problems have no room to spare.
    room = max(problem.agents, min(room, MAX_AGENTS, (2**32 - 1) // problem.arms))
    with contract.asking(type(algorithm)):
        trial = algorithm.bind(
            problem, horizon, exchange=exchange, sum_agents=sum_agents, room=room
        )
        trial = record.gauging(trial, outputs, algorithm.title or algorithm.name)
        # A trial of many agents takes longer than its share of compiling.
        few = trial.elements() * problem.arms <= _FEW_ELEMENTS
        soon = quick and few and bool(getattr(trial, "brief", False))
    wanted = len(grid) if np.ndim(times) else int(times)
    padded = np.pad(grid, (0, _padded_points(wanted) - len(grid)), mode="edge")
    arrays = problem.bind(room)
    about = padded, len(grid), wanted, soon, tuple(outputs)
    return Config(algorithm, problem, exchange, horizon, trial, arrays, *about)


def check_counts(config: Config, platform: str) -> None:
    """Refuses a horizon whose rewards a TPU could not count.

    Raises:
        ValueError: If there are too many slots for its agents.
    """
    agents = config.problem.agents
    if platform == "tpu" and config.horizon * agents > _TPU_COUNTS:
        allowed = f"at most {_TPU_COUNTS // agents:,} with {agents} agents on a TPU"
        refuse("horizon", config.horizon, allowed, "use a processor or a GPU, which have float64")


def check_given(algorithm: Any, problem: Any) -> None:
    """Refuses what is no algorithm or no problem.

    Raises:
        ValueError: If one is of another type, or its class leaves something out.
    """
    if not isinstance(algorithm, Algorithm):
        remedy = "call one with its parameters, such as fmab_jax.cdp_mab(epsilon=1)"
        refuse("algorithm", algorithm, "an fmab_jax Algorithm", remedy)
    if not isinstance(problem, Problem):
        remedy = "make one, such as fmab_jax.Problem.uniform(agents=5, arms=10)"
        refuse("problem", problem, "an fmab_jax Problem", remedy)
    check_frozen_class(type(algorithm), algorithm.name or "a family")


def _padded_points(wanted: int) -> int:
    """Returns how many slots are recorded, so that nearby numbers share a program."""
    return next((size for size in _POINTS if wanted <= size), -(-wanted // 100) * 100)


def _snug(agents: int) -> int:
    """Returns a number of rows, at most an eighth more than agents, that nearby numbers share."""
    step = 1 << max(0, agents.bit_length() - 4)
    return -(-agents // step) * step


def room_for(agents: int) -> int:
    """Returns the rows that agents are padded to where many numbers of them share a program."""
    room = 4
    while room < agents:
        room *= _ROOMS
    # Large problems are not padded fourfold.
    return room if room <= 256 else -(-agents // 256) * 256


@functools.lru_cache(maxsize=1024)
def exchange_of(algorithm: Algorithm, agents: int) -> Exchange:
    """Returns an algorithm's exchange; worked out once for equal algorithms."""
    with contract.asking(type(algorithm)):
        found = algorithm.exchange(agents)
    if not isinstance(found, Exchange) or found.agents != agents:
        allowed = f"an fmab_jax.Exchange of {agents} agents"
        remedy = "return one, such as fmab_jax.core.exchanges.server(agents)"
        refuse(f"{type(algorithm).__name__}.exchange", found, allowed, remedy)
    return found
