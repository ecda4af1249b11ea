"""A folder of immutable chunks that survives kills, full disks and flipped bits.

run.json describes the run, chunks/<chunk>.npz hold its arrays, and a manifest per writer lists the
chunks. A chunk without an intact manifest line, or without its file, is absent.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from fmab_jax.errors import Damaged, format_quantity, refuse
from fmab_jax.files import (
    NEW,
    flush_folder,
    mark_write,
    open_descriptor,
    remove_temporaries,
    whole_file,
    write_all,
)
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.locks import hold_lock

FORMAT = 5
"""Version of run.json and of the chunks beside it."""
# Arrays of more bytes need the 64-bit extension of ZIP.
_LARGE = 2**30
_STORE_FILES = re.compile(r"run\.json|chunks|quarantine|manifest-.*\.jsonl|lock-.*")
# A symbolic link would lead to a file outside the store.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


class Entry(NamedTuple):
    """One chunk in the manifest."""

    chunk: str  # its file is chunks/<chunk>.npz
    size: int  # of the file, in bytes
    sha256: str  # of the file
    facts: Record  # of the caller, as read back from JSON


class Store:
    """A folder of immutable chunks that survives kills, full disks and flipped bits.

    Machines may share it, each under a writer name of its own. One thread writes at a time. A
    missing or empty folder is made a store if that is asked for; anything else is refused.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path)
        self._writer = ""
        if create:
            with suppress(FileExistsError, NotADirectoryError):
                self.path.mkdir(parents=True, exist_ok=True)
        if not self.path.is_dir():
            self._refuse("check the path (no such folder)")
        names = {path.name for path in self.path.iterdir() if not path.name.startswith(".")}
        others = sorted(name for name in names if not _STORE_FILES.fullmatch(name))
        if others and "run.json" not in names:
            self._refuse(f"this one holds other things, such as {others[0]!r}")
        if create:
            # Copies and archives may drop empty folders.
            (self.path / "chunks").mkdir(exist_ok=True)
        elif not names:
            self._refuse("this one has no chunks/")

    def header(self) -> Record | None:
        """Returns the header, or None before the first write; refuses a damaged run.json."""
        try:
            data = (self.path / "run.json").read_bytes()
        except FileNotFoundError:
            return None
        record = _unseal(data.removesuffix(b"\n"))
        if record is None or not isinstance(record.get("header"), dict):
            self._refuse("its run.json is damaged or something else: put a good copy back")
        return record["header"]

    def write_header(self, header: Record) -> None:
        """Replaces the header; after an error the old one stays."""
        self._write_whole(self.path / "run.json", _seal({"header": dict(header)}) + b"\n")

    @contextmanager
    def lock_writer(self, writer: str = "main") -> Iterator[None]:
        """Holds the lock of one writer; chunks can be put inside.

        A second writer of that name is refused; the error names the holder and the start.
        """
        (self.path / "chunks").mkdir(exist_ok=True)
        with hold_lock(self.path, writer):
            for folder in (self.path, self.path / "chunks"):
                remove_temporaries(folder, writer=writer)
            self._writer = writer
            yield

    def entries(self) -> list[Entry]:
        """Returns all present chunks, sorted.

        It does not read the files; `check` does. A manifest line that was damaged, or that a killed
        writer left incomplete, counts as never written.
        """
        newest: dict[str, tuple[int, Entry]] = {}
        for path in sorted(self.path.glob("manifest-*.jsonl")):
            last: dict[str, tuple[int, Entry]] = {}
            for record in filter(None, map(_unseal, path.read_bytes().split(b"\n"))):
                last[record["chunk"]] = record["time"], Entry(*map(record.get, Entry._fields))  # type: ignore[arg-type]
            # Within a file the later line wins, since clocks may jump; across files, the clock.
            for chunk, put in last.items():
                newest[chunk] = max(newest.get(chunk, put), put, key=lambda item: item[0])
        files = {path.stem for path in (self.path / "chunks").glob("*.npz")}
        return [newest[chunk][1] for chunk in sorted(files & newest.keys())]

    def put(self, chunk: str, arrays: Mapping[str, np.ndarray], facts: Record) -> Entry:
        """Writes a chunk and then its manifest line; replaces a chunk of that name.

        Equal arrays give equal bytes; facts are JSON values. An error names the file, and the chunk
        is not listed.
        """
        with mark_write():  # a file without its line would be computed again
            data = _pack(arrays)
            digest = hashlib.sha256(data).hexdigest()
            record = {"chunk": chunk, "size": len(data), "sha256": digest, "time": time.time_ns()}
            line = _seal({**record, "facts": dict(facts)})
            self._write_whole(self.file_of(chunk), data)
            self._append(line)
        return Entry(chunk, len(data), digest, json.loads(line)["facts"])

    def read(self, entry: Entry) -> dict[str, np.ndarray]:
        """Returns the arrays of a chunk after checking its size and digest.

        Raises:
            Damaged: If the file is missing or changed.
            OSError: If it cannot be read for another reason.
        """
        with np.load(io.BytesIO(self._read_intact(entry)), allow_pickle=False) as arrays:
            return dict(arrays)

    def check(self, entry: Entry) -> str | None:
        """Returns None if the file of a chunk is intact, else what is wrong with it."""
        try:
            self._read_intact(entry)
        except Damaged as damaged:
            return damaged.reason
        return None

    def set_aside(self, entry: Entry) -> None:
        """Renames the file of a damaged chunk, so that it is absent."""
        path = self.file_of(entry.chunk)
        with suppress(FileNotFoundError):
            os.replace(path, path.with_suffix(".damaged"))
        flush_folder(path.parent)

    def file_of(self, chunk: str) -> Path:
        """Returns the path of a chunk's file."""
        return self.path / "chunks" / f"{chunk}.npz"

    def _refuse(self, reason: str) -> NoReturn:
        refuse("store", str(self.path), "a store", reason)

    def _write_whole(self, path: Path, data: bytes) -> None:
        with whole_file(path, f"{self._writer}." if self._writer else "") as temporary:
            with open_descriptor(temporary, NEW) as descriptor:
                write_all(descriptor, data)

    def _append(self, line: bytes) -> None:
        path = self.path / f"manifest-{self._writer}.jsonl"
        with open_descriptor(path, _APPEND) as descriptor:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                # The first newline ends a line that a killed writer left incomplete.
                write_all(descriptor, b"\n" * bool(size) + line)
                os.fsync(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        if not size:
            flush_folder(self.path)

    def _read_intact(self, entry: Entry) -> bytes:
        path = self.file_of(entry.chunk)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise Damaged(path, "missing") from None
        except OSError as error:
            if error.errno != errno.EIO:  # after any other error the chunk may be intact
                raise
            raise Damaged(path, f"not readable ({error.strerror})") from error
        if len(data) != entry.size:
            raise Damaged(path, f"{format_quantity(len(data), 'byte')} instead of {entry.size:,}")
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise Damaged(path, "its SHA-256 does not fit")
        return data


def _seal(record: Record) -> bytes:
    """Returns one line of JSON that ends in a checksum of itself."""
    body = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()[:-1]
    return body + _seal_of(body)


def _seal_of(body: bytes) -> bytes:
    return b',"seal":"%s"}' % hashlib.sha256(body).hexdigest()[:16].encode()


def _unseal(line: bytes) -> Record | None:
    """Returns the record of a line without its newline; None if its checksum is wrong."""
    body = line[: -len(_seal_of(b""))]
    if not body or body + _seal_of(body) != line:
        return None
    record: Record = json.loads(body + b"}")
    return record


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Returns an .npz of the arrays: stored, sorted, without dates or pickles."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980
            member.create_system = 3  # the same bytes on every system
            array = np.asarray(arrays[name], order="C")
            with archive.open(member, "w", force_zip64=array.nbytes > _LARGE) as file:
                np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return whole.getvalue()
