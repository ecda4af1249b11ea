"""Labelled summaries of very many seeds: moments, a histogram, counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary
from fmab_jax.analysis.budgets import find_tail
from fmab_jax.parts.outputs import Reduce
from fmab_jax.parts.outputs.standard import list_standard
from fmab_jax.run import schema
from fmab_jax.run.reductions import finish_reduction
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.grid import Grid
from fmab_jax.sweeps.precision import relative_width

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def label_summaries(results: Results, grid: Grid, stops: Mapping[str, int]) -> xr.Dataset:
    """Labels the summaries of a study's cells; arguments as in `results.dataset`."""

    def count(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        return [results.merge_counts(cell, name, stops[cell]) for cell in grid.hashes]

    points, time = grid.time()
    sizes = grid.sizes(grid.cells, points)
    series = _label_moments(results, grid, stops, points)
    reductions = [output for output in results.outputs if isinstance(output, Reduce)]
    for output in results.outputs:
        if isinstance(output, Reduce):
            series |= _label_reduction(output, results, grid, stops)
        else:
            dims = [*grid.dims, *output.dims]
            tables = _compute_means(output.name, output.dims, results, grid, stops, points)
            for kind, values in zip(("mean", "variance"), tables, strict=True):
                series[f"{output.name}_{kind}"] = dims, grid.table(values), output.attrs
    histograms, levels = count("regret_bin"), np.array(QUANTILES)
    quantiles = [
        summary.read_quantiles(*histogram, levels)
        if stops[cell]
        else np.full(len(levels), math.nan)
        for cell, histogram in zip(grid.hashes, histograms, strict=True)
    ]
    bins, regret_histogram = _densify(grid, histograms)
    low, high = summary.find_bin_edges(bins)
    rounds, rounds_histogram = _densify(grid, count("rounds"))
    counts = count("numbers_sent")
    numbers = [_compute_moments(*pair) for pair in counts]
    tails = [find_tail(*pair) if len(pair[0]) else (math.nan, math.nan) for pair in counts]
    series |= {
        "numbers_sent_mean": (grid.dims, grid.table([mean for mean, _ in numbers])),
        "numbers_sent_variance": (grid.dims, grid.table([variance for _, variance in numbers])),
        "numbers_sent_p95": (grid.dims, grid.table([quantile for quantile, _ in tails])),
        "numbers_sent_max": (grid.dims, grid.table([largest for _, largest in tails])),
        "regret_quantile": ([*grid.dims, "quantile"], grid.table(quantiles)),
        "regret_histogram": ([*grid.dims, "bin"], regret_histogram),
        "rounds_histogram": ([*grid.dims, "made"], rounds_histogram),
        "seeds": (grid.dims, grid.table([stops[cell] for cell in grid.hashes])),
    }
    outputs = list_standard(grid.has_world, grid.has_contexts)
    events = [output.name for output in outputs if output.coordinate]
    for name in [*events, "undecided"]:
        tallies = [dict(zip(*pair, strict=True)) for pair in count(name)]
        series[name] = (grid.dims, grid.table([int(tally.get(1, 0)) for tally in tallies]))
    coords = {
        **grid.coordinates(),
        **time,
        **schema.meter_coordinates(grid.meters),
        **schema.index_coordinates(results.outputs, sizes),
        **{n: (n, np.array(x, np.float64)) for output in reductions for n, x in output.over},
        "quantile": levels,
        "bin_low": ("bin", low),
        "bin_high": ("bin", high),
        "made": ("made", rounds, {"long_name": "completed rounds"}),
    }
    counted = [grid.facts(cell)["counted"] for cell in grid.cells]
    if "messages_by" in counted:
        coords["counted"] = (grid.dims, grid.table(counted))
    return xr.Dataset(series, coords)


def _label_moments(
    results: Results, grid: Grid, stops: Mapping[str, int], points: int
) -> dict[str, tuple[object, ...]]:
    """Returns the moments of regret, rounds and links."""
    dims, per_time = grid.dims, [*grid.dims, "time"]
    regret = []
    for cell, fact in zip(grid.hashes, grid.cells, strict=True):
        blank = np.full(points, math.nan)
        moments = summary.Moments(0, blank, blank, np.full((points, points), math.nan))
        if stops[cell]:
            columns = grid.columns(fact, points)
            seeds, anchor, offset, scatter = results.merge_moments(cell, "regret", stops[cell])
            scatter = scatter[np.ix_(columns, columns)]
            moments = summary.Moments(seeds, anchor[columns], offset[columns], scatter)
        regret.append(moments)
    waiting, (mean, variance) = (
        [
            grid.table(table)
            for table in _compute_means(name, ("time",), results, grid, stops, points)
        ]
        for name in ("waiting_regret", "rounds_by")
    )
    counts = _compute_counts(results, grid, stops, points, (mean, variance))
    per_count = grid.table([grid.links(cell).astype(np.float64) for cell in grid.cells])
    per_count = per_count[..., None, :]
    series: dict[str, tuple[object, ...]] = {
        "regret_mean": (per_time, grid.table([moments.mean for moments in regret])),
        "regret_covariance": (
            [*per_time, "time_2"],
            grid.table([moments.covariance for moments in regret]),
        ),
        "waiting_regret_mean": (per_time, waiting[0]),
        "links_mean": ([*per_time, "meter"], counts[0][..., None] * per_count),
        "links_variance": ([*per_time, "meter"], counts[1][..., None] * per_count**2),
        "rounds_made_mean": (dims, mean[..., -1]),
        "rounds_made_variance": (dims, variance[..., -1]),
    }
    if (level := results.header["look_level"]) is not None:
        widths = [relative_width(moments, level) for moments in regret]
        series["relative_width"] = (dims, grid.table(widths))
    return series


def _compute_counts(
    results: Results,
    grid: Grid,
    stops: Mapping[str, int],
    points: int,
    rounds: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Returns the moments of what links belong to: rounds, or messages in cells that count them."""
    is_message = np.array([grid.facts(cell)["counted"] == "messages_by" for cell in grid.cells])
    if not is_message.any():
        return [*rounds]
    tables = _compute_means("messages_by", ("time",), results, grid, stops, points)
    mask = grid.table(is_message)[..., None]
    return [np.where(mask, grid.table(x), y) for x, y in zip(tables, rounds, strict=True)]


def _compute_means(
    name: str,
    dims: tuple[str, ...],
    results: Results,
    grid: Grid,
    stops: Mapping[str, int],
    points: int,
) -> np.ndarray:
    """Returns mean and variance over the seeds of a series or an output: [2, cell, *dims]."""
    sizes = grid.sizes(grid.cells, points)
    tables = np.full((2, len(grid.cells), *(sizes[dim] for dim in dims)), math.nan)
    for index, cell in enumerate(grid.hashes):
        if not stops[cell]:  # unfinished sweep
            continue
        if name in ("waiting_regret", "messages_by") and not results.has_array(
            cell, f"{name}_anchor"
        ):  # nobody waits, or is absent
            tables[:, index] = 0.0
            continue
        fact = grid.cells[index]
        shape = [grid.sizes([fact], fact["slots"])[dim] for dim in dims]
        moments = results.merge_moments(cell, name, stops[cell], shape)
        for kind, flat in enumerate((moments.mean, moments.covariance)):
            values = flat.reshape(shape)
            if "time" in dims:  # a grid that is shorter repeats its last slot
                values = np.take(values, np.minimum(np.arange(points), shape[0] - 1), axis=0)
            target: tuple[int | slice, ...] = (kind, index, *map(slice, values.shape))
            tables[target] = values
    return tables


def _densify(
    grid: Grid, sparse: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns all counted values, and the count of each in each cell."""
    values = np.unique(np.concatenate([present for present, _ in sparse]))
    rows = np.zeros((len(sparse), len(values)), np.int64)
    for row, (present, counts) in zip(rows, sparse, strict=True):
        row[np.searchsorted(values, present)] = counts
    return values, grid.table(rows)


def _label_reduction(
    output: Reduce, results: Results, grid: Grid, stops: Mapping[str, int]
) -> dict[str, tuple[object, ...]]:
    """Returns the labelled result of a reduction; NaN for cells without seeds."""
    blank = np.full([len(values) for _, values in output.over], math.nan)
    values = [
        finish_reduction(output, results.merge_state(cell, output, stops[cell]))
        if stops[cell]
        else blank
        for cell in grid.hashes
    ]
    dims = [*grid.dims, *(name for name, _ in output.over)]
    return {output.name: (dims, grid.table(values), output.attrs)}


def _compute_moments(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN for too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
