"""The paper's sentences, section by section, each with a verdict that is computed from data.

Three lists: what is measured, what arithmetic settles, and what is not judged. `verdicts` has the
rule, `claims_theory` and `claims_measured` have the measured rows, `claims_settled` the others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments import common
from experiments.claims_bounds import ROWS as BOUNDS
from experiments.claims_measured import ROWS as EXPERIMENTS
from experiments.claims_settled import SETTLED, UNMEASURED
from experiments.claims_theory import ROWS as THEORY
from experiments.verdicts import (
    FAILS,
    HOLDS,
    LARGE,
    LEVEL,
    SCALES,
    TOLERANCE,
    Data,
    Finding,
    Row,
    combined,
    counts,
    verdict_of,
)
from fmab_jax.files import whole_file

__all__ = ["BOUNDS", "ROWS", "Data", "judge"]

ROWS: list[Row] = [*THEORY, *EXPERIMENTS]


def judge(
    data: Data, folder: Path, readings: Mapping[tuple[str, str, str], str] | None = None
) -> list[Path]:
    """Judges every sentence; writes CLAIMS.md, and every number of it as CSV.

    Args:
        data: Results.
        folder: To write into.
        readings: In how many readings a sentence holds, by section, quotation and what is measured;
            `multiverse` has them.
    """
    found, bounds = ([row.judge(data) for row in rows] for rows in (ROWS, BOUNDS))
    settled = [each.verdict() for each in SETTLED]
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / "CLAIMS.md", folder / "claims.csv"
    lines = [
        *_head(data),
        *_summary(found, bounds, settled),
        "## Measured",
        "",
        *_table(ROWS, found, readings),
        "## Bounds with explicit constants",
        "",
        "The paper's orders have no constants. These are the provable ones of docs/theory.md: a bound below the regret would "
        "be an error, and how far it lies above says how loose it is. They are no support for the paper's printed constants.",
        "",
        *_table(BOUNDS, bounds),
        *_settled(settled),
        *_unmeasured(),
    ]
    with whole_file(page) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write([*ROWS, *BOUNDS], [*found, *bounds], table)
    return [page, table]


def _head(data: Data) -> list[str]:
    horizons = ", ".join(common.whole(T) for T in data.horizons)
    return [
        "# The paper's sentences, measured",
        "",
        f"Quotations are the LaTeX's, word for word. {data.seeds:,} seeds a configuration, T = {horizons}. "
        f"± is half the {100 * LEVEL:g} % interval over seeds (Student t; ratios by the delta method, "
        "over the same seeds; shares: Clopper–Pearson, in brackets). Each interval stands for itself: with a "
        "hundred of them, one in a hundred may miss its number by chance.",
        "",
        "**One rule decides every row.** An order holds where the interval lies on the stated side. What is alike, or "
        f"has a stated value, holds where the interval lies within {100 * TOLERANCE:g} % of it; what is not "
        f"worse, or recovered, is at most {100 * TOLERANCE:g} % more; a high probability is "
        f"one above {100 * (1 - TOLERANCE):g} %; large means at least {100 * LARGE:g} % more. Bounds have no tolerance. An "
        "interval that lies across an edge decides nothing. Where half or twice the tolerance would change the verdict, "
        "the row says so.",
        "",
    ]


def _summary(
    found: list[list[Finding]], bounds: list[list[Finding]], settled: list[tuple[str, str]]
) -> list[str]:
    def told(verdicts: Iterable[str]) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in counts(verdicts).items())

    words = [verdict for _, verdict in settled]
    plain = {verdict: words.count(verdict) for verdict in dict.fromkeys(words)}
    others = sum(n for verdict, n in plain.items() if verdict not in (HOLDS, FAILS))
    return [
        "| list | sentences |",
        "|---|---|",
        f"| measured | {len(found)}: {told(map(combined, found))} |",
        f"| bounds with explicit constants | {len(bounds)}: {told(map(combined, bounds))} |",
        f"| settled by arithmetic | {len(settled)}: {plain.get(HOLDS, 0)} {HOLDS}, "
        f"{plain.get(FAILS, 0)} {FAILS}, {others} in part or not proved |",
        f"| not judged | {len(UNMEASURED)} |",
        "",
    ]


def _table(
    rows: list[Row],
    found: list[list[Finding]],
    readings: Mapping[tuple[str, str, str], str] | None = None,
) -> list[str]:
    heads = ["section", "the paper's words", "measured", "found", "verdict", "see"]
    heads += ["[readings](multiverse.md)"] if readings else []
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row, findings in zip(rows, found, strict=True):
        told = "<br>".join(f"{each.condition}: {each.told}" for each in findings)
        note = f"<br>{row.note}" if row.note else ""
        cells = (
            row.section,
            quoted(row.quote),
            f"{row.measured}{note}",
            told,
            verdict_of(findings),
            row.see,
        )
        if readings:
            cells += (readings.get((row.section, row.quote, row.measured), ""),)
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _settled(settled: list[tuple[str, str]]) -> list[str]:
    lines = [
        "## Settled by arithmetic",
        "",
        "Nothing is measured here: these follow from definitions, or contradict them. They are computed exactly.",
        "",
        "| section | the paper's words | what settles it | computed | verdict |",
        "|---|---|---|---|---|",
    ]
    for each, (told, verdict) in zip(SETTLED, settled, strict=True):
        cells = (each.section, quoted(each.quote), each.why, told, f"**{verdict}**")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _unmeasured() -> list[str]:
    lines = [
        "## Not judged, and why",
        "",
        "| section | the paper's words | why |",
        "|---|---|---|",
    ]
    return lines + [f"| {u.section} | {quoted(u.quote)} | {u.why} |" for u in UNMEASURED]


def quoted(words: str) -> str:
    """Writes a quotation in a cell of a table; a bare formula as a formula."""
    inside = words if "$" in words or "\\" not in words else f"${words}$"
    return f"“{inside}”".replace("|", r"\|")


def _write(rows: list[Row], found: list[list[Finding]], path: Path) -> None:
    """Writes every finding with its numbers, a row each."""
    heads = ("row", "section", "quote", "condition", "quantity", "estimate", "lower", "upper")
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*heads, "counted", *(f"verdict at {name}" for name in SCALES)])
        for number, (row, findings) in enumerate(zip(rows, found, strict=True), 1):
            for each in findings:
                numbers: dict[str, Any] = dict(each.numbers) or {"": ("", "", "")}
                for quantity, measured in numbers.items():
                    start = (number, row.section, row.quote, each.condition, quantity)
                    writer.writerow([*start, *measured, each.counted, *each.verdicts])
