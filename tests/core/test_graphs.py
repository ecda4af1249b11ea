"""Graphs by name, from networkx and from files; components; hop distances; every refusal."""

import itertools
import json
import math
import os
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from refusals import refused
from scipy import stats

import fmab_jax as fmab
from fmab_jax.analysis.words import facts
from fmab_jax.core import graphs
from fmab_jax.core.networks import ComponentsOf, GraphOf
from fmab_jax.sweeps.grid import attributes_of
from fmab_jax.sweeps.study import state

Edges = set[tuple[int, int]]


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
        ("preferential", 3, {(0, 1), (0, 2)}),
    ],
)
def test_named_graphs_edge_by_edge(name, agents, edges):
    """Would catch a hub that is not agent 0, an open ring, a grid with a wrapped row."""
    assert edges_of(graphs.make(name, agents)) == edges


@pytest.mark.parametrize(
    "name", ["complete", "star", "ring", "path", "grid", "random", "random-0.9", "preferential"]
)
def test_one_and_two_agents(name):
    """Would catch the self-loop of a one-agent ring and the divisions by M - 1."""
    assert edges_of(graphs.make(name, 1)) == set()
    assert list(graphs.make(name, 1)) == [0]
    assert edges_of(graphs.make(name, 2)) == {(0, 1)}


@pytest.mark.parametrize("agents", range(1, 70))
def test_grids_are_square_and_connected_for_every_size(agents):
    """Would catch a grid that falls apart or degenerates to a path at a prime number of agents."""
    grid = graphs.make("grid", agents)
    columns = math.ceil(math.sqrt(agents))
    place = {agent: divmod(agent, columns) for agent in range(agents)}
    near = {
        (a, b)
        for a, b in itertools.combinations(range(agents), 2)
        if abs(place[a][0] - place[b][0]) + abs(place[a][1] - place[b][1]) == 1
    }
    assert edges_of(grid) == near
    assert nx.is_connected(grid)


def test_regular_graphs_exist_exactly_where_they_can():
    """Would catch a degree that is off, or an impossible (D, M) accepted, for all M up to 12."""
    for agents, degree in itertools.product(range(1, 13), range(13)):
        # A connected D-regular graph exists for even D M and 2 <= D < M, and in two tiny cases.
        possible = degree * agents % 2 == 0 and 2 <= degree < agents
        if possible or (agents, degree) in {(1, 0), (2, 1)}:
            graph = graphs.make(f"regular-{degree}", agents, seed=agents)
            assert {found for _, found in graph.degree()} == {degree}
            assert nx.is_connected(graph)
        else:
            with pytest.raises(ValueError, match=f"^graph='regular-{degree}': must be regular-D"):
                graphs.make(f"regular-{degree}", agents)


def test_two_regular_graph_is_one_ring_in_random_order():
    """Would catch several small rings, and a plain ring sold as a random graph."""
    graph = graphs.make("regular-2", 40)
    assert nx.is_isomorphic(graph, nx.cycle_graph(40))
    assert edges_of(graph) != edges_of(graphs.make("ring", 40))


@pytest.mark.parametrize(
    ("name", "chance"), [("random", 2 * math.log(50) / 50), ("random-0.3", 0.3), ("random-.5", 0.5)]
)
def test_random_graphs_have_the_stated_edge_probability(name, chance):
    """Would catch ln M / M or another logarithm: 200 graphs, detects 2 % of the probability.

    Conditioning on connectedness moves the mean number of edges by less than a standard error.
    """
    total = sum(graphs.make(name, 50, seed=seed).number_of_edges() for seed in range(200))
    assert stats.binomtest(total, 200 * 1225, chance).pvalue > 1e-6


def test_sparse_random_graphs_are_redrawn_until_connected():
    """Would catch a disconnected first draw returned, or edges added to repair it."""
    drawn = [graphs.make("random-0.12", 20, seed=seed) for seed in range(40)]
    assert all(nx.is_connected(graph) for graph in drawn)
    # Trees need 19 edges; a mean of 1 / 5 above the unconditional 22.8 shows that draws were kept
    # whole: a spanning tree added to every draw would give about 40.
    assert 22 < np.mean([graph.number_of_edges() for graph in drawn]) < 32


