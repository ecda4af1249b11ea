"""What is kept of very many seeds, labelled: moments, a histogram, counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary
from fmab_jax.core.outputs import Output
from fmab_jax.run import schema
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
    hashes = grid.hashes

    def over_cells(values: list[Any]) -> np.ndarray:
        return grid.table(values)

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
    series: dict[str, Any] = {
        "regret_mean": ([*grid.dims, "time"], over_cells([m.mean for m in regret])),
        "regret_covariance": (
            [*grid.dims, "time", "time_2"],
            over_cells([m.covariance for m in regret]),
        ),
    }
    for name, stored in (("waiting_regret", "waiting_regret"), ("rounds", "rounds_by")):
        parts = moments(stored, full=False)
        mean = over_cells([part.mean for part in parts])
        variance = over_cells([part.covariance for part in parts])
        if name == "waiting_regret":
            series[f"{name}_mean"] = ([*grid.dims, "time"], mean)
            continue
        per_round = grid.links().reshape(*grid.shape, 1, -1).astype(np.float64)
        over = [*grid.dims, "time", "meter"]
        series["links_mean"] = (over, mean[..., None] * per_round)
        series["links_variance"] = (over, variance[..., None] * per_round**2)
        series["rounds_made_mean"] = (grid.dims, mean[..., -1])
        series["rounds_made_variance"] = (grid.dims, variance[..., -1])
    numbers = [_moments_of(*results.counts(c, "numbers_sent", stops[c])) for c in hashes]
    for which, kind in enumerate(("mean", "variance")):
        series[f"numbers_sent_{kind}"] = (grid.dims, over_cells([each[which] for each in numbers]))
    for output in results.outputs:
        series |= _summary_of(output, results, grid, stops, points)
    level = results.header["look_level"]
    histograms = [results.counts(cell, "regret_bin", stops[cell]) for cell in hashes]
    levels = np.array(QUANTILES)
    place = np.unique(np.concatenate([bins for bins, _ in histograms]))

    def dense(sparse: list[tuple[np.ndarray, np.ndarray]], values: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(sparse), len(values)), np.int64)
        for row, (present, counts) in zip(rows, sparse, strict=True):
            row[np.searchsorted(values, present)] = counts
        return over_cells(list(rows))

    low, high = summary.bin_edges(place)
    found = [
        summary.quantiles(*histogram, levels) if stops[cell] else np.full(len(levels), math.nan)
        for cell, histogram in zip(hashes, histograms, strict=True)
    ]
    made = [results.counts(cell, "rounds", stops[cell]) for cell in hashes]
    rounds = np.unique(np.concatenate([values for values, _ in made]))
    events = {}
    names = [each.name for each in USUAL if each.coordinate] + ["undecided"]
    for name in names:
        tables = [dict(zip(*results.counts(c, name, stops[c]), strict=True)) for c in hashes]
        events[name] = over_cells([int(table.get(1, 0)) for table in tables])
    return xr.Dataset(
        {
            **series,
            "regret_quantile": ([*grid.dims, "quantile"], over_cells(found)),
            "regret_histogram": ([*grid.dims, "bin"], dense(histograms, place)),
            "rounds_histogram": ([*grid.dims, "made"], dense(made, rounds)),
            "seeds": (grid.dims, over_cells([stops[cell] for cell in hashes])),
            **(
                {}
                if level is None
                else {
                    "relative_width": (
                        grid.dims,
                        over_cells([relative_width(each, level) for each in regret]),
                    )
                }
            ),
            **{name: (grid.dims, found) for name, found in events.items()},
        },
        {
            **grid.coordinates(),
            **time,
            **schema.meter_coordinates(grid.meters),
            **schema.index_coordinates(results.outputs, grid.sizes(points)),
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
    shape = tuple(sizes[dim] for dim in output.dims)
    found = np.full((2, len(grid.cells), *shape), math.nan)
    for index, cell in enumerate(grid.hashes):
        own = [grid.own_sizes(index)[dim] for dim in output.dims]
        if not stops[cell]:  # of an unfinished sweep
            continue
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
        f"{output.name}_{kind}": (dims, values.reshape((*grid.shape, *shape)), output.attrs)
        for kind, values in zip(("mean", "variance"), found, strict=True)
    }


def _moments_of(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN where there are too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
