"""Long tables of ratings, read column by column: CSV, Parquet and published layouts.

A file may hold tens of millions of rows. Only the columns that are asked for are read, in chunks,
and each becomes whole numbers with a list of labels. Nothing is read as another thing than its
writer meant: a table that might be is refused in one line.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from fmab_jax.core import tables
from fmab_jax.errors import did_you_mean, refuse, setting
from fmab_jax.files import checked_path
from fmab_jax.ratings import frames
from fmab_jax.ratings.layouts import (
    BY_FILE,
    FILMS_100K,
    GENRES,
    LAYOUTS,
    Column,
    Form,
    Source,
    by_header,
    legible,
)

# Bytes of the first line of a file and of the one below it; and of any line.
_LONGEST_HEADER = 1 << 16
_LONGEST_LINE = 1 << 20
# What people and programs write in place of a value.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))
_MANY_COLONS = re.compile(":{3,}")
# What MovieLens writes where it knows no genre.
_NO_GENRE = "(no genres listed)"


def find(path: Any, layout: str | None = None, field: str = "path") -> Source:
    """Looks at a table: which columns it has, and which layout; what is no table is refused.

    A layout that is not given is recognised by the name or the header. Refusals name ``field``.
    """
    if frames.is_frame(path):
        names = frames.frame_columns(path, field)
        return Source("a data frame", names, layout or by_header(names), Form(), None, path)
    file = checked_path(field, path)
    if _ending(file) == ".parquet":
        names, form = frames.parquet_columns(file, field), Form()
    else:
        layout = layout or BY_FILE.get(file.name)
        form = LAYOUTS[layout].form if layout else Form("\t" if _ending(file) == ".tsv" else ",")
        first = _first_lines(file, field)
        if form.columns:
            _refuse_other_form(file, first[0], layout, form, field)
        names = form.columns or _header(file, first, form.separator, field)
    return Source(legible(file.name), names, layout or by_header(names), form, file)


def read(
    source: Source, wanted: Iterable[str], field: str = "path", *, drop_uneven: bool = False
) -> tuple[dict[str, Column], int]:
    """Reads columns; returns them by name, and how many uneven rows were dropped."""
    names = list(dict.fromkeys(wanted))
    if source.frame is not None:
        return frames.frame_read(source, names, field), 0
    assert source.path is not None
    if _ending(source.path) == ".parquet":
        return frames.parquet_read(source, source.path, names, field), 0
    for encoding in source.form.encodings:
        with contextlib.suppress(UnicodeDecodeError):
            return _text(source, names, field, encoding, drop_uneven)
    refuse(field, source.shown, "a UTF-8 table", "save it as CSV in UTF-8")


def read_small(source: Source, wanted: Sequence[str], field: str) -> list[tuple[str, ...]]:
    """Reads a table of items or users as rows of texts; MovieLens 100K's flags make "genres"."""
    flags = GENRES if "genres" in wanted and source.columns == FILMS_100K else ()
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
    """Returns the table about "items" or "users": what is given, or the layout's beside it."""
    published = getattr(source.published, kind) if source.published else None
    # A table that the user gives is read as a plain one, whatever the layout.
    form = Form()
    if given is None:
        if published is None or source.path is None:
            return None
        given, form = source.path.with_name(published[0]), published[1]
        if not given.exists():
            return None
    elif published and not frames.is_frame(given):
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


def number_in(text: str) -> float | None:
    """Returns the number that a cell is, NaN for one that is missing, None for anything else."""
    if text.lower() in MISSING:
        return math.nan
    return tables.plain_number(text)


# --- what a file looks like ---


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


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
        if "\r" in row or colons:
            mistake = "a carriage return that ends no line"
            if colons and "\r" not in row:
                mistake = f"{colons[0][:9]!r}, which can be cut in several ways"
            allowed = f"{len(form.columns)} cells separated by {form.separator!r}"
            where = f"{source.shown}, line {number:,}"
            refuse(field, where, allowed, f"it has {mistake}: mend that line")
        yield number, row.split(form.separator)


def _header(path: Path, lines: Sequence[str], separator: str, field: str) -> tuple[str, ...]:
    _, row = next(tables.records([lines[0]], field, legible(path.name), separator))
    names = [cell.strip() for cell in row]
    below: list[str] = []
    with contextlib.suppress(csv.Error):  # refused when the rows are read
        below = next(csv.reader([lines[1]], delimiter=separator), [])
    if len(names) == 1:
        for word, separator in (("a semicolon", ";"), ("a tab", "\t"), ("'::'", "::"), ("|", "|")):
            if separator in lines[0]:
                remedy = f"{word} separates the columns: save it with commas, or name its layout"
                refuse(field, str(path), "columns separated by commas", remedy)
    if len(names) < 2 or all(tables.plain_number(name) is not None for name in names[1:]):
        remedy = "the first line names no columns: add a header, or name its layout"
        refuse(field, str(path), "a table whose first line names the columns", remedy)
    if names[0].lower() in tables.UNNAMED:
        remedy = "the first column has no name, an index?: write it without, to_csv(index=False)"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) == len(names) + 1:
        remedy = "rows have one cell more than the header, an index?: write it without"
        refuse(field, str(path), "a table whose columns have names", remedy)
    if lines[1] and len(below) > len(names):
        allowed = f"a table whose rows have the {len(names)} cells of the header"
        refuse(field, str(path), allowed, f"the first has {len(below)}: mend it")
    tables.refuse_twice(str(path), names, field)
    return tuple(names)


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
        where = f"{path}, line 1"
        remedy = f"the rating is {legible(value)[:30]!r}: leave layout out, or drop a header"
        refuse(field, where, f"{layout}: a file without a header", remedy)
    if layout in ("amazon-2014", "amazon-2018"):
        user, item = (cells[form.columns.index(name)] for name in ("user", "item"))
        # Products have ten letters and digits; users begin with A and have more.
        if len(user) == 10 and not user.startswith("A") and item.startswith("A") and len(item) > 10:
            other = "amazon-2018" if layout == "amazon-2014" else "amazon-2014"
            allowed = f"{layout}: columns {', '.join(form.columns[:2])}"
            remedy = f"users and items are swapped: {setting(layout=other)}?"
            refuse(field, str(path), allowed, remedy)


def _flagged(row: Sequence[str]) -> str:
    """Returns the genres of a film of MovieLens 100K, whose flags are 0 or 1."""
    flags = row[-len(GENRES) :]
    named = zip(GENRES, flags, strict=True)
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
                    where = f"{source.shown}, line {number:,}"
                    remedy = f"it has {len(row)}: mend that line"
                    refuse(field, where, f"a row of {width} cells", remedy)
                uneven += 1
    for name, own in zip(names, known, strict=True):
        for cell in own:
            if source.form.quoted and not tables.is_plain(cell):
                where = place_of(source, name, cell.strip(), 0)
                text = f"{source.shown}, {where}, {cell[:30]!r}"
                refuse(field, text, "a plain cell", tables.NOT_PLAIN)
    columns = map(Column.of, codes, known)
    return dict(zip(names, columns, strict=True)), uneven


def named(columns: Sequence[str]) -> str:
    """Returns the names of columns, no more of them than a line holds."""
    listed = ", ".join(legible(name)[:20] for name in columns[:12])
    return listed + ", ..." * (len(columns) > 12)


def lacking(field: str, name: str, columns: Sequence[str], where: str) -> NoReturn:
    """Refuses the name of a column that no table has."""
    remedy = did_you_mean(name, columns, "give the name of one")
    refuse(field, name, f"a column of {where}: {named(columns)}", remedy)
