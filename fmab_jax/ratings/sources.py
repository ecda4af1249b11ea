"""Long tables of ratings, read column by column: CSV, Parquet and published layouts.

A file may hold tens of millions of rows. Only the columns that are asked for are read, in chunks,
and each becomes whole numbers with a list of labels. Nothing is read as another thing than its
writer meant: a table that might be is refused in one line.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import io
import math
import re
import uuid
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.core import tables
from fmab_jax.errors import Refusal, Shown, did_you_mean, reason_of, refuse
from fmab_jax.errors import shown as brief
from fmab_jax.files import checked_path
from fmab_jax.resources import affordable

# Rows of a Parquet file that are read at once.
CHUNK = 1_000_000
# Bytes of the first line of a file and of the one below it; and of any line.
_LONGEST_HEADER = 1 << 16
_LONGEST_LINE = 1 << 20
_ROUNDED = ("a whole number that is stored as one, since floats of this size are rounded",)
# Types of cells that have only one text.
_PLAIN = (str, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
# What people and programs write in place of a value.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))
_GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance"),
    *("Sci-Fi", "Thriller", "War", "Western"),
)
_MANY_COLONS = re.compile(":{3,}")
# What MovieLens writes where it knows no genre.
_NO_GENRE = "(no genres listed)"


class Form(NamedTuple):
    """How the lines of a file are written.

    Attributes:
        separator: Between cells.
        columns: Names of the columns; none where the first line names them.
        quoted: Whether cells may stand in quotes.
    """

    separator: str = ","
    columns: tuple[str, ...] = ()
    quoted: bool = True

    @property
    def encodings(self) -> tuple[str, ...]:
        """What the letters may be in; older titles of MovieLens are in Latin-1."""
        return ("utf-8-sig",) if self.quoted else ("utf-8-sig", "latin-1")


class Layout(NamedTuple):
    """A published layout of ratings.

    Attributes:
        user: Column of who rates.
        item: Column of what is rated.
        value: Column of the rating.
        form: Of the ratings.
        items: Name and form of the file about items, if there is one.
        users: Name and form of the file about users, if there is one.
    """

    user: str
    item: str
    value: str
    form: Form
    items: tuple[str, Form] | None = None
    users: tuple[str, Form] | None = None


_MOVIELENS = ("userId", "movieId", "rating", "timestamp")
_AMAZON = ("user_id", "parent_asin", "rating", "timestamp")
_FILMS = ("movieId", "title", "genres")
_PEOPLE = ("userId", "gender", "age", "occupation", "zip")
_FILMS_100K = ("movieId", "title", "released", "video", "url", *_GENRES)
_PEOPLE_100K = ("userId", "age", "gender", "occupation", "zip")

LAYOUTS: Mapping[str, Layout] = {
    "movielens": Layout(*_MOVIELENS[:3], Form(), ("movies.csv", Form())),
    "movielens-1m": Layout(
        *_MOVIELENS[:3],
        Form("::", _MOVIELENS, quoted=False),
        ("movies.dat", Form("::", _FILMS, quoted=False)),
        ("users.dat", Form("::", _PEOPLE, quoted=False)),
    ),
    "movielens-100k": Layout(
        *_MOVIELENS[:3],
        Form("\t", _MOVIELENS, quoted=False),
        ("u.item", Form("|", _FILMS_100K, quoted=False)),
        ("u.user", Form("|", _PEOPLE_100K, quoted=False)),
    ),
    "amazon-2014": Layout("user", "item", "rating", Form(",", ("user", "item", *_AMAZON[2:]))),
    "amazon-2018": Layout("user", "item", "rating", Form(",", ("item", "user", *_AMAZON[2:]))),
    "amazon-2023": Layout(*_AMAZON[:3], Form()),
}
"""Published layouts by name: of MovieLens the current one (ratings.csv), 1M and 10M (ratings.dat),
100K (u.data); of Amazon's ratings those of 2014, 2018 and 2023."""
_BY_FILE = {"ratings.dat": "movielens-1m", "u.data": "movielens-100k"}
_BY_HEADER = {_MOVIELENS[:3]: "movielens", _AMAZON[:3]: "amazon-2023"}


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        codes: [row] place of each row's label; -1 where it has none.
        labels: The distinct cells, as texts without spaces around them.
    """

    codes: np.ndarray
    labels: list[str]

    @classmethod
    def of(cls, codes: Any, cells: Iterable[str]) -> Column:
        """Makes a column of texts, some of which may differ by spaces, or be empty.

        Args:
            codes: [row] place of each row's cell; -1 for none.
            cells: Distinct.
        """
        known: dict[str, int] = {}
        texts = (cell.strip() for cell in cells)
        # Empty cells have the code -1; a code of -1 takes the last entry, which is -1.
        place = [known.setdefault(text, len(known)) if text else -1 for text in texts]
        return cls(np.array([*place, -1], np.int32)[np.asarray(codes, np.int32)], list(known))


class Source(NamedTuple):
    """A table of ratings that is found, and whose columns are known; nothing else of it is read.

    Attributes:
        shown: What it is called in messages.
        columns: Names.
        layout: Name of its layout, or None.
        form: How its lines are written.
        path: The file, or None for a data frame.
        frame: The data frame, or None.
    """

    shown: str
    columns: tuple[str, ...]
    layout: str | None
    form: Form
    path: Path | None
    frame: Any = None

    @property
    def published(self) -> Layout | None:
        """The layout itself."""
        return LAYOUTS[self.layout] if self.layout else None

    @property
    def named(self) -> tuple[str, ...]:
        """All columns, and the genres that are made of MovieLens 100K's flags."""
        return (*self.columns, "genres") if self.columns == _FILMS_100K else self.columns


