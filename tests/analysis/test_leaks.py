"""One leak for all algorithms: epsilon is solved from the ledger, in a view."""

import itertools
import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from altered import altered
from refusals import refuses
from scipy.optimize import brentq

import fmab_jax as fmab
from fmab_jax.algorithms.base import ALGORITHMS, Disclosure, Noise, Viewer
from fmab_jax.analysis import accountant, costs, privacy
from fmab_jax.analysis.leaks import find_leak, measure_leak
from fmab_jax.errors import Refusal
from fmab_jax.parameters import VIEWS, ViewKind
from fmab_jax.parts.mechanisms.bits import BITS
from fmab_jax.parts.mechanisms.discrete_laplace import DiscreteLaplace
from fmab_jax.parts.mechanisms.gaussian_noise import GaussianNoise, gaussian_epsilon
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.run.facts import read_ledger


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["cdp", "ddp", "hdp", "kl_se", "dist_dp_se", "dp_se", "ldp_ucb"])
def test_exactly_this_leaks_or_the_algorithm_is_refused(name, view):
    """Would catch an epsilon that is not solved, or solved in another view."""
    try:
        algorithm = fmab.at_leak(name, 2, agents=50, view=view)
    except Refusal as error:
        assert "the nearest that bounds it is" in str(error)
        owner = ALGORITHMS.by_name()[name]
        known = "epsilon_message" if hasattr(owner, "epsilon_message") else "epsilon"
        found = measure_leak(owner(**{known: 2.0}), 50, view)
        # Nobody has the view, nothing is sent, or nothing bounds what is.
        assert found is None or found.row is None or math.isinf(found.epsilon)
        return
    assert find_leak(algorithm, 50, view) == pytest.approx(2, rel=1e-9)


