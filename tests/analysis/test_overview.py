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
from fmab_jax.analysis.conditions import find_places, select_rows, sort_rows
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


def test_each_look_has_its_share_of_the_level():
    """Would catch one look's level for all looks, and counts of seeds that are paid for twice."""
    frame = fmab.table(result().assign_attrs(looks=4, until_level=0.9), **PRICES)
    for index, place in enumerate([(0, 0), (0, 1)]):
        for names, level in ((("regret", "cost", "rounds"), 1 - 0.1 / 4), (EVENTS, 0.9)):
            for name, value in due(result(), place, level).items():
                if name.startswith(names):
                    unit = SEEDS[place] if name in EVENTS else 1
                    assert frame.loc[index, name] == pytest.approx(value / unit, rel=1e-9), name
    told = "90 % simultaneous band at T (97.5 % a look, 4 possible looks)"
    assert (frame.attrs["level"], frame.attrs["interval"]) == (0.9, told)


@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_sorted_by_the_column_that_is_named(descending):
    """Would catch the order of another column, turned round, or with unknown ones first."""
    frame = fmab.table(result(), **PRICES)
    for name in ("regret", "cost", "links_bound", "epsilon", "leak_messages"):
        values = sort_rows(frame, name, descending)[name]
        known = values.dropna().tolist()
        assert known == sorted(known, reverse=descending) and len({*known}) > 1
        assert not values[: len(known)].isna().any()
    refuses("^sort='regrett': must be a column .* 'regret'", sort_rows, frame, "regrett")


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


def test_swept_values_that_no_theorem_covers_are_remarked():
    """Would catch a swept value that is read from the defaults, or counted where it is proven."""
    given = {"epsilon": [1.0], "scale": [0.3, 0.5, 1], "horizon": 500}
    (said,) = remarks("No theorem", **given)
    assert said.startswith("No theorem covers scale = 0.3 (1 is ") and " and scale = 0.5 (" in said
    assert said.endswith(" in 2 of 3 rows.")
    # Labels stand for values.
    (said,) = remarks("No theorem", **given | {"scale": {"small": 0.3, "paper": 1}})
    assert said.startswith("No theorem covers scale = 0.3 (1 ") and "in 1 of 2 rows" in said
    algorithms = {"small": fmab.cdp_mab(1, scale=0.3), "paper": fmab.cdp_mab(1)}
    labelled = fmab.sweep(algorithms, horizon=500, **SMALL)
    lines = fmab.table(labelled).attrs["remarks"]
    assert said in lines


def test_shares_are_shown_in_per_cent():
    """Would catch 1e+02 for 99.6 %, a share among percentages, and a legend of absent means."""
    data = decided(199, 2).assign_coords(best_arm_lost=("seed", np.ones(200, bool)))
    shown = fmab.show(fmab.table(data), ["best_arm_lost", "undecided"])
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


@functools.cache
def some_sweep():
    return fmab.sweep("cdp", epsilon=[0.05, 0.2, 1, None], agents=3, arms=3, horizon=10**5, seeds=5)


@pytest.mark.parametrize(
    ("where", "labels"),
    {
        "leak_messages<=1": [0.05, 0.2],
        "leak_messages <= 4 and not epsilon == 1": [0.05, 0.2],
        "0.1 < epsilon < inf or seeds > 5": [0.2, 1],
        "epsilon in [0.05, 1] and algorithm == 'cdp'": [0.05, 1],
        "(epsilon == 1) | (leak_messages > 4)": [1, np.inf],
        "epsilon == none": [np.inf],
    }.items(),
)
def test_rows_are_those_of_which_the_conditions_hold(where, labels):
    """Would catch < for <=, another column, the last condition alone, and lost brackets."""
    frame = fmab.table(some_sweep())
    assert select_rows(frame, where).epsilon.tolist() == labels
    assert select_rows(frame, [where, "epsilon > 0.05"]).epsilon.tolist() == [
        x for x in labels if x > 0.05
    ]
    assert [frame.epsilon[i] for (i,) in find_places(some_sweep(), where)] == labels


def test_numbers_are_found_where_they_are_printed():
    """Would catch a row of 0.30000000000000004 that a bound of 0.3 drops, or a wide tolerance."""
    grid = {"epsilon": [0.1 + 0.2, 0.3001], "agents": 3, "arms": 3, "horizon": 500, "seeds": 2}
    frame = fmab.table(fmab.sweep("cdp", **grid))
    for where in ("epsilon <= 0.3", "epsilon == 0.3", "epsilon >= 0.3 and not epsilon > 0.3"):
        assert fmab.show(select_rows(frame, where)).epsilon.tolist() == ["0.3"]
    assert fmab.show(select_rows(frame, ["epsilon > 0.3"])).epsilon.tolist() == ["0.3001"]


@pytest.mark.parametrize(
    ("where", "line"),
    [
        *((x, "must be a condition such as links_max <= 400 and ") for x in ("", "(" * 99)),
        (5, "must be a condition, or a list of them; "),
        ("regrett < 1", "must be a condition such as .*name 'regrett' is not defined"),
        ("algorithm < 3", "must be a condition such as "),
        *((x, "must be true or false of a row; ") for x in ("regret=1", "regret + 1", "1 < 2")),
        ("epsilon <= 1,000", "must be true or false of a row; "),
    ],
)  # fmt: skip
def test_other_expressions_are_refused_in_a_line(where, line):
    """Would catch a traceback, an assignment, or a number that is taken for a truth."""
    refuses(line, select_rows, fmab.table(some_sweep()), [where])


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
    frame = fmab.table(old)
    assert {*frame} & {*budgets.COLUMNS} == {"links", "numbers"}
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
    (row,) = fmab.table(data.isel(seed=slice(1, 4))).to_dict("records")
    half = stats.t.ppf(0.975, 2) * stats.sem(regret)
    assert row["seeds"] == 3 and row["regret"] == pytest.approx(regret.mean())
    assert row["regret_upper"] - row["regret"] == pytest.approx(half, rel=1e-9)
    refuses("must be the Dataset of simulate or of a sweep", fmab.table, data.isel(seed=2))


def test_a_swept_leak_has_a_column():
    """Catches a table that cannot be written where --leak is swept, or that shows other leaks."""
    problem = fmab.Problem([0.9, 0.1], agents=3)
    data = fmab.sweep(fmab.kl_se, problem, leak=[0.5, 1], horizon=50, seeds=2, times=[50])
    assert fmab.table(data).leak.tolist() == [0.5, 1.0]
    assert fmab.overview(data).leak.tolist() == ["0.5", "1"]


@pytest.mark.parametrize("frame", [None, np.zeros(3), xr.Dataset()])
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
    for columns in (["regrett"], "regret", [None]):
        refuses("columns=.*: must be a ", fmab.show, frame, columns)
    refuses("words='yes': must be ", lambda value: fmab.show(frame, words=value), "yes")
