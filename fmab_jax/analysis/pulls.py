"""Arms that are pulled, and rewards that policies release, drawn many times for an audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from fmab_jax.algorithms.base import Seen
from fmab_jax.algorithms.families import index, index_trial
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.elimination_trial import EliminationTrial
from fmab_jax.algorithms.families.episodes import Episodes, EpisodesTrial
from fmab_jax.analysis import streams
from fmab_jax.analysis.streams import ARM, ARMS, UPLOADS, Exposure, Numbers, Stream
from fmab_jax.analysis.uploads import (
    Schedule,
    Sight,
    Uploads,
    budget,
    instance_of,
    noisy,
    scheduled,
    uploads_of,
)
from fmab_jax.core import keys
from fmab_jax.core.backend import traced_here
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import Instance
from fmab_jax.core.rewards import Law
from fmab_jax.draws import ByAgent

# Actions of index policies and of episodes are those of so many slots; elimination decides in one
# of its first rounds in which a mean can be far enough behind.
_SLOTS, _MOST_ROUNDS, _DECISIONS = 32, 30, 2
_FAR_ENOUGH = 0.95
# How often noise leads to a decision, in the data sets that are tried.
_CHANCES = (0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4)


def _acts_on_noise(trial: EliminationTrial) -> bool:
    """Tells whether agents that wait go by their noisy sums."""
    return isinstance(trial.draws, ByAgent) and trial.draws.merged


@dataclass(frozen=True)
class Waits(Uploads):
    """The arm that an agent pulls while messages travel; of the runs that have these."""

    @property
    def view(self) -> str:
        """As in `streams.VIEWS`."""
        return "actions"

    def groups(self) -> list[list[Stream]]:
        """Returns the wait of the first round."""
        bare = not _acts_on_noise(self.trial) or not noisy(self.trial, 1)
        words, shift = "arm pulled while waiting", self.row.epsilon
        return [[Stream(self.row, words, -1, 0, (0,), 2, shift, waiting=True, bare=bare)]]

    def seen(self, stream: Stream, drawn: Any) -> Numbers:
        """Returns the arm."""
        played = np.asarray(drawn[0].played)[0, :: self.each]
        return Numbers(played[:, None].astype(np.float64), np.ones(1), ["the arm's index"], 0)


@dataclass(frozen=True)
class Releases:
    """Rewards that an index policy releases one by one; rows are runs."""

    row: Seen
    trial: index_trial.IndexTrial
    root: np.uint32
    size: int
    view: ClassVar[str] = "messages"

    def groups(self) -> list[list[Stream]]:
        """Returns what there is to see."""
        own, shift, every = self.trial.own, self.row.epsilon, tuple(range(UPLOADS))
        noises = 0 if own.get("bits", 0.0) > 0.0 else 1
        # A release that has no epsilon of its own may have other noise.
        bare = bool(np.isinf(own.get("epsilon", 0.0)))
        one, some = "one released reward", f"{UPLOADS} released rewards, the last differs"
        return [
            [Stream(self.row, one, -1, 0, (0,), noises, shift, bare=bare)],
            [Stream(self.row, some, -1, 2, every, noises, shift, bare=bare)],
        ]

    def drawn(self, data: int, batch: int) -> Float[np.ndarray, "slot run"]:
        """Returns a batch of runs in which the reward of one slot, -1 for none, is 1."""
        means = (np.arange(UPLOADS) == data).astype(np.float64)
        seed = streams.seed_of(data, batch)
        return np.asarray(_released(self.trial, self.root, seed, means))

    def seen(self, stream: Stream, drawn: Float[np.ndarray, "slot run"]) -> Numbers:
        """Returns what is seen of a batch."""
        heard = drawn[list(stream.heard)]
        names = [f"slot {t + 1}" for t in stream.heard]
        return Numbers(heard.T, np.ones(len(heard)), names, len(names) - 1)


@jax.jit
@traced_here
def _released(
    trial: index_trial.IndexTrial,
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    means: Float[Array, " slot"],
) -> Float[Array, "slot run"]:
    key = keys.seed_key(root, seed)
    arm = jnp.zeros(trial.room, jnp.int32)

    def slot(mean: Array, number: Array) -> Array:
        # A mean of 0 or 1 is the reward itself.
        at = jnp.full((1, ARMS), mean)
        instance = Instance(at, at[0], mean, (at,))
        return index_trial.rewarded(trial, instance, key, number, arm)

    numbers = jnp.arange(1, len(means) + 1, dtype=jnp.int64)
    return jnp.stack([slot(mean, number) for mean, number in zip(means, numbers, strict=True)])


def releases_of(
    algorithm: index.IndexPolicy, exchange: Exchange, row: Seen, root: np.uint32, _: Any
) -> list[Exposure]:
    """Returns what shows released rewards."""
    problem, size = streams.unrewarded(exchange.agents), streams.BATCH
    trial = algorithm.bind(problem, streams.HORIZON, exchange=exchange)
    return [Releases(row, replace(trial, room=size, shared=False), root, size)]


@dataclass(frozen=True)
class _Given(Law):
    """Rewards as they are given: the same from an arm always, but for one.

    Parameters are the arm's reward; and what the random numbers of the one reward are known by,
    with its value. Those of an epoch, or of an episode, are the words of its key, a slot's is its
    uniform number.
    """

    name: ClassVar[str] = "given"
    lane: int = ARM  # of the sum that holds the reward

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the cumulants of a reward without variance."""
        return (parameters[0], *(jnp.zeros_like(parameters[0]),) * 6)

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns the arm's reward, or the changed one where the uniform number is its own."""
        usual, number, changed = parameters
        return jnp.where(u == number, changed, usual)

    def total(
        self,
        k0: UInt32[Array, ...],
        k1: UInt32[Array, ...],
        lane: UInt32[Array, ...],
        pulls: Float[Array, ...],
        *parameters: Array,
    ) -> Float[Array, ...]:
        """Returns the arm's rewards: in the epoch of these words 1 more, or 1 less of all 1."""
        usual, first, second = parameters
        here = (k0.astype(jnp.float64) == first) & (k1.astype(jnp.float64) == second)
        changed = jnp.where(usual < 1.0, 1.0, -1.0)
        return pulls * usual + jnp.where(here & (lane == jnp.uint32(self.lane)), changed, 0.0)


