"""An empirical audit of the privacy that is claimed: can neighbouring data be told apart too well?

Two data sets differ in one reward. What an algorithm lets out for each is simulated many times, by
the very functions that a simulation calls, and an event is looked for that one of them makes far
likelier. Its two chances are bounded by Clopper and Pearson's limits; the logarithm of their ratio
is a lower bound on epsilon that holds whatever the mechanism is. A claim below it is wrong. A claim
above it is not proved: what is proved is in Theorem 1 (arXiv 2111.01570).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from fmab_jax.algorithms.base import Algorithm, known, ledger_of
from fmab_jax.algorithms.families import epochs, index
from fmab_jax.algorithms.families.elimination import Elimination, EliminationTrial
from fmab_jax.core import keys
from fmab_jax.core.problems import BoundProblem, Instance, Problem
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import count, real, refuse

RUNS, LEVEL = 2_000_000, 1e-6
"""Runs of each data set, and the chance that any bound is wrong, unless told otherwise."""

# Runs that are drawn in one go, and that an event is chosen on before any is counted.
_BATCH, _PILOT = 2**16, 2**18
# Runs of the pilot on which many simple statistics are looked through.
_SCREENED = 2**13
# The schedule is that of so many slots.
_HORIZON = 100_000
_UPLOADS, _ARMS = 3, 2
# The reward that differs: of the first agent, of an arm that loses ties.
_ARM = 1
_BINS = 48


class Histogram(NamedTuple):
    """How a number that is let out is distributed under both data sets.

    Attributes:
        edges: [bin + 1] of the bins, in rewards.
        without: [bin] runs where the reward is 0.
        with_it: [bin] runs where it is 1.
    """

    edges: Float[np.ndarray, " edge"]
    without: Int[np.ndarray, " bin"]
    with_it: Int[np.ndarray, " bin"]


@dataclass(frozen=True)
class Finding:
    """What was found for one thing that is let out.

    Attributes:
        stream: What is seen, and which reward differs.
        claim: Epsilon that the privacy ledger claims for it; infinity where nothing is.
        lower: Lower bound on epsilon; it holds for all findings of an audit together.
        exact: What ``lower`` would be, about, if the noise were exactly that of the claim.
        infinite: Whether the event happens in every run of one data set and in none of the other,
            where nothing random is left: then no epsilon is large enough.
        event: In words; chosen on runs that are not counted.
        threshold: Of the event, in rewards.
        happened: Runs in which it happened, without the reward and with it.
        histogram: Of the number that the event is about.
    """

    stream: str
    claim: float
    lower: float
    exact: float
    infinite: bool
    event: str
    threshold: float
    happened: tuple[int, int]
    histogram: Histogram

    @property
    def contradicted(self) -> bool:
        """Whether the claim is wrong."""
        return math.isfinite(self.claim) and (self.infinite or self.lower > self.claim)

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim."""
        return math.inf if self.infinite else self.lower / self.claim

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        if math.isinf(self.claim):
            return "no finite epsilon, none claimed" if self.infinite else "none claimed"
        if self.infinite:
            return "contradicted: no finite epsilon"
        return "contradicted" if self.contradicted else "within the claim"


@dataclass(frozen=True)
class Audit:
    """An audit of one algorithm.

    Attributes:
        algorithm: Its configuration.
        agents: M.
        runs: Of each data set.
        level: Chance that any of the bounds is wrong.
        findings: One for each thing that is let out.
        most: Largest finite bound that so many runs can show.
    """

    algorithm: Algorithm
    agents: int
    runs: int
    level: float
    findings: tuple[Finding, ...]
    most: float

    @property
    def contradicted(self) -> bool:
        """Whether any claim is wrong."""
        return any(each.contradicted for each in self.findings)


def auditable() -> dict[str, type[Algorithm]]:
    """Returns the algorithms by name whose noise can be audited, those of plug-ins among them."""
    return {name: owner for name, owner in known().items() if _is_noisy(owner)}


def _is_noisy(owner: type[Algorithm]) -> bool:
    if issubclass(owner, Elimination):
        return owner.noisy
    # A policy whose noise lies elsewhere has no place where it could be listened to.
    release = index.IndexPolicy.release
    return issubclass(owner, index.IndexPolicy) and owner.release is not release


