"""The paper's sentences, section by section, each with a verdict that is computed from data.

Three lists: what is measured, what arithmetic settles, and what is not judged. `verdicts` has the
rule, `claims_theory` and `claims_measured` have the measured rows, `claims_settled` the others.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from experiments import common
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

__all__ = ["ROWS", "Data", "judge"]

ROWS: list[Row] = [*THEORY, *EXPERIMENTS]


def judge(data: Data, folder: Path) -> list[Path]:
    """Judges every sentence; writes CLAIMS.md, and every number of it as CSV."""
    found = [row.judge(data) for row in ROWS]
    settled = [each.check() for each in SETTLED]
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / "CLAIMS.md", folder / "claims.csv"
    lines = [
        *_head(data),
        *_summary(found, settled),
        *_measured(found),
        *_settled(settled),
        *_unmeasured(),
    ]
    with whole_file(page) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write(found, table)
    return [page, table]


def _head(data: Data) -> list[str]:
    horizons = ", ".join(common.whole(T) for T in data.horizons)
    return [
        "# The paper's sentences, measured",
        "",
        f"Quotations are the LaTeX's, word for word. {data.seeds:,} seeds a configuration, T = {horizons}. "
        f"± is half the {100 * LEVEL:g} % interval over seeds (Student t; ratios by the delta method, "
        "over the same seeds; shares: Clopper–Pearson, in brackets). Each interval stands for itself: of a hundred that "
        "just touch an edge, one may cross it by chance.",
        "",
        "**One rule decides every row.** An order holds where the interval lies on the stated side. What is alike, or "
        f"has a stated value, holds where the interval lies within {100 * TOLERANCE:g} % of it; what is not "
        f"worse, or recovered, is at most {100 * TOLERANCE:g} % more; a high probability is "
        f"one above {100 * (1 - TOLERANCE):g} %; large means at least {100 * LARGE:g} % more. Bounds have no tolerance. An "
        "interval that lies across an edge decides nothing. Where half or twice the tolerance would change the verdict, "
        "the row says so.",
        "",
    ]


def _summary(found: list[list[Finding]], settled: list[tuple[str, bool]]) -> list[str]:
    told = counts(combined(findings) for findings in found)
    held = sum(holds for _, holds in settled)
    return [
        "| list | sentences |",
        "|---|---|",
        f"| measured | {len(ROWS)}: "
        + ", ".join(f"{number} {kind}" for kind, number in told.items())
        + " |",
        f"| settled by arithmetic | {len(settled)}: {held} {HOLDS}, {len(settled) - held} {FAILS} |",
        f"| not judged | {len(UNMEASURED)} |",
        "",
    ]


def _measured(found: list[list[Finding]]) -> list[str]:
    lines = [
        "## Measured",
        "",
        "| section | the paper's words | measured | found | verdict | see |",
        "|---|---|---|---|---|---|",
    ]
    for row, findings in zip(ROWS, found, strict=True):
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
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _settled(settled: list[tuple[str, bool]]) -> list[str]:
    lines = [
        "## Settled by arithmetic",
        "",
        "Nothing is measured here: these follow from definitions, or contradict them. They are computed exactly.",
        "",
        "| section | the paper's words | what settles it | computed | verdict |",
        "|---|---|---|---|---|",
    ]
    for each, (told, holds) in zip(SETTLED, settled, strict=True):
        verdict = f"**{HOLDS if holds else FAILS}**"
        lines.append(f"| {each.section} | {quoted(each.quote)} | {each.why} | {told} | {verdict} |")
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


def _write(found: list[list[Finding]], path: Path) -> None:
    """Writes every finding with its numbers, a row each."""
    heads = ("row", "section", "quote", "condition", "quantity", "estimate", "lower", "upper")
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*heads, "counted", *(f"verdict at {name}" for name in SCALES)])
        for number, (row, findings) in enumerate(zip(ROWS, found, strict=True), 1):
            for each in findings:
                numbers: dict[str, Any] = dict(each.numbers) or {"": ("", "", "")}
                for quantity, measured in numbers.items():
                    start = (number, row.section, row.quote, each.condition, quantity)
                    writer.writerow([*start, *measured, each.counted, *each.verdicts])
