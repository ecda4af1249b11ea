"""Observed ratings as problems: a long table of ratings becomes a `Problem` of levels.

pandas reads the table, and this module checks it. docs/ratings.md and the summary of every table
list the assumptions and the dropped rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.cluster.vq import ClusterError, kmeans2

from fmab_jax.errors import array_of, choice, count, describe_error, did_you_mean, real, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.means_files import MAX_CELLS
from fmab_jax.parts.rewards import checked_levels
from fmab_jax.records.problem import Problem

__all__ = ["ObservedRatings", "from_table"]

# Texts of missing ratings.
_MISSING = ("na", "n/a", "nan", "null", "none", "-")
# From here on floats do not tell whole numbers apart, by bytes of a float.
_LARGEST_WHOLE = {2: 2.0**11, 4: 2.0**24, 8: 2.0**53}
# MovieLens's text for an unknown genre.
_NO_GENRE = "(no genres listed)"
# An arm with so many ratings counts half in an agent's taste; fewer are unreliable.
_HALF_WEIGHT_COUNT = 2
# Starts of the clustering, whose best result counts, and steps of each.
_STARTS = 5
_STEPS = 50


@dataclass(frozen=True, eq=False, repr=False)
class ObservedRatings:
    """A problem from observed ratings, with its labels, counts and dropped rows.

    Attributes:
        problem: Agents, arms and the probability of every level; rewards are scaled to [0, 1].
        agent_labels: Labels of the agents, in the order of the problem.
        arm_labels: Labels of the arms, in the order of the problem.
        levels: The possible ratings, increasing, in rating points.
        counts: (agent, arm, level) numbers of ratings, before smoothing and filling.
        members: The group of each value of the column ``agent``, where ``groups`` was given; else
            None.
        rows: Rows of the table.
        dropped: Numbers of rows that were dropped, by reason.
        left_out: Numbers of agents and arms that were left out, by reason.
        filled: Pairs (agent, arm) of labels whose distribution is the arm's over all agents.
        notes: Lines of the summary about the options.

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
    notes: Mapping[str, str]

    @property
    def points(self) -> float:
        """Rating points of one unit of reward: the highest level minus the lowest."""
        return self.levels[-1] - self.levels[0]

    def named(self, arms: np.typing.ArrayLike) -> np.ndarray:
        """Returns the labels of arms, such as those of a result's ``chosen_arm``.

        Args:
            arms: Numbers of arms, in any shape; -1, still exploring, is "undecided".

        Raises:
            ValueError: If a number is that of no arm.
        """
        most = len(self.arm_labels)
        allowed = f"numbers of arms in [-1, {most - 1}]"
        remedy = "give the chosen_arm of a result of this problem"
        places = array_of("arms", arms, MAX_CELLS, allowed, remedy)
        if places.dtype.kind not in "iu" or np.any((places < -1) | (places >= most)):
            refuse("arms", arms, allowed, remedy)
        return np.array([*self.arm_labels, "undecided"], object)[places]

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Writes the problem as an NPZ file that `Problem` reads to an equal problem.

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
        file = check_path("path", path)
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
        """Returns the lines of the summary as pairs (head, text)."""
        dropped = [
            (f"  dropped: {reason}", f"{number:,} ({100 * number / self.rows:.2g} %)")
            for reason, number in self.dropped.items()
        ]
        left_out = [(f"  left out: {why}", f"{number:,}") for why, number in self.left_out.items()]
        filling = ", filled with the arm's ratings by all agents" * bool(self.filled)
        ends = [*self.levels[:4], *self.levels[-2:]] if len(self.levels) > 12 else self.levels
        cells = self.counts.sum("level").values
        return [
            ("source", self.notes["source"]),
            ("rows read", f"{self.rows:,}"),
            *dropped,
            ("usable rows", f"{self.rows - sum(self.dropped.values()):,}"),
            *left_out,
            ("ratings counted", f"{int(cells.sum()):,}{self.notes['split']}"),
            ("agents", f"{len(self.agent_labels):,} {self.notes['agents']}"),
            ("arms", f"{len(self.arm_labels):,} of {self.notes['arms']}"),
            ("levels", ", ".join(f"{level:g}" for level in ends)),
            ("ratings in a cell", f"median {np.median(cells):,.6g}, fewest {cells.min():,}"),
            ("cells without data", f"{len(self.filled):,} of {cells.size:,}{filling}"),
            ("smoothing", self.notes["smoothing"]),
            *self._describe_difficulty(),
        ]

    def _describe_difficulty(self) -> list[tuple[str, str]]:
        """Returns lines about the best arm, in rating points."""
        assert self.problem.means is not None
        level = self.levels[0] + self.points * self.problem.means.mean(axis=0)
        second, best = np.argsort(level, kind="stable")[-2:]
        gap = level[best] - level[second]
        by_agent = np.broadcast_to(self.problem.means, (self.problem.agents, len(level)))
        # An agent with tied best arms likes the best arm too.
        prefers_other = int((by_agent[:, best] < by_agent.max(axis=1) - 1e-12).sum())
        return [
            ("best arm", f"{self.arm_labels[best]}, mean {level[best]:.4g}"),
            ("gap to the second best", f"{gap:.3g} points ({gap / self.points:.3g} of 1)"),
            ("agents who like another best", f"{prefers_other:,} of {len(by_agent):,}"),
        ]

    def __str__(self) -> str:
        lines = self.lines()
        width = max(len(head) for head, _ in lines) + 2
        return "\n".join(f"{head:<{width}}{text}" for head, text in lines)

    __repr__ = __str__


