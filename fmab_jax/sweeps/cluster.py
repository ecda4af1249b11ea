"""Blocks as tasks of a Dask cluster: what the client's process does, and what a worker does.

The client holds the plan and the store. It keeps a few tasks per thread with the scheduler, takes
one result at a time, and adds tasks as they end: so many workers as there are, so much memory as
that takes. A task whose worker died is run again elsewhere by the scheduler; a task that fails by
itself ends the sweep. Every task checks that its worker has the client's package and versions.
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
from typing import Any, NamedTuple

import jax

from fmab_jax.core.plugins import Source, import_sources, plugin_sources
from fmab_jax.errors import Refusal, reason_of, refuse
from fmab_jax.run import compilation, resources
from fmab_jax.run.cache import use_compilation_cache
from fmab_jax.sweeps.blocks import Job, compute_block
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.study import collect_provenance

INSTALL = 'pip install "fmab_jax[dask]"'
# Tasks with the scheduler for each thread of a worker: one that runs, and the next.
_AHEAD = 2
_POLL_S = 1.0
_CONNECT_S = 10.0


class _Call(NamedTuple):
    """A call that is made where it is unpickled.

    So a worker without this package fails in the task, and the scheduler needs no package at all.
    """

    function: Callable[[bytes], Any]
    order: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, (self.order,)


class Cluster:
    """The workers of a Dask client, connected and not asynchronous, as a sweep uses them."""

    def __init__(self, client: Any) -> None:
        distributed = _distributed("client", client)
        usable = isinstance(client, distributed.Client) and not client.asynchronous
        if not usable or client.status != "running":
            allowed = "a dask.distributed.Client, connected and not asynchronous"
            refuse("client", client, allowed, "pass distributed.Client(address)")
        self.client = client
        # A client that is closed forgets it.
        self.address = client.scheduler.address
        self.made_by: dict[str, str] = {}
        self.workers = self.threads = -1
        self._counted = 0.0

    def agree(self, progress: Progress) -> dict[str, str]:
        """Waits for a worker and returns the versions that all workers and this process share."""
        while not self.made_by:
            self._count(progress)
            for worker, made_by in self._ask():
                platform = self.made_by.get("platform", made_by["platform"])
                self.made_by = collect_provenance(platform)
                _check_versions(f"worker {worker}", made_by, self.made_by)
            if not self.made_by:
                time.sleep(_POLL_S / 4)
        return self.made_by

    def _ask(self) -> list[tuple[str, dict[str, str]]]:
        """Returns the versions of each worker; refuses one that has not even the package."""
        with self._connected():
            answers = self.client.run(_provenance_here, on_error="return")
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise Refusal.line(_cannot_run(f"worker {worker}", answer)) from answer
        # A worker that just disconnected raised a connection error.
        return sorted((name, x) for name, x in answers.items() if isinstance(x, dict))

    def compute(
        self, jobs: Sequence[Job], progress: Progress
    ) -> Generator[tuple[int, Any, int], None, None]:
        """Yields numbers of jobs, their chunks' arrays, and how many compilations that took.

        What is left is cancelled when nobody listens.

        Raises:
            ConnectionError: If the scheduler is lost.
            ChildProcessError: If a task's workers died again and again.
            Exception: What a task raised.
        """
        waiting = deque(enumerate(jobs))
        running: dict[Any, int] = {}
        try:
            while waiting or running:
                self._count(progress)
                while waiting and len(running) < _AHEAD * self.threads:
                    number, job = waiting.popleft()
                    call = pickle.dumps(_Call(_compute_task, self._pack(job)), protocol=5)
                    with self._connected():
                        running[self.client.submit(pickle.loads, call, pure=False)] = number
                for future in self._wait(list(running)):
                    number = running[future]
                    try:
                        arrays, compilations = self._result(future, jobs[number])
                    finally:
                        # Its worker keeps it no longer; and one chunk at a time is here.
                        future.release()
                    del running[future]
                    yield number, arrays, compilations
                    del arrays
        finally:
            if running:
                with suppress(Exception):  # of a scheduler that is lost
                    self.client.cancel(list(running), force=True)

    def _pack(self, job: Job) -> bytes:
        import cloudpickle

        # The task is unpickled last: another package might not even be able to.
        packed = cloudpickle.dumps(job, protocol=5)
        # Only the plug-in files that it names; names hold a digest, and stand for nothing else.
        sources = [tuple(source) for source in plugin_sources() if source.name.encode() in packed]
        return pickle.dumps((self.made_by, _uses_cache(), sources, packed), protocol=5)

    def _wait(self, running: list[Any]) -> list[Any]:
        """Returns the futures that have ended; none, after a while, if none has."""
        if not running:
            time.sleep(_POLL_S / 4)
            return []
        wait = _distributed("client", self.client).wait
        with self._connected(), self.client.as_current(), suppress(TimeoutError):
            return list(wait(running, timeout=_POLL_S, return_when="FIRST_COMPLETED").done)
        return []

    def _result(self, future: Any, job: Job) -> Any:
        from distributed.scheduler import KilledWorker

        with self._connected():
            if future.status != "error":
                return future.result()
            error = future.exception()
        # A failed task has no result: its own error is raised.
        if isinstance(error, KilledWorker):
            what = f"{job.configs[0].algorithm.name}, seeds {job.seeds[0]} to {job.seeds[-1]}"
            raise ChildProcessError(
                f"workers died again and again over one chunk ({what}): give them more "
                "memory, or use a smaller chunk; their logs say more"
            ) from error
        if isinstance(error, ImportError):
            self._ask()  # names the worker that has not even the package
            raise Refusal.line(_cannot_run("a worker", error)) from error
        raise error

    def _count(self, progress: Progress) -> None:
        """Counts the workers' threads, at most once in a while, and tells where they changed."""
        if self.threads > 0 and time.monotonic() - self._counted < _POLL_S:
            return
        with self._connected():
            threads = self.client.nthreads()
        self._counted, before = time.monotonic(), (self.workers, self.threads)
        self.workers, self.threads = len(threads), sum(threads.values())
        if before != (self.workers, self.threads):
            progress.workers(self.workers, self.threads)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Says it in one line where the scheduler is lost, or does not answer."""
        try:
            yield
            if self.client.status != "running":
                raise ConnectionError("the client is closed")
        except Exception as error:
            # A closed client raises whatever its parts do.
            known = isinstance(error, (OSError, CancelledError))
            if not known and self.client.status == "running":
                raise
            lost = f"the Dask scheduler {self.address} is lost, or does not answer"
            raise ConnectionError(f"{lost} ({reason_of(error)})") from error


def _uses_cache() -> bool:
    """Tells whether JAX keeps compiled programs."""
    return bool(jax.config.values.get("jax_compilation_cache_dir"))


def _distributed(field: str, value: Any) -> Any:
    """Returns the module `distributed`, which the package does not need without that field."""
    try:
        import distributed
    except ImportError:
        refuse(field, value, "used where Dask is installed", INSTALL)
    return distributed


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """Connects to a scheduler, given by its address or the .json file that it wrote."""
    distributed = _distributed("scheduler", scheduler)
    # A line of our own says what Dask logs of a lost connection.
    for name in ("distributed", "distributed.client", "distributed.comm", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = scheduler
    try:
        if scheduler.endswith(".json"):
            with open(scheduler, encoding="utf-8") as file:
                address = json.load(file)["address"]
        # Dask itself waits for ever where somebody else listens.
        asyncio.run(asyncio.wait_for(_greet(address), _CONNECT_S))
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # of whatever was read as an answer
        silent = isinstance(error, TimeoutError) or "Timed out" in str(error)
        why = f"none answered in {_CONNECT_S:g} s" if silent else reason_of(error)
        remedy = f"start one, with: dask scheduler ({address}: {why})"
        allowed = "the address of a running Dask scheduler, or the .json file that it wrote"
        refuse("scheduler", scheduler, allowed, remedy)
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close()


async def _greet(address: str) -> None:
    """Exchanges greetings with a scheduler; anything may come up where somebody else answers."""
    from distributed import Security
    from distributed.core import rpc

    arguments = Security().get_connection_args("client")
    async with rpc(address, connection_args=arguments, timeout=_CONNECT_S) as there:
        kind = (await there.identity())["type"]
    if kind != "Scheduler":
        raise ValueError(f"a {kind} answers there, and no scheduler")


# What follows runs in the workers.

_LOADING = threading.Lock()
_COMPILING = threading.Lock()
_WHOLE = threading.Lock()


def _provenance_here() -> dict[str, str]:
    """Returns what bits depend on in this process; starts JAX."""
    return collect_provenance(resources.checked_devices(None)[0].platform)


def _compute_task(order: bytes) -> tuple[Any, int]:
    """Computes a block on the devices of this worker."""
    from distributed import get_worker

    job = _open(order)
    devices = resources.checked_devices(None)
    # A lone CPU device runs as many batches at once as it is asked to, one in each thread of the
    # worker; anything else is filled by one.
    alone = len(devices) == 1 and devices[0].platform == "cpu"
    sizes = job.sizes(devices, 1)
    if alone:
        sizes = sizes._replace(lanes=int(get_worker().state.nthreads))
    with _COMPILING:
        before = compilation.compile_program.cache_info().misses
        sizes = compilation.fit_sizes(job.configs[0].program, sizes, devices)
        compilations = compilation.compile_program.cache_info().misses - before
    with nullcontext() if alone else _WHOLE:
        return compute_block(job, sizes._replace(lanes=1), devices), compilations


def _open(order: bytes) -> Job:
    """Unpacks an order, with the plug-ins that it needs, and refuses another package's."""
    made_by, cache, sources, packed = pickle.loads(order)
    with _LOADING:
        _check_versions(_here(), _provenance_here(), made_by)
        if cache and not _uses_cache():
            with suppress(Refusal):
                use_compilation_cache()
        try:
            import_sources([Source(*source) for source in sources])
            job: Job = pickle.loads(packed)
        except ImportError as error:
            module = getattr(error, "name", None) or reason_of(error)
            remedy = f"install it there, or use client.upload_file('{module}.py')"
            raise Refusal.line(f"{_here()}: cannot import {module}; {remedy}") from error
    return job


def _check_versions(worker: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            like = "the other workers'" if name == "platform" else "this process's"
            text = f"{worker}: {name} is {found.get(name)}, and {like} is {value}"
            raise Refusal.line(f"{text}; install the same everywhere")


def _cannot_run(worker: str, error: BaseException) -> str:
    remedy = "install the same fmab_jax there"
    return f"{worker}: cannot run this package ({reason_of(error)}); {remedy}"


def _here() -> str:
    """Returns how this worker is called."""
    from distributed import get_worker

    return f"worker {get_worker().address} on {socket.gethostname()}"
