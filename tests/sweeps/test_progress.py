"""Telling progress never decides a run: standard error that is closed, full, or gone."""

import io
import subprocess
import sys
from pathlib import Path

import fresh
import pytest

from fmab_jax.errors import Refusal
from fmab_jax.files import error_stream
from fmab_jax.sweeps.progress import Plan, Progress, teller_of

PLAN = Plan(2, 3, False, 2, 1, 6, 6, 1, 100, 1000, 100, 1000)
SMALL = "--agents 2 --arms 2 --horizon 50 --seeds 4 --times 5"
SWEEP = f"sweep cdp --epsilon 0.5 1 {SMALL}"
RUN = f"run cdp --epsilon 0.5 --no-figure {SMALL}"


def fmab(words, redirection, folder):
    command = ["sh", "-c", f'exec "$0" -m fmab_jax {words} {redirection}', sys.executable]
    how = {"capture_output": True, "text": True, "cwd": folder}
    return subprocess.run(command, env=fresh.surroundings(), **how)


NOWHERE = [
    "2>&-",
    pytest.param(
        "2>/dev/full", marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such")
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("redirection", NOWHERE)
def test_a_sweep_that_cannot_tell_goes_on(redirection, tmp_path):
    """Would catch a sweep that ends for want of standard error, or says 120 at its end."""
    done = fmab(f"{SWEEP} --out kept", redirection, tmp_path)
    assert done.returncode == 0
    assert "2 configurations, 1 compilation" in done.stdout
    # Lines of progress went neither into the table nor into a file that got the closed number.
    assert "trials/s" not in done.stdout
    kept = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert len(kept) == 3 and not any(b"compiling" in path.read_bytes() for path in kept)
    again = fmab("show kept", "", tmp_path)
    assert again.returncode == 0 and not again.stderr


@pytest.mark.parametrize("redirection", NOWHERE)
def test_a_run_that_cannot_tell_writes_its_result(redirection, tmp_path):
    """Would catch a run whose result is lost because nobody hears of it."""
    done = fmab(f"{RUN} --out x", redirection, tmp_path)
    assert done.returncode == 0 and "wrote x.nc" in done.stdout
    assert (tmp_path / "x.nc").stat().st_size > 1000


@pytest.mark.parametrize("redirection", NOWHERE)
def test_a_refusal_that_nobody_hears_keeps_its_status(redirection, tmp_path):
    """Would catch a refusal that ends as another error, or is printed among the results."""
    done = fmab("run cdp --horizon 0", redirection, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


class Broken(io.StringIO):
    """A stream in memory that takes nothing."""

    def write(self, text):
        raise OSError(5, "Input/output error")


def everything(teller):
    """Tells all there is to tell."""
    with teller:
        teller.planned(PLAN)
        teller.damaged("x: damaged")
        teller.extended(8)
        teller.compiling(1, 1)
        teller.calibrated(3.0)
        teller.advanced(4)
        teller.written(1, 0.5)
        teller.advanced(2)


@pytest.mark.parametrize("stream", [None, Broken(), "closed"], ids=["none", "broken", "closed"])
@pytest.mark.parametrize("terminal", [False, True])
def test_bars_and_lines_are_dropped_where_they_cannot_be_written(stream, terminal, monkeypatch):
    """Would catch an error of the stream that reaches the sweep, from a bar or from a line."""
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    if terminal and isinstance(stream, Broken):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    teller = teller_of(True, True)
    everything(teller)
    shown = "terminal" if terminal and isinstance(stream, Broken) else "lines"
    assert teller._bar.where == shown and teller._bar.done == 6


def test_what_can_be_written_is_told(monkeypatch):
    """Would catch lines that are dropped although somebody listens."""
    heard = io.StringIO()
    monkeypatch.setattr(sys, "stderr", heard)
    everything(teller_of(True, True))
    lines = heard.getvalue().splitlines()
    assert lines[0].startswith("2 configurations x 3 seeds = 6 trials: 1 compilation, 1 chunk, ")
    assert lines[1:4] == ["x: damaged", "compiling program 1 of 1", "expected to take 3 s"]
    assert lines[4].startswith("6 of 8 trials, ") and lines[4].endswith(
        "1 of 2 configurations done, widest 95 % interval +-50 % of the mean"
    )
    assert len(lines) == 5


def test_a_descriptor_gets_the_text_at_once(capfd):
    """Would catch text that waits in a buffer, or letters that the encoding lacks raising."""
    error_stream().write("half a \udcff line\n")
    assert capfd.readouterr().err.startswith("half a ")


def test_progress_is_true_false_or_somebody_who_is_told():
    """Would catch a text or a number taken for True."""
    for value in ("yes", 1, [], 0.0):
        with pytest.raises(Refusal, match="^progress=.*: must be True or False; "):
            teller_of(value, True)
    mine = Progress()
    assert teller_of(mine, False) is mine
    assert [teller_of(*given)._bar.where for given in SILENT] == [""] * 3


# A program without a terminal, one that asks for silence, and one of which another tells.
SILENT = ((None, True), (False, True), (True, False))
