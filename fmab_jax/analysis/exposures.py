"""What a run lets out, drawn many times for two data sets that differ in one reward.

An audit (`fmab_jax.analysis.audit`) asks how far the two can be told apart. This module plays the
side of the algorithm. Each row of a privacy ledger is shown by what its reader would see: single
messages, sums over agents less what the reader knows of them, or the arms that are pulled over a
whole run. All of it comes from the functions that a simulation calls.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.base import (
    ACTIONS,
    ANYBODY,
    LAPLACE,
    OUTSIDE,
    SERVER,
    Algorithm,
    Seen,
    ledger_of,
)
from fmab_jax.algorithms.families import epochs, index, index_trial
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.elimination_trial import EliminationTrial
from fmab_jax.algorithms.families.episodes import Episodes, EpisodesTrial
from fmab_jax.algorithms.families.rounds import planned
from fmab_jax.core import keys, samplers
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.core.instances import Instance
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Law
from fmab_jax.run.contract import asking

VIEWS = ("messages", "sums", "actions")
"""What can be shown: single messages, or released rewards; sums over agents; arms pulled."""

STRONGER = ", and the noisy sums that they follow from"
"""What a viewer sees that is stronger than the one that a row of the ledger is about."""

# Rows of agents that are drawn in one go.
BATCH = 2**16
# Messages follow the schedule of so many slots.
_HORIZON = 100_000
_UPLOADS, _ARMS = 3, 2
# The reward that differs: of the first agent, of an arm that loses ties.
_ARM = 1
# Actions of index policies and of episodes are those of so many slots; elimination decides in one
# of its first rounds in which a mean can be far enough behind.
_SLOTS, _MOST_ROUNDS, _DECISIONS = 32, 30, 2
_FAR_ENOUGH = 0.95
# How often noise leads to a decision, in the data sets that are tried.
_CHANCES = (0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4)


class Stream(NamedTuple):
    """Something that is seen of two data sets.

    Attributes:
        who: Who sees it, as in the ledger.
        words: What is seen, and which reward differs.
        claim: Epsilon of pure differential privacy; infinity for none.
        over: Noises that add up, as in the ledger.
        without: Names the data set without the reward, for `Source.drawn`.
        with_it: Names the neighbouring one.
        heard: Epochs, or slots, of which something is seen; none for whole runs.
        waiting: What is seen is the arm that is pulled while messages travel.
        noises: Laplace variables on the number in which the reward is first seen; a fraction for a
            share of one; 0 for one random bit; None if that is not known.
        shift: The reward in units of their scale.
        what: Is seen, as in the ledger.
        law: As in the ledger.
        bare: Whether nothing random is left by construction, so that neither data set ever lets out
            anything else: noise of scale 0, or none.
    """

    who: str
    words: str
    claim: float
    over: int
    without: Hashable
    with_it: Hashable
    heard: tuple[int, ...] = ()
    waiting: bool = False
    noises: float | None = None
    shift: float = math.nan
    what: str = ""
    law: str = LAPLACE
    bare: bool = False


class Numbers(NamedTuple):
    """What is seen in a batch of runs.

    Attributes:
        values: [run, number], in rewards; or how often an arm was pulled.
        lengths: [number] rewards that each is a sum of.
        names: What each number is.
        first: The number in which the changed reward is first seen.
        counts: Whether the numbers are counts of pulls, in the order of time.
    """

    values: Float[np.ndarray, "run number"]
    lengths: Float[np.ndarray, " number"]
    names: list[str]
    first: int
    counts: bool = False


class Unseen(NamedTuple):
    """A row of the ledger that no run can show.

    Attributes:
        who: Who sees it, as in the ledger.
        what: What is seen.
        epsilon: That is claimed.
        why: Why it cannot be shown.
    """

    who: str
    what: str
    epsilon: float
    why: str


@runtime_checkable
class Source(Protocol):
    """What draws runs of one view."""

    @property
    def view(self) -> str:
        """As in `VIEWS`."""

    @property
    def size(self) -> int:
        """Runs of a batch."""

    def groups(self) -> list[list[Stream]]:
        """Returns what is seen; of several streams in a group, the one that tells most counts."""

    def drawn(self, data: Any, batch: int) -> Any:
        """Returns a batch of runs of a data set; every data set has runs of its own."""

    def seen(self, stream: Stream, drawn: Any) -> Numbers:
        """Returns what is seen of a batch."""


def exposed(
    algorithm: Algorithm, exchange: Exchange, root: int, views: Sequence[str]
) -> tuple[list[Source], list[Unseen]]:
    """Returns what shows the rows of an algorithm's ledger, and what cannot be shown.

    Call it in `fmab_jax.core.scope.own_settings`.

    Args:
        algorithm: Configured.
        exchange: Of its agents.
        root: Root seed.
        views: Of `VIEWS`.
    """
    sources: dict[Any, list[Source]] = {}
    unseen = []
    rows = sorted(_claims(algorithm, exchange), key=lambda row: row.epsilon)
    if not _of_a_family(algorithm, exchange):
        why = "its loop is its own"
        return [], [Unseen(row.who, row.what, float(row.epsilon), why) for row in rows]
    for row, view, made in ((r, *each) for r in rows for each in _placed(algorithm, exchange, r)):
        if view not in (*views, ""):
            continue
        if isinstance(made, str):
            unseen.append(Unseen(row.who, row.what, float(row.epsilon), made))
            continue
        # Of two rows about the same, the smaller epsilon is the stronger claim.
        if made in sources:
            continue
        kind, details = made
        found = kind(algorithm, exchange, row, np.uint32(root), details)
        if isinstance(found, str):
            unseen.append(Unseen(row.who, row.what, float(row.epsilon), found))
        else:
            sources[made] = found
    every = [source for found in sources.values() for source in found]
    return sorted(every, key=lambda source: VIEWS.index(source.view)), unseen


def _claims(algorithm: Algorithm, exchange: Exchange) -> list[Seen]:
    """Returns the ledger; of a class that states none, with what its `privacy` states.

    That is of messages, and of actions only where nothing else is seen: a message's epsilon says
    nothing of an agent that acts on rewards of its own.
    """
    rows = list(ledger_of(algorithm, exchange))
    order = type(algorithm).__mro__
    stating = min(n for n, c in enumerate(order) if "privacy" in vars(c))
    # What a class inherits says nothing of what it has changed.
    changed = min(n for n, c in enumerate(order) if "ledger" in vars(c))
    if type(algorithm).ledger is not Algorithm.ledger or stating > changed:
        return rows
    about = [row.who not in (ACTIONS, OUTSIDE) for row in rows]
    with asking(type(algorithm)):
        epsilon = float(algorithm.privacy(exchange)["epsilon_message" if any(about) else "epsilon"])
        if not epsilon >= 0.0:
            raise ValueError(f"privacy states {epsilon}, not an epsilon >= 0")
    why = "stated by privacy; no ledger is"
    return [
        row._replace(epsilon=min(row.epsilon, epsilon), why=why) if own is any(about) else row
        for row, own in zip(rows, about, strict=True)
    ]


def _of_a_family(algorithm: Algorithm, exchange: Exchange) -> bool:
    """Tells whether the loop is one whose rewards can be given."""
    if not isinstance(algorithm, (Elimination, Episodes, index.IndexPolicy)):
        return False
    trial = algorithm.bind(Problem([0.0] * _ARMS, exchange.agents), _SLOTS, exchange=exchange)
    return isinstance(trial, (EliminationTrial, EpisodesTrial, index_trial.IndexTrial))


def _placed(algorithm: Algorithm, exchange: Exchange, row: Seen) -> list[tuple[str, Any]]:
    """Returns which views a row is about, and who shows each with which details, or why nobody."""
    if row.who in (ACTIONS, OUTSIDE):
        # The actions of an agent that is alone follow from its noisy sums.
        behind = isinstance(algorithm, Elimination) and exchange.alone
        sums = [("messages", (_uploads_of, _Sight("messages")))] if behind else []
        return [*sums, ("actions", (_actions, ()))]
    if isinstance(algorithm, index.IndexPolicy):
        if type(algorithm).release is not index.IndexPolicy.release and row.who in ANYBODY:
            return [("messages", (_released_rewards, ()))]
        return [("messages", "a policy does not say which part of its state it sends")]
    if isinstance(algorithm, Episodes):
        return [("sums", "sums of episodes are not shown; what follows from them is")]
    assert isinstance(algorithm, Elimination)
    if algorithm.sums_securely:
        # Everybody but the server knows a share of the noise.
        left = exchange.agents - (row.who != SERVER)
        return [("sums", (_uploads_of, _Sight("sums", shares=(left, exchange.agents))))]
    found = [view for view in exchange.views if view.who == row.who]
    if row.who == ANYBODY[1]:
        found = [View(row.who, 1)]
    if not found:
        return [("", "nothing in the exchange tells what that is")]
    (view,) = found[:1]
    if view.over == 1:
        if view.what != View("", 1).what and row.what == view.what:
            why = "weighted sums of single messages, which leak no more than these"
            return [("messages", why)]
        return [("messages", (_uploads_of, _Sight("messages")))]
    redrawn = exchange.reporting < exchange.agents and not row.what.startswith("one round")
    return [("sums", (_uploads_of, _Sight("sums", view.over, view.inside, redrawn)))]


class _Sight(NamedTuple):
    """What is seen of uploads.

    Attributes:
        view: "messages" or "sums".
        over: Agents of a sum; 1 for single messages, and for a secure sum.
        inside: Whether whoever sees it takes an own message out.
        redrawn: Whether the agents of the sum are drawn anew each round.
        shares: Shares of the noise that are not known, and all of them, of a secure sum.
    """

    view: str
    over: int = 1
    inside: bool = False
    redrawn: bool = False
    shares: tuple[int, int] | None = None


@dataclass(frozen=True)
class Uploads:
    """Messages of an elimination algorithm, or their sums; rows of the loop's arrays are agents.

    Attributes:
        row: Of the ledger.
        trial: With as many rows as a batch needs, but N and the noise of the real agents.
        problem: All rewards are 0.
        root: Seed.
        rounds: Uploads that there are at most.
        each: Agents drawn in one run.
        weights: [agent] in a sum: 1 of the agent with the changed reward, 0 of the one that looks
            and takes its own message out.
        reporting: N, the agents of a round's sum.
        sight: What is seen of them.
    """

    row: Seen
    trial: EliminationTrial
    problem: Any
    root: np.uint32
    rounds: int
    each: int
    weights: Any
    reporting: int
    sight: _Sight

    @property
    def view(self) -> str:
        """As in `VIEWS`."""
        return self.sight.view

    @property
    def size(self) -> int:
        """Runs of a batch."""
        return BATCH if self.each <= 2 else max(1, 4 * BATCH // self.each)

    def groups(self) -> list[list[Stream]]:
        """Returns what there is to see."""
        filling, alone, sight = self.trial.filling, self.trial.alone, self.sight
        one, some = ("noisy sum", "noisy sums") if alone else ("upload", "uploads")
        noises: float | None = 1
        shift = float(self.row.epsilon)
        if sight.shares is not None:
            left, shares = sight.shares
            one, some = "sum over agents", "sums over agents"
            if left < shares:
                shift = 1.0 / float(scheduled(self.trial, 1).scale[0]) if self.trial.noisy else 0.0
                one, some = f"{one} less one share", f"{some} less one share each"
                noises = left / shares
        elif sight.view == "sums":
            less = " less its own message" * sight.inside
            one, some = f"sum over {sight.over} agents{less}", f"sums over {sight.over}{less}"
            kept = np.asarray(self.weights)[np.asarray(self.weights) > 0.0]
            noises = len(kept) if np.ptp(kept) == 0.0 and not sight.redrawn else None
        bare = not sight.redrawn and not _noisy(self.trial, self.rounds)
        last = self.rounds - 1
        every = tuple(range(self.rounds))

        def stream(words: str, changed: int, heard: tuple[int, ...], **other: Any) -> list[Stream]:
            row = self.row
            named = {"noises": noises, "shift": shift, "what": row.what, "law": row.law} | other
            named |= {"bare": bare}
            # If agents are alone, the viewer tried here sees more than the one of the row.
            who = row.who + STRONGER * alone
            return [Stream(who, words, row.epsilon, row.over, -1, changed, heard, **named)]

        found = []
        if not sight.redrawn:
            found += [stream(f"one {one}", 0, (0,))]
        if last and (sight.view == "messages" or sight.redrawn):
            found += [stream(f"{last + 1} {some}, reward of round 1", 0, every)]
        if last and not sight.redrawn:
            found += [stream(f"{last + 1} {some}, reward of round {last + 1}", last, every)]
        skips = filling.remembers and not alone and sight.view == "messages"
        if last > 1 and skips:
            heard = "uploads of rounds 1 and 3, reward of round"
            found += [stream(f"{heard} 1", 0, (0, 2)), stream(f"{heard} 2", 1, (0, 2), noises=2)]
        return found

    def drawn(self, data: int, batch: int) -> Any:
        """Returns a batch of runs in which the reward of one round, -1 for none, is 1."""
        if self.sight.shares is not None and self.sight.shares[0] < self.sight.shares[1]:
            return self._drawn_shares(data, batch)
        rows = len(self.trial.reward_sizes)
        added = np.zeros((self.rounds, rows, _ARMS))
        if data >= 0:
            added[data, :: self.each, _ARM] = 1.0
        seed = np.uint32(batch * (_UPLOADS + 1) + data + 1)
        found = _uploads(self.trial, self.problem, self.root, seed, added)
        heard = None
        if self.sight.redrawn:
            counts = {"rounds": self.rounds, "runs": self.size, "agents": self.each}
            heard = _heard(self.root, seed, np.int32(self.reporting), **counts)
        return jax.device_get((found, heard))

    def _drawn_shares(self, data: int, batch: int) -> tuple[Any, None]:
        """Draws what is left of the noise; a simulation draws the sum of all shares in one."""
        assert self.sight.shares is not None
        left, shares = self.sight.shares
        rng = np.random.default_rng([int(self.root), data + 1, batch])
        shape = (self.rounds, self.size, _ARMS)
        noise = rng.standard_gamma(left / shares, shape) - rng.standard_gamma(left / shares, shape)
        schedule = scheduled(self.trial, self.rounds)
        sums = schedule.scale[:, None, None] * noise
        if data >= 0:
            sums[data, :, _ARM] += 1.0
        length = schedule.pulls if self.trial.filling.remembers else schedule.fresh
        played = np.zeros(shape[:2], np.int32)
        sent: Any = sums / length[:, None, None]
        known: Any = length
        return epochs.Uploads(sent, known, played), None  # type: ignore[arg-type]

    def seen(self, stream: Stream, drawn: Any) -> Numbers:
        """Returns what is seen of a batch."""
        uploads, heard = drawn
        changed: Any = stream.with_it
        rounds = list(stream.heard)
        length: Any = uploads.length
        sums = (uploads.sent * length[:, None, None])[rounds]
        lengths = length[rounds]
        split = sums.reshape(len(rounds), -1, self.each, _ARMS)
        agents = self.each
        if self.sight.view == "sums" and self.each > 1:
            if heard is not None:
                split = split * np.asarray(heard)[rounds][..., None]
            split, agents = np.einsum("a,xrak->xrk", self.weights, split)[:, :, None, :], 1
        if self.trial.filling.remembers and heard is None:
            split = np.diff(split, axis=0, prepend=0)
            lengths = np.diff(lengths, prepend=0)
        names = [
            f"round {r + 1}, arm {k + 1}" + f", agent {i + 1}" * (agents > 1)
            for r in rounds
            for i in range(agents)
            for k in range(_ARMS)
        ]
        values = np.moveaxis(split, 1, 0).reshape(split.shape[1], -1)
        after = next(place for place, round_ in enumerate(rounds) if round_ >= changed)
        first = after * agents * _ARMS + _ARM
        return Numbers(values, np.repeat(lengths, agents * _ARMS), names, first)


@jax.jit
def _uploads(
    trial: EliminationTrial,
    problem: Any,
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    added: Float[Array, "round row arm"],
) -> epochs.Uploads:
    key = keys.seed_key(root, seed)
    instance = problem.draw(key)
    return epochs.uploads(trial.settled(instance), instance, key, added)


@partial(jax.jit, static_argnames=("rounds", "runs", "agents"))
def _heard(
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    reporting: Int[Array, ""],
    *,
    rounds: int,
    runs: int,
    agents: int,
) -> Bool[Array, "round run agent"]:
    """Returns who reports, drawn as a round draws it, each run anew."""
    key = jax.random.fold_in(keys.seed_key(root, seed), 1)

    def one(run: Array) -> Array:
        own = jax.random.fold_in(key, run)
        words = [keys.stream_key(own, r + 1, keys.PARTICIPATION) for r in range(rounds)]
        real = jnp.ones(agents, bool)
        return jnp.stack([samplers.participants(w, real, reporting) for w in words])

    return jnp.moveaxis(jax.vmap(one)(jnp.arange(runs, dtype=jnp.uint32)), 1, 0)


class Schedule(NamedTuple):
    """The first rounds of elimination, [round] each, as they are while no arm leaves.

    Attributes:
        pulls: Of each arm by the end of a round's epoch.
        fresh: Of that epoch.
        radius: Confidence radius of the round.
        scale: Of the noise on a sum of the epoch's rewards.
    """

    pulls: Any
    fresh: Any
    radius: Any
    scale: Any


def scheduled(trial: EliminationTrial, rounds: int) -> Schedule:
    """Returns the first rounds of a trial."""
    found: Any = _planned(trial, rounds=rounds)
    return Schedule(*map(np.asarray, found))


@partial(jax.jit, static_argnames="rounds")
def _planned(trial: EliminationTrial, *, rounds: int) -> Schedule:
    trial = trial.settled(_instance(jnp.zeros(_ARMS), ()))

    def round_of(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Schedule]:
        number, epoch = planned(trial, _ARMS, carry[0], jnp.int32(_ARMS), carry[1])
        radius = jnp.asarray(trial.filling.radius(epoch), jnp.float64)
        scale = jnp.asarray(trial.filling.noise_scale(epoch), jnp.float64)
        return (number, epoch.pulls), Schedule(epoch.pulls, epoch.fresh, radius, scale)

    return jax.lax.scan(round_of, (jnp.int32(0), jnp.float64(0.0)), None, length=rounds)[1]


def _instance(base: Float[Array, " arm"], parameters: tuple[Array, ...]) -> Instance:
    """Returns an instance whose gaps name the arms: regret then tells which one is pulled."""
    gaps = jnp.arange(_ARMS, dtype=jnp.float64)
    return Instance(base[None, :], gaps, jnp.float64(1.0), parameters)


def _noisy(trial: EliminationTrial, rounds: int) -> bool:
    """Tells whether any of the first rounds has noise."""
    return bool(trial.noisy and scheduled(trial, rounds).scale.any())


def _budget(algorithm: Elimination, trial: EliminationTrial) -> float:
    return float(algorithm.budget({k: jnp.asarray(v) for k, v in trial.own.items()}))


def _uploads_of(
    algorithm: Elimination, exchange: Exchange, row: Seen, root: np.uint32, sight: _Sight
) -> list[Source]:
    """Returns what shows messages or sums."""
    return [_uploads_source(algorithm, exchange, row, root, sight)]


def _uploads_source(
    algorithm: Elimination, exchange: Exchange, row: Seen, root: np.uint32, sight: _Sight
) -> Uploads:
    problem = Problem([0.0] * _ARMS, exchange.agents)
    secure = algorithm.sums_securely
    trial = algorithm.bind(problem, _HORIZON, exchange=exchange, sum_agents=secure)
    each = 1 if secure or trial.alone else 2
    weights = np.ones(each)
    if sight.view == "sums" and not secure:
        each = exchange.agents if sight.redrawn else sight.over
        weights = np.ones(each)
        if sight.over == exchange.agents:
            # The agent whose reward differs, and the one that looks, have the largest weights.
            weights = np.sort(np.asarray(exchange.weights, np.float64))[::-1]
            weights = weights / weights[0]
        if sight.inside and each > 1:
            weights[1] = 0.0
    made = Uploads(
        *(row, trial, problem.bind(None), root),
        *(int(min(_UPLOADS, _budget(algorithm, trial))), each, weights),
        *(exchange.reporting, sight),
    )
    rows = each * made.size
    return replace(
        made,
        trial=replace(
            trial,
            room=rows if trial.room else 0,
            reward_sizes=np.full(rows, trial.reward_sizes[0]),
            noise_sizes=np.full(rows, trial.noise_sizes[0]) if trial.noisy else trial.noise_sizes,
            noise_shapes=np.repeat(trial.noise_shapes[:, :1], rows, axis=1),
        ),
    )


@dataclass(frozen=True)
class Waits:
    """The arm that an agent pulls while messages travel.

    Attributes:
        row: Of the ledger.
        uploads: Of the same agents.
    """

    row: Seen
    uploads: Uploads
    view: ClassVar[str] = "actions"

    @property
    def size(self) -> int:
        """Runs of a batch."""
        return self.uploads.size

    def groups(self) -> list[list[Stream]]:
        """Returns the wait of the first round."""
        row, words = self.row, "arm pulled while waiting"
        shared = row.who, words, row.epsilon, row.over, -1, 0, (0,)
        told: Any = {"waiting": True, "noises": 2, "shift": row.epsilon, "what": row.what}
        trial = self.uploads.trial
        bare = not trial.private or not _noisy(trial, 1)
        return [[Stream(*shared, **told, law=row.law, bare=bare)]]

    def drawn(self, data: int, batch: int) -> Any:
        """Returns a batch of runs, as `Uploads` does."""
        return self.uploads.drawn(data, batch)

    def seen(self, stream: Stream, drawn: Any) -> Numbers:
        """Returns the arm."""
        played = np.asarray(drawn[0].played)[0, :: self.uploads.each]
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
        bits = self.trial.own.get("bits", 0.0) > 0.0
        row, every = self.row, tuple(range(_UPLOADS))
        noise: Any = {"noises": 0 if bits else 1, "shift": row.epsilon, "what": row.what}
        # A release that has no epsilon of its own may have other noise.
        noise |= {"law": row.law, "bare": bool(np.isinf(self.trial.own.get("epsilon", 0.0)))}
        one, some = "one released reward", f"{_UPLOADS} released rewards, the last differs"
        shared = row.epsilon, row.over, -1
        return [
            [Stream(row.who, one, *shared, 0, (0,), **noise)],
            [Stream(row.who, some, *shared, 2, every, **noise)],
        ]

    def drawn(self, data: int, batch: int) -> Float[np.ndarray, "slot run"]:
        """Returns a batch of runs in which the reward of one slot, -1 for none, is 1."""
        means = (np.arange(_UPLOADS) == data).astype(np.float64)
        seed = np.uint32(batch * (_UPLOADS + 1) + data + 1)
        return np.asarray(_released(self.trial, self.root, seed, means))

    def seen(self, stream: Stream, drawn: Float[np.ndarray, "slot run"]) -> Numbers:
        """Returns what is seen of a batch."""
        heard = drawn[list(stream.heard)]
        names = [f"slot {t + 1}" for t in stream.heard]
        return Numbers(heard.T, np.ones(len(heard)), names, len(names) - 1)


@jax.jit
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
        at = jnp.full((1, _ARMS), mean)
        instance = Instance(at, at[0], mean, (at,))
        return index_trial.rewarded(trial, instance, key, number, arm)

    numbers = jnp.arange(1, len(means) + 1, dtype=jnp.int64)
    return jnp.stack([slot(mean, number) for mean, number in zip(means, numbers, strict=True)])


def _released_rewards(
    algorithm: index.IndexPolicy, exchange: Exchange, row: Seen, root: np.uint32, _: Any
) -> list[Source]:
    """Returns what shows released rewards."""
    problem = Problem([0.0] * _ARMS, exchange.agents)
    trial = algorithm.bind(problem, _HORIZON, exchange=exchange)
    return [Releases(row, replace(trial, room=BATCH, shared=False), root, BATCH)]


@dataclass(frozen=True)
class _Given(Law):
    """Rewards as they are given: the same from an arm always, but for one.

    Parameters are the arm's reward; and what the random numbers of the one reward are known by,
    with its value. Those of an epoch, or of an episode, are the words of its key, a slot's is its
    uniform number.

    Attributes:
        lane: Of the sum that holds the reward.
    """

    name: ClassVar[str] = "given"
    lane: int = _ARM

    def cumulants(self, *parameters: Array) -> tuple[Array, ...]:
        """Returns the cumulants of a reward without variance."""
        return (parameters[0], *(jnp.zeros_like(parameters[0]),) * 6)

    def one(self, u: Array, *parameters: Array) -> Float[Array, ...]:
        """Returns the arm's reward, or the changed one where the uniform number is its own."""
        usual, number, changed = parameters
        return jnp.where(u == number, changed, usual)

    def total(
        self,
        k0: UInt32[Array, " lane"],
        k1: UInt32[Array, " lane"],
        lane: UInt32[Array, " lane"],
        pulls: Float[Array, " lane"],
        *parameters: Array,
    ) -> Float[Array, " lane"]:
        """Returns the arm's rewards: in the epoch of these words 1 more, or 1 less of all 1."""
        usual, first, second = parameters
        here = (k0.astype(jnp.float64) == first) & (k1.astype(jnp.float64) == second)
        changed = jnp.where(usual < 1.0, 1.0, -1.0)
        return pulls * usual + jnp.where(here & (lane == jnp.uint32(self.lane)), changed, 0.0)


