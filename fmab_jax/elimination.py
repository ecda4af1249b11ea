"""Algorithm 1 of Li and Song (arXiv 2111.01570): elimination in epochs, for a batch of trials.

Lines are the paper's. `Elimination`, in algorithms/families, states the equations: how long an
epoch is (line 4), the radius (5), who leaves (13-14). `fmab_jax.draws` says how agents add up
(9-12), `fmab_jax.layouts` how arms are held. No pull is drawn by itself: an epoch draws one sum of
rewards per arm, or one per arm and agent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax.accounts import State, close_epoch, finish_run, goes_on, power_of_two_above, start_run
from fmab_jax.core import arrays, keys
from fmab_jax.core.curves import Line, blank
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import once_for_all
from fmab_jax.core.shapes import Integer, PerArm, Scalar, Truth
from fmab_jax.core.trials import Outcome, checked
from fmab_jax.draws.base import Round, constants
from fmab_jax.layouts import choose


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
        params: The algorithm's values, by name; see `Elimination.values`.
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
    params: dict[str, Scalar]


class Heard(NamedTuple):
    """The arms as a round shows them; `Elimination.worse` judges by it.

    Attributes:
        aggregate: [arm] mean of what is heard of each; NaN of arms that have left, where an
            equation compares arms with each other.
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


class Plan(NamedTuple):
    """The next epoch of a run.

    Attributes:
        runs: Whether the run goes on.
        draws: Whether the epoch ends by the horizon; else nothing is uploaded.
        explored: Its last slot, at most T.
        epoch: What equations see.
        radius: C(r).
        round: What draws see.
        memory: Of the draws, after it.
        prepared: What `Elimination.prepared` returns.
    """

    runs: Truth
    draws: Truth
    explored: Integer
    epoch: Epoch
    radius: Scalar
    round: Round
    memory: Any
    prepared: Any = ()


def run(trial: Any, instance: Instance, grid: Array, key: Array, last: Array) -> Outcome:
    """Runs one seed of each of many trials; all arrays are [trial, ...].

    Args:
        trial: An `EliminationTrial`.
        instance: Of each trial.
        grid: [trial, time] recorded slots, the last the horizon.
        key: Of each trial's seed, or of an agent that runs by itself.
        last: Slot at which a run is over.
    """
    draws, gaps = trial.draws, instance.gaps
    layout = choose(gaps.shape[0], gaps.shape[1], trial.elementwise)
    each = layout.each
    found = {"best": "max", **({"play": "first_max"} if trial.waits else {})}
    left = {"active": "sum", "gaps": "sum", "optimal": "sum", "chosen": "first_max"}
    left |= {"playing": "by_arm"} if trial.gauges else {}
    scale = each(power_of_two_above)(gaps)

    def epoch(state: State, arms: Any) -> tuple[State, Any, tuple[Line, ...]]:
        plan = each(plan_epoch)(trial, state, key, last)  # lines 3-5
        arms = layout.keep(arms, plan.draws)
        arms, heard = layout.sweep(hear, arms, (draws, plan.round), **found)  # lines 6-12
        if draws.counts_noises:
            heard |= layout.sweep(noises_of_best, arms, heard, best_noises="max")[1]
        plan = plan._replace(prepared=prepare(trial, plan))
        arms, after = layout.sweep(judge, arms, (trial, plan, heard, scale), **left)  # lines 13-15
        state, lines = each(close_epoch)(trial, gaps, grid, state, plan, heard | after, scale)
        return state, arms, lines

    def active(state: State) -> Array:
        return jnp.where(each(goes_on)(trial, state, last), state.active, 0)

    arms = layout.start({"gap": gaps, **constants(draws, instance)}, draws)
    curves = each(lambda grid: blank(grid, trial.waits))(grid)
    state, curves = layout.loop(
        epoch, active, each(start_run)(trial, gaps, grid, scale), arms, curves, grid
    )
    return each(finish_run)(trial, gaps, grid, state, curves)


