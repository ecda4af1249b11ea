"""The commands of sweeps: what they print, write and refuse, and that a kill costs nothing."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sizes
from spoken import said

import fmab_jax as fmab
from fmab_jax.cli.main import main
from fmab_jax.sweeps import runner
from fmab_jax.sweeps.results import open_sweep
from fmab_jax.sweeps.store import Store

# Bits of other processes are compared with those of this one.
pytestmark = pytest.mark.as_users_have_it

SMALL = f"{sizes.words(sizes.SMALL)} --horizon 2e4 --times 10 --chunk 8"
GRID = f"sweep cdp {SMALL} --epsilon 0.5 none --rounds none 2 --seeds 20"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders ``eps`` and ``sum`` of a sweep, and what the first said."""
    place = tmp_path_factory.mktemp("made")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(shlex.split(f"{GRID} --out {place / 'eps'}")) == 0
        said_first = out.getvalue()
        assert main(shlex.split(f"{GRID} --keep summary --out {place / 'sum'}")) == 0
        assert main(shlex.split(f"{GRID} --worker 1/2 --out {place / 'half'}")) == 0
    return place, said_first


@pytest.fixture
def eps(made, folder):
    """The sweep's results, whose store lies in this folder under ``eps``."""
    for name in ("eps", "sum", "half"):
        shutil.copytree(made[0] / name, folder / name)
    return open_sweep(folder / "eps").load()


