"""Study files: snippets with pinned outcomes, and labels."""

from __future__ import annotations

import math
import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.parts.rewards import Gaussian
from fmab_jax.records.problem import Problem
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.study_file import build_study, read_study, write_study

TOP = 'algorithm = "cdp"\nhorizon = 50\nseeds = 2\ntimes = 5\n'
PARAMETERS = "[parameters]\nepsilon = 1\n"
PROBLEM = "[problem]\nagents = 2\narms = 2\n"
PLAIN = TOP + PARAMETERS + PROBLEM
BASE_DOCUMENT: dict[str, Any] = tomllib.loads(PLAIN)
BASE: dict[str, Any] = dict(horizon=50, seeds=2, times=5, agents=2, arms=2, epsilon=1)


def changed(top: str = "", parameters: str = "", problem: str = "", end: str = "") -> str:
    start = TOP.replace('algorithm = "cdp"\n', "") if "algorithm" in top else TOP
    return start + top + "\n" + PARAMETERS + parameters + "\n" + PROBLEM + problem + "\n" + end


def horizon(text: str) -> str:
    return PLAIN.replace("horizon = 50", f"horizon = {text}")


def epsilon(text: str) -> str:
    return PLAIN.replace("epsilon = 1", f"epsilon = {text}")


SHARED = {"horizon": 10**4, "seeds": 20}
DRAWN = {"problem": {"agents": 6, "arms": 10}}
UNTIL = {"until": {"relative": 0.5, "level": 0.9, "max_seeds": 80}, "keep": "summary"}
DESCRIBED: dict[str, dict[str, Any]] = {
    "a grid": {
        **{"parameters": {"epsilon": [0.1, "none"], "participation": 0.4}, "root_seed": 7},
        "spacing": "log",
    },
    "graphs": {
        **{"algorithm": "ddp", "parameters": {"graph": ["ring", "star"], "epsilon": 1}},
        "problem": {"agents": 6, "arms": 10, "spread": 0.5},
    },
    "sizes and laws": {
        "parameters": {"rounds": ["none", 2], "epsilon": "none"},
        "problem": {"agents": [3, 5], "arms": 4, "rewards": ["bernoulli", "gaussian:0.1"]},
    },
    "horizons": {"horizon": [10**4, 2 * 10**4], "parameters": {"epsilon": "none"}},
    "a list of slots": {"times": [100, 500], "parameters": {"epsilon": 1, "schedule_gap": 0.1}},
    "one slot": {"times": [100], "parameters": {"epsilon": 1}},
    "components": {
        "algorithm": "hdp",
        "parameters": {"epsilon": 0.3, "components": "2,4"},
    },
    "messages": {
        "parameters": {"epsilon_message": 4.0},
        "problem": {"agents": 6, "arms": 10, "fixed_instance": 3, "instance_gap": 0.2},
        **UNTIL,
    },
    "several algorithms": {"algorithm": ["cdp", "ucb1"], "parameters": {"epsilon": [0.5, "none"]}},
    "truth values": {"algorithm": "ucb1", "parameters": {"pooled": [True, False]}},
    "defaults that are swept": {"parameters": {"epsilon": 1, "rounds": ["none"]}},
    "agents one by one": {"parameters": {"epsilon": 1}, "sum_agents": False},
    "seeds by name": {"parameters": {"epsilon": 1}, "seeds": [3, 9, 5]},
    "outputs": {"parameters": {"epsilon": 1}, "outputs": ["fairness"]},
}


def test_fixed_means_are_a_file_that_is_missing(tmp_path: Path, monkeypatch: Any) -> None:
    """Would catch another study once the file of the means is named."""
    monkeypatch.chdir(tmp_path)
    np.savez("FILE.npz", means=[0.9, 0.5, 0.1])
    problem = {"means": "FILE.npz", "agents": 4, "rewards": "gaussian:0.1", "means_error": 0.1}
    parameters = {"epsilon": "none", "graph": ["ring", "star"]}
    options = {"algorithm": "ddp", **SHARED, "parameters": parameters, "problem": problem}
    study = build_study(options)
    document = study_file.build_document(study.describe())
    assert document["problem"] == problem
    assert build_study(document).hash == study.hash


