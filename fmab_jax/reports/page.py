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
from typing import TYPE_CHECKING, NamedTuple

import xarray as xr

from fmab_jax import __version__
from fmab_jax.analysis import budgets, costs, privacy, questions, statements
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.words import write_short
from fmab_jax.errors import Refusal, real, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.plots import captions
from fmab_jax.reports import content
from fmab_jax.reports.content import Cell, Content
from fmab_jax.run.attributes import LONGEST
from fmab_jax.sweeps.results import read

if TYPE_CHECKING:
    import jinja2

_Source = str | os.PathLike[str] | xr.Dataset
Sources = _Source | Sequence[_Source] | Mapping[str, _Source]

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
    sources: Sources,
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
            Or the folder of a plan, see `fmab plan --out`.
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
        >>> problem = fmab.Problem(agents=5, arms=10)
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
    path = check_out(out, overwrite)
    if title is not None and (
        not isinstance(title, str) or not title.strip() or len(title) > LONGEST
    ):
        refuse("title", title, f"a text of at most {LONGEST:,} letters", "shorten it")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    prices = content.Prices(server_price=server_price, peer_price=peer_price)
    from fmab_jax.planning.answers import read_document
    from fmab_jax.reports import plan_page

    if (plan := plan_page.find_plan(sources)) is not None:
        whole = plan_page.render_plan(read_document(plan, "sources"), title)
    else:
        whole = render_page(content.read_content(read_results(sources), title, level, prices))
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.encode("utf-8", "replace"))
    return path


def check_out(out: object, overwrite: bool) -> Path:
    """Checks the path of a page before any result is read."""
    path = check_path("out", out)
    if path.suffix != ".html":
        refuse("out", str(path), "a file name ending in .html", "change the ending")
    refuse_taken(path, overwrite, "out")
    return path


def read_results(sources: Sources) -> dict[str, xr.Dataset]:
    """Returns results by label."""
    if isinstance(sources, (str, os.PathLike, xr.Dataset)):
        sources = [sources]
    allowed = "a path, a Dataset, a list of paths, or a dict of either by label"
    if not isinstance(sources, (list, tuple, Mapping)) or not sources:
        refuse("sources", sources, allowed, "pass what fmab run or fmab sweep wrote")
    if isinstance(sources, Mapping):
        return {str(label): _read_result(item, allowed) for label, item in sources.items()}
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
        results[label] = _read_result(item, allowed)
    return results


def _read_result(item: object, allowed: str) -> xr.Dataset:
    if isinstance(item, (str, os.PathLike)):
        return read(item, partial=True)
    if not isinstance(item, xr.Dataset) or not {"regret", "regret_mean"} & set(item):
        refuse("sources", type(item).__name__, allowed, "pass what simulate or sweep returned")
    if not {"seed", "time_2"} & set(item.sizes) or "meter" not in item.coords:
        refuse("sources", "without seeds or meters", allowed, "pass it unchanged")
    return item


def render_template(name: str, **values: object) -> str:
    """Returns the page of a template as text."""
    files = resources.files("fmab_jax.reports")
    script, style = ((files / f"report.{end}").read_text("utf-8") for end in ("js", "css"))
    return (
        _load_templates()
        .get_template(name)
        .render(
            version=__version__,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            script=script,
            style=style,
            **values,
        )
    )


def render_page(report: Content) -> str:
    """Returns the page as text."""
    cells = [cell for cell in report.cells[:_MOST_ROWS] if cell.complete]
    return render_template(
        "page.html.j2",
        report=report,
        percent=f"{100 * report.level:.6g} %",
        leak_note=costs.LEAK_NOTE,
        best=_describe_best(report),
        headlines=_choose_headlines(report.compared),
        drawn=content.draw_curves(report),
        ends=[picture for source in report.sources for picture in content.draw_finals(source)],
        finals=_tabulate_finals(report),
        spending=_tabulate_spending(report, cells),
        compared=_tabulate_comparisons(report),
        tally=statements.count_verdicts(report.compared),
        all_pairs=questions.ALL_PAIRS,
        ledgers=_tabulate_ledgers(report),
        wrong=_tabulate_failures(report, cells),
        unlucky=any(cell.row.get(event) for cell in cells for event in captions.EVENTS),
    )


