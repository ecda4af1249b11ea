"""The published pages against their tables; and the reader of pages against broken pages."""

import re
from pathlib import Path

import pytest
from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"
PAGES = reader.pages(FIGURES)


@pytest.mark.parametrize("name", PAGES)
def test_a_published_page_says_what_its_tables_say(name):
    """Would catch a page changed by hand, or older than its tables or its parts (ARENA.md)."""
    assert reader.fault_of(name, FIGURES) == ""


def test_no_csv_lies_there_for_nobody():
    """Would catch a CSV file that no page names, such as one of a table that has gone."""
    folders = (FIGURES, FIGURES.parent / "docs")
    texts = [path.read_text("utf-8") for folder in folders for path in folder.glob("*.md")]
    named = {name for text in texts for name in re.findall(r"(\w+)\.csv", text)}
    read = {*reader.BESIDE.values(), *(name.removesuffix(".md") for name in PAGES)}
    left = {path.stem for path in FIGURES.glob("*.csv")} - named - read
    assert {name for name in left if not name.startswith("arena_T1e")} == set()


def off(match):
    """Writes a number with another last digit."""
    return f"{match[0][:-1]}{(int(match[0][-1]) + 5) % 10}"


# What a broken writer prints: the page, a pattern, and what stands in its place.
BROKEN = (
    ("ARENA.md", "accountant: ε up to δ = 10⁻⁶", "accountant: pure ε"),
    ("ARENA.md", r"\n\| KL-UCB, pooled \|.*", ""),
    ("ARENA.md", r" / LDP-UCB-B, alone(?=\.)", ""),
    ("ARENA.md", r"\n(\| Dist-DP-SE \| \d.*)", r"\n\1\n\1"),
    ("ARENA.md", r"(?<=\| )\d[\d,]*(?= \[[^]]*\]; \d)", off),
    ("ARENA.md", r"(?<=\]; )\d+(?= of)", off),
    ("ARENA.md", r"\d+(?= of \d+ \|)", off),
    ("ARENA.md", "49 of 50 shares of the noise", "50 of 50 shares of the noise"),
    ("ARENA.md", r"12,\d{3}(?= \| 0.1 % \| 0 \| 560)", off),
    ("arena_regret_T1e4.md", r"(?<=slots, )\d+(?= seeds)", off),
    ("arena_leak_T1e6.md", r"arena_leak_T1e6\.csv", "arena_leak_T1e5.csv"),
    ("arena_differ_T1e6.md", r"\d[\d,]*(?= \[)", off),
    ("readings.md", r"\d(?=\] \|\n)", off),
    ("audit.md", r"(\| CDP-MAB, claim 1 \| .*)within", r"\1beyond"),
)


@pytest.mark.parametrize(("name", "pattern", "new"), BROKEN)
def test_a_broken_page_is_caught(name, pattern, new):
    """Would catch a reader of pages that looks away from this."""
    text = (FIGURES / name).read_text("utf-8")
    broken = re.sub(pattern, new, text, count=1)
    assert broken != text, "this page has nothing to break here"
    assert reader.fault_of(name, FIGURES, broken)
