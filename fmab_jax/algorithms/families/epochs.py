"""The loop of the elimination family: epochs, the waits and the exchanges that close them.

Line by line Algorithm 1 of arXiv 2111.01570 (3-17), with the filling's equations in their places.
All is a function of arrays; a trial is `elimination.EliminationTrial`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.base import Outcome, checked
from fmab_jax.core import arrays, keys, laplace, normal, samplers, sums
from fmab_jax.core.curves import extend, step
from fmab_jax.core.outputs import Stretch, gauged, gauges_end, gauges_start
from fmab_jax.core.problems import Instance
from fmab_jax.core.shapes import Grid, Integer, PerArm, PerRow, Scalar, Table, Truth


class Epoch(NamedTuple):
    """What the equations of one epoch see: float64 scalars, traced.

    Attributes:
        number: r = 1, 2, ...
        active: Arms in play at the epoch's start, a.
        arms: K.
        agents: M, the agents whose rewards this run adds up; 1 where each is alone.
        reporting: N, the agents heard in a round.
        horizon: T, in slots.
        previous: S_{r-1}, pulls per active arm and agent before this epoch; where agents share the
            arms out, of all agents together.
        pulls: S_r, pulls up to and including this epoch.
        fresh: n_r = S_r - S_{r-1}, pulls of this epoch.
        own: The algorithm's values, by name; see `Elimination.values`.
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
    own: dict[str, Scalar]


class Heard(NamedTuple):
    """What a round tells of the arms; `Elimination.worse` judges by it.

    Attributes:
        aggregate: [arm] mean of what is heard of each.
        best: The largest aggregate of an arm in play.
        rewards: How many rewards an aggregate is the mean of.
        noises: How many Laplace variables of the epochs' scale its sum holds; of each arm, where
            agents share the arms out.
        best_noises: How many of them the best one's sum holds.
        radius: What `Elimination.radius` returns.
        prepared: What `Elimination.prepared` returns.
    """

    aggregate: PerArm
    best: Scalar
    rewards: Scalar
    noises: Scalar | PerArm
    best_noises: Scalar
    radius: Scalar
    prepared: Any = ()


class _Columns(NamedTuple):
    """Constants of the arms that an array's columns stand for, in ascending order.

    Not a part of the loop's state: a vmapped loop rewrites all of that at every step.

    Attributes:
        arm: Identity; decides the arm's random numbers.
        gap: The arm's gap.
        parameters: Of its rewards, [agent or 1, arm] each; none where rows of agents that differ
            are summed: that takes cumulants.
        cumulants: [7, row, arm] of a pull by every agent of a row; None where means are shared.
    """

    arm: UInt32[Array, " arm"]
    gap: PerArm
    parameters: tuple[Float[Array, "agent arm"], ...]
    cumulants: Float[Array, "cumulant row arm"] | None


class _Arms(NamedTuple):
    """What is known of the arms, by column.

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


class Told(NamedTuple):
    """When each agent was heard last, if only some are heard in a round; else empty.

    What an agent has collected since is drawn when it is heard: until then nobody acts on it.

    Attributes:
        pulls: Of each active arm by then.
        epoch: Number of that epoch; 0 before the first.
    """

    pulls: Float[Array, " agent"]
    epoch: Int[Array, " agent"]


class Clock(NamedTuple):
    """The slot, the regret so far, and the curves, continued at the present rate."""

    slot: Integer
    regret: Scalar
    waiting: Scalar
    regret_curve: Float[Array, " time"]
    waiting_curve: Float[Array, " wait"]


class Decision(NamedTuple):
    """What the last completed round decided; ``reported`` sums the arms that rounds began with."""

    active: Integer
    chosen: Integer
    chosen_gap: Scalar
    lost: Truth
    rounds: Integer
    reported: Integer
    rounds_curve: Grid


class _State(NamedTuple):
    """What the next epoch needs.

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
    told: Told
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
        trial: An `elimination.EliminationTrial`.
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
    found = outcome_of(trial, grid, state.clock, state.decision, state.pulls, exploring)
    gauges = gauged(
        trial.gauges, state.gauges, lambda: _committed(trial, state.clock, state.decision), grid
    )
    return found._replace(gauged=gauges_end(trial.gauges, gauges))


def _rows(trial: Any) -> int:
    """Returns how many rows agents are that do not all play the same arms at the same time."""
    return len(trial.reward_sizes) if trial.waits else 1


