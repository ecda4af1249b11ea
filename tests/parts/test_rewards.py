"""Reward laws against exact convolutions, mostly without a draw; sums over agents, bit by bit."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from draws import ALPHA, MILLION, at_uniform, group_sums, induced_cdf, jit_for, words
from plugs import ThreePoint
from scipy import special, stats

from fmab_jax.draws import groups
from fmab_jax.parts import rewards
from fmab_jax.parts.rewards import Bernoulli, FiniteSupport, Gaussian, Law, Ratings
from fmab_jax.sampling import keys

pytestmark = pytest.mark.usefixtures("x64")


@dataclass(frozen=True)
class Exponential(Law):
    """Rewards on [0, infinity) without a lattice: only cumulants and a quantile."""

    name: ClassVar[str] = "exponential"
    high: ClassVar[float] = math.inf

    def cumulants(self, *parameters):
        """Returns mean^k (k - 1)!, and a decay that nobody looks at."""
        (mean,) = parameters
        return (*(mean**k * float(math.factorial(k - 1)) for k in range(1, 7)), mean * 0.0)

    def one(self, u, *parameters):
        """Returns the quantile."""
        return -parameters[0] * jnp.log1p(-u)


def convolved(laws, pulls):
    """Returns the law of a sum of independent whole numbers, by powers of Fourier transforms."""
    size = sum((len(p) - 1) * n for p, n in zip(laws, pulls, strict=True)) + 1
    room = 2 ** int(np.ceil(np.log2(max(2, size))))
    product = np.ones(room // 2 + 1, complex)
    for p, n in zip(laws, pulls, strict=True):
        product = product * np.fft.rfft(p, room) ** n
    return np.maximum(np.fft.irfft(product, room)[:size], 0)


def induced_distance(quantile, exact):
    """Returns the total variation distance of the law that a quantile function induces."""
    inside = np.flatnonzero(exact > 1e-18)
    k = np.arange(max(0, inside[0] - 1), inside[-1] + 1)
    cdf = induced_cdf(lambda u: np.asarray(quantile(u)) <= k, k.shape)
    masses = np.diff(np.r_[0.0, cdf, 1.0])
    expected = np.r_[exact[k], 0.0]
    expected[0] += exact[: k[0]].sum()
    expected[-1] = max(0.0, 1 - expected[:-1].sum())
    return float(np.abs(masses - expected).sum() / 2)


@functools.partial(jax.jit, static_argnums=0)
def _steps(law, u, together, cumulants):
    wide = [jnp.broadcast_to(c, u.shape) for c in cumulants]
    span = round(law.sensitivity / law.step)
    return jnp.round(law.quantile(u, jnp.broadcast_to(together, u.shape), wide) * span)


def one_pull(law, tables):
    """Returns [7] cumulants of one pull by every agent; tables [agent, parameter]."""
    parameters = tuple(jnp.asarray(column)[:, None] for column in tables.T)
    if len(tables) == 1:
        return np.array([float(c[0, 0]) for c in _cumulants(law, *parameters)])
    member = jnp.ones((1, len(tables)))
    actual = jax.jit(groups.sum_cumulants, static_argnums=0)(law, parameters, member)
    return np.asarray(actual)[:, 0, 0]


@functools.partial(jax.jit, static_argnums=0)
def _cumulants(law, *parameters):
    return law.cumulants(*parameters)


@functools.partial(jax.jit, static_argnums=0)
def _smooth(law, cumulants):
    return law.smooth(list(cumulants))


def believed(law, cumulants):
    """Whether a sum with these cumulants is one draw."""
    return bool(_smooth(law, tuple(map(float, cumulants))))


def fewest_pulls(law, tables):
    """Returns the smallest number of pulls from which on the cumulants are believed."""
    one = one_pull(law, tables)
    n = 1
    while not believed(law, n * one):
        n *= 2
    low = n // 2
    while n - low > 1:
        middle = (low + n) // 2
        low, n = (low, middle) if believed(law, middle * one) else (middle, n)
    return n


def distance(law, tables, pulls):
    """Returns how far the one draw of all agents' sums is from the exact law."""
    one = one_pull(law, tables)
    laws = [np.array([1 - t[0], t[0]]) if isinstance(law, Bernoulli) else t for t in tables]
    if isinstance(law, FiniteSupport):
        steps, span = rewards.finite._make_lattice(law.levels)
        laws = [np.bincount(steps, weights=t, minlength=span + 1) for t in laws]
    exact = convolved(laws, [pulls] * len(tables))
    together = float(pulls * len(tables))
    return induced_distance(lambda u: _steps(law, u, together, tuple(pulls * one)), exact)


