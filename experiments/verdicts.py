"""How a sentence of the paper is judged: numbers with intervals, and one rule of tolerance.

* An order ("increases", "smaller") holds where the interval lies on the stated side.
* A value, or a likeness, holds where the interval lies within 5 % of it.
* "Not worse" and "recovered" hold where the interval lies below 5 % more.
* A high probability holds where the interval lies above 95 %.

An interval that lies across an edge decides nothing. Every verdict states the size of the effect,
and an order that holds by less than 1 % is counted apart.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.bands import fieller, lost_interval, student_critical

LEVEL, TOLERANCE = 0.99, 0.05
SMALL = 0.01  # an order that holds by less says so
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
# A bound asks nothing about being attained; a condition asks nothing about being reached.
NOT_ATTAINED, NOT_REACHED = "not attained", "not reached"
UNJUDGED = "not judged"  # at these horizons
HOLDS_LITTLE = f"{HOLDS} by less than {100 * SMALL:g} %"
SOMETIMES = "holds under some conditions only"
# In a row's verdict the first of these comes first; the others follow with their conditions.
FIRST = (HOLDS, FAILS, NOT_ATTAINED, NOT_REACHED, OPEN, UNJUDGED)
KINDS = (HOLDS, HOLDS_LITTLE, SOMETIMES, FAILS, NOT_ATTAINED, NOT_REACHED, OPEN, UNJUDGED)
# Names of the rules in claims.csv.
ORDER, ALIKE, NO_MORE, VALUE, PROBABLE = "order", "alike", "no more", "value", "probable"
AT_MOST, AT_LEAST, NO_SHARE = "at most", "at least", f"{ORDER}, no share"
# Names of numbers that compare a bound with the regret end in this.
LOOSENESS = "bound / regret"


class Measured(NamedTuple):
    """A number with its interval."""

    estimate: float
    lower: float
    upper: float

    def map(self, change: Callable[[float], float]) -> Measured:
        """Returns the number and the ends of its interval, changed by an increasing map."""
        return Measured(*map(change, self))


class Finding(NamedTuple):
    """A result under one condition, such as "T = 10⁴"."""

    condition: str
    text: str  # the measured numbers in words
    verdict: str
    numbers: dict[str, Measured] = {}  # the rule is applied to all of them
    counted: bool = True  # whether it is part of the row's verdict
    rule: str = ""
    against: float = math.nan  # the value or bound of the rule, if it has one
    extras: dict[str, Measured] = {}  # numbers that the text states besides
    seeds: dict[str, tuple[int, int]] = {}  # of a number: seeds that meet a condition, and all

    @property
    def effects(self) -> dict[str, float]:
        """Size of the effect of every number: relative to the value or bound, if there is one."""
        scale = 1.0 if math.isnan(self.against) or not self.against else self.against
        return {name: number.estimate / scale for name, number in self.numbers.items()}

    def add(self, words: str, **extras: Measured) -> Finding:
        """Returns the finding with further words, and the numbers in them."""
        return self._replace(
            text=f"{self.text}{words}", extras={**self.extras, **_rename_keys(extras)}
        )

    def uncount(self, why: str) -> Finding:
        """Returns the finding as one that is shown but not judged."""
        return self._replace(counted=False, text=f"{self.text} (not counted: {why})")


class Row(NamedTuple):
    """One sentence of the paper."""

    section: str
    quote: str  # a few of its words, as the LaTeX has them
    words: str  # the measured quantity, and the condition for agreement
    judge: Callable[[Any], list[Finding]]
    see: str = ""  # the figure, table or function behind it
    note: str = ""


class Data:
    """Results of the experiments and of extra sweeps, simulated or read on demand."""

    def __init__(
        self,
        load: Callable[[str], Mapping[int, Any]],
        horizons: Sequence[int],
        seeds: int,
        runs: Path | None,
    ) -> None:
        self.load = functools.cache(load)
        self.horizons, self.seeds, self.runs = tuple(horizons), seeds, runs
        self._sweeps: dict[str, xr.Dataset] = {}

    def last(self, name: str, horizon: int, **cell: Any) -> xr.Dataset:
        """Returns one cell of an experiment at T."""
        return self.load(name)[horizon].sel(cell).isel(time=-1)

    def end(self, name: str, horizon: int, **cell: Any) -> np.ndarray:
        """Returns [seed] regret at T of one cell of an experiment."""
        return self.last(name, horizon, **cell).regret.values

    def sweep(self, name: str, algorithm: Any, problem: Any, **settings: Any) -> xr.Dataset:
        """Returns a sweep that no figure needs, at its last slot."""
        if name not in self._sweeps:
            store = None if self.runs is None else self.runs / f"claims_{name}"
            settings = {"seeds": self.seeds, "times": 8} | settings
            data = fmab.sweep(algorithm, problem, store=store, **settings)
            self._sweeps[name] = data.isel(time=-1)
        return self._sweeps[name]


# --- numbers ------------------------------------------------------------------------------------


def mean(values: Any) -> Measured:
    """Returns the mean over seeds (Student t)."""
    return Measured(*common.interval(values, LEVEL))


def share(events: Any) -> Measured:
    """Returns the share of seeds in which an event happened (Clopper-Pearson)."""
    events = np.asarray(events, bool)
    return Measured(events.mean(), *lost_interval(int(events.sum()), events.size, LEVEL))


def ratio(first: Any, second: Any) -> Measured:
    """Returns the ratio of two means over the same seeds (Fieller).

    The ends are NaN, which decides nothing, where the second mean may be 0.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    estimate, seeds = float(first.mean() / second.mean()), second.size
    # The residual of the first has mean 0, so no digits cancel.
    cov = np.cov(first - estimate * second, second) / seeds
    critical = student_critical(seeds - 1, 1 - LEVEL)
    ends = fieller(0.0, float(second.mean()), cov[0, 0], cov[1, 1], cov[0, 1], critical)
    return Measured(estimate, *(estimate + float(end) for end in ends))


