"""The command line prints what its files hold, writes them whole, and starts without JAX."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import fmab_jax as fmab
from fmab_jax.algorithms.families.elimination import cdp_mab
from fmab_jax.analysis import theory
from fmab_jax.cli import main as cli
from fmab_jax.cli import sweep_commands
from fmab_jax.cli.main import main
from fmab_jax.plots.runs import plot_runs, save_figure
from fmab_jax.run import netcdf as store
from fmab_jax.run import simulation

COMMANDS = ("", "run", "run cdp", "run ddp", "run hdp", "run single", "bounds", "doctor")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    """A real result for tests of what happens around the simulation."""
    return fmab.simulate(fmab.cdp_mab(0.5), fmab.Problem.uniform(3, 4), 10**4, 16, times=5)


@pytest.fixture
def canned(result: xr.Dataset, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Replaces the simulation; returns what it was asked for."""
    asked: list[tuple[Any, ...]] = []

    def simulate(algorithm: Any, problem: Any, *numbers: Any, **options: Any) -> xr.Dataset:
        asked.append((algorithm, problem, *numbers, options))
        return result

    monkeypatch.setattr(simulation, "simulate", simulate)
    return asked


def said(capsys: pytest.CaptureFixture[str], words: str, status: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(shlex.split(words)) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def number(text: str) -> float:
    return float(text.replace(",", ""))


def rows(output: str) -> list[dict[str, Any]]:
    """Reads the table back: a run is a block of lines, its cells are as wide as the headings."""
    lines = output.split("\n")
    rule = next(i for i, line in enumerate(lines) if line.strip() and set(line) <= set(" ─"))
    end = next(i for i, line in enumerate(lines) if line.startswith("Regret"))
    blocks = "\n".join(line.rstrip() for line in lines[rule + 1 : end]).strip("\n").split("\n\n")
    found = []
    for block in blocks:
        first, second, *others = block.split("\n")
        head = re.fullmatch(
            r"\s*(\S+)\s+(\S+)\s+(\S+)\s+(none|\S+ \w+)\s+(\S+)\s+(\d+)/(\d+)\s+(\S+) s", first
        )
        tail = re.fullmatch(
            r"\s*(\S+)\s+\+- (\S+)\s+(\S+ [a-z]+)?\s+\[(\S+), (\S+)\]\s+(\S+)", second
        )
        assert head and tail, block
        links = [head[4], tail[3], *(line.strip() for line in others)]
        pairs = [text.split() for text in links if text and text != "none"]
        found.append(
            {
                "epsilon": head[1],
                "message": tail[1],
                "regret": number(head[2]),
                "half": number(tail[2]),
                "rounds": number(head[3]),
                "links": {meter: number(count) for count, meter in pairs},
                "cost": number(head[5]),
                "lost": (int(head[6]), int(head[7])),
                "interval": (number(tail[4]), number(tail[5])),
                "trials_per_s": number(tail[6]),
            }
        )
    return found


def check_row(row: dict[str, Any], path: str, level: float, prices: tuple[float, float]) -> None:
    """Compares a row with the file, by formulas of its own: Student t, beta quantiles, eq. (2)."""
    data = fmab.load(path)
    regret, n = data.regret.values[:, -1], data.sizes["seed"]
    near = {"rel": 5e-4, "abs": 1e-9}
    half = stats.t.ppf((1 + level) / 2, n - 1) * regret.std(ddof=1) / np.sqrt(n)
    assert row["regret"] == pytest.approx(regret.mean(), **near)
    assert row["half"] == pytest.approx(half, **near)
    assert row["rounds"] == pytest.approx(data.rounds.values.mean(), **near)
    assert row["trials_per_s"] == pytest.approx(data.attrs["trials_per_s"], **near)
    ends = {
        "server": data.server_links.values[:, -1].mean(),
        data.attrs["meter_bound"]: data.peer_links_bound.values[:, -1].mean(),
        data.attrs["meter_used"]: data.peer_links_used.values[:, -1].mean(),
    }
    for meter, links in row["links"].items():
        assert links == pytest.approx(ends[meter], **near), meter
    assert sum(row["links"].values()) == pytest.approx(sum(ends.values()), rel=5e-4)
    cost = prices[0] * ends["server"] + prices[1] * ends[data.attrs["meter_bound"]]
    assert row["cost"] == pytest.approx(cost, **near)
    lost = int(data.best_arm_lost.values.sum())
    assert row["lost"] == (lost, n)
    tail = (1 - level) / 2
    lower = stats.beta.ppf(tail, lost, n - lost + 1) if lost else 0.0
    upper = stats.beta.ppf(1 - tail, lost + 1, n - lost) if lost < n else 1.0
    assert row["interval"] == pytest.approx((lower, upper), rel=5e-3)
    assert float(row["epsilon"].replace("none", "inf")) == data.attrs["epsilon"]
    assert float(row["message"].replace("none", "inf")) == data.attrs["epsilon_message"]


def test_table_and_figure_show_what_the_files_hold(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a wrong column, interval, level, price or label, and files of other runs."""
    out, err = said(
        capsys,
        "run cdp --epsilon 0.5 none --agents 3 --arms 4 --horizon 1e4 --seeds 16 --times 5 "
        "--level 0.9 --server-price 25 --band pointwise --out eps",
    )
    assert err == ""
    assert sorted(path.name for path in folder.iterdir()) == [
        "eps-0.5.nc",
        "eps-none.nc",
        "eps.png",
    ]
    table = rows(out)
    assert [row["epsilon"] for row in table] == ["0.5", "none"]
    for row, name in zip(table, ("eps-0.5.nc", "eps-none.nc"), strict=True):
        check_row(row, name, 0.9, (25.0, 1.0))
        assert set(row["links"]) == {"server"}
    title = "CDP-MAB: agents M = 3, arms K = 4, slots T = 10,000, seeds 16"
    assert out.split("\n")[0].strip() == title
    assert [line for line in out.split("\n") if line.startswith("wrote")] == [
        "wrote eps-0.5.nc",
        "wrote eps-none.nc",
        "wrote eps.png",
    ]
    runs = {"ε = 0.5": fmab.load("eps-0.5.nc"), "no noise": fmab.load("eps-none.nc")}
    again = plot_runs(runs, level=0.9, kind="pointwise", server_price=25.0)
    assert save_figure(again, "again.png").read_bytes() == Path("eps.png").read_bytes()
    # The same run through Python.
    problem = fmab.Problem.uniform(agents=3, arms=4)
    data = fmab.simulate(fmab.cdp_mab(0.5), problem, 10**4, 16, times=5)
    np.testing.assert_array_equal(data.regret.values, fmab.load("eps-0.5.nc").regret.values)


def test_peer_links_are_shown_on_both_meters_and_priced_on_the_papers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch meters swapped, a server link in a graph, or the cost of the other meter."""
    common = "--agents 6 --arms 4 --horizon 1e4 --seeds 16 --times 5 --no-figure --peer-price 2 "
    out, _ = said(capsys, "run ddp --graph ring --epsilon-message 3 " + common)
    (row,) = rows(out)
    check_row(row, "fmab-ddp.nc", 0.95, (1.0, 2.0))
    assert set(row["links"]) == {"bound", "used"} and row["links"]["bound"] > row["links"]["used"]
    assert (row["epsilon"], row["message"]) == ("0.5", "3")
    # A triangle and a path of three agents: sinks collect without a wait, as a server would.
    out, _ = said(capsys, "run hdp --components 3:complete+3:path --server-price 50 " + common)
    (row,) = rows(out)
    check_row(row, "fmab-hdp.nc", 0.95, (50.0, 2.0))
    assert set(row["links"]) == {"server", "edges", "sac"}
    assert row["links"]["edges"] == pytest.approx(5 / 2 * row["links"]["server"], rel=1e-3)
    assert row["links"]["sac"] == pytest.approx(4 / 2 * row["links"]["server"], rel=1e-3)
    assert sorted(path.name for path in folder.iterdir()) == ["fmab-ddp.nc", "fmab-hdp.nc"]


def test_a_run_alone_builds_no_links(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch links, a cost or a leak of N epsilon in a run without messages to anybody."""
    words = "--agents 3 --arms 1 --horizon 100 --seeds 2 --times 5 --no-data --no-figure"
    (row,) = rows(said(capsys, "run single --epsilon 0.5 " + words)[0])
    assert (row["links"], row["cost"], row["epsilon"], row["message"]) == ({}, 0.0, "0.5", "0.5")
    assert list(folder.iterdir()) == []


def test_means_come_from_a_file(
    folder: Path, canned: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch --means ignored, --agents ignored for a shared row, or rows taken for arms."""
    (folder / "shared.csv").write_text("a,b\n0.9,0.1\n")
    np.savez(folder / "own.npz", means=[[0.9, 0.1], [0.7, 0.5], [0.8, 0.0]])
    said(capsys, "run cdp --means shared.csv --agents 3 --no-figure --no-data")
    said(capsys, "run cdp --means own.npz --no-figure --no-data")
    (_, shared, *_), (_, own, *_) = canned
    assert (shared.agents, shared.means.tolist()) == (3, [[0.9, 0.1]])
    assert (own.agents, own.means.tolist()) == (3, [[0.9, 0.1], [0.7, 0.5], [0.8, 0.0]])


def test_options_reach_the_simulation(
    canned: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch an option that is dropped, swapped with another or read as another number."""
    said(capsys, "run cdp --no-data --no-figure")
    algorithm, problem, horizon, seeds, options = canned.pop()
    assert (algorithm.epsilon, algorithm.participation, algorithm.rounds) == (1.0, 1.0, None)
    assert (problem.agents, problem.arms, problem.spread, problem.gap) == (50, 100, 0.0, None)
    assert (horizon, seeds) == (100_000, 1000)
    assert options == {"root_seed": 0, "times": 100, "spacing": "linear"}

    said(
        capsys,
        "run cdp --participation 0.4 --rounds 3 --gap 0.0625 --epsilon_message=5 --agents 7 "
        "--arms 10 --horizon 1e6 --seeds 2e3 --root-seed 4 --times 5 1e2 --log-time --spread 0.5 "
        "--smallest-gap 0.25 --no-data --no-figure",
    )
    algorithm, problem, horizon, seeds, options = canned.pop()
    found = algorithm.participation, algorithm.rounds, algorithm.gap, algorithm.epsilon_message
    assert found == (0.4, 3, 0.0625, 5.0)
    assert (problem.agents, problem.arms, problem.spread, problem.gap) == (7, 10, 0.5, 0.25)
    assert (horizon, seeds) == (10**6, 2000)
    assert options == {"root_seed": 4, "times": [5, 100], "spacing": "log"}

    said(capsys, "run ddp --graph regular-4 --epsilon 2 --no-data --no-figure")
    assert (canned[-1][0].graph, canned[-1][0].epsilon) == ("regular-4", 2.0)
    said(capsys, "run hdp --weights components --no-data --no-figure")
    algorithm, problem, *_ = canned[-1]
    assert (algorithm.components, algorithm.weights) == (
        "20,20,20,20,20:complete",
        "components",
    )
    assert problem.agents == 100

    said(capsys, "run cdp --arms 4 --fixed-instance 7 --root-seed 2 --no-data --no-figure")
    expected = fmab.Problem.uniform(50, 4).fixed(7, root_seed=2)
    np.testing.assert_array_equal(canned[-1][1].means, expected.means)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("run cdp", ["fmab-cdp.nc", "fmab-cdp.png"]),
        ("run hdp --no-data", ["fmab-hdp.png"]),
        ("run cdp --no-figure --epsilon 1 2.50", ["fmab-cdp-1.nc", "fmab-cdp-2.5.nc"]),
        (
            "run cdp --epsilon-message 5 10 --no-figure",
            ["fmab-cdp-message-10.nc", "fmab-cdp-message-5.nc"],
        ),
        ("run cdp --out a.b", ["a.b.nc", "a.b.png"]),
        ("run cdp --out figure.png", ["figure.nc", "figure.png"]),
        ("run cdp --out into", ["into/fmab-cdp.nc", "into/fmab-cdp.png"]),
        ("run cdp --out into/x", ["into/x.nc", "into/x.png"]),
    ],
)
def test_files_have_the_names_that_the_help_promises(
    words: str,
    names: list[str],
    folder: Path,
    canned: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Would catch results of two runs in one file, and files beside the folder that was named."""
    (folder / "into").mkdir()
    out, _ = said(capsys, words)
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert found == names
    told = [line.removeprefix("wrote ") for line in out.split("\n") if line.startswith("wrote")]
    assert sorted(told) == names


def test_older_files_are_replaced(
    folder: Path, canned: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch an older result kept under, or beside, the new one."""
    Path("x.nc").write_bytes(b"old")
    Path("x.png").write_bytes(b"old")
    said(capsys, "run cdp --out x")
    assert sorted(path.name for path in folder.iterdir()) == ["x.nc", "x.png"]
    assert fmab.load("x.nc").attrs["algorithm"] == "cdp"
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_keeps_whole_files_and_says_so(
    folder: Path,
    result: xr.Dataset,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Would catch a traceback, another exit status, or a file written in part."""
    runs = iter([result])

    def simulate(*_: Any, **__: Any) -> xr.Dataset:
        for run in runs:
            return run
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "simulate", simulate)
    out, err = said(capsys, "run cdp --epsilon 1 2", 130)
    assert (out, err) == ("", "fmab: interrupted; whole files written: fmab-cdp-1.nc\n")
    assert [path.name for path in folder.iterdir()] == ["fmab-cdp-1.nc"]
    np.testing.assert_array_equal(fmab.load("fmab-cdp-1.nc").regret, result.regret)
    out, err = said(capsys, "run cdp --epsilon 3", 130)
    assert (out, err) == ("", "fmab: interrupted; nothing written\n")


def test_a_full_disk_is_one_line_and_status_1(
    folder: Path,
    canned: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Would catch a full disk taken for bad input, a traceback, or a file left in part."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "fmab-cdp.nc")

    monkeypatch.setattr(store, "save", full)
    assert said(capsys, "run cdp", 1) == (
        "",
        "fmab: fmab-cdp.nc: No space left on device; nothing written\n",
    )
    assert list(folder.iterdir()) == []


def test_defects_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch an error of the package itself dressed up as the user's."""

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("zip() argument 2 is shorter than argument 1")

    monkeypatch.setattr(simulation, "simulate", broken)
    with pytest.raises(ValueError, match="shorter"):
        main(["run", "cdp"])


def test_output_is_plain_where_there_is_no_terminal(
    canned: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Would catch colours, or a table folded to the width of a terminal that is not there."""
    monkeypatch.setenv("COLUMNS", "30")
    words = "run hdp --components 53,24,10,6,7 --epsilon 0.1 1e-5 --no-data --no-figure"
    out, _ = said(capsys, words)
    assert "\x1b" not in out
    assert 80 < max(len(line) for line in out.split("\n")) <= 100
    assert len(rows(out)) == 2


def test_main_as_a_function_leaves_jax_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch the compilation cache switched on in somebody else's process."""
    before = dict(jax.config.values)
    said(capsys, "doctor")
    after = jax.config.values
    assert {name: value for name, value in before.items() if after[name] is not value} == {}


@pytest.mark.parametrize("words", ["", "--agents 70 --arms 5 --horizon 1e6 --seeds 1e5 --times 7"])
def test_doctor_shows_the_estimate(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch an estimate of another run than the one asked for."""
    out, err = said(capsys, "doctor " + words)
    assert err == ""
    agents, arms, horizon, seeds, points = (
        (70, 5, 10**6, 10**5, 7) if words else (50, 100, 10**5, 1000, 100)
    )
    assert (
        f"fmab run cdp, agents M = {agents}, arms K = {arms}, slots T = {horizon:,}, "
        f"{points} of them recorded, seeds {seeds:,}:\n" in out
    )
    for case, spread in (("agents alike", 0.0), ("agents apart", 1.0)):
        problem = fmab.Problem.heterogeneous(agents, arms, spread)
        cell = simulation.resolve(cdp_mab(1.0), problem, horizon, times=points)
        needs = simulation.estimate(cell, seeds, jax.local_devices())
        line = re.search(
            rf"^{case} +(.*): (\S+) x (\S+) seeds, (\S+) GB at work, (\S+) GB results$", out, re.M
        )
        assert line is not None
        assert (number(line[2]), number(line[3])) == (needs.batches, needs.batch)
        assert number(line[4]) == pytest.approx(needs.working_bytes / 1e9, rel=5e-3)
        assert number(line[5]) == pytest.approx(needs.result_bytes / 1e9, rel=5e-3)
    for name, version in simulation.versions().items():
        assert re.search(rf"^{name} +{re.escape(version)}$", out, re.M)
    assert re.search(r"^precision +float64 in simulations, float32 elsewhere$", out, re.M)


@pytest.mark.parametrize("fits", [True, False])
def test_doctor_and_simulate_agree_on_what_fits(
    fits: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a doctor that promises a run which is then refused, or the other way round."""
    problem = fmab.Problem.uniform(50, 100)
    cell = simulation.resolve(cdp_mab(1.0), problem, 10**5)
    needs = simulation.estimate(cell, 1000, jax.local_devices())
    limit = (needs.working_bytes + needs.result_bytes) / 0.9
    available = int(limit) + (10 if fits else -10)
    monkeypatch.setattr(simulation, "_available_bytes", lambda: available)

    class Started(Exception):
        """The run got past the memory check."""

    def executable(*_: Any) -> None:
        raise Started

    monkeypatch.setattr(simulation, "executable", executable)
    out, _ = said(capsys, "doctor")
    assert re.search(rf"^agents alike +{'fits' if fits else 'does not fit'}:", out, re.M)
    with pytest.raises(Started if fits else ValueError):
        fmab.simulate(cdp_mab(1.0), problem, 10**5, 1000)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_describes_and_its_examples_parse(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch examples that rot, a command without any, or options without a description."""
    out, err = said(capsys, f"{command} --help")
    assert err == ""
    assert out.startswith(f"usage: fmab {command}".strip())
    examples = [line.strip() for line in out.split("\n") if line.startswith("    fmab ")]
    assert 2 <= len(examples) <= (3 if command else 6)

    started: list[Any] = []
    monkeypatch.setattr(cli, "_simulate", lambda parsed, name, written: started.append(name))
    monkeypatch.setattr(cli, "_doctor", lambda parsed: started.append("doctor"))
    monkeypatch.setattr(cli, "_bounds", lambda parsed: started.append("bounds"))
    for name in ("sweep", "show", "plot"):
        note = partial(lambda name, *_: started.append(name), name)
        monkeypatch.setattr(sweep_commands, name, note)
    for example in examples:
        words = shlex.split(example)
        assert (words[0], main(words[1:])) == ("fmab", 0)
        assert words[2 if words[1] == "run" else 1] == started[-1]
        assert f"fmab {command}".strip() in example
    # An option with its placeholder and at once its default: a description lacks.
    assert not re.search(r"--[a-z-]+( [A-Z]+)?[│\s]*\(default", out)


def test_the_help_of_a_run_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch an option that only the source knows."""
    options = (
        "epsilon epsilon-message agents arms horizon seeds root-seed rounds gap means spread "
        "smallest-gap fixed-instance times log-time level band server-price peer-price out "
        "figure data participation"
    )
    out, _ = said(capsys, "run cdp --help")
    found = set(re.findall(r"^[│ ] +--([a-z-]+)", out, re.M))
    assert found == set(options.split())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch another version than the package's."""
    assert said(capsys, "--version") == (f"fmab {fmab.__version__}\n", "")


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    package = str(Path(fmab.__file__).parents[1])
    paths = filter(None, [package, os.environ.get("PYTHONPATH")])
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment,
    )


def test_help_version_and_wrong_words_need_no_jax() -> None:
    """Would catch an import that makes every typo wait for JAX."""
    script = """
import contextlib, io, json, sys
from fmab_jax.cli.main import main
status = []
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for words in ("--help", "run cdp --help", "doctor --help", "--version", "run cdp --agnets", ""):
        status.append(main(words.split()))
heavy = ("jax", "matplotlib", "xarray", "scipy", "networkx")
print(json.dumps([status, [name for name in heavy if name in sys.modules]]))
"""
    result = process("-c", script)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[0, 0, 0, 0, 2, 2], []]


def test_compiled_programs_are_kept_between_processes(folder: Path) -> None:
    """Would catch a cache that is never written, never found again, or fatal where it cannot be."""
    words = "-m fmab_jax run cdp --agents 2 --arms 2 --seeds 2 --times 1 --no-figure --no-data"
    kept = []
    for _ in range(2):
        ran = process(*words.split(), JAX_COMPILATION_CACHE_DIR="", XDG_CACHE_HOME=str(folder))
        assert (ran.returncode, ran.stderr) == (0, "")
        kept.append({path.name for path in (folder / "fmab_jax").glob("jit_one_batch*-cache")})
    # A second program would mean that the first was not found.
    assert len(kept[0]) == 1 and kept[0] == kept[1]
    (folder / "file").touch()
    nowhere = str(folder / "file" / "cache")
    ran = process("-m", "fmab_jax", "doctor", JAX_COMPILATION_CACHE_DIR=nowhere)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"^compiled programs +not kept$", ran.stdout, re.M)


@pytest.mark.parametrize("words", ["cdp --participation 0.4", "ddp --graph ring", "single"])
def test_bounds_are_those_of_the_theory(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch bounds of another instance, exchange or horizon than the one asked for."""
    options = "--agents 6 --arms 4 --horizon 1e5 --epsilon 0.5 --fixed-instance 3"
    out, err = said(capsys, f"bounds {words} {options}")
    assert err == ""
    name = words.split()[0]
    make = {"cdp": cdp_mab, "ddp": fmab.ddp_mab, "single": fmab.single_mab}[name]
    own = {"cdp": {"participation": 0.4}, "ddp": {"graph": "ring"}, "single": {}}[name]
    means = fmab.Problem.uniform(6, 4).fixed(3).means[0]
    table = make(0.5, **own).exchange(6)
    for place, bound in enumerate((theory.bounds, theory.closed_form)):
        found = bound(means.max() - means, table, 10**5, 0.5)
        for field in ("regret", "rounds", "server_links", "peer_links_bound", "epsilon_message"):
            line = re.search(rf"^{field.replace('_', ' ')} +(\S+) +(\S+)$", out, re.M)
            assert number(line[place + 1]) == pytest.approx(getattr(found, field), rel=5e-4)
