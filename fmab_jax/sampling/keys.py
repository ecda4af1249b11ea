"""Random keys: every random number has an identity, and its bits depend on that alone.

A draw is a pure function of *(root seed, seed, round, stream, lane)*: keys are folded from the
first four, and the lane (which arm, which agent) is the counter that the key encrypts. A lane's
number therefore depends neither on the size of the array it is drawn in nor on the batch, the
devices or the process, and the same arm meets the same randomness in every configuration that
shares its seed.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, UInt32

from fmab_jax.errors import count, refuse
from fmab_jax.sampling.loops import short_loop
from fmab_jax.sampling.shapes import Bits, Integer, Reals

# Streams of one (seed, round); the numbers are part of the reproducibility contract.
REWARD, NOISE, PARTICIPATION, INSTANCE, ALONE, LASTING = 0, 1, 2, 3, 4, 5
SEGMENT, ASSIGNMENT, PRESENCE, CONTEXT, ESTIMATE = 6, 7, 8, 9, 10
# How far threefry turns words, in one group of four rounds and the next.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class Words(NamedTuple):
    """The two words of a threefry key."""

    k0: UInt32[Array, ""]
    k1: UInt32[Array, ""]


def checked_seed(field: str, value: object) -> int:
    """Returns ``value`` as a seed in [0, 2^32), the range in which distinct seeds stay distinct.

    Raises:
        ValueError: Outside the range, where the generator would reuse another seed's stream.
    """
    remedy = "larger seeds would repeat the streams of smaller ones"
    # A larger number may be an int that other code converted to float.
    if (type(value) is float or isinstance(value, np.floating)) and 0 <= value < 2**32:
        refuse(field, value, "a whole number in [0, 4,294,967,295]", "pass an int, not a float")
    return count(field, value, 0, 2**32 - 1, remedy)


def seed_key(root_seed: UInt32[Array, ""], seed: UInt32[Array, ""]) -> Array:
    """Returns the key of one seed: ``fold_in(key(root_seed), seed)``, threefry2x32 always."""
    return jax.random.fold_in(jax.random.key(root_seed, impl="threefry2x32"), seed)


def stream_key(key: Array, round_: Integer | int, stream: int) -> Words:
    """Returns the key of a named stream in a round; rounds count from 1, 0 is the instance's."""
    return fold_key(fold_key(get_words(key), round_), stream)


def stream_keys(key: Array, round_: Integer | int, *streams: int) -> tuple[Words, ...]:
    """Returns `stream_key` of several streams, in a loop that compiles faster and runs slower.

    For keys that are stored. If each reader computes the key anew, use `stream_key`.
    """
    zero = jnp.uint32(0)
    of_round = _encrypt_in_loop(*get_words(key), zero, jnp.asarray(round_).astype(jnp.uint32))
    return tuple(
        Words(*_encrypt_in_loop(*of_round, zero, jnp.uint32(stream))) for stream in streams
    )


def agent_key(key: Array, agent: Integer) -> Array:
    """Returns the key of an agent that runs alone, instead of the seed's key."""
    params = fold_key(fold_key(fold_key(get_words(key), 0), ALONE), agent)
    return jax.random.wrap_key_data(jnp.stack(params), impl="threefry2x32")


def lanes(rows: int, columns: UInt32[Array, " arm"], width: int) -> UInt32[Array, "row arm"]:
    """Numbers the draws of a [row, arm] array by identity: row x width + arm.

    Args:
        rows: Number of agents (1 where agents are summed out); rows x width < 2^32.
        columns: Arm indices held by the array, in any order.
        width: Number of arms of the whole problem.
    """
    return jnp.arange(rows, dtype=jnp.uint32)[:, None] * jnp.uint32(width) + columns[None, :]


def uniform(k0: Bits, k1: Bits, lane: Bits, draw: int | Bits = 0) -> Reals:
    """Returns a float64 uniform per lane on the midpoints (i + 1/2) / 2^52, symmetric about 1/2.

    Args:
        k0: First word of the key of one stream.
        k1: Second word.
        lane: Index of the independent variable; draw 0 of lane i has the bits of element i of
            ``jax.random.bits(key, ..., uint64)``.
        draw: Index of the lane's independent uniform; one for all, or one for each lane.
    """
    high, low = _threefry(k0, k1, jnp.asarray(draw, jnp.uint32), lane)
    wide = high.astype(jnp.uint64) << jnp.uint64(20)
    mantissa = wide | (low >> jnp.uint32(12)).astype(jnp.uint64)
    # The bits of a float64 in [1, 2); the subtraction is exact.
    one_to_two = lax.bitcast_convert_type(mantissa | jnp.uint64(0x3FF << 52), jnp.float64)
    return one_to_two - (1.0 - 2.0**-53)


def coarse_uniforms(k0: Bits, k1: Bits, lane: Bits, draw: int) -> tuple[Reals, Reals]:
    """Returns two independent uniforms per lane on the midpoints (i + 1/2) / 2^32.

    Half the cost of two calls of `uniform`, if 2^32 values are enough. Same arguments.
    """

    def to_uniform(word: Array) -> Array:
        # The bits of 2^52 + word; all operations are exact.
        bits = word.astype(jnp.uint64) | jnp.uint64(0x433 << 52)
        whole = lax.bitcast_convert_type(bits, jnp.float64) - 2.0**52
        return (whole + 0.5) * 2.0**-32

    high, low = _threefry(k0, k1, jnp.uint32(draw), lane)
    return to_uniform(high), to_uniform(low)


def get_words(key: Array) -> Words:
    """Returns the words of a typed key."""
    return Words(*jax.random.key_data(key))


def fold_key(key: Words, data: Integer | int) -> Words:
    """Returns the words of ``jax.random.fold_in``, without its loop."""
    words = _threefry(*key, jnp.uint32(0), jnp.asarray(data).astype(jnp.uint32))
    # On accelerators the compiler would otherwise fold anew for every lane.
    return Words(*lax.optimization_barrier(words))


def _encrypt_in_loop(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Returns as `_threefry`, by a loop of four rounds a step."""

    def mix_rounds(group: Array | int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x0, x1, *schedule = state
        for odd, even in zip(*_ROTATIONS, strict=True):
            turn = jnp.where(group % 2 == 0, jnp.uint32(odd), jnp.uint32(even))
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << turn) | (x1 >> (32 - turn)))
        first, second, third = schedule
        number = jnp.asarray(group + 1, jnp.uint32)
        return x0 + second, x1 + third + number, second, third, first

    schedule = (k0, k1, k0 ^ k1 ^ jnp.uint32(0x1BD11BDA))
    start: tuple[Array, ...] = (x0 + k0, x1 + k1, *schedule)
    x0, x1, *_ = short_loop(5, mix_rounds, start)
    return x0, x1


def _threefry(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., SC 2011), the cipher behind ``jax.random``.

    The library offers its bits only for a whole range of counters; here counters are arbitrary.
    """
    schedule = (k0, k1, k0 ^ k1 ^ jnp.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << jnp.uint32(turn)) | (x1 >> jnp.uint32(32 - turn)))
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1
