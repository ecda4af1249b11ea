"""Validation shared by every room: a refusal says field, value, allowed range and remedy."""

from __future__ import annotations

import datetime
import difflib
import functools
import inspect
import json
import math
import numbers
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

# Characters of a value that a refusal shows.
_SHOWN = 80
# Items of containers that are looked at for it: more than can be shown.
_ITEMS = 100
# Lists in lists, one more than any argument has: then the shape is refused, not the nesting.
_DEPTH = 3
# Of what is multiplied: by agents, links or slots it stays far from infinity.
_MOST = 1e100
_NUMBER = re.compile(
    r"[+-]?(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.I | re.A
)

_COMMAS = re.compile(r"[+-]?[0-9.]*(,[0-9.]+)+(e[+-]?[0-9]+)?", re.I | re.A)


class Shown(str):
    """A text that a refusal prints as it is: without quotes, and not cut again.

    Attributes:
        typed: The same as people type it, without Python's quotes.
        toml: The same as a study file states it.
    """

    typed: str
    toml: str

    def __new__(cls, text: str, typed: str | None = None, toml: str | None = None) -> Shown:
        """Keeps all forms; the others are the text itself by default."""
        made = super().__new__(cls, text)
        made.typed = str(text) if typed is None else typed
        made.toml = str(text) if toml is None else toml
        return made

    def __repr__(self) -> str:
        return str(self)


