"""Work that few elements need, loops that end early, long tables: platform-specific control flow.

On a CPU every element costs, so loops end as early as possible. An accelerator pays for each kernel
launch, and for a round trip to the host at each test of a loop's condition, so loops are unrolled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Int

from fmab_jax.sampling.backend import is_accelerated, is_for_tpu, platform
from fmab_jax.sampling.shapes import Integer, PyTree, Truths

# Elements per chunk: at least so many, or this part of all. All threads that a large GPU holds at
# once take little longer than one.
_LEAST, _PARTS = {False: 256, True: 2**18}, {False: 16, True: 64}
# Chunks of slow functions are smaller by this factor; on an accelerator they have so many elements,
# each of which may need a row of numbers.
_SLOW, _SLOW_CHUNK = 4, 4096
# Up to so many elements need no packing on a CPU.
_UNPACKED = 1024
# Steps per pass of a loop: more run faster on a GPU, fewer compile faster. A TPU expands each step
# into many.
_STEPS = {"cpu": 8, "gpu": 25, "tpu": 2}
# Loops of at most so many steps are unrolled.
_LINE = {"cpu": 0, "gpu": 64, "tpu": 0}
# Half a megabyte of numbers stays in a CPU's cache.
_CACHED = 2**16
# At most so many distinct operands are computed once for equal ones.
_DISTINCT = 16
# An accelerator computes so many distinct operands at once.
_ROWS = 1024
# An odd factor that mixes the bits of a word: 2^64 over the golden ratio.
_ODD = 0x9E3779B97F4A7C15
T = TypeVar("T")
Pair = tuple[Array, Array]
Exact = Callable[..., Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """Rows of numbers, and the row of each element; reads gather one number or row at a time.

    Attributes:
        values: [row, ...]
        row: Row of each element.
    """

    values: Array
    row: Int[Array, ...]

    def __getitem__(self, place: Int[Array, ...]) -> Array:
        """Returns the number at a place of each element's row."""
        return self.values.at[self.row, place].get(mode="promise_in_bounds")

    def whole(self) -> Array:
        """Returns the row of each element, [..., number]."""
        return self.values.at[self.row].get(mode="promise_in_bounds")

    def at(self, number: Int[Array, ...]) -> Array:
        """Returns the row at an offset from the row of each element, [..., number]."""
        return self.values.at[self.row + number].get(mode="promise_in_bounds")

    def put(self, place: Int[Array, ...], new: Array, mask: Truths) -> Table:
        """Returns the table with new numbers at a place of each element's row, where masked.

        Under ``vmap`` all elements write into one shared table; their rows must differ.
        """
        row = jnp.where(mask, self.row, len(self.values))
        return Table(_scatter(self.values, row, jnp.broadcast_to(place, row.shape), new), self.row)

    def apply(self, function: Callable[..., Array], *operands: Array) -> Array:
        """Returns ``function(row, *operands)`` for one element; reads equal rows only once."""
        first = self.values[0]
        if len(self.values) == 1:
            return function(first, *operands)
        return lax.cond(
            jnp.all(self.values == first[None]),
            lambda _, *params: function(first, *params),
            lambda row, *params: function(self.values[row], *params),
            *(self.row, *operands),
        )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Columns(Table):
    """A table with its axes swapped: the numbers of neighbouring elements are neighbours.

    Attributes:
        values: [place, row]
        row: Row of each element.
    """

    def __getitem__(self, place: Int[Array, ...]) -> Array:
        """Returns the number at a place of each element's row."""
        return self.values.at[place, self.row].get(mode="promise_in_bounds")

    def put(self, place: Int[Array, ...], new: Array, mask: Truths) -> Columns:
        """Returns the table with new numbers; arguments as in `Table.put`."""
        place = jnp.where(mask, place, len(self.values))
        row = jnp.broadcast_to(self.row, place.shape)
        return Columns(_scatter(self.values, place, row, new), self.row)


def _set(values: Array, row: Array, place: Array, new: Array) -> Array:
    return values.at[row, place].set(new, mode="drop")


_scatter = custom_vmap(_set)


@_scatter.def_vmap
def _scatter_batch(
    size: int, batched: list[bool], values: Array, *args: Array
) -> tuple[Array, bool]:
    row, place, new = (
        x if mapped else jnp.broadcast_to(x[None], (size, *x.shape))
        for x, mapped in zip(args, batched[1:], strict=True)
    )
    if batched[0]:
        return jax.vmap(_set)(values, row, place, new), True
    return _scatter(values, row, place, new), False


