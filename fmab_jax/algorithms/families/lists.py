"""The loop of the elimination family over one list: all active arms of a batch, a chunk at a time.

What `epochs.run` does for each seed in arrays of K arms, of which most have left after an epoch or
two, is done here for the arms that are in play, whatever seeds they are of. It is for processors,
where every element costs; an accelerator would rather have fewer steps. For trials whose agents
wait for nobody, and add up to one row or are heard now and then: `EliminationTrial.on`.
The bits are the same: numbers are drawn by identity, and sums over arms are exact in any order.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.base import Outcome, checked
from fmab_jax.algorithms.families import rounds
from fmab_jax.algorithms.families.rounds import Clock, Decision, Epoch, LastHeard
from fmab_jax.core import arrays, keys, laplace, normal
from fmab_jax.core.curves import extend
from fmab_jax.core.instances import Instance
from fmab_jax.core.shapes import Grid, Integer, Scalar, Truth

# Arms that are looked at together: their arrays stay in a core's cache.
_CHUNK = 4096
MOST = 2**31 - 1 - _CHUNK
"""Most arms of one list."""
# Epochs that are noted before the curves are brought up to date.
_EPOCHS = 16
_NONE = 2**31 - 1
_NEVER = 2**62


class _List(NamedTuple):
    """Arms, in any order; entries past the end mean nothing.

    Attributes:
        size: How many arms are listed.
        lane: trial x K + arm.
        successes: Sum of its rewards so far; no elements where each agent has its own.
        noise: Sum of its Laplace noise so far; no elements where there is none.
    """

    size: Integer
    lane: Int[Array, " place"]
    successes: Float[Array, " place"]
    noise: Float[Array, " place"]


class _Arms(NamedTuple):
    """Arrays by arm, written in place: new arrays would take longer.

    Attributes:
        heard: The arms that were played in the last epoch, and their sums after it.
        mean: Of each, its aggregate.
        alive: Of each, whether it stayed.
        playing: The arms that are played in an epoch, and their sums before it.
        sums: Of (trial, arm, agent), by identity: rewards and noise that an agent told of so far,
            where each is heard now and then; else no elements.
    """

    heard: _List
    mean: Float[Array, " place"]
    alive: Bool[Array, " place"]
    playing: _List
    sums: Float[Array, " element"]


class _State(NamedTuple):
    """The state of each trial as `epochs` holds it, and the sum of its active arms' gaps.

    The curves of clock and decision have no slots here; see `_Curves`.
    """

    epoch: Int[Array, " trial"]
    pulls: Float[Array, " trial"]
    clock: Clock
    decision: Decision
    gaps: Float[Array, " trial"]
    last_heard: LastHeard


class _Curves(NamedTuple):
    """Regret and rounds at the recorded slots, as far as they are known."""

    regret: Float[Array, "trial time"]
    rounds: Int[Array, "trial time"]


class _Stretches(NamedTuple):
    """The last epochs of each trial, which the curves do not show yet; `_NEVER` for no epoch.

    Attributes:
        start: Slot at which an epoch begins.
        value: Regret there.
        rate: Regret per slot of all agents.
        end: Slot at which its round is completed.
    """

    start: Int[Array, "turn trial"]
    value: Float[Array, "turn trial"]
    rate: Float[Array, "turn trial"]
    end: Int[Array, "turn trial"]


class _Plan(NamedTuple):
    """The next epoch of each trial, before anything is drawn."""

    running: Bool[Array, " trial"]
    draws: Bool[Array, " trial"]
    number: Int[Array, " trial"]
    rate: Float[Array, " trial"]
    clock: Clock
    epoch: Epoch
    radius: Float[Array, " trial"]
    ready: Any
    words: keys.Words
    disturbing: keys.Words
    scale: Float[Array, " trial"]
    some: _Some | None


class _Some(NamedTuple):
    """Who is heard in each trial, and what is new from them; empty where all are heard.

    Attributes:
        who: Agents that are heard, in order; what is past the last means nothing.
        fresh: Pulls of each arm since they were heard last.
        silent: Epochs since.
        last_heard: When each was heard last, this round included.
    """

    who: Int[Array, "trial rank"]
    fresh: Float[Array, "trial rank"]
    silent: Int[Array, "trial rank"]
    last_heard: LastHeard


def run(
    trial: Any,
    instance: Instance,
    grid: Int[Array, "trial time"],
    key: Array,
    last: Int[Array, " trial"],
) -> Outcome:
    """Runs one seed's epochs for each of many trials; as `epochs.run` under ``vmap``.

    Args:
        trial: An `EliminationTrial`; its arrays, and all that follow, are [trial, ...].
        instance: Of each trial.
        grid: Recorded slots.
        key: The key of each trial's seed, or of each agent where agents are alone.
        last: Slot at which the run is over.
    """
    trials, width = instance.gaps.shape
    everything = trials * width
    # A lazy trial handles one agent after another; each may have few arms, so chunks are small.
    chunk = min(_CHUNK // 2 if trial.lazy else _CHUNK, everything)
    room = -(-everything // chunk) * chunk
    scale = jax.vmap(rounds.scale_of)(instance)
    no_slots = grid[:, :0]
    clock, decision = jax.vmap(rounds.beginning)(trial, instance, no_slots)
    state = _State(
        epoch=jnp.zeros(trials, jnp.int32),
        pulls=jnp.zeros(trials),
        clock=clock,
        decision=decision,
        gaps=jax.vmap(lambda gaps, scale: arrays.exact_sum(gaps, scale))(instance.gaps, scale),
        last_heard=jax.tree.map(
            lambda x: jnp.broadcast_to(x, (trials, *x.shape)), rounds.silence(trial)
        ),
    )
    sums = jnp.zeros(everything * trial.room if trial.lazy and trial.filling.remembers else 0)
    successes = jnp.zeros(0 if trial.lazy else room)
    noise = jnp.zeros(room if trial.noisy and not trial.lazy else 0)
    lane = jnp.minimum(jnp.arange(room, dtype=jnp.int32), everything - 1)
    all_ = _List(jnp.int32(everything), lane, successes, noise)
    arms = _Arms(all_, jnp.zeros(room), jnp.ones(room, bool), all_, sums)
    curves = _Curves(jnp.zeros(grid.shape), jnp.zeros(grid.shape, jnp.int32))
    plans = jax.vmap(functools.partial(_planned, width))

    def unfinished(state: _State) -> Bool[Array, " trial"]:
        more = jax.vmap(rounds.explores)(trial, state.clock, state.decision, state.pulls, last)
        return more & (state.decision.active > 1)

    def epoch(given: tuple[Array, _State, _Arms, _Stretches]) -> tuple[Any, ...]:
        turn, state, arms, new = given
        running = unfinished(state)
        plan = plans(trial, no_slots, key, state, running)
        new = _Stretches(
            start=new.start.at[turn].set(jnp.where(running, state.clock.slot, _NEVER)),
            value=new.value.at[turn].set(state.clock.regret),
            rate=new.rate.at[turn].set(plan.rate),
            end=new.end.at[turn].set(jnp.where(plan.draws, plan.clock.slot, _NEVER)),
        )
        arms = _kept(arms, plan, width, chunk)
        arms, top = (_heard_some if trial.lazy else _heard)(trial, instance, plan, arms, chunk)
        arms, left = _judged(trial, instance, plan, arms, top, scale, chunk)
        return turn + 1, jax.vmap(_after)(plan, state, left), arms, new

    def several(given: tuple[_State, _Arms, _Curves]) -> tuple[_State, _Arms, _Curves]:
        state, arms, curves = given
        first = jnp.max(state.epoch)
        never, zero = jnp.full((_EPOCHS, trials), _NEVER), jnp.zeros((_EPOCHS, trials))
        start = (jnp.int32(0), state, arms, _Stretches(never, zero, zero, never))
        _, state, arms, new = lax.while_loop(
            lambda x: (x[0] < _EPOCHS) & jnp.any(unfinished(x[1])),
            epoch,
            arrays.varying_like(start, last),
        )
        return state, arms, jax.vmap(_continued, (0, 0, None, 1))(curves, grid, first, new)

    start = arrays.varying_like((state, arms, curves), last)
    state, _, curves = lax.while_loop(lambda x: jnp.any(unfinished(x[0])), several, start)
    return jax.vmap(rounds.outcome_of)(
        trial,
        grid,
        state.clock._replace(regret_curve=curves.regret),
        state.decision._replace(rounds_curve=curves.rounds),
        state.pulls,
        state.gaps / state.decision.active.astype(jnp.float64),
    )


def _continued(curves: _Curves, grid: Grid, first: Integer, new: _Stretches) -> _Curves:
    """Continues one trial's curves over epochs ``first`` + 1, ..., in their order."""

    def before(slots: Int[Array, " turn"], late: int) -> Grid:
        return functools.reduce(jnp.add, [(slot < grid + late).astype(jnp.int32) for slot in slots])

    # Before the first epoch, place 0 is read, and its value is not used.
    begun, completed = before(new.start, 0), before(new.end, 1)
    at = jnp.maximum(begun - 1, 0)
    line = extend(curves.regret, grid, new.start[at], new.value[at], new.rate[at])
    return _Curves(
        regret=jnp.where(begun > 0, line, curves.regret),
        rounds=jnp.where(completed > 0, first + completed, curves.rounds),
    )


