"""Graphs by name, from networkx and from files; components; hop distances; every refusal."""

import itertools
import json
import math
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from fmab_jax.parts import graphs
from fmab_jax.parts.networks import ComponentsOf, GraphOf


def edges_of(graph):
    """Returns the edges, each as (lower, higher)."""
    return {(min(edge), max(edge)) for edge in graph.edges()}


@pytest.mark.parametrize(
    ("name", "agents", "edges"),
    [
        ("complete", 4, {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}),
        ("star", 4, {(0, 1), (0, 2), (0, 3)}),
        ("ring", 5, {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}),
        ("path", 4, {(0, 1), (1, 2), (2, 3)}),
        # Three columns: 0 1 2 / 3 4 5 / 6.
        ("grid", 7, {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5), (3, 6)}),
        ("grid", 6, {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}),
        ("regular-3", 4, {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}),
        ("ring", 3, {(0, 1), (1, 2), (0, 2)}),
        ("regular-2", 3, {(0, 1), (1, 2), (0, 2)}),
        ("random-1", 3, {(0, 1), (1, 2), (0, 2)}),
    ],
)
def test_named_graphs_edge_by_edge(name, agents, edges):
    """Would catch a hub that is not agent 0, an open ring, a grid with a wrapped row."""
    assert edges_of(graphs.make(name, agents)) == edges


def test_grids_are_square_and_connected_for_every_size():
    """Would catch a grid that falls apart or degenerates to a path at a prime number of agents."""
    for agents in range(1, 70):
        columns = math.ceil(math.sqrt(agents))
        place = [divmod(agent, columns) for agent in range(agents)]
        near = {
            (a, b)
            for a, b in itertools.combinations(range(agents), 2)
            if abs(place[a][0] - place[b][0]) + abs(place[a][1] - place[b][1]) == 1
        }
        grid = graphs.make("grid", agents)
        assert edges_of(grid) == near and nx.is_connected(grid)


def test_regular_graphs_exist_exactly_where_they_can():
    """Would catch a degree that is off, or an impossible (D, M) accepted, for all M up to 12."""
    for agents, degree in itertools.product(range(1, 13), range(13)):
        # A connected D-regular graph exists for even D M and 2 <= D < M, and in two tiny cases.
        possible = degree * agents % 2 == 0 and 2 <= degree < agents
        if possible or (agents, degree) in {(1, 0), (2, 1)}:
            graph = graphs.make(f"regular-{degree}", agents, seed=agents)
            assert {actual for _, actual in graph.degree()} == {degree}
            assert nx.is_connected(graph)
        else:
            with pytest.raises(ValueError, match=f"^graph='regular-{degree}': must be regular-D"):
                graphs.make(f"regular-{degree}", agents)


@pytest.mark.parametrize(
    ("name", "chance"), [("random", 2 * math.log(50) / 50), ("random-0.3", 0.3), ("random-.5", 0.5)]
)
def test_random_graphs_have_the_stated_edge_probability(name, chance):
    """Would catch ln M / M or another logarithm: 200 graphs, detects 2 % of the probability.

    Conditioning on connectedness moves the mean number of edges by less than a standard error.
    """
    total = sum(graphs.make(name, 50, seed=seed).number_of_edges() for seed in range(200))
    assert stats.binomtest(total, 200 * 1225, chance).pvalue > 1e-6


@pytest.mark.parametrize("name", ["random", "random-0.2", "regular-4", "regular-2"])
def test_random_graphs_depend_on_their_seed_only(name):
    """Would catch draws from a global random state, and a seed that changes nothing."""
    legacy = np.random.get_state()[1].tolist()
    first = edges_of(graphs.make(name, 40, seed=3))
    assert np.random.get_state()[1].tolist() == legacy
    state = random.getstate()
    random.seed(99)
    assert edges_of(graphs.make(name, 40, seed=3)) == first
    random.setstate(state)
    assert edges_of(graphs.make(name, 40, seed=4)) != first
    assert edges_of(graphs.make(name, 40, seed=0)) == edges_of(graphs.make(name, 40))


def test_labels_become_agents_in_sorted_order():
    """Would catch agents numbered by order of appearance where labels sort."""
    numbers = nx.Graph([(5, 2), (9, 5)])  # 2, 5, 9 are agents 0, 1, 2
    assert edges_of(graphs.make(numbers, 3)) == {(0, 1), (1, 2)}
    words = nx.Graph([("carol", "alice"), ("alice", "bob")])
    assert edges_of(graphs.make(words, 3)) == {(0, 2), (0, 1)}
    # Labels of two kinds do not sort: order of appearance.
    mixed = nx.Graph([("b", 7), (7, "a")])
    assert edges_of(graphs.make(mixed, 3)) == {(0, 1), (1, 2)}


