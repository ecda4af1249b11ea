"""The report says what its results hold, and is a page that can be read by anybody."""

import base64
import functools
import gzip
import hashlib
import html
import inspect
import json
import math
import os
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import fmab_jax as fmab
from fmab_jax.analysis.statements import Comparison
from fmab_jax.analysis.words import short
from fmab_jax.cli.main import main
from fmab_jax.cli.options import parse
from fmab_jax.cli.run import Options as RunOptions
from fmab_jax.cli.stated import command_of, study_of
from fmab_jax.reports import again as again_
from fmab_jax.reports import content, page, pictures
from fmab_jax.reports.again import again
from fmab_jax.sweeps import exports, study_file
from fmab_jax.sweeps.grid import attributes_of
from fmab_jax.sweeps.results import read
from fmab_jax.sweeps.study import state

SMALL = {"agents": 5, "arms": 10, "horizon": 10**4, "seeds": 20, "times": 8}


class Reader(HTMLParser):
    """What a page is made of: elements, tables as texts and as sort keys, names with values."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.tables, self.keys, self.open, self.text = [], [], [], [], []
        self.listed, self.below = {"dt": [], "dd": []}, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
            self.keys.append([])
        if tag == "tr":
            self.tables[-1].append([])
            self.keys[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self.keys[-1][-1].append(dict(attrs).get("data-v"))
        if tag in self.listed:
            self.listed[tag].append("")
        if tag == "figcaption":
            self.below.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] in self.listed:
            self.listed[self.open[-1]][-1] += data.replace("\xa0", " ")
        if "figcaption" in self.open:
            self.below[-1] += data.replace("\xa0", " ")
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def every(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def plain(text):
    """Returns a page's text with usual spaces."""
    return " ".join("".join(text).replace("\xa0", " ").split())


def gathered(results, level=0.95):
    """Returns what a report says of results by label."""
    results = {label: (data, None) for label, data in results.items()}
    how = {"title": None, "server_price": 1.0, "peer_price": 1.0}
    return content.gathered(results, level=level, **how)


def made(results, level=0.95):
    """Returns the same, and the text of its page, with usual spaces."""
    whole = gathered(results, level)
    return whole, plain(Reader(page.page(whole)).text)


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
    assert tags.count("table") == tags.count("caption") == 5
    assert {attrs.get("scope") for attrs in reader.every("th")} == {"row", "col"}
    images = reader.every("img")
    assert len(images) == 2
    for attrs in images:
        assert attrs["src"].startswith("data:image/svg+xml;base64,") and len(attrs["alt"]) > 100
        drawn = base64.b64decode(attrs["src"].partition(",")[2])
        assert drawn.startswith(b"<?xml")
        # Below a picture of 36 rem, in letters of 0.9 rem, half as wide as high, 1.5 apart.
        wide, tall = map(float, re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn).groups())
        (short,) = [each for each in reader.below if attrs["alt"].startswith(each[:20])]
        below = math.ceil(len(short) * 0.45 / 36) * 1.5 * 0.9
        assert below <= 0.2 * (below + 36 * tall / wide) and "20 seeds" in short
        assert "95 % " in short and "T = 10⁴ slots" in short and len(attrs["alt"]) > len(short)
    # Nothing that would be fetched.
    for name, attrs in reader.elements:
        assert name not in ("link", "iframe", "object", "embed", "base")
        assert name == "img" or not {"src", "srcset", "data", "action"} & set(attrs)
        assert not any(key.startswith("on") for key in attrs)
    assert "url(" not in written.partition("</style>")[0]
    assert len(written) < 3.5e6


def test_only_the_scripts_of_the_page_may_run(written):
    """Would catch a policy whose hashes are not those of the scripts, or that lets others in."""
    (policy,) = [a["content"] for a in Reader(written).every("meta") if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    own = written.rpartition("<script>")[2].partition("</script>")[0]
    packed = re.search(r'id="library">([^<]+)</script>', written)[1]
    library = gzip.decompress(base64.b64decode(packed)).decode()
    assert library.startswith("/**\n* plotly.js v")
    digests = [hashlib.sha256(script.encode()).digest() for script in (library, own)]
    digests = [base64.b64encode(each).decode() for each in digests]
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in digests)


def test_the_best_configuration_and_what_its_command_computes(written, grid):
    """Catches the largest regret as the smallest, and a command that computes more, unsaid."""
    text = plain(Reader(written).text)
    means = grid.regret.values[..., -1].mean(-1)
    pattern = r"regret at the horizon, of {} configurations, is (\S+) \[.*?\): (.*?)(?:\.|, which)"
    # Without noise everybody who gets messages has to be trusted: those are ranked by themselves.
    for own, first in ((means[:2], 0), (means[2:], 2)):
        i, j = np.unravel_index(own.argmin(), own.shape)
        label = [["ε = 0.1", "ε = 1", "no noise"][first + i], ["R = 2", "no round budget"][j]]
        told = re.search(pattern.format(own.size), text)
        assert float(told[1].replace(",", "")) == pytest.approx(own.min(), rel=5e-4)
        assert told[2] == ", ".join(label)
    assert "It computes all" not in text
    assert "It computes all 6 configurations" in made({"": grid.isel(epsilon=[0, 1])})[1]


