"""The arena: who takes part, at which leak, and that its sentences say what the numbers do."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, published, readable, rows_of, three
from pages import writers

import fmab_jax as fmab
from experiments import (
    arena,
    arena_figures,
    arena_protocols,
    arena_report,
    arena_settings,
    common,
    pictures,
)
from fmab_jax.algorithms.base import collect_algorithms
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.analysis.words import write_count
from fmab_jax.core import ledgers


def test_everybody_takes_part():
    """Would catch an algorithm that is left out, and two of one label."""
    assert {entry.algorithm.name for entry in arena.LINE_UP.values()} == set(collect_algorithms())
    labels = [entry.label for entry in arena.LINE_UP.values()]
    assert len(set(labels)) == len(labels)


# Who is trusted, and the parameters that are not the default; epsilon is 1 where there is one.
OWN = {
    "cdp": ("message", {"scale": 1.0}),
    "cdp_scaled": ("message", {"scale": 0.3}),
    "ddp": ("message", {"graph": "ring"}),
    "hdp": ("message", {"components": "5x10:star"}),
    "fed_ucb": ("message", {"graph": "ring", "radius": "scaled"}),
    "kl_se": ("message", {"split": False, "secure": False}),
    "kl_se_split": ("message", {"split": True, "secure": False}),
    "kl_se_graph": ("message", {"graph": "ring"}),
    "kl_se_components": ("message", {"components": "5x10:star"}),
    "demab_private": ("message", {"epsilon": 1.0}),
    "dist_dp_se": ("sum", {}),
    "kl_se_sum": ("sum", {"secure": True, "split": False}),
    "dp_imed_sum": ("sum", {"secure": True}),
    "dp_klucb_sum": ("sum", {"secure": True}),
    "ldp_ucb_pooled": ("reward", {"pooled": True, "bits": False}),
    "ldp_bits_pooled": ("reward", {"pooled": True, "bits": True}),
    "ldp_ucb": ("alone", {"pooled": False, "bits": False}),
    "ldp_bits": ("alone", {"pooled": False, "bits": True}),
    "ucb1_pooled": ("open", {"pooled": True}),
    "thompson_pooled": ("open", {"pooled": True}),
    "kl_ucb_pooled": ("open", {"pooled": True}),
    "fed1_ucb": ("open", {"pulls": 5}),
    "fed1_ucb_own": ("open", {"pulls": None}),
    "demab": ("open", {"epsilon": None}),
    "dducb": ("open", {"graph": "ring"}),
    "gossip_ucb": ("open", {"graph": "ring", "radius": "scaled"}),
    "dec_ucb": ("open", {"graph": "ring"}),
    "gosine": ("names", {}),
    "lcc_ucb": ("names", {}),
    "lcc_ucb_graph": ("names", {"graph": "ring"}),
    "single": ("alone", {}),
    "dp_se": ("alone", {}),
    "adap_ucb": ("alone", {"kl": False}),
    "adap_klucb": ("alone", {"kl": True}),
    "lazy_dp_ts": ("alone", {}),
    "dp_imed": ("alone", {"secure": False}),
    "dp_klucb": ("alone", {"secure": False}),
    "tree_ucb": ("alone", {}),
    "ucb1": ("alone", {"pooled": False}),
    "thompson": ("alone", {"pooled": False}),
    "kl_ucb": ("alone", {"pooled": False}),
    "uniform_play": ("alone", {}),
}


def test_contestants_are_what_their_labels_say():
    """Catches a graph, radius, epsilon or group of trust unlike the label's, and one who pools."""
    private = set()
    for name, (trust, own) in OWN.items():
        entry = arena.LINE_UP[name]
        assert entry.trust == trust, name
        assert {key: getattr(entry.algorithm, key) for key in own} == own, name
        words = entry.label.split(", ")
        assert ("ring" in words) == (own.get("graph") == "ring"), name
        assert ("scaled" in words) == (own.get("radius") == "scaled"), name
        assert ("pooled" in words) == bool(own.get("pooled")), name
        if getattr(entry.algorithm, "epsilon", None) is not None:
            private.add(name)
    assert list(OWN) == list(arena.LINE_UP)
    assert {arena.LINE_UP[name].algorithm.epsilon for name in private} == {1.0}
    assert arena.stated(fmab.ucb1(pooled=True))["pooled"] is True


def test_the_published_page_says_what_the_code_reads_and_counts():
    """Catches a source, an epsilon or links of a protocol that the page has otherwise."""
    figures = Path(arena.__file__).parents[1] / "figures"
    page = (figures / "ARENA.md").read_text("utf-8")
    lines = page.splitlines()
    tables = [*common.table_lines(arena_report._ledger()), *arena_report._protocols()]
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


def test_a_message_may_leak_more_where_noise_adds_up():
    """Would catch the noise of one for that of many, and agents that are mixed up."""
    one, five, fifty = (arena.message_leak(1.0, hidden) for hidden in (1, 5, 50))
    # One alone leaks 2 log(1 / (1 - delta)) more up to delta than without.
    assert one == pytest.approx(1.0 + 2e-6, abs=1e-9)
    assert 1.1 < five < 2.0 < fifty < 4.0


