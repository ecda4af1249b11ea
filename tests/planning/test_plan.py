"""The answer to "what should I run?": candidates, budgets, figures, and a plan that goes on."""

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.cli.main import main
from fmab_jax.errors import Refusal
from fmab_jax.planning import planner
from fmab_jax.planning.answers import Standing
from fmab_jax.planning.candidates import (
    check_candidates,
    cost_of_round,
    describe,
    list_candidates,
)
from fmab_jax.planning.question import Question
from fmab_jax.planning.race import race
from fmab_jax.planning.runs import Runs, compare_means, read_trials, summarise
from fmab_jax.planning.texts import write_account, write_obstacles

PROBLEM = fmab.Problem([0.9, 0.6, 0.3, 0.1], agents=5)
FIELD = [fmab.kl_se(1, rounds=r) for r in (1, 3, None)] + [fmab.cdp_mab(epsilon_message=1)]


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Returns a plan, the folder of its trials, and how often it simulated."""
    store = tmp_path_factory.mktemp("plan")
    found = fmab.plan(PROBLEM, 2000, leak=1, links=20, candidates=FIELD, within=0.1, store=store)
    return found, store


def test_the_answer_is_the_best_of_many_seeds(answer):
    """Would catch a winner that is not, and figures of the seeds that chose it."""
    found, _ = answer
    means = {}
    for algorithm in FIELD:
        data = fmab.simulate(algorithm, PROBLEM, 2000, times=[2000], seeds=4000, root_seed=77)
        if int(data.links.sel(meter="server").max()) <= 20:
            means[algorithm] = float(data.regret.mean())
    assert found.holds and means[found.algorithm] <= 1.1 * min(means.values())
    assert found.regret.low < means[found.algorithm] * 1.05
    assert found.regret.low <= found.regret.mean <= found.regret.high <= found.regret.max
    assert found.links.max <= 20 and found.leak["messages"] == 1
    assert found.candidates == 4 and found.frame.state[0] == "answer"
    (point,) = found.study.points
    assert (point.config.algorithm, point.config.horizon) == (found.algorithm, 2000)


def test_figures_are_of_seeds_that_no_look_has(answer):
    """Would catch figures of the seeds that chose the answer, which flatter it."""
    found, store = answer
    levels = {path.name.split("-")[1]: fmab.open_sweep(path) for path in store.iterdir()}
    assert int(levels["0"].seeds.max()) == 200
    fresh = levels.pop("1000")
    assert int(fresh.seeds.sel(algorithm=found.label)) == 2000
    roots = {data.attrs["root_seed"] for data in levels.values()}
    assert len(roots) == len(levels) and fresh.attrs["root_seed"] not in roots
    regret = fresh.regret.sel(algorithm=found.label).isel(time=-1)
    assert found.regret.mean == pytest.approx(float(regret.mean()))


def test_a_round_costs_what_runs_spend():
    """Would catch numbers of shared arms that a budget misses, and bits for numbers."""
    algorithm = fmab.kl_se(1, rounds=1, split=True)
    data = fmab.sweep({"a": algorithm}, PROBLEM, horizon=2000, seeds=200, times=[2000])
    trials = read_trials(data.isel(algorithm=0))
    cost = cost_of_round(algorithm, algorithm.exchange(5), 4)
    assert cost == tuple(trials[name].max() for name in cost._fields)


def test_a_root_seed_selects_all_trials_and_the_race_covers_the_largest_regret(monkeypatch):
    """Would catch one root seed for all plans, and losses bounded by those of one agent."""
    # No theorem covers a scale below 1.
    candidates = [fmab.cdp_mab(epsilon_message=1, scale=0.3)]
    tails, options = [], {"leak": 1, "candidates": candidates, "max_seeds": 200}

    def keep(is_sure, observe, find_tail, goal, **others):
        tails.append(find_tail(0))
        return race(is_sure, observe, find_tail, goal, **others)

    monkeypatch.setattr("fmab_jax.planning.planner.race", keep)
    first, second = (fmab.plan(PROBLEM, 2000, root_seed=r, **options) for r in (0, 1))
    assert first.looks[0].mean != second.looks[0].mean and first.regret != second.regret
    assert tails[0].limit == pytest.approx(5 * 2000 * 0.8)


def test_an_answer_that_is_not_decided_says_how_good_it_is_and_why():
    """Would catch the x that was asked for in place of the x that holds, a rival that exceeds a
    budget without a word, and an answer without what stands in its way."""
    options = {"leak": 1, "links": 20, "within": 1e-3, "max_seeds": 200}
    # KL-SE without a round budget has up to 25 links.
    candidates = [fmab.kl_se(1, rounds=rounds) for rounds in (3, 4, None)]
    found = fmab.plan(PROBLEM, 2000, candidates=candidates, **options)
    assert found.label == "kl_se(rounds=3)" and found.candidates == 2
    assert "left out: 1 candidate whose structure does not keep the budgets" in found.notes[0]
    assert not found.holds and found.end == "seeds" and found.within > 1e-3
    # The rival is far behind; what is open are losses of the answer that 200 seeds do not show.
    assert not found.frame.undecided.any() and found.missing_trials > 0
    assert found.rare > 0.1 * found.regret.mean and "Why: losses" in write_obstacles(found)[0]
    (near,) = found.rivals.itertuples()
    assert near.candidate == "kl_se(rounds=4)" and near.over == ""
    assert 0 < near.more_low < near.more < near.more_high
    assert found.fresh_seeds == 200
    # With more seeds its runs show that it exceeds the budget.
    found = fmab.plan(PROBLEM, 2000, candidates=candidates, **options | {"max_seeds": 3000})
    assert found.list_labels(Standing.OVER) == ["kl_se()"]
    (over,) = found.rivals[found.rivals.over != ""].itertuples()
    assert (over.candidate, over.over) == ("kl_se()", "links") and over.links_max > 20


def test_rounds_fit_into_the_links():
    """Would catch one round too many, and a candidate that is called sure of its budget."""
    setting = Question(PROBLEM, 2000, None, links=19)
    rounds = {x.algorithm.rounds for x in list_candidates(setting)[0]
              if x.algorithm.name == "kl_se" and x.algorithm.participation == 1}  # fmt: skip
    assert rounds == {None, 3, 1}
    sure = {r: describe(fmab.kl_se(1, rounds=r), setting).is_sure for r in (3, 4, None)}
    assert sure == {3: True, 4: False, None: False}


def test_absent_agents_count_in_the_leak_of_a_candidate():
    """Would catch a leak of sums that agents hide who are not there."""
    algorithm = fmab.at_leak(fmab.kl_se, 1, agents=5, view="sum")
    setting = Question(PROBLEM, 2000, 1.0, view="sum", secure=True)
    assert len(check_candidates([algorithm], setting)) == 1
    absent = fmab.Problem([0.9, 0.6, 0.3, 0.1], agents=5, presence="absent:0.5")
    with pytest.raises(Refusal, match="which leaks"):
        check_candidates([algorithm], replace(setting, problem=absent))


def test_estimates_widen_the_interval_and_change_the_answer():
    """Would catch a race on the estimates alone, and seeds whose candidates meet other means."""
    problem = fmab.Problem([0.5, 0.49], agents=5)
    candidates = [fmab.kl_se(1, rounds=1), fmab.kl_se(1)]
    options = {"leak": 1, "candidates": candidates, "within": 0.5, "max_seeds": 3000}
    around = fmab.Problem([0.5, 0.49], agents=5, means_error=0.2)
    exact, unsure = fmab.plan(problem, 500, **options), fmab.plan(around, 500, **options)
    assert exact.holds and unsure.holds
    assert (exact.label, unsure.label) == ("kl_se()", "kl_se(rounds=1)")
    assert exact.regret.high - exact.regret.low < 1 < unsure.regret.high - unsure.regret.low
    for algorithm in candidates:
        data = fmab.simulate(algorithm, around, 500, seeds=3, times=[500])
        for seed in range(3):
            alone = fmab.simulate(algorithm, around.fixed(seed), 500, seeds=[seed], times=[500])
            assert alone.regret.item() == data.regret.values[seed, 0]


def test_arms_of_one_mean_end_the_race():
    """Would catch a race that goes on until it tells regrets of 0 apart."""
    candidates = [fmab.kl_se(1), fmab.kl_se(1, rounds=1)]
    answer = fmab.plan(fmab.Problem([0.5, 0.5], 3), 300, leak=1, candidates=candidates)
    assert answer.holds and answer.regret.max == 0 and answer.seeds == 400
    assert set(answer.frame.state) == {Standing.ANSWER, Standing.SURVIVES}
    assert "nan" not in str(answer)


def test_candidates_keep_leak_and_links():
    """Would catch a candidate that leaks more, or a round budget above the links."""
    setting = Question(PROBLEM, 2000, 2.0, links=15, graph="ring")
    field, _ = list_candidates(setting)
    names = {candidate.algorithm.name for candidate in field}
    assert {"cdp", "kl_se", "ddp", "kl_se_graph"} <= names and "dist_dp_se" not in names
    for candidate in field:
        assert fmab.find_leak(candidate.algorithm, 5) <= 2 * (1 + 1e-9)
        rounds = getattr(candidate.algorithm, "rounds", None)
        if candidate.is_sure and rounds is not None:
            exchange = candidate.algorithm.exchange(5)
            cost = cost_of_round(candidate.algorithm, exchange, 4)
            assert rounds * cost.links <= 15
    assert any("scale = 0.3" in candidate.remark for candidate in field)
    proven, _ = list_candidates(replace(setting, proven=True))
    assert len(proven) < len(field) and not any(c.remark for c in proven)
    secure, _ = list_candidates(replace(setting, secure=True))
    assert "dist_dp_se" in {candidate.algorithm.name for candidate in secure}
    peers, _ = list_candidates(replace(setting, server=False, links=None))
    assert {"ddp", "kl_se_graph"} <= {c.algorithm.name for c in peers}
    assert not {"cdp", "kl_se"} & {c.algorithm.name for c in peers}


def test_default_candidates_that_leak_more_are_left_out(monkeypatch):
    """Would catch a default candidate that races although it leaks more than is allowed."""

    def miss(owner, leak, *, agents, view, presence, **parameters):
        found = fmab.at_leak(owner, leak, agents=agents, view=view, **parameters)
        return fmab.kl_se(1.5 * leak) if owner is fmab.kl_se else found

    monkeypatch.setattr("fmab_jax.planning.candidates.at_leak", miss)
    field, notes = list_candidates(Question(PROBLEM, 10**6, 2.0))
    names = {candidate.algorithm.name for candidate in field}
    assert "cdp" in names and "kl_se" not in names
    assert "left out, which leaks 3: kl_se()" in notes


def test_candidates_that_differ_in_noise_or_network_have_labels_that_say_so():
    """Would catch two candidates under one label, and one that races twice."""
    setting = Question(PROBLEM, 2000, 1.0)
    field = check_candidates([fmab.kl_se(1), fmab.kl_se(0.5), fmab.kl_se(1)], setting)
    assert [candidate.label for candidate in field] == ["kl_se(epsilon=1)", "kl_se(epsilon=0.5)"]
    graphs = [fmab.kl_se_graph(1, name) for name in ("ring", "star")] + [fmab.kl_se(1)]
    labels = [candidate.label for candidate in check_candidates(graphs, setting)]
    assert labels[0].endswith("graph=ring)") and labels[1].endswith("graph=star)")
    assert labels[2] == "kl_se()"


def test_a_candidate_without_messages_is_no_leak():
    """Would catch a leak that nobody sees taken for one without a bound."""
    silent = [fmab.uniform_play(), fmab.kl_se(1)]
    labels = [x.label for x in check_candidates(silent, Question(PROBLEM, 2000, 1.0))]
    assert labels == ["uniform_play()", "kl_se()"]
    for loud, view in ((fmab.ucb1(), "actions"), (fmab.kl_se_graph(None, "ring"), "sum")):
        with pytest.raises(Refusal, match="leaks without a bound: must be at most a leak of"):
            check_candidates([loud], Question(PROBLEM, 2000, 1.0, view=view))


def test_trials_are_read_seed_by_seed():
    """Would catch links that have no price, and numbers for bits."""
    algorithm = fmab.kl_se_graph(1, graph="ring")
    data = fmab.sweep({"a": algorithm}, PROBLEM, horizon=500, seeds=6, times=[500])
    trials = read_trials(data.isel(algorithm=0))
    alone = fmab.simulate(algorithm, PROBLEM, 500, seeds=6, times=[500])
    priced = alone.links.isel(time=-1).sel(meter=alone.priced)
    assert (trials["links"] == priced.sum("meter").values).all()
    assert (trials["regret"] == alone.regret.values[:, -1]).all()
    assert (trials["bits"] == 64 * trials["numbers"]).all()
    summary = summarise(np.arange(101.0))
    assert summary.mean == 50 and summary.p95 == 95 and summary.max == 100
    assert summary.high - summary.mean == pytest.approx(5.7843, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"links": 0.5, "candidates": FIELD[:1]}, "links=0.5: must be more: every candidate"),
        (
            {"horizon": 2000, "links": 15, "candidates": [fmab.kl_se(1)]},
            "links=15.0: must be more: every candidate exceeds a budget in more than 1 % of its",
        ),
        (
            {"problem": fmab.Problem.uniform(5, 1)},
            "arms=1: must be at least 2: one arm leaves no choice; add arms",
        ),
        ({"within": 0}, "within=0: must be a number in (0, 10]"),
        ({"view": "all"}, "view='all': must be 'messages' or 'sum' or 'actions'"),
        (
            {"candidates": [fmab.kl_se(3)]},
            "candidates=kl_se(epsilon=3), which leaks 3: must be at most a leak of 1 in",
        ),
        (
            {"links": 9999, "bits": 1, "candidates": FIELD[:1]},
            "bits=1.0: must be more: every candidate",
        ),
        (
            {"view": "sum", "numbers": 1, "links": 9999},
            "candidates=none: must be at least one that fits the problem: left out, as a round",
        ),
        ({"candidates": []}, "candidates=[]: must be a list of algorithms"),
        ({"graph": "nope.edgelist"}, "graph='nope.edgelist': must be"),
        ({"components": "3,4"}, "components='3,4': must be sizes that sum to agents=5"),
        ({"link": 9}, "link=9: must be a parameter of Question; did you mean 'links'?"),
        ({"max_seeds": 10}, "max_seeds=10: must be a whole number in [200"),
        ({"numbers": 1, "candidates": FIELD[:1]}, "numbers=1.0: must be more: every candidate"),
        (
            {"problem": fmab.Problem([0.9, 0.1], 5, rewards="gaussian:1"), "view": "sum"},
            "candidates=none: must be at least one that fits the problem: left out",
        ),
        ({"server": False, "candidates": FIELD}, "candidates='kl_se(rounds=1)': must be one that"),
        (
            {"proven": True, "candidates": [fmab.cdp_mab(epsilon_message=1, scale=0.3)]},
            "candidates='cdp(scale=0.3)': must be proven",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_line(changes, start):
    """Would catch a budget that nothing meets and that is met by nobody's candidate."""
    with pytest.raises(Refusal) as caught:
        fmab.plan(**({"problem": PROBLEM, "horizon": 100, "leak": 1} | changes))
    assert str(caught.value).startswith(start)


