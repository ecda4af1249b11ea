"""Results for other tools: netCDF with all dimensions, CSV and Parquet as tidy tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.costs import LEAKS, read_exposure
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
    parameters, the leaks as in `table` with ``leak_view``, what is seen, ``seed``,
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
        labels: Record = {name: data.attrs[name] for name in _CONFIG_COLUMNS if name in data.attrs}
        labels |= {name: cell[name].item() for name in dims}
        leaks: Record = {name: float(cell[name]) for name in LEAKS if name in cell}
        # A swept parameter may have the name of a leak.
        leaks |= {"leak_view": read_exposure(cell).observation}
        labels |= {name: value for name, value in leaks.items() if name not in labels}
        if "seed" in cell.dims and "seeds" in cell:
            cell = cell.isel(seed=slice(int(cell.seeds)))
        rows = [dim for dim in ("seed", "time") if dim in cell.dims]
        cell = _flatten_variables(cell.drop_vars("ledger", errors="ignore"), rows)
        names = [n for n, v in cell.variables.items() if {*v.dims} <= {*rows} and n not in rows]
        frame = cell[names].to_dataframe(dim_order=rows).reset_index()
        frame = frame.drop(columns=[*labels], errors="ignore")
        yield frame.assign(**labels)[[*labels, *frame]]


def _flatten_variables(cell: xr.Dataset, rows: Sequence[str]) -> xr.Dataset:
    """Adds a variable over ``rows`` for each meter, and for each value of a reduction."""
    if "regret_covariance" in cell:
        variances = np.diagonal(cell.regret_covariance.values).copy()
        cell = cell.assign(regret_variance=("time", variances))
    for name, values in list(cell.data_vars.items()):
        dims = [str(dim) for dim in values.dims if dim not in rows]
        if not OF_RESULTS.intersection(dims) - {"meter"}:
            for place in np.ndindex(*(values.sizes[dim] for dim in dims)) if dims else ():
                at = dict(zip(dims, place, strict=True))
                labels = {dim: values[dim].values[i].item() for dim, i in at.items()}
                words = (x if dim == "meter" else f"{dim}_{x:g}" for dim, x in labels.items())
                cell[f"{name}_{'_'.join(words)}"] = values.isel(at, drop=True)
    return cell


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
