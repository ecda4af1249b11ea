"""KL-SE: elimination by likelihood, from messages each of which hides every reward by epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from fmab_jax.algorithms.base import OUTSIDE, SERVER, Seen
from fmab_jax.algorithms.families.elimination import Elimination, Epoch, Heard, Scalar
from fmab_jax.algorithms.families.private import Private
from fmab_jax.core import exchanges
from fmab_jax.core.evidence import evidence, evidence_needed
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.parameters import Flag, Real, Whole, parameter


@dataclass(frozen=True)
class KLSE(Private, Elimination):
    """KL-SE: arms leave by a likelihood ratio of pairs; a whole run leaks epsilon.

    Every epoch each agent pulls each arm in play equally often, and sends the sum of this epoch's
    rewards with Laplace(1/epsilon) noise: a reward is in exactly one message. The server adds up
    all that it has heard. An arm leaves when the evidence that it is worse than the leading one
    (`fmab_jax.core.evidence`) is what an error of probability ``failure`` asks for.

    Attributes:
        epsilon: Privacy of a whole run to whoever reads messages, for one changed reward.
        growth: By which factor the pulls of an arm grow each epoch.
        first: Pulls of an arm by each agent in the first epoch; None for as many as noise alone
            needs to tell a gap of one half.
        secure: Whether a secure sum hides single messages, and adds one noise to all of them.
        participation: Share p of agents that report in a round, in (0, 1].
        rounds: Round budget R, after which the best arm is played; None for none.
        failure: Probability that the best arm is lost; None for 1 / T.
    """

    name: ClassVar[str] = "kl_se"
    title: ClassVar[str] = "KL-SE"
    source: ClassVar[str] = ""
    heard: ClassVar[str] = "a server hears ceil(pM) agents a round"
    trusted: ClassVar[str] = "nobody, up to the ε of a message"
    examples: ClassVar[tuple[str, ...]] = (
        "--epsilon 0.1 1 10 --out kl",
        "--epsilon 1 --growth 2 3 5 --secure",
    )
    noisy: ClassVar[bool] = True

    growth: float = parameter(
        Real(low=1.0, high=1000.0, open_low=True),
        "Factor by which the pulls of an arm grow each epoch.",
        default=2.0,
    )
    first: int | None = parameter(
        Whole(none="as long as noise asks for", low=1, high=10**9),
        "Pulls of an arm by each agent in the first epoch; of all together where they split.",
        default=None,
        shown="as noise asks for",
    )
    secure: bool = parameter(
        Flag(), "A secure sum hides single messages, with one noise on all.", default=False
    )
    participation: float = parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "p, share of the agents that report in a round.",
        default=1.0,
        remedy="give the share of agents that report in a round, such as 0.4",
        symbol="p",
        label="participation p",
    )
    rounds: int | None = parameter(
        Whole(none="no round budget", low=1, high=10**5),
        "Round budget R, or none.",
        default=None,
        symbol="R",
        label="round budget R",
        shown="none",
    )
    failure: float | None = parameter(
        Real(none="1 / T", low=0.0, high=1.0, open_low=True),
        "Chance that the best arm is lost.",
        default=None,
        shown="1 / T",
    )

    split: bool = parameter(
        Flag(), "Agents, which must be alike, share the arms out.", default=False
    )

    @property
    def shares_arms(self) -> bool:
        return self.split

    @property
    def sums_securely(self) -> bool:  # type: ignore[override]
        return self.secure

    def exchange(self, agents: int) -> Exchange:
        """Returns the server's table."""
        table = exchanges.server(agents, self.participation)
        # A cut of the line of all pulls makes one number more.
        return replace(table, vectors=1, numbers=agents - 1) if self.split else table

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns what the equations find."""
        first = math.nan if self.first is None else float(self.first)
        return {
            "epsilon": self.noise_level,
            "growth": self.growth,
            "first": first,
            "noises": 1.0 if self.secure or self.split else float(exchange.reporting),
            "heard": 1.0 if self.split else float(exchange.reporting),
            "rounds": math.inf if self.rounds is None else float(self.rounds),
            "failure": 1.0 / horizon if self.failure is None else self.failure,
        }

    @staticmethod
    def budget(own: dict[str, Scalar]) -> Scalar:
        """Returns R."""
        return own["rounds"]

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns b_r, the evidence that is needed: (1 + b) e^-b = failure / (K r (r + 1))."""
        tries = epoch.arms * epoch.number * (epoch.number + 1.0)
        return evidence_needed(epoch.own["failure"] / tries)

    @classmethod
    def pulls_per_arm(cls, epoch: Epoch) -> Scalar:
        own = epoch.own
        needed = cls.radius(epoch._replace(number=jnp.ones_like(epoch.number)))
        asked = jnp.sqrt(32.0 * needed * own["noises"]) / (own["epsilon"] * own["heard"])
        first = jnp.where(jnp.isnan(own["first"]), jnp.maximum(jnp.ceil(asked), 1.0), own["first"])
        return jnp.where(epoch.number == 1.0, first, jnp.ceil(own["growth"] * epoch.previous))

    @classmethod
    def worse(cls, heard: Heard, epoch: Epoch) -> Bool[Array, " arm"]:
        known = (heard.rewards, heard.noises, heard.best_noises, epoch.own["epsilon"])
        told = evidence(heard.aggregate, heard.best, *known)
        return (heard.aggregate < heard.best) & (told >= heard.radius)

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 1 / epsilon."""
        return 1.0 / epoch.own["epsilon"]
