"""Reads the published pages back, and holds them against the tables beside them and each other.

It knows nothing of what writes them: only what a reader sees. A page with a fault fails an assert.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_RAISE = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
TRIPLE = rf"{NUMBER} \[{NUMBER}, {NUMBER}\]"
INTERVAL = rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]"
# A number that stands by itself: no part of a word, of a power of ten or of another number.
PRINTED = re.compile(
    r"(?<![\w.,⁻])(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"(?![\w⁰¹²³⁴⁵⁶⁷⁸⁹]|[.,]\d)( %)?"
)


class Row(NamedTuple):
    """Who took part, as a table has it: seeds, mean of regret with its ends, trust, leak, place."""

    label: str
    seeds: int
    regret: tuple[float, float, float]
    trust: str = ""
    leak: str = ""
    place: str = ""


def number(text):
    return float(text.replace(",", ""))


def same(text, value):
    """Tells whether a printed number is this value, rounded to the digits that are printed."""
    plain = text.replace(",", "")
    mantissa, _, power = plain.partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    # What is left over is a float's own error, where a value lies half-way.
    return abs(float(plain) - value) <= half + 1e-12 * abs(value)


def interval(text):
    found = re.fullmatch(r"(\S+)(?: \[(\S+), (\S+)\])?", text)
    assert found, text
    middle, low, high = (number(each) if each else math.nan for each in found.groups())
    return (middle, middle, middle) if math.isnan(low) else (middle, low, high)


def tables(lines):
    """Returns the Markdown tables of some lines, rows by their headings."""
    found = []
    heads = []
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


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- the arena ---

BITS = {1, 7, 64}
# Parts of ARENA.md whose table is a CSV as well, by the start of their heads.
BESIDE = {"Who sees what": "arena_ledger", "The authors' own settings": "arena_settings"}
BESIDE |= {"What is possible": "arena_caps", "In the long run": "arena_far"}
# Every view but that of actions has the yardstick at each of these leaks.
TOLD = (0.1, 1.0, 10.0)
# How near known numbers have to be, in per cent.
NEAR = 5.0
VIEW = re.compile(r"View: \*\*(.*?)\*\*; accountant: (.*?)\. .*")
YARDSTICK = re.compile(
    r"\* ε = (\S+): Yardstick: (.*?) by every agent alone, which tells nobody anything, has "
    rf"{INTERVAL}; surely less than that has: (.*)\."
)


def arena(folder, text):
    """Holds the text of ARENA.md."""
    parts = _parts(text)
    # Whoever took part at one horizon is a contestant at all of them.
    first = [tables(body.split("\n"))[0] for head, body in parts if head.startswith("T = ")]
    everybody = {(row["algorithm"], *_group(row)) for rows in first for row in rows}
    bits = {}
    for head, body in parts:
        if found := re.fullmatch(r"T = 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", head):
            power = int(found[1].translate(RAISED))
            _horizon(folder, power, head, body, everybody, bits)
        for start, name in BESIDE.items():
            if head.startswith(start):
                ((*told,),) = tables(body.split("\n"))
                _same_rows(told, rows_of(folder / f"{name}.csv"))
                if name == "arena_settings":
                    _settings(told)
    assert all(len(numbers) == 1 for numbers in bits.values()), bits


def _parts(text):
    """Returns the sections of a page with their heads."""
    found = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.M)[1:])
    return [(head, body) for head, _, body in found]


def _group(row):
    """Returns what has to be alike in a ranking: trust, and what leaks in messages, or actions."""
    told = row["epsilon of messages"]
    return row["who is trusted"], row["epsilon of actions"] if told.startswith("noth") else told


def _absent(text):
    """Returns who was not run, by the reason why."""
    found = re.findall(r"Not run, ([^:]*): (.*?)\.(?= |$)", text)
    return {why: labels.split(" / ") for why, labels in found}


def _same_rows(told, kept):
    """Holds a table of the page against the CSV beside it, cell by cell."""
    assert len(told) == len(kept), f"{len(told)} rows, {len(kept)} in the CSV"
    for own, row in zip(told, kept, strict=True):
        for head, cell in own.items():
            if not row[head] or f"{head}, lower" not in row:
                assert cell == row[head] or _rounded(cell, row[head]), (head, own, row)
            else:
                assert _same_cell(cell, _values(row, head)), (head, own, row)


def _rounded(cell, text):
    """Tells whether a cell is a number, to the digits that it prints."""
    try:
        return same(cell, float(text))
    except ValueError:
        return False


def _values(row, head):
    return [float(row[f"{head}{end}"]) for end in ("", ", lower", ", upper")]


def _same_cell(cell, values):
    """Tells whether "mean [low, high]" is these three; one number stands for three alike."""
    found = re.fullmatch(r"(\S+)(?: \[(\S+), (\S+)\])?", cell)
    if not found or not all(PRINTED.fullmatch(each) for each in found.groups() if each):
        return False
    texts = found.groups() if found[2] else [found[1]] * 3
    if not found[2] and len(set(values)) > 1:
        return False
    return all(same(text, value) for text, value in zip(texts, values, strict=True))


def _settings(rows):
    """Holds what is said of authors' settings against numbers that are known, and the axis."""
    for row in rows:
        said, mine = row["agrees?"], interval(row["regret at T"])[0]
        of = f"{row['algorithm']}, {row['setting']}"
        near = [each for each in rows if each["setting"] == row["setting"]]
        beside = {each["algorithm"]: interval(each["regret at T"])[0] for each in near}
        if known := re.match(r"([\d,]+) / ([\d,]+) \(", row["known"]):
            off = [
                100 * (interval(row[head])[0] / number(known[place]) - 1)
                for place, head in ((1, "regret at T"), (2, "links at T"))
            ]
            told = re.fullmatch(r"(yes|no): regret ([+-][\d.]+) %, links ([+-][\d.]+) %", said)
            assert told and all(abs(float(told[i + 2]) - off[i]) <= 0.06 for i in range(2)), of
            assert (told[1] == "yes") == all(abs(each) <= NEAR for each in off), of
        elif end := re.search(r"axis ends at ([\d,]+)", row["known"]):
            own = row["algorithm"] == "LCC-UCB"
            others = [each for label, each in beside.items() if label != "LCC-UCB"]
            between = not own or min(others) < mine < max(others)
            if mine > number(end[1]):
                wanted = f"no: above the axis, which ends at {end[1]}; why is not known"
            elif between:
                wanted = "yes: below the end of the axis" + ", between the other two" * own
            else:
                wanted = "no: not between the other two"
            assert said == wanted, f"{of}: {wanted}"


