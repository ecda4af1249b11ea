"""From numbers to sentences: what is said of regret, and all that has to be said with it.

A number of regret means little without what it took; `cost_of` reads that from a result. A
`Statement` has the parts of a sentence: who took part and who did not, on which question, at which
trust and leak, how large the difference is, how sure, and by which rule. `compare` makes those
about two, `least` those about several. Text, cells of tables, rows of CSV and HTML are made of the
record, here and nowhere else. `places` ranks those whose numbers of seeds differ.
"""

from __future__ import annotations

import html
import importlib
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import Algorithm, algorithms_in, known, modules
from fmab_jax.analysis import words
from fmab_jax.analysis.bands import fieller, student_quantile
from fmab_jax.errors import Refusal, real, refuse
from fmab_jax.run.attributes import said

NOTHING = "nothing is told"
"""The view of a run in which nobody tells anybody anything."""

LEAK_NOTE = "Leak: ε of one reward in what is sent, over the whole run, against whoever sees most"
"""What a column of leaks says."""


class Cost(NamedTuple):
    """What a run's regret took.

    Attributes:
        leak: Epsilon of pure differential privacy of one reward in what is sent, over the whole
            run, against whoever sees most of it; infinite for no bound, NaN where the result does
            not say. What actions tell, and who knows a share of a noise, is in the ledger.
        view: What that one sees, such as "single messages"; `NOTHING` where nobody is told
            anything, "" where the result does not say.
        links: Mean number of links at T, on the meters that are priced; NaN where the result does
            not say.
        trust: Who is trusted with what, in a few words; "" where that is not known.
    """

    leak: float = math.nan
    view: str = ""
    links: float = math.nan
    trust: str = ""


def cost_of(data: xr.Dataset) -> Cost:
    """Returns what a result of one configuration took, as far as it says so.

    Args:
        data: From `simulate`, or one configuration of a sweep; a summary as well.
    """
    leak, view = leak_of(data)
    return Cost(leak, view, _links(data), _trust(data, leak, view))


def _trust(data: xr.Dataset, leak: float, view: str) -> str:
    """Returns who is trusted with what."""
    if view == NOTHING:
        return "nobody: nothing is told"
    owner = _owner(_algorithm(data) or str(data.attrs.get("algorithm", "")))
    if not view or not owner:
        return ""
    # Without noise somebody has to be trusted, whatever the algorithm is made for.
    open_ = math.isinf(leak) and owner.trusted.startswith("nobody")
    return f"whoever sees {view}" if open_ else owner.trusted


def leak_of(data: xr.Dataset) -> tuple[float, str]:
    """Returns the largest epsilon of what others are told, and what they see; see `Cost`.

    Args:
        data: A result of one configuration, or a row of its table of final values.
    """
    stated: Any = data.attrs.get("epsilon_message", math.nan)
    if "epsilon_message" in data.coords and not data.coords["epsilon_message"].ndim:
        stated = data.coords["epsilon_message"].values.item()
    rows = _own_rows(data)
    if not rows:
        return math.nan, ""
    told = [row for row in rows if row["what"] != "actions"]
    if not told:
        return 0.0, NOTHING

    def most(row: Mapping[str, Any]) -> float:
        return max(math.inf if epsilon is None else epsilon for epsilon, _ in row["leaks"])

    worst = max(told, key=most)
    leaks = {math.inf if epsilon is None else float(epsilon) for epsilon, _ in worst["leaks"]}
    if len(leaks) > 1:  # of several configurations, whose epsilon their own coordinate says
        leak = math.inf if stated == "none" else _number(stated)
        leaks = {max(leak, min(leaks))}
    return leaks.pop(), str(worst["what"])


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _own_rows(data: xr.Dataset) -> list[Mapping[str, Any]]:
    """Returns the rows of a ledger that are about one configuration; none where that is unknown.

    A sweep has one ledger: its rows name their algorithm, and the swept values that they are about.
    """
    rows = said(data, "ledger")
    labels = _labels(data)
    if len({row.get("title", "") for row in rows}) > 1:
        owner = _owner(_algorithm(data))
        rows = [row for row in rows if owner and row["title"] == (owner.title or owner.name)]
    about = [(row, _about(row.get("where", ""), labels)) for row in rows]
    if any(own is None for _, own in about):
        return []
    return [row for row, own in about if own]


def _labels(data: xr.Dataset) -> dict[str, Any]:
    """Returns the swept values of one configuration."""
    return {str(name): each.values.item() for name, each in data.coords.items() if not each.ndim}


