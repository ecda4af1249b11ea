"""Episodes: choose an arm, play it for a while known beforehand, learn the sum, choose again.

The third loop beside epochs and slots. An episode takes one draw of a sum of rewards, one variable
of noise, and one look at the arms, however long it is: a run of T slots in episodes that grow takes
of the order of K log T steps. Each agent is alone, or all play the same arm and a server hears the
sum over them after every episode.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.algorithms.base import Algorithm, Outcome, checked, collect_numbers
from fmab_jax.algorithms.families import alone
from fmab_jax.algorithms.families.private import check_unit_rewards
from fmab_jax.core import arrays, exchanges, keys, laplace
from fmab_jax.core.curves import extend, step
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import Instance
from fmab_jax.core.outputs import Gauge, Stretch, gauged, gauges_end, gauges_start
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Law
from fmab_jax.core.shapes import STATIC, Grid, Integer, PerArm, Scalar, Truth
from fmab_jax.errors import flag

Own = dict[str, Any]
State = Any


class Episode(NamedTuple):
    """An episode, as a filling sees it.

    Attributes:
        number: 1 is the first one, in which every arm is played once, in order.
        time: Its first slot, t = 1, 2, ...
        horizon: T.
        arms: K.
        sharing: Agents whose rewards a sum adds up: M where all play together, else 1.
    """

    number: Scalar
    time: Scalar
    horizon: Scalar
    arms: Scalar
    sharing: Scalar


class Sums(NamedTuple):
    """The state of most policies, by arm: its pulls, and the sum of their rewards with noise."""

    pulls: PerArm
    sums: PerArm


@dataclass(frozen=True)
class Episodes(Algorithm):
    """The family: a filling states which arm is played for how long, and what is learned of it.

    A filling is a frozen dataclass with these static functions of arrays. ``own`` holds what
    `values` returns, by name, as float64 scalars. `choose` is the only one that it must state.

    Example:
        All agents play the best arm until its pulls have doubled. A server hears noisy sums.

        >>> from dataclasses import dataclass
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> @dataclass(frozen=True)
        ... class Doubling(fmab.Episodes):
        ...     name = "doubling"
        ...     epsilon: float = 1.0
        ...     shared = True
        ...
        ...     def privacy(self, exchange):
        ...         return {"epsilon": self.epsilon, "epsilon_message": self.epsilon}
        ...
        ...     @staticmethod
        ...     def choose(state, episode, own):
        ...         arm = jnp.argmax(state.sums / state.pulls)
        ...         return arm, state.pulls[arm] / episode.sharing
        ...
        ...     @staticmethod
        ...     def learn(state, pulls, rewards, noise, episode, own):
        ...         told = rewards + noise / own["epsilon"]
        ...         return state._replace(pulls=state.pulls + pulls, sums=state.sums + told)
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(Doubling(), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
    """

    @property
    def shared(self) -> bool:
        """Whether all agents play the same arm, and a server hears the sum over them."""
        return False

    @property
    def homogeneous_only(self) -> bool:
        """Whether agents whose means differ are refused: those that play together."""
        return self.shared

    @staticmethod
    def init(arms: int, own: Own) -> State:
        """Returns the state before the first slot: a NamedTuple of arrays."""
        return Sums(jnp.zeros(arms), jnp.zeros(arms))

    @staticmethod
    @abstractmethod
    def choose(state: State, episode: Episode, own: Own) -> tuple[Integer, Scalar]:
        """Returns the arm of an episode, and how many slots it takes, at least 1."""
        raise NotImplementedError

    @staticmethod
    def learn(
        state: State, pulls: PerArm, rewards: PerArm, noise: PerArm, episode: Episode, own: Own
    ) -> State:
        """Returns the state after an episode that was not cut at the horizon.

        Pulls of each arm, the sum of its rewards, and a Laplace(0, 1) variable are zero where
        nothing was pulled.
        """
        return state._replace(pulls=state.pulls + pulls, sums=state.sums + rewards)

    @staticmethod
    def commit(state: State) -> Integer:
        """Returns the arm that is committed to; by default the one pulled most."""
        return jnp.argmax(state.pulls)

    def exchange(self, agents: int) -> Exchange:
        """Returns what an episode's message costs: nothing, or one sum from every agent."""
        return exchanges.server(agents) if self.shared else exchanges.alone(agents)

    def bind(
        self,
        problem: Problem,
        horizon: int,
        *,
        exchange: Exchange,
        sum_agents: bool = True,
        room: int | None = None,
    ) -> EpisodesTrial:
        """Returns the trial; arguments as in `Algorithm.bind`.

        Raises:
            ValueError: If agents that play together differ, or an epsilon is claimed for rewards
                that may lie outside [0, 1].
        """
        if self.homogeneous_only:
            problem.check_homogeneous(f"{self.name} over a sum")
        check_unit_rewards(problem.rewards, self.privacy(exchange)["epsilon"])
        flag("sum_agents", sum_agents)
        room = problem.agents if room is None else room
        return EpisodesTrial(
            filling=type(self),
            law=problem.rewards.bind()[0],
            room=1 if self.shared else room,
            shared=self.shared,
            horizon=np.int64(horizon),
            agents=np.float64(problem.agents),
            own=collect_numbers(self, exchange, horizon),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EpisodesTrial:
    """A policy of episodes bound to a problem.

    Attributes:
        filling: The policy, for its functions. Static, as are the next three and the gauges.
        law: Of the rewards.
        room: Runs of a seed: rows that agents are padded to, or 1.
        shared: All agents play together.
        gauges: What is added up for outputs.
        horizon: T in slots, int64.
        agents: M.
        own: The policy's values.
    """

    filling: type[Episodes] = field(metadata=STATIC)
    law: Law = field(metadata=STATIC)
    room: int = field(metadata=STATIC)
    shared: bool = field(metadata=STATIC)
    horizon: Any
    agents: Any
    own: dict[str, Any]
    gauges: tuple[Gauge, ...] = field(default=(), metadata=STATIC)

    @property
    def gauge_rows(self) -> int:
        """How many rows a gauge by agent has."""
        return self.room

    def gauging(self, gauges: tuple[Gauge, ...]) -> EpisodesTrial:
        """Returns the same trial, which adds up gauges for outputs."""
        return replace(self, gauges=gauges)

    def elements(self) -> int:
        """Returns how many rows of arms the loop holds for one seed."""
        return 4 * self.room

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        horizon, agents = jnp.asarray(self.horizon), jnp.asarray(self.agents)
        if self.shared:
            return _run(self, instance, grid, key, horizon, agents)
        local, own, last = alone.each(instance, key, self.room, agents, horizon)
        run = jax.vmap(partial(_run, self), (0, None, 0, 0, None))
        each = run(local, grid, own, last, jnp.ones_like(agents))
        arms = instance.gaps.shape[0]
        return alone.together(each, arms, self.room, agents, self.gauges)


class _Run(NamedTuple):
    """The state between episodes, and the curves so far."""

    state: State
    number: Integer
    slot: Integer
    regret: Scalar
    rounds: Integer
    regret_curve: Float[Array, " time"]
    rounds_curve: Grid
    gauges: tuple[Any, ...] = ()


def _run(
    trial: EpisodesTrial, instance: Instance, grid: Grid, key: Array, last: Integer, sharing: Scalar
) -> Outcome:
    """Runs one seed of all agents together, or one agent's."""
    arms = instance.gaps.shape[0]
    start = _first(trial, instance, grid, key, last, sharing)
    run = lax.while_loop(
        lambda run: run.slot < last,
        lambda run: _episode(trial, instance, grid, key, last, sharing, run),
        start,
    )
    chosen = checked("commit", trial.filling.commit(run.state), (), "iu").astype(jnp.int32)
    gap = instance.gaps.at[chosen].get(mode="clip")
    whole = sharing.astype(jnp.int32)
    return Outcome(
        regret=run.regret_curve,
        waiting_regret=None,
        rounds_by=run.rounds_curve,
        rounds=run.rounds,
        # The first episode reports every arm; each later one reports one arm.
        arms_reported=jnp.where(run.rounds > 0, run.rounds + arms - 1, 0).astype(jnp.int64),
        active_arms=jnp.int32(arms),
        chosen_arm=chosen,
        agents_lost=jnp.zeros_like(whole),
        agents_worse=jnp.where(gap > 0.0, whole, 0),
        final_gap=gap,
        gauged=gauges_end(trial.gauges, run.gauges, 1, arms, len(grid)),
    )


def _played(
    instance: Instance, slot: Array, until: Array, arm: Array, gap: Array, sharing: Scalar
) -> Stretch:
    """Returns the slots in which all of a run play one arm."""
    share = jax.nn.one_hot(arm, instance.gaps.shape[0], dtype=jnp.float64)
    return Stretch(slot, until, gap[None], share[None], sharing[None])


def _first(
    trial: EpisodesTrial, instance: Instance, grid: Grid, key: Array, last: Integer, sharing: Scalar
) -> _Run:
    """Plays every arm once, in order."""
    arms = instance.gaps.shape[0]
    gaps = jnp.concatenate([jnp.zeros(1), arrays.running_sum(instance.gaps)])
    until = jnp.minimum(jnp.int64(arms), last)
    whole = until == arms
    every = jnp.arange(arms, dtype=jnp.uint32)
    pulled = jnp.full(arms, sharing)
    rewards, noise = _drawn(trial, instance, key, jnp.int32(1), every, pulled)
    state = trial.filling.init(arms, trial.own)
    now = _now(trial, instance, 1, 0, sharing)
    after = trial.filling.learn(state, pulled, rewards, noise, now, trial.own)
    state = _kept(whole, after, state)
    rounds = (whole & trial.shared).astype(jnp.int32)
    at = jnp.minimum(grid, until)
    gauges = gauges_start(trial.gauges, 1, arms, grid)
    if trial.gauges:

        def one_slot(gauges: tuple[Any, ...], arm: Array) -> tuple[tuple[Any, ...], None]:
            slot = jnp.minimum(arm.astype(jnp.int64), until)
            more = jnp.minimum(slot + 1, until), arm, instance.gaps[arm], sharing
            now = partial(_played, instance, slot, *more)
            return gauged(trial.gauges, gauges, now, grid), None

        gauges, _ = lax.scan(one_slot, gauges, jnp.arange(arms, dtype=jnp.int32))
    return _Run(
        state=state,
        number=jnp.int32(1),
        slot=until,
        regret=sharing * gaps[until],
        rounds=rounds,
        regret_curve=sharing * gaps[at],
        rounds_curve=step(jnp.zeros(grid.shape, jnp.int32), grid, until, rounds),
        gauges=gauges,
    )


def _episode(
    trial: EpisodesTrial,
    instance: Instance,
    grid: Grid,
    key: Array,
    last: Integer,
    sharing: Scalar,
    run: _Run,
) -> _Run:
    """One episode; cut at the horizon, nothing is learned of it."""
    arms = instance.gaps.shape[0]
    number = run.number + 1
    now = _now(trial, instance, number, run.slot, sharing)
    arm, slots = trial.filling.choose(run.state, now, trial.own)
    arm = checked("choose (the arm)", arm, (), "iu").astype(jnp.int32)
    slots = checked("choose (how long)", slots, (), "f")
    # A length past the horizon may not fit into an int64, and NaN would never end the loop.
    longest = now.horizon + 1.0
    slots = jnp.where(jnp.isnan(slots), longest, jnp.clip(jnp.ceil(slots), 1.0, longest))
    end = run.slot + slots.astype(jnp.int64)
    until, whole = jnp.minimum(end, last), end <= last

    pulls = sharing * slots
    # The gap of an arm that does not exist is NaN.
    there = (arm >= 0) & (arm < arms)
    gap = jnp.where(there, instance.gaps.at[arm].get(mode="clip"), jnp.nan)
    one = jnp.clip(arm, 0, arms - 1).astype(jnp.uint32)[None]
    reward, noise = _drawn(trial, instance, key, number, one, pulls[None])
    played = jnp.arange(arms, dtype=jnp.int32) == arm
    pulled, rewards, noises = (jnp.where(played, x, 0.0) for x in (pulls, reward[0], noise[0]))
    after = trial.filling.learn(run.state, pulled, rewards, noises, now, trial.own)

    rate = sharing * gap
    rounds = run.rounds + (whole & trial.shared).astype(jnp.int32)
    return _Run(
        state=_kept(whole, after, run.state),
        number=number,
        slot=until,
        regret=run.regret + arrays.rounded(rate * (until - run.slot).astype(jnp.float64)),
        rounds=rounds,
        regret_curve=extend(run.regret_curve, grid, run.slot, run.regret, rate),
        rounds_curve=step(run.rounds_curve, grid, until, rounds),
        gauges=gauged(
            trial.gauges,
            run.gauges,
            lambda: _played(instance, run.slot, until, arm, gap, sharing),
            grid,
        ),
    )


def _now(
    trial: EpisodesTrial, instance: Instance, number: Any, slot: Any, sharing: Scalar
) -> Episode:
    return Episode(
        number=jnp.asarray(number).astype(jnp.float64),
        time=jnp.asarray(slot).astype(jnp.float64) + 1.0,
        horizon=jnp.asarray(trial.horizon).astype(jnp.float64),
        arms=jnp.float64(instance.gaps.shape[0]),
        sharing=sharing,
    )


def _kept(if_new: Truth, new: State, old: State) -> State:
    return jax.tree.map(lambda after, before: jnp.where(if_new, after, before), new, old)


def _drawn(
    trial: EpisodesTrial,
    instance: Instance,
    key: Array,
    number: Integer,
    arm: Array,
    pulls: Float[Array, " lane"],
) -> tuple[Float[Array, " lane"], Float[Array, " lane"]]:
    """Returns sums of rewards of some arms, and a Laplace(0, 1) variable for each."""
    words = keys.stream_key(key, number, keys.REWARD)
    disturbing = keys.stream_key(key, number, keys.NOISE)
    own = [x[0][arm] for x in instance.parameters]
    k0, k1 = (jnp.broadcast_to(word, arm.shape) for word in words)
    rewards = trial.law.total(k0, k1, arm, pulls, *own)
    return rewards, laplace.laplace(*disturbing, arm)