GROUPS = [
    (5, 0.3, 0.7),
    (50, 0.0, 1.0),
    (3, 0.0, 0.2),
    (2, 0.01, 0.99),
]


def group(agents, low, high):
    """Returns [agent, 1] Bernoulli means, evenly over a range."""
    return low + (high - low) * (np.arange(agents)[:, None] + 0.5) / agents


def opposite(agents, rare):
    """Returns means of which half are rare and half nearly sure: the least skewed, most peaked."""
    return np.where(np.arange(agents)[:, None] % 2 == 0, rare, 1 - rare)


@pytest.mark.parametrize("cell", GROUPS, ids=str)
def test_law_of_agents_that_differ(cell):
    """Catches sums over agents that are off by more than 1e-6: at the cell."""
    agents, low, high = cell
    means, law = group(agents, low, high), Bernoulli()
    fewest = fewest_pulls(law, means)
    assert fewest * one_pull(law, means)[1] >= 64
    for n in {fewest, 3 * fewest}:
        assert distance(law, means, n) <= 1e-6, n


@pytest.mark.parametrize("rare", [3e-4, 3e-3, 0.03, 0.1])
def test_law_of_agents_that_are_opposite(rare):
    """Catches a threshold that trusts an unskewed law too early."""
    means, law = opposite(6, rare), Bernoulli()
    fewest = fewest_pulls(law, means)
    assert distance(law, means, fewest) <= 1e-6
    if rare < 0.01:
        assert distance(law, means, int(0.4 * fewest)) > 1e-6


def distance_of_few(means, pulls):
    """Returns how far a group's sum is from the exact law, as a function of its uniform."""
    # As many arms for all numbers of pulls, which are alike: one for each uniform.
    size = 512
    table, member = np.broadcast_to(means, (len(means), size)), np.ones((1, len(means)))

    @at_uniform
    def drawn(words, pulls):
        arm = jnp.arange(size)
        given = (jnp.asarray(table),), jnp.asarray(member)
        return group_sums(Bernoulli(), words, arm, size, pulls, *given)[:, 0]

    def quantile(u):
        return np.asarray(drawn(np.resize(u, size), float(pulls)))[: len(u)]

    exact = convolved([np.array([1 - p, p]) for p in means[:, 0]], [pulls] * len(means))
    # What the transform leaves of 0 is no mass.
    return induced_distance(quantile, np.where(exact > 1e-14, exact, 0.0))


FEW = {
    "rare": group(50, 0.0, 0.1),
    "sure": group(50, 0.93, 1.0),
    "one of many": np.r_[np.full((49, 1), 1e-3), [[0.5]]],
    "opposite": opposite(6, 0.003),
    "two": np.array([[0.3], [0.99]]),
}


