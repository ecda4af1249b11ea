"""Worlds: one file for each way in which means change. A world is known by its name."""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.core.registries import Registry
from fmab_jax.core.worlds.base import World as World
from fmab_jax.core.worlds.contextual import ContextualWorld as ContextualWorld
from fmab_jax.parameters import Kind

WORLDS: Registry[World] = Registry(
    __name__,
    World,  # type: ignore[type-abstract]
    "world",
    ", or an object such as fmab_jax.Drifting(3)",
)


@dataclass(frozen=True)
class WorldOf(Kind[World | None]):
    """A world, or its text."""

    metavar = "WORLD"

    def check_value(self, name: str, value: object, remedy: str) -> World:
        """Returns the world."""
        return WORLDS.parse(value, name)

    def text(self, value: World | None) -> str:
        """Returns the text that names the world, after the word."""
        return str(self.none_label) if value is None else f"world {value.text()}"

    def plain(self, value: World | None) -> str | None:
        """Returns the text that names the world."""
        return None if value is None else value.text()

    def label(self, value: World | None) -> str:
        """Returns the text that names the world."""
        return "none" if value is None else value.text()
