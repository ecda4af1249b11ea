"""The published pages against their tables; and the reader of pages against broken writers."""

import csv
import io
import re
from collections.abc import Callable
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


def test_every_picture_of_every_horizon_is_read():
    """Would catch a reader that passes over a picture's page, or a horizon."""
    horizons = [path.stem.removeprefix("arena_") for path in FIGURES.glob("arena_T1e*.csv")]
    assert len(horizons) > 1
    kinds = ("regret", "links", "leak", "differ")
    wanted = sorted(f"arena_{what}_{end}.md" for what in kinds for end in horizons)
    assert reader.pictures(FIGURES) == wanted


def line_of(text, start):
    """Returns the only line that starts so."""
    (found,) = (line for line in text.split("\n") if line.startswith(start))
    return found


Change = Callable[[str], str]


def put(pattern, new, start="", count=1, T=""):
    """Changes what a pattern finds: in the line that starts so, in the part of T; 0 is everywhere.

    Numbers of a page are not known beforehand.
    """

    def change(text):
        part = text.partition(f"## T = {T}\n")[2].partition("\n## ")[0] if T else text
        line = line_of(part, start) if start else part
        return text.replace(line, re.sub(pattern, new, line, count=count), 1)

    return change


def off(found):
    """Writes a number with another last digit."""
    return f"{found[0][:-1]}{(int(found[0][-1]) + 5) % 10}"


def one_more(found):
    return str(int(found[0]) + 1)


def without(start):
    """Drops a line."""
    return lambda text: text.replace(line_of(text, start) + "\n", "")


def swapped(one, other, start=""):
    """Swaps two words, in a line or everywhere."""
    return put(f"({one})|({other})", lambda m: other if m[1] else one, start, 0)


def cells_swapped(one, other, start, T):
    """Swaps two cells of a row of a horizon's table."""

    def change(found):
        cells = found[0].split(" | ")
        cells[one], cells[other] = cells[other], cells[one]
        return " | ".join(cells)

    return put(".+", change, start, T=T)


def of_rows(change):
    """Changes the rows of a CSV."""

    def changed(text):
        rows = list(csv.DictReader(io.StringIO(text)))
        change(rows)
        file = io.StringIO()
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()

    return changed


TWO = ("KL-UCB, pooled", "UCB1, pooled")


def places_swapped(page):
    """Swaps the places of two contestants in the first table; their regret stays."""
    before, words, after = page.partition("## T = 10⁴\n")
    lines = [line_of(after.partition("\n\n* ")[0], f"| {label} |") for label in TWO]
    first, last = (re.search(r"\S+ of \d+(?= \|)", line)[0] for line in lines)
    after = after.replace(lines[0], lines[0].replace(first, last, 1), 1)
    return before + words + after.replace(lines[1], lines[1].replace(last, first, 1), 1)


def other_places(rows):
    """Swaps the same places in the table beside the page."""
    one, other = (next(row for row in rows if row["algorithm"] == label) for label in TWO)
    one["place"], other["place"] = other["place"], one["place"]