def test_what_a_released_reward_may_leak_in_a_sum_of_fifty():
    """Catches the ε of one release for one in a sum of 50, and bits taken for Laplace variables."""
    for law, wanted in (
        (ledgers.BITS, {0.1: 0.1918, 0.3: 0.5002, 1.0: 1.2052}),
        (ledgers.LAPLACE, {0.1: 0.2985, 0.3: 0.8438, 1.0: 2.6338}),
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
        assert (row.viewer, row.over, row.law) == (ledgers.OUTSIDE, 50, ledgers.BITS)
    note = arena_report.noted(arena.VIEWS["sums"], Path("nowhere"))
    assert "for 2.63" in note and "for 1.28" in note and "for 1.21, whatever" in note


def test_a_secure_sum_that_papers_do_not_have_is_said_to_be_given():
    """Catches secure sums said to be CDP-MAB's and HDP-MAB's own, and leaks unlike the ledger's."""
    what = arena.VIEWS["sums"]
    note = arena_report.noted(what, Path("nowhere"))
    assert "CDP-MAB and HDP-MAB are given a secure sum that their papers do not have" in note
    cdp, hdp = (
        next(row for row in fmab.privacy_ledger(what.makers[name](1.0), 50) if row.viewer == who)
        for name, who in (("cdp", "the server"), ("hdp", "sinks, and agents that pass on"))
    )
    assert cdp.observation == hdp.observation == "single messages"
    learns = f"the server of CDP-MAB learns {cdp.epsilon:.2f} and the sinks of HDP-MAB"
    assert f"{learns} {hdp.epsilon:.2f}, where the sum leaks 1." in note
    assert (round(cdp.epsilon, 2), round(hdp.epsilon, 2)) == (2.63, 1.28)
    assert note.endswith("What the sum costs is not counted.")


def test_delta_is_said_to_be_large_and_what_hangs_on_it():
    """Catches 10⁻⁶ called small for 5 x 10⁷ rewards, and numbers unlike the accountant's."""
    told = arena_report.small(10**6)
    assert "is not small for this unit, which is one reward among M T = 50,000,000." in told
    assert "M T = 500,000." in arena_report.small(10**4)
    for words in (
        *("26.2 / 1.98 / 0.359 up to δ = 10⁻⁶", "29.0 / 2.40 / 0.453 up to δ = 10⁻⁹"),
        "31.0 / 2.69 / 0.517 up to δ = 10⁻¹²",
    ):
        assert words in told
    text = " ".join(arena_report._at_matched_trust(10**4, writers.parts(10**4), Path("nowhere")))
    assert arena_report.small(10**4) in text


def test_no_more_is_said_of_a_column_than_that_one_epsilon_covers_it(monkeypatch, tmp_path):
    """Catches "all leak the same" of actions, and a share that is typed, or of other claims."""
    what = arena.VIEWS["actions"]
    assert arena_report.noted(what, tmp_path).endswith("an upper bound on what they leak.")
    with (tmp_path / "audit_mechanisms.csv").open("w", encoding="utf-8") as file:
        file.write("mechanism,view,share of the claim\n")
        for row in (
            *("AdaP-UCB,actions,0.832", "Private UCB,actions,0.138", "LDP-UCB,messages,0.976"),
            *("DP-SE,actions,0.99", "Uniform play,actions,", "no noise on episodes,actions,12.5"),
        ):
            file.write(f"{row}\n")
    told = "of the actions of index policies the audit shows 0.14 to 0.83 of it."
    assert arena_report.noted(what, tmp_path).endswith(told)
    found = writers.parts(10**4)
    text = " ".join(arena_report._at_matched_trust(10**4, found, tmp_path))
    assert "All of a column are covered by the same ε of one reward" in text and told in text
    assert "leak the same" not in text + arena_report.TABLE
    kept = published(monkeypatch)
    arena_figures._draw_leaks(found["b"], None, 10**4, tmp_path, "x")
    assert "all of a panel are covered by the same ε" in kept["x"].caption


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


# By what a seed costs: of 1000 seeds, how many at T = 10^4, 10^5 and 10^6, of parts (a), (b), (c).
POOLED = {"ucb1_pooled", "thompson_pooled", "kl_ucb_pooled", "ldp_ucb_pooled", "ldp_bits_pooled"}
EPISODES = {"adap_ucb", "adap_klucb", "dp_imed", "dp_klucb"}
TALK = {"fed_ucb", "dducb", "gossip_ucb", "dec_ucb", "gosine", "lcc_ucb", "lcc_ucb_graph"}
SEEDS = {
    "rounds": {10**4: (1000, 1000, 1000), 10**5: (1000, 1000, 1000), 10**6: (1000, 1000, 100)},
    "pooled": {10**4: (1000, 200, 200), 10**5: (100, 40, 40), 10**6: (40, 10, 10)},
    "alone": {10**4: (1000, 100, 50), 10**5: (100, 20, 4), 10**6: (40, 0, 0)},
    "episodes": {10**4: (1000, 1000, 200), 10**5: (1000, 200, 10), 10**6: (1000, 20, 10)},
    "together": {10**4: (1000, 1000, 1000), 10**5: (1000, 1000, 1000), 10**6: (1000, 100, 1000)},
    "search": {10**4: (1000, 100, 50), 10**5: (40, 20, 0), 10**6: (40, 0, 0)},
    "draws": {10**4: (100, 20, 10), 10**5: (10, 0, 0), 10**6: (0, 0, 0)},
    "talk": {10**4: (200, 50, 50), 10**5: (40, 4, 4), 10**6: (0, 0, 0)},
}


def test_seeds_are_what_a_contestant_can_run():
    """Catches a trial of days, seeds of another cost or part, and a single seed."""
    for name, entry in arena.LINE_UP.items():
        cost = "pooled" if name in POOLED else "talk" if name in TALK else "alone"
        cost = cost if entry.steps else "episodes" if name in EPISODES else "rounds"
        cost = {"lazy_dp_ts": "draws", "kl_ucb": "search"}.get(name, cost)
        cost = "together" if name in ("dp_imed_sum", "dp_klucb_sum") else cost
        assert entry.cost == cost, name
        for horizon, wanted in SEEDS[cost].items():
            assert tuple(entry.seeds(part, horizon, 1000) for part in "abc") == wanted, name
    ucb = arena.LINE_UP["ucb1"]
    assert [ucb.seeds("c", T, 1000) for T in (10**4 + 1, 10**5 + 1)] == [4, 0]
    # No interval has one seed.
    assert ucb.seeds("b", 10**5, 30) == 2


@pytest.mark.parametrize("horizon", [10**4, 10**5, 10**6])
def test_parts_have_the_seeds_that_their_contestants_can_run(monkeypatch, horizon):
    """Catches seeds of others, one run for two, two for one, a lost leak, a wrong problem."""
    ran = []

    def run(entry, algorithm, spread, T, seeds, store, kept):
        name = next(name for name, each in arena.LINE_UP.items() if each is entry)
        ran.append(((kept, name), seeds, spread, T, algorithm))
        return [kept, name, algorithm]

    monkeypatch.setattr(arena, "run", run)
    found = arena.sweep(horizon, 1000)
    every = arena.LINE_UP.items()
    wanted = {part: {n: e.seeds(part, horizon, 1000) for n, e in every} for part in "abc"}
    wanted = {part: {n: m for n, m in each.items() if m} for part, each in wanted.items()}
    assert {kept_n: seeds for kept_n, seeds, *_ in ran if kept_n[0] == "a"} == {
        ("a", name): seeds for name, seeds in wanted["a"].items()
    }
    assert list(found["a"]) == list(wanted["a"])
    # At a leak: each view has all that can run, and each folder one run.
    pairs = [(v, n) for v, what in arena.VIEWS.items() for n in what.makers if n in wanted["b"]]
    assert set(found["b"]) == {(*pair, leak) for pair in pairs for leak in (0.1, 0.3, 1, 3, 10, 50)}
    assert len({where for where, *_ in ran}) == len(ran)
    at_leak = [each for each in ran if each[0][0][0] == "b"]
    for (_, name), seeds, spread, T, _ in at_leak:
        assert (seeds, spread, T) == (wanted["b"][name], 0.0, horizon)
    for (view, name, leak), (_, own, algorithm) in found["b"].items():
        assert own == name and algorithm == arena.VIEWS[view].makers[name](leak)
    # The same in two views: summed up over all, a sum itself, and whoever gossips.
    twice = {
        ("sums", "cdp"), ("sums", "cdp_scaled"), ("sums", "dist_dp_se"), ("messages", "fed_ucb"),
        ("sums", "ldp_ucb_pooled"), ("sums", "ldp_bits_pooled"), ("messages", "kl_se_split"),
        ("messages", "kl_se_graph"), ("sums", "kl_se_sum"), ("sums", "dp_imed_sum"),
        ("sums", "dp_klucb_sum"), ("messages", "demab_private"),
    }  # fmt: skip
    twice = {key for key in twice if key[1] in wanted["b"]}
    for view, name, leak in found["b"]:
        if view != "actions" and name in arena.VIEWS["actions"].makers:
            mine, theirs = found["b"][view, name, leak], found["b"]["actions", name, leak]
            assert (mine is theirs) == ((view, name) in twice), (view, name)
    assert len(at_leak) == len(found["b"]) - 6 * len(twice)
    # Where agents differ; where they are alike it is the run of part (a).
    alike = {n for n in arena.LINE_UP if getattr(arena.LINE_UP[n].algorithm, "homogeneous_only", 0)}
    named = "dducb dec_ucb gosine lcc_ucb lcc_ucb_graph kl_se_split dp_imed_sum dp_klucb_sum demab"
    assert alike == {*named.split(), "demab_private"}
    told = {where: (seeds, spread) for where, seeds, spread, *_ in ran if where[0] == "c"}
    assert told == {("c", n): (m, 1.0) for n, m in wanted["c"].items() if n not in alike}
    differ = [name for name in wanted["c"] if name not in alike]
    assert list(found["c"]) == list(itertools.product(differ, arena.SPREADS))
    for name, words in found["c"]:
        assert (found["c"][name, words] is found["a"][name]) == (words == "agents alike")
    assert {T for *_, T, _ in ran} == {horizon}


@pytest.mark.slow
def test_few_agents_alone_stand_for_all():
    """Would catch a factor that is forgotten, or other means than everybody else's."""
    entry = arena.LINE_UP["ucb1"]
    few = arena.run(entry, entry.algorithm, 0.0, 1000, 16, None, "")
    problem, times = fmab.Problem.heterogeneous(5, 100, 0.0), common.slots(1000)
    own = fmab.simulate(fmab.ucb1(), problem, 1000, 16, times=times)
    np.testing.assert_allclose(few.regret.values, 10 * own.regret.values)
    all_agents = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(50, 100), 1000, 16, times=1)
    difference = few.regret.isel(time=-1).values - all_agents.regret.values[:, -1]
    # On the same instances: what is left is the chance of five agents.
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / 4
    assert difference.std() < 0.2 * all_agents.regret.values[:, -1].std()


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
        silent = arena.leaks(entry.algorithm)["messages"] == arena.costs.NOTHING
        assert silent == (entry.trust == "alone") == entry.alone, name
    assert groups[words["alone"], "no bound"] == ["ucb1", "thompson", "kl_ucb"]
    assert groups[words["alone"], "0"] == ["uniform_play"]
    assert list(groups)[0] == (words["open"], "no bound") and len(groups) == 10


