"""Sentences about what a figure shows: made from the numbers that are drawn, so that none is false.

Each function looks at numbers and says what they do. It never takes a rise, a fall or a sign for
granted: where the numbers do not show it, the sentence says what they show instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from fmab_jax.analysis.words import write_count

# A mean with the ends of its interval.
Point = tuple[float, float, float]


def rounded(value: float) -> str:
    """Writes a number without decimals."""
    return f"{value:,.0f}"


def course(points: Sequence[Point], write: Callable[[float], str] = rounded) -> str:
    """Says how means change from each point to the next.

    A rise is one at every step, from the first point to a last one whose interval lies above that
    of the first; a fall likewise. Anything else is only told by its smallest and largest mean.

    Args:
        points: In their order, with intervals.
        write: Writes a mean.

    Returns:
        Such as "rises from 5 to 9", "falls from 9 to 5", "lies between 5 and 9" or "is 5".
    """
    means = [mean for mean, _, _ in points]
    steps = [after - before for before, after in zip(means, means[1:], strict=False)]
    (_, first_low, first_high), (_, last_low, last_high) = points[0], points[-1]
    if steps and all(step > 0 for step in steps) and last_low > first_high:
        return f"rises from {write(means[0])} to {write(means[-1])}"
    if steps and all(step < 0 for step in steps) and last_high < first_low:
        return f"falls from {write(means[0])} to {write(means[-1])}"
    low, high = write(min(means)), write(max(means))
    return f"is {low}" if low == high else f"lies between {low} and {high}"


def tally(held: Iterable[bool], things: str) -> str:
    """Says of how many things something holds: "each of 5 lines", "3 of 5 lines", "none of 5"."""
    found = list(held)
    holds = sum(found)
    number = {len(found): "each", 0: "none"}.get(holds, write_count(holds))
    return f"{number} of {write_count(len(found))} {things}"


def sides(points: Iterable[Point], things: str = "differences") -> str:
    """Says at how many points the interval lies above 0, below 0, and on both sides of it."""
    found = list(points)
    above = sum(low > 0 for _, low, _ in found)
    below = sum(high < 0 for _, _, high in found)
    return (
        f"Of {write_count(len(found))} {things}, the interval lies above 0 in "
        f"{write_count(above)} and below 0 "
        f"in {write_count(below)}"
    )


def percent(value: float, of: float) -> str:
    """Writes a number in per cent of another, with its sign."""
    share = 100 * value / of
    if not share:
        return "0 %"
    return f"{share:+.2g} %" if abs(share) < 100 else f"{share:+,.0f} %"


def most(values: Iterable[tuple[float, float]]) -> str:
    """Says how large some numbers are, at most, in per cent of what each belongs to."""
    share = no_less(max(100 * abs(value) / of for value, of in values))
    return f"at most {share:.2g} %" if share < 100 else f"at most {share:,.0f} %"


def no_less(value: float, digits: int = 2) -> float:
    """Rounds up to so many significant digits: a bound is not rounded down."""
    if not value:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    # What is a multiple of the unit but for rounding is one.
    return math.ceil(value / unit * (1 - 1e-12)) * unit


def listed(words: Iterable[str]) -> str:
    """Joins words: "a", "a and b", "a, b and c"."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def grouped(said: Mapping[str, str]) -> str:
    """Joins what is said of several names, those with the same words together.

    Args:
        said: What is said, by name.

    Returns:
        Such as "5 (a and b), 9 (c)".
    """
    found: dict[str, list[str]] = {}
    for name, words in said.items():
        found.setdefault(words, []).append(name)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{words} ({listed(names)})" for words, names in found.items())


def absent(wanted: Iterable[str], present: Iterable[str]) -> list[str]:
    """Names what takes part in the full experiment and is not drawn; nothing where all is."""
    there = set(present)
    missing = [name for name in wanted if name not in there]
    return [f"Not run, and so not shown: {listed(missing)}"] if missing else []
