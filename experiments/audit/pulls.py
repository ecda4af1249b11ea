"""Draws pulled arms and released rewards for an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from experiments.audit import events
from experiments.audit.events import ARM, ARMS, UPLOADS, Numbers, Stream
from experiments.audit.uploads import Schedule, count_rounds, make_instance, plan_rounds
from fmab_jax.algorithms.base import Disclosure
from fmab_jax.algorithms.families import index, index_trial
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.episodes import Episodes, EpisodesTrial
from fmab_jax.draws import ByAgent
from fmab_jax.elimination import EliminationTrial
from fmab_jax.errors import format_quantity
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.instances import Instance
from fmab_jax.parts.rewards import Law
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import Integer, PerArm, Scalar

# Slots of a run of index policies or episodes. Elimination decides in one of its first rounds in
# which the gap can exceed the radius.
_SLOTS, _MOST_ROUNDS, _DECISIONS = 32, 30, 2
_FAR_ENOUGH = 0.95
# Chances of an elimination in the data sets.
_CHANCES = (0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4)


@dataclass(frozen=True)
class Releases:
    """Rewards that an index policy releases one by one; rows are runs."""

    row: Disclosure
    trial: index_trial.IndexTrial
    root: np.uint32
    size: int
    view: ClassVar[str] = "messages"
    compete: ClassVar[bool] = False
    is_stronger: ClassVar[bool] = False

    def streams(self) -> list[Stream]:
        """Returns one reward, and several."""
        title = f"{UPLOADS} released rewards, the last differs"
        return [
            Stream("one released reward", -1, 0, (0,)),
            Stream(title, -1, UPLOADS - 1, tuple(range(UPLOADS))),
        ]

    def draw(self, data: int, batch: int) -> Float[np.ndarray, "slot run"]:
        """Returns a batch of runs in which the reward of one slot, -1 for none, is 1."""
        means = (np.arange(UPLOADS) == data).astype(np.float64)
        return np.asarray(
            _draw_releases(self.trial, self.root, events.make_seed(data, batch), means)
        )

    def show(self, stream: Stream, batch: Float[np.ndarray, "slot run"]) -> Numbers:
        """Returns the released rewards of some slots."""
        values = batch[list(stream.rounds)].T
        names = [f"slot {t + 1}" for t in stream.rounds]
        return Numbers(values, np.ones(len(names)), names, len(names) - 1)


@jax.jit
@events.trace_by_default
def _draw_releases(
    trial: index_trial.IndexTrial, root: Array, seed: Array, means: Array
) -> Float[Array, "slot run"]:
    key = keys.seed_key(root, seed)
    arm = jnp.zeros(trial.padded_agents, jnp.int32)

    def slot(mean: Array, number: Array) -> Array:
        # A mean of 0 or 1 is the reward itself.
        at = jnp.full((1, ARMS), mean)
        instance = Instance(at, at[0], mean, (at,))
        return index_trial.draw_rewards(trial, instance, key, number, arm)

    numbers = jnp.arange(1, len(means) + 1, dtype=jnp.int64)
    return jnp.stack([slot(mean, number) for mean, number in zip(means, numbers, strict=True)])


def expose_releases(
    algorithm: index.IndexPolicy, exchange: Exchange, row: Disclosure, root: np.uint32
) -> Releases:
    """Returns the exposure of released rewards."""
    problem, size = events.make_zero_problem(exchange.agents), events.BATCH
    trial = algorithm.bind(problem, events.HORIZON, exchange=exchange)
    return Releases(row, replace(trial, padded_agents=size, shared=False), root, size)


@dataclass(frozen=True)
class _FixedRewards(Law):
    """Fixed rewards: an arm always gives the same one, except one changed reward.

    Parameters are the reward of the arm and two marks of the changed reward: the two words of the
    key of its epoch or episode, or its uniform number and its value.
    """

    name: ClassVar[str] = "given"
    lane: int = ARM  # of the sum that holds the reward

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the cumulants of a reward without variance."""
        return (parameters[0], *(jnp.zeros_like(parameters[0]),) * 6)

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns the reward of the arm, or the changed one where ``u`` is its mark."""
        base, number, value = parameters
        return jnp.where(u == number, value, base)

    def total(self, k0: Array, k1: Array, lane: Array, pulls: Array, *parameters: Array) -> Array:
        """Returns the sum of the rewards; in the marked epoch one reward is flipped."""
        base, first, second = parameters
        is_changed = (k0.astype(jnp.float64) == first) & (k1.astype(jnp.float64) == second)
        step = jnp.where(base < 1.0, 1.0, -1.0)
        return pulls * base + jnp.where(is_changed & (lane == jnp.uint32(self.lane)), step, 0.0)


_Trial = EliminationTrial | EpisodesTrial | index_trial.IndexTrial


class _Data(NamedTuple):
    """Two neighbouring data sets; ``when`` is 0 in the one without the change."""

    base: tuple[float, float]  # reward of each arm
    when: int  # epoch, episode, or slot, of the reward that differs; 0 for none
    value: float = 1.0  # the reward itself; of an epoch it is 1 more than that of its arm


@dataclass(frozen=True)
class Actions:
    """Pulls of the second arm in some slots of a whole run."""

    row: Disclosure
    trial: _Trial  # with fixed rewards
    root: np.uint32  # seed
    size: int  # runs of a batch
    slots: Int[np.ndarray, " slot"]  # observed slots
    names: tuple[str, ...]  # a name for each slot
    data: tuple[_Data, ...]  # candidates
    words: str  # name of the stream
    view: ClassVar[str] = "actions"
    compete: ClassVar[bool] = True
    is_stronger: ClassVar[bool] = False

    def streams(self) -> list[Stream]:
        """Returns the whole run, for each of the data."""
        return [
            Stream(self.words.format(data.when), 2 * place, 2 * place + 1)
            for place, data in enumerate(self.data)
        ]

    def draw(self, data: int, batch: int) -> Float[np.ndarray, "run number"]:
        """Returns how many agents pulled the second arm in each slot.

        Args:
            data: Twice the place of the candidate, plus 1 with the changed reward.
            batch: Number of the batch.
        """
        place, is_changed = divmod(data, 2)
        words = (self.root, np.uint32(data), np.uint32(batch * self.size))
        base, when, value = self.data[place]
        neighbour = np.array(base), np.int64(when if is_changed else 0), np.float64(value)
        grid = np.unique([self.slots - 1, self.slots])
        regret = np.asarray(_run_regret(self.trial, words, neighbour, grid, size=self.size))
        before, after = (np.searchsorted(grid, at) for at in (self.slots - 1, self.slots))
        return regret[:, after] - regret[:, before]

    def show(self, stream: Stream, batch: Float[np.ndarray, "run number"]) -> Numbers:
        """Returns all of it."""
        return Numbers(batch, np.ones(len(self.names)), list(self.names), 0, counts=True)


@partial(jax.jit, static_argnames="size")
@events.trace_by_default
def _run_regret(
    trial: _Trial,
    words: tuple[Array, Array, Array],
    data: tuple[PerArm, Integer, Scalar],
    grid: Int[Array, " time"],
    *,
    size: int,
) -> Float[Array, "run time"]:
    """Returns the regret of whole runs, numbered from the last of three words on."""
    root, side, first = words
    base, *change = data

    def run_of(number: Array) -> tuple[Instance, Array]:
        key = jax.random.fold_in(keys.seed_key(root, side), number)
        marks = _mark_reward(trial, key, *change)
        parameters = (base[None, :], *(jnp.broadcast_to(x, (1, ARMS)) for x in marks))
        return make_instance(base, parameters), key

    instance, key = jax.vmap(run_of)(first + jnp.arange(size, dtype=jnp.uint32))
    if not isinstance(trial, EliminationTrial):
        return jax.vmap(lambda instance, key: trial.run(instance, grid, key).regret)(instance, key)
    trials, slots = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (size, *jnp.shape(x))), (trial, grid)
    )
    return trials.run_batch(instance, slots, key).regret


def _mark_reward(trial: _Trial, key: Array, when: Integer, value: Scalar) -> tuple[Array, Array]:
    """Returns two numbers that mark the changed reward; epoch or slot 0 marks none."""
    if isinstance(trial, index_trial.IndexTrial):
        words = keys.stream_key(key, 0, keys.REWARD)
        return keys.uniform(*words, jnp.uint32(0), when.astype(jnp.uint32)), value
    alone = not trial.shared if isinstance(trial, EpisodesTrial) else trial.alone
    key = keys.agent_key(key, jnp.int32(0)) if alone else key
    words = keys.stream_key(key, when, keys.REWARD)
    return words.k0.astype(jnp.float64), words.k1.astype(jnp.float64)


def expose_slots(
    algorithm: Episodes | index.IndexPolicy, exchange: Exchange, row: Disclosure, root: np.uint32
) -> Actions:
    """Returns the exposure of actions by slot; of one agent where all are alone."""
    if exchange.alone:
        exchange = algorithm.exchange(1)
    trial = algorithm.bind(events.make_zero_problem(exchange.agents), _SLOTS, exchange=exchange)
    # The second arm's first pull; in 0 or 1 the change is as large as it can be.
    first = 1 if isinstance(algorithm, Episodes) else ARM + 1
    values = [(reward, base) for reward in (0.0, 1.0) for base in (0.0, 0.5, 1.0)]
    return Actions(
        *(row, replace(trial, law=_FixedRewards()), root, max(1, events.BATCH // exchange.agents)),
        slots=np.arange(1, _SLOTS + 1),
        names=tuple(f"slot {t}" for t in range(1, _SLOTS + 1)),
        data=tuple(_Data((base, reward), first, 1.0 - reward) for reward, base in values),
        words=f"arms pulled in {_SLOTS} slots, reward of slot {ARM + 1}",
    )


def expose_rounds(
    algorithm: Elimination, exchange: Exchange, row: Disclosure, root: np.uint32
) -> Actions | str:
    """Returns the exposure of the actions of elimination: which arm leaves, or pulls in waits."""
    if exchange.alone:
        exchange = algorithm.exchange(1)
    trial, rounds, decisive = _find_decisive_rounds(algorithm, exchange, events.HORIZON)
    sees_waits = trial.waits and not (
        isinstance(trial.draws, ByAgent) and trial.draws.noise_in_rewards
    )
    if sees_waits and math.isinf(row.epsilon):
        return "agents that wait act on rewards without noise, which nothing covers"

    def slots() -> np.ndarray:
        """Returns the first slot after each round, or of a wait."""
        number = np.arange(1, 2 if sees_waits else decisive[-1] + 2)
        pulls = np.asarray(rounds.pulls[: len(number)]).astype(np.int64)
        return ARMS * pulls + int(exchange.wait) * (number - sees_waits) + 1

    if sees_waits or decisive:
        # A shorter horizon has shorter epochs, so all of them fit into it.
        trial, rounds, decisive = _find_decisive_rounds(algorithm, exchange, int(slots()[-1]))
    if not (sees_waits or decisive):
        return "no arm can leave in the first rounds"
    weights = np.asarray(getattr(trial.draws, "weights", ()))
    row_of = int(np.argmax(weights)) if weights.size else 0
    if trial.draws.ratios is not None and getattr(trial.draws, "counts", None) is None:
        # Each agent has its own noise: the smallest hides least.
        row_of = int(np.argmin(np.asarray(trial.draws.ratios)[: exchange.agents]))
    trial = replace(trial, draws=replace(trial.draws, law=_FixedRewards(row_of * ARMS + ARM)))
    start = row, trial, root, max(1, events.BATCH // trial.elements()), slots()
    if sees_waits:
        # One reward changes which arm its agent pulls.
        data = (_Data((0.5 / float(rounds.pulls[0]), 0.0), 1),)
        return Actions(*start, ("first wait",), data, "arms pulled in a wait, reward of round {}")
    return Actions(
        *start,
        names=tuple(f"after round {r}" for r in range(1, decisive[-1] + 2)),
        data=_build_near_decisions(algorithm, exchange, trial, rounds, decisive),
        words=f"arms pulled in {format_quantity(decisive[-1] + 1, 'round')}, reward of round {{}}",
    )


def _find_decisive_rounds(
    algorithm: Elimination, exchange: Exchange, horizon: int
) -> tuple[EliminationTrial, Schedule, list[int]]:
    """Returns a trial, its rounds, and the first rounds in which an arm can leave."""
    trial = algorithm.bind(events.make_zero_problem(exchange.agents), horizon, exchange=exchange)
    number = int(min(_MOST_ROUNDS, count_rounds(algorithm, trial)))
    rounds: Schedule = jax.device_get(plan_rounds(trial, rounds=number))
    near = np.flatnonzero(2.0 * rounds.radius <= _FAR_ENOUGH)[:_DECISIONS]
    return trial, rounds, near.tolist()


def _build_near_decisions(
    algorithm: Elimination,
    exchange: Exchange,
    trial: EliminationTrial,
    rounds: Schedule,
    decisive: list[int],
) -> tuple[_Data, ...]:
    """Returns data in which noise, or the changed reward, decides which arm stays.

    The first arm is better by so much that noise lets the second one leave with some chance. The
    data are chosen with Laplace noise, whatever the mechanism.
    """
    rng, data, noise = np.random.default_rng(0), [], np.zeros(1)
    all_report = exchange.reporting == exchange.agents or trial.alone
    heaviest = float(np.max(exchange.weights)) if all_report else 1.0 / exchange.reporting
    for at in decisive:
        if trial.draws.noisy:
            terms = 1 if algorithm.sums_securely or trial.alone else exchange.reporting
            terms *= at + 1 if algorithm.remembers else 1
            gammas = [rng.standard_gamma(2.0 * terms, 10**6) for _ in range(2)]
            noise = float(rounds.scale[at]) * (gammas[0] - gammas[1])
        pulls = float((rounds.pulls if algorithm.remembers else rounds.fresh)[at])
        for chance in _CHANCES if trial.draws.noisy else _CHANCES[:1]:
            short = float(np.quantile(noise, 1.0 - chance)) * heaviest
            lead = 2.0 * float(rounds.radius[at]) + (0.5 * heaviest - max(short, 0.0)) / pulls
            data.append(_Data((min(max(lead, 0.0), 1.0), 0.0), at + 1))
    return tuple(data)
