"""The answer of a plan as files: what is read back, what is refused, and what is not replaced."""

import json
import re
import shlex

import networkx as nx
import pytest

import fmab_jax as fmab
from fmab_jax.cli import study_options
from fmab_jax.cli.main import find, main
from fmab_jax.cli.options import Call, parse
from fmab_jax.cli.plan import command, join_options, state_study
from fmab_jax.errors import Refusal, refuse
from fmab_jax.planning.candidates import list_candidates, write_call
from fmab_jax.planning.question import Question

WORDS = ["plan", "--agents", "5", "--arms", "2", "--horizon", "300", "--max-seeds", "200"]
STUDY = """
algorithm = 'kl_se'
horizon = 300
seeds = 2
[problem]
agents = 5
arms = 2
[parameters]
epsilon = 1
rounds = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns the folder of a small plan."""
    path = tmp_path_factory.mktemp("small")
    (path / "study.toml").write_text(STUDY)
    words = [*WORDS, "--candidates", str(path / "study.toml"), "--format", "json"]
    assert main([*words, "--out", str(path / "plan")]) == 0
    return path / "plan"


@pytest.mark.parametrize("name", ["plan.json", "race.png", "race.txt"])
def test_a_file_that_no_plan_wrote_is_not_replaced(tmp_path, capsys, monkeypatch, name):
    """Would catch a plan that runs, and then replaces somebody's file of the same name."""
    monkeypatch.setattr("fmab_jax.planning.planner.plan", None)
    (tmp_path / name).write_text("0.9\n")
    assert main([*WORDS, "--out", str(tmp_path)]) == 2
    line = capsys.readouterr().err
    assert re.match(rf"fmab: --out \S+: must be a folder where no {name} of something", line)
    assert (tmp_path / name).read_text() == "0.9\n"


def test_a_plan_replaces_its_own_files(folder):
    """Would catch a plan that refuses the folder in which it goes on."""
    words = [*WORDS, "--candidates", str(folder.parent / "study.toml"), "--out", str(folder)]
    before = json.loads((folder / "plan.json").read_text())
    assert main(words) == 0
    after = json.loads((folder / "plan.json").read_text())
    times = dict.fromkeys(("elapsed_s", "compile_s", "plan"), 0)
    assert after | times == before | times


def read_command(command):
    """Returns the configuration that a command runs."""
    _, call = find(shlex.split(command)[1:])
    _, values = parse(call)
    return study_options.build_study(values, call.algorithms)[1].points[0].config.algorithm


def write_command(algorithm, *words):
    """Returns the command that runs an answer to the question of some words."""
    built = command([*words, "--arms", "4", "--horizon", "2000"])
    options, values = parse(built)
    call = Call(options, built, ["plan", *built.arguments], values, [], [])
    return shlex.join(["fmab", "run", *state_study(join_options(call), algorithm).words()])


def test_a_command_runs_the_configuration_of_the_answer():
    """Would catch any value that is read back as another."""
    words = ["--agents", "6"]
    question = Question(
        fmab.Problem(agents=6, arms=4), 2000, None, graph="ring", components="3x2:star"
    )
    field = [*{x.algorithm.name: x.algorithm for x in list_candidates(question)[0]}.values()]
    field += [fmab.kl_se(epsilon=(1.0, 1.0, 1.0, 2.0, 2.0, 1 / 3)), fmab.kl_se(0.1, rounds=4)]
    field += [fmab.kl_se(1 / 3, mechanism="skellam", delta=1e-5, split=True), fmab.cdp_mab(None)]
    for algorithm in field:
        assert read_command(write_command(algorithm, *words)) == algorithm


def test_an_answer_without_a_command_says_so(folder, capsys, monkeypatch):
    """Would catch a command with an empty word for a graph that only Python has."""
    named = nx.path_graph(6)
    named.name = "ring"
    for graph in (nx.cycle_graph(6), named):
        with pytest.raises(Refusal):
            write_command(fmab.ddp_mab(epsilon_message=1, graph=graph), "--agents", "6")
    # A figure of the race draws the label of a graph, whatever its file is called.
    named.name = "a\udcff\x00\n.txt"
    assert write_call(fmab.ddp_mab(1.0, graph=named), is_whole=True).isprintable()
    monkeypatch.setattr(fmab.Study, "words", lambda self: refuse("study", "x", "said", "save it"))
    words = [*WORDS, "--candidates", str(folder.parent / "study.toml"), "--out", str(folder)]
    assert main(words) == 0
    assert "No words of a command state this" in capsys.readouterr().out
