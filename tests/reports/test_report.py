"""The report says what its results hold, and is a page that can be read by anybody."""

import base64
import html
import itertools
import json
import math
import re
import shlex
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from ledgers import add_ledgers, make_gaussian_row, make_row
from pages import reader
from scipy import special, stats
from sizes import SMALL

import fmab_jax as fmab
from fmab_jax.analysis.words import write_short
from fmab_jax.cli.main import main
from fmab_jax.reports import content
from fmab_jax.sweeps import exports
from fmab_jax.sweeps.study_file import build_study, read_study


class Page(HTMLParser):
    """Elements, texts, tables by caption, and the names and values of a list."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], []
        self.tables, self.listed = [], {"dt": [], "dd": []}
        self.feed(text.replace("\xa0", " "))
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append(["", []])
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in ("th", "td"):
            self.tables[-1][1][-1].append("")
        if tag in self.listed:
            self.listed[tag].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ""
        if "caption" in self.open:
            self.tables[-1][0] += data
        elif {"th", "td"} & set(self.open):
            self.tables[-1][1][-1][-1] += data
        if tag in self.listed:
            self.listed[tag][-1] += data
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        """The words of the page on one line."""
        return " ".join("".join(self.words).split())

    def every(self, tag):
        """Returns the attributes of all elements of a tag."""
        return [attrs for name, attrs in self.elements if name == tag]

    def table(self, caption):
        """Returns heads and rows of the table whose caption has these words."""
        (rows,) = [rows for title, rows in self.tables if caption in " ".join(title.split())]
        heads, *rows = [[" ".join(cell.split()) for cell in row] for row in rows]
        return heads, rows


@pytest.fixture(scope="module")
def grid():
    """A sweep with labels of mixed kinds."""
    sizes = {"agents": 5, "arms": 10, "horizon": 10**4, "seeds": 20, "times": 8}
    return fmab.sweep("cdp", **sizes, epsilon=[0.1, 1, None], rounds=[2, None], progress=False)


def page_of(results, **how):
    """Returns the page about results."""
    with tempfile.TemporaryDirectory() as folder:
        return fmab.write_report(results, Path(folder) / "x.html", **how).read_text("utf-8")


def told_of(results, **how):
    """Returns its text, with usual spaces."""
    return Page(page_of(results, **how)).text


def study_in(text, folder):
    """Returns the hash of each study file that a page shows."""
    hashes = []
    for found in re.findall(r"<pre[^>]*><code>(.*?)</code>", text, re.S):
        (folder / "study.toml").write_text(html.unescape(found))
        hashes.append(build_study(read_study(folder / "study.toml")).hash)
    return hashes


@pytest.fixture(scope="module")
def written(grid, tmp_path_factory):
    """Its report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert fmab.write_report(grid, path) == path
    return path.read_text("utf-8")


def test_the_page_is_semantic_and_self_contained(written):
    """Would catch headings out of order, lost labels, links to nowhere, and anything fetched."""
    reader = Page(written)
    assert written.startswith("<!DOCTYPE html>")
    assert reader.every("html") == [{"lang": "en"}]
    tags = [tag for tag, _ in reader.elements]
    assert [tags.count(tag) for tag in ("h1", "main", "title", "nav", "header")] == [1] * 5
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attrs in reader.every("a"):
        assert attrs["href"].startswith("#") and attrs["href"][1:] in ids
    for attrs in reader.every("section"):
        assert attrs["aria-labelledby"] in ids
    assert tags.count("table") == tags.count("caption") == 5
    assert {attrs.get("scope") for attrs in reader.every("th")} == {"row", "col"}
    images = reader.every("img")
    assert len(images) == 2
    for attrs in images:
        assert attrs["src"].startswith("data:image/svg+xml;base64,") and len(attrs["alt"]) > 100
        drawn = base64.b64decode(attrs["src"].partition(",")[2])
        assert drawn.startswith(b"<?xml")
    # Nothing that would be fetched.
    for name, attrs in reader.elements:
        assert name not in ("link", "iframe", "object", "embed", "base")
        assert name == "img" or not {"src", "srcset", "data", "action"} & set(attrs)
        assert not any(key.startswith("on") for key in attrs)
    assert "url(" not in written.partition("</style>")[0]
    assert len(written) < 3.5e6


