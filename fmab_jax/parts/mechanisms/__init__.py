"""Noise that messages carry: one file per mechanism. A mechanism is known by its name.

Importing the package loads no mechanism; the first look at `MECHANISMS` loads all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.parts.mechanisms.base import DELTA as DELTA
from fmab_jax.parts.mechanisms.base import Mechanism as Mechanism
from fmab_jax.parts.registry import Registry, VariantOf

MECHANISMS: Registry[Mechanism] = Registry(
    __name__,
    Mechanism,  # type: ignore[type-abstract]
    "mechanism",
)


@dataclass(frozen=True)
class MechanismOf(VariantOf):
    """A mechanism, or its text."""

    metavar = "NAME"
    registry = MECHANISMS

    def text(self, value: Mechanism) -> str:
        """Returns the title and "noise"."""
        return f"{value.title} noise"
