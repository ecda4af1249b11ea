"""Ratings counted by agent, arm and level: thresholds, groups by taste, probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.vq import ClusterError, kmeans2

from fmab_jax.core import tables
from fmab_jax.errors import refuse, setting
from fmab_jax.ratings.labels import Labelled
from fmab_jax.ratings.layouts import legible
from fmab_jax.ratings.options import Options
from fmab_jax.resources import affordable

# Ratings with which an arm counts half in an agent's taste: fewer ratings say little.
_HALF = 2
# Starts of the clustering, of which the best one counts, and the most steps of each.
_STARTS = 5
_STEPS = 50


@dataclass(frozen=True)
class Cells:
    """Numbers of ratings by agent, arm and level."""

    agents: list[str]  # labels
    arms: list[str]  # labels
    levels: int  # how many there are
    counts: sparse.csr_array  # [agent, arm x levels + level] numbers of ratings
    rated: np.ndarray  # [agent] rows of the table; a row that counts for several arms is one

    @classmethod
    def tallied(
        cls,
        user: np.ndarray,
        raw: np.ndarray,
        level: np.ndarray,
        kept: np.ndarray,
        names: list[str],
        what: Labelled,
        levels: int,
    ) -> Cells:
        """Counts rows; those whose raw arm has several parts count for each of them."""
        assert what.parts is not None
        user, raw, level = user[kept], raw[kept], level[kept]
        rows = _tally(user * levels + level, raw, (len(names) * levels, len(what.names)))
        arms: dict[str, int] = {}
        pairs = [
            (i, arms.setdefault(part, len(arms)))
            for i, each in enumerate(what.parts)
            for part in each
        ]
        whole, part = np.array(pairs).T
        found = (rows @ _tally(whole, part, (len(what.names), len(arms)))).tocoo()
        who, own = np.divmod(found.coords[0].astype(np.int64), levels)
        column = found.coords[1].astype(np.int64) * levels + own
        counts = _tally(who, column, (len(names), len(arms) * levels), found.data)
        return cls(names, list(arms), levels, counts, np.bincount(user, minlength=len(names)))

    def dense(self) -> np.ndarray:
        """Returns [agent, arm, level] counts."""
        shape = (len(self.agents), len(self.arms), self.levels)
        if math.prod(shape) > tables.MAX_CELLS:
            sizes = " x ".join(f"{size:,}" for size in shape)
            allowed = f"at most {tables.MAX_CELLS:,} cells of agent, arm and level"
            remedy = f"use {setting(groups=10)}, or {setting(most_arms=100)}"
            refuse("agent", sizes, allowed, remedy)
        return self.counts.toarray().reshape(shape)

    def chosen(self, agents: np.ndarray, arms: np.ndarray) -> Cells:
        """Returns the cells of some agents and arms, in the order that is given."""
        found = self.counts[agents].tocoo()
        arm, level = np.divmod(found.coords[1], self.levels)
        to_arm = np.full(len(self.arms), -1)
        to_arm[arms] = np.arange(len(arms))
        kept = to_arm[arm] >= 0
        row, column = found.coords[0][kept], (to_arm[arm] * self.levels + level)[kept]
        counts = _tally(row, column, (len(agents), len(arms) * self.levels), found.data[kept])
        labels = [self.agents[i] for i in agents], [self.arms[k] for k in arms]
        return Cells(*labels, self.levels, counts, self.rated[agents])

    def of_arms(self) -> np.ndarray:
        """Returns [arm] numbers of ratings."""
        arm = self.counts.indices // self.levels
        return np.bincount(arm, self.counts.data, len(self.arms)).astype(np.int64)

    def with_enough(self, wanted: Options, agent: str, arm: str) -> tuple[Cells, dict[str, int]]:
        """Leaves out agents, then arms, with too few ratings, then all but the most rated arms.

        Returns the cells, and how many are left out by reason.
        """
        left_out = {}
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
            gone = len(arms) - wanted.most_arms
            left_out[f"{arm} not among the {wanted.most_arms:,} most rated"] = gone
            # Ties go to the label that comes first, wherever it stands in the table.
            order = sorted(arms, key=lambda k: (-totals[k], cells.arms[k]))
            arms = np.array(order[: wanted.most_arms])
        cells = cells.chosen(np.arange(len(cells.agents)), arms)
        rated = cells.counts.sum(axis=1) > 0
        if gone := int((~rated).sum()):
            left_out[f"{agent} with no rating of these arms"] = gone
        return cells.chosen(np.flatnonzero(rated), np.arange(len(arms))), left_out

    def grouped(
        self, wanted: Options, levels: Sequence[float], name: str, shown: str
    ) -> tuple[Cells, dict[str, str]]:
        """Returns the cells of groups of agents, the largest first, and who is in which."""
        groups = wanted.groups
        if len(self.agents) < groups:
            allowed = f"at most {len(self.agents):,}, the values of {name}"
            refuse("groups", groups, allowed, "use fewer groups")
        # In the order of labels, so that the order of rows changes nothing.
        cells = self.ordered(shown, grouped=False)
        place = clusters(cells.tastes(levels), groups, wanted.groups_seed)
        _, first, sizes = np.unique(place, return_index=True, return_counts=True)
        place = np.argsort(np.lexsort((first, -sizes)))[place]
        names = [f"group {g + 1}" for g in range(groups)]
        members = {label: names[g] for label, g in zip(cells.agents, place, strict=True)}
        of = _tally(place, np.arange(len(place)), (groups, len(place)))
        return Cells(names, cells.arms, cells.levels, of @ cells.counts, of @ cells.rated), members

    def tastes(self, levels: Sequence[float]) -> np.ndarray:
        """Returns [agent, arm] by how much each likes it more than others do, 0 where unknown."""
        shape = (len(self.agents), len(self.arms))
        affordable("memory", 64.0 * shape[0] * shape[1], "use most_arms, or least_per_agent")
        points = (np.array(levels) - levels[0]) / (levels[-1] - levels[0])
        number, total = (
            (self.counts @ sparse.kron(sparse.eye_array(shape[1]), each[:, None], "csr")).toarray()
            for each in (np.ones(self.levels), points)
        )
        own = total.sum(axis=1, keepdims=True) / number.sum(axis=1, keepdims=True)
        apart = np.where(number > 0, total / np.maximum(number, 1) - own, 0.0)
        usual = (number * apart).sum(axis=0) / np.maximum(number.sum(axis=0), 1)
        return np.where(number > 0, apart - usual, 0.0) * number / (number + _HALF)

    def ordered(self, shown: str, *, grouped: bool) -> Cells:
        """Returns the cells with labels in order: as numbers if they are, else as texts."""
        agents = np.arange(len(self.agents))
        if not grouped:
            agents = _in_order(self.agents, shown, "agent")
        return self.chosen(agents, _in_order(self.arms, shown, "arm"))

    def refuse_few(self, agent: str, arm: str) -> None:
        """Refuses cells of nobody, or of one arm."""
        if not self.agents:
            refuse("agent", agent, "a column with ratings", "lower least_per_agent")
        if len(self.arms) < 2:
            only = self.arms[0] if self.arms else "none"
            allowed = f"a column with at least 2 arms, not only {only[:40]!r}"
            refuse("arm", arm, allowed, "choose another")

    def probabilities(
        self, wanted: Options, agent: str, arm: str
    ) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Returns [agent, arm, level] probabilities, and which cells are filled."""
        counts = self.dense().astype(np.float64)
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
            names = legible(self.agents[i])[:40], legible(self.arms[k])[:40]
            first = f"{agent} {names[0]} with {arm} {names[1]}"
            allowed = f"'arm', since {len(places):,} of {lacks.size:,} cells have {few} ({first})"
            agents, arms = setting(groups=10), setting(most_arms=10)
            remedy = f"or have fewer agents ({agents}) or fewer arms ({arms})"
            refuse("fill", None, allowed, remedy)
        total = np.maximum(number + wanted.smoothing, 1e-300)
        table = (counts + wanted.smoothing * like) / total
        table[lacks] = np.broadcast_to(of_arm, counts.shape)[lacks]
        return table, places


