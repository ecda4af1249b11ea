"""Bad words on the command line that need a machine, a file or a process; nothing is computed."""

from __future__ import annotations

import re

import pytest
from fresh import python as process
from spoken import said

from fmab_jax.run import resources


def test_a_run_that_does_not_fit_is_refused_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Would catch the memory check, which is no option, falling through to a traceback."""
    monkeypatch.setattr(resources, "available_bytes", lambda: 10**9)
    _, err = said(capsys, "run cdp --seeds 1e6 --times 1e5 --horizon 1e6", 2)
    assert re.match(r"fmab: memory='[0-9.,]+ GB': must be at most 90 % of the 1 GB free; ", err)
    assert "keep='summary'" in err and " 449 " in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["report x.nc --out {}.html", "run cdp --out {}"])
def test_a_name_that_is_too_long_is_refused_before_anything_runs(words, tmp_path, capsys):
    """Would catch a name that is found too long after an hour's work, or all of it in the line."""
    out, err = said(capsys, words.format(300 * "a"), 2)
    assert out == "" and err.startswith(f"fmab: --out {76 * 'a'}...: must be a ")
    assert err.count("\n") == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.png", "x.nc"])
def test_a_folder_in_the_way_is_refused(name, tmp_path, capsys):
    """Would catch a long run whose last step, replacing a folder by a file, must fail."""
    (tmp_path / name).mkdir()
    err = said(capsys, "run cdp --out x", 2).err
    assert err.startswith(f"fmab: --out {name}: must be the name of a file; a folder has that name")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "cdp", "--epsilon", "0"], "--epsilon 0: must be a number in (0, 1e+100]; "),
        (["run", "cdp", "--agnets", "3"], "--agnets: must be an option of fmab run cdp; "),
        (["run", "ddp", "--out", "a\nb/c"], "--out "),
    ],
)
def test_a_real_process_refuses_in_one_line(words, line, tmp_path):
    """Would catch warnings beside the line, a wrong exit status, or a line feed let through."""
    result = process("-m", "fmab_jax", *words)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and result.stderr.startswith(f"fmab: {line}")
    assert not list(tmp_path.glob("*.n*")) + list(tmp_path.glob("*.png"))
