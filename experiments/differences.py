"""The skeleton of the figures of regret: a record for each, and one function that draws it.

A figure is a sweep, its curves, and the curve that the others are paired with. Its picture is drawn
from the rows of its CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen

Rows = Sequence[Mapping[str, Any]]
Bands = dict[int, dict[str, xr.Dataset]]  # by horizon and label
Curves = Mapping[str, xr.DataArray]
# Quantities of rows, besides differences: curves, and references whose curves are not drawn.
REGRET, AT_END = "regret", "regret at T"


def make_sweep(algorithm: Any, problem: Any, **options: Any) -> Callable[..., xr.Dataset]:
    """Returns an experiment's `sweep`, which records the slots that all curves share."""

    def sweep(
        horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, Any] | None = None
    ) -> xr.Dataset:
        shared = {"horizon": horizon, "seeds": seeds, "times": common.slots(horizon)}
        changes = options | dict(quick or {})
        return fmab.sweep(algorithm, problem, store=store, **shared, **changes)

    return sweep


@dataclass(frozen=True)
class Figure:
    """A figure of regret over time, with paired differences to a reference."""

    name: str  # of its files
    setting: str  # what all runs share
    alt: str  # what is drawn, for readers who do not see it
    # returns curves by label, for each reference that they are paired with, which is one of them
    curves: Callable[[xr.Dataset], Mapping[str, Curves]]
    quantity: str  # name of the differences in the CSV
    label: str  # of their axis
    algorithms: Mapping[str, Any]  # by label, for the leaks
    agents: int
    notes: Sequence[str] = ()  # further sentences of the caption
    has_regret: bool = True  # whether regret is drawn above the differences
    has_leak_legend: bool = False
    near: float | None = None  # below it differences are linear, above logarithmic; None: linear
    height: float = 1.45  # of a panel, in inches
    looks: Sequence[Mapping[str, Any]] = ()  # of the curves of differences
    names: Mapping[str, str] = field(default_factory=dict)  # of swept algorithms

    def draw(self, results: common.Results, folder: Path) -> list[Path]:
        """Writes the picture, its words and its numbers."""
        groups = {T: self.curves(data) for T, data in results.items()}
        rows = self.rows(groups)
        if self.names:
            results = common.renamed(results, algorithm=self.names)
        caption = common.caption(self.setting, results, *self.sentences(rows))
        picture = pictures.Picture(self.name, self.page(rows), caption, self.alt, rows)
        return pictures.publish(picture, folder)

    def rows(self, groups: Mapping[int, Mapping[str, Curves]]) -> list[dict[str, Any]]:
        """Returns the rows of the CSV: references, regret and differences."""
        rows, bands = [], {REGRET: {}, self.quantity: {}}
        for T, pairs in groups.items():
            for quantity, compute in (
                (REGRET, common.paired_bands),
                (self.quantity, common.difference_bands),
            ):
                bands[quantity][T] = {
                    label: band
                    for reference, curves in pairs.items()
                    for label, band in compute(curves, reference).items()
                }
            for reference, curves in pairs.items():
                ends = common.interval(curves[reference].isel(time=-1))
                start = {"quantity": AT_END, "T": T, "curve": reference, "slot": T}
                rows.append(start | dict(zip(("mean", "lower", "upper"), ends, strict=True)))
        if self.has_regret:
            rows = []
        else:
            bands.pop(REGRET)
        rows += pictures.curve_rows(bands)
        if self.has_leak_legend:
            leaks = {n: common.leak_of(a, self.agents) for n, a in self.algorithms.items()}
            rows = [row | {"leak": common.leak_text(leaks[row["curve"]])} for row in rows]
        return rows

    def sentences(self, rows: Rows) -> list[str]:
        """Returns the sentences of the caption that depend on the figure, not on its seeds."""
        more = read_bands(rows, self.quantity)
        levels = _levels(rows, more)
        words = [*self.notes]
        if self.has_regret:
            (reference,) = {r["curve"] for r in rows} - {
                n for curves in more.values() for n in curves
            }
            words.append(common.PAIRED.format(reference))
        else:
            at_end = [row for row in rows if row["quantity"] == AT_END]
            for name in dict.fromkeys(row["curve"] for row in at_end):
                means = {row["T"]: row["mean"] for row in at_end if row["curve"] == name}
                words.append(common.level_at_end(name, means))
        text = "Differences are paired, seed by seed, and drawn over the logarithm of time"
        if self.near is not None:
            text += f"; linear up to {self.near}, logarithmic beyond"
        else:
            text += pictures.in_percent(
                levels.values(), more.values(), "the reference's regret at T"
            )
        words.append(text)
        drawn = {name for bands in more.values() for name in drop_zero_curves(bands)}
        zero = [name for name in next(iter(more.values())) if name not in drawn]
        if zero and not self.looks:
            words.append(f"0 in every seed, and therefore without a line: {seen.listed(zero)}")
        return [*words, common.leaks(self.algorithms, self.agents)]

    def page(self, rows: Rows) -> Callable[[pictures.Page], None]:
        """Returns the function that draws the rows of the CSV."""
        regret, more = (read_bands(rows, name) for name in (REGRET, self.quantity))
        drawn = {T: bands if self.looks else drop_zero_curves(bands) for T, bands in more.items()}
        ends = [pictures.ends(bands) for bands in drawn.values()]
        levels = list(_levels(rows, more).values())
        leaks = list({row["curve"]: row["leak"] for row in rows if "leak" in row}.values())

        def draw(page: pictures.Page) -> None:
            labels = [*["regret, sum over agents"] * self.has_regret, self.label]
            axes = page.panels(labels, common.titles(more), height=self.height)
            for column, T in zip(axes.T, more, strict=True):
                page.handles = self._draw_differences(column[-1], drawn[T])
                if self.has_regret:
                    page.handles = common.draw_bands(column[0], regret[T])
                    column[0].set(xlim=0, **{"ylim": 0} if self.near is None else {"yscale": "log"})
            if leaks:
                page.handles = pictures.relabelled(page.handles, leaks)
            if self.near is None:
                page.percent(list(axes[-1]), levels, ends)

        return draw

    def _draw_differences(self, panel: Any, bands: Mapping[str, xr.Dataset]) -> list[Any]:
        pictures.line_up(panel)
        handles = []
        if self.looks:
            for (name, band), look in zip(bands.items(), self.looks, strict=True):
                handles += common.draw_bands(panel, {name: band}, **look)
        else:
            handles = common.draw_bands(panel, bands)
        panel.set_xscale("log")
        if self.near is not None:
            panel.set_yscale("symlog", linthresh=self.near, linscale=0.4)
            least = min(float(band["lower"].min()) for band in bands.values())
            panel.set_ylim(min(-0.3 * self.near, 1.5 * least))
        return handles


