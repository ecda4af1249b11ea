"""The parts of a self-contained HTML page: semantic, printable, readable without a network."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from string import Template

import pandas as pd

from fmab_jax import __version__
from fmab_jax.plots import style


def write_page(title: str, sections: Mapping[str, Iterable[str]]) -> str:
    """Returns a page of sections, each a list of blocks by its title; empty ones are left out."""
    files = resources.files("fmab_jax.reports")
    template, css = ((files / name).read_text("utf-8") for name in ("page.html", "report.css"))
    blocks = {name: "\n".join(parts) for name, parts in sections.items()}
    shown = [(f"part-{i}", name) for i, name in enumerate(blocks) if blocks[name]]
    return Template(template).substitute(
        title=escape(title),
        version=__version__,
        style=css,
        contents="".join(f'<li><a href="#{id}">{escape(name)}</a></li>' for id, name in shown),
        sections="\n".join(
            f'<section id="{id}" aria-labelledby="{id}-title"><h2 id="{id}-title">{escape(name)}'
            f"</h2>\n{blocks[name]}\n</section>"
            for id, name in shown
        ),
    )


def write_note(text: str) -> str:
    """Returns a paragraph beside the point."""
    return f'<p class="note">{escape(text)}</p>'


def write_list(lines: Iterable[str]) -> str:
    """Returns a list of sentences."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def write_facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Returns names and values."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs)
    return f'<dl class="settings">{"".join(rows)}</dl>'


def write_code(text: str, label: str) -> str:
    """Returns a text that is copied: a command, or a file."""
    return f'<pre tabindex="0" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'


def write_table(frame: pd.DataFrame, caption: str, *, is_prose: bool = False) -> str:
    """Returns a table of texts; prose is wrapped, and begins at the left."""
    if not len(frame):
        return ""
    with pd.option_context("display.max_colwidth", None):
        html = frame.to_html(index=False, border=0, classes="words" if is_prose else None)
    html = html.replace("<th>", '<th scope="col">')
    html = html.replace("<thead>", f"<caption>{escape(caption)}</caption>\n<thead>", 1)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"{html}</div>"
    )


def write_figure(figure: style.Figure, title: str) -> str:
    """Returns a figure as an image in the page, with its short and its whole caption."""
    image = base64.b64encode(style.write_svg(figure)).decode()
    short, long = style.read_caption(figure)
    name, whole = escape(title), escape(f"{title}. {long}")
    return (
        f'<figure><img src="data:image/svg+xml;base64,{image}" alt="{whole}"><figcaption>'
        f"<strong>{name}.</strong> {escape(' '.join(short))}</figcaption></figure>\n"
        f'<details class="note"><summary>The whole caption</summary><p>{whole}</p></details>'
    )