def _describe_best(report: Content) -> list[str]:
    """Describes the smallest regret for each trust, or says why there is no ranking."""
    whole = report.complete
    for name in set(questions.QUESTIONS) & {*report.axes}:
        # A smaller problem has less regret without a better run.
        whole = [cell for cell in whole if cell.at_reference.get(name, True)] or whole
    if any(questions.list_differences(whole[0].question, cell.question) for cell in whole):
        return ["Their means are not ranked: horizons, sizes or problems differ."]
    groups: dict[tuple[str, object], list[Cell]] = {}
    for cell in sorted(whole, key=lambda cell: cell.row["regret"]):
        # Leaks of different views cannot be compared.
        view = cell.cost.view if cell.cost.is_bounded else None
        groups.setdefault((cell.cost.trust, view), []).append(cell)
    return [_describe_least(report, cells, len(groups) > 1) for cells in groups.values()]


def _describe_least(report: Content, cells: Sequence[Cell], has_groups: bool) -> str:
    """Describes the smallest regret and the smallest leak of one trust."""

    def number(cell: Cell) -> str:
        regret = write_short(cell.row["regret"])
        return f"{regret} {_write_interval(cell.row)} ({100 * report.level:.6g} %): {cell.label}"

    best, safest = cells[0], min(cells, key=lambda cell: (cell.cost.leak, cell.cost.delta))
    # Of a smaller epsilon and a smaller delta, neither leaks less.
    is_safest = not any(cell.cost.delta < safest.cost.delta for cell in cells)
    trust = f"Trusted “{best.cost.trust or 'not known'}”: the" if has_groups else "The"
    differs = len({cell.leak for cell in cells}) > 1
    takes = f", which leaks {best.leak}" * (differs or (has_groups and best.cost.is_bounded))
    heading = f"smallest mean regret at the horizon, of {len(cells):,} configurations,"
    start = heading if len(cells) > 1 else "mean regret at the horizon"
    sentence = f"{trust} {start} is {number(best)}{takes}."
    if is_safest and safest.leak != best.leak:
        sentence += f" The smallest leak, {safest.leak}, has {number(safest)}."
    return sentence