def _levels(rows: Rows, more: Bands) -> dict[int, float]:
    """Returns the mean regret of the references at T, by horizon."""
    return {
        T: float(
            np.mean(
                [
                    row["mean"]
                    for row in rows
                    if int(row["T"]) == int(row["slot"]) == T
                    and (
                        row["quantity"] == AT_END
                        or (row["quantity"] == REGRET and row["curve"] not in more[T])
                    )
                ]
            )
        )
        for T in more
    }


def read_bands(rows: Rows, quantity: str) -> Bands:
    """Returns the bands of a quantity, by horizon and label."""
    points: dict[int, dict[str, list[Any]]] = {int(row["T"]): {} for row in rows}
    for row in rows:
        if row["quantity"] == quantity:
            ends = (row["slot"], row["mean"], row["lower"], row["upper"])
            points[int(row["T"])].setdefault(row["curve"], []).append(ends)
    return {
        T: {label: _band(values) for label, values in curves.items()}
        for T, curves in points.items()
    }


def _band(points: Sequence[Any]) -> xr.Dataset:
    time, *values = np.array(points, np.float64).T
    columns = zip(("mean", "lower", "upper"), values, strict=True)
    return xr.Dataset({n: ("time", v) for n, v in columns}, {"time": time.astype(np.int64)})


def drop_zero_curves(bands: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Leaves out the curves that are 0 in every seed."""
    return {
        name: band for name, band in bands.items() if band["lower"].any() or band["upper"].any()
    }


def row_beside(
    cell: xr.Dataset, reference: xr.Dataset, words: str, algorithm: Any, agents: int
) -> dict[str, Any]:
    """Returns the last columns of tables: regret beside a reference's, leak, lost best arms."""
    regret, base = cell.regret.values, reference.regret.values
    return {
        "regret at T": common.interval(regret),
        f"minus {words}": common.interval(regret - base),
        f"minus {words}, per cent": seen.percent(float((regret - base).mean()), float(base.mean())),
        "leak": common.leak_text(common.leak_of(algorithm, agents)),
        "lost the best arm": int(cell.best_arm_lost.sum()),
    }
