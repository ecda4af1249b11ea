"""Telling progress never decides a run: standard error that is closed, full, or gone."""

import io
import subprocess
import sys
from pathlib import Path

import fresh
import pytest

from fmab_jax.sweeps import progress
from fmab_jax.sweeps.progress import Plan, Progress, progress_of

PLAN = Plan(2, 3, False, 2, 1, 6, 6, 1, 100, 1000, 100, 1000)
SMALL = "--agents 2 --arms 2 --horizon 50 --seeds 4 --times 5"
RUN = f"run cdp --epsilon 0.5 --no-figure {SMALL}"


def fmab(words, redirection, folder):
    command = ["sh", "-c", f'exec "$0" -m fmab_jax {words} {redirection}', sys.executable]
    options = {"capture_output": True, "text": True, "cwd": folder}
    return subprocess.run(command, env=fresh.surroundings(), **options)


NOWHERE = [
    "2>&-",
    pytest.param(
        "2>/dev/full", marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such")
    ),
]


@pytest.mark.parametrize("redirection", NOWHERE)
def test_a_run_that_cannot_tell_writes_its_result(redirection, tmp_path):
    """Would catch a run whose result is lost because nobody hears of it."""
    done = fmab(f"{RUN} --out x", redirection, tmp_path)
    assert done.returncode == 0 and "wrote x.nc" in done.stdout
    assert (tmp_path / "x.nc").stat().st_size > 1000


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
        teller.advanced(4)
        teller.written(1)
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
    teller = progress_of(True)
    everything(teller)
    shown = "terminal" if terminal and isinstance(stream, Broken) else "lines"
    assert teller._where == shown and teller._done == 6


def test_lines_come_now_and_then(monkeypatch):
    """Would catch a log of a line for each step, and a rate that counts the first batch, which was
    compiled: 1 trial in 2 s after 60 s."""
    clock, stream = [100.0], io.StringIO()
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("lines") as lines:
        lines.extended(12)
        for seconds in (60, 2, 2, 2, 2, 2, 2):
            clock[0] += seconds
            lines.advanced(1)
        lines.written(3)
    assert stream.getvalue().splitlines() == [
        "1 of 12 trials",
        "6 of 12 trials, 0.5 trials/s, 12 s left",
        "7 of 12 trials, 0.5 trials/s, 10 s left, 3 of 0 configurations done",
    ]
