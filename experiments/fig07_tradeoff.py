"""Figure 7: final regret of CDP-MAB against its communication cost, for all pairs (p, R).

The paper: a clear trade-off; R = 5, p = 1 costs about as much as no limit and has its regret. As
in figure 6, the gap that a budgeted schedule is built for is open: the instance's own, or 1/16.
Each has a picture of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, differences, pictures, seen
from experiments.fig06_rounds import FILES, GAPS, NO_BUDGET, ROUNDS, budget_in_words, name_of
from experiments.notes import Note, write_beside
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]
SERVER_PRICE = 25
MARKERS = ("o", "s", "^", "D", "v")
COLOURS = (*style.COLOURS[:4], "black")
# Points that lie on each other are seen around each other: open, and smaller with every p.
SIZES = (7.0, 6.0, 5.2, 4.4, 3.4)
OPEN = {"markerfacecolor": "none", "markeredgewidth": 0.8}
TOLD = 1  # the p whose budgets are told beside the markers
HEIGHT = 2.1
BEATEN = "beaten in regret, cost and leak"
Rows = Sequence[Mapping[str, Any]]

# Every pair with both gaps.
sweep = differences.swept(
    fmab.cdp_mab,
    fmab.Problem.uniform(AGENTS, ARMS),
    epsilon=EPSILON,
    schedule_gap=GAPS,
    participation=PARTICIPATIONS,
    rounds=ROUNDS,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a picture for each gap."""
    return [path for gap in GAPS for path in _draw(gap, results, folder)]


def _draw(gap: str, results: common.Results, folder: Path) -> list[Path]:
    """Draws a point for each pair, a line through the budgets of one p, and none to no budget."""
    results = {horizon: data.sel(schedule_gap=gap) for horizon, data in results.items()}
    rows = [row for T, data in results.items() for row in _rows(T, data)]
    names = {f"p = {p:g}": fmab.cdp_mab(EPSILON, participation=p) for p in PARTICIPATIONS}
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "In a round N = ⌈pM⌉ agents report",
        f"ε is the same for every p, what a message leaks is not. {common.leaks(names, AGENTS)}",
        "Open markers: budgets; lines join R = 2, 3, 4 and 5 of one p, in this order; R stands "
        f"beside the markers of p = {TOLD:g}. Full markers, which no line reaches: no budget, of "
        "the p with that shape and colour. The larger p is, the smaller its markers, so that "
        f"points on each other are seen around each other: {_hidden(rows)}",
        f"In regret, cost and leak together, {_unbeaten(rows)}",
        budget_in_words(gap),
        bars="Points: means over the seeds; bars",
    )
    falling = []
    for lines in group_by_share(rows).values():
        for points in lines.values():
            ends = np.array([(row["cost"][0], -row["regret"][0]) for row in points[:-1]])
            falling.append(bool((np.diff(ends, axis=0) > 0).all()))
    last = max(results)
    most, none = group_by_share(rows)[last][TOLD][-2:]
    alt = (
        f"In {seen.tally(falling, 'lines')}, a line for each p and T, every further round costs "
        f"more and leaves less regret on average. At T = {common.write_count(last)} and p = 1, R = "
        f"{most['R']} costs {most['cost'][0]:,.0f} for a regret of {most['regret'][0]:,.0f}, no "
        f"budget costs {none['cost'][0]:,.0f} for {none['regret'][0]:,.0f}. In regret, "
        f"cost and leak together, {_unbeaten(rows)}."
    )
    name = f"fig07_tradeoff{FILES[gap]}"
    return pictures.publish(pictures.Picture(name, page(rows), caption, alt, rows), folder)


def _rows(horizon: int, data: xr.Dataset) -> list[dict[str, Any]]:
    """Returns every pair, and whether another one has at most its mean regret, cost and leak.

    Pairs that are alike in all three do not beat each other.
    """
    table = fmab.final_table(data, level=common.LEVEL, server_price=SERVER_PRICE)
    rows: list[dict[str, Any]] = []
    for p in PARTICIPATIONS:
        leak = common.leak_of(fmab.cdp_mab(EPSILON, participation=p), AGENTS) or 0.0
        for i, rounds in enumerate(ROUNDS):
            cell = table.sel(participation=p).isel(rounds=i)
            row = {"T": horizon, "p": p, "R": name_of(rounds).removeprefix("R = "), "leak": leak}
            row[BEATEN] = False
            for name in ("cost", "regret"):
                row[name] = tuple(float(cell[f"{name}{e}"]) for e in ("", "_lower", "_upper"))
            rows.append(row)
    points = [(row["regret"][0], row["cost"][0], row["leak"]) for row in rows]
    for row, own in zip(rows, points, strict=True):
        row[BEATEN] = any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True))
            for other in points
        )
    return rows