def files(store: Path | str) -> dict[str, str]:
    """Returns the SHA-256 of each chunk."""
    chunks = sorted((Path(store) / "chunks").glob("*.npz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in chunks}


def shown(capsys, words):
    """Returns the rows that `fmab show` writes as CSV, which has all digits."""
    return list(csv.DictReader(io.StringIO(said(capsys, f"show {words} --format csv").out)))


def labels(rows):
    return [tuple(str(as_label(row[name])) for name in ("epsilon", "rounds")) for row in rows]


def assert_rows(rows, data, **how):
    """Asserts that rows hold the table of results."""
    frame = fmab.table(data, **how)
    names = ("regret", "regret_lower", "regret_upper", "cost", "rounds_made", "seeds")
    for name in (*names, "best_arm_lost", "best_arm_lost_upper", "links_server"):
        values = [float(row[name]) for row in rows]
        assert values == pytest.approx(frame[name].tolist(), rel=1e-12), name


def as_label(text):
    return "none" if text == "inf" else float(text)


def test_a_sweep_keeps_what_python_computes(made, eps):
    """Would catch a chunk of another cell, and an option that does not arrive."""
    grid = dict(epsilon=[0.5, None], rounds=[None, 2], horizon=20_000, times=10, seeds=20)
    direct = fmab.sweep(fmab.cdp_mab, agents=4, arms=3, **grid)
    np.testing.assert_array_equal(direct.regret, eps.regret)
    assert len(files("eps")) == 12 and made[1].startswith(f"{made[0] / 'eps'}: 4 configurations, ")


def test_show_sorts_and_selects(eps, capsys):
    """Would catch rows in another order, cells left out or added, or another level or price."""
    prices = {"level": 0.9, "server_price": 3, "peer_price": 2}
    rows = shown(capsys, "eps --level 0.9 --server-price 3 --peer-price 2")
    assert_rows(rows, eps, **prices)
    assert_rows(shown(capsys, "sum"), eps)
    for order, reverse in (("regret", False), ("cost --descending", True)):
        rows = shown(capsys, f"eps --sort {order}")
        values = [float(row[order.split()[0]]) for row in rows]
        assert values == sorted(values, reverse=reverse) and len(set(values)) > 1
    rows = shown(capsys, "eps --sort rounds")
    assert labels(rows) == [("0.5", "2.0"), ("none", "2.0"), ("0.5", "none"), ("none", "none")]
    rows = shown(capsys, "eps --select epsilon=0.50 rounds=none")
    assert labels(rows) == [("0.5", "none")]
    assert_rows(rows, eps.isel(epsilon=[0], rounds=[0]))
    rows = shown(capsys, "eps --select rounds=2 epsilon=None epsilon=.5")
    assert_rows(rows, eps.isel(rounds=[1]))


def test_show_says_what_is_missing(eps, capsys):
    """Would catch an unfinished sweep refused, shown as complete, or sorted by what is missing."""
    assert open_sweep("half", partial=True).seeds.values.tolist() == [[8, 0], [8, 0]]
    rows = shown(capsys, "half")
    assert [int(float(row["seeds"])) for row in rows] == [8, 8]
    assert labels(rows) == [("0.5", "none"), ("none", "none")]
    expected = eps.regret.values[1, 0, :8, -1].mean()
    assert float(rows[1]["regret"]) == pytest.approx(expected, rel=1e-12)
    out = said(capsys, "show half").out
    assert "2 configurations not begun yet: run the sweep's command again." in out
    for order, first in (("", 1), ("--descending", 0)):
        ordered = shown(capsys, f"half --sort regret {order}")
        assert ordered == [rows[first], rows[1 - first]]
    assert said(capsys, "export half x.csv", 2).err.startswith("fmab: half: must be finished; ")
    assert not Path("x.csv").exists()


@pytest.mark.parametrize(
    "words", ["--x epsilon --hue rounds", "--x rounds --y epsilon", "--pareto"]
)
def test_figures_are_those_of_the_package(words, eps, capsys):
    """Would catch axes swapped, or a metric, level or price that does not reach the figure."""
    options = "--level 0.9 --server-price 3"
    metric = "" if words == "--pareto" else "--metric cost"
    out, _ = said(capsys, f"plot eps {words} {metric} {options} --out fig.png")
    assert out == "wrote fig.png\nwrote fig.txt\n"
    frame = fmab.table(eps, level=0.9, server_price=3)
    if "--hue" in words:
        figure = fmab.plot_parameter(frame, "epsilon", "rounds", metric="cost")
    elif "--y" in words:
        figure = fmab.plot_heat(frame, "rounds", "epsilon", metric="cost")
    else:
        figure = fmab.plot_pareto(frame)
    expected = fmab.save_figure(figure, "direct.png").read_bytes()
    assert Path("fig.png").read_bytes() == expected


def test_export_writes_what_was_swept(eps, capsys):
    """Would catch another folder's results, or an older file that is overwritten unasked."""
    said(capsys, "export eps x.nc")
    np.testing.assert_array_equal(fmab.load("x.nc").regret, eps.regret)
    assert said(capsys, "export sum x.nc", 2).err.startswith("fmab: x.nc: must be a new name; ")
    said(capsys, "export sum x.nc --overwrite")
    assert fmab.load("x.nc").attrs["keep"] == "summary"


@pytest.mark.parametrize(
    "words, start",
    {
        "plot eps": "fmab plot: must be given one of --x, --curves, --pareto; ",
        "plot eps --curves --y epsilon": "--y epsilon: must be left out with --curves; drop one",
        "plot eps --curves --peer-price 3": "--peer-price 3: must be left out with --curves; ",
        "plot eps --x epsilon --hue nothing": "--hue nothing: must be one of epsilon, rounds; ",
        "plot eps --x epsilon": "eps: frame='2 values of rounds': must be one value of every "
        "parameter except epsilon; ... --select rounds=none",
        "plot half --x epsilon --hue rounds": "half: frame.regret='2 not finite': ",
        "show eps --sort eps": "--sort eps: must be a column of the table; ... 'epsilon'?",
        "show eps --select eps=1": "--select eps=1: must be one of epsilon, rounds; ... epsilon?",
        "show eps sum": "sum: must be left out: fmab show takes one FOLDER|FILE.nc;",
        "export eps x.txt": "x.txt: must be a name ending in .nc, .csv, .parquet",
        "export half x.nc": "half: must be finished; it lacks at least 40 trials",
        f"{GRID.replace('0.5 none', '0.1 0.3')} --out eps": "--epsilon [0.1, 0.3]: must be "
        "[0.5, None], as in the store eps; ",
        f"{GRID} --keep summary --until 0.1 --until-level 2": "--until-level 2: must be a number ",
        f"{GRID} --root-seed 1 --out eps": "--root-seed 1: must be 0, as in the store eps; "
        "... or allow_changes=['root_seed'] (--allow-changes root_seed)",
    }.items(),
)
def test_bad_words_are_one_line_and_status_2(words, start, eps, folder, capsys):
    """Would catch a combination that is ignored, a traceback, or a file written all the same."""
    before = sorted(folder.rglob("*"))
    out, err = said(capsys, words, 2)
    start, *parts = start.split(" ... ")
    assert out == "" and err.startswith(f"fmab: {start.rstrip()}") and err.count("\n") == 1
    assert all(part in err for part in parts), err
    assert sorted(folder.rglob("*")) == before


def test_a_saved_study_runs_again_to_the_same_results(eps, capsys):
    """Would catch a study file whose run differs in a byte from the options it was made of."""
    said(capsys, f"{GRID} --save-study st.toml --out eps")
    out, _ = said(capsys, "sweep st.toml --chunk 8")
    assert out.startswith(f"{Path('runs') / 'st'}: 4 configurations")
    assert files("runs/st") == files("eps")
    assert open_sweep("runs/st").attrs["study_hash"] == eps.attrs["study_hash"]
    text = Path("st.toml").read_text()
    Path("st.toml").write_text(text.replace("root_seed = 0", "root_seed = 1"))
    _, err = said(capsys, "sweep st.toml", 2)
    assert err.startswith("fmab: root_seed=1: must be 0, as in the store")
    assert err.endswith("(--allow-changes root_seed)\n")


def test_a_damaged_chunk_is_one_line_and_status_1(eps, capsys):
    """Would catch a traceback, or a sweep run again that keeps the damage."""
    before = files("eps")
    path = sorted(Path("eps/chunks").iterdir())[5]
    path.write_bytes(path.read_bytes()[:-1])
    _, err = said(capsys, "show eps", 1)
    assert err.startswith(f"fmab: {path}: ") and "run the sweep again" in err
    assert err.count("\n") == 1
    said(capsys, f"{GRID} --out eps")
    assert files("eps") == before


@pytest.mark.parametrize(
    ("error", "status", "start"),
    [
        (MemoryError(), 1, "out of memory; use fewer agents, arms or times; "),
        (OSError(28, "No space left on device", "x"), 1, "x: No space left on device; "),
        (KeyboardInterrupt(), 130, "stopped; "),
    ],
)
def test_a_sweep_that_ends_early_keeps_what_is_computed(
    error, status, start, made, folder, monkeypatch, capsys
):
    """Would catch "nothing written" where a store was, a traceback, and chunks that are lost."""
    real, puts = Store.put, []

    def put(self: Store, *given: Any) -> Any:
        puts.append(given)
        if len(puts) == 3:
            raise error
        return real(self, *given)

    monkeypatch.setattr(Store, "put", put)
    _, err = said(capsys, f"{GRID} --out run", status)
    kept = f"what is computed is kept; go on with: fmab {GRID} --out run"
    assert err.splitlines()[-1] == f"fmab: {start}{kept}"
    monkeypatch.setattr(Store, "put", real)
    assert "64 of them to do" in said(capsys, f"{GRID} --out run").err
    assert files("run") == files(made[0] / "eps")


SBATCH = """#!/bin/bash
# Stands for Slurm: notes the words, runs the tasks of an array in turn, and says a number.
echo "$*" >> sbatch.log
while [[ $1 == --* ]]; do
    [[ $1 == --array=1-* ]] && tasks=${1#--array=1-}
    shift
done
for ((i = ${tasks:-0}; i >= 1; i--)); do
    SLURM_ARRAY_TASK_COUNT=$tasks SLURM_ARRAY_TASK_ID=$i bash "$@" >> out.log 2>&1
done
[[ -n ${tasks:-} ]] || bash "$@" >> out.log 2>&1
echo "77;cluster"
"""
FMAB = '#!/bin/bash\n[[ "$*" == *--plan ]] && cat plan.json || echo "$*" >> fmab.log\n'


def test_the_slurm_example_shares_a_small_study(folder, capsys):
    """Would catch a script that bash refuses, and work that no task does."""
    script = Path(__file__).parents[2] / "docs/examples/slurm_array.sh"
    (folder / "plan.json").write_text(said(capsys, f"{GRID} --plan").out)
    for name, text in {"sbatch": SBATCH, "fmab": FMAB}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    # An activated environment may use variables that are not set.
    (folder / "activate").write_text(f'OLD="$NOT_SET"; export PATH="{folder}:$PATH"\n')
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "FMAB"))}
    env |= {"FMAB_ENV": str(folder / "activate"), "SLURM_JOB_ID": "5"}
    words = ["bash", str(script), "study.toml", "runs/s", "3", "--batch-free"]
    process = subprocess.run(words, env=env, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    submitted = (folder / "sbatch.log").read_text().splitlines()
    result = [re.findall(r"--(?:array|dependency)=\S+", line) for line in submitted]
    assert result == [["--array=1-3"], ["--dependency=afterany:77"]]
    common = "sweep study.toml --out runs/s --batch-free"
    expected = [*(f"{common} --worker {i}/3" for i in (3, 2, 1)), common]
    assert (folder / "fmab.log").read_text().splitlines() == expected


def test_the_plan_is_one_line_of_json(folder, capsys):
    """Would catch a plan that a script cannot read, that computes, or that counts what is there."""
    words = f"{GRID} --out runs/a --plan"
    out, err = said(capsys, words)
    plan = json.loads(out)
    assert out.count("\n") == 1 and err == "" and not (folder / "runs").exists()
    assert (plan["configurations"], plan["trials"], plan["missing"]) == (4, 80, 80)
    # Chunks of 8 trials, at most 20 seeds of a configuration.
    assert (plan["chunks"], plan["compilations"]) == (12, 1)
    assert plan["folder"] == "runs/a" and plan["disk_bytes"] > 0
    said(capsys, f"{GRID} --out runs/a --worker 1/3")
    left = json.loads(said(capsys, words)[0])
    assert (left["chunks"], left["missing"]) == (8, 80 - 4 * 8)


PLAY = "uniform_play --agents 2 --arms 3 --horizon 50 --times 5"


@pytest.mark.parametrize(
    ("out", "options"),
    [("file/below", ""), ("dangling", "--plan"), ("kept", "--dry-run"), ("new/below", "")],
)
def test_a_folder_that_cannot_be_written_is_refused_before_a_run(
    out, options, folder, capsys, monkeypatch
):
    """Would catch a promise that what is computed is kept, where the same command fails again."""
    (folder / "file").write_text("")
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "kept").mkdir()
    # Root may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = sorted(folder.rglob("*"))
    _, err = said(capsys, f"sweep {PLAY} --seeds 4 --out {out} {options}", 2)
    assert re.fullmatch(rf"fmab: --out {out}: must be a \S.*; \S.*\n", err), err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("number", "status"), [(errno.EROFS, 2), (errno.ENOSPC, 1)])
