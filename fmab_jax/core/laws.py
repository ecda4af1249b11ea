"""Reward laws by name.

A law is known by its name once its class is loaded; its text is the name and the values of its
fields, such as ``gaussian:0.1``.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

from fmab_jax.core import rewards
from fmab_jax.core.plugins import defined_in, file_of, foreign_refused
from fmab_jax.core.rewards import Law, Ratings
from fmab_jax.core.rewards.contract import is_own
from fmab_jax.errors import Refusal, check_frozen_class, did_you_mean, parse_number, refuse
from fmab_jax.parameters import UNSET, Parameter, Real, Whole, parameters_of

KNOWN: dict[str, Any] = {
    owner.name: owner
    for module in pkgutil.iter_modules(rewards.__path__, f"{rewards.__name__}.")
    for owner in defined_in(importlib.import_module(module.name), Law)
    if owner is not Ratings  # which take a table
}
"""Classes of the laws that a text can name; loaded ones are added."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")


def usage(owner: type) -> str:
    """Returns how the text of a law is written, such as gaussian:SD."""
    text = getattr(owner, "name", "")
    for place, each in enumerate(parameters_of(owner).values()):
        word = f"{',' if place else ':'}{each.name.upper()}"
        text += word if each.default is UNSET else f"[{word}]"
    return text


def usages() -> str:
    """Returns how the text of each known law is written."""
    return ", ".join(usage(owner) for _, owner in sorted(KNOWN.items()))


def law_of(value: Any, field: str = "rewards") -> Law:
    """Returns a law as it is, or the law of a text: bernoulli, gaussian:SD, one of a plug-in.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, Law):
        return value
    name, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if name not in KNOWN:
        objects = ", or an object such as fmab_jax.Gaussian(0.1)"
        allowed = f"a reward law: {usages()}{objects}"
        otherwise = "name one, or load a plug-in"
        remedy = did_you_mean(name, KNOWN, otherwise, lambda near: usage(KNOWN[near]))
        refuse(field, value, allowed, remedy)
    owner, words = KNOWN[name], rest.split(",") if colon else []
    allowed = f"written {usage(owner)}"
    fields = parameters_of(owner)
    if len(words) > len(fields):
        refuse(field, value, allowed, f"{name} takes {len(fields) or 'no'} values")
    for missing in list(fields.values())[len(words) :]:
        if missing.default is UNSET:
            refuse(field, value, allowed, f"give {missing.name}")
    with foreign_refused(field, value, allowed):
        try:
            stated = zip(fields.items(), words, strict=False)
            law: Law = owner(
                **{key: each.check(_value_of(each, word)) for (key, each), word in stated}
            )
        except Refusal as error:
            within, remedy = error.allowed, error.remedy
            refuse(field, value, f"{allowed} with {error.field} {within}", remedy)
    return law


def _value_of(parameter: Parameter, word: str) -> Any:
    if parameter.kind.none_label is not None and word == "none":
        return None
    number = parse_number(word) if isinstance(parameter.kind, (Real, Whole)) else None
    return word if number is None else number


def check_class(owner: Any, where: str) -> None:
    """Refuses the class of a law that cannot be used, or whose name is taken.

    Args:
        owner: A class below `Law`.
        where: The plug-in, or whatever it is from.

    Raises:
        ValueError: If it has no name, is no frozen dataclass, or leaves something out.
    """
    name = getattr(owner, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        remedy = "such as 'three-point': small letters, digits, - and _"
        refuse(f"{owner.__name__}.name", name, "a short plain name", remedy)
    check_frozen_class(owner, where)
    parameters_of(owner)
    other = KNOWN.get(name, owner)
    # Only a changed version of the same file takes a name over.
    if other is not owner and (is_own(other) or file_of(other) != file_of(owner)):
        refuse("plugin", name, "the name of no other reward law", "rename it")
