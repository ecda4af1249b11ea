"""Rewards of 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax.parts.rewards.law import Cumulants, Law, Sums
from fmab_jax.sampling import binomials
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.shapes import Bits, Reals, Truths

# About 64, not round: natural tables must not lie on the border, where rounding would decide.
_SMOOTH = 20.4 * math.pi
# About 10, likewise: the expansion is then less than half a count off, but for 1e-7 of the draws.
_CHECKED = 3.2 * math.pi


@dataclass(frozen=True)
class Bernoulli(Law):
    """Rewards 0 and 1; parameters: the means.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.Problem(agents=5, arms=10).rewards == fmab.Bernoulli()
        True
        >>> fmab.Bernoulli().sensitivity
        1.0
    """

    name: ClassVar[str] = "bernoulli"
    step: ClassVar[float] = 1.0
    checked_from: ClassVar[float] = _CHECKED

    def label(self) -> str:
        """Returns a text of the law."""
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

    def smooth(self, cumulants: Cumulants) -> Truths:
        """Tells where the variance is large enough, for agents that differ as well."""
        return (cumulants[1] == 0.0) | (cumulants[1] >= _SMOOTH)

    def doubtful_step(self, u: Sums, cumulants: Sequence[Array]) -> Sums:
        """Returns the nearest count if the expansion may err by more than the distance to it."""
        return binomials.doubtful_step(u, cumulants)

    def at_most(self, step: Sums, pulls: Sums, membership: Array, *parameters: Array) -> Sums:
        """Returns the distribution function of a sum of binomials."""
        return binomials.binomials_at_most(step, pulls, membership, parameters[0])

    def one(self, u: Array, *parameters: Array) -> Reals:
        """Returns 1 with probability p."""
        return jnp.where(u > 1.0 - parameters[0], 1.0, 0.0)

    def total(self, k0: Bits, k1: Bits, lane: Bits, pulls: Sums, *parameters: Array) -> Sums:
        """Samples Binomial(pulls, p)."""
        return binomials.binomials(Words(k0, k1), lane, pulls, parameters[0])
