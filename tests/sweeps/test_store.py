"""The folder of chunks: faults at each step of a write, damage anywhere, locks."""

import errno
import os
import re
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from refusals import refused, refuses

from fmab_jax.errors import Damaged
from fmab_jax.sweeps import locks
from fmab_jax.sweeps.store import Store

CHUNKS = [f"{number:032x}" for number in range(1, 12)]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def arrays_of(chunk):
    """Returns arrays that differ from chunk to chunk but not in size."""
    rng = np.random.default_rng(int(chunk, 16))
    arrays = {"regret": rng.random((3, 4)), "rounds": rng.integers(9, size=3)}
    return arrays | {"lost": rng.random(3) < 0.5, "scale": np.array(rng.random())}


def put(folder, chunk):
    """Writes a chunk; returns its entry."""
    return folder.put(chunk, arrays_of(chunk), {"chunk": chunk})


def fill_store(path, chunks, writer="main"):
    """Makes a folder with these chunks in it; returns their entries."""
    folder = Store(path, create=True)
    folder.write_header({"title": "old"})
    with folder.lock_writer(writer):
        return {chunk: put(folder, chunk) for chunk in chunks}


def assert_reads(folder, entry):
    """Asserts that a chunk is intact and holds the arrays that were put."""
    assert folder.check(entry) is None
    read = folder.read(entry)
    assert sorted(read) == sorted(arrays_of(entry.chunk))
    for name, array in arrays_of(entry.chunk).items():
        assert read[name].dtype == array.dtype and read[name].shape == array.shape
        np.testing.assert_array_equal(read[name], array)


@contextmanager
def faulty(fault, at, root):
    """Lets the at-th system call below `root` fail, a write half done, or end the process."""
    calls, names = [], {}
    real = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "rename")}

    def step(call, path, half=None):
        if not path.startswith(str(root)):
            return
        calls.append(f"{call} {Path(path).name}")
        if fault is None or len(calls) != at:
            return
        if half is not None:
            half()
        if fault == "kill":
            os._exit(9)
        number = getattr(errno, fault)
        # As the system does: an error of a call on a descriptor has no file name.
        raise OSError(number, os.strerror(number), *([] if call in {"write", "fsync"} else [path]))

    def fake_open(path, *args, **options):
        step("open", os.fspath(path))
        descriptor = real["open"](path, *args, **options)
        names[descriptor] = os.fspath(path)
        return descriptor

    def fake_write(descriptor, data):
        half = lambda: real["write"](descriptor, data[: len(data) // 2])  # noqa: E731
        step("write", names.get(descriptor, ""), half)
        return real["write"](descriptor, data)

    def fake_fsync(descriptor):
        step("fsync", names.get(descriptor, ""))
        real["fsync"](descriptor)

    def fake_move(name):
        def move(source, target):
            step(name, os.fspath(source))
            real[name](source, target)

        return move

    fakes = {"open": fake_open, "write": fake_write, "fsync": fake_fsync}
    try:
        for name in real:
            setattr(os, name, fakes.get(name) or fake_move(name))
        yield calls
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def write(what, folder):
    """Does the write under test."""
    return folder.write_header({"title": "new"}) if what == "header" else put(folder, CHUNKS[2])


def kill_writer(what, path, at):
    """Forks a child that does the write and ends, without any clean-up, before the at-th call."""
    child = os.fork()
    if child == 0:
        try:
            folder = Store(path)
            with folder.lock_writer(), faulty("kill", at, path):
                write(what, folder)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("what", ["chunk in a new manifest", "chunk", "header"])
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "EACCES", "kill"])
def test_a_fault_at_any_step_leaves_the_old_state_or_the_new(tmp_path, what, fault):
    """Would catch a step of a write whose failure, or a kill before it, loses or mixes chunks."""
    whole, trace = tmp_path / "whole", tmp_path / "trace"
    old = fill_store(whole, CHUNKS[:2], "other" if what == "chunk in a new manifest" else "main")
    shutil.copytree(whole, trace)
    writer = Store(trace)
    with writer.lock_writer(), faulty(None, 0, trace) as calls:
        write(what, writer)
    assert {call.split()[0] for call in calls} >= {"open", "write", "fsync"}
    assert len(calls) >= 7, calls

    for at in range(1, len(calls) + 1):
        path = tmp_path / f"{at}"
        shutil.copytree(whole, path)
        if fault == "kill":
            kill_writer(what, path, at)
        else:
            folder = Store(path)
            with folder.lock_writer():
                with pytest.raises(OSError) as caught, faulty(fault, at, path):
                    write(what, folder)
                assert caught.value.errno == getattr(errno, fault)
                assert str(caught.value.filename).startswith(str(path)), calls[at - 1]
                assert str(path) in str(caught.value) and ".tmp" not in str(caught.value)
            assert not list(path.rglob(".*.tmp")), calls[at - 1]

        folder = Store(path)
        assert folder.header() in ({"title": "old"}, {"title": "new"})
        entries = folder.entries()
        by_chunk = {entry.chunk: entry for entry in entries}
        assert by_chunk[CHUNKS[0]] == old[CHUNKS[0]]
        assert set(CHUNKS[:2]) <= set(by_chunk) <= set(CHUNKS[:3])
        for entry in entries:
            assert_reads(folder, entry)
        with folder.lock_writer():
            assert not list(path.rglob(".*.tmp")), calls[at - 1]
            second = put(folder, CHUNKS[2])
            folder.write_header({"title": "newer"})
        assert folder.header() == {"title": "newer"}
        assert_reads(folder, second)
        assert second in folder.entries()
        shutil.rmtree(path)