def _horizon(folder, power, head, body, everybody, bits):
    lines = body.split("\n")
    table, *matched = tables(lines)
    kept = rows_of(folder / f"arena_T1e{power}.csv")
    _same_rows(table, kept)
    rows = _entrants(kept)
    shown = {row["algorithm"]: row for row in table}
    assert len(shown) == len(table), "somebody is in the table twice"
    for own in table:
        assert (ends := interval(own["regret at T"]))[1] <= ends[0] <= ends[2], own["algorithm"]
    assert interval(shown["CDP-MAB"]["minus CDP-MAB, same seeds"])[0] == 0
    reference = next(row for row in kept if row["algorithm"] == "CDP-MAB")
    for row in kept:
        if row["seeds"] == reference["seeds"]:
            apart = float(row["regret at T"]) - float(reference["regret at T"])
            told = float(row["minus CDP-MAB, same seeds"])
            assert abs(told - apart) <= 1e-9 * float(row["regret at T"]), row["algorithm"]
    groups = {}
    for before, each in zip([None, *table], table, strict=False):
        assert _group(each) not in groups or not before or _group(before) == _group(each)
        groups.setdefault(_group(each), []).append(each)
        sent, carried = (interval(each[name])[0] for name in ("numbers sent", "bits sent"))
        if sent:
            many = round(carried / sent)
            bits.setdefault(each["algorithm"], set()).add(many)
            # Both are rounded: to whole numbers, or to six digits.
            slack = max(0.5 * many, 1e-5 * carried) + 1
            assert many in BITS and abs(carried - many * sent) <= slack, each["algorithm"]
    for members in groups.values():
        _places([rows[each["algorithm"]]._replace(place=each["place"]) for each in members])
    leaks = rows_of(folder / f"arena_leak_T1e{power}.csv")
    _matched(lines, matched, leaks)
    (line,) = (line for line in lines if line.startswith("Surely within"))
    _useless(line, head, rows)
    gone = {label for label, *_ in everybody} - set(rows)
    assert set(_by_label(line)) == gone, f"not run are {gone}"
    _beside(lines, leaks, rows)


def _beside(lines, leaks, rows):
    """Holds who is said not to be in a view, and who has less than who tells nobody anything."""
    at, absent, told = None, {}, []
    for line in lines:
        if found := VIEW.fullmatch(line):
            at = found.groups()
        elif line.startswith("Not run, "):
            absent[at] = _absent(line)
        elif line.startswith("* ε = "):
            found = YARDSTICK.fullmatch(line)
            assert found, f"cannot be read: {line}"
            told.append((at, float(found[1])))
            here = [row for row in leaks if _of_view(row) == (*at, float(found[1]))]
            _quiet(found, rows, [_ran(row) for row in here if not row["why not run"]])
    views = list(dict.fromkeys(_of_view(row)[:2] for row in leaks))
    for view in views:
        whys = _whys(row for row in leaks if _of_view(row) == (*view, TOLD[0]))
        assert absent.get(view, {}) == whys, f"{view[0]}: not run are {whys}"
    # Whoever sees actions sees those of the yardstick as well.
    views = [view for view in views if "actions" not in view[0]] * ("KL-UCB" in rows)
    assert told == [(view, leak) for view in views for leak in TOLD], told


def _entrants(kept):
    """Returns who took part, with the numbers of a CSV."""
    return {
        row["algorithm"]: _of_csv(row, "regret at T")._replace(
            trust=row["who is trusted"], leak=row["epsilon of messages"], place=row["place"]
        )
        for row in kept
    }


def _of_view(row):
    return row["view"], row["accountant"], float(row["ε"])


def _ran(row):
    """Returns a row of matched trust of somebody who took part."""
    first, last = row["place from"], row["to"]
    place = f"{first if first == last else f'{first}–{last}'} of {row['of']}"
    return _of_csv(row, "regret at T")._replace(place=place)


def _whys(rows):
    """Returns who of a view was not run, by the reason why."""
    found = {}
    for row in rows:
        if why := row["why not run"]:
            found.setdefault(why, []).append(row["algorithm"])
    return found


def _by_label(absent):
    """Returns the reason of each who was not run."""
    found = _absent(absent) if isinstance(absent, str) else absent
    return {label: why for why, labels in found.items() for label in labels}


def _places(members):
    """Holds places against the intervals of those that are ranked."""
    ends = {}
    for row in members:
        assert row.place.endswith(f" of {len(members)}"), row
        ends[row.label] = _range(row)
        assert 1 <= ends[row.label][0] <= ends[row.label][1] <= len(members), row.label
    for one in members:
        for other in members:
            # Places are simultaneous over all pairs: bars must be further apart than touching.
            bars = one.regret[2] - one.regret[1] + other.regret[2] - other.regret[1]
            gap = other.regret[1] - one.regret[2]
            apart = gap > bars / 2 and one.seeds == other.seeds
            assert not apart or not any(map(int.__gt__, ends[one.label], ends[other.label]))
    taken = {rank for first, last in ends.values() for rank in range(first, last + 1)}
    assert taken == set(range(1, len(members) + 1)), "a place that nobody may have"


