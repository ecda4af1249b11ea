"""The report says what its results hold, and is a page that can be read by anybody."""

import base64
import html
import json
import os
import re
import shlex
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import fmab_jax as fmab
from fmab_jax.analysis.words import short
from fmab_jax.cli.main import main
from fmab_jax.reports import content
from fmab_jax.sweeps import exports
from fmab_jax.sweeps.study_file import read_study, study_of

SMALL = {"agents": 5, "arms": 10, "horizon": 10**4, "seeds": 20, "times": 8}


class Reader(HTMLParser):
    """What a page is made of: elements, tables as texts, names with values."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.tables, self.open, self.text = [], [], [], []
        self.listed = {"dt": [], "dd": []}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag in self.listed:
            self.listed[tag].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] in self.listed:
            self.listed[self.open[-1]][-1] += data.replace("\xa0", " ")
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def every(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def plain(text):
    """Returns a page's text with usual spaces."""
    return " ".join("".join(text).replace("\xa0", " ").split())


def page_of(results, **how):
    """Returns the page about results."""
    with tempfile.TemporaryDirectory() as folder:
        return fmab.write_report(results, Path(folder) / "x.html", **how).read_text("utf-8")


def told_of(results, **how):
    """Returns its text, with usual spaces."""
    return plain(Reader(page_of(results, **how)).text)


def study_in(text, folder):
    """Returns the hash of each study file that a page shows."""
    hashes = []
    for found in re.findall(r"<pre[^>]*><code>(.*?)</code>", text, re.S):
        (folder / "study.toml").write_text(html.unescape(found))
        hashes.append(study_of(read_study(folder / "study.toml")).hash)
    return hashes


