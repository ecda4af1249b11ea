"""Locks that name their holder and end with its process.

The kernel releases a file lock (flock) when its process ends, on any machine. On systems without
file locks the existence of a second file is the lock; after a kill a person deletes it.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from fmab_jax.errors import Busy
from fmab_jax.files import NEW, name_errors, open_descriptor, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# A symbolic link could lead to a file outside the store.
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def hold_lock(folder: Path, writer: str) -> Iterator[None]:
    """Holds the lock of a writer, or refuses and names the holder.

    The file stays, so that no other process can lock one of the same name.
    """
    file = folder / f"lock-{writer}"
    with ExitStack() as stack:
        with name_errors(file):
            descriptor = os.open(file, _OPEN, 0o666)
            stack.callback(os.close, descriptor)
            if not _flock(file, descriptor):
                stack.callback(_create(file).unlink)
            os.ftruncate(descriptor, 0)
            write_all(descriptor, f"{os.getpid()}\n{socket.gethostname()}\n".encode())
        yield


def _flock(file: Path, descriptor: int) -> bool:
    """Locks an open file or refuses; returns False on systems without such locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _refuse(file, "wait for it or stop it")
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        return False
    return True


def _create(file: Path) -> Path:
    """Creates the second file of a lock, or refuses; returns its path."""
    held = file.with_name(f"{file.name}-held")
    try:
        with open_descriptor(held, NEW):
            return held
    except FileExistsError:
        _refuse(file, f"wait for it, or delete {held.name} once it is gone")


def _refuse(file: Path, remedy: str) -> NoReturn:
    pid = host = start = "unknown"
    with suppress(OSError, ValueError):  # not written yet
        start = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
        pid, host = file.read_text().splitlines()
    holder = f"process {pid} on {host} has done so since {start}"
    raise Busy(str(file.parent), file.name.removeprefix("lock-"), f"{holder}: {remedy}")
