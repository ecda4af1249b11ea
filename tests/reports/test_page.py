"""The HTML report, read as its text stands there, against its result by NumPy and SciPy alone.

Its command and its curves: tests/reports/test_report.py.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from html.parser import HTMLParser
from typing import NamedTuple

import numpy as np
import pytest
from pages import reader
from scipy import special, stats
from sizes import SMALL

import fmab_jax as fmab
from fmab_jax.analysis import privacy

# Prices that the report is asked for, and where the report has "no noise" for none.
SERVER, LEVEL, DELTA = 25, 0.95, 1e-6
TICKS = {"epsilon": "no noise", "rounds": "no round budget"}
SIGNS = {"epsilon": "ε = ", "rounds": "R = "}
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
WHO = ("who", "what", "where")
VOID = {"meta", "img", "br", "input"}


class Part(NamedTuple):
    """A section of the page: texts by tag, tables by caption."""

    texts: dict[str, list[str]]
    tables: dict[str, list[list[str]]]


class Page(HTMLParser):
    """Reads a page into its sections, by their ids."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.parts = {"": Part({}, {})}
        self._id, self._caption, self._open = "", "", [("", [])]
        self.feed(text.replace("\xa0", " "))

    def handle_starttag(self, tag, attrs):
        found = {name: value or "" for name, value in attrs}
        if tag == "section":
            self._id = found["id"]
            self.parts[self._id] = Part({}, {})
        part = self.parts[self._id]
        if tag not in VOID:
            self._open.append((tag, []))
        if tag == "tr":
            part.tables.setdefault(self._caption, []).append([])

    def handle_data(self, data):
        for _, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag):
        own, texts = self._open.pop()
        assert own == tag, (own, tag)
        text, part = " ".join("".join(texts).split()), self.parts[self._id]
        if tag == "caption":
            self._caption = text
        elif tag in ("th", "td"):
            part.tables[self._caption][-1].append(text)
        elif tag == "section":
            self._id = ""
        elif tag not in ("script", "style"):
            part.texts.setdefault(tag, []).append(text)


class Cell(NamedTuple):
    """One configuration, by its own numbers."""

    ticks: tuple[str, str]
    leak: str
    regret: np.ndarray
    links: np.ndarray
    rounds: np.ndarray
    lost: np.ndarray
    worse: np.ndarray
    exploring: int

    @property
    def label(self):
        return ", ".join(
            tick if tick in TICKS.values() else sign + tick
            for sign, tick in zip(SIGNS.values(), self.ticks, strict=True)
        )


def cells(data):
    found = []
    axes = [data[name].values for name in SIGNS]
    for place in itertools.product(*map(range, data.seeds.shape)):
        named = zip(SIGNS, axes, place, strict=True)
        own = [TICKS[name] if axis[i] == "none" else f"{axis[i]:g}" for name, axis, i in named]
        epsilon = axes[0][place[0]]
        # Each of the agents that are heard adds noise for N times the epsilon of its sum.
        leak = "no bound" if epsilon == "none" else f"{data.attrs['agents'] * epsilon:.4g}"
        at = data[dict(zip(SIGNS, place, strict=True))]
        ends = at.regret[:, -1].values, at.links[:, -1, 0].values, at.rounds_made.values
        events = at.best_arm_lost.values, at.worse_arm_played.values
        exploring = int((at.chosen_arm == -1).sum())
        found.append(Cell((own[0], own[1]), leak, *ends, *events, exploring))
    return found


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


def told(text, value):
    plain = as_number(text)
    return bool(re.fullmatch(reader.NUMBER + r"(?:e-?\d+)?", plain)) and reader.same(plain, value)


def ends(text, low, high):
    """Tells whether "[low, high]", or per cent of it, has these ends."""
    found = re.fullmatch(r"\[(\S+), (\S+)\](?: %)?", text)
    return bool(found) and told(found[1], low) and told(found[2], high)


def share(many, of):
    """Returns the ends of the Clopper-Pearson interval, in per cent."""
    found = stats.binomtest(many, of).proportion_ci(LEVEL, "exact")
    return 100 * found.low, 100 * found.high


def hold(text, data):
    """Holds what the report says against its result."""
    page, own = Page(text), cells(data)
    for check in (finals, shortly, compared, ledger, wrong):
        check(page, own, data)


LEAK = "leak ε of single messages"


