"""The one elimination loop, and the paper's algorithms as bindings of rules to it.

An algorithm explores its active arms equally for an epoch, hears a noisy mean of every arm through
an *exchange*, drops the arms that are clearly worse, and plays the last one until the horizon
(Algorithm 1 of arXiv 2111.01570). Who is heard, how long agents wait and what links are built is
all in the exchange; the loop never looks inside a graph.

`run_seed` is a pure function of one seed. It never draws a single pull: an epoch needs one binomial
sum per (agent, arm), or per arm where agents sum out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.families import schedule
from fmab_jax.core import arrays, exchanges, graphs, keys, samplers
from fmab_jax.core.curves import extend, step
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.problems import Law, Problem, draw_instance
from fmab_jax.errors import choice, count, privacy, real, refuse

# Largest round budget: with arms that never separate, a run makes this many epochs.
MAX_ROUNDS = 10**5


class _Unset:
    """Marks an argument nobody gave, where None means something."""

    def __repr__(self) -> str:
        return "<not given>"


_UNSET = _Unset()


class Shape(NamedTuple):
    """Everything a compilation depends on, besides the lengths of its arrays.

    Attributes:
        law: The problem's static part.
        alone: Every agent runs the loop by itself, with nobody to hear.
        agents: Agents M where their number shapes an array, else 0.
        sum_rewards: Only the agents' total reward of an arm is drawn.
        sum_noise: Only the agents' total noise on an arm is drawn.
        partial: Reporting agents are drawn anew each round.
        waits: Agents exploit their local best while messages travel.
    """

    law: Law
    alone: bool
    agents: int
    sum_rewards: bool
    sum_noise: bool
    partial: bool
    waits: bool


class Rule(NamedTuple):
    """The values an algorithm is run with; traced, so that another value compiles nothing.

    Attributes:
        horizon: T in slots, int64.
        agents: M, as float64.
        reporting: N, the agents heard in a round, as float64.
        epsilon: Privacy parameter; infinity for no noise.
        rounds: Round budget R; infinity for none.
        gap: Smallest gap that the budgeted schedule is built for; NaN for the instance's own.
        wait: Slots from an epoch's end to its aggregate.
        weights: [agent] weights of the aggregate, or [0] where all agents weigh the same.
    """

    horizon: Any
    agents: Any
    reporting: Any
    epsilon: Any
    rounds: Any
    gap: Any
    wait: Any
    weights: Any


class Outcome(NamedTuple):
    """What the outside needs of one seed's run.

    Attributes:
        regret: [time] cumulative pseudo-regret, summed over agents.
        exploitation_regret: [time] the part of it collected in waiting slots.
        rounds_by: [time] completed communication rounds.
        rounds: Completed rounds at the horizon.
        active_arms: Arms still in play at the horizon.
        chosen_arm: The arm played at the horizon, -1 while still exploring.
        agents_lost: Agents whose active set holds no best arm at the horizon.
    """

    regret: Float[Array, " time"]
    exploitation_regret: Float[Array, " time"]
    rounds_by: Int[Array, " time"]
    rounds: Int[Array, ""]
    active_arms: Int[Array, ""]
    chosen_arm: Int[Array, ""]
    agents_lost: Int[Array, ""]


class _Arms(NamedTuple):
    """The active arms and what is known of them, in ascending order of arm.

    Attributes:
        arm: Identity; decides the arm's random numbers.
        alive: Whether the column is an active arm.
        gap: The arm's gap.
        mean: Bernoulli means, one row where agents share them.
        successes: Sum of rewards so far, by agent or in total.
        noise: Sum of the Laplace noise so far, by agent or in total.
    """

    arm: UInt32[Array, " arm"]
    alive: Bool[Array, " arm"]
    gap: Float[Array, " arm"]
    mean: Float[Array, "row arm"]
    successes: Float[Array, "agent arm"]
    noise: Float[Array, "heard arm"]


class _State(NamedTuple):
    """What the next epoch needs."""

    epoch: Int[Array, ""]
    slot: Int[Array, ""]
    pulls: Float[Array, ""]
    active: Int[Array, ""]
    chosen: Int[Array, ""]
    chosen_gap: Float[Array, ""]
    lost: Bool[Array, ""]
    rounds: Int[Array, ""]
    regret: Float[Array, ""]
    exploitation: Float[Array, ""]
    regret_curve: Float[Array, " time"]
    exploitation_curve: Float[Array, " time"]
    rounds_curve: Int[Array, " time"]
    arms: _Arms


def widths(arms: int) -> tuple[int, ...]:
    """Returns the array widths the loop steps through as arms leave: K, ..., 2.

    A width is left as soon as the active arms fit the next, so that late epochs of a seed, with
    two or three arms, do not pay for all K.
    """
    steps = [arms]
    while steps[-1] > 20:
        steps.append(math.ceil(steps[-1] / 5))
    return tuple(steps)


def run_seed(
    shape: Shape,
    rule: Rule,
    parameters: dict[str, Any],
    grid: Int[Array, " time"],
    root_seed: UInt32[Array, ""],
    seed: UInt32[Array, ""],
) -> Outcome:
    """Runs one seed; pure, for use under ``jit`` and ``vmap``.

    Args:
        shape: Static.
        rule: The algorithm's values.
        parameters: `Problem.parameters`.
        grid: Slots at which the curves are wanted, increasing, the last the horizon.
        root_seed: Selects the whole experiment's randomness.
        seed: Selects the trial's; nothing else does.
    """
    key = keys.seed_key(root_seed, seed)
    instance = draw_instance(shape.law, parameters, key)
    gap = jnp.where(jnp.isnan(rule.gap), instance.smallest_gap, rule.gap)
    rule = rule._replace(gap=gap)
    if not shape.alone:
        return _run(shape, rule, instance.means, instance.gaps, grid, key)

    def one_agent(agent: Array) -> Outcome:
        row = agent if shape.law.rows > 1 else agent * 0
        means = lax.dynamic_slice_in_dim(instance.means, row, 1)
        own_key = keys.agent_key(key, agent)
        return _run(shape, rule, means, instance.gaps, grid, own_key)

    each = jax.vmap(one_agent)(jnp.arange(shape.agents))
    playing = jnp.sum(jax.nn.one_hot(each.chosen_arm, shape.law.arms, dtype=jnp.int32), axis=0)
    exploring = shape.agents - jnp.sum(playing)
    most = jnp.argmax(playing).astype(jnp.int32)
    return Outcome(
        regret=arrays.pairwise_sum(each.regret),
        exploitation_regret=arrays.pairwise_sum(each.exploitation_regret),
        rounds_by=jnp.max(each.rounds_by, axis=0),
        rounds=jnp.max(each.rounds),
        active_arms=jnp.max(each.active_arms),
        chosen_arm=jnp.where(exploring > playing[most], -1, most),
        agents_lost=jnp.sum(each.agents_lost),
    )


def _run(
    shape: Shape,
    rule: Rule,
    means: Float[Array, "row arm"],
    gaps: Float[Array, " arm"],
    grid: Int[Array, " time"],
    key: Array,
) -> Outcome:
    width = shape.law.arms
    agents = 1 if shape.sum_rewards else shape.agents
    heard = 1 if shape.sum_noise else shape.agents
    none, zero, blank = jnp.int32(0), jnp.float64(0.0), jnp.zeros(grid.shape)
    state = _State(
        epoch=none,
        slot=jnp.int64(0),
        pulls=zero,
        active=jnp.int32(width),
        chosen=none,
        chosen_gap=gaps[0],
        lost=jnp.bool_(False),
        rounds=none,
        regret=zero,
        exploitation=zero,
        regret_curve=blank,
        exploitation_curve=blank if shape.waits else blank[:0],
        rounds_curve=blank.astype(jnp.int32),
        arms=_Arms(
            arm=jnp.arange(width, dtype=jnp.uint32),
            alive=jnp.ones(width, bool),
            gap=gaps,
            mean=means,
            successes=jnp.zeros((agents, width)),
            noise=jnp.zeros((heard, width)),
        ),
    )
    state = arrays.varying_like(state, jax.random.key_data(key))
    steps = widths(width)
    for here, following in zip(steps, (*steps[1:], 1), strict=True):
        if here > 1:
            state = state._replace(arms=_compact(state.arms, here))
            state = _explore(shape, rule, grid, key, state, following)
    rate = rule.agents * state.chosen_gap
    decided = (state.active == 1) | _spent(rule, state)
    blank_exploitation = jnp.zeros_like(state.regret_curve)
    return Outcome(
        regret=extend(state.regret_curve, grid, state.slot, state.regret, rate),
        exploitation_regret=state.exploitation_curve if shape.waits else blank_exploitation,
        rounds_by=state.rounds_curve,
        rounds=state.rounds,
        active_arms=state.active,
        chosen_arm=jnp.where(decided, state.chosen, -1),
        agents_lost=jnp.where(state.lost, rule.agents, 0.0).astype(jnp.int32),
    )


def _explore(
    shape: Shape, rule: Rule, grid: Int[Array, " time"], key: Array, state: _State, enough: int
) -> _State:
    """Runs epochs until at most ``enough`` arms are active, or the run is decided or over."""

    def unfinished(state: _State) -> Bool[Array, ""]:
        exploring = (state.slot < rule.horizon) & ~_spent(rule, state)
        return exploring & (state.active > enough)

    def body(state: _State) -> _State:
        # A vmapped loop goes on until its last seed is done; the others then draw nothing.
        return _epoch(shape, rule, grid, key, state, unfinished(state))

    return lax.while_loop(unfinished, body, state)


def _spent(rule: Rule, state: _State) -> Bool[Array, ""]:
    return state.rounds.astype(jnp.float64) >= rule.rounds


def _epoch(
    shape: Shape,
    rule: Rule,
    grid: Int[Array, " time"],
    key: Array,
    state: _State,
    running: Bool[Array, ""],
) -> _State:
    """One epoch, and the wait and the exchange that close it (Algorithm 1, lines 3-17)."""
    arms = state.arms
    epoch = state.epoch + 1
    r, active = epoch.astype(jnp.float64), state.active.astype(jnp.float64)
    horizon = rule.horizon.astype(jnp.float64)
    common = dict(
        arms=jnp.float64(shape.law.arms),
        reporting=rule.reporting,
        epsilon=rule.epsilon,
        horizon=horizon,
    )
    target = schedule.target_gap(schedule.shrink_ratio(rule.gap, rule.rounds), r)
    pulls = schedule.pulls_per_arm(active, r, target, state.pulls, **common)
    new_pulls = pulls - state.pulls

    # Exploration, cut at the horizon: then nothing is uploaded.
    end = state.slot + (active * new_pulls).astype(jnp.int64)
    fits = end <= rule.horizon
    explored = jnp.minimum(end, rule.horizon)
    rate = rule.agents * arrays.pairwise_sum(jnp.where(arms.alive, arms.gap, 0.0)) / active
    regret_curve = extend(state.regret_curve, grid, state.slot, state.regret, rate)
    regret = state.regret + rate * (explored - state.slot).astype(jnp.float64)

    need = arms.alive & fits & running
    successes = arms.successes + _rewards(shape, rule, key, epoch, new_pulls, arms, need)
    noise = arms.noise + _noise(shape, rule, key, epoch, arms, need)

    # The wait, spent on each agent's own un-noised best arm and cut at the horizon.
    exploitation, exploitation_curve, slot = state.exploitation, state.exploitation_curve, explored
    if shape.waits:
        slot = jnp.minimum(explored + rule.wait, rule.horizon)
        rate = arrays.pairwise_sum(arms.gap[_first_best(successes, arms.alive)])
        gained = rate * (slot - explored).astype(jnp.float64)
        regret_curve = extend(regret_curve, grid, explored, regret, rate)
        exploitation_curve = extend(exploitation_curve, grid, explored, exploitation, rate)
        # From the wait's end on, nothing is added until the next wait.
        exploitation_curve = extend(
            exploitation_curve, grid, slot, exploitation + gained, jnp.zeros_like(rate)
        )
        exploitation, regret = exploitation + gained, regret + gained
    completed = fits & (explored + rule.wait <= rule.horizon)

    # The exchange: aggregate what is heard, drop what is clearly worse.
    aggregate = _aggregate(shape, rule, key, epoch, successes, noise) / pulls
    radius = schedule.confidence_radius(active, r, pulls, **common)
    best = jnp.max(jnp.where(arms.alive, aggregate, -jnp.inf))
    alive = arms.alive & (best - aggregate < 2.0 * radius)
    chosen = _first_best(aggregate[None, :], alive)[0]

    rounds = jnp.where(completed, epoch, state.rounds)
    return _State(
        epoch=epoch,
        slot=slot,
        pulls=pulls,
        active=jnp.where(completed, jnp.sum(alive, dtype=jnp.int32), state.active),
        chosen=jnp.where(completed, arms.arm[chosen].astype(jnp.int32), state.chosen),
        chosen_gap=jnp.where(completed, arms.gap[chosen], state.chosen_gap),
        lost=jnp.where(completed, jnp.min(jnp.where(alive, arms.gap, 1.0)) > 0.0, state.lost),
        rounds=rounds,
        regret=regret,
        exploitation=exploitation,
        regret_curve=regret_curve,
        exploitation_curve=exploitation_curve,
        rounds_curve=jnp.where(
            completed, step(state.rounds_curve, grid, slot, epoch), state.rounds_curve
        ),
        arms=arms._replace(
            alive=jnp.where(completed, alive, arms.alive), successes=successes, noise=noise
        ),
    )


def _rewards(
    shape: Shape,
    rule: Rule,
    key: Array,
    epoch: Array,
    pulls: Float[Array, ""],
    arms: _Arms,
    need: Bool[Array, " arm"],
) -> Float[Array, "agent arm"]:
    words = keys.stream_key(key, epoch, keys.REWARD)
    size = arms.successes.shape
    lane = keys.lanes(size[0], arms.arm, shape.law.arms)
    total = pulls * rule.agents if shape.sum_rewards else pulls
    needed = jnp.broadcast_to(need[None, :], size)
    return arrays.masked_map(samplers.reward_sum, needed, *words, lane, total, arms.mean)


def _noise(
    shape: Shape,
    rule: Rule,
    key: Array,
    epoch: Array,
    arms: _Arms,
    need: Bool[Array, " arm"],
) -> Float[Array, "heard arm"]:
    words = keys.stream_key(key, epoch, keys.NOISE)
    size = arms.noise.shape
    lane = keys.lanes(size[0], arms.arm, shape.law.arms)
    needed = jnp.broadcast_to(need[None, :], size)
    scale = schedule.noise_scale(rule.reporting, rule.epsilon)
    if shape.alone or not shape.sum_noise:
        return scale * arrays.masked_map(samplers.laplace, needed, *words, lane)
    return scale * arrays.masked_map(samplers.laplace_sum, needed, *words, lane, rule.agents)


def _aggregate(
    shape: Shape,
    rule: Rule,
    key: Array,
    epoch: Array,
    successes: Float[Array, "agent arm"],
    noise: Float[Array, "heard arm"],
) -> Float[Array, " arm"]:
    """Returns, per arm, the weighted sum over reporting agents of rewards plus noise."""
    if shape.sum_noise:
        # Counts: exact in any order.
        return (jnp.sum(successes, axis=0) + noise[0]) / rule.agents
    if shape.partial:
        words = keys.stream_key(key, epoch, keys.PARTICIPATION)
        reporting = rule.reporting.astype(jnp.int32)
        mask = samplers.participants(words, shape.agents, reporting)
        heard = jnp.where(mask[:, None], successes + noise, 0.0)
        return arrays.pairwise_sum(heard) / rule.reporting
    return arrays.pairwise_sum(arrays.rounded(rule.weights[:, None] * (successes + noise)))


def _first_best(values: Float[Array, "row arm"], alive: Bool[Array, " arm"]) -> Int[Array, " row"]:
    """Returns the position of each row's largest living value; ties go to the lowest arm."""
    values = jnp.where(alive[None, :], values, -jnp.inf)
    top = jnp.max(values, axis=1, keepdims=True)
    position = jnp.arange(values.shape[1])[None, :]
    # Two plain reductions: XLA's argmax does not vectorise on CPUs.
    return jnp.min(jnp.where(values == top, position, values.shape[1] - 1), axis=1)


