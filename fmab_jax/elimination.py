"""Algorithm 1 of Li and Song (arXiv 2111.01570): elimination in epochs, for a batch of trials.

Lines are the paper's. `fmab_jax.equations` states the equations: how long an epoch is (line 4), the
radius (5), which arms leave (13-14). `fmab_jax.draws` samples the sums over agents (9-12),
`fmab_jax.layouts` holds the arms, `fmab_jax.accounts` counts slots and regret. An epoch draws one
sum of rewards per arm, or one per arm and agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fmab_jax.accounts import Accounts, RunState, power_of_two_above
from fmab_jax.draws import Draws
from fmab_jax.draws.base import Arms, map_constants
from fmab_jax.equations import NUMBERS, Aggregate, Epoch, Equations
from fmab_jax.errors import refuse
from fmab_jax.layouts import choose
from fmab_jax.parts import alone
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.outputs import Accumulator
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.curves import Line, start_curves
from fmab_jax.sampling.distinct import map_distinct
from fmab_jax.sampling.segments import Ends, reward_keys
from fmab_jax.sampling.shapes import STATIC, Integer, PyTree, Reals, Scalar, checked


def run(
    trial: EliminationTrial, instance: Instance, grid: Array, key: Array, last: Array
) -> Outcome:
    """Runs one seed of each of many trials; all arrays are [trial, ...].

    Args:
        trial: The algorithm, bound to a problem.
        instance: One instance per trial.
        grid: [trial, time] recorded slots, the last the horizon.
        key: Key of each trial's seed, or of an agent that runs alone.
        last: Slot at which a run is over.
    """
    draws = trial.draws
    trials, count = instance.gaps.shape
    layout = choose(trials, count, trial.elementwise)
    map_trials = layout.map_trials
    of_means = {"best": "max", **({"play": "first_max"} if trial.waits else {})}
    of_active = {"active": "sum", "gaps": "sum", "optimal": "sum", "best_arm": "first_max"}
    of_active |= {"active_mask": "by_arm"} if trial.accumulators else {}
    accounts = map_trials(open_accounts)(trial, instance, grid, last)

    def run_epoch(state: RunState, arms: Arms) -> tuple[RunState, Arms, tuple[Line, ...]]:
        epoch = map_trials(plan_epoch)(trial, accounts, state, key)  # lines 3-5
        arms = layout.keep(arms, epoch.fits_horizon)
        # Lines 6-12.
        arms, reduced = layout.draw(sample_epoch, arms, (draws, epoch), **of_means)
        if draws.counts_noises:
            reduced |= layout.sweep(count_best_noises, arms, reduced, best_noises="max")[1]
        epoch = epoch._replace(precomputed=precompute(trial, epoch))
        # Lines 13-15.
        inputs = trial, epoch, reduced, accounts.scale
        arms, totals = layout.sweep(eliminate_arms, arms, inputs, **of_active)
        state, lines = map_trials(Accounts.close_epoch)(accounts, state, epoch, reduced | totals)
        return state, arms, lines

    def count_active(state: RunState) -> Array:
        return jnp.where(map_trials(Accounts.is_running)(accounts, state), state.active, 0)

    gap = accounts.gaps if accounts.ends is None else jnp.moveaxis(accounts.gaps, 1, 2)
    constants = {"gap": gap, **map_constants(draws, instance)}
    arms = layout.start(constants, draws, mean=jnp.float64(0.0))
    curves = map_trials(
        lambda grid, ends: start_curves(grid, trial.waits, ends, draws.loses_messages)
    )(grid, accounts.ends)
    start = map_trials(lambda accounts: accounts.start(draws.start_memory()))(accounts)
    state, curves = layout.loop(run_epoch, count_active, start, arms, curves, grid)
    return map_trials(Accounts.finish)(accounts, state, curves)


def open_accounts(
    trial: EliminationTrial, instance: Instance, grid: Array, last: Integer
) -> Accounts:
    """Returns the accounts of a run; arguments as in `run`."""
    segments = instance.segments
    gaps = instance.gaps if segments is None else segments.gaps
    own_gaps = instance.own_gaps if trial.accumulators else None
    return Accounts(
        waits=trial.waits,
        counts_messages=trial.draws.loses_messages,
        accumulators=trial.accumulators,
        grid=grid,
        gaps=gaps,
        ends=None if segments is None else segments.ends,
        scale=power_of_two_above(gaps),
        own_gaps=own_gaps,
        agents=trial.agents,
        is_agent=trial.draws.is_agent,
        horizon=trial.horizon,
        last=last,
        wait=trial.wait,
        budget=jnp.asarray(trial.algorithm.budget(trial.params), jnp.float64),
    )


def plan_epoch(trial: EliminationTrial, accounts: Accounts, state: RunState, key: Array) -> Epoch:
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
        params=trial.params,
        mechanism=draws.mechanism,
    )
    # A longer epoch may not fit into an int64.
    longest = state.pulls + draws.bound_pulls(epoch.horizon) + 1.0
    pulls = checked("pulls_per_arm", algorithm.pulls_per_arm(epoch), (), "f")
    pulls = jnp.clip(pulls, state.pulls + 1.0, longest)
    epoch = epoch._replace(pulls=pulls, fresh=pulls - state.pulls)
    slots = draws.count_slots(epoch.active, epoch.fresh)
    is_running, end = accounts.is_running(state), state.slot + slots
    fits_horizon = is_running & (end <= trial.horizon)
    reward_key, noise_key = keys.stream_keys(key, number, keys.REWARD, keys.NOISE)
    epoch = epoch._replace(
        is_running=is_running,
        fits_horizon=fits_horizon,
        slots=slots,
        end=jnp.where(is_running, jnp.minimum(end, trial.horizon), state.slot),
        drawn=jnp.where(fits_horizon, epoch.fresh, 0.0),
        reward_key=reward_key,
        noise_key=noise_key,
        scale=algorithm.noise_scale(epoch) * draws.law.sensitivity,
    )
    if accounts.ends is not None:
        epoch = split_epoch(epoch, state, key, accounts.ends)
    reports, memory = draws.update_memory(state.memory, key, epoch)
    epoch = epoch._replace(reports=reports, memory=memory)
    epoch = epoch._replace(attendance=draws.attend(key, epoch))
    if epoch.attendance:
        # Who is heard is known when the arms are judged, not when the epoch is planned.
        epoch = epoch._replace(reporting=jnp.maximum(epoch.attendance.reports, 1.0))
    return epoch._replace(radius=checked("radius", algorithm.radius(epoch), (), "f"))


def split_epoch(epoch: Epoch, state: RunState, key: Array, ends: Ends) -> Epoch:
    """Returns an epoch with its pulls in each segment.

    Agents play the active arms in turn. A turn that a change cuts belongs to the next segment.
    """
    elapsed = jnp.clip(ends - state.slot, 0, epoch.slots)
    turns = jnp.minimum(
        (elapsed // epoch.active.astype(jnp.int64)).astype(jnp.float64), epoch.drawn
    )
    fresh = jnp.diff(turns, prepend=0.0)
    return epoch._replace(
        reward_key=reward_keys(key, epoch.round_index, len(ends)),
        fresh_by_segment=fresh,
        pulls_by_segment=state.pulls_by_segment + fresh,
    )


def sample_epoch(arms: Arms, inputs: tuple[Draws, Epoch]) -> tuple[Arms, Arms]:
    """Draws an epoch (lines 6-12).

    Returns:
        The new fields of the arms, and the values to reduce over them: for the best mean, and for
        the arm that a waiting agent plays.
    """
    draws, epoch = inputs
    sums, mean = draws.aggregate(arms, epoch)
    # An agent that waits plays the arm of its own largest sum.
    return {**sums, "mean": mean}, {"best": mean, "play": sums.get("rewards", mean)}


def count_best_noises(arms: Arms, reduced: Arms) -> tuple[Arms, Arms]:
    """Returns the noises in an arm's sum if it is a best arm, else 0."""
    return {}, {"best_noises": jnp.where(arms["mean"] == reduced["best"], arms["noises"], 0.0)}


