"""From a long table of ratings to a `Problem`: who is an agent, what is an arm, what is filled.

The table is counted once, into [agent, arm, level]; everything that is dropped on the way is
counted too, and told.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.core import tables
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import checked_levels
from fmab_jax.errors import array_of, choice, did_you_mean, refuse
from fmab_jax.files import checked_path, refuse_taken, whole_file
from fmab_jax.ratings import sources
from fmab_jax.ratings.cells import Cells
from fmab_jax.ratings.labels import Rows, Side, levels_of, refuse_empty
from fmab_jax.ratings.layouts import LAYOUTS, Source, legible
from fmab_jax.ratings.options import Options


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
        filling = ", filled with the arm's ratings by all agents" * bool(self.filled)
        # What is easy and what is hard about the problem, in rating points.
        means = self.problem.means
        assert means is not None
        level = self.levels[0] + self.points * means.mean(axis=0)
        best = int(level.argmax())
        gaps = np.sort(level[best] - np.delete(level, best))
        own = np.broadcast_to(means, (self.problem.agents, len(level)))
        # Ties of an agent's own best arms count for it.
        other = own[:, best] < own.max(axis=1) - 1e-12
        return [
            *found,
            ("ratings counted", counted),
            ("agents", f"{len(self.agent_labels):,} {self.notes['agents']}"),
            ("arms", f"{len(self.arm_labels):,} of {self.notes['arms']}"),
            ("levels", ", ".join(f"{level:g}" for level in _ends(self.levels))),
            ("ratings in a cell", f"median {np.median(cells):,.6g}, fewest {cells.min():,}"),
            ("cells without data", f"{len(self.filled):,} of {cells.size:,}{filling}"),
            ("smoothing", self.notes["smoothing"]),
            ("best arm", f"{legible(self.arm_labels[best])}, mean {level[best]:.4g}"),
            ("gap to the second best", f"{gaps[0]:.3g} points ({gaps[0] / self.points:.3g} of 1)"),
            ("agents who like another best", f"{int(other.sum()):,} of {len(own):,}"),
        ]

    def __str__(self) -> str:
        lines = [(legible(head), legible(text)) for head, text in self.lines()]
        wide = max(len(head) for head, _ in lines) + 2
        return "\n".join(f"{head:<{wide}}{text}" for head, text in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left;white-space:pre'>{html.escape(legible(head))}</td>"
            f"<td style='text-align:left'>{html.escape(legible(text))}</td></tr>"
            for head, text in self.lines()
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
    wanted = Options(
        *(groups, groups_seed, most_arms, least_per_agent, least_per_arm, least_per_cell),
        *(smoothing, toward, fill, split, uneven_rows),
    ).checked()
    if layout is not None:
        remedy = did_you_mean(layout, LAYOUTS, "leave it out for a plain CSV")
        choice("layout", layout, LAYOUTS, remedy)
    source = sources.find(path, layout)
    published = source.published
    usual = (published.user, published.item, published.value) if published else (None,) * 3
    given = {"agent": agent, "arm": arm, "value": value}
    agent, arm, value = (
        _column_name(field, name, own, source)
        for (field, name), own in zip(given.items(), usual, strict=True)
    )
    if value not in source.columns:
        sources.lacking("value", value, source.columns, source.shown)
    agents = Side("agent", agent, "users", users, source)
    arms = Side("arm", arm, "items", items, source)
    # In a published layout a user rates an item once.
    once = [name for name in usual[:2] if name in source.columns]
    once = once if len(once) == 2 else []
    drop, wide = wanted.uneven_rows == "drop", len(source.columns)
    columns, uneven = sources.read(source, [agents.key, arms.key, value, *once], drop_uneven=drop)

    rows = Rows(len(columns[value].codes))
    if uneven:
        rows.dropped[f"not {wide} cells"] = uneven
    stated = None if levels is None else checked_levels(levels)
    points, level_of = levels_of(columns[value], stated, source, value)
    who = agents.labelled(columns[agents.key], None)
    what = arms.labelled(columns[arms.key], split)
    level, user, item = (
        rows.take(columns[name].codes, each.places, each.why)
        for name, each in ((value, level_of), (agents.key, who), (arms.key, what))
    )
    if once:
        rows.keep_last(columns[once[0]], columns[once[1]])
    if not rows.kept.any():
        refuse_empty(source)

    cells = Cells.tallied(user, item, level, rows.kept, who.names, what, len(points))
    cells, left_out = cells.with_enough(wanted, agent, arm)
    members = None
    if wanted.groups is not None:
        cells, members = cells.grouped(wanted, points, agent, source.shown)
    cells = cells.ordered(source.shown, grouped=members is not None)
    cells.refuse_few(agent, arm)
    table, filled = cells.probabilities(wanted, agent, arm)
    layout_words = f" (layout {source.layout})" * bool(source.layout)
    notes = {
        "source": ", ".join([source.shown + layout_words, *filter(None, [arms.note, agents.note])]),
        "agents": _agents_words(cells, members, agent, wanted),
        "arms": arm,
        "split": arm if what.split else "",
        "smoothing": wanted.smoothing_words,
    }
    labels = {"agent": cells.agents, "arm": cells.arms, "level": list(points)}
    return ObservedRatings(
        problem=Problem.ratings(points, table),
        agent_labels=tuple(cells.agents),
        arm_labels=tuple(cells.arms),
        levels=points,
        counts=xr.DataArray(cells.dense(), labels, tuple(labels), "counts"),
        members=members,
        rows=len(rows.kept) + uneven,
        dropped=rows.dropped,
        left_out=left_out,
        filled=tuple((cells.agents[i], cells.arms[k]) for i, k in filled),
        notes=notes,
    )


def _column_name(field: str, given: Any, usual: str | None, source: Source) -> str:
    if given is None:
        if usual is None:
            allowed = f"the name of a column of {source.shown}: {sources.named(source.columns)}"
            refuse(field, None, allowed, "say which, or name the file's layout")
        return usual
    if not isinstance(given, str):
        refuse(field, given, "the name of a column, a text", "write it in quotes")
    return given


def _agents_words(
    cells: Cells, members: Mapping[str, str] | None, agent: str, wanted: Options
) -> str:
    """Says which groups of whom the agents are."""
    if members is None:
        return f"of {agent}"
    groups = list(members.values())
    sizes = [f"{groups.count(name):,}" for name in cells.agents]
    listed = ", ".join(sizes if len(sizes) <= 12 else [*sizes[:11], "...", sizes[-1]])
    return f"groups of {agent} (k-means, seed {wanted.groups_seed}), of {listed}"


def _ends(values: Sequence[float]) -> list[Any]:
    return list(values) if len(values) <= 12 else [*values[:4], *values[-2:]]
