"""Verdicts on the paper's sentences: computed from data, and turned by other data."""

import hashlib
import json
import math
import os
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from legibility import rows_of

import fmab_jax as fmab
from experiments import (
    claims,
    claims_measured,
    claims_misprints,
    claims_runs,
    claims_settled,
    claims_theory,
    common,
    fig04_epsilon,
    fig07_tradeoff,
    verdicts,
)
from experiments.verdicts import (
    FAILS,
    HOLDS,
    MISPRINT,
    NOT_ATTAINED,
    NOT_CONTRADICTED,
    NOT_PROVED,
    NOT_REACHED,
    OPEN,
    UNJUDGED,
    Data,
    Finding,
    Measured,
)
from fmab_jax.analysis import theory
from fmab_jax.core import exchanges, graphs

HORIZON, SEEDS = 10**4, 400
ELIMINATION = (
    r"we need about $ \log(T) \approx 4$ communication rounds before eliminating all "
    "suboptimal arms"
)
# Digests of the quotations that were found in the LaTeX; `python -m tests.experiments.test_claims`
# writes them anew, where it is there.
VERIFIED = Path(__file__).with_name("quotations.json")
# The paper's LaTeX (arXiv 2111.01570): one .tex or .txt file in this folder.
PAPER = Path(os.environ.get("FMAB_PAPER", Path(__file__).parents[3] / "shared" / "paper"))


def lists():
    """Returns everything that is quoted on CLAIMS.md: section and quotation."""
    own = [*claims.ROWS, *claims.BOUNDS, *claims_settled.SETTLED]
    return [*own, *claims_misprints.MISPRINTS, *claims_settled.UNMEASURED]


def quotations():
    return [each.quote for each in lists()]


def latex():
    """Returns the paper's LaTeX with single blanks; "" where it is not."""
    files = [p for end in ("tex", "txt") for p in sorted(PAPER.glob(f"*.{end}"))]
    return " ".join(" ".join(p.read_text("utf-8", "replace") for p in files).split())


def digest(quote):
    """Returns the SHA-256 of a quotation with single blanks."""
    return hashlib.sha256(" ".join(quote.split()).encode()).hexdigest()


def verify():
    """Writes the digests of the quotations that stand in the LaTeX; returns how many do not."""
    text = latex()
    found = {quote: " ".join(quote.split()) in text for quote in quotations()}
    missing = [quote for quote, stands in found.items() if not stands]
    print(*(f"not in the paper: {quote}" for quote in missing), sep="\n")
    digests = sorted(digest(quote) for quote, stands in found.items() if stands)
    if text:
        VERIFIED.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
    return len(missing)


def test_quotations_were_found_in_the_paper():
    """Would catch a quotation with a word, a symbol or a sign that nobody has looked up."""
    verified = set(json.loads(VERIFIED.read_text("utf-8")))
    assert [quote for quote in quotations() if digest(quote) not in verified] == []
    assert len(verified) == len(set(quotations())) > 100


def test_quotations_are_the_papers_words():
    """Would catch a digest of words that the paper does not have."""
    text = latex()
    if not text:
        pytest.skip("the paper's LaTeX is not here: unpack arXiv 2111.01570 into $FMAB_PAPER")
    assert [quote for quote in quotations() if " ".join(quote.split()) not in text] == []


# As its LaTeX numbers them.
SECTIONS = """
Abstract I II III III-A III-B III-C IV IV-A IV-A1 IV-A2 IV-B IV-C IV-C1 IV-C2 V V-A V-A1 V-A2 V-A3
V-A4 V-B V-B1 V-B2 V-B3 V-B4 VI VI-A VI-A1 VI-A2 VI-A3 VI-A4 VI-B VI-B1 VI-B2 VI-B3 VI-C VI-C1 VI-C2
VII VII-A VII-A1 VII-A2 VII-A3 VII-B VII-B1 VII-C VII-C1 VII-C2 VIII
""".split()
APPENDICES = {f"Appendix {letter}" for letter in "ABCDEF"}


def test_sections_are_those_of_the_paper():
    """Would catch a sentence that is said to stand where the paper has no section."""
    named = {row.section.partition(", ")[0] for row in lists()}
    assert named - {*SECTIONS, *APPENDICES} == set()


# Judged twice, on purpose: what is measured, and what arithmetic says of another part of it.
TWICE = {
    # An equality is measured, a bound is settled.
    r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R",
    # Regret is measured, the two terms are settled.
    "turn to be a constant",
}


def test_quotations_are_a_few_words_and_stand_in_one_list():
    """Would catch a copied sentence, and one that is measured and settled or not judged."""
    assert [quote for quote in quotations() if len(quote.split()) > 16] == []
    others = [*claims_settled.SETTLED, *claims_misprints.MISPRINTS, *claims_settled.UNMEASURED]
    quotes = [row.quote for row in (*claims.ROWS, *claims.BOUNDS)]
    both = {q for q in quotes for other in others if q in other.quote or other.quote in q}
    assert both <= TWICE


