"""Components of one graph whose agents keep their numbers, against consecutive components."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.parts.partitions import Partition, PartitionOf
from fmab_jax.sweeps.study_file import build_study

NAMES = ("hdp", "kl_se_components")
# Agent 3 is the hub of a star, and the parts are mixed.
GRAPH = nx.Graph([(3, 0), (3, 4), (3, 5), (1, 2), (0, 1)])
MIXED = "0,3-5+1-2"
UNION = nx.disjoint_union(nx.star_graph(3), nx.path_graph(2))


def build(name, **params):
    return ALGORITHMS.find(name)(0.5, **params)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sum_agents", [True, False])
def test_consecutive_agents_have_the_same_bits_as_components(name, sum_agents):
    """Would catch another order of agents or components, another wait, or other streams."""
    problem = fmab.Problem.heterogeneous(agents=6, arms=3, spread=0.5)
    runs = [
        fmab.simulate(
            build(name, **params), problem, horizon=10**4, seeds=3, sum_agents=sum_agents
        ).drop_attrs()
        for params in (
            {"components": "4:star+2"},
            {"network": UNION},
            {"network": UNION, "partition": [[5, 4], (0, 1, 2, 3)]},
        )
    ]
    assert runs[0].identical(runs[1]) and runs[0].identical(runs[2])


@pytest.mark.parametrize("weights", ["agents", "components"])
def test_agents_keep_their_numbers(weights):
    """Would catch sinks and weights of consecutive agents, and edges between two parts."""
    exchange = fmab.hdp_mab(1.0, network=GRAPH, partition=MIXED, weights=weights).exchange(6)
    twin = fmab.hdp_mab(1.0, components="4:star+2", weights=weights).exchange(6)
    assert exchange.sinks == (3, 1) and twin.sinks == (0, 4)
    assert exchange.sizes == twin.sizes == (4, 2)
    assert (exchange.links, exchange.ledger, exchange.wait) == (twin.links, twin.ledger, twin.wait)
    if weights == "components":
        parts = [[0, 3, 4, 5], [1, 2]]
        for part in parts:
            np.testing.assert_array_equal(exchange.weights[part], 1 / (2 * len(part)))


def test_a_mean_belongs_to_its_agent():
    """Would catch weights of consecutive agents, by which arm 0 would have a mean of 0.39."""
    means = np.full((6, 2), 0.5)
    means[[1, 2], 0], means[[0, 3, 4, 5], 0] = 0.99, 0.2
    lost = [
        fmab.simulate(
            fmab.hdp_mab(None, network=GRAPH, partition=MIXED, weights=weights),
            fmab.Problem(means),
            horizon=10**5,
            seeds=5,
        ).best_arm_lost
        for weights in ("agents", "components")
    ]
    # Arm 0 has the mean 0.46, and 0.60 where both parts weigh the same.
    assert not lost[0].any() and lost[1].all()


def test_partitions_are_told_in_several_ways():
    """Would catch a partition that depends on how it is written, or loses its identity."""
    kind = PartitionOf()
    ways = [MIXED, "5,4,3,0+2,1", "1-2+0,3,4,5", [[0, 3, 4, 5], {2, 1}]]
    values = [kind.check_value("partition", way, "") for way in ways]
    assert all(value == values[0] for value in values)
    assert {kind.plain(value) for value in values} == {MIXED}
    assert [part.tolist() for part in values[0].parts] == [[0, 3, 4, 5], [1, 2]]
    assert kind.label(values[0]) == MIXED
    mixed = Partition.from_labels(np.arange(10**4) % 3)
    assert kind.text(mixed) == "3 parts" and set(kind.plain(mixed)) == {"agents", "sha256"}


def test_default_partition_is_the_connected_components():
    """Would catch the components of a disconnected graph in another order."""
    graph = nx.Graph([(0, 5), (2, 3), (3, 4)])
    graph.add_node(1)
    exchange = fmab.hdp_mab(1.0, network=graph).exchange(6)
    assert exchange.sizes == (2, 1, 3) and exchange.sinks == (0, 1, 3)
    assert fmab.hdp_mab(1.0, network="ring").exchange(6).sizes == (6,)


def test_partitions_are_swept_by_study_files():
    """Would catch a text that names no axis, and a list of parts taken for an axis."""
    shared = {"algorithm": "hdp", "horizon": 100, "seeds": 2}
    problem = {"agents": 4, "arms": 3}
    params = {"epsilon": 1.0, "network": "ring", "partition": ["0-1+2-3", "0-3", "none"]}
    study = build_study({**shared, "problem": problem, "parameters": params})
    (axis,) = study.axes
    assert axis.labels == ("0-1+2-3", "0-3", "none")
    assert json.loads(json.dumps(study.describe()))["partition"] == ["0-1+2-3", "0-3", None]
    one = build_study(
        {**shared, "problem": problem, "parameters": params | {"partition": [[0, 1], [2, 3]]}}
    )
    assert not one.axes and one.settings["partition"].text() == "0-1+2-3"


def test_a_graph_of_other_algorithms_of_a_sweep_is_theirs():
    """Would catch DDP-MAB's graph in place of HDP-MAB's components."""
    data = fmab.sweep(
        ["ddp", "hdp"], epsilon=1.0, graph="path", agents=6, arms=2, horizon=100, seeds=1
    )
    assert data.wait.sel(algorithm=["ddp", "hdp"]).values.tolist() == [4, 0]


def test_no_network_leaves_identities_as_they_were():
    """Would catch older stores of components that are computed again."""
    assert {"network", "partition"}.isdisjoint(fmab.hdp_mab(1.0).describe())
    described = fmab.hdp_mab(1.0, network="ring", partition=MIXED).describe()
    assert (described["network"], described["partition"]) == ("ring", MIXED)
