"""Writes the parts of a card as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def escape(text: str) -> str:
    """Escapes letters that are markup in Markdown."""
    return re.sub(r"([|<>*_`\\])", r"\\\1", " ".join(text.split()))


def write_items(texts: Iterable[str]) -> str:
    """Returns a list in Markdown."""
    return "\n".join(f"* {escape(text)}" for text in texts)


def write_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table of texts in Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    body = "\n".join(f"| {' | '.join(map(escape, line))} |" for line in lines)
    return f"**{escape(caption)}**\n\n{body}"


def write_section(title: str, blocks: Sequence[str]) -> str:
    """Returns a part of a card in Markdown: blocks below a title."""
    return "\n\n".join([f"## {escape(title)}", *filter(None, blocks)])
