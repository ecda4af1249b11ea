"""Many trials: batches of one compiled program, on all cores or devices.

Trials are cut into batches of one fixed size; the last batch is padded. On a single CPU device the
batches run on all cores, one thread each. None of this reaches the numbers: a trial's results
depend on its configuration and its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from fmab_jax.core.outputs import Output
from fmab_jax.core.scope import own_settings
from fmab_jax.core.trials import Outcome
from fmab_jax.run import compilation, contract, schema
from fmab_jax.run import outputs as record
from fmab_jax.run.configs import Config
from fmab_jax.run.resources import threads


class Trials(NamedTuple):
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


def run_trials(
    trials: Trials,
    batch: int,
    devices: tuple[jax.Device, ...],
    lanes: int | None = None,
    rows: int | None = None,
    *,
    keep_on_device: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """Yields (first trial, outcome) of each batch, as they finish.

    A batch that runs out of a device's memory is halved, down to two trials a device.

    Args:
        trials: Configurations and seeds.
        batch: Trials of a batch.
        devices: That share each batch.
        lanes: How many batches run at once.
        rows: Of the table of configs; by default a size that suits their number.
        keep_on_device: Leave series over time where they were computed.
    """
    lanes = threads(devices) if lanes is None else lanes
    rows = compilation.table_rows(len(trials.configs)) if rows is None else rows
    batch = compilation.limit_batch(trials.configs[0].program, batch, devices)
    run_batch = _batch_runner(trials, batch, devices, rows, keep_on_device)
    missing = np.ones(len(trials.seeds), bool)
    try:
        for start, outcome in _run_batches(run_batch, range(0, len(missing), batch), lanes):
            missing[start : start + batch] = False
            yield start, outcome
    except jax.errors.JaxRuntimeError as error:
        if not (compilation.is_out_of_memory(error) and compilation.can_halve(batch, devices)):
            raise
    # Outside of the handler, which holds on to what the failed batches have allocated.
    if missing.any():
        rest = np.flatnonzero(missing)
        part = trials._replace(which=trials.which[rest], seeds=np.asarray(trials.seeds)[rest])
        half = compilation.note_failure(trials.configs[0].program, batch, devices)
        # One batch at a time: others took memory as well. What is missing are whole batches, but
        # for the last, so that half a batch lies within one of them.
        again = run_trials(part, half, devices, 1, rows, keep_on_device=keep_on_device)
        for start, outcome in again:
            yield int(rest[start]), outcome


def _run_batches(
    run_batch: Callable[[int], tuple[int, Outcome]], firsts: range, lanes: int
) -> Iterator[tuple[int, Outcome]]:
    if len(firsts) <= 1:
        yield run_batch(0)
        return
    starts = iter(firsts)
    with ThreadPoolExecutor(lanes) as pool:
        # Only as many in flight as there are threads: memory is bounded by the batch.
        running: set[Future[tuple[int, Outcome]]] = set()
        try:
            while True:
                for start in starts:
                    running.add(pool.submit(run_batch, start))
                    if len(running) > lanes:
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


def _batch_runner(
    trials: Trials, batch: int, devices: tuple[jax.Device, ...], rows: int, keep_on_device: bool
) -> Callable[[int], tuple[int, Outcome]]:
    """Returns a function that runs the batch of a first trial, and returns that and its outcome."""
    compiled = compilation.compile_program(trials.configs[0].program, batch, devices, rows)
    # Rows that no trial names.
    padded = [*trials.configs, *[trials.configs[-1]] * (rows - len(trials.configs))]
    table = jax.tree.map(lambda *values: np.stack(values), *(each.arrays for each in padded))
    mesh = Mesh(np.array(devices), ("trials",))
    split = NamedSharding(mesh, PartitionSpec("trials"))
    whole = NamedSharding(mesh, PartitionSpec())
    pinned = _pinned(split, devices)
    with own_settings(mesh):
        table, root_seed = jax.device_put((table, np.uint32(trials.root_seed)), whole)

    def run_batch(start: int) -> tuple[int, Outcome]:
        seed = np.asarray(trials.seeds[start : start + batch], np.uint32)
        which = trials.which[start : start + batch].astype(np.int32)
        # The last batch is filled by its last trial.
        row, number = (np.pad(x, (0, batch - len(x)), mode="edge") for x in (which, seed))
        with own_settings(mesh):
            outcome = compiled(table, row, root_seed, number)
        if keep_on_device:
            with own_settings():  # outside of the mesh: no device waits for another
                outcome = _gather_on(devices[0], outcome)
                if _looks_right(outcome):
                    return start, jax.tree.map(lambda x: x[: len(seed)], outcome)
        with own_settings(mesh):
            if pinned is not None:
                outcome = jax.device_put(outcome, pinned)
            outcome = jax.tree.map(lambda x: np.asarray(x)[: len(seed)], outcome)
        contract.judge(outcome, seed, trials.configs[0].algorithm.name)
        return start, outcome

    return run_batch


_looks_right = jax.jit(contract.looks_right)


def _gather_on(device: jax.Device, outcome: Outcome) -> Outcome:
    """Returns an outcome whose series lie on one device, and the rest on the host."""
    fields: dict[str, Any] = {
        name: jax.device_put(x, device) if schema.FIELDS[name][1] else np.asarray(x)
        for name, x in outcome._asdict().items()
        if x is not None
    }
    return outcome._replace(**fields)


def _pinned(split: NamedSharding, devices: Sequence[jax.Device]) -> NamedSharding | None:
    """Returns where results go that leave accelerators; None on processors.

    The first batches are as slow as without it: the memory is pinned while they wait.
    """
    if devices[0].platform == "cpu":
        return None
    kinds = {memory.kind for memory in devices[0].addressable_memories()}
    return split.with_memory_kind("pinned_host") if "pinned_host" in kinds else None


class TrialResults:
    """The trials' results by field of `Outcome` or name of an accumulator, batch by batch.

    Attributes:
        points: How many recorded slots are kept.
        over_time: Accumulators that have a value at each of them.
    """

    def __init__(self, trials: int, points: int, outputs: Sequence[Output] = ()) -> None:
        self.trials, self.points = trials, points
        self._arrays: dict[str, np.ndarray] = {}
        self._on_device: dict[str, dict[int, Array]] = {}
        accumulators = record.collect_accumulators(outputs)
        self.over_time = {each.name for each in accumulators if "time" in each.dims}

    def put(self, start: int, outcome: Outcome) -> None:
        """Stores a batch at the place of its first trial."""
        fields: dict[str, Any] = outcome._asdict()
        for name, values in (fields | (fields.pop("accumulator_values") or {})).items():
            if values is None:
                continue
            if isinstance(values, jax.Array):
                self._on_device.setdefault(name, {})[start] = values
                continue
            dtype, over_time = schema.FIELDS.get(name, (np.dtype(float), name in self.over_time))
            kept = values[..., : self.points] if over_time else values
            if name not in self._arrays:
                self._arrays[name] = np.empty((self.trials, *kept.shape[1:]), dtype)
            self._arrays[name][start : start + len(values)] = kept

    def gather(self) -> dict[str, Any]:
        """Returns [trial, ...] of every field that some trial has, and of every accumulator.

        Series of which all batches are on a device lie there.
        """
        arrays: dict[str, Any] = dict(self._arrays)
        with own_settings():
            for name, parts in self._on_device.items():
                ordered = [parts[start] for start in sorted(parts)]
                if name not in arrays:
                    arrays[name] = jnp.concatenate(ordered)[:, : self.points]
                    continue
                for start, part in parts.items():
                    arrays[name][start : start + len(part)] = np.asarray(part)[:, : self.points]
        return arrays
