"""Messages of elimination, and their sums, drawn many times: what an audit is shown of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax.algorithms.base import Seen
from fmab_jax.algorithms.families import epochs
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.elimination_trial import EliminationTrial
from fmab_jax.algorithms.families.epochs import count_pieces
from fmab_jax.algorithms.families.rounds import planned
from fmab_jax.analysis import streams
from fmab_jax.analysis.streams import ARM, ARMS, Numbers, Stream
from fmab_jax.core import keys, samplers
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import Instance

STRONGER = ", and the noisy sums that they follow from"
"""What a viewer sees that is stronger than the one that a row of the ledger is about."""


class Sight(NamedTuple):
    """What is seen of uploads."""

    view: str  # "messages" or "sums"
    over: int = 1  # agents of a sum; 1 for single messages, and for a secure sum
    inside: bool = False  # whether whoever sees it takes an own message out
    redrawn: bool = False  # whether the agents of the sum are drawn anew each round
    # Shares of the noise that are not known, and all of them, of a secure sum.
    shares: tuple[int, int] | None = None


@dataclass(frozen=True)
class Uploads:
    """Messages of an elimination algorithm, or their sums; rows of the loop's arrays are agents."""

    row: Seen  # of the ledger
    # With as many rows as a batch needs, but N and the noise of the real agents.
    trial: EliminationTrial
    problem: Any  # all rewards are 0
    root: np.uint32  # seed
    rounds: int  # uploads that there are at most
    each: int  # agents drawn in one run
    # [agent] in a sum: 1 of the agent with the changed reward, 0 of the one that looks and takes
    # its own message out.
    weights: Any
    reporting: int  # N, the agents of a round's sum
    sight: Sight  # what is seen of them
    # [round] noises in what is seen of an arm, where agents share the arms out; else none.
    noises: Any = None

    @property
    def view(self) -> str:
        """As in `streams.VIEWS`."""
        return self.sight.view

    @property
    def size(self) -> int:
        """Runs of a batch."""
        return streams.BATCH if self.each <= 2 else max(1, 4 * streams.BATCH // self.each)

    def groups(self) -> list[list[Stream]]:
        """Returns what there is to see."""
        alone, sight, last = self.trial.alone, self.sight, self.rounds - 1
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
        elif self.noises is not None and sight.view == "sums":
            less = " less its own message" * sight.inside
            what = f"over the agents that pull an arm{less}"
            one, some, noises = f"sum {what}", f"sums {what}", int(self.noises[-1])
        elif sight.view == "sums":
            less = " less its own message" * sight.inside
            one, some = f"sum over {sight.over} agents{less}", f"sums over {sight.over}{less}"
            kept = np.asarray(self.weights)[np.asarray(self.weights) > 0.0]
            noises = len(kept) if np.ptp(kept) == 0.0 and not sight.redrawn else None
        every = tuple(range(self.rounds))
        # What is seen, the round of the reward, the rounds that are heard, noises on the reward.
        found: list[tuple[str, int, tuple[int, ...], float | None]] = []
        if not sight.redrawn:
            found.append((f"one {one}", 0, (0,), noises))
        if last and (sight.view == "messages" or sight.redrawn):
            found.append((f"{last + 1} {some}, reward of round 1", 0, every, noises))
        if last and not sight.redrawn:
            found.append((f"{last + 1} {some}, reward of round {last + 1}", last, every, noises))
        # Agents that share the arms out are all asked in every round.
        skips = self.trial.filling.remembers and not alone and not self.trial.shared
        skips = skips and sight.view == "messages"
        if last > 1 and skips:
            heard = "uploads of rounds 1 and 3, reward of round"
            found += [(f"{heard} 1", 0, (0, 2), noises), (f"{heard} 2", 1, (0, 2), 2)]
        # If agents are alone, the viewer tried here sees more than the one of the row.
        row = self.row._replace(who=self.row.who + STRONGER * alone)
        bare = not sight.redrawn and not noisy(self.trial, self.rounds)
        return [
            [Stream(row, words, -1, changed, heard, number, shift, bare=bare)]
            for words, changed, heard, number in found
        ]

    def drawn(self, data: int, batch: int) -> Any:
        """Returns a batch of runs in which the reward of one round, -1 for none, is 1."""
        if self.sight.shares is not None and self.sight.shares[0] < self.sight.shares[1]:
            return self._drawn_shares(data, batch)
        rows = len(self.trial.reward_sizes)
        added = np.zeros((self.rounds, rows, ARMS))
        if data >= 0:
            added[data, :: self.each, ARM] = 1.0
        seed = streams.seed_of(data, batch)
        found = _uploads(self.trial, self.problem, self.root, seed, added, self.noises)
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
        shape = (self.rounds, self.size, ARMS)
        noise = rng.standard_gamma(left / shares, shape) - rng.standard_gamma(left / shares, shape)
        schedule = scheduled(self.trial, self.rounds)
        sums = schedule.scale[:, None, None] * noise
        if data >= 0:
            sums[data, :, ARM] += 1.0
        length = schedule.fresh
        if self.trial.filling.remembers:
            sums, length = np.cumsum(sums, axis=0), schedule.pulls
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
        split = sums.reshape(len(rounds), -1, self.each, ARMS)
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
            for k in range(ARMS)
        ]
        values = np.moveaxis(split, 1, 0).reshape(split.shape[1], -1)
        after = next(place for place, round_ in enumerate(rounds) if round_ >= changed)
        first = after * agents * ARMS + ARM
        return Numbers(values, np.repeat(lengths, agents * ARMS), names, first)