def plan_epoch(trial: Any, state: State, key: Array, last: Integer) -> Plan:
    """Returns the next epoch, before anything is drawn (lines 3-5)."""
    algorithm, draws, number = trial.algorithm, trial.draws, state.number + 1
    epoch = Epoch(
        number=number.astype(jnp.float64),
        active=state.active.astype(jnp.float64),
        arms=jnp.float64(draws.arms),
        agents=trial.agents,
        reporting=trial.reporting,
        horizon=trial.horizon.astype(jnp.float64),
        previous=state.pulls,
        pulls=state.pulls,
        fresh=state.pulls,
        params=trial.params,
    )
    # Epochs are cut a little past the horizon: a longer one may not fit into an int64.
    longest = state.pulls + draws.most_pulls(epoch.horizon) + 1.0
    asked = checked("pulls_per_arm", algorithm.pulls_per_arm(epoch), (), "f")
    pulls = jnp.clip(asked, state.pulls + 1.0, longest)
    epoch = epoch._replace(pulls=pulls, fresh=pulls - state.pulls)
    slots = draws.slots(epoch.active, epoch.fresh)
    runs, end = goes_on(trial, state, last), state.slot + slots
    fits = runs & (end <= trial.horizon)
    radius = checked("radius", algorithm.radius(epoch), (), "f")
    rewards, noise = keys.stream_keys(key, number, keys.REWARD, keys.NOISE)
    scale = algorithm.noise_scale(epoch) * draws.law.sensitivity
    now = Round(number, pulls, jnp.where(fits, epoch.fresh, 0.0), slots, rewards, noise, scale)
    seen, memory = draws.remember(state.memory, key, now)
    until = jnp.where(runs, jnp.minimum(end, trial.horizon), state.slot)
    return Plan(runs, fits, until, epoch, radius, now._replace(seen=seen), memory)


def hear(arms: Any, now: Any) -> tuple[Any, Any]:
    """Draws an epoch (lines 6-12).

    Returns:
        What is new of the arms, and what is found among them: the best, and who waits plays what.
    """
    draws, round_ = now
    sums, mean = draws.hear(arms, round_)
    # An agent that waits plays the arm of its own largest sum.
    return {**sums, "mean": mean}, {"best": mean, "play": sums.get("rewards", mean)}


def noises_of_best(arms: Any, heard: Any) -> tuple[Any, Any]:
    """Returns the noises in an arm's sum if it is the best, else 0; where several tie, the most."""
    return {}, {"best_noises": jnp.where(arms["mean"] == heard["best"], arms["noises"], 0.0)}


def judge(arms: Any, now: Any) -> tuple[Any, Any]:
    """Drops what is clearly worse (lines 13-15)."""
    trial, plan, heard, scale = now
    rewards, noises = trial.draws.counts(arms, plan.epoch.number, plan.round)
    mean = arms["mean"]
    seen = Heard(
        aggregate=mean if trial.elementwise else jnp.where(arms["alive"], mean, jnp.nan),
        best=heard["best"],
        rewards=rewards,
        noises=noises,
        best_noises=heard.get("best_noises", noises),
        radius=plan.radius,
        prepared=plan.prepared,
    )
    worse = checked("worse", trial.algorithm.worse(seen, plan.epoch), arms["mean"].shape, "b")
    stays = arms["alive"] & ~worse
    return {"alive": stays}, {
        "active": stays.astype(jnp.int32),
        "gaps": arrays.exact_parts(jnp.where(stays, arms["gap"], 0.0), scale),
        "optimal": (stays & (arms["gap"] == 0.0)).astype(jnp.int32),
        "chosen": jnp.where(stays, arms["mean"], -jnp.inf),
        "playing": stays,
    }


def prepare(trial: Any, plan: Plan) -> Any:
    """Returns what `Elimination.prepared` does, for all trials."""
    read = {name: getattr(plan.epoch, name) for name in trial.prepared_from}

    def one(read: dict[str, Array], radius: Scalar, params: dict[str, Scalar]) -> Any:
        fields: dict[str, Any] = dict.fromkeys(Epoch._fields, jnp.full((), jnp.nan))
        return trial.algorithm.prepared(Epoch(**fields | read | {"params": params}), radius)

    return once_for_all(one, read, plan.radius, plan.epoch.params)