def test_the_smallest_regret_is_told_with_leak_and_trust():
    """Catches a leak of 4 ranked above one of 1, or a secure sum above single messages, without a
    word; and the trust of a class told of a run."""
    given = {"problem": fmab.Problem.uniform(4, 3), "horizon": 10**4, "seeds": 20, "epsilon": [1.0]}
    secure = functools.partial(fmab.kl_se, secure=True)
    data = fmab.sweep({"one": "cdp", "two": "kl_se", "sum": secure}, **given, progress=False)
    text = made({"": data})[1]
    means = fmab.final_table(data).regret.values[:, 0]
    best, safest = ("one", "two")[int(means[:2].argmin())], "two"
    leak = {"one": 4, "two": 1}[best]
    start = "Trusted “nobody, up to the epsilon of a message”: the smallest mean regret at the "
    assert f"{start}horizon, of 2 configurations, is {short(means[:2].min())} [" in text
    assert f": {best}, which leaks ε = {leak} (single messages). " in text
    said = "None of them leaks less." if best == safest else "The smallest leak, ε = 1 (single"
    assert said in text
    start = "Trusted “secure aggregation: nobody sees one agent's message”: the mean regret at the "
    assert f"{start}horizon is {short(means[2])} [" in text
    assert "): sum, which leaks ε = 1 (sums over 4 agents)." in text
    assert "; trusted: “nobody, up to the epsilon of a message” or “secure aggregation: nob" in text
    alone = made({"": data.isel(algorithm=[1])})[1]
    assert "The mean regret at the horizon is " in alone and "which leaks" not in alone


def test_what_went_wrong_is_told_at_the_level_that_is_asked_for(grid):
    """Would catch shares of 95 % where another level is asked for."""
    lost = grid.best_arm_lost.values.copy()
    lost[0, 0, [3, 5]] = True
    unlucky = grid.assign_coords(best_arm_lost=(grid.best_arm_lost.dims, lost))
    reader = Reader(page.page(made({"": unlucky}, 0.9)[0]))
    heads, rows = table(reader, "Seeds that went wrong")
    assert heads[5] == "share, 90 %" and rows[0][4] == "2"
    low, high = stats.binomtest(2, 20).proportion_ci(0.9, "exact")
    assert rows[0][5] == f"[{100 * low:.2g}, {100 * high:.2g}] %"


def test_what_the_script_draws_is_the_band(written, grid):
    """Would catch curves of other cells, thinned wrongly, or bands of another level."""
    text = re.search(r'id="data">(.+?)</script>', written, re.S)[1]
    data = json.loads(text)
    assert [axis["name"] for axis in data["axes"]] == ["epsilon", "rounds"]
    assert [axis["reference"] for axis in data["axes"]] == [2, 1]
    assert data["curves"]["grids"] == [grid.time.values.tolist()]
    for entry in data["curves"]["cells"]:
        i, j = data["cells"][entry["cell"]]["at"]
        band = fmab.confidence_band(grid.regret[i, j])
        for drawn, name in zip(entry["regret"], ("mean", "lower", "upper"), strict=True):
            np.testing.assert_allclose(drawn, band[name].values, rtol=1e-5)
        links = grid.links.values[i, j, :, :, 0].mean(axis=0)
        np.testing.assert_allclose(entry["links"]["server"][0], links, rtol=1e-5)


def test_a_sweep_until_precise_has_the_levels_of_its_looks(grid):
    """Would catch the level of one look told for all of them, and a band of another level."""
    looked = grid.isel(epsilon=[0, 1], rounds=[1])
    looked = looked.assign_attrs(looks=4, until_level=0.9, look_level=0.975)
    made_, told = made({"": looked})
    assert made_.interval == "90 % simultaneous band at T (97.5 % a look, 4 possible looks)"
    assert made_.band.startswith("97.5 % simultaneous") and made_.band in told
    for entry, run in zip(made_.curves["cells"], looked.regret[:, 0], strict=True):
        band = fmab.confidence_band(run, 0.975)
        for drawn, name in zip(entry["regret"], ("mean", "lower", "upper"), strict=True):
            np.testing.assert_allclose(drawn, band[name].values, rtol=1e-5)


def counted(summary=False):
    """Returns links of 4 seeds on a meter that costs and two of agents, of which one does."""
    rounds = np.array([[1, 2, 3], [1, 1, 2], [0, 2, 2], [1, 3, 5]])
    sides = {"side": ["server", "peer", "peer"], "priced": [True, False, True]}
    coords = {"meter": ["server", "used", "bound"], **{k: ("meter", v) for k, v in sides.items()}}
    links = rounds[..., None] * np.array([3, 5, 7])
    if not summary:
        made = {"links": (("seed", "time", "meter"), links), "seeds": ((), 4)}
        return xr.Dataset(made, coords)
    made = {"links_mean": (("time", "meter"), links.mean(0)), "seeds": ((), 4)}
    made["links_variance"] = (("time", "meter"), links.var(0, ddof=1))
    return xr.Dataset(made, coords)


@pytest.mark.parametrize("summary", [False, True])
def test_bands_of_links_and_cost_by_hand(summary):
    """Catches n for n - 1, a normal quantile, a variance, a free meter's price, swapped prices."""
    data = counted(summary)
    meters = {"server": "", "used": "", "bound": "", "the cost": ""}
    found = content._links(data, meters, 0.9, (25.0, 2.0))
    assert list(found) == list(meters)
    rounds = counted().links.values[..., 0] / 3
    for name, each in {"server": 3, "used": 5, "bound": 7, "the cost": 25 * 3 + 2 * 7}.items():
        mean, low, high = found[name]
        values = rounds * each
        np.testing.assert_allclose(mean, values.mean(0), rtol=1e-12)
        error = values.std(0, ddof=1) / 2
        ends = stats.t.interval(0.9, 3, values.mean(0), error)
        np.testing.assert_allclose([low, high], ends, rtol=1e-9)
    assert "the cost" not in content._links(data, {"server": ""}, 0.9, (25.0, 2.0))


