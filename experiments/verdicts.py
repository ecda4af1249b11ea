"""How a sentence of the paper is judged: intervals, one rule of tolerance, and the table they fill.

The rule, for every row:

* An order ("increases", "smaller") holds where the interval lies on the stated side.
* What is said to be alike, or to have a value, holds where the interval lies within 5 % of it.
* What is said to be not worse, or to be recovered, holds where the interval lies below 5 % more.
* What is said to be high probability holds where the interval lies above 95 %.
* What is said to be large ("huge", "significantly") holds where the interval shows at least 100 %
  more; twice that is stricter, half of it is milder.

An interval that lies across an edge decides nothing. A row whose verdict changes at half or at
twice the tolerance says so. Every verdict says how large the effect is, and an order that holds by
less than 1 % is counted apart.

A `Finding` is the record: sentence, table cell, row of the CSV and count in the head are made from
it, here and in `claims`.
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
from fmab_jax.analysis.bands import fieller, lost_interval, student_quantile

LEVEL = 0.99
TOLERANCE, LARGE = 0.05, 1.0
# An order that holds by less says so.
SMALL = 0.01
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
# What is asked is a consequence of the sentence, or too few runs could have failed it.
NOT_CONTRADICTED = "not contradicted"
# The steps that are printed do not give it, and neither do ours.
NOT_PROVED = "not proved"
# A bound that holds, asked whether it is reached as well, which it does not say.
NOT_ATTAINED = "not attained"
# A sentence on what follows from a condition, asked how often the condition is met.
NOT_REACHED = "not reached"
MISPRINT, UNJUDGED = "misprint", "not judged"
HOLDS_LITTLE = f"{HOLDS} by less than {100 * SMALL:g} %"
SOMETIMES = "holds under some conditions only"
# Of one condition; of several that differ, kinds are joined by "or" (`kind_of`).
KINDS = (
    HOLDS,
    HOLDS_LITTLE,
    NOT_CONTRADICTED,
    SOMETIMES,
    FAILS,
    NOT_ATTAINED,
    NOT_REACHED,
    NOT_PROVED,
    OPEN,
    MISPRINT,
    UNJUDGED,
)
# Which of several stands first in a row's verdict; the others follow with their conditions.
FIRST = (
    HOLDS,
    FAILS,
    NOT_ATTAINED,
    NOT_REACHED,
    NOT_PROVED,
    MISPRINT,
    NOT_CONTRADICTED,
    OPEN,
)
# Names of the rules, as claims.csv has them.
ORDER, ALIKE, NO_MORE, VALUE, PROBABLE = "order", "alike", "no more", "value", "probable"
LARGER, AT_MOST, AT_LEAST, EXACTLY = "large", "at most", "at least", "exactly"
PLAIN, PRINT = f"{ORDER}, no share", f"{EXACTLY}, a print"
# How far a bound lies above the regret: what names of such numbers end in.
LOOSENESS = "bound / regret"
SCALES = {"half": 0.5, "stated": 1.0, "twice": 2.0}


class Measured(NamedTuple):
    """A number with its interval."""

    estimate: float
    lower: float
    upper: float

    def moved(self, change: Callable[[float], float]) -> Measured:
        """Returns the number and the ends of its interval, each changed by an increasing map."""
        return Measured(*map(change, self))


class Finding(NamedTuple):
    """What was found under one condition, such as "T = 10⁴"."""

    condition: str  # under which
    told: str  # what was measured, in words
    # at half the tolerance, at it, and at twice of it; alike where there is none
    verdicts: tuple[str, str, str]
    # what was measured, by name; the rule is applied to each of them
    numbers: dict[str, Measured] = {}
    counted: bool = True  # whether it is part of the row's verdict
    rule: str = ""  # by which of the rules it was judged
    # what the numbers are held against; NaN where the rule has no such number
    against: float = math.nan
    besides: dict[str, Measured] = {}  # what is told besides, by name
    # of a number under a condition: how many seeds met it, of how many
    seeds: dict[str, tuple[int, int]] = {}

    @property
    def verdict(self) -> str:
        """The verdict at the stated tolerance."""
        return self.verdicts[1]

    @property
    def effects(self) -> dict[str, float]:
        """How large each number's effect is: of the value or bound it is held against, if any."""
        rest = () if math.isnan(self.against) or not self.against else (self.against,)
        return {name: each.estimate / math.prod(rest) for name, each in self.numbers.items()}

    def adding(self, words: str, **besides: Measured) -> Finding:
        """Returns the finding with further words, and numbers that are told besides."""
        told = f"{self.told}{words}"
        return self._replace(told=told, besides={**self.besides, **_named(besides)})

    def uncounted(self, why: str) -> Finding:
        """Returns the finding as one that is told but not judged."""
        return self._replace(counted=False, told=f"{self.told} (not counted: {why})")


