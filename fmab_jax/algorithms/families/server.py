"""Parameters and exchange of eliminations over a server, which may trim messages."""

from dataclasses import dataclass

from fmab_jax.algorithms.families.noisy_messages import NoisyMessages, participation_parameter
from fmab_jax.parameters import Real, parameter
from fmab_jax.parts.exchanges import Exchange, server
from fmab_jax.sampling.shapes import Record


@dataclass(frozen=True)
class OverServer(NoisyMessages):
    """A server hears ceil(p M) agents a round, and takes the mean of their messages.

    Attributes:
        participation: Share p of agents that report in a round, in (0, 1].
        trim: Share of the largest, and of the smallest, messages about an arm that the server drops
            before it averages; 0.5 is the median. It protects against corrupted agents.
    """

    communication = "a server hears ceil(pM) agents a round"

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

    def describe(self) -> Record:
        """Returns the identity, without a trim of 0, as in older stores."""
        return {n: x for n, x in super().describe().items() if n != "trim" or x != 0.0}