def _algorithm(data: xr.Dataset) -> str:
    """Returns the name of the algorithm that was swept; its label stands for what was stated."""
    label = _labels(data).get("algorithm", "")
    labels = said(data, "labels").get("algorithm", [])
    stated = said(data, "study").get("algorithm")
    if label in labels and isinstance(stated, list) and len(stated) == len(labels):
        own = stated[labels.index(label)]
        return str(own.get("algorithm", "")) if isinstance(own, dict) else str(own)
    return str(label)


def _owner(name: str) -> type[Algorithm] | None:
    """Returns an algorithm by name; the package's own also where some plug-in cannot be loaded."""
    try:
        return known().get(name)
    except Refusal:
        rooms = (importlib.import_module(f"fmab_jax.algorithms.{each}") for each in modules())
        return next(
            (each for room in rooms for each in algorithms_in(room) if each.name == name), None
        )


def _about(where: str, labels: Mapping[str, Any]) -> bool | None:
    """Tells whether words such as "epsilon 0.5 or 1" are about these labels; None for unknown."""
    if not where:
        return True
    # Labels may have commas, but not before the name of another parameter.
    names = "|".join(map(re.escape, labels))
    parts = re.split(rf"(?:^|, )({names}) ", where) if names else [where]
    if parts[0] or len(parts) < 3:
        return None
    return all(
        any(_same(labels[name], each) for each in values.split(" or "))
        for name, values in zip(parts[1::2], parts[2::2], strict=True)
    )


def _same(label: Any, text: str) -> bool:
    """Compares a label with its text; files may have made a whole number a real one."""
    if str(label) == text:
        return True
    try:
        return float(label) == float(text)
    except (TypeError, ValueError):
        return False


def _links(data: xr.Dataset) -> float:
    """Returns the mean number of links at T that have a price."""
    name = next((name for name in ("links", "links_mean") if name in data), "")
    if not name or not {"priced", "side"} <= {*data.coords}:
        return math.nan
    last = data[name]
    if "time" in last.dims:
        last = last.isel(time=-1)
    if not set(last.dims) <= {"seed", "meter"}:
        dims = sorted(str(dim) for dim in {*last.dims} - {"seed", "meter"})
        refuse("data", f"{name} over {', '.join(dims)}", "of one configuration", "select one")
    if "seed" in last.dims:
        seeds = int(data["seeds"]) if "seeds" in data else last.sizes["seed"]
        last = last.isel(seed=slice(seeds)).mean("seed")
    priced = data.priced.values | (data.side.values == "server")
    return float(np.asarray(last.values)[priced].sum())


def leak_text(cost: Cost) -> str:
    """Writes a leak for a cell of a table: "50", "no bound", "nothing"; "" for unknown."""
    if cost.view == NOTHING:
        return "nothing"
    if math.isnan(cost.leak):
        return ""
    return "no bound" if math.isinf(cost.leak) else f"{cost.leak:.4g}"


class Question(NamedTuple):
    """What was asked of all that are compared.

    Attributes:
        horizon: T, in slots; None where it is not said.
        root_seed: Of all randomness; None where it is unknown, or not the same.
        problem: Sizes, means and rewards, in words; "" where they are not said.
    """

    horizon: int | None = None
    root_seed: int | None = None
    problem: str = ""


UNSAID = Question()
"""Nothing is said of the question."""


class Participant(NamedTuple):
    """Who takes part in a comparison.

    Attributes:
        label: Its name.
        seeds: How many it has.
        mean: Mean regret at T over the seeds that are compared.
        leak: What others are told of a reward, as `leak_text` writes it; "" for unknown.
        view: Who of these is meant, by what is seen, such as "single messages".
        accountant: "pure", or the delta up to which the leak holds.
        trust: Who is trusted with what, in words.
        links: Mean number of links at T; NaN for unknown.
    """

    label: str
    seeds: int
    mean: float
    leak: str = ""
    view: str = ""
    accountant: str | float = "pure"
    trust: str = ""
    links: float = math.nan

    @classmethod
    def of(cls, label: str, seeds: int, mean: float, cost: Cost) -> Participant:
        """Returns a run under its name, with what it took."""
        leak = leak_text(cost)
        return cls(label, seeds, mean, leak, cost.view, "pure", cost.trust, cost.links)

    @property
    def takes(self) -> tuple[str, ...]:
        """What has to be alike in a fair comparison: view (or else trust), accountant and leak."""
        return self.view or self.trust, str(self.accountant), self.leak

    @property
    def bounded(self) -> bool:
        """Whether the leak is a number."""
        return bool(re.match(r"[\d.]", self.leak)) and self.view != NOTHING

    @property
    def told(self) -> str:
        """The leak in words: "pure ε = 1", "ε = 1 up to δ = 10⁻⁶", "no bound"."""
        if not self.bounded:
            return self.leak
        pure = self.accountant == "pure"
        return f"pure ε = {self.leak}" if pure else f"ε = {self.leak}{_up_to(self.accountant)}"


