"""Every equation that an algorithm states, against the same one by hand, at two places or more.

The numbers of a place are generic: none is 1, no two that could be mistaken for each other are
equal. So no factor, power or argument drops out. What is worked out by hand has the formulas of the
sources, in plain `math`.
"""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from arena_twins import mixing_steps

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.algorithms import base, dducb
from fmab_jax.algorithms.families import index, slots
from fmab_jax.equations import Aggregate, Epoch
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.parts.instances import Instance
from fmab_jax.sampling import keys, laplace

INF = math.inf
log, sqrt = math.log, math.sqrt

# What an epoch's equations see, at two places.
PLACES = (
    dict(number=3, active=4, arms=7, agents=6, reporting=5, horizon=10**5)
    | dict(previous=50, pulls=210, fresh=160),
    dict(number=2, active=6, arms=11, agents=3, reporting=2, horizon=5 * 10**5)
    | dict(previous=17, pulls=90, fresh=73),
)
OPEN = dict(rounds=INF, schedule_gap=0.3, scale=1.0)
FAILS = dict(failure=0.05)


def paper_pulls(e, epsilon, rounds, schedule_gap, scale):
    """S(r), the larger of its two terms; lines 3 and 4, section IV-B. For a scaled radius, too."""
    target = 0.5**e.number if rounds == INF else schedule_gap ** (e.number / rounds)
    reward = 8 * log(8 * e.active * e.number**2 * e.horizon) / (e.reporting * target**2)
    noise = 8 * e.number * sqrt(2 * log(8 * e.arms * e.number**2 * e.horizon))
    noise /= e.reporting**1.5 * epsilon * target
    return math.ceil(max(scale**2 * reward, scale * noise))


def paper_radius(e, epsilon, rounds, schedule_gap, scale):
    """C(r), line 5."""
    reward = sqrt(log(8 * e.active * e.number**2 * e.horizon) / (2 * e.reporting * e.pulls))
    noise = e.number * sqrt(8 * log(8 * e.arms * e.number**2 * e.horizon))
    return scale * (reward + noise / (e.reporting**1.5 * epsilon * e.pulls))


def dp_se_pulls(e, epsilon, failure):
    """R of Sajed and Sheffet, after what was pulled before."""
    width = 2.0**-e.number
    data = 32 * log(8 * e.active * e.number**2 / failure) / width**2
    noise = 8 * log(4 * e.active * e.number**2 / failure) / (epsilon * width)
    return e.previous + math.ceil(max(data, noise) + 1)


def dp_se_radius(e, epsilon, failure):
    """h + c of Sajed and Sheffet."""
    data = sqrt(log(8 * e.active * e.number**2 / failure) / (2 * e.fresh))
    return data + log(4 * e.active * e.number**2 / failure) / (e.fresh * epsilon)


def dist_radius(e, epsilon, base, failure):
    """beta_b of Chowdhury and Zhou, with M agents in place of users."""
    count, tail = e.agents * e.fresh, log(2 * e.active * e.number**2 / failure)
    data = sqrt(log(4 * e.active * e.number**2 / failure) / (2 * count))
    return data + (sqrt(2) / epsilon * sqrt(tail) + tail / epsilon) / count


def fed1_radius(e, pulls, constant, sigma):
    """B of Shi and Shen's code, by the agents whose messages arrive."""
    return sqrt(constant * sigma**2 * log(e.horizon) / (e.reporting * e.pulls))


