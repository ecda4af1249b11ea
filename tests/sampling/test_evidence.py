"""Exponents of sums of rewards with Laplace noise, and private divergences, by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from fmab_jax.sampling import evidence


@jax.jit
def weigh(needed, n, noises, epsilon, low, high, k, m):
    """Returns the evidence of lower and of higher means, with k and m noises."""
    prepared = evidence.choose_tilts(needed, n, noises, epsilon)
    weighed = jax.vmap(evidence.evidence, (None, 0, 0, None, None, None))
    return weighed(prepared, low[:, None], high, n, k, m)[:, 0]


@pytest.mark.parametrize(("n", "q"), [(3, 0.02), (40, 0.02), (40, 0.5), (40, 0.9)])
def test_evidence_is_as_rare_as_it_says(n, q):
    """Would catch tilts that are not paid for: by all outcomes of two sums."""
    low, high = (x.ravel() / n for x in np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0)))
    with jax.enable_x64(True):
        numbers = map(jnp.float64, (4.0, n, np.inf, 0.0, 0.0))
        needed, count, epsilon, k, m = numbers
        weights = weigh(needed, count, jnp.zeros(1), epsilon, jnp.array(low), jnp.array(high), k, m)
    chance = np.prod([scipy.stats.binom.pmf(np.rint(n * x), n, q) for x in (low, high)], axis=0)
    assert 0.25 < float(chance @ np.exp(np.asarray(weights))) <= 1.0 + 1e-9


def test_noise_is_paid_for():
    """Would catch the noise of one sum, or of one scale, for that of both."""
    n, k, m, epsilon, q, runs = 20, 3, 7, 0.5, 0.4, 200_000
    random = np.random.default_rng(5)
    low = random.binomial(n, q, runs) + random.laplace(0, 1 / epsilon, (k, runs)).sum(axis=0)
    high = random.binomial(n, q, runs) + random.laplace(0, 1 / epsilon, (m, runs)).sum(axis=0)
    with jax.enable_x64(True):
        needed, count, scale, *noises = map(jnp.float64, (3.0, n, epsilon, k, m))
        means = jnp.array(low / n), jnp.array(high / n)
        weights = weigh(needed, count, jnp.array([3.0, 5.0, 7.0]), scale, *means, *noises)
    times = int((np.asarray(weights) >= 3.0).sum())
    assert times > 200
    assert scipy.stats.binomtest(times, runs, np.exp(-3.0), "greater").pvalue > 1e-6
