"""Long tables, of which each element reads one number or row at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Int

from fmab_jax.sampling.shapes import Truths


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
