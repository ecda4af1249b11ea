"""Every table of figures/*.md has a CSV file beside it, with the same rows and the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest
from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"
Rows = list[dict[str, str]]
VERDICTS = ("holds", "holds in part", "not attained", "not decided", "does not hold")
AXES = ("T", "gap", "instance", "delay", "meter")


@cache
def kept(name: str) -> Rows:
    return reader.rows_of(FIGURES / f"{name}.csv")


def same_cell(cell: str, head: str, row: dict[str, str]) -> bool:
    """Tells whether a cell is that of a row of a CSV: as text, or to the digits that it prints."""
    if f"{head}, lower" not in row:
        return cell == row[head] or _rounded(cell, row[head])
    texts = [row[f"{head}{end}"] for end in ("", ", lower", ", upper")]
    if not cell or not texts[0]:
        return cell == texts[0]
    found = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", cell)
    told = list(found.groups()) if found else [cell] * 3
    # An end that is not there was not printed: the number stands for all three only if it is so.
    return all(_rounded(one, text) for one, text in zip(told, texts, strict=True))


def _rounded(cell: str, text: str) -> bool:
    try:
        return reader.same(cell, float(text))
    except ValueError:
        return False


def alike(table: Rows, rows: Sequence[dict[str, str]]) -> Iterable[str]:
    """Holds a table against the rows of a CSV, in their order, in every column that it has."""
    if len(table) != len(rows):
        yield f"{len(table)} rows, {len(rows)} in the CSV"
    for place, (own, row) in enumerate(zip(table, rows, strict=False), 1):
        for head, cell in own.items():
            if head not in row:
                yield f"no column {head}"
            elif not same_cell(cell, head, row):
                yield f"row {place}: {head} is {row[head]}, not {cell}"


def plain(name: str) -> Callable[[Rows], Iterable[str]]:
    return lambda table: alike(table, kept(name))


def ran(name: str) -> Callable[[Rows], Iterable[str]]:
    """Holds a table of those who took part against a CSV that has the others, too."""
    return lambda table: alike(table, [row for row in kept(name) if not row["why not run"]])


def unsorted(name: str) -> Callable[[Rows], Iterable[str]]:
    """Holds a table against a CSV that has its rows in another order."""

    def check(table: Rows) -> Iterable[str]:
        rows = {row["algorithm"]: row for row in kept(name)}
        told = [row["algorithm"] for row in table]
        if sorted(told) != sorted(rows):
            yield f"of {told} the CSV has {sorted(rows)}"
            return
        yield from alike(table, [rows[label] for label in told])

    return check


def leaks(name: str, view: int) -> Callable[[Rows], Iterable[str]]:
    """Holds a table of who has which regret at which leak against one row for each of both."""

    def check(table: Rows) -> Iterable[str]:
        views = list(dict.fromkeys(row["view"] for row in kept(name)))
        wide: dict[str, dict[str, str]] = {}
        for row in kept(name):
            if row["view"] == views[view] and not row["why not run"]:
                head = f"ε = {float(row['ε']):g}"
                line = wide.setdefault(row["algorithm"], {"algorithm": row["algorithm"]})
                line.setdefault("seeds", row["seeds"])
                if row["seeds"] != line["seeds"]:
                    yield f"{row['algorithm']} has {row['seeds']} seeds at {head}"
                for end in ("", ", lower", ", upper"):
                    line[head + end] = row[f"regret at T{end}"]
                first, last = row["place from"], row["to"]
                place = first if first == last else f"{first}–{last}"
                line[f"place, {head}"] = f"{place} of {row['of']}"
        told = sorted(row["algorithm"] for row in table)
        if told != sorted(wide):
            yield f"of {told} the CSV has {sorted(wide)}"
            return
        parted = [{k: cell.partition("; ") for k, cell in row.items()} for row in table]
        places = [{f"place, {k}": v[2] for k, v in row.items() if v[2]} for row in parted]
        numbers = [{k: v[0] for k, v in row.items()} for row in parted]
        own = [number | place for number, place in zip(numbers, places, strict=True)]
        if {len(row) for row in places} != {sum(head.startswith("ε") for head in table[0])}:
            yield "a cell has no place"
        yield from alike(own, [wide[row["algorithm"]] for row in own])

    return check


def sentences(which: str) -> Callable[[Rows], Iterable[str]]:
    """Holds a list of CLAIMS.md against the rows of claims.csv, one sentence after the other."""

    def check(table: Rows) -> Iterable[str]:
        own: dict[str, dict[str, str]] = {}
        for row in kept("claims"):
            if row["list"] == which:
                own.setdefault(row["row"], row)
        if len(own) != len(table):
            yield f"{len(table)} rows, {len(own)} in the CSV"
        for place, (told, row) in enumerate(zip(table, own.values(), strict=False), 1):
            for head in ("section", "verdict"):
                if head in told and told[head] != row[head]:
                    yield f"row {place}: {head} is {row[head]}"
            if row["quote"] not in told["the paper's words"]:
                yield f"row {place}: the quotation is {row['quote']}"

    return check


def lists(table: Rows) -> Iterable[str]:
    """Holds the numbers of sentences of each list against the CSV."""
    own: dict[str, set[str]] = {}
    for row in kept("claims"):
        own.setdefault(row["list"], set()).add(row["row"])
    told = {row["list"]: int(re.findall(r"^\d+", row["sentences"])[0]) for row in table}
    if told != {name: len(rows) for name, rows in own.items()}:
        yield f"the CSV has { ({name: len(rows) for name, rows in own.items()}) }"


def readings(table: Rows) -> Iterable[str]:
    """Holds the counts of verdicts against one row for each reading."""
    by: dict[str, Rows] = {}
    for row in kept("multiverse"):
        by.setdefault(row["number"], []).append(row)
    if len(table) != len(by):
        yield f"{len(table)} rows, {len(by)} in the CSV"
    for told, (number, rows) in zip(table, by.items(), strict=False):
        wanted = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS}
        opened = ", ".join(axis for axis in AXES if len({row[axis] for row in rows}) > 1)
        opened = opened or "nothing"
        if told[""] != number or told["section"] != rows[0]["section"]:
            yield f"row {told['']} is {number}"
        if rows[0]["quote"] not in told["the paper's words"]:
            yield f"row {number}: the quotation is {rows[0]['quote']}"
        if told["measured"] != rows[0]["measured"] or told["open"] != opened:
            yield f"row {number}: open are {opened}"
        if {verdict: int(told[verdict]) for verdict in VERDICTS} != wanted:
            yield f"row {number}: {wanted}"
        if int(told["readings"]) != len(rows):
            yield f"row {number}: {len(rows)} readings"


def section_of(power: str) -> list[Callable[[Rows], Iterable[str]]]:
    return [plain(f"arena_{power}"), *(leaks(f"arena_leak_{power}", view) for view in range(3))]


POWERS = sorted(path.stem.removeprefix("arena_") for path in FIGURES.glob("arena_T1e*.csv"))
# What the tables of a page are held against, in their order.
TABLES: dict[str, list[Callable[[Rows], Iterable[str]]]] = {
    "ARENA": [
        *(check for power in POWERS for check in section_of(power)),
        plain("arena_caps"),
        plain("arena_far"),
        plain("arena_ledger"),
        plain("arena_settings"),
    ],
    "CLAIMS": [
        lists,
        sentences("measured"),
        sentences("bounds with explicit constants"),
        sentences("settled by arithmetic"),
        sentences("misprints"),
        sentences("not judged"),
    ],
    **{f"arena_{power}": section_of(power) for power in POWERS},
    # The CSV file of the curves has slots; the table of their ends is that of the whole horizon.
    **{f"arena_regret_{power}": [unsorted(f"arena_{power}")] for power in POWERS},
    **{f"arena_leak_{power}": [ran(f"arena_leak_{power}")] for power in POWERS},
    "audit": [plain("audit_mechanisms")],
    "multiverse": [readings],
}


def tables_of(text: str) -> list[Rows]:
    return reader.tables(text.split("\n"))


PAGES = {
    path.stem: path.read_text("utf-8")
    for path in sorted(FIGURES.glob("*.md"))
    if tables_of(path.read_text("utf-8"))
}


def faults(name: str, text: str) -> list[str]:
    """Returns what is wrong with the tables of a page."""
    tables, checks = tables_of(text), TABLES.get(name, [plain(name)])
    if len(tables) != len(checks):
        return [f"{len(tables)} tables, {len(checks)} CSV files"]
    return [
        f"table {place}: {fault}"
        for place, (table, check) in enumerate(zip(tables, checks, strict=True), 1)
        for fault in check(table)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_tables_of_a_page_are_those_of_a_csv_file(name: str) -> None:
    """Would catch a table without a CSV, a row or column that is in one alone, and old numbers."""
    assert faults(name, PAGES[name]) == []


def test_no_csv_lies_there_for_nobody() -> None:
    """Would catch a CSV file that no page names, such as one of a table that has gone."""
    texts = [path.read_text("utf-8") for path in FIGURES.glob("*.md")]
    texts += [path.read_text("utf-8") for path in (FIGURES.parent / "docs").glob("*.md")]
    named = {name for text in texts for name in re.findall(r"(\w+)\.csv", text)}
    read = {"arena_ledger", "arena_settings", *(f"arena_{power}" for power in POWERS), *PAGES}
    assert {path.stem for path in FIGURES.glob("*.csv")} - named - read == set()


def row_dropped(line: str) -> str:
    return ""


def rows_doubled(line: str) -> str:
    return f"{line}\n{line}"


def digit(line: str) -> str:
    """Changes the last digit of the last number of a line."""
    place = max(i for i, letter in enumerate(line) if letter.isdigit())
    return line[:place] + str((int(line[place]) + 1) % 10) + line[place + 1 :]


def ends_swapped(line: str) -> str:
    return re.sub(r"\[(\S+), (\S+)\]", r"[\2, \1]", line, count=1)


def interval_lost(line: str) -> str:
    return re.sub(r" \[\S+, \S+\]", "", line, count=1)


def verdict(line: str) -> str:
    return line.replace("**holds**", "**does not hold**", 1).replace("within", "beyond", 1)


def columns(line: str) -> str:
    cells = line.split("|")
    return "|".join([*cells[:-3], cells[-2], cells[-3], cells[-1]])


def place_better(line: str) -> str:
    return re.sub(r"; \d+(–\d+)? of (\d+)", r"; 1 of \2", line, count=1)


@pytest.mark.parametrize(
    ("name", "row", "change"),
    [
        ("CLAIMS", "| IV-A | “so $S(r) - S(r-1)$ is also", row_dropped),
        ("CLAIMS", "| IV-A | “so $S(r) - S(r-1)$ is also", verdict),
        ("CLAIMS", "| measured | ", lambda line: re.sub(r"\| (\d+):", r"| 1\1:", line)),
        ("CLAIMS", "| Abstract | “which are consistent", row_dropped),
        ("ARENA", "| DDP-MAB, ring | 1000 | ", place_better),
        ("ARENA", "| DDP-MAB, ring | 1000 | ", interval_lost),
        ("arena_T1e5", "| CDP-MAB | nobody", row_dropped),
        ("arena_T1e5", "| CDP-MAB | 1000 | ", ends_swapped),
        ("arena_leak_T1e6", "| whoever sees actions alone", row_dropped),
        ("arena_regret_T1e4", "| Dist-DP-SE | ", interval_lost),
        ("arena_differ_T1e4", "| KL-UCB, pooled | ", ends_swapped),
        ("audit", "| CDP-MAB, claim 1 | ", verdict),
        ("multiverse", "| 8 | ", columns),
        ("readings", "| 10000 | ", digit),
        ("ratings_leak", "| 10000 | CDP-MAB | ", digit),
        ("table1_graphs", "| 10000 | ring | ", digit),
        ("table1_graphs", "| 100000 | ring | ", rows_doubled),
        ("table2_hybrid", "| T | case", columns),
        ("arena_protocols", "| ring | 100 | GIS | ", columns),
        ("arena_ledger", "| CDP-MAB | the agents", digit),
    ],
)
def test_a_broken_table_is_caught(name: str, row: str, change: Callable[[str], str]) -> None:
    """Would catch a reader of tables that lets one of these pass."""
    lines = PAGES[name].split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith(row))
    new = change(lines[place]).split("\n")
    broken = [*lines[:place], *(line for line in new if line), *lines[place + 1 :]]
    assert broken != lines
    assert faults(name, "\n".join(broken)) != []
