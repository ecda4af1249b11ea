"""Maps instead of points: where the paper's sentences hold, and where they stop.

Over the gap that a budgeted schedule is built for; over participation and budget; over what a
message leaks; over the number of agents and the diameter of their graph; and over both regimes of
privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import xarray as xr

from experiments import (
    maps_gaps,
    maps_pairs,
    maps_regimes,
    maps_waits,
    pictures,
)

# Part: what runs it, and whether its horizon is its own, so that one run serves all.
PARTS: dict[str, tuple[Callable[[int, int, Path | None], xr.Dataset], bool]] = {
    "gaps": (maps_gaps.sweep_gaps, False),
    "pairs": (maps_pairs.sweep_pairs, False),
    "leaks": (maps_regimes.sweep_leaks, False),
    "alone": (maps_regimes.sweep_alone, False),
    "peers": (maps_regimes.sweep_peers, False),
    "sizes": (maps_waits.sweep_sizes, False),
    "diameters": (maps_waits.sweep_diameters, False),
    "exponents": (maps_regimes.sweep_exponents, True),
    "shares": (maps_regimes.sweep_shares, True),
}
# Quickly, what few programs can compute: maps without these parts have fewer curves, or are left.
QUICK = ("gaps", "pairs", "leaks")


def sweep(
    horizon: int, seeds: int, store: Path | None = None, parts: Sequence[str] = tuple(PARTS)
) -> dict[str, xr.Dataset]:
    """Runs the named parts."""
    found = {}
    for name in parts:
        run, own_horizon = PARTS[name]
        kept = f"maps-{name}" if own_horizon or store is None else f"{store.name}-{name}"
        found[name] = run(horizon, seeds, None if store is None else store.with_name(kept))
    return found


def draw(results: Mapping[int, Mapping[str, xr.Dataset]], folder: Path) -> list[Path]:
    """Draws every map that there are results for."""
    parts = set.intersection(*(set(found) for found in results.values()))
    # Picture: the parts that it cannot be drawn without.
    drawn = [
        (maps_gaps.draw_gaps, {"gaps", "pairs"}),
        (maps_pairs.draw_pairs, {"pairs"}),
        (maps_regimes.draw_leaks, {"leaks"}),
        (maps_waits.draw_waits, {"sizes", "diameters"}),
        (maps_regimes.draw_exponents, {"exponents"}),
    ]
    made = [picture for draw, needed in drawn if needed <= parts for picture in draw(results)]
    return [path for picture in made for path in pictures.publish(picture, folder)]