def test_the_worst_seed_of_each_event():
    """Would catch the mildest seed, one that went right, and 0 where none went wrong."""
    final = [[0, 5.0], [0, 9.0], [0, 7.0], [0, 20.0]]
    events = {"best_arm_lost": [True, False, True, False], "worse_arm_played": [False] * 4}
    data = xr.Dataset({"regret": (("seed", "time"), final)})
    data = data.assign_coords({name: ("seed", hit) for name, hit in events.items()})
    assert content._worst(data) == {"best_arm_lost": 7.0, "worse_arm_played": None}
    assert content._worst(data.drop_vars("regret")) == dict.fromkeys(events)


def test_comparisons_beyond_what_a_page_holds_are_not_paid_for(monkeypatch):
    """Would catch p-values adjusted for comparisons that are not made."""
    values = np.random.default_rng(0).gamma(4, 2, (4, 9, 1))
    coords = {"epsilon": [1, 2, 3, 4], "seed": np.arange(9), "time": [100]}
    cells = {"regret": (("epsilon", "seed", "time"), values), "seeds": ("epsilon", [9] * 4)}
    data = xr.Dataset(cells, coords, {"root_seed": 0})
    every, told = content._compared([content.Result("", None, data, None, None)], [], 0.95)
    assert len(every) == 6 and told == []
    monkeypatch.setattr(content, "_MOST_COMPARED", 2)
    few, told = content._compared([content.Result("", None, data, None, None)], [], 0.95)
    assert told == ["2 of 6 comparisons are made, the first ones"]
    assert [each.first for each in few] == [each.first for each in every[:2]]
    small, large = sorted(each.p_value for each in few)
    due = {small: min(1, 2 * small), large: max(large, min(1, 2 * small))}
    assert [each.adjusted for each in few] == [due[each.p_value] for each in few]
    assert {each.together for each in few} == {2}


def test_the_bytes_depend_on_the_results_only(written, grid, tmp_path):
    """Would catch a date, a random name, or an order of a set."""
    once_more = fmab.write_report(grid, tmp_path / "again.html")
    assert once_more.read_text("utf-8") == written


