"""The loop of a sweep: computes missing blocks, and writes their chunks."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jax
import numpy as np

from fmab_jax import machine
from fmab_jax.run import compilation
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import Program
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.blocks import compute_block
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.layout import Block, Layout, Room
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.store import Entry

if TYPE_CHECKING:
    from fmab_jax.sweeps.cluster import Cluster

_Chunks = Generator[tuple[Block, Mapping[str, np.ndarray]], None, None]


@dataclass
class BlockRunner:
    """Computes and writes the blocks of a study."""

    layout: Layout
    devices: tuple[jax.Device, ...]
    batch: int | None
    cluster: Cluster | None
    room: Room
    result_bytes: int  # memory that programs do not get
    compilations: int = 0
    compile_s: float = 0.0
    # Sizes that fit the memory, by program and preferred sizes.
    fitted_sizes: dict[tuple[Program, Sizes], Sizes] = field(default_factory=dict)

    def compute(self, results: Results, progress: Progress) -> None:
        """Computes missing blocks and writes each at once."""
        total, misses = 0, compilation.compile_program.cache_info().misses
        compute = self._compute_locally if self.cluster is None else self._compute_on_cluster
        while blocks := self.layout.list_missing(results):
            total += sum(block.trials for block in blocks)
            progress.set_total(total)
            seeds_left = {name: results.count_missing(name) for name in self.layout.points}
            # After an error of writing, closing stops the computation.
            with (
                closing(compute(blocks, progress)) as chunks,
                closing(self._write_chunks(chunks, results)) as entries,
            ):
                for block, entry in entries:
                    results.add(entry)
                    for name in block.cells:
                        seeds_left[name] -= block.stop - block.start
                    progress.report_chunk(sum(count <= 0 for count in seeds_left.values()))
        # Workers of a cluster report their own compilations.
        if self.cluster is None:
            self.compilations += compilation.compile_program.cache_info().misses - misses

    def _write_chunks(
        self, chunks: Iterable[tuple[Block, Mapping[str, np.ndarray]]], results: Results
    ) -> Generator[tuple[Block, Entry], None, None]:
        """Writes each chunk while the next is computed; yields written blocks."""
        with ThreadPoolExecutor(1) as pool:
            last: tuple[Block, Future[Entry]] | None = None
            for block, arrays in chunks:
                if last is not None:
                    yield last[0], last[1].result()
                facts = {
                    "cells": list(block.cells),
                    "seeds": [block.start, block.stop],
                    "keep": self.layout.study.keep,
                    "made_by": results.header["made_by"],
                }
                last = block, pool.submit(results.source.put, chunk_name(facts), arrays, facts)
                del arrays
            if last is not None:
                yield last[0], last[1].result()

    def _compute_locally(self, blocks: list[Block], progress: Progress) -> _Chunks:
        """Computes blocks in order in this process; yields them with their arrays."""
        groups, cores = self.layout.jobs(blocks, self.batch, self.room), machine.cores()
        # The largest program first, since it may not fit.
        groups.sort(key=lambda jobs: -jobs[0][1].configs[0].elements)
        firsts = [jobs[0][1] for jobs in groups]
        programs = [(job.configs[0].program, job.sizes(self.devices)) for job in firsts]
        with compilation.compile_ahead(programs, self.devices, self.result_bytes) as wait_for:
            for place, jobs in enumerate(groups):
                # Later looks reuse the compiled program.
                if programs[place] not in self.fitted_sizes:
                    started = time.perf_counter()
                    on_compile = functools.partial(
                        progress.report_compilation, place + 1, len(groups)
                    )
                    with progress.note_compilation(jobs[0][1].configs[0].algorithm.name):
                        self.fitted_sizes[programs[place]] = wait_for(place, on_compile)
                    self.compile_s += time.perf_counter() - started
                sizes = self.fitted_sizes[programs[place]]
                for block, job in jobs:
                    yield block, compute_block(job, sizes, self.devices, progress.advance, cores)

    def _compute_on_cluster(self, blocks: list[Block], progress: Progress) -> _Chunks:
        """Computes blocks on the cluster; yields them with their arrays, in any order."""
        assert self.cluster is not None
        pairs = [pair for jobs in self.layout.jobs(blocks, self.batch, self.room) for pair in jobs]
        with closing(self.cluster.compute([job for _, job in pairs], progress)) as chunks:
            for number, arrays, compilations in chunks:
                self.compilations += compilations
                progress.advance(pairs[number][0].trials)
                yield pairs[number][0], arrays
                del arrays


def chunk_name(facts: Record) -> str:
    """Returns the name of the chunk of these facts."""
    text = json.dumps([facts["cells"], facts["seeds"], facts["keep"]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
