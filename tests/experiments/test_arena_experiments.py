"""The arena: who takes part, at which leak, and that its sentences say what the numbers do."""

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, published, readable
from pages import reader, writers

import fmab_jax as fmab
from experiments import arena, arena_figures, arena_report, arena_settings, common, pictures
from fmab_jax.algorithms.base import ALGORITHMS, Noise, Viewer
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.analysis.words import write_count
from fmab_jax.parts.mechanisms.bits import BITS
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE


def test_everybody_takes_part():
    """Would catch an algorithm that is left out, and two of one label."""
    assert {entry.algorithm.name for entry in arena.LINE_UP.values()} == {
        *ALGORITHMS.by_name(),
        "demab",
    }
    labels = [entry.label for entry in arena.LINE_UP.values()]
    assert len(set(labels)) == len(labels)


def test_contestants_are_what_their_labels_say():
    """Catches a graph, radius or epsilon unlike the label's, and one who pools unsaid."""
    for name, entry in arena.LINE_UP.items():
        words, algorithm = entry.label.split(", "), entry.algorithm
        assert ("ring" in words) == (getattr(algorithm, "graph", None) == "ring"), name
        assert ("scaled" in words) == (getattr(algorithm, "radius", None) == "scaled"), name
        assert ("pooled" in words) == bool(getattr(algorithm, "pooled", False)), name
        assert ("secure sum" in words) == bool(getattr(algorithm, "secure", False)), name
        assert getattr(algorithm, "epsilon", None) in (None, 1.0), name
    assert arena.stated(fmab.ucb1(pooled=True))["pooled"] is True


def test_the_published_page_says_what_the_code_reads_and_counts():
    """Catches a source, an epsilon or links of a protocol that the page has otherwise."""
    figures = Path(arena.__file__).parents[1] / "figures"
    page = (figures / "ARENA.md").read_text("utf-8")
    lines = page.splitlines()
    tables = common.table_lines(arena_report._ledger())
    for line in [*tables, *common.table_lines(arena_report._sources())]:
        assert line in lines
    for notes in (arena_report._LEDGER_NOTES, arena_report.READ, arena_settings.NOTES):
        assert notes in page


def leaked(view, name, algorithm):
    """Returns what an algorithm leaks to a view."""
    rows = fmab.privacy_ledger(algorithm, 50, delta=1e-6)
    if view == "messages":
        return max(row.epsilon for row in rows if row.observation != "actions")
    if view == "actions":
        # An agent of Dist-DP-SE knows its own share of the noise, and is no outsider.
        (row,) = (row for row in rows if row.observation == "actions" and row.viewer != "an agent")
        return row.epsilon_at_delta
    if name.endswith("_pooled"):  # In its ledger anybody sees what is released.
        # An outsider's actions follow from the same sums.
        return leaked("actions", name, algorithm)
    if name in ("cdp", "cdp_scaled"):
        # In its ledger the server sees messages: here it sees their sum alone.
        return laplace_sum_epsilon(50, 1 / algorithm.epsilon_message, 1e-6)
    (row,) = (row for row in rows if row.viewer == "the server")
    assert row.observation.startswith("sums over ")
    return row.epsilon_at_delta


@pytest.mark.parametrize("view", list(arena.VIEWS))
def test_all_that_take_part_leak_what_is_asked_for(view):
    """Catches a parameter for what is seen, noise of 50 for five, pure for up to δ, another δ."""
    what = arena.VIEWS[view]
    for name, maker in what.makers.items():
        for leak in (0.1, 3.0, 50.0):
            found = leaked(view, name, maker(leak))
            assert found == pytest.approx(leak, rel=1e-4), (name, leak)
            entry = arena.LINE_UP[name]
            assert maker(leak).name == entry.algorithm.name
            own = {key for key in arena.stated(entry.algorithm) if not key.startswith("epsilon")}
            for key in own:
                assert getattr(maker(leak), key) == getattr(entry.algorithm, key), (name, key)
    assert what.leak == {"messages": "pure ε"}.get(view, "ε up to δ = 10⁻⁶")
    assert arena.DELTA == 1e-6


