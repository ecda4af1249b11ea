"""Draws the outputs of an algorithm for two data sets that differ in one reward.

An audit (`experiments.audit.findings`) asks how well the two can be distinguished; this module
plays the algorithm. For each row of a privacy ledger it draws what the viewer sees: single
messages, sums over agents without the viewer's own message, or the arms that are pulled over a
whole run. It calls the functions of a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from experiments.audit.events import VIEWS, Numbers, Stream, make_zero_problem
from experiments.audit.pulls import expose_releases, expose_rounds, expose_slots
from experiments.audit.uploads import expose_uploads
from fmab_jax.algorithms import base
from fmab_jax.algorithms.base import Algorithm, Disclosure, Viewer, ViewKind
from fmab_jax.algorithms.families import index, index_trial
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.episodes import Episodes, EpisodesTrial
from fmab_jax.elimination import EliminationTrial
from fmab_jax.parts.exchanges import Exchange, View
from fmab_jax.records.ledger import describe_viewer
from fmab_jax.run.promises import refuse_errors
from fmab_jax.sampling.shapes import PyTree


@runtime_checkable
class Exposure(Protocol):
    """A row of the ledger, as its viewer sees it in neighbouring data sets."""

    @property
    def row(self) -> Disclosure:
        """The row."""

    @property
    def view(self) -> str:
        """One of `VIEWS`."""

    @property
    def size(self) -> int:
        """Runs of a batch."""

    @property
    def is_stronger(self) -> bool:
        """Whether the viewer sees more than that of the row."""

    @property
    def compete(self) -> bool:
        """Whether only the stream that tells most counts."""

    def streams(self) -> list[Stream]:
        """Returns the outputs that are seen, with the two data sets of each."""

    def draw(self, data: int, batch: int) -> PyTree:
        """Returns ``size`` runs of a data set, others in every batch."""

    def show(self, stream: Stream, batch: PyTree) -> Numbers:
        """Returns what is seen of a batch of runs."""


# A function and its last arguments; or why no run shows the row.
_Way = tuple[Callable[..., Exposure | str], *tuple[int, ...]] | str


class Unseen(NamedTuple):
    """A row of the ledger that no run can show.

    Attributes:
        viewer: Who sees it, as in the ledger.
        observation: What the viewer sees.
        epsilon: Epsilon that the ledger claims.
        why: Why no run can show it.
    """

    viewer: str
    observation: str
    epsilon: float
    why: str


def list_exposures(
    algorithm: Algorithm, exchange: Exchange, root: int, views: Sequence[str]
) -> tuple[list[Exposure], list[Unseen]]:
    """Returns exposures for the rows of a ledger in some views, and the rows without one.

    Call it in `fmab_jax.sampling.scope.package_settings`.
    """
    exposures: dict[_Way, Exposure] = {}
    unseen = []
    of_a_family = _is_of_a_family(algorithm, exchange)
    # Of two rows about the same, the smaller epsilon is the stronger claim.
    for row in sorted(_list_claims(algorithm, exchange), key=lambda row: row.epsilon):
        ways = (
            _list_views(algorithm, exchange, row) if of_a_family else [("", "its loop is its own")]
        )
        for view, way in ways:
            if way in exposures or view not in ("", *views):
                continue
            exposure = (
                way
                if isinstance(way, str)
                else way[0](algorithm, exchange, row, np.uint32(root), *way[1:])
            )
            if isinstance(exposure, str):
                viewer = describe_viewer(row.viewer, row.members)
                unseen.append(Unseen(viewer, row.observation, float(row.epsilon), exposure))
            else:
                exposures[way] = exposure
    return sorted(exposures.values(), key=lambda exposure: VIEWS.index(exposure.view)), unseen


def _list_claims(algorithm: Algorithm, exchange: Exchange) -> list[Disclosure]:
    """Returns the ledger; a class without one gets the epsilon of its `privacy`.

    That epsilon covers messages. It covers actions only where there are no messages, since an agent
    may act on its own rewards.
    """
    owner = type(algorithm)
    with refuse_errors(owner):
        rows = list(base.ledger_of(algorithm, exchange))
        epsilons = base.privacy_of(algorithm, exchange)
    privacy, ledger = (
        next(place for place, cls in enumerate(owner.__mro__) if name in vars(cls))
        for name in ("privacy", "ledger")
    )
    # An inherited ledger does not cover a changed `privacy`.
    if owner.ledger is not Algorithm.ledger or privacy > ledger:
        return rows
    messages = [row for row in rows if row.view is not ViewKind.ACTIONS]
    epsilon = epsilons["epsilon_message" if messages else "epsilon"]
    why = "stated by privacy; no ledger is"
    return [
        row._replace(epsilon=min(row.epsilon, epsilon), why=why)
        if row in (messages or rows)
        else row
        for row in rows
    ]


def _is_of_a_family(algorithm: Algorithm, exchange: Exchange) -> bool:
    """Tells whether the rewards of the loop can be fixed."""
    if not isinstance(algorithm, (Elimination, Episodes, index.IndexPolicy)):
        return False
    trial = algorithm.bind(make_zero_problem(exchange.agents), 32, exchange=exchange)
    return isinstance(trial, (EliminationTrial, EpisodesTrial, index_trial.IndexTrial))


def _list_views(
    algorithm: Algorithm, exchange: Exchange, row: Disclosure
) -> list[tuple[str, _Way]]:
    """Returns the views of a row: a function and its arguments, or why no run shows it."""
    if row.viewer in (Viewer.WATCHERS, Viewer.OUTSIDER):
        if not isinstance(algorithm, Elimination):
            return [("actions", (expose_slots,))]
        # The actions of an agent that is alone follow from its noisy sums.
        return [("messages", (expose_uploads,))] * exchange.alone + [("actions", (expose_rounds,))]
    if isinstance(algorithm, index.IndexPolicy):
        if type(algorithm).release is not index.IndexPolicy.release and row.viewer in (
            Viewer.ANYBODY,
            Viewer.RECEIVERS,
        ):
            return [("messages", (expose_releases,))]
        return [("messages", "a policy does not say which part of its state it sends")]
    if isinstance(algorithm, Episodes):
        return [("sums", "sums of episodes are not shown; what follows from them is")]
    assert isinstance(algorithm, Elimination)
    if algorithm.sums_securely:
        if row.viewer is Viewer.SERVER:
            return [("sums", (expose_uploads,))]
        return [("sums", "the noise of a secure sum is drawn in one, not by shares")]
    default_view = View(row.viewer, 1) if row.viewer is Viewer.RECEIVERS else None
    view = next((view for view in exchange.views if view.viewer == row.viewer), default_view)
    if view is None:
        return [("", "nothing in the exchange tells what that is")]
    if view.over == 1:
        if view.observation:
            return [("messages", "weighted sums of single messages, which leak no more than these")]
        return [("messages", (expose_uploads,))]
    if algorithm.shares_arms:
        return [("sums", "who pulls an arm differs from round to round; single messages are shown")]
    if exchange.reporting < exchange.agents and not row.is_one_round:
        return [("sums", "other agents are drawn in each round; one round's sum is shown")]
    return [("sums", (expose_uploads, view.over, view.is_member))]