def group_by_share(rows: Rows) -> dict[int, dict[float, list[Mapping[str, Any]]]]:
    """Returns rows by horizon and p."""
    found: dict[int, dict[float, list[Mapping[str, Any]]]] = {row["T"]: {} for row in rows}
    for row in rows:
        found[row["T"]].setdefault(row["p"], []).append(row)
    return found


def page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws the points of the rows of the CSV, and a line for each p."""
    found = group_by_share(rows)
    leaks = {row["p"]: common.leak_text(row["leak"]) for row in rows}
    looks = dict(zip(leaks, zip(COLOURS, MARKERS, SIZES, strict=True), strict=True))

    def draw(page: pictures.Page) -> None:
        x = f"cost at T, {SERVER_PRICE} per link"
        axes = page.panels(["regret at T, sum over agents"], common.titles(found), x, HEIGHT)[0]
        for panel, lines in zip(axes, found.values(), strict=True):
            for p, points in lines.items():
                _line(panel, points, *looks[p])
            panel.set_yscale("log")
            panel.margins(x=0.06, y=0.06)

        def fit() -> None:
            for panel, lines in zip(axes, found.values(), strict=True):
                write_beside(panel, _numbers(lines[TOLD]), _drawn(lines))

        page.fit = fit
        page.handles = [
            [
                Line2D(
                    [], [], color=colour, marker=marker, ms=size, lw=0.7,
                    label=f"p = {p:g} ({leaks[p]})", **OPEN,
                )
                for p, (colour, marker, size) in looks.items()
            ],
            [Line2D([], [], color="0.3", ls="none", ms=3.6, label="no budget", marker="o")],
        ]  # fmt: skip

    return draw


def _line(panel: Axes, points: Rows, color: str, marker: str, ms: float) -> None:
    """Draws the points of one p with intervals both ways; a line joins those with a budget."""
    cost, regret = (np.array([row[name] for row in points]).T for name in ("cost", "regret"))
    panel.vlines(cost[0], *regret[1:], color=color, lw=0.7)
    panel.hlines(regret[0], *cost[1:], color=color, lw=0.7)
    panel.plot(cost[0, -1], regret[0, -1], color=color, marker=marker, ms=0.8 * ms, ls="none")
    panel.plot(cost[0, :-1], regret[0, :-1], color=color, marker=marker, ms=ms, lw=0.7, **OPEN)


def _drawn(lines: Mapping[float, Rows]) -> list[list[tuple[float, float]]]:
    """Returns the lines and bars of a panel, which numbers must not cover."""
    found = [
        [(row["cost"][0], row["regret"][0]) for row in points[:-1]] for points in lines.values()
    ]
    for row in (row for points in lines.values() for row in points):
        (cost, low, high), (regret, least, most) = row["cost"], row["regret"]
        found += [[(low, regret), (high, regret)], [(cost, max(least, 1.0)), (cost, most)]]
    return found


def _numbers(points: Rows) -> list[Note]:
    """Returns the budgets that are told beside the markers of one line."""
    colour = COLOURS[PARTICIPATIONS.index(TOLD)]
    return [Note((row["cost"][0], row["regret"][0]), str(row["R"]), colour) for row in points[:-1]]


def _unbeaten(rows: Rows) -> str:
    """Says how many pairs no other one beats in regret, cost and leak, and which p they have."""
    told = []
    for horizon, lines in group_by_share(rows).items():
        free = {p: sum(not row[BEATEN] for row in points) for p, points in lines.items()}
        whose = seen.listed(f"{many} of p = {p:g}" for p, many in free.items() if many)
        number = sum(map(len, lines.values()))
        at = f"T = {common.write_count(horizon)}"
        told.append(f"{sum(free.values())} of {number} at {at} ({whose})")
    return f"pairs that no other one beats are {'; '.join(told)}"


def _hidden(rows: Rows) -> str:
    """Says which points have the same mean cost and regret."""
    spots: dict[int, dict[tuple[float, float], list[str]]] = {row["T"]: {} for row in rows}
    for row in rows:
        name = f"p = {row['p']:g}, {'R = ' * (row['R'] != NO_BUDGET)}{row['R']}"
        spots[row["T"]].setdefault((row["cost"][0], row["regret"][0]), []).append(name)
    told = []
    for horizon, found in spots.items():
        same = [" / ".join(names) for names in found.values() if len(names) > 1]
        if same:
            told.append(f"{'; '.join(same)} (T = {common.write_count(horizon)})")
    return f"alike are {'; '.join(told)}" if told else "no two have the same means"
