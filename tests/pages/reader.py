"""Reads the published pages back, and holds them against the tables beside them and each other.

It knows nothing of what writes them: only what a reader sees. Each function returns the faults that
it finds, a sentence each; a page without fault has none.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
NUMBER = r"-?[\d,]+"
INTERVAL = rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]"
SENTENCE = re.compile(
    r"\* (?P<about>.*?):(?: of (?P<ran>\d+) of (?P<all>\d+) contestants,)? (?P<best>[^:]*?) has "
    rf"the smallest mean, {INTERVAL}(?:; cannot be told from it: (?P<alike>.*?))?"
    rf"(?:; (?P<behind>[^;]*?) has {INTERVAL} more \((?P<percent>[\d,.e+-]+) %\))? "
    r"\((?P<seeds>\d+) seeds(?P<fewer>, those that all have)?\)\."
    r"(?: They differ in trust or leak \((?P<takes>.*?)\)\.)?(?P<absent>(?: Not run, .*)?)"
)


class Row(NamedTuple):
    """Who took part, as a table has it: seeds, mean of regret with its ends, trust, leak."""

    label: str
    seeds: int
    regret: tuple[float, float, float]
    trust: str = ""
    leak: str = ""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def interval(text: str) -> tuple[float, float, float]:
    found = re.fullmatch(r"(\S+)(?: \[(\S+), (\S+)\])?", text)
    assert found, text
    middle, low, high = (number(each) if each else math.nan for each in found.groups())
    return (middle, middle, middle) if math.isnan(low) else (middle, low, high)


def tables(lines: Sequence[str]) -> list[list[dict[str, str]]]:
    """Returns the Markdown tables of some lines, rows by their headings."""
    found: list[list[dict[str, str]]] = []
    heads: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if not line.startswith("|"):
            continue
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not before.startswith("|"):
            heads = cells
            found.append([])
        elif set(line) - set("|-"):
            found[-1].append(dict(zip(heads, cells, strict=True)))
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- the arena ---

BITS = {1, 7, 64}
VIEW = re.compile(r"View: \*\*(.*?)\*\*; accountant: (.*?)\. .*")
MATCHED = re.compile(
    r"At matched trust, (T = \S+), by (whoever .*?), (pure )?ε = (\S+?)( up to .*)?"
)
YARDSTICK = re.compile(
    rf"(.*?) Yardstick: (.*?) by every agent alone, which tells nobody anything, has {INTERVAL}; "
    r"surely less than that has: (.*)\."
)


def arena(folder: Path, page: str | None = None) -> list[str]:
    """Returns the faults of ARENA.md, or of a text in its place."""
    text = (folder / "ARENA.md").read_text("utf-8") if page is None else page
    faults = []
    parts = [part.partition("\n")[::2] for part in re.split(r"^## ", text, flags=re.M)[1:]]
    # Whoever took part at one horizon is a contestant at all of them.
    everybody = {
        (row["algorithm"], row["who is trusted"], _group(row)[1])
        for head, body in parts
        if head.startswith("T = ")
        for row in tables(body.split("\n"))[0]
    }
    bits: dict[str, set[int]] = {}
    for head, body in parts:
        if found := re.fullmatch(r"T = 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", head):
            power = int(found[1].translate(RAISED))
            found_here = _horizon(folder, power, head, body, everybody, bits)
            faults += [f"{head}: {fault}" for fault in found_here]
        elif head == "Who sees what":
            ((*told,),) = tables(body.split("\n"))
            kept = rows_of(folder / "arena_ledger.csv")
            faults += [] if told == kept else ["the ledger is not that of its CSV"]
        elif head == "The authors' own settings":
            ((*told,),) = tables(body.split("\n"))
            faults += _same_rows(told, rows_of(folder / "arena_settings.csv"), "settings")
            faults += [fault for row in told for fault in _agrees(row)]
    faults += [f"{label}: {n} bits a number" for label, n in bits.items() if len(n) > 1]
    return faults


def _group(row: dict[str, str]) -> tuple[str, str]:
    """Returns what has to be alike in a ranking: trust, and what leaks in messages, or actions."""
    told = row["epsilon of messages"]
    return row["who is trusted"], row["epsilon of actions"] if told.startswith("noth") else told


def _same_rows(
    told: Sequence[dict[str, str]], kept: Sequence[dict[str, str]], what: str
) -> Iterable[str]:
    """Holds a table of the page against the CSV beside it, cell by cell."""
    if len(told) != len(kept):
        yield f"{what}: {len(told)} rows, {len(kept)} in the CSV"
    for own, row in zip(told, kept, strict=False):
        for head, cell in own.items():
            if f"{head}, lower" not in row:
                if cell != row[head]:
                    yield f"{what}: {head} of {own['algorithm']} is {row[head]}"
                continue
            values = [float(row[f"{head}{end}"]) for end in ("", ", lower", ", upper")]
            texts = re.findall(r"-?\d[\d,.]*(?:e[+-]?\d+)?", cell)
            if len(texts) == 1:
                texts = texts * 3
            if len(texts) != 3 or not all(map(_is, texts, values)):
                yield f"{what}: {head} of {own['algorithm']} is {values}, not {cell}"


def _is(text: str, value: float) -> bool:
    """Tells whether a printed number is this one, to the digits that are printed."""
    mantissa, _, power = text.replace(",", "").partition("e")
    places = len(mantissa.partition(".")[2])
    half = 0.5001 * 10.0 ** (int(power or 0) - places)
    return abs(float(text.replace(",", "")) - value) <= max(half, 1e-9 * abs(value))


def _agrees(row: dict[str, str]) -> Iterable[str]:
    """Holds the verdict on authors' settings against what it says itself, and what is known."""
    said = row["agrees?"]
    if known := re.match(r"([\d,]+) / ([\d,]+) \(", row["known"]):
        off = [
            100 * (interval(row[head])[0] / number(known[place]) - 1)
            for place, head in ((1, "regret at T"), (2, "links at T"))
        ]
        told = re.fullmatch(r"(yes|no): regret ([+-][\d.]+) %, links ([+-][\d.]+) %", said)
        if not told or any(abs(float(told[i + 2]) - each) > 0.06 for i, each in enumerate(off)):
            yield f"settings: {row['setting']} is off by {off}"
        elif (told[1] == "yes") != all(abs(each) <= 5 for each in off):
            yield f"settings: {row['setting']} is said to agree: {told[1]}"
    elif end := re.search(r"axis ends at ([\d,]+)", row["known"]):
        above = interval(row["regret at T"])[0] > number(end[1])
        if above != said.startswith("no: above the axis"):
            yield f"settings: {row['algorithm']} lies above the axis: {above}"
    elif row["known"] == "a picture without numbers" and not said.startswith("cannot be said"):
        yield f"settings: of {row['algorithm']} nothing is known"


