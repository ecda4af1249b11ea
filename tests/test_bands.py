"""Bands over seeds: hand values, coverage with a control that must fail, memory, refusals."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

from fmab_jax import bands
from fmab_jax.bands import confidence_band, lost_interval


def series(values: np.ndarray, **coords: object) -> xr.DataArray:
    """Wraps (seed, time) values the way simulate does."""
    return xr.DataArray(
        values,
        dims=("seed", "time"),
        coords={"seed": np.arange(len(values)), "time": 10 * np.arange(values.shape[1]) + 10}
        | {name: ("seed", value) for name, value in coords.items()},
        attrs={"units": "reward"},
        name="regret",
    )


def test_pointwise_band_is_the_t_interval_by_hand():
    """Would catch ddof 0, a normal instead of a t quantile, or a one-sided quantile."""
    band = confidence_band(series(np.array([[1.0], [2.0], [6.0]])), 0.9, "pointwise")
    # mean 3, deviation sqrt((4 + 1 + 9) / 2) = sqrt(7); the 0.95 quantile of t with 2 degrees.
    half = 2.9199855803537256 * np.sqrt(7 / 3)
    np.testing.assert_allclose(band["mean"], [3.0], rtol=1e-15)
    np.testing.assert_allclose(band.lower, [3 - half], rtol=1e-12)
    np.testing.assert_allclose(band.upper, [3 + half], rtol=1e-12)
    assert band["mean"].attrs["units"] == "reward" and int(band.seeds) == 3
    np.testing.assert_array_equal(band.time, [10])


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_pointwise_band_equals_scipy(level):
    """Would catch an error in the t quantile away from level 0.95, or with integer data."""
    links = np.random.default_rng(0).poisson(30.0, (17, 8)).astype(np.int64)
    band = confidence_band(series(links), level, "pointwise")
    low, high = stats.t.interval(level, 16, links.mean(axis=0), stats.sem(links, axis=0))
    np.testing.assert_allclose(band.lower, low, rtol=1e-11)
    np.testing.assert_allclose(band.upper, high, rtol=1e-11)


@pytest.mark.parametrize("times", [3, 15])
def test_critical_value_for_uncorrelated_slots_is_exact(times):
    """Would catch a lost Student factor, a wrong quantile, or a root that is no root.

    Columns of a Hadamard matrix are exactly uncorrelated, so P(max abs(Z) <= c) is an integral over
    the chi variable. Both ways to factor the correlation are taken (16 seeds, then 15 of 16 slots
    by dropping no column: rank 15). A missing Student factor moves c by 0.4 (10 standard errors).
    """
    hadamard = np.array([[1.0]])
    for _ in range(4):
        hadamard = np.kron(np.array([[1.0, 1.0], [1.0, -1.0]]), hadamard)
    values = hadamard[:, 1 : times + 1]
    band = confidence_band(series(values), 0.95, "simultaneous", resamples=100_000)
    error = np.sqrt(16 / 15 / 16)
    critical = np.asarray(band.upper - band["mean"]) / error
    np.testing.assert_allclose(critical, critical[0], rtol=1e-12)

    def covered(s: float) -> float:
        inside = 2 * stats.norm.cdf(critical[0] * s) - 1
        return inside**times * stats.chi.pdf(s * np.sqrt(15), 15) * np.sqrt(15)

    level = integrate.quad(covered, 0, 6)[0]
    outside = stats.binomtest(round((1 - level) * 100_000), 100_000, 0.05)
    assert outside.pvalue > 1e-6


def test_more_slots_than_seeds_gives_the_same_critical_value(monkeypatch):
    """Would catch the two factorisations of the correlation having different laws."""
    values = np.random.default_rng(3).standard_normal((40, 60)).cumsum(axis=1)

    def width(slots: np.ndarray) -> float:
        band = confidence_band(series(slots), 0.9, resamples=50_000)
        return float((band.upper - band.lower)[3])

    # Slots that repeat change the law of the maximum in nothing, but switch the factorisation.
    few, many = width(values[:, :39]), width(np.tile(values[:, :39], 2))
    # The standard error of a 0.9 quantile of 50 000 draws is about 0.3 % of it.
    assert few == pytest.approx(many, rel=0.02) and few != many


def covers(kind: str, replications: int) -> int:
    """Counts how often a 95 % band covers the whole mean, 0, of a Gaussian random walk."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(replications):
        walk = rng.standard_normal((60, 50)).cumsum(axis=1)
        band = confidence_band(series(walk), 0.95, kind)
        hits += bool(((band.lower <= 0) & (band.upper >= 0)).all())
    return hits


