"""Means that follow from contexts (not in the paper): regret over time in a linear world."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
from experiments.differences import REGRET, read_bands
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.bands import describe_band
from fmab_jax.parts.plugins import imported

AGENTS, ARMS, HORIZON, SEEDS = 5, 10, 10**4, 200
WORLD = fmab.Linear(5)
# Longer than any horizon: agents are alone.
NEVER = 10**9
ALT = (
    "Regret over time in a linear world, on two logarithmic axes. Regret of UCB1 and of Thompson "
    "sampling grows in a line, and the curves lie on each other: contexts are drawn anew in each "
    "slot, so no arm is better than another on average. Regret of LinUCB grows ever more slowly. "
    "It is lower where agents share their sums, the lower the more often."
)
QUICK = {"seeds": 10}
horizons = common.one_horizon(HORIZON)


@functools.cache
def algorithms() -> dict[str, Algorithm]:
    """Returns the algorithms by label; LinUCB is the example of the documentation."""
    page = Path(__file__).parents[1] / "docs/own_world.md"
    blocks = page.read_text("utf-8").split("```python\n")
    (code,) = [block.split("```")[0] for block in blocks if "class LinUCB" in block]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "linucb.py"
        path.write_text(code, "utf-8")
        linucb = imported(path).LinUCB
    return {
        "UCB1": fmab.ucb1(),
        "Thompson sampling": fmab.thompson(),
        "LinUCB, alone": linucb(period=NEVER),
        "LinUCB, shared every 100 slots": linucb(period=100),
        "LinUCB, shared every 10 slots": linucb(period=10),
    }


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> xr.Dataset:
    """Runs every algorithm, with at most `SEEDS` seeds."""
    count = min(seeds, SEEDS, (quick or {}).get("seeds", SEEDS))
    return fmab.sweep(
        algorithms(),
        agents=AGENTS,
        arms=ARMS,
        world=WORLD,
        horizon=horizon,
        seeds=count,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time."""
    ((horizon, data),) = results.items()
    bands = {
        label: fmab.confidence_band(data.regret.isel(algorithm=index), common.LEVEL)
        for index, label in enumerate(algorithms())
    }
    rows = pictures.band_rows(bands, quantity=REGRET, T=horizon)
    setting = f"M = {AGENTS} agents, K = {ARMS} arms, contexts of {WORLD.dimension} numbers"
    caption = ". ".join(
        [
            common.setting_of(setting, {horizon: [data]}),
            f"Lines: means over the seeds; shaded: {describe_band(common.LEVEL, 'simultaneous')}",
            "Regret is counted against the best arm of each slot and agent",
            "Shared: a server adds up the sums of all agents",
        ]
    )
    picture = pictures.Picture("linear", page(rows), caption + ".", ALT, rows)
    return pictures.publish(picture, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns the function that draws the rows of the CSV."""
    bands = read_bands(rows, REGRET)[int(rows[0]["T"])]

    def draw(page: pictures.Page) -> None:
        ((panel,),) = page.panels(["regret, sum over agents"], [""], height=2.6)
        page.handles = common.draw_bands(panel, bands)
        panel.set(xscale="log", yscale="log")

    return draw
