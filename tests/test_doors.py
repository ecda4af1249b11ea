"""Every public function refuses hostile values in one line, or does with them what it documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fmab_jax import resources
from fmab_jax.cli.main import main
from fmab_jax.core import problems
from fmab_jax.errors import Refusal

PACKAGE = Path(__file__).parents[1]

# What each door lets through, out of the values of tests/doors.py; all else ends in a refusal.
ACCEPTED: dict[str, set[str]] = {
    "cdp_mab(epsilon)": {"None", "10**30", "2**64", "inf", "5e-324", "float16 inf", "Fraction"},
    "cdp_mab(epsilon_message)": {
        "None",
        "10**30",
        "2**64",
        "inf",
        "5e-324",
        "float16 inf",
        "Fraction",
    },
    "cdp_mab(rounds)": {"None"},
    "cdp_mab(schedule_gap)": {"None", "5e-324"},
    "cdp_mab(participation)": {"5e-324"},
    "ddp_mab(graph)": set(),
    "hdp_mab(components)": {"None"},
    "hdp_mab(weights)": set(),
    "single_mab(epsilon)": {"None", "10**30", "2**64", "inf", "5e-324", "float16 inf", "Fraction"},
    "Problem(means)": {"list of lists", "DataArray of one seed"},
    "Problem(means, 3)": set(),
    "Problem(agents)": set(),
    "Problem.uniform(agents)": set(),
    "Problem.uniform(arms)": set(),
    "Problem.heterogeneous(spread)": {"0", "5e-324"},
    "Problem.with_gap(gap)": {"None"},
    "Problem.uniform(rewards)": set(),
    "Problem.ratings(levels)": set(),
    "Problem.ratings(probabilities)": set(),
    "Gaussian(sd)": {"5e-324", "Fraction"},
    "Ratings(levels)": set(),
    "Problem.from_file(path)": set(),
    "from_table(path)": set(),
    "from_table(agent)": set(),
    "from_table(value)": set(),
    "from_table(layout)": {"None"},
    "from_table(items)": {"None"},
    "from_table(users)": {"None"},
    "from_table(split)": {
        "None",
        "text",
        "text Arabic",
        "text NUL",
        "text NUL.nc",
        "text surrogate",
        "text of 10 MB",
        "text of lines",
    },
    "from_table(groups)": {"None"},
    "from_table(groups_seed)": {"0"},
    "from_table(levels)": {"None"},
    "from_table(most_arms)": {"None"},
    "from_table(least_per_agent)": set(),
    "from_table(least_per_cell)": set(),
    "from_table(smoothing)": {"0", "5e-324", "Fraction"},
    "from_table(toward)": set(),
    "from_table(fill)": {"None"},
    "ObservedRatings.named(arms)": {"0", "-1", "list of lists"},
    "ObservedRatings.save(path)": set(),
    "Problem.fixed(seed)": {"0"},
    "Problem.fixed(root_seed)": {"0"},
    "simulate(algorithm)": {"algorithm"},
    "simulate(problem)": {"Problem"},
    "simulate(horizon)": set(),
    "simulate(seeds)": set(),
    "simulate(root_seed)": {"0"},
    "simulate(times)": set(),
    "simulate(spacing)": set(),
    "simulate(batch)": {"None"},
    "simulate(sum_agents)": {"True"},
    "simulate(devices)": {"None"},
    "check_algorithm(algorithm)": {"algorithm"},
    "check_algorithm(problem)": {"None", "Problem"},
    "check_algorithm(horizon)": set(),
    "check_algorithm(seeds)": set(),
    "check_algorithm(reference)": {"None", "function", "class", "maker"},
    "check_algorithm(runs)": set(),
    "Exchange(agents)": set(),
    "Exchange(weights)": set(),
    "Exchange(links)": {"list empty", "tuple empty"},
    "communication_cost(data)": set(),
    "communication_cost(server_price)": {"0", "10**30", "2**64", "5e-324", "Fraction"},
    "communication_cost(peer_price)": {"0", "10**30", "2**64", "5e-324", "Fraction"},
    "communication_cost(meter)": {"None"},
    "ddp_mab(private_waiting)": {"True"},
    "privacy_ledger(algorithm)": {"algorithm"},
    "privacy_ledger(agents)": set(),
    "privacy_ledger(delta)": set(),
    "laplace_sum_epsilon(scale)": {"10**30", "2**64", "5e-324", "Fraction"},
    "confidence_band(values)": set(),
    "confidence_band(level)": {"5e-324"},
    "confidence_band(kind)": set(),
    "confidence_band(resamples)": set(),
    "confidence_band(seed)": {"0"},
    "lost_interval(lost)": {"0"},
    "lost_interval(seeds)": set(),
    "paired_difference(first)": set(),
    "paired_difference(second)": set(),
    "compare(first)": set(),
    "compare(second)": set(),
    "compare(level)": {"5e-324"},
    "compare(labels)": {"None"},
    "compare_all(data)": set(),
    "until_precise(relative)": {"5e-324"},
    "until_precise(level)": {"5e-324"},
    "until_precise(max_seeds)": set(),
    "sweep(algorithm)": {"maker"},
    "sweep(problem)": {"None", "Problem"},
    "sweep(epsilon)": {
        "None",
        "10**30",
        "2**64",
        "inf",
        "5e-324",
        "float16 inf",
        "Fraction",
        "array of objects",
        "dict",
        "dict of None",
    },
    "sweep(participation)": {"5e-324", "dict"},
    "sweep(graph)": set(),
    "sweep(components)": {"None", "list nested", "dict of None"},
    "sweep(horizon)": {"dict"},
    "sweep(seeds)": set(),
    "sweep(agents)": {"dict"},
    "sweep(spread)": {"0", "5e-324", "dict"},
    "sweep(fixed_instance)": {"None", "0", "dict", "dict of None"},
    "sweep(schedule_gap)": {"None", "5e-324", "array of objects", "dict", "dict of None"},
    "sweep(instance_gap)": {"None", "array of objects", "dict of None"},
    "sweep(rewards)": set(),
    "sweep(root_seed)": {"0"},
    "sweep(times)": set(),
    "sweep(spacing)": set(),
    "sweep(sum_agents)": {"True"},
    "sweep(keep)": set(),
    "sweep(until)": {"None"},
    "sweep(store)": {"None", "text", "text Arabic", "text of lines"},
    "sweep(worker)": {"None", "list twice"},
    "sweep(allow_changes)": {"list empty", "tuple empty"},
    "sweep(chunk)": {"None"},
    "sweep(batch)": {"None"},
    "sweep(devices)": {"None"},
    "open_sweep(path)": set(),
    "final_table(data)": set(),
    "save(data)": {"Dataset empty", "Dataset bare"},
    "save(path)": set(),
    "load(path)": set(),
    "export(data)": {"Dataset bare"},
    "export(path)": set(),
    "plot_runs(runs)": set(),
    "plot_runs({'a': run})": set(),
    "plot_runs(level)": {"5e-324"},
    "plot_runs(kind)": set(),
    "plot_runs(server_price)": {"0", "10**30", "2**64", "5e-324", "Fraction"},
    "plot_runs(bounds)": {"None", "dict empty", "Dataset empty"},
    "plot_runs(bounds of a)": set(),
    "plot_parameter(finals)": set(),
    "plot_parameter(x)": set(),
    "plot_parameter(hue)": set(),
    "plot_parameter(metric)": set(),
    "plot_heat(finals)": set(),
    "plot_heat(y)": set(),
    "plot_pareto(finals)": set(),
    "plot_pareto(hue)": {"None"},
    "save_figure(figure)": set(),
    "save_figure(path)": set(),
    "Exchange(reporting)": set(),
    "Exchange(wait)": {"0"},
    "Exchange(vectors)": {"0"},
    "Exchange(numbers)": {"0"},
    "Exchange(views)": {"list empty", "tuple empty"},
    "compare_all(level)": {"5e-324"},
    "audit(algorithm)": {"algorithm"},
    "audit(agents)": {"None"},
    "audit(view)": {"None"},
    "audit(delta)": {"0"},
    "audit(runs)": set(),
    "audit(level)": {"5e-324"},
    "audit(root_seed)": {"0"},
    "overview(data)": set(),
    "overview(level)": {"None", "5e-324"},
    "overview(server_price)": {"0", "10**30", "2**64", "5e-324", "Fraction"},
    "overview(sort)": {"None"},
    "overview(where)": {"list empty", "tuple empty"},
    "overview(columns)": {"None", "list empty", "tuple empty"},
    "overview(arms)": {"None"},
    "overview().write(form)": set(),
    "sweep(problem, 3 x 3)": {"None"},
    "open_sweep(chunks)": {"None", "dict empty", "Dataset empty"},
    "open_sweep(chunks of seeds)": set(),
    "final_table(level)": {"None", "5e-324"},
    "final_table(peer_price)": {"0", "10**30", "2**64", "5e-324", "Fraction"},
    "write_report(title)": {
        "None",
        "text",
        "text Arabic",
        "text NUL",
        "text NUL.nc",
        "text surrogate",
        "text of lines",
    },
    "write_report(level)": {"5e-324"},
    "write_report(sources)": set(),
    "write_report(out)": set(),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Returns what became of every value at every door, in a process without the tests' hooks."""
    paths = filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PACKAGE / "tests" / "doors.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("doors"),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    # Of a value that hangs, the last lines say at which door.
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("door", ACCEPTED)
def test_a_door_refuses_what_it_does_not_document(
    door: str, outcomes: dict[str, dict[str, str]]
) -> None:
    """Would catch a traceback, a hang, gigabytes, or a value that is read as another one."""
    through = {value for value, end in outcomes[door].items() if end in ("accepted", "started")}
    strange = {v: end for v, end in outcomes[door].items() if v not in through and end != "refused"}
    assert not strange
    assert through == ACCEPTED[door]


