"""A card in Markdown: texts, lists, tables, and parts of these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Section(NamedTuple):
    """A part of a card: texts in Markdown, as the functions of this file return them."""

    title: str
    blocks: Sequence[str]


class Card(NamedTuple):
    """A card, before it is written."""

    title: str
    lead: str
    sections: Sequence[Section]


def as_markdown(card: Card) -> str:
    """Returns the text of a card."""
    parts = [f"# {paragraph(card.title)}", paragraph(card.lead)]
    for section in card.sections:
        parts += [f"## {paragraph(section.title)}", *section.blocks]
    return "\n\n".join(parts) + "\n"


def paragraph(text: str) -> str:
    """Escapes letters that are markup."""
    return re.sub(r"([|<>*_`\\])", r"\\\1", " ".join(text.split()))


def items(texts: Sequence[str]) -> str:
    """Returns a list."""
    return "\n".join(f"* {paragraph(text)}" for text in texts)


def code(text: str) -> str:
    """Returns a text to be copied as it is."""
    return f"```text\n{text}\n```"


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of texts, below its caption."""
    lines = [heads, ("---",) * len(heads), *rows]
    listed = "\n".join(f"| {' | '.join(map(paragraph, line))} |" for line in lines)
    return f"**{paragraph(caption)}**\n\n{listed}"
