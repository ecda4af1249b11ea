"""Presences: one file for each way in which agents and links fail. A presence has a name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass

from fmab_jax.core.laws import build_from_text
from fmab_jax.core.plugins import defined_in, file_of
from fmab_jax.core.presences.base import BoundPresence as BoundPresence
from fmab_jax.core.presences.base import Occasion as Occasion
from fmab_jax.core.presences.base import Presence as Presence
from fmab_jax.core.presences.base import cut_neighbours as cut_neighbours
from fmab_jax.errors import check_frozen_class, refuse
from fmab_jax.parameters import Kind, parameters_of

_loaded: dict[str, type[Presence]] = {}


@functools.cache
def _load_shipped() -> dict[str, type[Presence]]:
    modules = [
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    ]
    owners = (owner for module in modules for owner in defined_in(module, Presence))
    return {owner.name: owner for owner in owners}


def find_presences() -> dict[str, type[Presence]]:
    """Returns the classes of all presences by name, those of plug-ins included."""
    return _load_shipped() | _loaded


def check_class(owner: type[Presence], origin: str) -> None:
    """Refuses the class of a presence that is incomplete, or whose name exists.

    Raises:
        ValueError: If it has no name, is no frozen dataclass, or leaves something out.
    """
    check_frozen_class(owner, origin)
    parameters_of(owner)
    namesake = find_presences().get(owner.name, owner)
    # A changed version of the same file replaces the class.
    if owner.name in _load_shipped() or file_of(namesake) != file_of(owner):
        refuse("plugin", owner.name, "the name of no other presence", "rename it")


def register(owners: list[type[Presence]]) -> None:
    """Adds presences of a plug-in."""
    _loaded.update({owner.name: owner for owner in owners if owner.name not in _load_shipped()})


def presence_of(value: object, field: str = "presence") -> Presence:
    """Returns a presence unchanged, or that of a text: absent:PROBABILITY, one of a plug-in.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, Presence):
        if _load_shipped().get(value.name, type(value)) is not type(value):
            refuse(field, value.name, "a presence with a name of its own", "rename it")
        check_frozen_class(type(value), value.name)
        register([type(value)])
        return value
    objects = ", or an object such as fmab_jax.Absent(0.1)"
    presence: Presence = build_from_text(value, find_presences(), field, "a presence", objects)
    return presence


@dataclass(frozen=True)
class PresenceOf(Kind[Presence | None]):
    """A presence, or its text."""

    metavar = "PRESENCE"

    def check_value(self, name: str, value: object, remedy: str) -> Presence:
        """Returns the presence."""
        return presence_of(value, name)

    def text(self, value: Presence | None) -> str:
        """Returns the text that names the presence, after the word."""
        return str(self.none_label) if value is None else f"presence {value.text()}"

    def plain(self, value: Presence | None) -> str | None:
        """Returns the text that names the presence."""
        return None if value is None else value.text()

    def label(self, value: Presence | None) -> str:
        """Returns the text that names the presence."""
        return "none" if value is None else value.text()