def eliminate_arms(
    arms: Arms, inputs: tuple[EliminationTrial, Epoch, Arms, Scalar]
) -> tuple[Arms, Arms]:
    """Eliminates the arms that are clearly worse (lines 13-15)."""
    trial, epoch, reduced, scale = inputs
    rewards, noises = trial.draws.count_terms(arms, epoch)
    mean = arms["mean"]
    aggregate = Aggregate(
        mean=mean if trial.elementwise else jnp.where(arms["alive"], mean, jnp.nan),
        best=reduced["best"],
        rewards=rewards,
        noises=noises,
        best_noises=reduced.get("best_noises", noises),
        radius=epoch.radius,
        precomputed=epoch.precomputed,
    )
    worse = checked("worse", trial.algorithm.worse(aggregate, epoch), arms["mean"].shape, "b")
    if epoch.attendance:
        worse &= epoch.attendance.reports > 0.0
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


def precompute(trial: EliminationTrial, epoch: Epoch) -> PyTree:
    """Returns the results of `Equations.precompute` for all trials."""
    inputs = {name: epoch._asdict()[name] for name in trial.precompute_fields}

    def compute(inputs: dict[str, Array], radius: Scalar, params: dict[str, Reals]) -> PyTree:
        numbers: dict[str, Any] = dict.fromkeys(NUMBERS, jnp.full((), jnp.nan)) | inputs
        epoch = Epoch(**numbers, params=params, mechanism=trial.draws.mechanism)
        return trial.algorithm.precompute(epoch, radius)

    return map_distinct(compute, inputs, epoch.radius, epoch.params)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EliminationTrial(Trial):
    """An elimination algorithm bound to a problem, which runs seeds.

    Attributes:
        algorithm: The class, for its equations.
        elementwise: Whether `worse` judges arms independently.
        precompute_fields: Fields of an epoch that `Equations.precompute` reads.
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

    algorithm: type[Equations] = field(metadata=STATIC)
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

    brief = True
    follows_worlds = True
    follows_presences = True
    runs_batches = True
    accumulates = True

    @property
    def accumulator_rows(self) -> int:
        """Rows of an accumulator by agent."""
        return len(self.draws.is_agent) if self.waits else 1

    def with_accumulators(self, accumulators: tuple[Accumulator, ...]) -> EliminationTrial:
        """Returns the trial with accumulators for outputs.

        Raises:
            ValueError: If agents split the arms and an accumulator is by agent, because
                the loop does not compute the pulls of each agent.
        """
        for accumulator in accumulators:
            if self.draws.shares_arms and accumulator.by_agent:
                allowed = "left out where agents split the arms"
                remedy = "what each agent pulls is not worked out"
                refuse("outputs", accumulator.name, allowed, remedy)
        return replace(self, accumulators=accumulators)

    def run(self, instance: Instance, grid: Array, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        batch = jax.tree.map(lambda x: jnp.asarray(x)[None], (self, instance, grid, key))
        trial, *inputs = batch
        return jax.tree.map(lambda x: x[0], trial.run_batch(*inputs))

    def run_batch(self, instance: Instance, grid: Array, key: Array) -> Outcome:
        """Runs one seed of each of many trials; this trial's arrays have a leading trial axis."""
        params = jax.vmap(self.algorithm.resolve_params)(self.params, instance)
        trial = replace(self, params=params)
        if not self.alone:
            return run(trial, instance, grid, key, self.horizon)
        split = jax.vmap(alone.split_agents, (0, 0, None, 0, 0))
        local, keys, last = split(instance, key, self.padded_agents, self.agents, self.horizon)
        trials, rows = last.shape
        trial = replace(trial, agents=jnp.ones_like(self.agents))
        trial, grid = jax.tree.map(lambda x: jnp.repeat(x, rows, axis=0), (trial, grid))
        local, keys, last = jax.tree.map(
            lambda x: x.reshape(trials * rows, *x.shape[2:]), (local, keys, last)
        )
        outcomes = run(trial, local, grid, keys, last)
        outcomes = jax.tree.map(lambda x: x.reshape(trials, rows, *x.shape[1:]), outcomes)
        combine = jax.vmap(alone.combine_outcomes, (0, None, None, 0, None))
        return combine(
            outcomes, instance.gaps.shape[1], self.padded_agents, self.agents, self.accumulators
        )

    def elements(self) -> int:
        """Returns the number of rows of arms in the loop's state of one seed."""
        return max(self.draws.rows, self.mean_rows // 6) * max(1, self.padded_agents)
