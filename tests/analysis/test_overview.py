"""The table of a result against NumPy and SciPy, cell by cell, on results made up for it."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from ledgers import add_ledgers, make_row
from refusals import refuses
from scipy import stats

import fmab_jax as fmab
from fmab_jax.analysis import budgets
from fmab_jax.analysis.words import write_short

SEEDS = np.array([[5, 4], [1, 0]])
METERS = {"server": ("server", True), "bound": ("peer", True), "used": ("peer", False)}
PER_ROUND = np.array([3, 7, 5])
NUMBERS = ("numbers_sent_mean", "numbers_sent_p95", "numbers_sent_max")
EVENTS = ("best_arm_lost", "worse_arm_played")
# What is seen is not what is stated of a message; one configuration tells nothing.
ACTIONS = make_row("actions", 3.0)
LEDGERS = [
    *([make_row("single messages", 1.5), ACTIONS], [ACTIONS]),
    *([make_row("single messages", np.inf), ACTIONS], [make_row("single messages", 4.0), ACTIONS]),
]
LEAKS = ["1.5", "nothing", "no bound"]
PRICES = {"server_price": 25.0, "peer_price": 2.0}


def result(seeds=SEEDS):
    """Returns curves of 2 x 2 configurations, two of them unfinished."""
    rng = np.random.default_rng(1)
    shape = (*seeds.shape, 5)
    final = rng.gamma(4, 300, shape).round()
    rounds = rng.integers(1, 5, shape)
    links = np.stack([0 * rounds, rounds], -1)[..., None] * PER_ROUND
    dims = ("participation", "epsilon", "seed")
    event = {
        "best_arm_lost": (dims, rng.random(shape) < 0.5),
        "worse_arm_played": (dims, rng.random(shape) < 0.5),
    }
    side, priced = ([each[i] for each in METERS.values()] for i in (0, 1))
    data = xr.Dataset(
        {
            "regret": ((*dims, "time"), np.stack([final / 2, final], -1)),
            "links": ((*dims, "time", "meter"), links),
            "rounds_made": (dims, rounds),
            "numbers_sent": (dims, 3 * rounds**2),
            "number_bits": (dims[:2], [[64, 1], [64, 64]]),
            "chosen_arm": (dims, rng.integers(-1, 2, shape)),
            "seeds": (dims[:2], seeds),
        },
        {
            "participation": ("participation", [0.5, 1.0], {"symbol": "p"}),
            "epsilon": ("epsilon", [0.25, 2.0], {"symbol": "ε"}),
            "epsilon_message": (dims[1::-1], [[1.0, 2.0], [8.0, 16.0]]),
            "seed": np.arange(5),
            "time": [10, 1000],
            "meter": list(METERS),
            "side": ("meter", side),
            "priced": ("meter", priced),
            "counts": ("meter", ["links", "hops x edges", "edges"]),
            **event,
        },
        {"title": "CDP-MAB", "agents": 8, "arms": 3, "horizon": 1000, "settings": "{}"},
    )
    return add_ledgers(data, LEDGERS, dims[:2])


def due(data, place, level):
    """Returns what a configuration ends with, by name."""
    number = int(SEEDS[place])
    cell = data.isel(participation=place[0], epsilon=place[1], seed=slice(number))
    found = {"seeds": number, "undecided": int((cell.chosen_arm < 0).sum())}
    rounds = cell.rounds_made.values.astype(float)
    series = {"regret": cell.regret.values[:, -1], "rounds_made": rounds}
    series["cost"] = rounds * (25 * 3 + 2 * 7)
    for name, values in series.items():
        mean, error = values.mean(), values.std(ddof=1) / np.sqrt(number)
        low, high = stats.t.interval(level, number - 1, mean, error) if error else (mean, mean)
        found |= {name: mean, f"{name}_lower": low, f"{name}_upper": high}
    for name in ("best_arm_lost", "worse_arm_played"):
        found[name] = int(cell[name].sum())
        ends = stats.binomtest(found[name], number).proportion_ci(level, "exact")
        found |= {f"{name}_lower": ends.low, f"{name}_upper": ends.high}
    # Links on the meter "used" have no price.
    spent = {"links": 10 * rounds, "numbers": 3 * rounds**2}
    spent["bits"] = spent["numbers"] * [[64, 1], [64, 64]][place[0]][place[1]]
    for name, values in spent.items():
        found |= {name: values.mean(), f"{name}_max": values.max()}
        found[f"{name}_p95"] = np.quantile(values, 0.95, method="higher")
    links = rounds.mean() * PER_ROUND
    return found | {f"links_{name}": each for name, each in zip(METERS, links, strict=True)}


def test_each_text_is_that_of_its_number():
    """Would catch a width for its half, swapped ends or columns, a count for a share."""
    shown = fmab.overview(result(), level=0.9, **PRICES)
    assert shown.columns.tolist() == [
        *("participation", "epsilon", "leak ε of single messages", "regret ± 90 %"),
        *("rounds made ± 90 %", "links server", "links bound", "links used", "links max"),
        *("cost ± 90 %", "best arm lost, % [90 %]", "worse arm played, % [90 %]", "seeds"),
    ]
    # Of [participation, epsilon]; the last has not begun.
    assert len(shown) == 3

    def mean(name):
        half = (known[f"{name}_upper"] - known[f"{name}_lower"]) / 2
        return f"{write_short(known[name])} ± {write_short(float(f'{half:.2g}'))}"

    for place, leak, row in zip(
        [(0, 0), (0, 1), (1, 0)], LEAKS, shown.values.tolist(), strict=True
    ):
        assert row[:3] == [["0.5", "1"][place[0]], ["0.25", "2"][place[1]], leak]
        if SEEDS[place] < 2:
            assert row[3:] == [*["-"] * 9, "1"]
            continue
        known = due(result(), place, 0.9)
        assert row[3:] == [
            *(mean("regret"), mean("rounds_made")),
            *(write_short(known[f"links_{name}"]) for name in METERS),
            *(write_short(known["links_max"]), mean("cost")),
            *(
                f"{100 * known[name] / SEEDS[place]:.3g} "
                f"[{100 * known[f'{name}_lower']:.2g}, {100 * known[f'{name}_upper']:.2g}]"
                for name in EVENTS
            ),
            f"{SEEDS[place]}",
        ]
    text = str(shown)
    assert text.startswith(shown.attrs["title"]) and "the 90 % Clopper-Pearson interval" in text
    assert "max: the most of any run, on server and bound." in text
    assert "Cost: 25 per server link, 2 per peer link (bound)." in text
    assert "1 configuration not begun yet: run the sweep's command again." in text
    assert "Clopper-Pearson" in shown._repr_html_() and "<table" in shown._repr_html_()


@pytest.mark.parametrize("change", [lambda data: data, lambda data: summed_up(data)])
def test_a_frame_has_the_numbers_of_numpy(change):
    """Would catch a count for a share, swapped ends, a lost level, or a row that is left out."""
    frame = fmab.table(change(result()), level=0.9, **PRICES)
    assert frame.participation.tolist() == [0.5, 0.5, 1, 1]
    assert frame.epsilon.tolist() == [0.25, 2, 0.25, 2] and frame.seeds.tolist() == [5, 4, 1, 0]
    assert frame.epsilon_message.tolist() == [1, 8, 2, 16] and set(frame.agents) == {8}
    assert frame.leak_messages.tolist() == [1.5, 0.0, np.inf, 4.0]
    assert frame.open_actions.dtype == bool
    assert frame.leak_view[:2].tolist() == ["single messages", "nothing is told"]
    for index, place in enumerate([(0, 0), (0, 1)]):
        known, row = due(result(), place, 0.9), frame.loc[index]
        for name in (*EVENTS, "undecided"):
            known[name] /= known["seeds"]
        for name, value in known.items():
            assert row[name] == pytest.approx(value, rel=1e-9), name
        for name in frame.columns[frame.columns.str.endswith("_upper")].str.removesuffix("_upper"):
            assert row[f"{name}_lower"] <= row[name] <= row[f"{name}_upper"]
    computed = [*known.keys() - {"seeds"}]
    assert frame.loc[2:, computed].isna().all(axis=None)
    assert frame.attrs["dims"] == ["participation", "epsilon"] and frame.attrs["level"] == 0.9
    assert frame.attrs["title"] == "CDP-MAB, M = 8 agents, K = 3 arms, T = 1000 slots"
    assert frame.attrs["interval"].startswith("90 % confidence") and json.dumps(frame.attrs)


def test_none_among_numbers_is_infinite():
    """Would catch a column of texts and numbers, which pandas cannot compare."""
    frame = fmab.table(some_sweep())
    assert frame.epsilon.tolist() == [0.05, 0.2, 1.0, np.inf]
    assert frame.query("epsilon <= 0.2").epsilon.tolist() == [0.05, 0.2]
    assert fmab.table(some_sweep().isel(epsilon=[3])).epsilon.tolist() == [np.inf]
    single = fmab.table(some_sweep().sel(epsilon=0.2))
    assert len(single) == 1 and single.attrs["dims"] == []


def summed_up(data):
    """Returns what a sweep with keep="summary" keeps of such curves."""
    dims = ("participation", "epsilon")
    shape, slots = SEEDS.shape, data.sizes["time"]
    mean, covariance = np.zeros((*shape, slots)), np.zeros((*shape, slots, slots))
    rounds, variance = np.zeros(shape), np.zeros(shape)
    links = np.zeros((*shape, slots, len(METERS)))
    histogram = np.zeros((*shape, 5), int)
    numbers = np.full((3, *shape), np.nan)
    counts = {name: np.zeros(shape, int) for name in (*EVENTS, "undecided")}
    for place in np.argwhere(SEEDS > 1).tolist():
        at = tuple(place)
        cell = data.isel(participation=at[0], epsilon=at[1], seed=slice(SEEDS[at]))
        mean[at], covariance[at] = cell.regret.mean("seed"), np.cov(cell.regret.values.T)
        rounds[at], variance[at] = cell.rounds_made.mean(), cell.rounds_made.var(ddof=1)
        links[at] = cell.links.mean("seed")
        histogram[at] = np.bincount(cell.rounds_made, minlength=5)
        sent = cell.numbers_sent.values
        numbers[(slice(None), *at)] = (
            sent.mean(),
            np.quantile(sent, 0.95, method="higher"),
            max(sent),
        )
        for name in EVENTS:
            counts[name][at] = cell[name].sum()
        counts["undecided"][at] = (cell.chosen_arm < 0).sum()
    kept = [name for name in data if name.startswith("leak_")]
    made = {
        **{name: data[name] for name in kept},
        "regret_mean": ((*dims, "time"), mean),
        "regret_covariance": ((*dims, "time", "time_2"), covariance),
        "rounds_made_mean": (dims, rounds),
        "rounds_made_variance": (dims, variance),
        "links_mean": ((*dims, "time", "meter"), links),
        "rounds_histogram": ((*dims, "made"), histogram),
        **dict(zip(NUMBERS, ((dims, values) for values in numbers), strict=True)),
        "number_bits": data.number_bits,
        "seeds": (dims, SEEDS),
        **{name: (dims, values) for name, values in counts.items()},
    }
    kept = [name for name in data.coords if name not in (*EVENTS, "seed")]
    coords = {name: data.coords[name] for name in kept} | {"made": np.arange(5)}
    return xr.Dataset(made, coords, data.attrs)


def test_the_table_of_a_summary_is_that_of_its_curves():
    """Would catch a cost whose variance is scaled by what a round costs, not by its square."""
    found = fmab.final_table(summed_up(result()), level=0.9, **PRICES)
    for place in ((0, 0), (0, 1)):
        cell = found.isel(participation=place[0], epsilon=place[1])
        for name, value in due(result(), place, 0.9).items():
            if name == "links":
                continue
            kept = cell.links.sel(meter=name[6:]) if name[6:] in METERS else cell[name]
            assert float(kept) == pytest.approx(value, rel=1e-9), name
    assert np.isnan(found.cost.values[1]).all() and np.isnan(found.regret_upper.values[1]).all()


def test_each_look_has_its_share_of_the_level():
    """Would catch one look's level for all looks, and counts of seeds that are paid for twice."""
    looked = result().assign_attrs(looks=4, until_level=0.9)
    found = fmab.final_table(looked, **PRICES)
    for place in ((0, 0), (0, 1)):
        cell = found.isel(participation=place[0], epsilon=place[1])
        for name, value in due(result(), place, 1 - 0.1 / 4).items():
            if name.startswith(("regret", "cost", "rounds")):
                assert float(cell[name]) == pytest.approx(value, rel=1e-9), name
        for name, value in due(result(), place, 0.9).items():
            if name.startswith(("best", "worse", "undecided")):
                assert float(cell[name]) == pytest.approx(value, rel=1e-9), name
    told = "90 % simultaneous band at T (97.5 % a look, 4 possible looks)"
    assert (found.level, found.description) == (0.9, told)


