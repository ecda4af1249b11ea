"""KL-SE over a graph: every agent hears all noisy sums, and nobody is a server."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.algorithms.families.over_graphs import OverGraph


@dataclass(frozen=True)
class KLSEGraph(OverGraph, LikelihoodElimination):
    """KL-SE over a graph: agents send noisy sums to each other, and wait.

    `LikelihoodElimination` has the equations, `OverGraph` the protocols. An agent that waits pulls
    the best arm of its own noisy sums, so that epsilon covers its actions, too. With gossip the
    level holds for agents that decide by the exact mean, as simulated ones do, and not for real
    ones, which decide by averages that are near it.

    Example:
        A ring of five has a diameter of 2 and 5 edges. A round costs 10 links, and waits a slot.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> algorithm = fmab.kl_se_graph(1.0, graph="ring")
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="bound")[:, -1] == 10 * data.rounds_made).all())
        True
        >>> {row.epsilon for row in fmab.privacy_ledger(algorithm, agents=5)}
        {1.0}
    """

    name = "kl_se_graph"
    title = "KL-SE, graph"
    examples = ("--epsilon 1 --graph ring star complete", "--graph ring --growth 3 --agents 20")

    # Without this, actions in a wait would leak rewards without a bound.
    waits_privately = True
