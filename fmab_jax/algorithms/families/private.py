"""What private algorithms share: the parameter epsilon, and what is told of it."""

from __future__ import annotations

import math
from typing import Any

from fmab_jax.parameters import Real, parameter

MAX_EPSILON = 1e100
"""Largest epsilon: a multiple of it must be a number as well."""


def epsilon_parameter() -> Any:
    """Declares the parameter epsilon; None stands for no noise."""
    return parameter(
        Real(none="no noise", low=0.0, high=MAX_EPSILON, open_low=True),
        "Privacy parameter > 0, or none for no noise.",
        keyword=False,
        remedy="give a privacy parameter, or None for no noise",
        symbol="ε",
        label="privacy parameter ε",
        suggested=1,
    )


def infinite(epsilon: float | None) -> float:
    """Returns epsilon as a number; infinity for no noise."""
    return math.inf if epsilon is None else float(epsilon)


def told(epsilon: float | None, message: float | None) -> dict[str, float]:
    """Returns what `Algorithm.privacy` tells: epsilon, and what one message leaks."""
    return {"epsilon": infinite(epsilon), "epsilon_message": infinite(message)}