def audit(
    algorithm: Any,
    agents: Any = None,
    *,
    runs: Any = RUNS,
    level: Any = LEVEL,
    root_seed: Any = 0,
) -> Audit:
    """Looks for an event that tells neighbouring data apart better than the claim allows.

    The data are the worst case: all rewards are 0, or one of them, of one agent and arm, is 1; the
    law is Bernoulli's. Lengths of epochs are those of two arms that both stay, as elimination
    depends on what was sent alone (post-processing). Audited are an agent's uploads of one round
    and of three rounds together, without one that the server did not ask for, beside those of
    another agent; where only a sum over agents is seen, that sum; where agents are alone, the noisy
    sums that their actions follow from (an upper bound on what actions tell); where agents wait,
    what they play meanwhile; and rewards that are released one by one.

    By Neyman and Pearson the best event is that the noisy sum of the changed epoch is large: under
    the claim, the likelihood ratio grows with it. Beside it, all single numbers that are seen and
    all sums and differences of two are tried, so that broken noise shows. The event is chosen on
    up to 262,144 other runs.

    Args:
        algorithm: One whose noise can be audited, such as ``fmab_jax.cdp_mab(epsilon=0.02)``.
        agents: M; the algorithm's usual number by default.
        runs: Of each data set, in [1000, 10^9].
        level: Chance in (0, 0.5] that any bound is above the epsilon of the code.
        root_seed: Selects all randomness.

    Raises:
        ValueError: If an argument is out of range, or the algorithm cannot be audited.

    Example:
        >>> import fmab_jax as fmab
        >>> found = fmab.audit(fmab.cdp_mab(0.2), agents=5, runs=10**5)
        >>> finding = found.findings[0]
        >>> finding.claim, 0.9 < finding.lower < finding.claim  # N epsilon, and what was shown
        (1.0, True)
    """
    if not isinstance(algorithm, Algorithm) or not _is_noisy(type(algorithm)):
        named = sorted(auditable())
        told = algorithm.name if isinstance(algorithm, Algorithm) else algorithm
        refuse("algorithm", told, f"one with noise: {', '.join(named)}", "audit one of these")
    agents = algorithm.usual_agents if agents is None else agents
    runs = count("runs", runs, 1000, 10**9, "give the runs of each data set, such as 1e6")
    remedy = "give the chance that a bound is wrong, such as 1e-6"
    level = real("level", level, 0.0, 0.5, remedy, open_low=True)
    root = keys.checked_seed("root_seed", root_seed)
    exchange = algorithm.exchange(agents)
    claims = _claims(algorithm, exchange)
    with own_settings():
        source = _source(algorithm, exchange, np.uint32(root))
        # Two limits for each finding.
        tail = level / (2 * len(source.streams()))
        findings = _findings(source, claims, runs, tail)
    most = _ratio(np.float64(runs), np.float64(0.0), runs, tail)
    return Audit(algorithm, exchange.agents, runs, level, findings, float(most))


class _Claims(NamedTuple):
    """What the privacy ledger claims.

    Attributes:
        messages: Epsilon of the weakest claim for what is sent; for actions, where nothing is.
        actions: Epsilon of actions.
    """

    messages: float
    actions: float


def _claims(algorithm: Algorithm, exchange: Any) -> _Claims:
    rows = ledger_of(algorithm, exchange)
    actions = max((row.epsilon for row in rows if row.what == "actions"), default=math.inf)
    sent = [row.epsilon for row in rows if row.what != "actions"]
    return _Claims(float(max(sent, default=actions)), float(actions))


class _Stream(NamedTuple):
    """What is seen, and which reward differs.

    Attributes:
        words: For people.
        changed: Epoch, or slot, of the reward that differs; counts from 0.
        heard: Epochs, or slots, of which something is seen.
        waiting: What is seen is the arm played while messages travel.
        noises: Laplace variables on the number in which the reward is first seen; 0 for one bit.
    """

    words: str
    changed: int
    heard: tuple[int, ...]
    waiting: bool = False
    noises: int = 1


