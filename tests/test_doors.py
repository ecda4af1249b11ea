"""Every public function refuses hostile values in one line, or does with them what it documents."""

import inspect
import json
import os
from pathlib import Path

import doors
import fresh
import pytest

import fmab_jax as fmab
from fmab_jax import machine
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.cli.main import main
from fmab_jax.errors import Refusal
from fmab_jax.machine import Share
from fmab_jax.records import problem as problems

# Which values which doors of tests/doors.py let in; all else is refused.
LET_IN = json.loads(Path(doors.__file__).with_suffix(".json").read_text("utf-8"))
ACCEPTED = {door: set(values) for values, named in LET_IN for door in named}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Returns what became of every value at every door, in a process without the tests' hooks."""
    words = "-W", "ignore", Path(doors.__file__)
    done = fresh.python(*words, cwd=tmp_path_factory.mktemp("doors"))
    # Of a value that hangs, the last lines say at which door.
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_a_door_refuses_what_it_does_not_document(outcomes):
    """Would catch a traceback, a hang, gigabytes, or a value that is read as another one."""
    wrong = {}
    for door, ends in outcomes.items():
        through = {value for value, end in ends.items() if end in ("accepted", "started")}
        strange = {v: end for v, end in ends.items() if v not in through and end != "refused"}
        if strange or through != ACCEPTED.get(door, set()):
            wrong[door] = strange, through
    assert wrong == {}


def test_every_door_and_every_value_was_tried(outcomes):
    """Would catch a public callable without a door, a door that is gone, and an early end."""
    algorithms = {ALGORITHMS.find(row["name"]) for row in fmab.list_algorithms()}
    callables = {name: getattr(fmab, name) for name in fmab.__all__}
    callables = {name for name, f in callables.items() if callable(f) and f not in algorithms}
    callables = {name for name in callables if inspect.signature(getattr(fmab, name)).parameters}
    assert callables | {"ratings.from_table"} == set(doors.bases())
    assert set(ACCEPTED) <= set(outcomes) == set(doors.DOORS)
    assert all(list(ends) == list(doors.VALUES) for ends in outcomes.values())


@pytest.mark.parametrize(
    "words",
    [
        "bounds cdp --agents 10000000 --arms 400 --spread 1",
        "run cdp --agents 10000000 --arms 400 --spread 1 --fixed-instance 0",
    ],
)
def test_means_that_do_not_fit_are_refused_before_they_are_drawn(words, monkeypatch, capsys):
    """Would catch means of 240 GB drawn without a look at the free memory."""
    monkeypatch.setattr(machine, "memory", lambda: Share(10**10, "", 0))
    monkeypatch.setattr(problems.BoundProblem, "draw", None)
    assert main(words.split()) == 2
    line = "fmab: memory='240.0 GB': must be at most 90% of the 10.0 GB available; "
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_means_in_a_pipe_are_refused(tmp_path):
    """Would catch a pipe, or a link to one, that is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("means.csv", "means.npz"):
        (tmp_path / name).symlink_to("pipe")
        with pytest.raises(Refusal, match="must be a file; this path is no regular file"):
            problems.Problem.from_file(tmp_path / name)
