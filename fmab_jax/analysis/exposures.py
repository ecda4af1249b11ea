"""What a run lets out, drawn many times for two data sets that differ in one reward.

An audit (`fmab_jax.analysis.audit`) asks how far the two can be told apart. This module plays the
side of the algorithm. Each row of a privacy ledger is shown by what its reader would see: single
messages, sums over agents less what the reader knows of them, or the arms that are pulled over a
whole run. All of it comes from the functions that a simulation calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.algorithms.base import (
    ACTIONS,
    ANYBODY,
    OUTSIDE,
    SERVER,
    Algorithm,
    Seen,
    ledger_of,
    privacy_of,
)
from fmab_jax.algorithms.families import index, index_trial
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.elimination_trial import EliminationTrial
from fmab_jax.algorithms.families.episodes import Episodes, EpisodesTrial
from fmab_jax.analysis.pulls import releases_of, rounds_of, slots_of
from fmab_jax.analysis.streams import VIEWS, Exposure, unrewarded
from fmab_jax.analysis.uploads import Sight, uploads_of
from fmab_jax.core.exchanges import Exchange, View
from fmab_jax.run.contract import asking


class Unseen(NamedTuple):
    """A row of the ledger that no run can show.

    Attributes:
        who: Who sees it, as in the ledger.
        what: What is seen.
        epsilon: That is claimed.
        why: Why it cannot be shown.
    """

    who: str
    what: str
    epsilon: float
    why: str


def exposed(
    algorithm: Algorithm, exchange: Exchange, root: int, views: Sequence[str]
) -> tuple[list[Exposure], list[Unseen]]:
    """Returns what shows the rows of an algorithm's ledger in some views, and what nothing shows.

    Call it in `fmab_jax.core.scope.own_settings`.
    """
    found: dict[Any, list[Exposure]] = {}
    unseen = []
    rows = sorted(_claims(algorithm, exchange), key=lambda row: row.epsilon)
    if not _of_a_family(algorithm, exchange):
        why = "its loop is its own"
        return [], [Unseen(row.who, row.what, float(row.epsilon), why) for row in rows]
    for row, view, way in ((r, *each) for r in rows for each in _placed(algorithm, exchange, r)):
        # Of two rows about the same, the smaller epsilon is the stronger claim.
        if view not in (*views, "") or way in found:
            continue
        made = way
        if not isinstance(way, str):
            maker, details = way
            made = maker(algorithm, exchange, row, np.uint32(root), details)
        if isinstance(made, str):
            unseen.append(Unseen(row.who, row.what, float(row.epsilon), made))
        else:
            found[way] = made
    every = [exposure for made in found.values() for exposure in made]
    return sorted(every, key=lambda exposure: VIEWS.index(exposure.view)), unseen


def _claims(algorithm: Algorithm, exchange: Exchange) -> list[Seen]:
    """Returns the ledger; of a class that states none, with what its `privacy` states.

    That is of messages, and of actions only where nothing else is seen: a message's epsilon says
    nothing of an agent that acts on rewards of its own.
    """
    with asking(type(algorithm)):
        rows = list(ledger_of(algorithm, exchange))
    order = type(algorithm).__mro__
    stating = min(n for n, c in enumerate(order) if "privacy" in vars(c))
    # What a class inherits says nothing of what it has changed.
    changed = min(n for n, c in enumerate(order) if "ledger" in vars(c))
    if type(algorithm).ledger is not Algorithm.ledger or stating > changed:
        return rows
    about = [row.who not in (ACTIONS, OUTSIDE) for row in rows]
    with asking(type(algorithm)):
        stated = privacy_of(algorithm, exchange)
    epsilon = stated["epsilon_message" if any(about) else "epsilon"]
    why = "stated by privacy; no ledger is"
    return [
        row._replace(epsilon=min(row.epsilon, epsilon), why=why) if own is any(about) else row
        for row, own in zip(rows, about, strict=True)
    ]


def _of_a_family(algorithm: Algorithm, exchange: Exchange) -> bool:
    """Tells whether the loop is one whose rewards can be given."""
    if not isinstance(algorithm, (Elimination, Episodes, index.IndexPolicy)):
        return False
    trial = algorithm.bind(unrewarded(exchange.agents), 32, exchange=exchange)
    return isinstance(trial, (EliminationTrial, EpisodesTrial, index_trial.IndexTrial))


def _placed(algorithm: Algorithm, exchange: Exchange, row: Seen) -> list[tuple[str, Any]]:
    """Returns which views a row is about, and who shows each with which details, or why nobody."""
    if row.who in (ACTIONS, OUTSIDE):
        # The actions of an agent that is alone follow from its noisy sums.
        behind = isinstance(algorithm, Elimination) and exchange.alone
        sums = [("messages", (uploads_of, Sight("messages")))] if behind else []
        pulls = rounds_of if isinstance(algorithm, Elimination) else slots_of
        return [*sums, ("actions", (pulls, ()))]
    if isinstance(algorithm, index.IndexPolicy):
        if type(algorithm).release is not index.IndexPolicy.release and row.who in ANYBODY:
            return [("messages", (releases_of, ()))]
        return [("messages", "a policy does not say which part of its state it sends")]
    if isinstance(algorithm, Episodes):
        return [("sums", "sums of episodes are not shown; what follows from them is")]
    assert isinstance(algorithm, Elimination)
    if algorithm.sums_securely:
        # Everybody but the server knows a share of the noise.
        left = exchange.agents - (row.who != SERVER)
        return [("sums", (uploads_of, Sight("sums", shares=(left, exchange.agents))))]
    found = [view for view in exchange.views if view.who == row.who]
    if row.who == ANYBODY[1]:
        found = [View(row.who, 1)]
    if not found:
        return [("", "nothing in the exchange tells what that is")]
    view = found[0]
    if view.over == 1:
        if view.what != View("", 1).what and row.what == view.what:
            why = "weighted sums of single messages, which leak no more than these"
            return [("messages", why)]
        return [("messages", (uploads_of, Sight("messages")))]
    redrawn = exchange.reporting < exchange.agents and not row.what.startswith("one round")
    return [("sums", (uploads_of, Sight("sums", view.over, view.inside, redrawn)))]
