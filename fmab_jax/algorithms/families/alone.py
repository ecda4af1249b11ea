"""Agents that hear nobody: each runs a loop of its own, and their ends are counted together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from fmab_jax.algorithms.base import Outcome
from fmab_jax.core import arrays, keys
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Gauge
from fmab_jax.core.shapes import Integer, Scalar


def each(
    instance: Instance, key: Array, room: int, agents: Scalar, horizon: Integer
) -> tuple[Instance, Array, Int[Array, " agent"]]:
    """Returns instance, key and last slot of each agent.

    Args:
        instance: The seed's.
        key: The seed's.
        room: Rows that agents are padded to.
        agents: M.
        horizon: T.
    """

    def one_agent(agent: Array) -> tuple[Instance, Array, Array]:
        row = agent if len(instance.means) > 1 else agent * 0
        local = jax.tree.map(
            lambda x: lax.dynamic_slice_in_dim(x, row, 1) if len(x) > 1 else x,
            (instance.means, instance.parameters),
        )
        own = instance._replace(means=local[0], parameters=local[1])
        # Padding rows stand for nobody, and play no slot.
        last = jnp.where(agent < agents.astype(jnp.int32), horizon, 0)
        return own, keys.agent_key(key, agent), last

    return jax.vmap(one_agent)(jnp.arange(room, dtype=jnp.int32))


def together(
    each: Outcome, arms: int, room: int, agents: Scalar, gauges: tuple[Gauge, ...] = ()
) -> Outcome:
    """Returns the outcome of all agents from that of each.

    Args:
        each: [agent] of everything.
        arms: K.
        room: Rows that agents are padded to.
        agents: M.
        gauges: What was added up; each agent was one row.
    """
    real = jnp.arange(room, dtype=jnp.int32) < agents.astype(jnp.int32)
    votes = jax.nn.one_hot(each.chosen_arm, arms, dtype=jnp.int32)
    playing = jnp.sum(jnp.where(real[:, None], votes, 0), axis=0, dtype=jnp.int32)
    exploring = agents.astype(jnp.int32) - jnp.sum(playing, dtype=jnp.int32)
    most = jnp.argmax(playing).astype(jnp.int32)

    def total(values: Float[Array, "agent ..."]) -> Float[Array, ...]:
        mask = real.reshape(-1, *[1] * (values.ndim - 1))
        return arrays.padded_sum(jnp.where(mask, values, 0.0))

    def largest(values: Int[Array, "agent ..."]) -> Int[Array, ...]:
        mask = real.reshape(-1, *[1] * (values.ndim - 1))
        return jnp.max(jnp.where(mask, values, 0), axis=0)

    return Outcome(
        regret=total(each.regret),
        waiting_regret=None,
        rounds_by=largest(each.rounds_by),
        rounds=largest(each.rounds),
        arms_reported=largest(each.arms_reported),
        active_arms=largest(each.active_arms),
        chosen_arm=jnp.where(exploring > playing[most], -1, most),
        agents_lost=jnp.sum(jnp.where(real, each.agents_lost, 0)),
        agents_worse=jnp.sum(jnp.where(real, each.agents_worse, 0)),
        final_gap=total(each.final_gap) / agents,
        gauged={
            one.name: found[:, 0] if one.by_agent else total(found)
            for one in gauges
            for found in [(each.gauged or {})[one.name]]
        }
        or None,
    )