def test_what_a_released_reward_may_leak_in_a_sum_of_fifty():
    """Catches the ε of one release for one in a sum of 50, and bits taken for Laplace variables."""
    for law, wanted in (
        (BITS, {0.1: 0.1918, 0.3: 0.5002, 1.0: 1.2052}),
        (LAPLACE, {0.1: 0.2985, 0.3: 0.8438, 1.0: 2.6338}),
    ):
        for leak, each in wanted.items():
            assert arena.message_leak(leak, 50, law) == pytest.approx(each, abs=5e-5)
    for view in ("sums", "actions"):
        makers = arena.VIEWS[view].makers
        assert makers["ldp_ucb_pooled"](1.0).epsilon == pytest.approx(2.6338, abs=5e-5)
        assert makers["ldp_bits_pooled"](1.0).epsilon == pytest.approx(1.2052, abs=5e-5)
    messages = arena.VIEWS["messages"].makers
    assert messages["ldp_ucb_pooled"](1.0).epsilon == messages["ldp_bits_pooled"](1.0).epsilon == 1
    absent = arena.VIEWS["sums"].absent
    bare = {"ddp", "fed_ucb", "kl_se", "kl_se_split", "kl_se_graph", "kl_se_components"}
    alone = {name for name in absent if arena.LINE_UP[name].alone}
    assert set(absent) - alone == bare | {"demab_private"}
    for row in fmab.privacy_ledger(messages["ldp_bits_pooled"](1.0), 50)[1:]:
        assert (row.viewer, row.noises) == (Viewer.OUTSIDER, (Noise(BITS, 1.0, 50),))
    note = arena_report.write_note(arena.VIEWS["sums"])
    assert "for 2.63" in note and "for 1.28" in note and "for 1.21, whatever" in note


def test_every_private_contestant_takes_part_or_is_absent_with_a_reason():
    """Catches one left out silently, or on both lists, and a reason that is not its own."""
    rows_of = {n: fmab.privacy_ledger(e.algorithm, 50) for n, e in arena.LINE_UP.items()}
    private = {n for n, rows in rows_of.items() if any(0 < r.epsilon < math.inf for r in rows)}
    for view, what in arena.VIEWS.items():
        assert set(what.makers) | set(what.absent) == private, view
        assert not set(what.makers) & set(what.absent), view
        silent = {name for name, why in what.absent.items() if "tell nobody anything" in why}
        assert silent == {n for n in what.absent if arena.LINE_UP[n].alone}
    alone = {name for name in private if arena.LINE_UP[name].alone}
    assert alone <= set(arena.VIEWS["actions"].makers)


def test_who_is_alone_and_alike_has_stand_ins():
    """Would catch five agents for fifty where they talk, share one policy, or play in rounds."""
    few = {name for name, entry in arena.LINE_UP.items() if entry.agents < arena.AGENTS}
    wanted = "ldp_ucb ldp_bits tree_ucb lazy_dp_ts adap_ucb adap_klucb dp_imed dp_klucb ucb1"
    assert few == {*wanted.split(), "thompson", "kl_ucb", "uniform_play"}


def recorded(monkeypatch):
    """Has sweeps record what they are asked for, and return results of two seeds."""
    asked = []

    def sweep(algorithm, problem, **settings):
        asked.append((algorithm.name, problem, settings))
        data = {
            "regret": (("seed", "time"), np.array([[3.0], [5.0]]), {"units": "regret"}),
            "agents_worse": ("seed", np.array([1.0, 4.0])),
        }
        return xr.Dataset(data, {"time": [settings["horizon"]]})

    monkeypatch.setattr(fmab, "sweep", sweep, raising=False)
    return asked


