"""The loop of a sweep: plans missing blocks, computes them, and writes their chunks."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import time
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from fmab_jax.run import compilation, resources
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import Program
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.blocks import compute_block
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.layout import NO_ROOM, Block, Layout, Room, bytes_per_summary
from fmab_jax.sweeps.progress import Plan, Progress
from fmab_jax.sweeps.store import Entry

if TYPE_CHECKING:
    from fmab_jax.sweeps.cluster import Cluster

_Chunks = Generator[tuple[Block, Mapping[str, np.ndarray]], None, None]


@dataclass
class BlockRunner:
    """Plans, computes and writes the blocks of a study."""

    layout: Layout
    devices: tuple[jax.Device, ...]
    batch: int | None
    cluster: Cluster | None
    room: Room = NO_ROOM
    compilations: int = 0
    compile_s: float = 0.0
    result_bytes: int = 0
    started: float = field(default_factory=time.perf_counter)
    # Sizes that fit the memory, by program and preferred sizes.
    fitted_sizes: dict[tuple[Program, Sizes], Sizes] = field(default_factory=dict)

    def plan(self, results: Results, store: Path | None) -> Plan:
        """Returns the plan and its memory and disk, before any allocation."""
        layout, study = self.layout, self.layout.study
        todo, summary = layout.list_missing(results), study.keep == "summary"
        # A scatter and a chunk's bytes need copies, and one chunk is written while the next is
        # computed. Without a store, curves are not copied.
        copies = 10 if summary else 4
        largest = 0
        for block in todo:
            config = layout.points[block.cells[0]].config
            needed = 4 * block.trials * config.requested_points
            if summary or store is not None:
                needed += block.trials * config.curve_bytes + copies * layout.chunk_bytes(block)
            largest = max(largest, needed)
        all_blocks = (
            todo if layout.worker is None else layout.for_all_workers().list_missing(results)
        )
        disk = sum(layout.chunk_bytes(block) + 2000 for block in all_blocks)
        self.result_bytes = largest + disk * (store is None)
        if store is None and not summary:
            result_sizes = (b.trials * layout.points[b.cells[0]].config.result_bytes for b in todo)
            self.result_bytes = max(self.result_bytes, sum(result_sizes))
        if summary:
            self.result_bytes += 4 * sum(bytes_per_summary(point.config) for point in study.points)
        return Plan(
            cells=len(study.points),
            seeds=study.seeds,
            until=study.until is not None,
            distinct=len(layout.points),
            layouts=len({layout.keys[block.cells[0]][0] for block in todo}),
            trials=len(layout.points) * study.seeds,
            missing=sum(block.trials for block in todo),
            blocks=len(todo),
            disk_bytes=0 if store is None else disk,
            free_bytes=0 if store is None else _free_bytes(store),
            memory_bytes=self.result_bytes,
            available_bytes=resources.available_bytes(),
            workers=layout.useful_workers(todo),
        )

    def compute(self, results: Results, progress: Progress) -> None:
        """Computes missing blocks and writes each at once."""
        total, misses = 0, compilation.compile_program.cache_info().misses
        compute = self._compute_locally if self.cluster is None else self._compute_on_cluster
        while blocks := self.layout.list_missing(results):
            total += sum(block.trials for block in blocks)
            progress.set_total(total)
            seeds_left = {name: results.count_missing(name) for name in self.layout.hashes}
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

    def facts(self) -> Record:
        """Returns the attributes of a result about its computation."""
        facts: Record = {"elapsed_s": time.perf_counter() - self.started}
        facts |= {"compilations": self.compilations, "compile_s": self.compile_s}
        if devices := self.devices:
            facts["device"] = f"{len(devices)} x {devices[0].platform} ({devices[0].device_kind})"
        return facts

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
        groups, cores = self.layout.jobs(blocks, self.batch, self.room), resources.cores()
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


def _free_bytes(store: Path) -> int:
    """Returns the free bytes of the disk of a folder, which need not exist."""
    path = store.absolute()
    return shutil.disk_usage(next(filter(Path.exists, (path, *path.parents)))).free