def budgeted(regret):
    """Returns figure 7's runs [gap, p, R, seed], with links that grow with p and R."""
    links = np.outer([10, 20, 30, 40, 50], [2, 3, 4, 5, 5.5])[None, :, :, None]
    links = np.broadcast_to(links, regret.shape)[..., None, None] * 1.0
    data = {"regret": regret[..., None], "links": links}
    dims = ("schedule_gap", "participation", "rounds", "seed", "time", "meter")
    coords = {
        "schedule_gap": list(fig07_tradeoff.GAPS),
        "participation": fig07_tradeoff.PARTICIPATIONS,
        "rounds": np.array([2, 3, 4, 5, "none"], object),
        "meter": ["server"],
        "time": [HORIZON],
    }
    return xr.Dataset({name: (dims[: v.ndim], v) for name, v in data.items()}, coords)


@pytest.fixture(scope="module")
def simulated():
    """Made-up runs of figures 4 and 7: less ε has more regret, by more than the seeds' noise."""
    rng = np.random.default_rng(0)
    instance = 1000 * rng.gamma(5.0, size=SEEDS)
    price = np.array([1.2, 1.1, 1.05, 1.02, 1.0])[:, None]
    regret = price * instance * (1 + rng.normal(0, 0.01, (5, SEEDS)))
    made = rng.integers(3, 7, (5, SEEDS, 1))
    fig04 = xr.Dataset(
        {
            "regret": (("epsilon", "seed", "time"), regret[..., None]),
            "rounds_made": (("epsilon", "seed"), made[..., 0]),
            "active_arms": (("epsilon", "seed"), made[..., 0] % 2 + 1),
        },
        {"epsilon": np.array([0.1, 0.3, 0.5, 1, "none"], object), "time": [HORIZON]},
    )
    fig07 = budgeted(rng.gamma(5.0, size=(2, 5, 5, SEEDS)))
    return {"fig04_epsilon": {HORIZON: fig04}, "fig07_tradeoff": {HORIZON: fig07}}


@pytest.mark.slow
def test_rows_are_judged_on_what_sweeps_return():
    """Catches rows that ask for a value, meter or number that sweeps do not have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "slots", lambda horizon: np.array([horizon // 2, horizon]))
        found = {}
        sweep, small = fmab.sweep, fmab.Problem.uniform(6, 4)
        patch.setattr(fmab, "sweep", lambda algorithm, _, **own: sweep(algorithm, small, **own))
        for module in (fig04_epsilon, fig07_tradeoff):
            data = module.sweep(HORIZON, SEEDS).load()
            found[module.__name__.rpartition(".")[2]] = {HORIZON: data}
    assert verdict(r"the regret increases with the decreasing of  $\epsilon$", found) == HOLDS
    for quote in (
        "is close to the largest amount of required communication cost",
        "the regret of this case is close to the performance",
    ):
        assert all(each.numbers for each in findings(quote, found))
    tau = findings(
        "a clear trade-off between the communication cost and learning performance", found
    )
    assert all(each.numbers["minus tau"].estimate > 0 for each in tau)


def findings(quote, found, place=0):
    """Judges the row with this quotation; one of them, where there are several."""
    data = Data(found.__getitem__, [HORIZON], SEEDS, None)
    rows = [row for row in (*claims.ROWS, *claims.BOUNDS) if row.quote == quote]
    return rows[place].judge(data)


def verdict(quote, found):
    """Returns a row's verdict at the stated tolerance."""
    return verdicts.combined(findings(quote, found))


def altered(found, name, change):
    """Returns the results with those of one experiment changed."""
    data = found[name][HORIZON].copy(deep=True)
    change(data)
    return {**found, name: {HORIZON: data}}


def test_rounds_are_judged_where_the_sentence_can_mean_the_horizon(simulated):
    """Catches another horizon counted, rounds of seeds that keep arms, and far below as about 4."""
    quote = ELIMINATION

    def judged(rounds, least=SEEDS):
        def change(data):
            data.active_arms.values[:], data.rounds_made.values[:] = 1, rounds
            # Who keeps arms has made other rounds.
            data.active_arms.values[:, least:], data.rounds_made.values[:, least:] = 2, 9

        found = altered(simulated, "fig04_epsilon", change)
        (finding,) = findings(quote, found)
        return finding, found

    for more, wanted in ((0, HOLDS), (2, HOLDS), (3, FAILS), (-3, FAILS), (-2, HOLDS)):
        pattern, rounds = 4 + np.sign(more) * (np.arange(5) < abs(more)), 4 + more / 5
        found, _ = judged(np.resize(pattern, SEEDS), 300)
        assert (found.verdict, found.counted, found.against) == (wanted, True, 0.5)
        away = found.numbers["rounds away from 4"].estimate
        assert away == pytest.approx(abs(more) / 5)
        assert found.besides["rounds"].estimate == pytest.approx(rounds)
        assert found.besides["ever"].estimate == 300 / SEEDS
        assert found.besides["rounds of all"].estimate == pytest.approx(0.75 * rounds + 0.25 * 9)
    assert judged(4, 29)[0].verdict == OPEN and judged(4, 30)[0].verdict == HOLDS
    _, found = judged(4)
    later = {"fig04_epsilon": {10**5: found["fig04_epsilon"][HORIZON]}}
    row = next(row for row in claims.ROWS if row.quote == quote)
    (other,) = row.judge(Data(later.__getitem__, [10**5], SEEDS, None))
    assert (other.verdict, other.counted) == (FAILS, False)
    assert verdicts.combined([other]) == UNJUDGED


