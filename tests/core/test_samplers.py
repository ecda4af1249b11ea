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
from draws import ALPHA, LATTICE, MILLION, at_uniform, induced_cdf, jit_for, two_sided, words
from jax.sharding import AxisType, Mesh, PartitionSpec
from scipy import special, stats

import fmab_jax
from fmab_jax.core import (
    arrays,
    backend,
    binomials,
    keys,
    laplace,
    normal,
    rare,
    rewards,
    samplers,
)
from fmab_jax.core.curves import time_grid
from fmab_jax.core.problems import Problem
from fmab_jax.run import compilation, configs

pytestmark = pytest.mark.usefixtures("x64")
Cell = tuple[float, float]


# --- the binomial law, computed from the quantile function without a draw ---


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
    """Catches any error of the law above 1e-6, such as JAX's 5.6e-4 just above n min(p, q) = 10.

    No draw is made, so nothing is random. Below the threshold the law is exact, so a wrong error
    bound of the expansion shows as well; above a deviation of 20 the law is compared in bins.
    """
    variance, distance, bias = discrepancy(WAYS[way], cells).T
    assert distance[variance < samplers.SMOOTH_VARIANCE].max(initial=0) < 1e-12
    assert distance.max() < 1e-6
    assert np.abs(bias).max() < 1e-6


def test_induced_law_of_fair_coins():
    """Catches a wrong Sheppard correction of the kurtosis, which skewed laws cannot show."""
    found = discrepancy(quantile, [(n, 0.5) for n in (160.0, 164.0, 250.0, 1000.0)])
    assert found[:, 1].max() < 3e-8


def broken_kurtosis(original, n, p):
    """The expansion without its squared-kurtosis term."""
    pq = p * (1.0 - p)
    v = n * pq - 1.0 / 12.0
    g2 = (n * pq * (1.0 - 6.0 * pq) + 1.0 / 120.0) / (v * v)
    lost = jnp.sqrt(v) * g2 * g2 / 384
    shares = (3.0, 0.0, -24.0, 0.0, 29.0, 0.0)
    return tuple(x + share * lost for x, share in zip(original(n, p), shares, strict=True))


def broken_sheppard(original, n, p):
    """The expansion around the binomial's variance, without Sheppard's -1/12."""
    v, middle = n * p * (1.0 - p), n * p - 0.5
    wider = jnp.sqrt(v / (v - 1.0 / 12.0))
    *powers, constant = original(n, p)
    return (*(x * wider for x in powers), middle + (constant - middle) * wider)


@pytest.mark.parametrize("broken", [broken_kurtosis, broken_sheppard])
def test_broken_expansions_are_seen(broken, monkeypatch):
    """Negative control: catches a comparison of laws that could not fail."""
    original = binomials._powers
    monkeypatch.setattr(binomials, "_powers", lambda *law: broken(original, *law))
    cells = [at_variance(n, samplers.SMOOTH_VARIANCE + 1) for n in (200.0, 1e4, 1e9)]
    assert discrepancy(at_uniform(one_by_one), cells)[:, 1].max() > 3e-6


def test_trusting_the_expansion_too_early_is_seen(monkeypatch):
    """Negative control: catches an expansion that is believed unchecked from too low a variance."""
    monkeypatch.setattr(binomials, "SMOOTH_VARIANCE", 20.0)
    assert discrepancy(at_uniform(one_by_one), [at_variance(1e6, 21.0)])[0, 1] > 1e-6


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
    edge = jax.jit(lambda z, *law: normal.horner(z, binomials._powers(*law)))(z, n, p)
    error = np.abs(np.asarray(edge) + 0.5 - step)
    bound = (0.02 + 0.003 * z**6) / (n * p * (1 - p)) ** 2
    assert len(z) > 10_000 and (error / bound).max() < 0.7
    # The bound is no more generous than it must be: it is nearly reached.
    assert (error / bound).max() > 0.4


