"""Episodes: choose an arm and a length, play it, learn the sum, choose again.

The third loop, in addition to epochs and slots. An episode takes one draw of a sum of rewards, one
noise variable and one choice, at any length: a run of T slots with growing episodes takes on the
order of K log T steps. Each agent is alone, or all agents play the same arm and a server hears the
sum over them after every episode.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.algorithms.base import Algorithm, collect_numbers
from fmab_jax.algorithms.families.private import check_unit_rewards
from fmab_jax.algorithms.families.slots import Params as Params
from fmab_jax.algorithms.families.slots import State, pick
from fmab_jax.parts import alone, exchanges
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.outputs.accumulators import (
    Accumulator,
    Stretch,
    accumulate,
    accumulate_segments,
    count_rows,
    finish_accumulators,
    make_stretch,
    start_accumulators,
)
from fmab_jax.parts.rewards import Law
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.records.problem import Problem
from fmab_jax.sampling import arrays, keys, laplace
from fmab_jax.sampling.curves import extend, step
from fmab_jax.sampling.segments import find_segment, grow, overlap, reward_keys
from fmab_jax.sampling.shapes import STATIC, Curve, Grid, Integer, PerArm, Scalar, checked


class Episode(NamedTuple):
    """The view of an episode in an algorithm's functions.

    Attributes:
        number: 1, 2, ...; in the first episode every arm is played once, in order.
        time: First slot of the episode, t = 1, 2, ...
        horizon: T.
        arms: K.
        sharing: Number of agents in a sum of rewards: M if all play together, else 1.
    """

    number: Scalar
    time: Scalar
    horizon: Scalar
    arms: Scalar
    sharing: Scalar


class Sums(NamedTuple):
    """The state of most policies, by arm: pulls, and sums of rewards with noise."""

    pulls: PerArm
    sums: PerArm


@dataclass(frozen=True)
class Episodes(Algorithm):
    """The family: a policy chooses an arm and a length, and learns from the sum of rewards.

    A policy is a frozen dataclass with these static functions of arrays. ``params`` holds the
    result of `values`, by name, as float64 scalars. Only `choose` has no default.

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
        ...     def choose(state, episode, params):
        ...         arm = jnp.argmax(state.sums / state.pulls)
        ...         return arm, state.pulls[arm] / episode.sharing
        ...
        ...     @staticmethod
        ...     def learn(state, pulls, rewards, noise, episode, params):
        ...         told = rewards + noise / params["epsilon"]
        ...         return state._replace(pulls=state.pulls + pulls, sums=state.sums + told)
        >>> problem = fmab.Problem(agents=5, arms=10)
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
        """Whether agents whose means differ are refused, because they play together."""
        return self.shared

    @staticmethod
    def init(arms: int, params: Params) -> State:
        """Returns the state before the first slot: a NamedTuple of arrays."""
        return Sums(jnp.zeros(arms), jnp.zeros(arms))

    @staticmethod
    @abstractmethod
    def choose(state: State, episode: Episode, params: Params) -> tuple[Integer, Scalar]:
        """Returns the arm of an episode, and how many slots it takes, at least 1."""
        raise NotImplementedError

    @staticmethod
    def learn(
        state: State,
        pulls: PerArm,
        rewards: PerArm,
        noise: PerArm,
        episode: Episode,
        params: Params,
    ) -> State:
        """Returns the state after an episode that was not cut at the horizon.

        Pulls, sums of rewards and Laplace(0, 1) variables are zero for arms without pulls.
        """
        return state._replace(pulls=state.pulls + pulls, sums=state.sums + rewards)

    @staticmethod
    def commit(state: State) -> Integer:
        """Returns the arm to commit to; by default the arm with most pulls."""
        return jnp.argmax(state.pulls)

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of an episode: no message, or one sum from every agent."""
        return exchanges.server(agents) if self.shared else exchanges.alone(agents)

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> EpisodesTrial:
        """Returns the trial.

        Raises:
            ValueError: If an epsilon is claimed for rewards that may lie outside [0, 1].
        """
        check_unit_rewards(problem.rewards, self.privacy(exchange)["epsilon"])
        return EpisodesTrial(
            algorithm=type(self),
            law=problem.rewards.bind()[0],
            padded_agents=1 if self.shared else padded_agents,
            shared=self.shared,
            horizon=np.int64(horizon),
            agents=np.float64(problem.agents),
            params=collect_numbers(self, exchange, horizon),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EpisodesTrial(Trial):
    """A policy of episodes bound to a problem.

    Attributes:
        algorithm: The class, for its functions. Static, as are the next three and the accumulators.
        law: Law of the rewards.
        padded_agents: Runs of a seed: rows that agents are padded to, or 1.
        shared: Whether all agents play together.
        accumulators: Accumulators that the loop computes for outputs.
        horizon: T in slots, int64.
        agents: M.
        params: The policy's values.
    """

    algorithm: type[Episodes] = field(metadata=STATIC)
    law: Law = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    shared: bool = field(metadata=STATIC)
    horizon: Array | np.int64
    agents: Array | np.float64
    params: Params
    accumulators: tuple[Accumulator, ...] = field(default=(), metadata=STATIC)

    follows_worlds = True
    accumulates = True

    @property
    def accumulator_rows(self) -> int:
        """Number of rows of an accumulator by agent."""
        return self.padded_agents

    def elements(self) -> int:
        """Returns the number of rows of arms in the loop's state of one seed."""
        return 4 * self.padded_agents

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        horizon, agents = jnp.asarray(self.horizon), jnp.asarray(self.agents)
        if self.shared:
            return _EpisodeLoop(self, instance, grid, key, horizon, agents).run()

        def run_agent(instance: Instance, key: Array, last: Array) -> Outcome:
            return _EpisodeLoop(self, instance, grid, key, last, jnp.ones_like(agents)).run()

        outcomes = jax.vmap(run_agent)(
            *alone.split_agents(instance, key, self.padded_agents, agents, horizon)
        )
        return alone.combine_outcomes(
            outcomes, len(instance.gaps), self.padded_agents, agents, self.accumulators
        )