def test_distances_go_to_either_side():
    """Would catch an interval on both sides of a value told as one away from it."""
    assert claims_measured.distance(Measured(5, 3, 6), 4) == (1, 0, 2)
    assert claims_measured.distance(Measured(3, 2, 3.5), 4) == (1, 0.5, 2)
    assert claims_measured.distance(Measured(6, 5, 7), 4) == (2, 1, 3)


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


def alone_and_heterogeneous(slopes, spread):
    """Returns made-up runs of agents alone: regret grows by these slopes, with noise."""
    time = np.arange(1, 51) * 200
    noise = np.random.default_rng(0).normal(0, spread, size=(2, 80, 1))
    regret = (np.array(slopes)[:, None, None] + noise) * time
    data = xr.Dataset(
        {"regret": (("algorithm", "spread", "seed", "time"), regret[None])},
        {"algorithm": ["Single"], "spread": ["heterogeneous", "homogeneous"], "time": time},
    )
    return {"fig08_heterogeneous_central": {HORIZON: data}}


def test_who_never_converges_is_judged_by_late_regret():
    """Would catch an early slope, a slope without the comparison, and a sign."""
    quote = "the single-agent method cannot converge due to the inconsistency"
    (found,) = findings(quote, alone_and_heterogeneous((3.0, 1.0), 0.01))
    assert found.verdict == HOLDS
    (slope,) = found.numbers.values()
    assert slope.estimate == pytest.approx(2.0, abs=0.01)
    assert verdict(quote, alone_and_heterogeneous((1.0, 3.0), 0.01)) == FAILS
    assert verdict(quote, alone_and_heterogeneous((1.0, 1.0), 5.0)) == OPEN


def budget_runs(made, wrong, regret, lost=None, active=None):
    """Returns made-up runs of figure 6 [gap, rounds, seed]."""
    dims = ("schedule_gap", "rounds", "seed")
    none = np.zeros(made.shape, bool)
    return {
        "fig06_rounds": {
            HORIZON: xr.Dataset(
                {
                    "regret": ((*dims, "time"), regret[..., None]),
                    "rounds_made": (dims, made),
                    "active_arms": (dims, np.ones(made.shape, int) if active is None else active),
                },
                {
                    "schedule_gap": list(fig07_tradeoff.GAPS),
                    "rounds": np.array([2, 3, 4, 5, "none"], object),
                    "worse_arm_played": (dims, wrong),
                    "best_arm_lost": (dims, none if lost is None else lost),
                    "time": [HORIZON],
                },
            )
        }
    }


def test_wrong_commitments_are_counted_among_runs_that_spent_their_budget():
    """Would catch seeds that never committed in the denominator, R pooled, a regret not said."""
    shape = (2, 5, 100)
    made, wrong = np.zeros(shape, int), np.zeros(shape, bool)
    made[:, :4, :50] = np.array([2, 3, 4, 5])[:, None]
    wrong[1, 0, :20] = True  # 20 of 50 runs, gap 1/16, R = 2
    wrong[1, 0, 60:] = True  # without a spent budget: not asked about
    regret = np.full(shape, 5.0)
    regret[1, 0, 7] = 777.0
    own, sixteenth = findings(
        "identify the best arm after the $R$-th communication round with high probability",
        budget_runs(made, wrong, regret),
    )
    assert own.numbers["R = 2"].estimate == 1.0 and own.verdict == OPEN
    assert own.counted and not sixteenth.counted  # theorems have the instance's own gap
    assert [sixteenth.numbers[f"R = {r}"].estimate for r in (2, 3)] == [0.6, 1.0]
    assert sixteenth.verdict == FAILS
    assert sixteenth.besides["largest regret of a worse arm"].estimate == 777.0
    assert sixteenth.seeds["R = 2"] == (50, 100) and "(50 of 100 seeds)" in sixteenth.told
    assert "of 20 others 0 lost the best arm" in sixteenth.told and "up to 777" in sixteenth.told


def test_wrong_commitments_are_counted_among_all_runs_too():
    """Catches uncommitted runs left out or told as right, and early ones told as undecided."""
    shape = (2, 5, 400)
    made, wrong = np.zeros(shape, int), np.zeros(shape, bool)
    made[:, :4, :300] = np.array([2, 3, 4, 5])[:, None]
    wrong[0, 1, :40] = True
    # One arm is left before the last round: the best one, and in 20 of 60 runs another.
    early, lost = np.full(shape, 3), np.zeros(shape, bool)
    early[0, 2, 300:360], lost[0, 2, 340:360] = 1, True
    quote = "identify the best arm after the $R$-th communication round with high probability"
    runs = budget_runs(made, wrong, np.full(shape, 5.0), lost, early)
    own, sixteenth = findings(quote, runs, 1)
    assert own.counted and not sixteenth.counted
    assert sixteenth.told.endswith("(not counted: another Δ than the theorem's)")
    shares = {name: found.estimate for name, found in own.numbers.items()}
    assert shares == {"R = 2": 0.75, "R = 3": 0.65, "R = 4": 0.85, "R = 5": 0.75}
    assert own.verdict == NOT_REACHED and own.rule == "probable, whether reached"
    few = np.zeros(shape, int)
    few[0, 0, :29] = 2
    own, sixteenth = findings(quote, budget_runs(few, wrong, np.full(shape, 5.0)))
    assert not own.numbers and own.verdict == OPEN
    assert own.told.startswith("too few have spent it: R = 2 29 of 400, R = 3 0 of 400")
    active = np.full(shape, 3)
    active[0, :, :100] = 1
    quote = "is removed from the active arm set after the $R-$th communication"
    (found,) = findings(quote, budget_runs(made, wrong, np.full(shape, 5.0), active=active), 1)
    assert {each.estimate for each in found.numbers.values()} == {0.25}
    assert found.verdict == NOT_REACHED


