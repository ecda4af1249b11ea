"""Means that change at a few slots."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.parameters import Real, Whole, parameter
from fmab_jax.parts.worlds.world import World
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import PerArm


@dataclass(frozen=True)
class Drifting(World):
    """Piecewise constant means: at each change an arm draws a new mean from U[0, 1].

    Changes are evenly spaced over the horizon.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, world=fmab.Drifting(changes=3))
        >>> problem.world.text(), problem.world.segments
        ('drifting:3', 4)
    """

    name = "drifting"
    title = "drifting means"

    changes: int = parameter(
        Whole(low=0, high=1000), "Number of changes.", default=1, keyword=False
    )
    share: float = parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "Chance that an arm takes part in a change.",
        default=1.0,
        keyword=False,
    )

    @property
    def segments(self) -> int:
        """One more than changes."""
        return self.changes + 1

    def means(self, words: keys.Words, first: PerArm) -> Float[Array, "segment arm"]:
        """Draws the means of each segment after the first one."""
        shape = self.changes, len(first)
        lane = jnp.arange(self.changes * len(first), dtype=jnp.uint32).reshape(shape)

        def change(level: PerArm, draws: tuple[PerArm, PerArm]) -> tuple[PerArm, PerArm]:
            fresh, chance = draws
            level = jnp.where(chance < self.share, fresh, level)
            return level, level

        draws = keys.uniform(*words, lane), keys.uniform(*words, lane, 1)
        _, levels = lax.scan(change, first, draws)
        return jnp.concatenate([first[None], levels])
