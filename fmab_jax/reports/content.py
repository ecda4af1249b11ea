"""Reads the content of a report from results, as plain values."""

from __future__ import annotations

import base64
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np
import pandas as pd
import xarray as xr

from fmab_jax.algorithms import base
from fmab_jax.analysis import budgets, comparisons, costs, questions, words
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.tables import check_result, final_table, table
from fmab_jax.errors import Refusal, format_quantity, refuse
from fmab_jax.plots import captions
from fmab_jax.run.attributes import json_attr
from fmab_jax.sampling.shapes import Record

if TYPE_CHECKING:
    from fmab_jax.plots.style import Figure
from fmab_jax.sweeps import study_file

MOST_CELLS = 1000
"""Configurations of one report."""

_MOST_COMPARED = 40
# Curves that one picture can tell apart; maps of a grid's third parameter.
_MOST_CURVES, _MOST_PANELS = 8, 4


class Source(NamedTuple):
    """One result of a report."""

    label: str  # its name, "" for the only one
    data: xr.Dataset
    table: xr.Dataset  # its final values
    frame: pd.DataFrame  # the same, a row per configuration

    @property
    def start(self) -> str:
        """Start of sentences about it."""
        return f"{self.label}: " * bool(self.label)

    @property
    def settings(self) -> list[tuple[str, str]]:
        """Names and values of its settings."""
        seeds, prefix = self.data.seeds.values, self.start
        number = " to ".join(f"{limit:,}" for limit in sorted({int(seeds.min()), int(seeds.max())}))
        number += " per configuration" * (seeds.size > 1)
        rows = [("seeds", f"{number}, root seed {self.data.attrs.get('root_seed', 0)}")]
        rows.append(("recorded slots", f"{self.data.sizes['time']:,}"))
        if self.data.attrs.get("keep") == "summary":
            rows.append(("kept", "moments, counts and a histogram; no single seeds"))
        return [(prefix + name, value) for name, value in rows]

    @property
    def versions(self) -> list[tuple[str, str]]:
        """Names and versions of the software and device, and the hash of the study."""
        rows = [(name, f"{name}_version") for name in ("fmab_jax", "jax", "jaxlib", "numpy")]
        rows += [("device", "platform_version"), ("device", "device")]
        attrs, rows = self.data.attrs, [*rows, ("hash of the study", "study_hash")]
        return [(name, str(attrs[key])) for name, key in rows if attrs.get(key)]

    @property
    def study(self) -> tuple[str, str]:
        """Its study file, "" where none states it, and a note about it."""
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


class Cell(NamedTuple):
    """One configuration."""

    label: str  # what it differs in from the others
    source: str  # label of its result
    ticks: dict[str, str]  # its values of all parameters that some results sweep
    at_reference: dict[str, bool]  # by swept parameter, whether its value is the reference
    data: xr.Dataset  # its results, its own seeds only, by its own slots
    row: Record  # final values by name, as in a row of `table`; NaN without seeds
    question: Record  # horizon, sizes and problem, as far as known
    cost: costs.Cost

    @property
    def leak(self) -> str:
        """Its leak, for a sentence: "ε = 5 (single messages)", "nothing"."""
        text = costs.write_leak_cell(self.cost, "", in_words=True) or "an unknown amount"
        return "without a bound" if math.isinf(self.cost.leak) else text

    @property
    def spent(self) -> dict[str, float]:
        """Mean, 95 % quantile and maximum of links, numbers and bits, as far as they are known."""
        names = [name for name in budgets.COLUMNS if name not in self.ticks]
        return {name: self.row[name] for name in names if name in self.row}

    @property
    def complete(self) -> bool:
        """Whether it has the seeds that an interval needs."""
        return math.isfinite(self.row["regret"])


class Prices(TypedDict):
    """Prices of a link to the server, and of a link between agents."""

    server_price: float
    peer_price: float


class Picture(NamedTuple):
    """An image with its texts."""

    uri: str  # the image, as text that a page can hold
    short: str  # what is drawn, with seeds, horizon and band: stands under it
    caption: str  # all that is to be seen, settings and what went wrong too
    title: str  # what differs it from its neighbours; "" for the only one


@dataclass(frozen=True)
class Content:
    """Content of a page."""

    title: str
    sources: list[Source]
    axes: dict[str, str]  # titles of the parameters of which there are several values, by name
    cells: list[Cell]
    question: list[str]
    settings: list[tuple[str, str]]
    meters: dict[str, str]  # what is counted of links, by short name
    compared: list[Comparison]
    notes: list[str]  # what is left out
    events: list[str]
    level: float
    interval: str
    prices: Prices

    @property
    def complete(self) -> list[Cell]:
        """The configurations that have seeds."""
        return [cell for cell in self.cells if cell.complete]

    @property
    def drawn_cells(self) -> list[Cell]:
        """The configurations whose curves are drawn.

        All where they are few; else those that differ in the first parameter of the only result,
        the others being at the reference.
        """
        cells = self.complete
        if len(cells) > _MOST_CURVES:
            free = [*self.axes][: len(self.sources) == 1]
            cells = [c for c in cells if all(at or n in free for n, at in c.at_reference.items())]
        return (cells or self.complete)[:_MOST_CURVES]


