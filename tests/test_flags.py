"""Every truth value that the public interface takes is one, or is refused by its name."""

import inspect
import itertools
from pathlib import Path

import doors
import numpy as np
import pytest
from matplotlib.figure import Figure

import fmab_jax as fmab
from fmab_jax.cli.options import value_of
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Flag, Real

# Truthy or falsy, and no truth values.
HOSTILE = ("False", "true", "", 1.0, 0, 1, np.True_, None, [], float("nan"))
# None is a value of these: it leaves the choice to the package.
CHOOSES = ("simulate(progress)", "sweep(progress)")
NUMBERS = itertools.count()
# Whoever implements these is asked by the package alone, which has checked the argument.
ASKED = (".bind(sum_agents)", ".make_trial(sum_agents)")


def taken():
    """Yields every argument of the public interface that is a truth value: "save(overwrite)"."""
    found = {}
    for name in fmab.__all__:
        each = getattr(fmab, name)
        rooms = {f"{name}.{n}": getattr(each, n) for n in getattr(each, "__all__", ())}
        found |= rooms or {name: each}
    for name, each in list(found.items()):
        if inspect.isclass(each):
            found |= {f"{name}.{n}": getattr(each, n) for n in dir(each) if n[0] != "_"}
    for name, each in found.items():
        if not callable(each):
            continue
        for argument in inspect.signature(each).parameters.values():
            if "bool" in str(argument.annotation) or isinstance(argument.default, bool):
                yield f"{name}({argument.name})"


def taken_file(ending):
    """Returns a file that is there already."""
    path = Path(f"{next(NUMBERS)}{ending}")
    path.write_bytes(b"old")
    return path


FOLD = dict.fromkeys(("init", "add", "merge", "finish"), len)
CALLS = {
    "Exchange(alone)": lambda v: fmab.Exchange("x", 3, 3, np.full(3, 1 / 3), alone=v),
    "Exchange(exact)": lambda v: fmab.Exchange("x", 3, 3, np.full(3, 1 / 3), exact=v),
    "Output(coordinate)": lambda v: fmab.Output("x", "", "", len, coordinate=v),
    "Reduce(coordinate)": lambda v: fmab.Reduce("x", "", "", len, coordinate=v, **FOLD),
    "parameter(keyword)": lambda v: fmab.parameter(Real(), "x", keyword=v),
    "simulate(sum_agents)": lambda v: doors.given("simulate", sum_agents=v),
    "simulate(progress)": lambda v: doors.given("simulate", progress=v),
    "sweep(sum_agents)": lambda v: doors.swept(sum_agents=v),
    "sweep(progress)": lambda v: doors.swept(progress=v),
    "save(overwrite)": lambda v: fmab.save(doors.DATA, taken_file(".nc"), overwrite=v),
    "export(overwrite)": lambda v: fmab.export(doors.DATA, taken_file(".csv"), overwrite=v),
    "save_figure(overwrite)": lambda v: fmab.save_figure(Figure(), taken_file(".png"), overwrite=v),
    "write_report(overwrite)": lambda v: fmab.write_report(
        doors.DATA, taken_file(".html"), overwrite=v
    ),
    "ratings.ObservedRatings.save(overwrite)": lambda v: doors.given("ratings.from_table").save(
        taken_file(".npz"), overwrite=v
    ),
    "open_sweep(partial)": lambda v: fmab.open_sweep("nowhere", partial=v),
    "overview(descending)": lambda v: fmab.overview(doors.DATA, descending=v),
}


def call_of(door):
    """Returns what hands a value to an argument, all others being right."""
    name, field = door.rstrip(")").split("(")
    return CALLS.get(door) or (lambda value: getattr(fmab, name)(**{field: value}))


@pytest.mark.parametrize("door", [each for each in taken() if not each.endswith(ASKED)])
def test_what_is_no_truth_value_is_refused_by_name(door, tmp_path, monkeypatch):
    """Would catch a text that overwrites because it is not empty, at any public callable."""
    monkeypatch.chdir(tmp_path)
    field = door.rstrip(")").split("(")[1]
    for value in HOSTILE:
        if value is None and door in CHOOSES:
            continue
        with pytest.raises(Refusal) as refused:
            call_of(door)(value)
        assert refused.value.field.removeprefix("exchange.") == field, (door, value)
        assert refused.value.allowed == "True or False"
    assert {path.read_bytes() for path in tmp_path.iterdir()} <= {b"old"}


def test_the_battery_tries_arguments_that_are_there():
    """Would catch a renamed argument, and an inspection that finds none."""
    assert set(CALLS) | {"ucb1(pooled)"} <= set(taken())


@pytest.mark.parametrize(("word", "read_as"), [("true", True), ("False", False), ("yes", "yes")])
def test_the_command_line_reads_truth_values(word, read_as):
    """Would catch words that reach an algorithm as texts, which it refuses."""
    assert value_of(Flag(), word) is read_as
