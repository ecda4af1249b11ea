"""How a study is cut into blocks, equally on every worker, and what they need.

A *block* is some cells of one program times a range of seeds. Computed seeds are skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fmab_jax.errors import count, refuse
from fmab_jax.parts.outputs import Reduce
from fmab_jax.run import resources
from fmab_jax.run.compilation import count_table_rows
from fmab_jax.run.configs import Config, Program, check_counts
from fmab_jax.sweeps.blocks import Job
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.store import MOST_BYTES
from fmab_jax.sweeps.study import Design, Point

# A chunk takes two cores about a second, and holds at most so many bytes of curves.
_CHUNK_ELEMENTS = {"cpu": 6_400_000}
_CHUNK_BYTES = 64_000_000
# Smallest batch; a smaller one would not run faster.
FEWEST = 8


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


class Layout:
    """The blocks of a study."""

    def __init__(
        self,
        study: Design,
        platform: str,
        chunk: int | None,
        worker: tuple[int, int] | None = None,
        sharers: int = 1,
        *,
        stored: bool = True,
    ) -> None:
        """Lays a study out for a worker's platform; other arguments as in `runner.run`.

        Args:
            study: The study.
            platform: JAX's name of the platform.
            chunk: Trials of a chunk, None to choose.
            worker: (i, n) for process i of n.
            sharers: Number of processes or threads that should each get a chunk.
            stored: Whether chunks are files.
        """
        self.study, self.platform, self.worker = study, platform, worker
        self.sharers, self.stored = sharers, stored
        if stored and study.seed_list is not None:
            seeds, remedy = (
                study.seed_list[:100].tolist(),
                "a list of seeds is for results in memory",
            )
            refuse("seeds", seeds, "a number of seeds with a store", remedy)
        for point in study.points:
            check_counts(point.config, platform)
        self.points: dict[str, Point] = {point.hash: point for point in study.points}
        self.hashes = list(self.points)
        self.keys: dict[str, ProgramKey] = {}
        self.programs: dict[ProgramKey, list[str]] = {}
        for name, point in self.points.items():
            self.keys[name] = point.config.program, point.config.requested_points
            self.programs.setdefault(self.keys[name], []).append(name)
        if chunk is not None:
            chunk = count("chunk", chunk, 1, resources.MAX_SEEDS, "give the trials of a chunk")
        self.chunk = chunk

    def list_missing(self, results: Results) -> list[Block]:
        """Returns the blocks that this process computes next; none when it is done."""
        blocks, number = [], 0
        place = {name: index for index, name in enumerate(self.hashes)}
        until = self.study.until
        for key, cells in self.programs.items():
            cells_by_stop: dict[int, list[str]] = {}
            for name in cells:
                # With a precision, a cell's results decide its seeds, so one worker keeps it.
                if until is None or self._is_mine(place[name]):
                    stop, complete = results.assess(name)
                    if until is None or not complete:
                        cells_by_stop.setdefault(stop, []).append(name)
            for stop, names in sorted(cells_by_stop.items()):
                # Computed blocks count too, so blocks have the same numbers on all workers.
                for block in self.cut_blocks(key, names, stop):
                    if until is not None or self._is_mine(number):
                        blocks += _find_missing(block, stop, results)
                    number += 1
        return blocks

    def _is_mine(self, number: int) -> bool:
        return self.worker is None or number % self.worker[1] == self.worker[0] - 1

    def cut_blocks(self, key: ProgramKey, cells: list[str], stop: int) -> Iterator[Block]:
        """Cuts cells x seeds [0, stop) into blocks, equally on every worker."""
        trials, most_cells = self.chunk_size(key)
        # With a precision, each cell may need another number of seeds.
        group_size = 1 if self.study.until is not None else max(1, min(trials // stop, most_cells))
        for first in range(0, len(cells), group_size):
            for start in range(0, stop, trials):
                names = tuple(cells[first : first + group_size])
                yield Block(names, start, min(start + trials, stop))

    def chunk_size(self, key: ProgramKey) -> tuple[int, int]:
        """Returns the most trials and the most cells of a chunk."""
        config = self.points[self.programs[key][0]].config
        summary = self.study.keep == "summary"
        # A summary's curves are only in memory, so they may be larger.
        most_bytes = 4 * _CHUNK_BYTES if summary else _CHUNK_BYTES
        cells = max(1, _CHUNK_BYTES // bytes_per_summary(config)) if summary else 2**31
        trials = self.chunk
        if trials is None:
            elements = _CHUNK_ELEMENTS.get(self.platform, 256_000_000) // config.elements
            trials = max(min(elements, most_bytes // config.curve_bytes), 16)
            if self.sharers > 1 and self.study.until is None:
                share = -(-len(self.hashes) * self.study.seeds // self.sharers)
                trials = min(trials, max(FEWEST, share))
        size = bytes_per_summary(config) if summary else config.curve_bytes * trials
        if self.stored and size > MOST_BYTES:
            field, value = (
                ("chunk", trials) if self.chunk is not None else ("times", config.requested_points)
            )
            allowed = f"such that a chunk has at most {MOST_BYTES:,} bytes"
            refuse(field, value, allowed, "use fewer")
        return max(1, trials), cells

    def useful_workers(self, todo: Sequence[Block]) -> int:
        """Returns how many workers can get a chunk."""
        if self.study.until is not None:
            return len({name for block in todo for name in block.cells})
        if self.chunk is not None:
            return len(todo)
        return max(len(todo), -(-sum(block.trials for block in todo) // FEWEST))

    def for_all_workers(self) -> Layout:
        """Returns the layout of all workers' blocks."""
        return Layout(self.study, self.platform, self.chunk)

    def chunk_bytes(self, block: Block) -> int:
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
        for key, group in itertools.groupby(blocks, lambda block: self.keys[block.cells[0]]):
            members = list(group)
            trials = max(room.trials, *(block.trials for block in members))
            if self.study.until is not None:
                # Looks double the seeds; one batch size for all looks compiles once.
                most = len(self.programs[key]) * self.study.until.max_seeds
                trials = max(trials, min(self.chunk_size(key)[0], most))
            configs = max(room.configs, *(len(block.cells) for block in members))
            rows = count_table_rows(configs)
            programs.append([(x, self._job(x, trials, batch, rows)) for x in members])
        return programs

    def _job(self, block: Block, trials: int, batch: int | None, rows: int) -> Job:
        study = self.study
        configs = tuple(self.points[name].config for name in block.cells)
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
