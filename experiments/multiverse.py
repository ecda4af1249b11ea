"""A multiverse: the paper's sentences over five choices that the paper leaves open.

A verdict on one reading may be a verdict on the reading. So each sentence of CLAIMS.md is judged
again, by its own row's code, in every combination of five choices, and the share of readings in
which it holds is told:

* T, which is never stated;
* the gap that a budgeted schedule is built for: theorems define it as the instance's own smallest,
  section VII does not say what was run. Open for sentences of section VII;
* the instance: "the means are randomly generated from [0,1]" may mean anew for each seed, or one
  draw for all; and R = 4 removes all arms, as section VII says, only where gaps are 1/16 or more;
* the delay: d_G - 1 slots in the proof of theorem 3, d_G in section V-B2;
* the meter: links of agents, as edges or as what carries data. Open where the paper does not say:
  theorems do, VI-B1 is about what agents send to a sink, and only edges fit VII-C1's figure 11.

More is open and not varied (`NOT_VARIED`): a sentence that holds in every reading tried may fail in
another.

A reading counts for a sentence only where it can change its numbers. Rows know nothing of this:
they ask `fmab.sweep`, `gaps_of` and `Exchange.on` as always, and are answered as the reading says.
"""

from __future__ import annotations

import copy
import functools
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import claims, claims_runs, common, verdicts
from experiments.readings import Late, LateHybrid
from experiments.verdicts import (
    FAILS,
    HOLDS,
    NOT_ATTAINED,
    NOT_CONTRADICTED,
    NOT_PROVED,
    NOT_REACHED,
    OPEN,
    Finding,
)
from fmab_jax.algorithms.base import named
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.problems import Problem
from fmab_jax.errors import Refusal, refuse

NAME = "multiverse"
# Of each configuration, from those of the other experiments where a reading is theirs.
SEEDS = 200
WIDE = 1 / 16
ANY = "any"  # in place of what cannot change a sentence's numbers
PART = "holds in part"
KINDS = (HOLDS, PART, NOT_ATTAINED, NOT_REACHED, NOT_CONTRADICTED, NOT_PROVED, OPEN, FAILS)
# What more seeds, or another proof, might decide.
UNDECIDED = (NOT_CONTRADICTED, NOT_PROVED, OPEN)


class Reading(NamedTuple):
    """One way to read what the paper leaves open besides T; the first of each in `READINGS`."""

    gap: str = "own"
    instance: str = "as in CLAIMS"
    delay: str = "d_G - 1"
    meter: str = "edges"


def _one(problem: Problem) -> Problem:
    """Returns one draw from U[0, 1] for all seeds."""
    return Problem.heterogeneous(
        problem.agents, problem.arms, problem.spread, rewards=problem.rewards
    ).fixed(0)


def _wide(problem: Problem) -> Problem:
    """Returns means whose smallest gap is 1/16; of a problem that is fixed, one draw of them."""
    found = Problem.heterogeneous(
        problem.agents, problem.arms, problem.spread, WIDE, rewards=problem.rewards
    )
    return found if problem.drawn else found.fixed(0)