@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_sorted_by_the_column_that_is_named(descending):
    """Would catch the order of another column, turned round, or with unknown ones first."""
    data = result(np.array([[5, 4], [1, 3]]))
    # No two alike in any column.
    events = np.zeros((2, 2, 5), bool)
    events[0, 0, :1] = events[0, 1, :3] = events[1, 1, :2] = True
    over = data.rounds_made.dims
    data = data.assign_coords(best_arm_lost=(over, events), worse_arm_played=(over, ~events))
    old = {"rounds": "rounds_made", "lost": "best_arm_lost", "worse": "worse_arm_played"}
    old |= {"leak": "leak_messages", "leak_epsilon": "leak_messages"}
    names = ["regret", "cost", "seeds", "links_bound", "epsilon", *old.values()]
    frame = fmab.table(data, **PRICES)
    for name in names:
        order = fmab.overview(data, sort=name, descending=descending, **PRICES).index
        values = frame.loc[order, name].dropna().tolist()
        assert values == sorted(values, reverse=descending) and len(set(values)) > 1
        if name in ("regret", "rounds_made", "cost"):
            assert len(values) == 3 and np.isnan(frame.loc[order[-1], name])
    # As version 0.3 called them.
    for name, new in old.items():
        with pytest.warns(FutureWarning, match=f"^sort: {name} is {new} now"):
            shown = fmab.overview(data, sort=name, descending=descending, **PRICES)
        assert shown.index.equals(
            fmab.overview(data, sort=new, descending=descending, **PRICES).index
        )


