"""What a user may replace, by kind and by name: each kind is a folder, with one file each part.

A part has a short name, which results and stores keep. The name that the package exports it under,
such as ``cdp_mab``, and the name of its class stand for the short one wherever a name is taken. A
plug-in is a file or module with more parts of any kind.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import jax
import numpy as np

from fmab_jax.errors import (
    Refusal,
    check_frozen_class,
    did_you_mean,
    format_quantity,
    parse_number,
    refuse,
)
from fmab_jax.parameters import UNSET, Configurable, Kind, Parameter, Real, Whole, parameters_of
from fmab_jax.parts.plugins import (
    Named,
    defined_in,
    file_of,
    foreign_refused,
    imported,
    imported_module,
    source_digest,
)

T = TypeVar("T", bound=Named)
V = TypeVar("V", bound="Variant")

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}")
REGISTRIES: list[Registry[Any]] = []
"""The kinds of parts."""


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
    for name, content in fields.items():
        object.__setattr__(value, name, content)
    return value


class Registry(Generic[T]):
    """The parts of one kind by name. The first look imports the folder's files.

    Attributes:
        kind: Name of the kind, which is that of its folder, such as "worlds".
        base: The class of its parts.
        noun: What a part is called.
        loaded: Parts of plug-ins by name.
    """

    def __init__(
        self,
        package: str,
        base: type[T],
        noun: str,
        otherwise: str = "",
        excluded: tuple[type[T], ...] = (),
        check: Callable[[type[T]], None] = lambda _: None,
    ) -> None:
        """Adds the kind to those that a plug-in may have.

        Args:
            package: The folder's package.
            base: The class of its parts.
            noun: What a part is called.
            otherwise: What else a refusal allows.
            excluded: Classes of the folder that no text can name.
            check: Refuses a class of a plug-in.
        """
        self.package, self.base, self.noun, self.otherwise = package, base, noun, otherwise
        self.kind = package.rpartition(".")[2]
        self._excluded, self._check = excluded, check
        self.loaded: dict[str, type[T]] = {}
        REGISTRIES.append(self)

    @functools.cached_property
    def shipped(self) -> dict[str, Any]:
        """The folder's parts by name."""
        folder = pkgutil.iter_modules(importlib.import_module(self.package).__path__)
        names = [f"{self.package}.{module.name}" for module in folder if not module.ispkg]
        owners = [x for name in names for x in self.list_parts(importlib.import_module(name))]
        return {owner.name: owner for owner in owners if owner not in self._excluded}

    def list_parts(self, module: ModuleType) -> list[type[T]]:
        """Returns the parts of this kind that a module defines."""
        return list(defined_in(module, self.base))

    def by_name(self) -> dict[str, type[T]]:
        """Returns all parts by their short names, those of plug-ins included."""
        return self.shipped | self.loaded

    def with_aliases(self, parts: Mapping[str, type[T]] | None = None) -> dict[str, type[T]]:
        """Returns parts by all names that stand for them; all parts by default."""
        by_name = self.by_name() if parts is None else parts
        # Names of this package's parts stay theirs, whatever a plug-in calls its classes.
        owners = list(by_name.values())[::-1]
        by_class = {owner.__name__: owner for owner in owners if isinstance(owner, type)}
        # An algorithm of this package is exported under the name of its file.
        files = ((x.__module__.rpartition("."), x) for x in by_class.values())
        by_file = {stem: owner for (folder, _, stem), owner in files if folder == self.package}
        return {**by_class, **by_file, **by_name}

    def is_taken(self, owner: type[T]) -> bool:
        """Tells whether a part of this package has the name of another class."""
        return self.with_aliases(self.shipped).get(owner.name, owner) is not owner

    def find(self, name: object) -> type[T]:
        """Returns the part with a name.

        Raises:
            ValueError: If there is none; the message names the nearest one.
        """
        parts = self.with_aliases()
        if isinstance(name, str) and name in parts:
            return parts[name]
        by_name = self.by_name()
        remedy = did_you_mean(name, by_name, f"see fmab list {self.kind}, or load a plug-in")
        refuse(self.noun, name, "one of " + ", ".join(sorted(by_name)), remedy)

    def usages(self) -> str:
        """Returns the formats of the texts of all parts."""
        return ", ".join(usage(owner) for _, owner in sorted(self.by_name().items()))

    def parse(self, value: object, field: str) -> T:
        """Returns an object unchanged, or that of a text: a name and the values of its fields.

        Raises:
            ValueError: For anything else.
        """
        if not isinstance(value, self.base):
            return self._build(value, field)
        self.adopt(type(value), field)
        return value

    def adopt(self, owner: type[T], field: str) -> None:
        """Adds a user's class, by whose name ledgers and stores will look for it.

        Raises:
            ValueError: If it has the name of another part, or is no frozen dataclass.
        """
        if owner.__module__.startswith(f"{self.package}."):
            return
        check_name(owner)
        if self.is_taken(owner):
            refuse(field, owner.name, f"a {self.noun} with a name of its own", "rename it")
        check_frozen_class(owner, owner.name)
        self.loaded[owner.name] = owner

    def check_part(self, owner: type[T], origin: str) -> None:
        """Refuses a class of a plug-in that is incomplete, or whose name exists.

        Args:
            owner: The class.
            origin: The plug-in.

        Raises:
            ValueError: If it has no name, is no frozen dataclass, or leaves something out.
        """
        check_name(owner)
        check_frozen_class(owner, origin)
        parameters_of(owner)
        self._check(owner)
        namesake = self.with_aliases().get(owner.name, owner)
        # A changed version of the same file replaces the class.
        if self.is_taken(owner) or file_of(namesake) != file_of(owner):
            refuse("plugin", owner.name, f"the name of no other {self.noun}", "rename it")

    def _build(self, value: object, field: str) -> T:
        name, colon, arguments = value.partition(":") if isinstance(value, str) else ("", "", "")
        by_name = self.by_name()
        owner = self.with_aliases().get(name)
        if owner is None:
            allowed = f"a {self.noun}: {self.usages()}{self.otherwise}"
            remedy = "name one, or load a plug-in"
            near = did_you_mean(name, by_name, remedy, lambda near: usage(by_name[near]))
            refuse(field, value, allowed, near)
        words = arguments.split(",") if colon else []
        allowed = f"written {usage(owner)}"
        fields = parameters_of(owner)
        if len(words) > len(fields):
            number = format_quantity(len(fields), "value") if fields else "no values"
            refuse(field, value, allowed, f"{name} takes {number}")
        for missing in list(fields.values())[len(words) :]:
            if missing.default is UNSET:
                refuse(field, value, allowed, f"give {missing.name}")
        pairs = list(zip(fields.values(), words, strict=False))
        with foreign_refused(field, value, allowed):
            try:
                return owner(**{p.name: p.check(_parse_value(p, word)) for p, word in pairs})
            except Refusal as error:
                reason, remedy = error.allowed, error.remedy
                refuse(field, value, f"{allowed} with {error.field} {reason}", remedy)


