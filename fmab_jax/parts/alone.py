"""Agents without communication: one loop for each agent, and one outcome for all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from fmab_jax.parts.instances import Instance
from fmab_jax.parts.outputs import Accumulator
from fmab_jax.parts.trials import Outcome
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.shapes import Integer, Reals, Scalar


def split_agents(
    instance: Instance, key: Array, padded_agents: int, agents: Scalar, horizon: Integer
) -> tuple[Instance, Array, Int[Array, " agent"]]:
    """Returns the instance, key and last slot of each agent.

    Args:
        instance: The seed's instance.
        key: The seed's key.
        padded_agents: Rows that agents are padded to.
        agents: M.
        horizon: T.
    """

    def split_agent(agent: Array) -> tuple[Instance, Array, Array]:
        row = agent if len(instance.means) > 1 else agent * 0
        segments = instance.segments
        means, parameters, by_segment = jax.tree.map(
            lambda x: lax.dynamic_slice_in_dim(x, row, 1) if len(x) > 1 else x,
            (instance.means, instance.parameters, segments and segments.parameters),
        )
        own_gaps = instance.own_gaps
        if own_gaps is not None:
            axis = own_gaps.best.ndim - 1
            own_means, best = (
                lax.dynamic_slice_in_dim(x, row, 1, axis) for x in (own_gaps.means, own_gaps.best)
            )
            own_gaps = own_gaps._replace(means=own_means, best=best)
        local_instance = instance._replace(
            own_gaps=own_gaps,
            means=means,
            parameters=parameters,
            segments=segments and segments._replace(parameters=by_segment),
        )
        # Padding rows play no slot.
        last = jnp.where(agent < agents.astype(jnp.int32), horizon, 0)
        return local_instance, keys.agent_key(key, agent), last

    return jax.vmap(split_agent)(jnp.arange(padded_agents, dtype=jnp.int32))


def combine_outcomes(
    outcomes: Outcome,
    arms: int,
    padded_agents: int,
    agents: Scalar,
    accumulators: tuple[Accumulator, ...] = (),
) -> Outcome:
    """Returns one outcome of all agents from one outcome for each.

    Args:
        outcomes: Outcome with a leading agent axis.
        arms: K.
        padded_agents: Rows that agents are padded to.
        agents: M.
        accumulators: Accumulators of the loops, in which each agent was one row.
    """
    count = agents.astype(jnp.int32)
    real = jnp.arange(padded_agents, dtype=jnp.int32) < count

    def mask_padding(values: Array) -> Array:
        return jnp.where(real.reshape(-1, *[1] * (values.ndim - 1)), values, 0)

    def sum_agents(values: Float[Array, "agent ..."]) -> Reals:
        return arrays.padded_sum(mask_padding(values))

    def max_agents(values: Int[Array, "agent ..."]) -> Int[Array, ...]:
        return jnp.max(mask_padding(values), axis=0)

    active, worse, gap = outcomes.active_arms, outcomes.agents_worse, outcomes.final_gap
    assert active is not None and worse is not None and gap is not None
    votes = jax.nn.one_hot(outcomes.chosen_arm, arms, dtype=jnp.int32)
    playing = jnp.sum(mask_padding(votes), axis=0, dtype=jnp.int32)
    exploring = count - jnp.sum(playing, dtype=jnp.int32)
    most, agents_lost = jnp.argmax(playing).astype(jnp.int32), outcomes.agents_lost

    return Outcome(
        regret=sum_agents(outcomes.regret),
        waiting_regret=None,
        rounds_by=max_agents(outcomes.rounds_by),
        rounds=max_agents(outcomes.rounds),
        arms_reported=max_agents(outcomes.arms_reported),
        active_arms=max_agents(active),
        chosen_arm=jnp.where(exploring > playing[most], -1, most),
        agents_lost=None if agents_lost is None else jnp.sum(mask_padding(agents_lost)),
        agents_worse=jnp.sum(mask_padding(worse)),
        final_gap=sum_agents(gap) / agents,
        accumulator_values={
            accumulator.name: values[:, 0] if accumulator.by_agent else sum_agents(values)
            for accumulator in accumulators
            for values in [(outcomes.accumulator_values or {})[accumulator.name]]
        }
        or None,
    )
