"""What a sweep has computed so far, as one labelled Dataset; read lazily, chunk by chunk.

A *chunk* holds some cells for one range of seeds. Chunks lie in a `store.Store`, or in
memory; which of them make up a cell is worked out here, from their facts alone.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fmab_jax.analysis import privacy, summary, words
from fmab_jax.analysis.tables import look_band, with_seeds
from fmab_jax.core.exchanges import Meter
from fmab_jax.core.outputs import Gauge, Output
from fmab_jax.errors import Damaged, count, did_you_mean, flag, number_of, refuse
from fmab_jax.files import checked_path
from fmab_jax.run import netcdf, schema
from fmab_jax.run.batches import Config
from fmab_jax.run.outputs import gauges_of, made, of_study
from fmab_jax.run.outputs.usual import USUAL
from fmab_jax.run.simulate import facts
from fmab_jax.sweeps import records
from fmab_jax.sweeps.store import Entry, Store
from fmab_jax.sweeps.study import Precision, Study

# Facts of a configuration that all may share.
_SHARED = (
    *("algorithm", "title", "epsilon", "epsilon_message", "agents", "arms", "horizon"),
    *("reporting", "wait"),
)
# Axes whose labels stand for values that only the study states.
_WORDED = ("problem", "rewards", "algorithm")
# What outputs are made of besides what trials record.
_FACTS = ("agents", "arms", "vectors", "numbers", "number_bits")
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# Chunks that a reader keeps at hand.
_AT_HAND = 4
# Dask chunks of a variable.
_MOST_PARTS = 100_000


@runtime_checkable
class Source(Protocol):
    """Where chunks are read from."""

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a chunk's arrays."""


class Part(NamedTuple):
    """A cell's seeds [start, stop) in one chunk, in its row ``row``."""

    entry: Entry
    row: int
    start: int
    stop: int