BASE = Reading()
INSTANCES: dict[str, Callable[[Problem], Problem] | None] = {
    BASE.instance: None,
    "one for all seeds": _one,
    "smallest gap 1/16": _wide,
}
# The same of means that each seed draws.
DRAWN = dict(zip(INSTANCES, ({}, {"fixed_instance": 0}, {"instance_gap": WIDE}), strict=True))
# In the names of stores.
WORDS = dict(zip(INSTANCES, ("", "one", "wide"), strict=True))
GAPS = {BASE.gap: None, "1/16": WIDE}
DELAYS = {BASE.delay: {}, "d_G": {fmab.ddp_mab: Late, fmab.hdp_mab: LateHybrid}}
# Asked for on one meter, links are told on another: GIS has two meters, SAC has two.
METERS = {
    BASE.meter: {"used": "bound", "sac": "edges"},
    "what carries data": {"bound": "used", "edges": "sac"},
}
READINGS: dict[str, tuple[str, ...]] = {
    name: tuple(each)
    for name, each in zip(Reading._fields, (GAPS, INSTANCES, DELAYS, METERS), strict=True)
}
# The instance's own gap is 1/16 there: it is read already.
SAME = ("1/16", "smallest gap 1/16")
# Quickly, what needs no runs of its own.
QUICK = ("gap", "meter")
# What the paper leaves open besides, and how it is read throughout.
NOT_VARIED = (
    "ε of figures 5, 6, 8, 10 and 12 and of the tables (1)",
    "the random graphs (the same in all runs)",
    "d of the d-regular graph (4)",
    "the sizes of table II's case 2 (53 for the printed 63)",
    "agents, arms and graphs of figure 12",
    "how the means of agents differ",
)
OPEN_IN: dict[str, Callable[[str], bool]] = {
    "gap": lambda section: section.startswith("VII"),
    "meter": lambda section: (
        not re.search("Theorem|Corollary|Appendix|proof|^VI-B1|^VII-C1", section)
    ),
}


class Data(NamedTuple):
    """What the other experiments can simulate; `load` asks `fmab.sweep` anew at each call."""

    load: Callable[[str], Mapping[int, Any]]
    horizons: Sequence[int]
    seeds: int
    runs: Path | None


class Sentence(NamedTuple):
    """A sentence, as a row of CLAIMS.md has it."""

    section: str
    quote: str
    measured: str


class Outcome(NamedTuple):
    """What a reading says of a sentence."""

    verdict: str  # one of `KINDS`; "" where nothing is counted
    numbers: tuple[Any, ...]  # what it was found from, to be compared with that of other readings


class Told(NamedTuple):
    """One reading of a sentence, with `ANY` for what cannot change it, the verdict and its seeds.

    That of CLAIMS.md itself, `own`, is judged on as many seeds as there.
    """

    sentence: Sentence
    T: str
    reading: Reading
    verdict: str
    seeds: int = 0

    @property
    def own(self) -> bool:
        """Whether CLAIMS.md reads the sentence so."""
        return all(each in (ANY, base) for each, base in zip(self.reading, BASE, strict=True))


class Share(NamedTuple):
    """In how many of its readings a sentence holds, for the column of CLAIMS.md."""

    text: str  # all kinds, and the seeds: "holds in 9 of 12 readings, not decided in 3; 200 seeds"
    own: Mapping[str, str]  # the verdicts in CLAIMS.md's own reading, by T, or `ANY`

    def beside(self, findings: Sequence[Finding]) -> str:
        """Returns the text, to be written beside what CLAIMS.md found itself.

        Raises:
            ValueError: If the readings have another verdict on what was found.
        """
        for T, verdict in self.own.items():
            at = [each for each in findings if _reads_so(each, T)]
            if not at and len(self.own) == 1:
                # Of one T alone nobody can tell that it changes nothing.
                at = [each for each in findings if _reads_so(each, ANY)]
            found = outcome_of(at).verdict
            if found != verdict:
                remedy = "judge the readings again: python -m experiments multiverse"
                refuse(f"{NAME}.csv", f"{verdict} at T = {T}", f"{found}, as found here", remedy)
        return self.text


def _reads_so(finding: Finding, T: str) -> bool:
    """Tells whether a condition is of T, if there is one, and of the gap that theorems mean."""
    parts = finding.condition.split(", ")
    return (T == ANY or f"T = {T}" in parts) and f"gap {READINGS['gap'][1]}" not in parts


# --- the world as a reading has it --------------------------------------------------------------


