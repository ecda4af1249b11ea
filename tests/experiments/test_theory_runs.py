"""What docs/theory.md says that runs show, and what it computes: by brute force, and by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import fmab_jax as fmab
from experiments import __main__ as command
from experiments import pages, theory_runs
from fmab_jax.core import evidence
from tests.experiments.test_pages import write_table

EPSILONS = (0.1, 1.0, 10.0, math.inf)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pairs_show_what_the_evidence_is_in_the_end(epsilon):
    """Would catch a tilt of the other arm, another largest expectation, and another noise."""
    n, low, high = 1e9, 0.3, 0.45
    for beta in (1e-4, 0.002, 0.02):
        with jax.enable_x64(True):
            numbers = jnp.float64(beta * n), jnp.float64(n), jnp.zeros(1), jnp.float64(epsilon)
            ready = evidence.choose_tilts(*numbers)
            sums = jnp.array([low]), jnp.float64(high), jnp.float64(n)
            told = float(evidence.evidence(ready, *sums, jnp.float64(0), jnp.float64(0))[0]) / n
        (found,) = theory_runs.shown(np.array([beta]), low, high, epsilon)
        assert found == pytest.approx(told, abs=1e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("means", [(0.02, 0.05), (0.3, 0.7), (0.1, 0.9), (0.9, 0.97)])
def test_every_smaller_number_is_shown(means, epsilon):
    """Would catch the last crossing for the first, a grid that begins too late, and a D_infinity
    that is no infimum, or of one arm."""
    most = theory_runs.most(*means, epsilon)
    low, high = means
    q = np.linspace(low, high, 20_001)
    with jax.enable_x64(True):
        both = evidence.private_divergence(jnp.float64(low), jnp.array(q), jnp.float64(epsilon))
        other = evidence.private_divergence(
            jnp.float64(1 - high), 1 - jnp.array(q), jnp.float64(epsilon)
        )
    assert most == pytest.approx(float((np.asarray(both) + np.asarray(other)).min()), rel=1e-6)
    found = theory_runs.sixteen(*means, epsilon)
    assert 0.9 * most < found <= most
    smaller = found * np.geomspace(1e-7, 1.0, 3000)
    assert (theory_runs.shown(smaller, *means, epsilon) >= smaller).all()
    larger = 1.001 * found
    assert theory_runs.shown(np.array([larger]), *means, epsilon)[0] < larger


def test_the_first_number_that_is_not_shown_ends_the_search(monkeypatch):
    """Would catch the largest number that is shown, though a smaller one is not."""
    monkeypatch.setattr(theory_runs, "most", lambda *_: 1.0)

    def shown(beta, *_):
        return np.where((beta > 0.3) & (beta < 0.4), 0.0, 2.0 * np.asarray(beta))

    monkeypatch.setattr(theory_runs, "shown", shown)
    assert theory_runs.sixteen(0.1, 0.2, 1.0) == pytest.approx(0.3, rel=1e-3)
    monkeypatch.setattr(theory_runs, "shown", lambda beta, *_: 2.0 * np.asarray(beta))
    assert theory_runs.sixteen(0.1, 0.2, 1.0) == pytest.approx(1.0, rel=1e-3)


def test_rows_are_those_of_their_runs():
    """Would catch another epsilon's runs, and rounds that the horizon has no room for."""
    lost = xr.DataArray([3, 5, 8], {"epsilon": list(theory_runs.EPSILONS)}, "epsilon")
    cells = xr.Dataset({"best_arm_lost": lost, "seeds": xr.full_like(lost, 1000)})
    hard = {way: cells.assign_attrs(horizon=10**5) for way in theory_runs.WAYS}
    rows = theory_runs.lost_rows(hard)
    assert [(row["ε"], row["lost"]) for row in rows[:3]] == [("0.1", 3), ("1", 5), ("10", 8)]
    assert len(rows) == 12
    for row in rows:
        # 1 + 2 x 2^15 slots of 10^5; 1 + 2 x 2^18 of those of 8 agents together.
        rounds = 19 if row["way"] == "arms shared out" else 16
        assert row["allowed"] == pytest.approx(1e-3 * 2 / 3 * rounds / (rounds + 1), rel=1e-12)
        assert row["lost"] / 1000 < row["upper"] < 0.03


@pytest.mark.parametrize("failure", [0.3, 0.01])
def test_the_best_arm_is_lost_as_rarely_as_promised(failure):
    """Would catch a third of the level, noises of one agent or of one epoch, and rules by exponents
    without noise: each of them loses it more often at a failure of 0.01."""
    # Nothing tells the arms apart, so that whoever leaves first is soon the best of two.
    problem = fmab.Problem(np.array([0.5 + 1e-9, 0.5]), agents=4)
    algorithm = fmab.kl_se(0.1, first=1, growth=1.2, failure=failure)
    lost = int(fmab.simulate(algorithm, problem, 10**5, 4000, times=1).best_arm_lost.sum())
    assert scipy.stats.binomtest(lost, 4000, failure / 2, "greater").pvalue > 1e-6


def test_the_page_says_what_the_rows_say(tmp_path):
    """Catches a margin rounded up, a ratio upside down, and a row of another number of runs."""
    heads = ["way", "ε", "runs", "lost", "upper", "allowed"]
    rows = [
        ("all", "0.1", 1000, 4, 0.01, 0.05), ("all", "1", 1000, 0, 0.01, 0.05),
        ("few", "0.1", 1000, 3, 0.01, 0.05), ("few", "1", 1000, 7, 0.01, 0.05),
    ]  # fmt: skip
    write_table(tmp_path / "theory_lost.csv", heads, rows)
    text = pages._theory_lost(pages.Numbers(tmp_path))
    assert "| all | 1,000 | 4 | 0 | 50,000 |" in text and "| few | 1,000 | 3 | 7 |" in text
    # 50 are allowed of a thousand, 7 were lost.
    assert "allows at least 7 times as many" in text
    write_table(tmp_path / "theory_lost.csv", heads, [*rows[:3], ("few", "1", 500, 7, 0.01, 0.05)])
    with pytest.raises(ValueError, match="several numbers of runs"):
        pages._theory_lost(pages.Numbers(tmp_path))
    heads = ["ε", "pairs", "smallest D_16 / D_∞", "median D_16 / D_∞", "d_ε / D_∞ at 0.1 and 0.9"]
    rows = [("0.1", 300, 0.9699, 0.999, 1.03), ("none", 300, 0.98, 0.9959, 2.4)]
    write_table(tmp_path / "theory_shown.csv", heads, rows)
    text = pages._theory_shown(pages.Numbers(tmp_path))
    # What is said of all is rounded down.
    assert "is at least 0.969 for 300 random pairs" in text and "median is at least 0.995." in text
    assert "is 1.03 at $\\varepsilon = 0.1$, 2.40 without noise." in text


def test_the_runs_are_an_experiment_by_name():
    """Would catch a command of docs/theory.md that does nothing."""
    assert command.find_name("theory_runs") == "theory_runs"
    assert theory_runs.horizons([10**4, 10**6]) == [10**5]
