"""Figure 12: the three structures, where agents are alike and where they differ.

The paper: CDP-MAB has the least regret; DDP-MAB and HDP-MAB pay for exploiting local estimates
while they wait, HDP-MAB less, since its graphs are smaller. M, K and graphs are not stated: the
section has 100 agents, the others 100 arms, and the remark on delays needs graphs that delay. So:
one ring of 100 against five rings of 20.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from fmab_jax.plots import style

AGENTS, ARMS = 100, 100
EPSILON = 1
ALGORITHMS = {"CDP": fmab.cdp_mab, "DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab}
GRAPH, COMPONENTS = "ring", "20x5:ring"
SPREADS = {"homogeneous": 0, "heterogeneous": 1}
NAMES = {"Single": "agents alone", "CDP": "CDP-MAB", "DDP": "DDP-MAB", "HDP": "HDP-MAB"}
STRUCTURES = "DDP-MAB on a ring, HDP-MAB on five components of 20 agents, each a ring"
# Structures differ in colour, rewards in stroke.
LOOKS = [
    {"color": style.COLOURS[colour], "linestyle": style.STROKES[stroke]}
    for stroke in range(len(SPREADS))
    for colour in (1, 2)
]


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every structure on both reward structures, paired."""
    return fmab.sweep(
        ALGORITHMS,
        fmab.Problem.heterogeneous,
        agents=AGENTS,
        arms=ARMS,
        epsilon=EPSILON,
        graph=GRAPH,
        components=COMPONENTS,
        spread=SPREADS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        sum_agents=False,
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the difference to CDP-MAB on the same rewards over the logarithm of time."""
    more: dict[int, dict[str, xr.Dataset]] = {}
    levels = []
    for spread in SPREADS:
        for horizon, data in results.items():
            curves = {name: data.regret.sel(algorithm=name, spread=spread) for name in ALGORITHMS}
            found = common.difference_bands(curves, "CDP")
            labelled = {f"{NAMES[name]}, {spread}": band for name, band in found.items()}
            more.setdefault(horizon, {}).update(labelled)
        server = {T: d.regret.sel(algorithm="CDP", spread=spread) for T, d in results.items()}
        levels.append(common.level_at_end(f"of CDP-MAB, {spread},", server))

    server = {T: d.regret.sel(algorithm="CDP").isel(time=-1) for T, d in results.items()}
    # Of both reward structures, whose means are close.
    references = {T: float(each.mean()) for T, each in server.items()}

    def page(page: pictures.Page) -> None:
        labels = ["regret minus that of CDP-MAB, paired"]
        axes = page.panels(labels, common.titles(results), height=1.9)[0]
        for panel, horizon in zip(axes, results, strict=True):
            page.handles = []
            for (label, band), own in zip(more[horizon].items(), LOOKS, strict=True):
                page.handles += pictures.draw_difference(panel, {label: band}, **own)
        page.percent(list(axes), references.values(), [pictures.ends(b) for b in more.values()])

    share = common.disagreement(AGENTS, ARMS, SPREADS["heterogeneous"])
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, {STRUCTURES}",
        common.renamed(results, algorithm=NAMES),
        "Differences to CDP-MAB on the same rewards, seed by seed, over the logarithm of time"
        + pictures.in_percent(
            references.values(), more.values(), "the mean regret of CDP-MAB at T on both rewards"
        ),
        *levels,
        f"Heterogeneous: {common.DIFFER}; the local best arm of {100 * share:.0f} % of the agents "
        "is not the global best",
        leaks(ALGORITHMS),
    )
    last = max(results)
    found = {
        T: {label: pictures.end_of(band) for label, band in each.items()}
        for T, each in more.items()
    }
    listed = ", ".join(
        f"{mean:+,.0f}, {seen.percent(mean, references[last])} ({label})"
        for label, (mean, _, _) in found[last].items()
    )
    alike, apart = SPREADS
    larger = [
        each[f"{NAMES[name]}, {apart}"][1] > each[f"{NAMES[name]}, {alike}"][2]
        for each in found.values()
        for name in ALGORITHMS
        if name != "CDP"
    ]
    every = [point for each in found.values() for point in each.values()]
    alt = (
        f"Regret beside CDP-MAB, at T = {common.whole(last)}: {listed}. "
        f"{seen.sides(every, 'differences at T')}. Where agents differ it is larger, beyond both "
        f"bands, in {seen.tally(larger, 'pairs of a structure and a T')}."
    )
    rows = pictures.curve_rows({"difference to CDP-MAB": more})
    name = "fig12_heterogeneous_structures"
    return pictures.publish(pictures.Picture(name, page, caption, alt, rows), folder)


def leaks(algorithms: Mapping[str, Any]) -> str:
    """Says what messages leak with each of some structures."""
    over: dict[str, dict[str, str]] = {
        "DDP": {"graph": GRAPH}, "HDP": {"components": COMPONENTS}
    }  # fmt: skip
    members = {
        NAMES[name]: maker(EPSILON, **over.get(name, {})) for name, maker in algorithms.items()
    }
    return common.leaks(members, AGENTS)
