"""Sentences of figures: data that contradict what such a sentence once said, fixed, of them."""

import pytest
from test_experiments import made_up

import fmab_jax as fmab
from experiments import common, pictures, seen


def test_counts_and_signs_are_those_of_the_numbers():
    """Catches a lost sign, and names grouped under other words."""
    assert seen.percent(3, 200) == "+1.5 %" and seen.percent(-400, 200) == "-200 %"
    assert seen.percent(0, 200) == "0 %"
    assert seen.listed("abc") == "a, b and c" and seen.listed("a") == "a"
    assert seen.grouped({"a": "5", "b": "9", "c": "5"}) == "5 (a and c), 9 (b)"
    assert seen.grouped({"a": "5", "b": "5"}) == "5"
    assert seen.absent("abc", "b") == ["Not run, and so not shown: a and c"]
    assert seen.absent("ab", "ab") == []


def test_per_cent_are_drawn_where_an_effect_is_small():
    """Catches an axis for effects of 2 % or more, for 0 in every seed, or on another scale."""
    assert pictures.faint([(100, [50, -1.9])]) and not pictures.faint([(100, [2, 0, -30])])
    page = pictures.Page()
    ((panel, other),) = page.panels(["difference"], ["", ""])
    panel.set_ylim(0, 30), other.set_ylim(0, 6)
    page.percent([panel, other], [2000, 300], [[25, 20], [5]])
    page.finish()
    page.figure.canvas.draw()
    ends = [axes.child_axes[0].get_ylim() for axes in (panel, other)]
    assert ends == [pytest.approx((0, 1.5)), pytest.approx((0, 2))]


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
