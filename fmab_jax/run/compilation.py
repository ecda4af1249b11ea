"""Programs: many trials, compiled for a batch of one size and for some devices.

Configurations of one structure share a program: it is given a table of them, and for each trial its
row and its seed. Each device takes an equal share of a batch (`jax.shard_map`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Int, UInt32

from fmab_jax.core import keys
from fmab_jax.core.backend import trace_for
from fmab_jax.core.instances import BoundProblem
from fmab_jax.core.rare import map_in_blocks
from fmab_jax.core.scope import own_settings
from fmab_jax.core.trials import Outcome, Trial
from fmab_jax.errors import refuse
from fmab_jax.run import cache, contract, resources
from fmab_jax.run.configs import Program

# So many times larger is the next larger table of configurations.
_TABLE_GROWTH = 8


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
    return contract.shaped(outcome, len(grid), name, getattr(trial, "accumulators", ()))


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
        draw = map_in_blocks(lambda problem, key: problem.draw(key), problem.rows * problem.arms)
        instance = draw(problem, key)
    owner, name = _owner(trial)
    with contract.asking(owner, tracing=True):
        outcome = trial.run_batch(instance, grid, key)
    about = grid.shape[1], name, getattr(trial, "accumulators", ())
    return jax.vmap(lambda one: contract.shaped(one, *about))(outcome)


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


# Of compilation, by platform. Vectors of 512 bits where the processor has them: XLA takes 256.
# Nothing here is faster for having been tuned, which takes a third of the time.
_OPTIONS: dict[str, dict[str, str | bool]] = {
    "cpu": {"xla_cpu_prefer_vector_width": "512"},
    "gpu": {"xla_gpu_autotune_level": "0"},
}
# Of programs that run for less time than they take to compile: XLA's older emitters of loops.
_SOON: dict[str, dict[str, str | bool]] = {"cpu": {"xla_cpu_use_fusion_emitters": False}}


@functools.lru_cache(maxsize=256)
def compile_program(
    program: Program, batch: int, devices: tuple[jax.Device, ...], rows: int = 1
) -> jax.stages.Compiled:
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
    shape_of = jax.ShapeDtypeStruct
    leaves = [shape_of((rows, *shape), np.dtype(dtype)) for shape, dtype in program.leaves]
    table = jax.tree.unflatten(program.structure, leaves)
    number, seed = (shape_of((batch,), np.dtype(dtype)) for dtype in (np.int32, np.uint32))
    arguments = table, number, shape_of((), np.dtype(np.uint32)), seed
    options = _OPTIONS.get(platform, {}) | (_SOON.get(platform, {}) if program.soon else {})
    # The scope is the thread's own.
    with own_settings(mesh), trace_for(platform):
        if devices == tuple(jax.local_devices()[:1]):
            lowered = cache.lowered(sharded, arguments, (batch, platform))
        else:
            lowered = jax.jit(sharded).lower(*arguments)
        try:
            return lowered.compile(compiler_options=options or None)
        except jax.errors.JaxRuntimeError as error:
            if "option" not in str(error):
                raise
            # An option that this compiler does not know: it made programs faster, no more.
            return lowered.compile()
        finally:
            _release_memory()


def _release_memory() -> None:
    """Gives the system back what the compiler has freed: 200 MB, which nothing else would use."""
    with suppress(OSError, AttributeError, TypeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)


class Sizes(NamedTuple):
    """How trials are run.

    Attributes:
        batch: Trials of a batch, over all devices.
        rows: Of the table of configs.
        lanes: Batches that run at once.
    """

    batch: int
    rows: int = 1
    lanes: int = 1


# Largest batch of a program that a device had the memory for, where a larger one failed.
_LARGEST: dict[tuple[Program, tuple[jax.Device, ...]], int] = {}


def fit_sizes(
    program: Program, sizes: Sizes, devices: tuple[jax.Device, ...], result_bytes: int = 0
) -> Sizes:
    """Compiles a program for the largest batch that fits into memory.

    What a program takes is what its compiler says. Nothing is allocated.

    Args:
        program: As in `compile_program`.
        sizes: That are wanted.
        devices: That share each batch.
        result_bytes: Memory that this process keeps for results.

    Returns:
        The sizes that fit: a smaller batch, or fewer of the smallest.

    Raises:
        ValueError: If a processor does not have the memory for one batch of the smallest size.
    """
    batch, rows, lanes = sizes
    host = devices[0].platform == "cpu"
    memory = resources.memory_of(devices[0])
    room = resources.BATCHES * memory
    if host:
        room = min(room, resources.EVERYTHING * memory - result_bytes)
    batch = limit_batch(program, batch, devices)
    while True:
        try:
            size = _measure_batch(program, batch, devices, rows)
        except jax.errors.JaxRuntimeError as error:
            if not (is_out_of_memory(error) and can_halve(batch, devices)):
                raise
            batch //= 2
            continue
        # Devices that a processor is shown as have its memory together.
        size *= len(devices) if host else 1
        if not memory or lanes * size <= room:
            return Sizes(batch, rows, lanes)
        if not can_halve(batch, devices):
            if host and size > room:
                allowed = (
                    f"at most {max(room, 0) / 1e9:.3g} GB of the {memory / 1e9:.3g} GB available"
                )
                refuse("memory", f"{size / 1e9:.3g} GB", allowed, "use fewer agents or arms")
            return Sizes(batch, rows, max(1, int(room / size)))
        # Memory goes with the batch.
        while lanes * size > room and can_halve(batch, devices):
            size, batch = size / 2, batch // 2


@functools.lru_cache(maxsize=256)
def _measure_batch(
    program: Program, batch: int, devices: tuple[jax.Device, ...], rows: int
) -> float:
    """Returns the bytes that a batch takes of a device, without its few arguments; 0 if unknown."""
    sizes = compile_program(program, batch, devices, rows).memory_analysis()
    return sizes.temp_size_in_bytes + sizes.output_size_in_bytes if sizes else 0


def limit_batch(program: Program, batch: int, devices: tuple[jax.Device, ...]) -> int:
    """Returns a batch, or the largest one for which a device had the memory."""
    return min(batch, _LARGEST.get((program, devices), batch))


def note_failure(program: Program, batch: int, devices: tuple[jax.Device, ...]) -> int:
    """Remembers that a batch ran out of memory; returns the size of the next one."""
    _LARGEST[program, devices] = batch // 2
    return batch // 2


def is_out_of_memory(error: BaseException) -> bool:
    """Tells whether JAX has failed for want of memory."""
    return "RESOURCE_EXHAUSTED" in str(error)


def can_halve(batch: int, devices: Sequence[jax.Device]) -> bool:
    """Tells whether a batch may be halved."""
    return batch >= 2 * resources.SMALLEST * len(devices)


@contextmanager
def compile_ahead(
    programs: Sequence[tuple[Program, Sizes]],
    devices: tuple[jax.Device, ...],
    result_bytes: int = 0,
) -> Iterator[Callable[[int, Callable[[], None]], Sizes]]:
    """Compiles programs in threads of their own: the next ones while one is compiled or run.

    A single one is compiled by whoever waits for it.

    Args:
        programs: With the sizes that are wanted, in the order in which they are run.
        devices: As in `fit_sizes`, as is ``result_bytes``.
        result_bytes: Memory of results.

    Yields:
        A function that returns once the program of a number is compiled, with the sizes that fit,
        and raises what compiling has raised; it calls another one before it waits.
    """

    def fit(number: int, tell: Callable[[], None] = lambda: None) -> Sizes:
        tell()
        return fit_sizes(*programs[number], devices, result_bytes)

    if len(programs) == 1:
        yield fit
        return
    together = max(2, resources.cores() // 2)
    sizes: list[Future[Sizes]] = []
    pool = ThreadPoolExecutor(together)

    def wait_for(number: int, tell: Callable[[], None]) -> Sizes:
        following = range(len(sizes), min(number + together, len(programs)))
        sizes.extend(pool.submit(fit, place) for place in following)
        if not sizes[number].done():
            tell()
        return sizes[number].result()

    try:
        yield wait_for
    finally:
        # A compiler cannot be stopped; nobody waits for it.
        pool.shutdown(wait=False, cancel_futures=True)
