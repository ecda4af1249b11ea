"""The target platform of a program, set while JAX traces it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_platform: ContextVar[str] = ContextVar("platform", default="cpu")


def platform() -> str:
    """Returns "cpu", "gpu" or "tpu"."""
    return _platform.get()


@contextmanager
def trace_for(name: str) -> Iterator[None]:
    """Traces programs for "cpu", "gpu" or "tpu"; in this thread only.

    JAX ignores it: it traces a function under ``jit`` once, for the platform of the first call.
    """
    token = _platform.set(name if name in ("cpu", "gpu", "tpu") else "gpu")
    try:
        yield
    finally:
        _platform.reset(token)


def is_accelerated() -> bool:
    """Tells whether the target of the traced program is an accelerator."""
    return _platform.get() != "cpu"


def is_for_tpu() -> bool:
    """Tells whether the target of the traced program is a TPU, which has no native float64."""
    return _platform.get() == "tpu"
