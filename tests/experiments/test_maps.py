"""Maps: their settings, and every quantity that they compute, on data made by hand."""

import math

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, readable, rows_of

import fmab_jax as fmab
from experiments import (
    common,
    maps,
    maps_common,
    maps_gaps,
    maps_pairs,
    maps_regimes,
    maps_waits,
    pictures,
    verdicts,
)
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.sweeps.study import state

HORIZON = 10**4


def stated(monkeypatch, part, horizon=HORIZON, seeds=3):
    """Returns the studies that a part would run."""
    found = []

    def record(algorithm, problem, *, store=None, batch=None, **settings):
        found.append(state(algorithm, problem, **settings))
        return xr.Dataset({"regret": ("problem", [0.0])})

    monkeypatch.setattr(fmab, "sweep", record, raising=False)
    maps.PARTS[part][0](horizon, seeds, None)
    return found


# Part: algorithms, and what it sweeps or fixes besides 50 agents with 100 arms.
LEAKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, None]
SETTINGS = {
    "gaps": (["cdp"], {"epsilon": 1, "rounds": [2, 3, 4, 5, 6], "participation": 1}),
    "pairs": (["cdp"], {
        "epsilon": 1, "participation": [0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1],
        "rounds": [None, 2, 3, 4, 5, 6, 7, 8], "schedule_gap": None}),
    "leaks": (["cdp"], {"epsilon_message": LEAKS, "participation": [0.2, 1]}),
    "alone": (["single"], {"epsilon_message": LEAKS}),
    "peers": (["ddp", "hdp"], {"graph": "ring", "components": "5x10:star"}),
    "diameters": (["ddp"], {"epsilon": 1}),
}  # fmt: skip


@pytest.mark.parametrize("part", SETTINGS)
def test_parts_run_the_papers_instance(monkeypatch, part):
    """Would catch a mistyped instance, budget, leak or graph, and a part on another problem."""
    algorithms, wanted = SETTINGS[part]
    monkeypatch.setattr(maps_gaps, "GAPS", maps_gaps.GAPS[:2])
    (study,) = stated(monkeypatch, part)
    swept = {axis.name: list(axis.values) for axis in study.axes}
    assert list(dict.fromkeys(p.described["algorithm"] for p in study.points)) == algorithms
    for field, value in wanted.items():
        assert (swept[field] if field in swept else study.settings[field]) == value, field
    assert {(p.config.problem.agents, p.config.problem.arms) for p in study.points} == {(50, 100)}
    assert {p.config.horizon for p in study.points} == {HORIZON}


def test_gaps_cover_two_decades_and_the_oracle(monkeypatch):
    """Would catch a grid that misses the gaps at which the sentences hold, or the oracle's."""
    monkeypatch.setattr(maps_gaps, "BUDGETS", (2,))
    (study,) = stated(monkeypatch, "gaps")
    (axis,) = (axis for axis in study.axes if axis.name == "schedule_gap")
    assert axis.labels[0] == "oracle" and axis.values[0] is None
    gaps = np.array(axis.values[1:], float)
    assert (gaps[0], gaps[-1]) == (0.005, 0.5)
    # A step of the gap changes R = 2 by a step of regret within the tolerance.
    assert np.diff(np.log(gaps)).max() < 0.13


def test_delays_are_paired_and_their_diameters_differ(monkeypatch):
    """Would catch runs that draw by different laws, and graphs of one diameter."""
    sizes, (graphs,) = stated(monkeypatch, "sizes"), stated(monkeypatch, "diameters")
    assert all(study.sum_agents is False for study in (*sizes, graphs))
    agents = [p.config.problem.agents for study in sizes for p in study.points]
    assert sorted(set(agents)) == [5, 10, 20, 50, 100, 200]
    waits = {p.config.exchange.wait for p in graphs.points}
    assert {0, 1, 24, 48} <= waits and len(waits) >= 8


