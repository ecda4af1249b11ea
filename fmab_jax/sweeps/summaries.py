"""Labelled summaries of very many seeds: moments, a histogram, counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary
from fmab_jax.analysis.budgets import find_tail
from fmab_jax.parts.outputs import TALLIED, Reduce
from fmab_jax.parts.outputs.standard import list_standard
from fmab_jax.run import schema
from fmab_jax.run.reductions import finish_reduction
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.grid import Grid
from fmab_jax.sweeps.precision import relative_width

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def label_summaries(results: Results, grid: Grid, stops: Mapping[str, int]) -> xr.Dataset:
    """Labels the summaries of a study's cells; arguments as in `results.dataset`."""
    points, time = grid.time()
    cells = _Cells(results, grid, stops, points)
    variables = cells.regret()
    waiting, _ = cells.moments("waiting_regret", ("time",))
    variables["waiting_regret_mean"] = [*grid.dims, "time"], waiting
    variables |= cells.links()
    for output in results.outputs:
        if isinstance(output, Reduce):
            dims = [*grid.dims, *(name for name, _ in output.over)]
            variables[output.name] = dims, cells.reduction(output), output.attrs
        else:
            dims, tables = [*grid.dims, *output.dims], cells.moments(output.name, output.dims)
            for kind, values in zip(("mean", "variance"), tables, strict=True):
                variables[f"{output.name}_{kind}"] = dims, values, output.attrs
            # By name, since outputs of another process are copies.
            if output.name in {x.name for x in TALLIED}:
                variables[f"{output.name}_quantile"] = cells.quantiles(output.name)
    variables |= cells.numbers_sent() | cells.histograms()
    variables["seeds"] = grid.dims, grid.table([stops[cell] for cell in grid.hashes])
    outputs = list_standard(grid.has_world, grid.has_contexts)
    for name in [*(output.name for output in outputs if output.coordinate), "undecided"]:
        events = [int(counts[values == 1].sum()) for values, counts in cells.counts(name)]
        variables[name] = grid.dims, grid.table(events)
    coordinates = {
        **grid.coordinates(),
        **time,
        **schema.meter_coordinates(grid.meters),
        **schema.index_coordinates(results.outputs, grid.sizes(grid.cells, points)),
    }
    for output in results.outputs:
        if isinstance(output, Reduce):
            coordinates |= {n: (n, np.array(x, np.float64)) for n, x in output.over}
    counted = [grid.facts(cell)["counted"] for cell in grid.cells]
    if "messages_by" in counted:
        coordinates["counted"] = grid.dims, grid.table(counted)
    coordinates["quantile"] = np.array(QUANTILES)
    return xr.Dataset(variables, coordinates).set_coords(["bin_low", "bin_high"])


