"""The results of a sweep, finished or not, as one labelled Dataset."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fmab_jax.errors import flag, format_quantity, refuse
from fmab_jax.files import check_path
from fmab_jax.parts.outputs import Output
from fmab_jax.parts.outputs.standard import STANDARD, list_standard, refuse_absent
from fmab_jax.run import netcdf, schema
from fmab_jax.run.outputs import collect_accumulators, compute_output, from_study
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps.chunks import Results, as_slice
from fmab_jax.sweeps.claims import header_in
from fmab_jax.sweeps.grid import SHARED, Grid
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.summaries import label_summaries


def open_results(path: str | os.PathLike[str]) -> Results:
    """Opens a store; refuses a damaged header and any other folder."""
    folder = Store(check_path("store", path))
    header = header_in(folder)
    if header is None:
        refuse("store", str(path), "a store with a study in it", "run the sweep first")
    outputs = from_study(header["study"].get("outputs", []))
    return Results(header, folder, folder.entries(), outputs)


def open_sweep(path: str | os.PathLike[str], *, partial: bool = False) -> xr.Dataset:
    """Opens the results of a sweep; curves are read, and checked, when they are used.

    `confidence_band`, `paired_difference` and `table` read them block by block. What is
    computed from ``open_sweep(path).chunk(seed=1000)``, such as a difference, is worked out by Dask
    when it is used, and may be larger than the memory.

    Args:
        path: The sweep's ``store``.
        partial: Open an unfinished sweep: what is there, with NaN for what is missing; ``seeds``
            says how many each configuration has.

    Returns:
        The Dataset that `sweep` returned.

    Raises:
        ValueError: If it is no store, is damaged, or is unfinished and ``partial`` is not set.
        Damaged: When a value is read from a damaged chunk: of curves, when it is used. Running the
            sweep again mends it.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem, folder = fmab.Problem(agents=5, arms=10), tempfile.mkdtemp() + "/eps"
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20, store=folder
        ... )
        >>> bool((fmab.open_sweep(folder).regret == data.regret).all())
        True
    """
    flag("partial", partial)
    return dataset(open_results(path), str(path), partial=partial)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a result that `save` wrote, into memory.

    Args:
        path: A file that `save` wrote.

    Returns:
        The Dataset that was saved, to the bit.

    Raises:
        ValueError: If there is no such file or it is not such a result, of another version of the
            format, or damaged.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> path = fmab.save(data, tempfile.mkdtemp() + "/run.nc")
        >>> bool((fmab.load(path).regret == data.regret).all())
        True
    """
    if os.path.isdir(check_path("path", path)):
        remedy = "read a sweep's folder with fmab_jax.open_sweep"
        refuse("path", str(path), "a file of fmab_jax.save", remedy)
    return netcdf.load(path)


def read(path: str | os.PathLike[str], *, partial: bool = False) -> xr.Dataset:
    """Reads a sweep's folder, or a .nc file of `save`, `export` or ``fmab run``."""
    path = check_path("path", path)
    if os.path.isdir(path):
        return open_sweep(path, partial=partial)
    if path.suffix == ".nc":
        return load(path)
    refuse("path", str(path), "a folder of results or a .nc file", "check the path")


def dataset(results: Results, store: str, *, partial: bool = False) -> xr.Dataset:
    """Labels a study's results; arguments as in `open_sweep`."""
    grid = Grid(results.header)
    # A complete cell has all seeds of its next look.
    stops = {cell: results.count_seeds(cell, results.assess(cell)[0]) for cell in grid.hashes}
    missing = sum(results.count_missing(cell) for cell in stops)
    if missing and not partial:
        allowed = f"finished; it lacks at least {format_quantity(missing, 'trial')}"
        refuse("store", store, allowed, "resume it, or open it with partial=True")
    if results.curves:
        data = _label_curves(results, grid, stops, complete=not missing)
    else:
        data = label_summaries(results, grid, stops)
    bits = grid.table([cell["number_bits"] for cell in grid.cells])
    data["number_bits"] = (grid.dims, bits, {"long_name": "bits of a number", "units": "bits"})
    variables, coordinates = grid.leaks()
    data = data.assign(variables).assign_coords(coordinates)
    for name in SHARED:
        dims, values = grid.reduce_fact(name)
        # Swept parameters and differing algorithms are dimensions already.
        if dims and name not in ("algorithm", "title", *grid.dims):
            data.coords[name] = (dims, values)
    data.attrs = grid.attrs(results.collect_versions(stops))
    stored = {cell: results.count_seeds(cell, MAX_SEEDS) for cell in stops}
    if more := [seeds for cell, seeds in stored.items() if seeds > stops[cell]]:
        data.attrs["stored_seeds"] = max(more)
    return data


def _label_curves(
    results: Results, grid: Grid, stops: Mapping[str, int], *, complete: bool
) -> xr.Dataset:
    stop = max(stops.values())
    points, time = grid.time()

    def make_variable(output: Output) -> xr.Variable:
        kind = output.dtype if complete or output.dtype is np.bool_ else np.float64
        array = indexing.LazilyIndexedArray(ChunkArray(results, grid, output, stop, points, kind))
        return xr.Variable([*grid.dims, "seed", *output.dims], array, output.attrs)

    outputs = (*list_standard(grid.has_world, grid.has_contexts), *results.outputs)
    variables: dict[str, xr.Variable | tuple[object, ...]] = {
        output.name: make_variable(output) for output in outputs
    }
    events = {output.name: variables.pop(output.name) for output in outputs if output.coordinate}
    variables["seeds"] = (grid.dims, grid.table([stops[cell] for cell in grid.hashes]))
    coords = {**grid.coordinates(), "seed": ("seed", np.arange(stop)), **time}
    coords |= schema.index_coordinates(outputs, grid.sizes(grid.cells, points))
    return xr.Dataset(variables, {**coords, **schema.meter_coordinates(grid.meters), **events})


