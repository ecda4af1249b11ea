"""What a sweep has computed so far, as one labelled Dataset; read lazily, unit by unit.

A *unit* holds some cells for one range of seeds. Units lie in a `run_folder.RunFolder`, or in
memory; which of them make up a cell is worked out here, from their facts alone.
"""

from __future__ import annotations

import json
import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fmab_jax.analysis import summary
from fmab_jax.analysis.bands import lost_interval, moments_band, student_quantile
from fmab_jax.errors import price, real, refuse
from fmab_jax.files import checked_path
from fmab_jax.run.simulation import communication_cost, links_per_round
from fmab_jax.sweeps.store import Entry, RunFolder
from fmab_jax.sweeps.study import Precision, Study

FORMAT = 1
SERIES = ("regret", "exploitation_regret", "server_links", "peer_links_bound", "peer_links_used")
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# Units that a reader keeps at hand.
_AT_HAND = 4
_PER_SEED = ("rounds", "active_arms", "chosen_arm", "agents_lost")
_NAMES = {
    "regret": ("cumulative regret", "reward"),
    "exploitation_regret": ("cumulative regret while waiting", "reward"),
    "server_links": ("agent-server links", "links"),
    "peer_links_bound": ("agent-agent links", "links"),
    "peer_links_used": ("agent-agent links", "links"),
    "rounds_made": ("completed rounds", "rounds"),
    "active_arms": ("active arms at T", "arms"),
    "chosen_arm": ("arm played at T", "index"),
    "agents_lost": ("agents without a best arm at T", "agents"),
    "best_arm_lost": ("best arm lost", "seeds"),
}


@runtime_checkable
class Source(Protocol):
    """Where units are read from."""

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a unit's arrays."""


class Part(NamedTuple):
    """A cell's seeds [start, stop) in one unit, in its row ``row``."""

    entry: Entry
    row: int
    start: int
    stop: int


