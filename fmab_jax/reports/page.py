"""One self-contained HTML file of everything that results say."""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.analysis import comparisons, costs, privacy, questions, words
from fmab_jax.analysis.overview import show
from fmab_jax.analysis.statements import Comparison, count_verdicts
from fmab_jax.analysis.tables import check_result, final_table, table
from fmab_jax.errors import Refusal, format_quantity, real, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.planning.answers import read_document
from fmab_jax.plots import captions
from fmab_jax.plots.parameters import plot_parameter
from fmab_jax.plots.runs import plot_runs, select_cells
from fmab_jax.reports import plan_page
from fmab_jax.reports.blocks import (
    write_code,
    write_facts,
    write_figure,
    write_list,
    write_note,
    write_page,
    write_table,
)
from fmab_jax.run.attributes import LONGEST, json_attr
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.results import read

_Source = str | os.PathLike[str] | xr.Dataset
Sources = _Source | Sequence[_Source] | Mapping[str, _Source]
Results = Mapping[str, xr.Dataset]
Prices = Mapping[str, Any]

# Configurations and comparisons of one report, and rows of a table.
_MOST_CELLS, _MOST_COMPARED, _MOST_ROWS = 1000, 40, 300
# Comparisons at the top.
_HEADLINES = 4
# Curves that one picture can tell apart; pictures of a grid's third parameter.
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
    path = check_out(out, overwrite)
    if title is not None and (
        not isinstance(title, str) or not title.strip() or len(title) > LONGEST
    ):
        refuse("title", title, f"a text of at most {LONGEST:,} letters", "shorten it")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    prices = {"server_price": server_price, "peer_price": peer_price}
    if (plan := plan_page.find_plan(sources)) is not None:
        whole = plan_page.render_plan(read_document(plan, "sources"), title)
    else:
        whole = render_page(read_results(sources), title, level, prices)
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


def render_page(results: Results, title: str | None, level: float, prices: Prices) -> str:
    """Returns the page of results by label."""
    results = {label: check_result(data) for label, data in results.items()}
    number = sum(int(data.seeds.size) for data in results.values())
    if number > _MOST_CELLS:
        remedy = "select fewer: --select NAME=VALUE, or .sel(...)"
        refuse("configurations", number, f"at most {_MOST_CELLS:,} in one report", remedy)
    if max(int(data.seeds.max()) for data in results.values()) < 2:
        refuse("seeds", "fewer than 2", "at least 2 in a configuration", "resume the sweep")
    parts = [
        _Result(words.shorten(label) * (len(results) > 1), data, level, prices)
        for label, data in results.items()
    ]
    cells = {name: cell for part in parts for name, cell in part.list_cells().items()}
    titles = dict.fromkeys(part.title for part in parts)
    compared, notes = _compare(parts, cells, level)
    events = [line for part in parts for line in part.describe_events()]
    sections = {
        "What was run": [
            write_list(dict.fromkeys(part.start + part.frame.attrs["title"] for part in parts)),
            write_facts([fact for part in parts for fact in part.list_settings()]),
        ],
        "In short": [
            write_list([*(f"{x.sentence}." for x in _choose_headlines(compared)), *events]),
            *map(write_note, notes),
        ],
        "Regret and links over time": _draw_curves(parts, len(cells), level, prices),
        "At the horizon": [block for part in parts for block in part.show_finals()],
        "Comparisons": _show_comparisons(compared),
        "The privacy ledger": [block for part in parts for block in part.show_ledger()],
        "The study, and versions": [block for part in parts for block in part.show_origin()],
    }
    return write_page(title or f"Regret of {', '.join(titles)}", sections)


