"""The paper's experiments: their settings, their hand-computed costs, what they draw and write."""

import math
from importlib import import_module

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, published, readable, rows_of, three
from refusals import refused

import fmab_jax as fmab
from experiments import __main__ as command
from experiments import common, pictures
from experiments.audit.exposures import Unseen
from experiments.audit.findings import Audit, Finding, Histogram
from fmab_jax import Study
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs
from fmab_jax.run import batches, schema

# Of which test_arena_experiments.py is.
ARENA = ("arena", "arena_settings", "arena_fronts", "arena_report")
# Figures that are made by default; the others are for `-m slow`.
QUICK = ("fig04_epsilon", "fig13_heterogeneity")
# Figure: (algorithm, M, K, epsilon, what else it fixes or sweeps), from the table of the paper's
# instances and the choices that the experiments' own docstrings state.
P, R, GAP = [0.2, 0.4, 0.6, 0.8, 1], [2, 3, 4, 5, None], [None, 1 / 16]
SETTINGS = {
    "fig04_epsilon": ("cdp", 50, 100, [0.1, 0.3, 0.5, 1, None], {}),
    "fig05_participation": ("cdp", 50, 100, 1, {"participation": P}),
    "fig06_rounds": ("cdp", 50, 100, 1, {"rounds": R, "schedule_gap": GAP}),
    "fig07_tradeoff": (
        "cdp", 50, 100, 1, {"participation": P, "rounds": R, "schedule_gap": GAP}),
    "fig08_heterogeneous_central": (["single", "cdp"], 5, 10, 1, {"spread": [0, 1]}),
    "fig10_graphs": ("ddp", 50, 100, 1, {"graph": ["complete", "star", "ring", "random"]}),
    "table1_graphs": ("ddp", 50, 100, 1, {"graph": ["star", "ring", "complete", "regular-4"]}),
    "table2_fig11_hybrid": ("hdp", 100, 100, 1, {"components": [
        "20x5:complete", "53,24,10,6,7:complete", "100:complete", "20x5:random", "20x5:star",
        "1x100"]}),
    "fig12_heterogeneous_structures": (
        ["cdp", "ddp", "hdp"], 100, 100, 1,
        {"spread": [0, 1], "graph": "ring", "components": "20x5:ring"}),
    "fig13_heterogeneity": (
        ["single", "cdp", "ddp", "hdp"], 100, 100, 1,
        {"spread": [0, 0.25, 0.5, 0.75, 1], "graph": "ring", "components": "20x5:ring"}),
}  # fmt: skip


