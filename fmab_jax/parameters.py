"""Parameters that describe themselves: dataclass fields that declare range, help and labels.

A field gives its check and refusal, its option on the command line with help, its key in a study
file, its label in figures, and its part of a configuration's identity. No other module names a
parameter.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

import numpy as np

from fmab_jax.errors import (
    PlainText,
    Refusal,
    choice,
    count,
    did_you_mean,
    flag,
    real,
    refuse,
)


class Unset:
    """Marks a missing argument where None has a meaning."""

    def __repr__(self) -> str:
        return "<not given>"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET = Unset()
Value = TypeVar("Value")
_FROM_NAME = "<the field's name>"


@dataclass(frozen=True)
class Kind(Generic[Value]):
    """The values of a parameter; subclasses check, label and identify them.

    Attributes:
        none_label: Meaning of None, for labels and help ("no noise"); None where it is refused.
    """

    none_label: str | None = None

    metavar: typing.ClassVar[str] = "VALUE"
    takes_list: typing.ClassVar[bool] = False  # whether several words are one value

    def check(self, name: str, value: object, remedy: str) -> object:
        """Returns the value in canonical form, or raises `Refusal`."""
        if value is None and self.none_label is not None:
            return None
        return self.check_value(name, value, remedy)

    def check_value(self, name: str, value: object, remedy: str) -> object:
        """Checks a value that is not None."""
        return value

    def text(self, value: Value) -> str:
        """Formats a value for people."""
        return str(self.none_label) if value is None else str(value)

    def plain(self, value: Value) -> object:
        """Returns a JSON value, equal only for equal values."""
        return value

    def label(self, value: Value) -> object:
        """Returns the number or short text that labels a value on a dimension."""
        return "none" if value is None else value

    def is_list_value(self, value: object) -> bool:
        """Returns whether a list is one value of this parameter, not a sweep."""
        return False


@dataclass(frozen=True)
class Real(Kind[float | None]):
    """A real number in a range; infinity may be another spelling of None.

    Attributes:
        low: Smallest value.
        high: Largest value.
        open_low: Whether ``low`` itself is refused.
        open_high: Whether ``high`` itself is refused.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    metavar = "X"

    def check_value(self, name: str, value: object, remedy: str) -> float | None:
        """Returns a float in the range; None for infinity where None has a meaning."""
        # Infinity means None for an amount, but is out of range for a share (high = 1).
        endless = isinstance(value, (float, np.floating)) and value == math.inf
        if self.none_label is not None and self.high > 1 and endless:
            return None
        ends = {"open_low": self.open_low, "open_high": self.open_high}
        return real(name, value, self.low, self.high, remedy, **ends)

    def text(self, value: float | None) -> str:
        """Formats six digits, or all where six are not exact."""
        if value is None:
            return str(self.none_label)
        text = f"{value:.6g}"
        return text if float(text) == value else repr(value)

    def label(self, value: float | None) -> float | str:
        """Returns a whole number as an int, so that 1 and 1.0 have one label."""
        if value is None:
            return "none"
        return int(value) if float(value).is_integer() else value

    def plain(self, value: float | None) -> float | None:
        """Returns the number; JSON has no infinity."""
        return None if value is None or math.isinf(value) else value


@dataclass(frozen=True)
class Whole(Kind[int | None]):
    """A whole number in [low, high]."""

    low: int = 0
    high: int = 2**53

    metavar = "N"

    def check_value(self, name: str, value: object, remedy: str) -> int:
        """Returns a Python int."""
        return count(name, value, self.low, self.high, remedy)

    def text(self, value: int | None) -> str:
        """Formats groups of three digits."""
        return str(self.none_label) if value is None else f"{value:,}"


@dataclass(frozen=True)
class Choice(Kind[str]):
    """One of a few words."""

    options: tuple[str, ...] = ()

    @property
    def metavar(self) -> str:  # type: ignore[override]
        """The options, as a usage line writes them."""
        return "{" + ",".join(self.options) + "}"

    def check_value(self, name: str, value: object, remedy: str) -> str:
        """Returns the word."""
        return choice(name, value, self.options, remedy or "choose one of them")


@dataclass(frozen=True)
class Flag(Kind[bool]):
    """Yes or no."""

    metavar = "{true,false}"

    def check_value(self, name: str, value: object, remedy: str) -> bool:
        """Returns a bool."""
        return flag(name, value, remedy or "write true or false")

    def label(self, value: bool) -> str:
        """Returns a text: on an axis of numbers True would be 1."""
        return str(value)

    def text(self, value: bool) -> str:
        """Returns yes or no."""
        return "yes" if value else "no"


