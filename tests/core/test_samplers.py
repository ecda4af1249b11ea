"""The random laws against exact ones, mostly without a draw; and the discipline of their keys."""

import functools
import itertools
import json
from pathlib import Path

import fresh
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from draws import ALPHA, LATTICE, MILLION, induced_cdf, two_sided, words
from jax.sharding import AxisType, Mesh, PartitionSpec
from refusals import refused
from scipy import special, stats

import fmab_jax
from fmab_jax.core import arrays, binomials, keys, laplace, normal, rewards, samplers
from fmab_jax.core.curves import time_grid
from fmab_jax.core.problems import Problem
from fmab_jax.run import batches

pytestmark = pytest.mark.usefixtures("x64")
Cell = tuple[float, float]


# --- the binomial law, computed from the quantile function without a draw ---


@jax.jit
def quantile(u, trials, probability):
    return binomials.binomial_quantile(u, trials, probability)


@jax.jit
def quantile_by_rows(u, trials, probability):
    few = binomials.is_summed(trials, probability)
    summed = binomials.summed_binomials(u[None], jnp.where(few, trials, 0.0), probability)
    expanded = binomials.expanded_binomials(u[None], trials, probability)
    return jnp.where(few, summed, expanded)[0]


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
    cdf = induced_cdf(lambda u: np.asarray(sampler(u, n, p)) <= k, k.shape)
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
@pytest.mark.parametrize("quantile", [quantile, quantile_by_rows], ids=["one by one", "by rows"])
def test_induced_binomial_law(cells, quantile):
    """Catches any error of the law above 1e-6, such as JAX's 5.6e-4 just above n min(p, q) = 10.

    No draw is made, so nothing is random. Below the threshold the law is exact, so a wrong error
    bound of the expansion shows as well; above a deviation of 20 the law is compared in bins.
    """
    variance, distance, bias = discrepancy(quantile, cells).T
    assert distance[variance < samplers.SMOOTH_VARIANCE].max(initial=0) < 1e-12
    assert distance.max() < 1e-6
    assert np.abs(bias).max() < 1e-6


def test_induced_law_of_fair_coins():
    """Catches a wrong Sheppard correction of the kurtosis, which skewed laws cannot show."""
    found = discrepancy(quantile, [(n, 0.5) for n in (160.0, 164.0, 250.0, 1000.0)])
    assert found[:, 1].max() < 3e-8


def broken_kurtosis(original, z, n, p):
    """The expansion without its squared-kurtosis term."""
    pq = p * (1.0 - p)
    v = n * pq - 1.0 / 12.0
    g2 = (n * pq * (1.0 - 6.0 * pq) + 1.0 / 120.0) / (v * v)
    return original(z, n, p) + jnp.sqrt(v) * z * g2 * g2 * ((3 * z * z - 24) * z * z + 29) / 384


def broken_sheppard(original, z, n, p):
    """The expansion around the binomial's variance, without Sheppard's -1/12."""
    v = n * p * (1.0 - p)
    return n * p + (original(z, n, p) - n * p) * jnp.sqrt(v / (v - 1.0 / 12.0))


@pytest.mark.parametrize("broken", [broken_kurtosis, broken_sheppard])
def test_broken_expansions_are_seen(broken, monkeypatch):
    """Negative control: catches a comparison of laws that could not fail."""
    original = binomials._cornish_fisher
    monkeypatch.setattr(binomials, "_cornish_fisher", lambda *a: broken(original, *a))
    cells = [at_variance(n, samplers.SMOOTH_VARIANCE + 1) for n in (200.0, 1e4, 1e9)]
    found = discrepancy(jax.jit(lambda *a: binomials.binomial_quantile(*a)), cells)
    assert found[:, 1].max() > 3e-6


def test_trusting_the_expansion_too_early_is_seen(monkeypatch):
    """Negative control: catches an expansion that is believed unchecked from too low a variance."""
    monkeypatch.setattr(binomials, "SMOOTH_VARIANCE", 20.0)
    sampler = jax.jit(lambda *a: binomials.binomial_quantile(*a))
    found = discrepancy(sampler, [at_variance(1e6, 21.0)])
    assert found[0, 1] > 1e-6


def test_error_bound_of_the_expansion():
    """Catches a coefficient of the expansion, or an error bound that steps near it could escape.

    At the normal quantile of P(X <= j) the expansion should be at the step j + 1/2.
    """
    zs, ns, ps, steps = [], [], [], []
    shares = (1e-9, 1e-4, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    for variance in (4, 4.5, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 35, 39):
        for p in shares:
            for n in np.ceil(variance / (p * (1 - p))) + np.arange(3):
                mass = stats.binom.pmf(np.arange(min(n, n * p + 100) + 1), n, p)
                below, above = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:]
                z = np.where(
                    below < 0.5,
                    special.ndtri(np.minimum(below, 0.5)),
                    -special.ndtri(np.minimum(above, 0.5)),
                )
                j = np.flatnonzero(np.abs(z) < 7)
                zs.append(z[j])
                steps.append(j + 0.5)
                ns.append(np.full(len(j), n))
                ps.append(np.full(len(j), p))
    z, n, p, step = map(np.concatenate, (zs, ns, ps, steps))
    error = np.abs(np.asarray(jax.jit(lambda *a: binomials._cornish_fisher(*a))(z, n, p)) - step)
    bound = (0.02 + 0.003 * z**6) / (n * p * (1 - p)) ** 2
    assert len(z) > 10_000 and (error / bound).max() < 0.7
    # The bound is no more generous than it must be: it is nearly reached.
    assert (error / bound).max() > 0.4


