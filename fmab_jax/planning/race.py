"""The race of a plan: seeds are added until one candidate is surely within x of the best.

All candidates share their seeds. The winner is compared with every other candidate by a bet that
wins money only if the winner is near enough: if it is not, the money exceeds 1 / error with a
chance of at most ``error``, at any time (Ville). So comparisons take nothing as normal, and need no
count of looks.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from fmab_jax.analysis.bands import clopper_pearson
from fmab_jax.planning.question import FIRST_SEEDS, OVER
from fmab_jax.planning.tails import Tail

RACE, LINKS, RARE = 0.8, 0.1, 0.1
"""Shares of the chance of error: comparisons, budgets, and large regrets of the winner that few
seeds or none have shown."""

PILOT = 50
"""Seeds that choose where a candidate's large regrets begin; no bet is made on them."""

LOOKS = 60
"""Most numbers of seeds at which the budgets of a candidate are judged."""

# Seeds that show which candidates exceed a budget.
_FEW = 8
# Stakes of the bets, as parts of the largest, and their shares of the money.
_STAKES = 0.95 * 0.5 ** np.arange(8)
_SHARES = np.array([0.5, *[0.5 / 7] * 7])
# More seeds than any race has.
_MOST_WANTED = 1e12
# Seeds of the winner that a bound of rare losses may take without a search for a cheaper winner.
_DEAR = 20_000

Regrets = Float[np.ndarray, " seed"]


class End(enum.StrEnum):
    """Why a race ended."""

    DECIDED = "decided"
    TIME = "time"
    SEEDS = "seeds"
    STOPPED = "stopped"


class Goal(NamedTuple):
    """What a race has to show.

    Attributes:
        within: x, so that the winner's mean regret is at most (1 + x) times the smallest.
        confidence: Chance that this holds, at least.
        first: Seeds of each candidate at its first look.
        most: Most seeds of a candidate.
        over: Share of runs that may exceed a budget, in [0, 1).
    """

    within: float
    confidence: float
    first: int = FIRST_SEEDS
    most: int = 10**6
    over: float = OVER


class Sample(NamedTuple):
    """What the runs of one candidate show, seed by seed.

    Attributes:
        regret: [seed] at the horizon.
        is_over: [seed] whether the run exceeds a budget.
    """

    regret: Regrets
    is_over: Bool[np.ndarray, " seed"]


class Verdict(NamedTuple):
    """The result of a race.

    Attributes:
        winner: Index of the candidate that leads those that are not shown to exceed a budget; -1
            for none.
        keeps: Whether the winner is shown to keep the budgets.
        holds: Whether the goal is reached.
        within: The x that holds now for the winner; infinity for none.
        survivors: Candidates that are not surely worse than the winner, which is the first.
        rivals: Candidates for which the goal is not shown.
        infeasible: Candidates that exceed a budget.
        unshown: Candidates of which no seeds that they may have show that they keep the
            budgets; they are neither rivals nor survivors.
        seeds: [candidate] seeds of each.
        near: Rivals that may be better although the winner loses no more than its runs show; for
            the others the goal is not shown because of its rare losses alone.
        rare: Bound of the mean regret that the winner's runs may have beyond what they show.
        tail: What is known of the winner's large losses; None for no winner.
        missing: Estimate of the trials that the goal still needs; 0 if it holds.
        end: Why the race ended.
    """

    seeds: tuple[int, ...]
    infeasible: tuple[int, ...]
    unshown: tuple[int, ...]
    winner: int = -1
    keeps: bool = False
    holds: bool = False
    within: float = math.inf
    survivors: tuple[int, ...] = ()
    rivals: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    rare: float = math.inf
    tail: Tail | None = None
    missing: int = 0
    end: End = End.SEEDS


Observe = Callable[[Sequence[int], int], Sequence[Sample]]
FindTail = Callable[[int], Tail]


