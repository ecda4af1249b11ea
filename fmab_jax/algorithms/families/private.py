"""The parameter epsilon of private algorithms, and lines of their ledgers."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.core import laplace
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.ledgers import ACTIONS, OUTSIDE, OWN, SERVER, SHARER, Seen, together
from fmab_jax.errors import refuse
from fmab_jax.parameters import UNSET, Flag, Real, parameter

MAX_EPSILON = 1e100
"""Largest epsilon: a multiple of it must be a number as well."""


def epsilon_parameter(default: Any, **more: Any) -> Any:
    """Returns the parameter epsilon."""
    return parameter(
        Real(none_label="no noise", low=0.0, high=MAX_EPSILON, open_low=True),
        "Privacy parameter > 0, or none for no noise.",
        default=default,
        keyword=False,
        remedy="give a privacy parameter, or None for no noise",
        symbol="ε",
        label="privacy parameter ε",
        **more,
    )


def secure_parameter(words: str) -> Any:
    """Returns the parameter that says whether a secure sum hides single messages."""
    label = "over a secure sum"
    return parameter(Flag(), words, default=False, symbol="secure sum", label=label)


def failure_parameter(words: str) -> Any:
    """Returns the parameter of a chance of failure, by default 1 / T."""
    kind = Real(none_label="1 / T", low=0.0, high=1.0, open_low=True)
    return parameter(kind, words, default=None, default_text="1 / T")


@dataclass(frozen=True)
class Private(Algorithm):
    """An algorithm with a privacy parameter that must be given; derive from it first.

    Attributes:
        disjoint: Why epsilon covers all that an agent does: each reward enters one noisy release.
        epsilon: Privacy parameter > 0; None (or infinity) for no noise.
    """

    disjoint: ClassVar[str] = ""

    epsilon: Any = epsilon_parameter(UNSET, suggested=1)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds epsilon, infinite for no noise."""
        return super().values(exchange, horizon) | {"epsilon": self.noise_level}

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns epsilon, which also bounds what all messages and actions of an agent leak."""
        return {"epsilon": self.noise_level, "epsilon_message": self.noise_level}

    def ledger(self, exchange: Exchange) -> tuple[Seen, ...]:
        """Covers actions where `disjoint` says why; else nothing."""
        if not self.disjoint:
            return super().ledger(exchange)
        return (self.seen(self.disjoint, over=1, source=self.source),)

    def seen(self, why: str, who: str = ACTIONS, what: str = "actions", **more: Any) -> Seen:
        """Returns a line of the ledger that epsilon covers.

        Args:
            why: Why it does.
            who: Sees it.
            what: Is seen.
            **more: Of a `Seen`: ``over`` and ``law``, where noises of one law alone hide a reward;
                ``source``, which is none unless it is given: it has to state this very thing.
        """
        why = why if math.isfinite(self.noise_level) else "no noise"
        return Seen(who, what, self.noise_level, why, **more)

    @property
    def noise_level(self) -> float:
        """Epsilon as a number; infinity for no noise."""
        return math.inf if self.epsilon is None else float(self.epsilon)


def check_unit_rewards(law: Any, epsilon: float) -> None:
    """Refuses a finite epsilon for rewards that may lie outside [0, 1].

    Raises:
        ValueError: Naming the law of the rewards.
    """
    if math.isfinite(epsilon) and not (law.low >= 0.0 and law.high <= 1.0):
        remedy = "clip and scale the rewards (Problem.ratings), or pass epsilon=None"
        allowed = f"None with {law.name} rewards: noise is for [0, 1]"
        refuse("epsilon", epsilon, allowed, remedy)


def secure_sum(
    algorithm: Private, exchange: Exchange, why: str, source: str = ""
) -> tuple[Seen, ...]:
    """Returns the ledger of sums over all agents with one noise, of which each agent has a share.

    Args:
        algorithm: Whose epsilon covers the sums.
        exchange: Over whom.
        why: The sums of a whole run are covered.
        source: Where that is shown.
    """
    sums = algorithm.seen(why, SERVER, f"sums over {exchange.agents} agents", over=1, source=source)
    left = shares_left(algorithm, exchange, 1) if exchange.agents > 1 else ()
    one = (row._replace(who=SHARER, what="actions") for row in left)
    return (sums, *one, algorithm.seen("a function of what the server sees", OUTSIDE, over=1))


def shares_left(algorithm: Private, exchange: Exchange, size: int) -> tuple[Seen, ...]:
    """Returns what so many agents learn, who take their shares out of the noise of `secure_sum`."""
    level, agents, left = algorithm.noise_level, exchange.agents, exchange.agents - size
    epsilon = laplace.share_epsilon(level, left, agents)
    who, what = together(size), f"sums over {agents} agents, less their own shares of the noise"
    if math.isinf(level):
        return (Seen(who, what, epsilon, "no noise", source=OWN),)
    effect = "hide a reward" if math.isfinite(epsilon) else "bound no ratio"
    why = f"{left:,} of {agents:,} shares of the noise {effect}"
    return (Seen(who, what, epsilon, why, source=OWN, shares=(level, left, agents)),)
