"""Means that change (not in the paper): regret over time where all arms draw new means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from experiments.differences import REGRET, read_bands
from fmab_jax.analysis.bands import describe_band

AGENTS, ARMS, HORIZON, SEEDS = 10, 20, 10**5, 200
WORLDS = {"no change": None, "1 change": "drifting:1", "3 changes": "drifting:3"}
CHANGES = {"no change": 0, "1 change": 1, "3 changes": 3}
ALGORITHMS = {
    "Thompson sampling": fmab.thompson(),
    "UCB1": fmab.ucb1(),
    "GosInE": fmab.gosine("ring"),
    "CDP-MAB, ε = 1": fmab.cdp_mab(1.0),
    "KL-SE, ε = 10": fmab.kl_se(10.0),
}
QUICK = {"seeds": 10}
horizons = common.one_horizon(HORIZON)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> xr.Dataset:
    """Runs every algorithm in every world, with at most `SEEDS` seeds."""
    count = min(seeds, SEEDS, (quick or {}).get("seeds", SEEDS))
    return fmab.sweep(
        list(ALGORITHMS.values()),
        agents=AGENTS,
        arms=ARMS,
        world=WORLDS,
        horizon=horizon,
        seeds=count,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, a panel for each world, with the changes."""
    ((horizon, data),) = results.items()
    rows: list[dict[str, Any]] = []
    for place, world in enumerate(WORLDS):
        regret = data.regret.isel(world=place)
        bands = {
            label: fmab.confidence_band(regret.isel(algorithm=index), common.LEVEL)
            for index, label in enumerate(ALGORITHMS)
        }
        rows += pictures.band_rows(bands, quantity=REGRET, T=horizon, world=world)
    setting = f"M = {AGENTS} agents, K = {ARMS} arms"
    caption = ". ".join(
        [
            common.setting_of(setting, {horizon: [data]}),
            f"Lines: means over the seeds; shaded: {describe_band(common.LEVEL, 'simultaneous')}",
            "Dotted: slots after which every arm draws a new mean from U[0, 1]",
            "Regret is counted against the best arm of each slot",
            common.leaks(ALGORITHMS, AGENTS),
        ]
    )
    picture = pictures.Picture("worlds", page(rows), caption + ".", describe(rows), rows)
    return pictures.publish(picture, folder)


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """Says what is to be seen, and who has the least and the most at T, by the bands."""
    ends: dict[str, dict[str, Mapping[str, Any]]] = {world: {} for world in WORLDS}
    for row in rows:  # in the order of slots
        ends[row["world"]][row["curve"]] = row
    least, most = ({w: name(list(end.values())) for w, end in ends.items()} for name in _EXTREMES)
    places = {"least": least, "most": most}
    found = (
        f"the {word} regret at T is that of {seen.grouped(names)}" for word, names in places.items()
    )
    return (
        "Regret of five algorithms where means never change, change once, and change three times. "
        "Until the first change the panels are equal. From then on regret of CDP-MAB and KL-SE "
        "grows in a line: they play one arm for good. Thompson sampling and GosInE find the new "
        f"best arm, but late. By the bands, {'; '.join(found)}."
    )


def _name_least(ends: Sequence[Mapping[str, Any]]) -> str:
    """Names who may have the least regret: whose band is not above another one."""
    bound = min(float(end["upper"]) for end in ends)
    return " or ".join(end["curve"] for end in ends if float(end["lower"]) <= bound)


def _name_most(ends: Sequence[Mapping[str, Any]]) -> str:
    """Names who may have the most regret: whose band is not below another one."""
    bound = max(float(end["lower"]) for end in ends)
    return " or ".join(end["curve"] for end in ends if float(end["upper"]) >= bound)


_EXTREMES = (_name_least, _name_most)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns the function that draws the rows of the CSV."""
    horizon = int(rows[0]["T"])
    bands = {
        world: read_bands([row for row in rows if row["world"] == world], REGRET)[horizon]
        for world in WORLDS
    }

    def draw(page: pictures.Page) -> None:
        axes = page.panels(["regret, sum over agents"], list(WORLDS), height=2.0)[0]
        top = max(float(band["upper"].max()) for group in bands.values() for band in group.values())
        for panel, (world, group) in zip(axes, bands.items(), strict=True):
            page.handles = common.draw_bands(panel, group)
            changes = CHANGES[world]
            for number in range(1, changes + 1):
                slot = horizon * number // (changes + 1)
                panel.axvline(slot, color="0.5", lw=0.7, ls=":", zorder=0)
            panel.set(xlim=0, ylim=(0, 1.03 * top))

    return draw
