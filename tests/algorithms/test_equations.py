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
import scipy.stats
from arena_twins import maximize_mean, mixing_steps

import fmab_jax as fmab
from fmab_jax.algorithms import adap_ucb, base, dducb, lazy_dp_ts
from fmab_jax.algorithms.base import ACTIONS
from fmab_jax.algorithms.families import graphs, index, slots
from fmab_jax.algorithms.families.episodes import Episode
from fmab_jax.core import keys, laplace
from fmab_jax.core.instances import Instance
from fmab_jax.core.ledgers import OUTSIDE
from fmab_jax.elimination import Epoch

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
    """B of Shi and Shen's code."""
    return sqrt(constant * sigma**2 * log(e.horizon) / (e.agents * e.pulls))


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
            seen = Epoch(**{key: jnp.float64(x) for key, x in place.items()}, params=traced)
            found = float(jax.jit(getattr(algorithm, equation))(seen))
        assert found == pytest.approx(by_hand(SimpleNamespace(**place), **params), rel=1e-13)


@pytest.mark.parametrize(
    ("algorithm", "on_the_border"),
    [
        *((each, True) for each in (fmab.cdp_mab, fmab.ddp_mab, fmab.hdp_mab, fmab.single_mab)),
        *((each, False) for each in (fmab.dp_se, fmab.dist_dp_se, fmab.fed1_ucb)),
    ],
)
def test_an_arm_leaves_at_two_radii(algorithm, on_the_border):
    """Would catch one radius, or four, or an arm on the border on the wrong side of it."""
    border = 2 * 0.3
    behind = [0.0, np.nextafter(border, 0), border, np.nextafter(border, 1)]
    with jax.enable_x64(True):
        leaving = algorithm.eliminates(jnp.asarray(behind), jnp.float64(0.3))
    assert leaving.tolist() == [False, False, on_the_border, True]


# Index policies. Two arms tie where the difference of their means is that of their widths: the
# larger mean is chosen above that difference, and not below it.
ROWS, HORIZON, AGENTS = 4, 5000, 6
STAR = nx.star_graph(3)
PULLS = np.array([[57.0 + row, 130 + 3 * row, 900] for row in range(ROWS)])
ARMS = PULLS.shape[1]
BEGAN = np.array([0.0, 2, 4, 7])
BLOCKS = math.ceil(math.log2(HORIZON + 1))


def slot_of(time, sharing=1.0, graph=STAR, agents=AGENTS, arms=ARMS):
    """A slot in which nothing is 1."""
    with jax.enable_x64(True):
        word = jnp.asarray(np.uint32(3))
        numbers = [jnp.asarray(np.float64(x)) for x in (time, HORIZON, agents, sharing)]
        beside = jnp.asarray(index._list_neighbours(graph, graph.number_of_nodes()))
        arms, words = jnp.asarray(np.float64(arms)), keys.Words(word, word)
        return index.Slot(jnp.asarray(np.int64(time)), *numbers, beside, arms, words, words)


def known(policy, rows=ROWS, arms=ARMS, **fields):
    """A state with these fields, and what `init` makes of the others."""
    with jax.enable_x64(True):
        state = jax.eval_shape(lambda: policy.init(rows, arms, slot_of(0), {}))
        none = jax.tree.map(lambda x: jnp.asarray(np.zeros(x.shape, x.dtype)), state)
        return none._replace(**{key: jnp.asarray(value) for key, value in fields.items()})


def tally(means):
    return index.Tally(jnp.asarray(PULLS), jnp.asarray(PULLS * means))


def of_gosine(means):
    everywhere = np.ones((ROWS, ARMS), bool)
    return known(fmab.gosine, pulls=PULLS, sums=PULLS * means, sticky=everywhere)


def of_lcc(means):
    everywhere = np.ones((ROWS, ARMS), bool)
    return known(fmab.lcc_ucb, pulls=PULLS, sums=PULLS * means, sticky=everywhere, start=BEGAN)


def of_lazy(means):
    return known(fmab.lazy_dp_ts, pulls=3 * PULLS, mean=means, released=PULLS)


def of_thompson(means):
    return index.Tally(jnp.asarray(PULLS), jnp.asarray((PULLS + 1) * means))


def of_dec(means):
    return known(fmab.dec_ucb, pulls=PULLS, most=PULLS + ARMS - 0.5, mean=means)


def of_gossip(means):
    return known(fmab.gossip_ucb, pulls=PULLS, most=PULLS + AGENTS, estimate=means)


def of_dducb(means):
    """Of an estimate, and of an agent's own pulls, which weigh 1 / M."""
    params = np.broadcast_to([[1.5], [2.0]], (ROWS, 2, ARMS))
    both = np.stack([PULLS * means, PULLS], axis=1) - params / AGENTS
    return known(fmab.dducb, mixed=both, fresh=params)


