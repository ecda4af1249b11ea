"""Agents that are drawn only when they report, for all epochs since their last report."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.draws.base import (
    Arms,
    Draws,
    Segment,
    at_segment,
    get_parameters,
    sample_participants,
)
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import Instance
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.backend import is_accelerated
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.lookup import Columns, Table
from fmab_jax.sampling.loops import largest
from fmab_jax.sampling.shapes import PerArm, Reals

# Agents that an accelerator draws at once: more launch fewer kernels, and take more memory.
_AT_ONCE = 5
# So many agents that are drawn in sequence take the memory of one row of arms.
_IN_TURN = 12


class LastReport(NamedTuple):
    """The last report of each agent.

    Attributes:
        pulls: Pulls of each active arm up to that report; by segment, if means change.
        epoch: Number of its epoch; 0 before the first.
    """

    pulls: Float[Array, "agent ..."]
    epoch: Int[Array, " agent"]


class Reports(NamedTuple):
    """The agents that report in a round, one after another; later places are padding.

    Attributes:
        agent: [1, place] the agent.
        pulls: [1, place] pulls of each arm since its last report; [1, place x segment] if means
            change.
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

    @property
    def rows(self) -> int:
        """Agents that are drawn in sequence take less memory than their rows."""
        return max(1, self.real.size // _IN_TURN)

    def compute_constants(self, instance: Instance) -> Arms:
        """Returns the reward law's constants, as a table if agents differ.

        And a table of the reports of each agent so far.
        """
        row = jnp.arange(self.arms, dtype=jnp.int32)
        parameters = (
            Table(x.T.reshape(self.arms, -1), row) if len(x) > 1 else x[0].T
            for x in get_parameters(instance)
        )
        agents = self.real.shape[-1] if self.remembers else 0
        # An accelerator reads and writes the neighbouring arms of an agent together.
        reported = (
            Columns(jnp.zeros((agents, self.arms)), row)
            if is_accelerated()
            else Table(jnp.zeros((self.arms, agents)), row)
        )
        return {"parameters": tuple(parameters), "reported": reported}

    def start_memory(self) -> LastReport:
        """Returns the memory before the first report."""
        agents = self.real.shape[-1]
        shape = (agents, self.segments) if self.segments else (agents,)
        return LastReport(jnp.zeros(shape), jnp.zeros(agents, jnp.int32))

    def update_memory(
        self, memory: LastReport, key: Array, epoch: Epoch
    ) -> tuple[Reports, LastReport]:
        """Returns the new data of each agent that reports, and the last reports."""
        number = epoch.round_index
        reports_now = sample_participants(self, self.real, key, number)
        agent = jnp.nonzero(reports_now, size=len(reports_now), fill_value=0)[0].astype(jnp.int32)
        total, fresh = epoch.pulls, epoch.drawn
        if self.segments:
            total, fresh = epoch.pulls_by_segment[None], epoch.fresh_by_segment[None]
        if self.remembers:
            pulls, epochs = total - memory.pulls, number - memory.epoch
        else:
            pulls, epochs = jnp.broadcast_to(fresh, memory.pulls.shape), jnp.ones_like(memory.epoch)
        columns = agent, pulls[agent].reshape(-1), epochs[agent]
        reports = Reports(*(Table(x[None], jnp.int32(0)) for x in columns))
        mask = reports_now[:, None] if self.segments else reports_now
        if self.ratios is not None:
            scale = epoch.scale * self.ratios[agent]
            reports = reports._replace(scale=Table(scale[None], jnp.int32(0)))
        return reports, LastReport(
            jnp.where(mask, total, memory.pulls),
            jnp.where(reports_now, number, memory.epoch),
        )

    def _read(self, values: Reals | Table, agent: Array, segment: Segment) -> PerArm:
        """Returns a parameter of an agent's rewards."""
        if not isinstance(values, Table):
            return at_segment(values, segment)
        rows = values.values.shape[-1] // max(1, self.segments)
        return values[agent if segment is None else segment * rows + agent]

    def aggregate(self, arms: Arms, epoch: Epoch) -> tuple[Arms, PerArm]:
        """Draws the new data of each agent that reports, some agents at a time."""
        count = self.reporting.astype(jnp.int32)
        alive = arms["alive"]
        block = _AT_ONCE if is_accelerated() else 1

        def draw_message(place: Array, exists: Array, reported: Table) -> tuple[PerArm, Table]:
            """Returns what an agent adds to the total, and the table with its message."""
            agent, epochs = epoch.reports.agent[place], epoch.reports.epochs[place]
            lane = agent.astype(jnp.uint32) * jnp.uint32(self.arms) + arms["arm"]

            def read(segment: Segment) -> PerArm:
                index = place if segment is None else place * self.segments + segment
                pulls = epoch.reports.pulls[index]
                return jnp.where(alive & exists & (epoch.drawn > 0.0), pulls, 0.0)

            def draw(words: Words, segment: Segment, pulls: PerArm) -> PerArm:
                params = (self._read(x, agent, segment) for x in arms["parameters"])
                return self.law.total(*words, lane, pulls, *params)

            message = self.sum_segments(epoch, draw, read)
            if self.noisy:
                scales: Table | None = epoch.reports.scale
                scale = epoch.scale if scales is None else scales[place]
                noise = self.mechanism.sample_sum(epoch.noise_key, lane, scale, epochs)
                message = message + rounded(noise)
            if self.remembers:
                message = reported[agent] + message
                reported = reported.put(agent, message, exists & alive)
            return jnp.where(exists, message, 0.0), reported

        def add_agents(step: Array, state: tuple[Array, Table]) -> tuple[Array, Table]:
            total, reported = state
            if block == 1:
                message, reported = draw_message(step, step < count, reported)
                return total + message, reported
            places = step * block + jnp.arange(block, dtype=jnp.int32)
            safe_places = jnp.minimum(places, self.real.shape[-1] - 1)
            draw_messages = jax.vmap(draw_message, (0, 0, None), (0, None))
            messages, reported = draw_messages(safe_places, places < count, reported)
            return functools.reduce(jnp.add, [total, *messages]), reported

        start = jnp.zeros(alive.shape), arms["reported"]
        steps = -(-largest(count) // block)
        total, reported = lax.fori_loop(0, steps, add_agents, start)
        pulls = epoch.pulls if self.remembers else epoch.drawn
        return {"reported": reported}, total / self.reporting / pulls