def test_an_error_of_the_first_write_says_whether_to_go_on(
    number, status, folder, capsys, monkeypatch
):
    """Would catch rights that no second try changes beside a disk that somebody can empty."""

    def mkdir(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    _, err = said(capsys, f"sweep {PLAY} --seeds 4 --out new", status)
    last = err.splitlines()[-1]
    if status == 2:
        assert last.startswith("fmab: --out new: must be a folder that can be written; choose")
    assert ("go on with" in last) == (status == 1)


def test_a_store_says_that_it_holds_more_seeds(folder, capsys):
    """Would catch a table of few seeds that looks like all there is."""
    line = "{0}: there are more seeds, 6 of a configuration; "
    line += "fmab sweep with --seeds 6 shows them\n"
    for keep in ("curves", "summary"):
        words = f"sweep {PLAY} --chunk 2 --keep {keep} --out {keep}"
        assert "more seeds" not in said(capsys, f"{words} --seeds 6")[0]
        out, _ = said(capsys, f"{words} --seeds 2")
        assert line.format(keep) in out
        assert line.format(keep) in said(capsys, f"show {keep}")[0]
        assert "more seeds" not in said(capsys, f"show {keep} --format csv")[0]
        assert open_sweep(keep).attrs["stored_seeds"] == 6
        # A file has only what was asked for.
        fmab.save(open_sweep(keep), f"{keep}.nc")
        assert "more seeds" not in said(capsys, f"show {keep}.nc")[0]
        assert "more seeds" not in said(capsys, f"{words} --seeds 8")[0]
        assert "stored_seeds" not in open_sweep(keep).attrs


def test_a_long_run_says_how_to_keep_it(folder, capsys, monkeypatch):
    """Would catch minutes of silence, after which Ctrl-C keeps nothing; and a line after them."""
    timers, real = [], runner.run

    def run(study, **options):
        (timer,) = timers
        assert timer.daemon
        timer.function()  # as if its seconds had passed
        return real(study, **options)

    def start(timer):
        timers.append(timer)

    monkeypatch.setattr(threading.Timer, "start", start)
    monkeypatch.setattr(runner, "run", run)
    _, err = said(
        capsys, f"run {PLAY.replace('--arms 3', '--arms 3 4')} --seeds 4 --no-figure --no-data"
    )
    line = (
        "running 2 configurations x 4 seeds, or compiling; fmab run keeps nothing until it ends: "
    )
    line += "fmab sweep with the same options and --out FOLDER keeps all trials\n"
    assert err == line and timers[0].finished.is_set()