def test_the_exponents_fix_one_instance_at_their_own_horizon(monkeypatch):
    """Would catch exponents between instances, and epsilons that end before a regime does."""
    every = maps_regimes.EPSILONS
    assert (every[0], every[-2], every[-1]) == (1e-6, 10, None) and len(every) > 20
    monkeypatch.setattr(maps_regimes, "EPSILONS", every[-2:])
    (study,) = stated(monkeypatch, "exponents")
    means = {p.config.problem.means.tobytes() for p in study.points}
    assert len(means) == 1
    assert {p.config.problem.agents for p in study.points} == {10, 50, 100}
    assert {p.config.horizon for p in study.points} == {10**8, 10**9, 10**10}
    (axis,) = (axis for axis in study.axes if axis.name == "epsilon")
    assert axis.values == (10, None)
    (shares,) = stated(monkeypatch, "shares")
    assert shares.settings["participation"] == 0.2
    assert shares.points[0].config.problem.means.tobytes() in means


def test_quick_runs_are_a_part_and_own_horizons_share_a_store(monkeypatch, tmp_path):
    """Would catch a quick run of everything, and one result simulated for each horizon."""
    assert set(maps.QUICK) < set(maps.PARTS)
    stores = []

    def kept(own):
        return lambda horizon, seeds, store: stores.append(store.name), own

    parts = {"here": kept(False), "own": kept(True)}
    monkeypatch.setattr(maps, "PARTS", parts)
    for horizon in (10**4, 10**5):
        maps.sweep(horizon, 3, tmp_path / f"maps-T{common.power(horizon)}", tuple(parts))
    assert stores == ["maps-T1e4-here", "maps-own", "maps-T1e5-here", "maps-own"]


# --- budgets ------------------------------------------------------------------------------------


def cells(values, gaps=("oracle", "0.01", "0.1"), seeds=6):
    """Returns [gap, budget, seed] regrets around the given means, the same noise in all."""
    noise = 1 + 0.2 * np.random.default_rng(0).standard_normal(seeds)
    array = np.asarray(values, float)[..., None] * noise
    coords = {"schedule_gap": list(gaps), "rounds": [4, 5]}
    regret = xr.DataArray(array, dims=["schedule_gap", "rounds", "seed"], coords=coords)
    return regret, noise


def test_sentences_hold_where_the_regrets_are_within_the_tolerance():
    """Would catch swapped budgets, a sentence judged by the other's, and a tolerance ignored."""
    regret, noise = cells([[200, 150], [130, 100], [104, 101]])
    found = maps_gaps.sentences(regret, 100 * noise)
    close, alike = found.values()
    assert [round(each.estimate, 9) for each in close] == pytest.approx([0.5, 0, 0.01])
    assert [each.estimate for each in alike] == pytest.approx([1 / 3, 0.3, 3 / 101])
    for tolerance, wanted in (
        (0.05, [[False, True, True], [False, False, True], [False, False, True]]),
        (0.025, [[False, True, True], [False] * 3, [False] * 3]),
    ):
        held = maps_gaps.held(found, tolerance)
        names = (*maps_gaps.SENTENCES, maps_gaps.BOTH)
        assert [held[name].tolist() for name in names] == wanted


def test_an_interval_has_to_lie_within_the_tolerance_not_only_the_mean():
    """Would catch a verdict on means whose seeds leave it open."""
    regret, noise = cells([[100, 100]], gaps=("0.1",))
    other = 100 * noise[::-1]  # as large on average, but not seed by seed
    found = maps_gaps.sentences(regret, other)
    assert abs(found["R = 5 close to no budget"][0].estimate) < 1e-12
    assert not maps_gaps.held(found, 0.05)["R = 5 close to no budget"][0]


def test_gaps_are_told_in_runs():
    """Would catch neighbours told apart, gaps between two runs told as one, a hidden oracle."""
    holds = np.array([True, True, True, False, True])
    assert maps_gaps.spans([1, 2, 3, 4, 5], holds) == [(1, 3), (5, 5)]
    labels = ["oracle", "0.01", "0.02", "0.03", "0.05"]
    assert maps_gaps.listed(labels, holds) == "0.01 to 0.02 and 0.05 and oracle"
    assert maps_gaps.listed(labels, ~holds) == "0.03"
    assert maps_gaps.listed(labels, holds & False) == "no gap"


def test_equal_means_are_found_between_gaps():
    """Would catch the wrong side of a change of sign, or one that is not there."""
    assert maps_gaps.equal_at([0.01, 0.1, 1.0], [3.0, 1.0, -1.0]) == pytest.approx(0.1**0.5)
    assert maps_gaps.equal_at([0.01, 0.1], [3.0, 1.0]) is None


