"""Agents that a round does not hear: absent ones, and late ones."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.parameters import Real, parameter
from fmab_jax.parts.presences.presence import Occasion, Presence
from fmab_jax.sampling.shapes import Bits, Truths

_PROBABILITY = Real(low=0.0, high=1.0, open_high=True)


@dataclass(frozen=True)
class Absent(Presence):
    """Each agent misses each round with a probability, independently; it sends nothing.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, presence=fmab.Absent(0.2))
        >>> problem.presence.text()
        'absent:0.2'
    """

    name = "absent"
    title = "absent agents"

    probability: float = parameter(
        _PROBABILITY, "Chance that an agent misses a round.", default=0.1, keyword=False
    )

    def is_heard(self, occasion: Occasion, agent: Bits) -> Truths:
        """Tells which agents are there."""
        return occasion.uniform(agent) >= self.probability


@dataclass(frozen=True)
class Late(Absent):
    """Each message misses its round with a probability: it is sent, and arrives too late.

    In eliminations the next message of the agent replaces it; in index policies it is lost. Agents
    are late where they would be `Absent`.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, presence=fmab.Late(0.2))
        >>> problem.presence.text()
        'late:0.2'
    """

    name = "late"
    title = "late messages"

    def is_sent(self, occasion: Occasion, agent: Bits) -> Truths:
        """All agents send."""
        return jnp.ones(agent.shape, bool)