def of_tree(epsilon):
    """Of noisy sums: a block's noise has the scale L / epsilon."""

    def made(means):
        noise = np.broadcast_to([0.4, -1.3, 0.2], (ROWS, ARMS))
        sums = PULLS * means - BLOCKS / epsilon * noise
        return known(fmab.tree_ucb, pulls=PULLS, sums=sums, noise=noise)

    return made


def gamma(epsilon, factor, failure):
    """Gamma of Mishra and Thakurta; with K in front where epsilon is split."""
    return factor * log(HORIZON) ** 2 * log(ARMS * HORIZON * log(HORIZON) / failure) / epsilon


def of_normal(t, n, row, k):
    """Thompson's draw, of the uniform with that place."""
    with jax.enable_x64(True):
        uniform = np.asarray(slot_of(t).uniform(ROWS, ARMS))
    return scipy.stats.norm.ppf(uniform[row, k]) / sqrt(n + 1)


def of_noise(t, n, epsilon, factor):
    """Eq. 12 of Zhu, Zhu, Liu and Liu; M agents in both places, 1 in the first where scaled."""
    private = 128 * AGENTS * log(HORIZON) ** 2 * log(t) * log(n) / (n**2 * epsilon**2)
    return sqrt(2 * factor * (private + 1 / n) * log(t))