def test_the_last_round_is_asked_whether_it_left_one_arm():
    """Would catch runs that kept arms, or did not spend their budget, counted as decided."""
    shape = (2, 5, 400)
    made, active = np.zeros(shape, int), np.full(shape, 3)
    made[:, :4, :300] = np.array([2, 3, 4, 5])[:, None]
    quote = "is removed from the active arm set after the $R-$th communication"
    none, flat = np.zeros(shape, bool), np.ones(shape)
    assert verdict(quote, budget_runs(made, none, flat, active=active)) == FAILS
    active[:, :, :300] = 1
    assert verdict(quote, budget_runs(made, none, flat, active=active)) == HOLDS


class Made(Data):
    """Sweeps that are made up, by name."""

    def __init__(self, sweeps):
        super().__init__({}.__getitem__, [10**6], 50, None)
        self.sweeps = sweeps

    def own(self, name, *args, **settings):
        return self.sweeps[name]


def made_budgets(first, none=100.0, alone=5000.0):
    """Returns made-up budgets: regret at R = 2 (both p), of the others 120, without 100."""
    rounds = np.array([2, 3, 4, 5, 6, 7, 8, 20, 40, "none"], object)
    regret = np.full((2, 10, 50), 120.0)
    regret[:, 0], regret[:, -1] = np.array(first)[:, None], none
    regret *= 1 + 0.001 * np.random.default_rng(0).normal(size=50)
    cells = xr.Dataset(
        {"regret": (("participation", "rounds", "seed"), regret)},
        {"participation": [0.2, 1.0], "rounds": rounds},
    )
    by_itself = xr.Dataset({"regret": ("seed", alone * regret[0, -1] / none)})
    return Made({"budgets-T1000000": cells, "alone-T1000000": by_itself})


def own_row(quote, data, place=0):
    """Judges a row on made-up sweeps."""
    return [row for row in claims.ROWS if row.quote == quote][place].judge(data)


def test_a_tight_budget_is_held_against_m_times_the_explicit_bound(monkeypatch):
    """Would catch a constant of 1 for O(.), the bound of another setting, or p mixed up."""
    data = made_budgets((11_800.0, 300.0))
    few = np.array([9_000.0, 900_000.0])[:, None, None] * np.ones(50)
    data.sweeps["few-report-T1000000"] = xr.Dataset(
        {"regret": (("participation", "rounds", "seed"), few)},
        {"participation": [0.1, 0.04], "rounds": np.array([2], object)},
    )
    gaps = np.array([[0.0, 0.2, 0.4]] * 25 + [[0.0, 0.3, 0.4]] * 25)
    monkeypatch.setattr(claims_theory, "gaps_of", lambda problem, seeds: gaps[:seeds])
    server = exchanges.server(50)
    bounds = [theory.bounds(each, server, 10**6, 1.0).regret for each in gaps[[0, -1]]]
    assert bounds[0] != bounds[1]
    found = own_row(r"\min\{M,\frac{T^{2/R}}{p^{3/2}}\}", data)
    wanted = dict(zip((1, 0.2, 0.1, 0.04), (300.0, 11_800.0, 9_000.0, 900_000.0), strict=True))
    for each, (p, regret) in zip(found, wanted.items(), strict=True):
        assert each.condition == f"T = 10⁶, p = {p:g} and R = 2" and each.against == 50
        over = regret / np.mean(bounds)
        assert each.numbers["over the bound"].estimate == pytest.approx(over, rel=1e-2)
        assert each.verdict == (HOLDS if over < 50 else FAILS)
        assert each.besides["times"].estimate == pytest.approx(regret / 100, rel=1e-2)
    assert {each.verdict for each in found} == {HOLDS, FAILS}


def test_a_tight_budget_is_held_against_m_and_against_agents_alone():
    """Would catch p and R mixed up, a ratio upside down, and a reference that is another one."""
    data = made_budgets((11_800.0, 300.0))
    rows = own_row("not worse than the non-communication case", data)
    assert [each.condition for each in rows] == [
        f"T = 10⁶, p = {p} and R = {r}" for p, r in ((1, 5), (0.2, 8), (1, 2), (0.2, 2))
    ]
    # 4.7 and 8.0 rounds are the least: two are outside of the sentence.
    assert [each.counted for each in rows] == [True, True, False, False]
    assert [each.verdict for each in rows] == [HOLDS, HOLDS, HOLDS, FAILS]
    assert rows[3].numbers["over agents alone"].estimate == pytest.approx(1.36, rel=1e-6)
    assert "outside: R has to be 4.71" in rows[2].told
    for alone, wanted in (
        (5000.0, (HOLDS, HOLDS)),
        (4e3, (HOLDS, NOT_ATTAINED)),
        (6e3, (FAILS, NOT_ATTAINED)),
    ):
        made = made_budgets((1.0, 1.0), alone=alone)
        found = [own_row("we can obtain $MR_C(T)$ regret", made, place)[0] for place in (0, 1)]
        # At 50 itself half of the interval is above the bound.
        assert [each.verdict for each in found] == list(wanted) or alone == 5000.0
        assert found[0].numbers == found[1].numbers and found[0].against == 50
    (found,) = own_row("we can recover $R_{C}(T)$", data)
    assert found.verdicts == (FAILS, FAILS, FAILS)  # 120 over 100


