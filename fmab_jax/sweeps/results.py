"""What a sweep has computed so far, as one labelled Dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.core import indexing

from fmab_jax.core.outputs import Output
from fmab_jax.errors import flag, refuse
from fmab_jax.files import checked_path
from fmab_jax.run import netcdf, schema
from fmab_jax.run.outputs import of_study
from fmab_jax.run.outputs.usual import USUAL
from fmab_jax.sweeps import records
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.grid import SHARED, Grid
from fmab_jax.sweeps.lazy import Lazy, chunk_sizes
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.summaries import summaries


def open_results(path: str | os.PathLike[str]) -> Results:
    """Opens a store; refuses a damaged one, and anything else."""
    folder = Store(checked_path("store", path))
    header = records.header_in(folder)
    if header is None:
        refuse("store", str(path), "a store with a study in it", "run the sweep first")
    entries, _ = folder.entries()
    return Results(header, folder, entries, of_study(header["study"].get("outputs", [])))


def open_sweep(
    path: str | os.PathLike[str],
    *,
    partial: bool = False,
    chunks: str | Mapping[str, int] | None = None,
) -> xr.Dataset:
    """Opens the results of a sweep; curves are read, and checked, when they are used.

    With ``chunks`` curves are Dask arrays: what is computed from them, such as a difference, is
    worked out when it is used, chunk by chunk, and may be larger than the memory.
    `confidence_band`, `paired_difference` and `final_table` read them block by block.

    Args:
        path: The sweep's ``store``.
        partial: Open an unfinished sweep: what is there, with NaN for what is missing; ``seeds``
            says how many each configuration has.
        chunks: "store" for Dask arrays whose chunks are the store's: one configuration x its chunk
            of seeds x all slots. Or sizes by dimension, such as ``{"seed": 1000}``, which replace
            these. By default no Dask arrays. Of a sweep with ``keep="summary"``, which is small,
            it changes nothing.

    Returns:
        The Dataset that `sweep` returned.

    Raises:
        ValueError: If it is no store, is damaged, or is unfinished and ``partial`` is not set; if
            ``chunks`` is something else, or Dask is not installed.
        Damaged: When a value is read from a damaged chunk: of curves, when it is used. Running the
            sweep again mends it.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem, folder = fmab.Problem.uniform(agents=5, arms=10), tempfile.mkdtemp() + "/eps"
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20, store=folder
        ... )
        >>> bool((fmab.open_sweep(folder).regret == data.regret).all())
        True
        >>> fmab.open_sweep(folder, chunks="store").regret.chunks
        ((1, 1), (20,), (100,))
    """
    flag("partial", partial)
    results = open_results(path)
    if chunks is None:
        return dataset(results, str(path), partial=partial)
    if not (isinstance(chunks, str) and chunks == "store" or isinstance(chunks, Mapping)):
        remedy = 'use chunks="store", or sizes such as {"seed": 1000}'
        refuse("chunks", chunks, '"store", sizes by dimension, or None', remedy)
    try:
        import dask.array  # noqa: F401
    except ImportError:
        remedy = 'pip install "fmab_jax[dask]"'
        refuse("chunks", chunks, "left out where Dask is not installed", remedy)
    sizes = {} if isinstance(chunks, str) else chunks
    return dataset(results, str(path), partial=partial, chunks=sizes)


def read(path: str | os.PathLike[str], *, partial: bool = False) -> xr.Dataset:
    """Reads a sweep's folder, or a .nc file of `save`, `export` or ``fmab run``."""
    path = checked_path("path", path)
    if os.path.isdir(path):
        return open_sweep(path, partial=partial)
    if path.suffix == ".nc":
        return netcdf.load(path)
    refuse("path", str(path), "a folder of results or a .nc file", "check the path")


def dataset(
    results: Results,
    where: str,
    *,
    partial: bool = False,
    chunks: Mapping[str, int] | None = None,
) -> xr.Dataset:
    """Labels a study's results; arguments as in `open_sweep`, with {} for the store's chunks."""
    grid = Grid(results.header)
    # Of a complete cell, all that are wanted are there.
    stops = {cell: results.seeds(cell, results.judged(cell)[0]) for cell in grid.hashes}
    missing = sum(results.missing(cell) for cell in stops)
    if missing and not partial:
        allowed = f"finished; at least {missing:,} trials are missing"
        refuse("store", where, allowed, "resume it, or open it with partial=True")
    if results.curves:
        data = _curves(results, grid, stops, complete=not missing, chunks=chunks)
    else:
        data = summaries(results, grid, stops)
    for name in SHARED:
        dims, values = grid.reduced(name)
        # A swept parameter already names its own dimension, and so do algorithms that differ.
        if dims and name not in ("algorithm", "title", *grid.dims):
            data.coords[name] = (dims, values)
    data.attrs = grid.attrs(results.made_by(stops))
    return data


def _curves(
    results: Results,
    grid: Grid,
    stops: Mapping[str, int],
    *,
    complete: bool,
    chunks: Mapping[str, int] | None,
) -> xr.Dataset:
    stop = max(stops.values())
    points, time = grid.time()
    sizes = {} if chunks is None else chunk_sizes(results, grid, stops, points, chunks)

    def lazy(output: Output) -> xr.Variable:
        boolean = output.dtype is np.bool_
        kind = output.dtype if complete or boolean else np.float64
        array = indexing.LazilyIndexedArray(Lazy(results, grid, output, stop, points, kind))
        variable = xr.Variable([*grid.dims, "seed", *output.dims], array, output.attrs)
        if chunks is None:
            return variable
        return variable.chunk(sizes, from_array_kwargs={"name": False, "fancy": False})

    every = (*USUAL, *results.outputs)
    variables: dict[str, Any] = {output.name: lazy(output) for output in every}
    events = {output.name: variables.pop(output.name) for output in every if output.coordinate}
    variables["seeds"] = (grid.dims, grid.table([stops[cell] for cell in grid.hashes]))
    coords = {**grid.coordinates(), "seed": ("seed", np.arange(stop)), **time}
    coords |= schema.index_coordinates(every, grid.sizes(points))
    return xr.Dataset(variables, {**coords, **schema.meter_coordinates(grid.meters), **events})
