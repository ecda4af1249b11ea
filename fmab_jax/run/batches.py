"""Many trials: batches of one compiled program, on all cores or devices.

Trials are cut into batches of one fixed size; the last batch is padded. On a single CPU device the
batches run on all cores, one thread each. None of this reaches the numbers: a trial's results
depend on its configuration and its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from fmab_jax.parts.outputs import Output
from fmab_jax.parts.trials import Outcome
from fmab_jax.run import compilation, promises, schema
from fmab_jax.run.configs import Config
from fmab_jax.run.outputs import collect_accumulators
from fmab_jax.run.resources import threads
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.shapes import PyTree


class Trials(NamedTuple):
    """Trials for one compiled program.

    Attributes:
        configs: Configurations of one program.
        config_index: [trial] index of its configuration.
        seeds: [trial] seed of the trial.
        root_seed: Root seed of all trials.
    """

    configs: Sequence[Config]
    config_index: np.ndarray
    seeds: range | np.ndarray
    root_seed: int


def run_trials(
    trials: Trials,
    batch: int,
    devices: tuple[jax.Device, ...],
    lanes: int | None = None,
    rows: int | None = None,
    *,
    keep_on_device: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """Yields (first trial, outcome) of each batch when it ends.

    A batch that runs out of a device's memory is halved, down to two trials a device.

    Args:
        trials: Configurations and seeds.
        batch: Trials of a batch.
        devices: Devices that share each batch.
        lanes: Number of batches that run at once.
        rows: Rows of the table of configs; the default suits their number.
        keep_on_device: Leave series over time on the device.
    """
    lanes = threads(devices) if lanes is None else lanes
    rows = compilation.count_table_rows(len(trials.configs)) if rows is None else rows
    batch = compilation.limit_batch(trials.configs[0].program, batch, devices)
    run_batch = _make_batch_runner(trials, batch, devices, rows, keep_on_device)
    missing = np.ones(len(trials.seeds), bool)
    try:
        for start, outcome in _run_batches(run_batch, range(0, len(missing), batch), lanes):
            missing[start : start + batch] = False
            yield start, outcome
    except jax.errors.JaxRuntimeError as error:
        if not (compilation.is_out_of_memory(error) and compilation.can_halve(batch, devices)):
            raise
    # Outside of the handler, because the error keeps the memory of the failed batches.
    if missing.any():
        remaining = np.flatnonzero(missing)
        part = trials._replace(
            config_index=trials.config_index[remaining], seeds=np.asarray(trials.seeds)[remaining]
        )
        half = compilation.note_failure(trials.configs[0].program, batch, devices)
        # One batch at a time, because concurrent batches take memory. Missing trials are whole
        # batches (the last may be short), so half a batch lies within one of them.
        outcomes = run_trials(part, half, devices, 1, rows, keep_on_device=keep_on_device)
        for start, outcome in outcomes:
            yield int(remaining[start]), outcome


def _run_batches(
    run_batch: Callable[[int], tuple[int, Outcome]], firsts: range, lanes: int
) -> Iterator[tuple[int, Outcome]]:
    if len(firsts) <= 1:
        yield run_batch(0)
        return
    with ThreadPoolExecutor(lanes) as pool:
        running: set[Future[tuple[int, Outcome]]] = set()
        try:
            for start in firsts:
                # Few batches besides those that run, so that the batch size bounds memory.
                if len(running) > lanes:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
                running.add(pool.submit(run_batch, start))
            for future in as_completed(running):
                yield future.result()
        finally:
            for future in running:
                future.cancel()


def _make_batch_runner(
    trials: Trials, batch: int, devices: tuple[jax.Device, ...], rows: int, keep_on_device: bool
) -> Callable[[int], tuple[int, Outcome]]:
    """Returns a function that maps a first trial to (first trial, outcome of its batch)."""
    compiled = compilation.compile_program(trials.configs[0].program, batch, devices, rows)
    # Padding of the table; no trial refers to it.
    padded = [*trials.configs, *[trials.configs[-1]] * (rows - len(trials.configs))]
    table = jax.tree.map(lambda *values: np.stack(values), *(config.arrays for config in padded))
    mesh = Mesh(np.array(devices), ("trials",))
    split = NamedSharding(mesh, PartitionSpec("trials"))
    whole = NamedSharding(mesh, PartitionSpec())
    pinned = _pin_to_host(split, devices)
    with package_settings(mesh):
        table, root_seed = jax.device_put((table, np.uint32(trials.root_seed)), whole)

    def run_batch(start: int) -> tuple[int, Outcome]:
        seed = np.asarray(trials.seeds[start : start + batch], np.uint32)
        config_index = trials.config_index[start : start + batch].astype(np.int32)
        # The last trial fills the last batch.
        row, number = (np.pad(x, (0, batch - len(x)), mode="edge") for x in (config_index, seed))
        with package_settings(mesh):
            outcome = compiled(table, row, root_seed, number)
        if keep_on_device:
            # Outside of the mesh, so that devices do not wait for each other.
            with package_settings():
                outcome = _gather_on(devices[0], outcome)
                if _is_valid(outcome):
                    return start, jax.tree.map(lambda x: x[: len(seed)], outcome)
        with package_settings(mesh):
            if pinned is not None:
                outcome = jax.device_put(outcome, pinned)
            outcome = jax.tree.map(lambda x: np.asarray(x)[: len(seed)], outcome)
        promises.check_batch(outcome, seed, trials.configs[0].algorithm.name)
        return start, outcome

    return run_batch


_is_valid = jax.jit(promises.is_valid)


def _gather_on(device: jax.Device, outcome: Outcome) -> Outcome:
    """Moves the series of an outcome to one device; other fields and accumulators to the host."""

    def move(name: str, values: PyTree) -> PyTree:
        is_series = schema.FIELDS.get(name, (None, False))[1]
        return jax.device_put(values, device) if is_series else jax.tree.map(np.asarray, values)

    fields = outcome._asdict().items()
    return Outcome._make(None if x is None else move(name, x) for name, x in fields)


def _pin_to_host(split: NamedSharding, devices: Sequence[jax.Device]) -> NamedSharding | None:
    """Returns the sharding of results in pinned host memory; None on processors.

    The first batches are not faster, because they wait while memory is pinned.
    """
    if devices[0].platform == "cpu":
        return None
    kinds = {memory.kind for memory in devices[0].addressable_memories()}
    return split.with_memory_kind("pinned_host") if "pinned_host" in kinds else None


class TrialResults:
    """Results of trials by field of `Outcome` or accumulator; batches are added one by one.

    Attributes:
        points: Number of recorded slots, without padding.
        over_time: Accumulators with a value at each of these slots.
    """

    def __init__(self, trials: int, points: int, outputs: Sequence[Output] = ()) -> None:
        self.trials, self.points = trials, points
        self._arrays: dict[str, np.ndarray] = {}
        self._on_device: dict[str, dict[int, Array]] = {}
        accumulators = collect_accumulators(outputs)
        self.over_time = {total.name for total in accumulators if "time" in total.dims}

    def put(self, start: int, outcome: Outcome) -> None:
        """Stores a batch at the place of its first trial."""
        fields = outcome._asdict()
        for name, values in (fields | (fields.pop("accumulator_values") or {})).items():
            if values is None:
                continue
            if isinstance(values, jax.Array):
                self._on_device.setdefault(name, {})[start] = values
                continue
            dtype, over_time = schema.FIELDS.get(name, (np.dtype(float), name in self.over_time))
            recorded = values[..., : self.points] if over_time else values
            if name not in self._arrays:
                self._arrays[name] = np.empty((self.trials, *recorded.shape[1:]), dtype)
            self._arrays[name][start : start + len(values)] = recorded

    def gather(self) -> dict[str, Array | np.ndarray]:
        """Returns [trial, ...] arrays of all fields and of every accumulator.

        A series stays on the device if all its batches are there.
        """
        arrays: dict[str, Array | np.ndarray] = dict(self._arrays)
        with package_settings():
            for name, parts in self._on_device.items():
                ordered = [parts[start] for start in sorted(parts)]
                host_array = self._arrays.get(name)
                if host_array is None:
                    arrays[name] = jnp.concatenate(ordered)[:, : self.points]
                    continue
                for start, part in parts.items():
                    host_array[start : start + len(part)] = np.asarray(part)[:, : self.points]
        return arrays
