"""Hostile files and values, made of the readers' grammars and of the fields themselves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

THROW = Path(__file__).with_name("throw.py")
PACKAGE = Path(__file__).parents[2]
# Cases of each kind, and how many of them must be let through, so that accepted files are tested.
KINDS = {"means_csv": (40, 10), "study": (45, 4)}
FINE = ("accepted", "refused", "started")


def thrown(*ranges):
    """Returns by kind and seed what was thrown, and its end, in a process of its own."""
    paths = filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, str(THROW), *(str(word) for item in ranges for word in item)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    # Of a case that hangs, or takes all memory, the last lines say which.
    assert done.returncode == 0, done.stderr[-3000:]
    result = {}
    for kind, seed, what, end in map(json.loads, done.stdout.splitlines()):
        result.setdefault(kind, {})[seed] = what, end
    return result


def refuse_wrong(kind, found):
    """Fails where a case has no fine end, and says how to repeat it."""
    wrong = {seed: (end, what) for seed, (what, end) in found.items() if end not in FINE}
    again = f"tests/fuzz/throw.py {kind} SEED 1"
    assert not wrong, f"repeat with {again}: {json.dumps(wrong, indent=1)[:5000]}"


@pytest.fixture(scope="module")
def ends():
    """Returns the ends of the default cases."""
    return thrown(*((kind, 0, count) for kind, (count, _) in KINDS.items()))


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_cases_are_refused_in_one_line_or_read_as_they_are(kind, ends):
    """Catches a traceback, a hang, gigabytes, or a file that is read as something else."""
    count, least = KINDS[kind]
    result = ends[kind]
    refuse_wrong(kind, result)
    assert list(result) == list(range(count))
    current = [end for _, end in result.values() if end != "refused"]
    assert least <= len(current) < count
