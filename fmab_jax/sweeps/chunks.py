"""The chunks of a study, and which of them make up a cell.

A *chunk* holds some cells for one range of seeds. Chunks lie in a `store.Store`, or in memory;
which of them make up a cell is worked out from their facts alone.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax.analysis import summary
from fmab_jax.core.outputs import Output, Reduce
from fmab_jax.sweeps.precision import Precision, relative_width
from fmab_jax.sweeps.store import Entry, Store

KINDS = summary.Moments._fields[1:]
"""What a summary keeps of a series, besides the number of seeds."""
# Chunks that a reader keeps at hand.
_CACHE_SIZE = 4


def state_name(output: str, number: int) -> str:
    """Returns the name of an array of a reduction's state in chunks."""
    return f"{output}_state{number}"


def as_slice(places: np.ndarray) -> np.ndarray | slice:
    """Returns places as a slice where they lie side by side: then nothing is copied."""
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


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
        self.replace_entries(source, entries)

    def replace_entries(self, source: Store | Memory, entries: Iterable[Entry]) -> None:
        """Takes these chunks, to be read from there, in place of those it had."""
        self.source, self.entries = source, [*entries]
        self.parts: dict[str, list[Part]] = {}
        # By cell and look, whether the band was narrow enough.
        self.narrow: dict[tuple[str, int], bool] = {}
        self._chunks: OrderedDict[str, Mapping[str, np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()
        for entry in self.entries:
            self._list_parts(entry)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process that reads has its own chunks at hand.
        return Results, (self.header, self.source, self.entries, self.outputs)

    @property
    def curves(self) -> bool:
        """Whether single seeds are kept."""
        return bool(self.header["keep"] == "curves")

    def add(self, entry: Entry) -> None:
        """Takes note of one more chunk."""
        self.entries.append(entry)
        self._list_parts(entry)

    def _list_parts(self, entry: Entry) -> None:
        if entry.facts["keep"] == self.header["keep"]:
            start, stop = entry.facts["seeds"]
            for row, cell in enumerate(entry.facts["cells"]):
                self.parts.setdefault(cell, []).append(Part(entry, row, start, stop))

    def find_chain(self, cell: str, stop: int) -> list[Part]:
        """Returns parts that cover a cell's first ``stop`` seeds, without gap, as far as can be.

        Of single seeds, a part of a chunk can be used; of a summary only the whole.
        """
        parts: list[Part] = []
        at = 0
        if self.curves:
            for part in sorted(self.parts.get(cell, ()), key=lambda part: part.start):
                if part.start <= at < min(part.stop, stop):
                    parts.append(part._replace(start=at, stop=min(part.stop, stop)))
                    at = parts[-1].stop
            return parts
        reach = self._find_reach(cell, stop)
        while at in reach:
            parts.append(reach[at][1])
            at = parts[-1].stop
        return parts

    def _find_reach(self, cell: str, stop: int) -> dict[int, tuple[int, Part]]:
        """Returns, from each seed, how far whole parts lead up to ``stop``, and their first."""
        reach: dict[int, tuple[int, Part]] = {}
        for part in sorted(self.parts.get(cell, ()), key=lambda p: (p.start, p.stop), reverse=True):
            if part.stop <= stop:
                end = reach[part.stop][0] if part.stop in reach else part.stop
                if part.start not in reach or end > reach[part.start][0]:
                    reach[part.start] = end, part
        return reach

    def count_seeds(self, cell: str, stop: int) -> int:
        """Returns how many of the cell's first ``stop`` seeds are there, without a gap."""
        chain = self.find_chain(cell, stop)
        return chain[-1].stop if chain else 0

    def find_gaps(
        self, cell: str, start: int, stop: int, target: int | None = None
    ) -> list[tuple[int, int]]:
        """Returns the ranges in [start, stop) still to be computed, of ``target`` seeds or stop."""
        target = stop if target is None else target
        if self.curves:
            spans = [(part.start, part.stop) for part in self.parts.get(cell, ())]
        else:
            # Whole parts, wherever blocks are cut now, and as far as they do not overlap.
            spans = [(first, end) for first, (end, _) in self._find_reach(cell, target).items()]
        missing, at = [], 0
        for first, end in [*sorted(spans), (target, target)]:
            if self.curves or first >= at:
                missing.append((max(at, start), min(first, stop)))
                at = max(at, end)
        return [(a, b) for a, b in missing if a < b]

    def count_missing(self, cell: str) -> int:
        """Returns how many of a cell's seeds are missing, as far as is known."""
        target, complete = self.assess(cell)
        return 0 if complete else sum(b - a for a, b in self.find_gaps(cell, 0, target))

    def collect_versions(self, stops: Mapping[str, int]) -> dict[str, str]:
        """Returns the versions that the parts of these cells were computed with."""
        versions: dict[str, set[str]] = {}
        for cell, stop in stops.items():
            for part in self.find_chain(cell, stop):
                for name, version in part.entry.facts["made_by"].items():
                    versions.setdefault(name, set()).add(version)
        return self.header["made_by"] | {n: ", ".join(sorted(v)) for n, v in versions.items()}

    def load_chunk(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Reads a chunk, or finds it at hand; threads wait for each other."""
        with self._lock:
            if entry.chunk not in self._chunks:
                self._chunks[entry.chunk] = self.source.read(entry)
                if len(self._chunks) > _CACHE_SIZE:
                    self._chunks.popitem(last=False)
            self._chunks.move_to_end(entry.chunk)
            return self._chunks[entry.chunk]

    def read_values(
        self, cell: str, name: str, seeds: np.ndarray, dtype: Any, index: tuple[Any, ...] = ()
    ) -> np.ndarray:
        """Returns an array of some seeds of a cell, all of which are there.

        Args:
            cell: Its hash.
            name: The array's.
            seeds: Which.
            dtype: Of the result.
            index: Which of a seed's values.
        """
        out = None
        for part in self.find_chain(cell, int(seeds.max()) + 1):
            mask = (seeds >= part.start) & (seeds < part.stop)
            if not mask.any():
                continue
            rows = seeds[mask] - part.entry.facts["seeds"][0]
            values = self.load_chunk(part.entry)[name][part.row][as_slice(rows)]
            values = values[(slice(None), *index)]
            if mask.all():
                return values.astype(dtype, copy=False)
            if out is None:
                out = np.empty((len(seeds), *values.shape[1:]), dtype)
            out[mask] = values
        assert out is not None
        return out

    def has_array(self, cell: str, name: str) -> bool:
        """Tells whether the chunks of a cell hold an array."""
        return name in self.load_chunk(self.parts[cell][0].entry)

    def merge_moments(
        self, cell: str, name: str, stop: int, sizes: Sequence[int] | None = None
    ) -> summary.Moments:
        """Returns the merged moments of a summarised series; with ``sizes``, of so many, in a row.

        What is stored beside cells of more agents, arms or slots is padded.
        """

        def read(part: Part, kind: str) -> np.ndarray:
            values = self.load_chunk(part.entry)[f"{name}_{kind}"][part.row]
            return values if sizes is None else values[tuple(map(slice, sizes))].reshape(-1)

        return summary.merged(
            summary.Moments(part.stop - part.start, *(read(part, kind) for kind in KINDS))
            for part in self.find_chain(cell, stop)
        )

    def merge_state(self, cell: str, output: Reduce, stop: int) -> list[np.ndarray]:
        """Returns the arrays of a reduction's merged state."""

        def read(part: Part) -> Any:
            chunk = self.load_chunk(part.entry)
            names = [state_name(output.name, i) for i in range(len(output.leaves))]
            return output.state([chunk[name][part.row] for name in names])

        states = [read(part) for part in self.find_chain(cell, stop)]
        total = functools.reduce(output.merge, states)
        return [np.asarray(x) for x in jax.tree.leaves(total)]

    def merge_counts(self, cell: str, name: str, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the merged (values, counts) of a summarised whole number."""
        counts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for part in self.find_chain(cell, stop):
            chunk = self.load_chunk(part.entry)
            rows = chunk[f"{name}_row"] == part.row
            counts.append((chunk[f"{name}_value"][rows], chunk[f"{name}_count"][rows]))
        return summary.add_counts(counts)

    def assess(self, cell: str) -> tuple[int, bool]:
        """Returns (seeds, True) where a cell has all it needs, else (seeds to have next, False)."""
        for look in self._looks:
            if self.count_seeds(cell, look) < look:
                return look, False
            if self._until is not None and (cell, look) not in self.narrow:
                regret = self.merge_moments(cell, "regret", look)
                width = relative_width(regret, self.header["look_level"])
                self.narrow[cell, look] = width <= self._until.relative
            if self.narrow.get((cell, look)):
                break
        return look, True


class Memory:
    """Chunks of a sweep without a store: as a `Store` has them, in a dictionary."""

    def __init__(self) -> None:
        self._chunks: dict[str, dict[str, np.ndarray]] = {}

    def put(self, chunk: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Entry:
        """Keeps a chunk."""
        self._chunks[chunk] = dict(arrays)
        return Entry(chunk, 0, "", dict(facts))

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a chunk's arrays."""
        return self._chunks[entry.chunk]
