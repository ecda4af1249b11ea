"""Sweeps: a grid of configurations times seeds, computed chunk by chunk, resumable at any moment.

A study is cut into *blocks*, some cells of one array shape times a range of seeds, equally on every
worker; stored blocks are skipped. A computed block becomes one chunk of the store, which is written
while the next block is computed: a kill loses at most these two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
import xarray as xr
from rich.filesize import decimal

from fmab_jax.errors import PlainText, count, refuse
from fmab_jax.files import check_folder, check_path, refuse_unwritable
from fmab_jax.machine import suggest_more_memory
from fmab_jax.run import resources
from fmab_jax.run.configs import check_counts
from fmab_jax.sweeps import results
from fmab_jax.sweeps.chunks import Memory, Results
from fmab_jax.sweeps.claims import find_intact, open_existing, register_study
from fmab_jax.sweeps.grid import build_header
from fmab_jax.sweeps.layout import NO_ROOM, Layout, Room
from fmab_jax.sweeps.progress import Plan, Progress, resolve_progress
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.study import Design, collect_provenance
from fmab_jax.sweeps.work import BlockRunner

if TYPE_CHECKING:
    from distributed import Client

    from fmab_jax.sweeps.cluster import Cluster


def run(
    study: Design,
    store: str | os.PathLike[str] | None = None,
    *,
    worker: object = None,
    client: Client | None = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    dry: bool = False,
    room: Room = NO_ROOM,
) -> xr.Dataset:
    """Runs a study; arguments as in `fmab_jax.sweep`.

    A ``dry`` run only plans, checks and reports. ``room`` is what programs have room for at least.
    """
    cluster = None if client is None else _make_cluster(client, worker, devices)
    started = time.perf_counter()
    # With a cluster, this process computes nothing and needs no device.
    local_devices = resources.checked_devices(devices) if cluster is None else ()
    path = None if store is None else check_path("store", store)
    worker, changes = _check_worker(worker, path), _check_changes(allow_changes)
    # A single configuration in memory is one chunk.
    brief = study.keep == "curves" and not (study.axes or path or cluster or dry)
    chunk = study.seeds if brief and chunk is None else _check_chunk(chunk)
    with resolve_progress(progress, brief=brief) as reporter, ExitStack() as stack:
        versions = (
            cluster.agree_on_versions(reporter)
            if cluster
            else collect_provenance(local_devices[0].platform)
        )
        _check_study(study, versions["platform"], path)
        layout = Layout(study, versions["platform"], chunk, worker)
        header = build_header(study, versions)
        computed_cells = Results(header, Memory(), [], study.all_outputs)
        if path is not None:
            open_existing(path, computed_cells, changes, is_alone=worker is None)
            for folder_path in (path, path / "chunks"):
                check_folder("store", folder_path)
        plan = layout.plan(computed_cells, path)
        reporter.report_plan(plan)
        _check_capacity(plan)
        if dry:
            return xr.Dataset()
        if path is not None:
            writer = "worker-{}-of-{}".format(*worker) if worker else "main"
            with refuse_unwritable("store", path):
                folder = Store(path, create=True)
                stack.enter_context(folder.lock_writer(writer))
                register_study(folder, header, changes, is_alone=worker is None)
            computed_cells.replace_entries(folder, find_intact(folder, layout.points, reporter))
        work = BlockRunner(layout, local_devices, batch, cluster, room, plan.memory_bytes)
        work.compute(computed_cells, reporter)
        if path is not None:
            # Other workers may have written chunks in the meantime.
            computed_cells.replace_entries(folder, folder.entries())
    if missing := sum(computed_cells.count_missing(name) for name in layout.points):
        return xr.Dataset(attrs={"missing_trials": missing})
    data = results.dataset(computed_cells, str(store))
    data.attrs |= {"elapsed_s": time.perf_counter() - started}
    data.attrs |= {"compilations": work.compilations, "compile_s": work.compile_s}
    if local_devices:
        first = local_devices[0]
        data.attrs["device"] = f"{len(local_devices)} x {first.platform} ({first.device_kind})"
    if study.seed_list is not None and study.keep == "curves":
        data = data.assign_coords(seed=np.asarray(study.seed_list, np.int64))
    return data


def outline(study: Design) -> xr.Dataset:
    """Returns the result of a study without any seed: its parameters, meters and columns."""
    return results.dataset(
        Results(build_header(study, {}), Memory(), [], study.all_outputs), "", partial=True
    )


def _check_chunk(chunk: object) -> int | None:
    remedy = "give the trials of a chunk"
    return None if chunk is None else count("chunk", chunk, 1, resources.MAX_SEEDS, remedy)


def _check_study(study: Design, platform: str, store: Path | None) -> None:
    """Refuses a study that the platform cannot run, or that no store can hold."""
    if store is not None and study.seed_list is not None:
        remedy = "a list of seeds is for results in memory"
        refuse("seeds", study.seed_list[:100].tolist(), "a number of seeds with a store", remedy)
    for point in study.points:
        check_counts(point.config, platform)


def _check_worker(worker: object, store: Path | None) -> tuple[int, int] | None:
    if worker is None:
        return None
    remedy = "give (i, n), such as (3, 16), i from 1 to n"
    if not isinstance(worker, (list, tuple)) or len(worker) != 2:
        refuse("worker", worker, "a pair (i, n)", remedy)
    workers = count("worker", worker[1], 1, 100_000, remedy)
    index = count("worker", worker[0], 1, workers, remedy)
    if store is None:
        refuse("worker", worker, "given with a store", "name the folder that the workers share")
    return index, workers


def _check_changes(changes: object) -> list[str]:
    changes = [changes] if isinstance(changes, str) else changes
    kinds = (list, tuple, set, frozenset)
    if not isinstance(changes, kinds) or not all(isinstance(name, str) for name in changes):
        refuse("allow_changes", changes, "a list of fields", "such as ['epsilon']")
    return list(changes)


def _make_cluster(client: Client, worker: object, devices: object) -> Cluster:
    """Returns a client's cluster; refuses arguments that exclude a client."""
    from fmab_jax.sweeps.cluster import Cluster

    if worker is not None:
        remedy = "the client's workers share the work by themselves; drop one"
        refuse("worker", worker, "left out with a client", remedy)
    if devices is not None:
        remedy = "every worker of the client uses its own; drop one"
        refuse("devices", PlainText("..."), "left out with a client", remedy)
    return Cluster(client)


def _check_capacity(plan: Plan) -> None:
    """Refuses a plan that does not fit disk or memory."""
    for field, needed, free in (
        ("disk", plan.disk_bytes, plan.free_bytes),
        ("memory", plan.memory_bytes, plan.available_bytes),
    ):
        if free and needed > 0.9 * free:
            remedy = "use a smaller chunk, fewer seeds, times or values, or keep='summary'"
            remedy += suggest_more_memory() if field == "memory" else ""
            refuse(field, decimal(needed), f"at most 90 % of the {decimal(free)} free", remedy)
