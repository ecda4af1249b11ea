"""Index policies: every agent pulls one arm in every slot, and may talk at the end of the slot.

The family owns the loop over slots, the rewards, the exact curves on the grid, the communications
and what they cost; a filling states what agents know (`init`, `update`), what they pull (`choose`)
and what they tell each other (`due`, `communicate`). One uniform per (slot, agent) makes a reward,
so a seed's results depend neither on the batch nor on how many rows agents are padded to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, UInt32, UInt64

from fmab_jax.algorithms.base import Algorithm, Outcome, checked
from fmab_jax.algorithms.families.private import check_unit_rewards
from fmab_jax.core import arrays, exchanges, keys
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.outputs import Gauge, Stretch, gauged, gauges_end, gauges_start
from fmab_jax.core.problems import Instance, Problem
from fmab_jax.core.rewards import Law
from fmab_jax.core.shapes import Grid, Integer, PerRow, Scalar, Table, Truth
from fmab_jax.errors import flag, refuse
from fmab_jax.later import nx

Own = dict[str, Any]
State = Any

MAX_HORIZON = 10**8
MAX_STEPS = 10**13
"""Most slots x rows x arms of one seed: about a day of a core."""

# Slots between two looks at the grid, so that recording costs little.
_BLOCK = 32
# What the compiled loop holds for a seed: copies of the state, bytes per agent and recorded slot;
# measured with `memory_analysis` (tests/algorithms/test_index.py holds the estimate to it).
_COPIES = 2
_BYTES_PER_AGENT = 400
_BYTES_PER_POINT = 48
# Streams of round 0 that only this family draws from: numbers of `choose` and `update`, of
# `communicate`, of `release`, and those that do not depend on the slot.
_CHOOSING, _TALKING, _RELEASING = keys.NOISE, keys.PARTICIPATION, keys.ALONE
_LASTING = keys.LASTING


class Slot(NamedTuple):
    """What a filling may know of a slot.

    Attributes:
        number: t = 1, 2, ..., int64; 0 in `init`.
        time: t, float64.
        horizon: T, float64.
        agents: M, float64.
        sharing: Agents whose pulls a row of the state counts: M where all share one row, else 1.
        neighbours: [agent, degree] who is beside whom, in ascending order, padded with -1; [0, 0]
            without `IndexPolicy.network`.
        arms: K, float64.
        words: Key of the slot's random numbers; see `uniform`.
        lasting_words: Key of those that are the same in every slot; see `lasting`.
    """

    number: Integer
    time: Scalar
    horizon: Scalar
    agents: Scalar
    sharing: Scalar
    neighbours: Int[Array, "agent degree"]
    arms: Scalar
    words: keys.Words
    lasting_words: keys.Words

    def uniform(self, rows: int, columns: int = 1) -> Float[Array, "row column"]:
        """Returns uniforms: the same if asked twice, others in another slot or function.

        Functions with numbers of their own are `choose`, whose numbers `update` sees, too, and
        `communicate`.
        """
        lane = keys.lanes(rows, jnp.arange(columns, dtype=jnp.uint32), columns)
        return keys.uniform(*self.words, lane, self.number.astype(jnp.uint32))

    def lasting(
        self, lane: UInt32[Array, "*place"], number: UInt32[Array, "*place"]
    ) -> Float[Array, "*place"]:
        """Returns uniforms that last: the same for the same numbers, in any slot and function.

        What is drawn once and remembered is asked for again instead, and takes no memory.

        Args:
            lane: Whose, such as row x arms + arm; it may not depend on how many rows there are.
            number: Which of the lane's, such as the count at which it was drawn first.
        """
        return keys.uniform(*self.lasting_words, lane, number)

    def own_words(self) -> keys.Words:
        """Returns a key of this slot and function alone, for draws by rejection."""
        return keys.folded(self.words, self.number)

    def random_neighbour(self) -> Int[Array, " agent"]:
        """Returns a uniformly drawn neighbour of each agent; itself where it has none."""
        rows, most = self.neighbours.shape
        itself = jnp.arange(rows, dtype=jnp.int32)
        if not most:
            return itself
        degree = jnp.sum(self.neighbours >= 0, axis=1, dtype=jnp.int32)
        drawn = (self.uniform(rows)[:, 0] * degree.astype(jnp.float64)).astype(jnp.int32)
        picked = at(self.neighbours, jnp.clip(drawn, 0, jnp.maximum(degree - 1, 0)))
        return jnp.where(degree > 0, picked, itself)

    def over_neighbours(self, hear: Callable[[Any, Integer, Array, Array], Any], start: Any) -> Any:
        """Returns what each agent has after it heard its neighbours, one by one in their order.

        Args:
            hear: Maps (what agents have so far, place, who is heard there [agent], whether there is
                anybody [agent]) to what they have then.
            start: What they have before.
        """
        there = self.neighbours >= 0
        other = jnp.maximum(self.neighbours, 0)
        if not other.shape[1]:  # one agent
            return start
        return lax.fori_loop(
            0,
            other.shape[1],
            lambda place, so_far: hear(so_far, place, other[:, place], there[:, place]),
            start,
        )

    def mix(
        self, values: Float[Array, "agent ..."], weight: Float[Array, "agent degree"]
    ) -> Float[Array, "agent ..."]:
        """Returns weighted sums over neighbours; an agent's own values get the rest of weight 1.

        Args:
            values: What everybody says.
            weight: Of each neighbour, as in `neighbours`; 0 where there is none.
        """

        def along(per_agent: Float[Array, " agent"]) -> Float[Array, "agent ..."]:
            return per_agent.reshape(-1, *(1,) * (values.ndim - 1))

        def hear(so_far: Array, place: Array, said: Array, there: Array) -> Array:
            return so_far + along(weight[:, place]) * values[said]

        own = 1.0 - jnp.sum(weight, axis=1)
        mixed: Float[Array, "agent ..."] = self.over_neighbours(hear, along(own) * values)
        return mixed


class Tally(NamedTuple):
    """What most policies know: how often an arm was pulled, and the sum of its rewards."""

    pulls: Table
    sums: Table


def first_best(values: Table) -> Int[Array, " row"]:
    """Returns each row's arm of largest value; ties go to the lowest arm."""
    top = jnp.max(values, axis=1, keepdims=True)
    position = jnp.arange(values.shape[1], dtype=jnp.float64)[None, :]
    # Two plain reductions: XLA's argmax does not vectorise on CPUs, nor do positions of half the
    # width of the values.
    first = jnp.min(jnp.where(values == top, position, values.shape[1] - 1.0), axis=1)
    return first.astype(jnp.int32)


