"""Worlds: problems whose mean rewards change while they are played."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from fmab_jax.parts.registry import Variant
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.segments import Ends
from fmab_jax.sampling.shapes import Integer, PerArm, checked


@dataclass(frozen=True)
class World(Variant):
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

    @property
    @abstractmethod
    def segments(self) -> int:
        """Number of segments, at least 1."""
        raise NotImplementedError

    def ends(self, horizon: Integer) -> Ends:
        """Returns the last slot of each segment, not decreasing; the last one is the horizon.

        Slots beyond the horizon are cut off, and the last segment reaches it in any case. By
        default segments are equally long, up to one slot.
        """
        return horizon * jnp.arange(1, self.segments + 1) // self.segments

    @abstractmethod
    def means(self, words: Words, first: PerArm) -> Float[Array, "segment arm"]:
        """Returns the global mean rewards of each segment; pure, in JAX, in float64.

        They are in [0, 1], or between the smallest and the largest of ``first``.

        Args:
            words: Key of the world's random numbers, for `fmab_jax.sampling.keys.uniform`.
            first: The means that the problem draws or fixes, usually those of the first segment.
        """
        raise NotImplementedError

    def lay_out(
        self, horizon: Integer, words: Words, first: PerArm
    ) -> tuple[Ends, Float[Array, "segment arm"]]:
        """Returns the result of `ends` and of `means`, after a check of their shapes."""
        count = self.segments
        ends = checked("ends", self.ends(horizon), (count,), "iu").astype(jnp.int64)
        return ends, checked("means", self.means(words, first), (count, len(first)), "f")
