"""Fed1-UCB, an elimination algorithm of its time: equal phases, one server, no privacy."""

import math
from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.elimination import Elimination, is_clearly_behind
from fmab_jax.equations import Epoch
from fmab_jax.parameters import NOT_NEGATIVE, Whole, parameter
from fmab_jax.parts.exchanges import Exchange, server
from fmab_jax.sampling.shapes import Scalar


@dataclass(frozen=True)
class Fed1UCB(Elimination):
    """Fed1-UCB: a server averages all agents' means after phases of equal length.

    Attributes:
        pulls: Pulls of every active arm in a phase, f; None for int(10 log T), the authors' choice.
        constant: Factor in the radius sqrt(constant sigma^2 log T / (M n)); 4 is the authors' code,
            "tuned" from an unknown original.
        sigma: Deviation that the radius assumes of a reward; 1/2 covers rewards in [0, 1].

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.fed1_ucb(pulls=100), problem, horizon=10**4, seeds=20)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
    """

    name = "fed1_ucb"
    title = "Fed1-UCB"
    source = "Shi and Shen, AAAI 2021, arXiv 2101.12204, and their code"
    communication = "a server hears all agents after each phase"
    trusted = "the server, with means"
    examples = ("--agents 10 --arms 10", "--pulls 50 200")
    elementwise = True
    eliminates = staticmethod(is_clearly_behind)

    pulls: int | None = parameter(
        Whole(none_label="10 log T pulls", low=1, high=10**12),
        "Pulls of every active arm in a phase.",
        default=None,
        default_text="int(10 log T)",
    )
    constant: float = parameter(NOT_NEGATIVE, "Of the radius.", default=4.0)
    sigma: float = parameter(NOT_NEGATIVE, "Deviation of a reward, assumed.", default=0.5)

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of a server that hears all agents."""
        return server(agents)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds the authors' phase length as the default."""
        return {"pulls": max(1.0, 10 * math.log(horizon) // 1)} | super().values(exchange, horizon)

    @staticmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Returns F(p), the pulls of an active arm by the end of phase p."""
        return epoch.previous + epoch.params["pulls"]

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns B_p = sqrt(constant sigma^2 log T / (M F(p))), as in the authors' code.

        M stands for the agents whose messages arrive.
        """
        rewards = epoch.reporting * epoch.pulls
        variance = epoch.params["constant"] * jnp.log(epoch.horizon) / rewards
        return epoch.params["sigma"] * jnp.sqrt(variance)
