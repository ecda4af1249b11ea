"""Agents that are drawn only when they are heard: for all epochs since they were heard last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.core import laplace
from fmab_jax.core.arrays import rounded
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import Table, largest
from fmab_jax.core.shapes import PerArm
from fmab_jax.draws.base import Arms, Draws, Round, participants


class LastHeard(NamedTuple):
    """When each agent was heard last.

    Attributes:
        pulls: Of each active arm by then.
        epoch: Number of that epoch; 0 before the first.
    """

    pulls: Float[Array, " agent"]
    epoch: Int[Array, " agent"]


class Reports(NamedTuple):
    """Who reports in a round, one after another; what is past the last means nothing.

    Attributes:
        agent: [1, place] which agent.
        pulls: [1, place] of each arm since it was heard last.
        epochs: [1, place] since then, and so Laplace variables.
    """

    agent: Table
    pulls: Table
    epochs: Table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SinceHeard(Draws):
    """Agents that nobody waits for, of which some report in a round.

    What an agent has collected decides nothing until it is heard; its noise is then one sum, of
    variables of one scale.

    Attributes:
        real: [agent] whether a row is one.
    """

    real: Bool[Array, " agent"]

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Of none: what each agent told of so far is a table."""
        return {}

    lanes = 2

    def fixed(self, instance: Instance) -> Arms:
        """Returns the reward law's constants, or a table of them where agents differ.

        Likewise a table of what each agent told of so far.
        """
        row = jnp.arange(self.arms, dtype=jnp.int32)
        parameters = (Table(x.T, row) if len(x) > 1 else x[0] for x in instance.parameters)
        agents = self.real.shape[-1] if self.remembers else 0
        return {"parameters": tuple(parameters), "told": Table(jnp.zeros((self.arms, agents)), row)}

    def memory(self) -> LastHeard:
        """Returns what is known before anybody was heard."""
        agents = self.real.shape[-1]
        return LastHeard(jnp.zeros(agents), jnp.zeros(agents, jnp.int32))

    def remember(self, memory: LastHeard, key: Array, now: Round) -> tuple[Reports, LastHeard]:
        """Returns what is new from each agent that is heard, and when each was heard last."""
        heard, number = participants(self, key, now.number), now.number
        agent = jnp.nonzero(heard, size=len(heard), fill_value=0)[0].astype(jnp.int32)
        if self.remembers:
            pulls, epochs = now.pulls - memory.pulls, number - memory.epoch
        else:
            pulls, epochs = jnp.full_like(memory.pulls, now.fresh), jnp.ones_like(memory.epoch)
        reports = Reports(
            *(Table(x[None], jnp.int32(0)) for x in (agent, pulls[agent], epochs[agent]))
        )
        return reports, LastHeard(
            jnp.where(heard, now.pulls, memory.pulls), jnp.where(heard, number, memory.epoch)
        )

    def hear(self, arms: Arms, now: Round) -> tuple[Arms, PerArm]:
        """Draws what is new from each agent that is heard, one after another."""
        count = self.reporting.astype(jnp.int32)
        alive = arms["alive"]

        def one(place: Array, state: tuple[Array, Table]) -> tuple[Array, Table]:
            total, told = state
            agent, pulls, epochs = (table[place] for table in now.seen)
            heard = place < count
            lane = agent.astype(jnp.uint32) * jnp.uint32(self.arms) + arms["arm"]
            params = (x[agent] if isinstance(x, Table) else x for x in arms["parameters"])
            pulls = jnp.where(alive & heard & (now.fresh > 0.0), pulls, 0.0)
            sent = self.law.total(*now.rewards, lane, pulls, *params)
            if self.noisy:
                noise = laplace.few_summed(*now.noise, lane, epochs)
                sent = sent + rounded(now.scale * noise)
            if self.remembers:
                sent = told[agent] + sent
                told = told.put(agent, sent, heard & alive)
            return total + jnp.where(heard, sent, 0.0), told

        total, told = lax.fori_loop(0, largest(count), one, (jnp.zeros(alive.shape), arms["told"]))
        return {"told": told}, total / self.reporting / (now.pulls if self.remembers else now.fresh)