def test_a_large_epsilon_does_not_make_somebody_trusted_by_nobody():
    """Catches "every message is noisy" at an epsilon of 50, and un-noised waits without a word."""
    told = {each["name"]: each["trusted"] for each in fmab.list_algorithms()}
    assert told["cdp"] == told["fed_ucb"] == "nobody, up to the epsilon of a message"
    bare = f"{told['cdp']}; in un-noised waits, whoever sees actions"
    assert told["ddp"] == told["hdp"] == bare
    assert told["ldp_ucb"] == "nobody, up to the epsilon of a reward"
    assert arena.trusted("ddp") == f"{arena.TRUST['message']}, and whoever sees actions"
    assert arena.trusted("hdp") == arena.trusted("cdp") == arena.TRUST["message"]
    # Who tells everything, or nothing, needs no such word.
    others = [name for name in arena.LINE_UP if name != "ddp"]
    assert all(arena.trusted(name) in arena.TRUST.values() for name in others)
    assert arena.trusted_as_well(others) == ""
    assert arena.trusted_as_well(arena.LINE_UP).endswith("is trusted as well by DDP-MAB, ring.")


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


def test_the_yardstick_is_the_best_that_tells_nobody_anything():
    """Catches an estimate for an upper end, one interval for two, unlike seeds, the wrong side."""
    base = np.array([10.0, 30.0, 20.0, 50.0, 40.0])
    apart = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # 0 on average
    edge = 3.495406 * math.sqrt(2.5 / 5)  # of two intervals, which hold together
    finals = {"cdp": base + apart - 1.01 * edge, "ddp": base + apart - 0.99 * edge}

    def told(finals):
        entrants = [arena.entrant(name, run_of(values)) for name, values in finals.items()]
        return arena_report._yardstick(entrants, run_of(base))

    start = (
        "Yardstick: KL-UCB by every agent alone, which tells nobody anything, has 30 [10, 50]; "
        "surely less than that has: "
    )
    assert told(finals) == f"{start}CDP-MAB."
    assert told({"ddp": base + apart + 9}) == f"{start}nobody."
    # One alone, at 95 %; and on the seeds that both have, though its others are easy.
    assert told({"ddp": finals["ddp"]}) == f"{start}DDP-MAB, ring."
    more = np.concatenate([base + apart + 5, np.full(95, -1e6)])
    assert told({"ddp": more}) == f"{start}nobody."
    assert told({"ddp": base[:3] - 1 - 0.1 * apart[:3]}) == f"{start}DDP-MAB, ring."


