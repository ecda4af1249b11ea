"""One self-contained HTML file: semantic, printable, readable without scripts, without a network.

The plotting library lies in the file, compressed; the browser unpacks it. A content security
policy in the file allows the two scripts that it holds, by their hashes, and no request at all.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import xarray as xr

from fmab_jax.analysis import comparisons, costs, privacy, statements, words
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.words import is_number, short
from fmab_jax.errors import price, real, refuse
from fmab_jax.files import checked_path, refuse_taken, same_file, whole_file
from fmab_jax.plots import captions
from fmab_jax.reports import again, content, pictures
from fmab_jax.reports.content import Cell, Content
from fmab_jax.reports.frame import Table, own, rendered
from fmab_jax.run.attributes import LONGEST, said
from fmab_jax.sweeps.results import read

# Rows of a table on the page; the sentence below it says what is left out.
_MOST_ROWS = 300
# Columns of every table of comparisons.
_CONTRAST = ("difference", "interval", "per cent", "interval of it")
# A sentence for each comparison, of so many at the top.
_HEADLINES = 4
# A cell of a table: its text, or its text and what it is sorted by.
_Cell = str | tuple[str, Any]


def write_report(
    sources: Any,
    out: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    level: float = 0.95,
    server_price: float = 1.0,
    peer_price: float = 1.0,
    overwrite: bool = False,
) -> Path:
    """Writes one self-contained HTML page about results: figures, tables, comparisons, ledger.

    The page needs no network and makes no request. Its figures can be hovered over, switched and
    put on logarithmic axes with native controls. Without scripts, and on paper, it shows static
    pictures in their place. Its bytes depend on the results, on the arguments and on versions only.

    Args:
        sources: A sweep's folder or a .nc file, or several in a list; or a Dataset of `simulate`
            or `sweep`; or a dict of such things by the labels to show. Up to 1,000 configurations.
        out: Where to write, ending in .html.
        title: Of the page; by default the algorithms' titles.
        level: Confidence level of bands and intervals, in (0, 1).
        server_price: c1, price of a link between agent and server, at least 0.
        peer_price: c2, price of a link between agents, at least 0.
        overwrite: Whether a file of that name may be replaced.

    Returns:
        The path written.

    Raises:
        ValueError: If a source is no result or damaged, an argument is out of range, or the name
            is taken.
        OSError: If it cannot be written; nothing is left behind.

    Example:
        >>> import os, tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1), problem, horizon=10**4, seeds=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = fmab.write_report(data, os.path.join(folder, "report.html"))
        ...     path.read_text("utf-8").startswith("<!DOCTYPE html>")
        True
    """
    checked_out(out, overwrite)
    how: dict[str, Any] = {"server_price": server_price, "peer_price": peer_price}
    return write(results_of(sources), out, title=title, level=level, overwrite=overwrite, **how)


def write(
    results: Mapping[str, tuple[xr.Dataset, str | None]],
    out: str | os.PathLike[str],
    *,
    title: str | None,
    level: float,
    server_price: float,
    peer_price: float,
    overwrite: bool,
    select: Sequence[str] = (),
) -> Path:
    """Writes the page about results by label, each with its path; other arguments as above.

    ``select`` are the texts NAME=VALUE by which results were selected, for the page's own command.
    """
    path = checked_out(out, overwrite)
    if title is not None and (
        not isinstance(title, str) or not title.strip() or len(title) > LONGEST
    ):
        refuse("title", title, f"a text of at most {LONGEST:,} letters", "shorten it")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    given = {"server_price": server_price, "peer_price": peer_price}
    costs = {name: price(name, value) for name, value in given.items()}
    options = ["--select", *select] if select else []
    usual = {"level": 0.95, "title": None, "server_price": 1, "peer_price": 1, "out": "report.html"}
    for name, value in {"level": level, "title": title, **costs, "out": str(out)}.items():
        if value != usual[name]:
            options += [f"--{name.replace('_', '-')}", f"{value}"]
    whole = page(content.gathered(results, title=title, level=level, options=options, **costs))
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.encode("utf-8", "replace"))
    return path


def checked_out(out: Any, overwrite: bool) -> Path:
    """Returns where a page shall stand, having made sure that it can, before anything is read."""
    path = checked_path("out", out)
    if path.suffix != ".html":
        refuse("out", str(path), "a file name ending in .html", "change the ending")
    refuse_taken(path, overwrite, "out")
    return path


def results_of(sources: Any) -> dict[str, tuple[xr.Dataset, str | None]]:
    """Returns results by label, each with the path that it was read from."""
    if isinstance(sources, (str, os.PathLike, xr.Dataset)):
        sources = [sources]
    allowed = "a path, a Dataset, a list of paths, or a dict of either by label"
    if not isinstance(sources, (list, tuple, Mapping)) or not sources:
        refuse("sources", sources, allowed, "pass what fmab run or fmab sweep wrote")
    if isinstance(sources, Mapping):
        return {str(label): _result(item, allowed) for label, item in sources.items()}
    found: dict[str, tuple[xr.Dataset, str | None]] = {}
    for item in sources:
        label = ""
        if not isinstance(item, xr.Dataset):
            whole = Path(os.path.abspath(checked_path("sources", item)))
            label = whole.stem if whole.suffix == ".nc" else whole.name
            place = again.where_from(item)
            for _, other in found.values():
                # The same by another name: a link, or a path that goes round.
                if other is not None and same_file(place, other):
                    remedy = f"it is {other}: " * (place != other) + "name each result once"
                    refuse("sources", place, "distinct", remedy)
            # Files of one name lie in different folders.
            label = place if label in found else label
        elif len(sources) > 1:
            refuse("sources", "several Datasets", "labelled", "write {'label': data}")
        found[label] = _result(item, allowed)
    return found


def _result(item: Any, allowed: str) -> tuple[xr.Dataset, str | None]:
    if isinstance(item, (str, os.PathLike)):
        return read(item, partial=True), again.where_from(item)
    if not isinstance(item, xr.Dataset) or not {"regret", "regret_mean"} & set(item):
        refuse("sources", type(item).__name__, allowed, "pass what simulate or sweep returned")
    if not {"seed", "time_2"} & set(item.sizes) or "meter" not in item.coords:
        refuse("sources", "without seeds or meters", allowed, "pass it unchanged")
    return item, None


def page(made: Content) -> str:
    """Returns the page as text."""
    (packed, digest), script = _library(), own("report.js")
    wrong, unlucky = _wrong(made)
    paths = [source.path for source in made.sources]
    typed = ["fmab", "report", *map(str, paths), *made.options]
    return rendered(
        "reports/page.html.j2",
        made=made,
        percent=f"{100 * made.level:.6g} %",
        leak_note=costs.LEAK_NOTE,
        unlike=len({cell.leak for cell in made.cells}) > 1,
        best=_best(made),
        headlines=_headlines(made.compared),
        drawn=pictures.curves(made),
        shown=len(pictures.shown_first(made)),
        ends=pictures.finals(made),
        finals=_finals(made),
        price=_price(made),
        largest=_largest(made.price),
        epsilons=[_epsilon(source.data) for source in made.sources],
        compared=_comparisons(made),
        tally=statements.tally(made.compared),
        all_pairs=comparisons.ALL_PAIRS,
        alone=_alone(made),
        ledgers=_ledgers(made),
        wrong=wrong,
        unlucky=unlucky,
        stated=content.stated,
        versions=content.versions,
        command=shlex.join(typed) if all(paths) else "",
        hashes=f"'sha256-{digest}' 'sha256-{_digest(script)}'",
        data=_json(_finite(_interactive(made))),
        library=packed,
        script=script,
    )


def _best(made: Content) -> list[str]:
    """Returns what is said of the smallest regret, by who is trusted, or why nothing is."""
    whole = [cell for cell in made.cells if cell.complete]
    for i, axis in enumerate(made.axes):
        if axis.name in comparisons.QUESTIONS:  # a smaller problem is less regret, no better run
            whole = [cell for cell in whole if cell.at[i] in (None, axis.reference)] or whole
    if not all(comparisons.alike(whole[0].asked, cell.asked) for cell in whole):
        return ["Their means are not ranked: horizons, sizes or problems differ."]
    whole.sort(key=lambda cell: cell.row["regret"])
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in whole:
        # Leaks in unlike views are no sizes of one thing.
        view = cell.cost.view if cell.cost.bounded else ""
        groups.setdefault((cell.cost.trust, view), []).append(cell)
    several = len(groups) > 1
    return [_least(made, cells, several) for cells in groups.values()]


def _least(made: Content, cells: Sequence[Cell], several: bool) -> str:
    """Returns what is said of the smallest regret, and the smallest leak, of one trust."""

    def number(cell: Cell) -> str:
        regret = short(cell.row["regret"])
        return f"{regret} {_interval(cell.row, 'regret')} ({100 * made.level:.6g} %)"

    best = cells[0]
    safest = min(cells, key=lambda cell: cell.cost.leak)
    trust = f"Trusted “{best.cost.trust or 'not known'}”: " * several
    unlike = len({cell.leak for cell in cells}) > 1
    takes = f", which leaks {best.leak}" * (unlike or (several and best.cost.bounded))
    start = f"{trust}{'the' if trust else 'The'}"
    if len(cells) == 1:
        named = f": {best.label}{takes}" if len(made.cells) > 1 else ""
        return f"{start} mean regret at the horizon is {number(best)}{named}."
    sentence = (
        f"{start} smallest mean regret at the horizon, of {len(cells):,} configurations, is "
        f"{number(best)}: {best.label}{takes}."
    )
    if unlike and safest.leak == best.leak:
        return f"{sentence} None of them leaks less."
    if unlike:
        sentence += f" The smallest leak, {safest.leak}, has {number(safest)}: {safest.label}."
    return sentence


def _headlines(compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns a few comparisons to begin with: all, or the largest, of each parameter one first."""
    if len(compared) <= _HEADLINES:
        return list(compared)
    known = [each for each in compared if math.isfinite(each.percent)]
    known.sort(key=lambda each: -abs(each.percent))
    first = {each.varied: each for each in reversed(known)}
    chosen = sorted(known, key=lambda each: each is not first[each.varied])[:_HEADLINES]
    return sorted(chosen, key=lambda each: -abs(each.percent))


