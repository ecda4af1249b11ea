"""Long tables of ratings, read column by column: CSV, Parquet and published layouts.

A file may hold tens of millions of rows. Only the columns that are asked for are read, in chunks,
and each becomes whole numbers with a list of labels. Nothing is read as another thing than its
writer meant: a table that might be is refused in one line.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.core import tables
from fmab_jax.errors import did_you_mean, reason_of, refuse
from fmab_jax.files import checked_path, read_input

CHUNK = 1_000_000
# Of tables of items and of users, which are read at once.
_MOST_BYTES = 1 << 30
# Of the first line of a file, and of the one below it.
_LONGEST_LINE = 1 << 16
# What people and programs write in place of a value.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))
_GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance"),
    *("Sci-Fi", "Thriller", "War", "Western"),
)
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
    def newline(self) -> str:
        """What ends a line, as `open` takes it; where nothing is quoted, no letter of a title."""
        return "" if self.quoted else "\n"


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
        labels: The distinct cells, as texts.
    """

    codes: np.ndarray
    labels: list[str]


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
    if type(path).__name__ == "DataFrame" and hasattr(path, "columns"):
        names = tuple(map(str, path.columns))
        _refuse_twice("a data frame", names, field)
        return Source("a data frame", names, layout or _by_header(names), Form(), None, path)
    file = checked_path(field, path)
    if _ending(file) == ".parquet":
        names = _parquet_columns(file, field)
        return Source(file.name, names, layout or _by_header(names), Form(), file)
    layout = layout or _BY_FILE.get(file.name)
    plain = Form("\t") if _ending(file) == ".tsv" else Form()
    form = LAYOUTS[layout].form if layout else plain
    first = _first_lines(file, field)
    if form.columns:
        _refuse_other_form(file, first[0], layout, form, field)
        return Source(file.name, form.columns, layout, form, file)
    names = _header(file, first, form.separator, field)
    return Source(file.name, names, layout or _by_header(names), form, file)


def read(source: Source, wanted: Iterable[str], field: str = "path") -> dict[str, Column]:
    """Reads columns.

    Args:
        source: The table.
        wanted: Names of columns that it has.
        field: Name of the argument, for refusals.

    Raises:
        ValueError: If it cannot be read.
    """
    names = list(dict.fromkeys(wanted))
    building = {name: _Building() for name in names}
    try:
        for chunk in _chunks(source, names, field):
            for name in names:
                building[name].add(*chunk[name])
    except UnicodeDecodeError:
        refuse(field, source.shown, "a UTF-8 table", "save it as CSV in UTF-8")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        refuse(field, source.shown, "a whole gzip file", "copy it again")
    return {name: each.column() for name, each in building.items()}


def read_small(source: Source, wanted: Sequence[str], field: str) -> list[tuple[str, ...]]:
    """Reads a table of items or of users as rows of texts.

    Args:
        source: The table.
        wanted: Names of columns that it has; "genres" of MovieLens 100K are made of its flags.
        field: Name of the argument, for refusals.

    Raises:
        ValueError: If it cannot be read.
    """
    if source.frame is not None or (source.path and _ending(source.path) == ".parquet"):
        columns = read(source, wanted, field)
        cells = [
            [each.labels[code] if code >= 0 else "" for code in each.codes]
            for each in columns.values()
        ]
        return list(zip(*cells, strict=True))
    assert source.path is not None
    data = read_input(source.path, field, _MOST_BYTES, "table")
    if source.path.name.lower().endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            refuse(field, source.shown, "a whole gzip file", "copy it again")
    flags = "genres" in wanted and source.columns == _FILMS_100K
    place = {name: i for i, name in enumerate(source.columns)}
    found = []
    for number, row in _records(io.StringIO(_decoded(data), source.form.newline), source.form):
        if not any(row):
            continue  # an empty line
        if len(row) != len(source.columns):
            told = f"{source.shown}, line {number}"
            allowed = f"a row of {len(source.columns)} cells"
            refuse(field, told, allowed, f"it has {len(row)}: mend that line")
        own = {"genres": _flagged(row)} if flags else {}
        found.append(tuple(own[n] if n in own else row[place[n]].strip() for n in wanted))
    return found


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
        with tables.opened(source.path, "path") as file:
            stream = _stream(source.path, file)
            text = io.TextIOWrapper(stream, "utf-8-sig", newline=source.form.newline)
            with contextlib.suppress(csv.Error):  # a cell that only pandas reads
                for line, cells in _records(text, source.form):
                    if len(cells) > place and cells[place].strip() == label:
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
        # A table of one's own is a plain one beside any layout.
        form = Form()
        if published and not hasattr(given, "columns"):
            same = _ending(Path(str(given))) == _ending(Path(published[0]))
            form = published[1] if same else form
    if form.columns:
        file = checked_path(field, given)
        return Source(file.name, form.columns, None, form, file)
    return find(given, None, field)