USELESS = "Surely within 5 % of uniform play, or worse, T = 10⁴"
USELESS5 = USELESS.replace("⁴", "⁵")
FED1 = "| Fed1-UCB, f = 5 |"
# What a broken writer prints, by page: what is wrong, and the change.
BROKEN = {
    "ARENA.md": {
        # Sentences.
        "one absent contestant is unsaid": put(r"(Not run, because no ε.*) / DP-SE", r"\1"),
        "somebody absent took part": put(
            r"(Not run, because no ε.*) / DP-SE", r"\1 / HDP-MAB, 10 stars of 5"
        ),
        "absent for another reason": put("no ε covers a share of the noise", "of a whim"),
        "uniform play of another horizon": put("T = 10⁵", "T = 10⁶", USELESS5),
        "better than uniform play, and said to be none": put(
            "(?<=T = 10⁵: )", "CDP-MAB / ", USELESS5
        ),
        "as bad as uniform play, and in neither list": put(" / DP-SE", "", USELESS),
        "who may be as bad as uniform play is left out": put("; not decided: [^.]*", "", USELESS5),
        "a contestant that does not exist": put("(?<=T = 10⁵: )", "DP-ES / ", USELESS5),
        "a yardstick that is stale": put(r"(?<=anything, has )[\d,]+", off),
        "a leak without a yardstick": put(r"\n\* ε = 10: Yardstick.*", ""),
        "another yardstick": put("Yardstick: KL-UCB by", "Yardstick: KL-UCB, pooled by"),
        "a yardstick of another leak": put(r"(?<=\* ε = )0\.1(?=: Yard)", "0.3"),
        "a yardstick that is beaten, unsaid": put(
            r"(ε = 10: Yardstick.*than that has: ).*", r"\1nobody."
        ),
        "somebody who does not beat the yardstick": put(
            r"(ε = 10: Yardstick.*than that has: ).*", r"\1CDP-MAB / LDP-UCB-B, pooled."
        ),
        # Tables.
        "the accountant of another view": put("accountant: ε up to δ = 10⁻⁶", "accountant: pure ε"),
        "a contestant dropped from the table": put(r"\n\| KL-UCB, pooled \|.*", "", T="10⁵"),
        "a contestant twice": put(".+", r"\g<0>\n\g<0>", "| UCB1 |", T="10⁵"),
        "columns swapped": cells_swapped(6, 7, "| Dist-DP-SE | a secure", "10⁶"),
        "the leak of a table's row": cells_swapped(3, 5, "| CDP-MAB | nobody", "10⁶"),
        "a stale number in the table": put(r"[\d,]+(?= \[)", off, FED1, T="10⁶"),
        "an interval left out of the table": put(r"(?<=\d) \[[^]]*\]", "", FED1, T="10⁶"),
        "a place that is another's": put(r"\d+(?= of )", one_more, "| UCB1, pooled |", T="10⁴"),
        "a place of another group": put(r"(?<= of )\d+", one_more, "| GosInE |", T="10⁴"),
        "numbers told as bits": cells_swapped(12, 13, "| GosInE |", "10⁴"),
        "a cell of a view's table": put(r"(?<=\| )\d[\d,]*(?= \[[^]]*\]; \d)", off),
        "a place of a view's table": put(r"(?<=\]; )\d+", one_more),
        "the seeds of a view's table": put(r"(?<=\| Dist-DP-SE \| )\d+(?= \| [\d,]+ \[)", off),
        "settings above the axis that agree": put(
            r"\| no: above the axis", "| yes: above the axis"
        ),
        "a cell of the ledger": put("49 of 50 shares of the noise", "50 of 50 shares of the noise"),
        "a cell below a cap": put(r"12,\d{3}(?= \| 0.1 % \| 0 \| 560)", off),
    },
    "arena_regret_T1e4.md": {
        "a caption's seeds": put(r"(?<=slots, )\d+(?= seeds)", off),
        "a name": put(
            r"(?<=least mean regret is that of )[^.\n]*?(?=, [\d,]+ \()", "UCB1", count=0
        ),
    },
    "arena_regret_T1e5.md": {
        "a number": put(r"[\d,]+(?= \(\d+ seeds\);)", off, count=0),
        "the seeds of a number": put(r"\d+(?= seeds\);)", off, count=0),
    },
    "arena_regret_T1e6.md": {
        "a caption without somebody absent": put(" / GosInE", ""),
        "somebody tied to nobody": put("(?<=largest is that of )", reader.TIED, count=0),
        "a number of CDP-MAB": put(r"(?<=CDP-MAB has )[\d,]*\d", off, count=0),
        "a number of algorithms": put(r"\d+(?= of \d+ algorithms)", one_more, count=0),
        "another horizon": put("At T = 10⁶", "At T = 10⁵", count=0),
    },
    "arena_leak_T1e4.md": {
        "a panel's absent under another's name": swapped(
            "Whoever reads single messages: Not", "Whoever sees actions alone: Not"
        ),
        "the best of a panel": put(
            "(?<=secure sums and no message, ).*?(?= at ε)", "HDP-MAB, 10 stars of 5", count=0
        ),
        "a mean of a panel": put(r"(?<=\()[\d,]+(?=\) at ε = 50; to )", off, count=0),
    },
    "arena_leak_T1e5.md": {
        "no seeds of those that take long": put(", [\\d or]+ of those that take long", "")
    },
    "arena_leak_T1e6.md": {
        "a panel's absent contestant unsaid": put(" / AdaP-UCB", ""),
        "a leak": put("at ε = 50(?=[;.])", "at ε = 10", count=0),
        "a panel": put(
            "(?<=to )whoever sees actions alone,", "whoever reads single messages,", count=0
        ),
        "a picture of another page": put(r"arena_leak_T1e6\.csv", "arena_leak_T1e5.csv", count=0),
    },
    "arena_differ_T1e4.md": {"the largest": put(" / uniform play(?=, )", " / UCB1", count=0)},
    "arena_differ_T1e5.md": {
        "seeds of agents alike only": put(r" or \d+(?= of those that take long)", ""),
        "another reason": put("stated for agents alike only", "not stated at all", count=0),
        "those who can be told apart, tied": put(
            r"(?<=largest is that of )[^:]*: [^/]*",
            f"{reader.TIED}KL-UCB, pooled, 2,677 (40 seeds) ",
            count=0,
        ),
    },
    "arena_differ_T1e6.md": {"a stale cell": put(r"\d[\d,]*(?= \[)", off)},
    "arena_links_T1e4.md": {
        "not what is to be seen": put("GosInE sends least", "UCB1 sends least"),
        "the least sender": put("(?<=anything, ).*?(?= sends least)", "Dist-DP-SE", count=0),
        "bits": put(r"[\d,]+(?= bits\.)", off, count=0),
    },
    "arena_links_T1e5.md": {
        "a caption of another horizon": put("T = 10⁵ slots", "T = 10⁶ slots", count=0),
        "the best sender": put(
            r"(?<=regret is that of )[^.\n]*?(?=, [\d,]+ \()", "GosInE", count=0
        ),
    },
    # Tables of pages that have a CSV file and no words of their own.
    "readings.md": {"a digit": put(r"\d(?=\] \|\n)", off)},
    "table1_graphs.md": {"a row twice": put(".+", r"\g<0>\n\g<0>", "| 100000 | ring | ")},
    "table2_hybrid.md": {"columns swapped": put(r"\| (\S+) \| (case)", r"| \2 | \1", "| T | case")},
    "arena_protocols.md": {
        "columns swapped": put(r"(\d+) \| (\d+) \|$", r"\2 | \1 |", "| ring | 100 | GIS | ")
    },
    "audit.md": {"a verdict": put("within", "beyond", "| CDP-MAB, claim 1 | ")},
}
# What it writes into the page and into a table beside it.
TWICE = {
    "places against the intervals": (
        "ARENA.md",
        places_swapped,
        "arena_T1e4.csv",
        of_rows(other_places),
    ),
    **{
        f"settings: {what}": ("ARENA.md", put(*change), "arena_settings.csv", put(*change))
        for what, change in (
            ("agree, and are told not to", ("yes: regret", "no: regret")),
            ("off by something else", (r"(?<=links [+-])[\d.]+(?= %)", off)),
            ("another order", (", between the other two", "")),
        )
    },
    "a picture's last slot": (
        "arena_regret_T1e4.md",
        str,
        "arena_regret_T1e4.csv",
        put(r"(?<=\nbits sent,GosInE,10000,)\d+", off),
    ),
}


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for name, changes in BROKEN.items() for what in changes]
)
def test_a_broken_writer_is_caught(name, what):
    """Would catch a reader of pages that looks away from this."""
    text = (FIGURES / name).read_text("utf-8")
    broken = BROKEN[name][what](text)
    assert broken != text, "this page has nothing to break here"
    assert reader.fault_of(name, FIGURES, broken)


@pytest.mark.parametrize("what", TWICE)
def test_a_writer_that_is_broken_in_all_tables_is_caught(what, tmp_path):
    """Would catch a reader of pages that holds them against nothing but the table beside them."""
    name, change, beside, its = TWICE[what]
    for path in FIGURES.iterdir():
        (tmp_path / path.name).symlink_to(path)
    text, rows = ((FIGURES / each).read_text("utf-8") for each in (name, beside))
    assert change is str or change(text) != text
    assert its(rows) != rows
    (tmp_path / beside).unlink()
    (tmp_path / beside).write_text(its(rows), "utf-8")
    assert reader.fault_of(name, tmp_path, change(text))
