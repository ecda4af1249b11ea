"""Graphs and components as values of a configuration: hashable, equal where graphs are equal."""

from __future__ import annotations

import functools
import hashlib
import math
import numbers
import os
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from fmab_jax.errors import count, refuse
from fmab_jax.files import check_path
from fmab_jax.lazy_imports import nx
from fmab_jax.parameters import Kind, parameter
from fmab_jax.parts import graphs, named_graphs
from fmab_jax.sampling.shapes import Record

# Attributes of a netCDF file hold 64 KB.
_LISTED_EDGES = 3000
# Their weights are a dense matrix, whose eigenvalues take seconds.
_WEIGHED_AGENTS = 5000


@dataclass(frozen=True)
class FixedGraph:
    """A graph of explicit edges, from networkx or a file.

    Attributes:
        nodes: M.
        edges: Sorted pairs of int32, as bytes.
        name: Label, not part of the identity.
        weights: Weights of the edges, float64 as bytes; empty where not all edges have one.
    """

    nodes: int
    edges: bytes = field(repr=False)
    name: str = field(default="", compare=False)
    weights: bytes = field(default=b"", repr=False)

    @classmethod
    def from_graph(
        cls, graph: nx.Graph, name: str = "", field: str = "graph", weighted: bool = False
    ) -> FixedGraph:
        """Converts a networkx graph, with the attribute ``weight`` of its edges if ``weighted``.

        Raises:
            ValueError: If it is refused by `graphs.validated`.
        """
        frozen = graphs.validated(graph, field)
        pairs = sorted((min(edge), max(edge)) for edge in frozen.edges())
        edges = np.array(pairs, np.int32).reshape(-1, 2)
        given = [frozen.edges[pair].get("weight") for pair in pairs if weighted]
        weights = b""
        if given and all(map(_is_number, given)):
            weights = np.array([_convert_weight(x) for x in given]).tobytes()
        name = name or str(graph.name or "")
        return cls(frozen.number_of_nodes(), edges.tobytes(), name, weights)

    @property
    def pairs(self) -> list[list[int]]:
        """The edges."""
        pairs: list[list[int]] = np.frombuffer(self.edges, np.int32).reshape(-1, 2).tolist()
        return pairs

    def graph(self) -> nx.Graph:
        """Returns the frozen networkx graph."""
        return named_graphs.build_frozen(self.nodes, self.pairs, self.name)

    def plain(self) -> Record:
        """Returns a JSON-able identity, with the edges of a small graph."""
        count = len(self.edges) // 8
        digest = hashlib.sha256(self.edges).hexdigest()
        identity: Record = {"nodes": self.nodes, "edges": count, "sha256": digest}
        if self.weights:
            identity["weights_sha256"] = hashlib.sha256(self.weights).hexdigest()
        return identity | ({"edge_list": self.pairs} if count <= _LISTED_EDGES else {})


def _is_number(weight: object) -> bool:
    return isinstance(weight, numbers.Real) and not isinstance(weight, bool)


def _convert_weight(weight: numbers.Real) -> float:
    """Returns a weight as a float; infinity, which is refused where it is used, if none fits."""
    try:
        return float(weight)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class GraphOf(Kind):
    """A name, a file or a networkx graph: the values of `graphs.make`.

    Attributes:
        weighted: Whether weights of edges are part of the value.
    """

    metavar = "GRAPH"
    weighted: bool = False

    def check_value(self, name: str, value: object, remedy: str) -> FixedGraph | str:
        """Returns a name unchanged, anything else as a `FixedGraph`."""
        if isinstance(value, FixedGraph):
            return value
        if isinstance(value, nx.Graph):
            return FixedGraph.from_graph(value, field=name, weighted=self.weighted)
        if isinstance(value, os.PathLike) or (isinstance(value, str) and graphs.names_file(value)):
            text = value if isinstance(value, str) else str(check_path(name, value))
            return FixedGraph.from_graph(graphs.read(text, name), text, name, self.weighted)
        return named_graphs.checked_name(value, name)

    def plain(self, value: object) -> object:
        """Returns the name, or the identity of the edges."""
        return value.plain() if isinstance(value, FixedGraph) else value

    def text(self, value: object) -> str:
        """Writes the name."""
        if isinstance(value, FixedGraph):
            return value.name or "own graph"
        return super().text(value)

    def label(self, value: object) -> object:
        """Returns the name; a graph without one has none."""
        return value.name if isinstance(value, FixedGraph) else super().label(value)


