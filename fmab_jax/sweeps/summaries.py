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


def summaries(
    results: Results, grid: Grid, stops: Mapping[str, int], *, complete: bool
) -> xr.Dataset:
    """Labels the summaries of a study's cells; arguments as in `results.dataset`."""
    points, time = grid.time()
    hashes, dims = grid.hashes, grid.dims

    def moments(stored: str, *, full: bool) -> list[summary.Moments]:
        found = []
        for cell, fact in zip(hashes, grid.cells, strict=True):
            columns = grid.columns(fact, points)
            if not stops[cell]:  # of an unfinished sweep
                blank = np.full(points, math.nan)
                scatter = np.full((points,) * (1 + full), math.nan)
                found.append(summary.Moments(0, blank, blank, scatter))
            elif not results.has(cell, f"{stored}_anchor"):
                found.append(summary.moments(np.zeros((2, points)), full=False))
            else:
                all_slots = results.moments(cell, stored, stops[cell])
                scatter = all_slots.scatter
                found.append(
                    all_slots._replace(
                        anchor=all_slots.anchor[columns],
                        offset=all_slots.offset[columns],
                        scatter=scatter[np.ix_(*[columns] * scatter.ndim)],
                    )
                )
        return found

    regret = moments("regret", full=True)
    waited, made = (moments(stored, full=False) for stored in ("waiting_regret", "rounds_by"))
    mean = grid.table([each.mean for each in made])
    variance = grid.table([each.covariance for each in made])
    per_round = grid.links().reshape(*grid.shape, 1, -1).astype(np.float64)
    numbers = [_moments_of(*results.counts(c, "numbers_sent", stops[c])) for c in hashes]
    over = [*dims, "time", "meter"]
    series: dict[str, Any] = {
        "regret_mean": ([*dims, "time"], grid.table([each.mean for each in regret])),
        "regret_covariance": (
            [*dims, "time", "time_2"],
            grid.table([each.covariance for each in regret]),
        ),
        "waiting_regret_mean": ([*dims, "time"], grid.table([each.mean for each in waited])),
        "links_mean": (over, mean[..., None] * per_round),
        "links_variance": (over, variance[..., None] * per_round**2),
        "rounds_made_mean": (dims, mean[..., -1]),
        "rounds_made_variance": (dims, variance[..., -1]),
        "numbers_sent_mean": (dims, grid.table([each for each, _ in numbers])),
        "numbers_sent_variance": (dims, grid.table([each for _, each in numbers])),
    }
    for output in results.outputs:
        if isinstance(output, Reduce):
            series |= _reduction_of(output, results, grid, stops)
            continue
        series |= _summary_of(output, results, grid, stops, points)
    histograms = [results.counts(cell, "regret_bin", stops[cell]) for cell in hashes]
    levels = np.array(QUANTILES)
    quantiles = [
        summary.quantiles(*histogram, levels) if stops[cell] else np.full(len(levels), math.nan)
        for cell, histogram in zip(hashes, histograms, strict=True)
    ]

    def dense(sparse: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Returns every value that is counted, and how often each cell has it."""
        values = np.unique(np.concatenate([present for present, _ in sparse]))
        rows = np.zeros((len(sparse), len(values)), np.int64)
        for row, (present, counts) in zip(rows, sparse, strict=True):
            row[np.searchsorted(values, present)] = counts
        return values, grid.table(rows)

    bins, regret_histogram = dense(histograms)
    low, high = summary.bin_edges(bins)
    rounds, rounds_histogram = dense([results.counts(c, "rounds", stops[c]) for c in hashes])
    series |= {
        "regret_quantile": ([*dims, "quantile"], grid.table(quantiles)),
        "regret_histogram": ([*dims, "bin"], regret_histogram),
        "rounds_histogram": ([*dims, "made"], rounds_histogram),
        "seeds": (dims, grid.table([stops[cell] for cell in hashes])),
    }
    level = results.header["look_level"]
    if level is not None:
        widths = [relative_width(each, level) for each in regret]
        series["relative_width"] = (dims, grid.table(widths))
    for name in [each.name for each in USUAL if each.coordinate] + ["undecided"]:
        tables = [dict(zip(*results.counts(c, name, stops[c]), strict=True)) for c in hashes]
        series[name] = (dims, grid.table([int(table.get(1, 0)) for table in tables]))
    return xr.Dataset(
        series,
        {
            **grid.coordinates(),
            **time,
            **schema.meter_coordinates(grid.meters),
            **schema.index_coordinates(results.outputs, grid.sizes(points)),
            **{
                name: (name, np.array(values, np.float64))
                for output in results.outputs
                if isinstance(output, Reduce)
                for name, values in output.over
            },
            "quantile": levels,
            "bin_low": ("bin", low),
            "bin_high": ("bin", high),
            "made": ("made", rounds, {"long_name": "completed rounds"}),
        },
    )


def _summary_of(
    output: Output, results: Results, grid: Grid, stops: Mapping[str, int], points: int
) -> dict[str, Any]:
    """Returns mean and variance over the seeds of an output that was asked for."""
    sizes = grid.sizes(points)
    found = np.full((2, len(grid.cells), *(sizes[dim] for dim in output.dims)), math.nan)
    for index, cell in enumerate(grid.hashes):
        if not stops[cell]:  # of an unfinished sweep
            continue
        own = [grid.own_sizes(index)[dim] for dim in output.dims]
        moments = results.moments(cell, output.name, stops[cell], own)
        for which, flat in enumerate((moments.mean, moments.covariance)):
            values = flat.reshape(own)
            if "time" in output.dims:  # a grid that is shorter repeats its last slot
                columns = np.minimum(np.arange(points), own[0] - 1)
                values = np.take(values, columns, axis=0)
            where: Any = (which, index, *map(slice, values.shape))
            found[where] = values
    dims = [*grid.dims, *output.dims]
    return {
        f"{output.name}_{kind}": (dims, grid.table(values), output.attrs)
        for kind, values in zip(("mean", "variance"), found, strict=True)
    }


def _reduction_of(
    output: Reduce, results: Results, grid: Grid, stops: Mapping[str, int]
) -> dict[str, Any]:
    """Returns the result of a reduction that was asked for; NaN where there is no seed."""
    blank = np.full([len(values) for _, values in output.over], math.nan)
    found = [
        finish_reduction(output, results.state(cell, output, stops[cell])) if stops[cell] else blank
        for cell in grid.hashes
    ]
    dims = [*grid.dims, *(name for name, _ in output.over)]
    return {output.name: (dims, grid.table(found), output.attrs)}


def _moments_of(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN where there are too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
