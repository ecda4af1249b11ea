"""Outputs that are read from chunks when they are used, and as Dask reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from fmab_jax.core.outputs import Output
from fmab_jax.errors import count, did_you_mean, refuse
from fmab_jax.run import schema
from fmab_jax.run.outputs import gauges_of, made
from fmab_jax.run.outputs.usual import USUAL
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.grid import Grid


class Lazy(BackendArray):
    """An output over cells, seeds and its own dimensions, read from chunks when indexed."""

    def __init__(
        self, results: Results, grid: Grid, output: Output, stop: int, points: int, dtype: Any
    ) -> None:
        self.results, self.grid, self.output, self.points = results, grid, output, points
        self.sizes = grid.sizes(points)
        self.shape = (*grid.shape, stop, *(self.sizes[dim] for dim in output.dims))
        self.dtype = np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.typing.ArrayLike:
        if not isinstance(key, indexing.VectorizedIndexer):
            return self._read(key.tuple)
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        places = [
            np.atleast_1d(np.arange(size)[item]) for item, size in zip(key, self.shape, strict=True)
        ]
        over = len(self.grid.dims)
        scalars = [
            i for i, item in enumerate(key) if np.ndim(item) == 0 and not isinstance(item, slice)
        ]
        if not over and not scalars:
            return self._cell(0, *places).astype(self.dtype, copy=False)
        out = np.empty([len(place) for place in places], self.dtype)
        for index in np.ndindex(out.shape[:over]):
            at = [int(place[i]) for place, i in zip(places, index, strict=False)]
            cell = int(np.ravel_multi_index(at, self.grid.shape)) if at else 0
            out[index] = self._cell(cell, *places[over:])
        return out.reshape([n for i, n in enumerate(out.shape) if i not in scalars])

    def _cell(self, index: int, seeds: np.ndarray, *places: np.ndarray) -> np.ndarray:
        output, wanted = self.output, dict(zip(self.output.dims, places, strict=True))
        columns = self.grid.columns(self.grid.cells[index], self.points)
        # By name: another process has functions of its own.
        usual = output.name in {output.name for output in USUAL}
        if not usual:
            columns = columns[: self.grid.cells[index]["slots"]]
        elif "time" in wanted:
            columns = columns[wanted.pop("time")]
        sizes = self.grid.own_sizes(index) | {"time": len(columns)}

        def compute(seeds: np.ndarray) -> np.ndarray:
            # Missing values of an unfinished sweep are NaN.
            real = usual and self.dtype.kind == "f"
            stored = self._reader(index, seeds, columns, sizes, real=real)
            return made(output, stored, self.grid.facts(index), sizes.__getitem__, len(seeds))

        if usual:
            values = compute(seeds)
        else:
            # Missing seeds are NaN: an output is not called for them.
            number = self.results.seeds(self.grid.hashes[index], int(seeds.max(initial=-1)) + 1)
            known = seeds < number
            values = np.full((len(seeds), *map(sizes.__getitem__, output.dims)), np.nan)
            if known.any():
                values[known] = compute(seeds[known])
        for axis, dim in enumerate(output.dims, 1):
            if dim in wanted:
                values = self._take(values, axis, dim, wanted[dim])
        return values

    def _take(self, values: np.ndarray, axis: int, dim: str, places: np.ndarray) -> np.ndarray:
        """Returns values at some places of a dimension, of which other cells may have more."""
        more = self.sizes[dim] - values.shape[axis]
        if more and dim == "time":  # a grid that is shorter repeats its last slot
            places = np.minimum(places, values.shape[axis] - 1)
        elif more:
            wide = [(0, 0)] * values.ndim
            wide[axis] = (0, more)
            values = np.pad(values.astype(np.float64), wide, constant_values=math.nan)
        if np.array_equal(places, np.arange(values.shape[axis])):
            return values  # not a copy of what may be most of a result
        return np.take(values, places, axis=axis)

    def _reader(
        self,
        index: int,
        seeds: np.ndarray,
        columns: np.ndarray,
        sizes: Mapping[str, int],
        *,
        real: bool,
    ) -> Callable[[str], np.ndarray]:
        """Returns what reads fields and gauges of some seeds of a cell, as they are asked for.

        Where whole numbers may be missing, they are ``real``: what is missing is NaN.
        """
        results, cell = self.results, self.grid.hashes[index]
        gauges = {gauge.name: gauge for gauge in gauges_of([self.output])}

        def array(name: str) -> np.ndarray:
            if name in gauges:
                return results.gauge(cell, gauges[name], seeds, sizes)
            dtype, over_time = schema.FIELDS[name]
            # Where nobody waits there is no such series: zero wherever there is anything.
            seed = int(seeds[0]) if len(seeds) else 0
            absent = name == "waiting_regret" and not results.has(cell, name, seed)
            stored, at = "rounds_by" if absent else name, columns if over_time else None
            values = results.values(cell, stored, seeds, at, np.float64 if real else dtype)
            if not absent:
                return values
            # Of a finished sweep it takes no memory.
            gaps = real and np.isnan(values).any()
            return values * 0 if gaps else np.broadcast_to(0.0, values.shape)

        return array


def chunk_sizes(
    results: Results,
    grid: Grid,
    stops: Mapping[str, int],
    points: int,
    wanted: Mapping[str, int],
) -> dict[str, Any]:
    """Returns the sizes of the Dask chunks along each dimension."""
    seeds = max(stops.values())
    # The fewest parts of a whole cell: then few chunks of the store lie in two of Dask's.
    chains = [results.chain(cell, stop) for cell, stop in stops.items() if stop == seeds]
    ends = [part.stop for part in min(chains, key=len)]
    sizes: dict[str, Any] = dict.fromkeys(grid.dims, 1)
    sizes["seed"] = tuple(b - a for a, b in zip([0, *ends[:-1]], ends, strict=True)) or (0,)
    names = {*sizes, *grid.sizes(points)}
    for name, size in wanted.items():
        if name not in names:
            remedy = did_you_mean(name, names, "name a dimension of the sweep")
            refuse("chunks", name, "sizes by dimension of the sweep", remedy)
        sizes[name] = count(f"chunks[{name!r}]", size, 1, 2**62, "give a size")
    return sizes