@dataclass(frozen=True)
class ComponentsOf(Kind):
    """Components, the values of `graphs.components`: a text, or a list of networkx graphs."""

    metavar = "SPEC"

    def check_value(self, name: str, value: object, remedy: str) -> tuple[FixedGraph, ...] | str:
        """Returns a text unchanged; a list as a tuple of graphs."""
        if isinstance(value, str):
            # The value must hold the content of files.
            if any(map(graphs.names_file, value.replace(":", "+").split("+"))):
                remedy = "read files with networkx, and give a list of graphs"
                refuse(name, value, "parts with names of graphs", remedy)
            return value
        if isinstance(value, (list, tuple)) and all(isinstance(x, FixedGraph) for x in value):
            return tuple(value)
        networks = graphs.list_networks(value, name)
        return tuple(FixedGraph.from_graph(x, field=f"{name}[{q}]") for q, x in enumerate(networks))

    def plain(self, value: object) -> object:
        """Returns the text, or the identity of every graph."""
        return [graph.plain() for graph in value] if isinstance(value, tuple) else value

    def text(self, value: object) -> str:
        """Writes the parts."""
        return str(self.none_label if value is None else self.label(value))

    def label(self, value: object) -> object:
        """Returns the text, or the parts joined by plus signs."""
        if value is None:
            return "none"
        return "+".join(map(GraphOf().text, value)) if isinstance(value, tuple) else value

    def is_list_value(self, value: object) -> bool:
        """Tells a specification that is a list from a list of specifications."""
        return not (isinstance(value, list) and all(isinstance(v, (str, list)) for v in value))


def graph_parameter(default: str | None, none_label: str = "", *, weighted: bool = False) -> object:
    """Returns the parameter of an algorithm for its communication graph.

    Args:
        default: A name, or None.
        none_label: Meaning of None, as a text; without it, None is refused.
        weighted: Whether weights of edges matter.
    """
    return parameter(
        GraphOf(none_label=none_label or None, weighted=weighted),
        "complete, star, ring, path, grid, regular-D, random[-P], or a file: "
        ".txt, .edgelist or .graphml.",
        default=default,
        keyword=False,
        symbol="",
        label="graph",
    )


def network(value: object, agents: int, field: str = "graph") -> nx.Graph:
    """Builds the graph of a `GraphOf` value for a number of agents.

    Raises:
        ValueError: If they do not fit.
    """
    graph = value.graph() if isinstance(value, FixedGraph) else value
    return graphs.make(graph, agents, field=field)


@functools.lru_cache(maxsize=4)
def weigh_edges(value: object, agents: int, weights: str) -> Float[np.ndarray, "agent agent"]:
    """Returns weights by which agents average with neighbours: symmetric, each row sums to 1.

    Args:
        value: A `GraphOf` value.
        agents: M, at most 5,000.
        weights: "metropolis", 1 / (1 + larger degree of the two agents); "max_degree", 1 / (1 +
            largest degree); or "given", by the edges.

    Returns:
        A read-only array. The diagonal is what is left for the agent itself.

    Raises:
        ValueError: If the graph has no weights that are given, or they leave an agent less than 0.
    """
    count("agents", agents, 1, _WEIGHED_AGENTS, "use fewer agents")
    graph = network(value, agents)
    degree = np.array([graph.degree[agent] for agent in range(agents)], float)
    first, second = np.array(graph.edges(), int).reshape(-1, 2).T
    if weights == "given":
        if not (isinstance(value, FixedGraph) and value.weights):
            allowed = "'metropolis' or 'max_degree' unless each edge has a number as its weight"
            remedy = "give a networkx graph or GraphML whose edges have the attribute weight"
            refuse("weights", weights, allowed, remedy)
        first, second = np.array(value.pairs, int).reshape(-1, 2).T
        by_edge = np.frombuffer(value.weights, np.float64)
    elif weights == "metropolis":
        by_edge = 1.0 / (1.0 + np.maximum(degree[first], degree[second]))
    else:
        by_edge = np.full(len(first), 1.0 / (1.0 + degree.max()))
    matrix = np.zeros((agents, agents))
    matrix[first, second] = matrix[second, first] = by_edge
    left = 1.0 - matrix.sum(axis=1)
    # Written so that NaN fails every comparison.
    if not (by_edge.min(initial=1.0) > 0.0 and left.min() >= -1e-9):
        allowed = "above 0 on each edge, and at most 1 over the edges of an agent"
        refuse("weights", weights, allowed, "divide them by their largest sum")
    np.fill_diagonal(matrix, np.maximum(left, 0.0))
    matrix.setflags(write=False)
    return matrix


def parts(value: object, agents: int) -> list[nx.Graph]:
    """Builds the component graphs of a `ComponentsOf` value.

    Raises:
        ValueError: If they do not fit the number of agents.
    """
    spec = [graph.graph() for graph in value] if isinstance(value, tuple) else value
    return graphs.components(spec, agents)
