"""Uniform play: the yardstick of an algorithm that learns nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Int

from fmab_jax.algorithms.base import ACTIONS, Seen
from fmab_jax.algorithms.families.index import IndexPolicy, Own, Slot, Tally, first_best
from fmab_jax.core.exchanges import Exchange


@dataclass(frozen=True)
class UniformPlay(IndexPolicy):
    """Every agent pulls an arm drawn uniformly in every slot; nobody learns, nothing leaks.

    Example:
        Regret grows by the mean gap of all arms, times 5 agents, in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem([0.9, 0.5], agents=5)
        >>> data = fmab.simulate(fmab.uniform_play(), problem, horizon=10**4, seeds=20)
        >>> round(float(data.regret[:, -1].mean()) / (5 * 10**4), 2)  # (0 + 0.4) / 2
        0.2
    """

    name: ClassVar[str] = "uniform_play"
    title: ClassVar[str] = "Uniform play"
    source: ClassVar[str] = "none needed"
    heard: ClassVar[str] = "nobody"
    trusted: ClassVar[str] = "nobody: actions do not depend on rewards"

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Tells nothing of rewards."""
        return (Seen(ACTIONS, "actions", 0.0, "actions do not depend on rewards"),)

    @staticmethod
    def choose(state: Tally, slot: Slot, own: Own) -> Int[Array, " row"]:
        """Returns a uniformly drawn arm for each row."""
        rows, arms = state.pulls.shape
        return jnp.minimum((slot.uniform(rows)[:, 0] * arms).astype(jnp.int32), arms - 1)

    @staticmethod
    def commit(state: Tally) -> Int[Array, " row"]:
        """Returns the arm of largest mean: what would be played if learning mattered."""
        return first_best(state.sums / jnp.maximum(state.pulls, 1.0))
