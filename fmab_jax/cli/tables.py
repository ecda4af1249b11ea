"""One table for runs, sweeps and what is read back; where results are read from, and selected."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from tyro.conf import Positional, arg

from fmab_jax.cli.formats import FORMATS, csv_of, table_of
from fmab_jax.cli.options import Number, shown, spelt, visible
from fmab_jax.errors import Refusal, Shown, number_of, refuse

if TYPE_CHECKING:
    import xarray as xr

# Columns of plain output where there is no terminal to ask; wider where numbers need it.
_WIDTH = 100
_COLUMNS = {
    "regret": "regret",
    "rounds": "rounds_made",
    "cost": "cost",
    "seeds": "seeds",
    "lost": "best_arm_lost",
    "worse": "worse_arm_played",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the commands share that read results."""

    words: ClassVar[dict[str, str]] = {"folder": "FOLDER"}
    folder: Annotated[Positional[str], arg(metavar="FOLDER")]
    """A sweep's folder, or a .nc file of fmab run, fmab export or fmab_jax.save."""
    plugin: Annotated[str | None, arg(metavar="FILE|MODULE"), shown("none")] = None
    """Has no effect here: results are read without their algorithms."""


@dataclass(frozen=True, kw_only=True)
class Reading(Source):
    """What the commands share that make a table or a figure of results."""

    level: Annotated[Number, shown("0.95")] = None
    """Confidence level of intervals and bands; after --until, over all looks together."""
    server_price: Number = 1
    """c1, price of a link between agent and server."""
    peer_price: Number = 1
    """c2, price of a link between agents."""
    select: Annotated[tuple[str, ...], arg(metavar="NAME=VALUE"), shown("all")] = ()
    """Only configurations with these values."""


def opened(options: Source, *, partial: bool = True) -> xr.Dataset:
    """Returns the results in a sweep's folder or a netCDF file."""
    return opened_at(options, options.folder, "folder", partial=partial)


def opened_at(options: Any, path: str, field: str, *, partial: bool = True) -> xr.Dataset:
    """Returns the results at a path, which the command calls ``field``."""
    from fmab_jax.sweeps import results

    with spelt(options, store=field, path=field):
        try:
            return results.read(path, partial=partial)
        except Refusal as error:
            if "partial=True" not in error.remedy:
                raise
            remedy = "resume it, or look at what is there with fmab show"
            raise Refusal(error.field, Shown(error.value), error.allowed, remedy) from None


def _dims(data: xr.Dataset) -> list[str]:
    return [str(name) for name in data.seeds.dims]


def selected(data: xr.Dataset, select: Sequence[str], option: str = "--select") -> xr.Dataset:
    """Keeps configurations with the values asked for, such as ("epsilon=0.5", "rounds=none").

    Args:
        data: Results.
        select: Texts NAME=VALUE.
        option: Where they were given, for refusals.
    """
    dims = _dims(data)
    places: dict[str, set[int]] = {}
    for text in select:
        name, _, value = text.partition("=")
        if name not in dims:
            allowed = "one of " + ", ".join(dims) if dims else "left out"
            raise Refusal.line(f"{option} {visible(text)}: must be {allowed}; write NAME=VALUE")
        labels = data[name].values.tolist()
        matches = [i for i, label in enumerate(labels) if _same(label, value)]
        if not matches:
            listed = ", ".join(map(label_text, labels))
            told = f"must be one of {listed[:200]}; choose one"
            raise Refusal.line(f"{option} {visible(text)}: {told}")
        places.setdefault(name, set()).add(matches[0])
    return data.isel({name: sorted(found) for name, found in places.items()})


def _same(label: Any, text: str) -> bool:
    if str(label) == text or (label == "none" and text.lower() in ("none", "inf")):
        return True
    return not isinstance(label, str) and number_of(text) == label


def label_text(label: Any) -> str:
    """Writes a label; different values never look the same."""
    if isinstance(label, str):
        return label
    number = float(label)
    if number.is_integer():
        return str(int(number))
    text = epsilon_text(number)
    return text if math.isinf(number) or float(text) == number else repr(number)


def epsilon_text(value: float) -> str:
    """Writes a privacy parameter; infinity is no noise."""
    return "none" if math.isinf(value) else f"{value:.4g}"


