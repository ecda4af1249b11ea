"""Who of several has the least regret, and which ranks the data leave open, pair by pair.

`least` says it in a record; `places` ranks those whose numbers of seeds differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fmab_jax.analysis import words
from fmab_jax.analysis.bands import fieller, student_quantile
from fmab_jax.analysis.costs import NOTHING
from fmab_jax.analysis.statements import UNSAID, Participant, Question, with_ends
from fmab_jax.errors import real, refuse


class Entrant(NamedTuple):
    """Who takes part in a comparison of several."""

    label: str
    trust: str  # who has to be trusted, in words
    leak: str  # what others are told of a reward, as `leak_text` writes it
    regret: np.ndarray  # [seed] at T; entrants share their first seeds
    view: str = ""  # by what is seen, whom that leak is about; "" where it is not said
    accountant: str | float = "pure"  # or the delta up to which the leak holds, in (0, 1)
    question: Question = UNSAID

    @property
    def participant(self) -> Participant:
        """Who takes part, with the mean of all its seeds."""
        own = self.leak, self.view, self.accountant, self.trust
        return Participant(self.label, len(self.regret), float(self.regret.mean()), *own)


class Behind(NamedTuple):
    """How much more regret one has than the best of several."""

    label: str
    # Over all its seeds, with the ends of its interval (Student t, at the level itself).
    mean: tuple[float, float, float]
    # Mean difference with the ends of its interval: paired, on the seeds that both have, and
    # simultaneous over all pairs that are compared (Bonferroni).
    more: tuple[float, float, float]
    # The same in per cent of the best one's mean (Fieller); NaN where it has no end.
    percent: tuple[float, float, float]
    seeds: int  # that both have
    beaten: bool  # whether anybody is surely better: the best one, or another


@dataclass(frozen=True, kw_only=True)
class Least:
    """Who of several has the least mean regret at T, by the differences of all pairs.

    Attributes:
        participants: Who takes part, the best first.
        absent: Who takes no part, by the reason why.
        question: What all were asked.
        level: Confidence level.
        together: How many intervals hold together (Bonferroni).
        about: What is compared, such as "At T = 10⁵".
        mean: Of the best one over all its seeds, with the ends of its interval (Student t, at the
            level itself).
        rest: The others beside the best one, in the order of places.
    """

    participants: tuple[Participant, ...]
    absent: Mapping[str, tuple[str, ...]]
    question: Question
    level: float
    together: int
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
    def entrants(self) -> int:
        """How many take part."""
        return len(self.participants)

    @property
    def sentence(self) -> str:
        """Says who has the least, over whom and how sure, under which trust, and who is absent."""
        missing = sum(len(labels) for labels in self.absent.values())
        among = f" of {self.entrants} of {self.entrants + missing} contestants," * bool(missing)
        text = f"{', '.join(filter(None, [self.about, self._took]))}:{among} "
        has = "may have" if self.alike else "has"
        text += f"{self.best} {has} the least regret, {self._own(self.best)}"
        for labels, words_ in (
            (self.alike, "cannot be told from it"),
            (self.between, "surely worse than another, if not than it"),
        ):
            owns = [f"{label}, {self._own(label)}" for label in labels]
            text += f"; {words_}: {listed(owns)}" * bool(owns)
        if self.next:
            text += f"; {self.behind} has {interval_text(self.more)} more"
            share = self.next.percent[0]
            of = f"{words.short(float(f'{share:.3g}'))} %, " * math.isfinite(share)
            text += f" ({of}{self.next.seeds} common seeds)"
        text += "."
        if len({takes(each) for each in self.participants}) > 1:
            told = [
                f"{', '.join(filter(None, [f'{each.label}: {each.trust}', each.view]))}, "
                f"ε: {each.leak}{_up_to(each.accountant) * each.bounded}"
                for each in self._named
            ]
            # The named ones may agree while others differ from them.
            apart = len({takes(each) for each in self._named}) > 1
            start = "They differ" if apart else "Others differ from them"
            text += f" {start} in trust or leak ({listed(told)})."
            rest = [each for each in self.participants if each not in self._named]
            text += f" Others leak {_leaks_of(rest)}." * bool(rest)
        for why, labels in self.absent.items():
            text += f" Not run, {why}: {listed(labels)}."
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
        if not first.view or len({takes(each) for each in self.participants}) > 1:
            return ""
        return f"by {whoever(first.view)}, {_leak_words(first)}"

    @property
    def _named(self) -> list[Participant]:
        """Whose trust and leak have to be said: the best, who is alike, and who is next."""
        labels, best = {self.best, self.behind, *self.alike}, self.participants[0]
        # Equal trust with another leak is another question.
        return [
            each
            for each in self.participants
            if each.label in labels or (each.trust == best.trust and takes(each) != takes(best))
        ]


def takes(who: Participant) -> tuple[str, ...]:
    """Returns what has to be alike in a fair comparison: view (or trust), accountant and leak."""
    return who.view or who.trust, str(who.accountant), who.leak


def whoever(view: str) -> str:
    """Names whom a leak is about by what is seen: "whoever reads single messages"."""
    return f"whoever {'reads' if view.endswith('messages') else 'sees'} {view}"


def listed(labels: Sequence[str]) -> str:
    """Lists labels, which have commas of their own."""
    return " / ".join(labels)


def _leak_words(who: Participant) -> str:
    """Writes a leak: "pure ε = 1", "ε = 1 up to δ = 10⁻⁶", "no bound"."""
    pure = "pure " * (who.accountant == "pure")
    return f"{pure}ε = {who.leak}{_up_to(who.accountant)}" if who.bounded else who.leak


def _up_to(accountant: str | float) -> str:
    """Writes up to which delta a leak holds; "" for pure."""
    return "" if accountant == "pure" else f" up to δ = {words.written(float(accountant))}"


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

    ``about`` is what is compared: horizon, problem, and what else all share. Nobody is left out
    silently: ``absent`` says who takes no part, by the reason why. ``level`` is of all intervals
    together. If they are ``unlike``, entrants may differ in view, accountant or leak (or in trust,
    where no view is given); the sentence then says so.
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
    """The differences of each two of several contestants, on the seeds that both have."""

    def __init__(self, entrants: Sequence[Entrant], level: float) -> None:
        self.entrants = entrants
        pairs = list(combinations(range(len(entrants)), 2))
        self.together = max(1, len(pairs))
        # Of each interval (Student t), such that all hold together (Bonferroni).
        self.level = 1 - (1 - level) / self.together
        # How many are surely better than each, and how many surely worse.
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
        means, number = (float(mine.mean()), float(theirs.mean())), len(theirs)
        (var_one, between), (_, var_two) = (np.cov(mine, theirs) / number).tolist()
        critical = student_quantile(number - 1, self.level)
        low, high = fieller(*means, var_one, var_two, between, critical)
        middle = means[0] / means[1] if means[1] else math.nan
        return 100 * (middle - 1), 100 * (low - 1), 100 * (high - 1)

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
    """Which ranks the data leave open to one of several contestants."""

    first: int  # the best of them: 1, and one more for each who is surely better
    last: int  # the worst: the number of contestants, and one less for each who is surely worse
    seeds: int  # that it has

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

    Arguments are as in `least`. The best rank is first; those that share a range are in the order
    given.
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
        remedy = "complete their runs, or say why they are absent"
        refuse("entrants", lost, "of finite regret", remedy)
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
    terms = sorted({takes(each.participant) for each in entrants})
    if len(terms) > 1 and not unlike:
        remedy = "compare those of one trust and leak, or pass unlike=True"
        refuse("entrants", terms, "alike in whom they trust and what they leak", remedy)
    return level


def interval_text(numbers: tuple[float, float, float]) -> str:
    """Writes a number with its interval: "12.3 [11.9, 12.7]"."""
    return " ".join(with_ends(*numbers))


def mean_with_ends(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Returns the mean over seeds, at least two, with the ends of its interval (Student t)."""
    middle = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(len(values) - 1, level) * error
    return middle, middle - half, middle + half