def table(values: np.ndarray) -> Table:
    """Returns a table of NumPy's numbers, with the first row for every element."""
    fields: tuple[Any, Any] = values, np.int32(0)
    return Table(*fields)


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
    lanes, total, _ = _list_needed(needed, chunk, indices)

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


def _list_needed(needed: Truths, chunk: int, indices: Array) -> tuple[Array, Array, Array]:
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


def repeat_steps(step: Callable[..., Pair], state: Pair, is_unfinished: Exact, most: int) -> Pair:
    """Repeats a step until no element needs another one.

    Args:
        step: Maps the index of the step, and two arrays of floats, to the next two.
        state: The first two arrays, of one shape.
        is_unfinished: Maps the index and the arrays to a mask of elements that need another step.
        most: Upper bound of the number of steps.
    """
    steps, longest = (sizes[platform()] for sizes in (_STEPS, _LINE))

    def take_steps(number: Array, state: Pair) -> Pair:
        return functools.reduce(lambda now, i: step(number + i, now), range(steps), state)

    if is_accelerated():
        # One array of complex numbers, so that a pass is one kernel.
        def take_line(turn: Array, packed: Array) -> Array:
            return lax.complex(*take_steps(turn * steps, (packed.real, packed.imag)))

        if most <= longest:
            return functools.reduce(lambda now, i: step(np.int32(i), now), range(most), state)
        turns = np.int32(-(-most // steps))
        packed = lax.fori_loop(np.int32(0), turns, take_line, lax.complex(*state))
        return packed.real, packed.imag

    def repeat(now: tuple[Array, Pair]) -> tuple[Array, Pair]:
        return now[0] + steps, take_steps(*now)

    start = (jnp.int32(0), state)
    return lax.while_loop(lambda now: anywhere(jnp.any(is_unfinished(*now))), repeat, start)[1]


def short_loop(count: int, body: Callable[[Integer | int, T], T], start: T) -> T:
    """Returns ``lax.fori_loop(0, count, body, start)``, unrolled on accelerators.

    For few and short steps: a loop compiles faster for a CPU.
    """
    if not is_accelerated():
        return lax.fori_loop(0, count, body, start)
    return functools.reduce(lambda now, number: body(number, now), range(count), start)


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


def map_in_blocks(function: Callable[..., T], elements: int) -> Callable[..., T]:
    """Returns ``vmap(function)``; on a CPU, in blocks whose ``elements`` stay in a cache."""

    def map_batch(*operands: PyTree) -> T:
        size = len(jax.tree.leaves(operands)[0])
        block = math.gcd(size, 2 ** max(0, math.ceil(math.log2(_CACHED / elements))))
        if is_accelerated() or block == size:
            return jax.vmap(function)(*operands)
        blocks = jax.tree.map(lambda x: x.reshape(size // block, block, *x.shape[1:]), operands)
        results = lax.map(lambda params: jax.vmap(function)(*params), blocks)
        return jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), results)

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
    lanes, total, place = _list_needed(first == index, chunk, index)
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


def store_once(barrier: Truths, *values: Array) -> tuple[Array, ...]:
    """Returns the values, computed once; on a CPU, XLA would repeat the work for each reader.

    Args:
        barrier: True everywhere, unknown to the compiler; its first element selects a branch.
        *values: Arrays.
    """
    if is_accelerated():
        return values

    @custom_vmap
    def keep(barrier: Array, *values: Array) -> tuple[Array, ...]:
        # XLA keeps branches that differ, and fuses nothing across them.
        return lax.cond(barrier.reshape(-1)[0], lambda *x: x, _change_values, *values)

    @keep.def_vmap
    def rule(
        size: int, batched: list[bool], barrier: Array, *values: Array
    ) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
        return keep(barrier, *values), tuple(batched[1:])

    return keep(barrier, *values)


def _change_values(*values: Array) -> tuple[Array, ...]:
    """Returns different values of the same shapes and types, so that XLA keeps both branches."""
    return tuple(~x if x.dtype == bool else x + 1 for x in values)


def _reduce_over_batch(reduce: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Returns a function of a scalar that, under ``vmap``, is the same for the whole batch.

    A loop or a branch that depends on such a scalar stays one loop or branch under ``vmap``.
    """

    @custom_vmap
    def reduce_batch(value: Array) -> Array:
        return value

    @reduce_batch.def_vmap
    def rule(size: int, batched: list[bool], value: Array) -> tuple[Array, bool]:
        return reduce_batch(reduce(value)), False

    return reduce_batch


largest = _reduce_over_batch(lambda values: jnp.max(values, axis=0))

anywhere = _reduce_over_batch(lambda values: jnp.any(values, axis=0))
