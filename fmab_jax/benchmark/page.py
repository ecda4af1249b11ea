"""How a card is written: its blocks, as one HTML page and as Markdown."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fmab_jax.analysis.words import written
from fmab_jax.errors import refuse
from fmab_jax.files import checked_path, refuse_taken, whole_file
from fmab_jax.reports.frame import Table, rendered


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
    """A card, before it is written."""

    title: str  # its heading
    lead: str  # a sentence below it
    sections: tuple[Section, ...]  # in their order

    @property
    def ranks(self) -> Table:
        """The table of ranks, with which a card begins."""
        (found,) = (each for each in self.sections[0].blocks if isinstance(each, Table))
        return found


def checked_paths(base: str | os.PathLike[str], overwrite: bool) -> tuple[Path, Path]:
    """Returns where HTML and Markdown shall stand; a ValueError if they cannot stand there."""
    text = re.sub(r"\.(html|md)$", "", str(checked_path("out", base)))
    if not text or text.endswith(("/", os.sep)) or os.path.isdir(text):
        remedy = "give a name without an ending, such as card"
        refuse("out", text, "a file name in an existing folder", remedy)
    paths = Path(f"{text}.html"), Path(f"{text}.md")
    for path in paths:
        refuse_taken(path, overwrite, "out")
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
    sections = [
        (f"s{i}", section.title, [(type(block).__name__, block) for block in section.blocks])
        for i, section in enumerate(card.sections)
    ]
    edges = {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM}
    return rendered(
        "benchmark/card.html.j2", title=card.title, lead=card.lead, sections=sections,
        placed=_placed, width=_WIDTH, height=_HEIGHT, **edges,
    )  # fmt: skip


# Of a panel: its size, and the frame's edges.
_WIDTH, _HEIGHT = 260, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 252, 18, 172


def _placed(points: Mapping[str, tuple[float, float]], marked: str) -> dict[str, Any]:
    """Places what a panel shows: logarithmic axes, those without links at the left edge."""
    links = [x for x, _ in points.values() if x > 0.0]
    across, up = _ends(links), _ends(y for _, y in points.values() if y > 0.0)

    def place(x: float, y: float) -> tuple[float, float]:
        # Points without links stand at the edge: a logarithmic axis has no 0.
        share, high = _share(x, across), _share(y, up)
        return _LEFT + 8 + share * (_RIGHT - _LEFT - 16), _BOTTOM - 6 - high * (_BOTTOM - _TOP - 12)

    best = min(points, key=lambda label: points[label][1])
    # The card's own algorithm comes last, above the others.
    order = sorted(points, key=lambda label: label == marked)
    return {
        "across": [(place(each, 0.0)[0], written(each)) for each in _ticks(across) if links],
        "up": [(place(0.0, each)[1] + 3, written(each)) for each in _ticks(up)],
        "points": [(label, *points[label], *place(*points[label])) for label in order],
        "best": best,
    }


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """Returns the ends of an axis, as logarithms."""
    logs = [math.log10(value) for value in values] or [0.0]
    low, high = min(logs), max(logs)
    return (low, high) if high - low > 0.5 else (low - 0.5, high + 0.5)


def _share(value: float, ends: tuple[float, float]) -> float:
    return (math.log10(value) - ends[0]) / (ends[1] - ends[0]) if value > 0.0 else 0.0


def _ticks(ends: tuple[float, float]) -> list[float]:
    """Returns the powers of ten on an axis, and where they are few, 2 and 5 times them as well."""
    powers = range(math.floor(ends[0]), math.ceil(ends[1]) + 1)
    inside: list[float] = []
    for some in ((1,), (1, 3), (1, 2, 5)):
        every = [times * 10.0**power for power in powers for times in some]
        inside = [each for each in every if ends[0] <= math.log10(each) <= ends[1]]
        if len(inside) > 2:
            break
    return inside
