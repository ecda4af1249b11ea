"""Columns of data frames and of Parquet files, as texts that say what their cells say."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fmab_jax.core import tables
from fmab_jax.errors import Refusal, Shown, reason_of, refuse
from fmab_jax.errors import shown as brief
from fmab_jax.ratings.layouts import Column, Source, legible
from fmab_jax.resources import affordable

CHUNK = 1_000_000
"""Rows of a Parquet file that are read at once."""

_ROUNDED = ("a whole number that is stored as one, since floats of this size are rounded",)
# Types of cells that have only one text.
_PLAIN = (str, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def is_frame(given: Any) -> bool:
    """Tells whether it is a data frame of pandas, which is imported only if it may be one."""
    if type(given).__name__ != "DataFrame":
        return False
    import pandas as pd

    return isinstance(given, pd.DataFrame)


def frame_columns(frame: Any, field: str) -> tuple[str, ...]:
    """Returns the names of a data frame's columns."""
    try:
        names = tuple(map(str, frame.columns))
    except Exception as error:  # names may be any objects
        remedy = f"rename the columns ({reason_of(error)})"
        refuse(field, "a data frame", "a table whose columns have names", remedy)
    tables.refuse_twice("a data frame", names, field)
    return names


def frame_read(source: Source, names: Sequence[str], field: str) -> dict[str, Column]:
    """Reads columns of a data frame."""
    import pandas as pd

    found = {}
    for place, name in enumerate(source.columns):
        if name not in names:
            continue
        cells = source.frame.iloc[:, place]
        codes, values = np.arange(len(cells)), cells
        with contextlib.suppress(Exception):  # of cells that cannot be compared
            # True equals 1, so cells of mixed types are compared one by one.
            if cells.dtype != object or pd.api.types.infer_dtype(cells) == "string":
                codes, values = pd.factorize(cells)
                if isinstance(values.dtype, pd.CategoricalDtype):
                    values = values.astype(values.categories.dtype)
                if values.dtype.kind == "f":
                    # NumPy's floats know how many digits they have.
                    values = values.to_numpy(getattr(values.dtype, "numpy_dtype", None))
        found[name] = Column.of(codes, _texts(values, codes, 0, source, name, field))
    return found


@contextlib.contextmanager
def _opened_parquet(path: Path, field: str) -> Iterator[Any]:
    """Gives an open Parquet file; whatever a damaged one raises becomes a refusal."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        remedy = 'pip install "fmab_jax[export]", or save the table as CSV'
        refuse(field, str(path), "no .parquet file, since pyarrow is not installed", remedy)
    with tables.opened(path, field) as file:
        try:
            yield parquet.ParquetFile(file)
        except Refusal:
            raise
        except Exception as error:
            remedy = f"save it again ({legible(reason_of(error))})"
            refuse(field, str(path), "a Parquet file", remedy)


def parquet_columns(path: Path, field: str) -> tuple[str, ...]:
    """Returns the names of a Parquet file's columns."""
    with _opened_parquet(path, field) as file:
        names = tuple(file.schema_arrow.names)
    tables.refuse_twice(str(path), names, field)
    return names


def parquet_read(source: Source, path: Path, names: Sequence[str], field: str) -> dict[str, Column]:
    """Reads columns of a Parquet file, as Arrow has them: whole numbers with gaps stay whole."""
    known: dict[str, dict[str, int]] = {name: {} for name in names}
    codes: dict[str, list[np.ndarray]] = {name: [np.zeros(0, np.int32)] for name in names}
    rows = 0
    with _opened_parquet(path, field) as file:
        about = file.metadata
        groups = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
        needed = 4.0 * about.num_rows * len(names) + max(groups, default=0)
        affordable("memory", needed, "use a part of the table")
        for batch in file.iter_batches(CHUNK, columns=list(names)):
            for name in names:
                place, values = _encoded(batch.column(name), source, name, field)
                own = known[name]
                texts = _texts(values, place, rows, source, name, field)
                numbers = [own.setdefault(text, len(own)) for text in texts]
                codes[name].append(np.array([*numbers, -1], np.int32)[place])
            rows += batch.num_rows
    return {name: Column.of(np.concatenate(codes[name]), known[name]) for name in names}


def _encoded(cells: Any, source: Source, name: str, field: str) -> tuple[np.ndarray, Iterable[Any]]:
    """Returns [row] places of Arrow's cells, -1 for none, and the distinct cells."""
    import pyarrow as pa

    kinds = pa.types
    allowed = "a column of texts, numbers or dates"
    where = f"{source.shown}, column {name!r}"
    kind = cells.type.value_type if kinds.is_dictionary(cells.type) else cells.type
    single = ("integer", "floating", "decimal", "boolean", "null")
    texts = ("string", "large_string", "string_view", "binary", "large_binary", "date", "time")
    if not any(getattr(kinds, f"is_{each}")(kind) for each in (*single, *texts, "timestamp")):
        refuse(field, where, allowed, f"it is {brief(str(kind))}: save its parts as columns")
    try:
        if kinds.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if not any(getattr(kinds, f"is_{each}")(kind) for each in single):
            cells = cells.cast(pa.string())
        encoded = cells.dictionary_encode()
    except pa.ArrowException as error:
        refuse(field, where, allowed, f"save it as texts ({reason_of(error)})")
    place = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    distinct = encoded.dictionary
    if kinds.is_floating(kind):
        return place, distinct.to_numpy(zero_copy_only=False)
    return place, distinct.to_pylist()


def _texts(
    cells: Iterable[Any], codes: np.ndarray, above: int, source: Source, name: str, field: str
) -> list[str]:
    """Returns cells as texts, "" where one is missing; ``above`` rows are above those of codes."""
    found = []
    for i, cell in enumerate(cells):
        try:
            found.append(_text_of(cell))
        except Exception as error:  # a cell may be any object
            row = above + int((codes == i).argmax()) + 1
            where = Shown(f"{source.shown!r}, row {row:,}, column {brief(name)}")
            allowed = "a text, a number or a date" if error.args != _ROUNDED else _ROUNDED[0]
            refuse(field, where, allowed, f"save it so (it is {brief(cell)})")
    return found


def _text_of(cell: Any) -> str:
    import pandas as pd

    if cell is None or cell is pd.NA or cell is pd.NaT:
        return ""
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell))
    if isinstance(cell, (int, np.integer)):
        return str(int(cell))
    if isinstance(cell, (float, np.floating)):
        # Beyond these floats stand for several whole numbers each.
        most = 2.0 ** (np.finfo(type(cell)).nmant + 1)
        if most < abs(float(cell)) < math.inf:
            raise ValueError(*_ROUNDED)
        return "" if math.isnan(cell) else str(cell).removesuffix(".0")
    if not isinstance(cell, _PLAIN):
        raise TypeError
    missing = isinstance(cell, decimal.Decimal) and cell.is_nan()
    return "" if missing else str(cell)
