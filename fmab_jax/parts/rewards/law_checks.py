"""The contract of a plug-in's reward law.

A problem checks its law once: at many means of the law's range, and at every fixed mean.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from fmab_jax.errors import PlainText, Refusal, refuse
from fmab_jax.parts.plugins import foreign_refused
from fmab_jax.parts.rewards import REWARDS
from fmab_jax.parts.rewards.finite import FiniteSupport, Ratings, checked_levels
from fmab_jax.parts.rewards.law import Law
from fmab_jax.sampling.scope import package_settings

# Largest error of a sum of probabilities, and of a mean.
_ERROR = 1e-9
# The first and the last are the extreme values of `keys.uniform`.
_UNIFORMS = np.array([2.0**-53, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 2.0**-53])
# Means, and uniforms between the extreme ones, at which every law is checked.
_MEANS, _MIDPOINTS = 512, 4096
# Means of a problem per check.
_MOST_MEANS = 1 << 14
# Functions that a law on finitely many values inherits.
_FINITE = (FiniteSupport.one, FiniteSupport.cumulants)


def check_law(law: Law, means: ArrayLike | None = None) -> None:
    """Refuses a law that breaks its contract; laws of this package need no check.

    It checks the class, the description and the levels; and at many means the probabilities, the
    cumulants and the quantiles.

    Args:
        law: The law.
        means: Means of any shape, besides those at which every law is checked.

    Raises:
        ValueError: For the first broken rule; the error names the law.
    """
    if type(law).__module__.startswith("fmab_jax.parts.rewards."):
        return
    name = type(law).__name__
    REWARDS.adopt(type(law), "rewards")
    if isinstance(law, FiniteSupport):
        try:
            checked_levels(getattr(law, "levels", None))
        except Refusal as error:
            raise error.renamed(f"{name}.{error.field}") from None
    allowed = "a law whose fields are finite values with a hash"
    with foreign_refused(name, law.name, allowed, "use numbers, texts and tuples of them"):
        hash(law)
        json.dumps(law.describe(), allow_nan=False)
    check_numbers(law)
    if means is not None:
        values = np.unique(means)
        for start in range(0, len(values), _MOST_MEANS):
            block = values[start : start + _MOST_MEANS]
            # JAX compiles for each shape.
            size = max(_MEANS, 1 << (len(block) - 1).bit_length())
            _check_at(law, np.resize(block, size), _UNIFORMS)


@functools.lru_cache(maxsize=256)
def check_numbers(law: Law) -> None:
    """Refuses a law whose numbers are wrong at many means and uniforms of its range.

    If the range is finite, rewards must also have the stated cumulants.

    Raises:
        ValueError: For the first broken rule; the error names the law.
    """
    if isinstance(law, Ratings):  # a problem checks the whole table
        return
    # Not every law has means at the ends of its range.
    ends = isinstance(law, FiniteSupport)
    shares = np.linspace(0.0, 1.0, _MEANS) if ends else (np.arange(_MEANS) + 0.5) / _MEANS
    low, high, width = law.low, law.high, law.sensitivity
    start = low if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
    means = start + shares * (width if math.isfinite(width) else 1.0)
    middle = (np.arange(_MIDPOINTS) + 0.5) / _MIDPOINTS
    _check_at(law, means, np.concatenate([_UNIFORMS[:1], middle, _UNIFORMS[-1:]]))


# A function, a prefix for the message, its values [mean] or [level or uniform, mean], a mask of
# valid values, and the allowed values.
_Rule = tuple[str, str, np.ndarray, np.ndarray, str]


def _check_at(law: Law, means: np.ndarray, uniforms: np.ndarray) -> None:
    """Checks a law at some means and uniforms."""
    owner = type(law).__name__
    with (
        foreign_refused(owner, law.name, "a law that can be computed"),
        package_settings(),
        np.errstate(all="ignore"),
    ):
        for function, prefix, values, valid, allowed in _list_rules(law, means, uniforms):
            valid = np.broadcast_to(valid, values.shape)
            if not valid.all():
                place = np.unravel_index(valid.argmin(), valid.shape)
                text = f"{prefix}{values[place]:g} at mean {means[place[-1]]:g}"
                if function == "one" and len(place) == 2:
                    text += f" and u = {uniforms[place[0]]:.6g}"
                refuse(f"{owner}.{function}", PlainText(text), allowed, f"mend {function}")


def _list_rules(law: Law, means: np.ndarray, uniforms: np.ndarray) -> Iterator[_Rule]:
    static, traced = law.bind()
    values = {key: jnp.asarray(value) for key, value in traced.items()}
    arrays = static.parameters(jnp.asarray(means[None]), **values)
    parameters = [jnp.broadcast_to(jnp.asarray(array), (1, len(means)))[0] for array in arrays]
    if isinstance(law, FiniteSupport):
        yield from _list_probability_rules(law, means, parameters)
        if (type(law).one, type(law).cumulants) == _FINITE:
            return  # the rest follows from the probabilities
    cumulants = [np.broadcast_to(np.asarray(c), means.shape) for c in static.cumulants(*parameters)]
    yield from _list_cumulant_rules(law, means, cumulants)
    shape = (len(uniforms), len(means))
    u = jnp.broadcast_to(jnp.asarray(uniforms)[:, None], shape)
    sampled = np.asarray(static.one(u, *(jnp.broadcast_to(array, shape) for array in parameters)))
    slack = _ERROR * max(1.0, *(abs(x) for x in (law.low, law.high) if math.isfinite(x)), 1.0)
    # NaN must break every rule.
    holds = np.isfinite(sampled) & (sampled >= law.low - slack) & (sampled <= law.high + slack)
    holds[1:] &= np.diff(sampled, axis=0) >= 0.0
    allowed = f"rewards in [{law.low:g}, {law.high:g}] that do not decrease with u"
    yield "one", "", sampled, holds, allowed
    if law.step:
        steps = (sampled - law.low) / law.step
        holds = abs(steps - np.round(steps)) <= 1e-6
        yield "one", "", sampled, holds, f"{law.low:g} plus a multiple of its step, {law.step:g}"
    if len(uniforms) > _MIDPOINTS and math.isfinite(law.sensitivity):
        yield from _list_moment_rules(law, sampled[1:-1] - means, cumulants, slack)


def _list_probability_rules(
    law: FiniteSupport, means: np.ndarray, parameters: list[Array]
) -> Iterator[_Rule]:
    if len(parameters) != len(law.levels):
        allowed = f"{len(law.levels)} probabilities, one for each of its levels"
        name = f"{type(law).__name__}.parameters"
        refuse(name, len(parameters), allowed, "return a tuple of arrays")
    table = np.array(parameters)
    valid = (table >= -_ERROR) & (table <= 1.0 + _ERROR)
    yield "parameters", "", table, valid, "in [0, 1]"
    total, mean = table.sum(axis=0), np.array(law.values) @ table
    yield "parameters", "sum ", total, abs(total - 1.0) <= _ERROR, "1 in sum over levels"
    holds = abs(mean - means) <= _ERROR * np.maximum(1.0, abs(means))
    yield "parameters", "mean ", mean, holds, "probabilities with that mean"


def _list_cumulant_rules(
    law: Law, means: np.ndarray, cumulants: list[np.ndarray]
) -> Iterator[_Rule]:
    if len(cumulants) != 7:
        allowed = "six cumulants and the decay"
        refuse(f"{type(law).__name__}.cumulants", len(cumulants), allowed, "return seven")
    for array in cumulants[: 7 if law.step else 6]:  # the decay is used on a lattice alone
        yield "cumulants", "", array, np.isfinite(array), "finite"
    mean = law.low + law.step * cumulants[0] if law.step else cumulants[0]
    holds = abs(mean - means) <= _ERROR * np.maximum(1.0, abs(means))
    yield "cumulants", "first ", mean, holds, "the mean first"
    variance, allowed = cumulants[1], "variances second, at least 0"
    yield "cumulants", "variance ", variance, variance >= -_ERROR, allowed


def _list_moment_rules(
    law: Law, deviations: np.ndarray, cumulants: list[np.ndarray], slack: float
) -> Iterator[_Rule]:
    unit = law.step or 1.0
    k2, k3, k4, k5, k6 = (unit**n * cumulants[n - 1] for n in range(2, 7))
    fifth, sixth = k5 + 10 * k3 * k2, k6 + 15 * k4 * k2 + 10 * k3**2 + 15 * k2**3
    moments = (0.0 * k2, k2, k3, k4 + 3 * k2**2, fifth, sixth)
    power = np.ones_like(deviations)
    for order, moment in enumerate(moments, start=1):
        power *= deviations
        # Quantiles on midpoints give a moment to within the function's variation over their number.
        sampled = power.mean(axis=0)
        error = 2.0 * law.sensitivity**order / _MIDPOINTS + slack
        holds = abs(sampled - moment) <= error
        yield "one", f"central moment {order} of ", sampled, holds, "of the stated cumulants"