def usage(owner: type) -> str:
    """Returns the format of a part's text, such as gaussian:SD."""
    text = getattr(owner, "name", "")
    for index, parameter in enumerate(parameters_of(owner).values()):
        word = f"{',' if index else ':'}{parameter.name.upper()}"
        text += word if parameter.default is UNSET else f"[{word}]"
    return text


def _parse_value(parameter: Parameter, word: str) -> str | float | None:
    if parameter.kind.none_label is not None and word == "none":
        return None
    number = parse_number(word) if isinstance(parameter.kind, (Real, Whole)) else None
    return word if number is None else number


def check_name(owner: type) -> None:
    """Refuses a class whose name no option can take.

    Raises:
        ValueError: If it is not short and plain.
    """
    name = getattr(owner, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        remedy = "such as 'my_ucb': small letters, digits, - and _"
        refuse(f"{owner.__name__}.name", name, "a short plain name", remedy)


def load_plugin(spec: str) -> list[Any]:
    """Imports a file or module and adds its parts of all kinds.

    Args:
        spec: A path ending in .py, or the dotted name of a module.

    Returns:
        The algorithms of the plug-in.

    Raises:
        ValueError: If the import fails, nothing is defined, or a name is taken.
    """
    path = Path(spec)
    if path.suffix == ".py" and not path.is_file():
        refuse("plugin", spec, "an existing .py file or a module", "check the path")
    with foreign_refused("plugin", spec, "a file or module that can be imported"):
        module = imported(path) if path.suffix == ".py" else imported_module(spec)
    kinds = [(registry, registry.list_parts(module)) for registry in REGISTRIES]
    for registry, parts in kinds:
        for first, second in combinations(parts, 2):
            if first.name == second.name:
                allowed = f"the name of one {registry.noun} of {spec}"
                refuse("name", first.name, allowed, "rename one of them")
    if not any(parts for _, parts in kinds):
        bases = tuple(registry.base for registry in REGISTRIES)
        for owner_without_name in defined_in(module, bases, is_named=False):
            check_name(owner_without_name)
        remedy = "derive a frozen dataclass from a family and give it a name"
        allowed = "a module that defines an algorithm, a reward law or an output"
        refuse("plugin", spec, allowed, remedy)
    for registry, parts in kinds:
        for part in parts:
            registry.check_part(part, spec)
    for registry, parts in kinds:
        for part in parts:
            if isinstance(part, type):
                source_digest(part)  # cached now, because the files may change later
        registry.loaded |= {part.name: part for part in parts}
    return next(parts for registry, parts in kinds if registry.kind == "algorithms")


@dataclass(frozen=True)
class VariantOf(Kind[Any]):
    """A value of a registry, or its text; or none.

    Attributes:
        registry: The parts that may be named.
    """

    registry: Registry[Any] = field(kw_only=True)

    @property
    def metavar(self) -> str:  # type: ignore[override]
        """The last word of what a part is called."""
        return self.registry.noun.split()[-1].upper()

    def check_value(self, name: str, value: object, remedy: str) -> Any:
        """Returns the value."""
        return self.registry.parse(value, name)

    def text(self, value: Any) -> str:
        """Returns the text that names the value, after the noun."""
        return str(self.none_label) if value is None else f"{self.registry.noun} {value.text()}"

    def plain(self, value: Any) -> Any:
        """Returns the text that names the value."""
        return None if value is None else value.text()

    def label(self, value: Any) -> str:
        """Returns the text that names the value."""
        return "none" if value is None else value.text()