def find(path: Any, layout: str | None = None, field: str = "path") -> Source:
    """Looks at a table: which columns it has, and which layout.

    Args:
        path: A .csv, .tsv, .dat, .data or .txt file, perhaps with .gz behind; a .parquet file; or a
            pandas data frame.
        layout: Name of a published layout; recognised by the name or the header where left out.
        field: Name of the argument, for refusals.

    Raises:
        ValueError: If it cannot be read, or is no table with named columns.
    """
    if is_frame(path):
        names = _frame_columns(path, field)
        return Source("a data frame", names, layout or _by_header(names), Form(), None, path)
    file = checked_path(field, path)
    name = legible(file.name)
    if _ending(file) == ".parquet":
        names = _parquet_columns(file, field)
        return Source(name, names, layout or _by_header(names), Form(), file)
    layout = layout or _BY_FILE.get(file.name)
    plain = Form("\t") if _ending(file) == ".tsv" else Form()
    form = LAYOUTS[layout].form if layout else plain
    first = _first_lines(file, field)
    if form.columns:
        _refuse_other_form(file, first[0], layout, form, field)
        return Source(name, form.columns, layout, form, file)
    names = _header(file, first, form.separator, field)
    return Source(name, names, layout or _by_header(names), form, file)


def read(
    source: Source, wanted: Iterable[str], field: str = "path", *, drop_uneven: bool = False
) -> tuple[dict[str, Column], int]:
    """Reads columns.

    Args:
        source: The table.
        wanted: Names of columns that it has.
        field: Name of the argument, for refusals.
        drop_uneven: Whether rows of a file that have more or fewer cells than there are columns are
            dropped.

    Returns:
        The columns by name, and how many rows were dropped.

    Raises:
        ValueError: If it cannot be read.
    """
    names = list(dict.fromkeys(wanted))
    if source.frame is not None:
        return _frame(source, names, field), 0
    assert source.path is not None
    if _ending(source.path) == ".parquet":
        return _parquet_read(source, source.path, names, field), 0
    for encoding in source.form.encodings:
        with contextlib.suppress(UnicodeDecodeError):
            return _text(source, names, field, encoding, drop_uneven)
    refuse(field, source.shown, "a UTF-8 table", "save it as CSV in UTF-8")


def read_small(source: Source, wanted: Sequence[str], field: str) -> list[tuple[str, ...]]:
    """Reads a table of items or of users as rows of texts.

    Args:
        source: The table.
        wanted: Names of columns that it has; "genres" of MovieLens 100K are made of its flags.
        field: Name of the argument, for refusals.

    Raises:
        ValueError: If it cannot be read.
    """
    flags = _GENRES if "genres" in wanted and source.columns == _FILMS_100K else ()
    own = [name for name in wanted if name in source.columns]
    columns, _ = read(source, [*own, *flags], field)
    cells = {
        name: [each.labels[code] if code >= 0 else "" for code in each.codes]
        for name, each in columns.items()
    }
    if flags:
        for name in flags:
            if bad := set(cells[name]) - {"0", "1"}:
                where = place_of(source, name, bad.pop(), 1)
                allowed = "flags of 0 or 1, one for each genre"
                refuse(field, f"{source.shown}, {where}", allowed, "mend that line")
        cells["genres"] = [_flagged(row) for row in zip(*map(cells.get, flags), strict=True)]
    return list(zip(*(cells[name] for name in wanted), strict=True))


