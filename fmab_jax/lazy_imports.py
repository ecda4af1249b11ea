"""Packages that most runs do not need: imported at first use, or not at all."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


class _LazyModule(ModuleType):
    """Imports a package when one of its attributes is read."""

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import networkx as nx
else:
    nx = _LazyModule("networkx")

__all__ = ["hide_packages", "nx"]


def hide_packages(*names: str) -> None:
    """Makes packages look absent to this process, except those that it has imported already.

    xarray and pandas import packages of optional features wherever they are installed.
    """
    for name in names:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