def _matched(lines, shown, leaks):
    """Holds the tables of views against their CSV."""
    views = [found.groups() for line in lines if (found := VIEW.fullmatch(line))]
    assert views == list(dict.fromkeys(_of_view(row)[:2] for row in leaks))
    named = {}
    for row in leaks:
        named.setdefault(_of_view(row), set()).add(row["algorithm"])
    # Whoever takes part in one view is a contestant in all of them.
    everybody = set().union(*named.values())
    for at, labels in named.items():
        assert labels == everybody, f"of {sorted(everybody - labels)} nothing is said at {at}"
    for view, table in zip(views, shown, strict=True):
        ran = [row for row in leaks if _of_view(row)[:2] == view and not row["why not run"]]
        heads = [(row, head) for row in table for head in row if head.startswith("ε = ")]
        cells = {(row["algorithm"], head): (row["seeds"], row[head]) for row, head in heads}
        wanted = {(row["algorithm"], f"ε = {float(row['ε']):g}"): row for row in ran}
        assert set(cells) == set(wanted) and len(cells) == sum(len(row) - 2 for row in table)
        for key, row in wanted.items():
            seeds, (cell, _, place) = cells[key][0], cells[key][1].partition("; ")
            assert _same_cell(cell, _values(row, "regret at T")) and place == _ran(row).place
            assert seeds == row["seeds"], f"{view[0]}: {key[0]} has {row['seeds']} seeds"
        for leak in dict.fromkeys(row["ε"] for row in ran):
            _places([_ran(row) for row in ran if row["ε"] == leak])


def _quiet(found, rows, pool):
    """Holds the yardstick against the table, and whoever is said to be better."""
    assert found[2] in rows and rows[found[2]].leak == "nothing is told", found[2]
    mine = rows[found[2]]
    assert all(same(found[i], each) for i, each in zip((3, 4, 5), mine.regret, strict=True))
    better = [] if found[6] == "nobody" else found[6].split(" / ")
    by = {row.label: row for row in pool}
    for label in better:
        assert label in by and by[label].regret[0] < mine.regret[0], label
    for row in pool:
        # Intervals over unlike seeds have to lie well apart.
        edge = mine.regret[1] * (1 if row.seeds == mine.seeds else 0.9)
        assert row.regret[2] >= edge or row.label in better, row.label


def _of_csv(row, name, seeds="seeds"):
    middle, low, high = _values(row, name)
    return Row(row["algorithm"], int(row[seeds]), (middle, low, high))


def _useless(line, head, rows):
    assert line.startswith(f"Surely within 5 % of uniform play, or worse, {head}: "), head
    found = re.fullmatch(r".*: (.*); not decided: (.*)\.", line.partition(" Not run, ")[0])
    assert found, "who may be within 5 % of uniform play is not told"
    named, undecided = (each.split(" / ") for each in found.groups())
    play = rows["uniform play"]
    for label, row in rows.items():
        # Intervals over unlike seeds decide nothing next to the edge.
        assert label not in (*named, *undecided) or row.regret[2] >= 0.95 * play.regret[1], label
        assert label == play.label or label in named or row.regret[1] <= play.regret[2], label
        shared = min(row.seeds, play.seeds)
        edge = 0.95 * (play.regret[0] + _strays(play, shared))
        own = row.regret[0] - _strays(row, shared)
        assert label in (*named, *undecided, play.label) or own <= edge, label
    assert {*named, *undecided} <= {*rows, "nobody"}, "somebody is in no table"
    assert {*named} & {*undecided} <= {"nobody"}, "somebody is in both lists"


def _strays(row, seeds):
    """Returns how far the mean of the first seeds may be from that of all: four deviations."""
    return 2.05 * (row.regret[2] - row.regret[0]) * math.sqrt(row.seeds / seeds - 1)


def _range(row):
    """Returns the best and the worst place that somebody may have."""
    found = re.fullmatch(r"(\d+)(?:–(\d+))? of \d+", row.place)
    assert found, row
    return int(found[1]), int(found[2] or found[1])


# --- the arena's pictures, in words ---

APART = (
    r"Who has the least and the largest is told by the paired differences of all pairs on common "
    r"seeds \(simultaneous 95 %\)\."
)
# Why somebody was not run.
REASONS = {"because simulating them slot by slot takes too long"}
REASONS |= {"because they are stated for agents alike only", "because this run leaves them out"}
ALTS = {
    "regret": r"(?P<ran>\d+) of (?P<all>\d+) algorithms, by who is trusted\. At (?P<at>T = \S+) "
    r"the least mean regret is that of (?P<best>.*?); the largest is that of (?P<last>.*?)\. "
    rf"CDP-MAB has (?P<cdp>{NUMBER})\. {APART}",
    "links": rf"At (?P<at>T = \S+), of those that send anything, (?P<quiet>.*?) sends least, "
    rf"(?P<few>{NUMBER}) bits(?: \(as few, by intervals: (?P<level>.*?)\))?, and has a regret of "
    rf"(?P<its>{NUMBER}); the least mean regret is that of (?P<best>.*?)\. {APART}",
    "differ": r"Where agents differ, the least mean regret is that of (?P<best>.*?); the largest "
    rf"is that of (?P<last>.*?)\. {APART}",
    "leak": r"Who has the least regret at a leak, or cannot be told from it, with its mean: "
    r"(?P<by>.*)\.",
}


def pictures(folder):
    """Returns the names of the pages of the arena's pictures."""
    return sorted(path.name for what in ALTS for path in folder.glob(f"arena_{what}_T1e*.md"))


