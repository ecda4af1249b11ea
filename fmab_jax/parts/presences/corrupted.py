"""Agents that report false rewards."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.parameters import Real, parameter
from fmab_jax.parts.presences.presence import Occasion, Presence
from fmab_jax.sampling.shapes import Bits, Reals, Scalar


@dataclass(frozen=True)
class Corrupted(Presence):
    """Some agents take each reward x for its mirror image, 1 - x for rewards in [0, 1].

    Each agent is corrupted with a probability, for the whole run, so their number differs between
    seeds. Its messages say that the best arm is the worst one; what it does by itself follows its
    false rewards too.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, presence="corrupted:0.2")
        >>> problem.presence
        Corrupted(probability=0.2)
    """

    name = "corrupted"
    title = "corrupted agents"

    probability: float = parameter(
        Real(low=0.0, high=1.0), "Chance that an agent is corrupted.", default=0.1, keyword=False
    )

    def distort(
        self, occasion: Occasion, agent: Bits, rewards: Reals, pulls: Reals, centre: Scalar
    ) -> Reals:
        """Returns the mirror images of rewards of corrupted agents."""
        is_corrupted = occasion.lasting(agent) < self.probability
        return jnp.where(is_corrupted, 2.0 * centre * pulls - rewards, rewards)