def test_stand_ins_count_for_all_in_regret_and_in_agents(monkeypatch, tmp_path):
    """Catches five agents told as fifty, some that differ multiplied, and another problem."""
    asked = recorded(monkeypatch)
    each_run = ("ucb1", 0.0, 10, 5), ("ucb1", 1.0, 1, 50), ("cdp", 0.0, 1, 50)
    for name, spread, times, agents in (*each_run, ("ucb1_pooled", 0.0, 1, 50)):
        entry = arena.LINE_UP[name]
        found = arena.run(entry, entry.algorithm, spread, 10**4, 7, tmp_path, "a")
        assert found.regret.values.tolist() == [[3 * times], [5 * times]]
        assert found.agents_worse.values.tolist() == [times, 4 * times]
        assert found.regret.attrs == {"units": "regret"}
        asked_for, problem, settings = asked[-1]
        assert asked_for == entry.algorithm.name
        assert (problem.agents, problem.arms, problem.spread) == (agents, 100, spread)
        assert (settings["horizon"], settings["seeds"]) == (10**4, 7)
        assert settings["times"].tolist() == common.slots(10**4).tolist()
        assert settings["store"] == tmp_path / f"a-{name}"
    assert asked[2][2]["epsilon"] == 1 and asked[3][2]["pooled"] is True


def run_of(values):
    """Returns a result that has regret at the horizon alone."""
    return xr.Dataset({"regret": (("seed", "time"), np.asarray(values, float)[:, None])})


def test_only_those_of_one_trust_and_leak_are_ranked():
    """Catches a leak of 50 ranked beside 1, no bound beside private, uniform play beside others."""
    groups = arena_report._groups(arena.LINE_UP)
    assert sorted(sum(groups.values(), [])) == sorted(arena.LINE_UP)
    words = arena.TRUST
    assert groups[words["message"], "50"] == ["cdp", "cdp_scaled", "hdp"]
    # Waits without noise: no epsilon of messages covers who sees actions.
    assert groups[f"{words['message']}, and whoever sees actions", "50"] == ["ddp"]
    shared = "fed_ucb kl_se kl_se_split kl_se_graph kl_se_components demab_private"
    assert groups[words["message"], "1"] == shared.split()
    assert groups[words["sum"], "1"] == ["dist_dp_se", "kl_se_sum", "dp_imed_sum", "dp_klucb_sum"]
    # Whoever is alone tells nobody anything, though every reward be noisy: its actions leak.
    noisy = ["ldp_ucb", "ldp_bits"]
    quiet = "single dp_se adap_ucb adap_klucb lazy_dp_ts dp_imed dp_klucb tree_ucb"
    assert groups[words["alone"], "1"] == [*noisy, *quiet.split()]
    assert groups[words["reward"], "1"] == [f"{name}_pooled" for name in noisy]
    for name, entry in arena.LINE_UP.items():
        silent = arena.leaks(entry.algorithm)["messages"] == arena.costs.NO_MESSAGES
        assert silent == (entry.trust == "alone") == entry.alone, name
    assert groups[words["alone"], "no bound"] == ["ucb1", "thompson", "kl_ucb"]
    assert groups[words["alone"], "0"] == ["uniform_play"]
    assert list(groups)[0] == (words["open"], "no bound") and len(groups) == 10


