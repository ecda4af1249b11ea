"""The parameter epsilon of private algorithms, and rows of their ledgers."""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import format_quantity, refuse
from fmab_jax.parameters import UNSET, Flag, Real, Unset, ViewKind, parameter
from fmab_jax.parts.exchanges import Exchange, Viewer
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.per_agent import AgentNumbers
from fmab_jax.parts.rewards import Law
from fmab_jax.records.ledger import COMPUTED_HERE, Disclosure, HidingLaw, Noise
from fmab_jax.sampling import laplace

T = TypeVar("T")

MAX_EPSILON = 1e100
"""Largest epsilon, so that its multiples are finite."""


def epsilon_parameter(
    default: T, suggested: float | Unset = UNSET, kind: type[Real] = Real, words: str = ""
) -> T | float | None:
    """Returns the parameter epsilon."""
    return parameter(
        kind(none_label="no noise", low=0.0, high=MAX_EPSILON, open_low=True),
        f"Privacy parameter > 0, or none for no noise{words}.",
        default=default,
        keyword=False,
        remedy="give a privacy parameter, or None for no noise",
        symbol="ε",
        label="privacy parameter ε",
        suggested=suggested,
    )


def secure_parameter(words: str) -> bool:
    """Returns the parameter of a secure sum, which hides single messages."""
    label = "over a secure sum"
    return parameter(Flag(), words, default=False, symbol="secure sum", label=label)


def failure_parameter(words: str) -> float | None:
    """Returns the parameter of a failure probability, by default 1 / T."""
    kind = Real(none_label="1 / T", low=0.0, high=1.0, open_low=True)
    return parameter(kind, words, default=None, default_text="1 / T")


@dataclass(frozen=True)
class Private(Algorithm):
    """An algorithm with a required privacy parameter; must be the first base class.

    Attributes:
        disjoint: Reason that epsilon covers all actions: each reward enters one noisy release.
        epsilon: Privacy parameter > 0; None (or infinity) for no noise.
    """

    disjoint: ClassVar[str] = ""

    epsilon: Unset | float | AgentNumbers | None = epsilon_parameter(UNSET, suggested=1)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds epsilon, infinite for no noise."""
        return super().values(exchange, horizon) | {"epsilon": self.noise_level}

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns epsilon, which also bounds the leak of all messages and actions of an agent."""
        return {"epsilon": self.noise_level, "epsilon_message": self.noise_level}

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Covers actions if `disjoint` states a reason; else nothing."""
        if not self.disjoint:
            return super().ledger(exchange)
        return (self.make_row(self.disjoint, noises=1, source=self.source),)

    def make_row(
        self,
        reason: str,
        viewer: Viewer = Viewer.WATCHERS,
        view: ViewKind = ViewKind.ACTIONS,
        *,
        noises: int = 0,
        law: HidingLaw = LAPLACE,
        source: str = "",
        observation: str = "",
    ) -> Disclosure:
        """Returns a row of the ledger that epsilon covers.

        Args:
            reason: Why epsilon covers it.
            viewer: Who sees it.
            view: What kind of thing is seen.
            noises: How many noises of one law hide a reward; 0 if others do.
            law: The law of each, at scale 1 / epsilon.
            source: As in `Disclosure`; empty unless the source states exactly this.
            observation: As in `Disclosure`.
        """
        level = self.noise_level
        if math.isinf(level):
            return Disclosure(viewer, view, level, "no noise", (), source, observation)
        hiding = (Noise(law, 1.0 / level, noises),) if noises else ()
        return Disclosure(viewer, view, level, reason, hiding, source, observation)

    @property
    def noise_level(self) -> float:
        """Epsilon as a number, the largest of any agent; infinity for no noise."""
        assert not isinstance(self.epsilon, Unset)
        if isinstance(self.epsilon, tuple):
            return float(max(self.epsilon))
        return math.inf if self.epsilon is None else float(self.epsilon)


def check_unit_rewards(law: Law, epsilon: float) -> None:
    """Refuses a finite epsilon for rewards that may lie outside [0, 1].

    Raises:
        ValueError: Names the law of the rewards.
    """
    if math.isfinite(epsilon) and not (law.low >= 0.0 and law.high <= 1.0):
        remedy = "clip and scale the rewards (Problem.ratings), or pass epsilon=None"
        allowed = f"None with {law.name} rewards: noise is for [0, 1]"
        refuse("epsilon", epsilon, allowed, remedy)


def list_secure_sum(
    algorithm: Private, exchange: Exchange, reason: str, source: str = ""
) -> tuple[Disclosure, ...]:
    """Returns the ledger of sums over all agents with one noise, made of one share per agent.

    Args:
        algorithm: The algorithm, for its epsilon.
        exchange: The exchange of all agents.
        reason: Why epsilon covers the sums of a whole run.
        source: Publication that proves it.
    """
    content = f"sums over {format_quantity(exchange.agents, 'agent')}"
    sums = algorithm.make_row(
        reason, Viewer.SERVER, ViewKind.SUM, noises=1, source=source, observation=content
    )
    shares = list_shares(algorithm, exchange, 1) if exchange.agents > 1 else ()
    sharers = [
        row._replace(viewer=Viewer.SHARER, view=ViewKind.ACTIONS, observation="", members=0)
        for row in shares
    ]
    why = "a function of what the server sees"
    return (sums, *sharers, algorithm.make_row(why, Viewer.OUTSIDER, noises=1))


def list_shares(algorithm: Private, exchange: Exchange, size: int) -> tuple[Disclosure, ...]:
    """Returns the ledger row of a coalition that subtracts its shares of a secure sum's noise."""
    level, agents, left = algorithm.noise_level, exchange.agents, exchange.agents - size
    epsilon = laplace.share_epsilon(level, left, agents)
    row = Disclosure(
        Viewer.COALITION,
        ViewKind.SUM,
        epsilon,
        "no noise",
        source=COMPUTED_HERE,
        observation=f"sums over {agents} agents, less their own shares of the noise",
        members=size,
    )
    if math.isinf(level):
        return (row,)
    effect = "hide a reward" if math.isfinite(epsilon) else "bound no ratio"
    # A bounded ratio has another law than whole noises: no smaller epsilon is known up to delta.
    shares = (Noise(LAPLACE, 1.0 / level, shares=(left, agents)),) * math.isinf(epsilon)
    return (
        row._replace(why=f"{left:,} of {agents:,} shares of the noise {effect}", noises=shares),
    )
