"""Moments, histograms and counts: against exact arithmetic, in any order, on any machine."""

import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fmab_jax
from fmab_jax.analysis import device_summary, summary
from fmab_jax.analysis.summary import BIN_WIDTH


def two_pass(curves):
    """Returns mean and covariance by the textbook, in 64 bits of mantissa."""
    wide = curves.astype(np.longdouble)
    mean = wide.mean(0)
    apart = wide - mean
    products = [[(apart[:, i] * other).sum() for other in apart.T] for i in range(len(mean))]
    return mean, np.array(products) / (len(curves) - 1)


def assert_moments(found, mean, covariance):
    """Compares with 1e-12 relative: a covariance relative to the two deviations."""
    np.testing.assert_allclose(found.mean, mean.astype(np.float64), rtol=1e-12, atol=0)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.multiply.outer(deviation, deviation)
    if found.scatter.ndim == 1:
        covariance, scale = np.diag(covariance), np.square(deviation)
    wrong = np.abs(found.covariance - covariance) / scale
    assert float(wrong.max()) < 1e-12


def walks(seeds, times, offset, seed=0):
    """Returns correlated curves of deviation about 1 around an offset."""
    rng = np.random.default_rng(seed)
    return offset + rng.standard_normal((seeds, times)).cumsum(1) / math.sqrt(times)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e7])
@pytest.mark.parametrize("full", [True, False])
def test_moments_of_a_million_values_are_the_two_pass_ones(offset, full):
    """Would catch digits lost to a large mean (mean / sd = 1e7), a block left out, ddof 0."""
    curves = walks(400_123, 3, offset)
    assert_moments(summary.compute_moments(curves, full=full), *two_pass(curves))


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_parts_merged_in_any_of_20_orders_are_the_whole(offset):
    """Would catch a merge that needs an order, equal parts or a common anchor."""
    curves = walks(60_000, 5, offset)
    curves[:20_000] += 3.0  # parts that differ in their means
    truth = two_pass(curves)
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.choice(np.arange(1, 60_000), 40, replace=False))
    parts = [summary.compute_moments(part) for part in np.split(curves, [*cuts, 59_999])]
    assert min(part.seeds for part in parts) == 1
    for _ in range(20):
        found = summary.merge_all([parts[place] for place in rng.permutation(len(parts))])
        assert found.seeds == 60_000
        assert_moments(found, *truth)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e7 + 0.1, 1e300])
@pytest.mark.parametrize("full", [True, False])
def test_constant_curves_have_exactly_no_scatter(value, full):
    """Would catch the rounding of a mean showing as spread, in one part or after a merge."""
    parts = [
        summary.compute_moments(np.full((seeds, 3), value), full=full) for seeds in (1, 2500, 7)
    ]
    for found in (parts[1], summary.merge_all(parts)):
        assert found.mean.tolist() == 3 * [value]
        assert not found.scatter.any() and not found.covariance.any()


def test_moments_of_small_numbers_are_exact():
    """Would catch a lost cross term: 0, 1, 2 and 0, 4, -1 have products known by hand."""
    found = summary.compute_moments(np.array([[0.0, 0.0], [1.0, 4.0], [2.0, -1.0]]))
    assert (found.seeds, found.mean.tolist()) == (3, [1.0, 1.0])
    assert found.scatter.tolist() == [[2.0, -1.0], [-1.0, 14.0]]
    assert found.covariance.tolist() == [[1.0, -0.5], [-0.5, 7.0]]
    one = summary.compute_moments(np.array([[3.0, 5.0]]))
    assert one.mean.tolist() == [3.0, 5.0] and np.isnan(one.covariance).all()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("seeds", "times"), [(1, 3), (5, 2), (1000, 100), (1024, 7), (2500, 50)])
