"""What a comparison says of the runs besides their regret: leaks, views and links."""

import math

import numpy as np
import pytest
import sizes
import xarray as xr
from ledgers import add_ledgers, make_gaussian_row, make_row

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.algorithms.base import ledger_of
from fmab_jax.analysis import statements
from fmab_jax.analysis.costs import NO_MESSAGES, Cost, read_exposure
from fmab_jax.analysis.statements import Comparison, write_p_value


def stated(rows):
    """A result that says no more than its ledger."""
    return add_ledgers(xr.Dataset(), [[make_row(*each) for each in rows]])


def test_the_leak_is_that_of_who_is_told_most():
    """Would catch actions taken for messages, the least view, and a meter without a price."""
    both = [("sums over 9 agents", 0.5), ("single messages", 4.5), ("actions", math.inf)]
    assert read_exposure(stated(both))[:3] == (4.5, 0.0, "single messages")
    open_ = read_exposure(stated([("messages", math.inf), ("sums over 9 agents", 2.0)]))
    assert open_[:3] == (math.inf, 0.0, "messages")
    assert read_exposure(stated([("actions", 1.0)]))[:3] == (0.0, 0.0, NO_MESSAGES)
    up_to = add_ledgers(stated(both), [[make_row("actions", 1.0), make_gaussian_row()]])
    found = read_exposure(up_to)
    assert found[:3] == (float(up_to.leak_messages), 1e-6, "single messages")
    assert 1 < found.leak < 2


def test_a_ledger_tells_of_its_own_leak_alone():
    """Would catch view and trust of another run where runs were joined, or of an old plug-in."""
    data = stated([("sums over 9 agents", 0.5), ("single messages", 4.5)])
    others = data.assign(leak_messages=9.0), data.assign(leak_messages_delta=1e-6)
    others += data.drop_vars("ledger"), data.assign(leak_messages=math.nan)
    for other in others:
        found = read_exposure(other)
        stated_leak = float(other.leak_messages), float(other.leak_messages_delta)
        np.testing.assert_equal(found[:2], stated_leak)
        assert (found.observation, found.trust) == ("", "")
        assert np.isnan(fmab.add_leaks(other.assign(seeds=2)).leak_sum)
    assert np.isnan(read_exposure(data.drop_vars("leak_messages")).leak)


FACTS = ("leak", "delta", "observation", "trust", "has_open_actions")
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-3}
SWEPT = {
    "algorithms": (
        {"cdp": fmab.cdp_mab(0.5), "sums": fmab.dist_dp_se(1), "alone": fmab.single_mab(1)},
        {},
    ),
    "noise": (fmab.cdp_mab, {"epsilon": [0.5, 1.0, None]}),
    "pooled": (fmab.ucb1, {"pooled": [True, False]}),
    "graphs": (fmab.ddp_mab, {"epsilon": [0.5, None], "graph": ["ring", "complete"]}),
    "laws": (fmab.kl_se, {"epsilon": 1, "mechanism": ["laplace", "gaussian"], "delta": 1e-3}),
}


def list_alone(algorithm, parameters):
    """Returns the algorithm of every configuration, the last parameter varying first."""
    if isinstance(algorithm, dict):
        return [*algorithm.values()]
    if algorithm is fmab.kl_se:
        return [fmab.kl_se(1), fmab.kl_se(1, **GAUSSIAN)]
    if algorithm is fmab.ddp_mab:
        cells = [(e, g) for e in parameters["epsilon"] for g in parameters["graph"]]
        return [fmab.ddp_mab(e, graph=g) for e, g in cells]
    ((name, values),) = parameters.items()
    return [algorithm(**{name: value}) for value in values]


