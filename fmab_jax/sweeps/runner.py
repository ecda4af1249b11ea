"""Sweeps: a grid of configurations times seeds, computed chunk by chunk, resumable at any moment.

What is to be done is laid out in *blocks*, some cells of one array shape times a range of seeds,
the same for everybody who runs the study; what is there already is left out. A block that is
computed becomes one chunk of the store before the next is begun: a kill loses at most that one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jax.experimental import multihost_utils

from fmab_jax.analysis import summary
from fmab_jax.errors import Busy, count, did_you_mean, refuse
from fmab_jax.files import checked_path
from fmab_jax.run import batches, resources, schema
from fmab_jax.run.batches import Collected, Config, Program, Work
from fmab_jax.run.resources import Estimate
from fmab_jax.sweeps import records, results
from fmab_jax.sweeps.progress import Plan, Progress, size_text, teller_of
from fmab_jax.sweeps.results import Memory, Results
from fmab_jax.sweeps.store import MOST_BYTES, Entry, Store
from fmab_jax.sweeps.study import Point, Precision, Study, provenance, state

# A chunk is about a second of two cores' work, and at most so many bytes of curves.
_CHUNK_ELEMENTS = {"cpu": 6_400_000}
_CHUNK_BYTES = 64_000_000


class Block(NamedTuple):
    """Cells of one program times seeds [start, stop)."""

    cells: tuple[str, ...]
    start: int
    stop: int


class _Sort(NamedTuple):
    """What configs of one chunk share: their program, and how many slots are kept."""

    program: Program
    wanted: int


def _sort(config: Config) -> _Sort:
    return _Sort(config.program, config.wanted)


def sweep(
    algorithm: Any,
    problem: Any = None,
    *,
    horizon: Any,
    seeds: int,
    store: str | os.PathLike[str] | None = None,
    root_seed: int = 0,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    worker: Any = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Runs a grid of configurations, for the same seeds each, and keeps what it has computed.

    Every parameter given as a list (tuple, range, array) is swept and becomes a labelled dimension;
    a dict gives the labels. Seeds are shared over cells (common random numbers, see
    `paired_difference`). Equal cells are computed once. Cells that differ in epsilon, p, R, gap, T
    or, as far as they do not shape an array, agents, graphs and means, share one compilation and
    run together, cells x seeds in one program.

    Args:
        algorithm: A maker such as `cdp_mab`, its name (``cdp``), or a list of these.
        problem: A `Problem`, a maker such as ``Problem.uniform``, or a list or dict of Problems;
            left out, each seed draws its means, with agents=50, arms=100, spread=0, problem_gap
            and fixed_instance.
        horizon: T, as in `simulate`.
        seeds: Seeds 0, 1, ..., seeds - 1 of each configuration; with ``until``, of the first look.
        store: Folder to keep the results in, made if missing. What is there already is not computed
            again: an interrupted sweep goes on, a sweep with more seeds computes the difference.
            Without a store results stay in memory.
        root_seed: Selects all randomness.
        times: As in `simulate`.
        spacing: As in `simulate`.
        sum_agents: As in `simulate`.
        keep: "curves" keeps every seed, "summary" moments, a histogram of the regret at T and
            counts: for very many seeds.
        until: `until_precise(...)`: add seeds until each configuration's band is narrow; needs
            "summary".
        worker: (i, n): this process is the i-th of n, i from 1, that share the store and have
            nothing else to do with each other. Each computes its part; start a dead one again.
        allow_changes: Fields in which the study, or what it is run with, may differ from the one in
            the store; its chunks are used where their configuration is the same.
        chunk: Trials of a chunk, what a kill loses at most; about a second's work by default.
        batch: As in `simulate`.
        devices: As in `simulate`. Under `jax.distributed`, all devices of all processes.
        progress: A `Progress`, True for a bar or lines on standard error, False for silence; by
            default a bar on a terminal.
        parameters: The algorithm's (epsilon, participation, rounds, gap, graph, components ...) and
            the problem's (agents, arms, spread ...; its gap is called problem_gap).

    Returns:
        A Dataset over the swept parameters, then ``seed`` and ``time``, with the variables of
        `simulate` (completed rounds are ``rounds_made``) and ``seeds``; or, for
        ``keep="summary"``, ``regret_mean``, ``regret_covariance``, means of the other series,
        ``regret_quantile``, ``regret_histogram``, ``seeds`` and ``best_arm_lost``. With a store,
        curves are read when they are used. A worker whose colleagues are not done gets an empty
        Dataset whose attribute ``missing_trials`` says how much is left.

    Raises:
        ValueError: If a value is refused, the study does not fit memory or disk, the store holds
            another study, or somebody else is writing.
        OSError: If the store cannot be written; what was written stays.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> data.regret.dims, data.epsilon.values.tolist()
        (('epsilon', 'seed', 'time'), [0.1, 1.0])
    """
    study = state(
        algorithm,
        problem,
        horizon=horizon,
        seeds=seeds,
        root_seed=root_seed,
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        keep=keep,
        until=until,
        **parameters,
    )
    return run(
        study,
        store=store,
        worker=worker,
        allow_changes=allow_changes,
        chunk=chunk,
        batch=batch,
        devices=devices,
        progress=progress,
    )


