"""The contract that a plug-in's reward law keeps.

Whatever a law states is tried out on a few means before anything is computed with it, and looked at
again at the means of every seed.
"""

from __future__ import annotations

import functools
import json
import math
from typing import NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.core.keys import Words, uniform
from fmab_jax.core.plugins import foreign_refused
from fmab_jax.core.rewards.base import Law
from fmab_jax.core.rewards.finite import FiniteSupport, Ratings, checked_levels
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import Refusal, Shown, refuse, whole_class
from fmab_jax.resources import refuse_after_fork

# Largest error of a sum of probabilities, and of a mean.
_ERROR = 1e-9
# The first and the last are the ends of what `keys.uniform` draws.
_UNIFORMS = (2.0**-53, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 2.0**-53)
_PROBABILITY, _SUM, _MEAN, _CUMULANT, _FIRST, _VARIANCE, _REWARD = range(1, 8)
_RULES = {
    _PROBABILITY: ("parameters", "", "in [0, 1]"),
    _SUM: ("parameters", "sum ", "1 in sum over levels"),
    _MEAN: ("parameters", "mean ", "probabilities with that mean"),
    _CUMULANT: ("cumulants", "", "finite"),
    _FIRST: ("cumulants", "first ", "the mean first"),
    _VARIANCE: ("cumulants", "variance ", "variances second, at least 0"),
    _REWARD: ("one", "", "rewards in [{low:g}, {high:g}] that do not decrease with u"),
}


def is_own(owner: type) -> bool:
    """Tells whether a class of laws is this package's, which nothing needs to look at."""
    return owner.__module__.startswith("fmab_jax.core.rewards.")


def check_law(law: Law) -> None:
    """Refuses a law that does not keep its contract; the line names the law.

    Its class, its description, its levels, and at a few means its probabilities, or its cumulants
    and quantiles, are looked at.

    Raises:
        ValueError: For what is broken first.
    """
    if is_own(type(law)):
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
    allowed = "a law whose fields are finite values with a hash"
    with foreign_refused(name, law.name, allowed, "use numbers, texts and tuples of them"):
        hash(law)
        json.dumps(law.describe(), allow_nan=False)
    _check_numbers(law)


@functools.lru_cache(maxsize=256)
def _check_numbers(law: Law) -> None:
    refuse_after_fork()
    with foreign_refused(type(law).__name__, law.name, "a law that can be computed"):
        with own_settings():
            if isinstance(law, FiniteSupport):
                _check_finite(law)
            else:
                _check_other(law)


def _means_at(law: Law, parts: np.ndarray) -> np.ndarray:
    """Returns the means at some parts of the law's range; of an infinite one, of a unit of it."""
    low, high = law.low, law.high
    start = low if math.isfinite(low) else high - 1.0 if math.isfinite(high) else 0.0
    return start + parts * (law.sensitivity if math.isfinite(law.sensitivity) else 1.0)


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
    means = _means_at(law, apart)
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


class Looked(NamedTuple):
    """The faults of a law at the means of one seed; `refuse_broken` names the first.

    Attributes:
        kept: Whether nothing is.
        rule: Which rule is broken first.
        value: What was seen.
        mean: At which mean.
    """

    kept: Bool[Array, ""]
    rule: Int[Array, ""] | None = None
    value: Float[Array, ""] | None = None
    mean: Float[Array, ""] | None = None


