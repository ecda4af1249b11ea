"""Agents one by one, each with its own sums, on which it acts while messages travel."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fmab_jax.draws.base import (
    Arms,
    Attendance,
    Draws,
    Segment,
    Sums,
    at_segment,
    get_parameters,
    read_fresh,
    sample_noise,
    sample_participants,
)
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.presences import BoundPresence
from fmab_jax.sampling.arrays import padded_sum, rounded, sum_in_turn
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.shapes import STATIC, PerArm, PyTree, Reals, Scalar, TruthPerRow

# In float64, 0.29 x 100 is below 29.
TRIM_SLACK = 1e-9


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ByAgent(Draws):
    """A row per agent; all agents are drawn in every epoch, also those that do not report.

    Attributes:
        partial_participation: Whether those that are heard are drawn anew each round.
        noise_in_rewards: Whether the sums of rewards include the noise, if no agent acts on
            rewards without noise.
        real: [agent] whether the row is an agent; other rows are padding.
        weights: [agent] weight of each; [0] if all agents that report weigh the same.
        noise_weights: [group] weight of each agent of a group, whose noise is one draw; [0] for
            one group.
        counts: [1, group x width] of a group's noise (`Mechanism.tabulate`); None if each agent's
            noise is a draw.
        presence: Which agents are heard or corrupted; None if all are heard and honest.
        trim: Share of the largest and of the smallest messages that an aggregate drops; None for
            the mean of all.
    """

    partial_participation: bool = field(metadata=STATIC)
    noise_in_rewards: bool = field(metadata=STATIC)
    real: Bool[Array, " agent"]
    weights: Float[Array, " agent"]
    noise_weights: Float[Array, " group"]
    counts: Table | None
    presence: BoundPresence | None = field(default=None, kw_only=True)
    trim: Scalar | None = field(default=None, kw_only=True)

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Rewards of each agent, and noise of each agent or group."""
        rows = (self.real.shape[-1],)
        if self.noise_in_rewards or not self.noisy:
            return {"rewards": rows}
        if self.counts is None:
            return {"rewards": rows, "noise": rows}
        return {"rewards": rows, "noise": (max(1, self.noise_weights.shape[-1]),)}

    @property
    def is_agent(self) -> TruthPerRow:
        """[agent] whether the row is an agent."""
        return jnp.asarray(self.real)

    def compute_constants(self, instance: Instance) -> Arms:
        """Returns the reward law's constants, [arm, agent], or [arm, 1] if agents share them."""
        return {"parameters": tuple(x.T for x in get_parameters(instance))}

    def update_memory(self, memory: PyTree, key: Array, epoch: Epoch) -> tuple[PyTree, PyTree]:
        """Returns the agents that report, if they are drawn anew each round."""
        if not self.partial_participation:
            return (), memory
        return sample_participants(self, self.real, key, epoch.round_index), memory

    @property
    def loses_messages(self) -> bool:
        """Whether a round may miss an agent that reports; then messages are counted."""
        return self.presence is not None and self.presence.static.loses_messages

    def attend(self, key: Array, epoch: Epoch) -> Attendance | tuple[()]:
        """Returns which of the agents that report are heard, and how many of them send."""
        if self.presence is None:
            return ()
        is_reporting = epoch.reports if self.partial_participation else self.real
        agent = jnp.arange(len(self.real), dtype=jnp.uint32)
        occasion = self.presence.build_occasion(key, epoch.round_index)
        is_heard = is_reporting & self.presence.presence.is_heard(occasion, agent)
        is_sent = is_reporting & self.presence.presence.is_sent(occasion, agent)
        reports, messages = (jnp.sum(mask, dtype=jnp.int64) for mask in (is_heard, is_sent))
        reports = reports.astype(jnp.float64)
        if self.secure:
            # A secure sum opens only if no share is missing.
            reports = jnp.where(reports == self.reporting, reports, 0.0)
        return Attendance(is_heard, reports, messages, occasion)

    def count_terms(self, arms: Arms, epoch: Epoch) -> tuple[Scalar, Scalar | PerArm]:
        """Returns the counts of rewards and of noises in an aggregate of those that are heard."""
        rewards, noises = super().count_terms(arms, epoch)
        if not epoch.attendance or self.secure:
            return rewards, noises
        share = jnp.maximum(epoch.attendance.reports, 1.0) / self.reporting
        return rewards * share, noises * share

    def sample(self, arms: Arms, epoch: Epoch) -> Sums:
        """Draws the rewards of each agent, and noise."""
        agent = jnp.arange(self.real.shape[-1], dtype=jnp.uint32)[None]
        arm, real = arms["arm"][:, None], self.real[None]
        lane = agent * jnp.uint32(self.arms) + arm

        def draw(words: Words, segment: Segment, fresh: Scalar) -> Reals:
            pulls = jnp.where(arms["alive"], fresh, 0.0)[:, None]
            parameters = (at_segment(x, segment) for x in arms["parameters"])
            return self.law.total(*words, lane, pulls, *parameters)

        rewards = self.sum_segments(epoch, draw, read_fresh(epoch))
        rewards = jnp.where(real, rewards, 0.0)
        if self.presence is not None and self.presence.static.corrupts:
            pulls = jnp.where(arms["alive"], epoch.drawn, 0.0)[:, None]
            honest = epoch.attendance.occasion, agent, rewards, pulls
            false = self.presence.presence.distort(*honest, jnp.asarray(self.presence.centre))
            rewards = jnp.where(real, false, 0.0)
        if not self.noisy:
            return {"rewards": rewards}
        if self.counts is None:
            scale = self.scale_rows(epoch)
            noise = rounded(self.mechanism.sample(epoch.noise_key, lane, scale))
            noise = jnp.where(real, noise, 0.0)
            if self.noise_in_rewards:
                return {"rewards": rewards + noise}
            return {"rewards": rewards, "noise": noise}
        group = jnp.arange(self.sums["noise"][0], dtype=jnp.uint32)[None]
        lane = group * jnp.uint32(self.arms) + arm
        noise = sample_noise(self, epoch, lane, self.counts)
        return {"rewards": rewards, "noise": noise}

    def sum_agents(self, sums: Sums, epoch: Epoch) -> PerArm:
        """Returns the weighted sum of rewards and noise."""
        rewards, noise = sums["rewards"].T, sums["noise"].T if "noise" in sums else None
        if self.trim is not None or (self.loses_messages and not self.secure):
            messages = rewards if noise is None else rewards + noise
            return self._average_heard(messages, epoch)
        if self.partial_participation:
            messages = rewards if noise is None else rewards + noise
            return sum_in_turn(jnp.where(epoch.reports[:, None], messages, 0.0)) / self.reporting
        if not self.weights.shape[-1]:
            total = padded_sum(rewards)
            return (total if noise is None else total + noise[0]) / self.agents
        weights = self.weights[:, None]
        if noise is None or self.counts is None:
            return padded_sum(rounded(weights * (rewards if noise is None else rewards + noise)))
        total = padded_sum(rounded(weights * rewards))
        return total + padded_sum(rounded(self.noise_weights[:, None] * noise))

    def _average_heard(self, messages: Float[Array, "agent arm"], epoch: Epoch) -> PerArm:
        """Returns the mean of the messages of the agents that are heard, perhaps trimmed."""
        reports = epoch.reports if self.partial_participation else self.real
        is_heard = epoch.attendance.is_heard if epoch.attendance else reports
        count = jnp.sum(is_heard, dtype=jnp.int32)
        if self.trim is None:
            total = sum_in_turn(jnp.where(is_heard[:, None], messages, 0.0))
            return total / jnp.maximum(count, 1).astype(jnp.float64)
        # At least one message, or two in the middle, is left: their mean is the median.
        number = count.astype(jnp.float64)
        share = jnp.floor(self.trim * number + TRIM_SLACK)
        cut = jnp.minimum(share, jnp.floor(0.5 * (number - 1.0)))
        ordered = jnp.sort(jnp.where(is_heard[:, None], messages, jnp.inf), axis=0)
        place = jnp.arange(len(is_heard), dtype=jnp.float64)[:, None]
        stays = (place >= cut) & (place < number - cut)
        total = sum_in_turn(jnp.where(stays, ordered, 0.0))
        return total / jnp.maximum(number - 2.0 * cut, 1.0)