def test_places_are_those_that_common_seeds_leave_open():
    """Catches ranks by means of unlike seeds, one place for a tie of two, rows out of order."""
    rng = np.random.default_rng(5)
    # The first ten instances are hard.
    instance = np.concatenate([np.full(10, 9000.0), np.full(90, 1000.0)])
    few = instance[:10] + rng.normal(0, 1, 10)
    drawn_ = lambda: rng.normal(0, 1, 100)  # noqa: E731
    finals = {"cdp": instance + 50 + drawn_(), "ddp": few, "hdp": instance + 50 + drawn_()}
    finals["fed_ucb"] = instance - 500
    assert few.mean() > 4 * finals["cdp"].mean()  # over the seeds of each
    found = {}
    for name, values in finals.items():
        made = made_up(1000, 10, seeds=len(values))
        found[name] = made.assign(regret=made.regret.copy(data=values[:, None] + 0 * made.regret))
    # Three that are trusted alike, and one that is not.
    open_ = {"cdp": "ucb1_pooled", "ddp": "fed1_ucb", "hdp": "kl_ucb_pooled", "fed_ucb": "cdp"}
    rows = arena_report._rows({open_[name]: each for name, each in found.items()})
    ties = sorted(("cdp", "hdp"), key=lambda name: finals[name][:10].mean())
    assert [(row["algorithm"], row["place"], row["seeds"]) for row in rows] == [
        ("Fed1-UCB, f = 5", "1 of 3", 10),
        *((arena.LINE_UP[open_[name]].label, "2–3 of 3", 100) for name in ties),
        ("CDP-MAB", "1 of 1", 100),
    ]
    # At matched trust alike.
    places = {"cdp": "2–3 of 3", "ddp": "1 of 3", "hdp": "2–3 of 3"}
    at_leak = {("messages", n, leak): found[n] for n in places for leak in arena.LEAKS}
    for row in arena_figures.matched_table("messages", at_leak):
        name = next(n for n in places if arena.LINE_UP[n].label == row["algorithm"])
        cell = common.cell(common.interval(finals[name]))
        assert row["seeds"] == len(finals[name])
        assert [row[f"ε = {leak:g}"] for leak in arena.LEAKS] == [f"{cell}; {places[name]}"] * 6


def test_meters_of_counts_are_left_out_where_that_is_asked_for():
    """Would catch links of counts that are always in, or never, and meters without a price."""
    counted = {"edges": (5.0, True), "counts": (70.0, False), "bound": (900.0, False)}
    values, priced = zip(*counted.values(), strict=True)
    last = xr.Dataset(
        {"links": (("seed", "meter"), np.array([values, values]) * [[1], [2]])},
        {"meter": list(counted), "priced": ("meter", list(priced))},
    )
    assert arena.links(last).tolist() == [75, 150]
    assert arena.links(last, counts=False).tolist() == [5, 10]
    assert arena.links(xr.Dataset({"regret": ("seed", [1.0, 2.0, 3.0])})).tolist() == [0, 0, 0]


def test_rows_of_the_table_have_their_own_numbers():
    """Catches swapped columns, counted links, a difference of wrong sign or seeds, other bits."""
    cdp, mine = made_up(1000, 10, seeds=6), made_up(3000, 20, seeds=4)
    extra = {"meter": ["used", "counts"], "priced": ("meter", [True, False])}
    links = np.concatenate([mine.links.values, 3 * mine.links.values], axis=2)
    mine = mine.drop_vars(["links", "meter", "priced"]).assign_coords(extra)
    mine["links"] = (("seed", "time", "meter"), links)
    row = arena.final_row("fed_ucb", mine, cdp)
    ends = [each.regret.isel(time=-1).values for each in (mine, cdp)]
    assert row == {
        "algorithm": "Fed_UCB, ring, scaled",
        "who is trusted": "nobody: a message leaks at most its ε",
        "seeds": 4,
        "regret at T": common.interval(ends[0]),
        "largest": f"{ends[0].max():,.0f}",
        "seeds above 3 × the median": "0 %",
        "minus CDP-MAB, same seeds": common.interval(ends[0] - ends[1][:4]),
        "links at T": (80, 80, 80),
        "links without those of counts": (20, 20, 20),
        "numbers sent": (2000, 2000, 2000),
        "bits sent": (128_000, 128_000, 128_000),
        "agents that play a worse arm at T": common.interval([0, 1, 2, 3]),
        "epsilon of messages": "1",
        "epsilon of actions": "1",
    }
    assert list(row)[2:4] == ["epsilon of messages", "epsilon of actions"]
    # A bit is a bit; one of 100 names has 7; whatever else is sent is a real.
    sent = {name: arena.final_row(name, mine, cdp)["bits sent"] for name in arena.LINE_UP}
    assert sent.pop("ldp_bits_pooled") == sent.pop("ldp_bits") == (2000, 2000, 2000)
    for name in ("gosine", "lcc_ucb", "lcc_ucb_graph"):
        assert sent.pop(name) == (14_000, 14_000, 14_000)
    assert set(sent.values()) == {(128_000, 128_000, 128_000)}
    assert arena.leaks(fmab.cdp_mab(1)) == {"messages": "50", "actions": "50"}
    assert arena.leaks(fmab.ddp_mab(1, "ring")) == {"messages": "50", "actions": "no bound"}
    assert arena.leaks(fmab.dp_se(0.5)) == {"messages": "nothing is told", "actions": "0.5"}
    told = arena.seeds_in_words({"a": cdp, "b": mine, "c": made_up(5, 1, seeds=2)})
    assert told == "6 seeds, 4 or 2 of those that take long"
    assert arena.seeds_in_words({"a": cdp}) == "6 seeds"


