"""What all experiments share: horizons, recorded slots, the look of the figures, tables."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

import fmab_jax as fmab
from fmab_jax.analysis.bands import describe, student_quantile
from fmab_jax.analysis.words import whole
from fmab_jax.files import whole_file
from fmab_jax.plots import captions, style
from fmab_jax.plots.style import FONT, WIDTH, look

# The paper never states T. "log(T) = 4 rounds" fits 10^4 best; the others show what changes later.
HORIZONS = (10**4, 10**5, 10**6)
SEEDS = 1000
LEVEL = 0.95
WIDE = 7.0  # inches: two columns of a journal

# What the bands of `paired_bands` are, for captions.
PAIRED = (
    "In the panels of regret, the band of {} is that of its mean, the others' are those of the "
    "paired difference to it"
)

Results = Mapping[int, xr.Dataset]  # by horizon


def slots(horizon: int) -> np.ndarray:
    """Returns 100 recorded slots: half evenly spaced (even), half in their logarithm (odd)."""
    even = np.round(np.linspace(horizon / 50, horizon, 50))
    odd = 2 * np.round(np.geomspace(50, horizon / 2.1, 50)) + 1
    return np.union1d(even, odd).astype(np.int64)


def power(horizon: int) -> str:
    """Writes a horizon for the name of a file."""
    short = f"{horizon:.0e}".replace("+0", "")
    return short if float(short) == horizon else str(horizon)


def panels(columns: int, rows: int = 1, height: float = 1.75) -> tuple[Figure, np.ndarray]:
    """Makes a figure of one or two journal columns, and its axes [row, column]."""
    figure = Figure(figsize=(WIDTH if columns == 1 else WIDE, rows * height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for each in axes.flat:
        style.dress(each)
        each.margins(x=0.01)
    return figure, axes


def titles(results: Results) -> list[str]:
    """Names the horizons of the columns of a figure, where there are several."""
    return [f"T = {whole(T)} slots" if len(results) > 1 else "" for T in results]


def title_horizons(axes: np.ndarray, results: Results) -> None:
    """Writes the horizon over each column, where there are several."""
    if len(results) > 1:
        for each, horizon in zip(axes[0], results, strict=True):
            each.set_title(f"T = {whole(horizon)} slots", fontsize=FONT, pad=3)


def draw_bands(axes: Axes, bands: Mapping[str, xr.Dataset], **changed: Any) -> list[Any]:
    """Draws curves over time with their bands, by label; returns the legend's entries."""
    handles = []
    for index, (label, band) in enumerate(bands.items()):
        own = look(index) | changed
        time, lower, upper = band.time, band.lower, band.upper
        axes.fill_between(time, lower, upper, color=own["color"], alpha=0.2, linewidth=0)
        handles += axes.plot(time, band["mean"], label=label, **own)
    return handles


def regret_bands(curves: Mapping[str, xr.DataArray]) -> dict[str, xr.Dataset]:
    """Returns the simultaneous band of every curve."""
    return {label: fmab.confidence_band(each, LEVEL) for label, each in curves.items()}


def difference_bands(curves: Mapping[str, xr.DataArray], reference: str) -> dict[str, xr.Dataset]:
    """Returns the bands of the paired differences to one of the curves; its own is zero."""
    first = curves[reference]
    return {label: fmab.paired_difference(each, first, LEVEL) for label, each in curves.items()}


def paired_bands(curves: Mapping[str, xr.DataArray], reference: str) -> dict[str, xr.Dataset]:
    """Returns the reference's band, and around each other mean that of its paired difference.

    Instances differ by far more than what is compared on them, so that the bands of the means
    themselves would overlap whatever the difference.
    """
    own = fmab.confidence_band(curves[reference], LEVEL)
    bands = difference_bands(curves, reference)
    for label, band in bands.items():
        moved = {name: band[name] + own["mean"] for name in ("mean", "lower", "upper")}
        bands[label] = own if label == reference else band.assign(moved)
    return bands


