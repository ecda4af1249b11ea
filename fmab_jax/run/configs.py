"""One configuration, checked and bound to arrays.

Sizes are padded, so that runs of similar sizes share a compiled program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import check_frozen_class, count, flag, format_quantity, refuse
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.instances import BoundProblem
from fmab_jax.parts.outputs import Output
from fmab_jax.parts.outputs.accumulators import Rows
from fmab_jax.parts.per_agent import check_lengths
from fmab_jax.parts.trials import Trial
from fmab_jax.parts.worlds import ContextualWorld
from fmab_jax.records.means import MAX_AGENTS
from fmab_jax.records.problem import Problem
from fmab_jax.run import promises, resources, schema
from fmab_jax.run.outputs import attach_accumulators, collect_accumulators
from fmab_jax.run.reductions import Facts
from fmab_jax.sampling.binomials import MAX_TRIALS
from fmab_jax.sampling.curves import time_grid

MAX_HORIZON = 10**12
FEW_TRIALS = 5000
"""Up to this many trials, a program that compiles fast saves more time than it costs."""
# Trials with more (agent, arm) elements are compiled with full optimisation.
_FEW_ELEMENTS = 10_000
# A TPU represents a float64 by two float32, which are exact up to this integer.
_TPU_COUNTS = 2**46
# Padded numbers of recorded slots, and the factor between padded numbers of agents.
_POINTS = (2, 10, 25, 50, 100)
_AGENTS_GROWTH = 4


class Program(NamedTuple):
    """Everything that a compilation depends on, except batch and devices.

    Attributes:
        structure: Pytree structure of a config's arrays, with the static parts.
        shapes: Shape and type of each array.
        fast_compile: Whether compilation takes two thirds of the time, and a run 1.5 times as long;
            the bits are the same.
    """

    structure: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[tuple[int, ...], str], ...]
    fast_compile: bool = False


class Config(NamedTuple):
    """One configuration, checked and bound to arrays.

    Attributes:
        algorithm: The algorithm.
        problem: The problem.
        exchange: Who hears whom, and the cost of a round.
        horizon: T.
        trial: The algorithm's arrays.
        bound: The problem's arrays.
        grid: [time] recorded slots; padding repeats the last one, the horizon.
        points: Number of recorded slots without padding.
        requested_points: Number of slots that the user requested; short horizons have fewer.
        fast_compile: As in `Program`.
        outputs: Requested outputs in addition to the standard ones.
    """

    algorithm: Algorithm
    problem: Problem
    exchange: Exchange
    horizon: int
    trial: Trial
    bound: BoundProblem
    grid: np.ndarray
    points: int
    requested_points: int
    fast_compile: bool = False
    outputs: tuple[Output, ...] = ()

    @property
    def arrays(self) -> tuple[Trial, BoundProblem, np.ndarray]:
        """Arguments of the compiled program."""
        return self.trial, self.bound, self.grid

    @property
    def program(self) -> Program:
        """Program, which configs of one compilation share."""
        arrays, structure = jax.tree.flatten(self.arrays)
        shapes = tuple((np.shape(x), np.asarray(x).dtype.str) for x in arrays)
        return Program(structure, shapes, self.fast_compile)

    def with_outputs(self, outputs: tuple[Output, ...]) -> Config:
        """Returns the configuration with these outputs in addition to the standard ones."""
        title = self.algorithm.title or self.algorithm.name
        with promises.refuse_errors(type(self.algorithm)):
            trial = attach_accumulators(self.trial, outputs, title)
        return self._replace(trial=trial, outputs=outputs)

    @property
    def elements(self) -> int:
        """Number of (agent, arm) elements in the loop's state of one seed."""
        return self.trial.elements() * self.problem.arms * max(1, self.problem.segments)

    @property
    def result_bytes(self) -> int:
        """Bytes of one seed's results: series of regret, rounds and links, and a few numbers."""
        series = 8 + 4 + 8 * self.trial.waits
        output_bytes = sum(self.bytes_of(output.dims) for output in self.outputs)
        series_bytes = self.points * (series + 8 * len(self.exchange.links))
        return series_bytes + 40 + output_bytes + self.accumulator_bytes

    @property
    def curve_bytes(self) -> int:
        """Bytes of one seed's curves in a sweep."""
        waits = self.trial.waits
        return self.requested_points * (9 + 8 * waits) + 32 + self.accumulator_bytes

    def size(self, dim: str) -> int:
        """Returns the length of a dimension of an output."""
        sizes = {"time": self.points, "agent": self.problem.agents, "arm": self.problem.arms}
        return sizes[dim] if dim in sizes else len(self.exchange.links)

    def bytes_of(self, dims: tuple[str, ...]) -> int:
        """Returns the bytes of one seed's values over some dimensions."""
        return 8 * math.prod(map(self.size, dims))

    @property
    def accumulator_bytes(self) -> int:
        """Bytes of one seed's accumulators in the loop."""
        rows, arms = self.trial.accumulator_rows, self.problem.arms
        own_rows = rows if self.problem.homogeneous else max(rows, self.bound.rows)
        total = 0
        for x in collect_accumulators(self.outputs):
            agents = max(Rows(rows, own_rows).count(x), arms * x.counts_slots)
            sizes = {"time": len(self.grid), "arm": arms, "agent": agents}
            total += 8 * math.prod(sizes[dim] for dim in x.dims)
        return total

    @property
    def costs(self) -> schema.Costs:
        """Costs of a completed round, or of a message."""
        return schema.costs_of(self.exchange, self.messages)

    @property
    def messages(self) -> int:
        """Messages of a whole round if they are counted one by one, else 0."""
        presence = self.problem.presence
        if presence is None or not presence.counts_messages:
            return 0
        return self.algorithm.count_messages(self.exchange)

    @property
    def facts(self) -> Facts:
        """Facts that outputs read in addition to the records of trials."""
        return {
            "agents": self.problem.agents,
            "arms": self.problem.arms,
            "counted": self.costs["counted"],
            "vectors": self.costs["vectors"],
            "numbers": self.costs["numbers"],
            "links": np.array([*self.costs["links"].values()], np.int64),
            "number_bits": self.algorithm.number_bits(self.problem.arms),
        }

    def choose_batch(
        self,
        trials: int,
        devices: Sequence[jax.Device],
        batch: int | None = None,
        lanes: int | None = None,
    ) -> tuple[int, int]:
        """Returns the seeds of a batch and its lanes; as `resources.choose_batch`."""
        trial = self.trial
        # If agents are alone, each one has curves in addition to its arms.
        curves = trial.padded_agents * len(self.grid) if trial.alone else 0
        sizes = self.elements + curves, self.result_bytes
        return resources.choose_batch(*sizes, trials, devices, batch, lanes)


