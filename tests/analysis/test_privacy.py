"""The privacy ledger: the epsilon of sums against exact laws, and what every algorithm states."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from altered import altered
from ledgers import add_ledgers
from plugs import Geometric, Greedy
from scipy.integrate import quad
from scipy.stats import gamma as gamma_law

import fmab_jax as fmab
from fmab_jax.algorithms.base import ALGORITHMS, Disclosure, Noise, Viewer, ViewKind
from fmab_jax.analysis import accountant, privacy
from fmab_jax.analysis.privacy import laplace_sum_epsilon, list_disclosures, privacy_ledger
from fmab_jax.parts import exchanges
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.mechanisms.bits import BITS
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.run.facts import read_ledger
from fmab_jax.sampling import laplace

RING = fmab.ddp_mab(1.0, "ring")


def bits_sum_epsilon(bits, epsilon, delta=1e-6):
    """Returns the epsilon of one of so many bits in their sum."""
    return accountant.noise_epsilon((Noise(BITS, 1.0 / epsilon, bits),), delta)


def laplace_share_epsilon(left, shares, scale, delta=1e-6):
    """Returns the epsilon of some shares of one Laplace variable."""
    return accountant.noise_epsilon((Noise(LAPLACE, scale, shares=(left, shares)),), delta)


def stating(owner, *rows):
    """Returns a plug-in that states its ledger."""
    return altered(owner, ledger=lambda self, exchange: rows)


def make_result(*ledgers):
    """Returns a result of as many configurations, whose ledgers are rows each."""
    places = xr.Dataset(coords={"epsilon": np.arange(len(ledgers))})
    return add_ledgers(places, ledgers, ("epsilon",))


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
    """Would catch others' rewards that are all 0, a sum of too few bits, or one direction."""
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
            assert (row.number, row.epsilon_at_delta) == (over, pytest.approx(expected)), row


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
    assert rows_of(fmab.cdp_mab(1.0), 1).keys() == {"the server", "the agents", Viewer.WATCHERS}
    shares = rows_of(fmab.dist_dp_se(1.0))
    assert shares.keys() == {"the server", "an agent", Viewer.OUTSIDER}


def test_loose_gossip_does_not_hide_in_the_noise_of_all():
    """Would catch actions after one slot of gossip, on averages of two."""
    loose = fmab.ddp_mab(1.0, "complete", protocol="gossip", tolerance=0.8)
    assert loose.exchange(8).wait == 0 and not loose.exchange(8).exact
    actions = privacy_ledger(loose, 8)[-1]
    assert (actions.viewer, actions.epsilon, actions.number) == (Viewer.WATCHERS, 8.0, 1)
    assert "the noise of few agents" in actions.why
    # Of two agents each holds the mean after one slot.
    pair = privacy_ledger(fmab.ddp_mab(1.0, "path", protocol="gossip", tolerance=0.4), 2)[-1]
    assert (pair.viewer, pair.number) == (Viewer.OUTSIDER, 2)


# What covers actions with epsilon = 0.5, of 50 agents; the others have no noise.
COVERED = {"cdp": 25.0, "ddp": 25.0, "hdp": 25.0, "uniform_play": 0.0} | dict.fromkeys(
    (
        *("single", "dp_se", "dist_dp_se", "adap_ucb", "lazy_dp_ts", "dp_imed", "dp_klucb"),
        *("ldp_ucb", "fed_ucb", "tree_ucb"),
    ),
    0.5,
)


@pytest.mark.parametrize("name", sorted(each["name"] for each in fmab.list_algorithms()))
def test_every_algorithm_states_who_sees_what(name):
    """Would catch an algorithm without a ledger, or privacy without noise."""
    owner = ALGORITHMS.by_name()[name]
    private = "epsilon" in owner.__dataclass_fields__
    rows = privacy_ledger(owner(0.5) if private else owner(), 50)
    assert rows[-1].viewer in (Viewer.WATCHERS, Viewer.OUTSIDER) and all(row.why for row in rows)
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
    (
        fmab.cdp_mab,
        {"resolve_params": staticmethod(lambda params, instance: params | {"epsilon": 100.0})},
    ),
    (fmab.ldp_ucb, {"release": staticmethod(lambda rewards, uniforms, params: rewards)}),
]


