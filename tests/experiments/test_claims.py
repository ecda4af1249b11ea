"""Verdicts on the paper's sentences: computed from data, and turned by other data."""

import hashlib
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import rows_of

from experiments import claims, common, figures, runs, verdicts
from experiments.claims_unjudged import UNJUDGED
from experiments.verdicts import FAILS, HOLDS, NOT_REACHED, OPEN, Data, Finding, Measured

HORIZON, SEEDS = 10**4, 400
PAGE = Path(common.__file__).parents[1] / "figures" / "CLAIMS.md"
# Digests of the quotations that were found in the LaTeX; `python -m tests.experiments.test_claims`
# writes them anew, where it is there.
VERIFIED = Path(__file__).with_name("quotations.json")
# The paper's LaTeX (arXiv 2111.01570): one .tex or .txt file in this folder.
PAPER = Path(os.environ.get("FMAB_PAPER", Path(__file__).parents[3] / "shared" / "paper"))


def lists():
    """Returns every row of CLAIMS.md."""
    return [row for rows in claims.LISTS.values() for row in rows]


def unjudged():
    """Returns the quotations of the sentences that CLAIMS.md does not judge."""
    return [quote for sentences in UNJUDGED.values() for _, quote in sentences]


def quotations():
    return [row.quote for row in lists()] + unjudged()


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


def test_no_sentence_is_both_judged_and_not():
    """Would catch a sentence that is not judged any more, and not listed as such either."""
    assert {row.quote for row in lists()}.isdisjoint(unjudged())
    page = PAGE.read_text("utf-8").partition("\n## Not judged\n")[2]
    for sentences in UNJUDGED.values():
        for section, quote in sentences:
            assert f"| {section} | {claims.write_quote(quote)} |" in page
    # Whole sections of the paper's experiments that no row judges.
    judged = {row.section for row in lists()}
    sections = {section for sentences in UNJUDGED.values() for section, _ in sentences}
    assert {"VII-A1", "VII-A2", "VII-A3", "VII-B1", "VII-C1", "VII-C2"} <= judged | sections


def test_quotations_were_found_in_the_paper():
    """Would catch a quotation with a word, a symbol or a sign that nobody has looked up."""
    verified = set(json.loads(VERIFIED.read_text("utf-8")))
    assert [quote for quote in quotations() if digest(quote) not in verified] == []
    assert len(verified) == len(set(quotations())) > 40


def test_quotations_are_the_papers_words():
    """Would catch a digest of words that the paper does not have."""
    text = latex()
    if not text:
        pytest.skip("the paper's LaTeX is not here: unpack arXiv 2111.01570 into $FMAB_PAPER")
    assert [quote for quote in quotations() if " ".join(quote.split()) not in text] == []


def findings(quote, results, place=0, horizon=HORIZON):
    """Judges the row with this quotation; one of them, where there are several."""
    data = Data(results.__getitem__, [horizon], SEEDS, None)
    return [row for row in lists() if row.quote == quote][place].judge(data)


def verdict(quote, results):
    """Returns a row's verdict."""
    return verdicts.combine(findings(quote, results))


@pytest.mark.parametrize(
    ("rounds", "horizon", "wanted"),
    [(4.0, HORIZON, HOLDS), (4.4, HORIZON, HOLDS), (4.6, HORIZON, FAILS), (3.4, HORIZON, FAILS),
     (4.0, 10**5, FAILS)],
)  # fmt: skip
def test_rounds_are_judged_where_the_sentence_can_mean_the_horizon(rounds, horizon, wanted):
    """Would catch another horizon counted, seeds that keep arms, and far below as about 4."""
    quote = next(row.quote for row in lists() if "communication rounds before" in row.quote)
    decided = np.arange(SEEDS) < 300
    low = math.floor(rounds)
    made = np.where(np.arange(SEEDS) % 100 < round(100 * (rounds - low)), low + 1, low)
    cell = xr.Dataset(
        {
            "rounds_made": ("seed", np.where(decided, made, 9)),
            "active_arms": ("seed", np.where(decided, 1, 2)),
        }
    )
    data = cell.expand_dims(epsilon=[1], time=[horizon])
    (finding,) = findings(quote, {"fig04_epsilon": {horizon: data}}, horizon=horizon)
    assert (finding.verdict, finding.counted) == (wanted, horizon == HORIZON)
    assert finding.extras["rounds"].estimate == pytest.approx(rounds)


