"""Tables of means and of ratings, from CSV and NPZ files."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fmab_jax.errors import describe_error, format_quantity, refuse
from fmab_jax.files import check_path, read_input

MAX_CELLS = 1 << 27
"""Most probabilities of a table of ratings."""

_MOST_BYTES = 1 << 30
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
# A number that a spreadsheet shortened: several long numbers may have become one.
_SHORTENED = re.compile(r"[+-]?[0-9]\.[0-9]+E\+[0-9]{2,}")


class Table(NamedTuple):
    """The content of a file: means, or ratings.

    Attributes:
        values: The array of means, or the probabilities of ratings, [agent, arm, level].
        levels: Possible ratings, increasing; None for means.
    """

    values: np.ndarray
    levels: list[float] | None = None


def read(path: object, agents: int | None = None) -> Table:
    """Reads means from a CSV file, or means or ratings from an NPZ file.

    Args:
        path: A .csv or .npz file, or a symbolic link to one.
        agents: Number of agents that a column ``agent`` must have; None for that of its rows.

    Raises:
        ValueError: If it cannot be read, is larger than 1 GiB, or is no such table.
    """
    path = check_path("means", path)
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        refuse("means", str(path), "a .csv or .npz file", "convert it")
    content = read_input(path, "means", _MOST_BYTES)
    return _read_csv(path, content) if kind == ".csv" else _read_npz(path, content)


def _read_csv(path: Path, content: bytes) -> Table:
    """Reads means; a first line of only texts is a header."""
    try:
        lines_of_text = list(io.StringIO(content.decode("utf-8-sig"), newline=""))
        reader = csv.reader(lines_of_text, strict=True)
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        refuse(
            "means", str(path), "a CSV file in UTF-8", f"save it again ({describe_error(error)})"
        )
    lines = [(number, row) for number, row in lines if any(row)]
    first = lines[0][1] if lines else []
    if sorted(cell.lower() for cell in first) == ["agent", "arm", "value"]:
        refuse("means", str(path), "means, not ratings", "make a problem with ratings.from_table")
    has_header = all(map(_is_text, first))
    if not lines[has_header:]:
        reason = "it has a line of names alone" if lines else "the file is empty"
        remedy = f"{reason}: write a row per agent, or one for all, and a column per arm"
        refuse("means", str(path), "a table of means", remedy)
    alone = _describe_saving(first)
    allowed = "means alone, without a line or a column that counts the others"
    if len(first) > 1 and not first[0] and _is_count(first[1:]):
        refuse("means", str(path), allowed, alone)
    rows = [_parse_means(path, number, row, first, alone) for number, row in lines[has_header:]]
    column = [row[0] for _, row in lines[has_header:]]
    # The first column of a single row may be a mean of 1 or 0.
    counts_rows = (len(column) > 1 or has_header) and _is_count(column)
    if first[0].lower() in ("index", "agent", "agents", "id"):
        counts_rows = all(row[0].is_integer() for row in rows)
    counts_rows &= len(first) > 1 and all(0 <= mean <= 1 for row in rows for mean in row[1:])
    # Quotes around only the first cell or line make it names.
    quotes, last = (lines_of_text[lines[n][0] - 1].count('"') for n in (has_header, -1))
    is_named = has_header and not first[0] or 0 < quotes < 2 * len(first) or quotes > last
    if counts_rows or is_named or _is_count(first):
        refuse("means", str(path), allowed, alone)
    return Table(np.array(rows))


def _describe_saving(first: Sequence[str]) -> str:
    """Returns how pandas saves means alone, given the first line that it has saved."""
    # Names of arms may stay; numbers would be means.
    has_numbers = _is_count(first[1:] if len(first) > 1 and not _is_count(first) else first)
    options = "index=False" + ", header=False" * has_numbers
    return f"save them as to_csv({options}) does, and write means as 1.0, not 1"


def _parse_means(
    path: Path, number: int, row: Sequence[str], first: Sequence[str], alone: str
) -> list[float]:
    location, width = f"{path}, line {number}", len(first)
    if len(row) != width:
        allowed = f"a row of {format_quantity(width, 'cell')}, as the first one, not {len(row)}"
        refuse("means", location, allowed, f"give means alone: {alone}")
    values = [plain_number(cell) for cell in row]
    means = [value for value in values if value is not None]
    if len(means) < width:
        remedy = f"mend {row[values.index(None)][:20]!r}, or give means alone: {alone}"
        refuse("means", location, "plain decimal numbers, separated by commas", remedy)
    return means


def _is_count(cells: Sequence[str]) -> bool:
    """Tells whether cells may be the default row or column labels of pandas."""
    return len(set(cells)) == len(cells) and all(cell.isdecimal() for cell in cells)


def _is_text(cell: str) -> bool:
    """Tells whether a cell is not a number in any spelling."""
    try:
        float(cell)
    except ValueError:
        return True
    return False


def plain_number(cell: str) -> float | None:
    """Returns a plain decimal number, in ASCII digits and finite, or None.

    A non-zero number that underflows to 0, such as 1e-400, gives None.
    """
    value = float(cell) if _NUMBER.fullmatch(cell) else math.nan
    if value == 0 and re.split("[eE]", cell)[0].strip("+-0."):
        return None
    return value if math.isfinite(value) else None


def order_labels(field: str, table: str, labels: Iterable[str], name: str) -> list[str]:
    """Returns labels in numerical order if all are whole numbers, else in that of texts.

    Args:
        field: The argument's public name.
        table: Name of the table in error messages.
        labels: Different labels.
        name: Kind of label, such as "arm".

    Raises:
        ValueError: If a label was shortened, or if all are numbers and two of them are one.
    """
    labels = list(labels)
    for label in filter(_SHORTENED.fullmatch, labels):
        remedy = "a spreadsheet has shortened it: save the column as texts"
        refuse(field, f"{table}, {name} {label[:30]}", f"whole labels of each {name}", remedy)
    whole = all(re.fullmatch(r"[0-9]{1,18}", label) for label in labels)
    numeric = whole or all(_NUMBER.fullmatch(label) for label in labels)
    if numeric and len(set(map(Decimal, labels))) != len(labels):
        remedy = "two labels are the same number: write it in one way"
        refuse(field, table, f"one label per {name}", remedy)
    return sorted(labels, key=int) if whole else sorted(labels)


def _read_npz(path: Path, content: bytes) -> Table:
    names, tables = list[str](), list[np.ndarray]()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            names = ["levels", "probabilities"]
            if not {*names} <= {*arrays.files}:
                names = [name for name in arrays.files if name == "means"] or arrays.files
            tables = [np.asarray(arrays[name]) for name in names[:2]]
    except Exception:  # damaged archives raise whatever zipfile, zlib and tokenize come across
        refuse("means", str(path), "an NPZ file", "save it with numpy.savez")
    is_ratings = names == ["levels", "probabilities"]
    if len(names) != 1 and not is_ratings:
        refuse("means", str(path), "an NPZ with one array, or one called means", "rename it")
    if any(array.dtype.kind not in "fiu" for array in tables):
        refuse("means", str(path), "numbers", "save float64 means")
    if not is_ratings:
        return Table(tables[0])
    levels, probabilities = tables
    if levels.ndim != 1:
        refuse("levels", levels.shape, "one row of numbers", "save levels [level]")
    return Table(probabilities, levels.tolist())