def run(
    study: Study,
    *,
    store: str | os.PathLike[str] | None = None,
    worker: Any = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    dry: bool = False,
) -> xr.Dataset:
    """Runs a study; arguments as in `sweep`.

    Args:
        study: What to run.
        store: Where to keep it.
        worker: This process's part.
        allow_changes: Fields that may differ from the store's.
        chunk: Trials of a chunk.
        batch: Seeds of a batch.
        devices: To use.
        progress: Who is told.
        dry: Plan, check and tell only; the Dataset is empty.
    """
    started = time.perf_counter()
    if devices is None and jax.process_count() > 1:
        devices = jax.devices()
    used = resources.checked_devices(devices)
    if store is not None:
        store = checked_path("store", store)
    worker = _checked_worker(worker, store)
    allow_changes = [allow_changes] if isinstance(allow_changes, str) else allow_changes
    listed = isinstance(allow_changes, (list, tuple, set, frozenset))
    if not listed or not all(isinstance(name, str) for name in allow_changes):
        refuse("allow_changes", allow_changes, "a list of fields", "such as ['epsilon']")
    compiled = batches.executable.cache_info().misses
    work = _Work(study, used, chunk, batch, worker)
    header = results.header_of(study, provenance(used))
    # Of several processes with common devices, the first keeps the results.
    keeps = not work.shared or jax.process_index() == 0
    with teller_of(progress, keeps) as teller, ExitStack() as stack:
        found = Results(header, Memory(), [])
        if store is not None and keeps:
            found = _look(store, header, allow_changes)
        # The others' disks, and their memory, hold no results.
        plan = work.plan(found, store if keeps else None, in_memory=store is None)
        teller.planned(plan)
        _refuse_what_does_not_fit(plan, study)
        if dry:
            work.calibrate(found, teller)
            return xr.Dataset()
        folder: Store | Memory = Memory()
        if store is not None and keeps:
            folder = Store(store, create=True)
            name = "main" if worker is None else f"worker-{worker[0]}-of-{worker[1]}"
            stack.enter_context(folder.writing(name))
            _claim(folder, header, allow_changes, alone=worker is None)
            found = Results(header, folder, _intact(folder, work.hashes, teller))
        else:
            found = Results(header, folder, [])
        work.compute(found, folder if keeps or store is None else None, teller)
        if isinstance(folder, Store) and worker is not None:
            # What the others have done meanwhile counts as well.
            found = Results(header, folder, folder.entries()[0])
    if store is not None and not keeps:
        return xr.Dataset()
    missing = sum(work.missing(found).values())
    if missing:
        return xr.Dataset(attrs={"missing_trials": missing})
    data = results.dataset(found, str(store))
    data.attrs["elapsed_s"] = time.perf_counter() - started
    data.attrs["compilations"] = batches.executable.cache_info().misses - compiled
    return data