@dataclass(frozen=True)
class Word(Kind[str]):
    """Any text."""

    metavar = "TEXT"

    def check_value(self, name: str, value: object, remedy: str) -> str:
        """Returns the text."""
        if not isinstance(value, str):
            refuse(name, value, "a text", remedy or "write it in quotes")
        return value


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter.

    Attributes:
        name: Name of the field.
        kind: Its values.
        default: Default value; UNSET for a required parameter.
        help: One line for people.
        remedy: What to do about a refused value.
        symbol: Short form in figures, such as "p"; "" for values that need none.
        label: Name on an axis, such as "participation p".
        suggested: Default of the command line for a parameter that Python requires.
        default_text: The default in help; "" for the text of the default.
        proven: The values that the source's theorems cover; None for all.
        grid: Values that a plan tries besides the default; a flag is tried both ways.
    """

    name: str
    kind: Kind
    default: object = UNSET
    help: str = ""
    remedy: str = ""
    symbol: str = ""
    label: str = ""
    suggested: object = UNSET
    default_text: str = ""
    proven: Kind | None = None
    grid: tuple[Any, ...] = ()

    def named(self, name: str, remedy: str) -> Parameter:
        """Returns the parameter of a field; missing texts are made of the field's name."""
        text = name.replace("_", " ")
        return dataclasses.replace(
            self,
            name=name,
            help=self.help or f"{text}.",
            remedy=self.remedy or remedy,
            symbol=text if self.symbol == _FROM_NAME else self.symbol,
            label=self.label or text + f" {self.symbol}" * (self.symbol not in ("", _FROM_NAME)),
        )

    def check(self, value: object) -> object:
        """Returns the value in its one form.

        Raises:
            ValueError: If it is out of range.
        """
        return self.kind.check(self.name, value, self.remedy)

    def is_proven(self, value: object) -> bool:
        """Returns whether the source's theorems cover a value."""
        if self.proven is None:
            return True
        try:
            self.proven.check(self.name, value, "")
        except Refusal:
            return False
        return True

    def format_value(self, value: object) -> str:
        """Formats the parameter with a value, such as "p = 0.4" or "no noise"."""
        text = self.kind.text(value)
        if value is None or not self.symbol:
            return text
        return f"{self.symbol} = {text}"


def parameter(
    kind: Kind,
    help: str,
    *,
    default: object = dataclasses.MISSING,
    keyword: bool = True,
    remedy: str = "",
    symbol: str | None = None,
    label: str = "",
    suggested: object = UNSET,
    default_text: str = "",
    proven: Kind | None = None,
    grid: tuple[Any, ...] = (),
) -> Any:
    """Declares a dataclass field that is a parameter; arguments as in `Parameter`.

    Args:
        kind: What values it takes.
        help: One line.
        default: Its default; without one, the argument is required.
        keyword: Whether it is keyword-only.
        remedy: What to do about a refused value.
        symbol: Short form in figures; the name by default.
        label: Name on an axis; by default made of the name.
        suggested: The command line's default.
        default_text: The default in help.
        proven: The values that the source's theorems cover, if not all; tables mark others.
        grid: Values that a plan tries besides the default.

    Returns:
        A dataclass field.

    Example:
        >>> from dataclasses import dataclass
        >>> import fmab_jax as fmab
        >>> from fmab_jax.parameters import Real
        >>> @dataclass(frozen=True)
        ... class Wide(fmab.ucb1):
        ...     name = "wide"
        ...     factor: float = fmab.parameter(
        ...         Real(low=1.0), "Of the width.", default=2.0, symbol="w"
        ...     )
        >>> Wide(factor=3).settings()
        {'factor': 'w = 3'}
        >>> Wide(factor=0.5)
        Traceback (most recent call last):
        fmab_jax.errors.Refusal: factor=0.5: must be a number in [1, inf]; see the help of wide
    """
    flag("keyword", keyword)
    declared = UNSET if default is dataclasses.MISSING else default
    symbol = _FROM_NAME if symbol is None else symbol
    texts = (help, remedy, symbol, label, suggested, default_text)
    declaration = Parameter("", kind, declared, *texts, proven, grid)
    return field(default=default, kw_only=keyword, metadata={"parameter": declaration})


NOT_NEGATIVE = Real(low=0.0, open_high=True)
GROWTH = Real(low=1.0, high=1000.0, open_low=True)


