"""Uniform play: a baseline that learns nothing."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.slots import Params, Slot, Tally, first_best
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Exchange, Viewer
from fmab_jax.records.ledger import Disclosure
from fmab_jax.sampling.shapes import ArmPerRow


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

    name = "uniform_play"
    title = "Uniform play"
    source = "none needed"
    communication = "nobody"
    trusted = "nobody: actions do not depend on rewards"

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns one row of epsilon 0."""
        why = "actions do not depend on rewards"
        return (Disclosure(Viewer.WATCHERS, ViewKind.ACTIONS, 0.0, why),)

    @staticmethod
    def choose(state: Tally, slot: Slot, params: Params) -> ArmPerRow:
        """Returns a uniformly drawn arm for each row."""
        rows, arms = state.pulls.shape
        return jnp.minimum((slot.uniform(rows)[:, 0] * arms).astype(jnp.int32), arms - 1)

    @staticmethod
    def commit(state: Tally) -> ArmPerRow:
        """Returns the arm of the largest mean, which a learner would play."""
        return first_best(state.sums / jnp.maximum(state.pulls, 1.0))
