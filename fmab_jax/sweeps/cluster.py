"""Blocks as tasks of a Dask cluster: the code of the client and of the workers.

The client holds the plan and the store. It submits a few tasks per thread, takes one result at a
time, and submits more as tasks end, so memory is bounded and workers may come and go. The scheduler
runs the task of a dead worker again; a task that raises ends the sweep. Every task checks that its
worker has the client's package and versions.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import jax
import numpy as np

from fmab_jax.errors import Refusal, describe_error, refuse
from fmab_jax.parts.plugins import import_sources, plugin_sources
from fmab_jax.run import compilation, resources
from fmab_jax.run.cache import use_compilation_cache
from fmab_jax.sweeps.blocks import Job, compute_block
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.study import collect_provenance

if TYPE_CHECKING:
    from distributed import Client, Future

INSTALL = 'pip install "fmab_jax[dask]"'
# One task that runs, and one that waits.
_TASKS_PER_THREAD = 2
_POLL_S = 1.0
_CONNECT_S = 10.0


class _Call(NamedTuple):
    """A call that unpickling makes.

    So a worker without this package fails inside the task, and the scheduler does not need it.
    """

    function: Callable[[bytes], object]
    payload: bytes

    def __reduce__(self) -> tuple[object, ...]:
        return self.function, (self.payload,)


class Cluster:
    """The workers of a connected, synchronous Dask client."""

    def __init__(self, client: Client) -> None:
        distributed = _import_distributed("client", client)
        usable = isinstance(client, distributed.Client) and not client.asynchronous
        if not usable or client.status != "running" or client.scheduler is None:
            allowed = "a dask.distributed.Client, connected and not asynchronous"
            refuse("client", client, allowed, "pass distributed.Client(address)")
        self.client = client
        # A closed client has no address.
        self.address = client.scheduler.address
        self.versions: dict[str, str] = {}
        self.workers = self.threads = -1
        self._count_time = 0.0

    def agree_on_versions(self, progress: Progress) -> dict[str, str]:
        """Waits for a worker; returns the versions that all workers and this process share."""
        while not self.versions:
            self._count_threads(progress)
            with self._name_lost_scheduler():
                answers = self.client.run(_collect_worker_provenance, on_error="return")
            for worker, worker_versions in sorted(answers.items()):
                if isinstance(worker_versions, OSError):  # it just disconnected
                    continue
                if isinstance(worker_versions, Exception):
                    _refuse_import(f"worker {worker}", worker_versions)
                platform = self.versions.get("platform", worker_versions["platform"])
                self.versions = collect_provenance(platform)
                _check_versions(f"worker {worker}", worker_versions, self.versions)
            if not self.versions:
                time.sleep(_POLL_S / 4)
        return self.versions

    def compute(
        self, jobs: Sequence[Job], progress: Progress
    ) -> Generator[tuple[int, dict[str, np.ndarray], int], None, None]:
        """Yields (number of a job, arrays of its chunk, compilations) as tasks end.

        Closing the generator cancels the remaining tasks.

        Raises:
            ConnectionError: If the scheduler is lost.
            ChildProcessError: If a task's workers died again and again.
            Exception: The error of a task.
        """
        waiting = deque(enumerate(jobs))
        running: dict[Future, int] = {}
        try:
            while waiting or running:
                self._count_threads(progress)
                while waiting and len(running) < _TASKS_PER_THREAD * self.threads:
                    number, job = waiting.popleft()
                    call = pickle.dumps(_Call(_compute_task, self._pack(job)), protocol=5)
                    with self._name_lost_scheduler():
                        running[self.client.submit(pickle.loads, call, pure=False)] = number
                for future in self._wait(list(running)):
                    number = running[future]
                    try:
                        arrays, compilations = self._result(future, jobs[number])
                    finally:
                        # The worker may free the result; this process holds one chunk at a time.
                        future.release()
                    del running[future]
                    yield number, arrays, compilations
                    del arrays
        finally:
            if running:
                with suppress(Exception):  # the scheduler may be lost
                    self.client.cancel(list(running), force=True)

    def _pack(self, job: Job) -> bytes:
        import cloudpickle

        # Pickled inside, since a worker with other versions may fail to unpickle it.
        job_bytes = cloudpickle.dumps(job, protocol=5)
        # Names of plug-in modules hold a digest, so a match in the bytes is a real use.
        sources = [source for source in plugin_sources() if source.name.encode() in job_bytes]
        uses_cache = bool(jax.config.values.get("jax_compilation_cache_dir"))
        return pickle.dumps((self.versions, uses_cache, pickle.dumps(sources), job_bytes))

    def _wait(self, running: list[Future]) -> list[Future]:
        """Returns the futures that have ended, after at most a second."""
        if not running:
            time.sleep(_POLL_S / 4)
            return []
        wait = _import_distributed("client", self.client).wait
        with self._name_lost_scheduler(), self.client.as_current(), suppress(TimeoutError):
            return list(wait(running, timeout=_POLL_S, return_when="FIRST_COMPLETED").done)
        return []

    def _result(self, future: Future, job: Job) -> tuple[dict[str, np.ndarray], int]:
        from distributed.scheduler import KilledWorker

        with self._name_lost_scheduler():
            if future.status != "error":
                return future.result()
            error = future.exception()
        # A failed task has no result: its own error is raised.
        if isinstance(error, KilledWorker):
            task = f"{job.configs[0].algorithm.name}, seeds {job.seeds[0]} to {job.seeds[-1]}"
            raise ChildProcessError(
                f"workers died again and again over one chunk ({task}): give them more "
                "memory, or use a smaller chunk; their logs say more"
            ) from error
        if isinstance(error, ImportError):
            _refuse_import("a worker", error)
        raise error

    def _count_threads(self, progress: Progress) -> None:
        """Counts the workers' threads, at most once a second, and reports changes."""
        if self.threads > 0 and time.monotonic() - self._count_time < _POLL_S:
            return
        with self._name_lost_scheduler():
            threads = self.client.nthreads()
        self._count_time, old_size = time.monotonic(), (self.workers, self.threads)
        self.workers, self.threads = len(threads), sum(threads.values())
        if old_size != (self.workers, self.threads):
            progress.report_workers(self.workers, self.threads)

    @contextmanager
    def _name_lost_scheduler(self) -> Iterator[None]:
        """Raises a one-line error if the scheduler is lost or does not answer."""
        try:
            yield
            if self.client.status != "running":
                raise ConnectionError("the client is closed")
        except Exception as error:
            # A closed client may raise any error.
            is_connection_error = isinstance(error, (OSError, CancelledError))
            if not is_connection_error and self.client.status == "running":
                raise
            message = f"the Dask scheduler {self.address} is lost, or does not answer"
            raise ConnectionError(f"{message} ({describe_error(error)})") from error


