"""Loops that end early, branches of a whole batch, and work that XLA must not repeat.

On a CPU every element costs, so loops end as early as possible. An accelerator pays for each kernel
launch, and for a round trip to the host at each test of a loop's condition, so loops are unrolled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array

from fmab_jax.sampling.backend import is_accelerated, platform
from fmab_jax.sampling.shapes import Integer, Truths

# Steps per pass of a loop: more run faster on a GPU, fewer compile faster. A TPU expands each step
# into many.
_STEPS = {"cpu": 8, "gpu": 25, "tpu": 2}
# Loops of at most so many steps are unrolled.
_LINE = {"cpu": 0, "gpu": 64, "tpu": 0}
T = TypeVar("T")
Pair = tuple[Array, Array]
Test = Callable[..., Array]


def repeat_steps(step: Callable[..., Pair], state: Pair, is_unfinished: Test, most: int) -> Pair:
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
