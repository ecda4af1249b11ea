"""What a comparison says of the runs besides their regret: leaks, views and links."""

import json
import math
from unittest import mock

import numpy as np
import pytest
import sizes
import xarray as xr
from refusals import refuses
from scipy import stats

import fmab_jax as fmab
from experiments.several import Entrant, least, places
from fmab_jax.algorithms.base import ledger_of
from fmab_jax.analysis import statements
from fmab_jax.analysis.costs import NOTHING, Cost, cost_of, exposure_of, leak_text
from fmab_jax.analysis.statements import Comparison, Participant, Question, p_text, tally


def stated(rows, leak, links=((1, 2, 4), (5, 6, 8)), **more):
    """A result that says so much of its ledger; links of two seeds on three meters at T."""
    ledger = [{"what": what, "leaks": [[epsilon, 1]]} for what, epsilon in rows]
    return xr.Dataset(
        {"links": (("seed", "time", "meter"), np.array([[[0, 0, 0], row] for row in links]))},
        {"priced": ("meter", [False, True, False]), "side": ("meter", ["server", "peer", "peer"])},
        {"ledger": json.dumps(ledger), "epsilon_message": leak, **more},
    )


def test_the_leak_is_that_of_who_is_told_most():
    """Would catch actions taken for messages, the least view, and a meter without a price."""
    both = [("sums over 9 agents", 0.5), ("single messages", 4.5), ("actions", None)]
    found = cost_of(stated(both, 4.5))
    # Links to the server always have a price; of the peers' meters, one has.
    assert found[:3] == (4.5, "single messages", (1 + 2 + 5 + 6) / 2)
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


def test_p_values_are_written():
    """Would catch "0.000" or a p-value of twice its size, and one below what t can know."""
    texts = {1.0: "1.000", 0.03249: "0.032", 0.001: "0.001", 0.00052: "0.00052"}
    texts |= {1.26e-7: "1.3×10⁻⁷", 1e-15: "10⁻¹⁵", 9e-16: "< 10⁻¹⁵", 0.0: "< 10⁻¹⁵"}
    assert {value: p_text(value) for value in texts} == texts


UNKNOWN = Cost()


def made(costs=(UNKNOWN, UNKNOWN), **changes):
    """A comparison, for its words."""
    runs = zip(("p = 0.2", "p = 0.4"), (186.0, 100.0), costs, strict=True)
    plain = {
        "participants": tuple(Participant.of(name, 100, mean, cost) for name, mean, cost in runs),
        "question": Question(1000, 0, "agents 5, arms 3"),
        **{"difference": 86.0, "lower": 85.0, "upper": 87.0, "p_value": 1e-20},
        **{"percent": 86.0, "percent_lower": 85.0, "percent_upper": 87.0, "adjusted": 1e-20},
    }
    return Comparison(**{**plain, **changes})


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87]"),
        (
            {
                **{"percent": -46.04, "percent_lower": -46.31, "percent_upper": -45.8},
                **{"difference": -86.0, "lower": -87.0, "upper": -85.0, "at": "ε = 1"},
            },
            "With ε = 1: p = 0.2 costs 46.0 % less regret than p = 0.4 [45.8, 46.3]",
        ),
        (
            {"adjusted": 0.2, "percent": 1.2, "percent_lower": 0.1, "percent_upper": 2.3},
            "No difference in regret is shown between p = 0.2 and p = 0.4: 1.2 % [0.1, 2.3]",
        ),
        ({"percent_lower": float("nan")}, "p = 0.2 costs 86 more regret than p = 0.4 [85, 87]"),
    ],
    ids=["more", "less", "none", "no percentage"],
)
def test_one_plain_sentence(changes, sentence):
    """Would catch a sign that is not turned with its words, and a verdict without adjustment."""
    assert made(**changes).sentence == sentence


def test_what_a_result_does_not_say_is_not_told():
    """Would catch a leak of 0, or no links, where an old file is silent."""
    silent = stated([], 3.0).drop_vars("links")
    assert np.isnan([cost_of(silent).leak, cost_of(silent).links]).all()
    assert cost_of(silent).view == "" and leak_text(cost_of(silent)) == ""
    assert made((cost_of(silent), Cost(1.0, "messages", 3.0))).sentence.endswith("[85, 87]")


