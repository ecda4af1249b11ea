"""Maps of a round budget over the gap that its schedule is built for.

The paper's figures 6 and 7 fix neither the gap nor T. Two of its sentences are looked for at every
gap: "R = 5 is close to figure 4", and "R = 4 and 5 almost the same".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, pictures, seen, verdicts
from experiments.maps_common import (
    AGENTS,
    ARMS,
    EPSILON,
    caption,
    name_ticks,
    run_paper,
)
from experiments.maps_pairs import regret_without
from experiments.verdicts import TOLERANCE, Measured
from fmab_jax.plots import style

ORACLE = "oracle"
# Forty steps of 12 %: no sentence falls between two gaps unseen.
GAPS = tuple(float(f"{gap:.3g}") for gap in np.geomspace(0.005, 0.5, 41))
BUDGETS = (2, 3, 4, 5, 6)
# Differences that count as "close" and "almost the same": half the rule, the rule, and twice it.
TOLERANCES = tuple(scale * TOLERANCE for scale in verdicts.SCALES.values())
# Sentence: the two budgets whose regrets it compares.
SENTENCES: dict[str, tuple[int, int | None]] = {
    "R = 5 close to no budget": (5, None),
    "R = 4 and 5 alike": (4, 5),
}
BOTH = "both"


def sweep_gaps(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs every budget with every gap that a schedule is built for, and with the oracle's."""
    gaps = {ORACLE: None} | {f"{gap:g}": gap for gap in GAPS}
    own = {"epsilon": EPSILON, "schedule_gap": gaps, "rounds": list(BUDGETS)}
    return run_paper(fmab.cdp_mab, horizon, seeds, store, **own)


def sentences(cells: xr.DataArray, without: np.ndarray) -> dict[str, list[Measured]]:
    """Returns, for each sentence and gap, by what share the first regret exceeds the second."""
    found: dict[str, list[Measured]] = {}
    for words, (first, second) in SENTENCES.items():
        found[words] = []
        for gap in cells.schedule_gap.values:
            own = cells.sel(schedule_gap=gap)
            other = without if second is None else own.sel(rounds=second).values
            found[words].append(verdicts.excess(own.sel(rounds=first).values, other))
    return found


def held(found: Mapping[str, Sequence[Measured]], tolerance: float) -> dict[str, np.ndarray]:
    """Returns [gap] where each sentence holds within a tolerance, and where both do."""
    holds = {
        words: np.array(
            [verdicts.sided(each, -tolerance, tolerance) == verdicts.HOLDS for each in measured]
        )
        for words, measured in found.items()
    }
    return holds | {BOTH: np.logical_and.reduce(list(holds.values()))}


def spans(gaps: Sequence[float], holds: Sequence[bool]) -> list[tuple[float, float]]:
    """Returns the runs of neighbouring gaps at which something holds, first and last."""
    found: list[tuple[float, float]] = []
    for place, (gap, holding) in enumerate(zip(gaps, holds, strict=True)):
        if holding and place and holds[place - 1]:
            found[-1] = found[-1][0], gap
        elif holding:
            found.append((gap, gap))
    return found


def listed(labels: Sequence[str], holds: np.ndarray) -> str:
    """Writes the gaps at which something holds."""
    gaps = [float(label) for label in labels if label != ORACLE]
    own = [bool(value) for label, value in zip(labels, holds, strict=True) if label != ORACLE]
    told = [f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in spans(gaps, own)]
    told += [ORACLE] * any(v for label, v in zip(labels, holds, strict=True) if label == ORACLE)
    return " and ".join(told) or "no gap"


def share_of(events: Any) -> tuple[float, ...]:
    """Returns the share of seeds that something befell, with its Clopper-Pearson interval."""
    return tuple(verdicts.share(events, common.LEVEL))


