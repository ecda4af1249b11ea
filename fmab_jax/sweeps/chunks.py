"""The chunks of a study, and which of them cover a cell.

A *chunk* holds some cells for one range of seeds. Chunks lie in a `store.Store` or in memory; their
facts alone decide which of them cover a cell.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fmab_jax.analysis import summary
from fmab_jax.parts.outputs import Output, Reduce
from fmab_jax.run.reductions import merge_states
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.precision import Precision, relative_width
from fmab_jax.sweeps.store import Entry, Store

KINDS = summary.Moments._fields[1:]
"""Arrays of a summarised series, besides the number of seeds."""
# Chunks that stay in memory.
_CACHE_SIZE = 4


def state_name(output: str, number: int) -> str:
    """Returns the name of an array of a reduction's state in chunks."""
    return f"{output}_state{number}"


def as_slice(places: np.ndarray) -> np.ndarray | slice:
    """Returns consecutive places as a slice, which copies nothing."""
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
    """The chunks of a study whose header `build_header` returned, by cell."""

    def __init__(
        self,
        header: Record,
        source: Store | Memory,
        entries: Iterable[Entry],
        outputs: tuple[Output, ...] = (),
    ) -> None:
        self.header = header
        self.outputs = outputs  # optional outputs of the study
        until = header.get("until")
        self._until = None if until is None else Precision(**until)
        seeds = header.get("seeds", 0)
        self._looks = [seeds] if self._until is None else self._until.looks(seeds)
        self.replace_entries(source, entries)

    def replace_entries(self, source: Store | Memory, entries: Iterable[Entry]) -> None:
        """Replaces all chunks, and the source to read them from."""
        self.source, self.entries = source, [*entries]
        self.parts: dict[str, list[Part]] = {}
        # Whether the band was narrow enough, by (cell, look).
        self.narrow: dict[tuple[str, int], bool] = {}
        # Entries hold facts, which are not hashable, so the cache goes by names.
        self._by_name: dict[str, Entry] = {}
        self._read = functools.lru_cache(_CACHE_SIZE)(
            lambda chunk: source.read(self._by_name[chunk])
        )
        for entry in self.entries:
            self._list_parts(entry)

    def __reduce__(self) -> tuple[object, ...]:
        # Another process starts with an empty cache.
        return Results, (self.header, self.source, self.entries, self.outputs)

    @property
    def curves(self) -> bool:
        """Whether chunks hold single seeds, not summaries."""
        return bool(self.header["keep"] == "curves")

    def add(self, entry: Entry) -> None:
        """Adds a chunk."""
        self.entries.append(entry)
        self._list_parts(entry)

    def _list_parts(self, entry: Entry) -> None:
        self._by_name[entry.chunk] = entry
        if entry.facts["keep"] == self.header["keep"]:
            start, stop = entry.facts["seeds"]
            for row, cell in enumerate(entry.facts["cells"]):
                self.parts.setdefault(cell, []).append(Part(entry, row, start, stop))

    def find_chain(self, cell: str, stop: int) -> list[Part]:
        """Returns parts that cover the most of a cell's first ``stop`` seeds without a gap.

        Curves can be cut at any seed; a summary can only be used whole.
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
        """Returns, by first seed, how far whole parts reach up to ``stop``, and the first part."""
        reach: dict[int, tuple[int, Part]] = {}
        for part in sorted(self.parts.get(cell, ()), key=lambda p: (p.start, p.stop), reverse=True):
            if part.stop <= stop:
                end = reach[part.stop][0] if part.stop in reach else part.stop
                if part.start not in reach or end > reach[part.start][0]:
                    reach[part.start] = end, part
        return reach

    def count_seeds(self, cell: str, stop: int) -> int:
        """Returns how many of the cell's first ``stop`` seeds are computed without a gap."""
        chain = self.find_chain(cell, stop)
        return chain[-1].stop if chain else 0

    def find_gaps(
        self, cell: str, start: int, stop: int, target: int | None = None
    ) -> list[tuple[int, int]]:
        """Returns missing ranges in [start, stop); ``target`` seeds are needed, by default stop."""
        target = stop if target is None else target
        if self.curves:
            spans = [(part.start, part.stop) for part in self.parts.get(cell, ())]
        else:
            # Summaries cannot be cut, so only whole parts that do not overlap count.
            spans = [(first, end) for first, (end, _) in self._find_reach(cell, target).items()]
        missing, at = [], 0
        for first, end in [*sorted(spans), (target, target)]:
            if self.curves or first >= at:
                missing.append((max(at, start), min(first, stop)))
                at = max(at, end)
        return [(a, b) for a, b in missing if a < b]

    def count_missing(self, cell: str) -> int:
        """Returns how many seeds a cell lacks up to its next look."""
        target, complete = self.assess(cell)
        return 0 if complete else sum(b - a for a, b in self.find_gaps(cell, 0, target))

    def collect_versions(self, stops: Mapping[str, int]) -> dict[str, str]:
        """Returns the versions that computed the parts of these cells."""
        versions: dict[str, set[str]] = {}
        for cell, stop in stops.items():
            for part in self.find_chain(cell, stop):
                for name, version in part.entry.facts["made_by"].items():
                    versions.setdefault(name, set()).add(version)
        return self.header["made_by"] | {n: ", ".join(sorted(v)) for n, v in versions.items()}

    def load_chunk(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Reads a chunk, or returns it from the cache."""
        return self._read(entry.chunk)

    def read_values(
        self,
        cell: str,
        name: str,
        seeds: np.ndarray,
        dtype: np.typing.DTypeLike,
        index: tuple[slice | np.ndarray, ...] = (),
    ) -> np.ndarray:
        """Returns an array for some computed seeds of a cell.

        Args:
            cell: Hash of the cell.
            name: Name of the array.
            seeds: The seeds.
            dtype: Type of the result.
            index: Index into the values of a seed.
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
        """Returns whether the chunks of a cell hold an array."""
        return name in self.load_chunk(self.parts[cell][0].entry)

    def merge_moments(
        self, cell: str, name: str, stop: int, sizes: Sequence[int] | None = None
    ) -> summary.Moments:
        """Merges the moments of a summarised series.

        Arrays beside cells of more agents, arms or slots are padded; ``sizes`` cuts and flattens
        them.
        """

        def read(part: Part, kind: str) -> np.ndarray:
            values = self.load_chunk(part.entry)[f"{name}_{kind}"][part.row]
            return values if sizes is None else values[tuple(map(slice, sizes))].reshape(-1)

        return summary.merge_all(
            summary.Moments(part.stop - part.start, *(read(part, kind) for kind in KINDS))
            for part in self.find_chain(cell, stop)
        )

    def merge_state(self, cell: str, output: Reduce, stop: int) -> list[np.ndarray]:
        """Merges the states of a reduction and returns its arrays."""
        names = [state_name(output.name, i) for i in range(len(output.initial_arrays))]

        def read(part: Part) -> list[np.ndarray]:
            chunk = self.load_chunk(part.entry)
            # A row of a scalar state is no array.
            return [np.asarray(chunk[name][part.row]) for name in names]

        return merge_states(output, map(read, self.find_chain(cell, stop)))

    def merge_counts(self, cell: str, name: str, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Merges the (values, counts) of a summarised whole number."""
        counts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for part in self.find_chain(cell, stop):
            chunk = self.load_chunk(part.entry)
            rows = chunk[f"{name}_row"] == part.row
            counts.append((chunk[f"{name}_value"][rows], chunk[f"{name}_count"][rows]))
        return summary.add_counts(counts)

    def assess(self, cell: str) -> tuple[int, bool]:
        """Returns (seeds, True) for a complete cell, else (seeds of its next look, False)."""
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
    """Chunks of a sweep without a store, with the methods of `Store`."""

    def __init__(self) -> None:
        self._chunks: dict[str, dict[str, np.ndarray]] = {}

    def put(self, chunk: str, arrays: Mapping[str, np.ndarray], facts: Record) -> Entry:
        """Stores a chunk."""
        self._chunks[chunk] = dict(arrays)
        return Entry(chunk, 0, "", dict(facts))

    def read(self, entry: Entry) -> Mapping[str, np.ndarray]:
        """Returns a chunk's arrays."""
        return self._chunks[entry.chunk]
