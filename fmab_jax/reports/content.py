"""What a report says, as plain values: read from results once, before any page is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms import base
from fmab_jax.analysis import comparisons, costs, words
from fmab_jax.analysis.bands import confidence_band, describe, student_quantile
from fmab_jax.analysis.overview import overview
from fmab_jax.analysis.prices import prices
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.tables import final_table, held
from fmab_jax.errors import refuse
from fmab_jax.plots import captions
from fmab_jax.reports.again import Again, again, described
from fmab_jax.run.attributes import said

MOST_CELLS = 1000
"""Configurations of one report."""

# Numbers of all curves together, and the most and the fewest slots of one.
_NUMBERS = 240_000
_SLOTS, _FEWEST = 200, 20
# Curves that a page can draw; of more configurations the first ones.
_CURVES = 256
_SIGNIFICANT = 6
_NOT_LABELS = ("epsilon", "epsilon_message")
_VERSIONS = ("fmab_jax", "jax", "jaxlib", "numpy")
_MOST_COMPARED = 40


class Result(NamedTuple):
    """One result that a report is about."""

    label: str  # its name, "" for the only one
    path: str | None  # where it was read from
    data: xr.Dataset
    table: xr.Dataset  # its final values
    again: Again  # how to make it again

    @property
    def start(self) -> str:
        """What sentences about it begin with."""
        return f"{self.label}: " * bool(self.label)


class Axis(NamedTuple):
    """A parameter that configurations differ in."""

    name: str  # of the dimension
    title: str  # for people
    labels: list[str]  # its values, with symbol
    ticks: list[str]  # its values, without
    numbers: list[float | None]  # its values as numbers; None for one that is none
    reference: int  # place of the value that others are compared with

    @property
    def sorted_by(self) -> list[Any]:
        """What its values are sorted by: among numbers, what is none as a text, behind them."""
        if not any(number is not None for number in self.numbers):
            return list(range(len(self.ticks)))
        pairs = zip(self.numbers, self.ticks, strict=True)
        return [tick if number is None else number for number, tick in pairs]


class Cell(NamedTuple):
    """One configuration."""

    label: str  # what it differs in from the others
    at: list[int | None]  # place on every axis; None where it has no such parameter
    data: xr.Dataset  # its results, its own seeds only, by its own slots
    row: dict[str, float]  # final values, by name of `final_table`; NaN where seeds are missing
    links: dict[str, float]  # mean links at T by meter
    # Largest regret of a seed, by event; None where none is, or single ones are not kept.
    worst: dict[str, float | None]
    asked: dict[str, Any]  # horizon, sizes and problem, as far as known
    cost: costs.Cost

    @property
    def leak(self) -> str:
        """What it leaks, for a sentence: "ε = 5 (single messages)", "nothing"."""
        if self.cost.bounded:
            return f"ε = {costs.leak_cell(self.cost, '')}"
        text = costs.leak_text(self.cost) or "an unknown amount"
        return "without a bound" if text == "no bound" else text

    @property
    def complete(self) -> bool:
        """Whether it has the seeds that an interval needs."""
        return math.isfinite(self.row["regret"])


@dataclass(frozen=True)
class Content:
    """All that a page says; attributes are its parts in their order."""

    title: str
    sources: list[Result]
    axes: list[Axis]
    cells: list[Cell]
    meters: dict[str, str]
    question: list[str]
    settings: list[tuple[str, str]]
    curves: dict[str, Any]
    left_out: list[str]
    price: list[Comparison]
    compared: list[Comparison]
    events: list[str]
    level: float
    interval: str
    band: str
    costs: tuple[float, float]
    options: tuple[str, ...]


def gathered(
    results: Mapping[str, tuple[xr.Dataset, str | None]],
    *,
    title: str | None,
    level: float,
    server_price: float,
    peer_price: float,
    options: Sequence[str] = (),
) -> Content:
    """Reads all that a report says from results by label, each with the path it was read from.

    ``options`` are what a command adds to these paths, to make the same report.
    """
    several = len(results) > 1
    labelled = {label: (held(data), path) for label, (data, path) in results.items()}
    number = sum(int(data.seeds.size) for data, _ in labelled.values())
    if number > MOST_CELLS:
        remedy = "select fewer: --select NAME=VALUE, or .sel(...)"
        refuse("configurations", number, f"at most {MOST_CELLS:,} in one report", remedy)
    sources = []
    for label, (data, path) in labelled.items():
        looked = "looks" in data.attrs and level == 0.95
        costs = {"server_price": server_price, "peer_price": peer_price}
        table = final_table(data, level=None if looked else level, **costs)
        own = words.shortened(label) if several else ""
        sources.append(Result(own, path, data, table, again(data, path)))
    values = _values(sources)
    axes = _axes(sources, values)
    cells = _cells(sources, axes, values)
    if not any(cell.complete for cell in cells):
        refuse("seeds", "fewer than 2", "at least 2 in a configuration", "resume the sweep")
    meters = _meters(sources)
    named = (words.shortened(str(s.data.attrs.get("title", "a run"))) for s in sources)
    titles = list(dict.fromkeys(named))
    curves, left_out = _curves(cells, meters, level, (server_price, peer_price))
    found, fewer = _compared(sources, cells, level)
    bands = [float(source.data.attrs.get("look_level", level)) for source in sources]
    return Content(
        title=title or f"Regret of {_listed(titles)}",
        sources=sources,
        axes=axes,
        cells=cells,
        meters=meters,
        question=_question(sources, axes, titles),
        settings=_settings(sources, axes, cells, level),
        curves=curves,
        left_out=left_out + fewer,
        price=_price(sources, level),
        compared=found,
        events=_events(sources),
        level=level,
        interval=_each(sources, [str(s.table.attrs["description"]) for s in sources]),
        band=_each(sources, [describe(each, "simultaneous") for each in bands]),
        costs=(server_price, peer_price),
        options=tuple(options),
    )


def _each(sources: Sequence[Result], texts: Sequence[str]) -> str:
    """Says what holds for all results once, else for each by its label."""
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{s.label}: {each}" for s, each in zip(sources, texts, strict=True))


def _values(sources: Sequence[Result]) -> dict[str, list[Any]]:
    """Returns the values of what some results sweep, by equality: 1 of one is 1.0 of another."""
    found: dict[str, list[Any]] = {}
    for source in sources:
        for name in map(str, source.data.seeds.dims):
            own = found.setdefault(name, [])
            own += [each for each in source.data[name].values.tolist() if each not in own]
    for name, own in found.items():
        for source in sources:
            value = _fixed(source.data, name)
            own += [value] if value is not None and value not in own else []
    return found


def _axes(sources: Sequence[Result], values: Mapping[str, Sequence[Any]]) -> list[Axis]:
    axes = []
    if len(sources) > 1:
        names = [source.label for source in sources]
        axes.append(Axis("result", "result", names, names, [None] * len(names), 0))
    for name, own in values.items():
        if len(own) < 2:
            continue
        coordinate = next(s.data[name] for s in sources if name in s.data.seeds.dims)
        held = np.empty(len(own), object)
        held[:] = own
        labelled = xr.DataArray(held, dims=(name,), attrs=coordinate.attrs, name=name)
        axes.append(
            Axis(
                name,
                captions.axis_label(coordinate),
                [words.told(coordinate, value) for value in own],
                [words.value_label(coordinate, value) for value in own],
                [float(v) if words.is_number(v) and math.isfinite(v) else None for v in own],
                comparisons.reference(labelled),
            )
        )
    return axes


def _cells(
    sources: Sequence[Result], axes: Sequence[Axis], values: Mapping[str, Sequence[Any]]
) -> list[Cell]:
    cells = []
    for index, source in enumerate(sources):
        data, table = source.data, source.table
        names = [str(n) for n, v in table.data_vars.items() if "meter" not in v.dims]
        for place in np.ndindex(data.seeds.shape):
            where = dict(zip(map(str, data.seeds.dims), place, strict=True))
            row, cell = table.isel(where), data.isel(where)
            if "seed" in cell.dims:
                cell = cell.isel(seed=slice(int(cell.seeds)))
            if "slot" in cell.coords:
                cell = cell.assign_coords(time=("time", cell.slot.values))
            at: list[int | None] = [index] if len(sources) > 1 else []
            for axis in axes[len(at) :]:
                own = cell[axis.name].item() if axis.name in where else _fixed(data, axis.name)
                at.append(None if own is None else values[axis.name].index(own))
            label = ", ".join(filter(None, [source.label, comparisons.label_of(data, place)]))
            cells.append(
                Cell(
                    label or next(iter(words.facts(data)), "the run"),
                    at,
                    cell,
                    {name: float(row[name]) for name in names},
                    dict(zip(row.meter.values.tolist(), row.links.values.tolist(), strict=True)),
                    _worst(cell),
                    comparisons.question_of(cell),
                    costs.cost_of(cell),
                )
            )
    return cells


def _fixed(data: xr.Dataset, name: str) -> Any:
    """Returns the number that a result has of what others sweep; None if it sweeps or lacks it."""
    if name in data.seeds.dims:
        return None
    single = data.coords.get(name)
    value = data.attrs.get(name) if single is None else single.values.reshape(-1).tolist()[0]
    return value if words.is_number(value) else None


def _worst(cell: xr.Dataset) -> dict[str, float | None]:
    """Returns the largest regret at T of the seeds that each event befell."""
    if "regret" not in cell:
        return dict.fromkeys(captions.EVENTS)
    final = cell.regret.isel(time=-1).values
    found: dict[str, float | None] = {}
    for event in captions.EVENTS:
        hit = cell[event].values.astype(bool) if event in cell else np.zeros(len(final), bool)
        found[event] = float(final[hit].max()) if hit.any() else None
    return found


def _meters(sources: Sequence[Result]) -> dict[str, str]:
    """Returns what can be counted of links, by a short name: the meters, then the cost."""
    found: dict[str, str] = {}
    for source in sources:
        data = source.data
        for name, counts in zip(data.meter.values, data.counts.values, strict=True):
            found.setdefault(str(name), f"{counts} (meter {name})")
    attrs = sources[0].table.attrs
    server, peer = (words.written(attrs[f"{side}_price"]) for side in ("server", "peer"))
    if len(found) > 1 or (server, peer) != ("1", "1"):
        # No meter has a name with a space.
        cost = f"{server} per server link, {peer} per peer link"
        found["the cost"] = f"communication cost ({cost})"
    return found


def _curves(
    cells: Sequence[Cell], meters: Mapping[str, str], level: float, costs: tuple[float, float]
) -> tuple[dict[str, Any], list[str]]:
    """Returns curves of means with bands, thinned to what a page can hold, and what is left out."""
    complete = [i for i, cell in enumerate(cells) if cell.complete]
    drawn, left_out = complete[:_CURVES], []
    if len(complete) > len(drawn):
        many = f"{len(drawn)} of {len(complete)} configurations, the first ones of the grid"
        left_out.append(f"Curves over time are there for {many}; tables have all")
    if len(cells) > len(complete):
        left_out.append(f"{len(cells) - len(complete)} configurations have no seeds yet")
    most = max(_FEWEST, min(_SLOTS, _NUMBERS // max(1, 3 * len(drawn) * (1 + len(meters)))))
    grids: list[list[int]] = []
    made = []
    thinned: set[tuple[int, int]] = set()
    for index in drawn:
        data = cells[index].data.compute()
        slots = data.time.values
        kept = np.unique(np.linspace(0, len(slots) - 1, min(most, len(slots))).round().astype(int))
        if len(kept) < len(slots):
            thinned.add((len(kept), len(slots)))
        grid = slots[kept].tolist()
        if grid not in grids:
            grids.append(grid)
        look = float(data.attrs.get("look_level", level))
        band = confidence_band(data.regret if "regret" in data else data, look)
        regret = _thinned([band[name].values for name in ("mean", "lower", "upper")], kept)
        counts = _links(data, meters, level, costs)
        links = {name: _thinned(values, kept) for name, values in counts.items()}
        made.append({"cell": index, "grid": grids.index(grid), "regret": regret, "links": links})
    for few, all_slots in sorted(thinned):
        left_out.append(f"Interactive curves show {few} of {all_slots:,} recorded slots")
    return {"grids": grids, "cells": made}, left_out


def _thinned(series: Sequence[np.ndarray], kept: np.ndarray) -> list[list[float]]:
    """Returns what a curve can show of series [time]: these slots, with so many digits."""
    return [[float(f"{v:.{_SIGNIFICANT}g}") for v in each[kept].tolist()] for each in series]


def _links(
    data: xr.Dataset, meters: Mapping[str, str], level: float, costs: tuple[float, float]
) -> dict[str, list[np.ndarray]]:
    """Returns mean and pointwise band [time] of each meter, and of the cost."""
    seeds, names = int(data.seeds), data.meter.values.tolist()
    critical = student_quantile(seeds - 1, level) / math.sqrt(seeds)
    # Every meter by itself, and what all of them cost.
    weights = np.column_stack([np.eye(len(names)), prices(data, *costs).values])
    if "links" in data:
        values = data.links.transpose("seed", "time", "meter").values.astype(np.float64) @ weights
        mean, half = values.mean(axis=0), critical * values.std(axis=0, ddof=1)
    else:
        # Every link is built by a completed round: all meters rise and fall together.
        mean = data.links_mean.transpose("time", "meter").values @ weights
        deviation = np.sqrt(data.links_variance.transpose("time", "meter").values)
        half = critical * (deviation @ weights)
    names += ["the cost"] * ("the cost" in meters)
    return {
        name: [mean[:, at], mean[:, at] - half[:, at], mean[:, at] + half[:, at]]
        for at, name in enumerate(names)
    }


def _compared(
    sources: Sequence[Result], cells: Sequence[Cell], level: float
) -> tuple[list[Comparison], list[str]]:
    unlike = False
    if len(sources) == 1:
        data = sources[0].data
        found = comparisons.compare_all(data, level=level) if data.seeds.size > 1 else []
    else:
        runs = {cell.label: cell.data for cell in cells if cell.complete}
        found, unlike = comparisons.of_runs(runs, level)
    notes = [comparisons.UNLIKE] * (unlike and bool(found))
    if len(found) > _MOST_COMPARED:
        notes.append(f"{_MOST_COMPARED} of {len(found)} comparisons are made, the first ones")
        found = comparisons.holm(found[:_MOST_COMPARED])
    return found, notes


def _price(sources: Sequence[Result], level: float) -> list[Comparison]:
    """Returns what each epsilon costs beside the reference: no noise, or the largest epsilon."""
    found = []
    for source in sources:
        for name in _NOT_LABELS:
            if name in source.data.seeds.dims and source.data.sizes[name] > 1:
                for each in comparisons.compare_along(source.data, name, level=level):
                    at = ", ".join(filter(None, [source.label, each.at]))
                    found.append(replace(each, at=at))
    return found


def _events(sources: Sequence[Result]) -> list[str]:
    said = []
    for source in sources:
        lines = [f"{line}." for line in captions.events_of_cells(source.table)]
        lines += [" ".join(line.split()) for line in overview(source.data).remarks]
        said += [source.start + line for line in lines]
    return said


def _question(sources: Sequence[Result], axes: Sequence[Axis], titles: Sequence[str]) -> list[str]:
    """Says what was asked, of whom, on what and how often."""
    lines = [f"How much regret does {titles[0]} collect, and what does it send?"]
    if len(sources) > 1:
        names = _listed([source.label for source in sources])
        lines = [f"How do {names} compare in regret, and in what they send?"]
    elif axes:
        ways = _listed([f"{axis.title} ({', '.join(axis.ticks)})" for axis in axes])
        lines = [f"How does the regret of {_listed(titles)} at the horizon depend on {ways}?"]
    for source in sources:
        data = source.data
        made = words.facts(data, [axis.name for axis in axes], leaks=True)
        lines.append(f"{source.start}{', '.join(made)}.")
        lines += [f"{source.start}{line}" for line in _problem(described(data))]
    return list(dict.fromkeys(lines))


def _problem(problem: Mapping[str, Any]) -> list[str]:
    """Says what problem was played, as far as it is not what is varied."""
    if not problem:
        return []
    lines = ["The means are fixed: all seeds play the same problem."]
    if problem["drawn"]:
        seed, gap, spread = (problem[n] for n in ("fixed_instance", "instance_gap", "spread"))
        own = "Each seed draws its own means"
        if isinstance(seed, int):
            own = f"All seeds play the means that seed {seed} draws"
        own += " from U[0, 1]"
        if isinstance(gap, (int, float)):
            own += f", with a smallest gap of {gap:g}"
        lines = [own + ", the same for all agents" * (spread == 0) + "."]
        if isinstance(spread, (int, float)) and spread:
            lines.append(f"The means differ between agents (spread {spread:g}).")
    if isinstance(law := problem.get("rewards"), dict):
        numbers = [f"{n} {v:g}" for n, v in law.items() if isinstance(v, (int, float))]
        name = str(law["law"]).replace("_", " ").capitalize()
        lines.append(f"Rewards: {', '.join([name, *numbers])}.")
    return lines


def _settings(
    sources: Sequence[Result], axes: Sequence[Axis], cells: Sequence[Cell], level: float
) -> list[tuple[str, str]]:
    """Returns names and values of all settings, for a list."""
    rows: list[tuple[str, str]] = []
    trusts: dict[type[base.Algorithm], dict[str, None]] = {}
    for cell in cells:
        if owner := costs.owner_of(cell.data):
            trusts.setdefault(owner, {})[f"“{cell.cost.trust or 'not known'}”"] = None
    for owner, trusted in trusts.items():
        about = f"{base.stated(owner, 'heard')}; trusted: {' or '.join(trusted)}"
        about += f" ({owner.source})" * bool(owner.source)
        rows.append((owner.title or owner.name, f"heard: {about}"))
    rows += [(axis.title, ", ".join(axis.ticks)) for axis in axes if axis.name != "result"]
    for source in sources:
        data, seeds = source.data, source.data.seeds.values
        few, many = int(seeds.min()), int(seeds.max())
        number = f"{many:,}" if few == many else f"{few:,} to {many:,}"
        number += " per configuration" * (data.seeds.size > 1)
        own = [("seeds", f"{number}, root seed {data.attrs.get('root_seed', 0)}")]
        own.append(("recorded slots", f"{data.sizes['time']:,}"))
        if data.attrs.get("keep") == "summary":
            own.append(("kept", "moments, counts and a histogram; no single seeds"))
        rows += [(source.start + name, value) for name, value in own]
    rows.append(("confidence level", f"{100 * level:.6g} %"))
    return rows


def versions(data: xr.Dataset) -> list[tuple[str, str]]:
    """Returns what computed some results: packages, with their versions, and devices."""
    rows = [(name, f"{name}_version") for name in _VERSIONS]
    rows += [("device", "platform_version"), ("device", "device")]
    rows += [("hash of the study", "study_hash")]
    return [(name, str(data.attrs[key])) for name, key in rows if data.attrs.get(key)]


def stated(data: xr.Dataset) -> int:
    """Returns how many configurations the study of some results has, selected or not."""
    study = said(data, "study")
    return math.prod(len(study[name]) for name in study.get("axes", ()) if name in study)


def _listed(names: Sequence[str]) -> str:
    """Writes "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
