"""Sentences of figures: data that contradict what such a sentence once said, fixed, of them."""

from importlib import import_module

import numpy as np
import pytest
from legibility import published
from test_experiments import made_up

import fmab_jax as fmab
from experiments import arena_protocols, common, pictures, seen


def around(*means, half=1.0):
    """Returns points with intervals of one width."""
    return [(mean, mean - half, mean + half) for mean in means]


def test_a_course_is_a_rise_or_a_fall_only_where_every_step_is():
    """Catches a rise read from two ends or open intervals, and ends as smallest and largest."""
    assert seen.course(around(1, 5, 9)) == "rises from 1 to 9"
    assert seen.course(around(9, 5, 1)) == "falls from 9 to 1"
    # Agents alone at T = 10^4 in figure 13, of which a fixed sentence said that they rise.
    alone = around(441_151, 441_124, 441_142, 441_133, 441_147)
    assert seen.course(alone) == "lies between 441,124 and 441,151"
    assert seen.course(around(1, 9, 5)) == "lies between 1 and 9"
    assert seen.course(around(1, 2, 3)) == "lies between 1 and 3"
    assert seen.course(around(3, 2, 1)) == "lies between 1 and 3"
    assert seen.course(around(4, 4)) == seen.course(around(4)) == "is 4"
    assert seen.course(around(0.1, 0.9, half=0.1), "{:.1f}".format) == "rises from 0.1 to 0.9"


def test_counts_and_signs_are_those_of_the_numbers():
    """Catches "each" of some, an interval over 0 counted on a side, 2 % of another reference."""
    assert seen.tally([True, True], "lines") == "each of 2 lines"
    assert seen.tally([True, False, False], "lines") == "1 of 3 lines"
    assert seen.tally([False] * 3, "lines") == "none of 3 lines"
    told = "Of 4 points, the interval lies above 0 in 1 and below 0 in 2"
    assert seen.sides(around(5, 0.5, -2, -1.5), "points") == told
    assert seen.percent(3, 200) == "+1.5 %" and seen.percent(-400, 200) == "-200 %"
    assert seen.percent(0, 200) == "0 %"
    assert seen.most([(1, 100), (-3, 200), (0, 1)]) == "at most 1.5 %"
    assert seen.listed("abc") == "a, b and c" and seen.listed("a") == "a"
    assert seen.grouped({"a": "5", "b": "9", "c": "5"}) == "5 (a and c), 9 (b)"
    assert seen.grouped({"a": "5", "b": "5"}) == "5"
    assert seen.absent("abc", "b") == ["Not run, and so not shown: a and c"]
    assert seen.absent("ab", "ab") == []


def test_per_cent_are_drawn_where_an_effect_is_small():
    """Catches an axis for effects of 2 % or more, for 0 in every seed, or on another scale."""
    assert pictures.faint([(100, [50, -1.9])]) and not pictures.faint([(100, [2, 0, -30])])
    page = pictures.Page(narrow=False)
    ((panel, other),) = page.panels(["difference"], ["", ""])
    panel.set_ylim(0, 30), other.set_ylim(0, 6)
    page.percent([panel, other], [2000, 300], [[25, 20], [5]])
    page.finish()
    page.figure.canvas.draw()
    ends = [axes.child_axes[0].get_ylim() for axes in (panel, other)]
    assert ends == [pytest.approx((0, 1.5)), pytest.approx((0, 2))]
    page = pictures.Page(narrow=False)
    ((panel,),) = page.panels(["difference"], [""])
    page.percent([panel], [100], [[25]])
    assert panel.child_axes == []


def levels(data, values):
    """Sets the regret of every configuration, at all slots, with little between the seeds."""
    spread = 1 + 1e-7 * np.arange(data.sizes["seed"])[:, None]
    data["regret"].values[:] = np.asarray(values, float)[..., None, None] * spread


ALONE = [441_151, 441_124, 441_142, 441_133, 441_147]
# Figure: regrets in the order of its configurations, and what its words then say. Algorithms are in
# the order Single, CDP, DDP, HDP; spreads from 0 to 1.
GIVEN = {
    "fig13_heterogeneity": (
        [ALONE, [0.1] * 5, range(9, 4, -1), [2] * 5],
        ["agents alone lies between 441,124 and 441,151; DDP-MAB falls from 9 to 5;"],
    ),
    # HDP-MAB pays less than CDP-MAB where agents are alike; DDP-MAB pays less where they differ.
    "fig12_heterogeneous_structures": (
        [[100, 100], [110, 105], [90, 130]],
        [
            "above 0 in 3 and below 0 in 1. Where agents differ it is larger",
            "in 1 of 2 pairs of a structure and a T.",
            "-10, -10 % (HDP",
        ],
    ),
    "fig10_graphs": (
        [100, 150, 100, 90],
        ["They are at most 50 % of the regret", "in 1 and below 0 in 1"],
    ),
    "fig08_heterogeneous_central": (
        [[5, 5], [100, 130]],
        ["The two curves of CDP-MAB differ by at most 30 % at T"],
    ),
    "fig04_epsilon": (
        [7, 9, 8, 9, 6],
        ["what it adds lies between 1 and 3.", "100 to 100 % of a curve's"],
    ),
    "fig05_participation": ([6, 7, 8, 9, 5], ["the difference rises from 1 to 4."]),
    "fig06_rounds": ([[6, 7, 8, 9, 5]] * 2, ["the difference rises from 1 to 4."]),
}


