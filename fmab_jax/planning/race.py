"""The race of a plan: seeds are added until one candidate is surely within x of the best.

All candidates share their seeds, and every bound holds at all looks and for all ordered pairs of
candidates at once (Bonferroni, which needs no independence). The guarantee comes from the rule that
stops the race, which compares the winner with every candidate, also with those that get no more
seeds; giving a candidate no more seeds only saves time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from fmab_jax.analysis.bands import clopper_pearson, student_critical

RACE, LINKS, RARE, LUCK = 0.7, 0.1, 0.1, 0.1
"""Shares of the chance of error: comparisons, budgets, and large regrets of the leader and small
ones of the others that no seed has shown yet."""

MOST_OVER = 0.01
"""Share of runs that may exceed a budget that no structure bounds."""


class Goal(NamedTuple):
    """What a race has to show.

    Attributes:
        within: x, so that the winner's mean regret is at most (1 + x) times the smallest.
        confidence: Chance that this holds, at least.
        worst: Largest regret that a run can have, such as M T times the largest gap.
        first: Seeds of each candidate at the first look; each further look doubles some.
        most: Most seeds of a candidate.
        strict: Bernstein's bound in place of Student's t, which needs normal means.
    """

    within: float
    confidence: float
    worst: float
    first: int = 200
    most: int = 10**6
    strict: bool = False


class Sample(NamedTuple):
    """What the runs of one candidate show, seed by seed.

    Attributes:
        regret: [seed] at the horizon.
        is_over: [seed] whether the run exceeds a budget.
    """

    regret: Float[np.ndarray, " seed"]
    is_over: Bool[np.ndarray, " seed"]


class Verdict(NamedTuple):
    """The result of a race.

    Attributes:
        winner: Index of the candidate with the smallest mean among those that are not shown to
            exceed a budget; -1 for none.
        keeps: Whether the winner is shown to keep the budgets.
        holds: Whether the goal is reached.
        within: The x that holds now for the winner; infinity for none.
        survivors: Candidates that are not surely worse than the winner, which is the first.
        infeasible: Candidates that exceed a budget.
        seeds: [candidate] seeds of each.
        means: [candidate] mean regret of each.
        looks: Looks that were taken.
        missing: Estimate of how many more seeds the goal needs, for the leader; 0 if it
            holds.
    """

    winner: int
    keeps: bool
    holds: bool
    within: float
    survivors: tuple[int, ...]
    infeasible: tuple[int, ...]
    seeds: tuple[int, ...]
    means: tuple[float, ...]
    looks: int
    missing: int


Observe = Callable[[Sequence[int], int], Sequence[Sample]]

LOOKS = 60
"""Most looks of a race: each doubles the seeds of at least one candidate."""

# Seeds that show which candidates exceed a budget.
_FEW = 8


def race(
    count: int,
    observe: Observe,
    goal: Goal,
    *,
    is_sure: Sequence[bool] = (),
    out_of_time: Callable[[], bool] = lambda: False,
) -> Verdict:
    """Adds seeds until one candidate is within x of the best, or seeds or time are spent.

    Args:
        count: Number of candidates.
        observe: Returns the samples of some candidates for the first so many seeds; the same seed
            is the same randomness for every candidate.
        goal: What has to be shown.
        is_sure: [candidate] whether its structure keeps all budgets; all by default.
        out_of_time: Whether to stop, asked after every look.
    """
    sure = list(is_sure) or [True] * count
    samples = [Sample(np.empty(0), np.empty(0, bool))] * count
    # Few seeds show that a budget is exceeded in most runs.
    for i, sample in _observe(observe, [i for i in range(count) if not sure[i]], _FEW):
        samples[i] = sample
    over = _Bounds(goal, samples, sure, np.zeros(count)).judge_budgets()[1]
    for i, sample in _observe(observe, [i for i in range(count) if not over[i]], goal.first):
        samples[i] = sample
    thresholds = np.array([find_threshold(x.regret, goal.worst) for x in samples])
    for look in range(1, LOOKS + 1):
        verdict, active = _Bounds(goal, samples, sure, thresholds).judge(look)
        sizes = {i: min(2 * len(samples[i].regret), goal.most) for i in active}
        grows = {i: n for i, n in sizes.items() if n > len(samples[i].regret)}
        if verdict.holds or not grows or look == LOOKS or out_of_time():
            break
        for seeds in sorted(set(grows.values())):
            group = [i for i, n in grows.items() if n == seeds]
            for candidate, sample in zip(group, observe(group, seeds), strict=True):
                samples[candidate] = sample
    return verdict


def _observe(observe: Observe, group: Sequence[int], seeds: int) -> Iterable[tuple[int, Sample]]:
    """Returns candidates with their samples; none for no candidates."""
    return zip(group, observe(group, seeds), strict=True) if group else ()


def find_threshold(regret: Float[np.ndarray, " seed"], worst: float) -> float:
    """Returns a regret that few runs exceed: what is beyond it has a bound of its own.

    Rare losses of the first look, below one run in twenty, do not move it.
    """
    middle, high = (float(np.quantile(regret, level)) for level in (0.5, 0.95))
    return min(worst, high + 2.0 * (high - middle))


class _Bounds(NamedTuple):
    """The bounds of one look; see `Goal` and `Sample`."""

    goal: Goal
    samples: list[Sample]
    sure: list[bool]
    thresholds: Float[np.ndarray, " candidate"]

    @property
    def error(self) -> float:
        """Chance of error of the whole race."""
        return 1.0 - self.goal.confidence

    @property
    def pair_error(self) -> float:
        """Chance of error of one comparison: of an ordered pair, at a look."""
        pairs = max(1, len(self.samples) * (len(self.samples) - 1))
        return RACE * self.error / (2 * pairs * LOOKS)

    def judge(self, look: int) -> tuple[Verdict, list[int]]:
        """Returns the verdict of a look, and the candidates that need more seeds."""
        seeds = [len(sample.regret) for sample in self.samples]
        means = [float(np.mean(sample.regret)) for sample in self.samples]
        keeps, breaks = self.judge_budgets()
        infeasible = tuple(i for i, is_broken in enumerate(breaks) if is_broken)
        allowed = [i for i, is_broken in enumerate(breaks) if not is_broken]
        verdict = Verdict(
            -1, False, False, math.inf, (), infeasible, tuple(seeds), tuple(means), look, missing=0
        )
        if not allowed:
            return verdict, []
        # Few seeds make a mean small by luck.
        errors = [float(np.std(x.regret)) / math.sqrt(len(x.regret)) for x in self.samples]
        leader = min(allowed, key=lambda i: means[i] + 3.0 * errors[i])
        others = sorted((j for j in allowed if j != leader), key=means.__getitem__)
        pairs = {j: self._compare(leader, j) for j in others}
        rare, x = self._rare_cost(leader), self.goal.within
        margins = {j: pair.margin(x) for j, pair in pairs.items()}
        holds = keeps[leader] and all(margin >= rare for margin in margins.values())
        within = _find_within(pairs.values(), rare)
        survivors = [leader, *(j for j in others if pairs[j].margin(0.0) <= rare)]
        verdict = verdict._replace(
            winner=leader,
            keeps=keeps[leader],
            holds=holds,
            within=within if keeps[leader] else math.inf,
            survivors=tuple(survivors),
            missing=0 if holds else self._estimate_missing(leader, within),
        )
        noisy = [j for j in others if margins[j] < 0.0]
        # A candidate with fewer seeds than the leader is what limits their comparison.
        active = {j for j in noisy if seeds[j] < seeds[leader]}
        if len(active) < len(noisy) or not noisy:
            active |= {leader, *noisy}
        active |= {j for j in others if margins[j] < rare and pairs[j].doubt(x) > 0.25 * rare}
        if not keeps[leader]:
            active.add(leader)
        return verdict, sorted(active)

    def judge_budgets(self) -> tuple[list[bool], list[bool]]:
        """Returns which candidates surely keep the budgets, and which surely do not."""
        # One look more: that of few seeds.
        error = LINKS * self.error / (2 * len(self.samples) * (LOOKS + 1))
        keeps, breaks = [], []
        for sample, is_sure in zip(self.samples, self.sure, strict=True):
            low, high = bound_share(int(sample.is_over.sum()), len(sample.is_over), error)
            keeps.append(is_sure or high <= MOST_OVER)
            breaks.append(not is_sure and low > MOST_OVER)
        return keeps, breaks

    def _clip(self, candidate: int, seeds: int) -> Float[np.ndarray, " seed"]:
        """Returns the regret of the first seeds, at most the candidate's threshold."""
        return np.minimum(self.samples[candidate].regret[:seeds], self.thresholds[candidate])

    def _rare_cost(self, candidate: int) -> float:
        """Returns a bound of the mean regret beyond the threshold."""
        excess = self._find_excess(candidate)
        if excess is None:
            return 0.0
        beyond, share, seeds = excess
        error = RARE * self.error / (len(self.samples) * LOOKS)
        return beyond * bound_mean(share if seeds else 1.0, seeds, error)

    def _find_excess(self, candidate: int) -> tuple[float, float, int] | None:
        """Returns what regrets beyond the threshold can be, their mean share of it, and seeds."""
        beyond = float(self.goal.worst - self.thresholds[candidate])
        if beyond <= 0.0:
            return None
        # The first look chose the threshold, so it does not count.
        later = self.samples[candidate].regret[self.goal.first :]
        excess = np.maximum(later - self.thresholds[candidate], 0.0) / beyond
        return beyond, float(excess.mean()) if len(later) else 0.0, len(later)

    def _compare(self, i: int, j: int) -> _Pair:
        """Returns the comparison of two candidates on the seeds that both have."""
        seeds = min(len(self.samples[i].regret), len(self.samples[j].regret))
        # Bernstein's bound needs thresholds that do not depend on the data.
        first = self.goal.first if self.goal.strict else 0
        # A lower bound of the other's mean may count its rare regrets; Bernstein's needs a range.
        other = self._clip(j, seeds) if self.goal.strict else self.samples[j].regret[:seeds]
        regrets = [self._clip(i, seeds)[first:], other[first:]]
        if len(regrets[0]) < 2:
            return _Pair(0, (0.0, 0.0), 0.0, np.zeros((2, 2)), (0.0, 0.0), self.pair_error, True)
        means = float(np.mean(regrets[0])), float(np.mean(regrets[1]))
        spreads = float(self.thresholds[i]), float(self.thresholds[j])
        luck = -self._find_rare_loss(j) if self.goal.strict else self._find_luck(other)
        return _Pair(
            len(regrets[0]),
            means,
            luck,
            np.cov(regrets),
            spreads,
            self.pair_error,
            self.goal.strict,
        )

    def _find_luck(self, regret: Float[np.ndarray, " seed"]) -> float:
        """Returns a bound of what rare luck, which no seed shows, takes from a mean.

        Regrets below the smallest of n seeds have a chance of at most 1 - error^(1/n), surely.
        """
        error = LUCK * self.error / (len(self.samples) * LOOKS)
        return float(np.min(regret)) * -math.expm1(math.log(error) / len(regret))

    def _find_rare_loss(self, candidate: int) -> float:
        """Returns a lower bound of the mean regret beyond the threshold."""
        excess = self._find_excess(candidate)
        if excess is None:
            return 0.0
        beyond, share, seeds = excess
        error = LUCK * self.error / (len(self.samples) * LOOKS)
        return beyond * (1.0 - bound_mean(1.0 - share, seeds, error))

    def _estimate_missing(self, leader: int, within: float) -> int:
        """Estimates how many more seeds the leader needs.

        Bounds of means shrink with the root of their number, that of rare losses with the number.
        """
        seeds, sample = len(self.samples[leader].regret), self.samples[leader].regret
        width = max(1.0, (min(within, 1e3) / self.goal.within) ** 2)
        error = RARE * self.error / (len(self.samples) * LOOKS)
        beyond = self.goal.worst - self.thresholds[leader]
        cost = 0.5 * self.goal.within * max(float(np.mean(sample)), 1e-12)
        rare = -math.log(error) * beyond / cost
        return int(max(seeds * (min(width, 4.0) - 1.0), rare - seeds, seeds))


