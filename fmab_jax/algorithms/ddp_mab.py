"""DDP-MAB: agents send their means over a graph and wait (Algorithms 2 and 3)."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.over_graphs import OverGraph
from fmab_jax.algorithms.families.paper import PaperWaiting


@dataclass(frozen=True)
class DDP(OverGraph, PaperWaiting):
    """Decentralised: agents send their means over a graph.

    See `OverGraph` for its parameters.

    Example:
        A ring of five has a diameter of 2 and 5 edges. A round costs 10 links, and waits a slot.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.ddp_mab(1.0, graph="ring"), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="bound")[:, -1] == 10 * data.rounds_made).all())
        True
        >>> bool((data.waiting_regret[:, -1] < 0.01 * data.regret[:, -1]).all())
        True
    """

    name = "ddp"
    title = "DDP-MAB"
    examples = ("--graph ring star complete", "--graph friends.graphml --agents 12 --spread 1")