def whoever(view: str) -> str:
    """Names whom a leak is about by what is seen: "whoever reads single messages"."""
    return f"whoever {'reads' if view.endswith('messages') else 'sees'} {view}"


class Cell(NamedTuple):
    """A cell of a table: its text, and what it is sorted by."""

    text: str
    value: Any


METHODS = {
    "paired": "Paired by seed: Student's t of the differences",
    "Welch": "Independent seeds: Welch's t",
    "bound": "Single seeds are not kept, so it is unknown how the runs vary together. "
    "The largest possible error is used",
    "turned": "The agents are in another order, so that seeds make no pairs. "
    "The largest possible error is used",
}
"""How two runs are compared, and the words for it."""

# Smaller p-values are not stated: the Student t law of real seeds does not hold so far out.
_LEAST_P = 1e-15


@dataclass(frozen=True, kw_only=True)
class Statement(ABC):
    """What is said of some runs' regret at the horizon; made by `compare` and `least` only.

    Attributes:
        participants: Who takes part.
        absent: Who takes no part, by the reason why.
        question: What all were asked.
        method: "paired", "Welch", "bound" or "turned"; see `METHODS`.
        level: Confidence level.
        together: How many comparisons are decided together.
        simultaneous: How: "Holm" (p-values), "Bonferroni" (intervals), "" for each by itself.
        note: What to know of the seeds besides; "" for nothing.
    """

    participants: tuple[Participant, ...]
    absent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    question: Question = UNSAID
    method: str = "paired"
    level: float = 0.95
    together: int = 1
    simultaneous: str = ""
    note: str = ""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """All that is said, in words."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What the numbers decide, by the rule, in a word or two."""

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Returns contrast, interval and size, with what each side took."""

    @property
    @abstractmethod
    def _took(self) -> str:
        """What was told to whom, and sent."""

    @property
    @abstractmethod
    def _counted(self) -> tuple[int, ...]:
        """How many seeds are compared."""

    @property
    def html(self) -> str:
        """The sentence for a page."""
        text = f"{self.sentence.removesuffix('.')}."
        return html.escape(text, quote=True).replace(" %", "\N{NO-BREAK SPACE}%")

    @property
    def how(self) -> str:
        """By which rule, over how many seeds; for a note or a caption."""
        numbers = dict.fromkeys(self._counted)
        seeds = (
            f"{' and '.join(f'{each:,}' for each in numbers)} seeds{' each' * (len(numbers) == 1)}"
        )
        return f"{METHODS[self.method]}; {seeds}{f' ({self.note})' * bool(self.note)}"

    @property
    def caption(self) -> str:
        """Rule, level and leak, for the caption of what shows it."""
        parts = [self.how, f"{100 * self.level:.6g} % intervals"]
        if self.question.horizon is not None:
            parts.append(words.counted("T = ", self.question.horizon, "slot"))
        return "; ".join([*parts, *filter(None, [self._took])])

    def row(self) -> dict[str, Any]:
        """Returns the record for a CSV file, by names that a program can rely on."""
        told = "; ".join(f"{why}: {_listed(labels)}" for why, labels in self.absent.items())
        return {
            "verdict": self.verdict,
            "horizon": self.question.horizon,
            "root_seed": self.question.root_seed,
            "problem": self.question.problem,
            **self._numbers(),
            "method": self.method,
            "level": self.level,
            "together": self.together,
            "simultaneous": self.simultaneous,
            "absent": told,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison(Statement):
    """What one run's regret at the horizon is beside another's.

    Attributes:
        at: What both share and others do not, such as "ε = 1"; "" for nothing to tell.
        difference: Mean regret of the first minus that of the second, in reward summed over agents.
        lower: Lower end of its confidence interval.
        upper: Upper end.
        percent: Difference in per cent of the second's mean; NaN where that is 0.
        percent_lower: Lower end of its interval (Fieller); NaN where the second's mean is not
            known to be above 0.
        percent_upper: Upper end.
        p_value: Two-sided, of no difference.
        adjusted: The p-value adjusted by Holm's method for all that are compared together.
        varied: The swept parameters that differ, such as "epsilon"; "" for runs by label.
    """

    at: str = ""
    difference: float
    lower: float
    upper: float
    percent: float
    percent_lower: float
    percent_upper: float
    p_value: float
    adjusted: float
    varied: str = ""

    @property
    def first(self) -> str:
        """Name of the first run."""
        return self.participants[0].label

    @property
    def second(self) -> str:
        """Name of the second run, the base of percentages."""
        return self.participants[1].label

    @property
    def seeds(self) -> tuple[int, int]:
        """Seeds of the first and of the second that are compared."""
        return self.participants[0].seeds, self.participants[1].seeds

    _counted = seeds

    @property
    def horizon(self) -> int | None:
        """T, in slots."""
        return self.question.horizon

    @property
    def first_mean(self) -> float:
        """Mean regret of the first at T, in reward summed over agents."""
        return self.participants[0].mean

    @property
    def second_mean(self) -> float:
        """That of the second."""
        return self.participants[1].mean

    @property
    def shown(self) -> bool:
        """Whether the adjusted p-value is below 1 - level."""
        return self.adjusted < 1 - self.level

    @property
    def verdict(self) -> str:
        """Whether the first has "more" or "less" regret, or no difference is shown: "not shown"."""
        return ("more" if self.difference > 0 else "less") if self.shown else "not shown"

    @property
    def sentence(self) -> str:
        """One plain sentence, with what both took as far as it is known.

        Such as "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87]; leak ε = 1 and 2, links 22.4
        and 47.1".
        """
        return "; ".join(filter(None, [self._difference, self._took, self._trusted]))

    @property
    def _difference(self) -> str:
        start = f"With {self.at}: " * bool(self.at)
        known = math.isfinite(self.percent_lower)
        ends = (self.percent_lower, self.percent_upper) if known else (self.lower, self.upper)
        middle, unit = (self.percent, " %") if known else (self.difference, "")
        if not self.shown:
            told, interval = _with_ends(middle, *ends)
            said = f"no difference in regret is shown between {self.first} and {self.second}"
            line = f"{start}{said}: {told}{unit} {interval}"
            return line if start else line[0].upper() + line[1:]
        if self.verdict == "less":
            middle, ends = -middle, (-ends[1], -ends[0])
        told, interval = _with_ends(middle, *ends)
        more = f"{told}{unit} {self.verdict}"
        return f"{start}{self.first} costs {more} regret than {self.second} {interval}"

    @property
    def _took(self) -> str:
        """Writes what both took, such as "leak ε = 6 and 30, links 38.1 and 190"."""
        first, second = self.participants
        parts = []
        if first.view and second.view:
            leaks = [f"ε = {each.leak}" if each.bounded else each.leak for each in (first, second)]
            if first.view != second.view:
                leaks = [
                    text if each.view == NOTHING else f"{text} ({each.view})"
                    for text, each in zip(leaks, (first, second), strict=True)
                ]
            parts.append(f"leak {_both(leaks)}")
        if math.isfinite(first.links) and math.isfinite(second.links):
            parts.append(f"links {_both([words.short(each.links) for each in (first, second)])}")
        return ", ".join(parts)

    @property
    def _trusted(self) -> str:
        """Says that trust is unlike, where a leak of "nothing" or "no bound" does not."""
        first, second = self.participants
        if not (first.bounded and second.bounded) or first.trust == second.trust:
            return ""
        told = (f"“{each.trust or 'not known'}”" for each in (first, second))
        return f"trusted: {' and '.join(told)}"

    @property
    def leaks(self) -> str:
        """Both leaks, "6 and 30"; "" where one is not known."""
        texts = [each.leak for each in self.participants]
        return " and ".join(texts) if all(texts) else ""

    def cells(self) -> dict[str, Cell]:
        """Returns the cells of a table of comparisons, by their headings; "–" for unknown."""
        percent = f"{self.percent:+.3g} %" if math.isfinite(self.percent) else "–"
        ends = f"[{self.percent_lower:+.3g}, {self.percent_upper:+.3g}] %"
        return {
            "at": Cell(self.at, ""),
            "first": Cell(self.first, ""),
            "second": Cell(self.second, ""),
            "leaks ε": Cell(self.leaks, self.leaks),
            "regret, first": Cell(words.short(self.first_mean), self.first_mean),
            "regret, second": Cell(words.short(self.second_mean), self.second_mean),
            "difference": Cell(_signed(self.difference), self.difference),
            "interval": Cell(f"[{_signed(self.lower)}, {_signed(self.upper)}]", self.lower),
            "per cent": Cell(percent, self.percent),
            "interval of it": Cell(ends if math.isfinite(self.percent_lower) else "–", ""),
            "p-value": Cell(p_text(self.p_value).removeprefix("= "), self.p_value),
            "p-value, Holm": Cell(p_text(self.adjusted).removeprefix("= "), self.adjusted),
        }

    def _numbers(self) -> dict[str, Any]:
        sides: dict[str, Any] = {}
        for side, each in zip(("first", "second"), self.participants, strict=True):
            sides |= {side: each.label, f"{side}_regret": each.mean}
            sides |= {f"{side}_{name}": getattr(each, name) for name in _TAKEN}
        own = ("difference", "lower", "upper", "percent", "percent_lower", "percent_upper")
        numbers = {name: getattr(self, name) for name in (*own, "p_value", "adjusted")}
        return {"at": self.at} | sides | numbers


_TAKEN = ("seeds", "leak", "view", "accountant", "trust", "links")
"""What a row has of each participant."""


def tally(found: Sequence[Comparison]) -> str:
    """Counts verdicts, for a heading: "3 comparisons: more regret 2, less 0, not shown 1"."""
    number = Counter(each.verdict for each in found)
    many = f"{len(found)} comparison{'s' * (len(found) != 1)}"
    told = f"more regret {number['more']}, less {number['less']}"
    return f"{many}: {told}, no difference shown {number['not shown']}"


def p_text(value: float) -> str:
    """Writes a p-value with its sign: "= 0.032", "< 10⁻¹⁵"."""
    if value < _LEAST_P:
        return f"< {words.written(_LEAST_P)}"
    text = f"{value:.3f}" if value >= 0.001 else words.written(float(f"{value:.2g}"))
    return f"= {text}"


class Entrant(NamedTuple):
    """Who takes part in a comparison of several.

    Attributes:
        label: Its name.
        trust: Who has to be trusted, in words.
        leak: What others are told of a reward, as `leak_text` writes it.
        regret: [seed] regret at T; entrants share their first seeds.
        view: By what is seen, whom that leak is about, such as "single messages"; "" where it is
            not said.
        accountant: "pure", or the delta up to which the leak holds, in (0, 1).
        question: What was asked of it.
    """

    label: str
    trust: str
    leak: str
    regret: np.ndarray
    view: str = ""
    accountant: str | float = "pure"
    question: Question = UNSAID

    @property
    def participant(self) -> Participant:
        """Who takes part, with the mean of all its seeds."""
        own = self.leak, self.view, self.accountant, self.trust
        return Participant(self.label, len(self.regret), float(self.regret.mean()), *own)

    @property
    def takes(self) -> tuple[str, ...]:
        """What has to be alike in a fair comparison; see `Participant.takes`."""
        return self.participant.takes


class Behind(NamedTuple):
    """How much more regret one has than the best of several.

    Attributes:
        label: Its name.
        mean: Its mean over all its seeds, with the ends of its interval (Student t, at the level
            itself).
        more: Mean difference with the ends of its interval: paired, on the seeds that both have,
            and simultaneous over all pairs that are compared (Bonferroni).
        percent: The same in per cent of the best one's mean (Fieller); NaN where it has no end.
        seeds: How many seeds both have.
        beaten: Whether anybody is surely better: the best one, or another.
    """

    label: str
    mean: tuple[float, float, float]
    more: tuple[float, float, float]
    percent: tuple[float, float, float]
    seeds: int
    beaten: bool


@dataclass(frozen=True, kw_only=True)
class Least(Statement):
    """Who of several has the least mean regret at T, by the differences of all pairs.

    Attributes:
        about: What is compared, such as "At T = 10⁵".
        mean: Of the best one over all its seeds, with the ends of its interval (Student t, at the
            level itself).
        rest: The others beside the best one, in the order of places.
    """

    about: str
    mean: tuple[float, float, float]
    rest: tuple[Behind, ...]

    @property
    def best(self) -> str:
        """Whom nobody is surely better than; of several, who is surely better than most."""
        return self.participants[0].label

    @property
    def alike(self) -> tuple[str, ...]:
        """The others whom nobody is surely better than: they cannot be told from the best."""
        return tuple(each.label for each in self.rest if not each.beaten)

    @property
    def between(self) -> tuple[str, ...]:
        """Who is surely worse than another, but not surely worse than the best."""
        return tuple(each.label for each in self.rest if each.beaten and each.more[1] <= 0)

    @property
    def next(self) -> Behind | None:
        """Who is next among those that are surely worse than the best."""
        return next((each for each in self.rest if each.beaten and each.more[1] > 0), None)

    @property
    def behind(self) -> str:
        """Its name; "" for nobody."""
        return self.next.label if self.next else ""

    @property
    def more(self) -> tuple[float, float, float]:
        """How much more it has, with the interval; NaN for nobody."""
        return self.next.more if self.next else (math.nan,) * 3

    @property
    def _counted(self) -> tuple[int, ...]:
        return tuple(each.seeds for each in self.rest) or (self.participants[0].seeds,)

    @property
    def entrants(self) -> int:
        """How many take part."""
        return len(self.participants)

    @property
    def verdict(self) -> str:
        """Whether the best one has surely the "least", or others are "alike"."""
        return "alike" if self.alike else "least"

    @property
    def sentence(self) -> str:
        """Says who has the least, over whom and how sure, under which trust, and who is absent."""
        missing = sum(len(labels) for labels in self.absent.values())
        among = f" of {self.entrants} of {self.entrants + missing} contestants," * bool(missing)
        text = f"{', '.join(filter(None, [self.about, self._took]))}:{among} "
        has = "may have" if self.alike else "has"
        text += f"{self.best} {has} the least regret, {self._own(self.best)}"
        if self.alike:
            told = [f"{label}, {self._own(label)}" for label in self.alike]
            text += f"; cannot be told from it: {_listed(told)}"
        if self.between:
            told = [f"{label}, {self._own(label)}" for label in self.between]
            text += f"; surely worse than another, if not than it: {_listed(told)}"
        if self.next:
            text += f"; {self.behind} has {interval_text(self.more)} more"
            share = self.next.percent[0]
            of = f"{words.short(float(f'{share:.3g}'))} %, " * math.isfinite(share)
            text += f" ({of}{self.next.seeds} common seeds)"
        text += "."
        if len({each.takes for each in self.participants}) > 1:
            told = [
                f"{', '.join(filter(None, [f'{each.label}: {each.trust}', each.view]))}, "
                f"ε: {each.leak}{_up_to(each.accountant) * each.bounded}"
                for each in self._named
            ]
            # The named ones may agree while others differ from them.
            apart = len({each.takes for each in self._named}) > 1
            start = "They differ" if apart else "Others differ from them"
            text += f" {start} in trust or leak ({_listed(told)})."
            rest = [each for each in self.participants if each not in self._named]
            text += f" Others leak {_leaks_of(rest)}." * bool(rest)
        for why, labels in self.absent.items():
            text += f" Not run, {why}: {_listed(labels)}."
        return text

    def _own(self, label: str) -> str:
        """Writes somebody's own mean with its interval, and over how many seeds it is."""
        means = {self.best: self.mean} | {each.label: each.mean for each in self.rest}
        seeds = next(each.seeds for each in self.participants if each.label == label)
        return f"{interval_text(means[label])} ({seeds} seeds)"

    @property
    def _took(self) -> str:
        """Writes what all leak alike: "by whoever reads single messages, pure ε = 1"."""
        first = self.participants[0]
        if not first.view or len({each.takes for each in self.participants}) > 1:
            return ""
        return f"by {whoever(first.view)}, {first.told}"

    @property
    def _named(self) -> list[Participant]:
        """Whose trust and leak have to be said: the best, who is alike, and who is next."""
        labels, best = {self.best, self.behind, *self.alike}, self.participants[0]
        # Equal trust with another leak is another question.
        return [
            each
            for each in self.participants
            if each.label in labels or (each.trust == best.trust and each.takes != best.takes)
        ]

    def _numbers(self) -> dict[str, Any]:
        found: dict[str, Any] = {"about": self.about, "best": self.best}
        found |= {f"best_{name}": getattr(self.participants[0], name) for name in _TAKEN[:-1]}
        triples = {"regret": self.mean, "more": self.more}
        triples["percent"] = self.next.percent if self.next else (math.nan,) * 3
        for name, triple in triples.items():
            found |= {f"{name}{end}": x for end, x in zip(("", *_ENDS), triple, strict=True)}
        found |= {"alike": _listed(self.alike), "between": _listed(self.between)}
        common = self.next.seeds if self.next else None
        return found | {"behind": self.behind, "common_seeds": common, "entrants": self.entrants}


