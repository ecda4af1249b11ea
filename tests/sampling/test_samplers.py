"""The random laws against exact ones, mostly without a draw; and the discipline of their keys."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import ALPHA, LATTICE, MILLION, at_uniform, induced_cdf, jit_for, two_sided, words
from scipy import special, stats

import fmab_jax
from fmab_jax.parts import rewards
from fmab_jax.records.problem import Problem
from fmab_jax.run import compilation, configs
from fmab_jax.sampling import arrays, binomials, keys, laplace, normal, rare, samplers
from fmab_jax.sampling.curves import time_grid

pytestmark = pytest.mark.usefixtures("x64")


def one_by_one(words, trials, probability):
    """Draws counts; a row of uniforms may share a law, [row, 1]."""
    return binomials.binomials(words, jnp.zeros_like(words[0]), trials, probability)


def by_rows(words, trials, probability):
    """Draws counts by twos that share a law and a uniform."""
    pairs = keys.Words(*(jnp.broadcast_to(word[:, None], (len(word), 2)) for word in words))
    return one_by_one(pairs, trials[:, None], probability[:, None]).max(axis=1)


# The quantile function, by each way in which binomials are drawn.
WAYS = {
    f"{draw.__name__}, {platform}": at_uniform(draw, platform)
    for platform in ("cpu", "gpu")
    for draw in (one_by_one, by_rows)
}
quantile = WAYS["one_by_one, cpu"]


def support(trials, probability):
    """Returns all counts within 8.5 deviations of the mean, or cuts a twentieth of one apart."""
    mean, deviation = trials * probability, np.sqrt(trials * probability * (1 - probability))
    low = max(0.0, np.floor(mean - 8.5 * deviation - 25))
    high = min(trials, np.ceil(mean + 8.5 * deviation + 25))
    if deviation <= 20:
        return np.arange(low, high + 1)
    cuts = np.floor(mean + deviation * np.arange(-8.5, 8.5, 0.05))
    return np.unique(np.clip(cuts, low, high))


def induced_masses(sampler, cells):
    """Returns each cell's law on its support, from where the quantile function steps.

    The last entry is the mass above the support.
    """
    ks = [support(n, p) for n, p in cells]
    sizes = [len(k) for k in ks]
    k = np.concatenate(ks)
    n = np.repeat([float(n) for n, _ in cells], sizes)
    p = np.repeat([p for _, p in cells], sizes)
    # As many for all cells: one compilation.
    size = 1 << (len(k) - 1).bit_length()
    law = [np.resize(x, size) for x in (n, p)]
    cdf = induced_cdf(
        lambda u: np.asarray(sampler(np.resize(u, size), *law))[: len(k)] <= k, k.shape
    )
    cdfs = np.split(cdf, np.cumsum(sizes)[:-1])
    return [np.diff(np.r_[0.0, cdf, 1.0]) for cdf in cdfs]


def exact_masses(trials, probability):
    """Returns the binomial law on the same support, from scipy.

    Single masses where every count is listed: scipy's distribution function is wrong by 2e-8 at
    (1e9, 1e-8), its mass function by 1e-15.
    """
    k = support(trials, probability)
    if len(k) == 1 or np.diff(k).max() == 1:
        mass = stats.binom.pmf(k, trials, probability)
        return np.r_[mass, max(0.0, 1 - mass.sum())]
    return np.diff(np.r_[0.0, stats.binom.cdf(k, trials, probability), 1.0])


def discrepancy(sampler, cells):
    """Returns [cell, 3]: variance, total variation distance, mean bias in deviations."""
    rows = []
    for (n, p), induced in zip(cells, induced_masses(sampler, cells), strict=True):
        difference, variance = induced - exact_masses(n, p), n * p * (1 - p)
        bias = (difference[:-1] * (support(n, p) - n * p)).sum() / np.sqrt(variance)
        rows.append((variance, np.abs(difference).sum() / 2, bias))
    return np.array(rows)


def at_variance(trials, variance):
    """Returns the cell with this variance and p < 1/2."""
    return trials, (1 - np.sqrt(1 - 4 * variance / trials)) / 2


REJECTION_CELLS = [
    (n or round(2 * mean), mean / (n or round(2 * mean)))
    for mean in (10.01, 11, 13, 15, 20, 30, 50, 100)
    for n in (0, 1e3, 1e4, 1e6, 1e9)
]
THRESHOLD_CELLS = [
    at_variance(n, threshold * (1 + side))
    for threshold in (binomials._SMALL_VARIANCE, samplers.SMOOTH_VARIANCE)
    for n in (17.0, 161.0, 200.0, 500.0, 1e4, 1e6, 1e12)
    for side in (-1e-3, -1e-12, 1e-12, 1e-3)
    if n > 4.01 * threshold
]
FAR_CELLS = [
    *[(n, p) for n in (30.0, 170.0, 3000.0) for p in (0.5, 0.5 - 1e-9, 0.5 + 1e-9, 0.9, 0.99)],
    *[(1e12, p) for p in (1e-13, 1e-12, 5e-12, 3.9e-11, 4.1e-11, 1e-9, 0.3, 0.999, 1 - 1e-12)],
    *[(2.0**53, p) for p in (1e-15, 0.5, 1 - 2.0**-53)],
    *[(1.0, 0.5), (1.0, 1e-9), (2.0, 0.999), (3.0, 0.7), (1e5, 0.37), (2e9, 0.123), (2e9, 4e-9)],
]


@pytest.mark.parametrize("cells", [REJECTION_CELLS, THRESHOLD_CELLS, FAR_CELLS])
@pytest.mark.parametrize("way", WAYS)
def test_induced_binomial_law(cells, way):
    """Catches any error of the law above 1e-6, such as JAX's 5.6e-4 just above n min(p, q) = 10."""
    variance, distance, bias = discrepancy(WAYS[way], cells).T
    assert distance[variance < samplers.SMOOTH_VARIANCE].max(initial=0) < 1e-12
    assert distance.max() < 1e-6
    assert np.abs(bias).max() < 1e-6


