"""The arena: who takes part, at which leak, and that its sentences say what the numbers do."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
import xarray as xr
from legibility import drawn, legible, words_of

import fmab_jax as fmab
from experiments import (
    arena,
    arena_figures,
    arena_protocols,
    arena_report,
    arena_settings,
    common,
)
from fmab_jax.algorithms.base import known
from fmab_jax.core import graphs


def test_everybody_takes_part():
    """Would catch an algorithm that is left out, or without a word on how it was read."""
    assert {entry.algorithm.name for entry in arena.LINE_UP.values()} == set(known())
    assert set(arena_report.READINGS) == set(arena.LINE_UP)
    labels = [entry.label for entry in arena.LINE_UP.values()]
    assert len(set(labels)) == len(labels)


def test_every_private_algorithm_is_run_at_an_equal_leak():
    """Would catch an epsilon of one agent's parameter in place of what others are told, or a
    private algorithm that is left out."""
    private = {
        name
        for name, entry in arena.LINE_UP.items()
        if any(0 < row.epsilon < math.inf for row in fmab.privacy_ledger(entry.algorithm, 50))
    }
    assert set(arena.AT_LEAK) == private
    for name, maker in arena.AT_LEAK.items():
        for leak in (0.1, 50.0):
            rows = fmab.privacy_ledger(maker(leak), arena.AGENTS)
            told = [row.epsilon for row in rows if row.what != "actions"]
            acted = [row.epsilon for row in rows if row.what == "actions"]
            alone = arena.LINE_UP[name].alone
            assert max(acted if alone and not told else told) == pytest.approx(leak), name


def test_who_steps_through_slots_has_fewer_seeds_at_longer_horizons():
    """Would catch a trial of days, and an elimination with a tenth of its seeds."""
    cdp, ucb = arena.LINE_UP["cdp"], arena.LINE_UP["ucb1_pooled"]
    assert [cdp.seeds(T, 1000) for T in (10**4, 10**5, 10**6)] == [1000, 1000, 1000]
    assert [ucb.seeds(T, 1000) for T in (10**4, 10**5, 10**6)] == [1000, 100, 0]
    # Only of agents that are alone do few stand for all.
    few = {name for name, entry in arena.LINE_UP.items() if entry.agents < arena.AGENTS}
    assert few == {
        *("ldp_ucb", "ldp_bits", "adap_ucb", "tree_ucb"),
        *("ucb1", "thompson", "kl_ucb", "uniform_play"),
    }


@pytest.mark.slow
def test_few_agents_alone_stand_for_all():
    """Would catch a factor that is forgotten, or other means than everybody else's."""
    entry = arena.LINE_UP["ucb1"]
    few = arena._run(entry, entry.algorithm, 0.0, 1000, 16, None, "")
    own = fmab.simulate(
        fmab.ucb1(), fmab.Problem.heterogeneous(5, 100, 0.0), 1000, 16, times=common.slots(1000)
    )
    np.testing.assert_allclose(few.regret.values, 10 * own.regret.values)
    all_agents = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(50, 100), 1000, 16, times=1)
    difference = few.regret.isel(time=-1).values - all_agents.regret.values[:, -1]
    # On the same instances: what is left is the chance of five agents.
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / 4
    assert difference.std() < 0.2 * all_agents.regret.values[:, -1].std()


def test_rankings_say_what_the_numbers_do():
    """Would catch a winner that cannot be told from the second and is not said to be so, seeds
    that are not common, and a difference of the wrong sign."""
    rng = np.random.default_rng(3)
    instance = rng.normal(1000, 300, 200)
    finals = {
        "cdp": instance + rng.normal(0, 1, 200),
        "ddp": instance + rng.normal(0, 1, 200) + 0.01,
        "hdp": instance + 50 + rng.normal(0, 1, 200),
        # Fewer seeds, easier ones among them only if the rest were counted.
        "fed_ucb": instance[:100] + 500,
    }
    text = arena_report._ranking(list(finals), finals)
    best = min(("cdp", "ddp"), key=lambda name: finals[name][:100].mean())
    other = "ddp" if best == "cdp" else "cdp"
    label = {name: arena.LINE_UP[name].label for name in finals}
    assert text.startswith(f"{label[best]} has the smallest mean, {finals[best][:100].mean():,.0f}")
    assert f"; cannot be told from it: {label[other]}; {label['hdp']} has 50 [" in text
    assert text.endswith("more (100 seeds).") and label["fed_ucb"] not in text


@pytest.mark.slow
def test_links_of_counts_are_told_apart():
    """Would catch links that hide what all edges carry in every slot, or count it for others."""
    data = fmab.simulate(fmab.gossip_ucb("ring"), fmab.Problem.uniform(5, 4), 30, 8, times=1)
    last = data.isel(time=-1)
    assert (arena.links(last) == 26 * 6).all()
    assert (arena.links(last, counts=False) == 26).all()
    alone = fmab.simulate(fmab.ucb1(), fmab.Problem.uniform(5, 4), 30, 8, times=1)
    assert (arena.links(alone.isel(time=-1)) == 0).all()
    ring = fmab.simulate(
        fmab.ddp_mab(None, "ring"), fmab.Problem(np.array([0.9, 0.1]), agents=5), 3000, 8, times=1
    ).isel(time=-1)
    assert (arena.links(ring) == ring.rounds_made * 2 * 5).all()