def test_remark_2_is_computed_as_printed():
    """Would catch another logarithm, and a promise where p M is 1 or less."""
    assert maps_pairs.remark(50, 1, 10**4) == pytest.approx(4 * 9.21034 / (3 * 3.91202), rel=1e-5)
    assert maps_pairs.remark(50, 0.02, 10**4) == math.inf


def pairs_made_by_hand(seeds=5):
    """Returns regrets of 100 / p without a budget, and R times less with one of R."""
    noise = 1 + 0.1 * np.random.default_rng(1).standard_normal(seeds)
    shares, rounds = [0.1, 0.5, 1.0], ["none", 2, 4]
    factor = {"none": 1.0, 2: 40.0, 4: 2.0}
    values = [[100 / p * factor[R] * noise for R in rounds] for p in shares]
    return xr.Dataset(
        {"regret": (("participation", "rounds", "seed", "time"), np.array(values)[..., None])},
        {"participation": shares, "rounds": np.array(rounds, object), "time": [HORIZON]},
    ), noise


def test_pairs_are_measured_against_all_agents_and_against_agents_alone():
    """Catches a wrong reference, T^(2/R) or p^(3/2), and Remark 2 at another p or where silent."""
    data, noise = pairs_made_by_hand()
    rows = maps_pairs.pair_rows(HORIZON, data, 30 * 100 * noise)
    ratios = {(row["p"], row["R"]): row["over R_C"][0] for row in rows}
    assert ratios[1, "none"] == pytest.approx(1)
    assert ratios[0.1, 2] == pytest.approx(400)
    assert ratios[0.5, 4] == pytest.approx(4)
    assert [row["agents alone over R_C"][0] for row in rows] == pytest.approx([30] * 9)
    by = {(row["p"], row["R"]): row for row in rows}
    assert by[0.5, 2]["T^(2/R) / p^(3/2)"] == pytest.approx(10**4 / 0.5**1.5)
    assert by[0.1, "none"]["T^(2/R) / p^(3/2)"] == pytest.approx(0.1**-1.5)
    assert by[0.5, 4]["R of Remark 2"] == pytest.approx(4 * math.log(10**4) / (3 * math.log(25)))
    assert by[0.5, 4]["over agents alone"][0] == pytest.approx(400 / 3000)
    assert "over agents alone" not in maps_pairs.pair_rows(HORIZON, data, None)[0]
    grid = np.array([[ratios[p, R] for R in (2, 4)] for p in (0.1, 0.5, 1)])
    told = maps_pairs._told_pairs(HORIZON, rows, grid, 30.0)
    # R = 2 has 400, 80 and 40 times R_C; M = 50. Remark 2 speaks at p = 1 and 0.5 for R = 4.
    interval = "its 99 % interval above M in"
    assert f"budget is 2 to 400, {interval} 2 of 6 cells (the mean in 2)" in told
    assert "Agents alone have 30. Over agents alone, the 99 % interval of the ratio lies" in told
    assert "above 1 in 3 cells, 0 of them among the 2 for which Remark 2 promises no more" in told
    # A ratio whose interval holds M is above M by its mean alone.
    unsure = [{**row, "over R_C": (80, 40, 120)} if row["R"] == 2 else row for row in rows]
    told = maps_pairs._told_pairs(HORIZON, unsure, grid, None)
    assert f"{interval} 0 of 6 cells (the mean in 3)" in told
    assert maps_pairs.crossings(grid, 30) and not maps_pairs.crossings(grid, 500)


def test_borders_of_cells_lie_half_way():
    """Would catch a heat map whose cells are shifted against their axis."""
    assert maps_pairs._edges([2, 3, 4]).tolist() == [1.5, 2.5, 3.5, 4.5]
    assert maps_pairs._edges([0, 2, 8]).tolist() == [-1, 1, 5, 11]


# --- regimes ------------------------------------------------------------------------------------