def test_what_somebody_else_changes_has_no_bound():
    """Would catch a plug-in that inherits a statement about a mechanism that it replaces."""
    for algorithm in (
        *(altered(o, **methods)(1.0) for o, methods in CHANGES),
        Geometric(),
        Greedy(),
    ):
        rows = privacy_ledger(algorithm, 5, colluding=2)
        assert all(row.epsilon == math.inf for row in rows), algorithm
    viewers = [row.viewer for row in privacy_ledger(Geometric(), 5)]
    assert viewers == ["anybody who gets messages", Viewer.WATCHERS]
    # Other epochs, decided by what the server has sent, change nothing.
    longer = altered(fmab.cdp_mab, pulls_per_arm=staticmethod(lambda epoch: epoch.previous + 100.0))
    assert privacy_ledger(longer(1.0), 5) == privacy_ledger(fmab.cdp_mab(1.0), 5)
    stated = stating(fmab.cdp_mab, Disclosure("anybody", "messages", 7.0, "because"))
    assert privacy_ledger(stated(1.0), 5, colluding=2)[-1].epsilon == 7.0


def title(data):
    """Returns the line above a table."""
    return fmab.table(data).attrs["title"]


def test_who_sees_messages_and_has_no_row_is_added():
    """Would catch messages that vanish from a ledger that was stated for another exchange."""
    server = exchanges.server
    # Agents that were alone tell a server; and nobody knows who hears whom.
    heard = altered(fmab.dp_se, exchange=lambda self, agents: server(agents))
    relayed = altered(
        fmab.dp_se, exchange=lambda self, agents: dataclasses.replace(server(agents), views=())
    )
    first, *found = [(row.viewer, row.epsilon, row.why) for row in privacy_ledger(heard(0.5), 5)]
    assert first[:2] == (Viewer.WATCHERS, 0.5)
    assert found == [(who, math.inf, "not stated") for who in ("the server", "the agents")]
    anybody = privacy_ledger(relayed(0.5), 5)[-1]
    assert (anybody.viewer, anybody.epsilon) == ("anybody who gets messages", math.inf)
    # Every released reward holds whatever the server sees.
    assert len(privacy_ledger(fmab.ldp_ucb(0.5, pooled=True), 5)) == 2


def hide(epsilon, number=1):
    """Returns Laplace noises that leak epsilon each; of none, the thousandth of one."""
    noise = Noise(LAPLACE, 1.0 / epsilon, number)
    return epsilon, (noise if epsilon < math.inf else Noise(LAPLACE, 1.0, shares=(1, 1000)),)


@pytest.mark.parametrize(
    "leaks, text",
    [
        ([(math.inf, ()), (math.inf, ())], "no bound"),
        ([(math.inf, ()), (0.5, ())], "ε = 0.5 to no bound"),
        ([hide(2.0), hide(0.5), hide(1.0)], "ε = 0.5 to 2"),
        ([hide(3.0), hide(3.0)], "ε = 3"),
        (
            [hide(math.inf), hide(1.5, 6)],
            "ε = 1.5 to no bound, and {} to no bound up to δ = 10⁻⁶",
        ),
    ],
)
def test_the_epsilons_of_several_configurations_have_two_ends(leaks, text):
    """Would catch a bound that is kept back since another has none, or "no bound" left out."""
    low = f"{laplace_sum_epsilon(6, 1 / 1.5):.3g}"
    rows = [
        Disclosure("every agent", "sum", epsilon, "", noises, "here", "sums")
        for epsilon, noises in leaks
    ]
    told = make_result(*([row] for row in rows))
    (row,), _ = privacy.write_table(told)
    assert row["epsilon"] == text.format(low)