def test_preferential_graphs_have_hubs():
    """Would catch a newcomer that brings another number of edges or ignores degrees."""
    graph = graphs.make("preferential-3", 400)
    # The first four agents are a star of three edges; every later one brings three.
    assert graph.number_of_edges() == 3 + 3 * 396
    assert graphs.make("preferential", 400).number_of_edges() == 2 + 2 * 397
    # Uniform attachment would give a largest degree of about 3 (1 + ln 400) = 21.
    assert max(degree for _, degree in graph.degree()) > 40


@pytest.mark.parametrize("name", ["random", "random-0.2", "regular-4", "regular-2", "preferential"])
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


def test_result_is_plain_frozen_and_in_agent_order():
    """Would catch kept weights, parallel edges counted twice, and a matrix in label order."""
    given = nx.MultiGraph([(2, 1, {"weight": 3.0}), (1, 2), (0, 2)])
    for made in (graphs.make(given, 3), graphs.validated(given)):
        assert type(made) is nx.Graph
        assert list(made.edges(data=True)) == [(0, 2, {}), (1, 2, {})]
        assert list(made) == [0, 1, 2]
        with pytest.raises(nx.NetworkXError, match="Frozen"):
            made.add_edge(0, 1)
    assert given.number_of_edges() == 3 and not nx.is_frozen(given)
    for name in ("regular-2", "regular-5", "random", "preferential", "grid"):
        assert list(graphs.make(name, 30)) == list(range(30))


@pytest.mark.parametrize(
    "name", ["ring", "path", "star", "complete", "grid", "random", "regular-3"]
)
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
        ("20x5:star", 100, [(20, 19)] * 5),
        ("20x5", 100, [(20, 190)] * 5),
        ("53,24,10,6,7:complete", 100, [(53, 1378), (24, 276), (10, 45), (6, 15), (7, 21)]),
        ("20x2:ring+10x6:star", 100, [(20, 20)] * 2 + [(10, 9)] * 6),
        ("1x100", 100, [(1, 0)] * 100),
        (" 3 , 4x2 : path + 5 ", 16, [(3, 2), (4, 3), (4, 3), (5, 10)]),
        ("9:grid+8:regular-3", 17, [(9, 12), (8, 12)]),
        ([3, (4, "ring"), nx.path_graph(5)], 12, [(3, 3), (4, 4), (5, 4)]),
        ((np.int64(2), [3, nx.path_graph(3)]), 5, [(2, 1), (3, 2)]),
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
    "star.txt": "# hub first\n10 2\n\n10\t9   # a comment\n",
    "star.edgelist": "10 2 {}\n10 9 {'weight': 3}\n",
    "weights.txt": "10 2 0.5\n10 9 1e-3\n",
    "star.csv": "10,2\n10, 9\n",
    "header.csv": "\ufeffSource,Target,Weight\r\n10,2,1\r\n10,9,1\r\n",
    "header.txt": "source target\n10 2\n10 9\n",
    "ends.csv": "from,to\n10,2\n10,9\n",
    "konect.txt": "% sym unweighted\n%% 2 3 3\n10 2\n % a comment\n10 9\n",
    "upper.CSV": '"10","2"\n"10","9"\n',
}


@pytest.mark.parametrize("name", sorted(STAR_FILES))
def test_edge_list_files(name, tmp_path):
    """Would catch headers read as agents, labels sorted as text (10 < 2 < 9) or lost lines."""
    path = tmp_path / name
    path.write_text(STAR_FILES[name], encoding="utf-8", newline="")
    for given in (path, str(path)):
        # 2, 9, 10 are agents 0, 1, 2: the hub is the last.
        assert edges_of(graphs.make(given, 3)) == {(0, 2), (1, 2)}


