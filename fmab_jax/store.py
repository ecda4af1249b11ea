"""Files that are whole or absent: results as netCDF, the units of a long run in a folder."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import socket
import stat
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import xarray as xr

from fmab_jax.checks import Damaged, refuse

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_DIGEST = "sha256"


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
    temporary = path.with_name(f".{path.name}.{mark}{secrets.token_hex(4)}.tmp")
    with _naming(path, temporary):
        try:
            yield temporary
            _flush(temporary, os.O_RDWR)
            os.replace(temporary, path)
        except BaseException:
            # The first error is the one to tell.
            with suppress(OSError):
                temporary.unlink()
            raise
        _flush_folder(path.parent)


def save(data: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Writes a result as netCDF-4, without loss and whole or not at all.

    Args:
        data: From `fmab_jax.simulate`.
        path: A name ending in .nc.

    Returns:
        The path written.

    Raises:
        ValueError: For another ending.
        OSError: If the folder cannot be written.
    """
    path = _netcdf(path)
    encoding = {
        str(name): {"zlib": True, "complevel": 1, "shuffle": True}
        for name, variable in data.variables.items()
        if variable.ndim
    }
    marked = data.assign_attrs({_DIGEST: _digest(data)})
    # HDF5 dies on a full disk; in memory it cannot, and plain bytes fail with a plain error.
    whole = io.BytesIO()
    marked.to_netcdf(whole, engine="h5netcdf", encoding=encoding)
    with whole_file(path) as temporary:
        temporary.write_bytes(whole.getbuffer())
    return path


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a result that `save` wrote, into memory.

    Raises:
        ValueError: If there is no such file or it is not such a result, or damaged.
    """
    path = _netcdf(path)
    if not path.is_file():
        refuse("path", str(path), "an existing file", "save a result there first")
    try:
        data = xr.load_dataset(path, engine="h5netcdf")
    except Exception as error:  # h5py raises whatever the damaged bytes lead it to.
        reason = " ".join(str(error).split())[:80]
        refuse(
            "path", str(path), "a readable result", f"it is damaged or something else ({reason})"
        )
    digest = data.attrs.pop(_DIGEST, None)
    if digest is None:
        refuse("path", str(path), "a result of fmab_jax.save", "it is some other netCDF file")
    if digest != _digest(data):
        refuse("path", str(path), "a readable result", "it is damaged: its digest does not fit")
    return data


def _digest(data: xr.Dataset) -> str:
    """Returns a SHA-256 of all names, shapes, types, values and attributes.

    HDF5 checks neither its metadata nor, by default, its chunks: one flipped bit can change numbers
    unseen.
    """
    whole = hashlib.sha256()
    for name in sorted(data.variables, key=str):
        variable = data.variables[name]
        head = (str(name), variable.dims, variable.dtype.str, variable.shape)
        whole.update(repr((*head, _plain(variable.attrs))).encode())
        for row in variable.values if variable.ndim > 1 else [variable.values]:
            # A row at a time: views of repeated zeros need not be written out.
            whole.update(np.ascontiguousarray(row).tobytes())
    whole.update(repr(_plain(data.attrs)).encode())
    return whole.hexdigest()


def _plain(attrs: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    pairs = sorted((str(name), value) for name, value in attrs.items())
    return [
        (name, value.item() if isinstance(value, np.generic) else value) for name, value in pairs
    ]


def _netcdf(path: str | os.PathLike[str]) -> Path:
    if Path(path).suffix != ".nc":
        refuse("path", str(path), "a file name ending in .nc", "change the ending")
    return Path(path)


# A folder of units: run.json says what the run is, units/<unit>.npz hold its arrays, and a manifest
# per writer says which units are there. A unit without an intact manifest line is absent.

_UNIT = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WRITER = re.compile(r"[a-z0-9-]{1,64}")
_MANIFEST = re.compile(r"manifest-[a-z0-9-]+\.jsonl")
_OURS = re.compile(
    rf"run\.json|units|quarantine|{_MANIFEST.pattern}|lock-[a-z0-9-]+(\.pid(-[0-9a-f]+)?)?"
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
_MOST_BYTES = 2**31 - 2**24  # ZIP without its 64-bit extension
_DAY = 86_400
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_TORN = b" torn"
_PLAIN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_NO_FOLDER = {
    getattr(errno, f"E{name}") for name in "NOENT NOTDIR EXIST NAMETOOLONG LOOP INVAL".split()
}
_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class Entry(NamedTuple):
    """One unit as the manifest has it.

    Attributes:
        unit: Its key, 32 lower-case hexadecimal digits; the file is units/<unit>.npz.
        size: Of the file, in bytes.
        sha256: Of the file.
        facts: Whatever the caller gave, as JSON returns it.
    """

    unit: str
    size: int
    sha256: str
    facts: dict[str, Any]


class RunFolder:
    """A folder of immutable units that survives kills, full disks and flipped bits.

    Machines may share it, each under a writer name of its own. One thread writes at a time.

    Args:
        path: The folder.
        create: Whether to make it where it is missing or empty.

    Raises:
        ValueError: If it is missing, something else, or has links inside.
        OSError: If it cannot be read or made.
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
            self._refuse(str(error.strerror))
        strange = sorted(n for n in names if not n.startswith(".") and not _OURS.fullmatch(n))
        if strange and not {"run.json", "units"} <= set(names):
            self._refuse(f"this one holds other things, such as {strange[0]!r}")
        if "units" not in names:
            if not create:
                self._refuse("this one has no units/")
            with suppress(FileExistsError):  # another writer's
                os.mkdir(self.path / "units")
        self._inspect()

    def header(self) -> dict[str, Any] | None:
        """Returns what the run is, or None if nobody wrote it yet.

        Raises:
            ValueError: If run.json is damaged.
        """
        try:
            with _opened(self.path / "run.json", os.O_RDONLY) as descriptor:
                data = _read(descriptor)
        except FileNotFoundError:
            return None
        record = _unseal(data[:-1]) if data.endswith(b"\n") else None
        if record is None or not isinstance(record.get("header"), dict):
            self._refuse("its run.json is damaged or something else: put a good copy back")
        return record["header"]

    def write_header(self, header: Mapping[str, Any]) -> None:
        """Writes what the run is, in place of what run.json said.

        Raises:
            ValueError: If it is not JSON.
            OSError: If it cannot be written; the old one still stands.
        """
        self._write_whole(self.path / "run.json", _seal({"header": dict(header)}, "header"))

    @contextmanager
    def writing(self, writer: str = "main") -> Iterator[None]:
        """Holds the lock of one writer; inside, units can be put and quarantined.

        Args:
            writer: A name that no other process uses on this folder at the same time.

        Raises:
            ValueError: If somebody writes under that name; it says who, where and since when.
            OSError: If the lock cannot be written.
        """
        if not _WRITER.fullmatch(writer):
            refuse("writer", writer, "up to 64 of a-z, 0-9 and -", "such as 'worker-3-of-16'")
        if self._writer is not None:
            refuse("writer", writer, "one at a time", "open the folder once more")
        self._inspect()
        with _lock(self.path, writer):
            for folder in (self.path, self.path / "units"):
                _remove_temporaries(folder, writer)
            self._writer = writer
            try:
                yield
            finally:
                self._writer = None

    def entries(self) -> tuple[list[Entry], list[str]]:
        """Returns all units that are there, sorted, and a line about each damaged manifest line.

        The files are not looked at; `check` does. What a killed writer left half appended counts as
        never written.

        Raises:
            OSError: If a manifest cannot be read.
        """
        manifests, withdrawn, damage = self._manifests()
        newest: dict[str, tuple[str, Entry]] = {}
        for puts in manifests:
            # Within a file the later line wins, whatever the clock said; across files, the clock.
            last = {put[1].unit: put for put in puts if put[0] not in withdrawn}
            for unit, put in last.items():
                newest[unit] = max(newest.get(unit, put), put, key=lambda known: known[0])
        return [newest[unit][1] for unit in sorted(newest)], damage

    def put(self, unit: str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Entry:
        """Writes a unit, whole, and then its manifest line; what had its name is replaced.

        Args:
            unit: Its key.
            arrays: Of numbers or fixed-length text; equal arrays give equal bytes.
            facts: Anything that JSON can say.

        Raises:
            ValueError: If the key, the arrays or the facts cannot be stored, or outside `writing`.
            OSError: If something cannot be written; it names the file, and the unit is not entered.
        """
        self._must_write()
        path = self._file(unit)
        data = _pack(arrays)
        digest = hashlib.sha256(data).hexdigest()
        # Recomputed units have equal bytes: the serial tells a new one from a withdrawn one.
        serial = f"{time.time_ns():016x}{secrets.token_hex(4)}"
        record = {"unit": unit, "size": len(data), "sha256": digest, "serial": serial}
        line = _seal({**record, "facts": dict(facts)}, "facts")
        self._write_whole(path, data)
        self._append(line)
        return Entry(unit, len(data), digest, json.loads(line)["facts"])

    def read(self, entry: Entry, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
        """Returns the arrays of a unit, once its size and digest are found right.

        Args:
            entry: From `entries` or `put`.
            names: Exactly the arrays there must be; None takes any.

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
            raise Damaged(self._file(entry.unit), f"not a unit ({reason})") from error

    def check(self, entry: Entry) -> str | None:
        """Returns None if the file of a unit is intact, else what is wrong with it.

        Raises:
            OSError: If that cannot be told, for want of a permission, say.
        """
        try:
            self._verified(entry)
        except Damaged as damaged:
            return damaged.reason
        return None

    def quarantine(self, entry: Entry, reason: str) -> Path | None:
        """Moves the file of a unit away and withdraws the unit; it may be put again.

        Args:
            entry: From `entries` or `put`.
            reason: For the manifest.

        Returns:
            Where the file lies now, in quarantine/; None if it was missing.

        Raises:
            ValueError: Outside `writing`.
            OSError: If the file cannot be moved or the manifest not written.
        """
        self._must_write()
        self._inspect()
        path, folder = self._file(entry.unit), self.path / "quarantine"
        # All of them: without the file, none holds. What is put from now on is not withdrawn.
        serials = [
            serial
            for puts in self._manifests()[0]
            for serial, put in puts
            if put.unit == entry.unit
        ]
        number = 1
        while os.path.lexists(place := folder / f"{entry.unit}-{number}.npz"):
            number += 1
        moved: Path | None = place
        folder.mkdir(exist_ok=True)
        try:
            # Renamed, whatever it is: a link or a folder in a unit's place goes too.
            os.rename(path, place)
        except FileNotFoundError:
            moved = None
        else:
            _flush_folder(folder)
            _flush_folder(path.parent)
        record = {"withdrawn": serials, "unit": entry.unit, "sha256": entry.sha256}
        self._append(_seal({**record, "reason": reason}, "reason"))
        return moved

    def _refuse(self, reason: str) -> NoReturn:
        refuse("store", str(self.path), "a run folder", reason)

    def _must_write(self) -> None:
        if self._writer is None:
            refuse("writer", None, "named first", "use `with folder.writing():`")

    def _inspect(self) -> None:
        """Refuses links and other surprises among the folder's own names."""
        for name in filter(_OURS.fullmatch, os.listdir(self.path)):
            kind = stat.S_ISDIR if name in {"units", "quarantine"} else stat.S_ISREG
            with suppress(FileNotFoundError):  # Locks come and go.
                if not kind(os.lstat(self.path / name).st_mode):
                    self._refuse(f"{name} in it is a link or no plain file: remove it")

    def _file(self, unit: str) -> Path:
        if not _UNIT.fullmatch(unit):
            refuse("unit", unit, "32 of 0-9 and a-f", "use the hexadecimal digest of what it is")
        return self.path / "units" / f"{unit}.npz"

    def _write_whole(self, path: Path, data: bytes) -> None:
        with whole_file(path, f"{self._writer}." if self._writer else "") as temporary:
            with _opened(temporary, _NEW) as descriptor:
                _write(descriptor, data)

    def _append(self, line: bytes) -> None:
        path = self.path / f"manifest-{self._writer}.jsonl"
        with _opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            os.lseek(descriptor, -1 if size else 0, os.SEEK_END)
            if os.read(descriptor, 1) not in {b"", b"\n"}:
                # Ends what a killed writer began, so that it is neither read nor glued to.
                line = _TORN + b"\n" + line
            try:
                _write(descriptor, line)
                os.fsync(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        if not size:
            _flush_folder(self.path)

    def _manifests(self) -> tuple[list[list[tuple[str, Entry]]], set[str], list[str]]:
        """Returns each file's puts with their serials, the serials withdrawn, and the damage."""
        manifests: list[list[tuple[str, Entry]]] = []
        withdrawn: set[str] = set()
        damage: list[str] = []
        for name in sorted(filter(_MANIFEST.fullmatch, os.listdir(self.path))):
            with _opened(self.path / name, os.O_RDONLY) as descriptor:
                *lines, tail = _read(descriptor).split(b"\n")
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
                    what = "not what it was written as" if record is None else "no entry of a unit"
                    damage.append(f"{name}, line {number}: {what}")
        return manifests, withdrawn, damage

    def _verified(self, entry: Entry) -> bytes:
        path = self._file(entry.unit)
        try:
            with _opened(path, os.O_RDONLY) as descriptor:
                size = os.fstat(descriptor).st_size
                if size != entry.size:
                    raise Damaged(path, f"{size} bytes instead of {entry.size}")
                data = _read(descriptor)
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
    unit, size, digest, facts = (record.get(name) for name in Entry._fields)
    right = (
        isinstance(unit, str)
        and _UNIT.fullmatch(unit)
        and type(size) is int
        and size >= 0
        and isinstance(digest, str)
        and _SHA256.fullmatch(digest)
        and isinstance(facts, dict)
    )
    return Entry(unit, size, digest, facts) if right else None  # type: ignore[arg-type]


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
    if len(arrays) > _MOST_ARRAYS or sum(a.nbytes for a in arrays.values()) > _MOST_BYTES:
        allowed = f"at most {_MOST_ARRAYS} and {_MOST_BYTES:,} bytes"
        refuse("arrays", f"{len(arrays)} arrays", allowed, "make smaller units")
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
        raise ValueError("its end is not that of a unit")
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


@contextmanager
def _naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Has every OSError on the way name ``path``, unless it names something else."""
    try:
        yield
    except OSError as error:
        if error.filename is None or str(error.filename) == str(temporary):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Gives the descriptor of a plain file, never through a link."""
    with _naming(path):
        descriptor = os.open(path, flags | _PLAIN, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, "it is a folder or a device", str(path))
            yield descriptor
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _flush(path: Path, flags: int) -> None:
    with _naming(path):
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _flush_folder(path: Path) -> None:
    """Makes new names in a folder durable."""
    if os.name == "posix":
        _flush(path, os.O_RDONLY)


def _remove_temporaries(folder: Path, writer: str) -> None:
    """Removes what this writer left when it was killed, and anything older than a day."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            own = path.name.split(".")[-3:-2] == [writer]
            if own or time.time() - path.lstat().st_mtime > _DAY:
                path.unlink()


@contextmanager
def _lock(folder: Path, writer: str) -> Iterator[None]:
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
            with _naming(path):
                os.ftruncate(descriptor, 0)
                _write(descriptor, json.dumps(holder).encode())
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
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
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
        with suppress(FileExistsError), _opened(path, _NEW) as descriptor:
            try:
                return _write(descriptor, content)
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
        with suppress(FileExistsError), _opened(retired, _NEW):
            if _holder(path) == holder:
                path.unlink()
            retired.unlink()


def _holder(path: Path) -> dict[str, Any]:
    try:
        with _opened(path, os.O_RDONLY) as descriptor:
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