def test_clients_of_fed1_ucb_like_other_arms_than_the_mean_of_all():
    """Would catch weights that do not average to one."""
    for agents in arena_settings.FED1_WEIGHTS:
        means = arena_settings.fed1_means(agents)
        np.testing.assert_allclose(means.mean(axis=0), arena_settings.FED1_MEANS)
    assert len({int(row.argmax()) for row in arena_settings.fed1_means(10)}) == 10


SLOTS = common.slots(10**4)


def made_up(regret, sent, seeds=4):
    """Returns results of a contestant with about this regret at T, and so many links."""
    rng = np.random.default_rng(round(regret))
    curves = regret * SLOTS / SLOTS[-1] * rng.uniform(0.9, 1.1, (seeds, 1))
    links = np.broadcast_to(sent * SLOTS[:, None] / SLOTS[-1], (seeds, SLOTS.size, 1))
    data = {
        "regret": (("seed", "time"), curves),
        "links": (("seed", "time", "meter"), links),
        "numbers_sent": ("seed", np.full(seeds, 100.0 * sent)),
        "agents_worse": ("seed", np.arange(seeds)),
        "best_arm_lost": ("seed", np.zeros(seeds, bool)),
    }
    coords = {"time": SLOTS, "meter": ["used"], "priced": ("meter", [True])}
    return xr.Dataset(data, coords)


# Setting: (its regret, links, and the regret of others): what is said of it. Known are 25,100 with
# 13,000 links; that LCC-UCB is between the two others and below the end of the axis, 3,500 or
# 7,000; about a tenth, read off a picture; 1,151; and 124 ± 9, where 18 more or less agree.
BELOW = "yes: below the end of the axis"
ABOVE = "no: above the axis, which ends at 3,500; why is not known"
PAIR = {"lcc-10-100-UCB1-pooled": 500, "lcc-10-100-UCB1-alone": 3000}
SAID = (
    ("fed1-M5-f10", 25_100, 13_600, {}, "yes: regret +0.0 %, links +4.6 %"),
    ("fed1-M5-f10", 26_400, 13_000, {}, "no: regret +5.2 %, links +0.0 %"),
    ("fed1-M5-f10", 25_100, 12_300, {}, "no: regret +0.0 %, links -5.4 %"),
    ("lcc-10-100-LCC-UCB", 1000, 0, PAIR, f"{BELOW}, between the other two"),
    ("lcc-10-100-LCC-UCB", 400, 0, PAIR, "no: not between the other two"),
    ("lcc-10-100-LCC-UCB", 3600, 0, PAIR, ABOVE),
    ("lcc-10-100-LCC-UCB", 1000, 0, {}, "cannot be said: one of the three was not run"),
    ("adap-DP-SE", 1000, 0, {"adap-AdaP-UCB": 140}, "yes: AdaP-UCB has 0.14 of it"),
    ("adap-tree", 1000, 0, {"adap-AdaP-UCB": 160},
     "no: AdaP-UCB has 0.16 of it; what is known was read off a picture"),
    ("check-AdaP-KLUCB", 1_190, 0, {}, "yes: regret +3.4 %"),
    ("check-DP-KLUCB", 105, 0, {}, "no: regret -15.3 %"),
    ("check-DP-IMED", 124, 0, {}, "cannot be said: what is known is too rough"),
)  # fmt: skip


