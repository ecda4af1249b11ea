"""Presences: one file for each way in which agents and links fail. A presence has a name."""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.parts.presences.base import BoundPresence as BoundPresence
from fmab_jax.parts.presences.base import Occasion as Occasion
from fmab_jax.parts.presences.base import Presence as Presence
from fmab_jax.parts.presences.base import cut_neighbours as cut_neighbours
from fmab_jax.parts.registry import Registry, VariantOf

PRESENCES: Registry[Presence] = Registry(
    __name__, Presence, "presence", ", or an object such as fmab_jax.Absent(0.1)"
)


@dataclass(frozen=True)
class PresenceOf(VariantOf):
    """A presence, or its text."""

    metavar = "PRESENCE"
    registry = PRESENCES
