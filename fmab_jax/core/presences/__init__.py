"""Presences: one file for each way in which agents and links fail. A presence has a name."""

from __future__ import annotations

from dataclasses import dataclass

from fmab_jax.core.presences.base import BoundPresence as BoundPresence
from fmab_jax.core.presences.base import Occasion as Occasion
from fmab_jax.core.presences.base import Presence as Presence
from fmab_jax.core.presences.base import cut_neighbours as cut_neighbours
from fmab_jax.core.registries import Registry
from fmab_jax.parameters import Kind

PRESENCES: Registry[Presence] = Registry(
    __name__, Presence, "presence", ", or an object such as fmab_jax.Absent(0.1)"
)


@dataclass(frozen=True)
class PresenceOf(Kind[Presence | None]):
    """A presence, or its text."""

    metavar = "PRESENCE"

    def check_value(self, name: str, value: object, remedy: str) -> Presence:
        """Returns the presence."""
        return PRESENCES.parse(value, name)

    def text(self, value: Presence | None) -> str:
        """Returns the text that names the presence, after the word."""
        return str(self.none_label) if value is None else f"presence {value.text()}"

    def plain(self, value: Presence | None) -> str | None:
        """Returns the text that names the presence."""
        return None if value is None else value.text()

    def label(self, value: Presence | None) -> str:
        """Returns the text that names the presence."""
        return "none" if value is None else value.text()