def test_quantile_is_monotone_and_symmetric():
    """Catches a seam between the expansion and the sum where a larger u gives a smaller count.

    Uniforms 2^-44 and more apart; closer ones may differ by rounding. Also catches counting the
    wrong outcome where p > 1/2: X with p is n - X with 1 - p, at 1 - u.
    """
    rng = np.random.default_rng(1)
    n = np.repeat([20.0, 44.0, 165.0, 1e4, 1e6, 1e9], 6)[:, None]
    p = np.tile([0.5, 0.7, 0.9, 0.999, 1 - 4e-9, 1 - 5e-5], 6)[:, None]
    i = np.unique(
        np.concatenate([rng.integers(0, 2**44, 3000), np.arange(50), 2**44 - np.arange(1, 51)])
    )
    u = (i * 2**8 + 0.5) / LATTICE
    shape = (len(n), len(u))
    flat = [np.broadcast_to(x, shape).reshape(-1) for x in (u, n, p)]
    found = np.asarray(quantile(*flat)).reshape(shape)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, -1] > found[:, 0]).sum() >= 30
    mirrored = np.asarray(quantile(1 - flat[0], flat[1], 1 - flat[2])).reshape(shape)
    # At p = 1/2 exactly nothing is mirrored.
    rare = p[:, 0] > 0.5
    np.testing.assert_array_equal(found[rare], (n - mirrored)[rare])


# --- binomial draws ---

reward_sum = rewards.Bernoulli().total


@jax.jit
def million_sums(k0, k1, trials, mean):
    lane = jnp.arange(MILLION, dtype=jnp.uint32)
    wide = [jnp.broadcast_to(x, lane.shape) for x in (k0, k1, trials, mean)]
    return reward_sum(wide[0], wide[1], lane, wide[2], wide[3])


DRAWN_CELLS = [
    *[(1, 0.5), (10, 0.01), (50, 0.3), (25, 0.45), (1000, 0.999), (1000, 0.011), (1000, 1e-6)],
    *[(20, 0.5), (21, 0.5), (1e5, 0.37), (1e6, 0.9), (1e7, 0.5), (1e7, 1e-5)],
    *[(2e9, 0.123), (2e9, 4e-9), (1e12, 0.3)],
]


def test_sums_of_coins_are_quantiles_of_their_own_uniforms():
    """Catches lanes that share a uniform, or another law than that of the quantile."""
    lane = jnp.arange(MILLION, dtype=jnp.uint32)
    for number, (n, p) in enumerate(DRAWN_CELLS):
        u = keys.uniform(*words(number), lane)
        found = million_sums(*words(number), jnp.float64(n), jnp.float64(p))
        due = quantile(u, *(jnp.full(MILLION, x, jnp.float64) for x in (n, p)))
        # Rounding decides for a few uniforms that lie at a step.
        assert (np.asarray(found) != np.asarray(due)).mean() < 1e-4, (n, p)


def test_counts_are_exact_up_to_2_to_the_53():
    """Catches counts in float32, which stick at 2^24, and a sure outcome lost in rounding."""
    n = 2.0**53 - np.array([0, 1, 2, 3, 12345])
    u = np.full(5, 0.3)
    np.testing.assert_array_equal(quantile(u, n, np.ones(5)), n)
    np.testing.assert_array_equal(quantile(u, n, np.zeros(5)), 0)
    too_many = np.array([2.0**53 + 2, 2.0**60, np.inf, np.nan, -1.0])
    assert np.isnan(quantile(u, too_many, np.full(5, 0.5))).all()
    u = (np.arange(4096) + 0.5) / 4096
    odd = np.asarray(quantile(u, np.full(4096, 1e12), np.full(4096, 0.3)))
    assert odd.dtype == np.float64 and 0.4 < np.mean(odd % 2) < 0.6


def test_no_narrow_numbers_in_the_compiled_run():
    """Catches float32 on a path of counts, noise or regret, where they would stick in silence."""

    def dtypes(jaxpr):
        for equation in jaxpr.eqns:
            yield from (v.aval.dtype for v in equation.outvars if hasattr(v.aval, "dtype"))
            for inner in jax.tree.leaves(
                list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
            ):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from dtypes(inner)

    grid = jnp.asarray(time_grid(10**6, 5))
    found = set()
    for algorithm, problem in RUNS:
        config = batches.bound(algorithm, problem, 10**6)

        def run(trial, bound, seed):
            return batches.one_trial(trial, bound, grid, jnp.uint32(0), seed)

        jaxpr = jax.make_jaxpr(run)(config.trial, config.bound, np.uint32(1))
        found |= {str(dtype) for dtype in dtypes(jaxpr.jaxpr)}
    assert {"float64", "int64", "uint64"} <= found
    assert not [
        dtype for dtype in found if dtype in ("float32", "float16", "bfloat16", "int16", "int8")
    ]


def in_process(function, **environment):
    """Returns what a function of this module prints in a new process, stopped if it hangs."""
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    call = f"{here}; import test_samplers; test_samplers.{function}()"
    return fresh.script(call, timeout=300, **environment)


