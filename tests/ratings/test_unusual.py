"""Unusual tables of ratings: each is refused in one line that says where, or read as it stands."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import refusals

from fmab_jax.ratings import from_table

HEAD = b"agent,arm,value\n"
ROWS = b"a,x,1\na,y,2\nb,x,2\nb,y,1\n"
PLAIN = {"agent": "agent", "arm": "arm", "value": "value", "fill": "arm", "split": None}
FRAME = pd.DataFrame({"agent": list("aabb"), "arm": list("xyxy"), "value": [1.0, 2.0, 2.0, 1.0]})
# Beyond 2^53 floats do not tell whole numbers apart.
WIDE = 2**53


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def counts_of(found):
    agents, arms = found.agent_labels, found.arm_labels
    cells = np.ndenumerate(found.counts.values)
    return Counter({(agents[i], arms[k], found.levels[n]): int(x) for (i, k, n), x in cells if x})


def rows_of(text):
    """Returns how often each row stands in "agent arm value, ..."."""
    cells = [row.rsplit(" ", 2) for row in text.split(", ")]
    return Counter((who, what, float(value)) for who, what, value in cells)


def packed(content):
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("t.csv", HEAD + b"a,x,1\na,y,2,9\n", "Expected 3 fields in line 3, saw 4"),
        ("t.csv", b"# mine\n" + HEAD + ROWS, "rows have more cells"),
        ("t.csv", b"agent,arm,value,value\n" + ROWS.replace(b"\n", b",3\n"), "value='value'"),
        ("t.csv", HEAD + ROWS + b"b,y,inf\n", "row 5, 'inf'"),
        ("missing/t.csv", None, "path='missing/t.csv': must be a readable file"),
        ("t.csv", HEAD + ROWS + HEAD + ROWS, "row 5, 'value'"),
        ("t.csv", HEAD + ROWS + b'"a,x,1\nb,x,2\n', "EOF inside string"),
        ("t.csv", HEAD, "no row is left"),
        ("t.csv", b"", "No columns to parse"),
        ("t.csv", HEAD + ROWS + b"a,\xe9,1\n", "UnicodeDecodeError"),
        ("t.csv", b"<!DOCTYPE html>\n<html>\n", "column of t.csv: <!DOCTYPE"),
        ("t.csv", HEAD + ROWS + b"a,x,1e16\n", "levels[2]=1e+16"),
        ("t.csv", HEAD + ROWS + b'b,y,"1,000"\n', "row 5, '1,000'"),
        ("t.csv", HEAD + ROWS + b"b,y,3 stars\n", "row 5, '3 stars'"),
        ("t.csv.gz", packed(HEAD + ROWS)[:-20], "path='t.csv.gz': must be a table"),
        ("t.parquet", b"PAR1", "ArrowInvalid"),
    ],
)
def test_damaged_files_are_refused(name, content, line):
    """Would catch another exception, or a message that does not say where."""
    if content is not None:
        Path(name).write_bytes(content)
    text = refusals.refused(from_table, name, **PLAIN)
    assert line in text and text.isprintable() and len(text) < 600, text


NULLABLE = [WIDE, WIDE + 1, None, 7]


@pytest.mark.parametrize(
    ("columns", "rows", "dropped"),
    [
        ({"agent": [7.0, 8.0, np.nan, 8.0]}, "7 x 1, 8 y 2, 8 y 1", {"no agent": 1}),
        (
            {"agent": pd.array(NULLABLE, "Int64")},
            f"{WIDE} x 1, {WIDE + 1} y 2, 7 y 1",
            {"no agent": 1},
        ),
        ({"agent": ["NA", "NA", "null", " "]}, "NA x 1, NA y 2, null x 2", {"no agent": 1}),
        (
            {"value": ["+1", " 2. ", "NaN", "1.0e+00"]},
            "a x 1, a y 2, b y 1",
            {"no rating": 1},
        ),
        (
            {"value": np.array([3.7, 2, 2, 1], np.float32)},
            "a x 3.7, a y 2, b x 2, b y 1",
            {},
        ),
        (
            {"agent": pd.Categorical(["a", "a", None, "b"])},
            "a x 1, a y 2, b y 1",
            {"no agent": 1},
        ),
    ],
)
def test_columns_of_other_types_are_read_as_they_stand(columns, rows, dropped):
    """Would catch agent 7 that becomes 7.0, merged agents, and a rating that is rounded."""
    found = from_table(FRAME.assign(**columns), **PLAIN)
    assert counts_of(found) == rows_of(rows) and found.dropped == dropped


def test_floats_that_stand_for_several_agents_are_refused():
    """Would catch two agents that become one, since a column with gaps is read as floats."""
    floats = FRAME.assign(agent=[float(WIDE), WIDE + 2.0, np.nan, 7.0])
    assert "agent='agent': must be a column of texts" in refusals.refused(
        from_table, floats, **PLAIN
    )


def test_names_with_blanks_keep_labels_as_texts():
    """Would catch agents 07 and 7 that become one, since the name is ' agent'."""
    Path("t.csv").write_text(" agent,arm , value\n07,x,1\n7,y,2\n07,y,2\n7,x,1\n", "utf-8")
    assert from_table("t.csv", **PLAIN).agent_labels == ("07", "7")


def csv_of(rows, quoting=csv.QUOTE_MINIMAL, **how):
    out = io.StringIO()
    csv.writer(out, quoting=quoting, **({"lineterminator": "\n"} | how)).writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("seed", range(2))
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
        found = from_table(table, **PLAIN)
        assert counts_of(found) == due, name
        assert found.dropped == lost and found.rows == len(rows), name