def _planned(
    width: int, trial: Any, grid: Array, key: Array, state: _State, running: Truth
) -> _Plan:
    """Plans one trial's next epoch, and lets its slots pass (Algorithm 1, lines 3-9)."""
    number, epoch = rounds.planned(trial, width, state.epoch, state.decision.active, state.pulls)
    fits, explored = rounds.explored_by(trial, epoch, state.clock.slot)
    rate = trial.agents * (state.gaps / epoch.active)
    after = rounds.passed(state.clock, grid, explored, rate)
    clock = jax.tree.map(lambda new, old: jnp.where(running, new, old), after, state.clock)
    radius = checked("radius", trial.filling.radius(epoch), (), "f")
    words, disturbing = keys.stream_keys(key, number, keys.REWARD, keys.NOISE)
    some = None
    if trial.lazy:
        heard = rounds.reporting(trial, key, number)
        who = arrays.places(heard, jnp.cumsum(heard, dtype=jnp.int32))
        fresh, silent, last_heard = rounds.since(trial, state.last_heard, number, epoch, heard)
        some = _Some(who, fresh[who], silent[who], last_heard)
    return _Plan(
        running=running,
        draws=running & fits,
        number=number,
        rate=rate,
        clock=clock._replace(
            regret_curve=state.clock.regret_curve, waiting_curve=state.clock.waiting_curve
        ),
        epoch=epoch,
        radius=radius,
        ready=rounds.prepared(trial.filling, epoch, radius),
        words=words,
        disturbing=disturbing,
        scale=trial.filling.noise_scale(epoch) * trial.law.sensitivity,
        some=some,
    )


