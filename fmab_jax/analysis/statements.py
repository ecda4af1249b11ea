"""What a sentence about regret has to say besides: what was told, to whom, and what was sent.

A number of regret means little without what it took. `cost_of` reads that from a result; `costs`
writes it of two runs that are compared. `least` says who of several has the least regret, who took
no part in that, and whom they trusted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import known
from fmab_jax.analysis import words
from fmab_jax.analysis.bands import student_quantile
from fmab_jax.errors import real, refuse

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
    """

    leak: float = math.nan
    view: str = ""
    links: float = math.nan


def cost_of(data: xr.Dataset) -> Cost:
    """Returns what a result of one configuration took, as far as it says so.

    Args:
        data: From `simulate`, or one configuration of a sweep; a summary as well.
    """
    return Cost(*_leak(data), _links(data))


def _leak(data: xr.Dataset) -> tuple[float, str]:
    """Returns the largest epsilon of what others are told, and what they see."""
    said: Any = data.attrs.get("epsilon_message", math.nan)
    if "epsilon_message" in data.coords and not data.coords["epsilon_message"].ndim:
        said = data.coords["epsilon_message"].values.item()
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
        leak = math.inf if said == "none" else _number(said)
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
    rows = json.loads(data.attrs.get("ledger") or "[]")
    labels = {str(name): each.values.item() for name, each in data.coords.items() if not each.ndim}
    if len({row.get("title", "") for row in rows}) > 1:
        owner = known().get(str(labels.get("algorithm", "")))
        rows = [row for row in rows if owner and row["title"] == (owner.title or owner.name)]
    about = [(row, _about(row.get("where", ""), labels)) for row in rows]
    if any(own is None for _, own in about):
        return []
    return [row for row, own in about if own]


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
    if not name or "priced" not in data:
        return math.nan
    last = data[name].isel(time=-1)
    if "seed" in last.dims:
        seeds = int(data["seeds"]) if "seeds" in data else last.sizes["seed"]
        last = last.isel(seed=slice(seeds)).mean("seed")
    priced = data.priced.values | (data.side.values == "server")
    return float(np.asarray(last.values)[priced].sum())


def costs(first: Cost, second: Cost) -> str:
    """Writes what two runs took, such as "leak ε = 6 and 30, links 38.1 and 190".

    What is not known of both is left out.
    """
    parts = []
    if first.view and second.view:
        leaks = [_leak_said(each) for each in (first, second)]
        if first.view != second.view:
            seen = (first.view, second.view)
            leaks = [
                text if view == NOTHING else f"{text} ({view})"
                for text, view in zip(leaks, seen, strict=True)
            ]
        parts.append(f"leak {_both(leaks)}")
    if math.isfinite(first.links) and math.isfinite(second.links):
        parts.append(f"links {_both([words.short(each.links) for each in (first, second)])}")
    return ", ".join(parts)


def leak_text(cost: Cost) -> str:
    """Writes a leak for a cell of a table: "50", "no bound", "nothing"; "" for unknown."""
    if cost.view == NOTHING:
        return "nothing"
    if math.isnan(cost.leak):
        return ""
    return "no bound" if math.isinf(cost.leak) else f"{cost.leak:.4g}"


def leaks_text(pair: tuple[Cost, Cost]) -> str:
    """Writes two leaks for a cell of a table, "6 and 30"; "" where one is not known."""
    texts = [leak_text(each) for each in pair]
    return " and ".join(texts) if all(texts) else ""


def _leak_said(cost: Cost) -> str:
    bounded = cost.view != NOTHING and math.isfinite(cost.leak)
    return f"ε = {leak_text(cost)}" if bounded else leak_text(cost)


def _both(texts: Sequence[str]) -> str:
    one, other = texts
    if one == other:
        return f"{one} each"
    return f"{one} and {other.removeprefix('ε = ') if one.startswith('ε') else other}"


