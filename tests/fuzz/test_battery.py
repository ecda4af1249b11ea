"""Hostile files and values, made of the readers' grammars and of the fields themselves."""

import json
from pathlib import Path

import fresh
import pytest

THROW = Path(__file__).with_name("throw.py")
# Cases of each kind, and how many of them must be let through, so that accepted files are tested.
KINDS = {"means_csv": (40, 10), "study": (45, 4)}
FINE = ("accepted", "refused", "started")


@pytest.fixture(scope="module")
def cases():
    """Returns the data and the outcomes of the cases by kind, from a process of its own."""
    done = fresh.python(THROW, *(word for kind, (n, _) in KINDS.items() for word in (kind, 0, n)))
    # The last lines name a case that hangs or takes all memory.
    assert done.returncode == 0, done.stderr[-3000:]
    result = {kind: [] for kind in KINDS}
    for kind, _, data, end in map(json.loads, done.stdout.splitlines()):
        result[kind].append((data, end))
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_cases_are_refused_in_one_line_or_read_as_they_are(kind, cases):
    """Catches a traceback, a hang, gigabytes, or a file that is read as something else."""
    count, least = KINDS[kind]
    wrong = {seed: case for seed, case in enumerate(cases[kind]) if case[1] not in FINE}
    assert not wrong, f"repeat with tests/fuzz/throw.py {kind} SEED 1: {wrong}"
    assert len(cases[kind]) == count
    assert least <= sum(end != "refused" for _, end in cases[kind]) < count
