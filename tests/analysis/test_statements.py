"""What a comparison says of the runs besides their regret: leaks, views and links."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sizes
import xarray as xr

import fmab_jax as fmab
from fmab_jax.analysis.statements import (
    NOTHING,
    Cost,
    Entrant,
    Participant,
    Question,
    cost_of,
    leak_text,
    least,
    places,
    tally,
)


def stated(rows, leak, links=((1, 2, 4), (5, 6, 8)), **more):
    """A result that says so much of its ledger; links of two seeds on three meters at T."""
    ledger = [{"what": what, "leaks": [[epsilon, 1]]} for what, epsilon in rows]
    return xr.Dataset(
        {"links": (("seed", "time", "meter"), np.array([[[0, 0, 0], row] for row in links]))},
        {
            "priced": ("meter", [False, True, False]),
            "side": ("meter", ["server", "peer", "peer"]),
        },
        {"ledger": json.dumps(ledger), "epsilon_message": leak, **more},
    )


def test_the_leak_is_that_of_who_is_told_most():
    """Would catch actions taken for messages, the least view, and a meter without a price."""
    both = [("sums over 9 agents", 0.5), ("single messages", 4.5), ("actions", None)]
    found = cost_of(stated(both, 4.5))
    # Links to the server always have a price; of the peers' meters, one has.
    assert found == Cost(4.5, "single messages", (1 + 2 + 5 + 6) / 2)
    open_ = cost_of(stated([("messages", None), ("sums over 9 agents", 2.0)], math.inf))
    assert open_[:2] == (math.inf, "messages")
    assert cost_of(stated([("actions", 1.0)], 1.0))[:2] == (0.0, NOTHING)
    # What is stated of privacy claims nothing that the ledger does not.
    assert cost_of(stated([("messages", None)], 0.5)).leak == math.inf
    # A ledger of several configurations leaves it to the coordinate of one, but for its least.
    several = stated(both, 99.0)
    ledger = json.loads(several.attrs["ledger"])
    ledger[1]["leaks"] = [[4.5, 1], [9.0, 1], [None, 1]]
    several.attrs["ledger"] = json.dumps(ledger)
    for said, leak in ((9.0, 9.0), ("none", math.inf), (1.0, 4.5)):
        assert cost_of(several.assign_coords(epsilon_message=said)).leak == leak


def merged(rows, **coords):
    """A configuration of a sweep whose ledger has rows (title, what, where)."""
    ledger = [
        {"title": title, "what": what, "where": where, "leaks": [[1.0, 1]]}
        for title, what, where in rows
    ]
    return stated([], 3.0).assign_attrs(ledger=json.dumps(ledger)).assign_coords(coords)


POOLED = [("T", "actions", ""), ("T", "messages", "pooled True")]
NOISY = [
    ("T", "single messages", "epsilon 0.5 or 1, graph 2,3:ring or star"),
    ("T", "messages", "epsilon none"),
    ("T", "actions", ""),
]
BOTH = [
    ("CDP-MAB", "single messages", ""),
    ("Dist-DP-SE", "sums over 4 agents", ""),
    ("Single-agent MAB", "actions", ""),
]


@pytest.mark.parametrize(
    ("rows", "coords", "view"),
    [
        (POOLED, {"pooled": "True"}, "messages"),
        (POOLED, {"pooled": "False"}, NOTHING),
        (POOLED, {}, ""),  # which of the two it is was dropped
        (NOISY, {"epsilon": 1.0, "graph": "star"}, "single messages"),
        (NOISY, {"epsilon": "0.5", "graph": "2,3:ring"}, "single messages"),
        (NOISY, {"epsilon": "none", "graph": "star"}, "messages"),
        (NOISY, {"epsilon": 1.0, "graph": "path"}, NOTHING),
        (BOTH, {"algorithm": "cdp"}, "single messages"),
        (BOTH, {"algorithm": "dist_dp_se"}, "sums over 4 agents"),
        (BOTH, {"algorithm": "single"}, NOTHING),
        (BOTH, {"algorithm": "somebody's"}, ""),
        (BOTH, {}, ""),
    ],
)
def test_the_ledger_of_a_sweep_is_read_for_one_configuration(rows, coords, view):
    """Would catch what one algorithm, or one value, tells told of another."""
    assert cost_of(merged(rows, **coords)).view == view


def test_what_a_result_does_not_say_is_not_told():
    """Would catch a leak of 0, or no links, where an old file is silent."""
    silent = stated([], 3.0).drop_vars("links")
    assert np.isnan([cost_of(silent).leak, cost_of(silent).links]).all()
    assert cost_of(silent).view == "" and leak_text(cost_of(silent)) == ""
    assert costs(cost_of(silent), Cost(1.0, "messages", 3.0)) == ""


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            Cost(6, "single messages", 38.125),
            Cost(30, "single messages", 190),
            "leak ε = 6 and 30, links 38.12 and 190",
        ),
        (
            Cost(5, "single messages", 190),
            Cost(5, "single messages", 190),
            "leak ε = 5 each, links 190 each",
        ),
        (
            Cost(50, "single messages", 250),
            Cost(1, "sums over 50 agents", 639),
            "leak ε = 50 (single messages) and 1 (sums over 50 agents), links 250 and 639",
        ),
        (
            Cost(0, NOTHING, 0),
            Cost(math.inf, "messages", math.nan),
            "leak nothing and no bound (messages)",
        ),
        (
            Cost(math.inf, "messages", 7),
            Cost(2, "messages", 7),
            "leak no bound and ε = 2, links 7 each",
        ),
        (Cost(), Cost(), ""),
    ],
)
def test_leaks_and_links_of_two_runs_are_written(first, second, text):
    """Would catch one leak for both, views left out where they differ, or numbers swapped."""
    assert costs(first, second) == text


def test_runs_and_sweeps_say_what_they_cost():
    """Would catch the leak of one configuration told of another, or links of one seed."""
    grid = dict(participation=[0.25, 1.0], epsilon=0.5, horizon=20_000, seeds=16, times=10)
    swept = {
        keep: fmab.sweep("cdp", **sizes.SMALL, **grid, keep=keep, progress=False)
        for keep in ("curves", "summary")
    }
    for number, heard in enumerate((1, 4)):
        cell = swept["curves"].isel(participation=number)
        found = cost_of(cell)
        assert found[:2] == (0.5 * heard, "single messages")
        rounds = cell.rounds_made.values.mean()
        assert found.links == pytest.approx(heard * rounds, rel=1e-12) and rounds > 0
        kept = cost_of(swept["summary"].isel(participation=number))
        assert kept[:2] == found[:2] and kept.links == pytest.approx(found.links, rel=1e-12)
    (told,) = fmab.compare_all(swept["curves"])
    few, all_ = (cost_of(swept["curves"].isel(participation=n)) for n in (0, 1))
    assert told.costs == (few, all_)
    assert told.sentence.endswith(f"; {costs(few, all_)}")
    assert "leak ε = 0.5 and 2, links " in told.sentence


def entrants(trust="nobody", leak="1"):
    """Three that differ by 2 and by 100 in every seed; the last has a seed more."""
    base = np.array([10.0, 30.0, 20.0, 40.0])
    return [
        Entrant("B", trust, leak, base + 2),
        Entrant("A", "nobody", "1", base),
        Entrant("C, late", "nobody", "1", np.append(base + 100, -1e9)),
    ]


def test_who_has_the_least_is_said_with_who_is_absent():
    """Would catch absent entrants unsaid, a mean over seeds that not all have, another interval,
    per cent of another mean, and a count of entrants that is off by one."""
    found = least("T = 9", entrants(), {"too slow": ["D", "E"], "unused": []})
    t, deviation = 3.182446, np.std([10, 30, 20, 40], ddof=1) / 2
    assert (found.best, found.behind, found.alike, found.entrants) == ("A", "B", (), 3)
    assert found.mean == pytest.approx((25, 25 - t * deviation, 25 + t * deviation), rel=1e-6)
    assert found.more == (2.0, 2.0, 2.0) and (found.seeds, found.most) == (4, 5)
    assert found.sentence == (
        "T = 9: of 3 of 5 contestants, A has the smallest mean, 25 [4, 46]; B has 2 [2, 2] more "
        "(8 %) (4 seeds, those that all have). Not run, too slow: D / E."
    )
    noisy = [
        Entrant("A", "x", "1", np.array([1.0, 2.0, 3.0])),
        Entrant("B", "x", "1", np.array([3.0, 2, 2])),
    ]
    close = least("All", noisy, {})
    assert close.sentence == (
        "All: A has the smallest mean, 2 [-0, 4]; cannot be told from it: B (3 seeds)."
    )


def test_intervals_of_differences_hold_together():
    """Would catch intervals that hold one by one, or for one entrant too many."""
    apart = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])  # 1 on average, deviation 1.58
    base = np.array([10.0, 30.0, 20.0, 50.0, 40.0])
    # Student t with 4 degrees of freedom, at 95 %, 97.5 % and 98.33 %.
    for number, t in {2: 2.776445, 3: 3.495406, 4: 3.960802}.items():
        edge = t * math.sqrt(2.5 / 5)
        for shift in (0.999, 1.001):
            given = [Entrant("A", "x", "1", base)]
            given += [Entrant("B", "x", "1", base + apart - 1 + shift * edge)]
            given += [Entrant(name, "x", "1", base + 1e3) for name in "CD"[: number - 2]]
            assert (least("All", given, {}).alike == ("B",)) == (shift < 1)


@pytest.mark.parametrize(
    ("unlike", "said"),
    [
        ({"trust": "a secure sum"}, "(A: nobody, ε: 1 / B: a secure sum, ε: 1)"),
        ({"leak": "50"}, "(A: nobody, ε: 1 / B: nobody, ε: 50)"),
    ],
)
def test_unlike_trust_or_leak_is_refused_or_said(unlike, said):
    """Would catch a secure sum, or a leak of 50, ranked beside others without a word."""
    mixed = entrants(**unlike)
    with pytest.raises(
        ValueError, match=r"^entrants=\[\('nobody', 'pure', '1'\), .*: must be alike in"
    ):
        least("All", mixed[::-1] if unlike.get("leak") else mixed[1:] + [entrants(leak="2")[0]], {})
    told = least("All", mixed, {}, unlike=True).sentence
    assert told.endswith(f" They differ in trust or leak {said}.")
    # Of those that the sentence names: the last one is not named.
    far = mixed[0]._replace(regret=1e6 + mixed[0].regret)
    named = least("All", [mixed[1], mixed[2], far], {}, unlike=True)
    assert named.behind == "C, late"
    # But one of the same trust that leaks more is not passed over.
    assert ("(A: nobody, ε: 1 / C, late: nobody, ε: 1 / B:" in named.sentence) == ("leak" in unlike)
    assert ("differ" in named.sentence) == ("leak" in unlike)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], r"^entrants=\[\]: must be at least one; "),
        ([Entrant("A", "x", "1", np.array([1, np.nan]))], r"^entrants=\['A'\]: must be of finite"),
        (
            [Entrant("A", "x", "1", np.ones(1))],
            r"^entrants='1 common seeds': must be at least 2 seeds",
        ),
    ],
)
def test_nobody_wins_alone_or_with_one_seed(given, told):
    """Would catch a winner of nothing, and an interval of one number."""
    with pytest.raises(ValueError, match=told):
        least("All", given, {})


def in_step(**shifts):
    """Contestants that differ from the first by a shift and a little noise, in so many seeds."""
    base = np.linspace(100, 200, 40)
    noise = np.tile([-1.0, 1.0], 20)
    return [
        Entrant(name, "nobody", "1", (base + shift + wide * noise * (-1) ** place)[:seeds])
        for place, (name, (shift, wide, seeds)) in enumerate(shifts.items())
    ]


def test_ranks_that_are_left_open_are_told():
    """Would catch a rank by the mean alone, ends that are swapped or off by one, means of unequal
    seeds, common seeds of all in place of each two, and a pair counted for one side only."""
    given = in_step(D=(3, 0, 40), B=(0.1, 1, 40), A=(0, 1, 40), C=(30, 1, 4))
    # C's 4 seeds are those of the smallest regret: its own mean is below that of the others.
    assert given[3].regret.mean() < min(each.regret.mean() - 1 for each in given[:2])
    found = places(given, 0.95)
    # B and A: 0.1 with a standard error of 0.3; D is above both by 10 errors and more.
    assert list(found) == ["B", "A", "D", "C"]
    assert [each[:2] for each in found.values()] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert [each.seeds for each in found.values()] == [40, 40, 40, 4]
    assert [each.text for each in found.values()] == ["1–2", "1–2", "3", "4"]
    # Of four seeds all pairs would be open: each two have their own.
    assert {
        each[:2] for each in places([e._replace(regret=e.regret[:2]) for e in given[:3]]).values()
    } == {(1, 3)}
    assert places(given[:1]) == {"D": (1, 1, 40)}
    assert places([given[0], given[0]._replace(label="Dd")])["Dd"] == (1, 2, 40)


def test_ranks_hold_for_all_pairs_together():
    """Would catch intervals of ranks that hold one by one, or against the first one only."""
    apart = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])  # 1 on average, deviation 1.58
    base = np.array([10.0, 30.0, 20.0, 50.0, 40.0])
    # Student t with 4 degrees of freedom for 1, 3 and 6 pairs at 95 %.
    for number, t in {2: 2.776445, 3: 3.960786, 4: 4.851008}.items():
        edge = t * math.sqrt(2.5 / 5)
        for shift in (0.999, 1.001):
            given = [Entrant("A", "x", "1", base)]
            given += [Entrant("B", "x", "1", base + apart - 1 + shift * edge)]
            far = zip("CD"[: number - 2], (1e3, 2e3), strict=False)
            given += [Entrant(name, "x", "1", base + away) for name, away in far]
            found = places(given)
            assert found["A"].last == found["B"].last - 1 + (shift < 1) == 1 + (shift < 1)
            assert found["B"].first == 1 + (shift > 1)


@pytest.mark.parametrize("field", ["trust", "leak", "view", "accountant"])
def test_ranks_of_unlike_trust_are_refused_or_asked_for(field):
    """Would catch views or accountants that are ranked together unasked, and a label for two."""
    given = entrants()[:2]
    given[0] = given[0]._replace(**{field: "2"})
    for of in (places, lambda e, **more: least("All", e, {}, **more)):
        with pytest.raises(ValueError, match="must be alike in whom they trust"):
            of(given)
    assert places(given, unlike=True)["A"] == (1, 1, 4)
    with pytest.raises(ValueError, match=r"^entrants=\['A'\]: must be of labels of their own"):
        places([given[1], given[1]])
