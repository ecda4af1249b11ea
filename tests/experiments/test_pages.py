"""Numbers on the pages for people: written by a command from tables, and the same as theirs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu, report, tpu, twins
from experiments import pages
from experiments.verdicts import Measured
from fmab_jax.algorithms.base import collect_algorithms

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("block", pages.BLOCKS, ids=lambda block: block.name)
def test_blocks_say_what_the_tables_say(block):
    """Would catch a number on a page that the last run did not find, and one changed by hand."""
    text = (ROOT / block.page).read_text("utf-8")
    wanted = block.write(pages.Numbers(ROOT / "figures"))
    assert pages.replaced(text, block.name, wanted) == text


def test_speeds_say_what_the_benchmarks_measured():
    """Would catch a speed on the README or in docs/performance.md that was not measured."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    for page, write in (("README.md", report.short), ("docs/performance.md", report.text)):
        text = (ROOT / page).read_text("utf-8")
        inside = text.partition(report.BEGIN)[2].partition(report.END)[0]
        assert inside.strip() == write(results), page


def test_speeds_of_a_gpu_say_what_was_measured():
    """Would catch a speed on docs/gpu.md that was not measured."""
    results = json.loads(gpu.RESULTS.read_text("utf-8"))
    inside = gpu.PAGE.read_text("utf-8").partition(report.BEGIN)[2].partition(report.END)[0]
    assert inside.strip() == gpu.page(results)


def test_a_tpu_page_says_what_was_compiled():
    """Would catch an algorithm or a time on docs/gpu.md that was not compiled."""
    results = json.loads(tpu.RESULTS.read_text("utf-8"))
    inside = tpu.PAGE.read_text("utf-8").partition(tpu.BEGIN)[2].partition(report.END)[0]
    assert inside.strip() == tpu.page(results)
    assert {name.partition(",")[0] for name in results["compile_s"]} == set(collect_algorithms())


def test_twins_say_what_was_measured():
    """Would catch a p-value, a power or a speed of docs/twins.md that was not measured."""
    assert twins.PAGE.read_text("utf-8") == twins.page(json.loads(twins.RESULTS.read_text("utf-8")))


def test_the_end_of_a_search_is_no_power():
    """Would catch a share that is seen because half of the seeds have one regret, told as power."""
    sizes = twins.Sizes(600, 20_000, 1e-6, False)
    spread = 100.0 + np.arange(20_000) / 200.0
    # All are larger by a share s: furthest apart at the largest regret, 200, by 2 s / (1 + s).
    share = twins.least_difference(spread, sizes)
    assert 2 * share / (1 + share) == pytest.approx(twins.least_distance(sizes), rel=1e-3)
    assert twins.least_difference(np.where(spread < 150.0, 150.0, spread), sizes) is None
    page = twins.page({"rows": ROW, "machine": "", "busy": False})
    assert "| 1 of 2 | – | 18 |" in page


ROW = {
    "demab: x": {
        **{"agents": 2, "arms": 3, "horizon": 9, "twin": 600, "package": 20_000, "p": 1.0, "of": 2},
        **{"difference": None, "distance": 0.18, "package_rate": 1.0, "twin_rate": 1.0},
    }
}


def test_a_block_is_replaced_and_nothing_else():
    """Would catch text around a block that is lost, and a block that is not there."""
    page = "before\n<!-- written by python -m experiments pages: x -->\nold\n<!-- end -->\nafter"
    new = pages.replaced(page, "x", "new")
    assert new == page.replace("\nold\n", "\n\nnew\n\n")
    assert pages.replaced(new, "x", "new") == new
    with pytest.raises(LookupError, match="no block"):
        pages.replaced(page, "y", "new")


def test_numbers_are_written_with_the_digits_that_count():
    """Would catch lost digits, and a range told as one number."""
    told = {0: "0", 9.96: "10.0", 99.4: "99", 100: "100", -0.0123: "-0.012", 0.0183: "0.018"}
    assert {value: pages.short(value) for value in told} == told
    assert pages.short(79794.32, 3) == "79,794"
    assert pages.span([2.24, 3.64]) == "2.2 to 3.6" and pages.span([2.24, 2.24]) == "2.2"
    assert pages.bracketed(Measured(104.11, 13.669, 194.55)) == "104 [13.7, 195]"


