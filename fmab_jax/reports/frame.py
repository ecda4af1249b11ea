"""The frame of a page that makes no request: head, contents, sections and footer."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources

from fmab_jax import __version__


def escaped(text: str) -> str:
    """Escapes a text; a number keeps its per cent sign."""
    return html.escape(text, quote=True).replace(" %", "\N{NO-BREAK SPACE}%")


def own(name: str) -> str:
    """Returns a file of this room."""
    return (resources.files("fmab_jax.reports") / name).read_text("utf-8")


def framed(
    title: str,
    lead: str,
    parts: Sequence[tuple[str, str, str]],
    *,
    allowed: str = "style-src 'unsafe-inline'; ",
    style: str = "",
    before: str = "",
    footer: str = "",
    after: str = "",
) -> str:
    """Returns a page as text.

    Args:
        title: Its heading.
        lead: A sentence below it.
        parts: Key, heading and HTML of each section; keys are in the links to them.
        allowed: What the page's security policy allows, each with "; " after it.
        style: CSS after that of all pages.
        before: HTML above the sections.
        footer: A sentence in HTML after the usual ones.
        after: HTML after the footer, such as scripts.
    """
    nav = "".join(f'<li><a href="#{key}">{escaped(name)}</a></li>' for key, name, _ in parts)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-title">'
        f'<h2 id="{key}-title">{escaped(name)}</h2>\n{text}</section>'
        for key, name, text in parts
    )
    policy = f"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="fmab_jax {escaped(__version__)}">
<meta name="color-scheme" content="light dark">
<title>{escaped(title)}</title>
<style>
{own("report.css")}{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header>
<h1>{escaped(title)}</h1>
<p class="lead">{escaped(lead)}</p>
<nav aria-label="Contents"><ul>{nav}</ul></nav>
</header>
<main id="main" tabindex="-1">
{before}{body}
</main>
<footer><p>Written by fmab_jax {escaped(__version__)}. This file makes no request to any network.
{footer}</p></footer>
{after}</body>
</html>
"""
