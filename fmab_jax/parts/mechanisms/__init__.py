"""Noise that messages carry: one file per mechanism. A mechanism is known by its name.

Importing the package loads no mechanism; the first look at `MECHANISMS` loads all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fmab_jax.parts.mechanisms.mechanism import DELTA as DELTA
from fmab_jax.parts.mechanisms.mechanism import Mechanism as Mechanism
from fmab_jax.parts.registry import Registry, VariantOf

MECHANISMS: Registry[Mechanism] = Registry(
    __name__,
    Mechanism,  # type: ignore[type-abstract]
    "mechanism",
)


@dataclass(frozen=True)
class MechanismOf(VariantOf):
    """A mechanism, or its text."""

    registry: Registry[Mechanism] = field(default=MECHANISMS, kw_only=True)

    def text(self, value: Mechanism) -> str:
        """Returns the title and "noise"."""
        return f"{value.title} noise"
