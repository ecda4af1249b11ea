"""Programs: many trials, compiled for one batch size and a set of devices.

Configurations of one structure share a program: it is given a table of them, and for each trial its
row and its seed. Each device takes an equal share of a batch (`jax.shard_map`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Int, UInt32

from fmab_jax.errors import refuse
from fmab_jax.machine import cores, suggest_more_memory
from fmab_jax.parts.instances import BoundProblem
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.run import cache, promises, resources
from fmab_jax.run.configs import Program
from fmab_jax.sampling import keys
from fmab_jax.sampling.backend import trace_for
from fmab_jax.sampling.distinct import map_in_blocks
from fmab_jax.sampling.scope import package_settings

# Factor between sizes of tables, so that similar numbers of configurations share a program.
_TABLE_GROWTH = 8


def run_trial(
    trial: Trial,
    problem: BoundProblem,
    grid: Int[Array, " time"],
    root_seed: UInt32[Array, ""],
    seed: UInt32[Array, ""],
) -> Outcome:
    """Runs one seed; pure, for use under ``jit`` and ``vmap``.

    Args:
        trial: The algorithm's arrays.
        problem: The problem's arrays.
        grid: Slots at which curves are recorded, increasing; the last is the horizon.
        root_seed: Selects the random numbers of the experiment.
        seed: Selects the random numbers of the trial.
    """
    key = keys.seed_key(root_seed, seed)
    owner, name = _find_owner(trial)
    with promises.refuse_errors(type(problem.world or problem.law)):
        instance = problem.draw(key, grid[-1])
    with promises.refuse_errors(owner, tracing=True):
        outcome = trial.run(instance, grid, key)
    has_contexts = instance.contexts is not None
    return promises.check_outcome(
        outcome, len(grid), name, trial.accumulators, has_contexts=has_contexts
    )


def run_many_trials(
    trial: Trial,
    problem: BoundProblem,
    grid: Int[Array, "trial time"],
    root_seed: UInt32[Array, " trial"],
    seed: UInt32[Array, " trial"],
) -> Outcome:
    """Runs one seed of each of many trials; arguments as in `run_trial`, [trial, ...].

    Calls ``run_batch`` of trials that have one; the bits are equal.
    """
    if not trial.runs_batches:
        return jax.vmap(run_trial)(trial, problem, grid, root_seed, seed)
    key = jax.vmap(keys.seed_key)(root_seed, seed)
    with promises.refuse_errors(type(problem.world or problem.law)):
        draw = map_in_blocks(type(problem).draw, problem.rows * problem.arms * problem.segments)
        # A problem without a world reads no horizon.
        instance = draw(problem, key, *([grid[:, -1]] if problem.world else []))
    owner, name = _find_owner(trial)
    with promises.refuse_errors(owner, tracing=True):
        outcome = trial.run_batch(instance, grid, key)
    arguments = grid.shape[1], name, trial.accumulators
    return jax.vmap(lambda one: promises.check_outcome(one, *arguments))(outcome)


def run_table_rows(
    table: tuple[Trial, BoundProblem, Int[Array, "config time"]],
    row: Int[Array, " trial"],
    root_seed: UInt32[Array, ""],
    seed: UInt32[Array, " trial"],
) -> Outcome:
    """Runs one seed of each of many trials, whose configurations are rows of a table.

    Args:
        table: The arrays of `Config.arrays`, [config, ...].
        row: Which configuration each trial is of.
        root_seed: As in `run_trial`, for all trials.
        seed: As in `run_trial`.
    """

    def per_trial(x: Array) -> Array:
        if len(x) == 1:  # broadcasting copies nothing
            return jnp.broadcast_to(x[0], (len(row), *x.shape[1:]))
        return x.at[row].get(mode="promise_in_bounds")

    trial, problem, grid = jax.tree.map(per_trial, table)
    return run_many_trials(trial, problem, grid, jnp.broadcast_to(root_seed, seed.shape), seed)


def count_table_rows(configs: int) -> int:
    """Returns the rows of a table of configurations; similar numbers share a size."""
    rows = 1
    while rows < configs:
        rows *= _TABLE_GROWTH
    return rows


def _find_owner(trial: Trial) -> tuple[type, str]:
    """Returns the class that must keep the contract of a trial, and its name."""
    owner: type = trial.algorithm or type(trial)
    return owner, getattr(owner, "name", "") or owner.__name__


# Options of compilation, by platform. XLA uses vectors of 256 bits even if the processor has 512.
# Autotuning takes a third of the time, and makes none of these programs faster.
_OPTIONS: dict[str, dict[str, str | bool]] = {
    "cpu": {"xla_cpu_prefer_vector_width": "512"},
    "gpu": {"xla_gpu_autotune_level": "0"},
}
# XLA's older emitters compile faster, for programs that run for less time than they compile.
_FAST_OPTIONS: dict[str, dict[str, str | bool]] = {"cpu": {"xla_cpu_use_fusion_emitters": False}}


@functools.lru_cache(maxsize=256)
def compile_program(
    program: Program, batch: int, devices: tuple[jax.Device, ...], rows: int = 1
) -> jax.stages.Compiled:
    """Compiles one program, which all its configs share.

    Args:
        program: The program.
        batch: Trials of a batch.
        devices: Devices that share the batch.
        rows: Rows of the table of configs.

    Returns:
        A function with the arguments of `run_table_rows`.
    """
    # A data-dependent loop over sharded inputs would synchronise the devices at every step.
    mesh = Mesh(np.array(devices), ("trials",))
    split, whole = PartitionSpec("trials"), PartitionSpec()
    platform = devices[0].platform
    specs = (whole, split, whole, split)
    sharded = jax.shard_map(
        run_table_rows, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False
    )
    shape_of = jax.ShapeDtypeStruct
    shapes = [shape_of((rows, *shape), np.dtype(dtype)) for shape, dtype in program.shapes]
    table = jax.tree.unflatten(program.structure, shapes)
    number, seed = (shape_of((batch,), np.dtype(dtype)) for dtype in (np.int32, np.uint32))
    arguments = table, number, shape_of((), np.dtype(np.uint32)), seed
    options = _OPTIONS.get(platform, {}) | (
        _FAST_OPTIONS.get(platform, {}) if program.fast_compile else {}
    )
    # Each thread needs the settings, because they are local to it.
    with package_settings(mesh), trace_for(platform):
        if devices == tuple(jax.local_devices()[:1]):
            lowered = cache.lower_program(sharded, arguments, (batch, platform))
        else:
            lowered = jax.jit(sharded).lower(*arguments)
        try:
            return lowered.compile(compiler_options=options or None)
        except jax.errors.JaxRuntimeError as error:
            if "option" not in str(error):
                raise
            # An unknown option of this compiler; options only make programs faster.
            return lowered.compile()
        finally:
            _release_memory()


def _release_memory() -> None:
    """Returns freed memory of the compiler (200 MB) to the system."""
    with suppress(OSError, AttributeError, TypeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)


class Sizes(NamedTuple):
    """Sizes of a run.

    Attributes:
        batch: Trials of a batch, over all devices.
        rows: Rows of the table of configs.
        lanes: Batches that run at once.
    """

    batch: int
    rows: int = 1
    lanes: int = 1


# Largest batch of a program after a larger one ran out of memory.
_LARGEST: dict[tuple[Program, tuple[jax.Device, ...]], int] = {}


def fit_sizes(
    program: Program, sizes: Sizes, devices: tuple[jax.Device, ...], result_bytes: int = 0
) -> Sizes:
    """Compiles a program for the largest batch that fits into memory.

    The compiler states the memory of a program. Nothing is allocated.

    Args:
        program: As in `compile_program`.
        sizes: Requested sizes.
        devices: Devices that share each batch.
        result_bytes: Memory of the results in this process.

    Returns:
        Sizes that fit: a smaller batch, or fewer batches of the smallest size.

    Raises:
        ValueError: If a processor does not have the memory for one batch of the smallest size.
    """
    batch, rows, lanes = sizes
    host = devices[0].platform == "cpu"
    memory = resources.memory_of(devices[0])
    free_bytes = resources.BATCHES * memory
    if host:
        free_bytes = min(free_bytes, resources.EVERYTHING * memory - result_bytes)
    batch = limit_batch(program, batch, devices)
    while True:
        try:
            size = _measure_batch(program, batch, devices, rows)
        except jax.errors.JaxRuntimeError as error:
            if not (is_out_of_memory(error) and can_halve(batch, devices)):
                raise
            batch //= 2
            continue
        # Several devices of one processor share its memory.
        size *= len(devices) if host else 1
        if not memory or lanes * size <= free_bytes:
            return Sizes(batch, rows, lanes)
        if not can_halve(batch, devices):
            if host and size > free_bytes:
                free = f"{max(free_bytes, 0) / 1e9:.3g} GB"
                allowed = f"at most {free} of the {memory / 1e9:.3g} GB available"
                remedy = "use fewer agents or arms" + suggest_more_memory()
                refuse("memory", f"{size / 1e9:.3g} GB", allowed, remedy)
            return Sizes(batch, rows, max(1, int(free_bytes / size)))
        # Memory is proportional to the batch.
        while lanes * size > free_bytes and can_halve(batch, devices):
            size, batch = size / 2, batch // 2


@functools.lru_cache(maxsize=256)
def _measure_batch(
    program: Program, batch: int, devices: tuple[jax.Device, ...], rows: int
) -> float:
    """Returns a batch's bytes on a device, without its small arguments; 0 if unknown."""
    sizes = compile_program(program, batch, devices, rows).memory_analysis()
    return sizes.temp_size_in_bytes + sizes.output_size_in_bytes if sizes else 0


