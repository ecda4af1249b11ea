"""Normal rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.parameters import Real, parameter, parameters_of
from fmab_jax.parts.rewards.law import Cumulants, Law, Sums
from fmab_jax.sampling import arrays, normal
from fmab_jax.sampling.keys import uniform
from fmab_jax.sampling.shapes import Bits, PerRowArm, Reals


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
        """Returns a text of the law."""
        return f"Gaussian rewards, sd {self.sd!r}"

    def parameters(self, means: PerRowArm, **traced: Array | np.ndarray) -> tuple[Array, ...]:
        """Returns the means and the deviation, shared by all rows."""
        return means, jnp.broadcast_to(traced["sd"], (1, means.shape[1]))

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the mean, the variance and nothing else."""
        mean, sd = jnp.broadcast_arrays(*parameters)
        return (mean, sd * sd, *[jnp.zeros_like(mean)] * 5)

    def one(self, u: Array, *parameters: Array) -> Reals:
        """Returns one normal reward."""
        mean, sd = parameters
        return mean + arrays.rounded(sd * normal.quantile(u))

    def quantile(self, u: Sums, pulls: Sums, cumulants: Cumulants) -> Sums:
        """Returns the normal quantile of the sum."""
        noise = arrays.rounded(jnp.sqrt(cumulants[1]) * normal.quantile(u))
        return arrays.rounded(cumulants[0]) + noise

    def total(self, k0: Bits, k1: Bits, lane: Bits, pulls: Sums, *parameters: Array) -> Sums:
        """Samples pulls mean + sqrt(pulls) sd Normal."""
        mean, sd = parameters
        noise = arrays.rounded(jnp.sqrt(pulls) * sd * normal.quantile(uniform(k0, k1, lane)))
        return arrays.rounded(pulls * mean) + noise
