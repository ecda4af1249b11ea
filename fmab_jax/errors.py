"""Validation shared by every folder: a refusal says field, value, allowed range and remedy."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import os
import re
import reprlib
import sys
import traceback
from collections.abc import Callable, Iterable, Sized
from pathlib import Path
from typing import NoReturn, TypeGuard

import numpy as np

# Characters of a value that a refusal shows.
_MAX_CHARACTERS = 80
# Products with agents, links or slots stay far below infinity.
_MAX_VALUE = 1e100
_NUMBER = re.compile(
    r"[+-]?(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.I | re.A
)


class _ShortRepr(reprlib.Repr):
    """Prints NumPy's numbers as Python's, also in containers."""

    def repr_instance(self, x: object, level: int) -> str:
        if isinstance(x, (np.number, np.bool_)):
            return str(x)
        return super().repr_instance(x, level)


_REPR = _ShortRepr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 4 * _MAX_CHARACTERS
_REPR.maxlevel = 2
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = _REPR.maxset = 30


class PlainText(str):
    """A text that a refusal prints unchanged: without quotes and not cut."""

    def __repr__(self) -> str:
        return str(self)


class Refusal(ValueError):
    """An error of bad input, in one line; the command line exits with status 2.

    Attributes:
        field: Public name of the refused argument; "" for a line of prose.
        value: The refused value, as printed.
        allowed: The allowed range, completing "must be ...".
        remedy: What to do instead, in a few words.
    """

    def __init__(self, field: str, value: object, allowed: str, remedy: str) -> None:
        """Stores the parts; a long value is cut."""
        self.field, self.value = field, abbreviate(value)
        self.allowed, self.remedy = allowed, remedy
        # Copying and pickling pass these arguments to __init__.
        super().__init__(field, PlainText(self.value), allowed, remedy)

    def __str__(self) -> str:
        if not self.field:
            return self.allowed
        return f"{self.field}={self.value}: must be {self.allowed}; {self.remedy}"

    @classmethod
    def line(cls, text: str) -> Refusal:
        """Makes a refusal of a complete line; it has no field."""
        return Refusal("", PlainText(""), text, "")

    def renamed(self, field: str) -> Refusal:
        """Returns the same refusal with another field, such as a part of a value."""
        if not self.field:
            return self
        return Refusal(field, PlainText(self.value), self.allowed, self.remedy)


class Busy(Refusal):
    """Another process holds the lock of this writer.

    Attributes:
        writer: Name of the writer.
    """

    def __init__(self, folder: str, writer: str, remedy: str) -> None:
        """Names the store and the holder of the lock.

        Args:
            folder: The store.
            writer: The name under which nobody else may write.
            remedy: Who holds it and what to do.
        """
        super().__init__("store", folder, f"written by nobody else as {writer!r}", remedy)
        self.args = (folder, writer, remedy)
        self.writer = writer


class Damaged(Exception):
    """A chunk of a store does not match its manifest line.

    Attributes:
        path: The file.
        reason: What is wrong with it, in a few words.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def refuse(field: str, value: object, allowed: str, remedy: str) -> NoReturn:
    """Raises the one-line `Refusal` that every bad input ends in.

    Args:
        field: The argument's public name.
        value: The refused value; long values are cut.
        allowed: The allowed range, completing "must be ...".
        remedy: What to do instead, in a few words.

    Raises:
        Refusal: Always.
    """
    raise Refusal(field, value, allowed, remedy)


def count(field: str, value: object, low: int, high: int, remedy: str) -> int:
    """Returns ``value`` as a Python int, refusing all but whole numbers in [low, high].

    An integral float such as ``1e6`` is a whole number; a bool or a string is not.

    Raises:
        Refusal: If the value is not a whole number in the range.
    """
    allowed = f"a whole number in [{low:,}, {high:,}]"
    if not _is_real(value):
        refuse(field, value, allowed, remedy)
    try:
        fits = bool(low <= value <= high and value == int(value))
    except Exception:  # a user's number type may raise anything
        fits = False
    if not fits:
        refuse(field, value, allowed, remedy)
    # A float would lose the last digits above 2^53.
    return int(value)


