"""Opens and selects results, and prints tables of them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import option, rename_fields, visible
from fmab_jax.errors import PlainText, Refusal, did_you_mean, parse_number, refuse
from fmab_jax.parameters import Real

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

# Width of output without a terminal; wider if numbers need it.
_WIDTH = 100


LEVEL = Real(low=0.0, high=1.0, open_low=True, open_high=True)
PRICE = Real(low=0.0, high=1e100)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Options of commands that read results."""

    folder: str = option(metavar="FOLDER|FILE.nc", word=True)
    """A sweep's folder, or a .nc file of fmab run, fmab export or fmab_jax.save."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """Options of tables and figures of results."""

    level: float | None = option(None, kind=LEVEL, default_text="0.95")
    """Confidence level of intervals and bands; after --until, over all looks together."""
    server_price: float = option(1, kind=PRICE)
    """c1, price of a link between agent and server."""
    peer_price: float = option(1, kind=PRICE)
    """c2, price of a link between agents."""

    @property
    def prices(self) -> dict[str, float]:
        """Both prices, as functions take them."""
        return {"server_price": self.server_price, "peer_price": self.peer_price}


@dataclass(frozen=True, kw_only=True)
class Reading(Stored, Priced):
    """Options of commands that make a table or a figure of results."""

    select: tuple[str, ...] = option((), metavar="NAME=VALUE", default_text="all")
    """Only configurations with these values."""


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """Options of commands that print a row per configuration."""

    where: tuple[str, ...] = option((), metavar="CONDITION", default_text="all")
    """Only rows of which this holds, such as "links_max<=500" or "regret<1e5": a column of csv, or
    regret, rounds, cost, seeds, lost, worse, links, leak, leak_sum, leak_actions; one of <= >= < >
    == !=; a number."""
    columns: tuple[str, ...] = option((), metavar="COLUMN", default_text="all up to links_max")
    """Only these columns: swept parameters, leak, regret, interval, percent, rounds, links, cost,
    seeds, lost, worse, links_max; links_p95, numbers, numbers_p95, numbers_max, bits, bits_p95,
    bits_max; leak_sum, leak_actions. csv has all but these two, unless they are named."""


def open_results(path: str, field: str = "folder", *, partial: bool = True) -> xr.Dataset:
    """Returns the results in a folder or a netCDF file, which the command calls ``field``."""
    from fmab_jax.analysis.tables import check_result
    from fmab_jax.sweeps import results

    with rename_fields(store=field, path=field):
        data = results.read(path, partial=partial)
        try:
            return check_result(data)
        except Refusal as error:
            raise Refusal.line(f"{visible(path)}: {error}") from None


def select_cells(data: xr.Dataset, select: Sequence[str], option: str = "--select") -> xr.Dataset:
    """Selects configurations by values, such as ("epsilon=0.5", "rounds=none").

    Args:
        data: Results.
        select: Texts NAME=VALUE.
        option: Their option, for refusals.
    """
    from fmab_jax.analysis.words import write_label

    dims = [str(name) for name in data.seeds.dims]
    places: dict[str, set[int]] = {}
    for text in select:
        name, _, value = text.partition("=")
        if name not in dims:
            single_text = "left out: there is one configuration"
            allowed = "one of " + ", ".join(dims) if dims else single_text
            remedy = did_you_mean(name, dims, "write NAME=VALUE" if dims else "drop it", str)
            raise Refusal.line(f"{option} {visible(text)}: must be {allowed}; {remedy}")
        labels = data[name].values.tolist()
        place = next((i for i, label in enumerate(labels) if _same(label, value)), None)
        if place is None:
            options = ", ".join(map(write_label, labels))[:200]
            raise Refusal.line(f"{option} {visible(text)}: must be one of {options}; choose one")
        places.setdefault(name, set()).add(place)
    return data.isel({name: sorted(at) for name, at in places.items()})


def _same(label: object, text: str) -> bool:
    if isinstance(label, str):
        return label == text or (label == "none" and text.lower() in ("none", "inf"))
    return str(label) == text or parse_number(text) == label


def line_width() -> int:
    """Returns the width of a line: that of the terminal, or 100 without one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def show_table(table: Table, *, whole: bool = True) -> None:
    """Prints a table as wide as the terminal; elsewhere in plain lines.

    Args:
        table: What to print.
        whole: Whether lines are as long as the cells need, so that none is folded.
    """
    from rich.cells import cell_len
    from rich.console import Console

    out = Console(file=sys.stdout, width=1000, highlight=False, markup=False)
    if whole and sys.stdout.isatty() and out.measure(table).maximum > line_width():
        # A narrow terminal folds headings between words, never numbers.
        for column in table.columns:
            lines, cells = str(column.header).split("\n"), map(str, column.cells)
            width = max(6, *map(cell_len, (*" ".join(lines).split(), *cells)))
            column.header = "\n".join(textwrap.fill(line, width) for line in lines)
    size = out.measure(table)
    out.width = max(line_width(), size.maximum if whole else size.minimum)
    with out.capture() as printed:
        out.print(table)
    print("\n".join(line.rstrip() for line in printed.get().split("\n")), end="")


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows under headings; long lines are folded."""
    table = plain_table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    show_table(table, whole=False)


def plain_table(title: str | None = None) -> Table:
    """Returns an empty table in the package's style."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="", box=SIMPLE_HEAD, pad_edge=False)


def check_columns(data: xr.Dataset, options: Filtered) -> None:
    """Refuses conditions and columns that the table of a result cannot have.

    Args:
        data: The result, which needs no seeds.
        options: The options.
    """
    from fmab_jax.analysis.overview import overview

    overview(data, where=options.where, columns=options.columns or None)


def note_stored(data: xr.Dataset, folder: str) -> None:
    """Prints how many more seeds a store holds, if it does."""
    if seeds := data.attrs.get("stored_seeds"):
        line = f"{folder}: there are more seeds, {seeds:,} of a configuration"
        print(f"{line}; fmab sweep with --seeds {seeds} shows them")


def print_results(
    data: xr.Dataset,
    options: Priced,
    *,
    form: str = "text",
    sort: str | None = None,
    descending: bool = False,
    where: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    empty: bool = False,
) -> None:
    """Prints a row per configuration: what was lost, what it cost and how sure that is.

    Args:
        data: Results of a sweep, or of a run.
        options: Options with level and prices.
        form: One of `FORMATS`; all but "text" are the table alone.
        sort: As in `overview`.
        descending: As in `overview`.
        where: As in `overview`.
        columns: As in `overview`.
        empty: Whether a table without rows is no error.
    """
    from fmab_jax.analysis.overview import overview

    table = overview(
        data,
        level=options.level,
        sort=sort,
        descending=descending,
        where=where,
        columns=columns,
        **options.prices,
    )
    if where and not table.rows:
        conditions = PlainText(" ".join(map(visible, where)))
        if empty:
            print(f"No configuration fulfils --where {conditions}.")
            return
        refuse("where", conditions, "true of at least one row", "loosen it")
    if form != "text":
        print(table.write(form))
        if table.remarks:
            print("\n".join(table.remarks), file=sys.stderr)
        return
    output = plain_table(table.title)
    for heading in table.headings:
        output.add_column(heading, justify="right", overflow="fold")
    for cells in table.rows:
        output.add_row(*cells)
    show_table(output)
    print("\n".join([table.legend, *table.remarks]))
