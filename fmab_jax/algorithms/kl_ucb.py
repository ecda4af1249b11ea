"""KL-UCB, the index policy that is optimal for Bernoulli rewards: alone, or pooled by a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from fmab_jax.algorithms.families.index import IndexPolicy, Own, Slot, Tally, first_best
from fmab_jax.core import exchanges
from fmab_jax.core.exchanges import Exchange
from fmab_jax.parameters import Flag, Real, parameter

# Steps of Newton's method; from where it starts, six leave an error below 1e-9.
_STEPS = 8


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
    """KL-UCB: the largest q with n kl(mean, q) <= log t + c log log t, without privacy.

    kl is that of Bernoulli laws, which bounds that of all rewards in [0, 1]. Alone, t is the slot
    and n the agent's own pulls; pooled, both count the pulls of all, and a slot costs M links.

    Attributes:
        constant: c; the proof has 3, practice 0.
        pooled: Whether a server pools all rewards in every slot.
    """

    name: ClassVar[str] = "kl_ucb"
    title: ClassVar[str] = "KL-UCB"
    source: ClassVar[str] = "Garivier and Cappé, COLT 2011, arXiv 1102.2490"
    heard: ClassVar[str] = "nobody, or pooled: a server hears all agents in every slot"
    trusted: ClassVar[str] = "pooled: the server, with every reward"

    constant: float = parameter(Real(low=0.0), "Of log log t in the width.", default=0.0)
    pooled: bool = parameter(Flag(), "A server pools all rewards in every slot.", default=False)

    @property
    def shared(self) -> bool:
        """Pooled, one row stands for all agents."""
        return self.pooled

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of a server that hears everybody, or of agents alone."""
        return exchanges.pooled(agents) if self.pooled else exchanges.alone(agents)

    @staticmethod
    def choose(state: Tally, slot: Slot, own: Own) -> Int[Array, " row"]:
        """Returns argmax q; arms that were never pulled come first."""
        log = jnp.log(slot.sharing * slot.time)
        width = log + own["constant"] * jnp.log(jnp.maximum(log, 1.0))
        count = jnp.maximum(state.pulls, 1.0)
        index = largest_mean(jnp.clip(state.sums / count, 0.0, 1.0), width / count)
        return first_best(jnp.where(state.pulls > 0.0, index, jnp.inf))

    @staticmethod
    def due(slot: Slot, own: Own) -> Bool[Array, ""]:
        """Tells that the server hears of every slot, if there is one."""
        return own["pooled"] > 0.0


def largest_mean(
    mean: Float[Array, "row arm"], distance: Float[Array, "row arm"]
) -> Float[Array, "row arm"]:
    """Returns the largest q in [mean, 1] with kl(mean, q) <= distance, to 1e-9.

    Newton's method from above, where kl is convex and increasing: it never crosses the root.
    """
    rest = 1.0 - mean

    def xlogy(x: Array, y: Array) -> Array:
        return jnp.where(x > 0.0, x * jnp.log(jnp.where(x > 0.0, y, 1.0)), 0.0)

    entropy = -(xlogy(mean, mean) + xlogy(rest, rest))
    # Two upper bounds: Pinsker's, and kl >= -entropy - (1 - mean) log(1 - q).
    free = jnp.exp(-(distance + entropy) / jnp.maximum(rest, 1e-300))
    start = jnp.minimum(mean + jnp.sqrt(0.5 * distance), 1.0 - free)

    def closer(_: Array, q: Array) -> Array:
        q = jnp.clip(q, 1e-300, 1.0 - 2.0**-53)
        kl = -entropy - xlogy(mean, q) - xlogy(rest, 1.0 - q)
        slope = (q - mean) / (q * (1.0 - q))
        step = jnp.where(slope > 0.0, (kl - distance) / slope, 0.0)
        return jnp.maximum(q - jnp.maximum(step, 0.0), mean)

    found = lax.fori_loop(0, _STEPS, closer, start)
    return jnp.where(rest > 0.0, found, 1.0)
