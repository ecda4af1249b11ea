"""The command line prints what its files hold, writes them whole, and names each run apart."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sizes
import xarray as xr
from fresh import surroundings
from spoken import number, said

import fmab_jax as fmab
from fmab_jax.algorithms import base
from fmab_jax.analysis import consensus, theory
from fmab_jax.cli import main as cli
from fmab_jax.cli import study_options
from fmab_jax.cli.options import Call, parse
from fmab_jax.plots.over_time import plot_runs
from fmab_jax.plots.saving import save_figure
from fmab_jax.run import compilation
from fmab_jax.sweeps import runner

NAMES = sorted(base.ALGORITHMS.by_name())
COMMANDS = (
    *("", "run", "sweep", "show", "plot", "compare", "report", "export"),
    *("bounds", "ledger", "list"),
    "doctor",
    *(f"run {name}" for name in NAMES),
    *(f"sweep {name}" for name in ("cdp", "hdp", "STUDY.toml")),
    "bounds ddp",
    "ledger cdp",
)
SMALL = f"{sizes.words(sizes.SMALL)} --horizon 1e4 --seeds 16 --times 5"
PLUGIN = (Path(__file__).parents[1] / "plugs_ucb2.py").read_text("utf-8")


@pytest.fixture(scope="module")
def result():
    """A real result for tests of what happens around the simulation."""
    return fmab.sweep("cdp", **sizes.SMALL, epsilon=0.5, horizon=10**4, seeds=16, times=5)


@pytest.fixture
def asked(result, monkeypatch):
    """Replaces the simulation; returns the studies that it was asked for."""
    studies: list[Any] = []

    def run(study: Any, **_: Any) -> xr.Dataset:
        studies.append(study)
        return result

    monkeypatch.setattr(runner, "run", run)
    return studies


def test_a_run_writes_what_python_computes(folder, capsys):
    """Would catch a list that is no axis, a file of another run, and options that do not arrive."""
    options = "--level 0.9 --server-price 25 --band pointwise --out eps"
    out, err = said(capsys, f"run cdp --epsilon 0.5 none {SMALL} {options}")
    names = ["eps.nc", "eps.png", "eps.txt"]
    assert err == "" and sorted(path.name for path in folder.iterdir()) == names
    assert [line for line in out.split("\n") if line.startswith("wrote")] == [
        f"wrote {name}" for name in names
    ]
    grid = dict(epsilon=[0.5, None], horizon=10**4, seeds=16, times=5)
    data = fmab.sweep(fmab.cdp_mab, fmab.Problem.uniform(4, 3), **grid)
    written = fmab.load("eps.nc")
    assert written.epsilon.values.tolist() == [0.5, "none"]
    np.testing.assert_array_equal(written.regret.values, data.regret.values)
    table = fmab.overview(written, level=0.9, server_price=25)
    assert all(text in out for text in table.iloc[1]) and table.attrs["title"] in out
    second = plot_runs(data, level=0.9, kind="pointwise")
    assert save_figure(second, "again.png").read_bytes() == Path("eps.png").read_bytes()


def test_means_come_from_a_file(folder, asked, capsys):
    """Would catch --means ignored, --agents ignored for a shared row, or rows taken for arms."""
    (folder / "shared.csv").write_text("a,b\n0.9,0.1\n")
    np.savez(folder / "own.npz", means=[[0.9, 0.1], [0.7, 0.5], [0.8, 0.0]])
    said(capsys, "run cdp --means shared.csv --agents 3 --no-figure --no-data")
    said(capsys, "run hdp --means own.npz --no-figure --no-data")
    said(capsys, "run cdp --means shared.csv --agents 3 --means-error 0.1 --no-figure --no-data")
    line = "--agents: must be given with shared.csv, whose one row all agents share; "
    for words in ("run cdp", "sweep cdp", "bounds cdp"):
        _, err = said(capsys, f"{words} --means shared.csv", 2)
        assert err.startswith(f"fmab: {line}") and "agents=50" in err
    _, err = said(capsys, "run cdp --means-error 0.1", 2)
    assert err.startswith("fmab: --means-error 0.1: must be given with means; name a file")
    shared, custom, unsure = (study.points[0].config.problem for study in asked)
    assert unsure == fmab.Problem([0.9, 0.1], 3, means_error=0.1) != shared
    assert (shared.agents, shared.means.tolist()) == (3, [[0.9, 0.1]])
    assert (custom.agents, custom.means.tolist()) == (3, [[0.9, 0.1], [0.7, 0.5], [0.8, 0.0]])


def test_too_many_curves_are_refused(folder, capsys):
    """Would catch 30 curves in one figure."""
    _, err = said(capsys, f"run cdp --epsilon {' '.join(map(str, range(1, 31)))} {SMALL}", 2)
    assert err.startswith("fmab: configurations=30: must be at most 28 in a figure; add --no-figu")


LONG = " ".join(f"0.{number}" for number in range(101, 125))
# Runs that differ in one option.
APART = f"""\
cdp; cdp --participation 0.4 --rounds 3; cdp --participation 0.4001 --rounds 3; hdp; \
cdp --epsilon 1 2.50; cdp --seeds 20; cdp --root-seed 20; cdp --times 20; cdp --epsilon {LONG}; \
cdp --epsilon {LONG} --band pointwise; cdp --epsilon {LONG} --server-price 25; cdp --level 0.9; \
cdp --means a.csv; cdp --means b.csv; ddp --agents 3 --graph a.txt; cdp kl_se --leak 1"""


def default_name(words: str) -> str:
    """Returns the name of the figure that a run without --out would write."""
    module, command = cli.find(shlex.split(words))
    options, values = parse(command)
    _, study = study_options.build_study(values, command.algorithms)
    return module._choose_paths(Call(options, command, [], values, [], []), study)[0].name


def test_no_two_different_runs_have_one_name(folder):
    """Would catch a setting that the name of a file forgets."""
    Path("a.csv").write_text("0.9,0.1\n0.8,0.2\n")
    Path("b.csv").write_text("0.9,0.1\n0.8,0.3\n")
    Path("a.txt").write_text("0 1\n1 2\n")
    names = {words: default_name(f"run {words}") for words in APART.split("; ")}
    assert len(set(names.values())) == len(names)
    assert Path(names["cdp"]).stem == "fmab-cdp"
    # Eight digits of a hash follow.
    assert names["cdp --epsilon 1 2.50"].startswith("fmab-cdp-epsilon-1-2.5-")
    assert default_name("run cdp --overwrite") == names["cdp"]
    # A file of the same name that holds something else.
    Path("a.txt").write_text("0 1\n1 2\n0 2\n")
    words = "ddp --agents 3 --graph a.txt"
    assert default_name(f"run {words}") != names[words]


def test_older_files_are_replaced_only_on_request(folder, asked, capsys):
    """Would catch a result that is lost to another, or an older one kept beside the new one."""
    Path("x.nc").write_bytes(b"old")
    for command in ("run cdp --out x", "run cdp --out x.png"):
        _, err = said(capsys, command, 2)
        assert err.startswith("fmab: --out x.nc: must be a new name; ") and "overwrite" in err
    assert asked == [] and Path("x.nc").read_bytes() == b"old" and not Path("x.png").exists()
    # What is not written is not in the way.
    said(capsys, "run cdp --out x --no-data")
    said(capsys, "run cdp --out x --overwrite")
    assert sorted(path.name for path in folder.iterdir()) == ["x.nc", "x.png", "x.txt"]
    assert fmab.load("x.nc").attrs["algorithm"] == "cdp"
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_describes_and_its_examples_parse(command, folder, capsys):
    """Would catch examples that rot, a command without any, or options without a description."""
    for name in ("my_ucb.py", "mine.py", "my_noise.py"):
        Path(name).write_text(PLUGIN)
    out, err = said(capsys, f"{command.replace('STUDY.toml', 'study.toml')} --help")
    assert err == ""
    assert out.startswith(f"usage: fmab {command}".strip())
    examples = [line.strip() for line in out.split("\n") if line.startswith("    fmab ")]
    assert 1 <= len(examples) <= 6
    for example in examples:
        words = shlex.split(example)
        module, actual = cli.find(words[1:])
        options, values = cli.parse(actual)
        assert words[0] == "fmab" and module.__name__ == f"fmab_jax.cli.{words[1]}"
        assert f"fmab {command.removesuffix(' STUDY.toml')}".strip() in example
        for option in (word for word in words if word.startswith("--") and word != "--plugin"):
            name = option[2:].removeprefix("no-").replace("-", "_")
            assert (vars(options) | values)[name] not in (None, ())
    # An option with its placeholder and at once its default: a description lacks.
    assert not re.search(r"--[a-z-]+( [A-Z]+)?[│\s]*\(default", out)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize(
    ("redirected", "status", "told"),
    [
        (">/dev/full", 1, "fmab: No space left on device; whole files written: x.nc\n"),
        pytest.param(">&-", 0, "", marks=pytest.mark.slow),
    ],
)
def test_only_results_decide_how_a_run_ends(redirected, status, told, folder):
    """Would catch a lost table taken for success, or a table that nobody reads ending a run."""
    words = f"-m fmab_jax run cdp {SMALL} --out x --no-figure"
    line = f"{shlex.quote(sys.executable)} {words} {redirected}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=surroundings())
    # A run that takes long says so.
    errors = [line for line in ran.stderr.splitlines() if not line.startswith("running ")]
    assert (ran.returncode, errors) == (status, told.splitlines())
    assert fmab.load("x.nc").sizes["seed"] == 16


@pytest.mark.parametrize(
    ("words", "rounds"),
    [
        ("cdp --participation 0.4", 3),
        ("cdp --participation 0.4 --spread 0.5", None),
        ("ddp --graph ring --spread 0.5", 3),
        ("single", None),
    ],
)
def test_bounds_are_those_of_the_theory(words, rounds, capsys):
    """Would catch bounds of another instance, exchange, budget or horizon than was asked for."""
    options = "--agents 6 --arms 4 --horizon 1e5 --epsilon 0.5 --fixed-instance 3"
    options += "" if rounds is None else f" --rounds {rounds} --schedule-gap 0.25"
    out, err = said(capsys, f"bounds {words} {options}")
    assert err == ""
    name = words.split()[0]
    custom = {"cdp": {"participation": 0.4}, "ddp": {"graph": "ring"}, "single": {}}[name]
    spread = 0.5 if "--spread" in words else 0.0
    means = fmab.Problem.heterogeneous(6, 4, spread).fixed(3).means.mean(axis=0)
    table = base.ALGORITHMS.find(name)(0.5, **custom).exchange(6)
    settings = {} if rounds is None else {"rounds": rounds, "schedule_gap": 0.25}
    settings["heterogeneous"] = spread > 0
    assert f"smallest gap {np.diff(np.sort(means))[-1]:.4g}\n" in out
    for place, make in enumerate((theory.bounds, theory.closed_form)):
        actual = make(means.max() - means, table, 10**5, 0.5, **settings)
        for field in ("regret", "rounds", "best_arm_lost", "epsilon_message"):
            line = re.search(rf"^ {field.replace('_', ' ')} +(\S+) +(\S+)$", out, re.M)
            assert number(line[place + 1]) == pytest.approx(getattr(actual, field), rel=5e-4)
    # Agents that differ have no such yardstick.
    least = re.search(r"loses about (\S+) or more", out)
    assert (least is None) == (spread > 0)
    if least is not None:
        alone = name == "single"
        expected = theory.lai_robbins(means, 10**5, 6, alone=alone)
        assert number(least[1]) == pytest.approx(expected, rel=5e-3)


def test_bounds_of_ces_are_those_of_its_source(capsys):
    """Would catch the columns of another algorithm, and another graph than was asked for."""
    out, err = said(
        capsys, "bounds ces --graph ring --agents 5 --arms 4 --horizon 1e4 --spread 0.5"
    )
    assert "CES" in out and "ring" in out and not err
    means = fmab.Problem(agents=5, arms=4, spread=0.5).fixed(0).means.mean(axis=0)
    given = means.max() - means, fmab.ces("ring"), 5, 10**4
    for place, make in enumerate((consensus.bounds, consensus.closed_form)):
        found = make(*given)
        for name, value in (("regret", found.regret), ("links, peer", found.links["peer"])):
            line = re.search(rf"^ {name} +(\S+) +(\S+)$", out, re.M)
            assert number(line[place + 1]) == pytest.approx(value, rel=1e-3)


def test_bounds_are_of_the_means_of_a_root_seed(capsys):
    """Would catch bounds of the means of root seed 0 under another's heading."""
    gap = np.ptp(fmab.Problem.uniform(2, 2).fixed(0, root_seed=5).means)
    out, _ = said(capsys, "bounds cdp --epsilon 1 --agents 2 --arms 2 --root-seed 5")
    assert f", root seed 5, smallest gap {gap:.4g}\n" in out


def test_bounds_say_the_gap_once(capsys):
    """Would catch a prescribed gap that is said again beside that of the means."""
    out, _ = said(capsys, "bounds cdp --epsilon 1 --agents 2 --arms 2 --instance-gap 0.25")
    assert out.count("gap") == 1 and "slots, smallest gap 0.25\n" in out


def test_a_dry_run_computes_and_writes_nothing(folder, capsys, monkeypatch):
    """Would catch a plan that compiles or runs anything, or takes a name."""
    monkeypatch.setattr(compilation, "compile_program", None)
    out, err = said(capsys, f"run cdp {SMALL} --epsilon 0.5 1 --dry-run")
    assert out == "" and err.startswith("2 configurations, 32 trials: 1 compilation, ")
    assert err.count("\n") == 1 and list(folder.iterdir()) == []
