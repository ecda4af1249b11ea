"""The platform that a program is traced for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

_platform: ContextVar[str] = ContextVar("platform", default="cpu")


def platform() -> str:
    """Returns "cpu", "gpu" or "tpu"."""
    return _platform.get()


@contextmanager
def traced_for(name: str) -> Iterator[None]:
    """Traces programs for "cpu", "gpu" or "tpu"; in this thread only.

    JAX does not know of it: a function under ``jit`` is traced once, for the platform of its first
    call.
    """
    token = _platform.set(name if name in ("cpu", "gpu", "tpu") else "gpu")
    try:
        yield
    finally:
        _platform.reset(token)


def traced_here(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that is traced for the platform on which JAX runs it by default."""

    @functools.wraps(function)
    def traced(*given: Any, **named: Any) -> Any:
        with traced_for(jax.default_backend()):
            return function(*given, **named)

    return traced


def is_accelerated() -> bool:
    """Tells whether the program that is traced is for an accelerator."""
    return _platform.get() != "cpu"


def is_for_tpu() -> bool:
    """Tells whether the program that is traced is for a TPU, which has no float64 of its own."""
    return _platform.get() == "tpu"