# What is read otherwise, and a number from which all others of its row are made.
READINGS = {
    "wait d_G slots, not d_G - 1: complete": 1,
    "wait d_G slots, not d_G - 1: star": 2,
    "wait d_G slots, not d_G - 1: ring": 3,
    "components weigh the same, not agents: case 2, agents alike": 4,
    "components weigh the same, not agents: case 2, agents apart": 5,
    **{f"schedule built for gap 1/16, not the instance's own: R = {R}": 4 + R for R in range(2, 6)},
    "waits go by the noisy means: ring, ε = 1": 10,
    "waits go by the noisy means: ring, ε = 0.1": 11,
    "waits go by the noisy means: ring, ε = 0.02": 12,
}
QUOTES = {
    "ring": "the Ring graph incurs larger regret",
    "noise": r"$\epsilon=1$ indicates the non-private case",
    "decided": r"we need about $ \log(T) \approx 4$ communication rounds before eliminating all "
    "suboptimal arms",
    "part": "reached $1/M$ of the single-agent performance",
    "right": "identify the best arm after the $R$-th communication round with high probability",
    "alone": "not worse than the non-communication case",
    "epsilon": r"the regret increases with the decreasing of  $\epsilon$",
    "p": "the regrets at $T$ decrease as $p$ increases",
    "R": "the regrets decrease with $R$ increase",
}


ENDS = ("estimate", "lower", "upper")