def test_edges_with_weights_are_no_matrix(tmp_path):
    """Would catch a triangle with weights that is taken for a matrix of three rows."""
    path = tmp_path / "triangle.txt"
    for text in ("0 1 1\n1 2 1\n2 0 1\n", "0 1 0.5\n1 2 1\n2 0 1\n0 2 3\n"):
        path.write_text(text)
        assert edges_of(graphs.make(path, 3)) == {(0, 1), (0, 2), (1, 2)}


def test_weights_that_are_ignored_are_said(tmp_path, monkeypatch):
    """Would catch weights that go unsaid: of a file, of networkx, of a component, in a sweep."""
    monkeypatch.chdir(tmp_path)
    weighted = {
        "net.txt": "0 1 0.5\n1 2 0.5\n",
        "net.csv": "source,target,weight\n0,1,2\n1,2,1\n",
        "net.edgelist": "0 1 {'weight': 3}\n1 2 {}\n",
    }
    plain = {"even.txt": "0 1 1\n1 2 1.0\n", "bare.csv": "0,1\n1,2\n"}
    plain["even.edgelist"] = "0 1 {'weight': 1}\n1 2 {'colour': 3}\n"
    for name, text in (weighted | plain).items():
        Path(name).write_text(text)
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 0.5, "weight")
    nx.write_graphml(graph, "net.graphml")

    def told(maker, **given):
        study = state(maker, horizon=50, seeds=2, epsilon=1.0, agents=3, arms=2, **given)
        return ", ".join(facts(xr.Dataset(attrs=attributes_of(study)), given))

    for name in (*weighted, "net.graphml", graph):
        assert told(fmab.ddp_mab, graph=name).endswith(", edge weights ignored")
    for name in plain:
        assert "weights" not in told(fmab.ddp_mab, graph=name)
    assert told(fmab.hdp_mab, components="3:net.txt").endswith(", edge weights ignored")
    assert told(fmab.hdp_mab, components=[[graph]]).endswith(", edge weights ignored")
    swept = told(fmab.ddp_mab, graph=["net.txt", "ring"])
    assert swept.endswith(", net.txt (edge weights ignored)")


def test_a_file_is_named_where_its_graph_is_refused(tmp_path, monkeypatch):
    """Would catch "Graph with 4 nodes and 2 edges" for the name of a file."""
    monkeypatch.chdir(tmp_path)
    Path("net.txt").write_text("0 1\n2 3\n")
    assert refused(fmab.ddp_mab, 1.0, "net.txt") == f"graph='net.txt': {APART.format(2)}"
    Path("net.txt").write_text("0 1\n1 2\n")
    problem = fmab.Problem.uniform(2, 2)
    due = f"graph='net.txt': {NODES.format(2, 3)}"
    assert refused(fmab.simulate, fmab.ddp_mab(1.0, "net.txt"), problem, 9, 2) == due


def test_networkx_files_come_back(tmp_path):
    """Would catch a graph that does not survive networkx's own writers."""
    graph = graphs.make("random", 30)
    nx.write_edgelist(graph, tmp_path / "g.edgelist")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    doubled = nx.MultiGraph(graph)
    doubled.add_edges_from(list(graph.edges()))
    nx.write_graphml(doubled, tmp_path / "doubled.graphml")
    named = nx.relabel_nodes(graph, {agent: f"agent {agent:02d}" for agent in graph})
    nx.write_graphml(named, tmp_path / "named.graphml")
    for name in ("g.edgelist", "g.graphml", "doubled.graphml", "named.graphml"):
        assert edges_of(graphs.make(tmp_path / name, 30)) == edges_of(graph), name
    spec = f"30:{tmp_path / 'g.graphml'}+5"
    assert edges_of(graphs.components(spec, 35)[0]) == edges_of(graph)


def identity(kind, given):
    """Returns how a configuration identifies a graph, or components."""
    return json.loads(json.dumps(kind.plain(kind.checked("graph", given, ""))))


