"""Worlds with contexts: the mean reward of an arm follows from what a slot shows of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fmab_jax.parts.registry import replace_fields
from fmab_jax.parts.worlds.world import World
from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.loops import store_once
from fmab_jax.sampling.shapes import Integer, PerArm, PerRowArm, checked


@dataclass(frozen=True)
class ContextualWorld(World):
    """A linear world: in each slot every arm of every agent has a context, a vector.

    The mean reward of an arm is the inner product of its context and theta, which all agents share
    and no policy is told. A subclass states ``name``, ``title``, `dimension`, `theta` and
    `contexts`. Means must lie in [0, 1]. Index policies read the contexts from ``Slot.contexts``.

    Example:
        A world of your own: a context is one of the axes, so that there are only so many means.

        >>> from dataclasses import dataclass
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> from fmab_jax.sampling import keys
        >>> @dataclass(frozen=True)
        ... class Categories(fmab.ContextualWorld):
        ...     name, title, dimension = "categories", "categories", 3
        ...
        ...     def theta(self, words):
        ...         return keys.uniform(*words, jnp.arange(3, dtype=jnp.uint32))
        ...
        ...     def contexts(self, words, slot, agents, arms):
        ...         lane = keys.lanes(agents, jnp.arange(arms, dtype=jnp.uint32), arms)
        ...         return jax.nn.one_hot((3.0 * keys.uniform(*words, lane)).astype(jnp.int32), 3)
        >>> problem = fmab.Problem(agents=5, arms=10, world=Categories())
        >>> data = fmab.simulate(fmab.ucb1(), problem, horizon=1000, seeds=20)
        >>> bool(data.regret.max() > 0.0), "chosen_arm" in data
        (True, False)
    """

    segments = 1

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length d of a context, at least 1."""
        raise NotImplementedError

    @abstractmethod
    def theta(self, words: keys.Words) -> Float[Array, " dimension"]:
        """Returns the unknown vector of a seed; pure, in JAX, in float64.

        Args:
            words: Key of the vector's random numbers, for `fmab_jax.sampling.keys.uniform`.
        """
        raise NotImplementedError

    @abstractmethod
    def contexts(
        self, words: keys.Words, slot: Integer, agents: int, arms: int
    ) -> Float[Array, "agent arm dimension"]:
        """Returns the contexts of a slot; pure, in JAX, in float64.

        Args:
            words: Key of the slot's random numbers.
            slot: t = 1, 2, ..., int64.
            agents: Rows of agents. An agent's contexts must not depend on it, since the last rows
                may be padding: `fmab_jax.sampling.keys.lanes` numbers lanes so.
            arms: K.
        """
        raise NotImplementedError

    def means(self, words: keys.Words, first: PerArm) -> Float[Array, "segment arm"]:
        """Returns the given means, which no loop reads."""
        return first[None]


class Contexts(NamedTuple):
    """The contexts of one seed's problem, drawn slot by slot.

    Attributes:
        world: The world without its traced values; static.
        world_values: These values, by name.
        law_values: Traced values of the reward law, by name.
        theta: The unknown vector.
        words: Key of all contexts.
    """

    world: ContextualWorld
    world_values: Mapping[str, Array]
    law_values: Mapping[str, Array]
    theta: Float[Array, " dimension"]
    words: keys.Words

    def draw(
        self, slot: Integer, agents: int, arms: int
    ) -> tuple[Float[Array, "agent arm dimension"], PerRowArm]:
        """Returns the contexts of a slot and the mean rewards that follow."""
        world = replace_fields(self.world, self.world_values)
        words = keys.fold_key(self.words, slot)
        shape = agents, arms, world.dimension
        contexts = checked("contexts", world.contexts(words, slot, agents, arms), shape, "f")
        (contexts,) = store_once(slot >= 0, contexts)
        products = arrays.rounded(contexts * self.theta[None, None, :])
        return contexts, arrays.sum_in_turn(jnp.moveaxis(products, 2, 0))


def draw_contexts(
    world: ContextualWorld,
    key: Array,
    world_values: Mapping[str, Array],
    law_values: Mapping[str, Array],
) -> Contexts:
    """Draws theta of a seed.

    Args:
        world: The world without its traced values.
        key: The seed's key.
        world_values: These values, by name.
        law_values: Traced values of the reward law, by name.
    """
    vector, words = keys.stream_keys(key, 0, keys.SEGMENT, keys.CONTEXT)
    theta = replace_fields(world, world_values).theta(vector)
    theta = checked("theta", theta, (world.dimension,), "f")
    return Contexts(world, world_values, law_values, theta, words)