def gap_rows(horizon: int, data: xr.Dataset, without: np.ndarray) -> list[dict[str, Any]]:
    """Returns every cell: regret against no budget, budgets spent, worse arms, sentences."""
    last = data.isel(time=-1).load()
    measured = sentences(last.regret, without)
    holds = {tolerance: held(measured, tolerance) for tolerance in TOLERANCES}
    rows = []
    for place, gap in enumerate(last.schedule_gap.values):
        for budget in last.rounds.values:
            cell = last.sel(schedule_gap=gap, rounds=budget)
            row = {
                "T": horizon,
                "gap": gap,
                "R": int(budget),
                "regret": common.interval(cell.regret.values),
                "over no budget": tuple(verdicts.ratio(cell.regret.values, without)),
                "spends the budget": share_of(cell.rounds_made.values == budget),
                "commits to a worse arm": share_of(cell.worse_arm_played.values),
            }
            for words, found in measured.items():
                row[f"{words}: excess"] = tuple(found[place])
            for tolerance, each in holds.items():
                for words, where in each.items():
                    row[f"{words}, within {100 * tolerance:g} %"] = bool(where[place])
            rows.append(row)
    return rows


def draw_gaps(results: Mapping[int, Mapping[str, xr.Dataset]]) -> list[pictures.Picture]:
    """Draws regret against no budget, and what happens to the budget, over the gap."""
    rows = {
        T: gap_rows(T, found["gaps"], regret_without(found["pairs"]))
        for T, found in results.items()
    }
    labels = list(dict.fromkeys(row["gap"] for each in rows.values() for row in each))
    budgets = list(dict.fromkeys(row["R"] for each in rows.values() for row in each))
    gaps = [float(label) for label in labels if label != ORACLE]
    holds = {T: held_rows(each, TOLERANCE) for T, each in rows.items()}
    setting = f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, p = 1"
    data = {T: [found["gaps"]] for T, found in results.items()}
    leak = common.leaks({"CDP-MAB": fmab.cdp_mab(EPSILON)}, AGENTS)
    schedule = (
        "A budgeted schedule multiplies its target gap by Δ to the power of 1/R in each "
        "round; Δ is on the horizontal axis, and the points on the left have each seed's own "
        "smallest gap (oracle)"
    )
    told = ". ".join(
        f"At T = {common.write_count(T)}, "
        + "; ".join(
            f"{words} at {listed(labels, where)}"
            + (f" of {len(gaps)}" if words == BOTH else _told_equal(rows[T], words))
            for words, where in each.items()
        )
        for T, each in holds.items()
    )
    found = told + ". " + _other_tolerances(rows, labels)
    worst = _largest(rows, "commits to a worse arm")
    spent = {T: _ends(each, max(budgets), "spends the budget") for T, each in rows.items()}
    every = [row for each in rows.values() for row in each]
    return [
        pictures.Picture(
            "maps_gap_regret",
            regret_page(every),
            caption(
                setting,
                data,
                "Regret is summed over agents; ratios of means over the same seeds, with "
                f"{100 * verdicts.LEVEL:g} % intervals (delta method)",
                schedule,
                f"Bars below the curves: gaps at which a sentence of the paper holds, its "
                f"{100 * verdicts.LEVEL:g} % paired interval within {100 * TOLERANCE:g} %. {found}",
                leak,
            ),
            f"{_told_regret(rows)}. {told}.",
            every,
        ),
        pictures.Picture(
            "maps_gap_events",
            events_page(every),
            caption(
                setting,
                data,
                "Shares of the seeds, with pointwise 95 % Clopper–Pearson intervals",
                schedule,
                "An agent commits to a worse arm where it plays, at T, one arm that is not the "
                "best",
                leak,
            ),
            "; ".join(
                f"T = {common.write_count(T)}: {100 * low:.0f} % of seeds spend R = "
                f"{max(budgets)} at "
                f"gap {gaps[0]:g}, {100 * high:.0f} % at {gaps[-1]:g}; at most "
                f"{seen.no_less(100 * worst[T][0], 3):.3g} % commit to a worse arm "
                f"(R = {worst[T][1]}, gap {worst[T][2]})"
                for T, (low, high) in spent.items()
            )
            + ".",
            every,
        ),
    ]


GAP_AXIS = "gap Δ of the schedule"
Rows = Sequence[Mapping[str, Any]]


def _by_horizon(rows: Rows) -> dict[int, list[Mapping[str, Any]]]:
    return {T: [row for row in rows if row["T"] == T] for T in dict.fromkeys(r["T"] for r in rows)}


