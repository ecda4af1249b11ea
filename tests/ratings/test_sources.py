"""Tables of ratings in every published layout, and what is none: each refused in one line."""

import gzip
import sys
from pathlib import Path

import pandas as pd
import pytest
from refusals import refused

from fmab_jax.ratings import from_table, layouts, sources

# Who, what, how much: the same in every layout.
RATED = [(1, 10, 4), (1, 20, 2), (1, 30, 5), (2, 10, 1), (2, 20, 2), (2, 30, 5), (3, 10, 3)]
RATED += [(3, 20, 2), (3, 30, 4)]
# In the layout's Latin-1: a title with a colon, an accent and an apostrophe.
FILMS = [(10, "Amélie: One (2001)", "Comedy|Romance"), (20, "L'Été (1999)", "Drama")]
FILMS += [(30, "Heat, The (1995)", "Comedy|Drama")]
PEOPLE = [(1, "F", 25, 4, "55117"), (2, "M", 35, 7, "02460"), (3, "F", 45, 1, "V1A2B")]
GENRES = layouts.GENRES


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Makes an empty folder the current one."""
    monkeypatch.chdir(tmp_path)


def lines(rows, separator):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def movielens():
    Path("ratings.csv").write_text("userId,movieId,rating,timestamp\n" + timed(",", 2))
    films = [(film, f'"{title}"', genres) for film, title, genres in FILMS]
    Path("movies.csv").write_text("movieId,title,genres\n" + lines(films, ","), encoding="utf-8")
    return Path("ratings.csv")


def timed(separator, halves=1):
    rows = [(*row[:2], row[2] if halves == 1 else f"{row[2]:.1f}", 9) for row in RATED]
    return lines(rows, separator)


def movielens_1m():
    Path("ratings.dat").write_text(timed("::"))
    Path("movies.dat").write_bytes(lines(FILMS, "::").encode("latin-1"))
    Path("users.dat").write_text(lines(PEOPLE, "::"))
    return Path("ratings.dat")


def movielens_100k():
    Path("u.data").write_text(timed("\t"))
    films = []
    for film, title, genres in FILMS:
        flags = [int(genre in genres.split("|")) for genre in GENRES]
        films.append((film, title, "01-Jan-1995", "", "http://x/?a|b"[:11], *flags))
    Path("u.item").write_bytes(lines(films, "|").encode("latin-1"))
    people = [(user, age, sex, work, place) for user, sex, age, work, place in PEOPLE]
    Path("u.user").write_text(lines(people, "|"))
    return Path("u.data")


@pytest.mark.parametrize("write", [movielens, movielens_1m, movielens_100k])
def test_every_layout_of_movielens_holds_the_same_ratings(write):
    """Would catch a column read for another, or a film without its genres, in one of them."""
    path = write()
    by_genre = from_table(path, agent="userId", arm="genres", fill="arm")
    assert by_genre.dropped == {} and by_genre.rows == 9
    assert by_genre.arm_labels == ("Comedy", "Drama", "Romance")
    assert by_genre.levels == (1, 2, 3, 4, 5)
    due = {"Comedy": [0, 0, 0, 1, 1], "Drama": [0, 1, 0, 0, 1], "Romance": [0, 0, 0, 1, 0]}
    for genre, counts in due.items():
        assert by_genre.counts.sel(agent="1", arm=genre).values.tolist() == counts
    by_film = from_table(path)
    assert by_film.arm_labels == ("10", "20", "30") and by_film.agent_labels == ("1", "2", "3")
    by_title = from_table(path, arm="title", split=None)
    assert "Amélie: One (2001)" in by_title.arm_labels
    if write is not movielens:
        by_sex = from_table(path, agent="gender", arm="movieId")
        assert by_sex.agent_labels == ("F", "M")
        assert by_sex.counts.sel(agent="F", arm="10").values.tolist() == [0, 0, 1, 1, 0]
        file = {"r": "users.dat"}.get(path.name[0], "u.user")
        assert by_sex.notes["source"].endswith(f" gender from {file}")


AMAZON = {
    "amazon-2014": ("", lambda u, i, r: (u, i, r, 9)),
    "amazon-2018": ("", lambda u, i, r: (i, u, r, 9)),
    "amazon-2023": ("user_id,parent_asin,rating,timestamp\n", lambda u, i, r: (u, i, r, 9)),
}


@pytest.mark.parametrize("name", AMAZON)
@pytest.mark.parametrize("packed", [False, True])
def test_every_layout_of_amazon_holds_the_same_ratings(name, packed):
    """Would catch users that are taken for items where no header tells them apart."""
    header, row = AMAZON[name]
    rows = [row(f"A{user}LONGUSERNAME", f"B00000{item:04d}", float(r)) for user, item, r in RATED]
    data = (header + lines(rows, ",")).encode()
    path = Path("Beauty.csv.gz" if packed else "Beauty.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    given = None if header else name
    found = from_table(path, layout=given)
    assert found.arm_labels == ("B000000010", "B000000020", "B000000030")
    assert found.agent_labels == ("A1LONGUSERNAME", "A2LONGUSERNAME", "A3LONGUSERNAME")
    assert [int(row.argmax()) for row in found.counts.values[0]] == [3, 1, 4]
    if not header:
        other = {"amazon-2014": "amazon-2018", "amazon-2018": "amazon-2014"}[name]
        with pytest.raises(ValueError, match=f"users and items are swapped: layout='{name}'"):
            from_table(path, layout=other)


def test_tables_beside_the_ratings_are_joined():
    """Would catch a row of the other table that goes to another user."""
    frame = pd.DataFrame(RATED, columns=["who", "what", "stars"])
    users = pd.DataFrame({"who": [3, 1, 2], "clinic": ["b", "a", "b"]})
    found = from_table(frame, "clinic", "what", "stars", users=users)
    assert found.agent_labels == ("a", "b")
    assert found.counts.sum("level").values.tolist() == [[1, 1, 1], [2, 2, 2]]
    users.to_csv("users.csv", index=False)
    assert from_table(frame, "clinic", "what", "stars", users="users.csv").problem == found.problem


def test_bad_tables_beside_the_ratings():
    """Would catch a user with two groups, or a table that is joined by the wrong column."""
    frame = pd.DataFrame(RATED, columns=["who", "what", "stars"])

    def refusal(users):
        return refused(from_table, frame, "clinic", "what", "stars", users=users)

    twice = pd.DataFrame({"who": [1, 1, 2], "clinic": ["a", "b", "b"]})
    due = "users='a data frame, who 1': must be one clinic for each who; "
    assert refusal(twice).startswith(due)
    apart = pd.DataFrame({"patient": [1], "clinic": ["a"]})
    assert "must be a table that shares one column with a data frame, not none" in refusal(apart)
    both = pd.DataFrame({"who": [1], "what": [1], "clinic": ["a"]})
    assert "shares one column with a data frame, not who and what" in refusal(both)
    assert "'clinik'?" in refusal(twice.rename(columns={"clinic": "clinik"}))
    Path("users.csv").write_text("who,clinic\n1,a\n2\n")
    assert refusal("users.csv").startswith("users='users.csv, line 3': must be a row of 2 cells; ")
    Path("users.csv.gz").write_bytes(b"who,clinic\n1,a\n")
    assert refusal("users.csv.gz").startswith("users='users.csv.gz': must be a table of text; ")


def test_lines_are_those_of_the_file():
    """Would catch lines that are counted without the header, empty lines, or lines in a cell."""
    Path("t.csv").write_text('agent,arm,value\n\na,"x\ny",1\n"b",y,bad\nc,x,bad\n')
    plain = {"agent": "agent", "arm": "arm", "value": "value"}
    Path("t.csv.gz").write_bytes(gzip.compress(Path("t.csv").read_bytes()))
    told = refused(from_table, "t.csv.gz", **plain)
    assert told.startswith("value=\"t.csv.gz, line 5, 'bad'\"")
    Path("ratings.dat").write_text("1::10::4::1\r\n2::10::bad::1\r\n")
    told = refused(from_table, "ratings.dat", arm="movieId")
    assert told.startswith("value=\"ratings.dat, line 2, 'bad'\"")
    frame = pd.DataFrame({"agent": [1, 2], "arm": [1, 2], "value": ["1", "bad"]}, index=[7, 8])
    assert refused(from_table, frame, **plain).startswith("value=\"a data frame, row 2, 'bad'\"")
    Path("ratings.csv").write_text("agent,arm,value\na,x,1\na,x,2\n")
    Path("items.csv").write_text('arm,kind\n\nx,"a\nb"\ny\n')
    told = refused(from_table, "ratings.csv", **plain | {"arm": "kind"}, items="items.csv")
    assert told.startswith("items='items.csv, line 5': must be a row of 2 cells; ")


def test_lines_end_where_the_file_says():
    """Would catch a film whose title holds what only Python takes for the end of a line."""
    movielens_1m()
    films = [(film, f"A\x85 {title}", genres) for film, title, genres in FILMS]
    Path("movies.dat").write_bytes(lines(films, "::").replace("\n", "\r\n").encode("latin-1"))
    found = from_table("ratings.dat", arm="genres", fill="arm")
    assert found.arm_labels == ("Comedy", "Drama", "Romance") and found.dropped == {}
    Path("own.csv").write_text('movieId,kind\n10,"a\nb"\n20,c\n30,c\n')
    mine = from_table("ratings.dat", arm="kind", items="own.csv")
    assert mine.arm_labels == ("a\nb", "c") and int(mine.counts.sum()) == 9


def test_parquet_needs_a_package(monkeypatch):
    """Would catch an ImportError in place of what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    line = refused(from_table, "x.parquet", "agent", "arm", "value")
    start = "path='x.parquet': must be no .parquet file, since pyarrow is not installed; "
    assert line.startswith(start) and 'pip install "fmab_jax[export]"' in line


def test_flags_of_a_film_by_hand():
    """Would catch flags that are shifted by one column, and "unknown" taken for a genre."""
    for ones, genres in {
        (): "",
        ("unknown",): "",
        ("unknown", "Drama"): "Drama",
        ("Action", "Western"): "Action|Western",
        ("Comedy", "Children's", "Sci-Fi"): "Children's|Comedy|Sci-Fi",
    }.items():
        flags = ["1 " if name in ones else "0" for name in GENRES]
        assert sources._flagged(["1", "A (1999)", "01-Jan-1999", "", "http://x", *flags]) == genres
