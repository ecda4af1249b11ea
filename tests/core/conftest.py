"""The scope of 64-bit types, in which the package calls what is tested here."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def x64() -> Iterator[None]:
    """Sets 64-bit types for a test."""
    with jax.enable_x64(True):
        yield