def _import_distributed(field: str, value: object) -> ModuleType:
    """Imports `distributed`, an optional dependency, or refuses the field."""
    try:
        import distributed
    except ImportError:
        refuse(field, value, "used where Dask is installed", INSTALL)
    return distributed


@contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """Connects to a scheduler by its address, or by the .json file that it wrote."""
    distributed = _import_distributed("scheduler", scheduler)
    # A lost connection is reported in one line, not by Dask's log.
    for name in ("distributed", "distributed.client", "distributed.comm", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = scheduler
    try:
        if scheduler.endswith(".json"):
            with open(scheduler, encoding="utf-8") as file:
                address = json.load(file)["address"]
        # Dask waits forever for an address where another program listens.
        asyncio.run(asyncio.wait_for(_greet(address), _CONNECT_S))
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # parsing the answer of another program may raise anything
        is_timeout = isinstance(error, TimeoutError) or "Timed out" in str(error)
        reason = f"none answered in {_CONNECT_S:g} s" if is_timeout else describe_error(error)
        remedy = f"start one, with: dask scheduler ({address}: {reason})"
        allowed = "the address of a running Dask scheduler, or the .json file that it wrote"
        refuse("scheduler", scheduler, allowed, remedy)
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close()


async def _greet(address: str) -> None:
    """Asks a scheduler for its identity; another program's answer may raise any error."""
    from distributed import Security
    from distributed.core import rpc

    arguments = Security().get_connection_args("client")
    async with rpc(address, connection_args=arguments, timeout=_CONNECT_S) as remote:
        await remote.identity()


# --- code of the workers ---

_PROGRAM_LOCK = threading.Lock()
_DEVICE_LOCK = threading.Lock()


def _collect_worker_provenance() -> dict[str, str]:
    """Returns the versions and the platform of this process; starts JAX."""
    return collect_provenance(resources.checked_devices(None)[0].platform)


def _compute_task(payload: bytes) -> tuple[dict[str, np.ndarray], int]:
    """Computes a block on the devices of this worker."""
    from distributed import get_worker

    job = _unpack_job(payload)
    devices = resources.checked_devices(None)
    # A single CPU device runs a batch in each thread of the worker; one batch fills other devices.
    is_single_cpu = len(devices) == 1 and devices[0].platform == "cpu"
    sizes = job.sizes(devices, 1)
    if is_single_cpu:
        sizes = sizes._replace(lanes=int(get_worker().state.nthreads))
    with _PROGRAM_LOCK:
        old_misses = compilation.compile_program.cache_info().misses
        sizes = compilation.fit_sizes(job.configs[0].program, sizes, devices)
        compilations = compilation.compile_program.cache_info().misses - old_misses
    with nullcontext() if is_single_cpu else _DEVICE_LOCK:
        return compute_block(job, sizes._replace(lanes=1), devices), compilations


def _unpack_job(payload: bytes) -> Job:
    """Unpacks a job and its plug-ins; refuses a job of another version."""
    from distributed import get_worker

    versions, uses_cache, sources, job_bytes = pickle.loads(payload)
    worker = f"worker {get_worker().address} on {socket.gethostname()}"
    with _PROGRAM_LOCK:
        _check_versions(worker, _collect_worker_provenance(), versions)
        if uses_cache and not jax.config.values.get("jax_compilation_cache_dir"):
            with suppress(Refusal):
                use_compilation_cache()
        try:
            import_sources(pickle.loads(sources))
            job: Job = pickle.loads(job_bytes)
        except ImportError as error:
            module = getattr(error, "name", None) or describe_error(error)
            remedy = f"install it there, or use client.upload_file('{module}.py')"
            raise Refusal.line(f"{worker}: cannot import {module}; {remedy}") from error
    return job


def _check_versions(worker: str, versions: Mapping[str, str], reference: Mapping[str, str]) -> None:
    for name, value in reference.items():
        if versions.get(name) != value:
            owner = "the other workers'" if name == "platform" else "this process's"
            text = f"{worker}: {name} is {versions.get(name)}, and {owner} is {value}"
            raise Refusal.line(f"{text}; install the same everywhere")


def _refuse_import(worker: str, error: Exception) -> NoReturn:
    line = f"{worker}: cannot run this package ({describe_error(error)})"
    raise Refusal.line(f"{line}; install the same fmab_jax there") from error