class Row(NamedTuple):
    """One sentence of the paper."""

    section: str  # where it stands
    quote: str  # A few of its words, as the LaTeX has them
    # what is measured, and what counts as agreement; what settles a sentence; what a slip of the
    # print means; why a sentence is not judged
    words: str
    # returns the findings, from the data; None for a sentence that is not judged
    judge: Callable[[Any], list[Finding]] | None = None
    see: str = ""  # the figure, table or function behind it
    note: str = ""  # what a reader should know besides

    def judged(self, data: Any) -> list[Finding]:
        """Returns the findings; of a sentence that is not judged, why it is not."""
        if self.judge is None:
            return [Finding("", self.words, (UNJUDGED,) * 3)]
        return self.judge(data)


class Data:
    """Results of the experiments and of a row's own sweeps, simulated or read when asked for."""

    def __init__(
        self,
        load: Callable[[str], Mapping[int, Any]],
        horizons: Sequence[int],
        seeds: int,
        runs: Path | None,
    ) -> None:
        self.load = functools.cache(load)
        self.horizons, self.seeds, self.runs = tuple(horizons), seeds, runs
        self._own: dict[str, xr.Dataset] = {}

    def last(self, name: str, horizon: int, **cell: Any) -> xr.Dataset:
        """Returns one cell of an experiment at T."""
        return self.load(name)[horizon].sel(cell).isel(time=-1)

    def end(self, name: str, horizon: int, **cell: Any) -> np.ndarray:
        """Returns [seed] regret at T of one cell of an experiment."""
        return self.last(name, horizon, **cell).regret.values

    def own(self, name: str, algorithm: Any, problem: Any, **settings: Any) -> xr.Dataset:
        """Returns a sweep that only verdicts need, at its last slot."""
        if name not in self._own:
            store = None if self.runs is None else self.runs / f"claims_{name}"
            settings = {"seeds": self.seeds, "times": 8} | settings
            found = fmab.sweep(algorithm, problem, store=store, **settings)
            self._own[name] = found.isel(time=-1) if "time" in found.dims else found
        return self._own[name]


# --- numbers ------------------------------------------------------------------------------------


def mean(values: Any) -> Measured:
    """Returns the mean over seeds (Student t)."""
    return Measured(*common.interval(values, LEVEL))


def share(happened: Any, level: float = LEVEL) -> Measured:
    """Returns the share of seeds for which something happened (Clopper-Pearson)."""
    happened = np.asarray(happened, bool)
    return Measured(happened.mean(), *lost_interval(int(happened.sum()), happened.size, level))