@pytest.mark.parametrize("name", ["star", "grid", "random"])
def test_distances_match_floyd_and_warshall(name):
    """Would catch a transposed, permuted or off-by-one table of hop distances."""
    graph = graphs.make(name, 26, seed=1)
    expected = np.asarray(nx.floyd_warshall_numpy(graph, nodelist=range(26)))
    assert np.array_equal(graphs.distances(graph), expected)
    assert graphs.diameter(graph) == expected.max()


def parts_of(spec, agents):
    """Returns (nodes, edges) of each component."""
    return [(len(g), g.number_of_edges()) for g in graphs.components(spec, agents)]


@pytest.mark.parametrize(
    ("spec", "agents", "parts"),
    [
        ("20x5", 100, [(20, 190)] * 5),
        ("53,24,10,6,7:complete", 100, [(53, 1378), (24, 276), (10, 45), (6, 15), (7, 21)]),
        ("20x2:ring+10x6:star", 100, [(20, 20)] * 2 + [(10, 9)] * 6),
        ("1x100", 100, [(1, 0)] * 100),
        (" 3 , 4x2 : path + 5 ", 16, [(3, 2), (4, 3), (4, 3), (5, 10)]),
        ([nx.cycle_graph(4), nx.path_graph(5)], 9, [(4, 4), (5, 4)]),
        ([nx.relabel_nodes(nx.path_graph(3), {0: "x", 1: "y", 2: "z"})], 3, [(3, 2)]),
    ],
)
def test_component_specs(spec, agents, parts):
    """Would catch sizes and counts swapped, a graph applied to the wrong part, or a lost one."""
    assert parts_of(spec, agents) == parts


def test_random_components_differ_and_can_be_made_alone():
    """Would catch one random graph used for every component, or seeds that cannot be named."""
    parts = graphs.components("20x3:random+20x2:regular-4", 100, seed=7)
    assert len({frozenset(edges_of(graph)) for graph in parts}) == 5
    names = ["random"] * 3 + ["regular-4"] * 2
    for q, (graph, name) in enumerate(zip(parts, names, strict=True)):
        assert edges_of(graph) == edges_of(graphs.make(name, 20, seed=7 + q))
    # One component is its graph, and the last seed wraps instead of failing.
    alone = graphs.components("20:random", 20)[0]
    assert edges_of(alone) == edges_of(graphs.make("random", 20))
    last = graphs.components("20x2:random", 40, seed=2**32 - 1)[1]
    assert edges_of(last) == edges_of(alone)


STAR_FILES = {
    "star.txt": "\ufeff# hub first\n10 2\n\n10\t9   # a comment\n",
    "star.edgelist": "10 2 {}\r\n10 9 {'weight': 3}\r\n",
}


@pytest.mark.parametrize("name", sorted(STAR_FILES))
def test_edge_list_files(name, tmp_path):
    """Would catch headers read as agents, labels sorted as text (10 < 2 < 9) or lost lines."""
    path = tmp_path / name
    path.write_text(STAR_FILES[name], encoding="utf-8", newline="")
    for given in (path, str(path)):
        # 2, 9, 10 are agents 0, 1, 2: the hub is the last.
        assert edges_of(graphs.make(given, 3)) == {(0, 2), (1, 2)}


def test_networkx_files_come_back(tmp_path):
    """Would catch a graph that does not survive networkx's own writers."""
    graph = graphs.make("random", 30)
    nx.write_edgelist(graph, tmp_path / "g.edgelist")
    doubled = nx.MultiGraph(graph)
    doubled.add_edges_from(list(graph.edges()))
    nx.write_graphml(doubled, tmp_path / "doubled.graphml")
    named = nx.relabel_nodes(graph, {agent: f"agent {agent:02d}" for agent in graph})
    nx.write_graphml(named, tmp_path / "named.graphml")
    for name in ("g.edgelist", "doubled.graphml", "named.graphml"):
        assert edges_of(graphs.make(tmp_path / name, 30)) == edges_of(graph), name


def identity(kind, given):
    """Returns how a configuration identifies a graph, or components."""
    return json.loads(json.dumps(kind.plain(kind.check_value("graph", given, ""))))


def test_descriptions_identify_what_was_given(tmp_path, monkeypatch):
    """Would catch a changed file or graph that passes for the old one when a run is resumed."""
    monkeypatch.chdir(tmp_path)
    graph, parts = GraphOf(), ComponentsOf()
    assert identity(parts, "20x2:ring+10x6:star") == "20x2:ring+10x6:star"
    path, other = nx.path_graph(4), nx.Graph([(0, 1), (1, 3), (2, 3)])
    renamed = nx.MultiGraph([(8, 7), (6, 7), (5, 6), (6, 5)])
    assert identity(graph, path) == identity(graph, renamed) != identity(graph, other)
    assert identity(parts, [path, renamed])[0] == identity(graph, path)
    identities = []
    for content in ("0 1\n1 2\n", "0 1\n0 2\n"):
        Path("net.txt").write_text(content)
        identities.append(identity(graph, Path("net.txt")))
        assert identity(graph, "net.txt") == identities[-1]
    assert identities[0] != identities[1]
