"""Hostile files and values, made of the readers' grammars and of the fields themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

THROW = Path(__file__).with_name("throw.py")
PACKAGE = Path(__file__).parents[2]
# Cases of each kind: 300 in all by default, 5,000 with -m slow; and how many of the default ones
# must be let through, so that the battery tests what is accepted, too.
KINDS = {
    "means_csv": (45, 10),
    "means_npz": (30, 1),
    "ratings": (45, 5),
    "netcdf": (15, 0),
    "study": (45, 4),
    "graph": (40, 10),
    "parameters": (50, 5),
    "api": (30, 1),
}
FINE = ("accepted", "refused", "started")


def thrown(kind: str, first: int, count: int) -> dict[int, tuple[str, str]]:
    """Returns by seed what was thrown, and what became of it, in a process of its own."""
    paths = filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, str(THROW), kind, str(first), str(count)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
    )
    # Of a case that hangs, or takes all memory, the last lines say which.
    assert done.returncode == 0, done.stderr[-3000:]
    rows = map(json.loads, done.stdout.splitlines())
    return {seed: (what, end) for seed, what, end in rows}


def check(kind: str, first: int, count: int) -> list[str]:
    """Throws cases; returns their ends where all are fine, and names the seeds of the others."""
    found = thrown(kind, first, count)
    assert list(found) == list(range(first, first + count))
    again = f"tests/fuzz/throw.py {kind} SEED 1"
    wrong = {seed: (end, what) for seed, (what, end) in found.items() if end not in FINE}
    assert not wrong, f"repeat with {again}: {json.dumps(wrong, indent=1)[:5000]}"
    return [end for _, end in found.values()]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_cases_are_refused_in_one_line_or_read_as_they_are(kind: str) -> None:
    """Would catch a traceback, a hang, gigabytes, or a file that is read as something else.

    Mutants, one for each kind: a number's text stripped of what follows it; an NPZ read as float32;
    a missing rating read as 0; a digest that is not compared; a literal rounded to six digits;
    the last edge of a file left out; an open end of a range taken for a closed one; a path that is
    not checked.
    """
    count, least = KINDS[kind]
    ends = check(kind, 0, count)
    assert sum(end != "refused" for end in ends) >= least and "refused" in ends


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_of_them(kind: str) -> None:
    """Would catch what the cases by default do not meet; 4,700 more."""
    count = KINDS[kind][0]
    check(kind, count, round(4700 * count / 300))


def test_every_public_callable_is_thrown_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a callable that is new and that nobody throws anything at."""
    monkeypatch.syspath_prepend(str(THROW.parent))
    import throw

    assert set(throw.bases()) == set(throw.callables())
    assert sum(count for count, _ in KINDS.values()) == 300
