"""Chooses the event that best distinguishes two data sets that differ in one reward.

The two chances of the event bound epsilon.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, ParamSpec, TypeVar

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from fmab_jax.analysis.bands import clopper_pearson
from fmab_jax.records.problem import Problem
from fmab_jax.sampling.backend import trace_for

P = ParamSpec("P")
T = TypeVar("T")

VIEWS = ("messages", "sums", "actions")
"""Views: single messages or released rewards; sums over agents; arms that are pulled."""

BATCH = 2**16
"""Rows of agents in one batch."""

ARMS, ARM = 2, 1
"""Number of arms, and the arm of the reward that differs; it loses ties."""

UPLOADS, HORIZON = 3, 100_000
"""Number of messages in a run, and the horizon of their schedule."""


def trace_by_default(function: Callable[P, T]) -> Callable[P, T]:
    """Returns a function that JAX traces for its default platform."""

    @functools.wraps(function)
    def trace_here(*args: P.args, **kwargs: P.kwargs) -> T:
        with trace_for(jax.default_backend()):
            return function(*args, **kwargs)

    return trace_here


class Stream(NamedTuple):
    """Output of an algorithm for two neighbouring data sets."""

    words: str  # the output, and which reward differs
    without_reward: int  # names the data set without the reward, for ``draw``
    with_reward: int  # names the neighbouring one
    rounds: tuple[int, ...] = ()  # rounds or slots of the output; () for whole runs


class Numbers(NamedTuple):
    """Observed numbers in a batch of runs."""

    values: Float[np.ndarray, "run number"]  # in rewards; or how often an arm was pulled
    lengths: Float[np.ndarray, " number"]  # rewards that each is a sum of
    names: list[str]  # what each number is
    first: int  # the number in which the changed reward is first seen
    counts: bool = False  # whether the numbers are counts of pulls, in the order of time


def make_zero_problem(agents: int) -> Problem:
    """Returns the problem in which every reward is 0."""
    return Problem([0.0] * ARMS, agents)


def make_seed(data: int, batch: int) -> np.uint32:
    """Returns the seed of a batch in which the reward of a round, or slot, differs; -1 for none."""
    return np.uint32(batch * (UPLOADS + 1) + data + 1)


# Runs that screen the simple statistics.
_SCREENED = 2**13
# With more numbers than this, sums and differences of two are not tried.
_FEW_NUMBERS = 12
# Rarer sequences of pulls get no ratio.
_OFTEN = 16
# Rows are runs.
_Values = Float[np.ndarray, "run number"]


class Rule(NamedTuple):
    """How chances become a bound."""

    runs: int  # of each data set
    tail: float  # chance that one limit is wrong
    delta: float  # of the claim

    @property
    def most(self) -> float:
        """Largest bound."""
        return float(bound_epsilon(np.float64(self.runs), np.float64(0.0), self))


class Statistic(NamedTuple):
    """Statistic of the numbers: a weighted sum, its distance from a point, or a table entry."""

    words: str
    weights: Float[np.ndarray, " number"] = np.empty(0)  # none with a table
    centre: float | None = None
    table: tuple[int, pd.Series] | None = None  # length, and log likelihood ratios by sequence

    def evaluate(self, values: _Values) -> Float[np.ndarray, " run"]:
        """Returns the statistic of each run; 0 for a sequence that is not in the table."""
        if self.table is not None:
            length, ratios = self.table
            return ratios.reindex(_hash_sequences(values[:, :length]), fill_value=0.0).to_numpy()
        x = values @ self.weights
        return x if self.centre is None else np.abs(x - self.centre)


def _hash_sequences(values: _Values) -> Int[np.ndarray, " run"]:
    """Returns a number for each sequence; two sequences may share one, which weakens an event."""
    odd = 2 * np.random.default_rng(1).integers(-(2**61), 2**61, size=values.shape[1]) + 1
    # Agents that explore share a slot: halves. Sums are taken modulo 2^64.
    codes: Int[np.ndarray, " run"] = np.sum(np.rint(2.0 * values).astype(np.int64) * odd, axis=1)
    return codes


class Event(NamedTuple):
    """Event that a statistic is at least, or below, a threshold."""

    statistic: Statistic
    threshold: float
    above: bool  # at least, else below
    likelier: int  # side on which it happens more often
    bound: float  # on epsilon, about, that the pilot gives

    @property
    def words(self) -> str:
        """Such as "round 1, arm 2: at least 1"."""
        side = "at least" if self.above else "below"
        return f"{self.statistic.words}: {side} {self.threshold:.4g}"


def choose_event(pilot: Sequence[Numbers], rule: Rule) -> Event:
    """Returns the event with the largest bound, among likelihood ratios and simple statistics.

    By Neyman and Pearson the best one has a large likelihood ratio: of messages that is a half-line
    of the first number that holds the reward, or an interval around it; of actions, a set of
    sequences of pulls.

    Args:
        pilot: What is seen of both sides, on runs that are not counted.
        rule: Of the bound.
    """
    first, sides = pilot[0], [side.values for side in pilot]
    half = len(first.values) // 2
    tables = _tabulate_ratios(first.names, [side[:half] for side in sides]) if first.counts else []
    simple = _list_statistics(first)
    few = [side[:_SCREENED] for side in sides]
    winner = max(
        (_choose_event_of(statistic, few, rule) for statistic in simple), key=lambda e: e.bound
    )
    best = simple[first.first]
    close = [] if first.counts else [_measure_distance(best, centre) for centre in (0.0, 1.0)]
    # One half builds the tables, the other judges them.
    judged_sides = [side[half:] for side in sides] if tables else sides
    events = (
        _choose_event_of(candidate, judged_sides, rule)
        for candidate in (best, *close, winner.statistic, *tables)
    )
    return max(events, key=lambda event: event.bound)


def _measure_distance(statistic: Statistic, centre: float) -> Statistic:
    return statistic._replace(words=f"distance of {statistic.words} from {centre:g}", centre=centre)


def _list_statistics(numbers: Numbers) -> list[Statistic]:
    """Returns single numbers, their distances from a reward, pulls so far, and pairs of numbers.

    Pairs are sums and differences of two sums, or of two means.
    """
    names, lengths, unit = numbers.names, numbers.lengths, np.eye(len(numbers.names))
    single = [Statistic(name, weights) for name, weights in zip(names, unit, strict=True)]
    if numbers.counts:
        so_far = np.tril(np.ones_like(unit))
        return single + [
            Statistic(f"pulls of arm 2, {names[0]} to {names[i]}", so_far[i])
            for i in range(1, len(names))
        ]
    statistics = single + [
        _measure_distance(statistic, centre) for statistic in single for centre in (0.0, 1.0)
    ]
    if len(names) > _FEW_NUMBERS:
        return statistics
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        for ratio in dict.fromkeys((1.0, float(lengths[i] / lengths[j]))):
            for sign, word in ((1.0, "plus"), (-1.0, "minus")):
                times = f"{ratio:.4g} x " if ratio != 1.0 else ""
                words = f"({names[i]}) {word} {times}({names[j]})"
                statistics.append(Statistic(words, unit[i] + sign * ratio * unit[j]))
    return statistics


def _tabulate_ratios(names: Sequence[str], sides: Sequence[_Values]) -> list[Statistic]:
    """Returns log likelihood ratios of sequences of pulls, by how many numbers they have."""
    numbers, tables = len(names), []
    for length in sorted({min(numbers, 2**n) for n in range(numbers.bit_length() + 1)}):
        counts = [pd.Series(_hash_sequences(side[:, :length])).value_counts() for side in sides]
        table = pd.concat(counts, axis=1, keys=[0, 1]).fillna(0)
        table = table[table.sum(axis=1) >= _OFTEN]
        if len(table):
            words = f"log likelihood ratio of pulls, {names[0]} to {names[length - 1]}"
            ratios = np.log((table[1] + 0.5) / (table[0] + 0.5))
            tables.append(Statistic(words, table=(length, ratios)))
    return tables


def _choose_event_of(statistic: Statistic, sides: Sequence[_Values], rule: Rule) -> Event:
    """Returns the event of a statistic with the largest estimated bound."""
    without_reward, with_reward = (np.sort(statistic.evaluate(side)) for side in sides)
    runs = len(without_reward)
    rule = rule._replace(runs=runs)
    for below, above, likelier in (
        (without_reward, with_reward, 1),
        (with_reward, without_reward, 0),
    ):
        if below[-1] < above[0]:
            middle = float(below[-1] / 2 + above[0] / 2)
            return Event(statistic, middle, True, likelier, math.inf)
    quantiles = np.linspace(0.0, 1.0, 41)
    grid = np.concatenate(
        [np.quantile(without_reward, quantiles), np.quantile(with_reward, quantiles), [0.0, 1.0]]
    )
    if statistic.table is not None:
        grid = np.unique(statistic.table[1])
    elif statistic.centre is not None:
        # Thresholds close to the centre are tried as well.
        grid = np.concatenate([grid, np.quantile(without_reward, [1e-4, 1e-3, 0.01])])
    reached = np.stack(
        [runs - np.searchsorted(side, grid, "left") for side in (without_reward, with_reward)]
    )
    # [below, likelier, threshold]
    happened = np.stack([reached, runs - reached])
    bound = _estimate_bound(happened, happened[:, ::-1], rule)
    best = int(np.argmax(bound))
    side, likelier, place = map(int, np.unravel_index(best, bound.shape))
    return Event(statistic, float(grid[place]), not side, likelier, float(bound.flat[best]))


def _estimate_bound(high_count: np.ndarray, low_count: np.ndarray, rule: Rule) -> np.ndarray:
    """Approximates `bound_epsilon` at a hundredth of its cost, to choose events."""
    from scipy.special import ndtri

    wide, runs = -ndtri(rule.tail), rule.runs
    low = (
        high_count
        - wide * np.sqrt(high_count * (1.0 - high_count / runs) + 1.0)
        - rule.delta * runs
    )
    high = low_count + wide * np.sqrt(low_count * (1.0 - low_count / runs) + 1.0) + wide**2 / 2
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low, 0.0)) - np.log(high)


def bound_epsilon(
    high_count: np.ndarray | float, low_count: np.ndarray | float, rule: Rule
) -> np.ndarray | float:
    """Returns a lower bound on log((p - delta) / q) from two counts.

    It takes Clopper and Pearson's lower limit of p and their upper limit of q.
    """
    low, _ = clopper_pearson(high_count, rule.runs, rule.tail)
    _, high = clopper_pearson(low_count, rule.runs, rule.tail)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - rule.delta, 0.0)) - np.log(high)