def test_induced_law_of_fair_coins():
    """Catches a wrong Sheppard correction of the kurtosis, which skewed laws cannot show."""
    actual = discrepancy(quantile, [(n, 0.5) for n in (160.0, 164.0, 250.0, 1000.0)])
    assert actual[:, 1].max() < 3e-8


reward_sum = rewards.Bernoulli().total


DRAWN_CELLS = [
    *[(1, 0.5), (10, 0.01), (50, 0.3), (25, 0.45), (1000, 0.999), (1000, 0.011), (1000, 1e-6)],
    *[(20, 0.5), (21, 0.5), (1e5, 0.37), (1e6, 0.9), (1e7, 0.5), (1e7, 1e-5)],
    *[(2e9, 0.123), (2e9, 4e-9), (1e12, 0.3)],
]


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_counts_are_quantiles_of_their_own_uniforms(platform):
    """Catches lanes or draws that share a uniform, also where it is drawn again."""
    lane = jnp.arange(20_000, dtype=jnp.uint32)
    draw = jit_for(
        platform, lambda words, number, *law: binomials.binomials(words, lane, *law, number)
    )
    for number, cell in enumerate(DRAWN_CELLS):
        law = [jnp.full(len(lane), x, jnp.float64) for x in cell]
        actual = draw(words(number), jnp.uint32(number % 3), *law)
        expected = quantile(keys.uniform(*words(number), lane, number % 3), *law)
        # Rounding decides for a few uniforms that lie at a step.
        assert (np.asarray(actual) != np.asarray(expected)).mean() < 1e-4, cell


