"""From a long table of ratings to a `Problem`: who is an agent, what is an arm, what is filled.

The table is counted once, into [agent, arm, level]; everything that is dropped on the way is
counted too, and told.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import xarray as xr
from scipy import sparse
from scipy.cluster.vq import ClusterError, kmeans2

from fmab_jax.core import tables
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import MAX_LEVELS, checked_levels
from fmab_jax.errors import array_of, choice, count, did_you_mean, real, refuse
from fmab_jax.files import checked_path, refuse_taken, whole_file
from fmab_jax.ratings import sources
from fmab_jax.ratings.sources import Column, Source, legible
from fmab_jax.resources import affordable

MAX_GROUPS = 10**4
# Ratings with which an arm counts half in an agent's taste: fewer ratings say little.
_HALF = 2
# Starts of the clustering, of which the best one counts, and the most steps of each.
_STARTS = 5
_STEPS = 50
_MOST_ROWS = 2**40


@dataclass(frozen=True, eq=False)
class ObservedRatings:
    """A problem made of observed ratings, with the names of what is in it and what was dropped.

    Attributes:
        problem: Agents, arms and the probability of every level; rewards are scaled to [0, 1].
        agent_labels: What the agents are called, in the order of the problem.
        arm_labels: What the arms are called, in the order of the problem.
        levels: The possible ratings, increasing, in rating points.
        counts: (agent, arm, level) numbers of ratings, before smoothing and filling.
        members: The group of each value of the column ``agent``, where ``groups`` was given; else
            None.
        rows: Rows of the table.
        dropped: Numbers of rows that were dropped, by reason.
        left_out: Numbers of agents and arms that were left out, by reason.
        filled: Pairs (agent, arm) of labels whose distribution is the arm's over all agents.
        notes: Further lines of the summary: what the options were.

    Example:
        >>> import pandas as pd
        >>> import fmab_jax as fmab
        >>> rated = pd.DataFrame(
        ...     {"who": [1, 1, 1, 2, 2, 2], "what": list("aabbab"), "stars": [5, 4, 1, 2, 5, 1]}
        ... )
        >>> found = fmab.ratings.from_table(rated, agent="who", arm="what", value="stars")
        >>> found.rows, found.points, found.named([0, 1, -1]).tolist()
        (6, 4.0, ['a', 'b', 'undecided'])
    """

    problem: Problem
    agent_labels: tuple[str, ...]
    arm_labels: tuple[str, ...]
    levels: tuple[float, ...]
    counts: xr.DataArray
    members: Mapping[str, str] | None
    rows: int
    dropped: Mapping[str, int]
    left_out: Mapping[str, int]
    filled: tuple[tuple[str, str], ...]
    notes: Mapping[str, str] = field(repr=False)

    @property
    def points(self) -> float:
        """Rating points of one unit of reward: the highest level minus the lowest."""
        return self.levels[-1] - self.levels[0]

    def named(self, arms: Any) -> np.ndarray:
        """Returns the labels of arms, such as those of a result's ``chosen_arm``.

        Args:
            arms: Numbers of arms, in any shape; -1, still exploring, is "undecided".

        Raises:
            ValueError: If a number is that of no arm.
        """
        most = len(self.arm_labels)
        allowed = f"numbers of arms in [-1, {most - 1}]"
        remedy = "give the chosen_arm of a result of this problem"
        places = array_of("arms", arms, tables.MAX_CELLS, allowed, remedy)
        if places.dtype.kind not in "iu" or np.any((places < -1) | (places >= most)):
            refuse("arms", arms, allowed, remedy)
        return np.array([*self.arm_labels, "undecided"], object)[places]

    def save(self, path: Any, overwrite: bool = False) -> Path:
        """Writes the problem as an NPZ file that `Problem.from_file` reads to an equal problem.

        The file also holds the labels and the counts, under ``agent_labels``, ``arm_labels`` and
        ``counts``.

        Args:
            path: A name that ends in .npz.
            overwrite: Whether an older file is replaced.

        Returns:
            The path.

        Raises:
            ValueError: If the name is taken, or ends otherwise.
        """
        file = checked_path("path", path)
        if file.suffix.lower() != ".npz":
            refuse("path", str(path), "a name that ends in .npz", "add the ending")
        refuse_taken(file, overwrite)
        assert self.problem.probabilities is not None
        shape = self.counts.shape
        with whole_file(file) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(
                stream,
                levels=np.array(self.levels),
                probabilities=np.broadcast_to(self.problem.probabilities, shape),
                agent_labels=np.array(self.agent_labels, str),
                arm_labels=np.array(self.arm_labels, str),
                counts=self.counts.values,
            )
        return file

    def lines(self) -> list[tuple[str, str]]:
        """Returns the summary as pairs of a head and what is to be said of it."""
        kept = self.rows - sum(self.dropped.values())
        cells = self.counts.sum("level").values
        found = [("source", self.notes["source"]), ("rows read", f"{self.rows:,}")]
        for reason, number in self.dropped.items():
            share = 100 * number / max(self.rows, 1)
            found.append((f"  dropped: {reason}", f"{number:,} ({share:.2g} %)"))
        found.append(("usable rows", f"{kept:,}"))
        for reason, number in self.left_out.items():
            found.append((f"  left out: {reason}", f"{number:,}"))
        counted = f"{int(self.counts.sum()):,}"
        if self.notes["split"]:
            counted += f"; a rating counts for each part of its {self.notes['split']}"
        found += [
            ("ratings counted", counted),
            ("agents", f"{len(self.agent_labels):,} {self.notes['agents']}"),
            ("arms", f"{len(self.arm_labels):,} of {self.notes['arms']}"),
            ("levels", ", ".join(f"{level:g}" for level in _ends(self.levels))),
            ("ratings in a cell", f"median {np.median(cells):,.6g}, fewest {cells.min():,}"),
            ("cells without data", f"{len(self.filled):,} of {cells.size:,}" + self._filling()),
            ("smoothing", self.notes["smoothing"]),
        ]
        return found + self._instance()

    def _filling(self) -> str:
        return ", filled with the arm's ratings by all agents" if self.filled else ""

    def _instance(self) -> list[tuple[str, str]]:
        """Says what is easy and what is hard about the problem, in rating points."""
        means = self.problem.means
        assert means is not None
        level = self.levels[0] + self.points * means.mean(axis=0)
        best = int(level.argmax())
        gaps = np.sort(level[best] - np.delete(level, best))
        own = np.broadcast_to(means, (self.problem.agents, len(level)))
        # Ties of an agent's own best arms count for it.
        other = own[:, best] < own.max(axis=1) - 1e-12
        return [
            ("best arm", f"{legible(self.arm_labels[best])}, mean {level[best]:.4g}"),
            ("gap to the second best", f"{gaps[0]:.3g} points ({gaps[0] / self.points:.3g} of 1)"),
            ("agents who like another best", f"{int(other.sum()):,} of {len(own):,}"),
        ]

    def __str__(self) -> str:
        lines = [(legible(head), legible(told)) for head, told in self.lines()]
        wide = max(len(head) for head, _ in lines) + 2
        return "\n".join(f"{head:<{wide}}{told}" for head, told in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left;white-space:pre'>{html.escape(legible(head))}</td>"
            f"<td style='text-align:left'>{html.escape(legible(told))}</td></tr>"
            for head, told in self.lines()
        )
        return f"<table>{rows}</table>"


def from_table(
    path: Any,
    agent: str | None = None,
    arm: str | None = None,
    value: str | None = None,
    *,
    layout: str | None = None,
    items: Any = None,
    users: Any = None,
    split: str | None = "|",
    groups: int | None = None,
    groups_seed: int = 0,
    levels: Any = None,
    most_arms: int | None = None,
    least_per_agent: int = 1,
    least_per_arm: int = 1,
    least_per_cell: int = 1,
    smoothing: float = 0.0,
    toward: str = "arm",
    fill: str | None = None,
    uneven_rows: str = "refuse",
) -> ObservedRatings:
    """Makes a problem of a long table of observed ratings, one a row.

    Agents are the values of a column, or groups of them; arms are the values of another column,
    such as items or genres. A cell is an agent with an arm. Its level probabilities are the
    frequencies of its ratings, smoothed on demand:

        P(level | agent, arm) = (n(agent, arm, level) + smoothing q(level)) / (n(agent, arm) +
        smoothing)

    where n counts ratings, and q is the arm's distribution over all agents, n(arm, level) / n(arm),
    or uniform over the levels.

    Rows are dropped, in this order, where they are uneven (on demand), where the rating is missing
    or no level, where agent or arm is missing, and, in a published layout, where the same user
    rates the same item once more further down. Then agents and arms with too few ratings are left
    out, then arms that are not among the most rated.

    With ``groups``, values of ``agent`` are clustered by taste: x(u, i) = the mean rating of u for
    arm i, minus the mean of all counted ratings of u, centred for each arm over the ratings by all
    u, times n / (n + 2), where n ratings of i are by u; so 0 where there are none. K-means
    (k-means++, best of 5 starts) makes the groups, the largest first; the same table and seed give
    the same groups.

    Args:
        path: A .csv (also .tsv, .dat, .data, .txt, each also with .gz behind) or .parquet file, or
            a pandas data frame.
        agent: Column of the agents; of the ratings, or of ``users``. A published layout's user, by
            default.
        arm: Column of the arms; of the ratings, or of ``items``. A published layout's item, by
            default.
        value: Column of the ratings; a published layout's own, by default.
        layout: Of the file, one of `LAYOUTS`; recognised where its name or its header says it.
        items: Table about what is rated, joined by the one column that it shares with the ratings;
            by default the layout's file in the same folder (movies.csv, movies.dat, u.item).
        users: Table about who rates, joined likewise (users.dat, u.user).
        split: Where it stands in an arm's label, the rating counts for each part; None for nowhere.
        groups: Number of groups of agents, 2 or more; None for one agent for each value.
        groups_seed: Of the clustering.
        levels: Possible ratings, increasing; by default all that occur.
        most_arms: Keep at most so many arms, those with the most ratings; None for all.
        least_per_agent: Fewest ratings of a value of ``agent``.
        least_per_arm: Fewest ratings of an arm.
        least_per_cell: With fewer ratings, a cell is one without data.
        smoothing: Ratings that are added to every cell, 0 or more.
        toward: What they are like: "arm" or "uniform".
        fill: What a cell without data becomes: "arm" for the arm's distribution over all agents,
            without smoothing; None refuses it.
        uneven_rows: What becomes of a row that has more or fewer cells than there are columns:
            "refuse" or "drop". Those that are dropped are counted. Empty lines are no rows.

    Returns:
        The problem, its labels and counts, and a summary of what was kept.

    Raises:
        ValueError: If the table cannot be read, lacks a column, or leaves a cell without data. A
            refusal names the line of a file, counted from 1 with the header. A data frame and a
            Parquet file have rows instead, counted from 1 without a header.

    Example:
        >>> import pandas as pd
        >>> import fmab_jax as fmab
        >>> rated = pd.DataFrame(
        ...     {"who": [1, 1, 1, 2, 2, 2], "what": list("aabbab"), "stars": [5, 4, 1, 2, 5, 1]}
        ... )
        >>> found = fmab.ratings.from_table(rated, agent="who", arm="what", value="stars")
        >>> found.levels, found.arm_labels
        ((1.0, 2.0, 4.0, 5.0), ('a', 'b'))
        >>> found.problem.probabilities[0, 0].tolist()  # of 1 with a
        [0.0, 0.0, 0.5, 0.5]
    """
    wanted = _Wanted(
        *(groups, groups_seed, most_arms, least_per_agent, least_per_arm, least_per_cell),
        *(smoothing, toward, fill, split, uneven_rows),
    ).checked()
    if layout is not None:
        known = sources.LAYOUTS
        choice("layout", layout, known, did_you_mean(layout, known, "leave it out for a plain CSV"))
    source = sources.find(path, layout)
    published = source.published
    agent = _column_name("agent", agent, published.user if published else None, source)
    arm = _column_name("arm", arm, published.item if published else None, source)
    value = _column_name("value", value, published.value if published else None, source)
    if value not in source.columns:
        sources.lacking("value", value, source.columns, source.shown)
    agents = _Side("agent", agent, "users", users, source)
    arms = _Side("arm", arm, "items", items, source)
    once = (published.user, published.item) if published else ()
    once = once if set(once) <= set(source.columns) else ()
    drop = wanted.uneven_rows == "drop"
    wide = len(source.columns)
    columns, uneven = sources.read(source, [agents.key, arms.key, value, *once], drop_uneven=drop)

    rows = _Rows(len(columns[value].codes))
    if uneven:
        rows.dropped[f"not {wide} cells"] = uneven
    given = None if levels is None else checked_levels(levels)
    found_levels, level_of = _levels(columns[value], given, source, value)
    level = rows.take(columns[value].codes, level_of.places, level_of.why)
    who = agents.labelled(columns[agents.key], None)
    what = arms.labelled(columns[arms.key], split)
    user = rows.take(columns[agents.key].codes, who.places, who.why)
    raw = rows.take(columns[arms.key].codes, what.places, what.why)
    if once:
        rows.keep_last(columns[once[0]], columns[once[1]])
    if not rows.kept.any():
        _refuse_empty(source)

    cells = _Cells.counted(user, raw, level, rows.kept, who.names, what, len(found_levels))
    left_out: dict[str, int] = {}
    cells = cells.with_enough(wanted, agent, arm, left_out)
    members = None
    if wanted.groups is not None:
        cells, members = cells.grouped(
            *(wanted.groups, wanted.groups_seed, found_levels, agent), source.shown
        )
    cells = cells.ordered(source.shown, grouped=members is not None)
    _refuse_few(cells, found_levels, source.shown, agent, arm)
    table, filled = _probabilities(cells, wanted, agent, arm)
    problem = Problem.ratings(found_levels, table)

    side = [each.told for each in (arms, agents) if each.told]
    notes = {
        "source": ", ".join(
            [source.shown + f" (layout {source.layout})" * bool(source.layout)] + side
        ),
        "agents": _told_agents(cells, members, agent, wanted),
        "arms": arm,
        "split": arm if what.split else "",
        "smoothing": wanted.told(),
    }
    labels = (tuple(cells.agents), tuple(cells.arms))
    return ObservedRatings(
        problem=problem,
        agent_labels=labels[0],
        arm_labels=labels[1],
        levels=found_levels,
        counts=xr.DataArray(
            cells.dense(),
            {"agent": list(labels[0]), "arm": list(labels[1]), "level": list(found_levels)},
            ("agent", "arm", "level"),
            "counts",
        ),
        members=members,
        rows=len(rows.kept) + uneven,
        dropped=rows.dropped,
        left_out=left_out,
        filled=tuple((cells.agents[i], cells.arms[k]) for i, k in filled),
        notes=notes,
    )


# --- what is asked for ---


class _Wanted(NamedTuple):
    """The options that are numbers or words, as `from_table` takes them."""

    groups: Any
    groups_seed: Any
    most_arms: Any
    least_per_agent: Any
    least_per_arm: Any
    least_per_cell: Any
    smoothing: Any
    toward: Any
    fill: Any
    split: Any
    uneven_rows: Any

    def checked(self) -> _Wanted:
        """Returns the options, each refused where it is out of its range."""
        changed: dict[str, Any] = {}
        if self.groups is not None:
            remedy = "give the number of groups, or None for an agent for each value"
            changed["groups"] = count("groups", self.groups, 2, MAX_GROUPS, remedy)
        remedy = "give a seed of the clustering"
        changed["groups_seed"] = count("groups_seed", self.groups_seed, 0, 2**63 - 1, remedy)
        if self.most_arms is not None:
            remedy = "give the number of arms to keep, or None for all"
            changed["most_arms"] = count("most_arms", self.most_arms, 2, 10**6, remedy)
        for name in ("least_per_agent", "least_per_arm", "least_per_cell"):
            remedy = "give the fewest ratings that are enough"
            changed[name] = count(name, getattr(self, name), 1, _MOST_ROWS, remedy)
        remedy = "give the number of ratings to add to every cell; 0 adds none"
        changed["smoothing"] = real("smoothing", self.smoothing, 0.0, 1e9, remedy)
        choice("toward", self.toward, ("arm", "uniform"), "choose what added ratings are like")
        if self.fill is not None:
            remedy = "None refuses cells without data"
            choice("fill", self.fill, ("arm",), remedy, "'arm' or None")
        choice("uneven_rows", self.uneven_rows, ("refuse", "drop"), "choose what becomes of them")
        if self.split is not None and not (isinstance(self.split, str) and self.split):
            refuse("split", self.split, "a text that separates parts, or None", "'|' is usual")
        return self._replace(**changed)

    def told(self) -> str:
        """Says the smoothing in words."""
        if not self.smoothing:
            return "none: plain frequencies"
        like = "like the arm's by all agents" if self.toward == "arm" else "uniform over the levels"
        number = f"{self.smoothing:g} rating" + "s" * (self.smoothing != 1)
        return f"{number} added to every cell, {like}"


def _column_name(field: str, given: Any, usual: str | None, source: Source) -> str:
    if given is None:
        if usual is None:
            allowed = f"the name of a column of {source.shown}: {sources.named(source.columns)}"
            refuse(field, None, allowed, "say which, or name the file's layout")
        return usual
    if not isinstance(given, str):
        refuse(field, given, "the name of a column, a text", "write it in quotes")
    return given


class _Labelled(NamedTuple):
    """What the labels of a column stand for.

    Attributes:
        names: The labels of agents or arms; with ``parts``, of their raw labels.
        places: [label] place in ``names``; -1 where there is none.
        why: [label] why there is none, a place in `_REASONS`.
        parts: For each of ``names`` the arms that it counts for, or None where it is one itself.
        split: Whether some name has several parts.
    """

    names: list[str]
    places: np.ndarray
    why: list[str]
    parts: list[tuple[str, ...]] | None = None
    split: bool = False


class _Side:
    """Agents or arms: the column that names them, in the ratings or in a table beside them.

    Attributes:
        key: Column of the ratings that leads to it.
        told: What is said of the table beside; "" without one.
    """

    def __init__(self, field: str, name: str, kind: str, given: Any, source: Source) -> None:
        self.field, self.name, self.kind = field, name, kind
        self.told, self._beside = "", None
        if name in source.columns:
            if given is not None:
                allowed = f"left out, since {source.shown} has {name!r} itself"
                refuse(kind, given, allowed, f"or name a column of the other table as the {field}")
            self.key = name
            return
        beside = sources.about(source, kind, given, kind)
        if beside is None:
            if kind == "items" and name in ("genres", "genre", "title", "category"):
                published = source.published
                where = published.items[0] if published and published.items else "movies.csv"
                remedy = f"it stands in another table, such as items={where!r}"
                refuse(field, name, f"a column of {source.shown}", remedy)
            sources.lacking(field, name, source.columns, source.shown)
        if name not in beside.named:
            columns = (*source.columns, *beside.named)
            sources.lacking(field, name, columns, f"{source.shown} and {beside.shown}")
        shared = [each for each in beside.columns if each in source.columns and each != name]
        if len(shared) != 1:
            told = " and ".join(legible(each)[:20] for each in shared[:4]) or "none"
            allowed = f"a table that shares one column with {source.shown}, not {told}"
            refuse(kind, beside.shown, allowed, "rename or drop columns")
        self.key, self._beside = shared[0], beside
        self.told = f"{self.name} from {beside.shown}"

    def labelled(self, column: Column, split: str | None) -> _Labelled:
        """Returns what the labels of the key column stand for.

        Args:
            column: The key column of the ratings.
            split: What separates parts, of arms.
        """
        raw, why = column.labels, [f"no {self.name}"] * (len(column.labels) + 1)
        if self._beside is not None:
            known = self._table()
            why = [f"{self.key} is not in {self._beside.shown}" for _ in raw] + [f"no {self.key}"]
            for i, label in enumerate(column.labels):
                if label in known and not known[label]:
                    why[i] = f"no {self.name}"
            raw = [known.get(label, "") for label in column.labels]
        parts = [sources.genres_of(label, split) for label in raw]
        names: dict[str, int] = {}
        kinds: list[tuple[str, ...]] = []
        places = np.full(len(raw) + 1, -1, np.int64)
        for i, (label, several) in enumerate(zip(raw, parts, strict=True)):
            if several:
                if label not in names:
                    names[label] = len(names)
                    kinds.append(several)
                places[i] = names[label]
            elif label:
                why[i] = f"no {self.name}"
        return _Labelled(list(names), places, why, kinds, any(len(each) > 1 for each in kinds))

    def _table(self) -> dict[str, str]:
        """Returns the column of the table beside by its key."""
        assert self._beside is not None
        known: dict[str, str] = {}
        for key, label in sources.read_small(self._beside, [self.key, self.name], self.kind):
            if known.setdefault(key, label) != label:
                told = f"{self._beside.shown}, {self.key} {key[:40]}"
                allowed = f"one {self.name} for each {self.key}"
                refuse(self.kind, told, allowed, "drop one of the two rows")
        return known


# --- rows ---


class _Rows:
    """Which rows are kept, and why the others are not.

    Attributes:
        kept: [row] whether it is.
        dropped: Numbers of rows, by reason.
    """

    def __init__(self, number: int) -> None:
        self.kept = np.ones(number, bool)
        self.dropped: dict[str, int] = {}

    def take(self, codes: np.ndarray, places: np.ndarray, why: Sequence[str]) -> np.ndarray:
        """Returns what each row's code stands for; rows without are dropped.

        Args:
            codes: [row] places of labels; -1, the last of ``places``, for none.
            places: [label] what it stands for, -1 for nothing.
            why: [label] why it stands for nothing.
        """
        found = places[codes]
        gone = np.flatnonzero(self.kept & (found < 0))
        numbers = np.bincount(codes[gone] % len(places), minlength=len(places))
        for label in np.flatnonzero(numbers):
            reason = why[int(label)]
            self.dropped[reason] = self.dropped.get(reason, 0) + int(numbers[label])
        self.kept[gone] = False
        return found

    def keep_last(self, user: Column, item: Column) -> None:
        """Drops all but the last rating of an item by a user; rows that lack either stay."""
        # A code of -1 means no label; its pair would be that of another user.
        rows = np.flatnonzero(self.kept & (user.codes >= 0) & (item.codes >= 0))
        pair = user.codes[rows].astype(np.int64) * len(item.labels) + item.codes[rows]
        # `np.unique` keeps the first of equal pairs: in the reversed table that is the last.
        _, first = np.unique(pair[::-1], return_index=True)
        if len(first) < len(rows):
            self.dropped["the same user rates the same item again below"] = len(rows) - len(first)
            self.kept[rows] = False
            self.kept[rows[len(rows) - 1 - first]] = True


def _levels(
    column: Column, given: tuple[float, ...] | None, source: Source, name: str
) -> tuple[tuple[float, ...], _Labelled]:
    """Returns the levels, and which of them each label is."""
    numbers = [sources.number_in(label) for label in column.labels]
    if None in numbers:
        code = numbers.index(None)
        text = column.labels[code]
        where = sources.place_of(source, name, text, int((column.codes == code).argmax()) + 1)
        remedy = "write decimals after a point" if "," in text else "mend it, or leave it empty"
        refuse("value", f"{source.shown}, {where}, {text[:30]!r}", "a number", remedy)
    values = np.array([*numbers, math.nan], np.float64) + 0.0
    if given is None:
        seen = np.unique(values[~np.isnan(values)])
        if not len(seen):
            _refuse_empty(source)
        if len(seen) > MAX_LEVELS or len(seen) < 2:
            allowed = f"a column with 2 to {MAX_LEVELS:,} different ratings"
            remedy = (
                "round the ratings" if len(seen) > 1 else "give levels=[...], all possible ones"
            )
            refuse("value", f"{len(seen):,} different ones", allowed, remedy)
        given = checked_levels(seen.tolist())
    place = {level: i for i, level in enumerate(given)}
    places = np.array([place.get(float(value), -1) for value in values], np.int64)
    why = ["no rating" if math.isnan(value) else "the rating is no level" for value in values]
    return given, _Labelled([], places, why)


def _refuse_empty(source: Source) -> NoReturn:
    remedy = "see how the columns are called, and what their cells hold"
    refuse("path", source.shown, "a table with ratings", f"no row is left: {remedy}")


# --- cells ---


@dataclass(frozen=True)
class _Cells:
    """Numbers of ratings by agent, arm and level; entries that are 0 are left out.

    Attributes:
        agents: Labels.
        arms: Labels.
        levels: How many there are.
        agent: [entry] places in ``agents``.
        arm: [entry] places in ``arms``.
        level: [entry] places of levels.
        number: [entry] of ratings, 1 or more.
        rated: [agent] rows of the table; a row that counts for several arms is one.
    """

    agents: list[str]
    arms: list[str]
    levels: int
    agent: np.ndarray
    arm: np.ndarray
    level: np.ndarray
    number: np.ndarray
    rated: np.ndarray

    @classmethod
    def counted(
        cls,
        user: np.ndarray,
        raw: np.ndarray,
        level: np.ndarray,
        kept: np.ndarray,
        names: list[str],
        what: _Labelled,
        levels: int,
    ) -> _Cells:
        """Counts rows; those whose raw arm has several parts count for each of them."""
        assert what.parts is not None
        user, raw, level = user[kept], raw[kept], level[kept]
        ones = np.ones(len(user), np.int64)
        shape = (len(names) * levels, len(what.names))
        rows = sparse.coo_array((ones, (user * levels + level, raw)), shape=shape).tocsr()
        arms: dict[str, int] = {}
        pairs = [
            (i, arms.setdefault(part, len(arms)))
            for i, each in enumerate(what.parts)
            for part in each
        ]
        part_of = sparse.coo_array(
            (np.ones(len(pairs), np.int64), tuple(np.array(pairs).T)), (len(what.names), len(arms))
        )
        found = (rows @ part_of.tocsr()).tocoo()
        who, own = np.divmod(found.coords[0].astype(np.int64), levels)
        rated = np.bincount(user, minlength=len(names))
        arm = found.coords[1].astype(np.int64)
        return cls(names, list(arms), levels, who, arm, own, found.data, rated)

    def dense(self) -> np.ndarray:
        """Returns [agent, arm, level] counts."""
        shape = (len(self.agents), len(self.arms), self.levels)
        if math.prod(shape) > tables.MAX_CELLS:
            told = " x ".join(f"{size:,}" for size in shape)
            allowed = f"at most {tables.MAX_CELLS:,} cells of agent, arm and level"
            refuse("agent", told, allowed, "use groups=10, or most_arms=100")
        table = np.zeros(shape, np.int64)
        np.add.at(table, (self.agent, self.arm, self.level), self.number)
        return table

    def chosen(self, agents: np.ndarray, arms: np.ndarray) -> _Cells:
        """Returns the cells of some agents and arms, in the order that is given."""
        to_agent = np.full(len(self.agents), -1)
        to_arm = np.full(len(self.arms), -1)
        to_agent[agents], to_arm[arms] = np.arange(len(agents)), np.arange(len(arms))
        who, what = to_agent[self.agent], to_arm[self.arm]
        kept = (who >= 0) & (what >= 0)
        return _Cells(
            [self.agents[i] for i in agents],
            [self.arms[k] for k in arms],
            self.levels,
            who[kept],
            what[kept],
            self.level[kept],
            self.number[kept],
            self.rated[agents],
        )

    def of_arms(self) -> np.ndarray:
        """Returns [arm] numbers of ratings."""
        return np.bincount(self.arm, self.number, len(self.arms)).astype(np.int64)

    def with_enough(
        self, wanted: _Wanted, agent: str, arm: str, left_out: dict[str, int]
    ) -> _Cells:
        """Leaves out agents, then arms, with too few ratings, then all but the most rated arms."""
        present = self.rated > 0
        enough = self.rated >= wanted.least_per_agent
        if gone := int((present & ~enough).sum()):
            left_out[f"{agent} with fewer than {wanted.least_per_agent:,} ratings"] = gone
        cells = self.chosen(np.flatnonzero(present & enough), np.arange(len(self.arms)))
        totals = cells.of_arms()
        enough = totals >= wanted.least_per_arm
        if gone := int(((totals > 0) & ~enough).sum()):
            left_out[f"{arm} with fewer than {wanted.least_per_arm:,} ratings"] = gone
        arms = np.flatnonzero((totals > 0) & enough)
        if wanted.most_arms is not None and len(arms) > wanted.most_arms:
            left_out[f"{arm} not among the {wanted.most_arms:,} most rated"] = (
                len(arms) - wanted.most_arms
            )
            # Ties go to the label that comes first, wherever it stands in the table.
            order = sorted(arms, key=lambda k: (-totals[k], cells.arms[k]))
            arms = np.array(order[: wanted.most_arms])
        cells = cells.chosen(np.arange(len(cells.agents)), arms)
        rated = np.bincount(cells.agent, minlength=len(cells.agents)) > 0
        if gone := int((~rated).sum()):
            left_out[f"{agent} with no rating of these arms"] = gone
        return cells.chosen(np.flatnonzero(rated), np.arange(len(arms)))

    def grouped(
        self, groups: int, seed: int, levels: Sequence[float], name: str, shown: str
    ) -> tuple[_Cells, dict[str, str]]:
        """Returns the cells of groups of agents, the largest first, and who is in which."""
        if len(self.agents) < groups:
            allowed = f"at most {len(self.agents):,}, the values of {name}"
            refuse("groups", groups, allowed, "use fewer groups")
        # In the order of labels, so that the order of rows changes nothing.
        cells = self.ordered(shown, grouped=False)
        place = clusters(cells.tastes(levels), groups, seed)
        sizes = np.bincount(place, minlength=groups)
        first = [int((place == g).argmax()) for g in range(groups)]
        order = sorted(range(groups), key=lambda g: (-sizes[g], first[g]))
        rank = np.empty(groups, np.int64)
        rank[order] = np.arange(groups)
        place = rank[place]
        names = [f"group {g + 1}" for g in range(groups)]
        members = {label: names[g] for label, g in zip(cells.agents, place, strict=True)}
        found = _Cells(
            names,
            cells.arms,
            cells.levels,
            place[cells.agent],
            cells.arm,
            cells.level,
            cells.number,
            np.bincount(place, cells.rated, groups).astype(np.int64),
        )
        return found, members

    def tastes(self, levels: Sequence[float]) -> np.ndarray:
        """Returns [agent, arm] by how much each likes it more than others do, 0 where unknown."""
        shape = (len(self.agents), len(self.arms))
        affordable("memory", 64.0 * shape[0] * shape[1], "use most_arms, or least_per_agent")
        points = (np.array(levels) - levels[0]) / (levels[-1] - levels[0])
        pair = self.agent * shape[1] + self.arm
        number = np.bincount(pair, self.number, shape[0] * shape[1]).reshape(shape)
        total = np.bincount(pair, self.number * points[self.level], shape[0] * shape[1])
        total = total.reshape(shape)
        own = total.sum(axis=1, keepdims=True) / number.sum(axis=1, keepdims=True)
        apart = np.where(number > 0, total / np.maximum(number, 1) - own, 0.0)
        usual = (number * apart).sum(axis=0) / np.maximum(number.sum(axis=0), 1)
        return np.where(number > 0, apart - usual, 0.0) * number / (number + _HALF)

    def ordered(self, shown: str, *, grouped: bool) -> _Cells:
        """Returns the cells with labels in order: as numbers if they are, else as texts."""
        agents = np.arange(len(self.agents))
        if not grouped:
            agents = _in_order(self.agents, shown, "agent")
        return self.chosen(agents, _in_order(self.arms, shown, "arm"))


def _in_order(labels: Sequence[str], shown: str, name: str) -> np.ndarray:
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place[each] for each in tables.numbered("path", shown, labels, name)], int)


def clusters(points: np.ndarray, groups: int, seed: int) -> np.ndarray:
    """Returns the cluster of each point, by k-means from several starts, the tightest of them.

    Args:
        points: [point, coordinate].
        groups: Number of clusters, none of which is empty.
        seed: Of the starts.

    Raises:
        ValueError: If there are fewer different points than clusters.
    """
    different = len(np.unique(points, axis=0))
    remedy = "use fewer groups, or more arms"
    if different < groups:
        refuse("groups", groups, f"at most {different:,}, the different tastes", remedy)
    best: tuple[float, np.ndarray] | None = None
    for start in range(_STARTS):
        try:
            place = _settled(points, groups, np.random.default_rng([seed, start]))
        except ClusterError:  # a cluster has lost all its points
            continue
        sizes = np.bincount(place, minlength=groups)
        if (sizes == 0).any():
            continue
        totals = np.stack([np.bincount(place, each, groups) for each in points.T], axis=1)
        apart = float(((points - (totals / sizes[:, None])[place]) ** 2).sum())
        # Results that differ only by rounding tie, and the first start wins.
        if best is None or apart < best[0] * (1 - 1e-9):
            best = apart, place
    if best is None:
        refuse("groups", groups, "a number of groups that all have members", remedy)
    return best[1]


def _settled(points: np.ndarray, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the cluster of each point once no point changes, or after the most steps."""
    centres, place = kmeans2(points, groups, 1, minit="++", missing="raise", rng=rng)
    for _ in range(_STEPS - 1):
        before = place
        centres, place = kmeans2(points, centres, 1, minit="matrix", missing="raise")
        if (place == before).all():
            break
    return np.asarray(place, np.int64)