class _Result:
    """One result of a report, with its table of final values."""

    def __init__(self, label: str, data: xr.Dataset, level: float, prices: Prices) -> None:
        self.label, self.data = label, data
        self.start = f"{label}: " * bool(label)
        # A sweep until precise has a level of its own.
        own = None if "looks" in data.attrs and level == 0.95 else level
        self.frame = table(data, level=own, **prices)
        self.finals = final_table(data, level=own, **prices)

    @property
    def title(self) -> str:
        """Title of its algorithms."""
        return words.shorten(str(self.data.attrs.get("title", "a run")))

    def list_cells(self) -> dict[str, xr.Dataset]:
        """Returns the configurations that have seeds for an interval, by label."""
        cells = {}
        for place in np.ndindex(self.data.seeds.shape):
            cell = self.data.isel(dict(zip(self.data.seeds.dims, place, strict=True)))
            if cell.seeds > 1:
                names = filter(None, [self.label, questions.write_label(self.data, place)])
                cells[", ".join(names) or self.title] = cell
        return cells

    def select_curves(self) -> dict[str, xr.Dataset]:
        """Returns runs to draw: of many, those that differ in the first parameter."""
        data = self.data
        if data.seeds.size > _MOST_CURVES:
            free, *others = map(str, data.seeds.dims)
            data = data.isel({name: [questions.find_reference(data[name])] for name in others})
            data = data.isel({free: slice(_MOST_CURVES)})
        runs = select_cells(data).items()
        return {self.start + label: run for label, run in runs if run.seeds > 1}

    def list_settings(self) -> list[tuple[str, str]]:
        """Returns names and values of what the title does not say."""
        attrs, seeds, frame = self.data.attrs, self.data.seeds.values, self.frame
        number = " to ".join(f"{x:,}" for x in sorted({int(seeds.min()), int(seeds.max())}))
        number += " per configuration" * (seeds.size > 1)
        rows = {"seeds": f"{number}, root seed {attrs.get('root_seed', 0)}"}
        rows["recorded slots"] = f"{self.data.sizes['time']:,}"
        if attrs.get("keep") == "summary":
            rows["kept"] = "moments, counts and a histogram; no single seeds"
        trusts = dict.fromkeys(trust for trust in frame.trust if isinstance(trust, str) and trust)
        rows["trusted"] = " or ".join(f"“{trust}”" for trust in trusts) or "not known"
        rows["confidence level"] = f"{100 * frame.attrs['level']:.6g} %"
        return [(self.start + name, text) for name, text in rows.items()]

    def describe_events(self) -> list[str]:
        """Returns sentences on seeds that went wrong, and remarks on the table."""
        lines = [f"{line}." for line in captions.describe_cell_events(self.finals)]
        lines += [" ".join(line.split()) for line in self.frame.attrs["remarks"]]
        return [self.start + line for line in lines]

    def show_finals(self) -> Iterator[str]:
        """Yields figures and the table of what is there at the horizon."""
        finals = self.finals
        finals = finals.squeeze([name for name in finals.seeds.dims if finals.sizes[name] == 1])
        if finals.seeds.ndim and int(finals.seeds.min()) > 1:
            x, *names = sorted(finals.seeds.dims, key=lambda name: _rank_axis(finals[name]))
            hue, panels = (names[0], names[1:]) if names else (None, [])
            places = [*np.ndindex(*(finals.sizes[name] for name in panels))]
            if len(places) > _MOST_PANELS:
                places = [tuple(questions.find_reference(finals[name]) for name in panels)]
            for place in places:
                panel = finals.isel(dict(zip(panels, place, strict=True)))
                values = [words.format_value(finals[n], panel[n].item()) for n in panels]
                title = ", ".join([f"{self.start}Regret at the horizon", *values])
                yield write_figure(plot_parameter(panel, x, hue), title)
        shown = show(self.frame[:_MOST_ROWS], words=True)
        yield write_table(shown, f"{self.start}Final values")
        yield write_note(" ".join(shown.attrs["legend"]))
        if len(self.frame) > _MOST_ROWS:
            yield write_note(f"The first {_MOST_ROWS} of {len(self.frame):,} configurations.")

    def show_ledger(self) -> Iterator[str]:
        """Yields the privacy ledger, with its notes."""
        if "ledger" not in self.data.coords:
            return
        rows, notes = privacy.write_table(self.data)
        heads = {"title": "algorithm", "viewer": "viewer", "observation": "what they see"}
        heads |= {"where": "of which runs", "epsilon": "ε over the whole run"}
        frame = pd.DataFrame(rows).rename(columns=heads)
        frame = frame.drop(columns=[n for n in frame if (frame[n] == "").all()])
        caption = f"{self.start}What is told of one reward, and to whom"
        yield write_table(frame, caption, is_prose=True)
        yield from map(write_note, notes)

    def show_origin(self) -> Iterator[str]:
        """Yields the study file that makes the result again, checked, and versions."""
        text, note = self._write_study()
        if text:
            yield write_note(
                f"{self.start}To make these results again, save this as study.toml and run fmab "
                "sweep study.toml. The same versions and kind of device give the same bits."
            )
            yield write_code(text, f"Study file {self.label}".strip())
        if note:
            yield write_note(self.start + note)
        names = [(name, f"{name}_version") for name in ("fmab_jax", "jax", "jaxlib", "numpy")]
        names += [("device", "platform_version"), ("device", "device")]
        attrs, names = self.data.attrs, [*names, ("hash of the study", "study_hash")]
        yield write_facts((n, str(attrs[key])) for n, key in names if attrs.get(key))

    def _write_study(self) -> tuple[str, str]:
        """Returns its study file, "" where none states it, and a note about it."""
        attrs, seeds = self.data.attrs, self.data.seed.values if "seed" in self.data else ()
        try:
            document = study_file.build_document(json_attr(self.data, "study"), seeds)
            text = study_file.format_document(document)
            if "means" in document["problem"]:
                return text, "The means are not in it: put the name of their file for FILE.npz."
            if study_file.build_study(tomllib.loads(text)).hash == attrs.get("study_hash"):
                return text, ""
        except (Refusal, AttributeError, KeyError, TypeError, ValueError):
            pass  # plug-ins, or results without a full study
        return "", "No study file makes these results again: they do not hold all that made them."


