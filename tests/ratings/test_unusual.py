"""Unusual tables of ratings: each is refused in one line that says where, or read as it stands.

What is accepted is written out here row by row, by hand, or counted again by plain Python.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import refusals

from fmab_jax.ratings import from_table

HEAD = b"agent,arm,value\n"
ROWS = b"a,x,1\na,y,2\nb,x,2\nb,y,1\n"
READ = "a x 1, a y 2, b x 2, b y 1"


def called(one, other):
    """Returns the plain rows with other names of the agents."""
    return READ.replace("a ", f"{one} ").replace("b ", f"{other} ")


PLAIN = {"agent": "agent", "arm": "arm", "value": "value", "fill": "arm"}
FRAME = {"agent": list("aabb"), "arm": list("xyxy"), "value": [1.0, 2.0, 2.0, 1.0]}
FRAME = pd.DataFrame(FRAME, dtype=object)
# Beyond 2^53 floats do not tell whole numbers apart.
WIDE = 2**53


class Case(NamedTuple):
    """A table that is made in an empty folder, and what the refusal holds, or the rows if read."""

    made: Callable[[], Any]
    due: str
    read: bool = False
    dropped: dict[str, int] = {}
    options: dict[str, Any] = {}


def there(make, name="t.csv"):
    """Gives a path, once something is made there."""
    return lambda: (make(), Path(name))[1]


def written(content, name="t.csv"):
    return there(lambda: Path(name).write_bytes(content), name)


def refused(content, due, name="t.csv", **options):
    return Case(written(content, name), due, options=options)


def read(content, due=READ, name="t.csv", **options):
    dropped = options.pop("dropped", {})
    return Case(written(content, name), due, True, dropped, options)


def stored(**columns):
    """Gives a Parquet file; columns that are left out are those of `ROWS`."""
    whole = {"agent": list("aabb"), "arm": list("xyxy"), "value": [1, 2, 2, 1]} | columns
    return there(lambda: parquet.write_table(pa.table(whole), "t.parquet"), "t.parquet")


def framed(**columns):
    return lambda: FRAME.assign(**columns)


def packed(content):
    return gzip.compress(content, mtime=0)


def many(rows):
    rng = np.random.default_rng(0)
    return b"".join(b"%d,%d,%d\n" % tuple(row) for row in rng.integers(1, 6, (rows, 3)))


CASES = {
    "a long row": refused(HEAD + b"a,x,1\na,y,2,9\n", "Expected 3 fields in line 3, saw 4"),
    "a row of commas": read(HEAD + ROWS + b",,\n", dropped={"no rating": 1}),
    "a comment first": refused(b"# mine\n" + HEAD + ROWS, "rows have more cells"),
    "a second header": refused(HEAD + ROWS + HEAD + ROWS, "row 5, 'value'"),
    "carriage returns": read((HEAD + ROWS).replace(b"\n", b"\r\n")),
    "a carriage return in a row": read(HEAD + b"a,x,1\na,y,2\rb,x,2\nb,y,1\n"),
    "a comma in quotes": read(HEAD + ROWS.replace(b"x", b'"x,z"'), READ.replace("x", "x,z")),
    "doubled quotes": read(HEAD + ROWS.replace(b"x", b'"x""z"'), READ.replace("x", 'x"z')),
    "a quote in a word": read(HEAD + ROWS.replace(b"x", b'x"z'), READ.replace("x", 'x"z')),
    "a quote that nothing closes": refused(HEAD + ROWS + b'"a,x,1\nb,x,2\n', "EOF inside string"),
    "a name twice": refused(
        HEAD[:-1] + b",value\n" + ROWS.replace(b"\n", b",1\n"), "rename one 'value'"
    ),
    "a header alone": refused(HEAD, "no row is left"),
    "a mark of UTF-8": read(b"\xef\xbb\xbf" + HEAD + ROWS),
    "UTF-16": refused((HEAD + ROWS).decode().encode("utf-16"), "must be a table of text"),
    "Latin-1": refused(HEAD + ROWS + b"a,\xe9,1\n", "UnicodeDecodeError"),
}

NO_NUMBERS = [
    *"1e-400 -1e-400 1e-9999 1e400 -1e400 inf -Infinity 1_0 0x10 １ ٣ 1'000 --1 1e . +".split(),
    *("1 000", "1/2", "50%", "$3", "true", "3 stars", "1e5.5", "4 5"),
]
CASES |= {
    f"the rating {text}": refused(HEAD + ROWS + f"b,y,{text}\n".encode(), "row 5, ")
    for text in NO_NUMBERS
}
CASES |= {
    "a rating of 400 digits": refused(HEAD + ROWS + b"b,y,%d\n" % (10**400), "row 5, '1000"),
    "the rating 1,000": refused(HEAD + ROWS + b'b,y,"1,000"\n', "row 5, '1,000'"),
    "zero with an exponent": read(HEAD + ROWS + b"b,y,0e-400\n", READ + ", b y 0"),
    "numbers in many forms": read(HEAD + b'a,x,+1\na,y, 2. \nb,x,"2"\nb,y,1.0e+00\n', READ),
    "missing ratings": read(
        HEAD + ROWS + b"a,x,NA\na,x,nan\na,x,-\na,x,None\na,x,null\n", dropped={"no rating": 5}
    ),
    "a rating too large": refused(HEAD + ROWS + b"a,x,1e16\n", "levels[2]=1e+16"),
    "one number in two forms": refused(HEAD + b"1,x,1\n1.0,x,2\n2,y,1\n", "same number"),
    "one number of 19 digits": refused(
        HEAD + b"1%s,x,1\n01%s,x,2\n2,y,1\n" % (b"0" * 18, b"0" * 18), "same number"
    ),
    "numbers beyond 2^53": read(
        HEAD + b"%d,x,1\n%d,y,2\n" % (WIDE, WIDE + 1), f"{WIDE} x 1, {WIDE + 1} y 2"
    ),
    "agents called NA and null": read(
        HEAD + ROWS.replace(b"a,", b"NA,").replace(b"b,", b"null,"), called("NA", "null")
    ),
    "no path": Case(lambda: None, "path=None: must be a path"),
    "HTML": refused(b"<!DOCTYPE html>\n<html>\n", "column of t.csv: <!DOCTYPE"),
    "nothing": refused(b"", "the file is empty"),
    "two archives in one": read(packed(HEAD) + packed(ROWS), name="t.csv.gz"),
    "an archive cut short": refused(packed(HEAD + many(9999))[:-99], "end-of-stream", "t.csv.gz"),
}


PLACES = ("x 1", "y 2", "x 2", "y 1")
HELD = {True: stored, False: framed}


def agents(cells, *labels, file=True):
    """Returns a Parquet file, or a data frame, and what its agents are read as; None for a gap."""
    due = [f"{who} {row}" for who, row in zip(labels, PLACES, strict=True) if who is not None]
    gaps = {"no agent": labels.count(None)} if None in labels else {}
    return Case(HELD[file](agent=cells), ", ".join(due), True, gaps)


def values(cells, *numbers, file=True):
    """Returns one, and what its ratings are read as."""
    rows = zip(("a x", "a y", "b x", "b y"), numbers, strict=True)
    due = [f"{row} {number}" for row, number in rows if number is not None]
    gaps = {"no rating": numbers.count(None)} if None in numbers else {}
    return Case(HELD[file](value=cells), ", ".join(due), True, gaps)


def bad(due, file=True, **columns):
    """Returns one that is refused."""
    return Case(HELD[file](**columns), due)


NULLABLE = [WIDE, WIDE + 1, None, 7]
PRICES = [decimal.Decimal(text) for text in ("1.00", "2.50", "2.50", "1.00")]
MOMENTS = [f"1970-01-01_00:00:00.00000000{n}" for n in (1, 1, 2, 2)]
ENCODED = pa.DictionaryArray.from_arrays
CASES |= {
    "whole numbers with a gap": agents(NULLABLE, *NULLABLE),
    "floats for whole numbers": agents([1.0, 2.0, float("nan"), None], 1, 2, None, None),
    "floats beyond 2^53": bad("several whole numbers", agent=[1.0, 2.0, 3.0, float(2 * WIDE)]),
    "short floats as ratings": values(pa.array([3.7, 2, 2, 1], pa.float32()), 3.7, 2, 2, 1),
    "decimals as ratings": values(PRICES, 1, 2.5, 2.5, 1),
    "a dictionary with one text twice": agents(ENCODED([0, 1, 2, 2], ["a", "a", "b"]), *"aabb"),
    "moments as ratings": bad(
        "row 1, '2020-01-01", value=[datetime.datetime(2020, 1, 1)] * 2 + [None] * 2
    ),
    "nanoseconds as agents": agents(pa.array([1, 1, 2, 2], pa.timestamp("ns")), *MOMENTS),
    "texts as ratings": bad("row 3, '1e-400'", value=["1", "2", "1e-400", "1"]),
    "Parquet cut short": Case(
        lambda: written(stored()().read_bytes()[:-20], "cut.parquet")(), "ArrowInvalid"
    ),
}


def series(*cells):
    return pd.Series(cells, dtype=object)


def named(*names):
    return lambda: pd.DataFrame([[1, 2, 3]], columns=pd.Index(names, dtype=object))


ODD = [decimal.Decimal("1.50"), decimal.Decimal("NaN"), decimal.Decimal(2), 1]
KINDS_ = pd.Categorical(["a", "a", None, "b"], categories=["z", "b", "a"])
CASES |= {
    "nullable whole numbers": agents(pd.array(NULLABLE, "Int64"), *NULLABLE, file=False),
    "a frame's floats beyond 2^53": bad("several whole", False, agent=[1.0, 2.0, 3.0, 2.0 * WIDE]),
    "short floats beyond 2^24": bad(
        "several whole", False, agent=np.array([1, 2, 3, 2**24], np.float32)
    ),
    "one number in two types": bad("same number", False, agent=series(1, "1", 2.0, "2")),
    "categories": agents(KINDS_, "a", "a", None, "b", file=False),
    "a frame's decimals": values(ODD, 1.5, None, 2, 1, file=False),
    "a name twice in a frame": Case(named("agent", "arm", "arm"), "rename one 'arm'"),
}


def rows_of(text):
    """Returns how often each row stands in "agent arm value, ..."; a low line is a space."""
    cells = [row.rsplit(" ", 2) for row in re.split(", (?=[^, ]+ [^ ]+ )", text)]
    return Counter((who.replace("_", " "), what, float(value)) for who, what, value in cells)


def counts_of(found):
    agents, arms = found.agent_labels, found.arm_labels
    cells = np.ndenumerate(found.counts.values)
    return Counter({(agents[i], arms[k], found.levels[n]): int(x) for (i, k, n), x in cells if x})


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_unusual_tables(name):
    """Would catch a number that nobody wrote, a row that vanishes, and any other exception."""
    case = CASES[name]
    given = case.made()
    options = PLAIN | {"split": None} | case.options
    if case.read:
        found = from_table(given, **options)
        assert counts_of(found) == rows_of(case.due)
        assert found.dropped == case.dropped
        assert found.rows == sum(rows_of(case.due).values()) + sum(case.dropped.values())
        return
    told = refusals.refused(from_table, given, **options)
    assert any(due in told for due in case.due.split("|")), told
    assert told.isprintable() and len(told) < 600, told


def csv_of(rows, quoting=csv.QUOTE_MINIMAL, **how):
    out = io.StringIO()
    csv.writer(out, quoting=quoting, **({"lineterminator": "\n"} | how)).writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("seed", range(6))
def test_one_table_in_every_format_against_its_rows(seed):
    """Catches a cell that moves, is rounded, vanishes or comes twice; rows are known beforehand."""
    rng = np.random.default_rng(seed)
    agents = [WIDE + int(each) for each in rng.choice(99, 4, replace=False)]
    arms = ["x", 'y "z"', "u,\nv", " w ", "ä\u2028", "::"]
    levels = [0.1, 0.30000000000000004, -2.5, 7.0, 1e-9]
    rows = []
    for _ in range(int(rng.integers(30, 300))):
        who, what, value = rng.choice(agents), arms[rng.integers(6)], levels[rng.integers(5)]
        gap = rng.integers(20)
        cells = int(who), what, value
        rows.append(tuple(None if gap == place else cell for place, cell in enumerate(cells)))
    due = Counter(
        (str(who), what.strip(), v) for who, what, v in rows if None not in (who, what, v)
    )
    gaps = {"no rating": 2, "no agent": 0, "no arm": 1}
    lost = {word: n for word, i in gaps.items() if (n := sum(row[i] is None for row in rows))}
    text = [["" if cell is None else str(cell) for cell in row] for row in rows]
    head = ["agent", "arm", "value"]
    columns = {"agent": pd.array([row[0] for row in rows], "Int64")}
    columns["arm"] = pd.Series([row[1] for row in rows], dtype=object)
    frame = pd.DataFrame(columns | {"value": [row[2] for row in rows]})
    files = {
        "a.csv": csv_of([head, *text]),
        "b.csv": csv_of([head, *text], csv.QUOTE_ALL, lineterminator="\r\n"),
        "c.tsv": csv_of([head, *text], delimiter="\t"),
        "d.csv.gz": packed(csv_of([head, *text])),
        "e.csv": b"\xef\xbb\xbf" + csv_of([head, *text]),
    }
    given = {"frame": frame, "objects": frame.astype(object)}
    for name, content in files.items():
        Path(name).write_bytes(content)
        given[name] = name
    frame.to_parquet("f.parquet", row_group_size=17)
    frame.astype({"arm": "category", "value": "category"}).to_parquet("g.parquet")
    given |= {"f": "f.parquet", "g": "g.parquet"}
    for name, table in given.items():
        found = from_table(table, **PLAIN, split=None)
        assert counts_of(found) == due, name
        assert found.dropped == lost and found.rows == len(rows), name
    # Another program reads the same cells in the plainest of the files.
    cells = pd.read_csv("a.csv", dtype=str, keep_default_na=False).values.tolist()
    assert cells == text
