"""Numbers on the pages for people: written by a command from tables, and the same as theirs."""

import csv
import json
import math
import os
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr

import fmab_jax as fmab
from benchmarks import gpu, kernels, launches, report, tpu, twins
from experiments import common, conditions, noises, pages, runs, theory_runs, worlds
from experiments.verdicts import Measured
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.sampling import evidence

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("block", pages.BLOCKS, ids=lambda block: block.name)
def test_blocks_say_what_the_tables_say(block):
    """Would catch a number that the last run did not find, one changed by hand, and a table that
    says of no version and no day."""
    text = (ROOT / block.page).read_text("utf-8")
    wanted = pages.write_block(block, pages.Numbers(ROOT / "figures"))
    assert pages.replaced(text, block.name, wanted) == text


def test_sentences_name_whom_the_numbers_name():
    """Would catch a law or an algorithm that a sentence calls the best though the table has
    another, and one that is called the best though the runs do not decide."""
    folder = ROOT / "figures"
    rows = common.read_rows(folder / "noises.csv")
    assert noises.find_least(rows, "messages", "KL-SE", 10) == ["Skellam", "discrete Laplace"]
    assert noises.describe(rows) in (folder / "noises.md").read_text("utf-8")
    for view, name, leak in {(row["view"], row["algorithm"], row["leak"]) for row in rows}:
        cell = [
            row
            for row in rows
            if (row["view"], row["algorithm"], row["leak"]) == (view, name, leak)
        ]
        least = min(cell, key=lambda row: row["regret"])
        law, *others = noises.find_least(rows, view, name, leak)
        assert law == least["noise"]
        # Whoever is named beside it has an interval that overlaps with its own.
        assert all(row["lower"] <= least["upper"] for row in cell if row["noise"] in others)
    assert 0.9999 < noises.find_zeros("discrete_laplace", 10) < 0.99991
    assert 0.9998 < noises.find_zeros("skellam", 10) < 0.99983
    ends = [
        {"world": world, "curve": name, "lower": mean - 1, "upper": mean + 1}
        for world in worlds.WORLDS
        for name, mean in (("A", 5.0), ("B", 5.5 if world == "no change" else 9.0), ("C", 20.0))
    ]
    words = worlds.describe(ends)
    assert "least regret at T is that of A or B (no change), A (1 change and 3 changes)" in words
    assert "most regret at T is that of C." in words
    rows = common.read_rows(folder / "worlds.csv")
    assert worlds.describe(rows) in (folder / "worlds.md").read_text("utf-8")


def test_absence_is_judged_by_paired_differences():
    """Would catch "more" at a chance where the interval holds 0, and where it lies below 0."""
    folder = ROOT / "figures"
    rows = common.read_rows(folder / "conditions.csv")
    labels = [row for row in rows if row["algorithm"] == conditions.PLANNED]
    assert all(row[conditions.LESS][1] > 0 for row in labels if row["strength"])
    assert "Over the same seeds, more at 0.1 (" in conditions.describe(rows)
    for row, ends in zip(labels[1:], ((-1, 3), (-3, -1), (1, 3), (1, 3)), strict=True):
        row[conditions.LESS] = (2.0, *ends)
    words = conditions.describe(rows)
    assert "undecided at 0.1 (2 [-1, 3]); less at 0.3 (2 [-3, -1]); more at 0.5 (" in words
    # Regret at corruption 0.1 rests on a few seeds: there are seeds enough for some of them.
    pooled = [row for row in rows if "pooled" in row["algorithm"]]
    assert min(row["seeds"] for row in pooled) * 0.0016 > 5


