"""The report says what its results hold, and is a page that can be read by anybody."""

import base64
import html
import json
import re
import shlex
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from sizes import SMALL

import fmab_jax as fmab
from fmab_jax.analysis.words import write_short
from fmab_jax.cli.main import main
from fmab_jax.reports.page import read_results
from fmab_jax.sweeps import exports
from fmab_jax.sweeps.study_file import build_study, read_study


class Page(HTMLParser):
    """Elements, texts, and tables by caption."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], []
        self.tables = []
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

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.tables[-1][0] += data
        elif {"th", "td"} & set(self.open):
            self.tables[-1][1][-1][-1] += data
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
    assert tags.count("table") == tags.count("caption") == 2
    assert {attrs.get("scope") for attrs in reader.every("th")} == {"col"}
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
    assert "<script" not in text and "<b>" not in text
    for label, run in runs.items():
        heads, (row,) = reader.table(f"{label}: Final values")
        mean = write_short(run.regret.values[:, -1].mean())
        assert row[heads.index("regret ± 95 %")].startswith(f"{mean} ±")
    told = reader.text
    name = "(<b>ours</b>|%{theirs} & co)"
    assert re.search(rf"{name} costs [\d,.]+ % (more|less) regret than {name} \[", told)


def test_results_of_one_name_are_two_and_one_result_twice_is_refused(tmp_path):
    """Would catch a result that a later one of the same label replaces without a word."""
    store, path = tmp_path / "a", tmp_path / "a.nc"
    sizes = {"agents": 5, "arms": 10, "horizon": 10**4, "seeds": 4, "times": 4}
    exports.export(fmab.sweep("cdp", **sizes, epsilon=1, store=store, progress=False), path)
    assert [*read_results([store, path])] == [str(store), str(path)]
    with pytest.raises(ValueError, match="must be distinct"):
        read_results([store, tmp_path / "." / "a"])


def uniform():
    return fmab.Problem.uniform(agents=5, arms=10)


def test_a_report_counts_the_seeds_that_were_selected():
    """Would catch intervals, and a number of seeds, of all seeds that were run."""
    data = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 10**4, 12).isel(seed=slice(5))
    reader = Page(page_of(data))
    heads, ((*row,),) = reader.table("Final values")
    final = data.regret.values[:, -1]
    half = stats.t.ppf(0.975, 4) * stats.sem(final)
    ends = f"{write_short(final.mean())} ± {write_short(float(f'{half:.2g}'))}"
    assert row[heads.index("regret ± 95 %")] == ends
    assert "T = 10⁴ slots, 5 seeds, root seed 0." in reader.text
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
    assert "Put the name of the file of means for FILE.npz." in text
    np.savez("FILE.npz", means=[0.9, 0.5])
    assert study_in(text, folder) == [fixed.attrs["study_hash"]]


@pytest.mark.parametrize("where", ["algorithm", "spacing"])
def test_code_in_a_forged_study_is_not_handed_on(where, grid):
    """Catches a word of a file in a command, or "Checked" over another study."""
    forged = json.loads(grid.attrs["study"]) | {where: "1; touch owned"}
    data = grid.isel(epsilon=[0], rounds=[0])
    assert "<pre" in page_of(data)
    assert "<pre" not in page_of(data.assign_attrs(study=json.dumps(forged)))
    assert "<pre" not in page_of(data.assign_attrs(study_hash="0" * 32))


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


def test_a_report_on_an_interrupted_sweep_tells_what_is_there(grid, tmp_path):
    """Would catch a page that needs all configurations: NaN has no place among whole numbers."""
    done = 3
    data = begun(grid, done)
    path = fmab.write_report(data, tmp_path / "x.html")
    text = Page(path.read_text("utf-8")).text
    assert f"Configurations that have fewer than 2 seeds so far: {6 - done}." in text
    lost = int(data.best_arm_lost.values.reshape(6, -1)[:done].sum())
    assert f"{lost} of {20 * done} seeds lost the best arm" in text
    assert f"{6 - done} configurations not begun yet" in text


LEVEL, SERVER = 0.95, 25


def test_a_page_holds_the_numbers_of_its_result():
    """Would catch a table of other numbers, or by other formulas, and a mean without its runs."""
    grid, seeds = {"epsilon": [0.02, 1, None], "rounds": [2, None]}, 16
    data = fmab.sweep("cdp", **SMALL, **grid, horizon=10**4, seeds=seeds, times=5, progress=False)
    lost = data.best_arm_lost.values.copy()
    lost[0, 0, [3, 5]] = True
    data = data.assign_coords(best_arm_lost=(data.best_arm_lost.dims, lost))
    shown = Page(page_of(data, server_price=SERVER))
    heads, rows = shown.table("Final values")
    finals = data.regret.values[..., -1].reshape(-1, seeds)
    links = data.links.values[..., -1, 0].reshape(-1, seeds)
    assert [row[:2] for row in rows[::5]] == [["0.02", "2"], ["no noise", "no round budget"]]
    for row, regret, link in zip(rows, finals, links, strict=True):
        cells = dict(zip(heads, row, strict=True))
        half = stats.t.ppf(0.5 + LEVEL / 2, seeds - 1) * stats.sem(regret)
        due = f"{write_short(regret.mean())} ± {write_short(float(f'{half:.2g}'))}"
        assert cells["regret ± 95 %"] == due
        assert cells["links max"] == write_short(link.max())
        assert cells["cost ± 95 %"].split()[0] == write_short(SERVER * link.mean())
    assert rows[0][heads.index("best arm lost, % [95 %]")].startswith("12.5 [")
    # One parameter at a time, against no noise and no budget.
    pairs = fmab.compare_all(data)
    assert len(pairs) == 3 and all(f"{pair.sentence}." in shown.text for pair in pairs)
    _, rows = shown.table("to whom")
    assert "ε = 0.08 to 4" in "; ".join(rows[0]) and "no bound" in rows[-1]
