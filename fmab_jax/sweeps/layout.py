"""How a study is cut into blocks, equally on every worker, and what they need.

A *block* is some cells of one program times a range of seeds. Computed seeds are skipped.
"""

from __future__ import annotations

import functools
import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fmab_jax import machine
from fmab_jax.parts.outputs import Reduce
from fmab_jax.run.compilation import count_table_rows
from fmab_jax.run.configs import Config, Program
from fmab_jax.sweeps.blocks import Job
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.progress import Plan
from fmab_jax.sweeps.study import Design, Point

# A chunk takes two cores about a second, and holds at most so many bytes of curves.
_CHUNK_ELEMENTS = {"cpu": 6_400_000}
_CHUNK_BYTES = 64_000_000


class Block(NamedTuple):
    """Cells of one program times seeds [start, stop)."""

    cells: tuple[str, ...]
    start: int
    stop: int

    @property
    def trials(self) -> int:
        """Number of (cell, seed) pairs."""
        return len(self.cells) * (self.stop - self.start)


class Room(NamedTuple):
    """Trials and configurations that programs have room for, so that later runs need no others."""

    trials: int = 1
    configs: int = 1


NO_ROOM: Room = Room()


ProgramKey = tuple[Program, int]
"""Program and number of recorded slots, equal for all configs of a chunk."""


