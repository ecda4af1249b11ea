"""Moments of curves that lie on a device, with the bytes of `summary.compute_moments`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from fmab_jax.analysis.summary import ROWS, Moments, multiply_exactly
from fmab_jax.sampling.scope import package_settings


def compute_moments(curves: Array, *, full: bool = True) -> list[Moments]:
    """Returns the moments of ``curves`` [cell, seed, time] that lie on one device.

    The bytes are those of `summary.compute_moments`: rows are added one after the other, or
    exactly. At least two recorded slots.
    """
    cells, seeds, times = curves.shape
    # XLA would multiply by one over a divisor that is the same for several.
    divisor = np.full((cells, times), float(seeds))
    with package_settings():
        parts = jax.tree.map(np.asarray, _compute_all_moments(curves, divisor, full))
    return [Moments(seeds, *part) for part in zip(*parts, strict=True)]


@partial(jax.jit, static_argnums=2)
def _compute_all_moments(curves: Array, divisor: Array, full: bool) -> tuple[Array, Array, Array]:
    curves = curves.astype(jnp.float64)
    return jax.vmap(partial(_compute_cell_moments, full=full))(curves, divisor)


def _compute_cell_moments(
    curves: Float[Array, "seed time"], divisor: Float[Array, " time"], *, full: bool
) -> tuple[Array, Array, Array]:
    seeds, times = curves.shape
    anchor = curves[0]
    blocks = -(-seeds // ROWS)
    is_seed = (np.arange(blocks * ROWS) < seeds).reshape(blocks, ROWS, 1)
    padded = jnp.pad(curves, ((0, blocks * ROWS - seeds), (0, 0))).reshape(blocks, ROWS, times)

    def add_in_order(rows: Array) -> Array:
        """Adds up [row, ...], the first rows first."""
        return lax.fori_loop(1, len(rows), lambda i, total: total + rows[i], rows[0])

    deviation = jnp.where(is_seed, padded - anchor[None, None], 0.0)
    offset = add_in_order(add_in_order(deviation.swapaxes(0, 1))) / divisor
    deviation = jnp.where(is_seed, deviation - offset[None, None], 0.0)
    if not full:
        return anchor, offset, add_in_order(add_in_order(jnp.square(deviation).swapaxes(0, 1)))

    def square(parts: Array) -> Array:
        return jnp.matmul(parts.T, parts, precision=lax.Precision.HIGHEST)

    def add_products(total: Array, block: Array) -> tuple[Array, None]:
        return total + multiply_exactly(block, square, jnp), None

    return anchor, offset, lax.scan(add_products, jnp.zeros((times, times)), deviation)[0]