@dataclass(frozen=True)
class _Cells:
    """The summaries of all cells; those without seeds are NaN, or 0 where something is counted.

    Attributes:
        results: The chunks.
        grid: The labels.
        stops: The number of seeds of each cell.
        points: The number of recorded slots.
    """

    results: Results
    grid: Grid
    stops: Mapping[str, int]
    points: int

    def counts(self, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the values of a whole number, and their counts, of each cell."""
        stops = self.stops
        return [self.results.merge_counts(cell, name, stops[cell]) for cell in self.grid.hashes]

    def moments(self, name: str, dims: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and variance over the seeds of a series or an output."""
        grid, sizes = self.grid, self.grid.sizes(self.grid.cells, self.points)
        tables = np.full((2, len(grid.cells), *(sizes[dim] for dim in dims)), math.nan)
        for index, (cell, fact) in enumerate(zip(grid.hashes, grid.cells, strict=True)):
            if not self.stops[cell]:
                continue
            if name in ("waiting_regret", "messages_by") and not self.results.has_array(
                cell, f"{name}_anchor"
            ):  # nobody waits, or is absent
                tables[:, index] = 0.0
                continue
            shape = [grid.sizes([fact], fact["slots"])[dim] for dim in dims]
            moments = self.results.merge_moments(cell, name, self.stops[cell], shape)
            values = np.stack([moments.mean, moments.covariance]).reshape(2, *shape)
            if "time" in dims:  # a grid that is shorter repeats its last slot
                values = values[:, np.minimum(np.arange(self.points), shape[0] - 1)]
            place: tuple[int | slice, ...] = (slice(None), index, *map(slice, values.shape[1:]))
            tables[place] = values
        return grid.table(tables[0]), grid.table(tables[1])

    def regret(self) -> Record:
        """Returns mean, covariance and, with a precision, relative width of the regret."""
        grid, points, level = self.grid, self.points, self.results.header["look_level"]
        mean = np.full((len(grid.cells), points), math.nan)
        covariance = np.full((len(grid.cells), points, points), math.nan)
        widths = np.full(len(grid.cells), math.nan)
        for index, (cell, fact) in enumerate(zip(grid.hashes, grid.cells, strict=True)):
            if self.stops[cell]:
                columns = grid.columns(fact, points)
                moments = self.results.merge_moments(cell, "regret", self.stops[cell])
                mean[index] = moments.mean[columns]
                covariance[index] = moments.covariance[np.ix_(columns, columns)]
                if level is not None:
                    widths[index] = relative_width(moments, level)
        variables: Record = {
            "regret_mean": ([*grid.dims, "time"], grid.table(mean)),
            "regret_covariance": ([*grid.dims, "time", "time_2"], grid.table(covariance)),
        }
        if level is not None:
            variables["relative_width"] = grid.dims, grid.table(widths)
        return variables

    def links(self) -> Record:
        """Returns the moments of rounds, and of links: of rounds, or of messages if counted."""
        grid = self.grid
        mean, variance = rounds = self.moments("rounds_by", ("time",))
        counts = [mean, variance]
        is_message = np.array([grid.facts(cell)["counted"] == "messages_by" for cell in grid.cells])
        if is_message.any():
            mask, messages = (
                grid.table(is_message)[..., None],
                self.moments("messages_by", ("time",)),
            )
            counts = [np.where(mask, x, y) for x, y in zip(messages, rounds, strict=True)]
        per_count = grid.table([grid.links(cell).astype(np.float64) for cell in grid.cells])
        per_count = per_count[..., None, :]
        dims = [*grid.dims, "time", "meter"]
        return {
            "links_mean": (dims, counts[0][..., None] * per_count),
            "links_variance": (dims, counts[1][..., None] * per_count**2),
            "rounds_made_mean": (grid.dims, mean[..., -1]),
            "rounds_made_variance": (grid.dims, variance[..., -1]),
        }

    def numbers_sent(self) -> Record:
        """Returns mean, variance, 95 % quantile and maximum of the numbers sent."""
        rows = []
        for values, counts in self.counts("numbers_sent"):
            mean, variance = _compute_moments(values, counts)
            quantile, largest = find_tail(values, counts) if len(values) else (math.nan, math.nan)
            rows.append((mean, variance, quantile, largest))
        kinds = zip(("mean", "variance", "p95", "max"), zip(*rows, strict=True), strict=True)
        return {f"numbers_sent_{x}": (self.grid.dims, self.grid.table(y)) for x, y in kinds}

    def histograms(self) -> Record:
        """Returns the histogram and quantiles of the regret at T, and the histogram of rounds."""
        grid, sparse = self.grid, self.counts("regret_bin")
        bins, regret = self._densify(sparse)
        low, high = summary.find_bin_edges(bins)
        made, rounds = self._densify(self.counts("rounds"))
        return {
            "regret_quantile": self.quantiles("regret"),
            "regret_histogram": ([*grid.dims, "bin"], regret),
            "rounds_histogram": ([*grid.dims, "made"], rounds),
            "bin_low": ("bin", low),
            "bin_high": ("bin", high),
            "made": ("made", made, {"long_name": "completed rounds"}),
        }

    def quantiles(self, name: str) -> tuple[list[str], np.ndarray]:
        """Returns the quantiles at T of a regret whose bins are counted."""
        rows = [
            summary.read_quantiles(*histogram, np.array(QUANTILES))
            if len(histogram[0])
            else np.full(len(QUANTILES), math.nan)
            for histogram in self.counts(f"{name}_bin")
        ]
        return [*self.grid.dims, "quantile"], self.grid.table(rows)

    def _densify(
        self, sparse: list[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns all counted values, and the count of each in each cell."""
        values = np.unique(np.concatenate([present for present, _ in sparse]))
        rows = np.zeros((len(sparse), len(values)), np.int64)
        for row, (present, counts) in zip(rows, sparse, strict=True):
            row[np.searchsorted(values, present)] = counts
        return values, self.grid.table(rows)

    def reduction(self, output: Reduce) -> np.ndarray:
        """Returns the result of a reduction."""
        blank = np.full([len(values) for _, values in output.over], math.nan)
        values = [
            finish_reduction(output, self.results.merge_state(cell, output, self.stops[cell]))
            if self.stops[cell]
            else blank
            for cell in self.grid.hashes
        ]
        return self.grid.table(values)


def _compute_moments(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN for too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
