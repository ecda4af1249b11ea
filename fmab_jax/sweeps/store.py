"""A folder of immutable chunks that survives kills, full disks and flipped bits.

run.json says what the run is, chunks/<chunk>.npz hold its arrays, and a manifest per writer says
which chunks are there. A chunk without an intact manifest line is absent.
"""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import json
import math
import os
import re
import secrets
import stat
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
import numpy as np
from msgspec import Meta

from fmab_jax.errors import Damaged, refuse
from fmab_jax.files import (
    NEW,
    flush_folder,
    mark_write,
    opened,
    read_all,
    remove_temporaries,
    whole_file,
    write_all,
)

_CHUNK = re.compile(r"[0-9a-f]{32}")
_WRITER = re.compile(r"[a-z0-9-]{1,64}")
_MANIFEST = re.compile(r"manifest-[a-z0-9-]+\.jsonl")
_OURS = re.compile(
    rf"run\.json|chunks|quarantine|{_MANIFEST.pattern}|lock-[a-z0-9-]+(\.pid(\.[a-z0-9.-]+)?)?"
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DTYPE = r"[<>|][biufcSU][1-9][0-9]{0,5}"
# The head of a .npy file as NumPy writes it for C order; a literal would allow far more.
_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<dtype>%s)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[0-9, ]{0,400})\), \} *\n" % _DTYPE.encode(),
    re.DOTALL,
)
_MOST_ARRAYS = 1000
MOST_BYTES = 2**31 - 2**24
"""Of a chunk's arrays: ZIP without its 64-bit extension."""
_TORN = b" torn"
_NO_FOLDER = {
    getattr(errno, f"E{name}") for name in "NOENT NOTDIR EXIST NAMETOOLONG LOOP INVAL".split()
}


class Entry(NamedTuple):
    """One chunk as the manifest has it."""

    chunk: Annotated[str, Meta(pattern=rf"\A{_CHUNK.pattern}\Z")]  # its file is chunks/<chunk>.npz
    size: Annotated[int, Meta(ge=0)]  # of the file, in bytes
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]  # of the file
    facts: dict[str, Any]  # whatever the caller gave, as JSON returns it


