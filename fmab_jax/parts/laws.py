"""Reward laws by name.

Loading a class of a law adds its name. The text of a law is the name and the values of its fields,
such as ``gaussian:0.1``.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from typing import TypeVar

from fmab_jax.errors import (
    Refusal,
    check_frozen_class,
    did_you_mean,
    format_quantity,
    parse_number,
    refuse,
)
from fmab_jax.parameters import UNSET, Parameter, Real, Whole, parameters_of
from fmab_jax.parts import rewards
from fmab_jax.parts.plugins import defined_in, file_of, foreign_refused
from fmab_jax.parts.rewards import Law, Ratings
from fmab_jax.parts.rewards.contract import is_own

T = TypeVar("T")

LAWS_BY_NAME: dict[str, type[Law]] = {
    owner.name: owner
    for module in pkgutil.iter_modules(rewards.__path__, f"{rewards.__name__}.")
    for owner in defined_in(importlib.import_module(module.name), Law)
    if owner is not Ratings  # which take a table
}
"""Classes of the laws that a text can name, with those of plug-ins."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")


def usage(owner: type) -> str:
    """Returns the format of a law's text, such as gaussian:SD."""
    text = getattr(owner, "name", "")
    for index, parameter in enumerate(parameters_of(owner).values()):
        word = f"{',' if index else ':'}{parameter.name.upper()}"
        text += word if parameter.default is UNSET else f"[{word}]"
    return text


def usages(owners: Mapping[str, type] | None = None) -> str:
    """Returns the formats of the texts of all laws, or of other classes by name."""
    by_name = LAWS_BY_NAME if owners is None else owners
    return ", ".join(usage(owner) for _, owner in sorted(by_name.items()))


def law_of(value: object, field: str = "rewards") -> Law:
    """Returns a law unchanged, or the law of a text: bernoulli, gaussian:SD, one of a plug-in.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, Law):
        return value
    objects = ", or an object such as fmab_jax.Gaussian(0.1)"
    return build_from_text(value, LAWS_BY_NAME, field, "a reward law", objects)


def build_from_text(
    value: object, owners: Mapping[str, type[T]], field: str, noun: str, otherwise: str
) -> T:
    """Returns the object of a text: the name of a class, and the values of its parameters.

    Args:
        value: The text.
        owners: Classes by name.
        field: For the refusal.
        noun: What the text names, such as "a reward law".
        otherwise: What else is allowed.

    Raises:
        ValueError: If the text names no class, or a value is out of range.
    """
    name, colon, arguments = value.partition(":") if isinstance(value, str) else ("", "", "")
    if name not in owners:
        allowed = f"{noun}: {', '.join(usage(owner) for _, owner in sorted(owners.items()))}"
        remedy = "name one, or load a plug-in"
        remedy = did_you_mean(name, owners, remedy, lambda near: usage(owners[near]))
        refuse(field, value, allowed + otherwise, remedy)
    owner, words = owners[name], arguments.split(",") if colon else []
    allowed = f"written {usage(owner)}"
    fields = parameters_of(owner)
    if len(words) > len(fields):
        number = format_quantity(len(fields), "value") if fields else "no values"
        refuse(field, value, allowed, f"{name} takes {number}")
    for missing in list(fields.values())[len(words) :]:
        if missing.default is UNSET:
            refuse(field, value, allowed, f"give {missing.name}")
    with foreign_refused(field, value, allowed):
        try:
            pairs = zip(fields.items(), words, strict=False)
            return owner(
                **{
                    key: parameter.check(_parse_value(parameter, word))
                    for (key, parameter), word in pairs
                }
            )
        except Refusal as error:
            reason, remedy = error.allowed, error.remedy
            refuse(field, value, f"{allowed} with {error.field} {reason}", remedy)


def _parse_value(parameter: Parameter, word: str) -> str | float | None:
    if parameter.kind.none_label is not None and word == "none":
        return None
    number = parse_number(word) if isinstance(parameter.kind, (Real, Whole)) else None
    return word if number is None else number


def check_class(owner: type, origin: str) -> None:
    """Refuses the class of a law that is incomplete, or whose name exists.

    Args:
        owner: A class below `Law`.
        origin: The plug-in, or another origin.

    Raises:
        ValueError: If it has no name, is no frozen dataclass, or leaves something out.
    """
    name = getattr(owner, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        remedy = "such as 'three-point': small letters, digits, - and _"
        refuse(f"{owner.__name__}.name", name, "a short plain name", remedy)
    check_frozen_class(owner, origin)
    parameters_of(owner)
    namesake = LAWS_BY_NAME.get(name, owner)
    # A changed version of the same file replaces the class.
    if namesake is not owner and (is_own(namesake) or file_of(namesake) != file_of(owner)):
        refuse("plugin", name, "the name of no other reward law", "rename it")
