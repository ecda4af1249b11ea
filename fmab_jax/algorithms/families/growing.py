"""Private growing episodes: each reward enters one noisy sum; an arm's pulls multiply."""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from fmab_jax.algorithms.families.episodes import Episode, Episodes, Params, Sums
from fmab_jax.algorithms.families.private import (
    Private,
    list_secure_sum,
    list_shares,
    secure_parameter,
)
from fmab_jax.parameters import GROWTH, parameter
from fmab_jax.parts.exchanges import Exchange, View, Viewer, alone, server
from fmab_jax.records.ledger import Disclosure
from fmab_jax.sampling.shapes import PerArm, Scalar


@dataclass(frozen=True)
class GrowingEpisodes(Private, Episodes):
    """An arm is played until its pulls have grown by a factor; noisy sums of all episodes add up.

    Attributes:
        epsilon: Privacy of messages and actions, for one changed reward; None for no noise.
        growth: Factor by which the pulls of the chosen arm grow.
        secure: Whether all agents play together, and a server hears one noisy sum over them;
            otherwise every agent is alone.
    """

    source = "Azize, Wu, Honda, Orabona, Ito and Basu, NeurIPS 2025, arXiv 2505.05613"
    communication = "nobody: each agent alone; or a server hears the sum over all agents"
    trusted = "nobody: no message is sent; or secure aggregation"
    examples = ("--agents 20", "--epsilon 0.1 1 --secure")

    growth: float = parameter(
        GROWTH,
        "Factor by which the pulls of the chosen arm grow.",
        default=2.0,
        grid=(1.2, 1.5, 3.0),
    )
    secure: bool = secure_parameter(
        "All play together, and a server hears one noisy sum over them."
    )

    @property
    def shared(self) -> bool:
        """As `secure` says."""
        return self.secure

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a server that sees only sums, or of agents alone."""
        if not self.secure:
            return alone(agents)
        return replace(server(agents), views=(View(Viewer.SERVER, agents),))

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers messages and actions: each reward enters one noisy sum."""
        why = "each reward enters one noisy sum; all else follows from these"
        if not self.secure:
            return (self.make_row(why, noises=1),)
        return list_secure_sum(self, exchange, why)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns what a coalition learns from a secure sum, less its shares of the noise."""
        if self.secure:
            return list_shares(self, exchange, size)
        return super().coalition(exchange, size)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns epsilon and growth."""
        return {"epsilon": self.noise_level, "growth": self.growth}

    @staticmethod
    def learn(
        state: Sums, pulls: PerArm, rewards: PerArm, noise: PerArm, episode: Episode, params: Params
    ) -> Sums:
        """Adds pulls and the noisy sum."""
        return Sums(state.pulls + pulls, state.sums + (rewards + noise / params["epsilon"]))


def plan_slots(pulls: Scalar, episode: Episode, params: Params) -> Scalar:
    """Returns the slots that let an arm's pulls grow by the factor."""
    return jnp.maximum(jnp.ceil((params["growth"] - 1.0) * pulls / episode.sharing), 1.0)
