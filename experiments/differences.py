"""The skeleton of the figures of regret: one sweep, and curves beside one of them, paired.

A figure states its sweep, its curves and its words. Its picture is drawn from the rows of its CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen

Rows = Sequence[Mapping[str, Any]]
Bands = dict[int, dict[str, xr.Dataset]]  # by horizon and label
# What rows are about, besides differences: curves, and what 100 % is where these are not drawn.
REGRET, AT_END = "regret", "regret at T"


def swept(algorithm: Any, problem: Any, **options: Any) -> Callable[..., xr.Dataset]:
    """Returns an experiment's `sweep`, which records the slots that all curves have.

    It takes a horizon, seeds, a store or None, and what a quick run has otherwise.

    Args:
        algorithm, problem, options: As `fmab.sweep` takes them.
    """

    def sweep(
        horizon: int,
        seeds: int,
        store: Path | None = None,
        quick: Mapping[str, Any] | None = None,
    ) -> xr.Dataset:
        own = {"horizon": horizon, "seeds": seeds, "times": common.slots(horizon), "store": store}
        return fmab.sweep(algorithm, problem, **own, **options | dict(quick or {}))

    return sweep


@dataclass(frozen=True)
class Differences:
    """Paired differences of regret to a reference, over the logarithm of time."""

    results: common.Results  # what they are of, by horizon
    more: Bands  # their bands
    # regret at T of the references, with intervals; their mean is 100 %
    levels: dict[int, dict[str, seen.Point]]
    # bands of regret itself, where it is drawn above the differences
    regret: Bands = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The longest horizon, of which words tell."""
        return max(self.results)

    @property
    def references(self) -> dict[int, float]:
        """Mean regret of the references at T, by horizon."""
        return {T: _middle(points.values()) for T, points in self.levels.items()}

    def ends(self) -> dict[int, dict[str, seen.Point]]:
        """Returns the differences at T with their intervals, by horizon and label."""
        return {
            T: {label: pictures.end_of(band) for label, band in bands.items()}
            for T, bands in self.more.items()
        }

    def told(self, form: str) -> str:
        """Lists the differences at the longest horizon.

        Args:
            form: Of one; ``label``, ``mean`` and ``share``, in per cent of the reference, are
                filled in.
        """
        reference = self.references[self.last]
        return ", ".join(
            form.format(label=label, mean=mean, share=seen.percent(mean, reference))
            for label, (mean, _, _) in self.ends()[self.last].items()
        )

    def course(self) -> str:
        """Says how the differences at the longest horizon change from curve to curve."""
        return seen.course(list(self.ends()[self.last].values()))

    def every(self) -> list[seen.Point]:
        """Returns the differences at all T."""
        return [point for found in self.ends().values() for point in found.values()]

    def in_percent(self, of: str) -> str:
        """Says what the axis on the right is per cent of, where there is one; or ""."""
        return pictures.in_percent(self.references.values(), self.more.values(), of)

    def rows(self, quantity: str) -> list[dict[str, Any]]:
        """Returns all that is drawn, and the references at T: rows of the CSV."""
        at_end = [
            {"quantity": AT_END, "T": T, "curve": label, "slot": T}
            | dict(zip(("mean", "lower", "upper"), point, strict=True))
            for T, points in self.levels.items()
            for label, point in points.items()
            if not self.regret
        ]
        return at_end + pictures.curve_rows({REGRET: self.regret, quantity: self.more})


def _middle(points: Iterable[Sequence[float]]) -> float:
    return float(np.mean([point[0] for point in points]))


def beside(
    results: common.Results,
    reference: str,
    curves_of: Callable[[xr.Dataset], Mapping[str, xr.DataArray]],
    regret: bool = True,
) -> Differences:
    """Returns the differences of curves to one of them.

    Args:
        results: By horizon.
        reference: Label of the curve that the others are beside.
        curves_of: Returns the curves of results, by label.
        regret: Whether regret itself is drawn.
    """
    curves = {T: curves_of(data) for T, data in results.items()}
    return Differences(
        results,
        {T: common.difference_bands(each, reference) for T, each in curves.items()},
        {
            T: {reference: common.interval(each[reference].isel(time=-1))}
            for T, each in curves.items()
        },
        {T: common.paired_bands(each, reference) for T, each in curves.items() if regret},
    )


# --- pictures, from rows ------------------------------------------------------------------------