def test_descriptions_identify_what_was_given(tmp_path, monkeypatch):
    """Would catch a changed file or graph that passes for the old one when a run is resumed."""
    monkeypatch.chdir(tmp_path)
    graph, parts = GraphOf(), ComponentsOf()
    assert identity(graph, "ring") == "ring"
    assert identity(parts, "20x2:ring+10x6:star") == "20x2:ring+10x6:star"
    path, other = nx.path_graph(4), nx.Graph([(0, 1), (1, 3), (2, 3)])
    renamed = nx.MultiGraph([(8, 7), (6, 7), (5, 6), (6, 5)])
    assert identity(graph, path) == identity(graph, renamed) != identity(graph, other)
    assert identity(parts, [3, (np.int64(4), "ring"), path])[:2] == [3, [4, "ring"]]
    told = []
    for content in ("0 1\n", "0 1\n0 2\n"):
        Path("net.txt").write_text(content)
        told += [identity(graph, "net.txt"), identity(graph, Path("net.txt"))]
        told += [identity(parts, "3x2:net.txt+5")]
    assert told[0] == told[1] != told[3] and told[2] != told[5]


NAMES = (
    "must be one of complete, star, ring, path, grid, regular-D, random, random-P, preferential, "
    "preferential-m, a networkx graph, or a .txt, .edgelist, .csv or .graphml file; "
)
AGENTS = "must be a whole number in [1, 1,000,000]; choose the number of agents in the graph"
SEED = "must be a whole number in [0, 4,294,967,295]; choose a seed in that range"
REGULAR = (
    "must be regular-D with a degree D in [{}, {}] and an even D x agents (agents={}); "
    "the nearest is regular-{}"
)
CHANCE = "must be random-P with an edge probability P in (0, 1]; try random-0.2"
DRAWS = "must be a graph that is connected within 200 draws; raise P, to 0.16 for example"
NEWCOMERS = (
    "must be preferential-m with 1 <= m < 5 (the agents); choose m in that range or more agents"
)
EDGES = "must be a graph of at most 2,000,000 edges (this one has about {}); use fewer agents or a "
EDGES += "sparser graph"
EMPTY = "must be a graph with at least one node; add the agents as nodes"
DIRECTED = "must be an undirected graph; convert it with graph.to_undirected()"
LOOPS = "must be a graph without self-loops (it has {}); remove them first"
APART = "must be a connected graph (it has {} connected components); "
APART += "add edges, or use hdp_mab for separate components"
NODES = "must be a graph of {} nodes, one per agent (it has {}); "
NODES += "match the number of agents to the graph"


LIST = "must be an edge list of two labels a line, an optional weight after them"
GEPHI = f"{LIST}; it is a table of edges, as of Gephi: keep its columns Source, Target and Weight"
COMMAS = "it has {}: save it with commas, and points in decimal numbers"
MARKET = f"{LIST}; it is of Matrix Market: delete all lines above the first edge"
HEADER = f"{LIST}; line 1, {{!r}}, looks like a header: call it source and target"
MATRIX = f"{LIST}; it is an adjacency matrix: write a line for each edge, "
MATRIX += "as networkx.write_edgelist does"
MATRICES = (
    *(b"0,1,0\n1,0,1\n0,1,0\n", b"0,0.5,0\n0.5,0,2\n0,2,0\n"),
    *(b"0,1,0,0\n1,0,1,0\n0,1,0,1\n0,0,1,0\n", b"a,b,c,d\n" + 4 * b"0,1,1,0\n"),
    *(b"a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n", b"0,1,2,3\n" + 4 * b"0,1,1,0\n"),
)


def with_loops(*agents):
    """Returns a path of three agents with self-loops at the given ones."""
    graph = nx.path_graph(3)
    graph.add_edges_from((agent, agent) for agent in agents)
    return graph


def shown(given):
    """Returns a value as a refusal shows it."""
    text = repr(str(given) if isinstance(given, nx.Graph) else given)
    return text if len(text) <= 80 else f"{text[:77]}..."