# Pulls that DDUCB's estimate covers, in stages of 5 slots after the first 3: so many of each of M
# agents, and one for each slot since the stage began.
COVERED = {6: 3 + 2, 11: 3 * AGENTS + 2, 400: (3 + 78 * 5) * AGENTS + 1}
DDUCB = dict(eta=1.7, sigma=0.6, stage=5.0, momentum=0.0)
# name: (policy, its values, sharing, state of means, width(t, n, row, k) by hand)
WIDTHS = {
    "ucb1": (fmab.ucb1, dict(alpha=1.7), 1, tally, lambda t, n, *_: sqrt(1.7 * log(t) / n)),
    "ucb1, pooled": (
        *(fmab.ucb1, dict(alpha=1.7), AGENTS, tally),
        lambda t, n, *_: sqrt(1.7 * log(AGENTS * t) / n),
    ),
    "gosine": (
        *(fmab.gosine, dict(alpha=3.3), 1, of_gosine),
        lambda t, n, *_: sqrt(3.3 * log(t) / n),
    ),
    "lcc_ucb": (
        *(fmab.lcc_ucb, {}, 1, of_lcc),
        lambda t, n, row, _: sqrt(2 * log(t - BEGAN[row]) / n),
    ),
    "thompson": (fmab.thompson, dict(pooled=0), 1, of_thompson, of_normal),
    "ldp_ucb": (
        *(fmab.ldp_ucb, dict(epsilon=0.7, bits=0), 1, tally),
        lambda t, n, *_: sqrt(2 * log(t) / n) + sqrt(32 * log(t) / (0.7**2 * n)),
    ),
    "ldp_ucb, pooled": (
        *(fmab.ldp_ucb, dict(epsilon=0.7, bits=0), AGENTS, tally),
        lambda t, n, *_: sqrt(2 * log(AGENTS * t) / n) + sqrt(32 * log(AGENTS * t) / (0.49 * n)),
    ),
    "ldp_ucb, bits": (
        *(fmab.ldp_ucb, dict(epsilon=0.7, bits=1), AGENTS, tally),
        lambda t, n, *_: sqrt(2 * log(AGENTS * t) / n),
    ),
    "tree_ucb": (
        *(fmab.tree_ucb, dict(epsilon=30, split=0, failure=0.2), 1, of_tree(30)),
        lambda t, n, *_: sqrt(2 * log(t) / n) + gamma(30, 1, 0.2) / n,
    ),
    "tree_ucb, split": (
        *(fmab.tree_ucb, dict(epsilon=30, split=1, failure=0.2), 1, of_tree(30 / ARMS)),
        lambda t, n, *_: sqrt(2 * log(t) / n) + gamma(30, ARMS, 0.2) / n,
    ),
    "dec_ucb": (
        *(fmab.dec_ucb, {}, 1, of_dec),
        lambda t, n, row, _: sqrt(3 * log(t) / ((4 if row == 0 else 2) * n)),
    ),
    "gossip_ucb": (
        *(fmab.gossip_ucb, dict(scaled=0), 1, of_gossip),
        lambda t, n, *_: sqrt(2 * AGENTS * log(t) / n),
    ),
    "gossip_ucb, scaled": (
        *(fmab.gossip_ucb, dict(scaled=1), 1, of_gossip),
        lambda t, n, *_: sqrt(2 * log(t) / n),
    ),
    "fed_ucb": (
        *(fmab.fed_ucb, dict(epsilon=90, scaled=0), 1, of_gossip),
        lambda t, n, *_: of_noise(t, n, 90, AGENTS),
    ),
    "fed_ucb, scaled": (
        *(fmab.fed_ucb, dict(epsilon=90, scaled=1), 1, of_gossip),
        lambda t, n, *_: of_noise(t, n, 90, 1),
    ),
    "dducb": (
        *(fmab.dducb, DDUCB, 1, of_dducb),
        lambda t, n, *_: sqrt(2 * 1.7 * 0.6**2 * log(COVERED[t]) / (AGENTS * n)),
    ),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_arms_tie_where_their_indices_by_hand_do(name):
    """Would catch a constant, a term, a logarithm's argument or an own count that is not the
    source's: log t for log 2 t or log M t, 16 for 32, epsilon for epsilon squared, K left out."""
    policy, params, sharing, state_of, width = WIDTHS[name]
    params, choose = {key: np.float64(x) for key, x in params.items()}, jax.jit(policy.choose)
    for time in COVERED if policy is fmab.dducb else (11, 400):
        widths = np.array(
            [[width(time, PULLS[row, k], row, k) for k in range(ARMS)] for row in range(ROWS)]
        )
        assert (abs(widths[:, 0] - widths[:, 1]) > 1e-3).all()
        chosen = []
        for aside in (-1e-9, 1e-9):
            means = np.full((ROWS, ARMS), -1000.0)
            means[:, 0] = 0.6
            means[:, 1] = 0.6 + widths[:, 0] - widths[:, 1] + aside
            with jax.enable_x64(True):
                state = state_of(means)
                chosen.append(choose(state, slot_of(time, sharing), params).tolist())
        assert chosen == [[0] * ROWS, [1] * ROWS], time


@pytest.mark.parametrize("kl", [False, True])
@pytest.mark.parametrize("time", [11, 400])
def test_arms_of_adap_ucb_tie_where_their_indices_by_hand_do(time, kl):
    """Would catch log t for log 2 t, a factor 2 left out, h of another episode or all pulls for it;
    of the other index, epsilon left out, or a bound around the mean without the private term."""
    epsilon, alpha, length = 7.0, 2.9, np.array([570.0, 1300, 9000])

    def upper(mean, h):
        private = alpha * log(time) / (epsilon * h)
        if kl:
            return maximize_mean(mean + private, alpha * log(time) / h)
        return mean + sqrt(alpha * log(2 * time) / (2 * h)) + private

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = upper(middle, length[1]) < upper(0.6, length[0])
        low, high = (middle, high) if above else (low, middle)
    params = dict(epsilon=np.float64(epsilon), alpha=np.float64(alpha), kl=np.float64(kl))
    found = []
    with jax.enable_x64(True):
        seen = Episode(*(jnp.float64(x) for x in (9, time, HORIZON, ARMS, 1)))
        for aside in (-1e-6, 1e-6):
            mean = jnp.asarray([0.6, low + aside, 0.001])
            state = adap_ucb.Last(jnp.asarray(3 * length), mean, jnp.asarray(length))
            arm, slots = jax.jit(fmab.adap_ucb.choose)(state, seen, params)
            found.append((int(arm), float(slots)))
    assert found == [(0, 3 * 570.0), (1, 3 * 1300.0)]


@pytest.mark.parametrize(("constant", "sharing"), [(0.0, 1), (3.0, 1), (3.0, 6)])
@pytest.mark.parametrize("time", [2, 11, 400])
def test_arms_tie_where_their_kl_indices_by_hand_do(constant, sharing, time):
    """Would catch c log log t left out, of another logarithm, negative before t = e, or log t for
    log M t; the mean that ties is found by bisection."""
    logarithm = log(sharing * time)
    width = logarithm + constant * log(max(logarithm, 1.0))
    n = np.array([40.0, 90, 900])
    wanted = maximize_mean(0.3, width / n[0])
    low, high = 0.0, wanted
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if maximize_mean(middle, width / n[1]) < wanted else (low, middle)
        )
    means = np.tile([0.3, low, 0.0001], (2, 1))
    means[:, 1] += [-1e-6, 1e-6]
    with jax.enable_x64(True):
        state = known(fmab.kl_ucb, rows=2)
        for pulled in np.diag(n):
            pulled = np.tile(pulled, (2, 1))
            given = jnp.asarray(pulled), jnp.asarray(pulled * means)
            state = jax.jit(fmab.kl_ucb.update)(state, *given, slot_of(time), {})
        params = {"constant": np.float64(constant)}
        chosen = jax.jit(fmab.kl_ucb.choose)(state, slot_of(time, sharing), params).tolist()
    assert chosen == [0, 1]


