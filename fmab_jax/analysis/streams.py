"""What is seen of two data sets that differ in one reward: the terms of an audit's two sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

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

    words: str  # what is seen, and which reward differs
    without: Any  # names the data set without the reward, for ``draw``
    with_it: Any  # names the neighbouring one
    rounds: tuple[int, ...] = ()  # or slots, of which something is seen; none for whole runs


class Numbers(NamedTuple):
    """What is seen in a batch of runs."""

    values: Float[np.ndarray, "run number"]  # in rewards; or how often an arm was pulled
    lengths: Float[np.ndarray, " number"]  # rewards that each is a sum of
    names: list[str]  # what each number is
    first: int  # the number in which the changed reward is first seen
    counts: bool = False  # whether the numbers are counts of pulls, in the order of time


def unrewarded(agents: int) -> Problem:
    """Returns the problem in which every reward is 0."""
    return Problem([0.0] * ARMS, agents)


def seed_of(data: int, batch: int) -> np.uint32:
    """Returns the seed of a batch in which the reward of a round, or slot, differs; -1 for none."""
    return np.uint32(batch * (UPLOADS + 1) + data + 1)