def _leaks_of(participants: Sequence[Participant]) -> str:
    """Says what several leak: "ε from 1 to 50, or no bound"."""
    numbers = sorted(float(each.leak) for each in participants if each.bounded)
    words_ = []
    if numbers:
        ends = [f"{end:g}" for end in (numbers[0], numbers[-1])]
        words_.append(f"ε from {' to '.join(ends)}" if ends[0] != ends[1] else f"ε = {ends[0]}")
    rest = {each.leak or "unknown" for each in participants if not each.bounded}
    rest = {"nothing" if leak == NOTHING else leak for leak in rest}
    words_ += sorted(rest, reverse=True, key=lambda leak: (leak != "no bound", leak))
    return " or ".join([", ".join(words_[:-1]), words_[-1]] if words_[1:] else words_)


_ENDS = ("_lower", "_upper")


def least(
    about: str,
    entrants: Sequence[Entrant],
    absent: Mapping[str, Sequence[str]],
    level: float = 0.95,
    *,
    unlike: bool = False,
) -> Least:
    """Returns who of several has the least mean regret.

    Each two are compared on the seeds that both have, as in `places`: the best and those that
    cannot be told from it are those whose places start with 1. Nobody is surely better than the
    best, and it is surely better than most; those that have this in common go by their means over
    the seeds that they have in common. The best is chosen by the data, so that the intervals hold
    for all pairs together (Bonferroni), not only for those with the best.

    Args:
        about: What is compared: horizon, problem, and what else all share.
        entrants: Who takes part, with labels of their own.
        absent: Who does not, by the reason why; nobody is left out silently.
        level: Of all intervals together, in (0, 1).
        unlike: Whether entrants may differ in view, accountant or leak (or in trust, where no view
            is given); the sentence then says so.

    Raises:
        ValueError: If nobody takes part, one has fewer than two seeds, two have one label, somebody
            is both there and absent, two were asked something else, or leaks are unlike and that is
            not asked for.
    """
    level = _checked(entrants, level, unlike)
    both = {each.label for each in entrants} & {name for each in absent.values() for name in each}
    if both:
        refuse("absent", sorted(both), "who takes no part", "name each once")
    pairs = _Pairs(entrants, level)
    best, *others = order = pairs.order()
    first = entrants[best]
    return Least(
        participants=tuple(entrants[i].participant for i in order),
        absent={why: tuple(labels) for why, labels in absent.items() if labels},
        question=first.question,
        level=level,
        together=pairs.together,
        simultaneous="Bonferroni",
        about=about,
        mean=mean_with_ends(first.regret, level),
        rest=tuple(
            Behind(
                entrants[i].label,
                mean_with_ends(entrants[i].regret, level),
                pairs.more(i, best),
                pairs.percent(i, best),
                min(len(entrants[i].regret), len(first.regret)),
                pairs.losses[i] > pairs.losses[best],
            )
            for i in others
        ),
    )