# --- probabilities ---


def _refuse_few(cells: _Cells, levels: Sequence[float], shown: str, agent: str, arm: str) -> None:
    if not len(cells.agents):
        refuse("agent", agent, "a column with ratings", "lower least_per_agent")
    if len(cells.arms) < 2:
        told = cells.arms[0] if cells.arms else "none"
        refuse(
            "arm", arm, f"a column with at least 2 arms, not only {told[:40]!r}", "choose another"
        )


def _probabilities(
    cells: _Cells, wanted: _Wanted, agent: str, arm: str
) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Returns [agent, arm, level] probabilities, and which cells are filled."""
    counts = cells.dense().astype(np.float64)
    number = counts.sum(axis=2, keepdims=True)
    of_arm = counts.sum(axis=0)
    of_arm /= of_arm.sum(axis=1, keepdims=True)
    like = of_arm if wanted.toward == "arm" else np.full(counts.shape[2], 1 / counts.shape[2])
    lacks = number[:, :, 0] < wanted.least_per_cell
    places = [(int(i), int(k)) for i, k in np.argwhere(lacks)]
    if places and wanted.fill is None:
        i, k = places[0]
        few = "no rating"
        if wanted.least_per_cell > 1:
            few = f"fewer than {wanted.least_per_cell:,} ratings"
        names = legible(cells.agents[i])[:40], legible(cells.arms[k])[:40]
        first = f"{agent} {names[0]} with {arm} {names[1]}"
        allowed = f"'arm', since {len(places):,} of {lacks.size:,} cells have {few} ({first})"
        remedy = "or have fewer agents (groups=10) or fewer arms (most_arms=10)"
        refuse("fill", None, allowed, remedy)
    total = np.maximum(number + wanted.smoothing, 1e-300)
    table = (counts + wanted.smoothing * like) / total
    table[lacks] = np.broadcast_to(of_arm, counts.shape)[lacks]
    return table, places


def _told_agents(
    cells: _Cells, members: Mapping[str, str] | None, agent: str, wanted: _Wanted
) -> str:
    if members is None:
        return f"of {agent}"
    sizes = dict.fromkeys(cells.agents, 0)
    for group in members.values():
        sizes[group] += 1
    told = [f"{size:,}" for size in sizes.values()]
    listed = ", ".join(told if len(told) <= 12 else [*told[:11], "...", told[-1]])
    return f"groups of {agent} (k-means, seed {wanted.groups_seed}), of {listed}"


def _ends(values: Sequence[float]) -> list[Any]:
    return list(values) if len(values) <= 12 else [*values[:4], *values[-2:]]