@pytest.fixture(scope="module")
def written(grid, tmp_path_factory):
    """Its report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert fmab.write_report(grid, path) == path
    return path.read_text("utf-8")


def table(reader, caption):
    """Returns heads and rows of the table with a caption."""
    captions = [i for i, attrs in enumerate(reader.every("div")) if attrs.get("role") == "region"]
    names = [reader.every("div")[i]["aria-label"].replace("\xa0", " ") for i in captions]
    (found,) = [each for name, each in zip(names, reader.tables, strict=True) if caption in name]
    heads, *rows = [[cell.replace("\xa0", " ") for cell in row] for row in found]
    return heads, rows


def test_the_page_is_semantic_and_self_contained(written):
    """Would catch headings out of order, lost labels, links to nowhere, and anything fetched."""
    reader = Reader(written)
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
    assert tags.count("table") == tags.count("caption") == 4
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
    start = "Trusted “nobody, up to the epsilon of a message”: the smallest mean regret at the "
    assert f"{start}horizon, of 2 configurations, is {short(means[:2].min())} [" in text
    assert f": {best}, which leaks ε = {leak} (single messages)." in text
    assert ("The smallest leak, ε = 1 (single" in text) == (best != safest)
    start = "Trusted “secure aggregation: nobody sees one agent's message”: the mean regret at the "
    assert f"{start}horizon is {short(means[2])} [" in text
    assert "): sum, which leaks ε = 1 (sums over 4 agents)." in text
    assert "; trusted: “nobody, up to the epsilon of a message” or “secure aggregation: nob" in text
    alone = told_of(data.isel(algorithm=[1]))
    assert "The mean regret at the horizon is " in alone and "which leaks" not in alone


def test_what_went_wrong_is_told_at_the_level_that_is_asked_for(grid):
    """Would catch shares of 95 % where another level is asked for."""
    lost = grid.best_arm_lost.values.copy()
    lost[0, 0, [3, 5]] = True
    unlucky = grid.assign_coords(best_arm_lost=(grid.best_arm_lost.dims, lost))
    reader = Reader(page_of(unlucky, level=0.9))
    heads, rows = table(reader, "Seeds that went wrong")
    assert heads[5] == "share, 90 %" and rows[0][4] == "2"
    low, high = stats.binomtest(2, 20).proportion_ci(0.9, "exact")
    assert rows[0][5] == f"[{100 * low:.2g}, {100 * high:.2g}] %"


def test_a_sweep_until_precise_has_the_levels_of_its_looks(grid):
    """Would catch the level of one look told for all of them, and a band of another level."""
    looked = grid.isel(epsilon=[0, 1], rounds=[1])
    looked = looked.assign_attrs(looks=4, until_level=0.9, look_level=0.975)
    told = told_of(looked)
    assert "Interval: 90 % simultaneous band at T (97.5 % a look, 4 possible looks)." in told


def test_comparisons_beyond_what_a_page_holds_are_not_paid_for(grid, monkeypatch):
    """Would catch p-values adjusted for comparisons that are not made."""
    heads, every = table(Reader(page_of(grid)), "Differences of mean regret")
    monkeypatch.setattr(content, "_MOST_COMPARED", 2)
    text = page_of(grid)
    assert "2 of 3 comparisons are made, the first ones." in plain(Reader(text).text)
    _, few = table(Reader(text), "Differences of mean regret")
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
        *(("1", "90", "less"), ("4", "40", "more"), ("3", "30", "more"), ("2", "20", "more")),
    ]


def test_a_summary_has_tables_and_curves():
    """Would catch a report that needs single seeds, or that pairs what is not kept."""
    data = fmab.sweep("cdp", **SMALL, epsilon=[0.1, 1], keep="summary", progress=False)
    text = page_of(data)
    told = plain(Reader(text).text)
    assert "The largest possible error is used; 20 seeds each." in told
    assert len(Reader(text).every("img")) == 2
    heads, rows = table(Reader(text), "Final values")
    assert [row[heads.index("regret")] for row in rows] == [
        short(value) for value in data.regret_mean.isel(time=-1).values
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
    reader = Reader(text)
    assert text.count("<script") == 1 and "<b>" not in text
    heads, rows = table(reader, "Final values")
    assert heads[0] == "result" and [row[0] for row in rows] == list(runs)
    told = plain(reader.text)
    assert "How do <b>ours</b> and %{theirs} & co compare in regret" in told
    ours, theirs = (run.regret.values[:, -1] for run in runs.values())
    sign = "more" if ours.mean() > theirs.mean() else "less"
    assert re.search(rf"<b>ours</b> costs [\d,.]+ % {sign} regret than %{{theirs}} & co \[", told)


@pytest.mark.parametrize("axis", ["horizon", "agents"])
def test_other_questions_are_neither_ranked_nor_compared(grid, axis):
    """Would catch the smallest regret of the smallest problem, and a wrong reason for no table."""
    data = grid.isel(epsilon=0).drop_vars(["epsilon", "epsilon_message"]).drop_attrs(deep=False)
    data = data.rename(rounds=axis).assign_coords({axis: (axis, [5000, 10000])})
    data = data.assign_attrs(root_seed=0, title="CDP-MAB", settings="{}")
    if axis == "horizon":
        slots = np.stack([grid.time.values // 2, grid.time.values])
        data = data.assign_coords(slot=((axis, "time"), slots))
    told = told_of(data)
    why = "or they differ in horizon, size or problem, which are different questions."
    assert "Holm" not in told and why in told
    final = data.regret.values[1, :, -1].mean()
    assert "The smallest mean regret" not in told
    found = re.search(r"The mean regret at the horizon is ([\d,.]+) ", told)
    assert float(found[1].replace(",", "")) == pytest.approx(final, rel=5e-4)
    told = told_of({name: data.isel({axis: i}) for i, name in enumerate("ab")})
    assert why in told and "Their means are not ranked" in told


def uniform():
    return fmab.Problem.uniform(agents=5, arms=10)


def test_a_report_counts_the_seeds_that_were_selected():
    """Would catch intervals, and a number of seeds, of all seeds that were run."""
    data = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 10**4, 12).isel(seed=slice(5))
    reader = Reader(page_of(data))
    heads, ((*row,),) = table(reader, "Final values")
    final = data.regret.values[:, -1]
    low, high = stats.t.interval(0.95, 4, final.mean(), final.std(ddof=1) / 5**0.5)
    assert row[heads.index("interval, 95 %")] == f"[{short(low)}, {short(high)}]"
    named = dict(zip(reader.listed["dt"], reader.listed["dd"], strict=True))
    assert named["seeds"] == "5, root seed 0"
    assert [set(frame.seeds) for frame in exports.tidy(data)] == [{5}]


def test_a_run_stands_at_its_own_value_of_what_others_sweep():
    """Catches a run at another's value or none, an unswept value left out, 1 and 1.0 apart."""
    few = {**SMALL, "seeds": 2}
    results = {"swept": fmab.sweep("cdp", epsilon=[0.1, 1, 0.5], **few)}
    for epsilon in (0.5, 1.0, 0.7, None):
        results[str(epsilon)] = fmab.sweep("cdp", epsilon=epsilon, **few)
    heads, rows = table(Reader(page_of(results)), "Final values")
    assert heads[:2] == ["result", "privacy parameter ε"]
    assert [row[1] for row in rows] == ["0.1", "1", "0.5", "0.5", "1", "0.7", "no noise"]


