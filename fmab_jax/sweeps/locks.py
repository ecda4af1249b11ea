"""Locks that say who holds them and end with their holder."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from fmab_jax.errors import refuse
from fmab_jax.files import NEW, PLAIN, naming, opened, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def locked(folder: Path, writer: str) -> Iterator[None]:
    """Holds lock-<writer>, or refuses and says who does."""
    path = folder / f"lock-{writer}"
    since = datetime.now(UTC).isoformat(timespec="microseconds")
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": since}
    descriptor = _flock(path, writer)
    other = path.with_name(f"{path.name}.pid")
    if descriptor is None:
        path, other = other, path
    try:
        # Machines that share the folder may differ in whether they can lock.
        if (rival := _holder(other)) and _may_live(rival):
            _refuse_writer(other, writer, f"wait for it, or delete {other.name} once it is gone")
        if descriptor is None:
            with suppress(OSError):
                other.unlink()
            _claim(path, writer, json.dumps(holder).encode())
        else:
            with naming(path):
                os.ftruncate(descriptor, 0)
                write_all(descriptor, json.dumps(holder).encode())
    except BaseException:
        if descriptor is not None:
            os.close(descriptor)
        raise
    try:
        yield
    finally:
        # Removed while still held: whoever then locks the nameless file sees that and looks again.
        with suppress(OSError):
            if os.getpid() == holder["pid"]:  # A forked child that ends frees nothing.
                path.unlink()
        if descriptor is not None:
            os.close(descriptor)


def _flock(path: Path, writer: str) -> int | None:
    """Returns a locked descriptor, which the kernel frees with its process; None if it cannot."""
    if fcntl is None:
        return None
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | PLAIN, 0o666)
        held = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.path.samestat(os.fstat(descriptor), os.lstat(path))
            if held:
                return descriptor
        except BlockingIOError:
            _refuse_writer(path, writer, "wait for it or stop it")
        except FileNotFoundError:
            continue  # Its last holder has just removed it.
        except OSError as error:
            if error.errno in _NO_FLOCK:
                return None
            raise
        finally:
            if not held:
                os.close(descriptor)


def _claim(path: Path, writer: str, content: bytes) -> None:
    """Makes a file whose being there is the lock, for as long as its process lives."""
    while True:
        with suppress(FileExistsError), opened(path, NEW) as descriptor:
            try:
                return write_all(descriptor, content)
            except OSError:
                path.unlink()
                raise
        holder = _holder(path)
        if not path.exists():
            continue  # It has just been released.
        retired = path.with_name(f"{path.name}-{holder.get('pid')}")
        if _may_live(holder) or retired.exists():
            names = f"{path.name} and {retired.name}" if retired.exists() else path.name
            _refuse_writer(path, writer, f"wait for it, or delete {names} once it is gone")
        # One contender alone may retire this holder, and only while it is still the holder.
        with suppress(FileExistsError), opened(retired, NEW):
            if _holder(path) == holder:
                path.unlink()
            retired.unlink()


def _holder(path: Path) -> dict[str, Any]:
    try:
        with opened(path, os.O_RDONLY) as descriptor:
            holder = json.loads(os.read(descriptor, 4096))
    except (OSError, ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _may_live(holder: Mapping[str, Any]) -> bool:
    pid = holder.get("pid")
    # Of another host nothing is known; on Windows, to ask with os.kill would end the process.
    here = holder.get("host") == socket.gethostname() and os.name == "posix"
    if here and type(pid) is int and pid > 0:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except (OSError, OverflowError):
            pass
    return True


def _refuse_writer(path: Path, writer: str, remedy: str) -> NoReturn:
    for _ in range(20):
        if holder := _holder(path):
            break
        time.sleep(0.01)  # Whoever has just got the lock has not yet signed it.
    pid, host, since = (str(holder.get(name, "unknown"))[:60] for name in ("pid", "host", "since"))
    who = f"process {pid} on {host} has done so since {since}"
    refuse("store", str(path.parent), f"written by nobody else as {writer!r}", f"{who}: {remedy}")