def exponents_made_by_hand(noise=0.01, seeds=4):
    """Returns regrets of M^0 log T (rewards), and M^-0.5 p^-1.5 sqrt(log T) / ε (noise), added."""
    epsilons = np.array([1e-6, 1e-5, 1e-2, 1e-1, 10.0, "none"], object)

    def regret(agents, epsilon, horizon, p=1.0):
        log = math.log(horizon)
        private = 0 if epsilon == "none" else noise / (math.sqrt(agents * log) * p**1.5 * epsilon)
        return (log / p + log * private) * np.linspace(0.99, 1.01, seeds)

    sizes, horizons = ["10", "50", "100"], [10**8, 10**9, 10**10]
    every = [[[regret(int(m), e, T) for T in horizons] for e in epsilons] for m in sizes]
    dims = ("problem", "epsilon", "horizon", "seed", "time")
    exponents = xr.Dataset(
        {"regret": (dims, np.array(every)[..., None])},
        {"problem": sizes, "epsilon": epsilons, "horizon": horizons},
    )
    part = np.array([regret(50, e, 10**9, 0.2) for e in epsilons])[..., None]
    shares = xr.Dataset({"regret": (("epsilon", "seed", "time"), part)}, {"epsilon": epsilons})
    return {"exponents": exponents, "shares": shares}


def test_exponents_are_those_of_the_power_laws():
    """Would catch a wrong sign or base, p taken as 1/p, and log T taken as T."""
    rows = maps_regimes.exponent_rows(exponents_made_by_hand())
    for quantity, (small, large) in {
        "ε": (-1, 0),
        "M": (-0.5, 0),
        "p": (-1.5, -1),
        "log T": (0.5, 1),
    }.items():
        own = [row["measured"][0] for row in rows if row["exponent in"] == quantity]
        assert own[0] == pytest.approx(small, abs=0.02), quantity
        assert own[-1] == pytest.approx(large, abs=0.02), quantity
        derived = next(row for row in rows if row["exponent in"] == quantity)
        assert derived["noise regime, derived"] == small
        assert derived["reward regime, derived"] == large
    assert all(row["measured"][1] <= row["measured"][0] <= row["measured"][2] for row in rows)


def test_printed_exponents_are_those_of_the_theorems():
    """Catches what is derived told as printed: both terms of Theorem 1, p^(-3/2) of Theorem 2."""
    printed = {name: pair for name, (_, pair) in maps_regimes.REGIMES.items()}
    assert printed == {"ε": (-1, 0), "M": (-0.5, 0), "p": (-1.5, -1.5), "log T": (1.5, 1)}


def test_the_crossover_is_where_the_exponent_in_epsilon_is_a_half():
    """Catches a crossover elsewhere, or of nothing, and the first of several told as the only."""
    points = [(1e-4, -1.0), (1e-2, -0.75), (1e0, -0.25), (1e1, 0.0)]
    rows = [{"exponent in": "ε", "ε": e, "measured": (v, v, v)} for e, v in points]
    assert maps_regimes.half_way(rows) == pytest.approx([1e-1])
    assert maps_regimes.half_way(rows[2:]) == []
    again = [{**row, "ε": 1e4 * row["ε"]} for row in rows]
    assert maps_regimes.half_way(rows + again) == pytest.approx([1e-1, 1e3])
    words = maps_regimes._crossing([0.1, 1e3], 2e3)
    assert words.startswith("it passes -1/2 first at ε = 0.1 and for good at 1e+03 (0.5 times the")
    assert maps_regimes._crossing([0.1], 0.2) == "it passes -1/2 at ε = 0.1 (0.5 times the print)"
    assert maps_regimes._crossing([], 0.2) == "it passes -1/2 nowhere"


def test_the_crossovers_are_those_of_the_instance():
    """Would catch another gap, M or T than the figure's: 0.1 sqrt(log 10^9 / 50), printed."""
    printed, (low, high) = maps_regimes.crossovers()
    assert printed == pytest.approx(0.1 * math.sqrt(math.log(10**9) / 50), rel=1e-3)
    assert low < high < printed


