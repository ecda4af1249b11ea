"""Reward laws by name, and the contract that a law of somebody's own keeps.

A law is known by its name once its class is loaded; its text is the name and the values of its
fields, such as ``gaussian:0.1``. Whatever a law states is tried out on a few means before anything
is computed with it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np

from fmab_jax.core.rewards import Bernoulli, FiniteSupport, Gaussian, Law, Ratings, checked_levels
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import Refusal, did_you_mean, number_of, reason_of, refuse, whole_class
from fmab_jax.parameters import Parameter, Real, Whole, parameters_of
from fmab_jax.resources import refuse_after_fork

KNOWN: dict[str, Any] = {each.name: each for each in (Bernoulli, Gaussian)}
"""Classes of the laws that a text can name; loaded ones are added."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_OWN = (Bernoulli, Gaussian, Ratings)
# What probabilities may lack of 1, and means of the mean.
_ERROR = 1e-9
_UNIFORMS = (0.01, 0.25, 0.5, 0.75, 0.99)


def usage(owner: type) -> str:
    """Returns how the text of a law is written, such as gaussian:SD."""
    text = getattr(owner, "name", "")
    for place, each in enumerate(_fields(owner)):
        word = f"{',' if place else ':'}{each.name.upper()}"
        text += word if _needed(each) else f"[{word}]"
    return text


def usages() -> str:
    """Returns how the text of each known law is written."""
    return ", ".join(usage(owner) for _, owner in sorted(KNOWN.items()))


def _fields(owner: Any) -> list[Any]:
    return [each for each in dataclasses.fields(owner) if each.init]


def _needed(each: Any) -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def law_of(value: Any, field: str = "rewards") -> Law:
    """Returns a law as it is, or the law of a text: bernoulli, gaussian:SD, one of a plug-in.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, Law):
        return value
    name, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if name not in KNOWN:
        allowed = f"a reward law: {usages()}, or an object such as fmab_jax.Gaussian(0.1)"
        otherwise = "name one, or load a plug-in"
        remedy = did_you_mean(name, KNOWN, otherwise, lambda near: usage(KNOWN[near]))
        refuse(field, value, allowed, remedy)
    owner, words = KNOWN[name], rest.split(",") if colon else []
    allowed = f"written {usage(owner)}"
    fields = _fields(owner)
    if len(words) > len(fields):
        refuse(field, value, allowed, f"{name} takes {len(fields) or 'no'} values")
    for missing in fields[len(words) :]:
        if _needed(missing):
            refuse(field, value, allowed, f"give {missing.name}")
    try:
        stated = zip(parameters_of(owner).items(), words, strict=False)
        return owner(**{key: each.check(_read(each, word)) for (key, each), word in stated})
    except Refusal as error:
        refuse(field, value, f"{allowed} with {error.field} {error.allowed}", error.remedy)
    except Exception as error:  # somebody's own
        refuse(field, value, allowed, f"mend it ({reason_of(error)})")


def _read(parameter: Parameter, word: str) -> Any:
    if parameter.kind.none is not None and word == "none":
        return None
    number = number_of(word) if isinstance(parameter.kind, (Real, Whole)) else None
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
    whole_class(owner, where)
    other = KNOWN.get(name, owner)
    # Only a changed version of the same file takes a name over.
    if other is not owner and (other in _OWN or _file(other) != _file(owner)):
        refuse("plugin", name, "the name of no other reward law", "rename it")


def _file(owner: type) -> str | None:
    return getattr(sys.modules.get(owner.__module__), "__file__", None)


def check_law(law: Law) -> None:
    """Refuses a law that does not keep its contract; the line names the law.

    Its class, its description, its levels, and at a few means its probabilities, or its cumulants
    and quantiles, are looked at.

    Raises:
        ValueError: For what is broken first.
    """
    if type(law) in _OWN:
        return
    name = type(law).__name__
    if not isinstance(getattr(law, "name", None), str):
        refuse(f"{name}.name", getattr(law, "name", None), "a text", "such as 'three-point'")
    whole_class(type(law), law.name)
    if isinstance(law, FiniteSupport):
        levels = getattr(law, "levels", None)
        if not isinstance(levels, tuple):
            refuse(f"{name}.levels", levels, "a tuple of numbers", "such as (0.0, 0.5, 1.0)")
        try:
            checked_levels(levels)
        except Refusal as error:
            raise error.renamed(f"{name}.{error.field}") from None
    try:
        hash(law)
        json.dumps(law.describe(), allow_nan=False)
    except Exception as error:
        remedy = f"use numbers, texts and tuples of them ({reason_of(error)})"
        refuse(name, law.name, "a law whose fields are finite values with a hash", remedy)
    _check_numbers(law)


@functools.lru_cache(maxsize=256)
def _check_numbers(law: Law) -> None:
    refuse_after_fork()
    try:
        with own_settings():
            if isinstance(law, FiniteSupport):
                _check_finite(law)
            else:
                _check_other(law)
    except Refusal:
        raise
    except Exception as error:
        remedy = f"mend it ({reason_of(error)})"
        refuse(type(law).__name__, law.name, "a law that can be computed", remedy)


def _arrays(law: Law, means: np.ndarray) -> list[np.ndarray]:
    """Returns the law's parameters at some means."""
    static, traced = law.bind()
    values = {name: jnp.asarray(value) for name, value in traced.items()}
    found = static.parameters(jnp.asarray(means[None]), **values)
    return [np.broadcast_to(np.asarray(each), (1, len(means)))[0] for each in found]


