"""Writes a card: its blocks, as one HTML page that makes no request, and as Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from fmab_jax.analysis.words import write_number
from fmab_jax.files import whole_file

Points = Mapping[str, tuple[float, float]]
"""Mean links and mean regret by label."""


class Paragraph(NamedTuple):
    """A paragraph."""

    text: str


class Items(NamedTuple):
    """A list."""

    texts: Sequence[str]


class Code(NamedTuple):
    """A text to be copied as it is."""

    text: str


class Table(NamedTuple):
    """A table of texts."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Scatter(NamedTuple):
    """Regret against links, a panel for each title; the circle of ``marked`` is filled."""

    caption: str
    panels: Sequence[tuple[str, Points]]
    marked: str


Block = Paragraph | Items | Code | Table | Scatter


class Section(NamedTuple):
    """A part of a card."""

    title: str
    blocks: Sequence[Block]


class Card(NamedTuple):
    """A card, before it is written."""

    title: str
    lead: str
    sections: Sequence[Section]


def write(card: Card, page: Path, text: Path) -> None:
    """Writes a card as HTML and as Markdown: neither gets its name before both are complete."""
    with whole_file(page) as first, whole_file(text) as second:
        first.write_text(as_html(card), "utf-8", "replace")
        second.write_text(as_markdown(card), "utf-8", "replace")


def as_markdown(card: Card) -> str:
    """Returns a card in Markdown, without its pictures: the tables hold the same numbers."""
    parts = [f"# {_plain(card.title)}", _plain(card.lead)]
    for section in card.sections:
        parts += [f"## {_plain(section.title)}", *map(markdown_of, section.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_of(block: Block) -> str:
    """Returns a block in Markdown."""
    match block:
        case Paragraph(text):
            return _plain(text)
        case Items(texts):
            return "\n".join(f"* {_plain(text)}" for text in texts)
        case Code(text):
            return f"```text\n{text}\n```"
        case Table(caption, heads, rows):
            lines = [heads, ("---",) * len(heads), *rows]
            listed = "\n".join(f"| {' | '.join(map(_plain, line))} |" for line in lines)
            return f"**{_plain(caption)}**\n\n{listed}"
    return ""


def _plain(text: str) -> str:
    """Escapes letters that are markup in Markdown."""
    return re.sub(r"([|<>*_`\\])", r"\\\1", " ".join(text.split()))


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; --soft: #777; --line: #8884; --mark: #d95f02; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 1rem auto }}
.wide {{ overflow-x: auto }} table {{ border-collapse: collapse; font-size: 0.85rem }}
caption {{ text-align: left; font-weight: bold }} pre {{ overflow-x: auto }}
th, td {{ text-align: left; padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--line) }}
svg {{ width: 100%; max-width: 36rem }} svg text {{ fill: currentColor; font-size: 9px }}
svg .other, svg rect {{ fill: none; stroke: var(--soft) }} svg line {{ stroke: var(--line) }}
svg .marked {{ fill: var(--mark) }}
</style></head><body>
<h1>{title}</h1>
<p>{lead}</p>
{body}
</body></html>
"""


def as_html(card: Card) -> str:
    """Returns a card as one page."""
    body = "\n".join(
        f"<h2>{escape(section.title)}</h2>\n" + "\n".join(map(_html_of, section.blocks))
        for section in card.sections
    )
    return _PAGE.format(title=escape(card.title), lead=escape(card.lead), body=body)


def _html_of(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Items(texts):
            return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
        case Code(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Table(caption, heads, rows):
            lines = [_row(heads, "th"), *(_row(row, "td") for row in rows)]
            table = f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"
            return f'<div class="wide">{table}</div>'
        case Scatter(caption, panels, marked):
            drawn = "\n".join(_panel(title, points, marked) for title, points in panels)
            return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>\n"


# Edges of a panel's frame, where names begin, and the height of a name.
_LEFT, _RIGHT, _TOP, _NAMES, _LINE = 42, 260, 18, 280, 11


def _panel(title: str, points: Points, marked: str) -> str:
    """Draws a panel: logarithmic axes, a circle for each label, the names beside the frame."""
    bottom = _TOP + max(150, _LINE * len(points))
    across = _ends(links for links, _ in points.values())
    up = _ends(regret for _, regret in points.values())

    def place(links: float, regret: float) -> tuple[float, float]:
        # A logarithmic axis has no 0: circles without links stand at the left edge.
        x = _LEFT + 8 + _share(links, across) * (_RIGHT - _LEFT - 16)
        return x, bottom - 6 - _share(regret, up) * (bottom - _TOP - 12)

    parts = [f'<text x="{_LEFT}" y="12">{escape(title)}</text>']
    parts.append(
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_RIGHT - _LEFT}" height="{bottom - _TOP}"/>'
    )
    for tick in _ticks(across) if any(links for links, _ in points.values()) else ():
        x = place(tick, 0.0)[0]
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 11}" text-anchor="middle">{write_number(tick)}</text>'
        )
    for tick in _ticks(up):
        y = place(0.0, tick)[1] + 3
        parts.append(
            f'<text x="{_LEFT - 3}" y="{y:.1f}" text-anchor="end">{write_number(tick)}</text>'
        )
    parts.append(
        f'<text x="{_RIGHT}" y="{bottom + 24}" text-anchor="end">links at T</text>'
        f'<text x="2" y="{bottom + 24}">↑ regret at T</text>'
    )
    places = {label: place(*point) for label, point in points.items()}
    order = sorted(places, key=lambda label: places[label][1])
    heights = _spread([places[label][1] for label in order], bottom)
    for label, height in zip(order, heights, strict=True):
        x, y = places[label]
        links, regret = points[label]
        kind, size = ("marked", 5) if label == marked else ("other", 3)
        name = escape(label)
        parts.append(
            f'<line x1="{x + size:.1f}" y1="{y:.1f}" x2="{_NAMES - 2}" y2="{height:.1f}"/>'
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}">'
            f"<title>{name}: {links:,.0f} links, regret {regret:,.0f}</title></circle>"
            f'<text class="name" x="{_NAMES}" y="{height + 3:.1f}">{name}</text>'
        )
    inside = "".join(parts)
    return f'<svg viewBox="0 0 540 {bottom + 28}" role="img">{inside}</svg>'


def _spread(heights: Sequence[float], bottom: float) -> list[float]:
    """Moves ascending heights apart by a line, and none below the bottom."""
    spread: list[float] = []
    for height in heights:
        spread.append(max([height, *(low + _LINE for low in spread[-1:])]))
    for i in reversed(range(len(spread))):
        limit = spread[i + 1] - _LINE if i + 1 < len(spread) else bottom
        spread[i] = min(spread[i], limit)
    return spread


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """Returns the ends of an axis, as logarithms."""
    logs = [math.log10(value) for value in values if value > 0.0] or [0.0]
    low, high = min(logs), max(logs)
    return (low, high) if high - low > 0.5 else (low - 0.5, high + 0.5)


def _share(value: float, ends: tuple[float, float]) -> float:
    return (math.log10(value) - ends[0]) / (ends[1] - ends[0]) if value > 0.0 else 0.0


def _ticks(ends: tuple[float, float]) -> list[float]:
    """Returns the powers of ten on an axis, and 2 and 5 times them if they are few."""
    powers = [10.0**power for power in range(math.floor(ends[0]), math.ceil(ends[1]) + 1)]
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [factor * power for power in powers for factor in factors]
        ticks = [tick for tick in ticks if ends[0] <= math.log10(tick) <= ends[1]]
        if len(ticks) > 2:
            break
    return ticks
