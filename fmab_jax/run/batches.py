"""Many trials in one compiled program: configurations bound to arrays, batches, devices.

A *config* is one configuration, a *trial* one seed of one config. Trials are cut into batches of
one fixed size, so that all configs of one structure share a compilation, and the last batch is
padded. Each device takes an equal share of a batch (`jax.shard_map`); on a single CPU device the
batches run on all cores, one thread each. None of this reaches the numbers: a trial's results
depend on its config and its seed alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int, UInt32

from fmab_jax.algorithms.base import Algorithm, Outcome, Trial, known, number_bits_of
from fmab_jax.core import keys
from fmab_jax.core.binomials import MAX_TRIALS
from fmab_jax.core.curves import time_grid
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import BoundProblem
from fmab_jax.core.outputs import Output
from fmab_jax.core.problems import MAX_AGENTS, Problem
from fmab_jax.core.rare import mapped_in_blocks, traced_for
from fmab_jax.core.rewards.contract import Looked, is_own, refuse_broken
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import count, did_you_mean, flag, help_of, refuse, whole_class
from fmab_jax.run import cache, contract, resources, schema
from fmab_jax.run import outputs as record
from fmab_jax.run.resources import Estimate, spans_processes, threads

MAX_HORIZON = 10**12
FEW_TRIALS = 5000
"""So many trials take less time than a program saves that compiles quickly."""
# (agent, arm) elements up to which a trial runs for less time than its program takes to compile.
_FEW_ELEMENTS = 10_000
# Sizes that recorded slots and, where they shape an array, agents are padded to, so that runs of
# nearby sizes share a program.
_POINTS = (2, 10, 25, 50, 100)
_ROOMS = 4
# Trials of the smallest batch that is halved no more.
_FEWEST = 8
# So many times larger is the next larger table of configurations.
_TABLE_GROWTH = 8
# Means whose law is looked at in one go.
_LOOKED_AT = 1 << 16


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
            "number_bits": number_bits_of(self.algorithm, self.problem.arms),
        }

    @property
    def bytes_per_seed(self) -> int:
        """Memory of one seed at work."""
        # Of several configurations, what the program is given is laid out for every seed.
        given = sum(np.asarray(x).nbytes for x in jax.tree.leaves(self.arrays))
        # A gauge, what it is after a stretch, and what the stretch adds.
        return (
            given
            + 3 * self.gauge_bytes
            + self.trial.bytes_per_seed(len(self.grid), self.problem.arms)
        )

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
        with traced_for(devices[0].platform):
            sizes = self.elements + curves, self.bytes_per_seed, self.result_bytes
        return resources.estimate(*sizes, trials, devices, batch, lanes)


class Work(NamedTuple):
    """Trials for one compiled program.

    Attributes:
        configs: Of one program.
        which: [trial] which of them.
        seeds: [trial] the seed.
        root_seed: Shared by all.
    """

    configs: Sequence[Config]
    which: np.ndarray
    seeds: range | np.ndarray
    root_seed: int


def bound(
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
        trial.elements(), trial.bytes_per_seed(len(grid), problem.arms)
    wanted = len(grid) if np.ndim(times) else int(times)
    padded = np.pad(grid, (0, _padded_points(wanted) - len(grid)), mode="edge")
    arrays = problem.bind(room)
    grids = padded, len(grid), wanted
    more = soon, tuple(outputs)
    return Config(algorithm, problem, exchange, horizon, trial, arrays, *grids, *more)


def check_given(algorithm: Any, problem: Any) -> None:
    """Refuses what is no algorithm or no problem.

    Raises:
        ValueError: If one is of another type, or its class leaves something out.
    """
    if not isinstance(algorithm, Algorithm):
        names = {_called(each).removeprefix("fmab_jax."): each for each in known().values()}
        names |= known()
        owner: Any = names.get(algorithm) if isinstance(algorithm, str) else algorithm
        otherwise = "call one, such as fmab_jax.cdp_mab(epsilon=1)"
        remedy = did_you_mean(algorithm, names, otherwise, lambda near: _called(names[near]))
        if isinstance(owner, type) and issubclass(owner, Algorithm) and owner.name:
            called = _called(owner)
            own = called.startswith("fmab_jax.")
            remedy = f"call {called} with its parameters" + f"; see {help_of(called)}" * own
        refuse("algorithm", algorithm, "an fmab_jax Algorithm", remedy)
    if not isinstance(problem, Problem):
        remedy = "make one, such as fmab_jax.Problem.uniform(agents=5, arms=10)"
        refuse("problem", problem, "an fmab_jax Problem", remedy)
    whole_class(type(algorithm), algorithm.name or "a family")


def _called(owner: type) -> str:
    """Returns what to call for an algorithm: the package has its own by their files."""
    room, _, file = owner.__module__.rpartition(".")
    return f"fmab_jax.{file}" if room == "fmab_jax.algorithms" else owner.__name__


def _padded_points(wanted: int) -> int:
    """Returns how many slots are recorded, so that nearby numbers share a program."""
    for size in _POINTS:
        if wanted <= size:
            return size
    return -(-wanted // 100) * 100


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


def one_trial(
    trial: Trial,
    problem: BoundProblem,
    grid: Int[Array, " time"],
    root_seed: UInt32[Array, ""],
    seed: UInt32[Array, ""],
) -> Outcome:
    """Runs one seed; pure, for use under ``jit`` and ``vmap``.

    Args:
        trial: The algorithm's arrays.
        problem: The problem's.
        grid: Slots at which the curves are wanted, increasing, the last the horizon.
        root_seed: Selects the whole experiment's randomness.
        seed: Selects the trial's; nothing else does.
    """
    key = keys.seed_key(root_seed, seed)
    owner, name = _owner(trial)
    with contract.asking(type(problem.law)):
        instance = problem.draw(key)
    with contract.asking(owner, tracing=True):
        outcome = trial.run(instance, grid, key)
    arms = instance.gaps.shape[0]
    return contract.shaped(outcome, len(grid), arms, name, getattr(trial, "gauges", ()))


def many_trials(
    trial: Any,
    problem: BoundProblem,
    grid: Int[Array, "trial time"],
    root_seed: UInt32[Array, " trial"],
    seed: UInt32[Array, " trial"],
) -> Outcome:
    """Runs one seed of each of many trials; arguments as in `one_trial`, [trial, ...].

    A trial with a ``run_batch`` runs them all by that; the bits are equal.
    """
    if not hasattr(trial, "run_batch"):
        return jax.vmap(one_trial)(trial, problem, grid, root_seed, seed)
    key = jax.vmap(keys.seed_key)(root_seed, seed)
    with contract.asking(type(problem.law)):
        draw = mapped_in_blocks(lambda problem, key: problem.draw(key), problem.rows * problem.arms)
        instance = draw(problem, key)
    owner, name = _owner(trial)
    with contract.asking(owner, tracing=True):
        outcome = trial.run_batch(instance, grid, key)
    sizes, gauges = (grid.shape[1], instance.gaps.shape[1]), getattr(trial, "gauges", ())
    return jax.vmap(lambda each: contract.shaped(each, *sizes, name, gauges))(outcome)


def numbered_trials(
    table: tuple[Any, BoundProblem, Int[Array, "config time"]],
    row: Int[Array, " trial"],
    root_seed: UInt32[Array, ""],
    seed: UInt32[Array, " trial"],
) -> Outcome:
    """Runs one seed of each of many trials, whose configurations are rows of a table.

    Args:
        table: The arrays of `Config.arrays`, [config, ...].
        row: Which configuration each trial is of.
        root_seed: As in `one_trial`, for all trials.
        seed: As in `one_trial`.
    """

    def per_trial(x: Array) -> Array:
        if len(x) == 1:  # nothing is repeated in memory
            return jnp.broadcast_to(x[0], (len(row), *x.shape[1:]))
        return x.at[row].get(mode="promise_in_bounds")

    trial, problem, grid = jax.tree.map(per_trial, table)
    return many_trials(trial, problem, grid, jnp.broadcast_to(root_seed, seed.shape), seed)


def table_rows(configs: int) -> int:
    """Returns the rows of a table for so many configurations, so that nearby numbers share one."""
    rows = 1
    while rows < configs:
        rows *= _TABLE_GROWTH
    return rows


def _owner(trial: Any) -> tuple[Any, str]:
    """Returns the class whose contract a trial keeps, and what it is called."""
    owner: Any = getattr(trial, "algorithm", getattr(trial, "filling", type(trial)))
    return owner, getattr(owner, "name", "") or owner.__name__


def _look_at_law(
    config: Config, table: BoundProblem, row: np.ndarray, root_seed: int, seed: np.ndarray
) -> None:
    """Refuses somebody's own law that is none at the means of a trial.

    Args:
        config: Any of those that the trials are of.
        table: Their problems, [config, ...].
        row: [trial] which of them.
        root_seed: Of all trials.
        seed: [trial].

    Raises:
        Refusal: For the first trial whose means show it.
    """
    block = min(len(seed), max(1, _LOOKED_AT // (table.rows * table.arms)))
    with own_settings():
        for start in range(0, len(seed), block):
            which = np.minimum(np.arange(start, start + block), len(seed) - 1)
            root = np.full(block, root_seed, np.uint32)
            given = (jax.tree.map(lambda x: x[row[which]], table), root, seed[which])  # noqa: B023
            kept = np.asarray(_laws_kept(*given))
            if not kept.all():
                own = jax.tree.map(lambda x: x[kept.argmin()], given)  # noqa: B023
                found = jax.tree.map(np.asarray, _law_looked_at(*own))
                refuse_broken(config.problem.rewards, found, int(own[-1]))


@jax.jit
def _laws_kept(problem: BoundProblem, root_seed: Any, seed: Any) -> Bool[Array, " trial"]:
    def one(problem: BoundProblem, root_seed: Any, seed: Any) -> Array:
        return problem.looked_at(keys.seed_key(root_seed, seed)).kept

    return jax.vmap(one)(problem, root_seed, seed)


@jax.jit
def _law_looked_at(problem: BoundProblem, root_seed: Any, seed: Any) -> Looked:
    return problem.looked_at(keys.seed_key(root_seed, seed), whole=True)


# Of compilation, by platform. Vectors of 512 bits where the processor has them: XLA takes 256.
# Nothing here is faster for having been tuned, which takes a third of the time.
_OPTIONS: dict[str, dict[str, str | bool]] = {
    "cpu": {"xla_cpu_prefer_vector_width": "512"},
    "gpu": {"xla_gpu_autotune_level": "0"},
}
# Of programs that run for less time than they take to compile: XLA's older emitters of loops.
_SOON: dict[str, dict[str, str | bool]] = {"cpu": {"xla_cpu_use_fusion_emitters": False}}


_telling: ContextVar[Callable[[], None] | None] = ContextVar("telling", default=None)


@contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """Has somebody told, once, that a program is about to be compiled, which takes seconds.

    Nobody is told before a program is traced, which is when a plug-in is refused. What is compiled
    already is told at the end.
    """
    left = [tell]

    def once() -> None:
        if left:
            left.pop()()

    token = _telling.set(once)
    try:
        yield
    finally:
        _telling.reset(token)
    once()


@functools.lru_cache(maxsize=256)
def executable(program: Program, batch: int, devices: tuple[jax.Device, ...], rows: int = 1) -> Any:
    """Compiles one program; called once for each, by all its configs.

    Args:
        program: What configs share.
        batch: Trials.
        devices: That share them.
        rows: Of the table of configs.

    Returns:
        A function of `numbered_trials`' arguments.
    """
    # A data-dependent loop over sharded inputs would synchronise the devices at every step.
    mesh = Mesh(np.array(devices), ("trials",))
    split, whole = PartitionSpec("trials"), PartitionSpec()
    platform = devices[0].platform
    specs = (whole, split, whole, split)
    sharded = jax.shard_map(
        numbered_trials, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False
    )
    shared = spans_processes(devices)

    def each(shape: tuple[int, ...], dtype: Any, spec: Any) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, spec) if shared else None
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    leaves = [each((rows, *shape), np.dtype(dtype), whole) for shape, dtype in program.leaves]
    table = jax.tree.unflatten(program.structure, leaves)
    number, seed = (each((batch,), np.dtype(dtype), split) for dtype in (np.int32, np.uint32))
    arguments = table, number, each((), np.dtype(np.uint32), whole), seed
    options = _OPTIONS.get(platform, {}) | (_SOON.get(platform, {}) if program.soon else {})
    # The scope is the thread's own.
    with own_settings(mesh), traced_for(platform):
        if devices == tuple(jax.local_devices()[:1]) and not shared:
            lowered = cache.lowered(sharded, arguments, (batch, platform))
        else:
            lowered = jax.jit(sharded).lower(*arguments)
        if tell := _telling.get():
            tell()
        try:
            return lowered.compile(compiler_options=options or None)
        except jax.errors.JaxRuntimeError as error:
            if "option" not in str(error):
                raise
            # An option that this compiler does not know: it made programs faster, no more.
            return lowered.compile()


@contextmanager
def ahead(
    wanted: Sequence[tuple[Program, int, int]],
    devices: tuple[jax.Device, ...],
    *,
    one_by_one: bool = False,
) -> Iterator[Callable[[int, Callable[[], None]], None]]:
    """Compiles programs in threads of their own: the next while one is compiled or run.

    A single one is compiled by whoever waits for it.

    Args:
        wanted: Programs, and the sizes of their batches and tables, in the order in which they are
            run.
        devices: As in `executable`.
        one_by_one: Compile each only when it is waited for, in the order in which they are.

    Yields:
        A function that returns once the program of a number is compiled, and raises what that
        raised; somebody is told as by `telling`.
    """

    def compile_program(number: int) -> None:
        program, batch, rows = wanted[number]
        executable(program, batch, devices, rows)

    def alone(number: int, tell: Callable[[], None]) -> None:
        with telling(tell):
            compile_program(number)

    if one_by_one or len(wanted) == 1:
        yield alone
        return
    traced = [Event() for _ in wanted]
    made: list[Future[None]] = []
    pool = ThreadPoolExecutor(2)

    def compiled(number: int) -> None:
        with telling(traced[number].set):
            compile_program(number)

    def ready(number: int, tell: Callable[[], None]) -> None:
        for following in range(len(made), min(number + 2, len(wanted))):
            made.append(pool.submit(compiled, following))
            made[following].add_done_callback(lambda _, event=traced[following]: event.set())  # type: ignore[misc]
        traced[number].wait()
        if made[number].done():
            made[number].result()
        tell()
        made[number].result()

    try:
        yield ready
    finally:
        # A compiler cannot be stopped; nobody waits for it.
        pool.shutdown(wait=False, cancel_futures=True)


def run_trials(
    work: Work,
    batch: int,
    devices: tuple[jax.Device, ...],
    lanes: int | None = None,
    rows: int | None = None,
    *,
    held: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """Yields (first trial, outcome) of each batch, as they finish; ``lanes`` of them run at once.

    A batch that runs out of a device's memory is halved, down to eight trials. Where the devices
    belong to several processes, all of them must call this with the same work; each gets all
    outcomes. ``rows`` is the size of the table of configs, by default one that suits their number.
    Series over time that are ``held`` stay on the device.
    """
    lanes = threads(devices) if lanes is None else lanes
    rows = table_rows(len(work.configs)) if rows is None else rows
    missing = np.ones(len(work.seeds), bool)
    try:
        for start, outcome in _run_batches(work, batch, devices, lanes, rows, held):
            missing[start : start + batch] = False
            yield start, outcome
    except jax.errors.JaxRuntimeError as error:
        # Of several processes, the others would wait for the whole batch.
        small = batch < 2 * _FEWEST * len(devices) or spans_processes(devices)
        if small or "RESOURCE_EXHAUSTED" not in str(error):
            raise
    # Outside of the handler, which holds on to what the failed batches have allocated.
    if missing.any():
        rest = np.flatnonzero(missing)
        part = work._replace(which=work.which[rest], seeds=np.asarray(work.seeds)[rest])
        # One batch at a time: others took memory as well. What is missing are whole batches, but
        # for the last, so that half a batch lies within one of them.
        for start, outcome in run_trials(part, batch // 2, devices, 1, rows, held=held):
            yield int(rest[start]), outcome


def _run_batches(
    work: Work,
    batch: int,
    devices: tuple[jax.Device, ...],
    lanes: int,
    rows: int,
    held: bool,
) -> Iterator[tuple[int, Outcome]]:
    """Runs batches of one size; yields as `run_trials`."""
    compiled = executable(work.configs[0].program, batch, devices, rows)
    filled = [*work.configs, *[work.configs[-1]] * (rows - len(work.configs))]
    table = jax.tree.map(lambda *values: np.stack(values), *(each.arrays for each in filled))
    problems = table[1]
    shared = spans_processes(devices)
    mesh = Mesh(np.array(devices), ("trials",))
    split, whole = (
        NamedSharding(mesh, spec) for spec in (PartitionSpec("trials"), PartitionSpec())
    )
    pinned = None if shared else _pinned(split, devices)
    gauges = record.gauges_of(work.configs[0].outputs)
    agents = max(config.problem.agents for config in work.configs)

    def put(x: np.ndarray, sharding: NamedSharding) -> Any:
        return jax.make_array_from_callback(x.shape, sharding, x.__getitem__)

    with own_settings(mesh):
        root_seed: Any = np.uint32(work.root_seed)
        if shared:
            table, root_seed = jax.tree.map(lambda x: put(np.asarray(x), whole), (table, root_seed))
        else:
            table, root_seed = jax.device_put((table, root_seed), whole)

    def one(start: int) -> tuple[int, Outcome]:
        seed = np.asarray(work.seeds[start : start + batch], np.uint32)
        which = work.which[start : start + batch].astype(np.int32)
        # The last batch is filled by its last trial.
        numbers: tuple[Any, ...] = tuple(
            x if len(x) == batch else np.pad(x, (0, batch - len(x)), mode="edge")
            for x in (which, seed)
        )
        if not is_own(type(work.configs[0].bound.law)):
            _look_at_law(work.configs[0], problems, which, work.root_seed, seed)
        with own_settings(mesh):
            if shared:
                numbers = tuple(put(x, split) for x in numbers)
            outcome = compiled(table, numbers[0], root_seed, numbers[1])
            if held and _looks_right(outcome):
                return start, _without_series(outcome, len(seed))
            if shared:
                outcome = multihost_utils.process_allgather(outcome, tiled=True)
            elif pinned is not None:
                outcome = jax.device_put(outcome, pinned)
            outcome = jax.tree.map(lambda x: np.asarray(x)[: len(seed)], outcome)
        contract.judge(outcome, seed, work.configs[0].algorithm.name, gauges, agents)
        return start, outcome

    if len(work.seeds) <= batch:
        yield one(0)
        return
    starts = iter(range(0, len(work.seeds), batch))
    with ThreadPoolExecutor(lanes) as pool:
        # Only as many in flight as there are threads: memory is bounded by the batch.
        running: set[Future[tuple[int, Outcome]]] = set()
        try:
            while True:
                for start in starts:
                    running.add(pool.submit(one, start))
                    if len(running) > lanes:
                        break
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


_looks_right = jax.jit(contract.looks_right)


def _without_series(outcome: Outcome, trials: int) -> Outcome:
    """Returns an outcome whose series, alone, stay on the device."""
    there: dict[str, Any] = {
        name: x[:trials] if schema.FIELDS[name][1] else np.asarray(x)[:trials]
        for name, x in outcome._asdict().items()
        if x is not None
    }
    return outcome._replace(**there)


def _pinned(split: NamedSharding, devices: Sequence[jax.Device]) -> NamedSharding | None:
    """Returns where results go that leave accelerators; None on processors.

    The first batches are as slow as without it: the memory is pinned while they wait.
    """
    if devices[0].platform == "cpu":
        return None
    kinds = {memory.kind for memory in devices[0].addressable_memories()}
    return split.with_memory_kind("pinned_host") if "pinned_host" in kinds else None


class Collected:
    """The trials' results by field of `Outcome` or name of a gauge, filled in batch by batch.

    Attributes:
        points: How many recorded slots are kept.
        over_time: Gauges that have a value at each of them.
    """

    def __init__(self, trials: int, points: int, outputs: Sequence[Output] = ()) -> None:
        self.trials, self.points = trials, points
        self._arrays: dict[str, np.ndarray] = {}
        self._held: dict[str, dict[int, Array]] = {}
        gauges = record.gauges_of(outputs)
        self.over_time = {each.name for each in gauges if "time" in each.dims}

    def put(self, start: int, outcome: Outcome) -> None:
        """Stores a batch at the place of its first trial."""
        fields: dict[str, Any] = outcome._asdict()
        for name, values in (fields | (fields.pop("gauged") or {})).items():
            if values is None:
                continue
            if isinstance(values, jax.Array):
                self._held.setdefault(name, {})[start] = values
                continue
            dtype, over_time = schema.FIELDS.get(name, (np.dtype(float), name in self.over_time))
            kept = values[..., : self.points] if over_time else values
            if name not in self._arrays:
                self._arrays[name] = np.empty((self.trials, *kept.shape[1:]), dtype)
            self._arrays[name][start : start + len(values)] = kept

    @property
    def arrays(self) -> dict[str, Any]:
        """[trial, ...] of every field that some trial has, and of every gauge.

        Series of which all batches are on a device lie there.
        """
        found: dict[str, Any] = dict(self._arrays)
        with own_settings():
            for name, parts in self._held.items():
                ordered = [parts[start] for start in sorted(parts)]
                if name not in found:
                    found[name] = jnp.concatenate(ordered)[:, : self.points]
                    continue
                for start, part in parts.items():
                    found[name][start : start + len(part)] = np.asarray(part)[:, : self.points]
        return found
