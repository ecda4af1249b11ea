"""What tables of ratings look like: published layouts, tables that are found, and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance"),
    *("Sci-Fi", "Thriller", "War", "Western"),
)


class Form(NamedTuple):
    """How the lines of a file are written."""

    separator: str = ","  # between cells
    columns: tuple[str, ...] = ()  # names of the columns; none where the first line names them
    quoted: bool = True  # whether cells may stand in quotes

    @property
    def encodings(self) -> tuple[str, ...]:
        """What the letters may be in; older titles of MovieLens are in Latin-1."""
        return ("utf-8-sig",) if self.quoted else ("utf-8-sig", "latin-1")


class Layout(NamedTuple):
    """A published layout of ratings."""

    user: str  # column of who rates
    item: str  # column of what is rated
    value: str  # column of the rating
    form: Form  # of the ratings
    items: tuple[str, Form] | None = None  # name and form of the file about items, if there is one
    users: tuple[str, Form] | None = None  # name and form of the file about users, if there is one


_MOVIELENS = ("userId", "movieId", "rating", "timestamp")
_AMAZON = ("user_id", "parent_asin", "rating", "timestamp")
_FILMS = ("movieId", "title", "genres")
_PEOPLE = ("userId", "gender", "age", "occupation", "zip")
FILMS_100K = ("movieId", "title", "released", "video", "url", *GENRES)
_PEOPLE_100K = ("userId", "age", "gender", "occupation", "zip")

LAYOUTS: Mapping[str, Layout] = {
    "movielens": Layout(*_MOVIELENS[:3], Form(), ("movies.csv", Form())),
    "movielens-1m": Layout(
        *_MOVIELENS[:3],
        Form("::", _MOVIELENS, quoted=False),
        ("movies.dat", Form("::", _FILMS, quoted=False)),
        ("users.dat", Form("::", _PEOPLE, quoted=False)),
    ),
    "movielens-100k": Layout(
        *_MOVIELENS[:3],
        Form("\t", _MOVIELENS, quoted=False),
        ("u.item", Form("|", FILMS_100K, quoted=False)),
        ("u.user", Form("|", _PEOPLE_100K, quoted=False)),
    ),
    "amazon-2014": Layout("user", "item", "rating", Form(",", ("user", "item", *_AMAZON[2:]))),
    "amazon-2018": Layout("user", "item", "rating", Form(",", ("item", "user", *_AMAZON[2:]))),
    "amazon-2023": Layout(*_AMAZON[:3], Form()),
}
"""Published layouts by name: of MovieLens the current one (ratings.csv), 1M and 10M (ratings.dat),
100K (u.data); of Amazon's ratings those of 2014, 2018 and 2023."""
BY_FILE = {"ratings.dat": "movielens-1m", "u.data": "movielens-100k"}
_BY_HEADER = {_MOVIELENS[:3]: "movielens", _AMAZON[:3]: "amazon-2023"}


def by_header(names: Sequence[str]) -> str | None:
    """Returns the layout whose columns a header names; None for no layout."""
    return next((layout for own, layout in _BY_HEADER.items() if set(own) <= set(names)), None)


class Column(NamedTuple):
    """A column of a table."""

    codes: np.ndarray  # [row] place of each row's label; -1 where it has none
    labels: list[str]  # the distinct cells, as texts without spaces around them

    @classmethod
    def of(cls, codes: Any, cells: Iterable[str]) -> Column:
        """Makes a column of distinct cells, some of which may differ by spaces, or be empty.

        ``codes`` are [row] places of cells; -1 for none.
        """
        known: dict[str, int] = {}
        texts = (cell.strip() for cell in cells)
        # Empty cells have the code -1; a code of -1 takes the last entry, which is -1.
        place = [known.setdefault(text, len(known)) if text else -1 for text in texts]
        return cls(np.array([*place, -1], np.int32)[np.asarray(codes, np.int32)], list(known))


class Source(NamedTuple):
    """A table of ratings that is found, and whose columns are known; nothing else of it is read."""

    shown: str  # what it is called in messages
    columns: tuple[str, ...]  # names
    layout: str | None  # name of its layout, or None
    form: Form  # how its lines are written
    path: Path | None  # the file, or None for a data frame
    frame: Any = None  # the data frame, or None

    @property
    def published(self) -> Layout | None:
        """The layout itself."""
        return LAYOUTS[self.layout] if self.layout else None

    @property
    def named(self) -> tuple[str, ...]:
        """All columns, and the genres that are made of MovieLens 100K's flags."""
        return (*self.columns, "genres") if self.columns == FILMS_100K else self.columns


def legible(text: str) -> str:
    """Returns a text without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