def _finals(made: Content) -> Table:
    """Returns the table of final values, a row for each configuration."""
    several = len(made.cells) > 1
    heads = [axis.title for axis in made.axes] or ["configuration"]
    first = len(heads)
    view = costs.shared_view(cell.cost for cell in made.cells)
    heads += [
        costs.leak_heading(view),
        "regret",
        f"interval, {100 * made.level:.6g} %",
        "± %",
        "rounds",
    ]
    links = [name for name in made.meters if name != "the cost"]
    heads += [*(f"links, {name}" for name in links), "cost", "seeds"]
    rows = []
    for cell in made.cells[:_MOST_ROWS]:
        row = cell.row
        if not cell.complete:
            rows.append([*_where(made, cell), "no seeds yet"] + [""] * (len(heads) - first - 1))
            continue
        half = (row["regret_upper"] - row["regret_lower"]) / 2
        share = f"{100 * half / row['regret']:.2g}" if row["regret"] else "0"
        values: list[_Cell] = [
            (costs.leak_cell(cell.cost, view), cell.cost.leak),
            (short(row["regret"]), row["regret"]),
            (_interval(row, "regret"), row["regret_lower"]),
            (share, share),
            (short(row["rounds_made"]), row["rounds_made"]),
            *((short(cell.links[n]), cell.links[n]) if n in cell.links else "" for n in links),
            (short(row["cost"]), row["cost"]),
            (f"{int(row['seeds']):,}", row["seeds"]),
        ]
        rows.append([*_where(made, cell), *values])
    caption = "Final values" + ", a row for each configuration" * several
    return Table(caption, heads, rows, first, sortable=several)


