"""Registries of classes by name: those of a folder, one file each, and those of plug-ins."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import jax
import numpy as np

from fmab_jax.errors import check_frozen_class, refuse
from fmab_jax.parameters import UNSET, Configurable, Kind, parameters_of
from fmab_jax.parts.laws import build_from_text
from fmab_jax.parts.plugins import Named, defined_in, file_of

T = TypeVar("T", bound=Named)
V = TypeVar("V", bound="Variant")


@dataclass(frozen=True)
class Variant(Named, Configurable):
    """A value that an option writes as a name and the values of its fields, such as drifting:3.

    In a compiled loop, fields that are floats are traced, and all others are static.

    Attributes:
        name: For options.
        title: For people.
    """

    title: ClassVar[str]

    def text(self) -> str:
        """Returns the value as an option is written, without fields that are the default."""
        pairs = [(p, getattr(self, name)) for name, p in parameters_of(type(self)).items()]
        while pairs and pairs[-1][0].default is not UNSET and pairs[-1][1] == pairs[-1][0].default:
            pairs.pop()
        values = ",".join(str(value) for _, value in pairs)
        return f"{self.name}:{values}" if values else self.name

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        jax.tree_util.register_static(cls)


def split_floats(value: V) -> tuple[V, dict[str, np.ndarray]]:
    """Returns a value without its floats, the key of a compilation, and these floats."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    floats = {n: np.asarray(x, np.float64) for n, x in fields.items() if isinstance(x, float)}
    return replace_fields(value, dict.fromkeys(floats)), floats


def replace_fields(value: V, fields: Mapping[str, object]) -> V:
    """Returns a copy of a value with other fields, unchecked."""
    value = copy.copy(value)
    for name, field in fields.items():
        object.__setattr__(value, name, field)
    return value


class Registry(Generic[T]):
    """The classes of one kind by name. The first look imports the folder's files."""

    def __init__(self, package: str, base: type[T], noun: str, otherwise: str = "") -> None:
        """Takes the folder's package, the base class, its noun, and what else a refusal allows."""
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


@dataclass(frozen=True)
class VariantOf(Kind[Any]):
    """A value of a registry, or its text; or none."""

    registry: ClassVar[Registry[Any]]

    def check_value(self, name: str, value: object, remedy: str) -> Any:
        """Returns the value."""
        return self.registry.parse(value, name)

    def text(self, value: Variant | None) -> str:
        """Returns the text that names the value, after the noun."""
        return str(self.none_label) if value is None else f"{self.registry.noun} {value.text()}"

    def plain(self, value: Variant | None) -> str | None:
        """Returns the text that names the value."""
        return None if value is None else value.text()

    def label(self, value: Variant | None) -> str:
        """Returns the text that names the value."""
        return "none" if value is None else value.text()
