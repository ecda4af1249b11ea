"""Bad words on the command line that need a machine, a file or a process; nothing is computed."""

from __future__ import annotations

import pytest
from fresh import python as process
from spoken import said


@pytest.mark.parametrize("words", ["report x.nc --out {}.html", "run cdp --out {}"])
def test_a_name_that_is_too_long_is_refused_before_anything_runs(words, tmp_path, capsys):
    """Would catch a name that is found too long after an hour's work, or all of it in the line."""
    out, err = said(capsys, words.format(300 * "a"), 2)
    assert out == "" and err.startswith(f"fmab: --out {76 * 'a'}...: must be a ")
    assert err.count("\n") == 1 and list(tmp_path.iterdir()) == []


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
