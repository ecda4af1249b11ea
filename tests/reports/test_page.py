"""The numbers of a report against its result, by NumPy and SciPy alone.

What else a page has, and its command: tests/reports/test_report.py.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cache

import numpy as np
import pytest
from pages import reader
from reports.html_page import Page
from scipy import special, stats
from sizes import SMALL

import fmab_jax as fmab

# A price of the report, and the words for none.
SERVER, LEVEL, DELTA = 25, 0.95, 1e-6
NONE = {"epsilon": "no noise", "rounds": "no round budget"}
SIGNS = {"epsilon": "ε = ", "rounds": "R = "}
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
LEAK = "leak ε of single messages"


class Cell:
    """One configuration, by its own numbers."""

    def __init__(self, data, place):
        labels = [data[name].values[i] for name, i in zip(SIGNS, place, strict=True)]
        self.ticks = [
            NONE[name] if label == "none" else f"{label:g}"
            for name, label in zip(SIGNS, labels, strict=True)
        ]
        # Each of N agents adds noise for N times the epsilon of its sum.
        private = labels[0] != "none"
        self.leak = f"{data.attrs['agents'] * labels[0]:.4g}" if private else "no bound"
        at = data[dict(zip(SIGNS, place, strict=True))]
        self.regret, self.links = at.regret[:, -1].values, at.links[:, -1, 0].values
        self.rounds = at.rounds_made.values
        self.lost, self.worse = at.best_arm_lost.values, at.worse_arm_played.values
        self.exploring = int((at.chosen_arm == -1).sum())


def mean(values):
    """Returns a mean with the interval of Student's t."""
    half = stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1) * stats.sem(values)
    return values.mean(), values.mean() - half, values.mean() + half


def percent(one, base):
    """Returns how many per cent more a mean is: where the t of one - r base is critical."""
    critical = stats.t.ppf(0.5 + LEVEL / 2, len(one) - 1) ** 2 / len(one)
    (own, both), (_, other) = np.cov(one, base)
    first, last = base.mean() ** 2 - critical * other, one.mean() ** 2 - critical * own
    quadratic = [first, -2 * (one.mean() * base.mean() - critical * both), last]
    low, high = sorted(np.roots(quadratic).real)
    middle = one.mean() / base.mean()
    return tuple(100 * (each - 1) for each in (middle, low, high))


def holm(values):
    """Returns p-values adjusted for their number."""
    found, reached = [0.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values)):
        reached = max(reached, (len(values) - rank) * values[place])
        found[place] = min(1.0, reached)
    return found


@cache
def up_to_delta(leak, noises):
    """Returns the ε at which the hockey-stick divergence of a sum of Laplace variables is δ.

    A reward moves the sum by `leak` scales. The density is that of a variance-gamma law.
    """
    step = 1e-3
    z = np.arange(-60, 60 + leak, step) + step / 2

    def density(x):
        order = noises - 0.5
        log = order * np.log(np.abs(x) / 2) + np.log(special.kve(order, np.abs(x))) - np.abs(x)
        return np.exp(log) / (math.sqrt(math.pi) * math.gamma(noises))

    here, there = density(z), density(z - leak)
    low, high = 0.0, leak
    for _ in range(50):
        middle = (low + high) / 2
        above = np.maximum(there - math.exp(middle) * here, 0).sum() * step > DELTA
        low, high = (middle, high) if above else (low, middle)
    return high


def as_number(text):
    """Writes a printed number as a float is written: 6.8×10⁻⁷ as 6.8e-7."""
    return text.replace("−", "-").replace("+", "").replace("×10", "e").translate(POWERS)


def shows(text, value):
    """Tells whether a printed number is this one, to the digits that it has."""
    plain = as_number(text)
    return bool(re.fullmatch(reader.NUMBER + r"(?:e-?\d+)?", plain)) and reader.same(plain, value)


def ends(text, low, high):
    """Tells whether "[low, high]", or per cent of it, has these ends."""
    found = re.fullmatch(r"\[(\S+), (\S+)\](?: %)?", text)
    return bool(found) and shows(found[1], low) and shows(found[2], high)


def hold(text, data):
    """Holds the tables of a report against its result."""
    cells = [Cell(data, place) for place in itertools.product(*map(range, data.seeds.shape))]
    page = Page(text)
    hold_finals(*page.table("Final values"), cells)
    hold_comparisons(*page.table("Differences of mean regret"), cells)
    hold_ledger(page.table("to whom")[1], data)
    hold_events(*page.table("Seeds that went wrong"), cells)


def hold_finals(heads, rows, cells):
    assert heads[:3] == ["privacy parameter ε", "round budget R", LEAK]
    assert [row[:3] for row in rows] == [[*cell.ticks, cell.leak] for cell in cells]
    for cell, row in zip(cells, rows, strict=True):
        middle, low, high = mean(cell.regret)
        wanted = {"regret": middle, "rounds": cell.rounds.mean(), "seeds": len(cell.regret)}
        wanted |= {"links, server": cell.links.mean(), "cost": SERVER * cell.links.mean()}
        assert all(shows(row[heads.index(head)], value) for head, value in wanted.items()), row
        assert ends(row[heads.index("interval, 95 %")], low, high), row
        assert row[heads.index("± %")] == f"{100 * (high - middle) / middle:.2g}", row


