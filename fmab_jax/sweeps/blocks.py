"""One block of a sweep, from its configs to the arrays of its chunk; the same whoever computes it.

A block may be computed in *pieces*, ranges of its seeds: joined, they give the bytes of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax.analysis import device_summary, summary
from fmab_jax.core.outputs import FIELDS, Output, Reduce
from fmab_jax.core.scope import own_settings
from fmab_jax.run import batches, resources
from fmab_jax.run.batches import TrialResults, Trials
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import Config
from fmab_jax.run.outputs import gauges_of, is_shipped, made, reduce_seeds
from fmab_jax.run.outputs.usual import NUMBERS, USUAL
from fmab_jax.sweeps.records import KINDS, state_name

# Copies of a block's curves that a device summarises with, and the part of its memory for them.
_COPIES, _SPARE = 6, 0.3
# Seeds that an output is tried on.
_FEW = 8
Series = Mapping[str, Any]
"""Results by field of `Outcome`, [cell, seed] or [cell, seed, time]; those over time may be on a
device."""


class Job(NamedTuple):
    """All that computing a block takes; it can be pickled."""

    configs: tuple[Config, ...]  # of one program
    start: int
    stop: int
    root_seed: int
    # The seeds, of which [start, stop) are those of the block; None for 0, 1, ...
    listed: range | np.ndarray | None = None

    @property
    def trials(self) -> int:
        """How many (config, seed) pairs."""
        return len(self.configs) * (self.stop - self.start)


class Chunk(NamedTuple):
    """What a block becomes."""

    arrays: dict[str, np.ndarray]  # of the chunk's file
    finals: list[summary.Moments]  # of each cell, of regret at T


def stays_on_device(job: Job, keep: str, devices: Sequence[jax.Device]) -> bool:
    """Tells whether a block's curves stay on a device: only what is reduced there is wanted."""
    config = job.configs[0]
    reduces = all(isinstance(each, Reduce) for each in config.outputs)
    if keep != "summary" or not reduces or not resources.keeps_curves(devices):
        return False
    room = resources.memory_of(devices[0])
    fits = not room or _COPIES * job.trials * config.curve_bytes <= _SPARE * room
    # NumPy adds a single column pairwise.
    return fits and config.wanted > 1


def run_job(
    job: Job,
    sizes: Sizes,
    devices: tuple[jax.Device, ...],
    *,
    keep_on_device: bool = False,
    advanced: Callable[[int], None] = lambda trials: None,
) -> Series:
    """Computes a block, in batches as in `run_trials`; ``advanced`` is told the trials of each."""
    seeds = job.stop - job.start
    whole = range(job.stop) if job.listed is None else job.listed
    trials = Trials(
        job.configs,
        np.repeat(np.arange(len(job.configs), dtype=np.int32), seeds),
        np.tile(whole[job.start : job.stop], len(job.configs)),
        job.root_seed,
    )
    points = max(config.wanted for config in job.configs)
    results = TrialResults(len(trials.seeds), points, job.configs[0].outputs)
    run = batches.run_trials(
        trials, sizes.batch, devices, sizes.lanes, sizes.rows, keep_on_device=keep_on_device
    )
    for start, outcome in run:
        results.put(start, outcome)
        advanced(len(outcome.rounds))
    cells = len(job.configs)
    with own_settings():
        return {n: v.reshape(cells, -1, *v.shape[1:]) for n, v in results.gather().items()}


def pieces_of(job: Job, number: int) -> list[Job]:
    """Cuts a block into at most so many ranges of seeds, of nearly equal size."""
    ends = np.linspace(job.start, job.stop, 1 + min(number, job.stop - job.start)).astype(int)
    ranges = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [job._replace(start=start, stop=stop) for start, stop in ranges]


def joined(pieces: Sequence[Series]) -> Series:
    """Returns the results of a block whose pieces were computed apart, in their order."""
    return {name: np.concatenate([each[name] for each in pieces], axis=1) for name in pieces[0]}


def chunk_of(series: Series, configs: Sequence[Config], keep: str, *, threads: int = 1) -> Chunk:
    """Returns the chunk of a block's results: of cells with these configs, made by some threads."""
    arrays = dict(series)
    # Few bytes hold a count of rounds.
    rounds_by = arrays["rounds_by"]
    if isinstance(rounds_by, np.ndarray):
        arrays["rounds_by"] = rounds_by.astype(np.min_scalar_type(rounds_by.max()))
    if keep == "curves":
        _try_outputs(series, configs)
    with own_settings():
        final = np.asarray(series["regret"][:, :, -1])
    finals = [summary.moments(values[:, None], full=False) for values in final]
    if keep == "summary":
        arrays = _summarised(arrays, configs, final, threads)
    return Chunk(arrays, finals)


