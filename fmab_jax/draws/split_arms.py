"""Agents of one mean that split the arms: each pulls a part of them, more often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fmab_jax.draws.base import Arms, Draws, Sums
from fmab_jax.equations import Epoch
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.shapes import Integer, PerArm, Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitArms(Draws):
    """Agents that split the arms; pulls are of all agents together.

    Attributes:
        counts: [number, width] of the noise of 0, 1, ... agents (`Mechanism.tabulate`), or of one
            noise.
    """

    counts: Table

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Rewards, noise, and the number of Laplace variables in it."""
        return {"rewards": (), "noises": (), **({"noise": ()} if self.noisy else {})}

    shares_arms = True

    @property
    def counts_noises(self) -> bool:
        """Whether each agent that pulls an arm adds a Laplace variable."""
        return self.noisy and not self.secure

    def count_terms(self, arms: Arms, epoch: Epoch) -> tuple[Scalar, Scalar | PerArm]:
        """Returns the counts of each arm; pulls are of all agents."""
        _, noises = super().count_terms(arms, epoch)
        pulls = epoch.pulls if self.remembers else epoch.drawn
        return pulls, arms["noises"] if self.counts_noises else noises

    def bound_pulls(self, horizon: Scalar) -> Scalar:
        """Returns the bound for all agents together."""
        return horizon * self.agents

    def count_slots(self, active: Scalar, fresh: Scalar) -> Integer:
        """Returns the slots of an epoch of all agents together."""
        pulls, agents = super().count_slots(active, fresh), self.agents.astype(jnp.int64)
        return (pulls + agents - 1) // agents

    def aggregate(self, arms: Arms, epoch: Epoch) -> tuple[Arms, PerArm]:
        """Returns as `Draws.aggregate`; counts the noises that the aggregate holds."""
        sums, mean = super().aggregate(arms, epoch)
        if not self.remembers:
            sums["noises"] = sums["noises"] - arms["noises"]
        return sums, mean

    def sample(self, arms: Arms, epoch: Epoch) -> Sums:
        """Draws rewards and noise, and counts the agents that pull each arm as ``noises``."""
        pulls = jnp.where(arms["alive"], epoch.drawn, 0.0)
        rewards = self.law.total(*epoch.reward_key, arms["arm"], pulls, *arms["parameters"])
        parts = self.count_parts(arms, epoch)
        sums = {"rewards": rewards, "noises": parts.astype(jnp.float64)}
        if not self.noisy:
            return sums
        constants = self.counts.at((parts * 0 if self.secure else parts).astype(jnp.int32)).T

        def read(function: Callable[..., Array], *arrays: Array) -> Array:
            return function(constants, *arrays)

        noise = self.mechanism.sample_tabulated(epoch.noise_key, arms["arm"], epoch.scale, read)
        return sums | {"noise": rounded(noise)}

    def count_parts(self, arms: Arms, epoch: Epoch) -> Int[Array, " arm"]:
        """Returns how many agents pull each arm in play.

        All pulls of an epoch form one line, arm by arm, cut into equal parts, one per agent. An
        agent spends its remaining slots on the arms in play, and does not report them.
        """
        slots, pulls = jnp.maximum(epoch.slots, 1), epoch.drawn.astype(jnp.int64)
        rank = arms["rank"].astype(jnp.int64)
        first, last = rank * pulls // slots, ((rank + 1) * pulls - 1) // slots
        return jnp.where(arms["alive"], last - first + 1, 0)

    def sum_agents(self, sums: Sums, epoch: Epoch) -> PerArm:
        """Returns the sum of rewards and noise of all agents."""
        return sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]
