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
        r"the regret over that of all agents without a budget is \S+ to [\d.]+, "
        r"its 99 % interval above M in (\d+) of (\d+) cells "
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


def test_readings_name_the_figure_that_has_their_numbers() -> None:
    """Would catch a reading said to be that of the figures, which show the other one."""
    ends: dict[tuple[str, str, str], float] = {}
    for name in ("fig06_rounds", "fig06_rounds_smallest_gap"):
        for row in reader.rows_of(FIGURES / f"{name}.csv"):
            if row["quantity"] == "regret" and row["slot"] == row["T"]:
                ends[name, row["T"], row["curve"]] = float(row["mean"])
    rows = [
        row for row in reader.rows_of(FIGURES / "readings.csv") if "R = " in row["other reading"]
    ]
    assert len(rows) == 12
    pattern = r"the usual, own gap: (\w+); the other, 1/16: (\w+)"
    for row in rows:
        shown = re.fullmatch(pattern, row["in the figures"])
        assert shown, row["other reading"]
        curve = row["other reading"].rpartition(": ")[2]
        for name, head in zip(shown.groups(), ("usual", "other"), strict=True):
            told = float(row[f"regret, {head} reading"])
            assert abs(ends[name, row["T"], curve] / told - 1) < 1e-9, (row["T"], curve, head)


def test_turns_of_the_multiverse_are_counted_in_the_docs_as_well() -> None:
    """Would catch turns that leave "not decided" out without saying so, or of an older run."""
    kept = reader.rows_of(FIGURES / "multiverse.csv")
    text = (FIGURES.parent / "docs/reproduction.md").read_text("utf-8")
    (told,) = reader.TURNS.findall(text)
    assert list(reader.turns_told(told, kept)) == []


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