class World(verdicts.Data):
    """Results under one reading; what rows are judged on.

    Attributes:
        asked: Names of what was asked for: experiments, sweeps, meters, and "gaps".
    """

    def __init__(
        self, reading: Reading, data: Data, swept: dict[Any, xr.Dataset], seeds: int = SEEDS
    ) -> None:
        super().__init__(data.load, data.horizons, min(seeds, data.seeds), data.runs)
        self.reading, self.swept, self.all_seeds = reading, swept, data.seeds
        # Before anything is replaced.
        self.sweep: Callable[..., xr.Dataset] = fmab.sweep
        self.asked: set[str] = set()
        self._looks: dict[tuple[int, ...], World] = {}
        load = self.load

        def noted(name: str) -> Mapping[int, Any]:
            self.asked.add(name)
            return load(name)

        self.load = noted

    def at(self, horizons: Sequence[int]) -> World:
        """Returns the same world, looked at at some horizons."""
        if (horizons := tuple(horizons)) not in self._looks:
            other = copy.copy(self)
            other.horizons, other._own = horizons, {}
            self._looks[horizons] = other
        return self._looks[horizons]

    def own(self, name: str, algorithm: Any, problem: Any, **settings: Any) -> xr.Dataset:
        """Returns a sweep that only verdicts need; stated for all seeds, as others run it."""
        self.asked.add(name)
        seeds = settings.pop("seeds", self.seeds) * self.all_seeds // self.seeds
        return super().own(name, algorithm, problem, seeds=seeds, **settings)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Has sweeps, gaps of instances, and links be as the reading has them."""
        gaps_of, on = claims_runs.gaps_of, Exchange.on
        meters = METERS[self.reading.meter]

        def gaps(problem: Problem, instances: int) -> Any:
            self.asked.add("gaps")
            return gaps_of(self._instance(problem), instances)

        def links(exchange: Exchange, meter: str) -> int:
            self.asked.add(meter)
            return on(exchange, meters.get(meter, meter))

        places = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("experiments.") and vars(module).get("gaps_of") is gaps_of
        ]
        with ExitStack() as stack:
            for owner, name, other in (
                (fmab, "sweep", self.swept_as_read),
                (Exchange, "on", links),
                *((module, "gaps_of", gaps) for module in places),
            ):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, other)
            yield

    def swept_as_read(
        self, algorithm: Any, problem: Any = None, *, seeds: int, store: Any = None, **settings: Any
    ) -> xr.Dataset:
        """Runs what is stated as the reading has it; reads it where that is what others run."""
        few = min(seeds, max(2, seeds * self.seeds // self.all_seeds))
        changes, stated = self._changed(algorithm, problem, settings)

        def run() -> xr.Dataset:
            if not changes:
                found = self.sweep(algorithm, problem, seeds=seeds, store=store, **settings)
                return found.isel(seed=slice(few)) if "seed" in found.dims else found
            place = None
            if store is not None:
                place = Path(store).with_name("-".join([NAME, *changes, Path(store).name]))
            return self.sweep(*stated[:2], seeds=few, store=place, **stated[2])

        # Readings that differ in what does not change a sweep share it.
        key = store, changes, str(settings.get("horizon"))
        found = self.swept.get(key) if store is not None else None
        if found is None:
            found = run()
            self.swept |= {key: found} if store is not None else {}
        return self._answer(found, settings)

    def _changed(
        self, algorithm: Any, problem: Any, settings: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], tuple[Any, Any, dict[str, Any]]]:
        """Returns which of the reading's choices change what is stated, and how it reads then."""
        changes, settings = [], dict(settings)
        late = _late(algorithm, DELAYS[self.reading.delay])
        if late is not algorithm:
            changes.append("late")
        if INSTANCES[self.reading.instance] is not None:
            changes.append(WORDS[self.reading.instance])
            if problem is None:
                settings |= DRAWN[self.reading.instance]
            else:
                problem = self._instances(problem)
        gap = GAPS[self.reading.gap]
        if gap is not None and "rounds" in settings and "schedule_gap" not in settings:
            changes.append("gap")
            settings["schedule_gap"] = gap
        return tuple(changes), (late, problem, settings)

    def _instance(self, problem: Problem) -> Problem:
        read = INSTANCES[self.reading.instance]
        return problem if read is None else read(problem)

    def _instances(self, problem: Any) -> Any:
        """Returns a problem, or several, with the reading's instances."""
        if isinstance(problem, Problem):
            return self._instance(problem)
        if isinstance(problem, Mapping):
            return {label: self._instances(each) for label, each in problem.items()}
        raise TypeError(f"problem = {problem!r}: state a Problem, a mapping, or None")

    def _answer(self, found: xr.Dataset, settings: Mapping[str, Any]) -> xr.Dataset:
        """Answers every gap of a budget with the reading's, and every meter."""
        gaps = settings.get("schedule_gap")
        if isinstance(gaps, Mapping) and "schedule_gap" in found.dims:
            wanted = [label for label, gap in gaps.items() if gap == GAPS[self.reading.gap]]
            found = _answered(
                found, "schedule_gap", {each: label for each in gaps for label in wanted}
            )
        if "meter" in found.dims:
            there = found.meter.values.tolist()
            meters = {a: b for a, b in METERS[self.reading.meter].items() if {a, b} <= {*there}}
            found = _answered(found, "meter", meters)
        return found


