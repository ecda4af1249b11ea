"""Worlds: problems whose mean rewards change while they are played."""

from __future__ import annotations

import copy
import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fmab_jax.core.keys import Words
from fmab_jax.core.plugins import Named
from fmab_jax.core.segments import Ends
from fmab_jax.core.shapes import Integer, PerArm
from fmab_jax.core.trials import checked
from fmab_jax.parameters import UNSET, Configurable, parameters_of

W = TypeVar("W", bound="World")


@dataclass(frozen=True)
class World(Named, Configurable):
    """How the mean rewards of a problem change: they are constant within each of some segments.

    A subclass states ``name``, ``title``, `segments` and `means`, and `ends` unless all segments
    are equally long. Its parameters are dataclass fields. In `ends` and `means` a field that is a
    float is a traced number; all others are static.

    Attributes:
        name: For options, such as "drifting".
        title: For people, such as "drifting means".

    Example:
        A world of your own: at half of the horizon the order of the arms is reversed.

        >>> from dataclasses import dataclass
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> @dataclass(frozen=True)
        ... class Reversed(fmab.World):
        ...     name, title, segments = "reversed", "reversed means", 2
        ...
        ...     def means(self, words, first):
        ...         return jnp.stack([first, first[::-1]])
        >>> problem = fmab.Problem([0.9, 0.6, 0.2], agents=5, world=Reversed())
        >>> data = fmab.simulate(fmab.ucb1(), problem, horizon=1000, seeds=20)
        >>> problem.world.text(), data.regret.sizes["time"], "best_arm_lost" in data.coords
        ('reversed', 100, False)
    """

    title: ClassVar[str]

    @property
    @abstractmethod
    def segments(self) -> int:
        """Number of segments, at least 1."""
        raise NotImplementedError

    def ends(self, horizon: Integer) -> Ends:
        """Returns the last slot of each segment, not decreasing; the last one is the horizon.

        By default segments are equally long, up to one slot.
        """
        return horizon * jnp.arange(1, self.segments + 1) // self.segments

    @abstractmethod
    def means(self, words: Words, first: PerArm) -> Float[Array, "segment arm"]:
        """Returns the global mean rewards of each segment; pure, in JAX, in float64.

        Args:
            words: Key of the world's random numbers, for `fmab_jax.core.keys.uniform`.
            first: The means that the problem draws or fixes, usually those of the first segment.
        """
        raise NotImplementedError

    def bind(self) -> tuple[World, dict[str, np.ndarray]]:
        """Returns the world without its floats, the key of a compilation, and these floats."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        floats = {n: np.asarray(x, np.float64) for n, x in fields.items() if isinstance(x, float)}
        return replace_fields(self, dict.fromkeys(floats)), floats

    def lay_out(
        self, horizon: Integer, words: Words, first: PerArm
    ) -> tuple[Ends, Float[Array, "segment arm"]]:
        """Returns the result of `ends` and of `means`, after a check of their shapes."""
        count = self.segments
        ends = checked("ends", self.ends(horizon), (count,), "iu").astype(jnp.int64)
        means = checked("means", self.means(words, first), (count, len(first)), "f")
        return jnp.clip(ends, 0, horizon).at[-1].set(horizon), means

    def text(self) -> str:
        """Returns the world as an option is written, without values that are the default."""
        pairs = [(p, getattr(self, name)) for name, p in parameters_of(type(self)).items()]
        while pairs and pairs[-1][0].default is not UNSET and pairs[-1][1] == pairs[-1][0].default:
            pairs.pop()
        values = ",".join(str(value) for _, value in pairs)
        return f"{self.name}:{values}" if values else self.name

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        jax.tree_util.register_static(cls)


def replace_fields(world: W, values: Mapping[str, object]) -> W:
    """Returns a copy of a world with other values, unchecked."""
    world = copy.copy(world)
    for name, value in values.items():
        object.__setattr__(world, name, value)
    return world