class Spelling(NamedTuple):
    """How a door writes what the marks of a refusal stand for.

    Attributes:
        setting: Writes an argument with its value, such as ``epsilon=None``.
        value: Writes a value, such as ``None``.
        help: Writes where the help of a public name is, such as ``help(fmab_jax.ucb1)``.
    """

    setting: Callable[[str, Any], str]
    value: Callable[[Any], str]
    help: Callable[[str], str]


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        items = (f"{_toml_key(str(name))} = {_toml(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (str, bool)) or value is None:
        return json.dumps("none" if value is None else value, ensure_ascii=False)
    return repr(value)


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


PYTHON = Spelling("{}={!r}".format, repr, "help({})".format)
TOML = Spelling(
    lambda name, value: f"{name} = {_toml(value)}",
    _toml,
    lambda name: f"fmab sweep {name.removeprefix('fmab_jax.')} --help",
)
"""How a study file writes what a refusal tells to state."""


def setting(**given: Any) -> str:
    """Marks an argument with its value in a refusal's text, such as ``setting(epsilon=None)``."""
    return _mark(given)


def literal(value: Any) -> str:
    """Marks a value in a refusal's text, such as ``literal(None)``."""
    return _mark([value])


def help_of(name: str) -> str:
    """Marks where help is in a refusal's text, by the public name that has it."""
    return _mark(name)


def in_python(text: str) -> str:
    """Marks what a refusal's text says in Python only, such as that an object will do."""
    return _mark([text, "Python"])


def _mark(what: Any) -> str:
    return f"\x02{json.dumps(what, default=repr)}\x03"


NONE = literal(None)
"""None in a refusal's text."""
EITHER = f"{literal(True)} or {literal(False)}"
"""The values of a flag."""


class Refusal(ValueError):
    """Bad input, said in one line; the command line ends in it with status 2.

    Attributes:
        field: The public name of what was refused; "" for a line of prose.
        value: What was given, as it is shown.
        marked: The allowed range and the remedy with their marks, from which lines are made.
    """

    def __init__(self, field: str, value: Any, allowed: str, remedy: str) -> None:
        """Keeps the parts; the line is made of them when it is asked for.

        Args:
            field: The public name.
            value: What was given; long values are cut.
            allowed: Completes "must be ...".
            remedy: What to do instead, in a few words.
        """
        said = _shown(value)
        # The arguments by which an exception is copied and pickled.
        super().__init__(field, said, allowed, remedy)
        self.field, self.value, self.marked = field, said, (allowed, remedy)

    @property
    def allowed(self) -> str:
        """The allowed range in Python's words, completing "must be ..."."""
        return spelt(self.marked[0], PYTHON)

    @property
    def remedy(self) -> str:
        """What to do instead, in Python's words."""
        return spelt(self.marked[1], PYTHON)

    def __str__(self) -> str:
        if not self.field:
            return self.allowed
        return f"{self.field}={self.value}: must be {self.allowed}; {self.remedy}"

    @classmethod
    def line(cls, text: str) -> Refusal:
        """Makes a refusal of a line that is already said; it has no field."""
        return Refusal("", Shown(""), text, "")

    @property
    def missing(self) -> bool:
        """Whether a value is refused for being left out; then there is none to show."""
        asked = self.value == "None" and self.marked[0].startswith("given with ")
        return asked or self.value == "<not given>"

    def renamed(self, field: str) -> Refusal:
        """Returns the same refusal of another field, such as of a part of what was given."""
        return Refusal(field, self.value, *self.marked) if self.field else self

    def spelt(self, spelling: Spelling) -> Refusal:
        """Returns the same refusal in the words of another door, such as a study file."""
        allowed, remedy = (spelt(each, spelling) for each in self.marked)
        return Refusal(self.field, self.value, allowed, remedy)

    def typed(self, option: str, spelling: Spelling = PYTHON) -> str:
        """Returns the line as the command line says it: ``--horizon 0: must be ...; ...``.

        Args:
            option: What stands in place of the field, such as "--horizon"; may be empty.
            spelling: The words of the command.
        """
        if not self.field:
            return str(self)
        allowed, remedy = (spelt(each, spelling) for each in self.marked)
        told = option if self.missing else f"{option} {self.value.typed}"
        return f"{told}: must be {allowed}; {remedy}".lstrip()


def spelt(text: str, spelling: Spelling) -> str:
    """Returns a refusal's text with each mark as a door writes it."""

    def written(mark: re.Match[str]) -> str:
        what = json.loads(mark[1])
        if isinstance(what, str):
            return spelling.help(what)
        if isinstance(what, list) and len(what) > 1:
            return str(what[0]) if spelling is PYTHON else ""
        if isinstance(what, list):
            return spelling.value(what[0])
        return ", ".join(spelling.setting(*each) for each in what.items())

    return re.sub("\x02(.*?)\x03", written, text)


class Busy(Refusal):
    """Somebody else is writing what only one may write.

    Attributes:
        writer: As what they write.
    """

    def __init__(self, folder: str, writer: str, remedy: str) -> None:
        """Says who is in the way.

        Args:
            folder: The store.
            writer: The name under which nobody else may write.
            remedy: Who holds it and what to do.
        """
        super().__init__("store", folder, f"written by nobody else as {writer!r}", remedy)
        self.args = (folder, writer, remedy)
        self.writer = writer


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
    raise Refusal(field, value, allowed, remedy)


def count(field: str, value: Any, low: int, high: int, remedy: str) -> int:
    """Returns ``value`` as a Python int, refusing all but whole numbers in [low, high].

    An integral float such as ``1e6`` is a whole number; a bool or a string is not.

    Raises:
        Refusal: If the value is not a whole number in the range.
    """
    allowed = f"a whole number in [{low:,}, {high:,}]"
    if not _is_real(value):
        refuse(field, value, allowed, _without_commas(value, remedy))
    try:
        # Through int, not float: an integer past 2^53 keeps its last digits.
        whole = int(value) if -math.inf < value < math.inf else low - 1
        fits = bool(whole == value and low <= whole <= high)
    except Exception:  # somebody's own number may raise anything
        fits = False
    if not fits:
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
        Refusal: If the value is not a real number in the range.
    """
    allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if not _is_real(value):
        refuse(field, value, allowed, _without_commas(value, remedy))
    try:
        # A float32 means the decimal number it prints, as 0.07 does, not its binary neighbour.
        number = float(str(value)) if isinstance(value, np.floating) else float(value)
        # A long double or a fraction beyond all floats is neither infinite nor zero.
        held = math.isinf(number) == bool(value in (math.inf, -math.inf))
        held = held and (number == 0) == bool(value == 0)
    except Exception:  # beyond all floats, or somebody's own number
        refuse(field, value, allowed, remedy)
    # Written so that NaN fails every comparison.
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below and held):
        refuse(field, value, allowed, remedy)
    return number


def array_of(field: str, value: Any, most: int, allowed: str, remedy: str) -> np.ndarray:
    """Returns real numbers as an array of integers or floats, whatever holds them.

    Nothing is read as a number that is none: texts, truth values, durations, complex numbers,
    masked entries. What is too large is refused before it is copied.

    Args:
        field: The argument's public name.
        value: A number, lists or tuples of numbers, a range, an array.
        most: Largest number of entries.
        allowed: Completes "must be ...".
        remedy: What to do instead.

    Raises:
        Refusal: If it holds anything else, too much, or rows of different lengths.
    """
    try:
        _spend(value, most)
        array = np.asarray(value)
    except Exception:  # what somebody's own array may raise, too
        refuse(field, value, allowed, remedy)
    if array.dtype.kind not in "iuf":
        # Empty lists have no type of their own; integers beyond 64 bits are objects.
        refuse(field, value, allowed, remedy)
    return array


def length(value: Any) -> int:
    """Returns ``len(value)``; the largest length there is for a range that is longer."""
    try:
        return len(value)
    except OverflowError:
        return sys.maxsize


def _spend(value: Any, left: int, depth: int = 0) -> int:
    """Returns how many entries are left after those of ``value``.

    Raises:
        ValueError: If there are none left, or an entry is no real number.
    """
    if isinstance(value, (list, tuple)) and depth <= _DEPTH:
        for item in value:
            left = left - 1 if type(item) in (int, float) else _spend(item, left, depth + 1)
            if left < 0:
                break
    elif isinstance(value, range):
        left -= length(value)
    elif hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.asanyarray(value)
        if array.dtype.kind not in "iuf" or np.ma.is_masked(array):
            raise ValueError
        left -= array.size
    elif _is_real(value):
        left -= 1
    else:
        raise ValueError
    if left < 0:
        raise ValueError
    return left


def did_you_mean(
    word: object, known: Iterable[str], otherwise: str, form: Callable[[str], str] = literal
) -> str:
    """Returns the remedy for a word that is none of the known ones: the nearest of them.

    Args:
        word: What was given.
        known: What there is.
        otherwise: The remedy where none is near.
        form: Writes the nearest.
    """
    near = difflib.get_close_matches(word[:40], list(known), n=1) if isinstance(word, str) else []
    return f"did you mean {form(near[0])}?" if near else otherwise


def choice(
    field: str, value: Any, options: Iterable[str], remedy: str, allowed: str | None = None
) -> str:
    """Returns ``value`` if it is one of the texts that there are.

    Args:
        field: The argument's public name.
        value: What was given.
        options: The texts.
        remedy: What to do instead.
        allowed: Completes "must be ..."; by default the texts.

    Raises:
        Refusal: If it is another text, or no text.
    """
    texts = list(options)
    if not isinstance(value, str) or value not in texts:
        refuse(field, value, allowed or " or ".join(map(repr, texts)), remedy)
    return value


def flag(field: str, value: Any, remedy: str = "leave it out") -> bool:
    """Returns ``value`` if it is True or False, not something that is read as one.

    Raises:
        Refusal: If it is anything else.
    """
    if not isinstance(value, bool):
        refuse(field, value, EITHER, remedy)
    return value


def privacy(field: str, value: Any) -> float:
    """Returns a privacy parameter in (0, 1e100]; None and infinity, no noise, as infinity.

    The bound keeps N epsilon, which a message leaks, a number for every N.

    Raises:
        Refusal: If the value is neither.
    """
    if value is None or (isinstance(value, (float, np.floating)) and value == math.inf):
        return math.inf
    remedy = f"give a privacy parameter, or {NONE} for no noise"
    return real(field, value, 0.0, _MOST, remedy, open_low=True)


def price(field: str, value: Any) -> float:
    """Returns the price of a link, in [0, 1e100]; the bound keeps every cost a number.

    Raises:
        Refusal: If the value is none.
    """
    return real(field, value, 0.0, _MOST, "give the price of one link")


def number_of(text: str) -> int | float | None:
    """Reads a number as people write it: ASCII digits, a point, an exponent; or inf, nan.

    Returns:
        An int for a whole number that is written digit by digit, and for one below 10^18 however
        it is written (1e6); else a float. None for any other text, and for a number that a float
        would turn into infinity or into zero: then it would mean something else.
    """
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    number = float(text)
    digits = found["digits"]
    if digits is None:
        return number
    if not digits.strip("0."):
        return 0
    if number == 0 or math.isinf(number):
        return None
    # Exact for a whole number too large for float64's 53 bits.
    if digits.isdecimal() and text.lstrip("+-") == digits:
        return int(text)
    if abs(number) < 1e18 and Decimal(text) == (whole := int(Decimal(text))):
        return whole
    return number


def whole_class(owner: type, where: str) -> None:
    """Refuses a class that is no frozen dataclass, or leaves out a function that it must state.

    What must be stated is what a base marks with `abc.abstractmethod`.

    Args:
        owner: The class.
        where: The plug-in or name that it is known by.

    Raises:
        Refusal: If it is not whole.
    """
    # Asked of the class itself: a parent's decorator says nothing of its fields.
    if not getattr(vars(owner).get("__dataclass_params__"), "frozen", False):
        refuse(owner.__name__, where, "a frozen dataclass", "put @dataclass(frozen=True) above it")
    # A checker takes a class with fields for something that cannot be looked up.
    if missing := _left_out(cast(Any, owner)):
        name, does = missing
        remedy = f"define {owner.__name__}.{name}: {does}"
        refuse(owner.__name__, where, f"a class that states {name}", remedy)


@functools.cache
def _left_out(owner: Any) -> tuple[str, str] | None:
    """Returns the first function that is marked and not stated, and what it does."""
    for name in dir(owner):
        function = getattr(owner, name, None)
        if getattr(function, "__isabstractmethod__", False):
            return name, (inspect.getdoc(function) or "").partition("\n")[0]
    return None


def foreign(error: BaseException) -> bool:
    """Tells whether an error may be of somebody else's code, not an end of this process.

    A plug-in may call ``sys.exit``: it must not end a command as if all were done. Ctrl-C, and what
    this package ends a command with, are no such error.
    """
    if isinstance(error, Exception):
        return True
    package = type(error).__module__.partition(".")[0]
    ends = isinstance(error, (KeyboardInterrupt, GeneratorExit))
    return not ends and package not in (__name__.partition(".")[0], "asyncio")


def reason_of(error: BaseException, most: int = 120) -> str:
    """Returns an error's kind and words in one short line; somebody's own may have none."""
    kind = type(error).__name__
    try:
        if isinstance(error, KeyError):
            return f"KeyError: there is no {shown(error.args[0] if error.args else '')}"
        told = " ".join(f"{kind}: {error}".split())
    except BaseException as other:
        if not foreign(other):
            raise
        told = f"{kind} that cannot be shown"
    return told if len(told) <= most else told[: most - 3] + "..."


def place_of(error: BaseException) -> str:
    """Returns where in somebody else's code an error arose: ", line 12 of mine.py"; or "".

    The innermost frame that is neither the package's nor an installed library's.
    """
    libraries = (os.path.dirname(__file__), *map(os.path.dirname, (os.__file__, np.__file__)))
    libraries = (*libraries, os.path.dirname(os.path.dirname(np.__file__)), "<")
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    theirs = [each for each in frames if not each[0].startswith(libraries)]
    if not theirs:
        return ""
    file, line = theirs[-1]
    return f", line {line} of {os.path.basename(file)[:40]}"


def _without_commas(value: Any, remedy: str) -> str:
    """Returns the remedy for what is no number: 0,5 and 1,000 are to be written without commas."""
    comma = isinstance(value, str) and _COMMAS.fullmatch(value)
    return "write decimals after a point, and no commas" if comma else remedy


def _is_real(value: Any) -> bool:
    # NumPy counts durations among the whole numbers.
    other = isinstance(value, (bool, np.bool_, np.timedelta64))
    return isinstance(value, numbers.Real) and not other


def _shown(value: Any) -> Shown:
    """Returns a value as Python, as people and as study files write it."""
    if isinstance(value, Shown):
        return value
    text, toml = shown(value), shown(value, _toml)
    # Quotes show blanks at the ends.
    if isinstance(value, str) and value == value.strip(" "):
        return Shown(text, text[1:].removesuffix(text[0]), toml)
    if isinstance(value, (list, tuple)) and not text.endswith("..."):
        return Shown(text, " ".join(_shown(each).typed for each in value), toml)
    if isinstance(value, bool):
        return Shown(text, text.lower(), toml)
    return Shown(text, "none" if value is None else text, toml)


def shown(value: Any, written: Callable[[Any], str] = repr) -> str:
    """Returns one short line for any value, at a cost that does not grow with it.

    Args:
        value: Anything.
        written: Writes what it begins with.
    """
    try:
        text = " ".join(written(_head(value, [_ITEMS])).split())
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        text = f"<{type(value).__name__} too long to print>"
    except BaseException as error:  # somebody's own repr may raise anything
        if not foreign(error):
            raise
        text = f"<{type(value).__name__} that cannot be printed>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _head(value: Any, left: list[int]) -> Any:
    """Returns what a value begins with, where all of it would be cut anyway.

    Args:
        value: Anything.
        left: How many more items are looked at; counted down.
    """
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return value[: 4 * _SHOWN]
    if kind not in (list, tuple, set, frozenset, dict):
        return value
    kept: list[Any] = []
    for item in value.items() if kind is dict else value:
        if left[0] <= 0:
            break
        left[0] -= 1
        kept.append((item[0], _head(item[1], left)) if kind is dict else _head(item, left))
    return kind(kept)
