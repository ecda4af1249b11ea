"""Verdicts on the paper's sentences: computed from data, and turned by other data."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import fmab_jax as fmab
from experiments import (
    claims,
    claims_measured,
    claims_settled,
    claims_theory,
    common,
    fig04_epsilon,
    fig07_tradeoff,
    verdicts,
)
from experiments.verdicts import FAILS, HOLDS, OPEN, Data, Finding, Measured

HORIZON, SEEDS = 10**4, 400
SMALL = {"AGENTS": 6, "ARMS": 4}
# The paper's LaTeX (arXiv 2111.01570): one .tex or .txt file in this folder.
PAPER = Path(os.environ.get("FMAB_PAPER", Path(__file__).parents[2] / "shared" / "paper"))


def quotations() -> list[str]:
    """Returns everything that is quoted on CLAIMS.md."""
    return [
        each.quote for each in (*claims.ROWS, *claims_settled.SETTLED, *claims_settled.UNMEASURED)
    ]


def latex() -> str:
    """Returns the paper's LaTeX with single blanks."""
    files = [p for end in ("tex", "txt") for p in sorted(PAPER.glob(f"*.{end}"))]
    if not files:
        pytest.skip("the paper's LaTeX is not here: unpack arXiv 2111.01570 into $FMAB_PAPER")
    return " ".join(" ".join(p.read_text("utf-8", "replace") for p in files).split())


def test_quotations_are_the_papers_words():
    """Would catch a quotation with a word, a symbol or a sign that the paper does not have."""
    text = latex()
    assert [quote for quote in quotations() if " ".join(quote.split()) not in text] == []


def test_quotations_are_a_few_words_and_stand_in_one_list():
    """Would catch a copied sentence, and a sentence that is both measured and settled."""
    assert [quote for quote in quotations() if len(quote.split()) > 16] == []
    measured = {row.quote for row in claims.ROWS}
    # The equality of a cost is settled as a bound and measured as an equality.
    both = measured & {each.quote for each in claims_settled.SETTLED}
    assert both == {r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R"}
    assert not measured & {each.quote for each in claims_settled.UNMEASURED}


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


def findings(quote: str, found: dict[str, dict[int, xr.Dataset]]) -> list[Finding]:
    """Judges the first row with this quotation."""
    data = Data(found.__getitem__, [HORIZON], SEEDS, None)
    return next(row.judge for row in claims.ROWS if row.quote == quote)(data)


def verdict(quote: str, found: dict[str, dict[int, xr.Dataset]]) -> str:
    """Returns a row's verdict at the stated tolerance."""
    return verdicts.combined(findings(quote, found))


def altered(found: dict[str, dict[int, xr.Dataset]], name: str, change) -> dict:
    """Returns the results with those of one experiment changed."""
    data = found[name][HORIZON].copy(deep=True)
    change(data)
    return {**found, name: {HORIZON: data}}


def test_regret_against_privacy_is_judged_by_the_data(simulated):
    """Would catch a verdict that is typed, or that ignores which epsilon is which."""
    quote = r"the regret increases with the decreasing of  $\epsilon$"
    assert verdict(quote, simulated) == HOLDS

    def swap(data):
        cells = data.regret.values
        cells[[0, 3]] = cells[[3, 0]]

    assert verdict(quote, altered(simulated, "fig04_epsilon", swap)) == FAILS

    def level(data):
        # Differences drowned in noise that is not shared.
        noise = np.random.default_rng(0).normal(size=data.regret.shape) * data.regret.values.mean()
        data.regret.values[:] = data.regret.values.mean() + noise

    assert verdict(quote, altered(simulated, "fig04_epsilon", level)) in (OPEN, FAILS)


def test_what_is_alike_is_judged_at_half_the_tolerance_at_it_and_at_twice_of_it(simulated):
    """Would catch a tolerance that is not applied, in one direction, or at one scale."""
    quote = r"$\epsilon=1$ indicates the non-private case"
    for times, wanted in (
        (1.001, (HOLDS, HOLDS, HOLDS)),
        (1.03, (FAILS, HOLDS, HOLDS)),
        (0.97, (FAILS, HOLDS, HOLDS)),
        (1.08, (FAILS, FAILS, HOLDS)),
        (0.85, (FAILS, FAILS, FAILS)),
    ):

        def change(data, times=times):
            data.regret.values[3] = data.regret.values[4] * times

        (found,) = findings(quote, altered(simulated, "fig04_epsilon", change))
        assert found.verdicts == wanted, times
        assert found.numbers[""].estimate == pytest.approx(times - 1, abs=1e-9)


def test_rounds_at_the_horizon_that_they_chose_are_not_counted(simulated):
    """Would catch a sentence that supports itself: T = 10^4 was chosen to fit it."""
    quote = r"we need about $ \log(T) \approx 4$ communication rounds"

    def four(data):
        data.rounds_made.values[:] = 4

    (found,) = findings(quote, altered(simulated, "fig04_epsilon", four))
    assert found.verdict == HOLDS and not found.counted
    assert verdicts.combined([found]) == OPEN


def test_elimination_is_judged_on_all_seeds(simulated):
    """Would catch seeds that took more rounds, or kept two arms, passing as decided."""
    quote = "before eliminating all suboptimal arms"

    def decided(data):
        data.rounds_made.values[:], data.active_arms.values[:] = 4, 1

    def slow(data):
        decided(data)
        data.rounds_made.values[:, :40] = 5

    def open_(data):
        decided(data)
        data.active_arms.values[:, :40] = 2

    assert verdict(quote, altered(simulated, "fig04_epsilon", decided)) == HOLDS
    assert verdict(quote, altered(simulated, "fig04_epsilon", slow)) == FAILS
    assert verdict(quote, altered(simulated, "fig04_epsilon", open_)) == FAILS


def test_the_trade_off_is_a_rank_correlation(simulated):
    """Would catch a correlation of the wrong sign or of the wrong pairs."""
    rng = np.random.default_rng(3)
    first, second = rng.random(12), rng.random(12)
    wanted = scipy.stats.kendalltau(first, second).statistic
    assert claims_measured.tau(first, second) == pytest.approx(wanted, rel=1e-12)
    quote = "a clear trade-off between the communication cost and learning performance"

    def dearer_is_worse(data):
        data.regret.values[:] = data.links.sel(meter="server").values * 1.0

    def dearer_is_better(data):
        data.regret.values[:] = 1e6 - data.links.sel(meter="server").values

    assert verdict(quote, altered(simulated, "fig07_tradeoff", dearer_is_better)) == HOLDS
    assert verdict(quote, altered(simulated, "fig07_tradeoff", dearer_is_worse)) == FAILS


def test_linear_regret_is_judged_where_all_agents_have_decided():
    """Would catch slots of exploration counted in, and a logarithm that passes as a line."""
    time = np.arange(1, 51) * 200
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=(80, 1))

    def judged(curve, decided=80):
        regret = np.where(np.arange(80)[:, None] < decided, curve * noise, np.sqrt(time))
        data = xr.Dataset(
            {
                "regret": (("algorithm", "spread", "seed", "time"), regret[None, None]),
                "active_arms": (
                    ("algorithm", "spread", "seed"),
                    np.where(np.arange(80) < decided, 1, 2)[None, None],
                ),
            },
            {"algorithm": ["Single"], "spread": ["heterogeneous"], "time": time},
        )
        found = {"fig08_heterogeneous_central": {10**4: data}}
        return verdict("the inconsistency will bring a linear regret with $T$", found)

    assert judged(3.0 * time + 500) == HOLDS
    assert judged(3.0 * time + 500, decided=40) == HOLDS
    assert judged(1e3 * np.log(time)) == FAILS
    assert judged(3.0 * time + 500, decided=20) == OPEN