class _Pairs:
    """The differences of each two of several contestants, on the seeds that both have.

    Attributes:
        entrants: The contestants.
        together: How many pairs there are.
        level: Of each interval (Student t), such that all hold together (Bonferroni).
        losses: How many are surely better than each.
        wins: How many are surely worse.
    """

    def __init__(self, entrants: Sequence[Entrant], level: float) -> None:
        self.entrants = entrants
        pairs = list(combinations(range(len(entrants)), 2))
        self.together = max(1, len(pairs))
        self.level = 1 - (1 - level) / self.together
        self.losses, self.wins = [0] * len(entrants), [0] * len(entrants)
        for one, other in pairs:
            _, low, high = self.more(one, other)
            if low > 0 or high < 0:
                winner, loser = (other, one) if low > 0 else (one, other)
                self.losses[loser] += 1
                self.wins[winner] += 1

    def more(self, one: int, other: int) -> tuple[float, float, float]:
        """Returns how much more regret one has than another, seed by seed, with its interval."""
        mine, theirs = _common(self.entrants[one], self.entrants[other])
        return mean_with_ends(mine - theirs, self.level)

    def percent(self, one: int, other: int) -> tuple[float, float, float]:
        """Returns the same in per cent of the other's mean (Fieller, paired)."""
        mine, theirs = _common(self.entrants[one], self.entrants[other])
        return _percent(mine, theirs, self.level)

    def order(self) -> list[int]:
        """Returns the contestants, the best first; those that tie by means on common seeds."""
        found: dict[tuple[int, int], list[int]] = {}
        for i in range(len(self.entrants)):
            found.setdefault((self.losses[i], -self.wins[i]), []).append(i)
        order = []
        for _, tied in sorted(found.items()):
            regrets = _common(*(self.entrants[i] for i in tied))
            means = {i: each.mean() for i, each in zip(tied, regrets, strict=True)}
            order += sorted(tied, key=lambda i: means[i])
        return order