class _EpisodeState(NamedTuple):
    """The state between episodes, and the curves up to its slot."""

    state: State
    number: Integer
    slot: Integer
    regret: Scalar
    rounds: Integer
    regret_curve: Curve
    rounds_curve: Grid
    accumulators: tuple[object, ...] = ()


class _EpisodeLoop(NamedTuple):
    """One seed of all agents together, or of one agent.

    Attributes:
        trial: The trial of the seed.
        instance: The instance of the seed.
        grid: Slots at which curves are recorded.
        key: Key of the seed's random numbers.
        last: Last slot.
        sharing: Number of agents that play together.
    """

    trial: EpisodesTrial
    instance: Instance
    grid: Grid
    key: Array
    last: Integer
    sharing: Scalar

    def run(self) -> Outcome:
        """Plays all episodes."""
        trial, gaps = self.trial, self.instance.gaps
        rows = count_rows(1, self.instance.own_gaps)
        run = lax.while_loop(lambda run: run.slot < self.last, self.play, self.play_first())
        arm = checked("commit", trial.algorithm.commit(run.state), (), "iu").astype(jnp.int32)
        gap = gaps.at[arm].get(mode="clip")
        whole = self.sharing.astype(jnp.int32)
        reported = jnp.where(run.rounds > 0, run.rounds + len(gaps) - 1, 0)
        return Outcome(
            regret=run.regret_curve,
            waiting_regret=None,
            rounds_by=run.rounds_curve,
            rounds=run.rounds,
            # The first episode reports every arm; each later one reports one arm.
            arms_reported=reported.astype(jnp.int64),
            active_arms=jnp.int32(len(gaps)),
            chosen_arm=arm,
            agents_lost=jnp.zeros_like(whole) if self.instance.segments is None else None,
            agents_worse=jnp.where(gap > 0.0, whole, 0),
            final_gap=gap,
            accumulator_values=finish_accumulators(
                trial.accumulators,
                run.accumulators,
                rows,
                len(gaps),
                len(self.grid),
                self.instance.own_gaps,
            ),
        )

    def play_first(self) -> _EpisodeState:
        """Plays every arm once, in order."""
        trial, gaps, grid = self.trial, self.instance.gaps, self.grid
        arms = len(gaps)
        if self.instance.segments is not None:
            # Slot k + 1 plays arm k.
            place = jnp.arange(arms, dtype=jnp.int32)
            gaps = self.instance.segments.gaps[self.find_segments(place), place]
        regret = self.sharing * jnp.concatenate([jnp.zeros(1), arrays.running_sum(gaps)])
        until = jnp.minimum(jnp.int64(arms), self.last)
        pulls = jnp.full(arms, self.sharing)
        draws = self.draw_first(pulls)
        state = trial.algorithm.init(arms, trial.params)
        after = trial.algorithm.learn(state, pulls, *draws, self.describe(1, 0), trial.params)
        whole = until == arms
        rounds = (whole & trial.shared).astype(jnp.int32)
        rows = count_rows(1, self.instance.own_gaps)
        accumulators = start_accumulators(trial.accumulators, rows, arms, grid)
        if trial.accumulators:

            def add_slot(
                accumulators: tuple[object, ...], arm: Array
            ) -> tuple[tuple[object, ...], None]:
                slot = jnp.minimum(arm.astype(jnp.int64), until)
                segment = None if self.instance.segments is None else self.find_segments(arm)
                stop = jnp.minimum(slot + 1, until)
                stretch = partial(self.compute_stretch, slot, stop, arm, gaps[arm], segment)
                return accumulate(trial.accumulators, accumulators, stretch, grid), None

            accumulators, _ = lax.scan(add_slot, accumulators, jnp.arange(arms, dtype=jnp.int32))
        return _EpisodeState(
            state=pick(whole, after, state),
            number=jnp.int32(1),
            slot=until,
            regret=regret[until],
            rounds=rounds,
            regret_curve=regret[jnp.minimum(grid, until)],
            rounds_curve=step(jnp.zeros(grid.shape, jnp.int32), grid, until, rounds),
            accumulators=accumulators,
        )

    def play(self, run: _EpisodeState) -> _EpisodeState:
        """Plays one episode; the policy learns nothing from one that the horizon cuts."""
        trial, grid, last, segments = self.trial, self.grid, self.last, self.instance.segments
        gaps, ends = self.instance.gaps, None
        if segments is not None:
            gaps, ends = segments.gaps, segments.ends
        arms, number = gaps.shape[-1], run.number + 1
        episode = self.describe(number, run.slot)
        arm, slots = trial.algorithm.choose(run.state, episode, trial.params)
        arm = checked("choose (the arm)", arm, (), "iu").astype(jnp.int32)
        slots = checked("choose (how long)", slots, (), "f")
        # A length past the horizon may not fit into an int64, and NaN would never end the loop.
        longest = episode.horizon + 1.0
        slots = jnp.where(jnp.isnan(slots), longest, jnp.clip(jnp.ceil(slots), 1.0, longest))
        end = run.slot + slots.astype(jnp.int64)
        until, whole = jnp.minimum(end, last), end <= last

        pulls = self.sharing * slots
        # The gap of an arm that does not exist is NaN.
        exists = (arm >= 0) & (arm < arms)
        gap = jnp.where(exists, gaps.at[..., arm].get(mode="clip"), jnp.nan)
        lane = jnp.clip(arm, 0, arms - 1).astype(jnp.uint32)[None]
        parts = None
        if ends is not None:
            parts = self.sharing * overlap(ends, run.slot, end).astype(jnp.float64)
        reward, noise = self.draw(number, lane, pulls[None], parts)
        mask = jnp.arange(arms, dtype=jnp.int32) == arm
        pulls_by_arm, sums, noises = (jnp.where(mask, x, 0.0) for x in (pulls, reward[0], noise[0]))
        after = trial.algorithm.learn(run.state, pulls_by_arm, sums, noises, episode, trial.params)

        rate = self.sharing * gap
        rounds = run.rounds + (whole & trial.shared).astype(jnp.int32)
        stretch = partial(self.compute_stretch, run.slot, until, arm, gap)
        return _EpisodeState(
            state=pick(whole, after, run.state),
            number=number,
            slot=until,
            regret=run.regret + grow(rate, run.slot, until, ends),
            rounds=rounds,
            regret_curve=extend(run.regret_curve, grid, run.slot, run.regret, rate, ends),
            rounds_curve=step(run.rounds_curve, grid, until, rounds),
            accumulators=accumulate_segments(
                trial.accumulators, run.accumulators, stretch, grid, ends
            ),
        )

    def compute_stretch(
        self, slot: Array, until: Array, arm: Array, gap: Array, segment: Array | None = None
    ) -> Stretch:
        """Returns the stretch of slots in which one arm is played, in all segments or in one."""
        share = jax.nn.one_hot(arm, len(self.instance.gaps), dtype=jnp.float64)
        own_gaps, gap, agents = self.instance.own_gaps, gap[..., None], self.sharing[None]
        if segment is not None:
            own_gaps = jax.tree.map(lambda x: x[segment], own_gaps)
        return make_stretch(slot, until, gap, share[None], agents, own_gaps, arm[None])

    def describe(self, number: Integer | int, slot: Integer | int) -> Episode:
        """Returns the view of an episode in the algorithm's functions."""
        return Episode(
            number=jnp.asarray(number).astype(jnp.float64),
            time=jnp.asarray(slot).astype(jnp.float64) + 1.0,
            horizon=jnp.asarray(self.trial.horizon).astype(jnp.float64),
            arms=jnp.float64(len(self.instance.gaps)),
            sharing=self.sharing,
        )

    def find_segments(self, place: Array) -> Array:
        """Returns the segment of the slot after each number of slots."""
        assert self.instance.segments is not None
        return find_segment(self.instance.segments.ends, place.astype(jnp.int64) + 1)

    def draw_first(self, pulls: PerArm) -> tuple[PerArm, PerArm]:
        """Draws one slot of every arm."""
        number, arm = jnp.int32(1), jnp.arange(len(pulls), dtype=jnp.uint32)
        if self.instance.segments is None:
            return self.draw(number, arm, pulls)
        segment = self.find_segments(arm)
        parameters = [x[0][segment, arm] for x in self.instance.segments.parameters]
        rewards, noise = (keys.stream_key(self.key, number, x) for x in (keys.REWARD, keys.NOISE))
        k0, k1 = (jnp.broadcast_to(word, arm.shape) for word in rewards)
        return self.trial.law.total(k0, k1, arm, pulls, *parameters), laplace.laplace(*noise, arm)

    def draw(
        self,
        number: Integer,
        arm: Array,
        pulls: Float[Array, " lane"],
        parts: Float[Array, " segment"] | None = None,
    ) -> tuple[Float[Array, " lane"], Float[Array, " lane"]]:
        """Draws sums of rewards of arms, and a Laplace(0, 1) variable for each.

        Or, with the pulls in each segment, the sum of one arm.
        """
        noise = keys.stream_key(self.key, number, keys.NOISE)
        if self.instance.segments is None or parts is None:
            rewards = keys.stream_key(self.key, number, keys.REWARD)
            parameters = [x[0][arm] for x in self.instance.parameters]
            k0, k1 = (jnp.broadcast_to(word, arm.shape) for word in rewards)
            sums = self.trial.law.total(k0, k1, arm, pulls, *parameters)
        else:
            words = reward_keys(self.key, number, len(parts))
            parameters = [x[0][:, arm[0]] for x in self.instance.segments.parameters]
            lane = jnp.broadcast_to(arm, parts.shape)
            sums = arrays.sum_in_turn(self.trial.law.total(*words, lane, parts, *parameters))[None]
        return sums, laplace.laplace(*noise, arm)