def _horizon(
    folder: Path,
    power: int,
    head: str,
    body: str,
    everybody: set[tuple[str, str, str]],
    bits: dict[str, set[int]],
) -> Iterable[str]:
    lines = body.split("\n")
    table, *matched = tables(lines)
    rows = {
        row["algorithm"]: Row(
            row["algorithm"],
            int(row["seeds"]),
            interval(row["regret at T"]),
            row["who is trusted"],
            row["epsilon of messages"],
        )
        for row in table
    }
    yield from _same_rows(table, rows_of(folder / f"arena_T1e{power}.csv"), "the table")
    if len(rows) != len(table):
        yield "somebody is in the table twice"
    for label, row in rows.items():
        if not row.regret[1] <= row.regret[0] <= row.regret[2]:
            yield f"{label}: its mean lies outside of its interval"
    if (own := interval(table_cell(table, "CDP-MAB", "minus CDP-MAB, same seeds")))[0] != 0:
        yield f"CDP-MAB differs from itself by {own[0]}"
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for each in table:
        groups.setdefault(_group(each), []).append(each)
        sent, carried = (interval(each[name])[0] for name in ("numbers sent", "bits sent"))
        if sent:
            bits.setdefault(each["algorithm"], set()).add(round(carried / sent))
            if round(carried / sent) not in BITS:
                yield f"{each['algorithm']}: {carried / sent} bits a number"
    for group, members in groups.items():
        places = {each["algorithm"]: each["place"] for each in members}
        yield from (f"{group}: {fault}" for fault in _places([rows[n] for n in places], places))
    leaks = rows_of(folder / f"arena_leak_T1e{power}.csv")
    differ = rows_of(folder / f"arena_differ_T1e{power}.csv")
    yield from _matched(lines, matched, leaks)
    said = [line for line in lines if line.startswith("* ")]
    about = [
        found[1] for line in said if (found := re.match(r"\* (At matched .*?ε = [^:]*):", line))
    ]
    wanted = {(row["view"], row["accountant"]) for row in leaks}
    if len(about) != len(set(about)) or len(about) != 3 * len(wanted):
        yield "a leak of a view has no sentence, or has two"
    for line in said:
        if line.startswith("* Within 5 % of uniform play"):
            yield from _useless(line, rows, everybody)
            continue
        if yardstick := YARDSTICK.fullmatch(line):
            line = yardstick[1]
        found = SENTENCE.fullmatch(line)
        if found is None:
            yield f"cannot be read: {line}"
            continue
        if view := MATCHED.fullmatch(found["about"]):
            accountant = "pure ε" if view[3] else f"ε{view[5]}"
            here = [
                row
                for row in leaks
                if (row["view"], row["accountant"]) == (view[2], accountant)
                and float(row["ε"]) == float(view[4])
            ]
            if view[1] != head or not here:
                yield f"no such leak: {found['about']}"
                continue
            pool = [_of_csv(row, "regret at T") for row in here if not row["why not run"]]
            start, whole = found["about"], {row["algorithm"] for row in here}
            for row in here:
                why = row["why not run"]
                if why and not re.search(
                    rf"Not run, {re.escape(why)}: [^.]*{re.escape(row['algorithm'])}", line
                ):
                    yield f"{start}: {row['algorithm']} is absent {why}"
            if yardstick:
                yield from _quiet(yardstick, rows, pool)
            elif "actions" not in view[2]:
                yield f"{start}: no yardstick"
        else:
            start, _, at = found["about"].rpartition(", ")
            if at != head:
                yield f"{start}: {at} stands below {head}"
            if start == "Of all":
                pool, whole = list(rows.values()), {label for label, *_ in everybody}
            elif trusted := re.fullmatch(
                r"Trusted: (.*); (?:messages|actions): (?:ε = )?(.*)", start
            ):
                whole = {label for label, *own in everybody if tuple(own) == trusted.groups()}
                pool = [rows[label] for label in rows if label in whole]
                pool = [row._replace(leak=trusted[2]) for row in pool]
            elif start == "Where agents differ":
                whole = {label for label, *_ in everybody}
                pool = [
                    _of_csv(row, "agents differ", "seeds, where they differ")._replace(
                        trust=rows[row["algorithm"]].trust, leak=rows[row["algorithm"]].leak
                    )
                    for row in differ
                ]
            else:
                yield f"of nobody known: {line}"
                continue
        yield from (f"{start}: {fault}" for fault in _sentence(found, pool, whole))