def test_the_trade_off_is_a_rank_correlation():
    """Would catch a correlation of the wrong sign or of the wrong pairs."""
    quote = "a clear trade-off between the communication cost and learning performance"
    links = np.outer([10, 20, 30, 40, 50], [2, 3, 4, 5, 5.5])[None, :, :, None, None]
    links = links * np.ones((2, 1, 1, SEEDS, 1))
    dims = ("schedule_gap", "participation", "rounds", "seed", "time")
    coords = {"schedule_gap": list(figures.GAPS), "time": [HORIZON], "meter": ["server"]}

    def judged(regret):
        data = {"regret": (dims, regret), "links": ((*dims, "meter"), links[..., None])}
        return verdict(quote, {"fig07_tradeoff": {HORIZON: xr.Dataset(data, coords)}})

    assert judged(1e6 - links) == HOLDS and judged(links) == FAILS


def test_who_never_converges_is_judged_by_late_regret():
    """Would catch an early slope, a slope without the comparison, and a sign."""
    quote = "the single-agent method cannot converge due to the inconsistency"

    def judged(slopes, spread):
        time = np.arange(1, 51) * 200
        noise = np.random.default_rng(0).normal(0, spread, size=(2, 80, 1))
        regret = (np.array(slopes)[:, None, None] + noise) * time
        coords = {
            "algorithm": ["Single"], "spread": ["heterogeneous", "homogeneous"], "time": time
        }  # fmt: skip
        dims = ("algorithm", "spread", "seed", "time")
        data = xr.Dataset({"regret": (dims, regret[None])}, coords)
        return verdict(quote, {"fig08_heterogeneous_central": {HORIZON: data}})

    assert judged((3.0, 1.0), 0.01) == HOLDS and judged((1.0, 3.0), 0.01) == FAILS
    assert judged((1.0, 1.0), 5.0) == OPEN


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
                    "schedule_gap": list(figures.GAPS),
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
    assert sixteenth.extras["largest regret of a worse arm"].estimate == 777.0
    assert sixteenth.seeds["R = 2"] == (50, 100) and "(50 of 100 seeds)" in sixteenth.text
    assert "of 20 others 0 lost the best arm" in sixteenth.text and "up to 777" in sixteenth.text


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
    assert sixteenth.text.endswith("(not counted: another Δ than the theorem's)")
    shares = {name: found.estimate for name, found in own.numbers.items()}
    assert shares == {"R = 2": 0.75, "R = 3": 0.65, "R = 4": 0.85, "R = 5": 0.75}
    assert own.verdict == NOT_REACHED and own.rule == "probable, whether reached"
    few = np.zeros(shape, int)
    few[0, 0, :29] = 2
    own, sixteenth = findings(quote, budget_runs(few, wrong, np.full(shape, 5.0)))
    assert not own.numbers and own.verdict == OPEN
    assert own.text.startswith("too few have spent it: R = 2 29 of 400, R = 3 0 of 400")
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


COMBINED = {
    (HOLDS, HOLDS): HOLDS,
    (HOLDS, NOT_REACHED): "holds; not reached at b",
    (FAILS, NOT_REACHED): "does not hold; not reached at b",
    (HOLDS, FAILS, OPEN): "holds only if a; not decided at c",
    (HOLDS, HOLDS, HOLDS, FAILS, OPEN): "holds but for: does not hold at d; not decided at e",
}


def test_verdicts_of_several_conditions():
    """Would catch a row that says it holds where it fails, or where nothing was settled."""

    def row(*pairs):
        return verdicts.combine([Finding(c, "", found) for c, found in pairs])

    for kinds, wanted in COMBINED.items():
        assert row(*zip("abcde", kinds, strict=False)) == wanted
    meters = [(f"T = {T}, meter {m}", HOLDS if m == "x" else FAILS) for T in "12" for m in "xy"]
    assert row(*meters) == "holds only if meter x"
    assert row(("T = 1, m", HOLDS), ("T = 2, m", FAILS)) == "holds only if T = 1"
    for told in ("holds; not reached at b", "holds but for: does not hold at d"):
        assert verdicts._kind_of(told) == verdicts.SOMETIMES
    assert verdicts._kind_of("not reached") == "not reached"


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