def excess(first: Any, second: Any) -> Measured:
    """Returns by what share the first mean exceeds the second, over the same seeds."""
    return ratio(first, second).map(lambda value: value - 1)


def less(first: Any, second: Any) -> Measured:
    """Returns by what share the first mean is below the second, over the same seeds."""
    more = excess(first, second)
    return Measured(-more.estimate, -more.upper, -more.lower)


def change(after: tuple[Any, Any], before: tuple[Any, Any]) -> Measured:
    """Returns by what share a ratio of means changed, all four over the same seeds."""
    parts = [np.asarray(values, np.float64) for values in (*after, *before)]
    means = [values.mean() for values in parts]
    a, b, c, d = (values / values.mean() for values in parts)
    factor = means[0] / means[1] / (means[2] / means[3])
    spread = mean(factor * (a - b - c + d))
    return Measured(factor - 1, factor - 1 + spread.lower, factor - 1 + spread.upper)


def exponent(first: Any, second: Any, factor: float) -> Measured:
    """Returns e such that mean(first) = mean(second) x factor^e, for a factor above 1."""
    return ratio(first, second).map(lambda v: math.log(max(v, 1e-300)) / math.log(factor))


def exact(value: float) -> Measured:
    """Returns a number without an interval."""
    return Measured(float(value), float(value), float(value))


# --- verdicts of one condition ------------------------------------------------------------------


def judge_interval(number: Measured, low: float, high: float) -> str:
    """Returns whether the interval lies in [low, high] (holds) or outside (fails)."""
    lower, upper = sorted((number.lower, number.upper))
    if low <= lower and upper <= high:
        return HOLDS
    return FAILS if upper < low or lower > high else OPEN


def worst(verdicts: Iterable[str]) -> str:
    """Returns the verdict of several numbers together."""
    kinds = set(verdicts)
    return next(kind for kind in (FAILS, OPEN, HOLDS) if kind in kinds)


def _judge(
    rule: str,
    condition: str,
    numbers: dict[str, Measured],
    ends: tuple[float, float],
    write: Callable[[Measured], str],
    against: float = math.nan,
    seeds: Mapping[str, tuple[int, int]] | None = None,
) -> Finding:
    """Judges numbers by the ends of the range that they have to lie in."""
    verdict = worst(judge_interval(number, *ends) for number in numbers.values())
    counts = {_rename(name): pair for name, pair in (seeds or {}).items()}
    text = write_numbers(numbers, write, counts)
    return Finding(condition, text, verdict, _rename_keys(numbers), True, rule, against, {}, counts)


def ordered(condition: str, write: Any = None, **steps: Measured) -> Finding:
    """Every difference is above 0; a share, unless another writer is passed."""
    verdict = worst(
        HOLDS if m.lower > 0 else FAILS if m.upper <= 0 else OPEN for m in steps.values()
    )
    rule = ORDER if write is None else NO_SHARE
    text = write_numbers(steps, write or percent)
    return Finding(condition, text, verdict, _rename_keys(steps), rule=rule)