def _where(made: Content, cell: Cell) -> list[_Cell]:
    """Returns the texts that name a configuration in a table, one for each parameter."""
    if not made.axes:
        return [cell.label]
    return [
        "–" if at is None else (axis.ticks[at], axis.sorted_by[at])
        for axis, at in zip(made.axes, cell.at, strict=True)
    ]


def _price(made: Content) -> Table:
    # Each result has a reference of its own.
    bases = list(dict.fromkeys(each.second for each in made.price))
    base = bases[0] if len(bases) == 1 else "the reference"
    named = {"difference": "extra regret", "regret, first": "regret"}
    named |= {"regret, second": f"regret, {base}"}
    named |= {"interval of it": f"interval, {100 * made.level:.6g} %"}
    chosen = ("leaks ε", "regret, first", "regret, second", *_CONTRAST)
    where = any(each.at for each in made.price)
    heads = ["at"] * where + ["compared with"] + [named.get(name, name) for name in chosen]
    view = _view(made.price)
    heads[heads.index("leaks ε")] = costs.leak_heading(view, "leaks ε")
    rows = []
    for each in made.price:
        first = [each.at] * where + [f"{each.first} with {each.second}"]
        cells = each.cells(view)
        rows.append([*first, *(_typeset(cells[name].text) for name in chosen)])
    return Table(f"What privacy costs, beside {base}", heads, rows, 1 + where)