def read_bands(rows: Rows, quantity: str) -> Bands:
    """Returns the bands of a quantity, by horizon and label."""
    points: dict[int, dict[str, list[Any]]] = {int(row["T"]): {} for row in rows}
    for row in rows:
        if row["quantity"] == quantity:
            ends = (row["slot"], row["mean"], row["lower"], row["upper"])
            points[int(row["T"])].setdefault(row["curve"], []).append(ends)
    return {
        T: {label: _band(each) for label, each in curves.items()} for T, curves in points.items()
    }


def _band(points: Sequence[Any]) -> xr.Dataset:
    time, *values = np.array(points, np.float64).T
    named = zip(("mean", "lower", "upper"), values, strict=True)
    return xr.Dataset({n: ("time", v) for n, v in named}, {"time": time.astype(np.int64)})


def write_page(
    rows: Rows,
    label: str,
    height: float = 1.45,
    near: float | None = None,
    looks: Sequence[Mapping[str, Any]] = (),
) -> Callable[[pictures.Page], None]:
    """Returns what draws differences over the logarithm of time, below regret where there is some.

    Args:
        rows: As `Differences.rows` returns them; a curve's leak is told in the legend.
        label: Of the differences.
        height: Of a panel, in inches.
        near: Differences below it are on a linear scale, where curves are orders of magnitude
            apart; None for linear axes.
        looks: Of the differences; the usual ones by default.
    """
    quantity = next(row["quantity"] for row in rows[::-1])
    regret, at_end, more = (read_bands(rows, each) for each in (REGRET, AT_END, quantity))
    drawn = {T: bands if looks else drop_zero_curves(bands) for T, bands in more.items()}
    both = any(regret.values())
    ends = [pictures.ends(bands) for bands in drawn.values()]
    # Without rows of their own, the references are the curves that have no difference.
    levels = [
        _middle(map(pictures.end_of, at_end[T].values()))
        if at_end[T]
        else _middle(pictures.end_of(b) for name, b in regret[T].items() if name not in more[T])
        for T in more
    ]
    leaks = list({row["curve"]: row["leak"] for row in rows if "leak" in row}.values())

    def draw(page: pictures.Page) -> None:
        labels = [*["regret, sum over agents"] * both, label]
        axes = page.panels(labels, common.titles(more), height=height)
        for column, T in zip(axes.T, more, strict=True):
            page.handles = _curves(column[-1], drawn[T], looks)
            if near is not None:
                column[-1].set_yscale("symlog", linthresh=near, linscale=0.4)
                least = min(float(band["lower"].min()) for band in drawn[T].values())
                column[-1].set_ylim(min(-0.3 * near, 1.5 * least))
            if both:
                page.handles = common.draw_bands(column[0], regret[T])
                column[0].set(xlim=0, **{"ylim": 0} if near is None else {"yscale": "log"})
        if leaks:
            page.handles = pictures.relabelled(page.handles, leaks)
        if near is None:
            page.percent(list(axes[-1]), levels, ends)

    return draw


def drop_zero_curves(bands: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Leaves out the curves that are 0 in every seed."""
    return {
        name: band for name, band in bands.items() if band["lower"].any() or band["upper"].any()
    }


def _curves(
    panel: Any, bands: Mapping[str, xr.Dataset], looks: Sequence[Mapping[str, Any]]
) -> list[Any]:
    if not looks:
        return pictures.draw_difference(panel, bands)
    handles = []
    for (name, band), look in zip(bands.items(), looks, strict=True):
        handles += pictures.draw_difference(panel, {name: band}, **look)
    return handles


def row_beside(
    cell: xr.Dataset, reference: xr.Dataset, words: str, algorithm: Any, agents: int
) -> dict[str, Any]:
    """Returns what tables end in: regret beside a reference's, leak, and lost best arms.

    Args:
        cell: One configuration at T.
        reference: Another one.
        words: What the reference is called.
        algorithm: Of the configuration.
        agents: M.
    """
    regret, base = cell.regret.values, reference.regret.values
    return {
        "regret at T": common.interval(regret),
        f"minus {words}": common.interval(regret - base),
        f"minus {words}, per cent": seen.percent(float((regret - base).mean()), float(base.mean())),
        "leak": common.leak_text(common.leak_of(algorithm, agents)),
        "lost the best arm": int(cell.best_arm_lost.sum()),
    }
