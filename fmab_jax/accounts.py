"""What a run of Algorithm 1 amounts to: its slots, regret and rounds, and who is left.

`fmab_jax.elimination` decides; here is counted. Regret grows in straight lines, which are drawn
into curves at the recorded slots; outputs that accumulate are fed with the same stretches of slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from fmab_jax.core import arrays
from fmab_jax.core.curves import NEVER, Curves, Line, draw_line
from fmab_jax.core.outputs import Stretch, gauged, gauges_end, gauges_start
from fmab_jax.core.shapes import Integer, PerArm, Scalar, Truth
from fmab_jax.core.trials import Outcome


class State(NamedTuple):
    """A run between two epochs.

    Attributes:
        number: r, of the last epoch.
        pulls: S_r, of each arm in play.
        slot: The last that is over.
        regret: By then, of all agents.
        waited: The part of it that was collected in waits.
        active: Arms in play.
        gaps: Their gaps, summed.
        chosen: The best of them, by the last aggregate.
        lost: Whether every best arm has left.
        rounds: Completed rounds.
        reported: Arms that these began with, summed.
        memory: Of the draws.
        playing: [arm] which are in play, where outputs ask for it.
        gauges: What is added up for outputs.
    """

    number: Integer
    pulls: Scalar
    slot: Integer
    regret: Scalar
    waited: Scalar
    active: Integer
    gaps: Scalar
    chosen: Integer
    lost: Truth
    rounds: Integer
    reported: Integer
    memory: Any
    playing: Bool[Array, " place"]
    gauges: tuple[Any, ...]


def power_of_two_above(gaps: PerArm) -> Scalar:
    """Returns a power of two that no gap exceeds."""
    return jnp.ldexp(jnp.ones(()), jnp.frexp(jnp.max(gaps))[1])


def start_run(trial: Any, gaps: PerArm, grid: Array, scale: Scalar) -> State:
    """Returns a run before its first epoch (lines 1-2)."""
    none, zero, long = jnp.int32(0), jnp.float64(0.0), jnp.int64(0)
    arms = len(gaps)
    return State(
        number=none,
        pulls=zero,
        slot=long,
        regret=zero,
        waited=zero,
        active=jnp.int32(arms),
        gaps=arrays.exact_sum(gaps, scale),
        chosen=none,
        lost=jnp.bool_(False),
        rounds=none,
        reported=long,
        memory=trial.draws.memory(),
        playing=jnp.ones(arms if trial.gauges else 0, bool),
        gauges=gauges_start(trial.gauges, trial.gauge_rows, arms, grid),
    )


def is_spent(trial: Any, state: State) -> Truth:
    """Tells whether the round budget R is spent."""
    return state.rounds.astype(jnp.float64) >= trial.algorithm.budget(trial.params)


def goes_on(trial: Any, state: State, last: Integer) -> Truth:
    """Tells whether there is time, budget and doubt left for another epoch."""
    # An equation that returns NaN ends the run, which would never end.
    more = (state.slot < last) & ~jnp.isnan(state.pulls)
    return more & (state.active > 1) & ~is_spent(trial, state)


def close_epoch(
    trial: Any, gaps: PerArm, grid: Array, state: State, plan: Any, reduced: Any, scale: Scalar
) -> tuple[State, tuple[Line, ...]]:
    """Returns a run after an epoch and the wait that closes it, and how its regret grew."""
    number, never, zero = plan.round.number, jnp.int64(NEVER), jnp.zeros(())
    slot, regret, waited, gauges = plan.explored, state.regret, state.waited, state.gauges
    completed = plan.draws & (slot + trial.wait <= trial.horizon)
    rate = trial.agents * (state.gaps / plan.epoch.active)
    ended = never if trial.waits else jnp.where(completed, slot, never)
    start = jnp.where(plan.runs, state.slot, never)
    lines: tuple[Line, ...] = (Line(start, regret, rate, waited, zero, ended, number),)
    regret = regret + arrays.rounded(rate * (slot - state.slot).astype(jnp.float64))
    gauges = gauged(trial.gauges, gauges, lambda: exploring(trial, state, plan, rate), grid)
    if trial.waits:
        gap = gaps[jnp.minimum(reduced["play"], len(gaps) - 1)]
        real = trial.draws.real
        rate = arrays.padded_sum(jnp.where(real, gap, 0.0))
        over = jnp.where(plan.runs, jnp.minimum(slot + trial.wait, trial.horizon), slot)
        start, ended = (jnp.where(x, y, never) for x, y in ((plan.runs, slot), (completed, over)))
        lines += (Line(start, regret, rate, waited, rate, ended, number),)
        gained = arrays.rounded(rate * (over - slot).astype(jnp.float64))
        regret, waited = regret + gained, waited + gained
        played = jax.nn.one_hot(reduced["play"], len(gaps), dtype=jnp.float64)
        stretch = Stretch(slot, over, gap, played, real.astype(jnp.float64))
        gauges, slot = gauged(trial.gauges, gauges, lambda: stretch, grid), over
    after = state._replace(
        active=reduced["active"],
        gaps=arrays.exact_total(reduced["gaps"][0], reduced["gaps"][1], scale),
        chosen=jnp.where(reduced["chosen"] < len(gaps), reduced["chosen"], 0),
        lost=reduced["optimal"] == 0,
        rounds=number,
        reported=state.reported + state.active.astype(jnp.int64),
        playing=reduced.get("playing", state.playing),
    )
    state = jax.tree.map(lambda new, old: jnp.where(completed, new, old), after, state)
    pulls = jnp.where(jnp.isnan(plan.radius), plan.radius, plan.epoch.pulls)
    return state._replace(
        number=jnp.where(plan.runs, number, state.number),
        pulls=jnp.where(plan.runs, pulls, state.pulls),
        slot=slot,
        regret=regret,
        waited=waited,
        memory=plan.memory,
        gauges=gauges,
    ), lines


def exploring(trial: Any, state: State, plan: Any, rate: Scalar) -> Stretch:
    """Returns the slots of an epoch, in which all agents play the arms in play in turn."""
    rows, each = trial.gauge_rows, jnp.where(state.playing, 1.0, 0.0)
    share = jnp.broadcast_to(each / jnp.sum(each), (rows, len(each)))
    gap = jnp.full(rows, rate / trial.agents)
    return Stretch(state.slot, plan.explored, gap, share, trial.agents_by_row)


def finish_run(trial: Any, gaps: PerArm, grid: Array, state: State, curves: Curves) -> Outcome:
    """Returns a run's outcome, with the best arm played to the end (lines 16-17)."""
    rows, zero, never = trial.gauge_rows, jnp.zeros(()), jnp.int64(NEVER)
    gap = gaps[state.chosen]
    decided = (state.active == 1) | is_spent(trial, state)
    rate = trial.agents * gap
    line = Line(state.slot, state.regret, rate, state.waited, zero, never, state.rounds)
    curves = draw_line(curves, grid, line)

    def committed() -> Stretch:
        share = jax.nn.one_hot(state.chosen, len(gaps), dtype=jnp.float64)
        share = jnp.broadcast_to(share, (rows, len(gaps)))
        now = state.slot, trial.horizon, jnp.full(rows, gap), share
        return Stretch(*now, trial.agents_by_row)

    gauges = gauged(trial.gauges, state.gauges, committed, grid)
    exploring = state.gaps / state.active.astype(jnp.float64)
    return Outcome(
        # If an equation returned NaN, the regret is NaN.
        regret=jnp.where(jnp.isnan(state.pulls), jnp.nan, curves.regret),
        waiting_regret=curves.waiting,
        rounds_by=curves.rounds,
        rounds=state.rounds,
        arms_reported=state.reported,
        active_arms=state.active,
        chosen_arm=jnp.where(decided, state.chosen, -1),
        agents_lost=jnp.where(state.lost, trial.agents, 0.0).astype(jnp.int32),
        agents_worse=jnp.where(decided & (gap > 0.0), trial.agents, 0.0).astype(jnp.int32),
        final_gap=jnp.where(decided, gap, exploring),
        gauged=gauges_end(trial.gauges, gauges, rows, len(gaps), len(grid)),
    )
