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
from fmab_jax.cli.plan import command, write_command
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


def change(*place, to=None, drop=False):
    """Returns a change of one part of a document."""

    def apply(document):
        *parents, last = place
        for name in parents:
            document = document[name]
        if drop:
            del document[last]
        else:
            document[last] = to

    return apply


def rename(label):
    """Returns a change of the label of the answer, wherever it stands."""

    def apply(document):
        for row in (document, *document["looks"]):
            row["label"] = label

    return apply


HUGE = 10**300
FORGERIES = {
    **{f"no {name}": change(name, drop=True) for name in ("label", "looks", "question", "bits")},
    "no mean": change("regret", "mean", drop=True),
    "no seeds of a look": change("looks", 0, "seeds", drop=True),
    "text for a number": change("regret", "mean", to="12"),
    "truth value for a number": change("links", "max", to=True),
    "NaN": change("regret", "p95", to=float("nan")),
    "infinity": change("looks", 0, "mean", to=float("inf")),
    "huge": change("numbers", "mean", to=HUGE),
    "list for a table": change("regret", to=[1, 2, 3, 4, 5]),
    "two numbers for a summary": change("bits", to={"mean": 1, "low": 0}),
    "table for a list": change("candidates", to={"label": "x"}),
    "number for a text": change("label", to=3),
    "nothing for a text": change("statement", to=None),
    "number for a row": change("candidates", 0, to=7),
    "negative seeds": change("looks", 0, "seeds", to=-200),
    "label that no figure draws": rename("a\udcff"),
    "half a letter": change("looks", 0, "label", to="\ud800"),
    "no looks": change("looks", to=[]),
    "answer without looks": change("label", to="ucb1()"),
    "looks of few seeds": change("looks", 0, "seeds", to=8),
    "mean outside its interval": change("looks", 0, "low", to=1e9),
    "text for notes": change("notes", to="abc"),
    "number among notes": change("notes", to=[1]),
    "front without a purpose": change("front", to=[{"label": "x", "regret": 1}]),
    "text for a candidate's mean": change("candidates", 0, "regret", to="1"),
    "text for a leak": change("leaks", to={"messages": ["1", 0]}),
    "list for the question": change("question", to=["agents"]),
    "list in the question": change("question", "agents", to=[[1]]),
}
TEXTS = {
    "empty": b"",
    "not JSON": b"{'label': 1}",
    "cut": b'{"label": "kl_se()", "looks": [',
    "list": b"[1, 2]",
    "text": b'"plan"',
    "nothing": b"null",
    "no names": b"{}",
    "not UTF-8": b"\xff\xfe\x00\x01\xd8",
    "deep": b"[" * 100_000,
    "long number": b'{"label": ' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", [*FORGERIES, *TEXTS])
def test_a_damaged_answer_is_refused_in_a_line(folder, tmp_path, capsys, name):
    """Would catch a raw error, or a page of what no plan says, for a file of somebody else."""
    path = tmp_path / "plan.json"
    if name in TEXTS:
        path.write_bytes(TEXTS[name])
    else:
        document = json.loads((folder / "plan.json").read_text())
        FORGERIES[name](document)
        path.write_text(json.dumps(document))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    line = capsys.readouterr().err
    # A long path is cut.
    assert re.match(r"fmab: \S+: must be the answer of a plan; ", line)
    assert line.count("\n") == 1 and "run fmab plan --out again" in line
    assert not (tmp_path / "page.html").exists()


def test_what_is_no_file_is_refused_in_a_line(folder, tmp_path, capsys):
    """Would catch a raw error for links that lead nowhere or in a circle, and for folders."""
    path, page = tmp_path / "plan.json", tmp_path / "page.html"
    for target in ("nowhere", "plan.json"):
        path.symlink_to(target)
        assert main(["report", str(tmp_path), "--out", str(page)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        path.unlink()
    path.mkdir()
    assert main(["report", str(tmp_path), "--out", str(page)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    path.rmdir()
    path.symlink_to(folder / "plan.json")
    assert main(["report", str(tmp_path), "--out", str(page)]) == 0


def test_a_page_has_the_rival_of_an_answer_that_loses_nothing(folder, tmp_path):
    """Would catch a raw error where no row of a document says how much more it loses."""
    document = json.loads((folder / "plan.json").read_text())
    (row,) = document["candidates"]
    rival = {"candidate": "a rival", "regret": 7.0}
    document["candidates"] = [
        x | dict.fromkeys(("more", "more_low", "more_high")) for x in (row, row | rival)
    ]
    (tmp_path / "plan.json").write_text(json.dumps(document))
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--out", str(page)]) == 0
    assert "a rival" in page.read_text("utf-8") and "nan" not in page.read_text("utf-8")


@pytest.mark.parametrize("name", ["plan.json", "race.png", "race.txt"])
def test_a_file_that_no_plan_wrote_is_not_replaced(tmp_path, capsys, monkeypatch, name):
    """Would catch a plan that runs, and then replaces somebody's file of the same name."""
    monkeypatch.setattr("fmab_jax.planning.plan.plan", None)
    (tmp_path / name).write_text("0.9,0.1\n")
    assert main([*WORDS, "--out", str(tmp_path)]) == 2
    line = capsys.readouterr().err
    assert re.match(rf"fmab: --out \S+: must be a folder where no {name} of something", line)
    assert (tmp_path / name).read_text() == "0.9,0.1\n"


def test_a_plan_replaces_its_own_files(folder):
    """Would catch a plan that refuses the folder in which it goes on."""
    words = [*WORDS, "--candidates", str(folder.parent / "study.toml"), "--out", str(folder)]
    before = json.loads((folder / "plan.json").read_text())
    assert main(words) == 0
    after = json.loads((folder / "plan.json").read_text())
    times = dict.fromkeys(("elapsed_s", "compile_s", "run_s", "missing_s", "plan"), 0)
    assert after | times == before | times


def build_call(*words):
    """Returns the call of a plan."""
    built = command([*words, "--arms", "4", "--horizon", "2000"])
    options, typed = parse(built)
    return Call(options, built, ["plan", *built.arguments], typed, [], [])


def read_command(command):
    """Returns the configuration that a command runs."""
    _, call = find(shlex.split(command)[1:])
    _, values = parse(call)
    return study_options.build_study(values, call.algorithms)[1].points[0].config.algorithm


def test_a_command_runs_the_configuration_of_the_answer():
    """Would catch any value that is read back as another."""
    problem, networks = fmab.Problem.uniform(6, 4), {"graph": "ring", "components": "3x2:star"}
    call = build_call("--agents", "6", "--graph", "ring", "--components", "3x2:star")
    question = Question(problem, 2000, None, server=False, **networks)
    field = [x.algorithm for x in list_candidates(question)[0]]
    assert len(field) > 50
    field = list({x.name: x for x in field}.values())
    field += [fmab.kl_se(epsilon=(1.0, 1.0, 1.0, 2.0, 2.0, 1 / 3)), fmab.kl_se(0.1, rounds=4)]
    field += [fmab.kl_se(1 / 3, mechanism="skellam", delta=1e-5, split=True), fmab.cdp_mab(None)]
    for algorithm in field:
        assert read_command(write_command(algorithm, problem, call)) == algorithm


def test_an_answer_without_a_command_says_so(folder, tmp_path, capsys, monkeypatch):
    """Would catch a command with an empty word for a graph that only Python has."""
    problem, call = fmab.Problem.uniform(6, 4), build_call("--agents", "6")
    rings = [nx.cycle_graph(3), nx.path_graph(3)]
    named = nx.path_graph(6)
    named.name = "ring"
    for algorithm in (
        fmab.ddp_mab(epsilon_message=1, graph=nx.cycle_graph(6)),
        fmab.ddp_mab(epsilon_message=1, graph=named),
        fmab.hdp_mab(epsilon_message=1, components=rings),
    ):
        assert write_command(algorithm, problem, call) == ""
    # A figure of the race draws the label of a graph, whatever its file is called.
    named.name = "a\udcff\x00\n.txt"
    assert write_call(fmab.ddp_mab(1.0, graph=named), is_whole=True).isprintable()
    monkeypatch.setattr("fmab_jax.cli.plan.write_command", lambda *_: "")
    words = [*WORDS, "--candidates", str(folder.parent / "study.toml"), "--out", str(folder)]
    assert main(words) == 0
    assert "No words of a command state a graph" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "--out", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "No words of a command state a graph" in text and 'aria-label="Command"' not in text
