"""The paper's experiments: their settings, their hand-computed costs, what they draw and write."""

from __future__ import annotations

import csv
import itertools
import json
import math
from importlib import import_module

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, legible, words_of
from matplotlib.text import Text

import fmab_jax as fmab
from experiments import __main__ as command
from experiments import common, pictures, readings
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs
from fmab_jax.run import batches, schema
from fmab_jax.sweeps.study import state

# Of which tests/test_arena_experiments.py is; tests/test_maps.py is of the maps.
ARENA = ("arena", "arena_settings", "arena_protocols", "arena_report")
# Figures that are made by default; the others are for `-m slow`.
QUICK = ("fig04_epsilon", "fig13_heterogeneity")
# Figure: (algorithm, M, K, epsilon, what else it fixes or sweeps), from the table of the paper's
# instances and the choices that the experiments' own docstrings state.
SETTINGS = {
    "fig04_epsilon": ("cdp", 50, 100, [0.1, 0.3, 0.5, 1, None], {}),
    "fig05_participation": ("cdp", 50, 100, 1, {"participation": [0.2, 0.4, 0.6, 0.8, 1]}),
    "fig06_rounds": (
        "cdp",
        50,
        100,
        1,
        {"rounds": [2, 3, 4, 5, None], "schedule_gap": [None, 1 / 16]},
    ),
    "fig07_tradeoff": (
        "cdp",
        50,
        100,
        1,
        {
            "participation": [0.2, 0.4, 0.6, 0.8, 1],
            "rounds": [2, 3, 4, 5, None],
            "schedule_gap": [None, 1 / 16],
        },
    ),
    "fig08_heterogeneous_central": (["single", "cdp"], 5, 10, 1, {"spread": [0, 1]}),
    "fig10_graphs": ("ddp", 50, 100, 1, {"graph": ["complete", "star", "ring", "random"]}),
    "table1_graphs": ("ddp", 50, 100, 1, {"graph": ["star", "ring", "complete", "regular-4"]}),
    "table2_fig11_hybrid": (
        "hdp",
        100,
        100,
        1,
        {
            "components": [
                "20x5:complete",
                "53,24,10,6,7:complete",
                "100:complete",
                "20x5:random",
                "20x5:star",
                "1x100",
            ]
        },
    ),
    "fig12_heterogeneous_structures": (
        ["cdp", "ddp", "hdp"],
        100,
        100,
        1,
        {"spread": [0, 1], "graph": "ring", "components": "20x5:ring"},
    ),
    "fig13_heterogeneity": (
        ["single", "cdp", "ddp", "hdp"],
        100,
        100,
        1,
        {"spread": [0, 0.25, 0.5, 0.75, 1], "graph": "ring", "components": "20x5:ring"},
    ),
}
PAIRED = list(SETTINGS)[5:]


def stated(monkeypatch, name, horizon=10**4, seeds=3):
    """Returns the study that an experiment would run."""
    found = []

    def record(algorithm, problem, *, store=None, **settings):
        found.append(state(algorithm, problem, **settings))

    monkeypatch.setattr(fmab, "sweep", record, raising=False)
    import_module(f"experiments.{name}").sweep(horizon, seeds)
    return found[0]