class _Data(NamedTuple):
    """Two neighbouring data sets, of which one number tells which of them it is.

    Attributes:
        base: Reward of each arm.
        when: Epoch, episode, or slot, of the reward that differs.
        value: The reward itself; of an epoch it is 1 more than that of its arm.
    """

    base: tuple[float, ...]
    when: int
    value: float = 1.0


@dataclass(frozen=True)
class Actions:
    """How often the second arm is pulled, stretch by stretch, over a whole run.

    Attributes:
        row: Of the ledger.
        trial: Whose rewards are given.
        root: Seed.
        size: Runs of a batch.
        grid: Slots at which regret is looked at.
        stretches: Pairs of places in the grid.
        names: Of each stretch.
        tried: Data sets, and how many noises lie on what they lead to.
        words: What is seen.
        bare: Whether nothing random is left by construction.
    """

    row: Seen
    trial: Any
    root: np.uint32
    size: int
    grid: Any
    stretches: Any
    names: tuple[str, ...]
    tried: tuple[tuple[_Data, float | None], ...]
    words: str
    bare: bool = False
    view: ClassVar[str] = "actions"

    def groups(self) -> list[list[Stream]]:
        """Returns one group: the data that tell most count."""
        row, found = self.row, []
        for place, (data, noises) in enumerate(self.tried):
            words = self.words.format(data.when)
            shared = row.who, words, row.epsilon, row.over
            told: Any = {"noises": noises, "shift": row.epsilon, "what": row.what}
            told |= {"law": row.law, "bare": self.bare}
            found.append(Stream(*shared, (place, 0), (place, 1), **told))
        return [found]

    def drawn(self, data: tuple[int, int], batch: int) -> Float[np.ndarray, "run number"]:
        """Returns how often the second arm was pulled in each stretch."""
        place, changed = data
        one, _ = self.tried[place]
        when = np.int64(one.when if changed else 0)
        words = (self.root, np.uint32(2 * place + changed), np.uint32(batch * self.size))
        base, value = np.array(one.base), np.float64(one.value)
        data_ = words, base, when, value, self.grid
        regret = np.asarray(_regret(self.trial, *data_, size=self.size))
        ends = np.asarray(self.stretches)
        return regret[:, ends[:, 1]] - regret[:, ends[:, 0]]

    def seen(self, stream: Stream, drawn: Float[np.ndarray, "run number"]) -> Numbers:
        """Returns all of it."""
        return Numbers(drawn, np.ones(len(self.names)), list(self.names), 0, counts=True)


