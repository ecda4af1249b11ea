"""Files that are whole or absent, and never reached through a link; errors that name the file."""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from fmab_jax.errors import flag, refuse

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
PLAIN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_INPUT = os.O_RDONLY | sum(getattr(os, n, 0) for n in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_DAY = 86_400
# Bytes of a name on every usual file system.
_LONGEST = 255
# Marks what is replaced.
_OLD = "old."
_LEFT = re.compile(
    r"(?P<path>\..*?)\.(?P<old>old\.)?(?P<machine>[0-9a-f]{6})-(?P<process>[0-9]{1,9})"
    r"-[0-9a-f]{8}\.tmp",
    re.S,
)
# And of a whole path, with room for what is added to it.
_LONGEST_PATH = 4000
# One entry for each write that has begun: a list changes in one step, whichever thread writes.
_WRITES: list[None] = []


class _ErrorStream(io.TextIOBase):
    """Standard error for telling how far something is: what cannot be written is dropped.

    A closed descriptor, a full disk or a reader that has left never decides about a run.
    """

    def __init__(self) -> None:
        # Of a process that was started without it, None.
        self._stream = sys.stderr

    def isatty(self) -> bool:
        """Tells whether it is a terminal."""
        with suppress(OSError, ValueError, AttributeError):
            return self._stream.isatty()
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Writes a text, or does not; keeps nothing back that would fail once more at the end."""
        with suppress(OSError, ValueError, AttributeError):
            try:
                descriptor = self._stream.fileno()
            except (OSError, ValueError):  # a stream in memory
                self._stream.write(text)
                self._stream.flush()
            else:
                os.write(descriptor, text.encode(self.encoding, "backslashreplace"))
        return len(text)


def error_stream() -> Any:
    """Returns standard error as it is now, as a stream that drops what it cannot write."""
    return _ErrorStream()


def hold_standard_streams() -> None:
    """Lets standard streams that are closed lead nowhere.

    Else the next file to be opened would get such a number, and all that is said would go into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))


def drop_unwritable_errors() -> None:
    """Forgets what standard error did not take, which would else become the exit status."""
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def checked_path(field: str, path: Any) -> Path:
    """Returns a path that the system can be asked about.

    Args:
        field: The argument's public name.
        path: A text or a path object.

    Raises:
        Refusal: If it is neither, or holds a character that no path holds.
    """
    allowed = "a path, as text or pathlib.Path"
    if not isinstance(path, (str, os.PathLike)):
        refuse(field, path, allowed, "write it in quotes")
    try:
        text = os.fspath(path)
    except Exception:  # somebody's own path object
        refuse(field, path, allowed, "write it in quotes")
    if not isinstance(text, str):
        refuse(field, path, allowed, "decode it with os.fsdecode")
    try:
        system = os.fsencode(text)
    except UnicodeEncodeError:
        refuse(field, text, "a path", "check the path (no file system spells it)")
    if b"\0" in system:
        refuse(field, text, "a path", "check the path (it holds a NUL character)")
    longest = max((len(os.fsencode(part)) for part in Path(text).parts), default=0)
    if longest > _LONGEST or len(system) > _LONGEST_PATH:
        allowed = f"a path of at most {_LONGEST_PATH:,} bytes, at most {_LONGEST} from / to /"
        refuse(field, text, allowed, "choose a shorter one")
    if is_blank(text):
        refuse(field, text, "a path whose names can be seen", "give it a name")
    return Path(text)


def is_blank(path: str) -> bool:
    """Tells whether nobody would see a name in a path, such as that of a file called " .png"."""
    last = Path(path)
    names = [*last.parts, last.stem if last.name else "/"]
    return not all(name.strip() for name in names)


def unread(field: str, path: Any, error: OSError, kind: str = "file") -> NoReturn:
    """Refuses a file that cannot be read; says why, as the system does."""
    why = (error.strerror or str(error) or type(error).__name__).lower()
    refuse(field, str(path), f"a readable {kind}", f"check the path ({why})")