def test_a_coalition_takes_its_noise_out_of_a_sum():
    """Would catch a coalition that hides behind its own noise, or a server taken for an agent."""
    for size in (1, 10, 49):
        *others, last = privacy_ledger(fmab.cdp_mab(0.5), 50, colluding=size)
        assert others == privacy_ledger(fmab.cdp_mab(0.5), 50)
        assert last.label == f"{size} agent{'s' * (size > 1)} together"
        assert (last.viewer, last.members, last.number) == (Viewer.COALITION, size, 50 - size)
        assert last.epsilon == 25.0
        assert last.epsilon_at_delta == laplace_sum_epsilon(50 - size, 1 / 25)
    # One agent is the agent that the ledger has anyway.
    alone = privacy_ledger(fmab.cdp_mab(0.5), 50, colluding=1)
    assert alone[-1].epsilon_at_delta == alone[1].epsilon_at_delta


@pytest.mark.parametrize(
    ("algorithm", "epsilon", "observation"),
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
def test_a_coalition_sees_the_most_that_one_of_them_sees(algorithm, epsilon, observation):
    """Would catch sums where agents get single messages, and the least of what is seen."""
    last = privacy_ledger(algorithm, 10, colluding=3)[-1]
    assert (last.label, last.epsilon, last.observation) == (
        "3 agents together",
        epsilon,
        observation,
    )
    assert last.number == (0.0 < epsilon < math.inf)


@pytest.mark.parametrize(("agents", "expected"), [(50, 1.034), (10, 1.188), (5, 1.443), (3, 1.994)])
def test_an_agent_takes_its_share_out_of_a_secure_sum(agents, expected):
    """Would catch a share that hides its owner's neighbour, or one of another size."""
    server, agent, outsider = privacy_ledger(fmab.dist_dp_se(1.0), agents)
    assert (server.epsilon, agent.viewer, outsider.epsilon) == (1.0, "an agent", 1.0)
    assert agent.epsilon == pytest.approx(expected, abs=5e-4)
    # Another law hides it than that of whole variables: no smaller epsilon follows.
    assert (agent.number, agent.epsilon_at_delta) == (0, agent.epsilon)
    told = make_result(list_disclosures(fmab.dist_dp_se(1.0), agents))
    assert privacy.write_table(told)[0][1]["epsilon"] == f"ε = {agent.epsilon:.3g}"
    one = privacy_ledger(fmab.dist_dp_se(1.0), agents, colluding=1)[-1]
    assert (one.epsilon, one.label) == (agent.epsilon, "1 agent together")
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


def test_a_coalition_is_never_guessed():
    """Would catch the ledger of one observer taken for that of several, or of outsiders."""

    def relays(self, agents):
        usual = fmab.cdp_mab.exchange(self, agents)
        return dataclasses.replace(usual, views=(*usual.views, exchanges.View("neighbours", 5)))

    relayed = privacy_ledger(altered(fmab.cdp_mab, exchange=relays)(1.0), 50, colluding=3)[-1]
    assert (relayed.epsilon, relayed.number) == (50.0, 1)
    assert privacy_ledger(fmab.fed_ucb(1.0, "ring"), 9, colluding=3)[-1].epsilon == 1.0
    assert privacy_ledger(fmab.gosine(), 9, colluding=3)[-1].epsilon == math.inf


ACCOUNTANT = json.loads(Path(__file__).with_name("accountant.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", [row for row in ACCOUNTANT if row["kind"] == "sum"], ids=str)
def test_sums_agree_with_another_accountant(row):
    """Would catch another divergence, shift or delta than dp-accounting has."""
    epsilon = laplace_sum_epsilon(row["terms"], 1 / row["reach"], row["delta"])
    assert epsilon == pytest.approx(row["epsilon"], rel=3e-4, abs=1.1e-4)


@pytest.mark.parametrize("row", [row for row in ACCOUNTANT if row["kind"] == "share"], ids=str)
def test_shares_agree_with_another_accountant(row):
    """Would catch a half-line where an interval tells more, and a law of another shape."""
    found = laplace_share_epsilon(row["left"], row["shares"], 1 / row["reach"], row["delta"])
    assert found == pytest.approx(row["epsilon"], rel=3e-4, abs=1.1e-4)
    pure = laplace.share_epsilon(row["reach"], row["left"], row["shares"])
    assert found < pure


@pytest.mark.parametrize("row", [row for row in ACCOUNTANT if row["kind"] == "mechanism"], ids=str)
def test_mechanisms_agree_with_another_accountant(row):
    """Would catch another law, shift, count or delta of a mechanism than dp-accounting has."""
    mechanism = MECHANISMS.parse(row["name"], "mechanism")
    epsilon = mechanism.epsilon(row["scale"], row["count"], row["delta"])
    assert epsilon == pytest.approx(row["epsilon"], rel=3e-4, abs=1.1e-4)
    assert mechanism.epsilon(1.05 * row["scale"], row["count"], row["delta"]) < row["epsilon"]


@pytest.mark.parametrize(
    "row", [row for row in ACCOUNTANT if row["kind"] == "composition"], ids=str
)
def test_compositions_bound_those_of_another_accountant(row):
    """Would catch a rho, a mu or a sum of epsilons that promises more than messages keep."""
    law, scale, messages = row["name"], row["scale"], row["messages"]
    pure = 1.0 / scale if law in ("laplace", "discrete_laplace") else math.inf
    noises = (Noise(MECHANISMS.parse(law, "mechanism"), scale),)
    shown = Disclosure(Viewer.SERVER, ViewKind.MESSAGES, pure, "", noises)
    whole, half = (
        accountant.leak_terms(shown, row["delta"], rewards=rewards, is_distinct=True)
        for rewards in (messages, messages // 2)
    )
    # The library rounds the loss of each message up, by 1e-4 at most.
    assert whole.epsilon_at_delta > row["epsilon"] - 1e-4 * messages
    if law == "gaussian":
        assert whole.epsilon_at_delta == pytest.approx(row["epsilon"], abs=1e-4 * messages)
    assert half.epsilon_at_delta < row["epsilon"]


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


def test_bits_leak_more_up_to_delta_than_laplace_noise():
    """Would catch the law of one Laplace variable, .78928, in the ledger of random bits."""
    for row in privacy_ledger(fmab.ldp_ucb(1.0, bits=True), 5, 0.1, colluding=2):
        assert row.noises == (Noise(BITS, 1.0),)
        assert row.epsilon_at_delta == pytest.approx(0.8529051, abs=1e-7)
    # With pooled sums actions follow from sums; together agents see every released reward.
    pooled = fmab.ldp_ucb(1.0, bits=True, pooled=True)
    _, actions, together = privacy_ledger(pooled, 50, colluding=2)
    assert actions.viewer == Viewer.OUTSIDER
    assert actions.epsilon_at_delta == bits_sum_epsilon(50, 1.0)
    assert (together.observation, together.number) == ("every released reward", 1)


def test_a_title_says_no_noise_only_where_that_is_stated():
    """Would catch a policy that states nothing under "no noise"."""
    changed = altered(fmab.cdp_mab, title="Changed", **CHANGES[0][1])
    for algorithm, start in (
        (Greedy(), "greedy, privacy not stated, M = 3"),
        (fmab.ucb1(), "UCB1, no noise, M = 3"),
        (changed(None), "Changed, privacy not stated, M = 3"),
        (fmab.cdp_mab(None), "CDP-MAB, no noise, M = 3"),
    ):
        data = fmab.simulate(algorithm, fmab.Problem([0.9, 0.1], agents=3), 60, 2)
        assert fmab.table(data).attrs["title"].startswith(start)


def test_results_have_their_ledger(tmp_path, uncomputed):
    """Would catch a ledger that a file loses, and a sweep that shows only one end."""
    problem = fmab.Problem([0.2, 0.8], agents=6)
    data = fmab.simulate(fmab.ddp_mab(0.5, "ring"), problem, 200, 2)
    read = fmab.load(fmab.save(data, tmp_path / "a.nc"))
    messages, actions = read_ledger(read.ledger.item()).rows
    assert (messages.epsilon, messages.noises) == (3.0, (Noise(LAPLACE, 1 / 3.0),))
    assert (actions.epsilon, actions.noises) == (math.inf, ())
    options = {"epsilon": [0.25, 0.5, 1], "graph": ["ring", "complete"], "seeds": 2}
    swept = uncomputed("ddp", problem, horizon=200, **options)
    rows = {text: read_ledger(text).rows for text in swept.ledger.values.flat}
    table = [
        [
            [(row.epsilon, row.number) for row in rows[text]]
            for text in swept.ledger.sel(graph=graph).values
        ]
        for graph in options["graph"]
    ]
    assert table == [
        [[(pure, 1), (math.inf, 0)] for pure in (1.5, 3.0, 6.0)],
        [[(pure, 1), (pure, 6)] for pure in (1.5, 3.0, 6.0)],
    ]
    low, high = (laplace_sum_epsilon(6, 1 / pure) for pure in (1.5, 6.0))
    table = privacy.write_table(swept)[0]
    assert [(row["viewer"], row["observation"], row["where"]) for row in table] == [
        ("every agent", "single messages", ""),
        (Viewer.WATCHERS, "", "graph ring"),
        (Viewer.OUTSIDER, "", "graph complete"),
    ]
    epsilons = [row["epsilon"] for row in table]
    assert epsilons == [
        "ε = 1.5 to 6",
        "no bound",
        f"ε = 1.5 to 6, and {low:.3g} to {high:.3g} up to δ = 10⁻⁶",
    ]


# ---------------------------------------------------------------------------------------------
# Other terms, and several rewards of an agent.


def gaussian(**params):
    return fmab.cdp_mab(epsilon_message=1.0, mechanism="gaussian", **params)


def divergence_of_laplace(epsilon, shifts, scale=1.0):
    """The hockey-stick divergence of independent Laplace variables from their shifts, on a grid."""
    x = np.linspace(-30.0, 30.0, 2401) * scale
    log = np.zeros(())
    moved = np.zeros(())
    for shift in shifts:
        log = log[..., None] - np.abs(x) / scale - math.log(2 * scale)
        moved = moved[..., None] - np.abs(x - shift) / scale - math.log(2 * scale)
    step = (x[1] - x[0]) ** len(shifts)
    return np.maximum(np.exp(log) - np.exp(epsilon + moved), 0.0).sum() * step


def test_terms_of_one_reward():
    """Would catch a term of another scale, number of noises or range, and one that is made up."""
    server, agents, _ = privacy_ledger(gaussian(), 50)
    assert server.mu == pytest.approx(1.0 / server.noises[0].scale, rel=1e-12)
    assert agents.mu == pytest.approx(server.mu / 7.0, rel=1e-12)
    assert agents.rho == pytest.approx(agents.mu**2 / 2.0, rel=1e-12)
    assert all(row.rho == 0.5 and row.mu == math.inf for row in privacy_ledger(fmab.kl_se(1.0), 5))
    skellam = privacy_ledger(fmab.kl_se(1.0, mechanism="skellam"), 5)[0]
    assert skellam.rho == pytest.approx(1.01 * 0.5 / skellam.noises[0].scale ** 2, rel=1e-2)
    assert skellam.mu == math.inf
    bare = privacy_ledger(fmab.thompson(), 5)
    assert all(row.rho == row.mu == math.inf for row in bare)


@pytest.mark.parametrize("distinct", [False, True])
def test_several_rewards_behind_gaussian_noise_are_exact(distinct):
    """Would catch n where rewards in different messages add up by sqrt(n), and the reverse."""
    one, several = (
        privacy_ledger(gaussian(), 50, 1e-5, rewards=n, distinct_messages=distinct and n > 1)[0]
        for n in (1, 9)
    )
    factor = 3.0 if distinct else 9.0
    assert several.mu == pytest.approx(factor * one.mu, rel=1e-12)
    assert several.rho == pytest.approx(factor**2 * one.rho, rel=1e-12)
    law, level = scipy.stats.norm(), several.epsilon_at_delta
    mean = several.mu
    excess = law.cdf(mean / 2 - level / mean) - math.exp(level) * law.cdf(-mean / 2 - level / mean)
    assert excess == pytest.approx(1e-5, rel=1e-6)
    assert several.rewards == 9 and several.epsilon == math.inf


@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_two_rewards_behind_laplace_noise_leak_no_more_than_stated(delta):
    """Would catch a bound that composition or group privacy does not give, by quadrature."""
    algorithm = fmab.kl_se(1.0)
    together = privacy_ledger(algorithm, 5, delta, rewards=2)[0]
    apart = privacy_ledger(algorithm, 5, delta, rewards=2, distinct_messages=True)[0]
    assert together.epsilon == apart.epsilon == 2.0
    for row, shifts in ((together, (2.0,)), (apart, (1.0, 1.0))):
        assert divergence_of_laplace(row.epsilon_at_delta, shifts) <= 1.01 * delta
    # One epsilon less is too little.
    assert divergence_of_laplace(together.epsilon_at_delta - 1.0, (2.0,)) > delta
    assert apart.rho == 1.0 and together.rho == 2.0


def test_several_rewards_in_a_sum_leak_what_group_privacy_says():
    """Would catch another delta of one reward; the exact epsilon of one sum is a little smaller."""
    for size, exact in ((2, 4.197), (3, None)):
        row = privacy_ledger(fmab.cdp_mab(0.1), 50, rewards=size)[2]
        one = row.epsilon_at_delta / size
        inside = laplace_sum_epsilon(50, 0.2, 1e-6 * math.exp(-(size - 1) * one) / size)
        assert one == pytest.approx(inside, rel=1e-6)
        shifted = laplace_sum_epsilon(50, 0.2 / size, 1e-6)
        assert shifted < row.epsilon_at_delta < 1.15 * shifted
        assert exact is None or round(shifted, 3) == exact
    many = privacy_ledger(fmab.cdp_mab(0.1), 50, rewards=10**6)[2]
    assert many.epsilon_at_delta == many.epsilon == 5e6


def test_messages_compose_only_where_a_reward_is_in_one():
    """Would catch n rho where a reward enters many noisy sums, as those of a tree do."""
    for algorithm in (fmab.tree_ucb(1.0), fmab.thompson()):
        with pytest.raises(ValueError, match="^distinct_messages=True: must be False for"):
            privacy_ledger(algorithm, 5, rewards=2, distinct_messages=True)
        assert privacy_ledger(algorithm, 5, rewards=2)[-1].epsilon == (
            2.0 * privacy_ledger(algorithm, 5)[-1].epsilon
        )


def test_results_print_other_terms_of_noise_without_pure_epsilon():
    """Would catch a line of Laplace noise that grows, and a Gaussian row without its mu."""
    problem = fmab.Problem([0.5, 0.4], agents=3)
    runs = [fmab.simulate(a, problem, 100, 1) for a in (gaussian(), fmab.cdp_mab(1.0))]
    texts = [" ".join(row["epsilon"] for row in privacy.write_table(run)[0]) for run in runs]
    assert "μ = 0.237" in texts[0] and "ρ = 0.028" in texts[0]
    assert "μ" not in texts[1] and "ρ" not in texts[1]


def test_the_command_leaves_empty_columns_out(capsys):
    """Would catch options that do not arrive, and a column that is empty for everybody."""
    from fmab_jax.cli.main import main

    words = "ledger cdp --epsilon-message 1 --agents 50"
    assert main(words.split()) == 0
    plain = capsys.readouterr().out
    assert "rho" in plain and " mu\n" not in plain
    more = "--mechanism gaussian --rewards 9 --distinct-messages --colluding 3"
    assert main([*words.split(), *more.split()]) == 0
    out = capsys.readouterr().out
    assert "0.7101" in out and "3 agents together" in out and "different messages" in out


def test_printed_rows_are_of_one_law_each_at_the_delta_that_is_asked_for():
    """Would catch the leaks of two laws joined into one range, and lines at the usual delta."""
    rows = [
        Disclosure(Viewer.AGENTS, ViewKind.SUM, pure, "", (Noise(law, 2.0, 4),))
        for law, pure in ((LAPLACE, 0.5), (MECHANISMS.parse("discrete_laplace", ""), 0.5))
    ]
    data = make_result(*([row] for row in rows))
    for delta, power in ((1e-3, "0.001"), (1e-6, "10⁻⁶")):
        table, _ = privacy.write_table(data, delta)
        assert [line["where"] for line in table] == ["epsilon 0", "epsilon 1"]
        for row, line in zip(rows, table, strict=True):
            end = accountant.epsilon_at(row, delta)
            assert line["epsilon"] == f"ε = 0.5, and {end:.3g} up to δ = {power}"
