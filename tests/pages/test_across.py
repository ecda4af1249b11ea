"""The same quantity stands on several pages: its values are collected, and held together."""

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from pages import reader

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"
Row = dict[str, str]
Tables = Mapping[str, list[Row]]
# A value in full, or as it is printed.
Value = float | str
Note = tuple[tuple[str, ...], str, Value]
HORIZONS = ("10000", "100000", "1000000")
POWERS = {"10000": "10⁴", "100000": "10⁵", "1000000": "10⁶"}
ENDS = ("", ", lower", ", upper")


@cache
def _read():
    return {path.stem: reader.rows_of(path) for path in FIGURES.glob("*.csv")}


def tables():
    """Returns the rows of all CSV files, which may be changed."""
    return {name: [row.copy() for row in rows] for name, rows in _read().items()}


def texts():
    pages = [*FIGURES.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    return {path.name: path.read_text("utf-8") for path in pages}


def where(rows, **fixed):
    fixed = {key.replace("_", " "): text for key, text in fixed.items()}
    return [row for row in rows if all(row[key] == text for key, text in fixed.items())]


def one(rows, **fixed):
    (found,) = where(rows, **fixed)
    return found


def claim(csv, quote, quantity, condition):
    """Yields the estimate of a sentence, where it has this number under this condition."""
    for row in csv["claims"]:
        found = row["quote"], row["quantity"], row["condition"]
        if found == (quote, quantity, condition) and row["list"] == "measured" and row["estimate"]:
            yield float(row["estimate"])
            return


def ending(csv, name, T):
    """Returns the means at T of a figure's curves, by quantity and curve."""
    last = [row for row in csv[name] if row["T"] == T and row["slot"] in (T, "")]
    return {(row["quantity"], row["curve"]): float(row["mean"]) for row in last}


def arena(csv):
    """Collects what contestants have, by seeds: with other seeds it is another number."""
    for T in HORIZONS:
        power = f"T1e{len(T) - 1}"
        for name in ("arena", "arena_links"):
            for row in csv[f"{name}_{power}"]:
                label = row["algorithm"]
                for head in ("regret at T", "links at T", "numbers sent", "bits sent"):
                    for end in ENDS:
                        key = (head + end, label, T, row["seeds"])
                        yield key, f"{name}_{power}.csv", float(row[head + end])
        main = {row["algorithm"]: row for row in csv[f"arena_{power}"]}
        for row in csv[f"arena_leak_{power}"]:
            own = main.get(row["algorithm"])
            # At its own leak a contestant is that of the main table.
            if own and row["view"].endswith("single messages") and not row["why not run"]:
                leak = own["epsilon of messages"].partition(" ")[0]
                if leak == f"{float(row['ε']):g}":
                    for end in ENDS:
                        key = (f"regret at T{end}", row["algorithm"], T, row["seeds"])
                        yield key, f"arena_leak_{power}.csv", float(row[f"regret at T{end}"])
        for row in csv[f"arena_differ_{power}"]:
            key = ("regret at T", row["algorithm"], T, row["seeds, where alike"])
            yield key, f"arena_differ_{power}.csv", float(row["agents alike"])


def server(csv):
    """Collects the regret of CDP-MAB on the paper's instance, 1000 seeds."""
    for T in HORIZONS:
        key = ("regret at T", "CDP-MAB", T, "1000")
        for name, curve in (
            ("fig04_epsilon", "ε = 1 (Nε = 50)"),
            ("fig05_participation", "p = 1"),
            ("fig06_rounds", "no budget"),
            ("fig06_rounds_smallest_gap", "no budget"),
        ):
            yield key, f"{name}.csv", ending(csv, name, T)["regret", curve]
        curves = ending(csv, "fig04_epsilon", T)
        free = curves["regret", "no noise"]
        yield ("regret without noise", T), "fig04_epsilon.csv", free
        for (quantity, curve), price in curves.items():
            if quantity == "price of privacy":
                yield (quantity, curve, T), "fig04_epsilon.csv", price
                yield (quantity, curve, T), "its regret", curves["regret", curve] - free
        share = ("noise at ε = 1 costs", T)
        yield share, "fig04_epsilon.csv", curves["price of privacy", "ε = 1 (Nε = 50)"] / free
        told = claim(csv, r"$\epsilon=1$ indicates the non-private case", "", f"T = {POWERS[T]}")
        yield from ((share, "claims.csv", value) for value in told)


def participation(csv):
    """Collects regrets by p and R, with a budget built for 1/16 or the instance's own gap."""
    for T in HORIZONS:
        curves = ending(csv, "fig05_participation", T)
        for p in ("0.2", "0.4", "0.6", "0.8"):
            yield ("regret", p, "none", T), "fig05_participation.csv", curves["regret", f"p = {p}"]
            key = ("regret", p, "none, beside p = 1", T)
            yield key, "fig05_participation.csv", curves["difference to p = 1", f"p = {p}"]
            both = curves["regret", f"p = {p}"] - curves["regret", "p = 1"]
            yield key, "its regret", both
        key = ("regret", "0.2", "none", T)
        ratio = curves["regret", "p = 0.2"] / curves["regret", "p = 0.4"] - 1
        yield ("p = 0.2 over 0.4", T), "fig05_participation.csv", ratio
        quote = "the regrets at $T$ decrease as $p$ increases"
        for value in claim(csv, quote, "p = 0.2 over 0.4", f"T = {POWERS[T]}"):
            yield ("p = 0.2 over 0.4", T), "claims.csv", value
        base = curves["regret", "p = 1"]
        for name, gap in (("fig07_tradeoff", "1/16"), ("fig07_tradeoff_smallest_gap", "own")):
            for row in where(csv[name], T=T):
                free = row["R"] == "no budget"
                rounds = "none" if free else f"{row['R']}, {gap}"
                yield ("regret", row["p"], rounds, T), f"{name}.csv", float(row["regret"])
        yield ("regret", "1", "none", T), "fig05_participation.csv", base
        for name, gap in (("fig06_rounds", "1/16"), ("fig06_rounds_smallest_gap", "own")):
            for (quantity, curve), value in ending(csv, name, T).items():
                if quantity == "regret" and curve != "no budget":
                    key = ("regret", "1", f"{curve.removeprefix('R = ')}, {gap}", T)
                    yield key, f"{name}.csv", value
        for row in where(csv["readings"], T=T):
            if found := re.fullmatch(r"schedule built .*: R = (\d)", row["other reading"]):
                for gap, which in (("own", "usual"), ("1/16", "other")):
                    key = ("regret", "1", f"{found[1]}, {gap}", T)
                    yield key, "readings.csv", float(row[f"regret, {which} reading"])


def alone(csv):
    """Collects what sentences of CLAIMS say of ratios, from the tables of regret."""
    for T in HORIZONS:
        condition, power = f"T = {POWERS[T]}", f"T1e{len(T) - 1}"
        main = {row["algorithm"]: row for row in csv[f"arena_{power}"]}
        key = ("agents alone over CDP-MAB", T)
        # Only runs of the same seeds have the same ratio.
        single, cdp = main.get("CDP-MAB alone"), main["CDP-MAB"]
        if single and single["seeds"] == cdp["seeds"]:
            ratio = float(single["regret at T"]) / float(cdp["regret at T"])
            yield key, f"arena_{power}.csv", ratio
        for value in claim(csv, "we can obtain $MR_C(T)$ regret", "times", condition):
            yield key, "claims.csv", value
        name = "fig06_rounds_smallest_gap"
        curves = ending(csv, name, T)
        four, five, free = (curves["regret", curve] for curve in ("R = 4", "R = 5", "no budget"))
        for quote, head, excess in (
            ("$ R=4$ and 5 are almost the same", "R = 4 and 5 alike: excess", four / five),
            (
                "the regret of this case is close to the performance",
                "R = 5 close to no budget: excess",
                five / free,
            ),
        ):
            yield (head, T), f"{name}.csv", excess - 1
            for value in claim(csv, quote, "", f"{condition}, own gap"):
                yield (head, T), "claims.csv", value


def graphs(csv):
    """Collects what graphs and components cost; runs that draw agent by agent."""
    for T in HORIZONS:
        table = {row["graph"]: row for row in where(csv["table1_graphs"], T=T)}
        curves = ending(csv, "fig10_graphs", T)
        for graph, row in table.items():
            yield ("DDP-MAB", graph, T), "table1_graphs.csv", float(row["regret at T"])
            yield ("minus complete", graph, T), "table1_graphs.csv", float(row["minus complete"])
            links = float(row["cost at T, edges that carry data"])
            yield ("links used", graph, T), "table1_graphs.csv", links
        for (quantity, curve), value in curves.items():
            key = "DDP-MAB" if quantity == "regret at T" else "minus complete"
            yield (key, curve, T), "fig10_graphs.csv", value
        whole = float(table["complete"]["regret at T"])
        for graph, row in table.items():
            share = float(row["minus complete"]) / whole
            yield ("over complete", graph, T), "table1_graphs.csv", share
            text = row["minus complete, per cent"].removesuffix(" %").replace("+", "")
            yield ("over complete, per cent", graph, T), "table1_graphs.csv", text
            yield ("over complete, per cent", graph, T), "its regret", 100 * share
        quote = "the Ring graph incurs larger regret"
        for value in claim(csv, quote, "ring over complete", f"T = {POWERS[T]}"):
            yield ("over complete", "ring", T), "claims.csv", value
        for row in where(csv["arena_protocols_regret"], T=POWERS[T], protocol="GIS"):
            graph = row["graph"]
            yield ("DDP-MAB", graph, T), "arena_protocols_regret.csv", float(row["regret at T"])
            links = float(row["links at T, edges that carry data"])
            yield ("links used", graph, T), "arena_protocols_regret.csv", links
        for row in where(csv["readings"], T=T):
            if found := re.fullmatch(
                r"wait d_G .*: (\w+)|waits go .*: (ring), ε = 1", row["other reading"]
            ):
                graph = found[1] or found[2]
                yield ("DDP-MAB", graph, T), "readings.csv", float(row["regret, usual reading"])
            if row["other reading"].endswith("case 2, agents alike"):
                yield ("case", "2", T), "readings.csv", float(row["regret, usual reading"])
        costs = ending(csv, "fig11_hybrid_cost", T)
        extra = ending(csv, "fig11_hybrid", T)
        for row in where(csv["table2_hybrid"], T=T):
            case = row["case"]
            yield ("case", case, T), "table2_hybrid.csv", float(row["regret at T"])
            if case == "6":
                value = extra["regret at T", "case 6"]
                yield ("case", case, T), "fig11_hybrid.csv", value
            if case != "6":
                yield ("minus case 6", case, T), "table2_hybrid.csv", float(row["minus case 6"])
                value = extra["difference to case 6", f"case {case}"]
                yield ("minus case 6", case, T), "fig11_hybrid.csv", value
            for meter in ("edges", "hops to the sink"):
                head = f"cost at T, links counted by {meter}"
                yield (head, case, T), "table2_hybrid.csv", float(row[head])
                yield (head, case, T), "fig11_hybrid_cost.csv", costs[head, f"case {case}"]
        three = ending(csv, "fig12_heterogeneous_structures", T)
        for row in where(csv["fig13_heterogeneity"], T=T):
            apart = {"0": "homogeneous", "1": "heterogeneous"}.get(row["spread"])
            if apart and row["curve"] != "agents alone":
                key, curve = ("beside CDP-MAB", row["curve"], apart, T), f"{row['curve']}, {apart}"
                yield key, "fig13_heterogeneity.csv", float(row["difference to CDP-MAB at T"])
                value = three["difference to CDP-MAB", curve]
                yield key, "fig12_heterogeneous_structures.csv", value


def leaks(csv):
    """Collects what a message of the paper's setting leaks."""
    key = ("Nε at ε = 1, M = 50",)
    own = one(csv["arena_ledger"], algorithm="CDP-MAB", sees="actions")
    yield key, "arena_ledger.csv", float(own["ε"])
    for row in csv["table1_graphs"]:
        yield key, "table1_graphs.csv", row["leak"].removeprefix("Nε = ")
    for row in where(csv["fig07_tradeoff"], p="1"):
        yield key, "fig07_tradeoff.csv", float(row["leak"])
    for power in ("T1e4", "T1e5", "T1e6"):
        row = one(csv[f"arena_{power}"], algorithm="CDP-MAB")
        yield key, f"arena_{power}.csv", row["epsilon of messages"]


def captions(csv, pages):
    """Collects the level that the caption of figure 10 tells, beside which it draws differences."""
    (told,) = re.findall(r"of the reference, complete: (.*?)\. ", pages["fig10_graphs.md"])
    for value, power in re.findall(r"([\d,]+) \(T = (10\S)\)", told):
        horizon = next(T for T, text in POWERS.items() if text == power)
        yield ("DDP-MAB", "complete", horizon), "fig10_graphs.md", value


def collected(csv, pages):
    """Returns the values of each quantity, with the place of each."""
    found = {}
    collectors = (arena, server, participation, alone, graphs, leaks)
    notes = [note for collect in collectors for note in collect(csv)]
    for key, place, value in [*notes, *captions(csv, pages)]:
        found.setdefault(key, []).append((place, value))
    return found


def faults(csv, pages):
    """Returns the quantities that have two values."""
    found = []
    for key, values in collected(csv, pages).items():
        numbers = [(place, value) for place, value in values if isinstance(value, float)]
        if not numbers:
            found.append(f"{key}: no table has it, {values}")
            continue
        name, first = numbers[0]
        for place, value in values:
            same = (
                math.isclose(value, first, rel_tol=1e-9, abs_tol=1e-6)
                if isinstance(value, float)
                else reader.same(value, first)
            )
            if not same:
                found.append(f"{key}: {first} in {name}, {value} in {place}")
    return found


def test_a_quantity_has_one_value_on_all_pages():
    """Would catch a page that is older than another, and one made from other runs or seeds."""
    assert faults(tables(), texts()) == []


def test_every_kind_of_quantity_is_found_in_two_places():
    """Would catch a collector that finds nothing any more, since a page or a column was renamed."""
    found = {}
    for key, values in collected(tables(), texts()).items():
        found[key[0]] = found.get(key[0], 0) + (len({place for place, _ in values}) > 1)
    # Three horizons, and all contestants, graphs and cases.
    several = ("regret at T", "regret", "minus complete", "DDP-MAB")
    assert all(found[kind] >= 6 for kind in several) and sum(map(bool, found.values())) > 10, found


# A number of a CSV file that is another: the file, the column, what it becomes, the row.
CELLS = (
    ("arena_T1e5", "regret at T", lambda x: 1.001 * x, {"algorithm": "CDP-MAB"}),
    ("arena_T1e4", "links at T", lambda x: 1.001 * x, {"algorithm": "GosInE"}),
    ("arena_differ_T1e6", "agents alike", lambda x: 1.001 * x, {"algorithm": "CDP-MAB"}),
    ("table1_graphs", "minus complete", lambda x: -x, {"graph": "ring"}),
    ("fig07_tradeoff", "leak", lambda x: x / 50, {"p": "1"}),
)
# Files of other runs: every number is a little off.
OLDER = (
    "fig04_epsilon", "fig05_participation", "fig07_tradeoff_smallest_gap",
    "table2_hybrid", "fig13_heterogeneity", "claims", "arena_links_T1e5", "readings",
)  # fmt: skip
# Pages on which something else stands.
WORDS = (("fig10_graphs.md", r"(\d)(?= \(T = 10⁵\))", "\\g<1>1"),)


@pytest.mark.parametrize(
    "broken", [*CELLS, *OLDER, *WORDS], ids=lambda e: e if type(e) is str else e[0]
)
def test_a_stale_page_is_caught(broken):
    """Would catch a collector that lets one of these pass."""
    csv, pages = tables(), texts()
    if broken in CELLS:
        name, head, change, fixed = broken
        row = where(csv[name], **fixed)[-1]
        row[head] = repr(change(float(row[head])))
    elif broken in WORDS:
        name, pattern, new = broken
        pages[name], many = re.subn(pattern, new, pages[name], count=1)
        assert many == 1
    else:
        for row in csv[broken]:
            for head, text in row.items():
                if re.fullmatch(r"-?\d+\.\d+", text) and head not in ("p", "leak", "ε"):
                    row[head] = repr(float(text) * 1.0001)
    assert faults(csv, pages) != []