def decided(undecided, rounds):
    """Returns a result of 200 seeds, so many of which still explore."""
    data = result().isel(participation=0, epsilon=0, seed=np.zeros(200, int)).assign(seeds=200)
    data = data.assign_coords(seed=np.arange(200), best_arm_lost=("seed", np.zeros(200, bool)))
    chosen = np.where(np.arange(200) < undecided, -1, 0)
    return data.assign(chosen_arm=("seed", chosen), rounds_made=("seed", np.full(200, rounds)))


@pytest.mark.parametrize(
    "undecided, rounds, start",
    [
        (0, 2, None),
        (1, 2, None),
        (2, 2, "1 % of the seeds still explore at T"),
        (20, 2, "10 % of the seeds still explore at T"),
        (200, 2, "100 % of the seeds still explore at T"),
        (200, 0, "No round was completed by T: T is shorter than the first epoch"),
        # Algorithms without rounds complete none, and may have decided.
        (100, 0, "50 % of the seeds still explore at T"),
        (0, 0, None),
    ],
)
def test_what_is_remarked_of_seeds_that_explore(undecided, rounds, start):
    """Would catch one seed of 200 that is remarked, or many that are not."""
    said = fmab.table(decided(undecided, rounds)).attrs["remarks"]
    assert [line.startswith(start or "?") for line in said] == [True] * (start is not None)


