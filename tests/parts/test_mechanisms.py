"""Mechanisms: the laws that are drawn, and what they hide, against independent formulas."""

import itertools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from draws import at_uniform, induced_cdf
from refusals import refuses
from scipy.integrate import quad

import fmab_jax as fmab
from fmab_jax.parts.mechanisms import lattice_sums
from fmab_jax.parts.mechanisms.discrete_laplace import DiscreteLaplace, _get_cumulants, _invert, mix
from fmab_jax.parts.mechanisms.gaussian_noise import GaussianNoise, gaussian_delta
from fmab_jax.parts.mechanisms.laplace_noise import Laplace
from fmab_jax.parts.mechanisms.skellam import Skellam
from fmab_jax.sampling import keys
from fmab_jax.sampling.samplers import lattice_quantile
from fmab_jax.sampling.scope import package_settings

ALL = Laplace(), GaussianNoise(), DiscreteLaplace(), Skellam()
SMALL = fmab.Problem([0.5, 0.4], agents=5)
SEEDS, DELTA = 100_000, 1e-6


def density(mechanism, scale):
    """The law of one noise, by SciPy: a density, or probabilities of whole numbers."""
    return {
        "laplace": scipy.stats.laplace(scale=scale),
        "gaussian": scipy.stats.norm(scale=scale),
        "discrete_laplace": scipy.stats.dlaplace(1.0 / scale),
        "skellam": scipy.stats.skellam(0.5 * scale**2, 0.5 * scale**2),
    }[mechanism.name]


def sums(mechanism, scale, count):
    """Samples by tabulated constants, and of `sample_sum` with other keys."""
    with package_settings():
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


def cut(mechanism, values):
    """Returns edges of cells; between whole numbers for integer noise."""
    edges = np.quantile(values, np.linspace(0.002, 0.998, 60))
    return np.unique(np.floor(edges)) + 0.5 if mechanism.integers else edges


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_sums_have_the_law_of_so_many_noises(mechanism, count):
    """Would catch a scale, a variance or a tail that is not the law's, and a wrong count."""
    wanted = slow(mechanism, 1.3, count)
    for drawn in sums(mechanism, 1.3, count):
        edges = cut(mechanism, wanted)
        assert not mechanism.integers or (drawn == np.round(drawn)).all()
        table = [np.histogram(x, [-np.inf, *edges, np.inf])[0] for x in (drawn, wanted)]
        table = np.array(table)[:, np.sum(table, axis=0) > 10]
        assert scipy.stats.chi2_contingency(table).pvalue > 1e-6
    wrong = sums(mechanism, 1.45, count)[0]
    table = [np.histogram(x, [-np.inf, *edges, np.inf])[0] + 1 for x in (wrong, wanted)]
    assert scipy.stats.chi2_contingency(table).pvalue < 1e-6


def hockey_stick(mechanism, scale, epsilon):
    """The divergence of one noise from its shift by 1, by quadrature or by summing."""
    law = density(mechanism, scale)
    if mechanism.integers:
        k = np.arange(-2000, 2001)
        return np.maximum(law.pmf(k) - math.exp(epsilon) * law.pmf(k - 1), 0.0).sum()

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
    assert GaussianNoise().epsilon(2.0, 9, DELTA) == pytest.approx(
        GaussianNoise().epsilon(6.0, 1, DELTA)
    )
    assert GaussianNoise().gdp(2.0, 4) == 0.25 and GaussianNoise().zcdp(2.0, 4) == 0.25**2 / 2
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
    with package_settings():
        scale = jnp.float64(1.7)
        for tilt in (0.1, 0.4):
            if mechanism.integers:
                k = np.arange(-300, 301)
                mean = (law.pmf(k) * np.exp(tilt * k)).sum()
            else:
                mean, _ = quad(lambda x, t=tilt: law.pdf(x) * math.exp(t * x), -90, 90, points=[0])
            wanted = math.log(mean)
            assert float(mechanism.log_mgf(jnp.float64(tilt), scale)) == pytest.approx(wanted, 1e-7)
        assert float(mechanism.variance(scale)) == pytest.approx(law.var(), rel=1e-9)
        bound = float(mechanism.deviation(jnp.float64(20.0), jnp.float64(3.0), scale))
    assert (slow(mechanism, 1.7, 20) > bound).mean() <= math.exp(-3.0)


