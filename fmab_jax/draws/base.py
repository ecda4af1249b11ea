"""The random draws of an epoch, and their aggregate; methods see the arms of one trial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.parts.presences import Occasion
from fmab_jax.parts.rewards import Law
from fmab_jax.sampling import keys, samplers
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.distinct import map_in_blocks
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import (
    STATIC,
    Bits,
    Integer,
    PerArm,
    PyTree,
    Reals,
    Scalar,
    TruthPerAgent,
    TruthPerRow,
)

Arms = dict[str, PyTree]
Sums = dict[str, Float[Array, "arm ..."]]
Segment = Integer | None
Read = Callable[[Segment], Reals]


class Attendance(NamedTuple):
    """The attendance of a round, where agents may be absent or corrupted.

    Attributes:
        is_heard: [agent] whether the round hears the agent.
        reports: Number of agents whose messages enter the aggregate; 0 voids the round.
        messages: Number of messages that agents send.
        occasion: The round, for corrupted agents.
    """

    is_heard: TruthPerAgent
    reports: Scalar
    messages: Integer
    occasion: Occasion


@dataclass(frozen=True)
class Draws:
    """A way to sample the sums over agents.

    Attributes:
        law: Law of rewards, without its traced values.
        mechanism: Law of the noise of messages.
        noisy: Whether messages carry noise.
        remembers: Whether an aggregate is over all epochs so far, or over the last one only.
        secure: Whether the sum holds one Laplace variable instead of one per agent.
        arms: K.
        segments: Segments of the world; 0 if means do not change.
        agents: M.
        reporting: N, the agents that report in a round.
        ratios: [row] scale of the noise of each row, an agent or a group, over that of the round;
            None if all agents have one scale.
        shares_arms: Whether agents split the arms, by their ranks among those in play.
    """

    law: Law = field(metadata=STATIC)
    mechanism: Mechanism = field(metadata=STATIC)
    noisy: bool = field(metadata=STATIC)
    remembers: bool = field(metadata=STATIC)
    secure: bool = field(metadata=STATIC)
    arms: int = field(metadata=STATIC)
    segments: int = field(metadata=STATIC)
    agents: Scalar
    reporting: Scalar
    ratios: Float[Array, " row"] | None = field(default=None, kw_only=True)

    shares_arms: ClassVar[bool] = False

    @property
    @abstractmethod
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the running sums of an arm, by name."""

    def compute_constants(self, instance: Instance) -> Arms:
        """Returns constants [arm, ...], and tables that `aggregate` may write into.

        By default the parameters of rewards, which all agents share.
        """
        return {"parameters": tuple(x[0].T for x in get_parameters(instance))}

    @property
    def rows(self) -> int:
        """Numbers that the largest sum of an arm takes in memory."""
        return max([1, *(shape[0] for shape in self.sums.values() if shape)])

    @property
    def lanes(self) -> int:
        """Numbers that are drawn at once for an arm."""
        return self.rows

    @property
    def is_agent(self) -> TruthPerRow:
        """[row] whether a row of the sums is agents, not padding; one row by default."""
        return jnp.ones(1, bool)

    def scale_rows(self, epoch: Epoch) -> Reals:
        """Returns the scale of the noise, [1, row] if rows differ."""
        return epoch.scale if self.ratios is None else epoch.scale * self.ratios[None]

    @property
    def counts_noises(self) -> bool:
        """Whether the number of Laplace variables differs between arms."""
        return False

    def count_terms(self, arms: Arms, epoch: Epoch) -> tuple[Scalar, Scalar | PerArm]:
        """Returns the counts of rewards and of Laplace variables in an aggregate."""
        epochs, pulls = (epoch.number, epoch.pulls) if self.remembers else (1.0, epoch.drawn)
        noises = (1.0 if self.secure else self.reporting) * epochs * float(self.noisy)
        return self.reporting * pulls, jnp.asarray(noises)

    def bound_pulls(self, horizon: Scalar) -> Scalar:
        """Returns an upper bound of the pulls of an arm."""
        return horizon

    def count_slots(self, active: Scalar, fresh: Scalar) -> Integer:
        """Returns the slots of an epoch (line 6)."""
        return (active * fresh).astype(jnp.int64)

    def start_memory(self) -> PyTree:
        """Returns the memory of a trial, besides its arms, before the first epoch."""
        return ()

    def update_memory(self, memory: PyTree, key: Array, epoch: Epoch) -> tuple[PyTree, PyTree]:
        """Returns the reports of an epoch, for its draws, and the memory after it."""
        return (), memory

    @property
    def loses_messages(self) -> bool:
        """Whether a round may miss an agent that reports; then messages are counted."""
        return False

    def attend(self, key: Array, epoch: Epoch) -> PyTree:
        """Returns the `Attendance` of a round; () where all agents that report are heard."""
        return ()

    def sample(self, arms: Arms, epoch: Epoch) -> Sums:
        """Draws the increment of each sum in an epoch (line 9)."""
        raise NotImplementedError

    def sum_segments(
        self, epoch: Epoch, draw: Callable[[Words, Segment, Reals], Reals], read: Read
    ) -> Reals:
        """Returns the rewards of an epoch: one draw, or the sum of one draw per segment.

        Args:
            epoch: Inputs of the epoch's draws.
            draw: Maps the key of rewards, a segment and the pulls of an arm by an agent to rewards.
            read: Maps a segment to these pulls.
        """
        if not self.segments:
            return draw(epoch.reward_key, None, read(None))

        def draw_segment(segment: Array, pulls: Reals) -> Reals:
            return draw(Words(*(x[segment] for x in epoch.reward_key)), segment, pulls)

        def add_segment(segment: Array, total: Reals) -> Reals:
            pulls = read(segment)
            return lax.cond(
                anywhere(jnp.any(pulls > 0.0)),
                lambda: total + draw_segment(segment, pulls),
                lambda: total,
            )

        first = jnp.int32(0)
        shape = jax.eval_shape(lambda: draw_segment(first, read(first))).shape
        return lax.fori_loop(first, jnp.int32(self.segments), add_segment, jnp.zeros(shape))

    def sum_agents(self, sums: Sums, epoch: Epoch) -> PerArm:
        """Returns the sum of rewards and noise, weighted over agents (lines 10-12)."""
        raise NotImplementedError

    def aggregate(self, arms: Arms, epoch: Epoch) -> tuple[Arms, PerArm]:
        """Returns the sums after an epoch, or tables, and the mean of each arm.

        By default by `sample` and `sum_agents`.
        """
        fresh = self.sample(arms, epoch)
        sums = {name: arms[name] + x for name, x in fresh.items()}
        if self.remembers:
            return sums, self.sum_agents(sums, epoch) / epoch.pulls
        return sums, self.sum_agents(fresh, epoch) / epoch.drawn