class _Data(NamedTuple):
    """Two neighbouring data sets, of which one number tells which of them it is."""

    base: tuple[float, ...]  # reward of each arm
    when: int  # epoch, episode, or slot, of the reward that differs
    value: float = 1.0  # the reward itself; of an epoch it is 1 more than that of its arm


@dataclass(frozen=True)
class Actions:
    """How often the second arm is pulled, stretch by stretch, over a whole run."""

    row: Seen  # of the ledger
    trial: Any  # whose rewards are given
    root: np.uint32  # seed
    size: int  # runs of a batch
    grid: Any  # slots at which regret is looked at
    stretches: Any  # pairs of places in the grid
    names: tuple[str, ...]  # of each stretch
    # Data sets, and how many noises lie on what they lead to.
    tried: tuple[tuple[_Data, float | None], ...]
    words: str  # what is seen
    bare: bool = False  # whether nothing random is left by construction
    view: ClassVar[str] = "actions"

    def groups(self) -> list[list[Stream]]:
        """Returns one group: the data that tell most count."""
        row, told, bare = self.row, self.words.format, self.bare
        ways = [(told(data.when), (i, 0), (i, 1), (), n) for i, (data, n) in enumerate(self.tried)]
        return [[Stream(row, *way, row.epsilon, bare=bare) for way in ways]]

    def drawn(self, data: tuple[int, int], batch: int) -> Float[np.ndarray, "run number"]:
        """Returns how often the second arm was pulled in each stretch."""
        place, changed = data
        one, _ = self.tried[place]
        words = (self.root, np.uint32(2 * place + changed), np.uint32(batch * self.size))
        marks = np.int64(one.when if changed else 0), np.float64(one.value)
        given = words, np.array(one.base), *marks, self.grid
        regret = np.asarray(_regret(self.trial, *given, size=self.size))
        ends = np.asarray(self.stretches)
        return regret[:, ends[:, 1]] - regret[:, ends[:, 0]]

    def seen(self, stream: Stream, drawn: Float[np.ndarray, "run number"]) -> Numbers:
        """Returns all of it."""
        return Numbers(drawn, np.ones(len(self.names)), list(self.names), 0, counts=True)