# Not so large that a mistake would never end.
MANY = 2.0**33


def pair_of_binomials():
    """Prints binomial quantiles of few trials, and of many beside them."""
    with jax.enable_x64(True):
        trials, u, p = jnp.array([[2.0], [MANY]]), jnp.full((2, 1), 0.3), jnp.full((2, 1), 1e-3)
        print(json.dumps(jax.vmap(binomials.binomial_quantile)(u, trials, p).ravel().tolist()))


def pair_of_sums():
    """Prints sums of few Bernoulli rewards, and of many beside them."""
    with jax.enable_x64(True):
        pulls, means = jnp.array([[2.0], [MANY]]), jnp.full((2, 1), 0.5)
        draw = jax.vmap(lambda n, mean: reward_sum(*words(2, 4), LANE, n, mean))
        print(json.dumps(draw(pulls, means).ravel().tolist()))


LANE = jnp.arange(1, dtype=jnp.uint32)


@pytest.mark.parametrize("function", ["pair_of_binomials", "pair_of_sums"])
def test_few_trials_do_not_make_many_beside_them_slow(function):
    """Catches a search, for all lanes of a `vmap`, through as many values as the largest lane
    has: these two took minutes."""
    few, many = json.loads(in_process(function))
    mean = MANY * (1e-3 if function == "pair_of_binomials" else 0.5)
    assert few in (0.0, 1.0, 2.0) and abs(many / mean - 1) < 0.01


# --- uniforms ---


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


def test_uniforms_are_symmetric_about_one_half(monkeypatch):
    """Catches 0 or 1 among the uniforms (infinite noise) or a lattice that is off centre."""
    ends = jnp.array([0, 0, 2**32 - 1], jnp.uint32), jnp.array([0, 2**12, 2**32 - 1], jnp.uint32)
    monkeypatch.setattr(keys, "_threefry", lambda *_: ends)
    zero = jnp.uint32(0)
    u = np.asarray(keys.uniform(zero, zero, jnp.zeros(3, jnp.uint32)))
    np.testing.assert_array_equal(u, [2.0**-53, 3 * 2.0**-53, 1 - 2.0**-53])


@pytest.mark.parametrize("draw", [0, 1])
def test_coarse_uniforms_are_the_words_of_one_call(draw, monkeypatch):
    """Catches uniforms that are 0 or 1, off centre, or the same word twice."""
    lane = jnp.arange(5, dtype=jnp.uint32)
    high, low = (np.asarray(x) for x in keys._threefry(*words(), jnp.uint32(draw), lane))
    found = keys.coarse_uniforms(*words(), lane, draw)
    np.testing.assert_array_equal(found[0], (high + 0.5) / 2**32)
    np.testing.assert_array_equal(found[1], (low + 0.5) / 2**32)
    ends = jnp.array([0, 2**32 - 1], jnp.uint32)
    monkeypatch.setattr(keys, "_threefry", lambda *_: (ends, ends))
    for u in keys.coarse_uniforms(*words(), lane, draw):
        np.testing.assert_array_equal(u, [2.0**-33, 1 - 2.0**-33])


def test_keys_are_folded_as_jax_does():
    """Catches a key that is not the documented ``fold_in`` of root seed, seed, round and stream:
    that would change every published number."""
    key = keys.seed_key(jnp.uint32(3), jnp.uint32(2**32 - 1))
    due = jax.random.key(3, impl="threefry2x32")
    for number in (2**32 - 1, 7, keys.NOISE):
        due = jax.random.fold_in(due, number)
    np.testing.assert_array_equal(keys.stream_key(key, 7, keys.NOISE), jax.random.key_data(due))
    alone = jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, 0), keys.ALONE), 5)
    mine = keys.agent_key(key, jnp.int32(5))
    np.testing.assert_array_equal(jax.random.key_data(mine), jax.random.key_data(alone))


# --- the normal quantile and the logarithm ---


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
    due = special.ndtri(np.sort(u))
    # Near 1/2 the quantile is 2.5 (u - 1/2): the library rounds u there.
    assert (np.abs(z - due) <= 4e-15 * np.maximum(np.abs(due), 1e-2)).all()
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


# --- Laplace noise ---


@jax.jit
def million_laplace(k0, k1):
    lane = jnp.arange(MILLION, dtype=jnp.uint32)[None, :]
    return arrays.masked_map(laplace.laplace, jnp.ones(lane.shape, bool), k0, k1, lane)[0]


def test_laplace_is_the_exact_inverse():
    """Catches a wrong scale, sign or tail: the distribution function must give the uniform back."""
    x = np.asarray(million_laplace(*words(1)))
    u = np.asarray(keys.uniform(*words(1), jnp.arange(MILLION, dtype=jnp.uint32)))
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


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 20, 50, 1000, 5000, 5001])
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
    if terms <= 5:
        # Negative control: the normal law of the same variance is seen.
        plain = laplace_sum_cdf(-np.abs(z) * np.sqrt(2.0 * terms), terms)
        assert np.abs(plain - special.ndtr(-np.abs(z))).max() > 1e-3


