"""Pulls of each arm."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from fmab_jax.parts.outputs.accumulators import Accumulator, Stretch
from fmab_jax.parts.outputs.output import Output
from fmab_jax.sampling import arrays


def _start(rows: int, arms: int, grid: Array) -> Array:
    return jnp.zeros(arms)


def _add(total: Array, stretch: Stretch, grid: Array) -> Array:
    slots = (stretch.stop - stretch.start).astype(jnp.float64)
    # Row by row, because matrix products may have fewer digits.
    pulls = jnp.sum(stretch.agents[:, None] * stretch.share, axis=0)
    # Rounded before the addition, so that fused multiply-adds change no bit.
    return total + arrays.rounded(slots * pulls)


ACCUMULATOR = Accumulator("pulls", ("arm",), _start, _add)

PULLS = Output(
    "pulls",
    "pulls of an arm by T",
    "pulls",
    lambda record: record["pulls"],
    ("arm",),
    accumulators=(ACCUMULATOR,),
)
"""Pulls of all agents. They are whole numbers up to rounding, except where the horizon cuts an
epoch or agents split the arms: then the active arms get equal parts."""