@pytest.mark.parametrize("case", SWEPT)
def test_each_configuration_has_a_ledger_of_its_own(case, uncomputed, tmp_path):
    """Would catch what one algorithm, or one value, tells told of another: in a sweep, a part of
    it, a single cell, its file, and its table."""
    algorithm, parameters = SWEPT[case]
    how = {"horizon": 300, "times": 3, "seeds": 2}
    data = uncomputed(algorithm, **sizes.SMALL, **parameters, **how)
    problem = fmab.Problem.uniform(**sizes.SMALL)
    alone = [fmab.simulate(each, problem, **how) for each in list_alone(algorithm, parameters)]
    due = [[getattr(read_exposure(run), name) for name in FACTS] for run in alone]
    assert len({str(facts) for facts in due}) > 1
    dims = [*data.seeds.dims]
    loaded = fmab.load(fmab.save(data.load(), tmp_path / "x.nc"))
    places = [*np.ndindex(data.seeds.shape)]
    for place, facts, run in zip(places, due, alone, strict=True):
        at = dict(zip(dims, place, strict=True))
        slices = {name: [index] for name, index in at.items()}
        labels = {name: data[name].values[index] for name, index in at.items()}
        cells = [whole.isel(at) for whole in (data, loaded, data.transpose(..., *dims[::-1]))]
        cells += [data.sel(labels), data.isel(slices).isel(dict.fromkeys(dims, 0))]
        for cell in cells:
            assert [getattr(read_exposure(cell), name) for name in FACTS] == facts
        sums = [fmab.add_leaks(whole).leak_sum for whole in (data.isel(at), run)]
        np.testing.assert_array_equal(*sums)


def test_p_values_are_written():
    """Would catch "0.000" or a p-value of twice its size, and one below what t can know."""
    texts = {1.0: "1.000", 0.03249: "0.032", 0.001: "0.001", 0.00052: "0.00052"}
    texts |= {1.26e-7: "1.3×10⁻⁷", 1e-15: "10⁻¹⁵", 9e-16: "< 10⁻¹⁵", 0.0: "< 10⁻¹⁵"}
    assert {value: write_p_value(value) for value in texts} == texts


UNKNOWN = Cost()


def made(costs=(UNKNOWN, UNKNOWN), **changes):
    """A comparison, for its words."""
    first, second = costs
    plain = {
        "participants": (
            first._replace(label="p = 0.2", seeds=100, mean=186.0),
            second._replace(label="p = 0.4", seeds=100, mean=100.0),
        ),
        **{"difference": 86.0, "lower": 85.0, "upper": 87.0, "p_value": 1e-20},
        **{"percent": 86.0, "percent_lower": 85.0, "percent_upper": 87.0, "adjusted": 1e-20},
        **{"method": "paired", "level": 0.95},
    }
    return Comparison(**{**plain, **changes})


def test_a_comparison_is_printed_as_its_sentence():
    """Would catch a repr where a person prints it, and an interval without its level."""
    assert str(made(adjusted=0.0325)).split("\n") == [
        "p = 0.2 costs 86 % more regret than p = 0.4 [85, 87].",
        "In brackets: the 95 % interval; p-value 0.033. Paired by seed: Student's t of the "
        "differences; 100 seeds each.",
    ]


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


def spent(leak, observation, links=math.nan, delta=0.0, trust=""):
    """The cost of a run."""
    return Cost(leak, delta, observation, trust, links=links)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((5, ONE, 190), (5, ONE, 190), f"leak ε = 5 each ({ONE}); links 190 each"),
        ((6, ONE, 38.125), (30, ONE, 7), f"leak ε = 6 and ε = 30 ({ONE}); links 38.12 and 7"),
        (
            (50, ONE, 250),
            (1, SUM, 639),
            f"leak ε = 50 ({ONE}) and ε = 1 ({SUM}); links 250 and 639",
        ),
        ((0, NO_MESSAGES, 0), (0, NO_MESSAGES, 0), "leak nothing each; links 0 each"),
        ((0, NO_MESSAGES, 1), (math.inf, ONE, 2), "leak nothing and no bound; links 1 and 2"),
        ((math.inf, SUM, 7), (2, ONE, 7), f"leak no bound and ε = 2 ({ONE}); links 7 each"),
        (
            *((1.7099, ONE, 7, 1e-6), (1.7099, ONE, 7, 1e-6)),
            f"leak (ε, δ) = (1.71, 10⁻⁶) each ({ONE}); links 7 each",
        ),
        (
            *((1, ONE, 7, 1e-6), (1, ONE, 7)),
            f"leak (ε, δ) = (1, 10⁻⁶) and ε = 1 ({ONE}); links 7 each",
        ),
        (
            *((1, ONE, 7, 1e-6), (1, ONE, 7, 1e-3)),
            f"leak (ε, δ) = (1, 10⁻⁶) and (ε, δ) = (1, 0.001) ({ONE}); links 7 each",
        ),
        ((), (), ""),
    ],
)
def test_leaks_and_links_of_two_runs_are_written(first, second, text):
    """Would catch one leak for both, views left out, sizes of unlike views, numbers swapped, or an
    epsilon without its delta."""
    found = made([spent(*each) if each else UNKNOWN for each in (first, second)])
    assert found.sentence == f"{made().sentence}{'; ' * bool(text)}{text}"


