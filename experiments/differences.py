"""The skeleton of the figures of regret: one sweep, and curves beside one of them, paired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen

Bands = dict[int, dict[str, xr.Dataset]]  # by horizon and label


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
        return fmab.sweep(
            algorithm,
            problem,
            horizon=horizon,
            seeds=seeds,
            times=common.slots(horizon),
            store=store,
            **options | dict(quick or {}),
        )

    return sweep


@dataclass(frozen=True)
class Differences:
    """Paired differences of regret to a reference, over the logarithm of time.

    Attributes:
        results: What they are of, by horizon.
        more: Their bands.
        references: Mean regret of the reference at T, by horizon.
        regret: Bands of regret itself, where it is drawn above the differences.
    """

    results: common.Results
    more: Bands
    references: dict[int, float]
    regret: Bands = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The longest horizon, of which words tell."""
        return max(self.results)

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

    def below_regret(
        self, label: str, leaks: Sequence[str] = (), near: float | None = None
    ) -> Callable[[pictures.Page], None]:
        """Returns what draws regret over time, and differences in a second row.

        Args:
            label: What the second row shows.
            leaks: What the legend says besides of each curve.
            near: Differences below it are on a linear scale, where curves are orders of magnitude
                apart; None for linear axes.
        """

        def draw(page: pictures.Page) -> None:
            axes = page.panels(["regret, sum over agents", label], common.titles(self.results))
            for (top, bottom), horizon in zip(axes.T, self.results, strict=True):
                page.handles = common.draw_bands(top, self.regret[horizon])
                pictures.draw_difference(bottom, self.more[horizon])
                if near is None:
                    top.set(xlim=0, ylim=0)
                    continue
                top.set(xlim=0, yscale="log")
                bottom.set_yscale("symlog", linthresh=near, linscale=0.4)
                least = min(float(band["lower"].min()) for band in self.more[horizon].values())
                bottom.set_ylim(min(-0.3 * near, 1.5 * least))
            if leaks:
                page.handles = pictures.relabelled(page.handles, leaks)
            if near is None:
                self._percent(page, axes[1])

        return draw

    def alone(
        self, label: str, height: float = 1.9, looks: Sequence[Mapping[str, Any]] = ()
    ) -> Callable[[pictures.Page], None]:
        """Returns what draws differences alone.

        Args:
            label: What they are.
            height: Of a panel, in inches.
            looks: Of the curves; the usual ones by default.
        """

        def draw(page: pictures.Page) -> None:
            axes = page.panels([label], common.titles(self.results), height=height)[0]
            for panel, bands in zip(axes, self.more.values(), strict=True):
                if not looks:
                    page.handles = pictures.draw_difference(panel, bands)
                    continue
                page.handles = []
                for (name, band), own in zip(bands.items(), looks, strict=True):
                    page.handles += pictures.draw_difference(panel, {name: band}, **own)
            self._percent(page, axes)

        return draw

    def _percent(self, page: pictures.Page, panels: np.ndarray) -> None:
        ends = [pictures.ends(bands) for bands in self.more.values()]
        page.percent(list(panels), self.references.values(), ends)


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
        {T: float(each[reference].isel(time=-1).mean()) for T, each in curves.items()},
        {T: common.paired_bands(each, reference) for T, each in curves.items() if regret},
    )