def read_content(
    results: Mapping[str, xr.Dataset], title: str | None, level: float, prices: Prices
) -> Content:
    """Reads the content of a report from results by label."""
    results = {label: check_result(data) for label, data in results.items()}
    number = sum(int(data.seeds.size) for data in results.values())
    if number > MOST_CELLS:
        remedy = "select fewer: --select NAME=VALUE, or .sel(...)"
        refuse("configurations", number, f"at most {MOST_CELLS:,} in one report", remedy)
    sources = []
    for label, data in results.items():
        # A sweep until precise has a level of its own.
        its_level = None if "looks" in data.attrs and level == 0.95 else level
        finals = final_table(data, level=its_level, **prices)
        frame = table(data, level=its_level, **prices)
        sources.append(Source(words.shorten(label) * (len(results) > 1), data, finals, frame))
    swept = {str(name): s.data[name] for s in reversed(sources) for name in s.data.seeds.dims}
    cells = [cell for source in sources for cell in _iterate_cells(source, swept)]
    if not any(cell.complete for cell in cells):
        refuse("seeds", "fewer than 2", "at least 2 in a configuration", "resume the sweep")
    ticks = {name: [*dict.fromkeys(cell.ticks[name] for cell in cells)] for name in swept}
    axes = {
        name: captions.write_axis_label(swept[name])
        for source in sources
        for name in map(str, source.data.seeds.dims)
        if len({*ticks[name]} - {""}) > 1
    }
    values = {axes[name]: ", ".join(filter(None, ticks[name])) for name in axes}
    compared, notes = _compare_cells(sources, cells, level)
    intervals = {source.start: str(source.table.attrs["description"]) for source in sources}
    if len({*intervals.values()}) == 1:
        intervals = {"": intervals.popitem()[1]}
    names = dict.fromkeys(words.shorten(str(s.data.attrs.get("title", "a run"))) for s in sources)
    return Content(
        title=title or f"Regret of {_join_names([*names])}",
        sources=sources,
        axes=axes,
        cells=cells,
        question=_write_question(sources, values, [*names]),
        settings=[
            *_describe_trust(cells),
            *values.items(),
            *(row for source in sources for row in source.settings),
            ("confidence level", f"{100 * level:.6g} %"),
        ],
        meters=_name_meters(sources),
        compared=compared,
        notes=notes,
        events=[source.start + line for source in sources for line in _describe_events(source)],
        level=level,
        interval="; ".join(map("".join, intervals.items())),
        prices=prices,
    )


def _name_meters(sources: Sequence[Source]) -> dict[str, str]:
    meters: dict[str, str] = {}
    for source in sources:
        for name, counts in zip(source.data.meter.values, source.data.counts.values, strict=True):
            meters.setdefault(str(name), f"{counts} (meter {name})")
    return meters


def _iterate_cells(source: Source, swept: Mapping[str, xr.DataArray]) -> Iterator[Cell]:
    data = source.data
    reference = {str(name): questions.find_reference(data[name]) for name in data.seeds.dims}
    places = np.ndindex(data.seeds.shape)
    for place, row in zip(places, source.frame.to_dict("records"), strict=True):
        position = dict(zip(map(str, data.seeds.dims), place, strict=True))
        cell = data.isel(position)
        if "seed" in cell.dims:
            cell = cell.isel(seed=slice(int(cell.seeds)))
        if "slot" in cell.coords:
            cell = cell.assign_coords(time=("time", cell.slot.values))
        label = ", ".join(filter(None, [source.label, questions.write_label(data, place)]))
        yield Cell(
            label or next(iter(words.list_facts(data)), "the run"),
            source.label,
            {name: _write_tick(cell, axis, name in position) for name, axis in swept.items()},
            {name: at == reference[name] for name, at in position.items()},
            cell,
            row,
            questions.read_question(cell),
            costs.read_exposure(cell),
        )


def _write_tick(cell: xr.Dataset, axis: xr.DataArray, swept: bool) -> str:
    """Writes the value of a parameter that some results sweep; "" where there is none."""
    value = cell.attrs.get(axis.name)
    if axis.name in cell.coords:
        value = cell[axis.name].values.reshape(-1).tolist()[0]
    return words.write_tick(axis, value) if swept or words.is_number(value) else ""


