"""Bits of all messages."""

from __future__ import annotations

from fmab_jax.parts.outputs.output import Output
from fmab_jax.parts.outputs.standard import NUMBERS

BITS_SENT = Output(
    "bits_sent",
    "bits sent by T",
    "bits",
    lambda record: 1.0 * NUMBERS.of(record) * record.number_bits,
)
"""Numbers in messages, times the bits of a number (`Algorithm.number_bits`)."""
