"""Locks that name their holder and end with its process.

The kernel releases a file lock (flock) when its process ends, on any machine. On systems without
file locks the existence of the file is the lock; after a kill a person deletes it.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from fmab_jax.errors import Busy
from fmab_jax.files import name_errors, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# A symbolic link is not a valid lock.
_OPEN = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def hold_lock(folder: Path, writer: str) -> Iterator[None]:
    """Holds the lock of a writer, or refuses and names the holder."""
    file, owner = folder / f"lock-{writer}", os.getpid()
    with name_errors(file):
        while (descriptor := _take_lock(file)) is None:
            pass
    try:
        with name_errors(file):
            os.ftruncate(descriptor, 0)
            write_all(descriptor, f"{owner}\n{socket.gethostname()}\n".encode())
        if fcntl is None:
            os.close(descriptor)  # Windows removes no open file
        yield
    finally:
        if os.getpid() == owner:  # a forked child must not release it
            with suppress(OSError):
                file.unlink()
        if fcntl is not None:
            # Closed after the unlink: a process that then locks it sees that the name is gone.
            os.close(descriptor)


def _take_lock(file: Path) -> int | None:
    """Returns a descriptor that holds the lock; None to try again. Refuses if it is held."""
    new = not os.path.lexists(file)
    try:
        descriptor = os.open(file, _OPEN | new * (os.O_CREAT | os.O_EXCL), 0o666)
    except FileExistsError:
        return None
    except FileNotFoundError:
        if new:  # the folder is missing
            raise
        return None
    try:
        if not _flock(file, descriptor) and not new:
            _refuse(file, f"wait for it, or delete {file.name} once it is gone")
        # The previous holder may have removed the name.
        if os.path.samestat(os.fstat(descriptor), os.lstat(file)):
            return descriptor
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _flock(file: Path, descriptor: int) -> bool:
    """Locks an open file or refuses; False on systems without locks, where its creator holds it."""
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


def _refuse(file: Path, remedy: str) -> NoReturn:
    pid = host = start = "unknown"
    with suppress(OSError, ValueError):  # removed, or not written yet
        start = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
        pid, host = file.read_text().splitlines()
    holder = f"process {pid} on {host} has done so since {start}"
    raise Busy(str(file.parent), file.name.removeprefix("lock-"), f"{holder}: {remedy}")
