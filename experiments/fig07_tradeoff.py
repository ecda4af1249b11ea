"""Figure 7: final regret of CDP-MAB against its communication cost, for all pairs (p, R).

The paper: a clear trade-off; R = 5, p = 1 costs about as much as no limit and has its regret. As
in figure 6, the gap that a budgeted schedule is built for is open: the instance's own, or 1/16.
Each has a picture of its own.
"""

from pathlib import Path

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, pictures
from experiments.fig06_rounds import FILES, GAPS, ROUNDS, budget_in_words, name_of
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]
SERVER_PRICE = 25
MARKERS = ("o", "s", "^", "D", "v")
COLOURS = (*style.COLOURS[:4], "black")
OPEN = {"markerfacecolor": "white", "markeredgewidth": 0.9, "zorder": 3}
TOLD = 1  # the p whose budgets are told beside the markers
HEIGHT = 2.1


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every pair with both gaps."""
    return fmab.sweep(
        fmab.cdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        schedule_gap=GAPS,
        participation=PARTICIPATIONS,
        rounds=ROUNDS,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a picture for each gap."""
    return [path for gap in GAPS for path in _draw(gap, results, folder)]


def _draw(gap: str, results: common.Results, folder: Path) -> list[Path]:
    """Draws a point for each pair, a line through the budgets of one p, and none to no budget."""
    results = {horizon: data.sel(schedule_gap=gap) for horizon, data in results.items()}
    finals = {
        horizon: fmab.final_table(data, level=common.LEVEL, server_price=SERVER_PRICE)
        for horizon, data in results.items()
    }

    def page(page: pictures.Page) -> None:
        x = f"cost at T, {SERVER_PRICE} per link"
        axes = page.panels(["regret at T, sum over agents"], common.titles(results), x, HEIGHT)[0]
        notes, places = [], []
        for panel, table in zip(axes, finals.values(), strict=True):
            for p, colour, marker in zip(PARTICIPATIONS, COLOURS, MARKERS, strict=True):
                _line(panel, table.sel(participation=p), color=colour, marker=marker)
            panel.set_yscale("log")
            panel.margins(x=0.06, y=0.06)
            notes.append(_numbers(table))
            places.append(_drawn(table))

        def fit() -> None:
            for panel, words, lines in zip(axes, notes, places, strict=True):
                pictures.write_beside(panel, words, lines)

        page.fit = fit
        page.handles = [
            Line2D([], [], color=colour, marker=marker, ms=3.2, lw=0.8, label=f"p = {p:g}")
            for p, colour, marker in zip(PARTICIPATIONS, COLOURS, MARKERS, strict=True)
        ] + [Line2D([], [], color="0.3", ls="none", ms=3.6, label="no budget", **OPEN, marker="o")]

    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "In a round N = ⌈pM⌉ agents report",
        "Lines join the budgets R = 2, 3, 4 and 5 of one p, in this order; R stands beside the "
        f"markers of p = {TOLD:g}. Open markers, which no line reaches: no "
        "budget, of the p with that shape and colour",
        budget_in_words(gap),
        bars="Points: means over the seeds; bars",
    )
    last = max(results)
    most, none = (finals[last].sel(participation=1).isel(rounds=i) for i in (-2, -1))
    alt = (
        "Five falling lines, one for each p: more rounds cost more and have less regret. At "
        f"T = {common.whole(last)} and p = 1, R = {ROUNDS[-2]} costs {float(most.cost):,.0f} for a "
        f"regret of {float(most.regret):,.0f}, no budget costs {float(none.cost):,.0f} for "
        f"{float(none.regret):,.0f}."
    )
    rows = [
        {
            "T": horizon,
            "p": p,
            "R": name_of(rounds).removeprefix("R = "),
            **{
                name: tuple(
                    float(table[f"{name}{end}"].sel(participation=p).isel(rounds=i))
                    for end in ("", "_lower", "_upper")
                )
                for name in ("cost", "regret")
            },
        }
        for horizon, table in finals.items()
        for p in PARTICIPATIONS
        for i, rounds in enumerate(ROUNDS)
    ]
    name = f"fig07_tradeoff{FILES[gap]}"
    return pictures.publish(pictures.Picture(name, page, caption, alt, rows), folder)


def _line(panel: Axes, row: xr.Dataset, color: str, marker: str) -> None:
    """Draws the points of one p with intervals both ways; a line joins those with a budget."""
    panel.vlines(row.cost, row.regret_lower, row.regret_upper, color=color, lw=0.7)
    panel.hlines(row.regret, row.cost_lower, row.cost_upper, color=color, lw=0.7)
    budgets, free = row.isel(rounds=slice(-1)), row.isel(rounds=-1)
    panel.plot(budgets.cost, budgets.regret, color=color, marker=marker, ms=3.2, lw=0.7)
    panel.plot(free.cost, free.regret, color=color, marker=marker, ms=3.6, ls="none", **OPEN)


def _drawn(table: xr.Dataset) -> list[list[tuple[float, float]]]:
    """Returns the lines and bars of a panel, which numbers must not cover."""
    lines = [
        [*zip(row.cost.values[:-1].tolist(), row.regret.values[:-1].tolist(), strict=True)]
        for row in (table.sel(participation=p) for p in PARTICIPATIONS)
    ]
    for cost, low, high, regret, least, most in zip(
        *(
            table[f"{name}{end}"].values.flat
            for name in ("cost", "regret")
            for end in ("", "_lower", "_upper")
        ),
        strict=True,
    ):
        lines += [[(low, regret), (high, regret)], [(cost, max(least, 1.0)), (cost, most)]]
    return lines


def _numbers(table: xr.Dataset) -> list[pictures.Note]:
    """Returns the budgets that are told beside the markers of one line."""
    row, colour = table.sel(participation=TOLD), COLOURS[PARTICIPATIONS.index(TOLD)]
    places = zip(row.cost.values.tolist(), row.regret.values.tolist(), strict=True)
    return [
        pictures.Note(at, str(rounds), colour)
        for at, rounds in zip(places, ROUNDS, strict=True)
        if rounds is not None
    ]