SMALL = {"agents": 4, "arms": 3, "seeds": 20, "times": 5, "progress": False}


def remarks(*start, **given):
    """Returns the remarks of a sweep that begin so."""
    said = fmab.table(fmab.sweep("cdp", **given | SMALL)).attrs["remarks"]
    return [line for line in said if line.startswith(start)]


def test_a_budget_that_does_not_fit_is_remarked():
    """Would catch rounds that were never made told as a budget that was kept."""
    given = {"epsilon": [0.05], "rounds": [None, 2], "horizon": 2000}
    (said,) = remarks("A budget", **given)
    made = fmab.sweep("cdp", **given | SMALL).sel(epsilon=0.05, rounds=2)
    number, share = float(made.rounds_made.mean()), float((made.chosen_arm < 0).mean())
    assert 0 < number < 2 and 0 < share
    assert said == (
        f"A budget of 2 rounds does not fit T in 1 of 2 rows: {number:.3g} are made on average, "
        f"and {round(100 * share)} % of the seeds still explore.\n"
        "Take a longer horizon, or let more agents report."
    )
    assert remarks("A budget", epsilon=[1], rounds=[2], horizon=10**8) == []
    # One configuration is no row of several.
    single = fmab.simulate(fmab.cdp_mab(0.05, rounds=2), fmab.Problem.uniform(4, 3), 2000, seeds=20)
    assert any("fit T: " in line for line in fmab.table(single).attrs["remarks"])