# name: (the file, what `state` is given besides BASE).
ACCEPTED: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "plain": (PLAIN, {}),
    "1e6 is a whole number": (horizon("1e6"), {"horizon": 10**6}),
    "hexadecimal": (horizon("0x32"), {}),
    "1e-3": (epsilon("1e-3"), {"epsilon": 0.001}),
    "inf": (epsilon("inf"), {"epsilon": math.inf}),
    "zeros": (changed(problem="spread = -0.0e-9_999"), {}),
    "none": (epsilon('"none"'), {"epsilon": None}),
    "list with none and inf apart": (epsilon('[0.5, "none"]'), {"epsilon": [0.5, math.inf]}),
    "labels": (epsilon('{low = 0.5, off = "none"}'), {"epsilon": {"low": 0.5, "off": None}}),
    "inline table": (TOP + "parameters = {epsilon = 1}\nproblem = {agents = 2, arms = 2}", {}),
    "BOM and CRLF": (b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode(), {}),
    "root seed 1e3": (changed("root_seed = 1e3"), {"root_seed": 1000}),
    "instance none": (changed(problem='fixed_instance = "none"'), {}),
    "slots": (PLAIN.replace("times = 5", "times = [5, 1e1, 50]"), {"times": [5, 10, 50]}),
    "both gaps": (
        changed(parameters="schedule_gap = 0.5", problem='instance_gap = [0.25, "none"]'),
        {"instance_gap": [0.25, None], "schedule_gap": 0.5},
    ),
    "until": (
        changed('keep = "summary"', end="[until]\nrelative = 0.5\nmax_seeds = 1e2"),
        {"keep": "summary", "until": fmab.until_precise(0.5, max_seeds=100)},
    ),
}  # fmt: skip


def asked(changes: dict[str, Any]) -> Any:
    options = BASE | {"algorithm": "cdp"} | changes
    return Study(options.pop("algorithm"), **options)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_snippet_states_this_study(name, tmp_path):
    """Would catch a value read as another, a table that is dropped, or bytes that are refused."""
    text, changes = ACCEPTED[name]
    path = tmp_path / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    study, expected = build_study(read_study(path)), asked(changes)
    assert [point.hash for point in study.points] == [point.hash for point in expected.points]
    assert study.hash == expected.hash


NO_KEY = "must be left out: there is no such key; "