def ratio(first: Any, second: Any) -> Measured:
    """Returns the ratio of two means over the same seeds (Fieller).

    The ends are NaN, which decides nothing, where the second mean is not known to be other than 0.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    found, number = float(first.mean() / second.mean()), second.size
    # Around the ratio, what is left of the first has mean 0: nothing cancels.
    spread = np.cov(first - found * second, second) / number
    critical = student_quantile(number - 1, LEVEL)
    ends = fieller(0.0, float(second.mean()), spread[0, 0], spread[1, 1], spread[0, 1], critical)
    return Measured(found, *(found + float(end) for end in ends))


def excess(first: Any, second: Any) -> Measured:
    """Returns by what share the first mean exceeds the second, over the same seeds."""
    return ratio(first, second).moved(lambda value: value - 1)


def change(after: tuple[Any, Any], before: tuple[Any, Any]) -> Measured:
    """Returns by what share a ratio of means changed: all four over the same seeds."""
    parts = [np.asarray(each, np.float64) for each in (*after, *before)]
    a, b, c, d = (each / each.mean() for each in parts)
    means = [each.mean() for each in parts]
    found = means[0] / means[1] / (means[2] / means[3])
    spread = mean(found * (a - b - c + d))
    return Measured(found - 1, found - 1 + spread.lower, found - 1 + spread.upper)


def exponent(first: Any, second: Any, factor: float) -> Measured:
    """Returns e such that mean(first) = mean(second) x factor^e, for a factor above 1."""
    return ratio(first, second).moved(lambda v: math.log(max(v, 1e-300)) / math.log(factor))


# --- verdicts -----------------------------------------------------------------------------------


def sided(found: Measured, low: float, high: float) -> str:
    """Holds where the interval lies in [low, high], fails where it lies outside."""
    lower, upper = sorted((found.lower, found.upper))
    if low <= lower and upper <= high:
        return HOLDS
    return FAILS if upper < low or lower > high else OPEN


def positive(*found: Measured) -> str:
    """Holds where every interval lies above 0."""
    return worst(HOLDS if m.lower > 0 else FAILS if m.upper <= 0 else OPEN for m in found)


def worst(verdicts: Iterable[str]) -> str:
    """Returns what holds of several at once: fails where one does."""
    found = set(verdicts)
    return next(each for each in (FAILS, OPEN, HOLDS) if each in found)


def _judged(
    rule: str,
    condition: str,
    found: dict[str, Measured],
    ends: Callable[[float], tuple[float, float]],
    write: Callable[[Measured], str],
    against: float = math.nan,
    seeds: Mapping[str, tuple[int, int]] | None = None,
) -> Finding:
    """Judges numbers by the ends between which each has to lie, at each scale of the tolerance."""

    def verdict(scale: float) -> str:
        return worst(sided(each, *ends(scale)) for each in found.values())

    half, stated, twice = (verdict(scale) for scale in SCALES.values())
    of = {_name(name): pair for name, pair in (seeds or {}).items()}
    words = told(found, write, of)
    return Finding(
        condition, words, (half, stated, twice), _named(found), True, rule, against, {}, of
    )


def ordered(condition: str, write: Any = None, **steps: Measured) -> Finding:
    """Every difference is above 0; a share, unless it is written as something else."""
    verdict = positive(*steps.values())
    rule = ORDER if write is None else PLAIN
    return Finding(
        condition, told(steps, write or percent), (verdict,) * 3, _named(steps), rule=rule
    )


def alike(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is 0 within the tolerance."""

    def ends(scale: float) -> tuple[float, float]:
        return -scale * TOLERANCE, scale * TOLERANCE

    return _judged(ALIKE, condition, differences, ends, percent)


