"""Exponents of sums of rewards with Laplace noise, and private divergences, by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from fmab_jax.algorithms.kl_ucb import largest_mean
from fmab_jax.core import evidence


def exponent(y, q, n, m, epsilon):
    """I-(y; q) as it is defined, with nothing worked out by hand."""

    def less(tilt):
        noise = m * np.log1p(-((tilt / epsilon) ** 2)) if m else 0.0
        return tilt * y + n * np.log1p(q * np.expm1(-tilt)) - noise

    end = min(epsilon, 60.0)
    found = scipy.optimize.minimize_scalar(
        less, bounds=(0.0, end), method="bounded", options={"xatol": 1e-12 * end}
    )
    return max(0.0, -found.fun)


def asked(needed, n, noises, epsilon):
    """Returns what is prepared."""
    with jax.enable_x64(True):
        numbers = jnp.float64(needed), jnp.float64(n), jnp.array(noises, jnp.float64)
        return jax.tree.map(np.asarray, evidence.prepared(*numbers, jnp.float64(epsilon)))


def told(given, low, high, n, m, k):
    with jax.enable_x64(True):
        others = map(jnp.float64, (high, n, m, k))
        return float(evidence.evidence(given, jnp.array([low]), *others)[0])


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("q", [0.02, 0.5, 0.9])
def test_evidence_is_as_rare_as_it_says(n, q):
    """Would catch tilts that are not paid for: by all outcomes of two sums, its exponential is 1 at
    most in the mean; and tilts so far off that it says nothing."""
    given = asked(4.0, float(n), [0.0], np.inf)
    chance = scipy.stats.binom.pmf(np.arange(n + 1), n, q)
    sums = [
        [told(given, y / n, z / n, float(n), 0.0, 0.0) for z in range(n + 1)] for y in range(n + 1)
    ]
    mean = float(chance @ np.exp(sums) @ chance)
    assert 0.25 < mean <= 1.0 + 1e-9


def test_noise_is_paid_for():
    """Would catch the noise of one sum, or of one scale, for that of both."""
    n, m, k, epsilon, q, runs = 20, 3, 7, 0.5, 0.4, 200_000
    random = np.random.default_rng(5)
    low = random.binomial(n, q, runs) + random.laplace(0, 1 / epsilon, (m, runs)).sum(axis=0)
    high = random.binomial(n, q, runs) + random.laplace(0, 1 / epsilon, (k, runs)).sum(axis=0)
    given = asked(3.0, float(n), [3.0, 5.0, 7.0], epsilon)
    with jax.enable_x64(True):
        numbers = map(jnp.float64, (n, m, k))
        means = jnp.array(low / n)[:, None], jnp.array(high / n)
        found = jax.vmap(evidence.evidence, (None, 0, 0, None, None, None))(given, *means, *numbers)
    times = int((np.asarray(found) >= 3.0).sum())
    assert times > 200
    assert scipy.stats.binomtest(times, runs, np.exp(-3.0), "greater").pvalue > 1e-6


@pytest.mark.parametrize("q", [0.04, 0.3, 0.6, 0.95])
@pytest.mark.parametrize(
    ("n", "m", "epsilon"), [(200.0, 50.0, 10.0), (50_000.0, 500.0, 1.0), (1e5, 600.0, 0.1)]
)
def test_evidence_is_near_the_least_sum_of_both_exponents(n, m, epsilon, q):
    """Would catch pairs of tilts that are sharp elsewhere: of too few means, or for another b."""
    means = np.linspace(0.0005, 0.9995, 2000)

    def both(apart):
        lower, upper = q - apart * (q + 1), q + apart * (2 - q)

        def total(x):
            below = exponent(n * lower, x, n, m, epsilon)
            return below + exponent(n - n * upper, 1.0 - x, n, m, epsilon)

        start = means[np.argmin([total(x) for x in means[:: len(means) // 40]]) * 50]
        ends = max(start - 0.03, 1e-6), min(start + 0.03, 1 - 1e-6)
        return scipy.optimize.minimize_scalar(total, bounds=ends, method="bounded").fun

    apart = scipy.optimize.brentq(lambda x: both(x) - 20.0, 1e-5, 0.9, xtol=1e-7)
    given = asked(20.0, n, [m], epsilon)
    found = told(given, q - apart * (q + 1), q + apart * (2 - q), n, m, m)
    assert 20.0 - 1.6 < found <= 20.0


def test_private_divergence_is_the_infimum_and_largest_within_its_inverse():
    """Would catch the wrong one of two closed forms, or the border between them."""
    means = np.array([0.0, 0.02, 0.3, 0.5, 0.77, 0.99])
    for epsilon in (0.05, 0.7, 3.0, np.inf):
        for x in means:
            for y in (*means, 1.0):
                z = np.linspace(x, max(x, y), 20_001)
                with np.errstate(divide="ignore", invalid="ignore"):
                    kl = scipy.special.rel_entr(z, y) + scipy.special.rel_entr(1 - z, 1 - y)
                    far = np.where(z > x, epsilon * (z - x), 0.0)
                wanted = np.min(far + kl) if x < y else 0.0
                with jax.enable_x64(True):
                    told = float(evidence.private_divergence(*map(jnp.float64, (x, y, epsilon))))
                assert told == pytest.approx(wanted, rel=1e-4, abs=1e-7), (epsilon, x, y)
            for distance in (1e-4, 0.03, 0.5, 4.0):
                with jax.enable_x64(True):
                    mean, within = jnp.float64(x), jnp.float64(distance)
                    near, privacy = largest_mean(mean, within), jnp.float64(epsilon)
                    q = evidence.largest_within(mean, near, within, privacy)
                    told = float(evidence.private_divergence(mean, q, privacy))
                if q < 1.0 - 1e-9:
                    assert told == pytest.approx(distance, rel=1e-4, abs=1e-9), (epsilon, x)
                else:
                    assert told <= distance + 1e-9