def test_who_does_no_better_than_uniform_play_is_named():
    """Catches 5 % on the wrong side, an estimate for an end, unlike seeds, uniform play itself."""
    base = np.linspace(900, 1100, 20)
    shares = {"cdp": 0.949, "ddp": 0.951, "ucb1": 1.2, "uniform_play": 1.0}
    values = {name: share * base for name, share in shares.items()}
    values["hdp"] = 0.96 * base + 300 * (-1.0) ** np.arange(20)  # above 0.95 on average only
    values["fed_ucb"] = 1.1 * base[:5]
    parts = {name: run_of(own) for name, own in values.items()}
    told, _ = arena_report._list_useless(10**6, parts)
    names = [arena.LINE_UP[name].label for name in ("ddp", "ucb1", "fed_ucb")]
    start = "Surely within 5 % of uniform play, or worse, T = 10⁶: "
    missing, hdp = arena.not_run(arena.absent(arena.LINE_UP, parts)), arena.LINE_UP["hdp"].label
    assert told == f"{start}{' / '.join(names)}; not decided: {hdp}. {missing}"
    first = "Not run, because this run leaves them out: CDP-MAB, radius × 0.3 / KL-SE"
    assert missing.startswith(first)
    assert " / KL-UCB." in missing and " CDP-MAB /" not in missing
    del parts["ddp"], parts["ucb1"], parts["fed_ucb"], parts["hdp"]
    told, _ = arena_report._list_useless(10**6, parts)
    assert told.startswith(f"{start}nobody; not decided: nobody. Not run, ")
    del parts["uniform_play"]
    assert arena_report._list_useless(10**6, parts) == []


