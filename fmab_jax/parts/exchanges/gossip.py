"""Agents average with one neighbour at a time (Boyd et al., randomized gossip)."""

from __future__ import annotations

import random

import numpy as np
from jaxtyping import Float

from fmab_jax.errors import count, real, refuse
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges.flooding import USED
from fmab_jax.parts.exchanges.table import Exchange, Meter, View, Viewer

PAIRS = Meter("pairs", "peer", True, "pairs that average")

AGENTS_MAX = 1_000
"""Most agents: an M x M table is averaged slot by slot."""

WORK_MAX = 2 * 10**10
"""Most slots x M x M of one table: about a minute."""

_SEED = 0


def gossip(graph: object, tolerance: float = 1e-3) -> Exchange:
    """Returns the exchange of randomised pairwise averaging over a graph, to a tolerance.

    S. Boyd, A. Ghosh, B. Prabhakar and D. Shah, "Randomized gossip algorithms", IEEE Trans.
    Information Theory 52(6), 2006. In each slot some pairs of neighbours send each other their
    vector, and both go on with the average of the two. Every agent thus holds a weighted mean of
    the messages, with weights p_j that approach 1/M.

    The pairs of a slot are a random maximal matching, as in the source's slots in which several
    pairs talk at once: agents wake in a random order, and each that is still free talks to a
    uniformly drawn neighbour that is still free. They are drawn once, with a fixed seed, so that
    the table depends on nothing but graph and tolerance; the same pairs meet in every round.

    A round ends with the first slot after which no agent's weights are further than ``tolerance``
    from 1/M in total variation, sum_i |p_ji - 1/M| / 2. Whatever the messages, no agent is then
    further from their mean than ``tolerance`` x (largest - smallest message), and some could be in
    the slot before. The wait is that slot minus one, as with flooding.

    All agents are taken to hold the exact mean: they differ from it, and from one another, by what
    the tolerance says, which the simulation leaves out.

    Every agent sees averages that hold a message, and only a neighbour the message itself.

    Links are the pairs, on the meters ``pairs`` and ``used``, which are equal.

    Args:
        graph: A connected undirected networkx graph of at most 1,000 nodes, the agents.
        tolerance: In (0, 1).

    Raises:
        ValueError: If an argument is refused, or the tolerance needs more than 2e10 / M^2 slots.
    """
    network = graphs.validated(graph)
    remedy = "give the part of the messages' range that an agent may be off, such as 0.001"
    tolerance = real("tolerance", tolerance, 0, 1, remedy, open_low=True, open_high=True)
    agents = network.number_of_nodes()
    count("agents", agents, 1, AGENTS_MAX, "use protocol='gis', or fewer agents")
    neighbours = [sorted(network[agent]) for agent in range(agents)]
    slots, pairs, distance = _simulate_gossip(neighbours, tolerance)
    return Exchange(
        "gossip",
        agents,
        agents,
        wait=max(slots - 1, 0),
        links=((PAIRS, pairs), (USED, pairs)),
        diameter=int(graphs.diameter(network)),
        vectors=2 * pairs,
        views=(
            View(Viewer.NEIGHBOURS, 1),
            View(Viewer.EVERY_AGENT, 1, observation="averages that hold the message"),
        ),
        exact=distance == 0.0,
    )


def _simulate_gossip(neighbours: list[list[int]], tolerance: float) -> tuple[int, int, float]:
    """Simulates gossip; returns its slots, its pairs and the largest remaining distance."""
    agents = len(neighbours)
    rng = random.Random(_SEED)
    weights = np.eye(agents)
    distance = _distance(weights)
    slots = pairs = 0
    while distance.max() > tolerance:
        if (slots + 1) * agents**2 > WORK_MAX:
            allowed = f"one that gossip reaches in {slots:,} slots on this graph"
            refuse("tolerance", tolerance, allowed, "raise it, or use protocol='gis'")
        first, second = np.array(draw_matching(neighbours, rng)).T
        average = 0.5 * (weights[first] + weights[second])
        weights[first] = weights[second] = average
        distance[first] = distance[second] = _distance(average)
        slots += 1
        pairs += len(first)
    return slots, pairs, float(distance.max())


def _distance(weights: Float[np.ndarray, "row agent"]) -> Float[np.ndarray, " row"]:
    """Returns the total variation between each row and 1/M."""
    return 0.5 * np.abs(weights - 1 / weights.shape[1]).sum(axis=1)


def draw_matching(neighbours: list[list[int]], rng: random.Random) -> list[tuple[int, int]]:
    """Draws the pairs that talk in one slot: a random maximal matching.

    It calls only ``rng.random()``, whose numbers are the same in every version of Python.

    Args:
        neighbours: Neighbours of each agent, in ascending order.
        rng: Random generator.
    """
    free = [True] * len(neighbours)
    wakes = [rng.random() for _ in neighbours]
    pairs = []
    for agent in sorted(range(len(neighbours)), key=wakes.__getitem__):
        candidates = (
            [partner for partner in neighbours[agent] if free[partner]] if free[agent] else []
        )
        if candidates:
            partner = candidates[int(rng.random() * len(candidates))]
            free[agent] = free[partner] = False
            pairs.append((agent, partner))
    return pairs