def _largest(prices: Sequence[Comparison]) -> Comparison | None:
    """Returns the largest extra regret that is shown, or else the largest."""
    shown = [each for each in prices if each.shown and each.difference > 0]
    return max(shown or prices, key=lambda each: each.difference, default=None)


def _epsilon(data: xr.Dataset) -> str:
    """Writes the one privacy parameter of a result; "" where it does not say it."""
    for name in ("epsilon", "epsilon_message"):
        value: Any = data.attrs.get(name)
        if name in data.coords and data[name].size == 1:
            value = data[name].values.reshape(-1).tolist()[0]
        if value == "none" or is_number(value):
            text = words.privacy(value, said(data, "ledger"))
            return text + " per message" * (name == "epsilon_message" and text.startswith("ε"))
    return ""


def _alone(made: Content) -> str:
    """Returns why nothing is compared, if nothing is."""
    cells = [cell for cell in made.cells if cell.complete]
    if len(cells) < 2:
        return "There is one configuration with seeds, and nothing to compare it with."
    if len({cell.asked["horizon"] for cell in cells}) > 1:
        return "These configurations have different horizons, and regret grows with time."
    return (
        "These configurations have different sizes or problems. Their regrets answer different "
        "questions, and are not compared."
    )


def _comparisons(made: Content) -> Table:
    names = ["at"] * any(each.at for each in made.compared) + ["first", "second"]
    numbers = ["leaks ε", *_CONTRAST, "p-value", "p-value, Holm"]
    view = _view(made.compared)
    rows = []
    for each in made.compared:
        row = {name: cell.text for name, cell in each.cells(view).items()}
        rows.append([*(row[name] for name in names), *(_typeset(row[name]) for name in numbers)])
    heads = [*names, costs.leak_heading(view, "leaks ε"), *numbers[1:]]
    return Table("Differences of mean regret at the horizon", heads, rows, len(names))


def _view(compared: Sequence[Comparison]) -> str:
    return costs.shared_view(each for pair in compared for each in pair.participants)