def _choose_headlines(compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns the comparisons of the headline: all, or the largest differences."""
    if len(compared) <= _HEADLINES:
        return list(compared)
    finite = [comparison for comparison in compared if math.isfinite(comparison.percent)]
    return sorted(finite, key=lambda pair: -abs(pair.percent))[:_HEADLINES]


def _tabulate_finals(report: Content) -> Table:
    """Returns the table of final values, a row for each configuration."""
    heads = _list_headings(report)
    first, has_several = len(heads), len(report.cells) > 1
    exposures = [cell.cost for cell in report.cells]
    shared = costs.find_shared_observation(exposures)
    heads += [
        costs.write_leak_heading(exposures),
        "regret",
        f"interval, {100 * report.level:.6g} %",
        "± %",
    ]
    heads += ["rounds", *(f"links, {name}" for name in report.meters), "cost", "seeds"]
    rows = []
    for cell in report.cells[:_MOST_ROWS]:
        row, place = cell.row, _list_places(report, cell)
        if not cell.complete:
            rows.append([*place, "no seeds yet"] + [""] * (len(heads) - first - 1))
            continue
        keys = [f"links_{name}" for name in report.meters]
        links = [write_short(row[key]) if key in row else "" for key in keys]
        place += [
            costs.write_leak_cell(cell.cost, shared),
            write_short(row["regret"]),
            _write_interval(row),
        ]
        ends = [write_short(row["cost"]), f"{int(row['seeds']):,}"]
        half = (row["regret_upper"] - row["regret_lower"]) / 2
        percent = f"{100 * half / row['regret']:.2g}" if row["regret"] else "0"
        rows.append([*place, percent, write_short(row["rounds_made"]), *links, *ends])
    caption = "Final values" + ", a row for each configuration" * has_several
    return Table(caption, heads, rows, first, "sortable" * has_several)


def _tabulate_spending(report: Content, cells: Sequence[Cell]) -> Table:
    """Returns the table of what single runs spend, a row for each configuration."""
    places = _list_headings(report)
    heads, numbers = budgets.write_cells([cell.spent for cell in cells])
    rows = [
        [*_list_places(report, cell), *texts] for cell, texts in zip(cells, numbers, strict=True)
    ]
    caption = "Links, numbers and bits of a run: mean, 95 % quantile and maximum"
    return Table(caption, [*places, *heads], rows, len(places), "sortable" * (len(rows) > 1))


def _list_headings(report: Content) -> list[str]:
    """Returns the headings of the columns that name a configuration."""
    return ["result"] * (len(report.sources) > 1) + [*report.axes.values()] or ["configuration"]


def _list_places(report: Content, cell: Cell) -> list[str]:
    """Returns the texts that name a configuration in a table, a text for each heading."""
    ticks = [cell.ticks[name] or "–" for name in report.axes]
    return [cell.source] * (len(report.sources) > 1) + ticks or [cell.label]


def _tabulate_comparisons(report: Content) -> Table:
    names = ["at"] * any(comparison.at for comparison in report.compared) + ["first", "second"]
    numbers = ["leaks ε", "regret, first", "regret, second", "difference", "interval", "per cent"]
    numbers += ["interval of it", "p-value", "p-value, Holm"]
    sides = [side for pair in report.compared for side in pair.participants]
    shared = costs.find_shared_observation(sides)
    rows = []
    for comparison in report.compared:
        row = comparison.cells(shared)
        # Minus signs of numbers, as people write them.
        texts = [re.sub(r"(?<![\w.])-(?=\d)", "−", row[name]) for name in numbers]
        rows.append([*(row[name] for name in names), *texts])
    heads = [*names, costs.write_leak_heading(sides, "leaks"), *numbers[1:]]
    return Table("Differences of mean regret at the horizon", heads, rows, len(names))


def _tabulate_ledgers(report: Content) -> list[tuple[Table, list[str]]]:
    """Returns the privacy ledger of each result, with its notes."""
    tables = []
    for source in report.sources:
        if "ledger" not in source.data.coords:
            continue
        rows, notes = privacy.write_table(source.data)
        titles = len({row["title"] for row in rows}) > 1
        columns = {"title": "algorithm"} if titles else {}
        columns |= {"viewer": "viewer", "observation": "what they see"}
        columns |= {"where": "of which runs"} if any(row["where"] for row in rows) else {}
        columns |= {"epsilon": "ε over the whole run", "why": "why", "source": "source"}
        texts = [[row[name] for name in columns] for row in rows]
        caption = "What is told of one reward, and to whom"
        caption += f": {source.label}" * bool(source.label)
        tables.append((Table(caption, [*columns.values()], texts, 1 + titles, "words"), notes))
    return tables


def _tabulate_failures(report: Content, cells: Sequence[Cell]) -> Table:
    """Returns the table of seeds that went wrong."""
    heads = _list_headings(report)
    first = len(heads)
    exposures = [cell.cost for cell in report.cells]
    shared = costs.find_shared_observation(exposures)
    heads += [costs.write_leak_heading(exposures), "seeds"]
    # Where means change, no arm is lost.
    events = [event for event in captions.EVENTS if any(event in cell.row for cell in cells)]
    for event_text in (captions.EVENTS[event] for event in events):
        heads += [event_text, f"share, {100 * report.level:.6g} %"]
    heads.append("still exploring")
    rows = []
    for cell in cells:
        row = cell.row
        values = [costs.write_leak_cell(cell.cost, shared), f"{int(row['seeds']):,}"]
        for event in events:
            if event not in row:
                values += ["-", "-"]
                continue
            low, high = row[f"{event}_lower"], row[f"{event}_upper"]
            number = round(row[event] * row["seeds"])
            values += [f"{number:,}", f"[{100 * low:.2g}, {100 * high:.2g}] %"]
        undecided = round(row["undecided"] * row["seeds"])
        rows.append([*_list_places(report, cell), *values, f"{undecided:,}"])
    return Table("Seeds that went wrong", heads, rows, first, "sortable" * (len(rows) > 1))


def _write_interval(row: Mapping[str, float]) -> str:
    return f"[{write_short(row['regret_lower'])}, {write_short(row['regret_upper'])}]"


@functools.cache
def _load_templates() -> jinja2.Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("fmab_jax", "reports"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