def picture(name, folder, text):
    """Holds the text of a page of a picture of the arena."""
    _, what, end = name.split("_")
    power = int(end.removeprefix("T1e"))
    at = f"T = 10{str(power).translate(_RAISE)}"
    lines = text.split("\n")
    shown = re.fullmatch(r"!\[(.*)\]\((.*)\.png\)", lines[0])
    assert shown and shown[2] == name and lines[4] == f"What is to be seen: {shown[1]}"
    links = re.findall(r"\((arena[^)]*?)\.(?:png|csv)\)", text)
    assert set(links) <= {name}, links
    caption = lines[2]
    assert f", {at} slots, " in caption, f"the caption is not of {at}"
    kept = rows_of(folder / f"arena_T1e{power}.csv")
    rows = _entrants(kept)
    every = folder.glob("arena_T1e*.csv")
    everybody = {row["algorithm"] for path in every for row in rows_of(path)}
    beside = rows_of(folder / f"{name}.csv")
    (table,) = tables(lines)
    if what == "regret":
        order = [each["algorithm"] for each in table]
        _same_rows(table, sorted(kept, key=lambda row: order.index(row["algorithm"])))
        _last_slot(kept, beside, 10**power)
    else:
        _same_rows(table, [row for row in beside if not row.get("why not run")])
    # The page of the horizon says who was not run, and why; so does the caption.
    section = dict(_parts((folder / "ARENA.md").read_text("utf-8")))[at]
    (line,) = re.findall(r"^Surely within .*$", section, flags=re.M)
    pool = list(rows.values())
    if what == "differ":
        pool = [_of_csv(row, "agents differ", "seeds, where they differ") for row in beside]
    elif what == "leak":
        pool = [_ran(row) for row in beside if not row["why not run"]]
    many = {row.seeds for row in pool}
    if what == "differ":
        many |= {int(row["seeds, where alike"]) for row in beside}
    first, *fewer = sorted(many, reverse=True)
    told = f" slots, {first} seeds"
    told += f", {' or '.join(map(str, fewer))} of those that take long" if fewer else ""
    assert f"{told}. " in caption, f"the seeds are {sorted(many)}"
    if what == "leak":
        _panels(caption, beside)
    else:
        if what == "differ":
            assert set(_absent(caption)) <= REASONS, caption
        else:
            assert _absent(caption) == _absent(line), f"not run are {_absent(line)}"
        assert set(_by_label(caption)) == everybody - {row.label for row in pool}
    alt = re.fullmatch(ALTS[what], shown[1])
    assert alt, f"cannot be read: {shown[1]}"
    said = alt.groupdict()
    assert said.get("at", at) == at, f"the alternative text is of {said['at']}"
    if what == "leak":
        _least_of_panels(said["by"], beside)
        return
    if what == "links":
        sent = {row["algorithm"]: float(row["bits sent"]) for row in beside}
        pool = [row for row in pool if sent[row.label] > 0]
        few = min(bits for bits in sent.values() if bits > 0)
        assert sent.get(said["quiet"]) == few and same(said["few"], few), said["quiet"]
        high = min(float(r["bits sent, upper"]) for r in beside if r["algorithm"] == said["quiet"])
        sending = [row for row in beside if sent[row["algorithm"]] > 0]
        as_few = [r["algorithm"] for r in sending if float(r["bits sent, lower"]) <= high]
        assert {said["quiet"], *filter(None, (said["level"] or "").split(" / "))} == set(as_few)
        assert same(said["its"], rows[said["quiet"]].regret[0]), said["quiet"]
    if what == "regret":
        assert (int(said["ran"]), int(said["all"])) == (len(pool), len(everybody))
        assert same(said["cdp"], rows["CDP-MAB"].regret[0]), rows["CDP-MAB"].regret[0]
    _end(said["best"], pool, 1, sent if what == "links" else None)
    if "last" in said:
        _end(said["last"], pool, -1)


TIED = "one of these, which cannot be told apart: "


def _end(text, pool, sign, sent=None):
    """Holds who may have the least regret, or the largest, against those that took part."""
    by, named = {row.label: row for row in pool}, []
    for each in text.removeprefix(TIED).split(" / "):
        bits = rf" with ({NUMBER}) bits" * (sent is not None)
        found = re.fullmatch(rf"(.*), ({NUMBER}) \(([\d,]+) seeds\){bits}", each)
        assert found and found[1] in by, f"cannot be read, or took no part: {each}"
        row = by[found[1]]
        named.append(row)
        assert same(found[2], row.regret[0]) and number(found[3]) == row.seeds, row.label
        assert sent is None or same(found[4], sent[row.label]), row.label
    assert text.startswith(TIED) == (len(named) > 1), f"{len(named)} cannot be told apart"
    for row in named:
        _beyond(row, [row, *(each for each in pool if each not in named)], sign)
        # Few seeds leave much open, but not this.
        for each in named:
            wide = 3 * (each.regret[2] - each.regret[1] + row.regret[2] - row.regret[1])
            assert abs(each.regret[0] - row.regret[0]) <= wide, row.label


def _beyond(mine, pool, sign):
    """Names whose interval lies beyond that of somebody at an end, or mean over equal seeds."""
    alike = len({row.seeds for row in pool}) == 1
    for row in pool:
        high = max(sign * end for end in row.regret)
        low = min(sign * end for end in mine.regret)
        assert high >= low and (not alike or sign * row.regret[0] >= sign * mine.regret[0])


def _last_slot(kept, beside, slot):
    """Holds the numbers of the last slot against those of the horizon's table."""
    last = [row for row in beside if int(row["slot"]) == slot]
    heads = ("mean", "lower", "upper")
    own = {(r["quantity"], r["curve"]): [float(r[head]) for head in heads] for r in last}
    for row in kept:
        mean = own.get(("regret", row["algorithm"]), [math.nan])[0]
        assert math.isclose(mean, float(row["regret at T"]), rel_tol=1e-9), row["algorithm"]
        for head in (head for head in row if f"{head}, lower" in row):
            assert own.get((head, row["algorithm"])) == _values(row, head), head
    assert {row["curve"] for row in beside} == {row["algorithm"] for row in kept}