@pytest.mark.parametrize("way", WAYS)
def test_counts_are_exact_up_to_2_to_the_53(way):
    """Catches counts in float32, which stick at 2^24, or a sure outcome lost in rounding."""
    quantile = WAYS[way]
    n = 2.0**53 - np.array([0, 1, 2, 3, 12345])
    u = np.full(5, 0.3)
    np.testing.assert_array_equal(quantile(u, n, np.ones(5)), n)
    np.testing.assert_array_equal(quantile(u, n, np.zeros(5)), 0)
    bad_trials = np.array([2.0**53 + 2, np.inf, np.nan, -1.0, 1.5])
    assert np.isnan(quantile(u, bad_trials, np.full(5, 0.5))).all()
    bad_chances = np.array([-0.1, 1.1, np.nan, np.inf, 2.0])
    assert np.isnan(quantile(u, np.full(5, 9.0), bad_chances)).all()
    u = (np.arange(4096) + 0.5) / 4096
    odd = np.asarray(quantile(u, np.full(4096, 1e12), np.full(4096, 0.3)))
    assert odd.dtype == np.float64 and 0.4 < np.mean(odd % 2) < 0.6


def test_no_narrow_numbers_in_the_compiled_run():
    """Catches float32 on a path of counts, noise or regret, where they would stick in silence."""
    grid = jnp.asarray(time_grid(10**6, 5))

    def run(trial, bound, seed):
        return compilation.run_trial(trial, bound, grid, jnp.uint32(0), seed)

    for algorithm, problem in RUNS:
        config = configs.bind(algorithm, problem, 10**6)
        program = str(jax.make_jaxpr(run)(config.trial, config.bound, np.uint32(1)))
        assert ":f64[" in program and not re.search(r":(f32|f16|bf16|i16|i8)\[", program)


@pytest.mark.parametrize("size", [1, 6, 1000])
def test_uniforms_are_the_bits_of_jax(size):
    """Catches an error in the cipher, a dropped bit, or lanes that depend on the array's size."""
    for seed in (0, 1, 2**32 - 1):
        key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), 9)
        lane = np.arange(size, dtype=np.uint32)[::-1].copy()
        u = keys.uniform(*keys.Words(*jax.random.key_data(key)), jnp.asarray(lane))
        bits = np.asarray(jax.random.bits(key, (size,), jnp.uint64))
        # (i + 1/2) / 2^52, exactly.
        expected = 2.0 * (bits[lane] >> np.uint64(12)).astype(np.float64) + 1
        np.testing.assert_array_equal(np.asarray(u) * 2.0**53, expected)


def test_uniforms_have_no_ends(monkeypatch):
    """Catches 0 or 1 among the uniforms (infinite noise), or a lattice that is off centre."""
    lane, zero = jnp.arange(5, dtype=jnp.uint32), jnp.uint32(0)
    high, low = (np.asarray(x) for x in keys._threefry(*words(), jnp.uint32(1), lane))
    coarse = keys.coarse_uniforms(*words(), lane, 1)
    np.testing.assert_array_equal(coarse[0], (high + 0.5) / 2**32)
    np.testing.assert_array_equal(coarse[1], (low + 0.5) / 2**32)
    ends = jnp.array([0, 0, 2**32 - 1], jnp.uint32), jnp.array([0, 2**12, 2**32 - 1], jnp.uint32)
    monkeypatch.setattr(keys, "_threefry", lambda *_: ends)
    u = np.asarray(keys.uniform(zero, zero, lane[:3]))
    np.testing.assert_array_equal(u, [2.0**-53, 3 * 2.0**-53, 1 - 2.0**-53])
    for u in keys.coarse_uniforms(zero, zero, lane[:3], 0):
        np.testing.assert_array_equal(u[jnp.array([0, 2])], [2.0**-33, 1 - 2.0**-33])


