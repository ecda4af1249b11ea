"""Sweeps: a grid of configurations times seeds, computed chunk by chunk, resumable at any moment.

A study is cut into *blocks*, some cells of one array shape times a range of seeds, equally on every
worker; stored blocks are skipped. A computed block becomes one chunk of the store, which is written
while the next block is computed: a kill loses at most these two.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from fmab_jax.errors import PlainText, count, format_quantity, refuse
from fmab_jax.files import check_folder, check_path, refuse_unwritable
from fmab_jax.parts.outputs import Output
from fmab_jax.run import resources
from fmab_jax.sweeps import results
from fmab_jax.sweeps.chunks import Memory, Results
from fmab_jax.sweeps.claims import find_intact, open_existing, register_study
from fmab_jax.sweeps.grid import build_header
from fmab_jax.sweeps.layout import NO_ROOM, Layout, Room
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.progress import Plan, Progress, format_size, resolve_progress
from fmab_jax.sweeps.store import Store
from fmab_jax.sweeps.study import Study, collect_provenance, state
from fmab_jax.sweeps.work import BlockRunner

if TYPE_CHECKING:
    from distributed import Client

    from fmab_jax.sweeps.cluster import Cluster


def sweep(
    algorithm: object,
    problem: object = None,
    *,
    horizon: object,
    seeds: int | Sequence[int],
    store: str | os.PathLike[str] | None = None,
    root_seed: int = 0,
    times: ArrayLike = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    outputs: Sequence[str | Output] = (),
    worker: object = None,
    client: Client | None = None,
    allow_changes: Collection[str] = (),
    chunk: int | None = None,
    batch: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    progress: Progress | bool | None = None,
    **parameters: object,
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
            this process keeps the results. Bytes are the same as without, for the same ``chunk``.
        allow_changes: Fields in which the study, or what it is run with, may differ from the one in
            the store; its chunks are used where their configuration is the same.
        chunk: Trials of a chunk, what a kill loses at most; about a second's work by default.
        batch: As in `simulate`.
        devices: As in `simulate`.
        progress: A `Progress`, True for a bar or lines on standard error, False for silence; by
            default a bar on a terminal, lines in a notebook, and elsewhere one line if a program
            takes long to compile.
        parameters: The algorithm's (epsilon, participation, schedule_gap, graph ...) and the
            problem's (agents, arms, spread, instance_gap ...).

    Returns:
        A Dataset over the swept parameters, then ``seed`` and ``time``, with the variables of
        `simulate` (completed rounds are ``rounds_made``) and ``seeds``; or, for
        ``keep="summary"``, ``regret_mean``, ``regret_covariance``, means of the other series,
        ``regret_quantile``, ``regret_histogram``, ``seeds`` and ``best_arm_lost``. With a store,
        curves are read when they are used; if it holds more seeds of a configuration, the attribute
        ``stored_seeds`` says how many. A worker whose colleagues are not done gets an empty
        Dataset whose attribute ``missing_trials`` says how much is left.

    Raises:
        ValueError: If a value is refused, the study does not fit memory or disk, the store holds
            another study or is a folder that cannot be written, or somebody else is writing.
        OSError: If a chunk cannot be written; what was written stays.
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
    """Runs a study; arguments as in `sweep`.

    A ``dry`` run only plans, checks and reports. ``room`` is what programs have room for at least.
    """
    cluster = None if client is None else _make_cluster(client, worker, devices)
    # With a cluster, this process computes nothing and needs no device.
    local_devices = resources.checked_devices(devices) if cluster is None else ()
    path = None if store is None else check_path("store", store)
    worker, changes = _check_worker(worker, path), _check_changes(allow_changes)
    # A single configuration in memory is one chunk.
    brief = study.keep == "curves" and not (study.axes or path or cluster or dry)
    chunk = study.seeds if brief and chunk is None else chunk
    with resolve_progress(progress, brief=brief) as reporter, ExitStack() as stack:
        versions = (
            cluster.agree_on_versions(reporter)
            if cluster
            else collect_provenance(local_devices[0].platform)
        )
        sharers = worker[1] if worker else cluster.threads if cluster else 1
        layout = Layout(
            study, versions["platform"], chunk, worker, sharers, stored=path is not None
        )
        work = BlockRunner(layout, local_devices, batch, cluster, room)
        header = build_header(study, versions)
        computed_cells = Results(header, Memory(), [], study.outputs)
        if path is not None:
            open_existing(path, computed_cells, changes, is_alone=worker is None)
            for folder_path in (path, path / "chunks"):
                check_folder("store", folder_path)
        plan = work.plan(computed_cells, path)
        reporter.report_plan(plan)
        _check_capacity(plan, study)
        if dry:
            return xr.Dataset()
        if path is not None:
            writer = "worker-{}-of-{}".format(*worker) if worker else "main"
            with refuse_unwritable("store", path):
                folder = Store(path, create=True)
                stack.enter_context(folder.lock_writer(writer))
                register_study(folder, header, changes, is_alone=worker is None)
            computed_cells.replace_entries(folder, find_intact(folder, layout.hashes, reporter))
        work.compute(computed_cells, reporter)
        if path is not None:
            # Other workers may have written chunks in the meantime.
            computed_cells.replace_entries(folder, folder.entries()[0])
    if missing := sum(computed_cells.count_missing(name) for name in layout.hashes):
        return xr.Dataset(attrs={"missing_trials": missing})
    data = results.dataset(computed_cells, str(store))
    data.attrs |= work.facts()
    if study.seed_list is not None and study.keep == "curves":
        data = data.assign_coords(seed=np.asarray(study.seed_list, np.int64))
    return data


def outline(study: Study) -> xr.Dataset:
    """Returns the result of a study without any seed: its parameters, meters and columns."""
    return results.dataset(
        Results(build_header(study, {}), Memory(), [], study.outputs), "", partial=True
    )


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


def _check_capacity(plan: Plan, study: Study) -> None:
    """Refuses a plan that does not fit disk or memory."""
    needs = (
        ("disk", plan.disk_bytes, plan.free_bytes),
        ("memory", plan.memory_bytes, plan.available_bytes),
    )
    for field, needed, free in needs:
        if not free or needed <= 0.9 * free:
            continue
        remedy = "use a smaller batch or chunk, fewer times, or sweep fewer values"
        if study.keep == "curves" and (field == "disk" or not plan.disk_bytes):
            configs = [point.config for point in study.points]
            sizes = [c.curve_bytes if field == "disk" else c.result_bytes for c in configs]
            seeds = int(0.9 * free / sum(sizes))
            remedy = "record fewer times, or sweep with keep='summary'"
            remedy += f", or at most {format_quantity(seeds, 'seed')}" * bool(seeds)
        if field == "memory":
            remedy += resources.suggest_more_memory()
        allowed = f"at most 90 % of the {format_size(free)} free"
        refuse(field, format_size(needed), allowed, remedy)