@dataclass(frozen=True)
class Layout:
    """The blocks of a study.

    Attributes:
        study: The study.
        platform: JAX's name of the platform.
        chunk: Trials of a chunk, None to choose.
        worker: (i, n) for process i of n.
    """

    study: Design
    platform: str
    chunk: int | None = None
    worker: tuple[int, int] | None = None

    @functools.cached_property
    def points(self) -> dict[str, Point]:
        """The distinct cells, by hash."""
        return {point.hash: point for point in self.study.points}

    @functools.cached_property
    def programs(self) -> dict[ProgramKey, list[str]]:
        """The cells of each program."""
        programs: dict[ProgramKey, list[str]] = {}
        for name in self.points:
            programs.setdefault(self._key(name), []).append(name)
        return programs

    def _key(self, cell: str) -> ProgramKey:
        config = self.points[cell].config
        return config.program, config.requested_points

    def list_missing(self, results: Results, *, of_all: bool = False) -> list[Block]:
        """Returns the blocks to compute next, of this process or of all; none when it is done."""
        blocks, number = [], 0
        index, workers = (1, 1) if of_all or self.worker is None else self.worker
        place = {name: i for i, name in enumerate(self.points)}
        until = self.study.until
        for key, cells in self.programs.items():
            cells_by_stop: dict[int, list[str]] = {}
            for name in cells:
                # With a precision, a cell's results decide its seeds, so one worker keeps it.
                if until is None or place[name] % workers == index - 1:
                    stop, complete = results.assess(name)
                    if until is None or not complete:
                        cells_by_stop.setdefault(stop, []).append(name)
            for stop, names in sorted(cells_by_stop.items()):
                # Computed blocks count too, so blocks have the same numbers on all workers.
                for block in self._cut_blocks(key, names, stop):
                    if until is not None or number % workers == index - 1:
                        blocks += _find_missing(block, stop, results)
                    number += 1
        return blocks

    def _cut_blocks(self, key: ProgramKey, cells: list[str], stop: int) -> Iterator[Block]:
        """Cuts cells x seeds [0, stop) into blocks, equally on every worker."""
        trials, most_cells = self._chunk_size(key)
        # With a precision, each cell may need another number of seeds.
        group_size = 1 if self.study.until is not None else max(1, min(trials // stop, most_cells))
        for first in range(0, len(cells), group_size):
            for start in range(0, stop, trials):
                names = tuple(cells[first : first + group_size])
                yield Block(names, start, min(start + trials, stop))

    def _chunk_size(self, key: ProgramKey) -> tuple[int, int]:
        """Returns the most trials and the most cells of a chunk."""
        config = self.points[self.programs[key][0]].config
        summary = self.study.keep == "summary"
        # A summary's curves are only in memory, so they may be larger.
        most_bytes = 4 * _CHUNK_BYTES if summary else _CHUNK_BYTES
        cells = max(1, _CHUNK_BYTES // bytes_per_summary(config)) if summary else 2**31
        if self.chunk is not None:
            return self.chunk, cells
        elements = _CHUNK_ELEMENTS.get(self.platform, 256_000_000) // config.elements
        return max(min(elements, most_bytes // config.curve_bytes), 16), cells

    def plan(self, results: Results, store: Path | None) -> Plan:
        """Returns the plan with its memory and disk, before any allocation."""
        study, todo = self.study, self.list_missing(results)
        disk = sum(self._chunk_bytes(x) + 2000 for x in self.list_missing(results, of_all=True))
        return Plan(
            cells=len(study.points),
            distinct_cells=len(self.points),
            layouts=len({self._key(block.cells[0])[0] for block in todo}),
            trials=len(self.points) * study.seeds,
            may_grow=study.until is not None,
            missing=sum(block.trials for block in todo),
            blocks=len(todo),
            disk_bytes=0 if store is None else disk,
            free_bytes=0 if store is None else _free_bytes(store),
            memory_bytes=self._memory_bytes(todo, None if store is not None else disk),
            available_bytes=machine.available_bytes(),
        )

    def _memory_bytes(self, todo: Sequence[Block], kept_bytes: int | None) -> int:
        """Returns the memory of open chunks and of results, which have ``kept_bytes`` if kept."""
        summary = self.study.keep == "summary"
        # A scatter and a chunk's bytes need copies, and one chunk is written while the next is
        # computed. Without a store, curves are not copied.
        copies = 10 if summary else 4
        largest = 0
        for block in todo:
            config = self.points[block.cells[0]].config
            needed = 4 * block.trials * config.requested_points
            if summary or kept_bytes is None:
                needed += block.trials * config.curve_bytes + copies * self._chunk_bytes(block)
            largest = max(largest, needed)
        memory = largest + (kept_bytes or 0)
        if summary:
            results = (bytes_per_summary(point.config) for point in self.study.points)
            return memory + 4 * sum(results)
        if kept_bytes is None:
            return memory
        configs = ((block.trials, self.points[block.cells[0]].config) for block in todo)
        return max(memory, sum(trials * config.result_bytes for trials, config in configs))

    def _chunk_bytes(self, block: Block) -> int:
        """Returns the size of a block's chunk."""
        config = self.points[block.cells[0]].config
        if self.study.keep == "curves":
            return block.trials * config.curve_bytes
        return len(block.cells) * bytes_per_summary(config)

    def jobs(
        self, blocks: Sequence[Block], batch: int | None, room: Room = NO_ROOM
    ) -> list[list[tuple[Block, Job]]]:
        """Returns blocks with their jobs, by program.

        Args:
            blocks: As `list_missing` returned them.
            batch: Trials of a batch, or None to choose.
            room: What programs have room for at least.
        """
        programs = []
        for key, group in itertools.groupby(blocks, lambda block: self._key(block.cells[0])):
            members = list(group)
            trials = max(room.trials, *(block.trials for block in members))
            if self.study.until is not None:
                # Looks double the seeds; one batch size for all looks compiles once.
                most = len(self.programs[key]) * self.study.until.max_seeds
                trials = max(trials, min(self._chunk_size(key)[0], most))
            rows = count_table_rows(max(room.configs, *(len(block.cells) for block in members)))
            programs.append([(x, self._job(x, trials, batch, rows)) for x in members])
        return programs

    def _job(self, block: Block, trials: int, batch: int | None, rows: int) -> Job:
        study, configs = self.study, tuple(self.points[name].config for name in block.cells)
        seeds: range | np.ndarray = range(block.start, block.stop)
        if study.seed_list is not None:
            seeds = study.seed_list[block.start : block.stop]
        return Job(configs, seeds, study.root_seed, study.keep, trials, batch, rows)


def _find_missing(block: Block, target: int, results: Results) -> list[Block]:
    """Returns the missing parts of a block."""
    gaps: dict[tuple[int, int], list[str]] = {}
    for name in block.cells:
        for gap in results.find_gaps(name, block.start, block.stop, target):
            gaps.setdefault(gap, []).append(name)
    return [Block(tuple(cells), *gap) for gap, cells in sorted(gaps.items())]


def bytes_per_summary(config: Config) -> int:
    """Returns the bytes of moments of the curves, and a histogram of, typically, 1000 bins."""
    outputs = 3 * sum(config.bytes_of(output.dims) for output in config.outputs)
    states = (output.initial_arrays for output in config.outputs if isinstance(output, Reduce))
    outputs += sum(leaf.nbytes for state in states for leaf in state)
    return 8 * config.requested_points * (config.requested_points + 8) + 24_000 + outputs


def _free_bytes(store: Path) -> int:
    """Returns the free bytes of the disk of a folder, which need not exist."""
    path = store.absolute()
    return shutil.disk_usage(next(filter(Path.exists, (path, *path.parents)))).free