def test_the_study_file_makes_the_results_again(grid, folder, capsys):
    """Would catch a file of another study, and a command that does not run it; it is run."""
    text = page_of(grid)
    assert study_in(text, folder) == [grid.attrs["study_hash"]]
    told = plain(Reader(text).text)
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


def test_results_that_do_not_say_enough_are_told_so(grid):
    """Would catch a study made up for foreign code, and a page without its reason."""
    data = grid.isel(epsilon=[0, 1], rounds=[0])
    silent = {name: value for name, value in data.attrs.items() if name != "study"}
    why = "No study file makes these results again"
    assert why in told_of(data.drop_attrs(deep=False).assign_attrs(silent))
    foreign = data.assign_attrs(study=data.attrs["study"].replace('"cdp"', '"mine"'))
    text = page_of(foreign)
    assert why in text and "<pre" not in text


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


def test_the_command_line_writes_a_report(folder, capsys, grid):
    """Would catch options of the command that are lost, and labels that are no names of files."""
    fmab.export(grid, "grid.nc")
    assert said(capsys, "report grid.nc").out.startswith("wrote report.html (0.")
    os.rename("grid.nc", "5 % new.nc")
    fmab.export(grid, "grid.nc")
    said(
        capsys,
        "report grid.nc '5 % new.nc' --select epsilon=1 --level 0.9 --title 'a b' --out b.html",
    )
    text = Path("b.html").read_text("utf-8")
    assert "<h1>a b</h1>" in text
    heads, rows = table(Reader(text), "Final values")
    assert heads[:4] == ["result", "round budget R", "leak ε of single messages", "regret"]
    assert "interval, 90 %" in heads
    budgets = ("2", "no round budget")
    assert [row[:2] for row in rows] == [[a, b] for a in ("grid", "5 % new") for b in budgets]


def test_a_reader_is_told_that_no_round_was_completed(folder, capsys, grid):
    """Would catch a remark of the text table that a report, or a table for programs, leaves out."""
    idle = grid.isel(epsilon=[0], rounds=[1])
    idle = idle.assign(rounds_made=0 * idle.rounds_made, chosen_arm=0 * idle.chosen_arm - 1)
    (remark,) = fmab.overview(idle).remarks
    assert remark.startswith("No round was completed")
    assert " ".join(remark.split()) in told_of(idle)
    fmab.export(idle, "idle.nc")
    shown = said(capsys, "show idle.nc --format csv")
    assert shown.err == f"{remark}\n" and "No round" not in shown.out


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
    text = plain(Reader(path.read_text("utf-8")).text)
    assert f"{6 - done} configurations have no seeds yet" in text
    lost = int(data.best_arm_lost.values.reshape(6, -1)[:done].sum())
    assert f"{lost} of {20 * done} seeds lost the best arm" in text
    assert f"{6 - done} configurations not begun yet" in text


ENDLESS = 100_000 * "x"


@pytest.mark.parametrize("where", ["title", "settings", "label"])
def test_words_that_are_endless_are_cut(grid, tmp_path, where):
    """Would catch a page of hundreds of megabytes, or one that takes minutes."""
    data = grid.isel(epsilon=[0], rounds=[0])
    given = {"title": ENDLESS} if where == "title" else {"settings": json.dumps({"a": ENDLESS})}
    sources = data.assign_attrs(given) if where != "label" else {ENDLESS: data, ENDLESS + "y": data}
    path = fmab.write_report(sources, tmp_path / "x.html")
    text = path.read_text("utf-8")
    assert 600 * "x" not in text and 400 * "x" in text
    assert len(set(re.findall(r"x… \(([0-9a-f]{8})\)", text))) == 1 + (where == "label")