def race(
    is_sure: Sequence[bool],
    observe: Observe,
    find_tail: FindTail,
    goal: Goal,
    *,
    is_over_time: Callable[[], bool] = lambda: False,
    report: Callable[[Verdict], None] = lambda verdict: None,
) -> Verdict:
    """Adds seeds until one candidate is within x of the best, or seeds or time are spent.

    Ctrl-C ends the race with what it shows, once all candidates have run.

    Args:
        is_sure: [candidate] whether its structure keeps all budgets.
        observe: Returns the samples of some candidates for the first so many seeds; the same seed
            is the same randomness for every candidate.
        find_tail: Returns what a candidate's runs may lose at most; asked of few candidates.
        goal: What has to be shown.
        is_over_time: Whether to stop, asked after every look.
        report: Is told what every look shows.
    """
    judge = _Judge(is_sure, observe, find_tail, goal)
    judge.start()
    verdict, wanted_seeds = judge.judge()
    try:
        while True:
            report(verdict)
            if verdict.holds:
                return verdict._replace(end=End.DECIDED)
            if not wanted_seeds:
                return verdict
            if is_over_time():
                return verdict._replace(end=End.TIME)
            judge.grow(wanted_seeds)
            verdict, wanted_seeds = judge.judge()
    except KeyboardInterrupt:
        return verdict._replace(end=End.STOPPED)


def find_threshold(regret: Regrets, limit: float) -> float:
    """Returns a regret that few runs exceed: what is beyond it has a bound of its own.

    Rare losses of the pilot, below one run in twenty, do not move it.
    """
    middle, high = (float(np.quantile(regret, level)) for level in (0.5, 0.95))
    return min(limit, high + 2.0 * (high - middle))


def count_budget_seeds(goal: Goal, count: int) -> float:
    """Returns the seeds that show, without an event, that one of the candidates keeps a budget."""
    error = LINKS * (1.0 - goal.confidence) / (2 * count * (LOOKS + 1))
    return math.log(error) / math.log1p(-goal.over) if goal.over else math.inf


def list_sizes(first: int) -> Iterator[int]:
    """Yields the seeds of looks: at least 1.4 times as many each time, and ``first`` more."""
    size = first
    while True:
        yield size
        size = max(size + first, first * math.ceil(1.4 * size / first))


class _Pair(NamedTuple):
    """The winner and another candidate, on the seeds that both have and that no pilot used.

    There are two bets, each with half of the error. One cuts the winner's regret at its threshold
    and takes a bound of the rest; few seeds decide it where the other loses much more. The other
    one cuts it at its limit, which takes many seeds of both, and sees what both lose at once.

    Attributes:
        regret: Of the winner.
        other: Of the other candidate, or less.
        threshold: Of the winner.
        limit: Of the winner's tail; see `Tail`.
        excess: Of the winner's tail.
    """

    regret: Regrets
    other: Regrets
    threshold: float
    limit: float
    excess: float

    def subtract(self, within: float, cut: float) -> Regrets:
        """Returns the winner's regret, cut and with its excess, less (1 + x) times the other's."""
        return np.minimum(self.regret, cut) + self.excess - (1.0 + within) * self.other

    def measure_log_money(self, within: float, cut: float, rare: float) -> float:
        """Returns the logarithm of the money of a bet that the winner is within x."""
        return measure_log_money(self.subtract(within, cut), cut + self.excess, -rare)

    def is_within(self, within: float, rare: float, error: float) -> bool:
        """Tells whether the winner is within x, if its rare regrets cost so much."""
        goal = -math.log(0.5 * error)
        cuts = (self.threshold, rare), (self.limit, 0.0)
        return any(self.measure_log_money(within, *cut) >= goal for cut in cuts)

    def find_within(self, rare: float, error: float) -> float:
        """Returns the smallest x at which the winner is within x of the other."""
        low, high = 0.0, 1e3
        if self.is_within(low, rare, error):
            return 0.0
        if not self.is_within(high, rare, error):
            return math.inf
        while high - low > 1e-3 * high and high > 1e-6:
            middle = 0.5 * (low + high) if low else math.sqrt(1e-7 * high)
            low, high = (low, middle) if self.is_within(middle, rare, error) else (middle, high)
        return high