@partial(jax.jit, static_argnames="size")
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

    def one(number: Array) -> Array:
        key = jax.random.fold_in(keys.seed_key(root, side), number)
        marks = _marks(trial, key, when, value)
        parameters = (base[None, :], *(jnp.broadcast_to(x, (1, _ARMS)) for x in marks))
        found: Array = trial.run(_instance(base, parameters), grid, key).regret
        return found

    return jax.vmap(one)(first + jnp.arange(size, dtype=jnp.uint32))


def _marks(trial: Any, key: Array, when: Array, value: Array) -> tuple[Array, Array]:
    """Returns two numbers that mark the changed reward; epoch or slot 0 marks none."""
    if isinstance(trial, (EliminationTrial, EpisodesTrial)):
        alone = not trial.shared if isinstance(trial, EpisodesTrial) else trial.alone
        own = keys.agent_key(key, jnp.int32(0)) if alone else key
        words = keys.stream_key(own, when, keys.REWARD)
        return words.k0.astype(jnp.float64), words.k1.astype(jnp.float64)
    words = keys.stream_key(key, 0, keys.REWARD)
    return keys.uniform(*words, jnp.uint32(0), when.astype(jnp.uint32)), value


def _actions(
    algorithm: Algorithm, exchange: Exchange, row: Seen, root: np.uint32, _: Any
) -> list[Source] | str:
    """Returns what shows actions, or why nothing does."""
    if isinstance(algorithm, Elimination):
        return _rounds_of(algorithm, exchange, row, root)
    assert isinstance(algorithm, (Episodes, index.IndexPolicy))
    return [_slots_of(algorithm, exchange, row, root)]


