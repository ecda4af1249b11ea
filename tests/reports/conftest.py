"""One sweep for all tests of reports, so that one program is compiled."""

from __future__ import annotations

import pytest

import fmab_jax as fmab


@pytest.fixture(scope="session")
def grid():
    """A sweep with labels of mixed kinds."""
    sizes = {"agents": 5, "arms": 10, "horizon": 10**4, "seeds": 20, "times": 8}
    return fmab.sweep("cdp", **sizes, epsilon=[0.1, 1, None], rounds=[2, None], progress=False)
