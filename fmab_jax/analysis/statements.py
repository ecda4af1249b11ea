"""From numbers to sentences: what is said of regret, and all that has to be said with it.

A `Statement` has the parts of a sentence: who took part and who did not, on which question, at
which trust and leak, how large the difference is, how sure, and by which rule. `compare` makes
those about two, `fmab_jax.analysis.several.least` those about several. Text, cells of tables, rows
of CSV and HTML are made of the record, here and nowhere else.
"""

from __future__ import annotations

import html
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fmab_jax.analysis import words
from fmab_jax.analysis.costs import NOTHING, Cost, leak_text, with_view


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
    def leak_number(self) -> float:
        """The leak as a number: 0 where nothing is told, infinite without a bound."""
        return float(self.leak) if self.bounded else 0.0 if self.view == NOTHING else math.inf

    @property
    def leak_words(self) -> str:
        """The leak in words: "pure ε = 1", "ε = 1 up to δ = 10⁻⁶", "no bound"."""
        if not self.bounded:
            return self.leak
        pure = self.accountant == "pure"
        return f"pure ε = {self.leak}" if pure else f"ε = {self.leak}{up_to(self.accountant)}"


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
    def _compared(self) -> tuple[int, ...]:
        """How many seeds are compared."""

    @property
    def html(self) -> str:
        """The sentence for a page."""
        text = f"{self.sentence.removesuffix('.')}."
        return html.escape(text, quote=True).replace(" %", "\N{NO-BREAK SPACE}%")

    @property
    def how(self) -> str:
        """By which rule, over how many seeds; for a note or a caption."""
        numbers = dict.fromkeys(self._compared)
        seeds = " and ".join(f"{each:,}" for each in numbers)
        note = f" ({self.note})" * bool(self.note)
        return f"{METHODS[self.method]}; {seeds} seeds{' each' * (len(numbers) == 1)}{note}"

    @property
    def caption(self) -> str:
        """Rule, level and leak, for the caption of what shows it."""
        parts = [self.how, f"{100 * self.level:.6g} % intervals"]
        if self.question.horizon is not None:
            parts.append(words.quantity("T = ", self.question.horizon, "slot"))
        return "; ".join([*parts, *filter(None, [self._took])])

    def row(self) -> dict[str, Any]:
        """Returns the record for a CSV file, by names that a program can rely on."""
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
            "absent": "; ".join(f"{why}: {listed(who)}" for why, who in self.absent.items()),
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

    _compared = seeds

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

        Such as "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87], but leaks less: ε = 1 and 2
        (single messages); links 22.4 and 47.1".
        """
        if not (unequal := self._unequal):
            return "; ".join(filter(None, [self._difference, self._took, self._trusted]))
        return "; ".join(filter(None, [self._difference + unequal, self._links, self._trusted]))

    @property
    def _difference(self) -> str:
        start = f"With {self.at}: " * bool(self.at)
        found, unit = (self.percent, self.percent_lower, self.percent_upper), " %"
        if not math.isfinite(self.percent_lower):
            found, unit = (self.difference, self.lower, self.upper), ""
        if self.verdict == "less":
            found = (-found[0], -found[2], -found[1])
        number, interval = with_ends(*found)
        if self.shown:
            more = f"{number}{unit} {self.verdict}"
            return f"{start}{self.first} costs {more} regret than {self.second} {interval}"
        no = "no" if start else "No"
        said = f"{no} difference in regret is shown between {self.first} and {self.second}"
        return f"{start}{said}: {number}{unit} {interval}"

    @property
    def _took(self) -> str:
        """Writes what both took: "leak ε = 6 and 30 (single messages), links 38.1 and 190"."""
        leaks = self._leaks
        unbounded = [each.leak for each in self.participants] == 2 * ["no bound"]
        leaks = "no bound on either leak" if leaks and unbounded else f"leak {leaks}" * bool(leaks)
        return ", ".join(filter(None, [leaks, self._links]))

    @property
    def _links(self) -> str:
        links = [each.links for each in self.participants]
        return (
            f"links {_both([*map(words.short, links)])}" if all(map(math.isfinite, links)) else ""
        )

    @property
    def _leaks(self) -> str:
        """Writes both leaks and of what they are: "ε = 6 and 30 (single messages)"."""
        first, second = self.participants
        if not (first.view and second.view):
            return ""
        leaks = [f"ε = {each.leak}" if each.bounded else each.leak for each in (first, second)]
        if first.view == second.view:
            return f"{_both(leaks)}{f' ({first.view})' * (first.view != NOTHING)}"
        return _both(
            [
                text if each.view == NOTHING else f"{text} ({each.view})"
                for text, each in zip(leaks, (first, second), strict=True)
            ]
        )

    @property
    def _unequal(self) -> str:
        """Says which of two unequal leaks is the smaller; "" where that cannot be told."""
        first, second = self.participants
        one, other = (each.leak_number for each in (first, second))
        # Numbers of unlike views are no sizes of one thing.
        unlike = first.bounded and second.bounded and first.view != second.view
        if not self._leaks or unlike or one == other:
            return ""
        size = "less" if one < other else "more"
        if not self.shown:
            return f"; {first.label} leaks {size}: {self._leaks}"
        joint = "and" if size == self.verdict else "but"
        return f", {joint} leaks {size}: {self._leaks}"

    @property
    def _trusted(self) -> str:
        """Says that trust is unlike, where leaks of two kinds do not: a number, none, no bound."""
        first, second = self.participants
        kinds = {"ε" if each.bounded else each.leak for each in self.participants}
        if first.trust == second.trust or len(kinds) > 1:
            return ""
        trusts = (f"“{each.trust or 'not known'}”" for each in (first, second))
        return f"trusted: {' and '.join(trusts)}"

    @property
    def leaks(self) -> str:
        """Both leaks, "6 and 30"; "" where one is not known."""
        return _joined([each.leak for each in self.participants])

    def cells(self, view: str = "") -> dict[str, Cell]:
        """Returns the cells of a table of comparisons, by their headings; "–" for unknown.

        Leaks are told with what is seen, but for the ``view`` that the table names.
        """
        leaks = [with_view(each.leak, each, view) for each in self.participants]
        percent = f"{self.percent:+.3g} %" if math.isfinite(self.percent) else "–"
        ends = f"[{self.percent_lower:+.3g}, {self.percent_upper:+.3g}] %"
        return {
            "at": Cell(self.at, ""),
            "first": Cell(self.first, ""),
            "second": Cell(self.second, ""),
            "leaks ε": Cell(_joined(leaks), self.leaks),
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
            sides |= {f"{side}_{name}": getattr(each, name) for name in TAKEN}
        own = ("difference", "lower", "upper", "percent", "percent_lower", "percent_upper")
        numbers = {name: getattr(self, name) for name in (*own, "p_value", "adjusted")}
        return {"at": self.at} | sides | numbers


TAKEN = ("seeds", "leak", "view", "accountant", "trust", "links")
"""What a row has of each participant."""


def tally(found: Sequence[Comparison]) -> str:
    """Counts verdicts, for a heading: "3 comparisons: more regret 2, less 0, not shown 1"."""
    number = Counter(each.verdict for each in found)
    many = f"{len(found)} comparison{'s' * (len(found) != 1)}"
    shown = f"more regret {number['more']}, less {number['less']}"
    return f"{many}: {shown}, no difference shown {number['not shown']}"


def p_text(value: float) -> str:
    """Writes a p-value with its sign: "= 0.032", "< 10⁻¹⁵"."""
    if value < _LEAST_P:
        return f"< {words.written(_LEAST_P)}"
    text = f"{value:.3f}" if value >= 0.001 else words.written(float(f"{value:.2g}"))
    return f"= {text}"


def interval_text(found: tuple[float, float, float]) -> str:
    """Writes a number with its interval: "12.3 [11.9, 12.7]"."""
    return " ".join(with_ends(*found))


def with_ends(middle: float, low: float, high: float) -> tuple[str, str]:
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


def _joined(texts: Sequence[str]) -> str:
    return " and ".join(texts) if all(texts) else ""


def _both(texts: Sequence[str]) -> str:
    one, other = texts
    if one == other:
        return f"{one} each"
    return f"{one} and {other.removeprefix('ε = ') if one.startswith('ε') else other}"


def up_to(accountant: str | float) -> str:
    """Writes up to which delta a leak holds; "" for pure."""
    return "" if accountant == "pure" else f" up to δ = {words.written(float(accountant))}"


def listed(labels: Sequence[str]) -> str:
    """Lists labels, which have commas of their own."""
    return " / ".join(labels)