def test_keys_are_folded_as_jax_does():
    """Catches a key that is not the documented ``fold_in`` of root seed and seed."""
    key = keys.seed_key(jnp.uint32(3), jnp.uint32(2**32 - 1))
    expected = jax.random.key(3, impl="threefry2x32")
    for number in (2**32 - 1, 7, keys.NOISE):
        expected = jax.random.fold_in(expected, number)
    np.testing.assert_array_equal(
        keys.stream_key(key, 7, keys.NOISE), jax.random.key_data(expected)
    )
    for platform in ("cpu", "gpu"):
        several = jit_for(platform, lambda key: keys.stream_keys(key, 7, keys.REWARD, keys.NOISE))
        np.testing.assert_array_equal(several(key)[1], jax.random.key_data(expected))
    alone = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, 0), keys.ALONE), 5)
    mine = keys.agent_key(key, jnp.int32(5))
    np.testing.assert_array_equal(jax.random.key_data(mine), jax.random.key_data(alone))


def test_normal_quantile_is_exact():
    """Catches a wrong coefficient of a branch, a branch taken too late, or a seam that steps."""
    rng = np.random.default_rng(0)
    seams = [0.075, 0.925, np.exp(-25.0), 0.5]
    near = [s + 1e-9 * rng.standard_normal(2000) * min(s, 1 - s) for s in seams]
    u = np.concatenate(
        [(rng.integers(0, LATTICE, 200_000) + 0.5) / LATTICE, 2.0 ** -rng.uniform(1, 53, 10**5)]
        + near
    )
    z = np.asarray(jax.jit(normal.quantile)(np.sort(u)))
    expected = special.ndtri(np.sort(u))
    # Near 1/2 the quantile is 2.5 (u - 1/2): the library rounds u there.
    assert (np.abs(z - expected) <= 4e-15 * np.maximum(np.abs(expected), 1e-2)).all()
    assert (np.diff(z) >= -1e-14).all()
    exact = (rng.integers(0, LATTICE, 1000) + 0.5) / LATTICE
    both = [np.asarray(normal.quantile(jnp.asarray(x))) for x in (exact, 1 - exact)]
    np.testing.assert_array_equal(both[0], -both[1])


def test_logarithm_is_exact():
    """Catches a lost exponent, a series cut short, or cancellation near 1."""
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [2.0 ** rng.uniform(-1000, 1000, 10**5), 1 + 1e-6 * rng.standard_normal(10**5)]
        + [np.sqrt([0.5, 2.0]) + 1e-15 * k for k in range(-3, 4)]
    )
    np.testing.assert_allclose(jax.jit(normal.log)(x), np.log(x), rtol=1e-15, atol=0)


def test_laplace_is_the_exact_inverse():
    """Catches a wrong scale, sign or tail: the distribution function must give the uniform back."""
    lane = jnp.arange(10**5, dtype=jnp.uint32)
    x, u = (np.asarray(draw(*words(1), lane)) for draw in (laplace.laplace, keys.uniform))
    # The nearer tail, so that nothing cancels.
    np.testing.assert_allclose(np.exp(-np.abs(x)) / 2, np.minimum(u, 1 - u), rtol=1e-14)
    np.testing.assert_array_equal(x > 0, u > 0.5)


def laplace_sum_cdf(x, terms):
    """Returns P(sum of ``terms`` Laplace(1) <= x), as a finite mixture of gamma tails.

    The sum is G - G' of two Gamma(terms). Where G' ends first, as the race of two Poisson
    processes, j of G's ``terms`` events have passed, with negative binomial mass, and the rest of G
    is Gamma(terms - j).
    """
    j = np.arange(terms)
    weight = stats.nbinom.pmf(j, terms, 0.5)
    above = (weight[None, :] * stats.gamma.sf(np.abs(x)[:, None], terms - j)).sum(axis=1)
    return np.where(x < 0, above, 1 - above)


