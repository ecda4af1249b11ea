"""Writes one self-contained HTML file about results: figures, tables, comparisons, the ledger."""

from __future__ import annotations

import base64
import itertools
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import pandas as pd
import xarray as xr

from fmab_jax import __version__
from fmab_jax.analysis import privacy, words
from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.comparisons import compare_all
from fmab_jax.analysis.costs import LEAK_NOTE
from fmab_jax.analysis.overview import show
from fmab_jax.analysis.tables import table
from fmab_jax.errors import Refusal, real, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.plots import captions, frames, saving
from fmab_jax.plots.lines import plot_parameter
from fmab_jax.plots.over_time import plot_runs, split_runs
from fmab_jax.run.attributes import json_attr
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.results import read

_Source = str | os.PathLike[str] | xr.Dataset
Sources = _Source | Sequence[_Source] | Mapping[str, _Source]

# Configurations and comparisons of one report.
_MOST_CELLS, _MOST_COMPARED = 1000, 40
# Letters of the heading.
_MOST_LETTERS = 1000
# Curves that one picture can tell apart; pictures of a grid of three parameters or more.
_MOST_CURVES, _MOST_PANELS = 8, 4


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
    arguments and on versions only.

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
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1), problem, horizon=10**4, seeds=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = fmab.write_report(data, os.path.join(folder, "report.html"))
        ...     path.read_text("utf-8").startswith("<!DOCTYPE html>")
        True
    """
    path = check_path("out", out)
    if path.suffix != ".html":
        refuse("out", str(path), "a file name ending in .html", "change the ending")
    refuse_taken(path, overwrite, "out")
    if title is not None and (
        not isinstance(title, str) or not title.strip() or len(title) > _MOST_LETTERS
    ):
        refuse("title", title, f"a text of at most {_MOST_LETTERS:,} letters", "shorten it")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    results = {label: check_result(data) for label, data in read_results(sources).items()}
    number = sum(data.seeds.size for data in results.values())
    if number > _MOST_CELLS:
        remedy = "select fewer: --select NAME=VALUE, or .sel(...)"
        refuse("configurations", number, f"at most {_MOST_CELLS:,} in one report", remedy)
    if max(int(data.seeds.max()) for data in results.values()) < 2:
        refuse("seeds", "fewer than 2", "at least 2 in a configuration", "resume the sweep")
    prices = {"server_price": server_price, "peer_price": peer_price}
    tables, cells = {}, dict[str, xr.Dataset]()
    for label, data in results.items():
        # A sweep until precise has a level of its own.
        table_level = None if "looks" in data.attrs and level == 0.95 else level
        tables[label] = table(data, level=table_level, **prices)
        start, runs = _start(label, results), split_runs(data)
        for name, run in runs.items():
            if run.seeds > 1:
                cells[label if start and len(runs) == 1 else start + name] = run
    titles = dict.fromkeys(str(data.attrs.get("title", "a run")) for data in results.values())
    text = _fill_template(
        title or words.shorten(f"Regret of {', '.join(titles)}"),
        {
            "What was run": _describe_runs(results, tables),
            "Regret and links over time": _draw_curves(cells, level),
            "At the horizon": _show_tables(tables),
            "Comparisons": _compare(cells if len(results) > 1 else data, level),
            "The privacy ledger": _show_ledgers(results),
            "The study, and versions": _show_origins(results),
        },
    )
    with whole_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
    return path


def read_results(sources: Sources) -> dict[str, xr.Dataset]:
    """Returns results by label; that of a path is the path without its ending."""
    if isinstance(sources, (str, os.PathLike, xr.Dataset)):
        sources = {"": sources}
    elif isinstance(sources, (list, tuple)):
        labelled = dict[str, Path]()
        for path in (check_path("sources", source) for source in sources):
            if os.path.realpath(path) in map(os.path.realpath, labelled.values()):
                refuse("sources", str(path), "distinct", "name each result once")
            label = str(path).removesuffix(".nc")
            labelled[str(path) if label in labelled else label] = path
        sources = labelled
    allowed = "a path, a Dataset, a list of paths, or a dict of either by label"
    if not isinstance(sources, Mapping) or not sources:
        refuse("sources", sources, allowed, "pass what fmab run or fmab sweep wrote")
    return {str(label): _read_result(item, allowed) for label, item in sources.items()}


def _read_result(item: object, allowed: str) -> xr.Dataset:
    if isinstance(item, (str, os.PathLike)):
        return read(item, partial=True)
    if not isinstance(item, xr.Dataset) or not {"regret", "regret_mean"} & set(item):
        refuse("sources", type(item).__name__, allowed, "pass what simulate or sweep returned")
    if not {"seed", "time_2"} & set(item.sizes) or "meter" not in item.coords:
        refuse("sources", "without seeds or meters", allowed, "pass it unchanged")
    return item


def _fill_template(title: str, sections: Mapping[str, Iterator[str]]) -> str:
    """Returns a page of sections, each of blocks of HTML by its title; empty ones are left out."""
    files = resources.files("fmab_jax.reports")
    template, css = ((files / name).read_text("utf-8") for name in ("page.html", "report.css"))
    contents, parts = list[str](), list[str]()
    for name, blocks in sections.items():
        if text := "\n".join(blocks):
            place = f"part-{len(parts)}"
            contents.append(f'<li><a href="#{place}">{escape(name)}</a></li>')
            head = f'<section id="{place}" aria-labelledby="{place}-title">'
            parts.append(f'{head}<h2 id="{place}-title">{escape(name)}</h2>\n{text}\n</section>')
    return Template(template).substitute(
        title=escape(title),
        version=__version__,
        style=css,
        contents="".join(contents),
        sections="\n".join(parts),
    )


def _write_note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _write_list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _write_table(frame: pd.DataFrame, caption: str, classes: str | None = None) -> str:
    """Returns a table of texts; of the class "words" prose is wrapped."""
    with pd.option_context("display.max_colwidth", None):
        html = frame.to_html(index=False, border=0, classes=classes)
    html = html.replace("<th>", '<th scope="col">')
    html = html.replace("<thead>", f"<caption>{escape(caption)}</caption>\n<thead>", 1)
    head = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
    return f"{head}{html}</div>"


def _write_figure(figure: saving.Figure, title: str) -> str:
    """Returns a figure as an image in the page, with its caption."""
    image = base64.b64encode(saving.write_svg(figure)).decode()
    caption = escape(f"{title}. {figure.get_label()}")
    source = f"data:image/svg+xml;base64,{image}"
    picture = f'<img src="{source}" alt="{caption}">'
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _start(label: str, results: Mapping[str, object]) -> str:
    """Returns what a line about one of several results starts with."""
    return f"{words.shorten(label)}: " * (len(results) > 1)


def _describe_runs(
    results: Mapping[str, xr.Dataset], tables: Mapping[str, pd.DataFrame]
) -> Iterator[str]:
    """Yields settings, seeds, trust, and what went wrong."""
    for label, frame in tables.items():
        attrs, start = results[label].attrs, _start(label, tables)
        seeds = f"{captions.write_seed_range(frame.seeds)}, root seed {attrs.get('root_seed', 0)}"
        trusts = " or ".join(f"“{x}”" for x in dict.fromkeys(frame.trust) if x)
        labels = frames.label_rows(frame, frames.list_varied(frame))
        events = captions.describe_events(frame, labels, frame.attrs["level"])
        lines = [f"{frame.attrs['title']}, {seeds}", f"Trusted: {trusts or 'not known'}", *events]
        if empty := int((frame.seeds < 2).sum()):
            lines.append(f"Configurations that have fewer than 2 seeds so far: {empty}")
        remarks = (" ".join(line.split()) for line in frame.attrs["remarks"])
        yield _write_list([start + line for line in (*(f"{x}." for x in lines), *remarks)])


def _draw_curves(cells: Mapping[str, xr.Dataset], level: float) -> Iterator[str]:
    """Yields the figure of regret over time, where there are few curves."""
    if len(cells) > _MOST_CURVES:
        note = f"Not drawn: more than {_MOST_CURVES} curves. fmab plot --curves draws some of them."
        yield _write_note(note)
    else:
        figure = plot_runs(cells, level=level, caption=False)
        yield _write_figure(figure, "Regret and links over time")


def _show_tables(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yields figures and the table of what is there at the horizon."""
    for label, frame in tables.items():
        start, rows = _start(label, tables), frame[frame.seeds > 1]
        # Numbers stand on the horizontal axis rather than names, and many values rather than few.
        names = sorted(
            frames.list_varied(rows),
            key=lambda name: (rows[name].dtype == object, -rows[name].nunique()),
        )
        others = names[2:]
        panels = rows.groupby(others, sort=False) if others else [((), rows)]
        for _, panel in itertools.islice(panels, _MOST_PANELS if names else 0):
            values = ", ".join(frames.label_rows(panel[:1], others))
            title = f"{start}Regret at the horizon" + f", {values}" * bool(values)
            yield _write_figure(plot_parameter(panel, *names[:2], caption=False), title)
        shown = show(frame, words=True)
        yield _write_table(shown, f"{start}Final values")
        yield _write_note(" ".join(shown.attrs["legend"]))


