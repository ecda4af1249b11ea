"""The loop over slots: an index policy bound to a problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.families.slots import Params, Slot, State, at, pick
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.outputs.accumulators import (
    Accumulator,
    Stretch,
    accumulate_slots,
    count_rows,
    finish_accumulators,
    make_stretch,
    start_accumulators,
)
from fmab_jax.parts.presences import BoundPresence, cut_neighbours
from fmab_jax.parts.rewards import Law
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.loops import anywhere, largest, store_once
from fmab_jax.sampling.segments import find_segment
from fmab_jax.sampling.shapes import (
    STATIC,
    Curve,
    Grid,
    Integer,
    PerRow,
    PerRowArm,
    PyTree,
    Scalar,
    TruthPerAgent,
    checked,
)

if TYPE_CHECKING:
    from fmab_jax.algorithms.families.index import IndexPolicy

# Slots per block: the grid is read once a block, so that recording costs little.
_BLOCK = 32

# Only this family draws from these streams of round 0: for `choose` and `update`, `communicate` and
# `release`. `keys.LASTING` has the numbers that do not depend on the slot.
_CHOOSING, _TALKING, _RELEASING = keys.NOISE, keys.PARTICIPATION, keys.ALONE


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class IndexTrial(Trial):
    """An index policy bound to a problem.

    Attributes:
        algorithm: The class, for its functions. Static, as are the next six and the accumulators.
        law: Law of the rewards.
        padded_agents: Rows that agents are padded to.
        shared: Whether all agents share one row of the state.
        talks: Whether the policy overrides `communicate`.
        releases: Whether the policy overrides `release`.
        state_rows: Memory of the state, in rows of arms in float64.
        horizon: T in slots, int64.
        agents: M.
        neighbours: As in `Slot`.
        params: The policy's values.
        accumulators: Accumulators that the loop computes for outputs.
        presence: Which agents and links take part in a slot, and who is corrupted; or None.
        counts_edges: Whether a message is an edge of the graph, or else an agent's. Static.
    """

    algorithm: type[IndexPolicy] = field(metadata=STATIC)
    law: Law = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    shared: bool = field(metadata=STATIC)
    talks: bool = field(metadata=STATIC)
    releases: bool = field(metadata=STATIC)
    state_rows: int = field(metadata=STATIC)
    horizon: Array | np.int64
    agents: Array | np.float64
    neighbours: Array | np.ndarray
    params: Params
    accumulators: tuple[Accumulator, ...] = field(default=(), metadata=STATIC)
    presence: BoundPresence | None = None
    counts_edges: bool = field(default=False, metadata=STATIC)

    waits = False
    follows_worlds = True
    reads_contexts = True
    follows_presences = True
    accumulates = True

    @property
    def counts_messages(self) -> bool:
        """Whether an agent or a link may miss a slot, so that messages are counted one by one."""
        return self.presence is not None and self.presence.static.counts_messages

    @property
    def accumulator_rows(self) -> int:
        """Number of rows of an accumulator by agent."""
        return self.rows

    @property
    def rows(self) -> int:
        """Rows of agents in the state: 1 if all agents share it."""
        return 1 if self.shared else self.padded_agents

    def elements(self) -> int:
        """Returns the number of rows of arms in the loop: those of the state and the index.

        Batches are sized by it, so that they stay in a core's cache.
        """
        return self.state_rows + self.rows

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        return _SlotLoop(self, instance, grid, key).run()


class _BlockState(NamedTuple):
    """The state between blocks of slots, and the curves up to the block."""

    state: State
    regret: Scalar
    rounds: Integer
    regret_curve: Curve
    rounds_curve: Grid
    accumulators: tuple[object, ...] = ()
    messages: Integer | None = None
    messages_curve: Grid | None = None


class _SlotLoop(NamedTuple):
    trial: IndexTrial
    instance: Instance
    grid: Grid
    key: Array

    def run(self) -> Outcome:
        """Plays all slots."""
        trial, arms, blank = self.trial, len(self.instance.gaps), jnp.zeros(self.grid.shape)
        contexts = None
        if self.instance.contexts is not None:
            contexts = jnp.zeros((trial.rows, arms, self.instance.contexts.world.dimension))
        start = self.slot(jnp.int64(0), _CHOOSING, contexts)
        state = trial.algorithm.init(trial.rows, arms, start, trial.params)
        rows = count_rows(trial.rows, self.instance.own_gaps)
        accumulators = start_accumulators(trial.accumulators, rows, arms, self.grid)
        counts = jnp.int32(0), blank, blank.astype(jnp.int32)
        run = _BlockState(state, jnp.float64(0.0), *counts, accumulators)
        if trial.counts_messages:
            zero = jnp.int64(0)
            run = run._replace(messages=zero, messages_curve=blank.astype(jnp.int64))
        blocks = largest(-(-jnp.asarray(trial.horizon) // _BLOCK))
        # A batch runs the blocks of its longest run; `play_slot` freezes its other runs.
        block = lax.while_loop(
            lambda carry: carry[0] < blocks,
            lambda carry: (carry[0] + 1, self.play_block(*carry)),
            (jnp.zeros_like(blocks), run),
        )
        return _build_outcome(trial, self.instance, block[1])

    def slot(
        self,
        number: Integer,
        stream: int,
        contexts: Float[Array, "row arm dimension"] | None = None,
    ) -> Slot:
        """Returns the view of a slot in the policy's functions."""
        trial, agents = self.trial, jnp.asarray(self.trial.agents)
        neighbours = jnp.asarray(trial.neighbours)
        if trial.presence is not None and trial.counts_messages and neighbours.shape[0]:
            neighbours = self.cut_neighbours(number, *self.attend(number)[:1])
        return Slot(
            number=number,
            time=number.astype(jnp.float64),
            horizon=jnp.asarray(trial.horizon).astype(jnp.float64),
            agents=agents,
            sharing=agents if trial.shared else jnp.ones_like(agents),
            neighbours=neighbours,
            arms=jnp.float64(len(self.instance.gaps)),
            words=keys.stream_key(self.key, 0, stream),
            lasting_words=keys.stream_key(self.key, 0, keys.LASTING),
            contexts=contexts,
        )

    def attend(self, number: Integer) -> tuple[TruthPerAgent, TruthPerAgent]:
        """Tells which agents a slot hears, and which send."""
        bound = self.trial.presence
        assert bound is not None
        agent, occasion = self._list_agents(), bound.build_occasion(self.key, number)
        real = _mask_agents(self.trial)
        is_heard = real & bound.presence.is_heard(occasion, agent)
        return is_heard, real & bound.presence.is_sent(occasion, agent)

    def cut_neighbours(self, number: Integer, takes_part: TruthPerAgent) -> Array:
        """Returns the neighbours that each agent reaches in a slot."""
        bound = self.trial.presence
        assert bound is not None
        occasion = bound.build_occasion(self.key, number)
        neighbours = jnp.asarray(self.trial.neighbours)
        return cut_neighbours(bound.presence, occasion, neighbours, takes_part)

    def count_sent(self, number: Integer) -> Integer:
        """Returns the number of messages of a slot in which agents communicate."""
        trial, is_sent = self.trial, self.attend(number)[1]
        if not trial.neighbours.shape[0]:
            return jnp.sum(is_sent, dtype=jnp.int64)
        is_up = self.cut_neighbours(number, is_sent) >= 0
        if trial.counts_edges:
            return jnp.sum(is_up, dtype=jnp.int64) // 2
        return jnp.sum(jnp.any(is_up, axis=1), dtype=jnp.int64)

    def _list_agents(self) -> UInt32[Array, " agent"]:
        return jnp.arange(self.trial.padded_agents, dtype=jnp.uint32)

    def play_block(self, block: Integer, run: _BlockState) -> _BlockState:
        """Plays a block of slots, then records those of the grid."""
        trial, grid = self.trial, self.grid
        before = block.astype(jnp.int64) * _BLOCK
        numbers = before + 1 + jnp.arange(_BLOCK, dtype=jnp.int64)
        state, (arms, gaps, communications, messages) = lax.scan(self.play_slot, run.state, numbers)

        if gaps is None:
            gaps = _look_up_gaps(self.instance, arms, numbers)
        if trial.shared:
            rate = gaps[:, 0] * trial.agents
        else:
            rate = arrays.padded_sum(jnp.where(_mask_agents(trial)[:, None], gaps.T, 0.0))
        place = jnp.arange(_BLOCK)
        mask = place[:, None] <= place[None, :]
        regret = run.regret + arrays.pairwise_sum(jnp.where(mask, rate[:, None], 0.0))
        rounds = run.rounds + jnp.sum(
            jnp.where(mask, communications[:, None], 0), axis=0, dtype=jnp.int32
        )

        in_block = (grid > before) & (grid <= before + _BLOCK)
        position = jnp.clip(grid - before - 1, 0, _BLOCK - 1)
        if run.messages is not None and run.messages_curve is not None:
            total = run.messages + jnp.cumsum(messages)
            curve = jnp.where(in_block, total[position], run.messages_curve)
            run = run._replace(messages=total[-1], messages_curve=curve)
        return run._replace(
            state=state,
            regret=regret[-1],
            rounds=rounds[-1],
            regret_curve=jnp.where(in_block, regret[position], run.regret_curve),
            rounds_curve=jnp.where(in_block, rounds[position], run.rounds_curve),
            accumulators=self.accumulator(before, run.accumulators, arms, gaps),
        )

    def accumulator(
        self, before: Integer, accumulators: tuple[object, ...], arms: Array, gaps: Array
    ) -> tuple[object, ...]:
        """Returns the accumulators after a block of slots, one stretch per slot."""
        trial, grid = self.trial, self.grid
        if not trial.accumulators:
            return accumulators
        real = (
            jnp.asarray(trial.agents)[None]
            if trial.shared
            else _mask_agents(trial).astype(jnp.float64)
        )
        instance = self.instance
        all_arms = jnp.arange(len(instance.gaps), dtype=arms.dtype)

        def compute_stretch(slot: Integer, arm: Array, gap: PerRow) -> Stretch:
            start, stop = (jnp.minimum(x, trial.horizon) for x in (slot, slot + 1))
            share = jnp.where(arm[:, None] == all_arms[None, :], 1.0, 0.0)
            own_gaps = instance.own_gaps
            if instance.segments is not None:
                segment = find_segment(instance.segments.ends, slot + 1)
                own_gaps = jax.tree.map(lambda x: x[segment], own_gaps)
            return make_stretch(start, stop, gap, share, real, own_gaps, arm)

        slots = before + jnp.arange(_BLOCK, dtype=jnp.int64), arms, gaps
        return accumulate_slots(trial.accumulators, accumulators, compute_stretch, slots, grid)

    def play_slot(self, state: State, number: Integer) -> tuple[State, tuple[PyTree, ...]]:
        """Plays a slot.

        Returns:
            The state, the arms, their gaps if these follow from contexts, whether agents
            communicated, and the number of messages if they are counted.
        """
        trial, algorithm, params = self.trial, self.trial.algorithm, self.trial.params
        running = number <= trial.horizon
        arms = len(self.instance.gaps)
        contexts = means = gap = None
        if self.instance.contexts is not None:
            contexts, means = self.instance.contexts.draw(number, trial.rows, arms)
        slot = self.slot(number, _CHOOSING, contexts)
        arm = checked("choose", algorithm.choose(state, slot, params), (trial.rows,), "iu")

        is_heard, heard = None, slot.sharing
        if trial.shared and trial.counts_messages:
            is_heard, _ = self.attend(number)
            heard = jnp.sum(is_heard, dtype=jnp.float64)
        rewards = draw_rewards(trial, self.instance, self.key, number, arm, is_heard, means)
        if means is not None:
            exists = (arm >= 0) & (arm < arms)
            gap = jnp.where(exists, jnp.max(means, axis=1) - at(means, arm), jnp.nan)
        mask = jnp.arange(arms, dtype=jnp.int32)[None, :] == arm[:, None]
        pulls, rewards = (jnp.where(mask, x, 0.0) for x in (heard, rewards[:, None]))
        after = algorithm.update(state, pulls, rewards, slot, params)
        state = pick(running, after, state)

        due = checked("due", algorithm.due(state, slot, params), (), "b") & running
        if trial.talks:
            talking = self.slot(number, _TALKING, contexts)
            state = lax.cond(
                anywhere(due),
                lambda state: pick(due, algorithm.communicate(state, talking, params), state),
                lambda state: state,
                state,
            )
        sent: PyTree = ()
        if trial.counts_messages:
            sent = jnp.where(due, self.count_sent(number), 0)
        return state, (arm, gap, due.astype(jnp.int32), sent)