def _answered(found: xr.Dataset, dim: str, answers: Mapping[Any, Any]) -> xr.Dataset:
    """Returns results in which some labels of a dimension have the cells of others."""
    labels = found[dim].values.tolist()
    cells = [labels.index(answers.get(label, label)) for label in labels]
    return found.isel({dim: cells}).assign_coords({dim: found[dim]})


def _late(algorithm: Any, late: Mapping[Any, Any]) -> Any:
    """Returns who is stated, with other waits; the very same where nobody waits otherwise."""
    if isinstance(algorithm, Mapping):
        found = {label: _late(each, late) for label, each in algorithm.items()}
        return found if any(found[label] is not algorithm[label] for label in found) else algorithm
    if isinstance(algorithm, list | tuple):
        names = [each if isinstance(each, str) else each.name for each in algorithm]
        stated = dict(zip(names, algorithm, strict=True))
        found = _late(stated, late)
        return algorithm if found is stated else found
    made = named(algorithm) if isinstance(algorithm, str) else algorithm
    return late.get(made, algorithm)


# --- verdicts -----------------------------------------------------------------------------------


def sentence_of(row: Any) -> Sentence:
    """Returns the sentence of a row, measured or settled."""
    return Sentence(row.section, row.quote, row.words)


def outcome_of(findings: Sequence[Finding]) -> Outcome:
    """Returns the verdict of all findings that count, and their numbers."""
    counted = [each for each in findings if each.counted]
    numbers = tuple(
        (
            each.verdict,
            *((name, *(f"{v:.6g}" for v in m)) for name, m in each.numbers.items()),
            "" if each.numbers else each.told,
        )
        for each in counted
    )
    return Outcome(kind_of(each.verdict for each in counted), numbers)


def kind_of(found: Iterable[str]) -> str:
    """Returns which of `KINDS` some verdicts are together; "" of none.

    What fails under one condition fails, whatever more seeds would decide of the others.
    """
    kinds = set(found)
    if HOLDS in kinds and kinds & {FAILS, NOT_ATTAINED, NOT_REACHED}:
        return PART
    order = (FAILS, NOT_ATTAINED, NOT_REACHED, OPEN, NOT_PROVED, NOT_CONTRADICTED, HOLDS)
    return next((each for each in order if each in kinds), "")


Ask = Callable[[Reading, Sequence[int]], Sequence[Finding]]