def test_orders_in_log_t_and_p_are_judged_as_bounds_and_as_attained():
    """Would catch a bound read as an equality, or a power of T in place of log T."""
    horizons = np.array([1e8, 1e10, 1e12])
    regret = (np.log(horizons) ** 0.5)[:, None] * np.ones(50)
    data = Made({"log-power": xr.Dataset({"regret": (("horizon", "seed"), regret)})})
    quote = r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret"
    bound, attained = own_row(quote, data), own_row(quote, data, 1)
    assert [each.verdict for each in bound] == [HOLDS] * 2
    assert [each.verdict for each in attained] == [NOT_ATTAINED] * 2
    assert bound[0].numbers["power of log T"].estimate == pytest.approx(0.5)
    regret = np.array([[5**1.5, 1], [5.0, 1]])[..., None] * np.ones(50)
    cells = {"regret": (("epsilon", "participation", "seed"), regret)}
    cells = xr.Dataset(cells, {"participation": [0.2, 1.0]})
    quote = "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved"
    noisy, none = own_row(quote, Made({"participation": cells}), 1)
    assert (noisy.verdict, none.verdict) == (HOLDS, NOT_ATTAINED)
    assert verdicts.kind_of(verdicts.combined([noisy, none])) == verdicts.SOMETIMES


COMBINED = {
    (HOLDS, HOLDS): HOLDS,
    (): UNJUDGED,
    (HOLDS, NOT_REACHED): "holds; not reached at b",
    (HOLDS, NOT_PROVED, OPEN): "holds; not proved at b; not decided at c",
    (OPEN, NOT_CONTRADICTED): "not contradicted; not decided at a",
    (FAILS, NOT_ATTAINED): "does not hold; not attained at b",
    (NOT_CONTRADICTED, NOT_ATTAINED): "not attained; not contradicted at a",
    (HOLDS, FAILS, OPEN): "holds only if a; not decided at c",
    (HOLDS, HOLDS, HOLDS, FAILS, OPEN): "holds but for: does not hold at d; not decided at e",
}


def test_verdicts_of_several_conditions():
    """Would catch a row that says it holds where it fails, or where nothing was settled."""

    def row(*pairs):
        return verdicts.combined([Finding(c, "", (found,) * 3) for c, found in pairs])

    for kinds, wanted in COMBINED.items():
        assert row(*zip("abcde", kinds, strict=False)) == wanted
    meters = [(f"T = {T}, meter {m}", HOLDS if m == "x" else FAILS) for T in "12" for m in "xy"]
    assert row(*meters) == "holds only if meter x"
    assert row(("T = 1, m", HOLDS), ("T = 2, m", FAILS)) == "holds only if T = 1"
    for told in ("holds; not reached at b", "holds but for: does not hold at d"):
        assert verdicts.kind_of(told) == verdicts.SOMETIMES
    assert verdicts.kind_of("not reached") == "not reached"


def test_what_a_walk_mixes_by_is_named_as_it_is_computed():
    """Catches the second modulus told as the second eigenvalue, and another graph's."""
    adjacency = nx.to_numpy_array(graphs.make("regular-4", 50)) / 4
    values = sorted(np.linalg.eigvalsh(adjacency))
    second, modulus = values[-2], sorted(map(abs, values))[-2]
    assert modulus == -values[0] > second + 0.05
    assert claims_theory.walk() == pytest.approx((second, modulus))
    page = PAGE.read_text("utf-8")
    (regret,) = (line for line in page.splitlines() if "4-regular: minus complete" in line)
    (cost,) = (line for line in page.splitlines() if "4-regular: links a round" in line)
    (slip,) = (line for line in page.splitlines() if "4-regular, log(1/λ2) of the" in line)
    by_modulus, by_value = (2 * 50 * math.log(50) / -math.log(each) for each in (modulus, second))
    told = f"at most {by_modulus:,.2f} ({by_value:,.2f} if λ2 were the second largest eigenvalue"
    assert regret.count(told) == 3 and f"at most {by_modulus:,.2f}" in cost
    for line in (regret, cost):
        assert "λ2 read as the second largest modulus of the walk's eigenvalues" in line
    assert f"λ2 the second largest modulus of the walk {-math.log(modulus):.3f}" in slip


