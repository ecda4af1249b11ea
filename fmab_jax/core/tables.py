"""Tables of means and of ratings, from CSV and NPZ files that may be damaged or hostile.

Every way in which a file can be something else (a pipe, an archive that claims terabytes, a cell
that Python reads as another number) ends in one line that names the file and the cause.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import stat
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.errors import refuse
from fmab_jax.files import unread

_MAX_FILE_BYTES = 1 << 30
_MAX_HEADER_BYTES = 1 << 16
MAX_CELLS = 1 << 27
_MAX_COLUMNS = 10**6
# Bytes of a line; more than any row of `_MAX_COLUMNS` numbers.
_LONGEST_LINE = 1 << 26
# Messages of the csv module, and plain words for them.
_MISTAKES = {
    "new-line": "it has a carriage return that ends no line",
    "field limit": "it has a cell of more than 131,072 characters, or a quote that nothing closes",
    "end of data": "it has a quote that nothing closes",
    "expected after": "write quotes in a quoted cell twice, and a comma behind it",
}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
# A number that a spreadsheet has shortened; several long numbers may have become one.
_SHORTENED = re.compile(r"[+-]?[0-9]\.[0-9]+E\+[0-9]{2,}")
_RATINGS = ["agent", "arm", "value"]
# Other names that columns of ratings often have.
_LIKE_RATINGS = (
    ("agent", "user", "player", "client"),
    ("arm", "item", "movie", "product", "action"),
    ("value", "rating", "reward", "score", "stars"),
)
_SEPARATED = "it has {}: save it with commas, and points in decimal numbers".format
_ARM_LABELS = "arm_labels.npy"
# What the header of a column without a name says, in small letters.
_UNNAMED = ("", "unnamed: 0")
_INDEX = ("index", "agent", "agents", "id")
# How pandas writes numbers alone, whatever its table is called.
_BARE = "to_csv(index=False, header=False)"
_POINT = "write means with a point, such as 1.0"


class Table(NamedTuple):
    """The content of a file: means, or ratings.

    Attributes:
        means: The array of means, or None.
        levels: Possible ratings, increasing, or None.
        probabilities: [agent, arm, level], or None.
        arm_labels: What the arms of ratings are called, or None.
    """

    means: np.ndarray | None = None
    levels: Any = None
    probabilities: np.ndarray | None = None
    arm_labels: tuple[str, ...] | None = None


def read(path: Any) -> Table:
    """Reads means or ratings from a CSV or an NPZ file.

    Args:
        path: A .csv or .npz file, or a symbolic link to one.

    Raises:
        ValueError: If it cannot be read, is too large, or is no such table.
    """
    try:
        path = Path(path)
    except Exception:  # no path, or an object that raises
        refuse("means", path, "the path of a .csv or .npz file", "give a text or a path")
    if "\0" in str(path):
        refuse("means", str(path), "the path of a .csv or .npz file", "drop the null character")
    kind = path.suffix.lower()
    if kind not in (".csv", ".npz"):
        refuse("means", str(path), "a .csv or .npz file", "convert it")
    try:
        with opened(path) as file:
            if os.fstat(file.fileno()).st_size > _MAX_FILE_BYTES:
                refuse("means", str(path), "at most 1 GiB", "use a smaller file")
            return _read_csv(path, file) if kind == ".csv" else _read_npz(path, file)
    except OSError as error:
        unread("means", path, error)


@contextmanager
def opened(path: Path, field: str = "means") -> Iterator[IO[bytes]]:
    """Gives a plain file to read, through links too, but never a pipe or a device.

    Opening one of those can hang or act; so it is looked at before, and again once it is open.

    Args:
        path: The file.
        field: The argument's public name.

    Raises:
        ValueError: If it cannot be opened, or is no plain file.
    """
    try:
        _refuse_special(path, os.stat(path).st_mode, field)
        flags = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
        descriptor = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        unread(field, path, error)
    with open(descriptor, "rb") as file:
        _refuse_special(path, os.fstat(file.fileno()).st_mode, field)
        yield file


def _refuse_special(path: Path, mode: int, field: str) -> None:
    if stat.S_ISDIR(mode):
        refuse(field, str(path), "a readable file", "check the path (is a directory)")
    if not stat.S_ISREG(mode):
        refuse(field, str(path), "a plain file", "it is a pipe or a device: copy its content")


class _Checked(io.RawIOBase):
    """The bytes of a table; a NUL and a line without an end, which no table has, are refused."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        """Reads what is opened."""
        self._shown, self._stream = str(path), file
        self._lines, self._tail = 0, 0

    def readable(self) -> bool:
        """Tells that it is read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads the next bytes.

        Raises:
            ValueError: If they are none of a table.
        """
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            unread("means", self._shown, error)
        if (place := data.find(b"\0")) >= 0:
            line = self._lines + data.count(b"\n", 0, place) + 1
            where = f"{self._shown}, line {line:,}"
            refuse("means", where, "a table of text", "it holds a NUL: save it as CSV in UTF-8")
        ends = data.count(b"\n")
        self._tail = len(data) - data.rfind(b"\n") - 1 + (0 if ends else self._tail)
        self._lines += ends
        if self._tail > _LONGEST_LINE:
            where = f"{self._shown}, line {self._lines + 1:,}"
            allowed = f"a line of at most {_LONGEST_LINE:,} bytes"
            refuse("means", where, allowed, "end each row with a line feed")
        buffer[: len(data)] = data
        return len(data)


def _text_of(path: Path, file: IO[bytes]) -> io.TextIOWrapper:
    """Returns the text of a table, whose lines end with a line feed."""
    # A carriage return ends no line, and stays one inside quotes.
    raw = io.BufferedReader(_Checked(path, file), 1 << 18)
    return io.TextIOWrapper(raw, "utf-8-sig", newline="\n")


def _records(lines: Iterable[str], shown: str) -> Iterator[tuple[int, list[str]]]:
    """Gives the rows of a CSV file, each with the number of the line that it begins on.

    Args:
        lines: Of the file, with their ends.
        shown: The file.

    Raises:
        ValueError: If quotes are not those of CSV, a cell is too large, or a carriage return ends
            no line.
    """
    rows = csv.reader(lines, strict=True)
    begins = 1
    try:
        for row in rows:
            yield begins, row
            begins = rows.line_num + 1
    except csv.Error as error:
        remedy = next((said for word, said in _MISTAKES.items() if word in str(error)), str(error))
        refuse("means", f"{shown}, line {begins:,}", "a row of CSV", remedy)


# The remedy for a cell that is not `is_plain`.
NOT_PLAIN = "drop the mark of UTF-8, or the space before the quote"


def is_plain(cell: str) -> bool:
    """Tells whether a cell of CSV is what it looks like.

    A mark of UTF-8 stands where files were put together; quotes mean something only at the very
    beginning of a cell.
    """
    return "\ufeff" not in cell and not (cell[:1].isspace() and cell.lstrip()[:1] == '"')


# --- CSV ---


def _read_csv(path: Path, file: IO[bytes]) -> Table:
    """Reads means or ratings.

    A first line of texts alone is a header. Any other line is means. Whole numbers that may be
    names are refused: only a point tells means from them.
    """
    rows: list[np.ndarray] = []
    header, first, column = False, (0, [""]), []
    quotes = [0, 0]  # how many the first line of numbers has, and the last line read

    def note_quotes(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            quotes[1] = line.count('"')
            yield line

    try:
        lines = _records(note_quotes(_text_of(path, file)), str(path))
        for number, row in lines:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not first[0]:
                first = number, cells
                names = [cell.lower() for cell in cells]
                if sorted(names) == _RATINGS:
                    return _read_ratings(path, lines, [names.index(name) for name in _RATINGS])
                _refuse_like_ratings(path, number, names)
                if len(names) > 1 and names[0] in _UNNAMED:
                    _refuse_index(path, "has no name")
                header = all(map(_is_text, cells))
                if header:
                    _check_separators(path, number, cells)
                    refuse_twice(f"{path}, line {number}", cells, "means")
                    continue
                if _is_count(cells):
                    remedy = f"drop that line ({_BARE}), or {_POINT}"
                    _refuse_line(path, number, "means or names, not whole numbers alone", remedy)
            if not rows and len(cells) > 1 and _is_text(cells[0]) and None not in _parse(cells[1:]):
                _refuse_index(path, "names the rows")
            values = _numbers(path, number, cells)
            _refuse_width(path, number, len(cells), len(first[1]), header)
            if not rows:
                quotes[0] = quotes[1]
                if 0 < quotes[1] < 2 * len(cells):
                    _refuse_index(path, "is in quotes, as names are")
            elif quotes[0] and not quotes[1]:
                remedy = "its quotes make it names: drop the quotes, or that line"
                _refuse_line(path, first[0], "means as those below", remedy)
            rows.append(values)
            column.append(cells[0])
    except UnicodeDecodeError:
        refuse("means", str(path), "a UTF-8 CSV file", "save it as CSV")
    if not rows:
        refuse("means", str(path), "a table with equally long rows", "give one column per arm")
    means = np.array(rows)
    # Beside what is no mean either, such as per cent, a column names nothing.
    if len(first[1]) > 1 and ((means[:, 1:] >= 0.0) & (means[:, 1:] <= 1.0)).all():
        _refuse_names(path, first[1][0] if header else "", column)
    return Table(means=means)


def _refuse_names(path: Path, header: str, column: list[str]) -> None:
    """Refuses a first column of different whole numbers, or of any below the name of an index.

    Args:
        path: Of the file.
        header: What the header calls the column.
        column: Its cells.
    """
    if header.lower() in _INDEX and all(float(cell).is_integer() for cell in column):
        _refuse_index(path, "counts the rows", ", or call it otherwise")
    # One row without a header may have a mean of 1 or 0 in its first column.
    if (len(column) > 1 or header) and _is_count(column):
        _refuse_index(path, "seems to count the rows", f", or {_POINT}")


def _is_count(cells: Sequence[str]) -> bool:
    """Tells whether cells may be what pandas calls rows or columns that have no names."""
    return len(set(cells)) == len(cells) and all(cell.isdecimal() for cell in cells)


def _refuse_width(path: Path, number: int, found: int, width: int, header: bool) -> None:
    if found != width:
        allowed = f"a row of {width} cells, as the {'header' if header else 'first one'}"
        remedy = f"it has {found}: give one column per arm"
        if header and found == width + 1:
            remedy = f"it has {found}: drop names of rows (in R, row.names=FALSE), or the header"
        _refuse_line(path, number, allowed, remedy)


def _numbers(path: Path, number: int, cells: list[str]) -> np.ndarray:
    if len(cells) > _MAX_COLUMNS:
        refuse("means", f"{path}, line {number}", "at most 1,000,000 columns", "use fewer arms")
    values = _parse(cells)
    if None in values:
        _check_separators(path, number, cells)
        bad = cells[values.index(None)]
        # Python takes it for a number, perhaps for another than its writer meant.
        remedy = f"write {bad[:20]!r} as a plain decimal number"
        _refuse_line(path, number, "all numbers", "mend that line" if _is_text(bad) else remedy)
    return np.array(values, np.float64)


def _parse(cells: Iterable[str]) -> list[float | None]:
    return [plain_number(cell) for cell in cells]


def _refuse_like_ratings(path: Path, number: int, names: list[str]) -> None:
    plain = [re.sub(r"[ _]?id$", "", name) for name in names]
    if sum(any(name in like for name in plain) for like in _LIKE_RATINGS) > 1:
        remedy = "for ratings, use fmab_jax.ratings.from_table; for means, name arms"
        allowed = "the header agent,arm,value or one name for each arm"
        _refuse_line(path, number, allowed, remedy)


def _refuse_index(path: Path, does: str, otherwise: str = "") -> None:
    remedy = f"its first column {does}: save it without, as {_BARE} does{otherwise}"
    refuse("means", str(path), "means alone", remedy)


def _refuse_line(path: Path, number: int, allowed: str, remedy: str) -> NoReturn:
    refuse("means", f"{path}, line {number}", allowed, remedy)


def _check_separators(path: Path, number: int, cells: Sequence[str]) -> None:
    blanks = any(None not in _parse(cell.split()) for cell in cells if " " in cell)
    if remedy := separator_remedy(cells) or blanks and _SEPARATED("blanks"):
        _refuse_line(path, number, "separated by commas", remedy)


def separator_remedy(cells: Sequence[str]) -> str:
    """Returns what to do about cells that hold another separator than commas; "" for nothing."""
    for name, separator in (("semicolons", ";"), ("tabs", "\t")):
        if any(separator in cell for cell in cells):
            return _SEPARATED(name)
    return ""


def refuse_twice(shown: str, names: Sequence[str], field: str) -> None:
    """Refuses a table with two columns of one name."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        refuse(field, shown, "a table with one column of each name", f"rename one {twice!r}")