def made_up(monkeypatch, name, horizon, seeds=3):
    """Returns results of the right shape, with the links that the cells' exchanges charge."""
    study = stated(monkeypatch, name, horizon, seeds)
    slots, rng = study.times, np.random.default_rng(1)
    shape = (*study.shape, seeds, len(slots))
    dims = [*(axis.name for axis in study.axes), "seed", "time"]
    tables = [point.config.exchange for point in study.points]
    meters = schema.meters_of(tables)
    links = np.array([[table.on(meter.name) for meter in meters] for table in tables])
    rounds = np.broadcast_to(np.arange(len(slots)) // 20, shape)
    data = {"regret": (dims, np.cumsum(rng.random(shape), -1) * slots)}
    each = links.reshape((*study.shape, 1, 1, len(meters)))
    data["links"] = ([*dims, "meter"], rounds[..., None] * each)
    data["rounds_made"] = (dims[:-1], rounds[..., -1])
    data["chosen_arm"] = (dims[:-1], np.zeros(shape[:-1], int))
    data["seeds"] = (dims[:-2], np.full(study.shape, seeds))
    coords = {a.name: (a.name, np.array(a.labels, object), a.words) for a in study.axes}
    coords |= {"seed": np.arange(seeds), "time": slots, **schema.meter_coordinates(meters)}
    for event in ("best_arm_lost", "worse_arm_played"):
        coords[event] = (dims[:-1], np.zeros(shape[:-1], bool))
    return xr.Dataset(data, coords, {"algorithm": "made up"})


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_the_papers(monkeypatch, name):
    """Catches a changed or mistyped instance: algorithm, M, K, epsilon and every swept value."""
    algorithm, agents, arms, epsilon, others = SETTINGS[name]
    study = stated(monkeypatch, name)
    swept = {axis.name: list(axis.values) for axis in study.axes}
    names = algorithm if isinstance(algorithm, list) else [algorithm]
    assert [point.described["algorithm"] for point in study.points] == [
        each for each in names for _ in range(len(study.points) // len(names))
    ]
    for point in study.points:
        problem = point.config.problem
        assert (problem.agents, problem.arms) == (agents, arms)
    swept.pop("algorithm", None)
    wanted = {"epsilon": epsilon, **others}
    for field, value in wanted.items():
        given = swept.pop(field) if field in swept else study.settings[field]
        assert given == value, field
    assert not swept


@pytest.mark.parametrize("name", PAIRED)
def test_differences_are_between_paired_runs(monkeypatch, name):
    """Catches a paired difference of runs that draw by different laws: its band would be wide."""
    assert stated(monkeypatch, name).sum_agents is False


def test_every_experiment_is_listed_and_has_its_settings():
    """Catches an experiment that the command would never run, or a setting nobody checks."""
    others = {"fig09_graphs", "readings", "audit", "maps", "claims", "ratings", "pages", *ARENA}
    assert [name for name in command.NAMES if name not in others] == list(SETTINGS)


@pytest.mark.parametrize("horizon", common.HORIZONS)
def test_recorded_slots_are_always_a_hundred(horizon):
    """Catches horizons whose grids differ in length: each would compile anew."""
    slots = common.slots(horizon)
    assert len(slots) == 100 and slots[-1] == horizon and slots[0] > 100
    assert (np.diff(slots) > 0).all()


@pytest.mark.parametrize(
    ("graph", "bound", "used", "wait"),
    [("star", 98, 98, 1), ("ring", 1250, 1249, 24), ("complete", 1225, 1225, 0)],
)
def test_links_of_graphs_are_those_counted_by_hand(monkeypatch, tmp_path, graph, bound, used, wait):
    """Catches a table I whose links a round are not d_G |E|, and GIS's own count, for M = 50."""
    module = import_module("experiments.table1_graphs")
    data = made_up(monkeypatch, "table1_graphs", 10**4)
    module.draw({10**4: data}, tmp_path)
    with (tmp_path / "table1_graphs.csv").open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row["graph"] == graph)
    assert int(row["links a round, diameter × edges"]) == bound
    assert int(row["links a round, edges that carry data"]) == used
    assert int(row["wait (slots)"]) == wait
    # 100 slots make 4 rounds in the made-up results; c2 = 1.
    assert float(row["cost at T, diameter × edges"]) == 4 * bound
    assert float(row["cost at T, edges that carry data"]) == 4 * used


# Case: server links, edges, hops to the sinks. Complete graphs have m (m - 1) / 2 edges and
# m - 1 hops, stars m - 1 of both; single agents have neither.
BY_HAND = {
    "1": (5, 5 * 190, 5 * 19),
    "2": (5, 1378 + 276 + 45 + 15 + 21, 52 + 23 + 9 + 5 + 6),
    "3": (1, 4950, 99),
    "5": (5, 5 * 19, 5 * 19),
    "6": (100, 0, 0),
}


def test_costs_of_hybrid_cases_are_those_computed_by_hand(monkeypatch, tmp_path):
    """Catches mixed-up meters, prices or component sizes in table II."""
    module = import_module("experiments.table2_fig11_hybrid")
    drawn(monkeypatch)
    data = made_up(monkeypatch, "table2_fig11_hybrid", 10**4)
    module.draw({10**4: data}, tmp_path)
    with (tmp_path / "table2_hybrid.csv").open(encoding="utf-8") as file:
        rows = {row["case"]: row for row in csv.DictReader(file)}
    assert list(rows) == list("123456")
    for case, (server, edges, sac) in BY_HAND.items():
        row = rows[case]
        assert int(row["server links a round"]) == server
        for way, links in (("edges", edges), ("hops to the sink", sac)):
            assert int(row[f"links a round, counted by {way}"]) == links
            cost = 50 * server + links
            assert int(row[f"cost a round, links counted by {way}"]) == cost
            assert float(row[f"cost at T, links counted by {way}"]) == 4 * cost
    # Printed with 63 for 53: 10 agents, 62 * 63 / 2 - 1378 = 575 edges and 10 hops more.
    printed = exchange.sinks(graphs.components(module.CASE_2_AS_PRINTED, module.AGENTS_AS_PRINTED))
    assert module.round_cost(printed, "edges") == 250 + 1735 + 575 == 2560
    assert module.round_cost(printed, "sac") == 250 + 95 + 10
    notes = (tmp_path / "table2_hybrid.md").read_text("utf-8")
    told = "2560 (links counted by edges) and 355 (links counted by hops to the sink)"
    assert told in notes and "x5" not in notes


# What is drawn last, by the name of the picture: what tells its rows in the CSV file, and the value
# that the results have there, at one horizon.
def final(data, **cell):
    """Returns regret at T by seed."""
    return data.regret.isel(time=-1).sel(cell).values


def nth(data, place):
    """Returns regret at T by seed of one value of the only swept parameter."""
    return data.regret.isel(time=-1).values[place]


DRAWN = {
    "fig04_epsilon": {
        ("regret", "no noise"): lambda d: nth(d, 4),
        ("price of privacy", "ε = 0.3 (Nε = 15)"): lambda d: nth(d, 1) - nth(d, 4),
    },
    "fig05_participation": {
        ("regret", "p = 0.2"): lambda d: final(d, participation=0.2),
        ("difference to p = 1", "p = 0.8"): lambda d: (
            final(d, participation=0.8) - final(d, participation=1)
        ),
    },
    "fig06_rounds": {
        ("regret", "R = 3"): lambda d: nth(d.isel(schedule_gap=1), 1),
        ("difference to no budget", "R = 5"): lambda d: (
            nth(d.isel(schedule_gap=1), 3) - nth(d.isel(schedule_gap=1), 4)
        ),
    },
    "fig06_rounds_smallest_gap": {
        ("difference to no budget", "R = 2"): lambda d: (
            nth(d.isel(schedule_gap=0), 0) - nth(d.isel(schedule_gap=0), 4)
        ),
    },
    "fig08_heterogeneous_central": {
        ("regret", "agents alone, heterogeneous"): lambda d: final(
            d, algorithm="Single", spread="heterogeneous"
        ),
        ("regret", "CDP-MAB, homogeneous"): lambda d: final(
            d, algorithm="CDP", spread="homogeneous"
        ),
    },
    "fig10_graphs": {
        ("difference to the complete graph", "ring"): lambda d: (
            final(d, graph="ring") - final(d, graph="complete")
        ),
    },
    "fig11_hybrid": {
        ("difference to case 6", "case 4"): lambda d: nth(d, 3) - nth(d, 5),
        # 100 slots make 4 rounds in the made-up results, 50 for the server's link.
        ("cost at T, links counted by edges", "case 3"): lambda d: np.full(3, 4 * (50 + 4950)),
        ("cost at T, links counted by hops to the sink", "case 3"): lambda d: np.full(3, 4 * 149),
    },
    "fig12_heterogeneous_structures": {
        ("difference to CDP-MAB", "HDP-MAB, heterogeneous"): lambda d: (
            final(d, algorithm="HDP", spread="heterogeneous")
            - final(d, algorithm="CDP", spread="heterogeneous")
        ),
    },
}
PICTURES = {
    "fig06_rounds": ["fig06_rounds_smallest_gap", "fig06_rounds"],
    "fig07_tradeoff": ["fig07_tradeoff_smallest_gap", "fig07_tradeoff"],
    "table2_fig11_hybrid": ["fig11_hybrid"],
}


@pytest.mark.parametrize(
    ("name", "horizons"),
    [
        pytest.param(name, common.HORIZONS, marks=() if name in QUICK else pytest.mark.slow)
        for name in SETTINGS
        if name != "table1_graphs"
    ]
    + [(name, common.HORIZONS[:1]) for name in ("fig04_epsilon", "table2_fig11_hybrid")],
)
def test_figures_are_legible_and_say_what_they_show(monkeypatch, tmp_path, name, horizons):
    """Catches texts that are too small, cut off or written over each other, in either width; words
    without the facts or the alternative text; and numbers that are not the data's."""
    module, kept = import_module(f"experiments.{name}"), drawn(monkeypatch)
    results = {T: made_up(monkeypatch, name, T) for T in horizons}
    module.draw(results, tmp_path)
    pictures_of = PICTURES.get(name, [name])
    assert list(kept) == [f"{each}{end}" for each in pictures_of for end in ("", "_column")]
    for each in pictures_of:
        legible(kept[each], 7.0)
        legible(kept[f"{each}_column"], 8.5 / 2.54)
        alt, caption = words_of(tmp_path / f"{each}.md")
        assert len(alt) > 40
        told = "10⁴" if len(horizons) == 1 else "10⁴, 10⁵ and 10⁶"
        assert f"T = {told} slots, 3 seeds" in caption
        assert "95 % simultaneous band" in caption or "95 % confidence interval" in caption
        assert " seeds lost the best arm, 0 in every configuration (95 % Clopper–Pearson" in caption
        assert " play a worse arm at T, 0 in every configuration" in caption
        for jargon in ("20x5", "meter", "sac", "spread 1"):
            assert jargon not in caption and jargon not in alt
        with (tmp_path / f"{each}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for (quantity, curve), values in DRAWN.get(each, {}).items():
            for horizon, data in results.items():
                (row,) = (
                    row
                    for row in rows
                    if (row["quantity"], row["curve"]) == (quantity, curve)
                    and row["T"] == row["slot"] == str(horizon)
                )
                mean = np.mean(values(data))
                assert float(row["mean"]) == pytest.approx(mean, rel=1e-6)
                assert float(row["lower"]) <= float(row["mean"]) <= float(row["upper"])


def test_numbers_of_figure_7_are_those_of_final_tables(monkeypatch, tmp_path):
    """Catches points of another pair (p, R), and costs without the price of a link."""
    drawn(monkeypatch)
    data = made_up(monkeypatch, "fig07_tradeoff", 10**4)
    import_module("experiments.fig07_tradeoff").draw({10**4: data}, tmp_path)
    with (tmp_path / "fig07_tradeoff.csv").open(encoding="utf-8") as file:
        rows = {(row["p"], row["R"]): row for row in csv.DictReader(file)}
    assert len(rows) == 25
    for (p, rounds), place in ((("0.4", "3"), 1), (("1", "no budget"), 4)):
        row, cell = rows[p, rounds], data.isel(schedule_gap=1, rounds=place, time=-1)
        cell = cell.sel(participation=float(p))
        assert float(row["regret"]) == pytest.approx(float(cell.regret.mean()), rel=1e-6)
        # ceil(p 50) links in each of 4 rounds.
        assert float(row["cost"]) == 25 * 4 * math.ceil(float(p) * 50)


def test_numbers_of_figure_13_are_paired_differences(monkeypatch, tmp_path):
    """Catches differences to another algorithm, or at another spread than the row says, and
    intervals that are cut off at 0."""
    kept = drawn(monkeypatch)
    data = made_up(monkeypatch, "fig13_heterogeneity", 10**4)
    import_module("experiments.fig13_heterogeneity").draw({10**4: data}, tmp_path)
    with (tmp_path / "fig13_heterogeneity.csv").open(encoding="utf-8") as file:
        rows = {(row["curve"], row["spread"]): row for row in csv.DictReader(file)}
    row, last = rows["HDP-MAB", "0.75"], data.regret.isel(time=-1, spread=3)
    values = last.sel(algorithm="HDP").values - last.sel(algorithm="CDP").values
    names = [f"difference to CDP-MAB at T{end}" for end in ("", ", lower", ", upper")]
    assert [float(row[name]) for name in names] == pytest.approx(common.interval(values), rel=1e-9)
    few = import_module("experiments.fig13_heterogeneity").draw(
        {10**4: data.isel(spread=[0, 4])}, tmp_path / "few"
    )
    with next(path for path in few if path.suffix == ".csv").open(encoding="utf-8") as file:
        assert [row["spread"] for row in csv.DictReader(file)] == ["0", "1"] * 3
    ends = {
        curve: min(float(row[names[1]]) for (name, _), row in rows.items() if name == curve)
        for curve in ("DDP-MAB", "HDP-MAB", "agents alone")
    }
    assert min(ends.values()) < 0
    above, below = kept["fig13_heterogeneity"].axes
    assert above.get_ylim()[0] < min(ends["DDP-MAB"], ends["HDP-MAB"])
    assert below.get_ylim()[0] < ends["agents alone"]


def test_figures_without_simulations_are_legible(monkeypatch, tmp_path):
    """Catches drawings of other graphs than they say, and words that are cut off or overlap."""
    kept = drawn(monkeypatch)
    import_module("experiments.fig09_graphs").draw({}, tmp_path)
    legible(kept["fig09_graphs"], 7.0)
    legible(kept["fig09_graphs_column"], 8.5 / 2.54)
    alt, _ = words_of(tmp_path / "fig09_graphs.md")
    with (tmp_path / "fig09_graphs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in ("complete", "star", "ring"):
        graph = graphs.make(name, 5)
        edges, diameter = graph.number_of_edges(), graphs.diameter(graph)
        assert f"{name}, {edges} edges and diameter {diameter}" in alt
        mine = {(int(r["from agent"]), int(r["to agent"])) for r in rows if r["graph"] == name}
        assert mine == {(i + 1, j + 1) for i, j in graph.edges}
    assert "complete, 10 edges and diameter 1; star, 4 edges and diameter 2" in alt


def test_audits_are_drawn_with_their_bins_and_their_table(monkeypatch, tmp_path):
    """Catches bins of another data set, a table that another file replaces, and log ratios of the
    wrong sign or of bins with hardly a run."""
    audit, kept = import_module("experiments.audit"), drawn(monkeypatch)
    first = fmab.audit(fmab.cdp_mab(0.02), 50, runs=20_000)
    audit.draw({10**4: {"as it is, claim 1": first}}, tmp_path)
    legible(kept["audit"], 7.0)
    legible(kept["audit_column"], 8.5 / 2.54)
    words_of(tmp_path / "audit.md")
    assert "| as it is, claim 1 | 1 |" in (tmp_path / "audit.md").read_text("utf-8")
    with (tmp_path / "audit.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    edges, none, all_ = first.findings[0].histogram
    assert [float(row["from"]) for row in rows] == pytest.approx(edges[:-1].tolist())
    assert [int(row["runs, reward 1"]) for row in rows] == all_.tolist()
    for row, zero, unit in zip(rows, none, all_, strict=True):
        told = row["log ratio"]
        assert (told == "") == (min(zero, unit) < audit.FEW)
        assert told == "" or float(told) == pytest.approx(math.log(unit / zero))
    with (tmp_path / "audit_mechanisms.csv").open(encoding="utf-8") as file:
        assert next(csv.DictReader(file))["mechanism"] == "as it is, claim 1"


def test_large_numbers_are_counted_in_a_power_that_the_label_tells():
    """Catches an offset that floats beside the axis, a power that is not told, and panels of one
    quantity that count in different ones."""
    page = pictures.Page(narrow=False)
    left, right = page.panels(["regret"], ["one", "other"], ["slot t"])[0]
    left.plot([0, 10**6], [0, 4000])
    right.plot([0, 100], [0, 60_000])
    page.finish().canvas.draw()
    assert left.get_ylabel() == "regret (thousands)"
    assert (left.get_xlabel(), right.get_xlabel()) == ("slot t (thousands)", "slot t")
    for axes, most in ((left, 4), (right, 60)):
        labels = axes.get_yticklabels()
        ticks = [(float(t.get_text().replace("−", "-")), t.get_position()[1]) for t in labels]
        assert all(place == pytest.approx(1000 * number) for number, place in ticks)
        assert most / 3 < max(ticks)[0] < 2 * most
    assert left.yaxis.get_offset_text().get_text() == ""
    for label, told in (
        ("regret, sum over agents", "regret (thousands), sum over agents"),
        ("agents (%)", "agents (thousands; %)"),
    ):
        assert pictures._with_power(label, 3) == told
        assert pictures._with_power(label, 0) == label


def test_words_beside_points_cover_neither_points_nor_each_other():
    """Catches a name that hides a marker, a line or another name, or leaves the panel."""
    page = pictures.Page(narrow=True)
    (axes,) = page.places(1, height=2.0)
    at = [(0.0, 1.0), (0.0, 1.02), (0.0, 0.98), (1.0, 0.5), (0.85, 0.5), (0.5, 0.0)]
    axes.plot(*zip(*at, strict=True), "o", markersize=3)
    notes = [pictures.Note(each, f"name of {i}", "black") for i, each in enumerate(at)]
    line = [(0.5, 0.0), (0.9, 0.1)]
    page.fit = lambda: pictures.write_beside(axes, notes, [line])
    figure = page.finish()
    figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert sorted(text.get_text() for text in axes.texts) == [
        f"name of {i}" for i in range(len(at))
    ]
    points = [*at, *zip(np.linspace(0.5, 0.9, 50), np.linspace(0, 0.1, 50), strict=True)]
    for box, next_ in itertools.combinations(boxes, 2):
        assert not box.padded(-0.5).overlaps(next_.padded(-0.5))
    for box in boxes:
        assert axes.bbox.contains(*box.min) and axes.bbox.contains(*box.max)
        assert not any(box.contains(*axes.transData.transform(point)) for point in points)


def test_captions_count_what_went_wrong_and_where(monkeypatch):
    """Would catch events counted over the wrong seeds, merged, or placed in another cell."""
    data = made_up(monkeypatch, "fig06_rounds", 10**4, seeds=4)
    data.worse_arm_played[1, 0, 2:] = True  # gap 1/16, R = 2
    data.worse_arm_played[0, 4, 1] = True  # no budget
    data.best_arm_lost[1, 4, 3] = True
    data.chosen_arm[0, 0, :3] = -1
    data.regret[1, 0, 3, -1] = 5e9  # of a seed that plays a worse arm
    data.regret[0, 0, 0, -1] = 9e9  # of one that does not
    found = common.caption("Setting", {10**4: data})
    low, high = (100 * end for end in lost_interval(2, 4, 0.95))
    assert (
        "3 of 40 play a worse arm at T, most in one configuration 2 of 4 "
        f"({low:.3g}–{high:.3g} %) at "
        "Δ = 1/16, R = 2. 3 had not decided at T."
    ) in found
    low, high = (100 * end for end in lost_interval(1, 4, 0.95))
    assert (
        "1 of 40 seeds lost the best arm, most in one configuration 1 of 4 "
        "(95 % Clopper–Pearson interval "
        f"{low:.3g}–{high:.3g} %) at Δ = 1/16, no round budget. 3 of 40"
    ) in found
    both = common.caption("Setting", {10**4: data, 10**6: data.copy(deep=True)})
    mean = float(data.regret[1, 0, :, -1].mean())
    most = f"5,000,000,000, at T = 10⁴, where the mean of its configuration is {mean:,.0f}."
    assert found.endswith(f"The largest regret of a seed of these two kinds is {most}")
    assert "2 of 80 seeds lost the best arm" in both and "6 of 80 play a worse" in both
    assert "at T = 10⁴, Δ = 1/16, R = 2. 6 had not" in both


def test_late_agents_wait_one_slot_more():
    """Would catch a reading that changes nothing, or is taken for `ddp_mab` in a store."""
    late, usual = readings.Late(1, graph="ring"), fmab.ddp_mab(1, graph="ring")
    assert late.exchange(50).wait == usual.exchange(50).wait + 1 == 25
    assert late.exchange(50).links == usual.exchange(50).links
    assert late.describe()["algorithm"] == "ddp_late" != usual.describe()["algorithm"]


def test_private_waiting_is_compared_with_the_papers(monkeypatch):
    """Would catch a price with the wrong sign, at another epsilon, or of agents drawn by sums."""

    def swept(algorithm, problem, **options):
        dims = {name: value for name, value in options.items() if isinstance(value, (list, dict))}
        dims |= {} if isinstance(algorithm, str) else {"algorithm": list(algorithm)}
        values = np.zeros([*(len(each) for each in dims.values()), 3, 2])
        data = xr.DataArray(
            values,
            dims=[*dims, "seed", "time"],
            coords={name: list(each) for name, each in dims.items()},
        )
        if "private_waiting" in dims:
            assert (options["graph"], options["sum_agents"]) == ("ring", False)
            data = data + data.private_waiting / data.epsilon
        return xr.Dataset({"regret": data})

    monkeypatch.setattr(readings.fmab, "sweep", swept)
    rows = readings.sweep(10**4, 3)
    prices = {name: np.mean(other - usual) for name, (other, usual) in rows.items()}
    waits = {name: price for name, price in prices.items() if name.startswith("waits go by")}
    assert list(waits) == [
        f"waits go by the noisy means: ring, ε = {epsilon}" for epsilon in (1, 0.1, 0.02)
    ]
    assert list(waits.values()) == pytest.approx([1, 10, 50])
    assert len(rows) == 12


def test_a_second_run_computes_nothing_and_draws_the_same(monkeypatch, tmp_path, capsys):
    """Catches results that are not kept, not found again, or figures that differ without cause."""
    folders = ["--runs", str(tmp_path / "runs"), "--figures", str(tmp_path / "figures")]
    arguments = ["fig04", "--seeds", "3", "--horizon", "1e4", *folders]
    assert command.main(arguments) == 0
    files = sorted((tmp_path / "figures").iterdir())
    ends = (".csv", ".md", ".pdf", ".png", "_column.pdf", "_column.png")
    assert [file.name for file in files] == [f"fig04_epsilon{end}" for end in ends]
    first = [file.read_bytes() for file in files]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fig04_epsilon-T1e4"]
    printed = capsys.readouterr().out
    assert all(str(file) in printed for file in files) and " s in all" in printed

    def never(*_):
        raise AssertionError("simulated again")

    monkeypatch.setattr(batches, "run_trials", never)
    assert command.main(arguments) == 0
    assert [file.read_bytes() for file in files] == first


@pytest.mark.parametrize(
    ("given", "near"), [("fig4", "fig04"), ("fig07_tradeof", "fig07_tradeoff"), ("12", "fig12")]
)
def test_unknown_names_are_refused_with_the_nearest(tmp_path, capsys, given, near):
    """Catches a typing error that runs everything, or nothing, without a word."""
    assert command.main(["fig09", given, "--figures", str(tmp_path / "f")]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and given in error and f"did you mean {near}?" in error
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--seeds", "2.5"], ["--horizon", "12"]])
def test_values_out_of_range_are_refused(capsys, arguments):
    """Catches numbers that would fail, or be cut to whole ones, long after the start."""
    assert command.main(["fig04", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_short_names_mean_their_experiments():
    """Catches a figure or table of the paper that cannot be asked for by its number, and a list of
    names in which two experiments are told alike."""
    short = [f"fig{n:02}" for n in range(4, 14)] + ["table1", "table2"]
    judged = {"readings", "audit", "maps", "claims", "ratings", "pages", *ARENA}
    assert {command.chosen(name) for name in short} | judged == set(command.NAMES)
    assert all(command.chosen(name) == name for name in command.NAMES)
    assert command.chosen("table2") == command.chosen("fig11") == "table2_fig11_hybrid"
    with pytest.raises(ValueError) as refused:
        command.chosen("arean")
    told = str(refused.value).partition("one of ")[2].partition(";")[0].split(", ")
    assert [command.chosen(each) for each in told] == list(command.NAMES)


def test_quick_and_full_runs_differ_in_seeds_horizons_and_folder(monkeypatch):
    """Catches a quick run that replaces the full one's figures, or a full one with few seeds."""
    calls = []
    monkeypatch.setattr(command, "run", lambda *arguments: calls.append(arguments))
    command.main(["--quick"])
    command.main([])
    quick, full = calls[: len(command.NAMES)], calls[len(command.NAMES) :]
    assert [call[0] for call in quick] == [call[0] for call in full] == list(command.NAMES)
    assert {(tuple(call[1]), call[2], str(call[4])) for call in quick} == {
        ((10**4,), command.QUICK_SEEDS, "runs/quick")
    }
    assert {(tuple(call[1]), call[2], str(call[4])) for call in full} == {
        ((10**4, 10**5, 10**6), 1000, "figures")
    }
    assert common.SEEDS >= 1000


def test_tables_are_whole_or_absent(monkeypatch, tmp_path):
    """Catches half a table under its final name after an error."""
    rows = [{"a": 1, "b": (1.0, 0.5, 1.5)}]
    common.save_table(rows, tmp_path, "t", "notes")
    before = (tmp_path / "t.csv").read_text()
    assert before.splitlines() == ['a,b,"b, lower","b, upper"', "1,1.0,0.5,1.5"]
    assert "| 1 | 1.00 [0.50, 1.50] |" in (tmp_path / "t.md").read_text()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(csv.DictWriter, "writerows", fail)
    with pytest.raises(OSError):
        common.save_table([{"a": 2}], tmp_path, "t", "notes")
    assert (tmp_path / "t.csv").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.md"]


@pytest.mark.slow
def test_disagreement_counts_agents_by_their_own_best_arm():
    """Catches a share over arms or instances instead of agents, and a spread without effect or of
    another scale than the problem has."""
    assert common.disagreement(5, 10, 0) == 0
    problem = fmab.Problem.heterogeneous(5, 10, 1.0)
    wrong = 0
    for seed in range(3):
        means = problem.fixed(seed).means.tolist()
        overall = [math.fsum(column) for column in zip(*means, strict=True)]
        wrong += sum(row.index(max(row)) != overall.index(max(overall)) for row in means)
    assert common.disagreement(5, 10, 1.0, instances=3) == pytest.approx(wrong / 15)
    assert wrong > 0
    half = [fmab.Problem.heterogeneous(5, 10, 0.5).fixed(seed).means for seed in range(30)]
    wrong = sum((each.argmax(axis=1) != each.mean(axis=0).argmax()).sum() for each in half)
    assert 0 < common.disagreement(5, 10, 0.5, instances=30) == pytest.approx(wrong / 150)


def test_intervals_are_those_of_final_tables(monkeypatch):
    """Catches a second, different interval of the mean in the tables."""
    data = made_up(monkeypatch, "fig04_epsilon", 10**4, seeds=7)
    table = fmab.final_table(data)
    own = common.interval(data.regret.isel(time=-1, epsilon=2))
    theirs = [float(table[f"regret{end}"][2]) for end in ("", "_lower", "_upper")]
    assert own == pytest.approx(theirs, rel=1e-12)
    assert json.dumps(own)  # plain numbers, for the CSV file
