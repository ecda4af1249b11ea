"""Locks that say who holds them and end with their holder.

Where the system can lock a file (flock), the kernel frees the lock with its process, whichever
machine that ran on. Where it cannot, a marker's being there is the lock. Machines that share a
folder may differ in that, so both pass one gate, the marker. Who locks the file signs it first and
then takes the marker for a moment. Who cannot lock keeps the marker and then looks for a signature.
Whoever comes second sees the first.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from filelock import SoftFileLock, Timeout

from fmab_jax.errors import Busy
from fmab_jax.files import PLAIN, naming, opened, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
# Outlasts another's moment at the gate.
_PATIENCE_S = 0.2


@contextmanager
def locked(folder: Path, writer: str) -> Iterator[None]:
    """Holds the lock of a writer, or refuses and says who does."""
    file, owner = folder / f"lock-{writer}", os.getpid()
    descriptor = _flock(file)
    if descriptor is None:
        with _gate(file):
            if _signature(file).endswith("\n"):
                _refuse(file, f"wait for it, or delete {file.name} once it is gone")
            try:
                yield
            finally:
                with suppress(OSError):
                    # Trying to lock it has left an empty file.
                    if os.getpid() == owner and not _signature(file):
                        file.unlink()
        return
    try:
        try:
            with naming(file):
                os.ftruncate(descriptor, 0)
                write_all(descriptor, f"{owner}\n{socket.gethostname()}\n".encode())
                os.fsync(descriptor)
            with _gate(file):
                if not _is(file, descriptor):
                    _refuse(file, "try again")
        except BaseException:
            with suppress(OSError):  # The first error is the one to tell.
                os.ftruncate(descriptor, 0)
            raise
        try:
            yield
        finally:
            # Removed while still held: whoever then locks the nameless file sees that.
            with suppress(OSError):
                if os.getpid() == owner:  # A forked child that ends frees nothing.
                    file.unlink()
    finally:
        os.close(descriptor)


def _flock(file: Path) -> int | None:
    """Returns a locked descriptor, which the kernel frees with its process; None if it cannot."""
    if fcntl is None:
        return None
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | PLAIN, 0o666)
        held = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = _is(file, descriptor)
            if held:
                return descriptor
        except BlockingIOError:
            _refuse(file, "wait for it or stop it")
        except OSError as error:
            if error.errno in _NO_FLOCK:
                return None
            raise
        finally:
            if not held:
                os.close(descriptor)


def _is(file: Path, descriptor: int) -> bool:
    """Returns whether the open file still has its name; its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(file))
    except FileNotFoundError:
        return False


@contextmanager
def _gate(file: Path) -> Iterator[None]:
    """Holds the marker beside a file; that of a dead process of this host is taken over."""
    marker, owner = file.with_name(f"{file.name}.pid"), os.getpid()
    gate = SoftFileLock(marker, timeout=_PATIENCE_S, thread_local=False)
    try:
        gate.acquire(poll_interval=0.01)
    except Timeout:
        _refuse(marker, f"wait for it, or delete {marker.name} once it is gone")
    try:
        yield
    finally:
        if os.getpid() == owner:
            gate.release()


def _signature(file: Path) -> str:
    """Returns what a holder has written, ``pid``, ``host`` and so on, line by line."""
    try:
        with opened(file, os.O_RDONLY) as descriptor:
            return os.read(descriptor, 1024).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _refuse(path: Path, remedy: str) -> NoReturn:
    file = path.with_suffix("")
    pid = host = since = "unknown"
    for _ in range(20):
        with suppress(OSError, ValueError):
            # At the gate it may be the file's holder that is just passing.
            text = _signature(path) or _signature(file)
            pid, host, *_ = (line[:60] for line in text.splitlines())
            changed = (path if path.exists() else file).stat().st_mtime
            since = datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds")
            break
        time.sleep(0.01)  # Whoever has just got the lock has not yet signed it.
    who = f"process {pid} on {host.partition('?')[0]} has done so since {since}"
    writer = file.name.removeprefix("lock-")
    raise Busy(str(path.parent), writer, f"{who}: {remedy}")
