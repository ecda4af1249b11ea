"""Files of forty lines outside the package: elimination by variance, UCB2, staircase noise."""

import json
import math
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import plugs_bernstein
import plugs_ucb2
import pytest
import scipy.stats

import fmab_jax as fmab
from fmab_jax.algorithms.base import load_plugin
from fmab_jax.cli.main import main
from fmab_jax.sampling.scope import package_settings


def test_bernstein_drops_what_numpy_drops():
    """Would catch other means, counts or epochs for `worse`, or counts of one agent alone."""
    # Rewards are all but certain, and so is every epoch.
    means, horizon, agents = np.array([0.3, 0.24, 0.16, 0.1, 0.02]), 30_000, 3
    problem = fmab.Problem(means, agents, rewards=fmab.Gaussian(1e-12))
    run = fmab.simulate(plugs_bernstein.Bernstein(first=16), problem, horizon, 1, times=horizon)
    gaps, active, before, curve, sizes = means.max() - means, np.arange(5), 0, [], []
    for number, pulls in enumerate(16 * 2 ** np.arange(20), start=1):
        slots = len(active) * (pulls - before)
        curve += [agents * gaps[active].mean()] * min(slots, horizon - len(curve))
        if len(curve) == horizon:
            break
        before, count = pulls, agents * pulls
        log = math.log(6 * 5 * number**2 * horizon)
        mean = means[active]
        half = np.sqrt(2 * mean * (1 - mean) * log / count) + 3 * log / count
        active = active[mean[0] - mean < half + half[0]]
        sizes.append(len(active))
        if len(active) == 1:
            break
    curve += [0.0] * (horizon - len(curve))
    assert run.active_arms.values[0] == len(active)
    assert np.allclose(run.regret.values[0], np.cumsum(curve), rtol=1e-9)
    assert len(set(sizes)) >= 4


def tau(r, alpha):
    """Returns ceil((1 + alpha)^r)."""
    return math.ceil((1 + alpha) ** r)


def slow_ucb2(reward, arms, horizon, alpha=0.3):
    """UCB2 as it is written, pull by pull, with episodes of no slots; returns the arms pulled."""
    played = []
    sums, pulls, phase = np.zeros(arms), np.zeros(arms), np.zeros(arms, int)
    for arm in range(arms):
        sums[arm] += reward(arm)
        pulls[arm] += 1
        played.append(arm)
    while len(played) < horizon:
        lengths = np.array([tau(r, alpha) for r in phase])
        bonus = np.sqrt((1 + alpha) * np.log(math.e * len(played) / lengths) / (2 * lengths))
        arm = int(np.argmax(sums / pulls + bonus))
        for _ in range(tau(phase[arm] + 1, alpha) - tau(phase[arm], alpha)):
            sums[arm] += reward(arm)
            pulls[arm] += 1
            played.append(arm)
        phase[arm] += 1
    return np.array(played[:horizon])


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.9])
def test_episodes_of_ucb2_are_as_long_as_tau_says(alpha):
    """Catches `episode.time` without - 1 in the file, or `episodes._seen` without + 1."""
    means, horizon = np.array([0.7, 0.62, 0.3]), 3000
    problem = fmab.Problem(means, agents=1, rewards=fmab.Gaussian(1e-12))
    result = fmab.simulate(plugs_ucb2.UCB2(alpha=alpha), problem, horizon, 1, times=horizon)
    # Rewards are all but certain, and so is every pull.
    gaps = np.diff(result.regret.values[0], prepend=0.0)
    played = np.abs(gaps[:, None] - (0.7 - means)).argmin(axis=1)
    assert np.array_equal(played, slow_ucb2(lambda arm: means[arm], 3, horizon, alpha))
    # The worst arm is never played twice in a row: its stretches are its episodes.
    edges = np.flatnonzero(np.diff(played[3:] == 2, prepend=False, append=False))
    runs = edges[1::2] - edges[::2]
    taus = sorted({tau(r, alpha) for r in range(100)})
    assert np.array_equal(runs, np.diff(taus)[: len(runs)]) and len(runs) >= 3


STAIRCASE = (Path(__file__).parents[1] / "docs/own_mechanism.md").read_text("utf-8")


def test_the_mechanism_of_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    """Would catch a page whose code fails, and a claim that is printed as a theorem."""
    monkeypatch.chdir(tmp_path)
    Path("staircase.py").write_text(STAIRCASE.split("```python\n")[1].split("```")[0], "utf-8")
    load_plugin("staircase.py")
    algorithm = fmab.cdp_mab(epsilon_message=4.0, mechanism="staircase")
    rows = fmab.privacy_ledger(algorithm, 5)
    assert rows[0].epsilon == 4.0 and "as claimed" in rows[0].why and rows[0].source == ""
    problem = fmab.Problem.uniform(agents=5, arms=4)
    values = {"epsilon_message": 4.0, "mechanism": "staircase", "rounds": [2, None]}
    data = fmab.sweep(fmab.cdp_mab, problem, **values, horizon=2000, seeds=4, store="s")
    assert (fmab.open_sweep("s").regret == data.regret).all()
    words = "run cdp --plugin staircase.py --mechanism staircase laplace --epsilon-message 4"
    sizes = "--agents 5 --arms 4 --horizon 2e3 --seeds 4 --no-figure --out r"
    assert main([*words.split(), *sizes.split()]) == 0 and fmab.load("r.nc").mechanism.size == 2
    words = "ledger cdp --plugin staircase.py --mechanism staircase --epsilon-message 4"
    assert main([*words.split(), "--agents", "5"]) == 0
    assert "as claimed" in capsys.readouterr().out