def finals(page, own, data):
    """Holds final values: what a row shows."""
    caption = "Final values, a row for each configuration"
    heads, *rows = page.parts["finals"].tables[caption]
    names = ["privacy parameter ε", "round budget R", LEAK, "regret", "interval, 95 %"]
    assert heads[:5] == names
    assert [row[:3] for row in rows] == [[*cell.ticks, cell.leak] for cell in own]
    for cell, row in zip(own, rows, strict=True):
        middle, low, high = mean(cell.regret)
        wanted = {"regret": middle, "rounds": cell.rounds.mean(), "seeds": len(cell.regret)}
        wanted |= {"links, server": cell.links.mean(), "cost": SERVER * cell.links.mean()}
        assert all(told(row[heads.index(head)], value) for head, value in wanted.items()), row
        assert ends(row[heads.index("interval, 95 %")], low, high), row
        assert row[heads.index("± %")] == f"{100 * (high - middle) / middle:.2g}", row


SENTENCE = re.compile(
    r"With (?P<at>[^:]+): (?:(?P<first>.+?) costs (?P<cost>\S+) % (?P<verdict>more|less) regret "
    r"than (?P<second>.+?)|no difference in regret is shown between (?P<one>.+?) and "
    r"(?P<other>.+?): (?P<none>\S+) %) (?P<ends>\[\S+, \S+\])"
    r"; (?:(?P<whose>.+?) leaks (?P<size>less|more): (?P<leak>.+?)"
    r"|(?P<alike>leak no bound each \(messages\))); links (?P<links>.+?)\."
)


def both(one, other):
    return f"{one} each" if one == other else f"{one} and {other.removeprefix('ε = ')}"


def pairs(own):
    """Returns what is compared: one parameter at a time with the reference, which has neither."""
    reference = next(cell for cell in own if set(cell.ticks) == set(TICKS.values()))
    found = []
    for axis in range(2):
        for cell in own:
            if cell is reference or cell.ticks[1 - axis] != reference.ticks[1 - axis]:
                continue
            first = list(SIGNS.values())[axis] + cell.ticks[axis]
            found.append((cell, reference, reference.ticks[1 - axis], first, reference.ticks[axis]))
    return found


def sentence(text, pair, adjusted):
    """Holds a sentence of a comparison against the seeds of both."""
    cell, base, at, first, second = pair
    found = SENTENCE.fullmatch(text)
    assert found, f"cannot be read: {text}"
    middle, low, high = percent(cell.regret, base.regret)
    verdict = "none" if adjusted >= 1 - LEVEL else ("more" if middle > 0 else "less")
    assert (found["verdict"] or "none") == verdict, first
    named = ("first", "second") if found["verdict"] else ("one", "other")
    assert found.group("at", *named) == (at, first, second)
    if found["verdict"] == "less":
        middle, low, high = -middle, -high, -low
    assert told(found["cost"] or found["none"], middle) and ends(found["ends"], low, high), first
    leaks = [each.leak for each in (cell, base)]
    views = [leak if leak == "no bound" else f"ε = {leak} (single messages)" for leak in leaks]
    if cell.leak != base.leak:
        views = [f"{view} (messages)" if view == "no bound" else view for view in views]
    # Of two without noise nothing is bounded; beside one of them, noise leaks less.
    due = None if views == 2 * ["no bound"] else both(*views)
    assert found["leak"] == due, f"{first} leaks {both(*views)}, not {found['leak']}"
    assert bool(found["alike"]) == (due is None)
    if due is not None:
        assert (found["size"], found["whose"]) == ("less", first), first
    links = both(*(f"{each.links.mean():.4g}" for each in (cell, base)))
    assert found["links"] == links, f"{first} takes {links} links"


def p_values(found):
    return [float(stats.ttest_rel(one.regret, base.regret).pvalue) for one, base, *_ in found]


def leak_of(cell):
    """Returns a leak as a number."""
    return float(cell.leak.replace("no bound", "inf"))