def genres_of(label: str, separator: str | None) -> tuple[str, ...]:
    """Returns the parts of a label, without what says that there is none."""
    parts = label.split(separator) if separator else [label]
    return tuple(dict.fromkeys(p.strip() for p in parts if p.strip() and p != _NO_GENRE))


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


def _stream(path: Path, file: IO[bytes]) -> Any:
    return gzip.GzipFile(fileobj=file) if path.name.lower().endswith(".gz") else file


def _first_lines(path: Path, field: str) -> list[str]:
    """Returns the first two lines of a file that is no archive of something else."""
    with tables.opened(path, field) as file:
        try:
            stream = _stream(path, file)
            lines = [stream.readline(_LONGEST_LINE) for _ in range(2)]
        except (OSError, EOFError):
            refuse(field, str(path), "a table of text", "this is no gzip file: name it otherwise")
    if not lines[0].strip():
        refuse(field, str(path), "a table with rows", "its first line is empty")
    if b"\0" in b"".join(lines):
        refuse(field, str(path), "a table of text", "this is a binary file: save it as CSV")
    if len(lines[0]) == _LONGEST_LINE:
        refuse(field, str(path), "a table of short lines", "its first line does not end: no CSV?")
    return [_decoded(line).rstrip("\r\n") for line in lines]


def _decoded(data: bytes) -> str:
    """Reads UTF-8, or Latin-1, which older MovieLens titles are in."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _records(text: io.TextIOBase, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Gives the rows below the header, each with the number of the line that it begins on.

    Args:
        text: Opened with the form's `newline`.
        form: How the lines are written.
    """
    begins = 1
    if form.quoted:
        rows = csv.reader(text, delimiter=form.separator)
        for row in rows:
            if form.columns or begins > 1:
                yield begins, row
            begins = rows.line_num + 1
        return
    for begins, line in enumerate(text, 1):
        if form.columns or begins > 1:
            yield begins, line.rstrip("\r\n").split(form.separator)


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _header(path: Path, lines: Sequence[str], separator: str, field: str) -> tuple[str, ...]:
    names, below = _cells(lines[0], separator), _cells(lines[1], separator)
    if len(names) == 1:
        for word, separator in (("a semicolon", ";"), ("a tab", "\t"), ("'::'", "::"), ("|", "|")):
            if separator in lines[0]:
                remedy = f"{word} separates the columns: save it with commas, or name its layout"
                refuse(field, str(path), "columns separated by commas", remedy)
    if names[0].lower() in ("", "unnamed: 0"):
        remedy = "the first column has no name, an index?: write it without, to_csv(index=False)"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) == len(names) + 1:
        remedy = "rows have one cell more than the header, an index?: write it without"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) > len(names):
        allowed = f"a table whose rows have the {len(names)} cells of the header"
        refuse(field, str(path), allowed, f"the first has {len(below)}: mend it")
    if all(tables.plain_number(name) is not None for name in names[1:]) or len(names) < 2:
        remedy = "the first line names no columns: add a header, or name its layout"
        refuse(field, str(path), "a table whose first line names the columns", remedy)
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
    if tables.plain_number(cells[form.columns.index("rating")]) is None:
        remedy = "its first line is no rating: leave layout out, or drop a header"
        refuse(field, str(path), f"{layout}: a file without a header", remedy)
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


# --- chunks of columns ---


