"""One self-contained HTML file: semantic, printable, readable without scripts, without a network.

The plotting library lies in the file, compressed; the browser unpacks it. A content security
policy in the file allows the two scripts that it holds, by their hashes, and no request at all.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import xarray as xr

from fmab_jax.analysis import comparisons, statements
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.words import is_number, short
from fmab_jax.errors import Refusal, price, real, refuse
from fmab_jax.files import checked_path, refuse_taken, same_file, whole_file
from fmab_jax.plots import captions
from fmab_jax.reports import again, content, pictures
from fmab_jax.reports.content import Cell, Content
from fmab_jax.reports.frame import escaped as _e
from fmab_jax.reports.frame import framed
from fmab_jax.reports.frame import own as _own
from fmab_jax.reports.pictures import Picture
from fmab_jax.run.attributes import LONGEST
from fmab_jax.sweeps.results import read

# Rows of a table on the page; the sentence below it says what is left out.
_MOST_ROWS = 300
# Columns of every table of comparisons.
_CONTRAST = ("difference", "interval", "per cent", "interval of it")
# A sentence for each comparison, of so many at the top.
_HEADLINES = 4


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
    costs = {
        "server_price": price("server_price", server_price),
        "peer_price": price("peer_price", peer_price),
    }
    options = [*(["--select", *select] if select else [])]
    options += ["--level", f"{level!r}"] * (level != 0.95)
    options += ["--title", title] if title is not None else []
    for name, value in costs.items():
        options += [f"--{name.replace('_', '-')}", f"{value!r}"] * (value != 1)
    options += ["--out", str(out)] * (str(out) != "report.html")
    whole = page(content.gathered(results, title=title, level=level, options=options, **costs))
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.encode("utf-8", "replace"))
    return path


def checked_out(out: Any, overwrite: bool) -> Path:
    """Returns where a page shall stand, having made sure that it can, before anything is read."""
    path = checked_path("out", out)
    if path.suffix != ".html":
        refuse("out", str(path), "a file name ending in .html", "change the ending")
    try:
        refuse_taken(path, overwrite)
    except Refusal as error:
        raise (error.renamed("out") if error.field == "path" else error) from None
    return path


def results_of(sources: Any) -> dict[str, tuple[xr.Dataset, str | None]]:
    """Returns results by label, each with the path that it was read from.

    Args:
        sources: As in `write_report`.
    """
    if isinstance(sources, (str, os.PathLike, xr.Dataset)):
        sources = [sources]
    allowed = "a path, a Dataset, a list of paths, or a dict of either by label"
    if not isinstance(sources, (list, tuple, Mapping)) or not sources:
        refuse("sources", sources, allowed, "pass what fmab run or fmab sweep wrote")
    found: dict[str, tuple[xr.Dataset, str | None]] = {}
    if isinstance(sources, Mapping):
        for label, item in sources.items():
            found[str(label)] = _result(item, allowed)
        return found
    for item in sources:
        if isinstance(item, xr.Dataset) and len(sources) > 1:
            refuse("sources", "several Datasets", "labelled", "write {'label': data}")
        label = "" if isinstance(item, xr.Dataset) else _stem(item)
        if not isinstance(item, xr.Dataset):
            place = again.where_from(item)
            for _, other in found.values():
                # The same by another name: a link, or a path that goes round.
                if other is not None and same_file(place, other):
                    remedy = f"it is {other}: " * (place != other) + "name each result once"
                    refuse("sources", place, "distinct", remedy)
            # Files of one name lie in different folders.
            label = place if label in found else label
        found[label] = _result(item, allowed)
    return found


def _stem(path: Any) -> str:
    whole = Path(os.path.abspath(checked_path("sources", path)))
    return whole.stem if whole.suffix == ".nc" else whole.name


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
    drawn, ends = pictures.curves(made), pictures.finals(made)
    parts = [
        ("question", "The question", _question(made)),
        ("short", "In short", _short(made)),
        ("regret", "Regret over time", _regret(made, drawn)),
        ("links", "Communication", _links(made, drawn)),
        ("finals", "At the horizon", _finals(made, ends)),
        ("price", "The price of privacy", _price(made)),
        ("comparisons", "Comparisons", _comparisons(made)),
        ("ledger", "The privacy ledger", _ledger(made)),
        ("wrong", "Wrong commitments", _wrong(made)),
        ("again", "Versions, and how to make it again", _again(made)),
    ]
    parts = [part for part in parts if part[2]]
    (packed, digest), script = _library(), _own("report.js")
    hashes = f"'sha256-{digest}' 'sha256-{_digest(script)}'"
    allowed = f"script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
    return framed(
        made.title,
        made.question[0],
        parts,
        allowed=allowed,
        before='<p id="status" class="note" role="status" hidden></p>\n',
        footer="Its interactive figures are drawn by plotly.js (MIT licence), which lies inside.",
        after=f"""<script type="application/json" id="data">{_json(_interactive(made))}</script>