def test_wrong_commitments_are_counted_among_runs_that_spent_their_budget():
    """Would catch seeds that never committed in the denominator, and a regret that is not said."""
    seeds = 100
    shape = (2, 5, seeds, 1)
    made = np.zeros(shape[:3], int)
    made[:, :4, :50] = np.array([2, 3, 4, 5])[:, None]
    wrong = np.zeros(shape[:3], bool)
    wrong[1, 0, :20] = True  # 20 of 200 runs, gap 1/16, R = 2
    wrong[1, 0, 60:] = True  # without a spent budget: not asked about
    regret = np.full(shape, 5.0)
    regret[1, 0, 7] = 777.0
    dims = ("schedule_gap", "rounds", "seed")
    data = xr.Dataset(
        {"regret": ((*dims, "time"), regret), "rounds_made": (dims, made)},
        {
            "schedule_gap": list(fig07_tradeoff.GAPS),
            "rounds": np.array([2, 3, 4, 5, "none"], object),
            "worse_arm_played": (dims, wrong),
            "time": [HORIZON],
        },
    )
    own, sixteenth = findings(
        "identify the best arm after the $R$-th communication round with high probability",
        {"fig06_rounds": {HORIZON: data}},
    )
    assert own.numbers[""].estimate == 1.0 and own.verdict == HOLDS
    assert sixteenth.numbers[""].estimate == pytest.approx(0.9)
    assert sixteenth.verdict == FAILS and sixteenth.verdicts[2] == OPEN
    assert sixteenth.numbers["largest regret of a worse arm"].estimate == 777.0
    assert "of 200 runs" in sixteenth.told and "up to 777" in sixteenth.told


