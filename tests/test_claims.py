"""Verdicts on the paper's sentences: computed from data, and turned by other data."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from experiments import claims, common, fig04_epsilon, fig07_tradeoff
from experiments.claims import FAILS, HOLDS, OPEN, Data, Finding, Measured

HORIZON, SEEDS = 10**4, 400
SMALL = {"AGENTS": 6, "ARMS": 4}


@pytest.fixture(scope="module")
def simulated():
    """Figures 4 and 7 with few agents and arms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "slots", lambda horizon: np.array([horizon // 2, horizon]))
        found = {}
        for module in (fig04_epsilon, fig07_tradeoff):
            for name, value in SMALL.items():
                patch.setattr(module, name, value)
            data = module.sweep(HORIZON, SEEDS).load()
            found[module.__name__.rpartition(".")[2]] = {HORIZON: data}
        return found


def verdict(words: str, found: dict[str, dict[int, xr.Dataset]], place: int = 0) -> str:
    """Judges the claim with these words."""
    data = Data(found.__getitem__, [HORIZON], SEEDS, None)
    judge = [claim.judge for claim in claims.CLAIMS if claim.words == words][place]
    return claims.combined(judge(data))


def altered(found: dict[str, dict[int, xr.Dataset]], name: str, change) -> dict:
    """Returns the results with those of one experiment changed."""
    data = found[name][HORIZON].copy(deep=True)
    change(data)
    return {**found, name: {HORIZON: data}}


def test_regret_against_privacy_is_judged_by_the_data(simulated):
    """Would catch a verdict that is typed, or that ignores which epsilon is which."""
    words = "regret increases with the decreasing of ε"
    assert verdict(words, simulated) == HOLDS

    def swap(data):
        cells = data.regret.values
        cells[[0, 3]] = cells[[3, 0]]

    assert verdict(words, altered(simulated, "fig04_epsilon", swap)) == FAILS

    def level(data):
        # Differences drowned in noise that is not shared.
        noise = np.random.default_rng(0).normal(size=data.regret.shape) * data.regret.values.mean()
        data.regret.values[:] = data.regret.values.mean() + noise

    assert verdict(words, altered(simulated, "fig04_epsilon", level)) in (OPEN, FAILS)


def test_the_price_of_noise_is_judged_by_the_data(simulated):
    """Would catch a tolerance that is not applied, in either direction."""
    words = "ε = 1 is the non-private case"

    def equal(data):
        data.regret.values[3] = data.regret.values[4] * 1.001

    def dearer(data):
        data.regret.values[3] = data.regret.values[4] * 1.1

    def cheaper(data):
        data.regret.values[3] = data.regret.values[4] * 0.9

    assert verdict(words, altered(simulated, "fig04_epsilon", equal)) == HOLDS
    assert verdict(words, altered(simulated, "fig04_epsilon", dearer)) == FAILS
    assert verdict(words, altered(simulated, "fig04_epsilon", cheaper)) == FAILS


def test_the_cost_bound_is_judged_by_the_data(simulated):
    """Would catch one trial over the bound going unseen."""
    words = "cost is c1 ⌈pM⌉ R"
    assert verdict(words, simulated) == HOLDS

    def one_more(data):
        # Gap, participation, rounds, seed, time: a single link too many in one trial.
        data.links.sel(meter="server").values[0, 4, 0, 7, -1] = 2 * SMALL["AGENTS"] + 1

    assert verdict(words, altered(simulated, "fig07_tradeoff", one_more)) == FAILS


def test_verdicts_of_several_conditions():
    """Would catch a row that says it holds where it fails, or where nothing was settled."""

    def row(*pairs):
        return claims.combined([Finding(condition, "", found) for condition, found in pairs])

    assert row(("a", HOLDS), ("b", HOLDS)) == HOLDS
    assert row(("a", FAILS), ("b", FAILS)) == FAILS
    assert row(("a", OPEN)) == OPEN and row() == OPEN
    assert row(("a", HOLDS), ("b", OPEN)) == "holds; not decided at b"
    assert row(("a", FAILS), ("b", OPEN)) == "does not hold, or open"
    assert row(("a", HOLDS), ("b", FAILS), ("c", OPEN)) == "holds only if a"
    meters = [(f"T = {T}, meter {m}", HOLDS if m == "x" else FAILS) for T in "12" for m in "xy"]
    assert row(*meters) == "holds only if meter x"
    mixed = [("T = 1, m", HOLDS), ("T = 2, m", FAILS)]
    assert row(*mixed) == "holds only if T = 1"


def test_intervals_settle_or_do_not():
    """Would catch a verdict taken from the estimate, whatever its interval."""
    assert claims.positive(Measured(1, 0.5, 1.5), Measured(2, 1, 3)) == HOLDS
    assert claims.positive(Measured(1, -0.5, 2.5)) == OPEN
    assert claims.positive(Measured(1, 0.5, 1.5), Measured(-1, -2, -0.1)) == FAILS
    assert claims.within(Measured(0, -0.1, 0.1), -0.2, 0.2) == HOLDS
    assert claims.within(Measured(0, -0.3, 0.1), -0.2, 0.2) == OPEN
    assert claims.within(Measured(1, 0.9, 1.1), -0.2, 0.2) == FAILS


def test_ratios_have_paired_intervals():
    """Would catch an interval that ignores the pairing, or covers the ratio too rarely."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        shared = rng.gamma(5.0, size=200)
        found = claims.ratio(1.3 * shared + rng.normal(0, 0.01, 200), shared)
        assert found.upper - found.lower < 0.01
        covered += found.lower <= 1.3 <= found.upper
    # 99 % of 400; below 380 has probability 1e-8.
    assert covered >= 380
    power = claims.exponent(8.0 * np.ones(5), np.ones(5), 2.0)
    assert power.estimate == pytest.approx(3.0, rel=1e-12)


def test_every_claim_says_what_agreement_is():
    """Would catch a row without words, a measure, or a source."""
    assert len(claims.CLAIMS) >= 40
    for claim in claims.CLAIMS:
        assert all((claim.section, claim.words, claim.measured, claim.see))
        assert len(claim.words.split()) <= 16, claim.words
        assert callable(claim.judge)
