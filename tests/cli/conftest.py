"""Every command runs in an empty folder."""

import pytest

from fmab_jax.algorithms import base


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder in which a command runs, which forgets the plug-ins of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_loaded", {})
    return tmp_path
