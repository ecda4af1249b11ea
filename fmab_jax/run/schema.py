"""Fields of trials in results, and coordinates of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from fmab_jax.errors import refuse
from fmab_jax.parts.exchanges import Exchange, Meter
from fmab_jax.parts.outputs import FIELDS as FIELDS
from fmab_jax.parts.outputs import Output

VERSION = 5
"""Version of result files; files of other versions are refused."""


class Costs(TypedDict):
    """The costs of a completed round; or of a message, where agents or links may be missing."""

    counted: str
    links: dict[str, int]
    vectors: int
    numbers: int


def costs_of(exchange: Exchange, messages: int = 0) -> Costs:
    """Returns the costs of a completed round, or of one of its messages.

    Args:
        exchange: The exchange.
        messages: Messages of a whole round, if they are counted one by one.
    """
    count = messages or 1
    totals = [*(number for _, number in exchange.links), exchange.vectors, exchange.numbers]
    if any(total % count for total in totals):
        allowed = f"one that divides links, vectors and numbers of a round, {totals}"
        refuse("count_messages", messages, allowed, "messages of a round must cost the same")
    return {
        "counted": "messages_by" if messages else "rounds_by",
        "links": {meter.name: number // count for meter, number in exchange.links},
        "vectors": exchange.vectors // count,
        "numbers": exchange.numbers // count,
    }


def meters_of(exchanges: list[Exchange]) -> list[Meter]:
    """Returns the distinct meters of all exchanges, in order."""
    return list(dict.fromkeys(meter for exchange in exchanges for meter, _ in exchange.links))


def meter_coordinates(meters: list[Meter]) -> dict[str, tuple[object, ...]]:
    """Returns the coordinates of the dimension ``meter``."""
    return {
        "meter": ("meter", np.array([m.name for m in meters], dtype=str), {"long_name": "meter"}),
        "side": ("meter", np.array([m.side for m in meters], dtype=str)),
        "priced": ("meter", np.array([m.priced for m in meters], dtype=bool)),
        "counts": ("meter", np.array([m.words for m in meters], dtype=str)),
    }


def index_coordinates(
    outputs: Sequence[Output], sizes: Mapping[str, int]
) -> dict[str, tuple[object, ...]]:
    """Returns the coordinates of agents and arms, if an output has such a dimension."""
    dims = {dim for output in outputs for dim in output.dims}
    return {
        dim: (dim, np.arange(sizes[dim]), {"long_name": dim, "units": "index"})
        for dim in ("agent", "arm")
        if dim in dims
    }
