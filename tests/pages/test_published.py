"""The published pages against their tables; and the reader of pages against broken pages."""

import hashlib
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from pages import reader

FIGURES = Path(__file__).parents[2] / "figures"
PAGES = reader.pages(FIGURES)


@pytest.mark.parametrize("name", PAGES)
def test_a_published_page_says_what_its_tables_say(name):
    """Would catch a page changed by hand, or older than its tables or its parts (ARENA.md)."""
    assert reader.fault_of(name, FIGURES) == ""


def test_no_csv_lies_there_for_nobody():
    """Would catch a CSV file that no page names, such as one of a table that has gone."""
    folders = (FIGURES, FIGURES.parent / "docs")
    texts = [path.read_text("utf-8") for folder in folders for path in folder.glob("*.md")]
    named = {name for text in texts for name in re.findall(r"(\w+)\.csv", text)}
    read = {*reader.BESIDE.values(), *(name.removesuffix(".md") for name in PAGES)}
    left = {path.stem for path in FIGURES.glob("*.csv")} - named - read - {"runs"}
    assert {name for name in left if not name.startswith("arena_T1e")} == set()


# Pages that show tables without naming their files.
SHOWN = {"ARENA": ["arena_T1e4", "arena_leak_T1e6", "arena_ledger"], "CLAIMS": ["claims"]}
SHOWN |= {"audit": ["audit_mechanisms"], "arena_regret_T1e5": ["arena_T1e5"]}