DIST = dict(base=2.5) | FAILS
FED1 = dict(pulls=13, constant=4.5, sigma=0.7)
# name: (algorithm, equation, the algorithm's values, the equation by hand)
EQUATIONS = {
    "paper, S, rewards": (fmab.cdp_mab, "pulls_per_arm", dict(epsilon=5) | OPEN, paper_pulls),
    "paper, S, noise": (fmab.ddp_mab, "pulls_per_arm", dict(epsilon=0.01) | OPEN, paper_pulls),
    "paper, S, budget": (
        *(fmab.hdp_mab, "pulls_per_arm"),
        *(dict(epsilon=0.5, rounds=4, schedule_gap=0.02, scale=1.0), paper_pulls),
    ),
    "paper, C": (fmab.cdp_mab, "radius", dict(epsilon=0.3) | OPEN, paper_radius),
    "paper, S, no noise": (fmab.cdp_mab, "pulls_per_arm", dict(epsilon=INF) | OPEN, paper_pulls),
    "paper, C, no noise": (fmab.cdp_mab, "radius", dict(epsilon=INF) | OPEN, paper_radius),
    "paper, S, rewards, scaled": (
        *(fmab.cdp_mab, "pulls_per_arm"),
        *(dict(epsilon=5) | OPEN | dict(scale=0.3), paper_pulls),
    ),
    "paper, S, noise, scaled": (
        *(fmab.cdp_mab, "pulls_per_arm"),
        *(dict(epsilon=0.01) | OPEN | dict(scale=0.3), paper_pulls),
    ),
    "paper, C, scaled": (
        *(fmab.cdp_mab, "radius"),
        *(dict(epsilon=0.3) | OPEN | dict(scale=0.3), paper_radius),
    ),
    "paper, noise": (
        *(fmab.single_mab, "noise_scale", dict(epsilon=0.3) | OPEN),
        lambda e, epsilon, **_: 1 / (e.reporting * epsilon),
    ),
    "dp_se, R, rewards": (fmab.dp_se, "pulls_per_arm", dict(epsilon=5) | FAILS, dp_se_pulls),
    "dp_se, R, noise": (fmab.dp_se, "pulls_per_arm", dict(epsilon=0.01) | FAILS, dp_se_pulls),
    "dp_se, h + c": (fmab.dp_se, "radius", dict(epsilon=0.3) | FAILS, dp_se_radius),
    "dp_se, noise": (
        *(fmab.dp_se, "noise_scale", dict(epsilon=0.3) | FAILS),
        lambda e, epsilon, failure: 1 / epsilon,
    ),
    "dist_dp_se, batch": (
        *(fmab.dist_dp_se, "pulls_per_arm", dict(epsilon=0.3) | DIST),
        lambda e, epsilon, base, failure: e.previous + math.ceil(base**e.number),
    ),
    "dist_dp_se, beta": (fmab.dist_dp_se, "radius", dict(epsilon=0.3) | DIST, dist_radius),
    "dist_dp_se, noise": (
        *(fmab.dist_dp_se, "noise_scale", dict(epsilon=0.3) | DIST),
        lambda e, epsilon, base, failure: 1 / epsilon,
    ),
    "fed1_ucb, F": (
        *(fmab.fed1_ucb, "pulls_per_arm", FED1),
        lambda e, pulls, constant, sigma: e.previous + pulls,
    ),
    "fed1_ucb, B": (fmab.fed1_ucb, "radius", FED1, fed1_radius),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_an_equation_of_an_epoch_is_that_of_its_source(name):
    """Would catch a constant, a power, a logarithm's argument or a term that is not the source's:
    4 for 8 in DP-SE's noise, sqrt(tail) for sqrt(2 tail), K for a, N for M, S for n."""
    algorithm, equation, params, by_hand = EQUATIONS[name]
    for place in PLACES:
        with jax.enable_x64(True):
            traced = {key: jnp.float64(value) for key, value in params.items()}
            observed = Epoch(**{key: jnp.float64(x) for key, x in place.items()}, params=traced)
            actual = float(jax.jit(getattr(algorithm, equation))(observed))
        assert actual == pytest.approx(by_hand(SimpleNamespace(**place), **params), rel=1e-13)


@pytest.mark.parametrize(
    ("algorithm", "on_the_border"),
    [
        *((item, True) for item in (fmab.cdp_mab, fmab.ddp_mab, fmab.hdp_mab, fmab.single_mab)),
        *((item, False) for item in (fmab.dp_se, fmab.dist_dp_se, fmab.fed1_ucb)),
    ],
)
def test_an_arm_leaves_at_two_radii(algorithm, on_the_border):
    """Would catch one radius, or four, or an arm on the border on the wrong side of it."""
    border = 2 * 0.3
    behind = [0.0, np.nextafter(border, 0), border, np.nextafter(border, 1)]
    with jax.enable_x64(True):
        unknown = jnp.float64(math.nan)
        aggregate = Aggregate(
            -jnp.asarray(behind), jnp.float64(0), *[unknown] * 3, jnp.float64(0.3)
        )
        epoch = Epoch(**{key: jnp.float64(x) for key, x in PLACES[0].items()}, params={})
        leaving = algorithm.worse(aggregate, epoch)
    assert leaving.tolist() == [False, False, on_the_border, True]


# Index policies. Two arms tie where the difference of their means is that of their widths: the
# larger mean is chosen above that difference, and not below it.
ROWS, HORIZON, AGENTS = 4, 5000, 6
STAR = nx.star_graph(3)
PULLS = np.array([[57.0 + row, 130 + 3 * row, 900] for row in range(ROWS)])
ARMS = PULLS.shape[1]


def slot_of(time, sharing=1.0, graph=STAR, agents=AGENTS, arms=ARMS):
    """A slot in which nothing is 1."""
    with jax.enable_x64(True):
        word = jnp.asarray(np.uint32(3))
        numbers = [jnp.asarray(np.float64(x)) for x in (time, HORIZON, agents, sharing)]
        beside = jnp.asarray(index._list_neighbours(graph, graph.number_of_nodes()))
        arms, words = jnp.asarray(np.float64(arms)), keys.Words(word, word)
        return index.Slot(jnp.asarray(np.int64(time)), *numbers, beside, arms, words, words)


def gamma(epsilon, factor, failure):
    """Gamma of Mishra and Thakurta; with K in front where epsilon is split."""
    return factor * log(HORIZON) ** 2 * log(ARMS * HORIZON * log(HORIZON) / failure) / epsilon


SETS = {
    "spread": (130, [0, 3, 64, 129]),
    "last": (5, [4]),
    "all": (4, [0, 1, 2, 3]),
    "none": (3, []),
}


@pytest.mark.parametrize("name", SETS)
def test_every_arm_of_a_set_is_drawn_with_its_share(name):
    """Would catch the last arm, or one past a word of 64, that is never drawn, or shares that are
    not equal: the n-th of N arms has the uniforms from (n - 1) / N to n / N."""
    arms, among = SETS[name]
    size = max(len(among), 1)
    edges = np.arange(size) / size
    inside = np.concatenate([edges + 1e-12, edges + 0.5 / size, edges + 1 / size - 1e-12])
    inside = np.concatenate([inside, [2.0**-54, 1 - 2.0**-53]])
    table = np.zeros((len(inside), arms), bool)
    table[:, among] = True
    with jax.enable_x64(True):
        actual, some = jax.jit(slots.draw_arm)(jnp.asarray(table), jnp.asarray(inside))
    place = [*range(size)] * 3 + [0, size - 1]
    assert actual.tolist() == [among[n] if among else 0 for n in place]
    assert some.tolist() == [bool(among)] * len(inside)


@pytest.mark.parametrize("accelerated", [True, False])
@pytest.mark.parametrize(
    ("graph", "error"),
    [(nx.cycle_graph(9), 1 / 22), (nx.star_graph(6), 0.3), (nx.path_graph(2), 0.1)],
)
def test_a_stage_of_dducb_is_as_long_as_its_error_asks_for(graph, error, accelerated):
    """Would catch M for 2 M, a root that is left out, an error that is not the parameter's, or a
    stage of no slot."""
    agents = graph.number_of_nodes()
    expected, rate = mixing_steps(graph, error, accelerated)
    assert dducb.compute_stage_length(rate, agents, error, accelerated) == max(1, expected)
    params = fmab.dducb(graph, accelerated=accelerated, mixing_error=error)
    values = params.values(params.exchange(agents), 10)
    assert values["stage"] == max(1, expected)
    # q of the Chebyshev polynomials: (q + 1 / q) / 2 = 1 / l.
    if accelerated and rate:
        q = values["momentum"]
        assert (q + 1 / q) / 2 == pytest.approx(1 / rate, rel=1e-12)
    assert accelerated or values["momentum"] == 0.0


# What the equations are given, of 5 agents and 1000 slots.
VALUES = {
    "dp_se": (fmab.dp_se(0.3), dict(epsilon=0.3, failure=0.001)),
    "dp_se, failure": (fmab.dp_se(None, failure=0.2), dict(epsilon=INF, failure=0.2)),
    "dist_dp_se": (fmab.dist_dp_se(0.3), dict(epsilon=0.3, base=2.0, failure=0.001)),
    "dist_dp_se, all": (
        fmab.dist_dp_se(0.3, base=4.0, failure=0.1),
        dict(epsilon=0.3, base=4.0, failure=0.1),
    ),
    "fed1_ucb": (fmab.fed1_ucb(), dict(pulls=69.0, constant=4.0, sigma=0.5)),
    "fed1_ucb, all": (
        fmab.fed1_ucb(pulls=7, constant=6.0, sigma=0.1),
        dict(pulls=7.0, constant=6.0, sigma=0.1),
    ),
    "cdp": (
        fmab.cdp_mab(0.3, rounds=4, scale=0.5),
        dict(epsilon=0.3, rounds=4.0, schedule_gap=math.nan, scale=0.5, reporting=5.0, worth=1.0),
    ),
    "cdp, message": (
        fmab.cdp_mab(epsilon_message=1.2, participation=0.4, schedule_gap=0.25),
        dict(epsilon=0.6, rounds=INF, schedule_gap=0.25, scale=1.0, reporting=2.0, worth=1.0),
    ),
    "lcc_ucb": (fmab.lcc_ucb(), dict(degree=4.0, sub_epochs=1.0)),
    "lcc_ucb, path": (fmab.lcc_ucb("path"), dict(degree=2.0, sub_epochs=4.0)),
    "fed_ucb": (fmab.fed_ucb(0.3, radius="scaled"), dict(epsilon=0.3, scaled=1.0)),
    "adap_ucb": (fmab.adap_ucb(None, kl=True), dict(epsilon=INF, alpha=3.1, kl=1.0)),
    "tree_ucb": (fmab.tree_ucb(0.3, split=True), dict(epsilon=0.3, split=1.0, failure=0.1)),
    "ldp_ucb": (fmab.ldp_ucb(0.3, pooled=True), dict(epsilon=0.3, bits=0.0, pooled=1.0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_equations_are_given_the_parameters(name):
    """Would catch a default of another size, 1 / T that ignores what was given, the message's
    epsilon in place of an agent's, or a diameter for a degree."""
    algorithm, expected = VALUES[name]
    assert algorithm.values(algorithm.exchange(5), 1000) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("given", "used"), [(math.nan, 0.07), (0.25, 0.25)])
def test_a_schedule_is_for_the_instances_gap_unless_one_is_given(given, used):
    """Would catch an oracle where a gap was given, or none where it was not."""
    params = {"epsilon": jnp.float32(1.0), "schedule_gap": jnp.float32(given)}
    none, shared = jnp.ones(2), jnp.ones((1, 2))
    instance = Instance(shared, none, jnp.float32(0.07), (shared,))
    assert float(fmab.cdp_mab.resolve_params(params, instance)["schedule_gap"]) == pytest.approx(
        used
    )


# Epsilon, and that of a message, among 5 agents.
LEAKS = (
    (fmab.cdp_mab(0.3), 0.3, 1.5),
    (fmab.cdp_mab(0.3, participation=0.4), 0.3, 0.6),
    (fmab.cdp_mab(epsilon_message=1.2, participation=0.4), 0.6, 1.2),
    (fmab.cdp_mab(None), INF, INF),
    (fmab.cdp_mab(epsilon_message=None), INF, INF),
    (fmab.hdp_mab(0.3, "3:path+2:complete"), 0.3, 1.5),
    (fmab.single_mab(0.3), 0.3, 0.3),
    *((make(0.3), 0.3, 0.3) for make in (fmab.dp_se, fmab.dist_dp_se, fmab.adap_ucb, DEMAB)),
    *((make(0.3), 0.3, 0.3) for make in (fmab.lazy_dp_ts, fmab.tree_ucb, fmab.fed_ucb)),
    (fmab.ldp_ucb(0.3, pooled=True), 0.3, 0.3),
    *((make(), INF, INF) for make in (fmab.fed1_ucb, DEMAB, fmab.ucb1)),
)


@pytest.mark.parametrize(("algorithm", "epsilon", "message"), LEAKS)
def test_a_message_leaks_what_its_noise_was_drawn_for(algorithm, epsilon, message):
    """Would catch N epsilon where one variable covers a message, epsilon where N of them do, or M
    for N where few report."""
    leaks = algorithm.privacy(algorithm.exchange(5))
    assert leaks == {"epsilon": epsilon, "epsilon_message": message}


SERVER, AGENTS_, SINKS = Viewer.SERVER, Viewer.AGENTS, Viewer.SINKS
WATCHERS, OUTSIDER = Viewer.WATCHERS, Viewer.OUTSIDER
BARE = (WATCHERS, INF, 0)
# Who among 5 agents sees something, its epsilon, how many noises of scale 1 / epsilon hide a
# reward; or pairs of how many, and of which scale.
LEDGERS = {
    "cdp": (fmab.cdp_mab(0.3), [(SERVER, 1.5, 1), (AGENTS_, 1.5, 4), (OUTSIDER, 1.5, 5)]),
    "cdp, few": (
        fmab.cdp_mab(0.3, participation=0.4),
        [(SERVER, 0.6, 1), (AGENTS_, 0.6, 1), (AGENTS_, 0.6, 1), (WATCHERS, 0.6, 1)],
    ),
    "cdp, silent": (fmab.cdp_mab(None), [(SERVER, INF, 0), (AGENTS_, INF, 0), BARE]),
    "ddp": (fmab.ddp_mab(0.3, "ring"), [("every agent", 1.5, 1), BARE]),
    "ddp, complete": (fmab.ddp_mab(0.3), [("every agent", 1.5, 1), (OUTSIDER, 1.5, 5)]),
    "ddp, private": (
        fmab.ddp_mab(0.3, "ring", private_waiting=True),
        [("every agent", 1.5, 1), (WATCHERS, 1.5, 1)],
    ),
    "kl_se_graph": (
        fmab.kl_se_graph(0.3, graph="ring"),
        [("every agent", 0.3, 1), (WATCHERS, 0.3, 1)],
    ),
    "kl_se_components": (
        fmab.kl_se_components(0.3, components="3:path+2:complete"),
        [(SINKS, 0.3, 1), (SERVER, 0.3, 2), (AGENTS_, 0.3, 4), (OUTSIDER, 0.3, 5)],
    ),
    "ddp, gossip": (
        fmab.ddp_mab(0.3, "ring", protocol="gossip"),
        [("neighbours", 1.5, 1), ("every agent", 1.5, 1), BARE],
    ),
    "hdp": (
        fmab.hdp_mab(0.3, "3:path+2:complete"),
        [(SINKS, 1.5, 1), (SERVER, 1.5, 2), (AGENTS_, 1.5, 4), (OUTSIDER, 1.5, 5)],
    ),
    # The two agents that weigh the most have each other's noise, and their own; that of the three
    # others is smaller beside a reward that weighs 1/4, not 1/6.
    "hdp, by components": (
        fmab.hdp_mab(0.3, "3:path+2:complete", weights="components"),
        [
            (SINKS, 1.5, 1),
            (SERVER, 1.5, 2),
            (AGENTS_, 1.5, [(1, 1 / 1.5), (3, 1 / 2.25)]),
            (OUTSIDER, 1.5, [(2, 1 / 1.5), (3, 1 / 2.25)]),
        ],
    ),
    "hdp, waits": (
        fmab.hdp_mab(0.3, "5:path"),
        [(SINKS, 1.5, 1), (SERVER, 1.5, 5), (AGENTS_, 1.5, 4), BARE],
    ),
    "single": (fmab.single_mab(0.3), [(WATCHERS, 0.3, 1)]),
    "dp_se": (fmab.dp_se(0.3), [(WATCHERS, 0.3, 1)]),
    "dp_se, silent": (fmab.dp_se(None), [BARE]),
    # With four of five shares of the noise, by quadrature (tests/analysis/test_privacy.py).
    "dist_dp_se": (
        fmab.dist_dp_se(0.3),
        [(SERVER, 0.3, 1), ("an agent", laplace.share_epsilon(0.3, 4, 5), 0), (OUTSIDER, 0.3, 1)],
    ),
    "ldp_ucb": (fmab.ldp_ucb(0.3, pooled=True), [("anybody", 0.3, 1), (OUTSIDER, 0.3, 5)]),
    "adap_ucb": (fmab.adap_ucb(0.3), [(WATCHERS, 0.3, 1)]),
    "lazy_dp_ts": (fmab.lazy_dp_ts(0.3), [(WATCHERS, 0.3, 1)]),
    "tree_ucb": (fmab.tree_ucb(0.3), [(WATCHERS, 0.3, 0)]),
    "tree_ucb, split": (fmab.tree_ucb(0.3, split=True), [(WATCHERS, 0.3, 0)]),
    "fed_ucb": (fmab.fed_ucb(0.3, "ring"), [("neighbours", 0.3, 0), (WATCHERS, 0.3, 0)]),
    "uniform_play": (fmab.uniform_play(), [(WATCHERS, 0.0, 0)]),
    "demab": (DEMAB(), [(SERVER, INF, 0), (AGENTS_, INF, 0), BARE]),
    "demab, private": (DEMAB(0.3), [(SERVER, 0.3, 1), (AGENTS_, 0.3, 1), (WATCHERS, 0.3, 1)]),
    "ucb1": (fmab.ucb1(), [BARE]),
    "ucb1, pooled": (fmab.ucb1(pooled=True), [(SERVER, INF, 0), (AGENTS_, INF, 0), BARE]),
    "gosine": (fmab.gosine(), [("one random neighbour", INF, 0), BARE]),
    "dducb": (fmab.dducb(), [("neighbours", INF, 0), BARE]),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_whoever_sees_something_is_told_with_what_covers_it(name):
    """Would catch an epsilon that covers waits on un-noised means, an agent that is hidden by its
    own noise, noise of agents that weigh less, or somebody who sees messages and is left out."""
    algorithm, expected = LEDGERS[name]
    rows = base.ledger_of(algorithm, algorithm.exchange(5))
    assert [(row.viewer, row.epsilon) for row in rows] == [each[:2] for each in expected]
    for row, (_, epsilon, hiding) in zip(rows, expected, strict=True):
        if not isinstance(hiding, list):
            hiding = [(hiding, 1.0 / epsilon)] if hiding else []
        assert [noise.number for noise in row.noises] == [number for number, _ in hiding]
        scales = [noise.scale for noise in row.noises]
        assert scales == pytest.approx([scale for _, scale in hiding], rel=1e-12)
        assert row.why


RELEASES = {
    fmab.cdp_mab(0.3): (
        "noise_scale",
        "noisy",
        "remembers",
        "sums_securely",
        "values",
        "resolve_params",
    ),
    fmab.ldp_ucb(0.3): ("init", "release", "update", "choose", "due", "communicate", "bind"),
    fmab.adap_ucb(0.3): ("init", "learn", "choose", "values", "bind"),
    fmab.dp_imed(0.3): ("learn",),
}


@pytest.mark.parametrize(
    ("algorithm", "changed"),
    [(algorithm, changed) for algorithm, names in RELEASES.items() for changed in names],
)
def test_a_claim_ends_where_what_is_released_is_changed(algorithm, changed):
    """Would catch a plug-in that changes a part of the mechanism and keeps the parent's epsilon."""
    owner = type(algorithm)
    same, other = (
        type("Mine", (owner,), {name: vars(holder)[name]})(0.3)
        for name in ("examples", changed)
        for holder in [next(item for item in owner.__mro__ if name in vars(item))]
    )
    exchange = algorithm.exchange(5)
    assert all(row.epsilon < INF for row in base.ledger_of(same, exchange))
    rows = base.ledger_of(other, exchange)
    assert rows and all(row.epsilon == INF for row in rows)