@pytest.mark.parametrize("way", ["one_by_one, cpu", "by_rows, cpu"])
def test_quantile_is_monotone_and_symmetric(way):
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
    found = np.asarray(WAYS[way](*flat)).reshape(shape)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, -1] > found[:, 0]).sum() >= 30
    mirrored = np.asarray(WAYS[way](1 - flat[0], flat[1], 1 - flat[2])).reshape(shape)
    # At p = 1/2 exactly nothing is mirrored.
    likely = p[:, 0] > 0.5
    np.testing.assert_array_equal(found[likely], (n - mirrored)[likely])


# --- binomial draws ---

reward_sum = rewards.Bernoulli().total


DRAWN_CELLS = [
    *[(1, 0.5), (10, 0.01), (50, 0.3), (25, 0.45), (1000, 0.999), (1000, 0.011), (1000, 1e-6)],
    *[(20, 0.5), (21, 0.5), (1e5, 0.37), (1e6, 0.9), (1e7, 0.5), (1e7, 1e-5)],
    *[(2e9, 0.123), (2e9, 4e-9), (1e12, 0.3)],
]


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_counts_are_quantiles_of_their_own_uniforms(platform):
    """Catches lanes or draws that share a uniform, also where it is drawn again, and another law
    than that of the quantile."""
    lane = jnp.arange(20_000, dtype=jnp.uint32)
    draw = jit_for(
        platform, lambda words, number, *law: binomials.binomials(words, lane, *law, number)
    )
    for number, cell in enumerate(DRAWN_CELLS):
        law = [jnp.full(len(lane), x, jnp.float64) for x in cell]
        found = draw(words(number), jnp.uint32(number % 3), *law)
        due = quantile(keys.uniform(*words(number), lane, number % 3), *law)
        # Rounding decides for a few uniforms that lie at a step.
        assert (np.asarray(found) != np.asarray(due)).mean() < 1e-4, cell


@pytest.mark.parametrize("way", WAYS)
def test_counts_are_exact_up_to_2_to_the_53(way):
    """Catches counts in float32, which stick at 2^24, a sure outcome lost in rounding, and a count
    where there is no law."""
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


def in_process(function, **environment):
    """Returns what a function of this module prints in a new process, stopped if it hangs."""
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    call = f"{here}; import test_samplers; test_samplers.{function}()"
    return fresh.script(call, timeout=300, **environment)


# Not so large that a mistake would never end.
MANY = 2.0**33


def beside_each_other():
    """Prints counts of few trials, and of many beside them; some in rows, some of ratings."""
    lane = jnp.arange(4, dtype=jnp.uint32)
    table = [jnp.full(1, 0.2)] * 5
    draws = {
        "one by one": lambda n: binomials.binomials(words(2, 4), lane, n, jnp.full(1, 0.5)),
        "by rows": lambda n: binomials.binomials(
            words(2, 4), lane[None], n[None], jnp.full((1, 1), 0.5)
        ),
        "ratings": lambda n: rewards.Ratings([1, 2, 3, 4, 5]).total(*words(2, 4), lane, n, *table),
    }
    with jax.enable_x64(True):
        found = {}
        for name, draw in draws.items():
            trials = jnp.array([[2.0], [MANY]])
            found[name] = jax.jit(jax.vmap(draw))(trials).reshape(2, 4).tolist()
        print(json.dumps(found))


def test_few_trials_do_not_make_many_beside_them_slow():
    """Catches a search, for all lanes of a `vmap`, through as many values as the largest lane
    has: each took minutes."""
    for few, many in json.loads(in_process("beside_each_other")).values():
        assert all(0.0 <= each <= 2.0 for each in few)
        assert all(abs(each / MANY - 0.5) < 0.01 for each in many)


def equations(jaxpr, depth=0):
    """Yields each equation, and in how many loops it lies."""
    for equation in jaxpr.eqns:
        yield equation, depth
        deeper = depth + (equation.primitive.name in ("while", "scan"))
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from equations(inner, deeper)


