"""Figure 4: regret of CDP-MAB at four levels of privacy.

The paper: less epsilon, more regret; it calls epsilon = 1 "the non-private case". It is run with
its noise here, beside a run that has none. The second row is what privacy costs: the paired
difference to no noise.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures

AGENTS, ARMS = 50, 100
EPSILONS = [0.1, 0.3, 0.5, 1, None]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every epsilon at p = 1, without a round budget."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILONS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def name_of(epsilon: float | None) -> str:
    """Writes a level of privacy, and what a message leaks with it."""
    return "no noise" if epsilon is None else f"ε = {epsilon:g} (Nε = {AGENTS * epsilon:g})"


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and the price of privacy over the logarithm of time."""
    regret, price = {}, {}
    for horizon, data in results.items():
        curves = {name_of(e): data.regret.isel(epsilon=i) for i, e in enumerate(EPSILONS)}
        regret[horizon] = common.paired_bands(curves, "no noise")
        price[horizon] = common.difference_bands(curves, "no noise")

    def page(page: pictures.Page) -> None:
        labels = ["regret, sum over agents", "price of privacy, paired"]
        axes = page.panels(labels, common.titles(results))
        for (top, bottom), horizon in zip(axes.T, results, strict=True):
            page.handles = common.draw_bands(top, regret[horizon])
            pictures.draw_difference(bottom, price[horizon])
            top.set(xlim=0, ylim=0)

    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, all report (p = 1)",
        results,
        common.PAIRED.format("no noise"),
        "A message leaks Nε of a reward (N = M). Price of privacy: regret minus regret without "
        "noise, seed by seed, over the logarithm of time",
    )
    last = max(results)
    found = {label: float(band["mean"][-1]) for label, band in price[last].items()}
    alt = (
        "Regret bends after the first rounds in all curves. At T = "
        f"{common.whole(last)} noise adds "
        + ", ".join(f"{found[name_of(e)]:,.0f} at ε = {e:g}" for e in EPSILONS if e is not None)
        + f" to {float(regret[last]['no noise']['mean'][-1]):,.0f}."
    )
    rows = pictures.curve_rows({"regret": regret, "price of privacy": price})
    picture = pictures.Picture("fig04_epsilon", page, caption, alt, rows)
    return pictures.publish(picture, folder)
