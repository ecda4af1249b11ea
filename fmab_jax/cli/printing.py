"""Opens and selects results, and prints tables of them."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmab_jax.cli.options import option, rename_fields, visible
from fmab_jax.errors import Refusal, did_you_mean, parse_number, refuse
from fmab_jax.parameters import Real

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from rich.table import Table

# Width of output without a terminal; wider if numbers need it.
_WIDTH = 100
# Letters of a line in the heading of a column of short numbers.
_NARROW = 9
# Letters that pdflatex lacks.
_SYMBOLS = {"±": "pm", "ε": "varepsilon", "δ": "delta", "∞": "infty", "×": "times", "φ": "varphi"}
_LATEX: dict[int, str] = {ord(letter): f"$\\{name}$" for letter, name in _SYMBOLS.items()}
_LATEX |= {ord(x): f"$^{{{y}}}$" for x, y in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True)}
_LATEX |= {ord("–"): "--"}


# Other regrets than that of all agents against the arm that is best on average.
AGENT_METRICS = ("own_regret", "largest_regret", "largest_own_regret")
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
    """Only rows of which this holds, such as "links_max <= 400 and leak_messages <= 2": columns of
    csv, numbers, <= >= < > == !=, and, or, not."""
    columns: tuple[str, ...] = option((), metavar="COLUMN", default_text="the most important")
    """Only these columns, by their names in csv, such as regret, links_p95, bits_max, leak_sum,
    leak_actions or trust; a mean is shown with its interval."""


def read_results(path: str, field: str = "folder", *, partial: bool = True) -> xr.Dataset:
    """Returns the results in a folder or a netCDF file, which the command calls ``field``."""
    from fmab_jax.analysis.checks import check_result
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
    number = parse_number(text)
    is_near = isinstance(label, float) and number is not None and math.isclose(number, label)
    return str(label) == text or number == label or is_near


def line_width() -> int:
    """Returns the width of a line: that of the terminal, or 100 without one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def show_table(table: Table, *, whole: bool = True) -> None:
    """Prints a table as wide as the terminal; elsewhere in plain lines.

    Args:
        table: What to print.
        whole: Whether lines are as long as the cells need, so that none is folded.
    """
    from rich.console import Console

    out = Console(file=sys.stdout, width=1000, highlight=False, markup=False)
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
    _filter_rows(data, Priced(), options)


def note_stored(data: xr.Dataset, folder: str) -> None:
    """Prints how many more seeds a store holds, if it does."""
    if seeds := data.attrs.get("stored_seeds"):
        line = f"{folder}: there are more seeds, {seeds:,} of a configuration"
        print(f"{line}; fmab sweep with --seeds {seeds} shows them")


def print_results(
    data: xr.Dataset,
    options: Priced,
    filters: Filtered | None = None,
    *,
    form: str = "text",
    sort: str | None = None,
    descending: bool = False,
) -> pd.DataFrame:
    """Prints a row per configuration: regret, what it cost, and how sure that is.

    Args:
        data: Results of a sweep, or of a run.
        options: Options with level and prices.
        filters: Options with conditions and columns.
        form: One of `FORMATS`; all but "text" are the table alone.
        sort: Name of a column, by which rows are sorted.
        descending: Largest first.

    Returns:
        The rows.
    """
    from fmab_jax.analysis import overview

    filters = filters or Filtered()
    frame = _filter_rows(data, options, filters, sort, descending)
    columns = [*filters.columns] or None
    if filters.where and not len(frame):
        conditions = " ".join(map(visible, filters.where))
        print(f"No configuration fulfils --where {conditions}.")
        return frame
    shown = overview.show(frame, columns, words=form == "latex")
    legend, remarks = shown.attrs["legend"], shown.attrs["remarks"]
    if form == "text":
        print_texts(shown, shown.attrs["title"])
        print("\n".join([*legend, *remarks]))
        return frame
    if form == "csv":
        print(frame[columns or [*frame]].to_csv(index=False, na_rep="nan"), end="")
    else:
        caption = f"{shown.attrs['title']}. {' '.join(legend)}"
        print(
            _write_markdown(shown, caption) if form == "markdown" else _write_latex(shown, caption)
        )
    print("\n".join(remarks), end="\n" * bool(remarks), file=sys.stderr)
    return frame


def _filter_rows(
    data: xr.Dataset,
    options: Priced,
    filters: Filtered,
    sort: str | None = None,
    descending: bool = False,
) -> pd.DataFrame:
    """Returns the rows of configurations with seeds that fulfil conditions, sorted."""
    from fmab_jax.analysis import conditions, tables

    data = conditions.add_named_leaks(data, [sort, *filters.where, *filters.columns])
    table = tables.table(data, level=options.level, **options.prices)
    conditions.check_columns(table, "columns", filters.columns)
    frame = conditions.sort_rows(conditions.select_rows(table, filters.where), sort, descending)
    return frame[frame.seeds > 0]


def print_texts(texts: pd.DataFrame, title: str) -> None:
    """Prints a table of texts, whose long headings are folded."""
    output = plain_table(title)
    for heading in texts.columns:
        output.add_column(_fold_heading(heading), justify="right", overflow="fold")
    for cells in texts.values.tolist():
        output.add_row(*cells)
    show_table(output)


def _fold_heading(heading: str) -> str:
    # A percentage stays with its sign.
    whole = heading.replace(" %", "\xa0%").replace("± ", "±\xa0")
    lines = textwrap.wrap(whole, _NARROW, break_long_words=False)
    return "\n".join(lines).replace("\xa0", " ")


def _write_markdown(shown: pd.DataFrame, caption: str) -> str:
    rows = [[*shown.columns], ["--:"] * len(shown.columns), *shown.values.tolist()]
    return "\n".join([caption, "", *(f"| {' | '.join(row)} |" for row in rows)])


def _write_latex(shown: pd.DataFrame, caption: str) -> str:
    try:
        text = shown.to_latex(index=False, escape=True, column_format="r" * len(shown.columns))
    except ImportError:
        remedy = 'pip install "fmab_jax[report]"'
        refuse("format", "latex", "text, markdown or csv without jinja2", remedy)
    caption = caption.replace("%", r"\%")
    return f"% {caption}\n{text.rstrip()}".translate(_LATEX)


FORMATS = ("text", "markdown", "latex", "csv")
"""How a table can be written; "text" is for terminals."""