def test_the_smallest_regret_is_told_with_leak_and_trust():
    """Catches a leak of 4 ranked above one of 1, or a secure sum above single messages, without a
    word; and the trust of a class told of a run."""
    given = {"problem": fmab.Problem.uniform(4, 3), "horizon": 10**4, "seeds": 20}
    several = {"one": fmab.cdp_mab(1.0), "two": fmab.kl_se(1.0)}
    several["sum"] = fmab.kl_se(1.0, secure=True)
    data = fmab.sweep(several, **given, progress=False)
    text = told_of(data)
    means = fmab.final_table(data).regret.values
    best, safest = ("one", "two")[int(means[:2].argmin())], "two"
    leak = {"one": 4, "two": 1}[best]
    start = "Trusted “nobody: a message leaks at most its epsilon”: the smallest mean regret at "
    start += "the "
    assert f"{start}horizon, of 2 configurations, is {write_short(means[:2].min())} [" in text
    assert f": {best}, which leaks ε = {leak} (single messages)." in text
    assert ("The smallest leak, ε = 1 (single" in text) == (best != safest)
    start = "Trusted “secure aggregation: nobody sees one agent's message”: the mean regret at the "
    assert f"{start}horizon is {write_short(means[2])} [" in text
    assert "): sum, which leaks ε = 1 (sums over 4 agents)." in text
    assert "; trusted: “nobody: a message leaks at most its epsilon” or “secure aggregation" in text
    alone = told_of(data.isel(algorithm=[1]))
    assert "The mean regret at the horizon is " in alone and "which leaks" not in alone


def page_of_leaks(grid, rows, factor):
    """Returns the page about two configurations with these rows; the second has other regret."""
    data = grid.isel(epsilon=[0, 1], rounds=[1])
    data = add_ledgers(data, [[each, make_row("actions", 1.0)] for each in rows], data.seeds.dims)
    regret = data.regret.values[[0, 0]] * np.reshape([1.0, factor], (2, 1, 1, 1))
    return Page(page_of(data.assign(regret=(data.regret.dims, regret))))


def test_a_leak_up_to_delta_is_told_with_it(grid):
    """Would catch an epsilon without its δ in a table or a sentence, one that is ranked among those
    without, and a tie that is decided by regret."""
    pure, up_to, pair = make_row("single messages", 5.0), make_gaussian_row(), "(1.448, 10⁻⁶)"
    page = page_of_leaks(grid, [pure, up_to], 2.0)
    for caption in ("Final values", "Seeds that went wrong"):
        heads, rows = page.table(caption)
        column = heads.index(LEAK.replace("ε", "(ε, δ)"))
        assert [row[column] for row in rows] == ["5", pair]
    _, rows = page.table("Differences of mean regret")
    assert [pair in cell for cell in rows[0]].count(True) == 1
    assert f"[0.1, 10] leak ε = 5 and (ε, δ) = {pair} (single" not in page.text
    assert f"; leak ε = 5 and (ε, δ) = {pair} (single messages)" in page.text
    assert "), which leaks ε = 5 (single messages)." in re.sub(r"\): ε = [\d.]+", ")", page.text)
    # Neither leaks less than the other.
    assert "The smallest leak" not in page.text
    equal = make_row("single messages", float(add_ledgers(xr.Dataset(), [[up_to]]).leak_messages))
    for rows, factor in (([up_to, equal], 2.0), ([equal, up_to], 0.5)):
        text = page_of_leaks(grid, rows, factor).text
        assert (
            f", which leaks (ε, δ) = {pair} (single messages). The smallest leak, ε = 1.4" in text
        )
    for rows, factor in (([equal, up_to], 2.0), ([up_to, equal], 0.5)):
        assert "The smallest leak" not in page_of_leaks(grid, rows, factor).text


