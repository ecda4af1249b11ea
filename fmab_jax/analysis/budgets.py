"""Reads what single runs spend: priced links, numbers and bits, with quantile and maximum."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Num

BUDGETS: tuple[str, ...] = ("links", "numbers", "bits")
"""What a run spends, and what a plan has budgets of."""

SHARE = 0.95
"""Share of runs that the columns ``_p95`` are about."""

_ENDS = ("", "_p95", "_max")
COLUMNS: tuple[str, ...] = tuple(f"{name}{end}" for name in BUDGETS for end in _ENDS)
"""Columns of tables: mean, 95 % quantile and maximum of every budget."""


def is_priced(data: xr.Dataset) -> Bool[np.ndarray, " meter"]:
    """Returns which meters the cost counts: those of the server, and the priced ones of peers."""
    return np.asarray(data.priced.values | (data.side.values == "server"), bool)


def read_spending(data: xr.Dataset) -> dict[str, Float[np.ndarray, " seed"]]:
    """Returns what each seed has spent at T: priced links, numbers and bits, if the result says.

    Args:
        data: Curves of one configuration, of seeds that are computed.
    """
    runs = {}
    if "links" in data:
        last = data.links.isel(time=-1, missing_dims="ignore").transpose("seed", "meter")
        runs["links"] = np.asarray(last, np.float64)[:, is_priced(data)].sum(axis=1)
    if "numbers_sent" in data:
        runs["numbers"] = np.asarray(data.numbers_sent, np.float64)
        if np.isfinite(bits := read_number_bits(data)):
            runs["bits"] = runs["numbers"] * bits
    return runs


def read_number_bits(data: xr.Dataset) -> float:
    """Returns the bits of a number of one configuration; NaN where the result does not say."""
    values = np.unique(data.number_bits.values if "number_bits" in data else [])
    return float(values[0]) if len(values) == 1 else math.nan


def find_tail(
    values: Num[np.ndarray, " value"], counts: Num[np.ndarray, " value"] | None = None
) -> tuple[float, float]:
    """Returns the 95 % quantile, which is the value of a run, and the largest value.

    Args:
        values: Of runs; in ascending order if there are counts.
        counts: How many runs have each value; by default one.
    """
    if counts is None:
        return float(np.quantile(values, SHARE, method="higher")), float(np.max(values))
    rank = math.ceil(SHARE * (int(counts.sum()) - 1))
    return float(values[np.searchsorted(counts.cumsum(), rank, "right")]), float(
        values[counts > 0].max()
    )


def list_columns(data: xr.Dataset) -> list[str]:
    """Returns those of `COLUMNS` that results can fill, except the names of swept parameters.

    Summaries of older versions have the mean of the numbers alone, older results have no bits.
    """
    stated = ["links"]
    if "links" in data or ("rounds_histogram" in data and "counted" not in data.coords):
        stated += ["links_p95", "links_max"]
    ends = [
        end
        for end, name in zip(_ENDS, ("_mean", "_p95", "_max"), strict=True)
        if "numbers_sent" in data or f"numbers_sent{name}" in data
    ]
    for name in ["numbers"] + ["bits"] * ("number_bits" in data):
        stated += [f"{name}{end}" for end in ends]
    return [name for name in stated if name not in data.coords]


def summarise_runs(data: xr.Dataset) -> dict[str, float]:
    """Returns mean, 95 % quantile and maximum of what the runs spend, by `COLUMNS`.

    Args:
        data: Curves or a summary of one configuration, of seeds that are computed.
    """
    row: dict[str, float] = {}
    if "regret" in data:
        for name, values in read_spending(data).items():
            row[name] = float(values.mean())
            row[f"{name}_p95"], row[f"{name}_max"] = find_tail(values)
        return row
    row["links"] = float(data.links_mean.isel(time=-1).values[is_priced(data)].sum())
    # Where messages are counted one by one, rounds do not tell the links of a run.
    if "rounds_histogram" in data and "counted" not in data.coords:
        rounds, seeds = data.made.values, data.rounds_histogram.values
        # Every round of a configuration builds the same links.
        total = float(rounds @ seeds)
        links = round(row["links"] * int(seeds.sum()) / total) if total else 0
        row["links_p95"], row["links_max"] = (links * end for end in find_tail(rounds, seeds))
    bits = read_number_bits(data)
    for end, name in zip(_ENDS, ("_mean", "_p95", "_max"), strict=True):
        if f"numbers_sent{name}" in data:
            row[f"numbers{end}"] = float(data[f"numbers_sent{name}"])
            row[f"bits{end}"] = row[f"numbers{end}"] * bits
    return row
