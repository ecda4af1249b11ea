"""Which cases of a test run by default."""

import pytest


def only(cases, *default):
    """Returns the cases for `parametrize`, all but some of them for `-m slow`."""
    slow = pytest.mark.slow
    return [item if item in default else pytest.param(item, marks=slow) for item in cases]
