"""The loop of a sweep: plans what is missing, has each block computed, and writes its chunk."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import time
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from fmab_jax.run import compilation, resources
from fmab_jax.run.compilation import Sizes
from fmab_jax.sweeps.blocks import chunk_of, run_job, stays_on_device
from fmab_jax.sweeps.chunks import Results
from fmab_jax.sweeps.layout import Block, Layout, ProgramKey, bytes_per_summary, rows_of
from fmab_jax.sweeps.progress import Plan, Progress
from fmab_jax.sweeps.store import Entry

if TYPE_CHECKING:
    from fmab_jax.sweeps.cluster import Cluster

_Chunks = Generator[tuple[Block, Mapping[str, np.ndarray]], None, None]


class Work:
    """The blocks of a study, and how they are computed."""

    def __init__(
        self,
        layout: Layout,
        devices: tuple[jax.Device, ...],
        batch: int | None,
        cluster: Cluster | None,
    ) -> None:
        self.layout, self.study, self.devices, self.batch = layout, layout.study, devices, batch
        self.cluster, self.compilations, self.compile_s = cluster, 0, 0.0
        self.started = time.perf_counter()
        self.shared = resources.spans_processes(devices)
        # The sizes that fit, by those that were wanted.
        self.sizes: dict[tuple[ProgramKey, Sizes], Sizes] = {}
        self.result_bytes = 0

    def plan(
        self, results: Results, store: str | os.PathLike[str] | None, *, in_memory: bool
    ) -> Plan:
        """Returns what is to be done and what it takes, before anything is allocated."""
        layout = self.layout
        todo = layout.todo(results)
        # The products behind a scatter, and the chunk's bytes, are copies; one chunk is written
        # while the next is computed.
        copies = 10 if self.study.keep == "summary" else 4
        largest = 0
        for block in todo:
            config = layout.points[block.cells[0]].config
            trials = block.trials * (config.curve_bytes + 4 * config.wanted)
            largest = max(largest, trials + copies * layout.chunk_bytes(block))
        everybody = todo if layout.worker is None else layout.alone().todo(results)
        disk = sum(layout.chunk_bytes(block) + 2000 for block in everybody)
        memory = largest + disk * in_memory
        if self.study.keep == "summary":
            memory += 4 * sum(bytes_per_summary(point.config) for point in self.study.points)
        return Plan(
            cells=len(self.study.points),
            seeds=self.study.seeds,
            until=self.study.until is not None,
            distinct=len(layout.points),
            layouts=len({key.program for key in layout.by_program(todo)}),
            trials=len(layout.points) * self.study.seeds,
            missing=sum(block.trials for block in todo),
            blocks=len(todo),
            disk_bytes=0 if store is None else disk,
            free_bytes=0 if store is None else _free_bytes(store),
            memory_bytes=memory,
            available_bytes=resources.available_bytes(),
            workers=layout.useful_workers(todo),
        )

    def compute(self, results: Results, progress: Progress, *, keeps: bool) -> None:
        """Computes what is missing; each block is written as soon as it is there."""
        planned, misses = 0, compilation.compile_program.cache_info().misses
        while blocks := self._agree(self.layout.todo(results)):
            planned += sum(block.trials for block in blocks)
            progress.extended(planned)
            left = {name: results.missing(name) for name in self.layout.hashes} if keeps else {}
            run = self._compute_here if self.cluster is None else self._compute_there
            # Closed as soon as writing fails, so that nobody computes in vain.
            with (
                closing(run(blocks, keeps, progress)) as chunks,
                closing(self._store(chunks, results)) as stored,
            ):
                for block, entry in stored:
                    results.add(entry)
                    for name in block.cells:
                        left[name] -= block.stop - block.start
                    progress.written(sum(rest <= 0 for rest in left.values()))
        # Workers tell theirs, also those in this process.
        if self.cluster is None:
            self.compilations += compilation.compile_program.cache_info().misses - misses

    def facts(self) -> dict[str, Any]:
        """Returns what a result says of how it was computed."""
        facts: dict[str, Any] = {"elapsed_s": time.perf_counter() - self.started}
        facts |= {"compilations": self.compilations, "compile_s": self.compile_s}
        if used := self.devices:
            facts["device"] = f"{len(used)} x {used[0].platform} ({used[0].device_kind})"
        return facts

    def _store(
        self, chunks: Iterable[tuple[Block, Mapping[str, np.ndarray]]], results: Results
    ) -> Generator[tuple[Block, Entry], None, None]:
        """Writes each chunk, while the next is computed, and yields what is written."""
        with ThreadPoolExecutor(1) as pool:
            last: tuple[Block, Future[Entry]] | None = None
            for block, arrays in chunks:
                if last is not None:
                    yield last[0], last[1].result()
                facts = {
                    "cells": list(block.cells),
                    "seeds": [block.start, block.stop],
                    "keep": self.study.keep,
                    "made_by": results.header["made_by"],
                }
                last = block, pool.submit(results.source.put, chunk_name(facts), arrays, facts)
                del arrays
            if last is not None:
                yield last[0], last[1].result()

    def _compute_here(self, blocks: list[Block], keeps: bool, progress: Progress) -> _Chunks:
        """Yields blocks with their chunks, one after the other, as this process computes them."""
        parts = []
        for key, group in self.layout.by_program(blocks).items():
            trials = self.layout.most_trials(key, group)
            needs = self.layout.config(key).needs(trials, self.devices, self.batch)
            parts.append((key, Sizes(needs.batch, rows_of(group), needs.lanes), group))
        # What may not fit is compiled first.
        parts.sort(key=lambda part: -self.layout.config(part[0]).elements)
        programs = [(key.program, sizes) for key, sizes, _ in parts]
        with compilation.compile_ahead(
            programs, self.devices, self.result_bytes, one_by_one=self.shared
        ) as wait_for:
            for place, (key, wanted, group) in enumerate(parts):
                if (key, wanted) not in self.sizes:
                    started = time.perf_counter()
                    tell = functools.partial(progress.compiling, place + 1, len(parts))
                    self.sizes[key, wanted] = wait_for(place, tell)
                    self.compile_s += time.perf_counter() - started
                for block in group:
                    job = self.layout.job(block)
                    stays = stays_on_device(job, self.study.keep, self.devices)
                    series = run_job(
                        job,
                        self.sizes[key, wanted],
                        self.devices,
                        keep_on_device=stays,
                        advanced=progress.advanced,
                    )
                    if keeps:
                        cores = resources.cores()
                        arrays = chunk_of(series, job.configs, self.study.keep, threads=cores)
                        del series  # may take a device's memory
                        yield block, arrays

    def _compute_there(self, blocks: list[Block], keeps: bool, progress: Progress) -> _Chunks:
        """Yields blocks with their chunks, in any order, as the cluster's workers compute them."""
        from fmab_jax.sweeps.cluster import Task

        assert self.cluster is not None
        tasks, ordered = [], []
        for key, group in self.layout.by_program(blocks).items():
            trials, rows = self.layout.most_trials(key, group), rows_of(group)
            for block in group:
                job = self.layout.job(block)
                tasks.append(Task(job, self.study.keep, trials, self.batch, rows))
                ordered.append(block)
        with closing(self.cluster.compute(tasks, progress)) as finished:
            for number, arrays, compilations in finished:
                self.compilations += compilations
                progress.advanced(ordered[number].trials)
                yield ordered[number], arrays
                del arrays

    def _agree(self, blocks: list[Block]) -> list[Block]:
        """Has all processes do what the first has found to be missing."""
        if not self.shared:
            return blocks
        text = np.frombuffer(json.dumps(blocks).encode(), np.uint8)
        size = int(multihost_utils.broadcast_one_to_all(np.int32(len(text))))
        first = jax.process_index() == 0
        text = multihost_utils.broadcast_one_to_all(text if first else np.zeros(size, np.uint8))
        agreed = json.loads(np.asarray(text, np.uint8).tobytes())
        return [Block(tuple(cells), start, stop) for cells, start, stop in agreed]


def chunk_name(facts: Mapping[str, Any]) -> str:
    """Returns the name of the chunk of these facts."""
    text = json.dumps([facts["cells"], facts["seeds"], facts["keep"]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _free_bytes(store: str | os.PathLike[str]) -> int:
    """Returns the free space where a folder lies, or will."""
    path = Path(store).absolute()
    return shutil.disk_usage(next(filter(Path.exists, (path, *path.parents)))).free
