"""How a study is cut into blocks, the same whoever computes them, and what they take.

A *block* is some cells of one program times a range of seeds. What is there already is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fmab_jax.core.outputs import Reduce
from fmab_jax.errors import count, refuse
from fmab_jax.run import resources
from fmab_jax.run.compilation import table_rows
from fmab_jax.run.configs import Config, Program
from fmab_jax.sweeps.blocks import Job
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.store import MOST_BYTES
from fmab_jax.sweeps.study import Point, Study

# A chunk is about a second of two cores' work, and at most so many bytes of curves.
_CHUNK_ELEMENTS = {"cpu": 6_400_000}
_CHUNK_BYTES = 64_000_000
# So many trials a batch has at least: fewer of them would not be computed faster.
FEWEST = 8


class Block(NamedTuple):
    """Cells of one program times seeds [start, stop)."""

    cells: tuple[str, ...]
    start: int
    stop: int

    @property
    def trials(self) -> int:
        """How many (cell, seed) pairs."""
        return len(self.cells) * (self.stop - self.start)


class Sort(NamedTuple):
    """What configs of one chunk share: their program, and how many slots are kept."""

    program: Program
    wanted: int


class Layout:
    """The blocks of a study."""

    def __init__(
        self,
        study: Study,
        platform: str,
        chunk: int | None,
        worker: tuple[int, int] | None,
        *,
        whole: bool = False,
    ) -> None:
        """Lays a study out for a worker's platform; arguments as in `runner.run`."""
        self.study, self.platform, self.worker = study, platform, worker
        self.most_bytes = MOST_BYTES
        if whole:
            one = study.points[0].config.curve_bytes
            chunk = max(1, min(study.seeds, MOST_BYTES // one))
            # A trial may be larger than a file may be.
            self.most_bytes = max(MOST_BYTES, one)
        self.points: dict[str, Point] = {point.hash: point for point in study.points}
        self.hashes = list(self.points)
        self.programs: dict[Sort, list[str]] = {}
        for name, point in self.points.items():
            sort = Sort(point.config.program, point.config.wanted)
            self.programs.setdefault(sort, []).append(name)
        if chunk is not None:
            chunk = count("chunk", chunk, 1, resources.MAX_SEEDS, "give the trials of a chunk")
        self.chunk = chunk

    def todo(self, found: Results) -> list[Block]:
        """Returns the blocks that this process shall compute next; none when it is done."""
        blocks, number = [], 0
        place = {name: index for index, name in enumerate(self.hashes)}
        for program, cells in self.programs.items():
            wanted: dict[int, list[str]] = {}
            done = set()
            for name in cells:
                # Which seeds a cell needs can depend on its own: then it stays with one worker.
                if self.study.until is not None and not self._mine(place[name]):
                    continue
                stop, complete = found.judged(name)
                if complete:
                    done.add(name)
                if self.study.until is None or not complete:
                    wanted.setdefault(stop, []).append(name)
            for stop, names in sorted(wanted.items()):
                # Laid out with what is done, so that blocks have the same numbers for all workers.
                for block in self.laid_out(program, names, stop):
                    if self.study.until is not None or self._mine(number):
                        left = tuple(name for name in block.cells if name not in done)
                        blocks += _left(block._replace(cells=left), stop, found)
                    number += 1
        return blocks

    def _mine(self, number: int) -> bool:
        return self.worker is None or number % self.worker[1] == self.worker[0] - 1

    def laid_out(self, program: Sort, cells: list[str], stop: int) -> Iterator[Block]:
        """Cuts cells x seeds [0, stop) into blocks, the same whoever does it."""
        trials, most_cells = self.chunk_size(program)
        if stop >= trials:
            for name in cells:
                for start in range(0, stop, trials):
                    yield Block((name,), start, min(start + trials, stop))
            return
        # With a precision, which cells need more seeds differs from look to look.
        together = 1 if self.study.until is not None else min(trials // stop, most_cells)
        for first in range(0, len(cells), together):
            yield Block(tuple(cells[first : first + together]), 0, stop)

    def some(self, program: Sort) -> Config:
        """Returns one of a program's configs; they have the same sizes."""
        return self.points[self.programs[program][0]].config

    def chunk_size(self, program: Sort) -> tuple[int, int]:
        """Returns the most trials and the most cells of a chunk."""
        some = self.some(program)
        elements = some.elements
        trials = _CHUNK_ELEMENTS.get(self.platform, 256_000_000) // elements
        cells = 2**31
        if self.study.keep == "curves":
            trials = min(trials, _CHUNK_BYTES // some.curve_bytes)
        else:
            # Curves are in memory until they are summarised, and not written.
            trials = min(trials, 4 * _CHUNK_BYTES // some.curve_bytes)
            cells = max(1, _CHUNK_BYTES // bytes_per_summary(some))
        trials = self.chunk if self.chunk is not None else max(trials, 16)
        if self.worker is not None and self.chunk is None:
            trials = min(trials, self._most_trials_each)
        kept = some.curve_bytes * trials
        if self.study.keep == "summary":
            kept = bytes_per_summary(some)
        if kept > self.most_bytes:
            field, value = ("chunk", trials) if self.chunk is not None else ("times", some.wanted)
            allowed = f"such that a chunk has at most {self.most_bytes:,} bytes"
            refuse(field, value, allowed, "use fewer")
        return max(1, trials), cells

    @functools.cached_property
    def _most_trials_each(self) -> int:
        """Returns the most trials of a chunk with which each of the workers gets one.

        It depends on the study and the number of workers alone: all of them lay out the same.
        """
        assert self.worker is not None
        if self.study.until is not None:  # Whole configurations are shared out.
            return resources.MAX_SEEDS
        alone, seeds = self.alone(), self.study.seeds
        laid_out = (alone.laid_out(each, cells, seeds) for each, cells in self.programs.items())
        if sum(1 for blocks in laid_out for _ in blocks) >= self.worker[1]:
            return resources.MAX_SEEDS
        return max(FEWEST, -(-len(self.hashes) * seeds // self.worker[1]))

    def useful_workers(self, todo: Sequence[Block]) -> int:
        """Returns how many workers can have something to compute, chunks being cut for them."""
        if self.study.until is not None:
            return len({name for block in todo for name in block.cells})
        if self.chunk is not None:
            return len(todo)
        return max(len(todo), -(-sum(block.trials for block in todo) // FEWEST))

    def alone(self) -> Layout:
        """Returns the layout of all workers' blocks."""
        return Layout(self.study, self.platform, self.chunk, None)

    def kept_bytes(self, block: Block) -> int:
        """Returns the size of a block's chunk."""
        some = self.points[block.cells[0]].config
        if self.study.keep == "curves":
            return block.trials * some.curve_bytes
        return len(block.cells) * bytes_per_summary(some)

    def most_trials(self, program: Sort, own: Sequence[Block]) -> int:
        """Returns the trials of a program's largest block, which its batch is chosen for."""
        trials = max((block.trials for block in own), default=1)
        if self.study.until is not None:
            # Looks double the seeds; one size of batch for all of them compiles once.
            most = len(self.programs[program]) * self.study.until.max_seeds
            trials = max(trials, min(self.chunk_size(program)[0], most))
        return trials

    def rows(self, own: Sequence[Block]) -> int:
        """Returns the rows of a table that holds the configs of any of these blocks."""
        return table_rows(max((len(block.cells) for block in own), default=1))

    def by_program(self, blocks: Sequence[Block]) -> dict[Sort, list[Block]]:
        """Returns the blocks of each program that has some, in their order."""
        program_of = {name: each for each, cells in self.programs.items() for name in cells}
        found: dict[Sort, list[Block]] = {}
        for block in blocks:
            found.setdefault(program_of[block.cells[0]], []).append(block)
        return found

    def job(self, block: Block) -> Job:
        """Returns all that computing a block takes."""
        configs = tuple(self.points[name].config for name in block.cells)
        return Job(configs, block.start, block.stop, self.study.root_seed, self.study.listed)

    def elements(self, block: Block) -> int:
        """Returns what a block's cost goes with."""
        return block.trials * self.points[block.cells[0]].config.elements


def _left(block: Block, wanted: int, found: Results) -> list[Block]:
    """Returns the parts of a block that are not there yet."""
    gaps: dict[tuple[int, int], list[str]] = {}
    for name in block.cells:
        for gap in found.gaps(name, block.start, block.stop, wanted):
            gaps.setdefault(gap, []).append(name)
    return [Block(tuple(cells), *gap) for gap, cells in sorted(gaps.items())]


def bytes_per_summary(config: Config) -> int:
    """Moments of the curves, and a histogram of, typically, a thousand bins."""
    further = 3 * sum(config.bytes_of(each.dims) for each in config.outputs)
    states = (each.leaves for each in config.outputs if isinstance(each, Reduce))
    further += sum(leaf.nbytes for leaves in states for leaf in leaves)
    return 8 * config.wanted * (config.wanted + 8) + 24_000 + further