def _places(members: Sequence[Row], places: dict[str, str]) -> Iterable[str]:
    """Holds places against the intervals of those that are ranked."""
    ends = {}
    for label, text in places.items():
        found = re.fullmatch(r"(\d+)(?:–(\d+))? of (\d+)", text)
        if not found or int(found[3]) != len(members):
            yield f"{label} has place {text} of {len(members)}"
            return
        ends[label] = int(found[1]), int(found[2] or found[1])
        if not 1 <= ends[label][0] <= ends[label][1] <= len(members):
            yield f"{label} has place {text}"
    for one in members:
        for other in members:
            apart = one.regret[2] < other.regret[1] and one.seeds == other.seeds
            if apart and ends[one.label][0] > ends[other.label][0]:
                yield f"{one.label} is surely better than {other.label}, and has a later place"
    if members and min(first for first, _ in ends.values()) != 1:
        yield "nobody may be the first"
    if members and max(last for _, last in ends.values()) != len(members):
        yield "nobody may be the last"


def _matched(
    lines: Sequence[str],
    shown: Sequence[list[dict[str, str]]],
    leaks: Sequence[dict[str, str]],
) -> Iterable[str]:
    """Holds the tables of views against their CSV."""
    views = [found.groups() for line in lines if (found := VIEW.fullmatch(line))]
    if views != list(dict.fromkeys((row["view"], row["accountant"]) for row in leaks)):
        yield f"the views are {views}"
    for view, table in zip(views, shown, strict=False):
        own = [row for row in leaks if (row["view"], row["accountant"]) == view]
        ran = [row for row in own if not row["why not run"]]
        if {row["algorithm"] for row in table} != {row["algorithm"] for row in ran}:
            yield f"{view[0]}: others took part"
            continue
        for row in ran:
            here = next(each for each in table if each["algorithm"] == row["algorithm"])
            cell, _, place = here[f"ε = {float(row['ε']):g}"].partition("; ")
            first, last = row["place from"], row["to"]
            told = f"{first} of {row['of']}" if first == last else f"{first}–{last} of {row['of']}"
            values = [float(row[f"regret at T{end}"]) for end in ("", ", lower", ", upper")]
            texts = re.findall(r"-?\d[\d,.]*(?:e[+-]?\d+)?", cell)
            if len(texts) != 3 or not all(map(_is, texts, values)) or place != told:
                yield f"{view[0]}, ε = {row['ε']}: {row['algorithm']} has {values}, {told}"
            if here["seeds"] != row["seeds"]:
                yield f"{view[0]}: {row['algorithm']} has {row['seeds']} seeds"