def test_who_was_not_run_is_said_with_the_reason():
    """Would catch a reason for another, somebody who was run, and a paragraph about nobody."""
    names = ("cdp", "ucb1", "lcc_ucb", "gosine", "dist_dp_se")
    found = arena.absent(names, {"cdp"})
    assert found == {arena.STEPS: ["UCB1", "LCC-UCB", "GosInE"], arena.UNASKED: ["Dist-DP-SE"]}
    wanted = {arena.STEPS: ["UCB1"], arena.ALIKE_ONLY: ["LCC-UCB", "GosInE"]}
    wanted[arena.UNASKED] = ["Dist-DP-SE"]
    assert arena.absent(names, {"cdp"}, differ=True) == wanted
    told = arena.not_run({"because": ["one", "two"], "so": ["three"]})
    assert told == "Not run, because: one / two. Not run, so: three."
    assert arena.absent(names, names) == {} and arena.not_run({}) == ""


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
        "who is trusted": "nobody, up to the ε of a message",
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


@pytest.mark.slow
def test_links_of_counts_are_told_apart():
    """Would catch links that hide what all edges carry in every slot, or count it for others."""
    data = fmab.simulate(fmab.gossip_ucb("ring"), fmab.Problem.uniform(5, 4), 30, 8, times=1)
    last = data.isel(time=-1)
    assert (arena.links(last) == 26 * 6).all()
    assert (arena.links(last, counts=False) == 26).all()
    alone = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(5, 4), 30, 8, times=1)
    assert (arena.links(alone.isel(time=-1)) == 0).all()
    two = fmab.Problem(np.array([0.9, 0.1]), agents=5)
    ring = fmab.simulate(fmab.ddp_mab(None, "ring"), two, 3000, 8, times=1).isel(time=-1)
    assert (arena.links(ring) == ring.rounds_made * 2 * 5).all()


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


def test_the_arenas_tables_and_panels_show_the_data(monkeypatch, tmp_path):
    """Catches one who is dropped, another view's numbers, another order, one look for two."""
    kept, found = published(monkeypatch), writers.parts(10**4)
    # No two curves of a panel are alike.
    for key, data in found["b"].items():
        place = list(arena.LINE_UP).index(key[1])
        found["b"][key] = data.assign(regret=data.regret * 1.07**place)
    # Who is best where agents are alike is not where they differ.
    for i, key in enumerate(key for key in found["c"] if key[1] == "agents differ"):
        data = found["c"][key]
        found["c"][key] = data.assign(regret=data.regret * (1 + 7 * i % 5))
    written = arena_figures.draw({10**4: found}, tmp_path)
    names = [f"arena_{part}_T1e4" for part in ("regret", "links", "leak", "differ")]
    assert [path.stem for path in written] == list(kept) == names
    last = {name: data.regret.isel(time=-1).values for name, data in found["a"].items()}
    label = {name: entry.label for name, entry in arena.LINE_UP.items()}
    for each in kept.values():
        assert "M = 50 agents, K = 100 arms" in each.caption
        assert "5 agents are run and their regret is multiplied by 50 / 5" in each.caption
    regret, links, leak, differ = kept.values()
    # Over time.
    rows = {(r["quantity"], r["curve"], r["slot"]): r for r in regret.rows}
    for name, values in last.items():
        row = rows["regret", label[name], 10**4]
        assert row["mean"] == pytest.approx(values.mean()) and row["lower"] < row["mean"]
        more = rows["minus CDP-MAB, same seeds", label[name], 10**4]
        own = common.interval(values - last["cdp"][: values.size])
        assert [more[key] for key in ("mean", "lower", "upper")] == pytest.approx(own)
    # A leak of 50 beside one of 1 is said.
    assert "CDP-MAB, DDP-MAB and HDP-MAB leaks 50, of the others 1; at matched" in regret.caption
    # Against what is sent.
    for name, row in zip(last, links.rows, strict=True):
        sent = float(found["a"][name].numbers_sent.mean())
        assert row["numbers sent"][0] == sent == 100 * row["links at T"][0]
        assert row["bits sent"][0] == sent * arena.BITS.get(name, 64)
        assert (row["algorithm"], row["regret at T"]) == (label[name], common.interval(last[name]))
        assert row["epsilon of messages"] == arena.leaks(arena.LINE_UP[name].algorithm)["messages"]
    assert "a released bit has 1, an arm's name 7, every other number" in links.caption
    # At matched trust.
    rows = [row for row in leak.rows if not row["why not run"]]
    views = [(view, e) for view in arena.VIEWS for e in arena.LEAKS]
    cells = [(view, e, name) for view, e in views for name in arena.VIEWS[view].makers]
    for (view, each, name), row in zip(cells, rows, strict=True):
        what, own = arena.VIEWS[view], found["b"][view, name, each].regret.isel(time=-1)
        at = (row["view"], row["accountant"], row["ε"], row["algorithm"], row["seeds"])
        assert at == (what.who, what.leak, each, label[name], own.size)
        assert row["regret at T"] == pytest.approx(common.interval(own))
        assert row["of"] == len(what.makers)
    # Where agents differ; who is best there stands highest, in both colours.
    ends = {key: data.regret.isel(time=-1).values for key, data in found["c"].items()}
    order = sorted({n for n, _ in ends}, key=lambda name: ends[name, "agents differ"].mean())
    for name, row in zip(order, differ.rows, strict=True):
        assert row["algorithm"] == label[name]
        for words in arena.SPREADS:
            assert row[words] == pytest.approx(common.interval(ends[name, words]))
    page = pictures.Page(narrow=False)
    differ.draw(page)
    (panel,) = page.figure.axes
    assert [text.get_text() for text in panel.get_yticklabels()] == [label[n] for n in order[::-1]]
    for line, words in zip(panel.lines, arena.SPREADS, strict=True):
        assert line.get_label() == words
        drawn_at = [ends[name, words].mean() for name in order[::-1]]
        np.testing.assert_allclose(line.get_xdata(), drawn_at)
    page = pictures.Page(narrow=False)
    leak.draw(page)
    looks = {}
    for panel, (view, what) in zip(page.figure.axes, arena.VIEWS.items(), strict=True):
        assert panel.get_title(loc="left") == what.who
        assert panel.get_xlabel() == f"leak, {what.leak}"
        lines = {line.get_label(): line for line in panel.lines}
        # Who tells nobody anything is the yardstick of what is told, not of actions.
        quiet = lines.pop("KL-UCB alone: nothing told", None)
        assert (quiet is None) == (view == "actions")
        if quiet is not None:
            np.testing.assert_allclose(quiet.get_ydata(), last["kl_ucb"].mean())
        bound = lines.pop("lower bound in the end").get_ydata()
        assert list(bound) == [arena.least_possible(leak, 10**4) for leak in arena.LEAKS]
        for name, (told, line) in zip(what.makers, lines.items(), strict=True):
            runs = [found["b"][view, name, each].regret.isel(time=-1) for each in arena.LEAKS]
            np.testing.assert_allclose(line.get_ydata(), [float(run.mean()) for run in runs])
            look = (line.get_color(), line.get_linestyle(), line.get_marker())
            looks.setdefault(name, set()).add(look)
            assert told == label[name]
    # Everybody looks the same in all panels, and nobody like another.
    assert looks.keys() == {name for what in arena.VIEWS.values() for name in what.makers}
    assert len(set.union(*looks.values())) == sum(map(len, looks.values())) == len(looks)