class _Pair(NamedTuple):
    """Two candidates on the same seeds: the mean of the first less (1 + x) times the second.

    Attributes:
        seeds: Number of seeds.
        means: Of both.
        luck: What the second's mean may lack because of luck that no seed shows; negative where it
            surely has rare losses that its mean here lacks.
        covariance: Of both.
        spreads: Range of both.
        error: Chance that a bound fails.
        strict: Whether bounds are Bernstein's.
    """

    seeds: int
    means: tuple[float, float]
    luck: float
    covariance: Float[np.ndarray, "2 2"]
    spreads: tuple[float, float]
    error: float
    strict: bool

    def doubt(self, within: float) -> float:
        """Returns how far the mean difference may be above its mean over the seeds."""
        return self.half_width(within) + (1.0 + within) * self.luck

    def half_width(self, within: float) -> float:
        """Returns the half-width of the one-sided bound of the mean difference."""
        if self.seeds < 2:
            return math.inf
        weights = np.array([1.0, -1.0 - within])
        deviation = math.sqrt(max(0.0, float(weights @ self.covariance @ weights)))
        if not self.strict:
            quantile = _find_quantile(self.seeds - 1, self.error)
            return quantile * deviation / math.sqrt(self.seeds)
        # Maurer and Pontil (COLT 2009), theorem 4.
        log = math.log(2.0 / self.error)
        spread = self.spreads[0] + (1.0 + within) * self.spreads[1]
        width = math.sqrt(2.0 * log / self.seeds) * deviation
        return width + 7.0 * spread * log / (3.0 * (self.seeds - 1))

    def margin(self, within: float) -> float:
        """Returns how far the first is surely below (1 + x) times the second; negative if not."""
        return (1.0 + within) * self.means[1] - self.means[0] - self.doubt(within)

    def find_within(self, rare: float) -> float:
        """Returns the smallest x at which the first is within x of the second."""
        low, high = 0.0, 1e3
        if self.margin(low) >= rare:
            return 0.0
        if not self.margin(high) >= rare:
            return math.inf
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.margin(middle) >= rare else (middle, high)
        return high


