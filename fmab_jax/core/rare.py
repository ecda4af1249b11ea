"""Work that few elements need, loops that end early, long tables: what samplers know of platforms.

On a processor every element costs, so loops end as soon as they may. An accelerator pays for each
launch, and for a trip to the host each time that a loop asks whether it is over: there, work is
laid out in a straight line.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Int

from fmab_jax.core.backend import is_accelerated, platform
from fmab_jax.core.shapes import Truths

# Elements that are worked out at once: at least so many, or this part of all.
_LEAST, _PARTS = {False: 256, True: 1024}, {False: 16, True: 64}
# So much fewer of what takes long, on a processor.
_LONG = 4
# So few are worked out all at once on a processor.
_ALL = 1024
# Steps of a loop between two questions whether it is over; a GPU, which counts its passes instead,
# takes more of them in a straight line, and fewer compile sooner. For a TPU each is many.
_STEPS = {"cpu": 8, "gpu": 25, "tpu": 2}
# So many steps are one line there.
_LINE = {"cpu": 0, "gpu": 64, "tpu": 0}
# Numbers of an array that stays in a processor's cache: half a megabyte.
_CACHED = 2**16
# Distinct operands that are worked out apart from the rest.
_FEW = 16
Pair = tuple[Array, Array]
Exact = Callable[..., Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """Rows of numbers that are read where they lie, one number or one row at a time.

    Attributes:
        values: [row, ...]
        row: Which row belongs to each element.
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
        """Returns the row so many after the first of an element, [..., number]."""
        return self.values.at[self.row + number].get(mode="promise_in_bounds")

    def put(self, place: Int[Array, ...], new: Array, where: Truths) -> Table:
        """Returns the table with new numbers at a place of each element's row, where wanted.

        Under ``vmap`` all elements write into the one table that they share, as long as each has a
        row of its own.
        """
        row = jnp.where(where, self.row, len(self.values))
        return Table(_written(self.values, row, jnp.broadcast_to(place, row.shape), new), self.row)

    def apply(self, function: Callable[..., Array], *operands: Array) -> Array:
        """Returns ``function(row, *operands)`` for one element; equal rows are read only once."""
        first = self.values[0]
        if len(self.values) == 1:
            return function(first, *operands)
        return lax.cond(
            jnp.all(self.values == first[None]),
            lambda _, *params: function(first, *params),
            lambda row, *params: function(self.values[row], *params),
            *(self.row, *operands),
        )


def _set(values: Array, row: Array, place: Array, new: Array) -> Array:
    return values.at[row, place].set(new, mode="drop")


_written = custom_vmap(_set)


@_written.def_vmap
def _written_by_all(
    size: int, batched: list[bool], values: Array, *given: Array
) -> tuple[Array, bool]:
    row, place, new = (
        x if mapped else jnp.broadcast_to(x[None], (size, *x.shape))
        for x, mapped in zip(given, batched[1:], strict=True)
    )
    if batched[0]:
        return jax.vmap(_set)(values, row, place, new), True
    return _written(values, row, place, new), False


def table(values: Any) -> Table:
    """Returns a table of NumPy's numbers, with its first row for every element."""
    row: Any = np.int32(0)
    return Table(values, row)


def rare(where: Truths, exact: Exact, guess: Array, *operands: Any, long: bool = False) -> Array:
    """Returns ``guess``, and ``exact(*operands)`` where it is needed, which is for few elements.

    They are packed, over the whole batch under ``vmap``, and worked out a part at a time.

    Args:
        where: Which elements need it.
        exact: Maps vectors [lane] to one of them, element by element; rows of a `Table` are
            [lane, number]. It must hold no array.
        guess: Of the shape of ``where``.
        *operands: Arrays that broadcast to that shape, or a `Table`, whose ``row`` does.
        long: Whether one element takes as long as many others: then fewer are worked out at once.
    """
    shape = where.shape

    def aligned(x: Array) -> Array:
        return x.reshape((1,) * (len(shape) - x.ndim) + x.shape)

    leaves: list[Array] = []
    for x in operands:
        leaves += [x.values, aligned(x.row)] if isinstance(x, Table) else [aligned(jnp.asarray(x))]
    tables = tuple(isinstance(x, Table) for x in operands)
    return _packed(exact, tables, long)(where, jnp.broadcast_to(guess, shape), *leaves)


