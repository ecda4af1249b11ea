"""The privacy ledger: the epsilon of sums against exact laws, and what every algorithm states."""

import dataclasses
import itertools
import json
import math
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from altered import altered
from plugs import Geometric, Greedy
from refusals import refuses
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gamma, kv
from scipy.stats import gamma as gamma_law
from scipy.stats import norm

import fmab_jax as fmab
from fmab_jax.algorithms import base
from fmab_jax.algorithms.base import ACTIONS, known
from fmab_jax.analysis import privacy
from fmab_jax.analysis.privacy import epsilon_at, laplace_sum_epsilon, privacy_ledger
from fmab_jax.core import exchanges, laplace, ledgers
from fmab_jax.core.ledgers import OUTSIDE
from fmab_jax.run import configs, facts

RING = fmab.ddp_mab(1.0, "ring")


def bits_sum_epsilon(bits, epsilon, delta=1e-6):
    """Returns the epsilon of one of so many bits in their sum."""
    return epsilon_at(epsilon, bits, delta, ledgers.BITS)


def laplace_share_epsilon(left, shares, scale, delta=1e-6):
    """Returns the epsilon of some shares of one Laplace variable."""
    return epsilon_at(math.inf, 0, delta, shares=(1.0 / scale, left, shares))


def stating(owner, *rows):
    """Returns a plug-in that states its ledger."""
    return altered(owner, ledger=lambda self, exchange: rows)


def rows_of(algorithm, agents=50):
    """Returns the rows of a ledger by who sees them."""
    return {row.viewer: row for row in privacy_ledger(algorithm, agents)}


@pytest.mark.parametrize(
    ("agents", "pure", "delta", "expected"),
    [
        *((50, 50 * e, 1e-6, x) for e, x in ((1, 26.21075196), (0.1, 1.98121380))),
        (50, 1.0, 1e-6, 0.358927689),
        (20, 8.0, 1e-10, 5.419593154),
    ],
)
def test_sums_in_many_digits(agents, pure, delta, expected):
    """Would catch another scale, shift or divergence, and cancellation.

    Expected: bisection on the same mixture of Gamma laws in decimals of 60 and 120 digits.
    """
    assert laplace_sum_epsilon(agents, 1 / pure, delta) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("pure", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_one_variable_by_hand(pure, delta):
    """Would catch a wrong half-line: delta = 1 - exp((epsilon - 1 / scale) / 2), else 0."""
    expected = max(0.0, pure + 2 * math.log1p(-delta))
    assert laplace_sum_epsilon(1, 1 / pure, delta) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("pure", [1.0, 10.0, 100.0])
def test_ten_thousand_variables_are_normal(pure):
    """Would catch overflow or lost digits: the epsilon of the normal law of the same variance."""
    ratio = pure / math.sqrt(2e4)

    def excess(epsilon):
        first, second = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
        return norm.cdf(first) - math.exp(epsilon) * norm.cdf(second) - 1e-6

    found = laplace_sum_epsilon(10**4, 1 / pure)
    assert found == pytest.approx(brentq(excess, 0, 10), rel=2e-3)


@pytest.mark.parametrize("pure", [1e-4, 0.3, 10.0, 1e100])
def test_more_agents_hide_more(pure):
    """Would catch a search that ends at a wrong root, or above the pure bound."""
    counts = (1, 2, 3, 5, 10, 100, 1000, 10_000)
    found = [laplace_sum_epsilon(count, 1 / pure) for count in counts]
    assert found[0] <= pure and all(np.diff(found) <= 0) and found[-1] >= 0
    assert found[-1] < found[1] or pure == 1e100
    strict = [laplace_sum_epsilon(10, 1 / 0.3, delta) for delta in (1e-12, 1e-6, 1e-2, 0.9)]
    assert all(np.diff(strict) < 0) and strict[-1] == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 60.0])
@pytest.mark.parametrize("delta", [1e-6, 0.1])
def test_one_bit_by_hand(epsilon, delta):
    """Would catch the law of a Laplace variable, epsilon + 2 log(1 - delta), taken for a bit's."""
    keeps = 1.0 / (1.0 + math.exp(-epsilon))
    expected = max(0.0, math.log(max(keeps - delta, 1e-300) * (1.0 + math.exp(epsilon))))
    found = bits_sum_epsilon(1, epsilon, delta)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12) and found <= epsilon
    if 1e-5 < delta < 0.5 * epsilon:
        assert found > laplace_sum_epsilon(1, 1.0 / epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (2.0, 1e-2), (0.4, 1e-6)])
def test_the_sum_of_few_bits_over_all_their_values(epsilon, delta):
    """Would catch others' rewards that are all 0, a sum of too few bits, one direction, or another
    divergence: all bits of four agents, one by one, for all rewards of the other three."""
    kept = 1.0 / (1.0 + math.exp(-epsilon))

    def law(rewards):
        chances = np.zeros(len(rewards) + 1)
        for bits in itertools.product((0, 1), repeat=len(rewards)):
            right = sum(bit == reward for bit, reward in zip(bits, rewards, strict=True))
            chances[sum(bits)] += kept**right * (1.0 - kept) ** (len(rewards) - right)
        return chances

    def divergence(at):
        found = []
        for others in itertools.product((0, 0.5, 1), repeat=3):
            mixed = [
                sum(
                    np.prod([o if v else 1 - o for o, v in zip(others, values, strict=True)])
                    * law((own, *values))
                    for values in itertools.product((0, 1), repeat=3)
                )
                for own in (0, 1)
            ]
            for one, other in (mixed, mixed[::-1]):
                found.append(np.maximum(one - math.exp(at) * other, 0.0).sum())
        return float(max(found))

    found = bits_sum_epsilon(4, epsilon, delta)
    assert 0.0 < found < bits_sum_epsilon(3, epsilon, delta) < epsilon
    assert divergence(found) == pytest.approx(delta, rel=1e-6)


def test_sums_of_many_bits():
    """Would catch lost digits, more bits that hide less, and a cap that is told as too little."""
    found = [bits_sum_epsilon(count, 1.0) for count in (1, 2, 5, 50, 500, 10**7)]
    assert all(np.diff(found) < 0) and 0 < found[-1] < 0.13
    for epsilon in (1e-4, 30.0, 650.0, 1e5):
        assert 0.0 <= bits_sum_epsilon(50, epsilon) <= epsilon
    assert bits_sum_epsilon(50, 650.0) == pytest.approx(650.0)


