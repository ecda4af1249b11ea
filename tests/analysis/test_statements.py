"""What a comparison says of the runs besides their regret: leaks, views and links."""

import json
import math

import numpy as np
import pytest
import sizes
import xarray as xr

import fmab_jax as fmab
from fmab_jax.algorithms.base import ledger_of
from fmab_jax.analysis import statements
from fmab_jax.analysis.costs import NO_MESSAGES, Cost, read_cost, read_exposure, write_leak
from fmab_jax.analysis.statements import Comparison, Participant, Question, write_p_value


def stated(rows, leak, links=((1, 2, 4), (5, 6, 8)), **more):
    """A result that says so much of its ledger; links of two seeds on three meters at T."""
    ledger = [{"observation": what, "leaks": [[epsilon, 1]]} for what, epsilon in rows]
    return xr.Dataset(
        {"links": (("seed", "time", "meter"), np.array([[[0, 0, 0], row] for row in links]))},
        {"priced": ("meter", [False, True, False]), "side": ("meter", ["server", "peer", "peer"])},
        {"ledger": json.dumps(ledger), "epsilon_message": leak, **more},
    )


def test_the_leak_is_that_of_who_is_told_most():
    """Would catch actions taken for messages, the least view, and a meter without a price."""
    both = [("sums over 9 agents", 0.5), ("single messages", 4.5), ("actions", None)]
    found = read_cost(stated(both, 4.5))
    # Links to the server always have a price; of the peers' meters, one has.
    assert found[:3] == (4.5, "single messages", (1 + 2 + 5 + 6) / 2)
    open_ = read_cost(stated([("messages", None), ("sums over 9 agents", 2.0)], math.inf))
    assert open_[:2] == (math.inf, "messages")
    assert read_cost(stated([("actions", 1.0)], 1.0))[:2] == (0.0, NO_MESSAGES)
    # What is stated of privacy claims nothing that the ledger does not.
    assert read_cost(stated([("messages", None)], 0.5)).leak == math.inf
    # A ledger of several configurations leaves it to the coordinate of one, but for its least.
    several = stated(both, 99.0)
    ledger = json.loads(several.attrs["ledger"])
    ledger[1]["leaks"] = [[4.5, 1], [9.0, 1], [None, 1]]
    several.attrs["ledger"] = json.dumps(ledger)
    for said, leak in ((9.0, 9.0), ("none", math.inf), (1.0, 4.5)):
        assert read_cost(several.assign_coords(epsilon_message=said)).leak == leak


def merged(rows, **coords):
    """A configuration of a sweep whose ledger has rows (title, what, where)."""
    ledger = [
        {"title": title, "observation": what, "where": where, "leaks": [[1.0, 1]]}
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
        (POOLED, {"pooled": "False"}, NO_MESSAGES),
        (POOLED, {}, ""),  # which of the two it is was dropped
        (NOISY, {"epsilon": 1.0, "graph": "star"}, "single messages"),
        (NOISY, {"epsilon": "0.5", "graph": "2,3:ring"}, "single messages"),
        (NOISY, {"epsilon": "none", "graph": "star"}, "messages"),
        (NOISY, {"epsilon": 1.0, "graph": "path"}, NO_MESSAGES),
        (BOTH, {"algorithm": "cdp"}, "single messages"),
        (BOTH, {"algorithm": "dist_dp_se"}, "sums over 4 agents"),
        (BOTH, {"algorithm": "single"}, NO_MESSAGES),
        (BOTH, {"algorithm": "somebody's"}, ""),
        (BOTH, {}, ""),
    ],
)
def test_the_ledger_of_a_sweep_is_read_for_one_configuration(rows, coords, view):
    """Would catch what one algorithm, or one value, tells told of another."""
    assert read_cost(merged(rows, **coords)).view == view


def test_p_values_are_written():
    """Would catch "0.000" or a p-value of twice its size, and one below what t can know."""
    texts = {1.0: "1.000", 0.03249: "0.032", 0.001: "0.001", 0.00052: "0.00052"}
    texts |= {1.26e-7: "1.3×10⁻⁷", 1e-15: "10⁻¹⁵", 9e-16: "< 10⁻¹⁵", 0.0: "< 10⁻¹⁵"}
    assert {value: write_p_value(value) for value in texts} == texts


