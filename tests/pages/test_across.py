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
        for row in csv[f"arena_{power}"]:
            for end in ENDS:
                key = (f"regret at T{end}", row["algorithm"], T, row["seeds"])
                yield key, f"arena_{power}.csv", float(row[f"regret at T{end}"])
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


def graphs(csv):
    """Collects what graphs and components cost; runs that draw agent by agent."""
    for T in HORIZONS:
        table = {row["graph"]: row for row in where(csv["table1_graphs"], T=T)}
        curves = ending(csv, "fig10_graphs", T)
        for graph, row in table.items():
            yield ("DDP-MAB", graph, T), "table1_graphs.csv", float(row["regret at T"])
            yield ("minus complete", graph, T), "table1_graphs.csv", float(row["minus complete"])
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
    collectors = (arena, server, graphs, leaks)
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
    several = ("regret at T", "minus complete", "DDP-MAB")
    assert all(found[kind] >= 6 for kind in several) and sum(map(bool, found.values())) > 8, found


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
    assert faults(csv, texts()) != []