def _agents(trial: Any) -> PerRow:
    """Returns how many agents each of these rows stands for."""
    if trial.waits:
        return (trial.reward_sizes > 0.0).astype(jnp.float64)
    return jnp.asarray(trial.agents)[None]


def _explored(
    trial: Any, clock: Clock, until: Integer, rate: Scalar, columns: _Columns, arms: _Arms
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


def outcome_of(
    trial: Any, grid: Grid, clock: Clock, decision: Decision, pulls: Scalar, exploring: Scalar
) -> Outcome:
    """Returns a run's outcome, with the best arm played to the end.

    Args:
        trial: As in `run`.
        grid: Recorded slots.
        clock: When the last epoch was over.
        decision: What was decided by then.
        pulls: Of each active arm by then.
        exploring: Mean gap of the active arms.
    """
    rate = trial.agents * decision.chosen_gap
    decided = (decision.active == 1) | _spent(trial, decision)
    worse = decided & (decision.chosen_gap > 0.0)
    regret = extend(clock.regret_curve, grid, clock.slot, clock.regret, rate)
    return Outcome(
        # If an equation returned NaN, the regret is NaN.
        regret=jnp.where(jnp.isnan(pulls), jnp.nan, regret),
        waiting_regret=clock.waiting_curve if trial.waits else None,
        rounds_by=decision.rounds_curve,
        rounds=decision.rounds,
        arms_reported=decision.reported,
        active_arms=decision.active,
        chosen_arm=jnp.where(decided, decision.chosen, -1),
        agents_lost=jnp.where(decision.lost, trial.agents, 0.0).astype(jnp.int32),
        agents_worse=jnp.where(worse, trial.agents, 0.0).astype(jnp.int32),
        final_gap=jnp.where(decided, decision.chosen_gap, exploring),
    )


def _start(trial: Any, instance: Instance, grid: Grid) -> tuple[_Columns, _State]:
    width = instance.gaps.shape[0]
    cumulants = None
    if trial.apart:
        cumulants = sums.group_cumulants(trial.law, instance.parameters, trial.member)
    parameters = () if trial.apart else instance.parameters
    columns = _Columns(jnp.arange(width, dtype=jnp.uint32), instance.gaps, parameters, cumulants)
    clock, decision = beginning(trial, instance, grid)
    return columns, _State(
        epoch=jnp.int32(0),
        pulls=jnp.float64(0.0),
        clock=clock,
        decision=decision,
        gaps=arrays.exact_sum(instance.gaps, scale_of(instance)),
        arms=_Arms(
            alive=jnp.ones(width, bool),
            successes=jnp.zeros((trial.reward_sizes.shape[0], width)),
            noise=jnp.zeros((0 if trial.merged else trial.noise_sizes.shape[0], width)),
            noises=jnp.zeros(width if trial.shared else 0),
        ),
        told=silence(trial),
        gauges=gauges_start(trial.gauges, _rows(trial), width, grid),
    )


def silence(trial: Any) -> Told:
    """Returns what is known before anybody was heard."""
    agents = trial.room if trial.lazy else 0
    return Told(jnp.zeros(agents), jnp.zeros(agents, jnp.int32))


def since(
    trial: Any, told: Told, number: Integer, epoch: Epoch, heard: Bool[Array, " agent"]
) -> tuple[Float[Array, " agent"], Int[Array, " agent"], Told]:
    """Returns pulls and epochs that are new from each agent, and when each was heard last.

    An active arm was active in all epochs before. Agents that are not heard tell nothing new.
    """
    if trial.filling.remembers:
        pulls, epochs = epoch.pulls - told.pulls, number - told.epoch
    else:
        pulls, epochs = jnp.full_like(told.pulls, epoch.fresh), jnp.ones_like(told.epoch)
    now = Told(
        pulls=jnp.where(heard, epoch.pulls, told.pulls),
        epoch=jnp.where(heard, number, told.epoch),
    )
    return jnp.where(heard, pulls, 0.0), jnp.where(heard, epochs, 0), now


def beginning(trial: Any, instance: Instance, grid: Grid) -> tuple[Clock, Decision]:
    """Returns the clock and the decision before the first epoch."""
    none, zero, blank = jnp.int32(0), jnp.float64(0.0), jnp.zeros(grid.shape)
    clock = Clock(
        slot=jnp.int64(0),
        regret=zero,
        waiting=zero,
        regret_curve=blank,
        waiting_curve=blank if trial.waits else blank[:0],
    )
    decision = Decision(
        active=jnp.int32(instance.gaps.shape[0]),
        chosen=none,
        chosen_gap=instance.gaps[0],
        lost=jnp.bool_(False),
        rounds=none,
        reported=jnp.int64(0),
        rounds_curve=blank.astype(jnp.int32),
    )
    return clock, decision


def _explore(
    trial: Any,
    instance: Instance,
    grid: Grid,
    key: Array,
    last: Integer,
    columns: _Columns,
    state: _State,
    enough: int,
) -> _State:
    """Runs epochs until at most ``enough`` arms are active, or the run is decided or over."""

    def unfinished(state: _State) -> Truth:
        exploring = explores(trial, state.clock, state.decision, state.pulls, last)
        return exploring & (state.decision.active > enough)

    def body(state: _State) -> _State:
        # A vmapped loop goes on until its last seed is done; the others then draw nothing.
        return _epoch(trial, instance, grid, key, columns, state, unfinished(state))

    return lax.while_loop(unfinished, body, state)


def explores(trial: Any, clock: Clock, decision: Decision, pulls: Scalar, last: Integer) -> Truth:
    """Tells whether there is time left, and budget, for another epoch."""
    # An equation that returns NaN ends the loop, which would run for ever.
    return (clock.slot < last) & ~_spent(trial, decision) & ~jnp.isnan(pulls)


def scale_of(instance: Instance) -> Scalar:
    """Returns a power of two that no gap exceeds."""
    _, exponent = jnp.frexp(jnp.max(instance.gaps))
    return jnp.ldexp(jnp.ones(()), exponent)


def _spent(trial: Any, decision: Decision) -> Truth:
    return decision.rounds.astype(jnp.float64) >= trial.filling.budget(trial.own)


def planned(
    trial: Any, arms: int, epoch: Integer, active: Integer, previous: Scalar
) -> tuple[Integer, Epoch]:
    """Returns the number of the next epoch, and what its equations see (lines 3-4: how long)."""
    number = epoch + 1
    seen = Epoch(
        number=number.astype(jnp.float64),
        active=active.astype(jnp.float64),
        arms=jnp.float64(arms),
        agents=trial.agents,
        reporting=trial.reporting,
        horizon=trial.horizon.astype(jnp.float64),
        previous=previous,
        pulls=previous,
        fresh=previous,
        own=trial.own,
    )
    # Epochs are cut a little past the horizon: a longer one may not fit into an int64.
    most = seen.horizon * seen.agents if trial.shared else seen.horizon
    longest = seen.previous + most + 1.0
    asked = checked("pulls_per_arm", trial.filling.pulls_per_arm(seen), (), "f")
    pulls = jnp.clip(asked, seen.previous + 1.0, longest)
    return number, seen._replace(pulls=pulls, fresh=pulls - seen.previous)


def explored_by(trial: Any, epoch: Epoch, slot: Integer) -> tuple[Truth, Integer]:
    """Tells whether an epoch ends by the horizon, and when; cut there, nothing is uploaded."""
    slots = (epoch.active * epoch.fresh).astype(jnp.int64)
    if trial.shared:
        slots = _shared_slots(trial, epoch)
    end = slot + slots
    return end <= trial.horizon, jnp.minimum(end, trial.horizon)


def _shared_slots(trial: Any, epoch: Epoch) -> Integer:
    """Returns how long all agents together take for the pulls of an epoch."""
    pulls, agents = (epoch.active * epoch.fresh).astype(jnp.int64), trial.agents.astype(jnp.int64)
    return (pulls + agents - 1) // agents


def _pieces(trial: Any, epoch: Epoch, alive: Bool[Array, " arm"]) -> Int[Array, " arm"]:
    """Returns how many agents pull each arm in play, where agents share the arms out.

    All pulls of an epoch lie in one line, arm by arm, which is cut into equal parts: each agent
    pulls one. Its last slots, if any are left, it spends on the arms in play, and tells of none.
    """
    slots, pulls = jnp.maximum(_shared_slots(trial, epoch), 1), epoch.fresh.astype(jnp.int64)
    rank = jnp.cumsum(alive, dtype=jnp.int64)
    first, last = (rank - 1) * pulls // slots, (rank * pulls - 1) // slots
    return jnp.where(alive, last - first + 1, 0)


def _epoch(
    trial: Any,
    instance: Instance,
    grid: Grid,
    key: Array,
    columns: _Columns,
    state: _State,
    running: Truth,
) -> _State:
    """One epoch, and the wait and the exchange that close it (Algorithm 1, lines 3-17)."""
    arms, before, filling = state.arms, state.decision, trial.filling
    width = instance.gaps.shape[0]
    number, epoch = planned(trial, width, state.epoch, before.active, state.pulls)

    # Lines 6-9: explore all active arms equally, cut at the horizon: then nothing is uploaded.
    fits, explored = explored_by(trial, epoch, state.clock.slot)
    rate = trial.agents * (state.gaps / epoch.active)
    gauges = gauged(
        trial.gauges,
        state.gauges,
        lambda: _explored(trial, state.clock, explored, rate, columns, arms),
        grid,
    )
    clock = passed(state.clock, grid, explored, rate)
    need = arms.alive & fits & running
    pieces = _pieces(trial, epoch, arms.alive) if trial.shared else None
    told = state.told
    heard = reporting(trial, key, number) if trial.scarce else jnp.ones(0, bool)
    if trial.lazy:
        fresh, silent, told = since(trial, told, number, epoch, heard)
        rewarded = _drawn_of_some(trial, key, number, epoch, columns, need, fresh, silent)
        disturbed = jnp.zeros_like(arms.noise)
    else:
        rewarded, disturbed = _drawn(trial, instance, key, number, epoch, columns, need, pieces)
    sure = trial.horizon >= 0
    rewarded, disturbed = arrays.settled(sure, rewarded, disturbed)
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
    (aggregate,) = arrays.settled(sure, aggregate)
    top = jnp.max(jnp.where(arms.alive, aggregate, -jnp.inf))
    radius = checked("radius", filling.radius(epoch), (), "f")
    ready = filling.prepared(epoch, radius)
    noises = arms.noises
    if pieces is not None:
        noises = jnp.where(fits & running, noises + pieces.astype(jnp.float64), noises)
    alive = arms.alive & ~leaving(trial, epoch, radius, ready, aggregate, top, noises)
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
    gaps = arrays.exact_sum(jnp.where(alive, columns.gap, 0.0), scale_of(instance))
    decision, gaps, alive = jax.tree.map(
        lambda new, old: jnp.where(completed, new, old),
        (after, gaps, alive),
        (before, state.gaps, arms.alive),
    )
    arms = _Arms(alive, successes, noise, noises)
    known = jnp.where(jnp.isnan(radius), radius, epoch.pulls)
    return _State(number, known, clock, decision, gaps, arms, told, gauges)


def passed(clock: Clock, grid: Grid, until: Integer, rate: Scalar) -> Clock:
    """Lets slots pass in which all agents together collect ``rate`` regret per slot."""
    gained = rate * (until - clock.slot).astype(jnp.float64)
    return clock._replace(
        slot=until,
        regret=clock.regret + gained,
        regret_curve=extend(clock.regret_curve, grid, clock.slot, clock.regret, rate),
    )


def _waited(clock: Clock, grid: Grid, until: Integer, rate: Scalar) -> Clock:
    """Lets waiting slots pass; from their end on, nothing is added until the next wait."""
    after = passed(clock, grid, until, rate)
    waiting = clock.waiting + rate * (until - clock.slot).astype(jnp.float64)
    curve = extend(clock.waiting_curve, grid, clock.slot, clock.waiting, rate)
    curve = extend(curve, grid, until, waiting, jnp.zeros_like(rate))
    return after._replace(waiting=waiting, waiting_curve=curve)


def _drawn(
    trial: Any,
    instance: Instance,
    key: Array,
    number: Array,
    epoch: Epoch,
    columns: _Columns,
    need: Bool[Array, " arm"],
    pieces: Int[Array, " arm"] | None = None,
) -> tuple[Table, Float[Array, "heard arm"]]:
    """Returns the rewards of an epoch, and the noise on what is sent of them, by row.

    ``pieces`` says how many Laplace variables are on each arm, where they are not as many on all.
    """
    width = instance.gaps.shape[0]
    sizes = (trial.reward_sizes, trial.noise_sizes)
    needed = [need[None, :] & (each > 0.0)[:, None] for each in sizes]
    lanes = [keys.lanes(each.shape[0], columns.arm, width) for each in sizes]
    words = keys.stream_key(key, number, keys.REWARD)
    disturbing = keys.stream_key(key, number, keys.NOISE)
    # The mapped function must not hold the trial: its arrays would outlive the trace.
    law, by_group = trial.law, trial.noise_by_group
    scale = trial.filling.noise_scale(epoch) * law.sensitivity
    alike = all(len(x) == 1 for x in columns.parameters)
    if trial.room > 0 and not trial.alone and alike:
        return _drawn_alike(trial, words, disturbing, scale, width, epoch.fresh, columns, need)
    if trial.apart:
        fixed = (columns.cumulants, instance.parameters, trial.member)
        rewarding = sums.group_sum(law, words, columns.arm, width, epoch.fresh, *fixed)
    else:
        total = epoch.fresh * sizes[0][:, None]
        rewarding = sums.own_sum(law, *words, lanes[0], total, *columns.parameters)
    sample, count = rewarding.sample, rewarding.outputs
    if not trial.noisy:
        found = arrays.masked_map(sample, needed[0], *rewarding.operands, outputs=count)
        return rewarding.finish(needed[0], *found), jnp.zeros((len(sizes[1]), len(need)))
    operands, shapes = (*disturbing, lanes[1]), trial.noise_shapes

    # A sum of noise is a function of one normal variable, which 0 stands for where none is needed.
    def noise(k0: Array, k1: Array, lane: Array) -> Array:
        if by_group:
            return normal.quantile(keys.uniform(k0, k1, lane))
        return laplace.laplace(k0, k1, lane)

    # Rewards and noise are drawn in one map: the needed places are then found only once.
    def both(*own: Any) -> tuple[Array, ...]:
        return noise(*own[:3]), *sample(*own[3:])

    if trial.rows_agree:
        joint = (*operands, *rewarding.operands)
        disturbed, *found = arrays.masked_map(both, needed[0], *joint, outputs=1 + count)
    else:
        found = arrays.masked_map(sample, needed[0], *rewarding.operands, outputs=count)
        disturbed = arrays.masked_map(noise, needed[1], *operands)
    if by_group:
        of_each = shapes[:, :, None] if pieces is None else shapes[:, None, pieces]
        disturbed = laplace.laplace_sum(disturbed, of_each)
    rewarded, disturbed = rewarding.finish(needed[0], *found), arrays.rounded(scale * disturbed)
    if trial.merged:
        return rewarded + disturbed, jnp.zeros((0, len(need)))
    return rewarded, disturbed


def _drawn_of_some(
    trial: Any,
    key: Array,
    number: Array,
    epoch: Epoch,
    columns: _Columns,
    need: Bool[Array, " arm"],
    fresh: Float[Array, " agent"],
    silent: Int[Array, " agent"],
) -> Table:
    """Returns rewards plus noise of the agents that are heard, since each was heard last.

    Args:
        trial: One that is ``lazy``.
        key: As in `run`.
        number: Of the epoch.
        epoch: What the equations see.
        columns: The arms.
        need: Which of them are in play.
        fresh: Pulls of each arm since; 0 where an agent is not heard.
        silent: Epochs since.
    """
    lanes = keys.lanes(trial.room, columns.arm, trial.arms)
    words = keys.stream_key(key, number, keys.REWARD)
    disturbing = keys.stream_key(key, number, keys.NOISE)
    law, noisy = trial.law, trial.noisy
    scale = trial.filling.noise_scale(epoch) * law.sensitivity if noisy else 0.0

    def both(*own: Array) -> Array:
        n0, n1, count, scale, *rest = own
        return since_heard(law, noisy, n0, n1, count, scale, *rest)

    wanted = need[None, :] & (silent > 0)[:, None]
    noise = (*disturbing, silent[:, None], scale)
    rewards = (*words, lanes, fresh[:, None], *columns.parameters)
    return arrays.masked_map(both, wanted, *map(jnp.asarray, (*noise, *rewards)))


def since_heard(
    law: Any, noisy: bool, n0: Array, n1: Array, silent: Array, scale: Array, *rewards: Array
) -> Float[Array, " lane"]:
    """Samples sums of an agent's rewards of several epochs and their noise; elementwise.

    Args:
        law: Of rewards.
        noisy: Whether there is noise.
        n0: First word of the key of the noise.
        n1: Second word.
        silent: Epochs, and so Laplace variables, that a sum is over.
        scale: Of each variable.
        *rewards: Of `Law.total`.
    """
    total = law.total(*rewards)
    if not noisy:
        return total
    return total + arrays.rounded(scale * laplace.few_summed(n0, n1, rewards[2], silent))


def _drawn_alike(
    trial: Any,
    words: keys.Words,
    disturbing: keys.Words,
    scale: Scalar,
    width: int,
    pulls: Scalar,
    columns: _Columns,
    need: Bool[Array, " arm"],
) -> tuple[Table, Float[Array, "heard arm"]]:
    """Does what `_drawn` does where agents are alike, each with rewards of its own.

    What is drawn for an arm is a row of agents, with one distribution.
    """
    law, merged, rows = trial.law, trial.merged, len(trial.reward_sizes)
    by_agent = trial.noisy and not trial.noise_by_group

    def row(small: bool, *own: Array) -> tuple[Array, ...]:
        k0, k1, n0, n1, scale, arm, *rest = own
        agent = jnp.arange(rows, dtype=jnp.uint32)
        lane = agent[:, None] * jnp.uint32(width) + arm[None]
        rewards = law.totals(k0, k1, lane, *rest, small=small)
        if not by_agent:
            return (rewards,)
        noise = arrays.rounded(scale[None] * laplace.laplace(n0[None], n1[None], lane))
        return (rewards + noise,) if merged else (rewards, noise)

    shared = [x[0] for x in columns.parameters]
    operands = (*words, *disturbing, scale, columns.arm, pulls, *shared)
    kind, ways = need, [partial(row, False)]
    if (small := law.small(jnp.broadcast_to(pulls, need.shape), *shared)) is not None:
        kind = jnp.where(need, jnp.where(small, 1, 2), 0)
        ways = [partial(row, True), partial(row, False)]
    count = 1 + (by_agent and not merged)
    found = arrays.masked_map(ways, kind, *operands, outputs=count, rows=rows)
    real = trial.reward_sizes[:, None] > 0.0
    rewarded, *noise = (jnp.where(real, x, 0.0) for x in found)
    if merged or not trial.noisy:
        return rewarded, jnp.zeros((0, len(need)))
    if by_agent:
        return rewarded, noise[0]
    groups = need[None, :] & (trial.noise_sizes > 0.0)[:, None]
    lanes = keys.lanes(len(groups), columns.arm, width)
    z = arrays.masked_map(_normal, groups, *disturbing, lanes)
    disturbed = laplace.laplace_sum(z, trial.noise_shapes[:, :, None])
    return rewarded, arrays.rounded(scale * disturbed)


def _normal(k0: Array, k1: Array, lane: Array) -> Array:
    return normal.quantile(keys.uniform(k0, k1, lane))


def leaving(
    trial: Any,
    epoch: Epoch,
    radius: Scalar,
    ready: Any,
    aggregate: PerArm,
    best: Scalar,
    noises: Float[Array, " share"] | None = None,
) -> Bool[Array, " arm"]:
    """Tells which arms leave (Algorithm 1, lines 13-15).

    Args:
        trial: As in `run`.
        epoch: What the equations see.
        radius: Of the aggregates.
        ready: What `Elimination.prepared` returns.
        aggregate: Of each arm.
        best: The largest of an arm in play.
        noises: Of each arm, where agents share the arms out.
    """
    filling, heard_of = trial.filling, epoch.reporting
    epochs, pulls = (epoch.number, epoch.pulls) if filling.remembers else (1.0, epoch.fresh)
    apart = jnp.ones(()) if trial.one_noise else heard_of
    each = of_best = apart * epochs * jnp.float64(trial.noisy)
    if trial.shared:
        heard_of = jnp.ones_like(heard_of)
        if noises is not None and trial.noisy and not trial.one_noise:
            # If several arms tie for the best, the one with most noise stands for them.
            each, of_best = noises, jnp.max(jnp.where(aggregate == best, noises, 0.0))
    heard = Heard(aggregate, best, heard_of * pulls, each, of_best, radius, ready)
    return checked("worse", filling.worse(heard, epoch), aggregate.shape, "b")


class Uploads(NamedTuple):
    """What agents send in the first rounds, while no arm leaves.

    Attributes:
        sent: Noisy mean of each arm, as a message holds it.
        length: Rewards that a mean is over: S_r, or n_r where old epochs are forgotten.
        played: Arm that a row plays while messages travel, if it does.
    """

    sent: Float[Array, "round row arm"]
    length: Float[Array, " round"]
    played: Int[Array, "round row"]


def uploads(
    trial: Any, instance: Instance, key: Array, added: Float[Array, "round row arm"]
) -> Uploads:
    """Returns the messages of single agents, or of all where only their sum is seen; pure.

    For audits of the noise: rewards, noise and memory are those of `run`, and all arms stay. Where
    agents are heard now and then, they are so in law: here all agents are drawn in each epoch.

    Args:
        trial: As in `run`.
        instance: The seed's.
        key: As in `run`.
        added: To the sums of rewards of each epoch; the first axis says how many epochs.
    """
    width = instance.gaps.shape[0]
    columns, state = _start(trial, instance, jnp.zeros(0, jnp.int64))
    active, everywhere = state.decision.active, jnp.ones(width, bool)
    silent = trial.merged or not trial.filling.noisy

    def epoch_of(carry: tuple[Array, ...], added: Array) -> tuple[tuple[Array, ...], Uploads]:
        before, pulls, successes, noise = carry
        number, epoch = planned(trial, width, before, active, pulls)
        rewarded, disturbed = _drawn(trial, instance, key, number, epoch, columns, everywhere)
        rewarded = rewarded + added
        successes, noise = successes + rewarded, noise + disturbed
        kept, length = (successes, noise), epoch.pulls
        if not trial.filling.remembers:
            kept, length = (rewarded, disturbed), epoch.fresh
        told = kept[0] if silent else kept[0] + kept[1]
        seen = Uploads(told / length, length, _first_best(successes, everywhere))
        return (number, epoch.pulls, successes, noise), seen

    start = (state.epoch, state.pulls, state.arms.successes, state.arms.noise)
    return lax.scan(epoch_of, arrays.varying_like(start, jax.random.key_data(key)), added)[1]


def _aggregate(
    trial: Any, heard: Bool[Array, " agent"], successes: Table, noise: Float[Array, "heard arm"]
) -> PerArm:
    """Returns, per arm, the weighted sum over reporting agents of rewards plus noise.

    ``heard`` tells who they are where that differs from round to round; else it is not looked at.
    """
    silent = not trial.filling.noisy
    if trial.plain:
        # Counts: exact in any order.
        total = successes[0] if len(successes) == 1 else arrays.padded_sum(successes)
        told = total if silent else total + noise[0]
        return told if trial.shared else told / trial.agents
    if trial.scarce:
        told = successes if silent or trial.merged else successes + noise
        return arrays.sum_in_turn(jnp.where(heard[:, None], told, 0.0)) / trial.reporting
    if silent or trial.rows_agree:
        told = successes if silent or trial.merged else successes + noise
        return arrays.padded_sum(arrays.rounded(trial.reward_weights[:, None] * told))
    parts = ((trial.reward_weights, successes), (trial.noise_weights, noise))
    first, second = (arrays.padded_sum(arrays.rounded(w[:, None] * x)) for w, x in parts)
    return first + second


def reporting(trial: Any, key: Array, number: Integer) -> Bool[Array, " agent"]:
    """Tells who is heard in a round."""
    (words,) = keys.stream_keys(key, number, keys.PARTICIPATION)
    real, sure = trial.reward_sizes > 0.0, trial.horizon >= 0
    return samplers.participants(words, real, trial.reporting.astype(jnp.int32), sure)


def _first_best(values: Table, alive: Bool[Array, " arm"]) -> Int[Array, " row"]:
    """Returns the position of each row's largest living value; ties go to the lowest arm."""
    values = jnp.where(alive[None, :], values, -jnp.inf)
    top = jnp.max(values, axis=1, keepdims=True)
    position = jnp.arange(values.shape[1], dtype=jnp.int32)[None, :]
    # Two plain reductions: XLA's argmax does not vectorise on CPUs. A NaN counts as the largest.
    best = (values == top) | jnp.isnan(values)
    return jnp.min(jnp.where(best, position, values.shape[1] - 1), axis=1)


def _compact(columns: _Columns, arms: _Arms, width: int) -> tuple[_Columns, _Arms]:
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