class _Building:
    """A column while its chunks come in."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._codes: list[np.ndarray] = []

    def add(self, codes: np.ndarray, labels: Iterable[Any]) -> None:
        """Adds a chunk: the place of each cell's label, -1 for none, and the labels."""
        known = self._known
        texts = (str(label).strip() for label in labels)
        # Empty cells have no label either; a code of -1 takes the last entry.
        place = [known.setdefault(text, len(known)) if text else -1 for text in texts]
        self._codes.append(np.array([*place, -1], np.int32)[codes])

    def column(self) -> Column:
        """Returns the whole column."""
        codes = np.concatenate(self._codes) if self._codes else np.zeros(0, np.int32)
        return Column(codes, list(self._known))


_Chunk = dict[str, tuple[np.ndarray, Any]]


def _chunks(source: Source, names: Sequence[str], field: str) -> Iterator[_Chunk]:
    """Gives codes and labels of columns, some rows at a time."""
    import pandas as pd

    if source.frame is not None:
        frame = source.frame
        own = {str(name): frame[name] for name in frame.columns if str(name) in names}
        yield {name: _coded(own[name]) for name in names}
        return
    assert source.path is not None
    with tables.opened(source.path, field) as file:
        if _ending(source.path) == ".parquet":
            yield from _parquet_chunks(source, file, names, field)
            return
        form = source.form
        # Pandas reads a separator of one letter ten times as fast; '::' has an empty cell between.
        step = len(form.separator)
        heads = [f"{name} {i}" if i else name for name in source.columns for i in range(step)]
        try:
            # All columns, as texts: else a row with too many cells would pass, and 01 would be 1.
            chunks = pd.read_csv(
                _stream(source.path, file),
                sep=form.separator[0],
                header=None,
                names=heads[: len(heads) - step + 1],
                index_col=False,
                skiprows=0 if form.columns else 1,
                dtype=str,
                na_filter=False,
                quoting=csv.QUOTE_MINIMAL if form.quoted else csv.QUOTE_NONE,
                encoding="utf-8-sig",
                chunksize=CHUNK,
            )
            with chunks:
                for chunk in chunks:
                    yield {name: pd.factorize(chunk[name]) for name in names}
        except pd.errors.EmptyDataError:
            return
        except (UnicodeDecodeError, gzip.BadGzipFile):
            raise
        except (pd.errors.ParserError, OSError, ValueError) as error:
            told = reason_of(error).partition("C error: ")[2] or reason_of(error)
            refuse(field, source.shown, "a table of equally long rows", f"mend it ({told})")


def _coded(cells: Any) -> tuple[np.ndarray, list[str]]:
    """Returns codes and labels of a column; whole numbers that are floats lose their ".0"."""
    import pandas as pd

    codes, values = pd.factorize(cells)
    if pd.api.types.is_float_dtype(values.dtype):
        # Floats stand for whole numbers where a column has gaps.
        return codes, [repr(float(value)).removesuffix(".0") for value in values]
    return codes, [str(value) for value in values]


def _parquet(field: str) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        remedy = 'pip install "fmab_jax[export]", or save the table as CSV'
        refuse(field, "a .parquet file", "read with pyarrow, which is not installed", remedy)
    return parquet


def _parquet_columns(path: Path, field: str) -> tuple[str, ...]:
    parquet = _parquet(field)
    with tables.opened(path, field) as file:
        try:
            return tuple(parquet.ParquetFile(file).schema_arrow.names)
        except Exception as error:  # whatever a damaged file raises
            refuse(field, str(path), "a Parquet file", f"save it again ({reason_of(error)})")


def _parquet_chunks(
    source: Source, file: IO[bytes], names: Sequence[str], field: str
) -> Iterator[Any]:
    parquet = _parquet(field)
    try:
        for batch in parquet.ParquetFile(file).iter_batches(CHUNK, columns=list(names)):
            frame = batch.to_pandas()
            yield {name: _coded(frame[name]) for name in names}
    except Exception as error:  # whatever a damaged file raises
        refuse(field, source.shown, "a Parquet file", f"save it again ({reason_of(error)})")


def lacking(field: str, name: str, columns: Sequence[str], where: str) -> NoReturn:
    """Refuses the name of a column that no table has."""
    listed = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    remedy = did_you_mean(name, columns, "give the name of one")
    refuse(field, name, f"a column of {where}: {listed}", remedy)