def drawn_arm(
    among: Bool[Array, "row arm"], uniform: PerRow
) -> tuple[Int[Array, " row"], Bool[Array, " row"]]:
    """Returns a uniformly drawn arm of each row's set, and whether there is one."""
    # A set as bits: the n-th of them is found in six steps, where a running count of all arms
    # takes as long as the rest of a policy's slot.
    rows, arms = among.shape
    bits = jnp.pad(among, ((0, 0), (0, -arms % 64))).reshape(rows, -1, 64)
    place = jnp.uint64(1) << jnp.arange(64, dtype=jnp.uint64)
    words = jnp.sum(jnp.where(bits, place[None, None, :], jnp.uint64(0)), axis=2, dtype=jnp.uint64)
    upto = jnp.cumsum(_ones(words), axis=1, dtype=jnp.int32)
    count = upto[:, -1]
    left = (uniform * count.astype(jnp.float64)).astype(jnp.int32)
    left = jnp.minimum(left, jnp.maximum(count - 1, 0))
    word = jnp.minimum(jnp.sum(upto <= left[:, None], axis=1, dtype=jnp.int32), words.shape[1] - 1)
    here = at(words, word)
    left = left - (at(upto, word) - _ones(here))
    arm = 64 * word
    for width in (32, 16, 8, 4, 2, 1):
        low = _ones(here & jnp.uint64((1 << width) - 1))
        above = left >= low
        here = jnp.where(above, here >> jnp.uint64(width), here)
        left = jnp.where(above, left - low, left)
        arm = jnp.where(above, arm + width, arm)
    return jnp.where(count > 0, arm, 0), count > 0


def _ones(words: UInt64[Array, "*place"]) -> Int[Array, "*place"]:
    return lax.population_count(words).astype(jnp.int32)


def upper_bound(pulls: Table, sums: Table, width: Float[Array, ...]) -> Table:
    """Returns mean + sqrt(width / pulls), infinite for an arm that was never pulled.

    The width is one number, or [row, 1].
    """
    # Written with one division instead of two.
    return jnp.where(pulls > 0.0, (sums + jnp.sqrt(width * pulls)) / pulls, jnp.inf)