@jax.jit
def _uploads(
    trial: EliminationTrial,
    problem: Any,
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    added: Float[Array, "round row arm"],
    noises: Int[Array, " round"] | None,
) -> epochs.Uploads:
    key = keys.seed_key(root, seed)
    instance = problem.draw(key)
    return epochs.uploads(trial.settled(instance), instance, key, added, noises)


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
    """The first rounds of elimination, [round] each, as they are while no arm leaves."""

    pulls: Any  # of each arm by the end of a round's epoch
    fresh: Any  # of that epoch
    radius: Any  # confidence radius of the round
    scale: Any  # of the noise on a sum of the epoch's rewards
    pieces: Any  # agents that pull the audited arm, where agents share the arms out; else 0


def scheduled(trial: EliminationTrial, rounds: int) -> Schedule:
    """Returns the first rounds of a trial."""
    found: Any = _planned(trial, rounds=rounds)
    return Schedule(*map(np.asarray, found))


@partial(jax.jit, static_argnames="rounds")
def _planned(trial: EliminationTrial, *, rounds: int) -> Schedule:
    trial = trial.settled(instance_of(jnp.zeros(ARMS), ()))

    def round_of(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Schedule]:
        number, epoch = planned(trial, ARMS, carry[0], jnp.int32(ARMS), carry[1])
        radius = jnp.asarray(trial.filling.radius(epoch), jnp.float64)
        scale = jnp.asarray(trial.filling.noise_scale(epoch), jnp.float64)
        pieces = jnp.zeros((), jnp.int64)
        if trial.shared:
            pieces = count_pieces(trial, epoch, jnp.ones(ARMS, bool))[ARM]
        return (number, epoch.pulls), Schedule(epoch.pulls, epoch.fresh, radius, scale, pieces)

    return jax.lax.scan(round_of, (jnp.int32(0), jnp.float64(0.0)), None, length=rounds)[1]


def instance_of(base: Float[Array, " arm"], parameters: tuple[Array, ...]) -> Instance:
    """Returns an instance whose gaps name the arms: regret then tells which one is pulled."""
    gaps = jnp.arange(ARMS, dtype=jnp.float64)
    return Instance(base[None, :], gaps, jnp.float64(1.0), parameters)


def noisy(trial: EliminationTrial, rounds: int) -> bool:
    """Tells whether any of the first rounds has noise."""
    return bool(trial.noisy and scheduled(trial, rounds).scale.any())


def budget(algorithm: Elimination, trial: EliminationTrial) -> float:
    """Returns the most rounds that a trial makes."""
    return float(algorithm.budget({k: jnp.asarray(v) for k, v in trial.own.items()}))


def uploads_of(
    algorithm: Elimination, exchange: Exchange, row: Seen, root: np.uint32, sight: Sight
) -> list[Uploads]:
    """Returns what shows messages or sums."""
    problem = streams.unrewarded(exchange.agents)
    secure, shared = algorithm.sums_securely, algorithm.shares_arms
    summed = secure or shared
    trial = algorithm.bind(problem, streams.HORIZON, exchange=exchange, sum_agents=summed)
    each = 1 if secure or trial.alone else 2
    weights = np.ones(each)
    if sight.view == "sums" and shared:
        each, weights = 1, np.ones(1)
    elif sight.view == "sums" and not secure:
        each = exchange.agents if sight.redrawn else sight.over
        weights = np.ones(each)
        if sight.over == exchange.agents:
            # The agent whose reward differs, and the one that looks, have the largest weights.
            weights = np.sort(np.asarray(exchange.weights, np.float64))[::-1]
            weights = weights / weights[0]
        if sight.inside and each > 1:
            weights[1] = 0.0
    rounds = int(min(streams.UPLOADS, budget(algorithm, trial)))
    bound, heard = problem.bind(None), exchange.reporting
    noises = None
    if shared and not secure and trial.noisy:
        # An agent that looks pulls the arm as well, where another one does.
        pulling = scheduled(trial, rounds).pieces
        noises = np.maximum(pulling - sight.inside, 1) if sight.view == "sums" else 0 * pulling + 1
    made = Uploads(row, trial, bound, root, rounds, each, weights, heard, sight, noises)
    rows, shapes = each * made.size, trial.noise_shapes
    repeated = replace(
        trial,
        room=rows if trial.room else 0,
        reward_sizes=np.full(rows, trial.reward_sizes[0]),
        noise_sizes=np.full(rows, trial.noise_sizes[0]) if trial.noisy else trial.noise_sizes,
        noise_shapes=shapes if noises is not None else np.repeat(shapes[:, :1], rows, axis=1),
    )
    return [replace(made, trial=repeated)]