def lost_chunks(folder, entries):
    """Returns the chunks that are lost, asserting that all others are as they were put."""
    current = {entry.chunk: entry for entry in folder.entries()}
    missing = set()
    for chunk, entry in entries.items():
        if chunk not in current:
            missing.add(chunk)
            continue
        assert current[chunk] == entry
        if folder.check(entry) is None:
            assert_reads(folder, entry)
        else:
            missing.add(chunk)
            with pytest.raises(Damaged, match=chunk):
                folder.read(entry)
    return missing


def test_every_damage_of_a_chunk_is_seen(tmp_path):
    """Would catch a flipped bit, a cut, a lost or a swapped file that reads as a chunk."""
    entries = fill_store(tmp_path / "run", CHUNKS)
    folder = Store(tmp_path / "run")
    files = [folder.file_of(chunk) for chunk in CHUNKS]
    rng = np.random.default_rng(7)
    for number in range(110):
        target = files[rng.integers(len(files))]
        data = target.read_bytes()
        place, bit = int(rng.integers(len(data))), 1 << int(rng.integers(8))
        end = b"" if number >= 100 else bytes([data[place] ^ bit]) + data[place + 1 :]
        target.write_bytes(data[:place] + end)
        assert lost_chunks(folder, entries) == {target.stem}
        reason = str(folder.check(entries[target.stem]))
        assert ("bytes instead of" if number >= 100 else "SHA-256") in reason
        target.write_bytes(data)
    for number, file in enumerate(files):
        variant = files[(number + 3) % len(files)]
        pair = file.read_bytes(), variant.read_bytes()
        file.write_bytes(pair[1])
        variant.write_bytes(pair[0])
        assert lost_chunks(folder, entries) == {file.stem, variant.stem}
        variant.write_bytes(pair[1])
        file.unlink()
        assert lost_chunks(folder, entries) == {file.stem}
        assert folder.check(entries[file.stem]) == "missing"
        file.write_bytes(pair[0])
    assert lost_chunks(folder, entries) == set()


def test_no_bit_of_the_manifest_or_the_header_can_flip_unseen(tmp_path):
    """Would catch a checksum that leaves out part of a line, or of run.json."""
    path = tmp_path / "run"
    entries = fill_store(path, CHUNKS[:3])
    folder = Store(path)
    manifest, header = path / "manifest-main.jsonl", path / "run.json"
    # Two glued lines and lines of something else cost these chunks, and no other.
    first, *others = manifest.read_bytes().splitlines()
    manifest.write_bytes(b"\n".join([b"".join(others), b"\0" * 99, b'{"chunk":1}', first]))
    assert folder.entries() == [entries[CHUNKS[0]]]
    manifest.write_bytes(b"\n".join([first, *others]))
    for target in (manifest, header):
        data = target.read_bytes()
        for place in range(len(data)):
            bit = (1, 32)[place % 2]
            target.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
            if target == manifest:
                assert len(folder.entries()) < len(entries), (place, bit)
            else:
                refuses(r"^store=.*run\.json is damaged", folder.header)
        target.write_bytes(data)


