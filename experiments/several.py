"""Which ranks the data leave open to several contestants, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from experiments import common
from fmab_jax.analysis.bands import fieller, student_critical
from fmab_jax.analysis.statements import write_interval
from fmab_jax.errors import real, refuse

Interval = tuple[float, float, float]  # a mean with the ends of its interval


class Entrant(NamedTuple):
    """Who takes part in a comparison of several."""

    label: str
    trust: str  # who has to be trusted, in words
    leak: str  # what others are told of a reward, in words
    regret: np.ndarray  # [seed] at T; entrants share their first seeds
    view: str = ""  # by what is seen, whom that leak is about; "" where it is not said
    accountant: str | float = "pure"  # or the delta up to which the leak holds
    question: Any = None  # what was asked: those of one T and root seed are compared

    @property
    def terms(self) -> tuple[str, ...]:
        """What has to be alike in a fair comparison: view (or trust), accountant and leak."""
        return self.view or self.trust, str(self.accountant), self.leak


def whoever(view: str) -> str:
    """Names whom a leak is about by what is seen: "whoever reads single messages"."""
    return f"whoever {'reads' if view.endswith('messages') else 'sees'} {view}"


class Place(NamedTuple):
    """Which ranks the data leave open to one of several contestants."""

    first: int  # the best of them: 1, and one more for each who is surely better
    last: int  # the worst: the number of contestants, and one less for each who is surely worse
    seeds: int  # that it has

    @property
    def text(self) -> str:
        """For a cell of a table: "2", or "2–5"."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


class Ranks:
    """The differences of each two of several contestants, and the ranks that they leave open.

    Each two are compared on the seeds that both have: one is surely better where the interval of
    the paired difference excludes 0 (Student t). The intervals hold together, for all pairs
    (Bonferroni): with probability ``level`` every range has the rank of the true mean in it.
    Contestants with unequal numbers of seeds are so ranked without comparing their means.

    Args:
        entrants: Who takes part.
        level: Of all intervals together.
    """

    def __init__(self, entrants: Sequence[Entrant], level: float = 0.95) -> None:
        _check(entrants, level)
        self.entrants = {entrant.label: entrant for entrant in entrants}
        pairs = list(combinations(self.entrants, 2))
        self.level = 1 - (1 - level) / max(1, len(pairs))
        # How many are surely better than each, and how many surely worse.
        self.losses, self.wins = (dict.fromkeys(self.entrants, 0) for _ in range(2))
        for one, other in pairs:
            _, low, high = self.more(one, other)
            if low > 0 or high < 0:
                winner, loser = (other, one) if low > 0 else (one, other)
                self.losses[loser] += 1
                self.wins[winner] += 1

    @cached_property
    def places(self) -> dict[str, Place]:
        """Ranks by label, the best first; those that tie by their means on common seeds."""
        tied: dict[tuple[int, int], list[str]] = {}
        for label in self.entrants:
            tied.setdefault((self.losses[label], -self.wins[label]), []).append(label)
        order: list[str] = []
        for _, labels in sorted(tied.items()):
            means = dict(zip(labels, (r.mean() for r in self._common(*labels)), strict=True))
            order += sorted(labels, key=means.__getitem__)
        number = len(self.entrants)
        return {
            label: Place(
                1 + self.losses[label], number - self.wins[label], len(self.entrants[label].regret)
            )
            for label in order
        }

    def more(self, one: str, other: str) -> Interval:
        """Returns how much more regret one has than another, seed by seed, with its interval."""
        first, second = self._common(one, other)
        return common.interval(first - second, self.level)

    def percent(self, one: str, other: str) -> Interval:
        """Returns the same in per cent of the other's mean (Fieller, paired); NaN for no end."""
        first, second = self._common(one, other)
        means, number = (float(first.mean()), float(second.mean())), len(second)
        (var_one, covariance), (_, var_two) = (np.cov(first, second) / number).tolist()
        critical = student_critical(number - 1, 1 - self.level)
        low, high = fieller(*means, var_one, var_two, covariance, critical)
        middle = means[0] / means[1] if means[1] else math.nan
        return 100 * (middle - 1), 100 * (low - 1), 100 * (high - 1)

    def _common(self, *labels: str) -> list[np.ndarray]:
        """Returns the regret of some on the seeds that all of them have."""
        regrets = [self.entrants[label].regret for label in labels]
        return [regret[: min(map(len, regrets))] for regret in regrets]


def _check(entrants: Sequence[Entrant], level: float) -> None:
    """Refuses what cannot be compared."""
    real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    if not entrants:
        refuse("entrants", [], "at least one", "give those that were run")
    seeds = min(len(entrant.regret) for entrant in entrants)
    if seeds < 2:
        refuse("entrants", f"{seeds} common seeds", "at least 2 seeds each", "run more seeds")
    if incomplete := [
        entrant.label for entrant in entrants if not np.isfinite(entrant.regret).all()
    ]:
        refuse("entrants", incomplete, "of finite regret", "complete their runs, or leave them out")
    labels = [entrant.label for entrant in entrants]
    if repeated := sorted({entrant for entrant in labels if labels.count(entrant) > 1}):
        refuse("entrants", repeated, "of labels of their own", "name each once")
    questions = sorted(
        {str(entrant.question) for entrant in entrants if entrant.question is not None}
    )
    if len(questions) > 1:
        refuse("entrants", questions, "asked the same question", "compare those of one T and seed")
    terms = sorted({entrant.terms for entrant in entrants})
    if len(terms) > 1:
        remedy = "compare those of one trust and leak"
        refuse("entrants", terms, "alike in whom they trust and what they leak", remedy)


def interval_text(numbers: Interval) -> str:
    """Writes a number with its interval: "12.3 [11.9, 12.7]"."""
    return " ".join(write_interval(*numbers))