<script type="text/plain" id="library">{packed}</script>
<script>{script}</script>
""",
    )


def _question(made: Content) -> str:
    lines = "".join(f"<li>{_e(line)}</li>" for line in made.question[1:])
    rows = "".join(f"<div><dt>{_e(k)}</dt><dd>{_e(v)}</dd></div>" for k, v in made.settings)
    return f'<ul class="facts">{lines}</ul>\n<dl class="settings">{rows}</dl>\n'


def _short(made: Content) -> str:
    known = [cell for cell in made.cells if math.isfinite(cell.row["regret"])]
    for i, axis in enumerate(made.axes):
        if axis.name in comparisons.QUESTIONS:  # a smaller problem is less regret, no better run
            known = [cell for cell in known if cell.at[i] in (None, axis.reference)] or known
    best = min(known, key=lambda cell: cell.row["regret"])
    ends = _interval(best.row, "regret")
    percent = f"{100 * made.level:.6g} %"
    if not all(comparisons.alike(known[0].asked, cell.asked) for cell in known):
        told = "Their means are not ranked: horizons, sizes or problems differ."
    elif len(known) == 1:
        told = f"The mean regret at the horizon is {short(best.row['regret'])} {ends} ({percent})"
        told += f": {best.label}." if len(made.cells) > 1 else "."
    else:
        told = (
            f"The smallest mean regret at the horizon, of {len(known):,} configurations, is "
            f"{short(best.row['regret'])} {ends} ({percent}): {best.label}."
        )
    found = [each.html for each in _headlines(made.compared)]
    items = [_e(told), *found, *map(_e, made.events)]
    shown = "".join(f"<li>{each}</li>" for each in items)
    note = ""
    if made.compared:
        note = _note(
            "Intervals in brackets are for the number before them: the percentage, or the "
            "difference where there is none. The comparisons have their p-values under "
            "“Comparisons”."
        )
    return f'<ul class="findings">{shown}</ul>\n{note}'


def _headlines(compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns a few comparisons to begin with: all, or the largest, of each parameter one first."""
    if len(compared) <= _HEADLINES:
        return list(compared)
    known = [each for each in compared if math.isfinite(each.percent)]
    known.sort(key=lambda each: -abs(each.percent))
    first = {each.varied: each for each in reversed(known)}
    chosen = [each for each in known if each is first[each.varied]]
    chosen += [each for each in known if each is not first[each.varied]]
    return sorted(chosen[:_HEADLINES], key=lambda each: -abs(each.percent))


def _regret(made: Content, drawn: Sequence[Picture]) -> str:
    words = f"Lines: means over the seeds; shaded: {made.band}."
    still = _still(drawn, "Regret and links over time")
    if not still:
        still = '<p class="static">There is no static picture of a summary: see the tables.</p>\n'
    names = [cell.label for cell in pictures.shown_first(made)]
    if drawn and len(names) < len(made.cells):
        told = f"The picture shows {len(names)} of {len(made.cells):,} configurations"
        still += f'<p class="static note">{_e(told)}: the others are in the tables below.</p>\n'
    live = (
        '<div class="live" hidden>\n<form class="controls" id="curve-controls" '
        'aria-label="Which curves are shown"></form>\n'
        '<figure><div class="plot" id="plot-regret"></div>'
        f"<figcaption>Cumulative regret, summed over all agents, against the slot. {_e(words)} "
        '<span id="curves-told"></span></figcaption></figure>\n</div>\n'
    )
    left = "".join(f"<p class='note'>{_e(line)}.</p>\n" for line in made.left_out)
    return live + still + left


