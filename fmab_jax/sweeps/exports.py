"""Results for other tools: netCDF and Zarr with all dimensions, CSV and Parquet as tidy tables."""

from __future__ import annotations

import csv
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from fmab_jax.analysis.costs import exposure_of
from fmab_jax.analysis.tables import held
from fmab_jax.core.outputs import OF_RESULTS
from fmab_jax.errors import flag, refuse
from fmab_jax.files import (
    aside,
    checked_path,
    mark_write,
    naming,
    refuse_taken,
    remove,
    remove_abandoned,
    temporary_beside,
    whole_file,
)
from fmab_jax.run.netcdf import save

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table besides the swept parameters, where all rows have the same.
_WHAT = ("algorithm", "agents", "arms", "horizon", "epsilon")


def export(data: xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Writes the results of `simulate` or `sweep` into a file, whole or not at all.

    netCDF and Zarr keep every variable with its dimensions; in Zarr labels of mixed kinds, such as
    "none" beside numbers, become texts. CSV and Parquet hold a row for each configuration, seed and
    slot: the algorithm, agents, arms, horizon and epsilon, the swept parameters, ``leak_epsilon``
    as in `final_table` with ``leak_view``, what is seen, ``seed``, ``time`` and the series, with
    per-seed values repeated in each row; of a summary, a row for each configuration and slot with
    means, variances and counts. Both are written a configuration at a time. Floats in CSV read back
    to the same bits.

    Args:
        data: The results.
        path: Ends in .nc, .zarr, .csv or .parquet.
        overwrite: Whether a file of that name, or a Zarr folder, may be replaced.

    Returns:
        The path written.

    Raises:
        ValueError: For another ending, a name that is taken, or a missing package (zarr, pyarrow).
        OSError: If it cannot be written.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> path = fmab.export(data, tempfile.mkdtemp() + "/run.csv")
        >>> len(path.read_text().splitlines())  # a header, and a line for each seed and slot
        2001
    """
    path = checked_path("path", path)
    flag("overwrite", overwrite)
    if not isinstance(data, xr.Dataset) or not {"regret", "regret_mean"} & set(data):
        refuse("data", data, "a result of simulate or sweep", "pass it unchanged")
    ending = path.suffix
    if ending != ".nc" and ending not in _WRITERS:
        allowed = "a name ending in " + ", ".join([".nc", *_WRITERS])
        refuse("path", str(path), allowed, "the ending chooses the format")
    if ending != ".zarr" or not (overwrite and (path / "zarr.json").is_file()):
        refuse_taken(path, overwrite)
    if ending == ".nc":
        return save(data, path, overwrite=overwrite)
    _WRITERS[ending](data, path)
    return path


def tidy(data: xr.Dataset) -> Iterator[pd.DataFrame]:
    """Yields the tidy table of `export`, a configuration at a time."""
    data = held(data)
    dims = list(data.seeds.dims) if "seeds" in data else []
    sizes = [data.sizes[name] for name in dims]
    for place in np.ndindex(*sizes):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        labels = {name: data.attrs[name] for name in _WHAT if name in data.attrs}
        labels |= {name: cell[name].item() for name in dims}
        exposure = exposure_of(cell)
        labels |= {"leak_epsilon": exposure.leak, "leak_view": exposure.view} | labels
        if "seed" in cell.dims:
            seeds = int(cell.seeds) if "seeds" in cell else cell.sizes["seed"]
            cell = cell.isel(seed=slice(seeds))
        over = [dim for dim in ("seed", "time") if dim in cell.dims]
        if "regret_covariance" in cell:
            variances = np.diagonal(cell.regret_covariance.values).copy()
            cell = cell.assign(regret_variance=("time", variances))
        # One column for each meter.
        for name in [n for n, v in cell.data_vars.items() if "meter" in v.dims]:
            for number, meter in enumerate(cell.meter.values):
                cell[f"{name}_{meter}"] = cell[name].isel(meter=number, drop=True)
        # One column for each value of a reduction.
        for name, values in list(cell.data_vars.items()):
            if values.dims and not OF_RESULTS.intersection(map(str, values.dims)):
                for place_ in np.ndindex(*values.shape):
                    value = values[place_]
                    at = "_".join(f"{dim}_{value[dim].item():g}" for dim in values.dims)
                    cell[f"{name}_{at}"] = ((), value.item())
        keep = [n for n, v in cell.variables.items() if set(v.dims) <= set(over) and n not in dims]
        frame = cell[[n for n in keep if n not in cell.dims]].to_dataframe(dim_order=over)
        frame = frame.reset_index().drop(columns=[*labels], errors="ignore")
        for position, (name, label) in enumerate(labels.items()):
            frame.insert(position, name, [label] * len(frame))
        yield frame


def csv_bytes(data: xr.Dataset) -> int:
    """Returns about how many bytes the CSV of `export` takes, after its first rows."""
    dims = list(data.seeds.dims) if "seeds" in data else []
    first = {"seed": slice(2)} if "seed" in data.dims else {}
    some = data.isel({name: [0] for name in dims} | first)
    if "seeds" in some:
        some = some.assign(seeds=some.seeds.clip(max=2))
    lines = [frame.to_csv(header=False, index=False) for frame in tidy(some)]
    rows = sum(text.count("\n") for text in lines)
    if "seed" not in data.dims:
        number = data.sizes["time"] * int(np.prod([data.sizes[name] for name in dims]))
    else:
        seeds = int(data.seeds.sum()) if "seeds" in data else data.sizes["seed"]
        number = data.sizes["time"] * seeds
    return round(sum(map(len, lines)) / max(1, rows) * number)


def _zarr(data: xr.Dataset, path: Path) -> None:
    _needed("zarr", path)
    # Files have no arrays of mixed kinds.
    mixed = {n: c.astype(str) for n, c in data.coords.items() if c.dtype == object}
    data = data.assign_coords(mixed)
    remove_abandoned(path)
    temporary, old = temporary_beside(path), aside(path)
    with mark_write(), naming(path, temporary):
        try:
            with warnings.catch_warnings():
                # Zarr warns of any text that its third version has not standardised yet.
                warnings.filterwarnings("ignore", "The data type .* does not have a Zarr V3 spec")
                # Consolidated metadata is not part of the format's third version.
                data.to_zarr(temporary, mode="w-", consolidated=False)
            taken = os.path.lexists(path)
            if taken:
                os.rename(path, old)  # No folder can be put in place of another that is full.
            try:
                os.replace(temporary, path)
            except BaseException:
                if taken:
                    os.rename(old, path)
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if os.path.lexists(path):
                remove(old)
    remove_abandoned(path, replaced=True)


def _csv(data: xr.Dataset, path: Path) -> None:
    with whole_file(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        for number, frame in enumerate(tidy(data)):
            frame.to_csv(
                file, index=False, header=not number, lineterminator="\n", quoting=csv.QUOTE_MINIMAL
            )


def _parquet(data: xr.Dataset, path: Path) -> None:
    _needed("pyarrow", path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    mixed = [name for name, coord in data.coords.items() if coord.dtype == object]
    writer: Any = None
    with whole_file(path) as temporary:
        try:
            for frame in tidy(data):
                frame = frame.astype({name: str for name in mixed if name in frame})
                table = pa.Table.from_pandas(frame, preserve_index=False)
                if writer is None:
                    writer = pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()


_WRITERS = {".zarr": _zarr, ".csv": _csv, ".parquet": _parquet}


def _needed(package: str, path: Path) -> None:
    try:
        __import__(package)
    except ImportError:
        allowed = f"a .nc or .csv file, since {package} is not installed"
        remedy = 'pip install "fmab_jax[export]", or choose .nc or .csv'
        refuse("path", str(path), allowed, remedy)
