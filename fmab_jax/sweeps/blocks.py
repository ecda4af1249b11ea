"""Computes one block of a sweep: configs in, arrays of a chunk out, the same on every worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from fmab_jax.analysis import device_summary, summary
from fmab_jax.parts.outputs import FIELDS, TALLIED, Output, Reduce
from fmab_jax.parts.outputs.standard import NUMBERS, list_standard, refuse_absent
from fmab_jax.parts.worlds import ContextualWorld
from fmab_jax.run import batches, resources
from fmab_jax.run.batches import TrialResults, Trials
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import Config
from fmab_jax.run.outputs import collect_accumulators, compute_output, is_shipped
from fmab_jax.run.reductions import LEAST_SEEDS, check_merging, reduce_seeds
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sweeps.chunks import KINDS, state_name

# A device summary needs so many copies of the curves, in this share of its memory.
_COPIES, _MEMORY_SHARE = 6, 0.3
# An output is validated on so many seeds.
_SAMPLE_SEEDS = 8
# Of each reduction, which numbers of its state had changed when `check_merging` was passed.
_checked_numbers: dict[Reduce, np.ndarray] = {}
Series = Mapping[str, Array | np.ndarray]
"""Results by field of `Outcome`, [cell, seed] or [cell, seed, time]; those over time may be on a
device."""


class Job(NamedTuple):
    """The input of a block; it can be pickled."""

    configs: tuple[Config, ...]  # of one program
    seeds: range | np.ndarray
    root_seed: int
    keep: str  # "curves" or "summary"
    most_trials: int  # of the program's largest block; decides the size of a batch
    batch: int | None  # trials of a batch, or None to choose
    rows: int = 1  # of the table that holds the configs of the program's largest block

    def sizes(self, devices: tuple[jax.Device, ...], lanes: int | None = None) -> Sizes:
        """Chooses sizes for the program on some devices; arguments as in `choose_batch`."""
        batch, lanes = self.configs[0].choose_batch(self.most_trials, devices, self.batch, lanes)
        return Sizes(batch, self.rows, lanes)


def compute_block(
    job: Job,
    sizes: Sizes,
    devices: tuple[jax.Device, ...],
    on_batch: Callable[[int], None] = lambda trials: None,
    threads: int = 1,
) -> dict[str, np.ndarray]:
    """Returns the arrays of a block's chunk.

    Args:
        job: The block.
        sizes: Sizes of its batches, which fit.
        devices: Devices that share each batch.
        on_batch: Called after each batch with its number of trials.
        threads: Number of threads that summarise.
    """
    series = _run_job(job, sizes, devices, on_batch)
    if job.keep == "summary":
        _check_reductions(series, job, sizes, devices)
    return _build_chunk(series, job, threads)


def _run_job(
    job: Job,
    sizes: Sizes,
    devices: tuple[jax.Device, ...],
    on_batch: Callable[[int], None] = lambda trials: None,
) -> Series:
    """Runs the trials of a block; arguments as in `compute_block`."""
    cells, seeds = len(job.configs), len(job.seeds)
    cell_index = np.repeat(np.arange(cells, dtype=np.int32), seeds)
    trials = Trials(job.configs, cell_index, np.tile(job.seeds, cells), job.root_seed)
    points = max(config.requested_points for config in job.configs)
    results = TrialResults(len(trials.seeds), points, job.configs[0].outputs)
    on_device = _is_summarised_on_device(job, devices)
    for start, outcome in batches.run_trials(
        trials, sizes.batch, devices, sizes.lanes, sizes.rows, keep_on_device=on_device
    ):
        results.put(start, outcome)
        on_batch(len(outcome.rounds))
    with package_settings():
        return {n: v.reshape(cells, -1, *v.shape[1:]) for n, v in results.gather().items()}


def _check_reductions(
    series: Series, job: Job, sizes: Sizes, devices: tuple[jax.Device, ...]
) -> None:
    """Checks each reduction on the first seeds, and again where more of its state changes.

    A count of what is rare stays as it was in most blocks, whatever ``merge`` does to it.
    """
    config = job.configs[0]
    outputs = {output for output in config.outputs if isinstance(output, Reduce)}
    outputs -= {output for output, numbers in _checked_numbers.items() if numbers.all()}
    if not outputs:
        return
    if len(job.seeds) < LEAST_SEEDS:
        few = job._replace(configs=job.configs[:1], seeds=range(LEAST_SEEDS))
        series = _run_job(few, sizes, devices)
    fields = _read_fields(series, 0, config)
    for output in outputs:
        state = reduce_seeds(output, fields, config.facts)
        pairs = zip(state, output.initial_arrays, strict=True)
        changed = np.concatenate([(values != first).ravel() for values, first in pairs])
        checked = _checked_numbers.get(output)
        if checked is None or (changed & ~checked).any():
            check_merging(output, fields, config.facts)
            _checked_numbers[output] = changed if checked is None else checked | changed


def _is_summarised_on_device(job: Job, devices: Sequence[jax.Device]) -> bool:
    """Returns whether a device reduces the curves of a block without copying them."""
    config = job.configs[0]
    reduces = all(isinstance(x, Reduce) or is_shipped(x) for x in config.outputs)
    if job.keep != "summary" or not reduces or not resources.keeps_curves(devices):
        return False
    memory = resources.memory_of(devices[0])
    needed = _COPIES * len(job.configs) * len(job.seeds) * config.curve_bytes
    # NumPy sums a single column pairwise, with other rounding.
    return (not memory or needed <= _MEMORY_SHARE * memory) and config.requested_points > 1


def _build_chunk(series: Series, job: Job, threads: int) -> dict[str, np.ndarray]:
    arrays = dict(series)
    # The smallest type that holds the counts saves space.
    for name in ("rounds_by", "messages_by"):
        counts = arrays.get(name)
        if isinstance(counts, np.ndarray):
            arrays[name] = counts.astype(np.min_scalar_type(counts.max()))
    if job.keep == "summary":
        return _summarise(arrays, job.configs, threads)
    chunk = {name: np.asarray(values) for name, values in arrays.items()}
    # Outputs of curves are computed when read; a broken output must fail now.
    sample = {name: values[:, :_SAMPLE_SEEDS] for name, values in series.items()}
    for output in job.configs[0].outputs:
        if not is_shipped(output):
            _compute_output(output, sample, job.configs)
    return chunk


def _compute_output(output: Output, curves: Series, configs: Sequence[Config]) -> list[np.ndarray]:
    """Returns an output, one array per cell."""
    seeds = curves["regret"].shape[1]
    with package_settings():
        return [
            compute_output(
                output, _make_reader(curves, cell, config), config.facts, config.size, seeds
            )
            for cell, config in enumerate(configs)
        ]


def _summarise(curves: Series, configs: Sequence[Config], threads: int) -> dict[str, np.ndarray]:
    """Returns moments by cell, and tallies (row, value, count) of whole numbers."""
    arrays: dict[str, np.ndarray] = {}
    for name in ("regret", "waiting_regret", "rounds_by", "messages_by"):
        if name in curves:
            full, series = name == "regret", curves[name]
            if isinstance(series, np.ndarray):
                parts = [
                    summary.compute_moments(cell, full=full, threads=threads) for cell in series
                ]
            else:
                parts = device_summary.compute_moments(series, full=full)
            for kind in KINDS:
                arrays[f"{name}_{kind}"] = np.stack([getattr(part, kind) for part in parts])

    tallied: dict[str, np.ndarray] = {}
    for output in configs[0].outputs:
        if isinstance(output, Reduce):
            states = [
                reduce_seeds(output, _read_fields(curves, cell, config), config.facts)
                for cell, config in enumerate(configs)
            ]
            for number, leaf_values in enumerate(zip(*states, strict=True)):
                arrays[state_name(output.name, number)] = np.stack(leaf_values)
            continue
        values = _compute_output(output, curves, configs)
        if output.name in {x.name for x in TALLIED}:
            bins = [summary.find_bins(x[:, -1] if x.ndim > 1 else x) for x in values]
            tallied[f"{output.name}_bin"] = np.stack(bins)
        parts = [summary.compute_moments(x.reshape(len(x), -1), full=False) for x in values]
        for kind in KINDS:
            flat = [getattr(part, kind) for part in parts]
            shaped = [x.reshape(like.shape[1:]) for x, like in zip(flat, values, strict=True)]
            arrays[f"{output.name}_{kind}"] = _pad(shaped)
    with package_settings():
        final = np.asarray(curves["regret"][:, :, -1])
    world = configs[0].problem.world
    counts = tallied | {
        "regret_bin": summary.find_bins(final),
        **{
            output.name: np.stack(_compute_output(output, curves, configs))
            for output in list_standard(world is not None, isinstance(world, ContextualWorld))
            if output.coordinate
        },
        # Contexts leave no arm to decide on.
        "undecided": curves["chosen_arm"] < 0 if "chosen_arm" in curves else final < 0.0,
        "rounds": curves["rounds"],
        "numbers_sent": np.stack(_compute_output(NUMBERS, curves, configs)),
    }
    for name, numbers in counts.items():
        tallies = [summary.count_values(row) for row in numbers]
        rows = [np.full(len(value), row) for row, (value, _) in enumerate(tallies)]
        arrays[f"{name}_row"] = np.concatenate(rows)
        arrays[f"{name}_value"] = np.concatenate([value for value, _ in tallies])
        arrays[f"{name}_count"] = np.concatenate([count for _, count in tallies])
    return arrays


def _read_fields(curves: Series, cell: int, config: Config) -> dict[str, Array | np.ndarray]:
    """Returns the records of one cell that a reduction may read, by name."""
    names = [name for name in FIELDS if name in curves or name == "waiting_regret"]
    with package_settings():
        read = _make_reader(curves, cell, config)
        return {name: read(name) for name in names}


def _make_reader(curves: Series, cell: int, config: Config) -> Callable[[str], Array | np.ndarray]:
    """Returns a function from names to arrays of one cell, cut to its recorded slots."""
    accumulators = {
        accumulator.name: accumulator.dims for accumulator in collect_accumulators(config.outputs)
    }

    def array(name: str) -> Array | np.ndarray:
        dtype, over_time = FIELDS.get(
            name, (np.dtype(np.float64), "time" in accumulators.get(name, ()))
        )
        if name not in curves:
            refuse_absent(name)
        values = curves[name][cell] if name in curves else np.zeros_like(curves["regret"][cell])
        # Stored counts have a small type in which outputs would overflow.
        return (values[..., : config.points] if over_time else values).astype(dtype, copy=False)

    return array


def _pad(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stacks arrays; shorter ones are padded with NaN."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stack = np.full((len(arrays), *shape), np.nan)
    for row, array in enumerate(arrays):
        index: tuple[int | slice, ...] = (row, *map(slice, array.shape))
        stack[index] = array
    return stack
