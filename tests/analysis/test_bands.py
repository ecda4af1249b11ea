"""Bands over seeds: hand values, coverage with a control that must fail, memory, refusals."""

import math

import numpy as np
import pytest
import xarray as xr
from refusals import refuses
from scipy import integrate, stats

from fmab_jax.analysis import bands
from fmab_jax.analysis.bands import (
    compute_moments_band,
    confidence_band,
    lost_interval,
    paired_difference,
)


def series(values, **coords):
    """Wraps (seed, time) values the way simulate does."""
    return xr.DataArray(
        values,
        dims=("seed", "time"),
        coords={"seed": np.arange(len(values)), "time": 10 * np.arange(values.shape[1]) + 10}
        | {name: ("seed", value) for name, value in coords.items()},
        attrs={"units": "reward"},
        name="regret",
    )


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("offset", [0, 10**6])
def test_pointwise_band_equals_scipy(level, offset):
    """Would catch ddof 0, a normal or one-sided quantile, and digits lost to a large mean."""
    links = np.random.default_rng(0).poisson(30.0, (17, 8)).astype(np.int64)
    band = confidence_band(series(links + offset), level, "pointwise")
    low, high = stats.t.interval(level, 16, links.mean(axis=0), stats.sem(links, axis=0))
    np.testing.assert_allclose(band.upper - band.lower, high - low, rtol=1e-8)
    np.testing.assert_allclose(band["mean"], links.mean(axis=0) + offset, rtol=1e-15)
    np.testing.assert_allclose(band.lower + band.upper, 2 * band["mean"], rtol=1e-12)
    assert band["mean"].attrs["units"] == "reward" and int(band.seeds) == 17


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

    def covered(s):
        inside = 2 * stats.norm.cdf(critical[0] * s) - 1
        return inside**times * stats.chi.pdf(s * np.sqrt(15), 15) * np.sqrt(15)

    level = integrate.quad(covered, 0, 6)[0]
    outside = stats.binomtest(round((1 - level) * 100_000), 100_000, 0.05)
    assert outside.pvalue > 1e-6


