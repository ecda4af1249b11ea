"""Agents that hear nobody: each runs a loop of its own, and their ends are counted together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from fmab_jax.core import arrays, keys
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Accumulator
from fmab_jax.core.shapes import Integer, Reals, Scalar
from fmab_jax.core.trials import Outcome


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
        params = instance._replace(means=local[0], parameters=local[1])
        # Padding rows stand for nobody, and play no slot.
        last = jnp.where(agent < agents.astype(jnp.int32), horizon, 0)
        return params, keys.agent_key(key, agent), last

    return jax.vmap(one_agent)(jnp.arange(room, dtype=jnp.int32))


def together(
    each: Outcome, arms: int, room: int, agents: Scalar, accumulators: tuple[Accumulator, ...] = ()
) -> Outcome:
    """Returns the outcome of all agents from that of each.

    Args:
        each: [agent] of everything.
        arms: K.
        room: Rows that agents are padded to.
        agents: M.
        accumulators: What was added up; each agent was one row.
    """
    count = agents.astype(jnp.int32)
    real = jnp.arange(room, dtype=jnp.int32) < count

    def mask(values: Array) -> Array:
        return jnp.where(real.reshape(-1, *[1] * (values.ndim - 1)), values, 0)

    def total(values: Float[Array, "agent ..."]) -> Reals:
        return arrays.padded_sum(mask(values))

    def largest(values: Int[Array, "agent ..."]) -> Int[Array, ...]:
        return jnp.max(mask(values), axis=0)

    votes = jax.nn.one_hot(each.chosen_arm, arms, dtype=jnp.int32)
    playing = jnp.sum(mask(votes), axis=0, dtype=jnp.int32)
    exploring = count - jnp.sum(playing, dtype=jnp.int32)
    most = jnp.argmax(playing).astype(jnp.int32)

    return Outcome(
        regret=total(each.regret),
        waiting_regret=None,
        rounds_by=largest(each.rounds_by),
        rounds=largest(each.rounds),
        arms_reported=largest(each.arms_reported),
        active_arms=largest(each.active_arms),
        chosen_arm=jnp.where(exploring > playing[most], -1, most),
        agents_lost=jnp.sum(mask(each.agents_lost)),
        agents_worse=jnp.sum(mask(each.agents_worse)),
        final_gap=total(each.final_gap) / agents,
        accumulator_values={
            accumulator.name: values[:, 0] if accumulator.by_agent else total(values)
            for accumulator in accumulators
            for values in [(each.accumulator_values or {})[accumulator.name]]
        }
        or None,
    )
