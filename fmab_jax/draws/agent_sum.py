"""Agents of one mean, which all report: one draw of rewards per arm, and one of noise."""

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
class AgentSum(Draws):
    """Agents of one mean and one weight.

    Attributes:
        shape: [1, 24] polynomial of their noise (`laplace.laplace_sum`); None for one agent.
    """

    shape: Table | None

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Rewards, and noise."""
        return {"rewards": (), **({"noise": ()} if self.noisy else {})}

    def sample(self, arms: Arms, round_: Round) -> Sums:
        """Draws the rewards of all agents, and their noise."""
        pulls = jnp.where(arms["alive"], round_.fresh * self.agents, 0.0)
        rewards = self.law.total(*round_.rewards, arms["arm"], pulls, *arms["parameters"])
        if not self.noisy:
            return {"rewards": rewards}
        u = keys.uniform(*round_.noise, arms["arm"])
        if self.shape is None:
            noise = laplace.quantile(u)
        else:
            noise = self.shape.apply(_sum_noise, normal.quantile(u))
        return {"rewards": rewards, "noise": rounded(round_.scale * noise)}

    def sum_agents(self, sums: Sums, round_: Round) -> PerArm:
        """Returns the sum of rewards and noise, over the number of agents."""
        return (sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]) / self.agents


def _sum_noise(shape: Array, z: Array) -> Array:
    return laplace.laplace_sum(z, shape)
