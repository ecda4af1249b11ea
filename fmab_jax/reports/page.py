"""One self-contained HTML file: semantic, printable, readable without scripts or a network."""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from fmab_jax import __version__
from fmab_jax.analysis import costs, privacy, questions, statements
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.overview import percent
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.words import short
from fmab_jax.errors import Refusal, real, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.plots import captions
from fmab_jax.reports import content
from fmab_jax.reports.content import Cell, Content
from fmab_jax.run.attributes import LONGEST
from fmab_jax.sweeps.results import read

# Rows of a table on the page; the sentence below it says what is left out.
_MOST_ROWS = 300
# A sentence for each comparison, of so many at the top.
_HEADLINES = 4


class Table(NamedTuple):
    """A table."""

    caption: str  # above it
    heads: Sequence[str]  # of the columns
    rows: Sequence[Sequence[str]]
    first: int = 1  # how many cells of a row are its headings
    kind: str = ""  # its class in a page: "words" of texts, "sortable" by the script


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

    The page needs no network and makes no request. Its bytes depend on the results, on the
    arguments and on versions only. It needs the extra "report".

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
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise Refusal.line('write_report needs: pip install "fmab_jax[report]"') from None
    path = checked_out(out, overwrite)
    if title is not None and (
        not isinstance(title, str) or not title.strip() or len(title) > LONGEST
    ):
        refuse("title", title, f"a text of at most {LONGEST:,} letters", "shorten it")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    prices = {"server_price": server_price, "peer_price": peer_price}
    whole = page(content.gather(results_of(sources), title, level, prices))
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.encode("utf-8", "replace"))
    return path


def checked_out(out: Any, overwrite: bool) -> Path:
    """Returns where a page shall stand, having made sure that it can, before anything is read."""
    path = check_path("out", out)
    if path.suffix != ".html":
        refuse("out", str(path), "a file name ending in .html", "change the ending")
    refuse_taken(path, overwrite, "out")
    return path


def results_of(sources: Any) -> dict[str, xr.Dataset]:
    """Returns results by label."""
    if isinstance(sources, (str, os.PathLike, xr.Dataset)):
        sources = [sources]
    allowed = "a path, a Dataset, a list of paths, or a dict of either by label"
    if not isinstance(sources, (list, tuple, Mapping)) or not sources:
        refuse("sources", sources, allowed, "pass what fmab run or fmab sweep wrote")
    if isinstance(sources, Mapping):
        return {str(label): _result(item, allowed) for label, item in sources.items()}
    results, paths = dict[str, xr.Dataset](), set[str]()
    for item in sources:
        label = ""
        if not isinstance(item, xr.Dataset):
            path = Path(os.path.abspath(check_path("sources", item)))
            label = path.stem if path.suffix == ".nc" else path.name
            # Files of one name lie in different folders.
            label = os.path.normpath(item) if label in results else label
            if (real := os.path.realpath(path)) in paths:
                refuse("sources", os.fspath(item), "distinct", "name each result once")
            paths.add(real)
        elif len(sources) > 1:
            refuse("sources", "several Datasets", "labelled", "write {'label': data}")
        results[label] = _result(item, allowed)
    return results


def _result(item: Any, allowed: str) -> xr.Dataset:
    if isinstance(item, (str, os.PathLike)):
        return read(item, partial=True)
    if not isinstance(item, xr.Dataset) or not {"regret", "regret_mean"} & set(item):
        refuse("sources", type(item).__name__, allowed, "pass what simulate or sweep returned")
    if not {"seed", "time_2"} & set(item.sizes) or "meter" not in item.coords:
        refuse("sources", "without seeds or meters", allowed, "pass it unchanged")
    return item


def page(made: Content) -> str:
    """Returns the page as text."""
    files = resources.files("fmab_jax.reports")
    script, style = ((files / f"report.{end}").read_text("utf-8") for end in ("js", "css"))
    cells = [cell for cell in made.cells[:_MOST_ROWS] if cell.complete]
    template = _templates().get_template("page.html.j2")
    return template.render(
        made=made,
        version=__version__,
        percent=f"{100 * made.level:.6g} %",
        leak_note=costs.LEAK_NOTE,
        best=_best(made),
        headlines=_headlines(made.compared),
        drawn=content.curves(made),
        ends=[picture for source in made.sources for picture in content.finals(source)],
        finals=_finals(made),
        compared=_comparisons(made),
        tally=statements.tally(made.compared),
        all_pairs=questions.ALL_PAIRS,
        ledgers=_ledgers(made),
        wrong=_wrong(made, cells),
        unlucky=any(cell.row[event] for cell in cells for event in captions.EVENTS),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        script=script,
        style=style,
    )


def _best(made: Content) -> list[str]:
    """Returns what is said of the smallest regret, by who is trusted, or why nothing is."""
    whole = made.complete
    for name in set(questions.QUESTIONS) & {*made.axes}:
        # A smaller problem is less regret, no better run.
        whole = [cell for cell in whole if cell.at_reference.get(name, True)] or whole
    if any(questions.differences(whole[0].asked, cell.asked) for cell in whole):
        return ["Their means are not ranked: horizons, sizes or problems differ."]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in sorted(whole, key=lambda cell: cell.row["regret"]):
        # Leaks in unlike views are no sizes of one thing.
        view = cell.cost.view if cell.cost.bounded else ""
        groups.setdefault((cell.cost.trust, view), []).append(cell)
    return [_least(made, cells, len(groups) > 1) for cells in groups.values()]


