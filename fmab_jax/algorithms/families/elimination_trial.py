"""An elimination bound to a problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax import elimination
from fmab_jax.algorithms.base import Outcome
from fmab_jax.algorithms.families import alone
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Gauge
from fmab_jax.core.shapes import STATIC, PerRow
from fmab_jax.draws import ByAgent, Draws, SinceHeard, SplitArms
from fmab_jax.errors import refuse

# So many agents that are drawn in turn count as one row of a batch.
_IN_TURN = 12


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EliminationTrial:
    """An elimination algorithm bound to a problem.

    Attributes:
        algorithm: Its class, for its equations.
        elementwise: Whether arms are judged one by one.
        prepared_from: Fields of an epoch that `Elimination.prepared` reads.
        mean_rows: Rows of the mean rewards of a run: one for each agent, or one for all.
        alone: Whether every agent runs by itself, with nobody to hear.
        waits: Whether agents play their own best arm while messages travel.
        padded_agents: Rows that agents are padded to where each runs by itself.
        draws: What an epoch draws.
        horizon: T in slots, int64.
        agents: M.
        reporting: N, the agents heard in a round.
        wait: Slots from an epoch's end to its aggregate.
        own: The algorithm's values.
        gauges: What is added up for outputs.
    """

    algorithm: type[Any] = field(metadata=STATIC)
    elementwise: bool = field(metadata=STATIC)
    prepared_from: tuple[str, ...] = field(metadata=STATIC)
    mean_rows: int = field(metadata=STATIC)
    alone: bool = field(metadata=STATIC)
    waits: bool = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    draws: Draws
    horizon: Array
    agents: Array
    reporting: Array
    wait: Array
    own: dict[str, Array]
    gauges: tuple[Gauge, ...] = field(default=(), metadata=STATIC)

    brief = True

    @property
    def gauge_rows(self) -> int:
        """How many rows a gauge by agent has."""
        return self.draws.real.shape[-1] if isinstance(self.draws, ByAgent) and self.waits else 1

    @property
    def agents_by_row(self) -> PerRow:
        """How many agents each of these rows stands for."""
        if isinstance(self.draws, ByAgent) and self.waits:
            return jnp.asarray(self.draws.real).astype(jnp.float64)
        return jnp.asarray(self.agents)[None]

    def gauging(self, gauges: tuple[Gauge, ...]) -> EliminationTrial:
        """Returns the same trial, which adds up gauges for outputs.

        Raises:
            ValueError: If agents share the arms out, and a gauge is by agent: who pulls what when
                is not worked out.
        """
        for each in gauges:
            if isinstance(self.draws, SplitArms) and each.by_agent:
                allowed = f"left out with {self.algorithm.title}, whose agents share the arms out"
                refuse("outputs", each.name, allowed, "what each agent pulls is not worked out")
        return replace(self, gauges=gauges)

    def run(self, instance: Instance, grid: Array, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        batch = jax.tree.map(lambda x: jnp.asarray(x)[None], (self, instance, grid, key))
        trial, *inputs = batch
        return jax.tree.map(lambda x: x[0], trial.run_batch(*inputs))

    def run_batch(self, instance: Instance, grid: Array, key: Array) -> Outcome:
        """Runs one seed of each of many trials; this trial's arrays are [trial, ...], too."""
        own = jax.vmap(self.algorithm.settled)(self.own, instance)
        trial = replace(self, own=own)
        if not self.alone:
            return elimination.run(trial, instance, grid, key, self.horizon)
        split = jax.vmap(alone.each, (0, 0, None, 0, 0))
        local, keys, last = split(instance, key, self.padded_agents, self.agents, self.horizon)
        trials, rows = last.shape
        trial = replace(trial, agents=jnp.ones_like(self.agents))
        trial, grid = jax.tree.map(lambda x: jnp.repeat(x, rows, axis=0), (trial, grid))
        local, keys, last = jax.tree.map(
            lambda x: x.reshape(trials * rows, *x.shape[2:]), (local, keys, last)
        )
        each = elimination.run(trial, local, grid, keys, last)
        each = jax.tree.map(lambda x: x.reshape(trials, rows, *x.shape[1:]), each)
        together = jax.vmap(alone.together, (0, None, None, 0, None))
        return together(each, instance.gaps.shape[1], self.padded_agents, self.agents, self.gauges)

    def elements(self) -> int:
        """Returns how many rows of arms the loop holds for one seed."""
        draws = self.draws
        # Agents that are drawn in turn; agents that are summed out, whose means few arms read.
        in_turn = draws.real.size // _IN_TURN if isinstance(draws, SinceHeard) else 0
        rows = max([1, in_turn, self.mean_rows // 6, *(x[0] for x in draws.sums.values() if x)])
        return rows * max(1, self.padded_agents)