@pytest.mark.parametrize("terms", [1, 2, 5, 50, 5000, 5001])
def test_law_of_sums_of_laplace_variables(terms):
    """Catches a sum that is only normal, a wrong scale, a polynomial that wiggles or ends early."""
    shape = jnp.asarray(laplace.laplace_sum_shape(terms))[:, None]
    # To both ends of the uniforms: the quantile of 2^-53 is -8.21.
    half = 2000 if terms <= 50 else 200
    z = np.linspace(0, 8.21, half + 1)
    z = np.concatenate([-z[:0:-1], z])
    x = np.asarray(laplace.laplace_sum(jnp.asarray(z), shape))
    assert (np.diff(x) > 0).all() and (x == -x[::-1]).all()
    # No draw: the law's distribution function at the points where the normal one is known.
    off = laplace_sum_cdf(-np.abs(x), terms) - special.ndtr(-np.abs(z))
    assert np.abs(np.diff(off[: half + 1])).sum() < 1e-6
    # Far out, where a total variation sees nothing, still within 10^-5 of the tail.
    assert np.max(np.abs(off) / special.ndtr(-np.abs(z))) < 1e-5


def test_listed_sums_of_laplace_variables_are_what_is_solved_for():
    """Catches a list with a wrong or missing row, and noise on a row that only fills an array."""
    assert len(np.load(laplace.SHAPES)) == 256
    z = jnp.linspace(0.1, 8.2, 100)
    for terms in (1, 2, 3, 17, 128, 255, 256, 257):
        listed, solved = laplace.laplace_sum_shape(terms), laplace.solve_shape(terms)
        x, y = (laplace.laplace_sum(z, jnp.asarray(item)[:, None]) for item in (listed, solved))
        np.testing.assert_allclose(x, y, rtol=1e-11)
    none = jnp.asarray(laplace.laplace_sum_shape(0))[:, None]
    assert not np.asarray(laplace.laplace_sum(z, none)).any()


@jax.jit
def few_summed(u, count):
    """Returns the sums of few variables at given uniforms, each of the same for every draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "uniform", lambda *_: u)
        none = jnp.zeros(u.shape, jnp.uint32)
        return laplace.sample_small_sums(none, none, none, count)


@pytest.mark.parametrize("terms", range(1, laplace._TABLE_TERMS + 1))
def test_law_of_the_few_summed_variables(terms):
    """Catches a cubic of another cell or count, a slope that is not the law's, tails that end."""
    level = np.concatenate([np.linspace(0, 12, 20_001)[1:], np.linspace(12, 36.7, 2_000)[1:]])
    u = 0.5 * np.exp(-level)
    x = np.asarray(few_summed(jnp.asarray(u), jnp.full(len(u), terms, jnp.int32)))
    assert (np.diff(x) < 0).all() and x[0] < 0
    tail = laplace_sum_cdf(x, terms)
    off = np.concatenate([[0.0], tail - u])
    assert np.abs(np.diff(off)).sum() < 1e-6
    assert np.max(np.abs(tail / u - 1.0)) < 1e-5
    # Symmetric; exactly, where 1 - u is exact.
    near = u[u > 1e-3]
    other = np.asarray(few_summed(1.0 - jnp.asarray(near), jnp.full(len(near), terms, jnp.int32)))
    np.testing.assert_allclose(other, -x[: len(near)], rtol=1e-12)


def test_more_variables_than_are_listed_are_summed_in_parts():
    """Catches variables past the last listed one left out, doubled, or given to other sums."""
    most = laplace._TABLE_TERMS
    count = jnp.asarray([0, 1, most, most + 1, 2 * most, 2 * most + 3], jnp.int32)
    u = jnp.full(len(count), 0.2)
    one, few, many = (
        float(few_summed(u[:1], jnp.asarray([n], jnp.int32))[0]) for n in (1, 3, most)
    )
    expected = [0.0, one, many, many + one, 2 * many, 2 * many + few]
    np.testing.assert_allclose(few_summed(u, count), expected, rtol=1e-15)


