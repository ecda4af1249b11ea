"""Writes ratings.csv and movies.csv beside itself: made-up ratings in the layout of MovieLens.

Nobody's ratings are in it. 400 users of five tastes rate 300 films in half stars; films have one to
three genres, and four have none. The seed is fixed, so that the files come out the same:

python docs/examples/ratings/generate.py
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

USERS, FILMS, RATINGS, TASTES = 400, 300, 9000, 5
# How well everybody likes each genre, in stars above the usual, and how many films are of it.
GENRES = {
    "Action": (-0.15, 5),
    "Adventure": (0.0, 4),
    "Comedy": (-0.1, 6),
    "Crime": (0.35, 4),
    "Documentary": (0.8, 4),
    "Drama": (0.2, 6),
    "Fantasy": (0.05, 3),
    "Horror": (-0.6, 3),
    "Romance": (0.0, 4),
    "Sci-Fi": (-0.05, 4),
}
FIRST = ("Silent", "Last", "Hidden", "Broken", "Northern", "Second", "Paper", "Winter", "Glass")
SECOND = ("River", "Letter", "Garden", "Signal", "Harbour", "Machine", "Promise", "Orchard", "Map")
# 2000-01-01 and fifteen years later, in seconds.
FROM, TO = 946_684_800, 1_420_070_400


def tables(seed: int = 0) -> tuple[list[list[Any]], list[list[Any]]]:
    """Returns the rows of ratings and of films, without headers."""
    rng = np.random.default_rng(seed)
    liked = np.array([params for params, _ in GENRES.values()])
    share = np.array([films for _, films in GENRES.values()], float)
    share /= share.sum()

    genres = []
    for film in range(FILMS):
        number = 0 if film % 75 == 74 else int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
        genres.append(sorted(rng.choice(len(GENRES), number, replace=False, p=share).tolist()))
    quality = rng.normal(0.0, 0.25, FILMS)

    # Larger tastes come first; each likes some genres more, and others less, than everybody does.
    taste = rng.choice(TASTES, USERS, p=np.array([5, 4, 3, 2, 2]) / 16)
    tastes = rng.normal(0.0, 0.4, (TASTES, len(GENRES)))
    generous = rng.normal(0.0, 0.3, USERS)
    active = rng.gamma(1.5, 1.0, USERS) + 0.3
    popular = rng.gamma(0.8, 1.0, FILMS) + 0.1

    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < RATINGS:
        user = int(rng.choice(USERS, p=active / active.sum()))
        film = int(rng.choice(FILMS, p=popular / popular.sum()))
        pairs.setdefault((user, film))
    rows = []
    for user, film in sorted(pairs):
        of = genres[film]
        params = (liked + tastes[taste[user]])[of].mean() if of else 0.0
        stars = 3.4 + params + quality[film] + generous[user] + rng.normal(0.0, 0.7)
        rating = min(max(round(2 * stars) / 2, 0.5), 5.0)
        rows.append([user + 1, film + 1, f"{rating:.1f}", int(rng.integers(FROM, TO))])
    names = list(GENRES)
    films = []
    for film, of in enumerate(genres):
        title = f"{FIRST[film % 9]} {SECOND[film // 9 % 9]} {film // 81 + 1} ({1970 + film % 45})"
        films.append([film + 1, title, "|".join(names[g] for g in of) or "(no genres listed)"])
    return rows, films


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main(folder: Path) -> None:
    """Writes both files into a folder."""
    rows, films = tables()
    write(folder / "ratings.csv", ("userId", "movieId", "rating", "timestamp"), rows)
    write(folder / "movies.csv", ("movieId", "title", "genres"), films)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent)
