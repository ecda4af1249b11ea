"""Blocks as tasks of a Dask cluster: what the client's process does, and what a worker does.

The client holds the plan and the store. It keeps a few tasks per thread with the scheduler, takes
one result at a time, and adds tasks as they end: so many workers as there are, so much memory as
that takes. A task whose worker died is run again elsewhere by the scheduler; a task that fails by
itself ends the sweep. Every task checks that its worker has the client's package and versions.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import operator
import pickle
import re
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import jax

from fmab_jax.core.plugins import Source, import_sources, plugin_sources
from fmab_jax.errors import Refusal, foreign, place_of, reason_of, refuse
from fmab_jax.files import read_input
from fmab_jax.run import compilation, resources
from fmab_jax.run.cache import use_compilation_cache
from fmab_jax.run.compilation import Sizes
from fmab_jax.run.configs import check_counts
from fmab_jax.sweeps.blocks import Job, chunk_of, joined, pieces_of, run_job, stays_on_device
from fmab_jax.sweeps.progress import Progress
from fmab_jax.sweeps.study import made_with, provenance

INSTALL = 'pip install "fmab_jax[dask]"'
# Tasks with the scheduler for each thread of a worker: one that runs, and the next.
_AHEAD = 2
_POLL_S = 1.0
_CONNECT_S = 10.0
# Of the file of a scheduler: its identity, with its workers.
_FILE_BYTES = 10_000_000
_ADDRESS = re.compile(r"([a-z]{2,10}://)?(\[[0-9a-fA-F:]+\]|[^/\s:]+):[0-9]{1,5}|inproc://\S+")


class Task(NamedTuple):
    """One block to be computed."""

    job: Job
    keep: str  # "curves" or "summary"
    trials: int  # of the program's largest block or piece, which the batch is chosen for
    batch: int | None  # trials of a batch, or None to choose
    pieces: int  # ranges of seeds that it is cut to, for that many workers
    rows: int = 1  # of the table that holds the configs of any of the program's blocks


class Done(NamedTuple):
    """What comes back of a block, or of a piece of one."""

    made: Any  # the block's `Chunk`, or the piece's `Series`
    seconds: float  # of computing, without compilation, over all pieces
    compilations: int  # that it took


class _Call(NamedTuple):
    """A call that is made where it is unpickled.

    A worker without this package so fails in the task, which tells it, and not before.
    """

    function: Callable[[bytes], Any]
    order: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, (self.order,)

    def packed(self) -> bytes:
        """Returns the argument of `pickle.loads` that makes the call."""
        return pickle.dumps(self, protocol=5)


class Cluster:
    """The workers of a Dask client, connected and not asynchronous, as a sweep uses them."""

    def __init__(self, client: Any) -> None:
        distributed = _distributed("client", client)
        remedy = "pass distributed.Client(address)"
        if not isinstance(client, distributed.Client):
            refuse("client", client, "a dask.distributed.Client", remedy)
        if client.asynchronous:
            refuse("client", client, "one that is not asynchronous", remedy)
        if client.status != "running":
            refuse("client", client, f"connected; it is {client.status}", remedy)
        self.client = client
        # A client that is closed forgets it.
        self.address = client.scheduler.address
        self.made_by: dict[str, str] = {}
        self.threads = 0
        self._told: tuple[int, int] | None = None
        self._looked = 0.0

    def agree(self, teller: Progress) -> dict[str, str]:
        """Waits for a worker and returns the versions that all workers and this process share."""
        while not self.made_by:
            self._wait_for_workers(teller)
            for worker, made_by in self._asked():
                platform = self.made_by.get("platform", made_by["platform"])
                self.made_by = made_with(platform)
                _refuse_another(f"worker {worker}", made_by, self.made_by)
        return self.made_by

    def _asked(self) -> list[tuple[str, dict[str, str]]]:
        """Returns the versions of each worker; refuses one that has not even the package."""
        with self._connected():
            found = self.client.run(_provenance_here, on_error="return")
        for worker, made_by in sorted(found.items()):
            if isinstance(made_by, Exception) and not isinstance(made_by, OSError):
                raise Refusal.line(_cannot_run(f"worker {worker}", made_by)) from made_by
        # Who has just left gave an error of the connection.
        return sorted((w, made_by) for w, made_by in found.items() if isinstance(made_by, dict))

    def compute(
        self, tasks: Sequence[Task], teller: Progress
    ) -> Generator[tuple[int, Done], None, None]:
        """Yields what tasks give as they end; what is left is cancelled when nobody listens.

        Raises:
            ConnectionError: If the scheduler is lost.
            ChildProcessError: If a task's workers died again and again.
            Exception: What a task raised.
        """
        waiting = deque(enumerate(tasks))
        running: dict[Any, int] = {}
        try:
            while waiting or running:
                self._look(teller)
                while waiting and len(running) < _AHEAD * self.threads:
                    number, task = waiting.popleft()
                    running[self._submit(task)] = number
                for future in self._ended(list(running)):
                    number = running[future]
                    try:
                        done = self._result(future, tasks[number])
                    finally:
                        # Its worker keeps it no longer; and one chunk at a time is here.
                        future.release()
                    del running[future]
                    yield number, done
                    del done
        finally:
            if running:
                with suppress(Exception):  # of a scheduler that is lost
                    self.client.cancel(list(running), force=True)
                    for future in running:
                        future.release()

    def _submit(self, task: Task) -> Any:
        """Sends a task, in pieces where it has several, and returns the future of its chunk."""
        name = uuid.uuid4().hex

        def sent(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
            key = f"fmab-{what}-{name}"
            return self.client.submit(function, *arguments, key=key, pure=False)

        with self._connected():
            if task.pieces == 1:
                call = _Call(_computed, self._packed(task))
                return sent("chunk", pickle.loads, call.packed())
            calls = [
                _Call(_computed_piece, self._packed(task._replace(job=job)))
                for job in pieces_of(task.job, task.pieces)
            ]
            parts = [
                sent(f"piece-{place}", pickle.loads, call.packed())
                for place, call in enumerate(calls)
            ]
            # The scheduler unpickles what is called, and needs none of this package: so a worker
            # makes the function first.
            order = pickle.dumps(functools.partial(_computed_of, self._packed(task)), protocol=5)
            return sent("chunk", operator.call, sent("join", pickle.loads, order), *parts)

    def _packed(self, task: Task) -> bytes:
        import cloudpickle

        # The task last: another package might not even unpickle it.
        packed = cloudpickle.dumps(task, protocol=5)
        # Of the plug-in files those that it names; names hold a digest, and stand for nothing else.
        sources = [tuple(source) for source in plugin_sources() if source.name.encode() in packed]
        return pickle.dumps((self.made_by, _cached(), sources, packed), protocol=5)

    def _ended(self, running: list[Any]) -> list[Any]:
        """Returns the futures that have ended; none, after a while, if none has."""
        if not running:
            time.sleep(_POLL_S / 4)
            return []
        wait = _distributed("client", self.client).wait
        with self._connected(), self.client.as_current(), suppress(TimeoutError):
            return list(wait(running, timeout=_POLL_S, return_when="FIRST_COMPLETED").done)
        return []

    def _result(self, future: Any, task: Task) -> Done:
        from distributed.scheduler import KilledWorker

        # Of a task that failed nothing is fetched any more: the error is the task's own.
        with self._connected(of_task=future.status == "error"):
            try:
                return future.result()
            except KilledWorker as error:
                job = task.job
                what = f"{job.configs[0].algorithm.name}, seeds {job.start} to {job.stop - 1}"
                raise ChildProcessError(
                    f"workers died again and again over one chunk ({what}): give them more "
                    "memory, or use a smaller chunk; their logs say more"
                ) from error
            except ImportError as error:
                # A task's own modules are told by the task: this worker has not even the package.
                self._asked()
                raise Refusal.line(_cannot_run("a worker", error)) from error

    def _look(self, teller: Progress) -> None:
        """Counts the workers' threads, at most once in a while, and tells where they changed."""
        if time.monotonic() - self._looked < _POLL_S and self.threads:
            return
        with self._connected():
            found = self.client.nthreads()
        self._looked = time.monotonic()
        self.threads = sum(found.values())
        if self._told != (told := (len(found), self.threads)):
            self._told = told
            teller.workers(*told)

    def _wait_for_workers(self, teller: Progress) -> None:
        self._look(teller)
        while not self.threads:
            time.sleep(_POLL_S / 4)
            self._look(teller)

    @contextmanager
    def _connected(self, of_task: bool = False) -> Iterator[None]:
        """Says it in one line where the scheduler is lost, or does not answer.

        An error that is a task's own, such as of its disk, stays as it is.
        """
        lost = f"the Dask scheduler {self.address} is lost, or has cancelled the work"
        closed = f"the client of the Dask scheduler {self.address} is closed, or has lost it"
        try:
            yield
        except CancelledError as error:
            raise ConnectionError(lost) from error
        except OSError as error:
            if of_task:
                raise
            from distributed.comm.core import CommClosedError

            if self.client.status == "running" and not isinstance(error, CommClosedError):
                text = f"the Dask scheduler {self.address} does not answer ({type(error).__name__})"
                raise ConnectionError(text) from error
            raise ConnectionError(lost) from error
        except Exception as error:
            # Closed by somebody, it raises whatever its parts do.
            if of_task or self.client.status not in ("closing", "closed"):
                raise
            raise ConnectionError(closed) from error
        if self.client.status != "running":
            raise ConnectionError(lost)


