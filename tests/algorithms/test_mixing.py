"""Agents on a graph: what they mix, how fast, what their exchanges say, and agents without any."""

import networkx as nx
import numpy as np
import pytest

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges import View


@pytest.mark.parametrize(
    ("graph", "rate"),
    [
        (nx.cycle_graph(100), 1 - (2 - 2 * np.cos(2 * np.pi / 100)) / 3),
        (nx.cycle_graph(3), 0.0),
        (nx.cycle_graph(4), 1 / 3),
        (nx.star_graph(9), 1 - 1 / 10),
        (nx.path_graph(2), 0.0),
        (nx.path_graph(3), 1 - 1 / 3),
        (nx.complete_bipartite_graph(3, 3), 0.5),
        (nx.complete_graph(40), 0.0),
        (nx.complete_graph(1), 0.0),
    ],
)
def test_the_mixing_rate_has_its_closed_forms(graph, rate):
    """Would catch the largest eigenvalue, a negative one forgotten, or degrees of another node."""
    assert graphs.mixing_rate(graph) == pytest.approx(rate, abs=1e-12)


EXCHANGES = {
    # algorithm: (links, vectors, numbers, views) of a round among five agents
    "dducb": (fmab.dducb("star"), 4, 16, 0, (View("neighbours", 1),)),
    "dec_ucb": (fmab.dec_ucb("ring"), 5, 20, 0, (View("neighbours", 1),)),
    "gosine": (fmab.gosine("ring"), 5, 0, 5, (View("one random neighbour", 1),)),
    "lcc_ucb": (fmab.lcc_ucb(), 10, 0, 20, (View("every agent", 1),)),
    "lcc_ucb, ring": (fmab.lcc_ucb("ring"), 5, 0, 10, (View("neighbours", 1),)),
    "ucb1": (fmab.ucb1(), 0, 0, 0, ()),
    "demab": (
        DEMAB(),
        *(5, 1, 10),
        (View("the server", 1), View("the agents", 1, observation="the best mean of each phase")),
    ),
    "dist_dp_se": (fmab.dist_dp_se(1.0), 5, 5, 0, (View("the server", 5),)),
} | {
    f"{name}, pooled": (
        algorithm,
        *(5, 0, 5, (View("the server", 1), View("the agents", 5, is_member=True))),
    )
    for name, algorithm in {
        "ucb1": fmab.ucb1(pooled=True),
        "thompson": fmab.thompson(pooled=True),
        "kl_ucb": fmab.kl_ucb(pooled=True),
        "ldp_ucb": fmab.ldp_ucb(1.0, pooled=True),
    }.items()
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_what_links_carry_and_who_sees_it(name):
    """Would catch traffic in one direction only, or a viewer that is not told of."""
    algorithm, links, vectors, numbers, views = EXCHANGES[name]
    actual = algorithm.exchange(5)
    assert sum(number for _, number in actual.links) == links
    assert (actual.vectors, actual.numbers, actual.views) == (vectors, numbers, views)
