"""Communication graphs: by name, from networkx or from a file; hop distances and sink agents.

All results are frozen, connected, undirected, simple networkx graphs whose nodes are the agents
0..M-1. Host code only: nothing here is traced.
"""

from __future__ import annotations

import io
import numbers
import os
import re
from pathlib import Path

import numpy as np
from jaxtyping import Int

from fmab_jax.errors import count, describe_error, format_quantity, refuse
from fmab_jax.files import check_path, read_input
from fmab_jax.lazy_imports import nx
from fmab_jax.parts.named_graphs import ALLOWED, build_frozen, check_edges, make_named

AGENTS_MAX = 1_000_000
"""Most nodes of one graph."""

HOPS_MAX = 5_000
"""Most nodes of a graph whose hop distances, an M x M table, are computed."""

FILE_MAX = 64 * 2**20
"""Most bytes of a graph file."""

_SUFFIXES = (".txt", ".edgelist", ".graphml")
_RANDOM = ("random", "regular-")


def make(graph: object, agents: int, *, seed: int = 0, field: str = "graph") -> nx.Graph:
    """Returns the communication graph of the agents 0..M-1, validated.

    Names:
        ``complete``: every pair.
        ``star``: agent 0 is the hub.
        ``ring``: agent i meets i + 1 modulo M (one agent: no edge; two: one edge).
        ``path``: agent i meets i + 1.
        ``grid``: ceil(sqrt(M)) columns filled row by row, the last row possibly short: connected
        for every M, primes included.
        ``regular-D``: random, every agent has D neighbours.
        ``random``: Erdos-Renyi with edge probability 2 ln(M) / M; ``random-P``: with probability P.

    The random graphs are redrawn, each time with the next sub-seed of ``seed``, until connected.

    Files: ``.graphml``, and edge lists ``.txt`` and ``.edgelist``: one edge a line, two labels
    separated by blanks. Networkx data ``{...}`` after them is ignored, and so is what follows a
    ``#``.

    Labels become 0..M-1 in sorted order where they sort, else in order of appearance; the labels of
    a file are numbers if all of them are whole numbers. Parallel edges of a multigraph collapse to
    one, and edge weights are dropped: a link is there or not.

    Args:
        graph: A networkx graph, a name, or the path of a file (text or path object).
        agents: M in [1, 1e6].
        seed: In [0, 2^32); the random graphs depend on it and on nothing else.
        field: The argument's name for error messages.

    Returns:
        A frozen graph (copy it with ``nx.Graph`` to change it): undirected, simple, connected.

    Raises:
        ValueError: If the name is unknown or impossible for M agents, the file is unreadable, or
            the graph is empty, directed, has self-loops, is not connected, is too large, or does
            not have M nodes.

    Example:
        >>> from fmab_jax.parts import graphs
        >>> ring = graphs.make("ring", 5)
        >>> ring.number_of_edges(), graphs.diameter(ring)
        (5, 2)
    """
    agents, seed = _check_numbers(agents, seed)
    if isinstance(graph, os.PathLike):
        graph = str(check_path(field, graph))
    if not isinstance(graph, (nx.Graph, str)):
        refuse(field, graph, f"one of {ALLOWED}", "for example graph='ring'")
    if isinstance(graph, str) and not names_file(graph):
        return make_named(graph, agents, seed, field)
    text = graph if isinstance(graph, str) else _describe(graph)
    source = read(graph, field) if isinstance(graph, str) else graph
    network = validated(source, field, text)
    nodes = network.number_of_nodes()
    if nodes != agents:
        allowed = f"a graph of {format_quantity(agents, 'node')}, one per agent (it has {nodes:,})"
        refuse(field, text, allowed, "match the number of agents to the graph")
    return network


def validated(graph: object, field: str = "graph", text: str | None = None) -> nx.Graph:
    """Returns a frozen copy of a networkx graph on the nodes 0..M-1, by the rules of ``make``.

    Edges keep their attributes.

    Args:
        graph: A networkx graph.
        field: The argument's name for error messages.
        text: Text of the graph in error messages.

    Raises:
        ValueError: If it is no networkx graph, or is empty, directed, disconnected, too large or
            has self-loops.
    """
    if not isinstance(graph, nx.Graph):
        refuse(field, graph, "a networkx graph", "make one by name with graphs.make(name, agents)")
    text = text or _describe(graph)
    if graph.is_directed():
        refuse(field, text, "an undirected graph", "convert it with graph.to_undirected()")
    nodes = graph.number_of_nodes()
    if nodes == 0:
        refuse(field, text, "a graph with at least one node", "add the agents as nodes")
    if nodes > AGENTS_MAX:
        refuse(field, text, f"a graph of at most {AGENTS_MAX:,} nodes", "use fewer agents")
    check_edges(graph.number_of_edges(), field, text)
    if loops := nx.number_of_selfloops(graph):
        allowed = f"a graph without self-loops (it has {loops})"
        refuse(field, text, allowed, "remove them first")
    if (pieces := nx.number_connected_components(graph)) > 1:
        allowed = f"a connected graph (it has {pieces} connected components)"
        refuse(field, text, allowed, "add edges, or use hdp_mab for separate components")
    try:
        labels = sorted(graph.nodes)
    except TypeError:
        labels = list(graph.nodes)
    number = {label: agent for agent, label in enumerate(labels)}
    edges = ((number[a], number[b], data) for a, b, data in graph.edges(data=True))
    return build_frozen(nodes, edges, str(graph.name))