def alike(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is 0 within the tolerance."""
    return _judge(ALIKE, condition, differences, (-TOLERANCE, TOLERANCE), percent)


def no_more(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is at most 0 within the tolerance."""
    return _judge(NO_MORE, condition, differences, (-math.inf, TOLERANCE), percent)


def valued(condition: str, value: float, write: Any = None, **numbers: Measured) -> Finding:
    """Every number is the stated one, within the tolerance."""
    low, high = sorted(value * (1 + sign * TOLERANCE) for sign in (-1, 1))
    return _judge(VALUE, condition, numbers, (low, high), write or number, value)


def probable(
    condition: str, seeds: Mapping[str, tuple[int, int]] | None = None, **shares: Measured
) -> Finding:
    """Every share is 1 within the tolerance; ``seeds`` counts those that meet the condition."""
    return _judge(PROBABLE, condition, shares, (1 - TOLERANCE, 1), percent, seeds=seeds)


def at_most(condition: str, most: float, **numbers: Measured) -> Finding:
    """Every number is at most the stated one, without tolerance."""
    return _judge(AT_MOST, condition, numbers, (-math.inf, most), number, most).add(
        f"; at most {most:,.6g}"
    )


def at_least(condition: str, least: float, **numbers: Measured) -> Finding:
    """Every number is at least the stated one, without tolerance."""
    return _judge(AT_LEAST, condition, numbers, (least, math.inf), number, least).add(
        f"; at least {least:,.6g}"
    )


def ask_attained(finding: Finding) -> Finding:
    """Returns the finding as one on whether a bound is attained, which a bound does not say."""
    return _rename_failure(finding, NOT_ATTAINED, "whether attained")


def ask_reached(finding: Finding) -> Finding:
    """Returns the finding as one on whether a sentence's condition is met, which it presumes."""
    return _rename_failure(finding, NOT_REACHED, "whether reached")


def _rename_failure(finding: Finding, name: str, why: str) -> Finding:
    verdict = name if finding.verdict == FAILS else finding.verdict
    return finding._replace(verdict=verdict, rule=f"{finding.rule}, {why}")


# --- verdicts of a row --------------------------------------------------------------------------


def combine(findings: Sequence[Finding]) -> str:
    """Returns the verdict of a row: every kind, all but the first with its conditions."""
    counted = [finding for finding in findings if finding.counted]
    kinds = {finding.verdict for finding in counted}
    if not kinds:
        return UNJUDGED
    first = next(kind for kind in FIRST if kind in kinds)
    further_kinds = kinds - {first}
    if {HOLDS, FAILS} <= kinds:
        exceptions = [finding for finding in counted if finding.verdict != HOLDS]
        if 2 * len(exceptions) < len(counted):
            text = "; ".join(f"{each.verdict} at {each.condition}" for each in exceptions)
            return f"holds but for: {text}"
        first = f"holds only if {_conditions(counted, HOLDS)}"
        further_kinds -= {FAILS}
    parts = (f"{kind} at {_conditions(counted, kind)}" for kind in FIRST if kind in further_kinds)
    return "; ".join([first, *parts])


def write_verdict(findings: Sequence[Finding]) -> str:
    """Returns a row's verdict with the size of the effect."""
    stated, size = combine(findings), _write_size(findings)
    steps = [
        effect
        for finding in findings
        if finding.counted and finding.rule == ORDER
        for effect in finding.effects.values()
    ]
    if stated == HOLDS and steps and min(steps) < SMALL:
        stated = HOLDS_LITTLE
    return f"**{stated}**{f' ({size})' if size else ''}"


def _write_size(findings: Sequence[Finding]) -> str:
    """Returns the range of the effects that count, by rule."""
    effects: dict[str, list[float]] = {}
    for finding in findings:
        if finding.counted and finding.numbers:
            rule = finding.rule if finding.rule == NO_SHARE else finding.rule.partition(", ")[0]
            rule = LOOSENESS if all(n.endswith(LOOSENESS) for n in finding.numbers) else rule
            effects.setdefault(rule, []).extend(finding.effects.values())
    return "; ".join(
        SIZES[rule].format(write_span([100 * v for v in values] if "%" in SIZES[rule] else values))
        for rule, values in effects.items()
    )


SIZES = {
    ORDER: "by {} %",
    NO_SHARE: "{}",
    ALIKE: "{} %",
    NO_MORE: "{} %",
    VALUE: "{} times the value",
    PROBABLE: "in {} %",
    AT_MOST: "{} times the bound",
    AT_LEAST: "{} times the least",
    LOOSENESS: "the bound is {} times the regret",
}


def write_span(values: Sequence[float]) -> str:
    """Writes the least and the largest number, with two digits."""
    low, high = (_write_short(end) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _write_short(value: float) -> str:
    if abs(value) < 1e-9:  # rounding
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.1e}"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    # 0.996 is written 1.0, and 9.96 is written 10.
    if digits and abs(float(text)) >= 10.0 ** (2 - digits):
        return f"{value:.{digits - 1}f}"
    return text


def count_kinds(verdicts: Iterable[str]) -> Counter[str]:
    """Counts written verdicts by kind, in a fixed order."""
    counts = Counter(_kind_of(text.split("**")[1]) for text in verdicts)
    order = sorted(counts, key=lambda kind: (KINDS.index(kind.partition(" or ")[0]), kind))
    return Counter({kind: counts[kind] for kind in order})


def _kind_of(verdict: str) -> str:
    """Returns the kind of a verdict: "holds or not decided"."""
    if verdict in KINDS:
        return verdict
    first, *others = verdict.split("; ")
    kinds = [next(kind for kind in FIRST if other.startswith(f"{kind} at ")) for other in others]
    if first not in FIRST or (first == HOLDS and {NOT_ATTAINED, NOT_REACHED} & {*kinds}):
        return SOMETIMES
    return " or ".join([first, *kinds])


def _conditions(findings: Sequence[Finding], verdict: str) -> str:
    """Lists the conditions of a verdict; only the part that decides, if one does."""
    parts = [(finding.condition.split(", "), finding.verdict == verdict) for finding in findings]
    for place in range(min(len(words) for words, _ in parts)) if len(parts[0][0]) > 1 else ():
        answers: dict[str, set[bool]] = {}
        for words, agrees in parts:
            answers.setdefault(words[place], set()).add(agrees)
        if all(len(values) == 1 for values in answers.values()):
            return " or ".join(name for name, values in answers.items() if True in values)
    return " or ".join(finding.condition for finding in findings if finding.verdict == verdict)


# --- words --------------------------------------------------------------------------------------


def write_numbers(
    numbers: Mapping[str, Measured],
    write: Callable[[Measured], str],
    seeds: Mapping[str, tuple[int, int]] | None = None,
) -> str:
    """Writes numbers with their names; a single one may go without ("_")."""
    parts = []
    for name, value in numbers.items():
        text = f"{_rename(name)} {write(value)}".strip()
        if pair := (seeds or {}).get(_rename(name)):
            text += f" ({pair[0]:,} of {pair[1]:,} seeds)"
        parts.append(text)
    return ", ".join(parts)


def _rename(name: str) -> str:
    return "" if name == "_" else name.replace("_", " ")


def _rename_keys(numbers: dict[str, Measured]) -> dict[str, Measured]:
    return {_rename(name): number for name, number in numbers.items()}


def percent(number: Measured) -> str:
    """Writes a share with its interval."""
    return _write(number.map(lambda value: 100 * value), " %")


def number(number: Measured) -> str:
    """Writes a number with its interval."""
    return _write(number, "")


def _write(number: Measured, unit: str) -> str:
    low, high = sorted((number.lower, number.upper))
    half = (high - low) / 2
    if max(map(abs, number)) < 5e-7:  # rounding
        return f"0{unit}"
    if not math.isfinite(half):
        return f"{number.estimate:.3g}{unit} [{low:.3g}, {high:.3g}]"
    if half <= 1e-9 * abs(number.estimate):  # the same in every seed
        digits = 0 if number.estimate == int(number.estimate) else 3
        return f"{number.estimate:,.{digits}f}{unit}"
    digits = min(6, max(0, 1 - math.floor(math.log10(half))))
    text = f"{number.estimate:,.{digits}f}{unit}"
    # An interval that lies unevenly is written with its ends.
    if abs(high + low - 2 * number.estimate) > 0.1 * half:
        return f"{text} [{low:,.{digits}f}, {high:,.{digits}f}]"
    return f"{text} ± {half:,.{digits}f}"