def _links(made: Content, drawn: Sequence[Picture]) -> str:
    told = (
        "Links so far, of completed rounds: means over the seeds, with the pointwise "
        f"{100 * made.level:.6g} % interval of the mean. The curves are those chosen above."
    )
    counted = "".join(f"<li>{_e(words)}</li>" for words in made.meters.values())
    several = len(made.meters) > 1
    live = (
        '<div class="live" hidden>\n<form class="controls" id="link-controls" '
        'aria-label="What is counted"></form>\n'
        '<figure><div class="plot" id="plot-links"></div>'
        f"<figcaption>{_e(told)}</figcaption></figure>\n</div>\n"
    )
    note = "Different meters are different counts: either may be the larger." * several
    still = '<p class="static">The lower panel of the picture above shows the links.</p>\n'
    still *= bool(drawn)
    return f"<ul>{counted}</ul>\n{_note(note)}{live}{still}"


def _finals(made: Content, ends: Sequence[Picture]) -> str:
    text = ""
    if made.axes and len(made.cells) > 1:
        text += (
            '<div class="live" hidden>\n<form class="controls" id="final-controls" '
            'aria-label="What is drawn against what"></form>\n'
            '<figure><div class="plot" id="plot-finals"></div>'
            f"<figcaption>Points: means over the seeds at the horizon; bars: {_e(made.interval)}. "
            '<span id="finals-told"></span></figcaption></figure>\n</div>\n'
        )
        text += _still(ends, "Regret at the horizon")
    return text + _table(made)


def _table(made: Content) -> str:
    """Returns the table of final values, a row for each configuration."""
    percent = f"{100 * made.level:.6g} %"
    several = len(made.cells) > 1
    heads = [axis.title for axis in made.axes] if made.axes else ["configuration"]
    heads += ["leak ε", "regret", f"interval, {percent}", "± %", "rounds"]
    links = [name for name in made.meters if name != "the cost"]
    heads += [*(f"links, {name}" for name in links), "cost", "seeds"]
    rows = []
    for cell in made.cells[:_MOST_ROWS]:
        row = cell.row
        first = _where(made, cell)
        if not math.isfinite(row["regret"]):
            rows.append(
                (first, [("no seeds yet", "")] + [("", "")] * (len(heads) - len(first) - 1))
            )
            continue
        half = (row["regret_upper"] - row["regret_lower"]) / 2
        share = f"{100 * half / row['regret']:.2g}" if row["regret"] else "0"
        values: list[tuple[str, Any]] = [
            (cell.leak, cell.leak),
            (short(row["regret"]), row["regret"]),
            (_interval(row, "regret"), row["regret_lower"]),
            (share, share),
            (short(row["rounds_made"]), row["rounds_made"]),
            *(
                (short(cell.links[n]), cell.links[n]) if n in cell.links else ("", "")
                for n in links
            ),
            (short(row["cost"]), row["cost"]),
            (f"{int(row['seeds']):,}", row["seeds"]),
        ]
        rows.append((first, values))
    server, peer = (f"{each:g}" for each in made.costs)
    note = (
        f"Regret, rounds, links and cost are means over the seeds. Interval: {made.interval}. "
        f"Cost: {server} per server link, {peer} per peer link. Links are those of completed "
        f"rounds. ± %: half of the interval, in per cent of the mean. {statements.LEAK_NOTE}."
    )
    if len(made.cells) > _MOST_ROWS:
        note += f" The first {_MOST_ROWS} of {len(made.cells):,} configurations are listed."
    caption = "Final values" + ", a row for each configuration" * several
    return _tabular(caption, heads, rows, sortable=several) + _note(note)


def _where(made: Content, cell: Cell) -> list[tuple[str, Any]]:
    """Returns the texts that name a configuration in a table, one for each parameter."""
    if not made.axes:
        return [(cell.label, "")]
    named: list[tuple[str, Any]] = []
    for axis, at in zip(made.axes, cell.at, strict=True):
        if at is None:
            named.append(("–", ""))
        else:
            number = axis.numbers[at]
            # Among numbers, what is none sorts as a text, behind them.
            text = axis.ticks[at] if any(each is not None for each in axis.numbers) else at
            named.append((axis.ticks[at], text if number is None else number))
    return named


