"""What all maps share: captions, shares of seeds, rows of dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.ticker import NullLocator

import fmab_jax as fmab
from experiments import common, pictures
from fmab_jax.analysis.words import write_number

AGENTS, ARMS, EPSILON = 50, 100, 1
# One size for all sweeps, so that those of one kind share a program.
BATCH = 64
# Recorded slots; only the last one is drawn.
TIMES = 8


def run_paper(
    algorithm: Any,
    horizon: int | list[int],
    seeds: int,
    store: Path | None,
    problem: Any = None,
    **given: Any,
) -> xr.Dataset:
    """Runs an algorithm on the paper's instance, or on another problem."""
    problem = fmab.Problem.uniform(AGENTS, ARMS) if problem is None else problem
    return fmab.sweep(
        algorithm, problem, horizon=horizon, seeds=seeds, times=TIMES, batch=BATCH, store=store,
        **given,
    )  # fmt: skip


def caption(setting: str, data: Mapping[int, Sequence[xr.Dataset]], *sentences: str) -> str:
    """Returns setting, horizons, seeds, further sentences, and what went wrong.

    Args:
        setting: What all runs share.
        data: Every result that is drawn, by horizon.
        *sentences: What else is to be said; "" for nothing.
    """
    parts = [
        common.setting_of(setting, data),
        *(text for text in sentences if text),
        *went_wrong([(T, each) for T, found in data.items() for each in found]),
    ]
    return ". ".join(parts) + "."


def went_wrong(results: Sequence[tuple[int, xr.Dataset]]) -> list[str]:
    """Says how many runs lost the best arm and play a worse one at T, and their largest regret."""
    runs = sum(data.best_arm_lost.size for _, data in results)
    lost = sum(int(data.best_arm_lost.sum()) for _, data in results)
    worse = sum(int(data.worse_arm_played.sum()) for _, data in results)
    told = (
        f"{common.write_count(lost)} of {common.write_count(runs)} runs lost the best arm, and "
        f"{common.write_count(worse)} play a worse arm at T"
    )
    if worse:
        shares = [data.worse_arm_played.mean("seed").max() for _, data in results]
        told += f" (up to {100 * float(max(shares)):.3g} % of the seeds of one configuration)"
    return [told, *common.most_regret(results)]


def name_ticks(page: pictures.Page, panels: Any, numbers: Sequence[float], **named: float) -> None:
    """Writes numbers on logarithmic axes, and a word where something stands beside them.

    Args:
        page: The panels'; it writes them once they have their place.
        panels: To write on.
        numbers: Ticks.
        **named: Place of each word.
    """
    words = [name.replace("_", " ") for name in named]

    def write() -> None:
        for panel in np.ravel(panels):
            panel.set_xticks([*numbers, *named.values()], [*map(write_number, numbers), *words])
            panel.xaxis.set_minor_locator(NullLocator())

    page.fit = write


def end(data: xr.Dataset, **cell: Any) -> np.ndarray:
    """Returns the regret at T of one cell, [seed] or with the dimensions that are left."""
    return data.regret.sel(cell).isel(time=-1).values
