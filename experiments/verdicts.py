"""How a sentence of the paper is judged: intervals, one rule of tolerance, and the table they fill.

The rule, for every row:

* An order ("increases", "smaller") holds where the interval lies on the stated side.
* What is said to be alike, or to have a value, holds where the interval lies within 5 % of it.
* What is said to be not worse, or to be recovered, holds where the interval lies below 5 % more.
* What is said to be high probability holds where the interval lies above 95 %.
* What is said to be large ("huge", "significantly") holds where the interval shows at least 100 %
  more; twice that is stricter, half of it is milder.

An interval that lies across an edge decides nothing. A row whose verdict changes at half or at
twice the tolerance says so.
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
from fmab_jax.analysis.bands import lost_interval, student_quantile

LEVEL = 0.99
TOLERANCE, LARGE = 0.05, 1.0
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
PARTLY_HOLDS, SOMETIMES = f"{HOLDS} or {OPEN}", "holds under some conditions only"
PARTLY_FAILS = f"{FAILS} or is {OPEN}"
KINDS = (HOLDS, PARTLY_HOLDS, SOMETIMES, PARTLY_FAILS, FAILS, OPEN)
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
    """What was found under one condition, such as "T = 10⁴".

    Attributes:
        condition: Under which.
        told: What was measured, in words.
        verdicts: At half the tolerance, at it, and at twice of it; alike where there is none.
        numbers: What was measured, by name.
        counted: Whether it is part of the row's verdict.
    """

    condition: str
    told: str
    verdicts: tuple[str, str, str]
    numbers: dict[str, Measured] = {}
    counted: bool = True

    @property
    def verdict(self) -> str:
        """The verdict at the stated tolerance."""
        return self.verdicts[1]

    def uncounted(self, why: str) -> Finding:
        """Returns the finding as one that is told but not judged."""
        return self._replace(counted=False, told=f"{self.told} (not counted: {why})")


class Row(NamedTuple):
    """One sentence of the paper.

    Attributes:
        section: Where it stands.
        quote: A few of its words, as the LaTeX has them.
        measured: What is measured, and what counts as agreement.
        judge: Returns the findings, from the data.
        see: The figure, table or function behind it.
        note: What a reader should know besides.
    """

    section: str
    quote: str
    measured: str
    judge: Callable[[Any], list[Finding]]
    see: str
    note: str = ""


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
    values = np.asarray(values, np.float64)
    half = student_quantile(values.size - 1, LEVEL) * values.std(ddof=1) / math.sqrt(values.size)
    return Measured(values.mean(), values.mean() - half, values.mean() + half)


def share(happened: Any) -> Measured:
    """Returns the share of seeds for which something happened (Clopper-Pearson)."""
    happened = np.asarray(happened, bool)
    return Measured(happened.mean(), *lost_interval(int(happened.sum()), happened.size, LEVEL))


def ratio(first: Any, second: Any) -> Measured:
    """Returns the ratio of two means over the same seeds (delta method)."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    found = first.mean() / second.mean()
    spread = mean((first - found * second) / second.mean())
    return Measured(found, found + spread.lower, found + spread.upper)


def excess(first: Any, second: Any) -> Measured:
    """Returns by what share the first mean exceeds the second, over the same seeds."""
    return ratio(first, second).moved(lambda value: value - 1)


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


def _thrice(verdict: Callable[[float], str]) -> tuple[str, str, str]:
    half, stated, twice = (verdict(scale) for scale in SCALES.values())
    return half, stated, twice


def ordered(condition: str, write: Any = None, **steps: Measured) -> Finding:
    """Every difference is above 0; written as a share if nothing else is said."""
    verdict = positive(*steps.values())
    return Finding(condition, told(steps, write or percent), (verdict,) * 3, _named(steps))