UNKNOWN = Cost()


def made(costs=(UNKNOWN, UNKNOWN), **changes):
    """A comparison, for its words."""
    runs = zip(("p = 0.2", "p = 0.4"), (186.0, 100.0), costs, strict=True)
    plain = {
        "participants": tuple(
            Participant.from_cost(name, 100, mean, cost) for name, mean, cost in runs
        ),
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


ONE, SUM = "single messages", "sums over 50 agents"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((5, ONE, 190), (5, ONE, 190), f"leak ε = 5 each ({ONE}); links 190 each"),
        ((50, ONE, 250), (1, SUM, 639), f"leak ε = 50 ({ONE}) and 1 ({SUM}); links 250 and 639"),
        ((0, NO_MESSAGES, 0), (0, NO_MESSAGES, 0), "leak nothing each; links 0 each"),
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
        ((0, NO_MESSAGES, 1), (math.inf, ONE, 2), "less", f"nothing and no bound ({ONE})"),
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
        found = read_cost(cell)
        assert found[:2] == (0.5 * heard, "single messages")
        rounds = cell.rounds_made.values.mean()
        assert found.links == pytest.approx(heard * rounds, rel=1e-12) and rounds > 0
        kept = read_cost(swept["summary"].isel(participation=number))
        assert kept[:2] == found[:2] and kept.links == pytest.approx(found.links, rel=1e-12)
    (told,) = fmab.compare_all(swept["curves"])
    few, all_ = (read_cost(swept["curves"].isel(participation=n)) for n in (0, 1))
    pair = zip(told.participants, (few, all_), strict=True)
    for each, cost in pair:
        assert (each.view, each.links, each.trust) == cost[1:] and each.leak == write_leak(cost)
    assert "; p = 0.25 leaks less: ε = 0.5 and 2 (single messages); links " in told.sentence
    assert told.question.problem.startswith("agents 4, arms 3, problem drawn")


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
        (fmab.kl_se(1, secure=True), SECURE),
        (fmab.kl_se(None, secure=True), "the server, with sums over 4 agents"),
        (fmab.ddp_mab(1, graph="ring"), TRUSTS[0] + OPEN),
        (fmab.ddp_mab(1, graph="ring", private_waiting=True), TRUSTS[0]),
        (fmab.demab(), "the server and the agents, with single messages"),
        (fmab.dp_imed(1), "nobody: nothing is told"),
        (fmab.ucb1(), "nobody: nothing is told" + OPEN),
        (fmab.ucb1(pooled=True), SERVER),
        (fmab.lcc_ucb("ring"), "neighbours, with messages"),
    ],
    ids=str,
)
def test_trust_is_that_of_the_configuration_that_ran(algorithm, trust):
    """Would catch all that a class can be told of one configuration."""
    exchange = algorithm.exchange(4)
    leak = algorithm.privacy(exchange)["epsilon_message"]
    ledger = [
        {**seen._asdict(), "leaks": [[seen.epsilon if seen.epsilon < math.inf else None, 1]]}
        for seen in ledger_of(algorithm, exchange)
    ]
    attrs = {"ledger": json.dumps(ledger), "algorithm": algorithm.name, "epsilon_message": leak}
    assert read_exposure(xr.Dataset(attrs=attrs)).trust == trust


def test_a_record_is_written_as_cells():
    """Would catch swapped columns, a leak of the other run, or an interval of another number."""
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
    assert found.method_note == "Paired by seed: Student's t of the differences; 100 seeds each"
    unknown = made(percent=math.nan, percent_lower=math.nan, percent_upper=math.nan).cells()
    assert unknown["per cent"] == unknown["interval of it"] == "–"
    assert unknown["leaks ε"] == ""


def test_an_end_of_an_interval_that_is_not_0_is_not_written_as_0():
    """Would catch [−0.36, 4.68] that reads [0, 5], as if 0 were its end, and decimals for all."""
    cases = {
        (2.16, -0.36, 4.68): ("2.2", "[-0.4, 4.7]"),
        (2.16, 0.04, 4.68): ("2.16", "[0.04, 4.68]"),
        (361.2, 348.4, 374.1): ("361", "[348, 374]"),
        (2.5, 0.0, 5.0): ("2", "[0, 5]"),
    }
    assert {case: statements.write_interval(*case) for case in cases} == cases