def _look_up_gaps(
    instance: Instance, arms: Int[Array, "*place"], numbers: Int[Array, " slot"] | None = None
) -> Float[Array, "*place"]:
    """Returns the gap of each arm; at slots [slot, row], or at the horizon."""
    if instance.segments is None or numbers is None:
        gaps = instance.gaps.at[arms].get(mode="promise_in_bounds")
    else:
        segment = find_segment(instance.segments.ends, numbers)[:, None]
        gaps = instance.segments.gaps.at[segment, arms].get(mode="promise_in_bounds")
    # The gap of an arm that does not exist is NaN.
    return jnp.where((arms >= 0) & (arms < instance.gaps.shape[0]), gaps, jnp.nan)


def draw_rewards(
    trial: IndexTrial,
    instance: Instance,
    key: Array,
    number: Array,
    arm: Int[Array, " row"],
    is_heard: TruthPerAgent | None = None,
    means: PerRowArm | None = None,
) -> PerRow:
    """Draws each row's reward of a slot, a sum over the agents that are heard if they share it.

    ``means`` are those of the slot if they follow from contexts.
    """
    agent = jnp.arange(trial.padded_agents, dtype=jnp.uint32)
    uniform = _draw_uniform(key, keys.REWARD, agent, number)
    arm_of_agent = jnp.broadcast_to(arm, (trial.padded_agents,))
    parameters, segments = instance.parameters, instance.segments
    if segments is not None:
        first = find_segment(segments.ends, number) * segments.gaps.shape[-1]
        arm_of_agent = first + arm_of_agent
        parameters = tuple(x.reshape(len(x), -1) for x in segments.parameters)
    if means is not None and instance.contexts is not None:
        law_values = instance.contexts.law_values
        parameters = trial.law.parameters(at(means, arm)[:, None], **law_values)
        arm_of_agent = jnp.zeros_like(arm_of_agent)
    reward = trial.law.one(uniform, *(at(x, arm_of_agent) for x in parameters))
    if trial.releases:
        chance = _draw_uniform(key, _RELEASING, agent, number)
        released = trial.algorithm.release(reward, chance, trial.params)
        reward = checked("release", released, agent.shape, "f")
    if trial.presence is not None and trial.presence.static.corrupts:
        occasion, one = trial.presence.build_occasion(key, number), jnp.ones_like(reward)
        centre = jnp.asarray(trial.presence.centre)
        reward = trial.presence.presence.distort(occasion, agent, reward, one, centre)
    if not trial.shared:
        return reward
    # Stored first, because the pairwise sum would draw rewards again for each half.
    (reward,) = store_once(
        jnp.asarray(trial.agents) >= 0,
        jnp.where(_mask_agents(trial) if is_heard is None else is_heard, reward, 0.0),
    )
    return arrays.padded_sum(reward)[None]