class ChunkArray(BackendArray):
    """An output over cells, seeds and its dimensions; indexing reads chunks."""

    def __init__(
        self,
        results: Results,
        grid: Grid,
        output: Output,
        stop: int,
        points: int,
        dtype: np.typing.DTypeLike,
    ) -> None:
        self.results, self.grid, self.output, self.points = results, grid, output, points
        self.sizes = grid.sizes(grid.cells, points)
        self.shape = (*grid.shape, stop, *(self.sizes[dim] for dim in output.dims))
        self.dtype = np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.typing.ArrayLike:
        if not isinstance(key, indexing.VectorizedIndexer):
            return self._read(key.tuple)
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[int | slice | np.ndarray, ...]) -> np.ndarray:
        places = [
            np.atleast_1d(np.arange(size)[item]) for item, size in zip(key, self.shape, strict=True)
        ]
        grid_dims = len(self.grid.dims)
        scalars = [
            i for i, item in enumerate(key) if not isinstance(item, slice) and np.ndim(item) == 0
        ]
        if not grid_dims and not scalars:
            return self._read_cell(0, *places).astype(self.dtype, copy=False)
        out = np.empty([len(place) for place in places], self.dtype)
        for index in np.ndindex(out.shape[:grid_dims]):
            at = [int(place[i]) for place, i in zip(places, index, strict=False)]
            cell = int(np.ravel_multi_index(at, self.grid.shape)) if at else 0
            out[index] = self._read_cell(cell, *places[grid_dims:])
        return out.reshape([n for i, n in enumerate(out.shape) if i not in scalars])

    def _read_cell(self, index: int, seeds: np.ndarray, *places: np.ndarray) -> np.ndarray:
        output, indices = self.output, dict(zip(self.output.dims, places, strict=True))
        cell, fact, dtype = self.grid.hashes[index], self.grid.cells[index], self.dtype
        columns = self.grid.columns(fact, self.points)
        # Compared by name, since unpickled outputs are other objects.
        if output.name not in {output.name for output in STANDARD}:
            columns = columns[: fact["slots"]]
        elif "time" in indices:
            columns = columns[indices.pop("time")]
        sizes = self.grid.sizes([fact], len(columns))
        is_computed = seeds < self.results.count_seeds(cell, int(seeds.max(initial=-1)) + 1)

        def compute(seeds: np.ndarray) -> np.ndarray:
            read = self._make_reader(cell, seeds, columns, sizes)
            return compute_output(
                output, read, self.grid.facts(fact), sizes.__getitem__, len(seeds)
            )

        if is_computed.any() and is_computed.all():
            values = compute(seeds)
        else:  # missing seeds must not reach the output's function
            values = np.zeros((len(seeds), *map(sizes.__getitem__, output.dims)), dtype)
            if dtype.kind == "f":
                values[...] = math.nan
            if is_computed.any():
                values[is_computed] = compute(seeds[is_computed])
        for axis, dim in enumerate(output.dims, 1):
            if dim in indices:
                values = self._take(values, axis, dim, indices[dim])
        return values

    def _take(self, values: np.ndarray, axis: int, dim: str, places: np.ndarray) -> np.ndarray:
        """Returns values at some places of a dimension, padded to its length in other cells."""
        padding = self.sizes[dim] - values.shape[axis]
        if padding and dim == "time":  # a grid that is shorter repeats its last slot
            places = np.minimum(places, values.shape[axis] - 1)
        elif padding:
            wide = [(0, 0)] * values.ndim
            wide[axis] = (0, padding)
            values = np.pad(values.astype(np.float64), wide, constant_values=math.nan)
        if np.array_equal(places, np.arange(values.shape[axis])):
            return values  # a copy could be as large as the result
        return np.take(values, places, axis=axis)

    def _make_reader(
        self, cell: str, seeds: np.ndarray, columns: np.ndarray, sizes: Mapping[str, int]
    ) -> Callable[[str], np.ndarray]:
        """Returns a function from names to arrays of some seeds of a cell."""
        results = self.results
        accumulators = {
            accumulator.name: accumulator for accumulator in collect_accumulators([self.output])
        }

        def array(name: str) -> np.ndarray:
            if name in accumulators:
                # Rows beyond the cell's sizes are padding.
                index = tuple(slice(sizes[dim]) for dim in accumulators[name].dims)
                return results.read_values(cell, name, seeds, np.float64, index)
            dtype, over_time = schema.FIELDS[name]
            if name == "waiting_regret" and not results.has_array(cell, name):  # nobody waits
                return np.broadcast_to(0.0, (len(seeds), len(columns)))
            if not results.has_array(cell, name):
                refuse_absent(name)
            slots = (as_slice(columns),) if over_time else ()
            return results.read_values(cell, name, seeds, dtype, slots)

        return array
