"""Studies: axes and labels, identities of cells and of whole studies, refusals; nothing is run."""

import dataclasses
import itertools
import json
import math
import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.parts import exchanges
from fmab_jax.run import cache
from fmab_jax.sweeps import study
from fmab_jax.sweeps.precision import until_precise

BASE = dict(horizon=50, seeds=2, times=5, agents=2, arms=2, epsilon=1)


class Without:
    """Marks a parameter of BASE that a study does without."""


OUT = Without()
ALONE = {"agents": OUT, "arms": OUT}


def small(algorithm="cdp", problem=None, **changes):
    """Returns a tiny study with changes."""
    options = BASE | changes
    options = {n: value for n, value in options.items() if not isinstance(value, Without)}
    return Study(algorithm, problem, **options)


def hashes(made):
    return [point.hash for point in made.points]


def labels(made):
    return {axis.name: list(axis.labels) for axis in made.axes}


FIXED = fmab.Problem([0.9, 0.1], agents=2)
SINGLE = nx.empty_graph(1)
SINGLE.name = "one"
KARATE = nx.karate_club_graph()

# name: (parameters, the labels of the one axis).
LABELS = {
    "None is none": ({"rounds": [None, 2, 3]}, ["none", 2, 3]),
    "an array": ({"epsilon": np.array([0.1, 1.0])}, [0.1, 1]),
    "a float32 is what it prints": ({"epsilon": np.array([0.1], np.float32)}, [0.1]),
    "a dict gives its own": ({"epsilon": {"low": 0.1, 7: None}}, ["low", "7"]),
    "graphs": (
        {"algorithm": "ddp", "graph": ["ring", KARATE, nx.path_graph(34)], "agents": 34},
        ["ring", "Zachary's Karate Club", "graph-2"],
    ),
    "problems": ({"problem": [FIXED, FIXED]}, ["problem-0", "problem-1"]),
    "algorithms by name": ({"algorithm": {"x": "cdp", "y": "cdp"}}, ["x", "y"]),
    "components as lists": (
        {"algorithm": "hdp", "components": [[SINGLE, SINGLE], [nx.path_graph(2)]]},
        ["one+one", "own graph"],
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_say_what_is_swept(name):
    """Would catch labels that JSON cannot hold, that hide a value or change from run to run."""
    changes, expected = LABELS[name]
    if "problem" in changes:
        changes = changes | {**ALONE}
    instance = small(**changes)
    (result,) = labels(instance).values()
    assert result == expected
    assert [type(label) for label in result] == [type(label) for label in expected]
    assert len(instance.points) == len(expected) and json.loads(json.dumps(result)) == expected
    assert len(instance.hash) == 32 and int(instance.hash, 16)


def test_the_last_axis_is_the_fastest():
    """Would catch a grid laid out in another order than its dimensions."""
    instance = small(["cdp", "single"], epsilon=[0.1, 0.5, 1], horizon=[10, 20])
    axes = labels(instance)
    assert axes == {"algorithm": ["cdp", "single"], "epsilon": [0.1, 0.5, 1], "horizon": [10, 20]}
    assert instance.shape == (2, 3, 2)
    result = [
        tuple(point.description[name] for name in ("algorithm", "epsilon", "horizon"))
        for point in instance.points
    ]
    assert result == list(itertools.product(["cdp", "single"], [0.1, 0.5, 1.0], [10, 20]))
    records = [float(point.config.trial.params["epsilon"]) for point in instance.points]
    assert records == [e for _, e, _ in result]
    assert [int(point.config.grid[-1]) for point in instance.points] == [t for *_, t in result]


# What changes every cell's numbers.
CHANGES = {
    "epsilon": {"epsilon": 0.999},
    "no noise": {"epsilon": None},
    "p": {"participation": 0.5},
    "R": {"rounds": 2},
    "gap": {"rounds": 2, "schedule_gap": 0.3},
    "T": {"horizon": 51},
    "times": {"times": 6},
    "slots": {"times": [1, 2, 3, 4, 50]},
    "spacing": {"spacing": "log"},
    "root seed": {"root_seed": 1},
    "agents": {"agents": 3},
    "spread": {"spread": 0.5},
    "problem gap": {"instance_gap": 0.25},
    "fixed instance": {"fixed_instance": 0},
    "sum_agents": {"sum_agents": False},
    "another algorithm": {"algorithm": "single"},
    "hybrid": {"algorithm": "hdp", "components": "1x2"},
    "hybrid of another structure": {"algorithm": "hdp", "components": "2"},
    "means": {"problem": FIXED, **ALONE},
    "other means": {"problem": fmab.Problem([0.9, math.nextafter(0.1, 1)], agents=2), **ALONE},
}


def test_whatever_changes_numbers_changes_hashes():
    """Would catch a field left out of a cell's identity: results of another configuration."""
    instance = {"plain": small()} | {name: small(**changes) for name, changes in CHANGES.items()}
    cells = [hashes(item)[0] for item in instance.values()]
    assert len(set(cells)) == len(cells) == len(CHANGES) + 1
    assert len({item.hash for item in instance.values()}) == len(instance)
    description = [json.dumps(item.describe(), sort_keys=True) for item in instance.values()]
    assert len(set(description)) == len(instance)


def test_an_exchange_is_described_with_all_that_counts():
    """Would catch chunks of another wait, another meter or other weights taken for these."""
    server = exchanges.server(4)
    description = study._describe_exchange(dataclasses.replace(server))
    assert description == study._describe_exchange(server)
    for changes in (
        {"name": "other"},
        {"reporting": 3},
        {"wait": 2},
        {"links": ((exchanges.SERVER, 5),)},
        {"links": ((exchanges.Meter("other", "server", True, "x"), 4),)},
        {"weights": np.array([0.25, 0.25, 0.25, 0.25 + 1e-16])},
        {"vectors": 7},
        {"numbers": 1},
    ):
        assert study._describe_exchange(dataclasses.replace(server, **changes)) != description


def test_a_law_with_other_source_is_another(monkeypatch):
    """Would catch results of a reward law of one's own kept after its code has changed."""
    before = hashes(small())
    codes = {law: "abc" for law in [type(fmab.Problem([0.5, 0.4], agents=2).rewards)]}
    digest = study.code_of
    monkeypatch.setattr(study, "code_of", lambda own: codes.get(type(own)) or digest(own))
    assert hashes(small()) != before


# Two ways to say the same.
ALIKE = [
    ({}, dict(horizon=50.0, seeds=np.int32(2), times=5.0, agents=2.0, arms=np.int64(2))),
    ({}, dict(rounds=None, schedule_gap=None, participation=1, spread=0, root_seed=0)),
    (dict(epsilon=[0.1, 1]), dict(epsilon=np.array([0.1, 1], np.float32))),
    (dict(epsilon=[1, None]), dict(epsilon=(1.0, math.inf))),
    (dict(algorithm=["cdp", "ddp"]), dict(algorithm=(fmab.cdp_mab, fmab.ddp_mab))),
    (dict(times=[10, 20]), dict(times=np.array([10.0, 20.0, 50.0]))),
    (
        dict(problem=fmab.Problem([0.9, 0.1], agents=2), **ALONE),
        dict(problem=fmab.Problem([[0.9, 0.1], [0.9, 0.1]]), **ALONE),
    ),
    (
        dict(algorithm="ddp", graph=nx.path_graph(4), agents=4),
        dict(algorithm="ddp", graph=nx.Graph([(3, 2), (1, 0), (2, 1)]), agents=4),
    ),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_what_changes_no_number_changes_no_hash(first, second):
    """Would catch a sweep that is computed again because it was spelt in another way."""
    first, second = small(**first), small(**second)
    assert hashes(first) == hashes(second)
    assert first.hash == second.hash


def test_a_study_is_more_than_its_cells():
    """Would catch a default folder shared by studies of other seeds, bands or dimensions."""
    instance = [
        small(),
        small(seeds=3),
        small(keep="summary"),
        small(keep="summary", until=until_precise(0.1)),
        small(keep="summary", until=until_precise(0.1, max_seeds=8)),
        small(epsilon=[1]),
    ]
    assert len({cell for item in instance for cell in hashes(item)}) == 1
    assert len({item.hash for item in instance}) == len(instance)


def test_a_graph_that_changes_under_its_name_is_another(tmp_path):
    """Would catch results of an old graph file, or old means, taken for those of the new one."""
    edges, means = tmp_path / "graph.txt", tmp_path / "means.csv"

    def made():
        return [
            small("ddp", graph=str(edges), agents=3),
            small("cdp", fmab.Problem.from_file(means, agents=2), **ALONE),
        ]

    edges.write_text("0 1\n1 2\n")
    means.write_text("0.9,0.1\n")
    before = made()
    description = [item.describe() for item in before]
    assert [item.hash for item in made()] == [item.hash for item in before]
    path = small("ddp", graph=edges, agents=3)
    assert path.hash == before[0].hash and path.describe() == description[0]
    edges.write_text("0 1\n1 2\n2 0\n")
    means.write_text("0.9,0.2\n")
    for old, text, new in zip(before, description, made(), strict=True):
        assert old.hash != new.hash and text != new.describe()


def test_equal_cells_are_one():
    """Would catch cdp computed once for each graph that it does not look at."""
    instance = small(["cdp", "ddp"], graph=["ring", "path", "complete"], agents=4)
    result = np.array(hashes(instance)).reshape(2, 3)
    assert len(set(result[0])) == 1 and len(set(result[1])) == 3
    assert len(set(result.ravel())) == 4
    doubled = small(epsilon={"a": 1, "b": 1.0, "c": 2}, rounds=[None, 3])
    assert len(doubled.points) == 6 and len(set(hashes(doubled))) == 4
    # And a cell is the same wherever it stands.
    assert hashes(small(epsilon=2, rounds=3)) == hashes(doubled)[-1:]


def test_a_description_survives_json():
    """Would catch tuples that come back as lists: a store that refuses its own study."""
    part = nx.path_graph(2)
    for instance in (
        small("ddp", graph=nx.path_graph(3), agents=3),
        small("ddp", graph=["ring", nx.path_graph(3)], agents=3),
        small("hdp", components=[part, nx.path_graph(1)], agents=3),
        small(epsilon=[None, np.float32(0.5)], times=(1, 2), horizon=np.int64(50)),
        small("cdp", {"a": FIXED}, **ALONE),
        small(keep="summary", until=until_precise(0.5)),
    ):
        description = instance.describe()
        assert json.loads(json.dumps(description, allow_nan=False)) == description
    assert description["until"] == {"relative": 0.5, "level": 0.95, "max_seeds": 10**6}
    assert (description["epsilon"], description["spread"]) == (1, 0)
    assert (description["schedule_gap"], description["instance_gap"]) == (None, None)


@pytest.mark.parametrize("root_seed", [0, 9])
def test_a_fixed_instance_is_the_draw_of_its_root_seed(root_seed):
    """Would catch root seed 0 for the one that is stated, or another seed than the instance's."""
    instance = small(fixed_instance=7, root_seed=root_seed, agents=3, arms=4)
    due = fmab.Problem.uniform(3, 4).fixed(7, root_seed)
    np.testing.assert_array_equal(instance.points[0].config.problem.means, due.means)


def test_a_configured_algorithm_is_its_class_with_its_parameters():
    """Would catch a parameter of an instance that is dropped, or another study for the same."""
    options = small(fmab.cdp_mab(0.5, rounds=3, participation=0.5), epsilon=OUT)
    text = small("cdp", epsilon=0.5, rounds=3, participation=0.5)
    assert (hashes(options), options.hash) == (hashes(text), text.hash)
    assert options.points[0].config.trial.params["rounds"] == 3.0
    assert options.describe() == text.describe()
    message = small(fmab.cdp_mab(epsilon_message=2), epsilon=OUT)
    assert hashes(message) == hashes(small(epsilon=OUT, epsilon_message=2))


def test_looks_double_up_to_the_most_seeds():
    """Would catch a look too many or beyond max_seeds, or a level that is not Bonferroni's."""
    until = until_precise(0.01, level=0.9, max_seeds=1000)
    assert until.looks(100) == [100, 200, 400, 800, 1000]
    assert until.looks(125) == [125, 250, 500, 1000]
    assert until.looks(999) == [999, 1000]
    assert until.looks(1000) == [1000]
    assert until.look_level(100) == pytest.approx(0.98, rel=1e-15)
    assert until.look_level(125) == pytest.approx(0.975, rel=1e-15)
    assert until.look_level(1000) == pytest.approx(0.9, rel=1e-15)
    assert until_precise(0.2) == until_precise(0.2, level=0.95, max_seeds=10**6)


def test_provenance_changes_with_the_engine_alone(monkeypatch, tmp_path):
    """Would catch chunks of another engine, or of source that nobody has checked, used beside those
    of this one; and stores refused for source that gives the same bits."""
    folder = tmp_path / "fmab_jax"
    shutil.copytree(Path(fmab.__file__).parent, folder)

    def now():
        study._engine.cache_clear()
        cache.source_digest.cache_clear()
        result = study.collect_provenance("cpu")
        assert result["platform"] == "cpu" and result["numpy"] == np.__version__
        return result["fmab_jax"]

    try:
        monkeypatch.setattr(cache.package_files, "files", lambda package: tmp_path / package)
        monkeypatch.setattr(study.package_files, "files", lambda package: tmp_path / package)
        (folder / "engine.txt").write_text(f"a-name\n{study.engine_source()}\n")
        assert now() == f"{fmab.__version__} (a-name)"
        (folder / "plots" / "runs.py").write_text("# not part of any number\n")
        assert now() == f"{fmab.__version__} (a-name)"
        records = set()
        rooms = (
            "sampling/samplers",
            "run/batches",
            "analysis/summary",
            "elimination",
            "parts/graphs",
        )
        for name in (
            *rooms,
            "draws/agent_sum",
            "layouts/ragged",
            "algorithms/families/elimination",
        ):
            with (folder / f"{name}.py").open("a") as file:
                file.write("# changed\n")
            assert (variant := now()).startswith(f"{fmab.__version__} (a-name, edited: ")
            records.add(variant)
        assert len(records) == 8
        # Once the pins have been found to hold, it is the same engine again.
        (folder / "engine.txt").write_text(f"a-name\n{study.engine_source()}\n")
        assert now() == f"{fmab.__version__} (a-name)"
    finally:
        study._engine.cache_clear()
        cache.source_digest.cache_clear()
