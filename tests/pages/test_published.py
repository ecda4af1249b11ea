"""The published pages against their tables; and the reader of pages against broken writers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"
PAGES = {"ARENA.md": reader.arena, "CLAIMS.md": reader.claims}
LEAK = "* At matched trust, T = 10⁶, by whoever reads single messages, pure ε = 1:"
SUMS = (
    "* At matched trust, T = 10⁵, by whoever sees secure sums and no message, ε = 1 up to δ = 10⁻⁶:"
)
TEN = "* At matched trust, T = 10⁴, by whoever reads single messages, pure ε = 10:"
ALL = "* Of all, T = 10⁴:"


@pytest.mark.parametrize("name", PAGES)
def test_a_published_page_says_what_its_tables_say(name: str) -> None:
    """Would catch a page that was changed by hand, or written from other data than its tables."""
    assert PAGES[name](FIGURES) == []


def line_of(text: str, start: str) -> str:
    """Returns the only line that starts so."""
    (found,) = (line for line in text.split("\n") if line.startswith(start))
    return found


def within(start: str, old: str, new: str) -> Callable[[str], str]:
    """Changes the first such words of a line."""

    def change(text: str) -> str:
        line = line_of(text, start)
        return text.replace(line, line.replace(old, new, 1))

    return change


def changed(start: str, pattern: str, new: str) -> Callable[[str], str]:
    """Changes what a pattern finds first in a line: numbers of a page are not known beforehand."""

    def change(text: str) -> str:
        line = line_of(text, start)
        return text.replace(line, re.sub(pattern, new, line, count=1))

    return change


def cut(start: str, pattern: str) -> Callable[[str], str]:
    """Drops what a pattern finds in a line."""

    def change(text: str) -> str:
        line = line_of(text, start)
        return text.replace(line, re.sub(pattern, "", line))

    return change


def without(start: str) -> Callable[[str], str]:
    """Drops a line."""
    return lambda text: text.replace(line_of(text, start) + "\n", "")


def swapped(start: str, one: str, other: str) -> Callable[[str], str]:
    """Swaps two words of a line."""

    def change(text: str) -> str:
        line = line_of(text, start)
        parts = line.replace(one, "\0").replace(other, one).replace("\0", other)
        return text.replace(line, parts)

    return change


def row(horizon: str, start: str, change: Callable[[str], str]) -> Callable[[str], str]:
    """Changes a row of a horizon's table."""

    def changed(text: str) -> str:
        part = text.partition(f"## T = {horizon}\n")[2].partition("\n## ")[0]
        line = line_of(part, start)
        return text.replace(line, change(line), 1)

    return changed


def cells_swapped(one: int, other: int) -> Callable[[str], str]:
    """Swaps two cells of a row."""

    def change(line: str) -> str:
        cells = line.split(" | ")
        cells[one], cells[other] = cells[other], cells[one]
        return " | ".join(cells)

    return change


