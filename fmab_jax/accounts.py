"""The values of a run of Algorithm 1, and its accounts: slots, regret, rounds, remaining arms.

`fmab_jax.elimination` decides; this module counts. Regret grows in straight lines, which become
curves at the recorded slots. Accumulators of outputs get the same stretches of slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from fmab_jax.draws import ByAgent, Draws
from fmab_jax.draws.base import Arms, Round
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.mechanisms.base import Mechanism
from fmab_jax.parts.mechanisms.laplace import LAPLACE
from fmab_jax.parts.outputs import (
    Accumulator,
    Stretch,
    accumulate_segments,
    finish_accumulators,
    start_accumulators,
)
from fmab_jax.parts.trials import Outcome
from fmab_jax.sampling import arrays
from fmab_jax.sampling.curves import NEVER, Curves, Line, draw_line
from fmab_jax.sampling.segments import Ends, grow
from fmab_jax.sampling.shapes import STATIC, Integer, PerArm, PerRow, PyTree, Reals, Scalar, Truth


class Epoch(NamedTuple):
    """The inputs of one epoch's equations: float64 scalars, traced.

    Attributes:
        number: r = 1, 2, ...
        active: Arms in play at the epoch's start, a.
        arms: K.
        agents: M, the agents whose rewards this run adds up; 1 where each is alone.
        reporting: N, the agents that report in a round.
        horizon: T, in slots.
        previous: S_{r-1}, pulls per active arm and agent before this epoch; where agents share the
            arms out, of all agents together.
        pulls: S_r, pulls up to and including this epoch.
        fresh: n_r = S_r - S_{r-1}, pulls of this epoch.
        params: The algorithm's values, by name; see `Elimination.values`.
        mechanism: Law of the noise of messages; not traced.
    """

    number: Scalar
    active: Scalar
    arms: Scalar
    agents: Scalar
    reporting: Scalar
    horizon: Scalar
    previous: Scalar
    pulls: Scalar
    fresh: Scalar
    params: dict[str, Reals]
    mechanism: Mechanism = LAPLACE


class Aggregate(NamedTuple):
    """The aggregate of a round, by which `Elimination.worse` judges the arms.

    Attributes:
        mean: [arm] mean reward by the messages; NaN for eliminated arms, if an equation compares
            arms with each other.
        best: The largest mean of an arm in play.
        rewards: How many rewards a mean is over.
        noises: How many Laplace variables of the epochs' scale its sum holds; one number per arm
            if agents share the arms out.
        best_noises: How many Laplace variables the best arm's sum holds.
        radius: Result of `Elimination.radius`.
        precomputed: Result of `Elimination.precompute`.
    """

    mean: PerArm
    best: Scalar
    rewards: Scalar
    noises: Scalar | PerArm
    best_noises: Scalar
    radius: Scalar
    precomputed: PyTree = ()


class Plan(NamedTuple):
    """The next epoch of a run.

    Attributes:
        runs: Whether the run goes on.
        fits: Whether the epoch ends by the horizon; otherwise it uploads nothing.
        end: Its last slot, at most T.
        epoch: Inputs of the equations.
        radius: C(r).
        round: Inputs of the draws.
        memory: Memory of the draws after the epoch.
        precomputed: Result of `Elimination.precompute`.
    """

    runs: Truth
    fits: Truth
    end: Integer
    epoch: Epoch
    radius: Scalar
    round: Round
    memory: PyTree
    precomputed: PyTree = ()


class _Equations(Protocol):
    """The functions of an `Elimination` that a run calls."""

    @staticmethod
    def budget(params: dict[str, Reals]) -> Scalar | float: ...
    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar: ...
    @staticmethod
    def radius(epoch: Epoch) -> Scalar: ...
    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar: ...
    @classmethod
    def precompute(cls, epoch: Epoch, radius: Scalar) -> PyTree: ...
    @classmethod
    def worse(cls, aggregate: Aggregate, epoch: Epoch) -> Bool[Array, " arm"]: ...


@dataclass(frozen=True)
class BoundElimination:
    """An elimination algorithm bound to a problem: the values that a run reads.

    Attributes:
        algorithm: The class, for its equations.
        elementwise: Whether `worse` judges arms independently.
        precompute_fields: Fields of an epoch that `Elimination.precompute` reads.
        mean_rows: Rows of the mean rewards of a run: one for each agent, or one for all.
        alone: Whether every agent runs by itself, without communication.
        waits: Whether agents play their own best arm while messages travel.
        padded_agents: Rows that agents are padded to if each runs by itself, else 0.
        draws: The sampler of an epoch.
        horizon: T in slots, int64.
        agents: M.
        reporting: N, the agents heard in a round.
        wait: Slots from an epoch's end to its aggregate.
        params: The algorithm's values.
        accumulators: Accumulators that the loop computes for outputs.
    """

    algorithm: type[_Equations] = field(metadata=STATIC)
    elementwise: bool = field(metadata=STATIC)
    precompute_fields: tuple[str, ...] = field(metadata=STATIC)
    mean_rows: int = field(metadata=STATIC)
    alone: bool = field(metadata=STATIC)
    waits: bool = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    draws: Draws
    horizon: Array
    agents: Array
    reporting: Array
    wait: Array
    params: dict[str, Array]
    accumulators: tuple[Accumulator, ...] = field(default=(), metadata=STATIC)

    @property
    def accumulator_rows(self) -> int:
        """Number of rows of an accumulator by agent."""
        return self.draws.real.shape[-1] if isinstance(self.draws, ByAgent) and self.waits else 1

    @property
    def agents_by_row(self) -> PerRow:
        """Number of agents that each of these rows stands for."""
        if isinstance(self.draws, ByAgent) and self.waits:
            return jnp.asarray(self.draws.real).astype(jnp.float64)
        return jnp.asarray(self.agents)[None]


class State(NamedTuple):
    """The state of a run between two epochs.

    Attributes:
        number: r, number of the last epoch.
        pulls: S_r, pulls of each arm in play.
        slot: Last completed slot.
        regret: Regret of all agents up to that slot.
        waiting_regret: Part of the regret in waiting slots.
        active: Number of arms in play.
        gaps: Sum of their gaps; in each segment, if means change.
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
    gaps: Reals
    best_arm: Integer
    best_eliminated: Truth
    rounds: Integer
    arms_reported: Integer
    memory: PyTree
    active_mask: Bool[Array, " place"]
    accumulators: tuple[PyTree, ...]
    pulls_by_segment: PyTree = ()
    messages: PyTree = ()