def test_swept_values_that_no_theorem_covers_are_remarked():
    """Would catch a swept value that is read from the defaults, or counted where it is proven."""
    given = {"epsilon": [1.0], "scale": [0.3, 0.5, 1], "horizon": 500}
    (said,) = remarks("No theorem", **given)
    assert said.startswith("No theorem covers scale = 0.3 and scale = 0.5 in 2 of 3 rows: 1 is ")
    # Labels stand for values.
    (said,) = remarks("No theorem", **given | {"scale": {"small": 0.3, "paper": 1}})
    assert said.startswith("No theorem covers scale = 0.3 in 1 of 2 rows: ")
    algorithms = {"small": fmab.cdp_mab(1, scale=0.3), "paper": fmab.cdp_mab(1)}
    labelled = fmab.sweep(algorithms, horizon=500, **SMALL)
    lines = fmab.table(labelled).attrs["remarks"]
    assert any(line.startswith("No theorem covers scale = 0.3 in 1 of 2 rows") for line in lines)


def test_shares_are_shown_in_per_cent():
    """Would catch 1e+02 for 99.6 %, a share among percentages, and a legend of absent means."""
    data = decided(199, 2).assign_coords(best_arm_lost=("seed", np.ones(200, bool)))
    shown = fmab.overview(data, columns=["best_arm_lost", "undecided"])
    assert shown.columns.tolist() == ["best arm lost, % [95 %]", "undecided, %"]
    low = 100 * stats.binomtest(200, 200).proportion_ci(0.95, "exact").low
    assert shown.values.tolist() == [[f"100 [{low:.2g}, 100]", "99.5"]]
    assert not any(line.startswith("Means") for line in shown.attrs["legend"])


@pytest.mark.parametrize(
    ("graph", "private", "open_"),
    [("ring", False, True), ("ring", True, False), ("complete", False, False)],
)
def test_actions_without_a_bound_are_remarked(graph, private, open_):
    """Would catch a leak of 2 that reads as that of a run whose actions nothing covers."""
    algorithm = fmab.ddp_mab(0.5, graph=graph, private_waiting=private)
    data = fmab.simulate(algorithm, fmab.Problem.uniform(4, 3), 500, seeds=4)
    shown = fmab.overview(data)
    said = "Actions have no bound: the leaks are those of what is sent alone."
    assert (said in shown.attrs["remarks"]) == open_
    assert "not in actions" in str(shown) and "leak ε of single messages" in shown.columns


@pytest.mark.parametrize(
    "rows, settings, differ", [(0, {}, 0), (1, {}, 0), (2, {}, 1), (0, {"spread": "x"}, 1)]
)
def test_where_agents_differ(rows, settings, differ):
    """Would catch two agents with means of their own that are taken for alike."""
    data = decided(0, 2).assign_coords(best_arm_lost=("seed", np.arange(200) < 3))
    if rows:
        data = data.assign(means=(("row", "arm"), np.full((rows, 3), 0.5)))
    data.attrs["settings"] = json.dumps(settings)
    said = fmab.table(data).attrs["remarks"]
    assert ["where agents differ" in line for line in said] == [True] * differ