def read_finding(lines):
    """Returns a finding from its lines of claims.csv."""
    first = lines[0]
    judged = [row for row in lines if row["rule"] and row["estimate"]]
    numbers = {
        row["quantity"]: Measured(*(float(row[end]) for end in Measured._fields)) for row in judged
    }
    against = float(first["against"] or "nan")
    counted = first["counted"] == "True"
    texts = first["text"], first["condition verdict"]
    return Finding(first["condition"], *texts, numbers, counted, first["rule"], against)


def test_published_verdicts_are_those_of_their_findings(tmp_path):
    """Would catch words on the page that the code does not write of the numbers in claims.csv."""
    rows = {}
    for row in rows_of(PAGE.with_name("claims.csv")):
        rows.setdefault(row["row"], {}).setdefault(row["condition"], []).append(row)
    for conditions in rows.values():
        found = [read_finding(lines) for lines in conditions.values()]
        stated = next(iter(conditions.values()))[0]["verdict"]
        assert verdicts.write_verdict(found) == stated
    for name in ("claims.csv", "runs.csv"):
        (tmp_path / name).write_bytes(PAGE.with_name(name).read_bytes())
    page = claims.write_page(tmp_path)
    runs.write_line(page)
    assert page.read_text("utf-8") == PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("rule", "ends", "wanted"),
    [
        ("ordered", (0.01, 0.02), HOLDS), ("ordered", (0, 0.02), OPEN),
        ("ordered", (-0.02, 0), FAILS), ("alike", (-0.05, 0.05), HOLDS),
        ("alike", (-0.05, 0.051), OPEN), ("alike", (0.051, 0.06), FAILS),
        ("no_more", (-9, 0.05), HOLDS), ("no_more", (0.06, 0.07), FAILS),
        ("probable", (0.95, 1), HOLDS), ("probable", (0.9, 0.96), OPEN),
    ],
)  # fmt: skip
def test_edges_of_the_rule(rule, ends, wanted):
    """Would catch an edge on the wrong side, and another tolerance."""
    number = Measured(sum(ends) / 2, *ends)
    assert getattr(verdicts, rule)("", _=number).verdict == wanted


def test_the_page_has_every_sentence_and_every_number(tmp_path, monkeypatch):
    """Would catch a row that is judged and not written, and a table without its numbers."""
    third, two = Measured(0.98, 0.97, 0.99), Measured(2.0, 1.5, 2.5)
    shared = verdicts.probable("T = 10⁴", share=third).add("; besides", other=two)
    rows = [verdicts.Row("IV", f"words {i}", "what", lambda _: [shared], "fig04") for i in (0, 1)]
    bound = verdicts.Row("V", "words 2", "why", lambda _: [verdicts.at_most("in", 1.0, times=two)])
    monkeypatch.setattr(claims, "LISTS", {"measured": rows, "bounds": [bound]})
    page, table = claims.judge(Data({}.__getitem__, [10**4], 20, None), tmp_path)
    text = page.read_text("utf-8")
    assert [text.count(f"“words {i}”") for i in range(3)] == [1, 1, 1]
    assert "| Measured | 2: 2 holds |" in text and "20 seeds a configuration, T = 10⁴." in text
    written = rows_of(table)
    assert [(row["row"], row["quantity"], row["rule"]) for row in written] == [
        ("1", "share", "probable"), ("1", "other", ""), ("2", "share", "probable"),
        ("2", "other", ""), ("3", "times", "at most"),
    ]  # fmt: skip
    assert written[4]["verdict"] == "**does not hold** (2.0 times the bound)"
    assert (written[4]["against"], written[4]["effect"]) == ("1.0", "2.0")


if __name__ == "__main__":
    sys.exit(verify())
