"""KL-SE over components: sinks collect noisy sums and report them to a server."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.algorithms.families.over_graphs import OverComponents


@dataclass(frozen=True)
class KLSEComponents(OverComponents, LikelihoodElimination):
    """KL-SE over components: each collects at a sink, and sinks report to a server.

    `LikelihoodElimination` has the equations, `OverComponents` the table. Every agent weighs the
    same. An agent that waits pulls the best arm of its own noisy sums, so that epsilon covers its
    actions, too.

    Example:
        Two components, of two and of three agents. Each has a sink that reports to the server.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> algorithm = fmab.kl_se_components(1.0, components="2,3")
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 2 * data.rounds_made).all())
        True
    """

    name = "kl_se_components"
    title = "KL-SE, components"
    examples = ("--components 20x5:star 20x5:ring", "--components 10x5:star --agents 50")

    # Without this, actions in a wait would leak rewards without a bound.
    waits_privately = True