def _price(made: Content) -> str:
    if not made.price:
        epsilons = [_epsilon(source.data) for source in made.sources]
        if len(made.sources) > 1 and len(set(epsilons)) > 1:
            listed = "; ".join(
                f"{source.label}: {value or 'not told'}"
                for source, value in zip(made.sources, epsilons, strict=True)
            )
            told = f"Each result has one ε ({listed}). See “Comparisons” for their differences."
            return _note(told)
        one = f" ({epsilons[0]})" if epsilons[0] else ""
        told = f"All runs here have one ε{one}, so nothing shows what privacy costs. Run several: "
        return f'<p class="note">{_e(told)}<code>--epsilon 0.1 1 none</code>.</p>\n'
    # Each result has a reference of its own.
    bases = list(dict.fromkeys(each.second for each in made.price))
    base = bases[0] if len(bases) == 1 else "the reference"
    named = {"difference": "extra regret", "regret, first": "regret"}
    named |= {"regret, second": f"regret, {base}"}
    named |= {"interval of it": f"interval, {100 * made.level:.6g} %"}
    chosen = ("leaks ε", "regret, first", "regret, second", *_CONTRAST)
    where = any(each.at for each in made.price)
    heads = ["at"] * where + ["compared with"] + [named.get(name, name) for name in chosen]
    rows = []
    for each in made.price:
        cells = each.cells()
        first: list[tuple[str, Any]] = [cells["at"]] * where
        first.append((f"{each.first} with {each.second}", ""))
        rows.append((first, [_typeset(cells[name]) for name in chosen]))
    shown = [each for each in made.price if each.shown and each.difference > 0]
    largest = max(shown or made.price, key=lambda each: each.difference)
    start = "The largest extra regret that is shown" if shown else "No extra regret is shown"
    told = f"{_e(start)}: {largest.html}"
    if not shown:
        told = f"{_e(start)} of any value of ε that was run. {largest.html}"
    note = (
        "The price of privacy is the extra regret at the horizon beside the reference: the run "
        "without noise, or with the largest ε where there is none. Other parameters are at their "
        "reference. What is shown is decided here among the values of ε of one result. Under "
        "“Comparisons” the same pair is adjusted together with all pairs there. "
        f"{statements.LEAK_NOTE}. {_how(made.price)}"
    )
    caption = f"What privacy costs, beside {base}"
    return f"<p>{told}</p>\n" + _tabular(caption, heads, rows) + _note(note)


def _epsilon(data: xr.Dataset) -> str:
    """Writes the one privacy parameter of a result; "" where it does not say it."""
    for name in ("epsilon", "epsilon_message"):
        value: Any = data.attrs.get(name)
        if name in data.coords and data[name].size == 1:
            value = data[name].values.reshape(-1).tolist()[0]
        if value == "none" or (is_number(value) and math.isinf(value)):
            return "no noise"
        if is_number(value):
            return f"ε = {value:g}" + " per message" * (name == "epsilon_message")
    return ""


def _comparisons(made: Content) -> str:
    if not made.compared:
        cells = [cell for cell in made.cells if math.isfinite(cell.row["regret"])]
        if len(cells) < 2:
            return _note("There is one configuration with seeds, and nothing to compare it with.")
        ends = {cell.asked["horizon"] for cell in cells}
        if len(ends) > 1:
            return _note(
                "These configurations have different horizons, and regret grows with time."
            )
        return _note(
            "These configurations have different sizes or problems. Their regrets answer different "
            "questions, and are not compared."
        )
    where = any(each.at for each in made.compared)
    names = ["at"] * where + ["first", "second"]
    numbers = ["leaks ε", *_CONTRAST, "p-value", "p-value, Holm"]
    rows = []
    for each in made.compared:
        row = each.cells()
        rows.append(([row[name] for name in names], [_typeset(row[name]) for name in numbers]))
    told = "".join(f"<li>{each.html}</li>" for each in made.compared)
    alone = len(made.compared) == 1
    number = "one comparison" if alone else f"{len(made.compared)} comparisons"
    adjusted = (
        "There is one comparison, so its p-value is not adjusted."
        if alone
        else f"p-values are adjusted for all {number} by Holm's method. Each interval holds at "
        f"{100 * made.level:.6g} % by itself and is not adjusted."
    )
    chosen = ""
    if len(made.cells) > comparisons.ALL_PAIRS:
        chosen = (
            "One parameter varies at a time; the others stay at their reference (“none”, the "
            "largest number, or the first value), which does not depend on the results. "
            if len(made.sources) == 1
            else "Each is compared with the first one of its horizon, sizes and problem. "
        )
    note = (
        f"Regret at the horizon, first minus second, per cent of the second. {chosen}"
        f"{statements.LEAK_NOTE}. "
        f"{_how(made.compared)} {adjusted} “No difference is shown” means an adjusted p-value of "
        f"at least {1 - made.level:.3g}: it does not mean that there is none."
    )
    caption = "Differences of mean regret at the horizon"
    count = "" if alone else f"<p>{_e(statements.tally(made.compared))}.</p>\n"
    return f"{count}<ul>{told}</ul>\n" + _tabular(caption, names + numbers, rows) + _note(note)


