"""Agents that are drawn only when they report, for all epochs since their last report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.core.arrays import rounded
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import Table, largest
from fmab_jax.core.shapes import PerArm
from fmab_jax.draws.base import Arms, Draws, Round, sample_participants


class LastReport(NamedTuple):
    """The last report of each agent.

    Attributes:
        pulls: Pulls of each active arm up to that report.
        epoch: Number of its epoch; 0 before the first.
    """

    pulls: Float[Array, " agent"]
    epoch: Int[Array, " agent"]


class Reports(NamedTuple):
    """The agents that report in a round, one after another; later places are padding.

    Attributes:
        agent: [1, place] the agent.
        pulls: [1, place] pulls of each arm since its last report.
        epochs: [1, place] epochs since then, which is also the number of Laplace variables.
        scale: [1, place] scale of its noise; None if all agents have one.
    """

    agent: Table
    pulls: Table
    epochs: Table
    scale: Table | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OnReport(Draws):
    """Agents of which some report in a round, without waits.

    The data of an agent decide nothing until it reports. Its noise is then one sum, of Laplace
    variables of one scale.

    Attributes:
        real: [agent] whether the row is an agent; other rows are padding.
    """

    real: Bool[Array, " agent"]

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """No sums: the reports of each agent so far are a table."""
        return {}

    lanes = 2

    def compute_constants(self, instance: Instance) -> Arms:
        """Returns the reward law's constants, as a table if agents differ.

        And a table of the reports of each agent so far.
        """
        row = jnp.arange(self.arms, dtype=jnp.int32)
        parameters = (Table(x.T, row) if len(x) > 1 else x[0] for x in instance.parameters)
        agents = self.real.shape[-1] if self.remembers else 0
        reported = Table(jnp.zeros((self.arms, agents)), row)
        return {"parameters": tuple(parameters), "reported": reported}

    def start_memory(self) -> LastReport:
        """Returns the memory before the first report."""
        agents = self.real.shape[-1]
        return LastReport(jnp.zeros(agents), jnp.zeros(agents, jnp.int32))

    def update_memory(
        self, memory: LastReport, key: Array, round_: Round
    ) -> tuple[Reports, LastReport]:
        """Returns the new data of each agent that reports, and the last reports."""
        number = round_.number
        reports_now = sample_participants(self, self.real, key, number)
        agent = jnp.nonzero(reports_now, size=len(reports_now), fill_value=0)[0].astype(jnp.int32)
        if self.remembers:
            pulls, epochs = round_.pulls - memory.pulls, number - memory.epoch
        else:
            pulls, epochs = jnp.full_like(memory.pulls, round_.fresh), jnp.ones_like(memory.epoch)
        reports = Reports(
            *(Table(x[None], jnp.int32(0)) for x in (agent, pulls[agent], epochs[agent]))
        )
        if self.ratios is not None:
            scale = round_.scale * self.ratios[agent]
            reports = reports._replace(scale=Table(scale[None], jnp.int32(0)))
        return reports, LastReport(
            jnp.where(reports_now, round_.pulls, memory.pulls),
            jnp.where(reports_now, number, memory.epoch),
        )

    def aggregate(self, arms: Arms, round_: Round) -> tuple[Arms, PerArm]:
        """Draws the new data of each agent that reports, one after another."""
        count = self.reporting.astype(jnp.int32)
        alive = arms["alive"]

        def add_agent(place: Array, state: tuple[Array, Table]) -> tuple[Array, Table]:
            total, reported = state
            agent, pulls, epochs = (table[place] for table in round_.reports[:3])
            exists = place < count
            lane = agent.astype(jnp.uint32) * jnp.uint32(self.arms) + arms["arm"]
            params = (x[agent] if isinstance(x, Table) else x for x in arms["parameters"])
            pulls = jnp.where(alive & exists & (round_.fresh > 0.0), pulls, 0.0)
            message = self.law.total(*round_.rewards, lane, pulls, *params)
            if self.noisy:
                scales: Table | None = round_.reports.scale
                scale = round_.scale if scales is None else scales[place]
                noise = self.mechanism.sample_sum(round_.noise, lane, scale, epochs)
                message = message + rounded(noise)
            if self.remembers:
                message = reported[agent] + message
                reported = reported.put(agent, message, exists & alive)
            return total + jnp.where(exists, message, 0.0), reported

        start = jnp.zeros(alive.shape), arms["reported"]
        total, reported = lax.fori_loop(0, largest(count), add_agent, start)
        pulls = round_.pulls if self.remembers else round_.fresh
        return {"reported": reported}, total / self.reporting / pulls