def form_of(word: str) -> str:
    """Returns the format of a table, or refuses it."""
    if word not in FORMATS:
        refuse("format", word, f"one of {', '.join(FORMATS)}", "choose one of these")
    return word


def show_table(table: Any, *, whole: bool = True) -> None:
    """Prints a table as wide as the terminal; elsewhere in plain lines.

    Args:
        table: What to print.
        whole: Whether plain lines are as long as the columns need, so that none is folded.
    """
    from rich.console import Console

    out = Console(file=sys.stdout, highlight=False, markup=False)
    if sys.stdout.isatty():
        out.print(table)
        return
    out = Console(file=sys.stdout, width=1000, highlight=False, markup=False)
    out.width = max(_WIDTH, out.measure(table).maximum) if whole else _WIDTH
    with out.capture() as lines:
        out.print(table)
    print("\n".join(line.rstrip() for line in lines.get().split("\n")), end="")


def plain_table(title: str | None = None) -> Any:
    """Returns an empty table of the house's looks."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="", box=SIMPLE_HEAD, pad_edge=False)


def print_results(
    data: xr.Dataset,
    options: Any,
    *,
    level: float | None = None,
    sort: str | None = None,
    descending: bool = False,
    form: str = "text",
) -> None:
    """Prints a row per configuration: what was lost, what it cost and how sure that is.

    Args:
        data: Results of a sweep, or of a run.
        options: Whose prices, and whose spelling of refusals.
        level: Confidence level.
        sort: Column to sort by.
        descending: Largest first.
        form: One of `FORMATS`; all but "text" are the table alone.
    """
    from fmab_jax.analysis.tables import final_table
    from fmab_jax.analysis.words import facts

    prices = {"server_price": options.server_price, "peer_price": options.peer_price}
    with spelt(options):
        table = final_table(data, level=level, **prices)
    dims = _dims(table)
    leaks = None if "epsilon_message" in dims else data.coords.get("epsilon_message")
    if leaks is not None:
        spread = leaks.broadcast_like(table.seeds).transpose(*dims)
        table["message"] = (dims, spread.values)
    rows = []
    for place in np.ndindex(table.seeds.shape):
        cell = table.isel(dict(zip(dims, place, strict=True)))
        values = {name: cell[name].item() for name in (*dims, *_scalars(table))}
        rows.append(values | {"links": cell.links.values.tolist()})
    if sort is not None:
        rows = _sorted(rows, sort, dims, descending)
    share = f"{100 * table.attrs['level']:.6g} %"
    meters = table.meter.values.tolist()
    made = "rounds\nmade" if "rounds" in dims else "rounds"
    headings = [*(["message\nNε"] if leaks is not None else []), "regret\nat T", f"±\n{share}"]
    headings += ["±, %\nof it", made, *(f"links\n{meter}" for meter in meters), "cost", "seeds"]
    headings = [*dims, *headings, f"best arm lost\n{share}", f"worse arm played\n{share}"]
    begun = [row for row in rows if row["seeds"]]
    if form == "csv":
        named = [_named(row, meters) | {"level": table.attrs["level"]} for row in begun]
        print(csv_of(named))
        return
    texts = [[*(label_text(row[n]) for n in dims), *_found(row, len(meters))] for row in begun]
    title = ", ".join(facts(table, dims, leaks=True))
    if form != "text":
        legend = _legend(table, share).replace("\n", " ")
        print(table_of(headings, texts, f"{title}. {legend}", form))
        return
    shown = plain_table(title)
    for heading in headings:
        shown.add_column(heading, justify="right", overflow="fold")
    for cells in texts:
        shown.add_row(*cells)
    show_table(shown)
    print("\n".join([_legend(table, share), *_remarks(table, data)]))


def _named(row: dict[str, Any], meters: Sequence[str]) -> dict[str, Any]:
    """Returns what is found of a configuration by names that a program can rely on."""
    row = dict(row)
    links = row.pop("links")
    if "message" in row:
        row["epsilon_message"] = row.pop("message")
    return row | {f"links_{meter}": value for meter, value in zip(meters, links, strict=True)}


def _remarks(table: xr.Dataset, data: xr.Dataset) -> list[str]:
    """Says what a reader of the numbers had better know."""
    said = []
    if empty := int((table.seeds == 0).sum()):
        many = "configuration" + "s" * (empty > 1)
        said.append(f"{empty:,} {many} not begun yet: run the sweep's command again.")
    idle = (table.rounds_made == 0) & (table.undecided == table.seeds) & (table.seeds > 0)
    if number := int(idle.sum()):
        where = "" if table.seeds.size == 1 else f" in {number:,} of {table.seeds.size:,} rows"
        said.append(
            f"No round was completed by T{where}: T is shorter than the first epoch, every seed "
            "still explores.\nTake a longer horizon."
        )
    if int((table.best_arm_lost * _differ(table, data)).sum()):
        said.append(
            "Best arms were lost where agents differ. If only some of them report (p < 1), or each "
            'is alone,\nno bound holds: docs/theory.md, "Corollary 3 (agents differ)".'
        )
    return said


def _differ(table: xr.Dataset, data: xr.Dataset) -> Any:
    """Tells where the means of agents differ."""
    if "spread" in table.coords:
        # A label of one's own does not tell the number: then agents may differ.
        numbers = [number_of(str(label)) for label in table.spread.values.reshape(-1).tolist()]
        return table.spread.copy(data=np.reshape([n != 0 for n in numbers], table.spread.shape))
    fixed = "means" in data and data["means"].sizes.get("row", 1) > 1
    return fixed or "spread" in json.loads(table.attrs.get("settings", "{}"))


def print_ledger(data: xr.Dataset) -> None:
    """Prints who sees what of a reward; nothing of results that are older than the ledger."""
    from fmab_jax.analysis import privacy

    if ledger := data.attrs.get("ledger"):
        print("\n".join(["", *privacy.told(ledger)]))


def _scalars(table: xr.Dataset) -> list[str]:
    return [str(name) for name, values in table.data_vars.items() if "meter" not in values.dims]


def _sorted(
    rows: list[dict[str, Any]], sort: str, dims: Sequence[str], descending: bool
) -> list[dict[str, Any]]:
    # A swept round budget is called rounds as well; then the rounds that were made are not.
    columns = _COLUMNS | {name: name for name in dims}
    if sort not in columns:
        listed = ", ".join([*dims, *(name for name in _COLUMNS if name not in dims)])
        raise Refusal.line(f"--sort {visible(sort)}: must be one of {listed}; choose a column")
    key = columns[sort]
    # NaN, where there are less than two seeds, has no place in an order: it comes last.
    known = [row for row in rows if row[key] == row[key]]
    unknown = [row for row in rows if row[key] != row[key]]
    known.sort(key=lambda row: (isinstance(row[key], str), row[key]), reverse=descending)
    return known + unknown


def _found(row: dict[str, Any], meters: int) -> list[str]:
    from fmab_jax.analysis.words import short

    seeds = int(row["seeds"])
    leaks = [epsilon_text(row["message"])] if "message" in row else []
    if seeds < 2:  # no interval
        return [*leaks, *["-"] * (5 + meters), str(seeds), "-", "-"]
    half = (row["regret_upper"] - row["regret_lower"]) / 2
    events = [
        f"{int(row[name])} [{row[f'{name}_lower']:.2g}, {row[f'{name}_upper']:.2g}]"
        for name in ("best_arm_lost", "worse_arm_played")
    ]
    return [
        *leaks,
        short(row["regret"]),
        short(half),
        f"{100 * half / row['regret']:.2g}" if row["regret"] else "0",
        short(row["rounds_made"]),
        *map(short, row["links"]),
        short(row["cost"]),
        f"{seeds:,}",
        *events,
    ]


def _legend(table: xr.Dataset, share: str) -> str:
    attrs = table.attrs
    prices = f"{attrs['server_price']:g} per server link, {attrs['peer_price']:g} per peer link"
    peers = table.meter.values[((table.side == "peer") & table.priced).values]
    prices += f" ({', '.join(map(str, peers))})" * bool(len(peers))
    return (
        f"Regret, rounds, links and cost are means over the seeds; ± half the\n"
        f"{attrs['description']}.\n"
        f"Links are those of completed rounds.\n"
        f"Best arm lost, worse arm played at T: seeds, with the {share} Clopper-Pearson interval.\n"
        f"Cost: {prices}."
    )


def default_figure(folder: str) -> str:
    """Returns what the names of the figures of some results begin with."""
    path = os.path.normpath(folder)
    return str(Path(path).with_suffix("")) if path.endswith(".nc") else path
