"""Reward laws: how one reward, and the sum of many, is distributed around its mean.

A law is a frozen dataclass below `Law`. It states its range, the first cumulants of one reward and
its quantile function; everything else follows. Sums of rewards are one draw, whatever their number:
cumulants add up over pulls and over agents, and where there are enough rewards six of them give the
law of the sum to within 1e-6 (`samplers.is_smooth`). Elsewhere the sum is drawn exactly, or drawn
from its cumulants and looked up in its exact law where they do not decide (`Law.at_most`).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, UInt32

from fmab_jax.core import arrays, normal, samplers
from fmab_jax.core.keys import uniform
from fmab_jax.errors import flag, real, refuse
from fmab_jax.parameters import Real, parameter, parameters_of

MAX_LEVELS = 1000
# Most steps from the lowest level to the highest: sixth powers, summed over pulls, are finite.
_MOST_STEPS = 10**40
# Up to this many steps from the lowest level to the highest, combs of every width are looked for.
_MAX_COMB = 12
# About 64, but no round number: no natural table is on the border, where rounding would decide.
_SMOOTH_BERNOULLI = 20.4 * math.pi
# About 10, likewise: the expansion is then less than half a count off, but for 1e-7 of the draws.
_CHECKED_BERNOULLI = 3.2 * math.pi
# Up to so many rewards of finitely many values are drawn one by one.
_PULL_BY_PULL = 16.0


@dataclass(frozen=True)
class Law:
    """How one reward is distributed, given its mean; rewards are independent.

    A subclass states ``name``, ``cumulants`` and ``one``, and whatever differs from the defaults.
    ``parameters`` turns means into the arrays that all other methods get, one element per reward
    distribution; they must be elementwise, in JAX, in float64.

    Attributes:
        name: The law's own, for descriptions and options.
        low: Smallest reward; -inf if there is none.
        high: Largest reward.
        step: Distance of neighbouring values ``low + step * k``; 0 for a law without a lattice.
        always_smooth: Whether six cumulants always say everything, as for a normal law.
        checked_from: Variance from which on six cumulants give a sum over agents to within one
            step, and `at_most` tells which one. Infinity for a law without `at_most`.
        traced: Names of fields that are values of the compiled program: another value compiles
            nothing. ``parameters`` gets them by name.

    Example:
        A law of one's own: uniform around the mean, up to the nearer end of [0, 1]. A law of
        finitely many values states only their probabilities: see ``docs/own_algorithm.md``.

        >>> from dataclasses import dataclass
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> @dataclass(frozen=True)
        ... class Around(fmab.Law):
        ...     name = "around"
        ...
        ...     def parameters(self, means, **traced):
        ...         return means, jnp.minimum(means, 1.0 - means)
        ...
        ...     def cumulants(self, mean, half):
        ...         none = jnp.zeros_like(mean)
        ...         orders = half**2 / 3.0, none, -2.0 * half**4 / 15.0, none, 16.0 * half**6 / 63.0
        ...         return mean, *orders, none
        ...
        ...     def one(self, u, mean, half):
        ...         return mean + half * (2.0 * u - 1.0)
        >>> problem = fmab.Problem([0.9, 0.6, 0.2], agents=5, rewards=Around())
        >>> data = fmab.simulate(fmab.cdp_mab(None), problem, horizon=1000, seeds=20)
        >>> problem.rewards.label(), problem.rewards.sensitivity, bool(data.regret.max() > 0.0)
        ('around rewards', 1.0, True)
    """

    name: ClassVar[str]
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    step: ClassVar[float] = 0.0
    always_smooth: ClassVar[bool] = False
    checked_from: ClassVar[float] = math.inf
    traced: ClassVar[tuple[str, ...]] = ()

    @property
    def sensitivity(self) -> float:
        """How far one changed reward can move a sum."""
        return self.high - self.low

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description that identifies the law."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        shown = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
        return {"law": self.name, **shown}

    def label(self) -> str:
        """Returns the law in words, for captions and tables."""
        fields = "".join(
            f", {f.name} {getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if isinstance(getattr(self, f.name), numbers.Real)
        )
        return f"{self.name} rewards{fields}"

    def bind(self) -> tuple[Law, dict[str, np.ndarray]]:
        """Returns the law without its traced fields, as a compilation's key, and these fields."""
        values = {name: np.asarray(np.float64(getattr(self, name))) for name in self.traced}
        static = copy.copy(self)
        for name in self.traced:
            object.__setattr__(static, name, None)
        return static, values

    def parameters(self, means: Float[Array, "row arm"], **traced: Any) -> tuple[Array, ...]:
        """Returns what the other methods get: arrays [row, arm], or [1, arm] shared by all rows."""
        return (means,)

    @abstractmethod
    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the first six cumulants of one reward, and its decay.

        Where the law has a step they are those of (reward - low) / step, and the decay is a lower
        bound of -log|characteristic function| over all frequencies in [1, pi]; else it is not used.
        """
        raise NotImplementedError

    @abstractmethod
    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns the quantile of one reward at a uniform u in (0, 1); non-decreasing in u."""
        raise NotImplementedError

    def smooth(self, cumulants: Sequence[Array] | Float[Array, "7 ..."]) -> Bool[Array, ...]:
        """Tells where the cumulants of a sum give its law."""
        # A sum without variance is its mean.
        sure = cumulants[1] == 0.0
        return sure | samplers.is_smooth(cumulants, self.step > 0.0)

    def quantile(
        self,
        u: Float[Array, " lane"],
        pulls: Float[Array, " lane"],
        cumulants: Sequence[Array] | Float[Array, "7 lane"],
    ) -> Float[Array, " lane"]:
        """Returns the quantile of a sum of ``pulls`` rewards with these cumulants."""
        if self.step == 0.0:
            found = samplers.smooth_quantile(u, cumulants)
            return jnp.clip(found, self.low * pulls, self.high * pulls)
        # Divide by whole numbers if the range is finite: 3 steps of 1/3 are then exactly 1.
        per_unit, most = 1.0 / self.step, math.inf
        if math.isfinite(self.sensitivity):
            most = round(self.sensitivity / self.step)
            per_unit = most / self.sensitivity
        found = jnp.clip(samplers.lattice_quantile(u, cumulants), 0.0, most * pulls)
        return arrays.rounded(self.low * pulls) + found / per_unit

    def doubtful_step(
        self, u: Float[Array, " lane"], cumulants: Sequence[Array]
    ) -> Float[Array, " lane"]:
        """Returns the sum s for which `quantile` may have confused s and the next; NaN for none."""
        raise NotImplementedError

    def at_most(
        self,
        step: Float[Array, " lane"],
        pulls: Float[Array, " lane"],
        inside: Float[Array, "row lane"],
        *parameters: Float[Array, "row lane"],
    ) -> Float[Array, " lane"]:
        """Returns the probability that the agents inside, with so many pulls each, get <= step."""
        raise NotImplementedError

    def total(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples sums of ``pulls`` rewards of one distribution; elementwise.

        Args:
            k0: First word of a stream's key.
            k1: Second word.
            lane: Which independent sum.
            pulls: Whole numbers >= 0.
            *parameters: Of `parameters`, one element per sum.
        """
        cumulants = [pulls * order for order in self.cumulants(*parameters)]
        sums = self.quantile(uniform(k0, k1, lane), pulls, cumulants)
        if self.always_smooth:
            return sums
        few = ~self.smooth(cumulants)
        return arrays.fill(self.few, few, sums, k0, k1, lane, pulls, *parameters)

    def small(
        self, pulls: Float[Array, " lane"], *parameters: Array
    ) -> Bool[Array, " lane"] | None:
        """Tells which rows `totals` draws in another way; None for a law that has one way."""
        return None

    def totals(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, "row lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
        small: bool = False,
    ) -> Float[Array, "row lane"]:
        """Samples what `total` does, in rows of sums that share pulls and parameters.

        Args:
            k0: First word of a stream's key.
            k1: Second word.
            lane: Which independent sums.
            pulls: Whole numbers >= 0.
            *parameters: Of `parameters`, one element per row.
            small: Whether `small` is true of all rows.
        """
        flag("small", small)
        operands = (k0[None], k1[None], lane, pulls[None], *(x[None] for x in parameters))
        flat = [jnp.broadcast_to(x, lane.shape).reshape(-1) for x in operands]
        return self.total(*flat).reshape(lane.shape)

    def total_of_few(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples what `total` does, where most sums are expected to be small; not under vmap."""
        return self.total(k0, k1, lane, pulls, *parameters)

    def few(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples sums that are too small for their cumulants: here pull by pull, exactly."""

        def made(number: Array) -> Bool[Array, " lane"]:
            return number.astype(jnp.float64) < pulls

        def pull(state: tuple[Array, Array]) -> tuple[Array, Array]:
            number, total = state
            reward = self.one(uniform(k0, k1, lane, number), *parameters)
            return number + 1, total + jnp.where(made(number), reward, 0.0)

        start = (jnp.uint32(0), jnp.zeros(pulls.shape))
        start = arrays.varying_like(start, k0, k1, lane, pulls, *parameters)
        return lax.while_loop(lambda state: jnp.any(made(state[0])), pull, start)[1]


@dataclass(frozen=True)
class Bernoulli(Law):
    """Rewards 0 and 1; parameters: the means.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.Problem.uniform(agents=5, arms=10).rewards == fmab.Bernoulli()
        True
        >>> fmab.Bernoulli().sensitivity
        1.0
    """

    name: ClassVar[str] = "bernoulli"
    step: ClassVar[float] = 1.0
    checked_from: ClassVar[float] = _CHECKED_BERNOULLI

    def label(self) -> str:
        """Returns the law in words."""
        return "Bernoulli rewards"

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns six cumulants and the decay."""
        (p,) = parameters
        q = 1.0 - p
        pq = p * q
        skew = pq * (q - p)
        return (
            *(p, pq, skew, pq * (1.0 - 6.0 * pq), skew * (1.0 - 12.0 * pq)),
            *(pq * (1.0 - 30.0 * pq * (1.0 - 4.0 * pq)), pq * (1.0 - math.cos(1.0))),
        )

    def smooth(self, cumulants: Sequence[Array] | Float[Array, "7 ..."]) -> Bool[Array, ...]:
        """Tells where the variance is large enough, for agents that differ as well."""
        return (cumulants[1] == 0.0) | (cumulants[1] >= _SMOOTH_BERNOULLI)

    def doubtful_step(
        self, u: Float[Array, " lane"], cumulants: Sequence[Array]
    ) -> Float[Array, " lane"]:
        """Returns the nearest count where the expansion errs by more than the distance to it."""
        return samplers.doubtful_step(u, cumulants)

    def at_most(
        self,
        step: Float[Array, " lane"],
        pulls: Float[Array, " lane"],
        inside: Float[Array, "row lane"],
        *parameters: Float[Array, "row lane"],
    ) -> Float[Array, " lane"]:
        """Returns the distribution function of a sum of binomials."""
        return samplers.binomials_at_most(step, pulls, inside, parameters[0])

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns 1 with probability p."""
        return jnp.where(u > 1.0 - parameters[0], 1.0, 0.0)

    def total(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples Binomial(pulls, p)."""
        return samplers.binomial_quantile(uniform(k0, k1, lane), pulls, parameters[0])

    def small(
        self, pulls: Float[Array, " lane"], *parameters: Array
    ) -> Bool[Array, " lane"] | None:
        """Tells which binomials are summed."""
        return samplers.is_summed(pulls, parameters[0])

    def totals(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, "row lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
        small: bool = False,
    ) -> Float[Array, "row lane"]:
        """Samples Binomial(pulls, p), in rows that share both."""
        flag("small", small)
        quantiles = samplers.summed_binomials if small else samplers.expanded_binomials
        return quantiles(uniform(k0[None], k1[None], lane), pulls, parameters[0])

    def total_of_few(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples Binomial(pulls, p), sooner where all are small."""
        u = uniform(k0, k1, lane)
        return samplers.binomial_quantile(u, pulls, parameters[0], few=True)


@dataclass(frozen=True)
class Gaussian(Law):
    """Normal rewards around any finite mean; parameters: the means, sd.

    Attributes:
        sd: Standard deviation of one reward, in (0, 1e9].

    Example:
        Rewards without a range take no noise:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem([0.9, 0.6, 0.2], agents=5, rewards=fmab.Gaussian(0.1))
        >>> problem.rewards.label()
        'Gaussian rewards, sd 0.1'
        >>> fmab.cdp_mab(None).check_noise(problem, epsilon=float("inf"))
    """

    name: ClassVar[str] = "gaussian"
    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = math.inf
    always_smooth: ClassVar[bool] = True
    traced: ClassVar[tuple[str, ...]] = ("sd",)

    sd: float = parameter(
        Real(low=0.0, high=1e9, open_low=True),
        "Standard deviation of one reward.",
        keyword=False,
        remedy="give the standard deviation of one reward",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "sd", parameters_of(type(self))["sd"].check(self.sd))

    def label(self) -> str:
        """Returns the law in words."""
        return f"Gaussian rewards, sd {self.sd!r}"

    def parameters(self, means: Float[Array, "row arm"], **traced: Any) -> tuple[Array, ...]:
        """Returns the means and the deviation, shared by all rows."""
        return means, jnp.broadcast_to(traced["sd"], (1, means.shape[1]))

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the mean, the variance and nothing else."""
        mean, sd = jnp.broadcast_arrays(*parameters)
        return (mean, sd * sd, *[jnp.zeros_like(mean)] * 5)

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns one normal reward."""
        mean, sd = parameters
        return mean + arrays.rounded(sd * normal.quantile(u))

    def quantile(
        self,
        u: Float[Array, " lane"],
        pulls: Float[Array, " lane"],
        cumulants: Sequence[Array] | Float[Array, "7 lane"],
    ) -> Float[Array, " lane"]:
        """Returns the normal quantile of the sum."""
        noise = arrays.rounded(jnp.sqrt(cumulants[1]) * normal.quantile(u))
        return arrays.rounded(cumulants[0]) + noise

    def total(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples pulls mean + sqrt(pulls) sd Normal."""
        mean, sd = parameters
        noise = arrays.rounded(jnp.sqrt(pulls) * sd * normal.quantile(uniform(k0, k1, lane)))
        return arrays.rounded(pulls * mean) + noise


class _Lattice(NamedTuple):
    """Levels as multiples of their largest common step.

    Attributes:
        steps: [level] whole numbers, the first 0.
        span: The last of them.
    """

    steps: tuple[int, ...]
    span: int


@functools.lru_cache
def _lattice(levels: tuple[float, ...]) -> _Lattice:
    # Levels are read as the decimals that are written: 0.1, 0.2 and 0.3 are equally far apart.
    exact = [Fraction(repr(float(level))) for level in levels]
    above = [level - exact[0] for level in exact]
    shared = math.lcm(*(x.denominator for x in above))
    whole = [int(x * shared) for x in above]
    step = math.gcd(*whole)
    return _Lattice(tuple(x // step for x in whole), whole[-1] // step)


@functools.lru_cache
def _comb_frequencies(span: int) -> tuple[float, ...]:
    """Returns where in [1, pi] a comb could show: multiples of 2 pi / d, and points between."""
    combs = {2.0 * math.pi * k / d for d in range(1, span + 1) for k in range(1, d // 2 + 1)}
    found = sorted({1.0, math.pi} | {t for t in combs if 1.0 < t < math.pi})
    between = [(a + b) / 2.0 for a, b in zip(found, found[1:], strict=False)]
    return tuple(sorted([*found, *between]))


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
    def parameters(self, means: Float[Array, "row arm"], **traced: Any) -> tuple[Array, ...]:
        """Returns the probability of each level, lowest first, at some means."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description that identifies the law."""
        return super().describe() | {"levels": list(self.levels)}

    @property
    def values(self) -> tuple[float, ...]:
        """The rewards, in [0, 1]."""
        steps, span = _lattice(self.levels)
        return tuple(step / span for step in steps)

    @property
    def step(self) -> float:  # type: ignore[override]
        """The largest number of which all values are multiples."""
        return 1.0 / _lattice(self.levels).span

    def mean(self, *probabilities: Array) -> Float[Array, ...]:
        """Returns the mean reward."""
        terms = [
            arrays.rounded(p * value) for p, value in zip(probabilities, self.values, strict=True)
        ]
        return arrays.padded_sum(jnp.stack(terms))

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns six cumulants and the decay, in lattice steps."""
        steps, span = _lattice(self.levels)
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
        apart: dict[int, Array] = {}
        for i, upper in enumerate(steps):
            for j, lower in enumerate(steps[:i]):
                if upper - lower == 1 or span <= _MAX_COMB:
                    pair = parameters[i] * parameters[j]
                    apart[upper - lower] = apart.get(upper - lower, 0.0) + pair
        if span > _MAX_COMB:
            # Only neighbouring levels count here; the bound is lowest at frequency 1.
            return apart.get(1, jnp.zeros_like(parameters[0])) * (1.0 - math.cos(1.0))
        shares = tuple(apart.values())
        bounds = (
            _dot(shares, [1.0 - math.cos(d * t) for d in apart]) for t in _comb_frequencies(span)
        )
        return functools.reduce(jnp.minimum, bounds)

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns the value whose share of (0, 1) holds u."""
        reward, below = jnp.zeros(jnp.shape(u)), jnp.zeros(jnp.shape(u))
        values = self.values
        for p, here, following in zip(parameters[:-1], values, values[1:], strict=False):
            below = below + p
            reward = reward + jnp.where(u > below, following - here, 0.0)
        return reward

    def few(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Samples how often each level is met: a binomial of what the levels before it left."""
        # Small numbers of pulls are drawn pull by pull, which is cheaper for them.
        several = jnp.where(pulls > _PULL_BY_PULL, pulls, 0.0)
        fewest = super().few(k0, k1, lane, pulls - several, *parameters)
        # Summed from the highest level down, so that shares of the rest lose no digits.
        rest = [parameters[-1]]
        for p in parameters[-2::-1]:
            rest.append(rest[-1] + p)
        shares = [p / jnp.maximum(r, 1e-300) for p, r in zip(parameters, rest[::-1], strict=True)]
        share = jnp.minimum(jnp.stack(shares[:-1]), 1.0)
        step = jnp.asarray(_lattice(self.levels).steps, jnp.float64)

        def unfinished(state: tuple[Array, Array, Array]) -> Array:
            number, left, _ = state
            return (number < len(shares) - 1) & jnp.any(left > 0.0)

        def level(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            number, left, total = state
            u = uniform(k0, k1, lane, number.astype(jnp.uint32))
            met = samplers.binomial_quantile(u, left, share[number])
            return number + 1, left - met, total + met * step[number]

        start = (jnp.int32(0), several, jnp.zeros(pulls.shape))
        start = arrays.varying_like(start, k0, k1, lane, pulls, *parameters)
        _, left, total = lax.while_loop(unfinished, level, (start[0], several, start[2]))
        return fewest + (total + left * step[-1]) / step[-1]


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
        """Returns the law in words."""
        shown = [repr(x).removesuffix(".0") for x in self.levels]
        if len(shown) > 6:
            shown = [*shown[:2], "...", shown[-1]]
        return f"ratings {', '.join(shown)}"

    def parameters(self, means: Float[Array, "row arm"], **traced: Any) -> tuple[Array, ...]:
        """Returns the columns of a table ``probabilities`` [row, arm, level]."""
        return tuple(jnp.moveaxis(traced["probabilities"], -1, 0))


def _dot(values: Sequence[Array], factors: Sequence[float]) -> Array:
    return functools.reduce(
        jnp.add, [x * float(factor) for x, factor in zip(values, factors, strict=True)]
    )


def checked_levels(levels: Any) -> tuple[float, ...]:
    """Returns levels as increasing floats.

    Raises:
        ValueError: If they are none.
    """
    remedy = "give the possible ratings, such as [1, 2, 3, 4, 5]"
    allowed = f"2 to {MAX_LEVELS:,} increasing numbers"
    try:
        # The length is checked first: a range may be huge.
        fits = not isinstance(levels, (str, bytes, dict, set)) and 2 <= len(levels) <= MAX_LEVELS
        given = list(levels) if fits else []
    except Exception:  # no length, or an object that raises
        given = []
    if not given:
        refuse("levels", levels, allowed, remedy)
    found = tuple(
        real(f"levels[{i}]", level, -1e15, 1e15, remedy) + 0.0 for i, level in enumerate(given)
    )
    if any(b <= a for a, b in zip(found, found[1:], strict=False)):
        refuse("levels", levels, "increasing", "sort them and drop repeated ones")
    if _lattice(found).span > _MOST_STEPS:
        allowed = "multiples of 1e-40 of the distance from the lowest to the highest"
        refuse("levels", levels, allowed, "round them")
    return found