class _Gaps:
    """The horizontal axis of both pictures: gaps, and the oracle's at their left."""

    def __init__(self, rows: Rows) -> None:
        self.labels = list(dict.fromkeys(row["gap"] for row in rows))
        self.budgets = list(dict.fromkeys(row["R"] for row in rows))
        self.gaps = np.array([float(label) for label in self.labels if label != ORACLE])
        # The oracle's gap differs from seed to seed: its points stand left of the axis' numbers.
        self.beside = self.gaps[0] * 0.6

    def lines(self, axes: Any, rows: Rows, quantity: str) -> list[Any]:
        """Draws a quantity of one horizon over the gap, a line for each budget."""
        handles = []
        for index, budget in enumerate(self.budgets):
            look = style.get_line_style(index)
            cells = [row for row in rows if row["R"] == budget]
            mean, low, high = np.array([r[quantity] for r in cells if r["gap"] != ORACLE]).T
            axes.fill_between(self.gaps, low, high, color=look["color"], alpha=0.2, linewidth=0)
            handles += axes.plot(self.gaps, mean, label=f"R = {budget}", **look)
            (oracle,) = (row[quantity] for row in cells if row["gap"] == ORACLE)
            axes.plot(self.beside, oracle[0], "o", color=look["color"], markersize=2.5)
            axes.vlines(self.beside, oracle[1], oracle[2], color=look["color"], linewidth=0.8)
        axes.set(xscale="log", xlim=(self.beside / 1.25, self.gaps[-1] * 1.1))
        axes.axvline(self.gaps[0] / 1.25, color="0.6", linewidth=0.5)
        return handles

    def name(self, page: pictures.Page, axes: Any) -> None:
        """Writes the numbers of the axis, and where the oracle's points stand."""
        ticks = [number for number in (0.01, 0.1, 1) if self.gaps[0] <= number <= self.gaps[-1]]
        name_ticks(page, axes, ticks, oracle=self.beside)


def regret_page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws regret against no budget from the rows of the CSV."""
    axis, by_horizon = _Gaps(rows), _by_horizon(rows)
    holds = {T: held_rows(each, TOLERANCE) for T, each in by_horizon.items()}
    marks = dict(zip([*SENTENCES, BOTH], ("0.15", "0.55", "#D55E00"), strict=True))

    def draw(page: pictures.Page) -> None:
        axes = page.panels(["regret / no budget"], common.titles(by_horizon), GAP_AXIS)
        for panel, (horizon, each) in zip(axes[0], by_horizon.items(), strict=True):
            handles = axis.lines(panel, each, "over no budget")
            panel.set(yscale="log")
            panel.axhline(1, color="0.4", linewidth=0.5, zorder=0.5)
            # By the means: where few seeds are run, an interval may reach 0.
            means = np.log([row["over no budget"][0] for row in each])
            low, high = means.min(), means.max() + 0.15 * np.ptp(means)
            # Room below the curves, a line there for each sentence.
            panel.set_ylim(np.exp(low - 0.4 * (high - low)), np.exp(high))
            for place, (words, colour) in enumerate(marks.items()):
                height = 0.16 - 0.06 * place
                _mark(panel, axis.labels, holds[horizon][words], height, colour, axis.beside)
        bars = [
            Line2D([], [], color=colour, lw=2.5, label=f"{words} (within {100 * TOLERANCE:g} %)")
            for words, colour in marks.items()
            if any(each[words].any() for each in holds.values())
        ]
        page.handles = [handles, bars]
        axis.name(page, axes)

    return draw


def events_page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws what happens to the budget from the rows of the CSV."""
    axis, by_horizon = _Gaps(rows), _by_horizon(rows)
    quantities = {
        "budget spent (%)": "spends the budget",
        "worse arm (%)": "commits to a worse arm",
    }

    def draw(page: pictures.Page) -> None:
        axes = page.panels(list(quantities), common.titles(by_horizon), GAP_AXIS)
        for column, each in zip(axes.T, by_horizon.values(), strict=True):
            for panel, quantity in zip(column, quantities.values(), strict=True):
                page.handles = axis.lines(panel, each, quantity)
                panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
                panel.set(ylim=(-0.03, None))
        axis.name(page, axes)

    return draw


