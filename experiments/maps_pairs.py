"""Maps of participation and round budget: who does better than agents alone.

Theorem 2 claims a factor min{M, .}, and Remark 2 the R from which communication does not hurt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

import fmab_jax as fmab
from experiments import common, pictures, seen, verdicts
from experiments.maps_common import AGENTS, ARMS, EPSILON, caption, run_paper
from fmab_jax.plots import style

Rows = Sequence[Mapping[str, Any]]

PARTICIPATIONS = (0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1)
ROUNDS = (None, 2, 3, 4, 5, 6, 7, 8)


def sweep_pairs(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs every participation with every budget, and with none, under the oracle's gap."""
    own = {"epsilon": EPSILON, "participation": list(PARTICIPATIONS), "rounds": list(ROUNDS)}
    return run_paper(fmab.cdp_mab, horizon, seeds, store, **own)


def regret_without(pairs: xr.Dataset) -> np.ndarray:
    """Returns [seed] regret at T of all agents without a budget."""
    return pairs.regret.sel(participation=1, rounds="none").isel(time=-1).values


def remark(agents: int, participation: float, horizon: int) -> float:
    """Returns the R from which Remark 2 promises no more regret than without communication."""
    log = math.log(participation * agents)
    return 4 * math.log(horizon) / (3 * log) if log > 0 else math.inf


def pair_rows(horizon: int, pairs: xr.Dataset, alone: np.ndarray | None) -> list[dict[str, Any]]:
    """Returns every (p, R): regret over that of all agents without a budget, and who beats it."""
    last = pairs.regret.isel(time=-1).load()
    without = regret_without(pairs)
    single = None if alone is None else verdicts.ratio(alone, without)
    rows = []
    for p in last.participation.values.tolist():
        for budget in last.rounds.values:
            own = last.sel(participation=p, rounds=budget).values
            row = {
                "T": horizon,
                "p": p,
                "R": budget if budget == "none" else int(budget),
                "over R_C": tuple(verdicts.ratio(own, without)),
                "R of Remark 2": remark(AGENTS, p, horizon),
                "T^(2/R) / p^(3/2)": horizon ** (0 if budget == "none" else 2 / int(budget))
                / p**1.5,
            }
            if single is not None and alone is not None:
                row["agents alone over R_C"] = tuple(single)
                row["over agents alone"] = tuple(verdicts.ratio(own, alone))
            rows.append(row)
    return rows


def crossings(values: np.ndarray, level: float) -> bool:
    """Tells whether a map passes a level: whether a contour of it can be drawn."""
    return bool(values.min() < level < values.max())


def _maps(rows: Rows) -> tuple[dict[int, np.ndarray], dict[int, float | None], list[int], Any]:
    """Returns the map [p, R] of each horizon, what agents alone have there, budgets and shares."""
    budgeted = [row for row in rows if row["R"] != "none"]
    budgets, shares = (list(dict.fromkeys(row[name] for row in budgeted)) for name in ("R", "p"))
    cells: dict[int, list[float]] = {row["T"]: [] for row in rows}
    alone: dict[int, float | None] = {}
    for row in budgeted:
        cells[row["T"]].append(row["over R_C"][0])
        alone[row["T"]] = (
            row["agents alone over R_C"][0] if "agents alone over R_C" in row else None
        )
    maps = {T: np.reshape(each, (len(shares), len(budgets))) for T, each in cells.items()}
    return maps, alone, budgets, shares


def draw_pairs(results: Mapping[int, Mapping[str, xr.Dataset]]) -> list[pictures.Picture]:
    """Draws the ratio as a heat map over R and p, a panel for each horizon."""
    rows = []
    for T, found in results.items():
        single = None
        if "alone" in found:
            single = found["alone"].regret.sel(epsilon_message=EPSILON).isel(time=-1).values
        rows += pair_rows(T, found["pairs"], single)
    maps, alone, _, shares = _maps(rows)
    drawn_alone = all(each is not None for each in alone.values())
    of = {T: [row for row in rows if row["T"] == T] for T in maps}
    told = [_told_pairs(T, of[T], maps[T], alone[T]) for T in maps]
    words = caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, oracle gap",
        {T: [found["pairs"]] for T, found in results.items()},
        "Colour: regret at T over that of all agents without a budget (R_C), ratio of means over "
        "the same seeds. Lines: where it is that of agents alone, where it is M, and the R from "
        "which Remark 2 promises no more regret than without communication, "
        "R = 4 log T / (3 log pM)",
        "ε is the same for every p, what a message leaks is not. "
        + common.leaks(
            {f"p = {p:g}": fmab.cdp_mab(EPSILON, participation=p) for p in shares}
            | ({"agents alone": fmab.single_mab(EPSILON)} if drawn_alone else {}),
            AGENTS,
        ),
        *seen.absent(["agents alone"], ["agents alone"] * drawn_alone),
        *told,
    )
    alt = " ".join(text + "." for text in told)
    return [pictures.Picture("maps_pairs", page(rows), words, alt, rows)]