def write_table(path, heads, rows):
    """Writes a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(rows)


def made_up_tables(folder):
    """Writes tables in which every number and every end of an interval is another one."""
    rows = []
    for T, far in ((10_000, 0), (100_000, 1)):
        for name, place in READINGS.items():
            usual, other = 1000.0 * place + far, 3000.0 * place + far
            more = 100.0 * place + 10 * far
            low, high = more - 7, more + 9
            if "alike" in name and not far:  # whose interval holds 0, though its estimate is 400
                low, high = -3.0, 803.0
            rows.append([T, name, usual, 1, 2, other, 3, 4, more, low, high])
    ends = ("", ", lower", ", upper")
    names = ("regret, usual reading", "regret, other reading", "difference")
    heads = [f"{name}{end}" for name in names for end in ends]
    write_table(folder / "readings.csv", ["T", "other reading", *heads], rows)
    claims = [
        # Row, quotation, condition, quantity, number with its interval, verdict.
        (1, "ring", "T = 10⁴", "ring over complete", 0.011, 0.001, 0.051, "holds"),
        (1, "ring", "T = 10⁴", "ring over star", 0.77, 0.7, 0.8, "holds"),
        (1, "ring", "T = 10⁵", "ring over complete", 0.024, 0.002, 0.062, "holds"),
        (2, "noise", "T = 10⁴", "", 0.033, 0.003, 0.073, "holds"),
        (2, "noise", "T = 10⁵", "", 0.012, 0.004, 0.084, "holds"),
        (3, "decided", "T = 10⁴", "rounds", 3.456, 3.4, 3.5, "does not hold"),
        (3, "decided", "T = 10⁴", "ever", 0.0456, 0.04, 0.05, "does not hold"),
        (3, "decided", "T = 10⁵", "rounds", 5.678, 5.6, 5.7, "does not hold"),
        (3, "decided", "T = 10⁵", "ever", 0.5678, 0.5, 0.6, "does not hold"),
        (4, "part", "T = 10⁴", "of M = 5:", 3.456, 3.1, 3.9, "holds"),
        (6, "right", "T = 10⁴, own gap", "R = 2", 0.5, 0.4, 0.6, "holds"),
        (6, "right", "T = 10⁴, gap 1/16", "R = 2", 0.91, 0.9, 0.92, "holds"),
        (6, "right", "T = 10⁴, gap 1/16", "R = 3", 0.97, 0.96, 0.98, "holds"),
        (6, "right", "T = 10⁴, gap 1/16", "largest regret of a worse arm", 7, 7, 7, "holds"),
        (7, "alone", "T = 10⁴, p = 1", "over agents alone", 0.4, -0.1, 0.9, "not decided"),
        (7, "alone", "T = 10⁴, p = 0.2 and R = 2", "over agents alone", 1.23, 0.9, 1.5, "fails"),
        (7, "alone", "T = 10⁵, p = 1", "over agents alone", -0.3, -0.4, 0.2, "not decided"),
        (8, "epsilon", "T = 10⁴", "a", 1, 1, 1, "holds"),
        (8, "epsilon", "T = 10⁵", "a", 1, 1, 1, "holds"),
        (9, "p", "T = 10⁴", "a", 1, 1, 1, "holds"),
        (9, "p", "T = 10⁵", "a", 1, 1, 1, "not decided"),
        (10, "R", "T = 10⁴", "a", 1, 1, 1, "holds"),
        (11, "other", "T = 10⁴", "bound / regret", 2.44, 2.0, 9.0, "holds"),
        (11, "other", "T = 10⁵", "R = 2: bound / regret", 11.6, 0.5, 12.0, "holds"),
        (11, "other", "T = 10⁶", "bound / regret", "", "", "", "holds"),
    ]
    heads = ["row", "quote", "condition", "quantity", *ENDS, "condition verdict", "counted"]
    made = [
        [row, QUOTES.get(name, name), *others, str("R = 2" not in others[0])]
        for row, name, *others in claims
    ]
    write_table(folder / "claims.csv", heads, made)


def test_sentences_of_readings_are_those_of_their_rows(tmp_path):
    """Catches an estimate for an end, the other horizon, a ratio upside down, another's numbers."""
    made_up_tables(tmp_path)
    delay, weights, gap, waiting = pages._readings(pages.Numbers(tmp_path)).splitlines()
    assert "adds 100 to 310 to a regret of 1,000 to 3,001," in delay
    assert (
        "agents alike: 400 [-3.00, 803] at T = 10⁴; at T = 10⁴ the interval holds 0. With agents "
        "apart it is biased: 500 [493, 509] at T = 10⁴, 510 [503, 519] at 10⁵."
    ) in weights
    # With the own gap 8,000 and 9,000, with 1/16 24,000 and 27,000: -11 % of both.
    assert "R = 4 has a regret of 8,000 at T = 10⁴, with 1/16 it has 24,000:" in gap
    assert "R = 4 has -11 % more regret than R = 5 with the one, -11 % with the other." in gap
    assert waiting.endswith(
        "adds 1,000 [993, 1,009] at ε = 1; 1,100 [1,093, 1,109] at ε = 0.1; 1,200 [1,193, 1,209] "
        "at ε = 0.02, at T = 10⁴."
    )
    rows = (tmp_path / "readings.csv").read_text("utf-8").replace("-3.0,803.0", "0.0,803.0")
    (tmp_path / "readings.csv").write_text(rows, "utf-8")
    assert "the interval holds 0" in pages._readings(pages.Numbers(tmp_path))
    (tmp_path / "readings.csv").write_text(rows.replace("0.0,803.0", "0.5,803.0"), "utf-8")
    assert "the interval holds 0" not in pages._readings(pages.Numbers(tmp_path))


def test_sentences_of_what_was_found_are_those_of_their_rows(tmp_path):
    """Catches an estimate for a bound, another quantity or gap, an order at one horizon only."""
    made_up_tables(tmp_path)
    found = pages._found(pages.Numbers(tmp_path)).splitlines()
    orders, noise, decided, alone, budget, tight, bounds = found
    assert "orders as the paper says in ε and R. " in orders  # p is open at one horizon
    assert "a ring has 1.1 to 2.4 % more regret than the complete graph." in orders
    assert "noise costs 1.2 to 3.3 % of the regret." in noise
    assert decided.endswith(
        "made 3.46 rounds at T = 10⁴ (4.56 % of the seeds), 5.68 rounds at T = 10⁵ (56.8 % of the "
        "seeds)."
    )
    assert "For M = 5 they have 3.46 times its regret at T = 10⁴." in alone
    assert "leaves 3.0 to 9.0 % of the runs that spend it on a worse arm" in budget
    assert tight.endswith(
        "at T = 10⁴, p = 0.2 and R = 2 regret is 123 % larger than that of agents alone. Where "
        "Remark 2 promises no more regret, 0 of 2 cells (p, R, T) have more."
    )
    assert bounds.endswith("are 2.4 to 12 times the mean regret.")
    text = (tmp_path / "claims.csv").read_text("utf-8")
    (tmp_path / "claims.csv").write_text(text.replace("1,1,1,holds", "1,1,1,not decided"), "utf-8")
    assert "as the paper says in nothing." in pages._found(pages.Numbers(tmp_path))