def test_listed_sums_of_laplace_variables_are_what_is_solved_for():
    """Catches a list with a wrong or missing row, and one that is longer than what it is of."""
    assert len(np.load(laplace.SHAPES)) == 256
    z = jnp.linspace(0.1, 8.2, 100)
    for terms in range(1, 258):
        listed, solved = laplace.laplace_sum_shape(terms), laplace.solved_shape(terms)
        x, y = (laplace.laplace_sum(z, jnp.asarray(each)[:, None]) for each in (listed, solved))
        np.testing.assert_allclose(x, y, rtol=1e-11)


def test_no_variables_add_up_to_nothing():
    """Catches noise on a row that only fills an array."""
    assert not np.asarray(
        laplace.laplace_sum(jnp.ones(3), jnp.asarray(laplace.laplace_sum_shape(0))[:, None])
    ).any()


@jax.jit
def million_laplace_sums(k0, k1, shape):
    lane = jnp.arange(MILLION, dtype=jnp.uint32)
    return laplace.laplace_sum(normal.quantile(keys.uniform(k0, k1, lane)), shape)


@jax.jit
def few_summed(u, count):
    """Returns the sums of few variables at given uniforms, each of the same for every draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "uniform", lambda *_: u)
        none = jnp.zeros(u.shape, jnp.uint32)
        return laplace.few_summed(none, none, none, count)


@pytest.mark.parametrize("terms", range(1, laplace._LISTED + 1))
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
    """Catches variables past the last listed one left out, doubled, or given to other sums; and
    parts of one sum that share their uniform."""
    most = laplace._LISTED
    count = jnp.asarray([0, 1, most, most + 1, 2 * most, 2 * most + 3], jnp.int32)
    u = jnp.full(len(count), 0.2)
    one, few, all_ = (
        float(few_summed(u[:1], jnp.asarray([n], jnp.int32))[0]) for n in (1, 3, most)
    )
    due = [0.0, one, all_, all_ + one, 2 * all_, 2 * all_ + few]
    np.testing.assert_allclose(few_summed(u, count), due, rtol=1e-15)
    lane = jnp.arange(10**5, dtype=jnp.uint32)
    key = [jnp.full(len(lane), word, jnp.uint32) for word in words(5, 3)]
    twice = jnp.full(len(lane), 2 * most, jnp.int32)
    x = np.asarray(jax.jit(laplace.few_summed)(*key, lane, twice))
    c2, c4 = 2.0 * 2 * most, 12.0 * 2 * most
    spread = np.sqrt((c4 + 2 * c2**2) / len(x))
    assert two_sided((np.mean(x**2) - c2) / spread) > ALPHA


@pytest.mark.parametrize("terms", [1, 2, 50])
def test_sums_of_laplace_draws(terms):
    """Catches uniforms, a normal quantile and a polynomial that do not fit each other."""
    shape = laplace.laplace_sum_shape(terms)[:, None]
    x = np.asarray(million_laplace_sums(*words(terms, 3), shape))
    deviation = np.sqrt(2.0 * terms)
    edges = deviation * np.linspace(-3.3, 3.3, 200)
    expected = len(x) * np.diff(np.r_[0.0, laplace_sum_cdf(edges, terms), 1.0])
    seen = np.bincount(np.searchsorted(edges, x), minlength=201)
    assert expected.min() > 25
    assert stats.chisquare(seen, expected).pvalue > ALPHA
    # Moments from the cumulants 2 M (2k - 1)!, orders 2, 4, 6, 8.
    c2, c4, c6, c8 = (2.0 * terms * f for f in (1, 6, 120, 5040))
    fourth = c4 + 3 * c2**2
    eighth = c8 + 28 * c6 * c2 + 35 * c4**2 + 210 * c4 * c2**2 + 105 * c2**4
    assert two_sided((np.mean(x**2) - c2) / np.sqrt((fourth - c2**2) / len(x))) > ALPHA
    assert two_sided((np.mean(x**4) - fourth) / np.sqrt((eighth - fourth**2) / len(x))) > ALPHA


def test_law_of_laplace_sums_by_another_route():
    """Catches an error in the oracle above: one and two terms have short formulas."""
    x = np.linspace(-9, 9, 37)
    np.testing.assert_allclose(laplace_sum_cdf(x, 1), stats.laplace.cdf(x), rtol=1e-13)
    two = np.exp(-np.abs(x)) * (2 + np.abs(x)) / 4
    np.testing.assert_allclose(laplace_sum_cdf(x, 2), np.where(x < 0, two, 1 - two), rtol=1e-13)


# --- participation ---


@jax.jit
def subsets(seeds, round_):
    def one(seed):
        key = keys.stream_key(keys.seed_key(jnp.uint32(0), seed), round_, keys.PARTICIPATION)
        return jnp.sum(
            jnp.where(
                samplers.participants(key, jnp.ones(10, bool), jnp.int32(4)), 2 ** jnp.arange(10), 0
            )
        )

    return jax.vmap(one)(seeds)


def test_participants_are_uniform_subsets():
    """Catches draws with replacement, a favoured agent or pair: 210 subsets are equally likely."""
    codes = np.asarray(subsets(jnp.arange(MILLION, dtype=jnp.uint32), jnp.int32(1)))
    possible = [sum(2**i for i in chosen) for chosen in itertools.combinations(range(10), 4)]
    assert set(np.unique(codes)) == set(possible)
    assert stats.chisquare(np.bincount(codes, minlength=1024)[sorted(possible)]).pvalue > ALPHA
    member = (codes[:, None] >> np.arange(10)) & 1
    alone = [two_sided((m.sum() - 4e5) / np.sqrt(2.4e5)) for m in member.T]
    share = 4 * 3 / (10 * 9)
    pairs_of = itertools.combinations(range(10), 2)
    together = [(member[:, i] & member[:, j]).sum() for i, j in pairs_of]
    spread = np.sqrt(MILLION * share * (1 - share))
    pairs = [two_sided((seen - MILLION * share) / spread) for seen in together]
    assert min(alone) * 10 > ALPHA and min(pairs) * 45 > ALPHA


@pytest.mark.parametrize("agents", [1, 7, 50])
def test_counting_and_sorting_choose_the_same_agents(agents, monkeypatch):
    """Catches an order that the number of agents changes, ties included."""
    real = jnp.arange(64) < agents
    number = jnp.int32((agents + 1) // 2)

    def heard(limit):
        monkeypatch.setattr(samplers, "_COUNTED", limit)
        keys_of = [words(seed, 1, keys.PARTICIPATION) for seed in range(20)]
        return [np.asarray(samplers.participants(key, real, number)) for key in keys_of]

    np.testing.assert_array_equal(heard(64), heard(63))
    monkeypatch.setattr(samplers, "uniform", lambda *_: jnp.full(64, 0.5))
    np.testing.assert_array_equal(heard(64), heard(63))


def test_participants_are_drawn_anew_each_round():
    """Catches one draw that is kept for all rounds, or subsets that follow each other."""
    seeds = jnp.arange(200_000, dtype=jnp.uint32)
    first, second = (np.asarray(subsets(seeds, jnp.int32(r))) for r in (1, 2))
    again = int((first == second).sum())
    assert stats.binomtest(again, len(first), 1 / 210).pvalue > ALPHA


@pytest.mark.parametrize("agents", [1, 2, 50])
def test_number_of_participants(agents):
    """Catches one participant too many or too few, at either end."""
    number = jnp.arange(1, agents + 1, dtype=jnp.int32)
    # Rows that only fill the array are never drawn.
    real = jnp.arange(64) < agents
    sample = jax.vmap(
        lambda k0, k1, n: samplers.participants(keys.Words(k0, k1), real, n), (None, None, 0)
    )
    for seed in range(5):
        heard = sample(*words(seed, 1, keys.PARTICIPATION), number)
        np.testing.assert_array_equal(np.asarray(heard).sum(axis=1), number)
        assert not np.asarray(heard)[:, agents:].any()


# --- the same number per key, whatever the batch ---


def summed(k0, k1, lane, shape):
    """Samples a sum of Laplace variables; its polynomial is a table."""
    return laplace.laplace_sum(normal.quantile(keys.uniform(k0, k1, lane)), shape.looked_up())


def one_seed(root, seed):
    """Draws every law for one seed, as the loop does: sparsely, in all regimes of the variance."""
    key = keys.seed_key(root, seed)
    arm = jnp.arange(24, dtype=jnp.uint32)
    lane = keys.lanes(3, arm, 24)
    reward, noise = (keys.stream_key(key, 3, s) for s in (keys.REWARD, keys.NOISE))
    need = keys.uniform(*keys.stream_key(key, 2, keys.REWARD), lane) < 0.6
    mean = keys.uniform(*keys.stream_key(key, 0, keys.INSTANCE), arm)
    pulls = jnp.asarray(np.resize([7.0, 60.0, 120.0, 3000.0, 1e9], 24))
    shapes = jnp.asarray([laplace.laplace_sum_shape(n) for n in np.resize([1, 2, 50], 24)]).T
    return {
        "need": need,
        "pulls": pulls[None, :] * jnp.ones((3, 1)),
        "rewards": arrays.masked_map(
            reward_sum, need, *reward, lane, pulls[None, :], mean[None, :]
        ),
        "noise": arrays.masked_map(laplace.laplace, need, *noise, lane),
        "noise_sum": arrays.masked_map(summed, need, *noise, lane, shapes[:, None, :]),
        "heard": samplers.participants(
            keys.stream_key(key, 3, keys.PARTICIPATION), jnp.ones(9, bool), jnp.int32(4)
        ),
    }


batch = jax.vmap(one_seed, (None, 0))
SEEDS = np.arange(2**32 - 250, 2**32).astype(np.uint32)


def hexed(tree):
    """Returns the bytes of every array."""
    return {name: np.asarray(value).tobytes().hex() for name, value in tree.items()}


@pytest.fixture(scope="module")
def singles():
    """Every seed drawn by itself."""
    with jax.enable_x64(True):
        single = jax.jit(one_seed)
        rows = [single(np.uint32(5), seed) for seed in SEEDS]
        return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("size", quick.only([1, 7, 64, 250], 250))
def test_draws_do_not_depend_on_the_batch(size, singles):
    """Catches a number that changes with the batch, as element i of JAX's binomial does."""
    found = jax.jit(batch)(np.uint32(5), SEEDS[-size:])
    for name, value in singles.items():
        np.testing.assert_array_equal(found[name], value[-size:], err_msg=name)