SEASONS = (Path(__file__).parents[1] / "docs/own_world.md").read_text("utf-8")


def test_the_world_of_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    """Would catch a page whose code fails, and a world that a store or a file does not know."""
    monkeypatch.chdir(tmp_path)
    source = SEASONS.split("```python\n")[1].split("```")[0]
    assert len(source.splitlines()) <= 40
    Path("seasons.py").write_text(source, "utf-8")
    load_plugin("seasons.py")
    problem = {"agents": 4, "arms": 3}
    run = {"horizon": 1000, "seeds": 4}
    worlds = [None, "seasons:2", "seasons:2,0.9"]
    data = fmab.sweep("ucb1", **problem, **run, world=worlds, store="s")
    assert data.world.values.tolist() == ["none", "seasons", "seasons:2,0.9"]
    assert (fmab.open_sweep("s").regret == data.regret).all()
    # Floats are traced: both worlds of two years share a program.
    assert data.attrs["compilations"] == 2
    assert "best_arm_lost" not in data.coords and "agents_lost" not in data
    one = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(**problem, world="seasons:2,0.9"), **run)
    assert (one.regret.values == data.regret.isel(world=2).values).all()
    assert (data.regret.isel(world=0) != data.regret.isel(world=1)).any()
    assert json.loads(one.attrs["settings"])["world"] == "world seasons:2,0.9"
    kept = fmab.sweep("ucb1", **problem, **run, world="seasons", keep="summary")
    assert "best_arm_lost" not in kept and "worse_arm_played" in kept
    assert main("bounds cdp --world drifting --epsilon 1".split()) == 2
    assert "no theorem covers means that change" in capsys.readouterr().err


OUTAGES = (Path(__file__).parents[1] / "docs/own_presence.md").read_text("utf-8")


def test_the_presence_of_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    """Would catch a page whose code fails, and a presence that a store or a file does not know."""
    monkeypatch.chdir(tmp_path)
    source = OUTAGES.split("```python\n")[1].split("```")[0]
    assert len(source.splitlines()) <= 20
    Path("outages.py").write_text(source, "utf-8")
    load_plugin("outages.py")
    problem, run = {"agents": 4, "arms": 3}, {"horizon": 1000, "seeds": 4}
    presences = [None, "outages", "outages:0.6", "absent:0.6"]
    given = {"epsilon": 1, **problem, **run, "presence": presences}
    data = fmab.sweep("kl_se", **given, store="s")
    assert data.presence.values.tolist() == ["none", "outages", "outages:0.6", "absent:0.6"]
    assert (fmab.open_sweep("s").links == data.links).all()
    # Floats are traced: both outages share a program.
    assert data.attrs["compilations"] == 3
    # Two of the four agents are at each site.
    assert not (data.links.sel(presence=["outages", "outages:0.6"]) % 2).any()
    alone = fmab.Problem.uniform(**problem, presence="outages:0.6")
    one = fmab.simulate(fmab.kl_se(1), alone, **run)
    assert (one.regret.values == data.regret.isel(presence=2).values).all()
    assert json.loads(one.attrs["settings"])["presence"] == "presence outages:0.6"
    words = "ledger kl_se --epsilon 1 --plugin outages.py --presence outages"
    assert main(words.split()) == 0 and "agents may be absent" in capsys.readouterr().out


def test_the_noise_of_the_page_has_the_law_of_its_source():
    """Would catch a step, a share or a sign of another staircase."""
    space: dict[str, Any] = {"__name__": "staircase"}
    exec(STAIRCASE.split("```python\n")[1].split("```")[0], space)
    with package_settings():
        lane = jnp.arange(100_000, dtype=jnp.uint32)
        words = jnp.uint32(1), jnp.uint32(2)
        noise = np.asarray(space["Staircase"]().sample(words, lane, jnp.float64(0.5)))
    fall, share = np.exp(-2.0), 1.0 / (1.0 + np.exp(1.0))
    # The density on [k, k + share) is a step; on [k + share, k + 1) it is the next one.
    height = [(1 - fall) / (share + fall * (1 - share)) * fall**k for k in range(5)]
    chances = [x for k in range(4) for x in (height[k] * share, height[k + 1] * (1 - share))]
    edges = [*(k + x for k in range(4) for x in (0.0, share)), 4.0]
    counts = np.histogram(np.abs(noise), edges)[0]
    counts, chances = [*counts, len(noise) - counts.sum()], [*chances, 1 - sum(chances)]
    assert scipy.stats.chisquare(counts, len(noise) * np.array(chances)).pvalue > 1e-6
    assert scipy.stats.binomtest(int((noise < 0).sum()), len(noise)).pvalue > 1e-6
