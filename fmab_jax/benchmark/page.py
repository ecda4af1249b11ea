"""How a card is written: its blocks, as one HTML page and as Markdown."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from fmab_jax.analysis.words import written
from fmab_jax.errors import Refusal, refuse
from fmab_jax.files import checked_path, refuse_taken, whole_file
from fmab_jax.reports.frame import escaped as _e
from fmab_jax.reports.frame import framed


class Paragraph(NamedTuple):
    """A paragraph; ``small`` for a note."""

    text: str
    small: bool = False


class Items(NamedTuple):
    """A list."""

    texts: tuple[str, ...]


class Code(NamedTuple):
    """What is to be copied as it is."""

    text: str


class Table(NamedTuple):
    """A table; the first ``first`` cells of a row are its headings."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first: int = 1
    words: bool = False


class Scatter(NamedTuple):
    """Regret against links, a panel for each title: mean links and regret by label."""

    caption: str
    panels: tuple[tuple[str, Mapping[str, tuple[float, float]]], ...]
    marked: str


Block = Paragraph | Items | Code | Table | Scatter


class Section(NamedTuple):
    """A part of a card."""

    title: str
    blocks: tuple[Block, ...]


class Card(NamedTuple):
    """A card, before it is written.

    Attributes:
        title: Its heading.
        lead: A sentence below it.
        sections: In their order.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]

    @property
    def ranks(self) -> Table:
        """The table of ranks, with which a card begins."""
        (found,) = (each for each in self.sections[0].blocks if isinstance(each, Table))
        return found


def checked_paths(base: str | os.PathLike[str], overwrite: bool) -> tuple[Path, Path]:
    """Returns where HTML and Markdown shall stand, having made sure that they can.

    Args:
        base: Path without an ending.
        overwrite: Whether files of these names may be replaced.

    Raises:
        ValueError: If there is such a file or no such folder.
    """
    text = re.sub(r"\.(html|md)$", "", str(checked_path("out", base)))
    allowed = "a file name in an existing folder"
    if not text or text.endswith(("/", os.sep)) or os.path.isdir(text):
        refuse("out", text, allowed, "give a name without an ending, such as card")
    paths = Path(f"{text}.html"), Path(f"{text}.md")
    for path in paths:
        try:
            refuse_taken(path, overwrite)
        except Refusal as error:
            raise error.renamed("out") from None
        if not path.parent.is_dir():
            refuse("out", text, allowed, "make the folder first")
    return paths


def write(card: Card, page: Path, text: Path) -> None:
    """Writes a card as HTML and as Markdown: neither gets its name before both are complete."""
    with whole_file(page) as one, whole_file(text) as other:
        one.write_text(as_html(card), "utf-8", "replace")
        other.write_text(as_markdown(card), "utf-8", "replace")


def as_markdown(card: Card) -> str:
    """Returns a card in Markdown."""
    parts = [f"# {_plain(card.title)}", _plain(card.lead)]
    for section in card.sections:
        parts.append(f"## {_plain(section.title)}")
        parts += [_markdown(block) for block in section.blocks]
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _plain(block.text)
    if isinstance(block, Items):
        return "\n".join(f"* {_plain(text)}" for text in block.texts)
    if isinstance(block, Code):
        return f"```text\n{block.text}\n```"
    if isinstance(block, Table):
        lines = [block.heads, ("---",) * len(block.heads), *block.rows]
        listed = "\n".join(f"| {' | '.join(map(_plain, line))} |" for line in lines)
        return f"**{_plain(block.caption)}**\n\n{listed}"
    # Pictures are left out: the tables hold the same numbers.
    return ""


def _plain(text: str) -> str:
    """Escapes what Markdown would take for something else."""
    one_line = " ".join(text.split())
    return re.sub(r"([|<>*_`\\])", r"\\\1", one_line)


def as_html(card: Card) -> str:
    """Returns a card as one page that makes no request."""
    parts = [
        (f"s{i}", section.title, "".join(map(_html, section.blocks)))
        for i, section in enumerate(card.sections)
    ]
    return framed(card.title, card.lead, parts, style=_STYLE)


_STYLE = """\
tbody th, thead th:first-child, thead .row { text-align: left; }
.scatter { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr));
  gap: 0.8rem; max-width: 56rem; }