@pytest.mark.parametrize("batches", [0, 1, 2])
@pytest.mark.parametrize("shared", [False, True], ids=["one by one", "by rows"])
def test_an_accelerator_draws_coins_in_a_straight_line(shared, batches):
    """Catches a loop that asks a host whether it is over: but for one, through those in doubt of
    the whole batch. Inside it passes are counted."""
    lane = jnp.arange(12, dtype=jnp.uint32).reshape(3, 4)

    def draw(trials):
        mean = jnp.full((3, 1 if shared else 4), 0.3)
        return rewards.Bernoulli().total(*words(), lane, trials, mean)

    trials = jnp.full((2,) * batches + (3, 1), 9.0)
    for _ in range(batches):
        draw = jax.vmap(draw)
    with backend.trace_for("gpu"):
        found = [*equations(jax.make_jaxpr(draw)(trials).jaxpr)]
    loops = [each for each, _ in found if each.primitive.name in ("while", "scan")]
    assert [each.primitive.name for each in loops] == ["while", "scan"]
    assert loops[1].params["length"] == 8
    assert max(depth for _, depth in found) == 2


def test_no_narrow_numbers_in_the_compiled_run():
    """Catches float32 on a path of counts, noise or regret, where they would stick in silence."""

    grid = jnp.asarray(time_grid(10**6, 5))
    found = set()
    for algorithm, problem in RUNS:
        config = configs.bind(algorithm, problem, 10**6)

        def run(trial, bound, seed):
            return compilation.one_trial(trial, bound, grid, jnp.uint32(0), seed)

        jaxpr = jax.make_jaxpr(run)(config.trial, config.bound, np.uint32(1))
        made = [x.aval for each, _ in equations(jaxpr.jaxpr) for x in each.outvars]
        found |= {str(aval.dtype) for aval in made if hasattr(aval, "dtype")}
    assert {"float64", "int64", "uint64"} <= found
    assert not [
        dtype for dtype in found if dtype in ("float32", "float16", "bfloat16", "int16", "int8")
    ]


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
    for platform in ("cpu", "gpu"):
        several = jit_for(platform, lambda key: keys.stream_keys(key, 7, keys.REWARD, keys.NOISE))
        np.testing.assert_array_equal(several(key)[1], jax.random.key_data(due))
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
    return laplace.laplace(k0, k1, jnp.arange(MILLION, dtype=jnp.uint32))


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
        listed, solved = laplace.laplace_sum_shape(terms), laplace.solve_shape(terms)
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
    """Catches variables past the last listed one left out, doubled, or given to other sums; and
    parts of one sum that share their uniform."""
    most = laplace._TABLE_TERMS
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
    x = np.asarray(jax.jit(laplace.sample_small_sums)(*key, lane, twice))
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
                samplers.sample_participants(key, jnp.ones(10, bool), jnp.int32(4)),
                2 ** jnp.arange(10),
                0,
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
        monkeypatch.setattr(samplers, "_MOST_COUNTED_ROWS", limit)
        keys_of = [words(seed, 1, keys.PARTICIPATION) for seed in range(20)]
        return [np.asarray(samplers.sample_participants(key, real, number)) for key in keys_of]

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
        lambda k0, k1, n: samplers.sample_participants(keys.Words(k0, k1), real, n), (None, None, 0)
    )
    for seed in range(5):
        heard = sample(*words(seed, 1, keys.PARTICIPATION), number)
        np.testing.assert_array_equal(np.asarray(heard).sum(axis=1), number)
        assert not np.asarray(heard)[:, agents:].any()


# --- the same number per key, whatever the batch ---


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
SEEDS = np.arange(2**32 - 250, 2**32).astype(np.uint32)
RNG = np.random.default_rng(0)
MEANS, LEFT = RNG.random((250, 24)), RNG.random((250, 24)) < 0.4
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
@pytest.mark.parametrize("size", quick.only([1, 7, 250], 250))
@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_do_not_depend_on_the_batch(name, size, platform):
    """Catches a number that changes with the batch, as element i of JAX's binomial does, or with
    the platform that it is laid out for; and rewards of an arm that has left."""
    due = one_by_one_drawn(name)[-size:]
    found = np.asarray(jit_for(platform, of_seeds(name))(np.uint32(5), *(x[-size:] for x in BATCH)))
    np.testing.assert_array_equal(found, due)
    if size == 250:
        assert len(np.unique(found)) > (1 if name == "who is heard" else 1000)
    if name in ("coins", "coins by rows", "ratings"):
        sums = found.swapaxes(1, 2) if name != "coins by rows" else found
        assert (sums[LEFT[-size:]] == 0).all()


