"""An elimination bound to a problem: a trial, and the loop that runs it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fmab_jax.algorithms.base import Outcome
from fmab_jax.algorithms.families import alone, epochs, lists, tracing
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Gauge
from fmab_jax.core.rewards import FiniteSupport, Law
from fmab_jax.core.shapes import Grid, registered
from fmab_jax.errors import refuse


class _Bytes(NamedTuple):
    """Bytes that a compiled loop takes, as measured (tests/run/test_simulate.py)."""

    row: int = 96
    """For an arm, where agents add up to one row, in a list or in arrays."""
    rows: int = 60
    """For an arm and a row, where agents add up to several."""
    level: int = 20
    """For an arm and each level of its rewards but two."""
    late: int = 10
    """For an (agent, arm) element, where agents are drawn when they are heard; in a list."""
    alike: int = 44
    """Likewise, where agents are drawn one by one and alike."""
    differ: int = 52
    """Likewise, where they differ or hear of rewards and noise apart."""
    apart: tuple[int, int] = (170, 14)
    """For an arm, and for an (agent, arm) element, where sums over agents that differ are drawn."""
    point: int = 32
    """For a recorded slot."""
    waiting: int = 8
    """For a recorded slot, where agents wait."""
    seed: int = 1300
    """For a seed, or for an agent that is alone."""
    prepared: int = 18
    """For an element of the largest array that an epoch is prepared with."""


_BYTES = _Bytes()

# A lazy trial draws its agents in turn: so many of them count as one row of a batch.
_IN_TURN = 12


@registered
@dataclass(frozen=True)
class EliminationTrial:
    """An elimination algorithm bound to a problem.

    Rewards and noise are held in rows, each the sum over some agents.

    Attributes:
        filling: The algorithm, for its equations. Static, as are all up to ``arms``.
        law: Of the rewards.
        alone: Every agent runs the loop by itself, with nobody to hear.
        room: Rows that agents are padded to where their number shapes an array, else 0.
        uniform: Everybody reports and weighs the same: one row of noise.
        apart: Reward rows are sums over agents whose means differ.
        alike: All agents have the same means.
        noise_by_group: Rows of noise are sums over agents.
        one_noise: A secure sum over all agents holds one Laplace variable, not one of each.
        shared: Agents, which are alike, share the arms out: pulls of an arm are of all together.
        scarce: Reporting agents are drawn anew each round.
        waits: Agents exploit their local best while messages travel.
        private: That local best is the best of the noisy means that they send.
        narrows: The loop goes on in narrower arrays once most arms have left: faster to run, slower
            to compile, the same bits.
        listed: A batch's active arms are held in one list (`lists`), not in arrays of arms: faster
            on processors, the same bits; then ``narrows`` has no effect.
        arms: K.
        gauges: What is added up for outputs. Static, too.
        horizon: T in slots, int64.
        agents: M.
        reporting: N, the agents heard in a round.
        wait: Slots from an epoch's end to its aggregate.
        reward_sizes: [row] agents whose rewards a row adds up; 0 for padding.
        noise_sizes: [row] agents whose noise a row adds up.
        noise_shapes: [24, row] of their sum (`laplace.laplace_sum`); no rows for single agents.
        reward_weights: [row] weight of each of these agents; [0] where all weigh the same.
        noise_weights: [row] likewise.
        member: [row, agent] whether an agent belongs to a row, where means differ.
        own: The algorithm's values.
    """

    filling: type[Any]
    law: Law
    alone: bool
    room: int
    uniform: bool
    apart: bool
    alike: bool
    noise_by_group: bool
    one_noise: bool
    shared: bool
    scarce: bool
    waits: bool
    private: bool
    narrows: bool
    listed: bool
    arms: int
    horizon: Any
    agents: Any
    reporting: Any
    wait: Any
    reward_sizes: Any
    noise_sizes: Any
    noise_shapes: Any
    reward_weights: Any
    noise_weights: Any
    member: Any
    own: dict[str, Any]
    gauges: tuple[Gauge, ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether messages carry noise; for rewards without a range they never do."""
        return self.filling.noisy and math.isfinite(self.law.sensitivity)

    @property
    def merged(self) -> bool:
        """Whether a row holds rewards plus noise: nobody acts on rewards without noise."""
        return self.noisy and (self.private or self.scarce and not self.waits)

    @property
    def lazy(self) -> bool:
        """Whether an agent is drawn only when it is heard: until then nobody acts on its rewards.

        Its noise is then one sum, of variables that are of one scale in all epochs.
        """
        if not self.scarce or self.waits:
            return False
        filling: Any = self.filling
        lasting = not filling.remembers or not self.noisy
        return lasting or tracing.lasting(filling, tuple(sorted(self.own)))

    @property
    def rows_agree(self) -> bool:
        """Whether a row of rewards and a row of noise are of the same agents."""
        return self.alone or (self.room > 0) != self.noise_by_group

    def quick(self) -> EliminationTrial:
        """Returns the same trial as a program that takes half as long to compile."""
        return replace(self, narrows=False)

    @property
    def gauge_rows(self) -> int:
        """How many rows a gauge by agent has."""
        alike = not self.waits and not self.alone
        return 1 if alike else max(self.room, np.shape(self.reward_sizes)[-1])

    def gauging(self, gauges: tuple[Gauge, ...]) -> EliminationTrial:
        """Returns the same trial, which adds up gauges for outputs.

        Raises:
            ValueError: If agents share the arms out, and a gauge is by agent: who pulls what when
                is not worked out.
        """
        for each in gauges:
            if self.shared and each.by_agent:
                allowed = f"left out with {self.filling.title}, whose agents share the arms out"
                refuse("outputs", each.name, allowed, "what each agent pulls is not worked out")
        return replace(self, gauges=gauges)

    @property
    def together(self) -> bool:
        """Whether many trials are run in one go."""
        return self.listed

    def on(self, platform: str, trials: int = 1) -> EliminationTrial:
        """Returns the same trial as so many run fastest on "cpu", "gpu" or "tpu"."""
        # The arrays may have a leading axis of trials.
        one_row = np.shape(self.reward_sizes)[-1] == 1 and (self.room == 0 or self.alone)
        simple = one_row and self.uniform
        simple = simple and not (self.waits or self.apart or self.scarce or self.shared)
        # The list gauges nothing.
        simple = (simple or self.lazy) and not self.gauges
        # A plug-in that overrides `run` keeps its own loop.
        mine = type(self).run is EliminationTrial.run
        few = trials * max(1, self.room) * self.arms <= lists.MOST
        filling: Any = self.filling
        listed = platform == "cpu" and simple and mine and few
        if listed and tracing.by_arm(filling, tuple(sorted(self.own))):
            return replace(self, listed=True)
        return self

    @property
    def _prepared(self) -> int:
        """Elements of the largest array that an epoch is prepared with."""
        filling: Any = self.filling
        return tracing.prepared_elements(filling, tuple(sorted(self.own)))

    def elements(self) -> int:
        """Returns how many rows of arms the loop holds for one seed."""
        return self._rows + self._prepared // self.arms

    @property
    def _rows(self) -> int:
        # Agents whose rewards are drawn as one sum are read only once, when the run begins.
        rows = np.shape(self.reward_sizes)[-1] if not self.room else 1
        if self.lazy and self.listed:
            return max(1, self.room // _IN_TURN)
        return max(rows, self.room, np.shape(self.member)[1] // 6)

    def bytes_per_seed(self, points: int, arms: int) -> int:
        """Returns the memory of one seed at work."""
        prepared = _BYTES.prepared * self._prepared * max(1, self.room * self.alone)
        return self._bytes_of_rows(points, arms) + prepared

    def _bytes_of_rows(self, points: int, arms: int) -> int:
        curves = points * (_BYTES.point + _BYTES.waiting * self.waits) + _BYTES.seed
        levels = 0
        if isinstance(self.law, FiniteSupport):
            levels = _BYTES.level * max(0, len(self.law.levels) - 2)
        if self.alone or not self.room and not self.apart:
            rows = np.shape(self.reward_sizes)[-1]
            arm = max(_BYTES.row, _BYTES.rows * rows)
            return max(1, self.room) * ((arm + levels) * arms + curves)
        if self.apart:
            each, agent = _BYTES.apart
            return (each + (agent + levels) * np.shape(self.member)[1]) * arms + curves
        if self.lazy and self.listed:
            return (_BYTES.row + levels + _BYTES.late * self.room) * arms + curves
        simple = self.alike and (self.merged or self.waits)
        element = (_BYTES.alike if simple else _BYTES.differ) + levels
        return self.room * element * arms + curves

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        trial = self.settled(instance)
        if not self.alone:
            return epochs.run(trial, instance, grid, key, self.horizon)
        local, own, last = alone.each(instance, key, self.room, self.agents, self.horizon)
        each = jax.vmap(epochs.run, (None, 0, None, 0, 0))(trial, local, grid, own, last)
        return alone.together(each, self.arms, self.room, self.agents, self.gauges)

    def run_together(
        self, instance: Instance, grid: Int[Array, "trial time"], key: Array
    ) -> Outcome:
        """Runs one seed of each of many trials; this trial's arrays are [trial, ...]."""
        trial = jax.vmap(EliminationTrial.settled)(self, instance)
        if not self.alone:
            return lists.run(trial, instance, grid, key, self.horizon)
        each_alone = jax.vmap(alone.each, (0, 0, None, 0, 0))
        local, own, last = each_alone(instance, key, self.room, self.agents, self.horizon)
        trials, rows = last.shape
        shared = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:, None], (trials, rows, *x.shape[1:])), (trial, grid)
        )
        trial, grid, local, own, last = jax.tree.map(
            lambda x: x.reshape(trials * rows, *x.shape[2:]), (*shared, local, own, last)
        )
        each = lists.run(trial, local, grid, own, last)
        each = jax.tree.map(lambda x: x.reshape(trials, rows, *x.shape[1:]), each)
        together = jax.vmap(alone.together, (0, None, None, 0))
        return together(each, instance.gaps.shape[1], self.room, self.agents)

    def settled(self, instance: Instance) -> EliminationTrial:
        """Returns what each run of the loop is given."""
        own = self.filling.settled(self.own, instance)
        agents = jnp.ones_like(self.agents) if self.alone else self.agents
        return replace(self, own=own, agents=agents)