def test_waits_are_measured_against_the_complete_graph():
    """Catches a wrong sign, d_G - 1, M or 2 left out of the bound, a graph counted twice."""
    ends = {"complete": 100.0, "star": 90.0, "ring": 160.0}
    values = [[[ends[g] + s] for s in (-1.0, 0.0, 1.0)] for g in ends]
    regret = ("graph", "seed", "time"), np.array(values)
    data = xr.Dataset({"regret": regret}, {"graph": list(ends)})
    star, ring = maps_waits.diameter_rows(HORIZON, data)
    assert (star["d_G"], star["2 M (d_G - 1)"], star["extra regret"][0]) == (2, 100, -10)
    assert (ring["d_G"], ring["2 M (d_G - 1)"], ring["extra regret"][0]) == (25, 2400, 60)
    assert ring["bound on waiting"] == pytest.approx(24 * star["bound on waiting"])
    told = maps_waits._told_waits(HORIZON, [ring], [star, ring])
    assert "Of 2 points, the 95 % interval lies above 0 at 1 (waiting adds regret)" in told
    assert "below 0 at 1 (it saves some). The mean is at most 60 % of the regret on the" in told
    assert told.endswith(" complete graph, and 2.5 % of 2 M (d_G − 1)")


# --- single instances ---------------------------------------------------------------------------


def test_runs_of_both_panels_are_counted_once():
    """Would catch ring and complete graph of 50 agents counted as runs of two configurations."""
    lost = {"best_arm_lost": (("problem", "graph", "seed"), np.zeros((2, 2, 4), bool))}
    sizes = xr.Dataset(lost, {"problem": ["5", "50"], "graph": ["ring", "complete"]})
    names = ["star", "complete", "path", "ring"]
    graphs = xr.Dataset({"best_arm_lost": (("graph", "seed"), np.zeros((4, 4), bool))})
    found = {"sizes": sizes, "diameters": graphs.assign_coords(graph=names)}
    assert maps_waits._beyond_sizes(found).graph.values.tolist() == ["star", "path"]
    few = found | {"sizes": sizes.sel(problem=["5"])}
    assert maps_waits._beyond_sizes(few).graph.values.tolist() == names


# --- what is drawn ------------------------------------------------------------------------------

DRAWN = {
    "maps_gap_regret": (maps_gaps.draw_gaps, ("gaps", "pairs")),
    "maps_gap_events": (maps_gaps.draw_gaps, ("gaps", "pairs")),
    "maps_pairs": (maps_pairs.draw_pairs, ("pairs", "alone")),
    "maps_leak": (maps_regimes.draw_leaks, ("leaks", "peers", "alone")),
    "maps_waits": (maps_waits.draw_waits, ("sizes", "diameters")),
    "maps_exponents": (maps_regimes.draw_exponents, ("exponents", "shares")),
}
# Drawn by default at all horizons; the others are for `-m slow`.
QUICK = ("maps_pairs",)


def made_up(algorithm, problem, *, store=None, batch=None, **settings):
    """Returns results of the shape that a sweep has, with one run that plays a worse arm."""
    study, rng = state(algorithm, problem, **settings), np.random.default_rng(1)
    dims, shape = [*(axis.name for axis in study.axes), "seed"], (*study.shape, study.seeds)
    cells = np.exp(rng.normal(9, 1, (*study.shape, 1)))
    regret = cells * rng.uniform(0.9, 1.1, shape)
    worse = np.zeros(shape, bool)
    worse.flat[0] = True
    return xr.Dataset(
        {
            "regret": ([*dims, "time"], regret[..., None]),
            "rounds_made": (dims, rng.integers(2, 7, shape)),
        },
        {a.name: np.array(a.labels, object) for a in study.axes}
        | {"best_arm_lost": (dims, np.zeros(shape, bool)), "worse_arm_played": (dims, worse)},
    )


@pytest.mark.parametrize(
    ("name", "horizons"),
    [(name, common.HORIZONS[:1]) for name in DRAWN]
    + [
        pytest.param(name, common.HORIZONS, marks=() if name in QUICK else pytest.mark.slow)
        for name in DRAWN
    ],
)
@pytest.mark.as_users_see_it
def test_maps_are_legible_and_say_what_went_wrong(monkeypatch, tmp_path, name, horizons):
    """Catches texts too small, cut off or over each other, and worse arms left out of captions."""
    monkeypatch.setattr(fmab, "sweep", made_up, raising=False)
    monkeypatch.setattr(maps_waits, "waiting_bound", lambda agents, *_: 50.0 * agents)
    draw, parts = DRAWN[name]
    results = {T: maps.sweep(T, 5, None, parts) for T in horizons}
    (picture,) = (each for each in draw(results) if each.name == name)
    kept = drawn(monkeypatch)
    pictures.publish(picture, tmp_path)
    _, caption = readable(kept, name, tmp_path)
    if name != "maps_instances":  # of the runs that two other maps show
        # The sizes run in two groups, and have the first graph of the diameters; exponents have
        # one horizon of their own.
        runs = {"maps_gap_regret": 1, "maps_gap_events": 1, "maps_pairs": 1}.get(name, len(parts))
        times = 1 if name == "maps_exponents" else len(horizons)
        assert f"{runs * times} play a worse arm at T (up to 20 % of the seeds" in caption
        assert "The largest regret of a seed of these two kinds is" in caption


