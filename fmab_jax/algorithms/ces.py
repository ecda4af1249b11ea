"""CES: agents on a graph mix their estimates after every pull, and eliminate arms together."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.base import Algorithm, collect_numbers, noiseless_ledger
from fmab_jax.algorithms.families.slots import Params, pick
from fmab_jax.errors import refuse
from fmab_jax.parameters import Choice, Real, parameter
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges import PEER, Exchange, neighbours
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.networks import FixedGraph, graph_parameter, network, weigh_edges
from fmab_jax.parts.outputs.accumulators import (
    Accumulator,
    Stretch,
    accumulate,
    count_rows,
    finish_accumulators,
    make_stretch,
    start_accumulators,
)
from fmab_jax.parts.rewards import Law
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.records.problem import Problem
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.curves import extend
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import STATIC, Curve, Grid, Integer, Record, Scalar

# Most rounds have few active arms: then the loop has no more places than these.
_FEW_ARMS = (12, 3)
# A smaller 1 - l may be a rounding error.
_LEAST_GAP = 1e-12
# A round that is never reached.
_NEVER = np.int32(2**31 - 1)


@dataclass(frozen=True)
class CES(Algorithm):
    """CES: rounds of one pull of each active arm, each followed by one exchange of estimates.

    z[i, k] is agent i's estimate of the mean of arm k over all agents. At first it is i's first
    reward of k. In the round that pulls every active arm for the tau-th time, z[i, k] becomes
    (1 - 1 / tau) sum_j W[i, j] z[j, k] + x / tau, where x is i's reward. An agent marks an arm
    whose z, before the exchange, is 2 U below its largest, with

        U = width (sqrt(log T / (M tau)) + Q / ((1 - l) (tau + 1))).

    l is the second largest absolute eigenvalue of W, and Q is 1 where all agents have the same
    degree, else sqrt(M). A mark says after which round the arm leaves: D rounds later, D being the
    diameter, so that all agents have heard of it. If all arms would leave, the first one stays.
    Regret grows evenly over the slots of a round; a round that the horizon cuts exchanges nothing.

    The source does not say whether tau in 1 / tau counts the pull of the round. Here it does: every
    reward then weighs the same. Nor does it say which W its experiments use.

    Attributes:
        graph: Who talks to whom; see `fmab_jax.parts.graphs.make`.
        weights: W. "metropolis" is 1 / (1 + the larger degree of the two), "max_degree" is 1 / (1 +
            the largest degree of all), "given" is the attribute ``weight`` of each edge of a graph
            from networkx or GraphML. An agent keeps the rest for its own estimate.
        width: Factor of U; 1 is the source's.

    Example:
        A ring of five agents has a link on each edge in every round:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.ces(graph="ring"), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="peer")[:, -1] == 5 * data.rounds_made).all())
        True
    """

    name = "ces"
    title = "CES"
    source = "Zhang et al., UAI 2025, PMLR 286"
    communication = "all neighbours, after every pull of each active arm"
    trusted = "neighbours, with estimates that hold all rewards"
    examples = ("--graph ring star complete", "--graph ring --agents 20 --spread 0.5")
    ledger = noiseless_ledger

    graph: object = graph_parameter("complete", weighted=True)
    weights: str = parameter(
        Choice(options=("metropolis", "max_degree", "given")),
        "Weights of neighbours' estimates; given: the attribute weight of the graph's edges.",
        default="metropolis",
    )
    width: float = parameter(
        Real(low=0.0, high=100.0, open_low=True),
        "Factor of the confidence radius; 1 is the source's.",
        default=1.0,
        label="factor of the radius",
        proven=Real(low=1.0, high=1.0),
    )

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of estimates on every edge, both ways."""
        return _build_exchange(self.graph, agents)

    def check_exchange(self, exchange: Exchange) -> None:
        """Refuses weights by which agents do not agree in the end."""
        measure_drift(self.graph, exchange.agents, self.weights)

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the number of edges of the graph."""
        return exchange.on(PEER.name)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds Q / (1 - l), the drift, and the diameter."""
        drift = measure_drift(self.graph, exchange.agents, self.weights)
        return {"width": self.width, "drift": drift, "diameter": float(exchange.diameter)}

    def describe(self) -> Record:
        """Returns the identity, without weights of edges that nobody reads."""
        values, graph = super().describe(), self.graph
        # A user's class may read them.
        if self.weights != "given" and isinstance(graph, FixedGraph) and "code" not in values:
            values["graph"] = replace(graph, weights=b"").plain()
        return values

    @staticmethod
    def radius(tau: Scalar, horizon: Scalar, agents: Scalar, params: Params) -> Scalar:
        """Returns U of the round that pulls every active arm for the tau-th time."""
        deviation = jnp.sqrt(jnp.log(horizon) / (agents * tau))
        return params["width"] * (deviation + params["drift"] / (tau + 1.0))

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> CESTrial:
        """Returns the trial."""
        mixing = weigh_edges(self.graph, problem.agents, self.weights)
        mixes_all = bool(np.ptp(mixing) < 1e-15)
        neighbour, weight = _list_weights(mixing, padded_agents, mixes_all)
        return CESTrial(
            algorithm=type(self),
            law=problem.rewards.bind()[0],
            padded_agents=padded_agents,
            mixes_all=mixes_all,
            horizon=np.int64(horizon),
            agents=np.float64(problem.agents),
            neighbour=neighbour,
            weight=weight,
            params=collect_numbers(self, exchange, horizon),
        )


