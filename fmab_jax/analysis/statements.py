"""Comparison of the regret of two runs at the horizon, as numbers and as one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fmab_jax.analysis import words
from fmab_jax.analysis.costs import Cost, find_shared_observation, write_leak

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
        participants: The two runs: names, seeds, mean regret, and what they spend for it.
        method: "paired", "Welch" or "bound"; see `METHODS`.
        level: Confidence level.
        note: Note on the seeds; "" for none.
        metric: Which regret is compared, in words.
        at: Values that both share and others do not, such as "ε = 1"; "" for none.
        difference: Mean regret of the first minus that of the second, in reward.
        lower: Lower end of its confidence interval.
        upper: Upper end.
        percent: Difference in per cent of the second's mean; NaN where that is 0.
        percent_lower: Lower end of its interval (Fieller); NaN where the second's mean is not
            known to be above 0.
        percent_upper: Upper end.
        p_value: Two-sided, of no difference.
        adjusted: The p-value adjusted by Holm's method for all that are compared together.
    """

    participants: tuple[Cost, Cost]
    method: str
    level: float
    note: str = ""
    metric: str = "regret"
    at: str = ""
    difference: float
    lower: float
    upper: float
    percent: float
    percent_lower: float
    percent_upper: float
    p_value: float
    adjusted: float

    def __str__(self) -> str:
        """The sentence, and how sure it is."""
        interval = f"In brackets: the {100 * self.level:.6g} % interval"
        sure = f"{interval}; p-value {write_p_value(self.adjusted)}. {self.method_note}"
        return f"{self.sentence}.\n{sure}."

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

        Such as "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87]; leak ε = 1 and 2 (single
        messages); links 22.4 and 47.1".
        """
        middle, low, high = self.percent, self.percent_lower, self.percent_upper
        unit = " %" * math.isfinite(low)
        if not unit:
            middle, low, high = self.difference, self.lower, self.upper
        if self.verdict == "less":
            middle, low, high = -middle, -high, -low
        number, interval = write_interval(middle, low, high)
        text = f"{self.first} costs {number}{unit} {self.verdict} {self.metric} than {self.second}"
        if self.verdict == "not shown":
            text = f"{'no' if self.at else 'No'} difference in {self.metric} is shown between "
            text += f"{self.first} and {self.second}: {number}{unit}"
        regret = f"{f'With {self.at}: ' * bool(self.at)}{text} {interval}"
        return "; ".join(filter(None, [regret, *self._list_costs()]))

    def _list_costs(self) -> list[str]:
        """Returns what both runs spend, as far as it is known, and trusts that differ."""
        runs, parts = self.participants, list[str]()
        if all(run.observation for run in runs):
            shared = find_shared_observation(runs)
            leaks = _join_pair([write_leak(run, shared, in_words=True) for run in runs])
            parts.append(f"leak {leaks}" + f" ({shared})" * bool(shared))
        if all(math.isfinite(run.links) for run in runs):
            parts.append(f"links {_join_pair([words.write_short(run.links) for run in runs])}")
        trusts = dict.fromkeys(run.trust or "not known" for run in runs)
        # What leaks nothing, or without a bound, needs no word on trust beside what has a bound.
        if len(trusts) > 1 and len({run.is_bounded for run in runs}) == 1:
            parts.append(f"trusted: {' and '.join(f'“{trust}”' for trust in trusts)}")
        return parts

    def cells(self, observation: str = "") -> dict[str, str]:
        """Returns the cells of a table of comparisons, by their headings; "–" for unknown.

        Leaks say in brackets what is seen, except the ``observation`` that the table names.
        """
        leaks = [write_leak(run, observation) for run in self.participants]
        interval = f"[{_write_signed(self.lower)}, {_write_signed(self.upper)}]"
        percent = f"{self.percent:+.3g}" if math.isfinite(self.percent) else "–"
        if math.isfinite(self.percent_lower):
            percent += f" [{self.percent_lower:+.3g}, {self.percent_upper:+.3g}]"
        return {
            "at": self.at,
            "first": self.first,
            "second": self.second,
            "leaks ε": " and ".join(leaks) * all(leaks),
            f"{self.metric}, first": words.write_short(self.participants[0].mean),
            f"{self.metric}, second": words.write_short(self.participants[1].mean),
            "difference": f"{_write_signed(self.difference)} {interval}",
            "per cent": percent,
            "p-value": write_p_value(self.adjusted),
        }


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


def _join_pair(texts: Sequence[str]) -> str:
    return f"{texts[0]} each" if texts[0] == texts[1] else " and ".join(texts)
