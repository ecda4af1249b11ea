"""Sums over agents that differ: one draw from their cumulants, looked up where it is in doubt.

Rewards are independent, so cumulants add up over pulls and over agents. Where they give the law of
the sum, the sum is one draw; where they give it to within one step, and the law can tell which, its
distribution function decides; else it is drawn agent by agent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt32

from fmab_jax.core import arrays
from fmab_jax.core.keys import Words, uniform
from fmab_jax.core.rewards import Law

# Chunks of sums that one draw does not settle: few are expected.
_PARTS = 32
# Agents of a group that are drawn at once, and whose cumulants are added at once.
_BLOCK = 64
_ROWS = 4


def group_cumulants(
    law: Law, parameters: tuple[Array, ...], member: Float[Array, "group row"]
) -> Float[Array, "7 group arm"] | None:
    """Returns the cumulants of one pull by every agent of each group, once per seed.

    None where agents share their parameters ([1, arm]): `group_sum` then needs none.

    Args:
        law: Static.
        parameters: Of one instance.
        member: 1 where a row is in a group, else 0; all-zero columns are rows that do not exist.
    """
    rows, arms = (max(x.shape[axis] for x in parameters) for axis in (0, 1))
    if rows == 1:
        return None
    whole = [jnp.broadcast_to(x, (rows, arms)) for x in parameters]
    return arrays.in_blocks(functools.partial(_added, law), rows * arms)(member, *whole)


def _added(law: Law, member: Array, *parameters: Array) -> Float[Array, "7 group arm"]:
    rows, arms = parameters[0].shape

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

    start = arrays.varying_like((jnp.zeros((len(member), arms)),) * 7, member, *parameters)
    several = rows // _ROWS

    def some(step: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
        return add(step * _ROWS, total, _ROWS)

    total = lax.fori_loop(0, several, some, start) if several else start
    return jnp.stack(add(several * _ROWS, total, rows - several * _ROWS))


class Draw(NamedTuple):
    """How to sample sums: by `arrays.masked_map`, and then what one draw did not settle.

    Attributes:
        sample: Returns a tuple of ``outputs`` vectors.
        operands: Its arguments, as `arrays.masked_map` takes them.
        outputs: How many vectors.
        finish: Turns (need, *sampled) into the sums.
    """

    sample: Callable[..., tuple[Array, ...]]
    operands: tuple[Array, ...]
    outputs: int
    finish: Callable[..., Array]


def own_sum(law: Law, *operands: Array) -> Draw:
    """Returns how to sample sums of one distribution each; operands of `Law.total`."""
    return Draw(lambda *own: (law.total(*own),), operands, 1, lambda need, found: found)


def group_sum(
    law: Law,
    words: Words,
    arm: UInt32[Array, " arm"],
    width: int,
    pulls: Float[Array, ""],
    cumulants: Float[Array, "7 group arm"] | None,
    parameters: tuple[Array, ...],
    member: Float[Array, "group row"],
) -> Draw:
    """Returns how to sample, per group and arm, the sum of ``pulls`` rewards by all its agents.

    One draw where the cumulants of the sum give its law, or give it to within one step and the
    law can tell which; else agent by agent with the random numbers that each agent has for itself.

    Args:
        law: Static.
        words: Key of the stream, one for the epoch.
        arm: Identity of each column.
        width: Arms of the whole problem: agent i's lane is ``i * width + arm``, and a group's is
            that of its first agent.
        pulls: Pulls of an arm by each agent.
        cumulants: Of `group_cumulants`, at the same columns.
        parameters: The instance's, of all its arms: [row, arm] or [1, arm] each. Large, so their
            columns stay where they are.
        member: 1 where a row is in a group, else 0. A row is in one group at most.
    """
    agents = jnp.sum(member, axis=1)[:, None]
    first = jnp.argmax(member, axis=1).astype(jnp.uint32)[:, None]
    lane = first * jnp.uint32(width) + arm[None, :]
    together = pulls * agents
    if cumulants is None:
        here = [x[:, arm.astype(jnp.int32)] for x in parameters]
        return own_sum(law, *words, lane, together, *here)

    def sample(k0: Array, k1: Array, lane: Array, pulls: Array, *rest: Array) -> tuple[Array, ...]:
        """Returns sums by their cumulants, and which step is in doubt: inf for all of them."""
        u, total = uniform(k0, k1, lane), [pulls * order for order in rest[1:]]
        found = law.quantile(u, rest[0], total)
        if law.always_smooth:
            return (found,)
        smooth = law.smooth(total)
        if not math.isfinite(law.checked_from):
            return found, jnp.where(smooth, jnp.nan, jnp.inf)
        near = jnp.where(total[1] >= law.checked_from, law.doubtful_step(u, total), jnp.inf)
        return found, jnp.where(smooth, jnp.nan, near)

    tables = (member.T[:, :, None], *(x[:, None, :] for x in parameters))
    common = (*words, lane, arm[None, :], pulls)

    def finish(need: Array, found: Array, *doubt: Array) -> Array:
        if not doubt:
            return found
        (step,) = doubt
        if math.isfinite(law.checked_from):
            near = need & jnp.isfinite(step)
            look_up = functools.partial(_looked_up, law)
            sums = arrays.masked_map(look_up, near, *common, step, *tables, parts=4 * _PARTS)
            found = jnp.where(near, sums, found)
        all_ = need & jnp.isinf(step)
        by_agent = functools.partial(_agent_by_agent, law, width)
        sums = arrays.masked_map(by_agent, all_, *common, *tables, parts=_PARTS)
        return jnp.where(all_, sums, found)

    operands = (*words, lane, pulls, together, *cumulants)
    return Draw(sample, operands, 1 if law.always_smooth else 2, finish)


def _looked_up(
    law: Law, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, step: Array, *tables: Any
) -> Array:
    inside, *own = _columns(arm, *tables)
    below = uniform(k0, k1, lane) <= law.at_most(step, pulls, inside, *own)
    return jnp.where(below, step, step + 1.0)


def _columns(arm: Array, member: Any, *parameters: Any) -> tuple[Array, ...]:
    return member.looked_up(), *(table.looked_up(arm) for table in parameters)


def _agent_by_agent(
    law: Law, width: int, k0: Array, k1: Array, lane: Array, arm: Array, pulls: Array, *tables: Any
) -> Array:
    member, *parameters = _columns(arm, *tables)
    rows = len(member)
    # Agents are handled in blocks: large enough for speed, small enough for memory.
    block = min(rows, _BLOCK)
    mine = jnp.any(member > 0.0, axis=1)
    last = jnp.max(jnp.where(mine, jnp.arange(1, rows + 1, dtype=jnp.int32), 0))

    def agents_of(state: tuple[Array, Array]) -> tuple[Array, Array]:
        first, total = state
        row = first + jnp.arange(block, dtype=jnp.int32)
        inside = jnp.minimum(row, rows - 1)
        own = [x[jnp.minimum(inside, len(x) - 1)] for x in parameters]
        own_lane = row.astype(jnp.uint32)[:, None] * jnp.uint32(width) + arm[None, :]
        count = jnp.where((row < rows)[:, None], pulls[None, :] * member[inside], 0.0)
        each = [k0[None, :], k1[None, :], own_lane, count, *own]
        flat = [jnp.broadcast_to(x, own_lane.shape).reshape(-1) for x in each]
        found = law.total_of_few(*flat).reshape(own_lane.shape)
        return first + block, total + arrays.padded_sum(found)

    start = (jnp.int32(0), jnp.zeros(arm.shape))
    start = arrays.varying_like(start, k0, k1, arm, pulls, member)
    return lax.while_loop(lambda state: state[0] < last, agents_of, start)[1]
