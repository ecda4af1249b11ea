"""Groups of agents of one weight and noise, which all report: one draw of rewards per arm of each.

If means differ, the cumulants add up over pulls and over agents. If the cumulants determine the law
of the sum, the sum is one draw. If they determine it to within one step, the distribution function
decides. Otherwise the sum is drawn agent by agent.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, UInt32

from fmab_jax.draws.base import (
    Arms,
    Draws,
    Segment,
    Sums,
    at_segment,
    get_parameters,
    read_fresh,
    sample_noise,
)
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.rewards import Law
from fmab_jax.sampling import arrays
from fmab_jax.sampling.arrays import padded_sum, rounded
from fmab_jax.sampling.backend import is_accelerated
from fmab_jax.sampling.keys import Words, uniform
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.rare import Exact, rare
from fmab_jax.sampling.shapes import STATIC, Integer, PerArm, PyTree, Reals, Scalar

# Agents of a group that are drawn at once. Rows whose cumulants are added at once: on a CPU they
# stay in a cache, on an accelerator more of them launch fewer kernels.
_BLOCK = 64
_ROWS = {False: 4, True: 13}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Groups(Draws):
    """Agents of one weight and one noise are a group; the means of its agents may differ.

    Attributes:
        heterogeneous: Whether the means of agents differ.
        sizes: [group] number of agents.
        weights: [group] weight of each agent; [0] for one group.
        first: [group] first agent.
        membership: [group, agent] 1 if the agent is in the group; only if means differ.
        counts: [1, group x width] of their noise (`Mechanism.tabulate`).
    """

    heterogeneous: bool = field(metadata=STATIC)
    sizes: Float[Array, " group"]
    weights: Float[Array, " group"]
    first: Int[Array, " group"]
    membership: Table
    counts: Table

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Rewards of each group, and its noise."""
        groups = (self.sizes.shape[-1],)
        return {"rewards": groups, **({"noise": groups} if self.noisy else {})}

    def compute_constants(self, instance: Instance) -> Arms:
        """Returns the cumulants of each group, and the parameters of its agents as a table."""
        if not self.heterogeneous:
            return super().compute_constants(instance)
        parameters, row = get_parameters(instance), jnp.arange(self.arms, dtype=jnp.int32)

        def sum_members(*parameters: Array) -> Array:
            cumulants = sum_cumulants(self.law, parameters, self.membership.values)
            return jnp.moveaxis(cumulants, 2, 0)

        if self.segments:
            sum_members = jax.vmap(sum_members, 1, 1)
        return {
            "cumulants": sum_members(*parameters),
            "parameters": tuple(Table(x.T.reshape(self.arms, -1), row) for x in parameters),
        }

    def sample(self, arms: Arms, epoch: Epoch) -> Sums:
        """Draws the rewards of each group, and its noise."""
        group = jnp.arange(self.sizes.shape[-1], dtype=jnp.uint32)[None]
        arm, sizes = arms["arm"][:, None], self.sizes[None]
        lane = group * jnp.uint32(self.arms) + arm

        def draw(words: Words, segment: Segment, fresh: Scalar) -> Reals:
            pulls = jnp.where(arms["alive"], fresh, 0.0)[:, None]
            if self.heterogeneous:
                row = self.membership.row + group.astype(jnp.int32)
                members = Table(self.membership.values, row)
                tables = [Table(x.values, x.row[:, None]) for x in arms["parameters"]]
                first = self.first.astype(jnp.uint32)[None] * jnp.uint32(self.arms) + arm
                cumulants = at_segment(arms["cumulants"], segment)
                place = None if segment is None else (segment, self.segments)
                inputs = self.law, words, first, arm, pulls, sizes, cumulants, self.arms, place
                return sample_group_sum(*inputs, members, *tables)
            parameters = [at_segment(x, segment)[:, None] for x in arms["parameters"]]
            return self.law.total(*words, lane, pulls * sizes, *parameters)

        rewards = self.sum_segments(epoch, draw, read_fresh(epoch))
        if not self.noisy:
            return {"rewards": rewards}
        return {"rewards": rewards, "noise": sample_noise(self, epoch, lane, self.counts)}

    def sum_agents(self, sums: Sums, epoch: Epoch) -> PerArm:
        """Returns the weighted sum of rewards and noise."""
        messages = sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]
        if not self.weights.shape[-1]:
            return messages[:, 0] / self.agents
        return padded_sum(rounded(self.weights[:, None] * messages.T))


