"""The paper's sentences, section by section, each with a verdict that is computed from data.

Five lists: what is measured, bounds, what arithmetic settles, misprints, and what is not judged.
`verdicts` has the rule; `claims_theory` and `claims_measured` have the measured rows,
`claims_bounds`, `claims_settled` and `claims_misprints` the others, `claims_runs` what they run
besides sweeps. Page, table and counts are made here, from the findings alone.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import common
from experiments.claims_bounds import ROWS as BOUNDS
from experiments.claims_measured import ROWS as EXPERIMENTS
from experiments.claims_misprints import MISPRINTS
from experiments.claims_settled import SETTLED, UNMEASURED
from experiments.claims_theory import ROWS as THEORY
from experiments.verdicts import (
    LARGE,
    LEVEL,
    SCALES,
    SMALL,
    TOLERANCE,
    UNJUDGED,
    Data,
    Finding,
    Row,
    counts,
    lines_of,
    stated_of,
    verdict_of,
)
from fmab_jax.files import whole_file

__all__ = ["BOUNDS", "ROWS", "Data", "judge"]

ROWS: list[Row] = [*THEORY, *EXPERIMENTS]


class Judged(NamedTuple):
    """A sentence, what was found, and the list in which it stands."""

    list: str
    row: Any
    findings: list[Finding]


def judge(
    data: Data, folder: Path, readings: Mapping[tuple[str, str, str], Any] | None = None
) -> list[Path]:
    """Judges every sentence; writes CLAIMS.md, and every number of it as CSV.

    Args:
        data: Results.
        folder: To write into.
        readings: In how many readings a sentence holds, by section, quotation and what is measured:
            `multiverse.shares`, which are refused where their verdicts are others than here.
    """
    rows = {
        "measured": ROWS,
        "bounds with explicit constants": BOUNDS,
        "settled by arithmetic": SETTLED,
        "misprints": MISPRINTS,
    }
    found = {name: [row.judged(data) for row in listed] for name, listed in rows.items()}
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / "CLAIMS.md", folder / "claims.csv"
    measured, bounds, settled, misprints = found.values()
    sections = [
        _section("Measured", "", *_table(ROWS, measured, readings)),
        _section(
            "Bounds with explicit constants",
            "The paper's orders have no constants. These are the provable ones of docs/theory.md: a bound below the regret would "
            "be an error, and how far it lies above says how loose it is. They are no support for the paper's printed constants.",
            *_table(BOUNDS, bounds),
        ),
        _section(
            "Settled by arithmetic",
            "Nothing is measured here: these follow from definitions, or contradict them. They are computed exactly.",
            ("section", "the paper's words", "what settles it", "computed", "verdict"),
            _rows(SETTLED, settled),
        ),
        _section(
            "Misprints",
            "Slips of the print: typing errors, lost factors, conditions that contradict each other. They are no failures: what "
            "is meant is judged in the other lists, or follows all the same.",
            (
                "section",
                "the paper's words",
                "what is meant",
                "printed, and what follows",
                "verdict",
            ),
            _rows(MISPRINTS, misprints),
        ),
        _unmeasured(),
    ]
    lines = [*_head(data), *_summary(found), *itertools.chain(*sections)]
    with whole_file(page) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
    judged = [
        Judged(name, row, findings)
        for name, listed in rows.items()
        for row, findings in zip(listed, found[name], strict=True)
    ]
    judged += [Judged(UNJUDGED, row, row.judged(data)) for row in UNMEASURED]
    _write(judged, table)
    return [page, table]


def _head(data: Data) -> list[str]:
    horizons = ", ".join(common.write_count(T) for T in data.horizons)
    return [
        "# The paper's sentences, measured",
        "",
        f"Quotations are the LaTeX's, word for word. {data.seeds:,} seeds a configuration, T = {horizons}. "
        f"± is half the {100 * LEVEL:g} % interval over seeds (Student t; ratios: Fieller, changes of ratios by the delta "
        "method, over the same seeds; shares: Clopper–Pearson, in brackets). Each interval stands for itself: with a "
        "hundred of them, one in a hundred may miss its number by chance.",
        "",
        "**One rule decides every row.** An order holds where the interval lies on the stated side. What is alike, or "
        f"has a stated value, holds where the interval lies within {100 * TOLERANCE:g} % of it; what is not "
        f"worse, or recovered, is at most {100 * TOLERANCE:g} % more; a high probability is "
        f"one above {100 * (1 - TOLERANCE):g} %; large means at least {100 * LARGE:g} % more. Bounds have no tolerance. An "
        "interval that lies across an edge decides nothing. Where half or twice the tolerance would change the verdict, "
        "the row says so.",
        "",
        "Behind each verdict stands in brackets how large the effect is, over all conditions that count. "
        f"An order that holds by less than {100 * SMALL:g} % says so and is counted apart. Where only a consequence of a sentence could be "
        "tested, or too few runs could have failed it, it is *not contradicted*. A bound that is asked whether it is reached as well, "
        "which it does not say, is *not attained* where it is not. A sentence about what follows from a condition, asked how often "
        "runs come so far, is *not reached* where most do not. [claims.csv](claims.csv) has every number, the rule "
        "by which it was judged, and what it was held against.",
        "",
    ]


def _summary(found: dict[str, list[list[Finding]]]) -> list[str]:
    def told(verdicts: Iterable[str]) -> str:
        return ", ".join(f"{number} {kind}" for kind, number in counts(verdicts).items())

    return [
        "| list | sentences |",
        "|---|---|",
        *(
            f"| {name} | {len(rows)}: {told(map(stated_of, rows))} |"
            for name, rows in found.items()
        ),
        f"| {UNJUDGED} | {len(UNMEASURED)} |",
        "",
    ]


def _section(
    title: str, words: str, heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """Returns a list of sentences: its heading, what it is, and a table."""
    return [
        *(f"## {title}", ""),
        *([words, ""] if words else []),
        *(f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)),
        *(f"| {' | '.join(cells)} |" for cells in rows),
        "",
    ]


def _table(
    rows: list[Row],
    found: list[list[Finding]],
    readings: Mapping[tuple[str, str, str], Any] | None = None,
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Returns heads and cells of sentences that runs judge."""
    heads = ["section", "the paper's words", "measured", "found", "verdict", "see"]
    heads += ["[readings](multiverse.md)"] if readings else []
    told = []
    for row, findings, cells in zip(rows, found, _rows(rows, found), strict=True):
        cells += (row.see,)
        if readings:
            share = readings.get((row.section, row.quote, row.words))
            cells += (share.beside(findings) if share else "",)
        told.append(cells)
    return heads, told


