"""The loop of the elimination family over one list: all active arms of a batch, a chunk at a time.

What `epochs.run` does for each seed in arrays of K arms, of which most have left after an epoch or
two, is done here for the arms that are in play, whatever seeds they are of. It is for processors,
where every element costs; an accelerator would rather have fewer steps. For trials whose agents add
up to one row and wait for nobody (`applies`). The bits are the same: numbers are drawn by identity,
and sums over arms are exact in any order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.base import Outcome, checked
from fmab_jax.algorithms.families import epochs
from fmab_jax.algorithms.families.epochs import Clock, Decision, Epoch
from fmab_jax.core import arrays, keys, laplace, normal
from fmab_jax.core.curves import step
from fmab_jax.core.problems import Instance

# Arms that are looked at together: their arrays stay in a core's cache.
_CHUNK = 4096
_NONE = 2**31 - 1


# What `leaves` may be made of, so that it says of each arm what it would say of the arm alone.
_BY_ARM = frozenset(
    "abs add and broadcast_in_dim ceil clamp convert_element_type div eq exp expm1 floor ge gt "
    "integer_pow is_finite le log log1p lt max min mul ne neg not or pow rem round rsqrt select_n "
    "sign sqrt square stop_gradient sub tanh xor".split()
)


@functools.lru_cache(maxsize=256)
def by_arm(leaves: Callable[..., Array]) -> bool:
    """Tells whether `Elimination.leaves` judges each arm by itself; else arms lie together."""
    arms, one = jax.ShapeDtypeStruct((3,), jnp.float64), jax.ShapeDtypeStruct((), jnp.float64)
    try:
        seen = jax.make_jaxpr(leaves)(arms, one)
    except Exception:  # somebody's own, which is refused where it runs
        return False
    return _each_by_itself(seen.jaxpr)


def _each_by_itself(jaxpr: Any) -> bool:
    inner = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in inner:
            if not _each_by_itself(equation.params[inner[name]].jaxpr):
                return False
        elif name not in _BY_ARM:
            return False
    return True


class _Arms(NamedTuple):
    """The list, in the order of trials and of their arms; what is past its end means nothing.

    Attributes:
        size: How many arms are listed.
        lane: trial x K + arm.
        alive: Whether the arm is still active.
        successes: Sum of its rewards so far.
        noise: Sum of its Laplace noise so far; no elements where there is none.
    """

    size: Int[Array, ""]
    lane: Int[Array, " place"]
    alive: Bool[Array, " place"]
    successes: Float[Array, " place"]
    noise: Float[Array, " place"]


class _State(NamedTuple):
    """Of all trials: what `epochs` holds of each, and the sum of its active arms' gaps."""

    epoch: Int[Array, " trial"]
    pulls: Float[Array, " trial"]
    clock: Clock
    decision: Decision
    gaps: Float[Array, " trial"]


class _Plan(NamedTuple):
    """What is known of the next epoch of each trial before anything is drawn."""

    running: Bool[Array, " trial"]
    draws: Bool[Array, " trial"]
    number: Int[Array, " trial"]
    clock: Clock
    epoch: Epoch
    radius: Float[Array, " trial"]
    words: keys.Words
    disturbing: keys.Words
    scale: Float[Array, " trial"]


def run(
    trial: Any,
    instance: Instance,
    grid: Int[Array, " time"],
    key: Array,
    last: Int[Array, ""],
) -> Outcome:
    """Runs one seed's epochs, under ``vmap`` all seeds' in one list; arguments as `epochs.run`."""
    given = (trial, instance, grid, jax.random.key_data(key), last)
    leaves, structure = jax.tree.flatten(given)
    return _over(structure, ())(*leaves)