def at(values: Array, column: Int[Array, " row"]) -> Array:
    """Returns the element of each row in a column of its own; one row stands for all."""
    row = jnp.minimum(jnp.arange(column.shape[0], dtype=jnp.int32), values.shape[0] - 1)
    return values.at[row, column].get(mode="promise_in_bounds")


@dataclass(frozen=True)
class IndexPolicy(Algorithm):
    """The family: a filling states what its agents pull, and what they know and tell each other.

    A filling is a frozen dataclass with some of these static functions of arrays:

    * ``choose(state, slot, own)``: the arm that each row pulls, int32 [row]; the only one that it
      must state. Ties go to the lowest arm (`first_best`).
    * ``init(rows, arms, slot, own)``: the state, a NamedTuple of arrays whose leading axis is the
      row; by default a `Tally` of zeros.
    * ``update(state, pulls, rewards, slot, own)``: the state after a slot; ``pulls`` and
      ``rewards`` are [row, arm], zero except at what was pulled; by default they are added up.
    * ``release(rewards, uniforms, own)``: what each agent makes of its reward, both [agent], before
      anybody looks at it; by default the reward. One uniform for each makes it random.
    * ``due(state, slot, own)``: whether agents communicate at the end of this slot, from what they
      know by then; by default never. Each time counts as one round and costs the links of the
      exchange.
    * ``communicate(state, slot, own)``: the state after a communication; by default the same.
    * ``in_play(state)``: which arms a row may still pull; by default all.
    * ``commit(state)``: the arm that a row would commit to; by default the one pulled most.

    A row is an agent, or all of them where `shared`: then every agent pulls the row's arm, each
    with a reward of its own, and ``pulls`` and ``rewards`` are sums over agents. ``slot`` is a
    `Slot`; ``own`` holds what `values` returns, by name, as float64 scalars. Whatever is random
    comes from the slot. Rows beyond the agents are padding, and nothing that an agent does
    may depend on them. The family freezes the state after the horizon.

    Attributes:
        homogeneous_only: Whether agents whose means differ are refused.

    Example:
        Every 100 slots an agent asks a neighbour for its best arm. It pulls its own best arm, but
        in every tenth slot a random one, and five slots later the one it was told. Of a reward it
        sees whether it is above 1/2.

        >>> from dataclasses import dataclass
        >>> from typing import NamedTuple
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import fmab_jax as fmab
        >>> from fmab_jax.algorithms.families.index import first_best
        >>> from fmab_jax.core import graphs
        >>> from fmab_jax.core.exchanges import PEER
        >>> class Known(NamedTuple):
        ...     pulls: jnp.ndarray
        ...     sums: jnp.ndarray
        ...     advice: jnp.ndarray
        >>> @dataclass(frozen=True)
        ... class Advised(fmab.IndexPolicy):
        ...     name = "advised"
        ...     every: int = 100
        ...
        ...     def network(self, agents):
        ...         return graphs.make("ring", agents)
        ...
        ...     def exchange(self, agents):
        ...         weights = np.full(agents, 1 / agents)
        ...         return fmab.Exchange("advice", agents, agents, weights, links=((PEER, agents),))
        ...
        ...     @staticmethod
        ...     def init(rows, arms, slot, own):
        ...         nothing = jnp.zeros((rows, arms))
        ...         return Known(nothing, nothing, advice=jnp.zeros(rows, jnp.int32))
        ...
        ...     @staticmethod
        ...     def release(rewards, uniforms, own):
        ...         return jnp.where(rewards > 0.5, 1.0, 0.0)
        ...
        ...     @staticmethod
        ...     def commit(state):
        ...         return first_best(state.sums / jnp.maximum(state.pulls, 1.0))
        ...
        ...     @staticmethod
        ...     def choose(state, slot, own):
        ...         best, turn = Advised.commit(state), slot.number % 10
        ...         drawn = (slot.uniform(len(best))[:, 0] * slot.arms).astype(jnp.int32)
        ...         return jnp.select([turn == 0, turn == 5], [drawn, state.advice], best)
        ...
        ...     @staticmethod
        ...     def due(state, slot, own):
        ...         return slot.time % own["every"] == 0
        ...
        ...     @staticmethod
        ...     def communicate(state, slot, own):
        ...         return state._replace(advice=Advised.commit(state)[slot.random_neighbour()])
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(Advised(), problem, horizon=10**3, seeds=20)
        >>> data.rounds_made.mean().item(), data.links.sel(meter="peer")[:, -1].mean().item()
        (10.0, 50.0)
    """

    homogeneous_only: ClassVar[bool] = False

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, own: Own) -> State:
        """Returns what is known before the first slot."""
        return Tally(jnp.zeros((rows, arms)), jnp.zeros((rows, arms)))

    @staticmethod
    @abstractmethod
    def choose(state: State, slot: Slot, own: Own) -> Int[Array, " row"]:
        """Returns the arm that each row pulls in this slot."""
        raise NotImplementedError

    @staticmethod
    def update(state: State, pulls: Table, rewards: Table, slot: Slot, own: Own) -> State:
        """Returns what is known after the rewards of this slot."""
        return state._replace(pulls=state.pulls + pulls, sums=state.sums + rewards)

    @staticmethod
    def release(
        rewards: Float[Array, " agent"], uniforms: Float[Array, " agent"], own: Own
    ) -> Float[Array, " agent"]:
        """Returns what anybody, the agent included, sees of each agent's reward."""
        return rewards

    @staticmethod
    def due(state: State, slot: Slot, own: Own) -> Truth:
        """Tells whether agents communicate at the end of this slot.

        The state is that after the slot's reward.
        """
        return jnp.bool_(False)

    @staticmethod
    def communicate(state: State, slot: Slot, own: Own) -> State:
        """Returns what is known after a communication."""
        return state

    @staticmethod
    def in_play(state: State) -> Bool[Array, "row arm"]:
        """Tells which arms each row may still pull."""
        return jnp.ones_like(state.pulls, bool)

    @staticmethod
    def commit(state: State) -> Int[Array, " row"]:
        """Returns the arm that each row would commit to."""
        return first_best(state.pulls)

    @property
    def shared(self) -> bool:
        """Whether all agents share one row of the state, and pull the same arm."""
        return False

    def network(self, agents: int) -> nx.Graph | None:
        """Returns the graph whose neighbours `Slot` tells, if the filling needs one."""
        return None

    def exchange(self, agents: int) -> Exchange:
        """Returns what a communication costs; by default nobody hears anybody."""
        return exchanges.alone(agents)

    def bind(
        self,
        problem: Problem,
        horizon: int,
        *,
        exchange: Exchange,
        sum_agents: bool = True,
        room: int | None = None,
    ) -> IndexTrial:
        """Returns the trial; arguments as in `Algorithm.bind`.

        Raises:
            ValueError: If there are too many slots, agents differ and may not, or an epsilon is
                claimed for rewards that may lie outside [0, 1].
        """
        flag("sum_agents", sum_agents)
        if horizon > MAX_HORIZON:
            remedy = f"{self.name} steps slot by slot: give a shorter horizon"
            refuse("horizon", horizon, f"at most {MAX_HORIZON:,}", remedy)
        rows = 1 if self.shared else problem.agents
        if horizon * rows * problem.arms > MAX_STEPS:
            limit = max(1, MAX_STEPS // (rows * problem.arms))
            allowed = f"at most {limit:,} with {problem.agents:,} agents and {problem.arms:,} arms"
            refuse("horizon", horizon, allowed, f"{self.name} looks at every arm in every slot")
        if self.homogeneous_only and not problem.homogeneous:
            allowed = f"one whose agents share their means, for {self.name}"
            refuse("problem", "heterogeneous", allowed, "choose another algorithm or spread=0")
        check_unit_rewards(problem.rewards, self.privacy(exchange)["epsilon"])
        room = problem.agents if room is None else room
        rows = 1 if self.shared else room
        own = {name: np.float64(value) for name, value in self.values(exchange, horizon).items()}
        neighbours = _neighbours(self.network(problem.agents), room)
        filling: Any = type(self)
        return IndexTrial(
            filling=filling,
            law=problem.rewards.bind()[0],
            room=room,
            shared=self.shared,
            state_rows=_state_rows(filling, rows, problem.arms, tuple(own), neighbours.shape),
            horizon=np.int64(horizon),
            agents=np.float64(problem.agents),
            neighbours=neighbours,
            own=own,
        )


def _neighbours(graph: nx.Graph | None, room: int) -> np.ndarray:
    """Returns each node's neighbours in ascending order, padded with -1."""
    if graph is None:
        return np.empty((0, 0), np.int32)
    beside = [sorted(graph[node]) for node in range(graph.number_of_nodes())]
    table = np.full((room, max(map(len, beside))), -1, np.int32)
    for row, nodes in zip(table, beside, strict=False):
        row[: len(nodes)] = nodes
    return table


@lru_cache(maxsize=1024)
def _state_rows(
    filling: Any, rows: int, arms: int, own: tuple[str, ...], table: tuple[int, ...]
) -> int:
    """Returns how many rows of arms, in float64, take the memory of a filling's state."""

    def init() -> State:
        zero, word = jnp.float64(0.0), jnp.uint32(0)
        beside, words = jnp.zeros(table, jnp.int32), keys.Words(word, word)
        slot = Slot(jnp.int64(0), zero, zero, zero, zero, beside, zero, words, words)
        return filling.init(rows, arms, slot, dict.fromkeys(own, zero))

    with jax.enable_x64(True):
        leaves = jax.tree.leaves(jax.eval_shape(init))
    return -(-sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) // (8 * arms))


@partial(
    jax.tree_util.register_dataclass,
    meta_fields=["filling", "law", "room", "shared", "state_rows", "gauges"],
    data_fields=["horizon", "agents", "neighbours", "own"],
)
@dataclass(frozen=True)
class IndexTrial:
    """An index policy bound to a problem.

    Attributes:
        filling: The policy, for its functions. Static, as are the next four and the gauges.
        law: Of the rewards.
        room: Rows that agents are padded to.
        shared: All agents share one row of the state.
        state_rows: Rows of arms, in float64, that the state is worth.
        horizon: T in slots, int64.
        agents: M.
        neighbours: As in `Slot`.
        own: The policy's values.
        gauges: What is added up for outputs.
    """

    filling: type[IndexPolicy]
    law: Law
    room: int
    shared: bool
    state_rows: int
    horizon: Any
    agents: Any
    neighbours: Any
    own: dict[str, Any]
    gauges: tuple[Gauge, ...] = ()

    waits: ClassVar[bool] = False

    @property
    def gauge_rows(self) -> int:
        """How many rows a gauge by agent has."""
        return self.rows

    def gauging(self, gauges: tuple[Gauge, ...]) -> IndexTrial:
        """Returns the same trial, which adds up gauges for outputs."""
        return replace(self, gauges=gauges)

    @property
    def rows(self) -> int:
        """Rows of the state."""
        return 1 if self.shared else self.room

    def elements(self) -> int:
        """Returns how many rows of arms the loop holds for one seed: the state and the index.

        A batch of so many stays in a core's cache.
        """
        return self.state_rows + self.rows

    def bytes_per_seed(self, points: int, arms: int) -> int:
        """Returns the memory of one seed at work."""
        held = 8 * arms * (_COPIES * self.state_rows + self.rows)
        return held + self.room * _BYTES_PER_AGENT + points * _BYTES_PER_POINT

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        run = _start(self, instance, grid, key)
        blocks = largest(-(-self.horizon // _BLOCK))
        # A batch runs as many blocks as its longest run needs; its other runs stand still.
        block = lax.while_loop(
            lambda carry: carry[0] < blocks,
            lambda carry: (carry[0] + 1, _block(self, instance, grid, key, *carry)),
            (jnp.zeros_like(blocks), run),
        )
        return _outcome(self, instance, block[1])


def _over_batch(reduce: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Returns a function of a scalar that, under ``vmap``, is the same for the whole batch.

    A loop or a branch that depends on such a scalar stays one loop or branch under ``vmap``.
    """

    @custom_vmap
    def same(value: Array) -> Array:
        return value

    @same.def_vmap
    def rule(size: int, is_batched: list[bool], value: Array) -> tuple[Array, bool]:
        return same(reduce(value)), False

    return same


largest = _over_batch(lambda values: jnp.max(values, axis=0))
anywhere = _over_batch(lambda values: jnp.any(values, axis=0))


class _Run(NamedTuple):
    """What the next block of slots needs, and the curves so far."""

    state: State
    regret: Scalar
    rounds: Integer
    regret_curve: Float[Array, " time"]
    rounds_curve: Grid
    gauges: tuple[Any, ...] = ()


def _start(trial: IndexTrial, instance: Instance, grid: Grid, key: Array) -> _Run:
    arms = instance.gaps.shape[0]
    slot = _slot(trial, arms, key, jnp.int64(0), _CHOOSING)
    state = trial.filling.init(trial.rows, arms, slot, trial.own)
    blank = jnp.zeros(grid.shape)
    gauges = gauges_start(trial.gauges, trial.rows, arms, grid)
    run = _Run(state, jnp.float64(0.0), jnp.int32(0), blank, blank.astype(jnp.int32), gauges)
    return arrays.varying_like(run, jax.random.key_data(key))


def _slot(trial: IndexTrial, arms: int, key: Array, number: Integer, stream: int) -> Slot:
    agents = jnp.asarray(trial.agents)
    return Slot(
        number=number,
        time=number.astype(jnp.float64),
        horizon=jnp.asarray(trial.horizon).astype(jnp.float64),
        agents=agents,
        sharing=agents if trial.shared else jnp.ones_like(agents),
        neighbours=jnp.asarray(trial.neighbours),
        arms=jnp.float64(arms),
        words=keys.stream_key(key, 0, stream),
        lasting_words=keys.stream_key(key, 0, _LASTING),
    )


def _block(
    trial: IndexTrial, instance: Instance, grid: Grid, key: Array, block: Integer, run: _Run
) -> _Run:
    """Runs some slots, then records those that the grid asks for."""
    before = block.astype(jnp.int64) * _BLOCK
    numbers = before + 1 + jnp.arange(_BLOCK, dtype=jnp.int64)
    state, (arms, talked) = lax.scan(partial(_step, trial, instance, key), run.state, numbers)

    gaps = _gaps_of(instance, arms)
    if trial.shared:
        rate = gaps[:, 0] * trial.agents
    else:
        rate = arrays.padded_sum(jnp.where(_real(trial)[:, None], gaps.T, 0.0))
    # Sums up to each slot, in one order.
    place = jnp.arange(_BLOCK)
    upto = place[:, None] <= place[None, :]
    regret = run.regret + arrays.pairwise_sum(jnp.where(upto, rate[:, None], 0.0))
    rounds = run.rounds + jnp.sum(jnp.where(upto, talked[:, None], 0), axis=0, dtype=jnp.int32)

    inside = (grid > before) & (grid <= before + _BLOCK)
    position = jnp.clip(grid - before - 1, 0, _BLOCK - 1)
    return _Run(
        state=state,
        regret=regret[-1],
        rounds=rounds[-1],
        regret_curve=jnp.where(inside, regret[position], run.regret_curve),
        rounds_curve=jnp.where(inside, rounds[position], run.rounds_curve),
        gauges=_gauged(trial, instance, grid, before, run.gauges, arms, gaps),
    )


def _gauged(
    trial: IndexTrial,
    instance: Instance,
    grid: Grid,
    before: Integer,
    gauges: tuple[Any, ...],
    arms: Int[Array, "slot row"],
    gaps: Float[Array, "slot row"],
) -> tuple[Any, ...]:
    """Returns the gauges after a block of slots, each of which is a stretch."""
    if not trial.gauges:
        return gauges
    real = jnp.asarray(trial.agents)[None] if trial.shared else _real(trial).astype(jnp.float64)
    every = jnp.arange(instance.gaps.shape[0], dtype=arms.dtype)

    def one_slot(gauges: tuple[Any, ...], given: tuple[Array, ...]) -> tuple[Any, None]:
        slot, arm, gap = given
        start, stop = (jnp.minimum(x, trial.horizon) for x in (slot, slot + 1))
        share = jnp.where(arm[:, None] == every[None, :], 1.0, 0.0)
        now = Stretch(start, stop, gap, share, real)
        return gauged(trial.gauges, gauges, lambda: now, grid), None

    slots = before + jnp.arange(_BLOCK, dtype=jnp.int64)
    return lax.scan(one_slot, gauges, (slots, arms, gaps))[0]


def _gaps_of(instance: Instance, arms: Int[Array, "*place"]) -> Float[Array, "*place"]:
    gaps = instance.gaps.at[arms].get(mode="promise_in_bounds")
    # The gap of an arm that does not exist is NaN.
    return jnp.where((arms >= 0) & (arms < instance.gaps.shape[0]), gaps, jnp.nan)


def _step(
    trial: IndexTrial, instance: Instance, key: Array, state: State, number: Integer
) -> tuple[State, tuple[Int[Array, " row"], Integer]]:
    """One slot: choose, pull, learn, talk; returns what was pulled and whether agents talked."""
    filling, own = trial.filling, trial.own
    running = number <= trial.horizon
    arms = instance.gaps.shape[0]
    slot = _slot(trial, arms, key, number, _CHOOSING)
    arm = checked("choose", filling.choose(state, slot, own), (trial.rows,), "iu")

    rewards = rewarded(trial, instance, key, number, arm)
    pulled = jnp.arange(arms, dtype=jnp.int32)[None, :] == arm[:, None]
    after = filling.update(
        state,
        jnp.where(pulled, slot.sharing, 0.0),
        jnp.where(pulled, rewards[:, None], 0.0),
        slot,
        own,
    )
    state = _kept(running, after, state)

    due = checked("due", filling.due(state, slot, own), (), "b") & running
    if filling.communicate is not IndexPolicy.communicate:
        talking = _slot(trial, arms, key, number, _TALKING)
        state = lax.cond(
            anywhere(due),
            lambda state: _kept(due, filling.communicate(state, talking, own), state),
            lambda state: state,
            state,
        )
    return state, (arm, due.astype(jnp.int32))


def _kept(if_new: Truth, new: State, old: State) -> State:
    return jax.tree.map(lambda after, before: jnp.where(if_new, after, before), new, old)


def rewarded(
    trial: IndexTrial, instance: Instance, key: Array, number: Array, arm: Int[Array, " row"]
) -> PerRow:
    """Returns each row's reward of this slot, a sum over agents where they share it."""
    words = keys.stream_key(key, 0, keys.REWARD)
    agent = jnp.arange(trial.room, dtype=jnp.uint32)
    uniform = keys.uniform(*words, agent, number.astype(jnp.uint32))
    pulled = jnp.broadcast_to(arm, (trial.room,))
    reward = trial.law.one(uniform, *(at(x, pulled) for x in instance.parameters))
    if trial.filling.release is not IndexPolicy.release:
        words = keys.stream_key(key, 0, _RELEASING)
        chance = keys.uniform(*words, agent, number.astype(jnp.uint32))
        reward = checked(
            "release", trial.filling.release(reward, chance, trial.own), agent.shape, "f"
        )
    if not trial.shared:
        return reward
    # Rewards are stored first: else the pairwise sum would draw them anew for each half.
    (reward,) = arrays.settled(jnp.asarray(trial.agents) >= 0, jnp.where(_real(trial), reward, 0.0))
    return arrays.padded_sum(reward)[None]


def _real(trial: IndexTrial) -> Bool[Array, " agent"]:
    """Tells agents from padding."""
    return jnp.arange(trial.room, dtype=jnp.float64) < trial.agents


def _outcome(trial: IndexTrial, instance: Instance, run: _Run) -> Outcome:
    shape = trial.rows, instance.gaps.shape[0]
    playing = checked("in_play", trial.filling.in_play(run.state), shape, "b")
    best = jnp.any(playing & (instance.gaps == 0.0)[None, :], axis=1)
    commit = checked("commit", trial.filling.commit(run.state), shape[:1], "iu").astype(jnp.int32)
    gap = _gaps_of(instance, commit)
    real = jnp.ones(1, bool) if trial.shared else _real(trial)
    votes = commit[:, None] == jnp.arange(instance.gaps.shape[0], dtype=jnp.int32)[None, :]
    most = jnp.sum(votes & real[:, None], axis=0, dtype=jnp.int32)
    active = jnp.sum(playing, axis=1, dtype=jnp.int32)
    agents = jnp.asarray(trial.agents)

    def counted(rows: Bool[Array, " row"]) -> Integer:
        number = jnp.sum(real & rows, dtype=jnp.int32)
        return number * agents.astype(jnp.int32) if trial.shared else number

    return Outcome(
        regret=run.regret_curve,
        waiting_regret=None,
        rounds_by=run.rounds_curve,
        rounds=run.rounds,
        arms_reported=run.rounds.astype(jnp.int64) * instance.gaps.shape[0],
        active_arms=jnp.max(jnp.where(real, active, 0)),
        chosen_arm=jnp.argmax(most).astype(jnp.int32),
        agents_lost=counted(~best),
        agents_worse=counted(gap > 0.0),
        final_gap=gap[0] if trial.shared else arrays.padded_sum(jnp.where(real, gap, 0.0)) / agents,
        gauged=gauges_end(trial.gauges, run.gauges),
    )