@pytest.mark.parametrize("sharing", [1, 6])
@pytest.mark.parametrize("time", [11, 400])
def test_an_arm_has_few_rewards_up_to_four_logarithms(sharing, time):
    """Would catch log t for log(t + 1), log M t left out, another arm than the first, or bits that
    have to be pulled so often, too."""
    border = 4 * log(sharing * time + 1)
    pulls = np.array([[400, border + 1e-9, 300], [400, border - 1e-9, border - 1e-9]])
    chosen = []
    with jax.enable_x64(True):
        # The third arm has the best mean by far.
        state = index.Tally(jnp.asarray(pulls), jnp.asarray(pulls * [0.0, 0.0, 100.0]))
        for bits in (0.0, 1.0):
            params = {"epsilon": np.float64(2.0), "bits": np.float64(bits)}
            choose = jax.jit(fmab.ldp_ucb.choose)
            chosen.append(choose(state, slot_of(time, sharing), params).tolist())
    assert chosen == [[2, 1], [2, 2]]


def test_a_buffer_is_released_when_it_holds_twice_as_many():
    """Would catch a buffer of one more or one fewer, noise for each reward or of the scale 1 / O,
    a mean over all pulls, rewards that are released again, or noise on arms not released."""
    # Arms with O = 4 whose buffer of 8 fills now, or next time; one that is pulled first.
    pulls, seen = np.array([[14.0, 13, 0]]), np.array([[4.0, 4, 0]])
    held, mean = np.array([[5.5, 5.5, 0]]), np.array([[0.3, 0.3, 0]])
    params, after = {"epsilon": np.float64(0.7)}, []
    with jax.enable_x64(True):
        fields = dict(pulls=pulls, released=seen, pending_sum=held, mean=mean)
        state, slot = known(fmab.lazy_dp_ts, rows=1, **fields), slot_of(30)
        variable = scipy.stats.laplace.ppf(np.asarray(slot.uniform(1))[0, 0])
        for pulled in np.eye(3):
            given = jnp.asarray(pulled[None]), jnp.asarray(0.25 * pulled[None])
            made = jax.jit(fmab.lazy_dp_ts.update)(state, *given, slot, params)
            after.append([np.asarray(x)[0] for x in made])
    noise = variable / 0.7
    for arm, (size, total) in enumerate([(8, 5.75), (None, 5.75), (1, 0.25)]):
        counted, now, means, left = after[arm]
        others = np.arange(3) != arm
        assert counted[arm] == pulls[0, arm] + 1 and (counted == pulls[0])[others].all()
        assert ((now == seen[0]) & (means == mean[0]) & (left == held[0]))[others].all()
        if size is None:
            assert (now[arm], means[arm], left[arm]) == (4.0, 0.3, total)
        else:
            assert (now[arm], left[arm]) == (size, 0.0)
            assert means[arm] == pytest.approx((total + noise) / size, rel=1e-12)


@pytest.mark.parametrize("time", [11, 400])
def test_lazy_dp_ts_draws_from_reshaped_posteriors(time):
    """Would catch log t without its 3, epsilon left out, all pulls for O, ones for zeros, or a mean
    that leaves [0, 1]: what is drawn is that of Beta laws by hand, and an arm without any mean goes
    first."""
    epsilon, means = 7.0, np.array([[0.4, -0.7, 1.6]] * ROWS)
    params = {"epsilon": np.float64(epsilon)}
    with jax.enable_x64(True):
        slot, asked = slot_of(time), []

        def chosen(state):
            return fmab.lazy_dp_ts.choose(state, slot, params)

        def recorded(_, ones, zeros):
            asked.append((np.asarray(ones), np.asarray(zeros)))
            return ones

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lazy_dp_ts, "draw_beta", recorded)
            arm = chosen(of_lazy(means)).tolist()
            fresh = of_lazy(means)._replace(released=jnp.asarray(PULLS * [1.0, 0.0, 1.0]))
            untried = chosen(fresh).tolist()
    m = np.clip(means + 3 * log(time) / (epsilon * PULLS), 0, 1)
    np.testing.assert_allclose(asked[0][0], m * PULLS, rtol=1e-12)
    np.testing.assert_allclose(asked[0][1], (1 - m) * PULLS, rtol=1e-12, atol=1e-9)
    assert arm == [2] * ROWS and untried == [1] * ROWS