def bind(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    *,
    times: ArrayLike = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    padded_agents: int | None = None,
    fast_compile: bool = False,
    outputs: Sequence[Output] = (),
) -> Config:
    """Checks one configuration and binds it to arrays; arguments as in `simulate`.

    Args:
        algorithm: The algorithm.
        problem: The problem.
        horizon: T.
        times: Recorded slots, or their number.
        spacing: Spacing of recorded slots.
        sum_agents: Draw totals where that is exact.
        padded_agents: Rows of arrays that have one row for each agent; by default a size that
            similar numbers of agents share.
        fast_compile: Prefer fast compilation to fast runs if the trial is ``brief``; the bits are
            equal.
        outputs: Outputs in addition to the standard ones.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_types(algorithm, problem)
    remedy = "give the number of slots T"
    horizon = count("horizon", horizon, 1, MAX_HORIZON, remedy)
    flag("sum_agents", sum_agents)
    if horizon * problem.agents > MAX_TRIALS:
        limit = MAX_TRIALS // problem.agents
        allowed = f"at most {limit:,} with {format_quantity(problem.agents, 'agent')}"
        refuse("horizon", horizon, allowed, remedy)
    grid = time_grid(horizon, times, spacing)
    exchange = build_exchange(algorithm, problem.agents)
    promises.check_statements(algorithm, exchange, problem.arms)
    padded_agents = _round_agents(problem.agents) if padded_agents is None else padded_agents
    # The largest problems leave no space for padding.
    padded_agents = max(problem.agents, min(padded_agents, MAX_AGENTS, (2**32 - 1) // problem.arms))
    with promises.refuse_errors(type(algorithm)):
        trial = algorithm.bind(
            problem, horizon, exchange=exchange, sum_agents=sum_agents, padded_agents=padded_agents
        )
        if not isinstance(trial, Trial):
            name, remedy = f"{type(algorithm).__name__}.bind", "derive the trial's class from it"
            refuse(name, type(trial).__name__, "a fmab_jax.parts.trials.Trial", remedy)
        title = algorithm.title or algorithm.name
        _check_abilities(trial, problem, title)
        trial = attach_accumulators(trial, outputs, title)
        # A trial of many agents takes longer to run than to compile.
        few = trial.elements() * problem.arms <= _FEW_ELEMENTS
        use_fast_compile = fast_compile and few and trial.brief
    requested_points = len(grid) if np.ndim(times) else int(np.asarray(times))
    padded = np.pad(grid, (0, _pad_points(requested_points) - len(grid)), mode="edge")
    arrays = problem.bind(padded_agents)
    fields = padded, len(grid), requested_points, use_fast_compile, tuple(outputs)
    return Config(algorithm, problem, exchange, horizon, trial, arrays, *fields)


def _check_abilities(trial: Trial, problem: Problem, title: str) -> None:
    """Refuses a world or a presence that the loop of an algorithm cannot follow."""
    world, presence, allowed = problem.world, problem.presence, f"left out with {title}"
    if world is not None and not trial.follows_worlds:
        refuse("world", world.text(), allowed, "its loop takes means as constant")
    if presence is not None and not trial.follows_presences:
        refuse("presence", presence.text(), allowed, "its loop hears every agent")
    if isinstance(world, ContextualWorld) and not trial.reads_contexts:
        remedy = "only index policies act slot by slot, such as ucb1"
        refuse("world", world.text(), allowed, remedy)


def check_counts(config: Config, platform: str) -> None:
    """Refuses a horizon whose rewards a TPU could not count.

    Raises:
        ValueError: If there are too many slots for its agents.
    """
    agents = config.problem.agents
    if platform == "tpu" and config.horizon * agents > _TPU_COUNTS:
        allowed = f"at most {_TPU_COUNTS // agents:,} with {format_quantity(agents, 'agent')}"
        remedy = "use a processor or a GPU, which have float64"
        refuse("horizon", config.horizon, f"{allowed} on a TPU", remedy)


def check_types(algorithm: object, problem: object) -> None:
    """Refuses arguments that are not an algorithm and a problem.

    Raises:
        ValueError: If one has another type, or its class is incomplete.
    """
    if not isinstance(algorithm, Algorithm):
        remedy = "call one with its parameters, such as fmab_jax.cdp_mab(epsilon=1)"
        refuse("algorithm", algorithm, "an fmab_jax Algorithm", remedy)
    if not isinstance(problem, Problem):
        remedy = "make one, such as fmab_jax.Problem(agents=5, arms=10)"
        refuse("problem", problem, "an fmab_jax Problem", remedy)
    check_frozen_class(type(algorithm), algorithm.name or "a family")


def _pad_points(points: int) -> int:
    """Pads a number of recorded slots, so that similar numbers share a program."""
    return next((size for size in _POINTS if points <= size), -(-points // 100) * 100)


def _round_agents(agents: int) -> int:
    """Rounds a number of agents up by at most an eighth, to a size that similar numbers share."""
    step = 1 << max(0, agents.bit_length() - 4)
    return -(-agents // step) * step


def pad_agents(agents: int) -> int:
    """Pads agents to a size that many numbers of agents share."""
    padded_agents = 4
    while padded_agents < agents:
        padded_agents *= _AGENTS_GROWTH
    # Fourfold padding would be too slow for large problems.
    return padded_agents if padded_agents <= 256 else -(-agents // 256) * 256


@functools.lru_cache(maxsize=1024)
def build_exchange(algorithm: Algorithm, agents: int) -> Exchange:
    """Builds an algorithm's exchange, once for equal algorithms."""
    with promises.refuse_errors(type(algorithm)):
        exchange = algorithm.exchange(agents)
    if not isinstance(exchange, Exchange) or exchange.agents != agents:
        allowed = f"an fmab_jax.Exchange of {format_quantity(agents, 'agent')}"
        remedy = "return one, such as fmab_jax.parts.exchanges.server(agents)"
        refuse(f"{type(algorithm).__name__}.exchange", exchange, allowed, remedy)
    check_lengths(algorithm, agents)
    with promises.refuse_errors(type(algorithm)):
        algorithm.check_exchange(exchange)
    return exchange