def test_the_largest_regret_is_told_at_its_own_horizon():
    """Would catch the horizon of the page where a sweep has several, and right runs counted."""
    regret = np.array([[[5.0], [9.0]], [[7.0], [1.0]]])
    wrong = np.array([[False, False], [True, False]])
    data = xr.Dataset(
        {"regret": (("horizon", "seed", "time"), regret)},
        {"horizon": [10**4, 10**5], "best_arm_lost": (("horizon", "seed"), wrong & False)}
        | {"worse_arm_played": (("horizon", "seed"), wrong)},
    )
    lost, most = maps_common.went_wrong([(10**6, data)])
    assert lost.startswith("0 of 4 runs lost the best arm, and 1 play a worse arm at T (up to 50 %")
    assert "is 7, at T = 10⁵, where the mean of its configuration is 4" in most
    data["worse_arm_played"] = data.worse_arm_played & False
    assert len(maps_common.went_wrong([(10**6, data)])) == 1


# --- a run --------------------------------------------------------------------------------------


def test_a_small_run_is_drawn_with_its_numbers(monkeypatch, tmp_path):
    """Would catch maps that do not fit the real results, and a caption that is not computed."""
    for module in (maps_common, maps_gaps, maps_pairs):
        monkeypatch.setattr(module, "AGENTS", 6)
        monkeypatch.setattr(module, "ARMS", 4)
    monkeypatch.setattr(maps_gaps, "GAPS", (0.05, 0.1, 0.2))
    monkeypatch.setattr(maps_gaps, "BUDGETS", (4, 5))
    monkeypatch.setattr(maps_pairs, "PARTICIPATIONS", (1,))
    monkeypatch.setattr(maps_pairs, "ROUNDS", (None, 2))
    results = {1000: maps.sweep(1000, 12, None, ("gaps", "pairs"))}
    gaps, _ = maps_gaps.draw_gaps(results)
    written = {path.name for path in pictures.publish(gaps, tmp_path)}
    assert {"maps_gap_regret.png", "maps_gap_regret.csv", "maps_gap_regret.md"} <= written
    rows = rows_of(tmp_path / "maps_gap_regret.csv")
    data = results[1000]["gaps"].isel(time=-1)
    without = maps_pairs.regret_without(results[1000]["pairs"])
    for row in rows:
        cell = data.sel(schedule_gap=row["gap"], rounds=int(row["R"]))
        ratio = float(cell.regret.mean()) / without.mean()
        assert float(row["over no budget"]) == pytest.approx(ratio)
        spent = float((cell.rounds_made == int(row["R"])).mean())
        assert float(row["spends the budget"]) == pytest.approx(spent)
        worse = float(cell.worse_arm_played.mean())
        assert float(row["commits to a worse arm"]) == pytest.approx(worse)
    assert len(rows) == 4 * 2
    assert "T = 1000 slots, 12 seeds" in gaps.caption


# --- numbers of the maps, by hand ---------------------------------------------------------------


def gaps_made_by_hand():
    """Returns runs of R = 4 and 5 at the oracle's gap and at two others, and those without R."""
    regret = np.array([[3.0, 2.0], [1.5, 1.2], [1.02, 1.01]])[..., None] * [230.0, 245, 255, 270]
    made = np.tile([[4], [5]], (3, 1, 4))
    made[1, 0, :3], worse = 3, np.zeros(made.shape, bool)
    worse[2, 1, :2] = True
    dims = ("schedule_gap", "rounds", "seed")
    gaps = xr.Dataset(
        {"regret": ((*dims, "time"), regret[..., None]), "rounds_made": (dims, made)},
        {"schedule_gap": ["oracle", "0.01", "0.1"], "rounds": [4, 5]}
        | {"worse_arm_played": (dims, worse), "best_arm_lost": (dims, worse & False)},
    )
    none = np.array([230.0, 245, 255, 270])[None, None, :, None]
    pairs = xr.Dataset(
        {"regret": (("participation", "rounds", "seed", "time"), np.concatenate([7 * none, none]))},
        {"participation": [0.2, 1], "rounds": np.array(["none"], object)},
    )
    return gaps, pairs