def test_the_last_put_of_a_chunk_wins(tmp_path, monkeypatch):
    """Would catch an order taken from file names, or from a clock that was set back in between."""
    folder = Store(tmp_path / "run", create=True)
    chunk = CHUNKS[0]
    for number, writer in enumerate(["bb", "aa", "cc", "aa"]):
        with folder.lock_writer(writer):
            last = folder.put(chunk, {"x": np.array(number)}, {"number": number})
        assert folder.entries() == [last]
    now = time.time_ns()
    with folder.lock_writer("aa"):
        for number in range(5, 8):
            monkeypatch.setattr(time, "time_ns", lambda late=number: now + 10**9 * (100 - late))
            last = folder.put(chunk, {"x": np.array(number)}, {"number": number})
            assert folder.entries() == [last]
            assert folder.read(last)["x"] == number


def test_only_a_store_is_opened(tmp_path):
    """Would catch a folder of other things that is written into, or a traceback for a bad path."""
    for name in ("other", "other/chunks", "empty"):
        (tmp_path / name).mkdir()
    for name in ("file", "other/thesis.tex", "empty/.DS_Store"):
        (tmp_path / name).write_text("")
    for create in (False, True):
        bad = ["file", "file/below", "other"]
        for name in [*bad, *([] if create else ["empty", "missing"])]:
            text = refused(Store, tmp_path / name, create=create)
            assert re.match(r"store=.*: must be a store; \S", text)
    assert sorted(os.listdir(tmp_path / "other")) == ["chunks", "thesis.tex"]
    assert os.listdir(tmp_path / "empty") == [".DS_Store"]
    for name in ("empty", "missing/below", "CON"):
        path = Store(tmp_path / name, create=True).path
        assert Store(path, create=True).entries() == Store(path).entries() == []
    # Somebody's figures beside the chunks are no reason to refuse a run.
    fill_store(tmp_path / "run", CHUNKS[:1])
    (tmp_path / "run" / "figure.png").write_text("")
    assert len(Store(tmp_path / "run").entries()) == 1


def test_equal_arrays_give_equal_bytes(tmp_path):
    """Would catch dates, memory order or the order of names in a chunk's bytes, or bits lost."""
    folder = Store(tmp_path / "run", create=True)
    rng = np.random.default_rng(0)
    kinds = ["?", "<i1", "<u8", ">i4", "<f2", "<f4", ">f8", "<c16", "<U3", "|S4"]
    arrays = {f"k{n}": rng.integers(0, 9, (4, 3)).astype(kind) for n, kind in enumerate(kinds)}
    arrays |= {"zero": np.array(-0.0), "none": np.zeros((2, 0, 3)), "nan": np.array([np.nan])}
    variant = {name: np.asfortranarray(array) for name, array in reversed(arrays.items())}
    variant["zero"] = np.array(-0.0)  # asfortranarray gives it an axis
    with folder.lock_writer():
        one = folder.put(CHUNKS[0], arrays, {})
        two = folder.put(CHUNKS[1], variant, {"x": [1]})
        three = folder.put(CHUNKS[2], {**arrays, "zero": np.array(0.0)}, {})
    assert one.sha256 == two.sha256 != three.sha256
    read = folder.read(two)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype and read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes() and read[name].flags.writeable
    # Chunks are plain NumPy files for everybody else.
    with np.load(folder.path / "chunks" / f"{two.chunk}.npz", allow_pickle=False) as plain:
        assert sorted(plain) == sorted(arrays)
        np.testing.assert_array_equal(plain["k3"], arrays["k3"])


