"""Ctrl-C and SIGTERM end a command at once, in one line, and keep what is computed."""

from __future__ import annotations

import gc
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fresh
import pytest
from spoken import said

from fmab_jax.cli import signals
from fmab_jax.cli.signals import Stopped, handle_signals
from fmab_jax.files import mark_write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# Programs that are compiled in no time, one for each number of arms.
RUN = "run uniform_play --agents 4 --arms 3 --horizon 1000 --times 10 --seeds 8 --out x"
PAIR = "sweep uniform_play --agents 4 --arms 3 5 --horizon 1000 --times 10 --seeds 8 --out kept"
# Stands for a compiler: what is called releases Python's lock, looks at no signal and takes hours.
STUCK = """
import hashlib, signal, sys
import programs
from fmab_jax.run import compilation
from fmab_jax.cli.main import main

compilation._OPTIONS["cpu"] |= programs.UNOPTIMISED
compiled = compilation.compile_program

def compile_program(program, *rest):
    # Of three arms; a program of more arms comes first.
    if "'uniform', 1, 3," in str(program.structure):
        print("stuck", file=sys.stderr, flush=True)
        for _ in range(100):
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
    return compiled(program, *rest)

compile_program.cache_info = compiled.cache_info
compilation.compile_program = compile_program
# Of a process in the background it may be ignored, and then is by those that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


def stopped_at(words: str, numbers: list[int], until: str = "err") -> tuple[int, str]:
    """Sends signals to a command while it compiles a program, and a file has text.

    Returns the exit status, and the last line of standard error.
    """
    text, variant = Path("err"), Path(until)
    with text.open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", STUCK, *shlex.split(words)],
            stdout=subprocess.DEVNULL,
            stderr=err,
            env=fresh.surroundings(),
        )
        try:
            while process.poll() is None:
                time.sleep(0.01)
                if "stuck\n" in text.read_text() and variant.exists() and variant.stat().st_size:
                    break
            for item in numbers:
                process.send_signal(item)
            status = process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()
    return status, text.read_text().splitlines()[-1]


def test_a_run_ends_while_its_program_compiles(folder):
    """Would catch Ctrl-C that waits until the main thread comes back from a compiler."""
    result = stopped_at(RUN, [signal.SIGINT])
    assert result == (130, "fmab: stopped; nothing written")
    assert [path.name for path in folder.iterdir()] == ["err"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_sweep_ends_while_a_thread_compiles(times, folder, capsys):
    """Would catch an interpreter that waits for the thread, or dies of a second Ctrl-C."""
    status, line = stopped_at(PAIR, times * [signal.SIGINT], "kept/manifest-main.jsonl")
    message = f"fmab: stopped; what is computed is kept; go on with: fmab {PAIR}"
    assert (status, line) == (130, message)
    (chunk,) = (folder / "kept/chunks").iterdir()
    before = chunk.read_bytes()
    _, err = said(capsys, PAIR)
    assert "16 trials, 8 of them to do" in err and chunk.read_bytes() == before


@pytest.fixture
def ended(monkeypatch):
    """The statuses with which the process would have ended by now, and the signals told of."""
    result: list[Any] = []
    monkeypatch.setattr(os, "_exit", result.append)
    monkeypatch.setattr(signals, "_END_S", 0.0)
    # A shell starts what runs in the background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield result
    signal.signal(signal.SIGINT, before)


def wait_for(ended: list[Any]) -> None:
    """Waits until the process would have ended, or for long."""
    for _ in range(3000):
        if ended:
            return
        time.sleep(0.01)


def test_what_is_being_written_becomes_whole(ended, monkeypatch):
    """Would catch a chunk that is computed, and lost because the process does not wait for it."""
    monkeypatch.setattr(signals, "_WRITE_S", math.inf)
    with handle_signals(lambda number: None):
        with mark_write():
            with pytest.raises(Stopped):
                signal.raise_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert ended == []
            # Whoever asks again does not want to wait.
            signal.raise_signal(signal.SIGTERM)
            wait_for(ended)
    assert set(ended) == {143}


class Garbage:
    """Gets a signal while it is collected."""

    def __init__(self, number: int) -> None:
        self.number, self.itself = number, self

    def __del__(self) -> None:
        signal.raise_signal(self.number)


def test_a_signal_within_garbage_collection_stops_in_silence(ended, monkeypatch, capsys):
    """Would catch a traceback of what Python drops, and a command that goes on."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    garbage = [Garbage(signal.SIGTERM)]
    with handle_signals(lambda number: None):
        garbage.clear()
        gc.collect()
        wait_for(ended)
    assert set(ended) == {143}
    assert capsys.readouterr().err == "" and sys.unraisablehook is sys.__unraisablehook__