def limit_batch(program: Program, batch: int, devices: tuple[jax.Device, ...]) -> int:
    """Limits a batch to the largest size that has fitted into memory."""
    return min(batch, _LARGEST.get((program, devices), batch))


def note_failure(program: Program, batch: int, devices: tuple[jax.Device, ...]) -> int:
    """Records that a batch ran out of memory; returns half its size."""
    _LARGEST[program, devices] = batch // 2
    return batch // 2


def is_out_of_memory(error: BaseException) -> bool:
    """Tells whether an error of JAX means that memory ran out."""
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
    """Compiles programs in background threads, ahead of the program that runs.

    Args:
        programs: Programs with requested sizes, in the order of their runs.
        devices: As in `fit_sizes`, as is ``result_bytes``.
        result_bytes: Memory of results.

    Yields:
        A function of (number of a program, callback): waits until the program is compiled, and
        returns the sizes that fit or raises the error of the compiler. It calls the callback before
        it waits.
    """
    threads = max(2, cores() // 2)
    sizes: list[Future[Sizes]] = []
    pool = ThreadPoolExecutor(threads)

    def wait_for(number: int, tell: Callable[[], None]) -> Sizes:
        following = range(len(sizes), min(number + threads, len(programs)))
        sizes.extend(
            pool.submit(fit_sizes, *programs[place], devices, result_bytes) for place in following
        )
        if not sizes[number].done():
            tell()
        return sizes[number].result()

    try:
        yield wait_for
    finally:
        # A running compiler cannot be stopped, so do not wait for it.
        pool.shutdown(wait=False, cancel_futures=True)
