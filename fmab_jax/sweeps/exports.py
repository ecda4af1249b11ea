"""Results for other tools: netCDF with all dimensions, CSV and Parquet as tidy tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from fmab_jax.analysis.costs import LEAKS, read_exposure
from fmab_jax.analysis.tables import check_result
from fmab_jax.errors import flag, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.parts.outputs import OF_RESULTS
from fmab_jax.run.netcdf import save
from fmab_jax.sampling.shapes import Record

if TYPE_CHECKING:
    import pandas as pd

# Columns of a table that hold one value of the whole result.
_CONFIG_COLUMNS = ("algorithm", "agents", "arms", "horizon", "epsilon")


def export(data: xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Writes the results of `simulate` or `sweep` into a file, whole or not at all.

    netCDF keeps every variable with its dimensions. CSV and Parquet hold a row for each
    configuration, seed and slot: the algorithm, agents, arms, horizon and epsilon, the swept
    parameters, the leaks as in `final_table` with ``leak_view``, what is seen, ``seed``,
    ``time`` and the series, with per-seed values repeated in each row; of a summary, a row for each
    configuration and slot with means, variances and counts. Both are written a configuration at a
    time. Floats in CSV read back to the same bits.

    Args:
        data: The results.
        path: Ends in .nc, .csv or .parquet.
        overwrite: Whether a file of that name may be replaced.

    Returns:
        The path written.

    Raises:
        ValueError: For another ending, a name that is taken, or a missing package (pyarrow).
        OSError: If it cannot be written.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> path = fmab.export(data, tempfile.mkdtemp() + "/run.csv")
        >>> len(path.read_text().splitlines())  # a header, and a line for each seed and slot
        2001
    """
    path = check_path("path", path)
    flag("overwrite", overwrite)
    if not isinstance(data, xr.Dataset) or not {"regret", "regret_mean"} & set(data):
        refuse("data", data, "a result of simulate or sweep", "pass it unchanged")
    ending = path.suffix
    if ending != ".nc" and ending not in _WRITERS:
        allowed = "a name ending in " + ", ".join([".nc", *_WRITERS])
        refuse("path", str(path), allowed, "the ending chooses the format")
    refuse_taken(path, overwrite)
    if ending == ".nc":
        return save(data, path, overwrite=overwrite)
    _WRITERS[ending](data, path)
    return path


def tidy_tables(data: xr.Dataset) -> Iterator[pd.DataFrame]:
    """Yields the tidy table of `export`, one configuration at a time."""
    data = check_result(data)
    dims = list(data.seeds.dims) if "seeds" in data else []
    for place in np.ndindex(*(data.sizes[name] for name in dims)):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        labels = {name: data.attrs[name] for name in _CONFIG_COLUMNS if name in data.attrs}
        labels |= {name: cell[name].item() for name in dims}
        leaks: Record = {name: float(cell[name]) for name in LEAKS if name in cell}
        leaks["leak_view"] = read_exposure(cell).observation
        # A swept parameter may have the name of a leak.
        labels |= {name: value for name, value in leaks.items() if name not in labels}
        cell = cell.drop_vars("ledger", errors="ignore")
        if "seed" in cell.dims and "seeds" in cell:
            cell = cell.isel(seed=slice(int(cell.seeds)))
        row_dims = [dim for dim in ("seed", "time") if dim in cell.dims]
        if "regret_covariance" in cell:
            variances = np.diagonal(cell.regret_covariance.values).copy()
            cell = cell.assign(regret_variance=("time", variances))
        for name, values in list(cell.data_vars.items()):
            # One column for each meter, and for each value of a reduction.
            if "meter" in values.dims:
                for number, meter in enumerate(cell.meter.values):
                    cell[f"{name}_{meter}"] = values.isel(meter=number, drop=True)
            elif values.dims and not OF_RESULTS.intersection(map(str, values.dims)):
                for index in np.ndindex(*values.shape):
                    value = values[index]
                    suffix = "_".join(f"{dim}_{value[dim].item():g}" for dim in values.dims)
                    cell[f"{name}_{suffix}"] = ((), value.item())
        columns = [
            n for n, v in cell.variables.items() if set(v.dims) <= set(row_dims) and n not in dims
        ]
        frame = cell[[n for n in columns if n not in cell.dims]].to_dataframe(dim_order=row_dims)
        frame = frame.reset_index().drop(columns=[*labels], errors="ignore")
        for position, (name, label) in enumerate(labels.items()):
            frame.insert(position, name, [label] * len(frame))
        yield frame


def _write_csv(data: xr.Dataset, path: Path) -> None:
    with whole_file(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        for number, frame in enumerate(tidy_tables(data)):
            frame.to_csv(file, index=False, header=not number, lineterminator="\n")


def _write_parquet(data: xr.Dataset, path: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        allowed = "a .nc or .csv file, since pyarrow is not installed"
        remedy = 'pip install "fmab_jax[export]", or choose .nc or .csv'
        refuse("path", str(path), allowed, remedy)

    mixed = [name for name, coord in data.coords.items() if coord.dtype == object]
    writer: pq.ParquetWriter | None = None
    with whole_file(path) as temporary, ExitStack() as stack:
        for frame in tidy_tables(data):
            frame = frame.astype({name: str for name in mixed if name in frame})
            table = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(temporary, table.schema))
            writer.write_table(table.cast(writer.schema))


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}
