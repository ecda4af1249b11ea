"""Parts by name: short and public names, names that clash, and what `fmab list` says of them."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from refusals import refused, refuses

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.algorithms.base import ALGORITHMS, load_plugin
from fmab_jax.cli.main import main
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.registry import REGISTRIES
from fmab_jax.parts.rewards import REWARDS, FiniteSupport
from fmab_jax.sweeps.study_file import build_study

SMALL = {"horizon": 50, "seeds": 2, "agents": 4, "arms": 3}
WORDS = "--agents 4 --arms 3 --horizon 50 --seeds 2 --epsilon 1"
PLUGIN = """\
from dataclasses import dataclass
import fmab_jax as fmab
@dataclass(frozen=True)
class CDP(fmab.cdp_mab):
    name = "mine"
@dataclass(frozen=True)
class Loud(fmab.Mechanism):
    name, title = "loud", "loud"
    def sample(self, words, lane, scale, draw=0):
        return scale
    def epsilon(self, scale, count, delta):
        return 1.0
"""


@pytest.fixture(autouse=True)
def _own_tables(tmp_path, monkeypatch):
    """Works in an empty folder; what a test loads, the next does not know."""
    monkeypatch.chdir(tmp_path)
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "loaded", {})


@pytest.mark.parametrize("name", fmab._PLUGS)
def test_an_algorithm_has_the_name_that_it_is_exported_under(name):
    """Would catch a public name that no command or study knows."""
    assert ALGORITHMS.find(name) is ALGORITHMS.find(getattr(fmab, name).name) is getattr(fmab, name)


def test_a_public_name_states_the_same_study():
    """Would catch a hash, a leak or a text of another study under the other name."""
    one, other = (Study(name, epsilon=1.0, **SMALL) for name in ("cdp", "cdp_mab"))
    assert one.hash == other.hash
    document = {"horizon": 50, "seeds": 2, "parameters": {"epsilon": 1.0}}
    document["problem"] = {"agents": 4, "arms": 3}
    hashes = {build_study({"algorithm": x} | document).hash for x in ("cdp", "cdp_mab", "CDP")}
    assert hashes == {one.hash}
    assert fmab.at_leak("cdp_mab", 2, agents=4) == fmab.at_leak("cdp", 2, agents=4)
    noises = [fmab.cdp_mab(1.0, mechanism=x) for x in ("gaussian", "GaussianNoise")]
    assert noises[0] == noises[1] and noises[1].plain()["mechanism"] == "gaussian"
    assert REWARDS.parse("Gaussian:0.1", "rewards") == fmab.Gaussian(0.1)


def test_commands_take_a_public_name(capsys):
    """Would catch a command that knows the short names alone."""
    assert main(f"run cdp_mab {WORDS} --no-figure --out one".split()) == 0
    assert fmab.load("one.nc").attrs["algorithm"] == "cdp"
    assert main(f"sweep cdp_mab kl_se {WORDS} --out two".split()) == 0
    assert fmab.open_sweep("two").algorithm.values.tolist() == ["cdp", "kl_se"]
    assert main("ledger cdp_mab --agents 4".split()) == 0
    capsys.readouterr()
    assert main(f"sweep cdp cdp_mab {WORDS} --out three".split()) == 2
    assert "cdp: must be named once" in capsys.readouterr().err


def test_names_of_the_package_stay_its_own():
    """Would catch a plug-in whose class, called like one here, hides it."""
    Path("mine.py").write_text(PLUGIN, "utf-8")
    load_plugin("mine.py")
    assert ALGORITHMS.find("CDP") is fmab.cdp_mab and ALGORITHMS.find("mine") is not fmab.cdp_mab
    assert MECHANISMS.parse("Loud", "mechanism").name == "loud"
    other = PLUGIN.replace('"mine"', '"cdp_mab"').replace('"loud"', '"soft"')
    Path("other.py").write_text(other, "utf-8")
    refuses("plugin='cdp_mab': must be the name of no other algorithm", load_plugin, "other.py")
    Path("third.py").write_text(PLUGIN.replace('"mine"', '"fourth"'), "utf-8")
    refuses("plugin='loud': must be the name of no other mechanism", load_plugin, "third.py")
    assert "fourth" not in ALGORITHMS.by_name()
    owner = dataclass(frozen=True)(type("Own", (fmab.cdp_mab,), {"name": "cdp_mab"}))
    refuses("'cdp_mab': must be the name of no other algorithm", Study, owner(1.0), **SMALL)


def test_the_file_of_a_plugin_is_no_name_of_its_parts(monkeypatch):
    """Would catch the name of a module that stands for one of its algorithms."""
    monkeypatch.syspath_prepend(Path.cwd())
    Path("two_of_mine.py").write_text(PLUGIN + PLUGIN.replace("mine", "too").replace("CDP", "Too"))
    monkeypatch.delitem(sys.modules, "two_of_mine", raising=False)
    assert {owner.name for owner in load_plugin("two_of_mine")} == {"mine", "too"}
    refuses("algorithm='two_of_mine': must be one of", ALGORITHMS.find, "two_of_mine")


def test_a_class_that_is_typed_again_replaces_the_one_before():
    """Would catch a ledger that asks a class as a notebook had it before an edit."""
    for claim in (1.0, 2.0):
        members = {"name": "typed", "title": "typed", "epsilon": lambda *_, claim=claim: claim}
        owner = type("Typed", (type(MECHANISMS.parse("laplace", "mechanism")),), members)
        MECHANISMS.parse(dataclass(frozen=True)(owner)(), "mechanism")
        assert MECHANISMS.parse("typed", "mechanism").epsilon(1.0, 1, 0.0) == claim


@pytest.mark.parametrize("name", ["gaussian", "Gaussian", "My law", 5, None])
def test_an_object_with_a_taken_or_unfit_name_is_refused(name):
    """Would catch a law of one's own that results call by the name of another."""
    members = {"name": name, "levels": (0.0, 1.0)}
    members["parameters"] = lambda self, means, **_: (1.0 - means, means)
    law = dataclass(frozen=True)(type("Own", (FiniteSupport,), members))()
    line = refused(fmab.Problem, [0.9, 0.1], agents=3, rewards=law)
    assert "rewards=" in line or "Own.name=" in line


def test_list_names_every_part(capsys):
    """Would catch a kind, or a part of a plug-in, that no command lists."""
    Path("mine.py").write_text(PLUGIN, "utf-8")
    assert main("list --plugin mine.py".split()) == 0
    printed = capsys.readouterr().out
    for registry in REGISTRIES:
        assert f"{registry.kind.capitalize()}:" in printed
        for name in registry.by_name():
            assert f" {name}" in printed
    assert "regret_by_agent" in printed and "regular-D" in printed
    assert main(["list", "mechanisms"]) == 0
    printed = capsys.readouterr().out
    assert "skellam" in printed and "kl_se" not in printed
    assert main(["list", "mechanism"]) == 2
    assert "did you mean mechanisms?" in capsys.readouterr().err


def test_a_new_process_lists_every_kind():
    """Would catch a kind that is listed only where something else has imported it."""
    command = [sys.executable, "-m", "fmab_jax", "list"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for registry in REGISTRIES:
        assert f"\n{registry.kind.capitalize()}:" in f"\n{printed}"
