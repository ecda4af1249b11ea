"""A package that is imported at first use, since most runs do not need it."""

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

__all__ = ["is_graph", "nx"]


def is_graph(value: object) -> bool:
    """Returns whether a value is a networkx graph, without importing networkx."""
    return "networkx" in sys.modules and isinstance(value, nx.Graph)