class _Work:
    """The blocks of a study, and how they are computed."""

    def __init__(
        self,
        study: Study,
        devices: tuple[jax.Device, ...],
        chunk: int | None,
        batch: int | None,
        worker: tuple[int, int] | None,
    ) -> None:
        self.study, self.devices, self.worker = study, devices, worker
        self.points: dict[str, Point] = {point.hash: point for point in study.points}
        self.hashes = list(self.points)
        self.programs: dict[_Sort, list[str]] = {}
        for name, point in self.points.items():
            self.programs.setdefault(_sort(point.config), []).append(name)
        if chunk is not None:
            chunk = count("chunk", chunk, 1, resources.MAX_SEEDS, "give the trials of a chunk")
        self.chunk, self.batch = chunk, batch
        self.shared = resources.spans_processes(devices)
        self.final: dict[str, summary.Moments] = {}

    def missing(self, found: Results) -> dict[str, int]:
        """Returns, by cell, how many trials are missing, as far as is known."""
        missing = {}
        for name in self.hashes:
            wanted, complete = results.judged(found, name)
            gaps = () if complete else found.gaps(name, 0, wanted)
            missing[name] = sum(stop - start for start, stop in gaps)
        return missing

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
                stop, complete = results.judged(found, name)
                if complete:
                    done.add(name)
                if self.study.until is None or not complete:
                    wanted.setdefault(stop, []).append(name)
            for stop, names in sorted(wanted.items()):
                # Laid out with what is done, so that blocks have the same numbers for all workers.
                for block in self._laid_out(program, names, stop):
                    if self.study.until is not None or self._mine(number):
                        left = tuple(name for name in block.cells if name not in done)
                        blocks += _left(block._replace(cells=left), stop, found)
                    number += 1
        return blocks

    def _mine(self, number: int) -> bool:
        return self.worker is None or number % self.worker[1] == self.worker[0] - 1

    def _laid_out(self, program: _Sort, cells: list[str], stop: int) -> Iterator[Block]:
        """Cuts cells x seeds [0, stop) into blocks, the same whoever does it."""
        trials, most_cells = self._chunk_size(program)
        if stop >= trials:
            for name in cells:
                for start in range(0, stop, trials):
                    yield Block((name,), start, min(start + trials, stop))
            return
        # With a precision, which cells need more seeds differs from look to look.
        together = 1 if self.study.until is not None else min(trials // stop, most_cells)
        for first in range(0, len(cells), together):
            yield Block(tuple(cells[first : first + together]), 0, stop)

    def _some(self, program: _Sort) -> Config:
        """Returns one of a program's configs; they have the same sizes."""
        return self.points[self.programs[program][0]].config

    def _chunk_size(self, program: _Sort) -> tuple[int, int]:
        """Returns the most trials and the most cells of a chunk."""
        some = self._some(program)
        elements = some.elements
        trials = _CHUNK_ELEMENTS.get(self.devices[0].platform, 256_000_000) // elements
        cells = 2**31
        if self.study.keep == "curves":
            trials = min(trials, _CHUNK_BYTES // _bytes_per_trial(some))
        else:
            # Held in memory while it is computed, but not written.
            trials = min(trials, 4 * _CHUNK_BYTES // _bytes_per_trial(some))
            cells = max(1, _CHUNK_BYTES // _bytes_per_summary(some))
        trials = self.chunk if self.chunk is not None else max(trials, 16)
        kept = _bytes_per_trial(some) * trials
        if self.study.keep == "summary":
            kept = _bytes_per_summary(some)
        if kept > MOST_BYTES:
            field, value = ("chunk", trials) if self.chunk is not None else ("times", some.wanted)
            refuse(field, value, f"such that a chunk has at most {MOST_BYTES:,} bytes", "use fewer")
        return max(1, trials), cells

    def plan(self, found: Results, store: Any, *, in_memory: bool) -> Plan:
        """Returns what is to be done and what it takes, before anything is allocated.

        Args:
            found: What is there.
            store: Where it is kept, or None.
            in_memory: Whether this process holds all results.
        """
        todo = self.todo(found)
        largest, working, available = 0, 0, 0
        for block in todo:
            some = self.points[block.cells[0]].config
            trials = len(block.cells) * (block.stop - block.start)
            # The products behind a scatter, and the chunk's bytes, are copies.
            copies = 10 if self.study.keep == "summary" else 3
            own = copies * self._kept_bytes(block)
            largest = max(largest, trials * (_bytes_per_trial(some) + 4 * some.wanted) + own)
        for program in self.programs:
            need = self._needs(program, todo)
            working = max(working, need.working_bytes)
            available = need.available_bytes
        everybody = todo if self.worker is None else self._alone().todo(found)
        disk = sum(self._kept_bytes(block) + 2000 for block in everybody)
        memory = working + largest + disk * in_memory
        if self.study.keep == "summary":
            memory += 4 * sum(_bytes_per_summary(point.config) for point in self.study.points)
        return Plan(
            cells=len(self.study.points),
            seeds=self.study.seeds,
            until=self.study.until is not None,
            distinct=len(self.points),
            layouts=len({_sort(self.points[block.cells[0]].config).program for block in todo}),
            trials=len(self.points) * self.study.seeds,
            missing=sum((block.stop - block.start) * len(block.cells) for block in todo),
            blocks=len(todo),
            disk_bytes=0 if store is None else disk,
            free_bytes=0 if store is None else _free_bytes(store),
            memory_bytes=memory,
            available_bytes=available,
        )

    def _alone(self) -> _Work:
        return _Work(self.study, self.devices, self.chunk, self.batch, None)

    def _kept_bytes(self, block: Block) -> int:
        some = self.points[block.cells[0]].config
        if self.study.keep == "curves":
            return len(block.cells) * (block.stop - block.start) * _bytes_per_trial(some)
        return len(block.cells) * _bytes_per_summary(some)

    def calibrate(self, found: Results, teller: Progress) -> None:
        """Tells how long what is missing will take; compiles one program for it."""
        todo = self.todo(found)
        if todo and not self.shared:
            program = _sort(self.points[todo[0].cells[0]].config)
            programs = len({_sort(self.points[block.cells[0]].config).program for block in todo})
            batch = self._needs(program, todo).batch
            teller.compiling(1, programs)
            started = time.perf_counter()
            batches.executable(program.program, batch, self.devices)
            compile_s = time.perf_counter() - started
            self._calibrate(todo[0], batch, todo, compile_s * programs, teller)

    def _needs(self, program: _Sort, todo: Sequence[Block]) -> Estimate:
        cells = set(self.programs[program])
        own = [block for block in todo if block.cells[0] in cells]
        trials = max([len(b.cells) * (b.stop - b.start) for b in own], default=1)
        if self.study.until is not None:
            # Looks double the seeds; one size of batch for all of them compiles once.
            most = len(cells) * self.study.until.max_seeds
            trials = max(trials, min(self._chunk_size(program)[0], most))
        return self._some(program).needs(trials, self.devices, self.batch)

    def compute(self, found: Results, folder: Any, teller: Progress) -> None:
        """Computes what is missing, a block at a time; each is written before the next begins."""
        compiled: set[tuple[_Sort, int]] = set()
        first, planned = True, 0
        while blocks := [Block(tuple(c), a, b) for c, a, b in self._agreed(self.todo(found))]:
            planned += sum((b.stop - b.start) * len(b.cells) for b in blocks)
            teller.extended(planned)
            left = self.missing(found) if folder is not None else {}
            ahead = {block.cells[0] for block in blocks}
            programs = [each for each, cells in self.programs.items() if ahead & set(cells)]
            for program in programs:
                cells = set(self.programs[program])
                own = [block for block in blocks if block.cells[0] in cells]
                batch = self._needs(program, own).batch
                if (program, batch) not in compiled:
                    teller.compiling(programs.index(program) + 1, len(programs))
                    started = time.perf_counter()
                    batches.executable(program.program, batch, self.devices)
                    compiled.add((program, batch))
                    trials = batch * resources.threads(self.devices)
                    if first and planned >= 8 * trials:
                        compile_s = time.perf_counter() - started
                        self._calibrate(own[0], batch, blocks, compile_s * len(programs), teller)
                        first = False
                for block in own:
                    collected = self._run(block, batch, teller)
                    if folder is None:
                        continue
                    if found.curves:
                        arrays = _curves(collected, block)
                    else:
                        configs = [self.points[name].config for name in block.cells]
                        costs = [schema.costs_of(config.exchange) for config in configs]
                        arrays = _summarised(collected, block, costs)
                    facts = {
                        "cells": list(block.cells),
                        "seeds": [block.start, block.stop],
                        "keep": self.study.keep,
                        "made_by": found.header["made_by"],
                    }
                    if not found.add(folder.put(_chunk_name(facts), arrays, facts)):
                        raise RuntimeError("what was put is no chunk of this study")
                    for name in block.cells:
                        left[name] -= block.stop - block.start
                    widest = self._widest(collected, block)
                    teller.written(sum(rest <= 0 for rest in left.values()), widest)

    def _agreed(self, blocks: list[Block]) -> list[Block]:
        """Has all processes do what the first has found to be missing."""
        if not self.shared:
            return blocks
        text = np.frombuffer(json.dumps(blocks).encode(), np.uint8)
        size = int(multihost_utils.broadcast_one_to_all(np.int32(len(text))))
        first = jax.process_index() == 0
        text = multihost_utils.broadcast_one_to_all(text if first else np.zeros(size, np.uint8))
        return [Block(*block) for block in json.loads(np.asarray(text, np.uint8).tobytes())]

    def _run(self, block: Block, batch: int, teller: Progress) -> Collected:
        cells = [self.points[name].config for name in block.cells]
        seeds = block.stop - block.start
        work = Work(
            cells,
            np.repeat(np.arange(len(cells), dtype=np.int32), seeds),
            np.tile(np.arange(block.start, block.stop), len(cells)),
            self.study.root_seed,
        )
        collected = Collected(len(work.seeds), max(cell.wanted for cell in cells))
        for start, outcome in batches.run_trials(work, batch, self.devices):
            collected.put(start, outcome)
            teller.advanced(len(outcome.rounds))
        return collected

    def _calibrate(
        self,
        block: Block,
        batch: int,
        blocks: Sequence[Block],
        compiling_s: float,
        teller: Progress,
    ) -> None:
        """Runs a few batches against the clock and extrapolates to all blocks."""
        trials = batch * resources.threads(self.devices)
        if self.shared:
            return
        stop = min(block.stop, block.start + trials)
        started = time.perf_counter()
        self._run(Block(block.cells[:1], block.start, stop), batch, Progress())
        # A program's cost goes with its elements; batches are padded to a whole.
        ran = math.ceil((stop - block.start) / batch) * batch

        def elements(of: Block) -> int:
            return self.points[of.cells[0]].config.elements

        per_element = (time.perf_counter() - started) / ran / elements(block)
        work = sum((b.stop - b.start) * len(b.cells) * elements(b) for b in blocks)
        teller.calibrated(work * per_element + compiling_s)

    def _widest(self, collected: Collected, block: Block) -> float:
        """Returns the widest 95 % half-width of mean regret at T over its mean, of known cells."""
        final = collected.arrays["regret"][:, -1].reshape(len(block.cells), -1)
        for name, values in zip(block.cells, final, strict=True):
            own = summary.moments(values[:, None], full=False)
            known = self.final.get(name)
            self.final[name] = own if known is None else summary.merge(known, own)
        widths = [
            1.96 * math.sqrt(part.covariance[0] / part.seeds) / part.mean[0]
            for part in self.final.values()
            if part.seeds > 1 and part.mean[0] > 0
        ]
        return max(widths, default=math.nan)


def _left(block: Block, wanted: int, found: Results) -> list[Block]:
    """Returns the parts of a block that are not there yet."""
    gaps: dict[tuple[int, int], list[str]] = {}
    for name in block.cells:
        for gap in found.gaps(name, block.start, block.stop, wanted):
            gaps.setdefault(gap, []).append(name)
    return [Block(tuple(cells), *gap) for gap, cells in sorted(gaps.items())]


def _chunk_name(facts: Mapping[str, Any]) -> str:
    named = json.dumps([facts["cells"], facts["seeds"], facts["keep"]])
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _bytes_per_trial(config: Config) -> int:
    """Regret, rounds and perhaps regret while waiting at each slot; some numbers at the end."""
    waits = bool(getattr(config.trial, "waits", True))
    return config.wanted * (9 + 8 * waits) + 32


def _bytes_per_summary(config: Config) -> int:
    """Moments of the curves, and a histogram of, typically, a thousand bins."""
    return 8 * config.wanted * (config.wanted + 8) + 24_000


def _curves(collected: Collected, block: Block) -> dict[str, np.ndarray]:
    """Returns a chunk's arrays, [cell, seed, ...]."""
    arrays = dict(collected.arrays)
    # Few bytes hold a count of rounds.
    rounds_by = arrays["rounds_by"]
    arrays["rounds_by"] = rounds_by.astype(np.min_scalar_type(rounds_by.max()))
    cells = len(block.cells)
    return {n: values.reshape(cells, -1, *values.shape[1:]) for n, values in arrays.items()}


def _summarised(
    collected: Collected, block: Block, costs: Sequence[Mapping[str, int]]
) -> dict[str, np.ndarray]:
    """Returns a chunk's arrays: moments by cell, and (row, value, count) of whole numbers.

    Args:
        collected: The trials' results.
        block: What was run.
        costs: Of each cell, what a round of its exchange sends.
    """
    curves = _curves(collected, block)
    arrays: dict[str, np.ndarray] = {}
    for name in ("regret", "waiting_regret", "rounds_by"):
        if name in curves:
            parts = [summary.moments(values, full=name == "regret") for values in curves[name]]
            for kind in ("anchor", "offset", "scatter"):
                arrays[f"{name}_{kind}"] = np.stack([getattr(part, kind) for part in parts])
    events = {v.name: v.of(curves).astype(np.int64) for v in schema.VARIABLES if v.coordinate}
    counted = {
        "regret_bin": summary.bins(curves["regret"][:, :, -1]),
        **events,
        "undecided": (curves["chosen_arm"] < 0).astype(np.int64),
        "rounds": curves["rounds"],
        "numbers_sent": schema.NUMBERS.of(
            curves, {name: np.array([[each[name]] for each in costs]) for name in costs[0]}
        ),
    }
    for name, values in counted.items():
        found = [summary.counted(row) for row in values]
        rows = [np.full(len(value), row) for row, (value, _) in enumerate(found)]
        arrays[f"{name}_row"] = np.concatenate(rows)
        arrays[f"{name}_value"] = np.concatenate([value for value, _ in found])
        arrays[f"{name}_count"] = np.concatenate([number for _, number in found])
    return arrays


def _checked_worker(worker: Any, store: Any) -> tuple[int, int] | None:
    if worker is None:
        return None
    remedy = "give (i, n), such as (3, 16), i from 1 to n"
    if not isinstance(worker, (list, tuple)) or len(worker) != 2:
        refuse("worker", worker, "a pair (i, n)", remedy)
    index, workers = worker
    workers = count("worker", workers, 1, 100_000, remedy)
    index = count("worker", index, 1, workers, remedy)
    if store is None:
        refuse("worker", worker, "given with a store", "name the folder that the workers share")
    return index, workers


def _look(
    store: str | os.PathLike[str], header: Mapping[str, Any], allow_changes: Collection[str]
) -> Results:
    """Returns what a store seems to hold of a study; refuses one that holds another."""
    try:
        empty = not os.path.lexists(store) or (
            os.path.isdir(store) and all(name.startswith(".") for name in os.listdir(store))
        )
    except ValueError:  # a NUL character
        empty = False
    if empty:
        return Results(header, Memory(), [])
    folder = Store(store)
    _compare(folder, header, allow_changes)
    return Results(header, folder, folder.entries()[0])


def _compare(
    folder: Store, header: Mapping[str, Any], allow_changes: Collection[str]
) -> dict[str, Any] | None:
    """Returns the store's header; refuses it where a field differs that may not."""
    old = records.header_in(folder)
    if old is None:
        return None
    before, now = ({**each["study"], **each["made_by"]} for each in (old, header))
    for name in allow_changes:
        if name not in before and name not in now:
            remedy = did_you_mean(name, {**before, **now}, "name the field that was refused")
            refuse("allow_changes", name, "a field of the study or a package", remedy)
    # More or fewer seeds, and another order of the dimensions, change no chunk.
    free = {"seeds", "until", "axes", *allow_changes}
    names = set(before) | set(now)
    for name in sorted(names, key=lambda name: (name not in ("algorithm", "problem"), name)):
        if name not in free and before.get(name) != now.get(name):
            refuse(
                name,
                now.get(name),
                f"{_short(before.get(name))}, as in the store {folder.path}",
                f"use another store, or let it change: allow_changes=[{name!r}]",
            )
    return old


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _claim(
    folder: Store, header: Mapping[str, Any], allow_changes: Collection[str], *, alone: bool
) -> None:
    """Writes what the store is for; one process at a time, so that two cannot both be first."""
    for _ in range(100):
        try:
            with Store(folder.path).writing("header"):
                old = _compare(folder, header, allow_changes)
                # A worker that was started with an older study takes no seeds from the others.
                fewer = old is not None and old["seeds"] > header["seeds"] and not alone
                if old != header and not fewer:
                    folder.write_header(header)
                return
        except Busy as busy:
            if busy.writer != "header":
                raise
            time.sleep(0.1)
    refuse("store", str(folder.path), "free for its header to be written", "try again")


def _intact(folder: Store, cells: Collection[str], teller: Progress) -> list[Entry]:
    """Returns the chunks that are as they were written; the others go to quarantine."""
    entries, damage = folder.entries()
    for line in damage:
        teller.damaged(f"{folder.path / line}; the line is passed over")
    wanted, intact = set(cells), []
    for entry in entries:
        reason: str | None = "its facts are not those of a chunk"
        if records.fit(entry.facts):
            if not wanted & set(entry.facts["cells"]):
                continue
            # Looked at twice: another worker may just be putting it in place again.
            reason = folder.check(entry) and folder.check(entry)
        if reason is None:
            intact.append(entry)
            continue
        moved = folder.quarantine(entry, reason)
        where = f", now {moved}," if moved else ""
        path = folder.path / "chunks" / f"{entry.chunk}.npz"
        teller.damaged(f"{path}: {reason}; the chunk{where} is computed again")
    return intact


def _free_bytes(store: str | os.PathLike[str]) -> int:
    """Returns the free space where a folder lies, or will."""
    path = Path(store).absolute()
    try:
        while not path.exists() and path != path.parent:
            path = path.parent
        return shutil.disk_usage(path).free
    except OSError:
        return 0


def _refuse_what_does_not_fit(plan: Plan, study: Study) -> None:
    needs = (
        ("disk", plan.disk_bytes, plan.free_bytes),
        ("memory", plan.memory_bytes, plan.available_bytes),
    )
    for field, needed, there in needs:
        if not there or needed <= 0.9 * there:
            continue
        remedy = "record fewer times or sweep fewer values"
        if study.keep == "curves" and (field == "disk" or not plan.disk_bytes):
            remedy = "use keep='summary', which does not grow with the seeds"
            each = sum(_bytes_per_trial(point.config) for point in study.points)
            if seeds := int(0.9 * there / each):
                remedy += f", or at most {seeds:,} seeds"
        elif field == "memory" and study.keep == "curves":
            remedy = "use a smaller batch or chunk, fewer times, or fewer agents or arms"
        allowed = f"at most 90 % of the {size_text(there)} free"
        refuse(field, size_text(needed), allowed, remedy)