class Losses(NamedTuple):
    """The regret of a pull of each arm.

    Attributes:
        gaps: [arm]; [segment, arm] if means change.
        ends: Last slot of each segment; None if means do not change.
        scale: A power of two that no gap exceeds.
    """

    gaps: Reals
    ends: Ends | None
    scale: Scalar

    @property
    def arms(self) -> int:
        """K."""
        return self.gaps.shape[-1]

    def of_arm(self, arm: Int[Array, ...]) -> Reals:
        """Returns the gap of an arm, or of several: [...]; [segment, ...] if means change."""
        return self.gaps[..., arm]


def find_losses(instance: Instance) -> Losses:
    """Returns the losses of an instance."""
    segments = instance.segments
    gaps, ends = (instance.gaps, None) if segments is None else (segments.gaps, segments.ends)
    return Losses(gaps, ends, power_of_two_above(gaps))


def power_of_two_above(gaps: Reals) -> Scalar:
    """Returns a power of two that no gap exceeds."""
    return jnp.ldexp(jnp.ones(()), jnp.frexp(jnp.max(gaps))[1])


def start_run(trial: BoundElimination, losses: Losses, grid: Array) -> State:
    """Returns the state before the first epoch (lines 1-2)."""
    zero_count, zero, zero_slots = jnp.int32(0), jnp.float64(0.0), jnp.int64(0)
    arms, ends = losses.arms, losses.ends
    return State(
        number=zero_count,
        pulls=zero,
        slot=zero_slots,
        regret=zero,
        waiting_regret=zero,
        active=jnp.int32(arms),
        gaps=arrays.exact_sum(losses.gaps.T, losses.scale),
        best_arm=zero_count,
        best_eliminated=jnp.bool_(False),
        rounds=zero_count,
        arms_reported=zero_slots,
        memory=trial.draws.start_memory(),
        active_mask=jnp.ones(arms if trial.accumulators else 0, bool),
        accumulators=start_accumulators(trial.accumulators, trial.accumulator_rows, arms, grid),
        pulls_by_segment=() if ends is None else jnp.zeros(len(ends)),
        messages=zero_slots if trial.draws.loses_messages else (),
    )