def from_table(
    path: str | os.PathLike[str] | pd.DataFrame,
    agent: str,
    arm: str,
    value: str = "rating",
    *,
    split: str | None = "|",
    groups: int | None = None,
    groups_seed: int = 0,
    levels: Sequence[float] | None = None,
    most_arms: int | None = None,
    least_per_agent: int = 1,
    least_per_arm: int = 1,
    smoothing: float = 0.0,
    fill: str | None = None,
) -> ObservedRatings:
    """Builds a problem from a long table of observed ratings, one per row.

    Agents are the values of a column, or groups of them; arms are the values of another column,
    such as items or genres. A cell is an agent with an arm. Its level probabilities are the
    frequencies of its ratings, smoothed on demand:

        P(level | agent, arm) = (n(agent, arm, level) + smoothing q(level)) / (n(agent, arm) +
        smoothing)

    where n counts ratings, and q is the arm's distribution over all agents, n(arm, level) / n(arm).

    Rows are dropped, in this order, where the rating is missing or no level, and where agent or arm
    is missing. Then agents and arms with too few ratings are left out, then arms that are not among
    the most rated.

    With ``groups``, values of ``agent`` are clustered by taste: x(u, i) = the mean rating of u for
    arm i, minus the mean of all counted ratings of u, centred for each arm over the ratings by all
    u, times n / (n + 2), where n ratings of i are by u; so 0 where there are none. K-means
    (k-means++, best of 5 starts) makes the groups, the largest first; the same table and seed give
    the same groups.

    Args:
        path: A pandas data frame, or a file that pandas reads: .parquet, tabs in .tsv, else CSV in
            UTF-8 with a header; also packed, such as .csv.gz.
        agent: Column of the agents.
        arm: Column of the arms; `pandas.merge` joins one of another table.
        value: Column of the ratings.
        split: Separator in an arm's label; the rating counts for each part. None for no split.
        groups: Number of groups of agents, 2 or more; None for one agent for each value.
        groups_seed: Seed of the clustering.
        levels: Possible ratings, increasing; by default all that occur.
        most_arms: Keep at most so many arms, those with the most ratings; None for all.
        least_per_agent: Fewest ratings of a value of ``agent``.
        least_per_arm: Fewest ratings of an arm.
        smoothing: Number of ratings that are added to every cell, 0 or more.
        fill: How to fill a cell without data: "arm" for the arm's distribution over all agents,
            without smoothing; None refuses it.

    Returns:
        The problem, its labels and counts, and a summary.

    Raises:
        ValueError: If the table cannot be read, lacks a column, or leaves a cell without data. Rows
            are counted from 1, without the header.

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
    if groups is not None:
        groups = count("groups", groups, 2, 10**4, "leave it out for an agent for each value")
    if most_arms is not None:
        most_arms = count("most_arms", most_arms, 2, 10**6, "leave it out for all")
    groups_seed = count("groups_seed", groups_seed, 0, 2**63 - 1, "give a seed of the clustering")
    if fill is not None:
        choice("fill", fill, ("arm",), "leave it out to refuse cells without data")
    if split is not None and not (isinstance(split, str) and split):
        refuse("split", split, "a text that separates parts, or none", "'|' is usual")
    remedy = "give the ratings to add to every cell, or 0"
    smoothing = real("smoothing", smoothing, 0.0, 1e9, remedy)
    least = {
        name: count(name, number, 1, 2**40, "give the fewest ratings that are enough")
        for name, number in (("agent", least_per_agent), ("arm", least_per_arm))
    }
    points = None if levels is None else checked_levels(levels)

    names = {"agent": agent, "arm": arm, "value": value}
    source, table = _read_table(path, names)
    rows, points, arms_of, dropped = _select_rows(source, table, names, points, split)
    counts, left_out = _count_ratings(rows, arms_of, names, least, most_arms)
    agents, arms = _order_labels(counts["agent"]), _order_labels(counts["arm"])
    members, agent_text = None, f"of {agent}"
    if groups is not None:
        place = _cluster(_estimate_tastes(counts, agents, arms, points), groups, groups_seed)
        members = {label: f"group {g + 1}" for label, g in zip(agents, place, strict=True)}
        counts["agent"] = counts["agent"].map(members)
        agents = [f"group {g + 1}" for g in range(groups)]
        sizes = ", ".join(map(str, np.bincount(place)[:12])) + ", ..." * (groups > 12)
        agent_text = f"groups of {agent} (k-means, seed {groups_seed}), of {sizes}"
    cells = _count_cells(counts, agents, arms, points)
    lacks = cells.sum("level") == 0
    filled = tuple((agents[i], arms[k]) for i, k in np.argwhere(lacks.values))
    if filled and fill is None:
        place_text = f"{agent} {filled[0][0]} with {arm} {filled[0][1]}"
        allowed = f"'arm', since {len(filled):,} of {lacks.size:,} cells have no rating"
        remedy = "or have fewer agents (groups) or fewer arms (most_arms)"
        refuse("fill", None, f"{allowed} ({place_text})", remedy)
    added = f"{smoothing:g} rating{'s' * (smoothing != 1)} added to every cell"
    has_parts = any(len(parts) > 1 for parts in arms_of.values())
    split_text = f"; a rating counts for each part of its {arm}" * has_parts
    return ObservedRatings(
        problem=Problem.ratings(points, _estimate_probabilities(cells, lacks, smoothing)),
        agent_labels=tuple(agents),
        arm_labels=tuple(arms),
        levels=points,
        counts=cells,
        members=members,
        rows=len(table),
        dropped=dropped,
        left_out=left_out,
        filled=filled,
        notes={
            "source": source,
            "agents": agent_text,
            "arms": arm,
            "split": split_text,
            "smoothing": f"{added}, like the arm's by all agents",
        },
    )


def _order_labels(labels: pd.Series) -> list[str]:
    """Returns labels in numerical order if all are whole numbers, else in that of texts."""
    values = labels.unique().tolist()
    whole = all(re.fullmatch("[0-9]{1,18}", label) for label in values)
    return sorted(values, key=int) if whole else sorted(values)


# --- rows and counts ---


def _read_table(source: object, names: Mapping[str, object]) -> tuple[str, pd.DataFrame]:
    """Returns the name of a table, and its columns agent, arm and value as texts.

    Texts are stripped, and empty ones are missing.
    """
    name, frame = "a data frame", source
    if not isinstance(source, pd.DataFrame):
        file = check_path("path", source)
        if not file.is_file():
            refuse("path", str(file), "a readable file", "check the path")
        name, frame = file.name, _read_file(file, names.values())
    assert isinstance(frame, pd.DataFrame)
    columns = [str(column).strip() for column in frame.columns]
    cells = {}
    for option, label in names.items():
        if not isinstance(label, str) or columns.count(label) != 1:
            text = ", ".join(column[:20] for column in columns[:12]) + ", ..." * (len(columns) > 12)
            remedy = did_you_mean(label, columns, "give the name of one, which no other has")
            refuse(option, label, f"a column of {name}: {text}", remedy)
        column = frame.iloc[:, columns.index(label)]
        is_float = pd.api.types.is_float_dtype(column)
        if is_float and (column.abs() >= _LARGEST_WHOLE[column.dtype.itemsize]).any():
            allowed = "a column of texts or whole numbers: large floats stand for several of them"
            refuse(option, label, allowed, "read the table with dtype=str")
        # In a column with gaps 7.0 is agent 7.
        texts = column.convert_dtypes().astype("string")
        cells[option] = texts.str.strip().replace("", pd.NA)
    return name, pd.DataFrame(cells).reset_index(drop=True)


def _read_file(file: Path, names: Collection[object]) -> pd.DataFrame:
    """Returns a file's content; columns with other names, such as a time, are not kept as texts."""
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    try:
        if ending == ".parquet":
            # Nullable types keep whole numbers whole where cells are missing.
            return pd.read_parquet(file, dtype_backend="numpy_nullable")
        form: dict[str, Any] = {"sep": "\t" if ending == ".tsv" else ",", "encoding": "utf-8-sig"}
        form |= {"keep_default_na": False, "low_memory": False}
        # pandas would rename the second column of one name.
        head = pd.read_csv(file, header=None, nrows=1, dtype=str, **form).iloc[0].str.strip()
        texts = {place: str for place, name in enumerate(head) if name in names}
        frame = pd.read_csv(file, header=0, names=range(len(head)), dtype=texts, **form)
        if not isinstance(frame.index, pd.RangeIndex):
            raise ValueError("rows have more cells than the header")
        return frame.set_axis(head, axis=1)
    except Exception as error:  # pandas and pyarrow report damaged files by many types
        allowed = "a table that pandas reads: CSV in UTF-8, TSV or, with pyarrow, Parquet"
        refuse("path", file.name, allowed, f"save it again ({describe_error(error)})")


