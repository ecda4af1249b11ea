"""Exchanges against protocols played message by message, and against counts made by hand."""

import random
from fractions import Fraction

import networkx as nx
import numpy as np
import protocols
import pytest

from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs


def shuffled(graph, rng):
    """Renumbers the agents at random, so that the lowest-numbered neighbour is anywhere."""
    numbers = list(range(len(graph)))
    rng.shuffle(numbers)
    renumbered = nx.empty_graph(len(graph))
    renumbered.add_edges_from((numbers[a], numbers[b]) for a, b in graph.edges())
    return renumbered


def random_graphs(how_many):
    """Draws connected graphs of 1 to 60 agents: trees, caterpillars, Erdos-Renyi, preferential."""
    rng = random.Random(23)
    drawn = []
    while len(drawn) < how_many:
        agents, kind = rng.randint(1, 60), len(drawn) % 5
        graph = nx.empty_graph(agents)
        if kind < 3:
            # A parent among the last few agents makes long trees, among all of them bushy ones.
            reach = rng.choice([1, 2, 4, agents])
            graph.add_edges_from((i, rng.randrange(max(i - reach, 0), i)) for i in range(1, agents))
            for _ in range([0, 1, agents // 4][kind] if agents > 1 else 0):
                graph.add_edge(*rng.sample(range(agents), 2))
        elif kind == 3:
            graph = nx.gnp_random_graph(agents, rng.choice([0.08, 0.15, 0.3, 0.7]), seed=rng)
        elif agents > 3:
            graph = nx.barabasi_albert_graph(agents, rng.randint(1, 3), seed=rng)
        if nx.is_connected(graph):
            drawn.append(shuffled(graph, rng))
    return drawn


def neighbours_of(graph):
    """Returns the graph as the plain dict that the protocols run on."""
    actual = {agent: [] for agent in graph}
    for a, b in graph.edges():
        actual[a].append(b)
        actual[b].append(a)
    return actual


def check_gis(graph):
    """Compares every number of the flooding table with one GIS round; returns the table."""
    played = protocols.flood(neighbours_of(graph))
    table = exchange.flooding(graph)
    agents = len(graph)
    others = {(i, j) for i in range(agents) for j in range(agents) if i != j}
    assert played.copies() == dict.fromkeys(others, 1)
    hops = graphs.distances(graph)
    assert {(i, j): hops[i, j] for i, j in others} == played.arrival
    assert table.diameter == played.slots
    assert table.wait == max(played.slots - 1, 0)
    assert table.on("bound") == sum(graph.number_of_edges() for _ in range(played.slots))
    assert table.on("used") == played.edge_slots()
    assert table.vectors == sum(len(message[3]) for message in played.data)
    assert table.ledger == (len(played.adv), len(played.req), len(played.data))
    return table


def check_plain_flooding(graph):
    """Compares every number of the table with one round of plain flooding; returns the table."""
    played = protocols.plain_flood(neighbours_of(graph))
    table = exchange.plain_flooding(graph)
    # Observations arrive when they do with GIS.
    gis = exchange.flooding(graph)
    hops = graphs.distances(graph)
    assert all(hops[pair] == slot for pair, slot in played.arrival.items())
    assert (table.diameter, table.wait) == (gis.diameter, gis.wait)
    assert table.diameter == played.slots
    assert (table.on("bound"), table.on("used")) == (gis.on("bound"), played.edge_slots())
    sent = sum(len(message[3]) for message in played.data)
    assert table.vectors == sent
    # Nobody goes without, and whatever else arrives is a duplicate.
    assert set(played.copies()) == {(i, j) for i, j in played.arrival}
    assert sent >= gis.vectors == len(played.arrival)
    return table


def check_gossip(graph, tolerance):
    """Compares every number of the gossip table with one round; returns the table."""
    played = protocols.gossip(neighbours_of(graph), tolerance)
    table = exchange.gossip(graph, tolerance)
    assert table.wait == max(played.slots - 1, 0)
    pairs = len({(slot, frozenset((a, b))) for slot, a, b in played.data})
    assert table.on("pairs") == table.on("used") == pairs
    assert table.vectors == len(played.data)
    assert table.diameter == graphs.diameter(graph)
    return table


def check_sinks(parts):
    """Compares the hybrid table with one SAC round in each component; returns the table."""
    played = [protocols.collect(neighbours_of(graph)) for graph in parts]
    table = exchange.sinks(parts)
    first = [sum(len(graph) for graph in parts[:q]) for q in range(len(parts))]
    assert table.sinks == tuple(start + one.sink for start, one in zip(first, played, strict=True))
    assert table.wait == max(max(one.slots - 1, 0) for one in played)
    assert table.on("sac") == sum(len(one.forwards) for one in played)
    assert table.on("edges") == sum(graph.number_of_edges() for graph in parts)
    assert table.on("server") == len(parts)
    assert table.agents == table.reporting == sum(len(graph) for graph in parts)
    sent = sum(len(one.forwards) for one in played) + len(parts)
    assert table.vectors == sent
    return table


@pytest.mark.parametrize("many", [40, pytest.param(520, marks=pytest.mark.slow)])
def test_graphs_match_the_protocols_message_by_message(many):
    """Would catch a wrong delay, meter, ledger or sink on any shape of graph."""
    drawn = random_graphs(many)
    drawn += [graphs.make(name, n) for name in ("star", "ring", "path", "grid") for n in (1, 2, 7)]
    tables = [check_gis(graph) for graph in drawn]
    plain = [check_plain_flooding(graph) for graph in drawn]
    for graph in drawn[::4]:
        if len(graph) <= 16:
            check_gossip(graph, 0.01)
    for start in range(0, len(drawn), 4):
        check_sinks(drawn[start : start + 4])
    # The battery holds long waits and graphs where not every edge carries DATA.
    assert max(table.wait for table in tables) > 20
    assert sum(table.on("used") < table.on("bound") for table in tables) > many // 6
    assert sum(a.vectors > b.vectors for a, b in zip(plain, tables, strict=True)) > many // 6


@pytest.mark.parametrize(
    ("name", "wait", "bound", "used", "ledger"),
    [
        # Hub and leaves exchange over all 49 edges, then the hub answers each leaf.
        ("star", 1, 98, 98, (196, 98 + 49, 98 + 49)),
        # 24 slots both ways on 50 edges; in slot 25 each agent asks one side: edge 48-49 is idle.
        ("ring", 24, 1250, 1249, (2500, 2450, 2450)),
        ("complete", 0, 1225, 1225, (2450, 2450, 2450)),
    ],
)
def test_counts_of_fifty_agents(name, wait, bound, used, ledger):
    """Would catch meters that drift from the project's published counts at M = 50."""
    table = exchange.flooding(graphs.make(name, 50))
    assert (table.wait, table.on("bound"), table.on("used")) == (wait, bound, used)
    assert [meter.name for meter, _ in table.links] == ["bound", "used"]
    assert [meter.priced for meter, _ in table.links] == [True, False]
    assert (table.ledger, table.vectors) == (ledger, 2450)
    assert (table.on("server"), table.reporting, table.uniform) == (0, 50, True)


def test_gossip_ends_as_soon_as_no_messages_can_be_further_apart_than_the_tolerance():
    """Would catch a bound that is not one, or slots past the need: the worst messages are tried."""
    graph, tolerance = graphs.make("grid", 12), 0.02
    played = protocols.gossip(neighbours_of(graph), tolerance)
    assert exchange.gossip(graph, tolerance).wait + 1 == played.slots > 10
    ends = []
    for held in (played.before, played.weights):
        weights = np.array([[held[a][b] for b in range(12)] for a in range(12)])
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-12)
        # Messages of 0 and 1, their range, that lead an agent astray the most; and some others.
        worst = (weights > 1 / 12).astype(float)
        some = np.random.default_rng(5).random((200, 12))
        messages = np.concatenate([worst, some / np.ptp(some, axis=1)[:, None]])
        off = np.abs(messages @ weights.T - messages.mean(axis=1)[:, None])
        ends.append(off.max())
    assert ends[0] > tolerance >= ends[1]


@pytest.mark.parametrize(
    ("spec", "agents", "edges", "sac", "wait", "servers"),
    [
        ("20x5:complete", 100, 5 * 190, 5 * 19, 0, 5),
        ("53,24,10,6,7:complete", 100, 1378 + 276 + 45 + 15 + 21, 100 - 5, 0, 5),
        ("20x5:star", 100, 5 * 19, 5 * 19, 0, 5),
        ("1x100", 100, 0, 0, 0, 100),
        # A ring of 20: two agents at each distance 1..9, one at 10. A path of 5: the middle.
        ("20x2:ring+5x12:path", 100, 2 * 20 + 12 * 4, 2 * (90 + 10) + 12 * 6, 9, 14),
    ],
)
def test_table_two_by_hand(spec, agents, edges, sac, wait, servers):
    """Would catch a hybrid meter, wait or server count that differs from table II's geometry."""
    table = exchange.sinks(graphs.components(spec, agents))
    assert (table.on("edges"), table.on("sac")) == (edges, sac)
    assert (table.wait, table.on("server")) == (wait, servers)
    meters = [(meter.name, meter.side, meter.priced) for meter, _ in table.links]
    assert meters == [("server", "server", True), ("edges", "peer", True), ("sac", "peer", False)]


def test_weights_by_agent_and_by_component():
    """Would catch the two weightings swapped, or shares given to the wrong component's agents."""
    parts = graphs.components("1+3+4:star", 8)
    by_agent = exchange.sinks(parts)
    by_component = exchange.sinks(parts, "components")
    assert by_agent.weights.tolist() == [1 / 8] * 8 and by_agent.uniform
    assert by_component.weights.tolist() == [1 / 3] + [1 / 9] * 3 + [1 / 12] * 4
    assert not by_component.uniform
    # Equal components make the two the same, to the last bit.
    halves = graphs.components("7x7", 49)
    assert exchange.sinks(halves, "components").uniform


def test_who_sees_a_sum_over_how_many():
    """Would catch the sum over the largest component for that of the smallest."""
    server, agents = ("the server", 1, False), "the agents"
    for table, views in (
        (exchange.server(50), [server, (agents, 50, True)]),
        (exchange.server(50, 0.3), [server, (agents, 15, True)]),
        (exchange.flooding(graphs.make("ring", 5)), [("every agent", 1, False)]),
        (
            exchange.sinks(graphs.components("20,17,13:star", 50)),
            [
                ("sinks, and agents that pass on", 1, False),
                *(("the server", 13, False), (agents, 50, True)),
            ],
        ),
    ):
        assert [(view.viewer, view.over, view.is_member) for view in table.views] == views


@pytest.mark.parametrize("agents", [1, 5, 100, 99_999])
def test_reporting_agents_is_the_exact_ceiling(agents):
    """Would catch ceil(0.07 * 100) = 8 and every other product that lands beside its integer."""
    shares = [k / 100 for k in range(1, 101)] + [0.0701, 0.12345, 1e-300, 0.9999999]
    reporting = [exchange.reporting_agents(agents, share) for share in shares]
    assert reporting == [-(-Fraction(repr(share)) * agents // 1) for share in shares]
