"""The accounts of a run of Algorithm 1: slots, regret, rounds, remaining arms.

`fmab_jax.elimination` decides; this module counts. Regret grows in straight lines, which become
curves at the recorded slots. Accumulators of outputs get the same stretches of slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from fmab_jax.draws.base import Arms
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import OwnGaps
from fmab_jax.parts.outputs.accumulators import (
    Accumulator,
    Rows,
    Stretch,
    accumulate_segments,
    count_rows,
    finish_accumulators,
    make_stretch,
    start_accumulators,
)
from fmab_jax.parts.trials import Outcome
from fmab_jax.sampling import arrays
from fmab_jax.sampling.curves import NEVER, Curves, Line, draw_line
from fmab_jax.sampling.segments import Ends, grow
from fmab_jax.sampling.shapes import (
    STATIC,
    Grid,
    Integer,
    PerRow,
    PerRowArm,
    PyTree,
    Reals,
    Scalar,
    Truth,
    TruthPerRow,
)


class RunState(NamedTuple):
    """The state of a run between two epochs.

    Attributes:
        number: r, number of the last epoch.
        pulls: S_r, pulls of each arm in play.
        slot: Last completed slot.
        regret: Regret of all agents up to that slot.
        waiting_regret: Part of the regret in waiting slots.
        active: Number of arms in play.
        gap_sum: Sum of their gaps; in each segment, if means change.
        best_arm: The best of them, by the last aggregate.
        best_eliminated: Whether every optimal arm is eliminated.
        rounds: Completed rounds.
        arms_reported: Arms in play at the start of each completed round, summed over rounds.
        memory: Memory of the draws.
        active_mask: [arm] whether an arm is in play; empty if no output needs it.
        accumulators: States of the accumulators of outputs.
        pulls_by_segment: [segment] the part of ``pulls`` in each segment, if means change.
        messages: Messages of agents so far, if they are counted one by one.
    """

    number: Integer
    pulls: Scalar
    slot: Integer
    regret: Scalar
    waiting_regret: Scalar
    active: Integer
    gap_sum: Reals
    best_arm: Integer
    best_eliminated: Truth
    rounds: Integer
    arms_reported: Integer
    memory: PyTree
    active_mask: Bool[Array, " place"]
    accumulators: tuple[PyTree, ...]
    pulls_by_segment: PyTree = ()
    messages: PyTree = ()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Accounts:
    """The accounts of a run: what they read of a trial and its instance.

    Attributes:
        waits: Whether agents play their own best arm while messages travel.
        counts_messages: Whether messages are counted one by one, since a round may miss some.
        accumulators: Accumulators that the loop computes for outputs.
        grid: Recorded slots.
        gaps: [arm]; [segment, arm] if means change.
        ends: Last slot of each segment; None if means do not change.
        scale: A power of two that no gap exceeds.
        own_gaps: `Instance.own_gaps`; None if no accumulator is on.
        agents: M.
        is_agent: [row] rows of agents that wait, or one row.
        horizon: T.
        last: Slot at which the run is over.
        wait: Slots from an epoch's end to its aggregate.
        budget: The round budget R.
    """

    waits: bool = field(metadata=STATIC)
    counts_messages: bool = field(metadata=STATIC)
    accumulators: tuple[Accumulator, ...] = field(metadata=STATIC)
    grid: Grid
    gaps: Reals
    ends: Ends | None
    scale: Scalar
    own_gaps: OwnGaps | None
    agents: Scalar
    is_agent: TruthPerRow
    horizon: Integer
    last: Integer
    wait: Integer
    budget: Scalar

    @property
    def arms(self) -> int:
        """K."""
        return self.gaps.shape[-1]

    @property
    def rows(self) -> Rows:
        """Rows of an accumulator by agent."""
        return count_rows(len(self.is_agent) if self.waits else 1, self.own_gaps)

    @property
    def agents_by_row(self) -> PerRow:
        """Number of agents that each of these rows stands for."""
        return self.is_agent.astype(jnp.float64) if self.waits else self.agents[None]

    def gap_of(self, arm: Int[Array, ...]) -> Reals:
        """Returns the gap of an arm, or of several: [...]; [segment, ...] if means change."""
        return self.gaps[..., arm]

    def start(self, memory: PyTree) -> RunState:
        """Returns the state before the first epoch (lines 1-2)."""
        zero_count, zero, zero_slots = jnp.int32(0), jnp.float64(0.0), jnp.int64(0)
        arms, ends = self.arms, self.ends
        return RunState(
            number=zero_count,
            pulls=zero,
            slot=zero_slots,
            regret=zero,
            waiting_regret=zero,
            active=jnp.int32(arms),
            gap_sum=arrays.exact_sum(self.gaps.T, self.scale),
            best_arm=zero_count,
            best_eliminated=jnp.bool_(False),
            rounds=zero_count,
            arms_reported=zero_slots,
            memory=memory,
            active_mask=jnp.ones(arms if self.accumulators else 0, bool),
            accumulators=start_accumulators(self.accumulators, self.rows, arms, self.grid),
            pulls_by_segment=() if ends is None else jnp.zeros(len(ends)),
            messages=zero_slots if self.counts_messages else (),
        )

    def is_spent(self, state: RunState) -> Truth:
        """Tells whether the round budget R is spent."""
        return state.rounds.astype(jnp.float64) >= self.budget

    def is_running(self, state: RunState) -> Truth:
        """Tells whether another epoch follows."""
        # With NaN the run would never end.
        has_time = (state.slot < self.last) & ~jnp.isnan(state.pulls)
        return has_time & (state.active > 1) & ~self.is_spent(state)

    def close_epoch(
        self, state: RunState, epoch: Epoch, reduced: Arms
    ) -> tuple[RunState, tuple[Line, ...]]:
        """Returns the state after an epoch and its wait, and the lines of its regret."""
        completed = epoch.fits_horizon & (epoch.end + self.wait <= self.horizon)
        rounds, reported = epoch.round_index, state.active.astype(jnp.int64)
        if self.counts_messages:
            # A round that hears nobody does not count, but its messages do.
            completed = completed & (epoch.attendance.reports > 0.0)
            rounds, reported = state.rounds + 1, jnp.int64(0)
            state = count_messages(state, epoch)
        state, lines = self._explore(state, epoch, completed, rounds)
        if self.waits:
            state, line = self._wait(state, epoch, completed, rounds, reduced["play"])
            lines += (line,)
        after = state._replace(
            active=reduced["active"],
            gap_sum=arrays.exact_total(reduced["gaps"][0], reduced["gaps"][1], self.scale),
            best_arm=jnp.where(reduced["best_arm"] < self.arms, reduced["best_arm"], 0),
            best_eliminated=reduced["optimal"] == 0,
            rounds=rounds,
            arms_reported=state.arms_reported + reported,
            active_mask=reduced.get("active_mask", state.active_mask),
        )
        state = jax.tree.map(lambda new, old: jnp.where(completed, new, old), after, state)
        pulls = jnp.where(jnp.isnan(epoch.radius), epoch.radius, epoch.pulls)
        return state._replace(
            number=jnp.where(epoch.is_running, epoch.round_index, state.number),
            pulls=jnp.where(epoch.is_running, pulls, state.pulls),
            memory=epoch.memory,
            pulls_by_segment=epoch.pulls_by_segment,
        ), lines

    def _explore(
        self, state: RunState, epoch: Epoch, completed: Truth, rounds: Integer
    ) -> tuple[RunState, tuple[Line, ...]]:
        """Returns the state at an epoch's end, and the line of its regret.

        All agents pull the arms in play in turn, so regret grows by their mean gap.

        Args:
            state: The state before the epoch.
            epoch: The epoch.
            completed: Whether its round is completed.
            rounds: Completed rounds with it.
        """
        never = jnp.int64(NEVER)
        rate = self.agents * (state.gap_sum / epoch.active)
        # Where agents wait, the round ends in the line of the wait.
        round_end = never if self.waits else jnp.where(completed, epoch.end, never)
        line = Line(
            start=jnp.where(epoch.is_running, state.slot, never),
            regret=state.regret,
            rate=rate,
            waiting_regret=state.waiting_regret,
            waiting_rate=jnp.zeros(state.gap_sum.shape),
            round_end=round_end,
            rounds=rounds,
            messages=self._list_messages(state, jnp.where(epoch.fits_horizon, epoch.end, never)),
        )

        def compute_stretch() -> Stretch:
            weights, rows = jnp.where(state.active_mask, 1.0, 0.0), self.rows.playing
            share = jnp.broadcast_to(weights / jnp.sum(weights), (rows, self.arms))
            gap = jnp.broadcast_to((rate / self.agents)[..., None], (*rate.shape, rows))
            return self._compute_stretch(state.slot, epoch.end, gap, share)

        return state._replace(
            slot=epoch.end,
            regret=state.regret + grow(rate, state.slot, epoch.end, self.ends),
            accumulators=self._accumulate(state, compute_stretch),
        ), (line,)

    def _wait(
        self, state: RunState, epoch: Epoch, completed: Truth, rounds: Integer, play: Array
    ) -> tuple[RunState, Line]:
        """Returns the state after a wait, in which each agent plays the best arm of its own."""
        slot, never = state.slot, jnp.int64(NEVER)
        gap = self.gap_of(jnp.minimum(play, self.arms - 1))
        rate = arrays.padded_sum(jnp.where(self.is_agent, gap, 0.0).T)
        end = jnp.where(epoch.is_running, jnp.minimum(slot + self.wait, self.horizon), slot)
        line = Line(
            start=jnp.where(epoch.is_running, slot, never),
            regret=state.regret,
            rate=rate,
            waiting_regret=state.waiting_regret,
            waiting_rate=rate,
            round_end=jnp.where(completed, end, never),
            rounds=rounds,
        )
        regret = grow(rate, slot, end, self.ends)

        def compute_stretch() -> Stretch:
            share = jax.nn.one_hot(play, self.arms, dtype=jnp.float64)
            return self._compute_stretch(slot, end, gap, share)

        return state._replace(
            slot=end,
            regret=state.regret + regret,
            waiting_regret=state.waiting_regret + regret,
            accumulators=self._accumulate(state, compute_stretch),
        ), line

    def _compute_stretch(
        self, slot: Integer, end: Integer, gap: Reals, share: PerRowArm
    ) -> Stretch:
        """Returns a stretch of slots."""
        agents = self.agents_by_row
        return make_stretch(slot, end, gap, share, agents, self.own_gaps)

    def _accumulate(
        self, state: RunState, compute_stretch: Callable[[], Stretch]
    ) -> tuple[PyTree, ...]:
        """Returns the accumulators after a stretch of slots."""
        inputs = self.accumulators, state.accumulators, compute_stretch, self.grid, self.ends
        return accumulate_segments(*inputs)

    def _list_messages(self, state: RunState, slot: Integer) -> tuple[Integer, Integer] | tuple[()]:
        """Returns the slot of a round's messages and their count so far, if they are counted."""
        return (slot, state.messages) if self.counts_messages else ()

    def finish(self, state: RunState, curves: Curves) -> Outcome:
        """Returns the outcome of a run, which plays the best arm to the end (lines 16-17)."""
        arms, never = self.arms, jnp.int64(NEVER)
        gap = self.gap_of(state.best_arm)
        has_decided = (state.active == 1) | self.is_spent(state)
        line = Line(
            start=state.slot,
            regret=state.regret,
            rate=self.agents * gap,
            waiting_regret=state.waiting_regret,
            waiting_rate=jnp.zeros(state.gap_sum.shape),
            round_end=never,
            rounds=state.rounds,
            messages=self._list_messages(state, never),
        )
        curves = draw_line(curves, self.grid, line)

        def compute_stretch() -> Stretch:
            share = jax.nn.one_hot(state.best_arm, arms, dtype=jnp.float64)
            share = jnp.broadcast_to(share, (self.rows.playing, arms))
            by_row = jnp.broadcast_to(gap[..., None], (*gap.shape, self.rows.playing))
            return self._compute_stretch(state.slot, self.horizon, by_row, share)

        accumulators = self._accumulate(state, compute_stretch)
        mean_gap = state.gap_sum / state.active.astype(jnp.float64)
        lost = jnp.where(state.best_eliminated, self.agents, 0.0)
        agents_lost: Integer | None = lost.astype(jnp.int32)
        if self.ends is not None:
            # An arm that was best is not lost where means change; the last segment counts at T.
            agents_lost, gap, mean_gap = None, gap[-1], mean_gap[-1]
        return Outcome(
            # An equation returned NaN.
            regret=jnp.where(jnp.isnan(state.pulls), jnp.nan, curves.regret),
            waiting_regret=curves.waiting,
            rounds_by=curves.rounds,
            rounds=state.rounds,
            messages_by=curves.messages,
            arms_reported=state.arms_reported,
            active_arms=state.active,
            chosen_arm=jnp.where(has_decided, state.best_arm, -1),
            agents_lost=agents_lost,
            agents_worse=jnp.where(has_decided & (gap > 0.0), self.agents, 0.0).astype(jnp.int32),
            final_gap=jnp.where(has_decided, gap, mean_gap),
            accumulator_values=finish_accumulators(
                self.accumulators, accumulators, self.rows, arms, len(self.grid), self.own_gaps
            ),
        )


def power_of_two_above(gaps: Reals) -> Scalar:
    """Returns a power of two that no gap exceeds."""
    return jnp.ldexp(jnp.ones(()), jnp.frexp(jnp.max(gaps))[1])


def count_messages(state: RunState, epoch: Epoch) -> RunState:
    """Returns the state with the messages of a round, which report all arms in play."""
    messages = jnp.where(epoch.fits_horizon, epoch.attendance.messages, 0)
    reported = state.active.astype(jnp.int64) * messages
    return state._replace(
        messages=state.messages + messages, arms_reported=state.arms_reported + reported
    )
