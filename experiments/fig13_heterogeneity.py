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
from experiments.figures import ARMS, MANY_AGENTS, NAMES, SETTING12, structures, sweep_structures
from fmab_jax.plots import style

ALGORITHMS = {
    "Single": fmab.single_mab,
    "CDP": fmab.cdp_mab,
    "DDP": fmab.ddp_mab,
    "HDP": fmab.hdp_mab,
}
WAITING = ("DDP", "HDP")
MORE = "difference to CDP-MAB at T"
SPREADS = (0, 0.25, 0.5, 0.75, 1)
# Quickly, those of figure 12: their programs are compiled already.
QUICK = {"spread": [0, 1]}

# Every structure at every spread.
sweep = sweep_structures(ALGORITHMS, list(SPREADS))


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the difference to CDP-MAB on the same rewards, with its interval at each spread."""
    drawn = next(iter(results.values())).sizes["spread"]
    spreads = SPREADS if drawn == len(SPREADS) else QUICK["spread"]
    shares = [100 * common.disagreement(MANY_AGENTS, ARMS, spread) for spread in spreads]
    rows, levels = [], []
    for horizon, data in results.items():
        last = data.regret.isel(time=-1).load()
        server = last.sel(algorithm="CDP")
        means = server.mean("seed").values.tolist()
        at = f"T = {common.write_count(horizon)}"
        levels.append(f"{min(means):,.0f} to {max(means):,.0f} ({at})")
        for name in ALGORITHMS:
            more = last.sel(algorithm=name) - server
            rows += [
                {
                    "T": horizon,
                    "curve": NAMES[name],
                    "spread": spread,
                    "agents misled (%)": share,
                    MORE: common.interval(more.values[place]),
                    "CDP-MAB at T": means[place],
                }
                for place, (spread, share) in enumerate(zip(spreads, shares, strict=True))
                if name != "CDP"
            ]
    caption = common.caption(
        SETTING12,
        common.renamed(results, algorithm=NAMES),
        "Differences to CDP-MAB on the same rewards, seed by seed",
        f"Mean regret of CDP-MAB at T over the points: {', '.join(levels)}"
        + ". Axis on the right: per cent of its mean over the points"
        * pictures.faint(zip(*_waiting(rows), strict=True)),
        "Horizontal axis: agents whose own best arm is not the best on average. From left to right "
        f"the perturbation of the means is {', '.join(f'{spread:g}' for spread in spreads)} times "
        "the widest one that keeps means in [0, 1] and sums to zero over the agents",
        *seen.absent(
            (f"{spread:g} times" for spread in SPREADS), (f"{s:g} times" for s in spreads)
        ),
        common.leaks(structures(ALGORITHMS), MANY_AGENTS),
        bars="Points: means over the seeds; bars",
    )
    alt = (
        "Regret of DDP-MAB, HDP-MAB and agents alone beyond that of CDP-MAB, against the share of "
        "agents whose own best arm is not the global best."
    )
    picture = pictures.Picture("fig13_heterogeneity", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


Rows = Sequence[Mapping[str, Any]]


def _curves(rows: Rows) -> dict[int, dict[str, list[Any]]]:
    """Returns the share of misled agents and the difference at each point, by T and curve."""
    curves: dict[int, dict[str, list[Any]]] = {row["T"]: {} for row in rows}
    for row in rows:
        point = row["agents misled (%)"], row[MORE]
        curves[row["T"]].setdefault(row["curve"], []).append(point)
    return curves


def _waiting(rows: Rows) -> tuple[list[float], list[list[float]]]:
    """Returns by T what 100 % is, and all differences of those that wait."""
    parts = [[row for row in rows if row["T"] == T] for T in dict.fromkeys(r["T"] for r in rows)]
    levels = [float(np.mean([row["CDP-MAB at T"] for row in part])) for part in parts]
    waiting = [NAMES[name] for name in WAITING]
    return levels, [[r[MORE][0] for r in part if r["curve"] in waiting] for part in parts]


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws the differences with their intervals from the rows of the CSV."""
    places = {NAMES["DDP"]: 0, NAMES["HDP"]: 0, NAMES["Single"]: 1}
    curves_by_horizon = _curves(rows)

    def draw(page: pictures.Page) -> None:
        labels = [
            "DDP-MAB and HDP-MAB: more than CDP-MAB at T",
            "agents alone: more than CDP-MAB at T",
        ]
        x = "agents whose own best arm is not the global best\N{NO-BREAK SPACE}(%)"
        axes = page.panels(labels, common.titles(curves_by_horizon), x)
        for column, curves in zip(axes.T, curves_by_horizon.values(), strict=True):
            page.handles = []
            lowest = [0.0, 0.0]
            for index, (name, place) in enumerate(places.items()):
                look = {"marker": "o", "ms": 2.5, "label": name} | style.get_line_style(index)
                shares, points = zip(*curves[name], strict=True)
                mean, lower, upper = zip(*points, strict=True)
                column[place].vlines(shares, lower, upper, color=look["color"], lw=1)
                page.handles += column[place].plot(shares, mean, **look)
                lowest[place] = min(lowest[place], *lower)
            for panel, least in zip(column, lowest, strict=True):
                pictures.line_up(panel)
                panel.set_ylim(1.05 * least)
                panel.margins(x=0.04)
        page.percent(list(axes[0]), *_waiting(rows))

    return draw
