"""Reads means, or ratings, of a problem from CSV and NPZ files."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fmab_jax.errors import describe_error, parse_number, refuse
from fmab_jax.files import check_path, read_input

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 1 << 27
"""Most probabilities of a table of ratings."""

_MOST_BYTES = 1 << 30
# First columns of these names count the rows.
_COUNTERS = ("", "index", "agents", "id")
_ALONE = "save them as to_csv(index=False, header=False) does, and write means as 1.0, not 1"


class MeansFile(NamedTuple):
    """The content of a file: means, or ratings.

    Attributes:
        values: The array of means, or the probabilities of ratings, [agent, arm, level].
        levels: Possible ratings, increasing; None for means.
    """

    values: np.ndarray
    levels: list[float] | None = None


def read(path: object, agents: int | None = None) -> MeansFile:
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
    return _read_means(path, agents) if kind == ".csv" else _read_npz(path)


def read_cells(
    path: Path, field: str, agents: int | None = None
) -> tuple[list[str], pd.DataFrame, bool]:
    """Reads a CSV file as texts, in the order of its column ``agent`` if it has one.

    A first line is a line of names if all its cells begin with a letter and none looks like a
    misspelt number, or if it has the name ``agent``.

    Args:
        path: The file.
        field: The argument's public name.
        agents: Number of agents that a column ``agent`` must have; None for that of the rows.

    Returns:
        The names of the other columns, none without a line of names; their stripped cells, indexed
        by the number of the line; and whether a cell stands in quotes.

    Raises:
        ValueError: If it cannot be read, or the column ``agent`` does not number the rows.
    """
    import pandas as pd  # takes half a second, which a study without files does not need

    content = read_input(path, field, _MOST_BYTES)
    try:
        text = io.StringIO(content.decode("utf-8-sig").lstrip("\r\n"), newline="")
        options = {"header": None, "dtype": str, "na_filter": False, "skip_blank_lines": False}
        cells = pd.read_csv(text, **options).map(str.strip)
    except pd.errors.EmptyDataError:
        refuse(field, str(path), "a table", "the file is empty")
    except ValueError as error:  # pandas' errors of parsing, and other encodings
        remedy = f"save it again ({describe_error(error)})"
        refuse(field, str(path), "a CSV file in UTF-8, all rows equally long", remedy)
    cells.index += 1
    cells = cells[(cells != "").any(axis=1)]
    first = cells.iloc[0].tolist() if len(cells) else []
    labels = [cell.lower() for cell in first]
    has_names = "agent" in labels or all(map(_is_name, first))
    names, cells = (first, cells.iloc[1:]) if has_names else ([], cells)
    if "agent" in labels and len(cells):
        place = labels.index("agent")
        column = cells.pop(place)
        names = names[:place] + names[place + 1 :]
        numbers = np.array([int(x) if x.isdecimal() and len(x) < 9 else -1 for x in column])
        count, least = len(numbers) if agents is None else agents, numbers.min()
        if least < 0 or sorted(numbers - min(least, 1)) != list(range(count)):
            allowed = f"a file whose column agent has 0 to {count - 1}, or 1 to {count}, each once"
            refuse(field, str(path), allowed, "number the agents; ratings go to ratings.from_table")
        cells = cells.iloc[np.argsort(numbers)]
    if cells.empty:
        refuse(field, str(path), "a table with numbers", "write rows below the names")
    return names, cells, b'"' in (content.partition(b"\n")[2] if has_names else content)


def _read_means(path: Path, agents: int | None) -> MeansFile:
    names, cells, is_quoted = read_cells(path, "means", agents)
    rows = cells.to_numpy().tolist()
    means = [[plain_number(cell) for cell in row] for row in rows]
    for line, row, numbers in zip(cells.index, rows, means, strict=True):
        if None in numbers:
            remedy = f"mend {row[numbers.index(None)][:20]!r}, or give means alone: {_ALONE}"
            allowed = "plain decimal numbers, separated by commas"
            refuse("means", f"{path}, line {line}", allowed, remedy)
    array = np.array(means, float)
    # The first column of a single row may be a mean of 1 or 0.
    counts_rows = (len(rows) > 1 or bool(names)) and _is_count([row[0] for row in rows])
    counts_rows &= array.shape[1] > 1 and bool(((array >= 0) & (array <= 1))[:, 1:].all())
    is_named = bool(names) and names[0].lower() in _COUNTERS
    is_line = not names and _is_count(rows[0])
    if counts_rows or is_named or is_quoted or is_line:
        allowed = "means alone, without a line or a column that counts the others"
        refuse("means", str(path), allowed, _ALONE)
    return MeansFile(array)


def _is_count(cells: Sequence[str]) -> bool:
    """Tells whether cells may be the default row or column labels of pandas."""
    return len(set(cells)) == len(cells) and all(cell.isdecimal() for cell in cells)


def _is_name(cell: str) -> bool:
    """Tells whether a cell is a name, or empty, and no misspelt or missing number such as O.9."""
    if not cell:
        return True
    return cell[0].isalpha() and not re.search(r"[.,]\d|\A(na|nan|n/a|none|null|inf)\Z", cell, re.I)


def plain_number(cell: str) -> float | None:
    """Returns a finite decimal number; None for any other text, and for 1e-400, no float."""
    number = parse_number(cell)
    # Whole numbers of any length are read, and only some are floats.
    return float(number) if number is not None and abs(number) <= sys.float_info.max else None


def _read_npz(path: Path) -> MeansFile:
    content = read_input(path, "means", _MOST_BYTES)
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
        return MeansFile(tables[0])
    levels, probabilities = tables
    if levels.ndim != 1:
        refuse("levels", levels.shape, "one row of numbers", "save levels [level]")
    return MeansFile(probabilities, levels.tolist())