def read_input(path: Any, field: str, most_bytes: int, kind: str = "file") -> bytes:
    """Returns the content of a plain file that somebody names; a link to one will do.

    A pipe, a device or a folder is refused and never waited for; no more is read than allowed.

    Args:
        path: A text or a path object.
        field: The argument's public name.
        most_bytes: Largest size.
        kind: What it should be, such as "graph file".

    Raises:
        Refusal: If it cannot be read, is no plain file or is too large.
    """
    shown = str(checked_path(field, path))
    content, size = b"", 0
    try:
        # Looked at first: to open a device can have effects, and a pipe would let its writer go on.
        regular = stat.S_ISREG(os.stat(shown).st_mode)
        if regular:
            with open(os.open(shown, _INPUT), "rb") as file:
                found = os.fstat(file.fileno())
                regular, size = stat.S_ISREG(found.st_mode), found.st_size
                if regular and size <= most_bytes:
                    content = file.read(most_bytes + 1)
    except OSError as error:
        unread(field, shown, error, kind)
    if not regular:
        refuse(field, shown, f"a {kind}", "this path is no regular file")
    # Some files of the system grow while they are read, or say 0 and hold more.
    if max(size, len(content)) > most_bytes:
        allowed = f"a {kind} of at most {most_bytes:,} bytes"
        refuse(field, shown, allowed, f"this one has {max(size, len(content)):,}")
    return content


@contextmanager
def mark_write() -> Iterator[None]:
    """Has `is_writing` tell of what is written inside."""
    _WRITES.append(None)
    try:
        yield
    finally:
        _WRITES.pop()


def is_writing() -> bool:
    """Tells whether some thread has begun to write what is not whole yet."""
    return bool(_WRITES)


@contextmanager
def whole_file(path: str | os.PathLike[str], mark: str = "") -> Iterator[Path]:
    """Gives a temporary name to write to, and puts the finished file in place of ``path``.

    An old file is replaced only by a complete and flushed new one; after an error, or a kill, it is
    what it was. What a killed process left of the same file is removed.

    Args:
        path: Where the file shall stand; its folder must exist.
        mark: Goes into the temporary name, to tell whose it is; then who left something is told by
            it, see `remove_temporaries`.

    Raises:
        OSError: If the folder cannot be written; it names ``path``, and nothing is left behind.
    """
    path = Path(path)
    temporary = temporary_beside(path, mark)
    if not mark:
        remove_abandoned(path)
    with mark_write(), naming(path, temporary):
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


def same_file(one: str, other: str) -> bool:
    """Tells whether two paths lead to one file: by a link, or one that goes round."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:  # one is not there, which is said when it is read
        return False


def refuse_taken(path: Path, overwrite: bool, field: str = "path") -> None:
    """Refuses a name that is taken, be it by a link to nowhere, unless it may be replaced."""
    flag("overwrite", overwrite)
    if "\0" in str(path):
        refuse(field, str(path), "a name that files can have", "leave the NUL character out")
    if os.path.lexists(path) and not overwrite:
        remedy = "it exists: choose another, or ask to overwrite it"
        refuse(field, str(path), "a new name", remedy)
    if os.path.isdir(path) and not os.path.islink(path):
        refuse(field, str(path), "the name of a file", "a folder has that name: choose another")
    if not os.path.isdir(path.parent):
        refuse(field, str(path), "in an existing folder", "make the folder first")


def temporary_beside(path: Path, mark: str = "") -> Path:
    """Returns a new hidden name in the same folder, no longer than names can be.

    Without a mark of a writer it tells the process.
    """
    whose = mark if mark and mark != _OLD else f"{mark}{_machine()}-{os.getpid()}-"
    ending = f".{whose}{secrets.token_hex(4)}.tmp"
    return path.with_name(_beginning(path, len(ending)) + ending)


def aside(path: Path) -> Path:
    """Returns a new hidden name for what is replaced, until its successor is in place."""
    return temporary_beside(path, _OLD)


def remove_abandoned(path: Path, *, replaced: bool = False) -> None:
    """Removes what processes of this machine that are dead left of a file or folder of this name.

    Args:
        path: Where it shall stand.
        replaced: Whether ``path`` is in place, so that what was put `aside` for it may go, too.
    """
    with suppress(OSError):
        for name in os.listdir(path.parent):
            found = _LEFT.fullmatch(name)
            if found is None or found["old"] and not replaced or found["machine"] != _machine():
                continue
            ending = name[len(found["path"]) :]
            if found["path"] == _beginning(path, len(ending)) and not _lives(int(found["process"])):
                remove(path.with_name(name))


def remove(path: Path) -> None:
    """Removes a file or a folder, as far as that is possible."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _beginning(path: Path, ending: int) -> str:
    """Returns what temporary names of a file begin with, cut where an ending needs the room."""
    name = path.name.encode(errors="surrogateescape")[: _LONGEST - 1 - ending]
    return f".{name.decode(errors='ignore')}"


@functools.cache
def _machine() -> str:
    """Returns what tells this machine from others that write into the same folders."""
    name = platform.node()
    with suppress(OSError):  # numbers of processes are a container's own
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:6]


def _lives(process: int) -> bool:
    """Tells whether a process of this machine may still be writing."""
    if os.name != "posix":
        return True  # there, to ask would be to kill
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


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