def law_of_sum(mechanism, scale, count):
    """Returns P(sum = k) and k, by the fast Fourier transform of the characteristic function."""
    variance = count * density(mechanism, scale).var()
    size = 2 ** math.ceil(math.log2(64.0 + 80.0 * math.sqrt(variance)))
    square = np.sin(np.pi * np.arange(size) / size) ** 2
    if mechanism.name == "skellam":
        log = -2.0 * variance * square
    else:
        log = -count * np.log1p(square / math.sinh(0.5 / scale) ** 2)
    return np.fft.fftshift(np.fft.ifft(np.exp(log)).real), np.arange(size) - size // 2


def cumulants_of(mechanism, scale, count):
    if mechanism.name == "skellam":
        return [x * scale**2 * count for x in (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)]
    return [count * float(x) for x in _get_cumulants(jnp.float64(scale))]


@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("mechanism", ALL[2:], ids=lambda m: m.name)
def test_six_cumulants_give_the_law_where_they_are_used(mechanism, scale, x64):
    """Would catch an expansion that is used too early, or with a cumulant of another law."""
    count = 1
    while not lattice_sums.is_smooth(cumulants_of(mechanism, scale, count)):
        count = math.ceil(1.02 * count)
    mass, ks = law_of_sum(mechanism, scale, count)
    near = np.abs(ks) <= 9.0 * math.sqrt(cumulants_of(mechanism, scale, count)[1]) + 30.0

    def find_distance(cumulants):
        k = ks[near].astype(float)
        quantile = at_uniform(
            lambda words, *c: lattice_quantile(keys.uniform(*words, jnp.zeros_like(words[0])), c)
        )
        columns = [np.full(k.shape, value) for value in cumulants]
        cdf = induced_cdf(lambda u: np.asarray(quantile(u, *columns)) <= k, k.shape)
        return np.abs(np.diff(np.r_[0.0, cdf]) - mass[near]).sum() / 2.0

    cumulants = cumulants_of(mechanism, scale, count)
    assert find_distance(cumulants) < 5e-7
    assert find_distance([1.001 * x for x in cumulants]) > 1e-4


@pytest.mark.parametrize(
    "scale, count",
    [(0.7, 2), (5.0, 3), (1.0, 50), (0.1, 10**5), (0.3, 10**4), (1.0, 10**5), (1000.0, 20)],
)
@pytest.mark.parametrize("mechanism", ALL[2:], ids=lambda m: m.name)
def test_integer_sums_have_their_exact_law(mechanism, scale, count):
    """Would catch a branch of the sampler with a law of its own, and a scale that is 2 % off."""
    mass, ks = law_of_sum(mechanism, scale, count)
    cdf = np.cumsum(mass)
    edges = np.unique(np.searchsorted(cdf, np.linspace(0.0005, 0.9995, 80)))
    chance = np.diff(np.r_[0.0, cdf[edges], 1.0])
    big = chance * SEEDS > 5.0

    def find_p(scale):
        drawn = sums(mechanism, scale, count)[1]
        assert (drawn == np.round(drawn)).all()
        cells = np.bincount(np.searchsorted(ks[edges], drawn), minlength=len(chance))
        table = cells[big], SEEDS * chance[big] * cells[big].sum() / (SEEDS * chance[big].sum())
        return scipy.stats.chisquare(*table).pvalue

    assert find_p(scale) > 1e-6
    assert find_p(1.05 * scale) < 1e-6


@pytest.mark.parametrize("scale, count", [(1.0, 1), (2.0, 2), (0.5, 3), (3.0, 40), (0.2, 1000)])
@pytest.mark.parametrize("mechanism", ALL[2:], ids=lambda m: m.name)
def test_epsilon_of_an_integer_sum_is_that_of_its_law(mechanism, scale, count):
    """Would catch an event that is not the worst one, and a tail that is off by one number."""
    mass, _ = law_of_sum(mechanism, scale, count)
    for delta in (1e-2, 1e-5):
        epsilon = mechanism.epsilon(scale, count, delta)
        divergence = np.maximum(mass[1:] - math.exp(epsilon) * mass[:-1], 0.0).sum()
        assert divergence == pytest.approx(delta, rel=1e-6)
        assert mechanism.epsilon(1.01 * scale, count, delta) < epsilon