def test_names_in_pictures_carry_the_leak_of_their_messages():
    """Catches a leak of 50 beside 1 without a word, and an epsilon of those that have none."""
    rows = {
        name: {"links at T": (sent,) * 3, "regret at T": (regret,) * 3}
        for name, sent, regret in (
            ("cdp", 100.0, 1000.0), ("hdp", 102.0, 1020.0), ("ddp", 100.0, 2000.0),
            ("fed_ucb", 100.0, 1000.0), ("ucb1_pooled", 100.0, 1000.0),
            ("dp_se", 0.0, 1000.0), ("uniform_play", 0.0, 1000.0), ("ldp_bits", 0.0, 10.0),
        )
    }  # fmt: skip
    notes = arena_figures._notes(rows, "links at T")
    # Markers of one trust and leak that lie on each other have one name, at that of the first.
    assert [(note.words, *note.at) for note in notes] == [
        ("CDP-MAB; HDP-MAB, 10 stars of 5; ε 50", 100, 1000),
        ("DDP-MAB, ring; ε 50", 100, 2000),
        ("Fed_UCB, ring, scaled; ε 1", 100, 1000),
        ("UCB1, pooled", 100, 1000),
        ("DP-SE", 0, 1000),
        ("uniform play", 0, 1000),
        ("LDP-UCB-B, alone", 0, 10),
    ]


def test_the_report_has_every_part_of_every_horizon(monkeypatch, tmp_path):
    """Catches a horizon, source or setting left out, links to others, a ledger without one."""
    found, own = writers.parts(10**4), {"T": "10⁵", "regret at T": (1.0, 0.0, 2.0)}
    monkeypatch.setattr(arena_settings, "_row", lambda each, data: {"algorithm": each.who} | own)
    results = {"arena": {10**4: found, 10**5: found}}
    results["arena_settings"] = {10**6: {"fed1-M1-f138": None}}
    results["arena_fronts"] = {10**5: {"dials": {}, "far": {}}}
    arena_report.judge(results.__getitem__, tmp_path)
    page = (tmp_path / "ARENA.md").read_text("utf-8")
    for end, part in itertools.product(("T1e4", "T1e5"), ("regret", "links", "leak", "differ")):
        assert f"[figure](arena_{part}_{end}.png), [table](arena_{part}_{end}.md)" in page
    assert page.count("an arm's name 7, every other number 64.") == 2
    for entry in arena.LINE_UP.values():
        row = f"| {entry.label} | `{entry.algorithm.name}` | {entry.algorithm.source} |"
        assert row in page
    every = list(arena_settings.settings())
    assert f"Not run: {', '.join(each for each in every if each != 'fed1-M1-f138')}." in page
    assert "| Fed1-UCB | 10⁵ | 1.0 [0.0, 2.0] | cannot be said: the horizon is not theirs |" in page
    # What is told of one changed reward: 50 of a message of CDP-MAB, and no bound on actions.
    ledger = rows_of(tmp_path / "arena_ledger.csv")
    assert {row["algorithm"] for row in ledger} == {e.label for e in arena.LINE_UP.values()}
    cdp = [row["ε"] for row in ledger if row["algorithm"] == "CDP-MAB"]
    assert "50" in cdp and "no bound" in [row["ε"] for row in ledger]
    # By hand: on a ring of 50 the farthest agent is 25 hops away, on a star 2.
    assert "* ring: GIS 25 slots, 1,249 links and 2,450 vectors; flooding 25 slots" in page
    assert "* star: GIS 2 slots, 98 links and 2,450 vectors;" in page