ONE, SUM = "single messages", "sums over 50 agents"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((5, ONE, 190), (5, ONE, 190), f"leak ε = 5 each ({ONE}); links 190 each"),
        ((50, ONE, 250), (1, SUM, 639), f"leak ε = 50 ({ONE}) and 1 ({SUM}); links 250 and 639"),
        ((0, NOTHING, 0), (0, NOTHING, 0), "leak nothing each; links 0 each"),
        ((math.inf, ONE, 7), (math.inf, ONE, 7), f"leak no bound each ({ONE}); links 7 each"),
        ((), (), ""),
    ],
)
def test_leaks_and_links_of_two_runs_are_written(first, second, text):
    """Would catch one leak for both, views left out, sizes of unlike views, or numbers swapped."""
    found = made((Cost(*first), Cost(*second)))
    assert found.sentence == f"{made().sentence}{'; ' * bool(text)}{text}"


@pytest.mark.parametrize(
    ("first", "second", "size", "text"),
    [
        ((6, ONE, 38.125), (30, ONE, 190), "less", f"ε = 6 and 30 ({ONE})"),
        ((30, SUM, 38.125), (6, SUM, 190), "more", f"ε = 30 and 6 ({SUM})"),
        ((0, NOTHING, 1), (math.inf, ONE, 2), "less", f"nothing and no bound ({ONE})"),
        ((math.inf, ONE, 7), (2, ONE, 7), "more", f"no bound and ε = 2 ({ONE})"),
        ((math.inf, SUM, 7), (2, ONE, 7), "more", f"no bound ({SUM}) and ε = 2 ({ONE})"),
    ],
)
def test_of_unequal_leaks_the_sentence_is_about_regret_and_leak(first, second, size, text):
    """Would catch a verdict on regret alone where one leaks more, and which one turned round."""
    costs = Cost(*first), Cost(*second)
    links = f"links {' and '.join(dict.fromkeys(f'{each.links:.4g}' for each in costs))}"
    for changes in ({}, {"adjusted": 0.2}, {"difference": -86.0}):
        start = made(**changes).sentence
        told = made(costs, **changes).sentence
        assert told.startswith(f"{start}; p = 0.2 leaks {size}: {text}; {links}")


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
    pair = zip(told.participants, (few, all_), strict=True)
    for each, cost in pair:
        assert (each.view, each.links, each.trust) == cost[1:] and each.leak == leak_text(cost)
    assert "; p = 0.25 leaks less: ε = 0.5 and 2 (single messages); links " in told.sentence
    assert told.question.problem.startswith("agents 4, arms 3, problem drawn")


def entrants(trust="nobody", leak="1"):
    """Three that differ by 2 and by 100 in every seed; the last has a seed more."""
    base = np.array([10.0, 30.0, 20.0, 40.0])
    return [
        Entrant("B", trust, leak, base + 2),
        Entrant("A", "nobody", "1", base),
        Entrant("C, late", "nobody", "1", np.append(base + 100, -1e9)),
    ]


def test_who_has_the_least_is_said_with_who_is_absent():
    """Would catch absent entrants unsaid, a mean over the seeds of another, another interval,
    per cent of another mean, and a count of entrants that is off by one."""
    found = least("T = 9", entrants(), {"too slow": ["D", "E"], "unused": []})
    t, deviation = 3.182446, np.std([10, 30, 20, 40], ddof=1) / 2
    assert (found.best, found.behind, found.alike, found.entrants) == ("A", "B", (), 3)
    assert found.mean == pytest.approx((25, 25 - t * deviation, 25 + t * deviation), rel=1e-6)
    assert found.more == (2.0, 2.0, 2.0) and found.next.seeds == 4
    # The last one's own mean has the seed that only it has.
    seen = [(each.label, each.seeds) for each in found.participants]
    assert seen == [*(("A", 4), ("B", 4), ("C, late", 5))]
    assert found.participants[2].mean == (500 - 1e9) / 5
    assert found.sentence == (
        "T = 9: of 3 of 5 contestants, A has the least regret, 25 [4, 46] (4 seeds); B has "
        "2 [2, 2] more (8 %, 4 common seeds). Not run, too slow: D / E."
    )
    noisy = [
        Entrant("A", "x", "1", np.array([1.0, 2.0, 3.0])),
        Entrant("B", "x", "1", np.array([3.0, 2, 2])),
    ]
    close = least("All", noisy, {})
    assert close.sentence == (
        "All: A may have the least regret, 2.0 [-0.5, 4.5] (3 seeds); cannot be told from it: "
        "B, 2 [1, 4] (3 seeds)."
    )


