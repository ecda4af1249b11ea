"""Agents in groups of one weight, all of them heard: one draw of rewards for a group and an arm."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fmab_jax.core import keys, normal, sums
from fmab_jax.core.arrays import padded_sum, rounded
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import STATIC, PerArm
from fmab_jax.draws.base import Arms, Draws, Round, Sums, noise_of_groups


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Groups(Draws):
    """Agents that weigh the same are a group; the means of its agents may differ.

    Attributes:
        differ: Whether they do.
        sizes: [group] agents of each.
        weights: [group] weight of each of its agents; [0] for one group.
        first: [group] its first agent.
        member: [group, agent] 1 where an agent is in a group; where means differ.
        shapes: [1, group x 24] of the law of their noise (`laplace.laplace_sum`).
    """

    differ: bool = field(metadata=STATIC)
    sizes: Float[Array, " group"]
    weights: Float[Array, " group"]
    first: Int[Array, " group"]
    member: Table
    shapes: Table

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Of the rewards of each group, and of its noise."""
        groups = (self.sizes.shape[-1],)
        return {"rewards": groups, **({"noise": groups} if self.noisy else {})}

    def fixed(self, instance: Instance) -> Arms:
        """Returns the cumulants of all agents of a group; their parameters are a table."""
        if not self.differ:
            return super().fixed(instance)
        cumulants = sums.group_cumulants(self.law, instance.parameters, self.member.values)
        row = jnp.arange(self.arms, dtype=jnp.int32)
        return {
            "cumulants": jnp.moveaxis(cumulants, 2, 0),
            "parameters": tuple(Table(x.T, row) for x in instance.parameters),
        }

    def sample(self, arms: Arms, now: Round) -> Sums:
        """Draws the rewards of each group, and its noise."""
        group = jnp.arange(self.sizes.shape[-1], dtype=jnp.uint32)[None]
        arm, sizes = arms["arm"][:, None], self.sizes[None]
        pulls = jnp.where(arms["alive"], now.fresh, 0.0)[:, None]
        lane = group * jnp.uint32(self.arms) + arm
        if self.differ:
            members = Table(self.member.values, self.member.row + group.astype(jnp.int32))
            tables = [Table(x.values, x.row[:, None]) for x in arms["parameters"]]
            first = self.first.astype(jnp.uint32)[None] * jnp.uint32(self.arms) + arm
            fixed = (sizes, arms["cumulants"], self.arms, members, *tables)
            rewards = sums.group_sum(self.law, now.rewards, first, arm, pulls, *fixed)
        else:
            parameters = [x[:, None] for x in arms["parameters"]]
            rewards = self.law.total(*now.rewards, lane, pulls * sizes, *parameters)
        if not self.noisy:
            return {"rewards": rewards}
        z = normal.quantile(keys.uniform(*now.noise, lane))
        return {
            "rewards": rewards,
            "noise": rounded(now.scale * self.shapes.apply(noise_of_groups, z)),
        }

    def total(self, sums: Sums, now: Round) -> PerArm:
        """Returns rewards and noise, weighted."""
        sent = sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]
        if not self.weights.shape[-1]:
            return sent[:, 0] / self.agents
        return padded_sum(rounded(self.weights[:, None] * sent.T))