def _how(found: Iterable[Comparison]) -> str:
    return " ".join(dict.fromkeys(f"{each.how}." for each in found))


def _typeset(cell: tuple[str, Any]) -> tuple[str, Any]:
    """Writes minus signs of numbers as people do."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", cell[0]), cell[1]


def _ledger(made: Content) -> str:
    text = ""
    for label, rows, notes in content.ledgers(made.sources):
        titles = len({row["title"] for row in rows}) > 1
        some = any(row["where"] for row in rows)
        heads = ["algorithm"] * titles + ["who", "what they see"] + ["of which runs"] * some
        heads += ["ε over the whole run", "why", "source"]
        listed = []
        for row in rows:
            first: list[tuple[str, Any]] = [(row["title"], "")] * titles
            first.append((row["who"], ""))
            values: list[tuple[str, Any]] = [(row["what"], "")] + [(row["where"], "")] * some
            values += [(row["epsilon"], ""), (row["why"], ""), (row["source"], "")]
            listed.append((first, values))
        caption = "What is told of one reward, and to whom" + f": {label}" * bool(label)
        text += _tabular(caption, heads, listed, words=True)
        text += "".join(_note(note) for note in notes)
    return text


def _wrong(made: Content) -> str:
    percent = f"{100 * made.level:.6g} %"
    heads = [axis.title for axis in made.axes] if made.axes else ["configuration"]
    heads += ["leak ε", "seeds"]
    kept = any("regret" in source.data for source in made.sources)
    for words in captions.EVENTS.values():
        heads += [words, f"share, {percent}"] + ["largest regret of these"] * kept
    heads.append("still exploring")
    rows = []
    total = 0
    for cell in made.cells[:_MOST_ROWS]:
        row = cell.row
        if not math.isfinite(row["regret"]):
            continue
        values: list[tuple[str, Any]] = [(cell.leak, cell.leak)]
        values.append((f"{int(row['seeds']):,}", row["seeds"]))
        for event in captions.EVENTS:
            total += int(row[event])
            ends = content.clopper(row[event], row["seeds"], made.level)
            values += [(f"{int(row[event]):,}", row[event]), (ends, row[f"{event}_upper"])]
            if kept:
                worst = cell.worst[event]
                values.append(("–", 0) if worst is None else (short(worst), worst))
        values.append((f"{int(row['undecided']):,}", row["undecided"]))
        rows.append((_where(made, cell), values))
    note = (
        "A mean hides rare catastrophes. A seed has lost the best arm when some agent's active "
        "set has none left; it plays a worse arm when some agent has decided for one at the "
        "horizon. Shares: Clopper-Pearson intervals, which never cover less than they say; with "
        "no such seed they end above 0. Still exploring: seeds that have not decided for an arm. "
        f"{statements.LEAK_NOTE}."
    )
    if not total:
        note = "No seed listed here went wrong. " + note
    caption = "Seeds that went wrong"
    return _tabular(caption, heads, rows, sortable=len(rows) > 1) + _note(note)


def _again(made: Content) -> str:
    text = ""
    for source in made.sources:
        found = source.again
        title = f"<h3>{_e(source.label)}</h3>\n" * bool(source.label)
        text += title
        if found.text:
            words = {"shell": "Type this into a shell.", "python": "Run this in Python."}
            lead = words.get(found.kind, "")
            if int(source.data.seeds.size) < (number := content.stated(source.data)):
                lead += f" It computes all {number:,} configurations of the study."
            text += f"<p>{_e(lead)}</p>\n" * bool(lead)
            name = f"Command: {source.label}" if source.label else "Command"
            text += _code(found.text, name)
        if found.note:
            text += f"<p>{_e(found.note)}</p>\n"
        if found.text:
            sure = (
                "Checked: it states the same configurations, seeds and slots."
                if found.checked
                else "Not checked: these results do not hold all that they depend on."
            )
            text += _note(f"{sure} The same versions and kind of device give the same bits.")
        rows = content.versions(source.data)
        shown = "".join(f"<div><dt>{_e(k)}</dt><dd>{_e(v)}</dd></div>" for k, v in rows)
        text += f'<dl class="settings">{shown}</dl>\n'
    paths = [source.path for source in made.sources]
    if all(paths):
        named = " ".join(again.quoted(path) for path in paths if path)
        text += "<p>A page such as this one is written from the results by:</p>\n"
        how = "".join(f" {again.quoted(word)}" for word in made.options)
        text += _code(f"fmab report {named}{how}", "Command of this page")
    return text


def _interactive(made: Content) -> dict[str, Any]:
    """Returns what the script draws."""
    from fmab_jax.plots import style

    finals: dict[str, Any] = {}
    shown = {"regret": "regret at the horizon", "rounds_made": "rounds completed"}
    shown["cost"] = "communication cost"
    for name, words in shown.items():
        values = [[cell.row[name + end] for end in ("", "_lower", "_upper")] for cell in made.cells]
        finals[name] = {"title": words, "values": values}
    for meter, words in made.meters.items():
        if meter != "the cost":
            links = [[cell.links.get(meter, math.nan)] * 3 for cell in made.cells]
            finals[f"links {meter}"] = {"title": words, "values": links}
    order = [axis.name for axis in pictures.order_of(made.axes)]
    strokes = ["solid", "dash", "dot", "dashdot"]
    log = bool(made.curves["cells"]) and _is_log(made.curves["grids"])
    whole: dict[str, Any] = _plain(
        {
            "axes": [axis._asdict() for axis in made.axes],
            "order": order,
            "cells": [{"label": cell.label, "at": cell.at} for cell in made.cells],
            "first": [made.cells.index(cell) for cell in pictures.shown_first(made)],
            "meters": made.meters,
            "curves": made.curves,
            "finals": finals,
            "colours": list(style.COLOURS),
            "strokes": strokes,
            "logTime": log,
        }
    )
    return whole


def _is_log(grids: Sequence[Sequence[int]]) -> bool:
    """Tells whether recorded slots are spaced evenly in their logarithm."""
    return all(len(g) > 2 and g[0] > 0 and g[len(g) // 2] ** 2 < 2 * g[0] * g[-1] for g in grids)


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it: no infinity, and null for what is not known."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _json(value: Any) -> str:
    """Writes JSON that cannot end the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _tabular(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[tuple[Sequence[tuple[str, Any]], Sequence[tuple[str, Any]]]],
    *,
    sortable: bool = False,
    words: bool = False,
) -> str:
    """Returns a table; of each row, the first part are its headings.

    Args:
        caption: Of the table.
        heads: Of the columns.
        rows: Cells as (text, value to sort by).
        sortable: Whether the script may sort it.
        words: Whether its cells are words rather than numbers.
    """

    def cell(tag: str, text: str, value: Any, scope: str = "") -> str:
        sort = f' data-v="{_e(str(value))}"' if sortable and value != "" else ""
        return f"<{tag}{scope}{sort}>{_e(text)}</{tag}>"

    head = "".join(f'<th scope="col">{_e(name)}</th>' for name in heads)
    body = []
    for first, rest in rows:
        cells = [cell("th", text, value, ' scope="row"') for text, value in first]
        cells += [cell("td", text, value) for text, value in rest]
        body.append(f"<tr>{''.join(cells)}</tr>")
    kind = " ".join([*["sortable"] * sortable, *["words"] * words])
    label = _e(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f'<table class="{kind}">'
        f"<caption>{label}</caption><thead><tr>{head}</tr></thead>\n<tbody>"
        + "\n".join(body)
        + "</tbody></table></div>\n"
    )


def _still(drawn: Sequence[Picture], what: str) -> str:
    """Returns static pictures as figures."""
    found = ""
    for each in drawn:
        title = f"{what}: {each.title}" if each.title else what
        found += (
            f'<figure class="static still"><img src="{each.uri}" alt="{_e(title)}. '
            f'{_e(each.caption)}"><figcaption><strong>{_e(title)}.</strong> '
            f"{_e(each.caption)}</figcaption></figure>\n"
        )
    return found


def _note(text: str) -> str:
    return f'<p class="note">{_e(text)}</p>\n' if text else ""


def _code(text: str, name: str) -> str:
    return f'<pre tabindex="0" aria-label="{_e(name)}"><code>{html.escape(text)}</code></pre>\n'


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
