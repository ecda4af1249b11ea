"""Parameters and exchange of eliminations over a server, which may trim or weigh messages."""

from dataclasses import dataclass, replace

import numpy as np

from fmab_jax.algorithms.families.noisy_messages import NoisyMessages, participation_parameter
from fmab_jax.errors import refuse
from fmab_jax.parameters import Real, parameter
from fmab_jax.parts.exchanges import Exchange, server
from fmab_jax.sampling.shapes import Record


@dataclass(frozen=True)
class OverServer(NoisyMessages):
    """A server hears ceil(p M) agents a round, and takes the mean of their messages.

    Attributes:
        participation: Share p of agents that report in a round, in (0, 1].
        trim: Share of the largest, and of the smallest, messages about an arm that the server drops
            before it averages; 0.5 is the median. It protects against corrupted agents. It is 0,
            or drops at least one message of those of all agents that report, which are at least 3.
        weight_power: Where agents differ in epsilon, the server weighs each message by a power of
            one over the scale of its noise: 0 weighs all the same, 2 by the variance of noise.
            Agents must be alike and all report. The radius must be that of the weighted mean:
            equations read ``worth``.
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

    weight_power: float = parameter(
        Real(low=0.0, high=2.0),
        "Weight of a message, as a power of 1 / scale of its noise, where agents differ.",
        default=0.0,
        label="power of weights",
    )

    def check(self) -> None:
        """Refuses weights where some agents report, and where messages are trimmed."""
        super().check()
        for name, usual in (("participation", 1.0), ("trim", 0.0)):
            if self.weight_power > 0.0 and getattr(self, name) != usual:
                refuse("weight_power", self.weight_power, f"0 with {name}", "drop one")

    @property
    def trimmed_share(self) -> float:
        """As `trim` says."""
        return self.trim

    @property
    def homogeneous_only(self) -> bool:
        """Whether weights differ: they would favour the means of some agents."""
        return self.weight_power > 0.0

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of the server."""
        exchange = server(agents, self.participation)
        scales = self.list_scales(exchange) if self.weight_power > 0.0 else None
        # Numbers for another count of agents are refused later.
        if scales is None or len(scales) != agents:
            return exchange
        weights = scales**-self.weight_power
        return replace(exchange, weights=weights / weights.sum())

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds how many equal messages a weighted mean is worth, as a share of N."""
        worth = 1.0
        if self.weight_power > 0.0 and not exchange.uniform:
            worth = 1.0 / (exchange.reporting * float(np.sum(exchange.weights**2)))
        return super().values(exchange, horizon) | {"worth": worth}

    def describe(self) -> Record:
        """Returns the identity; aggregates that are not the default add to it, for older stores."""
        usual = {"trim": 0.0, "weight_power": 0.0}
        return {n: x for n, x in super().describe().items() if n not in usual or usual[n] != x}