def test_simultaneous_band_covers_the_whole_curve():
    """Would catch a band too narrow (below 89 % coverage) or too wide (above 99.5 %)."""
    assert stats.binomtest(covers("simultaneous", 300), 300, 0.95).pvalue > 1e-6


def test_pointwise_band_fails_the_simultaneous_check():
    """Control that must fail: would catch a coverage check that any band passes."""
    assert stats.binomtest(covers("pointwise", 300), 300, 0.95).pvalue < 1e-6


def test_simultaneous_is_nowhere_narrower_than_pointwise():
    """Would catch Monte Carlo error making the stronger statement the narrower band."""
    narrower = 0
    for seed in range(40):
        # Slots that move together: both critical values have the same target.
        base = np.random.default_rng(seed).standard_normal((8, 1))
        values = series(base * np.array([[1.0, 2.0, 3.0]]))
        wide = confidence_band(values, resamples=100, seed=seed)
        thin = confidence_band(values, kind="pointwise")
        assert (wide.upper >= thin.upper).all() and (wide.lower <= thin.lower).all()
        narrower += bool(np.array_equal(wide.upper, thin.upper))
    # The cut must have acted about every second time, or this test has shown nothing.
    assert 5 <= narrower <= 35


@pytest.mark.parametrize("kind", list(bands.KINDS))
def test_slots_where_all_seeds_agree_have_no_width(kind):
    """Would catch rounding of the mean, or 0 / 0, widening a slot without any spread."""
    values = np.random.default_rng(2).standard_normal((1000, 4))
    values[:, 1] = 0.1
    values[:, 3] = 12345.678
    band = confidence_band(series(values), kind=kind)
    for slot, value in ((1, 0.1), (3, 12345.678)):
        assert [float(band[name][slot]) for name in ("mean", "lower", "upper")] == [value] * 3
    assert (band.upper - band.lower)[0] > 0 and np.isfinite(band.to_array()).all()


def test_quantile_band_holds_the_level_of_the_seeds():
    """Would catch tails of 1 - level instead of half of it, or the median taken for the mean."""
    values = np.arange(1001.0)[:, None] ** 2
    band = confidence_band(series(values), 0.9, "quantile")
    found = [float(band[name][0]) for name in ("lower", "median", "upper")]
    assert found == pytest.approx([50**2, 500**2, 950**2], rel=1e-12)
    assert float(band["mean"][0]) == pytest.approx(1000 * 2001 / 6, rel=1e-14)
    assert "not a confidence band" in band.attrs["description"]


def test_order_of_seeds_and_memory_layout_hardly_matter():
    """Would catch sums that depend on the order of seeds, or bytes that depend on the layout."""
    rng = np.random.default_rng(5)
    values = 1e6 + rng.standard_normal((5000, 3))
    band = confidence_band(series(values))
    shuffled = confidence_band(series(values[rng.permutation(5000)]))
    fortran = confidence_band(series(np.asfortranarray(values)))
    turned = confidence_band(series(values).transpose("time", "seed"))
    for name in ("mean", "lower", "upper"):
        np.testing.assert_allclose(shuffled[name], band[name], rtol=1e-12)
        np.testing.assert_array_equal(fortran[name], band[name])
        np.testing.assert_array_equal(turned[name], band[name])
    # A common offset must not cost the digits of the spread.
    centred = confidence_band(series(values - 1e6))
    np.testing.assert_allclose(band.upper - band.lower, centred.upper - centred.lower, rtol=1e-8)


@pytest.mark.parametrize("kind", list(bands.KINDS))
def test_blocks_change_nothing(kind, monkeypatch):
    """Would catch a block of seeds, slots or resamples that is skipped or counted twice."""
    values = series(np.random.default_rng(6).standard_normal((101, 7)).cumsum(axis=1))
    whole = confidence_band(values, kind=kind)
    monkeypatch.setattr(bands, "_CHUNK", 70)
    xr.testing.assert_allclose(confidence_band(values, kind=kind), whole, rtol=1e-12)