def _common(*entrants: Entrant) -> list[np.ndarray]:
    """Returns the regret of some on the seeds that all of them have."""
    seeds = min(len(each.regret) for each in entrants)
    return [each.regret[:seeds] for each in entrants]


class Place(NamedTuple):
    """Which ranks the data leave open to one of several contestants.

    Attributes:
        first: The best of them: 1, and one more for each who is surely better.
        last: The worst: the number of contestants, and one less for each who is surely worse.
        seeds: How many seeds it has.
    """

    first: int
    last: int
    seeds: int

    @property
    def text(self) -> str:
        """For a cell of a table: "2", or "2–5"."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


def places(
    entrants: Sequence[Entrant], level: float = 0.95, *, unlike: bool = False
) -> dict[str, Place]:
    """Returns the ranks that each of several contestants may have, by label.

    Each two are compared on the seeds that both have: one is surely better where the interval of
    the paired difference excludes 0 (Student t). The intervals hold together, for all pairs
    (Bonferroni): with probability ``level`` every range has the rank of the true mean in it.
    Contestants with unequal numbers of seeds are so ranked without comparing their means.

    Args:
        entrants: Who takes part, with labels of their own.
        level: Of all intervals together, in (0, 1).
        unlike: Whether entrants may differ in view, accountant or leak (or in trust, where no view
            is given).

    Returns:
        The best rank first; those that share a range are in the order given.

    Raises:
        ValueError: As `least`.
    """
    level = _checked(entrants, level, unlike)
    pairs = _Pairs(entrants, level)
    found = {
        each.label: Place(1 + pairs.losses[i], len(entrants) - pairs.wins[i], len(each.regret))
        for i, each in enumerate(entrants)
    }
    return dict(sorted(found.items(), key=lambda item: item[1][:2]))


def _checked(entrants: Sequence[Entrant], level: float, unlike: bool) -> float:
    """Refuses what cannot be compared; returns the level."""
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    if not entrants:
        refuse("entrants", [], "at least one", "give those that were run")
    seeds = min(len(each.regret) for each in entrants)
    if seeds < 2:
        refuse("entrants", f"{seeds} common seeds", "at least 2 seeds each", "run more seeds")
    if lost := [each.label for each in entrants if not np.isfinite(each.regret).all()]:
        refuse(
            "entrants", lost, "of finite regret", "complete their runs, or say why they are absent"
        )
    labels = [each.label for each in entrants]
    if twice := sorted({each for each in labels if labels.count(each) > 1}):
        refuse("entrants", twice, "of labels of their own", "name each once")
    for each in entrants:
        if each.accountant != "pure":
            remedy = 'give "pure", or the delta of (epsilon, delta)'
            real("accountant", each.accountant, 0, 1, remedy, open_low=True, open_high=True)
    asked = sorted({str(tuple(each.question)) for each in entrants if each.question != UNSAID})
    if len(asked) > 1:
        refuse("entrants", asked, "asked the same question", "compare those of one T and problem")
    takes = sorted({each.takes for each in entrants})
    if len(takes) > 1 and not unlike:
        remedy = "compare those of one trust and leak, or pass unlike=True"
        refuse("entrants", takes, "alike in whom they trust and what they leak", remedy)
    return level


def mean_with_ends(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Returns the mean over seeds, at least two, with the ends of its interval (Student t)."""
    middle = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(len(values) - 1, level) * error
    return middle, middle - half, middle + half