def sharded(name, devices):
    """Draws eight seeds over a mesh."""
    mesh = Mesh(np.array(devices), ("device",), axis_types=(AxisType.Auto,))
    over, everywhere = PartitionSpec("device"), PartitionSpec()
    specs = {"in_specs": (everywhere, over, over, over), "out_specs": over}
    split = jax.shard_map(of_seeds(name), mesh=mesh, **specs, check_vma=False)
    drawn = jit_for("cpu", split)(np.uint32(5), *(x[:8] for x in BATCH))
    return np.asarray(drawn).tobytes().hex()


def sharded_values():
    """Prints the draws made by 4 virtual devices in reverse order."""
    with jax.enable_x64(True):
        assert len(jax.devices()) == 4
        print(json.dumps({name: sharded(name, jax.devices()[::-1]) for name in SAMPLERS}))


@pytest.mark.slow
def test_draws_under_shard_map():
    """Catches draws that know their device."""
    due = {name: one_by_one_drawn(name)[:8].tobytes().hex() for name in SAMPLERS}
    assert {name: sharded(name, jax.devices()[:1]) for name in SAMPLERS} == due
    flag = "--xla_force_host_platform_device_count=4"
    found = in_process("sharded_values", XLA_FLAGS=flag, JAX_PLATFORMS="cpu")
    assert json.loads(found) == due


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
    # Sums of agents that differ; some are so small that each agent is drawn.
    (fmab_jax.cdp_mab(3.0), Problem(np.outer([1.0, 0.9], [0.5, 0.45, 5e-3, 1e-3, 1e-4]))),
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_uses_no_random_number_twice(number, monkeypatch):
    """Catches a key or lane shared by two variables of a run: every cipher input is recorded.

    A whole run is compiled with a tap on the cipher; no (key, draw, lane) may show up in two calls.
    What `rare` replaces is drawn anew from the same numbers, or from others that nobody has.
    """
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
    config = configs.bind(algorithm, problem, horizon, room=problem.agents, quick=True)

    @jax.jit
    def run(trial, bound, seed):
        grid = jnp.asarray(time_grid(horizon, 1))
        return compilation.one_trial(trial, bound, grid, jnp.uint32(0), seed)

    outcomes = [run(config.trial, config.bound, np.uint32(seed)) for seed in range(3)]
    assert sum(int(outcome.rounds) for outcome in outcomes) >= 6
    known = set()
    for level, at_once in enumerate(calls):
        new = [x for call in at_once for x in map(tuple, call.T.tolist()) if x not in known]
        assert len(set(new)) == len(new)
        # What is in doubt is drawn from numbers of its own; some sums, agent by agent.
        assert level == 0 or number == 3 or not new
        known |= set(new)
    # All but one run have draws that are in doubt.
    assert len(known) > 50 and len(calls) > (number != 1)


ACCEPTED = (0, 1, 7, 2**31, 2**32 - 1, np.int64(12), np.uint32(2**32 - 2))


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


def test_all_ways_give_the_same_counts():
    """Catches rows that share another row's distribution, and a way with other numbers than the
    others."""
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(90), [0.0, 1.0, 0.5, 1e-3, 0.999, 1 - 1e-9]])
    trials = np.array([0.0, 1.0, 13.0, 40.0, 160.0, 640.0, 1e6])
    # Where rounding decides, they may differ: not among ordinary uniforms.
    u = rng.random((40, len(trials), len(p)))
    flat = [np.broadcast_to(x, u.shape).ravel() for x in (u, trials[:, None], p)]
    first, *others = (np.asarray(way(*flat)) for way in WAYS.values())
    # In rows of 40 uniforms, too.
    rows = [x.reshape(40, -1).T for x in flat]
    others += [
        np.asarray(at_uniform(one_by_one, platform)(rows[0], *(x[:, :1] for x in rows[1:]))).T
        for platform in ("cpu", "gpu")
    ]
    assert len(np.unique(first)) > 1000
    for found in others:
        np.testing.assert_array_equal(found.ravel(), first)


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