@pytest.mark.parametrize(
    ("algorithm", "over"),
    [
        (fmab.tree_ucb(1.0), 0),
        (fmab.fed_ucb(1.0, "ring"), 0),
        (fmab.dp_se(1.0), 1),
        (fmab.adap_ucb(1.0), 1),
        (fmab.lazy_dp_ts(1.0), 1),
        (fmab.ldp_ucb(1.0), 1),
        (fmab.single_mab(1.0), 1),
        (fmab.dist_dp_se(1.0), 1),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_only_what_one_laplace_variable_hides_leaks_less_up_to_delta(algorithm, over):
    """Would catch the discount of a Laplace variable on the many noises of a tree, or none on one.

    At delta = 0.1 one variable leaves 0.789 of an epsilon of 1.
    """
    for row in privacy_ledger(algorithm, 5, 0.1):
        if row.viewer != "an agent":
            expected = 1.0 + 2.0 * math.log1p(-0.1) if over else 1.0
            assert (row.over, row.epsilon_at_delta) == (over, pytest.approx(expected)), row


def test_bits_leak_more_up_to_delta_than_laplace_noise():
    """Would catch over = 1 with the law of Laplace in the ledger of random bits: .78928, not .85291
    at delta = 0.1, in the table as in what is printed of a result."""
    for row in privacy_ledger(fmab.ldp_ucb(1.0, bits=True), 5, 0.1, colluding=2):
        assert (row.over, row.law) == (1, ledgers.BITS)
        assert row.epsilon_at_delta == pytest.approx(0.8529051, abs=1e-7)
    pooled = json.loads(told_of(fmab.ldp_ucb(1.0, bits=True)))
    assert {row["law"] for row in pooled} == {ledgers.BITS}
    # Pooled, actions follow from sums; together agents see every released reward.
    all_bits = fmab.ldp_ucb(1.0, bits=True, pooled=True)
    _, actions, together = privacy_ledger(all_bits, 50, colluding=2)
    assert (actions.viewer, actions.epsilon_at_delta) == (OUTSIDE, bits_sum_epsilon(50, 1.0))
    assert (together.observation, together.over) == ("every released reward", 1)
    told = rows_of(fmab.ldp_ucb(1.0, pooled=True))[OUTSIDE].epsilon_at_delta
    assert told == pytest.approx(laplace_sum_epsilon(50, 1.0))
    assert rows_of(fmab.ldp_ucb(1.0, pooled=True), 1).keys() == {"anybody", ACTIONS}
    # Over several, with the law of the row.
    both = json.dumps([pooled[0] | {"leaks": [[1.0, 50]], "law": law} for law in ledgers.LAWS])
    for each, found in zip(
        privacy.write_table(both)[0],
        (laplace_sum_epsilon(50, 1.0), bits_sum_epsilon(50, 1.0)),
        strict=True,
    ):
        assert each["epsilon"] == f"ε = 1, and {found:.3g} up to δ = 10⁻⁶"
    # Of several configurations each law has a row of its own.
    cells = [("t", {"bits": str(law)}, [pooled[0] | {"law": law}]) for law in ledgers.LAWS]
    assert [row["law"] for row in privacy.merge_ledgers(cells)] == list(ledgers.LAWS)


def test_sources_are_credited_with_what_they_state():
    """Would catch a paper that is cited for a computation of this package: shares that somebody
    knows, trees with other levels, actions that follow from what it does state."""

    def told(algorithm, colluding=0):
        papers = {algorithm.source: "paper", "": "", ledgers.OWN: "own"}
        rows = privacy_ledger(algorithm, 6, colluding=colluding)
        return [papers.get(row.source, row.source) for row in rows]

    assert told(fmab.dist_dp_se(1.0), 2) == ["paper", "own", "", "own"]
    assert told(fmab.fed_ucb(1.0, "ring"), 2) == ["own"] * 3
    assert told(fmab.tree_ucb(1.0)) == ["own"] and told(fmab.tree_ucb(1.0, split=True)) == ["paper"]
    assert told(fmab.ldp_ucb(1.0)) == ["paper", ""]
    for paper in (fmab.dp_se(1.0), fmab.adap_ucb(1.0), fmab.lazy_dp_ts(1.0)):
        assert told(paper) == ["paper"]
    assert told(fmab.cdp_mab(1.0)) == ["Theorem 1", "", ""]
    assert fmab.dp_se(0.5).seen("because").source == ""


def test_who_states_no_noise_gets_no_discount():
    """Would catch a default that takes the noise of any plug-in for one Laplace variable, and a law
    that nobody knows."""
    seen = base.Seen(ACTIONS, "actions", 1.0, "a mechanism of its own")
    (row,) = privacy_ledger(stating(fmab.uniform_play, seen)(), 3, 0.1)
    assert (row.over, row.epsilon, row.epsilon_at_delta) == (0, 1.0, 1.0)
    odd = stating(fmab.uniform_play, seen._replace(over=1, law="Cauchy"))
    refuses("ledger.0..law='Cauchy': must be 'Laplace' or 'bits'", privacy_ledger, odd(), 3)


def test_bad_values_are_refused():
    """Would catch a delta that double precision cannot resolve."""
    for delta in (0.0, 1e-13, 1.0, math.nan):
        refuses("delta", laplace_sum_epsilon, 5, 1.0, delta)


def test_who_sees_what_of_the_paper():
    """Would catch a row left out, or a sum over other agents than those that are seen."""
    server, agents, actions = privacy_ledger(fmab.cdp_mab(0.02), 50)
    assert (server.viewer, server.over, server.epsilon) == ("the server", 1, 1.0)
    assert server.epsilon_at_delta == pytest.approx(1.0, abs=1e-5)
    assert (agents.viewer, agents.over, agents.epsilon) == ("the agents", 49, 1.0)
    assert actions.epsilon_at_delta == pytest.approx(0.358927689)
    assert actions.viewer == OUTSIDE and actions.over == 50

    rows = rows_of(fmab.hdp_mab(1.0, "20,17,13:star"))
    assert {who: row.over for who, row in rows.items()} == {
        "sinks, and agents that pass on": 1,
        "the server": 13,
        "the agents": 49,
        OUTSIDE: 50,
    }
    # Agents of the smaller component weigh more: those of the larger hide them less than it seems.
    rows = rows_of(fmab.hdp_mab(1.0, "40,10:complete", weights="components"))
    assert (rows["the agents"].over, rows[OUTSIDE].over) == (9, 10)
    assert all(row.epsilon == 50 for row in rows.values())
    assert rows_of(fmab.single_mab(0.3)).keys() == {ACTIONS}
    assert rows_of(fmab.single_mab(0.3))[ACTIONS].epsilon == 0.3
    assert rows_of(fmab.cdp_mab(epsilon_message=7.0))["the server"].epsilon == pytest.approx(7)


def test_an_agent_takes_out_its_own_message():
    """Would catch noise that an agent knows counted among what hides another agent from it.

    Of two agents each sees the other's message, which one Laplace variable of scale 1/2 hides.
    """
    server, agent, outsider = privacy_ledger(fmab.cdp_mab(1.0), 2)
    assert agent.epsilon_at_delta == server.epsilon_at_delta
    assert agent.epsilon_at_delta == pytest.approx(2 + 2 * math.log1p(-1e-6), abs=1e-9)
    assert outsider.epsilon_at_delta == laplace_sum_epsilon(2, 1 / 2) < 1.85
    rows = rows_of(fmab.cdp_mab(1.0))
    assert rows["the agents"].epsilon_at_delta == laplace_sum_epsilon(49, 1 / 50)
    assert rows_of(fmab.cdp_mab(1.0), 1).keys() == {"the server", "the agents", ACTIONS}
    shares = rows_of(fmab.dist_dp_se(1.0))
    assert shares.keys() == {"the server", "an agent", OUTSIDE}


def test_gossip_reaches_every_agent():
    """Would catch averages, which hold a neighbour's message, that the ledger says nothing of."""
    rows = privacy_ledger(fmab.ddp_mab(1.0, "ring", protocol="gossip"), 8)
    assert [(row.viewer, row.observation, row.epsilon, row.over) for row in rows[:2]] == [
        ("neighbours", "single messages", 8.0, 1),
        ("every agent", "averages that hold the message", 8.0, 1),
    ]
    assert [row.viewer for row in rows[2:]] == [ACTIONS]


def test_loose_gossip_does_not_hide_in_the_noise_of_all():
    """Would catch actions after one slot of gossip, on averages of two, that are said to have the
    noise of all eight agents in them."""
    loose = fmab.ddp_mab(1.0, "complete", protocol="gossip", tolerance=0.8)
    assert loose.exchange(8).wait == 0 and not loose.exchange(8).exact
    actions = privacy_ledger(loose, 8)[-1]
    assert (actions.viewer, actions.epsilon, actions.over) == (ACTIONS, 8.0, 1)
    assert "the noise of few agents" in actions.why
    # Of two agents each holds the mean after one slot.
    pair = privacy_ledger(fmab.ddp_mab(1.0, "path", protocol="gossip", tolerance=0.4), 2)[-1]
    assert (pair.viewer, pair.over) == (OUTSIDE, 2)
    # Waits bare more, and flooding is exact.
    assert rows_of(fmab.ddp_mab(1.0, "ring", protocol="gossip"), 8)[ACTIONS].epsilon == math.inf
    assert rows_of(fmab.ddp_mab(1.0, "complete"), 8)[OUTSIDE].over == 8


def test_agents_that_are_drawn_anew_hide_each_other_once():
    """Would catch the sum over N agents taken for the sums of all rounds, where p < 1."""
    server, one, rounds, actions = privacy_ledger(fmab.cdp_mab(1.0, participation=0.3), 50)
    assert server.epsilon == rounds.epsilon == actions.epsilon == 15
    assert (one.over, rounds.over, actions.over) == (14, 1, 1)
    assert one.epsilon_at_delta < 0.7 * rounds.epsilon_at_delta


def test_what_is_about_one_round_says_so():
    """Would catch a smaller epsilon of one round that stands, without a word, in a ledger that is
    headed "over the whole run"."""
    algorithm = fmab.cdp_mab(1.0, participation=0.3)
    rows = privacy_ledger(algorithm, 50)
    found = [row.observation.endswith("that round alone and not the run") for row in rows]
    assert found == [False, True, False, False]
    assert [row.over for row in rows][1] > 1  # the one with the smaller epsilon
    text = lines_of(algorithm)
    assert text.startswith("Privacy of one reward, over the whole run where nothing else is said:")
    assert "one round's sum over 2 agents, that round alone and not the run: ε" in text


def test_waits_bare_actions_unless_they_are_private():
    """Would catch actions that are said to be covered while agents wait by un-noised means."""
    for waits in (RING, fmab.hdp_mab(1.0, "25x2:ring"), fmab.hdp_mab(1.0, "25x2:path")):
        assert rows_of(waits)[ACTIONS].epsilon == math.inf
        assert all(row.epsilon == 50 for who, row in rows_of(waits).items() if who != ACTIONS)
    private = rows_of(fmab.ddp_mab(1.0, "ring", private_waiting=True))[ACTIONS]
    # What an agent plays follows from its own noisy means.
    assert (private.epsilon, private.over) == (50, 1)
    for none in (fmab.ddp_mab(1.0), fmab.ddp_mab(1.0, private_waiting=True), fmab.hdp_mab(1.0)):
        assert (rows_of(none)[OUTSIDE].epsilon, rows_of(none)[OUTSIDE].over) == (50, 50)
    assert rows_of(RING, 1)[ACTIONS].epsilon == 1.0


# What covers actions with epsilon = 0.5, of 50 agents; the others have no noise.
COVERED = {"cdp": 25.0, "ddp": 25.0, "hdp": 25.0, "uniform_play": 0.0} | dict.fromkeys(
    (
        *("single", "dp_se", "dist_dp_se", "adap_ucb", "lazy_dp_ts", "dp_imed", "dp_klucb"),
        *("ldp_ucb", "fed_ucb", "tree_ucb", "demab"),
    ),
    0.5,
)


@pytest.mark.parametrize("name", sorted(each["name"] for each in fmab.list_algorithms()))
def test_every_algorithm_states_who_sees_what(name):
    """Would catch an algorithm without a ledger, privacy without noise, or noise that is not told.

    An algorithm that takes epsilon has no bound at all without it.
    """
    owner = known()[name]
    private = "epsilon" in owner.__dataclass_fields__
    rows = privacy_ledger(owner(0.5) if private else owner(), 50)
    assert rows[-1].viewer in (ACTIONS, OUTSIDE) and all(row.why for row in rows)
    if not private and name not in COVERED:
        assert all(row.epsilon == math.inf for row in rows)
    if name in COVERED:
        assert rows[-1].epsilon == COVERED[name]
        # Who knows a share of the noise is hidden by the others'.
        assert all(row.epsilon <= COVERED[name] for row in rows if row.viewer != "an agent")
    if private:
        bare = privacy_ledger(owner(None), 50)
        assert len(bare) >= 1 and all(row.epsilon == math.inf for row in bare)
        assert all(row.epsilon_at_delta == math.inf for row in bare)


# Changes of somebody else: a tenth of the noise, or another epsilon, or rewards as they are.
CHANGES = [
    (
        fmab.cdp_mab,
        {"noise_scale": staticmethod(lambda epoch: 0.001 * jnp.ones_like(epoch.number))},
    ),
    (fmab.cdp_mab, {"noise_scale": staticmethod(lambda epoch: 0.0 * epoch.pulls)}),
    (fmab.cdp_mab, {"values": lambda *given: fmab.cdp_mab.values(*given) | {"epsilon": 100.0}}),
    (fmab.cdp_mab, {"settled": staticmethod(lambda own, instance: own | {"epsilon": 100.0})}),
    (fmab.ldp_ucb, {"release": staticmethod(lambda rewards, uniforms, params: rewards)}),
]


def test_what_somebody_else_changes_has_no_bound():
    """Would catch a plug-in that inherits a statement about a mechanism that it replaces, or what
    several of its agents see together."""
    for algorithm in (
        *(altered(o, **methods)(1.0) for o, methods in CHANGES),
        Geometric(),
        Greedy(),
    ):
        rows = privacy_ledger(algorithm, 5, colluding=2)
        assert all(row.epsilon == math.inf for row in rows), algorithm
    viewers = [row.viewer for row in privacy_ledger(Geometric(), 5)]
    assert viewers == ["anybody who gets messages", ACTIONS]
    # Other epochs, decided by what the server has sent, change nothing.
    longer = altered(fmab.cdp_mab, pulls_per_arm=staticmethod(lambda epoch: epoch.previous + 100.0))
    assert privacy_ledger(longer(1.0), 5) == privacy_ledger(fmab.cdp_mab(1.0), 5)
    stated = stating(fmab.cdp_mab, base.Seen("anybody", "all", 7.0, "because"))
    assert privacy_ledger(stated(1.0), 5, colluding=2)[-1].epsilon == 7.0


# Looked at one by one: what they change is covered by the ledger of their family.
INHERITING = {
    *("AdaPUCB", "DPIMED", "DPKLUCB", "ForgettingElimination", "LazyDPTS"),
    *("PaperElimination", "LikelihoodElimination"),
}


def inheriting(owner):
    """Returns the classes that change what is made public below a ledger that bounds it."""
    order = owner.__mro__
    place = next(n for n, each in enumerate(order) if "ledger" in vars(each))
    if owner.ledger in (base.Algorithm.ledger, base.noiseless_ledger):
        return set()
    changed = [each for each in order[:place] if not {*vars(each)}.isdisjoint(base._MADE_PUBLIC)]
    return {each.__name__ for each in changed}


def test_every_shipped_ledger_is_stated_for_what_it_is_about():
    """Would catch a new algorithm of the package, with the noise or messages of its own, that
    inherits its parent's epsilon or title, which only plug-ins are kept from."""
    owners = [owner for owner in known().values() if base._is_ours(owner)]
    assert set().union(*map(inheriting, owners)) == INHERITING
    for owner in owners:
        changes_another = any(vars(each).get("name") for each in owner.__mro__[1:])
        assert {"title", *["source"] * changes_another} <= {*vars(owner)}, owner
    own = {"__module__": "fmab_jax.algorithms.new", **CHANGES[0][1]}
    assert inheriting(type("New", (fmab.cdp_mab,), own)) == {"New", "PaperElimination"}


UNSTATED = "privacy not stated; "


def whys(algorithm):
    """Returns why nothing bounds what is seen, which is the same for all rows."""
    (why,) = {row.why for row in privacy_ledger(algorithm, 5)}
    return why


def test_a_class_that_states_no_ledger_says_so_and_how_to_state_one():
    """Would catch "no noise is stated" of a class that inherits noise, or draws its own."""
    quiet, choose = CHANGES[0][1], {"choose": staticmethod(lambda state, slot, params: 0)}
    theirs = stating(fmab.cdp_mab, base.Seen("anybody", "all", 7.0, "because"))
    changed = altered(fmab.cdp_mab, **quiet)(1.0), altered(fmab.ucb1, **choose)()
    for algorithm in (*changed, altered(theirs, **quiet)(1.0), Greedy()):
        assert whys(algorithm) == UNSTATED + "state a ledger"
    # What the remedy says is enough.
    stated = altered(fmab.cdp_mab, **quiet, ledger=fmab.cdp_mab.ledger)
    assert privacy_ledger(stated(1.0), 5) == privacy_ledger(fmab.cdp_mab(1.0), 5)
    # An elimination says itself whether it draws noise, and the package's policies do.
    without = "a function of the rewards; no noise is stated"
    assert whys(Geometric()) == whys(fmab.ucb1()) == whys(fmab.fed1_ucb()) == without
    for name, owner in known().items():
        made = owner(0.5) if "epsilon" in owner.__dataclass_fields__ else owner()
        assert UNSTATED not in str(privacy_ledger(made, 5)), name


SMALL_RUN = {"horizon": 60, "seeds": 2, "progress": False}


def title(data):
    """Returns the line above a table."""
    return fmab.overview(data).title


def test_a_title_says_no_noise_only_where_that_is_stated():
    """Would catch a policy with noise of its own under "no noise", and one without noise under
    "not stated"; beside others, too, and where one is selected."""
    problem = fmab.Problem([0.9, 0.1], agents=3)

    def run(algorithm):
        return title(fmab.simulate(algorithm, problem, 60, 2))

    loud = altered(Greedy, title="Loud", release=staticmethod(lambda x, u, own: x + norm_of(u)))
    assert run(loud()).startswith("Loud, privacy not stated, M = 3")
    assert run(fmab.ucb1()).startswith("UCB1, no noise, M = 3")
    assert run(Geometric()).startswith("Geometric phases, no noise, M = 3")
    louder = altered(fmab.cdp_mab, title="Louder", **CHANGES[0][1])
    assert run(louder(1.0)).startswith("Louder, ε = 1, M = 3")
    assert run(louder(None)).startswith("Louder, privacy not stated, M = 3")
    assert run(fmab.cdp_mab(None)).startswith("CDP-MAB, no noise, M = 3")
    # A ledger may be stated, and `privacy` be left that of no noise.
    row = base.Seen(ACTIONS, "actions", 3.0, "Laplace noise")
    half = altered(loud, title="Half", ledger=lambda self, exchange: row)
    assert run(half()).startswith("Half, privacy as in the ledger, M = 3")
    both = fmab.sweep({"loud": loud, "ucb1": fmab.ucb1}, problem, **SMALL_RUN)
    assert re.match(r"Loud \(privacy not stated[^)]*\), UCB1 \(no noise\), M = 3", title(both))
    assert title(both.sel(algorithm="loud")).startswith("Loud, privacy not stated, M = 3")
    assert title(both.sel(algorithm="ucb1")).startswith("UCB1, no noise, M = 3")


def norm_of(uniforms):
    """Returns normal variables."""
    from jax.scipy.special import ndtri

    return ndtri(uniforms)


def test_a_report_says_that_privacy_is_not_stated(tmp_path):
    """Would catch a page that says "no noise" of a policy that states nothing."""
    data = fmab.simulate(Greedy(), fmab.Problem([0.9, 0.1], agents=3), 60, 2)
    page = fmab.write_report(data, tmp_path / "r.html").read_text("utf-8")
    body = page.partition("<body")[2].partition("<script")[0]
    assert "greedy, privacy not stated" in body and "no noise" not in body


def test_who_sees_messages_and_has_no_row_is_added():
    """Would catch messages that vanish from a ledger that was stated for another exchange."""
    server = exchanges.server
    # Agents that were alone tell a server; and nobody knows who hears whom.
    heard = altered(fmab.dp_se, exchange=lambda self, agents: server(agents))
    relayed = altered(
        fmab.dp_se, exchange=lambda self, agents: dataclasses.replace(server(agents), views=())
    )
    first, *found = [(row.viewer, row.epsilon, row.why) for row in privacy_ledger(heard(0.5), 5)]
    assert first[:2] == (ACTIONS, 0.5)
    assert found == [(who, math.inf, "not stated") for who in ("the server", "the agents")]
    anybody = privacy_ledger(relayed(0.5), 5)[-1]
    assert (anybody.viewer, anybody.epsilon) == ("anybody who gets messages", math.inf)
    # Every released reward holds whatever the server sees.
    assert len(privacy_ledger(fmab.ldp_ucb(0.5, pooled=True), 5)) == 2


def test_a_ledger_that_is_none_is_refused():
    """Would catch a plug-in whose ledger ends in a traceback, or in a negative epsilon."""
    wrong = altered(fmab.cdp_mab, ledger=lambda self, exchange: [("the server", -1.0)])
    refuses(
        "Altered.ledger=..'the",
        fmab.simulate,
        wrong(1.0),
        fmab.Problem([0.2, 0.8], agents=3),
        100,
        2,
    )


def told_of(algorithm):
    """Returns what a result keeps of the ledger of an algorithm among six agents."""
    problem = fmab.Problem([0.2, 0.8], agents=6)
    return json.dumps(facts.ledger_rows(configs.bind(algorithm, problem, 200)))


def lines_of(algorithm):
    """Returns what is printed of that ledger, on one line."""
    return " ".join(" ".join(privacy.write_lines(told_of(algorithm))).split())


TWICE, ONCE = "One pull changed, arm and reward, counts twice", "A changed arm may shift later"
CUT = "cuts in their wait have sent their data"


@pytest.mark.parametrize(
    ("algorithm", "notes"),
    [
        (fmab.cdp_mab(0.5), {TWICE}),
        (fmab.ddp_mab(0.5, "ring"), {TWICE, CUT}),
        (fmab.dp_se(0.5), {TWICE}),
        (fmab.tree_ucb(0.5), {ONCE}),
        (fmab.fed_ucb(0.5, "ring"), {ONCE}),
        (fmab.adap_ucb(0.5), {ONCE}),
        (fmab.lazy_dp_ts(0.5), {ONCE}),
        (fmab.ucb1(), set()),
        (fmab.ddp_mab(None, "ring"), set()),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_what_counts_twice_is_told_of_elimination_alone(algorithm, notes):
    """Would catch a pull that is said to count twice where later rewards move to other blocks.

    Also data of cut rounds, told of algorithms in which no round is cut after it was sent.
    """
    text = lines_of(algorithm)
    assert {note for note in (TWICE, ONCE, CUT) if note in text} == notes


@pytest.mark.parametrize(
    "leaks, text",
    [
        ([(math.inf, 1), (math.inf, 1)], "no bound"),
        ([(math.inf, 1), (0.5, 1)], "ε = 0.5 to no bound"),
        ([(2.0, 1), (0.5, 1), (1.0, 1)], "ε = 0.5 to 2"),
        ([(3.0, 1), (3.0, 1)], "ε = 3"),
        ([(math.inf, 6), (1.5, 6)], "ε = 1.5 to no bound, and {} to no bound up to δ = 10⁻⁶"),
    ],
)
def test_the_epsilons_of_several_configurations_have_two_ends(leaks, text):
    """Would catch a bound that is kept back since another has none, or "no bound" left out."""
    low = f"{laplace_sum_epsilon(6, 1 / 1.5):.3g}"
    row = {
        "viewer": "every agent",
        "observation": "sums",
        "source": "here",
        "why": "",
        "title": "mine",
    }
    ledger = json.dumps([{**row, "leaks": [(None if e == math.inf else e, n) for e, n in leaks]}])
    assert privacy.write_table(ledger)[0][0]["epsilon"] == text.format(low)
    lines = " ".join(map(str.strip, privacy.write_lines(ledger)))
    assert f" every agent, sums: {text.format(low)} " in f"{lines} "


def test_results_tell_their_ledger(tmp_path, uncomputed):
    """Would catch results without it, one that a file loses, or a sweep that tells only one end."""
    problem = fmab.Problem([0.2, 0.8], agents=6)
    data = fmab.simulate(fmab.ddp_mab(0.5, "ring"), problem, 200, 2)
    fmab.save(data, tmp_path / "run.nc")
    messages, actions = json.loads(fmab.load(tmp_path / "run.nc").attrs["ledger"])
    assert (messages["leaks"], actions["leaks"]) == ([[3.0, 1]], [[None, 1]])
    options = {"epsilon": [0.25, 0.5, 1], "graph": ["ring", "complete"], "seeds": 2}
    store = tmp_path / "s"
    swept = uncomputed("ddp", problem, horizon=200, store=store, **options)
    rows = json.loads(swept.attrs["ledger"])
    assert [(row["observation"], row["where"], row["leaks"]) for row in rows] == [
        ("single messages", "", [[1.5, 1], [6.0, 1]]),
        ("actions", "graph ring", [[None, 1]]),
        ("actions", "graph complete", [[1.5, 6], [6.0, 6]]),
    ]
    opened = fmab.open_sweep(store, partial=True)
    assert opened.attrs["ledger"] == swept.attrs["ledger"]
    lines = privacy.write_lines(swept.attrs["ledger"])
    assert max(map(len, lines)) <= 80
    assert "  every agent, single messages: ε = 1.5 to 6" in lines
    assert f"  {ACTIONS} (graph ring): no bound" in lines
    low, high = (laplace_sum_epsilon(6, 1 / pure) for pure in (1.5, 6.0))
    assert lines[-5].startswith("All rewards that one agent could get in one slot")
    assert lines[-3].startswith(TWICE) and lines[-2].startswith("Without") and CUT in lines[-1]
    # A table says the same as the lines.
    table, notes = privacy.write_table(swept.attrs["ledger"])
    expected = [("single messages", ""), ("actions", "graph ring"), ("actions", "graph complete")]
    assert [(row["observation"], row["where"]) for row in table] == expected
    assert [row["epsilon"] for row in table][:2] == ["ε = 1.5 to 6", "no bound"]
    assert f"{low:.3g} to {high:.3g} up to δ = 10⁻⁶" in table[2]["epsilon"]
    assert notes == [" ".join(" ".join(lines[-7:]).split())]
    assert lines[-7].startswith("Up to δ: the hockey-stick divergence")
    options = {"epsilon": 0.5, "graph": "ring", "horizon": 200, "seeds": 2}
    mixed = uncomputed(["ddp", "tree_ucb"], problem, **options)
    text = " ".join(" ".join(privacy.write_lines(mixed.attrs["ledger"])).split())
    assert f"DDP-MAB: {TWICE}" in text and "Private UCB: A changed arm may" in text
    assert f"DDP-MAB: Rounds that the horizon {CUT}" in text
    assert f"{low:.3g} to {high:.3g} up to δ = 10⁻⁶" in " ".join(line.strip() for line in lines)


def test_a_coalition_takes_its_noise_out_of_a_sum():
    """Would catch a coalition that hides behind its own noise, or a server taken for an agent."""
    for size in (1, 10, 49):
        *others, last = privacy_ledger(fmab.cdp_mab(0.5), 50, colluding=size)
        assert others == privacy_ledger(fmab.cdp_mab(0.5), 50)
        assert last.viewer == f"{size} agent{'s' * (size > 1)} together" and last.over == 50 - size
        assert last.epsilon == 25.0
        assert last.epsilon_at_delta == laplace_sum_epsilon(50 - size, 1 / 25)
    # One agent is the agent that the ledger has anyway.
    alone = privacy_ledger(fmab.cdp_mab(0.5), 50, colluding=1)
    assert alone[-1].epsilon_at_delta == alone[1].epsilon_at_delta


@pytest.mark.parametrize(
    ("algorithm", "epsilon", "what"),
    [
        # Sinks, and agents that pass on, see single messages.
        (fmab.hdp_mab(0.5, "2x5:star"), 5.0, "single messages"),
        (fmab.ddp_mab(0.5, "complete"), 5.0, "single messages"),
        # Un-noised waits bare all; over all rounds, an agent is hidden by its own noise alone.
        (fmab.ddp_mab(0.5, "ring"), math.inf, "actions"),
        (fmab.cdp_mab(0.5, participation=0.4), 2.0, "the sums of all rounds"),
        (fmab.cdp_mab(None), math.inf, "messages"),
        (fmab.single_mab(0.5), 0.5, "actions"),
        (fmab.ldp_ucb(0.5), 0.5, "every released reward"),
        (fmab.uniform_play(), 0.0, "actions"),
    ],
)
def test_a_coalition_sees_the_most_that_one_of_them_sees(algorithm, epsilon, what):
    """Would catch sums where agents get single messages, and the least of what is seen."""
    last = privacy_ledger(algorithm, 10, colluding=3)[-1]
    assert (last.viewer, last.epsilon, last.observation) == ("3 agents together", epsilon, what)
    assert last.over == (algorithm.name != "uniform_play")


@pytest.mark.parametrize(("agents", "expected"), [(50, 1.034), (10, 1.188), (5, 1.443), (3, 1.994)])
def test_an_agent_takes_its_share_out_of_a_secure_sum(agents, expected):
    """Would catch a share that hides its owner's neighbour, or one of another size."""
    server, agent, outsider = privacy_ledger(fmab.dist_dp_se(1.0), agents)
    assert (server.epsilon, agent.viewer, outsider.epsilon) == (1.0, "an agent", 1.0)
    assert agent.epsilon == pytest.approx(expected, abs=5e-4)
    # Another law hides it than that of whole variables: no smaller epsilon follows.
    assert (agent.over, agent.epsilon_at_delta) == (0, agent.epsilon)
    told = json.dumps([{**server._asdict(), "leaks": [[agent.epsilon, 0]]}])
    assert f"ε = {agent.epsilon:.3g}\n" in "\n".join([*privacy.write_lines(told), ""])
    one = privacy_ledger(fmab.dist_dp_se(1.0), agents, colluding=1)[-1]
    assert (one.epsilon, one.viewer) == (agent.epsilon, "1 agent together")
    assert one.observation == f"sums over {agents} agents, less their own shares of the noise"


def test_half_of_the_shares_bound_nothing():
    """Would catch an epsilon where the density has no bound at 0."""
    found = [privacy_ledger(fmab.dist_dp_se(1.0), 6, colluding=k)[-1].epsilon for k in range(1, 6)]
    assert found[:2] == sorted(found[:2]) and found[0] > 1
    assert found[2:] == [math.inf] * 3
    assert laplace.share_epsilon(1.0, 9, 20) == math.inf
    # From the smallest to the largest epsilon that is accepted, never below it.
    for epsilon in (1e-100, 1e-9, 1e7, 1e9, 1e100):
        found = laplace.share_epsilon(epsilon, 49, 50)
        assert epsilon <= found <= 2 * epsilon + 1e-6


@pytest.mark.parametrize("secure", [fmab.dist_dp_se(1.0), fmab.kl_se(1.0, secure=True)])
def test_half_of_the_shares_bound_something_up_to_delta(secure):
    """Would catch "no bound" of a coalition of half the agents, whom shares hide up to delta."""
    for agents, size in ((50, 25), (50, 45), (6, 4)):
        last = privacy_ledger(secure, agents, 1e-4, colluding=size)[-1]
        wanted = laplace_share_epsilon(agents - size, agents, 1.0, 1e-4)
        assert last.epsilon == math.inf
        assert last.epsilon_at_delta == wanted < math.inf
    assert round(privacy_ledger(secure, 50, colluding=25)[-1].epsilon_at_delta, 2) == 3.47
    # Where a ratio is bounded, that is said for every delta.
    few = privacy_ledger(secure, 50, colluding=5)[-1]
    assert few.epsilon_at_delta == few.epsilon < math.inf
    # The quadrature loses its digits beyond.
    large = privacy_ledger(dataclasses.replace(secure, epsilon=1e7), 2)[1]
    assert large.epsilon_at_delta == math.inf


def test_results_say_what_holds_up_to_delta_alone():
    """Would catch a table that says "no bound" for one of two agents who share a noise."""
    problem, how = fmab.Problem.uniform(2, 4), {"horizon": 500, "seeds": 2, "times": 1}
    one = fmab.simulate(fmab.dist_dp_se(1.0), problem, **how)
    text = "\n".join(privacy.write_lines(one.attrs["ledger"]))
    assert "  an agent: no bound without δ, and 3.47 up to δ = 10⁻⁶\n" in text
    assert "hockey-stick" in text
    several = fmab.sweep("dist_dp_se", problem, epsilon=[0.5, 2, 1], **how).attrs["ledger"]
    assert "no bound without δ, and 2.68 to 4.77 up to δ" in "\n".join(privacy.write_lines(several))
    none = fmab.simulate(fmab.dist_dp_se(None), problem, **how)
    assert "  an agent: no bound\n" in "\n".join(privacy.write_lines(none.attrs["ledger"]))


@pytest.mark.parametrize("shares", [(1.0, 0, 5), (1.0, 6, 5), (1.0, 5)])
def test_shares_are_a_part_of_all(shares):
    """Would catch a ledger whose shares are more than there are."""
    row = base.Seen("an agent", "actions", math.inf, "", shares=shares)
    line = f"Altered.ledger[0].shares={shares}: must be (epsilon of one noise, how many "
    refuses(re.escape(line), privacy_ledger, stating(fmab.dist_dp_se, row)(1.0), 5)


@pytest.mark.parametrize("name", ["dist_dp_se", "dp_imed", "kl_se", "kl_se split"])
def test_two_agents_of_a_secure_sum_are_shown_everywhere(name, tmp_path):
    """Would catch a ledger that speaks of shares of a noise in a form that tables, files or
    comparisons do not read."""
    name, *split = name.split()
    given = {"secure": True} if name != "dist_dp_se" else {}
    algorithm = getattr(fmab, name)(1.0, **given | dict.fromkeys(split, True))
    runs = []
    for root_seed in (0, 1):
        problem = fmab.Problem([0.3, 0.5, 0.7], agents=2)
        data = fmab.simulate(algorithm, problem, 500, seeds=3, root_seed=root_seed)
        runs.append(fmab.load(fmab.save(data, tmp_path / f"{root_seed}.nc")))
        assert runs[-1].attrs["ledger"] == data.attrs["ledger"]
    assert float(fmab.final_table(runs[0]).leak_epsilon) == 1.0
    assert "leak ε of sums" in " ".join(str(fmab.overview(runs[0])).split())
    assert "leak ε = 1 each" in fmab.compare(*runs, labels=("a", "b")).sentence
    assert fmab.plot_runs({"a": runs[0], "b": runs[1]}).axes
    report = fmab.write_report(runs[0], tmp_path / "report.html")
    assert "1 of 2 shares of the noise" in report.read_text("utf-8")


def test_a_coalition_is_never_guessed():
    """Would catch the ledger of one observer taken for that of several, or of outsiders."""

    def relays(self, agents):
        usual = fmab.cdp_mab.exchange(self, agents)
        return dataclasses.replace(usual, views=(*usual.views, exchanges.View("relays", 5)))

    restated = altered(fmab.dist_dp_se, ledger=lambda *given: fmab.dist_dp_se.ledger(*given))
    assert privacy_ledger(restated(0.5), 50, colluding=49)[-1].epsilon == math.inf
    relayed = privacy_ledger(altered(fmab.cdp_mab, exchange=relays)(1.0), 50, colluding=3)[-1]
    assert (relayed.epsilon, relayed.over) == (50.0, 1)
    assert privacy_ledger(fmab.fed_ucb(1.0, "ring"), 9, colluding=3)[-1].epsilon == 1.0
    assert privacy_ledger(fmab.gosine(), 9, colluding=3)[-1].epsilon == math.inf
    bare = altered(fmab.cdp_mab, coalition=lambda self, exchange, size: ())
    refuses("Altered.coalition=..: must be one Seen", privacy_ledger, bare(1.0), 5, colluding=1)
    assert privacy_ledger(fmab.dist_dp_se(1.0), 1)[-1].viewer == OUTSIDE
    silent = privacy_ledger(fmab.dist_dp_se(None), 6, colluding=1)[-1]
    assert (silent.epsilon, silent.why) == (math.inf, "no noise")


ACCOUNTANT = json.loads(Path(__file__).with_name("accountant.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", [row for row in ACCOUNTANT if row["kind"] == "sum"], ids=str)
def test_sums_agree_with_another_accountant(row):
    """Would catch another divergence, shift or delta than dp-accounting has for sums of Laplace
    variables; its losses are rounded up to 1e-4, and its grid is one of 4,000 points."""
    found = laplace_sum_epsilon(row["terms"], 1 / row["reach"], row["delta"])
    assert found == pytest.approx(row["epsilon"], rel=3e-4, abs=1.1e-4)


@pytest.mark.parametrize("row", [row for row in ACCOUNTANT if row["kind"] == "share"], ids=str)
def test_shares_agree_with_another_accountant(row):
    """Would catch a half-line where an interval tells more, and a law of another shape."""
    found = laplace_share_epsilon(row["left"], row["shares"], 1 / row["reach"], row["delta"])
    assert found == pytest.approx(row["epsilon"], rel=3e-4, abs=1.1e-4)
    pure = laplace.share_epsilon(row["reach"], row["left"], row["shares"])
    assert found < pure


def test_shares_end_at_the_whole_variable_and_at_the_pure_epsilon():
    """Would catch an integral that loses what lies next to 0, or that ends too early."""
    whole = laplace_sum_epsilon(1, 1.0, 1e-3)
    assert laplace_share_epsilon(5, 5, 1.0, 1e-3) == pytest.approx(whole, rel=1e-6)
    pure = laplace.share_epsilon(1.0, 4, 5)
    small = [laplace_share_epsilon(4, 5, 1.0, delta) for delta in (1e-3, 1e-6, 1e-9, 1e-12)]
    assert small == sorted(small)
    assert small[-1] == pytest.approx(pure, abs=1e-4) and small[-1] < pure
    # The total variation distance.
    far = quad(lambda g: gamma_law.sf(0.5 + g, 0.8) * gamma_law.pdf(g, 0.8), 0.0, 60.0)[0]
    assert laplace_share_epsilon(4, 5, 1.0, 1.0 - 2.0 * far + 1e-6) == 0.0
    assert 0.0 < laplace_share_epsilon(4, 5, 1.0, 1.0 - 2.0 * far - 1e-6) < 1e-4
    # Of one share of a thousand nearly all lies closer to 0 than numbers reach.
    assert laplace_share_epsilon(1, 1000, 1.0, 1e-3) == math.inf


def test_units_of_a_claim_cover_what_another_accountant_has():
    """Would catch n rewards of an agent that count less than they leak: in one sum, or in n.

    The ledger says n epsilon; up to delta also n e^((n - 1) epsilon) delta.
    """
    compositions = [row for row in ACCOUNTANT if row["kind"] == "composition"]
    for row in compositions:
        one = rows_of(fmab.single_mab(row["reach"]))[ACTIONS].epsilon
        # Each in a message of its own: less than n epsilon, and as much in the end.
        assert row["epsilon"] <= row["times"] * one
        if row["delta"] == 1e-6 and row["times"] * one >= 2:
            assert row["epsilon"] > (0.99 if one == 1.0 else 0.4) * row["times"] * one
    five = {
        row["delta"]: row for row in ACCOUNTANT if (row.get("terms"), row.get("reach")) == (5, 5)
    }
    for delta in (1e-6, 1e-4, 1e-2):
        # All in one sum of five agents' noise, five rewards of one agent.
        one = privacy_ledger(fmab.cdp_mab(0.2), 5, delta)[2]
        assert (one.viewer, one.over, one.epsilon) == (OUTSIDE, 5, pytest.approx(1.0))
        widened = 5 * math.exp(4 * one.epsilon_at_delta) * delta
        true = [row["epsilon"] for at, row in five.items() if at >= widened]
        assert all(epsilon <= 5 * one.epsilon_at_delta for epsilon in true)
    assert five and any(5 * math.exp(4 * 0.775) * 1e-6 <= at for at in five)


def page_of(name):
    """Returns a page of the documentation on one line."""
    docs = Path(__file__).parents[2] / "docs"
    return " ".join((docs / f"{name}.md").read_text(encoding="utf-8").split())


def test_two_rewards_leak_more_than_twice_at_the_same_delta():
    """Would catch "n rewards, n times" beside an epsilon that holds up to delta: 2 x 1.981 is
    3.962, and two rewards in a sum of 50 noises leak 4.197; in print and on the pages."""
    sums = privacy_ledger(fmab.cdp_mab(epsilon_message=5.0), 50)[2]
    one = sums.epsilon_at_delta
    two = laplace_sum_epsilon(50, 0.2 / 2, sums.delta)
    assert (round(one, 3), round(two, 3), round(2 * one, 3)) == (1.981, 4.197, 3.962)
    # What is said of any mechanism covers it.
    assert laplace_sum_epsilon(50, 0.2 / 2, 2 * math.exp(one) * sums.delta) <= 2 * one
    page, printed = page_of("privacy"), lines_of(fmab.cdp_mab(0.5))
    for number in ("leaks 1.981", "leak 4.197", "is 3.962", "its epsilon, without $\\delta$"):
        assert number in page
    assert "n rewards leak more than n times ε: n ε holds up to n e^((n - 1) ε) δ." in printed
    assert "leak more" not in lines_of(fmab.dp_se(0.5))
    texts = [printed, lines_of(fmab.tree_ucb(0.5)), page]
    texts += map(page_of, ("privacy_audit", "semantics"))
    for text in texts:
        for found in re.finditer(r"[^.]*(counts? \$?n\$? times|agent, n times)", text):
            assert "ithout" in found[0] and "δ" in found[0] or "\\delta" in found[0], found[0]
    assert "counts twice, δ too" in printed


def test_pages_and_ledgers_say_what_an_epsilon_is_about():
    """Would catch a claim about the program, whose noise is floating point; a changed reward of
    which nobody knows what else is fixed; and an epsilon up to delta that is written about as one
    that fails with a small probability, or a note where no row has one."""
    printed, tree = lines_of(fmab.cdp_mab(0.5)), lines_of(fmab.tree_ucb(0.5))
    pages = {name: page_of(name) for name in ("semantics", "privacy", "privacy_audit")}
    module, ledger = (" ".join(str(each.__doc__).split()) for each in (privacy, privacy_ledger))
    every = [printed, tree, *pages.values(), module, ledger]
    for pattern, texts in (
        ("about the ideal mechanism, with real numbers and exact", [module, pages["semantics"]]),
        ("approximates", [module, pages["semantics"]]),
        (r"other slots and( of other)? agents are (fixed|the same)", every),
        (r"later (slots |arms )adapt", every),
        (r"hockey-stick divergence at \$\\varepsilon\$ is at most \$\\delta\$", pages.values()),
    ):
        for text in texts:
            assert re.search(pattern, text, re.IGNORECASE), (pattern, text[:80])
    fails = r"(fail|hold)s? (but for|except) .{0,30}(probability|chance)|may fail with"
    for text in (*pages.values(), module):
        assert not re.search(rf"{fails}|in exact arithmetic", text, re.IGNORECASE)
    assert "All rewards that one agent could get in one slot may differ" in printed
    # A changed arm is another thing, and is said to be; where nothing is covered nothing is said.
    assert TWICE in printed and ONCE in tree and "in one slot" not in lines_of(fmab.ucb1())
    note = "Up to δ: the hockey-stick divergence at ε is at most δ."
    assert note in printed
    for none in (fmab.dp_se(0.5), fmab.cdp_mab(0.5, participation=0.5)):
        assert ("up to δ" in lines_of(none)) == (note in lines_of(none))
    assert note not in lines_of(fmab.dp_se(0.5))


@pytest.mark.parametrize("agents", [2, 3])
@pytest.mark.parametrize(("pure", "delta"), [(0.2, 1e-4), (2.0, 1e-6), (12.0, 1e-3)])
def test_few_variables_by_quadrature(agents, pure, delta):
    """Would catch a wrong mixture weight or tail: quadrature of max(f - e^epsilon f(. + 1), 0).

    The density is the one with a Bessel function, which for 2 and 3 variables is a polynomial.
    """

    def density(x):
        u = abs(x) * pure
        if agents == 2:
            return pure * (1 + u) * math.exp(-u) / 4
        return pure * (3 + 3 * u + u * u) * math.exp(-u) / 16

    u = 1.7 * pure
    bessel = u ** (agents - 0.5) * kv(agents - 0.5, u) / 2 ** (agents - 0.5)
    assert density(1.7) == pytest.approx(pure * bessel / (math.sqrt(math.pi) * gamma(agents)))

    def divergence(epsilon):
        def excess(x):
            return max(density(x) - math.exp(epsilon) * density(x + 1), 0.0)

        kinks = [-1.0, -0.5, 0.0]
        # Where the excess begins is a kink as well.
        rising = [x for x in np.linspace(-1, 60 / pure, 2000) if excess(x) > 0]
        start = brentq(
            lambda x: math.log(density(x) / density(x + 1)) - epsilon, -0.5, rising[0] + 1e-9
        )
        kinks = [start, *[x for x in kinks if x > start]]
        ends = [*kinks, kinks[-1] + 5 / pure, kinks[-1] + 60 / pure]
        parts = [quad(excess, a, b, epsabs=1e-15)[0] for a, b in zip(ends, ends[1:], strict=False)]
        return sum(parts)

    found = laplace_sum_epsilon(agents, 1 / pure, delta)
    assert 0 < found < pure
    assert divergence(found) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("left", "shares"), [(49, 50), (4, 5), (2, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_shares_by_quadrature(left, shares, epsilon):
    """Would catch another shape, scale or shift: the density is integrated from Gamma laws."""
    shape = left / shares

    def density(x):
        # Of a difference of two Gamma(shape) variables; y = u^(1 / shape) takes the pole away.
        def inside(u):
            y = u ** (1 / shape)
            return math.exp(-2 * y - x) * (x + y) ** (shape - 1)

        whole = quad(inside, 0.0, 60.0**shape, limit=400, epsabs=0, epsrel=1e-10)[0]
        return whole / (shape * math.gamma(shape) ** 2)

    def ratio(x):
        return math.log(density(x) / density(x + epsilon))

    # At 0 in closed form: the integral of y^(2 a - 2) e^(-2 y).
    order = 2 * shape - 1
    at_zero = math.gamma(order) * 2.0**-order / math.gamma(shape) ** 2
    expected = math.log(at_zero / density(epsilon))
    assert laplace.share_epsilon(epsilon, left, shares) == pytest.approx(expected, rel=1e-6)
    # Elsewhere it is smaller, and reaches epsilon far out.
    further = [ratio(x) for x in (0.01, 0.3, 2.0, 9.0)]
    assert max(further) < expected and further == sorted(further, reverse=True)
    assert min(further) > epsilon


def test_ledgers_of_older_files_are_read():
    """Would catch results of version 0.2 whose ledger cannot be shown: other keys."""
    row = {"who": "the server", "what": "sums", "leaks": [[1.0, 1]], "why": "", "source": ""}
    (table,), _ = privacy.write_table(json.dumps([row]))
    assert (table["viewer"], table["observation"]) == ("the server", "sums")