def shortly(page, own, _):
    """Holds the section "In short": the smallest, the comparisons, what went wrong."""
    texts = page.parts["short"].texts["li"]
    smallest, items = texts[:2], texts[2:]
    # Whoever reads messages is told nothing sure, or all.
    groups = {
        trust: [cell for cell in own if (cell.leak == "no bound") == open_]
        for trust, open_ in (
            ("nobody, up to the epsilon of a message", False),
            ("the server and the agents, with messages", True),
        )
    }
    least = {trust: min(cell.regret.mean() for cell in cells) for trust, cells in groups.items()}
    for text, trust in zip(smallest, sorted(groups, key=least.get), strict=True):
        among = groups[trust]
        best = min(among, key=lambda cell: cell.regret.mean())
        safest = [cell for cell in among if leak_of(cell) == min(map(leak_of, among))]
        safest = min(safest, key=lambda cell: cell.regret.mean())
        number = r"(\S+) (\[.*?\]) \(95 %\): "
        pattern = (
            rf"Trusted “{trust}”: the smallest mean regret at the horizon, of {len(among)} "
            rf"configurations, is {number}{re.escape(best.label)}"
        )
        if best.leak != "no bound":
            pattern += rf", which leaks ε = {best.leak} \(single messages\)"
        if safest.leak != best.leak:
            pattern += rf"\. The smallest leak, ε = {safest.leak} \(single messages\), has {number}"
            pattern += re.escape(safest.label)
        found = re.fullmatch(rf"{pattern}\.", text)
        assert found, f"{text} is not {pattern}"
        numbers = zip(found.groups()[::2], found.groups()[1::2], strict=True)
        for cell, (shown, around) in zip((best, safest), numbers, strict=False):
            middle, low, high = mean(cell.regret)
            assert told(shown, middle) and ends(around, low, high), middle
    compared_ = pairs(own)
    adjusted = holm(p_values(compared_))
    for pair, value in zip(compared_, adjusted, strict=True):
        starts = f": {pair[3]} costs", f" {pair[3]} and"
        (text,) = [item for item in items if any(start in item for start in starts)]
        sentence(text, pair, value)
        items.remove(text)
    lost, worse, exploring, unspent = items
    _wrong_in_all(lost, own, "lost the best arm", [int(cell.lost.sum()) for cell in own])
    _wrong_in_all(worse, own, "play a worse arm", [int(cell.worse.sum()) for cell in own])
    shares = [100 * cell.exploring / len(cell.regret) for cell in own]
    ranged = re.match(r"(\d+) to (\d+) % of the seeds still explore at T", exploring)
    assert ranged and all(map(told, ranged.groups(), (min(shares), max(shares))))
    short = [cell for cell in own if cell.ticks[1] == "2" and 0 < cell.rounds.mean() < 2]
    assert unspent.startswith(
        f"A budget of 2 rounds does not fit T in {len(short)} of {len(own)} rows: "
    )


def _wrong_in_all(text, own, what, many):
    """Holds a sentence on how many of all seeds went wrong, and where most did."""
    found = re.search(
        rf"(\d+) of (\d+) (?:seeds )?{what}[^,]*, most in one configuration (\d+) of (\d+) "
        r"\((?:95 % Clopper–Pearson interval )?([\d.]+)–([\d.]+) %\) at ([^.]*(?:\.\d+[^.]*)*)",
        text,
    )
    most = int(np.argmax(many))
    seeds = len(own[most].regret)
    wanted = [sum(many), sum(len(cell.regret) for cell in own), many[most], seeds]
    assert found and [int(each) for each in found.groups()[:4]] == wanted, what
    assert all(map(told, found.groups()[4:6], share(many[most], seeds))), what
    assert found[7] == own[most].label, f"most that {what} are at {own[most].label}"


def compared(page, own, _):
    """Holds the comparisons: count, sentences, table, p-values as they are and by Holm."""
    part, asked = page.parts["comparisons"], pairs(own)
    values = p_values(asked)
    adjusted = holm(values)
    signs = [np.sign((one.regret - base.regret).mean()) for one, base, *_ in asked]
    verdicts = [int(s) if v < 1 - LEVEL else 0 for s, v in zip(signs, adjusted, strict=True)]
    count = f"{len(asked)} comparisons: more regret {verdicts.count(1)}, less {verdicts.count(-1)}"
    assert part.texts["p"][0] == f"{count}, no difference shown {verdicts.count(0)}.", count
    for text, pair, value in zip(part.texts["li"], asked, adjusted, strict=True):
        sentence(text, pair, value)
    heads, *rows = part.tables["Differences of mean regret at the horizon"]
    assert heads == [
        *("at", "first", "second", "leaks ε of single messages", "regret, first", "regret, second"),
        *("difference", "interval", "per cent", "interval of it", "p-value", "p-value, Holm"),
    ]
    numbers = zip(rows, asked, values, adjusted, strict=True)
    for row, (cell, base, at, first, second), *ps in numbers:
        extra, more = mean(cell.regret - base.regret), percent(cell.regret, base.regret)
        assert row[:4] == [at, first, second, f"{cell.leak} and {base.leak}"], row[:4]
        numbers = cell.regret.mean(), base.regret.mean(), extra[0]
        good = all(map(told, row[4:7], numbers)) and ends(row[7], *extra[1:])
        assert good and told(row[8].removesuffix(" %"), more[0]), f"{first}: {extra}, {more}"
        assert ends(row[9], *more[1:]), f"{first}: {more}"
        assert all(map(told, row[10:], ps)), f"{first}: p-values {ps}"
    seeds = len(own[0].regret)
    assert f"Student's t of the differences; {seeds} seeds each." in part.texts["p"][-1], seeds
    assert f"adjusted for all {len(asked)} comparisons by Holm's method" in part.texts["p"][-1]


