"""A plan that is killed three times answers as one that is not."""

import json
import signal
import subprocess
import sys
import time

import fresh

import fmab_jax as fmab

PLAN = """
import sys
import fmab_jax as fmab
problem = fmab.Problem([0.7, 0.5, 0.3], agents=3)
candidates = [fmab.kl_se(1, rounds=rounds) for rounds in (1, 2, None)]
fmab.plan(problem, 200, leak=1, max_seeds=800, candidates=candidates, store=sys.argv[1])
"""
# The first look, a later look, and the fresh seeds of the answer.
MOMENTS = "*-0/chunks/*.npz", "*-2/chunks/*.npz", "*-1000/run.json"


def kill_at(store, pattern):
    """Starts the plan and kills it once a file exists; returns its status."""
    command = [sys.executable, "-c", PLAN, str(store)]
    with subprocess.Popen(command, env=fresh.surroundings(), stderr=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 120
        while process.poll() is None and not any(store.glob(pattern)):
            assert time.monotonic() < limit
            time.sleep(0.002)
        process.kill()
        return process.wait()


def test_a_plan_that_is_killed_three_times_answers_as_one_that_is_not(tmp_path):
    """Would catch trials that a kill damages, or that are counted twice afterwards."""
    problem = fmab.Problem([0.7, 0.5, 0.3], agents=3)
    candidates = [fmab.kl_se(1, rounds=rounds) for rounds in (1, 2, None)]
    options = {"leak": 1, "max_seeds": 800, "candidates": candidates}
    for pattern in MOMENTS:
        assert kill_at(tmp_path / "killed", pattern) == -signal.SIGKILL
    answer = fmab.plan(problem, 200, store=tmp_path / "killed", **options)
    whole = fmab.plan(problem, 200, **options)
    seconds = dict.fromkeys(("elapsed_s", "compile_s"))
    answer, whole = (x.build_document() | seconds for x in (answer, whole))
    assert len(whole["looks"]) > 5 and answer == whole


def test_ctrl_c_in_a_command_writes_the_answer_so_far(tmp_path):
    """Would catch a process that ends before its answer is written, and a status of success."""
    # Candidates that hardly differ: the race lasts longer than the signal takes.
    words = ["plan", "--agents", "3", "--horizon", "200", "--leak", "1", "--within", "0.0001"]
    (tmp_path / "means.csv").write_text("0.7,0.7,0.69\n")
    study = "algorithm = ['kl_se']\nleak = 1\nhorizon = 200\nseeds = 1\n"
    study += "[problem]\nagents = 3\narms = 3\n[parameters]\nfirst = [20, 21, 22]\n"
    (tmp_path / "study.toml").write_text(study)
    words += ["--means", "means.csv", "--candidates", "study.toml", "--out", "plan"]
    with subprocess.Popen(
        [sys.executable, "-m", "fmab_jax", *words], cwd=tmp_path, env=fresh.surroundings(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        lines = iter(process.stderr)
        assert any("so far kl_se(" in line for line in lines)
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
    assert process.returncode == 3 and "Not decided, since it was stopped: so far" in out
    document = json.loads((tmp_path / "plan/plan.json").read_text())
    assert document["end"] == "stopped" and not document["holds"]
    assert all(f"wrote plan/{name}" in out for name in ("plan.json", "race.png", "race.txt"))
