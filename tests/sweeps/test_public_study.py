"""The door `fmab.Study`: words, TOML and Python say the same, or refuse."""

from __future__ import annotations

import inspect
import json
import random
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from test_study_file import DESCRIBED, DRAWN, SHARED, draw_document

import fmab_jax as fmab
from fmab_jax.algorithms.base import load_plugin
from fmab_jax.cli import main as cli
from fmab_jax.cli import study_options
from fmab_jax.errors import Refusal
from fmab_jax.sweeps import study_file
from fmab_jax.sweeps.fields import FIELDS, list_tables

SMALL: dict[str, Any] = {"horizon": 50, "seeds": 2, "agents": 4, "arms": 3}
PLUGIN = """
from dataclasses import dataclass

import fmab_jax as fmab
from fmab_jax.parameters import Real


@dataclass(frozen=True)
class Mine(fmab.ucb1):
    name = "mine"
    title = "Mine"
    factor: float = fmab.parameter(Real(low=0.0), "Of nothing.", default=1.0)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_words(words: list[str], command: str = "sweep") -> fmab.Study:
    """Returns the study of a command line."""
    _, parsed = cli.find([command, *words])
    _, values = cli.parse(parsed)
    return study_options.build_study(values, parsed.algorithms)[1]


def refuse_words(study: fmab.Study) -> str:
    """Returns the line in which a study refuses to be words."""
    with pytest.raises(Refusal) as error:
        study.words()
    return str(error.value)


# What words and files say beside `DESCRIBED`, by name.
SAID: dict[str, dict[str, Any]] = {
    "the order of dimensions": {"epsilon": [0.5, 1], "spread": [0, 0.5], "algorithm": "cdp"},
    "algorithms at a leak": {"algorithm": ["cdp", "kl_se"], "horizon": [50, 60], "leak": [1, None]},
    "a truth value": {"algorithm": fmab.kl_se(1.0, split=True), "arms": 8},
    "epsilon by agent": {"algorithm": "cdp", "epsilon_message": ["1x2,10x2", 1]},
    "a world and absences": {"algorithm": "ucb1", "world": "drifting:3", "presence": None},
    "laws": {"algorithm": "ucb1", "rewards": ["bernoulli", fmab.Gaussian(0.1)]},
}
# Words have no axis of one value, no list of one slot, and no axis of truth values.
UNSAID = ("defaults that are swept", "one slot", "truth values")


@pytest.mark.parametrize("name", [*SAID, *DESCRIBED])
def test_words_and_a_file_say_the_study(name: str) -> None:
    """Would catch a field that words lose, another order of dimensions, None as a text, or a
    default that counts in one form alone."""
    if name in SAID:
        values = SMALL | SAID[name]
        study = fmab.Study(values.pop("algorithm"), **values)
    else:
        document = {"algorithm": "cdp", **SHARED, **DRAWN, **DESCRIBED[name]}
        study = fmab.Study.from_document(document)
    copies = [fmab.Study.read(study.save("s.toml"))]
    if name in UNSAID:
        assert "must be one " in refuse_words(study)
    else:
        copies.append(read_words(study.words()))
    for copy in copies:
        assert copy == study
        assert [axis.name for axis in copy.axes] == [axis.name for axis in study.axes]


def test_words_and_files_say_many_studies() -> None:
    """Would catch a combination of fields that words and files read in different ways, and a
    number that loses digits."""
    rng, hashes = random.Random(7), set()
    for _ in range(30):
        study = fmab.Study.from_document(draw_document(rng))
        copy = fmab.Study.read(study.save("s.toml"))
        assert read_words(study.words()) == study == copy
        assert copy.describe() == study.describe()
        hashes.add(study.hash)
    assert len(hashes) > 20


def test_files_of_means_are_said_by_name() -> None:
    """Would catch means that are lost, an error that is dropped, or files that count as arrays."""
    Path("a.csv").write_text("0.9,0.1\n")
    np.savez("r.npz", levels=[0.0, 1.0], probabilities=np.full((2, 2, 2), 0.5))
    for values in (
        {
            "means": "a.csv",
            "agents": 3,
            "means_error": 0.1,
            "rewards": fmab.Gaussian(0.1),
            "epsilon": None,
        },
        {"means": Path("a.csv"), "agents": np.int64(3), "means_error": np.float64(0.1)},
        {"means": Path("a.csv"), "agents": 3, "presence": "absent:0.5"},
        {"means": "r.npz"},
    ):
        study = fmab.Study("cdp", horizon=50, seeds=2, **{"epsilon": 1} | values)
        assert study == fmab.Study.read(study.save("s.toml")) == read_words(study.words())
    same = fmab.Study("cdp", fmab.Problem.from_file("a.csv", 3), horizon=50, seeds=2, epsilon=1)
    assert same == fmab.Study("cdp", horizon=50, seeds=2, epsilon=1, means="a.csv", agents=3)
    for wrong, line in (
        ({"means": "nope.csv", "arms": 3}, "means='nope.csv': must be a readable file"),
        ({"means": "a.csv", "agents": 3, "arms": 3}, "arms=3: must be 2, the columns of means"),
        ({"means_error": 0.1}, "means_error=0.1: must be given with means"),
    ):
        with pytest.raises(Refusal) as error:
            fmab.Study("cdp", horizon=50, seeds=2, epsilon=1, **wrong)
        assert str(error.value).replace("path=", "means=").startswith(line)


def test_what_no_file_holds_is_refused() -> None:
    """Would catch a study file, or words, of another study than the one that is saved."""
    means = fmab.Problem([0.9, 0.5, 0.1], agents=4)
    for study in (
        fmab.Study(fmab.cdp_mab(1.0), means, horizon=50, seeds=2),
        fmab.Study("ddp", **SMALL, epsilon=1, graph=nx.path_graph(4)),
        fmab.Study([fmab.cdp_mab(1.0), fmab.ucb1()], **SMALL),
    ):
        for call in (study.words, lambda study=study: study.save("s.toml")):
            with pytest.raises(Refusal, match="must be made of names, numbers and files; "):
                call()
    assert not Path("s.toml").exists()
    # A file has labels, and an axis of one value; words have neither.
    for values in ({"epsilon": {"low": 0.5, "off": None}}, {"epsilon": [1]}):
        study = fmab.Study("cdp", **SMALL, **values)
        assert fmab.Study.read(study.save("s.toml")) == study
        assert refuse_words(study).startswith("epsilon=")


def test_an_edited_file_is_another_study_or_is_refused() -> None:
    """Would catch a key that is ignored, or an edited value that is."""
    study = fmab.Study("cdp", **SMALL, epsilon=[0.5, 1])
    text = study.save("s.toml").read_text()
    Path("t.toml").write_text(text.replace("seeds = 2", "seeds = 3"))
    edited = fmab.Study.read("t.toml")
    assert edited != study and edited.seeds == 3 and edited.points[0].hash == study.points[0].hash
    Path("t.toml").write_text(text.replace("seeds = 2", "sedes = 2"))
    with pytest.raises(Refusal, match="^sedes=2: must be left out: there is no such key; did you"):
        fmab.Study.read("t.toml")


def test_a_plug_in_comes_along_in_words() -> None:
    """Would catch words that name an algorithm which the command does not know."""
    Path("mine.py").write_text(PLUGIN)
    load_plugin("mine.py")
    study = fmab.Study("mine", **SMALL, factor=[1, 2])
    words = study.words()
    assert words[-2] == "--plugin" and Path(words[-1]).samefile("mine.py")
    assert read_words(words) == study == fmab.Study.read(study.save("s.toml"))
    assert "--plugin" not in fmab.Study("ucb1", **SMALL).words()


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"seeds": "many"}, "seeds='many': must be a whole number in [1, "),
        ({"seeds": [1, 1]}, "seeds=[1, 1]: must be distinct; "),
        ({"seeds": [3, 9], "keep": "summary"}, "seeds=[3, 9]: must be a number with keep"),
        ({"root_seed": 2**32}, "root_seed=4294967296: must be a whole number in [0, "),
        ({"sum_agents": 1}, "sum_agents=1: must be True or False; "),
        ({"until": 0.1}, "until=0.1: must be fmab_jax.until_precise(...) or None; "),
        ({"outputs": "fairness"}, "outputs='fairness': must be a list of outputs; "),
        ({"dims": "epsilon", "epsilon": [1, 2]}, "dims='epsilon': must be a list of names; "),
        ({"dims": ["agents"], "epsilon": [1, 2]}, "dims=['agents']: must be the names of all"),
        ({"epsilom": 3}, "epsilom=3: must be left out: neither algorithm nor problem takes it; "),
        ({"problem": fmab.Problem.uniform(4, 3)}, "agents=4: must be left out with a Problem; "),
        ({"problem": 3}, "problem=3: must be a Problem, or several; "),
        ({"algorithm": "ucb2"}, "algorithm='ucb2': must be "),
        ({"fast_compile": "x"}, "fast_compile='x': must be True or False; "),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, Any], line: str) -> None:
    """Would catch a value that passes unchecked until trials have run."""
    values = {"algorithm": "cdp", "epsilon": 1} | SMALL | values
    with pytest.raises(Refusal) as error:
        fmab.Study(values.pop("algorithm"), values.pop("problem", None), **values)
    assert str(error.value).startswith(line)


def test_options_of_one_form() -> None:
    """Would catch a flag that wants a value, or the first of two options that is dropped."""
    base = ["kl_se", "--agents", "4", "--arms", "8", "--horizon", "50", "--seeds", "2"]
    assert read_words([*base, "--split"]).settings["split"] is True
    assert read_words([*base, "--no-split"]).settings["split"] is False
    for words, line in (
        (["--split", "yes"], "yes: must stand after an option that takes a value; "),
        (["--epsilon", "1", "--epsilon", "2"], "--epsilon: given twice; write its values after "),
        (["--epsilon", "1", "--epsilon=2"], "--epsilon: given twice; "),
        (["--split", "--split"], "--split: given twice; "),
        (["--sum-agents", "--no-sum-agents"], "--sum-agents: given twice; "),
    ):
        with pytest.raises(Refusal, match=f"^{line}"):
            read_words([*base, *words])
    with pytest.raises(Refusal, match="^leak=<not given>: must be given with several algorithms"):
        read_words(["cdp", "kl_se", "--epsilon-message", "1"])


def test_results_say_their_study() -> None:
    """Would catch results of which no study can be read, or runs that differ between the doors."""
    study = fmab.Study("cdp", **SMALL, epsilon=[0.5, 1], dims=["epsilon"])
    data = study.run(progress=False)
    values = SMALL | {"epsilon": [0.5, 1]}
    xr.testing.assert_identical(
        data.drop_attrs(), fmab.sweep("cdp", **values, progress=False).drop_attrs()
    )
    description = json.loads(data.attrs["study"])
    assert study_file.build_study(study_file.build_document(description)).hash == study.hash
    assert data.attrs["study_hash"] == study.hash
    stored = study.run("store", progress=False)
    xr.testing.assert_identical(stored.load().drop_attrs(), data.drop_attrs())


def test_a_field_is_an_argument_a_key_and_an_option() -> None:
    """Would catch a field that one of the doors does not know."""
    for call in (fmab.Study, fmab.sweep, fmab.simulate):
        assert {*FIELDS} <= {*inspect.signature(call).parameters}
    _, command = cli.find(["run", "cdp"])
    assert {*FIELDS} <= {*command.parameters}
    top = {*list_tables([fmab.cdp_mab])[""]}
    assert {*FIELDS} - {"until"} <= top and {"horizon", "leak", "view", "algorithm"} <= top
    described = fmab.Study("ucb1", **SMALL).describe()
    assert {*FIELDS} - {"outputs", "dims"} <= {*described}


def test_equal_studies_are_equal() -> None:
    """Would catch studies compared by identity, or unequal hashes of equal studies."""
    one, same = fmab.Study("ucb1", **SMALL), fmab.Study(fmab.ucb1, **SMALL)
    assert one == same and hash(one) == hash(same) and len({one, same}) == 1
    assert one != fmab.Study("ucb1", **SMALL | {"seeds": 3}) and one != "ucb1"
    assert repr(fmab.Study("cdp", **SMALL, epsilon=[1, 2])) == "<Study of cdp x 2 epsilon, 2 seeds>"