# Setting: (its regret, links, and the regret of others): what is said of it. Known are 25,100 with
# 13,000 links; that LCC-UCB is between the two others and below the end of the axis, 3,500 or
# 7,000; about a tenth, read off a picture; 1,151; and 124 ± 9, where 18 more or less agree.
BELOW = "yes: below the end of the axis"
ABOVE = "no: above the axis, which ends at 3,500; why is not known"
THREE = {"LCC-UCB": 6000, "UCB1-pooled": 700, "UCB1-alone": 6500}
PAIR = {"lcc-10-100-UCB1-pooled": 500, "lcc-10-100-UCB1-alone": 3000}
SAID = (
    ("fed1-M5-f10", 25_100, 13_600, {}, "yes: regret +0.0 %, links +4.6 %"),
    ("fed1-M5-f10", 23_900, 13_000, {}, "yes: regret -4.8 %, links +0.0 %"),
    ("fed1-M5-f10", 26_400, 13_000, {}, "no: regret +5.2 %, links +0.0 %"),
    ("fed1-M5-f10", 25_100, 12_300, {}, "no: regret +0.0 %, links -5.4 %"),
    ("lcc-10-100-LCC-UCB", 1000, 0, PAIR, f"{BELOW}, between the other two"),
    ("lcc-10-100-LCC-UCB", 400, 0, PAIR, "no: not between the other two"),
    ("lcc-10-100-LCC-UCB", 3100, 0, PAIR, "no: not between the other two"),
    ("lcc-10-100-LCC-UCB", 3600, 0, PAIR, ABOVE),
    ("lcc-10-100-LCC-UCB", 1000, 0, {}, "cannot be said: one of the three was not run"),
    *(
        (f"{where}-{who}", THREE[who], 0, {f"{where}-{w}": own for w, own in THREE.items()}, told)
        for where, who, told in (
            ("lcc-10-100", "UCB1-pooled", BELOW),
            ("lcc-10-100", "UCB1-alone", ABOVE),
            ("lcc-10-100", "LCC-UCB", ABOVE),
            ("lcc-10-200", "LCC-UCB", f"{BELOW}, between the other two"),
            ("lcc-10-200", "UCB1-alone", BELOW),
        )
    ),
    *(
        (name, 1000, 0, {"adap-AdaP-UCB": share}, told)
        for name in ("adap-DP-SE", "adap-tree")
        for share, told in (
            (140, "yes: AdaP-UCB has 0.14 of it"),
            (160, "no: AdaP-UCB has 0.16 of it; what is known was read off a picture"),
            (40, "no: AdaP-UCB has 0.04 of it; what is known was read off a picture"),
        )
    ),
    ("adap-tree", 1000, 0, {}, "cannot be said: AdaP-UCB was not run"),
    ("adap-AdaP-UCB", 140, 0, {}, "see the other two"),
    ("check-AdaP-KLUCB", 1_190, 0, {}, "yes: regret +3.4 %"),
    ("check-AdaP-KLUCB", 1_090, 0, {}, "no: regret -5.3 %"),
    ("check-DP-KLUCB", 141, 0, {}, "yes: regret +13.7 %"),
    ("check-DP-KLUCB", 105, 0, {}, "no: regret -15.3 %"),
    ("check-DP-IMED", 124, 0, {}, "cannot be said: what is known is too rough"),
    *(
        (name, 5, 0, {}, "cannot be said: no number is known")
        for name in ("dducb-ring-of-100", "gosine-GosInE", "lcc-graph-100-250")
    ),
)


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


def test_own_settings_count_links_and_agents_as_their_papers_do(monkeypatch):
    """Catches regret of all told as of one, links not added or without price, a cut horizon."""
    last = {"regret": (("seed", "time"), [[1.0, 30.0], [2.0, 50.0]])}
    links = np.array([[[0, 0], [4, 900]], [[0, 0], [8, 900]]])
    coords = {"time": [5, 1000], "meter": ["server", "used"], "priced": ("meter", [True, False])}
    cells = last | {"links": (("seed", "time", "meter"), links)}
    data = xr.Dataset(cells, coords, {"agents": 10})
    made = dict(
        who="who",
        what="what",
        algorithm=None,
        problem=None,
        horizon=1,
        seeds=1,
        collect_algorithms="k",
    )
    for options, of, ends in (
        ({}, "all", [30, 50]),
        ({"priced": True}, "all agents, with links", [34, 58]),
        ({"each": True}, "one agent", [3, 5]),
    ):
        row = arena_settings._row(arena_settings.Setting(**made, **options), data)
        assert row["regret of"] == of and row["regret at T"] == common.interval(ends)
        assert row["links at T"] == common.interval([4, 8])
        assert (row["T"], row["seeds"], row["known"]) == ("1000", 2, "k")
    alone = data.drop_dims("meter")
    row = arena_settings._row(arena_settings.Setting(**made, priced=True), alone)
    assert row["regret at T"] == common.interval([30, 50]) and row["links at T"] == (0, 0, 0)
    asked = recorded(monkeypatch)
    arena_settings.sweep(10**6, 1000, names=["fed1-M1-f138", "lcc-10-100-LCC-UCB", "adap-DP-SE"])
    arena_settings.sweep(10**4, 3, names=["adap-DP-SE", "dducb-ring-of-100"])
    assert [(each["horizon"], each["seeds"]) for *_, each in asked] == [
        (10**6, 100), (10**5, 30), (10**7, 20), (10**4, 3), (10**4, 3),
    ]  # fmt: skip
    assert asked[0][2]["pulls"] == 138
    # The printed weights: 0.70 times 9.1 for the arm that the first of ten clients likes best.
    assert arena_settings.fed1_means(10)[:2, 0] == pytest.approx([6.37, 0.07])
    assert arena_settings.horizons([10**4, 10**6]) == [10**6]