def _check_finite(law: FiniteSupport) -> None:
    means = np.linspace(0.0, 1.0, 5)
    table = np.array(_arrays(law, means))
    field = f"{type(law).__name__}.parameters"
    if len(table) != len(law.levels):
        allowed = f"{len(law.levels)} probabilities, one for each of its levels"
        refuse(field, len(table), allowed, "return a tuple of arrays")
    mean = np.array(law.values) @ table
    for kept, what, found, allowed in (
        (((table >= -_ERROR) & (table <= 1 + _ERROR)).all(axis=0), "", table.T, "in [0, 1]"),
        (abs(table.sum(axis=0) - 1) <= _ERROR, "sum ", table.sum(axis=0), "1 in sum over levels"),
        (abs(mean - means) <= _ERROR, "mean ", mean, "probabilities with that mean"),
    ):
        if not kept.all():
            place = int(np.argmin(kept))
            told = f"{what}{found[place].tolist()} at mean {means[place]:g}"
            refuse(field, told, allowed, f"mend the probabilities of {law.name}")


def _check_other(law: Law) -> None:
    apart = np.array([0.25, 0.5, 0.75])
    low, high = law.low, law.high
    start = low if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
    means = start + apart * (law.sensitivity if math.isfinite(law.sensitivity) else 1.0)
    parameters = [jnp.asarray(each) for each in _arrays(law, means)]
    cumulants = [np.broadcast_to(np.asarray(c), 3) for c in law.cumulants(*parameters)]
    name = type(law).__name__
    if len(cumulants) != 7:
        refuse(f"{name}.cumulants", len(cumulants), "six cumulants and the decay", "return seven")
    mean = low + law.step * cumulants[0] if law.step else cumulants[0]
    if not (abs(mean - means) <= _ERROR * np.maximum(1.0, abs(means))).all():
        told = f"{mean.tolist()} at means {means.tolist()}"
        refuse(f"{name}.cumulants", told, "the means first", "return the mean of a reward")
    if not (cumulants[1] >= 0.0).all():
        told = cumulants[1].tolist()
        refuse(f"{name}.cumulants", told, "variances second, at least 0", "mend the variance")
    u = jnp.broadcast_to(jnp.asarray(_UNIFORMS)[:, None], (len(_UNIFORMS), 3))
    drawn = np.asarray(law.one(u, *(jnp.broadcast_to(each, u.shape) for each in parameters)))
    inside = np.isfinite(drawn) & (drawn >= low - _ERROR) & (drawn <= high + _ERROR)
    if not (inside.all() and (np.diff(drawn, axis=0) >= 0.0).all()):
        allowed = f"rewards in [{low:g}, {high:g}] that do not decrease with u"
        refuse(f"{name}.one", drawn[:, 0].tolist(), allowed, "return the quantile of a reward")
