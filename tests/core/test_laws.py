"""A law that breaks its contract is refused, by its own name, when a problem is made with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from fmab_jax.core.laws import check_law
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Bernoulli, FiniteSupport, Law
from fmab_jax.errors import Refusal


def finite(chances: Any = None, levels: Any = (0.0, 0.5, 1.0), **more: Any) -> Any:
    """Returns a law on finitely many values; by default a right one, without the middle."""
    right = chances or (lambda means: (1 - means, 0 * means, means))
    made = {
        "name": "own",
        "levels": levels,
        "parameters": lambda self, means, **_: right(means),
    }
    return dataclass(frozen=True)(type("Own", (FiniteSupport,), made | more))()


def other(**more: Any) -> Any:
    """Returns a law of uniform rewards around the mean, 0.2 wide, with something changed."""
    spread = 0.1**2 / 3
    zero = (lambda p: 0.0 * p,) * 5
    made = {
        "name": "own",
        "low": -math.inf,
        "high": math.inf,
        "cumulants": lambda self, p: (p, 0 * p + spread, *(each(p) for each in zero)),
        "one": lambda self, u, p: p + 0.2 * (u - 0.5),
    }
    return dataclass(frozen=True)(type("Own", (Law,), made | more))()


def shifted(low: float = -2.0, step: float = 0.5, **more: Any) -> Any:
    """Returns a law of two values on a lattice that does not begin at 0: low, and a step above."""
    made = {
        "low": low,
        "high": low + step,
        "step": step,
        "cumulants": lambda self, p: Bernoulli().cumulants((p - low) / step),
        "one": lambda self, u, p: low + step * Bernoulli().one(u, (p - low) / step),
    }
    return other(**(made | more))


@dataclass(frozen=True)
class Table(FiniteSupport):
    """A law with an array."""

    name = "table"
    levels = (0.0, 1.0)
    own: Any = None

    def parameters(self, means: Any, **traced: Any) -> Any:
        """Returns two probabilities."""
        return 1 - means, means


class Plain(Bernoulli):
    """A law without a decorator."""

    name = "plain"


def test_right_laws_are_taken() -> None:
    """Would catch a check that refuses what keeps the contract, at the ends or by rounding."""
    inside = [0.5, 0.25]
    for law, means in (
        (finite(), inside),
        (finite(levels=(1, 2, 3)), inside),
        (finite(lambda m: (1 - m + 1e-17, 0 * m, m)), inside),
        (other(), inside),
        (shifted(), [-1.75, -1.9]),
        (shifted(3.0, 2.0), [3.5, 4.5]),
        (other(low=0.0, one=lambda self, u, p: -p * jnp.log1p(-u)), inside),
        (Table((1, 2)), inside),
    ):
        assert Problem(means, 2, law).rewards is law


BROKEN = {
    "no distribution": (lambda: finite(lambda m: (m, m, m)), "Own.parameters='sum 0.0 at mean 0'"),
    "below 0": (lambda: finite(lambda m: (1.5 - m, -0.5, m)), "Own.parameters='[1.5, -0.5, 0.0]"),
    "another mean": (lambda: finite(lambda m: (m, 0 * m, 1 - m)), "Own.parameters='mean 1.0 at"),
    "too few levels": (lambda: finite(levels=(0.0, 1.0)), "Own.parameters=3: must be 2 prob"),
    "one level": (lambda: finite(levels=(0.0,)), "Own.levels=(0.0,): must be 2 to 1,000 incr"),
    "levels that decrease": (
        lambda: finite(levels=(1.0, 0.5, 0.0)),
        "Own.levels=(1.0, 0.5, 0.0): must be increasing",
    ),
    "levels in a list": (lambda: finite(levels=[0, 1]), "Own.levels=[0, 1]: must be a tuple"),
    "no levels": (lambda: finite(levels=None), "Own.levels=None: must be a tuple"),
    "nan": (lambda: finite(lambda m: (m * jnp.nan, m, m)), "Own.parameters='[nan, 0.0, 0.0]"),
    "a failure": (lambda: finite(lambda m: 1 // 0), "Own='own': must be a law that can be comp"),
    "no parameters": (
        lambda: finite(parameters=FiniteSupport.parameters),
        "Own='own': must be a class that states parameters; define Own.parameters: Returns",
    ),
    "no name": (lambda: finite(name=None), "Own.name=None: must be a text"),
    "an array": (lambda: Table(np.ones(2)), "Table='table': must be a law whose fields are fin"),
    "an infinity": (lambda: Table(math.inf), "Table='table': must be a law whose fields are fin"),
    "undecorated": (Plain, "Plain='plain': must be a frozen dataclass"),
    "no cumulants": (
        lambda: other(cumulants=Law.cumulants),
        "Own='own': must be a class that states cumulants; define Own.cumulants: Returns the",
    ),
    "no quantile": (lambda: other(one=Law.one), "Own='own': must be a class that states one;"),
    "six cumulants": (
        lambda: other(cumulants=lambda self, p: (p,) * 6),
        "Own.cumulants=6: must be six cumulants and the decay",
    ),
    "a mean that is not the mean": (
        lambda: other(cumulants=lambda self, p: (2 * p,) * 7),
        "Own.cumulants='[0.5, 1.0, 1.5] at means [0.25, 0.5, 0.75]': must be the means first",
    ),
    "a mean without the lowest value": (
        lambda: shifted(cumulants=lambda self, p: Bernoulli().cumulants(p / 0.5)),
        "Own.cumulants='[-3.875, -3.75, -3.625] at means [-1.875, -1.75, -1.625]': must be the",
    ),
    "a mean in rewards where it is in steps": (
        lambda: shifted(3.0, 2.0, cumulants=lambda self, p: Bernoulli().cumulants(p)),
        "Own.cumulants='[10.0, 11.0, 12.0] at means [3.5, 4.0, 4.5]': must be the means first",
    ),
    "a negative variance": (
        lambda: other(cumulants=lambda self, p: (p, -p, *(p,) * 5)),
        "Own.cumulants=[-0.25, -0.5, -0.75]: must be variances second",
    ),
    "a reward out of range": (lambda: other(low=0.5, high=0.6), "Own.one=["),
    "a quantile that decreases": (lambda: other(one=lambda self, u, p: p - u), "Own.one=[0."),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_law_that_breaks_its_contract_is_named(what: str) -> None:
    """Would catch numbers from no distribution, a traceback, or blame for the algorithm."""
    make, told = BROKEN[what]
    with pytest.raises(Refusal) as caught:
        check_law(make())
    assert str(caught.value).startswith(told) and "\n" not in str(caught.value)


def test_a_problem_looks_at_its_law() -> None:
    """Would catch a law that is never looked at: its numbers would be those of no distribution."""
    law = finite()
    assert Problem([0.5, 0.25], 2, law).rewards is law
    with pytest.raises(Refusal, match=r"^Own.parameters='mean 1.0 at"):
        Problem([0.5, 0.25], 2, BROKEN["another mean"][0]())


@pytest.mark.parametrize(("low", "step"), [(-2.0, 0.5), (3.0, 2.0)])
def test_sums_on_a_lattice_begin_at_its_lowest_value(low: float, step: float) -> None:
    """Would catch a lattice whose lowest value, or whose step, is left out of a sum, and a sum
    beyond what so many rewards can be."""
    law, u = shifted(low, step), (np.arange(49) + 0.5) / 49
    with jax.enable_x64(True):
        quantile = jax.jit(law.quantile)
        one = jnp.stack(law.cumulants(jnp.full(49, low + 0.4 * step)))
        found = np.asarray(quantile(jnp.asarray(u), jnp.full(49, 700.0), 700.0 * one))
        ends = jnp.asarray([1e-15, 1 - 1e-15])
        edges = np.asarray(quantile(ends, jnp.full(2, 2.0), 2.0 * one[:, :2]))
    np.testing.assert_allclose(found, 700 * low + step * binom.ppf(u, 700, 0.4), rtol=1e-14)
    assert ((2 * low <= edges) & (edges <= 2 * (low + step))).all()
