"""Every output variable, once: where it comes from, what it is over, its type, unit and label."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.core.exchanges import Exchange, Meter

VERSION = 4
"""Of files that hold results; a file of another version is refused."""


class Variable(NamedTuple):
    """One variable of a result.

    Attributes:
        name: In results.
        sources: Fields of an `Outcome` that it is made of.
        over_time: Whether it has a value at each recorded slot.
        dtype: Of its values.
        label: For people.
        units: Of its values.
        make: Makes it of its sources; the only source itself where left out.
        coordinate: Whether it belongs to the seeds rather than to the results.
        costs: Fields of the `Exchange` that ``make`` takes besides, after the sources.
    """

    name: str
    sources: tuple[str, ...]
    over_time: bool
    dtype: Any
    label: str
    units: str
    make: Callable[..., np.ndarray] | None = None
    coordinate: bool = False
    costs: tuple[str, ...] = ()

    def of(
        self, stored: Mapping[str, np.ndarray], round_costs: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Returns the variable.

        Args:
            stored: What an `Outcome` holds, by name.
            round_costs: What `costs_of` returned for its exchange.
        """
        found: list[Any] = [stored[name] for name in self.sources]
        found += [(round_costs or {})[name] for name in self.costs]
        return found[0] if self.make is None else self.make(*found)


LINKS = Variable("links", ("rounds_by",), True, np.int64, "links so far", "links")
"""Over meters as well: completed rounds times the links of a round on each.

A round that the horizon cuts in its wait is not counted, though it has sent its data.
"""

NUMBERS = Variable(
    "numbers_sent",
    ("arms_reported", "rounds"),
    False,
    np.int64,
    "numbers sent",
    "numbers",
    lambda reported, rounds, vectors, numbers: reported * vectors + rounds * numbers,
    costs=("vectors", "numbers"),
)
"""A vector has one number for each arm that is told of."""

VARIABLES = (
    Variable("regret", ("regret",), True, np.float64, "cumulative regret", "reward"),
    Variable(
        "waiting_regret",
        ("waiting_regret",),
        True,
        np.float64,
        "cumulative regret while waiting",
        "reward",
    ),
    LINKS,
    Variable("rounds_made", ("rounds",), False, np.int32, "completed rounds", "rounds"),
    NUMBERS,
    Variable("active_arms", ("active_arms",), False, np.int32, "active arms at T", "arms"),
    Variable("chosen_arm", ("chosen_arm",), False, np.int32, "arm played at T", "index"),
    Variable(
        "agents_lost", ("agents_lost",), False, np.int32, "agents without a best arm at T", "agents"
    ),
    Variable(
        "agents_worse", ("agents_worse",), False, np.int32, "agents that play a worse arm", "agents"
    ),
    Variable(
        "final_gap", ("final_gap",), False, np.float64, "gap of what is played at T", "reward"
    ),
    Variable(
        "best_arm_lost",
        ("agents_lost",),
        False,
        np.bool_,
        "best arm lost",
        "seeds",
        lambda lost: np.asarray(lost) > 0,
        coordinate=True,
    ),
    Variable(
        "worse_arm_played",
        ("agents_worse",),
        False,
        np.bool_,
        "plays a worse arm at T",
        "seeds",
        lambda worse: np.asarray(worse) > 0,
        coordinate=True,
    ),
)

DTYPES = {v.sources[0]: np.dtype(v.dtype) for v in VARIABLES if v.make is None} | {
    "rounds_by": np.dtype(np.int32),
    "arms_reported": np.dtype(np.int64),
}
"""Types of the fields of an `Outcome`, as they are kept."""


def costs_of(exchange: Exchange) -> dict[str, int]:
    """Returns what a completed round of an exchange sends: vectors, and numbers besides."""
    return {"vectors": exchange.vectors, "numbers": exchange.numbers}


def meters_of(exchanges: list[Exchange]) -> list[Meter]:
    """Returns all meters of some exchanges, each once, in order."""
    return list(dict.fromkeys(meter for each in exchanges for meter, _ in each.links))


def meter_coordinates(meters: list[Meter]) -> dict[str, Any]:
    """Returns the coordinates of the dimension ``meter``."""
    return {
        "meter": ("meter", np.array([m.name for m in meters], dtype=str), {"long_name": "meter"}),
        "side": ("meter", np.array([m.side for m in meters], dtype=str)),
        "priced": ("meter", np.array([m.priced for m in meters], dtype=bool)),
        "counts": ("meter", np.array([m.words for m in meters], dtype=str)),
    }


def attributes(variable: Variable) -> dict[str, str]:
    """Returns a variable's attributes."""
    return {"long_name": variable.label, "units": variable.units}
