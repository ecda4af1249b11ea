"""Figure 4: regret of CDP-MAB at four levels of privacy.

The paper: less epsilon, more regret; it calls epsilon = 1 "the non-private case". It is run with
its noise here, beside a run that has none. The second row is what privacy costs: the paired
difference to no noise.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen

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

    references = {T: float(each["no noise"]["mean"][-1]) for T, each in regret.items()}

    def page(page: pictures.Page) -> None:
        labels = ["regret, sum over agents", "price of privacy, paired"]
        axes = page.panels(labels, common.titles(results))
        for (top, bottom), horizon in zip(axes.T, results, strict=True):
            page.handles = common.draw_bands(top, regret[horizon])
            pictures.draw_difference(bottom, price[horizon])
            top.set(xlim=0, ylim=0)
        page.percent(
            list(axes[1]), references.values(), [pictures.ends(each) for each in price.values()]
        )

    members = {name_of(e).partition(" (")[0]: fmab.cdp_mab(e) for e in EPSILONS}
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, all report (p = 1)",
        results,
        common.PAIRED.format("no noise"),
        f"{common.leaks(members, AGENTS)}. Price of "
        "privacy: regret minus regret without noise, seed by seed, over the logarithm of time"
        + pictures.in_percent(references.values(), price.values(), "the regret at T without noise"),
    )
    last = max(results)
    noisy = {name_of(e): e for e in EPSILONS if e is not None}
    found = {label: price[last][label] for label in noisy}
    means = [float(band["mean"][-1]) for band in found.values()]
    slot, shares = _by_then(results[last])
    alt = (
        f"At T = {common.whole(last)}, {100 * min(shares):.0f} to {100 * max(shares):.0f} % of a "
        f"curve's regret is there at slot {common.whole(slot)}. Noise adds "
        + ", ".join(f"{m:,.0f} at ε = {e:g}" for m, e in zip(means, noisy.values(), strict=True))
        + f" to {references[last]:,.0f}. From the smallest ε to the largest, "
        f"what it adds {seen.course([pictures.end_of(band) for band in found.values()])}."
    )
    rows = pictures.curve_rows({"regret": regret, "price of privacy": price})
    picture = pictures.Picture("fig04_epsilon", page, caption, alt, rows)
    return pictures.publish(picture, folder)


def _by_then(data: xr.Dataset) -> tuple[int, list[float]]:
    """Returns the recorded slot nearest to a tenth of T, and each curve's share of regret by it."""
    means = data.regret.mean("seed").transpose("epsilon", "time").values
    slots = data.time.values
    place = int(abs(slots - slots[-1] / 10).argmin())
    return int(slots[place]), [float(share) for share in means[:, place] / means[:, -1]]