def _packed(exact: Exact, tables: tuple[bool, ...], long: bool) -> Exact:
    """Returns `rare` of leaves, which are two for a table."""

    @custom_vmap
    def replaced(where: Array, guess: Array, *leaves: Array) -> Array:
        return _replaced(exact, tables, long, where, guess, *leaves)

    @replaced.def_vmap
    def rule(size: int, batched: list[bool], *leaves: Array) -> tuple[Array, bool]:
        (where, guess), rest = leaves[:2], iter(zip(leaves[2:], batched[2:], strict=True))
        where, guess = (
            jnp.broadcast_to(x if mapped else x[None], (size, *x.shape[mapped:]))
            for x, mapped in zip((where, guess), batched, strict=False)
        )
        larger: list[Array] = []
        for is_table in tables:
            x, mapped = next(rest)
            if not is_table:
                larger.append(x if mapped else x[None])
                continue
            row, row_mapped = next(rest)
            row = row if row_mapped else row[None]
            if mapped:
                # The tables of all become one.
                first = jnp.arange(size, dtype=row.dtype) * x.shape[1]
                row = row + first.reshape(-1, *[1] * (row.ndim - 1))
                x = x.reshape(-1, *x.shape[2:])
            larger += [x, row]
        return _packed(exact, tables, long)(where, guess, *larger), True

    return replaced


