"""The paper's baseline: every agent runs CDP-MAB with M = 1 on its own rewards."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.parts.exchanges import Exchange, alone


@dataclass(frozen=True)
class Single(PaperElimination):
    """Baseline: every agent learns alone, without links; regret is summed over agents.

    Example:
        Without a server, agents have more regret on the same seeds:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> alone = fmab.simulate(fmab.single_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> central = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> bool((alone.regret[:, -1] > central.regret[:, -1]).all())
        True
    """

    name = "single"
    title = "Single-agent MAB"
    communication = "nobody: each agent alone"
    trusted = "nobody: no message is sent"
    examples = ("--agents 5 --arms 10", "--agents 5 --arms 10 --spread 0 1 --out alone")

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of agents that never communicate."""
        return alone(agents)
