"""Which cases of a test run by default."""

import pytest


def only(cases, *default):
    """Returns the cases for `parametrize`, all but some of them for `-m slow`."""
    slow = pytest.mark.slow
    return [each if each in default else pytest.param(each, marks=slow) for each in cases]