def place_of(source: Source, name: str, label: str, row: int) -> str:
    """Returns where a label stands first: the line of the file, or the row of what has no lines.

    Lines are counted from 1, as an editor counts them: the header, empty lines, and each of the
    lines of a cell that holds several are counted too.

    Args:
        source: The table, which has been read once.
        name: Column.
        label: A cell of the column.
        row: The row that the label was read from, counted from 1.
    """
    if source.path is not None and _ending(source.path) != ".parquet":
        place = source.columns.index(name)
        for encoding in source.form.encodings:
            with tables.opened(source.path, "path") as file:
                with contextlib.suppress(UnicodeDecodeError):
                    for line, cells in _records(source, source.path, file, encoding, "path"):
                        if len(cells) == len(source.columns) and cells[place].strip() == label:
                            return f"line {line:,}"
    return f"row {row:,}"


def about(source: Source, kind: str, given: Any, field: str) -> Source | None:
    """Returns the table about items or users: the one that is given, or the layout's beside it.

    Args:
        source: The ratings.
        kind: "items" or "users".
        given: What the caller names; None for the layout's own file.
        field: Name of the argument, for refusals.
    """
    published = getattr(source.published, kind) if source.published else None
    if given is None:
        if published is None or source.path is None:
            return None
        path = source.path.with_name(published[0])
        if not path.exists():
            return None
        given, form = path, published[1]
    else:
        # A table that the user gives is read as a plain one, whatever the layout.
        form = Form()
        if published and not is_frame(given):
            same = _ending(Path(str(given))) == _ending(Path(published[0]))
            form = published[1] if same else form
    if form.columns:
        file = checked_path(field, given)
        return Source(legible(file.name), form.columns, None, form, file)
    return find(given, None, field)


def genres_of(label: str, separator: str | None) -> tuple[str, ...]:
    """Returns the parts of a label, without what says that there is none."""
    parts = label.split(separator) if separator else [label]
    return tuple(dict.fromkeys(p.strip() for p in parts if p.strip() and p != _NO_GENRE))


