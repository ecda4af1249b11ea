"""Exponents of sums of rewards with Laplace noise, and private divergences, by brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from fmab_jax.core import evidence


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