def components(spec: object, agents: int, *, seed: int = 0) -> list[nx.Graph]:
    """Returns the component graphs G_1..G_Q of the hybrid structure.

    Agents are numbered consecutively: 0..M_1 - 1 are the nodes 0..M_1 - 1 of the first component,
    the next M_2 agents those of the second, and so on. Random graphs of component q are drawn with
    ``seed + q`` (modulo 2^32), so they differ and each can be made again alone.

    Args:
        spec: A string of parts ``SIZES:graph`` joined by ``+``, where SIZES is a comma list of
            ``SIZE`` or ``SIZExCOUNT`` and ``:graph``, a name of ``make``, defaults to
            complete: ``"20x5:star"`` is five stars of 20 agents, ``"53,24,10,6,7"`` five complete
            graphs, ``"20x2:ring+10x6:star"`` eight components, ``"1x100"`` one hundred single
            agents. Or a list of networkx graphs.
        agents: M in [1, 1e6]; the sizes must sum to it.
        seed: In [0, 2^32).

    Returns:
        One frozen graph per component, in order; copies that are not random share one object.

    Raises:
        ValueError: If the spec is malformed, the sizes do not sum to M, or a graph is refused.

    Example:
        >>> from fmab_jax.parts import graphs
        >>> [(len(part), part.number_of_edges()) for part in graphs.components("2x1,3x1:star", 5)]
        [(2, 1), (3, 2)]
    """
    agents, seed = _check_numbers(agents, seed)
    runs: list[_Run]
    if isinstance(spec, str):
        runs = _parse_components(spec)
    else:
        runs = [(graph.number_of_nodes(), 1, graph) for graph in list_networks(spec)]
    total = sum(size * copies for size, copies, _ in runs)
    if total != agents:
        # "1x999999999" must cost nothing.
        text = spec if isinstance(spec, str) else [size for size, _, _ in runs]
        remedy = "change the sizes or the number of agents"
        allowed = f"sizes that sum to agents={agents!r} (they sum to {total})"
        refuse("components", text, allowed, remedy)
    networks: list[nx.Graph] = []
    for size, copies, graph in runs:
        refuse_too_far(size, graph if isinstance(graph, str) else str(size), "components")
        is_random = isinstance(graph, str) and graph.startswith(_RANDOM)
        for copy in range(copies):
            q = len(networks)
            if copy and not is_random:
                networks.append(networks[-1])
                continue
            field = f"components[{q}]"
            networks.append(make(graph, size, seed=(seed + q) % 2**32, field=field))
    return networks


def refuse_too_far(agents: int, text: str, field: str = "graph") -> None:
    """Refuses more agents than hop distances fit for, before their graph is built.

    Raises:
        ValueError: If there are more than 5,000.
    """
    if agents > HOPS_MAX:
        allowed = f"a graph of at most {HOPS_MAX:,} agents, whose hop distances fit in memory"
        refuse(field, text, allowed, "use fewer agents or several smaller components")


def distances(graph: nx.Graph) -> Int[np.ndarray, "agent agent"]:
    """Returns the hop distances dist(i, j), shape [agent, agent], of a graph made here.

    Raises:
        ValueError: If the graph has more than 5,000 nodes.
    """
    agents = graph.number_of_nodes()
    refuse_too_far(agents, _describe(graph))
    hops = np.empty((agents, agents), np.int32)
    for start in range(agents):
        hops_to = nx.single_source_shortest_path_length(graph, start)
        nodes = np.fromiter(hops_to.keys(), np.int64, agents)
        hops[start, nodes] = np.fromiter(hops_to.values(), np.int32, agents)
    return hops


def diameter(graph: nx.Graph) -> int:
    """Returns the diameter d_G, the largest hop distance (0 for one agent).

    Example:
        >>> from fmab_jax.parts import graphs
        >>> graphs.diameter(graphs.make("complete", 5)), graphs.diameter(graphs.make("path", 5))
        (1, 4)
    """
    return int(distances(graph).max())


