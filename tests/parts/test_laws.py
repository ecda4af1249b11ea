"""A law that breaks its contract is refused, by its own name, when a problem is made with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plugs import ThreePoint
from refusals import refused
from scipy.stats import binom

from fmab_jax import simulate, uniform_play
from fmab_jax.parts.rewards import Bernoulli, FiniteSupport, Gaussian, Law
from fmab_jax.parts.rewards.law_checks import check_law, check_numbers
from fmab_jax.records.problem import Problem


def finite(chances=None, levels=(0.0, 0.5, 1.0), **more):
    """Returns a law on finitely many values; by default a right one, without the middle."""
    right = chances or (lambda means: (1 - means, 0 * means, means))
    result = {"name": "own", "levels": levels, "parameters": lambda self, means, **_: right(means)}
    return dataclass(frozen=True)(type("Own", (FiniteSupport,), result | more))()


def other(**more):
    """Returns a law of uniform rewards around the mean, 0.2 wide, with something changed."""
    spread = 0.1**2 / 3
    zero = (lambda p: 0.0 * p,) * 5
    result = {
        "name": "own",
        "low": -math.inf,
        "high": math.inf,
        "cumulants": lambda self, p: (p, 0 * p + spread, *(item(p) for item in zero)),
        "one": lambda self, u, p: p + 0.2 * (u - 0.5),
    }
    return dataclass(frozen=True)(type("Own", (Law,), result | more))()


def shifted(low=-2.0, step=0.5, **more):
    """Returns a law of two values on a lattice that does not begin at 0: low, and a step above."""
    result = {
        "low": low,
        "high": low + step,
        "step": step,
        "cumulants": lambda self, p: Bernoulli().cumulants((p - low) / step),
        "one": lambda self, u, p: low + step * Bernoulli().one(u, (p - low) / step),
    }
    return other(**(result | more))


@dataclass(frozen=True)
class Table(FiniteSupport):
    """A law with an array."""

    name = "table"
    levels = (0.0, 1.0)
    own: Any = None

    def parameters(self, means, **traced):
        return 1 - means, means


class Plain(Bernoulli):
    """A law without a decorator."""

    name = "plain"


def test_right_laws_are_taken():
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
        assert Problem(means, 2, rewards=law).rewards is law


OWN = "Own='own': must be a class that states"
BROKEN = {
    "no distribution": (lambda: finite(lambda m: (m, m, m)), "Own.parameters=sum 0 at mean 0: "),
    "below 0": (lambda: finite(lambda m: (1.5 - m, -0.5, m)), "Own.parameters=1.5 at mean 0: "),
    "another mean": (
        *(lambda: finite(lambda m: (m, 0 * m, 1 - m)), "Own.parameters=mean 1 at mean 0: "),
    ),
    "too few levels": (lambda: finite(levels=(0.0, 1.0)), "Own.parameters=3: must be 2 prob"),
    "levels that decrease": (
        *(lambda: finite(levels=(1.0, 0.5, 0.0)), "Own.levels=(1.0, 0.5, 0.0): must be increasing"),
    ),
    "a failure": (lambda: finite(lambda m: 1 // 0), "Own='own': must be a law that can be comp"),
    "an array": (lambda: Table(np.ones(2)), "Table='table': must be a law whose fields are fin"),
    "undecorated": (Plain, "Plain='plain': must be a frozen dataclass"),
    "no cumulants": (lambda: other(cumulants=Law.cumulants), f"{OWN} cumulants; "),
    "no quantile": (lambda: other(one=Law.one), f"{OWN} one;"),
    "six cumulants": (
        *(lambda: other(cumulants=lambda self, p: (p,) * 6), "Own.cumulants=6: must be six cumul"),
    ),
    "a mean without the lowest value": (
        lambda: shifted(cumulants=lambda self, p: Bernoulli().cumulants(p / 0.5)),
        "Own.cumulants=first -3.99951 at mean -1.99951: must be the mean first",
    ),
    "a negative variance": (
        lambda: other(cumulants=lambda self, p: (p, -p, *(p,) * 5)),
        "Own.cumulants=variance -0.000976562 at mean 0.000976562: must be variances second",
    ),
    "a reward out of range": (lambda: other(low=0.5, high=0.6), "Own.one="),
    "a quantile that decreases": (lambda: other(one=lambda self, u, p: p - u), "Own.one="),
    # None at means near 0.31 alone.
    "a probability of 5": (lambda: between((5.0, 0.0, -4.0)), "Own.parameters=5 at mean 0.3"),
    "no distribution at some means": (
        *(lambda: between((0.5, 0.5, 0.5)), "Own.parameters=sum 1.5 at mean 0.3"),
    ),
    "another mean at some means": (
        *(lambda: between((0.2, 0.4, 0.4)), "Own.parameters=mean 0.6 at mean 0.3"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_law_that_breaks_its_contract_is_named(what):
    """Would catch numbers from no distribution, or a law that is tried out at a few means alone."""
    make, line = BROKEN[what]
    assert refused(check_law, make()).startswith(line)


def between(wrong, low=0.3, high=0.32):
    """Returns a law on finitely many values that is none at means that nobody probes."""
    right = (lambda m: 1 - m, lambda m: 0 * m, lambda m: m)

    def chances(means):
        there = (means > low) & (means < high)
        return tuple(jnp.where(there, x, own(means)) for x, own in zip(wrong, right, strict=True))

    return finite(chances)


def bounded(**more):
    """Returns the uniform law on [0, 2p] or [2p - 1, 1], with something changed."""

    def cumulants(self, p):
        wide = 2 * jnp.minimum(p, 1 - p)
        zero = 0.0 * p
        return p, wide**2 / 12, zero, -(wide**4) / 120, zero, wide**6 / 252, zero

    def one(self, u, p):
        return p + 2 * jnp.minimum(p, 1 - p) * (u - 0.5)

    return other(**({"low": 0.0, "high": 1.0, "cumulants": cumulants, "one": one} | more))


def test_a_problem_looks_at_the_means_that_it_fixes():
    """Would catch a law that is none where a run draws from it: its epsilon would be false."""
    law = between((0.5, 0.5, 0.5), 0.30999, 0.31001)
    # Nothing is seen where nothing is wrong; then one arm of one agent lies where it is.
    problem = Problem([[0.9, 0.5, 0.1], [0.8, 0.4, 0.2]], rewards=law)
    assert np.isfinite(simulate(uniform_play(), problem, 20, 3).regret).all()
    line = refused(Problem, [[0.9, 0.5, 0.1], [0.8, 0.4, 0.31]], rewards=law)
    assert line.startswith("Own.parameters=sum 1.5 at mean 0.31: must be 1 in sum"), line
    # Nor is one of many means left out.
    assert refused(check_law, law, [0.2, 0.31, *np.linspace(0.4, 0.9, 40_000)]) == line


def test_the_ends_of_the_range_count_where_means_can_lie_there():
    """Would catch a law refused for a mean that it is never asked for, or asked for one unseen."""
    right = bounded()
    law = bounded(one=lambda self, u, p: jnp.where(p == 1, jnp.nan, right.one(u, p)))
    assert Problem([0.9, 0.5], 2, rewards=law).rewards is law
    assert Problem.uniform(2, 2, rewards=law).rewards is law
    for make in (
        lambda: Problem.heterogeneous(2, 2, rewards=law),
        lambda: Problem([1.0, 0.5], 2, rewards=law),
    ):
        assert refused(make).startswith("Own.one=nan at mean 1 and u = ")


# One of the uniforms that the conformance test takes, near which no random number lies.
SELDOM = 1200.5 / 4096

EVERYWHERE = {
    "a quantile that decreases": (
        lambda: bounded(one=lambda self, u, p: jnp.where(abs(u - SELDOM) < 1e-6, 0.0, p)),
        "Own.one=0 at mean 0.000976562 and u = 0.293",
    ),
    "cumulants of another law": (
        lambda: bounded(one=lambda self, u, p: p + 0.0 * u),
        "Own.one=central moment 2 of 0 at mean 0.",
    ),
    "a sixth cumulant of another law": (
        lambda: bounded(
            cumulants=lambda self, p: (*type(bounded()).cumulants(self, p)[:5], 0 * p + 0.2, p)
        ),
        "Own.one=central moment 6 of ",
    ),
    "a reward beside the lattice": (
        lambda: shifted(
            0.0, 1.0, one=lambda self, u, p: jnp.where(u > 1 - p, 1.0, jnp.where(u > 0.5, 0.3, 0.0))
        ),
        "Own.one=0.3 at mean 0.000976562 and u = 0.500122: ",
    ),
}


@pytest.mark.parametrize("what", EVERYWHERE)
def test_a_law_is_looked_at_everywhere(what):
    """Would catch a law that keeps its contract at the ends and breaks it inside."""
    make, output = EVERYWHERE[what]
    assert refused(check_numbers, make()).startswith(output)


def test_right_laws_are_right_everywhere():
    """Would catch a bound that refuses what rounding or midpoints leave."""
    for law in (finite(), between((0.5, 0.0, 0.5), 0.4999, 0.5001), bounded(), other()):
        check_numbers(law)
    for law in (shifted(), shifted(3.0, 2.0), Bernoulli(), Gaussian(0.3), ThreePoint(0.7)):
        check_numbers(law)


@pytest.mark.parametrize(("low", "step"), [(-2.0, 0.5), (3.0, 2.0)])
def test_sums_on_a_lattice_begin_at_its_lowest_value(low, step):
    """Would catch a lattice whose lowest value, or whose step, is left out of a sum."""
    law, u = shifted(low, step), (np.arange(49) + 0.5) / 49
    with jax.enable_x64(True):
        quantile = jax.jit(law.quantile)
        one = jnp.stack(law.cumulants(jnp.full(49, low + 0.4 * step)))
        actual = np.asarray(quantile(jnp.asarray(u), jnp.full(49, 700.0), 700.0 * one))
        ends = jnp.asarray([1e-15, 1 - 1e-15])
        edges = np.asarray(quantile(ends, jnp.full(2, 2.0), 2.0 * one[:, :2]))
    np.testing.assert_allclose(actual, 700 * low + step * binom.ppf(u, 700, 0.4), rtol=1e-14)
    assert ((2 * low <= edges) & (edges <= 2 * (low + step))).all()