# What a broken writer prints: what is wrong, page, and the change.
BROKEN = {
    "the winner is the second": (
        "ARENA.md",
        swapped(ALL, "KL-UCB, pooled", "Thompson, pooled"),
    ),
    "the winner of another view": (
        "ARENA.md",
        within(SUMS, "Dist-DP-SE has the", "DDP-MAB, ring has the"),
    ),
    "one absent contestant is unsaid": (
        "ARENA.md",
        within(LEAK, " / DP-SE", ""),
    ),
    "all absent contestants are unsaid": (
        "ARENA.md",
        cut(LEAK, r" of 5 of 13 contestants,| Not run, .*?(?= Yardstick)"),
    ),
    "who took part is counted off by one": (
        "ARENA.md",
        within(LEAK, "of 5 of", "of 6 of"),
    ),
    "all contestants are counted off by one": (
        "ARENA.md",
        within(LEAK, "of 13 cont", "of 14 cont"),
    ),
    "somebody absent took part": (
        "ARENA.md",
        within(LEAK, " / DP-SE", " / HDP-MAB, 10 stars of 5"),
    ),
    "absent for another reason": (
        "ARENA.md",
        within(LEAK, "no ε covers a share of its noise", "this run leaves them out"),
    ),
    "the wrong side of an interval": (
        "ARENA.md",
        changed(ALL, r"mean, ([\d,]+) \[[\d,]+", r"mean, \1 [9,999"),
    ),
    "a stale mean": (
        "ARENA.md",
        changed(SUMS, r"mean, [\d,]+", "mean, 76,007"),
    ),
    "a stale difference": (
        "ARENA.md",
        changed(SUMS, r"[\d,]+(?= \[[^]]*\] more)", "4,700"),
    ),
    "a difference that may be 0": (
        "ARENA.md",
        changed(ALL, r"\[(?=[\d,]+, [\d,]+\] more)", "[-"),
    ),
    "per cent of the other": (
        "ARENA.md",
        changed(ALL, r"\([\d.]+ %\)", "(58.4 %)"),
    ),
    "the leak of another view": (
        "ARENA.md",
        within(SUMS, "secure sums and no message", "actions alone"),
    ),
    "another accountant": (
        "ARENA.md",
        within(SUMS, " up to δ = 10⁻⁶", ""),
    ),
    "the leak of another run": (
        "ARENA.md",
        within(LEAK, "pure ε = 1:", "pure ε = 3:"),
    ),
    "another trust": (
        "ARENA.md",
        within(
            "* Trusted: nobody: every reward is noisy; messages: ε = 1, T = 10⁵",
            "every reward is",
            "messages are",
        ),
    ),
    "trust said to differ where it does not": (
        "ARENA.md",
        within(
            ALL,
            "seeds, those that all have).",
            "seeds, those that all have). They differ in trust or leak (KL-UCB, pooled: others, "
            "ε: 1 / UCB1: x, ε: 2).",
        ),
    ),
    "the fewest seeds are unsaid": (
        "ARENA.md",
        within("* Of all, T = 10⁵:", ", those that all have", ""),
    ),
    "the most seeds of any": (
        "ARENA.md",
        changed("* Of all, T = 10⁵:", r"\(\d+ seeds", "(1000 seeds"),
    ),
    "another horizon": (
        "ARENA.md",
        within(LEAK, "T = 10⁶", "T = 10⁴"),
    ),
    "a leak is left out": (
        "ARENA.md",
        without(LEAK),
    ),
    "who cannot be told apart is left out": (
        "ARENA.md",
        within(
            "* Trusted: nobody: messages are noisy; messages: ε = 50, T = 10⁶",
            " / DDP-MAB, ring (",
            " (",
        ),
    ),
    "better than uniform play, and said to be none": (
        "ARENA.md",
        within("* Within 5 % of uniform play, or worse, T = 10⁵", ": DP-SE", ": DP-SE / CDP-MAB"),
    ),
    "a contestant that does not exist": (
        "ARENA.md",
        within("* Within 5 % of uniform play, or worse, T = 10⁵", "DP-SE", "DP-ES"),
    ),
    "a contestant dropped from the table": (
        "ARENA.md",
        lambda text: row("10⁵", "| KL-UCB, pooled |", lambda _: "\0")(text).replace("\0\n", ""),
    ),
    "a contestant twice": (
        "ARENA.md",
        row("10⁵", "| UCB1 |", lambda line: f"{line}\n{line}"),
    ),
    "columns swapped": (
        "ARENA.md",
        row("10⁶", "| Dist-DP-SE | a secure", cells_swapped(6, 7)),
    ),
    "the leak of a table's row": (
        "ARENA.md",
        row("10⁶", "| CDP-MAB | nobody", cells_swapped(3, 5)),
    ),
    "a stale number in the table": (
        "ARENA.md",
        row("10⁶", "| Fed1-UCB, f = 5 |", lambda line: line.replace("| 44,7", "| 44,9", 1)),
    ),
    "a yardstick that is stale": (
        "ARENA.md",
        changed(LEAK, r"anything, has [\d,]+", "anything, has 11,111"),
    ),
    "a yardstick that is beaten, unsaid": (
        "ARENA.md",
        changed(TEN, r"than that has: .*", "than that has: nobody."),
    ),
    "somebody who does not beat the yardstick": (
        "ARENA.md",
        changed(TEN, r"than that has: .*", "than that has: CDP-MAB / LDP-UCB-B, pooled."),
    ),
    "a place that is another's": (
        "ARENA.md",
        row("10⁴", "| UCB1, pooled |", lambda line: line.replace("| 3 of 8 |", "| 7 of 8 |")),
    ),
    "a place of another group": (
        "ARENA.md",
        row("10⁴", "| GosInE |", lambda line: line.replace("| 1 of 3 |", "| 1 of 8 |")),
    ),
    "numbers told as bits": (
        "ARENA.md",
        row("10⁴", "| GosInE |", cells_swapped(10, 11)),
    ),
    "a cell of a view's table": (
        "ARENA.md",
        lambda text: re.sub(r"(\| Dist-DP-SE \| 1000 \| )1", r"\g<1>2", text, count=1),
    ),
    "settings that agree, and do not": (
        "ARENA.md",
        lambda text: text.replace("| no: above the axis", "| yes: above the axis", 1),
    ),
    "settings off by something else": (
        "ARENA.md",
        lambda text: re.sub(r"yes: regret [+-][\d.]+ %", "yes: regret +1.0 %", text, count=1),
    ),
    "a cell of the ledger": (
        "ARENA.md",
        lambda text: text.replace("49 of 50 shares of the noise", "50 of 50 shares of the noise"),
    ),
    "a verdict flipped": (
        "CLAIMS.md",
        within("| I | “without deteriorating the regret”", "**holds**", "**does not hold**"),
    ),
    "a verdict kept where it half holds": (
        "CLAIMS.md",
        lambda text: re.sub(r"\*\*holds only if [^*]*\*\*", "**holds**", text, count=1),
    ),
    "a count of verdicts off by one": (
        "CLAIMS.md",
        within("| measured |", " 39 holds", " 38 holds"),
    ),
    "an order that holds by little said to hold": (
        "CLAIMS.md",
        lambda text: text.replace("**holds by less than 1 %**", "**holds**", 1),
    ),
    "the size of an effect": (
        "CLAIMS.md",
        lambda text: re.sub(r"\*\* \(by [^)]*\)", "** (by 12 to 34 %)", text, count=1),
    ),
    "a misprint that is told as a failure": (
        "CLAIMS.md",
        lambda text: text.replace("**misprint**", "**does not hold**", 1),
    ),
    "a count of misprints": ("CLAIMS.md", within("| misprints |", "17: 17", "17: 16")),
    "a count of another list": ("CLAIMS.md", within("| not judged |", "19", "18")),
    "a settled verdict flipped": (
        "CLAIMS.md",
        lambda text: (
            text.partition("## Settled")[0]
            + "## Settled"
            + text.partition("## Settled")[2].replace("**does not hold**", "**holds**", 1)
        ),
    ),
    "a stale number of a sentence": (
        "CLAIMS.md",
        within("| I | “without deteriorating the regret”", "0.252 %", "0.352 %"),
    ),
    "numbers of two horizons swapped": (
        "CLAIMS.md",
        swapped("| I | “without deteriorating the regret”", "T = 10⁴", "T = 10⁶"),
    ),
    "a condition left out": (
        "CLAIMS.md",
        lambda text: re.sub(r"T = 10⁴: HDP over CDP [^<]*<br>", "", text, count=1),
    ),
    "a sentence dropped": ("CLAIMS.md", without("| I | “without deteriorating the regret”")),
    "another sentence's words": (
        "CLAIMS.md",
        within("| I | “without deteriorating the regret”", "without", "with"),
    ),
    "another section": (
        "CLAIMS.md",
        within("| I | “without deteriorating the regret”", "| I |", "| II |"),
    ),
    "a verdict that hangs on the tolerance, unsaid": (
        "CLAIMS.md",
        lambda text: re.sub(r"; at (half|twice) the tolerance: [^|]*", " ", text),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_writer_is_caught(what: str) -> None:
    """Would catch a reader of pages that looks away from this."""
    name, change = BROKEN[what]
    text = (FIGURES / name).read_text("utf-8")
    broken = change(text)
    assert broken != text, "this page has nothing to break here"
    try:
        faults = PAGES[name](FIGURES, broken)
    except (AssertionError, KeyError, ValueError) as error:  # no page at all
        faults = [str(error)]
    assert faults