def test_every_door_and_every_value_was_tried(outcomes: dict[str, dict[str, str]]) -> None:
    """Would catch a door without a line in the table, and a process that ended early."""
    assert set(outcomes) == set(ACCEPTED)
    assert {len(each) for each in outcomes.values()} == {106}


@pytest.mark.parametrize(
    "words",
    [
        "bounds cdp --agents 10000000 --arms 400 --spread 1",
        "run cdp --agents 10000000 --arms 400 --spread 1 --fixed-instance 0",
    ],
)
def test_means_that_do_not_fit_are_refused_before_they_are_drawn(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch 32 GB of means drawn without a look at the free memory."""
    monkeypatch.setattr(resources, "available_bytes", lambda: 10**10)
    monkeypatch.setattr(problems.BoundProblem, "draw", None)
    assert main(words.split()) == 2
    assert capsys.readouterr().err == (
        "fmab: memory='640.0 GB': must be at most 90% of the 10.0 GB available; "
        "use fewer agents or arms\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told in other units")
def test_the_estimate_of_drawn_means_is_what_they_take() -> None:
    """Would catch an estimate below the peak, or one that refuses what fits five times."""
    # Sampled, since some systems tell a peak only now and then.
    script = (
        "import os, threading, fmab_jax as fmab\n"
        "pages = lambda: int(open('/proc/self/statm').read().split()[1])\n"
        "fmab.Problem.heterogeneous(10, 10).fixed(0)\n"
        "before, seen, done = pages(), [], threading.Event()\n"
        "def watch():\n"
        "    while not done.wait(0.002): seen.append(pages())\n"
        "watcher = threading.Thread(target=watch)\n"
        "watcher.start()\n"
        "fmab.Problem.heterogeneous(100_000, 100).fixed(0)\n"
        "done.set()\n"
        "watcher.join()\n"
        "print((max(seen) - before) * os.sysconf('SC_PAGE_SIZE') / 1e7)\n"
    )
    settings = os.environ | {"PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=settings
    )
    assert problems._BYTES_PER_MEAN / 5 < float(done.stdout) < problems._BYTES_PER_MEAN


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--epsilon 1e400", "--epsilon 1e400: must be a number in (0, 1e+100]"),
        ("--epsilon 1e308", "--epsilon 1e+308: must be a number in (0, 1e+100]"),
        ("--epsilon 1e-99999999999999999999", "--epsilon 1e-99999999999999999999: must be a num"),
        ("--epsilon \u0131nf", "--epsilon \u0131nf: must be a number in (0, 1e+100]"),
        ("--horizon 1_0", "--horizon 1_0: must be a whole number in "),
        ("--seeds \u0661\u0662", "--seeds \u0661\u0662: must be a whole number in "),
    ],
)
def test_a_number_that_is_none_is_refused_as_typed(
    words: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a traceback, an overflow read as no noise, or digits that nobody typed."""
    assert main(["run", "cdp", *words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"fmab: {shown}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_means_in_a_pipe_are_refused(tmp_path: Path) -> None:
    """Would catch a pipe, or a link to one, that is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("means.csv", "means.npz"):
        (tmp_path / name).symlink_to("pipe")
        with pytest.raises(Refusal, match="it is a pipe or a device: copy its content$"):
            problems.Problem.from_file(tmp_path / name)
