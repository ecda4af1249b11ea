"""Communication graphs by name: fixed ones, and random ones drawn until connected."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from fmab_jax.errors import did_you_mean, refuse
from fmab_jax.lazy_imports import nx

EDGES_MAX = 2_000_000
"""Most edges of one graph: about 0.4 GB inside networkx."""

DRAWS_MAX = 200
"""Draws of a random graph before giving up on a connected one."""

ALLOWED = (
    "complete, star, ring, path, grid, regular-D, random, random-P, a networkx graph, "
    "or a .txt, .edgelist or .graphml file"
)
_NAME = re.compile(
    r"complete|star|ring|path|grid|random(-[0-9]*\.?[0-9]+(e-?[0-9]+)?)?|regular-[0-9]{1,9}"
)
_EXAMPLES = ("complete", "star", "ring", "path", "grid", "random", "regular-4", "random-0.2")


def checked_name(value: object, field: str = "graph") -> str:
    """Returns the name of a graph, refused if there is none of that name for any number of agents.

    Raises:
        ValueError: For any other text, or another type.
    """
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        word = value.lower() if isinstance(value, str) else value
        remedy = did_you_mean(word, _EXAMPLES, "for example 'ring'")
        refuse(field, value, f"one of {ALLOWED}", remedy)
    return value


def build_frozen(nodes: int, edges: Iterable[Sequence[int]], name: str = "") -> nx.Graph:
    """Returns a frozen graph whose nodes iterate as 0..M-1, the order of agents in matrices."""
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges)
    graph.name = name
    return nx.freeze(graph)


def check_edges(edges: float, field: str, text: str) -> None:
    """Refuses more edges than fit into memory.

    Raises:
        ValueError: If there are more than 2,000,000.
    """
    if edges > EDGES_MAX:
        allowed = f"a graph of at most {EDGES_MAX:,} edges (this one has about {round(edges):,})"
        refuse(field, text, allowed, "use fewer agents or a sparser graph")


def make_named(name: str, agents: int, seed: int, field: str) -> nx.Graph:
    """Returns the graph of a name; arguments as in `graphs.make`.

    Raises:
        ValueError: If the name is unknown or impossible for so many agents.
    """
    kind, _, number = checked_name(name, field).partition("-")
    pairs = agents * (agents - 1) // 2
    if kind in _FIXED:
        check_edges(pairs if kind == "complete" else agents, field, name)
        return nx.freeze(_FIXED[kind](agents))
    if kind == "random":
        # Disconnected draws are rare above 2 ln(M) / M.
        threshold = 2 * math.log(agents) / agents
        chance = float(number) if number else threshold
        if number and not 0 < chance <= 1:
            allowed = "random-P with an edge probability P in (0, 1]"
            refuse(field, name, allowed, "try random-0.2")
        edges, remedy = chance * pairs, f"raise P, to {threshold:.2g} for example"
        draw: Callable[..., nx.Graph] = partial(nx.fast_gnp_random_graph, agents, chance)
    else:
        degree = _degree(int(number), agents, field, name)
        edges, remedy = degree * agents / 2, "choose a larger degree"
        draw = partial(_regular, degree, agents)
    check_edges(edges, field, name)
    return _draw_connected(draw, seed, field, name, remedy)


def _ring(agents: int) -> nx.Graph:
    # networkx would give a ring of one agent a self-loop.
    return nx.path_graph(agents) if agents <= 2 else nx.cycle_graph(agents)


def _grid(agents: int) -> nx.Graph:
    columns = math.isqrt(agents - 1) + 1
    graph = nx.empty_graph(agents)
    graph.add_edges_from((i, i + 1) for i in range(agents - 1) if (i + 1) % columns)
    graph.add_edges_from((i, i + columns) for i in range(agents - columns))
    return graph


_FIXED: dict[str, Callable[[int], nx.Graph]] = {
    "complete": lambda agents: nx.complete_graph(agents),
    "star": lambda agents: nx.star_graph(agents - 1),
    "path": lambda agents: nx.path_graph(agents),
    "ring": _ring,
    "grid": _grid,
}


def _degree(degree: int, agents: int, field: str, name: str) -> int:
    """Returns the degree, refused unless a connected graph of this degree on M nodes exists."""
    low = min(2, agents - 1)
    if not low <= degree < agents or degree * agents % 2:
        allowed = f"regular-D with a degree D in [{low}, {agents - 1}] and an even D x agents"
        refuse(field, name, allowed, f"choose another D for {agents:,} agents")
    return degree


def _regular(degree: int, agents: int, seed: random.Random) -> nx.Graph:
    if degree == 2:
        # The connected 2-regular graphs are the rings; pairing stubs rarely gives a single one.
        order = list(range(agents))
        seed.shuffle(order)
        return nx.cycle_graph(order)
    if 2 * degree >= agents:
        # Pairing stubs stalls on dense graphs; the complement has the same law and is sparse.
        return nx.complement(nx.random_regular_graph(agents - 1 - degree, agents, seed=seed))
    return nx.random_regular_graph(degree, agents, seed=seed)


def _draw_connected(
    draw: Callable[..., nx.Graph], seed: int, field: str, name: str, remedy: str
) -> nx.Graph:
    """Draws until the graph is connected; draw n uses sub-seed n of the seed."""
    for attempt in range(DRAWS_MAX):
        words = np.random.SeedSequence([seed, attempt]).generate_state(1, np.uint64)
        graph = draw(seed=random.Random(int(words[0])))
        if nx.is_connected(graph):
            return build_frozen(graph.number_of_nodes(), graph.edges())
    allowed = f"a graph that is connected within {DRAWS_MAX} draws"
    refuse(field, name, allowed, remedy)