def rows_of(where):
    """Returns the values of epsilon of the rows that are shown, of four made-up ones."""
    return fmab.overview(some_sweep(), where=where, columns=["epsilon"]).epsilon.tolist()


@functools.cache
def some_sweep():
    return fmab.sweep("cdp", epsilon=[0.05, 0.2, 1, None], agents=3, arms=3, horizon=10**5, seeds=5)


def test_rows_are_those_of_which_the_conditions_hold():
    """Would catch < for <=, another column, the last condition alone, and lost brackets."""
    frame = fmab.table(some_sweep())
    every = np.array(["0.05", "0.2", "1", "none"])
    assert rows_of([]) == [*every]
    middle = float(np.sort(frame.regret)[2])
    for test in ("<=", "<", ">=", ">"):
        wanted = [*every[frame.eval(f"regret {test} {middle!r}")]]
        assert 0 < len(wanted) < 4 and rows_of([f"regret{test}{middle!r}"]) == wanted
    most = float(frame.links_server.max())
    assert rows_of(f" links_server < {most!r} ") == [*every[frame.links_server < most]]
    assert rows_of("leak_messages<=1") == ["0.05", "0.2"]
    assert rows_of(["leak_messages<=4", "epsilon>0.05"]) == ["0.2", "1"]
    assert rows_of("leak_messages <= 4 and not epsilon == 1") == ["0.05", "0.2"]
    assert rows_of("0.1 < epsilon < inf or seeds > 5") == ["0.2", "1"]
    assert rows_of("epsilon in [0.05, 1] and algorithm == 'cdp'") == ["0.05", "1"]
    # As in pandas, & is "and"; a text in quotes stays what it is.
    assert rows_of("not ((epsilon == 1) & (leak_messages <= 4))") == ["0.05", "0.2", "none"]
    assert rows_of("epsilon == 1 | not (epsilon > 0.1) & seeds == 5") == ["0.05", "1"]
    assert rows_of("trust != 'a & b' and epsilon == inf") == ["none"]


def test_a_column_of_numbers_and_texts_is_compared_with_either():
    """Would catch a number that is refused, or not found, since another column is a text."""
    data = fmab.sweep("cdp", epsilon_message=["1x2,9x1", 1], agents=3, arms=3, horizon=500, seeds=2)
    for where, labels in {
        "epsilon_message <= 1": ["1"],
        "epsilon_message <= 1 and algorithm == 'cdp'": ["1"],
        "epsilon_message == '1x2,9x1'": ["1x2,9x1"],
        "epsilon_message in ['1x2,9x1', 1] and seeds == 2": ["1x2,9x1", "1"],
    }.items():
        assert fmab.overview(data, where=where).epsilon_message.tolist() == labels, where


def test_old_conditions_are_translated_and_a_line_says_so():
    """Would catch commas that keep the last condition alone, and counts that read as shares."""
    with pytest.warns(FutureWarning) as caught:
        assert rows_of("leak<=4, epsilon!=1,rounds>=0") == ["0.05", "0.2"]
    lines = [str(warning.message) for warning in caught]
    assert "where: commas are and now: leak <= 4 and epsilon != 1 and (rounds >= 0)" in lines
    assert {"where: leak is leak_messages now", "where: rounds is rounds_made now"} <= {*lines}
    refuses("must be about best_arm_lost, a share of the seeds; ", rows_of, "lost<3")


def test_numbers_are_found_where_they_are_printed():
    """Would catch a row of 0.30000000000000004 that a bound of 0.3 drops, or a wide tolerance."""
    grid = {"epsilon": [0.1 + 0.2, 0.3001], "agents": 3, "arms": 3, "horizon": 500, "seeds": 2}
    data = fmab.sweep("cdp", **grid)
    for where in ("epsilon <= 0.3", "epsilon == 0.3", "epsilon >= 0.3 and not epsilon > 0.3"):
        assert fmab.overview(data, where=where).epsilon.tolist() == ["0.3"]
    assert fmab.overview(data, where="epsilon > 0.3").epsilon.tolist() == ["0.3001"]
    # Texts tell numbers apart that differ by less than what is printed.
    twins = fmab.sweep("cdp", **grid | {"epsilon": [0.3, 0.1 + 0.2]})
    assert fmab.overview(twins).epsilon.tolist() == ["0.3", "0.30000000000000004"]