def _panels(caption, beside):
    """Holds who is said not to be in a panel against the CSV."""
    wanted = {}
    for row in beside:
        whys = _whys(each for each in beside if _of_view(each) == _of_view(row))
        assert wanted.setdefault(row["view"], whys) == whys, row["view"]
    views = "|".join(re.escape(view[0].upper() + view[1:]) for view in wanted)
    parts = re.split(rf"({views}): (?=Not run, )", caption)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    told = {head[0].lower() + head[1:]: _absent(body) for head, body in pairs}
    assert told == {view: whys for view, whys in wanted.items() if whys} and not _absent(parts[0])


def _least_of_panels(text, beside):
    """Holds the least at a leak of each view against the CSV."""
    ran = [row for row in beside if not row["why not run"]]
    views = list(dict.fromkeys(row["view"] for row in ran))
    leaks = sorted({float(row["ε"]) for row in ran})
    seen = []
    for panel in text.split("; "):
        head, _, rest = panel.removeprefix("to ").partition(", ")
        for names, leak in re.findall(r"(.*?) at ε = ([\d.]+)(?:, |$)", rest):
            seen.append((head, float(leak)))
            pool = [_ran(row) for row in ran if (row["view"], float(row["ε"])) == seen[-1]]
            by = {row.label: row for row in pool}
            told = re.findall(rf"(?:^| / )(.*?) \(({NUMBER})\)", names)
            for label, mean in told:
                assert label in by, f"{label} took no part for {head} at ε = {leak}"
                assert same(mean, by[label].regret[0]), label
            labels = {label for label, _ in told}
            assert labels == {row.label for row in pool if _range(row)[0] == 1}, head
    assert seen == [(view, leak) for view in views for leak in (leaks[0], 1.0, leaks[-1])], seen


# --- the paper's figures, in words ---

BUDGETS = (
    (r"([+-][\d,]+) at (R = \d)", "difference to no budget"),
    (r"the ([\d,]+) of (no budget)", "regret"),
)
COST = "cost at T, links counted by"
# What stands before a curve's name is what it has at T, of a quantity; the first has all curves.
SEEN = {
    "fig04_epsilon": (
        (r"(-?[\d,]+) at (ε = [\d.]*\d)", "price of privacy"),
        (r"to ([\d,]+)(?=\. From the smallest ε)()", "regret"),
    ),
    "fig05_participation": (
        (r"([+-][\d,]+) at (p = [\d.]*\d)", "difference to p = 1"),
        (r"the ([\d,]+) of (p = 1)", "regret"),
    ),
    "fig06_rounds": BUDGETS,
    "fig06_rounds_smallest_gap": BUDGETS,
    "fig08_heterogeneous_central": ((r"([\d,]+) \((\S+ ?\w*, \w+)\)", "regret"),),
    "fig10_graphs": (
        (r"([+-][\d,.]+) \([^)]*\) on the (\w+)", "difference to the complete graph"),
    ),
    "fig11_hybrid": ((r"([+-][\d,.]+), [^(]*\((case \d)\)", "difference to case 6"),),
    "fig11_hybrid_cost": (
        (r"([\d,]+) and [\d,]+ \((case \d)\)", f"{COST} edges"),
        (r"[\d,]+ and ([\d,]+) \((case \d)\)", f"{COST} hops to the sink"),
    ),
    "fig12_heterogeneous_structures": (
        (r"([+-][\d,]+), [^(]*\((\S+, \w+)\)", "difference to CDP-MAB"),
    ),
}


def seen(name, alt, rows):
    """Holds what is to be seen in a figure against the last slot of its curves."""
    found = re.search("[Aa]t T = 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", alt)
    T = str(10 ** int(found[1].translate(RAISED))) if found else ""
    for pattern, quantity in SEEN[name]:
        of = [row for row in rows if (row["T"], row["quantity"]) == (T, quantity)]
        last = [row for row in of if row["slot"] in (T, "")]
        own = {row["curve"].partition(" (")[0]: float(row["mean"]) for row in last}
        told = {curve or "no noise": number for number, curve in re.findall(pattern, alt)}
        for curve, number in told.items():
            assert curve in own and same(number.replace("+", ""), own[curve]), quantity
        missing = {curve for curve, mean in own.items() if mean} - set(told)
        assert told and (quantity != SEEN[name][0][1] or not missing), missing


def figure(name, folder, text):
    """Holds the text of a page of a figure of the paper."""
    seen(name, text.split("](")[0], rows_of(folder / f"{name}.csv"))


# --- the paper's sentences ---

LITTLE = "holds by less than 1 %"
SOMETIMES = "holds under some conditions only"
UNJUDGED = "not judged"
# Of one condition; the first that was found stands first, without its conditions.
FIRST = ("holds", "does not hold", "not attained", "not reached", "not proved", "misprint")
FIRST += ("not contradicted", "not decided")
# What was found stands below one of these heads.
FOUND = ("found", "computed", "printed, and what follows")
SCALES = {"half": 0.5, "stated": 1.0, "twice": 2.0}
# What a rule is named besides, and how verdicts are called then.
OTHERWISE = {
    "a consequence": {"holds": "not contradicted", "not decided": "not contradicted"},
    "few runs": {"not decided": "not contradicted"},
    **{"what can be proved": {"does not hold": "not proved"}, "no share": {}},
    **{f"whether {word}": {"does not hold": f"not {word}"} for word in ("attained", "reached")},
    "a print": {"does not hold": "misprint"},
}
VERDICT = re.compile(
    r"\*\*(?P<stated>[^*]+)\*\*(?: \((?P<size>[^()]*)\))?"
    r"(?:; at half the tolerance: (?P<half>.*?))?(?:; at twice the tolerance: (?P<twice>.*))?"
)
SHORT = r"(-?[\d.,]+(?:e[+-]\d+)?|inf|nan)"
LOOSE = "bound / regret"
# How the size of an effect is told, and what it is multiplied by.
SIZES = {
    "order": ("by {} %", 100),
    "order, no share": ("{}", 1),
    "alike": ("{} %", 100),
    "no more": ("{} %", 100),
    "value": ("{} times the value", 1),
    "exactly": ("{} times the value", 1),
    "exactly, a print": ("{} times the print", 1),
    "probable": ("in {} %", 100),
    "large": ("{} times", 1),
    "at most": ("{} times the bound", 1),
    "at least": ("{} times what is asked", 1),
    LOOSE: ("the bound is {} times the regret", 1),
}