def test_a_verdict_says_how_large_the_effect_is():
    """Catches an effect of one condition told for all, a small one unsaid, an unsaid tolerance."""
    large, small = (
        verdicts.ordered(name, x=Measured(value, 0.9 * value, 1.1 * value))
        for name, value in (("a", 0.12), ("b", 0.0025))
    )
    hangs = [Finding("a", "", (FAILS, HOLDS, HOLDS)), Finding("b", "", (HOLDS,) * 3)]
    for found, told in (
        ([large], "**holds** (by 12 %)"),
        ([small], "**holds by less than 1 %** (by 0.25 %)"),
        ([large, small], "**holds by less than 1 %** (by 0.25 to 12 %)"),
        ([large, small.uncounted("why")], "**holds** (by 12 %)"),
        ([verdicts.exactly("a", 0, x=Measured(0, 0, 0))], "**holds**"),
        (hangs[1:], "**holds**"),
        (hangs, "**holds**; at half the tolerance: holds only if b"),
    ):
        assert verdicts.verdict_of(found) == told
    assert [verdicts.span([v]) for v in (0.1459, 0.996, 9.96, 99.6, 3845.0, 1e-12, -0.0057)] == [
        "0.15", "1.0", "10", "100", "3,845", "0", "-0.0057",
    ]  # fmt: skip


def test_what_can_only_contradict_does_not_hold():
    """Would catch a consequence that supports, few runs that fail, and a proof that refutes."""
    low, across, high = (Measured(m, m - 0.1, m + 0.1) for m in (0.5, 1.0, 1.5))
    found = [verdicts.at_most("c", 1, x=each) for each in (low, across, high)]
    renamed = {
        verdicts.consequence: [NOT_CONTRADICTED, NOT_CONTRADICTED, FAILS],
        verdicts.unless_contradicted: [HOLDS, NOT_CONTRADICTED, FAILS],
        verdicts.provable: [HOLDS, OPEN, NOT_PROVED],
        verdicts.attained: [HOLDS, OPEN, NOT_ATTAINED],
    }
    for change, wanted in renamed.items():
        assert [change(each).verdict for each in found] == wanted
        assert {change(each).rule.partition(", ")[0] for each in found} == {"at most"}
    same, other = (verdicts.misprint("c", 2, x=Measured(v, v, v)) for v in (2.0, 2.1))
    assert (same.verdict, other.verdict) == (HOLDS, MISPRINT)
    assert other.told == "x 2.100; printed 2"


def test_changes_of_ratios_have_paired_intervals():
    """Would catch a ratio upside down, and an interval that forgets one of the four."""
    rng = np.random.default_rng(0)
    a, b, c, d = (10 + rng.normal(0, 1, 4000) for _ in range(4))
    found = verdicts.change((1.2 * a, b), (c, d))
    wanted = 1.2 * a.mean() / b.mean() / (c.mean() / d.mean()) - 1
    assert found.estimate == pytest.approx(wanted, rel=1e-12)
    half = 2.576 * 1.2 * math.sqrt(4 * 0.01 / 4000)
    assert (found.upper - found.lower) / 2 == pytest.approx(half, rel=0.05)
    assert verdicts.change((a, b), (a, b)) == pytest.approx((0, 0, 0), abs=1e-12)


# What arithmetic says, worked out by hand, by the first words; reasons beside.
BY_HAND = {
    "so $S(r)": HOLDS,  # 4 times; where noise decides 2
    "is $M\\epsilon$-diff": HOLDS,  # N <= M
    "incurs communication cost $C_{C}": HOLDS,  # half of log2 T at most
    "Combing Eq.": "holds; not proved at N = 1",
    "C^{p,R}_{C}": HOLDS,
    "it has implosion": HOLDS,
    "is $(M\\epsilon)-$": HOLDS,  # of messages, which are what it defines
    "incurs communication cost $C_{D}": HOLDS,
    "the communication costs incurred": HOLDS,
    "Dense graphs": HOLDS,
    # Edges 49, 50, 1225; diameter x edges 98, 1250, 1225.
    "Sparse graphs": "holds but for: does not hold at diameter x edges counted, ring",
    "$O(2(M-1)": HOLDS,  # 98, 1250, 1225
    "$O(\\frac{dM": HOLDS,
    "the terms $T^{2/R}$": HOLDS,  # e^2 and e
    "$\\frac{1-\\Delta}": FAILS,  # 1 + q + ...
    "O( (c_2M": HOLDS,
    "significantly reduces the burden": HOLDS,  # 5 against 100
    "reduces the number of agent": HOLDS,  # 19 against 190
    "the delay of each": HOLDS,
    "we can recover $R_{D}(T)$ with": HOLDS,
    "the unbalanced": HOLDS,  # 25 against 9
    # By hops star and complete have 19.
    "rather than fully": "holds but for: does not hold at hops to the sink counted, complete over "
    "star",
    "the inconsistency will": HOLDS,
    "has the smallest": HOLDS,
    "which introduces": HOLDS,  # 12.5 times
    "can finally": HOLDS,
    "the communication cost gradually": HOLDS,
    "requires us to establish": "holds only if edges counted",  # by hops: 345, 345, 149
    "(like star graph)": HOLDS,
    "significantly reduces the communication": HOLDS,
    "or the fully": HOLDS,
}
# What the print has, and what follows, by the first words; None where only reading shows it.
PRINTED = {
    # p = 0.4, r = 2, R = 5, gap 0.05: 2^-r / gap^(r/R) is 0.8286.
    "has a scale factor": (0.8286 / 0.4, 0.8286**2 / 0.4),
    r"\frac{16": (16, 128),
    r",\frac{ R": (1, 99),
    # log(10^6) / log(50) is 3.5315.
    "$T^{2/R} /p^{3/2}": (4.7087, 7.0631),
    "$T^{2/R} /p\\leq": (3.5315, 7.0631),
    r"$\min\{M,\frac{T^{1/R}}": (15.849, 251.19),
    "the term $T^{-2/R}$": (0.025119, 39.811),
    "due to the fact": None,
    "we can only incur": (1, 50),
    "=2M(d_{G}-1)": (1.5, 1.75),
    r"\bar{y}": None,
    # The second largest eigenvalue of the Laplace matrix is above 1.
    "is the second largest eigenvalue": (-1.96259, 0.188),
    "C^R_H(T)": (0, 95),
    "= O(Md_G": None,
    "please refer to Section VI-D": (4, 3),  # A, B and C
    "The SPIN protocol": None,
    r"\{63,24": (100, 110),
}


