"""HDP-MAB: components collect their means at a sink with SAC, sinks report (Algorithms 4, 5)."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.over_graphs import OverComponents
from fmab_jax.algorithms.families.paper import PaperWaiting
from fmab_jax.parameters import Choice, parameter


@dataclass(frozen=True)
class HDP(OverComponents, PaperWaiting):
    """Hybrid: components collect at a sink, sinks report to a server.

    Attributes:
        weights: "agents" weighs every agent 1/M; "components" every component 1/Q, as the paper's
            Algorithm 5 prints it, which is biased where components and agents differ.

    Example:
        Two components, of two and of three agents. Each has a sink that reports to the server.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> algorithm = fmab.hdp_mab(1.0, components="2,3")
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 2 * data.rounds_made).all())
        True
    """

    name = "hdp"
    title = "HDP-MAB"
    examples = ("--components 20x5:star 20x5:ring", "--components 20x2:ring+10x6:star")

    weights: str = parameter(
        Choice(options=("agents", "components")),
        "What weighs the same; components is the paper's print, biased where they differ.",
        default="agents",
    )