def get_parameters(instance: Instance) -> tuple[Array, ...]:
    """Returns the reward law's arrays, [row, arm], or [row, segment, arm] if means change."""
    return instance.parameters if instance.segments is None else instance.segments.parameters


def read_fresh(epoch: Epoch) -> Read:
    """Returns a function from a segment to the pulls of an arm in it, in an epoch."""
    return lambda segment: epoch.drawn if segment is None else epoch.fresh_by_segment[segment]


def at_segment(values: Reals, segment: Segment) -> Reals:
    """Returns the values [arm, ...] of a segment, from [arm, segment, ...]."""
    if segment is None:
        return values
    return lax.dynamic_index_in_dim(values, segment, 1, keepdims=False)


def map_constants(draws: Draws, instance: Instance) -> Arms:
    """Applies `Draws.compute_constants` to many trials; all arrays are [trial, ...]."""

    def compute(draws: Draws, instance: Instance) -> Arms:
        return draws.compute_constants(instance)

    return map_in_blocks(compute, instance.means[0].size)(draws, instance)


def sample_participants(
    draws: Draws, real: TruthPerAgent, key: Array, number: Integer
) -> TruthPerAgent:
    """Draws the N agents that report in a round (section IV-B)."""
    words = keys.stream_key(key, number, keys.PARTICIPATION)
    return samplers.sample_participants(words, real, draws.reporting.astype(jnp.int32))


def sample_noise(draws: Draws, epoch: Epoch, lane: Bits, counts: Table) -> Reals:
    """Samples a sum of noises per lane.

    Args:
        draws: Whose mechanism.
        epoch: Key and scale of the noise.
        lane: [arm], or [arm, group].
        counts: [1, group x width] of `Mechanism.tabulate`.
    """

    def read(function: Callable[..., Array], *arrays: Array) -> Array:
        def of_groups(row: Array, *arrays: Array) -> Array:
            groups = lane.shape[-1] if lane.ndim > 1 else 0
            constants = row.reshape(groups, -1).T[:, None, :] if groups else row
            return function(constants, *arrays)

        return counts.apply(of_groups, *arrays)

    scale = draws.scale_rows(epoch)
    return rounded(draws.mechanism.sample_tabulated(epoch.noise_key, lane, scale, read))
