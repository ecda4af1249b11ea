"""Laws of noise (not in the paper): regret of CDP-MAB and KL-SE against the leak."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
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
_COMPARISONS = len(ALGORITHMS) * (len(NOISES) - 1) * len(LEAKS) * len(VIEWS)
_LEVEL = 1 - (1 - common.LEVEL) / _COMPARISONS
DELTA = 1e-6
# Laws of whole numbers: the chance of 0 at a scale.
INTEGERS: Mapping[str, Callable[[float], float]] = {
    "discrete_laplace": lambda scale: math.tanh(0.5 / scale),
    "skellam": lambda scale: float(scipy.special.ive(0, scale**2)),
}
# How much more regret a law has than the one with the least: paired, all comparisons at 95 %.
MORE = "minus the least"
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
                    cells = data.regret.sel(view=view, algorithm=title, leak=leak).isel(time=-1)
                    cell = cells.sel(mechanism=label)
                    mean, low, high = common.interval(cell.values)
                    row = {"T": horizon, "view": view, "algorithm": title, "noise": label}
                    row |= {"leak": leak, "regret": mean, "lower": low, "upper": high}
                    least = cells.isel(mechanism=int(cells.mean("seed").argmin("mechanism")))
                    more = common.interval((cell - least).values, _LEVEL)
                    rows.append(row | {MORE: more})
    seeds = data.sizes["seed"]
    caption = (
        f"M = {AGENTS} agents, K = {ARMS} arms, T = {common.power(horizon)} slots, {seeds} seeds. "
        "Markers: means over the seeds, with 95 % intervals (Student t). Leak: ε of one reward; of "
        "a message up to δ = 10⁻⁶ where the noise has no pure ε, of a sum always up to δ = 10⁻⁶. "
        "Who has the least is decided by paired differences, all comparisons together at 95 %."
    )
    alt = f"Regret at the horizon against the leak, for four laws of noise. {describe(rows)}"
    picture = pictures.Picture("noises", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """Says which laws have the least regret, or not surely more, by view, algorithm and leak."""
    sentences = []
    for view, words in VIEWS.items():
        parts = []
        for title in ALGORITHMS:
            leaks: dict[str, list[str]] = {}
            for leak in LEAKS:
                laws = find_least(rows, view, title, leak)
                leaks.setdefault(" or ".join(laws), []).append(f"{leak:g}")
            texts = [
                f"{laws} noise at {'every leak' if len(at) == len(LEAKS) else seen.listed(at)}"
                for laws, at in leaks.items()
            ]
            parts.append(f"{title} has the least regret with {', '.join(texts)}")
        sentences.append(f"Where {words} ε, {'; '.join(parts)}.")
    return f"{' '.join(sentences)} Between laws that are joined by “or” the runs do not decide."


def find_least(
    rows: Sequence[Mapping[str, Any]], view: str, algorithm: str, leak: float
) -> list[str]:
    """Returns the laws whose regret is not surely above the least, the least first."""
    cell = (view, algorithm, leak)
    found = [row for row in rows if (row["view"], row["algorithm"], row["leak"]) == cell]
    near = sorted((row[MORE][0], row["noise"]) for row in found if row[MORE][1] <= 0)
    return [law for _, law in near]


def find_zeros(mechanism: str, leak: float) -> float:
    """Returns the chance that noise in whole numbers is 0, where a message leaks so much."""
    options = {} if mechanism == "discrete_laplace" else {"delta": DELTA}
    row, *_ = fmab.privacy_ledger(fmab.kl_se(leak, mechanism=mechanism, **options), AGENTS)
    (noise,) = row.noises
    return INTEGERS[mechanism](noise.scale)


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