@pytest.mark.parametrize(
    ("policy", "border", "below"),
    # A random late arm: n <= m - K of Dec_UCB, n < n~ - M of Gossip_UCB.
    [(fmab.dec_ucb, ARMS, True), (fmab.gossip_ucb, AGENTS, False), (fmab.fed_ucb, AGENTS, False)],
)
def test_an_arm_is_late_from_its_border_on(policy, border, below):
    """Would catch < for <=, or <= for <: agents that wait one pull longer, or shorter."""
    pulls = np.array([[20.0, 9, 30]] * 3)
    most = pulls + [[0, border - 1, 0], [0, border, 0], [0, border + 1, 0]]
    names = {fmab.dec_ucb: "mean"}
    best = {names.get(policy, "estimate"): np.tile([0.0, 0.0, 1e6], (3, 1))}
    params = {"scaled": np.float64(0.0), "epsilon": np.float64(1.0)}
    graph, choose = nx.cycle_graph(3), jax.jit(policy.choose)
    with jax.enable_x64(True):
        state = known(policy, rows=3, pulls=pulls, most=most, **best)
        chosen = choose(state, slot_of(50, graph=graph), params).tolist()
        # Arms that nobody ever pulled are not late, but first: their index has no bound.
        none = known(policy, rows=3, pulls=pulls * [1, 0, 1], most=most * [1, 0, 1], **best)
        untried = choose(none, slot_of(50, graph=graph), params).tolist()
    assert chosen == [2, 1 if below else 2, 1]
    assert untried == [1, 1, 1]


@pytest.mark.parametrize("policy", [fmab.dec_ucb, fmab.gossip_ucb, fmab.fed_ucb, fmab.dducb])
def test_agents_talk_from_the_slot_after_the_first_pulls_on(policy):
    """Would catch a talk in slot K, which has only just pulled the last arm, or none in K + 1."""
    with jax.enable_x64(True):
        found = [bool(policy.due(known(policy), slot_of(t), {})) for t in (2, 3, 4, 5)]
    assert found == [False, False, True, True]


@pytest.mark.parametrize("policy", [fmab.dec_ucb, fmab.gossip_ucb])
def test_the_first_pulls_are_the_first_estimates(policy):
    """Would catch the last arm's first mean that is a change and no estimate, or the reverse one
    slot later: the estimate of slot K + 1 moves with the change alone."""
    pulls, sums = np.array([[2.0, 1, 1]]), np.array([[1.0, 0.25, 0.5]])
    pulled, reward = np.array([[1.0, 0, 0]]), np.array([[0.8, 0, 0]])
    estimate = {fmab.dec_ucb: "mean"}.get(policy, "estimate")
    fields = dict(pulls=pulls, sums=sums, most=pulls + 5) | {estimate: np.full((1, 3), 9.0)}
    if policy is fmab.gossip_ucb:
        fields["mean"] = sums / pulls
    found = {}
    with jax.enable_x64(True):
        for time in (ARMS, ARMS + 1):
            state = known(policy, rows=1, **fields)
            given = jnp.asarray(pulled), jnp.asarray(reward)
            after = jax.jit(policy.update)(state, *given, slot_of(time), {})
            found[time] = jax.tree.map(np.asarray, after)
    first, later = found[ARMS], found[ARMS + 1]
    assert first.change.ravel()[0] == 0.0 and float(getattr(first, estimate)[0, 0]) == 1.8 / 3
    assert later.change.ravel()[0] == pytest.approx(1.8 / 3 - 0.5, rel=1e-15)
    assert float(getattr(later, estimate)[0, 0]) == 9.0
    # The most pulls that an agent has heard of are its own in the first slots.
    most = {fmab.dec_ucb: (7.0, 7.0), fmab.gossip_ucb: (3.0, 7.0)}[policy]
    assert (float(first.most[0, 0]), float(later.most[0, 0])) == most


@pytest.mark.parametrize(
    ("policy", "params", "wanted"),
    [(policy, {"pooled": jnp.float64(x)}, bool(x)) for x in (0, 1)
     for policy in (fmab.ucb1, fmab.kl_ucb, fmab.ldp_ucb, fmab.thompson)]
    + [(fmab.uniform_play, {}, False), (fmab.lazy_dp_ts, {}, False), (fmab.tree_ucb, {}, False)],
)  # fmt: skip
def test_only_those_that_pool_talk_in_every_slot(policy, params, wanted):
    """Would catch links that are counted where each agent is alone, or not where a server pools."""
    assert bool(policy.due(known(policy), slot_of(5), params)) is wanted


@pytest.mark.parametrize(("degree", "sub_epochs"), [(5, 1), (2, 3)])
def test_sub_epochs_of_lcc_ucb_end_where_their_lengths_add_up_to(degree, sub_epochs):
    """Would catch K' without the agents' own arms, K'^2 for K' (K' + 1), an epoch that does not
    double, or as many sub-epochs as there are agents."""
    arms, agents, last = 20, 6, 20_000
    most = math.ceil(arms / agents) + degree
    ends, epoch = [], 0
    while not ends or ends[-1] < last:
        for _ in range(sub_epochs):
            ends.append((ends[-1] if ends else 0) + most * (most + 1) * 2**epoch)
        epoch += 1
    params = {"degree": np.float64(degree), "sub_epochs": np.float64(sub_epochs)}
    slots = np.unique(np.concatenate([np.array(ends) + late for late in (-1, 0, 1)]))
    with jax.enable_x64(True):
        one, state = slot_of(1, agents=agents, arms=arms), known(fmab.lcc_ucb)
        due = jax.jit(jax.vmap(lambda t: fmab.lcc_ucb.due(state, one._replace(time=t), params)))
        found = np.asarray(due(jnp.asarray(slots, jnp.float64)))
    assert slots[found].tolist() == ends and len(ends) > 6


