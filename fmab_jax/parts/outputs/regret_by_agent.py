"""Regret of each agent."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from fmab_jax.parts.outputs.output import Accumulator, Output, Stretch
from fmab_jax.sampling import arrays


def _start(rows: int, arms: int, grid: Array) -> tuple[Array, Array]:
    return jnp.zeros(rows), jnp.zeros((rows, *grid.shape))


def _add(state: tuple[Array, Array], stretch: Stretch, grid: Array) -> tuple[Array, Array]:
    regret, curves = state

    def accumulate_until(until: Array) -> Array:
        # Rounded before the addition, so that fused multiply-adds change no bit.
        slots = (until - stretch.start).astype(jnp.float64)
        return arrays.rounded(stretch.gap[:, None] * slots[None, :])

    line = jnp.where(
        grid[None, :] > stretch.start, regret[:, None] + accumulate_until(grid), curves
    )
    return regret + accumulate_until(stretch.stop[None])[:, 0], line


def _end(state: tuple[Array, Array]) -> Array:
    return state[1]


ACCUMULATOR = Accumulator("regret_by_agent", ("agent", "time"), _start, _add, _end)

REGRET_BY_AGENT = Output(
    "regret_by_agent",
    "cumulative regret of an agent",
    "reward",
    lambda record: record["regret_by_agent"].swapaxes(1, 2),
    ("time", "agent"),
    accumulators=(ACCUMULATOR,),
)
"""The sum over agents is ``regret``, up to rounding."""
