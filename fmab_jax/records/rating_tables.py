"""Tables of observed ratings, read by pandas: texts, joined columns, numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fmab_jax import tables
from fmab_jax.errors import Refusal, describe_error, did_you_mean, refuse
from fmab_jax.files import check_path

# Texts of missing ratings.
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))


class RatingTable(NamedTuple):
    """A table of texts."""

    name: str  # in messages
    columns: list[str]  # all columns of the file
    cells: pd.DataFrame  # selected columns: stripped texts, none empty


def join_tables(
    path: object, sources: Mapping[str, object], names: Sequence[object]
) -> tuple[RatingTable, list[str]]:
    """Joins columns of other tables to the ratings; returns the table, and notes on them."""
    side_tables = {
        kind: _read(kind, source) for kind, source in sources.items() if source is not None
    }
    requested = {name for name in names if isinstance(name, str)}
    table = _read("path", path, requested.union(*(side.columns for side in side_tables.values())))
    available, notes = list(table.columns), list[str]()
    for kind, side in side_tables.items():
        shared = [column for column in side.columns if column in table.columns]
        if len(shared) != 1:
            text = " and ".join(key[:20] for key in shared[:4]) or "none"
            allowed = f"a table that shares one column with {table.name}, not {text}"
            refuse(kind, side.name, allowed, "rename or drop columns")
        key = shared[0]
        rows = table.cells[key].cat
        for name in requested & {*side.columns} - {key}:
            labels = side.cells[[key, name]].dropna(subset=key).drop_duplicates().set_index(key)
            if not labels.index.is_unique:
                duplicate = labels.index[labels.index.duplicated()][0]
                location = f"{side.name}, {key} {duplicate[:40]}"
                refuse(kind, location, f"one {name} for each {key}", "drop one of the two rows")
            joined = labels[name].astype(object).reindex(rows.categories)
            table.cells[name] = _relabel(rows.codes, joined.where(joined.notna(), None))
            notes.insert(0, f"{name} from {side.name}")
        available += side.columns
    for option, label in zip(("agent", "arm", "value"), names, strict=True):
        if not isinstance(label, str) or label not in table.cells:
            text = ", ".join(column[:20] for column in available[:12]) + ", ..." * (
                len(available) > 12
            )
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
        frame = frame.rename(columns=lambda column: str(column).strip())
        columns = list(frame.columns)
        duplicates = frame.columns[frame.columns.duplicated()]
        if len(duplicates):
            refuse(
                field, name, "a table with one column of each name", f"rename one {duplicates[0]!r}"
            )
        selected = [column for column in columns if column in names or not names]
        texts = pd.DataFrame({column: _as_texts(frame[column]) for column in selected})
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
    return RatingTable(name, columns, texts)


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
    if cells.dtype == object and pd.api.types.infer_dtype(cells) != "string":
        cells = cells.map(_text_of, na_action="ignore")  # True and 1 are equal
    codes, values = pd.factorize(cells)
    if values.dtype.kind == "f":
        # NumPy's floats know how many digits they have.
        values = np.asarray(values, getattr(values.dtype, "numpy_dtype", None))
    return _relabel(codes, map(_text_of, values))


def _relabel(codes: np.ndarray | pd.Series, texts: Iterable[str | None]) -> pd.Categorical:
    """Returns [row] labels; texts may repeat; an empty text or a code of -1 is missing."""
    places, labels = pd.factorize(np.array([text or None for text in texts], object))
    return pd.Categorical.from_codes(np.append(places, -1)[codes], labels)


def _text_of(cell: object) -> str:
    if not isinstance(cell, (float, np.floating)):
        return str(cell).strip()
    if 2.0 ** (np.finfo(type(cell)).nmant + 1) <= abs(float(cell)) < math.inf:
        raise ValueError(f"{cell} stands for several whole numbers: store them as such")
    return np.format_float_positional(cell, trim="-")


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