def claims(folder, text):
    """Holds the text of CLAIMS.md."""
    parts = re.split(r"^## ", text, flags=re.M)
    ((*summary,),) = tables(parts[0].split("\n"))
    counted = {row["list"]: row["sentences"] for row in summary}
    heads = [part.partition("\n")[0] for part in parts[1:]]
    found = {h: tables(p.split("\n"))[0] for h, p in zip(heads, parts[1:], strict=True) if "|" in p}
    kept = rows_of(folder / "claims.csv")
    names = ("measured", "bounds with explicit constants", "settled by arithmetic", "misprints")
    parts_of = {name: name.capitalize() for name in names} | {"not judged": "Not judged, and why"}
    for name, head in parts_of.items():
        own = {row["row"] for row in kept if row["list"] == name}
        assert len(own) == len(found[head]), f"{name}: the CSV has another number of sentences"
        told = counted[name]
        if "verdict" not in found[head][0]:
            assert told == str(len(found[head])), name
            continue
        tally = Counter(_kind(row["verdict"]) for row in found[head])
        parts = (each.partition(" ") for each in told.partition(": ")[2].split(", "))
        assert tally == {kind: int(many) for many, _, kind in parts}, name
        assert told.startswith(f"{len(found[head])}: "), name
    shown = [row for head in list(parts_of.values())[:-1] for row in found[head]]
    verses = rows_of(folder / "multiverse.csv")
    for place, row in enumerate(shown, 1):
        own_rows = [each for each in kept if each["row"] == str(place)]
        _claim(row, own_rows)
        if place <= len(found["Measured"]):
            _readings(row, own_rows, verses)


# The column of readings.
READINGS = "[readings](multiverse.md)"
# How CLAIMS.md reads what is open.
BASE = {"gap": "own", "instance": "as in CLAIMS", "delay": "d_G - 1", "meter": "edges"}
TOLD_READINGS = re.compile(
    r"holds in (?P<holds>\d+) of (?P<all>\d+) readings?(?P<others>(?:, [a-z ]+ in \d+)*)"
    r"; (?P<few>[\d,]+) seeds(?: \((?P<many>[\d,]+) as read here\))?"
)


def _readings(row, kept, verses):
    """Holds in how many readings a sentence is said to hold against the table of readings."""
    own = [
        each
        for each in verses
        if (each["section"], each["quote"]) == (row["section"], kept[0]["quote"])
        and row["measured"].partition("<br>")[0] == each["measured"].partition("<br>")[0]
    ]
    found = TOLD_READINGS.fullmatch(row.get(READINGS, ""))
    assert found and own
    said = {"holds": int(found["holds"])}
    said |= {kind: int(n) for kind, n in re.findall(r", ([a-z ]+?) in (\d+)", found["others"])}
    tally = Counter(each["verdict"] for each in own)
    assert {"holds": 0, **tally} == said and int(found["all"]) == len(own)
    seeds = {int(each["seeds"]) for each in own}
    assert {int(number(found[name])) for name in ("few", "many") if found[name]} == seeds, seeds
    for each in own:
        if all(each[name] in ("any", base) for name, base in BASE.items()):
            counted = [own_row for own_row in kept if own_row["counted"] == "True"]
            mine = [own_row for own_row in counted if _reads_so(own_row["condition"], each["T"])]
            at = [own_row["verdict at stated"] for own_row in mine]
            assert each["verdict"] == _together(at), each["T"]


def _reads_so(condition, horizon):
    """Tells whether a condition is of a horizon, if one is asked for, and of no other reading."""
    parts = condition.split(", ")
    return (horizon == "any" or f"T = {horizon}" in parts) and "gap 1/16" not in parts


def _together(kinds):
    """Returns what a reading says in one word: holds in part, or else the worst."""
    if "holds" in kinds and {"does not hold", "not attained", "not reached"} & {*kinds}:
        return "holds in part"
    order = ("does not hold", "not attained", "not reached", "not decided", "not proved")
    return next(each for each in (*order, "not contradicted", "holds") if each in kinds)


def _kind(verdict):
    """Returns how a verdict is counted in the head of the page: the kinds in it, without where."""
    stated = verdict.partition("**")[2].partition("**")[0]
    first, *others = stated.split("; ")
    kinds = [each.partition(" at ")[0] for each in others]
    bounds = first == "holds" and {"not attained", "not reached"} & {*kinds}
    if bounds or first.startswith(("holds only if", "holds but for")):
        return SOMETIMES
    return " or ".join([first, *kinds])


def _claim(row, kept):
    """Holds a row of the page against its numbers."""
    assert kept and row["section"] == kept[0]["section"], "the CSV has another section here"
    assert kept[0]["quote"] in row["the paper's words"].replace(r"\|", "|")
    lines = next(row[head] for head in FOUND if head in row).split("<br>")
    named = {each["condition"] for each in kept}
    cells = {
        condition: line
        for line in lines
        for condition in named
        if line.startswith(f"{condition}: ") or (condition == "" and named == {""})
    }
    assert row["verdict"] == kept[0]["verdict"], "the CSV has another verdict"
    assert set(cells) == named and len(lines) == len(named)
    for each in kept:
        cell = cells[each["condition"]]
        assert not each["estimate"] or _occurs(cell, each), each
        words = HELD_AGAINST.get(each["rule"], HELD_AGAINST.get(each["rule"].partition(", ")[0]))
        assert not words or not each["estimate"] or _held_against(words, cell, each), each
        silent = "(not counted: " not in cell
        assert (each["counted"] == "True") == silent or (not each["rule"] and silent)
    found = VERDICT.fullmatch(row["verdict"])
    assert found, f"cannot be read: {row['verdict']}"
    kinds = {name: {} for name in SCALES}
    for condition in dict.fromkeys(each["condition"] for each in kept):
        own = [each for each in kept if each["condition"] == condition]
        for name, scale in SCALES.items():
            told = own[0][f"verdict at {name}"]
            assert (judged := _judged(own, scale) or told) == told, condition
            if own[0]["counted"] == "True":
                kinds[name][condition] = judged
    counted = [each for each in kept if each["counted"] == "True" and each["rule"]]
    steps = [_effect(each) for each in counted if each["rule"] == "order" and each["estimate"]]
    stated = found["stated"]
    little = {*kinds["stated"].values()} == {"holds"} and min(steps, default=1) < 0.01
    assert little == (stated == LITTLE), steps
    stated = "holds" if stated == LITTLE else stated
    _combined(stated, kinds["stated"])
    for name in ("half", "twice"):
        told = found[name]
        _combined(told or stated, kinds[name])
        assert told != stated, f"nothing changes at {name} the tolerance"
    _sizes(found["size"] or "", counted)