def _compact(arms: _Arms, width: int) -> _Arms:
    """Moves the living arms, in order, to the front of arrays of the given width."""
    if arms.alive.shape[0] == width:
        return arms
    rank = jnp.cumsum(arms.alive, dtype=jnp.int32)
    source = jnp.searchsorted(rank, jnp.arange(1, width + 1, dtype=jnp.int32), method="compare_all")
    alive = jnp.arange(width, dtype=jnp.int32) < rank[-1]
    moved = jax.tree.map(lambda x: jnp.take(x, source, axis=-1, mode="clip"), arms)
    return moved._replace(alive=alive)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A binding of rules to the elimination loop; made by `cdp_mab` and its siblings.

    Attributes:
        name: "cdp", "ddp", "hdp" or "single".
        epsilon: Privacy parameter per Theorem 1, infinity for no noise, None if stated per message.
        epsilon_message: What one message leaks, N epsilon; None if stated as epsilon.
        rounds: Round budget R, or None.
        gap: Smallest gap that a budgeted schedule is built for; None for the instance's own.
        participation: Share p of the agents that report (server only).
        graph: What `graphs.make` takes (gossip only).
        components: What `graphs.components` takes (sinks only).
        weights: "agents" or "components" (sinks only).
    """

    name: str
    epsilon: float | None
    epsilon_message: float | None = None
    rounds: int | None = None
    gap: float | None = None
    participation: float = 1.0
    graph: Any = field(default=None, repr=False)
    components: Any = field(default=None, repr=False)
    weights: str = "agents"

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange among so many agents; computed on the host.

        Raises:
            ValueError: If the graph or the components do not fit the number of agents.
        """
        if self.name == "cdp":
            return exchanges.server(agents, self.participation)
        if self.name == "ddp":
            return exchanges.gossip(graphs.make(self.graph, agents))
        if self.name == "hdp":
            return exchanges.sinks(graphs.components(self.components, agents), self.weights)
        return exchanges.alone(agents)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description that identifies the algorithm."""
        described: dict[str, Any] = {
            "algorithm": self.name,
            "epsilon": _finite(self.epsilon),
            "epsilon_message": _finite(self.epsilon_message),
            "rounds": self.rounds,
            "gap": self.gap,
        }
        if self.name == "cdp":
            described["participation"] = self.participation
        if self.name == "ddp":
            described["graph"] = graphs.describe(self.graph)
        if self.name == "hdp":
            described["components"] = graphs.describe(self.components)
            described["weights"] = self.weights
        return described


def cdp_mab(
    epsilon: float | None | _Unset = _UNSET,
    *,
    participation: float = 1.0,
    rounds: int | None = None,
    gap: float | None = None,
    epsilon_message: float | None = None,
) -> Algorithm:
    """CDP-MAB: a server hears ceil(p M) agents a round (Algorithm 1 and section IV-B).

    Args:
        epsilon: Privacy parameter > 0; None (or infinity) adds no noise. A message leaks N epsilon.
        participation: Share p of agents that report in a round, in (0, 1].
        rounds: Round budget R >= 1, or None for the doubling schedule.
        gap: Smallest gap in (0, 1] for which a budgeted schedule is built; without ``rounds`` it
            has no effect. The default, the instance's own, is an oracle: no agent knows it.
        epsilon_message: What one message may leak, in place of ``epsilon``.

    Raises:
        ValueError: If a value is out of range, or both or neither epsilon is given.
    """
    remedy = "give the share of agents that report in a round, such as 0.4"
    participation = real("participation", participation, 0.0, 1.0, remedy, open_low=True)
    return _algorithm("cdp", epsilon, epsilon_message, rounds, gap, participation=participation)


def ddp_mab(
    epsilon: float | None | _Unset = _UNSET,
    graph: Any = "complete",
    *,
    rounds: int | None = None,
    gap: float | None = None,
    epsilon_message: float | None = None,
) -> Algorithm:
    """DDP-MAB: agents flood their means over a graph with GIS and wait (Algorithms 2 and 3).

    Args:
        epsilon: As in `cdp_mab`, with N = M.
        graph: A networkx graph, a name such as "ring", or a file; see `fmab_jax.core.graphs.make`.
        rounds: As in `cdp_mab`.
        gap: As in `cdp_mab`.
        epsilon_message: As in `cdp_mab`.

    Raises:
        ValueError: If a value is out of range.
    """
    return _algorithm("ddp", epsilon, epsilon_message, rounds, gap, graph=graph)


def hdp_mab(
    epsilon: float | None | _Unset = _UNSET,
    components: Any = "20x5:complete",
    *,
    weights: str = "agents",
    rounds: int | None = None,
    gap: float | None = None,
    epsilon_message: float | None = None,
) -> Algorithm:
    """HDP-MAB: components collect their means at a sink with SAC, sinks report (Algorithms 4, 5).

    Args:
        epsilon: As in `cdp_mab`, with N = M.
        components: Such as "20x5:star" (five stars of 20); see `fmab_jax.core.graphs.components`.
        weights: "agents" weighs every agent 1/M; "components" every component 1/Q, as the paper's
            Algorithm 5 prints it, which is biased where components and agents differ.
        rounds: As in `cdp_mab`.
        gap: As in `cdp_mab`.
        epsilon_message: As in `cdp_mab`.

    Raises:
        ValueError: If a value is out of range.
    """
    choice("weights", weights, ("agents", "components"), "'agents' is unbiased")
    return _algorithm(
        "hdp", epsilon, epsilon_message, rounds, gap, components=components, weights=weights
    )


def single_mab(
    epsilon: float | None | _Unset = _UNSET,
    *,
    rounds: int | None = None,
    gap: float | None = None,
    epsilon_message: float | None = None,
) -> Algorithm:
    """The baseline: every agent runs CDP-MAB with M = 1 on its own rewards; regret is summed.

    Args:
        epsilon: As in `cdp_mab`, with N = 1.
        rounds: As in `cdp_mab`.
        gap: As in `cdp_mab`.
        epsilon_message: As in `cdp_mab`.

    Raises:
        ValueError: If a value is out of range.
    """
    return _algorithm("single", epsilon, epsilon_message, rounds, gap)


def _algorithm(
    name: str, epsilon: Any, epsilon_message: Any, rounds: Any, gap: Any, **exchange: Any
) -> Algorithm:
    if rounds is not None:
        rounds = count("rounds", rounds, 1, MAX_ROUNDS, "give a round budget, or None for none")
    if gap is not None:
        remedy = "give the smallest gap to resolve, or None for the instance's own"
        gap = real("gap", gap, 0.0, 1.0, remedy, open_low=True)
    if epsilon_message is not None:
        if epsilon is not _UNSET:
            refuse("epsilon_message", epsilon_message, "given without epsilon", "drop one of them")
        epsilon = None
        epsilon_message = privacy("epsilon_message", epsilon_message)
    elif epsilon is _UNSET:
        refuse("epsilon", epsilon, "given, or epsilon_message", "pass epsilon=None for no noise")
    else:
        epsilon = privacy("epsilon", epsilon)
    return Algorithm(name, epsilon, epsilon_message, rounds, gap, **exchange)


def plan(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    *,
    sum_agents: bool = True,
    exchange: Exchange | None = None,
) -> tuple[Shape, Rule, Exchange]:
    """Resolves an algorithm on a problem into what the loop takes.

    Args:
        algorithm: What to run.
        problem: On what.
        horizon: T, in slots.
        sum_agents: Sum agents out where that is exact: rewards where agents share the means, all
            report, weigh the same and nobody waits; noise where all report and weigh the same.
        exchange: The algorithm's own among these agents, where it was computed before.
    """
    exchange = algorithm.exchange(problem.agents) if exchange is None else exchange
    alone = exchange.kind == "alone"
    partial = exchange.reporting < problem.agents and not alone
    waits = exchange.wait > 0
    sum_noise = alone or (sum_agents and exchange.uniform and not partial)
    sum_rewards = alone or (sum_noise and problem.homogeneous and not waits)
    shape = Shape(
        law=problem.law,
        alone=alone,
        agents=problem.agents if alone or not sum_rewards else 0,
        sum_rewards=sum_rewards,
        sum_noise=sum_noise,
        partial=partial,
        waits=waits,
    )
    epsilon = algorithm.epsilon
    if algorithm.epsilon_message is not None:
        epsilon = algorithm.epsilon_message / exchange.reporting
    uses_weights = not sum_noise and not partial
    rule = Rule(
        horizon=np.int64(horizon),
        agents=np.float64(1 if alone else problem.agents),
        reporting=np.float64(exchange.reporting),
        epsilon=np.float64(epsilon),
        rounds=np.float64(math.inf if algorithm.rounds is None else algorithm.rounds),
        gap=np.float64(math.nan if algorithm.gap is None else algorithm.gap),
        wait=np.int64(exchange.wait),
        weights=exchange.weights if uses_weights else np.empty(0),
    )
    return shape, rule, exchange


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: no noise is None."""
    return None if value is None or math.isinf(value) else value
