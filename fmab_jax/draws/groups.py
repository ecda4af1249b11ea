"""Agents in groups of one weight, all of them heard: one draw of rewards for a group and an arm.

Where agents of a group differ, their cumulants add up over pulls and over agents. Where these give
the law of the sum, the sum is one draw; where they give it to within one step, and the law can tell
which, its distribution function decides; else it is drawn agent by agent.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from fmab_jax.core import arrays, keys, normal
from fmab_jax.core.arrays import padded_sum, rounded
from fmab_jax.core.instances import Instance
from fmab_jax.core.keys import Words, uniform
from fmab_jax.core.rare import Table, rare
from fmab_jax.core.rewards import Law
from fmab_jax.core.shapes import STATIC, PerArm
from fmab_jax.draws.base import Arms, Draws, Round, Sums, noise_of_groups

# Agents of a group that are drawn at once, and whose cumulants are added at once.
_BLOCK = 64
_ROWS = 4


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
        cumulants = group_cumulants(self.law, instance.parameters, self.member.values)
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
            rewards = group_sum(self.law, now.rewards, first, arm, pulls, *fixed)
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


def group_cumulants(
    law: Law, parameters: tuple[Array, ...], member: Float[Array, "group row"]
) -> Float[Array, "7 group arm"]:
    """Returns the cumulants of one pull by every agent of each group, once per seed.

    Args:
        law: Static.
        parameters: Of one instance.
        member: 1 where a row is in a group, else 0; all-zero columns are rows that do not exist.
    """
    rows, arms = (max(x.shape[axis] for x in parameters) for axis in (0, 1))
    parameters = tuple(jnp.broadcast_to(x, (rows, arms)) for x in parameters)

    def add(first: Array | int, total: tuple[Array, ...], count: int) -> tuple[Array, ...]:
        params = [lax.dynamic_slice_in_dim(x, first, count) for x in parameters]
        inside = lax.dynamic_slice_in_dim(member, first, count, 1)
        each = law.cumulants(*params)
        # Rows are added in one order; padding rows add nothing.
        for row in range(count):
            held = inside[:, row, None] > 0.0
            total = tuple(
                sum_ + jnp.where(held, one[row][None, :], 0.0)
                for sum_, one in zip(total, each, strict=True)
            )
        return total

    start = (jnp.zeros((len(member), arms)),) * 7
    several = rows // _ROWS

    def some(step: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
        return add(step * _ROWS, total, _ROWS)

    total = lax.fori_loop(0, several, some, start) if several else start
    return jnp.stack(add(several * _ROWS, total, rows - several * _ROWS))


def group_sum(
    law: Law,
    words: Words,
    lane: UInt32[Array, "arm group"],
    arm: UInt32[Array, "arm 1"],
    pulls: Float[Array, "arm 1"],
    sizes: Float[Array, "1 group"],
    cumulants: Float[Array, "arm 7 group"],
    width: int,
    *tables: Table,
) -> Float[Array, "arm group"]:
    """Samples the sum of ``pulls`` rewards of an arm by each agent of a group.

    One draw where the cumulants of the sum give its law, or give it to within one step and the
    law can tell which; else agent by agent with the random numbers that each agent has for itself.

    Args:
        law: Static.
        words: Key of the stream.
        lane: Of each sum: that of the group's first agent.
        arm: Identity of each arm.
        pulls: Of an arm by each agent; 0 for arms that have left.
        sizes: Agents of each group.
        cumulants: Of `group_cumulants`.
        width: K: agent i's lane is ``i * width + arm``.
        *tables: Of the rows that a group is, and of their parameters at an arm.
    """
    u = uniform(*words, lane)
    total = [pulls * order for order in jnp.moveaxis(cumulants, 1, 0)]
    found = law.quantile(u, pulls * sizes, total)
    if law.always_smooth:
        return found
    doubtful = ~law.smooth(total) & (pulls > 0.0)
    operands = (*words, lane, arm, pulls)
    near = jnp.zeros_like(doubtful)
    if math.isfinite(law.checked_from):
        step = law.doubtful_step(u, total)
        settled = total[1] >= law.checked_from
        near = doubtful & settled & ~jnp.isnan(step)
        look_up = functools.partial(_looked_up, law)
        found = rare(near, look_up, found, step, *operands, *tables, long=True)
        doubtful = doubtful & ~settled
    by_agent = functools.partial(_by_agent, law, width)
    return rare(doubtful, by_agent, found, *operands, *tables, long=True)


def _looked_up(
    law: Law, step: Array, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, *rows: Array
) -> Float[Array, " lane"]:
    """Returns the step that is in doubt, or the next one, by the law's distribution function."""
    below = uniform(k0, k1, lane) <= law.at_most(step, pulls, *_by_row(rows))
    return jnp.where(below, step, step + 1.0)


def _by_row(rows: tuple[Array, ...]) -> list[Array]:
    count = max(x.shape[1] for x in rows)
    return [jnp.broadcast_to(x.T, (count, len(x))) for x in rows]


def _by_agent(
    law: Law, width: int, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, *rows: Array
) -> Float[Array, " lane"]:
    """Adds up the rewards of each agent."""
    inside, *parameters = _by_row(rows)
    count = len(inside)
    # Agents are handled in blocks: large enough for speed, small enough for memory.
    block = min(count, _BLOCK)
    agents = jnp.any(inside > 0.0, axis=1)
    last = jnp.max(jnp.where(agents, jnp.arange(1, count + 1, dtype=jnp.int32), 0))

    def some(state: tuple[Array, Array]) -> tuple[Array, Array]:
        first, total = state
        row = first + jnp.arange(block, dtype=jnp.int32)
        here = jnp.minimum(row, count - 1)
        number = row.astype(jnp.uint32)[:, None] * jnp.uint32(width) + arm[None, :]
        fresh = jnp.where((row < count)[:, None], pulls[None, :] * inside[here], 0.0)
        params = (x[here] for x in parameters)
        return first + block, total + arrays.padded_sum(
            law.total(k0[None, :], k1[None, :], number, fresh, *params)
        )

    start = (jnp.int32(0), jnp.zeros(arm.shape))
    return lax.while_loop(lambda state: state[0] < last, some, start)[1]
