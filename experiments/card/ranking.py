"""Where a run stands among those of the standings, at equal leaks and at equal links."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments import common
from experiments.card.standings import Run, Standings
from experiments.card.suites import Group
from experiments.several import Entrant, Place, Ranks, interval_text
from fmab_jax.analysis.bands import lost_interval

LEVEL = 0.95  # of all intervals of a ranking together, and of every other interval by itself
TAIL = 3  # a regret above so many times the median is far out
SLACK = 1.1  # at equal links: those with at most so many times the links


def write_mean(values: np.ndarray) -> str:
    """Writes the mean over seeds with its interval."""
    return interval_text(common.interval(values, LEVEL))


@dataclass(frozen=True)
class Ranking:
    """One contestant among all others of a suite, a view and a leak."""

    group: Group
    run: Run
    place: Place  # the ranks that the data leave open to it
    rank: str  # in words: "2nd to 4th of 11"
    rank_at_equal_links: str  # among those with no more links (`SLACK`)
    leader: str  # who has the least regret
    best: Run  # what it did
    # How many per cent more regret than the least it has, with the simultaneous interval; the
    # regret itself if the least's is too uncertain for a percentage to have an interval.
    more: str


def rank_run(
    suite: str, group: Group, label: str, run: Run, standings: Standings, same: str = ""
) -> Ranking:
    """Ranks a run, whose label nobody else has, among those of the standings.

    Each two are compared on the seeds that both have, paired, and all intervals of the ranking hold
    together (`experiments.several.Ranks`). ``same`` is the label of the standing that it is itself;
    "" for none.
    """
    runs = standings.members(suite, group)
    runs.pop(same, None)
    runs[label] = run
    frugal = [name for name, r in runs.items() if r.links.mean() <= SLACK * run.links.mean()]
    entrants = {n: Entrant(n, group.view, f"{group.leak:g}", r.regret) for n, r in runs.items()}
    ranks = Ranks([*entrants.values()], LEVEL)
    equal = Ranks([entrants[name] for name in frugal], LEVEL).places
    leader = next(iter(ranks.places))
    more = "–"
    if label != leader:
        percent = ranks.percent(label, leader)
        more = f"{interval_text(ranks.more(label, leader))} in regret"
        more = f"{interval_text(percent)} %" if math.isfinite(percent[1]) else more
    place, places = ranks.places[label], (ranks.places, equal)
    rank, at_equal_links = (
        _write_rank(group_places[label], len(group_places)) for group_places in places
    )
    best = runs[leader]
    return Ranking(group, run, place, rank, at_equal_links, leader, best, more)


def _write_rank(place: Place, number: int) -> str:
    """Writes a rank: "2nd to 4th of 11"."""
    ends = [write_ordinal(end) for end in dict.fromkeys(place[:2])]
    return f"{' to '.join(ends)} of {number}"


def write_ordinal(number: int) -> str:
    """Writes an ordinal: "1st", "12th"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def write_tail(run: Run) -> tuple[str, str]:
    """Returns the largest regret of the seeds, and the share that is far above the median."""
    far = float((run.regret > TAIL * np.median(run.regret)).mean())
    return f"{run.regret.max():,.0f}", f"{100 * far:.2g} %"


def write_lost(run: Run) -> str:
    """Writes in how many seeds an agent lost the best arm, with the Clopper-Pearson interval."""
    number, seeds = int(run.lost.sum()), len(run.lost)
    low, high = lost_interval(number, seeds, LEVEL)
    return f"{number} of {seeds} [{100 * low:.2g} %, {100 * high:.2g} %]"