# How it is told what a number is held against, by rule.
HELD_AGAINST = {each: each for each in ("at most", "at least")}
HELD_AGAINST |= {"exactly": "stated", "exactly, a print": "printed"}


def _held_against(words, cell, row):
    """Tells whether a cell says what a number is held against, to six digits, or not at all."""
    found = re.search(rf"; {words} (-?[\d.,]+(?:e[+-]\d+)?)", cell)
    against = float(row["against"])
    return not found or math.isclose(number(found[1]), against, rel_tol=1e-5)


def _judged(kept, scale):
    """Returns the verdict that the numbers of a condition have by their rule; "" without any."""
    found, how = [], ""
    for row in kept:
        if not row["rule"] or not row["estimate"]:
            continue
        rule, _, how = row["rule"].partition(", ")
        against = float(row["against"] or "nan")
        low, high = {
            "order": (0.0, math.inf),
            "alike": (-0.05 * scale, 0.05 * scale),
            "no more": (-math.inf, 0.05 * scale),
            "value": sorted(against * (1 + sign * 0.05 * scale) for sign in (-1, 1)),
            "probable": (1 - 0.05 * scale, 1.0),
            "large": (1 + scale, math.inf),
            "at most": (-math.inf, against),
            "at least": (against, math.inf),
            "exactly": (against - 1e-9 * abs(against), against + 1e-9 * abs(against)),
        }[rule]
        lower, upper = sorted(float(row[end]) for end in ("lower", "upper"))
        inside, outside = low <= lower and upper <= high, upper < low or lower > high
        if rule == "order":  # strictly on its side
            inside, outside = lower > 0, upper <= 0
        found.append("holds" if inside else "does not hold" if outside else "not decided")
    if not found:
        return ""
    verdict = next(each for each in ("does not hold", "not decided", "holds") if each in found)
    for each in filter(None, how.split(", ")):
        verdict = OTHERWISE[each].get(verdict, verdict)
    return verdict


def _effect(row):
    """Returns how large an effect is: of what it is held against, if that is a number."""
    against = float(row["against"] or "nan")
    estimate = float(row["estimate"])
    return estimate if math.isnan(against) or not against else estimate / against


def _combined(words, kinds):
    """Holds a verdict such as "holds; not decided at T = 10⁴" against those of its conditions."""
    if not kinds or words == UNJUDGED:
        assert not kinds and words == UNJUDGED, f"what counts are {kinds}"
        return
    first, *parts = words.split("; ")
    told = {}
    if first.startswith("holds but for: "):
        parts = [first.removeprefix("holds but for: "), *parts]
        rest = "holds"
    elif first.startswith("holds only if "):
        parts = [f"holds at {first.removeprefix('holds only if ')}", *parts]
        rest = "does not hold"
    elif first in FIRST:
        rest = first
        # What holds stands first; where another fails, that is told by conditions.
        assert FIRST.index(first) == min(map(FIRST.index, kinds.values()))
        assert not {"holds", "does not hold"} <= set(kinds.values())
    else:
        raise AssertionError(f"cannot be read: {words}")
    for part in parts:
        kind, _, where = part.partition(" at ")
        for name in where.split(" or "):
            own = [each for each in kinds if name == each or name in each.split(", ")]
            assert kind in FIRST and own, f"there is no {part}"
            assert not (clash := [each for each in own if told.get(each, kind) != kind]), clash
            told |= dict.fromkeys(own, kind)
    told = {condition: told.get(condition, rest) for condition in kinds}
    assert told == kinds and rest in told.values(), f"by condition, it is {kinds}"


def _sizes(told, counted):
    """Holds the sizes of effects, rule by rule, against the numbers."""
    by = {}
    for condition in dict.fromkeys(row["condition"] for row in counted):
        own = [row for row in counted if row["condition"] == condition and row["estimate"]]
        if not own or (own[0]["against"] and not float(own[0]["against"])):
            continue  # no multiple of nothing
        rule = own[0]["rule"]
        rule = rule if rule in SIZES else rule.partition(", ")[0]
        rule = LOOSE if all(row["quantity"].endswith(LOOSE) for row in own) else rule
        by.setdefault(rule, []).extend(_effect(row) for row in own)
    parts = told.split("; ") if told else []
    assert len(parts) == len(by), f"sizes of {list(by)} are told as {parts}"
    for part, (rule, values) in zip(parts, by.items(), strict=True):
        words, factor = SIZES[rule]
        start, end = words.split("{}")
        found = re.fullmatch(f"{re.escape(start)}{SHORT}(?: to {SHORT})?{re.escape(end)}", part)
        ends = [factor * min(values), factor * max(values)]
        texts = [found[1], found[2] or found[1]] if found else []
        assert found and all(map(_nearly, texts, ends)), ends


def _nearly(text, value):
    """Tells whether a printed size is this value; what is 0 but for rounding is 0."""
    return same(text, value) or (text == "0" and abs(value) < 1e-9)


