"""A package that is imported when it is first used: most runs are over without it."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _LazyModule(ModuleType):
    """Stands for a package until somebody asks it for something."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import networkx as nx
else:
    nx = _LazyModule("networkx")

__all__ = ["is_graph", "nx"]


def is_graph(value: Any) -> bool:
    """Tells whether it is a graph of networkx, which is not imported to find out."""
    return "networkx" in sys.modules and isinstance(value, nx.Graph)