def held_rows(rows: Sequence[Mapping[str, Any]], tolerance: float) -> dict[str, np.ndarray]:
    """Returns [gap] where each sentence holds, read from the rows of one horizon."""
    one = {row["gap"]: row for row in rows}
    return {
        words: np.array([row[f"{words}, within {100 * tolerance:g} %"] for row in one.values()])
        for words in (*SENTENCES, BOTH)
    }


def equal_at(gaps: Sequence[float], excess: Sequence[float]) -> float | None:
    """Returns the first gap at which a difference changes its sign, between two that were run."""
    points = list(zip(gaps, excess, strict=True))
    for (low, first), (high, second) in zip(points, points[1:], strict=False):
        if first * second <= 0 and first != second:
            return float(low * (high / low) ** (first / (first - second)))
    return None


def _told_equal(rows: Sequence[Mapping[str, Any]], words: str) -> str:
    """Says at which gap the two means of a sentence are equal."""
    one = {row["gap"]: row[f"{words}: excess"][0] for row in rows if row["gap"] != ORACLE}
    place = equal_at([float(gap) for gap in one], list(one.values()))
    return "" if place is None else f" (the means are equal at {place:.2g})"


def _mark(
    axes: Any, labels: Sequence[str], holds: np.ndarray, height: float, colour: str, beside: float
) -> None:
    """Draws a bar over the gaps at which a sentence holds, half a step to either side."""
    gaps = [float(label) for label in labels if label != ORACLE]
    own = [bool(v) for label, v in zip(labels, holds, strict=True) if label != ORACLE]
    half = math.sqrt(gaps[1] / gaps[0]) if len(gaps) > 1 else 1.1
    pieces = [(low / half, high * half) for low, high in spans(gaps, own)]
    if bool(holds[list(labels).index(ORACLE)]):
        pieces.append((beside / 1.1, beside * 1.1))
    for low, high in pieces:
        axes.plot(
            [low, high], [height] * 2, color=colour, lw=2.5, solid_capstyle="butt",
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip


def _other_tolerances(rows: Mapping[int, Sequence[Mapping[str, Any]]], labels: list[str]) -> str:
    """Says where both sentences hold under the other tolerances."""
    told = []
    for tolerance in TOLERANCES:
        if tolerance != TOLERANCE:
            both = {T: listed(labels, held_rows(each, tolerance)[BOTH]) for T, each in rows.items()}
            at = "; ".join(f"{gap} (T = {common.write_count(T)})" for T, gap in both.items())
            told.append(f"within {100 * tolerance:g} %, both at {at}")
    return ". ".join(text[0].upper() + text[1:] for text in told)


def _largest(
    rows: Mapping[int, Sequence[Mapping[str, Any]]], quantity: str
) -> dict[int, tuple[float, int, str]]:
    """Returns the largest share of each horizon, and its budget and gap."""
    found = {}
    for horizon, each in rows.items():
        most = max(each, key=lambda row: row[quantity][0])
        found[horizon] = most[quantity][0], most["R"], most["gap"]
    return found


def _ends(rows: Sequence[Mapping[str, Any]], budget: int, quantity: str) -> tuple[float, float]:
    """Returns a budget's share at the smallest and at the largest gap."""
    own = [row[quantity][0] for row in rows if row["R"] == budget and row["gap"] != ORACLE]
    return own[0], own[-1]


def _told_regret(rows: Mapping[int, Sequence[Mapping[str, Any]]]) -> str:
    """Says where the regret of the largest budget is least, and what it has with the oracle's."""
    told = []
    for horizon, each in rows.items():
        own = [row for row in each if row["R"] == max(row["R"] for row in each)]
        least = min((r for r in own if r["gap"] != ORACLE), key=lambda r: r["over no budget"][0])
        (oracle,) = (row for row in own if row["gap"] == ORACLE)
        told.append(
            f"at T = {common.write_count(horizon)}, R = {least['R']} has its least regret at gap "
            f"{least['gap']}, {least['over no budget'][0]:.2g} times that without a budget; "
            f"with the oracle's gap it is {oracle['over no budget'][0]:.2g} times that"
        )
    text = "; ".join(told)
    return text[0].upper() + text[1:]
