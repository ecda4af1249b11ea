"""Validation shared by every room: one line that names field, value, allowed range and remedy."""

from __future__ import annotations

import math
import numbers
from pathlib import Path
from typing import Any, NoReturn

import numpy as np


class Refusal(ValueError):
    """Bad input, said in one line; the command line ends in it with status 2."""


class Damaged(Exception):
    """A chunk of a store is not what its manifest line says.

    Attributes:
        path: The file.
        reason: What is wrong with it, in a few words.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def refuse(field: str, value: Any, allowed: str, remedy: str) -> NoReturn:
    """Raises the one-line `Refusal` that every bad input ends in.

    Args:
        field: The argument's public name.
        value: What was given; long values are cut.
        allowed: The allowed range, completing "must be ...".
        remedy: What to do instead, in a few words.

    Raises:
        Refusal: Always.
    """
    try:
        shown = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        shown = f"<{type(value).__name__} too long to print>"
    if len(shown) > 80:
        shown = shown[:77] + "..."
    raise Refusal(f"{field}={shown}: must be {allowed}; {remedy}")


def count(field: str, value: Any, low: int, high: int, remedy: str) -> int:
    """Returns ``value`` as a Python int, refusing all but whole numbers in [low, high].

    An integral float such as ``1e6`` is a whole number; a bool or a string is not.

    Raises:
        ValueError: If the value is not a whole number in the range.
    """
    allowed = f"a whole number in [{low:,}, {high:,}]"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        refuse(field, value, allowed, remedy)
    # Through int, not float: an integer past 2^53 keeps its last digits.
    whole = int(value) if -math.inf < value < math.inf else low - 1  # type: ignore[call-overload, operator]
    if whole != value or not low <= whole <= high:
        refuse(field, value, allowed, remedy)
    return int(whole)


def real(
    field: str,
    value: Any,
    low: float,
    high: float,
    remedy: str,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Returns ``value`` as a float inside the range; NaN is outside every range.

    Raises:
        ValueError: If the value is not a real number in the range.
    """
    allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        refuse(field, value, allowed, remedy)
    try:
        # A float32 means the decimal number it prints, as 0.07 does, not its binary neighbour.
        number = float(str(value)) if isinstance(value, np.floating) else float(value)
    except OverflowError:  # an int or a fraction beyond all floats
        refuse(field, value, allowed, remedy)
    # Written so that NaN fails every comparison.
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        refuse(field, value, allowed, remedy)
    return number