def _quiet(found: re.Match[str], rows: dict[str, Row], pool: Sequence[Row]) -> Iterable[str]:
    """Holds the yardstick against the table, and whoever is said to be better."""
    mine = rows[found[2]]
    if any(
        abs(number(found[i]) - each) > 1 for i, each in zip((3, 4, 5), mine.regret, strict=True)
    ):
        yield f"the yardstick has {mine.regret}"
    better = [] if found[6] == "nobody" else found[6].split(" / ")
    by = {row.label: row for row in pool}
    for label in better:
        if label not in by or by[label].regret[0] >= mine.regret[0]:
            yield f"{label} is said to have less than the yardstick"
    for row in pool:
        if row.regret[2] < 0.9 * mine.regret[1] and row.label not in better:
            yield f"{row.label} has less than the yardstick, and is not said to"


def table_cell(table: Sequence[dict[str, str]], label: str, head: str) -> str:
    return next(row[head] for row in table if row["algorithm"] == label)


def _of_csv(row: dict[str, str], name: str, seeds: str = "seeds") -> Row:
    ends = float(row[name]), float(row[f"{name}, lower"]), float(row[f"{name}, upper"])
    return Row(row["algorithm"], int(row[seeds]), ends)


def _useless(
    line: str, rows: dict[str, Row], everybody: set[tuple[str, str, str]]
) -> Iterable[str]:
    told, _, absent = line.partition(" Not run, ")
    named = told.rpartition(": ")[2].removesuffix(".").split(" / ")
    play = rows["uniform play"]
    for label, row in rows.items():
        # Intervals over unlike seeds decide nothing next to the edge.
        if label in named and row.regret[2] < 0.95 * play.regret[1]:
            yield f"{label} is said to be no better than uniform play, and is"
        if label != play.label and label not in named and row.regret[1] > play.regret[2]:
            yield f"{label} is worse than uniform play, and is not said to be"
    yield from (f"{label} is in no table" for label in named if label not in (*rows, "nobody"))
    gone = {label for label, *_ in everybody if label not in rows}
    yield from (f"of {label} nothing is said" for label in gone if label not in absent)


