"""Links between agents that come and go."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.parameters import Real, parameter
from fmab_jax.parts.presences.presence import Occasion, Presence
from fmab_jax.sampling.shapes import Bits, Truths


@dataclass(frozen=True)
class Links(Presence):
    """Each link of the graph is up in each slot with a probability, independently.

    On the complete graph this is an Erdos-Renyi graph drawn anew in each slot (arXiv 2510.22811).
    It may be disconnected: agents go on with what they have heard.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, presence=fmab.Links(0.3))
        >>> problem.presence.text()
        'links:0.3'
    """

    name = "links"
    title = "links that come and go"

    probability: float = parameter(
        Real(low=0.0, high=1.0), "Chance that a link is up in a slot.", default=0.5, keyword=False
    )

    def is_linked(self, occasion: Occasion, first: Bits, second: Bits) -> Truths:
        """Tells which links are up."""
        lane = first * occasion.agents.astype(jnp.uint32) + second
        return occasion.uniform(lane) < self.probability
