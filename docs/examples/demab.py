"""DEMAB: agents divide the arms, and send a server a few numbers after each phase.

A plug-in with a loop of its own:

    fmab run demab --plugin docs/examples/demab.py --agents 10 --arms 10
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.families.private import Private, check_unit_rewards, epsilon_parameter
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Exchange, View, Viewer, server
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.rewards import Law
from fmab_jax.parts.trials import Outcome, Trial
from fmab_jax.records.ledger import Disclosure
from fmab_jax.records.problem import Problem
from fmab_jax.sampling import arrays, keys, laplace, normal
from fmab_jax.sampling.curves import extend, step
from fmab_jax.sampling.shapes import STATIC, Curve, Grid, Integer, PerArm, Scalar, Truth


@dataclass(frozen=True)
class DEMAB(Private):
    """DEMAB: every agent explores alone, then arms are split and eliminated together.

    First, for T / (M K) slots, every agent eliminates arms by itself: in phase l it pulls each of
    its arms m_l = ceil(4^(l+3) log(M K T)) times and drops those whose mean is more than 2^-l below
    the best. Then every arm is assigned to a random agent, which keeps it if it has not dropped it.
    In each phase from then on an agent pulls its own arms m_l times and tells the server the best
    of them with its mean; the server tells the best mean of all, and all drop what is more than
    2^-l below. Loads are balanced where they differ by more than a factor of two. Arms that are
    fewer than agents are pulled by several agents each. `docs/semantics.md` lists what the summary
    of the paper leaves open.

    With epsilon, which is this project's and not the authors', a Laplace(1 / epsilon) variable is
    on every sum of rewards that an agent makes, and a phase is longer where noise asks for it: of
    c agents' variables, |sum| <= sqrt(8) max(sqrt(c b), b) / epsilon, b = 2 log(M K T), but for a
    chance of 2 / (M K T)^2 (Chan, Shi and Song, TISSEC 2011, lemma 2.8), and m_l is at least 8 2^l
    times that. Noise then moves a mean by at most 2^-l / 8, and so do rewards in [0, 1], by
    Hoeffding with the same chance: while both hold, no phase drops a best arm.

    Attributes:
        epsilon: Privacy of all that an agent tells and does, for one changed reward; None, the
            authors' algorithm, for no noise.

    Example:
        In a round every agent sends the server an arm with its mean, and how many arms it has left.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(DEMAB(), problem, horizon=10**5, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
        >>> [(row.viewer, row.epsilon) for row in fmab.privacy_ledger(DEMAB(0.5), agents=5)][0]
        ('the server', 0.5)
    """

    name = "demab"
    title = "DEMAB"
    source = "Wang, Hu, Chen and Wang, ICLR 2020, arXiv 1904.06309"
    communication = "a server hears all agents after each phase"
    trusted = "the server, with means; with epsilon nobody, up to that"
    examples = ("--agents 10 --arms 10", "--epsilon 0.1 1 10")
    homogeneous_only = True

    epsilon: float | None = epsilon_parameter(None)

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a server that hears two numbers from every agent in a round.

        Runs count additional numbers, each as a vector of one number.
        """
        best = "the best mean of each phase"
        views = (View(Viewer.SERVER, 1), View(Viewer.AGENTS, 1, observation=best))
        table = server(agents)
        return replace(table, vectors=1, numbers=2 * agents, views=views)

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers messages and actions: both are functions of sums that contain a reward once."""
        why = "a reward enters one sum of one phase, with one noise"
        messages = [
            self.make_row(
                why, view.viewer, ViewKind.MESSAGES, noises=1, observation=view.observation
            )
            for view in exchange.views
        ]
        return (*messages, self.make_row("a function of noisy sums", noises=1))

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Covers the means that agents receive: no agent knows the noise of another one."""
        why = "another agent's sums have noise of its own"
        row = self.make_row(why, Viewer.COALITION, ViewKind.MESSAGES, noises=1)
        return (row._replace(members=size, observation="means of other agents"),)

    def make_trial(
        self,
        problem: Problem,
        horizon: int,
        exchange: Exchange,
        padded_agents: int,
        sum_agents: bool,
    ) -> DEMABTrial:
        """Returns the trial.

        Raises:
            ValueError: If an epsilon is claimed for rewards that may lie outside [0, 1].
        """
        law, noisy = problem.rewards, math.isfinite(self.noise_level)
        check_unit_rewards(law, self.noise_level)
        agents, arms = problem.agents, problem.arms
        return DEMABTrial(
            algorithm=type(self),
            law=law.bind()[0],
            padded_agents=padded_agents,
            noisy=noisy,
            horizon=np.int64(horizon),
            agents=np.int64(agents),
            burn_in=np.int64(horizon // (agents * arms)),
            log=np.float64(math.log(agents * arms * horizon)),
            scale=np.float64(1.0 / self.noise_level),
            shapes=_tabulate_noise(agents, arms) if noisy else np.empty((laplace.SHAPE, 2, 0)),
        )


def _tabulate_noise(agents: int, arms: int) -> Float[np.ndarray, "24 2 number"]:
    """Returns the law of an arm's noise for M // n and M // n + 1 agents, n arms in play."""
    shapes = np.zeros((laplace.SHAPE, 2, arms + 1))
    for number in range(1, arms + 1):
        few = max(1, agents // number)
        for extra in (0, 1):
            shapes[:, extra, number] = laplace.laplace_sum_shape(few + extra)
    return shapes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DEMABTrial(Trial):
    """DEMAB bound to a problem.

    Attributes:
        algorithm: The class, for its name. Static, as are the next three.
        law: Law of the rewards.
        padded_agents: Rows that agents are padded to.
        noisy: Whether sums carry noise.
        horizon: T in slots, int64.
        agents: M, int64.
        burn_in: Slots that every agent plays by itself, int64.
        log: log(M K T).
        scale: Scale of the noise, 1 / epsilon.
        shapes: [24, 2, number] of `laplace.laplace_sum`: of floor(M / number) agents' noises and of
            one more, by the number of arms in play; no columns without noise.
    """

    algorithm: type[DEMAB] = field(metadata=STATIC)
    law: Law = field(metadata=STATIC)
    padded_agents: int = field(metadata=STATIC)
    noisy: bool = field(metadata=STATIC)
    horizon: Array | np.int64
    agents: Array | np.int64
    burn_in: Array | np.int64
    log: Array | np.float64
    scale: Array | np.float64
    shapes: Array | np.ndarray

    def elements(self) -> int:
        """Returns how many rows of arms the loops hold for one seed."""
        return self.padded_agents + 4

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        seed = _Seed(self, instance, grid, key)
        state = seed.share_out(seed.explore())

        def is_running(state: _Phases) -> Truth:
            return (state.slot < self.horizon) & (jnp.sum(state.alive, dtype=jnp.int32) > 1)

        # A vmapped loop runs until its last seed ends; completed seeds draw nothing.
        return seed.finish(lax.while_loop(is_running, lambda s: seed.play(s, is_running(s)), state))


def _count_pulls(trial: DEMABTrial, phase: Integer, noises: Array) -> Scalar:
    """Returns m_l for sums with this number of noise variables."""
    inverse_gap = jnp.ldexp(jnp.ones(()), phase)
    pulls = 64.0 * inverse_gap * inverse_gap * trial.log
    twice_log = 2.0 * trial.log
    noise = jnp.maximum(jnp.sqrt(noises.astype(jnp.float64) * twice_log), twice_log) * math.sqrt(
        8.0
    )
    return jnp.ceil(jnp.maximum(pulls, 8.0 * inverse_gap * noise * trial.scale))


def _cut_slots(slots: Scalar, most: Array) -> Integer:
    """Returns a number of slots as int64, cut to one more than the limit."""
    return jnp.minimum(slots, (most + 1).astype(jnp.float64)).astype(jnp.int64)


class _BurnIn(NamedTuple):
    """The state of the burn-in, in which every agent eliminates arms by itself.

    Attributes:
        phase: The last phase in the loop.
        completed: Phases that each agent has completed.
        slot: Last slot that each agent has played.
        rate: Mean gap of each agent's active arms.
        alive: Active arms of each agent.
        curve: Regret of all agents up to ``slot``; the last point is the end of the burn-in.
    """

    phase: Integer
    completed: Int[Array, " agent"]
    slot: Int[Array, " agent"]
    rate: Float[Array, " agent"]
    alive: Bool[Array, "agent arm"]
    curve: Float[Array, " point"]


def _eliminate(
    means: Float[Array, "*row arm"], alive: Bool[Array, "*row arm"], phase: Integer
) -> Bool[Array, "*row arm"]:
    """Keeps the arms whose mean is at most 2^-l below the best one."""
    best = jnp.max(jnp.where(alive, means, -jnp.inf), axis=-1, keepdims=True)
    return alive & (best - means <= jnp.ldexp(jnp.ones(()), -phase))


class _Phases(NamedTuple):
    """The state of the distributed stage.

    Attributes:
        phase: The last phase.
        slot: Last slot of the phase.
        regret: Regret up to that slot.
        rate: Regret per slot of all agents in that phase.
        alive: Arms in play, over all agents.
        owner: Agent that pulls an arm, while arms are more than agents.
        arm_of_agent: Arm that an agent pulls, where they are fewer; -1 before.
        rounds: Completed rounds.
        numbers: Numbers sent in addition to those of every round.
        regret_curve: Regret on the grid up to the slot.
        rounds_curve: Completed rounds on the grid up to the slot.
    """

    phase: Integer
    slot: Integer
    regret: Scalar
    rate: Scalar
    alive: Bool[Array, " arm"]
    owner: Int[Array, " arm"]
    arm_of_agent: Int[Array, " agent"]
    rounds: Integer
    numbers: Integer
    regret_curve: Curve
    rounds_curve: Grid


class _Seed(NamedTuple):
    """One seed of a trial."""

    trial: DEMABTrial
    instance: Instance
    grid: Grid
    key: Array

    def explore(self) -> _BurnIn:
        """Runs the burn-in: one phase of all agents per step, at different slots."""
        trial, gaps = self.trial, self.instance.gaps
        arms, rows = len(gaps), trial.padded_agents
        burn_in = jnp.asarray(trial.burn_in)
        points = jnp.concatenate([self.grid, burn_in[None]])
        agent = jnp.arange(rows, dtype=jnp.int32)
        real = agent < jnp.asarray(trial.agents).astype(jnp.int32)
        agent_keys = jax.vmap(partial(keys.agent_key, self.key))(agent)

        def end_phase(state: _BurnIn) -> tuple[Array, Array]:
            """Returns the end of each agent's next phase, and whether the agent reaches it."""
            pulls = _count_pulls(trial, state.phase + 1, jnp.int64(1))
            active = jnp.sum(state.alive, axis=1, dtype=jnp.int64)
            end = state.slot + active * _cut_slots(pulls, burn_in)
            return end, real & (active > 1) & (end <= burn_in)

        def add_regret(state: _BurnIn, until: Array, mask: Array) -> Array:
            """Adds the regret of the masked agents up to a slot of each."""
            start = state.slot[:, None]
            time = jnp.clip(points[None, :], start, until[:, None]) - start
            gained = arrays.rounded(state.rate[:, None] * time.astype(jnp.float64))
            return state.curve + arrays.padded_sum(jnp.where(mask[:, None], gained, 0.0))

        def play(state: _BurnIn) -> _BurnIn:
            end, fits = end_phase(state)
            phase = state.phase + 1
            pulls = _count_pulls(trial, phase, jnp.int64(1))

            def stream_words(stream: int) -> tuple[Array, Array]:
                stream_keys = jax.vmap(lambda key: keys.stream_key(key, phase, stream))(agent_keys)
                return stream_keys.k0[:, None], stream_keys.k1[:, None]

            lane = jnp.arange(arms, dtype=jnp.uint32)[None, :]
            counts = jnp.where(state.alive & fits[:, None], pulls, 0.0)
            parameters = (x[:1] for x in self.instance.parameters)
            sums = trial.law.total(*stream_words(keys.REWARD), lane, counts, *parameters)
            if trial.noisy:
                noise = laplace.laplace(*stream_words(keys.NOISE), lane)
                sums = sums + arrays.rounded(trial.scale * trial.law.sensitivity * noise)
            alive = jnp.where(
                fits[:, None], _eliminate(sums / pulls, state.alive, phase), state.alive
            )
            left = jnp.where(alive, gaps[None, :], 0.0)
            rate = arrays.padded_sum(left.T) / jnp.sum(alive, axis=1, dtype=jnp.float64)
            return _BurnIn(
                phase=phase,
                completed=state.completed + fits.astype(jnp.int32),
                slot=jnp.where(fits, end, state.slot),
                rate=jnp.where(fits, rate, state.rate),
                alive=alive,
                curve=add_regret(state, end, fits),
            )

        zeros, mean_gap = jnp.zeros(rows, jnp.int32), arrays.padded_sum(gaps) / arms
        rate, alive = jnp.full(rows, mean_gap), jnp.ones((rows, arms), bool)
        slot, curve = zeros.astype(jnp.int64), jnp.zeros(points.shape)
        start = _BurnIn(jnp.int32(0), zeros, slot, rate, alive, curve)
        state = lax.while_loop(lambda state: jnp.any(end_phase(state)[1]), play, start)
        # The remaining slots are too few for a phase, or the agent has one arm left.
        return state._replace(curve=add_regret(state, jnp.full(rows, burn_in), real))

    def share_out(self, alone: _BurnIn) -> _Phases:
        """Assigns every arm to a random agent, which keeps the arms that it has not eliminated."""
        trial, grid = self.trial, self.grid
        arms, burn_in = len(self.instance.gaps), jnp.asarray(trial.burn_in)
        agents = jnp.asarray(trial.agents)
        real = jnp.arange(trial.padded_agents, dtype=jnp.int32) < agents.astype(jnp.int32)
        arm = jnp.arange(arms, dtype=jnp.uint32)
        uniform = keys.uniform(*keys.stream_key(self.key, 0, keys.ASSIGNMENT), arm)
        owner = jnp.floor(uniform * agents.astype(jnp.float64)).astype(jnp.int32)
        remaining = alone.alive[owner, arm.astype(jnp.int32)]
        # If every owner has eliminated its arms, all arms return.
        alive = remaining | ~jnp.any(remaining)
        active = jnp.sum(alive, dtype=jnp.int64)
        # If no agent can complete a phase, every agent has all arms and sends nothing.
        first = _count_pulls(trial, jnp.int32(1), jnp.int64(1))
        reported = (arms > 1) & (arms * _cut_slots(first, burn_in) <= burn_in)
        rounds = reported.astype(jnp.int32)
        return _Phases(
            phase=jnp.min(jnp.where(real, alone.completed, jnp.iinfo(jnp.int32).max)),
            slot=burn_in,
            regret=alone.curve[-1],
            rate=jnp.zeros(()),
            alive=alive,
            owner=owner,
            arm_of_agent=jnp.full(trial.padded_agents, -1, jnp.int32),
            rounds=rounds,
            # If one arm is left, its owner names it to the server, and the server to all agents.
            numbers=jnp.where(reported & (active == 1), 1 + agents, 0),
            regret_curve=alone.curve[:-1],
            rounds_curve=step(jnp.zeros(grid.shape, jnp.int32), grid, burn_in, rounds),
        )

    def deal(self, state: _Phases) -> tuple[_Phases, Array, PerArm, Array]:
        """Assigns arms to agents for a phase.

        Returns:
            The state with owners, arms of agents and the numbers that this sends; the agents that
            pull each arm; the part of a slot that they spend on it together; and the largest number
            of arms of an agent.
        """
        arms, agents, alive = len(self.instance.gaps), jnp.asarray(self.trial.agents), state.alive
        active = jnp.sum(alive, dtype=jnp.int64)
        rank = jnp.cumsum(alive, dtype=jnp.int64) - 1
        shared = active <= agents
        agent = jnp.arange(self.trial.padded_agents, dtype=jnp.int64)
        real = agent < agents

        # Arms are assigned anew, in order, if one agent has more than twice as many as another.
        owns = alive[None, :] & (state.owner[None, :] == agent[:, None].astype(jnp.int32))
        loads = jnp.sum(owns, axis=1, dtype=jnp.int64)
        most, least = jnp.max(loads), jnp.min(jnp.where(real, loads, arms))
        deals = ~shared & (most > 2 * least)
        new_owner = (rank % agents).astype(jnp.int32)
        move_count = jnp.sum(alive & deals & (new_owner != state.owner), dtype=jnp.int64)
        even = active // agents + (rank % agents < active % agents).astype(jnp.int64)
        load = jnp.where(deals, even, loads[state.owner])
        most = jnp.where(deals, -(-active // agents), most)

        # Fewer arms than agents: the arm of rank j is pulled by agents j, j + N, j + 2 N, ...
        few = jnp.where(shared, agents // active, 1)
        extra = shared & (rank < agents - active * few)
        arm_of_rank = jnp.nonzero(alive, size=arms, fill_value=0)[0].astype(jnp.int32)
        arm_of_agent = jnp.where(shared, arm_of_rank[agent % active], -1)
        name_count = jnp.where(shared & (state.arm_of_agent[0] < 0), active, 0)
        change_count = jnp.sum(
            shared & real & (arm_of_agent != state.arm_of_agent), dtype=jnp.int64
        )
        pulling = few + extra.astype(jnp.int64)
        weight = jnp.where(shared, pulling.astype(jnp.float64), 1.0 / load.astype(jnp.float64))
        # Before the first round every agent has the same arms and sends no number.
        count = jnp.where(state.rounds > 0, 2 * move_count + name_count + change_count, 0)
        owner, numbers = jnp.where(deals, new_owner, state.owner), state.numbers + count
        state = state._replace(owner=owner, arm_of_agent=arm_of_agent, numbers=numbers)
        return state, pulling, weight, jnp.where(shared, 1, most)

    def play(self, state: _Phases, running: Truth) -> _Phases:
        """Plays one phase; a phase that the horizon cuts sends and eliminates nothing."""
        trial, gaps, grid = self.trial, self.instance.gaps, self.grid
        horizon, agents = jnp.asarray(trial.horizon), jnp.asarray(trial.agents)
        phase, alive = state.phase + 1, state.alive
        active = jnp.sum(alive, dtype=jnp.int64)
        shared = active <= agents
        dealt, pulling, weight, most = self.deal(state)
        few = jnp.where(shared, agents // active, 1)
        pulls = _count_pulls(trial, phase, jnp.where(shared, -(-agents // active), 1))
        by_agent = jnp.ceil(pulls / few.astype(jnp.float64))
        # Arms with an extra agent have more pulls than needed; all of them count.
        pulls_by_arm = pulling.astype(jnp.float64) * by_agent
        slots = most * _cut_slots(by_agent, horizon)
        until, fits = jnp.minimum(state.slot + slots, horizon), state.slot + slots <= horizon
        rate = arrays.padded_sum(arrays.rounded(jnp.where(alive, weight * gaps, 0.0)))

        lane = jnp.arange(len(gaps), dtype=jnp.uint32)
        words = keys.stream_key(self.key, phase, keys.REWARD)
        counts = jnp.where(alive & fits & running, pulls_by_arm, 0.0)
        sums = trial.law.total(*words, lane, counts, *(x[0] for x in self.instance.parameters))
        if trial.noisy:
            z = normal.quantile(keys.uniform(*keys.stream_key(self.key, phase, keys.NOISE), lane))
            # With one agent per arm, the noise has the law of more arms than agents.
            number = jnp.where(shared, active, len(gaps))
            shape = jnp.asarray(trial.shapes)[:, (pulling - few).astype(jnp.int32), number]
            noise = laplace.laplace_sum(z, shape)
            sums = sums + arrays.rounded(trial.scale * trial.law.sensitivity * noise)

        rounds = state.rounds + fits.astype(jnp.int32)
        return dealt._replace(
            phase=phase,
            slot=until,
            regret=state.regret + arrays.rounded(rate * (until - state.slot).astype(jnp.float64)),
            rate=rate,
            alive=jnp.where(fits, _eliminate(sums / pulls_by_arm, alive, phase), alive),
            rounds=rounds,
            numbers=dealt.numbers + jnp.where(fits & ~shared, agents, 0),
            regret_curve=extend(state.regret_curve, grid, state.slot, state.regret, rate),
            rounds_curve=step(state.rounds_curve, grid, until, rounds),
        )

    def finish(self, end: _Phases) -> Outcome:
        """Returns the outcome of the last phase."""
        gaps, agents = self.instance.gaps, jnp.asarray(self.trial.agents).astype(jnp.float64)
        active = jnp.sum(end.alive, dtype=jnp.int32)
        is_decided = active == 1
        arm = jnp.argmax(end.alive).astype(jnp.int32)
        gap = gaps[arm]
        is_lost = jnp.min(jnp.where(end.alive, gaps, jnp.inf)) > 0.0
        last = extend(end.regret_curve, self.grid, end.slot, end.regret, agents * gap)
        whole = jnp.asarray(self.trial.agents).astype(jnp.int32)
        return Outcome(
            regret=jnp.where(is_decided, last, end.regret_curve),
            waiting_regret=None,
            rounds_by=end.rounds_curve,
            rounds=end.rounds,
            arms_reported=end.numbers,
            active_arms=active,
            chosen_arm=jnp.where(is_decided, arm, -1),
            agents_lost=jnp.where(is_lost, whole, 0),
            agents_worse=jnp.where(is_decided & (gap > 0.0), whole, 0),
            final_gap=jnp.where(is_decided, gap, end.rate / agents),
        )