def is_spent(trial: BoundElimination, state: State) -> Truth:
    """Tells whether the round budget R is spent."""
    return state.rounds.astype(jnp.float64) >= trial.algorithm.budget(trial.params)


def is_running(trial: BoundElimination, state: State, last: Integer) -> Truth:
    """Tells whether another epoch follows."""
    # With NaN the run would never end.
    has_time = (state.slot < last) & ~jnp.isnan(state.pulls)
    return has_time & (state.active > 1) & ~is_spent(trial, state)


def close_epoch(
    trial: BoundElimination, losses: Losses, grid: Array, state: State, plan: Plan, reduced: Arms
) -> tuple[State, tuple[Line, ...]]:
    """Returns the state after an epoch and its wait, and the lines of its regret."""
    number, never, ends = plan.round.number, jnp.int64(NEVER), losses.ends
    zero = jnp.zeros(state.gaps.shape)
    slot, regret, waiting_regret = plan.end, state.regret, state.waiting_regret
    completed = plan.fits & (slot + trial.wait <= trial.horizon)
    rounds, reported = number, state.active.astype(jnp.int64)
    if trial.draws.loses_messages:
        # A round that hears nobody does not count, but its messages do.
        completed = completed & (plan.round.attendance.reports > 0.0)
        rounds, reported = state.rounds + 1, jnp.int64(0)
        state = count_messages(state, plan)
    sent = list_messages(trial, state, jnp.where(plan.fits, slot, never))
    rate = trial.agents * (state.gaps / plan.epoch.active)
    ended = never if trial.waits else jnp.where(completed, slot, never)
    start = jnp.where(plan.runs, state.slot, never)
    first = Line(start, regret, rate, waiting_regret, zero, ended, rounds, sent)
    lines: tuple[Line, ...] = (first,)
    regret = regret + grow(rate, state.slot, slot, ends)
    accumulators = accumulate_segments(
        trial.accumulators,
        state.accumulators,
        lambda: make_epoch_stretch(trial, state, plan, rate),
        grid,
        ends,
    )
    if trial.waits:
        gap = losses.of_arm(jnp.minimum(reduced["play"], losses.arms - 1))
        assert isinstance(trial.draws, ByAgent)
        real = trial.draws.real
        rate = arrays.padded_sum(jnp.where(real, gap, 0.0).T)
        wait_end = jnp.where(plan.runs, jnp.minimum(slot + trial.wait, trial.horizon), slot)
        start, ended = (
            jnp.where(x, y, never) for x, y in ((plan.runs, slot), (completed, wait_end))
        )
        lines += (Line(start, regret, rate, waiting_regret, rate, ended, rounds),)
        wait_regret = grow(rate, slot, wait_end, ends)
        regret, waiting_regret = regret + wait_regret, waiting_regret + wait_regret
        share = jax.nn.one_hot(reduced["play"], losses.arms, dtype=jnp.float64)
        stretch = Stretch(slot, wait_end, gap, share, real.astype(jnp.float64))
        accumulators = accumulate_segments(
            trial.accumulators, accumulators, lambda: stretch, grid, ends
        )
        slot = wait_end
    after = state._replace(
        active=reduced["active"],
        gaps=arrays.exact_total(reduced["gaps"][0], reduced["gaps"][1], losses.scale),
        best_arm=jnp.where(reduced["best_arm"] < losses.arms, reduced["best_arm"], 0),
        best_eliminated=reduced["optimal"] == 0,
        rounds=rounds,
        arms_reported=state.arms_reported + reported,
        active_mask=reduced.get("active_mask", state.active_mask),
    )
    state = jax.tree.map(lambda new, old: jnp.where(completed, new, old), after, state)
    pulls = jnp.where(jnp.isnan(plan.radius), plan.radius, plan.epoch.pulls)
    return state._replace(
        number=jnp.where(plan.runs, number, state.number),
        pulls=jnp.where(plan.runs, pulls, state.pulls),
        slot=slot,
        regret=regret,
        waiting_regret=waiting_regret,
        memory=plan.memory,
        accumulators=accumulators,
        pulls_by_segment=plan.round.pulls_by_segment,
    ), lines


