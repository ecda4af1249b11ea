"""Every public function refuses hostile values in one line, or does with them what it documents."""

import inspect
import json
import os
from pathlib import Path

import doors
import fresh
import pytest

import fmab_jax as fmab
from fmab_jax import resources
from fmab_jax.algorithms.base import find_by_name
from fmab_jax.cli.main import main
from fmab_jax.core import problems
from fmab_jax.errors import Refusal

# Which doors of tests/doors.py let values in, and which ones; all else is refused.
LET_IN = {
    (
        "cdp_mab(rounds) / hdp_mab(components) / Problem.with_gap(gap) / Exchange(weights) / "
        "from_table(items) / from_table(users) / from_table(groups) / from_table(levels) / "
        "from_table(most_arms) / from_table(fill) / simulate(batch) / simulate(devices) / "
        "communication_cost(meter) / compare(labels) / sweep(until) / sweep(chunk) / "
        "sweep(batch) / sweep(devices) / plot_pareto(hue) / audit(agents) / audit(view) / "
        "overview(sort) / sweep(problem, 3 x 3)"
    ): "None",
    (
        "from_table(groups_seed) / Problem.fixed(seed) / Problem.fixed(root_seed) / "
        "simulate(root_seed) / confidence_band(seed) / lost_interval(lost) / sweep(root_seed) / "
        "Exchange(wait) / Exchange(vectors) / Exchange(numbers) / audit(delta) / audit(root_seed)"
    ): "0",
    (
        "cdp_mab(participation) / confidence_band(level) / compare(level) / "
        "until_precise(relative) / until_precise(level) / plot_runs(level) / "
        "compare_all(level) / audit(level) / write_report(level)"
    ): "5e-324",
    (
        "communication_cost(server_price) / communication_cost(peer_price) / "
        "plot_runs(server_price) / overview(server_price) / final_table(peer_price)"
    ): "0 / 10**30 / 2**64 / 5e-324 / Fraction(7, 3)",
    (
        "simulate(algorithm) / check_algorithm(algorithm) / privacy_ledger(algorithm) / "
        "audit(algorithm)"
    ): "RUN",
    "Exchange(links) / sweep(allow_changes) / Exchange(views) / overview(where)": "[] / ()",
    "cdp_mab(epsilon) / cdp_mab(epsilon_message) / single_mab(epsilon)": (
        "10**30 / 2**64 / 5e-324 / Fraction(7, 3) / None / np.float16('inf') / np.inf"
    ),
    "cdp_mab(schedule_gap) / overview(level) / final_table(level)": "5e-324 / None",
    (
        "simulate(sum_agents) / ddp_mab(private_waiting) / sweep(sum_agents) / Exchange(alone) / "
        "Exchange(exact) / Output(coordinate) / parameter(keyword) / "
        "save(overwrite) / export(overwrite) / save_figure(overwrite) / write_report(overwrite) / "
        "open_sweep(partial) / overview(descending)"
    ): "True",
    "simulate(progress) / sweep(progress)": "None / True",
    "check_algorithm(problem) / sweep(problem)": "None / PROBLEM",
    "sweep(horizon) / sweep(agents)": "{'a': 1}",
    "plot_runs(bounds)": "xr.Dataset() / None / {}",
    "open_sweep(chunks)": "None",
    "Problem(means)": "curves(np.zeros((1, 3))) / [[1]]",
    "Problem.heterogeneous(spread)": "0 / 5e-324",
    "Gaussian(sd)": "5e-324 / Fraction(7, 3)",
    "from_table(split)": (
        r"None / '0.5' / '\u0661\u0662' / 'a\0b' / 'a\0b.nc' / 10_000_000 * 'x' / "
        r"'a\nb\r\n\x1b[2Jc' / 'a\ud800.nc'"
    ),
    "from_table(smoothing)": "0 / 5e-324 / Fraction(7, 3)",
    "ObservedRatings.named(arms)": "-1 / 0 / [[1]]",
    "simulate(problem)": "PROBLEM",
    "check_algorithm(reference)": "None / int / deep / fmab.cdp_mab",
    "laplace_sum_epsilon(scale)": "10**30 / 2**64 / 5e-324 / Fraction(7, 3)",
    "sweep(algorithm)": "fmab.cdp_mab",
    "sweep(epsilon)": (
        "10**30 / 2**64 / 5e-324 / Fraction(7, 3) / None / "
        "np.array([Fraction(1, 2), None], object) / {'a': 1} / {None: None} / "
        "np.float16('inf') / np.inf"
    ),
    "sweep(participation)": "5e-324 / {'a': 1}",
    "sweep(components)": "None / {None: None}",
    "sweep(spread)": "0 / 5e-324 / {'a': 1}",
    "sweep(fixed_instance)": "0 / None / {'a': 1} / {None: None}",
    "sweep(schedule_gap)": (
        "5e-324 / None / np.array([Fraction(1, 2), None], object) / {'a': 1} / {None: None}"
    ),
    "sweep(instance_gap)": "None / np.array([Fraction(1, 2), None], object) / {None: None}",
    "sweep(store)": r"None / '0.5' / '\u0661\u0662' / 'a\nb\r\n\x1b[2Jc'",
    "sweep(worker)": "None / [3, 3]",
    "save(data)": "curves(np.zeros((3, 2))).to_dataset(name='regret') / xr.Dataset()",
    "export(data)": "curves(np.zeros((3, 2))).to_dataset(name='regret')",
    "overview(columns)": "None / [] / ()",
    "write_report(title)": (
        r"None / '0.5' / '\u0661\u0662' / 'a\0b' / 'a\0b.nc' / 'a\nb\r\n\x1b[2Jc' / 'a\ud800.nc'"
    ),
}
ACCEPTED = {
    door: set(values.split(" / "))
    for doors, values in LET_IN.items()
    for door in doors.split(" / ")
}


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
    algorithms = {find_by_name(row["name"]) for row in fmab.list_algorithms()}
    callables = {name: getattr(fmab, name) for name in fmab.__all__}
    callables = {name for name, f in callables.items() if callable(f) and f not in algorithms}
    callables = {name for name in callables if inspect.signature(getattr(fmab, name)).parameters}
    assert callables | {"ratings.from_table"} == set(doors.bases())
    assert set(ACCEPTED) <= set(outcomes) and len(outcomes) == 176
    assert {len(item) for item in outcomes.values()} == {106}


@pytest.mark.parametrize(
    "words",
    [
        "bounds cdp --agents 10000000 --arms 400 --spread 1",
        "run cdp --agents 10000000 --arms 400 --spread 1 --fixed-instance 0",
    ],
)
def test_means_that_do_not_fit_are_refused_before_they_are_drawn(words, monkeypatch, capsys):
    """Would catch means of 240 GB drawn without a look at the free memory."""
    monkeypatch.setattr(resources, "available_bytes", lambda: 10**10)
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
