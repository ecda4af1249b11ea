"""Files that are whole or absent; errors that name the file."""

from __future__ import annotations

import errno
import glob
import io
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from fmab_jax.errors import flag, refuse

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_BINARY = getattr(os, "O_BINARY", 0)
_DAY = 86_400
# Bytes of a name on usual file systems; bytes of a path, less what temporary names add.
_LONGEST, _LONGEST_PATH = 255, 4000
# Errors that come again however often a folder is written; a full disk is none.
_LASTING = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST}
# One entry for each open write; appending to a list is atomic across threads.
_WRITES: list[None] = []


class _ErrorStream(io.TextIOBase):
    """Standard error for progress; text that cannot be written is dropped.

    A closed descriptor, a full disk or a broken pipe must not stop a run.
    """

    def __init__(self) -> None:
        # It is None in a process without standard error.
        self._stream = sys.stderr

    def isatty(self) -> bool:
        """Tells whether it is a terminal."""
        with suppress(OSError, ValueError, AttributeError):
            return self._stream.isatty()
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Writes and flushes a text, or drops it."""
        with suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)
            self._stream.flush()
        return len(text)


def error_stream() -> IO[str]:
    """Returns the current standard error as a stream that drops what it cannot write."""
    return cast(IO[str], _ErrorStream())


def hold_standard_streams() -> None:
    """Opens closed standard streams on the null device.

    Otherwise the next file would get such a descriptor, and XLA would write messages into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))


def drop_unwritable_errors() -> None:
    """Drops buffered errors, which would otherwise change the exit status."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def check_path(field: str, path: object) -> Path:
    """Returns a text or path object as a path.

    Args:
        field: The argument's public name.
        path: A text or a path object.

    Raises:
        Refusal: If it is neither, or no file can have such a name.
    """
    if not isinstance(path, (str, os.PathLike)):
        refuse(field, path, "a path, as text or pathlib.Path", "write it in quotes")
    try:
        system = os.fsencode(path)
    except Exception:  # a letter that no file system has, or a user's path object
        refuse(field, path, "a path", "check the path (no file system spells it)")
    if not system.strip() or b"\0" in system:
        remedy = "check the path (it is empty, or it holds a NUL character)"
        refuse(field, str(path), "a path", remedy)
    if len(system) > _LONGEST_PATH or max(map(len, system.split(b"/"))) > _LONGEST:
        allowed = f"a path of at most {_LONGEST_PATH:,} bytes, at most {_LONGEST} from / to /"
        refuse(field, str(path), allowed, "choose a shorter one")
    return Path(path)


def check_folder(field: str, path: Path) -> None:
    """Refuses a folder that cannot be made, or that cannot be written; makes nothing.

    Raises:
        Refusal: If somebody else's rights, or a file in the way, prevent it.
    """
    whole = path.absolute()
    nearest = next(place for place in (whole, *whole.parents) if os.path.lexists(place))
    if not nearest.is_dir():
        refuse(field, str(path), "a folder", f"choose another ({nearest} is no folder)")
    if not os.access(nearest, os.W_OK | os.X_OK):
        refuse(field, str(path), "a folder that can be written", "choose another")


@contextmanager
def refuse_unwritable(field: str, path: Path) -> Iterator[None]:
    """Refuses a folder if writing it inside the block fails, and would fail again."""
    try:
        yield
    except OSError as error:
        if error.errno not in _LASTING:
            raise
        reason = (error.strerror or type(error).__name__).lower()
        refuse(field, str(path), "a folder that can be written", f"choose another ({reason})")


def read_input(path: object, field: str, most_bytes: int, kind: str = "file") -> bytes:
    """Returns the content of a plain file.

    Args:
        path: A text or a path object.
        field: The argument's public name.
        most_bytes: Largest size.
        kind: What it should be, such as "graph file".

    Raises:
        Refusal: If it cannot be read, is no plain file or is too large.
    """
    path = check_path(field, path)
    try:
        size = path.stat().st_size
        if not path.is_file():  # reading a pipe would block
            refuse(field, str(path), f"a {kind}", "this path is no regular file")
        if size <= most_bytes:
            return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        refuse(field, str(path), f"a readable {kind}", f"check the path ({reason})")
    refuse(field, str(path), f"a {kind} of at most {most_bytes:,} bytes", f"this one has {size:,}")


@contextmanager
def mark_write() -> Iterator[None]:
    """Makes `is_writing` true inside the block."""
    _WRITES.append(None)
    try:
        yield
    finally:
        _WRITES.pop()


def is_writing() -> bool:
    """Returns whether a thread is writing an incomplete file."""
    return bool(_WRITES)


@contextmanager
def whole_file(path: str | os.PathLike[str], mark: str = "") -> Iterator[Path]:
    """Gives a temporary name to write to, then renames the finished file to ``path``.

    Only a complete and flushed file replaces an old one; an error or a kill leaves the old one.

    Args:
        path: Final name of the file; its folder must exist.
        mark: Names the writer in the temporary name, for `remove_temporaries`.

    Raises:
        OSError: If the folder cannot be written; it names ``path``, and no temporary file remains.
    """
    path = Path(path)
    temporary = temporary_beside(path, mark)
    if not mark:
        remove_temporaries(path.parent, f".{glob.escape(path.name)}.*.tmp")
    with mark_write(), name_errors(path, temporary):
        try:
            yield temporary
            with open_descriptor(temporary, os.O_RDWR) as descriptor:
                os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        flush_folder(path.parent)


def refuse_taken(path: Path, overwrite: bool, field: str = "path") -> None:
    """Refuses an existing name, also of a broken link, unless it may be replaced."""
    flag("overwrite", overwrite)
    if os.path.isdir(path) and not os.path.islink(path):
        refuse(field, str(path), "the name of a file", "a folder has that name: choose another")
    if os.path.lexists(path) and not overwrite:
        remedy = "it exists: choose another, or overwrite=True (--overwrite)"
        refuse(field, str(path), "a new name", remedy)
    if not os.path.isdir(path.parent):
        refuse(field, str(path), "in an existing folder", "make the folder first")


def temporary_beside(path: Path, mark: str = "") -> Path:
    """Returns a new hidden name in the same folder, within the length limit."""
    ending = f".{mark}{secrets.token_hex(4)}.tmp"
    name = path.name.encode(errors="surrogateescape")[: _LONGEST - 1 - len(ending)]
    return path.with_name(f".{name.decode(errors='ignore')}{ending}")


def remove_temporaries(folder: Path, pattern: str = ".*.tmp", writer: str | None = None) -> None:
    """Removes temporary files of this writer, and any older than a day."""
    for path in folder.glob(pattern):
        with suppress(OSError):
            is_writers = writer is not None and path.name.split(".")[-3:-2] == [writer]
            if is_writers or time.time() - path.lstat().st_mtime > _DAY:
                path.unlink()


@contextmanager
def name_errors(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Makes every OSError inside name ``path``, unless it names another file."""
    try:
        yield
    except OSError as error:
        if error.filename is None or str(error.filename) == str(temporary):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def open_descriptor(path: Path, flags: int) -> Iterator[int]:
    """Opens a file descriptor; errors name the file."""
    with name_errors(path):
        descriptor = os.open(path, flags | _BINARY, 0o666)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes; one call of the system may write fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_folder(path: Path) -> None:
    """Flushes a folder, so that new names survive a crash."""
    if os.name == "posix":
        with open_descriptor(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)