def plain_number(cell: str) -> float | None:
    """Returns a plain decimal number, in ASCII digits and finite, or None.

    What would become 0 without being 0, as 1e-400, is none.
    """
    value = float(cell) if _NUMBER.fullmatch(cell) else math.nan
    if value == 0 and re.split("[eE]", cell)[0].strip("+-0."):
        return None
    return value if math.isfinite(value) else None


def _is_text(cell: str) -> bool:
    """Tells whether no one takes the cell for a number: not nan, 0.1_5, 1e400 or 1+2j either."""
    try:
        complex(cell)
    except ValueError:
        return True
    return False


def _read_ratings(path: Path, lines: Any, order: list[int]) -> Table:
    """Reads observed ratings: one line for each, probabilities are their frequencies.

    Args:
        path: Of the file.
        lines: The records after the header.
        order: Columns of agent, arm and value.
    """
    counts: Counter[tuple[str, str, float]] = Counter()
    for number, row in lines:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        cells = [cells[column] for column in order] if len(cells) == 3 else cells
        value = plain_number(cells[2]) if len(cells) == 3 else None
        if not all(map(is_plain, row)):
            refuse("means", f"{path}, line {number}", "plain cells", NOT_PLAIN)
        if value is None or not cells[0] or not cells[1]:
            _check_separators(path, number, cells)
            remedy = "give agent, arm and a number in every line"
            refuse("means", f"{path}, line {number}", "an observed rating", remedy)
        counts[cells[0], cells[1], value + 0.0] += 1
    agents = numbered("means", str(path), {agent for agent, _, _ in counts}, "agent")
    arms = numbered("means", str(path), {arm for _, arm, _ in counts}, "arm")
    levels = sorted({value for _, _, value in counts})
    observed = {(agent, arm) for agent, arm, _ in counts}
    if len(observed) < len(agents) * len(arms) or not counts:
        missing = ((a, b) for a in agents for b in arms if (a, b) not in observed)
        cell = next((f"agent {a}, arm {b}" for a, b in missing), "no line at all")
        remedy = "drop that agent or arm, or add what was observed"
        refuse("means", f"{path}, {cell}", "rated at least once", remedy)
    if len(observed) * len(levels) > MAX_CELLS:
        allowed = f"at most {MAX_CELLS:,} cells of agent, arm and level"
        refuse("means", str(path), allowed, "round the ratings to fewer levels")
    table = np.zeros((len(agents), len(arms), len(levels)))
    place = {value: i for i, value in enumerate(levels)}
    for (agent, arm, value), times in counts.items():
        table[agents[agent], arms[arm], place[value]] = times
    probabilities = table / table.sum(axis=2, keepdims=True)
    return Table(levels=levels, probabilities=probabilities, arm_labels=tuple(arms))


