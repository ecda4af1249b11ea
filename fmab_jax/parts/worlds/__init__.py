"""Worlds: one file for each way in which means change. A world is known by its name."""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.parts.registry import Registry, VariantOf
from fmab_jax.parts.worlds.base import World as World
from fmab_jax.parts.worlds.contextual import ContextualWorld as ContextualWorld

WORLDS: Registry[World] = Registry(
    __name__,
    World,  # type: ignore[type-abstract]
    "world",
    ", or an object such as fmab_jax.Drifting(3)",
)


@dataclass(frozen=True)
class WorldOf(VariantOf):
    """A world, or its text."""

    metavar = "WORLD"
    registry = WORLDS
