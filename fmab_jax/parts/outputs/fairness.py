"""Fairness of regret over agents."""

from __future__ import annotations

import numpy as np

from fmab_jax.parts.outputs.output import Output, Record
from fmab_jax.parts.outputs.regret_by_agent import ACCUMULATOR


def _jain(record: Record) -> np.ndarray:
    """Returns (sum x)^2 / (M sum x^2) over agents; 1 if no agent has regret."""
    regret = record["regret_by_agent"][..., -1]
    # Relative to the largest, so that squares cannot overflow.
    largest = regret.max(1, keepdims=True)
    x = np.divide(regret, largest, out=np.ones_like(regret), where=largest != 0)
    return np.square(x.sum(1)) / (record.agents * np.square(x).sum(1))


FAIRNESS = Output(
    "fairness",
    "Jain's index of the agents' regret at T",
    "1",
    _jain,
    accumulators=(ACCUMULATOR,),
    source="Jain, Chiu and Hawe, DEC TR-301, 1984",
)
"""1 if all agents have the same regret, 1 / M if one has it all."""