def test_verdicts_of_several_conditions():
    """Would catch a row that says it holds where it fails, or where nothing was settled."""

    def row(*pairs):
        return verdicts.combined([Finding(c, "", (found,) * 3) for c, found in pairs])

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


def test_a_row_says_what_another_tolerance_would_change():
    """Would catch a verdict that hangs on the tolerance, told as if it did not."""
    found = [Finding("a", "", (FAILS, HOLDS, HOLDS)), Finding("b", "", (HOLDS, HOLDS, HOLDS))]
    assert verdicts.verdict_of(found) == "**holds**; at half the tolerance: holds only if b"
    firm = [Finding("a", "", (HOLDS,) * 3)]
    assert verdicts.verdict_of(firm) == "**holds**"
    told = verdicts.counts([HOLDS, HOLDS, "holds only if a", FAILS, "does not hold, or open", OPEN])
    assert dict(told) == {HOLDS: 2, "holds under some conditions": 1, FAILS: 2, OPEN: 1}


def test_intervals_settle_or_do_not():
    """Would catch a verdict taken from the estimate, whatever its interval; and a wrong edge."""
    assert verdicts.ordered("c", a=Measured(1, 0.5, 1.5), b=Measured(2, 1, 3)).verdict == HOLDS
    assert verdicts.ordered("c", a=Measured(1, -0.5, 2.5)).verdict == OPEN
    both = verdicts.ordered("c", a=Measured(1, 0.5, 1.5), b=Measured(-1, -2, -0.1))
    assert both.verdict == FAILS
    assert verdicts.sided(Measured(0, -0.3, 0.1), -0.2, 0.2) == OPEN
    assert verdicts.sided(Measured(1, 0.9, 1.1), -0.2, 0.2) == FAILS
    valued = verdicts.valued("c", 50.0, a=Measured(46.5, 46, 47))
    assert valued.verdicts == (FAILS, FAILS, HOLDS)
    assert verdicts.probable("c", a=Measured(0.97, 0.96, 0.98)).verdicts == (OPEN, HOLDS, HOLDS)
    assert verdicts.large("c", a=Measured(2.5, 2.4, 2.6)).verdicts == (HOLDS, HOLDS, FAILS)
    less = verdicts.no_more("c", a=Measured(0.04, 0.03, 0.049))
    assert less.verdicts == (FAILS, HOLDS, HOLDS)
    assert verdicts.no_more("c", a=Measured(-0.9, -0.95, -0.8)).verdict == HOLDS
    assert verdicts.at_most("c", 2.0, a=Measured(1.9, 1.8, 2.01)).verdict == OPEN
    assert verdicts.at_least("c", 1.0, a=Measured(1.9, 1.8, 2.0)).verdict == HOLDS


