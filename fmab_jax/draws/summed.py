"""Agents of one mean, all of them heard: one draw of rewards for an arm, and one of noise."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax.core import keys, laplace, normal
from fmab_jax.core.arrays import rounded
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import PerArm
from fmab_jax.draws.base import Arms, Draws, Round, Sums


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Summed(Draws):
    """Agents of one mean that weigh the same.

    Attributes:
        shape: [1, 24] of the law of their noise (`laplace.laplace_sum`); None for one agent alone.
    """

    shape: Table | None

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Of rewards, and of noise."""
        return {"rewards": (), **({"noise": ()} if self.noisy else {})}

    def sample(self, arms: Arms, now: Round) -> Sums:
        """Draws the rewards of all agents, and their noise."""
        pulls = jnp.where(arms["alive"], now.fresh * self.agents, 0.0)
        rewards = self.law.total(*now.rewards, arms["arm"], pulls, *arms["parameters"])
        if not self.noisy:
            return {"rewards": rewards}
        u = keys.uniform(*now.noise, arms["arm"])
        if self.shape is None:
            noise = laplace.quantile(u)
        else:
            noise = self.shape.apply(_sum_of_noise, normal.quantile(u))
        return {"rewards": rewards, "noise": rounded(now.scale * noise)}

    def total(self, sums: Sums, now: Round) -> PerArm:
        """Returns rewards and noise, over the number of agents."""
        return (sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]) / self.agents


def _sum_of_noise(shape: Array, z: Array) -> Array:
    return laplace.laplace_sum(z, shape)