@partial(jax.jit, static_argnames="size")
@traced_here
def _regret(
    trial: Any,
    words: tuple[UInt32[Array, ""], UInt32[Array, ""], UInt32[Array, ""]],
    base: Float[Array, " arm"],
    when: Int[Array, ""],
    value: Float[Array, ""],
    grid: Int[Array, " time"],
    *,
    size: int,
) -> Float[Array, "run time"]:
    """Returns the regret of whole runs, numbered from the last of three words on."""
    root, side, first = words

    def given(number: Array) -> tuple[Instance, Array]:
        key = jax.random.fold_in(keys.seed_key(root, side), number)
        marks = _marks(trial, key, when, value)
        parameters = (base[None, :], *(jnp.broadcast_to(x, (1, ARMS)) for x in marks))
        return instance_of(base, parameters), key

    instance, key = jax.vmap(given)(first + jnp.arange(size, dtype=jnp.uint32))
    if isinstance(trial, EliminationTrial):
        many, slots = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (size, *jnp.shape(x))), (trial, grid)
        )
        return many.run_batch(instance, slots, key).regret
    return jax.vmap(lambda instance, key: trial.run(instance, grid, key).regret)(instance, key)


def _marks(trial: Any, key: Array, when: Array, value: Array) -> tuple[Array, Array]:
    """Returns two numbers that mark the changed reward; epoch or slot 0 marks none."""
    if isinstance(trial, (EliminationTrial, EpisodesTrial)):
        alone = not trial.shared if isinstance(trial, EpisodesTrial) else trial.alone
        own = keys.agent_key(key, jnp.int32(0)) if alone else key
        words = keys.stream_key(own, when, keys.REWARD)
        return words.k0.astype(jnp.float64), words.k1.astype(jnp.float64)
    words = keys.stream_key(key, 0, keys.REWARD)
    return keys.uniform(*words, jnp.uint32(0), when.astype(jnp.uint32)), value


