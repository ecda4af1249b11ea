"""Private episodes that grow: each reward enters one noisy sum, and an arm's pulls multiply."""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from fmab_jax.algorithms.families.episodes import Episode, Episodes, Params, Sums
from fmab_jax.algorithms.families.private import Private, secure_parameter, secure_sum, shares_left
from fmab_jax.core.exchanges import Exchange, View, alone, server
from fmab_jax.core.ledgers import SERVER, Disclosure
from fmab_jax.core.shapes import PerArm, Scalar
from fmab_jax.parameters import GROWTH, parameter


@dataclass(frozen=True)
class GrowingEpisodes(Private, Episodes):
    """An arm is played until its pulls have grown by a factor; the sum is noisy, and remembered.

    Attributes:
        epsilon: Privacy of all that is told and done, for one changed reward; None for no noise.
        growth: By which factor the pulls of the chosen arm grow.
        secure: Whether all agents play together, and a server hears one noisy sum over them;
            otherwise every agent is alone.
    """

    source = "Azize, Wu, Honda, Orabona, Ito and Basu, NeurIPS 2025, arXiv 2505.05613"
    heard = "nobody: each agent alone; or a server hears the sum over all agents"
    trusted = "nobody: no message is sent; or secure aggregation"
    examples = ("--agents 20", "--epsilon 0.1 1 --secure true")

    growth: float = parameter(
        GROWTH, "Factor by which the pulls of the chosen arm grow.", default=2.0
    )
    secure: bool = secure_parameter(
        "All play together, and a server hears one noisy sum over them."
    )

    @property
    def shared(self) -> bool:
        """As `secure` says."""
        return self.secure

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of a server that sees sums alone, or that of agents alone."""
        if not self.secure:
            return alone(agents)
        return replace(server(agents), views=(View(SERVER, agents),))

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers all that is told and done: each reward enters one noisy sum."""
        why = "each reward enters one noisy sum; all else follows from these"
        if not self.secure:
            return (self.seen(why, over=1),)
        return secure_sum(self, exchange, why)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns what is left of the noise of a secure sum; alone, what an agent does."""
        if self.secure:
            return shares_left(self, exchange, size)
        return super().coalition(exchange, size)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns epsilon and growth."""
        return {"epsilon": self.noise_level, "growth": self.growth}

    @staticmethod
    def learn(
        state: Sums, pulls: PerArm, rewards: PerArm, noise: PerArm, episode: Episode, params: Params
    ) -> Sums:
        """Adds the noisy sum."""
        return Sums(state.pulls + pulls, state.sums + (rewards + noise / params["epsilon"]))


def grown(pulls: Scalar, episode: Episode, params: Params) -> Scalar:
    """Returns the slots after which an arm's pulls have grown."""
    return jnp.maximum(jnp.ceil((params["growth"] - 1.0) * pulls / episode.sharing), 1.0)
