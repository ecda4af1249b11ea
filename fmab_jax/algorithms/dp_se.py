"""DP-SE: private successive elimination by one agent, each epoch with new data and one noise."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.noisy_messages import ForgettingElimination
from fmab_jax.equations import Epoch
from fmab_jax.parts.exchanges import Exchange, alone
from fmab_jax.sampling.shapes import Scalar


@dataclass(frozen=True)
class DPSE(ForgettingElimination):
    """DP-SE: every agent eliminates arms by itself, with epsilon-private actions and no links.

    The optimal single-agent algorithm at the time of the paper, as several public codes have it.
    An epoch uses only its own rewards, so one Laplace variable per arm and epoch is enough.

    Attributes:
        epsilon: Privacy of an agent's actions, for one changed reward; None for no noise.
        failure: Chance beta that a confidence interval may fail; None for 1 / T.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.dp_se(0.5), agents=5):
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "dp_se"
    title = "DP-SE"
    source = "Sajed and Sheffet, ICML 2019, arXiv 1905.09383, as public codes have it"
    communication = "nobody: each agent alone"
    trusted = "nobody: no message is sent"
    disjoint = "epochs are disjoint data, each with one noise on an arm"
    examples = ("--agents 5 --arms 5", "--agents 5 --arms 5 --horizon 1e7 --epsilon 0.25 1")

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of agents that never communicate."""
        return alone(agents)

    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Adds R_e = ceil(max(32 L / D^2, 8 L' / (epsilon D)) + 1), D = 2^-e."""
        width, failure = 0.5**epoch.number, epoch.params["failure"]
        data = 32.0 * jnp.log(8.0 * epoch.active * epoch.number**2 / failure) / width**2
        noise = 8.0 * jnp.log(4.0 * epoch.active * epoch.number**2 / failure)
        return epoch.previous + jnp.ceil(
            jnp.maximum(data, noise / (epoch.params["epsilon"] * width)) + 1.0
        )

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns h + c, the widths for the data and the noise of this epoch."""
        failure = epoch.params["failure"]
        data = jnp.log(8.0 * epoch.active * epoch.number**2 / failure) / (2.0 * epoch.fresh)
        noise = jnp.log(4.0 * epoch.active * epoch.number**2 / failure) / epoch.fresh
        return jnp.sqrt(data) + noise / epoch.params["epsilon"]
