"""Sweeps: a grid of configurations times seeds, computed chunk by chunk, resumable at any moment.

What is to be done is laid out in *blocks*, some cells of one array shape times a range of seeds,
the same for everybody who runs the study; what is there already is left out. A block that is
computed becomes one chunk of the store, which is written while the next is begun: a kill loses at
most that one, and the beginning of the next.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr
from jax.experimental import multihost_utils

from fmab_jax.analysis import summary
from fmab_jax.core.outputs import Output
from fmab_jax.errors import Shown, count, refuse
from fmab_jax.files import checked_path
from fmab_jax.resources import affordable
from fmab_jax.run import compilation, resources
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import Config, check_counts
from fmab_jax.sweeps import results
from fmab_jax.sweeps.blocks import Chunk, chunk_of, run_job, stays_on_device
from fmab_jax.sweeps.chunks import Memory, Results
from fmab_jax.sweeps.claims import claim, intact, look
from fmab_jax.sweeps.grid import header_of, refuse_lost_texts
from fmab_jax.sweeps.layout import (
    FEWEST,
    Block,
    Layout,
    Sort,
    bytes_per_summary,
)
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.progress import Brief, Plan, Progress, size_text, teller_of
from fmab_jax.sweeps.store import Entry, Store
from fmab_jax.sweeps.study import Study, provenance, state

if TYPE_CHECKING:
    from fmab_jax.sweeps.cluster import Cluster

# Slots at which a configuration is timed first, and how long a step to eightfold ones may take.
_FIRST_STEP = 1000
_LONGEST_STEP_S = 1.0


def sweep(
    algorithm: Any,
    problem: Any = None,
    *,
    horizon: Any,
    seeds: int | Sequence[int],
    store: str | os.PathLike[str] | None = None,
    root_seed: int = 0,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    outputs: Sequence[str | Output] = (),
    worker: Any = None,
    client: Any = None,
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
        algorithm: A class such as `cdp_mab`, its name (``cdp``), a configured algorithm, or a list
            or dict of these.
        problem: A `Problem`, or a list or dict of Problems; left out, each seed draws its means,
            with agents=50, arms=100, spread=0, instance_gap and fixed_instance.
        horizon: T, as in `simulate`.
        seeds: As in `simulate`, of each configuration; with ``until``, how many at the first look.
            Which ones they are can be stated for curves in memory.
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
        outputs: As in `simulate`; of a summary there are means and variances. An agent or an arm
            that a configuration does not have is NaN. With a store, outputs of one's own come
            from a plug-in that is loaded: whoever opens the store has to find them.
        worker: (i, n): this process is the i-th of n, i from 1, that share the store and have
            nothing else to do with each other. Each computes its part; start a dead one again.
        client: A `dask.distributed.Client`: its workers compute the chunks, whichever come and go;
            this process keeps the results. Bytes are the same as without.
        allow_changes: Fields in which the study, or what it is run with, may differ from the one in
            the store; its chunks are used where their configuration is the same.
        chunk: Trials of a chunk, what a kill loses at most; about a second's work by default.
        batch: As in `simulate`.
        devices: As in `simulate`. Under `jax.distributed`, all devices of all processes.
        progress: A `Progress`, True for a bar or lines on standard error, False for silence; by
            default a bar, on a terminal or in a notebook.
        parameters: The algorithm's (epsilon, participation, schedule_gap, graph ...) and the
            problem's (agents, arms, spread, instance_gap ...).

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
        ConnectionError: If the client's scheduler is lost; what was written stays.
        ChildProcessError: If a client's workers died again and again over one chunk.

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
        outputs=outputs,
        **parameters,
    )
    return run(
        study,
        store=store,
        worker=worker,
        client=client,
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
    client: Any = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    dry: bool = False,
    calibrate: bool = True,
    whole: bool = False,
) -> xr.Dataset:
    """Runs a study; arguments as in `sweep`.

    A ``dry`` run plans, checks and tells only, for which it may ``calibrate``, measure how long it
    will take; its Dataset is empty. ``whole`` takes all seeds of a configuration for one chunk, as
    far as a chunk can be that large.
    """
    started = time.perf_counter()
    cluster = None if client is None else _checked_cluster(client, worker, devices)
    used: tuple[jax.Device, ...] = ()
    if cluster is None:
        # With a cluster, this process computes nothing and leaves its devices alone.
        used = resources.checked_devices(devices)
        if devices is None and jax.process_count() > 1:
            used = tuple(jax.devices())
    for point in study.points if used else ():
        check_counts(point.config, used[0].platform)
    if store is not None:
        store = checked_path("store", store)
    worker = _checked_worker(worker, store)
    if study.listed is not None and not (store is None and client is None):
        remedy = "a list of seeds is for results in memory"
        given = np.asarray(study.listed[:100]).tolist()
        refuse("seeds", given, "a number of seeds with a store or a client", remedy)
    allow_changes = [allow_changes] if isinstance(allow_changes, str) else allow_changes
    listed = isinstance(allow_changes, (list, tuple, set, frozenset))
    if not listed or not all(isinstance(name, str) for name in allow_changes):
        refuse("allow_changes", allow_changes, "a list of fields", "such as ['epsilon']")
    # Of several processes with common devices, the first keeps the results.
    keeps = not resources.spans_processes(used) or jax.process_index() == 0
    kind, shows = Brief if whole else Progress, keeps
    if whole:
        needs = study.points[0].config.needs(study.seeds, used, batch)
        remedy = "record fewer times or seeds"
        affordable("memory", needs.result_bytes, remedy, needs.available_bytes)
        # A run that is one batch has nothing to tell.
        shows = keeps and needs.batches > 1
    with teller_of(progress, shows, kind) as teller, ExitStack() as stack:
        made_by = provenance(used) if cluster is None else cluster.agree(teller)
        layout = Layout(study, made_by["platform"], chunk, worker, whole=whole)
        work = _Work(layout, used, batch, cluster)
        # Of one configuration nobody is told how long it takes.
        work.timed = whole
        header = header_of(study, made_by)
        refuse_lost_texts(header, study.outputs)
        found = Results(header, Memory(), [], study.outputs)
        # The others' disks, and their memory, hold no results.
        kept = store if keeps else None
        if kept is not None:
            look(kept, found, allow_changes)
        plan = work.plan(found, kept, in_memory=store is None)
        work.result_bytes = needs.result_bytes if whole else plan.memory_bytes
        teller.planned(plan)
        if not whole:
            _refuse_what_does_not_fit(plan, study)
        if dry:
            if calibrate:
                work.calibrate(found, teller)
            return xr.Dataset()
        if kept is not None:
            folder = Store(kept, create=True)
            name = "main" if worker is None else f"worker-{worker[0]}-of-{worker[1]}"
            stack.enter_context(folder.writing(name))
            claim(folder, header, allow_changes, alone=worker is None)
            found.hold(folder, intact(folder, layout.hashes, teller))
        compiled = compilation.compile_program.cache_info().misses
        work.compute(found, teller, keeps=keeps or store is None)
        if kept is not None and worker is not None:
            # What the others have done meanwhile counts as well.
            found.hold(folder, folder.entries()[0])
    if kept is None and store is not None:
        return xr.Dataset()
    if missing := sum(found.missing(name) for name in layout.hashes):
        return xr.Dataset(attrs={"missing_trials": missing})
    data = results.dataset(found, str(store))
    data.attrs["elapsed_s"] = time.perf_counter() - started
    misses = compilation.compile_program.cache_info().misses - compiled
    data.attrs["compilations"] = misses if cluster is None else work.compilations
    data.attrs["compile_s"] = work.compile_s
    if used:
        data.attrs["device"] = f"{len(used)} x {used[0].platform} ({used[0].device_kind})"
    if study.listed is not None and study.keep == "curves":
        data = data.assign_coords(seed=np.asarray(study.listed, np.int64))
    return data


class _Work:
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
        self.shared = resources.spans_processes(devices)
        self.final: dict[str, summary.Moments] = {}
        # The sizes that fit, by those that were wanted.
        self.sizes: dict[tuple[Sort, Sizes], Sizes] = {}
        self.result_bytes = 0
        self.timed = False

    def plan(self, found: Results, store: Any, *, in_memory: bool) -> Plan:
        """Returns what is to be done and what it takes, before anything is allocated."""
        layout = self.layout
        todo = layout.todo(found)
        largest = 0
        for block in todo:
            some = layout.points[block.cells[0]].config
            # The products behind a scatter, and the chunk's bytes, are copies; one chunk is
            # written while the next is computed.
            copies = 10 if self.study.keep == "summary" else 4
            own = copies * layout.kept_bytes(block)
            largest = max(largest, block.trials * (some.curve_bytes + 4 * some.wanted) + own)
        available, parts = resources.available_bytes(), layout.by_program(todo)
        everybody = todo if layout.worker is None else layout.alone().todo(found)
        disk = sum(layout.kept_bytes(block) + 2000 for block in everybody)
        memory = largest + disk * in_memory
        if self.study.keep == "summary":
            memory += 4 * sum(bytes_per_summary(point.config) for point in self.study.points)
        return Plan(
            cells=len(self.study.points),
            seeds=self.study.seeds,
            until=self.study.until is not None,
            distinct=len(layout.points),
            layouts=len({each.program for each in parts}),
            trials=len(layout.points) * self.study.seeds,
            missing=sum(block.trials for block in todo),
            blocks=len(todo),
            disk_bytes=0 if store is None else disk,
            free_bytes=0 if store is None else _free_bytes(store),
            memory_bytes=memory,
            available_bytes=available,
            workers=layout.useful_workers(todo),
        )

    def calibrate(self, found: Results, teller: Progress) -> None:
        """Tells how long what is missing will take; compiles one program for it."""
        todo = self.layout.todo(found)
        if todo and not self.shared and self.cluster is None:
            parts = self._largest_first(todo)
            program, sizes, own = parts[0]
            number = len({each.program for each, _, _ in parts})
            started = time.perf_counter()
            with compilation.announce_with(functools.partial(teller.compiling, 1, number)):
                sizes = compilation.fit_sizes(
                    program.program, sizes, self.devices, self.result_bytes
                )
            compile_s = time.perf_counter() - started
            self._calibrate(own[0], sizes, todo, compile_s * number, teller)

    def _largest_first(self, blocks: list[Block]) -> list[tuple[Sort, Sizes, list[Block]]]:
        """Returns each program with its sizes and blocks: what may not fit is compiled first."""
        parts = []
        for program, own in self.layout.by_program(blocks).items():
            trials = self.layout.most_trials(program, own)
            needs = self.layout.some(program).needs(trials, self.devices, self.batch)
            parts.append((program, Sizes(needs.batch, self.layout.rows(own), needs.lanes), own))
        return sorted(parts, key=lambda part: -self.layout.some(part[0]).elements)

    def compute(self, found: Results, teller: Progress, *, keeps: bool) -> None:
        """Computes what is missing; each block is written as soon as it is there."""
        planned = 0
        while blocks := self._agreed(self.layout.todo(found)):
            planned += sum(block.trials for block in blocks)
            teller.extended(planned)
            left = {name: found.missing(name) for name in self.layout.hashes} if keeps else {}
            here = self._computed_here if self.cluster is None else self._computed_there
            # Closed as soon as writing fails, so that nobody computes in vain.
            with (
                closing(here(blocks, planned, keeps, teller)) as chunks,
                closing(self._stored(chunks, found)) as stored,
            ):
                for block, chunk, entry in stored:
                    if not found.add(entry):
                        raise RuntimeError("what was put is no chunk of this study")
                    for name in block.cells:
                        left[name] -= block.stop - block.start
                    widest = self._widest(block, chunk)
                    teller.written(sum(rest <= 0 for rest in left.values()), widest)

    def _stored(
        self, chunks: Iterable[tuple[Block, Chunk]], found: Results
    ) -> Generator[tuple[Block, Chunk, Entry], None, None]:
        """Writes each chunk, while the next is computed, and yields what is written."""
        folder: Any = found.source
        with ThreadPoolExecutor(1) as pool:
            last: tuple[Block, Chunk, Future[Entry]] | None = None
            for block, chunk in chunks:
                facts = {
                    "cells": list(block.cells),
                    "seeds": [block.start, block.stop],
                    "keep": self.study.keep,
                    "made_by": found.header["made_by"],
                }
                if isinstance(folder, Memory):
                    yield block, chunk, folder.put(_chunk_name(facts), chunk.arrays, facts)
                    continue
                if last is not None:
                    yield *last[:2], last[2].result()
                put = pool.submit(folder.put, _chunk_name(facts), chunk.arrays, facts)
                last = block, chunk, put
                del chunk
            if last is not None:
                yield *last[:2], last[2].result()

    def _computed_here(
        self, blocks: list[Block], planned: int, keeps: bool, teller: Progress
    ) -> Generator[tuple[Block, Chunk], None, None]:
        """Yields blocks with their chunks, one after the other, as this process computes them."""
        parts = self._largest_first(blocks)
        programs = [(program.program, sizes) for program, sizes, _ in parts]
        with compilation.compile_ahead(
            programs, self.devices, self.result_bytes, one_by_one=self.shared
        ) as wait_for:
            for place, (program, wanted, own) in enumerate(parts, 1):
                started = time.perf_counter()
                if (program, wanted) not in self.sizes:
                    tell = functools.partial(teller.compiling, place, len(parts))
                    sizes = self.sizes[program, wanted] = wait_for(place - 1, tell)
                    compile_s = time.perf_counter() - started
                    self.compile_s += compile_s
                    lanes = resources.threads(self.devices)
                    if not self.timed and planned >= 8 * sizes.batch * lanes:
                        self._calibrate(own[0], sizes, blocks, compile_s * len(parts), teller)
                        self.timed = True
                sizes = self.sizes[program, wanted]
                for block in own:
                    job = self.layout.job(block)
                    series = run_job(
                        job,
                        sizes,
                        self.devices,
                        keep_on_device=stays_on_device(job, self.study.keep, self.devices),
                        advanced=teller.advanced,
                    )
                    if keeps:
                        cores = resources.cores()
                        chunk = chunk_of(series, job.configs, self.study.keep, threads=cores)
                        del series  # may take a device's memory
                        yield block, chunk

    def _computed_there(
        self, blocks: list[Block], planned: int, wanted: bool, teller: Progress
    ) -> Generator[tuple[Block, Chunk], None, None]:
        """Yields blocks with their chunks, in any order, as the cluster's workers compute them."""
        from fmab_jax.sweeps.cluster import Task

        assert self.cluster is not None
        # Fewer blocks than threads are cut to pieces, whose results are joined to the same chunks.
        pieces = max(1, self.cluster.threads // len(blocks))
        tasks, ordered = [], []
        for program, own in self.layout.by_program(blocks).items():
            trials, rows = self.layout.most_trials(program, own), self.layout.rows(own)
            for block in own:
                job = self.layout.job(block)
                cut = min(pieces, -(-job.trials // FEWEST))
                each = -(-trials // cut)
                tasks.append(Task(job, self.study.keep, each, self.batch, cut, rows))
                ordered.append(block)
        left = sum(self.layout.elements(block) for block in blocks)
        with closing(self.cluster.compute(tasks, teller)) as found:
            for number, done in found:
                block = ordered[number]
                self.compilations += done.compilations
                left -= self.layout.elements(block)
                teller.advanced(block.trials)
                if not self.timed and left and self.cluster.threads:
                    per_element = done.seconds / self.layout.elements(block)
                    teller.calibrated(left * per_element / self.cluster.threads)
                self.timed = True
                yield block, done.made
                del done

    def _agreed(self, blocks: list[Block]) -> list[Block]:
        """Has all processes do what the first has found to be missing."""
        if not self.shared:
            return blocks
        text = np.frombuffer(json.dumps(blocks).encode(), np.uint8)
        size = int(multihost_utils.broadcast_one_to_all(np.int32(len(text))))
        first = jax.process_index() == 0
        text = multihost_utils.broadcast_one_to_all(text if first else np.zeros(size, np.uint8))
        told = json.loads(np.asarray(text, np.uint8).tobytes())
        return [Block(tuple(cells), start, stop) for cells, start, stop in told]

    def _calibrate(
        self,
        block: Block,
        sizes: Sizes,
        blocks: Sequence[Block],
        compiling_s: float,
        teller: Progress,
    ) -> None:
        """Runs a few batches against the clock and extrapolates to all blocks.

        A long horizon is come up to in steps, and left where a step takes longer than a second:
        nobody waits minutes for being told how long something will take.
        """
        batch = sizes.batch
        trials = min(batch * resources.threads(self.devices), block.stop - block.start)
        if self.shared:
            return
        config = self.layout.points[block.cells[0]].config
        steps: list[tuple[int, float]] = []
        for horizon in _horizons(config):
            stop = block.start + trials
            job = self.layout.job(block)._replace(configs=(_cut(config, horizon),), stop=stop)
            started = time.perf_counter()
            stays = stays_on_device(job, self.study.keep, self.devices)
            run_job(job, sizes, self.devices, keep_on_device=stays)
            steps.append((horizon, time.perf_counter() - started))
            if steps[-1][1] > _LONGEST_STEP_S:
                break
        # A program's cost goes with its elements; batches are padded to a whole, and where a block
        # is less than one, so will be the others.
        ran = trials if trials < batch else -(-trials // batch) * batch
        ran *= config.elements
        work = sum(
            self.layout.elements(each)
            * _expected(steps, self.layout.points[each.cells[0]].config.horizon)
            for each in blocks
        )
        teller.calibrated(work / ran + compiling_s)

    def _widest(self, block: Block, chunk: Chunk) -> float:
        """Returns the widest 95 % half-width of mean regret at T over its mean, of known cells."""
        for name, own in zip(block.cells, chunk.finals, strict=True):
            known = self.final.get(name)
            self.final[name] = own if known is None else summary.merge(known, own)
        widths = [
            1.96 * math.sqrt(part.covariance[0] / part.seeds) / part.mean[0]
            for part in self.final.values()
            if part.seeds > 1 and part.mean[0] > 0
        ]
        return max(widths, default=math.nan)


def _horizons(config: Config) -> list[int]:
    """Returns the horizons at which a configuration is timed: ever longer ones, its own last."""
    if not hasattr(config.trial, "horizon"):
        return [config.horizon]  # somebody's own loop
    steps = [min(config.horizon, _FIRST_STEP)]
    while steps[-1] < config.horizon:
        steps.append(min(config.horizon, 8 * steps[-1]))
    return steps


def _cut(config: Config, horizon: int) -> Config:
    """Returns a configuration of the same program that ends sooner."""
    if horizon == config.horizon:
        return config
    trial: Any = config.trial
    shorter = dataclasses.replace(trial, horizon=np.int64(horizon))
    return config._replace(trial=shorter, grid=np.minimum(config.grid, horizon))


def _expected(steps: Sequence[tuple[int, float]], horizon: int) -> float:
    """Returns how long a horizon takes, in seconds, after what ever longer ones took.

    Time grows with a power of the horizon between 0, of epochs, and 1, of slots.
    """
    far, last = steps[-1]
    before, first = steps[-2] if len(steps) > 1 else (far, last)
    power = math.log(last / first) / math.log(far / before) if far > before else 1.0
    return last * (horizon / far) ** min(1.0, max(0.0, power))


def _chunk_name(facts: Mapping[str, Any]) -> str:
    named = json.dumps([facts["cells"], facts["seeds"], facts["keep"]])
    return hashlib.sha256(named.encode()).hexdigest()[:32]


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


def _checked_cluster(client: Any, worker: Any, devices: Any) -> Cluster:
    """Returns a client's cluster; refuses what does not go with it."""
    from fmab_jax.sweeps.cluster import Cluster

    if worker is not None:
        remedy = "the client's workers share the work by themselves; drop one"
        refuse("worker", worker, "left out with a client", remedy)
    if devices is not None:
        remedy = "every worker of the client uses its own; drop one"
        refuse("devices", Shown("..."), "left out with a client", remedy)
    return Cluster(client)


def _free_bytes(store: str | os.PathLike[str]) -> int:
    """Returns the free space where a folder lies, or will."""
    path = Path(store).absolute()
    with suppress(OSError):
        there = next(filter(Path.exists, (path, *path.parents)), path)
        return shutil.disk_usage(there).free
    return 0


def _refuse_what_does_not_fit(plan: Plan, study: Study) -> None:
    """Refuses a plan that disk or memory cannot hold."""
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
            each = sum(point.config.curve_bytes for point in study.points)
            if seeds := int(0.9 * there / each):
                remedy += f", or at most {seeds:,} seeds"
        elif field == "memory" and study.keep == "curves":
            remedy = "use a smaller batch or chunk, fewer times, or fewer agents or arms"
        allowed = f"at most 90 % of the {size_text(there)} free"
        refuse(field, size_text(needed), allowed, remedy)