def test_the_command_line_writes_a_command_that_runs(tmp_path, capsys):
    """Would catch an answer that cannot be pasted, and keys that are missing."""
    study = tmp_path / "study.toml"
    study.write_text(
        "algorithm = 'kl_se'\nhorizon = 500\nseeds = 2\n"
        "[problem]\nagents = 5\narms = 3\n[parameters]\nepsilon = 1\nrounds = [1, 4]\n"
    )
    words = ["plan", "--agents", "5", "--arms", "3", "--horizon", "500", "--leak", "1"]
    words += ["--candidates", str(study), "--within", "0.5", "--format", "json"]
    assert main([*words, "--out", str(tmp_path / "plan")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"command", "regret", "links", "leaks", "within", "question"} <= set(answer)
    assert len(answer["candidates"]) == 2 and answer["candidates"][0]["state"] == "answer"
    assert {"mean", "low", "high"} <= set(answer["regret"])
    assert {"mean", "p95", "max"} <= set(answer["links"])
    deltas = {view: delta for view, (_, delta) in answer["leaks"].items()}
    assert deltas == {"messages": 0.0, "sum": 1e-6, "actions": 1e-6}
    assert json.loads((tmp_path / "plan" / "plan.json").read_text()) == answer
    assert (tmp_path / "plan" / "race.png").read_bytes().startswith(b"\x89PNG")
    command = answer["command"].split()
    assert command[:3] == ["fmab", "run", "kl_se"] and "--epsilon" in command
    assert main([*command[1:], "--no-figure", "--no-data", "--out", str(tmp_path / "run")]) == 0
    assert main([*words[:-2], "--time", "soon"]) == 2
    assert "--time soon: must be a number and s, m or h" in capsys.readouterr().err


def test_an_answer_says_the_delta_of_each_leak(tmp_path, capsys):
    """Would catch an epsilon that reads as one without delta, in words and in plan.json, and a view
    that nobody has."""
    study = tmp_path / "study.toml"
    study.write_text(
        "algorithm = 'kl_se'\nhorizon = 300\nseeds = 2\n[problem]\nagents = 5\narms = 3\n"
        "[parameters]\nepsilon = 1\nmechanism = 'gaussian'\nrounds = 1\n"
    )
    words = ["plan", "--agents", "5", "--arms", "3", "--horizon", "300", "--leak", "1"]
    words += ["--candidates", str(study), "--max-seeds", "200", "--out", str(tmp_path / "plan")]
    assert main(words) == 0
    algorithm = fmab.kl_se(1, mechanism="gaussian", rounds=1)
    leaks = {view: fmab.find_leak(algorithm, 5, view) for view in ("messages", "sum", "actions")}
    texts = {view: f"({leak:.4g}, 10⁻⁶)" for view, leak in leaks.items()}
    assert texts["messages"] == "(1, 10⁻⁶)"
    told = ", ".join(f"{view} {text}" for view, text in texts.items())
    assert f"  leak of one reward   {told}\n" in capsys.readouterr().out
    kept = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert kept["leaks"] == {view: [leak, 1e-6] for view, leak in leaks.items()}
    alone = fmab.plan(PROBLEM, 300, leak=1, view="actions", candidates=[fmab.dp_imed(1)])
    assert alone.leak == {"messages": 0.0, "actions": 1.0}
    assert {leak.delta for leak in alone.leaks.values()} == {0.0}


def test_a_command_loads_the_plug_ins_of_its_plan(tmp_path, capsys):
    """Would catch an answer that names an algorithm that is not known where it is pasted."""
    plugin = Path(__file__).parents[1] / "plugs.py"
    study = tmp_path / "study.toml"
    study.write_text(
        "algorithm = 'geometric'\nhorizon = 300\nseeds = 2\n"
        "[problem]\nagents = 5\narms = 2\n[parameters]\nfirst = 8\n"
    )
    words = ["plan", "--plugin", str(plugin), "--agents", "5", "--arms", "2", "--horizon", "300"]
    words += ["--leak", "none", "--candidates", str(study), "--max-seeds", "200"]
    assert main(words) == 0
    answer = capsys.readouterr().out
    assert f"--plugin {plugin}" in answer and answer.startswith("The only candidate, and it keeps")


def test_a_file_of_ratings_is_planned(tmp_path, capsys):
    """Would catch a law that is assumed although the file states it."""
    levels, chances = [0.0, 0.5, 1.0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
    np.savez(tmp_path / "ratings.npz", levels=levels, probabilities=[chances])
    study = tmp_path / "study.toml"
    study.write_text(
        "algorithm = 'kl_se'\nhorizon = 300\nseeds = 2\n"
        "[problem]\nagents = 5\narms = 2\n[parameters]\nepsilon = 1\nrounds = 1\n"
    )
    words = ["plan", "--means", str(tmp_path / "ratings.npz"), "--agents", "5"]
    words += ["--horizon", "300", "--candidates", str(study), "--format", "json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["regret"]["mean"] > 0.0


STUDY = """
algorithm = 'ddp'
horizon = 300
seeds = 2
[problem]
agents = 5
arms = 2
[parameters]
epsilon_message = 1
graph = ['ring', 'star']
"""


def test_the_command_has_the_graph_of_the_answer(tmp_path, capsys):
    """Would catch the graph of an option in place of that of a study's configuration."""
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    words = ["plan", "--agents", "5", "--arms", "2", "--horizon", "300", "--graph", "complete"]
    words += ["--candidates", str(study), "--max-seeds", "200", "--format", "json"]
    assert main(words) in (0, 3)
    answer = json.loads(capsys.readouterr().out)
    command = answer["command"].split()
    assert answer["label"].endswith(f"graph={command[command.index('--graph') + 1]})")


@pytest.mark.parametrize(
    ("extra", "text", "line"),
    [
        ([], STUDY.replace("arms = 2", "arms = 2\nworld = 'drifting:2'"), "--candidates"),
        (
            ["--world", "drifting:2"],
            STUDY.replace("arms = 2", "arms = 2\nspread = 1"),
            "--candidates",
        ),
        (["--over", "2"], STUDY, "--over 2: must be a number in [0, 1)"),
    ],
)
def test_candidates_of_another_problem_are_refused(tmp_path, capsys, extra, text, line):
    """Would catch a study's world, spread or size that the plan leaves out without a word."""
    study = tmp_path / "study.toml"
    study.write_text(text)
    words = ["plan", "--agents", "5", "--arms", "2", "--horizon", "300"]
    assert main([*words, *extra, "--candidates", str(study)]) == 2
    assert capsys.readouterr().err.startswith(f"fmab: {line}")


def test_worlds_and_presences_are_planned(tmp_path, capsys):
    """Would catch an option that the problem or the command does not get."""
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace("'ddp'", "'kl_se'").replace("epsilon_message", "epsilon"))
    study.write_text(study.read_text().replace("graph = ['ring', 'star']", "rounds = 1"))
    words = ["plan", "--agents", "5", "--arms", "2", "--horizon", "300", "--max-seeds", "200"]
    words += ["--world", "drifting:2", "--presence", "absent:0.5", "--format", "json"]
    assert main([*words, "--candidates", str(study)]) == 0
    answer = json.loads(capsys.readouterr().out)
    problem = fmab.Problem.uniform(5, 2, world="drifting:2", presence="absent:0.5")
    due = fmab.plan(problem, 300, leak=1, candidates=[fmab.kl_se(1, rounds=1)], max_seeds=200)
    assert answer["regret"] == due.regret._asdict()
    leak = fmab.find_leak(fmab.kl_se(1, rounds=1), 5, "sum", presence="absent:0.5")
    assert answer["leaks"]["sum"][0] == leak != fmab.find_leak(fmab.kl_se(1, rounds=1), 5, "sum")
    assert all(x in answer["command"] for x in ("--world drifting:2", "--presence absent:0.5"))


def test_a_folder_that_cannot_be_written_is_refused_before_a_plan(tmp_path, monkeypatch):
    """Would catch a plan that races, and cannot keep its first trials."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    monkeypatch.setattr(planner, "select_candidates", None)  # as long as a race
    with pytest.raises(Refusal, match="^store=.*: must be a folder that can be written; "):
        fmab.plan(PROBLEM, 100, leak=1, candidates=FIELD[:2], store=tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_an_answer_that_is_not_decided_says_what_holds(tmp_path, capsys):
    """Would catch a bare winner, means of two kinds side by side, and a budget without its use."""
    study = tmp_path / "study.toml"
    (tmp_path / "means.csv").write_text("0.9,0.85\n")
    study.write_text(
        STUDY.replace("'ddp'", "'kl_se'")
        .replace("graph = ['ring', 'star']", "rounds = [1, 2]")
        .replace("epsilon_message", "epsilon")
        .replace("arms = 2", f"means = '{tmp_path / 'means.csv'}'")
    )
    words = ["plan", "--agents", "5", "--means", str(tmp_path / "means.csv"), "--horizon", "300"]
    words += ["--means-error", "0.05", "--candidates", str(study), "--max-seeds", "200"]
    assert main([*words, "--within", "0.001", "--confidence", "0.999999"]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("Not decided, since no candidate may have more seeds: so far the leader")
    assert "of the best of 2 candidates (99.9999 % confidence)" in text
    assert "Why: 1 rival may be better by more than 0.1 %: kl_se(rounds=" in text
    assert "Why: losses that are too rare to be seen in 200 seeds may add " in text
    assert "To decide: " in text and "Give a larger --max-seeds; " in text
    assert " numbers " in text and " bits " in text
    assert re.search(r"kl_se\(rounds=\d\) +[\d,]+ +200 .* [+-][\d.]+ % \[", text)


def test_without_a_share_only_candidates_whose_structure_keeps_a_budget_race():
    """Would catch a race for seeds that cannot show what is asked."""
    options = {"leak": 1, "links": 20, "over": 0, "max_seeds": 200}
    candidates = [fmab.kl_se(1), fmab.kl_se(1, rounds=3)]
    found = fmab.plan(PROBLEM, 2000, candidates=candidates, **options)
    assert found.label == "kl_se(rounds=3)" and found.candidates == 1 and found.keeps
    assert "left out: 1 candidate whose structure does not keep" in found.notes[0]
    with pytest.raises(Refusal, match="over=0.0: must be larger"):
        fmab.plan(PROBLEM, 2000, candidates=candidates[:1], **options)


def test_a_plan_goes_on_where_it_was_killed(answer):
    """Would catch a plan that simulates stored trials again, or answers otherwise with them."""
    found, store = answer
    trials = {path: path.stat().st_mtime_ns for path in store.rglob("chunks/*")}
    # As if it was killed in the look that doubled the seeds.
    lost = [path for path in trials if path.parts[-3].endswith("-1")]
    assert lost and len(lost) < len(trials)
    for path in lost:
        path.unlink()
    again = fmab.plan(PROBLEM, 2000, leak=1, links=20, candidates=FIELD, within=0.1, store=store)
    seconds = dict.fromkeys(("elapsed_s", "compile_s"))
    assert again.build_document() | seconds == found.build_document() | seconds
    rest = {path: time for path, time in trials.items() if path not in lost}
    assert rest == {path: path.stat().st_mtime_ns for path in rest}
    # Another problem has other trials.
    fewer = fmab.plan(PROBLEM, 300, leak=1, candidates=FIELD[:1], max_seeds=200, store=store)
    alone = fmab.plan(PROBLEM, 300, leak=1, candidates=FIELD[:1], max_seeds=200)
    assert fewer.regret == alone.regret


def test_time_and_ctrl_c_end_a_plan_with_the_answer_so_far(monkeypatch, capsys):
    """Would catch trials that are lost, figures that are called fresh, and a line of no use."""
    options = {"leak": 1, "candidates": FIELD[:3], "within": 1e-4, "max_seeds": 10**5}
    timed = fmab.plan(PROBLEM, 2000, time=0, progress=True, **options)
    assert not timed.holds and timed.end == "time" and timed.seeds == 600
    assert f"s: so far {timed.label}: regret " in capsys.readouterr().err
    assert "since the time is up: so far" in " ".join(str(timed).split())
    observe, calls = Runs.observe, []

    def stop(runs, group, seeds):
        calls.append(group)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return observe(runs, group, seeds)

    monkeypatch.setattr(Runs, "observe", stop)
    found = fmab.plan(PROBLEM, 2000, **options)
    assert not found.holds and found.end == "stopped" and len(calls) == 2
    assert found.fresh_seeds == 0 and found.seeds == 600
    assert "the 200 seeds of the race, which chose it" in write_account(found)
    # Nothing has run yet.
    monkeypatch.setattr(Runs, "observe", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fmab.plan(PROBLEM, 2000, **options)


def test_rivals_are_compared_on_shared_seeds_or_on_all():
    """Would catch a difference of other seeds, and a rare loss among few shared seeds."""
    rng = np.random.default_rng(0)
    own = rng.normal(100.0, 20.0, 1000)
    more, low, high = compare_means(1.1 * own, own)
    assert (more, low, high) == pytest.approx((0.1, 0.1, 0.1))
    own[3] = 1e5
    more, low, high = compare_means(np.full(200, 300.0), own)
    assert more == pytest.approx(300.0 / own.mean() - 1.0) and low < more < high
    assert all(map(math.isnan, compare_means(np.zeros(5), np.zeros(5))))