def _slots_of(
    algorithm: Episodes | index.IndexPolicy, exchange: Exchange, row: Seen, root: np.uint32
) -> Actions:
    """Returns what shows the actions of a policy slot by slot: of one agent, if all are alone."""
    if exchange.alone:
        exchange = algorithm.exchange(1)
    agents = exchange.agents
    trial = algorithm.bind(Problem([0.0] * _ARMS, agents), _SLOTS, exchange=exchange)
    slots = np.arange(_SLOTS + 1)
    # The second arm's first pull; in 0 or 1 the change is as large as it can be.
    first = 1 if isinstance(algorithm, Episodes) else _ARM + 1
    tried = [
        _Data((other, own), first, 1.0 - own) for own in (0.0, 1.0) for other in (0.0, 0.5, 1.0)
    ]
    return Actions(
        row,
        replace(trial, law=_Given()),
        root,
        max(1, BATCH // agents),
        slots.astype(np.int64),
        np.stack([slots[:-1], slots[1:]], axis=1),
        tuple(f"slot {t}" for t in slots[1:]),
        tuple((data, None) for data in tried),
        f"arms pulled in {_SLOTS} slots, reward of slot {_ARM + 1}",
    )


def _rounds_of(
    algorithm: Elimination, exchange: Exchange, row: Seen, root: np.uint32
) -> list[Source] | str:
    """Returns what shows the actions of elimination: who leaves in which round, and waits.

    In the data the first arm is better by so much that noise, or the reward that differs, decides
    whether the second one leaves.
    """
    if exchange.alone:
        exchange = algorithm.exchange(1)
    problem = Problem([0.0] * _ARMS, exchange.agents)

    def bound(horizon: int) -> tuple[EliminationTrial, Schedule, list[int]]:
        trial = algorithm.bind(problem, horizon, exchange=exchange)
        most = int(min(_MOST_ROUNDS, _budget(algorithm, trial)))
        rounds = scheduled(trial, most)
        near = np.flatnonzero(2.0 * rounds.radius <= _FAR_ENOUGH)[:_DECISIONS]
        return trial, rounds, near.tolist()

    trial, rounds, decisive = bound(_HORIZON)
    found: list[Source] = []
    if trial.waits:
        bare = _uploads_source(algorithm, exchange, row, root, _Sight("messages"))
        found = [Waits(row, bare)]
        if not trial.private:
            # Pulls during the wait are not covered, so there is nothing to try.
            return found
    if not decisive:
        return found or "no arm can leave in the first rounds"

    wait = int(exchange.wait)

    def ends(rounds: Schedule, last: int) -> list[int]:
        return [_ARMS * int(pulls) + r * wait for r, pulls in enumerate(rounds.pulls[: last + 1])]

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
    heaviest = 1.0 / exchange.reporting if trial.scarce else float(weights.max())
    per_agent = (weights / weights.max())[: exchange.reporting]
    for at in decisive:
        noise = np.zeros(1)
        if trial.noisy:
            terms = 1 if algorithm.sums_securely or trial.alone else len(per_agent)
            terms *= at + 1 if algorithm.remembers else 1
            gammas = [rng.standard_gamma(2.0 * terms, 10**6) for _ in range(2)]
            noise = rounds.scale[at] * (gammas[0] - gammas[1])
        held = (rounds.pulls if algorithm.remembers else rounds.fresh)[at]
        alike = not trial.scarce and np.ptp(per_agent) == 0.0
        for chance in _CHANCES if trial.noisy else _CHANCES[:1]:
            short = float(np.quantile(noise, 1.0 - chance)) * heaviest
            lead = 2.0 * float(rounds.radius[at]) + (0.5 * heaviest - max(short, 0.0)) / held
            data = _Data((min(max(lead, 0.0), 1.0), 0.0), at + 1)
            tried.append((data, 2.0 * terms if trial.noisy and alike else None))
    row_of = int(np.argmax(trial.reward_weights)) if np.size(trial.reward_weights) else 0
    agents = max(1, trial.room)
    whole = Actions(
        row,
        replace(trial, law=_Given(row_of * _ARMS + _ARM)),
        root,
        max(1, BATCH // agents),
        slots.astype(np.int64),
        np.searchsorted(slots, np.array(stretches)),
        tuple(names),
        tuple(tried),
        f"arms pulled in {decisive[-1] + 1} rounds, reward of round {{}}",
        not trial.scarce and not (trial.noisy and rounds.scale.any()),
    )
    return [*found, whole]