def test_a_leak_is_an_axis_and_the_same_runs_as_its_epsilon():
    """Would catch another configuration than that of the epsilon that leaks as much."""
    problem = fmab.Problem.uniform(agents=20, arms=5)
    given = {"horizon": 2000, "seeds": 4}
    data = fmab.sweep([fmab.cdp_mab, fmab.kl_se], problem, leak=[1, 2], **given)
    assert data.regret.dims[:2] == ("algorithm", "leak") and data.leak.values.tolist() == [1, 2]
    for place, algorithm in enumerate([fmab.cdp_mab(epsilon_message=2), fmab.kl_se(2)]):
        alone = fmab.simulate(algorithm, problem, **given)
        assert (data.regret[place, 1].values == alone.regret.values).all()


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"leak": 1, "epsilon": 2}, "epsilon=2: must be left out with leak"),
        ({"view": "sum", "epsilon": 1}, "view='sum': must be given with a leak"),
        ({"leak": 0}, "leak=0: must be a number in (0, 1e+100]"),
        ({"leak": 1, "view": "x"}, "view='x': must be 'messages' or 'sum' or 'actions'"),
        ({"algorithm": fmab.ucb1, "leak": 1}, "leak=1.0: must be left out with ucb1"),
        ({"algorithm": fmab.kl_se(1), "leak": 1}, "leak=1: must be left out with a configured"),
        ({"algorithm": fmab.dp_imed, "leak": 1}, "leak=1.0: must be left out with dp_imed"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(changes, start):
    """Would catch a leak that is ignored, or that silently wins over an epsilon."""
    given = {"algorithm": fmab.kl_se, "horizon": 10, "seeds": 2} | changes
    with pytest.raises(Refusal) as caught:
        fmab.sweep(given.pop("algorithm"), fmab.Problem.uniform(4, 3), **given)
    assert str(caught.value).startswith(start)


def test_a_view_that_nobody_has_is_no_number():
    """Would catch NaN for a view that nobody has, and no leak where something is sent."""
    alone = fmab.ucb1()
    assert find_leak(alone, 5) == 0.0
    assert measure_leak(alone, 5) == (0.0, 0.0, None)
    line = "^view='sum': must be a view that somebody has of ucb1; see "
    refuses(line, find_leak, alone, 5, "sum")
    assert measure_leak(alone, 5, "sum") is None
    for view in VIEWS[:2]:
        assert find_leak(fmab.cdp_mab(epsilon_message=3.0), 5, view) > 1.0
    assert find_leak(alone, 5, "actions") == find_leak(fmab.ucb1(pooled=True), 5) == math.inf


def test_a_sum_by_participants_leaks_what_a_message_does():
    """Would catch agents who are drawn anew that hide each other over a whole run.

    One round alone, of two agents less the viewer's own message, is in no view.
    """
    few = fmab.cdp_mab(1.0, participation=0.4)
    assert measure_leak(few, 5, "sum")[:2] == (2.0, 0.0)
    assert find_leak(few, 5, "sum") == find_leak(few, 5) == 2.0
    many = fmab.cdp_mab(epsilon_message=2.0, participation=0.4)
    everybody = replace(many, participation=1.0)
    assert find_leak(many, 50, "sum") == 2.0 > find_leak(everybody, 20, "sum")
    found = fmab.at_leak("cdp", 2.0, agents=50, view="sum", participation=0.4)
    assert found.epsilon_message == 2.0


PURE, OTHER = ("laplace", "discrete_laplace"), ("gaussian", "skellam")


@pytest.mark.parametrize("mechanism", PURE)
@pytest.mark.parametrize("make", [fmab.cdp_mab, fmab.ddp_mab, fmab.hdp_mab, fmab.kl_se])
def test_a_delta_beside_pure_noise_is_refused(make, mechanism):
    """Would catch a delta that has no effect and is taken, by one algorithm or by all."""
    title = {"laplace": "Laplace", "discrete_laplace": "discrete Laplace"}[mechanism]
    line = f"^delta=0.001: must be left out with {title} noise, whose epsilon needs no delta; "
    refuses(line, make, 1.0, mechanism=mechanism, delta=1e-3)
    for other in OTHER:
        assert make(1.0, mechanism=other, delta=1e-3).settings()["delta"] == "δ = 0.001"
        assert make(1.0, mechanism=other).settings()["delta"] == "δ = 1e-06"


def test_a_sweep_over_noise_with_and_without_delta_gives_it_to_the_former():
    """Would catch a delta that is refused, or lost, since one of the swept laws needs none."""
    given = {"agents": 4, "arms": 3, "horizon": 10**5, "seeds": 8, "epsilon": 0.2}
    laws = ["laplace", "gaussian"]
    data = fmab.sweep("cdp", mechanism=laws, delta=1e-3, **given)
    assert data.leak_messages_delta.values.tolist() == [0.0, 1e-6]
    alone = [
        fmab.sweep("cdp", mechanism="laplace", **given),
        fmab.sweep("cdp", mechanism="gaussian", delta=1e-3, **given),
    ]
    for place, one in enumerate(alone):
        cell = data.isel(mechanism=place)
        for name in ("regret", "leak_messages", "links", "ledger"):
            assert (cell[name].values == one[name].values).all(), name
    # The same epsilon at another delta is another noise.
    usual = fmab.sweep("cdp", mechanism="gaussian", **given)
    assert (usual.regret.values != alone[1].regret.values).any()
    assert usual.leak_messages == pytest.approx(0.8) and alone[1].leak_messages > 0.9


@pytest.fixture(scope="module")
def noisy():
    """Returns results behind Laplace and Gaussian noise."""
    problem = fmab.Problem([0.9, 0.1], agents=5)
    return {
        name: fmab.simulate(fmab.kl_se(1.0, mechanism=name), problem, 60, 2)
        for name in ("laplace", "gaussian")
    }


def forge(data, **changes):
    """Returns the text of a ledger with other fields of its first row, or of the noise in it."""
    fields = json.loads(data.ledger.item())
    row = fields["rows"][0]
    for name, value in changes.items():
        place = row["noises"][0] if name in Noise._fields else row
        place[name] = value
    return json.dumps(fields)


MUST = "must be the ledger of a configuration, as results have it; use what a run gives"
FORGED = [
    ({"epsilon": -1}, r"\[0\].epsilon=-1: must be a number in \[0, inf\]"),
    ({"viewer": ["the server"]}, r"\[0\].viewer=\['the server'\]: must be 'the server' or "),
    ({"view": "all"}, r"\[0\].view='all': must be 'messages' or 'sum' or 'actions'"),
    ({"why": None}, r"\[0\]=Disclosure\(.*why=None"),
    ({"trust": 1}, "TypeError: "),
    ({"scale": None}, r"\[0\].noises.scale=None: must be a number in \(0, inf\]"),
    ({"number": 0}, r"\[0\].noises.number=0: must be a whole number in \[1, "),
    ({"shares": [1]}, r"\[0\].noises.shares=.*: must be \(how many equal shares hide a reward"),
    ({"shares": [3, 2]}, r"\[0\].noises.shares=3: must be a whole number in \[1, 2\]"),
]
READERS = (
    lambda data: read_ledger(data.ledger.item()),
    fmab.add_leaks,
    fmab.overview,
    privacy.write_table,
)


@pytest.mark.parametrize("changes, line", FORGED, ids=lambda each: str(each)[:30])
def test_a_forged_ledger_is_refused_in_a_line(noisy, changes, line):
    """Would catch a traceback, or a leak below 0, of a file that somebody has changed."""
    for data in noisy.values():
        forged = data.assign_coords(ledger=forge(data, **changes))
        for read in READERS:
            refuses(rf"^ledger='.*: {MUST} \(.*{line}", read, forged)


@pytest.mark.parametrize("text", ["what it leaks", "[[]]", '{"title": "KL-SE"}', "[" * 10**5])
def test_another_text_than_a_ledger_is_refused_in_a_line(noisy, text):
    """Would catch the error of a library of a file that is damaged."""
    forged = noisy["laplace"].assign_coords(ledger=text)
    for read in READERS:
        refuses(f"^ledger='.*: {MUST}", read, forged)
    refuses(f"^ledger='nan': {MUST}", read_ledger, math.nan)


def test_a_ledger_without_the_leak_of_its_result_says_nothing(noisy):
    """Would catch the rows of another run, or of a file that was changed, as those of a result."""
    other = {"laplace": noisy["gaussian"], "gaussian": noisy["laplace"]}
    for name, data in noisy.items():
        for text in (forge(data, epsilon=3.0), other[name].ledger.item()):
            forged = data.assign_coords(ledger=text)
            found, usual = (fmab.add_leaks(each) for each in (forged, data))
            assert found.leak_messages == usual.leak_messages
            for view in VIEWS[1:]:
                assert 0.0 < usual[f"leak_{view}"] < 1.0 and math.isnan(found[f"leak_{view}"])
            assert costs.read_exposure(forged) == costs.Cost(
                *(float(data[name]) for name in ("leak_messages", "leak_messages_delta"))
            )


@pytest.mark.parametrize("law", ["rumour", "rumour:1,2", "gaussian:3", ""])
def test_noise_of_a_plug_in_that_is_not_loaded_hides_up_to_no_delta(noisy, law):
    """Would catch a refusal of results that somebody else has made, and a guess at their noise."""
    pure, approximate = (
        fmab.add_leaks(data.assign_coords(ledger=data.ledger.item().replace(name, law)))
        for name, data in noisy.items()
    )
    for view in VIEWS:
        assert (pure[f"leak_{view}"], pure[f"leak_{view}_delta"]) == (1.0, 0.0)
    # Nothing is left of what the result says.
    assert approximate.leak_messages == pytest.approx(1.0)
    assert math.isnan(approximate.leak_sum) and math.isnan(approximate.leak_actions)
    assert fmab.overview(approximate).iloc[0, 0] == fmab.overview(noisy["gaussian"]).iloc[0, 0]
    assert all(not row.noises for row in read_ledger(approximate.ledger.item()).rows)


def test_a_join_of_results_without_a_run_somewhere_has_no_leak_there(uncomputed):
    """Would catch the error of a library where a join has NaN in place of a ledger."""
    problem, given = fmab.Problem([0.9, 0.1], agents=5), {"horizon": 200, "seeds": 2}
    parts = [
        uncomputed(name, problem, epsilon=epsilons, **given)
        for name, epsilons in (("cdp", [0.1, 0.2]), ("kl_se", [0.2, 2.0]))
    ]
    names = xr.DataArray(["cdp", "kl_se"], dims="algorithm", name="algorithm")
    joined = xr.concat(parts, names, join="outer", combine_attrs="drop_conflicts")
    found = fmab.add_leaks(joined)
    np.testing.assert_array_equal(found.leak_messages, [[0.5, 1, np.nan], [np.nan, 0.2, 2]])
    for view in VIEWS[1:]:
        is_known = found[f"leak_{view}"].notnull()
        assert is_known.values.tolist() == [[True, True, False], [False, True, True]]
    table, _ = privacy.write_table(joined)
    assert [row["title"] for row in table] == ["CDP-MAB"] * 3 + ["KL-SE"] * 3
    assert [row["epsilon"] for row in table[::3]] == ["ε = 0.5 to 1", "ε = 0.2 to 2"]
    assert fmab.table(joined).attrs["title"].startswith("M = 5 agents")


# ---------------------------------------------------------------------------------------------
# Rows that are made up, and what words say that they leak.

# Laws of which noises of unlike scales hide together, and one of which they do not.
LAWS = (LAPLACE, GaussianNoise(), DiscreteLaplace())
MADE_UP = [
    Disclosure(Viewer.AGENTS, view, epsilon, "", noises, is_one_round=is_one_round)
    for view in ViewKind
    for is_one_round in (False, True)
    for epsilon, noises in (
        (0.7, ()),
        (math.inf, ()),
        *((1.0 if law.pure else math.inf, (Noise(law, 1.0),)) for law in LAWS),
        *((1.0 if law.pure else math.inf, (Noise(law, 1.0, 6),)) for law in LAWS),
        *(
            (1.0 if law.pure else math.inf, (Noise(law, 1.0, 3), Noise(law, 1.5, 2)))
            for law in LAWS
        ),
        (math.inf, (Noise(LAPLACE, 1.0, shares=(1, 2)),)),
        # What is stated is less than noise alone would hide.
        (0.1, (Noise(LAPLACE, 1.0, 2),)),
    )
]


def hide_together(noises, delta):
    """Returns the epsilon of noises up to delta: of the larger ones, each as large as the least."""
    (law,) = {noise.mechanism for noise in noises}
    if noises[0].shares:
        return accountant.noise_epsilon(noises, delta)
    scales = {noise.scale for noise in noises} if law.nested else {max(x.scale for x in noises)}
    return min(law.epsilon(s, sum(n.number for n in noises if n.scale >= s), delta) for s in scales)


def leak_by_words(rows, view, delta):
    """Returns epsilon and delta of a view, as the docstring of `leak` says."""
    together = (ViewKind.MESSAGES, ViewKind.SUM) if view is ViewKind.MESSAGES else (view,)
    found = []
    for row in rows:
        if row.view not in together or row.is_one_round:
            continue
        is_alone = view is ViewKind.MESSAGES or row.number == 1
        if not row.noises or math.isfinite(row.epsilon) and is_alone:
            found.append((row.epsilon, 0.0))
        else:
            found.append((min(row.epsilon, hide_together(row.noises, delta)), delta))
    if not found:
        return (0.0, 0.0) if view is ViewKind.MESSAGES else None
    largest = max(epsilon for epsilon, _ in found)
    return largest, 0.0 if math.isinf(largest) else max(at for _, at in found)


def test_leaks_of_many_ledgers_are_what_words_say():
    """Would catch rows of another view or of one round, a row that is not the worst, the delta of
    the worst row alone, one noise read up to delta, and unlike noises that hide more than together.
    """
    draw, seen = random.Random(3), set()
    for _ in range(400):
        rows = draw.sample(MADE_UP, draw.randint(1, 3))
        for view, delta in itertools.product(ViewKind, (1e-6, 1e-2)):
            found, due = accountant.leak(rows, view, delta), leak_by_words(rows, view, delta)
            assert (found and found[:2]) == due, (rows, view, delta)
            seen.add(due and (due[0] == math.inf, due[1] > 0.0))
            if found and found.row:
                assert found.row in rows and not found.row.is_one_round
    assert seen == {None, (True, False), (False, False), (False, True)}


def state_rows(*rows):
    """Returns a plug-in whose ledger are some rows; an epsilon is its own times the row's."""

    def ledger(self, exchange):
        return tuple(row._replace(epsilon=row.epsilon * (self.epsilon or math.inf)) for row in rows)

    return altered(fmab.kl_se, ledger=ledger)


def test_actions_without_bound_beside_sums_that_have_one():
    """Would catch the leak of the last row, a bounded one of another view, for that of a view."""
    actions = Disclosure(Viewer.WATCHERS, ViewKind.ACTIONS, math.inf, "")
    sums = Disclosure(Viewer.AGENTS, ViewKind.SUM, 1.0, "")
    for rows in ((actions, sums), (sums, actions), (actions, actions._replace(epsilon=1.0))):
        owner = state_rows(*rows)
        assert measure_leak(owner(1.0), 5, "actions")[:2] == (math.inf, 0.0)
        line = "^leak=1: must be left out with altered, which does not bound it in the view of a"
        refuses(line, fmab.at_leak, owner, 1, agents=5, view="actions")
        if sums in rows:
            assert fmab.at_leak(owner, 0.5, agents=5, view="sum").epsilon == 0.5


def test_a_leak_that_no_noise_has_is_refused():
    """Would catch noise that leaks more than was asked for, or less: a floor, a scale that is 0."""

    def ledger(self, exchange):
        epsilon = max(2.0, self.epsilon or math.inf)
        return [Disclosure(x, ViewKind.SUM, epsilon, "") for x in (Viewer.SERVER, Viewer.AGENTS)]

    owner = altered(fmab.kl_se, ledger=ledger)
    assert fmab.at_leak(owner, 2.5, agents=5).epsilon == 2.5
    for leak in (1e-3, 1.0, 1.999):
        line = f"^leak={leak}: must be one that altered can have in the view of .*, nearest 2; ask"
        for view in ("messages", "sum"):
            refuses(line, fmab.at_leak, owner, leak, agents=5, view=view)
    # Where the scale of Skellam noise is 0 as a float.
    for view in ("messages", "sum"):
        line = f"^leak=10000.0: must be one that kl_se can have in the view of {view}, nearest "
        refuses(line, fmab.at_leak, "kl_se", 1e4, agents=50, view=view, mechanism="skellam")


@pytest.mark.parametrize("mechanism", ["laplace", *OTHER])
def test_a_leak_is_solved_at_its_delta(mechanism):
    """Would catch noise that is solved at the usual delta where another one is given."""
    for view in ("sum",) if mechanism == "laplace" else ("messages", "sum"):
        given = {"agents": 5, "view": view, "mechanism": mechanism}
        found = fmab.at_leak("kl_se", 1.0, **given, delta=1e-3)
        assert find_leak(found, 5, view, 1e-3) == pytest.approx(1.0, rel=1e-9)
        assert find_leak(found, 5, view) > 1.0
        assert found != fmab.at_leak("kl_se", 1.0, **given)
    if mechanism == "laplace":
        line = "^delta=0.001: must be left out with Laplace noise"
        refuses(line, fmab.at_leak, "kl_se", 1.0, agents=5, delta=1e-3)


def test_noises_that_nobody_can_count_together_are_refused():
    """Would catch noises of two laws that count as those of one, and shares beside whole noises."""
    one, share = Noise(LAPLACE, 1.0), Noise(LAPLACE, 1.0, shares=(2, 3))
    for noises in ((one, Noise(GaussianNoise(), 1.0)), (one, share), (share, share)):
        row = Disclosure(Viewer.AGENTS, ViewKind.SUM, 1.0, "", noises)
        owner = altered(fmab.kl_se, ledger=lambda self, exchange, row=row: row)
        line = r"ledger\[0\].noises=.*: must be noises of one law; or shares of one noise, alone; "
        refuses(line, fmab.privacy_ledger, owner(1.0), 5)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_absence_leaves_the_smallest_of_unlike_noises(law):
    """Would catch the largest noise for that of any agent, and two noises that both surely hide."""
    for noises in ((Noise(law, 1.0, 3), Noise(law, 4.0)), (Noise(law, 1.0, 2),)):
        pure = 1 / noises[-1].scale if law.pure else math.inf
        row = Disclosure(Viewer.AGENTS, ViewKind.SUM, pure, "", noises)
        owner = altered(fmab.kl_se, ledger=lambda self, exchange, row=row: row)
        rows = fmab.privacy_ledger(owner(1.0), 50, presence="absent:0.1")
        (found,) = (row for row in rows if row.viewer is Viewer.AGENTS)
        assert found.noises == (Noise(law, 1.0),)
        assert found.epsilon == law.epsilon(1.0, 1, 0.0)
        assert found.epsilon_at_delta == law.epsilon(1.0, 1, 1e-6)


def terms_by_words(row, delta, rewards, is_distinct):
    """Returns the terms of several rewards, as the docstring of `leak_terms` says."""

    def find_one(delta):
        return min(row.epsilon, hide_together(row.noises, delta)) if row.noises else row.epsilon

    pure, whole = row.epsilon, [noise for noise in row.noises if not noise.shares]
    whole.sort(key=lambda noise: -noise.scale)
    rho, mu = pure**2 / 2, math.inf if pure else 0.0
    for noise in whole if whole and whole[0].mechanism.nested else whole[:1]:
        count = sum(other.number for other in whole if other.scale >= noise.scale)
        rho = min(rho, noise.mechanism.zcdp(noise.scale, count))
        mu = min(mu, noise.mechanism.gdp(noise.scale, count))
    if rewards == 1:
        return pure, find_one(delta), rho, mu
    factor = rewards if is_distinct else rewards**2
    pure, rho, mu = rewards * pure, factor * rho, math.sqrt(factor) * mu
    if is_distinct:
        by_one = rewards * find_one(delta / rewards)
    else:

        def find_excess(e):
            return find_one(delta * math.exp(-(rewards - 1) * e) / rewards) - e

        # Where delta of one reward ends.
        last = math.log(delta / rewards / 1e-12) / (rewards - 1)
        has_end = find_one(1e-12) <= last
        by_one = rewards * brentq(find_excess, -1e-9, last) if has_end else math.inf
    by_rho = rho + 2 * math.sqrt(rho * math.log(1 / delta)) if rho < math.inf else math.inf
    return pure, min(pure, by_rho, gaussian_epsilon(mu, delta), by_one), rho, mu


def test_terms_of_many_rows_are_what_words_say():
    """Would catch a rho of one reward, or of shares, that is another's; a 2, an n, a delta less."""
    rows = [row for row in MADE_UP if row.view is ViewKind.SUM and not row.is_one_round]
    bits = [Noise(BITS, scale, count) for scale, count in ((0.5, 1), (2.0, 1), (2.0, 9))]
    rows += [rows[0]._replace(epsilon=1 / noise.scale, noises=(noise,)) for noise in bits]
    rows += [rows[0]._replace(epsilon=math.inf, noises=(bits[0],)), rows[0]._replace(epsilon=0.0)]
    assert accountant.leak_terms(rows[-2], 1e-6).rho == BITS.zcdp(0.5, 9) == 2.0
    cases = [(1e-6, 1, False), (1e-2, 2, False), (1e-2, 5, True), (1e-6, 5, True)]
    for row, (delta, rewards, is_distinct) in itertools.product(rows, cases):
        if rewards > 1 and row.noises and row.noises[0].shares:
            continue  # a second each
        found = accountant.leak_terms(row, delta, rewards=rewards, is_distinct=is_distinct)
        due = terms_by_words(row, delta, rewards, is_distinct)
        assert found == pytest.approx(due, rel=1e-9, abs=1e-9), (row, delta, rewards)
