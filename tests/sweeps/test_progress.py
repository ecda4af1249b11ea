"""Telling progress never decides a run: standard error that is closed, full, or gone."""

import io
import subprocess
import sys
import threading
from pathlib import Path

import fresh
import pytest

import fmab_jax as fmab
from fmab_jax.sweeps import progress
from fmab_jax.sweeps.progress import Progress

RUN = "run cdp --epsilon 0.5 --no-figure --agents 2 --arms 2 --horizon 50 --seeds 4 --times 5"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_run_that_cannot_tell_writes_its_result(redirection, tmp_path):
    """Would catch a run whose result is lost because nobody hears of it."""
    command = ["sh", "-c", f'exec "$0" -m fmab_jax {RUN} --out x {redirection}', sys.executable]
    options = {"capture_output": True, "text": True, "cwd": tmp_path}
    process = subprocess.run(command, env=fresh.surroundings(), **options)
    assert process.returncode == 0 and "wrote x.nc" in process.stdout
    assert (tmp_path / "x.nc").stat().st_size > 1000


def test_lines_come_now_and_then(monkeypatch):
    """Would catch a log of a line for each step, and a rate that counts the first batch, which was
    compiled: 1 trial in 2 s after 60 s."""
    clock, stream = [100.0], io.StringIO()
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("lines") as lines:
        lines.set_total(12)
        for seconds in (60, 2, 2, 2, 2, 2, 2):
            clock[0] += seconds
            lines.advance(1)
        lines.report_chunk(3)
    assert stream.getvalue().splitlines() == [
        "1 of 12 trials",
        "6 of 12 trials, 0.5 trials/s, 0:00:12 left",
        "7 of 12 trials, 0.5 trials/s, 0:00:10 left, 3 of 0 configurations done",
    ]


class Clock(threading.Timer):
    """A timer of which the seconds have passed when it starts, if they are few."""

    def start(self):
        if self.interval < 10:
            self.function()


@pytest.mark.parametrize(
    "shown, lines",
    [
        (None, ["fmab: compiling a program for cdp (3 s so far)"]),
        (True, ["fmab: compiling a program for cdp (3 s so far)"]),
        (False, []),
    ],
)
def test_a_script_that_waits_for_the_compiler_says_so_once(shown, lines, monkeypatch, capsys):
    """Would catch minutes of silence, a line for each program, and one though it is unwanted."""
    monkeypatch.setattr(progress.threading, "Timer", Clock)
    problem = fmab.Problem.uniform(agents=2, arms=2)
    for action in (fmab.simulate, fmab.sweep):
        action(fmab.cdp_mab(1.0), problem, horizon=10, seeds=2, progress=shown)
        err = capsys.readouterr().err
        found = [line for line in err.splitlines() if line.startswith("fmab: ")]
        assert found == lines, action
    several = {
        "epsilon": [1.0],
        "horizon": 10,
        "seeds": 2,
        "progress": False if not lines else None,
    }
    fmab.sweep([fmab.cdp_mab, fmab.kl_se], problem, **several)
    assert capsys.readouterr().err.splitlines() == lines


def test_a_wait_within_a_wait_is_not_told_twice(monkeypatch, capsys):
    """Would catch a command that says twice that it takes long, or never again after it did."""
    monkeypatch.setattr(progress.threading, "Timer", Clock)
    for _ in range(2):
        with progress.say_later(lambda: "outer\n"), Progress().note_compilation("cdp"):
            pass
    assert capsys.readouterr().err == "outer\nouter\n"