def _sentence(found: re.Match[str], pool: Sequence[Row], whole: set[str]) -> Iterable[str]:
    """Holds one sentence against those that took part, and those that might have."""
    by = {row.label: row for row in pool}
    alike = found["alike"].split(" / ") if found["alike"] else []
    behind = [found["behind"]] if found["behind"] else []
    named = [found["best"], *alike, *behind]
    for label in named:
        if label not in by:
            yield f"{label} took no part"
    if any(label not in by for label in named):
        return
    ends = [number(found[at]) for at in (5, 6, 7)]
    if not ends[1] <= ends[0] <= ends[2]:
        yield "the mean lies outside of its interval"
    absent = re.findall(r"Not run, [^:]*: (.*?)\.(?= Not run|$)", found["absent"])
    gone = [label for labels in absent for label in labels.split(" / ")]
    if clash := sorted(set(gone) & set(by)):
        yield f"{clash} is said to be absent, and took part"
    if silent := sorted(whole - set(by) - set(gone)):
        yield f"of {silent} nothing is said"
    if len(set(gone)) != len(gone):
        yield "somebody is absent twice"
    if bool(gone) != bool(found["ran"]):
        yield "who is absent is not counted, or is not named"
    elif found["ran"]:
        if int(found["ran"]) != len(pool):
            yield f"{found['ran']} are said to have taken part, {len(pool)} did"
        if int(found["all"]) - int(found["ran"]) != len(gone):
            yield "the absent are not as many as are named"
    seeds = sorted({row.seeds for row in pool})
    if int(found["seeds"]) != seeds[0] or bool(found["fewer"]) != (len(seeds) > 1):
        yield f"the seeds are {seeds}"
    best = by[found["best"]]
    order = sorted(pool, key=lambda row: row.regret[0])
    if any(row.regret[2] < best.regret[1] for row in pool):
        yield f"{order[0].label} is far below {best.label}"
    if best.seeds == seeds[0] and any(
        abs(a - b) > 1 for a, b in zip(ends, best.regret, strict=True)
    ):
        yield f"the mean is {best.regret}"
    if len(seeds) == 1:
        if best.label != order[0].label and order[0].label not in alike:
            yield f"{order[0].label} has the smallest mean, {order[0].regret[0]:,.0f}"
        rest = [row for row in order if row.label not in (best.label, *alike)]
        # Who has the same mean stands in any order.
        nearest = [row.label for row in rest if row.regret[0] == rest[0].regret[0]]
        if bool(nearest) != bool(behind) or not set(behind) <= set(nearest):
            yield f"next is {nearest}"
    if not behind and len(pool) != 1 + len(alike):
        yield "somebody who took part is neither alike nor behind"
    if behind:
        more = [number(found[at]) for at in (10, 11, 12)]
        if not 0 < more[1] <= more[0] <= more[2]:
            yield "the difference is not above 0, or lies outside of its interval"
        if len(seeds) == 1 and abs(by[behind[0]].regret[0] - best.regret[0] - more[0]) > 1.5:
            yield f"the difference is {by[behind[0]].regret[0] - best.regret[0]:,.0f}"
        share = 100 * more[0] / ends[0]
        if abs(number(found["percent"]) - share) > 0.006 * share:
            yield f"the difference is {share:.3g} %"
    # Who trusts alike and leaks otherwise is named besides.
    unlike = [row.label for row in pool if row.trust == best.trust and row.leak != best.leak]
    takes = {label: (by[label].trust, by[label].leak) for label in [*named, *unlike]}
    said = dict(
        re.fullmatch(r"(.*?): (.*), ε: (.*)", each).group(1, 0)  # type: ignore[union-attr]
        for each in (found["takes"].split(" / ") if found["takes"] else [])
    )
    told = {label: f"{label}: {trust}, ε: {leak}" for label, (trust, leak) in takes.items()}
    if said != (told if len(set(takes.values())) > 1 else {}):
        yield f"trust and leak are {told}"


# --- the paper's sentences ---

LITTLE = "holds by less than 1 %"
OTHERS = ("not contradicted", "not attained", "misprint")
# What was found stands below one of these heads.
FOUND = ("found", "computed", "printed, and what follows")
KINDS = (
    (
        "holds under some conditions only",
        lambda v: v.startswith(("holds only", "holds but", "holds; not attained")),
    ),
    ("holds or not decided", lambda v: v.startswith("holds; ")),
    ("does not hold or is not decided", lambda v: v.startswith("does not hold,")),
)


def claims(folder: Path, page: str | None = None) -> list[str]:
    """Returns the faults of CLAIMS.md, or of a text in its place."""
    text = (folder / "CLAIMS.md").read_text("utf-8") if page is None else page
    parts = re.split(r"^## ", text, flags=re.M)
    ((*summary,),) = tables(parts[0].split("\n"))
    counted = {row["list"]: row["sentences"] for row in summary}
    found = {
        part.partition("\n")[0]: tables(part.split("\n"))[0] for part in parts[1:] if "|" in part
    }
    faults: list[str] = []
    kept = rows_of(folder / "claims.csv")
    parts_of = {
        "measured": "Measured",
        "bounds with explicit constants": "Bounds with explicit constants",
        "settled by arithmetic": "Settled by arithmetic",
        "misprints": "Misprints",
        "not judged": "Not judged, and why",
    }
    for name, head in parts_of.items():
        own = {row["row"] for row in kept if row["list"] == name}
        if len(own) != len(found[head]):
            faults.append(f"{name}: the CSV has another number of sentences")
        told = counted[name]
        if "verdict" not in found[head][0]:
            if told != str(len(found[head])):
                faults.append(f"{name}: another number of rows")
            continue
        tally = Counter(_kind(row["verdict"]) for row in found[head])
        listed = dict(re.findall(r"(\w[^=]*)=(\d+)(?:, )?", _flipped(told)))
        if {kind: str(many) for kind, many in tally.items()} != listed:
            faults.append(f"{name}: the head says {told}, the rows are {dict(tally)}")
        if not told.startswith(f"{len(found[head])}: "):
            faults.append(f"{name}: has {len(found[head])} sentences")
    shown = [row for head in list(parts_of.values())[:-1] for row in found[head]]
    for place, row in enumerate(shown, 1):
        own_rows = [each for each in kept if each["row"] == str(place)]
        faults += [f"row {place}: {fault}" for fault in _claim(row, own_rows)]
    return faults


