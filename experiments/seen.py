"""Parts of sentences about figures, made from the numbers that are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def percent(value: float, of: float) -> str:
    """Writes a number in per cent of another, with its sign."""
    share = 100 * value / of
    if not share:
        return "0 %"
    return f"{share:+.2g} %" if abs(share) < 100 else f"{share:+,.0f} %"


def listed(words: Iterable[str]) -> str:
    """Joins words: "a", "a and b", "a, b and c"."""
    *head, last = words
    return f"{', '.join(head)} and {last}" if head else last


def grouped(texts: Mapping[str, str]) -> str:
    """Joins what is said of names, those with the same words together: "5 (a and b), 9 (c)"."""
    groups: dict[str, list[str]] = {}
    for name, words in texts.items():
        groups.setdefault(words, []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    return ", ".join(f"{words} ({listed(names)})" for words, names in groups.items())


def absent(expected: Iterable[str], present: Iterable[str]) -> list[str]:
    """Names what takes part in the full experiment and is not drawn; nothing where all is."""
    drawn_names = set(present)
    missing = [name for name in expected if name not in drawn_names]
    return [f"Not run, and so not shown: {listed(missing)}"] if missing else []
