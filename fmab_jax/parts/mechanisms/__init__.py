"""Noise that messages carry: one file per mechanism. A mechanism is known by its name.

Importing the package loads no mechanism; the first look at `MECHANISMS` loads all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.parameters import Kind
from fmab_jax.parts.mechanisms.base import DELTA as DELTA
from fmab_jax.parts.mechanisms.base import Mechanism as Mechanism
from fmab_jax.parts.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    __name__,
    Mechanism,  # type: ignore[type-abstract]
    "mechanism",
)


@dataclass(frozen=True)
class MechanismOf(Kind):
    """A mechanism, or its text."""

    metavar = "NAME"

    def check_value(self, name: str, value: object, remedy: str) -> Mechanism:
        """Returns the mechanism."""
        return MECHANISMS.parse(value, name)

    def text(self, value: Mechanism) -> str:
        """Returns the title and "noise"."""
        return f"{value.title} noise"

    def plain(self, value: Mechanism) -> str:
        """Returns the text that names the mechanism."""
        return value.text()

    def label(self, value: Mechanism) -> str:
        """Returns the text that names the mechanism."""
        return value.text()
