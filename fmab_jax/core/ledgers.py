"""Lines of a privacy ledger: who sees what of a reward, and what covers it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from fmab_jax.core.exchanges import Exchange
from fmab_jax.errors import choice, count, real, refuse

ACTIONS = "anybody who sees actions"
"""A watcher of the arms that agents pull."""

OUTSIDE = "an outsider who sees actions"
"""The same, without a share in the noise that is to hide them."""

SHARER = "an agent"
"""Who knows its own share of the noise of a secure sum, and sees actions that follow from it."""

SERVER = "the server"
"""Who hears agents and is none of them."""

ANYBODY = ("anybody", "anybody who gets messages")
"""Who stands for everybody that an exchange says sees something."""

UNSTATED = "privacy not stated"
"""What is said of an algorithm of which nobody says what its noise, if any, hides."""

OWN = "own computation"
"""Source of what no source states."""

# Files of version 0.2 and older have these keys.
_OLD_KEYS = {"who": "viewer", "what": "observation"}

LAWS = LAPLACE, BITS = "Laplace", "bits"
"""Laws of noises that add up: Laplace variables; or bits, each 1 with chance 1 / (1 + e^-epsilon)
where a reward is 1 and with 1 / (1 + e^epsilon) where it is 0, and mixed in between."""


class Seen(NamedTuple):
    """A line of a privacy ledger: what somebody sees, and what it tells of one agent's one reward.

    Attributes:
        viewer: Who sees it, such as "the server".
        observation: What the viewer sees, such as "single messages": over the whole run, unless it
            says otherwise.
        epsilon: Of pure differential privacy, for one changed reward; infinite for no bound.
        why: Why it holds, or why nothing does.
        over: Independent noises of ``law`` whose sum alone hides the reward; with them a smaller
            epsilon holds up to delta. 0, the default, where nothing of the kind is known.
        source: That states it, theorem or section; `OWN` where it was computed here; "" for none.
        law: `LAPLACE`, of scale (range of a reward) / epsilon each; or `BITS`.
        shares: Epsilon of one Laplace variable, how many of its equal shares alone hide the reward,
            and how many it has; None where nothing of the kind is known.
    """

    viewer: str
    observation: str
    epsilon: float
    why: str
    over: int = 0
    source: str = ""
    law: str = LAPLACE
    shares: tuple[float, int, int] | None = None


def together(size: int) -> str:
    """Names a coalition of agents."""
    return f"{size:,} agent{'s' * (size > 1)} together"


def checked_rows(field: str, stated: Any) -> tuple[Seen, ...]:
    """Returns what an algorithm states of a ledger, as rows.

    Args:
        field: What stated it, such as "Mine.ledger".
        stated: One row, or several.

    Raises:
        Refusal: If that is no ledger, or an empty one.
    """
    several = isinstance(stated, Iterable) and not isinstance(stated, Seen)
    rows = tuple(stated) if several else (stated,)
    if not rows or not all(isinstance(row, Seen) for row in rows):
        remedy = "return what each of them sees; somebody always sees actions"
        refuse(field, stated, "one Seen, or several", remedy)
    return tuple(_checked(f"{field}[{place}]", row) for place, row in enumerate(rows))


def _checked(field: str, row: Seen) -> Seen:
    """Returns a row with plain numbers; refuses one that cannot be shown."""
    if not all(
        isinstance(text, str) for text in (row.viewer, row.observation, row.why, row.source)
    ):
        refuse(
            field,
            row,
            "a Seen whose viewer, observation, why and source are texts",
            "say it in words",
        )
    choice(f"{field}.law", row.law, LAWS, "leave it out for Laplace noise")
    remedy = "state the epsilon of one reward; math.inf is no bound"
    epsilon = real(f"{field}.epsilon", row.epsilon, 0.0, math.inf, remedy)
    over = count(f"{field}.over", row.over, 0, 10**12, "leave it out where no noises add up")
    shares = row.shares or (epsilon, 1, 1)
    if len(shares) != 3 or not 1 <= shares[1] <= shares[2]:
        allowed = "(epsilon of one noise, how many of its equal shares hide a reward, of how many)"
        refuse(f"{field}.shares", shares, allowed, "leave it out where no share hides anything")
    return row._replace(epsilon=epsilon, over=over)


def receivers(exchange: Exchange) -> list[str]:
    """Returns who sees messages, by the exchange."""
    if exchange.alone or not (exchange.links or exchange.views):
        return []
    return list(dict.fromkeys(view.viewer for view in exchange.views)) or [ANYBODY[1]]


def read_rows(text: str | None) -> list[dict[str, Any]]:
    """Returns the rows of the attribute ``ledger`` of a result; [] where it has none."""
    rows = json.loads(text or "[]")
    return [{_OLD_KEYS.get(key, key): value for key, value in row.items()} for row in rows]