def label_axes(axes: np.ndarray, labels: Sequence[str], x: str = "slot t") -> None:
    """Writes what the rows show on their left, and what all columns share below the last row."""
    for row, label in zip(axes, labels, strict=True):
        row[0].set_ylabel(label, fontsize=FONT, labelpad=2)
    for each in axes[-1]:
        each.set_xlabel(x, fontsize=FONT, labelpad=2)
    for each in axes.flat:
        for name, axis in (("x", each.xaxis), ("y", each.yaxis)):
            if isinstance(axis.get_major_formatter(), ScalarFormatter):
                each.locator_params(axis=name, nbins=4)
                each.ticklabel_format(axis=name, style="sci", scilimits=(-3, 4), useMathText=True)
            axis.get_offset_text().set_fontsize(FONT)


def caption(setting: str, results: Results, *sentences: str, bars: str = "") -> str:
    """Returns setting, horizons, seeds, band (or bars), further sentences, what went wrong."""
    horizons = [whole(horizon) for horizon in results]
    listed = " and ".join(filter(None, [", ".join(horizons[:-1]), horizons[-1]]))
    seeds = whole(next(iter(results.values())).sizes["seed"])
    shown = f"Lines: means over the seeds; shaded: {describe(LEVEL, 'simultaneous')}"
    if bars:
        shown = f"{bars}: pointwise {100 * LEVEL:g} % confidence interval (Student t)"
    parts = [
        f"{setting}, T = {listed} slots, {seeds} seeds",
        shown,
        *sentences,
        *_went_wrong(results),
    ]
    return ". ".join(parts) + "."


def _went_wrong(results: Results) -> list[str]:
    """Says how many seeds lost the best arm, play a worse one at T, and had not decided."""
    tables = [fmab.final_table(data, level=LEVEL) for data in results.values()]
    horizons = xr.DataArray(list(results), dims="horizon", name="horizon", attrs={"symbol": "T"})
    finals = xr.concat(tables, horizons, coords="minimal", compat="override", join="exact")
    for name in finals.dims:
        if all(isinstance(label, str) for label in finals[name].values):
            finals[name].attrs["symbol"] = ""  # labels that are words speak for themselves
    undecided = f"{whole(finals.undecided.sum())} still explored then"
    return [*captions.events_of_cells(finals), undecided]


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes PNG and PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        fmab.save_figure(figure, folder / f"{name}{end}", overwrite=True)
        for end in (".png", ".pdf")
    ]


def save_table(
    rows: Sequence[Mapping[str, Any]], folder: Path, name: str, notes: str
) -> list[Path]:
    """Writes rows as Markdown, notes below, and as CSV, where an interval has three columns."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown, table = folder / f"{name}.md", folder / f"{name}.csv"
    lines = [*table_lines(rows), "", notes, ""]
    with whole_file(markdown) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
    save_rows(rows, table)
    return [markdown, table]


def save_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Writes rows as CSV, where an interval has three columns."""
    flat: list[dict[str, Any]] = []
    for row in rows:
        flat.append({})
        for head, value in row.items():
            if isinstance(value, tuple):
                names = (head, f"{head}, lower", f"{head}, upper")
                flat[-1] |= dict(zip(names, value, strict=True))
            else:
                flat[-1][head] = value
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    return path


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns rows as a table in Markdown."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(_cell(row[h]) for h in heads) + " |" for row in rows]


def _cell(value: Any) -> str:
    """Writes a value, or a mean with its interval, of which two digits are told."""
    if not isinstance(value, tuple):
        return str(value)
    mean, lower, upper = value
    if upper == lower:
        return f"{mean:,.6g}"
    digits = max(0, 1 - math.floor(math.log10((upper - lower) / 2)))
    return f"{mean:,.{digits}f} [{lower:,.{digits}f}, {upper:,.{digits}f}]"


def interval(values: Any, level: float = LEVEL) -> tuple[float, float, float]:
    """Returns the mean over the seeds and its pointwise confidence interval."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    half = student_quantile(values.size - 1, level) * float(values.std(ddof=1)) / values.size**0.5
    return mean, mean - half, mean + half


@functools.cache
def disagreement(agents: int, arms: int, spread: float, instances: int = 100) -> float:
    """Returns the share of agents whose local best arm is not the global best, over instances."""
    problem = fmab.Problem.heterogeneous(agents, arms, spread)
    if problem.homogeneous:
        return 0.0
    means = (problem.fixed(seed).means for seed in range(instances))
    return float(np.mean([each.argmax(axis=1) != each.mean(axis=0).argmax() for each in means]))