def sum_cumulants(
    law: Law, parameters: tuple[Array, ...], membership: Float[Array, "group row"]
) -> Float[Array, "7 group arm"]:
    """Sums the cumulants of one pull over the agents of each group, once per seed.

    Args:
        law: Reward law, static.
        parameters: Parameters of one instance.
        membership: 1 if a row is in a group, else 0; columns of zeros are padding.
    """
    rows, arms = (max(x.shape[axis] for x in parameters) for axis in (0, 1))
    parameters = tuple(jnp.broadcast_to(x, (rows, arms)) for x in parameters)

    def cut(first: Array | int, count: int) -> tuple[Array, ...]:
        params = [lax.dynamic_slice_in_dim(x, first, count) for x in parameters]
        return lax.dynamic_slice_in_dim(membership, first, count, 1), *params

    def add_rows(weights: Array, *params: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
        cumulants = law.cumulants(*params)
        # Rows are added in one order; padding rows add nothing.
        for row in range(weights.shape[1]):
            is_member = weights[:, row, None] > 0.0
            total = tuple(
                sum_ + jnp.where(is_member, cumulant[row][None, :], 0.0)
                for sum_, cumulant in zip(total, cumulants, strict=True)
            )
        return total

    total: tuple[Array, ...] = (jnp.zeros((len(membership), arms)),) * 7
    fast = is_accelerated()
    size = _ROWS[fast]
    blocks = rows // size
    if blocks:
        # On a CPU the loop's state holds the rows of the next block: LLVM does not vectorise a loop
        # that computes where its rows begin.
        def add_block(step: Array, state: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            block, total = state
            next_block = () if fast else cut((step + 1) * size, size)
            return next_block, add_rows(*(cut(step * size, size) if fast else block), total=total)

        start: tuple[PyTree, ...] = () if fast else cut(0, size), total
        _, total = lax.fori_loop(0, blocks, add_block, start)
    return jnp.stack(add_rows(*cut(blocks * size, rows - blocks * size), total=total))


def sample_group_sum(
    law: Law,
    words: Words,
    lane: UInt32[Array, "arm group"],
    arm: UInt32[Array, "arm 1"],
    pulls: Float[Array, "arm 1"],
    sizes: Float[Array, "1 group"],
    cumulants: Float[Array, "arm 7 group"],
    width: int,
    segment: tuple[Integer, int] | None,
    *tables: Table,
) -> Float[Array, "arm group"]:
    """Samples the sum of ``pulls`` rewards of an arm by each agent of a group.

    One draw if the cumulants of the sum determine its law, or determine it to within one step and
    the distribution function decides; else agent by agent, with each agent's own random numbers.

    Args:
        law: Reward law, static.
        words: Key of the stream.
        lane: Lane of each sum: that of the group's first agent.
        arm: Identity of each arm.
        pulls: Pulls of an arm by each agent; 0 for eliminated arms.
        sizes: Number of agents of each group.
        cumulants: Result of `sum_cumulants`.
        width: K: agent i's lane is ``i * width + arm``.
        segment: Index of the segment, and their number; None if means do not change.
        *tables: Membership of rows in a group, and the parameters of rows at an arm, segment by
            segment.
    """
    u = uniform(*words, lane)
    total = [pulls * order for order in jnp.moveaxis(cumulants, 1, 0)]
    sums = law.quantile(u, pulls * sizes, total)
    if law.always_smooth:
        return sums
    doubtful = ~law.smooth(total) & (pulls > 0.0)
    operands = (*words, lane, arm, pulls)
    lookup: Exact = functools.partial(_check_step, law)
    add_agents: Exact = functools.partial(_add_agents, law, width)
    rows: tuple[Array | Table, ...] = tables
    if segment is not None:
        index, count = segment
        rows = *tables, index
        lookup, add_agents = (
            functools.partial(_in_segment, x, count, len(tables)) for x in (lookup, add_agents)
        )
    is_near = jnp.zeros_like(doubtful)
    if math.isfinite(law.checked_from):
        step = law.doubtful_step(u, total)
        checked = total[1] >= law.checked_from
        is_near = doubtful & checked & ~jnp.isnan(step)
        sums = rare(is_near, lookup, sums, step, *operands, *rows, slow=True)
        doubtful = doubtful & ~checked
    return rare(doubtful, add_agents, sums, *operands, *rows, slow=True)


def _in_segment(function: Exact, segments: int, tables: int, *operands: Array) -> Reals:
    """Calls a function with the parameters of one segment, which the last operand tells."""
    *inputs, segment = operands
    first = len(inputs) - tables + 1  # after the members
    lane = jnp.arange(len(segment), dtype=jnp.int32)
    rows = (x.reshape(len(lane), segments, -1)[lane, segment] for x in inputs[first:])
    return function(*inputs[:first], *rows)


def _check_step(
    law: Law, step: Array, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, *rows: Array
) -> Float[Array, " lane"]:
    """Returns the doubtful step, or the next one, by the law's distribution function."""
    below = uniform(k0, k1, lane) <= law.at_most(step, pulls, *_split_rows(rows))
    return jnp.where(below, step, step + 1.0)


def _split_rows(rows: tuple[Array, ...]) -> list[Array]:
    count = max(x.shape[1] for x in rows)
    return [jnp.broadcast_to(x.T, (count, len(x))) for x in rows]


def _add_agents(
    law: Law, width: int, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, *rows: Array
) -> Float[Array, " lane"]:
    """Samples the rewards of each agent, and adds them up."""
    membership, *parameters = _split_rows(rows)
    count = len(membership)
    # All agents at once would need too much memory.
    block = min(count, _BLOCK)
    has_members = jnp.any(membership > 0.0, axis=1)
    last = jnp.max(jnp.where(has_members, jnp.arange(1, count + 1, dtype=jnp.int32), 0))

    def add_block(state: tuple[Array, Array]) -> tuple[Array, Array]:
        first, total = state
        row = first + jnp.arange(block, dtype=jnp.int32)
        index = jnp.minimum(row, count - 1)
        number = row.astype(jnp.uint32)[:, None] * jnp.uint32(width) + arm[None, :]
        fresh = jnp.where((row < count)[:, None], pulls[None, :] * membership[index], 0.0)
        params = (x[index] for x in parameters)
        return first + block, total + arrays.padded_sum(
            law.total(k0[None, :], k1[None, :], number, fresh, *params)
        )

    start = (jnp.int32(0), jnp.zeros(arm.shape))
    return lax.while_loop(lambda state: state[0] < last, add_block, start)[1]