def _occurs(cell, kept):
    """Tells whether a cell has a number, as it is or in per cent, to the digits it is written.

    One digit alone is met by much: its error stands beside it, or it is right to three digits. An
    interval that stands beside it has to be its own.
    """
    value = float(kept["estimate"])
    words = cell.removeprefix(f"{kept['condition']}: ")
    for found in PRINTED.finditer(words):
        text, factor = found[1], 100 if found[2] else 1
        own, behind = factor * value, words[found.end() :]
        exact = abs(own - number(text)) <= max(0.005 * abs(own), 1e-9)
        careful = len(text.lstrip("-")) > 1 or behind.startswith(" ± ")
        ends = sorted(factor * float(kept[end]) for end in ("lower", "upper"))
        if same(text, own) and (careful or exact) and _with_ends(behind, ends):
            return True
    return False


def _with_ends(behind, ends):
    """Tells whether the interval behind a number, if there is one, has these ends."""
    if found := re.match(rf" ± ({NUMBER})", behind):
        return same(found[1], (ends[1] - ends[0]) / 2)
    if found := re.match(rf" \[({NUMBER}), ({NUMBER})\]", behind):
        return all(map(same, found.groups(), ends))
    return True


# --- readings of the paper's sentences ---

CHOICES = ("T", "gap", "instance", "delay", "meter")
UNDECIDED = ("not contradicted", "not proved", "not decided")
SUMMARY = re.compile(
    r"Of (\d+) sentences (\d+) hold in every reading tried, (\d+) in some, (\d+) in none; (\d+) "
    r"fail in every reading tried\."
)
LISTED = r"((?:(?:the )?\w+ in \d+(?:, )?)+)\."
TURNS = re.compile(
    rf"from one decided verdict into another, all others alike: {LISTED} What more seeds would "
    rf"decide is no turn there; with “not decided” as a verdict of its own: {LISTED}"
)


def multiverse(folder, text):
    """Holds the text of multiverse.md."""
    kept = rows_of(folder / "multiverse.csv")
    lines = text.split("\n")
    shown = re.fullmatch(r"!\[(.*)\]\(multiverse\.png\)", lines[0])
    assert shown and lines[4] == f"What is to be seen: {shown[1]}" and shown[1] in lines[2]
    by = {}
    for row in kept:
        by.setdefault(row["number"], []).append(row)
    (table,) = tables(lines)
    assert [row[""] for row in table] == list(by), f"the sentences are {list(by)}"
    for row in table:
        own = by.get(row[""], [])
        tally = Counter(each["verdict"] for each in own)
        kinds = list(row)[list(row).index("readings") + 1 :]
        assert {kind: int(row[kind]) for kind in kinds} == {kind: tally[kind] for kind in kinds}
        assert int(row["readings"]) == len(own) and not set(tally) - set(kinds), row[""]
        for each in own:
            assert (each["section"], each["measured"]) == (row["section"], row["measured"])
            assert each["quote"] in row["the paper's words"]
        opened = [name for name in CHOICES if len({each[name] for each in own}) > 1]
        assert row["open"] == (", ".join(opened) or "nothing"), f"{row['']}: open are {opened}"
    shares = [Counter(each["verdict"] for each in own) for own in by.values()]
    always = sum(set(count) == {"holds"} for count in shares)
    never = sum(not count["holds"] for count in shares)
    fail = sum(set(count) == {"does not hold"} for count in shares)
    wanted = [len(by), always, len(by) - always - never, never, fail]
    assert (said := SUMMARY.search(text)) and list(map(int, said.groups())) == wanted, wanted
    found = TURNS.findall(text)
    assert len(found) == 3, f"what turns a verdict is told in {len(found)} places"
    for each in found:
        turns_told(each, kept)


def turns_told(told, kept):
    """Holds two lists of what turns a verdict against the readings: decided ones, and all."""
    said = [{name: int(n) for name, n in re.findall(r"(\w+) in (\d+)", each)} for each in told]
    for own, silent in zip(said, ({"not decided"}, set()), strict=True):
        assert own == (wanted := _turns(kept, silent)), wanted


def _turns(kept, silent):
    """Returns how many sentences each choice turns, all others alike."""
    found = {}
    for name in CHOICES:
        alike = {}
        for row in kept:
            key = (row["number"], *(row[each] for each in CHOICES if each != name))
            verdict = "not decided" if row["verdict"] in UNDECIDED else row["verdict"]
            alike.setdefault(key, set()).add(verdict)
        found[name] = len({key[0] for key, kinds in alike.items() if len(kinds - silent) > 1})
    return found


# --- all pages ---

Page = Callable[[Path, str], None]


def pages(folder):
    """Returns who reads the text of each page of a folder."""
    found = {"ARENA.md": arena, "CLAIMS.md": claims, "multiverse.md": multiverse}
    found = {name: read for name, read in found.items() if (folder / name).exists()}
    stems = {name: name.removesuffix(".md") for name in pictures(folder)}
    found |= {name: functools.partial(picture, stem) for name, stem in stems.items()}
    drawn = [name for name in SEEN if (folder / f"{name}.md").exists()]
    found |= {f"{name}.md": functools.partial(figure, name) for name in drawn}
    return found | {
        path.name: functools.partial(table, path.name)
        for path in sorted(folder.glob("*.md"))
        if path.name not in found and "\n|--" in path.read_text("utf-8")
    }


def table(name, folder, text):
    """Holds the table in the text of a page."""
    stem = {"audit": "audit_mechanisms"}.get(name[:-3], name[:-3])
    (own,) = tables(text.split("\n"))
    _same_rows(own, rows_of(folder / f"{stem}.csv"))


def fault_of(name, folder, page=None):
    """Returns the fault of a page, or of a text in its place; "" without any."""
    try:
        text = (folder / name).read_text("utf-8") if page is None else page
        pages(folder)[name](folder, text)
    except (AssertionError, KeyError, ValueError):
        return traceback.format_exc()
    return ""