@pytest.mark.parametrize(
    ("graph", "agents", "message"),
    [
        ("rng", 5, f"{NAMES}did you mean 'ring'?"),
        ("Star", 5, f"{NAMES}did you mean 'star'?"),
        *((near, 5, f"{NAMES}did you mean 'regular-4'?") for near in ("regular", "regular-\u0664")),
        ("preferental", 5, f"{NAMES}did you mean 'preferential'?"),
        ("random-", 5, f"{NAMES}did you mean 'random'?"),
        *((far, 5, f"{NAMES}for example 'ring'") for far in ("", "graph.gml", "x" * 10**6)),
        *((none, 5, f"{NAMES}for example graph='ring'") for none in (None, 7, b"ring")),
        ("regular-3", 5, REGULAR.format(2, 4, 5, 2)),
        ("regular-6", 5, REGULAR.format(2, 4, 5, 4)),
        ("regular-1", 4, REGULAR.format(2, 3, 4, 2)),
        ("regular-4", 1, REGULAR.format(0, 0, 1, 0)),
        *((name, 5, CHANCE) for name in ("random-0", "random-1.5")),
        ("random-1e-3", 50, DRAWS),
        *((name, 5, NEWCOMERS) for name in ("preferential-0", "preferential-5")),
        ("complete", 5000, EDGES.format("12,497,500")),
        ("random-0.5", 10**6, EDGES.format("249,999,750,000")),
        (nx.Graph(), 5, EMPTY),
        (nx.path_graph(5, nx.DiGraph), 5, DIRECTED),
        (nx.MultiDiGraph([(0, 1), (1, 0)]), 2, DIRECTED),
        (with_loops(0, 2), 3, LOOPS.format(2)),
        (nx.Graph([(0, 1), (2, 3), (4, 5)]), 6, APART.format(3)),
        (nx.path_graph(3), 5, NODES.format(5, 3)),
    ],
)
def test_refused_graphs(graph, agents, message):
    """Would catch a bad graph that passes, or a message that lost field, value or remedy."""
    assert refused(graphs.make, graph, agents) == f"graph={shown(graph)}: {message}"


@pytest.mark.parametrize("agents", [0, -3, 2.5, 10**9, float("nan")])
def test_refused_numbers_of_agents(agents):
    """Would catch a number of agents that is none."""
    assert refused(graphs.make, "ring", agents) == f"agents={agents!r}: {AGENTS}"


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, "1"])
def test_refused_seeds(seed):
    """Would catch seeds that collide beyond 2^32 or that Python takes for numbers."""
    for call in (graphs.make, graphs.components):
        found = refused(call, "5" if call is graphs.components else "ring", 5, seed=seed)
        assert found == f"seed={seed!r}: {SEED}"


GRAMMAR = "must be parts SIZExCOUNT:graph joined by '+', e.g. '20x5:star+10:ring'; rewrite the part"
EXAMPLES = "for example components='20x5:star'"
ITEM = f"must be a networkx graph, a size or a (size, graph) pair; {EXAMPLES}"
LISTED = f"must be a text or a non-empty list of components; {EXAMPLES}"
SUM = "must be sizes that sum to agents={} (they sum to {}); "
SUM += "change the sizes or the number of agents"
ORDER = "components='parts of one graph': must be numbered one component after the other; "
ORDER += "agent 1 would be node 2: relabel the nodes, and order the means of agents alike"
# Texts, and the part that is to be rewritten.
MISWRITTEN = {"5+": ""} | {
    text: text
    for text in ("", "star", "5:", ":star", "3,,2", "0x5", "5x0", "-5", "2.5x2", "\u0665", "5*1")
}


