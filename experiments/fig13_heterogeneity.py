"""Figure 13 (not in the paper): regret at T against how much agents differ.

Its axis is what the spread of the means does: the share of agents whose own best arm is not the
best on average. The setting is that of figure 12, with agents alone besides.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fmab_jax as fmab
from experiments import common, pictures, seen
from experiments.fig12_heterogeneous_structures import (
    AGENTS,
    ARMS,
    EPSILON,
    NAMES,
    STRUCTURES,
    leaks,
    study,
)
from fmab_jax.plots import style

ALGORITHMS = {
    "Single": fmab.single_mab,
    "CDP": fmab.cdp_mab,
    "DDP": fmab.ddp_mab,
    "HDP": fmab.hdp_mab,
}
WAITING = ("DDP", "HDP")
SPREADS = (0, 0.25, 0.5, 0.75, 1)
# Quickly, those of figure 12: their programs are compiled already.
QUICK = {"spread": [0, 1]}

# Every structure at every spread.
sweep = study(ALGORITHMS, list(SPREADS))


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the difference to CDP-MAB on the same rewards, with its interval at each spread."""
    drawn = next(iter(results.values())).sizes["spread"]
    spreads = SPREADS if drawn == len(SPREADS) else QUICK["spread"]
    shares = [100 * common.disagreement(AGENTS, ARMS, spread) for spread in spreads]
    more, levels, references, servers = {}, [], {}, {}
    for horizon, data in results.items():
        last = data.regret.isel(time=-1).load()
        server = last.sel(algorithm="CDP")
        servers[horizon] = server.mean("seed").values.tolist()
        levels.append(f"{min(server.mean('seed')):,.0f} to {max(server.mean('seed')):,.0f}")
        references[horizon] = float(server.mean())
        levels[-1] += f" (T = {common.whole(horizon)})"
        more[horizon] = {
            name: [common.interval(row) for row in (last.sel(algorithm=name) - server).values]
            for name in ALGORITHMS
            if name != "CDP"
        }

    waiting = [[point[0] for name in WAITING for point in each[name]] for each in more.values()]
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, {STRUCTURES}",
        common.renamed(results, algorithm=NAMES),
        "Differences to CDP-MAB on the same rewards, seed by seed",
        f"Mean regret of CDP-MAB at T over the points: {', '.join(levels)}"
        + ". Axis on the right: per cent of its mean over the points"
        * pictures.faint(zip(references.values(), waiting, strict=True)),
        "Horizontal axis: agents whose own best arm is not the best on average. From left to right "
        f"the perturbation of the means is {', '.join(f'{spread:g}' for spread in spreads)} times "
        "the widest one that keeps means in [0, 1] and sums to zero over the agents",
        *seen.absent(
            (f"{spread:g} times" for spread in SPREADS), (f"{s:g} times" for s in spreads)
        ),
        leaks(ALGORITHMS),
        bars="Points: means over the seeds; bars",
    )
    told = [
        f"At T = {common.whole(horizon)}: "
        + "; ".join(f"{NAMES[name]} {seen.course(points)}" for name, points in found.items())
        for horizon, found in more.items()
    ]
    every = [point for found in more.values() for points in found.values() for point in points]
    alt = (
        "Regret beyond that of CDP-MAB, from the first to the last share of misled agents. "
        f"{'. '.join(told)}. {seen.sides(every, 'points')}."
    )
    rows = [
        {"T": horizon, "curve": NAMES[name], "spread": spread, "agents misled (%)": share}
        | {"difference to CDP-MAB at T": interval, "CDP-MAB at T": servers[horizon][place]}
        for horizon, found in more.items()
        for name, intervals in found.items()
        for place, (spread, share, interval) in enumerate(
            zip(spreads, shares, intervals, strict=True)
        )
    ]
    picture = pictures.Picture("fig13_heterogeneity", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws the differences with their intervals from the rows of the CSV."""
    places = {NAMES["DDP"]: 0, NAMES["HDP"]: 0, NAMES["Single"]: 1}
    found: dict[int, dict[str, list[Any]]] = {row["T"]: {} for row in rows}
    levels: dict[int, list[float]] = {row["T"]: [] for row in rows}
    for row in rows:
        point = (row["agents misled (%)"], *row["difference to CDP-MAB at T"])
        found[row["T"]].setdefault(row["curve"], []).append(point)
        levels[row["T"]].append(row["CDP-MAB at T"])
    waiting = [
        [point[1] for name, place in places.items() if not place for point in curves[name]]
        for curves in found.values()
    ]

    def draw(page: pictures.Page) -> None:
        labels = [
            "DDP-MAB and HDP-MAB: more than CDP-MAB at T",
            "agents alone: more than CDP-MAB at T",
        ]
        x = "agents whose own best arm is not the global best\N{NO-BREAK SPACE}(%)"
        axes = page.panels(labels, common.titles(found), x)
        for column, curves in zip(axes.T, found.values(), strict=True):
            page.handles = []
            lowest = [0.0, 0.0]
            for index, (name, place) in enumerate(places.items()):
                look = {"marker": "o", "ms": 2.5, "label": name} | style.look(index)
                shares, mean, lower, upper = zip(*curves[name], strict=True)
                column[place].vlines(shares, lower, upper, color=look["color"], lw=1)
                page.handles += column[place].plot(shares, mean, **look)
                lowest[place] = min(lowest[place], *lower)
            for panel, least in zip(column, lowest, strict=True):
                pictures.line_up(panel)
                panel.set_ylim(1.05 * least)
                panel.margins(x=0.04)
        means = [float(np.mean(each)) for each in levels.values()]
        page.percent(list(axes[0]), means, waiting)

    return draw
