"""Presences: one file for each way in which agents and links fail. A presence has a name."""

from __future__ import annotations

from fmab_jax.parts.presences.presence import BoundPresence as BoundPresence
from fmab_jax.parts.presences.presence import Occasion as Occasion
from fmab_jax.parts.presences.presence import Presence as Presence
from fmab_jax.parts.presences.presence import cut_neighbours as cut_neighbours
from fmab_jax.parts.registry import Registry

PRESENCES: Registry[Presence] = Registry(
    __name__, Presence, "presence", ", or an object such as fmab_jax.Absent(0.1)"
)