class _Seen(NamedTuple):
    """What is seen in a batch of runs.

    Attributes:
        sums: [run, number] noisy sums of the rewards since what was heard before; or rewards.
        lengths: [number] rewards that each is a sum of.
        names: What each number is.
    """

    sums: Float[np.ndarray, "run number"]
    lengths: Float[np.ndarray, " number"]
    names: list[str]


@dataclass(frozen=True)
class _Epochs:
    """Messages of an elimination algorithm; rows of the loop's arrays are runs.

    Attributes:
        trial: With as many agents as a batch needs, but N and the noise of the real ones.
        problem: All rewards are 0.
        root: Seed.
        rounds: Uploads that there are at most.
        each: Agents seen in one run.
    """

    trial: EliminationTrial
    problem: BoundProblem
    root: np.uint32
    rounds: int
    each: int

    def streams(self) -> list[_Stream]:
        """Returns what there is to see."""
        filling, alone = self.trial.filling, self.trial.alone
        one, some = ("noisy sum", "noisy sums") if alone else ("upload", "uploads")
        if filling.sums_securely:
            one, some = "sum over agents", "sums over agents"
        last = self.rounds - 1
        every = tuple(range(self.rounds))
        found = [_Stream(f"one {one}", 0, (0,))]
        if last:
            found += [_Stream(f"{last + 1} {some}, reward of round 1", 0, every)]
            found += [_Stream(f"{last + 1} {some}, reward of round {last + 1}", last, every)]
        skips = filling.remembers and not alone and not filling.sums_securely
        if last > 1 and skips:
            heard = "uploads of rounds 1 and 3, reward of round"
            found += [_Stream(f"{heard} 1", 0, (0, 2)), _Stream(f"{heard} 2", 1, (0, 2), noises=2)]
        if self.trial.waits:
            found += [_Stream("arm played while waiting", 0, (0,), waiting=True)]
        return found

    def drawn(self, changed: int, batch: int) -> epochs.Uploads:
        """Returns a batch of runs in which the reward of one round, -1 for none, is 1."""
        added = np.zeros((self.rounds, len(self.trial.reward_sizes), _ARMS))
        if changed >= 0:
            added[changed, :: self.each, _ARM] = 1.0
        # Every data set has runs of its own.
        seed = np.uint32(batch * (_UPLOADS + 1) + changed + 1)
        return jax.device_get(_uploads(self.trial, self.problem, self.root, seed, added))

    def seen(self, stream: _Stream, uploads: epochs.Uploads) -> _Seen:
        """Returns what is seen of a batch."""
        if stream.waiting:
            played = np.asarray(uploads.played)[0, :: self.each]
            return _Seen(played[:, None].astype(np.float64), np.ones(1), ["the arm's index"])
        length: Any = uploads.length
        sums = uploads.sent * length[:, None, None]
        heard, lengths = sums[list(stream.heard)], length[list(stream.heard)]
        if self.trial.filling.remembers:
            heard, lengths = np.diff(heard, axis=0, prepend=0), np.diff(lengths, prepend=0)
        split = heard.reshape(len(lengths), -1, self.each, _ARMS)
        names = [
            f"round {r + 1}, arm {k + 1}" + f", agent {i + 1}" * (self.each > 1)
            for r in stream.heard
            for i in range(self.each)
            for k in range(_ARMS)
        ]
        sums = np.moveaxis(split, 1, 0).reshape(split.shape[1], -1)
        return _Seen(sums, np.repeat(lengths, self.each * _ARMS), names)


@jax.jit
def _uploads(
    trial: EliminationTrial,
    problem: BoundProblem,
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    added: Float[Array, "round row arm"],
) -> epochs.Uploads:
    key = keys.seed_key(root, seed)
    instance = problem.draw(key)
    return epochs.uploads(trial.settled(instance), instance, key, added)