def _find_within(pairs: Iterable[_Pair], rare: float) -> float:
    """Returns the smallest x at which the leader is within x of all others."""
    within = 0.0
    for pair in pairs:
        # Few pairs need a search: most hold at the x of another.
        if math.isfinite(within) and not pair.margin(within) >= rare:
            within = max(within, pair.find_within(rare))
    return within


@functools.cache
def _find_quantile(freedom: int, error: float) -> float:
    """Returns Student's quantile, which all pairs of a look share."""
    return student_critical(freedom, 2.0 * error)


def bound_mean(mean: float, trials: int, error: float) -> float:
    """Returns an upper bound, up to ``error``, of the mean of variables in [0, 1].

    Source: Chernoff's bound; Hoeffding, "Probability inequalities for sums of bounded random
    variables" (JASA 1963), theorem 1.
    """
    low, high = mean, 1.0
    goal = math.inf if trials == 0 else -math.log(error) / trials
    for _ in range(100):
        middle = 0.5 * (low + high)
        divergence = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - middle)) if mean < 1.0 else 0.0
        if mean > 0.0:
            divergence += mean * math.log(mean / middle)
        low, high = (low, middle) if divergence > goal else (middle, high)
        if high - low < 1e-15:
            break
    return high


def bound_share(events: int, trials: int, error: float) -> tuple[float, float]:
    """Returns one-sided Clopper-Pearson bounds of a probability, each up to ``error``."""
    low, high = clopper_pearson(events, trials, error)
    return float(low), float(high)