def test_who_has_the_least_is_whoever_may_be_first():
    """Would catch everybody compared on the seeds of whoever has fewest, a best one by its mean,
    and who is surely worse than another left out, or said not to be told from the best."""
    base = np.random.default_rng(0).normal(60, 12, 1000)
    wide = np.random.default_rng(1).normal(0, 17, 1000)
    given = [
        Entrant("sure", "x", "1", base),
        Entrant("near", "x", "1", base + 4.4 + wide),
        Entrant("few", "x", "1", base[:10] + 500),
    ]
    found = least("All", given, {})
    assert (found.best, found.alike, found.behind) == ("sure", (), "near")
    # Of the ten seeds that all have, it could not be told.
    assert least("All", [e._replace(regret=e.regret[:10]) for e in given], {}).alike == ("near",)
    # Nobody is surely better than three; of the first most is known, though its mean is not the
    # smallest. One is surely worse than another of the three, but not than the first.
    base, noise, other = base[:100], np.tile([-9.0, 9.0], 50), np.tile([3.0, 3.0, -3.0, -3.0], 25)
    given = [
        Entrant("few", "x", "1", (base - 1 + other)[:8]),
        Entrant("torn", "x", "1", base + 1 + noise),
        Entrant("sharp", "x", "1", base - 0.5 + noise),
        Entrant("first", "x", "1", base),
        Entrant("far", "x", "1", base + 50),
        Entrant("next", "x", "1", base + 0.3),
        Entrant("last", "x", "1", base + 0.4),
    ]
    found = least("All", given, {})
    assert (found.best, found.alike) == ("first", ("sharp", "few"))
    assert (found.between, found.behind) == (("torn",), "next")
    assert min(each.mean for each in found.participants) < found.participants[0].mean
    ranks = places(given)
    assert {found.best, *found.alike} == {name for name, each in ranks.items() if each.first == 1}
    means = {each.label: each.regret.mean() for each in given}
    assert f"All: first may have the least regret, {means['first']:.0f} [" in found.sentence
    assert f"; surely worse than another, if not than it: torn, {means['torn']:.0f} [" in (
        found.sentence
    )


def test_intervals_of_differences_hold_together():
    """Would catch intervals, of differences or of ranks, that hold one by one, against the first
    one only, or only with one that is chosen beforehand."""
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
            found, ranks = least("All", given, {}), places(given)
            assert (found.alike == ("B",)) == (shift < 1)
            assert found.together == number * (number - 1) / 2
            assert ranks["A"].last == ranks["B"].last - 1 + (shift < 1) == 1 + (shift < 1)
            assert ranks["B"].first == 1 + (shift > 1)


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
    assert f" They differ in trust or leak {said}." in told
    # Of those that the sentence names: the last one is not named.
    far = mixed[0]._replace(regret=1e6 + mixed[0].regret)
    named = least("All", [mixed[1], mixed[2], far], {}, unlike=True)
    assert named.behind == "C, late"
    # But one of the same trust that leaks more is not passed over.
    assert ("(A: nobody, ε: 1 / C, late: nobody, ε: 1 / B:" in named.sentence) == ("leak" in unlike)
    assert "differ" in named.sentence
    others = " Others leak ε = 1." if "trust" in unlike else ""
    assert named.sentence.endswith(f").{others}")


def test_what_others_leak_is_said():
    """Would catch others that are passed over, a range with other ends, and no bound unsaid."""
    base = np.arange(9.0)
    given = [Entrant("A", "x", "1", base), Entrant("B", "x", "1", base + 1e2 + base)]
    leaks = ("0.5", "50", "3", "no bound", "nothing")
    for number, told in (
        (1, "ε = 0.5"),
        (2, "ε from 0.5 to 50"),
        (4, "ε from 0.5 to 50 or no bound"),
        (5, "ε from 0.5 to 50, nothing or no bound"),
    ):
        more = [
            Entrant(f"C{i}", "y", leak, base + 1e4 * (i + 1) + base)
            for i, leak in enumerate(leaks[:number])
        ]
        found = least("All", [*given, *more], {}, unlike=True).sentence
        assert found.endswith(f" (A: x, ε: 1 / B: x, ε: 1). Others leak {told}.")