@pytest.mark.parametrize(
    ("spec", "agents", "message"),
    [
        ("20x5:star", 50, f"components='20x5:star': {SUM.format(50, 100)}"),
        ("63,24,10,6,7", 100, f"components='63,24,10,6,7': {SUM.format(100, 110)}"),
        ("1x999999999", 100, f"components='1x999999999': {SUM.format(100, 999999999)}"),
        ([3, (4, "ring")], 8, f"components=[3, 4]: {SUM.format(8, 7)}"),
        *(
            (text, 5, f"components={text!r}: {GRAMMAR} {part!r}")
            for text, part in MISWRITTEN.items()
        ),
        ("2+3:rng", 5, f"components[1]='rng': {NAMES}did you mean 'ring'?"),
        ("2+3x1:regular-4", 5, f"components[1]='regular-4': {REGULAR.format(2, 2, 3, 2)}"),
        *((given, 5, f"components={given!r}: {LISTED}") for given in ([], 5, None, b"5")),
        (
            *(nx.path_graph(5), 5),
            "components='Graph with 5 nodes and 4 edges': must be a text or a list; "
            "put the graph in a list",
        ),
        *(
            (given, 5, f"components[{at}]={given[at]!r}: {ITEM}")
            for at, given in (
                (1, [2, "ring"]),
                (0, [2.0, 3]),
                (0, [True, 4]),
                (0, [(2, "ring", 3)]),
            )
        ),
        ([5, 0], 5, "components[1]=0: must be a whole number in [1, 1,000,000]; change the size"),
        ([2, (3, None)], 5, f"components[1]=None: {NAMES}for example graph='ring'"),
        (
            *([2, (3, nx.path_graph(4))], 5),
            f"components[1]='Graph with 4 nodes and 3 edges': {NODES.format(3, 4)}",
        ),
        (
            *([2, nx.empty_graph(3)], 5),
            f"components[1]='Graph with 3 nodes and 0 edges': {APART.format(3)}",
        ),
        ([nx.Graph([(0, 2)]), nx.Graph([(1, 4), (3, 4)])], 5, ORDER),
        ("5", 0, f"agents=0: {AGENTS}"),
    ],
)
def test_refused_components(spec, agents, message):
    """Would catch a bad spec that passes, above all sizes that do not sum to the agents."""
    assert refused(graphs.components, spec, agents) == message


@pytest.mark.parametrize(
    "given",
    [
        [nx.Graph([(1, 0)]), nx.Graph([(4, 2), (3, 4)])],  # in order
        [nx.path_graph(2), nx.path_graph(3)],  # each numbered by itself
        [nx.Graph([("b", "a")]), nx.Graph([("c", "e"), ("d", "e")])],  # no numbers
        [nx.Graph([(7, 5)]), nx.Graph([(1, 4), (3, 4)])],  # no numbers of agents
        [nx.Graph([(1, 0)]), 3],
    ],
)
def test_components_that_are_numbered_are_taken(given):
    """Would catch a refusal of graphs whose labels say nothing of which agent is which."""
    with pytest.raises(ValueError, match="^components='parts of one graph': must be numbered one"):
        fmab.hdp_mab(1.0, components=[nx.Graph([(0, 2)]), nx.Graph([(1, 4), (3, 4)])])
    sizes = [len(graph) for graph in graphs.components(given, 5)]
    assert sizes == [2, 3]
    assert fmab.hdp_mab(1.0, components=given).exchange(5).sizes == (2, 3)


