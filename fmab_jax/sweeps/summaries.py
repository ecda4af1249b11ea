"""What is kept of very many seeds, labelled: moments, a histogram, counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary
from fmab_jax.core.outputs import Output, Reduce
from fmab_jax.run import schema
from fmab_jax.run.outputs import finish_reduction
from fmab_jax.run.outputs.usual import USUAL
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.grid import Grid
from fmab_jax.sweeps.precision import relative_width

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def summaries(results: Results, grid: Grid, stops: Mapping[str, int]) -> xr.Dataset:
    """Labels the summaries of a study's cells; arguments as in `results.dataset`."""
    points, time = grid.time()
    series = _usual(results, grid, stops, points)
    reductions = [output for output in results.outputs if isinstance(output, Reduce)]
    for output in results.outputs:
        if isinstance(output, Reduce):
            series |= _reduction_of(output, results, grid, stops)
        else:
            series |= _summary_of(output, results, grid, stops, points)
    histograms = [results.counts(cell, "regret_bin", stops[cell]) for cell in grid.hashes]
    levels = np.array(QUANTILES)
    quantiles = [
        summary.quantiles(*histogram, levels) if stops[cell] else np.full(len(levels), math.nan)
        for cell, histogram in zip(grid.hashes, histograms, strict=True)
    ]
    bins, regret_histogram = _dense(grid, histograms)
    low, high = summary.bin_edges(bins)
    counts = [results.counts(cell, "rounds", stops[cell]) for cell in grid.hashes]
    rounds, rounds_histogram = _dense(grid, counts)
    series |= {
        "regret_quantile": ([*grid.dims, "quantile"], grid.table(quantiles)),
        "regret_histogram": ([*grid.dims, "bin"], regret_histogram),
        "rounds_histogram": ([*grid.dims, "made"], rounds_histogram),
        "seeds": (grid.dims, grid.table([stops[cell] for cell in grid.hashes])),
    }
    for name in [output.name for output in USUAL if output.coordinate] + ["undecided"]:
        tables = [dict(zip(*results.counts(c, name, stops[c]), strict=True)) for c in grid.hashes]
        series[name] = (grid.dims, grid.table([int(table.get(1, 0)) for table in tables]))
    coords = {
        **grid.coordinates(),
        **time,
        **schema.meter_coordinates(grid.meters),
        **schema.index_coordinates(results.outputs, grid.sizes(points)),
        **{n: (n, np.array(x, np.float64)) for output in reductions for n, x in output.over},
        "quantile": levels,
        "bin_low": ("bin", low),
        "bin_high": ("bin", high),
        "made": ("made", rounds, {"long_name": "completed rounds"}),
    }
    return xr.Dataset(series, coords)


def _usual(results: Results, grid: Grid, stops: Mapping[str, int], points: int) -> dict[str, Any]:
    """Returns the moments of regret, rounds, links and numbers sent."""
    dims, per_time = grid.dims, [*grid.dims, "time"]
    regret = _moments(results, grid, stops, points, "regret")
    waited, rounds = (
        _moments(results, grid, stops, points, name) for name in ("waiting_regret", "rounds_by")
    )
    mean = grid.table([moments.mean for moments in rounds])
    variance = grid.table([moments.covariance for moments in rounds])
    per_round = grid.links().reshape(*grid.shape, 1, -1).astype(np.float64)
    numbers = [_moments_of(*results.counts(c, "numbers_sent", stops[c])) for c in grid.hashes]
    covariance = grid.table([moments.covariance for moments in regret])
    series: dict[str, Any] = {
        "regret_mean": (per_time, grid.table([moments.mean for moments in regret])),
        "regret_covariance": ([*per_time, "time_2"], covariance),
        "waiting_regret_mean": (per_time, grid.table([moments.mean for moments in waited])),
        "links_mean": ([*per_time, "meter"], mean[..., None] * per_round),
        "links_variance": ([*per_time, "meter"], variance[..., None] * per_round**2),
        "rounds_made_mean": (dims, mean[..., -1]),
        "rounds_made_variance": (dims, variance[..., -1]),
        "numbers_sent_mean": (dims, grid.table([mean for mean, _ in numbers])),
        "numbers_sent_variance": (dims, grid.table([variance for _, variance in numbers])),
    }
    if (level := results.header["look_level"]) is not None:
        widths = [relative_width(moments, level) for moments in regret]
        series["relative_width"] = (dims, grid.table(widths))
    return series


def _moments(
    results: Results, grid: Grid, stops: Mapping[str, int], points: int, name: str
) -> list[summary.Moments]:
    """Returns the moments of a series of each cell, over the recorded slots of all cells."""
    cells = []
    for cell, fact in zip(grid.hashes, grid.cells, strict=True):
        columns = grid.columns(fact, points)
        if not stops[cell]:  # of an unfinished sweep
            blank = np.full(points, math.nan)
            scatter = np.full((points, points), math.nan) if name == "regret" else blank
            cells.append(summary.Moments(0, blank, blank, scatter))
        elif not results.has(cell, f"{name}_anchor"):
            cells.append(summary.moments(np.zeros((2, points)), full=False))
        else:
            seeds, anchor, offset, scatter = results.moments(cell, name, stops[cell])
            scatter = scatter[np.ix_(*[columns] * scatter.ndim)]
            cells.append(summary.Moments(seeds, anchor[columns], offset[columns], scatter))
    return cells


def _dense(
    grid: Grid, sparse: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns every value that is counted, and how often each cell has it."""
    values = np.unique(np.concatenate([present for present, _ in sparse]))
    rows = np.zeros((len(sparse), len(values)), np.int64)
    for row, (present, counts) in zip(rows, sparse, strict=True):
        row[np.searchsorted(values, present)] = counts
    return values, grid.table(rows)


def _summary_of(
    output: Output, results: Results, grid: Grid, stops: Mapping[str, int], points: int
) -> dict[str, Any]:
    """Returns mean and variance over the seeds of an output that was asked for."""
    sizes = grid.sizes(points)
    tables = np.full((2, len(grid.cells), *(sizes[dim] for dim in output.dims)), math.nan)
    for index, cell in enumerate(grid.hashes):
        if not stops[cell]:  # of an unfinished sweep
            continue
        shape = [grid.own_sizes(index)[dim] for dim in output.dims]
        moments = results.moments(cell, output.name, stops[cell], shape)
        for which, flat in enumerate((moments.mean, moments.covariance)):
            values = flat.reshape(shape)
            if "time" in output.dims:  # a grid that is shorter repeats its last slot
                columns = np.minimum(np.arange(points), shape[0] - 1)
                values = np.take(values, columns, axis=0)
            where: Any = (which, index, *map(slice, values.shape))
            tables[where] = values
    dims = [*grid.dims, *output.dims]
    return {
        f"{output.name}_{kind}": (dims, grid.table(values), output.attrs)
        for kind, values in zip(("mean", "variance"), tables, strict=True)
    }


def _reduction_of(
    output: Reduce, results: Results, grid: Grid, stops: Mapping[str, int]
) -> dict[str, Any]:
    """Returns the result of a reduction that was asked for; NaN where there is no seed."""
    blank = np.full([len(values) for _, values in output.over], math.nan)
    values = [
        finish_reduction(output, results.state(cell, output, stops[cell])) if stops[cell] else blank
        for cell in grid.hashes
    ]
    dims = [*grid.dims, *(name for name, _ in output.over)]
    return {output.name: (dims, grid.table(values), output.attrs)}


def _moments_of(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN where there are too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
