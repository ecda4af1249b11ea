"""Tables for papers and other programs: LaTeX, HTML, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

FORMATS = ("text", "latex", "html", "markdown", "csv")
"""What ``--format`` may be; "text" is for terminals."""

_KINDS = {"latex": "latex_booktabs", "html": "html", "markdown": "github"}
# What pdflatex lacks.
_LATEX = {
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "∞": r"$\infty$",
    "–": "--",
    "×": r"$\times$",
}
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def table_of(
    headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, kind: str
) -> str:
    """Writes a table of texts as LaTeX (with booktabs), HTML or Markdown.

    Args:
        headings: Of the columns; line breaks become spaces.
        rows: Of texts.
        caption: What the table shows; above it.
        kind: "latex", "html" or "markdown".
    """
    from tabulate import tabulate

    heads = [heading.replace("\n", " ") for heading in headings]
    align = ["right"] * len(heads)
    # Texts stay as they are: 1,000 is not read, and written, as a number.
    made = tabulate(
        [list(row) for row in rows],
        heads,
        tablefmt=_KINDS[kind],
        disable_numparse=True,
        colalign=align if rows else None,
    )
    if kind == "html":
        from html import escape

        head, rest = made.split("\n", 1)
        return f"{head}\n<caption>{escape(caption)}</caption>\n{rest}"
    if kind == "latex":
        return f"% {latex_text(caption)}\n{latex_text(made)}"
    return f"{caption}\n\n{made}"


def latex_text(text: str) -> str:
    """Writes letters that pdflatex lacks as commands."""
    for letter, command in _LATEX.items():
        text = text.replace(letter, command)
    made, raised = "", ""
    for letter in [*text, ""]:
        digit = letter.translate(_POWERS) if letter else ""
        if letter and digit != letter:
            raised += digit
            continue
        made += (f"$^{{{raised}}}$" if raised else "") + letter
        raised = ""
    return made


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Writes rows of values as CSV; floats read back to the same bits."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue().rstrip("\n")
