"""Problems of races whose answer is certain: laws of regret whose means are exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from fmab_jax.planning.question import OVER
from fmab_jax.planning.race import Goal, Sample

Seeds = Float[np.ndarray, " seed"]
Share = Callable[[np.random.Generator, int], np.ndarray]
Draw = Callable[[int, np.ndarray, np.random.Generator], Seeds]

MOST = 2**17
# Of all problems.
CONFIDENCE = 0.95
# Constants that docs/plan.md states.
CATASTROPHE, CHANCE, LUCKY, CUT = 20_000.0, 0.002, 0.0075, 50
# Of the problems "rare event": its chance, x, and the mean of the worse over that of the best.
RARE_EVENTS = (
    (0.001, 0.05, 1.055),
    (0.003, 0.02, 1.0208),
    (0.0072, 0.05, 1.0529),
    (0.0087, 0.05, 1.0549),
    (0.02, 0.05, 1.0529),
)
_BLOCK = 256
# Most runs whose regret is high in laws of rare events: enough for most pilots to see three.
_HIGH = 0.2


class Case(NamedTuple):
    """A problem of a race, with its answer.

    Attributes:
        name: For tables.
        means: [candidate] exact mean regret.
        share: Draws the randomness that all candidates share, [seed, ...].
        draw: Returns the regrets of a candidate from the shared randomness and more of its own.
        goal: What the race has to show.
        limit: Largest regret of a run.
        over: [candidate] chance that a run exceeds the budget; none by default.
        is_sure: [candidate] whether its structure keeps the budget; all by default.
    """

    name: str
    means: tuple[float, ...]
    share: Share
    draw: Draw
    goal: Goal
    limit: float
    over: tuple[float, ...] = ()
    is_sure: tuple[bool, ...] = ()

    @property
    def feasible(self) -> list[int]:
        """Candidates that keep the budget."""
        over = self.over or (0.0,) * len(self.means)
        return [i for i, chance in enumerate(over) if chance <= OVER]

    @property
    def best(self) -> float:
        """Smallest mean of a candidate that keeps the budget."""
        return min(self.means[i] for i in self.feasible)

    def is_right(self, winner: int, within: float) -> bool:
        """Tells whether a candidate keeps the budget and is within x of the best that does."""
        if winner not in self.feasible:
            return False
        return self.means[winner] <= (1.0 + within) * self.best * (1.0 + 1e-12)


class Draws:
    """The runs of all candidates in one race: blocks of seeds that double, drawn when read."""

    def __init__(self, case: Case, stream: Sequence[int]) -> None:
        self.case, self.stream = case, tuple(stream)
        self._shared: list[np.ndarray] = []
        self._samples: dict[int, Sample] = {}

    def observe(self, group: Sequence[int], seeds: int) -> list[Sample]:
        """Returns the samples of some candidates for the first so many seeds."""
        return [self.read(candidate, seeds) for candidate in group]

    def read(self, candidate: int, seeds: int) -> Sample:
        """Returns the sample of a candidate for the first so many seeds."""
        sample = self._samples.get(candidate, Sample(np.empty(0), np.empty(0, bool)))
        if len(sample.regret) < seeds:
            blocks = [sample]
            length = len(sample.regret)
            while length < seeds:
                size = max(_BLOCK, length)
                blocks.append(self._draw(candidate, (length // _BLOCK).bit_length(), size))
                length += size
            sample = Sample(*map(np.concatenate, zip(*blocks, strict=True)))
            self._samples[candidate] = sample
        return Sample(sample.regret[:seeds], sample.is_over[:seeds])

    def _draw(self, candidate: int, block: int, size: int) -> Sample:
        while len(self._shared) <= block:
            place = len(self._shared)
            rng = np.random.default_rng((*self.stream, place))
            self._shared.append(self.case.share(rng, _BLOCK << max(0, place - 1)))
        rng = np.random.default_rng((*self.stream, block, candidate + 1))
        regret = self.case.draw(candidate, self._shared[block], rng)
        if not self.case.over:
            return Sample(regret, np.zeros(size, bool))
        return Sample(regret, rng.random(size) < self.case.over[candidate])


def list_cases(pool: Float[np.ndarray, "candidate seed"]) -> list[Case]:
    """Returns all problems; regrets of simulations make one of them."""
    return [
        tie(),
        catastrophes(),
        many(),
        infeasible(),
        simulations(pool),
        heavy_tails(),
        rare_luck(),
        *(rare_event(*numbers) for numbers in RARE_EVENTS),
        losses_of_all_sizes(),
        many_rare_events(),
    ]


def _share_gamma(rng: np.random.Generator, seeds: int) -> np.ndarray:
    return rng.gamma(4.0, 0.25, seeds)


def _mix_gamma(mean: float, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
    """Returns skewed regrets, half of whose randomness is shared."""
    mixture: Seeds = mean * (0.5 * shared + 0.5 * rng.gamma(4.0, 0.25, len(shared)))
    return mixture


def tie() -> Case:
    """Twenty candidates are equal and best."""
    means = (100.0,) * 20 + (104.0, 106.0, 108.0, 112.0, 120.0)
    return Case(
        "20 of 25 tie",
        means,
        _share_gamma,
        lambda i, shared, rng: _mix_gamma(means[i], shared, rng),
        Goal(0.05, CONFIDENCE, most=MOST),
        limit=1000.0,
    )


def catastrophes() -> Case:
    """Candidates that are best in most runs lose so much in few of them that they are not."""
    usual, chances = (100.0, 120.0, 118.0, 150.0, 95.0), (CHANCE, 0.0, 0.001, 0.0, 0.004)
    losses = (CATASTROPHE, 0.0, 4000.0, 0.0, 15_000.0)
    parts = zip(usual, chances, losses, strict=True)

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        regret = _mix_gamma(usual[i], shared, rng)
        return np.where(rng.random(len(shared)) < chances[i], losses[i], regret)

    return Case(
        "rare catastrophes",
        tuple((1.0 - chance) * mean + chance * loss for mean, chance, loss in parts),
        _share_gamma,
        draw,
        Goal(0.1, CONFIDENCE, most=MOST),
        limit=CATASTROPHE,
    )


def many(count: int = 100) -> Case:
    """One candidate is best; the others are worse by 2.1 % to 3 %, and 2 % are allowed."""
    means = (100.0, *np.linspace(102.1, 103.0, count - 1).tolist())

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        regret: Seeds = means[i] * (1.0 + shared + rng.uniform(-0.24, 0.24, len(shared)))
        return regret

    return Case(
        f"{count} within 3 %",
        means,
        lambda rng, seeds: rng.uniform(-0.7, 0.7, seeds),
        draw,
        Goal(0.02, CONFIDENCE, most=MOST),
        limit=1.94 * 103.0,
    )


def infeasible() -> Case:
    """The best candidates exceed the budget in 3 % and in 1.5 % of their runs."""
    means = (80.0, 90.0, 100.0, 104.0, 107.0, 130.0)
    return Case(
        "infeasible best",
        means,
        _share_gamma,
        lambda i, shared, rng: _mix_gamma(means[i], shared, rng),
        Goal(0.05, CONFIDENCE, most=MOST),
        limit=1000.0,
        over=(0.03, 0.015, 0.002, 0.0, 0.0, 0.0),
        is_sure=(False, False, False, True, True, True),
    )


def simulations(pool: Float[np.ndarray, "candidate seed"], limit: float = 50_000.0) -> Case:
    """Races draw seeds of real simulations, with replacement: means of the pool are exact."""
    return Case(
        "simulated bandits",
        tuple(pool.mean(axis=1).tolist()),
        lambda rng, seeds: rng.integers(0, pool.shape[1], seeds),
        lambda i, shared, rng: pool[i, shared],
        Goal(0.05, CONFIDENCE, most=MOST),
        limit=limit,
    )


def heavy_tails() -> Case:
    """Regrets are lognormal, cut at 50 times the best mean; most of their luck is shared."""
    scales = np.array([100.0, 103.0, 112.0, 116.0, 120.0, 130.0, 150.0, 200.0])
    limit = CUT * float(scales[0])
    # log L = log scale - 1/2 + Z; the mean of min(L, limit) is in closed form.
    z = np.log(limit / scales) + 0.5
    means = scales * ndtr(z - 1.0) + limit * ndtr(-z)
    weights = math.sqrt(0.8), math.sqrt(0.2)

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        normal = weights[0] * shared + weights[1] * rng.standard_normal(len(shared))
        regret: Seeds = np.minimum(scales[i] * np.exp(normal - 0.5), limit)
        return regret

    return Case(
        "heavy tails",
        tuple(means.tolist()),
        lambda rng, seeds: rng.standard_normal(seeds),
        draw,
        Goal(0.1, CONFIDENCE, most=MOST),
        limit=limit,
    )


def rare_luck() -> Case:
    """The best candidate is best because it loses nothing in 0.75 % of its runs."""
    usual, chances = (100.0, 99.85, 100.2, 101.0), (LUCKY, 0.0, 0.0, 0.0)

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        regret = usual[i] * (1.0 + shared + rng.uniform(-0.002, 0.002, len(shared)))
        return np.where(rng.random(len(shared)) < chances[i], 0.0, regret)

    return Case(
        "rare luck",
        tuple((1.0 - chance) * mean for mean, chance in zip(usual, chances, strict=True)),
        lambda rng, seeds: rng.uniform(-0.01, 0.01, seeds),
        draw,
        Goal(0.005, CONFIDENCE, most=MOST),
        limit=200.0,
    )


class _Shape(NamedTuple):
    """A law that makes the threshold of large regrets as large as the largest regret, mostly.

    So a large regret is not beyond the threshold, and nothing but the bets on pairs can see it.

    Attributes:
        usual: Regret of most runs.
        high: Regret of a share of them.
        largest: High plus twice the distance of both.
        share: Of the high ones.
    """

    usual: float
    high: float
    largest: float
    share: float

    def draw(self, shared: np.ndarray) -> Seeds:
        """Returns regrets from uniform numbers, of which the largest make the high ones."""
        return np.where(shared >= 1.0 - self.share, self.high, self.usual)


def _shape(spread: float, rest: float = 100.0) -> _Shape:
    """Returns the law of a mean, whose largest regret is so much above the usual one."""
    # A usual regret is not below 0.
    share = min(_HIGH, 3.0 * rest / spread)
    usual = rest - share * spread / 3.0
    return _Shape(usual, usual + spread / 3.0, usual + spread, share)


def _share_uniform(rng: np.random.Generator, seeds: int) -> np.ndarray:
    return rng.random(seeds)


def rare_event(chance: float, within: float, ratio: float) -> Case:
    """Two candidates differ only in a rare event: the first loses most, and is too far for it.

    A sample without the event shows two equals, so that a normal difference has no error.
    """
    best = 100.0
    shape = _shape((ratio - 1.0) * best / chance)

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        is_event = (shared < chance) & (i == 0)
        return np.where(is_event, shape.largest, shape.draw(shared))

    return Case(
        f"rare event, {100 * chance:g} %",
        (ratio * best, best),
        _share_uniform,
        draw,
        Goal(within, CONFIDENCE, most=MOST),
        limit=shape.largest,
    )


def losses_of_all_sizes(chance: float = 0.05, power: float = 1.2, cut: float = 30.0) -> Case:
    """Two candidates differ in a rare event, of Pareto's law, cut: few runs have most of the loss.

    The largest loss that is seen says nothing about those that are not.
    """
    within, ratio, best = 0.05, 1.051, 100.0
    # The mean of min(P, cut) - 1, where P > y has the chance y^-power for y >= 1.
    excess = (1.0 - cut ** (1.0 - power)) / (power - 1.0)
    unit = (ratio - 1.0) * best / (chance * excess)
    shape = _shape(unit * (cut - 1.0))

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        sizes = np.minimum((1.0 - rng.random(len(shared))) ** (-1.0 / power), cut)
        loss = np.where((shared < chance) & (i == 0), unit * (sizes - 1.0), 0.0)
        regret: Seeds = shape.draw(shared) + loss
        return regret

    return Case(
        "losses of all sizes",
        (ratio * best, best),
        _share_uniform,
        draw,
        Goal(within, CONFIDENCE, most=MOST),
        limit=shape.largest,
    )


def many_rare_events(count: int = 40, chance: float = 0.0039) -> Case:
    """All but the last tie; each loses most in an event of its own, where the last loses nothing.

    Those that have not yet seen their event lead: in all other runs the last loses more.
    """
    within, ratio, best, ahead = 0.05, 1.051, 100.0, 0.2
    # Without its event each has the mean best - ahead.
    shape = _shape(((ratio - 1.0) * best + ahead) / chance, best - ahead)
    lucky = (count - 1) * chance
    more = (ahead + lucky * shape.usual) / (1.0 - lucky)

    def draw(i: int, shared: np.ndarray, rng: np.random.Generator) -> Seeds:
        regret = shape.draw(shared)
        if i == count - 1:
            return np.where(shared < lucky, 0.0, regret + more)
        return np.where(np.floor(shared / chance) == i, shape.largest, regret)

    return Case(
        f"{count - 1} with rare events",
        (ratio * best,) * (count - 1) + (best,),
        _share_uniform,
        draw,
        Goal(within, CONFIDENCE, most=MOST),
        limit=shape.largest,
    )
