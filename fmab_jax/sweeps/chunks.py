"""The chunks of a study, and which of them make up a cell.

A *chunk* holds some cells for one range of seeds. Chunks lie in a `store.Store`, or in memory;
which of them make up a cell is worked out from their facts alone.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax.analysis import summary
from fmab_jax.core.outputs import Gauge, Output, Reduce
from fmab_jax.sweeps import records
from fmab_jax.sweeps.precision import Precision, relative_width
from fmab_jax.sweeps.store import Entry, Store

# Chunks that a reader keeps at hand.
_AT_HAND = 4


class Part(NamedTuple):
    """A cell's seeds [start, stop) in one chunk, in its row ``row``."""

    entry: Entry
    row: int
    start: int
    stop: int


class Results:
    """The chunks of a study whose header `header_of` returned, by cell."""

    def __init__(
        self,
        header: Mapping[str, Any],
        source: Store | Memory,
        entries: Iterable[Entry],
        outputs: tuple[Output, ...] = (),
    ) -> None:
        self.header = header
        self.outputs = outputs  # that the study asks for besides the usual ones
        until = header.get("until")
        self._until = None if until is None else Precision(**until)
        seeds = header.get("seeds", 0)
        self._looks = [seeds] if self._until is None else self._until.looks(seeds)
        self.hold(source, entries)

    def hold(self, source: Store | Memory, entries: Iterable[Entry]) -> None:
        """Takes these chunks, to be read from there, in place of those it had."""
        self.source = source
        self.parts: dict[str, list[Part]] = {}
        # By cell and look, whether the band was narrow enough.
        self.narrow: dict[tuple[str, int], bool] = {}
        self._forget()
        for entry in entries:
            self.add(entry)

    def _forget(self) -> None:
        """Has no chunk at hand."""
        self._chunks: OrderedDict[str, Mapping[str, np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # Another process that reads has its own chunks at hand.
        return {n: v for n, v in vars(self).items() if n not in ("_chunks", "_lock")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

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

    def chain(self, cell: str, stop: int, start: int = 0) -> list[Part]:
        """Returns parts that cover a cell's seeds from ``start`` on, without gap, as far as can be.

        Of single seeds, a part of a chunk can be used; of a summary only the whole.
        """
        chosen: list[Part] = []
        if self.curves:
            parts = sorted(self.parts.get(cell, ()), key=lambda part: (part.start, part.stop))
            waiting, best = iter(parts), None
            part = next(waiting, None)
            while start < stop:
                while part is not None and part.start <= start:
                    best = part if best is None or part.stop > best.stop else best
                    part = next(waiting, None)
                if best is None or best.stop <= start:
                    break
                chosen.append(best._replace(start=start, stop=min(best.stop, stop)))
                start = best.stop
            return chosen
        reach = self._reach(cell, stop)
        while start in reach:
            chosen.append(reach[start][1])
            start = chosen[-1].stop
        return chosen

    def _reach(self, cell: str, stop: int) -> dict[int, tuple[int, Part]]:
        """Returns, from each seed, how far whole parts lead up to ``stop``, and their first."""
        reach: dict[int, tuple[int, Part]] = {}
        for part in sorted(self.parts.get(cell, ()), key=lambda p: (p.start, p.stop), reverse=True):
            if part.stop <= stop:
                end = reach[part.stop][0] if part.stop in reach else part.stop
                if part.start not in reach or end > reach[part.start][0]:
                    reach[part.start] = end, part
        return reach

    def seeds(self, cell: str, stop: int) -> int:
        """Returns how many of the cell's first ``stop`` seeds are there, without a gap."""
        chain = self.chain(cell, stop)
        return chain[-1].stop if chain else 0

    def gaps(
        self, cell: str, start: int, stop: int, wanted: int | None = None
    ) -> list[tuple[int, int]]:
        """Returns the ranges in [start, stop) still to be computed, of ``wanted`` seeds or stop."""
        wanted = stop if wanted is None else wanted
        if self.curves:
            spans = [(part.start, part.stop) for part in self.parts.get(cell, ())]
        else:
            # Whole parts, wherever blocks are cut now, and as far as they do not overlap.
            spans = [(first, end) for first, (end, _) in self._reach(cell, wanted).items()]
        missing, at = [], 0
        for first, end in [*sorted(spans), (wanted, wanted)]:
            if self.curves or first >= at:
                missing.append((max(at, start), min(first, stop)))
                at = max(at, end)
        return [(a, b) for a, b in missing if a < b]

    def missing(self, cell: str) -> int:
        """Returns how many of a cell's seeds are missing, as far as is known."""
        wanted, complete = self.judged(cell)
        return 0 if complete else sum(b - a for a, b in self.gaps(cell, 0, wanted))

    def made_by(self, stops: Mapping[str, int]) -> dict[str, str]:
        """Returns the versions that the parts of these cells were computed with."""
        versions: dict[str, set[str]] = {}
        for cell, stop in stops.items():
            for part in self.chain(cell, stop):
                for name, version in part.entry.facts["made_by"].items():
                    versions.setdefault(name, set()).add(version)
        return self.header["made_by"] | {n: ", ".join(sorted(v)) for n, v in versions.items()}

    def chunk(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Reads a chunk, or finds it at hand; threads wait for each other."""
        with self._lock:
            if entry.chunk not in self._chunks:
                self._chunks[entry.chunk] = self.source.read(entry)
                if len(self._chunks) > _AT_HAND:
                    self._chunks.popitem(last=False)
            self._chunks.move_to_end(entry.chunk)
            return self._chunks[entry.chunk]

    def values(
        self, cell: str, name: str, seeds: np.ndarray, columns: np.ndarray | None, dtype: Any
    ) -> np.ndarray:
        """Returns some seeds of a cell's array, and recorded slots (``columns``) where it has such.

        What is missing is NaN, or 0 for whole numbers.
        """
        parts = self.chain(cell, int(seeds.max(initial=-1)) + 1)
        if len(parts) == 1 and np.array_equal(seeds, np.arange(parts[0].start, parts[0].stop)):
            # All of one chunk is not copied.
            entry, row, start, stop = parts[0]
            first = entry.facts["seeds"][0]
            values = self.chunk(entry)[name][row][start - first : stop - first]
            if columns is not None and not np.array_equal(columns, np.arange(values.shape[1])):
                values = values[:, columns]
            return values.astype(dtype, copy=False)
        dtype = np.dtype(dtype)
        size = () if columns is None else (len(columns),)
        out = np.full((len(seeds), *size), np.nan if dtype.kind == "f" else 0, dtype)
        for inside, rows in self._rows(cell, name, seeds):
            out[inside] = rows if columns is None else rows[:, columns]
        return out

    def _rows(
        self, cell: str, name: str, seeds: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields, part by part, which of the seeds are there and their rows of an array."""
        for part in self.chain(cell, int(seeds.max(initial=-1)) + 1):
            inside = (seeds >= part.start) & (seeds < part.stop)
            if inside.any():
                first = part.entry.facts["seeds"][0]
                yield inside, self.chunk(part.entry)[name][part.row][seeds[inside] - first]

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
            summary.Moments(part.stop - part.start, *(read(part, kind) for kind in records.KINDS))
            for part in self.chain(cell, stop)
        )

    def state(self, cell: str, output: Reduce, stop: int) -> list[np.ndarray]:
        """Returns the arrays of a reduction's merged state."""

        def read(part: Part) -> Any:
            chunk = self.chunk(part.entry)
            names = [records.state_name(output.name, i) for i in range(len(output.leaves))]
            return output.state([chunk[name][part.row] for name in names])

        states = [read(part) for part in self.chain(cell, stop)]
        merged = functools.reduce(output.merge, states)
        return [np.asarray(x) for x in jax.tree.leaves(merged)]

    def gauge(
        self, cell: str, gauge: Gauge, seeds: np.ndarray, sizes: Mapping[str, int]
    ) -> np.ndarray:
        """Returns a gauge of some seeds of a cell of these sizes; what is missing is NaN."""
        wanted = [sizes[dim] for dim in gauge.dims]
        out = np.full((len(seeds), *wanted), np.nan)
        for inside, rows in self._rows(cell, gauge.name, seeds):
            # One row stands for all agents; others may be padding.
            out[inside] = rows[(slice(None), *map(slice, wanted))]
        return out

    def counts(self, cell: str, name: str, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the merged (values, counts) of a summarised whole number."""
        counts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for part in self.chain(cell, stop):
            chunk = self.chunk(part.entry)
            rows = chunk[f"{name}_row"] == part.row
            counts.append((chunk[f"{name}_value"][rows], chunk[f"{name}_count"][rows]))
        return summary.add_counts(counts)

    def judged(self, cell: str) -> tuple[int, bool]:
        """Returns (seeds, True) where a cell has all it needs, else (seeds to have next, False)."""
        for look in self._looks:
            if self.seeds(cell, look) < look:
                return look, False
            if self._until is not None and (cell, look) not in self.narrow:
                regret = self.moments(cell, "regret", look)
                width = relative_width(regret, self.header["look_level"])
                self.narrow[cell, look] = width <= self._until.relative
            if self.narrow.get((cell, look)):
                break
        return look, True


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
