"""Figure 5: regret of CDP-MAB when only ceil(p M) agents report in a round.

The paper: the regret at T decreases as p increases. Its epsilon is "fixed" but not named; 1 here,
as in its figure 7. The second row is what the reports that are not sent cost: the paired difference
to p = 1.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every p, without a round budget."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        participation=PARTICIPATIONS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and what fewer reports cost over the logarithm of time."""
    regret, more = {}, {}
    for horizon, data in results.items():
        curves = {name_of(p): data.regret.sel(participation=p) for p in PARTICIPATIONS}
        regret[horizon] = common.paired_bands(curves, name_of(1))
        more[horizon] = common.difference_bands(curves, name_of(1))

    references = {T: float(each[name_of(1)]["mean"][-1]) for T, each in regret.items()}
    members = {name_of(p): fmab.cdp_mab(EPSILON, participation=p) for p in PARTICIPATIONS}
    leaks = [common.leak_text(common.leak_of(each, AGENTS)) for each in members.values()]

    def page(page: pictures.Page) -> None:
        labels = ["regret, sum over agents", "more than with p = 1, paired"]
        axes = page.panels(labels, common.titles(results))
        for (top, bottom), horizon in zip(axes.T, results, strict=True):
            page.handles = common.draw_bands(top, regret[horizon])
            pictures.draw_difference(bottom, more[horizon])
            top.set(xlim=0, ylim=0)
        page.handles = pictures.relabelled(page.handles, leaks)
        page.percent(
            list(axes[1]), references.values(), [pictures.ends(each) for each in more.values()]
        )

    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "In a round N = ⌈pM⌉ agents report",
        common.PAIRED.format("p = 1"),
        "More than with p = 1: difference of regret, seed by seed, over the logarithm of time"
        + pictures.in_percent(references.values(), more.values(), "the regret at T with p = 1"),
        f"ε is the same for every p, what a message leaks is not. {common.leaks(members, AGENTS)}",
    )
    last = max(results)
    found = {p: pictures.end_of(more[last][name_of(p)]) for p in PARTICIPATIONS if p != 1}
    listed = (f"{mean:+,.0f} at p = {p:g}" for p, (mean, _, _) in found.items())
    alt = (
        f"Regret at T = {common.whole(last)}, beside the "
        f"{references[last]:,.0f} of p = 1: {', '.join(listed)}. From the "
        f"smallest p to the largest below 1, the difference {seen.course(list(found.values()))}. "
        f"From the smallest p to p = 1, the leak of a message is {', '.join(leaks)}."
    )
    told = dict(zip(members, leaks, strict=True))
    rows = [
        row | {"leak": told[row["curve"]]}
        for row in pictures.curve_rows({"regret": regret, "difference to p = 1": more})
    ]
    return pictures.publish(
        pictures.Picture("fig05_participation", page, caption, alt, rows), folder
    )


def name_of(participation: float) -> str:
    """Writes how many agents report."""
    return f"p = {participation:g}"
