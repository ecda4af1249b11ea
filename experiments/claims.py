"""The paper's sentences, section by section, with a verdict that is computed from data.

`verdicts` has the rule, `claims_theory`, `claims_measured` and `claims_bounds` have the rows. Every
number goes into claims.csv; CLAIMS.md is written from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import common, verdicts
from experiments.claims_bounds import ROWS as BOUNDS
from experiments.claims_measured import ROWS as EXPERIMENTS
from experiments.claims_theory import ROWS as THEORY
from experiments.claims_unjudged import UNJUDGED
from experiments.verdicts import Data, Finding, Row
from fmab_jax.files import whole_file

LISTS: Mapping[str, Sequence[Row]] = {"measured": [*THEORY, *EXPERIMENTS], "bounds": BOUNDS}
TITLES = {"measured": "Measured", "bounds": "Bounds with explicit constants"}
HEADS = ("section", "the paper's words", "measured", "found", "verdict", "see")
RULES = f"""\
**One rule decides every row.** An order holds where the interval lies on the stated side. What is
alike, or has a stated value, holds where the interval lies within {100 * verdicts.TOLERANCE:g} % of it; what
is not worse, or recovered, is at most {100 * verdicts.TOLERANCE:g} % more; a high probability is one above
{100 * (1 - verdicts.TOLERANCE):g} %. Bounds have no tolerance. An interval that lies across an edge decides
nothing.

The size of the effect stands in brackets behind a verdict, over all conditions that count. An order
that holds by less than {100 * verdicts.SMALL:g} % says so and is counted apart. A bound that is asked
whether it is reached as well, which it does not say, is *not attained* where it is not. A sentence
about what follows from a condition, asked how often runs come so far, is *not reached* where most
do not. [claims.csv](claims.csv) has every number and its rule."""
OF_BOUNDS = """\
The paper's orders have no constants. These are the provable ones of docs/theory.md: a bound below
the regret would be an error, and how far it lies above says how loose it is. They are no support
for the paper's printed constants."""


NOT_JUDGED = """\
No row above says whether these sentences are true. Misprints are listed in
[docs/semantics.md](../docs/semantics.md#slips-of-the-paper-that-are-not-reproduced)."""


def judge(data: Data, folder: Path) -> list[Path]:
    """Judges every sentence; writes every number as CSV, and CLAIMS.md."""
    rows = []
    for name, sentences in LISTS.items():
        for row in sentences:
            findings = row.judge(data) or [
                Finding("", "more horizons are needed", verdicts.UNJUDGED)
            ]
            verdict = verdicts.write_verdict(findings)
            number = 1 + len({finding["row"] for finding in rows})
            start = {"row": number, "section": row.section, "quote": row.quote}
            end = {"list": name, "verdict": verdict}
            rows += [start | cells | end for finding in findings for cells in _cells(finding)]
    folder.mkdir(parents=True, exist_ok=True)
    table = common.save_rows(rows, folder / "claims.csv")
    return [write_page(folder, data.horizons, data.seeds), table]


def _cells(finding: Finding) -> list[dict[str, Any]]:
    """Returns a line of the CSV for every number; numbers that decide nothing have no rule."""
    blank = dict.fromkeys(("estimate", "lower", "upper"), "")
    shared = {
        "counted": finding.counted,
        "condition verdict": finding.verdict,
        "text": finding.text,
    }
    lines = []
    for name, number in [*finding.numbers.items(), *finding.extras.items()]:
        judged = name in finding.numbers
        few = finding.seeds.get(name, ("", ""))
        lines.append(
            {"condition": finding.condition, "quantity": name}
            | number._asdict()
            | shared
            | {
                "rule": finding.rule if judged else "",
                "against": finding.against if judged and not math.isnan(finding.against) else "",
                "effect": finding.effects[name] if judged else "",
                "seeds": few[0],
                "of seeds": few[1],
            }
        )
    if not finding.numbers:
        none = {"rule": finding.rule, "against": "", "effect": "", "seeds": "", "of seeds": ""}
        start = {"condition": finding.condition, "quantity": ""}
        lines.insert(0, start | blank | shared | none)
    return lines


def write_page(
    folder: Path, horizons: Sequence[int] = common.HORIZONS, seeds: int = common.SEEDS
) -> Path:
    """Writes CLAIMS.md from claims.csv, for runs of these horizons and seeds."""
    judged: dict[int, list[dict[str, Any]]] = {}
    for line in common.read_rows(folder / "claims.csv"):
        judged.setdefault(line["row"], []).append(line)
    blocks = iter(judged.values())
    tables = {
        name: [_row(row, next(blocks)) for row in sentences] for name, sentences in LISTS.items()
    }
    counts = [
        {"list": TITLES[name], "sentences": f"{len(rows)}: {_count(rows)}"}
        for name, rows in tables.items()
    ]
    lines = [
        "# The paper's sentences, measured",
        "",
        f"Quotations are the LaTeX's, word for word. {seeds:,} seeds a configuration, T = "
        f"{', '.join(map(common.write_count, horizons))}. ± is half the {100 * verdicts.LEVEL:g} % interval over "
        "seeds (Student t; ratios: Fieller, changes of ratios by the delta method, over the same "
        "seeds; shares: Clopper–Pearson, in brackets). The level is that of one interval.",
        "",
        RULES,
        "",
        *common.table_lines(counts),
    ]
    for name, rows in tables.items():
        lines += ["", f"## {TITLES[name]}", ""]
        lines += [OF_BOUNDS, ""] if name == "bounds" else []
        lines += common.table_lines(rows)
    lines += ["", "## Not judged", "", NOT_JUDGED, "", *common.table_lines(_unjudged())]
    with whole_file(folder / "CLAIMS.md") as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder / "CLAIMS.md"


def _unjudged() -> list[dict[str, str]]:
    """Returns the sentences that are not judged, with the reason."""
    return [
        {"section": section, "the paper's words": write_quote(quote), "why": reason}
        for reason, sentences in UNJUDGED.items()
        for section, quote in sentences
    ]


def _row(row: Row, lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the cells of a sentence, with its lines of the CSV."""
    if (lines[0]["section"], lines[0]["quote"]) != (row.section, row.quote):
        raise ValueError(f"claims.csv has another sentence than “{row.quote}” in its place")
    texts = dict.fromkeys((line["condition"], line["text"]) for line in lines)
    measured = "<br>".join(
        f"{condition}: {text}" if condition else text for condition, text in texts
    )
    words = row.words + f"<br>{row.note}" * bool(row.note)
    cells = (row.section, write_quote(row.quote), words, measured, lines[0]["verdict"], row.see)
    return dict(zip(HEADS, cells, strict=True))


def _count(rows: Iterable[Mapping[str, str]]) -> str:
    counts = verdicts.count_kinds(row["verdict"] for row in rows)
    return ", ".join(f"{number} {kind}" for kind, number in counts.items())


def write_quote(words: str) -> str:
    """Writes a quotation in a cell of a table; a bare formula as a formula."""
    is_formula = "\\" in words and "$" not in words and "~" not in words
    return f"“{f'${words}$' if is_formula else words}”".replace("|", r"\|")