def _rank_axis(axis: xr.DataArray) -> tuple[bool, int]:
    """Ranks parameters for the horizontal axis: numbers first, then by number of values."""
    return sum(map(words.is_number, axis.values.tolist())) < 2, -axis.size


def _draw_curves(parts: Sequence[_Result], number: int, level: float, prices: Prices) -> list[str]:
    """Returns the figure of regret over time, and what it does not show."""
    pairs = itertools.chain.from_iterable(part.select_curves().items() for part in parts)
    runs = dict(itertools.islice(pairs, _MOST_CURVES))
    title = "Regret and links over time"
    note = "Regret is cumulative, and summed over all agents."
    if len(runs) < number:
        note += f" The picture shows {len(runs)} of {number:,} configurations."
    return [write_figure(plot_runs(runs, level=level, **prices), title), write_note(note)]


def _compare(
    parts: Sequence[_Result], cells: Results, level: float
) -> tuple[list[Comparison], list[str]]:
    """Returns comparisons of configurations, and notes on those that are not made."""
    has_unlike = False
    if len(parts) > 1:
        compared, has_unlike = comparisons.compare_runs(cells, level)
    else:
        compared = comparisons.compare_all(parts[0].data, level=level)
    notes = [questions.DIFFERENT_QUESTIONS] * (has_unlike and bool(compared))
    if empty := sum(len(part.frame) for part in parts) - len(cells):
        notes.append(f"without seeds yet: {format_quantity(empty, 'configuration')}")
    if len(compared) > _MOST_COMPARED:
        notes.append(f"{_MOST_COMPARED} of {len(compared)} comparisons are made, the first ones")
        compared = comparisons.adjust_p_values(compared[:_MOST_COMPARED])
    return compared, [f"{note}." for note in notes]


def _choose_headlines(compared: Sequence[Comparison]) -> list[Comparison]:
    """Returns the comparisons at the top: all, or the largest differences."""
    if len(compared) <= _HEADLINES:
        return list(compared)
    finite = [comparison for comparison in compared if math.isfinite(comparison.percent)]
    return sorted(finite, key=lambda pair: -abs(pair.percent))[:_HEADLINES]


def _show_comparisons(compared: Sequence[Comparison]) -> list[str]:
    """Returns a sentence for each comparison, and their table."""
    if not compared:
        return [
            write_note(
                "Nothing is compared: there is one configuration with seeds, or they differ in "
                "horizon, size or problem, which are different questions."
            )
        ]
    shared = costs.find_shared_observation([x for pair in compared for x in pair.participants])
    frame = pd.DataFrame([pair.cells(shared) for pair in compared])
    methods = dict.fromkeys(pair.method_note for pair in compared)
    note = (
        f"{count_verdicts(compared)}. Regret at the horizon, first minus second, per cent of the "
        f"second. {costs.LEAK_NOTE}. {'. '.join(methods)}. p-values of Holm are adjusted for all "
        "comparisons, intervals are not. “No difference is shown” does not mean that there is none."
    )
    return [
        write_list(f"{pair.sentence}." for pair in compared),
        write_table(frame, "Differences of mean regret at the horizon"),
        write_note(note),
    ]