def test_draws_are_sparse(singles):
    """Catches a sample written to a lane that needs none, or a needed lane left at 0."""
    need = singles["need"]
    assert 0.55 < need.mean() < 0.65
    for name in ("rewards", "noise", "noise_sum"):
        assert (singles[name][~need] == 0).all()
    for name in ("noise", "noise_sum"):
        assert (singles[name][need] != 0).all()
        assert len(np.unique(singles[name][need])) == need.sum()
    many = need & (singles["pulls"] == 1e9)
    assert (singles["rewards"][many] > 0).all()


def sharded(devices, seeds):
    """Draws the seeds over a mesh, with JAX's checks of what varies over devices."""
    mesh = Mesh(np.array(devices), ("device",), axis_types=(AxisType.Auto,))
    over, everywhere = PartitionSpec("device"), PartitionSpec()
    compiled = jax.jit(jax.shard_map(batch, mesh=mesh, in_specs=(everywhere, over), out_specs=over))
    return compiled(np.uint32(5), seeds)


def sharded_values():
    """Prints the draws made by 4 virtual devices in reverse order."""
    with jax.enable_x64(True):
        assert len(jax.devices()) == 4
        print(json.dumps(hexed(sharded(jax.devices()[::-1], SEEDS[:8]))))


@pytest.mark.slow
def test_draws_under_shard_map(singles):
    """Catches the TypeError of JAX's binomial inside shard_map, or draws that know their device."""
    due = hexed({name: value[:8] for name, value in singles.items()})
    assert hexed(sharded(jax.devices()[:1], SEEDS[:8])) == due
    flag = "--xla_force_host_platform_device_count=4"
    found = in_process("sharded_values", XLA_FLAGS=flag, JAX_PLATFORMS="cpu")
    assert json.loads(found) == due


