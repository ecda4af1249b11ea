"""Writes a card as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fmab_jax.files import whole_file


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


Block = Paragraph | Items | Code | Table


class Section(NamedTuple):
    """A part of a card."""

    title: str
    blocks: Sequence[Block]


class Card(NamedTuple):
    """A card, before it is written."""

    title: str
    lead: str
    sections: Sequence[Section]


def write(card: Card, path: Path) -> None:
    """Writes a card as Markdown; it gets its name when it is complete."""
    with whole_file(path) as temporary:
        temporary.write_text(as_markdown(card), "utf-8", "replace")


def as_markdown(card: Card) -> str:
    """Returns a card in Markdown."""
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


def _plain(text: str) -> str:
    """Escapes letters that are markup in Markdown."""
    return re.sub(r"([|<>*_`\\])", r"\\\1", " ".join(text.split()))