def legible(text: str) -> str:
    """Returns a text without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def number_in(text: str) -> float | None:
    """Returns the number that a cell is, NaN for one that is missing, None for anything else."""
    if text.lower() in MISSING:
        return math.nan
    return tables.plain_number(text)


# --- what a file looks like ---


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def _by_header(names: Sequence[str]) -> str | None:
    return next((layout for own, layout in _BY_HEADER.items() if set(own) <= set(names)), None)


def _first_lines(path: Path, field: str) -> list[str]:
    """Returns the first two lines of a file that is no archive of something else."""
    with tables.opened(path, field) as file:
        stream = io.BufferedReader(tables.Unpacked(path, file, field, _LONGEST_LINE))
        lines = [stream.readline(_LONGEST_HEADER) for _ in range(2)]
    if not lines[0].strip():
        refuse(field, str(path), "a table with rows", "its first line is empty")
    if len(lines[0]) == _LONGEST_HEADER:
        refuse(field, str(path), "a table of short lines", "its first line does not end: no CSV?")
    return [line.decode("utf-8-sig", "replace").rstrip("\r\n") for line in lines]


def _records(
    source: Source, path: Path, file: IO[bytes], encoding: str, field: str
) -> Iterator[tuple[int, list[str]]]:
    """Gives the rows below the header, each with the number of the line that it begins on."""
    form = source.form
    text = tables.text_of(path, file, field, encoding, _LONGEST_LINE)
    if form.quoted:
        rows = tables.records(text, field, source.shown, form.separator)
        if not form.columns:
            next(rows, None)
        yield from rows
        return
    for number, line in enumerate(text, 1):
        row = line.rstrip("\r\n")
        colons = _MANY_COLONS.search(row)
        for mistake in (
            "a carriage return that ends no line" * ("\r" in row),
            f"{colons[0][:9]!r}, which can be cut in several ways" if colons else "",
        ):
            if mistake:
                told = f"{source.shown}, line {number:,}"
                allowed = f"{len(form.columns)} cells separated by {form.separator!r}"
                refuse(field, told, allowed, f"it has {mistake}: mend that line")
        yield number, row.split(form.separator)


def _header(path: Path, lines: Sequence[str], separator: str, field: str) -> tuple[str, ...]:
    _, row = next(tables.records([lines[0]], field, legible(path.name), separator))
    names = [cell.strip() for cell in row]
    below: list[str] = []
    with contextlib.suppress(csv.Error):  # told when the rows are read
        below = next(csv.reader([lines[1]], delimiter=separator), [])
    if len(names) == 1:
        for word, separator in (("a semicolon", ";"), ("a tab", "\t"), ("'::'", "::"), ("|", "|")):
            if separator in lines[0]:
                remedy = f"{word} separates the columns: save it with commas, or name its layout"
                refuse(field, str(path), "columns separated by commas", remedy)
    if len(names) < 2 or all(tables.plain_number(name) is not None for name in names[1:]):
        remedy = "the first line names no columns: add a header, or name its layout"
        refuse(field, str(path), "a table whose first line names the columns", remedy)
    if names[0].lower() in ("", "unnamed: 0"):
        remedy = "the first column has no name, an index?: write it without, to_csv(index=False)"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) == len(names) + 1:
        remedy = "rows have one cell more than the header, an index?: write it without"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) > len(names):
        allowed = f"a table whose rows have the {len(names)} cells of the header"
        refuse(field, str(path), allowed, f"the first has {len(below)}: mend it")
    _refuse_twice(str(path), names, field)
    return tuple(names)


def _refuse_twice(shown: str, names: Sequence[str], field: str) -> None:
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        refuse(field, shown, "a table with one column of each name", f"rename one {twice!r}")


def _refuse_other_form(path: Path, line: str, layout: str | None, form: Form, field: str) -> None:
    """Refuses a first line that is not of the layout: another separator, a header, columns swapped.

    Files without a header do not say what their columns are.
    """
    cells = line.split(form.separator)
    if len(cells) != len(form.columns):
        allowed = f"{layout}: {len(form.columns)} cells a line, separated by {form.separator!r}"
        refuse(field, str(path), allowed, f"the first line has {len(cells)}: is it another layout?")
    value = cells[form.columns.index("rating")]
    if number_in(value.strip()) is None:
        told = f"{path}, line 1"
        remedy = f"the rating is {legible(value)[:30]!r}: leave layout out, or drop a header"
        refuse(field, told, f"{layout}: a file without a header", remedy)
    if layout in ("amazon-2014", "amazon-2018"):
        user, item = (cells[form.columns.index(name)] for name in ("user", "item"))
        # Products have ten letters and digits; users begin with A and have more.
        if len(user) == 10 and not user.startswith("A") and item.startswith("A") and len(item) > 10:
            other = "amazon-2018" if layout == "amazon-2014" else "amazon-2014"
            allowed = f"{layout}: columns {', '.join(form.columns[:2])}"
            refuse(field, str(path), allowed, f"users and items are swapped: layout={other!r}?")


def _flagged(row: Sequence[str]) -> str:
    """Returns the genres of a film of MovieLens 100K, whose flags are 0 or 1."""
    flags = row[-len(_GENRES) :]
    named = zip(_GENRES, flags, strict=True)
    return "|".join(name for name, flag in named if flag.strip() == "1" and name != "unknown")


# --- columns of a file of text ---


def _text(
    source: Source, names: Sequence[str], field: str, encoding: str, drop_uneven: bool
) -> tuple[dict[str, Column], int]:
    """Reads columns of CSV and its like; arguments as in `read`."""
    assert source.path is not None
    width, uneven = len(source.columns), 0
    known: list[dict[str, int]] = [{} for _ in names]
    # Four bytes a cell.
    codes = [array("i") for _ in names]
    places = [source.columns.index(name) for name in names]
    parts = list(zip(places, known, (each.append for each in codes), strict=True))
    with tables.opened(source.path, field) as file:
        for number, row in _records(source, source.path, file, encoding, field):
            if len(row) == width:
                for place, own, append in parts:
                    append(own.setdefault(row[place], len(own)))
            elif len(row) > 1 or "".join(row).strip():  # else an empty line
                if not drop_uneven:
                    told = f"{source.shown}, line {number:,}"
                    remedy = f"it has {len(row)}: mend that line"
                    refuse(field, told, f"a row of {width} cells", remedy)
                uneven += 1
    for name, own in zip(names, known, strict=True):
        for cell in own:
            if source.form.quoted and not tables.is_plain(cell):
                where = place_of(source, name, cell.strip(), 0)
                told = f"{source.shown}, {where}, {cell[:30]!r}"
                refuse(field, told, "a plain cell", tables.NOT_PLAIN)
    found = {
        name: Column.of(each, own) for name, each, own in zip(names, codes, known, strict=True)
    }
    return found, uneven


# --- columns of a data frame and of Parquet ---


def is_frame(given: Any) -> bool:
    """Tells whether it is a data frame of pandas, which is imported only if it may be one."""
    if type(given).__name__ != "DataFrame":
        return False
    import pandas as pd

    return isinstance(given, pd.DataFrame)


def _frame_columns(frame: Any, field: str) -> tuple[str, ...]:
    try:
        names = tuple(map(str, frame.columns))
    except Exception as error:  # names may be any objects
        remedy = f"rename the columns ({reason_of(error)})"
        refuse(field, "a data frame", "a table whose columns have names", remedy)
    _refuse_twice("a data frame", names, field)
    return names


def _frame(source: Source, names: Sequence[str], field: str) -> dict[str, Column]:
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


def _parquet(field: str) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        remedy = 'pip install "fmab_jax[export]", or save the table as CSV'
        refuse(field, "a .parquet file", "read with pyarrow, which is not installed", remedy)
    return parquet


@contextlib.contextmanager
def _opened_parquet(path: Path, field: str) -> Iterator[Any]:
    """Gives an open Parquet file; whatever a damaged one raises becomes a refusal."""
    parquet = _parquet(field)
    with tables.opened(path, field) as file:
        try:
            yield parquet.ParquetFile(file)
        except Refusal:
            raise
        except Exception as error:
            refuse(
                field, str(path), "a Parquet file", f"save it again ({legible(reason_of(error))})"
            )


def _parquet_columns(path: Path, field: str) -> tuple[str, ...]:
    with _opened_parquet(path, field) as file:
        names = tuple(file.schema_arrow.names)
    _refuse_twice(str(path), names, field)
    return names


def _parquet_read(
    source: Source, path: Path, names: Sequence[str], field: str
) -> dict[str, Column]:
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
    told = f"{source.shown}, column {name!r}"
    kind = cells.type.value_type if kinds.is_dictionary(cells.type) else cells.type
    single = ("integer", "floating", "decimal", "boolean", "null")
    texts = ("string", "large_string", "string_view", "binary", "large_binary", "date", "time")
    if not any(getattr(kinds, f"is_{each}")(kind) for each in (*single, *texts, "timestamp")):
        refuse(field, told, allowed, f"it is {brief(str(kind))}: save its parts as columns")
    try:
        if kinds.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if not any(getattr(kinds, f"is_{each}")(kind) for each in single):
            cells = cells.cast(pa.string())
        encoded = cells.dictionary_encode()
    except pa.ArrowException as error:
        refuse(field, told, allowed, f"save it as texts ({reason_of(error)})")
    place = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    distinct = encoded.dictionary
    if kinds.is_floating(kind):
        return place, distinct.to_numpy(zero_copy_only=False)
    return place, distinct.to_pylist()


def _texts(
    cells: Iterable[Any], codes: np.ndarray, above: int, source: Source, name: str, field: str
) -> list[str]:
    """Returns cells as texts, "" where one is missing.

    Args:
        cells: Distinct, or one for each row.
        codes: [row] places of cells.
        above: How many rows stand above these.
        source: The table.
        name: Column.
        field: Name of the argument, for refusals.

    Raises:
        ValueError: If a cell is neither a text, a number nor a date.
    """
    found = []
    for i, cell in enumerate(cells):
        try:
            found.append(_text_of(cell))
        except Exception as error:  # a cell may be any object
            row = above + int((codes == i).argmax()) + 1
            told = Shown(f"{source.shown!r}, row {row:,}, column {brief(name)}")
            allowed = "a text, a number or a date" if error.args != _ROUNDED else _ROUNDED[0]
            refuse(field, told, allowed, f"save it so (it is {brief(cell)})")
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


def named(columns: Sequence[str]) -> str:
    """Returns the names of columns, no more of them than a line holds."""
    listed = ", ".join(legible(name)[:20] for name in columns[:12])
    return listed + ", ..." * (len(columns) > 12)


def lacking(field: str, name: str, columns: Sequence[str], where: str) -> NoReturn:
    """Refuses the name of a column that no table has."""
    listed = named(columns)
    remedy = did_you_mean(name, columns, "give the name of one")
    refuse(field, name, f"a column of {where}: {listed}", remedy)
