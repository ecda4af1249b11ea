"""What sentences of the published pages count, against the tables beside them."""

from __future__ import annotations

import re
from pathlib import Path

from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"
AGENTS = 50


def told(name: str, pattern: str) -> dict[int, tuple[int, ...]]:
    """Returns what each place of a page counts at a horizon; places that differ are a fault."""
    text = (FIGURES / name).read_text("utf-8")
    found: dict[int, set[tuple[int, ...]]] = {}
    for power, *numbers in re.findall(rf"At T = 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+) {pattern}", text):
        horizon = 10 ** int(power.translate(reader.RAISED))
        found.setdefault(horizon, set()).add(tuple(map(int, numbers)))
    assert found and all(len(each) == 1 for each in found.values()), (name, found)
    return {horizon: each.pop() for horizon, each in found.items()}


def test_cells_above_m_are_counted_as_the_page_says() -> None:
    """Would catch cells counted by an end of their interval, and told as if by their mean."""
    rows = [row for row in reader.rows_of(FIGURES / "maps_pairs.csv") if row["R"] != "none"]
    pattern = (
        r"the ratio is \S+ to [\d.]+, its 99 % interval above M in (\d+) of (\d+) cells "
        r"\(the mean in (\d+)\)\."
    )
    wanted = {}
    for horizon in dict.fromkeys(int(row["T"]) for row in rows):
        own = [row for row in rows if int(row["T"]) == horizon]
        sure, mean = (
            sum(float(row[head]) > AGENTS for row in own)
            for head in ("over R_C, lower", "over R_C")
        )
        wanted[horizon] = (sure, len(own), mean)
    assert told("maps_pairs.md", pattern) == wanted


def test_points_and_runs_of_waits_are_counted_once() -> None:
    """Would catch a graph that is drawn in two panels counted as two points, or its runs twice."""
    rows = reader.rows_of(FIGURES / "maps_waits.csv")
    wanted = {}
    for horizon in dict.fromkeys(int(row["T"]) for row in rows):
        own = {(row["M"], row["graph"]): row for row in rows if int(row["T"]) == horizon}
        more = sum(float(row["extra regret, lower"]) > 0 for row in own.values())
        less = sum(float(row["extra regret, upper"]) < 0 for row in own.values())
        wanted[horizon] = (len(own), more, less)
    pattern = (
        r"the ring's .*?Of (\d+) points, the 95 % interval lies above 0 at (\d+) "
        r"\(waiting adds regret\), and below 0 at (\d+) "
    )
    assert told("maps_waits.md", pattern) == wanted
    text = (FIGURES / "maps_waits.md").read_text("utf-8")
    (seeds,) = re.findall(r"slots, ([\d,]+) seeds", text)
    (runs,) = re.findall(r"of ([\d,]+) runs lost the best arm", text)
    # Every point has a run beside that on the complete graph of as many agents.
    graphs = {(row["M"], row["graph"]) for row in rows} | {(row["M"], "complete") for row in rows}
    assert reader.number(runs) == reader.number(seeds) * len(graphs) * len(wanted)


def test_who_sends_nothing_tells_nothing_on_every_page() -> None:
    """Would catch an epsilon of messages of those that have no link, and a view that leaves
    somebody out for telling nothing whom the table ranks by what its messages leak."""
    silent = "because they tell nobody anything"
    told: set[str] = set()
    found: set[str] = set()
    for path in FIGURES.glob("arena_T1e*.csv"):
        rows = reader.rows_of(path)
        quiet = {row["algorithm"] for row in rows if float(row["numbers sent"]) == 0}
        for head, words in (
            ("epsilon of messages", "nothing is told"),
            ("who is trusted", "nobody: nothing is told"),
        ):
            assert {row["algorithm"] for row in rows if row[head] == words} == quiet, path.stem
        views = reader.rows_of(path.with_name(path.name.replace("arena_", "arena_leak_")))
        left_out = {row["algorithm"] for row in views if row["why not run"] == silent}
        # Who is not run at all at this T is in no row of the table.
        listed = {row["algorithm"] for row in rows}
        assert left_out and left_out & listed <= quiet, path.stem
        told |= quiet
        found |= left_out
    assert found <= told


def test_every_broken_mechanism_is_contradicted_in_some_view_and_the_page_says_so() -> None:
    """Would catch a broken mechanism that no view contradicts, and "all are" over a table in which
    one view keeps to the claim."""
    rows = reader.rows_of(FIGURES / "audit_mechanisms.csv")
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    broken = names[names.index("noise a tenth too small") : names.index("un-noised waiting")]
    found = {
        name: {re.split("[:;]", row["verdict"])[0] for row in rows if row["mechanism"] == name}
        for name in broken
    }
    assert len(found) == 10 and all("contradicted" in verdicts for verdicts in found.values())
    text = (FIGURES.parent / "docs/privacy_audit.md").read_text("utf-8")
    assert "Each of them must be contradicted in at least one view" in " ".join(text.split())
    assert "another view may keep to the claim" in " ".join(text.split())
    assert any("within the claim" in verdicts for verdicts in found.values())
