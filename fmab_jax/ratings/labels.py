"""Agents, arms and levels: what the cells of a table stand for, and which rows are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fmab_jax.core.rewards import MAX_LEVELS, checked_levels
from fmab_jax.errors import refuse, setting
from fmab_jax.ratings import sources
from fmab_jax.ratings.layouts import Column, Source, legible


class Labelled(NamedTuple):
    """What the labels of a column stand for."""

    names: list[str]  # the labels of agents or arms; with ``parts``, of their raw labels
    places: np.ndarray  # [label] place in ``names``; -1 where there is none
    why: list[str]  # [label] why there is none, in a few words
    # For each of ``names`` the arms that it counts for, or None where it is one itself.
    parts: list[tuple[str, ...]] | None = None
    split: bool = False  # whether some name has several parts


class Side:
    """Agents or arms: the column that names them, in the ratings or in a table beside them.

    ``key`` is the column of the ratings that leads to it; ``note`` names the table beside, if any.
    """

    def __init__(self, field: str, name: str, kind: str, given: Any, source: Source) -> None:
        self.field, self.name, self.kind = field, name, kind
        self.note, self._beside = "", None
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
                remedy = f"it stands in another table, such as {setting(items=where)}"
                refuse(field, name, f"a column of {source.shown}", remedy)
            sources.lacking(field, name, source.columns, source.shown)
        if name not in beside.named:
            columns = (*source.columns, *beside.named)
            sources.lacking(field, name, columns, f"{source.shown} and {beside.shown}")
        shared = [each for each in beside.columns if each in source.columns and each != name]
        if len(shared) != 1:
            listed = " and ".join(legible(each)[:20] for each in shared[:4]) or "none"
            allowed = f"a table that shares one column with {source.shown}, not {listed}"
            refuse(kind, beside.shown, allowed, "rename or drop columns")
        self.key, self._beside = shared[0], beside
        self.note = f"{self.name} from {beside.shown}"

    def labelled(self, column: Column, split: str | None) -> Labelled:
        """Returns what labels of the key column stand for; ``split`` separates parts, of arms."""
        raw, why = column.labels, [f"no {self.name}"] * (len(column.labels) + 1)
        if self._beside is not None:
            known, lost = self._table(), f"{self.key} is not in {self._beside.shown}"
            raw = [known.get(label, "") for label in column.labels]
            why = [f"no {self.name}" if label in known else lost for label in column.labels]
            why.append(f"no {self.key}")
        parts = {label: own for label in raw if (own := sources.genres_of(label, split))}
        place = {label: i for i, label in enumerate(parts)}
        places = np.array([*(place.get(label, -1) for label in raw), -1], np.int64)
        several = any(len(each) > 1 for each in parts.values())
        return Labelled(list(parts), places, why, list(parts.values()), several)

    def _table(self) -> dict[str, str]:
        """Returns the column of the table beside by its key."""
        assert self._beside is not None
        known: dict[str, str] = {}
        for key, label in sources.read_small(self._beside, [self.key, self.name], self.kind):
            if known.setdefault(key, label) != label:
                row = f"{self._beside.shown}, {self.key} {key[:40]}"
                allowed = f"one {self.name} for each {self.key}"
                refuse(self.kind, row, allowed, "drop one of the two rows")
        return known


class Rows:
    """Which rows are kept, and why the others are not."""

    def __init__(self, number: int) -> None:
        self.kept = np.ones(number, bool)  # [row] whether it is
        self.dropped: dict[str, int] = {}  # numbers of rows, by reason

    def take(self, codes: np.ndarray, places: np.ndarray, why: Sequence[str]) -> np.ndarray:
        """Returns what each row's code stands for; rows without are dropped.

        ``codes`` are [row] places of labels, -1 for none; ``places`` and ``why`` are by label, with
        an entry for none at the end: what it stands for, -1 for nothing, and then why.
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


def levels_of(
    column: Column, given: tuple[float, ...] | None, source: Source, name: str
) -> tuple[tuple[float, ...], Labelled]:
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
            refuse_empty(source)
        if len(seen) > MAX_LEVELS or len(seen) < 2:
            allowed = f"a column with 2 to {MAX_LEVELS:,} different ratings"
            few = "give levels=[...], all possible ones"
            remedy = "round the ratings" if len(seen) > 1 else few
            refuse("value", f"{len(seen):,} different ones", allowed, remedy)
        given = checked_levels(seen.tolist())
    place = {level: i for i, level in enumerate(given)}
    places = np.array([place.get(float(value), -1) for value in values], np.int64)
    why = ["no rating" if math.isnan(value) else "the rating is no level" for value in values]
    return given, Labelled([], places, why)


def refuse_empty(source: Source) -> NoReturn:
    """Refuses a table of which no row is left."""
    remedy = "see how the columns are called, and what their cells hold"
    refuse("path", source.shown, "a table with ratings", f"no row is left: {remedy}")