# Files that are too large for tests/refusals.json, or in the words of the TOML reader: (the file,
# what its line begins with; STUDY is the file's name).
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a key of 1000 letters": (changed(1000 * "x" + " = 3"), f"'{76 * 'x'}...=3: {NO_KEY}"),
    "a repeated key": (changed("times = 6"), "STUDY must be TOML; Cannot overwrite a value"),
    "not UTF-8": (b"\xff\xfe" + PLAIN.encode("utf-16-le"), "STUDY must be TOML; 'utf-8' codec can"),
    "1e999": (epsilon("1e999"), "epsilon=1e999: must be a number in (0, "),
    "1e-999": (changed(problem="spread = 1e-999"), "spread=1e-999: must be a number in [0, 1]"),
    "10 MB": (PLAIN + 10_000_000 * "#", "STUDY must be a TOML file of at most 65,536 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_snippet_is_refused_with_this_line(name, tmp_path, monkeypatch):
    """Would catch a traceback, a remedy that misleads, or a value taken for something else."""
    text, line = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    message = refused(lambda: build_study(read_study("s.toml")).points)
    assert message.startswith(line.replace("STUDY ", "study='s.toml': "))
    assert len(message) < 400 and message.isprintable()


def test_a_file_of_means_goes_with_a_law(tmp_path, monkeypatch):
    """Would catch means read as coins' before the law is known, or ratings that a law replaces."""
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text("1.5,2.0,-1\n")
    levels = np.array([0.0, 1.0])
    np.savez("r.npz", levels=levels, probabilities=np.full((2, 2, 2), 0.5))

    def asked_for(problem: str) -> Any:
        text = f"{TOP}{PARAMETERS}[problem]\n{problem}\n"
        Path("s.toml").write_text(text.replace("= 1", "= inf"))
        (point,) = build_study(read_study("s.toml")).points
        return point.config.problem

    gaussian = asked_for('means = "g.csv"\nagents = 4\nrewards = "gaussian:0.1"')
    assert gaussian == Problem([1.5, 2.0, -1.0], 4, rewards=Gaussian(0.1))
    assert asked_for('means = "r.npz"') == Problem.from_file("r.npz")
    for law in ("gaussian:0.1", "bernoulli"):
        with pytest.raises(ValueError, match=f"^rewards='{law}': must be left out with ratings"):
            asked_for(f'means = "r.npz"\nrewards = "{law}"')


def draw_document(rng: random.Random) -> dict[str, Any]:
    """Returns a document that can be run, in the shape that options have."""

    def some(values: list[Any], most: int = 2) -> Any:
        sample = rng.sample(values, rng.randint(1, most))
        return sample[0] if len(sample) == 1 else sample

    name = rng.choice(["cdp", "ddp", "hdp"])
    document: dict[str, Any] = {
        "algorithm": name,
        "horizon": some([1, 3, 50, 1000, 123_456, 10**6], rng.choice([1, 2])),
        "seeds": 2,
        "times": 5,
        "root_seed": rng.choice([0, 1, 2**32 - 1]),
        "keep": rng.choice(["curves", "summary"]),
        "spacing": rng.choice(["linear", "log"]),
    }
    parameters: dict[str, Any] = {}
    if rng.random() < 0.2:
        parameters["epsilon_message"] = rng.choice([0.5, 10, math.inf])
    else:
        parameters["epsilon"] = some([0.1, 0.5, 1, 1e-300, 1e90, 7, rng.choice([None, math.inf])])
    problem: dict[str, Any] = {"agents": 2, "arms": 2}
    if rng.random() < 0.4:
        parameters["rounds"] = rng.choice([1, 2, 5, 100_000, None])
        parameters["schedule_gap"] = rng.choice([0.5, 0.01, 1, None])
    if name == "cdp":
        problem["agents"] = rng.choice([2, 3, 10])
        parameters["participation"] = rng.choice([0.95, 1])
    if name == "ddp":
        parameters["graph"] = rng.choice(["complete", "ring", ["star", "path"]])
    if name == "hdp":
        parameters["components"] = rng.choice(["1x2", "2:star", "1,1"])
        parameters["weights"] = rng.choice(["agents", "components"])
    if rng.random() < 0.3:
        problem["fixed_instance"] = rng.choice([0, 5])
    elif rng.random() < 0.3:
        problem["instance_gap"] = rng.choice([0.1, 0.5])
    document |= {"parameters": parameters, "problem": problem}
    if document["keep"] == "summary" and rng.random() < 0.3:
        document["until"] = {"relative": rng.choice([0.01, 0.9]), "max_seeds": 4}
    return document


def test_labels_are_written_and_read_back(tmp_path):
    """Would catch values without labels or some digits, or labels that are no keys of TOML."""
    labels = {"low": 1 / 3, 'a "b".c': "none", "é\x7f": 2}
    parameters = {"epsilon": labels}
    document = {**BASE_DOCUMENT, "algorithm": {"the first": "cdp"}, "parameters": parameters}
    read = read_study(write_study(document, tmp_path / "s.toml"))
    assert read == document and build_study(read).hash == build_study(document).hash