@pytest.mark.parametrize("name", FEW)
def test_law_of_few_rewards_of_agents_that_differ(name):
    """Catches one draw for sums that are too small for it, and a check that picks a wrong count."""
    means = FEW[name]
    variance = float(one_pull(Bernoulli(), means)[1])
    first, last = math.ceil(rewards.bernoulli._CHECKED / variance), math.floor(64 / variance)
    for pulls in sorted({first, (first + last) // 2, last}):
        assert rewards.bernoulli._CHECKED <= pulls * variance < rewards.bernoulli._SMOOTH
        assert distance_of_few(means, pulls) <= 1e-6, pulls


TABLES = {
    "three, rare top": [0.95, 0.04, 0.01],
    "three, comb of two": [0.5, 0.004, 0.496],
    "five, loved": [0.02, 0.03, 0.1, 0.25, 0.6],
    "five, comb of four": [0.5, 0.002, 0.001, 0.002, 0.495],
    "five, comb of three": [0.5, 0.001, 0.003, 0.494, 0.002],
    "five, peaked": [0.0075, 0.01, 0.939, 0.0352, 0.0083],
    "seven, rough": [0.0064, 0.0472, 0.0043, 0.6399, 0.0998, 0.1837, 0.0187],
}


@pytest.mark.parametrize("name", TABLES)
def test_law_of_sums_of_ratings(name):
    """Catches cumulants believed too early, wrong ones, and combs that they cannot show."""
    table = np.array(TABLES[name]) / sum(TABLES[name])
    law = Ratings(range(len(table)))
    fewest = fewest_pulls(law, table[None, :])
    assert fewest < 40_000
    for n in {fewest, fewest + 1, 4 * fewest}:
        assert distance(law, table[None, :], n) <= 1e-6, n


def test_law_of_ratings_by_agents_that_differ():
    """Catches cumulants of ratings that do not add up over agents."""
    table = np.random.default_rng(0).dirichlet(np.ones(5), 12)
    law = Ratings([1, 2, 3, 4, 5])
    fewest = fewest_pulls(law, table)
    assert fewest < 30 and distance(law, table, fewest) <= 1e-6


def test_cumulants_by_another_route():
    """Catches a wrong coefficient: cumulants are derivatives of the logarithm of phi at 0."""
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(5))
    # Taylor coefficients of log E exp(z X) by Cauchy's integral on a small circle.
    points = 64
    z = 0.4 * np.exp(2j * np.pi * np.arange(points) / points)
    series = np.fft.fft(np.log(np.exp(z[:, None] * np.arange(5)) @ table)) / points
    expected = [(series[k] / 0.4**k).real * math.factorial(k) for k in range(1, 7)]
    np.testing.assert_allclose(
        one_pull(Ratings([1, 2, 3, 4, 5]), table[None, :])[:6], expected, 1e-6
    )
    coin = one_pull(Bernoulli(), np.array([[0.3]]))
    np.testing.assert_allclose(one_pull(Ratings([0, 1]), np.array([[0.7, 0.3]])), coin, 1e-12)


@functools.partial(jax.jit, static_argnums=0)
def million_sums(law, k0, k1, pulls, parameters):
    """Draws a million sums."""
    lane = jnp.arange(MILLION, dtype=jnp.uint32)
    wide = [jnp.broadcast_to(p, (MILLION,)) for p in parameters]
    return law.total(k0, k1, lane, jnp.broadcast_to(pulls, (MILLION,)), *wide)


def chi_square(values, support, exact):
    """Returns the p-value of draws against a law on sorted points, cells pooled to 25 expected."""
    place = np.searchsorted(support - 1e-9, values, side="right") - 1
    assert np.abs(values - support[place]).max() < 1e-12
    expected = len(values) * exact
    order = np.argsort(expected)
    observed = np.bincount(place, minlength=len(support))[order]
    expected = expected[order]
    rare = np.searchsorted(np.cumsum(expected), 25) + 1
    pooled = [np.r_[x[:rare].sum(), x[rare:]] for x in (observed, expected)]
    return float(stats.chisquare(pooled[0], pooled[1] * pooled[0].sum() / pooled[1].sum()).pvalue)


@pytest.mark.parametrize(("pulls", "name"), [(1, "five, loved"), (17, "five, comb of four")])
def test_small_sums_of_ratings(name, pulls):
    """Catches a binomial with another level's share, a reused uniform, or a lost level."""
    table = np.array(TABLES[name]) / sum(TABLES[name])
    law = Ratings(range(len(table)))
    values = np.asarray(million_sums(law, *words(pulls), jnp.float64(pulls), tuple(table)))
    exact = convolved([table], [pulls])
    assert chi_square(values, np.arange(len(exact)) / (len(table) - 1), exact) > ALPHA


@pytest.mark.parametrize("pulls", [1, 700])
def test_a_law_of_somebody_else(pulls):
    """Catches a finite law that needs more than its levels and probabilities."""
    law = ThreePoint(0.8)
    table = np.array([float(p[0, 0]) for p in law.parameters(jnp.full((1, 1), 0.3))])
    values = np.asarray(million_sums(law, *words(6), jnp.float64(pulls), tuple(table)))
    exact = convolved([table], [pulls])
    assert chi_square(values, np.arange(len(exact)) / 2, exact) > ALPHA
    assert law.describe() == {"law": "three-point", "middle": 0.8, "levels": [0.0, 0.5, 1.0]}


@pytest.mark.parametrize("pulls", [1, 30, 2000])
def test_a_continuous_law_of_somebody_else(pulls):
    """Catches a lattice forced upon rewards that have none, or sums of normal shape."""
    values = np.asarray(million_sums(Exponential(), *words(7), jnp.float64(pulls), (0.5,)))
    assert stats.kstest(values[:100_000], stats.gamma(pulls, scale=0.5).cdf).pvalue > ALPHA


def test_gaussian_sums_are_one_normal_draw():
    """Catches a deviation that grows with pulls instead of their root, or a rounded sum."""
    law, values = Gaussian(0.25).bind()
    assert law == Gaussian(4.0).bind()[0] and hash(law) == hash(Gaussian(4.0).bind()[0])
    means = jnp.asarray([[-3.0, 0.5, 1e6]])
    mean, sd = law.parameters(means, **values)
    np.testing.assert_array_equal(sd, [[0.25] * 3])
    lane = jnp.arange(3, dtype=jnp.uint32)
    for pulls in (0.0, 1.0, 1e4):
        wide = [jnp.broadcast_to(word, (3,)) for word in words(8)]
        actual = jax.jit(law.total)(*wide, lane, jnp.full(3, pulls), mean[0], sd[0])
        z = special.ndtri(np.asarray(keys.uniform(*words(8), lane)))
        expected = pulls * np.array([-3.0, 0.5, 1e6]) + np.sqrt(pulls) * 0.25 * z
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
    assert (law.sensitivity, law.describe()["sd"]) == (math.inf, None)
    assert Gaussian(0.25).describe() == {"law": "gaussian", "sd": 0.25}


@pytest.mark.parametrize(
    ("law", "parameters"),
    [
        (Bernoulli(), (0.3,)),
        (Ratings([1, 2, 5]), (0.2, 0.5, 0.3)),
        (Gaussian(2.0), (0.3, 2.0)),
        (Exponential(), (0.3,)),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_single_rewards(law, parameters):
    """Catches a quantile that falls, or one of another mean or variance than its cumulants say."""
    u = (np.arange(10**6) + 0.5) / 10**6
    values = np.asarray(law.one(jnp.asarray(u), *(jnp.full(u.shape, p) for p in parameters)))
    assert (np.diff(values) >= 0).all()
    step = law.step or 1.0
    mean, variance = (float(c) for c in law.cumulants(*map(jnp.float64, parameters))[:2])
    np.testing.assert_allclose(values.mean() / step, mean, rtol=2e-5)
    np.testing.assert_allclose(values.var() / step**2, variance, rtol=2e-4)


WIDTH, ROWS = 6, 5
ARM = np.array([0, 2, 5])
MEMBER = np.array([[1.0, 0, 1, 0, 0], [0, 1.0, 0, 0, 1]])


def summed(law, seed, pulls, parameters, member):
    """Draws group sums [group, arm] of one seed, of the arms `ARM` of all."""
    given = jnp.asarray(ARM), WIDTH, pulls, parameters, jnp.asarray(member)
    return group_sums(law, words_of(seed), *given).T


def words_of(seed):
    """Returns the key words of a traced seed."""
    return keys.stream_key(keys.seed_key(jnp.uint32(0), seed), 1, keys.REWARD)


def parameters_of(law, seeds, rows=ROWS):
    """Returns [seed, row, arm] parameters."""
    rng = np.random.default_rng(3)
    if isinstance(law, Bernoulli):
        return (rng.random((seeds, rows, WIDTH)) ** 2,)
    return tuple(np.moveaxis(rng.dirichlet(np.ones(5), (seeds, rows, WIDTH)), -1, 0))


LAWS = [Bernoulli(), Ratings([1, 2, 3, 4, 5])]


@pytest.mark.parametrize("law", quick.only(LAWS, LAWS[1]), ids=lambda x: x.name)
def test_small_group_sums_are_the_sums_of_their_agents(law):
    """Catches an agent of another group or a lane of another agent."""
    seeds = np.arange(40, dtype=np.uint32)
    alive = np.random.default_rng(4).random((40, 3)) < 0.7
    pulls = np.where(alive, np.resize([3.0, 9.0], 40)[:, None], 0.0)
    parameters = parameters_of(law, 40)
    batched = jax.jit(jax.vmap(functools.partial(summed, law), (0, 0, 0, None)))
    actual = np.asarray(batched(seeds, pulls, parameters, MEMBER))

    def alone(seed, pulls, parameters):
        lane = keys.lanes(ROWS, jnp.asarray(ARM, jnp.uint32), WIDTH)
        return law.total(*words_of(seed), lane, pulls[None, :], *(x[:, ARM] for x in parameters))

    item = np.asarray(jax.jit(jax.vmap(alone))(seeds, pulls, parameters))
    np.testing.assert_array_equal(actual, np.einsum("gr,sra->sga", MEMBER, item))
    assert len(np.unique(actual)) > 10 and not actual.swapaxes(1, 2)[~alive].any()


def test_gaussian_sums_of_agents_that_differ_are_one_normal_draw():
    """Catches a variance in place of a deviation, or a sum that leaves out an agent's mean."""
    law, values = Gaussian(0.25).bind()
    means = np.random.default_rng(5).normal(size=(ROWS, WIDTH))
    draw = jax.jit(jax.vmap(functools.partial(summed, law), (0, None, None, None)))
    parameters = law.parameters(jnp.asarray(means), **values)
    sums = draw(np.arange(5000, dtype=np.uint32), np.full(3, 7.0), parameters, MEMBER)
    deviation = 0.25 * np.sqrt(7 * MEMBER.sum(axis=1, keepdims=True))
    z = (np.asarray(sums) - 7 * MEMBER @ means[:, ARM]) / deviation
    assert stats.kstest(z.ravel(), "norm").pvalue > ALPHA


@pytest.mark.parametrize("platform", quick.only(["cpu", "gpu"], "gpu"))
@pytest.mark.parametrize("law", quick.only(LAWS, LAWS[0]), ids=lambda x: x.name)
def test_group_sums_do_not_depend_on_batch_or_room(law, platform):
    """Catches rows that do not exist but are drawn, or sums in an order that the room decides."""
    seeds = np.arange(64, dtype=np.uint32)
    pulls = np.resize([4.0, 90.0, 1e6], 64)
    parameters = parameters_of(law, 64)
    batched = jax.vmap(functools.partial(summed, law), (0, 0, 0, None))
    expected = np.asarray(jit_for("cpu", batched)(seeds, pulls, parameters, MEMBER))
    many = jit_for(platform, batched)
    part = tuple(x[:7] for x in parameters)
    np.testing.assert_array_equal(many(seeds[:7], pulls[:7], part, MEMBER), expected[:7])
    wide = tuple(np.pad(x, ((0, 0), (0, 13 - ROWS), (0, 0))) for x in parameters)
    actual = many(seeds, pulls, wide, np.pad(MEMBER, ((0, 0), (0, 13 - ROWS))))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("law", [*LAWS, Gaussian(1.0), Exponential()], ids=lambda x: x.name)
def test_agents_may_share_their_law(law, platform):
    """Catches a law that is drawn only where each agent has parameters of its own."""
    shape = (9, 4)
    lane = np.arange(36, dtype=np.uint32).reshape(shape)
    pulls = np.array([0.0, 1, 3, 9, 17, 100, 1000, 1e5, 1e9])[:, None]
    table = {"ratings": [0.1, 0.2, 0.3, 0.3, 0.1], "gaussian": [0.3, 1.0]}.get(law.name, [0.3])
    shared = [np.full((9, 1), p) for p in table]
    draw = jit_for(platform, lambda *given: law.total(*words(), *given))
    wide = [np.broadcast_to(x, shape) for x in (pulls, *shared)]
    actual = np.asarray(draw(lane, pulls, *shared))
    # Rounding may differ where there is no lattice.
    np.testing.assert_allclose(actual, draw(lane, *wide), rtol=4e-16)
    assert (actual[0] == 0).all() and (actual[1:] != 0).any(axis=1).all()


@pytest.mark.parametrize(
    ("levels", "values", "span"),
    [
        ([1, 2, 3, 4, 5], [0, 0.25, 0.5, 0.75, 1], 4),
        ([0.1, 0.2, 0.3], [0, 0.5, 1], 2),
        ([-10, 0, 5], [0, 2 / 3, 1], 3),
        ([0, 0.1, 0.37], [0, 10 / 37, 1], 37),
    ],
)
def test_levels_are_multiples_of_their_largest_step(levels, values, span):
    """Catches steps found in binary, where 0.1, 0.2 and 0.3 are not equally far apart."""
    law = Ratings(levels)
    np.testing.assert_array_equal(law.values, values)
    assert law.step == 1 / span