STRANGE = (
    *(
        "",
        5,
        None,
        "regret=1",
        "regret<=1,000",
        "regret<2, 5",
        "()",
        "regret == None",
        "regret > 1j",
        "f'{regret}' == ''",
        "epsilon is 1",
        "epsilon is not 1",
    ),
    *("__import__('os').getcwd() == 1", "regret.sum() > 0", "@regret > 0", "(lambda: 1)() > 0"),
    *("[x for x in regret]", "regret[0] > 0", "regret > 1 if cost else 0", "(regret := 1) > 0"),
    *("regret ** 9 > 1", "'a' * 999999999 > 'b'", "(" * 500, "regret > 0 or " * 100 + "cost > 0"),
)


@pytest.mark.parametrize(
    ("where", "line"),
    [
        *((text, "must be a condition such as links_max <= 400 and ") for text in STRANGE),
        ("regrett < 1", "must be about columns of the table, not 'regrett'; did you mean 'regret'"),
        ("index < 1", "must be about columns of the table, not 'index'; "),
        ("epsilon == none", "about columns of the table, not 'none'; none among numbers is inf"),
        ("epsilon == 'none'", "must be a comparison of epsilon with numbers; none among them is "),
        ("cost < 9 or epsilon in [1, 'none']", "must be a comparison of epsilon with numbers; "),
        ("regret + 1", "must be true or false of a row; "),
        ("1 < 2", "must be true or false of a row; "),
        ("algorithm < 3", "must be a condition of its columns; compare numbers with numbers"),
        ("links < 9" + "9" * 400, "must be a condition of its columns; "),
    ],
)  # fmt: skip
def test_other_expressions_are_refused_in_a_line(where, line):
    """Would catch code that runs, a power or a text that fills the memory, and a traceback."""
    refuses(line, fmab.overview, some_sweep(), where=[where])


def test_rows_keep_budgets_of_the_largest_run():
    """Would catch a mean for a maximum, which lets runs through that exceed a budget."""
    frame = fmab.table(result())
    for name in budgets.BUDGETS:
        budget = float(frame[f"{name}_max"][0]) - 0.5
        assert frame[name][0] < budget
        shown = fmab.overview(result(), where=[f"{name}_max<={budget!r}", "seeds>1"])
        assert shown.epsilon.tolist() == ["2"] * int(frame[f"{name}_max"][1] <= budget)


def test_the_tail_is_that_of_the_runs():
    """Would catch an interpolated quantile, a rank off by one, and a value that no run has."""
    rng = np.random.default_rng(3)
    for size in (2, 20, 21, 22, 41, 100, 101):
        values = rng.integers(0, 30, size)
        known, counts = np.unique([*values, 40], return_counts=True)
        counts[-1] -= 1
        due = np.quantile(values, 0.95, method="higher"), values.max()
        assert budgets.find_tail(values) == due == budgets.find_tail(known, counts)


def test_what_old_results_do_not_say_is_absent():
    """Would catch zeros, or means, for maxima that a summary of an older version lacks."""
    curves, kept = result(), summed_up(result())
    old = kept.drop_vars(["number_bits", "rounds_histogram", *NUMBERS[1:]])
    frame, names = fmab.table(old), set(fmab.final_table(old).data_vars)
    assert {*frame} & {*budgets.COLUMNS} == {"links", "numbers"}
    assert names & {*budgets.COLUMNS} == {"links", "numbers"}
    assert frame.links[0] == due(curves, (0, 0), 0.9)["links"]
    assert "links max" not in fmab.overview(old).columns
    frame = fmab.table(curves.drop_vars("number_bits"))
    assert {*frame} & {*budgets.COLUMNS} == {*budgets.COLUMNS[:6]}
    # Joined runs of unlike numbers have no bits of one number.
    frame = fmab.table(curves.assign(number_bits=("seed", [1, 2, 2, 2, 2])))
    assert np.isnan(frame.bits_max[0]) and frame.numbers_max[0] > 0


