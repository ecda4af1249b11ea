"""Work that few elements need: masked elements are packed, and computed chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Int

from fmab_jax.sampling.backend import is_accelerated
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import Truths

# Elements per chunk: at least so many, or this part of all. All threads that a large GPU holds at
# once take little longer than one.
_LEAST, _PARTS = {False: 256, True: 2**18}, {False: 16, True: 64}
# Chunks of slow functions are smaller by this factor; on an accelerator they have so many elements,
# each of which may need a row of numbers.
_SLOW, _SLOW_CHUNK = 4, 4096
# Up to so many elements need no packing on a CPU.
_UNPACKED = 1024
Exact = Callable[..., Array]


def rare(
    mask: Truths, exact: Exact, guess: Array, *operands: Array | Table, slow: bool = False
) -> Array:
    """Returns ``guess``, and ``exact(*operands)`` for the few masked elements.

    Masked elements are packed, over the whole batch under ``vmap``, and computed chunk by chunk.

    Args:
        mask: Elements that need ``exact``.
        exact: Maps vectors [lane] to one of them, element by element; rows of a `Table` are
            [lane, number]. It must hold no array.
        guess: Values of the shape of ``mask``.
        *operands: Arrays that broadcast to that shape, or a `Table`, whose ``row`` does.
        slow: Whether ``exact`` is slow: then chunks are smaller.
    """
    shape = mask.shape

    def align(x: Array) -> Array:
        return x.reshape((1,) * (len(shape) - x.ndim) + x.shape)

    arrays: list[Array] = []
    for x in operands:
        arrays += [x.values, align(x.row)] if isinstance(x, Table) else [align(jnp.asarray(x))]
    tables = tuple(isinstance(x, Table) for x in operands)
    return _make_packed(exact, tables, slow)(mask, jnp.broadcast_to(guess, shape), *arrays)


def _make_packed(exact: Exact, tables: tuple[bool, ...], slow: bool) -> Exact:
    """Builds `rare` for arrays, of which a table has two."""

    @custom_vmap
    def replace(mask: Array, guess: Array, *arrays: Array) -> Array:
        return _replace_lanes(exact, tables, slow, mask, guess, *arrays)

    @replace.def_vmap
    def rule(size: int, batched: list[bool], *arrays: Array) -> tuple[Array, bool]:
        (mask, guess), pairs = arrays[:2], iter(zip(arrays[2:], batched[2:], strict=True))
        mask, guess = (
            jnp.broadcast_to(x if mapped else x[None], (size, *x.shape[mapped:]))
            for x, mapped in zip((mask, guess), batched, strict=False)
        )
        joined: list[Array] = []
        for is_table in tables:
            x, mapped = next(pairs)
            if not is_table:
                joined.append(x if mapped else x[None])
                continue
            row, row_mapped = next(pairs)
            row = row if row_mapped else row[None]
            if mapped:
                # One table holds the tables of the whole batch.
                first = jnp.arange(size, dtype=row.dtype) * x.shape[1]
                row = row + first.reshape(-1, *[1] * (row.ndim - 1))
                x = x.reshape(-1, *x.shape[2:])
            joined += [x, row]
        return _make_packed(exact, tables, slow)(mask, guess, *joined), True

    return replace


def _replace_lanes(
    exact: Exact, tables: tuple[bool, ...], slow: bool, mask: Array, guess: Array, *arrays: Array
) -> Array:
    size, fast = mask.size, is_accelerated()
    if not size:
        return guess
    chunk = min(size, max(_LEAST[fast], size // _PARTS[fast]))
    if slow:
        chunk = min(size, _SLOW_CHUNK) if fast else -(-chunk // _SLOW)
    number = jnp.int32 if size + chunk < 2**31 else jnp.int64
    needed, indices = mask.reshape(-1), jnp.arange(size, dtype=number)

    def compute(lane: Array) -> Array:
        iterator, operands = iter(arrays), []
        for is_table in tables:
            x = next(iterator)
            entry = _at(next(iterator) if is_table else x, lane, mask.shape)
            operands.append(Table(x, entry).whole() if is_table else entry)
        return exact(*operands)

    if size <= _UNPACKED and not fast and not slow:
        # Lanes outside of the mask repeat a masked one.
        lane = jnp.where(needed, indices, jnp.argmax(needed).astype(number))
        results = lax.cond(
            jnp.any(needed),
            lambda guess: jnp.where(needed, compute(lane), guess),
            lambda guess: guess,
            guess.reshape(-1),
        )
        return results.reshape(mask.shape)
    lanes, total, _ = list_needed(needed, chunk, indices)

    def compute_chunk(state: tuple[Array, Array]) -> tuple[Array, Array]:
        done, values = state
        lane = lax.dynamic_slice_in_dim(lanes, done, chunk)
        real = done + jnp.arange(chunk, dtype=number) < total
        # Padding repeats the first lane of the chunk.
        lane = jnp.where(real, lane, lane[0])
        out = jnp.where(real, lane, size)
        new = values.at[out].set(compute(lane), mode="drop", unique_indices=True)
        return done + chunk, new

    start = (jnp.zeros((), number), guess.reshape(-1))
    values = lax.while_loop(lambda state: state[0] < total, compute_chunk, start)[1]
    return values.reshape(mask.shape)


def list_needed(needed: Truths, chunk: int, indices: Array) -> tuple[Array, Array, Array]:
    """Returns the needed elements, with room for a chunk, their number, and the place of each."""
    size, number = len(needed), indices.dtype
    ranks = jnp.cumsum(needed, dtype=number)
    total = ranks[-1]
    place = jnp.where(needed, ranks - 1, size + chunk)
    lanes = jnp.zeros(size + chunk, number)
    lanes = lanes.at[place].set(indices, mode="drop", unique_indices=True)
    return lanes, total, place


def _at(values: Array, lane: Int[Array, " lane"], shape: tuple[int, ...]) -> Array:
    """Returns the entries at some lanes of an array that broadcasts to a shape."""
    index = jnp.zeros((), jnp.int64 if values.size >= 2**31 else jnp.int32)
    for size, place in zip(values.shape, jnp.unravel_index(lane, shape), strict=True):
        if size > 1:
            index = index * size + place.astype(index.dtype)
    entries = values.reshape(-1).at[index].get(mode="promise_in_bounds")
    return jnp.broadcast_to(entries, lane.shape)


def where_any(mask: Truths, exact: Callable[..., Array], guess: Array, *operands: Array) -> Array:
    """Returns ``guess``, and ``exact(*operands)`` where masked; computes all elements or none.

    Arguments as in `rare`, but ``exact`` gets the arrays unchanged.
    """
    return lax.cond(
        anywhere(jnp.any(mask)),
        lambda guess, *params: jnp.where(mask, exact(*params), guess),
        lambda guess, *_: guess,
        *(guess, *operands),
    )