def _rows(rows: Sequence[Row], found: Sequence[list[Finding]]) -> list[tuple[str, ...]]:
    """Returns the cells of judged sentences."""
    whats = [row.words + f"<br>{row.note}" * bool(row.note) for row in rows]
    return [
        (row.section, quoted(row.quote), what, lines_of(findings, "<br>"), verdict_of(findings))
        for row, what, findings in zip(rows, whats, found, strict=True)
    ]


def _unmeasured() -> list[str]:
    rows = [(each.section, quoted(each.quote), each.words) for each in UNMEASURED]
    return _section("Not judged, and why", "", ("section", "the paper's words", "why"), rows)


def quoted(words: str) -> str:
    """Writes a quotation in a cell of a table; a bare formula as a formula."""
    formula = "\\" in words and "$" not in words and "~" not in words
    inside = f"${words}$" if formula else words
    return f"“{inside}”".replace("|", r"\|")


HEADS = (
    "row", "section", "quote", "condition", "quantity", "estimate", "lower", "upper", "counted",
    *(f"verdict at {name}" for name in SCALES),
    "list", "rule", "against", "effect", "seeds", "of seeds", "told", "verdict",
)  # fmt: skip


def _write(judged: Sequence[Judged], path: Path) -> None:
    """Writes every finding with its numbers, a row each.

    A number that is told besides has no rule. `effect` is what the verdict's brackets are made of;
    `seeds` is how many met a condition, `of seeds` of how many.
    """
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADS)
        for number, (name, row, findings) in enumerate(judged, 1):
            verdict = UNJUDGED if name == UNJUDGED else verdict_of(findings)
            for each in findings:
                for quantity, measured, rule in _quantities(each):
                    against = "" if math.isnan(each.against) or not rule else each.against
                    effect = each.effects.get(quantity, "") if rule else ""
                    few = each.seeds.get(quantity, ("", ""))
                    start = (number, row.section, row.quote, each.condition, quantity, *measured)
                    end = (name, rule, against, effect, *few, each.told, verdict)
                    writer.writerow([*start, each.counted, *each.verdicts, *end])


def _quantities(finding: Finding) -> list[tuple[str, Any, str]]:
    """Returns name, number and rule of all that a finding tells; of one without numbers a blank."""
    judged = [(name, number, finding.rule) for name, number in finding.numbers.items()]
    besides = [(name, number, "") for name, number in finding.besides.items()]
    if not judged:
        return [("", ("", "", ""), finding.rule), *besides]
    return [*judged, *besides]
