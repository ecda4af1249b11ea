"""Segments of a run: stretches of slots in which no mean changes.

Most problems have no segments. Functions then get None for ``ends`` and work on plain numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.shapes import Integer, Reals

Ends = Int[Array, " segment"]


class Segments(NamedTuple):
    """The segments of one seed's problem.

    Attributes:
        ends: Last slot of each segment, not decreasing; the last one is the horizon.
        gaps: Gaps of the arms in each segment.
        parameters: The reward law's arrays, each [row, segment, arm].
    """

    ends: Ends
    gaps: Float[Array, "segment arm"]
    parameters: tuple[Float[Array, "row segment arm"], ...]


def overlap(ends: Ends, start: Integer, stop: Integer) -> Int[Array, " segment"]:
    """Returns how many of the slots start + 1, ..., stop lie in each segment."""
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    return jnp.clip(stop, begins, ends) - jnp.clip(start, begins, ends)


def find_segment(ends: Ends, slot: Int[Array, "*place"]) -> Int[Array, "*place"]:
    """Returns the segment of each slot; slots after the horizon belong to the last one."""
    row = ends.reshape((1,) * slot.ndim + ends.shape)
    index = jnp.sum(slot[..., None] > row, axis=-1, dtype=jnp.int32)
    return jnp.minimum(index, len(ends) - 1)


def grow(rate: Reals, start: Integer, stop: Integer, ends: Ends | None) -> Reals:
    """Returns the regret of the slots start + 1, ..., stop.

    Args:
        rate: Regret per slot, [segment] if there are segments.
        start: The slot before.
        stop: The last slot.
        ends: `Segments.ends`, or None.
    """
    if ends is None:
        return arrays.rounded(rate * (stop - start).astype(jnp.float64))
    slots = overlap(ends, start, stop).astype(jnp.float64)
    return arrays.sum_in_turn(arrays.rounded(rate * slots))


def reward_keys(key: Array, round_: Integer, segments: int) -> keys.Words:
    """Returns the key of the rewards of each segment in a round.

    The first segment has the key of a round without segments.
    """
    first, stream = keys.stream_keys(key, round_, keys.REWARD, keys.SEGMENT)
    index = jnp.arange(segments, dtype=jnp.uint32)
    folded = keys.fold_key(stream, index)
    return keys.Words(*(jnp.where(index == 0, x, y) for x, y in zip(first, folded, strict=True)))