def _least(made: Content, cells: Sequence[Cell], several: bool) -> str:
    """Returns what is said of the smallest regret, and the smallest leak, of one trust."""

    def number(cell: Cell) -> str:
        regret = short(cell.row["regret"])
        return f"{regret} {_interval(cell.row)} ({100 * made.level:.6g} %): {cell.label}"

    best, safest = cells[0], min(cells, key=lambda cell: cell.cost.leak)
    trust = f"Trusted “{best.cost.trust or 'not known'}”: the" if several else "The"
    unlike = len({cell.leak for cell in cells}) > 1
    takes = f", which leaks {best.leak}" * (unlike or (several and best.cost.bounded))
    many = f"smallest mean regret at the horizon, of {len(cells):,} configurations,"
    start = many if len(cells) > 1 else "mean regret at the horizon"
    sentence = f"{trust} {start} is {number(best)}{takes}."
    if safest.leak != best.leak:
        sentence += f" The smallest leak, {safest.leak}, has {number(safest)}."
    return sentence


def _headlines(compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns a few comparisons to begin with: all, or the largest differences."""
    if len(compared) <= _HEADLINES:
        return list(compared)
    known = [each for each in compared if math.isfinite(each.percent)]
    return sorted(known, key=lambda each: -abs(each.percent))[:_HEADLINES]


def _finals(made: Content) -> Table:
    """Returns the table of final values, a row for each configuration."""
    heads = _places(made)
    first, several = len(heads), len(made.cells) > 1
    view = costs.shared_view(cell.cost for cell in made.cells)
    heads += [costs.leak_heading(view), "regret", f"interval, {100 * made.level:.6g} %", "± %"]
    heads += ["rounds", *(f"links, {name}" for name in made.meters), "cost", "seeds"]
    rows = []
    for cell in made.cells[:_MOST_ROWS]:
        row, where = cell.row, _place(made, cell)
        if not cell.complete:
            rows.append([*where, "no seeds yet"] + [""] * (len(heads) - first - 1))
            continue
        keys = [f"links_{name}" for name in made.meters]
        links = [short(row[key]) if key in row else "" for key in keys]
        where += [costs.leak_cell(cell.cost, view), short(row["regret"]), _interval(row)]
        ends = [short(row["cost"]), f"{int(row['seeds']):,}"]
        rows.append([*where, percent(row), short(row["rounds_made"]), *links, *ends])
    caption = "Final values" + ", a row for each configuration" * several
    return Table(caption, heads, rows, first, "sortable" * several)


def _places(made: Content) -> list[str]:
    """Returns the headings of the columns that name a configuration."""
    return ["result"] * (len(made.sources) > 1) + [*made.axes.values()] or ["configuration"]


def _place(made: Content, cell: Cell) -> list[str]:
    """Returns the texts that name a configuration in a table, a text for each heading."""
    ticks = [cell.ticks[name] or "–" for name in made.axes]
    return [cell.source] * (len(made.sources) > 1) + ticks or [cell.label]


def _comparisons(made: Content) -> Table:
    names = ["at"] * any(each.at for each in made.compared) + ["first", "second"]
    numbers = ["leaks ε", "regret, first", "regret, second", "difference", "interval", "per cent"]
    numbers += ["interval of it", "p-value", "p-value, Holm"]
    view = costs.shared_view(each for pair in made.compared for each in pair.participants)
    rows = []
    for each in made.compared:
        row = each.cells(view)
        # Minus signs of numbers, as people write them.
        texts = [re.sub(r"(?<![\w.])-(?=\d)", "−", row[name]) for name in numbers]
        rows.append([*(row[name] for name in names), *texts])
    heads = [*names, costs.leak_heading(view, "leaks ε"), *numbers[1:]]
    return Table("Differences of mean regret at the horizon", heads, rows, len(names))


def _ledgers(made: Content) -> list[tuple[Table, list[str]]]:
    """Returns the privacy ledger of each result, with its notes."""
    found = []
    for source in made.sources:
        if not (ledger := source.data.attrs.get("ledger")):
            continue
        rows, notes = privacy.rows(ledger)
        titles = len({row["title"] for row in rows}) > 1
        columns = {"title": "algorithm"} if titles else {}
        columns |= {"who": "who", "what": "what they see"}
        columns |= {"where": "of which runs"} if any(row["where"] for row in rows) else {}
        columns |= {"epsilon": "ε over the whole run", "why": "why", "source": "source"}
        listed = [[row[name] for name in columns] for row in rows]
        caption = "What is told of one reward, and to whom"
        caption += f": {source.label}" * bool(source.label)
        found.append((Table(caption, [*columns.values()], listed, 1 + titles, "words"), notes))
    return found


def _wrong(made: Content, cells: Sequence[Cell]) -> Table:
    """Returns the table of seeds that went wrong."""
    heads = _places(made)
    first = len(heads)
    view = costs.shared_view(cell.cost for cell in made.cells)
    heads += [costs.leak_heading(view), "seeds"]
    for what in captions.EVENTS.values():
        heads += [what, f"share, {100 * made.level:.6g} %"]
    heads.append("still exploring")
    rows = []
    for cell in cells:
        row = cell.row
        values = [costs.leak_cell(cell.cost, view), f"{int(row['seeds']):,}"]
        for event in captions.EVENTS:
            low, high = lost_interval(int(row[event]), int(row["seeds"]), made.level)
            values += [f"{int(row[event]):,}", f"[{100 * low:.2g}, {100 * high:.2g}] %"]
        rows.append([*_place(made, cell), *values, f"{int(row['undecided']):,}"])
    return Table("Seeds that went wrong", heads, rows, first, "sortable" * (len(rows) > 1))


def _interval(row: Mapping[str, float]) -> str:
    return f"[{short(row['regret_lower'])}, {short(row['regret_upper'])}]"


@functools.cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("fmab_jax", "reports"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
