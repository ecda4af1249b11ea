"""Noise that messages carry: one file per mechanism. A mechanism is known by its name.

Importing the package loads no mechanism; the first look at `find_mechanisms` loads all of them.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass

from fmab_jax.core.laws import build_from_text
from fmab_jax.core.plugins import defined_in, file_of
from fmab_jax.errors import check_frozen_class, refuse
from fmab_jax.mechanisms.base import Mechanism as Mechanism
from fmab_jax.parameters import Kind, parameters_of

_loaded: dict[str, type[Mechanism]] = {}


@functools.cache
def _load_shipped() -> dict[str, type[Mechanism]]:
    modules = [
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    ]
    owners = (owner for module in modules for owner in defined_in(module, Mechanism))
    return {owner.name: owner for owner in owners}


def find_mechanisms() -> dict[str, type[Mechanism]]:
    """Returns the classes of all mechanisms by name, those of plug-ins included."""
    return _load_shipped() | _loaded


def check_class(owner: type[Mechanism], origin: str) -> None:
    """Refuses the class of a mechanism that is incomplete, or whose name exists.

    Raises:
        ValueError: If it has no name, is no frozen dataclass, or leaves something out.
    """
    check_frozen_class(owner, origin)
    parameters_of(owner)
    namesake = find_mechanisms().get(owner.name, owner)
    # A changed version of the same file replaces the class.
    if owner.name in _load_shipped() or file_of(namesake) != file_of(owner):
        refuse("plugin", owner.name, "the name of no other mechanism", "rename it")


def register(owners: list[type[Mechanism]]) -> None:
    """Adds mechanisms of a plug-in."""
    _loaded.update({owner.name: owner for owner in owners if owner.name not in _load_shipped()})


def mechanism_of(value: object, field: str = "mechanism") -> Mechanism:
    """Returns a mechanism unchanged, or that of a text, such as laplace or gaussian.

    Raises:
        ValueError: For anything else.
    """
    if isinstance(value, Mechanism):
        # Its class is known from now on, so that ledgers find it by name.
        if _load_shipped().get(value.name, type(value)) is not type(value):
            refuse(field, value.name, "a mechanism with a name of its own", "rename it")
        register([type(value)])
        return value
    return build_from_text(value, find_mechanisms(), field, "a mechanism", "")


@dataclass(frozen=True)
class MechanismOf(Kind):
    """A mechanism, or its text."""

    metavar = "NAME"

    def check_value(self, name: str, value: object, remedy: str) -> Mechanism:
        """Returns the mechanism."""
        return mechanism_of(value, name)

    def text(self, value: Mechanism) -> str:
        """Returns the title."""
        return f"{value.title} noise"

    def plain(self, value: Mechanism) -> str:
        """Returns the text that names the mechanism."""
        return value.text()

    def label(self, value: Mechanism) -> str:
        """Returns the text that names the mechanism."""
        return value.text()
