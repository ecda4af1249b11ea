"""Reads the rows of a table of final values, by the names of their columns; sorts and filters."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from fmab_jax.analysis import budgets, costs
from fmab_jax.analysis.tables import add_leaks, final_table, list_scalar_outputs
from fmab_jax.analysis.words import is_number
from fmab_jax.errors import did_you_mean, parse_number, refuse
from fmab_jax.parameters import VIEWS
from fmab_jax.sampling.shapes import Record

# Short names of columns, besides the swept parameters.
_SHORT = {"regret": "regret", "rounds": "rounds_made", "cost": "cost", "seeds": "seeds"}
_SHORT |= {"lost": "best_arm_lost", "worse": "worse_arm_played", "leak": "leak_messages"}
# Where means change, no arm is lost.
LOST = _SHORT["lost"]
EVENT_COLUMNS = (
    ("lost", "best arm lost", LOST),
    ("worse", "worse arm played", _SHORT["worse"]),
)
LEAKS_BY_NAME = tuple(f"leak_{view}" for view in VIEWS[1:])
"""Columns that a table has where they are named."""
_CONDITION = re.compile(r"\s*([\w.-]+)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*", re.ASCII)
_TESTS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def add_named_leaks(table: xr.Dataset, texts: Iterable[object]) -> xr.Dataset:
    """Returns a table with the leaks of the views that arguments of `overview` name."""
    values = [x for text in texts for x in (text if isinstance(text, (list, tuple)) else [text])]
    named = " ".join(value for value in values if isinstance(value, str))
    return add_leaks(table, [view for view in VIEWS[1:] if f"leak_{view}" in named])


def iterate_rows(table: xr.Dataset, data: xr.Dataset) -> Iterator[Record]:
    """Yields the final values of each configuration by name; ``exposure`` is a `costs.Cost`."""
    dims = [str(name) for name in table.seeds.dims]
    scalars = [str(name) for name, array in table.data_vars.items() if "meter" not in array.dims]
    spent = [name for name in budgets.COLUMNS if name in scalars]
    message = None if "epsilon_message" in dims else data.coords.get("epsilon_message")
    for place in np.ndindex(table.seeds.shape):
        at = dict(zip(dims, place, strict=True))
        cell = table.isel(at)
        row = {name: cell[name].item() for name in (*dims, *(n for n in scalars if n not in spent))}
        row["exposure"] = costs.read_exposure(cell)
        row["leak_view"] = row["exposure"].observation
        if message is not None:
            row["epsilon_message"] = message.isel(at, missing_dims="ignore").item()
        links = zip(table.meter.values.tolist(), cell.links.values.tolist(), strict=True)
        row |= {f"links_{meter}": number for meter, number in links}
        row["links"] = float(cell.links.values[budgets.is_priced(cell)].sum())
        yield row | {name: cell[name].item() for name in spent}


def select_rows(
    rows: Sequence[Record],
    table: xr.Dataset,
    data: xr.Dataset,
    *,
    sort: str | None = None,
    descending: bool = False,
    where: Sequence[str] | str = (),
) -> list[Record]:
    """Returns the rows that fulfil all conditions, in an order; arguments as in `overview`.

    Args:
        rows: Of `iterate_rows`.
        table: Their `final_table`.
        data: Its results.
        sort: Name of a column.
        descending: Largest first.
        where: Conditions.
    """
    keys, names = _name_columns(table, data)
    selected = list(rows)
    if sort is not None:
        key = find_key("sort", sort, sort, keys, names)
        # NaN, where there are less than two seeds, has no place in an order: it comes last.
        finite_rows = [row for row in selected if row[key] == row[key]]
        nan_rows = [row for row in selected if row[key] != row[key]]
        finite_rows.sort(key=lambda row: (isinstance(row[key], str), row[key]), reverse=descending)
        selected = finite_rows + nan_rows
    texts = {str(n) for n in table.seeds.dims if not any(map(is_number, table[n].values.tolist()))}
    keys, names = {n: keys[n] for n in keys if n not in texts}, [n for n in names if n not in texts]
    for text in check_list("where", [where] if isinstance(where, str) else where):
        for part in text.split(",") if isinstance(text, str) else [""]:
            fulfils = _parse_condition(part, text, keys, names)
            selected = [row for row in selected if fulfils(row)]
    return selected


def find_places(data: xr.Dataset, where: Sequence[str] | str) -> list[tuple[int, ...]]:
    """Returns the indices of the configurations that fulfil all conditions.

    Args:
        data: Results with ``seeds`` over the swept parameters.
        where: As in `overview`.
    """
    table = add_named_leaks(final_table(data), [where])
    places = np.ndindex(table.seeds.shape)
    rows = [
        {**row, "place": place}
        for place, row in zip(places, iterate_rows(table, data), strict=True)
        if row["seeds"]
    ]
    return [row["place"] for row in select_rows(rows, table, data, where=where)]


def _name_columns(table: xr.Dataset, data: xr.Dataset) -> tuple[dict[str, str], list[str]]:
    """Returns the keys of rows by the names of columns, and the names that a refusal lists."""
    dims = [str(name) for name in table.seeds.dims]
    scalars = [str(name) for name, array in table.data_vars.items() if "meter" not in array.dims]
    keys = {name: key for name, key in _SHORT.items() if key != LOST or key in table}
    keys |= {f"links_{meter}": f"links_{meter}" for meter in table.meter.values.tolist()}
    keys |= {name: name for name in budgets.COLUMNS if name == "links" or name in scalars}
    keys |= {name: name for name in list_scalar_outputs(data)}
    # A swept round budget is called rounds, too; then that name is the budget's.
    keys = {name: name for name in dims} | {n: key for n, key in keys.items() if n not in dims}
    names = [*keys, *(x for x in LEAKS_BY_NAME if x not in keys)]
    # A condition may also be about the other columns of csv, and as version 0.3 called one.
    return {name: name for name in scalars} | {"leak_epsilon": _SHORT["leak"]} | keys, names


def _parse_condition(
    part: str, text: object, keys: Mapping[str, str], names: Sequence[str]
) -> Callable[[Record], bool]:
    """Returns the predicate of a part of a text; an unknown value fulfils no condition."""
    match = _CONDITION.fullmatch(part)
    bound = parse_number(match[3]) if match else None
    if match is None or bound is None or bound != bound:
        remedy = "write a column, one of <= >= < > == !=, and a number"
        allowed = f"a condition such as links<=500, about one of {', '.join(names)}"
        refuse("where", text, allowed, remedy)
    key, test = find_key("where", text, match[1], keys, names), _TESTS[match[2]]

    def fulfils(row: Record) -> bool:
        value = row[key]
        if not isinstance(value, (int, float)) or value != value:
            return False
        # A leak of 1 may be stored as 0.99999999999999, since epsilon is solved for.
        return bool(test(bound if math.isclose(value, bound) else value, bound))

    return fulfils


def check_list(field: str, values: object) -> Sequence[object]:
    """Returns a list or tuple; refuses anything else."""
    if not isinstance(values, (list, tuple)):
        refuse(field, values, "a list of texts", "write it in brackets, each in quotes")
    return values


def find_key(
    field: str,
    value: object,
    name: object,
    keys: Mapping[str, str],
    names: Sequence[str] | None = None,
) -> str:
    """Returns the key of a column in a row, by the name of the column.

    Args:
        field: The argument, for a refusal.
        value: Its value.
        name: The name of the column.
        keys: All keys by name.
        names: The names that a refusal lists; by default all.
    """
    if not isinstance(name, str) or name not in keys:
        listed = [*keys] if names is None else names
        refuse(
            field,
            value,
            f"about one of {', '.join(listed)}",
            did_you_mean(name, listed, "choose a column"),
        )
    return keys[name]