def test_a_swept_parameter_keeps_its_name():
    """Would catch a column of bits in place of the parameter of that name."""
    data = result().rename(epsilon="bits")
    frame = fmab.table(data)
    assert frame.bits.tolist() == [0.25, 2.0] * 2 and "bits_max" in frame
    assert fmab.show(frame).bits.tolist() == ["0.25", "2", "0.25"]
    for name in ("cost", "best_arm_lost_upper", "links_max", "trust", "undecided", "open_actions"):
        frame = fmab.table(result().rename(epsilon=name))
        assert frame[name].tolist() == [0.25, 2.0] * 2 and frame.columns.is_unique
        fmab.show(frame)


def test_joined_runs_have_no_settings_of_the_first():
    """Would catch the first run's epsilon beside the second, and a raw error without labels."""
    problem = fmab.Problem(agents=3, arms=3)
    runs = [fmab.simulate(fmab.cdp_mab(x), problem, horizon=500, seeds=3) for x in (1.0, 0.1)]
    frame = fmab.table(xr.concat(runs, "run"))
    assert frame.run.tolist() == [0, 1] and not {"epsilon", "scale", "algorithm"} & {*frame}
    whole = pd.concat([fmab.table(run) for run in runs], ignore_index=True)
    for name in ("regret", "leak_messages", "links_max"):
        assert frame[name].tolist() == whole[name].tolist()
    assert frame.leak_messages.tolist() == pytest.approx([3.0, 0.3])


def test_a_table_counts_the_seeds_that_were_selected():
    """Would catch intervals of all seeds where some were selected, and a table of a single one."""
    data = some_sweep().sel(epsilon=0.2)
    regret = data.regret.values[1:4, -1]
    table = fmab.final_table(data.isel(seed=slice(1, 4)))
    half = stats.t.ppf(0.975, 2) * stats.sem(regret)
    assert int(table.seeds) == 3 and float(table.regret) == pytest.approx(regret.mean())
    assert float(table.regret_upper - table.regret) == pytest.approx(half, rel=1e-9)
    refuses("must be the Dataset of simulate or of a sweep", fmab.final_table, data.isel(seed=2))


def test_a_swept_leak_has_a_column():
    """Catches a table that cannot be written where --leak is swept, or that shows other leaks."""
    problem = fmab.Problem([0.9, 0.1], agents=3)
    data = fmab.sweep(fmab.kl_se, problem, leak=[0.5, 1], horizon=50, seeds=2, times=[50])
    assert fmab.table(data).leak.tolist() == [0.5, 1.0]
    assert fmab.overview(data, where="leak > 0.5").leak.tolist() == ["1"]


@pytest.mark.parametrize("frame", [None, 5, "x", [1], np.zeros(3), some_sweep])
def test_show_takes_frames_alone(frame):
    """Would catch a traceback, or a result that is shown as if it were its table."""
    refuses("must be what table returned; write show", fmab.show, frame)


def test_show_takes_parts_of_a_frame():
    """Would catch a frame without attributes, as concat leaves it, that cannot be shown."""
    frame = fmab.table(some_sweep())
    joined = pd.concat([frame.assign(x="a"), fmab.table(result()).assign(x="b")])
    joined.attrs = {}
    shown = fmab.show(joined[["x", "epsilon", "regret", "seeds"]])
    assert shown.x.tolist() == ["a"] * 4 + ["b"] * 3 and shown.columns[2] == "regret"
    part = fmab.show(frame.query("epsilon < 1")[["epsilon", "regret", "regret_lower"]])
    assert part.columns.tolist() == ["epsilon", "regret"]
    for columns in (["regrett"], "regret", [None], 5):
        refuses("columns=.*: must be ", fmab.show, frame, columns)
    refuses("words='yes': must be ", lambda value: fmab.show(frame, words=value), "yes")