def test_participants_are_uniform_subsets():
    """Catches draws with replacement, or a favoured agent: 210 subsets are equally likely."""

    def subset(seed):
        key = keys.stream_key(keys.seed_key(jnp.uint32(0), seed), 1, keys.PARTICIPATION)
        drawn = samplers.sample_participants(key, jnp.ones(10, bool), jnp.int32(4))
        return jnp.sum(jnp.where(drawn, 2 ** jnp.arange(10), 0))

    codes = np.asarray(jax.jit(jax.vmap(subset))(jnp.arange(MILLION, dtype=jnp.uint32)))
    possible = [sum(2**i for i in chosen) for chosen in itertools.combinations(range(10), 4)]
    assert set(np.unique(codes)) == set(possible)
    assert stats.chisquare(np.bincount(codes, minlength=1024)[sorted(possible)]).pvalue > ALPHA


@pytest.mark.parametrize("agents", [1, 7, 50])
def test_so_many_participants_are_drawn_among_agents(agents, monkeypatch):
    """Catches a participant too many or too few, or rows of padding that are drawn."""
    real, number = jnp.arange(64) < agents, jnp.arange(1, agents + 1, dtype=jnp.int32)

    def drawn(limit):
        monkeypatch.setattr(samplers, "_MOST_COUNTED_ROWS", limit)
        sample = jax.vmap(
            lambda k0, k1, n: samplers.sample_participants(keys.Words(k0, k1), real, n),
            (None, None, 0),
        )
        every = [sample(*words(seed, 1, keys.PARTICIPATION), number) for seed in range(5)]
        return np.asarray(jnp.stack(every))

    by_count, by_order = drawn(64), drawn(63)
    np.testing.assert_array_equal(by_count, by_order)
    assert (by_count.sum(axis=2) == np.arange(1, agents + 1)).all()
    assert not by_count[:, :, agents:].any()
    monkeypatch.setattr(samplers, "uniform", lambda *_: jnp.full(64, 0.5))
    np.testing.assert_array_equal(drawn(64), drawn(63))


ARM = np.arange(24, dtype=np.uint32)
RATINGS = rewards.Ratings([1, 2, 3, 4, 5])


def noise_sums(k0, k1, lane):
    """Draws sums of 1, 2 and 50 Laplace variables."""
    shapes = np.array([laplace.laplace_sum_shape(n) for n in (1, 2, 50)]).T
    z = normal.quantile(keys.uniform(k0, k1, lane))
    return laplace.laplace_sum(z, jnp.asarray(shapes)[:, :, None])


def heard(k0, k1):
    """Draws who of nine agents is heard."""
    return samplers.sample_participants(keys.Words(k0, k1), jnp.ones(9, bool), jnp.int32(4))


# Of the key's words, lanes [agent, arm], and the means and pulls of an arm.
SAMPLERS = {
    "coins": lambda k0, k1, lane, mean, pulls: reward_sum(k0, k1, lane, pulls[None], mean[None]),
    "coins by rows": lambda k0, k1, lane, mean, pulls: reward_sum(
        k0, k1, lane.T, pulls[:, None], mean[:, None]
    ),
    "ratings": lambda k0, k1, lane, mean, pulls: RATINGS.total(
        k0, k1, lane, pulls[None], *(jnp.full((1, 1), p) for p in (0.02, 0.03, 0.1, 0.25, 0.6))
    ),
    "noise": lambda k0, k1, lane, *_: laplace.laplace(k0, k1, lane),
    "noise of many": lambda k0, k1, lane, *_: noise_sums(k0, k1, lane),
    "noise of some": lambda k0, k1, lane, *_: laplace.sample_small_sums(
        k0, k1, lane, 1 + lane.astype(jnp.int32) % 19
    ),
    "who is heard": lambda k0, k1, *_: heard(k0, k1),
}
SEEDS = np.arange(2**32 - 100, 2**32).astype(np.uint32)
RNG = np.random.default_rng(0)
MEANS, LEFT = RNG.random((100, 24)), RNG.random((100, 24)) < 0.4
# All regimes of the variance; an arm that has left is not pulled.
PULLS = np.where(LEFT, 0.0, np.resize([7.0, 60.0, 120.0, 3000.0, 1e9], 24))
BATCH = (SEEDS, MEANS, PULLS)