class Entrant(NamedTuple):
    """Who takes part in a comparison of several.

    Attributes:
        label: Its name.
        trust: Who has to be trusted, in words.
        leak: What others are told of a reward, as `leak_text` writes it.
        regret: [seed] regret at T; entrants share their first seeds.
        view: What that leak is told to, such as "single messages"; "" where it is not said.
        accountant: "pure", or "δ = 1e-06" where epsilon holds up to delta.
    """

    label: str
    trust: str
    leak: str
    regret: np.ndarray
    view: str = ""
    accountant: str = "pure"

    @property
    def takes(self) -> tuple[str, str, str, str]:
        """Trust, view, accountant and leak: what has to be alike in a fair comparison."""
        return self.trust, self.view, self.accountant, self.leak


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
        unlike: Whether entrants may differ in trust, view, accountant or leak.

    Returns:
        The best rank first; those that share a range are in the order given.

    Raises:
        ValueError: As `least`, or if two have one label.
    """
    level = _checked(entrants, level, unlike)
    labels = [each.label for each in entrants]
    if twice := sorted({each for each in labels if labels.count(each) > 1}):
        refuse("entrants", twice, "of labels of their own", "name each once")
    pairs = list(combinations(range(len(entrants)), 2))
    at = 1 - (1 - level) / max(1, len(pairs))
    better, worse = [0] * len(entrants), [0] * len(entrants)
    for one, other in pairs:
        _, low, high = _difference(entrants[one], entrants[other], at)
        if low > 0 or high < 0:
            winner, loser = (other, one) if low > 0 else (one, other)
            better[loser] += 1
            worse[winner] += 1
    found = {
        each.label: Place(1 + better[i], len(entrants) - worse[i], len(each.regret))
        for i, each in enumerate(entrants)
    }
    return dict(sorted(found.items(), key=lambda item: item[1][:2]))


def _difference(one: Entrant, other: Entrant, level: float) -> tuple[float, float, float]:
    """Returns how much more regret one has than another, seed by seed, with its interval."""
    seeds = min(len(one.regret), len(other.regret))
    return _mean(one.regret[:seeds] - other.regret[:seeds], level)


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
    takes = sorted({each.takes for each in entrants})
    if len(takes) > 1 and not unlike:
        remedy = "compare those of one trust and leak, or pass unlike=True"
        refuse("entrants", takes, "alike in whom they trust and what they leak", remedy)
    return level


class Least(NamedTuple):
    """Who of several has the least mean regret at T.

    Attributes:
        about: What is compared, such as "At ε = 1 of what others are told".
        best: Who has the smallest mean.
        mean: Its mean, with the ends of its interval (Student t, at the level itself).
        alike: Who cannot be told from it.
        behind: Who is next among those that can; "" for nobody.
        more: How much more that one has, with its interval: paired, seed by seed, and simultaneous
            over all that are compared (Bonferroni).
        seeds: How many seeds all have: the comparison is over these.
        most: How many some of them have.
        takes: Trust and leak, by label, of those that the sentence names, and of those that trust
            as the best one does and leak otherwise.
        absent: Who took no part, by the reason why.
        entrants: How many took part.
    """

    about: str
    best: str
    mean: tuple[float, float, float]
    alike: tuple[str, ...]
    behind: str
    more: tuple[float, float, float]
    seeds: int
    most: int
    takes: dict[str, tuple[str, str]]
    absent: dict[str, tuple[str, ...]]
    entrants: int

    @property
    def sentence(self) -> str:
        """Says who has the least, over whom and how sure, under which trust, and who is absent."""
        missing = sum(len(labels) for labels in self.absent.values())
        among = f" of {self.entrants} of {self.entrants + missing} contestants," * bool(missing)
        text = f"{self.about}:{among} {self.best} has the smallest mean, {_interval(self.mean)}"
        if self.alike:
            text += f"; cannot be told from it: {_listed(self.alike)}"
        if self.behind:
            text += f"; {self.behind} has {_interval(self.more)} more"
            if self.mean[0]:
                share = 100 * self.more[0] / self.mean[0]
                text += f" ({words.short(float(f'{share:.3g}'))} %)"
        fewer = self.most > self.seeds
        text += f" ({words.whole(self.seeds)} seeds{', those that all have' * fewer})."
        if len(set(self.takes.values())) > 1:
            told = _listed(
                [f"{who}: {trust}, ε: {leak}" for who, (trust, leak) in self.takes.items()]
            )
            text += f" They differ in trust or leak ({told})."
        for why, labels in self.absent.items():
            text += f" Not run, {why}: {_listed(labels)}."
        return text


def least(
    about: str,
    entrants: Sequence[Entrant],
    absent: Mapping[str, Sequence[str]],
    level: float = 0.95,
    *,
    unlike: bool = False,
) -> Least:
    """Returns who of several has the least mean regret.

    Args:
        about: What is compared: horizon, leak, problem.
        entrants: Who takes part.
        absent: Who does not, by the reason why; nobody is left out silently.
        level: Of the intervals, in (0, 1).
        unlike: Whether entrants may differ in trust or leak; the sentence then says so.

    Raises:
        ValueError: If nobody takes part, one has fewer than two seeds, or trust or leak are unlike
            and that is not asked for.
    """
    level = _checked(entrants, level, unlike)
    seeds = min(len(each.regret) for each in entrants)
    order = sorted(entrants, key=lambda each: each.regret[:seeds].mean())
    first, rest = order[0], order[1:]
    at = 1 - (1 - level) / max(1, len(rest))
    base = first.regret[:seeds]
    more = {each.label: _mean(each.regret[:seeds] - base, at) for each in rest}
    alike = tuple(label for label, found in more.items() if found[1] <= 0)
    behind = next((label for label, found in more.items() if found[1] > 0), "")
    named = {first.label, behind, *alike}
    # Of one trust, those with another leak answer another question.
    mine = (first.trust, first.leak)
    named |= {each.label for each in rest if each.trust == mine[0] and each.leak != mine[1]}
    return Least(
        about,
        first.label,
        _mean(first.regret[:seeds], level),
        alike,
        behind,
        more.get(behind, (math.nan,) * 3),
        seeds,
        max(len(each.regret) for each in entrants),
        {each.label: (each.trust, each.leak) for each in order if each.label in named},
        {why: tuple(labels) for why, labels in absent.items() if labels},
        len(entrants),
    )


def _mean(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Returns a mean with its interval (Student t)."""
    middle = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(len(values) - 1, level) * error
    return middle, middle - half, middle + half


def _interval(found: tuple[float, float, float]) -> str:
    middle, low, high = found
    return f"{middle:,.0f} [{low:,.0f}, {high:,.0f}]"


def _listed(labels: Sequence[str]) -> str:
    # Labels have commas of their own.
    return " / ".join(labels)
