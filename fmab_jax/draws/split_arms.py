"""Agents of one mean that share the arms out: each pulls a part of them, for longer."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fmab_jax.core import keys, laplace, normal
from fmab_jax.core.arrays import rounded
from fmab_jax.core.rare import Table
from fmab_jax.core.shapes import Integer, PerArm, Scalar
from fmab_jax.draws.base import Arms, Draws, Round, Sums


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitArms(Draws):
    """Agents that share the arms out; pulls are of all agents together.

    Attributes:
        shapes: [number, 24] of the law of the noise of 0, 1, ... agents (`laplace.laplace_sum`), or
            of the one.
    """

    shapes: Table

    @property
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Of rewards, of noise, and how many Laplace variables that is."""
        return {"rewards": (), "noises": (), **({"noise": ()} if self.noisy else {})}

    ranked = True

    @property
    def counts_noises(self) -> bool:
        """Whether each agent that pulls an arm adds a variable."""
        return self.noisy and not self.secure

    def counts(self, arms: Arms, number: Scalar, now: Round) -> tuple[Scalar, Scalar | PerArm]:
        """Returns them of each arm; pulls are of all agents."""
        _, noises = super().counts(arms, number, now)
        pulls = now.pulls if self.remembers else now.fresh
        return pulls, arms["noises"] if self.counts_noises else noises

    def most_pulls(self, horizon: Scalar) -> Scalar:
        """Returns those of all agents."""
        return horizon * self.agents

    def slots(self, active: Scalar, fresh: Scalar) -> Integer:
        """Returns how long all agents together take."""
        pulls, agents = super().slots(active, fresh), self.agents.astype(jnp.int64)
        return (pulls + agents - 1) // agents

    def hear(self, arms: Arms, now: Round) -> tuple[Arms, PerArm]:
        """Does what `Draws.hear` does; noises are counted of what an aggregate holds."""
        sums, mean = super().hear(arms, now)
        if not self.remembers:
            sums["noises"] = sums["noises"] - arms["noises"]
        return sums, mean

    def sample(self, arms: Arms, now: Round) -> Sums:
        """Draws rewards and noise, of each agent that pulls an arm or of a secure sum; counts them.

        ``noises`` is the number of agents that pull an arm.
        """
        pulls = jnp.where(arms["alive"], now.fresh, 0.0)
        rewards = self.law.total(*now.rewards, arms["arm"], pulls, *arms["parameters"])
        parts = self.count_parts(arms, now)
        found = {"rewards": rewards, "noises": parts.astype(jnp.float64)}
        if not self.noisy:
            return found
        z = normal.quantile(keys.uniform(*now.noise, arms["arm"]))
        shape = self.shapes.at((parts * 0 if self.secure else parts).astype(jnp.int32))
        return found | {"noise": rounded(now.scale * laplace.laplace_sum(z, shape.T))}

    def count_parts(self, arms: Arms, now: Round) -> Int[Array, " arm"]:
        """Returns how many agents pull each arm in play.

        All pulls of an epoch lie in one line, arm by arm, which is cut into equal parts: each agent
        pulls one. What slots it has left it spends on the arms in play, and tells of none.
        """
        slots, pulls = jnp.maximum(now.slots, 1), now.fresh.astype(jnp.int64)
        rank = arms["rank"].astype(jnp.int64)
        first, last = rank * pulls // slots, ((rank + 1) * pulls - 1) // slots
        return jnp.where(arms["alive"], last - first + 1, 0)

    def total(self, sums: Sums, now: Round) -> PerArm:
        """Returns rewards and noise: pulls are of all agents."""
        return sums["rewards"] + sums["noise"] if self.noisy else sums["rewards"]