def test_a_table_is_as_old_as_its_newest_chunk(tmp_path):
    """Would catch the day of the drawing for that of the run, the first chunk for the last, and a
    version with the engine's hash."""
    stores = [tmp_path / name for name in ("old-T1e4", "new-T1e4")]
    for store, version, seconds in zip(stores, ("0.1.0", "0.2.0"), (86_400, 864_000), strict=True):
        store.mkdir()
        facts = [{"made_by": {"fmab_jax": f"{text} (abc)"}} for text in ("0.0.1", version)]
        manifest = store / "manifest-main.jsonl"
        manifest.write_text("\n".join(json.dumps({"facts": each}) for each in facts), "utf-8")
        os.utime(manifest, (seconds, seconds))
    table, other = tmp_path / "one.csv", tmp_path / "two.csv"
    for path in (table, other):
        path.write_text("a\n1\n", "utf-8")
    runs.record([table, tmp_path / "one.png"], stores)
    runs.record([other], stores[:1])
    assert runs.describe(tmp_path, ["one"]) == "Computed by fmab_jax 0.2.0 on 1970-01-11."
    page = tmp_path / "one.md"
    page.write_text("Numbers: [CSV](two.csv).\n", "utf-8")
    for _ in range(2):  # the second line is in place of the first
        runs.write_line(page)
    line = "Computed by fmab_jax 0.2.0 on 1970-01-11 (one), 0.1.0 on 1970-01-02 (two)."
    assert page.read_text("utf-8") == f"Numbers: [CSV](two.csv).\n\n{line}\n"
    runs.record([table], [])
    assert f" {fmab.__version__} on 20" in runs.describe(tmp_path, ["one"])


def inside(page, begin=report.BEGIN):
    """Returns what a command of the benchmarks has written into a page."""
    return (ROOT / page).read_text("utf-8").partition(begin)[2].partition(report.END)[0].strip()


def test_speeds_say_what_the_benchmarks_measured():
    """Catches a speed on the README, docs/performance.md or docs/gpu.md that was not measured, and
    an algorithm that was not compiled for a TPU."""
    results, of_gpu, of_tpu, of_kernels = (
        json.loads(path.read_text("utf-8"))
        for path in (
            ROOT / "benchmarks" / "results.json",
            gpu.RESULTS,
            tpu.RESULTS,
            kernels.RESULTS,
        )
    )
    assert inside("README.md") == report.short(results)
    assert inside("docs/performance.md") == report.text(results)
    assert inside(gpu.PAGE) == gpu.page(of_gpu)
    assert inside(tpu.PAGE, tpu.BEGIN) == tpu.page(of_tpu)
    counted = json.loads(launches.RESULTS.read_text("utf-8"))
    assert inside(launches.PAGE, launches.BEGIN) == launches.page(counted)
    assert inside(kernels.PAGE, kernels.BEGIN) == kernels.page(of_kernels)
    dated = (("README.md", report.BEGIN), ("docs/performance.md", report.BEGIN))
    dated += ((gpu.PAGE, report.BEGIN), (tpu.PAGE, tpu.BEGIN), (kernels.PAGE, kernels.BEGIN))
    dated += ((launches.PAGE, launches.BEGIN),)
    line = r"Computed by fmab_jax \d+\.\d+\.\d+ on \d{4}-\d\d-\d\d.*\.$"
    assert all(re.search(line, inside(*place)) for place in dated)
    assert {name.partition(",")[0] for name in of_tpu["compile_s"]} == set(ALGORITHMS.by_name())


def test_twins_say_what_was_measured():
    """Would catch a p-value, a power or a speed of docs/twins.md that was not measured."""
    assert twins.PAGE.read_text("utf-8") == twins.page(json.loads(twins.RESULTS.read_text("utf-8")))


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


ENDS = ("estimate", "lower", "upper")