def _typeset(text: str) -> str:
    """Writes minus signs of numbers as people do."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def _ledgers(made: Content) -> list[tuple[Table, list[str]]]:
    """Returns the privacy ledger of each result, with its notes."""
    found = []
    for source in made.sources:
        if not (ledger := source.data.attrs.get("ledger")):
            continue
        rows, notes = privacy.rows(ledger)
        titles = len({row["title"] for row in rows}) > 1
        some = any(row["where"] for row in rows)
        columns = {"title": "algorithm"} if titles else {}
        columns |= {"who": "who", "what": "what they see"}
        columns |= {"where": "of which runs"} if some else {}
        columns |= {"epsilon": "ε over the whole run", "why": "why", "source": "source"}
        listed = [[row[name] for name in columns] for row in rows]
        caption = "What is told of one reward, and to whom"
        caption += f": {source.label}" * bool(source.label)
        found.append((Table(caption, [*columns.values()], listed, 1 + titles, words=True), notes))
    return found


def _wrong(made: Content) -> tuple[Table, int]:
    """Returns the table of seeds that went wrong, and how often one did."""
    heads = [axis.title for axis in made.axes] or ["configuration"]
    first = len(heads)
    view = costs.shared_view(cell.cost for cell in made.cells)
    heads += [costs.leak_heading(view), "seeds"]
    kept = any("regret" in source.data for source in made.sources)
    for what in captions.EVENTS.values():
        heads += [what, f"share, {100 * made.level:.6g} %"] + ["largest regret of these"] * kept
    heads.append("still exploring")
    rows = []
    total = 0
    for cell in filter(lambda cell: cell.complete, made.cells[:_MOST_ROWS]):
        row = cell.row
        leak = costs.leak_cell(cell.cost, view), cell.cost.leak
        values: list[_Cell] = [leak, (f"{int(row['seeds']):,}", row["seeds"])]
        for event in captions.EVENTS:
            total += int(row[event])
            low, high = lost_interval(int(row[event]), int(row["seeds"]), made.level)
            ends = f"[{100 * low:.2g}, {100 * high:.2g}] %"
            values += [(f"{int(row[event]):,}", row[event]), (ends, row[f"{event}_upper"])]
            if kept:
                worst = cell.worst[event]
                values.append(("–", 0) if worst is None else (short(worst), worst))
        values.append((f"{int(row['undecided']):,}", row["undecided"]))
        rows.append([*_where(made, cell), *values])
    return Table("Seeds that went wrong", heads, rows, first, sortable=len(rows) > 1), total


def _interactive(made: Content) -> dict[str, Any]:
    """Returns what the script draws."""
    from fmab_jax.plots import style

    first = pictures.shown_first(made)
    finals: dict[str, Any] = {}
    shown = {"regret": "regret at the horizon", "rounds_made": "rounds completed"}
    shown["cost"] = "communication cost"
    for name, title in shown.items():
        values = [[cell.row[name + end] for end in ("", "_lower", "_upper")] for cell in made.cells]
        finals[name] = {"title": title, "values": values}
    for meter, title in made.meters.items():
        if meter != "the cost":
            links = [[cell.links.get(meter, math.nan)] * 3 for cell in made.cells]
            finals[f"links {meter}"] = {"title": title, "values": links}
    unlike = len({cell.leak for cell in made.cells}) > 1
    return {
        "axes": [axis._asdict() for axis in made.axes],
        "order": [axis.name for axis in pictures.order_of(made.axes)],
        "cells": [
            {
                "label": cell.label,
                "at": cell.at,
                "leak": f"leaks {cell.leak}" * unlike,
                "mark": captions.leak_number(cell.cost) * unlike,
            }
            for cell in made.cells
        ],
        "first": [i for i, cell in enumerate(made.cells) if any(cell is each for each in first)],
        "meters": made.meters,
        "curves": made.curves,
        "finals": finals,
        "colours": style.COLOURS,
        "strokes": ["solid", "dash", "dot", "dashdot"],
        "logTime": bool(made.curves["cells"]) and _is_log(made.curves["grids"]),
    }


def _is_log(grids: Sequence[Sequence[int]]) -> bool:
    """Tells whether recorded slots are spaced evenly in their logarithm."""
    return all(len(g) > 2 and g[0] > 0 and g[len(g) // 2] ** 2 < 2 * g[0] * g[-1] for g in grids)


def _finite(value: Any) -> Any:
    """Returns a value as JSON has it: no infinity, and null for what is not known."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _json(value: Any) -> str:
    """Writes JSON that cannot end the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _interval(row: Mapping[str, float], name: str) -> str:
    return f"[{short(row[f'{name}_lower'])}, {short(row[f'{name}_upper'])}]"


@functools.cache
def _library() -> tuple[str, str]:
    """Returns the plotting library, one script, packed for a page; and its digest."""
    whole = resources.files("plotly") / "package_data" / "plotly.min.js"
    script = whole.read_text("utf-8")
    packed = gzip.compress(script.encode(), 9, mtime=0)
    return base64.b64encode(packed).decode(), _digest(script)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