def test_arms_are_dealt_out_in_equal_shares():
    """Would catch shares rounded down, which leave arms to nobody, or that begin one arm late."""
    with jax.enable_x64(True):
        slot = slot_of(0, agents=3, arms=7)
        dealt = [jax.jit(lambda p=p: p.init(3, 7, slot, {})) for p in (fmab.lcc_ucb, fmab.gosine)]
        lcc, gosine = (deal() for deal in dealt)
    shares = [[0, 1, 2], [3, 4, 5], [0, 1, 6]]
    for state in (lcc, gosine):
        assert [np.flatnonzero(row).tolist() for row in np.asarray(state.sticky)] == shares
    assert (gosine.upper.tolist(), gosine.lower.tolist()) == ([3, 6, 2], [4, 0, 3])
    assert not lcc.recommended.any()


def test_gosine_keeps_the_better_arm_and_replaces_the_other():
    """Would catch a swap of two that were pulled as often, an arm that is there already taken up
    again, or the arm pulled most ever for that of the phase."""
    lately = np.array([[3.0, 2, 2, 0, 9], [0, 1, 0, 4, 0], [0, 0, 0, 5, 6]])
    sticky = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]], bool)
    fields = dict(pulls=np.tile([50.0, 0, 0, 0, 0], (3, 1)), phase_pulls=lately, sticky=sticky)
    fields |= dict(upper=np.array([1, 2, 3], np.int32), lower=np.array([2, 3, 4], np.int32))
    with jax.enable_x64(True):
        state = known(fmab.gosine, rows=3, arms=5, **fields)
        slot = slot_of(8, graph=nx.star_graph(2))
        both = jax.jit(lambda s: (fmab.gosine.communicate(state, s, {}), s.random_neighbour()))
        told, asked = both(slot)
        asked = asked.tolist()
    # Agents 1 and 2 can ask agent 0 only, whose best arm of the phase is 4.
    assert asked[1:] == [0, 0] and asked[0] in (1, 2)
    assert told.upper.tolist() == [1, 3, 4]
    assert told.lower.tolist() == [{1: 3, 2: 4}[asked[0]], 4, 3]
    assert not told.phase_pulls.any()


