"""Where somebody stands among those that are shipped, at matched trust, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.several import Entrant, Least, Place, least, mean_with_ends, places
from fmab_jax.analysis.statements import interval_text
from fmab_jax.benchmark.contest import Group, Played
from fmab_jax.benchmark.matching import NO_BOUND, VIEWS
from fmab_jax.benchmark.standings import Standings
from fmab_jax.benchmark.suites import Suite

LEVEL = 0.95
"""Of all intervals of a ranking together, and of every other interval by itself."""

TAIL = 3
"""A regret above so many times the median is far out."""


@dataclass(frozen=True)
class Ranking:
    """One contestant among all others of a suite, a view and a leak."""

    group: Group  # view and leak
    label: str  # whom it is about
    own: Played  # what came out for it
    place: Place  # the ranks that the data leave open to it
    entrants: int  # how many there are, with it
    least: Least  # who has the least regret, and how much more the others have
    best: Played  # what came out for that one
    points: dict[str, tuple[float, float]]  # mean links and regret of everybody, by label

    @property
    def rank(self) -> str:
        """The rank in words: "2nd to 4th of 11"."""
        first, last = ordinal(self.place.first), ordinal(self.place.last)
        told = first if first == last else f"{first} to {last}"
        return f"{told} of {self.entrants}"

    @property
    def regret(self) -> str:
        """Its mean regret with its interval."""
        return interval_text(mean_with_ends(self.own.regret, LEVEL))

    @property
    def more(self) -> str:
        """How many per cent more regret than the least it has, with the simultaneous interval.

        The regret itself where the least's is too uncertain for a percentage to have an interval.
        """
        for each in self.least.rest:
            if each.label == self.label:
                if math.isfinite(each.percent[1]):
                    return f"{interval_text(each.percent)} %"
                return f"{interval_text(each.more)} in regret"
        return "–"


def ordinal(number: int) -> str:
    """Writes a rank: "1st", "12th"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def ranked(
    suite: Suite, group: Group, label: str, own: Played, standings: Standings, same: str = ""
) -> Ranking:
    """Ranks somebody, whose label nobody else has, among those that are shipped.

    Each two are compared on the seeds that both have, paired, and all intervals of the ranking hold
    together (`fmab_jax.analysis.several.places`). ``same`` is the label of the shipped one that it
    is itself; "" for nobody.
    """
    everybody = standings.of(suite.name, group)
    everybody.pop(same, None)
    everybody[label] = own
    entrants = [_entrant(suite, group, name, each) for name, each in everybody.items()]
    found = least(f"Suite {suite.name}", entrants, {}, LEVEL)
    return Ranking(
        group=group,
        label=label,
        own=own,
        place=places(entrants, LEVEL)[label],
        entrants=len(entrants),
        least=found,
        best=everybody[found.best],
        points={n: (float(p.links.mean()), float(p.regret.mean())) for n, p in everybody.items()},
    )


def _entrant(suite: Suite, group: Group, label: str, played: Played) -> Entrant:
    if group.view == NO_BOUND:
        return Entrant(label, NO_BOUND, NO_BOUND, played.regret, question=suite.question)
    view, leak = VIEWS[group.view], f"{group.leak:g}"
    return Entrant(label, "", leak, played.regret, view.sees, view.accountant, suite.question)


def tail(played: Played) -> tuple[str, str]:
    """Returns the largest regret of the seeds, and the share that is far above the median."""
    far = float((played.regret > TAIL * np.median(played.regret)).mean())
    return f"{played.regret.max():,.0f}", f"{100 * far:.2g} %"


def lost(played: Played) -> str:
    """Writes in how many seeds an agent lost the best arm, with the Clopper-Pearson interval."""
    number, seeds = int(played.lost.sum()), len(played.lost)
    low, high = lost_interval(number, seeds, LEVEL)
    return f"{number} of {seeds} [{100 * low:.2g} %, {100 * high:.2g} %]"