def test_tails_of_many_noises_and_of_few_agree():
    """Would catch a mixture with other weights, and an inversion with a pole in its way."""
    for level, count in ((1.0, 9), (0.2, 30), (3.0, 30)):
        few, many = mix(level, count), _invert(level, count)
        for t in (0, 1, 7, 60):
            assert few.point(t) == pytest.approx(many.point(t), abs=1e-11)
            assert few.tail(t) == pytest.approx(many.tail(t), abs=1e-11)
    wide = DiscreteLaplace().epsilon(1e5, 30, 1e-12), Laplace().epsilon(1e5, 30, 1e-12)
    assert wide[0] == pytest.approx(wide[1], rel=1e-6)


@pytest.mark.parametrize("variance", [0.5, 4.0, 300.0, 1e5])
def test_skellam_divergences_are_below_rho_times_their_order(variance):
    """Would catch another law's rho: of Gaussian noise it is 1 / (2 variance), below that at 1."""
    wide = max(200, int(12 * math.sqrt(variance)))
    k = np.arange(-wide, wide + 1)
    # The law's mass is e^-v I_k(v); far out it is that of a normal law.
    mass = np.log(np.maximum(scipy.special.ive(np.abs(k), variance), 1e-300))
    mass = mass[mass > -600]
    rho = Skellam().zcdp(math.sqrt(variance), 1)
    ratios = []
    for order in (1.001, 1.5, 2.0, 5.0, 12.0):
        terms = order * mass[:-1] + (1.0 - order) * mass[1:]
        ratios.append(scipy.special.logsumexp(terms) / (order - 1.0) / order)
    assert max(ratios) < rho < 1.012 * max(max(ratios), 0.5 * 1.02 / variance)


def test_integer_noise_is_for_integer_rewards():
    """Would catch digits of a rating that integer noise leaves as they are."""
    ratings = fmab.Problem.ratings([0.0, 0.5, 1.0], np.full((2, 3), 1 / 3), agents=5)
    for name in ("discrete_laplace", "skellam"):
        for make in (fmab.cdp_mab, fmab.ddp_mab, fmab.hdp_mab, fmab.kl_se):
            algorithm = make(1.0, mechanism=name)
            algorithm.check_noise(fmab.Problem([0.5, 0.4], agents=5), 1.0)
            line = f"^mechanism='{name}': must be laplace or gaussian with ratings rewards, which"
            with pytest.raises(ValueError, match=line):
                algorithm.check_noise(ratings, 1.0)


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


@dataclass(frozen=True)
class Uniform(fmab.Mechanism):
    """Uniform noise, which hides a reward up to delta = 1 / (2 scale) alone; it does not say so."""

    name, title = "uniform", "uniform"

    def sample(self, words, lane, scale, draw=0):
        return scale * (2.0 * keys.uniform(*words, lane, draw) - 1.0)

    def epsilon(self, scale, count, delta):
        return 0.0 if delta >= 0.5 / scale else math.inf


@dataclass(frozen=True)
class Stated(Uniform):
    """The same, which says so."""

    name, pure = "stated", False


def test_noise_without_pure_epsilon_has_to_say_so():
    """Would catch a scale that is doubled until it overflows, or a claim without delta."""
    line = "^mechanism='uniform': must be noise whose epsilon at delta = 0 is finite; "
    line += "state pure = False in Uniform: its epsilon needs a delta$"
    refuses(line, Uniform().scale, 1.0, 0.1)
    for algorithm in (fmab.kl_se(1.0, mechanism=Uniform()), fmab.cdp_mab(1.0, mechanism=Uniform())):
        refuses("pure = False in Uniform", fmab.privacy_ledger, algorithm, 5)
        refuses("pure = False in Uniform", fmab.simulate, algorithm, SMALL, 100, 2)
    # The smallest scale at which a message leaks so little up to delta.
    assert Stated().scale(1.0, 0.1) == pytest.approx(5.0)
    row = fmab.privacy_ledger(fmab.kl_se(1.0, mechanism=Stated(), delta=0.1), 5, 0.1)[0]
    assert (row.epsilon, row.epsilon_at_delta) == (math.inf, 0.0)
    assert "as claimed" in row.why


