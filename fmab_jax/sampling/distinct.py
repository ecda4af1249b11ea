"""Functions of a batch, in blocks that fit into a cache, and once for equal operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from fmab_jax.sampling.backend import is_accelerated, is_for_tpu
from fmab_jax.sampling.rare import list_needed
from fmab_jax.sampling.shapes import PyTree

# Half a megabyte of numbers stays in a CPU's cache.
_CACHED = 2**16
# At most so many distinct operands are computed once for equal ones.
_DISTINCT = 16
# An accelerator computes so many distinct operands at once.
_ROWS = 1024
# An odd factor that mixes the bits of a word: 2^64 over the golden ratio.
_ODD = 0x9E3779B97F4A7C15
T = TypeVar("T")


def map_in_blocks(function: Callable[..., T], elements: int) -> Callable[..., T]:
    """Returns ``vmap(function)``; on a CPU, in blocks whose ``elements`` stay in a cache."""

    def map_batch(*operands: PyTree) -> T:
        size = len(jax.tree.leaves(operands)[0])
        block = math.gcd(size, 2 ** max(0, math.ceil(math.log2(_CACHED / elements))))
        if is_accelerated() or block == size:
            return jax.vmap(function)(*operands)
        blocks = jax.tree.map(lambda x: x.reshape(size // block, block, *x.shape[1:]), operands)
        places: list[T] = []

        def map_block(params: tuple[PyTree, ...]) -> list[Array]:
            results = jax.vmap(function)(*params)
            # An array that occurs twice is stored once.
            distinct = {id(x): x for x in jax.tree.leaves(results)}
            places.append(jax.tree.map(lambda x: [*distinct].index(id(x)), results))
            return [*distinct.values()]

        arrays = [x.reshape(size, *x.shape[2:]) for x in lax.map(map_block, blocks)]
        return jax.tree.map(lambda place: arrays[place], places[0])

    return map_batch


def map_distinct(function: Callable[..., T], *operands: PyTree) -> T:
    """Returns ``vmap(function)(*operands)``; equal operands are usually computed once."""
    arrays, structure = jax.tree.flatten(operands)
    size = len(arrays[0])

    def apply(*arrays: Array) -> T:
        return function(*jax.tree.unflatten(structure, arrays))

    # A block takes as much memory as the expected distinct operands.
    map_all = map_in_blocks(apply, _CACHED // _DISTINCT)
    if is_for_tpu() or size <= _DISTINCT:
        return map_all(*arrays)
    bits = jnp.concatenate([_bits(x).reshape(size, -1) for x in arrays], axis=1)
    if is_accelerated():
        return _map_distinct_rows(map_all, bits, arrays)
    _, first, group = jnp.unique(
        bits, axis=0, size=_DISTINCT, return_index=True, return_inverse=True
    )

    def map_distinct(*arrays: Array) -> T:
        results = map_all(*(x[first] for x in arrays))
        return jax.tree.map(lambda x: x[group], results)

    return lax.cond(jnp.max(group) < _DISTINCT, map_distinct, map_all, *arrays)


def _map_distinct_rows(
    function: Callable[..., T], bits: Int[Array, "n word"], arrays: list[Array]
) -> T:
    """Returns ``function(*arrays)``, and computes one of equal rows, some rows at a time.

    Args:
        function: Maps each row of arrays [row, ...] to a row of results.
        bits: [row, word]; two rows are equal if their bits are.
        arrays: Arrays [row, ...].
    """
    size, chunk = len(bits), min(len(bits), _ROWS)
    index = jnp.arange(size, dtype=jnp.int32)
    code = jnp.zeros(size, jnp.uint64)
    for word in bits.T.astype(jnp.uint64):
        code = (code ^ word) * jnp.uint64(_ODD)
        code ^= code >> 32
    bins = 4 << size.bit_length()
    place = (code % bins).astype(jnp.int32)
    first = jnp.full(bins, size, jnp.int32).at[place].min(index)[place]
    # A row that shares its bin with another one is computed for itself.
    first = jnp.where(jnp.all(bits[first] == bits, axis=1), first, index)
    lanes, total, place = list_needed(first == index, chunk, index)
    shapes = jax.eval_shape(function, *arrays)
    blank = jax.tree.map(lambda x: jnp.zeros((size + chunk, *x.shape[1:]), x.dtype), shapes)

    def compute_chunk(state: tuple[Array, T]) -> tuple[Array, T]:
        done, results = state
        lane = lax.dynamic_slice_in_dim(lanes, done, chunk)
        put = functools.partial(lax.dynamic_update_slice_in_dim, start_index=done, axis=0)
        return done + chunk, jax.tree.map(put, results, function(*(x[lane] for x in arrays)))

    start = (jnp.int32(0), blank)
    results = lax.while_loop(lambda state: state[0] < total, compute_chunk, start)[1]
    return jax.tree.map(lambda x: x[place[first]], results)


def _bits(x: Array) -> Array:
    """Returns int64 numbers that are equal if and only if the bits are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x.astype(jnp.int64)
    return lax.bitcast_convert_type(x.astype(jnp.float64), jnp.int64)