def mixing_rate(graph: nx.Graph) -> float:
    """Returns the second largest absolute eigenvalue of P = I - (D - A) / (d_max + 1).

    P is the averaging matrix of agents whose neighbours weigh 1 / (d_max + 1). The rate is 0 on a
    complete graph and for one agent, and below 1 on every connected graph.

    Raises:
        ValueError: If the graph has more than 5,000 nodes.
    """
    agents, edges = graph.number_of_nodes(), graph.number_of_edges()
    if 2 * edges == agents * (agents - 1):
        return 0.0
    refuse_too_far(agents, _describe(graph))
    adjacency = nx.to_numpy_array(graph, nodelist=range(agents))
    degree = adjacency.sum(axis=1)
    matrix = np.eye(agents) - (np.diag(degree) - adjacency) / (degree.max() + 1.0)
    return float(np.sort(np.abs(np.linalg.eigvalsh(matrix)))[-2])


def _check_numbers(agents: object, seed: object) -> tuple[int, int]:
    agents = count("agents", agents, 1, AGENTS_MAX, "choose the number of agents in the graph")
    return agents, count("seed", seed, 0, 2**32 - 1, "choose a seed in that range")


def _describe(graph: nx.Graph) -> str:
    """Returns a file's name, or a text of a networkx graph that is the same in every run."""
    return graph.name if names_file(str(graph.name)) else str(graph)


# Size of components, their number, their graph.
_Run = tuple[int, int, "nx.Graph | str"]


def _parse_components(spec: str) -> list[_Run]:
    runs: list[_Run] = []
    for part in spec.split("+"):
        sizes, colon, graph = (piece.strip() for piece in part.partition(":"))
        for entry in sizes.split(","):
            match = re.fullmatch(r"([0-9]{1,9})(?:x([0-9]{1,9}))?", entry.strip())
            size, copies = (int(match[1]), int(match[2] or 1)) if match else (0, 0)
            if not size or not copies or (colon and not graph):
                allowed = "parts SIZExCOUNT:graph joined by '+', e.g. '20x5:star+10:ring'"
                refuse("components", spec, allowed, f"rewrite the part {part.strip()[:40]!r}")
            runs.append((size, copies, graph or "complete"))
    return runs


def list_networks(spec: object, field: str = "components") -> list[nx.Graph]:
    """Returns a list of networkx graphs; refuses labels that number agents in another order.

    Raises:
        ValueError: If it is anything else, or empty.
    """
    remedy = "for example components='20x5:star'"
    networks = list(spec) if isinstance(spec, (list, tuple)) else []
    if not networks or not all(isinstance(graph, nx.Graph) for graph in networks):
        value = _describe(spec) if isinstance(spec, nx.Graph) else spec
        if any(isinstance(graph, nx.Graph) for graph in networks):
            value = "graphs beside other values"
        refuse(field, value, "a text, or a list of networkx graphs", remedy)
    # In another order, means and weights would be those of other agents.
    labels = [label for graph in networks for label in graph.nodes]
    if all(isinstance(label, numbers.Integral) for label in labels):
        ordered = [label for graph in networks for label in sorted(graph.nodes)]
        if sorted(labels) == list(range(len(labels))) != ordered:
            allowed = "numbered one component after the other"
            refuse(field, "parts of one graph", allowed, "relabel the nodes")
    return networks


def names_file(text: str) -> bool:
    """Tells whether a text is the name of a graph file, by its ending."""
    return Path(text).suffix.lower() in _SUFFIXES


def read(path: str, field: str = "graph") -> nx.Graph:
    """Returns the graph of a file, not yet validated.

    Raises:
        ValueError: If it cannot be read.
    """
    content, line = read_input(path, field, FILE_MAX, "graph file"), ""
    try:
        if Path(path).suffix.lower() == ".graphml":
            graph = nx.read_graphml(io.BytesIO(content))
        else:
            graph = nx.Graph()
            for line in content.decode("utf-8-sig").splitlines():
                if labels := re.sub(r"#.*|\{.*", "", line).split():
                    source, target = labels
                    graph.add_edge(source, target)
    except Exception as error:  # networkx reports broken GraphML by many exception types
        allowed = "a GraphML file, or an edge list of two labels a line"
        refuse(field, path, allowed, f"repair {line[:40]!r} ({describe_error(error)})")
    if all(re.fullmatch(r"-?[0-9]{1,18}", str(label)) for label in graph.nodes):
        numbered = {label: int(label) for label in graph.nodes}
        if len(set(numbered.values())) == len(graph):
            graph = nx.relabel_nodes(graph, numbered)
    graph.name = path
    return graph