def test_needed_elements_do_not_depend_on_the_mask():
    """Catches a sample that lands on a neighbour's lane, for masks empty, full and in between."""
    lane = jnp.arange(1000, dtype=jnp.uint32)

    @jax.jit
    def sample(need):
        shape = jnp.asarray(laplace.laplace_sum_shape(1))[:, None]
        noise = arrays.masked_map(summed, need, *words(1, 4), lane, shape)
        mean = jnp.full(1000, 0.3)
        sums = arrays.masked_map(reward_sum, need, *words(2, 4), lane, jnp.float64(50.0), mean)
        return jnp.stack([noise, sums])

    full = np.asarray(sample(jnp.ones(1000, bool)))
    assert len(np.unique(full[0])) == 1000
    rng = np.random.default_rng(0)
    masks = [rng.random(1000) < share for share in (0.0, 0.001, 0.1, 0.256, 0.5, 0.9)]
    ends = [np.isin(np.arange(1000), [last]) for last in (0, 999)]
    for mask in (*masks, *ends, np.arange(1000) < 257):
        np.testing.assert_array_equal(sample(jnp.asarray(mask)), np.where(mask, full, 0.0))


def test_each_sampler_gets_its_own_elements_and_rows_come_back_first():
    """Catches an element that another sampler draws, or a row that lands elsewhere."""
    rng = np.random.default_rng(4)
    x, kind = rng.random((9, 70)), rng.integers(3, size=(9, 70))
    kind[3], kind[4], kind[5] = 0, 1, 2

    def sampler(factor):
        return lambda x, seed: ((factor * x + seed)[None] + jnp.arange(3.0)[:, None],)

    def one(kind, x, seed):
        ways = [sampler(10.0), sampler(100.0)]
        return arrays.masked_map(ways, kind, x, seed, outputs=1, rows=3, parts=64)[0]

    seed = 1000.0 * np.arange(9)
    found = jax.jit(jax.vmap(one))(kind, x, seed)
    row = seed[:, None, None] + np.arange(3.0)[:, None]
    due = np.where(kind == 1, 10 * x, 100 * x)[:, None] + row
    np.testing.assert_allclose(found, np.where(kind[:, None] > 0, due, 0.0), rtol=1e-15)


@pytest.mark.parametrize("size", [1, 5, 8, 50])
def test_zeros_at_the_end_change_no_sum(size):
    """Catches an order of summation that the length of the array decides."""
    values = np.random.default_rng(size).normal(size=(size, 30))
    due = np.asarray(arrays.padded_sum(jnp.asarray(values)))
    np.testing.assert_allclose(due, values.sum(axis=0), rtol=0, atol=1e-13)
    for longer in (size + 1, 13, 64, 100):
        wide = np.zeros((max(size, longer), 30))
        wide[:size] = values
        np.testing.assert_array_equal(arrays.padded_sum(jnp.asarray(wide)), due)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_zeros_anywhere_change_no_sum_in_turn(size):
    """Catches a row left out or added twice, and an order that the length of the array decides."""
    rng = np.random.default_rng(size)
    values, wide = rng.normal(size=(size, 3)), np.zeros((2 * size, 3))
    wide[np.sort(rng.permutation(2 * size)[:size])] = values
    due = functools.reduce(np.add, values)
    np.testing.assert_array_equal(arrays.sum_in_turn(jnp.asarray(values)), due)
    np.testing.assert_array_equal(arrays.sum_in_turn(jnp.asarray(wide)), due)