def _try_outputs(series: Series, configs: Sequence[Config]) -> None:
    """Refuses a plug-in's output that breaks a promise, before anything is kept.

    Of curves outputs are computed when they are read.
    """
    few = {name: values[:, :_FEW] for name, values in series.items()}
    for output in configs[0].outputs:
        if not is_shipped(output):
            _compute_output(output, few, configs)


def _compute_output(output: Output, curves: Series, configs: Sequence[Config]) -> list[np.ndarray]:
    """Returns an output of each cell."""
    seeds = curves["regret"].shape[1]
    recorded = (_recorded(curves, cell, config) for cell, config in enumerate(configs))
    pairs = zip(recorded, configs, strict=True)
    return [made(output, one, at.facts, at.size, seeds) for one, at in pairs]


def _summarised(
    curves: Series, configs: Sequence[Config], final: np.ndarray, threads: int
) -> dict[str, np.ndarray]:
    """Returns moments by cell, and (row, value, count) of whole numbers."""
    arrays: dict[str, np.ndarray] = {}
    for name in ("regret", "waiting_regret", "rounds_by"):
        if name in curves:
            full, series = name == "regret", curves[name]
            if isinstance(series, np.ndarray):
                parts = [summary.moments(each, full=full, threads=threads) for each in series]
            else:
                parts = device_summary.moments(series, full=full)
            for kind in KINDS:
                arrays[f"{name}_{kind}"] = np.stack([getattr(part, kind) for part in parts])

    for output in configs[0].outputs:
        if isinstance(output, Reduce):
            states = [
                reduce_seeds(output, _fields(curves, cell, config), config.facts)
                for cell, config in enumerate(configs)
            ]
            for number, leaves in enumerate(zip(*states, strict=True)):
                arrays[state_name(output.name, number)] = np.stack(leaves)
            continue
        each = _compute_output(output, curves, configs)
        parts = [summary.moments(x.reshape(len(x), -1), full=False) for x in each]
        for kind in KINDS:
            flat = [getattr(part, kind) for part in parts]
            shaped = [x.reshape(like.shape[1:]) for x, like in zip(flat, each, strict=True)]
            arrays[f"{output.name}_{kind}"] = _padded(shaped)
    counted = {
        "regret_bin": summary.bins(final),
        **{
            each.name: np.stack(_compute_output(each, curves, configs))
            for each in USUAL
            if each.coordinate
        },
        "undecided": curves["chosen_arm"] < 0,
        "rounds": curves["rounds"],
        "numbers_sent": np.stack(_compute_output(NUMBERS, curves, configs)),
    }
    for name, values in counted.items():
        found = [summary.tallied(row) for row in values]
        rows = [np.full(len(value), row) for row, (value, _) in enumerate(found)]
        arrays[f"{name}_row"] = np.concatenate(rows)
        arrays[f"{name}_value"] = np.concatenate([value for value, _ in found])
        arrays[f"{name}_count"] = np.concatenate([number for _, number in found])
    return arrays


def _recorded(curves: Series, cell: int, config: Config) -> Callable[[str], np.ndarray]:
    """Returns what gives the arrays of one cell's seeds, at its own recorded slots."""
    gauges = {each.name: each.dims for each in gauges_of(config.outputs)}

    def array(name: str) -> np.ndarray:
        dtype, over_time = FIELDS.get(name, (np.dtype(np.float64), "time" in gauges.get(name, ())))
        values = curves[name][cell] if name in curves else np.zeros_like(curves["regret"][cell])
        # Few bytes hold a count of rounds, too few for what is made of it.
        return (values[..., : config.points] if over_time else values).astype(dtype, copy=False)

    return array


def _fields(curves: Series, cell: int, config: Config) -> dict[str, Any]:
    """Returns what one cell's seeds have recorded, where it lies."""
    array = _recorded(curves, cell, config)
    with own_settings():
        return {name: array(name) for name in FIELDS}


def _padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stacks arrays; of shorter ones, what is missing is NaN."""
    shape = np.max([each.shape for each in arrays], axis=0)
    found = np.full((len(arrays), *shape), np.nan)
    for place, each in enumerate(arrays):
        where: Any = (place, *map(slice, each.shape))
        found[where] = each
    return found
