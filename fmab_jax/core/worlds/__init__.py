"""Worlds: one file for each way in which means change. A world is known by its name."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass

from fmab_jax.core.laws import build_from_text
from fmab_jax.core.plugins import defined_in, file_of
from fmab_jax.core.worlds.base import World as World
from fmab_jax.core.worlds.contextual import ContextualWorld as ContextualWorld
from fmab_jax.errors import check_frozen_class, refuse
from fmab_jax.parameters import Kind, parameters_of

_loaded: dict[str, type[World]] = {}


@functools.cache
def _load_shipped() -> dict[str, type[World]]:
    modules = [
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    ]
    owners = (owner for module in modules for owner in defined_in(module, World))
    return {owner.name: owner for owner in owners}


def find_worlds() -> dict[str, type[World]]:
    """Returns the classes of all worlds by name, those of plug-ins included."""
    return _load_shipped() | _loaded


def check_class(owner: type[World], origin: str) -> None:
    """Refuses the class of a world that is incomplete, or whose name exists.

    Raises:
        ValueError: If it has no name, is no frozen dataclass, or leaves something out.
    """
    check_frozen_class(owner, origin)
    parameters_of(owner)
    namesake = find_worlds().get(owner.name, owner)
    # A changed version of the same file replaces the class.
    if owner.name in _load_shipped() or file_of(namesake) != file_of(owner):
        refuse("plugin", owner.name, "the name of no other world", "rename it")


def register(owners: list[type[World]]) -> None:
    """Adds worlds of a plug-in."""
    _loaded.update({owner.name: owner for owner in owners if owner.name not in _load_shipped()})


def world_of(value: object, field: str = "world") -> World:
    """Returns a world unchanged, or that of a text: drifting:CHANGES, one of a plug-in.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, World):
        if _load_shipped().get(value.name, type(value)) is not type(value):
            refuse(field, value.name, "a world with a name of its own", "rename it")
        check_frozen_class(type(value), value.name)
        register([type(value)])
        return value
    objects = ", or an object such as fmab_jax.Drifting(3)"
    world: World = build_from_text(value, find_worlds(), field, "a world", objects)
    return world


@dataclass(frozen=True)
class WorldOf(Kind[World | None]):
    """A world, or its text."""

    metavar = "WORLD"

    def check_value(self, name: str, value: object, remedy: str) -> World:
        """Returns the world."""
        return world_of(value, name)

    def text(self, value: World | None) -> str:
        """Returns the text that names the world, after the word."""
        return str(self.none_label) if value is None else f"world {value.text()}"

    def plain(self, value: World | None) -> str | None:
        """Returns the text that names the world."""
        return None if value is None else value.text()

    def label(self, value: World | None) -> str:
        """Returns the text that names the world."""
        return "none" if value is None else value.text()
