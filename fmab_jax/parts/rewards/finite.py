"""Rewards with finitely many values, such as ratings."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from fmab_jax.errors import length, real, refuse
from fmab_jax.parts.rewards.law import Law, Sums
from fmab_jax.sampling import arrays, binomials
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import Bits, PerRowArm, Reals, Record

MAX_LEVELS = 1000
# Most steps from the lowest level to the highest: sixth powers, summed over pulls, are finite.
_MOST_STEPS = 10**40
# With more steps from the lowest level to the highest, only combs of width 1 are considered.
_MAX_COMB = 12
# Up to so many rewards are drawn one by one.
_PULL_BY_PULL = 16.0


class _Lattice(NamedTuple):
    """Levels as multiples of their largest common step.

    Attributes:
        steps: [level] whole numbers, the first 0.
        span: The last of them.
    """

    steps: tuple[int, ...]
    span: int


@functools.lru_cache
def _make_lattice(levels: tuple[float, ...]) -> _Lattice:
    # As decimals, 0.1, 0.2 and 0.3 are equidistant.
    exact = [Fraction(repr(float(level))) for level in levels]
    above = [level - exact[0] for level in exact]
    shared = math.lcm(*(x.denominator for x in above))
    whole = [int(x * shared) for x in above]
    step = math.gcd(*whole)
    return _Lattice(tuple(x // step for x in whole), whole[-1] // step)


@functools.lru_cache
def _list_comb_frequencies(span: int) -> tuple[float, ...]:
    """Returns the frequencies of combs in [1, pi]: multiples of 2 pi / d, and midpoints."""
    combs = {2.0 * math.pi * k / d for d in range(1, span + 1) for k in range(1, d // 2 + 1)}
    frequencies = sorted({1.0, math.pi} | {t for t in combs if 1.0 < t < math.pi})
    midpoints = [(a + b) / 2.0 for a, b in zip(frequencies, frequencies[1:], strict=False)]
    return tuple(sorted([*frequencies, *midpoints]))


@dataclass(frozen=True)
class FiniteSupport(Law):
    """Rewards with finitely many values; parameters: one probability array per level.

    A subclass states ``levels`` and `parameters`. Rewards are scaled to [0, 1]: (level - lowest) /
    (highest - lowest).

    Attributes:
        levels: Two or more increasing numbers.
    """

    levels: ClassVar[tuple[float, ...]]

    @abstractmethod
    def parameters(self, means: PerRowArm, **traced: Array | np.ndarray) -> tuple[Array, ...]:
        """Returns the probability of each level, lowest first, at some means."""
        raise NotImplementedError

    def describe(self) -> Record:
        """Returns a JSON-able description that identifies the law."""
        return super().describe() | {"levels": list(self.levels)}

    @property
    def values(self) -> tuple[float, ...]:
        """The rewards, in [0, 1]."""
        steps, span = _make_lattice(self.levels)
        return tuple(step / span for step in steps)

    @property
    def step(self) -> float:  # type: ignore[override]
        """The largest number of which all values are multiples."""
        return 1.0 / _make_lattice(self.levels).span

    def mean(self, *probabilities: Array) -> Reals:
        """Returns the mean reward."""
        terms = [
            arrays.rounded(p * value) for p, value in zip(probabilities, self.values, strict=True)
        ]
        return arrays.padded_sum(jnp.stack(terms))

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns six cumulants and the decay, in lattice steps."""
        steps, span = _make_lattice(self.levels)
        mean = _dot(parameters, steps)
        powers = [[p] for p in parameters]
        for power, step in zip(powers, steps, strict=True):
            off = float(step) - mean
            for _ in range(6):
                power.append(power[-1] * off)
        orders = list(zip(*powers, strict=True))
        m2, m3, m4, m5, m6 = (functools.reduce(jnp.add, moment) for moment in orders[2:])
        square = m2 * m2
        return (
            *(mean, m2, m3, m4 - 3.0 * square, m5 - 10.0 * m3 * m2),
            m6 - 15.0 * m4 * m2 - 10.0 * m3 * m3 + 30.0 * square * m2,
            self._decay(steps, span, *parameters),
        )

    def _decay(self, steps: tuple[int, ...], span: int, *parameters: Array) -> Array:
        """Bounds -log|phi(t)| by the sum over pairs of p_i p_j (1 - cos((x_i - x_j) t))."""
        pair_weights: dict[int, Array] = {}
        for i, upper in enumerate(steps):
            for j, lower in enumerate(steps[:i]):
                if upper - lower == 1 or span <= _MAX_COMB:
                    pair = parameters[i] * parameters[j]
                    pair_weights[upper - lower] = pair_weights.get(upper - lower, 0.0) + pair
        if span > _MAX_COMB:
            # The bound of neighbouring levels is lowest at frequency 1.
            return pair_weights.get(1, jnp.zeros_like(parameters[0])) * (1.0 - math.cos(1.0))
        shares = tuple(pair_weights.values())
        bounds = (
            _dot(shares, [1.0 - math.cos(d * t) for d in pair_weights])
            for t in _list_comb_frequencies(span)
        )
        return functools.reduce(jnp.minimum, bounds)

    def one(self, u: Array, *parameters: Array) -> Reals:
        """Returns the value whose share of (0, 1) holds u."""
        reward, below = jnp.zeros(jnp.shape(u)), jnp.zeros(jnp.shape(u))
        values = self.values
        for p, value, next_value in zip(parameters[:-1], values, values[1:], strict=False):
            below = below + p
            reward = reward + jnp.where(u > below, next_value - value, 0.0)
        return reward

    def exact(self, k0: Bits, k1: Bits, lane: Bits, pulls: Sums, *parameters: Array) -> Sums:
        """Samples the count of each level: a binomial of the pulls that earlier levels left."""
        # A few pulls are cheaper one by one.
        many_pulls = jnp.where(pulls > _PULL_BY_PULL, pulls, 0.0)
        few_sums = super().exact(k0, k1, lane, pulls - many_pulls, *parameters)
        # Sums from the highest level down keep the digits of small shares.
        tails = [parameters[-1]]
        for p in parameters[-2::-1]:
            tails.append(tails[-1] + p)
        shares = [p / jnp.maximum(r, 1e-300) for p, r in zip(parameters, tails[::-1], strict=True)]
        share = jnp.minimum(jnp.stack(shares[:-1]), 1.0)
        step = jnp.asarray(_make_lattice(self.levels).steps, jnp.float64)

        def is_unfinished(state: tuple[Array, Array, Array]) -> Array:
            number, left, _ = state
            return (number < len(shares) - 1) & anywhere(jnp.any(left > 0.0))

        def draw_level(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            number, left, total = state
            draw = number.astype(jnp.uint32)
            met = binomials.binomials(Words(k0, k1), lane, left, share[number], draw)
            return number + 1, left - met, total + met * step[number]

        start = (jnp.int32(0), many_pulls, jnp.zeros(pulls.shape))
        _, left, total = lax.while_loop(is_unfinished, draw_level, start)
        return few_sums + (total + left * step[-1]) / step[-1]


@dataclass(frozen=True)
class Ratings(FiniteSupport):
    """Ratings with a table of probabilities, which the problem states: `Problem.ratings`.

    Attributes:
        levels: Two or more increasing finite numbers, such as 1, 2, 3, 4, 5. Rewards are scaled to
            [0, 1]: (level - lowest) / (highest - lowest).

    Example:
        >>> import fmab_jax as fmab
        >>> law = fmab.Ratings([1, 2, 3, 4, 5])
        >>> law.values, law.sensitivity
        ((0.0, 0.25, 0.5, 0.75, 1.0), 1.0)
    """

    name: ClassVar[str] = "ratings"

    levels: Any  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", checked_levels(self.levels))

    def label(self) -> str:
        """Returns a text of the law."""
        texts = [repr(x).removesuffix(".0") for x in self.levels]
        if len(texts) > 6:
            texts = [*texts[:2], "...", texts[-1]]
        return f"ratings {', '.join(texts)}"

    def parameters(self, means: PerRowArm, **traced: Array | np.ndarray) -> tuple[Array, ...]:
        """Returns the columns of a table ``probabilities`` [row, arm, level]."""
        return tuple(jnp.moveaxis(traced["probabilities"], -1, 0))


def _dot(values: Sequence[Array], factors: Sequence[float]) -> Array:
    return functools.reduce(
        jnp.add, [x * float(factor) for x, factor in zip(values, factors, strict=True)]
    )


def checked_levels(levels: object) -> tuple[float, ...]:
    """Returns levels as increasing floats.

    Raises:
        ValueError: If they are none.
    """
    remedy = "give the possible ratings, such as [1, 2, 3, 4, 5]"
    allowed = f"2 to {MAX_LEVELS:,} increasing numbers"
    if (
        not isinstance(levels, (list, tuple, range, np.ndarray))
        or getattr(levels, "ndim", 1) != 1
        or not 2 <= length(levels) <= MAX_LEVELS
    ):
        refuse("levels", levels, allowed, remedy)
    numbers = tuple(
        real(f"levels[{i}]", level, -1e15, 1e15, remedy) + 0.0 for i, level in enumerate(levels)
    )
    if any(b <= a for a, b in zip(numbers, numbers[1:], strict=False)):
        refuse("levels", levels, "increasing", "sort them and drop repeated ones")
    if _make_lattice(numbers).span > _MOST_STEPS:
        allowed = "multiples of 1e-40 of the distance from the lowest to the highest"
        refuse("levels", levels, allowed, "round them")
    return numbers
