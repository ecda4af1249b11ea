"""Reads the published pages back, and holds them against the tables beside them.

It knows nothing of what writes them: only what a reader sees. A page with a fault fails an assert.
"""

import csv
import functools
import re
import traceback

import pytest

NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
# A number that stands by itself: no part of a word, of a power of ten or of another number.
PRINTED = re.compile(
    r"(?<![\w.,⁻])(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?)"
    r"(?![\w⁰¹²³⁴⁵⁶⁷⁸⁹]|[.,]\d)( %)?"
)
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Parts of ARENA.md whose table is a CSV as well, by the start of their heads.
BESIDE = {"Who sees what": "arena_ledger", "The authors' own settings": "arena_settings"}
BESIDE |= {"What is possible": "arena_caps"}
PICTURES = ("regret", "leak", "differ")
VIEW = re.compile(r"View: \*\*(.*?)\*\*; accountant: (.*?)\. .*")


def number(text):
    return float(text.replace(",", ""))


def same(text, value):
    """Tells whether a printed number is this value, rounded to the digits that are printed."""
    plain = text.replace(",", "")
    mantissa, _, power = plain.partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    # What is left over is a float's own error, where a value lies half-way.
    return abs(float(plain) - value) <= half + 1e-12 * abs(value)


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


def arena(folder, text):
    """Holds every table of ARENA.md against its CSV."""
    for head, _, body in (part.partition("\n") for part in re.split(r"^## ", text, flags=re.M)[1:]):
        found = tables(body.split("\n"))
        for start, name in BESIDE.items():
            if head.startswith(start):
                _same_rows(found[0], rows_of(folder / f"{name}.csv"))
        for path in folder.glob("arena_T1e*.csv"):
            if head == f"T = {horizon_of(path.stem)}":
                _same_rows(found[0], rows_of(path))
                leaks = rows_of(folder / path.name.replace("arena_", "arena_leak_"))
                _matched(body.split("\n"), found[1:], leaks)
                _name_absent(body, rows_of(path), leaks)


def horizon_of(stem):
    """Returns the horizon of a file as pages write it."""
    return f"10{stem.rpartition('T1e')[2].translate(SUPERSCRIPTS)}"


def _matched(lines, shown, leaks):
    """Holds the tables of views against their CSV."""
    ran = [row for row in leaks if not row["why not run"]]
    views = [match.groups() for line in lines if (match := VIEW.fullmatch(line))]
    assert views == list(dict.fromkeys((row["view"], row["accountant"]) for row in leaks))
    for (view, _), table in zip(views, shown, strict=True):
        wanted = {}
        for row in (row for row in ran if row["view"] == view):
            first, last = row["place from"], row["to"]
            place = f"{first if first == last else f'{first}–{last}'} of {row['of']}"
            wanted[row["algorithm"], f"ε = {float(row['ε']):g}"] = row, place
        heads = [(row, head) for row in table for head in row if head.startswith("ε = ")]
        assert {(row["algorithm"], head) for row, head in heads} == set(wanted)
        assert len(heads) == len(wanted)
        for own, head in heads:
            row, place = wanted[own["algorithm"], head]
            cell, _, told = own[head].partition("; ")
            assert _same_cell(cell, _values(row, "regret at T")) and told == place, own
            assert own["seeds"] == row["seeds"], own


def _name_absent(body, rows, leaks):
    """Holds the names of all that take no part in a table, with the reason."""
    everybody = {row["algorithm"] for row in leaks} | {row["algorithm"] for row in rows}
    first, *views = re.split(r"^View: ", body, flags=re.M)
    assert _absent(first).keys().isdisjoint(row["algorithm"] for row in rows)
    assert everybody <= _absent(first).keys() | {row["algorithm"] for row in rows}
    lowest = leaks[0]["ε"]
    for view, part in zip(dict.fromkeys(row["view"] for row in leaks), views, strict=True):
        own = [row for row in leaks if row["view"] == view and row["ε"] == lowest]
        wanted = {row["algorithm"]: row["why not run"] for row in own if row["why not run"]}
        assert _absent(part) == wanted, view


def _absent(text):
    """Returns the reason of each name of the lines "Not run, REASON: NAME / NAME."."""
    found = re.findall(r"Not run, (.*?): (.*?)\.(?= Not run|\n)", text)
    return {name: reason for reason, names in found for name in names.split(" / ")}


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


def picture(stem, folder, text):
    """Holds the text of a page of a picture of the arena."""
    lines = text.split("\n")
    shown = re.fullmatch(r"!\[(.*)\]\((.*)\.png\)", lines[0])
    assert shown and shown[2] == stem and lines[4] == f"What is to be seen: {shown[1]}"
    assert set(re.findall(r"\((arena_\w+)\.(?:png|csv)\)", text)) == {stem}
    beside = rows_of(folder / f"{stem}.csv")
    (table,) = tables(lines)
    _, kind, end = stem.split("_")
    kept = rows_of(folder / f"arena_{end}.csv")
    if kind == "regret":
        order = [row["algorithm"] for row in table]
        _same_rows(table, sorted(kept, key=lambda row: order.index(row["algorithm"])))
        last = {row["curve"]: float(row["mean"]) for row in beside if row["quantity"] == "regret"}
        assert last == pytest.approx({row["algorithm"]: float(row["regret at T"]) for row in kept})
    else:
        _same_rows(table, [row for row in beside if not row.get("why not run")])
    heads = [head for head in table[0] if head.startswith("seeds") and "above" not in head]
    first, *fewer = sorted({int(row[head]) for row in table for head in heads}, reverse=True)
    told = f"{first} seeds" + (f", {' or '.join(map(str, fewer))} of those that" if fewer else "")
    assert f", T = {horizon_of(stem)} slots, {told}" in lines[2], told


# --- all pages ---


def pages(folder):
    """Returns what reads the text of each page of a folder."""
    readers = {"ARENA.md": arena} if (folder / "ARENA.md").exists() else {}
    stems = [path.stem for kind in PICTURES for path in folder.glob(f"arena_{kind}_T1e*.md")]
    readers |= {f"{stem}.md": functools.partial(picture, stem) for stem in stems}
    return readers | {
        path.name: functools.partial(table, path.name)
        for path in sorted(folder.glob("*.md"))
        if path.name not in (*readers, "CLAIMS.md") and "\n|--" in path.read_text("utf-8")
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