def looked_at(
    law: Law,
    means: Float[Array, "row arm"],
    parameters: tuple[Array, ...],
    exists: Bool[Array, " row"],
    words: Words,
    *,
    whole: bool = False,
) -> Looked:
    """Looks at a law at all means of one seed; pure, for use under ``jit`` and ``vmap``.

    At every mean: the probabilities, the cumulants, the least and the largest reward that can be
    drawn, and one at random. Sums follow from these, unless the law has samplers of its own.

    Args:
        law: Static.
        means: The instance's.
        parameters: The law's at these means, [row, arm] or [1, arm] each.
        exists: Which rows do; others have no mean.
        words: Key of a stream that nothing else draws from.
        whole: Whether to tell what is broken, besides whether something is; slower.
    """
    # Without a barrier, the compiler would draw the means anew for each value below.
    means, parameters, words = lax.optimization_barrier((means, parameters, words))
    shape, law_low, law_high = means.shape, law.low, law.high
    several = [jnp.broadcast_to(each, shape) for each in parameters]
    spare = _ERROR * jnp.maximum(1.0, abs(means))

    def outside(values: Array, low: float, high: float) -> Array:
        over = _ERROR * max(1.0, abs(high)) if math.isfinite(high) else 0.0
        under = _ERROR * max(1.0, abs(low)) if math.isfinite(low) else 0.0
        # Written so that NaN is outside.
        return ~(jnp.isfinite(values) & (values >= low - under) & (values <= high + over))

    found: list[tuple[int, Array, Array]] = []
    if isinstance(law, FiniteSupport):
        table = jnp.stack(several)
        bad = outside(table, 0.0, 1.0)
        found += [(_PROBABILITY, bad[level], table[level]) for level in range(len(several))]
        total, mean = table.sum(axis=0), jnp.tensordot(jnp.asarray(law.values), table, 1)
        found.append((_SUM, ~(abs(total - 1.0) <= _ERROR), total))
        found.append((_MEAN, ~(abs(mean - means) <= spare), mean))
    cumulants = [jnp.broadcast_to(each, shape) for each in law.cumulants(*several)]
    # The decay is used only by laws on a lattice.
    found += [(_CUMULANT, ~jnp.isfinite(each), each) for each in cumulants[: 7 if law.step else 6]]
    first = law_low + law.step * cumulants[0] if law.step else cumulants[0]
    found.append((_FIRST, ~(abs(first - means) <= spare), first))
    found.append((_VARIANCE, ~(cumulants[1] >= -_ERROR), cumulants[1]))
    lane = jnp.arange(means.size, dtype=jnp.uint32)
    flat = [each.reshape(-1) for each in several]
    before = jnp.full(means.size, -math.inf)
    for u in (2.0**-53, uniform(*words, lane), 1.0 - 2.0**-53):
        drawn = law.one(jnp.broadcast_to(jnp.asarray(u), lane.shape), *flat)
        bad = outside(drawn, law_low, law_high) | ~(drawn >= before)
        found.append((_REWARD, bad.reshape(shape), drawn.reshape(shape)))
        before = drawn

    wrong = [bad & exists[:, None] for _, bad, _ in found]
    kept = ~functools.reduce(jnp.logical_or, [each.any() for each in wrong])
    if not whole:
        return Looked(kept)
    which, values = jnp.stack(wrong).reshape(-1), jnp.stack([v for *_, v in found]).reshape(-1)
    place = jnp.argmax(which)
    rules = jnp.asarray([rule for rule, _, _ in found], jnp.int32)
    return Looked(
        kept, rules[place // means.size], values[place], means.reshape(-1)[place % means.size]
    )


def refuse_broken(law: Law, found: Looked, seed: int | None = None) -> NoReturn:
    """Refuses a law that `looked_at` found something wrong with; the line names the law.

    Args:
        law: Whose.
        found: The whole of it, on the host.
        seed: Whose means they are, if they are a seed's.

    Raises:
        Refusal: Always.
    """
    rule, value, mean = (np.asarray(each).item() for each in found[1:])
    function, what, allowed = _RULES[rule]
    told = Shown(f"{what}{value:g} at mean {mean:g}")
    told = told if seed is None else Shown(f"{told}, seed {seed}")
    allowed = allowed.format(low=law.low, high=law.high)
    refuse(f"{type(law).__name__}.{function}", told, allowed, f"mend {function} of {law.name}")


# Means of the conformance test, and uniforms at each.
_MANY_MEANS, _MANY_UNIFORMS = 401, 4096


def check_everywhere(law: Law) -> None:
    """Refuses a law that breaks its contract anywhere between the points of `check_law`.

    At many means: what every run looks at, and at many uniforms that rewards stay in range, do not
    decrease with u, lie on the lattice and, where the range is finite, have the cumulants that are
    stated.

    Raises:
        ValueError: For what is broken first; the line names the law.
    """
    check_law(law)
    if isinstance(law, Ratings):  # a problem checks the whole table
        return
    refuse_after_fork()
    rng = np.random.default_rng(6)
    inner = np.concatenate([np.linspace(0.0, 1.0, 101)[1:-1], rng.random(_MANY_MEANS - 99)])
    ends = [0.0, 1.0] if math.isfinite(law.sensitivity) else []
    means = _means_at(law, np.concatenate([inner, ends]))
    with own_settings():
        static, traced = law.bind()
        values = {name: jnp.asarray(value) for name, value in traced.items()}
        parameters = static.parameters(jnp.asarray(means[None]), **values)
        given = (jnp.asarray(means[None]), parameters, jnp.ones(1, bool))
        found = looked_at(static, *given, Words(jnp.uint32(0), jnp.uint32(0)), whole=True)
        if not bool(found.kept):
            refuse_broken(law, found)
        _check_rewards(law, static, means, [jnp.asarray(each) for each in _arrays(law, means)])


def _check_rewards(law: Law, static: Law, means: np.ndarray, parameters: list[Array]) -> None:
    """Refuses rewards that decrease with u, lie beside the lattice, or have other cumulants."""
    name, low, high = f"{type(law).__name__}.one", law.low, law.high
    middle = (np.arange(_MANY_UNIFORMS) + 0.5) / _MANY_UNIFORMS
    u = np.concatenate([[2.0**-53], middle, [1.0 - 2.0**-53]])
    shape = (len(u), len(means))
    spread = [jnp.broadcast_to(each, shape) for each in parameters]
    drawn = np.asarray(static.one(jnp.broadcast_to(jnp.asarray(u)[:, None], shape), *spread))
    slack = _ERROR * max(1.0, *(abs(x) for x in (low, high) if math.isfinite(x)), 1.0)
    inside = np.isfinite(drawn) & (drawn >= low - slack) & (drawn <= high + slack)
    inside[1:] &= drawn[1:] >= drawn[:-1]
    allowed = f"rewards in [{low:g}, {high:g}] that do not decrease with u"
    if law.step and inside.all():
        steps = (drawn - low) / law.step
        inside = abs(steps - np.round(steps)) <= 1e-6
        allowed = f"{low:g} plus a multiple of {law.step:g}, its step"
    if not inside.all():
        place, mean = (int(i) for i in np.argwhere(~inside)[0])
        told = f"{drawn[place, mean]:g} at u = {u[place]:.6g}, mean {means[mean]:g}"
        refuse(name, Shown(told), allowed, "return the quantile of a reward")
    if not math.isfinite(law.sensitivity):
        return
    # Quantiles on midpoints give a moment to within the function's variation over their number.
    stated = [np.asarray(each) for each in static.cumulants(*parameters)][:6]
    unit = law.step or 1.0
    k2, k3, k4, k5, k6 = (unit**n * stated[n - 1] for n in range(2, 7))
    moments = (
        *(k2, k3, k4 + 3 * k2**2, k5 + 10 * k3 * k2),
        k6 + 15 * k4 * k2 + 10 * k3**2 + 15 * k2**3,
    )
    off = drawn[1:-1] - means
    for order, (moment, power) in enumerate(zip((0.0 * k2, *moments), range(1, 7), strict=True), 1):
        found = (off**power).mean(axis=0)
        error = 2.0 * law.sensitivity**power / _MANY_UNIFORMS + slack
        wrong = ~(abs(found - moment) <= error)
        if wrong.any():
            mean = int(wrong.argmax())
            told = f"central moment {order} of {found[mean]:.4g}, stated {moment[mean]:.4g}"
            told += f" at mean {means[mean]:g}"
            allowed = "the rewards whose cumulants are stated"
            refuse(name, Shown(told), allowed, f"mend one or cumulants of {law.name}")