def of_seed(name):
    """Returns a sampler as a function of root seed, seed, means and pulls."""

    def draw(root, seed, mean, pulls):
        key = keys.stream_key(keys.seed_key(root, seed), 3, keys.REWARD)
        return SAMPLERS[name](*key, keys.lanes(3, jnp.asarray(ARM), 24), mean, pulls)

    return draw


def of_seeds(name):
    """Returns a sampler as a function of the root seed and of `BATCH`."""
    return jax.vmap(of_seed(name), (None, 0, 0, 0))


@functools.cache
def one_by_one_drawn(name):
    """Returns what is drawn for every seed by itself."""
    single = jit_for("cpu", of_seed(name))
    return np.stack([single(np.uint32(5), *given) for given in zip(*BATCH, strict=True)])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_do_not_depend_on_the_batch(name, platform):
    """Catches a number that changes with the batch, as element i of JAX's binomial does."""
    drawn = np.asarray(jit_for(platform, of_seeds(name))(np.uint32(5), *BATCH))
    np.testing.assert_array_equal(drawn, one_by_one_drawn(name))
    assert len(np.unique(drawn)) > (1 if name == "who is heard" else 1000)
    if name in ("coins", "coins by rows", "ratings"):
        sums = drawn.swapaxes(1, 2) if name != "coins by rows" else drawn
        assert (sums[LEFT] == 0).all()


@pytest.mark.parametrize("size", [1, 63, 65, 200])
def test_zeros_change_no_sum(size):
    """Catches a row left out or added twice, and an order that the length of the array decides."""
    rng = np.random.default_rng(size)
    values, wide = rng.normal(size=(size, 3)), np.zeros((2 * size, 3))
    wide[np.sort(rng.permutation(2 * size)[:size])] = values
    expected = functools.reduce(np.add, values)
    for rows in (values, wide):
        np.testing.assert_array_equal(arrays.sum_in_turn(jnp.asarray(rows)), expected)
    total = np.asarray(arrays.padded_sum(jnp.asarray(values)))
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-13)
    longer = np.concatenate([values, np.zeros((37, 3))])
    np.testing.assert_array_equal(arrays.padded_sum(jnp.asarray(longer)), total)


def test_streams_are_uncorrelated():
    """Catches streams, lanes, draws, rounds, agents or seeds that share or shift their numbers."""
    arm = jnp.arange(4, dtype=jnp.uint32)
    # Round, stream and draw of every kind of variable.
    kinds = [(r, s, 0) for r in (1, 2) for s in (keys.REWARD, keys.NOISE, keys.PARTICIPATION)]
    kinds += [(0, keys.INSTANCE, 0), (1, keys.REWARD, 1), (0, keys.LASTING, 0), (0, keys.NOISE, 0)]
    rounds, streams, numbers = (jnp.asarray(x, jnp.uint32) for x in zip(*kinds, strict=True))

    def lanes(key, round_index, stream, draw):
        return keys.uniform(*keys.stream_key(key, round_index, stream), arm, draw)

    def family(root, seed):
        key = keys.seed_key(root, seed)
        by_agent = [lanes(keys.agent_key(key, jnp.int32(i)), 1, keys.REWARD, 0) for i in (0, 1)]
        shared = jax.vmap(lanes, (None, 0, 0, 0))(key, rounds, streams, numbers)
        return jnp.concatenate([shared.ravel(), *by_agent])

    def variables(seed):
        roots, seeds = jnp.array([0, 0, 1], jnp.uint32), jnp.stack([seed, seed + 1, seed])
        return jax.vmap(family)(roots, seeds).ravel()

    # Every other seed, so that seed + 1 is no other one.
    values = np.asarray(jax.jit(jax.vmap(variables))(2 * np.arange(50_000, dtype=np.uint32)))
    for shape in (values, np.abs(values - 0.5)):
        correlation = np.corrcoef(shape.T)[np.triu_indices(values.shape[1], 1)]
        worst = np.abs(correlation).max()
        assert two_sided(worst * np.sqrt(len(values))) * len(correlation) > ALPHA


