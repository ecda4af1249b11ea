"""Graphs and components as values of a configuration: hashable, equal where graphs are equal."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from fmab_jax.core import graphs, named_graphs
from fmab_jax.files import check_path
from fmab_jax.lazy_imports import nx
from fmab_jax.parameters import Kind, parameter

# Attributes of a netCDF file hold 64 KB.
_LISTED_EDGES = 3000


@dataclass(frozen=True)
class FixedGraph:
    """A graph given edge by edge, by networkx or by a file.

    Attributes:
        nodes: M.
        edges: Sorted pairs of int32, as bytes.
        name: What people call it; no part of its identity.
        weighted: Whether some edge had a weight other than 1, which nothing uses.
    """

    nodes: int
    edges: bytes = field(repr=False)
    name: str = field(default="", compare=False)
    weighted: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, graph: nx.Graph, name: str = "", where: str = "graph") -> FixedGraph:
        """Takes a networkx graph.

        Raises:
            ValueError: If it is refused by `graphs.validated`.
        """
        made = graphs.validated(graph, where)
        pairs = sorted((min(edge), max(edge)) for edge in made.edges())
        edges = np.array(pairs, np.int32).reshape(-1, 2)
        weights = (weight for _, _, weight in graph.edges(data="weight", default=1.0))
        weighted = any(not isinstance(each, Real) or each != 1.0 for each in weights)
        name = name or str(graph.name or "")
        return cls(made.number_of_nodes(), edges.tobytes(), name, weighted)

    @property
    def pairs(self) -> list[list[int]]:
        """The edges."""
        found: list[list[int]] = np.frombuffer(self.edges, np.int32).reshape(-1, 2).tolist()
        return found

    def graph(self) -> nx.Graph:
        """Returns it as networkx has it, frozen."""
        return named_graphs.frozen(self.nodes, self.pairs, self.name)

    def plain(self) -> dict[str, Any]:
        """Returns a JSON-able identity, with the edges where they are few."""
        count = len(self.edges) // 8
        digest = hashlib.sha256(self.edges).hexdigest()
        found: dict[str, Any] = {"nodes": self.nodes, "edges": count, "sha256": digest}
        return found | ({"edge_list": self.pairs} if count <= _LISTED_EDGES else {})


@dataclass(frozen=True)
class GraphOf(Kind):
    """A name, a file or a networkx graph, as `graphs.make` takes them."""

    metavar = "GRAPH"

    def check_value(self, name: str, value: Any, remedy: str) -> Any:
        """Returns a name as it is, anything else as a `FixedGraph`."""
        if isinstance(value, FixedGraph):
            return value
        if isinstance(value, nx.Graph):
            return FixedGraph.of(value, where=name)
        if isinstance(value, os.PathLike) or (isinstance(value, str) and graphs.names_file(value)):
            text = value if isinstance(value, str) else str(check_path(name, value))
            return FixedGraph.of(graphs.read(text, name), text, name)
        return named_graphs.checked_name(value, name)

    def plain(self, value: Any) -> Any:
        """Returns the name, or what identifies the edges."""
        return value.plain() if isinstance(value, FixedGraph) else value

    def text(self, value: Any) -> str:
        """Writes the name."""
        named = isinstance(value, FixedGraph)
        return (value.name or "own graph") if named else super().text(value)

    def remark(self, value: Any) -> str:
        """Says that weights of edges are ignored."""
        ignored = isinstance(value, FixedGraph) and value.weighted
        return "edge weights ignored" if ignored else ""

    def label(self, value: Any) -> Any:
        """Returns the name; a graph without one has none."""
        return value.name if isinstance(value, FixedGraph) else super().label(value)


@dataclass(frozen=True)
class ComponentsOf(Kind):
    """Components as `graphs.components` takes them: a text, or a list of networkx graphs."""

    metavar = "SPEC"

    def check_value(self, name: str, value: Any, remedy: str) -> Any:
        """Returns a text of names as it is; a list, or a text with files, as a tuple of graphs."""
        if isinstance(value, str):
            parts = value.replace(":", "+").split("+")
            if not any(map(graphs.names_file, parts)):
                return value
            # The content of files is a part of the value.
            components = enumerate(graphs.parts_of(value))
            return tuple(_part(f"{name}[{q}]", *part, q) for q, part in components)
        if isinstance(value, (list, tuple)) and all(isinstance(x, FixedGraph) for x in value):
            return tuple(value)
        networks = graphs.list_networks(value, name)
        return tuple(FixedGraph.of(x, where=f"{name}[{q}]") for q, x in enumerate(networks))

    def plain(self, value: Any) -> Any:
        """Returns the text, or what identifies every graph."""
        return [graph.plain() for graph in value] if isinstance(value, tuple) else value

    def text(self, value: Any) -> str:
        """Writes the parts."""
        return str(self.none_label if value is None else self.label(value))

    def remark(self, value: Any) -> str:
        """Says that weights of edges are ignored."""
        return max(map(GraphOf().remark, value), default="") if isinstance(value, tuple) else ""

    def label(self, value: Any) -> Any:
        """Returns the text, or the parts joined by plus signs."""
        if value is None:
            return "none"
        return "+".join(map(GraphOf().text, value)) if isinstance(value, tuple) else value

    def is_list_value(self, value: Any) -> bool:
        """Tells a specification that is a list from a list of specifications."""
        return not (isinstance(value, list) and all(isinstance(v, (str, list)) for v in value))


def _part(field: str, size: int, graph: str, seed: int) -> FixedGraph:
    """Returns a component of a text in which some component is a file."""
    file = graphs.read(graph, field) if graphs.names_file(graph) else None
    network = graphs.make(graph if file is None else file, size, seed=seed, field=field)
    return FixedGraph.of(network if file is None else file, f"{size}:{graph}", field)


def graph_parameter(default: str | None, none_label: str = "") -> Any:
    """Returns the parameter of an algorithm that says who may talk to whom.

    Args:
        default: A name, or None.
        none_label: What None stands for, in words; without, it is refused.
    """
    return parameter(
        GraphOf(none_label=none_label) if none_label else GraphOf(),
        "complete, star, ring, path, grid, regular-D, random[-P], preferential[-m], or a file: "
        ".txt, .edgelist, .csv or .graphml.",
        default=default,
        keyword=False,
        symbol="",
        label="graph",
    )


def network(value: Any, agents: int) -> nx.Graph:
    """Returns the graph that a `GraphOf` value stands for, among so many agents.

    Raises:
        ValueError: If they do not fit.
    """
    return graphs.make(value.graph() if isinstance(value, FixedGraph) else value, agents)


def parts(value: Any, agents: int) -> list[nx.Graph]:
    """Returns the component graphs that a `ComponentsOf` value stands for.

    Raises:
        ValueError: If they do not fit the number of agents.
    """
    spec = value if isinstance(value, str) else [graph.graph() for graph in value]
    return graphs.components(spec, agents)