def real(
    field: str,
    value: object,
    low: float,
    high: float,
    remedy: str,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Returns ``value`` as a float inside the range; NaN is outside every range.

    Raises:
        Refusal: If the value is not a real number in the range.
    """
    allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if not _is_real(value):
        refuse(field, value, allowed, remedy)
    try:
        # A float32 is read as the decimal number it prints, such as 0.07.
        number = float(str(value)) if isinstance(value, np.floating) else float(value)
        # A number too small for a float would become 0.
        low = math.inf if number == 0 and value != 0 else low
    except Exception:  # beyond all floats, or a user's number type
        refuse(field, value, allowed, remedy)
    # NaN fails every comparison.
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        refuse(field, value, allowed, remedy)
    return number


def array_of(field: str, value: object, most: int, allowed: str, remedy: str) -> np.ndarray:
    """Returns real numbers as an array of integers or floats, from any container.

    Texts, truth values, durations, complex numbers and masked entries are refused. Too many entries
    are refused before they are copied.

    Args:
        field: The argument's public name.
        value: A number, lists or tuples of numbers, a range, an array.
        most: Largest number of entries.
        allowed: Completes "must be ...".
        remedy: What to do instead.

    Raises:
        Refusal: If it holds anything else, too much, or rows of different lengths.
    """
    entries, item = 1, value
    while isinstance(item, (list, tuple, range)) and entries:
        entries *= length(item)
        if entries > most:  # before NumPy copies nested lists
            refuse(field, value, allowed, remedy)
        item = item[0] if entries else None
    try:
        array = np.asarray(value)
        # NumPy reads truth values beside numbers as 0 and 1.
        items = np.asarray(value, object).ravel() if isinstance(value, (list, tuple)) else ()
    except Exception:  # rows of different lengths, or a user's array type
        refuse(field, value, allowed, remedy)
    mixed = any(isinstance(item, (bool, np.bool_)) for item in items)
    if array.dtype.kind not in "iuf" or array.size > most or mixed or np.ma.is_masked(value):
        refuse(field, value, allowed, remedy)
    return array


def length(value: Sized) -> int:
    """Returns ``len(value)``, or ``sys.maxsize`` for a longer range."""
    try:
        return len(value)
    except OverflowError:
        return sys.maxsize


def did_you_mean(
    word: object, options: Iterable[str], default: str, form: Callable[[str], str] = repr
) -> str:
    """Returns the remedy for an unknown word: the most similar option.

    Args:
        word: The unknown word.
        options: The valid words.
        default: The remedy if no option is similar.
        form: Formats the option.
    """
    matches = difflib.get_close_matches(word[:40], options, n=1) if isinstance(word, str) else []
    return f"did you mean {form(matches[0])}?" if matches else default


def choice(
    field: str, value: object, options: Iterable[str], remedy: str, allowed: str | None = None
) -> str:
    """Returns ``value`` if it is one of the texts ``options``; ``allowed`` may describe them.

    Raises:
        Refusal: If it is another text, or no text.
    """
    texts = list(options)
    if not isinstance(value, str) or value not in texts:
        refuse(field, value, allowed or " or ".join(map(repr, texts)), remedy)
    return value


def flag(field: str, value: object, remedy: str = "leave it out") -> bool:
    """Returns ``value`` if it is True or False; 0 and 1 are refused.

    Raises:
        Refusal: If it is anything else.
    """
    if not isinstance(value, bool):
        refuse(field, value, "True or False", remedy)
    return value


def privacy(field: str, value: object) -> float:
    """Returns a privacy parameter in (0, 1e100]; None and infinity, no noise, as infinity.

    The bound keeps N epsilon, the leak of a message, finite for every N.

    Raises:
        Refusal: If the value is neither.
    """
    if value is None or (isinstance(value, (float, np.floating)) and value == math.inf):
        return math.inf
    remedy = "give a privacy parameter, or None for no noise"
    return real(field, value, 0.0, _MAX_VALUE, remedy, open_low=True)


def price(field: str, value: object) -> float:
    """Returns the price of a link, in [0, 1e100]; the bound keeps every cost finite.

    Raises:
        Refusal: If it is out of range.
    """
    return real(field, value, 0.0, _MAX_VALUE, "give the price of one link")


def parse_number(text: str) -> int | float | None:
    """Reads a number as people write it: ASCII digits, a point, an exponent; or inf, nan.

    Returns:
        An int for a whole number that is written digit by digit, and for one below 2^53 however
        it is written (1e6); else a float. None for any other text, and for a number that a float
        would round to infinity or zero.
    """
    match = _NUMBER.fullmatch(text)
    if not match:
        return None
    number, digits = float(text), match["digits"]
    if digits is None:
        return number
    if text.lstrip("+-").isdecimal() and len(text) < 4000:  # Python refuses longer ones
        return int(text)
    if math.isinf(number) or (number == 0 and digits.strip("0.")):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def check_frozen_class(owner: type, plugin: str) -> None:
    """Refuses a class that is not a frozen dataclass, or lacks an abstract function.

    A base class marks such functions with `abc.abstractmethod`.

    Args:
        owner: The class.
        plugin: Its plug-in or name.

    Raises:
        Refusal: If it is not whole.
    """
    # A parent's decorator does not cover fields of this class.
    if not getattr(vars(owner).get("__dataclass_params__"), "frozen", False):
        refuse(owner.__name__, plugin, "a frozen dataclass", "put @dataclass(frozen=True) above it")
    for name in dir(owner):
        function = getattr(owner, name, None)
        if getattr(function, "__isabstractmethod__", False):
            summary = (inspect.getdoc(function) or "").partition("\n")[0]
            remedy = f"define {owner.__name__}.{name}: {summary}"
            refuse(owner.__name__, plugin, f"a class that states {name}", remedy)


def is_user_error(error: BaseException) -> bool:
    """Returns whether an error may come from a user's code, and does not end this process.

    A plug-in that calls ``sys.exit`` must not end a command with success. Ctrl-C and this package's
    own exits are not user errors.
    """
    if isinstance(error, Exception):
        return True
    package = type(error).__module__.partition(".")[0]
    ends = isinstance(error, (KeyboardInterrupt, GeneratorExit))
    return not ends and package not in (__name__.partition(".")[0], "asyncio")


def describe_error(error: BaseException, most: int = 120) -> str:
    """Returns an error's type and message in one short line."""
    # The message of a KeyError is the key alone.
    text = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    line = " ".join(f"{type(error).__name__}: {text}".split())
    return line if len(line) <= most else line[: most - 3] + "..."


def locate_error(error: BaseException) -> str:
    """Returns where in a user's code an error arose, such as ", line 12 of mine.py"; or "".

    The innermost frame that is neither the package's nor an installed library's.
    """
    site_packages = os.path.dirname(os.path.dirname(np.__file__))
    libraries = (os.path.dirname(__file__), os.path.dirname(os.__file__), site_packages, "<")
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(libraries):
            place = f", line {line} of {os.path.basename(file)[:40]}"
    return place


def format_quantity(number: int, noun: str) -> str:
    """Formats a number with its noun: "1 link", "1,200 links"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _is_real(value: object) -> TypeGuard[float]:
    # NumPy counts durations among the whole numbers.
    is_excluded = isinstance(value, (bool, np.bool_, np.timedelta64))
    return isinstance(value, numbers.Real) and not is_excluded


def abbreviate(value: object) -> str:
    """Returns one short line for any value, at a cost that does not grow with it."""
    try:
        shown = str(value) if isinstance(value, PlainText) else _REPR.repr(value)
        text = " ".join(shown.split())
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        text = f"<{type(value).__name__} too long to print>"
    if isinstance(value, PlainText) or len(text) <= _MAX_CHARACTERS:
        return text
    return text[: _MAX_CHARACTERS - 3] + "..."