def test_prices_of_protocols_are_paired_with_gis(monkeypatch, tmp_path):
    """Would catch a difference to another protocol or graph, the wrong sign, or another meter."""
    results = {}
    for i, name in enumerate(("ring", "star")):
        for j, words in enumerate(arena_protocols.PROTOCOLS):
            data = made_up(1000 + 100 * i + 10 * j, 7 + j, seeds=4)
            results[f"{name}, {words}"] = data
    monkeypatch.setattr(arena_protocols, "_wait", lambda name, words: f"{name} {words}")
    arena_protocols._draw_prices({10**4: results}, tmp_path)
    rows = rows_of(tmp_path / "arena_protocols_regret.csv")
    assert [row["graph"] for row in rows] == ["ring"] * 4 + ["star"] * 4
    for row, (label, data) in zip(rows, results.items(), strict=True):
        ends = data.regret.isel(time=-1).values
        gis = results[f"{row['graph']}, GIS"].regret.isel(time=-1).values
        assert float(row["regret at T"]) == pytest.approx(ends.mean())
        assert three(row, "minus GIS") == pytest.approx(common.interval(ends - gis))
        assert float(row["links at T, edges that carry data"]) == data.links.values[0, -1, 0]
        assert float(row["numbers sent"]) == float(data.numbers_sent[0])
        assert (row["T"], row["wait (slots)"]) == ("10⁴", label.replace(",", ""))
    monkeypatch.undo()
    assert [arena_protocols._wait("ring", words) for words in ("GIS", "flooding")] == [24, 24]
    assert "4 seeds" in (tmp_path / "arena_protocols_regret.md").read_text("utf-8")


def test_what_a_round_takes_is_in_one_table(monkeypatch, tmp_path):
    """Catches another graph or size, slots told as waits, a sum that is not in the table."""
    kept = published(monkeypatch)
    monkeypatch.setattr(arena_protocols, "_draw_prices", lambda *_: [])
    monkeypatch.setattr(arena_protocols, "SIZES", (5, 20))
    arena_protocols.draw({}, tmp_path)
    picture = kept["arena_protocols"]
    heads = [f"{what} of a round" for what in ("slots", "links", "vectors")]
    rows = {(r["graph"], r["M"], r["protocol"]): [int(r[h]) for h in heads] for r in picture.rows}
    assert len(rows) == 4 * 2 * 5
    # The farthest on a ring of 20 is 10 hops away; GIS tells everybody everything once.
    assert rows["ring", 20, "GIS"] == [10, 199, 380]
    assert rows["star", 20, "GIS"] == [2, 38, 380]
    assert rows["complete", 20, "flooding"] == [1, 190, 380]
    assert rows["star", 20, "SAC to one sink"] == [1, 19, 19]
    assert f"on a ring of 20: GIS {199}; " in picture.alt
    assert rows["ring", 5, "GIS"][0] == 2


@pytest.mark.slow
@pytest.mark.as_users_see_it
def test_the_arenas_figures_are_legible(monkeypatch, tmp_path):
    """Catches names that cover each other or leave the page, narrow panels, a replaced table."""
    kept = drawn(monkeypatch)
    written = arena_figures.draw({10**4: writers.parts(10**4)}, tmp_path)
    names = [f"arena_{part}_T1e4" for part in ("regret", "links", "leak", "differ")]
    assert list(kept) == [f"{name}{end}" for name in names for end in ("", "_column")]
    assert len(set(written)) == len(written) == 4 * 6
    for name in names:
        assert "T = 10⁴ slots, " in readable(kept, name, tmp_path)[1]
        assert "| DP-SE |" in (tmp_path / f"{name}.md").read_text("utf-8")
    monkeypatch.setattr(arena_protocols, "_draw_prices", lambda *_: [])
    arena_protocols.draw({}, tmp_path)
    readable(kept, "arena_protocols", tmp_path)
    protocols = {row["protocol"] for row in rows_of(tmp_path / "arena_protocols.csv")}
    assert protocols >= {"gossip to 0.01", "gossip to 0.0001"}


def test_curves_that_coincide_are_one_line_with_all_names():
    """Catches a curve that hides another, and one that is merged though it is elsewhere."""
    curve = np.array([1.0, 2.0, 4.0])
    means = {"cdp": curve, "hdp": curve * [1, 1, 1.02], "ddp": curve * 1.009}
    assert arena_figures._lines(list(means), means) == [["cdp", "ddp"], ["hdp"]]