def test_ratios_have_paired_intervals():
    """Would catch an interval that ignores the pairing, or covers the ratio too rarely."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        shared = rng.gamma(5.0, size=200)
        found = verdicts.ratio(1.3 * shared + rng.normal(0, 0.01, 200), shared)
        assert found.upper - found.lower < 0.01
        covered += found.lower <= 1.3 <= found.upper
    # 99 % of 400; below 380 has probability 1e-8.
    assert covered >= 380
    power = verdicts.exponent(8.0 * np.ones(5), np.ones(5), 2.0)
    assert power.estimate == pytest.approx(3.0, rel=1e-12)
    exact = scipy.stats.binomtest(3, 40).proportion_ci(0.99, "exact")
    found = verdicts.share(np.arange(40) < 3)
    assert found == pytest.approx((3 / 40, exact.low, exact.high), rel=1e-6)


def test_numbers_are_written_with_their_intervals():
    """Would catch an uneven interval told as an even one, and lost digits."""
    assert verdicts.percent(Measured(0.1063, 0.1024, 0.1102)) == "10.63 % ± 0.39"
    assert verdicts.percent(Measured(0.98, 0.93, 0.995)) == "98.0 % [93.0, 99.5]"
    assert verdicts.number(Measured(12.5, 12.5, 12.5)) == "12.500"
    assert verdicts.percent(Measured(1e-17, -1e-16, 1e-16)) == "0 %"
    assert verdicts.number(Measured(4.0, 4.0, 4.0)) == "4"


# What arithmetic says, worked out by hand; see the reasons beside each.
BY_HAND = {
    "so $S(r) - S(r-1)$ is also doubling-increasing": True,  # 4 times; where noise decides 2
    r"is $M\epsilon$-differentially private": True,  # N <= M
    r"we have $\Pr\{E_R\} \geq 1- \frac{1}{T}$": False,  # as far as it can be proved
    r"has a scale factor of $\frac{2^{-r}}{p\Delta^{r/R}}$": False,  # 2^-r / Delta^(r/R), squared
    r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R": True,
    r"$T^{2/R} /p^{3/2}\leq  M\rightarrow R \geq \frac{4\log T}{3 \log pM} $": False,  # M^1.5 > M
    "it has implosion or the overlap problems": True,
    "gossiping distributes information slowly and incurs large end-to-end delay": True,
    "Dense graphs have a fast convergence rate but demand more connections": True,
    r"$O(2(M-1)\log T$ & $O((M^2/2)\log T)$": True,  # 98, 1250, 1225
    r"$O(\frac{dM\log M}{2\log (1/\lambda_2)}\log T$": True,
    r"$\frac{1-\Delta}{1-\Delta^{1/R}}+ \frac{R}{T}\leq 1$ since $R\geq 1$": False,  # 1 + q + ...
    "significantly reduces the burden of the uplink": True,  # 5 against 100
    "reduces the number of agent-to-agent links inside a component": True,  # 19 against 190
    "the delay of each communication round is 0 and we recover $R_{C}(T)$": True,
    "we can recover $R_{D}(T)$ with $Q=1$": False,  # a path: 9 slots against 18
    "the unbalanced agent distribution may cause a large delay": True,  # 25 against 9
    "$T^{-2/R}$ in Thereon 2 tends to a constant": False,  # 100, 39.8, 10
    "has the smallest communication cost": True,
    "which introduces a huge communication cost": True,  # 12.5 times
    r"\{63,24,10,6,7\}": False,  # 110
    "can finally achieve similar per-agent regrets": True,
    "the communication cost gradually increases": False,  # by hops: 345, 345, 149
    "(like star graph) achieve smaller communication cost": False,  # by hops case 1 costs as much
    "significantly reduces the communication cost compared with the centralized setting": True,
    "or the fully-decentralized setting(case 3)": False,  # by hops case 3 costs least
}


def test_arithmetic_says_what_it_says_by_hand():
    """Would catch an identity that is not computed, or a verdict of the wrong sign."""
    found = {each.quote: each.check() for each in claims_settled.SETTLED}
    assert {quote: holds for quote, (_, holds) in found.items()} == BY_HAND
    told = found["we can recover $R_{D}(T)$ with $Q=1$"][0]
    assert "ring 9 against 9, complete 0 against 0, path 9 against 18" in told
    told = found["the unbalanced agent distribution may cause a large delay"][0]
    assert "balanced 9, unbalanced 25" in told


def test_single_arms_are_pulled_as_in_the_simulation():
    """Would catch pulls that are not those of Algorithm 1, behind the row on 16 / gap^2."""
    horizon, instances = 10**5, 60
    gone, regret = claims_theory.pulls_of_arms(horizon, instances)
    gaps = claims_theory.gaps_of(claims_theory.uniform(), instances)
    run = fmab.simulate(fmab.cdp_mab(1), claims_theory.uniform(), horizon, instances, times=8)
    theirs = run.regret.values[:, -1]
    assert scipy.stats.ttest_rel(regret, theirs).pvalue > 1e-6
    assert abs(regret.mean() / theirs.mean() - 1) < 0.03
    # Who left was pulled as often as the doubling schedule says for some epoch.
    best = np.arange(len(gaps)), gaps.argmin(axis=1)
    assert (gone[best] == 0).all() and (gone > 0).mean() > 0.9
    printed = claims_theory._printed(np.array([0.3]), horizon, 1.0, 16)
    wanted = 16 * math.log(8 * 100 * 9 * horizon) / (50 * 0.09)
    assert printed == pytest.approx([wanted], rel=1e-12)


def test_the_page_has_every_sentence_once_and_every_number(tmp_path, monkeypatch):
    """Would catch a row that is judged and not written, and a table without its numbers."""

    def judge(data):
        third = Measured(0.3, 0.2, 0.4)
        return [Finding("T = 10⁴", "30 %", (FAILS, HOLDS, HOLDS), {"share": third})]

    rows = [verdicts.Row("IV", f"words {i}", "what", judge, "fig04", "a note") for i in range(3)]
    monkeypatch.setattr(claims, "ROWS", rows)
    monkeypatch.setattr(claims, "SETTLED", claims_settled.SETTLED[1:2])
    page, table = claims.judge(Data({}.__getitem__, [10**4], 20, None), tmp_path)
    text = page.read_text("utf-8")
    for i in range(3):
        assert text.count(f"“words {i}”") == 1
    assert "| measured | 3: 3 holds |" in text
    assert "**holds**; at half the tolerance: does not hold" in text
    assert "| settled by arithmetic | 1: 1 holds, 0 does not hold |" in text
    with table.open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert len(written) == 3
    assert written[1]["estimate"] == "0.3" and written[1]["verdict at half"] == FAILS
