"""Sums in a fixed order, whatever the batch, and products that the compiler does not fuse."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.sampling.backend import is_for_tpu
from fmab_jax.sampling.shapes import Reals, Scalar

# Rows that are added up without a loop.
_IN_TURN = 64


def pairwise_sum(values: Float[Array, "n ..."]) -> Reals:
    """Sums over the first axis pairwise; the compiler's own order would depend on the batch."""
    return _fold(values, lambda size: (size + 1) // 2)


def _fold(values: Float[Array, "n ..."], half_of: Callable[[int], int]) -> Reals:
    """Sums over the first axis: repeatedly adds the second half of the values to the first."""
    size = values.shape[0]
    while size > 1:
        half = half_of(size)
        pairs = values[: size - half] + values[half:size]
        values = jnp.concatenate([pairs, values[size - half : half]])
        size = half
    return values[0]


def running_sum(values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Returns the sums of the first 1, 2, ... values, in a fixed order."""
    size, shift = values.shape[0], 1
    while shift < size:
        values = values + jnp.concatenate([jnp.zeros(shift), values[:-shift]])
        shift *= 2
    return values


def exact_sum(values: Float[Array, "n ..."], scale: Scalar) -> Reals:
    """Sums over the first axis, to 2^-62 of ``scale``, with the same bits in any order.

    Args:
        values: At most 10^6 numbers in [0, scale].
        scale: A power of two.
    """
    coarse, fine = exact_parts(values, scale)
    return exact_total(jnp.sum(coarse, axis=0), jnp.sum(fine, axis=0), scale)


def exact_parts(values: Reals, scale: Reals) -> tuple[Reals, Reals]:
    """Splits values into two parts whose sums are exact in any order, for `exact_sum`.

    The parts are whole multiples of two steps, so that each sum has fewer than 53 bits.
    """
    units = values / scale
    coarse = jnp.floor(units * 2.0**31)
    return coarse, jnp.round((units * 2.0**31 - coarse) * 2.0**31)


def exact_total(coarse: Reals, fine: Reals, scale: Reals) -> Reals:
    """Returns the sum, from the sums of both parts."""
    return scale * (coarse * 2.0**-31 + fine * 2.0**-62)


def padded_sum(values: Float[Array, "n ..."]) -> Reals:
    """Sums over the first axis by folding halves, as if padded with zeros to a power of two.

    The order is fixed, and zeros at the end change no bit.
    """
    return _fold(values, lambda size: 1 << ((size - 1).bit_length() - 1))


def sum_in_turn(values: Float[Array, "n ..."]) -> Reals:
    """Sums over the first axis one after another; zeros anywhere change no bit."""

    def add_block(first: Array | int, total: Array, count: int) -> Array:
        block = lax.dynamic_slice_in_dim(values, first, count)
        return functools.reduce(jnp.add, [total, *block])

    blocks, remainder = divmod(values.shape[0], _IN_TURN)
    total = jnp.zeros(values.shape[1:], values.dtype)
    if blocks:
        total = lax.fori_loop(0, blocks, lambda i, x: add_block(i * _IN_TURN, x, _IN_TURN), total)
    return add_block(blocks * _IN_TURN, total, remainder)


def rounded(product: Reals) -> Reals:
    """Rounds a product to 52 bits before it is added to, so that no compiler fuses the two.

    Fusion depends on the surrounding program, and a seed's results must not. XLA cannot round the
    float64 that it builds from two float32 on a TPU; there a barrier separates the two operations.
    """
    if is_for_tpu():
        return lax.optimization_barrier(product)
    return lax.reduce_precision(product, exponent_bits=11, mantissa_bits=51)