def write_table(path, heads, rows):
    """Writes a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(rows)


def test_rows_with_one_quotation_are_told_apart(tmp_path):
    """Would catch the second row of a quotation told as the first, and a row that is not there."""
    rows = [(3, "q", "c", "x", 1, 0, 2), (5, "q", "c", "x", 7, 6, 8)]
    write_table(tmp_path / "claims.csv", ["row", "quote", "condition", "quantity", *ENDS], rows)
    numbers = pages.Numbers(tmp_path)
    assert numbers.claim("q", "x") == {"c": Measured(1, 0, 2)}
    assert numbers.claim("q", "x", 1) == {"c": Measured(7, 6, 8)}
    with pytest.raises(LookupError, match="no row with"):
        numbers.claim("another", "x")


# Case: rates of fmab_jax, the expert and the script.
RATES = {
    "paper's instance, T = 10^6": (1000, 400, 10),
    "agents differ, p = 1": (250, None, None),
    "p = 0.4": (125, None, 20),
}


def made_up_benchmarks():
    """Returns results of benchmarks with round numbers."""
    names = ("fmab_jax", "expert, 2 processes", "NumPy script per agent, 2 processes")
    more = {"peak_bytes": 3 * 2**20, "compile_s": 1.26}
    row = lambda rate: {"rate": float(rate), **more}  # noqa: E731
    every = {case: zip(names, rates, strict=True) for case, rates in RATES.items()}
    every = {case: {n: row(rate) for n, rate in own if rate} for case, own in every.items()}
    cases = {case: {"unit": "trials/s", "contenders": own} for case, own in every.items()}
    programs = {
        "`fmab run cdp`, nothing compiled": [4.0, 9.0, 5.0],
        "`fmab run cdp`, compiled before": [1.5],
        "first result of CDP-MAB, nothing cached": [4.0, 9.0, 5.0],
        "first result on a ring, nothing cached": [7.0, 8.0, 30.0],
        "first result of CDP-MAB, compiled before": [1.5],
        "first result on a ring, compiled before": [2.5],
        "sweep of 100 configurations, 1,000 seeds each, T = 10^6": [20.0],
        "10^6 seeds of one configuration, summarised, T = 10^6": [12.0],
    }
    machine = dict.fromkeys(("version", "date", "cores", "processor", "python", "jax"), "x")
    machine["numpy"] = "x"
    seconds = {n: {"seconds": found, "peak_bytes": 900 * 2**20} for n, found in programs.items()}
    return {"machine": machine, "turns": 3, "cases": cases, "programs": seconds}


def test_tables_of_speeds_have_their_units(tmp_path):
    """Catches a ratio upside down, another unit, a mean for a median, and lost words."""
    results = made_up_benchmarks()
    lines = report.text(results).splitlines()
    assert "| paper's instance, T = 10^6 | **fmab_jax** | 1,000 trials/s |  | 3 | 1.3 |" in lines
    assert "|  | expert, 2 processes | 400 trials/s | 2.50 | 3 |  |" in lines
    assert "| first result of CDP-MAB, nothing cached | 5.0 | 2 |" in lines
    assert "| first result on a ring, compiled before | 2.5 | 1.2 |" in lines
    calls = {report.name_call("agents alike"): [9.0, 0.1, 0.2], report.GPU_SUMMARY: [9, 0.5, 0.25]}
    device = {"device": "GPU", "version": "2", "date": "y", "calls": calls}
    device["cases"] = {label: {"trials_per_s": 9000.4} for label in report.SHORT.values()}
    results["machine"]["commit"] = "c0ffee"
    short = report.short(results, device).splitlines()
    assert short[0] == "| case | two CPU cores | one GPU |"
    # Not the program alone, nor a call that compiles.
    assert short[2] == "| agents alike | 1,000 | 2,000,000 |"
    assert short[3] == "| agents differ | 250 | – |"
    assert "of one x (x, commit c0ffee)" in short[6]
    assert "an expert's NumPy script does 400 trials a second" in short[6]
    assert "take 12.0 s on the cores" in short[6] and "and 0.25 s for the next" in short[6]
    assert "takes 5.0 s from its start to its end where nothing is compiled" in short[-3]
    assert "and 1.5 s where its program was compiled before" in short[-3]
    assert short[-1].endswith("fmab_jax x on x (the two cores), 2 on y (the GPU).")
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    for path in (page, readme):
        path.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", "utf-8")
    report.write(results, page, readme)
    for path, inside in ((page, report.text(results)), (readme, report.short(results))):
        wanted = f"before\n{report.BEGIN}\n\n{inside}\n\n{report.END}\nafter\n"
        assert path.read_text("utf-8") == wanted


def test_a_scalar_loop_is_told_from_a_vectorised_one():
    """Catches loops counted although they use vectors, or are none, or have no arithmetic."""
    loop = "  %i = phi i64 [ 0, %a ], [ %n, %b ]\n"
    scalar = "  %x = fmul reassoc double %u, %v\n"
    vector = "  %y = fadd <8 x double> %s, %t\n"
    root = "  %z = tail call double @llvm.sqrt.f64(double %u)\n"
    wide_root = "  %z = tail call <4 x double> @llvm.sqrt.v4f64(<4 x double> %s)\n"
    compare = "  %c = fcmp olt double %u, %v\n"
    assert kernels.is_scalar_loop(loop + scalar) and kernels.is_scalar_loop(loop + root)
    for module in (loop + scalar + vector, loop + scalar + wide_root, scalar, loop + compare):
        assert not kernels.is_scalar_loop(module)


# --- what runs show of docs/theory.md: by brute force, and by hand ---

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
@pytest.mark.parametrize("means", [(0.02, 0.05), (0.1, 0.9)])
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
        rounds = 19 if row["way"] == "arms split" else 16
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