def test_settings_say_whether_they_agree_with_what_is_known():
    """Catches a yes where links are off, a wrong side, another known number, no look at order."""

    def row(name, regret, links=0.0, T=None):
        setting = arena_settings.settings()[name]
        ends = {"regret at T": (regret, regret - 1, regret + 1), "links at T": (links,) * 3}
        return {"algorithm": setting.who, "T": T or write_count(setting.horizon), **ends}

    for name, regret, links, others, told in SAID:
        rows = {each: row(each, value) for each, value in others.items()}
        assert arena_settings.agrees(name, {**rows, name: row(name, regret, links)}) == told, name
    cut_ = {"fed1-M5-f10": row("fed1-M5-f10", 25_100, 13_000, "10⁴")}
    told = "cannot be said: the horizon is not theirs"
    assert arena_settings.agrees("fed1-M5-f10", cut_) == told


@pytest.mark.slow
@pytest.mark.as_users_see_it
def test_the_arenas_figures_are_legible(monkeypatch, tmp_path):
    """Catches names that cover each other or leave the page, narrow panels, a replaced table."""
    kept = drawn(monkeypatch)
    written = arena_figures.draw({10**4: writers.parts(10**4)}, tmp_path)
    names = [f"arena_{part}_T1e4" for part in ("regret", "leak", "differ")]
    assert list(kept) == names
    assert len(set(written)) == len(written) == 3 * 3
    for name in names:
        assert "T = 10⁴ slots, " in readable(kept, name, tmp_path)[1]
        assert "| DP-SE |" in (tmp_path / f"{name}.md").read_text("utf-8")


def test_curves_that_coincide_are_one_line_with_all_names():
    """Catches a curve that hides another, and one that is merged though it is elsewhere."""
    curve = np.array([1.0, 2.0, 4.0])
    means = {"cdp": curve, "hdp": curve * [1, 1, 1.02], "ddp": curve * 1.009}
    assert arena_figures._lines(list(means), means) == [["cdp", "ddp"], ["hdp"]]


def test_parts_have_the_seeds_that_their_contestants_can_run(monkeypatch):
    """Catches seeds of others, one run for two, two for one, a lost leak, a wrong problem."""
    ran = []

    def run(entry, algorithm, spread, T, seeds, store, kept):
        name = next(name for name, each in arena.LINE_UP.items() if each is entry)
        ran.append(((kept, name), seeds, spread, T))
        return kept, name, algorithm

    monkeypatch.setattr(arena, "run", run)
    parts = arena.sweep(10**5, 1000)
    assert len({where for where, *_ in ran}) == len(ran) and {T for *_, T in ran} == {10**5}
    for (part, name), seeds, spread, _ in ran:
        assert seeds == arena.LINE_UP[name].seeds(part[0], 10**5, 1000) > 1
        assert spread == (part == "c")
    for (view, name, leak), (_, label, algorithm) in parts["b"].items():
        assert label == name and algorithm == arena.VIEWS[view].makers[name](leak)
    for name, words in parts["c"]:
        assert (parts["c"][name, words] is parts["a"][name]) == (words == "agents alike")
    # By hand: of 1000 seeds at T = 10^5, of parts (a), (b) and (c).
    for name, wanted in {
        "cdp": (1000, 1000, 1000), "ucb1_pooled": (100, 40, 40), "ucb1": (100, 20, 4),
        "dp_imed": (1000, 200, 10), "kl_ucb": (40, 20, 0), "gosine": (40, 4, 4),
        "lazy_dp_ts": (10, 0, 0), "dp_imed_sum": (1000, 1000, 1000),
        "ces": (40, 4, 4),
    }.items():  # fmt: skip
        assert tuple(arena.LINE_UP[name].seeds(p, 10**5, 1000) for p in "abc") == wanted, name
    assert {n: "slot by slot" in arena.LINE_UP[n].reason for n in ("gosine", "ces")} == {
        "gosine": True, "ces": False,
    }  # fmt: skip