.scatter svg { width: 100%; max-width: 24rem; height: auto; }
.scatter text { fill: var(--soft); font-size: 9px; }
.scatter .title, .scatter .name { fill: var(--ink); font-size: 10px; }
.scatter .frame { fill: none; stroke: var(--line); }
.scatter .other { fill: none; stroke: var(--soft); }
.scatter .mine { fill: var(--focus); stroke: var(--paper); }
"""


def _html(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"<p{' class=note' * block.small}>{_e(block.text)}</p>\n"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_e(text)}</li>' for text in block.texts)}</ul>\n"
    if isinstance(block, Code):
        return f'<pre tabindex="0"><code>{_e(block.text)}</code></pre>\n'
    if isinstance(block, Table):
        return _table(block)
    panels = "".join(_panel(title, points, block.marked) for title, points in block.panels)
    return (
        f'<figure><div class="scatter">{panels}</div>'
        f"<figcaption>{_e(block.caption)}</figcaption></figure>\n"
    )


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{" class=row" * (place < table.first)}>{_e(name)}</th>'
        for place, name in enumerate(table.heads)
    )
    body = []
    for row in table.rows:
        cells = [f'<th scope="row">{_e(cell)}</th>' for cell in row[: table.first]]
        cells += [f"<td>{_e(cell)}</td>" for cell in row[table.first :]]
        body.append(f"<tr>{''.join(cells)}</tr>")
    label = _e(table.caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f"<table{' class=words' * table.words}><caption>{label}</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>" + "\n".join(body) + "</tbody></table></div>\n"
    )


# Of a panel: its size, and the frame's edges.
_WIDTH, _HEIGHT = 260, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 252, 18, 172


def _panel(title: str, points: Mapping[str, tuple[float, float]], marked: str) -> str:
    """Draws one panel as SVG: logarithmic axes, those without links at the left edge."""
    links = [x for x, _ in points.values() if x > 0.0]
    regret = [y for _, y in points.values() if y > 0.0]
    across, up = _ends(links), _ends(regret)

    def place(x: float, y: float) -> tuple[float, float]:
        # Points without links stand at the edge: a logarithmic axis has no 0.
        share = _share(x, across) if x > 0.0 else 0.0
        high = _share(y, up) if y > 0.0 else 0.0
        return _LEFT + 8 + share * (_RIGHT - _LEFT - 16), _BOTTOM - 6 - high * (_BOTTOM - _TOP - 12)

    parts = [
        f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_RIGHT - _LEFT}" '
        f'height="{_BOTTOM - _TOP}"/>',
        f'<text class="title" x="{_LEFT}" y="12">{_e(title)}</text>',
    ]
    for value in _ticks(across) if links else ():
        x, _ = place(value, 0.0)
        parts.append(
            f'<text x="{x:.1f}" y="{_BOTTOM + 11}" text-anchor="middle">{written(value)}</text>'
        )
    for value in _ticks(up):
        _, y = place(0.0, value)
        parts.append(
            f'<text x="{_LEFT - 3}" y="{y + 3:.1f}" text-anchor="end">{written(value)}</text>'
        )
    parts.append(f'<text x="{_RIGHT}" y="{_HEIGHT - 3}" text-anchor="end">links at T</text>')
    parts.append(f'<text x="{_LEFT - 40}" y="{_HEIGHT - 3}">↑ regret at T</text>')
    best = min(points, key=lambda label: points[label][1])
    # The card's own algorithm is drawn last, above the others.
    for label in sorted(points, key=lambda label: label == marked):
        x, y = place(*points[label])
        mine = label == marked
        told = f"{label}: {points[label][0]:,.0f} links, regret {points[label][1]:,.0f}"
        kind, size = ("mine", 5) if mine else ("other", 3)
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}">'
            f"<title>{_e(told)}</title></circle>"
        )
        if label == best:
            side = ("end", -7) if x > (_LEFT + _RIGHT) / 2 else ("start", 7)
            parts.append(
                f'<text class="name" x="{x + side[1]:.1f}" y="{y + 3:.1f}" '
                f'text-anchor="{side[0]}">{_e(label)}</text>'
            )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_e(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """Returns the ends of an axis, as logarithms."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    return (low, high) if high - low > 0.5 else (low - 0.5, high + 0.5)


def _share(value: float, ends: tuple[float, float]) -> float:
    return (math.log10(value) - ends[0]) / (ends[1] - ends[0])


def _ticks(ends: tuple[float, float]) -> list[float]:
    """Returns the powers of ten on an axis, and where they are few, 2 and 5 times them as well."""
    powers = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
    inside = [
        [
            times * 10.0**power
            for power in powers
            for times in some
            if ends[0] <= math.log10(times * 10.0**power) <= ends[1]
        ]
        for some in ((1,), (1, 3), (1, 2, 5))
    ]
    return next((each for each in inside if len(each) > 2), inside[-1])