def test_rows_with_one_quotation_are_told_apart(tmp_path):
    """Would catch the second row of a quotation told as the first, and a row that is not there."""
    rows = [(3, "q", "c", "x", 1, 0, 2), (5, "q", "c", "x", 7, 6, 8)]
    write_table(tmp_path / "claims.csv", ["row", "quote", "condition", "quantity", *ENDS], rows)
    numbers = pages.Numbers(tmp_path)
    assert numbers.claim("q", "x") == {"c": Measured(1, 0, 2)}
    assert numbers.claim("q", "x", 1) == {"c": Measured(7, 6, 8)}
    with pytest.raises(LookupError, match="no row with"):
        numbers.claim("another", "x")


def test_goals_are_met_on_their_own_side():
    """Catches a goal met on the wrong side or not at its edge, and a shortfall upside down."""
    goal = report.Goal
    assert goal("a", 2, 3, "x").row() == ["a", "at least 2 x", "3 x", "met"]
    assert goal("a", 2, 2, "x").row()[-1] == goal("a", 2, 2, "s", True).row()[-1] == "met"
    assert goal("a", 3, 1.5, "x").row()[-1] == "not met: 2.00 times too little"
    assert goal("a", 2, 2.0042, "s", True).row()[-1] == "not met: 1.002 times too much"
    told = ["a", "at most 2 s", "5 s", "not met: 2.50 times too much"]
    assert goal("a", 2, 5, "s", True).row() == told
    assert goal("a", 2e6, 3e6, "y").row()[1:3] == ["at least 2,000,000 y", "3,000,000 y"]


# Case: rates of fmab_jax, the expert and the script.
RATES = {
    "paper's instance, T = 10^6": (1000, 400, 10),
    "K = 10": (500, 1000, None),
    "agents differ, p = 1": (250, None, None),
    "p = 0.4": (125, None, 20),
    "p = 0.2": (175, None, None),
    "p = 0.1": (200, None, None),
    "ring of 50": (50, 25, 5),
    "agents alone": (40, None, 7),
    "paper's instance, T = 10^5": (1100, None, None),
    "paper's instance, T = 10^9": (880, None, None),
    "paper's instance, 2 recorded slots": (1300, None, None),
    "M = 100,000": (800, None, None),
    "UCB1 pooled, K = 100, T = 2,000": (3000, None, 4000),
    "UCB1, K = 100, T = 2,000": (3_000_000, None, None),
    "GosInE, K = 100, T = 2,000": (1_000_000, None, None),
}


def made_up_benchmarks():
    """Returns results of benchmarks with round numbers."""
    names = ("fmab_jax", "expert, 2 processes", "NumPy script per agent, 2 processes")
    more = {"peak_bytes": 3 * 2**20, "compile_s": 1.26}
    # Three cores' worth, but for the paper's instance.
    row = lambda rate: {"rate": float(rate), "cpu_us": (2 + (rate < 1000)) / rate, **more}  # noqa: E731
    every = {case: zip(names, rates, strict=True) for case, rates in RATES.items()}
    every = {case: {n: row(rate) for n, rate in own if rate} for case, own in every.items()}
    cases = {case: {"unit": "trials/s", "contenders": own} for case, own in every.items()}
    programs = {
        "first result of CDP-MAB, nothing cached": [4.0, 9.0, 5.0],
        "first result on a ring, nothing cached": [7.0, 8.0, 30.0],
        "first result of CDP-MAB, compiled before": [1.5],
        "first result on a ring, compiled before": [2.5],
        "sweep of 100 configurations, 1,000 seeds each, T = 10^6": [20.0],
        "10^6 seeds of one configuration, summarised, T = 10^6": [12.0],
    }
    machine = dict.fromkeys(("date", "cores", "processor", "python", "jax", "numpy"), "x")
    seconds = {n: {"seconds": found, "peak_bytes": 900 * 2**20} for n, found in programs.items()}
    return {"machine": machine, "turns": 3, "cases": cases, "programs": seconds}


