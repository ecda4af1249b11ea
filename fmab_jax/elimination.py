"""Algorithm 1 of Li and Song (arXiv 2111.01570): elimination in epochs, for a batch of trials.

Lines are the paper's. `Elimination`, in algorithms/families, states the equations: how long an
epoch is (line 4), the radius (5), which arms leave (13-14). `fmab_jax.draws` samples the sums over
agents (9-12), `fmab_jax.layouts` holds the arms. An epoch draws one sum of rewards
per arm, or one per arm and agent.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax.accounts import (
    Aggregate,
    BoundElimination,
    Plan,
    State,
    close_epoch,
    find_losses,
    finish_run,
    is_running,
    start_run,
)
from fmab_jax.accounts import Epoch as Epoch
from fmab_jax.draws import Draws
from fmab_jax.draws.base import Arms, Round, map_constants
from fmab_jax.layouts import choose
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.trials import Outcome, checked
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.curves import Line, start_curves
from fmab_jax.sampling.rare import map_distinct
from fmab_jax.sampling.segments import Ends, reward_keys
from fmab_jax.sampling.shapes import Integer, PyTree, Reals, Scalar


def run(
    trial: BoundElimination, instance: Instance, grid: Array, key: Array, last: Array
) -> Outcome:
    """Runs one seed of each of many trials; all arrays are [trial, ...].

    Args:
        trial: An `EliminationTrial`.
        instance: One instance per trial.
        grid: [trial, time] recorded slots, the last the horizon.
        key: Key of each trial's seed, or of an agent that runs alone.
        last: Slot at which a run is over.
    """
    draws, ends = trial.draws, None if instance.segments is None else instance.segments.ends
    trials, count = instance.gaps.shape
    layout = choose(trials, count, trial.elementwise)
    map_trials = layout.map_trials
    of_means = {"best": "max", **({"play": "first_max"} if trial.waits else {})}
    of_active = {"active": "sum", "gaps": "sum", "optimal": "sum", "best_arm": "first_max"}
    of_active |= {"active_mask": "by_arm"} if trial.accumulators else {}
    losses = map_trials(find_losses)(instance)

    def run_epoch(state: State, arms: Arms) -> tuple[State, Arms, tuple[Line, ...]]:
        plan = map_trials(plan_epoch)(trial, state, key, last, ends)  # lines 3-5
        arms = layout.keep(arms, plan.fits)
        # Lines 6-12.
        arms, reduced = layout.sweep(sample_epoch, arms, (draws, plan.round), **of_means)
        if draws.counts_noises:
            reduced |= layout.sweep(count_best_noises, arms, reduced, best_noises="max")[1]
        plan = plan._replace(precomputed=precompute(trial, plan))
        # Lines 13-15.
        inputs = trial, plan, reduced, losses.scale
        arms, totals = layout.sweep(eliminate_arms, arms, inputs, **of_active)
        reduced |= totals
        state, lines = map_trials(close_epoch)(trial, losses, grid, state, plan, reduced)
        return state, arms, lines

    def count_active(state: State) -> Array:
        return jnp.where(map_trials(is_running)(trial, state, last), state.active, 0)

    gap = losses.gaps if ends is None else jnp.moveaxis(losses.gaps, 1, 2)
    arms = layout.start({"gap": gap, **map_constants(draws, instance)}, draws)
    counts = draws.loses_messages
    curves = map_trials(lambda grid, ends: start_curves(grid, trial.waits, ends, counts))(
        grid, ends
    )
    state, curves = layout.loop(
        run_epoch, count_active, map_trials(start_run)(trial, losses, grid), arms, curves, grid
    )
    return map_trials(finish_run)(trial, losses, grid, state, curves)


def plan_epoch(
    trial: BoundElimination, state: State, key: Array, last: Integer, ends: Ends | None = None
) -> Plan:
    """Plans the next epoch, before anything is drawn (lines 3-5)."""
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
        mechanism=draws.mechanism,
    )
    # A longer epoch may not fit into an int64.
    longest = state.pulls + draws.bound_pulls(epoch.horizon) + 1.0
    pulls = checked("pulls_per_arm", algorithm.pulls_per_arm(epoch), (), "f")
    pulls = jnp.clip(pulls, state.pulls + 1.0, longest)
    epoch = epoch._replace(pulls=pulls, fresh=pulls - state.pulls)
    slots = draws.count_slots(epoch.active, epoch.fresh)
    runs, end = is_running(trial, state, last), state.slot + slots
    fits = runs & (end <= trial.horizon)
    rewards, noise = keys.stream_keys(key, number, keys.REWARD, keys.NOISE)
    scale = algorithm.noise_scale(epoch) * draws.law.sensitivity
    fresh = jnp.where(fits, epoch.fresh, 0.0)
    round_ = Round(number, pulls, fresh, slots, rewards, noise, scale)
    if ends is not None:
        round_ = split_round(round_, state, key, epoch.active, ends)
    reports, memory = draws.update_memory(state.memory, key, round_)
    round_ = round_._replace(reports=reports)
    round_ = round_._replace(attendance=draws.attend(key, round_))
    if round_.attendance:
        # Who is heard is known when the arms are judged, not when the epoch is planned.
        epoch = epoch._replace(reporting=jnp.maximum(round_.attendance.reports, 1.0))
    radius = checked("radius", algorithm.radius(epoch), (), "f")
    until = jnp.where(runs, jnp.minimum(end, trial.horizon), state.slot)
    return Plan(runs, fits, until, epoch, radius, round_, memory)


def split_round(round_: Round, state: State, key: Array, active: Scalar, ends: Ends) -> Round:
    """Returns the inputs of an epoch's draws with its pulls in each segment.

    Agents play the active arms in turn. A turn that a change cuts belongs to the next segment.
    """
    elapsed = jnp.clip(ends - state.slot, 0, round_.slots)
    turns = jnp.minimum((elapsed // active.astype(jnp.int64)).astype(jnp.float64), round_.fresh)
    fresh = jnp.diff(turns, prepend=0.0)
    total = state.pulls_by_segment + fresh
    return round_._replace(
        rewards=reward_keys(key, round_.number, len(ends)),
        fresh_by_segment=fresh,
        pulls_by_segment=total,
    )


def sample_epoch(arms: Arms, inputs: tuple[Draws, Round]) -> tuple[Arms, Arms]:
    """Draws an epoch (lines 6-12).

    Returns:
        The new fields of the arms, and the values to reduce over them: for the best mean, and for
        the arm that a waiting agent plays.
    """
    draws, round_ = inputs
    sums, mean = draws.aggregate(arms, round_)
    # An agent that waits plays the arm of its own largest sum.
    return {**sums, "mean": mean}, {"best": mean, "play": sums.get("rewards", mean)}


def count_best_noises(arms: Arms, reduced: Arms) -> tuple[Arms, Arms]:
    """Returns the noises in an arm's sum if it is a best arm, else 0."""
    return {}, {"best_noises": jnp.where(arms["mean"] == reduced["best"], arms["noises"], 0.0)}


