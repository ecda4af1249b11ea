"""Lines of a privacy ledger: who sees what of a reward, and what covers it."""

from __future__ import annotations

from typing import Any, NamedTuple

from fmab_jax.core.exchanges import Exchange

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

OWN = "own computation"
"""Source of what no source states."""


LAWS = LAPLACE, BITS = "Laplace", "bits"
"""Laws of noises that add up: Laplace variables; or bits, each 1 with chance 1 / (1 + e^-epsilon)
where a reward is 1 and with 1 / (1 + e^epsilon) where it is 0, and mixed in between."""


class Seen(NamedTuple):
    """A line of a privacy ledger: what somebody sees, and what it tells of one agent's one reward.

    Attributes:
        who: Who sees it, such as "the server".
        what: What is seen, such as "single messages": over the whole run, or else it says so.
        epsilon: Of pure differential privacy, for one changed reward; infinite for no bound.
        why: Why it holds, or why nothing does.
        over: Independent noises of ``law`` whose sum alone hides the reward; with them a smaller
            epsilon holds up to delta. 0, the default, where nothing of the kind is known.
        source: That states it, theorem or section; `OWN` where it was computed here; "" for none.
        law: `LAPLACE`, of scale (range of a reward) / epsilon each; or `BITS`.
        shares: Epsilon of one Laplace variable, how many of its equal shares alone hide the reward,
            and how many it has; None where nothing of the kind is known.
    """

    who: str
    what: str
    epsilon: float
    why: str
    over: int = 0
    source: str = ""
    law: str = LAPLACE
    shares: tuple[float, int, int] | None = None


def together(size: int) -> str:
    """Names a coalition of agents."""
    return f"{size:,} agent{'s' * (size > 1)} together"


def checked_rows(stated: Any) -> tuple[Seen, ...]:
    """Returns what an algorithm states of a ledger, as rows.

    Raises:
        TypeError: If that is no ledger, or an empty one.
    """
    rows = (stated,) if isinstance(stated, Seen) else tuple(stated)
    for row in rows:
        real = isinstance(row, Seen) and isinstance(row.epsilon, (int, float)) and row.epsilon >= 0
        if not (real and isinstance(row.over, int) and row.over >= 0):
            raise TypeError(f"ledger returns {row!r}, not a Seen with epsilon >= 0 and over >= 0")
        if not all(isinstance(each, str) for each in (row.who, row.what, row.why, row.source)):
            raise TypeError(f"ledger returns {row!r}, whose words are no texts")
        if row.shares is not None and not 0 < row.shares[1] <= row.shares[2]:
            raise TypeError(f"ledger returns {row!r}, whose shares are not a part of all")
        if row.law not in LAWS:
            raise TypeError(f"ledger returns {row!r}, whose law is neither {' nor '.join(LAWS)}")
    if not rows:
        raise TypeError("ledger returns no row; somebody always sees actions")
    return rows


def receivers(exchange: Exchange) -> list[str]:
    """Returns who sees messages, by the exchange."""
    if exchange.alone or not (exchange.links or exchange.views):
        return []
    return list(dict.fromkeys(view.who for view in exchange.views)) or [ANYBODY[1]]