@functools.lru_cache(maxsize=64)
def _build_exchange(graph: object, agents: int) -> Exchange:
    """Builds the exchange once per graph, because hop distances take time."""
    if isinstance(graph, str):
        # Checked first, because a graph of too many agents takes gigabytes.
        graphs.refuse_too_far(agents, graph)
    over = network(graph, agents)
    edges = over.number_of_edges()
    exchange = neighbours("consensus", agents, ((PEER, edges),), vectors=2 * edges)
    return replace(exchange, diameter=graphs.diameter(over))


@functools.lru_cache(maxsize=64)
def measure_drift(graph: object, agents: int, weights: str) -> float:
    """Returns Q / (1 - l): how far the source lets estimates lie from their mean, times tau + 1.

    Raises:
        ValueError: If estimates never agree, as where l = 1.
    """
    mixing = weigh_edges(graph, agents, weights)
    # Not from the graph: to build one of all pairs takes longer than the eigenvalues.
    degrees = set(np.count_nonzero(mixing, axis=1) - (np.diag(mixing) > 0.0))
    _, *rest = np.sort(np.linalg.eigvalsh(mixing))[::-1] if agents > 1 else (1.0, 0.0)
    second, lowest = float(rest[0]), float(rest[-1])
    if max(second, -lowest) > 1.0 - _LEAST_GAP:
        remedy = "raise them" if second > -lowest else "lower them, so that nobody swaps estimates"
        refuse("weights", weights, "weights by which all agents agree in the end", remedy)
    imbalance = 1.0 if len(degrees) == 1 else math.sqrt(agents)
    return imbalance / (1.0 - max(second, -lowest))


def _list_weights(
    mixing: Float[np.ndarray, "agent agent"], rows: int, mixes_all: bool
) -> tuple[Int[np.ndarray, "row degree"], Float[np.ndarray, "row degree"]]:
    """Returns each agent's neighbours, itself the first, and their weights; 0 where there is none.

    None are listed where all weigh the same.
    """
    others = mixing - np.diag(np.diag(mixing))
    most = 0 if mixes_all else 1 + int(np.count_nonzero(others, axis=1).max())
    neighbour, weight = np.zeros((rows, most), np.int32), np.zeros((rows, most))
    for agent in range(len(mixing) if most else 0):
        heard = np.concatenate([[agent], np.flatnonzero(others[agent])])
        neighbour[agent, : len(heard)], weight[agent, : len(heard)] = heard, mixing[agent, heard]
    return neighbour, weight


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CESTrial(Trial):
    """CES bound to a problem.

    Attributes:
        algorithm: The class, for its radius. Static, as are the next three and the accumulators.
        law: Law of the rewards.
        padded_agents: Rows that agents are padded to.
        mixes_all: Whether an exchange gives every agent the mean over all.
        horizon: T in slots, int64.
        agents: M.
        neighbour: [agent, degree] itself, then neighbours in ascending order; [agent, 0] where all
            are mixed.
        weight: [agent, degree] their weights; 0 where there is none.
        params: Width, drift and diameter.
        accumulators: Accumulators that the loop computes for outputs.
    """

    algorithm: type[CES] = field(metadata=STATIC)
    law: Law = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    mixes_all: bool = field(metadata=STATIC)
    horizon: Array | np.int64
    agents: Array | np.float64
    neighbour: Array | np.ndarray
    weight: Array | np.ndarray
    params: Params
    accumulators: tuple[Accumulator, ...] = field(default=(), metadata=STATIC)

    waits = False
    accumulates = True

    def elements(self) -> int:
        """Returns the number of rows of arms in the loop's state of one seed."""
        return 4 * self.padded_agents

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        return _Loop(self, instance, grid, key).run()


class _State(NamedTuple):
    """The state between rounds; an active arm has a place.

    Attributes:
        arm: The arm of each place.
        active: Whether it is active.
        estimate: z, by agent.
        leaves: The round after which it leaves.
        round: Completed rounds of an exchange.
        slot: Slots played.
        line: What was recorded when an arm left last.
    """

    arm: Int[Array, " place"]
    active: Bool[Array, " place"]
    estimate: Float[Array, "agent place"]
    leaves: Int[Array, " place"]
    round: Integer
    slot: Integer
    line: _Line

    @property
    def arms(self) -> Integer:
        """Number of active arms."""
        return jnp.sum(self.active, dtype=jnp.int64)