def _tally(
    row: np.ndarray, column: np.ndarray, shape: tuple[int, int], number: Any = None
) -> sparse.csr_array:
    """Returns how often each pair of a row and a column occurs; an entry is ``number`` of them."""
    number = np.ones(len(row), np.int64) if number is None else number
    return sparse.coo_array((number, (row, column)), shape).tocsr()


def _in_order(labels: Sequence[str], shown: str, name: str) -> np.ndarray:
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place[each] for each in tables.numbered("path", shown, labels, name)], int)


def clusters(points: np.ndarray, groups: int, seed: int) -> np.ndarray:
    """Returns the cluster of each point [point, coordinate], by k-means from several starts.

    The tightest of them counts; no cluster is empty. Fewer different points are refused.
    """
    different = len(np.unique(points, axis=0))
    remedy = "use fewer groups, or more arms"
    if different < groups:
        refuse("groups", groups, f"at most {different:,}, the different tastes", remedy)
    best: tuple[float, np.ndarray] | None = None
    for start in range(_STARTS):
        rng = np.random.default_rng([seed, start])
        try:
            centres, place = kmeans2(points, groups, 1, minit="++", missing="raise", rng=rng)
            for _ in range(_STEPS - 1):
                before = place
                centres, place = kmeans2(points, centres, 1, minit="matrix", missing="raise")
                if (place == before).all():
                    break
        except ClusterError:  # a cluster has lost all its points
            continue
        apart = float(((points - centres[place]) ** 2).sum())
        # Results that differ only by rounding tie, and the first start wins.
        if best is None or apart < best[0] * (1 - 1e-9):
            best = apart, place
    if best is None:
        refuse("groups", groups, "a number of groups that all have members", remedy)
    return best[1]