class ViewKind(StrEnum):
    """A view in which a leak is counted."""

    MESSAGES = "messages"
    """All that is sent; of a row of a ledger, single messages."""
    SUM = "sum"
    """Sums over agents alone."""
    ACTIONS = "actions"
    """The arms that agents pull."""


VIEWS = tuple(view.value for view in ViewKind)
"""The texts of all views."""

LEAK = Parameter(
    "leak",
    Real(none_label="no noise", low=0.0, high=1e100, open_low=True),
    help="What one reward leaks in the view, for every algorithm; sets epsilon.",
    remedy="give the epsilon of one reward",
    symbol="leak ε",
    label="leak ε",
    default_text="that of epsilon",
)
VIEW = Parameter(
    "view",
    Choice(options=VIEWS),
    help="Where the leak is counted: all messages, sums over agents alone, or actions alone.",
    label="view",
    default_text="messages",
)

_DECLARE = "declare the field with fmab_jax.parameter(kind, help)"
_INFERRED: Mapping[object, Callable[..., Kind]] = {float: Real, int: Whole, bool: Flag, str: Word}


def parameters_of(owner: type) -> Mapping[str, Parameter]:
    """Returns the parameters of a dataclass by name, in order.

    A plain field, declared without `parameter`, has the kind of its annotation: float, int, bool or
    str, or one of these or None.

    Raises:
        ValueError: If a plain field's annotation says none of these.
    """
    # The cast is for type checkers, which take a class with fields to be unhashable.
    return _parameters_of(typing.cast(Hashable, owner))


@functools.cache
def _parameters_of(owner: type) -> Mapping[str, Parameter]:
    try:
        hints = typing.get_type_hints(owner)
    except Exception as error:  # unknown names, and texts that are no types
        reason = PlainText(" ".join(str(error).split())[:80])
        refuse(f"{owner.__name__}'s annotations", reason, "types that there are", _DECLARE)
    parameters = {}
    for item in filter(lambda field: field.init, dataclasses.fields(owner)):
        declaration = item.metadata.get("parameter")
        if declaration is None:
            kind = _infer_kind(owner, item.name, hints[item.name])
            default = UNSET if item.default is dataclasses.MISSING else item.default
            declaration = Parameter("", kind, default, symbol=_FROM_NAME)
        elif not isinstance(declaration.kind, Kind):
            allowed = "declared with a Kind, such as Real()"
            refuse(f"{owner.__name__}.{item.name}", declaration.kind, allowed, _DECLARE)
        label = getattr(owner, "name", "") or owner.__name__
        parameters[item.name] = declaration.named(item.name, f"see the help of {label}")
    return parameters


def _infer_kind(owner: type, name: str, hint: object) -> Kind:
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    plain = options[0] if len(options) == 1 else hint
    if not isinstance(plain, Hashable) or plain not in _INFERRED:
        refuse(f"{owner.__name__}.{name}", hint, "float, int, bool or str", _DECLARE)
    return _INFERRED[plain](none_label="none" if len(options) == 1 else None)


class Configurable:
    """A frozen dataclass of parameters: checked at creation, compared and hashed by value."""

    def __new__(cls, *_: object, **params: object) -> Self:
        """Refuses an unknown parameter and suggests the most similar name."""
        for name in params:
            if name not in (specs := parameters_of(cls)):
                remedy = did_you_mean(name, specs, f"choose from {', '.join(specs)}")
                label = getattr(cls, "name", "") or cls.__name__
                refuse(name, params[name], f"a parameter of {label}", remedy)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Checks every field by itself, then all of them together."""
        for name, spec in parameters_of(type(self)).items():
            value = getattr(self, name)
            if value is not UNSET:
                object.__setattr__(self, name, spec.check(value))
        self.check()

    def check(self) -> None:
        """Refuses inconsistent values; a hook."""
        for name, spec in parameters_of(type(self)).items():
            if getattr(self, name) is UNSET:
                refuse(name, UNSET, "given", spec.remedy)

    def settings(self) -> dict[str, str]:
        """Returns the texts of all values that are not the default, by parameter."""
        pairs = [(p, getattr(self, name)) for name, p in parameters_of(type(self)).items()]
        return {p.name: p.format_value(v) for p, v in pairs if v is not UNSET and v != p.default}

    def plain(self) -> dict[str, object]:
        """Returns all parameters as JSON values."""
        pairs = [(p, getattr(self, name)) for name, p in parameters_of(type(self)).items()]
        return {p.name: None if v is UNSET else p.kind.plain(v) for p, v in pairs}