def count_messages(state: State, plan: Plan) -> State:
    """Returns the state with the messages of a round, which report all arms in play."""
    messages = jnp.where(plan.fits, plan.round.attendance.messages, 0)
    reported = state.active.astype(jnp.int64) * messages
    return state._replace(
        messages=state.messages + messages, arms_reported=state.arms_reported + reported
    )


def list_messages(
    trial: BoundElimination, state: State, slot: Integer
) -> tuple[Integer, Integer] | tuple[()]:
    """Returns the slot of a round's messages and their count so far, if they are counted."""
    return (slot, state.messages) if trial.draws.loses_messages else ()


def make_epoch_stretch(trial: BoundElimination, state: State, plan: Plan, rate: Reals) -> Stretch:
    """Returns the stretch of an epoch, in which all agents play the arms in play in turn."""
    rows, weights = trial.accumulator_rows, jnp.where(state.active_mask, 1.0, 0.0)
    share = jnp.broadcast_to(weights / jnp.sum(weights), (rows, len(weights)))
    gap = jnp.broadcast_to((rate / trial.agents)[..., None], (*rate.shape, rows))
    return Stretch(state.slot, plan.end, gap, share, trial.agents_by_row)


def finish_run(
    trial: BoundElimination, losses: Losses, grid: Array, state: State, curves: Curves
) -> Outcome:
    """Returns the outcome of a run, which plays the best arm to the end (lines 16-17)."""
    rows, arms, never = trial.accumulator_rows, losses.arms, jnp.int64(NEVER)
    zero, gap = jnp.zeros(state.gaps.shape), losses.of_arm(state.best_arm)
    has_decided = (state.active == 1) | is_spent(trial, state)
    rate = trial.agents * gap
    sent = list_messages(trial, state, never)
    line = Line(
        state.slot, state.regret, rate, state.waiting_regret, zero, never, state.rounds, sent
    )
    curves = draw_line(curves, grid, line)

    def make_stretch() -> Stretch:
        share = jax.nn.one_hot(state.best_arm, arms, dtype=jnp.float64)
        share = jnp.broadcast_to(share, (rows, arms))
        of_rows = jnp.broadcast_to(gap[..., None], (*gap.shape, rows))
        return Stretch(state.slot, trial.horizon, of_rows, share, trial.agents_by_row)

    accumulators = accumulate_segments(
        trial.accumulators, state.accumulators, make_stretch, grid, losses.ends
    )
    mean_gap = state.gaps / state.active.astype(jnp.float64)
    lost = jnp.where(state.best_eliminated, trial.agents, 0.0)
    agents_lost: Integer | None = lost.astype(jnp.int32)
    if losses.ends is not None:
        # An arm that was best is not lost where means change; what counts at T is the last segment.
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
        agents_worse=jnp.where(has_decided & (gap > 0.0), trial.agents, 0.0).astype(jnp.int32),
        final_gap=jnp.where(has_decided, gap, mean_gap),
        accumulator_values=finish_accumulators(
            trial.accumulators, accumulators, rows, arms, len(grid)
        ),
    )
