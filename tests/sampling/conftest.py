"""The scope of 64-bit types, in which the package calls what is tested here."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture
def x64():
    """Sets 64-bit types for a test."""
    with jax.enable_x64(True):
        yield