def _replaced(
    exact: Exact, tables: tuple[bool, ...], long: bool, where: Array, guess: Array, *leaves: Array
) -> Array:
    size, fast = where.size, is_accelerated()
    if not size:
        return guess
    chunk = min(size, max(_LEAST[fast], size // _PARTS[fast]))
    if long and not fast:
        chunk = -(-chunk // _LONG)
    number = jnp.int32 if size + chunk < 2**31 else jnp.int64
    needed, every = where.reshape(-1), jnp.arange(size, dtype=number)

    def found(lane: Array) -> Array:
        rest, operands = iter(leaves), []
        for is_table in tables:
            x = next(rest)
            one = _at(next(rest) if is_table else x, lane, where.shape)
            operands.append(Table(x, one).whole() if is_table else one)
        return exact(*operands)

    if size <= _ALL and not fast and not long:
        # Few are not packed: lanes that need nothing repeat one that does.
        lane = jnp.where(needed, every, jnp.argmax(needed).astype(number))
        worked = lax.cond(
            jnp.any(needed),
            lambda guess: jnp.where(needed, found(lane), guess),
            lambda guess: guess,
            guess.reshape(-1),
        )
        return worked.reshape(where.shape)
    ranks = jnp.cumsum(needed, dtype=number)
    total = ranks[-1]
    place = jnp.where(needed, ranks - 1, size + chunk)
    lanes = jnp.zeros(size + chunk, number)
    lanes = lanes.at[place].set(every, mode="drop", unique_indices=True)

    def some(state: tuple[Array, Array]) -> tuple[Array, Array]:
        done, values = state
        lane = lax.dynamic_slice_in_dim(lanes, done, chunk)
        real = done + jnp.arange(chunk, dtype=number) < total
        # Past the last one that needs it, the first of the chunk is repeated.
        lane = jnp.where(real, lane, lane[0])
        out = jnp.where(real, lane, size)
        new = values.at[out].set(found(lane), mode="drop", unique_indices=True)
        return done + chunk, new

    start = (jnp.zeros((), number), guess.reshape(-1))
    values = lax.while_loop(lambda state: state[0] < total, some, start)[1]
    return values.reshape(where.shape)


def _at(values: Array, lane: Int[Array, " lane"], shape: tuple[int, ...]) -> Array:
    """Returns the entries at some lanes of an array that broadcasts to a shape."""
    index = jnp.zeros((), jnp.int64 if values.size >= 2**31 else jnp.int32)
    for size, place in zip(values.shape, jnp.unravel_index(lane, shape), strict=True):
        if size > 1:
            index = index * size + place.astype(index.dtype)
    found = values.reshape(-1).at[index].get(mode="promise_in_bounds")
    return jnp.broadcast_to(found, lane.shape)


def repeated(step: Callable[..., Pair], state: Pair, unfinished: Exact, most: int) -> Pair:
    """Repeats a step until it changes nothing any more.

    Args:
        step: Maps the number of steps before it, and two arrays of floats, to the next two.
        state: The first two, of one shape.
        unfinished: Tells of the same which elements need another step.
        most: Steps after which none does.
    """
    steps, longest = (sizes[platform()] for sizes in (_STEPS, _LINE))

    def several(number: Any, state: Pair) -> Pair:
        return functools.reduce(lambda now, i: step(number + i, now), range(steps), state)

    if is_accelerated():
        # One array of complex numbers, so that a pass is one kernel.
        def line(turn: Array, packed: Array) -> Array:
            return lax.complex(*several(turn * steps, (packed.real, packed.imag)))

        if most <= longest:
            return functools.reduce(lambda now, i: step(np.int32(i), now), range(most), state)
        turns = np.int32(-(-most // steps))
        packed = lax.fori_loop(np.int32(0), turns, line, lax.complex(*state))
        return packed.real, packed.imag

    def more(now: tuple[Array, Pair]) -> tuple[Array, Pair]:
        return now[0] + steps, several(*now)

    start = (jnp.int32(0), state)
    return lax.while_loop(lambda now: anywhere(jnp.any(unfinished(*now))), more, start)[1]


def short_loop(count: int, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """Returns ``lax.fori_loop(0, count, body, start)``, which accelerators run without a loop.

    For few and short steps: a processor compiles the loop sooner.
    """
    if not is_accelerated():
        return lax.fori_loop(0, count, body, start)
    return functools.reduce(lambda now, number: body(number, now), range(count), start)


def where_any(where: Truths, exact: Callable[..., Array], guess: Array, *operands: Array) -> Array:
    """Returns ``guess``, and ``exact(*operands)`` where needed: for all elements, or for none.

    Arguments are those of `rare`, but ``exact`` is given arrays as they are.
    """
    return lax.cond(
        anywhere(jnp.any(where)),
        lambda guess, *params: jnp.where(where, exact(*params), guess),
        lambda guess, *_: guess,
        *(guess, *operands),
    )


def mapped_in_blocks(function: Callable[..., Any], elements: int) -> Callable[..., Any]:
    """Returns ``vmap(function)``; on a processor, in blocks whose ``elements`` stay in a cache."""

    def whole(*operands: Any) -> Any:
        size = len(jax.tree.leaves(operands)[0])
        block = math.gcd(size, 2 ** max(0, math.ceil(math.log2(_CACHED / elements))))
        if is_accelerated() or block == size:
            return jax.vmap(function)(*operands)
        cut = jax.tree.map(lambda x: x.reshape(size // block, block, *x.shape[1:]), operands)
        found = lax.map(lambda params: jax.vmap(function)(*params), cut)
        return jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), found)

    return whole


def once_for_all(function: Callable[..., Any], *operands: Any) -> Any:
    """Returns ``vmap(function)(*operands)``; a processor works out equal operands only once."""
    leaves, structure = jax.tree.flatten(operands)
    size = len(leaves[0])

    def one(*leaves: Array) -> Any:
        return function(*jax.tree.unflatten(structure, leaves))

    # A block of so many takes as much memory as the few that are expected.
    every = mapped_in_blocks(one, _CACHED // _FEW)
    if is_accelerated() or size <= _FEW:
        return every(*leaves)
    bits = jnp.stack([_bits(x) for x in leaves], axis=1)
    _, first, group = jnp.unique(bits, axis=0, size=_FEW, return_index=True, return_inverse=True)

    def few(*leaves: Array) -> Any:
        found = every(*(x[first] for x in leaves))
        return jax.tree.map(lambda x: x[group], found)

    return lax.cond(jnp.max(group) < _FEW, few, every, *leaves)


def _bits(x: Array) -> Array:
    """Returns int64 that are equal where the bits are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x.astype(jnp.int64)
    return lax.bitcast_convert_type(x.astype(jnp.float64), jnp.int64)


def stored(unknown: Truths, *values: Array) -> tuple[Array, ...]:
    """Returns the values, computed once; else XLA repeats the work for each reader on a processor.

    Args:
        unknown: True everywhere, which the compiler does not know: the first decides a branch.
        *values: Arrays.
    """
    if is_accelerated():
        return values

    @custom_vmap
    def kept(unknown: Array, *values: Array) -> tuple[Array, ...]:
        # The branches differ, so that both are kept, and nothing is fused across a branch.
        return lax.cond(unknown.reshape(-1)[0], lambda *x: x, _others, *values)

    @kept.def_vmap
    def rule(size: int, batched: list[bool], unknown: Array, *values: Array) -> tuple[Any, Any]:
        return kept(unknown, *values), tuple(batched[1:])

    return kept(unknown, *values)


def _others(*values: Array) -> tuple[Array, ...]:
    """Returns other values of the same shapes and types, so that XLA keeps both branches."""
    return tuple(~x if x.dtype == bool else x + 1 for x in values)


def _over_batch(reduce: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Returns a function of a scalar that, under ``vmap``, is the same for the whole batch.

    A loop or a branch that depends on such a scalar stays one loop or branch under ``vmap``.
    """

    @custom_vmap
    def same(value: Array) -> Array:
        return value

    @same.def_vmap
    def rule(size: int, batched: list[bool], value: Array) -> tuple[Array, bool]:
        return same(reduce(value)), False

    return same


largest = _over_batch(lambda values: jnp.max(values, axis=0))

anywhere = _over_batch(lambda values: jnp.any(values, axis=0))
