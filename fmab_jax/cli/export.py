"""Writes results under a new name, which chooses the format.

netCDF (.nc) has all dimensions; CSV (.csv) and Parquet (.parquet) are one tidy
table, a row for each configuration, seed and slot (of a summary: each
configuration and slot). Parquet needs pip install "fmab_jax[export]".

Examples:
  fmab export runs/eps eps.nc
  fmab export runs/eps eps.csv
  fmab export eps.nc eps.parquet
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.cli.options import Call, option, rename_fields
from fmab_jax.cli.printing import Stored, read_results


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Stored):
    """Results as netCDF, CSV or Parquet."""

    file: str = option(metavar="FILE", word=True)
    """A new name ending in .nc, .csv or .parquet."""
    overwrite: bool = option(False)
    """Replace an older file."""


def execute(call: Call[ExportOptions]) -> None:
    """Writes the results."""
    from fmab_jax.sweeps import exports

    options = call.options
    data = read_results(options.folder, partial=False)
    with rename_fields(path="file"):
        call.files.append(exports.export(data, options.file, overwrite=options.overwrite))
    print("wrote", options.file)