class _Line(NamedTuple):
    """Curves up to a slot, from which on the active arms have not changed.

    Attributes:
        slot: That slot.
        regret: Regret up to it.
        round: Completed rounds.
        reported: Active arms, summed over these rounds.
        regret_curve: Regret at the recorded slots.
        rounds_curve: Completed rounds at these slots.
        accumulators: States of the accumulators.
    """

    slot: Integer
    regret: Scalar
    round: Integer
    reported: Integer
    regret_curve: Curve
    rounds_curve: Grid
    accumulators: tuple[object, ...]


class _Loop(NamedTuple):
    trial: CESTrial
    instance: Instance
    grid: Grid
    key: Array

    def run(self) -> Outcome:
        """Plays all rounds, then the last arm."""
        trial, arms = self.trial, len(self.instance.gaps)
        places = tuple(x for x in _FEW_ARMS if x < arms)
        state = self.play_rounds(self.play_first(), places)
        line = self.extend_line(state, jnp.asarray(trial.horizon))
        gap, single = self.mean_gap(state), state.arms == 1
        whole = jnp.asarray(trial.agents).astype(jnp.int32)
        has_best = jnp.any(state.active & (self.instance.gaps[state.arm] == 0.0))
        return Outcome(
            regret=line.regret_curve,
            waiting_regret=None,
            rounds_by=line.rounds_curve,
            rounds=line.round,
            arms_reported=line.reported,
            active_arms=state.arms.astype(jnp.int32),
            chosen_arm=jnp.where(single, state.arm[jnp.argmax(state.active)], -1),
            agents_lost=jnp.where(has_best, 0, whole),
            agents_worse=jnp.where(single & (gap > 0.0), whole, 0),
            final_gap=gap,
            accumulator_values=finish_accumulators(
                trial.accumulators,
                line.accumulators,
                count_rows(1, self.instance.own_gaps),
                arms,
                len(self.grid),
                self.instance.own_gaps,
            ),
        )

    def play_first(self) -> _State:
        """Pulls every arm once; rewards are the first estimates."""
        trial, grid, arms = self.trial, self.grid, len(self.instance.gaps)
        arm, zero, no_round = jnp.arange(arms, dtype=jnp.int32), jnp.int64(0), jnp.int32(0)
        curves = jnp.zeros(grid.shape), jnp.zeros(grid.shape, jnp.int32)
        rows = count_rows(1, self.instance.own_gaps)
        accumulators = start_accumulators(trial.accumulators, rows, arms, grid)
        line = _Line(zero, jnp.float64(0.0), no_round, zero, *curves, accumulators)
        state = _State(
            arm=arm,
            active=jnp.ones(arms, bool),
            estimate=self.draw(arm, jnp.int32(1)),
            leaves=jnp.full(arms, _NEVER),
            round=no_round,
            slot=zero,
            line=line,
        )
        until = jnp.minimum(jnp.int64(arms), trial.horizon)
        return state._replace(slot=until, line=self.extend_line(state, until))

    def play_rounds(self, state: _State, places: tuple[int, ...]) -> _State:
        """Plays rounds while the horizon has room and there are two arms.

        Args:
            state: The state before.
            places: Numbers of places to go on with, once there are no more arms than places.
        """
        least = places[0] if places else 1

        def goes_on(state: _State) -> Array:
            return (state.slot + state.arms <= self.trial.horizon) & (state.arms > least)

        many = lax.while_loop(goes_on, self.play_round, state)
        if not places:
            return many
        # Runs that are over have no active arm among the few, so that they do not go on.
        is_over = many.arms > least
        place = jnp.argsort(~many.active, stable=True)[:least]
        few = many._replace(
            arm=many.arm[place],
            active=many.active[place] & ~is_over,
            estimate=many.estimate[:, place],
            leaves=many.leaves[place],
        )
        last = self.play_rounds(few, places[1:])
        # Who goes on from here reads the active arms and the line alone.
        active = jnp.zeros_like(many.active).at[place].set(last.active)
        return many._replace(active=pick(is_over, many.active, active), line=last.line)

    def play_round(self, state: _State) -> _State:
        """Pulls every active arm once, marks arms, exchanges estimates, and drops marked arms."""
        trial, horizon = self.trial, jnp.asarray(self.trial.horizon)
        agents, number = jnp.asarray(trial.agents), state.round + 1
        tau = number.astype(jnp.float64) + 1.0

        radius = trial.algorithm.radius(tau, horizon.astype(jnp.float64), agents, trial.params)
        estimate = jnp.where(state.active[None], state.estimate, -jnp.inf)
        deficit = jnp.max(estimate, axis=1, keepdims=True) - state.estimate
        is_behind = state.active[None] & self.mask_agents() & (deficit > 2.0 * radius)
        leaves_now = number + jnp.asarray(trial.params["diameter"]).astype(jnp.int32)
        is_marked = jnp.any(is_behind, axis=0)
        leaves = jnp.where(is_marked, jnp.minimum(state.leaves, leaves_now), state.leaves)

        share = 1.0 / tau
        mixed = arrays.rounded((1.0 - share) * self.mix(state.estimate))
        rewards = arrays.rounded(share * self.draw(state.arm, number + 1))

        slot, stays = state.slot + state.arms, state.active & (leaves > number)
        first = jnp.arange(len(stays), dtype=jnp.int64) == jnp.argmax(state.active)
        changes = jnp.any(stays != state.active)
        line = lax.cond(
            anywhere(changes),
            lambda: pick(changes, self.extend_line(state, slot), state.line),
            lambda: state.line,
        )
        return state._replace(
            active=jnp.where(jnp.any(stays), stays, first),
            estimate=mixed + rewards,
            leaves=leaves,
            round=number,
            slot=slot,
            line=line,
        )

    def extend_line(self, state: _State, until: Integer) -> _Line:
        """Returns the curves up to a slot, where the active arms have not changed since."""
        trial, grid, line, gap = self.trial, self.grid, state.line, self.mean_gap(state)
        rate, arms = trial.agents * gap, state.arms
        slots = (until - line.slot).astype(jnp.float64)

        def compute_stretch() -> Stretch:
            share = jnp.where(state.active, 1.0, 0.0) / arms.astype(jnp.float64)
            by_arm = jnp.zeros(len(self.instance.gaps)).at[state.arm].add(share)
            agents = jnp.asarray(trial.agents)[None]
            own_gaps = self.instance.own_gaps
            return make_stretch(line.slot, until, gap[None], by_arm[None], agents, own_gaps)

        # Before the first exchange, and with one arm, no round is completed.
        talks = (line.slot > 0) & (arms > 1)
        rounds = jnp.where(talks, jnp.maximum(until - line.slot, 0) // arms, 0)
        by_grid = jnp.where(talks, (grid - line.slot) // arms, 0)
        rounds_curve = line.round + jnp.clip(by_grid, 0, rounds).astype(jnp.int32)
        return _Line(
            slot=until,
            regret=line.regret + arrays.rounded(rate * slots),
            round=line.round + rounds.astype(jnp.int32),
            reported=line.reported + rounds * arms,
            regret_curve=extend(line.regret_curve, grid, line.slot, line.regret, rate),
            rounds_curve=jnp.where(grid > line.slot, rounds_curve, line.rounds_curve),
            accumulators=accumulate(trial.accumulators, line.accumulators, compute_stretch, grid),
        )

    def draw(self, arm: Int[Array, " place"], tau: Integer) -> Float[Array, "agent place"]:
        """Draws every agent's tau-th reward of some arms."""
        rows, arms = self.trial.padded_agents, len(self.instance.gaps)
        lane = keys.lanes(rows, arm.astype(jnp.uint32), arms)
        uniform = keys.uniform(*keys.stream_key(self.key, tau, keys.REWARD), lane)
        parameters = (x[:, arm] for x in self.instance.parameters)
        return jnp.broadcast_to(self.trial.law.one(uniform, *parameters), (rows, len(arm)))

    def mix(self, estimate: Float[Array, "agent place"]) -> Float[Array, "agent place"]:
        """Returns W z, in a fixed order."""
        trial = self.trial
        if trial.mixes_all:
            total = arrays.sum_in_turn(jnp.where(self.mask_agents(), estimate, 0.0))
            return jnp.broadcast_to(total / trial.agents, estimate.shape)
        neighbour, weight = jnp.asarray(trial.neighbour), jnp.asarray(trial.weight)

        def add(place: Integer, total: Array) -> Array:
            return total + arrays.rounded(weight[:, place, None] * estimate[neighbour[:, place]])

        return lax.fori_loop(0, neighbour.shape[1], add, jnp.zeros_like(estimate))

    def mask_agents(self) -> Bool[Array, "agent 1"]:
        """Returns a mask of agents, without padding."""
        agent = jnp.arange(self.trial.padded_agents, dtype=jnp.float64)
        return (agent < self.trial.agents)[:, None]

    def mean_gap(self, state: _State) -> Scalar:
        """Returns the mean gap of the active arms."""
        gaps = jnp.where(state.active, self.instance.gaps[state.arm], 0.0)
        return arrays.padded_sum(gaps) / state.arms.astype(jnp.float64)
