"""Draws messages of elimination, and their sums, for an audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from experiments.audit import events
from experiments.audit.events import ARM, ARMS, Numbers, Stream
from fmab_jax import elimination
from fmab_jax.accounts import Accounts, RunState
from fmab_jax.algorithms.base import Disclosure
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.draws import ByAgent, Draws
from fmab_jax.draws.base import Sums
from fmab_jax.elimination import EliminationTrial
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.instances import BoundProblem, Instance
from fmab_jax.sampling import keys
from fmab_jax.sampling.lookup import table

PerRound = Float[Array, " round"]


class Messages(NamedTuple):
    """The messages of agents in the first rounds, while no arm leaves.

    Attributes:
        means: [round, row, arm] noisy mean of each arm, as a message holds it.
        length: [round] rewards that a mean is over: S_r, or n_r where old epochs are forgotten.
    """

    means: Float[Array, "round row arm"]
    length: PerRound


@dataclass(frozen=True)
class Uploads:
    """Messages of an elimination algorithm, or their sums; a row of the draws is one of them."""

    row: Disclosure
    view: str
    words: tuple[str, str]  # name of the output of one round, and of several
    # With as many rows as a batch needs, but N and the noise of the real agents.
    trial: EliminationTrial
    problem: BoundProblem  # all rewards are 0
    root: np.uint32  # seed
    size: int
    rounds: int  # uploads that there are at most
    agents: int  # drawn in one run
    # [agent] weights in a sum: 1 for the agent with the changed reward, 0 for the viewer, who takes
    # out its own message. None for single messages.
    weights: Float[np.ndarray, " agent"] | None
    skips: bool  # whether some agents do not report in a round
    compete: ClassVar[bool] = False

    @property
    def is_stronger(self) -> bool:
        """Whether the noisy sums of an agent that is alone are seen, and not actions alone."""
        return self.trial.alone

    def streams(self) -> list[Stream]:
        """Returns streams of one round, and of all rounds with the reward in the first or last."""
        (single, plural), last = self.words, self.rounds - 1
        result = [Stream(f"one {single}", -1, 0, (0,))]
        if last:
            whole, words = tuple(range(self.rounds)), f"{self.rounds} {plural}, reward of round"
            places = (0, last) if self.view == "messages" else (last,)
            result += [Stream(f"{words} {r + 1}", -1, r, whole) for r in places]
        if last > 1 and self.skips:
            words = "uploads of rounds 1 and 3, reward of round"
            result += [Stream(f"{words} {r + 1}", -1, r, (0, 2)) for r in (0, 1)]
        return result

    def draw(self, data: int, batch: int) -> Messages:
        """Returns a batch of runs in which the reward of one round, -1 for none, is 1."""
        added = np.zeros((self.rounds, self.agents * self.size, ARMS))
        if data >= 0:
            added[data, :: self.agents, ARM] = 1.0
        seed = events.make_seed(data, batch)
        messages: Messages = jax.device_get(
            _draw_messages(self.trial, self.problem, self.root, seed, added)
        )
        return messages

    def show(self, stream: Stream, batch: Messages) -> Numbers:
        """Returns the sums of rewards and noise of each epoch."""
        rounds, agents = list(stream.rounds), self.agents
        lengths = np.asarray(batch.length)[rounds]
        sums = np.asarray(batch.means * batch.length[:, None, None])[rounds]
        sums = sums.reshape(len(rounds), -1, agents, ARMS)
        if self.weights is not None:
            sums, agents = np.einsum("a,xrak->xrk", self.weights, sums)[:, :, None, :], 1
        if self.trial.draws.remembers:
            sums, lengths = np.diff(sums, axis=0, prepend=0), np.diff(lengths, prepend=0)
        names = [
            f"round {r + 1}, arm {k + 1}" + f", agent {i + 1}" * (agents > 1)
            for r in rounds
            for i in range(agents)
            for k in range(ARMS)
        ]
        values = np.moveaxis(sums, 1, 0).reshape(sums.shape[1], -1)
        first = int(np.searchsorted(rounds, stream.with_reward)) * agents * ARMS + ARM
        return Numbers(values, np.repeat(lengths, agents * ARMS), names, first)


@jax.jit
@events.trace_by_default
def _draw_messages(
    trial: EliminationTrial, problem: BoundProblem, root: Array, seed: Array, added: Array
) -> Messages:
    """Draws the messages of the first rounds as a run does, while all arms stay.

    All agents are drawn in each epoch, which has the same law as partial participation.

    Args:
        trial: With a row for each agent of each run.
        problem: Of the rewards.
        root: Root seed.
        seed: Of a batch.
        added: [round, row, arm] to the sums of rewards of each epoch.
    """
    key = keys.seed_key(root, seed)
    instance = problem.draw(key)
    trial, accounts, state = _start_run(trial, instance)
    draws, arm = trial.draws, jnp.arange(ARMS, dtype=jnp.uint32)
    arms = {"alive": jnp.ones(ARMS, bool), "arm": arm, **draws.compute_constants(instance)}

    def round_of(
        carry: tuple[RunState, Sums], added: Array
    ) -> tuple[tuple[RunState, Sums], Messages]:
        state, before = carry
        epoch = elimination.plan_epoch(trial, accounts, state, key)
        epoch = epoch._replace(drawn=epoch.fresh)
        fresh = draws.sample(arms, epoch)
        fresh["rewards"] = fresh["rewards"] + added.T
        sums = {name: before[name] + x for name, x in fresh.items()}
        sums_sent, length = (sums, epoch.pulls) if draws.remembers else (fresh, epoch.fresh)
        message = sums_sent["rewards"] + sums_sent.get("noise", 0.0)
        state = state._replace(number=epoch.round_index, pulls=epoch.pulls)
        return (state, sums), Messages(message.T / length, length)

    sums = {name: jnp.zeros((ARMS, *shape)) for name, shape in draws.sums.items()}
    return jax.lax.scan(round_of, (state, sums), added)[1]


def _start_run(
    trial: EliminationTrial, instance: Instance
) -> tuple[EliminationTrial, Accounts, RunState]:
    """Returns a trial with the values of an instance, its accounts, and its start."""
    trial = replace(trial, params=trial.algorithm.resolve_params(trial.params, instance))
    slots = jnp.zeros(0, jnp.int64)
    accounts = elimination.open_accounts(trial, instance, slots, trial.horizon)
    return trial, accounts, accounts.start(trial.draws.start_memory())


class Schedule(NamedTuple):
    """The first rounds of elimination, [round] each, as they are while no arm leaves."""

    pulls: PerRound  # of each arm by the end of a round's epoch
    fresh: PerRound  # of that epoch
    radius: PerRound  # confidence radius of the round
    scale: PerRound  # of the noise on a sum of the epoch's rewards


@partial(jax.jit, static_argnames="rounds")
@events.trace_by_default
def plan_rounds(trial: EliminationTrial, *, rounds: int) -> Schedule:
    """Returns the first rounds of a trial."""
    trial, accounts, start = _start_run(trial, make_instance(jnp.zeros(ARMS), ()))

    def round_of(state: RunState, _: None) -> tuple[RunState, Schedule]:
        epoch = elimination.plan_epoch(trial, accounts, state, jax.random.key(0))
        state = state._replace(number=epoch.round_index, pulls=epoch.pulls)
        return state, Schedule(epoch.pulls, epoch.fresh, epoch.radius, epoch.scale)

    return jax.lax.scan(round_of, start, None, length=rounds)[1]


def make_instance(base: Float[Array, " arm"], parameters: tuple[Array, ...]) -> Instance:
    """Returns an instance whose gaps name the arms: regret then tells which one is pulled."""
    gaps = jnp.arange(ARMS, dtype=jnp.float64)
    return Instance(base[None, :], gaps, jnp.float64(1.0), parameters)


def count_rounds(algorithm: Elimination, trial: EliminationTrial) -> float:
    """Returns the most rounds that a trial makes."""
    return float(algorithm.budget({k: jnp.asarray(v) for k, v in trial.params.items()}))


def expose_uploads(
    algorithm: Elimination,
    exchange: Exchange,
    row: Disclosure,
    root: np.uint32,
    over: int = 1,
    is_member: bool = False,
) -> Uploads | str:
    """Returns the exposure of messages, or of sums over agents, one of which may be the viewer."""
    problem = events.make_zero_problem(exchange.agents)
    secure, shares = algorithm.sums_securely, algorithm.shares_arms
    trial = algorithm.bind(problem, events.HORIZON, exchange=exchange, sum_agents=secure or shares)
    view = "sums" if secure or over > 1 else "messages"
    words, agents, weights = ("upload", "uploads"), 2, None
    if trial.alone:
        words, agents = ("noisy sum", "noisy sums"), 1
    elif secure:
        words, agents = ("sum over agents", "sums over agents"), 1
    elif over > 1:
        note = " less its own message" * is_member
        words, agents = (f"sum over {over} agents{note}", f"sums over {over}{note}"), over
        weights = np.ones(over)
        if over == exchange.agents:
            # The agent whose reward differs and the viewer have the largest weights.
            weights = np.sort(np.asarray(exchange.weights, np.float64))[::-1]
            weights = weights / weights[0]
        if is_member:
            weights[1] = 0.0
    ratios = algorithm.noise_ratios(exchange)
    if ratios is not None:
        if over not in (1, exchange.reporting):
            return "the noises of sums differ; single messages are shown"
        order = _order_agents(exchange.weights, ratios, over)
        ratios = ratios[order][:agents]
        if weights is not None:
            weights = exchange.weights[order] / exchange.weights[order[0]]
            weights[1] *= not is_member
    size = events.BATCH if agents <= 2 else max(1, 4 * events.BATCH // agents)
    draws = make_agent_draws(trial.draws, agents * size, secure, ratios)
    return Uploads(
        *(row, view, words, replace(trial, draws=draws), problem.bind(None), root, size),
        rounds=int(min(events.UPLOADS, count_rounds(algorithm, trial))),
        agents=agents,
        weights=weights,
        # Agents that split the arms are all asked in every round.
        skips=view == "messages" and draws.remembers and not (trial.alone or shares),
    )


def _order_agents(
    weights: Float[np.ndarray, " agent"], ratios: Float[np.ndarray, " agent"], over: int
) -> Int[np.ndarray, " place"]:
    """Returns the agents of a message or sum that leaks most: whose reward changes, the viewer.

    The reward that changes weighs most and has the smallest noise; the viewer takes out the largest
    noise of a sum.
    """
    order = np.lexsort((ratios, -weights))
    if over == 1:
        return order
    order = order[:over]
    viewer = 1 + int(np.argmax((weights * ratios)[order[1:]]))
    order[[1, viewer]] = order[[viewer, 1]]
    return order


def make_agent_draws(
    draws: Draws, rows: int, secure: bool, ratios: Float[np.ndarray, " agent"] | None = None
) -> ByAgent:
    """Returns draws of ``rows`` agents that all report their own sums.

    Args:
        draws: Whose rewards, noise and memory.
        rows: How many.
        secure: Whether the noise of each is drawn as that of a secure sum.
        ratios: [agent] of `Draws.ratios`, of the agents of a run.
    """
    summed = secure and draws.noisy
    counts = table(np.tile(draws.mechanism.tabulate(1), rows)[None]) if summed else None
    fields = {field.name: getattr(draws, field.name) for field in fields_of(Draws)}
    fields |= {"real": np.ones(rows, bool), "weights": np.empty(0), "counts": counts}
    fields |= {"noise_weights": np.ones(rows if summed else 0), "secure": False}
    fields["ratios"] = None if ratios is None else np.tile(ratios, rows // len(ratios))
    return ByAgent(
        **fields,
        partial_participation=False,
        noise_in_rewards=not summed and getattr(draws, "noise_in_rewards", False),
    )