class _Judge:
    """The samples of a race, and what they show."""

    def __init__(
        self, is_sure: Sequence[bool], observe: Observe, find_tail: FindTail, goal: Goal
    ) -> None:
        self.is_sure, self.goal, self.count = is_sure, goal, len(is_sure)
        self._observe, self._find_tail = observe, functools.cache(find_tail)
        self.samples = [Sample(np.empty(0), np.empty(0, bool))] * self.count

    @property
    def error(self) -> float:
        """Chance of error of the whole race."""
        return 1.0 - self.goal.confidence

    @property
    def pair_error(self) -> float:
        """Chance of error of a pair: a wrong statement is about the best and one of the others."""
        return RACE * self.error / max(1, self.count - 1)

    def start(self) -> None:
        """Takes the first look of all candidates."""
        # Few seeds show that a budget is exceeded in most runs.
        self._look([i for i in range(self.count) if not self.is_sure[i]], _FEW)
        breaks = self.judge_budgets()[1]
        self._look([i for i in range(self.count) if not breaks[i]], self.goal.first)

    def grow(self, wanted_seeds: dict[int, int]) -> None:
        """Takes a look of candidates with more seeds, up to twice as many.

        Args:
            wanted_seeds: Seeds that candidates need in all.
        """
        sizes: dict[int, list[int]] = {}
        for i, number in wanted_seeds.items():
            sizes.setdefault(self._choose_next_size(i, number), []).append(i)
        for seeds, group in sorted(sizes.items()):
            self._look(group, seeds)

    def _look(self, group: Sequence[int], seeds: int) -> None:
        if group:
            for candidate, sample in zip(group, self._observe(group, seeds), strict=True):
                self.samples[candidate] = sample

    def _choose_next_size(self, candidate: int, wanted_seeds: int) -> int:
        """Returns the seeds of the candidate's next look.

        It is the first scheduled number that reaches ``wanted_seeds``, at most twice today's seeds.
        """
        seeds = len(self.samples[candidate].regret)
        sizes = itertools.takewhile(lambda x: x <= 2 * seeds, list_sizes(self.goal.first))
        larger = [size for size in sizes if size > seeds]
        size = next((size for size in larger if size >= wanted_seeds), larger[-1])
        return min(size, self.goal.most)

    def judge(self) -> tuple[Verdict, dict[int, int]]:
        """Returns what the samples show, and the seeds that candidates want."""
        count, goal = self.count, self.goal
        seeds = [len(sample.regret) for sample in self.samples]
        keeps, breaks = self.judge_budgets()
        ran = [i for i in range(count) if not breaks[i]]
        # No more seeds can show that a budget is kept.
        spent = [i for i in ran if not keeps[i] and seeds[i] >= goal.most]
        ran = [i for i in ran if i not in spent] or ran
        unshown = tuple(i for i in spent if i not in ran)
        infeasible = tuple(i for i in range(count) if breaks[i])
        verdict = Verdict(tuple(seeds), infeasible, unshown)
        if not ran:
            return verdict, {}
        winner = self._choose_winner(ran)
        rare, error, x = self.bound_rare(winner), self.pair_error, goal.within
        pairs = {j: self.compare(winner, j) for j in ran if j != winner}
        rivals = [j for j, pair in pairs.items() if not pair.is_within(x, rare, error)]
        # As all pairs of candidates may be named, each has a smaller part of the error.
        strict = error / count
        means = {j: float(np.mean(self.samples[j].regret)) for j in ran}
        survivors = [
            j
            for j, pair in pairs.items()
            if means[j] <= means[winner] or not pair.is_within(0.0, rare, strict)
        ]
        near = [j for j in rivals if not pairs[j]._replace(excess=0.0).is_within(x, 0.0, error)]
        verdict = verdict._replace(
            winner=winner,
            keeps=keeps[winner],
            holds=keeps[winner] and not rivals,
            rare=rare,
            tail=self.find_tail(winner),
            near=tuple(near),
            rivals=tuple(rivals),
            survivors=(winner, *sorted(survivors, key=means.__getitem__)),
        )
        wanted_seeds = self._list_wanted_seeds(verdict, pairs)
        within = _find_within([pairs[j] for j in rivals], x, rare, error)
        verdict = verdict._replace(
            within=within if keeps[winner] else math.inf,
            missing=sum(number - seeds[i] for i, number in wanted_seeds.items()),
        )
        return verdict, {i: n for i, n in wanted_seeds.items() if seeds[i] < goal.most}

    def _choose_winner(self, ran: Sequence[int]) -> int:
        """Returns the candidate that leads.

        Few seeds make a mean small by luck. Of two that are alike, the one leads whose rare losses
        take fewer seeds: half of x is left for the difference.
        """
        rates: dict[int, float] = {}
        for i in ran:
            regret = self.samples[i].regret
            mean, error = float(np.mean(regret)), float(np.std(regret)) / math.sqrt(len(regret))
            rates[i] = mean + 3.0 * error
        winner, least = -1, math.inf
        for i in sorted(ran, key=rates.__getitem__):
            if rates[i] >= least:
                break
            mean = float(np.mean(self.samples[i].regret))
            allowed, tail = 0.5 * self.goal.within * mean, self.find_tail(i)
            is_dear = -math.log(self.pair_error) * tail.limit > _DEAR * allowed
            rate = rates[i] + (allowed if is_dear and not tail.source else 0.0)
            if rate < least:
                winner, least = i, rate
        return winner

    def _list_wanted_seeds(self, verdict: Verdict, pairs: dict[int, _Pair]) -> dict[int, int]:
        """Estimates how many seeds candidates need in all: the least for either bet of a pair."""
        winner, own = verdict.winner, verdict.seeds[verdict.winner]
        wanted_seeds: dict[int, float] = {}
        for j in verdict.rivals:
            seeds = verdict.seeds[j]
            needs = self._list_needs(pairs[j], own, seeds, verdict.rare)
            need = min(needs, key=lambda x: max(0.0, x[0] - own) + max(0.0, x[1] - seeds))
            for i, number in zip((winner, j), need, strict=True):
                if number > verdict.seeds[i]:
                    wanted_seeds[i] = max(wanted_seeds.get(i, 0.0), number)
        if not verdict.keeps:
            wanted_seeds[winner] = max(wanted_seeds.get(winner, 0.0), 1.4 * own)
        return {i: math.ceil(min(number, _MOST_WANTED)) for i, number in wanted_seeds.items()}

    def _list_needs(
        self, pair: _Pair, own: int, seeds: int, rare: float
    ) -> list[tuple[float, float]]:
        """Estimates how many seeds the winner and another one need, for each bet of a pair."""
        x, goal = self.goal.within, -math.log(0.5 * self.pair_error)
        # Nothing shows yet that the goal can be met.
        needs = [(2.0 * own if seeds >= own else own, 2.0 * seeds)]
        ahead = -float(np.mean(pair.subtract(x, pair.threshold)))
        if ahead > 0.0:
            # Half of what the winner is ahead is for its rare losses, half for the doubt.
            times = _find_times(pair.measure_log_money(x, pair.threshold, 0.5 * ahead), goal)
            needs = [(max(own * 2.0 * rare / ahead, min(own, times * seeds)), times * seeds)]
        if -float(np.mean(pair.subtract(x, pair.limit))) > 0.0:
            both = min(own, seeds) * _find_times(pair.measure_log_money(x, pair.limit, 0.0), goal)
            needs.append((both, both))
        return needs

    def judge_budgets(self) -> tuple[list[bool], list[bool]]:
        """Returns which candidates surely keep the budgets, and which surely do not."""
        # One look more: that of few seeds.
        error = LINKS * self.error / (2 * self.count * (LOOKS + 1))
        keeps, breaks = [], []
        for sample, is_sure in zip(self.samples, self.is_sure, strict=True):
            low, high = clopper_pearson(int(sample.is_over.sum()), len(sample.is_over), error)
            keeps.append(is_sure or bool(high <= self.goal.over))
            breaks.append(not is_sure and bool(low > self.goal.over))
        return keeps, breaks

    def find_tail(self, candidate: int) -> Tail:
        """Returns the tail of a candidate; without a theorem that allows more than half of x."""
        tail, pilot = self._find_tail(candidate), self.samples[candidate].regret[:PILOT]
        allowed = 0.5 * self.goal.within * float(np.mean(pilot))
        return tail if tail.excess <= allowed else tail.without_theorem()

    def find_threshold(self, candidate: int) -> float:
        """Returns the threshold that the pilot of a candidate chose, at most its limit."""
        pilot = self.samples[candidate].regret[:PILOT]
        return find_threshold(pilot, self.find_tail(candidate).limit)

    def bound_rare(self, candidate: int) -> float:
        """Returns a bound of the mean regret between the threshold and the limit."""
        threshold = self.find_threshold(candidate)
        beyond = self.find_tail(candidate).limit - threshold
        if beyond <= 0.0:
            return 0.0
        regret = self.samples[candidate].regret[PILOT:]
        share = np.clip((regret - threshold) / beyond, 0.0, 1.0)
        return beyond * bound_mean(share, RARE * self.error / self.count)

    def compare(self, i: int, j: int) -> _Pair:
        """Returns the pair of a candidate and another one."""
        tail, other = self.find_tail(i), self.samples[j].regret
        threshold = self.find_threshold(i)
        seeds = min(len(self.samples[i].regret), len(other))
        regret = self.samples[i].regret[PILOT:seeds]
        return _Pair(regret, other[PILOT:seeds], threshold, tail.limit, tail.excess)