def test_deviations_are_bounds_and_those_that_are_stated():
    """Would catch a 2 or an 8 that is missing, which a sum exceeds at high levels alone.

    Chernoff's bound is the least over tilts; a stated deviation is no smaller.
    """
    tilts = np.geomspace(1e-6, 1e2, 20_000)
    stated = {
        "laplace": lambda n, level, s: s * math.sqrt(8 * n * level),  # line 5 of Algorithm 1
        "gaussian": lambda n, level, s: s * math.sqrt(2 * n * level),
        "discrete_laplace": lambda n, level, s: 2 * s * math.sqrt(n * level) + s * level,
        "skellam": lambda n, level, s: (
            level / 3 + math.sqrt((level / 3) ** 2 + 2 * n * level * s * s)
        ),
    }
    for mechanism in ALL:
        for scale in (0.4, 1.7, 30.0):
            if mechanism.name == "discrete_laplace":
                inside = tilts[tilts < 1 / scale]
                ratio = np.sinh(inside / 2) / math.sinh(0.5 / scale)
                log = -np.log1p(-(ratio**2))
            elif mechanism.name == "laplace":
                inside = tilts[tilts < 1 / scale]
                log = -np.log1p(-((inside * scale) ** 2))
            else:
                inside = tilts
                square = (2 * np.sinh(inside / 2)) ** 2 if mechanism.integers else inside**2
                log = 0.5 * (scale**2) * square
            for count, level in itertools.product((1, 5, 50, 10**4), (0.1, 1.0, 3.0, 20.0, 60.0)):
                with package_settings():
                    found = float(mechanism.deviation(*map(jnp.float64, (count, level, scale))))
                assert found == pytest.approx(stated[mechanism.name](count, level, scale))
                # The paper's bound holds only where sums are nearly normal.
                if mechanism.name != "laplace" or level <= count:
                    least = ((count * log + level) / inside).min()
                    assert found > (1 - 1e-6) * least, (mechanism, count, level)


def test_rho_of_skellam_noise_holds_at_orders_that_are_not_computed():
    """Would catch a bound of the first order that is too far without its second term.

    Agarwal et al. bound the divergence of a whole order; others have that of the next one.
    """

    def bound(order, variance):
        more = min((2 * order + 5) / (4 * variance**2), 3 / (2 * variance))
        return order / (2 * variance) + more

    for variance in (1e-3, 0.02, 0.3, 1.0, 30.0, 1e3, 1e5):
        rho = Skellam().zcdp(math.sqrt(variance), 1)
        assert rho >= (1 - 1e-12) * bound(401, variance) / 400
        if variance < 0.1:  # computed orders say less
            assert rho == pytest.approx(bound(401, variance) / 400, rel=1e-12, abs=0.0)
    for variance in (1.1e7, 1e9):
        wanted = bound(2, variance)
        rho = Skellam().zcdp(math.sqrt(variance / 4), 4)
        assert rho == pytest.approx(wanted, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)
def test_a_scale_leaks_no_more_than_its_epsilon(mechanism):
    """Would catch a scale that is rounded down, so that a message leaks more than was promised."""
    for epsilon in np.geomspace(0.05, 20.0, 30).tolist():
        at = 0.0 if mechanism.pure else 1e-6
        found = mechanism.epsilon(mechanism.scale(epsilon, 1e-6), 1, at)
        slack = 1e-15 if mechanism.pure else 0.0  # 1 / (1 / epsilon)
        assert (1 - 1e-9) * epsilon <= found <= (1 + slack) * epsilon


def test_sums_that_no_law_is_stated_of_are_those_of_so_many_draws():
    """Would catch a noise too many in a sum beside a longer one, and a draw that comes twice."""
    with package_settings():
        words, lane = (jnp.uint32(1), jnp.uint32(7)), jnp.arange(5, dtype=jnp.uint32)
        counts, scale = [0, 1, 2, 5, 3], jnp.float64(2.0)
        found = Uniform().sample_sum(words, lane, scale, jnp.array(counts, jnp.float64))
        draws = [np.asarray(Uniform().sample(words, lane, scale, draw)) for draw in range(5)]
    wanted = [sum(draw[row] for draw in draws[:count]) for row, count in enumerate(counts)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert len(np.unique(draws)) == 25
