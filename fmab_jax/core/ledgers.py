"""Rows of a privacy ledger: what each viewer learns about a reward, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import NamedTuple

from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.shapes import Record
from fmab_jax.errors import choice, count, real, refuse

ACTIONS = "anybody who sees actions"
"""A viewer of the arms that agents pull."""

OUTSIDE = "an outsider who sees actions"
"""A viewer of actions without a share in the noise that hides them."""

SHARER = "an agent"
"""An agent that knows its share of a secure sum's noise, and sees the resulting actions."""

SERVER = "the server"
"""The server, which is not an agent."""

ANY_VIEWER = ("anybody", "anybody who gets messages")
"""Names for every viewer of an exchange."""

UNSTATED = "privacy not stated"
"""Text for an algorithm without a statement of privacy."""

COMPUTED_HERE = "own computation"
"""Source of a row that no paper states."""

# Files of version 0.2 and older have these keys.
_OLD_KEYS = {"who": "viewer", "what": "observation"}

LAWS = LAPLACE, BITS = "Laplace", "bits"
"""Laws of noises that add up: Laplace variables; or bits, each 1 with chance 1 / (1 + e^-epsilon)
where a reward is 1 and with 1 / (1 + e^epsilon) where it is 0, and mixed in between."""


class Disclosure(NamedTuple):
    """A row of a privacy ledger: a view, and its leak about one reward of one agent.

    Attributes:
        viewer: The viewer, such as "the server".
        observation: What the viewer sees, such as "single messages", over the whole run unless it
            says otherwise.
        epsilon: Epsilon of pure differential privacy for one changed reward; infinite: no bound.
        why: Why the bound holds, or why there is none.
        over: Number of independent noises of ``law`` in the sum that hides the reward; with them a
            smaller epsilon holds up to delta. 0, the default, if unknown.
        source: Theorem or section that states the bound; `COMPUTED_HERE` if no paper does; "" for
            none.
        law: `LAPLACE`, of scale (range of a reward) / epsilon each; `BITS`; or the text of another
            mechanism, such as "gaussian", whose ``scale`` is given.
        shares: Epsilon of one Laplace variable, the number of its equal shares that hide the
            reward, and the number of all its shares; None if unknown.
        scale: Of each noise of a mechanism, relative to the range of a reward; None for
            Laplace noise and bits.
    """

    viewer: str
    observation: str
    epsilon: float
    why: str
    over: int = 0
    source: str = ""
    law: str = LAPLACE
    shares: tuple[float, int, int] | None = None
    scale: float | None = None


def together(size: int) -> str:
    """Names a coalition of agents."""
    return f"{size:,} agent{'s' * (size > 1)} together"


def checked_rows(field: str, ledger: object) -> tuple[Disclosure, ...]:
    """Returns the ledger of an algorithm as rows; refuses anything else.

    Args:
        field: Name of the ledger, such as "Mine.ledger".
        ledger: One row, or several.

    Raises:
        Refusal: If it is not a ledger, or is empty.
    """
    if isinstance(ledger, Disclosure) or not isinstance(ledger, Iterable):
        ledger = (ledger,)
    rows = tuple(ledger)
    if not rows or not all(isinstance(row, Disclosure) for row in rows):
        remedy = "return what each of them sees; somebody always sees actions"
        refuse(field, ledger, "one Disclosure, or several", remedy)
    return tuple(_checked(f"{field}[{place}]", row) for place, row in enumerate(rows))


def _checked(field: str, row: Disclosure) -> Disclosure:
    """Returns a row with plain numbers; refuses one that cannot be shown."""
    if not all(
        isinstance(text, str) for text in (row.viewer, row.observation, row.why, row.source)
    ):
        refuse(
            field,
            row,
            "a Disclosure whose viewer, observation, why and source are texts",
            "say it in words",
        )
    if row.scale is None:
        choice(f"{field}.law", row.law, LAWS, "leave it out for Laplace noise")
    remedy = "state the epsilon of one reward; math.inf is no bound"
    epsilon = real(f"{field}.epsilon", row.epsilon, 0.0, math.inf, remedy)
    over = count(f"{field}.over", row.over, 0, 10**12, "leave it out where no noises add up")
    shares = row.shares or (epsilon, 1, 1)
    if len(shares) != 3 or not 1 <= shares[1] <= shares[2]:
        allowed = "(epsilon of one noise, how many of its equal shares hide a reward, of how many)"
        refuse(f"{field}.shares", shares, allowed, "leave it out where no share hides anything")
    return row._replace(epsilon=epsilon, over=over)


def adapt_to_absence(row: Disclosure, sums_securely: bool) -> Disclosure:
    """Returns the row of an algorithm whose rounds may miss agents.

    Nobody knows how many agents a sum is over, so only the noise of the agent itself is sure.
    """
    if sums_securely and row.observation.startswith("sums over"):
        return row._replace(why=f"{row.why}; a sum with a missing share does not open")
    if row.over < 2:
        return row
    reason = "agents may be absent: only its own noise surely hides a reward"
    return row._replace(over=1, why=reason, shares=None)


def list_viewers(exchange: Exchange) -> list[str]:
    """Returns the viewers of messages of an exchange."""
    if exchange.alone or not (exchange.links or exchange.views):
        return []
    return list(dict.fromkeys(view.viewer for view in exchange.views)) or [ANY_VIEWER[1]]


def read_rows(text: str | None) -> list[Record]:
    """Returns the rows of the attribute ``ledger`` of a result; [] where it has none."""
    rows = json.loads(text or "[]")
    return [{_OLD_KEYS.get(key, key): value for key, value in row.items()} for row in rows]