def _parse_ratings(source: str, cells: pd.Series) -> np.ndarray:
    """Returns [row] ratings; NaN for missing ones."""
    texts = cells.str.lower()
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float, na_value=np.nan)
    bad = ~np.isfinite(numbers) & ~(texts.isna() | texts.isin(_MISSING)).to_numpy(bool)
    if bad.any():
        row = int(bad.argmax())
        remedy = "mend it, or leave it empty; decimals stand after a point"
        refuse("value", f"{source}, row {row + 1:,}, {cells[row][:30]!r}", "a number", remedy)
    return numbers + 0.0


def _select_rows(
    source: str,
    table: pd.DataFrame,
    names: Mapping[str, str],
    levels: tuple[float, ...] | None,
    split: str | None,
) -> tuple[pd.DataFrame, tuple[float, ...], dict[str, list[str]], dict[str, int]]:
    """Selects rows (agent, label, level).

    Returns also the levels, the arms that each label stands for, and numbers of dropped rows.
    """
    points = _parse_ratings(source, table["value"])
    labels = table["arm"].dropna().unique()
    arms_of = {label: arms for label in labels if (arms := _split_label(label, split))}
    # Without any rating, the check below refuses the table.
    levels = levels or checked_levels(np.unique(points[~np.isnan(points)]).tolist() or [0, 1])
    level = np.searchsorted(levels, points).clip(max=len(levels) - 1)
    is_usable, dropped = np.ones(len(points), bool), {}
    for reason, missing in {
        "no rating": np.isnan(points),
        "the rating is no level": np.array(levels)[level] != points,
        f"no {names['agent']}": table["agent"].isna().to_numpy(),
        f"no {names['arm']}": ~table["arm"].isin(list(arms_of)).to_numpy(bool),
    }.items():
        if number := int((is_usable & missing).sum()):
            dropped[reason] = number
        is_usable &= ~missing
    if not is_usable.any():
        remedy = "no row is left: see how the columns are called, and what their cells hold"
        refuse("path", source, "a table with ratings", remedy)
    rows = pd.DataFrame({"agent": table["agent"], "label": table["arm"], "level": level})
    return rows[is_usable], levels, arms_of, dropped