def test_comparisons_beyond_what_a_page_holds_are_not_paid_for(grid, monkeypatch):
    """Would catch p-values adjusted for comparisons that are not made."""
    heads, every = Page(page_of(grid)).table("Differences of mean regret")
    monkeypatch.setattr(content, "_MOST_COMPARED", 2)
    text = page_of(grid)
    assert "2 of 3 comparisons are made, the first ones." in Page(text).text
    _, few = Page(text).table("Differences of mean regret")
    assert [row[:-1] for row in few] == [row[:-1] for row in every[:2]]
    small, large = sorted(float(row[-2].translate(POWERS).replace("×10", "e")) for row in few)
    adjusted = sorted(float(row[-1].translate(POWERS).replace("×10", "e")) for row in few)
    assert adjusted == pytest.approx([2 * small, max(large, 2 * small)], rel=0.2)


POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def test_the_headlines_are_the_largest_differences(grid):
    """Would catch headlines that leave out the largest saving, or all of the table."""
    data = grid.isel(epsilon=[1] * 6, rounds=[1]).drop_vars("epsilon_message")
    data = data.assign_coords(epsilon=("epsilon", np.arange(1.0, 7), grid.epsilon.attrs))
    factors = xr.DataArray([0.1, 1.2, 1.3, 1.4, 1.1, 1.0], dims="epsilon")
    text = page_of(data.assign(regret=data.regret * factors))
    findings = re.search(r'<ul class="findings">(.*?)</ul>', text, re.S)[1].replace("\xa0", " ")
    assert re.findall(r"ε = (\d) costs (\d+)(?:\.0+)? % (more|less)", findings) == [
        *(("1", "90", "less"), ("4", "40", "more"), ("3", "30", "more"), ("2", "20", "more"))
    ]


def test_the_bytes_depend_on_the_results_only(written, grid, tmp_path):
    """Would catch a date, a random name, or an order of a set."""
    once_more = fmab.write_report(grid, tmp_path / "again.html")
    assert once_more.read_text("utf-8") == written


def test_several_results_stand_beside_each_other(grid, tmp_path):
    """Would catch labels that are lost, and a text that becomes a part of the page."""
    one, other = grid.isel(epsilon=1, rounds=1), grid.isel(epsilon=0, rounds=1)
    runs = {"<b>ours</b>": one, "%{theirs} & co": other}
    path = fmab.write_report(runs, tmp_path / "a.html", title="</title><script>alert(1)</script>")
    text = path.read_text("utf-8")
    reader = Page(text)
    assert text.count("<script") == 1 and "<b>" not in text
    heads, rows = reader.table("Final values")
    assert heads[0] == "result" and [row[0] for row in rows] == list(runs)
    told = reader.text
    assert "How do <b>ours</b> and %{theirs} & co compare in regret" in told
    ours, theirs = (run.regret.values[:, -1] for run in runs.values())
    sign = "more" if ours.mean() > theirs.mean() else "less"
    assert re.search(rf"<b>ours</b> costs [\d,.]+ % {sign} regret than %{{theirs}} & co \[", told)


def uniform():
    return fmab.Problem.uniform(agents=5, arms=10)


def test_a_report_counts_the_seeds_that_were_selected():
    """Would catch intervals, and a number of seeds, of all seeds that were run."""
    data = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 10**4, 12).isel(seed=slice(5))
    reader = Page(page_of(data))
    heads, ((*row,),) = reader.table("Final values")
    final = data.regret.values[:, -1]
    low, high = stats.t.interval(0.95, 4, final.mean(), final.std(ddof=1) / 5**0.5)
    assert row[heads.index("interval, 95 %")] == f"[{write_short(low)}, {write_short(high)}]"
    named = dict(zip(reader.listed["dt"], reader.listed["dd"], strict=True))
    assert named["seeds"] == "5, root seed 0"
    assert [set(frame.seeds) for frame in exports.tidy_tables(data)] == [{5}]


def test_the_study_file_makes_the_results_again(grid, folder, capsys):
    """Would catch a file of another study, and a command that does not run it; it is run."""
    text = page_of(grid)
    assert study_in(text, folder) == [grid.attrs["study_hash"]]
    told = Page(text).text
    assert "save this as study.toml and run fmab sweep study.toml" in told
    said(capsys, "sweep study.toml")
    again = fmab.open_sweep("runs/study")
    np.testing.assert_array_equal(again.regret.values, grid.regret.values)
    assert again.attrs["study_hash"] == grid.attrs["study_hash"]