def _over(structure: Any, batch: tuple[int, ...]) -> Any:
    """Returns the run of trials that lie as [*batch]."""

    @custom_vmap
    def whole(*leaves: Array) -> Outcome:
        flat = [x.reshape(math.prod(batch), *x.shape[len(batch) :]) for x in leaves]
        found = _run(*jax.tree.unflatten(structure, flat))
        return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), found)

    @whole.def_vmap
    def rule(size: int, is_batched: list[bool], *leaves: Array) -> tuple[Outcome, Any]:
        spread = [
            x if mapped else jnp.broadcast_to(x[None], (size, *x.shape))
            for x, mapped in zip(leaves, is_batched, strict=True)
        ]
        found = _over(structure, (size, *batch))(*spread)
        return found, jax.tree.map(lambda _: True, found)

    return whole


def _run(
    trial: Any,
    instance: Instance,
    grid: Int[Array, "trial time"],
    key: Array,
    last: Int[Array, " trial"],
) -> Outcome:
    trials, width = instance.gaps.shape
    everything = trials * width
    chunk = min(_CHUNK, everything)
    room = -(-everything // chunk) * chunk
    scale = jax.vmap(epochs.scale_of)(instance)
    clock, decision = jax.vmap(epochs.beginning)(trial, instance, grid)
    state = _State(
        epoch=jnp.zeros(trials, jnp.int32),
        pulls=jnp.zeros(trials),
        clock=clock,
        decision=decision,
        gaps=jax.vmap(lambda gaps, scale: arrays.exact_sum(gaps, scale))(instance.gaps, scale),
    )
    arms = _Arms(
        size=jnp.int32(everything),
        lane=jnp.minimum(jnp.arange(room, dtype=jnp.int32), everything - 1),
        alive=jnp.ones(room, bool),
        successes=jnp.zeros(room),
        noise=jnp.zeros(room if trial.noisy else 0),
    )

    def unfinished(state: _State) -> Bool[Array, " trial"]:
        more = jax.vmap(epochs.explores)(trial, state.clock, state.decision, state.pulls, last)
        return more & (state.decision.active > 1)

    def body(both: tuple[_State, _Arms]) -> tuple[_State, _Arms]:
        state, arms = both
        plan = jax.vmap(functools.partial(_planned, width))(
            trial, grid, key, state, unfinished(state)
        )
        arms = _kept(arms, plan.draws, width, chunk)
        arms, aggregate, top = _heard(trial, instance, plan, arms, chunk)
        left, alive = _judged(trial, instance, plan, arms, aggregate, top, scale, chunk)
        return jax.vmap(_after)(plan, grid, state, left), arms._replace(alive=alive)

    start = arrays.varying_like((state, arms), key)
    state, _ = lax.while_loop(lambda both: jnp.any(unfinished(both[0])), body, start)
    exploring = state.gaps / state.decision.active.astype(jnp.float64)
    return jax.vmap(epochs.outcome_of)(
        trial, grid, state.clock, state.decision, state.pulls, exploring
    )


def _planned(
    width: int, trial: Any, grid: Array, key: Array, state: _State, running: Bool[Array, ""]
) -> _Plan:
    """Plans one trial's next epoch, and lets its slots pass (Algorithm 1, lines 3-9)."""
    number, epoch = epochs.planned(trial, width, state.epoch, state.decision.active, state.pulls)
    fits, explored = epochs.explored_by(trial, epoch, state.clock.slot)
    clock = epochs.passed(state.clock, grid, explored, trial.agents * (state.gaps / epoch.active))
    own = jax.random.wrap_key_data(key, impl="threefry2x32")
    return _Plan(
        running=running,
        draws=running & fits,
        number=number,
        clock=jax.tree.map(lambda new, old: jnp.where(running, new, old), clock, state.clock),
        epoch=epoch,
        radius=checked("radius", trial.filling.radius(epoch), (), "f"),
        words=keys.stream_key(own, number, keys.REWARD),
        disturbing=keys.stream_key(own, number, keys.NOISE),
        scale=trial.filling.noise_scale(epoch) * trial.law.sensitivity,
    )


def _at(values: Array, place: Int[Array, " lane"]) -> Array:
    return values.at[place].get(mode="promise_in_bounds")


def _cut(values: Array, first: Int[Array, ""], count: int) -> Array:
    return lax.dynamic_slice_in_dim(values, first, count)


def _put(values: Array, new: Array, first: Int[Array, ""]) -> Array:
    return lax.dynamic_update_slice_in_dim(values, new, first, 0)


def _kept(arms: _Arms, draws: Bool[Array, " trial"], width: int, chunk: int) -> _Arms:
    """Returns the list of those arms that are active in trials that draw."""
    blank = _Arms(jnp.int32(0), *(jnp.zeros_like(x) for x in arms[1:]))

    def some(state: tuple[Array, _Arms]) -> tuple[Array, _Arms]:
        done, kept = state
        lane = _cut(arms.lane, done, chunk)
        listed = done + jnp.arange(chunk, dtype=jnp.int32) < arms.size
        stays = listed & _cut(arms.alive, done, chunk) & _at(draws, lane // width)
        ranks = jnp.cumsum(stays, dtype=jnp.int32)
        source = arrays.places(stays, ranks)
        columns = (arms.successes, arms.noise)
        successes, noise = (_cut(x, done, chunk) if x.size else x for x in columns)
        return done + chunk, kept._replace(
            size=kept.size + ranks[-1],
            lane=_put(kept.lane, _at(lane, source), kept.size),
            successes=_put(kept.successes, _at(successes, source), kept.size),
            noise=_put(kept.noise, _at(noise, source), kept.size) if noise.size else noise,
        )

    start = arrays.varying_like((jnp.int32(0), blank), arms.lane)
    return lax.while_loop(lambda s: s[0] < arms.size, some, start)[1]


def _heard(
    trial: Any, instance: Instance, plan: _Plan, arms: _Arms, chunk: int
) -> tuple[_Arms, Float[Array, " place"], Float[Array, " trial"]]:
    """Draws the epoch's rewards and noise; returns each arm's aggregate, and each trial's best.

    Algorithm 1, lines 6-12.
    """
    width = instance.gaps.shape[1]
    parameters = [x.reshape(-1) for x in instance.parameters]
    total = plan.epoch.fresh * trial.reward_sizes[:, 0]
    filling, law, noisy, by_group = trial.filling, trial.law, trial.noisy, trial.noise_by_group
    divisor = plan.epoch.pulls if filling.remembers else plan.epoch.fresh

    def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
        done, successes, noise, aggregate, top = state
        place = done + jnp.arange(chunk, dtype=jnp.int32)
        lane = _cut(arms.lane, done, chunk)
        # Past the last arm the chunk repeats one.
        lane = jnp.where(place < arms.size, lane, lane[0])
        owner = lane // width
        arm = (lane - owner * width).astype(jnp.uint32)
        k0, k1, pulls = (_at(x, owner) for x in (*plan.words, total))
        told = fresh = law.total(k0, k1, arm, pulls, *(_at(x, lane) for x in parameters))
        before = _cut(arms.successes, done, chunk)
        successes = _put(successes, before + fresh, done)
        if filling.remembers:
            told = before + fresh
        if noisy:
            k0, k1 = (_at(x, owner) for x in plan.disturbing)
            if by_group:
                z = normal.quantile(keys.uniform(k0, k1, arm))
                disturbed = _laplace_sum(z, trial.noise_shapes[:, :, 0], owner)
            else:
                disturbed = laplace.laplace(k0, k1, arm)
            disturbed = arrays.rounded(_at(plan.scale, owner) * disturbed)
            before = _cut(arms.noise, done, chunk)
            noise = _put(noise, before + disturbed, done)
            told = told + (before + disturbed if filling.remembers else disturbed)
        mean = told / _at(trial.agents, owner) / _at(divisor, owner)
        seen = jnp.where(place < arms.size, mean, -jnp.inf)
        top = top.at[owner].max(seen, mode="promise_in_bounds")
        return done + chunk, successes, noise, _put(aggregate, mean, done), top

    blank = jnp.zeros_like(arms.successes)
    # Not written over what is read: a compiler would copy that for every chunk.
    start = (jnp.int32(0), blank, jnp.zeros_like(arms.noise), blank, jnp.full(len(total), -jnp.inf))
    start = arrays.varying_like(start, arms.lane)
    *_, successes, noise, aggregate, top = lax.while_loop(lambda s: s[0] < arms.size, some, start)
    return arms._replace(successes=successes, noise=noise), aggregate, top


def _laplace_sum(
    z: Float[Array, " lane"], shapes: Float[Array, "trial 24"], owner: Int[Array, " lane"]
) -> Float[Array, " lane"]:
    """Returns `laplace.laplace_sum`, whose shape most batches share."""
    return lax.cond(
        jnp.all(shapes == shapes[:1]),
        lambda z, _: laplace.laplace_sum(z, shapes[0]),
        lambda z, owner: laplace.laplace_sum(z, _at(shapes, owner).T),
        *(z, owner),
    )


class _Left(NamedTuple):
    """What an epoch left of each trial's arms."""

    active: Int[Array, " trial"]
    chosen: Int[Array, " trial"]
    chosen_gap: Float[Array, " trial"]
    lost: Bool[Array, " trial"]
    gaps: Float[Array, " trial"]


class _Judged(NamedTuple):
    """The same, being counted: how many stay, the best one, how many of no gap, summed gaps."""

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
    aggregate: Float[Array, " place"],
    top: Float[Array, " trial"],
    scale: Float[Array, " trial"],
    chunk: int,
) -> tuple[_Left, Bool[Array, " place"]]:
    """Drops what is clearly worse (Algorithm 1, lines 13-15); tells what is left."""
    trials, width = instance.gaps.shape
    gaps = instance.gaps.reshape(-1)
    filling = trial.filling

    def some(state: tuple[Array, _Judged, Array]) -> tuple[Array, _Judged, Array]:
        done, found, alive = state
        lane = _cut(arms.lane, done, chunk)
        owner = lane // width
        mean, gap = _cut(aggregate, done, chunk), _at(gaps, lane)
        behind = _at(top, owner) - mean
        leaving = filling.leaves(behind, _at(plan.radius, owner))
        listed = done + jnp.arange(chunk, dtype=jnp.int32) < arms.size
        stays = listed & ~checked("leaves", leaving, behind.shape, "b")
        coarse, fine = arrays.exact_parts(jnp.where(stays, gap, 0.0), _at(scale, owner))
        best = found.best.at[owner].max(jnp.where(stays, mean, -jnp.inf), mode="promise_in_bounds")
        # Ties go to the lowest arm, which comes first.
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

    none, zero = jnp.zeros(trials, jnp.int32), jnp.zeros(trials)
    nothing = _Judged(none, zero - jnp.inf, none + _NONE, none, zero, zero)
    start = (jnp.int32(0), nothing, jnp.zeros_like(arms.alive))
    start = arrays.varying_like(start, arms.lane)
    _, found, alive = lax.while_loop(lambda s: s[0] < arms.size, some, start)
    first = jnp.arange(trials, dtype=jnp.int32) * width
    lane = jnp.where(found.lane == _NONE, first, found.lane)
    left = _Left(
        active=found.active,
        chosen=lane - first,
        chosen_gap=_at(gaps, lane),
        lost=found.optimal == 0,
        gaps=arrays.exact_total(found.coarse, found.fine, scale),
    )
    return left, alive


def _after(plan: _Plan, grid: Int[Array, " time"], state: _State, left: _Left) -> _State:
    """Returns one trial's state after an epoch; what was cut at the horizon decides nothing."""
    before = state.decision
    after = Decision(
        active=left.active,
        chosen=left.chosen,
        chosen_gap=left.chosen_gap,
        lost=left.lost,
        rounds=plan.number,
        rounds_curve=step(before.rounds_curve, grid, plan.clock.slot, plan.number),
    )
    known = jnp.where(jnp.isnan(plan.radius), plan.radius, plan.epoch.pulls)
    return _State(
        epoch=jnp.where(plan.running, plan.number, state.epoch),
        pulls=jnp.where(plan.running, known, state.pulls),
        clock=plan.clock,
        decision=jax.tree.map(lambda new, old: jnp.where(plan.draws, new, old), after, before),
        gaps=jnp.where(plan.draws, left.gaps, state.gaps),
    )
