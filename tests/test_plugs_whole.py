"""One file outside the package with noise, a world, a presence, a reduction and an algorithm."""

import ast
import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import plugs_whole
import pytest
import scipy.stats
from refusals import refuses

import fmab_jax as fmab
from experiments.audit import audit
from fmab_jax.algorithms import base
from fmab_jax.cli.main import main
from fmab_jax.parts import plugins
from fmab_jax.parts.registry import REGISTRIES
from fmab_jax.sampling.scope import package_settings

FILE = str(Path(plugs_whole.__file__))
MEANS = np.array([0.9, 0.5, 0.1])
WORLD, PRESENCE = "fading:0.1,0.4", "turns:3"
PARAMS = {"epsilon_message": 1.0, "first": 50}
RUN = {"horizon": 1200, "seeds": 8}
WORDS = f"--plugin {FILE} --mechanism logistic --epsilon-message 1 --agents 4"
SIZES = "--arms 3 --horizon 1200 --seeds 8"
CONDITIONS = f"--world {WORLD} --presence {PRESENCE}"


@pytest.fixture(autouse=True)
def _forget(tmp_path, monkeypatch):
    """Runs a test in an empty folder, with no plug-in loaded before or after it."""
    monkeypatch.chdir(tmp_path)
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "loaded", {})
    monkeypatch.setattr(plugins, "_helpers", {})


def problem(world=WORLD, presence=PRESENCE):
    """Returns three arms with fixed means, and four agents."""
    return fmab.Problem(MEANS, agents=4, world=world, presence=presence)


def test_no_part_is_longer_than_forty_lines():
    """Would catch a seam that takes more than a page of code."""
    parts = ast.parse(Path(FILE).read_text("utf-8")).body
    lengths = [part.end_lineno - part.lineno + 1 for part in parts]
    assert sum(length > 8 for length in lengths) == 5 and max(lengths) <= 40


def test_noise_is_logistic():
    """Would catch another law or scale of the noise."""
    with package_settings():
        lane, words = jnp.arange(20_000, dtype=jnp.uint32), (jnp.uint32(1), jnp.uint32(2))
        noise = plugs_whole.Logistic().sample(words, lane, jnp.float64(3.0))
    assert scipy.stats.kstest(np.asarray(noise), scipy.stats.logistic(scale=3.0).cdf).pvalue > 1e-4


def test_a_run_follows_all_parts():
    """Would catch a world, a presence, noise or a schedule of the file that a run leaves out."""
    (owner,) = base.load_plugin(FILE)
    algorithm = owner(**PARAMS, mechanism="logistic")
    options = RUN | {"times": np.arange(10, 1201, 10)}
    data = fmab.simulate(algorithm, problem(), **options)
    # Phase 1 has 150 slots, whatever the rewards; means fade after 120 of them.
    gap = 4 * (MEANS.max() - MEANS).mean()
    slots = data.time.values[data.time.values <= 150]
    expected = gap * np.minimum(slots, 120) + 0.4 * gap * np.maximum(slots - 120, 0)
    assert np.allclose(data.regret.sel(time=slots), expected, rtol=1e-12)
    # Agent 2 misses round 1, agent 1 round 2, agents 0 and 3 miss round 3.
    assert np.unique(data.links).tolist() == [0, 3, 6, 8]
    row = fmab.privacy_ledger(algorithm, 4)[0]
    assert row.epsilon == 1.0 and "as claimed" in row.why
    plain = fmab.simulate(owner(**PARAMS), problem(), **options)
    assert (plain.regret != data.regret).any()


def test_a_sweep_keeps_all_parts_in_its_store():
    """Would catch parts that a store forgets, mixes up, or computes anew."""
    refuses("load a plug-in", fmab.sweep, "phased", problem(None, None), **RUN)
    base.load_plugin(FILE)
    axes = {"world": [None, WORLD], "presence": ["turns", PRESENCE]}
    study = dict(agents=4, arms=3, mechanism="logistic", **PARAMS, **axes, **RUN)
    curves = fmab.sweep("phased", **study).regret.isel(time=-1)
    kept = dict(keep="summary", outputs=["worst_regret"], store="store")
    data = fmab.sweep("phased", **study, **kept)
    assert data.worst_regret.dims == ("world", "presence")
    assert (data.worst_regret == curves.max("seed")).all()
    assert len(np.unique(data.worst_regret)) == 4
    assert (fmab.open_sweep("store").worst_regret == data.worst_regret).all()
    assert fmab.sweep("phased", **study, **kept).attrs["compilations"] == 0


def test_commands_take_all_parts(capsys):
    """Would catch a command that knows only the package's own parts."""
    assert main(f"run phased {WORDS} --first 50 {SIZES} {CONDITIONS} --out r".split()) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for fact in ("CDP-MAB in phases", "logistic noise", f"world {WORLD}", f"presence {PRESENCE}"):
        assert fact in printed
    assert Path("r.png").exists()
    Path("study.toml").write_text(
        'algorithm = "phased"\nhorizon = 1200\nseeds = 8\nkeep = "summary"\n'
        'outputs = ["worst_regret"]\n[problem]\nagents = 4\narms = 3\n'
        f'world = "{WORLD}"\npresence = "{PRESENCE}"\n'
        '[parameters]\nmechanism = "logistic"\nepsilon_message = [1, 8]\nfirst = 50\n',
        encoding="utf-8",
    )
    assert main(f"sweep study.toml --plugin {FILE} --out s".split()) == 0
    worst = fmab.open_sweep("s").worst_regret
    assert worst.sel(epsilon_message=1) == fmab.load("r.nc").regret.isel(time=-1).max()
    assert main(f"export s s.csv --plugin {FILE}".split()) == 0
    with Path("s.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {float(row["worst_regret"]) for row in rows} == set(worst.values)
    assert main("plot s --x epsilon_message --out figure.png".split()) == 0
    assert Path("figure.png").exists()
    capsys.readouterr()
    assert main(["list", "--plugin", FILE]) == 0
    printed = capsys.readouterr().out
    for usage in ("phased", "fading[:WHEN][,FACTOR]", "turns[:PERIOD]"):
        assert usage in printed


def test_ledger_and_audit_take_the_noise(capsys):
    """Would catch an audit that does not draw the noise of the file, and a claim left alone."""

    def find_contradiction(file):
        (owner,) = base.load_plugin(file)
        phased = owner(mechanism="logistic", epsilon_message=1)
        return audit(phased, 4, view="messages", runs=20_000).is_contradicted

    assert main(f"ledger phased {WORDS} --presence {PRESENCE}".split()) == 0
    printed = capsys.readouterr().out
    assert "logistic noise" in printed and "as claimed" in printed
    assert not find_contradiction(FILE)
    text = Path(FILE).read_text("utf-8").replace("return 1.0 / scale", "return 0.2 / scale")
    Path("false.py").write_text(text, "utf-8")
    for registry in REGISTRIES:
        registry.loaded.clear()
    plugins._helpers.clear()
    assert find_contradiction("false.py")
