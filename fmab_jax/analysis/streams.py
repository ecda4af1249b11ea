"""What is seen of two data sets that differ in one reward: the terms of an audit's two sides."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from fmab_jax.algorithms.base import Seen
from fmab_jax.core.problems import Problem

VIEWS = ("messages", "sums", "actions")
"""What can be shown: single messages, or released rewards; sums over agents; arms pulled."""

BATCH = 2**16
"""Rows of agents that are drawn in one go."""

ARMS, ARM = 2, 1
"""Arms of every data set, and that of the reward that differs: it loses ties."""

UPLOADS, HORIZON = 3, 100_000
"""Messages that are shown, and the slots whose schedule they follow."""


class Stream(NamedTuple):
    """Something that is seen of two data sets."""

    row: Seen  # of the ledger
    words: str  # what is seen, and which reward differs
    without: Hashable  # names the data set without the reward, for `Exposure.drawn`
    with_it: Hashable  # names the neighbouring one
    heard: tuple[int, ...]  # epochs, or slots, of which something is seen; none for whole runs
    # Laplace variables on the number in which the reward is first seen; a fraction for a share of
    # one; 0 for one random bit; None if that is not known.
    noises: float | None
    shift: float  # the reward in units of their scale
    waiting: bool = False  # what is seen is the arm that is pulled while messages travel
    # Whether nothing random is left by construction, so that neither data set ever lets out
    # anything else: noise of scale 0, or none.
    bare: bool = False


class Numbers(NamedTuple):
    """What is seen in a batch of runs."""

    values: Float[np.ndarray, "run number"]  # in rewards; or how often an arm was pulled
    lengths: Float[np.ndarray, " number"]  # rewards that each is a sum of
    names: list[str]  # what each number is
    first: int  # the number in which the changed reward is first seen
    counts: bool = False  # whether the numbers are counts of pulls, in the order of time


@runtime_checkable
class Exposure(Protocol):
    """What draws runs of one view."""

    @property
    def view(self) -> str:
        """As in `VIEWS`."""

    @property
    def size(self) -> int:
        """Runs of a batch."""

    def groups(self) -> list[list[Stream]]:
        """Returns what is seen; of several streams in a group, the one that tells most counts."""

    def drawn(self, data: Any, batch: int) -> Any:
        """Returns a batch of runs of a data set; every data set has runs of its own."""

    def seen(self, stream: Stream, drawn: Any) -> Numbers:
        """Returns what is seen of a batch."""


def unrewarded(agents: int) -> Problem:
    """Returns the problem in which every reward is 0."""
    return Problem([0.0] * ARMS, agents)


def seed_of(data: int, batch: int) -> np.uint32:
    """Returns the seed of a batch in which the reward of a round, or slot, differs; -1 for none."""
    return np.uint32(batch * (UPLOADS + 1) + data + 1)