def test_rows_of_gaps_have_their_cells_numbers():
    """Catches a ratio upside down, another part's regret, spent budgets as worse arms."""
    gaps, pairs = gaps_made_by_hand()
    without = maps_pairs.regret_without(pairs)
    assert without.tolist() == [230, 245, 255, 270]
    rows = maps_gaps.gap_rows(HORIZON, gaps, without)
    told = [(r["gap"], r["R"], round(r["over no budget"][0], 6)) for r in rows]
    assert told == [
        ("oracle", 4, 3), ("oracle", 5, 2), ("0.01", 4, 1.5), ("0.01", 5, 1.2), ("0.1", 4, 1.02),
        ("0.1", 5, 1.01),
    ]  # fmt: skip
    assert [row["spends the budget"][0] for row in rows] == [1, 1, 0.25, 1, 1, 1]
    assert [row["commits to a worse arm"][0] for row in rows] == [0, 0, 0, 0, 0, 0.5]
    assert rows[2]["spends the budget"][1:] == lost_interval(1, 4, 0.95)
    assert rows[0]["regret"] == common.interval([690, 735, 765, 810])
    for head, part, wanted in (
        ("R = 5 close to no budget: excess", rows[1::2], [1, 0.2, 0.01]),
        ("R = 4 and 5 alike: excess", rows[::2], [0.5, 0.25, 1 / 101]),
    ):
        assert [row[head][0] for row in part] == pytest.approx(wanted)
    for tolerance, wanted in (("2.5", [0, 0, 1]), ("5", [0, 0, 1]), ("10", [0, 0, 1])):
        assert [row[f"both, within {tolerance} %"] for row in rows[::2]] == wanted
    assert maps_gaps.held_rows(rows, 0.05)["both"].tolist() == [False, False, True]
    every = {HORIZON: rows}
    assert maps_gaps._largest(every, "commits to a worse arm") == {HORIZON: (0.5, 5, "0.1")}
    assert maps_gaps._ends(rows, 4, "spends the budget") == (0.25, 1.0)
    assert maps_gaps._told_regret(every) == (
        "At T = 10⁴, R = 5 has its least regret at gap 0.1, 1 times that without a budget; with "
        "the oracle's gap it is 2 times that"
    )
    labels = ["oracle", "0.01", "0.1"]
    assert maps_gaps._other_tolerances(every, labels) == (
        "Within 2.5 %, both at 0.1 (T = 10⁴). Within 10 %, both at 0.1 (T = 10⁴)"
    )
    assert maps_gaps._told_equal(rows, "R = 4 and 5 alike") == ""
    regret, events = maps_gaps.draw_gaps({HORIZON: {"gaps": gaps, "pairs": pairs}})
    told = "R = 5 close to no budget at 0.1; R = 4 and 5 alike at 0.1; both at 0.1 of 2"
    assert f"At T = 10⁴, {told}. Within 2.5 %" in regret.caption and told in regret.alt
    assert "T = 10⁴ slots, 4 seeds" in events.caption and len(events.rows) == 6
    assert events.alt == (
        "T = 10⁴: 100 % of seeds spend R = 5 at gap 0.01, 100 % at 0.1; at most 50 % commit to a "
        "worse arm (R = 5, gap 0.1)."
    )


