"""The folder of compiled programs: what names it, what is thrown away, what stays."""

import os
from pathlib import Path

import programs
from jax._src import compilation_cache


def test_the_folder_is_named_by_all_that_decides_about_machine_code(monkeypatch, tmp_path):
    """Would catch programs of another processor, compiler or flag loaded and run."""
    monkeypatch.delenv("FMAB_TEST_PROGRAMS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = {programs.folder()}
    assert names == {tmp_path / "fmab_jax-tests" / programs.key()}
    for flags in ("--xla_cpu_max_isa=AVX2", "--xla_force_host_platform_device_count=2"):
        monkeypatch.setenv("XLA_FLAGS", flags)
        names.add(programs.folder())
    monkeypatch.setattr(programs, "_processor", lambda: "another")
    names.add(programs.folder())
    monkeypatch.setattr(programs, "version", lambda package: f"{package} 9")
    names.add(programs.folder())
    assert len(names) == 5
    monkeypatch.setenv("FMAB_TEST_PROGRAMS", str(tmp_path / "mine"))
    assert programs.folder() == tmp_path / "mine"


def test_half_a_program_is_thrown_away_and_whole_ones_stay(tmp_path):
    """Would catch a program that a killed process cut off, which JAX would never replace."""
    whole = compilation_cache.compress_executable(b"machine code" * 100)
    (tmp_path / "whole-cache").write_bytes(whole)
    (tmp_path / "half-cache").write_bytes(whole[: len(whole) // 2])
    programs.heal(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checked", "whole-cache"]
    # What was looked at is not looked at again; what is new is.
    (tmp_path / "old-cache").write_bytes(whole[:9])
    os.utime(tmp_path / "old-cache", ns=(0, 0))
    (tmp_path / "new-cache").write_bytes(whole[:9])
    programs.heal(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"checked", "whole-cache", "old-cache"}


def test_a_folder_that_grew_too_large_is_emptied(monkeypatch, tmp_path):
    """Would catch a folder that grows for ever, or that is emptied at every run."""
    for name in ("COMPILATION_CACHE_DIR", "PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(f"JAX_{name}", "as it was")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "as it was")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=somewhere")
    monkeypatch.setattr(programs, "version", lambda package: "0.10.9")
    place = tmp_path / "programs"
    place.mkdir()
    (place / "one-cache").write_bytes(compilation_cache.compress_executable(b"1" * 99))
    programs.use(place)
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(place)
    assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=somewhere {programs.FLAG}"
    assert (place / "one-cache").exists()
    monkeypatch.setattr(programs, "MOST_BYTES", 10)
    programs.use(place)
    assert [path.name for path in place.iterdir()] == ["checked"]
    assert os.environ["XLA_FLAGS"].count(programs.FLAG) == 1
    # A compiler of another version may not know the flag, and would end the process.
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(programs, "version", lambda package: "0.12.0")
    programs.use(place)
    assert os.environ["XLA_FLAGS"] == ""
    # A file stands where the folder should: programs are kept elsewhere, and the run goes on.
    programs.use(place / "checked" / "below")
    elsewhere = Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    assert elsewhere.is_dir() and place not in elsewhere.parents


def test_files_that_start_first_are_there(request):
    """Would catch a file that was renamed, and then starts last and holds up the run."""
    plugins = request.config.pluginmanager.get_plugins()
    (own,) = (plugin for plugin in plugins if hasattr(plugin, "LONGEST"))
    named = (*own.WAITING, *own.LONGEST)
    assert len(set(named)) == len(named)
    assert [name for name in named if not (Path(__file__).parent / name).is_file()] == []
