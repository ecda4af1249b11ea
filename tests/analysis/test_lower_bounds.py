"""What every algorithm loses in the end, against arithmetic by hand and searches on a grid."""

import math

import numpy as np
import pytest
import scipy.special

from fmab_jax.analysis import theory


def relative(x, y):
    return float(scipy.special.rel_entr(x, y) + scipy.special.rel_entr(1 - x, 1 - y))


def test_lai_robbins_by_hand():
    """Would catch kl with its arguments swapped, a base of 2, M for log M, or an arm left out."""
    # kl(1/4, 1/2) = ln 2 - H(1/4) = 0.130812, a gap of 1/4; log(10^4) = 9.210340.
    wanted = 0.25 / 0.13081203594113694 * 9.210340371976182
    assert theory.lai_robbins([0.5, 0.25], 10**4) == pytest.approx(wanted, rel=1e-12)
    means = [0.3, 0.9, 0.6, 0.9]
    constant = 0.6 / relative(0.3, 0.9) + 0.3 / relative(0.6, 0.9)
    together, alone = (theory.lai_robbins(means, 1000, 20, alone=alone) for alone in (False, True))
    assert together == pytest.approx(constant * math.log(20_000), rel=1e-12)
    assert alone == pytest.approx(20 * constant * math.log(1000), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.0, 3.0, None])
def test_private_bound_is_that_of_the_infimum(epsilon):
    """Would catch a divergence that is not the least cost of a detour over another mean."""
    means, total = np.array([0.02, 0.95, 0.5, 0.8, 0.0]), 0.0
    for mean in means[means < 0.95]:
        z = np.linspace(mean, 0.95, 400_001)
        there = scipy.special.rel_entr(z, 0.95) + scipy.special.rel_entr(1 - z, 1 - 0.95)
        way = np.where(z > mean, np.inf if epsilon is None else epsilon * (z - mean), 0.0)
        total += (0.95 - mean) / float((way + there).min())
    found = theory.private_lower_bound(means, epsilon, 500, 8)
    assert found == pytest.approx(total * math.log(4000), rel=1e-6)
    alone = theory.private_lower_bound(means, epsilon, 500, 8, alone=True)
    assert alone == pytest.approx(8 * total * math.log(500), rel=1e-6)


def test_corners_of_lower_bounds():
    """Would catch 0 / 0 where arms tie, or where a mean is 0 or 1."""
    assert theory.lai_robbins([0.4, 0.4], 100) == theory.lai_robbins([1.0], 100) == 0
    # Against a sure arm, one failure is enough; privately, 1 / epsilon of them.
    assert theory.lai_robbins([1.0, 0.5], 100) == 0
    hidden = theory.private_lower_bound([1.0, 0.5], 0.1, 100)
    assert hidden == pytest.approx(10 * math.log(100), rel=1e-12)
    found = theory.lai_robbins([0.5, 0.0], 100)
    assert found == pytest.approx(0.5 / math.log(2) * math.log(100), rel=1e-12)
    assert theory.lai_robbins([0.5, 0.0], 1) == 0