class Results:
    """The chunks of a study, by cell.

    Attributes:
        header: What `header_of` returned when the study began.
        parts: By the cell's hash, its parts.
        narrow: By cell and look, whether the band was narrow enough; see `judged`.
        outputs: That the study asks for besides the usual ones.
    """

    def __init__(
        self,
        header: Mapping[str, Any],
        source: Source,
        entries: Iterable[Entry],
        outputs: tuple[Output, ...] = (),
    ) -> None:
        self.header = header
        self.source = source
        self.outputs = outputs
        self.parts: dict[str, list[Part]] = {}
        self.narrow: dict[tuple[str, int], bool] = {}
        self._chunks: OrderedDict[str, Mapping[str, np.ndarray]] = OrderedDict()
        self._reading: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._facts = {
            cell["hash"]: {
                "slots": len(header["grids"][cell["grid"]]),
                "agents": cell["agents"],
                "arms": cell["arms"],
            }
            for cell in header.get("cells", ())
        }
        for entry in entries:
            self.add(entry)

    def __getstate__(self) -> dict[str, Any]:
        # Where it is read by another process, that one has its own chunks at hand.
        return {n: v for n, v in vars(self).items() if n not in ("_chunks", "_reading", "_lock")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._chunks, self._reading, self._lock = OrderedDict(), {}, threading.Lock()

    @property
    def curves(self) -> bool:
        """Whether single seeds are kept."""
        return bool(self.header["keep"] == "curves")

    def add(self, entry: Entry) -> bool:
        """Takes note of one more chunk, if its facts are those of a chunk of such results."""
        if not records.fit(entry.facts) or entry.facts["keep"] != self.header["keep"]:
            return False
        start, stop = entry.facts["seeds"]
        for row, cell in enumerate(entry.facts["cells"]):
            self.parts.setdefault(cell, []).append(Part(entry, row, start, stop))
        return True

    def chain(self, cell: str, stop: int) -> list[Part]:
        """Returns parts that cover the cell's seeds from 0 on, without gap, as far as possible.

        Of single seeds, a part of a chunk can be used; of a summary only the whole.

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
                for name, version in part.entry.facts["made_by"].items():
                    used.setdefault(name, {})[version] = None
        listed = {name: ", ".join(sorted(versions)) for name, versions in used.items()}
        return {**self.header["made_by"], **listed}

    def chunk(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Reads a chunk, or finds it at hand; for several threads at once.

        Raises:
            Damaged: If it is not what its facts say.
        """
        with self._lock:
            reading = self._reading.setdefault(entry.chunk, threading.Lock())
        # Whoever else wants it waits, and finds it at hand.
        with reading:
            with self._lock:
                if entry.chunk in self._chunks:
                    self._chunks.move_to_end(entry.chunk)
                    return self._chunks[entry.chunk]
            arrays = self.source.read(entry)
            if wrong := records.fault(entry, arrays, self._facts, self.outputs):
                folder = getattr(self.source, "path", Path())
                raise Damaged(folder / "chunks" / f"{entry.chunk}.npz", wrong)
            with self._lock:
                self._chunks[entry.chunk] = arrays
                while len(self._chunks) > _AT_HAND:
                    old, _ = self._chunks.popitem(last=False)
                    self._reading.pop(old, None)
            return arrays

    def fill(self, out: np.ndarray, cell: str, name: str, seeds: np.ndarray, time: Any) -> None:
        """Writes an array's rows at ``seeds`` and columns at ``time``; what is missing stays."""
        for part in self.chain(cell, int(seeds.max(initial=-1)) + 1):
            inside = (seeds >= part.start) & (seeds < part.stop)
            if inside.any():
                first = part.entry.facts["seeds"][0]
                values = self.chunk(part.entry)[name][part.row]
                out[inside] = values[seeds[inside] - first][(slice(None), *time)]

    def has(self, cell: str, name: str, seed: int = 0) -> bool:
        """Tells whether the cell's chunks, that of a seed if there is one, hold an array."""
        parts = self.parts.get(cell)
        if not parts:
            return True
        holding = next((part for part in parts if part.start <= seed < part.stop), parts[0])
        return name in self.chunk(holding.entry)

    def moments(
        self, cell: str, name: str, stop: int, sizes: Sequence[int] | None = None
    ) -> summary.Moments:
        """Returns the merged moments of a summarised series; with ``sizes``, of so many, in a row.

        What is stored beside cells of more agents, arms or slots is padded.
        """

        def read(part: Part, kind: str) -> np.ndarray:
            values = self.chunk(part.entry)[f"{name}_{kind}"][part.row]
            return values if sizes is None else values[tuple(map(slice, sizes))].reshape(-1)

        return summary.merged(
            summary.Moments(part.stop - part.start, *(read(part, kind) for kind in _MOMENTS))
            for part in self.chain(cell, stop)
        )

    def gauge(
        self, cell: str, gauge: Gauge, seeds: np.ndarray, sizes: Mapping[str, int]
    ) -> np.ndarray:
        """Returns a gauge of some seeds of a cell, of each agent; what is missing is NaN.

        Args:
            cell: Its hash.
            gauge: Which.
            seeds: Of the cell.
            sizes: The cell's own, by dimension.
        """
        wanted = [sizes[dim] for dim in gauge.dims]
        out = np.full((len(seeds), *wanted), np.nan)
        for part in self.chain(cell, int(seeds.max(initial=-1)) + 1):
            inside = (seeds >= part.start) & (seeds < part.stop)
            first = part.entry.facts["seeds"][0]
            # One row stands for all agents; others may be padding.
            values = self.chunk(part.entry)[gauge.name][part.row][seeds[inside] - first]
            values = values[(slice(None), *map(slice, wanted))]
            out[inside] = np.broadcast_to(values, (len(values), *wanted))
        return out

    def counts(self, cell: str, name: str, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the merged (values, counts) of a summarised whole number."""
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for part in self.chain(cell, stop):
            chunk = self.chunk(part.entry)
            own = chunk[f"{name}_row"] == part.row
            found.append((chunk[f"{name}_value"][own], chunk[f"{name}_count"][own]))
        return summary.add_counts(found)


_MOMENTS = ("anchor", "offset", "scatter")


class Memory:
    """Chunks of a sweep without a store; what a folder does, in a dictionary."""

    def __init__(self) -> None:
        self._chunks: dict[str, dict[str, np.ndarray]] = {}

    def put(self, chunk: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Entry:
        """Keeps a chunk."""
        self._chunks[chunk] = dict(arrays)
        return Entry(chunk, 0, "", dict(facts))

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a chunk's arrays."""
        return self._chunks[entry.chunk]


def header_of(study: Study, made_by: Mapping[str, str]) -> dict[str, Any]:
    """Returns all that is needed, besides the chunks, to label a study's results."""
    grids: dict[str, list[int]] = {}
    places: dict[str, int] = {}
    cells = []
    for point in study.points:
        slots = point.described["slots"]
        if slots not in grids:
            places[slots] = len(grids)
            grids[slots] = point.config.grid[: point.config.wanted].tolist()
        cells.append({"hash": point.hash, **_facts(point.config, study), "grid": places[slots]})
    until = study.until
    exchanges = [point.config.exchange for point in study.points]
    return {
        "format": records.FORMAT,
        "hash": study.hash,
        "study": study.describe(),
        "made_by": dict(made_by),
        "dims": [[axis.name, list(axis.labels), axis.words] for axis in study.axes],
        "meters": [list(meter) for meter in schema.meters_of(exchanges)],
        "keep": study.keep,
        "seeds": study.seeds,
        "until": None if until is None else until._asdict(),
        "look_level": None if until is None else until.look_level(study.seeds),
        "cells": cells,
        "grids": list(grids.values()),
    }


def _facts(config: Config, study: Study) -> dict[str, Any]:
    """Returns what results say of one configuration, as JSON has it."""
    told = facts(config, sum_agents=study.sum_agents)
    for name in ("epsilon", "epsilon_message"):
        told[name] = None if math.isinf(told[name]) else told[name]
    links = {meter.name: number for meter, number in config.exchange.links}
    more: dict[str, Any] = {"links": links, "slots": config.points}
    if study.outputs:
        more["number_bits"] = config.facts["number_bits"]
    return told | more | schema.costs_of(config.exchange)


def open_results(path: str | os.PathLike[str]) -> Results:
    """Opens a store.

    Raises:
        ValueError: If it is not one, or a damaged one.
    """
    folder = Store(checked_path("store", path))
    header = records.header_in(folder)
    if header is None:
        refuse("store", str(path), "a store with a study in it", "run the sweep first")
    entries, _ = folder.entries()
    return Results(header, folder, entries, of_study(header["study"].get("outputs", [])))


def open_sweep(
    path: str | os.PathLike[str],
    *,
    partial: bool = False,
    chunks: str | Mapping[str, int] | None = None,
) -> xr.Dataset:
    """Opens the results of a sweep; curves are read, and checked, when they are used.

    With ``chunks`` curves are Dask arrays: what is computed from them, such as a difference, is
    worked out when it is used, chunk by chunk, and may be larger than the memory.
    `confidence_band`, `paired_difference` and `final_table` read them block by block.

    Args:
        path: The sweep's ``store``.
        partial: Open an unfinished sweep: what is there, with NaN for what is missing; ``seeds``
            says how many each configuration has.
        chunks: "store" for Dask arrays whose chunks are the store's: one configuration x its chunk
            of seeds x all slots. Or sizes by dimension, such as ``{"seed": 1000}``, which replace
            these. By default no Dask arrays. Of a sweep with ``keep="summary"``, which is small,
            it changes nothing.

    Returns:
        The Dataset that `sweep` returned.

    Raises:
        ValueError: If it is no store, is damaged, or is unfinished and ``partial`` is not set; if
            ``chunks`` is something else, or Dask is not installed.
        Damaged: When a value is read from a damaged chunk: of curves, when it is used. Running the
            sweep again mends it.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem, folder = fmab.Problem.uniform(agents=5, arms=10), tempfile.mkdtemp() + "/eps"
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20, store=folder
        ... )
        >>> bool((fmab.open_sweep(folder).regret == data.regret).all())
        True
        >>> fmab.open_sweep(folder, chunks="store").regret.chunks
        ((1, 1), (20,), (100,))
    """
    flag("partial", partial)
    results = open_results(path)
    if chunks is None:
        return dataset(results, str(path), partial=partial)
    if not (isinstance(chunks, str) and chunks == "store" or isinstance(chunks, Mapping)):
        remedy = 'use chunks="store", or sizes such as {"seed": 1000}'
        refuse("chunks", chunks, '"store", sizes by dimension, or None', remedy)
    try:
        import dask.array  # noqa: F401
    except ImportError:
        remedy = 'pip install "fmab_jax[dask]"'
        refuse("chunks", chunks, "left out where Dask is not installed", remedy)
    sizes = {} if isinstance(chunks, str) else chunks
    return dataset(results, str(path), partial=partial, chunks=sizes)


def read(path: str | os.PathLike[str], *, partial: bool = False) -> xr.Dataset:
    """Reads results from wherever they are kept, labelled as `sweep` returned them.

    Args:
        path: A sweep's folder, or a .nc file of `save`, `export` or ``fmab run``.
        partial: As in `open_sweep`.

    Raises:
        ValueError: If it is neither, is damaged, or is unfinished and ``partial`` is not set.
    """
    path = checked_path("path", path)
    folder = os.path.isdir(path)
    if path.suffix == ".nc" and not folder:
        return _as_swept(netcdf.load(path))
    if not folder:
        refuse("path", str(path), "a folder of results or a .nc file", "check the path")
    return open_sweep(path, partial=partial)


def _as_swept(data: xr.Dataset) -> xr.Dataset:
    """Returns results of a file as a sweep returns them.

    NetCDF has no labels of mixed kinds, so that numbers beside "none" have become texts.
    """
    data = with_seeds(data)
    for name in data.seeds.dims if "seeds" in data else ():
        labels = data[name].values.tolist()
        read = [label if label == "none" else number_of(str(label)) for label in labels]
        if "none" in labels and None not in read:
            mixed = np.empty(len(read), object)
            mixed[:] = read
            attrs = data[name].attrs
            data = data.assign_coords({name: (name, mixed, attrs)})
    return data


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
    mean, half = look_band(regret.seeds, regret.mean, regret.covariance, level)
    return float(half[-1] / abs(mean[-1])) if half[-1] else 0.0


def dataset(
    results: Results,
    where: str,
    *,
    partial: bool = False,
    chunks: Mapping[str, int] | None = None,
) -> xr.Dataset:
    """Labels a study's results; arguments as in `open_sweep`, with {} for the store's chunks."""
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
    if results.curves:
        data = _curves(results, grid, stops, complete=not missing, chunks=chunks)
    else:
        data = _summaries(results, grid, stops, complete=not missing)
    for name in _SHARED:
        if name in ("algorithm", "title"):
            continue  # a dimension, where it differs
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
        self.dims = [name for name, _, _ in header["dims"]]
        self.shape = tuple(len(labels) for _, labels, _ in header["dims"])
        self.cells: list[dict[str, Any]] = header["cells"]
        self.hashes = [cell["hash"] for cell in self.cells]
        self.meters = [Meter(*each) for each in header["meters"]]

    def coordinates(self) -> dict[str, Any]:
        """Returns the dimensions' coordinates; labels of mixed kinds stay what they are."""
        found = {}
        for name, labels, about in self.header["dims"]:
            kinds = {isinstance(label, str) for label in labels}
            if len(kinds) > 1:
                values = np.empty(len(labels), object)
                values[:] = labels
            else:
                values = np.array(labels)
            found[name] = (name, values, about)
        return found

    def links(self) -> np.ndarray:
        """Returns the links that a completed round of each cell builds: int64 [cell, meter]."""
        rows = [[cell["links"].get(m.name, 0) for m in self.meters] for cell in self.cells]
        return np.array(rows, np.int64).reshape(len(self.cells), len(self.meters))

    def sizes(self, points: int) -> dict[str, int]:
        """Returns the lengths of the dimensions that outputs may have."""
        agents, arms = (max(cell[name] for cell in self.cells) for name in ("agents", "arms"))
        return {"time": points, "meter": len(self.meters), "agent": agents, "arm": arms}

    def own_sizes(self, index: int) -> dict[str, int]:
        """Returns the same of one cell."""
        cell = self.cells[index]
        own = {"agent": cell["agents"], "arm": cell["arms"], "time": cell["slots"]}
        return own | {"meter": len(self.meters)}

    def facts(self, index: int) -> dict[str, Any]:
        """Returns what outputs of a cell are made of besides what its trials record."""
        known = {name: self.cells[index].get(name) for name in _FACTS}
        return known | {"links": self.links()[index]}

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
        shared: dict[str, Any] = {}
        for name in _SHARED:
            dims, value = self.reduced(name)
            if not dims:
                shared[name] = value.item()
        for name in ("algorithm", "title"):
            if name not in shared:
                shared[name] = ", ".join(dict.fromkeys(cell[name] for cell in self.cells))
        common, by = self._settings()
        shared["settings"] = json.dumps(common)
        if by:
            shared["settings_by"] = json.dumps(by)
        shared["ledger"] = json.dumps(self._ledger())
        labels = {name: labels for name, labels, _ in self.header["dims"] if name in _WORDED}
        if labels:
            shared["labels"] = json.dumps(labels)
        made_by = {f"{name}_version": version for name, version in made_by.items()}
        return {
            **shared,
            "root_seed": self.header["study"]["root_seed"],
            "keep": self.header["keep"],
            "schema": schema.VERSION,
            "study": json.dumps(self.header["study"]),
            "study_hash": self.header["hash"],
            **self._looks(),
            **made_by,
        }

    def _settings(self) -> tuple[dict[str, str], dict[str, dict[str, dict[str, str]]]]:
        """Returns the words that all cells share, and those that go with an algorithm or a problem.

        What only some algorithms have, or one problem of several, goes with its label.
        """
        told = []
        for cell in self.cells:
            epsilon = math.inf if cell["epsilon"] is None else cell["epsilon"]
            own = {"title": cell["title"], "epsilon": words.privacy(epsilon)}
            told.append(own | json.loads(cell["settings"]))
        labels = {name: [str(label) for label in labels] for name, labels, _ in self.header["dims"]}
        common: dict[str, str] = {}
        by: dict[str, dict[str, dict[str, str]]] = {}
        for name in dict.fromkeys(name for own in told for name in own):
            if name in self.dims:
                continue
            values = np.empty(len(told), object)
            values[:] = [own.get(name) for own in told]
            dims, table = self.least(values.reshape(self.shape))
            if not dims and name not in _SHARED:
                common[name] = table.item()
            elif dims in (["algorithm"], ["problem"]):
                owners = by.setdefault(dims[0], {label: {} for label in labels[dims[0]]})
                for label, said in zip(labels[dims[0]], table.tolist(), strict=True):
                    if said is not None:
                        owners[label][name] = said
        return common, by

    def _ledger(self) -> list[dict[str, Any]]:
        """Returns the privacy ledger of all cells together."""
        labels = product(*(labels for _, labels, _ in self.header["dims"]))
        swept = [dict(zip(self.dims, each, strict=True)) for each in labels]
        told = [(cell["title"], json.loads(cell["ledger"])) for cell in self.cells]
        return privacy.merged(
            [(title, own, rows) for (title, rows), own in zip(told, swept, strict=True)]
        )

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
    """An output over cells, seeds and its own dimensions, read from chunks when indexed."""

    def __init__(
        self, results: Results, grid: _Grid, output: Output, stop: int, points: int, dtype: Any
    ) -> None:
        self.results, self.grid, self.output, self.points = results, grid, output, points
        self.sizes = grid.sizes(points)
        self.shape = (*grid.shape, stop, *(self.sizes[dim] for dim in output.dims))
        self.dtype = np.dtype(dtype)

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
        over = len(self.grid.dims)
        cells, seeds, rest = picked[:over], picked[over], picked[over + 1 :]
        out = np.empty([len(each) for each in picked], self.dtype)
        for place in np.ndindex(*(len(each) for each in cells)):
            at = [int(each[i]) for each, i in zip(cells, place, strict=True)]
            index = int(np.ravel_multi_index(at, self.grid.shape)) if at else 0
            out[place] = self._cell(index, seeds, *rest)
        scalars = [
            i for i, item in enumerate(key) if np.ndim(item) == 0 and not isinstance(item, slice)
        ]
        return out.reshape([n for i, n in enumerate(out.shape) if i not in scalars])

    def _cell(self, index: int, seeds: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        output, picked = self.output, dict(zip(self.output.dims, rest, strict=True))
        columns = self.grid.columns(self.grid.cells[index], self.points)
        # By name: another process has functions of its own.
        if usual := output.name in {each.name for each in USUAL}:
            # Of these each slot is by itself.
            columns = columns[picked.pop("time")] if "time" in picked else columns
        else:
            columns = columns[: self.grid.cells[index]["slots"]]
        own = self.grid.own_sizes(index) | {"time": len(columns)}
        stored, facts = _Stored(self, index, seeds, columns), self.grid.facts(index)
        values = made(output, stored, facts, own.__getitem__)
        if not usual:
            # What is made of no numbers is none.
            there = self.results.seeds(self.grid.hashes[index], int(seeds.max(initial=-1)) + 1)
            absent = (seeds >= there).reshape(-1, *[1] * (values.ndim - 1))
            values = np.where(absent, np.nan, values)
        for axis, dim in enumerate(output.dims, 1):
            if dim in picked:
                values = self._taken(values, axis, dim, picked[dim])
        return values

    def _taken(self, values: np.ndarray, axis: int, dim: str, places: np.ndarray) -> np.ndarray:
        """Returns values at some places of a dimension, of which other cells may have more."""
        more = self.sizes[dim] - values.shape[axis]
        if more and dim == "time":  # a grid that is shorter repeats its last slot
            places = np.minimum(places, values.shape[axis] - 1)
        elif more:
            wide = [(0, 0)] * values.ndim
            wide[axis] = (0, more)
            values = np.pad(values.astype(np.float64), wide, constant_values=math.nan)
        return np.take(values, places, axis=axis)


class _Stored:
    """What some seeds of a cell have recorded, read when it is asked for."""

    def __init__(self, lazy: _Lazy, index: int, seeds: np.ndarray, columns: np.ndarray) -> None:
        self.results, self.cell = lazy.results, lazy.grid.hashes[index]
        self.seeds, self.columns = seeds, columns
        self.sizes = lazy.grid.own_sizes(index) | {"time": len(columns)}
        # Of an unfinished sweep what is missing is NaN; of a finished one nothing is.
        self.real = lazy.dtype.kind == "f"
        self.gauges = {each.name: each for each in gauges_of([lazy.output])}

    def __call__(self, name: str) -> np.ndarray:
        """Returns a field or a gauge."""
        if name in self.gauges:
            return self.results.gauge(self.cell, self.gauges[name], self.seeds, self.sizes)
        kept, over_time = schema.FIELDS[name]
        dtype: np.dtype[Any] = np.dtype(np.float64) if self.real else kept
        size = (len(self.columns),) if over_time else ()
        out = np.full((len(self.seeds), *size), np.nan if dtype.kind == "f" else 0, dtype)
        # Where nobody waits there is no such series: zero wherever there is anything.
        seed = int(self.seeds[0]) if len(self.seeds) else 0
        absent = name == "waiting_regret" and not self.results.has(self.cell, name, seed)
        stored = "rounds_by" if absent else name
        time = (self.columns,) if over_time else ()
        self.results.fill(out, self.cell, stored, self.seeds, time)
        return out * 0 if absent else out


class _Slices:
    """A lazy variable as Dask reads it: by slices, in any thread or process."""

    def __init__(self, lazy: _Lazy) -> None:
        self.lazy, self.shape, self.dtype = lazy, lazy.shape, lazy.dtype
        self.ndim = len(lazy.shape)

    def __getitem__(self, key: tuple[Any, ...]) -> np.ndarray:
        return self.lazy._read(key)


def _chunk_sizes(
    results: Results,
    grid: _Grid,
    stops: Mapping[str, int],
    points: int,
    wanted: Mapping[str, int],
) -> dict[str, tuple[int, ...]]:
    """Returns the sizes of the Dask chunks along each dimension."""
    lengths = {**dict(zip(grid.dims, grid.shape, strict=True)), "seed": max(stops.values())}
    lengths |= grid.sizes(points)
    # The fewest parts of a whole cell: then few chunks of the store lie in two of Dask's.
    chains = [results.chain(cell, stop) for cell, stop in stops.items() if stop == lengths["seed"]]
    ends = [part.stop for part in min(chains, key=len)]
    sizes = {name: (1,) * length for name, length in lengths.items() if name in grid.dims}
    sizes["seed"] = tuple(b - a for a, b in zip([0, *ends[:-1]], ends, strict=True)) or (0,)
    for name, size in wanted.items():
        if name not in lengths:
            remedy = did_you_mean(name, lengths, "name a dimension of the sweep")
            refuse("chunks", name, "sizes by dimension of the sweep", remedy)
        length = lengths[name]
        size = min(count(f"chunks[{name!r}]", size, 1, 2**62, "give a size"), max(length, 1))
        whole, rest = divmod(length, size)
        sizes[name] = (size,) * whole + (rest,) * (rest > 0)
        if math.prod(map(len, sizes.values())) > _MOST_PARTS:
            # Each is a task of Dask's, for each variable.
            remedy = "use larger sizes"
            refuse("chunks", dict(wanted), f"such that there are at most {_MOST_PARTS:,}", remedy)
    return sizes


def _curves(
    results: Results,
    grid: _Grid,
    stops: Mapping[str, int],
    *,
    complete: bool,
    chunks: Mapping[str, int] | None,
) -> xr.Dataset:
    stop = max(stops.values())
    points, time = grid.time()
    sizes = {} if chunks is None else _chunk_sizes(results, grid, stops, points, chunks)

    def lazy(output: Output) -> xr.Variable:
        boolean = output.dtype is np.bool_
        kind = output.dtype if complete or boolean else np.float64
        array = _Lazy(results, grid, output, stop, points, kind)
        dims = [*grid.dims, "seed", *output.dims]
        if chunks is not None:
            import dask.array

            over = tuple(
                sizes.get(dim, (size,)) for dim, size in zip(dims, array.shape, strict=True)
            )
            made = dask.array.from_array(_Slices(array), over, name=False, fancy=False)
            return xr.Variable(dims, made, output.attrs)
        return xr.Variable(dims, indexing.LazilyIndexedArray(array), output.attrs)

    every = (*USUAL, *results.outputs)
    made = {output.name: lazy(output) for output in every}
    events = {output.name: made.pop(output.name) for output in every if output.coordinate}
    variables: dict[str, Any] = dict(made)
    variables["seeds"] = (grid.dims, grid.table([stops[cell] for cell in grid.hashes]))
    coords = {**grid.coordinates(), "seed": ("seed", np.arange(stop)), **time}
    coords |= schema.index_coordinates(every, grid.sizes(points))
    return xr.Dataset(variables, {**coords, **schema.meter_coordinates(grid.meters), **events})


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
            elif not results.has(cell, f"{stored}_anchor"):
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
    for name, stored in (("waiting_regret", "waiting_regret"), ("rounds", "rounds_by")):
        parts = known(stored, full=False)
        mean = over_cells([part.mean for part in parts])
        variance = over_cells([part.covariance for part in parts])
        if name == "waiting_regret":
            series[f"{name}_mean"] = ([*grid.dims, "time"], mean)
            continue
        per_round = grid.links().reshape(*grid.shape, 1, -1).astype(np.float64)
        over = [*grid.dims, "time", "meter"]
        series["links_mean"] = (over, mean[..., None] * per_round)
        series["links_variance"] = (over, variance[..., None] * per_round**2)
        series["rounds_made_mean"] = (grid.dims, mean[..., -1])
        series["rounds_made_variance"] = (grid.dims, variance[..., -1])
    numbers = [_moments_of(*results.counts(c, "numbers_sent", stops[c])) for c in hashes]
    for which, kind in enumerate(("mean", "variance")):
        series[f"numbers_sent_{kind}"] = (grid.dims, over_cells([each[which] for each in numbers]))
    for output in results.outputs:
        series |= _summary_of(output, results, grid, stops, points)
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
    names = [each.name for each in USUAL if each.coordinate] + ["undecided"]
    for name in names:
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
            **{name: (grid.dims, found) for name, found in events.items()},
        },
        {
            **grid.coordinates(),
            **time,
            **schema.meter_coordinates(grid.meters),
            **schema.index_coordinates(results.outputs, grid.sizes(points)),
            "quantile": levels,
            "bin_low": ("bin", low),
            "bin_high": ("bin", high),
            "made": ("made", rounds, {"long_name": "completed rounds"}),
        },
    )


def _summary_of(
    output: Output, results: Results, grid: _Grid, stops: Mapping[str, int], points: int
) -> dict[str, Any]:
    """Returns mean and variance over the seeds of an output that was asked for."""
    sizes = grid.sizes(points)
    shape = tuple(sizes[dim] for dim in output.dims)
    found = np.full((2, len(grid.cells), *shape), math.nan)
    for index, cell in enumerate(grid.hashes):
        own = [grid.own_sizes(index)[dim] for dim in output.dims]
        if not stops[cell]:  # of an unfinished sweep
            continue
        moments = results.moments(cell, output.name, stops[cell], own)
        for which, flat in enumerate((moments.mean, moments.covariance)):
            values = flat.reshape(own)
            if "time" in output.dims:  # a grid that is shorter repeats its last slot
                columns = np.minimum(np.arange(points), own[0] - 1)
                values = np.take(values, columns, axis=0)
            where: Any = (which, index, *map(slice, values.shape))
            found[where] = values
    dims = [*grid.dims, *output.dims]
    return {
        f"{output.name}_{kind}": (dims, values.reshape((*grid.shape, *shape)), output.attrs)
        for kind, values in zip(("mean", "variance"), found, strict=True)
    }


def _moments_of(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Returns mean and unbiased variance of counted whole numbers; NaN where there are too few."""
    seeds = int(counts.sum())
    if not seeds:
        return math.nan, math.nan
    mean = float(values @ counts / seeds)
    scatter = float(np.square(values - mean) @ counts)
    return mean, scatter / (seeds - 1) if seeds > 1 else math.nan