def test_other_questions_are_refused():
    """Would catch regret at T = 10 ranked beside regret at T = 20."""
    base = np.arange(9.0)
    ten, twenty = Question(10, 0, "drawn"), Question(20, 0, "drawn")
    given = [Entrant("A", "x", "1", base, question=ten), Entrant("B", "x", "1", base + 1)]
    for function in (lambda given: least("All", given, {}), places):
        with pytest.raises(ValueError, match="^entrants=.* must be asked the same question; "):
            function([*given, Entrant("C", "x", "1", base + 2, question=twenty)])
    found = least("All", [given[0], given[1]._replace(question=ten)], {})
    assert found.question == ten


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
    refuses(told, least, "All", given, {})


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


@pytest.mark.parametrize("field", ["trust", "leak", "view", "accountant"])
def test_ranks_of_unlike_trust_are_refused_or_asked_for(field):
    """Would catch views or accountants that are ranked together unasked, and a label for two."""
    given = entrants()[:2]
    given[0] = given[0]._replace(**{field: 0.5 if field == "accountant" else "2"})
    for of in (places, lambda e, **more: least("All", e, {}, **more)):
        refuses("must be alike in whom they trust", of, given)
    assert places(given, unlike=True)["A"] == (1, 1, 4)
    refuses(r"^entrants=\['A'\]: must be of labels of their own", places, [given[1], given[1]])


TRUSTS = ("nobody, up to the epsilon of a message", "a secure sum")


@pytest.mark.parametrize(
    ("leaks", "trusts", "said"),
    [
        ((50.0, 1.0), TRUSTS, (" trusted:", f" “{TRUSTS[0]}” and “a secure sum”")),
        ((50.0, 1.0), ("", TRUSTS[1]), (" trusted:", " “not known” and “a secure sum”")),
        ((50.0, 1.0), TRUSTS[:1] * 2, ("", "")),
        ((50.0, math.inf), TRUSTS, ("", "")),
        ((math.inf, math.inf), TRUSTS, (" trusted:", f" “{TRUSTS[0]}” and “a secure sum”")),
    ],
)
def test_unlike_trust_is_said_of_two(leaks, trusts, said):
    """Would catch a gap between trust models told as one between algorithms."""
    first, second = (
        Cost(leak, "messages", trust=trust) for leak, trust in zip(leaks, trusts, strict=True)
    )
    assert made((first, second)).sentence.partition(" trusted:")[1:] == said


SECURE = "secure aggregation: nobody sees one agent's message"
OPEN = "; without a bound, whoever sees actions"
SERVER = "the server and the agents, with messages"


@pytest.mark.parametrize(
    ("algorithm", "trust"),
    [
        (fmab.cdp_mab(1), TRUSTS[0]),
        (fmab.cdp_mab(None), SERVER),
        (fmab.kl_se(1), TRUSTS[0]),
        (fmab.kl_se(1, secure=True), SECURE),
        (fmab.kl_se(None, secure=True), "the server, with sums over 4 agents"),
        (fmab.ddp_mab(1, graph="ring"), TRUSTS[0] + OPEN),
        (fmab.ddp_mab(1, graph="ring", private_waiting=True), TRUSTS[0]),
        (fmab.ddp_mab(1, graph="complete"), TRUSTS[0]),
        (fmab.demab(), "the server and the agents, with single messages"),
        (fmab.demab(1), TRUSTS[0]),
        (fmab.dp_imed(1), "nobody: nothing is told"),
        (fmab.dp_imed(1, secure=True), SECURE),
        (fmab.ucb1(), "nobody: nothing is told" + OPEN),
        (fmab.ucb1(pooled=True), SERVER),
        (fmab.lcc_ucb("ring"), "neighbours, with messages"),
    ],
    ids=str,
)
def test_trust_is_that_of_the_configuration_that_ran(algorithm, trust):
    """Would catch all that a class can be told of one configuration: a secure sum of a run without
    one, waits that are private said to be bare, "nobody" of a run without noise."""
    exchange = algorithm.exchange(4)
    leak = algorithm.privacy(exchange)["epsilon_message"]
    ledger = [
        {**seen._asdict(), "leaks": [[seen.epsilon if seen.epsilon < math.inf else None, 1]]}
        for seen in ledger_of(algorithm, exchange)
    ]
    attrs = {"ledger": json.dumps(ledger), "algorithm": algorithm.name, "epsilon_message": leak}
    assert exposure_of(xr.Dataset(attrs=attrs)).trust == trust