def eliminate_arms(
    arms: Arms, inputs: tuple[BoundElimination, Plan, Arms, Scalar]
) -> tuple[Arms, Arms]:
    """Eliminates the arms that are clearly worse (lines 13-15)."""
    trial, plan, reduced, scale = inputs
    rewards, noises = trial.draws.count_terms(arms, plan.epoch.number, plan.round)
    mean = arms["mean"]
    aggregate = Aggregate(
        mean=mean if trial.elementwise else jnp.where(arms["alive"], mean, jnp.nan),
        best=reduced["best"],
        rewards=rewards,
        noises=noises,
        best_noises=reduced.get("best_noises", noises),
        radius=plan.radius,
        precomputed=plan.precomputed,
    )
    worse = checked("worse", trial.algorithm.worse(aggregate, plan.epoch), arms["mean"].shape, "b")
    if plan.round.attendance:
        worse &= plan.round.attendance.reports > 0.0
    stays, gap = arms["alive"] & ~worse, arms["gap"]
    stays_by_gap = stays.reshape(-1, *[1] * (gap.ndim - 1))
    now = gap if gap.ndim == 1 else gap[:, -1]
    return {"alive": stays}, {
        "active": stays.astype(jnp.int32),
        "gaps": arrays.exact_parts(jnp.where(stays_by_gap, gap, 0.0), scale),
        "optimal": (stays & (now == 0.0)).astype(jnp.int32),
        "best_arm": jnp.where(stays, arms["mean"], -jnp.inf),
        "active_mask": stays,
    }


def precompute(trial: BoundElimination, plan: Plan) -> PyTree:
    """Returns the results of `Elimination.precompute` for all trials."""
    inputs = {name: getattr(plan.epoch, name) for name in trial.precompute_fields}

    def compute(inputs: dict[str, Array], radius: Scalar, params: dict[str, Reals]) -> PyTree:
        values: dict[str, object] = {**inputs, "params": params, "mechanism": trial.draws.mechanism}
        nan = jnp.full((), jnp.nan)
        epoch = Epoch._make(values.get(name, nan) for name in Epoch._fields)
        return trial.algorithm.precompute(epoch, radius)

    return map_distinct(compute, inputs, plan.radius, plan.epoch.params)