def test_locks_within_one_process(tmp_path):
    """Would catch a lock that does not hold against its own process, or outlives its block."""
    path = tmp_path / "run"
    one, two = Store(path, create=True), Store(path)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), one.lock_writer():
            refuses(rf"process {os.getpid()} ", two.lock_writer().__enter__)
            with two.lock_writer("other"):
                two.put(CHUNKS[0], {}, {})
            one.put(CHUNKS[1], {}, {})
            raise ZeroDivisionError
    # An error of the caller's own is not taken for one of the lock.
    with pytest.raises(OSError) as caught, one.lock_writer():
        raise OSError(errno.EIO, "mine")
    assert caught.value.filename is None
    assert [entry.chunk for entry in two.entries()] == CHUNKS[:2]


@pytest.mark.parametrize("number", [None, errno.ENOLCK])
def test_a_system_without_locks_still_has_one_writer(tmp_path, monkeypatch, number):
    """Would catch Windows, or a network file system, where every writer thinks it is alone."""

    def flock(descriptor, how):
        raise OSError(number, os.strerror(number))

    if number is None:
        monkeypatch.setattr(locks, "fcntl", None)
    else:
        monkeypatch.setattr(locks.fcntl, "flock", flock)
    path = tmp_path / "run"
    one, two = Store(path, create=True), Store(path)
    text = rf"process {os.getpid()} on .*delete lock-main-held once"
    for first, second in ((one, two), (two, one)):
        with first.lock_writer():
            refuses(text, second.lock_writer().__enter__)
    # After a kill the files stay, and whoever wrote them.
    file, held = path / "lock-main", path / "lock-main-held"
    for holder in [f"{os.getpid()}\nelsewhere\n", "1\n", ""]:
        file.write_text(holder)
        held.touch()
        refuses("delete lock-main-held once", two.lock_writer().__enter__)
        assert file.read_text() == holder
    held.unlink()
    with two.lock_writer():
        assert file.read_text().startswith(f"{os.getpid()}\n")
    assert sorted(os.listdir(path)) == ["chunks", "lock-main"]


def test_temporaries_of_the_dead_are_removed_and_no_others(tmp_path):
    """Would catch a folder that fills up with leftovers, or a live writer losing its file."""
    path = tmp_path / "run"
    folder = Store(path, create=True)
    leftovers = [
        path / "chunks" / f".{CHUNKS[0]}.npz.main.0a1b2c3d.tmp",
        path / ".run.json.main.00.tmp",
    ]
    live = [
        path / f"chunks/.{CHUNKS[0]}.npz.{writer}.0a1b2c3d.tmp" for writer in ("w-1", "not-main")
    ]
    old = path / "chunks" / f".{CHUNKS[1]}.npz.gone.0a1b2c3d.tmp"
    for file in [*leftovers, *live, old]:
        file.write_text("")
    os.utime(old, (time.time() - 100_000,) * 2)
    with folder.lock_writer():
        assert all(file.exists() for file in live)
        assert not any(file.exists() for file in [*leftovers, old])


def test_everything_is_flushed_before_anything_leans_on_it(tmp_path):
    """Would catch a rename before its data, or a line before its chunk, once power is lost."""
    path = tmp_path / "run"
    folder = Store(path, create=True)
    with folder.lock_writer(), faulty(None, 0, path) as calls:
        folder.put(CHUNKS[0], {}, {})
    name = rf"\.{CHUNKS[0]}\.npz\.main\.[0-9a-f]{{8}}\.tmp"
    file = r"manifest-main\.jsonl"
    steps = [f"write {name}", f"fsync {name}", f"replace {name}", "fsync chunks"]
    steps += [f"write {file}", f"fsync {file}", "fsync run"]
    done = [call for call in calls if not call.startswith("open ")]
    assert len(done) == len(steps)
    assert all(map(re.fullmatch, steps, done)), done


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_manifest_that_becomes_a_link_is_not_written(tmp_path):
    """Would catch a link that is put into a folder of many users after it is opened."""
    folder = Store(tmp_path / "run", create=True)
    with folder.lock_writer():
        os.symlink(tmp_path / "outside", tmp_path / "run" / "manifest-main.jsonl")
        with pytest.raises(OSError, match=r"manifest-main\.jsonl"):
            put(folder, CHUNKS[0])
    assert not (tmp_path / "outside").exists()
