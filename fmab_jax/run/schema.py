"""What is kept of trials, and the coordinates that results have besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fmab_jax.core.exchanges import Exchange, Meter
from fmab_jax.core.outputs import FIELDS as FIELDS
from fmab_jax.core.outputs import Output

VERSION = 5
"""Of files that hold results; a file of another version is refused."""


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


def index_coordinates(outputs: Sequence[Output], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Returns the coordinates of the agents and arms that some outputs are over."""
    dims = {dim for output in outputs for dim in output.dims}
    return {
        dim: (dim, np.arange(sizes[dim]), {"long_name": dim, "units": "index"})
        for dim in ("agent", "arm")
        if dim in dims
    }