class Results:
    """The units of a study, by cell.

    Attributes:
        header: What `header_of` returned when the study began.
        parts: By the cell's hash, its parts.
        narrow: By cell and look, whether the band was narrow enough; see `judged`.
    """

    def __init__(self, header: Mapping[str, Any], source: Source, entries: Iterable[Entry]) -> None:
        self.header = header
        self.source = source
        self.parts: dict[str, list[Part]] = {}
        self.narrow: dict[tuple[str, int], bool] = {}
        self._units: OrderedDict[str, Mapping[str, np.ndarray]] = OrderedDict()
        for entry in entries:
            self.add(entry)

    @property
    def curves(self) -> bool:
        """Whether single seeds are kept."""
        return bool(self.header["keep"] == "curves")

    def add(self, entry: Entry) -> None:
        """Takes note of one more unit."""
        if entry.facts.get("keep") != self.header["keep"]:
            return
        start, stop = entry.facts["seeds"]
        for row, cell in enumerate(entry.facts["cells"]):
            self.parts.setdefault(cell, []).append(Part(entry, row, start, stop))

    def chain(self, cell: str, stop: int) -> list[Part]:
        """Returns parts that cover the cell's seeds from 0 on, without gap, as far as possible.

        Of single seeds, a part of a unit can be used; of a summary only the whole.

        Args:
            cell: The cell's hash.
            stop: Where to end at the latest.
        """
        return self._linked(cell, 0, stop)

    def _linked(self, cell: str, start: int, stop: int) -> list[Part]:
        """Returns what `chain` does, from ``start`` on."""
        parts = sorted(self.parts.get(cell, ()), key=lambda part: (part.start, part.stop))
        chosen: list[Part] = []
        if self.curves:
            furthest = None
            for part in parts:
                if part.start > start and furthest is not None and furthest.stop > start:
                    chosen.append(furthest._replace(start=start))
                    start = furthest.stop
                if part.start > start or start >= stop:
                    break
                if furthest is None or part.stop > furthest.stop:
                    furthest = part
            if furthest is not None and start < min(stop, furthest.stop):
                chosen.append(furthest._replace(start=start))
            return [part._replace(stop=min(part.stop, stop)) for part in chosen]
        # From each seed, how far the parts lead, and the first of them.
        reach: dict[int, tuple[int, Part]] = {}
        for part in reversed(parts):
            if part.stop <= stop:
                end = reach[part.stop][0] if part.stop in reach else part.stop
                if part.start not in reach or end > reach[part.start][0]:
                    reach[part.start] = end, part
        while start in reach:
            chosen.append(reach[start][1])
            start = chosen[-1].stop
        return chosen

    def seeds(self, cell: str, stop: int) -> int:
        """Returns how many of the cell's first ``stop`` seeds are there, without a gap."""
        chain = self.chain(cell, stop)
        return chain[-1].stop if chain else 0

    def gaps(
        self, cell: str, start: int, stop: int, wanted: int | None = None
    ) -> list[tuple[int, int]]:
        """Returns the ranges of seeds in [start, stop) that are still to be computed.

        Args:
            cell: The cell's hash.
            start: First seed of the range.
            stop: Its end.
            wanted: How many seeds the cell is to have; ``stop`` by default.
        """
        missing, at = [], start
        if not self.curves:
            # The parts before `start` may be somebody else's, or may lead beyond it.
            for first in (0, start):
                chain = self._linked(cell, first, stop if wanted is None else wanted)
                at = max(at, chain[-1].stop if chain else 0)
            return [(at, stop)] if at < stop else []
        for part in sorted(self.parts.get(cell, ()), key=lambda part: part.start):
            if part.stop <= at or part.start >= stop:
                continue
            if part.start > at:
                missing.append((at, part.start))
            at = max(at, part.stop)
        if at < stop:
            missing.append((at, stop))
        return missing

    def made_by(self, stops: Mapping[str, int]) -> dict[str, str]:
        """Returns the versions that the parts of these cells were computed with."""
        used: dict[str, dict[str, None]] = {}
        for cell, stop in stops.items():
            for part in self.chain(cell, stop):
                for name, version in part.entry.facts.get("made_by", {}).items():
                    used.setdefault(name, {})[version] = None
        listed = {name: ", ".join(sorted(versions)) for name, versions in used.items()}
        return {**self.header["made_by"], **listed}

    def unit(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Reads a unit, or finds it at hand."""
        if entry.unit not in self._units:
            self._units[entry.unit] = self.source.read(entry)
            while len(self._units) > _AT_HAND:
                self._units.popitem(last=False)
        self._units.move_to_end(entry.unit)
        return self._units[entry.unit]

    def fill(self, out: np.ndarray, cell: str, name: str, seeds: np.ndarray, time: Any) -> None:
        """Writes an array's rows at ``seeds`` and columns at ``time``; what is missing stays."""
        for part in self.chain(cell, int(seeds.max(initial=-1)) + 1):
            inside = (seeds >= part.start) & (seeds < part.stop)
            if inside.any():
                first = part.entry.facts["seeds"][0]
                values = self.unit(part.entry)[name][part.row]
                out[inside] = values[seeds[inside] - first][(slice(None), *time)]

    def moments(self, cell: str, name: str, stop: int) -> summary.Moments:
        """Returns the merged moments of a summarised series."""
        return summary.merged(
            summary.Moments(
                part.stop - part.start,
                *(self.unit(part.entry)[f"{name}_{kind}"][part.row] for kind in _MOMENTS),
            )
            for part in self.chain(cell, stop)
        )

    def counts(self, cell: str, name: str, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the merged (values, counts) of a summarised whole number."""
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for part in self.chain(cell, stop):
            unit = self.unit(part.entry)
            own = unit[f"{name}_row"] == part.row
            found.append((unit[f"{name}_value"][own], unit[f"{name}_count"][own]))
        return summary.add_counts(found)


_MOMENTS = ("anchor", "offset", "scatter")


class Memory:
    """Units of a sweep without a store; what a folder does, in a dictionary."""

    def __init__(self) -> None:
        self._units: dict[str, dict[str, np.ndarray]] = {}

    def put(self, unit: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Entry:
        """Keeps a unit."""
        self._units[unit] = dict(arrays)
        return Entry(unit, 0, "", dict(facts))

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a unit's arrays."""
        return self._units[entry.unit]


def header_of(study: Study, made_by: Mapping[str, str]) -> dict[str, Any]:
    """Returns all that is needed, besides the units, to label a study's results."""
    grids: dict[str, list[int]] = {}
    places: dict[str, int] = {}
    cells = []
    for spot in study.spots:
        cell, slots = spot.cell, spot.config["slots"]
        if slots not in grids:
            places[slots] = len(grids)
            grids[slots] = cell.padded_grid.tolist()
        place = places[slots]
        epsilon = float(cell.rule.epsilon)
        cells.append(
            {
                "hash": spot.hash,
                "algorithm": spot.config["algorithm"],
                "agents": cell.exchange.agents,
                "arms": cell.shape.law.arms,
                "horizon": int(cell.grid[-1]),
                "epsilon": None if math.isinf(epsilon) else epsilon,
                "epsilon_message": None if math.isinf(epsilon) else epsilon * cell.rule.reporting,
                "reporting": cell.exchange.reporting,
                "wait": cell.exchange.wait,
                "waits": cell.shape.waits,
                "links": list(links_per_round(cell.exchange)),
                "meters": list(cell.exchange.meters),
                "grid": place,
                "slots": len(cell.grid),
            }
        )
    until = study.until
    return {
        "format": FORMAT,
        "hash": study.hash,
        "study": study.describe(),
        "made_by": dict(made_by),
        "dims": [[axis.name, list(axis.labels)] for axis in study.axes],
        "keep": study.keep,
        "seeds": study.seeds,
        "until": None if until is None else until._asdict(),
        "look_level": None if until is None else until.look_level(study.seeds),
        "cells": cells,
        "grids": list(grids.values()),
    }


def open_results(path: str | os.PathLike[str]) -> Results:
    """Opens a run folder.

    Raises:
        ValueError: If it is not one, or a damaged one.
    """
    folder = RunFolder(checked_path("store", path))
    header = folder.header()
    if header is None:
        refuse("store", str(path), "a run folder with a study in it", "run the sweep first")
    if header.get("format") != FORMAT:
        refuse(
            "store", str(path), f"a run folder of format {FORMAT}", "use the package that made it"
        )
    entries, _ = folder.entries()
    return Results(header, folder, entries)


def open_sweep(path: str | os.PathLike[str], *, partial: bool = False) -> xr.Dataset:
    """Opens the results of a sweep; curves are read, and checked, when they are used.

    Args:
        path: The sweep's ``store``.
        partial: Open an unfinished sweep: what is there, with NaN for what is missing; ``seeds``
            says how many each cell has.

    Returns:
        The Dataset that `sweep` returned.

    Raises:
        ValueError: If it is no run folder, is damaged, or is unfinished and ``partial`` is not set.
        Damaged: When a value is read from a damaged unit: of curves, when it is used. Running the
            sweep again mends it.
    """
    return dataset(open_results(path), str(path), partial=partial)


def judged(results: Results, cell: str) -> tuple[int, bool]:
    """Returns (seeds, True) where a cell has all it needs, else (seeds to have next, False)."""
    header = results.header
    if header["until"] is None:
        return header["seeds"], results.seeds(cell, header["seeds"]) == header["seeds"]
    until = Precision(**header["until"])
    looks = until.looks(header["seeds"])
    for look in looks:
        if results.seeds(cell, look) < look:
            return look, False
        if (cell, look) not in results.narrow:
            width = relative_width(results.moments(cell, "regret", look), header["look_level"])
            results.narrow[cell, look] = width <= until.relative
        if results.narrow[cell, look]:
            break
    return look, True


def relative_width(regret: summary.Moments, level: float) -> float:
    """Returns the half-width of the simultaneous band at the last slot over the mean there."""
    if regret.seeds < 2:
        return math.nan
    mean, half = _look_band(regret.seeds, regret.mean, regret.covariance, level)
    return float(half[-1] / abs(mean[-1])) if half[-1] else 0.0


def _look_band(
    seeds: int, mean: np.ndarray, covariance: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    # A look's level lies far out: the quantile needs draws beyond it.
    resamples = min(1_000_000, max(2000, math.ceil(200 / (1 - level))))
    return moments_band(seeds, mean, covariance, level, resamples=resamples)


def dataset(results: Results, where: str, *, partial: bool = False) -> xr.Dataset:
    """Labels a study's results; arguments as in `open_sweep`."""
    header = results.header
    stops, missing = {}, 0
    for cell in dict.fromkeys(fact["hash"] for fact in header["cells"]):
        wanted, complete = judged(results, cell)
        stops[cell] = wanted if complete else results.seeds(cell, wanted)
        missing += 0 if complete else sum(b - a for a, b in results.gaps(cell, 0, wanted))
    if missing and not partial:
        allowed = f"finished; at least {missing:,} trials are missing"
        refuse("store", where, allowed, "resume it, or open it with partial=True")
    grid = _Grid(header)
    make = _curves if results.curves else _summaries
    data = make(results, grid, stops, complete=not missing)
    for name in ("epsilon", "epsilon_message", "reporting", "wait"):
        dims, values = grid.reduced(name)
        # A swept parameter already names its own dimension.
        if dims and name not in grid.dims:
            data.coords[name] = (dims, values)
    data.attrs = grid.attrs(results.made_by(stops))
    return data


class _Grid:
    """The labelled dimensions of a study."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.header = header
        self.dims = [name for name, _ in header["dims"]]
        self.shape = tuple(len(labels) for _, labels in header["dims"])
        self.cells: list[dict[str, Any]] = header["cells"]
        self.hashes = [cell["hash"] for cell in self.cells]

    def coordinates(self) -> dict[str, Any]:
        """Returns the dimensions' coordinates; labels of mixed kinds stay what they are."""
        found = {}
        for name, labels in self.header["dims"]:
            kinds = {isinstance(label, str) for label in labels}
            if len(kinds) > 1:
                values = np.empty(len(labels), object)
                values[:] = labels
            else:
                values = np.array(labels)
            found[name] = (name, values)
        return found

    def table(self, values: Sequence[Any]) -> np.ndarray:
        """Arranges one value per cell over the dimensions."""
        return np.array(values).reshape((*self.shape, *np.shape(values[0])))

    def reduced(self, name: str) -> tuple[list[str], np.ndarray]:
        """Returns a fact of the cells over only those dimensions along which it changes."""
        values = [cell[name] for cell in self.cells]
        if name.startswith("epsilon"):
            values = [math.inf if value is None else value for value in values]
        return self.least(self.table(values))

    def least(self, table: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Drops the dimensions along which a table is constant."""
        dims = list(self.dims)
        for place, name in reversed(list(enumerate(self.dims))):
            first = np.take(table, [0], axis=place)
            if (table == first).all():
                table = np.asarray(np.take(table, 0, axis=place))
                dims.remove(name)
        return dims, table

    def time(self) -> tuple[int, dict[str, Any]]:
        """Returns the number of recorded slots, and their coordinate.

        A grid that is shorter than another repeats its last slot.
        """
        used = {cell["grid"] for cell in self.cells}
        attrs = {"long_name": "slot", "units": "slot"}
        if len(used) == 1:
            points = self.cells[0]["slots"]
            slots = np.array(self.header["grids"][self.cells[0]["grid"]][:points])
            return points, {"time": ("time", slots, attrs)}
        points = max(len(self.header["grids"][place]) for place in used)
        grids = [np.array(self.header["grids"][cell["grid"]]) for cell in self.cells]
        slots = np.array(
            [grid[self.columns(cell, points)] for grid, cell in zip(grids, self.cells, strict=True)]
        )
        dims, table = self.least(slots.reshape(*self.shape, -1))
        return points, {"slot": ([*dims, "time"], table, attrs)}

    def columns(self, cell: Mapping[str, Any], points: int) -> np.ndarray:
        """Returns where a cell's arrays hold the recorded slots."""
        return np.minimum(np.arange(points), len(self.header["grids"][cell["grid"]]) - 1)

    def attrs(self, made_by: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Returns what all cells share, and all that is needed to run them again."""
        made_by = self.header["made_by"] if made_by is None else made_by
        shared = {}
        for name in ("algorithm", "epsilon", "epsilon_message", "agents", "arms", "horizon"):
            dims, value = self.reduced(name)
            if not dims:
                shared[name] = value.item()
        if "algorithm" not in shared:
            shared["algorithm"] = ", ".join(dict.fromkeys(c["algorithm"] for c in self.cells))
        for place, name in enumerate(("meter_bound", "meter_used")):
            meters = dict.fromkeys(cell["meters"][place] for cell in self.cells)
            shared[name] = "/".join(meters)
        made_by = {f"{name}_version": version for name, version in made_by.items()}
        return {
            **shared,
            "root_seed": self.header["study"]["root_seed"],
            "keep": self.header["keep"],
            "study": json.dumps(self.header["study"]),
            "study_hash": self.header["hash"],
            **self._looks(),
            **made_by,
        }

    def _looks(self) -> dict[str, Any]:
        if self.header["until"] is None:
            return {}
        until = Precision(**self.header["until"])
        return {
            "look_level": self.header["look_level"],
            "looks": len(until.looks(self.header["seeds"])),
            "until_level": until.level,
        }


class _Lazy(BackendArray):
    """An array over cells, seeds and maybe time, read from units when indexed."""

    def __init__(
        self,
        results: Results,
        grid: _Grid,
        name: str,
        stop: int,
        points: int | None,
        dtype: Any,
        factors: Sequence[int] | None = None,
    ) -> None:
        self.results, self.grid, self.name, self.stop = results, grid, name, stop
        self.shape = (*grid.shape, stop, *(() if points is None else (points,)))
        self.dtype = np.dtype(dtype)
        # Links are a whole number of times the completed rounds.
        self.factors = factors

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.typing.ArrayLike:
        if not isinstance(key, indexing.VectorizedIndexer):
            return self._read(key.tuple)
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        picked = [
            np.atleast_1d(np.arange(size)[item]) for item, size in zip(key, self.shape, strict=True)
        ]
        cells, seeds = picked[: len(self.grid.dims)], picked[len(self.grid.dims)]
        time = picked[len(self.grid.dims) + 1 :]
        out = np.empty([len(each) for each in picked], self.dtype)
        for place in np.ndindex(*(len(each) for each in cells)):
            at = [int(each[i]) for each, i in zip(cells, place, strict=True)]
            index = int(np.ravel_multi_index(at, self.grid.shape)) if at else 0
            out[place] = self._cell(index, seeds, *time)
        scalars = [
            i for i, item in enumerate(key) if np.ndim(item) == 0 and not isinstance(item, slice)
        ]
        return out.reshape([n for i, n in enumerate(out.shape) if i not in scalars])

    def _cell(self, index: int, seeds: np.ndarray, *time: np.ndarray) -> np.ndarray:
        # Of an unfinished sweep what is missing is NaN; of a finished one nothing is.
        blank = np.nan if self.dtype.kind == "f" else 0
        out = np.full((len(seeds), *(len(each) for each in time)), blank, self.dtype)
        fact, stored = self.grid.cells[index], self.name
        time = tuple(self.grid.columns(fact, self.shape[-1])[each] for each in time)
        if stored == "exploitation_regret" and not fact["waits"]:
            stored = "rounds_by"  # zero wherever there is anything
        if stored == "best_arm_lost":
            stored = "agents_lost"
        self.results.fill(out, self.grid.hashes[index], stored, seeds, time)
        if stored != self.name and time:
            out *= 0
        elif self.factors is not None:
            out *= self.dtype.type(self.factors[index])
        return out


def _factors(grid: _Grid) -> dict[str, list[int]]:
    """Returns, per kind of link, the links that a completed round of each cell builds."""
    kinds = ("server_links", "peer_links_bound", "peer_links_used")
    return {kind: [cell["links"][i] for cell in grid.cells] for i, kind in enumerate(kinds)}


def _described(name: str, grid: _Grid) -> dict[str, str]:
    words, units = _NAMES[name]
    attrs = {"long_name": words, "units": units}
    if name.startswith("peer"):
        meter = grid.attrs()["meter_bound" if name.endswith("bound") else "meter_used"]
        attrs |= {"long_name": f"{words}, meter {meter!r}", "meter": meter}
    return attrs


def _curves(
    results: Results, grid: _Grid, stops: Mapping[str, int], *, complete: bool
) -> xr.Dataset:
    stop = max(stops.values())
    points, time = grid.time()
    factors = _factors(grid)

    def lazy(name: str, stored: str, dtype: Any, over_time: bool) -> xr.Variable:
        size = points if over_time else None
        kind = dtype if complete or dtype == np.bool_ else np.float64
        array = _Lazy(results, grid, stored, stop, size, kind, factors.get(name))
        dims = [*grid.dims, "seed", *(["time"] if over_time else [])]
        return xr.Variable(dims, indexing.LazilyIndexedArray(array), _described(name, grid))

    variables: dict[str, Any] = {name: lazy(name, name, np.float64, True) for name in SERIES[:2]}
    variables |= {name: lazy(name, "rounds_by", np.int64, True) for name in SERIES[2:]}
    # "rounds" is the budget, here: it may be a dimension.
    variables["rounds_made"] = lazy("rounds_made", "rounds", np.int32, False)
    variables |= {name: lazy(name, name, np.int32, False) for name in _PER_SEED[1:]}
    variables["seeds"] = (grid.dims, grid.table([stops[cell] for cell in grid.hashes]))
    lost = lazy("best_arm_lost", "best_arm_lost", np.bool_, False)
    coords = {**grid.coordinates(), "seed": ("seed", np.arange(stop)), **time}
    return xr.Dataset(variables, {**coords, "best_arm_lost": lost})


def _summaries(
    results: Results, grid: _Grid, stops: Mapping[str, int], *, complete: bool
) -> xr.Dataset:
    points, time = grid.time()
    hashes = grid.hashes

    def over_cells(values: list[Any]) -> np.ndarray:
        return grid.table(values)

    def known(stored: str, *, full: bool) -> list[summary.Moments]:
        found = []
        for cell, fact in zip(hashes, grid.cells, strict=True):
            columns = grid.columns(fact, points)
            if not stops[cell]:  # of an unfinished sweep
                blank = np.full(points, math.nan)
                scatter = np.full((points,) * (1 + full), math.nan)
                found.append(summary.Moments(0, blank, blank, scatter))
            elif stored == "exploitation_regret" and not fact["waits"]:
                found.append(summary.moments(np.zeros((2, points)), full=False))
            else:
                all_slots = results.moments(cell, stored, stops[cell])
                scatter = all_slots.scatter
                found.append(
                    all_slots._replace(
                        anchor=all_slots.anchor[columns],
                        offset=all_slots.offset[columns],
                        scatter=scatter[np.ix_(*[columns] * scatter.ndim)],
                    )
                )
        return found

    regret = known("regret", full=True)
    series: dict[str, Any] = {
        "regret_mean": ([*grid.dims, "time"], over_cells([m.mean for m in regret])),
        "regret_covariance": (
            [*grid.dims, "time", "time_2"],
            over_cells([m.covariance for m in regret]),
        ),
    }
    for name, stored in (("exploitation_regret", "exploitation_regret"), ("rounds", "rounds_by")):
        parts = known(stored, full=False)
        mean = over_cells([part.mean for part in parts])
        variance = over_cells([part.covariance for part in parts])
        if name == "exploitation_regret":
            series[f"{name}_mean"] = ([*grid.dims, "time"], mean)
            continue
        for kind, factors in _factors(grid).items():
            factor = np.array(factors, np.float64).reshape((*grid.shape, 1))
            series[f"{kind}_mean"] = ([*grid.dims, "time"], mean * factor)
            series[f"{kind}_variance"] = ([*grid.dims, "time"], variance * factor**2)
        series["rounds_made_mean"] = (grid.dims, mean[..., -1])
        series["rounds_made_variance"] = (grid.dims, variance[..., -1])
    level = results.header["look_level"]
    histograms = [results.counts(cell, "regret_bin", stops[cell]) for cell in hashes]
    levels = np.array(QUANTILES)
    place = np.unique(np.concatenate([bins for bins, _ in histograms]))

    def dense(sparse: list[tuple[np.ndarray, np.ndarray]], values: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(sparse), len(values)), np.int64)
        for row, (present, counts) in zip(rows, sparse, strict=True):
            row[np.searchsorted(values, present)] = counts
        return over_cells(list(rows))

    low, high = summary.bin_edges(place)
    found = [
        summary.quantiles(*histogram, levels) if stops[cell] else np.full(len(levels), math.nan)
        for cell, histogram in zip(hashes, histograms, strict=True)
    ]
    made = [results.counts(cell, "rounds", stops[cell]) for cell in hashes]
    rounds = np.unique(np.concatenate([values for values, _ in made]))
    events = {}
    for name in ("best_arm_lost", "undecided"):
        tables = [dict(zip(*results.counts(c, name, stops[c]), strict=True)) for c in hashes]
        events[name] = over_cells([int(table.get(1, 0)) for table in tables])
    return xr.Dataset(
        {
            **series,
            "regret_quantile": ([*grid.dims, "quantile"], over_cells(found)),
            "regret_histogram": ([*grid.dims, "bin"], dense(histograms, place)),
            "rounds_histogram": ([*grid.dims, "made"], dense(made, rounds)),
            "seeds": (grid.dims, over_cells([stops[cell] for cell in hashes])),
            **(
                {}
                if level is None
                else {
                    "relative_width": (
                        grid.dims,
                        over_cells([relative_width(each, level) for each in regret]),
                    )
                }
            ),
            "best_arm_lost": (grid.dims, events["best_arm_lost"]),
            "undecided": (grid.dims, events["undecided"]),
        },
        {
            **grid.coordinates(),
            **time,
            "quantile": levels,
            "bin_low": ("bin", low),
            "bin_high": ("bin", high),
            "made": ("made", rounds, {"long_name": "completed rounds"}),
        },
    )


def final_table(
    data: xr.Dataset,
    *,
    level: float | None = None,
    server_price: float = 1.0,
    peer_price: float = 1.0,
) -> xr.Dataset:
    """Returns what every cell of a sweep ends with: regret, cost and rounds at T, with intervals.

    Args:
        data: From `sweep` or `open_sweep`.
        level: Confidence level of the intervals, 0.95 by default. For a sweep that ran until it was
            precise, the level over all looks together, by default the one it ran with: the interval
            of regret is then that of the simultaneous band, at the level of one look.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link on the meter "bound" or "edges".

    Returns:
        A Dataset over the swept parameters: ``regret``, ``cost`` and ``rounds_made``, means over
        the seeds, each with ``_lower`` and ``_upper`` (Student t); ``server_links``,
        ``peer_links_bound``, ``peer_links_used``; ``seeds``, ``best_arm_lost`` and the
        Clopper-Pearson ``best_arm_lost_lower`` and ``_upper``. Cells with fewer than 2 seeds, of an
        unfinished sweep, have NaN.

    Raises:
        ValueError: If ``data`` is not from a sweep, or another argument is out of range.
    """
    held = set(data) if isinstance(data, xr.Dataset) else set()
    if "seeds" not in held or not held & {"rounds_made", "rounds_made_mean"}:
        refuse("data", type(data).__name__, "the Dataset of a sweep", "pass what sweep returned")
    prices = [
        price(field, value)
        for field, value in (("server_price", server_price), ("peer_price", peer_price))
    ]
    looks = data.attrs.get("looks", 0)
    level = data.attrs.get("until_level", 0.95) if level is None else level
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    each = 1 - (1 - level) / looks if looks else level
    dims = list(data.seeds.dims)
    names = [
        f"{name}{end}" for name in ("regret", "cost", "rounds_made") for end in ("", *_ENDS)
    ] + list(SERIES[2:])
    table = {name: np.full(data.seeds.shape, np.nan) for name in names}
    lost = np.zeros(data.seeds.shape, np.int64)
    bounds = {end: np.full(data.seeds.shape, np.nan) for end in _ENDS}
    for place in np.ndindex(data.seeds.shape):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        seeds = int(cell.seeds)
        if seeds < 2:
            continue
        if "regret" in data:
            found, lost[place] = _final_curves(cell, seeds, prices, each)
        else:
            found, lost[place] = _final_summary(cell, seeds, prices, each, bool(looks))
        for name, value in found.items():
            table[name][place] = value
        for end, bound in zip(_ENDS, lost_interval(int(lost[place]), seeds, level), strict=True):
            bounds[end][place] = bound
    axes = {name: (name, data.coords[name].values) for name in dims}
    attrs = {**data.attrs, "level": level, "server_price": prices[0], "peer_price": prices[1]}
    attrs["description"] = f"{100 * level:.6g} % confidence interval of the mean (Student t)"
    if looks:
        told = f"({100 * each:.6g} % a look, {looks} possible looks)"
        attrs["description"] = f"{100 * level:.6g} % simultaneous band at T {told}"
    return xr.Dataset(
        {
            **{name: (dims, values) for name, values in table.items()},
            "seeds": data.seeds,
            "best_arm_lost": (dims, lost),
            **{f"best_arm_lost{end}": (dims, values) for end, values in bounds.items()},
        },
        axes,
        attrs,
    )


_ENDS = ("_lower", "_upper")


def _final_curves(
    cell: xr.Dataset, seeds: int, prices: Sequence[float], level: float
) -> tuple[dict[str, float], int]:
    kept = cell.isel(seed=slice(seeds), time=-1)
    series = {name: np.asarray(kept[name], np.float64) for name in ("regret", *SERIES[2:])}
    found = {name: float(series.pop(name).mean()) for name in SERIES[2:]}
    series["rounds_made"] = np.asarray(kept.rounds_made, np.float64)
    series["cost"] = np.asarray(communication_cost(kept, prices[0], prices[1]), np.float64)
    for name, values in series.items():
        part = summary.moments(values[:, None], full=False)
        found |= _interval(name, seeds, float(part.mean[0]), float(part.covariance[0]), level)
    return found, int(kept.best_arm_lost.values.sum())


def _final_summary(
    cell: xr.Dataset, seeds: int, prices: Sequence[float], level: float, judged: bool
) -> tuple[dict[str, float], int]:
    last = cell.isel(time=-1)
    covariance = cell.regret_covariance.values
    found = _interval("regret", seeds, float(last.regret_mean), float(covariance[-1, -1]), level)
    if judged:
        mean, half = _look_band(seeds, cell.regret_mean.values, covariance, level)
        found |= {"regret_lower": mean[-1] - half[-1], "regret_upper": mean[-1] + half[-1]}
    rounds, variance = float(cell.rounds_made_mean), float(cell.rounds_made_variance)
    found |= _interval("rounds_made", seeds, rounds, variance, level)
    links = {name: float(last[f"{name}_mean"]) for name in SERIES[2:]}
    cost = prices[0] * links["server_links"] + prices[1] * links["peer_links_bound"]
    # Every link is built by a completed round.
    scale = cost / rounds if rounds else 0.0
    found |= _interval("cost", seeds, cost, variance * scale**2, level)
    return found | links, int(cell.best_arm_lost)


def _interval(
    name: str, seeds: int, mean: float, variance: float, level: float
) -> dict[str, float]:
    half = student_quantile(seeds - 1, level) * math.sqrt(max(variance, 0.0) / seeds)
    return {name: mean, f"{name}_lower": mean - half, f"{name}_upper": mean + half}