def _at(values: Array, place: Int[Array, " lane"]) -> Array:
    return values.at[place].get(mode="promise_in_bounds")


def _cut(values: Array, first: Integer, count: int) -> Array:
    return lax.dynamic_slice_in_dim(values, first, count)


def _put(values: Array, new: Array, first: Integer) -> Array:
    return lax.dynamic_update_slice_in_dim(values, new, first, 0)


def _kept(arms: _Arms, plan: _Plan, width: int, chunk: int) -> _Arms:
    """Lists the arms that are played now: those that stayed, of trials that draw."""
    heard = arms.heard
    # In the first epoch, if every trial draws, the list is already whole.
    all_ = jnp.all(plan.draws & (plan.number == 1))
    size = jnp.where(all_, 0, heard.size)

    def some(state: tuple[Array, _List]) -> tuple[Array, _List]:
        done, kept = state
        lane = _cut(heard.lane, done, chunk)
        listed = done + jnp.arange(chunk, dtype=jnp.int32) < size
        stays = listed & _cut(arms.alive, done, chunk) & _at(plan.draws, lane // width)
        ranks = arrays.ranked(stays)
        origin = arrays.places(stays, ranks)

        def put(old: Array, new: Array) -> Array:
            return _put(old, _at(_cut(new, done, chunk), origin), kept.size) if new.size else old

        return done + chunk, _List(
            size=kept.size + ranks[-1],
            lane=put(kept.lane, heard.lane),
            successes=put(kept.successes, heard.successes),
            noise=put(kept.noise, heard.noise),
        )

    start = (jnp.int32(0), arms.playing._replace(size=jnp.int32(0)))
    start = arrays.varying_like(start, heard.lane)
    playing = lax.while_loop(lambda s: s[0] < size, some, start)[1]
    playing = playing._replace(size=jnp.where(all_, heard.size, playing.size))
    return arms._replace(playing=playing)


def _heard(
    trial: Any, instance: Instance, plan: _Plan, arms: _Arms, chunk: int
) -> tuple[_Arms, Float[Array, " trial"]]:
    """Draws the epoch's rewards and noise; returns the arms, and each trial's best aggregate.

    Algorithm 1, lines 6-12.
    """
    width, playing = instance.gaps.shape[1], arms.playing
    parameters = [x.reshape(-1) for x in instance.parameters]
    total = plan.epoch.fresh * trial.reward_sizes[:, 0]
    filling, law, noisy, by_group = trial.filling, trial.law, trial.noisy, trial.noise_by_group
    divisor = _divisor(filling, plan.epoch)

    def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
        done, heard, means, top = state
        place = done + jnp.arange(chunk, dtype=jnp.int32)
        lane = _cut(playing.lane, done, chunk)
        # Past the last arm the chunk repeats one.
        lane = jnp.where(place < playing.size, lane, lane[0])
        owner = lane // width
        arm = (lane - owner * width).astype(jnp.uint32)
        k0, k1, pulls = (_at(x, owner) for x in (*plan.words, total))
        sent = fresh = law.total(k0, k1, arm, pulls, *(_at(x, lane) for x in parameters))
        before = _cut(playing.successes, done, chunk)
        successes = _put(heard.successes, before + fresh, done)
        if filling.remembers:
            sent = before + fresh
        noise = heard.noise
        if noisy:
            k0, k1 = (_at(x, owner) for x in plan.disturbing)
            if by_group:
                z = normal.quantile(keys.uniform(k0, k1, arm))
                disturbed = _laplace_sum(z, trial.noise_shapes[:, :, 0], owner)
            else:
                disturbed = laplace.laplace(k0, k1, arm)
            disturbed = arrays.rounded(_at(plan.scale, owner) * disturbed)
            before = _cut(playing.noise, done, chunk)
            noise = _put(heard.noise, before + disturbed, done)
            sent = sent + (before + disturbed if filling.remembers else disturbed)
        mean = sent / _at(trial.agents, owner) / _at(divisor, owner)
        ranked = jnp.where(place < playing.size, mean, -jnp.inf)
        top = top.at[owner].max(ranked, mode="promise_in_bounds")
        heard = heard._replace(lane=_put(heard.lane, lane, done), successes=successes, noise=noise)
        return done + chunk, heard, _put(means, mean, done), top

    heard = arms.heard._replace(size=playing.size)
    start = (jnp.int32(0), heard, arms.mean, jnp.full(len(total), -jnp.inf))
    start = arrays.varying_like(start, playing.lane)
    _, heard, means, top = lax.while_loop(lambda s: s[0] < playing.size, some, start)
    return arms._replace(heard=heard, mean=means), top


def _divisor(filling: Any, epoch: Any) -> Any:
    """Returns how many pulls a mean that was sent is over: all, or those of the epoch."""
    return epoch.pulls if filling.remembers else epoch.fresh


def _heard_some(
    trial: Any, instance: Instance, plan: _Plan, arms: _Arms, chunk: int
) -> tuple[_Arms, Float[Array, " trial"]]:
    """Does what `_heard` does where agents are heard now and then: one after another."""
    width, agents, playing = instance.gaps.shape[1], trial.room, arms.playing
    filling, law, noisy = trial.filling, trial.law, trial.noisy
    own = [x.shape[1] > 1 for x in instance.parameters]
    parameters = [x.reshape(-1) for x in instance.parameters]
    assert plan.some is not None
    new = [x.reshape(-1) for x in plan.some[:3]]
    reporting = trial.reporting.astype(jnp.int32)
    most = jnp.max(jnp.where(plan.draws, reporting, 0))
    divisor = _divisor(filling, plan.epoch)

    def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
        done, lanes, means, top, sums = state
        place = done + jnp.arange(chunk, dtype=jnp.int32)
        lane = _cut(playing.lane, done, chunk)
        # Past the last arm the chunk repeats one.
        lane = jnp.where(place < playing.size, lane, lane[0])
        owner = lane // width
        arm = lane - owner * width
        given = (plan.words, plan.disturbing, plan.scale, reporting)
        (k0, k1), (n0, n1), scale, count = jax.tree.map(lambda x: _at(x, owner), given)

        def one(rank: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            total, sums = state
            who, fresh, silent = (_at(x, owner * agents + rank) for x in new)
            number = (who * width + arm).astype(jnp.uint32)
            here = (owner * agents + who) * width + arm
            means = [_at(x, here if o else lane) for x, o in zip(parameters, own, strict=True)]
            rewards = (k0, k1, number, fresh, *means)
            sent = rounds.since_heard(law, noisy, n0, n1, silent, scale, *rewards)
            heard = rank < count
            if filling.remembers:
                held = lane * agents + who
                sent = _at(sums, held) + sent
                sums = sums.at[jnp.where(heard, held, len(sums))].set(sent, mode="drop")
            return total + jnp.where(heard, sent, 0.0), sums

        nothing = arrays.varying_like(jnp.zeros(chunk), lane)
        total, sums = lax.fori_loop(0, most, one, (nothing, sums))
        mean = total / _at(trial.reporting, owner) / _at(divisor, owner)
        ranked = jnp.where(place < playing.size, mean, -jnp.inf)
        top = top.at[owner].max(ranked, mode="promise_in_bounds")
        return done + chunk, _put(lanes, lane, done), _put(means, mean, done), top, sums

    heard = arms.heard._replace(size=playing.size)
    start = (jnp.int32(0), heard.lane, arms.mean, jnp.full(len(reporting), -jnp.inf), arms.sums)
    start = arrays.varying_like(start, playing.lane)
    _, lanes, means, top, sums = lax.while_loop(lambda s: s[0] < playing.size, some, start)
    return arms._replace(heard=heard._replace(lane=lanes), mean=means, sums=sums), top


def _laplace_sum(
    z: Float[Array, " lane"], shapes: Float[Array, "trial 24"], owner: Int[Array, " lane"]
) -> Float[Array, " lane"]:
    """Returns `laplace.laplace_sum`; in most batches all trials share one shape."""
    return lax.cond(
        jnp.all(shapes == shapes[:1]),
        lambda z, _: laplace.laplace_sum(z, shapes[0]),
        lambda z, owner: laplace.laplace_sum(z, _at(shapes, owner).T),
        *(z, owner),
    )


class _Left(NamedTuple):
    """The arms of each trial after an epoch."""

    active: Int[Array, " trial"]
    chosen: Int[Array, " trial"]
    chosen_gap: Float[Array, " trial"]
    lost: Bool[Array, " trial"]
    gaps: Float[Array, " trial"]


class _Judged(NamedTuple):
    """`_Left` while it is counted: arms that stay, the best one, arms of no gap, summed gaps."""

    active: Int[Array, " trial"]
    best: Float[Array, " trial"]
    lane: Int[Array, " trial"]
    optimal: Int[Array, " trial"]
    coarse: Float[Array, " trial"]
    fine: Float[Array, " trial"]


def _judged(
    trial: Any,
    instance: Instance,
    plan: _Plan,
    arms: _Arms,
    top: Float[Array, " trial"],
    scale: Float[Array, " trial"],
    chunk: int,
) -> tuple[_Arms, _Left]:
    """Drops what is clearly worse (Algorithm 1, lines 13-15); tells what is left."""
    trials, width = instance.gaps.shape
    gaps = instance.gaps.reshape(-1)
    heard = arms.heard

    def judge(epoch: Epoch, radius: Scalar, ready: Any, mean: Scalar, best: Scalar) -> Truth:
        return rounds.leaving(trial, epoch, radius, ready, mean[None], best)[0]

    def some(state: tuple[Array, _Judged, Array]) -> tuple[Array, _Judged, Array]:
        done, found, alive = state
        lane = _cut(heard.lane, done, chunk)
        owner = lane // width
        mean, gap = _cut(arms.mean, done, chunk), _at(gaps, lane)
        given = (plan.epoch, plan.radius, plan.ready, top)
        epoch, radius, ready, best = jax.tree.map(lambda x: _at(x, owner), given)
        leaving = jax.vmap(judge)(epoch, radius, ready, mean, best)
        listed = done + jnp.arange(chunk, dtype=jnp.int32) < heard.size
        stays = listed & ~leaving
        coarse, fine = arrays.exact_parts(jnp.where(stays, gap, 0.0), _at(scale, owner))
        best = found.best.at[owner].max(jnp.where(stays, mean, -jnp.inf), mode="promise_in_bounds")
        # Ties go to the lowest arm.
        lanes = jnp.where(best > found.best, _NONE, found.lane)
        foremost = stays & (mean == _at(best, owner))

        def added(values: Array, more: Array) -> Array:
            return values.at[owner].add(more, mode="promise_in_bounds")

        found = _Judged(
            active=added(found.active, stays.astype(jnp.int32)),
            best=best,
            lane=lanes.at[owner].min(jnp.where(foremost, lane, _NONE), mode="promise_in_bounds"),
            optimal=added(found.optimal, (stays & (gap == 0.0)).astype(jnp.int32)),
            coarse=added(found.coarse, coarse),
            fine=added(found.fine, fine),
        )
        return done + chunk, found, _put(alive, stays, done)

    zeros, zero = jnp.zeros(trials, jnp.int32), jnp.zeros(trials)
    nothing = _Judged(zeros, zero - jnp.inf, zeros + _NONE, zeros, zero, zero)
    start = arrays.varying_like((jnp.int32(0), nothing, arms.alive), heard.lane)
    _, found, alive = lax.while_loop(lambda s: s[0] < heard.size, some, start)
    first = jnp.arange(trials, dtype=jnp.int32) * width
    none = (found.lane == _NONE) | jnp.isnan(found.best)
    lane = jnp.where(none, first, found.lane)
    left = _Left(
        active=found.active,
        chosen=lane - first,
        chosen_gap=_at(gaps, lane),
        lost=found.optimal == 0,
        gaps=arrays.exact_total(found.coarse, found.fine, scale),
    )
    return arms._replace(alive=alive), left


def _after(plan: _Plan, state: _State, left: _Left) -> _State:
    """Returns one trial's state after an epoch; what was cut at the horizon decides nothing."""
    before = state.decision
    after = Decision(
        active=left.active,
        chosen=left.chosen,
        chosen_gap=left.chosen_gap,
        lost=left.lost,
        rounds=plan.number,
        reported=before.reported + before.active.astype(jnp.int64),
        rounds_curve=before.rounds_curve,
    )
    decision = jax.tree.map(lambda new, old: jnp.where(plan.draws, new, old), after, before)
    pulls = jnp.where(jnp.isnan(plan.radius), plan.radius, plan.epoch.pulls)
    return _State(
        epoch=jnp.where(plan.running, plan.number, state.epoch),
        pulls=jnp.where(plan.running, pulls, state.pulls),
        clock=plan.clock,
        decision=decision._replace(rounds_curve=before.rounds_curve),
        gaps=jnp.where(plan.draws, left.gaps, state.gaps),
        last_heard=state.last_heard if plan.some is None else plan.some.last_heard,
    )