class Store:
    """A folder of immutable chunks that survives kills, full disks and flipped bits.

    Machines may share it, each under a writer name of its own. One thread writes at a time. Where
    it is missing or empty it is made if that is asked for; what is no store is refused.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path)
        self._writer: str | None = None
        try:
            if create:
                os.makedirs(self.path, exist_ok=True)
            names = os.listdir(self.path)
        except ValueError as error:  # NUL
            self._refuse(str(error))
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            self._refuse(f"check the path ({str(error.strerror).lower()})")
        strange = sorted(n for n in names if not n.startswith(".") and not _OURS.fullmatch(n))
        kept = {"chunks", *filter(_MANIFEST.fullmatch, names)} & set(names)
        if strange and not ("run.json" in names and kept):
            self._refuse(f"this one holds other things, such as {strange[0]!r}")
        if create:
            self._ensure_chunks_folder()
        elif not kept and "run.json" not in names:
            self._refuse("this one has no chunks/")
        self._inspect()

    def header(self) -> dict[str, Any] | None:
        """Returns what the run is, or None if nobody wrote it yet; refuses a damaged run.json."""
        try:
            with opened(self.path / "run.json", os.O_RDONLY) as descriptor:
                data = read_all(descriptor)
        except FileNotFoundError:
            return None
        record = _unseal(data[:-1]) if data.endswith(b"\n") else None
        if record is None or not isinstance(record.get("header"), dict):
            self._refuse("its run.json is damaged or something else: put a good copy back")
        return record["header"]

    def write_header(self, header: Mapping[str, Any]) -> None:
        """Writes what the run is, in place of what run.json said, or leaves that after an error."""
        self._write_whole(self.path / "run.json", _seal({"header": dict(header)}, "header"))

    @contextmanager
    def writing(self, writer: str = "main") -> Iterator[None]:
        """Holds the lock of one writer; inside, chunks can be put and quarantined.

        Where somebody writes under that name already, it is refused and says who and since when.
        """
        if not _WRITER.fullmatch(writer):
            refuse("writer", writer, "up to 64 of a-z, 0-9 and -", "such as 'worker-3-of-16'")
        if self._writer is not None:
            refuse("writer", writer, "one at a time", "open the folder once more")
        from fmab_jax.sweeps.locks import locked  # what is only read needs none

        self._inspect()
        self._ensure_chunks_folder()
        with locked(self.path, writer):
            for folder in (self.path, self.path / "chunks"):
                remove_temporaries(folder, writer)
            self._writer = writer
            try:
                yield
            finally:
                self._writer = None

    def entries(self) -> tuple[list[Entry], list[str]]:
        """Returns all chunks that are there, sorted, and a line about each damaged manifest line.

        The files are not looked at; `check` does. What a killed writer left half appended counts as
        never written.
        """
        manifests, withdrawn, damage = self._manifests()
        newest: dict[str, tuple[str, Entry]] = {}
        for puts in manifests:
            # Within a file the later line wins, whatever the clock said; across files, the clock.
            last = {put[1].chunk: put for put in puts if put[0] not in withdrawn}
            for chunk, put in last.items():
                newest[chunk] = max(newest.get(chunk, put), put, key=lambda known: known[0])
        return [newest[chunk][1] for chunk in sorted(newest)], damage

    def put(self, chunk: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Entry:
        """Writes a chunk, whole, and then its manifest line; what had its name is replaced.

        Equal arrays, of numbers or fixed-length text, give equal bytes; facts are anything that
        JSON can say. After an error, which names the file, the chunk is not entered.
        """
        self._must_write()
        path = self._file(chunk)
        with mark_write():  # a file without its line would be computed again
            data = _pack(arrays)
            digest = hashlib.sha256(data).hexdigest()
            # Recomputed chunks have equal bytes: the serial tells a new one from a withdrawn one.
            serial = f"{time.time_ns():016x}{secrets.token_hex(4)}"
            record = {"chunk": chunk, "size": len(data), "sha256": digest, "serial": serial}
            line = _seal({**record, "facts": dict(facts)}, "facts")
            self._write_whole(path, data)
            self._append(line)
        return Entry(chunk, len(data), digest, json.loads(line)["facts"])

    def read(self, entry: Entry, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
        """Returns the arrays of a chunk, exactly these, once its size and digest are found right.

        Raises:
            Damaged: If the file is missing, changed or holds anything else.
            OSError: If it cannot be read for another reason.
        """
        data = self._verified(entry)
        try:
            return _unpack(data, names)
        except MemoryError:  # Claims are checked before anything is allocated, so it is a real one.
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:80]
            raise Damaged(self._file(entry.chunk), f"not a chunk ({reason})") from error

    def check(self, entry: Entry) -> str | None:
        """Returns None if the file of a chunk is intact, else what is wrong with it."""
        try:
            self._verified(entry)
        except Damaged as damaged:
            return damaged.reason
        return None

    def quarantine(self, entry: Entry, reason: str) -> Path | None:
        """Moves the file of a chunk, if there is one, to the path returned; withdraws the chunk."""
        self._must_write()
        self._inspect()
        path, folder = self._file(entry.chunk), self.path / "quarantine"
        # All of them: without the file, none holds. What is put from now on is not withdrawn.
        puts = itertools.chain.from_iterable(self._manifests()[0])
        serials = [serial for serial, put in puts if put.chunk == entry.chunk]
        number = 1
        while os.path.lexists(place := folder / f"{entry.chunk}-{number}.npz"):
            number += 1
        moved: Path | None = place
        folder.mkdir(exist_ok=True)
        try:
            # Renamed, whatever it is: a link or a folder in a chunk's place goes too.
            os.rename(path, place)
        except FileNotFoundError:
            moved = None
        else:
            flush_folder(folder)
            flush_folder(path.parent)
        record = {"withdrawn": serials, "chunk": entry.chunk, "sha256": entry.sha256}
        self._append(_seal({**record, "reason": reason}, "reason"))
        return moved

    def _refuse(self, reason: str) -> NoReturn:
        refuse("store", str(self.path), "a store", reason)

    def _ensure_chunks_folder(self) -> None:
        """Makes chunks/, which copies and archives may leave out where it is empty."""
        with suppress(FileExistsError):  # another writer's
            os.mkdir(self.path / "chunks")

    def _must_write(self) -> None:
        if self._writer is None:
            refuse("writer", None, "named first", "use `with folder.writing():`")

    def _inspect(self) -> None:
        """Refuses links and other surprises among the folder's own names."""
        for name in filter(_OURS.fullmatch, os.listdir(self.path)):
            kind = stat.S_ISDIR if name in {"chunks", "quarantine"} else stat.S_ISREG
            with suppress(FileNotFoundError):  # Locks come and go.
                if not kind(os.lstat(self.path / name).st_mode):
                    self._refuse(f"{name} in it is a link or no plain file: remove it")

    def _file(self, chunk: str) -> Path:
        if not _CHUNK.fullmatch(chunk):
            refuse("chunk", chunk, "32 of 0-9 and a-f", "use the hexadecimal digest of what it is")
        return self.path / "chunks" / f"{chunk}.npz"

    def _write_whole(self, path: Path, data: bytes) -> None:
        with whole_file(path, f"{self._writer}." if self._writer else "") as temporary:
            with opened(temporary, NEW) as descriptor:
                write_all(descriptor, data)

    def _append(self, line: bytes) -> None:
        path = self.path / f"manifest-{self._writer}.jsonl"
        with opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            os.lseek(descriptor, -1 if size else 0, os.SEEK_END)
            if os.read(descriptor, 1) not in {b"", b"\n"}:
                # Ends what a killed writer began, so that it is neither read nor glued to.
                line = _TORN + b"\n" + line
            try:
                write_all(descriptor, line)
                os.fsync(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        if not size:
            flush_folder(self.path)

    def _manifests(self) -> tuple[list[list[tuple[str, Entry]]], set[str], list[str]]:
        """Returns each file's puts with their serials, the serials withdrawn, and the damage."""
        manifests: list[list[tuple[str, Entry]]] = []
        withdrawn: set[str] = set()
        damage: list[str] = []
        for name in sorted(filter(_MANIFEST.fullmatch, os.listdir(self.path))):
            with opened(self.path / name, os.O_RDONLY) as descriptor:
                *lines, tail = read_all(descriptor).split(b"\n")
            lines += [tail + _TORN] if tail else []
            manifests.append([])
            for number, line in enumerate(lines, 1):
                # A torn line may lack no more than its end.
                record = _unseal(line.removesuffix(_TORN))
                if record is not None and isinstance(record.get("withdrawn"), list):
                    withdrawn.update(map(str, record["withdrawn"]))
                elif record is not None and (entry := _entry(record)) is not None:
                    manifests[-1].append((str(record.get("serial")), entry))
                elif not line.endswith(_TORN):
                    what = "not what it was written as" if record is None else "no entry of a chunk"
                    damage.append(f"{name}, line {number}: {what}")
        return manifests, withdrawn, damage

    def _verified(self, entry: Entry) -> bytes:
        path = self._file(entry.chunk)
        try:
            with opened(path, os.O_RDONLY) as descriptor:
                size = os.fstat(descriptor).st_size
                if size != entry.size:
                    raise Damaged(path, f"{size} bytes instead of {entry.size}")
                data = read_all(descriptor)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise Damaged(path, "missing") from None
            if error.errno in {errno.ELOOP, errno.EIO, errno.ENXIO}:
                raise Damaged(path, f"not readable as a plain file ({error.strerror})") from error
            raise
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise Damaged(path, "its SHA-256 does not fit")
        return data


def _entry(record: Mapping[str, Any]) -> Entry | None:
    with suppress(msgspec.ValidationError):
        return msgspec.convert([record.get(name) for name in Entry._fields], Entry)
    return None


def _seal(record: Mapping[str, Any], field: str) -> bytes:
    """Returns one line of JSON that ends in a checksum of itself."""
    try:
        body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()[:-1]
    except (TypeError, ValueError, RecursionError) as error:
        refuse(field, record.get(field), "what JSON can say", str(error))
    return body + _seal_of(body) + b"\n"


def _seal_of(body: bytes) -> bytes:
    return b',"seal":"%s"}' % hashlib.sha256(body).hexdigest()[:16].encode()


def _unseal(line: bytes) -> dict[str, Any] | None:
    """Returns the record of a line without its end; None unless each of its bits is right."""
    body = line[: -len(_seal_of(b""))]
    if not body or body + _seal_of(body) != line:
        return None
    try:
        record = json.loads(body + b"}")
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Returns an .npz of the arrays: stored, sorted, without dates or pickles."""
    if len(arrays) > _MOST_ARRAYS or sum(a.nbytes for a in arrays.values()) > MOST_BYTES:
        allowed = f"at most {_MOST_ARRAYS} and {MOST_BYTES:,} bytes"
        refuse("arrays", f"{len(arrays)} arrays", allowed, "make smaller chunks")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            if not _NAME.fullmatch(name):
                refuse("arrays", name, "named with letters, digits, _, . and -", "rename it")
            if not re.fullmatch(_DTYPE, array.dtype.str):
                refuse("arrays", f"{name}: {array.dtype}", "numbers or text", "convert it")
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980
            member.create_system = 3  # the same bytes on every system
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return whole.getvalue()


def _unpack(data: bytes, names: Collection[str] | None) -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz that `_pack` wrote; refuses all else before it grows."""
    end = data[-22:]
    directory = int.from_bytes(end[12:16], "little")
    # No comment, no 64-bit extension, and a directory that is not longer than it can be.
    if end[:4] != b"PK\5\6" or end[20:] != b"\0\0" or data[-42:-38] == b"PK\6\7":
        raise ValueError("its end is not that of a chunk")
    if directory > _MOST_ARRAYS * (46 + 104):
        raise ValueError("too many arrays")
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if sum(max(member.file_size, member.compress_size) for member in members) > len(data):
            raise ValueError("it claims more than it holds")
        found = sorted(member.filename for member in members)
        if names is not None and found != sorted(f"{name}.npy" for name in names):
            raise ValueError(f"arrays {', '.join(found)[:40]}")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if f"{name}.npy" != member.filename or not _NAME.fullmatch(name) or name in arrays:
                raise ValueError(f"array {member.filename[:40]!r}")
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("compressed")
            raw = archive.read(member)
            head = _HEAD.match(raw)
            if head is None or int.from_bytes(head["length"], "little") != head.end() - 10:
                raise ValueError(f"head of {name}")
            dtype = np.dtype(head["dtype"].decode())
            shape = tuple(int(size) for size in head["shape"].split(b",") if size.strip())
            if math.prod(shape) * dtype.itemsize != len(raw) - head.end():
                raise ValueError(f"{name} claims another size than it has")
            array = np.frombuffer(raw, dtype, math.prod(shape), head.end())
            arrays[name] = array.reshape(shape).copy()
    return arrays
