"""Mechanisms: the laws that are drawn, and what they hide, against independent formulas."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

import fmab_jax as fmab
from fmab_jax.core import keys
from fmab_jax.core.scope import own_settings
from fmab_jax.mechanisms.gaussian import Gaussian, gaussian_delta
from fmab_jax.mechanisms.laplace import Laplace

ALL = Laplace(), Gaussian()
SEEDS, DELTA = 100_000, 1e-6


def density(mechanism, scale):
    """The law of one noise, by SciPy: a density, or probabilities of whole numbers."""
    return {
        "laplace": scipy.stats.laplace(scale=scale),
        "gaussian": scipy.stats.norm(scale=scale),
    }[mechanism.name]


def sums(mechanism, scale, count):
    """Samples by tabulated constants, and of `sample_sum` with other keys."""
    with own_settings():
        lane, scale = jnp.arange(SEEDS, dtype=jnp.uint32), jnp.float64(scale)
        constants = jnp.asarray(mechanism.tabulate(count))[:, None]
        one, two = ((jnp.uint32(key), jnp.uint32(7)) for key in (1, 2))

        def sample(lane):
            return mechanism.sample_tabulated(one, lane, scale, lambda f, *x: f(constants, *x))

        counts = jnp.full(lane.shape, float(count))
        drawn = jax.jit(sample)(lane), jax.jit(mechanism.sample_sum)(two, lane, scale, counts)
        return [np.asarray(x) for x in drawn]


def slow(mechanism, scale, count, seed=3):
    """The same sums by NumPy, noise by noise."""
    rng = np.random.default_rng(seed)
    return density(mechanism, scale).rvs((count, SEEDS), random_state=rng).sum(axis=0)


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_sums_have_the_law_of_so_many_noises(mechanism, count):
    """Would catch a scale, a variance or a tail that is not the law's, and a wrong count."""
    wanted = slow(mechanism, 1.3, count)
    for drawn in sums(mechanism, 1.3, count):
        edges = np.quantile(wanted, np.linspace(0.002, 0.998, 60))
        table = [np.histogram(x, [-np.inf, *edges, np.inf])[0] for x in (drawn, wanted)]
        table = np.array(table)[:, np.sum(table, axis=0) > 10]
        assert scipy.stats.chi2_contingency(table).pvalue > 1e-6
    wrong = sums(mechanism, 1.45, count)[0]
    table = [np.histogram(x, [-np.inf, *edges, np.inf])[0] + 1 for x in (wrong, wanted)]
    assert scipy.stats.chi2_contingency(table).pvalue < 1e-6


def hockey_stick(mechanism, scale, epsilon):
    """The divergence of one noise from its shift by 1, by quadrature or by summing."""
    law = density(mechanism, scale)

    def excess(x):
        return max(law.pdf(x) - math.exp(epsilon) * law.pdf(x - 1.0), 0.0)

    return quad(excess, -300.0, 1.0, points=[-60.0, -10.0, 0.0], limit=2000, epsabs=1e-14)[0]


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_epsilon_is_that_of_the_law(mechanism):
    """Would catch an epsilon of another shift, scale or delta than what the noise hides."""
    for scale, delta in ((2.0, 1e-2), (3.0, 1e-4)):
        epsilon = mechanism.epsilon(scale, 1, delta)
        assert hockey_stick(mechanism, scale, epsilon) == pytest.approx(delta, rel=1e-4)
    pure = mechanism.epsilon(2.0, 1, 0.0)
    assert pure == (0.5 if mechanism.pure else math.inf)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_a_message_at_its_scale_leaks_epsilon(mechanism):
    """Would catch a calibration that is off, or on the wrong side."""
    for epsilon in (0.1, 1.0, 8.0):
        scale = mechanism.scale(epsilon, DELTA)
        at = 0.0 if mechanism.pure else DELTA
        assert mechanism.epsilon(scale, 1, at) == pytest.approx(epsilon, rel=1e-9)
        assert mechanism.epsilon(0.9 * scale, 1, at) > epsilon


def test_sums_of_gaussian_noise_are_one_noise():
    """Would catch variances that do not add up."""
    assert Gaussian().epsilon(2.0, 9, DELTA) == pytest.approx(Gaussian().epsilon(6.0, 1, DELTA))
    assert Gaussian().gdp(2.0, 4) == 0.25 and Gaussian().zcdp(2.0, 4) == 0.25**2 / 2
    assert Laplace().zcdp(2.0, 1) == 0.125 and Laplace().gdp(2.0, 1) == math.inf


def test_gaussian_delta_by_hand():
    """Would catch swapped terms of theorem 8 of Balle and Wang."""
    law = scipy.stats.norm()
    wanted = law.cdf(0.5 - 1.0) - math.e * law.cdf(-0.5 - 1.0)
    assert gaussian_delta(1.0, 1.0) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_moments_and_deviations_hold(mechanism):
    """Would catch a moment-generating function, a variance or a deviation of another law."""
    law = density(mechanism, 1.7)
    with own_settings():
        scale = jnp.float64(1.7)
        for tilt in (0.1, 0.4):
            mean, _ = quad(lambda x, t=tilt: law.pdf(x) * math.exp(t * x), -90, 90, points=[0])
            wanted = math.log(mean)
            assert float(mechanism.log_mgf(jnp.float64(tilt), scale)) == pytest.approx(wanted, 1e-7)
        assert float(mechanism.variance(scale)) == pytest.approx(law.var(), rel=1e-9)
        bound = float(mechanism.deviation(jnp.float64(20.0), jnp.float64(3.0), scale))
    assert (slow(mechanism, 1.7, 20) > bound).mean() <= math.exp(-3.0)


def test_rewards_of_another_range_take_noise_that_scales(monkeypatch):
    """Would catch a claim that is about a range of 1, on rewards of another one."""

    @dataclass(frozen=True)
    class Fixed(fmab.Mechanism):
        name, title, source = "fixed", "fixed", ""

        def sample(self, words, lane, scale, draw=0):
            return keys.uniform(*words, lane, draw) - 0.5

        def epsilon(self, scale, count, delta):
            return 1.0 / scale

    wide = fmab.Problem([0.5, 0.4], agents=5)
    monkeypatch.setattr(fmab.Bernoulli, "high", 3.0)
    fmab.cdp_mab(1.0, mechanism="gaussian").check_noise(wide, 1.0)
    line = "^mechanism='fixed': must be laplace or gaussian with bernoulli rewards"
    with pytest.raises(ValueError, match=line):
        fmab.cdp_mab(1.0, mechanism=Fixed()).check_noise(wide, 1.0)
    rows = fmab.privacy_ledger(fmab.kl_se(1.0, mechanism=Fixed(), split=True), 5)
    assert all("as claimed" in row.why for row in rows)
