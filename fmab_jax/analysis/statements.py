"""Comparison of the regret of two runs at the horizon, as numbers and as one sentence.

A `Comparison` holds the participants, the question, trust and leak, the difference with its
interval, and the method. Only this module writes it as text or as cells.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fmab_jax.analysis import words
from fmab_jax.analysis.costs import Cost, write_leak, write_leak_cell
from fmab_jax.errors import format_quantity
from fmab_jax.parameters import ViewKind


class Question(NamedTuple):
    """Question of all runs of a comparison.

    Attributes:
        horizon: T, in slots; None where it is not said.
        root_seed: Of all randomness; None where it is unknown, or not the same.
        problem: Sizes, means and rewards, in words; "" where they are not said.
    """

    horizon: int | None = None
    root_seed: int | None = None
    problem: str = ""


UNKNOWN_QUESTION = Question()
"""A question without any value."""


class Participant(NamedTuple):
    """Run of a comparison.

    Attributes:
        label: Its name.
        seeds: How many it has.
        mean: Mean regret at T over the seeds that are compared.
        leak: What others are told of a reward: epsilon; infinite for no bound, NaN for unknown.
        delta: Up to which it holds; 0 for pure differential privacy.
        view: What kind of thing the leak is about; None where nothing is told, or unknown.
        observation: The same in words, such as "single messages".
        trust: Who is trusted with what, in words.
        links: Mean number of links at T; NaN for unknown.
        spent: Priced links, numbers and bits of a run: mean, 95 % quantile and maximum, by the
            names of columns such as "links_max".
    """

    label: str
    seeds: int
    mean: float
    leak: float = math.nan
    delta: float = math.nan
    view: ViewKind | None = None
    observation: str = ""
    trust: str = ""
    links: float = math.nan
    spent: Mapping[str, float] = {}  # noqa: RUF012

    @classmethod
    def from_cost(cls, label: str, seeds: int, mean: float, cost: Cost) -> Participant:
        """Returns a participant with its cost."""
        leak = cost.leak, cost.delta, cost.view, cost.observation
        return cls(label, seeds, mean, *leak, cost.trust, cost.links)

    @property
    def is_bounded(self) -> bool:
        """Whether there are messages and an epsilon covers them."""
        return self.view is not None and math.isfinite(self.leak)

    @property
    def is_silent(self) -> bool:
        """Whether nothing is sent."""
        return self.view is None and self.leak == 0.0


def leaks_alike(first: Participant, second: Participant) -> bool:
    """Tells whether both epsilons are the same, but for rounding."""
    return math.isclose(first.leak, second.leak, rel_tol=1e-9)


def leaks_less(first: Participant, second: Participant) -> bool:
    """Tells whether the first leak is surely smaller: neither epsilon nor delta is larger."""
    if math.isinf(second.leak):
        return first.leak < math.inf
    if leaks_alike(first, second):
        return first.delta < second.delta
    return first.leak < second.leak and first.delta <= second.delta


METHODS = {
    "paired": "Paired by seed: Student's t of the differences",
    "Welch": "Independent seeds: Welch's t",
    "bound": "Single seeds are not kept or make no pairs, so it is unknown how the runs vary "
    "together. The largest possible error is used",
}
"""How two runs are compared, and the words for it."""

# Smaller p-values are not stated: the Student t law of real seeds does not hold so far out.
_LEAST_P = 1e-15


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of the regret of two runs at the horizon; only `compare` makes it.

    Attributes:
        participants: The two runs.
        absent: Runs that take no part, by reason.
        question: Question of both.
        method: "paired", "Welch" or "bound"; see `METHODS`.
        level: Confidence level.
        together: How many comparisons are decided together.
        note: Note on the seeds; "" for none.
        at: Values that both share and others do not, such as "ε = 1"; "" for none.
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

    participants: tuple[Participant, ...]
    absent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    question: Question = UNKNOWN_QUESTION
    method: str = "paired"
    level: float = 0.95
    together: int = 1
    note: str = ""
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

    @property
    def verdict(self) -> str:
        """How the first's regret compares: "more", "less", or "not shown" for no difference.

        A difference is shown where the adjusted p-value is below 1 - level.
        """
        if self.adjusted >= 1 - self.level:
            return "not shown"
        return "more" if self.difference > 0 else "less"

    @property
    def method_note(self) -> str:
        """Method and number of seeds, for a note or a caption."""
        first, second = self.seeds
        seeds = f"{first:,} seeds each" if first == second else f"{first:,} and {second:,} seeds"
        return f"{METHODS[self.method]}; {seeds}{f' ({self.note})' * bool(self.note)}"

    @property
    def sentence(self) -> str:
        """One plain sentence, with leaks, links and trust where they are known.

        Such as "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87]; p = 0.2 leaks less: ε = 1 and
        2 (single messages); links 22.4 and 47.1".
        """
        middle, low, high = self.percent, self.percent_lower, self.percent_upper
        unit = " %" * math.isfinite(low)
        if not unit:
            middle, low, high = self.difference, self.lower, self.upper
        if self.verdict == "less":
            middle, low, high = -middle, -high, -low
        number, interval = write_interval(middle, low, high)
        text = f"{self.first} costs {number}{unit} {self.verdict} regret than {self.second}"
        if self.verdict == "not shown":
            text = f"{'no' if self.at else 'No'} difference in regret is shown between "
            text += f"{self.first} and {self.second}: {number}{unit}"
        regret = f"{f'With {self.at}: ' * bool(self.at)}{text} {interval}"
        return "; ".join(filter(None, [regret, self._leaks, self._links, self._trusts]))

    @property
    def _leaks(self) -> str:
        """Writes both leaks and compares them; leaks of different views have no order.

        Nor have a smaller epsilon and a smaller delta.
        """
        first, second = self.participants
        if not (first.observation and second.observation):
            return ""
        shared = first.observation if first.observation == second.observation else ""
        # A symbol that both share is written once.
        has_symbol = not (first.is_bounded and second.is_bounded and first.delta == second.delta)
        leaks = [
            write_leak(run, in_words=in_words)
            + f" ({run.observation})" * (not run.is_silent and run.observation != shared)
            for run, in_words in ((first, True), (second, has_symbol))
        ]
        is_same = leaks_alike(first, second) and first.delta == second.delta
        is_same = is_same and first.observation == second.observation
        text = f"{leaks[0]} each" if is_same else " and ".join(leaks)
        text += f" ({shared})" * bool(shared and not first.is_silent)
        has_order = first.view == second.view or not (first.is_bounded and second.is_bounded)
        for run, other, word in ((first, second, "less"), (second, first, "more")):
            if has_order and leaks_less(run, other):
                return f"{first.label} leaks {word}: {text}"
        return f"leak {text}"

    @property
    def _links(self) -> str:
        """Writes both mean numbers of priced links at T; "" if one is not known."""
        links = [run.links for run in self.participants]
        is_known = all(map(math.isfinite, links))
        texts = [*map(words.write_short, links)]
        text = f"{texts[0]} each" if texts[0] == texts[1] else " and ".join(texts)
        return f"links {text}" if is_known else ""

    @property
    def _trusts(self) -> str:
        """Writes both trusts if they differ and both leaks are of one kind; else ""."""
        kinds = {(run.is_bounded, run.is_silent) for run in self.participants}
        trusts = dict.fromkeys(run.trust or "not known" for run in self.participants)
        if len(trusts) == 1 or len(kinds) > 1:
            return ""
        return f"trusted: {' and '.join(f'“{trust}”' for trust in trusts)}"

    def cells(self, observation: str = "") -> dict[str, str]:
        """Returns the cells of a table of comparisons, by their headings; "–" for unknown.

        Leaks say in brackets what is seen, except the ``observation`` that the table names.
        """
        leaks = [write_leak_cell(run, observation) for run in self.participants]
        percent_is_known = math.isfinite(self.percent), math.isfinite(self.percent_lower)
        ends = f"[{self.percent_lower:+.3g}, {self.percent_upper:+.3g}] %"
        return {
            "at": self.at,
            "first": self.first,
            "second": self.second,
            "leaks ε": " and ".join(leaks) * all(leaks),
            "regret, first": words.write_short(self.participants[0].mean),
            "regret, second": words.write_short(self.participants[1].mean),
            "difference": _write_signed(self.difference),
            "interval": f"[{_write_signed(self.lower)}, {_write_signed(self.upper)}]",
            "per cent": f"{self.percent:+.3g} %" if percent_is_known[0] else "–",
            "interval of it": ends if percent_is_known[1] else "–",
            "p-value": write_p_value(self.p_value),
            "p-value, Holm": write_p_value(self.adjusted),
        }


def count_verdicts(comparisons: Sequence[Comparison]) -> str:
    """Counts verdicts, for a heading: "3 comparisons: more regret 2, less 0, not shown 1"."""
    number = Counter(pair.verdict for pair in comparisons)
    heading = format_quantity(len(comparisons), "comparison")
    verdicts = f"more regret {number['more']}, less {number['less']}"
    return f"{heading}: {verdicts}, no difference shown {number['not shown']}"


def write_p_value(value: float) -> str:
    """Writes a p-value: "0.032", "< 10⁻¹⁵"."""
    if value < _LEAST_P:
        return f"< {words.write_number(_LEAST_P)}"
    return f"{value:.3f}" if value >= 0.001 else words.write_number(float(f"{value:.2g}"))


def write_interval(middle: float, low: float, high: float) -> tuple[str, str]:
    """Writes a number and its interval with as many decimals as the interval can tell."""
    half = (high - low) / 2
    if math.isinf(half):
        low_, high_ = (words.write_short(end).replace("inf", "∞") for end in (low, high))
        return words.write_short(middle), f"[{low_}, {high_}]"
    places = 0 if middle == low == high == round(middle) else 2
    if half > 0:
        places = min(max(0, math.ceil(-math.log10(half))), 6)
    # An end that is not 0 does not read as 0: the reader looks at its sign.
    while places < 6 and any(end and not round(end, places) for end in (low, high)):
        places += 1
    texts = [f"{round(end, places) + 0.0:,.{places}f}" for end in (middle, low, high)]
    return texts[0], f"[{texts[1]}, {texts[2]}]"


def _write_signed(value: float) -> str:
    return f"+{words.write_short(value)}" if value > 0 else words.write_short(value)
