"""Index policies: every agent pulls one arm in every slot, and may talk at the end of the slot.

The family owns the loop over slots, the rewards, the exact curves on the grid, the communications
and their cost; a policy states the state (`init`, `update`), the pulls (`choose`) and the messages
(`due`, `communicate`). One uniform per (slot, agent) makes a reward, so a seed's results depend
neither on the batch nor on the number of padding rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from fmab_jax.algorithms.base import Algorithm, collect_numbers
from fmab_jax.algorithms.families.index_trial import IndexTrial
from fmab_jax.algorithms.families.private import check_unit_rewards
from fmab_jax.algorithms.families.slots import Params, Slot, State, Tally
from fmab_jax.algorithms.families.slots import first_best as first_best
from fmab_jax.errors import format_quantity, refuse
from fmab_jax.lazy_imports import nx
from fmab_jax.parts.exchanges import Exchange, alone
from fmab_jax.parts.worlds import ContextualWorld
from fmab_jax.records.problem import Problem
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import ArmPerRow, PerRow, PerRowArm, Truth, TruthPerRowArm

MAX_HORIZON = 10**8
MAX_STEPS = 10**13
"""Most slots x rows x arms of one seed: about a day of a core."""


@dataclass(frozen=True)
class IndexPolicy(Algorithm):
    """The family: a policy states the pulls, the state and the messages of its agents.

    A policy is a frozen dataclass with some of these static functions of arrays. Only `choose` has
    no default.

    A row is an agent, or all agents if `shared`: then every agent pulls the row's arm and gets a
    separate reward, and ``pulls`` and ``rewards`` are sums over agents. ``slot`` is a `Slot`;
    ``params`` holds the result of `values`, by name, as float64 scalars. Random numbers come from
    the slot. Rows beyond the agents are padding, and no agent may depend on them. The family
    freezes the state after the horizon.

    Example:
        Every 100 slots an agent asks a neighbour for its best arm. It pulls the arm that looks best
        to it, but a random arm in every tenth slot, and the neighbour's arm five slots later. It
        only sees whether a reward is above 1/2.

        >>> from dataclasses import dataclass
        >>> from typing import NamedTuple
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import fmab_jax as fmab
        >>> from fmab_jax.algorithms.families.index import first_best
        >>> from fmab_jax.parts import graphs
        >>> from fmab_jax.parts.exchanges import PEER
        >>> class State(NamedTuple):
        ...     pulls: jnp.ndarray
        ...     sums: jnp.ndarray
        ...     advice: jnp.ndarray
        >>> @dataclass(frozen=True)
        ... class Advised(fmab.IndexPolicy):
        ...     name = "advised"
        ...     period: int = 100
        ...
        ...     def network(self, agents):
        ...         return graphs.make("ring", agents)
        ...
        ...     def exchange(self, agents):
        ...         weights = np.full(agents, 1 / agents)
        ...         return fmab.Exchange("advice", agents, agents, weights, links=((PEER, agents),))
        ...
        ...     @staticmethod
        ...     def init(rows, arms, slot, params):
        ...         zeros = jnp.zeros((rows, arms))
        ...         return State(zeros, zeros, advice=jnp.zeros(rows, jnp.int32))
        ...
        ...     @staticmethod
        ...     def release(rewards, uniforms, params):
        ...         return jnp.where(rewards > 0.5, 1.0, 0.0)
        ...
        ...     @staticmethod
        ...     def commit(state):
        ...         return first_best(state.sums / jnp.maximum(state.pulls, 1.0))
        ...
        ...     @staticmethod
        ...     def choose(state, slot, params):
        ...         best, turn = Advised.commit(state), slot.number % 10
        ...         arm = (slot.uniform(len(best))[:, 0] * slot.arms).astype(jnp.int32)
        ...         return jnp.select([turn == 0, turn == 5], [arm, state.advice], best)
        ...
        ...     @staticmethod
        ...     def due(state, slot, params):
        ...         return slot.time % params["period"] == 0
        ...
        ...     @staticmethod
        ...     def communicate(state, slot, params):
        ...         return state._replace(advice=Advised.commit(state)[slot.random_neighbour()])
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(Advised(), problem, horizon=10**3, seeds=20)
        >>> data.rounds_made.mean().item(), data.links.sel(meter="peer")[:, -1].mean().item()
        (10.0, 50.0)
    """

    counts_edges: ClassVar[bool] = False
    """Whether a message of `count_messages` is an edge of the graph, or else an agent's."""

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> State:
        """Returns the state before the first slot: a NamedTuple of arrays [row, ...]."""
        return Tally(jnp.zeros((rows, arms)), jnp.zeros((rows, arms)))

    @staticmethod
    @abstractmethod
    def choose(state: State, slot: Slot, params: Params) -> ArmPerRow:
        """Returns the arm that each row pulls; ties go to the lowest (`first_best`)."""
        raise NotImplementedError

    @staticmethod
    def update(
        state: State, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> State:
        """Returns the state after a slot; pulls and rewards are 0 for all other arms."""
        return state._replace(pulls=state.pulls + pulls, sums=state.sums + rewards)

    @staticmethod
    def release(rewards: PerRow, uniforms: PerRow, params: Params) -> PerRow:
        """Returns the version of each reward that anybody sees, even the agent itself.

        One uniform for each reward makes it random.
        """
        return rewards

    @staticmethod
    def due(state: State, slot: Slot, params: Params) -> Truth:
        """Tells, from the state after a slot, whether agents communicate at its end.

        Each communication is one round, and costs the links of the exchange.
        """
        return jnp.bool_(False)

    @staticmethod
    def communicate(state: State, slot: Slot, params: Params) -> State:
        """Returns the state after a communication."""
        return state

    @staticmethod
    def in_play(state: State) -> TruthPerRowArm:
        """Tells which arms each row may still pull."""
        return jnp.ones_like(state.pulls, bool)

    @staticmethod
    def commit(state: State) -> ArmPerRow:
        """Returns the arm that each row commits to; by default the arm with most pulls."""
        return first_best(state.pulls)

    @property
    def shared(self) -> bool:
        """Whether all agents share one row of the state, and pull the same arm."""
        return False

    def network(self, agents: int) -> nx.Graph | None:
        """Returns the graph of `Slot.neighbours`, or None."""
        return None

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a communication; by default agents are alone."""
        return alone(agents)

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the messages of a communication, each of which an absent agent may miss.

        0, the default, is for policies whose messages are not counted one by one: agents and links
        must then be present.
        """
        return 0

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> IndexTrial:
        """Returns the trial.

        Raises:
            ValueError: If there are too many slots, an epsilon is claimed for rewards that may lie
                outside [0, 1], or agents with unlike contexts share a row.
        """
        world, dimension = problem.world, 0
        if isinstance(world, ContextualWorld):
            dimension = world.dimension
            if self.shared:
                allowed = f"left out with {self.title or self.name}, pooled"
                remedy = "pooled agents pull one arm, but each has contexts of its own"
                refuse("world", world.text(), allowed, remedy)
        rows = 1 if self.shared else problem.agents
        limit = max(1, min(MAX_HORIZON, MAX_STEPS // (rows * problem.arms)))
        if horizon > limit:
            agents = format_quantity(problem.agents, "agent")
            allowed = f"at most {limit:,} with {agents} and {format_quantity(problem.arms, 'arm')}"
            refuse("horizon", horizon, allowed, f"{self.name} looks at every arm in every slot")
        check_unit_rewards(problem.rewards, self.privacy(exchange)["epsilon"])
        self._check_presence(problem, exchange)
        params = collect_numbers(self, exchange, horizon)
        presence = problem.presence
        neighbours = _list_neighbours(self.network(problem.agents), padded_agents)
        rows, algorithm = 1 if self.shared else padded_agents, type(self)
        return IndexTrial(
            algorithm=algorithm,
            law=problem.rewards.bind()[0],
            padded_agents=padded_agents,
            shared=self.shared,
            talks=algorithm.communicate is not IndexPolicy.communicate,
            releases=algorithm.release is not IndexPolicy.release,
            state_rows=_count_state_rows(
                cast(Hashable, algorithm),
                rows,
                problem.arms,
                tuple(params),
                neighbours.shape,
                dimension,
            ),
            horizon=np.int64(horizon),
            agents=np.float64(problem.agents),
            neighbours=neighbours,
            params=params,
            presence=None if presence is None else presence.bind(problem.agents, problem.rewards),
            counts_edges=self.counts_edges,
        )

    def _check_presence(self, problem: Problem, exchange: Exchange) -> None:
        """Refuses a presence that the messages of the policy cannot follow."""
        presence, title = problem.presence, self.title or self.name
        if presence is None or not presence.counts_messages:
            return
        if presence.cuts_links and problem.agents >= 2**16:
            allowed = "left out with more than 65,535 agents"
            refuse("presence", presence.text(), allowed, "links have 32-bit numbers")
        if presence.cuts_links and self.network(problem.agents) is None:
            refuse("presence", presence.text(), "for policies on a graph", "give a graph")
        if exchange.alone or not self.count_messages(exchange):
            reason = "its messages are not counted one by one"
            reason = "its agents are alone" if exchange.alone else reason
            refuse("presence", presence.text(), f"left out with {title}", reason)


def _list_neighbours(graph: nx.Graph | None, padded_agents: int) -> np.ndarray:
    """Returns each node's neighbours in ascending order, padded with -1."""
    if graph is None:
        return np.empty((0, 0), np.int32)
    neighbours = [sorted(graph[node]) for node in range(graph.number_of_nodes())]
    table = np.full((padded_agents, max(map(len, neighbours))), -1, np.int32)
    for row, nodes in zip(table, neighbours, strict=False):
        row[: len(nodes)] = nodes
    return table


@lru_cache(maxsize=1024)
def _count_state_rows(
    algorithm: type[IndexPolicy],
    rows: int,
    arms: int,
    params: tuple[str, ...],
    table: tuple[int, ...],
    dimension: int,
) -> int:
    """Returns the memory of a policy's state and its contexts, in rows of arms in float64."""

    def init() -> State:
        zero, word = jnp.float64(0.0), jnp.uint32(0)
        neighbours, words = jnp.zeros(table, jnp.int32), keys.Words(word, word)
        contexts = jnp.zeros((rows, arms, dimension)) if dimension else None
        numbers = jnp.int64(0), zero, zero, zero, zero
        slot = Slot(*numbers, neighbours, zero, words, words, contexts)
        return algorithm.init(rows, arms, slot, dict.fromkeys(params, zero))

    with jax.enable_x64(True):
        arrays = jax.tree.leaves(jax.eval_shape(init))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in arrays)
    return -(-size // (8 * arms)) + rows * dimension