def slots_of(
    algorithm: Episodes | index.IndexPolicy, exchange: Exchange, row: Seen, root: np.uint32, _: Any
) -> list[Exposure]:
    """Returns what shows the actions of a policy slot by slot: of one agent, if all are alone."""
    if exchange.alone:
        exchange = algorithm.exchange(1)
    trial = algorithm.bind(streams.unrewarded(exchange.agents), _SLOTS, exchange=exchange)
    slots = np.arange(_SLOTS + 1, dtype=np.int64)
    # The second arm's first pull; in 0 or 1 the change is as large as it can be.
    first = 1 if isinstance(algorithm, Episodes) else ARM + 1
    whole = Actions(
        row,
        replace(trial, law=_Given()),
        root,
        max(1, streams.BATCH // exchange.agents),
        slots,
        np.stack([slots[:-1], slots[1:]], axis=1),
        tuple(f"slot {t}" for t in slots[1:]),
        tuple(
            (_Data((other, own), first, 1.0 - own), None)
            for own in (0.0, 1.0)
            for other in (0.0, 0.5, 1.0)
        ),
        f"arms pulled in {_SLOTS} slots, reward of slot {ARM + 1}",
    )
    return [whole]


def rounds_of(
    algorithm: Elimination, exchange: Exchange, row: Seen, root: np.uint32, _: Any
) -> list[Exposure] | str:
    """Returns what shows the actions of elimination: who leaves in which round, and waits.

    In the data the first arm is better by so much that noise, or the reward that differs, decides
    whether the second one leaves.
    """
    if exchange.alone:
        exchange = algorithm.exchange(1)
    problem = streams.unrewarded(exchange.agents)

    def bound(horizon: int) -> tuple[EliminationTrial, Schedule, list[int]]:
        trial = algorithm.bind(problem, horizon, exchange=exchange)
        most = int(min(_MOST_ROUNDS, budget(algorithm, trial)))
        rounds = scheduled(trial, most)
        near = np.flatnonzero(2.0 * rounds.radius <= _FAR_ENOUGH)[:_DECISIONS]
        return trial, rounds, near.tolist()

    trial, rounds, decisive = bound(streams.HORIZON)
    found: list[Exposure] = []
    if trial.waits:
        (uploads,) = uploads_of(algorithm, exchange, row, root, Sight("messages"))
        found = [Waits(**vars(uploads))]
        if not _acts_on_noise(trial):
            # Pulls during the wait are not covered, so there is nothing to try.
            return found
    wait = int(exchange.wait)

    def ends(rounds: Schedule, last: int) -> list[int]:
        return [ARMS * int(pulls) + r * wait for r, pulls in enumerate(rounds.pulls[: last + 1])]

    if decisive:
        # A shorter horizon has shorter epochs, so all of them fit into it.
        trial, rounds, decisive = bound(ends(rounds, decisive[-1])[-1] + wait + 1)
    if not decisive:
        return found or "no arm can leave in the first rounds"
    grid, stretches, names = [0], [], []
    for round_, end in enumerate(ends(rounds, decisive[-1]), start=1):
        grid += [end, end + wait, end + wait + 1]
        if wait:
            stretches.append((end, end + wait))
            names.append(f"waiting in round {round_}")
        stretches.append((end + wait, end + wait + 1))
        names.append(f"after round {round_}")
    slots = np.unique(grid)
    rng = np.random.default_rng(0)
    tried = []
    weights = np.asarray(exchange.weights, np.float64)
    some_report = exchange.reporting < exchange.agents and not trial.alone
    heaviest = 1.0 / exchange.reporting if some_report else float(weights.max())
    per_agent = (weights / weights.max())[: exchange.reporting]
    for at in decisive:
        noise = np.zeros(1)
        if trial.draws.noisy:
            terms = 1 if algorithm.sums_securely or trial.alone else len(per_agent)
            terms *= at + 1 if algorithm.remembers else 1
            gammas = [rng.standard_gamma(2.0 * terms, 10**6) for _ in range(2)]
            noise = rounds.scale[at] * (gammas[0] - gammas[1])
        held = (rounds.pulls if algorithm.remembers else rounds.fresh)[at]
        alike = not some_report and np.ptp(per_agent) == 0.0
        for chance in _CHANCES if trial.draws.noisy else _CHANCES[:1]:
            short = float(np.quantile(noise, 1.0 - chance)) * heaviest
            lead = 2.0 * float(rounds.radius[at]) + (0.5 * heaviest - max(short, 0.0)) / held
            data = _Data((min(max(lead, 0.0), 1.0), 0.0), at + 1)
            tried.append((data, 2.0 * terms if trial.draws.noisy and alike else None))
    weights = np.asarray(getattr(trial.draws, "weights", ()))
    row_of = int(np.argmax(weights)) if weights.size else 0
    agents = trial.elements()
    whole = Actions(
        row,
        replace(trial, draws=replace(trial.draws, law=_Given(row_of * ARMS + ARM))),
        root,
        max(1, streams.BATCH // agents),
        slots.astype(np.int64),
        np.searchsorted(slots, np.array(stretches)),
        tuple(names),
        tuple(tried),
        f"arms pulled in {decisive[-1] + 1} rounds, reward of round {{}}",
        not some_report and not noisy(trial, decisive[-1] + 1),
    )
    return [*found, whole]
