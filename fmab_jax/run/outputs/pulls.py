"""How often each arm is pulled."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from fmab_jax.core import arrays
from fmab_jax.core.outputs import Accumulator, Output, Stretch


def _start(rows: int, arms: int, grid: Array) -> Array:
    return jnp.zeros(arms)


def _add(found: Array, stretch: Stretch, grid: Array) -> Array:
    slots = (stretch.stop - stretch.start).astype(jnp.float64)
    # Row by row: a product of matrices may be rounded to fewer digits.
    each = jnp.sum(stretch.agents[:, None] * stretch.share, axis=0)
    # Rounded before it is added, in whatever way a program is compiled.
    return found + arrays.rounded(slots * each)


ACCUMULATOR = Accumulator("pulls", ("arm",), _start, _add)

PULLS = Output(
    "pulls",
    "pulls of an arm by T",
    "pulls",
    lambda record: record["pulls"],
    ("arm",),
    accumulators=(ACCUMULATOR,),
)
"""Of all agents together; whole up to rounding, but where the horizon cuts an epoch or agents share
the arms out: then pulls are shared out equally over the active arms."""