def judged(
    ask: Ask, horizons: Sequence[int], vary: Mapping[str, Sequence[str]]
) -> dict[tuple[str, Reading], Outcome]:
    """Judges a sentence in every reading that can change its numbers.

    Args:
        ask: Returns the findings of a reading at some horizons.
        horizons: T, all of them.
        vary: What else may be read in several ways, and how, as `READINGS` has it.

    Returns:
        The outcome by T and reading; `ANY` stands for what changes nothing, or for all T at once
        where a sentence compares them.
    """
    places = _places(ask, horizons)

    def outcome(place: Sequence[int], reading: Reading) -> Outcome:
        return outcome_of(ask(reading, place))

    found = {(name, BASE): outcome(place, BASE) for name, place in places.items()}
    open_: dict[str, Sequence[str]] = {}
    for dimension, values in vary.items():
        changes = False
        for value, (name, place) in itertools.product(values[1:], places.items()):
            reading = BASE._replace(**{dimension: value})
            found[name, reading] = outcome(place, reading)
            changes |= found[name, reading] != found[name, BASE]
        if changes:
            open_[dimension] = values
    told = {}
    for chosen in itertools.product(*open_.values()):
        reading = BASE._replace(**dict(zip(open_, chosen, strict=True)))
        if (reading.gap, reading.instance) == SAME:
            continue
        shown = Reading(*(getattr(reading, d) if d in open_ else ANY for d in Reading._fields))
        for name, place in places.items():
            if (name, reading) not in found:
                found[name, reading] = outcome(place, reading)
            told[name, shown] = found[name, reading]
    return told


def _places(ask: Ask, horizons: Sequence[int]) -> dict[str, Sequence[int]]:
    """Returns at which horizons a sentence is judged one by one: all, or all at once.

    One by one where all horizons together find what each finds alone.
    """
    whole = ask(BASE, horizons)
    try:
        parts = [ask(BASE, (horizon,)) for horizon in horizons]
    except Refusal:
        raise
    except (LookupError, ValueError):  # it needs several
        return {ANY: horizons}
    alone = sorted(each.condition for part in parts for each in part)
    if alone != sorted(each.condition for each in whole):
        return {ANY: horizons}
    if len(horizons) > 1 and all(outcome_of(part) == outcome_of(whole) for part in parts):
        return {ANY: horizons}
    return {common.write_count(horizon): (horizon,) for horizon in horizons}


def verdicts_of(data: Data, vary: Sequence[str] = tuple(READINGS)) -> list[Told]:
    """Judges every sentence; those that arithmetic settles where their links have two meters."""
    swept: dict[Any, xr.Dataset] = {}
    worlds: dict[Reading, World] = {}
    # As CLAIMS.md has it, with all seeds.
    full = World(BASE, data, {}, data.seeds)

    def world(reading: Reading) -> World:
        if reading not in worlds:
            worlds[reading] = World(reading, data, swept)
        return worlds[reading]

    found = []
    for row in claims.ROWS:

        @functools.cache
        def ask(reading: Reading, horizons: tuple[int, ...], row: Any = row) -> Sequence[Finding]:
            return judged_in(world(reading), horizons, row)

        world(BASE).asked.clear()
        ask(BASE, tuple(data.horizons))
        # Who asks for nothing is told the same in every world.
        open_in = {
            name: READINGS[name]
            for name in (vary if world(BASE).asked else ())
            if OPEN_IN.get(name, lambda section: True)(row.section)
        }
        for (T, reading), outcome in judged(ask, tuple(data.horizons), open_in).items():
            told = Told(sentence_of(row), T, reading, outcome.verdict, world(BASE).seeds)
            if told.own and full.seeds > told.seeds:
                at = tuple(each for each in data.horizons if T in (ANY, common.write_count(each)))
                verdict = outcome_of(judged_in(full, at, row)).verdict
                told = told._replace(verdict=verdict, seeds=full.seeds)
            found.append(told)
    return [*found, *(_settled(world) if "meter" in vary else ())]


def judged_in(world: World, horizons: Sequence[int], row: Any) -> Sequence[Finding]:
    """Judges a row in a world, at some horizons."""
    # A share of none is no number, which decides nothing.
    with world.entered(), np.errstate(invalid="ignore", divide="ignore"):
        return row.judge(world.at(horizons))


