"""Sums over agents that differ: one draw from their cumulants, looked up where it is in doubt.

Rewards are independent, so cumulants add up over pulls and over agents. Where they give the law of
the sum, the sum is one draw; where they give it to within one step, and the law can tell which, its
distribution function decides; else it is drawn agent by agent.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from fmab_jax.core import arrays
from fmab_jax.core.keys import Words, uniform
from fmab_jax.core.rare import Table, rare
from fmab_jax.core.rewards import Law

# Agents of a group that are drawn at once, and whose cumulants are added at once.
_BLOCK = 64
_ROWS = 4


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
        own = [lax.dynamic_slice_in_dim(x, first, count) for x in parameters]
        inside = lax.dynamic_slice_in_dim(member, first, count, 1)
        each = law.cumulants(*own)
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
        own = (x[here] for x in parameters)
        return first + block, total + arrays.padded_sum(
            law.total(k0[None, :], k1[None, :], number, fresh, *own)
        )

    start = (jnp.int32(0), jnp.zeros(arm.shape))
    return lax.while_loop(lambda state: state[0] < last, some, start)[1]