def test_the_arenas_tables_and_panels_show_the_data(monkeypatch, tmp_path):
    """Catches one who is dropped, another view's numbers, another order, one look for two."""
    kept, found = published(monkeypatch), writers.parts(10**4)
    # No two curves of a panel are alike.
    for key, data in found["b"].items():
        place = list(arena.LINE_UP).index(key[1])
        found["b"][key] = data.assign(regret=data.regret * 1.07**place)
    arena_figures.draw({10**4: found}, tmp_path)
    assert list(kept) == [f"arena_{part}_T1e4" for part in ("regret", "leak", "differ")]
    regret, leak, differ = kept.values()
    rows = {(r["quantity"], r["curve"], r["slot"]): r for r in regret.rows}
    for name, data in found["a"].items():
        row = rows["regret", arena.LINE_UP[name].label, 10**4]
        assert row["mean"] == pytest.approx(float(data.regret[:, -1].mean()))
    rows = iter(row for row in leak.rows if not row["why not run"])
    for view, what in arena.VIEWS.items():
        for each in arena.LEAKS:
            for name, row in zip(what.makers, rows, strict=False):
                values = found["b"][view, name, each].regret.isel(time=-1)
                at = (row["view"], row["accountant"], row["ε"], row["algorithm"], row["seeds"])
                label = arena.LINE_UP[name].label
                assert at == (what.who, what.leak, each, label, values.size)
                assert row["regret at T"] == pytest.approx(common.interval(values))
                assert row["of"] == len(what.makers)
    ends = {key: data.regret.isel(time=-1).values for key, data in found["c"].items()}
    order = sorted({n for n, _ in ends}, key=lambda name: ends[name, "agents differ"].mean())
    for name, row in zip(order, differ.rows, strict=True):
        assert row["algorithm"] == arena.LINE_UP[name].label
        for words in arena.SPREADS:
            assert row[words] == pytest.approx(common.interval(ends[name, words]))
    page = pictures.Page()
    leak.draw(page)
    looks = {}
    for panel, (view, what) in zip(page.figure.axes, arena.VIEWS.items(), strict=True):
        lines = {line.get_label(): line for line in panel.lines}
        assert (lines.pop("KL-UCB alone: nothing told", None) is None) == (view == "actions")
        lines.pop("lower bound in the end")
        for name, (told, line) in zip(what.makers, lines.items(), strict=True):
            runs = [found["b"][view, name, each].regret.isel(time=-1) for each in arena.LEAKS]
            np.testing.assert_allclose(line.get_ydata(), [float(run.mean()) for run in runs])
            look = (line.get_color(), line.get_linestyle(), line.get_marker())
            looks.setdefault(name, set()).add(look)
            assert told == arena.LINE_UP[name].label
    # Everybody looks the same in all panels, and nobody like another.
    assert len(set.union(*looks.values())) == sum(map(len, looks.values())) == len(looks)


def test_pages_of_made_up_results_have_no_fault(monkeypatch, tmp_path):
    """Would catch words, ranks or counts unlike their numbers, and who is not named."""
    writers.write(tmp_path, monkeypatch.setattr)
    found = {name: reader.fault_of(name, tmp_path) for name in reader.pages(tmp_path)}
    assert {name: told for name, told in found.items() if told} == {}
    # Three pictures of each horizon; three fronts and the radius.
    assert {"ARENA.md", "arena_leak_T1e5.md", "arena_radius.md"} <= set(found)
    assert len(found) == 1 + 3 * 2 + 4