def test_a_device_finds_the_same_bytes(seeds, times, full):
    """Would catch rows added in another order, or a quotient that is a product."""
    walk = np.random.default_rng(3).exponential(size=(2, seeds, times)).cumsum(2)
    walk[:, :, 0] = 0.0
    walk[1] *= 1e-3
    with jax.enable_x64(True):
        found = device_summary.compute_moments(jnp.asarray(walk), full=full)
    for curves, own in zip(walk, found, strict=True):
        expected = summary.compute_moments(curves, full=full)
        assert own.seeds == expected.seeds
        for mine, other in zip(own[1:], expected[1:], strict=True):
            assert mine.tobytes() == other.tobytes()


_BYTES = """
import hashlib, sys
import numpy as np
from fmab_jax.analysis import summary
assert "jax" not in sys.modules
for seeds, times in ((2000, 100), (1025, 130), (3000, 37), (1500, 400), (4097, 3)):
    curves = 1e6 + np.random.default_rng(0).standard_normal((seeds, times)).cumsum(1)
    for full in (True, False):
        found = summary.compute_moments(curves, full=full, threads=int(sys.argv[1]))
        print(hashlib.sha256(found.offset.tobytes() + found.scatter.tobytes()).hexdigest())
"""


def test_bytes_of_moments_depend_on_neither_threads_nor_kernels():
    """Would catch blocks added up as threads end, or by BLAS's: a resumed sweep of other bytes."""
    environment = os.environ | {"PYTHONPATH": str(Path(fmab_jax.__file__).parents[1])}
    settings = [{"OPENBLAS_NUM_THREADS": str(threads)} for threads in (1, 2, 4)]
    settings.append({"OPENBLAS_CORETYPE": "Prescott"})  # no AVX, no fused multiplication
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _BYTES, str(threads)],
            env=environment | setting,
            stdout=subprocess.PIPE,
            text=True,
        )
        for setting, threads in zip(settings, (1, 3, 2, 1), strict=True)
    ]
    said = [process.communicate()[0].split() for process in running]
    assert len(set(said[0])) == 10
    assert said[1:] == 3 * [said[0]]


LEVELS = np.array([0.01, 0.05, 0.07, 0.25, 0.5, 0.55, 0.75, 0.95, 0.99, 1.0])


def order_statistics(values):
    """Returns the smallest value whose share of values at or below reaches each level."""
    places = [math.ceil(Fraction(str(level)) * len(values)) - 1 for level in LEVELS]
    return np.sort(values)[places]


@pytest.mark.parametrize("seeds", [1, 2, 7, 100, 1000, 20_000])
@pytest.mark.parametrize("kind", ["lognormal", "narrow", "huge", "tiny"])
def test_histogram_quantiles_are_order_statistics_within_a_bin(seeds, kind):
    """Would catch interpolation, a rank off by one, or a bin wider than it says."""
    rng = np.random.default_rng(3)
    values = {
        "lognormal": rng.lognormal(5, 3, seeds),
        "narrow": 1e4 * (1 + 1e-3 * rng.random(seeds)),
        "huge": 2.0**53 * rng.random(seeds),
        "tiny": 1e-11 + 1e-9 * rng.random(seeds),
    }[kind]
    found = summary.read_quantiles(*summary.count_values(summary.find_bins(values)), LEVELS)
    np.testing.assert_allclose(found, order_statistics(values), rtol=BIN_WIDTH, atol=0)


def test_counts_merge_exactly_in_any_order():
    """Would catch a value counted twice or lost where parts hold different values."""
    rng = np.random.default_rng(5)
    values = rng.poisson(3.0, 5000) ** 2
    whole, expected = np.unique(values, return_counts=True)
    parts = [summary.count_values(part) for part in np.split(values, [1, 20, 21, 1500, 4000])]
    for _ in range(20):
        found, counts = summary.add_counts([parts[i] for i in rng.permutation(len(parts))])
        assert found.tolist() == whole.tolist() and counts.tolist() == expected.tolist()
        assert counts.dtype == np.int64
