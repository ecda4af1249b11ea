"""Selects and sorts the rows of a table by conditions, as pandas' ``query`` reads them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.analysis.tables import add_leaks, table
from fmab_jax.errors import describe_error, did_you_mean, refuse
from fmab_jax.parameters import VIEWS


def add_named_leaks(data: xr.Dataset, texts: Iterable[str | None]) -> xr.Dataset:
    """Returns results with the leaks of the views that conditions or columns name."""
    named = " ".join(filter(None, texts))
    views = [view for view in VIEWS[1:] if f"leak_{view}" in named]
    return add_leaks(data, views) if views else data


def select_rows(frame: pd.DataFrame, where: Sequence[str] | str) -> pd.DataFrame:
    """Returns the rows of a table that fulfil conditions.

    Args:
        frame: From `table`.
        where: Conditions such as "links_max <= 400 and leak_messages <= 2". Numbers are compared
            by 12 digits, and ``none`` is infinite: the value of a parameter without a limit.
    """
    # A leak of 1 may be stored as 1.0000000000000002, and 0.3 as 0.30000000000000004.
    values = frame.select_dtypes("float").map(lambda x: float(f"{x:.12g}"))
    values = frame.assign(**{str(name): values[name] for name in values})
    for text in _list_conditions(where):
        try:
            mask = values.eval(
                text, engine="python", local_dict={}, resolvers=({"none": math.inf},)
            )
        except Exception as error:  # pandas' own, and whatever comparing values raises
            allowed = "a condition such as links_max <= 400 and graph == 'ring'"
            remedy = f"name columns of fmab show --format csv ({describe_error(error)})"
            refuse("where", text, allowed, remedy)
        if not isinstance(mask, pd.Series) or mask.dtype != bool:
            remedy = "compare columns, such as epsilon == 1, by == <= >= < > !="
            refuse("where", text, "true or false of a row", remedy)
        frame, values = frame[mask], values[mask]
    return frame


def sort_rows(frame: pd.DataFrame, sort: str | None, descending: bool = False) -> pd.DataFrame:
    """Returns the rows of a table sorted by a column; NaN comes last."""
    if sort is None:
        return frame
    check_columns(frame, "sort", [sort])

    def key(column: pd.Series) -> pd.Series:
        return column.map(str) if column.dtype == object else column

    return frame.sort_values(sort, ascending=not descending, kind="stable", key=key)


def check_columns(frame: pd.DataFrame, field: str, names: Sequence[str]) -> None:
    """Refuses names of columns that a table lacks."""
    if not isinstance(names, (list, tuple)):
        refuse(field, names, "a list of columns", "write it in brackets, each in quotes")
    for name in names:
        if not isinstance(name, str) or name not in frame:
            remedy = did_you_mean(name, frame.columns, "see fmab show --format csv")
            refuse(field, name, "a column of the table", remedy)


def find_places(data: xr.Dataset, where: Sequence[str] | str) -> list[tuple[int, ...]]:
    """Returns the indices of the configurations with seeds that fulfil conditions.

    Args:
        data: Results with ``seeds`` over the swept parameters.
        where: As in `select_rows`.
    """
    frame = select_rows(table(add_named_leaks(data, _list_conditions(where))), where)
    places = [*np.ndindex(data.seeds.shape)]
    return [places[i] for i in frame.index[frame.seeds > 0]]


def _list_conditions(where: Sequence[str] | str) -> Sequence[str]:
    texts = [where] if isinstance(where, str) else where
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        refuse("where", where, "a condition, or a list of them", "write each in quotes")
    return texts
