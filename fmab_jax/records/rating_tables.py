"""Tables of observed ratings, read by pandas: texts, joined columns, numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fmab_jax import tables
from fmab_jax.errors import Refusal, describe_error, did_you_mean, refuse
from fmab_jax.files import check_path

# Texts of missing ratings.
_MISSING = frozenset(("na", "n/a", "nan", "null", "none", "-"))
# From here on floats do not tell whole numbers apart, by bytes of a float.
_LARGEST_WHOLE = {4: 2.0**24, 8: 2.0**53}


class RatingTable(NamedTuple):
    """A table of texts."""

    name: str  # in messages
    columns: list[str]  # all columns of the file
    cells: pd.DataFrame  # selected columns, of categories: stripped texts, none empty


def join_tables(
    path: object, sources: Mapping[str, object], names: Sequence[object]
) -> tuple[RatingTable, list[str]]:
    """Joins columns of other tables to the ratings; returns the table, and notes on them."""
    sides = {kind: _read(kind, source) for kind, source in sources.items() if source is not None}
    texts = {name for name in names if isinstance(name, str)}
    table = _read("path", path, texts.union(*(side.columns for side in sides.values())))
    cells, notes = table.cells, list[str]()
    available = [*table.columns, *(name for side in sides.values() for name in side.columns)]
    for kind, side in sides.items():
        shared = [column for column in side.columns if column in cells]
        if len(shared) != 1:
            text = " and ".join(key[:20] for key in shared[:4]) or "none"
            allowed = f"a table that shares one column with {table.name}, not {text}"
            refuse(kind, side.name, allowed, "rename or drop columns")
        key = shared[0]
        for name in [name for name in sorted(texts) if name in side.cells and name != key]:
            pairs = side.cells[[key, name]].dropna(subset=[key]).astype(object).drop_duplicates()
            if (twice := pairs[key].duplicated()).any():
                location = f"{side.name}, {key} {pairs[key][twice].iloc[0][:40]}"
                refuse(kind, location, f"one {name} for each {key}", "drop one of the two rows")
            cells[name] = cells[key].map(pairs.set_index(key)[name]).astype("category")
            notes.insert(0, f"{name} from {side.name}")
    for option, label in zip(("agent", "arm", "value"), names, strict=True):
        if not isinstance(label, str) or label not in cells:
            more = ", ..." * (len(available) > 12)
            text = ", ".join(column[:20] for column in available[:12]) + more
            remedy = did_you_mean(label, available, "give the name of one")
            refuse(option, label, f"a column of {table.name}: {text}", remedy)
    return table, notes


def _read(field: str, source: object, names: Collection[str] = ()) -> RatingTable:
    """Reads a data frame or a file: the columns with these names, or all."""
    name = "a data frame"
    try:
        if not isinstance(frame := source, pd.DataFrame):
            file = check_path(field, source)
            name = file.name
            if not file.is_file():
                refuse(field, str(file), "a readable file", "check the path")
            frame = _read_file(file, names)
        columns = pd.Index([str(column).strip() for column in frame.columns])
        if columns.has_duplicates:
            remedy = f"rename one {columns[columns.duplicated()][0]!r}"
            refuse(field, name, "a table with one column of each name", remedy)
        frame = frame.set_axis(columns, axis=1)
        chosen = [column for column in columns if column in names or not names]
        texts = pd.DataFrame({column: _as_texts(frame[column]) for column in chosen})
        return RatingTable(name, list(columns), texts)
    except ImportError:
        remedy = 'pip install "fmab_jax[export]", or save the table as CSV'
        refuse(field, name, "no .parquet file, since pyarrow is not installed", remedy)
    except Refusal:
        raise
    except pd.errors.EmptyDataError:
        remedy = "the file is empty: write a line of names and a row for each rating"
        refuse(field, name, "a table with ratings", remedy)
    except Exception as error:  # pandas and pyarrow report damaged files by many types
        remedy = f"save it again ({describe_error(error)})"
        refuse(field, name, "a table of texts, numbers and dates", remedy)


def _read_file(file: Path, names: Collection[str]) -> pd.DataFrame:
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending == ".parquet":
        # Nullable types keep whole numbers whole where cells are missing.
        return pd.read_parquet(file, dtype_backend="numpy_nullable")
    form: dict[str, object] = {"sep": "\t" if ending == ".tsv" else ",", "keep_default_na": False}
    # pandas would rename the second column of one name.
    head = pd.read_csv(file, header=None, nrows=1, dtype=str, **form).iloc[0].str.strip()
    # Other columns, such as a time, may have a million different texts.
    texts = {place: str for place, name in enumerate(head) if name in names or not names}
    frame = pd.read_csv(file, header=0, names=range(len(head)), dtype=texts, **form)
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError("rows have more cells than the header")
    return frame.set_axis(head, axis=1)


def _as_texts(cells: pd.Series) -> pd.Categorical:
    """Returns cells as stripped texts; empty ones are missing."""
    codes, values = pd.factorize(cells)
    values = pd.Series(values)
    values = values.where(values == values)  # nullable types have NaN beside missing cells
    if pd.api.types.is_float_dtype(values):
        if (values.abs() >= _LARGEST_WHOLE[values.dtype.itemsize]).any():
            raise ValueError("large floats stand for several whole numbers: store them as such")
        if (values % 1 == 0).all():
            values = values.astype("Int64")  # in a column with gaps 7.0 is agent 7
    texts = values.astype("string").str.strip().replace("", pd.NA)
    places, labels = pd.factorize(texts)
    return pd.Categorical.from_codes(np.append(places, -1)[codes], labels)


def parse_ratings(source: str, cells: pd.Categorical) -> np.ndarray:
    """Returns [row] ratings; NaN for missing ones."""
    numbers = []
    for code, text in enumerate(cells.categories):
        number = math.nan if text.lower() in _MISSING else tables.plain_number(text)
        if number is None:
            row = int((cells.codes == code).argmax()) + 1
            remedy = "mend it, or leave it empty; decimals stand after a point"
            refuse("value", f"{source}, row {row:,}, {text[:30]!r}", "a number", remedy)
        numbers.append(number + 0.0)
    return np.array([*numbers, math.nan])[cells.codes]
