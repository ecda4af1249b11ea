"""The folder of compiled programs: what names it, what is thrown away, what stays."""

from pathlib import Path

import programs
from jax._src import compilation_cache


def test_the_folder_is_named_by_all_that_decides_about_machine_code(monkeypatch, tmp_path):
    """Would catch programs of another processor or flag loaded and run."""
    monkeypatch.delenv("FMAB_TEST_PROGRAMS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = {programs.folder()}
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    names.add(programs.folder())
    monkeypatch.setattr(programs, "_processor", lambda: "another")
    names.add(programs.folder())
    assert len(names) == 3 and tmp_path / "fmab_jax-tests" / programs.key() in names


def test_half_a_program_is_thrown_away_and_whole_ones_stay(tmp_path):
    """Would catch a program that a killed process cut off, which JAX would never replace."""
    whole = compilation_cache.compress_executable(b"machine code" * 100)
    (tmp_path / "whole-cache").write_bytes(whole)
    (tmp_path / "half-cache").write_bytes(whole[: len(whole) // 2])
    programs.heal(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checked", "whole-cache"]


def test_files_that_start_first_are_there(request):
    """Would catch a file that was renamed, and then starts last and holds up the run."""
    plugins = request.config.pluginmanager.get_plugins()
    (own,) = (plugin for plugin in plugins if hasattr(plugin, "LONGEST"))
    assert all((Path(__file__).parent / name).is_file() for name in (*own.WAITING, *own.LONGEST))