def covers(kind, replications):
    """Counts how often a 95 % band covers the whole mean, 0, of a Gaussian random walk."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(replications):
        walk = rng.standard_normal((60, 50)).cumsum(axis=1)
        band = confidence_band(series(walk), 0.95, kind, resamples=2000)
        hits += bool(((band.lower <= 0) & (band.upper >= 0)).all())
    return hits


def test_only_the_simultaneous_band_covers_the_whole_curve():
    """Would catch a band too narrow (below 89 % coverage) or too wide (above 99.5 %)."""
    assert stats.binomtest(covers("simultaneous", 300), 300, 0.95).pvalue > 1e-6
    assert stats.binomtest(covers("pointwise", 300), 300, 0.95).pvalue < 1e-6


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


@pytest.mark.parametrize("level", [0.95, 1 - 1e-12, math.nextafter(1, 0)])
def test_a_level_near_1_has_a_band(level):
    """Would catch a chance of error that is lost beside 1, so that ends are infinite or NaN."""
    values = np.random.default_rng(3).gamma(2.0, 1.0, (20, 3))
    values[:, 0] = 7.0  # all seeds agree
    for kind in ("pointwise", "simultaneous"):
        band = confidence_band(series(values), level, kind)
        half = stats.t.isf((1 - level) / 2, 19) * stats.sem(values, axis=0)
        assert float(band.lower[0]) == float(band.upper[0]) == 7.0
        assert (np.asarray(band.upper - band["mean"]) >= 0.999 * half).all()
        assert np.isfinite(band.upper).all() and np.isfinite(band.lower).all()
    high = -math.expm1(math.log((1 - level) / 2) / 20)
    assert lost_interval(0, 20, level) == (0.0, pytest.approx(high, rel=1e-9))


def test_quantile_band_holds_the_level_of_the_seeds():
    """Would catch tails of 1 - level instead of half of it, or the median taken for the mean."""
    values = np.arange(1001.0)[:, None] ** 2
    band = confidence_band(series(values), 0.9, "quantile")
    found = [float(band[name][0]) for name in ("lower", "median", "upper")]
    assert found == pytest.approx([50**2, 500**2, 950**2], rel=1e-12)
    assert float(band["mean"][0]) == pytest.approx(1000 * 2001 / 6, rel=1e-14)
    assert "not a confidence band" in band.attrs["description"]


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


@pytest.mark.parametrize("event, other", [bands.EVENTS, bands.EVENTS[::-1]])
def test_what_befell_seeds_is_counted_beside_the_band(event, other):
    """Would catch a band that hides rare catastrophes, or an interval of another count or level."""
    marks = np.zeros((2, 100), bool)
    marks[0, [4, 50, 99]] = marks[1, 10:17] = True
    values = series(np.random.default_rng(8).standard_normal((100, 2)))
    values = values.assign_coords({event: ("seed", marks[0]), other: ("seed", marks[1])})
    band = confidence_band(values, 0.9)
    for name, number in ((event, 3), (other, 7)):
        assert (int(band[name]), int(band.seeds)) == (number, 100)
        ends = (float(band[f"{name}_lower"]), float(band[f"{name}_upper"]))
        assert ends == lost_interval(number, 100, 0.9)
    alone = confidence_band(values.drop_vars(event), 0.9)
    assert event not in alone and int(alone[other]) == 7


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


def pair():
    """Returns two series of the same 30 seeds, most of whose randomness is shared."""
    rng = np.random.default_rng(12)
    shared = rng.standard_normal((30, 6)).cumsum(axis=1)
    first, second = (shared + 0.1 * rng.standard_normal((30, 6)) + shift for shift in (3, 1))
    lost = np.arange(30)
    return (
        series(first, best_arm_lost=lost < 4, worse_arm_played=lost < 9),
        series(second, best_arm_lost=(lost >= 2) & (lost < 7), worse_arm_played=lost > 26),
    )


@pytest.mark.parametrize("kind", list(bands.KINDS))
def test_a_paired_difference_is_the_band_of_the_differences(kind):
    """Would catch seeds paired with others, a lost sign, or options that do not reach the band."""
    first, second = pair()
    band = paired_difference(first, second, 0.9, kind, resamples=500, seed=4)
    alone = series(first.values - second.values)
    expected = confidence_band(alone, 0.9, kind, resamples=500, seed=4)
    for name in expected:
        np.testing.assert_array_equal(band[name], expected[name], str(name))
    # A seed counts that lost it in the one or the other.
    assert (int(band.best_arm_lost), int(band.seeds)) == (7, 30)
    assert float(band.best_arm_lost_upper) == lost_interval(7, 30, 0.9)[1]
    assert int(band.worse_arm_played) == 12
    np.testing.assert_array_equal(band.time, first.time)
    assert band["mean"].attrs == {"units": "reward", "long_name": "difference of regret"}
    wide = confidence_band(first, 0.9, kind)
    assert (band.upper - band.lower < (wide.upper - wide.lower) / 2).all()
    assert "best_arm_lost" not in paired_difference(first, second.drop_vars("best_arm_lost"))


@pytest.mark.parametrize("seeds, slots", [(40, 12), (12, 40)])
def test_the_band_of_moments_is_that_of_the_curves(seeds, slots):
    """Would catch a biased covariance, another critical value, or moments of other slots."""
    values = np.random.default_rng(13).standard_normal((seeds, slots)).cumsum(axis=1)
    moments = values.mean(axis=0), np.cov(values.T)
    mean, half = compute_moments_band(seeds, *moments, 0.9, "pointwise")
    band = confidence_band(series(values), 0.9, "pointwise")
    np.testing.assert_allclose(mean, band["mean"], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(half, (band.upper - band.lower) / 2, rtol=1e-12)
    # The same law, by other draws: share the level's quantile within Monte Carlo error.
    _, half = compute_moments_band(seeds, *moments, 0.9, resamples=50_000, seed=1)
    band = confidence_band(series(values), 0.9, resamples=50_000, seed=2)
    ratio = half / ((band.upper - band.lower).values / 2)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert ratio[0] == pytest.approx(1, rel=0.02) and ratio[0] != 1


def test_no_simultaneous_band_is_narrower_than_the_pointwise_one():
    """Would catch a band of few draws without its floor: of 100, about half give less."""
    curve = series(np.random.default_rng(15).standard_normal((20, 1)))
    pointwise = confidence_band(curve, 0.95, "pointwise")
    ratios = []
    for seed in range(8):
        band = confidence_band(curve, 0.95, resamples=100, seed=seed)
        ratios.append(float(((band.upper - band.lower) / (pointwise.upper - pointwise.lower))[0]))
    assert min(ratios) == pytest.approx(1, rel=1e-9) and max(ratios) > 1.01


def test_moments_without_spread_have_no_width():
    """Would catch 0 / 0 where all seeds agree, at one slot or at all of them."""
    mean, half = compute_moments_band(10, np.array([1.0, 2.0, 3.0]), np.diag([1.0, 0.0, 4.0]), 0.95)
    assert half[1] == 0 and half[2] == pytest.approx(2 * half[0], rel=1e-14) and half[0] > 0
    assert compute_moments_band(10, np.ones(2), np.zeros((2, 2)), 0.95)[1].tolist() == [0.0, 0.0]


def test_only_common_seeds_and_slots_are_paired():
    """Would catch a difference of other seeds, or of curves at other slots."""
    first, second = pair()
    slots = [1, 2, 4, 8, 16, 32]
    for other, field in (
        (second.isel(seed=slice(29)), "seed"),
        (second.assign_coords(seed=np.arange(30) + 1), "seed"),
        (second.isel(time=slice(5)), "time"),
        (second.assign_coords(time=second.time + 1), "time"),
        (second.drop_vars("time").assign_coords(slot=("time", slots)), "time"),
    ):
        refuses(f"^second.{field}=", paired_difference, first, other)


def summarised():
    """Returns the summary of two cells of 30 and 50 seeds, and their curves."""
    rng = np.random.default_rng(14)
    cells = [rng.standard_normal((seeds, 5)).cumsum(axis=1) for seeds in (30, 50)]
    data = xr.Dataset(
        {
            "regret_mean": (("rounds", "time"), [x.mean(axis=0) for x in cells]),
            "regret_covariance": (("rounds", "time", "time_2"), [np.cov(x.T) for x in cells]),
            "seeds": ("rounds", [30, 50]),
            "best_arm_lost": ("rounds", [0, 3]),
            "worse_arm_played": ("rounds", [4, 0]),
        },
        {"rounds": ["none", 2], "time": [1, 2, 4, 8, 16]},
    )
    return data, cells


@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_a_summary_has_a_band_for_each_cell(kind):
    """Would catch the seeds, moments or lost arms of another cell, or dimensions turned."""
    data, cells = summarised()
    for given in (data, data.transpose("time_2", "time", "rounds")):
        band = confidence_band(given, 0.9, kind)
        for place, curves in enumerate(cells):
            covariance = np.cov(curves.T)
            mean, half = compute_moments_band(
                len(curves), curves.mean(axis=0), covariance, 0.9, kind
            )
            cell = band.isel(rounds=place)
            np.testing.assert_allclose(cell["mean"], mean, rtol=1e-12)
            np.testing.assert_allclose(cell.upper, mean + half, rtol=1e-12)
            np.testing.assert_allclose(cell.lower, mean - half, rtol=1e-12)
            assert int(cell.seeds) == len(curves)
            for event, numbers in (("best_arm_lost", [0, 3]), ("worse_arm_played", [4, 0])):
                assert int(cell[event]) == numbers[place]
                ends = (float(cell[f"{event}_lower"]), float(cell[f"{event}_upper"]))
                assert ends == lost_interval(numbers[place], len(curves), 0.9)
    assert band.attrs["description"] == bands.describe_band(0.9, kind)
    one = confidence_band(data.isel(rounds=1), 0.9, kind)
    np.testing.assert_array_equal(one.upper, band.upper.isel(rounds=1))


@pytest.mark.parametrize("level, place", [(0.9, 90), (0.5, 50), (0.99, 99), (0.1, 10)])
def test_the_critical_value_draw_by_draw(level, place):
    """Would catch other degrees of freedom, a seed that does nothing, or one side for two."""
    root = np.array([[1.0, 0.6], [0.0, 0.8]])
    rng = np.random.default_rng(3)
    chi = np.sqrt(rng.chisquare(7, 100) / 7)
    drawn = rng.standard_normal((100, 2))
    first, second = drawn[:, 0], 0.6 * drawn[:, 0] + 0.8 * drawn[:, 1]
    largest = np.sort(np.maximum(abs(first), abs(second)) / chi)
    assert bands._sample_critical(root, 8, level, 100, 3) == pytest.approx(
        largest[place], rel=1e-12
    )