def page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws the heat maps from the rows of the CSV."""
    maps, alone, budgets, shares = _maps(rows)
    low, high = min(each.min() for each in maps.values()), max(each.max() for each in maps.values())
    # Dark lines on dark cells, and light ones in the legend, need a border.
    strokes = {"as agents alone": "white", f"M = {AGENTS}": "#D55E00"}
    border = {"path_effects": [withStroke(linewidth=2.4, foreground="black")]}
    remark_2 = {
        "color": "black", "linestyle": (0, (4, 1.5)), "linewidth": 1.2,
        "path_effects": [withStroke(linewidth=2.6, foreground="white")],
    }  # fmt: skip
    # Levels of which a contour can be drawn.
    levels = {
        T: {
            name: level
            for name, level in zip(strokes, (alone[T], AGENTS), strict=True)
            if level is not None and crossings(maps[T], level)
        }
        for T in maps
    }

    def draw(page: pictures.Page) -> None:
        axes = page.panels(["share p that reports"], common.titles(maps), "round budget R")
        for panel, (horizon, ratios) in zip(axes[0], maps.items(), strict=True):
            panel.grid(False)
            mesh = panel.pcolormesh(
                _edges(budgets), np.exp(_edges(np.log(shares))), ratios,
                norm=LogNorm(low, high), cmap="viridis", rasterized=True,
            )  # fmt: skip
            panel.set(yscale="log")
            for name, level in levels[horizon].items():
                look = {"colors": strokes[name], "linewidths": 1.2}
                panel.contour(budgets, shares, ratios, [level], **look).set(**border)
            fine = np.geomspace(shares[0], shares[-1], 200)
            promised = np.array([remark(AGENTS, p, horizon) for p in fine])
            panel.plot(promised, fine, **remark_2)
            ends = np.exp(_edges(np.log(shares)))
            panel.set(xlim=(budgets[0] - 0.5, budgets[-1] + 0.5), ylim=(ends[0], ends[-1]))
        bar = page.figure.colorbar(
            mesh, ax=axes.ravel().tolist(), pad=0.01, fraction=0.1, aspect=30,
            location="bottom" if page.narrow else "right",
        )  # fmt: skip
        bar.set_label("regret / no budget", fontsize=style.FONT)
        bar.ax.tick_params(labelsize=style.FONT, width=0.6, length=2.5, pad=2, which="both")
        ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= t <= high]
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks], minor=False)
        bar.ax.minorticks_off()
        page.handles = [
            Line2D([], [], color=colour, lw=1.2, label=name, **border)
            for name, colour in strokes.items()
            if any(name in found for found in levels.values())
        ]
        page.handles.append(Line2D([], [], label="Remark 2, to its right", **remark_2))

    return draw


def _told_pairs(
    horizon: int, rows: Sequence[Mapping[str, Any]], ratios: np.ndarray, alone: float | None
) -> str:
    """Says what one horizon's map shows: its range, and who beats agents alone."""
    budgeted = [row for row in rows if row["R"] != "none"]
    told = (
        f"At T = {common.write_count(horizon)} the regret over that of all agents without a "
        "budget is "
        f"{ratios.min():.2g} to {ratios.max():.3g}"
    )
    over = sum(row["over R_C"][1] > AGENTS for row in budgeted)
    means = sum(row["over R_C"][0] > AGENTS for row in budgeted)
    told += (
        f", its {100 * verdicts.LEVEL:g} % interval above M in {over} of {len(budgeted)} cells "
        f"(the mean in {means})"
    )
    if alone is None:
        return told
    promised = [row for row in budgeted if row["R"] >= row["R of Remark 2"]]
    worse = [row for row in budgeted if row["over agents alone"][1] > 1]
    broken = [row for row in promised if row["over agents alone"][1] > 1]
    return told + (
        f". Agents alone have {alone:.3g}. Over agents alone, the {100 * verdicts.LEVEL:g} % "
        f"interval of the ratio lies above 1 in {len(worse)} cells, {len(broken)} of them among "
        f"the {len(promised)} for which Remark 2 promises no more"
    )


def _edges(places: Sequence[float] | np.ndarray) -> np.ndarray:
    """Returns the borders of cells around places: half-way, and as far beyond the ends."""
    places = np.asarray(places, float)
    inner = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - inner[0]], inner, [2 * places[-1] - inner[-1]]])
