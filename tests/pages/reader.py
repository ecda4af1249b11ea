"""Reads the published pages back, and holds them against the tables beside them and each other.

It knows nothing of what writes them: only what a reader sees. A page with a fault fails an assert.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import traceback
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


# --- all pages ---

Page = Callable[[Path, str], None]


def pages(folder):
    """Returns who reads the text of each page of a folder."""
    found = {"ARENA.md": arena} if (folder / "ARENA.md").exists() else {}
    stems = {name: name.removesuffix(".md") for name in pictures(folder)}
    found |= {name: functools.partial(picture, stem) for name, stem in stems.items()}
    return found | {
        path.name: functools.partial(table, path.name)
        for path in sorted(folder.glob("*.md"))
        if path.name not in (*found, "CLAIMS.md") and "\n|--" in path.read_text("utf-8")
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