def _draw_uniform(key: Array, stream: int, agent: Array, number: Array) -> Array:
    return keys.uniform(*keys.stream_key(key, 0, stream), agent, number.astype(jnp.uint32))


def _mask_agents(trial: IndexTrial) -> Bool[Array, " agent"]:
    """Returns a mask of agents, without padding."""
    return jnp.arange(trial.padded_agents, dtype=jnp.float64) < trial.agents


def _build_outcome(trial: IndexTrial, instance: Instance, run: _BlockState) -> Outcome:
    shape = trial.rows, instance.gaps.shape[0]
    rows = count_rows(trial.rows, instance.own_gaps)
    reports = run.rounds.astype(jnp.int64) if run.messages is None else run.messages
    outcome = Outcome(
        regret=run.regret_curve,
        waiting_regret=None,
        rounds_by=run.rounds_curve,
        rounds=run.rounds,
        arms_reported=reports * instance.gaps.shape[0],
        active_arms=None,
        chosen_arm=None,
        agents_lost=None,
        agents_worse=None,
        final_gap=None,
        accumulator_values=finish_accumulators(
            trial.accumulators,
            run.accumulators,
            rows,
            shape[1],
            len(run.regret_curve),
            instance.own_gaps,
        ),
        messages_by=run.messages_curve,
    )
    if instance.contexts is not None:
        return outcome
    playing = checked("in_play", trial.algorithm.in_play(run.state), shape, "b")
    best = jnp.any(playing & (instance.gaps == 0.0)[None, :], axis=1)
    commit = checked("commit", trial.algorithm.commit(run.state), shape[:1], "iu").astype(jnp.int32)
    gap = _look_up_gaps(instance, commit)
    real = jnp.ones(1, bool) if trial.shared else _mask_agents(trial)
    votes = commit[:, None] == jnp.arange(shape[1], dtype=jnp.int32)[None, :]
    most = jnp.sum(votes & real[:, None], axis=0, dtype=jnp.int32)
    active = jnp.sum(playing, axis=1, dtype=jnp.int32)
    agents = jnp.asarray(trial.agents)

    whole = agents.astype(jnp.int32) if trial.shared else 1
    return outcome._replace(
        active_arms=jnp.max(jnp.where(real, active, 0)),
        chosen_arm=jnp.argmax(most).astype(jnp.int32),
        agents_lost=(
            jnp.sum(real & ~best, dtype=jnp.int32) * whole if instance.segments is None else None
        ),
        agents_worse=jnp.sum(real & (gap > 0.0), dtype=jnp.int32) * whole,
        final_gap=gap[0] if trial.shared else arrays.padded_sum(jnp.where(real, gap, 0.0)) / agents,
    )
