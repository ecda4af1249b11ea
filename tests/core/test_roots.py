"""Roots are those of scipy's routine, to the bit."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from fmab_jax.core.roots import find_root

SMALL = st.floats(-10.0, 10.0)


@settings(deadline=None)
@given(SMALL, st.floats(0.1, 5.0), SMALL, st.floats(1e-15, 1e-3), st.sampled_from([0, 1, 2]))
def test_a_root_is_that_of_scipy(root, slope, bend, tolerance, kind):
    """Would catch a wrong step of interpolation, a tolerance that is not used, or a last step that
    is not made: published leaks would move."""
    functions = (
        lambda x: math.expm1(slope * (x - root)) + math.atan(bend * (x - root)) * slope,
        lambda x: (x - root) ** 3 + abs(bend) * (x - root),
        lambda x: math.tanh(slope * (x - root)) * math.exp(-bend * x / 10.0),
    )
    low, high = -12.0, 13.5
    function = functions[kind]
    if (function(low) < 0.0) == (function(high) < 0.0):
        return
    expected, report = brentq(function, low, high, xtol=tolerance, full_output=True, disp=False)
    if report.converged:
        assert find_root(function, low, high, tolerance=tolerance) == expected
    else:
        with pytest.raises(ArithmeticError):
            find_root(function, low, high, tolerance=tolerance)


def test_a_root_at_an_end_and_no_root():
    """Would catch an end that is passed over, and a number that is no root."""
    assert find_root(lambda x: x - 1.0, 1.0, 2.0) == 1.0
    assert find_root(lambda x: x - 2.0, 1.0, 2.0) == 2.0
    with pytest.raises(ValueError, match="same sign"):
        find_root(lambda x: x + 1.0, 0.0, 1.0)
    with pytest.raises(ArithmeticError):
        find_root(lambda x: math.nan if 0.0 < x < 1.0 else x - 0.5, 0.0, 1.0)
