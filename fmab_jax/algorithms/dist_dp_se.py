"""Dist-DP-SE: elimination with a secure sum of all reports and one noise on it."""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from fmab_jax.algorithms.families.noisy_messages import ForgettingElimination
from fmab_jax.algorithms.families.private import list_secure_sum, list_shares
from fmab_jax.equations import Epoch
from fmab_jax.parameters import GROWTH, parameter
from fmab_jax.parts.exchanges import Exchange, View, Viewer, server
from fmab_jax.records.ledger import Disclosure
from fmab_jax.sampling.shapes import Scalar


@dataclass(frozen=True)
class DistDPSE(ForgettingElimination):
    """Dist-DP-SE: batches of base^b pulls; secure aggregation, so the server sees one noisy sum.

    Agents add shares of a discrete Laplace variable, and the server sees only the sum. This code
    draws one Laplace(1/epsilon) variable on each arm's sum over all agents. Agents forget earlier
    batches. Adapted from users that arrive to M agents that stay: base^b pulls by each.

    Attributes:
        epsilon: Privacy of what the server sees, for one changed reward; None for no noise.
        base: Base of the lengths of batches; 2 in the paper, 4 in its code.
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
    communication = "a server hears the sum over all agents after each batch"
    trusted = "secure aggregation: nobody sees one agent's message"
    examples = ("--agents 20", "--epsilon 0.1 0.5 1 --base 4")
    sums_securely = True

    base: float = parameter(GROWTH, "Of the batches' lengths.", default=2.0)

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a server that hears all agents and sees only the sum."""
        return replace(server(agents), views=(View(Viewer.SERVER, agents),))

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers the sum that the server sees, the actions, and agents that know a share."""
        why = "batches are disjoint data, each with one noise on an arm"
        return list_secure_sum(self, exchange, why, self.source)

    def coalition(self, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
        """Returns the epsilon of the remaining noise, even if the server is in the coalition."""
        return list_shares(self, exchange, size)

    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Adds base^b pulls, rounded up."""
        return epoch.previous + jnp.ceil(epoch.params["base"] ** epoch.number)

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns beta_b, of M n_b rewards and of one Laplace variable."""
        union_bound = epoch.active * epoch.number**2 / epoch.params["failure"]
        count, tail = epoch.agents * epoch.fresh, jnp.log(2.0 * union_bound)
        noise = (jnp.sqrt(2.0 * tail) + tail) / epoch.params["epsilon"]
        return jnp.sqrt(jnp.log(4.0 * union_bound) / (2.0 * count)) + noise / count