def test_what_a_round_takes_is_counted_alike():
    """Would catch SAC's way to the server among the links of agents, or hops in place of edges."""
    found = arena_protocols.tables(graphs.make("path", 4))
    taken = {
        words: (table.wait + 1, arena_protocols.links(table), arena_protocols.vectors(table))
        for words, table in found.items()
    }
    # By hand: over 0-1-2-3 everybody hears everybody after three slots. To sink 1 come 0 and 2 in
    # the first slot and 3, passed on, in the second.
    assert taken["GIS"] == (3, 8, 12)
    assert taken["SAC to one sink"] == (2, 4, 4)


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
    }
    coords = {"time": SLOTS, "meter": ["used"], "priced": ("meter", [True])}
    return xr.Dataset(data, coords)


def parts():
    """Returns made-up results of all contestants: two nearly coincide, and many have no links."""
    every = enumerate(arena.LINE_UP.items())
    told = {name: 0 if entry.alone else 10.0 ** (i % 5 + 1) for i, (name, entry) in every}
    regret = {name: 2000 * 1.2**i for i, name in enumerate(told)}
    found = {"a": {name: made_up(regret[name], told[name]) for name in told}}
    near = found["a"]["cdp"]
    found["a"]["ddp"] = near.assign(regret=1.001 * near.regret)
    found["b"] = {
        f"{name}, {leak:g}": made_up(regret[name] / leak**0.3, told[name])
        for name in arena.AT_LEAK
        for leak in arena.LEAKS
    }
    found["c"] = {
        f"{name}, {words}": made_up(regret[name] * (1 + spread), told[name])
        for name in told
        for words, spread in arena.SPREADS.items()
    }
    return found


def rows_of(path):
    """Returns the rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_arenas_figures_are_legible_and_show_the_data(monkeypatch, tmp_path):
    """Catches 27 names that cover each other or leave the page, a table or its numbers that another
    file replaces, and a difference to CDP-MAB that is not paired."""
    kept, found = drawn(monkeypatch), parts()
    written = arena.draw({10**4: found}, tmp_path)
    names = [f"arena_{part}_T1e4" for part in ("regret", "links", "leak", "differ")]
    assert list(kept) == [f"{name}{end}" for name in names for end in ("", "_column")]
    assert len(set(written)) == len(written) == 4 * 6
    for name in names:
        legible(kept[name], 7.0)
        legible(kept[f"{name}_column"], 8.5 / 2.54)
        alt, caption = words_of(tmp_path / f"{name}.md")
        assert "4 seeds" in caption and "T = 10⁴ slots" in caption and len(alt) > 40
        assert "| DP-SE |" in (tmp_path / f"{name}.md").read_text("utf-8")
    last = {name: data.regret.isel(time=-1).values for name, data in found["a"].items()}
    regret = {
        (row["quantity"], row["curve"], row["slot"]): row
        for row in rows_of(tmp_path / "arena_regret_T1e4.csv")
    }
    end = str(10**4)
    assert float(regret["regret", "GosInE", end]["mean"]) == pytest.approx(last["gosine"].mean())
    more = regret["minus CDP-MAB, same seeds", "GosInE", end]
    own = common.interval(last["gosine"] - last["cdp"])
    assert [float(more[key]) for key in ("mean", "lower", "upper")] == pytest.approx(own)
    links = {row["algorithm"]: row for row in rows_of(tmp_path / "arena_links_T1e4.csv")}
    assert float(links["UCB1"]["numbers sent"]) == 0 < float(links["GosInE"]["links at T"])
    leaks = {
        (row["algorithm"], row["epsilon"]): row for row in rows_of(tmp_path / "arena_leak_T1e4.csv")
    }
    values = found["b"]["dp_se, 0.3"].regret.isel(time=-1).values
    assert float(leaks["DP-SE", "0.3"]["regret at T"]) == pytest.approx(values.mean())
    differ = {row["algorithm"]: row for row in rows_of(tmp_path / "arena_differ_T1e4.csv")}
    values = found["c"]["ucb1, agents differ"].regret.isel(time=-1).values
    assert float(differ["UCB1"]["agents differ"]) == pytest.approx(values.mean())


def test_curves_that_coincide_are_one_line_with_all_names():
    """Catches a curve that hides another, and one that is merged though it is elsewhere."""
    curve = np.array([1.0, 2.0, 4.0])
    means = {"cdp": curve, "hdp": curve * [1, 1, 1.02], "ddp": curve * 1.009}
    assert arena_figures._lines(list(means), means) == [["cdp", "ddp"], ["hdp"]]
    figure = parts()["a"]
    bands = {name: figure[name].regret.mean("seed").values for name in ("cdp", "ddp", "hdp")}
    assert arena_figures._lines(list(bands), bands) == [["cdp", "ddp"], ["hdp"]]


@pytest.mark.slow
def test_what_a_round_takes_is_legible_and_in_one_table(monkeypatch, tmp_path):
    """Catches panels that are too narrow for their ticks, and numbers of another graph or size."""
    kept = drawn(monkeypatch)
    monkeypatch.setattr(arena_protocols, "_draw_prices", lambda *_: [])
    arena_protocols.draw({}, tmp_path)
    legible(kept["arena_protocols"], 7.0)
    legible(kept["arena_protocols_column"], 8.5 / 2.54)
    words_of(tmp_path / "arena_protocols.md")
    rows = {
        (row["graph"], row["M"], row["protocol"]): row
        for row in rows_of(tmp_path / "arena_protocols.csv")
    }
    # A ring of 20: the farthest is 10 hops away, and GIS sends over each edge both ways but once.
    ring = rows["ring", "20", "GIS"]
    assert (ring["slots of a round"], ring["vectors of a round"]) == ("10", str(20 * 19))
    star = rows["star", "20", "SAC to one sink"]
    assert (star["slots of a round"], star["links of a round"]) == ("1", "19")
    assert {protocol for _, _, protocol in rows} >= {"gossip to 0.01", "gossip to 0.0001"}
