"""Worlds: one file for each way in which means change. A world is known by its name."""

from __future__ import annotations

from fmab_jax.parts.registry import Registry
from fmab_jax.parts.worlds.contextual import ContextualWorld as ContextualWorld
from fmab_jax.parts.worlds.world import World as World

WORLDS: Registry[World] = Registry(
    __name__,
    World,  # type: ignore[type-abstract]
    "world",
    ", or an object such as fmab_jax.Drifting(3)",
)
