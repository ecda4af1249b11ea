"""Linear means: an arm's mean is a weighted average of unknown numbers."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from fmab_jax.parameters import Whole, parameter
from fmab_jax.parts.worlds.contextual import ContextualWorld
from fmab_jax.sampling import arrays, keys, normal
from fmab_jax.sampling.loops import store_once
from fmab_jax.sampling.shapes import Integer


@dataclass(frozen=True)
class Linear(ContextualWorld):
    """The linear bandit: the mean of an arm is <x, theta>, with a new context x in each slot.

    Each context is uniform on the simplex: its entries are at least 0 and sum to 1. Each entry of
    theta is U[0, 1]. So means lie in [0, 1].

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10, world=fmab.Linear(5))
        >>> problem.world.text(), problem.world.dimension
        ('linear:5', 5)
    """

    name = "linear"
    title = "linear means"

    dimension: int = parameter(
        Whole(low=1, high=1000), "Length of a context.", default=5, keyword=False
    )

    def text(self) -> str:
        """Returns the world as an option is written, the length always with it."""
        return f"{self.name}:{self.dimension}"

    def theta(self, words: keys.Words) -> Float[Array, " dimension"]:
        """Draws each entry from U[0, 1]."""
        return keys.uniform(*words, jnp.arange(self.dimension, dtype=jnp.uint32))

    def contexts(
        self, words: keys.Words, slot: Integer, agents: int, arms: int
    ) -> Float[Array, "agent arm dimension"]:
        """Draws each context: exponential variables, divided by their sum."""
        d = self.dimension
        entry = jnp.arange(arms * d, dtype=jnp.uint32)
        uniform = keys.uniform(*words, keys.lanes(agents, entry, arms * d))
        exponential = -normal.log(uniform).reshape(agents, arms, d)
        (exponential,) = store_once(slot >= 0, exponential)
        total = arrays.sum_in_turn(jnp.moveaxis(exponential, 2, 0))
        return exponential / total[:, :, None]