def test_swept_dimensions_have_a_band_each():
    """Would catch curves of different configurations mixed up, or one band over all of them."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal((3, 20, 5)).cumsum(axis=2)
    lost = rng.random((3, 20)) < 0.3
    swept = xr.DataArray(
        values,
        dims=("epsilon", "seed", "time"),
        coords={"epsilon": [0.1, 0.5, 1.0], "best_arm_lost": (("epsilon", "seed"), lost)},
    )
    band = confidence_band(swept.transpose("time", "seed", "epsilon"))
    for index, epsilon in enumerate(swept.epsilon.values):
        alone = confidence_band(series(values[index], best_arm_lost=lost[index]))
        for name in ("lower", "mean", "upper", "best_arm_lost", "best_arm_lost_upper"):
            np.testing.assert_array_equal(band[name].sel(epsilon=epsilon), alone[name])
    assert set(band.best_arm_lost.values) == set(lost.sum(axis=1))


def test_a_number_per_seed_has_a_band():
    """Would catch final values, without a time dimension, being refused or misread."""
    values = series(np.arange(12.0).reshape(4, 3))
    last = confidence_band(values.isel(time=-1), kind="pointwise")
    curve = confidence_band(values, kind="pointwise").isel(time=-1)
    assert [float(last[n]) for n in ("lower", "upper")] == [
        float(curve[n]) for n in ("lower", "upper")
    ]


def test_lost_best_arms_are_counted_beside_the_band():
    """Would catch a band that hides rare catastrophes, or an interval of another count or level."""
    lost = np.zeros(100, bool)
    lost[[4, 50, 99]] = True
    values = series(np.random.default_rng(8).standard_normal((100, 2)), best_arm_lost=lost)
    band = confidence_band(values, 0.9)
    assert (int(band.best_arm_lost), int(band.seeds)) == (3, 100)
    ends = (float(band.best_arm_lost_lower), float(band.best_arm_lost_upper))
    assert ends == lost_interval(3, 100, 0.9)
    assert "best_arm_lost" not in confidence_band(values.drop_vars("best_arm_lost"))


@pytest.mark.parametrize("lost, seeds", [(0, 1), (0, 100), (100, 100), (3, 100), (7, 1_000_000)])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_lost_interval_is_clopper_pearson(lost, seeds, level):
    """Would catch a normal approximation, a one-sided interval, or 0 lost taken for impossible."""
    lower, upper = lost_interval(lost, seeds, level)
    exact = stats.binomtest(lost, seeds).proportion_ci(level, method="exact")
    # scipy solves for the ends to 2e-12; that they are the ends is checked more closely below.
    np.testing.assert_allclose([lower, upper], exact, rtol=1e-9, atol=4e-12)
    tail = pytest.approx((1 - level) / 2, rel=1e-9)
    assert lower == 0 if lost == 0 else stats.binom.sf(lost - 1, seeds, lower) == tail
    assert upper == 1 if lost == seeds else stats.binom.cdf(lost, seeds, upper) == tail


VALUES = series(np.random.default_rng(9).standard_normal((5, 3)))
HOLED = VALUES.copy(data=np.where(np.arange(15).reshape(5, 3) == 7, np.nan, VALUES))


@pytest.mark.parametrize(
    "call, start",
    [
        (lambda: confidence_band(VALUES[:1]), "seeds=1: must be a whole number in [2, "),
        (lambda: confidence_band(VALUES.mean("seed")), "values.dims=('time',): must be dimensions"),
        (lambda: confidence_band(HOLED), "values=nan: must be finite; "),
        (lambda: confidence_band(VALUES / 0.0), "values="),
        (lambda: confidence_band(VALUES.astype(str)), "values.dtype="),
        (lambda: confidence_band(VALUES, 95.0), "level=95.0: must be a number in (0, 1)"),
        (lambda: confidence_band(VALUES, float("nan")), "level=nan: must be"),
        (lambda: confidence_band(VALUES, 0.95, "joint"), "kind='joint': must be 'pointwise' or "),
        (lambda: confidence_band(VALUES, resamples=10), "resamples=10: must be"),
        (lambda: confidence_band(VALUES, seed=-1), "seed=-1: must be"),
        (lambda: lost_interval(4, 3), "lost=4: must be a whole number in [0, 3]"),
        (lambda: lost_interval(0, 0), "seeds=0: must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, start):
    """Would catch a silent NaN band, a level in per cent, or an error that names no field."""
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(start) and "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(bands.KINDS))
def test_memory_is_bounded_for_a_million_seeds(kind):
    """Would catch a copy of 10^6 seeds x 100 slots (800 MB), or multipliers of that size."""
    values = series(np.random.default_rng(10).standard_normal((1_000_000, 100)))
    tracemalloc.start()
    try:
        band = confidence_band(values, kind=kind)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400e6
    # The standard error is 0.001; the simultaneous c for 100 independent slots is near 3.5.
    half = float((band.upper - band.lower).mean()) / 2
    target = {"pointwise": 1.96e-3, "simultaneous": 3.48e-3, "quantile": 1.96}[kind]
    assert half == pytest.approx(target, rel=0.02)