def _split_label(label: str, separator: str | None) -> list[str]:
    """Splits a label into its parts, without the text for an unknown genre."""
    parts = label.split(separator) if separator else [label]
    return list(dict.fromkeys(p.strip() for p in parts if p.strip() and p != _NO_GENRE))


def _count_ratings(
    rows: pd.DataFrame,
    arms_of: Mapping[str, list[str]],
    names: Mapping[str, str],
    least: Mapping[str, int],
    most_arms: int | None,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Counts ratings ``n`` by (agent, arm, level), without agents and arms that have too few.

    A row whose label stands for several arms counts for each of them, but once for its agent.
    Returns the counts, and how many agents and arms are left out, by reason.
    """
    agent, arm = names["agent"], names["arm"]
    counts = rows.groupby(["agent", "label", "level"]).size().reset_index(name="n")
    by_agent = counts.groupby("agent")["n"].sum()
    few = by_agent.index[by_agent < least["agent"]]
    left_out = {f"{agent} with fewer than {least['agent']:,} ratings": len(few)}
    counts = counts[~counts["agent"].isin(few)]
    counts = counts.assign(arm=counts["label"].map(arms_of)).explode("arm")
    counts = counts.groupby(["agent", "arm", "level"], as_index=False)["n"].sum()
    by_arm = counts.groupby("arm")["n"].sum()
    few = by_arm.index[by_arm < least["arm"]]
    left_out[f"{arm} with fewer than {least['arm']:,} ratings"] = len(few)
    # Ties go to the first label, so that the order of rows does not matter.
    order = by_arm.drop(few).sort_index().sort_values(ascending=False, kind="stable").index
    most = len(order) if most_arms is None else most_arms
    left_out[f"{arm} not among the {most:,} most rated"] = len(order[most:])
    present = counts["agent"].nunique()
    counts = counts[counts["arm"].isin(order[:most])].reset_index(drop=True)
    left_out[f"{agent} with no rating of these arms"] = present - counts["agent"].nunique()
    if counts.empty:
        refuse("agent", agent, "a column with ratings", "lower least_per_agent")
    arms = counts["arm"].unique()
    if len(arms) < 2:
        allowed = f"a column with at least 2 arms, not only {arms[0][:40]!r}"
        refuse("arm", arm, allowed, "choose another")
    return counts, {reason: number for reason, number in left_out.items() if number}


def _count_cells(
    counts: pd.DataFrame, agents: list[str], arms: list[str], levels: Sequence[float]
) -> xr.DataArray:
    """Counts ratings by [agent, arm, level]."""
    shape = len(agents), len(arms), len(levels)
    if np.prod(shape, dtype=float) > MAX_CELLS:
        sizes = " x ".join(f"{size:,}" for size in shape)
        allowed = f"at most {MAX_CELLS:,} cells of agent, arm and level"
        refuse("agent", sizes, allowed, "choose groups, such as 10, or most_arms, such as 100")
    cells = np.zeros(shape, np.int64)
    agent, arm = pd.Index(agents).get_indexer(counts["agent"]), pd.Index(arms)
    np.add.at(cells, (agent, arm.get_indexer(counts["arm"]), counts["level"]), counts["n"])
    labels = {"agent": agents, "arm": arms, "level": list(levels)}
    return xr.DataArray(cells, labels, tuple(labels), "counts")


def _estimate_probabilities(
    cells: xr.DataArray, lacks: xr.DataArray, smoothing: float
) -> np.ndarray:
    """Returns [agent, arm, level] probabilities; cells without data get the arm's."""
    like = cells.sum("agent") / cells.sum(["agent", "level"])
    table = (cells + smoothing * like) / np.maximum(cells.sum("level") + smoothing, 1e-300)
    return xr.where(lacks, like, table).transpose(*cells.dims).values


def _estimate_tastes(
    counts: pd.DataFrame, agents: list[str], arms: list[str], levels: Sequence[float]
) -> np.ndarray:
    """Returns the [agent, arm] tastes by which agents are grouped; 0 without ratings.

    A taste is the agent's mean rating of the arm, less the agent's mean over all arms and less the
    arm's mean of such differences. Few ratings count less: n of them weigh n / (n + 2).
    """
    points = (np.array(levels) - levels[0]) / (levels[-1] - levels[0])
    counts = counts.assign(total=counts["n"] * points[counts["level"]])
    pairs = counts.groupby(["agent", "arm"])[["n", "total"]].sum()
    by_agent = pairs.groupby("agent").sum()
    excess = (pairs["total"] / pairs["n"]).sub(by_agent["total"] / by_agent["n"], level="agent")
    arm_excess = (excess * pairs["n"]).groupby("arm").sum() / pairs["n"].groupby("arm").sum()
    taste = excess.sub(arm_excess, level="arm") * pairs["n"] / (pairs["n"] + _HALF_WEIGHT_COUNT)
    return taste.unstack("arm", fill_value=0.0).loc[agents, arms].to_numpy()


def _cluster(points: np.ndarray, groups: int, seed: int) -> np.ndarray:
    """Returns the cluster of each point [point, coordinate], 0 for the largest, by k-means.

    The tightest of several starts counts; no cluster is empty.
    """
    different, remedy = len(np.unique(points, axis=0)), "use fewer groups, or more arms"
    if different < groups:
        allowed = f"at most {different:,}, the different tastes of agents"
        refuse("groups", groups, allowed, remedy)
    best: tuple[float, np.ndarray] | None = None
    for start in range(_STARTS):
        rng = np.random.default_rng([seed, start])
        try:
            centres, place = kmeans2(points, groups, _STEPS, minit="++", missing="raise", rng=rng)
        except ClusterError:  # a cluster has lost all its points
            continue
        distance = float(((points - centres[place]) ** 2).sum())
        # Results that differ only by rounding tie, and the first start wins.
        if best is None or distance < best[0] * (1 - 1e-9):
            best = distance, place
    if best is None:
        refuse("groups", groups, "a number of groups that all have members", remedy)
    _, first, sizes = np.unique(best[1], return_index=True, return_counts=True)
    return np.argsort(np.lexsort((first, -sizes)))[best[1]]