def hold_comparisons(heads, rows, cells):
    """Holds the table of comparisons: one parameter at a time with the reference."""
    reference = next(cell for cell in cells if set(cell.ticks) == set(NONE.values()))
    pairs = []
    for axis, sign in enumerate(SIGNS.values()):
        for cell in cells:
            if cell is not reference and cell.ticks[1 - axis] == reference.ticks[1 - axis]:
                names = [reference.ticks[1 - axis], sign + cell.ticks[axis], reference.ticks[axis]]
                pairs.append((cell, names))
    values = [float(stats.ttest_rel(cell.regret, reference.regret).pvalue) for cell, _ in pairs]
    assert heads[:3] == ["at", "first", "second"]
    assert heads[-2:] == ["p-value", "p-value, Holm"]
    for row, (cell, names), *p in zip(rows, pairs, values, holm(values), strict=True):
        extra = mean(cell.regret - reference.regret)
        share = percent(cell.regret, reference.regret)
        assert row[:4] == [*names, f"{cell.leak} and {reference.leak}"], row[:4]
        numbers = cell.regret.mean(), reference.regret.mean(), extra[0]
        assert all(map(shows, row[4:7], numbers)) and ends(row[7], *extra[1:]), names
        assert shows(row[8].removesuffix(" %"), share[0]) and ends(row[9], *share[1:]), names
        assert all(map(shows, row[10:], p)), f"{names}: p-values {p}"


def hold_ledger(rows, data):
    """Holds N epsilon, and the leak of sums up to delta, by the law of their noise."""
    agents = int(data.attrs["agents"])
    epsilons = [value for value in data.epsilon.values if value != "none"]
    leaks = [agents * min(epsilons), agents * max(epsilons)]
    runs = f"epsilon {' or '.join(f'{each:g}' for each in epsilons)}"
    noises = {"single messages": 0, f"sums over {agents} agents": agents - 1, "actions": agents}
    wanted = [*((what, runs) for what in noises), *[("messages", "epsilon none")] * 2]
    assert [tuple(row[1:3]) for row in rows] == [*wanted, ("actions", "epsilon none")]
    assert all(row[3] == "no bound" for row in rows[3:])
    for row, (what, number) in zip(rows, noises.items(), strict=False):
        pattern, values = r"ε = (\S+) to ([\d.]+)", list(leaks)
        if number:
            pattern += r", and (\S+) to (\S+) up to δ = 10⁻⁶"
            values += [up_to_delta(leak, number) for leak in leaks]
        found = re.fullmatch(pattern, row[3])
        assert found and all(map(shows, found.groups(), values)), what


def hold_events(heads, rows, cells):
    assert heads[3:] == [
        *("seeds", "lost the best arm", "share, 95 %", "play a worse arm at T", "share, 95 %"),
        "still exploring",
    ]
    for cell, row in zip(cells, rows, strict=True):
        assert row[:3] == [*cell.ticks, cell.leak]
        assert (row[3], row[8]) == (str(len(cell.regret)), str(cell.exploring)), row
        for start, events in ((4, cell.lost), (6, cell.worse)):
            assert row[start] == str(int(events.sum())), row
            exact = stats.binomtest(int(events.sum()), len(events)).proportion_ci(LEVEL, "exact")
            assert ends(row[start + 1], 100 * exact.low, 100 * exact.high), row


@pytest.fixture(scope="module")
def result():
    """A small sweep, in which some seeds are made to go wrong, and a budget to do better."""
    grid = {"epsilon": [0.02, 1, None], "rounds": [2, None]}
    data = fmab.sweep("cdp", **SMALL, **grid, horizon=10**4, seeds=16, times=5, progress=False)
    lost, worse = (data[name].values.copy() for name in ("best_arm_lost", "worse_arm_played"))
    lost[0, 0, [3, 5]] = worse[0, 0, [3, 5]] = worse[1, 0, 7] = True
    regret = data.regret.values.copy()
    regret[2, 0] *= 0.3
    dims = data.best_arm_lost.dims
    data = data.assign_coords(best_arm_lost=(dims, lost), worse_arm_played=(dims, worse))
    return data.assign(regret=(data.regret.dims, regret))


@pytest.fixture(scope="module")
def report(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    fmab.write_report(result, path, server_price=SERVER)
    return path.read_text("utf-8")


def test_a_report_says_what_its_result_holds(report, result):
    """Would catch a report made from other numbers, by other formulas, or of other runs."""
    hold(report, result)


# Of each section: a number, whose last digit is changed.
BROKEN = [
    r"Final values.*?<tbody>.*?>(\d,\d+)</td>",
    r"Final values.*?<tbody>.*?>\[[\d,]+, (\d[\d,]+)\]",
    r"Differences of mean.*?<tbody>.*?\+([\d,]+)</td>",
    r"What is told.*?and ([\d.]+) to",
    r"Seeds that went wrong.*?<tbody>.*?>(2)</td>",
    r"Seeds that went wrong.*?<tbody>.*?\[[\d.]+, (\d+)\]",
]


@pytest.mark.parametrize("pattern", BROKEN)
def test_a_broken_report_is_caught(report, result, pattern):
    """Would catch a reader of reports that overlooks a number."""
    place = re.search(f"<caption>{pattern}", report, re.S).end(1)
    digit = str((int(report[place - 1]) + 1) % 10)
    with pytest.raises(AssertionError):
        hold(report[: place - 1] + digit + report[place:], result)