def test_goals_compare_the_cases_that_they_name():
    """Catches another goal or case, a ratio upside down, wall for CPU time, a mean for a median."""
    rows = report.goals(made_up_benchmarks())
    assert {each.text: (each.goal, each.measured, each.most) for each in rows} == {
        "agents summed out, over the expert": (2, 2.5, False),
        "agents summed out, over the expert, final goal": (3, 2.5, False),
        "agents summed out, over the script per agent": (60, 100, False),
        "K = 10, over the expert": (1, 0.5, False),
        "p = 0.4, CPU time of a trial over that of agents summed out": (8, 12, True),
        "p = 0.4, over the script, where all report": (6, 6.25, False),
        "p = 0.2, over p = 0.4": (2, 1.4, False),
        "p = 0.1, over p = 0.4": (4, 1.6, False),
        "p = 0.1, CPU time of a trial over that of agents summed out": (5, 7.5, True),
        "ring of 50, CPU time of a trial over that of agents summed out": (8, 30, True),
        "ring of 50, over the expert per agent": (2.5, 2, False),
        "ring of 50, over the script, no waits": (4, 10, False),
        "agents differ, CPU time of a trial over that of agents summed out": (3, 6, True),
        "agents alone, CPU time of a trial over that of agents summed out": (25, 37.5, True),
        "agents alone, over the script, which reports to a server": (2.5, 40 / 7, False),
        "T = 10^9, time over that of T = 10^5": (1.3, 1.25, True),
        "M = 100,000, time over M = 50": (1.2, 1.25, True),
        "100 recorded slots, time over that of 2": (1.05, 1.3, True),
        "UCB1 pooled, over NumPy": (1, 0.75, False),
        "UCB1, K = 100": (2e6, 3e6, False),
        "GosInE, K = 100": (2e6, 1e6, False),
        "first result of CDP-MAB, cold": (4, 5, True),
        "first result on a ring, cold": (6, 8, True),
        "first result of CDP-MAB, warm": (2, 1.5, True),
        "first result on a ring, warm": (2.5, 2.5, True),
        "sweep of 100 configurations, 1,000 seeds each": (12, 20, True),
        "10^6 seeds, summarised": (15, 12, True),
        "10^6 seeds, summarised, memory": (1e9 / 2**20, 900, True),
    }
    few = made_up_benchmarks()
    del few["cases"]["p = 0.4"]
    assert len(report.goals(few)) == len(rows) - 4


def test_tables_of_speeds_have_their_units(tmp_path):
    """Catches a ratio upside down, another unit, a mean for a median, and lost words."""
    results = made_up_benchmarks()
    lines = report.text(results).splitlines()
    assert "| paper's instance, T = 10^6 | **fmab_jax** | 1,000 trials/s |  | 3 | 1.3 |" in lines
    assert "|  | expert, 2 processes | 400 trials/s | 2.50 | 3 |  |" in lines
    assert "| first result of CDP-MAB, nothing cached | 5.0 |" in lines
    assert "| T = 10^9, time over that of T = 10^5 | at most 1.3 x | 1.25 x | met |" in lines
    device = {"device": "GPU", "rival": {"trials_per_s": 2000.4}}
    device["cases"] = {label: {"trials_per_s": 9000.4} for label in report.SHORT.values()}
    short = report.short(results, device).splitlines()
    assert short[0] == "| fmab_jax | two CPU cores | one GPU |"
    assert short[2] == "| agents alike | 1,000 | 9,000 |"
    assert "script has 400 on the two cores, and a plain JAX script 2,000 on the GPU" in short[-1]
    assert "takes 5.0 to 8.0 s where nothing" in short[-1] and "and 1.5 to 2.5 s where" in short[-1]
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    for path in (page, readme):
        path.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", "utf-8")
    report.write(results, page, readme)
    for path, inside in ((page, report.text(results)), (readme, report.short(results))):
        wanted = f"before\n{report.BEGIN}\n\n{inside}\n\n{report.END}\nafter\n"
        assert path.read_text("utf-8") == wanted