LINES = "must be an edge list of two labels a line, an optional weight after them; repair line"
WELL = "must be well-formed GraphML; repair the file ({})"
MARKED = "must be a GraphML file; repair the file ({})"
DTD = "must be GraphML without a DTD; delete the <!DOCTYPE ...> declaration"
LAUGHS = (
    '<?xml version="1.0"{}?>\n<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n'
    '<graphml><graph edgedefault="undirected"><node id="&b;"/></graph></graphml>'
)
XML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"0 1\n2\n", f"{LINES} 2: '2'"),
        # An adjacency list is not silently cut to the first neighbour of each agent.
        ("a.txt", b"0 1 2 3\n", f"{LINES} 1: '0 1 2 3'"),
        ("a.edgelist", b"0 1 {'weight'\n", f"{LINES} 1: \"0 1 {{'weight'\""),
        ("a.csv", b"0 1\n", f"{LINES} 1: '0 1'"),
        ("a.csv", b"0,1\n,2\n", f"{LINES} 2: ',2'"),
        ("a.csv", b"0,1,x,y\n", f"{LINES} 1: '0,1,x,y'"),
        ("a.csv", b'0,"' + b"1" * 200_000 + b'"\n', f"{LINES} 1: '0,\"{'1' * 37}'"),
        ("a.csv", b"0,1\nsource,target,kind\n", f"{LINES} 2: 'source,target,kind'"),
        ("a.csv", b"source,target,weight\n0,1,x\n", f"{LINES} 2: '0,1,x'"),
        ("a.csv", b"Source,Target,Type,Id,Label,Weight\n0,1,Undirected,0,,1.0\n", GEPHI),
        ("a.csv", b"Id,Source,Target\n0,0,1\n", GEPHI),
        ("a.csv", b",source,target\n0,0,1\n", GEPHI),
        ("a.csv", b"source;target\n0;1\n", f"{LIST}; {COMMAS.format('semicolons')}"),
        ("a.csv", b"Source\tTarget\tType\n", f"{LIST}; {COMMAS.format('tabs')}"),
        ("a.txt", b"%%MatrixMarket matrix coordinate\n2 2 1\n2 1\n", MARKET),
        ("a.txt", b"node1 node2\n0 1\n1 2\n", HEADER.format("node1 node2")),
        ("a.csv", b"V1,V2\n0,1\n", HEADER.format("V1,V2")),
        *(("a.txt", text.replace(b",", b" "), MATRIX) for text in MATRICES),
        *(("a.csv", text, MATRIX) for text in MATRICES),
        ("a.csv", b",a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n", MATRIX),
        (
            *("a.txt", b"0 1\n\xff\xfe"),
            "must be an edge list in UTF-8 text; save the file as UTF-8 text",
        ),
        ("a.txt", b"# nothing\n", EMPTY),
        ("a.txt", b"0 0\n0 1\n", LOOPS.format(1)),
        ("a.txt", b"0 1\n2 3\n", APART.format(2)),
        ("a.txt", b"0 1\n1 2\n", NODES.format(2, 3)),
        ("a.graphml", LAUGHS.format("").encode(), DTD),
        ("a.graphml", LAUGHS.format(' encoding="utf-16"').encode("utf-16"), DTD),
        ("a.graphml", b"", WELL.format("no element found: line 1, column 0")),
        (
            *("a.graphml", b"\x00\x01garbage"),
            WELL.format("not well-formed (invalid token): line 1, column 0"),
        ),
        ("a.graphml", b"<graphml><graph>", WELL.format("no element found: line 1, column 16")),
        ("a.graphml", b"<html/>", MARKED.format("file not successfully read as graphml")),
        (
            *("a.graphml", XML.format('<graph><node id="0"><data key="k">1</data></node></graph>')),
            MARKED.format("Bad GraphML data: no key k"),
        ),
        ("a.graphml", XML.format('<graph edgedefault="directed"><node id="0"/></graph>'), DIRECTED),
    ],
)
def test_refused_files(name, content, message, tmp_path, monkeypatch):
    """Would catch a malformed or hostile file that passes, or one that ends in a traceback."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert refused(graphs.make, name, 2) == f"graph={name!r}: {message}"


def test_refused_paths(tmp_path, monkeypatch):
    """Would catch a missing file taken for a name, a folder opened, or a huge file read."""
    monkeypatch.chdir(tmp_path)
    Path("folder.txt").mkdir()
    # Sparse: it takes no space on disk and must not be read.
    with open("huge.csv", "wb") as file:
        file.truncate(2**40)
    bad = {}
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        Path("pipe.txt").symlink_to("pipe")
        Path("device.csv").symlink_to("/dev/zero")
        special = "must be a graph file; this path is no regular file"
        bad = {"pipe.txt": special, "device.csv": special}
    bad |= {
        "none.txt": "must be a readable graph file; check the path (no such file or directory)",
        "folder.txt/in.csv": "must be a readable graph file; "
        "check the path (no such file or directory)",
        "a\x00.csv": "must be a path; check the path (it holds a NUL character)",
        "folder.txt": "must be a graph file; this path is no regular file",
        "huge.csv": "must be a graph file of at most 67,108,864 bytes; "
        "this one has 1,099,511,627,776",
    }
    for path, message in bad.items():
        for given in (path, Path(path)):
            assert refused(graphs.make, given, 5) == f"graph={path!r}: {message}"