def _percent(one: np.ndarray, base: np.ndarray, level: float) -> tuple[float, float, float]:
    """Returns how many per cent more the mean of one is, with its interval (Fieller, paired)."""
    means, number = (float(one.mean()), float(base.mean())), len(base)
    spread = np.cov(one, base) / number
    critical = student_quantile(number - 1, level)
    ends = fieller(*means, float(spread[0, 0]), float(spread[1, 1]), float(spread[0, 1]), critical)
    middle = means[0] / means[1] if means[1] else math.nan
    low, middle, high = (100 * (ratio - 1) for ratio in (ends[0], middle, ends[1]))
    return middle, low, high


def interval_text(found: tuple[float, float, float]) -> str:
    """Writes a number with its interval: "12.3 [11.9, 12.7]"."""
    return " ".join(_with_ends(*found))


def _with_ends(middle: float, low: float, high: float) -> tuple[str, str]:
    """Writes a number and its interval with as many decimals as the interval can tell."""
    half = (high - low) / 2
    if math.isinf(half):
        low_, high_ = (words.short(each).replace("inf", "∞") for each in (low, high))
        return words.short(middle), f"[{low_}, {high_}]"
    places = 0 if middle == low == high == round(middle) else 2
    if half > 0:
        places = min(max(0, math.ceil(-math.log10(half))), 6)
    # An end that is not 0 does not read as 0: the reader looks at its sign.
    while places < 6 and any(each and not round(each, places) for each in (low, high)):
        places += 1
    texts = [f"{round(each, places) + 0.0:,.{places}f}" for each in (middle, low, high)]
    return texts[0], f"[{texts[1]}, {texts[2]}]"


def _signed(value: float) -> str:
    return f"+{words.short(value)}" if value > 0 else words.short(value)


def _both(texts: Sequence[str]) -> str:
    one, other = texts
    if one == other:
        return f"{one} each"
    return f"{one} and {other.removeprefix('ε = ') if one.startswith('ε') else other}"


def _up_to(accountant: str | float) -> str:
    """Writes up to which delta a leak holds; "" for pure."""
    return "" if accountant == "pure" else f" up to δ = {words.written(float(accountant))}"


def _listed(labels: Sequence[str]) -> str:
    # Labels have commas of their own.
    return " / ".join(labels)