def test_a_page_of_many_configurations_stays_small(grid, monkeypatch):
    """Would catch megabytes of curves, and a limit that is not told; all limits are made small."""
    for name, limit in {"_CURVES": 6, "_NUMBERS": 900, "MOST_CELLS": 30}.items():
        monkeypatch.setattr(content, name, limit)
    monkeypatch.setattr(page, "_MOST_ROWS", 7)
    data = grid.isel(epsilon=[0, 1, 2, 0, 1], rounds=[0, 1] * 2, time=np.arange(80) // 10)
    axes = {"epsilon": np.arange(1.0, 6), "rounds": np.arange(1.0, 5)}
    data = data.drop_vars("epsilon_message").assign_coords(
        {name: (name, values, grid[name].attrs) for name, values in axes.items()}
    )
    data = data.assign_coords(time=125 * np.arange(1, 81))
    whole, told = made({"": data})
    assert [each["cell"] for each in whole.curves["cells"]] == list(range(6))
    (slots,) = whole.curves["grids"]
    assert len(slots) == 900 // (6 * 3 * 2) and (slots[0], slots[-1]) == (125, 10_000)
    for each in whole.curves["cells"]:
        mean = data.regret.mean("seed").sel(time=slots).values.reshape(20, -1)[each["cell"]]
        np.testing.assert_allclose(each["regret"][0], mean, rtol=1e-5)
    assert "6 of 20 configurations, the first ones of the grid; tables have all." in told
    assert "Interactive curves show 25 of 80 recorded slots." in told
    assert "The first 7 of 20 configurations are listed." in told
    assert len(whole.compared) == 4 + 3
    assert len(pictures.shown_first(whole)) == 5
    with pytest.raises(ValueError, match="configurations=40: must be at most 30 in one report"):
        made({name: data for name in "ab"})


@pytest.mark.slow
def test_a_summary_has_bands_and_no_picture(tmp_path):
    """Would catch a report that needs single seeds, or that pairs what is not kept."""
    data = fmab.sweep("cdp", **SMALL, epsilon=[0.1, 1], keep="summary", progress=False)
    text = fmab.write_report(data, tmp_path / "a.html").read_text("utf-8")
    told = plain(Reader(text).text)
    assert "There is no static picture of a summary" in told
    assert "The largest possible error is used; 20 seeds each." in told
    assert "The lower panel of the picture" not in told
    drawn = json.loads(re.search(r'id="data">(.+?)</script>', text, re.S)[1])["curves"]["cells"]
    band = fmab.confidence_band(data)
    for i, entry in enumerate(drawn):
        np.testing.assert_allclose(entry["regret"][2], band.upper.values[i], rtol=1e-5)


def axis(name, values, reference=0):
    numbers = [each if isinstance(each, (int, float)) else None for each in values]
    labels = [f"{name} {each}" for each in values]
    return content.Axis(name, name, labels, labels, numbers, reference)


LONG, SHORT = axis("epsilon", [1, 2, 3]), axis("rounds", [1, 2], 1)
NAMES = axis("graph", ["ring", "star", "path", "tree"])


@pytest.mark.parametrize(
    "axes, order",
    [
        ([SHORT, LONG], "epsilon rounds"),
        ([NAMES, SHORT, LONG], "epsilon rounds graph"),
        ([NAMES, axis("x", [1, "none"]), SHORT], "rounds graph x"),
        ([axis("b", [1, 2]), axis("a", [1, 2])], "b a"),
        ([LONG, axis("result", ["a", "b"])], "result epsilon"),
    ],
)
def test_the_order_in_which_a_picture_takes_axes(axes, order):
    """Would catch the shorter axis along the figure, and names before numbers."""
    assert " ".join(each.name for each in pictures.order_of(axes)) == order


@pytest.mark.parametrize("most, titles", [(4, ["ring", "star", "path", "tree"]), (3, ["ring"])])
def test_a_picture_for_each_value_of_a_third_parameter(monkeypatch, most, titles):
    """Would catch pictures of other values than their titles, and none where they are too many."""
    sizes = {"graph": 4, "rounds": 2, "epsilon": 3}
    cells = xr.DataArray(np.arange(24).reshape(4, 2, 3), dims=[*sizes])
    drawn = []

    class Figure:
        texts = ()

        def get_label(self):
            return "caption"

    def plot(cell, x, hue):
        drawn.append((x, hue, cell.cells.values.ravel().tolist()))
        return Figure()

    monkeypatch.setattr("fmab_jax.plots.parameters.plot_parameter", plot)
    monkeypatch.setattr("fmab_jax.plots.style.svg", lambda figure: b"x")
    monkeypatch.setattr(pictures, "_MOST_PANELS", most)
    whole = object.__new__(content.Content)
    object.__setattr__(whole, "axes", [NAMES, SHORT, LONG])
    source = content.Result("", None, None, None, None)
    found = pictures._panels(whole, source, xr.Dataset({"cells": cells}), [*sizes])
    assert [each.title for each in found] == [f"graph {name}" for name in titles]
    assert drawn == [("epsilon", "rounds", [*range(6 * i, 6 * i + 6)]) for i in range(len(titles))]


@pytest.mark.parametrize(
    "grid_, log",
    [
        ([1, 10, 100], True),
        ([1, 2, 4, 8, 16], True),
        ([10, 20, 30, 40], False),
        ([0, 1, 10, 100], False),
        ([1, 10], False),
    ],
)
def test_which_slots_are_logarithmic(grid_, log):
    """Would catch a linear grid drawn in log t, or the reverse."""
    assert page._is_log([grid_]) is log
    assert page._is_log([[1, 10, 100], grid_]) is log


def test_what_a_script_can_read():
    """Would catch NaN or infinity, which are no JSON, and text that ends the element."""
    given = {"a": (1.5, math.nan, -math.inf), "b": ["</script>", None, True, "\u2028"]}
    text = page._json(page._finite(given))
    assert json.loads(text) == {"a": [1.5, None, None], "b": ["</script>", None, True, "\u2028"]}
    assert "<" not in text and "\u2028" not in text
    told = [page._typeset(each) for each in ("+5", "[-5.25, -0.1] %", "CDP-2", "1e-05")]
    assert told == ["+5", "[−5.25, −0.1] %", "CDP-2", "1e-05"]
    half = {"regret_lower": 1.0, "regret_upper": 2000.4}
    assert page._interval(half, "regret") == "[1, 2,000]"


def test_several_results_stand_beside_each_other(grid, tmp_path):
    """Would catch labels that are lost, and a text that becomes a part of the page."""
    one, other = grid.isel(epsilon=1, rounds=1), grid.isel(epsilon=0, rounds=1)
    runs = {"<b>ours</b>": one, "%{theirs} & co": other}
    path = fmab.write_report(runs, tmp_path / "a.html", title="</title><script>alert(1)</script>")
    text = path.read_text("utf-8")
    reader = Reader(text)
    assert text.count("<script") == 3 and "<b>" not in text
    heads, rows = table(reader, "Final values")
    assert heads[0] == "result" and [row[0] for row in rows] == list(runs)
    told = plain(reader.text)
    assert "How do <b>ours</b> and %{theirs} & co compare in regret" in told
    ours, theirs = (run.regret.values[:, -1] for run in runs.values())
    sign = "more" if ours.mean() > theirs.mean() else "less"
    assert re.search(rf"<b>ours</b> costs [\d,.]+ % {sign} regret than %{{theirs}} & co \[", told)


def test_results_of_one_epsilon_each_are_not_called_alike(grid):
    """Would catch "all runs have one epsilon" beside a comparison of two of them."""
    both = {"a": grid.isel(epsilon=0, rounds=1), "b": grid.isel(epsilon=1, rounds=1)}
    _, told = made(both)
    assert "Each result has one ε (a: ε = 0.1; b: ε = 1). See “Comparisons”" in told
    assert "All runs here have one ε" not in told
    _, told = made({"": both["b"]})
    assert "All runs here have one ε (ε = 1), so nothing shows what privacy costs." in told
    problem = fmab.Problem.uniform(agents=4, arms=5)
    runs = [fmab.simulate(fmab.cdp_mab(epsilon), problem, 300, 3) for epsilon in (0.5, 2.0)]
    _, told = made({"": xr.concat(runs, xr.DataArray(["a", "b"], dims="who", name="who"))})
    assert "one ε" not in told and "These results tell no single ε, so nothing shows" in told


@pytest.mark.parametrize(
    "axis, why",
    [
        ("horizon", "These configurations have different horizons, and regret grows with time."),
        ("agents", "These configurations have different sizes or problems."),
    ],
)
def test_other_questions_are_neither_ranked_nor_compared(grid, axis, why):
    """Would catch the smallest regret of the smallest problem, and a wrong reason for no table."""
    data = grid.isel(epsilon=0).drop_vars(["epsilon", "epsilon_message"]).drop_attrs(deep=False)
    data = data.rename(rounds=axis).assign_coords({axis: (axis, [5000, 10000])})
    data = data.assign_attrs(root_seed=0, title="CDP-MAB", settings="{}")
    if axis == "horizon":
        slots = np.stack([grid.time.values // 2, grid.time.values])
        data = data.assign_coords(slot=((axis, "time"), slots))
    whole, told = made({"": data})
    assert whole.compared == [] and why in told and "nothing to compare it with" not in told
    final = data.regret.values[1, :, -1].mean()
    assert "The smallest mean regret" not in told
    found = re.search(r"The mean regret at the horizon is ([\d,.]+) ", told)
    assert float(found[1].replace(",", "")) == pytest.approx(final, rel=5e-4)
    _, told = made({name: data.isel({axis: i}) for i, name in enumerate("ab")})
    assert why in told and "Their means are not ranked" in told


def test_the_headlines_have_each_parameter_and_no_unknown_percentage():
    """Would catch one headline of six pairs, and a percentage that is not known in front."""

    def pair(percent, varied):
        names = ("lower", "upper", "percent_lower", "percent_upper")
        empty = dict.fromkeys((*names, "p_value", "adjusted"), 0.0)
        return Comparison(
            participants=(), percent=percent, varied=varied, difference=percent, **empty
        )

    alone = [pair(value, "epsilon") for value in (math.nan, 1, 5, -9, 3, 2)]
    assert [each.percent for each in page._headlines(alone)] == [-9, 5, 3, 2]
    assert page._largest(alone[1:]).difference == 5
    mixed = [*alone, pair(0.5, "rounds")]
    assert [each.percent for each in page._headlines(mixed)] == [-9, 5, 3, 0.5]


def test_what_costs_most_is_said_only_where_it_is_shown(grid):
    """Would catch "this one costs most. No difference is shown"."""
    alike = grid.isel(epsilon=[1, 1, 1]).assign_coords(epsilon=grid.epsilon)
    _, told = made({"": alike})
    assert "No extra regret is shown of any value of ε that was run." in told
    assert "The largest extra regret that is shown" not in told


def test_several_results_have_their_own_reference(grid):
    """Would catch the reference of the first result at the head of the table of both."""
    _, told = made({"a": grid, "b": grid.isel(epsilon=[0, 1])})
    assert "What privacy costs, beside the reference" in told
    assert "ε = 0.1 with no noise" in told and "ε = 0.1 with ε = 1" in told


COMMANDS = [
    "run cdp --epsilon 0.1 none --participation 0.4 --seeds 20 --log-time --root-seed 7",
    "run ddp --graph ring star --private-waiting true --agents 6 --spread 0.5 --seeds 20",
    "run cdp --agents 3 5 --rounds none 2 --epsilon 0.5 --rewards bernoulli --instance-gap 0.2",
    "run hdp --components 2x3:star --epsilon 0.3 --agents 6 --schedule-gap 0.1 --times 100 500 900",
    "run cdp --epsilon none --rewards gaussian:0.1 --keep summary --horizon 1e4 2e4",
    "run cdp --epsilon-message 4 --fixed-instance 3 --keep summary --until 0.5 --max-seeds 4000",
    "run ucb1 --pooled true false",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_the_command_states_the_same_study(words):
    """Would catch an option that is lost, or that says something else than the results."""
    given = shlex.split(f"{words} --arms 10" + " --horizon 1e4" * ("horizon" not in words))
    study, attrs = stated_by(given)
    found = again(xr.Dataset(attrs=attrs), "a b.nc")
    assert found.kind == "shell" and found.checked
    typed = shlex.split(found.text.replace("\\\n", " "))
    assert typed[:2] == ["fmab", "run"] and typed[-2:] == ["--out", "a b"]
    assert stated_by(typed[1:-2])[0].hash == study.hash


def stated_by(words):
    """Returns the study that a command states, and what results of it say."""
    command = command_of("fmab run", words[1:], RunOptions)
    options, typed = parse(command)
    _, study = study_of(options, command.subject, typed)
    return study, {"study": json.dumps(study.describe()), "study_hash": study.hash}


@pytest.mark.parametrize("name", ["cdp", "ddp"])
def test_a_study_of_fixed_means_leaves_their_file_open(folder, name):
    """Would catch no command, or one that states another study once the file is named."""
    Path("means.csv").write_text("0.9,0.5,0.1\n")
    graph = " --graph ring" * (name == "ddp")
    words = f"run {name} --agents 4 --epsilon 0.1 none --horizon 2e4 --seeds 30{graph}"
    study, attrs = stated_by(shlex.split(f"{words} --means means.csv"))
    found = again(xr.Dataset(attrs=attrs), "a.nc")
    assert found.kind == "shell" and not found.checked and "put its name for" in found.note
    typed = shlex.split(found.text.replace("\\\n", " ").replace("FILE.npz", "means.csv"))
    assert stated_by(typed[1:-2])[0].hash == study.hash


def test_one_slot_of_fixed_means_is_a_study_file(folder):
    """Would catch "--times 5000", which is so many slots, where one slot was recorded."""
    Path("means.csv").write_text("0.9,0.5,0.1\n")
    document = {"algorithm": "cdp", "horizon": 10**4, "seeds": 20, "times": [5000]}
    document |= {"problem": {"means": "means.csv", "agents": 4}, "parameters": {"epsilon": 0.5}}
    study = study_file.study_of(document)
    attrs = {"study": json.dumps(study.describe()), "study_hash": study.hash}
    found = again(xr.Dataset(attrs=attrs), "a.nc")
    assert found.kind == "toml" and not found.checked and "put its name for" in found.note
    Path("study.toml").write_text(found.text.replace("FILE.npz", "means.csv"))
    assert study_file.study_of(study_file.read_study("study.toml")).hash == study.hash


SEVERAL = {"algorithm": ["cdp", "ddp"], "parameters": {"epsilon": [0.5, "none"], "graph": "ring"}}
LEVEL = {"until": {"relative": 0.5, "level": 0.9, "max_seeds": 80}, "keep": "summary"}


@pytest.mark.parametrize(
    "what",
    [
        SEVERAL,
        {"algorithm": "cdp", "parameters": {"epsilon": 0.5}, **LEVEL},
        {"algorithm": "cdp", "parameters": {"epsilon": 0.5}, "sum_agents": False},
    ],
    ids=["several algorithms", "another level", "one by one"],
)
def test_a_study_that_no_command_states_is_a_file(tmp_path, what):
    """Catches a file of another study, and a command that cannot say a level or sum_agents."""
    document = {"horizon": 10**4, "seeds": 20, "problem": {"agents": 5, "arms": 10}, **what}
    study = study_file.study_of(document)
    attrs = {"study": json.dumps(study.describe()), "study_hash": study.hash}
    found = again(xr.Dataset(attrs=attrs), "runs/x")
    assert found.kind == "toml" and found.checked
    assert found.note.endswith("fmab sweep study.toml --out runs/x")
    (tmp_path / "study.toml").write_text(found.text)
    read_ = study_file.read_study(tmp_path / "study.toml")
    assert study_file.study_of(read_).hash == study.hash


@pytest.mark.parametrize(
    "seeds, text",
    [
        (range(20), "20"),
        (range(1), "1"),
        (range(4, 24), "range(4, 24)"),
        ([5], "range(5, 6)"),
        ([3, 7, 9], "[3, 7, 9]"),
        ([0, 1, 3], "[0, 1, 3]"),
        ([2, 1, 0], "[2, 1, 0]"),
        (range(0, 400, 2), str([*range(0, 400, 2)])),
        (range(0, 402, 2), "..."),
    ],
)
def test_all_seeds_are_written(seeds, text):
    """Would catch the last seed lost, or seeds in an order of their own told as a range."""
    assert again_._seeds(xr.Dataset(coords={"seed": list(seeds)})) == text
    if text != "...":
        told = eval(text)
        assert list(range(told) if isinstance(told, int) else told) == list(seeds)


RUNS = {
    "budget": (
        fmab.cdp_mab(None, rounds=2),
        fmab.Problem.uniform(3, 4),
        {"seeds": [3, 7, 9], "root_seed": 5, "times": [10, 200]},
    ),
    "graph": (
        fmab.ddp_mab(None, graph="ring"),
        fmab.Problem.uniform(3, 4, rewards="gaussian:0.1"),
        {"seeds": range(4, 24), "times": 8},
    ),
    "shared means": (fmab.cdp_mab(1), fmab.Problem([0.9, 0.5, 0.1], agents=4), {"times": 1}),
    "own means": (fmab.ucb1(), fmab.Problem([[0.9, 0.5], [0.1, 0.2]]), {"times": 150}),
    "apart": (
        fmab.cdp_mab(epsilon_message=3.0, participation=0.5),
        fmab.Problem.heterogeneous(3, 4, 0.3, 0.05),
        {"seeds": range(2, 20), "times": 8, "spacing": "log", "sum_agents": False},
    ),
}


def run_of(algorithm, problem, **how):
    """What says of itself what a run does, though nothing was computed."""
    study = state(algorithm, problem, **({"horizon": 2000, "seeds": 2} | how))
    attrs = attributes_of(study)
    seeds = range(study.seeds) if study.listed is None else study.listed
    data = xr.Dataset(coords={"seed": list(seeds)}, attrs=attrs)
    return data if problem.means is None else data.assign(means=(("row", "arm"), problem.means))


@pytest.mark.parametrize("name", RUNS)
def test_the_script_states_the_same_run(name, monkeypatch):
    """Catches an argument of `simulate` that is lost or says something else."""
    algorithm, problem, how = RUNS[name]
    data = run_of(algorithm, problem, **how)
    found = again(data)
    assert found.kind == "python" and found.checked
    stated = []
    usual = inspect.signature(fmab.simulate)

    def note(*given, **named):
        stated.append(usual.bind(*given, **named))

    monkeypatch.setattr(fmab, "simulate", note)
    exec(found.text, {})
    (call,) = stated
    call.apply_defaults()
    usual_how = {"seeds": 2, "times": 100, "spacing": "linear", "root_seed": 0, "sum_agents": True}
    wanted = usual_how | how | {"algorithm": algorithm, "problem": problem, "horizon": 2000}
    given = {name: call.arguments[name] for name in wanted}
    assert list(np.atleast_1d(given.pop("seeds"))) == list(np.atleast_1d(wanted.pop("seeds")))
    assert given == wanted


def test_a_run_stands_at_its_own_value_of_what_others_sweep():
    """Catches a run at another's colour or none, an unswept value left out, 1 and 1.0 apart."""
    few = {**SMALL, "seeds": 2}
    results = {"swept": fmab.sweep("cdp", epsilon=[0.1, 1, 0.5], **few)}
    for epsilon in (0.5, 1.0, 0.7, None):
        results[str(epsilon)] = fmab.sweep("cdp", epsilon=epsilon, **few)
    results["two"] = fmab.sweep("cdp", epsilon=[1.0, 4.5], **few)
    found = gathered(results)
    (axis,) = (each for each in found.axes if each.name == "epsilon")
    places = [cell.at[found.axes.index(axis)] for cell in found.cells]
    assert [axis.labels[place] for place in places] == [
        *("ε = 0.1", "ε = 1", "ε = 0.5"), *("ε = 0.5", "ε = 1", "ε = 0.7", "no noise"),
        *("ε = 1", "ε = 4.5"),
    ]  # fmt: skip


EVIL = "1); __import__('os').system('touch owned')  #"


@pytest.mark.parametrize(
    "where",
    [
        *("horizon", "root_seed", "sum_agents", "algorithm", "epsilon", "times", "spacing"),
        *("agents", "arms", "spread", "instance_gap", "rewards", "problem.agents"),
        *("problem.rewards", "problem.means"),
    ],
)
@pytest.mark.parametrize("value", [EVIL, [EVIL], {"law": EVIL}], ids=str)
def test_code_in_a_forged_run_is_not_handed_on(where, value):
    """Catches a value of a file put into a script, or "Checked" over another run."""
    drawn, fixed = fmab.Problem.uniform(3, 4), fmab.Problem([[0.5, 0.4], [0.1, 0.2]])
    *inside, last = where.split(".")
    data = run_of(fmab.cdp_mab(1), fixed if inside else drawn, seeds=[3, 5])
    study = json.loads(data.attrs["study"])
    (study["problem"] if inside else study)[last] = value
    found = again(data.assign_attrs(study=json.dumps(study)))
    # A digest of means is told by none of the script.
    assert "owned" not in found.text and (where == "problem.means" or not found.checked)


@pytest.mark.parametrize(
    "changed",
    [*({"epsilon": 0.7}, {"epsilon_message": 2.0}, {"title": "HDP-MAB"}, {"algorithm": "ddp"})],
    ids=str,
)
@pytest.mark.parametrize("seeds", [2, [4, 9]], ids=["command", "script"])
def test_it_is_checked_against_what_the_page_shows(changed, seeds):
    """Would catch "Checked" beside epsilon = 0.5 over a command or script of epsilon = 0.7."""
    data = run_of(fmab.cdp_mab(0.5), fmab.Problem.uniform(3, 4), seeds=seeds)
    assert again(data).checked
    assert not again(data.assign_attrs(changed)).checked


def test_a_sweep_of_listed_seeds_has_no_command():
    """Would catch a command of seeds 0, 1 and 2 for results of 3, 5 and 9."""
    study = state("cdp", fmab.Problem.uniform(3, 4), epsilon=[0.1, 1], horizon=100, seeds=[3, 5, 9])
    found = again(xr.Dataset(attrs=attributes_of(study)))
    assert found.text == "" and "Their seeds were listed" in found.note


@pytest.mark.parametrize("where", ["algorithm", "horizon", "seeds", "keep", "epsilon", "agents"])
def test_code_in_a_forged_study_is_not_handed_on(where, grid):
    """Catches a word of a file that a shell runs, or "checked" of another study."""
    forged = json.loads(grid.attrs["study"]) | {where: "1; touch owned"}
    found = again(grid.assign_attrs(study=json.dumps(forged)), "x.nc")
    assert "owned" not in found.text and not found.checked


def test_a_command_is_checked_by_what_it_says(grid, monkeypatch):
    """Would catch a command called checked for the values that it was made from."""
    assert again(grid, "x.nc").checked
    whole = again_._word
    monkeypatch.setattr(again_, "_word", lambda value: "7" if value == 5 else whole(value))
    found = again(grid, "x.nc")
    assert "--agents 7" in found.text and not found.checked


@pytest.mark.parametrize(
    "part, told", [("_problem", "fmab.Problem.uniform(agents=4, arms=4)"), ("_seeds", "3")]
)
def test_a_script_is_checked_by_what_it_says(part, told, monkeypatch):
    """Would catch a script called checked for the values that it was made from."""
    data = run_of(fmab.cdp_mab(1), fmab.Problem.uniform(3, 4), seeds=[3, 5])
    assert again(data).checked
    monkeypatch.setattr(again_, part, lambda *_: told)
    assert told in again(data).text and not again(data).checked


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_script_makes_a_run_again(name):
    """Would catch a script that runs to other numbers; it is run."""
    algorithm, problem, how = RUNS[name]
    data = fmab.simulate(algorithm, problem, 2000, **({"seeds": 2} | how))
    found = again(data)
    assert found.kind == "python" and found.checked
    space = {}
    exec(found.text, space)
    xr.testing.assert_identical(space["data"].drop_attrs(), data.drop_attrs())
    assert space["data"].attrs["study_hash"] == data.attrs["study_hash"]


def uniform():
    return fmab.Problem.uniform(agents=5, arms=10)


MANY = fmab.Problem(np.linspace(0, 1, 70), 4, "gaussian:0.1")
PAIRS = fmab.hdp_mab(1.0, components=[(2, "ring"), (3, "star")])


@pytest.mark.parametrize(
    ("what", "more", "kind", "told", "checked"),
    [
        ((PAIRS, uniform()), {}, "python", "components=[[2, 'ring'], [3, 'star']]", True),
        ((fmab.ucb1(), uniform()), {"times": [5]}, "toml", "times = [\n    5,\n]", True),
        ((fmab.ucb1(), uniform()), {"seeds": 1}, "python", "seeds=1,", True),
        ((fmab.ucb1(), MANY), {}, "python", "agents=4, rewards='gaussian:0.1')", False),
    ],
)
def test_what_a_command_would_say_otherwise_is_a_script_or_a_file(what, more, kind, told, checked):
    """Would catch pairs called code of one's own, a slot told as a number of slots, one seed, which
    commands refuse, and means of a file whose law of rewards is left out."""
    found = again(fmab.simulate(*what, **{"horizon": 100, "seeds": 2, **more}))
    assert found.kind == kind and told in found.text and found.checked == checked


def test_a_part_of_a_study_is_not_told_as_all_of_it():
    """Would catch "the same seeds and slots" of results that were cut or joined."""
    data = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 500, 6)
    more = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 500, range(6, 12))
    joined = xr.concat([data, more], "seed", data_vars="all")
    swept = fmab.sweep(fmab.ucb1, uniform(), horizon=[50, 80], seeds=3)
    assert again(data).whole and again(more).whole and again(swept).whole
    for part in (data.isel(seed=slice(3)), joined, data.isel(time=slice(9)), swept[{"seed": [1]}]):
        assert again(part).checked and not again(part).whole
    assert "do not hold the same seeds or slots as it" in made({"a": joined})[1]
    assert "same configurations, seeds and slots." in made({"a": data})[1]


def test_a_report_counts_the_seeds_that_were_selected():
    """Would catch bands of links, and a number of seeds, of all seeds that were run."""
    data = fmab.simulate(fmab.cdp_mab(1.0), uniform(), 10**4, 12).isel(seed=slice(5))
    found = gathered({"a": data})
    links = data.links.sel(meter="server").values[:, -1].astype(float)
    low, high = stats.t.interval(0.95, 4, links.mean(), links.std(ddof=1) / 5**0.5)
    drawn = found.curves["cells"][0]["links"]["server"]
    np.testing.assert_allclose([each[-1] for each in drawn[1:]], [low, high], rtol=1e-4)
    assert ("seeds", "5, root seed 0") in found.settings
    assert [set(frame.seeds) for frame in exports.tidy(data)] == [{5}]


def test_results_that_do_not_say_enough_are_told_so(grid):
    """Would catch a command made up for foreign code, and a page without its reason."""
    assert again(grid.drop_attrs()).note == "These results do not say how they were made."
    foreign = grid.assign_attrs(study=grid.attrs["study"].replace('"cdp"', '"mine"'))
    assert again(foreign).text == "" and "code or data of your own" in again(foreign).note
    other = grid.assign_attrs(study_hash="0" * 32)
    assert again(other).text and not again(other).checked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, words, status=0):
    capsys.readouterr()
    assert main(shlex.split(words)) == status, capsys.readouterr()
    return capsys.readouterr()


def test_the_command_line_writes_a_report_and_its_command_works(folder, capsys, grid):
    """Would catch numbers that the printed command does not reproduce; it is run."""
    fmab.export(grid, "grid.nc")
    assert said(capsys, "report grid.nc").out.startswith("wrote report.html (2.")
    text = Path("report.html").read_text("utf-8")
    command = html.unescape(re.search(r"<code>(fmab run .+?)</code>", text, re.S)[1])
    words = command.replace("\\\n", " ").removeprefix("fmab ").replace("--out grid", "--out new")
    said(capsys, words + " --no-figure")
    assert "<code>fmab report grid.nc</code>" in text
    np.testing.assert_array_equal(read("new.nc").regret.values, grid.regret.values)
    assert read("new.nc").attrs["study_hash"] == grid.attrs["study_hash"]
    # Of a selection, and of two results with the labels of their files.
    os.rename("new.nc", "5 % new.nc")
    words = (
        "report grid.nc '5 % new.nc' --select epsilon=1 --level 0.9 --title 'a b' --out two.html"
    )
    said(capsys, words)
    text = Path("two.html").read_text("utf-8")
    (command,) = re.findall(r"<code>(fmab report .+?)</code>", text)
    assert html.unescape(command) == f"fmab {words}"
    heads, rows = table(Reader(Path("two.html").read_text("utf-8")), "Final values")
    assert heads[:2] == ["result", "round budget R"]
    budgets = ("2", "no round budget")
    assert [row[:2] for row in rows] == [[a, b] for a in ("grid", "5 % new") for b in budgets]


@pytest.mark.parametrize(
    "words, line",
    [
        ("report grid.nc --out a.pdf", "--out a.pdf: must be a file name ending in .html; "),
        ("report grid.nc --out no/a.html", "--out no/a.html: must be in an existing folder; "),
        ("report grid.nc --out there.html", "--out there.html: must be a new name; "),
        ("report grid.nc --level 95", "--level 95: must be a number in (0, 1); "),
        ("report grid.nc --select p=1", "--select p=1: must be one of epsilon, rounds"),
        ("report grid.nc grid.nc", "grid.nc: must be distinct; "),
    ],
)
def test_bad_words_end_in_one_line(folder, capsys, grid, words, line):
    """Would catch a traceback, a half-written page, or an old one that is lost."""
    fmab.export(grid, "grid.nc")
    Path("there.html").write_text("old")
    err = said(capsys, words, 2).err
    assert err.startswith(f"fmab: {line}") and err.count("\n") == 1
    assert Path("there.html").read_text() == "old"
    assert sorted(os.listdir()) == ["grid.nc", "there.html"]


def test_a_reader_is_told_that_no_round_was_completed(folder, capsys, grid):
    """Would catch a remark of the text table that a report, or a table for programs, leaves out."""
    idle = grid.isel(epsilon=[0], rounds=[1])
    idle = idle.assign(rounds_made=0 * idle.rounds_made, chosen_arm=0 * idle.chosen_arm - 1)
    (remark,) = fmab.overview(idle).remarks
    assert remark.startswith("No round was completed")
    assert " ".join(remark.split()) in made({"": idle})[1]
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


def test_one_result_by_two_names_is_refused(grid, tmp_path):
    """Would catch a result that is compared with itself, under the name of a link."""
    path = fmab.export(grid, tmp_path / "x.nc")
    link = tmp_path / "y.nc"
    link.symlink_to(path)
    with pytest.raises(ValueError) as caught:
        fmab.write_report([path, link], tmp_path / "r.html")
    assert ": must be distinct; " in str(caught.value) and str(path) in str(caught.value)
    assert not (tmp_path / "r.html").exists()


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


def test_a_title_is_short(grid, tmp_path):
    """Would catch a heading of a hundred thousand letters."""
    with pytest.raises(ValueError, match="must be a text of at most 1,000 letters; "):
        fmab.write_report(grid, tmp_path / "x.html", title=ENDLESS)
