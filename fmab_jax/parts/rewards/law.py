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
import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from fmab_jax.parts.plugins import Named
from fmab_jax.sampling import arrays, samplers
from fmab_jax.sampling.keys import uniform
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.rare import rare
from fmab_jax.sampling.shapes import Bits, PerRowArm, Reals, Record, Truths

Sums = Reals
Cumulants = Sequence[Array] | Float[Array, "7 ..."]


@dataclass(frozen=True)
class Law(Named):
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
        """The largest change of a sum by one changed reward."""
        return self.high - self.low

    def describe(self) -> Record:
        """Returns a JSON-able description that identifies the law."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
        return {"law": self.name, **plain}

    def label(self) -> str:
        """Returns a text of the law, for captions and tables."""
        fields = "".join(
            f", {f.name} {getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if isinstance(getattr(self, f.name), numbers.Real)
        )
        return f"{self.name} rewards{fields}"

    def bind(self) -> tuple[Law, dict[str, np.ndarray]]:
        """Returns the law without its traced fields, the key of a compilation, and these fields."""
        values = {name: np.asarray(np.float64(getattr(self, name))) for name in self.traced}
        static = copy.copy(self)
        for name in self.traced:
            object.__setattr__(static, name, None)
        return static, values

    def parameters(self, means: PerRowArm, **traced: Array | np.ndarray) -> tuple[Array, ...]:
        """Returns the arguments of other methods: arrays [row, arm], or [1, arm] for all rows."""
        return (means,)

    @abstractmethod
    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the first six cumulants of one reward, and its decay.

        Where the law has a step they are those of (reward - low) / step, and the decay is a lower
        bound of -log|characteristic function| over all frequencies in [1, pi]; else it is not used.
        """
        raise NotImplementedError

    @abstractmethod
    def one(self, u: Array, *parameters: Array) -> Reals:
        """Returns the quantile of one reward at a uniform u in (0, 1); non-decreasing in u."""
        raise NotImplementedError

    def smooth(self, cumulants: Cumulants) -> Truths:
        """Tells where the cumulants of a sum determine its law."""
        # A sum without variance is its mean.
        degenerate = cumulants[1] == 0.0
        return degenerate | samplers.is_smooth(cumulants, self.step > 0.0)

    def quantile(self, u: Sums, pulls: Sums, cumulants: Cumulants) -> Sums:
        """Returns the quantile of a sum of ``pulls`` rewards with these cumulants."""
        if self.step == 0.0:
            value = samplers.smooth_quantile(u, cumulants)
            # No pulls of a law without a bound are 0, not NaN.
            ends = (x * pulls if math.isfinite(x) else x for x in (self.low, self.high))
            return jnp.clip(value, *ends)
        # Divide by whole numbers if the range is finite: 3 steps of 1/3 are then exactly 1.
        per_unit, most = 1.0 / self.step, math.inf
        if math.isfinite(self.sensitivity):
            most = round(self.sensitivity / self.step)
            per_unit = most / self.sensitivity
        value = jnp.clip(samplers.lattice_quantile(u, cumulants), 0.0, most * pulls)
        return arrays.rounded(self.low * pulls) + value / per_unit

    def doubtful_step(self, u: Sums, cumulants: Sequence[Array]) -> Sums:
        """Returns the sum s if `quantile` may have confused s and the next sum; else NaN."""
        raise NotImplementedError

    def at_most(self, step: Sums, pulls: Sums, membership: Array, *parameters: Array) -> Sums:
        """Returns the probability that the sum over the members, with ``pulls`` each, <= step."""
        raise NotImplementedError

    def total(self, k0: Bits, k1: Bits, lane: Bits, pulls: Sums, *parameters: Array) -> Sums:
        """Samples sums of ``pulls`` rewards of one distribution; elementwise, with broadcasting.

        Args:
            k0: First word of a stream's key.
            k1: Second word.
            lane: Lanes of independent sums.
            pulls: Whole numbers >= 0.
            *parameters: Results of `parameters`, one element per sum.
        """
        cumulants = [pulls * order for order in self.cumulants(*parameters)]
        sums = self.quantile(uniform(k0, k1, lane), pulls, cumulants)
        if self.always_smooth:
            return sums
        # A sum without variance is its mean.
        few = ~self.smooth(cumulants) & (cumulants[1] != 0.0)
        few = jnp.broadcast_to(few, sums.shape)
        return rare(few, self.exact, sums, k0, k1, lane, pulls, *parameters)

    def exact(self, k0: Bits, k1: Bits, lane: Bits, pulls: Sums, *parameters: Array) -> Sums:
        """Samples sums that are too small for their cumulants; by default pull by pull, exactly."""

        def is_pulled(number: Array) -> Bool[Array, " lane"]:
            return number.astype(jnp.float64) < pulls

        def add_pull(state: tuple[Array, Array]) -> tuple[Array, Array]:
            number, total = state
            reward = self.one(uniform(k0, k1, lane, number), *parameters)
            return number + 1, total + jnp.where(is_pulled(number), reward, 0.0)

        start = (jnp.uint32(0), jnp.zeros(pulls.shape))
        return lax.while_loop(
            lambda state: anywhere(jnp.any(is_pulled(state[0]))), add_pull, start
        )[1]
