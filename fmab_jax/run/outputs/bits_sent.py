"""What is sent, in bits."""

from __future__ import annotations

from fmab_jax.core.outputs import Output
from fmab_jax.run.outputs.usual import NUMBERS

BITS_SENT = Output(
    "bits_sent",
    "bits sent by T",
    "bits",
    lambda record: 1.0 * NUMBERS.of(record) * record.number_bits,
)
"""Numbers that are sent times the bits that the algorithm says a number has
(`Algorithm.number_bits`)."""
