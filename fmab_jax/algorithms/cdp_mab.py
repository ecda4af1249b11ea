"""CDP-MAB: a server hears ceil(p M) agents a round (Algorithm 1 and section IV-B).

Its epochs, radius and noise are in families/paper.py; the loop is fmab_jax/elimination.py.
"""

from dataclasses import dataclass

from fmab_jax.algorithms.families.messages import participation_parameter
from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.core.exchanges import Exchange, server
from fmab_jax.parameters import Real, parameter


@dataclass(frozen=True)
class CDP(PaperElimination):
    """Centralised: a server hears ceil(p M) agents a round.

    Attributes:
        participation: Share p of agents that report in a round, in (0, 1].
        trim: Share of the largest, and of the smallest, messages about an arm that the server drops
            before it averages; 0.5 is the median. It protects against corrupted agents.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
        >>> fmab.cdp_mab(1.0, participation=0.4).exchange(5).reporting  # ceil(p M)
        2
    """

    name = "cdp"
    title = "CDP-MAB"
    communication = "a server hears ceil(pM) agents a round"
    examples = ("--epsilon 0.1 0.3 0.5 1 --out eps", "--participation 0.4 --rounds 3")

    participation: float = participation_parameter()
    trim: float = parameter(
        Real(low=0.0, high=0.5),
        "Share of messages that the server drops at each end; 0.5 is the median.",
        default=0.0,
        label="share of messages trimmed",
        proven=Real(high=0.0),
    )

    @property
    def trimmed_share(self) -> float:
        """As `trim` says."""
        return self.trim

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of the server."""
        return server(agents, self.participation)