@pytest.fixture(scope="module")
def settled():
    """What arithmetic says of every settled sentence: row, findings."""
    return [(each, each.judged(None)) for each in claims_settled.SETTLED]


def test_arithmetic_says_what_it_says_by_hand(settled):
    """Would catch an identity that is not computed, or a verdict of the wrong sign."""
    assert len(settled) == len(BY_HAND)
    for (row, found), (start, wanted) in zip(settled, BY_HAND.items(), strict=True):
        assert row.quote.startswith(start)
        assert verdicts.stated_of(found) == wanted, row.quote
    told = {row.quote: verdicts.lines_of(found) for row, found in settled}
    words = told["we can recover $R_{D}(T)$ with $Q=1$"]
    assert "path of 20, GIS waits 18: slots of waiting 9; at most 18" in words
    quote = "the unbalanced agent distribution may cause a large delay"
    assert "(25 slots of waiting over 9)" in told[quote]
    leaks = next(found for row, found in settled if row.quote.startswith("is $M\\epsilon$-diff"))
    assert [(each.condition, *each.effects.values()) for each in leaks] == [
        ("Theorem 1", 1.0),  # all of them report
        ("Theorem 2, p = 0.4", 0.4),
    ]
    for row, found in settled:
        if row.section == "VII-C1" and "hops" in verdicts.lines_of(found):
            by_hops = [each for each in found if each.condition.startswith("hops")]
            assert len(by_hops) == len(found) / 2
            counted = row.quote.startswith("requires us")
            assert all(each.counted == counted for each in by_hops), row.quote
    assert "2.041 % (2,500 over 2,450)" in told["it has implosion or the overlap problems"]
    # An order, O(.), bounds from above; the formula itself is told.
    table = next(found for row, found in settled if row.quote.startswith("$O(2(M-1)"))
    assert [each.rule for each in table] == ["at most"] * 3
    assert [each.against for each in table] == [98, 1250, 1225]
    assert table[1].numbers["diameter x edges"].estimate == 1250


def test_what_the_definition_leaves_out_is_what_the_ledger_says():
    """Would catch a remark on actions that the ledger does not bear out."""
    rows = fmab.privacy_ledger(fmab.ddp_mab(1, "ring"), 50)
    assert max(row.epsilon for row in rows if row.observation == "actions") == math.inf
    quiet = fmab.privacy_ledger(fmab.ddp_mab(1, "ring", private_waiting=True), 50)
    assert max(row.epsilon for row in quiet if row.observation == "actions") < math.inf
    (remark,) = (u.words for u in claims_settled.UNMEASURED if "leaves out" in u.words)
    assert "the privacy ledger has no bound" in remark


def test_misprints_are_computed(monkeypatch):
    """Would catch a print that is quoted with another number, and what does not follow."""
    gone = np.array([[0.0, 100.0]] * 2)
    monkeypatch.setattr(claims_misprints, "pulls_of_arms", lambda T, seeds: (gone, None))
    gaps = np.array([[0.0, 0.3]] * 2)
    monkeypatch.setattr(claims_misprints, "gaps_of", lambda problem, seeds: gaps)
    data = Data({}.__getitem__, [HORIZON], SEEDS, None)
    assert len(PRINTED) == len(claims_misprints.MISPRINTS)
    for row, (start, numbers) in zip(claims_misprints.MISPRINTS, PRINTED.items(), strict=True):
        assert row.quote.startswith(start), row.quote
        first, *others = row.judge(data)
        assert first.verdict == MISPRINT and not any(each.counted for each in others)
        if numbers is None:
            assert not first.numbers and first.told
        else:
            (follows,) = first.numbers.values()
            assert (first.against, follows.estimate) == pytest.approx(numbers, rel=1e-3, abs=1e-3)


PAGE = Path(claims.__file__).parents[1].joinpath("figures/CLAIMS.md")


def test_the_published_page_says_what_arithmetic_says(settled):
    """Catches rows that all say they hold, and one that the code judges otherwise."""
    text = PAGE.read_text("utf-8").partition("## Settled by arithmetic\n")[2].partition("\n## ")[0]
    wanted = []
    for row, found in settled:
        told = verdicts.lines_of(found, "<br>"), verdicts.verdict_of(found)
        wanted.append(" | ".join([row.section, claims.quoted(row.quote), row.words, *told]))
    assert [line[2:-2] for line in text.splitlines() if line.startswith("| ")][1:] == wanted