def test_a_study_file_lists_seeds_and_leaves_means_open(folder):
    """Would catch seeds 0, 1 and 2 for results of 3, 5 and 9, and no word of missing means."""
    listed = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 300, [3, 5, 9])
    text = page_of(listed)
    assert study_in(text, folder) == [listed.attrs["study_hash"]]
    fixed = fmab.simulate(fmab.cdp_mab(1.0), fmab.Problem([0.9, 0.5], agents=4), 300, 3)
    text = page_of(fixed)
    assert "The means are not in it: put the name of their file" in text
    np.savez("FILE.npz", means=[0.9, 0.5])
    assert study_in(text, folder) == [fixed.attrs["study_hash"]]


def test_the_study_is_checked_against_its_hash():
    """Would catch a study file of other results than the page shows."""
    data = fmab.simulate(fmab.cdp_mab(0.5), uniform(), 300, 3)
    assert "<pre" in page_of(data)
    assert "<pre" not in page_of(data.assign_attrs(study_hash="0" * 32))


@pytest.mark.parametrize("where", ["algorithm", "keep", "spacing"])
def test_code_in_a_forged_study_is_not_handed_on(where, grid):
    """Catches a word of a file in a command, or "Checked" over another study."""
    forged = json.loads(grid.attrs["study"]) | {where: "1; touch owned"}
    data = grid.isel(epsilon=[0, 1], rounds=[0]).assign_attrs(study=json.dumps(forged))
    assert "<pre" not in page_of(data)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, words, status=0):
    capsys.readouterr()
    assert main(shlex.split(words)) == status, capsys.readouterr()
    return capsys.readouterr()


def begun(grid, done):
    """Returns what is there of a sweep that was interrupted after so many configurations."""
    there = (np.arange(grid.seeds.size) < done).reshape(grid.seeds.shape)
    there = xr.DataArray(there, dims=grid.seeds.dims)
    curves = {n: grid[n].where(there) for n in ("regret", "waiting_regret", "links")}
    ends = {n: grid[n].where(there) for n in ("rounds_made", "active_arms", "chosen_arm")}
    return grid.assign(**curves, **ends, seeds=grid.seeds.where(there, 0).astype(int))


@pytest.mark.parametrize("done", [1, 3])
def test_a_report_on_an_interrupted_sweep_tells_what_is_there(grid, tmp_path, done):
    """Would catch a page that needs all configurations: NaN has no place among whole numbers."""
    data = begun(grid, done)
    path = fmab.write_report(data, tmp_path / "x.html")
    text = Page(path.read_text("utf-8")).text
    assert f"without seeds yet: {6 - done} configuration{'s' * (done < 5)}" in text
    lost = int(data.best_arm_lost.values.reshape(6, -1)[:done].sum())
    assert f"{lost} of {20 * done} seeds lost the best arm" in text
    assert f"{6 - done} configurations not begun yet" in text


# --- the numbers of a report, by NumPy and SciPy alone ---

# A price of the report, and the words for none.
SERVER, LEVEL, DELTA = 25, 0.95, 1e-6
NONE = {"epsilon": "no noise", "rounds": "no round budget"}
SIGNS = {"epsilon": "ε = ", "rounds": "R = "}
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
    hold_spending(*page.table("Links, numbers and bits"), cells)
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


def hold_spending(heads, rows, cells):
    """Holds the table of links, numbers and bits of runs."""
    for cell, row in zip(cells, rows, strict=True):
        wanted = {"links": cell.links.mean(), "links max": cell.links.max()}
        wanted["links 95 %"] = np.quantile(cell.links, 0.95, method="higher")
        assert all(shows(row[heads.index(head)], value) for head, value in wanted.items()), row
        means = [float(row[heads.index(name)].replace(",", "")) for name in ("numbers", "bits")]
        assert means[1] == pytest.approx(64 * means[0], rel=1e-2)


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
    # Actions are named by who sees them.
    viewers = ("the server", "the agents", "an outsider who sees actions")
    noises = {"single messages": 0, f"sums over {agents} agents": agents - 1, "": agents}
    wanted = [(who, what, runs) for who, what in zip(viewers, noises, strict=True)]
    open_ = (*((who, "messages") for who in viewers[:2]), ("anybody who sees actions", ""))
    wanted += [(*each, "epsilon none") for each in open_]
    assert [tuple(row[:3]) for row in rows] == wanted
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
