"""Registries of classes by name: those of a folder, one file each, and those of plug-ins."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Generic, TypeVar

from fmab_jax.core.laws import build_from_text
from fmab_jax.core.plugins import Named, defined_in, file_of
from fmab_jax.errors import check_frozen_class, refuse
from fmab_jax.parameters import parameters_of

T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """The classes of one kind by name. The first look imports the folder's files."""

    def __init__(self, package: str, base: type[T], noun: str, otherwise: str = "") -> None:
        """Takes the folder's package, the base class, the kind's name, and an example object."""
        self.package, self.base, self.noun, self.otherwise = package, base, noun, otherwise
        self._loaded: dict[str, type[T]] = {}

    @functools.cached_property
    def shipped(self) -> dict[str, type[T]]:
        """The folder's classes by name."""
        path = importlib.import_module(self.package).__path__
        names = [f"{self.package}.{module.name}" for module in pkgutil.iter_modules(path)]
        modules = map(importlib.import_module, names)
        return {owner.name: owner for x in modules for owner in defined_in(x, self.base)}

    def find(self) -> dict[str, type[T]]:
        """Returns all classes by name, those of plug-ins included."""
        return self.shipped | self._loaded

    def check_class(self, owner: type[T], origin: str) -> None:
        """Refuses a class of a plug-in that is incomplete, or whose name exists.

        Raises:
            ValueError: If it has no name, is no frozen dataclass, or leaves something out.
        """
        check_frozen_class(owner, origin)
        parameters_of(owner)
        namesake = self.find().get(owner.name, owner)
        # A changed version of the same file replaces the class.
        if owner.name in self.shipped or file_of(namesake) != file_of(owner):
            refuse("plugin", owner.name, f"the name of no other {self.noun}", "rename it")

    def register(self, owners: list[type[T]]) -> None:
        """Adds classes of a plug-in."""
        self._loaded |= {owner.name: owner for owner in owners if owner.name not in self.shipped}

    def parse(self, value: object, field: str) -> T:
        """Returns an object unchanged, or that of a text: a name and the values of its fields.

        Raises:
            ValueError: For anything else.
        """
        if not isinstance(value, self.base):
            return build_from_text(value, self.find(), field, f"a {self.noun}", self.otherwise)
        owner = type(value)
        if self.shipped.get(owner.name, owner) is not owner:
            refuse(field, owner.name, f"a {self.noun} with a name of its own", "rename it")
        check_frozen_class(owner, owner.name)
        # From now on ledgers and stores find the class by name.
        self.register([owner])
        return value