@dataclass(frozen=True)
class _Slots:
    """Rewards that an index policy releases one by one; rows are runs."""

    trial: index.IndexTrial
    root: np.uint32

    def streams(self) -> list[_Stream]:
        """Returns what there is to see."""
        noises = 0 if self.trial.own.get("bits", 0.0) > 0.0 else 1
        every = tuple(range(_UPLOADS))
        return [
            _Stream("one released reward", 0, (0,), noises=noises),
            _Stream(f"{_UPLOADS} released rewards, the last differs", 2, every, noises=noises),
        ]

    def drawn(self, changed: int, batch: int) -> Float[np.ndarray, "slot run"]:
        """Returns a batch of runs in which the reward of one slot, -1 for none, is 1."""
        means = (np.arange(_UPLOADS) == changed).astype(np.float64)
        seed = np.uint32(batch * (_UPLOADS + 1) + changed + 1)
        return np.asarray(_released(self.trial, self.root, seed, means))

    def seen(self, stream: _Stream, released: Float[np.ndarray, "slot run"]) -> _Seen:
        """Returns what is seen of a batch."""
        heard = released[list(stream.heard)]
        return _Seen(heard.T, np.ones(len(heard)), [f"slot {t + 1}" for t in stream.heard])


@jax.jit
def _released(
    trial: index.IndexTrial,
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
        return index.rewarded(trial, instance, key, number, arm)

    numbers = jnp.arange(1, len(means) + 1, dtype=jnp.int64)
    return jnp.stack([slot(mean, number) for mean, number in zip(means, numbers, strict=True)])


def _source(algorithm: Algorithm, exchange: Any, root: np.uint32) -> _Epochs | _Slots:
    """Returns the code under audit, with runs where it has agents."""
    problem = Problem([0.0] * _ARMS, exchange.agents)
    if not isinstance(algorithm, Elimination):
        trial: Any = algorithm.bind(problem, _HORIZON, exchange=exchange)
        return _Slots(replace(trial, room=_BATCH, shared=False), root)
    secure = algorithm.sums_securely
    trial = algorithm.bind(problem, _HORIZON, exchange=exchange, sum_agents=secure)
    each = 1 if secure or trial.alone else 2
    rows = each * _BATCH
    trial = replace(
        trial,
        room=rows if trial.room else 0,
        reward_sizes=np.full(rows, trial.reward_sizes[0]),
        noise_sizes=np.full(rows, trial.noise_sizes[0]),
        noise_shapes=np.repeat(trial.noise_shapes[:, :1], rows, axis=1),
    )
    budget = float(algorithm.budget({k: jnp.asarray(v) for k, v in trial.own.items()}))
    return _Epochs(trial, problem.bind(None), root, int(min(_UPLOADS, budget)), each)


class _Event(NamedTuple):
    """That a weighted sum of what is seen is at least, or below, a threshold.

    Attributes:
        weights: [number].
        threshold: In rewards.
        above: At least, else below.
        likelier: The side on which it happens more often.
        bound: Lower bound on epsilon that the pilot gives, about.
        certain: Whether nothing random was seen on either side.
    """

    weights: Float[np.ndarray, " number"]
    threshold: float
    above: bool
    likelier: int
    bound: float
    certain: bool


def _findings(
    source: _Epochs | _Slots, claims: _Claims, runs: int, tail: float
) -> tuple[Finding, ...]:
    """Chooses an event for each stream on a pilot, and counts it on other runs."""
    streams = source.streams()
    pilots = _pilots(source, streams, min(_PILOT, runs))
    events, edges = [], []
    for stream, pilot in zip(streams, pilots, strict=True):
        events.append(_chosen(pilot, _first(stream, pilot[0].names), tail))
        mixed = np.concatenate([each.sums @ events[-1].weights for each in pilot])
        low, high = np.quantile(mixed, [0.003, 0.997])
        edges.append(np.linspace(low, high if high > low else low + 1.0, _BINS + 1))
    happened = np.zeros((len(streams), 2), np.int64)
    binned = np.zeros((len(streams), 2, _BINS), np.int64)
    for batch in range(-(-runs // _BATCH)):
        used = min(_BATCH, runs - batch * _BATCH)
        for place, side, seen in _sides(source, streams, _PILOT // _BATCH + batch):
            event, x = events[place], seen.sums[:used] @ events[place].weights
            happened[place, side] += np.sum((x >= event.threshold) == event.above)
            binned[place, side] += np.histogram(x, edges[place])[0]
    found = []
    for place, (stream, event) in enumerate(zip(streams, events, strict=True)):
        claimed = claims.actions if stream.waiting else claims.messages
        more, less = happened[place, event.likelier], happened[place, 1 - event.likelier]
        bound = float(_ratio(np.float64(more), np.float64(less), runs, tail))
        made = Finding(
            stream=stream.words,
            claim=claimed,
            lower=max(0.0, bound),
            exact=_exact(claimed, stream, runs, tail),
            infinite=bool(event.certain and more == runs and less == 0),
            event=_told(event, pilots[place][0].names),
            threshold=event.threshold,
            happened=(int(happened[place, 0]), int(happened[place, 1])),
            histogram=Histogram(edges[place], *binned[place]),
        )
        found.append(made)
    return tuple(found)


def _sides(
    source: _Epochs | _Slots, streams: list[_Stream], batch: int
) -> Iterator[tuple[int, int, _Seen]]:
    """Yields (stream, side, what is seen) of a batch; data that several streams see, drawn once."""
    for changed in sorted({-1, *(stream.changed for stream in streams)}):
        drawn: Any = source.drawn(changed, batch)
        for place, stream in enumerate(streams):
            if changed in (-1, stream.changed):
                yield place, int(changed >= 0), source.seen(stream, drawn)


def _pilots(source: _Epochs | _Slots, streams: list[_Stream], runs: int) -> list[list[_Seen]]:
    """Returns what is seen of the first runs, by stream and side."""
    parts: list[tuple[list[_Seen], list[_Seen]]] = [([], []) for _ in streams]
    for batch in range(-(-runs // _BATCH)):
        for place, side, seen in _sides(source, streams, batch):
            parts[place][side].append(seen)
    return [
        [each[0]._replace(sums=np.concatenate([p.sums for p in each])[:runs]) for each in both]
        for both in parts
    ]


def _first(stream: _Stream, names: list[str]) -> int:
    """Returns the number in which the changed reward is first seen."""
    after = [place for place, heard in enumerate(stream.heard) if heard >= stream.changed]
    numbers = len(names) // len(stream.heard)
    return after[0] * numbers + (_ARM if numbers > 1 else 0)


def _chosen(pilot: list[_Seen], first: int, tail: float) -> _Event:
    """Returns the event that tells most, of the best one under the claim and many simple ones."""
    numbers = len(pilot[0].names)
    best = np.eye(numbers)[first]
    simple = _simple(pilot[0].lengths)
    few = [each.sums[:_SCREENED] for each in pilot]
    screened = [_event(w, few[0] @ w, few[1] @ w, tail) for w in simple]
    winner = max(screened, key=lambda event: (event.certain, event.bound))
    tried = [_event(w, pilot[0].sums @ w, pilot[1].sums @ w, tail) for w in (best, winner.weights)]
    return max(tried, key=lambda event: (event.certain, event.bound))


def _simple(lengths: Float[np.ndarray, " number"]) -> list[Float[np.ndarray, " number"]]:
    """Returns weights of single numbers, and of sums and differences of two sums or two means."""
    unit = np.eye(len(lengths))
    found = list(unit)
    for i, j in zip(*np.triu_indices(len(lengths), 1), strict=True):
        found += [unit[i] + unit[j], unit[i] - unit[j]]
        if lengths[i] != lengths[j]:
            means = unit[i], unit[j] * (lengths[i] / lengths[j])
            found += [means[0] + means[1], means[0] - means[1]]
    return found


def _event(
    weights: Float[np.ndarray, " number"],
    without: Float[np.ndarray, " run"],
    with_it: Float[np.ndarray, " run"],
    tail: float,
) -> _Event:
    """Returns the threshold, and the sides of it, that tell most of a statistic."""
    runs = len(without)
    sides = np.sort(without), np.sort(with_it)
    spread = [each[-1] - each[0] for each in sides]
    gap = float(sides[1][0] - sides[0][0])
    # What rounding leaves of numbers that cancel.
    rounding = (
        64 * np.finfo(np.float64).eps * max(1.0, *(abs(each[[0, -1]]).max() for each in sides))
    )
    if max(spread) <= rounding < abs(gap):
        middle = float(sides[0][0]) + gap / 2
        return _Event(weights, middle, gap > 0, 1, math.inf, True)
    grid = np.quantile(sides[0], np.linspace(0.0, 1.0, 41))
    grid = np.concatenate([grid, grid + weights[np.abs(weights).argmax()], [0.0, 1.0]])
    reached = np.stack([runs - np.searchsorted(each, grid, "left") for each in sides])
    # [below, likelier, threshold]
    more = np.stack([reached, runs - reached])
    less = more[:, ::-1]
    bound = _estimate(more, less, runs, tail)
    below, likelier, place = np.unravel_index(int(np.argmax(bound)), bound.shape)
    best = float(bound[below, likelier, place])
    return _Event(weights, float(grid[place]), not below, int(likelier), best, False)


def _estimate(more: Any, less: Any, runs: int, tail: float) -> Any:
    """Returns `_ratio`, about, at a hundredth of the price: to choose events by."""
    from scipy.special import ndtri

    wide = -ndtri(tail)
    low = more - wide * np.sqrt(more * (1.0 - more / runs) + 1.0)
    high = less + wide * np.sqrt(less * (1.0 - less / runs) + 1.0) + wide**2 / 2
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low, 0.0)) - np.log(high)


def _ratio(more: Any, less: Any, runs: int, tail: float) -> Any:
    """Returns a lower bound on log(p / q) from how often either happened; Clopper and Pearson."""
    from scipy.special import betaincinv

    # None of the runs has a lower limit of 0, all of them an upper limit of 1.
    low = np.where(more > 0, betaincinv(np.maximum(more, 1), runs - more + 1, tail), 0.0)
    inside = np.minimum(less, runs - 1)
    high = np.where(less < runs, betaincinv(inside + 1, runs - inside, 1.0 - tail), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def _exact(claim: float, stream: _Stream, runs: int, tail: float) -> float:
    """Returns the bound, about, on a reward under noise that is exactly that of the claim.

    Args:
        claim: Epsilon; Laplace noise of scale 1 / epsilon on a sum.
        stream: How many such variables are added; or what is played is the arm of the larger sum.
        runs: Of each data set.
        tail: As in `_ratio`.
    """
    if math.isinf(claim):
        return math.nan
    if stream.waiting:
        # The difference of two noises, one for each arm, outweighs the reward or not.
        p, q = np.array([0.5]), _tail(np.array([claim]), 2)
    elif stream.noises:
        at = np.concatenate([np.linspace(0.0, 1.0, 9), 1.0 + np.linspace(0.0, 40.0, 4001) / claim])
        p, q = (_tail(claim * (at - shift), stream.noises) for shift in (1.0, 0.0))
    else:
        p = np.array([1.0 / (1.0 + math.exp(-min(claim, 700.0)))])
        q = 1.0 - p
    found = _ratio(np.round(runs * p), np.round(runs * q), runs, tail)
    return max(0.0, float(np.max(found)))


def _tail(x: Float[np.ndarray, " place"], noises: int) -> Float[np.ndarray, " place"]:
    """Returns the chance that one Laplace(0, 1) variable, or the sum of two, exceeds x."""
    above = (0.5 + 0.25 * (noises - 1) * np.abs(x)) * np.exp(-np.abs(x))
    return np.where(x >= 0.0, above, 1.0 - above)


def _told(event: _Event, names: list[str]) -> str:
    """Writes an event, such as "round 1, arm 2: at least 1"."""
    parts: list[str] = []
    for weight, name in zip(event.weights, names, strict=True):
        if weight:
            sign = "" if not parts and weight > 0 else "minus " if weight < 0 else "plus "
            factor = "" if abs(weight) == 1 else f"{abs(weight):.4g} x "
            parts.append(f"{sign}{factor}({name})")
    side = "at least" if event.above else "below"
    words = " ".join(parts)
    return f"{words.strip('()') if len(parts) == 1 else words}: {side} {event.threshold:.4g}"