def alike(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is 0 within the tolerance."""

    def verdict(scale: float) -> str:
        reach = scale * TOLERANCE
        return worst(sided(each, -reach, reach) for each in differences.values())

    return Finding(condition, told(differences, percent), _thrice(verdict), _named(differences))


def no_more(condition: str, **differences: Measured) -> Finding:
    """Every difference, as a share, is at most 0 within the tolerance."""

    def verdict(scale: float) -> str:
        return worst(sided(each, -math.inf, scale * TOLERANCE) for each in differences.values())

    return Finding(condition, told(differences, percent), _thrice(verdict), _named(differences))


def valued(condition: str, value: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is the stated one, within the tolerance."""

    def verdict(scale: float) -> str:
        ends = sorted(value * (1 + sign * scale * TOLERANCE) for sign in (-1, 1))
        return worst(sided(each, *ends) for each in found.values())

    return Finding(condition, told(found, write or number), _thrice(verdict), _named(found))


def probable(condition: str, **found: Measured) -> Finding:
    """Every share is 1 within the tolerance."""

    def verdict(scale: float) -> str:
        return worst(sided(each, 1 - scale * TOLERANCE, 1) for each in found.values())

    return Finding(condition, told(found, percent), _thrice(verdict), _named(found))


def large(condition: str, **ratios: Measured) -> Finding:
    """Every ratio is at least double."""

    def verdict(scale: float) -> str:
        return worst(sided(each, 1 + scale * LARGE, math.inf) for each in ratios.values())

    return Finding(condition, told(ratios, number), _thrice(verdict), _named(ratios))


def at_most(condition: str, most: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is at most the stated one: no tolerance."""
    verdict = worst(sided(each, -math.inf, most) for each in found.values())
    words = f"{told(found, write or number)}; at most {most:,.6g}"
    return Finding(condition, words, (verdict,) * 3, _named(found))


def at_least(condition: str, least: float, write: Any = None, **found: Measured) -> Finding:
    """Every number is at least the stated one: no tolerance."""
    verdict = worst(sided(each, least, math.inf) for each in found.values())
    words = f"{told(found, write or number)}; at least {least:,.6g}"
    return Finding(condition, words, (verdict,) * 3, _named(found))


def combined(findings: Sequence[Finding], place: int = 1) -> str:
    """Returns the verdict of a row from those of its findings, at one of the tolerances."""
    counted = [each for each in findings if each.counted]
    found = {each.verdicts[place] for each in counted}
    if not found:
        return OPEN
    if found == {HOLDS}:
        return HOLDS
    if HOLDS not in found:
        return FAILS if found == {FAILS} else OPEN if FAILS not in found else f"{FAILS}, or open"
    if FAILS not in found:
        return f"{HOLDS}; {OPEN} at {_conditions(counted, OPEN, place)}"
    others = [each for each in counted if each.verdicts[place] != HOLDS]
    if len(others) < len(counted) - len(others):
        told = "; ".join(f"{each.verdicts[place]} at {each.condition}" for each in others)
        return f"holds but for: {told}"
    return f"holds only if {_conditions(counted, HOLDS, place)}"


def verdict_of(findings: Sequence[Finding]) -> str:
    """Returns a row's verdict, and what it would be at half and twice the tolerance if else."""
    half, stated, twice = (combined(findings, place) for place in range(3))
    others = [
        f"at {name} the tolerance: {words}"
        for name, words in (("half", half), ("twice", twice))
        if words != stated
    ]
    return "; ".join([f"**{stated}**", *others])


def kind_of(verdict: str) -> str:
    """Returns which kind of verdict this is, for counting them."""
    if verdict in KINDS:
        return verdict
    if verdict.startswith(f"{HOLDS};"):
        return PARTLY_HOLDS
    return SOMETIMES if verdict.startswith(("holds only", "holds but")) else PARTLY_FAILS


def counts(verdicts: Iterable[str]) -> Counter[str]:
    """Counts verdicts by kind, in a fixed order."""
    found = Counter(map(kind_of, verdicts))
    return Counter({kind: found[kind] for kind in KINDS if found[kind]})


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


def told(found: dict[str, Measured], write: Callable[[Measured], str]) -> str:
    """Writes measured numbers with their names; a single one may go without ("_")."""
    return ", ".join(f"{_name(name)} {write(each)}".strip() for name, each in found.items())


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


class Settled(NamedTuple):
    """A sentence that arithmetic settles: no simulation could turn it.

    Attributes:
        section: Where it stands.
        quote: A few of its words, as the LaTeX has them.
        why: What settles it.
        check: Returns what was computed, in words, and whether the sentence holds: True, False, or
            in words under which condition.
    """

    section: str
    quote: str
    why: str
    check: Callable[[], tuple[str, bool | str]]

    def verdict(self) -> tuple[str, str]:
        """Returns what was computed, and the verdict."""
        told, holds = self.check()
        return told, holds if isinstance(holds, str) else HOLDS if holds else FAILS


class Unmeasured(NamedTuple):
    """A sentence that is not judged, and why."""

    section: str
    quote: str
    why: str