def numbered(field: str, shown: str, labels: Iterable[str], name: str) -> dict[str, int]:
    """Numbers labels 0, 1, ...: in numerical order if all are whole numbers, else as texts.

    Args:
        field: The argument's public name.
        shown: The table.
        labels: All different.
        name: What they name.

    Raises:
        ValueError: If a label was shortened, or if all are numbers and two of them are one.
    """
    labels = list(labels)
    for label in filter(_SHORTENED.fullmatch, labels):
        remedy = "a spreadsheet has shortened it: save the column as texts"
        refuse(field, f"{shown}, {name} {label[:30]}", f"whole labels of each {name}", remedy)
    whole = all(re.fullmatch(r"[0-9]{1,18}", label) for label in labels)
    numeric = whole or all(_NUMBER.fullmatch(label) for label in labels)
    if numeric and len(set(map(Decimal, labels))) != len(labels):
        remedy = "two labels are the same number: write it in one way"
        refuse(field, shown, f"one label per {name}", remedy)
    ordered = sorted(labels, key=int) if whole else sorted(labels)
    return {label: i for i, label in enumerate(ordered)}


# --- NPZ ---


def _read_npz(path: Path, file: IO[bytes]) -> Table:
    # Damaged archives raise whatever zipfile, zlib and tokenize come across.
    wanted: list[str] = []
    called: tuple[Sequence[int], np.dtype] | None = None
    headers: list[tuple[Sequence[int], np.dtype]] = []
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            wanted = [name for name in names if name in ("levels.npy", "probabilities.npy")]
            if len(wanted) != 2:
                wanted = [name for name in names if name == "means.npy"] or names
            if len(wanted) <= 2:
                # A small file can claim terabytes: its headers decide before anything is read.
                headers = [_member_header(archive, name) for name in wanted]
            labelled = len(wanted) == 2 and _ARM_LABELS in names
            called = _member_header(archive, _ARM_LABELS) if labelled else None
    except OSError:
        raise
    except Exception:
        refuse("means", str(path), "an NPZ file", "save it with numpy.savez")
    ratings = sorted(wanted) == ["levels.npy", "probabilities.npy"]
    if len(wanted) != 1 and not ratings:
        refuse("means", str(path), "an NPZ with one array, or one called means", "rename it")
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in headers]
    if any(dtype.kind not in "fiu" for _, dtype in headers) or sum(sizes) > _MAX_FILE_BYTES:
        refuse("means", str(path), "numbers, at most 1 GiB", "save float64 means")
    arms = headers[wanted.index("probabilities.npy")][0][-2:-1] if ratings else None
    # Labels that do not fit are left out; no number depends on them.
    if called and called[1].kind == "U" and called[0] == arms:
        if math.prod(called[0]) * called[1].itemsize <= _MAX_FILE_BYTES:
            wanted.append(_ARM_LABELS)
    try:
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name.removesuffix(".npy")]) for name in wanted}
    except Exception:
        refuse("means", str(path), "an NPZ file", "save it with numpy.savez")
    if not ratings:
        return Table(means=found[wanted[0]])
    if found["levels.npy"].ndim != 1:
        refuse("levels", found["levels.npy"].shape, "one row of numbers", "save levels [level]")
    labels = tuple(found[_ARM_LABELS].tolist()) if _ARM_LABELS in found else None
    levels = found["levels.npy"].tolist()
    return Table(levels=levels, probabilities=found["probabilities.npy"], arm_labels=labels)


def _member_header(archive: zipfile.ZipFile, name: str) -> tuple[Sequence[int], np.dtype]:
    with archive.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError("unknown format")
        # A header states its own length, up to 4 GiB, and is read whole.
        shape, _, dtype = read(io.BytesIO(stream.read(_MAX_HEADER_BYTES)))
        return shape, dtype
