"""Bounds on regret, rounds and links of CES, with explicit constants.

The good event is that every estimate is within U of the mean over agents. On it an arm of gap d is
marked, at the latest, in the first round whose U is at most d / 4, and leaves D rounds later. The
source states that the event fails with probability 1 / T, which costs an agent at most 1. Both
forms below rest on that. docs/theory.md says what is not proved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fmab_jax.algorithms.ces import CES
from fmab_jax.analysis.epochs import checked_gaps
from fmab_jax.errors import count, refuse


class ConsensusBounds(NamedTuple):
    """Upper bounds at the horizon. Regret is the expectation, summed over agents.

    Attributes:
        regret: The sum of the three parts below, at most agents x horizon x the largest gap.
        regret_exploration: Of pulls of worse arms until they are marked, on the good event.
        regret_waiting: Of their pulls in the D rounds until they leave, on the good event.
        regret_failure: Where the good event fails: 1 for each agent.
        rounds: Rounds of an exchange, on the good event.
        links: ``rounds`` times the links of a round, by meter.
    """

    regret: float
    regret_exploration: float
    regret_waiting: float
    regret_failure: float
    rounds: float
    links: dict[str, float]


def bounds(gaps: ArrayLike, algorithm: CES, agents: int, horizon: int) -> ConsensusBounds:
    """Bounds CES round by round, with the smallest number of pulls that is enough for each gap.

    Args:
        gaps: [arm] best global mean minus the arm's, in [0, 1], one of them 0.
        algorithm: CES on its graph; the statement is for the width 1.
        agents: M.
        horizon: T, in slots.

    Raises:
        ValueError: If an argument is out of range.
    """
    array, deviation, drift = _measure(gaps, algorithm, agents, horizon)
    worse = array[array > 0.0]
    # The root of 4 (a / sqrt(x) + b / (x + 1)) = gap is below that with b / x. T slots have room
    # for no more pulls.
    highest = np.minimum(np.ceil(_enough_pulls(worse, deviation, drift)), float(horizon))
    lowest = np.minimum(highest, 2.0)
    while np.any(lowest < highest):
        middle = np.floor((lowest + highest) / 2.0)
        is_enough = 4.0 * (deviation / np.sqrt(middle) + drift / (middle + 1.0)) <= worse
        highest, lowest = (
            np.where(is_enough, middle, highest),
            np.where(is_enough, lowest, middle + 1.0),
        )
    return _assemble(array, algorithm, agents, horizon, highest)


def closed_form(gaps: ArrayLike, algorithm: CES, agents: int, horizon: int) -> ConsensusBounds:
    """Bounds the same as `bounds` in the source's form, which is never smaller.

    An agent's regret is at most the sum over worse arms of 16 log T / (M gap) + (D + 1) gap +
    8 Q / (1 - l), and 1.
    """
    array, deviation, drift = _measure(gaps, algorithm, agents, horizon)
    worse = array[array > 0.0]
    pulls = _enough_pulls(worse, deviation, drift) + 1.0
    return _assemble(array, algorithm, agents, horizon, pulls)


def _measure(
    gaps: ArrayLike, algorithm: CES, agents: int, horizon: int
) -> tuple[np.ndarray, float, float]:
    """Returns the gaps, and the terms of U: sqrt(log T / M) and Q / (1 - l)."""
    if not isinstance(algorithm, CES):
        refuse("algorithm", algorithm, "one of fmab.ces(...)", "see fmab_jax.analysis.theory")
    if algorithm.width != 1.0:
        refuse("width", algorithm.width, "1 for the theorem", "leave it out")
    horizon = count("horizon", horizon, 2, 10**12, "give T in slots")
    params = algorithm.values(algorithm.exchange(agents), horizon)
    return checked_gaps(gaps), math.sqrt(math.log(horizon) / agents), params["drift"]


def _enough_pulls(gaps: np.ndarray, deviation: float, drift: float) -> np.ndarray:
    """Returns 16 log T / (M gap^2) + 8 Q / ((1 - l) gap), pulls that are enough for each gap."""
    return 16.0 * deviation**2 / gaps**2 + 8.0 * drift / gaps


def _assemble(
    gaps: np.ndarray,
    algorithm: CES,
    agents: int,
    horizon: int,
    pulls: np.ndarray,
) -> ConsensusBounds:
    """Returns bounds from an agent's pulls of each worse arm until the arm is marked."""
    exchange, worse = algorithm.exchange(agents), gaps[gaps > 0.0]
    most = (horizon - len(gaps)) // 2 if len(gaps) > 1 else 0
    # Arms that tie with the best may stay for ever.
    is_tied = np.count_nonzero(gaps == 0.0) > 1
    last = float(np.max(pulls, initial=1.0)) - 1.0 + exchange.diameter
    total = float(most if is_tied else min(last, most))
    exploration, waiting = float(worse @ pulls), exchange.diameter * float(worse.sum())
    parts = [agents * x for x in (exploration, waiting, 1.0 if len(worse) else 0.0)]
    return ConsensusBounds(
        min(sum(parts), agents * horizon * float(gaps.max())),
        parts[0],
        parts[1],
        parts[2],
        rounds=max(total, 0.0),
        links={meter.name: total * number for meter, number in exchange.links},
    )
