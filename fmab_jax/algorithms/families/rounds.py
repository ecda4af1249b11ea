"""A round of an elimination, whichever loop runs it: what is planned, heard and decided.

Line by line Algorithm 1 of arXiv 2111.01570 (3-17), with the filling's equations in their places.
All is a function of arrays; a trial is `EliminationTrial`.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Literal
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.base import Outcome, checked
from fmab_jax.core import arrays, keys, laplace, samplers
from fmab_jax.core.curves import extend
from fmab_jax.core.instances import Instance
from fmab_jax.core.shapes import Grid, Integer, PerArm, Scalar, Truth


class Epoch(NamedTuple):
    """The inputs of one epoch's equations: float64 scalars, traced.

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
    """The arms as a round shows them; `Elimination.worse` judges by it.

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


class LastHeard(NamedTuple):
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
    """The last completed round's decision; ``reported`` sums the arms that rounds began with."""

    active: Integer
    chosen: Integer
    chosen_gap: Scalar
    lost: Truth
    rounds: Integer
    reported: Integer
    rounds_curve: Grid


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


def silence(trial: Any) -> LastHeard:
    """Returns what is known before anybody was heard."""
    agents = trial.room if trial.lazy else 0
    return LastHeard(jnp.zeros(agents), jnp.zeros(agents, jnp.int32))


def since(
    trial: Any, last_heard: LastHeard, number: Integer, epoch: Epoch, heard: Bool[Array, " agent"]
) -> tuple[Float[Array, " agent"], Int[Array, " agent"], LastHeard]:
    """Returns pulls and epochs that are new from each agent, and when each was heard last.

    An active arm was active in all epochs before. Agents that are not heard tell nothing new.
    """
    if trial.filling.remembers:
        pulls, epochs = epoch.pulls - last_heard.pulls, number - last_heard.epoch
    else:
        pulls, epochs = (
            jnp.full_like(last_heard.pulls, epoch.fresh),
            jnp.ones_like(last_heard.epoch),
        )
    now = LastHeard(
        pulls=jnp.where(heard, epoch.pulls, last_heard.pulls),
        epoch=jnp.where(heard, number, last_heard.epoch),
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
    plan = Epoch(
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
    most = plan.horizon * plan.agents if trial.shared else plan.horizon
    longest = plan.previous + most + 1.0
    asked = checked("pulls_per_arm", trial.filling.pulls_per_arm(plan), (), "f")
    pulls = jnp.clip(asked, plan.previous + 1.0, longest)
    return number, plan._replace(pulls=pulls, fresh=pulls - plan.previous)


def explored_by(trial: Any, epoch: Epoch, slot: Integer) -> tuple[Truth, Integer]:
    """Tells whether an epoch ends by the horizon, and when; cut there, nothing is uploaded."""
    slots = (epoch.active * epoch.fresh).astype(jnp.int64)
    if trial.shared:
        slots = shared_slots(trial, epoch)
    end = slot + slots
    return end <= trial.horizon, jnp.minimum(end, trial.horizon)


def shared_slots(trial: Any, epoch: Epoch) -> Integer:
    """Returns how long all agents together take for the pulls of an epoch."""
    pulls, agents = (epoch.active * epoch.fresh).astype(jnp.int64), trial.agents.astype(jnp.int64)
    return (pulls + agents - 1) // agents


def passed(clock: Clock, grid: Grid, until: Integer, rate: Scalar) -> Clock:
    """Lets slots pass in which all agents together collect ``rate`` regret per slot."""
    gained = arrays.rounded(rate * (until - clock.slot).astype(jnp.float64))
    return clock._replace(
        slot=until,
        regret=clock.regret + gained,
        regret_curve=extend(clock.regret_curve, grid, clock.slot, clock.regret, rate),
    )


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


def prepared(filling: Any, epoch: Epoch, radius: Scalar) -> Any:
    """Returns what `Elimination.prepared` does, worked out once for all trials that ask the same.

    As it does not depend on data, that is most of a batch. What it hands on as it is given, and
    constants, are left alone.
    """
    leaves, structure = jax.tree.flatten((epoch, radius))

    def whole(*leaves: Array) -> Any:
        return filling.prepared(*jax.tree.unflatten(structure, leaves))

    program = jax.make_jaxpr(whole)(*leaves).jaxpr
    inputs = {*program.invars}
    read, reached = set(), {*inputs}
    for equation in program.eqns:
        own = {x for x in equation.invars if not isinstance(x, Literal)}
        if own & reached:
            read |= own
            reached.update(equation.outvars)
    asked = [place for place, x in enumerate(program.invars) if x in read]
    worked_out = [not isinstance(x, Literal) and x in reached - inputs for x in program.outvars]
    plain, shape = jax.tree.flatten(whole(*leaves))
    if not any(worked_out):
        return jax.tree.unflatten(shape, plain)

    def of_asked(*given: Array) -> list[Any]:
        known = dict(zip(asked, given, strict=True))
        found = whole(*(known.get(i, jnp.zeros_like(x)) for i, x in enumerate(leaves)))
        return [*itertools.compress(jax.tree.leaves(found), worked_out)]

    once = iter(arrays.once_for_equals(of_asked)(*(leaves[place] for place in asked)))
    found = [next(once) if own else x for x, own in zip(plain, worked_out, strict=True)]
    return jax.tree.unflatten(shape, found)


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


def reporting(trial: Any, key: Array, number: Integer) -> Bool[Array, " agent"]:
    """Tells who is heard in a round."""
    (words,) = keys.stream_keys(key, number, keys.PARTICIPATION)
    real, sure = trial.reward_sizes > 0.0, trial.horizon >= 0
    return samplers.participants(words, real, trial.reporting.astype(jnp.int32), sure)
