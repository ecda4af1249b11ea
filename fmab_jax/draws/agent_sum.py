"""Agents of one mean, which all report: one draw of rewards per arm, and one of noise."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from fmab_jax.core.arrays import rounded
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import PerArm
from fmab_jax.draws.base import Arms, Draws, Round, Sums, sample_noise


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AgentSum(Draws):
    """Agents of one mean and one weight.

    Attributes:
        counts: [1, width] of their noise (`Mechanism.tabulate`); None for one agent.
    """

    counts: Table | None

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
        if self.counts is None:
            noise = rounded(self.mechanism.sample(round_.noise, arms["arm"], round_.scale))
        else:
            noise = sample_noise(self, round_, arms["arm"], self.counts)
        return {"rewards": rewards, "noise": noise}

    def sum_agents(self, sums: Sums, round_: Round) -> PerArm:
        """Returns the sum of rewards and noise, over the number of agents."""
        return (sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]) / self.agents