@pytest.mark.parametrize("page", sorted(FIGURES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_which_version_computed_its_tables_and_when(page):
    """Would catch a page without the line, with that of an older run, or without some table."""
    computed = {row["table"]: row for row in reader.rows_of(FIGURES / "runs.csv")}
    text = page.read_text("utf-8")
    (line,) = re.findall(r"^Computed by fmab_jax (.*)\.$", text, re.M)
    groups = re.findall(r"(\d+\.\d+\.\d+ on \d{4}-\d\d-\d\d)(?: \((.*?)\))?", line)
    shown = {*SHOWN.get(page.stem, ()), *re.findall(r"\((\w+)\.csv\)", text)}
    assert shown or page.with_suffix(".csv").exists()
    for name in shown or [page.stem]:
        run = f"{computed[name]['version']} on {computed[name]['date']}"
        (own,) = [run for run, names in groups if name in re.split(", | and ", names) or not names]
        assert own == run, name


def test_every_table_was_computed_by_the_run_that_is_recorded():
    """Would catch a table that was changed by hand, or written anew without its day."""
    computed = {row["table"]: row["sha256"] for row in reader.rows_of(FIGURES / "runs.csv")}
    paths = [path for path in FIGURES.glob("*.csv") if path.name != "runs.csv"]
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths}
    assert computed == found


def off(match):
    """Writes a number with another last digit."""
    return f"{match[0][:-1]}{(int(match[0][-1]) + 5) % 10}"


# What a broken writer prints: the page, a pattern, and what stands in its place.
BROKEN = (
    ("ARENA.md", "accountant: ε up to δ = 10⁻⁶", "accountant: pure ε"),
    ("ARENA.md", r"\n\| KL-UCB, pooled \|.*", ""),
    ("ARENA.md", r" / LDP-UCB-B, alone(?=\.)", ""),
    ("ARENA.md", r"\n(\| Dist-DP-SE \| \d.*)", r"\n\1\n\1"),
    ("ARENA.md", r"(?<=\| )\d[\d,]*(?= \[[^]]*\]; \d)", off),
    ("ARENA.md", r"(?<=\]; )\d+(?= of)", off),
    ("ARENA.md", r"\d+(?= of \d+ \|)", off),
    ("ARENA.md", "49 of 50 shares of the noise", "50 of 50 shares of the noise"),
    ("ARENA.md", r"12,\d{3}(?= \| 0.1 % \| 0 \| 560)", off),
    ("arena_regret_T1e4.md", r"(?<=slots, )\d+(?= seeds)", off),
    ("arena_leak_T1e6.md", r"arena_leak_T1e6\.csv", "arena_leak_T1e5.csv"),
    ("arena_differ_T1e6.md", r"\d[\d,]*(?= \[)", off),
    ("readings.md", r"\d(?=\] \|\n)", off),
    ("audit.md", r"(\| CDP-MAB, claim 1 \| .*)within", r"\1beyond"),
)


@pytest.mark.parametrize(("name", "pattern", "new"), BROKEN)
def test_a_broken_page_is_caught(name, pattern, new):
    """Would catch a reader of pages that looks away from this."""
    text = (FIGURES / name).read_text("utf-8")
    broken = re.sub(pattern, new, text, count=1)
    assert broken != text, "this page has nothing to break here"
    assert reader.fault_of(name, FIGURES, broken)


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
    assert len(found) == 10 and all("contradicted" in verdicts for verdicts in found.values())
    text = (FIGURES.parent / "docs/privacy_audit.md").read_text("utf-8")
    assert "Each of them must be contradicted in at least one view" in " ".join(text.split())


# --- the same quantity on several pages ---

POWERS = {"10000": "10⁴", "100000": "10⁵", "1000000": "10⁶"}
SERVER = {
    "fig04_epsilon": "ε = 1 (Nε = 50)",
    "fig05_participation": "p = 1",
    **dict.fromkeys(("fig06_rounds", "fig06_rounds_smallest_gap"), "no budget"),
}


@cache
def _read():
    return {path.stem: reader.rows_of(path) for path in FIGURES.glob("*.csv")}


def tables():
    """Returns the rows of all CSV files, which may be changed."""
    return {name: [row.copy() for row in rows] for name, rows in _read().items()}


def by(head, rows):
    """Returns rows by what stands below a head."""
    return {row[head]: row for row in rows}


def claim(csv, quote, quantity, T):
    """Returns the estimates of a sentence at T, one or none."""
    at = quote, quantity, f"T = {POWERS[T]}", "measured"
    heads = ("quote", "quantity", "condition", "list")
    rows = [row for row in csv["claims"] if tuple(row[head] for head in heads) == at]
    return [float(row["estimate"]) for row in rows if row["estimate"]][:1]


def ending(csv, name, T):
    """Returns the means at T of a figure's curves, by quantity and curve."""
    last = [row for row in csv[name] if row["T"] == T and row["slot"] in (T, "")]
    return {(row["quantity"], row["curve"]): float(row["mean"]) for row in last}


def arena(csv, T):
    """Yields what contestants have in the table of all, at their leak, and where agents differ."""
    power = f"T1e{len(T) - 1}"
    rows, differ = (by("algorithm", csv[f"arena_{name}{power}"]) for name in ("", "differ_"))
    for row in csv[f"arena_leak_{power}"]:
        own = rows.get(row["algorithm"], {"epsilon of messages": ""})
        at_own_leak = own["epsilon of messages"].partition(" ")[0] == f"{float(row['ε']):g}"
        if at_own_leak and row["view"].endswith("messages") and row["seeds"] == own["seeds"]:
            for end in ("", ", lower", ", upper"):
                head = f"regret at T{end}"
                yield ("at its leak", row["algorithm"]), [float(r[head]) for r in (own, row)]
    for name, row in differ.items():
        if name in rows and row["seeds, where alike"] == rows[name]["seeds"]:
            values = [float(row["agents alike"]), float(rows[name]["regret at T"])]
            yield ("agents alike", name), values


def server(csv, T):
    """Yields the regret of CDP-MAB on the paper's instance, and the price of its privacy."""
    values = [ending(csv, name, T)["regret", curve] for name, curve in SERVER.items()]
    row = by("algorithm", csv[f"arena_T1e{len(T) - 1}"])["CDP-MAB"]
    yield ("CDP-MAB",), [*values, float(row["regret at T"])]
    curves = ending(csv, "fig04_epsilon", T)
    free = curves["regret", "no noise"]
    for (quantity, curve), price in curves.items():
        if quantity == "price of privacy":
            yield (quantity, curve), [price, curves["regret", curve] - free]
    share = curves["price of privacy", SERVER["fig04_epsilon"]] / free
    quote = r"$\epsilon=1$ indicates the non-private case"
    yield ("noise at ε = 1",), [share, *claim(csv, quote, "", T)]


def graphs(csv, T):
    """Yields regret and leaks on graphs, components and structures; a text is a printed value."""
    table = by("graph", [row for row in csv["table1_graphs"] if row["T"] == T])
    curves, readings = ending(csv, "fig10_graphs", T), {}
    for row in csv["readings"]:
        pattern = r"wait d_G .*: (\w+)|waits go .*: (ring), ε = 1|.*case (2), agents alike"
        if row["T"] == T and (match := re.fullmatch(pattern, row["other reading"])):
            readings.setdefault(max(filter(None, match.groups())), []).append(
                float(row["regret, usual reading"])
            )
    whole = float(table["complete"]["regret at T"])
    page = (FIGURES / "fig10_graphs.md").read_text("utf-8")
    (caption,) = re.findall(rf"the reference, complete: .*?([\d,]+) \(T = {POWERS[T]}\)", page)
    yield ("level",), [whole, curves["regret at T", "complete"], caption]
    leaks = [row["leak"].removeprefix("Nε = ") for row in table.values()]
    pairs = [row["leak"] for row in csv["fig07_tradeoff"] if row["p"] == "1"]
    yield ("leak",), [50.0, *leaks, *pairs]
    for graph, row in table.items():
        yield ("graph", graph), [float(row["regret at T"]), *readings.get(graph, [])]
        extra = float(row["minus complete"])
        if ("difference to the complete graph", graph) in curves:
            value = curves["difference to the complete graph", graph]
            yield ("minus complete", graph), [extra, value]
        text = row["minus complete, per cent"].removesuffix(" %").replace("+", "")
        yield ("per cent", graph), [100 * extra / whole, text]
    share = float(table["ring"]["minus complete"]) / whole
    quote = "the Ring graph incurs larger regret"
    yield ("ring over complete",), [share, *claim(csv, quote, "ring over complete", T)]
    costs, extras = (ending(csv, f"fig11_hybrid{end}", T) for end in ("_cost", ""))
    for case, row in by("case", [row for row in csv["table2_hybrid"] if row["T"] == T]).items():
        name, beside = f"case {case}", "regret at T" if case == "6" else "minus case 6"
        quantity = beside.replace("minus", "difference to")
        yield ("beside case 6", case), [float(row[beside]), extras[quantity, name]]
        if case == "2":
            yield ("case", case), [float(row["regret at T"]), *readings["2"]]
        for meter in ("edges", "hops to the sink"):
            head = f"cost at T, links counted by {meter}"
            yield ("cost", case, meter), [float(row[head]), costs[head, name]]
    three = ending(csv, "fig12_heterogeneous_structures", T)
    for row in csv["fig13_heterogeneity"]:
        spread = {"0": "homogeneous", "1": "heterogeneous"}.get(row["spread"])
        curve = "difference to CDP-MAB", f"{row['curve']}, {spread}"
        if row["T"] == T and curve in three:
            values = [float(row["difference to CDP-MAB at T"]), three[curve]]
            yield ("beside CDP-MAB", curve), values


def groups(csv):
    """Returns the values of each quantity at each horizon."""
    collectors = (arena, server, graphs)
    return [(key, T, v) for T in POWERS for collect in collectors for key, v in collect(csv, T)]


def faults(csv):
    """Returns the quantities that have two values."""

    def same(value, first):
        if isinstance(value, str):
            return reader.same(value, first)
        return math.isclose(value, first, rel_tol=1e-9, abs_tol=1e-6)

    return [group for group in groups(csv) if not all(same(v, group[2][0]) for v in group[2])]


def test_a_quantity_has_one_value_on_all_pages():
    """Would catch a page that is older than another, and one made from other runs or seeds."""
    assert faults(tables()) == []


def test_every_kind_of_quantity_is_found_in_two_places():
    """Would catch a collector that finds nothing any more, since a page or a column was renamed."""
    found = Counter(key[0] for key, _, values in groups(tables()) if len(values) > 1)
    assert len(found) == 15 and min(found.values()) >= 3, found


@pytest.mark.parametrize(
    "name", ["fig04_epsilon", "table2_hybrid", "fig13_heterogeneity", "arena_T1e5", "table1_graphs"]
)
def test_a_file_of_other_runs_is_caught(name):
    """Would catch a collector that lets a file pass whose numbers are all a little off."""
    csv = tables()
    for row in csv[name]:
        for head, text in row.items():
            if re.fullmatch(r"-?\d+\.\d+", text) and head not in ("p", "leak", "ε"):
                row[head] = repr(float(text) * 1.0001)
    assert faults(csv) != []
