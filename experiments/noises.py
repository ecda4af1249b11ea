"""Laws of noise (not in the paper): regret of CDP-MAB and KL-SE against the leak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
from fmab_jax.plots import style

AGENTS, ARMS, HORIZON, SEEDS = 50, 100, 10**5, 200
ALGORITHMS = {"CDP-MAB": fmab.cdp_mab, "KL-SE": fmab.kl_se}
NOISES = {
    "Laplace": "laplace",
    "discrete Laplace": "discrete_laplace",
    "Gaussian": "gaussian",
    "Skellam": "skellam",
}
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0)
VIEWS = {"messages": "a message leaks", "sum": "the sum of 50 leaks"}
ALT = (
    "Regret at the horizon against the leak, for four laws of noise. Where a message may leak so "
    "much, Laplace noise, continuous or discrete, has the least regret with both algorithms; "
    "Gaussian noise has the most, and Skellam noise leaves it for Laplace noise as the leak grows. "
    "Where the sum over agents may leak so much, the four laws are close: with CDP-MAB Gaussian "
    "noise has the least at small leaks, with KL-SE Laplace noise."
)
QUICK = {"seeds": 10}
horizons = common.one_horizon(HORIZON)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> xr.Dataset:
    """Runs both algorithms with every noise, at every leak of each view, at most `SEEDS` seeds."""
    count = min(seeds, SEEDS, (quick or {}).get("seeds", SEEDS))
    parts = [
        fmab.sweep(
            ALGORITHMS,
            agents=AGENTS,
            arms=ARMS,
            leak=list(LEAKS),
            view=view,
            mechanism=NOISES,
            horizon=horizon,
            seeds=count,
            times=[horizon],
            store=store and store.with_name(f"{store.name}-{view}"),
        ).regret.load()
        for view in VIEWS
    ]
    return xr.concat(parts, xr.DataArray(list(VIEWS), dims="view", name="view")).to_dataset()


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret at the horizon against the leak, a panel for each algorithm and view."""
    ((horizon, data),) = results.items()
    rows: list[dict[str, Any]] = []
    for view in VIEWS:
        for title in ALGORITHMS:
            for label in NOISES:
                for leak in LEAKS:
                    cell = data.regret.sel(view=view, algorithm=title, mechanism=label, leak=leak)
                    mean, low, high = common.interval(cell.isel(time=-1).values)
                    row = {"T": horizon, "view": view, "algorithm": title, "noise": label}
                    rows.append(row | {"leak": leak, "regret": mean, "lower": low, "upper": high})
    seeds = data.sizes["seed"]
    caption = (
        f"M = {AGENTS} agents, K = {ARMS} arms, T = {common.power(horizon)} slots, {seeds} seeds. "
        "Markers: means over the seeds, with 95 % intervals (Student t). Leak: ε of one reward; of "
        "a message up to δ = 10⁻⁶ where the noise has no pure ε, of a sum always up to δ = 10⁻⁶."
    )
    picture = pictures.Picture("noises", page(rows), caption, ALT, rows)
    return pictures.publish(picture, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns the function that draws the rows of the CSV."""

    def draw(page: pictures.Page) -> None:
        panels = [(title, view) for view in VIEWS for title in ALGORITHMS]
        page.figure.set_size_inches(pictures.PAGE, 2.4)
        axes = page.figure.subplots(1, len(panels), sharey=True)
        for panel, (title, view) in zip(axes, panels, strict=True):
            for number, label in enumerate(NOISES):
                points = [
                    row
                    for row in rows
                    if (row["algorithm"], row["view"], row["noise"]) == (title, view, label)
                ]
                leaks, means, low, high = (
                    np.array([float(row[name]) for row in points])
                    for name in ("leak", "regret", "lower", "upper")
                )
                line = panel.errorbar(
                    leaks,
                    means,
                    [means - low, high - means],
                    label=label,
                    color=style.COLOURS[number],
                    marker="os^D"[number],
                    ls=("-", "--", "-.", ":")[number],
                    ms=3,
                    lw=1,
                    capsize=1.5,
                )
                if panel is axes[0]:
                    page.handles = [*page.handles, line]
            panel.set(xscale="log", yscale="log")
            panel.set_title(title, size="medium")
            panel.set_xlabel(f"{VIEWS[view]}, ε")
        axes[0].set_ylabel("regret at T")

    return draw