def test_tables_are_gathered_where_they_lie():
    """Catches a column of another lane or seed, with tables batched, shared and broadcast."""
    rng = np.random.default_rng(0)
    x, need = rng.random((6, 3, 7)), rng.random((6, 3, 7)) < 0.4
    own, shared, member = rng.random((6, 5, 1, 7)), rng.random((5, 3, 7)), rng.random((6, 4, 3, 1))

    def sample(x, *tables):
        own, shared, member = (table.looked_up() for table in tables)
        return x + 10 * own[1] + 100 * shared[2] + 1000 * member[3]

    def one(need, x, own, member):
        return arrays.masked_map(sample, need, x, own, jnp.asarray(shared), member, parts=64)

    due = x + 10 * own[:, 1] + 100 * shared[2] + 1000 * member[:, 3]
    found = jax.jit(jax.vmap(one))(need, x, own, member)
    np.testing.assert_allclose(found, np.where(need, due, 0), rtol=1e-15)
    # Lanes of lanes, and places of one's own on the last axis.
    place = rng.integers(7, size=(6, 3, 7), dtype=np.uint32)

    def nested(need, x, place, table):
        def chosen(place, table):
            return table.looked_up(place)[1]

        def first(x, place, table):
            return arrays.fill(chosen, x < 0.5, x, place, table, parts=64)

        return arrays.masked_map(first, need, x, place, table, parts=64)

    found = jax.jit(jax.vmap(nested))(need, x, place, own)
    due_there = np.where(x < 0.5, np.take_along_axis(own[:, 1], place.astype(int), 2), x)
    np.testing.assert_array_equal(found, np.where(need, due_there, 0))
    # A second batch axis that only some operands have.
    more = rng.random((2, 6, 3, 7))
    twice = jax.vmap(jax.vmap(one), (None, 0, None, None))
    due = more + (due - x)
    expected = np.where(need, due, 0)
    np.testing.assert_allclose(jax.jit(twice)(need, more, own, member), expected, rtol=1e-15)


# --- independence and keys ---


def test_streams_are_uncorrelated():
    """Catches streams, lanes, draws, rounds, agents or seeds that share or shift their numbers."""

    arm = jnp.arange(4, dtype=jnp.uint32)
    # Round, stream and draw of every kind of variable.
    kinds = [(r, s, 0) for r in (1, 2) for s in (keys.REWARD, keys.NOISE, keys.PARTICIPATION)]
    kinds += [(0, keys.INSTANCE, 0), (1, keys.REWARD, 1), (1, keys.REWARD, 2)]
    kinds += [(0, keys.LASTING, 0), (0, keys.NOISE, 0)]
    rounds, streams, numbers = (jnp.asarray(x, jnp.uint32) for x in zip(*kinds, strict=True))

    def lanes(key, round_, stream, draw):
        return keys.uniform(*keys.stream_key(key, round_, stream), arm, draw)

    def family(root, seed):
        key = keys.seed_key(root, seed)
        own = [keys.agent_key(key, jnp.int32(agent)) for agent in (0, 1)]
        by_agent = [keys.uniform(*keys.stream_key(k, 1, keys.REWARD), arm) for k in own]
        shared = jax.vmap(lanes, (None, 0, 0, 0))(key, rounds, streams, numbers)
        return jnp.concatenate([shared.ravel(), *by_agent])

    def one(seed):
        roots, seeds = jnp.array([0, 0, 1], jnp.uint32), jnp.stack([seed, seed + 1, seed])
        return jax.vmap(family)(roots, seeds).ravel()

    # Every other seed, so that seed + 1 is nobody else's.
    seeds = 2 * np.arange(100_000, dtype=np.uint32)
    # Rewards and noise in ranks: a correlation of uniforms bounds what monotone laws can show.
    values = np.asarray(jax.jit(jax.vmap(one))(seeds))
    variables = values.shape[1]
    assert variables == 3 * 13 * 4
    for shape in (values, np.abs(values - 0.5)):
        correlation = np.corrcoef(shape.T)[np.triu_indices(variables, 1)]
        worst = np.abs(correlation).max()
        assert two_sided(worst * np.sqrt(len(values))) * len(correlation) > ALPHA


def test_keys_are_unique():
    """Catches a fold that forgets the seed, round, stream or agent, or two paths to one key."""

    @jax.jit
    @jax.vmap
    def all_words(seed):
        key = keys.seed_key(jnp.uint32(0), seed)
        rounds, streams, agents = jnp.arange(31), jnp.arange(6), jnp.arange(20)
        both = jax.vmap(jax.vmap(keys.stream_key, (None, None, 0)), (None, 0, None))
        own = jax.vmap(keys.agent_key, (None, 0))(key, agents)
        mine = jax.vmap(both, (0, None, None))(own, rounds, streams[:2])
        return [both(key, rounds, streams), mine, keys.Words(*jax.random.key_data(key))]

    parts = all_words(jnp.arange(300, dtype=jnp.uint32))
    merged = [
        np.asarray(k0).ravel().astype(np.uint64) << np.uint64(32) | np.asarray(k1).ravel()
        for k0, k1 in parts
    ]
    everything = np.concatenate(merged)
    assert len(everything) == 300 * (31 * 6 + 20 * 31 * 2 + 1)
    assert len(np.unique(everything)) == len(everything)


