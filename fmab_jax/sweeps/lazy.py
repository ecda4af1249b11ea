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
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        picked = [
            np.atleast_1d(np.arange(size)[item]) for item, size in zip(key, self.shape, strict=True)
        ]
        over = len(self.grid.dims)
        cells, seeds, rest = picked[:over], picked[over], picked[over + 1 :]
        scalars = [
            i for i, item in enumerate(key) if np.ndim(item) == 0 and not isinstance(item, slice)
        ]
        if not over and not scalars:
            return self._cell(0, seeds, *rest).astype(self.dtype, copy=False)
        out = np.empty([len(each) for each in picked], self.dtype)
        for place in np.ndindex(*(len(each) for each in cells)):
            at = [int(each[i]) for each, i in zip(cells, place, strict=True)]
            index = int(np.ravel_multi_index(at, self.grid.shape)) if at else 0
            out[place] = self._cell(index, seeds, *rest)
        return out.reshape([n for i, n in enumerate(out.shape) if i not in scalars])

    def _cell(self, index: int, seeds: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        output, picked = self.output, dict(zip(self.output.dims, rest, strict=True))
        columns = self.grid.columns(self.grid.cells[index], self.points)
        # By name: another process has functions of its own.
        if usual := output.name in {each.name for each in USUAL}:
            # Of these each slot is by itself.
            columns = columns[picked.pop("time")] if "time" in picked else columns
        else:
            columns = columns[: self.grid.cells[index]["slots"]]
        own = self.grid.own_sizes(index) | {"time": len(columns)}

        def values_of(seeds: np.ndarray) -> np.ndarray:
            # Of an unfinished sweep what is missing is NaN; of a finished one nothing is.
            real = usual and self.dtype.kind == "f"
            stored = self._recorded(index, seeds, columns, own, real=real)
            facts = self.grid.facts(index)
            return made(output, stored, facts, own.__getitem__, len(seeds))

        if usual:
            values = values_of(seeds)
        else:
            # Missing seeds are NaN: an output is not called for them.
            there = self.results.seeds(self.grid.hashes[index], int(seeds.max(initial=-1)) + 1)
            known = seeds < there
            values = np.full((len(seeds), *map(own.__getitem__, output.dims)), np.nan)
            if known.any():
                values[known] = values_of(seeds[known])
        for axis, dim in enumerate(output.dims, 1):
            if dim in picked:
                values = self._taken(values, axis, dim, picked[dim])
        return values

    def _taken(self, values: np.ndarray, axis: int, dim: str, places: np.ndarray) -> np.ndarray:
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

    def _recorded(
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
        gauges = {each.name: each for each in gauges_of([self.output])}

        def array(name: str) -> np.ndarray:
            if name in gauges:
                return results.gauge(cell, gauges[name], seeds, sizes)
            kept, over_time = schema.FIELDS[name]
            # Where nobody waits there is no such series: zero wherever there is anything.
            seed = int(seeds[0]) if len(seeds) else 0
            absent = name == "waiting_regret" and not results.has(cell, name, seed)
            stored, at = "rounds_by" if absent else name, columns if over_time else None
            found = results.values(cell, stored, seeds, at, np.float64 if real else kept)
            if not absent:
                return found
            # Of a finished sweep it takes no memory.
            gaps = real and np.isnan(found).any()
            return found * 0 if gaps else np.broadcast_to(0.0, found.shape)

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