def _find_within(pairs: Iterable[_Pair], least: float, rare: float, error: float) -> float:
    """Returns the smallest x at which the winner is within x of all others, at least ``least``."""
    within = least
    for pair in pairs:
        # Few pairs need a search: most hold at the x of another.
        if math.isfinite(within) and not pair.is_within(within, rare, error):
            within = max(within, pair.find_within(rare, error))
    return within


def _find_times(money: float, goal: float) -> float:
    """Estimates how many times as many seeds a bet needs; money grows in proportion to seeds."""
    return max(goal / money, 1.0) if money > 0.01 * goal else 100.0


def measure_log_money(values: Regrets, top: float, mean: float) -> float:
    """Returns the logarithm of the money of bets that the mean of values is below ``mean``.

    Each bet starts with a part of 1, and stakes the same part of its money on each value. If the
    mean is not below, the money never exceeds 1 / error with more than a chance of ``error``.

    Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS
    B 2024), with fixed stakes; Ville's inequality.

    Args:
        values: Independent, of one law, at most ``top``.
        top: Above ``mean``.
        mean: To be refuted.
    """
    if top <= mean:
        return math.inf  # where all is 0 nothing can be lost
    gains = (mean - values) / (top - mean)
    logs = np.log1p(_STAKES[:, None] * gains[None]).sum(axis=1) + np.log(_SHARES)
    return float(np.logaddexp.reduce(logs))


def bound_mean(values: Regrets, error: float) -> float:
    """Returns an upper bound, up to ``error``, of the mean of variables in [0, 1]."""
    low, high = float(np.mean(values)) if len(values) else 1.0, 1.0
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        is_above = measure_log_money(values, 1.0, middle) >= -math.log(error)
        low, high = (low, middle) if is_above else (middle, high)
    return high