def _compare_cells(
    sources: Sequence[Source], cells: Sequence[Cell], level: float
) -> tuple[list[Comparison], list[str]]:
    complete = {cell.label: cell.data for cell in cells if cell.complete}
    has_unlike = False
    if len(sources) > 1:
        compared, has_unlike = comparisons.compare_runs(complete, level)
    else:
        compared = comparisons.compare_all(sources[0].data, level=level)
    notes = [questions.DIFFERENT_QUESTIONS] * (has_unlike and bool(compared))
    if len(cells) > len(complete):
        number = format_quantity(len(cells) - len(complete), "configuration")
        notes.append(f"without seeds yet: {number}")
    if len(compared) > _MOST_COMPARED:
        notes.append(f"{_MOST_COMPARED} of {len(compared)} comparisons are made, the first ones")
        compared = comparisons.adjust_p_values(compared[:_MOST_COMPARED])
    return compared, notes


def _describe_events(source: Source) -> list[str]:
    """Describes failures of seeds, and adds the remarks of the overview."""
    lines = [f"{line}." for line in captions.describe_cell_events(source.table)]
    return lines + [" ".join(line.split()) for line in source.frame.attrs["remarks"]]


def _write_question(
    sources: Sequence[Source], values: Mapping[str, str], titles: Sequence[str]
) -> list[str]:
    """Writes the question of the report and the settings of each result."""
    lines = [f"How much regret does {titles[0]} collect, and what does it send?"]
    if len(sources) > 1:
        names = _join_names([source.label for source in sources])
        lines = [f"How do {names} compare in regret, and in what they send?"]
    elif values:
        ways = _join_names([f"{title} ({ticks})" for title, ticks in values.items()])
        lines = [f"How does the regret of {_join_names(titles)} at the horizon depend on {ways}?"]
    for source in sources:
        varied = [str(n) for n in source.data.seeds.dims if source.data.sizes[n] > 1]
        lines.append(
            f"{source.start}{', '.join(words.list_facts(source.data, varied, leaks=True))}."
        )
    return list(dict.fromkeys(lines))


def _describe_trust(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Writes communication and trust of each algorithm."""
    trusts: dict[type[base.Algorithm], dict[str, None]] = {}
    for cell in cells:
        if owner := costs.find_algorithm(cell.data):
            trusts.setdefault(owner, {})[f"“{cell.cost.trust or 'not known'}”"] = None
    return [
        (
            owner.title or owner.name,
            f"communication: {base.read_statement(owner, 'communication')}; "
            + f"trusted: {' or '.join(trusted)}"
            + f" ({owner.source})" * bool(owner.source),
        )
        for owner, trusted in trusts.items()
    ]


def draw_curves(content: Content) -> list[Picture]:
    """Draws regret and links over time of the configurations that are shown."""
    from fmab_jax.plots import runs

    curves = {cell.label: cell.data for cell in content.drawn_cells}
    return [make_picture(runs.plot_runs(curves, level=content.level, **content.prices))]


def draw_finals(source: Source) -> Iterator[Picture]:
    """Draws regret at the horizon against the parameters, a picture for each value of a third."""
    from fmab_jax.plots import parameters

    table = source.table
    table = table.squeeze([name for name in table.seeds.dims if table.sizes[name] == 1])
    if not table.seeds.ndim or int(table.seeds.min()) < 2:
        return
    x, *names = sorted(table.seeds.dims, key=lambda name: _rank_axis(table[name]))
    hue, panel_names = (names[0], names[1:]) if names else (None, [])
    places = [*np.ndindex(*(table.sizes[name] for name in panel_names))]
    if len(places) > _MOST_PANELS:
        places = [tuple(questions.find_reference(table[name]) for name in panel_names)]
    for place in places:
        panel = table.isel(dict(zip(panel_names, place, strict=True)))
        title = [
            source.label,
            *(words.format_value(table[name], panel[name].item()) for name in panel_names),
        ]
        yield make_picture(parameters.plot_parameter(panel, x, hue), ", ".join(filter(None, title)))


def _rank_axis(axis: xr.DataArray) -> tuple[bool, int]:
    """Ranks parameters for the horizontal axis: numbers first, then by number of values."""
    return sum(map(words.is_number, axis.values.tolist())) < 2, -axis.size


def make_picture(figure: Figure, title: str = "") -> Picture:
    """Returns a figure as an image with its texts."""
    from fmab_jax.plots import style

    image = base64.b64encode(style.write_svg(figure)).decode()
    short, long = style.read_caption(figure)
    return Picture(f"data:image/svg+xml;base64,{image}", " ".join(short), long, title)


def _join_names(names: Sequence[str]) -> str:
    """Writes "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
