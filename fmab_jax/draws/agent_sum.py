"""Agents of one mean, which all report: one draw of rewards per arm, and one of noise."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from fmab_jax.draws.base import (
    Arms,
    Draws,
    Segment,
    Sums,
    at_segment,
    read_fresh,
    sample_noise,
)
from fmab_jax.equations import Epoch
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.shapes import PerArm, Scalar


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

    def sample(self, arms: Arms, epoch: Epoch) -> Sums:
        """Draws the rewards of all agents, and their noise."""

        def draw(words: Words, segment: Segment, fresh: Scalar) -> PerArm:
            pulls = jnp.where(arms["alive"], fresh * self.agents, 0.0)
            parameters = (at_segment(x, segment) for x in arms["parameters"])
            return self.law.total(*words, arms["arm"], pulls, *parameters)

        rewards = self.sum_segments(epoch, draw, read_fresh(epoch))
        if not self.noisy:
            return {"rewards": rewards}
        if self.counts is None:
            noise = rounded(self.mechanism.sample(epoch.noise_key, arms["arm"], epoch.scale))
        else:
            noise = sample_noise(self, epoch, arms["arm"], self.counts)
        return {"rewards": rewards, "noise": noise}

    def sum_agents(self, sums: Sums, epoch: Epoch) -> PerArm:
        """Returns the sum of rewards and noise, over the number of agents."""
        return (sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]) / self.agents
