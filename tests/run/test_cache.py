"""Programs that are kept between processes: where, under which name, and what is never kept."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.run import cache, compilation

PROBLEM = fmab.Problem.uniform(agents=4, arms=3)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Returns an empty folder in which this process keeps what it traces."""
    monkeypatch.setattr(cache, "_folder", tmp_path)
    monkeypatch.setattr(cache, "_get_jax_folder", lambda: str(tmp_path))
    return tmp_path


class Runs:
    """Runs one algorithm as a process of its own would, and counts what was traced."""

    def __init__(self, monkeypatch):
        self.traced = 0
        whole = compilation.run_many_trials

        def counted(*given):
            self.traced += 1
            return whole(*given)

        monkeypatch.setattr(compilation, "run_many_trials", counted)

    def __call__(self, algorithm=None, seeds=2):
        compilation.compile_program.cache_clear()
        data = fmab.simulate(algorithm or fmab.ucb1(), PROBLEM, 20, seeds, times=2)
        return data.regret.values.tobytes()


@pytest.fixture
def run(monkeypatch):
    return Runs(monkeypatch)


def test_what_was_traced_is_not_traced_again_and_has_the_same_bits(place, run):
    """Would catch programs that are traced in every process, or other bits of those kept."""
    first = run()
    assert run.traced == 1 and len(list(place.iterdir())) == 1
    assert run() == first and run.traced == 1
    cache._folder = None  # the fixture's to restore
    assert run() == first and run.traced == 2


def test_the_source_is_that_of_all_that_is_run():
    """Would catch a room that was moved out of those by whose source programs and stores are told
    apart: old numbers would come of new source."""
    code = "import sys, fmab_jax.run.batches, fmab_jax.algorithms.cdp_mab; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    rooms = {name.split(".")[1] for name in result.stdout.split() if name.startswith("fmab_jax.")}
    # What checks arguments, and reads and writes files, computes nothing: descriptions hold values.
    helpers = {"errors", "files", "lazy_imports", "machine", "means_files", "parameters"}
    assert rooms - helpers == {part.removesuffix(".py") for part in cache.ENGINE}


def test_the_name_holds_all_that_a_program_depends_on(place, run, monkeypatch):
    """Would catch a program of another source, version, setting, size or algorithm run instead."""
    run()
    run(fmab.ucb1(pooled=True))
    run(fmab.kl_ucb())
    run(seeds=300)  # another batch
    current = run.traced
    assert current == len(list(place.iterdir())) >= 3
    before = run.traced
    monkeypatch.setattr(cache, "source_digest", lambda *rooms: "edited")
    run()
    monkeypatch.setattr(cache, "versions", lambda: {"jax": "0.99"})
    run()
    before_setting = jax.config.jax_debug_infs
    jax.config.update("jax_debug_infs", True)
    try:
        run()
    finally:
        jax.config.update("jax_debug_infs", before_setting)
    assert run.traced == before + 3


@pytest.mark.parametrize("damage", ["half", "a bit"])
def test_a_damaged_file_is_traced_anew_and_replaced(place, run, damage):
    """Would catch a program cut off by a killed process or a failing disk that is run, or ends."""
    first = run()
    (path,) = place.iterdir()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    damaged = {"half": whole[: len(whole) // 2], "a bit": flipped}
    path.write_bytes(damaged[damage])
    assert run() == first and run.traced == 2
    assert path.read_bytes()[:64] == whole[:64] or len(path.read_bytes()) == len(whole)
    assert run() == first and run.traced == 2


def test_what_strangers_wrote_is_traced_each_time(place, run):
    """Would catch a plug-in whose edited code is not run, as the old one is kept under its name."""

    @dataclasses.dataclass(frozen=True)
    class Mine(type(fmab.ucb1())):
        """Another's, under another name."""

        name = "mine"

    run(Mine())
    run(Mine())
    assert run.traced == 2 and not list(place.iterdir())


def test_static_parts_that_differ_have_other_statements():
    """Would catch 1, True, 1.0 and "1", or parts in another order, under one name."""
    laws = [fmab.Gaussian(0.5), fmab.Gaussian(0.25)]
    values = [1, True, 1.0, "1", b"1", None, "None", (1,), ((1,),), (1, 1)]
    values += [("1, int:1",)]
    values += [{"a": 1, "b": 2}, {"a": 2, "b": 1}, int, bool, np.dtype("int8"), *laws]
    values += map(jax.tree.structure, [(1, 2), [1, 2], (1, None)])
    values += [jax.ShapeDtypeStruct((2,), np.int8), jax.ShapeDtypeStruct((2,), np.int16)]
    statements = {cache._serialize(value) for value in values}
    assert None not in statements and len(statements) == len(values)


def test_programs_are_kept_where_only_their_owner_writes(tmp_path, monkeypatch):
    """Would catch programs loaded from a folder that others can write, another folder than the one
    that was told, or programs that are never kept."""
    settings = {}
    monkeypatch.setattr(cache, "_folder", None)
    monkeypatch.setattr(jax.config, "update", settings.__setitem__)
    folder = fmab.use_compilation_cache(tmp_path / "a" / "b")
    assert folder == tmp_path / "a" / "b" and folder.stat().st_mode & 0o777 == 0o700
    assert settings == {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    settings.clear()
    for mode in (0o720, 0o702, 0o777):
        os.chmod(folder, mode)
        refuses("a folder that only you can write; ", fmab.use_compilation_cache, folder)
    os.chmod(folder, 0o755)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        refuses("a folder that only you can write; ", fmab.use_compilation_cache, folder)
    (tmp_path / "file").touch()
    refuses("a folder that can be written", fmab.use_compilation_cache, tmp_path / "file")
    assert not settings
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
    assert cache.use_compilation_cache() == folder
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert cache.use_compilation_cache() == tmp_path / "caches" / "fmab_jax"
