"""Numbers on the pages for people: written by a command from tables, and the same as theirs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from benchmarks import report
from experiments import pages
from experiments.verdicts import Measured

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("block", pages.BLOCKS, ids=lambda block: block.name)
def test_blocks_say_what_the_tables_say(block):
    """Would catch a number on a page that the last run did not find, and one changed by hand."""
    text = (ROOT / block.page).read_text("utf-8")
    wanted = block.write(pages.Numbers(ROOT / "figures"))
    assert pages.replaced(text, block.name, wanted) == text


def test_speeds_say_what_the_benchmarks_measured():
    """Would catch a speed on the README or in docs/performance.md that was not measured."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    for page, wanted in (
        ("README.md", report.short(results)),
        ("docs/performance.md", report.text(results)),
    ):
        text = (ROOT / page).read_text("utf-8")
        inside = text.partition(report.BEGIN)[2].partition(report.END)[0]
        assert inside.strip() == wanted, page


def test_a_block_is_replaced_and_nothing_else():
    """Would catch text around a block that is lost, and a block that is not there."""
    page = "before\n<!-- written by python -m experiments pages: x -->\nold\n<!-- end -->\nafter"
    new = pages.replaced(page, "x", "new")
    assert new == page.replace("\nold\n", "\n\nnew\n\n")
    assert pages.replaced(new, "x", "new") == new
    with pytest.raises(LookupError, match="no block"):
        pages.replaced(page, "y", "new")


def test_noise_doubles_the_regret_where_the_line_between_two_points_says(tmp_path):
    """Would catch a leak told as an epsilon, and the wrong pair of points."""
    rows = [("10000", leak, times) for leak, times in (("0.5", 8), ("1", 4), ("2", 1), ("none", 1))]
    with (tmp_path / "maps_leak.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["T", "structure", "leak", "over no noise"])
        writer.writerows((T, "CDP, p = 1", leak, times) for T, leak, times in rows)
    # Half way, in logarithms, between leaks of 1 and 2: an epsilon of sqrt(2) / 50.
    assert pages._noise_doubles(pages.Numbers(tmp_path)) == "at ε = 0.028 (T = 10⁴)"


def test_numbers_are_written_with_the_digits_that_count():
    """Would catch lost digits, and a range told as one number."""
    assert pages.short(0.0183) == "0.018" and pages.short(79794.32, 3) == "79,794"
    assert pages.span([2.24, 3.64]) == "2.2 to 3.6" and pages.span([2.24, 2.24]) == "2.2"
    assert pages.bracketed(Measured(104.11, 13.669, 194.55)) == "104 [13.7, 195]"