def read_finding(rows):
    """Returns a finding from its rows of claims.csv, judged anew by the rule that they name."""
    first = rows[0]
    at = tuple(first[f"verdict at {name}"] for name in ("half", "stated", "twice"))
    judged = [row for row in rows if row["rule"] and row["estimate"]]
    ends = ("estimate", "lower", "upper")
    numbers = {row["quantity"]: Measured(*(float(row[end]) for end in ends)) for row in judged}
    rule = judged[0]["rule"] if judged else first["rule"]
    against = float(judged[0]["against"] or "nan") if judged else math.nan
    counted = first["counted"] == "True"
    return Finding(first["condition"], first["told"], at, numbers, counted, rule, against)


def test_published_verdicts_are_those_of_their_findings():
    """Catches words on the page that the code would not write of the numbers in claims.csv."""
    page = PAGE.read_text("utf-8").splitlines()
    data = Data({}.__getitem__, [10**4, 10**5, 10**6], 1000, None)
    start = [*claims._head(data), "| list | sentences |", "|---|---|"]
    assert page[: len(start)] == start
    assert "\n".join(claims._unmeasured()).rstrip() in "\n".join(page)
    by_row = {}
    for row in rows_of(PAGE.with_name("claims.csv")):
        by_row.setdefault(row["row"], {}).setdefault(row["condition"], []).append(row)
    for each, kept in zip(lists(), by_row.values(), strict=True):
        if each in claims_settled.UNMEASURED:
            ((row,),) = kept.values()
            assert (row["quote"], row["told"], row["verdict"]) == (each.quote, each.words, UNJUDGED)
            continue
        found = [read_finding(own) for own in kept.values()]
        start = f"| {each.section} | {claims.quoted(each.quote)} | "
        told = verdicts.verdict_of(found)
        end = f" | {verdicts.lines_of(found, '<br>')} | {told} |"
        assert any(line.startswith(start) and end in line for line in page), each.quote


def test_single_arms_are_pulled_as_in_the_simulation():
    """Would catch pulls that are not those of Algorithm 1, behind the row on 16 / gap^2."""
    horizon, instances = 10**5, 60
    gone, regret = claims_runs.pulls_of_arms(horizon, instances)
    gaps = claims_runs.gaps_of(claims_runs.uniform(), instances)
    run = fmab.simulate(fmab.cdp_mab(1), claims_runs.uniform(), horizon, instances, times=8)
    theirs = run.regret.values[:, -1]
    assert scipy.stats.ttest_rel(regret, theirs).pvalue > 1e-6
    assert abs(regret.mean() / theirs.mean() - 1) < 0.03
    # Who left was pulled as often as the doubling schedule says for some epoch.
    best = np.arange(len(gaps)), gaps.argmin(axis=1)
    assert (gone[best] == 0).all() and (gone > 0).mean() > 0.9


def test_the_page_has_every_sentence_and_every_number(tmp_path, monkeypatch):
    """Would catch a row that is judged and not written, and a table without its numbers."""
    third, one = Measured(0.3, 0.2, 0.4), Measured(3.0, 3.0, 3.0)
    shared = Finding("T = 10⁴", "30 %", (FAILS, HOLDS, HOLDS), {"share": third}, rule="probable")
    rows = [verdicts.Row("IV", f"words {i}", "what", lambda _: [shared], "fig04") for i in (0, 1)]
    most = verdicts.settled("V", "words 2", "why", lambda: [verdicts.at_most("in", 2.0, share=one)])
    slip = verdicts.Row("VI", "words 3", "10", lambda _: [verdicts.misprint("", 9, x=one)])
    for name, given in (
        ("ROWS", rows), ("BOUNDS", rows[:1]), ("SETTLED", [most]), ("MISPRINTS", [slip]),
    ):  # fmt: skip
        monkeypatch.setattr(claims, name, given)
    page, table = claims.judge(Data({}.__getitem__, [10**4], 20, None), tmp_path)
    text = page.read_text("utf-8")
    assert [text.count(f"“words {i}”") for i in range(4)] == [2, 1, 1, 1]
    written = rows_of(table)
    assert len(written) == 2 + 1 + 1 + 1 + len(claims_settled.UNMEASURED)
    heads = "list row section quote condition quantity estimate lower upper".split()
    assert [written[1][head] for head in heads] == [
        *("measured", "2", "IV", "words 1", "T = 10⁴", "share", "0.3", "0.2", "0.4")
    ]
    assert (written[1]["counted"], written[1]["told"]) == ("True", "30 %")
    told = [written[1][f"verdict at {at}"] for at in ("half", "stated", "twice")]
    assert told == [FAILS, HOLDS, HOLDS]
    assert written[1]["verdict"] == "**holds** (in 30 %); at half the tolerance: does not hold"
    assert [row["list"] for row in written[2:5]] == [
        "bounds with explicit constants", "settled by arithmetic", "misprints",
    ]  # fmt: skip
    assert [written[3][head] for head in ("rule", "against", "effect")] == ["at most", "2.0", "1.5"]
    assert (written[5]["list"], written[5]["estimate"]) == (UNJUDGED, "")


if __name__ == "__main__":
    sys.exit(verify())
