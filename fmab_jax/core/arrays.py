"""Arrays in one order: sums that no batch changes, and samplers applied only where needed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, UInt32

# Elements of the largest array of a block: half a megabyte.
_BLOCK = 2**16
_RANK_ROWS = 16
# Distinct operands of a batch that are worked out apart from the rest.
_FEW = 16
# Rows that are added up without a loop.
_IN_TURN = 64


def pairwise_sum(values: Float[Array, "n ..."]) -> Float[Array, ...]:
    """Sums over the first axis pairwise, in one order; a compiler's own depends on the batch."""
    return _folded(values, lambda size: (size + 1) // 2)


def _folded(values: Float[Array, "n ..."], half_of: Callable[[int], int]) -> Float[Array, ...]:
    """Sums over the first axis by folding what lies past a half onto the values before it."""
    size = values.shape[0]
    while size > 1:
        half = half_of(size)
        pairs = values[: size - half] + values[half:size]
        values = jnp.concatenate([pairs, values[size - half : half]])
        size = half
    return values[0]


def running_sum(values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Returns the sums of the first 1, 2, ... values, in one order whatever the batch."""
    size, shift = values.shape[0], 1
    while shift < size:
        values = values + jnp.concatenate([jnp.zeros(shift), values[:-shift]])
        shift *= 2
    return values


def exact_sum(values: Float[Array, "n ..."], scale: Float[Array, ""]) -> Float[Array, ...]:
    """Sums over the first axis, to 2^-62 of ``scale``, with the same bits in any order.

    Args:
        values: At most 10^6 numbers in [0, scale].
        scale: A power of two.
    """
    coarse, fine = exact_parts(values, scale)
    return exact_total(jnp.sum(coarse, axis=0), jnp.sum(fine, axis=0), scale)


def exact_parts(
    values: Float[Array, ...], scale: Float[Array, ...]
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    """Returns what `exact_sum` adds up: each part's sums are exact, in any order.

    They are whole multiples of two steps, each sum of which has fewer than 53 bits.
    """
    units = values / scale
    coarse = jnp.floor(units * 2.0**31)
    return coarse, jnp.round((units * 2.0**31 - coarse) * 2.0**31)


def exact_total(
    coarse: Float[Array, ...], fine: Float[Array, ...], scale: Float[Array, ...]
) -> Float[Array, ...]:
    """Returns the sum, from the sums of both parts."""
    return scale * (coarse * 2.0**-31 + fine * 2.0**-62)


def padded_sum(values: Float[Array, "n ..."]) -> Float[Array, ...]:
    """Sums over the first axis by folding halves, as if padded with zeros to a power of two.

    One order, where a compiler's own depends on the batch; and zeros at the end change no bit.
    """
    return _folded(values, lambda size: 1 << ((size - 1).bit_length() - 1))


def sum_in_turn(values: Float[Array, "n ..."]) -> Float[Array, ...]:
    """Sums over the first axis one after another; zeros anywhere change no bit."""

    def some(first: Array | int, total: Array, count: int) -> Array:
        block = lax.dynamic_slice_in_dim(values, first, count)
        return functools.reduce(jnp.add, [total, *block])

    several, rest = divmod(values.shape[0], _IN_TURN)
    total = varying_like(jnp.zeros(values.shape[1:], values.dtype), values)
    if several:
        total = lax.fori_loop(0, several, lambda i, x: some(i * _IN_TURN, x, _IN_TURN), total)
    return some(several * _IN_TURN, total, rest)


def rounded(product: Float[Array, ...]) -> Float[Array, ...]:
    """Rounds a product to 52 bits before it is added to, so that no compiler fuses the two.

    Whether it would depends on the program around them, and a seed's results must not.
    """
    return lax.reduce_precision(product, exponent_bits=11, mantissa_bits=51)


def masked_map(
    sample: Callable[..., Any] | Sequence[Callable[..., Any]],
    need: Bool[Array, ...] | Int[Array, ...],
    *operands: Array,
    parts: int = 16,
    outputs: int | None = None,
    rows: int | None = None,
) -> Any:
    """Applies an elementwise sampler where it is needed, and gives 0 elsewhere.

    Under ``vmap`` the whole batch is one long list: the needed elements are gathered and sampled a
    chunk at a time, so that arms which have left cost next to nothing.

    Args:
        sample: Maps equally long vectors to one float64 vector, element by element; or several of
            the kind.
        need: Which elements to sample; of the shape of what is returned. Where there are several
            samplers, 1 for the first, 2 for the second, ..., 0 for none.
        *operands: Arguments of ``sample``, each of a shape that broadcasts to that of ``need``. One
            with an axis more is a table [row, *shape]: ``sample`` gets a `Table`, of which it reads
            the columns [row, lane] that it needs. Tables are read where they lie, never copied.
        parts: A chunk is this part of all elements, or of 4096 if they are fewer; many where few
            are expected to be needed.
        outputs: How many vectors ``sample`` returns, where it returns a tuple of them: then a tuple
            of arrays is returned. What is needed is then gathered only once for all.
        rows: How many values ``sample`` returns for each element, as [row, lane]; they are returned
            as [row, *shape]. None for one.
    """
    shape = need.shape
    tail = () if rows is None else (rows,)
    tables = tuple(x.ndim > len(shape) for x in operands)
    # Axes of length 1 stay: lanes and columns are found by their place in all others.
    ones = [(1,) * (len(shape) + table - x.ndim) for x, table in zip(operands, tables, strict=True)]
    aligned = [
        x.reshape(x.shape[:table] + missing + x.shape[table:])
        for x, table, missing in zip(operands, tables, ones, strict=True)
    ]
    samples = (sample,) if callable(sample) else tuple(sample)
    if outputs is None:
        samples = tuple(functools.partial(_alone, each) for each in samples)
    whole = _masked(samples, tables, (), shape, parts, outputs or 1, tail)
    found = tuple(x.reshape(*tail, *shape) for x in whole(need.reshape(-1), *aligned))
    return found if outputs is not None else found[0]


def _alone(sample: Callable[..., Array], *own: Any) -> tuple[Array, ...]:
    return (sample(*own),)


def _masked(
    samples: tuple[Callable[..., tuple[Array, ...]], ...],
    tables: tuple[bool, ...],
    batch: tuple[int, ...],
    shape: tuple[int, ...],
    parts: int,
    outputs: int,
    tail: tuple[int, ...],
) -> Callable[..., tuple[Array, ...]]:
    """Returns the map over lanes [batch * shape], operands lying as [*batch, (row,) *shape]."""

    @custom_vmap
    def whole(need: Array, *operands: Array) -> tuple[Array, ...]:
        sizes = (*batch, *shape)
        found = [
            Table(x, None, sizes, len(batch)) if table else _Spread(x, sizes)
            for x, table in zip(operands, tables, strict=True)
        ]
        blank = (jnp.zeros((*tail, *need.shape)),) * outputs
        return fill(samples, need, blank, *found, parts=parts)

    @whole.def_vmap
    def rule(size: int, is_batched: list[bool], need: Array, *operands: Array) -> tuple[Any, Any]:
        need = need if is_batched[0] else jnp.broadcast_to(need, (size, *need.shape))
        flat = [
            x if mapped else x[None] for x, mapped in zip(operands, is_batched[1:], strict=True)
        ]
        larger = _masked(samples, tables, (size, *batch), shape, parts, outputs, tail)
        found = larger(need.reshape(-1), *flat)
        found = tuple(jnp.moveaxis(x.reshape(*tail, size, -1), -2, 0) for x in found)
        return found, (True,) * outputs

    return whole


def _gathered(values: Array, place: Sequence[Array]) -> Array:
    """Returns the entries at a place on each axis; an axis of length 1 has one entry for all."""
    # By one number, which is always inside: XLA then leaves the array where it lies.
    wide = jnp.int64 if values.size >= 2**31 else jnp.int32
    index = jnp.zeros((), wide)
    for size, here in zip(values.shape, place, strict=True):
        if size > 1:
            index = index * size + here.astype(wide)
    return values.reshape(-1).at[index].get(mode="promise_in_bounds")


@dataclass(frozen=True)
class _Spread:
    """An array [*batch, *shape] as one value per lane; nothing is repeated before it is chosen.

    Attributes:
        values: The array; an axis of length 1 stands for any number of equal entries.
        sizes: (*batch, *shape).
    """

    values: Array
    sizes: tuple[int, ...]

    def __getitem__(self, chosen: Int[Array, " lane"]) -> Array:
        if self.values.shape == self.sizes:
            return self.values.reshape(-1)[chosen]
        return jnp.broadcast_to(
            _gathered(self.values, jnp.unravel_index(chosen, self.sizes)), chosen.shape
        )


jax.tree_util.register_dataclass(_Spread, ["values"], ["sizes"])


@dataclass(frozen=True)
class Table:
    """An array [*batch, row, *shape] as a sampler of lanes [*batch, *shape] sees it: by column.

    Nothing is gathered before it is read: choosing lanes of chosen lanes costs no table.

    Attributes:
        values: The array; an axis of length 1 stands for any number of equal entries.
        lanes: Numbers of the lanes chosen so far; None for all.
        sizes: (*batch, *shape).
        rows_at: Where the axis of rows lies.
    """

    values: Array
    lanes: Int[Array, " lane"] | None
    sizes: tuple[int, ...]
    rows_at: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.values.shape[self.rows_at]

    def __getitem__(self, chosen: Int[Array, " lane"]) -> Table:
        return replace(self, lanes=chosen if self.lanes is None else self.lanes[chosen])

    def looked_up(self, last: UInt32[Array, " lane"] | None = None) -> Float[Array, "row lane"]:
        """Returns the columns of the chosen lanes, with other places on the last axis if given."""
        lanes = jnp.arange(math.prod(self.sizes)) if self.lanes is None else self.lanes
        place = [x[None, :] for x in jnp.unravel_index(lanes, self.sizes)]
        if last is not None:
            place[-1] = last[None, :].astype(jnp.int32)
        place.insert(self.rows_at, jnp.arange(self.rows)[:, None])
        found = _gathered(self.values, place)
        return jnp.broadcast_to(found, (self.rows, len(lanes)))


jax.tree_util.register_dataclass(Table, ["values", "lanes"], ["sizes", "rows_at"])


def fill(
    sample: Callable[..., Any] | Sequence[Callable[..., Any]],
    need: Bool[Array, " lane"] | Int[Array, " lane"],
    value: Any,
    *operands: Any,
    parts: int = 16,
) -> Any:
    """Replaces ``value`` by ``sample(*operands)`` where needed, a chunk of elements at a time.

    ``value`` is an array [..., lane], or a tuple of them; ``sample`` returns the same. Of several
    samplers, each has chunks of its own; ``need`` is as in `masked_map`.
    """
    samples = (sample,) if callable(sample) else tuple(sample)
    size = need.shape[0]
    rows = max(math.prod(x.shape[:-1]) for x in jax.tree.leaves(value))
    least = 4096 // parts if rows == 1 else max(1, 4096 // rows)
    chunk = min(size, max(least, size // parts))
    room = (-(-size // chunk) + len(samples) - 1) * chunk
    blank = jax.tree.map(lambda x: jnp.zeros((*x.shape[:-1], room)), value)
    first, blank = varying_like((jnp.int32(0), blank), need, *operands)
    # Back by gathering: accelerators scatter slowly.
    found, place = blank, jnp.zeros(size, jnp.int32)
    for number, each in enumerate(samples, 1):
        own = need if need.dtype == bool else need == number
        # Accelerators scatter slowly, CPUs search slowly.
        known, ranks = lax.platform_dependent(own, cpu=_placed, default=_to_search)
        found = _filled(each, known, ranks[-1], first, chunk, found, operands)
        place = jnp.where(own, first + ranks - 1, place)
        first = first + -(-ranks[-1] // chunk) * chunk
    wanted = need if need.dtype == bool else need > 0
    if any(x.ndim > 1 for x in jax.tree.leaves(value)):
        # Stored first: else the compiler computes them anew for every row.
        wanted, place = stored(first >= 0, wanted, place)

    def back(new: Array, old: Array) -> Array:
        return jnp.where(
            wanted.reshape(*[1] * (old.ndim - 1), -1),
            new.at[..., place].get(mode="promise_in_bounds"),
            old,
        )

    return jax.tree.map(back, found, value)


def _filled(
    sample: Callable[..., Any],
    known: Int[Array, " lane"],
    total: Int[Array, ""],
    first: Int[Array, ""],
    chunk: int,
    found: Any,
    operands: tuple[Any, ...],
) -> Any:
    """Returns ``found`` with the samples of needed elements, by rank, from ``first`` on."""

    def one_chunk(state: tuple[Array, Any]) -> tuple[Array, Any]:
        done, found = state
        # The end of the last chunk repeats the last needed element.
        wanted = jnp.minimum(done + 1 + jnp.arange(chunk, dtype=jnp.int32), total)
        lane = lax.platform_dependent(
            known, wanted, cpu=lambda place, rank: place[rank - 1], default=jnp.searchsorted
        )
        fresh = sample(*(x[lane] for x in operands))
        kept = jax.tree.map(
            lambda x, new: lax.dynamic_update_slice_in_dim(x, new, first + done, -1), found, fresh
        )
        return done + chunk, kept

    start = (jnp.zeros_like(total), found)
    return lax.while_loop(lambda s: s[0] < total, one_chunk, start)[1]


def _placed(need: Bool[Array, " lane"]) -> tuple[Array, Array]:
    """Returns where the element of each rank lies, and the ranks."""
    ranks = ranked(need)
    return places(need, ranks), ranks


def _to_search(need: Bool[Array, " lane"]) -> tuple[Array, Array]:
    """Returns the ranks, in order, to search for where an element lies; and again."""
    ranks = jnp.cumsum(need, dtype=jnp.int32)
    return ranks, ranks


def ranked(need: Bool[Array, " lane"]) -> Int[Array, " lane"]:
    """Numbers the needed elements 1, 2, ... in an order of its own; the last number is the total.

    Down the columns of an array of 16 rows: a CPU adds rows several times faster.
    """
    if need.shape[0] % _RANK_ROWS:
        return jnp.cumsum(need, dtype=jnp.int32)
    down = jnp.cumsum(need.reshape(_RANK_ROWS, -1), axis=0, dtype=jnp.int32)
    whole = jnp.cumsum(down[-1], dtype=jnp.int32)
    return (down + (whole - down[-1])[None]).reshape(-1)


def places(need: Bool[Array, " lane"], ranks: Int[Array, " lane"]) -> Int[Array, " lane"]:
    """Returns the place of the first needed element, the second, ...; then zeros."""
    size = need.shape[0]
    every = jnp.arange(size, dtype=jnp.int32)
    place = jnp.where(need, ranks - 1, size)
    return jnp.zeros(size, jnp.int32).at[place].set(every, mode="drop")


def in_blocks(function: Callable[..., Array], elements: int) -> Callable[..., Array]:
    """Returns the function, which ``vmap`` then applies to a block of its batch at a time.

    For large intermediate arrays: those of a block stay in a processor's cache.

    Args:
        function: Of arrays, to one array.
        elements: Size of its intermediate arrays.
    """

    @custom_vmap
    def whole(*operands: Array) -> Array:
        return function(*operands)

    @whole.def_vmap
    def rule(size: int, is_batched: list[bool], *operands: Array) -> tuple[Array, bool]:
        block = math.gcd(size, 2 ** max(0, math.ceil(math.log2(_BLOCK / elements))))

        def by_block(*operands: Array) -> Array:
            cut = [x.reshape(size // block, block, *x.shape[1:]) for x in operands]
            found = lax.map(lambda own: jax.vmap(function)(*own), tuple(cut))
            return found.reshape(size, *found.shape[2:])

        spread = _spread(size, is_batched, operands)
        # An accelerator has room for all, and loses time with every step.
        return lax.platform_dependent(*spread, cpu=by_block, default=jax.vmap(function)), True

    return whole


def once_for_equals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, which ``vmap`` then applies once to trials whose operands are equal.

    The bits are those of the function applied to every trial.

    Args:
        function: Of scalars, to a pytree of arrays; takes long.
    """

    @custom_vmap
    def whole(*operands: Array) -> Any:
        return function(*operands)

    @whole.def_vmap
    def rule(size: int, is_batched: list[bool], *operands: Array) -> tuple[Any, Any]:
        spread = _spread(size, is_batched, operands)
        words = [*map(_word, spread)]
        order = jnp.lexsort(words)
        ranked = jnp.stack(words)[:, order]
        begins = jnp.any(ranked != jnp.roll(ranked, 1, axis=1), axis=0)
        begins = begins | (order == order[0])
        group = jnp.cumsum(begins, dtype=jnp.int32) - 1

        def few(*operands: Array) -> Any:
            one = order[places(begins, group + 1)[:_FEW]]
            found = jax.vmap(function)(*(x[one] for x in operands))
            mine = group[jnp.argsort(order)]
            return jax.tree.map(lambda x: x[mine], found)

        every = jax.vmap(function)
        found = every(*spread) if size <= _FEW else lax.cond(group[-1] < _FEW, few, every, *spread)
        return found, jax.tree.map(lambda _: True, found)

    return whole


def _spread(size: int, is_batched: list[bool], operands: Sequence[Array]) -> list[Array]:
    """Returns what `custom_vmap` hands to a rule, the same for all trials or not, for each."""
    return [
        x if mapped else jnp.broadcast_to(x[None], (size, *x.shape))
        for x, mapped in zip(operands, is_batched, strict=True)
    ]


def _word(x: Array) -> Array:
    """Returns int64 that are equal where the bits are: a missing value is NaN."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x.astype(jnp.int64)
    return lax.bitcast_convert_type(x.astype(jnp.float64), jnp.int64)


def stored(sure: Bool[Array, ""], *values: Array) -> tuple[Array, ...]:
    """Returns the values, computed once and stored; without it XLA on CPUs repeats the work.

    Args:
        sure: Always true, but not known when the program is compiled: it decides a branch.
        *values: Arrays.
    """

    def branch(sure: Array, *values: Array) -> tuple[Array, ...]:
        # The branches differ, so the compiler keeps both, and it fuses nothing across a branch.
        return lax.cond(sure.reshape(-1)[0], lambda *x: x, _others, *values)

    @custom_vmap
    def kept(sure: Array, *values: Array) -> tuple[Array, ...]:
        return lax.platform_dependent(sure, *values, cpu=branch, default=lambda _, *x: x)

    @kept.def_vmap
    def rule(size: int, is_batched: list[bool], sure: Array, *values: Array) -> tuple[Any, Any]:
        return kept(sure, *values), tuple(is_batched[1:])

    return kept(sure, *values)


def _others(*values: Array) -> tuple[Array, ...]:
    return tuple(~x if x.dtype == bool else x + 1 for x in values)


def varying_like(tree: Any, *others: Any) -> Any:
    """Lets a loop's constant start vary over devices as ``others`` do; `jax.shard_map` insists."""
    never = jnp.bool_(False)
    for x in jax.tree.leaves(others):
        first = x.reshape(-1)[0]
        never = never | ((first == first) & False)
    # A select passes the axes of its condition on, and costs nothing: the compiler removes it.
    return jax.tree.map(lambda x: jnp.where(never, jnp.zeros_like(x), x), tree)
