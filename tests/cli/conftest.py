"""Every command runs in an empty folder."""

import pytest

from fmab_jax.algorithms import base
from fmab_jax.sweeps import progress


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder in which a command runs, which forgets the plug-ins of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base.ALGORITHMS, "loaded", {})
    # On a busy machine any run is a long one, which says so.
    monkeypatch.setattr(progress, "LONG_S", 1e5)
    return tmp_path