def test_trust_is_known_of_whoever_has_a_ledger():
    """Would catch "not known" of a plug-in whose results say who sees what, and a name for nobody
    where a ledger tells no names."""
    rows = [("CDP-MAB", "single messages", "")]
    assert cost_of(merged(rows, algorithm="somebody's")).trust == TRUSTS[0]
    open_ = merged(rows, algorithm="cdp")
    ledger = json.loads(open_.attrs["ledger"])
    ledger[0]["leaks"] = [[None, 1]]
    found = cost_of(open_.assign_attrs(ledger=json.dumps(ledger))).trust
    assert found == "whoever sees single messages"
    assert cost_of(stated([], 1.0)).trust == ""


def test_a_record_is_written_as_cells():
    """Would catch swapped columns, a leak of the other run, an interval of another number, and a
    verdict that is not that of the numbers."""
    costs = (Cost(6, "messages", 38.125, "A"), Cost(math.inf, "sums", 190, "B"))
    found = made(costs, at="<b>", lower=-85.5, percent_lower=-3.25)
    cells = found.cells()
    assert [*cells.values()] == [
        *("<b>", "p = 0.2", "p = 0.4", "6 (messages) and no bound", "186", "100"),
        *("+86", "[-85.5, +87]", "+86 %", "[-3.25, +87] %", "< 10⁻¹⁵", "< 10⁻¹⁵"),
    ]
    assert list(cells) == [
        *("at", "first", "second", "leaks ε", "regret, first", "regret, second"),
        *("difference", "interval", "per cent", "interval of it", "p-value", "p-value, Holm"),
    ]
    assert found.cells("messages")["leaks ε"] == "6 and no bound"
    assert found.how == "Paired by seed: Student's t of the differences; 100 seeds each"
    unknown = made(percent=math.nan, percent_lower=math.nan, percent_upper=math.nan).cells()
    assert unknown["per cent"] == unknown["interval of it"] == "–"
    assert unknown["leaks ε"] == ""


def test_counts_of_a_heading_are_counts_of_records():
    """Would catch a verdict without adjustment, and a count of pairs for that of verdicts."""
    less = {"difference": -86.0, "percent": -86.0}
    given = [made(), made(adjusted=0.051), made(**less), made(**less), made(**less, adjusted=0.2)]
    assert [each.verdict for each in given] == ["more", "not shown", "less", "less", "not shown"]
    assert tally(given) == ("5 comparisons: more regret 1, less 2, no difference shown 2")
    assert tally(given[:1]) == "1 comparison: more regret 1, less 0, no difference shown 0"


def at_matched_trust(**changes):
    """Three whose messages leak 1 to whoever reads them, under other words of trust."""
    found = [each._replace(view="single messages", trust=each.label) for each in entrants()]
    return [found[0]._replace(**changes), *found[1:]]


def test_matched_trust_is_named_once():
    """Would catch view, accountant or leak unsaid, said of each, or said where they differ."""
    absent = {"too slow": ["D"]}
    said = "of 3 of 4 contestants, A has the least regret, 25 [4, 46] (4 seeds); B has 2 [2, 2] "
    said += "more (8 %, 4 common seeds)."
    found = least("T = 9", at_matched_trust(), absent)
    expected = f"T = 9, by whoever reads single messages, pure ε = 1: {said} Not run, too slow: D."
    assert found.sentence == expected
    given = [each._replace(view="secure sums", accountant=1e-6) for each in at_matched_trust()]
    assert least("T = 9", given, absent).sentence.startswith(
        "T = 9, by whoever sees secure sums, ε = 1 up to δ = 10⁻⁶: of 3"
    )
    open_ = [each._replace(leak="no bound") for each in at_matched_trust()]
    assert least("All", open_, {}).sentence.startswith(
        "All, by whoever reads single messages, no bound: A has"
    )
    for changes, told in (
        ({"view": "sums"}, "B: B, sums, ε: 1"),
        ({"leak": "50"}, "B: B, single messages, ε: 50"),
        ({"accountant": 1e-6}, "B: B, single messages, ε: 1 up to δ = 10⁻⁶"),
    ):
        mixed = at_matched_trust(**changes)
        refuses("must be alike in whom they trust", least, "T = 9", mixed, {})
        assert least("T = 9", mixed, absent, unlike=True).sentence == (
            f"T = 9: {said} They differ in trust or leak (A: A, single messages, ε: 1 / {told}). "
            "Others leak ε = 1. Not run, too slow: D."
        )


