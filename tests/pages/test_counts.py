"""What sentences of the published pages count, against the tables beside them."""

import re
from pathlib import Path

from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"


def test_who_sends_nothing_tells_nothing_on_every_page():
    """Catches an epsilon of messages without links, and one left out of a view as silent."""
    told = set()
    found = set()
    for path in FIGURES.glob("arena_T1e*.csv"):
        rows = reader.rows_of(path)
        quiet = {row["algorithm"] for row in rows if float(row["numbers sent"]) == 0}
        for head in ("epsilon of messages", "who is trusted"):
            silent = {row["algorithm"] for row in rows if "nothing is told" in row[head]}
            assert silent == quiet, path.stem
        views = reader.rows_of(path.with_name(path.name.replace("arena_", "arena_leak_")))
        why = "because they tell nobody anything"
        left_out = {row["algorithm"] for row in views if row["why not run"] == why}
        # Who is not run at all at this T is in no row of the table.
        assert left_out and left_out & {row["algorithm"] for row in rows} <= quiet, path.stem
        told, found = told | quiet, found | left_out
    assert found <= told


def test_every_broken_mechanism_is_contradicted_in_some_view_and_the_page_says_so():
    """Catches one that no view contradicts, and "all are" over a view that keeps to the claim."""
    rows = reader.rows_of(FIGURES / "audit_mechanisms.csv")
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    broken = names[names.index("noise a tenth too small") :]
    found = {
        name: {re.split("[:;]", row["verdict"])[0] for row in rows if row["mechanism"] == name}
        for name in broken
    }
    assert len(found) == 9 and all("contradicted" in verdicts for verdicts in found.values())
    text = (FIGURES.parent / "docs/privacy_audit.md").read_text("utf-8")
    assert "Each of them must be contradicted in at least one view" in " ".join(text.split())


def test_no_picture_is_higher_than_a_page():
    """Catches a picture of more than 22 cm, at 300 dots an inch, which no page has room for."""
    heights = {}
    for path in [*FIGURES.glob("*.png"), *(FIGURES.parent / "docs").glob("*.png")]:
        with path.open("rb") as file:
            head = file.read(24)
        heights[path.name] = int.from_bytes(head[20:24], "big") / 300 * 2.54
    assert len(heights) > 20
    assert {name: height for name, height in heights.items() if height > 22.0} == {}