def test_uniform_play_draws_every_arm_and_commits_to_the_best_mean():
    """Would catch the last arm that is never drawn, or the arm pulled most for the best one."""
    with jax.enable_x64(True):
        state = known(fmab.uniform_play, rows=400, arms=5)
        both = jax.jit(lambda s: (fmab.uniform_play.choose(state, s, {}), s.uniform(400)[:, 0]))
        found, uniform = map(np.asarray, both(slot_of(9)))
        pulls, sums = (jnp.asarray(np.array([x])) for x in ([9.0, 2, 0], [4.0, 1.9, 0]))
        assert jax.jit(fmab.uniform_play.commit)(index.Tally(pulls, sums)).tolist() == [1]
    np.testing.assert_array_equal(found, np.floor(5 * uniform))
    assert set(found) == set(range(5))


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
        found, some = jax.jit(slots.draw_arm)(jnp.asarray(table), jnp.asarray(inside))
    place = [*range(size)] * 3 + [0, size - 1]
    assert found.tolist() == [among[n] if among else 0 for n in place]
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
    wanted, rate = mixing_steps(graph, error, accelerated)
    assert dducb.compute_stage_length(rate, agents, error, accelerated) == max(1, wanted)
    params = fmab.dducb(graph, accelerated=accelerated, mixing_error=error)
    values = params.values(params.exchange(agents), 10)
    assert values["stage"] == max(1, wanted)
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
        dict(epsilon=0.3, rounds=4.0, schedule_gap=math.nan, scale=0.5),
    ),
    "cdp, message": (
        fmab.cdp_mab(epsilon_message=1.2, participation=0.4, schedule_gap=0.25),
        dict(epsilon=0.6, rounds=INF, schedule_gap=0.25, scale=1.0),
    ),
    "lcc_ucb": (fmab.lcc_ucb(), dict(degree=4.0, sub_epochs=1.0)),
    "lcc_ucb, path": (fmab.lcc_ucb("path"), dict(degree=2.0, sub_epochs=4.0)),
    "gossip_ucb": (fmab.gossip_ucb(), dict(scaled=0.0)),
    "fed_ucb": (fmab.fed_ucb(0.3, radius="scaled"), dict(epsilon=0.3, scaled=1.0)),
    "adap_ucb": (fmab.adap_ucb(0.3), dict(epsilon=0.3, alpha=3.1, kl=0.0)),
    "adap_ucb, kl": (fmab.adap_ucb(None, kl=True), dict(epsilon=INF, alpha=3.1, kl=1.0)),
    "lazy_dp_ts": (fmab.lazy_dp_ts(0.3), dict(epsilon=0.3)),
    "tree_ucb": (fmab.tree_ucb(0.3, split=True), dict(epsilon=0.3, split=1.0, failure=0.1)),
    "ldp_ucb": (fmab.ldp_ucb(0.3, pooled=True), dict(epsilon=0.3, bits=0.0, pooled=1.0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_equations_are_given_the_parameters(name):
    """Would catch a default of another size, 1 / T that ignores what was given, the message's
    epsilon in place of an agent's, or a diameter for a degree."""
    algorithm, wanted = VALUES[name]
    assert algorithm.values(algorithm.exchange(5), 1000) == pytest.approx(wanted, nan_ok=True)


def test_a_phase_of_fed1_ucb_has_a_pull_at_least():
    """Would catch a phase of no pulls, which never ends: 10 log 1 = 0."""
    algorithm = fmab.fed1_ucb()
    assert algorithm.values(algorithm.exchange(5), 1)["pulls"] == 1.0


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
LEAKS = {
    "cdp": (fmab.cdp_mab(0.3), 0.3, 1.5),
    "cdp, few": (fmab.cdp_mab(0.3, participation=0.4), 0.3, 0.6),
    "cdp, message": (fmab.cdp_mab(epsilon_message=1.2, participation=0.4), 0.6, 1.2),
    "cdp, silent": (fmab.cdp_mab(None), INF, INF),
    "cdp, silent message": (fmab.cdp_mab(epsilon_message=None), INF, INF),
    "ddp": (fmab.ddp_mab(0.3, "ring"), 0.3, 1.5),
    "hdp": (fmab.hdp_mab(0.3, "3:path+2:complete"), 0.3, 1.5),
    "single": (fmab.single_mab(0.3), 0.3, 0.3),
    "dp_se": (fmab.dp_se(0.3), 0.3, 0.3),
    "dp_se, silent": (fmab.dp_se(None), INF, INF),
    "dist_dp_se": (fmab.dist_dp_se(0.3), 0.3, 0.3),
    "ldp_ucb": (fmab.ldp_ucb(0.3, pooled=True), 0.3, 0.3),
    "adap_ucb": (fmab.adap_ucb(0.3), 0.3, 0.3),
    "lazy_dp_ts": (fmab.lazy_dp_ts(0.3), 0.3, 0.3),
    "tree_ucb": (fmab.tree_ucb(0.3, split=True), 0.3, 0.3),
    "fed_ucb": (fmab.fed_ucb(0.3, "ring"), 0.3, 0.3),
    "fed1_ucb": (fmab.fed1_ucb(), INF, INF),
    "demab": (fmab.demab(), INF, INF),
    "demab, private": (fmab.demab(0.3), 0.3, 0.3),
    "ucb1": (fmab.ucb1(pooled=True), INF, INF),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_message_leaks_what_its_noise_was_drawn_for(name):
    """Would catch N epsilon where one variable covers a message, epsilon where N of them do, or M
    for N where few report."""
    algorithm, epsilon, message = LEAKS[name]
    told = algorithm.privacy(algorithm.exchange(5))
    assert told == {"epsilon": epsilon, "epsilon_message": message}


SERVER, AGENTS_, SINKS = "the server", "the agents", "sinks, and agents that pass on"
WAITING, BARE = (ACTIONS, INF, 1), (ACTIONS, INF, 0)
# Who among 5 agents sees something, its epsilon, how many noises of one law hide a reward.
LEDGERS = {
    "cdp": (fmab.cdp_mab(0.3), [(SERVER, 1.5, 1), (AGENTS_, 1.5, 4), (OUTSIDE, 1.5, 5)]),
    "cdp, few": (
        fmab.cdp_mab(0.3, participation=0.4),
        [(SERVER, 0.6, 1), (AGENTS_, 0.6, 1), (AGENTS_, 0.6, 1), (ACTIONS, 0.6, 1)],
    ),
    "cdp, silent": (fmab.cdp_mab(None), [(SERVER, INF, 0), (AGENTS_, INF, 0), BARE]),
    "ddp": (fmab.ddp_mab(0.3, "ring"), [("every agent", 1.5, 1), WAITING]),
    "ddp, complete": (fmab.ddp_mab(0.3), [("every agent", 1.5, 1), (OUTSIDE, 1.5, 5)]),
    "ddp, private": (
        fmab.ddp_mab(0.3, "ring", private_waiting=True),
        [("every agent", 1.5, 1), (ACTIONS, 1.5, 1)],
    ),
    "kl_se_graph": (
        fmab.kl_se_graph(0.3, graph="ring"),
        [("every agent", 0.3, 1), (ACTIONS, 0.3, 1)],
    ),
    "kl_se_components": (
        fmab.kl_se_components(0.3, components="3:path+2:complete"),
        [(SINKS, 0.3, 1), (SERVER, 0.3, 2), (AGENTS_, 0.3, 4), (OUTSIDE, 0.3, 5)],
    ),
    "ddp, gossip": (
        fmab.ddp_mab(0.3, "ring", protocol="gossip"),
        [("neighbours", 1.5, 1), ("every agent", 1.5, 1), WAITING],
    ),
    "hdp": (
        fmab.hdp_mab(0.3, "3:path+2:complete"),
        [(SINKS, 1.5, 1), (SERVER, 1.5, 2), (AGENTS_, 1.5, 4), (OUTSIDE, 1.5, 5)],
    ),
    # The two agents that weigh the most have each other's noise, and their own.
    "hdp, by components": (
        fmab.hdp_mab(0.3, "3:path+2:complete", weights="components"),
        [(SINKS, 1.5, 1), (SERVER, 1.5, 2), (AGENTS_, 1.5, 1), (OUTSIDE, 1.5, 2)],
    ),
    "hdp, waits": (
        fmab.hdp_mab(0.3, "5:path"),
        [(SINKS, 1.5, 1), (SERVER, 1.5, 5), (AGENTS_, 1.5, 4), WAITING],
    ),
    "single": (fmab.single_mab(0.3), [(ACTIONS, 0.3, 1)]),
    "dp_se": (fmab.dp_se(0.3), [(ACTIONS, 0.3, 1)]),
    "dp_se, silent": (fmab.dp_se(None), [WAITING]),
    # With four of five shares of the noise, by quadrature (tests/analysis/test_privacy.py).
    "dist_dp_se": (
        fmab.dist_dp_se(0.3),
        [(SERVER, 0.3, 1), ("an agent", laplace.share_epsilon(0.3, 4, 5), 0), (OUTSIDE, 0.3, 1)],
    ),
    "ldp_ucb": (fmab.ldp_ucb(0.3, pooled=True), [("anybody", 0.3, 1), (OUTSIDE, 0.3, 5)]),
    "adap_ucb": (fmab.adap_ucb(0.3), [(ACTIONS, 0.3, 1)]),
    "lazy_dp_ts": (fmab.lazy_dp_ts(0.3), [(ACTIONS, 0.3, 1)]),
    "tree_ucb": (fmab.tree_ucb(0.3), [(ACTIONS, 0.3, 0)]),
    "tree_ucb, split": (fmab.tree_ucb(0.3, split=True), [(ACTIONS, 0.3, 0)]),
    "fed_ucb": (fmab.fed_ucb(0.3, "ring"), [("neighbours", 0.3, 0), (ACTIONS, 0.3, 0)]),
    "uniform_play": (fmab.uniform_play(), [(ACTIONS, 0.0, 0)]),
    "demab": (fmab.demab(), [(SERVER, INF, 1), (AGENTS_, INF, 1), WAITING]),
    "demab, private": (fmab.demab(0.3), [(SERVER, 0.3, 1), (AGENTS_, 0.3, 1), (ACTIONS, 0.3, 1)]),
    "ucb1": (fmab.ucb1(), [BARE]),
    "ucb1, pooled": (fmab.ucb1(pooled=True), [(SERVER, INF, 0), (AGENTS_, INF, 0), BARE]),
    "gosine": (fmab.gosine(), [("one random neighbour", INF, 0), BARE]),
    "dducb": (fmab.dducb(), [("neighbours", INF, 0), BARE]),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_whoever_sees_something_is_told_with_what_covers_it(name):
    """Would catch an epsilon that covers waits on un-noised means, an agent that is hidden by its
    own noise, noise of agents that weigh less, or somebody who sees messages and is left out."""
    algorithm, wanted = LEDGERS[name]
    rows = base.ledger_of(algorithm, algorithm.exchange(5))
    assert [(row.viewer, row.epsilon, row.over) for row in rows] == wanted
    assert all(row.why for row in rows)


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
        for holder in [next(each for each in owner.__mro__ if name in vars(each))]
    )
    exchange = algorithm.exchange(5)
    assert all(row.epsilon < INF for row in base.ledger_of(same, exchange))
    rows = base.ledger_of(other, exchange)
    assert rows and all(row.epsilon == INF for row in rows)


@pytest.mark.parametrize(
    ("agents", "parts"),
    [(1, "1"), (3, "1,1,1"), (5, "1,1,1,1,1"), (7, "2,2,1,1,1"), (100, "20,20,20,20,20")],
)
def test_default_components_are_as_equal_as_can_be(agents, parts):
    """Would catch an agent that is in no component, or parts that differ by more than one."""
    assert graphs.split_equally(agents) == f"{parts}:complete"