def _settled(world: Callable[[Reading], World]) -> Iterator[Told]:
    """Judges, on each meter, the sentences that arithmetic settles and a meter changes."""
    meters = {name for swap in METERS.values() for name in swap}
    for row in claims.SETTLED:
        if not OPEN_IN["meter"](row.section):
            continue
        found = {}
        for meter in METERS:
            own = world(BASE._replace(meter=meter))
            own.asked.clear()
            with own.entered():
                found[meter] = outcome_of(row.judged(None))
            if not own.asked & meters:
                break
        if len(set(found.values())) > 1:
            for meter, outcome in found.items():
                reading = Reading(ANY, ANY, ANY, meter)
                yield Told(sentence_of(row), ANY, reading, outcome.verdict)


# --- shares -------------------------------------------------------------------------------------


def counts_of(told: Iterable[Told]) -> dict[Sentence, Counter[str]]:
    """Returns how many readings say what of each sentence."""
    found: dict[Sentence, Counter[str]] = {}
    for each in told:
        own = found.setdefault(each.sentence, Counter())
        if each.verdict:
            own[each.verdict] += 1
    return found


def read(folder: Path) -> list[Told]:
    """Returns what a folder's multiverse.csv tells; nothing where it is not there."""
    path = folder / f"{NAME}.csv"
    if not path.exists():
        return []
    return [told_of(row) for row in common.read_rows(path)]


def told_of(row: Mapping[str, Any]) -> Told:
    """Returns what a row of multiverse.csv tells."""
    sentence = Sentence(*(row[name] for name in Sentence._fields))
    reading = Reading(*(row[name] for name in Reading._fields))
    return Told(sentence, row["T"], reading, row["verdict"], row.get("seeds") or 0)


def shares(folder: Path) -> dict[Sentence, Share]:
    """Returns in how many readings each sentence holds, from a folder's multiverse.csv.

    Rows with one quotation are told apart by what is measured.
    """
    found: dict[Sentence, list[Told]] = {}
    for each in read(folder):
        found.setdefault(each.sentence, []).append(each)
    return {sentence: _share(told) for sentence, told in found.items()}


def _share(told: Sequence[Told]) -> Share:
    """Writes how often each kind was found, over how many seeds."""
    (count,) = counts_of(told).values()
    number = sum(count.values())
    text = f"holds in {count[HOLDS]} of {number} reading{'s' * (number != 1)}"
    text += "".join(f", {kind} in {count[kind]}" for kind in KINDS[1:] if count[kind])
    seeds = sorted({each.seeds for each in told if each.seeds})
    if seeds:
        text += f"; {seeds[0]:,} seeds"
        text += f" ({seeds[-1]:,} as read here)" * (len(seeds) > 1)
    return Share(text, {each.T: each.verdict for each in told if each.own})


def turned(told: Sequence[Told], undecided: bool = False) -> dict[str, int]:
    """Returns how many sentences change their verdict with each of what is open, all else alike.

    Args:
        told: All readings.
        undecided: Whether "not decided" is a verdict as any other; without, a sentence is turned
            from one that is decided into another, and what more seeds would decide is no turn.
    """
    silent = {""} if undecided else {"", OPEN}
    open_ = dict.fromkeys(UNDECIDED, OPEN)
    found: dict[str, set[Sentence]] = {name: set() for name in ("T", *Reading._fields)}
    for name in found:
        alike: dict[Any, set[str]] = {}
        for each in told:
            rest = {"T": each.T} | each.reading._asdict()
            del rest[name]
            verdict = open_.get(each.verdict, each.verdict)
            alike.setdefault((each.sentence, *rest.values()), set()).add(verdict)
        found[name] = {key[0] for key, kinds in alike.items() if len(kinds - silent) > 1}
    return {name: len(each) for name, each in found.items()}
