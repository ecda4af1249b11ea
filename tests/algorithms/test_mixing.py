"""Agents on a graph: what they mix, how fast, what their exchanges say, and agents without any."""

import functools

import arena_twins as twins
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from test_arena import tables
from test_index import assert_is_the_twin, gaps_of, problem_of

import fmab_jax as fmab
from fmab_jax.algorithms.families.index import Slot, _neighbours
from fmab_jax.core import graphs, keys
from fmab_jax.core.exchanges import View

MEANS = [[0.62, 0.31, 0.5, 0.83]]


def slot_of(graph, number, arms, room):
    one, word = jnp.float64(1.0), jnp.uint32(0)
    agents = one * graph.number_of_nodes()
    beside = jnp.asarray(_neighbours(graph, room))
    time = one * number
    words = keys.Words(word, word)
    return Slot(jnp.int64(number), time, one, agents, one, beside, one * arms, words, words)


def stage(graph, algorithm, values, room):
    """What DDUCB mixes, after each step of a stage: [step][room, 2, arm]."""
    agents, _, arms = values.shape
    made = []
    with jax.enable_x64(True):
        params = algorithm.values(algorithm.exchange(agents), 1)
        params = {name: jnp.float64(value) for name, value in params.items()}
        start = jnp.asarray(np.concatenate([values, np.zeros((room - agents, 2, arms))]))
        slot = slot_of(graph, 0, arms, room)
        state = fmab.dducb.init(room, arms, slot, params)._replace(mixing=start, before=start)
        communicate = jax.jit(fmab.dducb.communicate)
        for step in range(1, int(params["stage"]) + 1):
            slot = slot_of(graph, arms + step, arms, room)
            state = communicate(state, slot, params)
            made.append(np.asarray(state.mixing))
        assert not made[-1].any()  # the next stage's, of which there is nothing
        return [*made[:-1], np.asarray(state.mixed)]


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
        fmab.demab(),
        *(5, 1, 10),
        (View("the server", 1), View("the agents", 1, what="the best mean of each phase")),
    ),
    "dist_dp_se": (fmab.dist_dp_se(1.0), 5, 5, 0, (View("the server", 5),)),
} | {
    f"{name}, pooled": (
        algorithm,
        *(5, 0, 5, (View("the server", 1), View("the agents", 5, inside=True))),
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
    found = algorithm.exchange(5)
    assert sum(number for _, number in found.links) == links
    assert (found.vectors, found.numbers, found.views) == (vectors, numbers, views)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dducb", "dec_ucb", "lcc_ucb"])
def test_one_agent_on_a_graph_is_the_slow_twin(name):
    """Would catch a graph without edges that has no eigenvalue, no neighbour or no diameter."""
    algorithm = {"dducb": fmab.dducb, "dec_ucb": fmab.dec_ucb, "lcc_ucb": fmab.lcc_ucb}[name]
    twin = functools.partial(getattr(twins, name), graph=nx.empty_graph(1))
    made = algorithm("ring")
    data = fmab.simulate(made, problem_of(MEANS, 1), 120, 3, times=np.arange(121))
    for seed in range(3):
        run = twin(twins.Given(MEANS, tables(seed, 1, 120, 4)), 1, 4, 120)
        assert_is_the_twin(data, seed, run, gaps_of(MEANS), 120, made.exchange(1))
    assert [(meter.name, number) for meter, number in made.exchange(1).links] == [("peer", 0)]