def no_more(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is at most 0 within the tolerance."""
    return _judged(
        NO_MORE, condition, differences, lambda scale: (-math.inf, scale * TOLERANCE), percent
    )


def valued(condition: str, value: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is the stated one, within the tolerance."""

    def ends(scale: float) -> tuple[float, float]:
        low, high = sorted(value * (1 + sign * scale * TOLERANCE) for sign in (-1, 1))
        return low, high

    return _judged(VALUE, condition, found, ends, write or number, value)


def exactly(condition: str, value: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is the stated one: no tolerance but that of rounding."""
    near = 1e-9 * abs(value)
    finding = _judged(
        EXACTLY, condition, found, lambda _: (value - near, value + near), write or number, value
    )
    return finding._replace(told=f"{finding.told}; stated {value:,.6g}")


def probable(
    condition: str, seeds: Mapping[str, tuple[int, int]] | None = None, **found: Measured
) -> Finding:
    """Every share is 1 within the tolerance; of how many seeds each is, where of some only."""
    return _judged(
        PROBABLE,
        condition,
        found,
        lambda scale: (1 - scale * TOLERANCE, 1),
        percent,
        seeds=seeds,
    )


def large(condition: str, **ratios: Measured) -> Finding:
    """Every ratio is at least double."""
    return _judged(LARGER, condition, ratios, lambda scale: (1 + scale * LARGE, math.inf), number)


def at_most(condition: str, most: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is at most the stated one: no tolerance."""
    finding = _judged(AT_MOST, condition, found, lambda _: (-math.inf, most), write or number, most)
    return finding._replace(told=f"{finding.told}; at most {most:,.6g}")


def at_least(condition: str, least: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is at least the stated one: no tolerance."""
    finding = _judged(
        AT_LEAST, condition, found, lambda _: (least, math.inf), write or number, least
    )
    return finding._replace(told=f"{finding.told}; at least {least:,.6g}")


def consequence(finding: Finding) -> Finding:
    """Returns the finding as one on a consequence of the sentence: it can but contradict it."""
    other = {HOLDS: NOT_CONTRADICTED, OPEN: NOT_CONTRADICTED}
    return _renamed(finding, other, "a consequence")


def unless_contradicted(finding: Finding) -> Finding:
    """Returns the finding as one of too few runs: where they are open, they do not contradict."""
    return _renamed(finding, {OPEN: NOT_CONTRADICTED}, "few runs")


def provable(finding: Finding) -> Finding:
    """Returns the finding as one on what can be proved: beyond it nothing is known to fail."""
    return _renamed(finding, {FAILS: NOT_PROVED}, "what can be proved")


def attained(finding: Finding) -> Finding:
    """Returns the finding as one on whether a bound is reached, which a bound does not say."""
    return _renamed(finding, {FAILS: NOT_ATTAINED}, "whether attained")


def reached(finding: Finding) -> Finding:
    """Returns the finding as one on whether a sentence's condition is met, which it presumes."""
    return _renamed(finding, {FAILS: NOT_REACHED}, "whether reached")


def misprint(condition: str, printed: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is another one than the print has."""
    finding = exactly(condition, printed, write, **found)
    finding = _renamed(finding, {FAILS: MISPRINT}, PRINT.partition(", ")[2])
    return finding._replace(told=finding.told.replace("; stated ", "; printed "))


def _renamed(finding: Finding, other: Mapping[str, str], why: str) -> Finding:
    half, stated, twice = (other.get(each, each) for each in finding.verdicts)
    return finding._replace(verdicts=(half, stated, twice), rule=f"{finding.rule}, {why}")


def combined(findings: Sequence[Finding], place: int = 1) -> str:
    """Returns the verdict of a row from those of its findings, at one of the tolerances.

    Every kind that was found is named, all but the first with its conditions; what holds here and
    fails there is named by where it holds, or by where it does not.
    """
    counted = [each for each in findings if each.counted]
    found = {each.verdicts[place] for each in counted}
    if not found:
        return UNJUDGED
    first = next(each for each in FIRST if each in found)
    others = found - {first}
    if {HOLDS, FAILS} <= found:
        rest = [each for each in counted if each.verdicts[place] != HOLDS]
        if len(rest) < len(counted) - len(rest):
            told = "; ".join(f"{each.verdicts[place]} at {each.condition}" for each in rest)
            return f"holds but for: {told}"
        first = f"holds only if {_conditions(counted, HOLDS, place)}"
        others -= {FAILS}
    told = (f"{each} at {_conditions(counted, each, place)}" for each in FIRST if each in others)
    return "; ".join([first, *told])


def verdict_of(findings: Sequence[Finding]) -> str:
    """Returns a row's verdict, the size of the effect, and what other tolerances would change."""
    half, stated, twice = (combined(findings, place) for place in range(3))
    others = [
        f"at {name} the tolerance: {words}"
        for name, words in (("half", half), ("twice", twice))
        if words != stated
    ]
    size = size_of(findings)
    shown = f"**{stated_of(findings)}**{f' ({size})' if size else ''}"
    return "; ".join([shown, *others])


def stated_of(findings: Sequence[Finding]) -> str:
    """Returns a row's verdict; an order that holds, by how little if it is little."""
    stated = combined(findings)
    steps = [
        effect
        for each in findings
        if each.counted and each.rule == ORDER
        for effect in each.effects.values()
    ]
    return HOLDS_LITTLE if stated == HOLDS and steps and min(steps) < SMALL else stated


def size_of(findings: Sequence[Finding]) -> str:
    """Says between which ends the effects of the findings lie that are counted, rule by rule."""
    by: dict[str, list[float]] = {}
    for each in findings:
        if each.counted and each.numbers and each.against != 0:  # no multiple of nothing
            rule = each.rule if each.rule in (PLAIN, PRINT) else each.rule.partition(", ")[0]
            rule = LOOSENESS if all(name.endswith(LOOSENESS) for name in each.numbers) else rule
            by.setdefault(rule, []).extend(each.effects.values())
    return "; ".join(filter(None, (_size(rule, values) for rule, values in by.items())))


def _size(rule: str, values: Sequence[float]) -> str:
    shares = [100 * value for value in values]
    if rule == ORDER:
        return f"by {span(shares)} %"
    if rule in (ALIKE, NO_MORE):
        return f"{span(shares)} %"
    if rule == PROBABLE:
        return f"in {span(shares)} %"
    if rule in (VALUE, EXACTLY, PRINT):
        return f"{span(values)} times the {'print' if rule == PRINT else 'value'}"
    if rule == LOOSENESS:
        return f"the bound is {span(values)} times the regret"
    if rule in (AT_MOST, AT_LEAST):
        return f"{span(values)} times {'the bound' if rule == AT_MOST else 'what is asked'}"
    return f"{span(values)} times" if rule == LARGER else span(values)


def span(values: Sequence[float]) -> str:
    """Writes between which ends numbers lie, two digits of each."""
    low, high = (_short(end) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    if not math.isfinite(value) or abs(value) < 1e-9:  # rounding
        return f"{abs(value):.0f}"
    if abs(value) >= 1e6 or abs(value) < 1e-4:
        return f"{value:.1e}"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    # 0.996 is written 1.0, and 9.96 is written 10.
    if digits and abs(float(text)) >= 10.0 ** (2 - digits):
        return f"{value:.{digits - 1}f}"
    return text


def kind_of(verdict: str) -> str:
    """Returns which kind of verdict this is, for counting them: "holds or not decided"."""
    if verdict in KINDS:
        return verdict
    first, *others = verdict.split("; ")
    kinds = [next(each for each in FIRST if other.startswith(f"{each} at ")) for other in others]
    if first not in FIRST or (first == HOLDS and {NOT_ATTAINED, NOT_REACHED} & {*kinds}):
        return SOMETIMES
    return " or ".join([first, *kinds])


def counts(verdicts: Iterable[str]) -> Counter[str]:
    """Counts verdicts by kind, in a fixed order."""
    found = Counter(map(kind_of, verdicts))
    order = sorted(found, key=lambda kind: (KINDS.index(kind.partition(" or ")[0]), kind))
    return Counter({kind: found[kind] for kind in order})


def _conditions(findings: Sequence[Finding], verdict: str, place: int) -> str:
    """Lists where a verdict was found; by the part of the condition that decides, if one does."""
    parts = [(each.condition.split(", "), each.verdicts[place] == verdict) for each in findings]
    for part in range(min(len(words) for words, _ in parts)) if len(parts[0][0]) > 1 else ():
        named: dict[str, set[bool]] = {}
        for words, agrees in parts:
            named.setdefault(words[part], set()).add(agrees)
        if all(len(verdicts) == 1 for verdicts in named.values()):
            return " or ".join(name for name, verdicts in named.items() if True in verdicts)
    return " or ".join(each.condition for each in findings if each.verdicts[place] == verdict)


# --- words --------------------------------------------------------------------------------------


def told(
    found: Mapping[str, Measured],
    write: Callable[[Measured], str],
    seeds: Mapping[str, tuple[int, int]] | None = None,
) -> str:
    """Writes measured numbers with their names; a single one may go without ("_")."""
    written = []
    for name, each in found.items():
        text = f"{_name(name)} {write(each)}".strip()
        if few := (seeds or {}).get(_name(name)):
            text += f" ({few[0]:,} of {few[1]:,} seeds)"
        written.append(text)
    return ", ".join(written)


def _name(given: str) -> str:
    return "" if given == "_" else given.replace("_", " ")


def _named(found: dict[str, Measured]) -> dict[str, Measured]:
    return {_name(name): each for name, each in found.items()}


def percent(found: Measured) -> str:
    """Writes a share."""
    return _written(found.moved(lambda value: 100 * value), " %")


def number(found: Measured) -> str:
    """Writes a number."""
    return _written(found, "")


def _written(found: Measured, unit: str) -> str:
    low, high = sorted((found.lower, found.upper))
    half = (high - low) / 2
    if max(map(abs, found)) < 5e-7:  # rounding
        return f"0{unit}"
    if not math.isfinite(half):
        return f"{found.estimate:.3g}{unit} [{low:.3g}, {high:.3g}]"
    if half <= 1e-9 * abs(found.estimate):  # the same in every seed
        exact = found.estimate == int(found.estimate)
        return f"{found.estimate:,.{0 if exact else 3}f}{unit}"
    digits = min(6, max(0, 1 - math.floor(math.log10(half))))
    text = f"{found.estimate:,.{digits}f}{unit}"
    # An interval that lies unevenly is told by its ends.
    if abs(high + low - 2 * found.estimate) > 0.1 * half:
        return f"{text} [{low:,.{digits}f}, {high:,.{digits}f}]"
    return f"{text} ± {half:,.{digits}f}"


def settled(section: str, quote: str, words: str, check: Callable[[], list[Finding]]) -> Row:
    """Returns a sentence that arithmetic settles: no data could turn it."""
    return Row(section, quote, words, lambda data: check())


def lines_of(findings: Sequence[Finding], between: str = "; ") -> str:
    """Writes what was found, with its conditions, if it has any."""
    return between.join(
        f"{each.condition}: {each.told}" if each.condition else each.told for each in findings
    )


def exact(value: float) -> Measured:
    """Returns a number that has no interval."""
    return Measured(float(value), float(value), float(value))
