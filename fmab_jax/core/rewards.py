"""Temporary: Bernoulli only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fmab_jax.core.samplers import reward_sum


class Law:
    """A reward law."""

    sensitivity: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Bernoulli(Law):
    def describe(self):
        return {"law": "bernoulli"}

    """Bernoulli."""

    def total(self, k0: Any, k1: Any, lane: Any, pulls: Any, mean: Any) -> Any:
        """Sums."""
        return reward_sum(k0, k1, lane, pulls, mean)


def group_sum(*a: Any) -> Any:
    """Sums of groups."""
    raise NotImplementedError


def law_of(value: Any, field: str = "rewards") -> Law:
    return Bernoulli() if isinstance(value, str) else value