def test_rows_of_waits_are_of_their_size(monkeypatch):
    """Catches another size's ring, complete minus ring, and rows that are not sorted."""
    asked = []
    bound = lambda agents, graph, T: asked.append((agents, len(graph.edges), T)) or 7.0  # noqa: E731
    monkeypatch.setattr(maps_waits, "waiting_bound", bound)
    ends = np.array([[[130.0, 150.0], [100.0, 110.0]], [[30.0, 40.0], [28.0, 39.0]]])
    data = xr.Dataset(
        {"regret": (("problem", "graph", "seed", "time"), ends[..., None])},
        {"problem": ["20", "5"], "graph": ["ring", "complete"]},
    )
    small, large = maps_waits.size_rows(HORIZON, data)
    assert (small["M"], small["d_G"], small["2 M (d_G - 1)"]) == (5, 2, 10)
    assert (large["M"], large["d_G"], large["2 M (d_G - 1)"]) == (20, 10, 360)
    assert small["extra regret"] == common.interval([2, 1])
    assert large["extra regret"] == common.interval([30, 40])
    excess = verdicts.excess(np.array([130, 150]), np.array([100, 110]))
    assert tuple(large["of the regret"]) == pytest.approx(tuple(excess), nan_ok=True)
    assert asked == [(20, 20, HORIZON), (5, 5, HORIZON)]
    told = maps_waits._told_waits(HORIZON, [small, large], [])
    assert "the ring's extra regret is 1.5 with M = 5 and 35 with M = 20. Of 2 points" in told
    # 35 of 105, and 1.5 of 33.5; a bound is rounded up.
    assert "The mean is at most 34 % of the regret on the complete graph" in told
    edge = {"M": 5, "graph": "ring", "extra regret": (0.0, 0.0, 0.0), "2 M (d_G - 1)": 10}
    edge["of the regret"] = (0.0, 0.0, 0.0)
    told = maps_waits._told_waits(HORIZON, [edge], [])
    assert "above 0 at 0 (waiting adds regret), and below 0 at 0" in told


def test_points_of_leaks_are_of_their_structure():
    """Catches another structure's runs or noiseless ones, and the edge where regret doubles."""
    leaks = np.array([0.1, 1.0, "none"], object)

    def runs(*means, **dims):
        regret = np.array(means)[..., None, None] * [[1.0], [1.1]]
        cells = {"regret": ((*dims, "epsilon_message", "seed", "time"), regret)}
        return xr.Dataset(cells, dims | {"epsilon_message": leaks})

    found = {
        "alone": runs(9.0, 6.0, 3.0),
        "leaks": runs([8.0, 4.0, 2.0], [4.0, 2.0, 1.0], participation=[0.2, 1]),
        "peers": runs([5.0, 2.5, 1.25], [4.2, 2.1, 1.05], algorithm=["DDP", "HDP"]),
    }
    curves = maps_regimes.leak_curves(found)
    assert {name: each.values[:, 0].tolist() for name, each in curves.items()} == {
        "CDP, p = 1": [4, 2, 1],
        "CDP, p = 0.2": [8, 4, 2],
        "DDP, ring": [5, 2.5, 1.25],
        "HDP, ten stars of five": [4.2, 2.1, 1.05],
        "agents alone": [9, 6, 3],
    }
    rows = maps_regimes.leak_rows(HORIZON, curves)
    own = [row for row in rows if row["structure"] == "agents alone"]
    assert [row["over no noise"][0] for row in own] == pytest.approx([3, 2, 1])
    assert maps_regimes.doubled([row | {"over no noise": (2.0, 0, 0)} for row in own[:1]]) == 0.1
    # The largest leak at which there is twice the regret; no noise is no leak.
    assert maps_regimes.doubled(own) == 1 and maps_regimes.doubled(own[2:]) is None
    told = maps_regimes._told_alike({HORIZON: curves})
    assert told == (
        "At every leak and T, DDP, ring and HDP, ten stars of five lie within 25 % of the regret "
        "of CDP, p = 1"
    )
    few = {name: curves[name] for name in ("CDP, p = 1", "agents alone")}
    assert maps_regimes._told_alike({HORIZON: few}).startswith("One structure")
    exponents = [
        {"exponent in": "ε", "ε": e, "measured": (v, v, v)}
        for e, v in ((0.1, -0.987), (0.2, -1.4), (1, -0.5), (10, -0.123), ("none", 7.0))
    ]
    assert maps_regimes._told_exponents(exponents, ["ε"]) == (
        "At the smallest ε and the largest the exponent is, "
        "in ε -0.99 and -0.12 (-1.40 between them)"
    )
    del exponents[1]
    told = maps_regimes._told_exponents(exponents, ["ε"])
    assert told.endswith("is, in ε -0.99 and -0.12")
