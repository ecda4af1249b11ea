"""UCB1, the classical index policy: alone, or pooled through a server in every slot."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.slots import Params, Slot, Tally, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Pooled, pooled_parameter
from fmab_jax.parameters import NOT_NEGATIVE, parameter
from fmab_jax.sampling.shapes import ArmPerRow


@dataclass(frozen=True)
class UCB1(Pooled):
    """UCB1: every arm once, then the largest mean + sqrt(alpha log t / n), without privacy.

    Alone, n are the agent's own pulls, and t is the slot: it counts from 1 and includes the one to
    be played. Pooled, a server hears every reward and all agents pull the arm of its index: n
    counts the pulls of all, t becomes the M t pulls of all, and a slot costs M links. That is the
    usual federated reading of a UCB; M pulls follow one index.

    Attributes:
        alpha: Factor of the confidence width; 2 is the source's value.
        pooled: Whether a server pools all rewards in every slot.

    Example:
        Pooled, every slot costs a link of each agent:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.ucb1(pooled=True), problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="server")[:, -1].mean().item()
        50000.0
    """

    name = "ucb1"
    title = "UCB1"
    source = "Auer, Cesa-Bianchi and Fischer, Machine Learning 2002"

    alpha: float = parameter(NOT_NEGATIVE, "Of the confidence width.", default=2.0)
    pooled: bool = pooled_parameter()

    @staticmethod
    def choose(state: Tally, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax mean + sqrt(alpha log t / n)."""
        width = params["alpha"] * jnp.log(slot.sharing * slot.time)
        return first_best(upper_bound(state.pulls, state.sums, width))