def ledger(page, _, data):
    """Holds who sees what: N ε, and what sums leak up to δ, by the law of their noise."""
    _heads, *rows = page.parts["ledger"].tables["What is told of one reward, and to whom"]
    kept = privacy.rows(data.attrs["ledger"])[0]
    assert [row[:3] for row in rows] == [[row[key] for key in WHO] for row in kept]
    agents = int(data.attrs["agents"])
    epsilons = [value for value in data.epsilon.values if value != "none"]
    leaks = [agents * min(epsilons), agents * max(epsilons)]
    runs = f"epsilon {' or '.join(f'{each:g}' for each in epsilons)}"
    noises = {"single messages": 0, f"sums over {agents} agents": agents - 1, "actions": agents}
    wanted = [*((what, runs) for what in noises), *[("messages", "epsilon none")] * 2]
    assert [tuple(row[1:3]) for row in rows] == [*wanted, ("actions", "epsilon none")]
    for row in rows[3:]:
        assert row[3] == "no bound", f"without noise {row[0]} has {row[3]}"
    for row, (what, many) in zip(rows, noises.items(), strict=False):
        pattern = r"ε = (\S+) to ([\d.]+)"
        values = list(leaks)
        if many:
            pattern += r", and (\S+) to (\S+) up to δ = 10⁻⁶"
            values += [up_to_delta(leak, many) for leak in leaks]
        found = re.fullmatch(pattern, row[3])
        assert found and all(map(told, found.groups(), values)), what


def wrong(page, own, _):
    """Holds the seeds that went wrong: counts and shares."""
    heads, *rows = page.parts["wrong"].tables["Seeds that went wrong"]
    share_ = "share, 95 %"
    assert heads == [
        *("privacy parameter ε", "round budget R", LEAK, "seeds", "lost the best arm", share_),
        *("play a worse arm at T", share_, "still exploring"),
    ]
    assert [row[:3] for row in rows] == [[*cell.ticks, cell.leak] for cell in own]
    for cell, row in zip(own, rows, strict=True):
        assert (row[3], row[8]) == (str(len(cell.regret)), str(cell.exploring)), cell.label
        for start, events in ((4, cell.lost), (6, cell.worse)):
            many, shown = row[start : start + 2]
            assert many == str(int(events.sum())), f"{cell.label}: {heads[start]}: {events.sum()}"
            assert ends(shown, *share(int(events.sum()), len(events))), cell.label


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


# A number of each section, whose last digit is changed.
BROKEN = {
    "finals": [r"Final values.*?<tbody>.*?>(\d,\d+)</td>", r"<tbody>.*?>\[[\d,]+, (\d[\d,]+)\]"],
    "comparisons": [r"Differences of mean.*?<tbody>.*?\+([\d,]+)</td>", r"more regret (\d+), less"],
    "ledger": [r"ε.=.([\d.]+) to", r"and ([\d.]+) to"],
    "wrong": [r"Seeds that went wrong.*?<tbody>.*?>(2)</td>", r"\[[\d.]+, (\d+)\]"],
    "short": [r"leaks less: ε.=.([\d.]+) ", r"links ([\d.]+) and", r"is ([\d.,]+) \["],
}


@pytest.mark.parametrize(
    ("section", "pattern"), [(section, each) for section in BROKEN for each in BROKEN[section]]
)
def test_a_broken_report_is_caught(report, result, section, pattern):
    """Would catch a reader of reports that overlooks a number."""
    start = report.index(f'<section id="{section}"')
    place = (
        re.compile(pattern, re.S).search(report, start, report.index("</section>", start)).end(1)
    )
    digit = str((int(report[place - 1]) + 1) % 10)
    with pytest.raises(AssertionError):
        hold(report[: place - 1] + digit + report[place:], result)
