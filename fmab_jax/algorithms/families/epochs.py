"""The loop of the elimination family: epochs, the waits and the exchanges that close them.

Line by line Algorithm 1 of arXiv 2111.01570 (3-17), with the filling's equations in their places.
All is a function of arrays; a trial is `EliminationTrial`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.base import Outcome, checked
from fmab_jax.algorithms.families import draws, rounds
from fmab_jax.algorithms.families.draws import Columns
from fmab_jax.algorithms.families.rounds import Clock, Decision, Epoch, LastHeard
from fmab_jax.core import arrays, sums
from fmab_jax.core.curves import extend, step
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Stretch, gauged, gauges_end, gauges_start
from fmab_jax.core.shapes import Grid, Integer, PerArm, PerRow, Scalar, Table, Truth


class _Arms(NamedTuple):
    """The state of the arms, by column.

    Attributes:
        alive: Whether the column is an active arm.
        successes: Sum of rewards so far, by row; with the noise where these are one.
        noise: Sum of the Laplace noise so far, by row; else no rows.
        noises: How many Laplace variables that is, where agents share the arms out; else no places.
    """

    alive: Bool[Array, " arm"]
    successes: Table
    noise: Float[Array, "heard arm"]
    noises: Float[Array, " share"]


class _State(NamedTuple):
    """The state between epochs.

    Attributes:
        gaps: Sum over the active arms of the whole problem.
        gauges: What is added up for outputs; empty where nothing is asked for.
    """

    epoch: Integer
    pulls: Scalar
    clock: Clock
    decision: Decision
    gaps: Scalar
    arms: _Arms
    last_heard: LastHeard
    gauges: tuple[Any, ...] = ()


def widths(arms: int) -> tuple[int, ...]:
    """Returns the array widths the loop steps through as arms leave: K, ..., 2.

    A width is left as soon as the active arms fit the next, so that late epochs of a seed, with
    two or three arms, do not pay for all K.
    """
    steps = [arms]
    while steps[-1] > 20:
        steps.append(math.ceil(steps[-1] / 5))
    return tuple(steps)


def run(trial: Any, instance: Instance, grid: Grid, key: Array, last: Integer) -> Outcome:
    """Runs one seed's epochs; pure.

    Args:
        trial: An `EliminationTrial`.
        instance: The seed's.
        grid: Recorded slots.
        key: The seed's key, or an agent's where each is alone.
        last: Slot at which the run is over.
    """
    columns, state = _start(trial, instance, grid)
    state = arrays.varying_like(state, jax.random.key_data(key))
    arms_of_all = instance.gaps.shape[0]
    steps = widths(arms_of_all) if trial.narrows else (arms_of_all,)
    for here, following in zip(steps, (*steps[1:], 1), strict=True):
        if here > 1:
            columns, arms = _compact(columns, state.arms, here)
            state = state._replace(arms=arms)
            state = _explore(trial, instance, grid, key, last, columns, state, following)
    exploring = state.gaps / state.decision.active.astype(jnp.float64)
    found = rounds.outcome_of(trial, grid, state.clock, state.decision, state.pulls, exploring)
    gauges = gauged(
        trial.gauges, state.gauges, lambda: _committed(trial, state.clock, state.decision), grid
    )
    ends = gauges_end(trial.gauges, gauges, _rows(trial), arms_of_all, len(grid))
    return found._replace(gauged=ends)


def _rows(trial: Any) -> int:
    """Returns how many rows agents are that do not all play the same arms at the same time."""
    return len(trial.reward_sizes) if trial.waits else 1


def _agents(trial: Any) -> PerRow:
    """Returns how many agents each of these rows stands for."""
    if trial.waits:
        return (trial.reward_sizes > 0.0).astype(jnp.float64)
    return jnp.asarray(trial.agents)[None]


def _explored(
    trial: Any, clock: Clock, until: Integer, rate: Scalar, columns: Columns, arms: _Arms
) -> Stretch:
    """Returns the slots in which all agents play the active arms in turn."""
    each = jnp.where(arms.alive, 1.0, 0.0)
    share = jnp.zeros(trial.arms).at[columns.arm].add(each / jnp.sum(each))
    rows = _rows(trial)
    return Stretch(
        start=clock.slot,
        stop=until,
        gap=jnp.full(rows, rate / trial.agents),
        share=jnp.broadcast_to(share, (rows, trial.arms)),
        agents=_agents(trial),
    )


def _committed(trial: Any, clock: Clock, decision: Decision) -> Stretch:
    """Returns the slots from the last epoch to the horizon, in which all play the best arm."""
    rows, arm = _rows(trial), jnp.arange(trial.arms, dtype=jnp.int32)
    return Stretch(
        start=clock.slot,
        stop=trial.horizon,
        gap=jnp.full(rows, decision.chosen_gap),
        share=jnp.broadcast_to(jnp.where(arm == decision.chosen, 1.0, 0.0), (rows, trial.arms)),
        agents=_agents(trial),
    )


def _start(trial: Any, instance: Instance, grid: Grid) -> tuple[Columns, _State]:
    width = instance.gaps.shape[0]
    cumulants = None
    if trial.apart:
        cumulants = sums.group_cumulants(trial.law, instance.parameters, trial.member)
    parameters = () if trial.apart else instance.parameters
    columns = Columns(jnp.arange(width, dtype=jnp.uint32), instance.gaps, parameters, cumulants)
    clock, decision = rounds.beginning(trial, instance, grid)
    return columns, _State(
        epoch=jnp.int32(0),
        pulls=jnp.float64(0.0),
        clock=clock,
        decision=decision,
        gaps=arrays.exact_sum(instance.gaps, rounds.scale_of(instance)),
        arms=_Arms(
            alive=jnp.ones(width, bool),
            successes=jnp.zeros((trial.reward_sizes.shape[0], width)),
            noise=jnp.zeros((0 if trial.merged else trial.noise_sizes.shape[0], width)),
            noises=jnp.zeros(width if trial.shared else 0),
        ),
        last_heard=rounds.silence(trial),
        gauges=gauges_start(trial.gauges, _rows(trial), width, grid),
    )


def _explore(
    trial: Any,
    instance: Instance,
    grid: Grid,
    key: Array,
    last: Integer,
    columns: Columns,
    state: _State,
    enough: int,
) -> _State:
    """Runs epochs until at most ``enough`` arms are active, or the run is decided or over."""

    def unfinished(state: _State) -> Truth:
        exploring = rounds.explores(trial, state.clock, state.decision, state.pulls, last)
        return exploring & (state.decision.active > enough)

    def body(state: _State) -> _State:
        # A vmapped loop goes on until its last seed is done; the others then draw nothing.
        return _epoch(trial, instance, grid, key, columns, state, unfinished(state))

    return lax.while_loop(unfinished, body, state)


def count_pieces(trial: Any, epoch: Epoch, alive: Bool[Array, " arm"]) -> Int[Array, " arm"]:
    """Returns how many agents pull each arm in play, where agents share the arms out.

    All pulls of an epoch lie in one line, arm by arm, which is cut into equal parts: each agent
    pulls one. Its last slots, if any are left, it spends on the arms in play, and tells of none.
    """
    slots, pulls = jnp.maximum(rounds.shared_slots(trial, epoch), 1), epoch.fresh.astype(jnp.int64)
    rank = jnp.cumsum(alive, dtype=jnp.int64)
    first, last = (rank - 1) * pulls // slots, (rank * pulls - 1) // slots
    return jnp.where(alive, last - first + 1, 0)


def _epoch(
    trial: Any,
    instance: Instance,
    grid: Grid,
    key: Array,
    columns: Columns,
    state: _State,
    running: Truth,
) -> _State:
    """One epoch, and the wait and the exchange that close it (Algorithm 1, lines 3-17)."""
    arms, before, filling = state.arms, state.decision, trial.filling
    width = instance.gaps.shape[0]
    number, epoch = rounds.planned(trial, width, state.epoch, before.active, state.pulls)

    # Lines 6-9: explore all active arms equally, cut at the horizon: then nothing is uploaded.
    fits, explored = rounds.explored_by(trial, epoch, state.clock.slot)
    rate = trial.agents * (state.gaps / epoch.active)
    gauges = gauged(
        trial.gauges,
        state.gauges,
        lambda: _explored(trial, state.clock, explored, rate, columns, arms),
        grid,
    )
    clock = rounds.passed(state.clock, grid, explored, rate)
    need = arms.alive & fits & running
    pieces = count_pieces(trial, epoch, arms.alive) if trial.shared else None
    last_heard = state.last_heard
    heard = rounds.reporting(trial, key, number) if trial.scarce else jnp.ones(0, bool)
    if trial.lazy:
        fresh, silent, last_heard = rounds.since(trial, last_heard, number, epoch, heard)
        rewarded = draws.of_some(trial, key, number, epoch, columns, need, fresh, silent)
        disturbed = jnp.zeros_like(arms.noise)
    else:
        rewarded, disturbed = draws.of_all(
            trial, instance, key, number, epoch, columns, need, pieces
        )
    sure = trial.horizon >= 0
    rewarded, disturbed = arrays.stored(sure, rewarded, disturbed)
    successes, noise = arms.successes + rewarded, arms.noise + disturbed

    # The wait, spent on each agent's own best arm and cut at the horizon: un-noised, where noise is
    # not merged with the rewards.
    if trial.waits:
        play = _first_best(successes, arms.alive)
        best = columns.gap[play]
        waiting = arrays.padded_sum(jnp.where(trial.reward_sizes > 0.0, best, 0.0))
        until = jnp.minimum(explored + trial.wait, trial.horizon)

        def wait() -> Stretch:
            share = jax.nn.one_hot(columns.arm[play], trial.arms, dtype=jnp.float64)
            return Stretch(explored, until, best, share, _agents(trial))

        gauges = gauged(trial.gauges, gauges, wait, grid)
        clock = _waited(clock, grid, until, waiting)
    completed = fits & (explored + trial.wait <= trial.horizon)

    # Lines 10-12: aggregate what is heard; lines 13-15: drop what is clearly worse.
    if filling.remembers:
        aggregate = _aggregate(trial, heard, successes, noise) / epoch.pulls
    else:
        aggregate = _aggregate(trial, heard, rewarded, disturbed) / epoch.fresh
    (aggregate,) = arrays.stored(sure, aggregate)
    top = jnp.max(jnp.where(arms.alive, aggregate, -jnp.inf))
    radius = checked("radius", filling.radius(epoch), (), "f")
    ready = rounds.prepared(filling, epoch, radius)
    noises = arms.noises
    if pieces is not None:
        noises = jnp.where(fits & running, noises + pieces.astype(jnp.float64), noises)
    alive = arms.alive & ~rounds.leaving(trial, epoch, radius, ready, aggregate, top, noises)
    chosen = _first_best(aggregate[None, :], alive)[0]
    # If no arm is left, or an aggregate is NaN, arm 0 is chosen.
    best = alive[chosen] & ~jnp.isnan(jnp.max(jnp.where(alive, aggregate, -jnp.inf)))
    after = Decision(
        active=jnp.sum(alive, dtype=jnp.int32),
        chosen=jnp.where(best, columns.arm[chosen].astype(jnp.int32), 0),
        chosen_gap=jnp.where(best, columns.gap[chosen], instance.gaps[0]),
        lost=jnp.min(jnp.where(alive, columns.gap, 1.0)) > 0.0,
        rounds=number,
        reported=before.reported + before.active.astype(jnp.int64),
        rounds_curve=step(before.rounds_curve, grid, clock.slot, number),
    )
    gaps = arrays.exact_sum(jnp.where(alive, columns.gap, 0.0), rounds.scale_of(instance))
    decision, gaps, alive = jax.tree.map(
        lambda new, old: jnp.where(completed, new, old),
        (after, gaps, alive),
        (before, state.gaps, arms.alive),
    )
    arms = _Arms(alive, successes, noise, noises)
    pulls = jnp.where(jnp.isnan(radius), radius, epoch.pulls)
    return _State(number, pulls, clock, decision, gaps, arms, last_heard, gauges)


def _waited(clock: Clock, grid: Grid, until: Integer, rate: Scalar) -> Clock:
    """Lets waiting slots pass; from their end on, nothing is added until the next wait."""
    after = rounds.passed(clock, grid, until, rate)
    waited = arrays.rounded(rate * (until - clock.slot).astype(jnp.float64))
    waiting = clock.waiting + waited
    curve = extend(clock.waiting_curve, grid, clock.slot, clock.waiting, rate)
    curve = extend(curve, grid, until, waiting, jnp.zeros_like(rate))
    return after._replace(waiting=waiting, waiting_curve=curve)


class Uploads(NamedTuple):
    """The messages of agents in the first rounds, while no arm leaves.

    Attributes:
        sent: Noisy mean of each arm, as a message holds it.
        length: Rewards that a mean is over: S_r, or n_r where old epochs are forgotten.
        played: Arm that a row plays while messages travel, if it does.
    """

    sent: Float[Array, "round row arm"]
    length: Float[Array, " round"]
    played: Int[Array, "round row"]


def uploads(
    trial: Any,
    instance: Instance,
    key: Array,
    added: Float[Array, "round row arm"],
    noises: Int[Array, " round"] | None = None,
) -> Uploads:
    """Returns the messages of single agents, or of all where only their sum is seen; pure.

    For audits of the noise: rewards, noise and memory are those of `run`, and all arms stay. Where
    agents are heard now and then, they are so in law: here all agents are drawn in each epoch.

    Args:
        trial: As in `run`.
        instance: The seed's.
        key: As in `run`.
        added: To the sums of rewards of each epoch; the first axis says how many epochs.
        noises: Laplace variables on an arm's sum of each epoch, where agents share the arms out.
    """
    width = instance.gaps.shape[0]
    columns, state = _start(trial, instance, jnp.zeros(0, jnp.int64))
    active, everywhere = state.decision.active, jnp.ones(width, bool)
    silent = trial.merged or not trial.filling.noisy

    def epoch_of(
        carry: tuple[Array, ...], given: tuple[Array, Array | None]
    ) -> tuple[tuple[Array, ...], Uploads]:
        before, pulls, successes, noise = carry
        added, pieces = given
        number, epoch = rounds.planned(trial, width, before, active, pulls)
        drawn = (trial, instance, key, number, epoch, columns, everywhere)
        shared = None if pieces is None else jnp.broadcast_to(pieces, width)
        rewarded, disturbed = draws.of_all(*drawn, shared)
        rewarded = rewarded + added
        successes, noise = successes + rewarded, noise + disturbed
        kept, length = (successes, noise), epoch.pulls
        if not trial.filling.remembers:
            kept, length = (rewarded, disturbed), epoch.fresh
        sent = kept[0] if silent else kept[0] + kept[1]
        seen = Uploads(sent / length, length, _first_best(successes, everywhere))
        return (number, epoch.pulls, successes, noise), seen

    start = (state.epoch, state.pulls, state.arms.successes, state.arms.noise)
    start = arrays.varying_like(start, jax.random.key_data(key))
    return lax.scan(epoch_of, start, (added, noises))[1]


def _aggregate(
    trial: Any, heard: Bool[Array, " agent"], successes: Table, noise: Float[Array, "heard arm"]
) -> PerArm:
    """Returns, per arm, the weighted sum over reporting agents of rewards plus noise.

    ``heard`` tells who they are where that differs from round to round; else it is not looked at.
    """
    silent = not trial.filling.noisy
    if trial.uniform:
        # Counts: exact in any order.
        total = successes[0] if len(successes) == 1 else arrays.padded_sum(successes)
        sent = total if silent else total + noise[0]
        return sent if trial.shared else sent / trial.agents
    if trial.scarce:
        sent = successes if silent or trial.merged else successes + noise
        return arrays.sum_in_turn(jnp.where(heard[:, None], sent, 0.0)) / trial.reporting
    if silent or trial.rows_agree:
        sent = successes if silent or trial.merged else successes + noise
        return arrays.padded_sum(arrays.rounded(trial.reward_weights[:, None] * sent))
    parts = ((trial.reward_weights, successes), (trial.noise_weights, noise))
    first, second = (arrays.padded_sum(arrays.rounded(w[:, None] * x)) for w, x in parts)
    return first + second


def _first_best(values: Table, alive: Bool[Array, " arm"]) -> Int[Array, " row"]:
    """Returns the position of each row's largest living value; ties go to the lowest arm."""
    values = jnp.where(alive[None, :], values, -jnp.inf)
    top = jnp.max(values, axis=1, keepdims=True)
    position = jnp.arange(values.shape[1], dtype=jnp.int32)[None, :]
    # Two plain reductions: XLA's argmax does not vectorise on CPUs. A NaN counts as the largest.
    best = (values == top) | jnp.isnan(values)
    return jnp.min(jnp.where(best, position, values.shape[1] - 1), axis=1)


def _compact(columns: Columns, arms: _Arms, width: int) -> tuple[Columns, _Arms]:
    """Moves the living arms, in order, to the front of arrays of the given width."""
    if arms.alive.shape[0] == width:
        return columns, arms
    rank = jnp.cumsum(arms.alive, dtype=jnp.int32)
    source = jnp.searchsorted(rank, jnp.arange(1, width + 1, dtype=jnp.int32), method="compare_all")
    alive = jnp.arange(width, dtype=jnp.int32) < rank[-1]

    def moved(values: Array) -> Array:
        # Arrays that the run does not use have length 0.
        return jnp.take(values, source, axis=-1, mode="clip") if values.shape[-1] else values

    columns, arms = jax.tree.map(moved, (columns, arms))
    return columns, arms._replace(alive=alive)