RUNS = [
    (fmab_jax.cdp_mab(3.0, participation=0.6), Problem.heterogeneous(4, 6)),
    (fmab_jax.cdp_mab(3.0), Problem.with_gap(20, 6, 0.1)),
    (fmab_jax.ddp_mab(3.0, "ring"), Problem.heterogeneous(5, 6, spread=0.5, instance_gap=0.05)),
    # Sums of agents that differ; some are so small that each agent is drawn.
    (fmab_jax.cdp_mab(3.0), Problem(np.outer([1.0, 0.9], [0.5, 0.45, 5e-3, 1e-3, 1e-4]))),
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_uses_no_random_number_twice(number, monkeypatch):
    """Catches a key or lane shared by two variables of a run: all its inputs are recorded."""
    calls, levels = [], [0]
    cipher, replaced = keys._threefry, rare._replace_lanes

    def tapped(k0, k1, draw, lane):
        level = levels[-1]

        def record(*inputs):
            while len(calls) <= level:
                calls.append([])
            # The lanes of one call are told apart; chunks repeat a lane as padding.
            calls[level].append(np.unique(np.stack(inputs).reshape(4, -1), axis=1))
            return inputs[-1]

        shape = jnp.broadcast_shapes(*map(jnp.shape, (k0, k1, draw, lane)))
        wide = [jnp.broadcast_to(x, shape) for x in (k0, k1, draw, lane)]
        kind = jax.ShapeDtypeStruct(shape, jnp.uint32)
        lane = jax.pure_callback(record, kind, *wide, vmap_method="broadcast_all")
        return cipher(k0, k1, draw, lane)

    def anew(exact, *rest):
        def inside(*operands):
            levels.append(levels[-1] + 1)
            try:
                return exact(*operands)
            finally:
                levels.pop()

        return replaced(inside, *rest)

    def folded(key, data):
        whole = jax.random.wrap_key_data(jnp.stack(key), impl="threefry2x32")
        return keys.get_words(jax.random.fold_in(whole, data))

    # Keys are made as often as one likes; what is drawn with them is told apart.
    monkeypatch.setattr(keys, "fold_key", folded)
    monkeypatch.setattr(keys, "_threefry", tapped)
    monkeypatch.setattr(rare, "_replace_lanes", anew)
    algorithm, problem = RUNS[number]
    horizon = 10**5
    # No rows of padding: they would use numbers that decide nothing.
    config = configs.bind(
        algorithm, problem, horizon, padded_agents=problem.agents, fast_compile=True
    )

    @jax.jit
    def run(trial, bound, seed):
        grid = jnp.asarray(time_grid(horizon, 1))
        return compilation.run_trial(trial, bound, grid, jnp.uint32(0), seed)

    outcomes = [run(config.trial, config.bound, np.uint32(seed)) for seed in range(3)]
    assert sum(int(outcome.rounds) for outcome in outcomes) >= 6
    known = set()
    for level, at_once in enumerate(calls):
        new = [x for call in at_once for x in map(tuple, call.T.tolist()) if x not in known]
        assert len(set(new)) == len(new)
        # What is in doubt is drawn from numbers of its own; some sums, agent by agent.
        assert level == 0 or number == 3 or not new
        known |= set(new)
    # On a CPU, what is in doubt keeps its number; only sums agent by agent draw once more.
    assert len(known) > 50 and (len(calls) > 1) == (number == 3)
