"""Rows of a privacy ledger: what each viewer learns about a reward, and why.

A row is numbers and enumerations; its texts are for people, and nothing reads them. What a row
leaks is computed in `fmab_jax.analysis.accountant`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from fmab_jax.errors import choice, count, flag, real, refuse
from fmab_jax.parameters import VIEWS, ViewKind
from fmab_jax.parts.exchanges import Exchange, Viewer
from fmab_jax.parts.exchanges.table import check_viewer
from fmab_jax.parts.mechanisms import Mechanism
from fmab_jax.parts.mechanisms.bits import RandomBits

COMPUTED_HERE = "own computation"
"""Source of a row that no paper states."""

# What is seen, where a row has no words of its own.
_OBSERVATIONS = {
    ViewKind.MESSAGES: "single messages",
    ViewKind.SUM: "sums over agents",
    ViewKind.ACTIONS: "actions",
}


HidingLaw = Mechanism | RandomBits
"""A law of noise, as an accountant asks for it."""


class Noise(NamedTuple):
    """Independent noises of one law and scale, which add up.

    Attributes:
        mechanism: Their law.
        scale: Of each, relative to how far a reward moves what is seen.
        number: How many there are.
        shares: Of one Laplace variable, how many of its equal shares hide the reward, and how many
            it has; None for whole noises.
    """

    mechanism: HidingLaw
    scale: float
    number: int = 1
    shares: tuple[int, int] | None = None


class Disclosure(NamedTuple):
    """A row of a privacy ledger: a view, and its leak about one reward of one agent.

    Attributes:
        viewer: Who sees it, a `Viewer` or its text.
        view: What kind of thing is seen, a `ViewKind` or its text.
        epsilon: Epsilon of pure differential privacy for one changed reward over the whole run;
            infinite: no bound.
        why: Why the bound holds, or why there is none, for people.
        noises: The independent noises that hide the reward, from which follows what leaks up to
            delta; (), the default, if unknown.
        source: Theorem or section that states the bound; `COMPUTED_HERE` if no paper does; "" for
            none.
        observation: What exactly is seen, for people; "" for the usual words of the view.
        members: Agents of a coalition; 0 for any other viewer.
        is_one_round: Whether the row is about one round alone, and not about the run.
        is_stated: Whether the algorithm states its privacy; False for a row that fills a gap.
    """

    viewer: Viewer
    view: ViewKind
    epsilon: float
    why: str
    noises: tuple[Noise, ...] = ()
    source: str = ""
    observation: str = ""
    members: int = 0
    is_one_round: bool = False
    is_stated: bool = True

    @property
    def number(self) -> int:
        """Number of noises that hide the reward; 0 for unknown."""
        return sum(noise.number for noise in self.noises)


def describe_viewer(viewer: Viewer, members: int = 0) -> str:
    """Names a viewer, for people: "the server", "3 agents together"."""
    if viewer is not Viewer.COALITION:
        return str(viewer)
    return f"{members:,} agent{'s' * (members > 1)} together"


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
    return tuple(_check_row(f"{field}[{place}]", row) for place, row in enumerate(rows))


def _check_row(field: str, row: Disclosure) -> Disclosure:
    """Returns a row with plain numbers; refuses one that cannot be shown."""
    view = ViewKind(choice(f"{field}.view", row.view, VIEWS, "choose what is seen"))
    if not all(isinstance(text, str) for text in (row.why, row.source, row.observation)):
        allowed = "a Disclosure whose why, source and observation are texts"
        refuse(field, row, allowed, "say it in words")
    for name in ("is_one_round", "is_stated"):
        flag(f"{field}.{name}", getattr(row, name))
    remedy = "state the epsilon of one reward; math.inf is no bound"
    if not isinstance(row.noises, tuple):
        refuse(f"{field}.noises", row.noises, "a tuple of Noise", "leave it out if unknown")
    noises = tuple(_check_noise(f"{field}.noises", noise) for noise in row.noises)
    is_alone = len(noises) == 1
    if len({noise.mechanism for noise in noises}) > 1 or any(x.shares for x in noises[is_alone:]):
        allowed = "noises of one law; or shares of one noise, alone"
        refuse(f"{field}.noises", row.noises, allowed, "leave out what hides less")
    return row._replace(
        viewer=check_viewer(f"{field}.viewer", row.viewer),
        view=view,
        epsilon=real(f"{field}.epsilon", row.epsilon, 0.0, math.inf, remedy),
        noises=noises,
        observation=row.observation or _OBSERVATIONS[view],
        members=count(f"{field}.members", row.members, 0, 10**9, "give the size of a coalition"),
    )


def _check_noise(field: str, noise: Noise) -> Noise:
    """Returns a noise with plain numbers; refuses one that no accountant can count."""
    if not (isinstance(noise, Noise) and isinstance(noise.mechanism, HidingLaw)):
        refuse(field, noise, "a tuple of Noise", "leave it out if unknown")
    scale = real(f"{field}.scale", noise.scale, 0.0, math.inf, "give a scale", open_low=True)
    remedy = "leave out noises that are not there"
    number = count(f"{field}.number", noise.number, 1, 10**12, remedy)
    if (shares := noise.shares) is not None:
        if not isinstance(shares, (tuple, list)) or len(shares) != 2:
            allowed = "(how many equal shares hide a reward, of how many)"
            refuse(f"{field}.shares", shares, allowed, "leave it out for whole noises")
        whole = count(f"{field}.shares", shares[1], 1, 10**9, "give a number of shares")
        shares = count(f"{field}.shares", shares[0], 1, whole, "give a number of them"), whole
    return noise._replace(scale=scale, number=number, shares=shares)


def hide_by_one(row: Disclosure) -> Disclosure:
    """Returns the row in which one noise alone hides a reward, at worst the smallest."""
    if len(row.noises) > 1:
        noise = min(row.noises, key=lambda noise: noise.scale)
        pure = max(row.epsilon, noise.mechanism.epsilon(noise.scale, 1, 0.0))
        row = row._replace(noises=(noise,), epsilon=pure)
    return row._replace(noises=tuple(noise._replace(number=1) for noise in row.noises))


def adapt_to_absence(row: Disclosure, sums_securely: bool) -> Disclosure:
    """Returns the row of an algorithm whose rounds may miss agents.

    Nobody knows how many agents a sum is over, so only the noise of the agent itself is sure.
    """
    if sums_securely and row.view is ViewKind.SUM:
        return row._replace(why=f"{row.why}; a sum with a missing share does not open")
    if row.number < 2:
        return row
    reason = "agents may be absent: only its own noise surely hides a reward"
    return hide_by_one(row)._replace(why=reason)


def list_viewers(exchange: Exchange) -> list[Viewer]:
    """Returns the viewers of messages of an exchange."""
    if exchange.alone or not (exchange.links or exchange.views):
        return []
    return list(dict.fromkeys(view.viewer for view in exchange.views)) or [Viewer.RECEIVERS]
