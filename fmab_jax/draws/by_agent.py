"""Agents one by one, each with sums of its own: while messages travel they act on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fmab_jax.core import keys, laplace, normal
from fmab_jax.core.arrays import padded_sum, rounded, sum_in_turn
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import STATIC, PerArm
from fmab_jax.draws.base import Arms, Draws, Round, Sums, noise_of_groups, participants


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ByAgent(Draws):
    """A row for each agent; all are drawn in every epoch, whoever is heard.

    Attributes:
        partial: Whether those that are heard are drawn anew each round.
        merged: Whether noise is added to an agent's rewards at once: nobody acts on them without.
        real: [agent] whether a row is one.
        weights: [agent] of each; [0] where all that are heard weigh the same.
        noise_weights: [group] of each agent of a group, of which noise is drawn together; [0] for
            one group.
        shapes: [1, group x 24] of the law of its noise (`laplace.laplace_sum`); None where each
            agent has its own.
    """

    partial: bool = field(metadata=STATIC)
    merged: bool = field(metadata=STATIC)
    real: Bool[Array, " agent"]
    weights: Float[Array, " agent"]
    noise_weights: Float[Array, " group"]
    shapes: Table | None

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Of the rewards of each agent, and of its noise, or that of each group."""
        rows = (self.real.shape[-1],)
        if self.merged or not self.noisy:
            return {"rewards": rows}
        if self.shapes is None:
            return {"rewards": rows, "noise": rows}
        return {"rewards": rows, "noise": (max(1, self.noise_weights.shape[-1]),)}

    def fixed(self, instance: Instance) -> Arms:
        """Returns the reward law's constants, [arm, agent], or [arm, 1] where they are shared."""
        return {"parameters": tuple(x.T for x in instance.parameters)}

    def remember(self, memory: Any, key: Array, now: Round) -> tuple[Any, Any]:
        """Returns who is heard, where that differs from round to round."""
        if not self.partial:
            return (), memory
        return participants(self, key, now.number), memory

    def sample(self, arms: Arms, now: Round) -> Sums:
        """Draws the rewards of each agent, and noise."""
        agent = jnp.arange(self.real.shape[-1], dtype=jnp.uint32)[None]
        arm, real = arms["arm"][:, None], self.real[None]
        lane = agent * jnp.uint32(self.arms) + arm
        pulls = jnp.where(arms["alive"], now.fresh, 0.0)[:, None]
        rewards = self.law.total(*now.rewards, lane, pulls, *arms["parameters"])
        rewards = jnp.where(real, rewards, 0.0)
        if not self.noisy:
            return {"rewards": rewards}
        if self.shapes is None:
            noise = rounded(now.scale * laplace.quantile(keys.uniform(*now.noise, lane)))
            noise = jnp.where(real, noise, 0.0)
            if self.merged:
                return {"rewards": rewards + noise}
            return {"rewards": rewards, "noise": noise}
        group = jnp.arange(self.sums["noise"][0], dtype=jnp.uint32)[None]
        z = normal.quantile(keys.uniform(*now.noise, group * jnp.uint32(self.arms) + arm))
        noise = rounded(now.scale * self.shapes.apply(noise_of_groups, z))
        return {"rewards": rewards, "noise": noise}

    def total(self, sums: Sums, now: Round) -> PerArm:
        """Returns rewards and noise, weighted."""
        rewards, noise = sums["rewards"].T, sums["noise"].T if "noise" in sums else None
        if self.partial:
            sent = rewards if noise is None else rewards + noise
            return sum_in_turn(jnp.where(now.seen[:, None], sent, 0.0)) / self.reporting
        if not self.weights.shape[-1]:
            total = padded_sum(rewards)
            return (total if noise is None else total + noise[0]) / self.agents
        weights = self.weights[:, None]
        if noise is None or self.shapes is None:
            return padded_sum(rounded(weights * (rewards if noise is None else rewards + noise)))
        heard = padded_sum(rounded(weights * rewards))
        return heard + padded_sum(rounded(self.noise_weights[:, None] * noise))