def _compare(compared: xr.Dataset | dict[str, xr.Dataset], level: float) -> Iterator[str]:
    """Yields a sentence for each comparison, and how they are made."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        pairs = compare_all(compared, level=level)
    yield _write_list([f"{pair.sentence}." for pair in pairs[:_MOST_COMPARED]])
    if len(pairs) > _MOST_COMPARED:
        yield _write_note(f"The first {_MOST_COMPARED} of {len(pairs)} comparisons.")
    yield from (_write_note(f"{warning.message}.") for warning in caught)
    if not pairs:
        yield _write_note(
            "Nothing is compared: there is one configuration with seeds, or they differ in "
            "horizon, size or problem, which are different questions."
        )
        return
    methods = ". ".join(dict.fromkeys(pair.method_note for pair in pairs[:_MOST_COMPARED]))
    yield _write_note(
        f"Regret at the horizon, in per cent of the second, with {100 * level:.6g} % intervals. "
        f"{LEAK_NOTE}. {methods}. A difference is shown where its p-value, adjusted by Holm's "
        f"method for all {len(pairs)} comparisons, is below {1 - level:.6g}; intervals are not "
        "adjusted. “No difference is shown” does not mean that there is none."
    )


def _show_ledgers(results: Mapping[str, xr.Dataset]) -> Iterator[str]:
    """Yields the privacy ledger of each result, with its notes."""
    heads = {"title": "algorithm", "observation": "what they see", "where": "of which runs"}
    heads |= {"epsilon": "ε over the whole run"}
    for label, data in results.items():
        if "ledger" in data.coords:
            rows, notes = privacy.write_table(data)
            frame = pd.DataFrame(rows).rename(columns=heads)
            frame = frame.loc[:, (frame != "").any()]
            caption = f"{_start(label, results)}What is told of one reward, and to whom"
            yield _write_table(frame, caption, "words")
            yield from map(_write_note, notes)


def _show_origins(results: Mapping[str, xr.Dataset]) -> Iterator[str]:
    """Yields the study file that makes each result again, and versions."""
    names = [f"{name}_version" for name in ("fmab_jax", "jax", "jaxlib", "numpy", "platform")]
    for label, data in results.items():
        start = _start(label, results)
        text, note = _write_study(data)
        yield _write_note(start + note)
        if text:
            name = escape(f"{start}study file")
            yield f'<pre tabindex="0" aria-label="{name}"><code>{escape(text)}</code></pre>'
        versions = [f"{name}: {data.attrs[name]}" for name in names if data.attrs.get(name)]
        yield _write_list([*versions, f"study_hash: {data.attrs.get('study_hash', 'not known')}"])


def _write_study(data: xr.Dataset) -> tuple[str, str]:
    """Returns the study file of a result, "" where none states it, and a note about it."""
    seeds = data.seed.values if "seed" in data else ()
    note = (
        "To make these results again, save this as study.toml and run fmab sweep study.toml. The "
        "same versions and kind of device give the same bits."
    )
    try:
        document = study_file.build_document(json_attr(data, "study"), seeds)
        text = study_file.format_document(document)
        if "means" in document["problem"]:
            return text, f"{note} Put the name of the file of means for FILE.npz."
        if study_file.build_study(tomllib.loads(text)).hash == data.attrs.get("study_hash"):
            return text, note
    except (Refusal, AttributeError, KeyError, TypeError, ValueError):
        pass  # plug-ins, or results without a full study
    return "", "No study file makes these results again: they do not hold all that made them."
