"""Dist-DP-SE: elimination where a secure sum adds one noise to what all agents report."""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from fmab_jax.algorithms.families.elimination import Epoch
from fmab_jax.algorithms.families.messages import ForgettingElimination
from fmab_jax.algorithms.families.private import secure_sum, shares_left
from fmab_jax.core.exchanges import Exchange, View, server
from fmab_jax.core.ledgers import Seen
from fmab_jax.core.shapes import Scalar
from fmab_jax.parameters import GROWTH, parameter


@dataclass(frozen=True)
class DistDPSE(ForgettingElimination):
    """Dist-DP-SE: batches of base^b pulls; secure aggregation, so the server sees one noisy sum.

    Agents add shares of a discrete Laplace variable, and only the sum is seen; that is drawn here
    as one Laplace(1/epsilon) variable on each arm's sum over all agents. Batches that are over are
    forgotten. Adapted from users that arrive to M agents that stay: base^b pulls by each.

    Attributes:
        epsilon: Privacy of what the server sees, for one changed reward; None for no noise.
        base: Of the batches' lengths; 2 in the paper, 4 in its code.
        failure: Chance p that a confidence interval may fail; None for 1 / T, 0.1 in its code.

    Example:
        The server sees one noisy sum. Its epsilon does not grow with the number of agents. An agent
        knows its own share of the noise.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.dist_dp_se(0.5), agents=5):
        ...     print(row.viewer, round(row.epsilon, 3))
        the server 0.5
        an agent 0.842
        an outsider who sees actions 0.5
    """

    name = "dist_dp_se"
    title = "Dist-DP-SE"
    source = "Chowdhury and Zhou, ICLR 2023, arXiv 2206.05772, their code"
    heard = "a server hears the sum over all agents after each batch"
    trusted = "secure aggregation: nobody sees one agent's message"
    examples = ("--agents 20", "--epsilon 0.1 0.5 1 --base 4")
    sums_securely = True

    base: float = parameter(GROWTH, "Of the batches' lengths.", default=2.0)

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of a server that hears everybody, and sees no more than the sum."""
        return replace(server(agents), views=(View("the server", agents),))

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Covers what the server sees, so the actions that it decides, and agents with a share."""
        why = "batches are disjoint data, each with one noise on an arm"
        return secure_sum(self, exchange, why, self.source)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Seen, ...]:
        """Returns what is left of the noise, even where the server is one of them."""
        return shares_left(self, exchange, size)

    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Adds base^b pulls, rounded up."""
        return epoch.previous + jnp.ceil(epoch.params["base"] ** epoch.number)

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns beta_b, of M n_b rewards and of one Laplace variable."""
        inside = epoch.active * epoch.number**2 / epoch.params["failure"]
        count, tail = epoch.agents * epoch.fresh, jnp.log(2.0 * inside)
        noise = (jnp.sqrt(2.0 * tail) + tail) / epoch.params["epsilon"]
        return jnp.sqrt(jnp.log(4.0 * inside) / (2.0 * count)) + noise / count