def test_runs_and_sweeps_say_what_they_cost():
    """Would catch the leak of one configuration told of another, or links of one seed."""
    grid = dict(participation=[0.25, 1.0], epsilon=0.5, horizon=20_000, seeds=16, times=10)
    for keep in ("curves", "summary"):
        data = fmab.sweep("cdp", **sizes.SMALL, **grid, keep=keep, progress=False)
        (told,) = fmab.compare_all(data)
        table = fmab.table(data)
        for number, (run, heard) in enumerate(zip(told.participants, (1, 4), strict=True)):
            assert run[:3] == (0.5 * heard, 0.0, "single messages")
            assert run.links == pytest.approx(heard * table.rounds_made[number], rel=1e-12)
            assert (run.seeds, run.mean) == (16, pytest.approx(table.regret[number], rel=1e-12))
            assert (run.links, run.trust) == (table.links[number], table.trust[number])
        assert "; leak ε = 0.5 and ε = 2 (single messages); links " in told.sentence


TRUSTS = ("nobody: a message leaks at most its epsilon", "a secure sum")


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
        spent(leak, "messages", trust=trust) for leak, trust in zip(leaks, trusts, strict=True)
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
        (DEMAB(), "the server and the agents, with single messages"),
        (fmab.dp_imed(1), "nobody: nothing is told"),
        (fmab.ucb1(), "nobody: nothing is told" + OPEN),
        (fmab.ucb1(pooled=True), SERVER),
        (fmab.lcc_ucb("ring"), "neighbours, with messages"),
    ],
    ids=str,
)
def test_trust_is_that_of_the_configuration_that_ran(algorithm, trust):
    """Would catch all that a class can be told of one configuration."""
    rows = ledger_of(algorithm, algorithm.exchange(4))
    assert read_exposure(add_ledgers(xr.Dataset(), [rows])).trust == trust


def test_a_record_is_written_as_cells():
    """Would catch swapped columns, a leak of the other run, or an interval of another number."""
    costs = spent(6, "messages", 38.125, 0.0, "A"), spent(math.inf, "sums", 190, 0.0, "B")
    found = made(costs, at="<b>", lower=-85.5, percent_lower=-3.25, adjusted=0.03)
    assert found.cells() == {
        **{"at": "<b>", "first": "p = 0.2", "second": "p = 0.4"},
        **{"leaks ε": "6 (messages) and no bound", "regret, first": "186", "regret, second": "100"},
        **{"difference": "+86 [-85.5, +87]", "per cent": "+86 [-3.25, +87]", "p-value": "0.030"},
    }
    up_to = made((spent(6, "messages", 38.125, 1e-6), costs[1]))
    assert up_to.cells("messages")["leaks ε"] == "(6, 10⁻⁶) and no bound"
    assert found.method_note == "Paired by seed: Student's t of the differences; 100 seeds each"
    unknown = made(percent=math.nan, percent_lower=math.nan, percent_upper=math.nan).cells()
    assert (unknown["per cent"], unknown["leaks ε"]) == ("–", "")


def test_an_end_of_an_interval_that_is_not_0_is_not_written_as_0():
    """Would catch [−0.36, 4.68] that reads [0, 5], as if 0 were its end, and decimals for all."""
    cases = {
        (2.16, -0.36, 4.68): ("2.2", "[-0.4, 4.7]"),
        (2.16, 0.04, 4.68): ("2.16", "[0.04, 4.68]"),
        (361.2, 348.4, 374.1): ("361", "[348, 374]"),
        (2.5, 0.0, 5.0): ("2", "[0, 5]"),
    }
    assert {case: statements.write_interval(*case) for case in cases} == cases