def _cached() -> bool:
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
    address = _address_in(scheduler) if scheduler.endswith(".json") else scheduler
    if not _ADDRESS.fullmatch(address):
        allowed = "the address of a Dask scheduler, or the .json file that it wrote"
        refuse("scheduler", scheduler, allowed, "such as tcp://host:8786")
    # What it logs of a lost connection is said in a line of our own.
    for name in ("distributed", "distributed.client", "distributed.comm", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        # Dask itself waits for ever where somebody else listens.
        asyncio.run(asyncio.wait_for(_greeted(address), _CONNECT_S))
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except Exception as error:  # of whatever was read as an answer
        silent = isinstance(error, TimeoutError) or "Timed out" in str(error)
        why = f"none answered in {_CONNECT_S:g} s" if silent else reason_of(error)
        where = "" if address == scheduler else f"at {address}: "
        remedy = f"start one, with: dask scheduler ({where}{why})"
        refuse("scheduler", scheduler, "the address of a running Dask scheduler", remedy)
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close()


def _address_in(file: str) -> str:
    """Returns the address that a scheduler wrote to its file."""
    content = read_input(file, "scheduler", _FILE_BYTES, "file of a Dask scheduler")
    why = "it states no address"
    address = None
    try:
        found = json.loads(content)
        address = found.get("address") if isinstance(found, dict) else None
    except (ValueError, RecursionError) as error:
        why = reason_of(error)
    if not (isinstance(address, str) and _ADDRESS.fullmatch(address)):
        remedy = f"start one, with: dask scheduler --scheduler-file FILE ({why})"
        refuse("scheduler", file, "the .json file that a Dask scheduler wrote", remedy)
    return address


async def _greeted(address: str) -> None:
    """Exchanges greetings with a scheduler; anything may come up where somebody else answers."""
    from distributed import Security
    from distributed.core import rpc

    if address.startswith("inproc:"):
        return
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
    return provenance(resources.checked_devices(None))


def _computed(order: bytes) -> Done:
    """Computes a block in one piece."""
    return _computed_of(order, _computed_piece(order, whole=True))


def _computed_piece(order: bytes, *, whole: bool = False) -> Done:
    """Computes a block, or a piece of one, on the devices of this worker."""
    with _named():
        task = _opened(order)
        devices = resources.checked_devices(None)
        # A lone CPU device runs as many batches at once as it is asked to, one in each thread of
        # the worker; anything else is filled by one.
        alone = len(devices) == 1 and devices[0].platform == "cpu"
        some = task.job.configs[0]
        for config in task.job.configs:
            check_counts(config, devices[0].platform)
        batch = some.needs(task.trials, devices, task.batch, 1).batch
        sizes = Sizes(batch, task.rows, _threads_here() if alone else 1)
        with _COMPILING:
            before = compilation.compile_program.cache_info().misses
            sizes = compilation.fit_sizes(some.program, sizes, devices)
            compilations = compilation.compile_program.cache_info().misses - before
        with nullcontext() if alone else _WHOLE:
            started = time.perf_counter()
            stays = whole and stays_on_device(task.job, task.keep, devices)
            series = run_job(task.job, sizes._replace(lanes=1), devices, keep_on_device=stays)
            return Done(series, time.perf_counter() - started, compilations)


def _threads_here() -> int:
    """Returns how many tasks this worker runs at once."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def _computed_of(order: bytes, *pieces: Done) -> Done:
    """Makes a block's chunk of its pieces."""
    with _named():
        task = _opened(order)
        series = joined([piece.made for piece in pieces]) if len(pieces) > 1 else pieces[0].made
        chunk = chunk_of(series, task.job.configs, task.keep)
        seconds = sum(piece.seconds for piece in pieces)
        return Done(chunk, seconds, sum(piece.compilations for piece in pieces))


def _opened(packed: bytes) -> Task:
    """Unpacks an order, with the plug-ins that it needs, and refuses another package's."""
    made_by, cache, sources, task = pickle.loads(packed)
    with _LOADING:
        _check_once(tuple(sorted(made_by.items())))
        _cache_once(cache)
        try:
            for source in sources:
                _import(Source(*source))
            found: Task = pickle.loads(task)
        except ImportError as error:
            module = getattr(error, "name", None) or reason_of(error)
            remedy = f"install it there, or use client.upload_file('{module}.py')"
            raise Refusal.line(f"{_here()}: cannot import {module}; {remedy}") from error
    return found


def _import(source: Source) -> None:
    """Imports a plug-in file; an error that is not of a missing module names the file."""
    try:
        import_sources([source])
    except ImportError:
        raise
    except BaseException as error:
        if not foreign(error):
            raise
        why = f"{reason_of(error)}{place_of(error)}"
        raise Refusal.line(f"{_here()}: cannot import {source.path} ({why})") from error


@functools.lru_cache(maxsize=8)
def _check_once(made_by: tuple[tuple[str, str], ...]) -> None:
    _refuse_another(_here(), _provenance_here(), dict(made_by))


@functools.cache
def _cache_once(wanted: bool) -> None:
    """Keeps compiled programs where the client does; it costs time only if that is impossible."""
    if wanted and not _cached():
        with suppress(Refusal):
            use_compilation_cache()


def _refuse_another(worker: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> None:
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

    try:
        return f"worker {get_worker().address} on {socket.gethostname()}"
    except ValueError:  # outside of one
        return f"process on {socket.gethostname()}"


@contextmanager
def _named() -> Iterator[None]:
    """Notes on an unexpected error where it came up."""
    try:
        yield
    except Refusal:
        raise
    except Exception as error:
        error.add_note(_here())
        raise