@pytest.mark.parametrize("name", GIVEN)
def test_sentences_of_figures_give_way_to_their_data(monkeypatch, tmp_path, name):
    """Catches a figure that says of any data what a fixed sentence says."""
    values, told = GIVEN[name]
    kept = published(monkeypatch)
    data = made_up(monkeypatch, name, 10**4, seeds=5)
    levels(data, values)
    import_module(f"experiments.{name}").draw({10**4: data}, tmp_path)
    text = kept[name].alt + kept[name].caption
    assert [words for words in told if words not in text] == []


def test_the_trade_off_takes_regret_cost_and_leak(monkeypatch, tmp_path):
    """Catches rises told as falls, points on others as alone, a pair beaten by a larger leak."""
    # [gap, p, R]: regret falls with R, but not with p = 0.4; more agents have less.
    falls = np.array([[60, 50, 40, 30, 70.0], [60, 50, 55, 30, 70], *[[6, 5, 4, 3, 7.0]] * 3])
    name = "fig07_tradeoff"
    kept = published(monkeypatch)
    data = made_up(monkeypatch, name, 10**4, seeds=5)
    levels(data, [falls, falls])
    # Links: with p = 0.2 and 0.4 alike, so that equal regrets are on one spot.
    links = np.array([1, 2, 3, 4, 5.0])[None, None, :] * np.array([1, 1, 3, 4, 5.0])[None, :, None]
    data["links"] = data.links.astype(float)
    data["links"].values[:] = links[..., None, None, None]
    import_module(f"experiments.{name}").draw({10**4: data}, tmp_path)
    picture = kept[name]
    assert picture.alt.startswith("In 4 of 5 lines, a line for each p and T, ")
    assert "alike are p = 0.2, R = 2 / p = 0.4, R = 2; " in picture.caption
    rows = {(row["p"], row["R"]): row["beaten in regret, cost and leak"] for row in picture.rows}
    # Of p = 0.2, only no budget: it costs more than R = 5 for more regret.
    assert [rows[0.2, R] for R in ("2", "3", "4", "5", "no budget")] == [False] * 4 + [True]
    # All of p = 0.4 have as much regret, cost as much and leak more; p = 0.6 has less regret.
    assert all(rows[0.4, R] for R in ("2", "3", "4", "5", "no budget"))
    assert [rows[0.6, R] for R in ("2", "3", "4", "5", "no budget")] == [False] * 4 + [True]
    # With p = 1, regret is that of p = 0.6, cost and leak are more.
    assert all(rows[1, R] for R in ("2", "3", "4", "5", "no budget"))
    assert "4 of 25 at T = 10⁴" not in picture.alt and "8 of 25 at T = 10⁴" in picture.alt


def test_leaks_are_those_of_the_ledger():
    """Would catch a leak that forgets N, that counts actions, or one where nobody is told."""
    members = {"a": fmab.cdp_mab(1, participation=0.2), "b": fmab.single_mab(1)}
    members |= {"c": fmab.cdp_mab(None), "d": fmab.ddp_mab(0.5, graph="ring")}
    told = common.leaks(members, 50).partition(": ")[2]
    assert told == "Nε = 10 (a), nothing is sent (b), no bound (c), Nε = 25 (d)"


def test_seeds_are_told_where_they_differ(monkeypatch):
    """Would catch the seeds of the first horizon told for all."""
    few, many = (made_up(monkeypatch, "fig04_epsilon", 10**4, seeds) for seeds in (3, 5))
    assert common.seeds_of({10**4: [many], 10**5: [many]}) == "5 seeds"
    told = "5 (T = 10⁴), 3 or 5 (T = 10⁵) seeds"
    assert common.seeds_of({10**4: [many], 10**5: [many, few]}) == told


def test_gossip_is_slower_only_where_it_is():
    """Would catch gossip said to take more slots than all others where it takes fewer."""
    own = {"GIS": 4, "flooding": 8, "gossip to 1e-2": 16, "SAC to one sink": 2}
    slots = {("ring", 5): own, ("ring", 10): own | {"gossip to 1e-2": 4}}
    assert arena_protocols._slower(slots) == (
        "Gossip to 0.01 takes more slots than the slowest of the others in 1 of 2 pairs of a graph "
        "and an M, 0.5 to 2 times as many."
    )
    told = arena_protocols._alike({"slots of a round": slots})
    assert told == "as many of slots in none of 2 pairs of a graph and an M"
