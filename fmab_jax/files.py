"""Files that are whole or absent, and never reached through a link; errors that name the file."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fmab_jax.errors import refuse

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
PLAIN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_DAY = 86_400
# Bytes of a name on every usual file system.
_LONGEST = 255


@contextmanager
def whole_file(path: str | os.PathLike[str], mark: str = "") -> Iterator[Path]:
    """Gives a temporary name to write to, and puts the finished file in place of ``path``.

    An old file is replaced only by a complete and flushed new one; after an error, or a kill, it is
    what it was.

    Args:
        path: Where the file shall stand; its folder must exist.
        mark: Goes into the temporary name, to tell whose it is.

    Raises:
        OSError: If the folder cannot be written; it names ``path``, and nothing is left behind.
    """
    path = Path(path)
    temporary = temporary_beside(path, mark)
    with naming(path, temporary):
        try:
            yield temporary
            flush(temporary, os.O_RDWR)
            os.replace(temporary, path)
        except BaseException:
            # The first error is the one to tell.
            with suppress(OSError):
                temporary.unlink()
            raise
        flush_folder(path.parent)


def refuse_taken(path: Path, overwrite: bool) -> None:
    """Refuses a name that is taken, be it by a link to nowhere, unless it may be replaced."""
    if "\0" in str(path):
        refuse("path", str(path), "a name that files can have", "leave the NUL character out")
    if os.path.lexists(path) and not overwrite:
        remedy = "choose another, or let it be replaced: overwrite=True"
        refuse("path", str(path), "a new name", remedy)
    if path.is_dir() and not path.is_symlink():
        refuse("path", str(path), "the name of a file", "a folder has that name: choose another")


def temporary_beside(path: Path, mark: str = "") -> Path:
    """Returns a new hidden name in the same folder, no longer than names can be."""
    ending = f".{mark}{secrets.token_hex(4)}.tmp"
    name = path.name.encode(errors="surrogateescape")[: _LONGEST - 1 - len(ending)]
    return path.with_name(f".{name.decode(errors='ignore')}{ending}")


@contextmanager
def naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Has every OSError on the way name ``path``, unless it names something else.

    What lies in a temporary folder counts as its name.
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        if named is None or temporary is not None and Path(str(named)).is_relative_to(temporary):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Gives the descriptor of a plain file, never through a link."""
    with naming(path):
        descriptor = os.open(path, flags | PLAIN, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, "it is a folder or a device", str(path))
            yield descriptor
        finally:
            os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Returns the rest of an open file."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the bytes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def flush(path: Path, flags: int) -> None:
    """Makes the content of a file, or of a folder, durable."""
    with naming(path):
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def flush_folder(path: Path) -> None:
    """Makes new names in a folder durable."""
    if os.name == "posix":
        flush(path, os.O_RDONLY)


def remove_temporaries(folder: Path, writer: str) -> None:
    """Removes what this writer left when it was killed, and anything older than a day."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            own = path.name.split(".")[-3:-2] == [writer]
            if own or time.time() - path.lstat().st_mtime > _DAY:
                path.unlink()
