"""Thompson sampling with normal posteriors: alone, or pooled through a server in every slot."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.base import noiseless_ledger
from fmab_jax.algorithms.families.slots import Params, Slot, Tally, first_best
from fmab_jax.algorithms.families.talking import Pooled, pooled_parameter
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.records.ledger import Disclosure
from fmab_jax.sampling import normal
from fmab_jax.sampling.shapes import ArmPerRow


@dataclass(frozen=True)
class Thompson(Pooled):
    """Thompson sampling: the largest of draws from N(s / (n + 1), 1 / (n + 1)), for any rewards.

    Alone, s and n are the agent's own sum and pulls. Pooled, a server hears every reward: s and n
    are those of all agents, who pull the arm of its one draw, and a slot costs M links.

    Attributes:
        pooled: Whether a server pools all rewards in every slot.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.thompson(pooled=True), problem, horizon=10**4, seeds=20)
        >>> bool(data.regret[:, -1].mean() < 1000)
        True
    """

    name = "thompson"
    title = "Thompson sampling"
    source = "Agrawal and Goyal, AISTATS 2013, arXiv 1209.3353, algorithm 2"

    pooled: bool = pooled_parameter()

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """States the privacy of the draws: a reward moves their mean by 1 / (n + 1).

        That is 1 / sqrt(n + 1) standard deviations, n >= 1, in each later slot: Gaussian
        differential privacy with mu^2 <= T / 2 for rewards in [0, 1], arms as they were.
        """
        source = "Ou, Avella Medina and Cummings, 2024, arXiv 2407.14879"
        *messages, actions = noiseless_ledger(self, exchange)
        why = "its own draws are μ-GDP, μ² = T / 2, for rewards in [0, 1]: no ε for all horizons"
        return (*messages, actions._replace(why=why, source=source))

    @staticmethod
    def choose(state: Tally, slot: Slot, params: Params) -> ArmPerRow:
        """Returns the arm of the largest draw."""
        count = state.pulls + 1.0
        normals = normal.quantile(slot.uniform(*count.shape))
        return first_best(state.sums / count + normals / jnp.sqrt(count))