def test_who_is_alike_is_not_said_to_differ():
    """Would catch "they differ" of two that trust the same and leak the same beside a third."""
    *alike, third = at_matched_trust()
    given = [*alike, third._replace(trust="C", leak="50")]
    given = [each._replace(trust="A") if each.label in "AB" else each for each in given]
    found = least("T = 9", given, {}, unlike=True)
    assert found.sentence.endswith(
        " Others differ from them in trust or leak (A: A, single messages, ε: 1 / B: A, single "
        "messages, ε: 1). Others leak ε = 50."
    )


def test_the_record_of_several():
    """Would catch sizes of another base, an interval that is not simultaneous, seeds of
    another, a rule or the absent left out, and somebody who is both there and absent."""
    rng = np.random.default_rng(1)
    base = rng.gamma(4, 10, 30)
    far = 1.5 * base + rng.normal(0, 2, 30)
    given = [
        Entrant("B", "x", "1", np.append(far, 9.0), "single messages"),
        Entrant("A", "x", "1", base, "single messages"),
        Entrant("C", "x", "1", base + rng.normal(0.4, 2, 30), "single messages"),
    ]
    given = [each._replace(question=Question(10, 0, "p")) for each in given]
    found = least("T", given, {"slow": ["D", "E"]}, 0.9)
    level = 1 - 0.1 / 3
    known = stats.ttest_rel(far, base).confidence_interval(level)
    assert found.more == pytest.approx(((far - base).mean(), *known), rel=1e-9)
    percent, *ends = found.next.percent
    assert percent == pytest.approx(100 * (far.mean() / base.mean() - 1), rel=1e-12)
    for end in ends:
        gone = stats.ttest_rel(far, (1 + end / 100) * base)
        assert gone.pvalue == pytest.approx(1 - level, rel=1e-6)
    assert ends[0] < percent < ends[1]
    known = stats.t.interval(0.9, 29, base.mean(), stats.sem(base))
    assert found.mean == pytest.approx((base.mean(), *known), rel=1e-9)
    assert (found.best, found.alike, found.behind, found.between) == ("A", ("C",), "B", ())
    assert found.participants[0] == (
        "A",
        30,
        base.mean(),
        "1",
        "single messages",
        "pure",
        "x",
        mock.ANY,
    )
    assert (found.question, found.level, found.together) == (Question(10, 0, "p"), 0.9, 3)
    assert (found.absent, found.about) == ({"slow": ("D", "E")}, "T")
    assert (found.next.seeds, found.entrants) == (30, 3)
    refuses(r"^absent=\['C'\]: must be who takes no part; ", least, "T", given, {"slow": ["C"]})
    for wrong in ("impure", 0, 1.5):
        with pytest.raises(ValueError, match=r"^accountant=.*; give \"pure\", or the delta"):
            least("T", [each._replace(accountant=wrong) for each in given], {})


def test_own_labels_stand_for_algorithms_and_final_tables_say_costs():
    """Would catch a label that is looked for among algorithms, so that its leak is unknown, and a
    table of final values that has no time."""
    data = fmab.sweep(
        {"mine": "cdp", "quiet": "ucb1"},
        problem=fmab.Problem.uniform(**sizes.SMALL),
        horizon=1000,
        seeds=20,
        epsilon=[0.5, 1.0],
    )
    table = fmab.final_table(data)
    assert table.leak_epsilon.values.tolist() == [[2.0, 4.0], [0.0, 0.0]]
    for one in (data, table):
        mine = cost_of(one.isel(algorithm=0, epsilon=1))
        assert (mine.leak, mine.view) == (4.0, "single messages")
        assert mine.trust == fmab.cdp_mab.trusted
        links = float(data.links.isel(algorithm=0, epsilon=1, time=-1).sel(meter="server").mean())
        assert mine.links == links
        quiet = cost_of(one.isel(algorithm=1, epsilon=1))
        assert (quiet.view, quiet.trust) == (NOTHING, "nobody: nothing is told" + OPEN)


def test_an_end_of_an_interval_that_is_not_0_is_not_written_as_0():
    """Would catch [−0.36, 4.68] that reads [0, 5], as if 0 were its end, and decimals for all."""
    cases = {
        (2.16, -0.36, 4.68): ("2.2", "[-0.4, 4.7]"),
        (2.16, 0.04, 4.68): ("2.16", "[0.04, 4.68]"),
        (361.2, 348.4, 374.1): ("361", "[348, 374]"),
        (2.5, 0.0, 5.0): ("2", "[0, 5]"),
    }
    assert {case: statements.with_ends(*case) for case in cases} == cases