def stated(monkeypatch, name, horizon=10**4, seeds=3):
    """Returns the study that an experiment would run."""
    found = []

    def record(algorithm, problem, *, store=None, **settings):
        found.append(Study(algorithm, problem, **settings))

    monkeypatch.setattr(fmab, "sweep", record, raising=False)
    command.load_experiment(name).sweep(horizon, seeds)
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
    """Catches a mistyped instance, epsilon or swept value, and pairs that draw by two laws."""
    algorithm, agents, arms, epsilon, others = SETTINGS[name]
    study = stated(monkeypatch, name)
    swept = {axis.name: list(axis.values) for axis in study.axes}
    names = algorithm if isinstance(algorithm, list) else [algorithm]
    assert [point.description["algorithm"] for point in study.points] == [
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
    if name in list(SETTINGS)[5:]:
        assert study.sum_agents is False


# Case: server links, edges, hops to the sinks. Complete graphs have m (m - 1) / 2 edges and
# m - 1 hops, stars m - 1 of both; single agents have neither.
BY_HAND = {
    "1": (5, 5 * 190, 5 * 19),
    "2": (5, 1378 + 276 + 45 + 15 + 21, 52 + 23 + 9 + 5 + 6),
    "3": (1, 4950, 99),
    "5": (5, 5 * 19, 5 * 19),
    "6": (100, 0, 0),
}


def test_rows_of_table_2_are_those_of_their_case(monkeypatch, tmp_path):
    """Catches mixed-up meters, prices or sizes, another case's numbers, a wrong sign."""
    module, kept = import_module("experiments.table2_fig11_hybrid"), published(monkeypatch)
    data = made_up(monkeypatch, "table2_fig11_hybrid", 10**4, seeds=4)
    data.best_arm_lost[1, :2] = True
    module.draw({10**4: data}, tmp_path)
    rows = {row["case"]: row for row in rows_of(tmp_path / "table2_hybrid.csv")}
    costs = [row for row in kept["fig11_hybrid_cost"].rows if row["quantity"].startswith("cost")]
    drawn_costs = {(row["quantity"], row["curve"]): row["mean"] for row in costs}
    assert list(rows) == list("123456")
    ends = data.regret.isel(time=-1).values
    for place, row in enumerate(rows.values()):
        assert float(row["regret at T"]) == pytest.approx(ends[place].mean())
        assert three(row, "minus case 6") == pytest.approx(common.interval(ends[place] - ends[5]))
        assert (row["lost the best arm"], float(row["rounds"])) == ("2" if place == 1 else "0", 4)
    for case, (server, *counted) in BY_HAND.items():
        row = rows[case]
        assert (row["T"], int(row["server links a round"])) == ("10000", server)
        for way, links in zip(("edges", "hops to the sink"), counted, strict=True):
            assert int(row[f"links a round, counted by {way}"]) == links
            cost = 50 * server + links
            assert int(row[f"cost a round, links counted by {way}"]) == cost
            head = f"cost at T, links counted by {way}"
            assert float(row[head]) == 4 * cost == drawn_costs[head, f"case {case}"]
    # Nobody waits where every sink hears its component at once.
    assert [row["wait (slots)"] for case, row in rows.items() if case != "4"] == ["0"] * 5
    assert rows["2"]["components"] == "complete graphs of 53, 24, 10, 6 and 7 agents"
    # Printed with 63 for 53: 10 agents, 62 * 63 / 2 - 1378 = 575 edges and 10 hops more.
    printed = exchange.sinks(graphs.components(module.CASE_2_AS_PRINTED, module.AGENTS_AS_PRINTED))
    assert module.round_cost(printed, "edges") == 250 + 1735 + 575 == 2560
    assert module.round_cost(printed, "sac") == 250 + 95 + 10
    notes = (tmp_path / "table2_hybrid.md").read_text("utf-8")
    told = "2560 (links counted by edges) and 355 (links counted by hops to the sink)"
    assert told in notes and "x5" not in notes


def final(data, **cell):
    """Returns regret at T by seed."""
    return data.regret.isel(time=-1).sel(cell).values


PICTURES = {
    "fig06_rounds": ["fig06_rounds_smallest_gap", "fig06_rounds"],
    "fig07_tradeoff": ["fig07_tradeoff_smallest_gap", "fig07_tradeoff"],
    "table2_fig11_hybrid": ["fig11_hybrid", "fig11_hybrid_cost"],
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
@pytest.mark.as_users_see_it
def test_figures_are_legible_and_say_what_they_show(monkeypatch, tmp_path, name, horizons):
    """Catches texts too small, cut off or over each other, and words without the facts."""
    module, kept = command.load_experiment(name), drawn(monkeypatch)
    module.draw({T: made_up(monkeypatch, name, T) for T in horizons}, tmp_path)
    pictures_of = PICTURES.get(name, [name])
    assert list(kept) == pictures_of
    for each in pictures_of:
        alt, caption = readable(kept, each, tmp_path)
        told = "10⁴" if len(horizons) == 1 else "10⁴, 10⁵ and 10⁶"
        assert f"T = {told} slots, 3 seeds" in caption
        assert "95 % simultaneous band" in caption or "95 % confidence interval" in caption
        assert " seeds lost the best arm, 0 in every configuration (95 % Clopper–Pearson" in caption
        assert " play a worse arm at T, 0 in every configuration" in caption
        for jargon in ("20x5", "meter", "sac", "spread 1"):
            assert jargon not in caption and jargon not in alt


# Picture: labels of what is swept, and the quantity beside regret with its reference.
CURVES = {
    "fig04_epsilon": (
        ["ε = 0.1 (Nε = 5)", "ε = 0.3 (Nε = 15)", "ε = 0.5 (Nε = 25)", "ε = 1 (Nε = 50)",
         "no noise"], "price of privacy", 4),
    "fig05_participation": ([f"p = {p}" for p in P], "difference to p = 1", 4),
    "fig06_rounds": (
        ["R = 2", "R = 3", "R = 4", "R = 5", "no budget"], "difference to no budget", 4),
    "fig10_graphs": (
        ["complete", "star", "ring", "random"], "difference to the complete graph", 0),
    "fig11_hybrid": ([f"case {i}" for i in range(1, 7)], "difference to case 6", 5),
}  # fmt: skip
SPREADS = ("homogeneous", "heterogeneous")


def ends_of(name, data):
    """Returns regret at T by seed of every curve of a picture, by quantity and label."""
    last = data.regret.isel(time=-1)
    if name == "fig11_hybrid_cost":  # told by case, in the words alone
        return {}
    if name == "fig08_heterogeneous_central":
        return {
            ("regret", f"{words}, {spread}"): final(data, algorithm=a, spread=spread)
            for a, words in (("Single", "agents alone"), ("CDP", "CDP-MAB"))
            for spread in SPREADS
        }
    if name == "fig12_heterogeneous_structures":
        return {
            ("difference to CDP-MAB", f"{a}-MAB, {spread}"): final(data, algorithm=a, spread=spread)
            - final(data, algorithm="CDP", spread=spread)
            for spread in SPREADS
            for a in ("DDP", "HDP")
        }
    if name.startswith("fig06_rounds"):
        last = last.isel(schedule_gap=0 if name.endswith("gap") else 1)
    labels, quantity, reference = CURVES[name.removesuffix("_smallest_gap")]
    curves = dict(zip(labels, last.values, strict=True))
    others = {label: values for label, values in curves.items() if label != labels[reference]}
    found = {(quantity, n): values - last.values[reference] for n, values in others.items()}
    alone = name in ("fig10_graphs", "fig11_hybrid")  # of which regret is not drawn
    return found if alone else {("regret", label): own for label, own in curves.items()} | found


@pytest.mark.parametrize(
    "name", sorted({*SETTINGS} - {"table1_graphs", "fig07_tradeoff", "fig13_heterogeneity"})
)
def test_tables_of_figures_are_those_of_the_data(monkeypatch, tmp_path, name):
    """Catches a curve left out or elsewhere, another reference or horizon, lines unlike rows."""
    kept = published(monkeypatch)
    results = {T: made_up(monkeypatch, name, T, seeds=4) for T in (10**5, 10**4)}
    command.load_experiment(name).draw(results, tmp_path)
    assert list(kept) == PICTURES.get(name, [name])
    for each, picture in kept.items():
        assert "T = 10⁵ and 10⁴ slots, 4 seeds. " in picture.caption
        rows = {}
        for row in picture.rows:
            if row["quantity"] != "regret at T" and not row["quantity"].startswith("cost"):
                rows.setdefault((row["T"], row["quantity"], row["curve"]), []).append(row)
        wanted = {T: ends_of(each, data) for T, data in results.items()}
        assert set(rows) == {(T, *key) for T, found in wanted.items() for key in found}
        for (T, *key), found in rows.items():
            values = wanted[T][tuple(key)]
            assert [row["slot"] for row in found] == common.slots(T).tolist()
            assert found[-1]["mean"] == pytest.approx(values.mean(), rel=1e-9)
            mean, low, high = (found[-1][end] for end in ("mean", "lower", "upper"))
            assert low < mean < high or (values == 0).all()
        page = pictures.Page()
        picture.draw(page)
        panels = iter(page.figure.axes)
        for quantity in dict.fromkeys(key[1] for key in rows):
            for T in results:
                lines = [line for line in next(panels).lines if len(line.get_xdata()) == 100]
                own = {key[2]: found for key, found in rows.items() if key[:2] == (T, quantity)}
                if each == "fig11_hybrid":  # without those that are 0 in every seed
                    own = {curve: found for curve, found in own.items() if found[-1]["mean"]}
                assert [line.get_label() for line in lines] == list(own)
                for line, found in zip(lines, own.values(), strict=True):
                    np.testing.assert_allclose(line.get_ydata(), [row["mean"] for row in found])


def test_bands_of_differences_stand_around_the_means():
    """Catches a band of means for differences, a wrong sign, and a reference that is moved."""
    rng = np.random.default_rng(0)
    drawn_ = (rng.normal(mean, sd, (30, 2)) for mean, sd in ((1000, 200), (0, 1)))
    base, noise = (xr.DataArray(x, {"time": [10, 20]}, ("seed", "time")) for x in drawn_)
    curves = {"more": base + 5 + noise, "own": base}
    apart = common.difference_bands(curves, "own")
    assert list(apart) == ["more"]
    np.testing.assert_allclose(apart["more"]["mean"], (5 + noise).mean("seed"))
    found = common.paired_bands(curves, "own")
    assert list(found) == ["more", "own"]
    mean = base.mean("seed")
    for end in ("mean", "lower", "upper"):
        np.testing.assert_allclose(found["more"][end], apart["more"][end] + mean)
    own = fmab.confidence_band(base, 0.95)
    np.testing.assert_allclose(found["own"]["lower"], own.lower)
    wide = {name: float(band.upper[0] - band.lower[0]) for name, band in found.items()}
    assert wide["more"] < 3 < wide["own"]


def test_numbers_of_tables_are_worked_out_by_hand(tmp_path):
    """Catches a population's deviation, another level, hidden digits, other instances."""
    # Student's t with 4 degrees of freedom: 2.7764 (95 %) and 3.7469 (98 %).
    for level, t in ((0.95, 2.776445), (0.98, 3.746947)):
        half = t * math.sqrt(2.5 / 5)
        found = common.interval([1, 2, 3, 4, 5], level)
        assert found == pytest.approx((3, 3 - half, 3 + half), rel=1e-6)
    assert common.interval([1, 2, 3, 4, 5]) == common.interval([1, 2, 3, 4, 5], 0.95)
    rows = [{"a": (1234.5678, 1200.0, 1269.0), "b": (2.5, 2.5, 2.5)}]
    rows += [{"a": (0.5, 0.498, 0.502), "b": ""}]
    assert common.table_lines(rows) == [
        "| a | b |",
        "|---|---|",
        "| 1,235 [1,200, 1,269] | 2.5 |",
        "| 0.5000 [0.4980, 0.5020] |  |",
    ]  # fmt: skip
    path = common.save_rows([{"a": (1, 0, 2)}, {"c": 3}], tmp_path / "t.csv")
    assert path.read_text("utf-8").splitlines() == ['a,"a, lower","a, upper",c', "1,0,2,", ",,,3"]
    assert [common.power(T) for T in (10**4, 10**6, 12_000)] == ["1e4", "1e6", "12000"]
    slots = common.slots(10**4)
    assert slots[:3].tolist() == [101, 111, 121] and (slots % 2 == 0).sum() == 50


@pytest.mark.as_users_see_it
def test_audits_are_drawn_with_their_bins_and_their_table(monkeypatch, tmp_path):
    """Catches bins of another data set than an audit's, a replaced table, words cut off."""
    audit, kept = import_module("experiments.audit"), drawn(monkeypatch)
    first = audit.audit(fmab.cdp_mab(0.02), 50, view="messages", runs=20_000)
    audit.draw({10**4: {audit.FIRST: first}}, tmp_path)
    readable(kept, "audit", tmp_path)
    rows, (edges, _, all_) = rows_of(tmp_path / "audit.csv"), first.findings[0].histogram
    assert [float(row["from"]) for row in rows] == pytest.approx(edges[:-1].tolist())
    assert [int(row["runs, reward 1"]) for row in rows] == all_.tolist()
    assert rows_of(tmp_path / "audit_mechanisms.csv")[0]["mechanism"] == "CDP-MAB, claim 1"
    assert not (tmp_path / "audit_unseen.csv").exists()


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
    told = "3 of 40 play a worse arm at T, most in one configuration 2 of 4 "
    assert f"{told}({low:.3g}–{high:.3g} %) at Δ = 1/16, R = 2. 3 had not decided at T." in found
    low, high = (100 * end for end in lost_interval(1, 4, 0.95))
    told = "1 of 40 seeds lost the best arm, most in one configuration 1 of 4 (95 % Clopper–Pearson"
    assert f"{told} interval {low:.3g}–{high:.3g} %) at Δ = 1/16, no round budget. 3 of 40" in found
    both = common.caption("Setting", {10**4: data, 10**6: data.copy(deep=True)})
    mean = float(data.regret[1, 0, :, -1].mean())
    most = f"5,000,000,000, at T = 10⁴, where the mean of its configuration is {mean:,.0f}."
    assert found.endswith(f"The largest regret of a seed of these two kinds is {most}")
    assert "2 of 80 seeds lost the best arm" in both and "6 of 80 play a worse" in both
    assert "at T = 10⁴, Δ = 1/16, R = 2. 6 had not" in both
    larger = common.caption("x", {10**4: data, 10**5: data.assign(regret=2 * data.regret)})
    assert "two kinds is 10,000,000,000, at T = 10⁵, where" in larger


def test_a_second_run_computes_nothing_and_draws_the_same(monkeypatch, tmp_path, capsys):
    """Catches results that are not kept, not found again, or figures that differ without cause."""
    folders = ["--runs", str(tmp_path / "runs"), "--figures", str(tmp_path / "figures")]
    arguments = ["fig04", "--seeds", "3", "--horizon", "1e4", *folders]
    assert command.main(arguments) == 0
    files = sorted((tmp_path / "figures").iterdir())
    ends = (".csv", ".md", ".png")
    assert [file.name for file in files] == [*(f"fig04_epsilon{end}" for end in ends), "runs.csv"]
    first = [file.read_bytes() for file in files]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fig04_epsilon-T1e4"]
    printed = capsys.readouterr().out
    assert all(str(file) in printed for file in files[:-1])

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
    """Catches one that cannot be asked for, is never run or checked, and two told alike."""
    short = [f"fig{n:02}" for n in range(4, 14)] + ["table1", "table2"]
    others = {"readings", "audit", "claims", "pages"}
    others |= {"theory_runs", "worlds", "linear", "noises", "conditions", "choices", "consensus"}
    others |= {"race_coverage", "plan_coverage", "plans"}
    others |= {*ARENA}
    assert {command.find_name(name) for name in short} | others == set(command.NAMES)
    others |= {"fig09_graphs"}
    assert [name for name in command.NAMES if name not in others] == list(SETTINGS)
    assert all(command.find_name(name) == name for name in command.NAMES)
    assert command.find_name("table2") == command.find_name("fig11") == "table2_fig11_hybrid"
    assert "did you mean arena?" in refused(command.find_name, "arean")


def test_quick_and_full_runs_differ_in_seeds_horizons_and_folder(monkeypatch):
    """Catches a quick run that replaces the full one's figures, or a full one with few seeds."""
    calls = []
    monkeypatch.setattr(command, "run", lambda *arguments: calls.append(arguments))
    command.main(["--quick"])
    command.main([])
    quick, full = calls[: len(command.NAMES)], calls[len(command.NAMES) :]
    assert [call[0] for call in quick] == [call[0] for call in full] == list(command.NAMES)
    asked = [{(tuple(call[1]), call[2], str(call[4])) for call in calls} for calls in (quick, full)]
    assert asked[0] == {((10**4,), command.QUICK_SEEDS, "runs/quick")}
    assert asked[1] == {((10**4, 10**5, 10**6), 1000, "figures")}
    assert common.SEEDS >= 1000


def test_every_algorithm_that_claims_privacy_is_audited():
    """Catches claims that nobody tries to contradict, and a broken one among the sound."""
    audit = import_module("experiments.audit")
    each_made = [(case, case.make()) for case in audit.SOUND.values()]
    names = {each.name for _, each in each_made}
    for name, owner in sorted(ALGORITHMS.by_name().items()):
        private = "epsilon" in owner.__dataclass_fields__
        rows = fmab.privacy_ledger(owner(0.5) if private else owner(), 6)
        claims = any(math.isfinite(row.epsilon) for row in rows)
        assert claims == (name in names), name
    assert names.isdisjoint({"cdp_quiet", "cdp_hasty", "adap_bare"})
    # Of every algorithm all views are looked at, or each by itself.
    for name in names:
        views = {case.view for case, each in each_made if each.name == name}
        assert None in views or "actions" in views
    assert set(audit.QUICK) <= set(audit.CASES) and audit.FIRST in audit.QUICK


def made_up_finding(stream, claim, lower, **own):
    """Returns a made-up finding of an audit."""
    counts = Histogram(np.array([0.0, 1, 3]), np.array([40, 60]), np.array([50, 90]))
    shared = f"event {stream}", 1.5, (1, 2), counts
    return Finding(stream, claim, lower, *shared, **{"viewer": "all"} | own)


def test_audits_show_the_finding_that_says_most(monkeypatch, tmp_path):
    """Catches the least finding, a caught one not counted, another density, too few runs."""
    audit, kept = import_module("experiments.audit"), published(monkeypatch)

    def made(*findings, **own):
        return Audit(fmab.cdp_mab(1), 50, 200, 1e-6, findings, 7.25, **own)

    hidden = Unseen("neighbours", "counts", 0.5, "nobody knows")
    found = {
        audit.FIRST: made(made_up_finding("a", 1.0, 0.96), made_up_finding("b", 2.0, 1.9)),
        "CDP-MAB, actions": made(
            made_up_finding("sent", 1.0, 0.99),
            made_up_finding("played", 4.0, 1.0, view="actions"),
            unseen=(hidden,),
        ),
        "no noise": made(made_up_finding("one", 1.0, 5.5)),
    }
    heads = ("claim", "lower bound", "share of the claim", "verdict", "seen")
    assert [" / ".join(row[head] for head in heads) for row in audit.rows(found)] == [
        "1 / 0.9600 / 0.960 / within the claim / a",
        "1 / 0.9900 / 0.990 / within the claim / sent",
        "4 / 1.0000 / 0.250 / within the claim / played",
        "1 / 5.5000 / 5.500 / contradicted / one",
    ]
    audit.draw({10**4: found}, tmp_path)
    assert "nobody knows" in (tmp_path / "audit_unseen.csv").read_text("utf-8")
    caption = kept["audit"].caption
    assert "mechanisms as they are, 0 are contradicted. Of 1 that are broken, 1 are." in caption
    narrow, wide = kept["audit"].rows
    # 200 runs, bins of width 1 and 2; one has fewer than 50 without the reward.
    assert list(narrow.values()) == [0, 1, 40, 50, 0.2, 0.25, ""]
    assert list(wide.values()) == [1, 3, 60, 90, 0.15, 0.225, pytest.approx(math.log(1.5))]


def test_leaks_are_those_of_the_ledger():
    """Would catch a leak that forgets N, that counts actions, or one where nobody is told."""
    members = {"a": fmab.cdp_mab(1, participation=0.2), "b": fmab.single_mab(1)}
    members |= {"c": fmab.cdp_mab(None), "d": fmab.ddp_mab(0.5, graph="ring")}
    told = common.leaks(members, 50).partition(": ")[2]
    assert told == "Nε = 10 (a), nothing is sent (b), no bound (c), Nε = 25 (d)"