def _flipped(told: str) -> str:
    """Writes "36 holds, 3 holds or not decided" with the number behind."""
    parts = (each.partition(" ") for each in told.partition(": ")[2].split(", "))
    return ", ".join(f"{kind}={many}" for many, _, kind in parts)


def _kind(verdict: str) -> str:
    stated = verdict.partition("**")[2].partition("**")[0]
    return next((kind for kind, fits in KINDS if fits(stated)), stated)


def _claim(row: dict[str, str], kept: Sequence[dict[str, str]]) -> Iterable[str]:
    """Holds a row of the page against its numbers."""
    if not kept or row["section"] != kept[0]["section"]:
        yield "the CSV has another section here"
        return
    if kept[0]["quote"] not in row["the paper's words"].replace(r"\|", "|"):
        yield "the CSV has another quotation here"
    lines = next(row[head] for head in FOUND if head in row).split("<br>")
    named = {each["condition"] for each in kept}
    cells = {
        condition: line
        for line in lines
        for condition in named
        if line.startswith(f"{condition}: ") or (condition == "" and named == {""})
    }
    if row["verdict"] != kept[0]["verdict"]:
        yield "the CSV has another verdict"
    if set(cells) != named or len(lines) != len(named):
        yield f"the conditions are {sorted({each['condition'] for each in kept})}"
        return
    for each in kept:
        if each["estimate"] and not _occurs(cells[each["condition"]], each):
            yield f"{each['condition']}: {each['quantity']} {each['estimate']} is not told"
    stated = {
        each["condition"]: each["verdict at stated"] for each in kept if each["counted"] == "True"
    }
    kinds, told = set(stated.values()), _kind(row["verdict"])
    steps = [
        float(each["effect"])
        for each in kept
        if each["counted"] == "True" and each["rule"] == "order"
    ]
    little = kinds == {"holds"} and bool(steps) and min(steps) < 0.01
    if little != (told == LITTLE):
        yield f"the verdict is {told}, the effects are {steps}"
    told = "holds" if told == LITTLE else told
    for pure in ("holds", "does not hold", "not decided", *OTHERS):
        if (kinds == {pure}) != (told == pure):
            yield f"the verdict is {told}, the numbers say {stated}"
    scales = {
        name: {each[f"verdict at {name}"] for each in kept if each["counted"] == "True"}
        for name in ("half", "twice")
    }
    for name, verdicts in scales.items():
        if (verdicts == kinds or not kinds) and len(kinds) == 1:
            if f"at {name} the tolerance" in row["verdict"]:
                yield f"nothing changes at {name} the tolerance"
        elif len(kinds) == 1 and f"at {name} the tolerance" not in row["verdict"]:
            yield f"the change at {name} the tolerance is not told"


def _occurs(cell: str, kept: dict[str, str]) -> bool:
    """Tells whether a cell has a number, as it is or in per cent, to the digits it is written."""
    value = float(kept["estimate"])
    for text in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", cell):
        plain = text.replace(",", "")
        mantissa, _, power = plain.partition("e")
        places = len(mantissa.partition(".")[2])
        half = 0.5001 * 10.0 ** (int(power or 0) - places)
        if any(abs(float(plain) - each) <= half for each in (value, 100 * value)):
            return True
    return not math.isfinite(value) or abs(value) < 5e-7


def all_faults(folder: Path) -> dict[str, list[Any]]:
    """Returns the faults of all pages."""
    return {"ARENA.md": arena(folder), "CLAIMS.md": claims(folder)}
