"""Messages of elimination, and their sums, drawn many times: what an audit is shown of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from fmab_jax import accounts, elimination
from fmab_jax.algorithms.base import Seen
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.elimination_trial import EliminationTrial
from fmab_jax.analysis import streams
from fmab_jax.analysis.streams import ARM, ARMS, Numbers, Stream
from fmab_jax.core import keys, laplace, samplers
from fmab_jax.core.backend import traced_here
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import Instance
from fmab_jax.core.rare import Table, table
from fmab_jax.draws import ByAgent, Draws, SplitArms

STRONGER = ", and the noisy sums that they follow from"
"""What a viewer sees that is stronger than the one that a row of the ledger is about."""


class Messages(NamedTuple):
    """The messages of agents in the first rounds, while no arm leaves.

    Attributes:
        sent: [round, row, arm] noisy mean of each arm, as a message holds it.
        length: [round] rewards that a mean is over: S_r, or n_r where old epochs are forgotten.
        played: [round, row] arm that a row plays while messages travel, if it does.
    """

    sent: Any
    length: Any
    played: Any


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
    """Messages of an elimination algorithm, or their sums; a row of the draws is one of them."""

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
                shift = 0.0
                if self.trial.draws.noisy:
                    shift = 1.0 / float(scheduled(self.trial, 1).scale[0])
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
        skips = self.trial.draws.remembers and not alone and self.noises is None
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
        rows = self.each * self.size
        added = np.zeros((self.rounds, rows, ARMS))
        if data >= 0:
            added[data, :: self.each, ARM] = 1.0
        seed = streams.seed_of(data, batch)
        shapes = None
        if self.noises is not None:
            shapes = np.stack([_shapes_of(rows, number) for number in self.noises])
        found = _messages(self.trial, self.problem, self.root, seed, added, shapes)
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
        if self.trial.draws.remembers:
            sums, length = np.cumsum(sums, axis=0), schedule.pulls
        played = np.zeros(shape[:2], np.int32)
        sent: Any = sums / length[:, None, None]
        known: Any = length
        return Messages(sent, known, played), None

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
        if self.trial.draws.remembers and heard is None:
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


def _shapes_of(rows: int, number: int) -> np.ndarray:
    """Returns the shapes of sums of so many Laplace variables, one sum for each row."""
    return np.tile(laplace.laplace_sum_shape(int(number)), rows)


@jax.jit
@traced_here
def _messages(
    trial: EliminationTrial,
    problem: Any,
    root: UInt32[Array, ""],
    seed: UInt32[Array, ""],
    added: Float[Array, "round row arm"],
    shapes: Float[Array, "round shape"] | None,
) -> Messages:
    """Draws the messages of the first rounds as a run does, while all arms stay.

    Where agents are heard now and then, they are so in law: here all are drawn in each epoch.

    Args:
        trial: As `repeated` returns it.
        problem: Of the rewards.
        root: Root seed.
        seed: Of a batch.
        added: To the sums of rewards of each epoch.
        shapes: Of the noise of each epoch, where its number of variables is another in each.
    """
    key = keys.seed_key(root, seed)
    instance = problem.draw(key)
    trial = _settled(trial, instance)
    draws = trial.draws
    arms = {**_all_arms(), **draws.fixed(instance)}

    def round_of(carry: Any, given: Any) -> tuple[Any, Messages]:
        state, before = carry
        added, shape = given
        plan = elimination.plan_epoch(trial, state, key, trial.horizon)
        now = plan.round._replace(fresh=plan.epoch.fresh)
        drawn: Any = draws
        if shape is not None:
            drawn = replace(drawn, shapes=Table(shape[None], jnp.int32(0)))
        fresh = drawn.sample(arms, now)
        fresh["rewards"] = fresh["rewards"] + added.T
        sums = {name: before[name] + x for name, x in fresh.items()}
        kept, length = (sums, now.pulls) if draws.remembers else (fresh, now.fresh)
        sent = kept["rewards"] + kept.get("noise", 0.0)
        played = jnp.argmax(sums["rewards"], axis=0)
        state = state._replace(number=now.number, pulls=now.pulls)
        return (state, sums), Messages(sent.T / length, length, played)

    sums = {name: jnp.zeros((ARMS, *shape)) for name, shape in draws.sums.items()}
    start = _before(trial, instance), sums
    return jax.lax.scan(round_of, start, (added, shapes))[1]


def _settled(trial: EliminationTrial, instance: Instance) -> EliminationTrial:
    return replace(trial, own=trial.algorithm.settled(trial.own, instance))


def _before(trial: EliminationTrial, instance: Instance) -> accounts.State:
    none = jnp.zeros(0, jnp.int64)
    return accounts.start_run(trial, instance.gaps, none, jnp.float64(1.0))


def _all_arms() -> dict[str, Any]:
    arm = jnp.arange(ARMS, dtype=jnp.uint32)
    return {"alive": jnp.ones(ARMS, bool), "arm": arm, "rank": arm.astype(jnp.int32)}


@partial(jax.jit, static_argnames=("rounds", "runs", "agents"))
@traced_here
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
@traced_here
def _planned(trial: EliminationTrial, *, rounds: int) -> Schedule:
    instance, key = instance_of(jnp.zeros(ARMS), ()), jax.random.key(0)
    trial = _settled(trial, instance)

    def round_of(state: accounts.State, _: None) -> tuple[accounts.State, Schedule]:
        plan = elimination.plan_epoch(trial, state, key, trial.horizon)
        now = plan.round._replace(fresh=plan.epoch.fresh)
        pieces = jnp.zeros((), jnp.int64)
        if isinstance(trial.draws, SplitArms):
            pieces = trial.draws.count_parts(_all_arms(), now)[ARM]
        after = state._replace(number=now.number, pulls=now.pulls)
        return after, Schedule(now.pulls, now.fresh, plan.radius, now.scale, pieces)

    return jax.lax.scan(round_of, _before(trial, instance), None, length=rounds)[1]


def instance_of(base: Float[Array, " arm"], parameters: tuple[Array, ...]) -> Instance:
    """Returns an instance whose gaps name the arms: regret then tells which one is pulled."""
    gaps = jnp.arange(ARMS, dtype=jnp.float64)
    return Instance(base[None, :], gaps, jnp.float64(1.0), parameters)


def noisy(trial: EliminationTrial, rounds: int) -> bool:
    """Tells whether any of the first rounds has noise."""
    return bool(trial.draws.noisy and scheduled(trial, rounds).scale.any())


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
    if shared and not secure and trial.draws.noisy:
        # An agent that looks pulls the arm as well, where another one does.
        pulling = scheduled(trial, rounds).pieces
        noises = np.maximum(pulling - sight.inside, 1) if sight.view == "sums" else 0 * pulling + 1
    made = Uploads(row, trial, bound, root, rounds, each, weights, heard, sight, noises)
    rows, summed = each * made.size, secure or noises is not None
    drawn = by_agent(trial.draws, rows, _shapes_of(rows, 1) if summed else None)
    return [replace(made, trial=replace(trial, draws=drawn))]


def by_agent(draws: Draws, rows: int, shapes: np.ndarray | None) -> ByAgent:
    """Returns draws of so many agents that have sums of their own, and are all heard.

    Args:
        draws: Whose rewards, noise and memory.
        rows: How many.
        shapes: Of the noise of each, where it is not one Laplace variable.
    """
    one = shapes is None or not draws.noisy
    rows_of: dict[str, Any] = {"real": np.ones(rows, bool), "weights": np.empty(0)}
    rows_of["noise_weights"] = np.ones(0 if one else rows)
    return ByAgent(
        law=draws.law,
        noisy=draws.noisy,
        remembers=draws.remembers,
        secure=False,
        arms=draws.arms,
        agents=draws.agents,
        reporting=draws.reporting,
        partial=False,
        merged=one and getattr(draws, "merged", False),
        shapes=None if shapes is None or one else table(shapes[None]),
        **rows_of,
    )