RUNS = [
    (fmab_jax.cdp_mab(3.0, participation=0.6), Problem.heterogeneous(4, 6)),
    (fmab_jax.cdp_mab(3.0), Problem.with_gap(20, 6, 0.1)),
    (fmab_jax.ddp_mab(3.0, "ring"), Problem.heterogeneous(5, 6, spread=0.5, instance_gap=0.05)),
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_uses_no_random_number_twice(number, monkeypatch):
    """Catches a key or lane shared by two variables of a run: every cipher input is recorded.

    A whole run is compiled with a tap on the cipher; no (key, draw, lane) may show up in two calls.
    """
    calls = []
    cipher = keys._threefry

    def tapped(*inputs):
        jax.debug.callback(
            lambda *x: calls.append(np.stack(np.broadcast_arrays(*x)).reshape(4, -1)), *inputs
        )
        return cipher(*inputs)

    def folded(key, data):
        whole = jax.random.wrap_key_data(jnp.stack(key), impl="threefry2x32")
        return keys.words_of(jax.random.fold_in(whole, data))

    # Keys are made as often as one likes; what is drawn with them is told apart.
    monkeypatch.setattr(keys, "folded", folded)
    monkeypatch.setattr(keys, "_threefry", tapped)
    algorithm, problem = RUNS[number]
    horizon = 10**5
    # No rows of padding: they would use numbers that decide nothing.
    config = batches.bound(algorithm, problem, horizon, room=problem.agents, quick=True)

    @jax.jit
    def run(trial, bound, seed):
        grid = jnp.asarray(time_grid(horizon, 1))
        return batches.one_trial(trial, bound, grid, jnp.uint32(0), seed)

    outcomes = [run(config.trial, config.bound, np.uint32(seed)) for seed in range(3)]
    jax.effects_barrier()
    # The lanes of one call are told apart; chunks repeat their last lane as padding.
    per_call = [np.unique(call, axis=1) for call in calls]
    used = np.concatenate(per_call, axis=1)
    assert sum(int(outcome.rounds) for outcome in outcomes) >= 6
    assert used.shape[1] > 100
    assert np.unique(used, axis=1).shape[1] == used.shape[1]


ACCEPTED = (0, 1, 7, 2**31, 2**32 - 1, np.int64(12), np.uint32(2**32 - 2))
REFUSED = (-1, 2**32, 2**32 + 1, 2**63, 1.5, 1.0, True, "1", None, np.int64(2**32 + 1), np.bool_(0))


def test_accepted_seeds_have_distinct_streams():
    """Catches seeds that collide, such as 2^32 + 1 with 1, as root seeds or as seeds."""
    seeds = [keys.checked_seed("seed", value) for value in ACCEPTED]
    assert seeds == list(map(int, ACCEPTED)) and {type(seed) for seed in seeds} == {int}
    streams = [
        tuple(jax.random.key_data(keys.seed_key(jnp.uint32(root), jnp.uint32(seed))).tolist())
        for root in seeds
        for seed in seeds
    ]
    assert len(set(streams)) == len(ACCEPTED) ** 2


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_refused_seeds(value):
    """Catches a seed that is rounded, wrapped or read from text in silence."""
    remedy = "larger seeds would repeat the streams of smaller ones"
    if isinstance(value, float):
        remedy = "pass an int, not a float"
    line = f"root_seed={value!r}: must be a whole number in [0, 4,294,967,295]; {remedy}"
    assert refused(keys.checked_seed, "root_seed", value) == line


@pytest.mark.slow
def test_rows_of_one_distribution_are_the_quantiles_one_by_one():
    """Catches rows that share another row's distribution, and a coefficient of the expansion."""
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(90), [0.0, 1.0, 0.5, 1e-3, 0.999, 1 - 1e-9]])
    # Where rounding decides, the two may differ: not among ordinary uniforms.
    u = rng.random((40, len(p)))
    u, p = jnp.asarray(u), jnp.asarray(p)
    for n in (0.0, 1.0, 13.0, 40.0, 160.0, 640.0, 1e6):
        trials = jnp.full(len(p), n)
        wide = [jnp.broadcast_to(x[None], u.shape).reshape(-1) for x in (trials, p)]
        due = np.asarray(quantile(u.reshape(-1), *wide)).reshape(u.shape)
        few = binomials.is_summed(trials, p)
        summed = binomials.summed_binomials(u, jnp.where(few, trials, 0.0), p)
        found = jnp.where(few[None], summed, binomials.expanded_binomials(u, trials, p))
        np.testing.assert_array_equal(found, due, err_msg=str(n))


def laplace_p_values(x, tail):
    """Returns p-values of the distance, the scale, the sign and the tail of Laplace(1) draws."""
    far = int((np.abs(x) > tail).sum())
    return [
        float(stats.kstest(x, stats.laplace.cdf).pvalue),
        two_sided((np.abs(x).mean() - 1) * np.sqrt(len(x))),
        float(stats.binomtest(int((x > 0).sum()), len(x), 0.5).pvalue),
        float(stats.binomtest(far, len(x), np.exp(-tail)).pvalue),
    ]


def test_laplace_draws():
    """Catches noise 0.5 % too large or small, or a tail cut short as float32's is."""
    x = np.asarray(million_laplace(*words(2)))
    assert min(laplace_p_values(x, 10.0)) > ALPHA
    # Negative control: 2 % too much noise is seen.
    assert min(laplace_p_values(1.02 * x, 10.0)) < ALPHA


@pytest.mark.slow
def test_laplace_tail_to_sixteen_scales():
    """Catches a tail that ends at 16 scales."""
    far = sum(int((np.abs(million_laplace(*words(i, 2))) > 16).sum()) for i in range(100))
    assert stats.binomtest(far, 100 * MILLION, np.exp(-16.0)).pvalue > ALPHA
